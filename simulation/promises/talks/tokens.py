"""Receivers that want a token: for how long one serves, what happens when it is refused or there is none to be had, and
who is shown it; of endpoints, queues' subscribers and services of stores.

Sources: docs/gates.md; RFC 6749 (client credentials), RFC 7523 (assertions).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_private_key

from simulation.promises.judgement import SECOND
from simulation.promises.talks.talk import Came, Talk

KIND = "tokens.made"
APP = "/app/tokens"
MINUTE, HOUR = 60, 3_600
LATE_S = 75
"""What waits longer than a minute is looked after each minute."""

LEFT_ALONE_S = 300
"""For so long no token is asked for after two were refused."""

LONGEST_PROOF_S = 300
"""For so long an assertion may serve."""

KEY = (
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDDzLGfe1GGjZ0Vi34LYRQU3oPkGIzhG6MdDHRcW64MYWuXdDICtq6ldVChs7"
    "VBXRkqTblscPmaOcC9Zn6Rn0GOExpWiMddwDuvsy8qse3zCKKkkzM21QCzUFhrPZtjQCM4JzUN+tsGrHtLjMq6pGD22XTzYm5u5bT7alDhn9uh"
    "tXHq9Luu0bqePmaB3IocX+hg/G5ydiS1EBzNgtZZXGD0lrvN0PlgKaje+gWhkRjc6G0sFJFtkilntQKiMlyzOnI/YDXwnr+zs8ZIZxKSE5A5F/"
    "i3Ap7L4Dl6I8k7ecU804yNdgF4pLJNQ5JGcABrHQIt6jlCUE1V3GoArHU1cIV9AgMBAAECggEAIaWFSICqi9K+Ebu81zvBdayfQY0ueGiFaTKA"
    "tHZUvG/pS0d+aJT4Ahrc1kzJcwgKkQh2OrpXSjdudZ2tVlzlqQKDXid3CxdDqnfCPTYCS+dJ+7oH7P5Bdo7yAsu9bhrRco7aQSLAjK8LKPpyxA"
    "wHVaQcws5BZ/E1XpbwezU7SthT/kChLD2ycLEBfazK/aSGuZZAH3JOgOdtYlcelboradGMfHRcyeFakLSxh5ptYri7jyf5DVw6xIMzrOxjCLT/"
    "CUjozi10ugqY+3eFFQN2nmZ7QbVIrjw7Gjrnx0XkORFnkyYjYuI6FhxFudV0umKFQ5LkQ0gaTjdZ/6EeRHi7QQKBgQD3K1Kbg+4ahRcT9QWoij"
    "H6xdoxOfLyK5PyK+c96252pc0A6Umnv0r1ITl4Y9wt3g5c0TCI71N6FXMFzt8TpAJ9b7nqSub2prnw6J7Tr1F8/3zZ/j99Ra3K1neT0Gg8QSFo"
    "K7BBphcTtJ6Se50DMXkSsooZ61yoN1xqyBtauSUHhQKBgQDKy4fFOPZ6FSpdQ4wUeq+ri9YM5p/irVtKXpWeaUZnsaW3e6CFuRkoK2zCPmO+pL"
    "JeXxV95I1VD6fddBRpW8blh4BsT2yGL8UqHXDaoOp0SnKTPPSKPEyt3gvoQ51Mc1yoZI1dDe+pC4U5e1/GLG2GUyM0y0hCo83emhqs+bQbmQKB"
    "gF1jdxDfZkWK589Yksy9emjf/LMAzDSIFpw3zmVs4Q3fU3f2rSe+dVntNcOxJ24FKrQTLh1vH8FO/WjCYzMOkwpF/p7xshabpEHMAsbExStPdS"
    "MAl4iDnUi4g/HLmra5fR/Y8f27/ZgqdIewQQEF3lMcNmXYsee1Eywdc4hxz/XpAoGBAJO1kYvWhLjBZ90MkSBtiDzEGsHEzZo2uLK/l+0NMwne"
    "PB0b//zGqIs4rfwBo3c90OmqCiZrbYISaCuGHEPtZD7U5nZ9l0dZzhtx3DxyTrMrcq7KDDgP2a4eeL/RV+ZSdJ/2tXyc5P5U9NG8ijL3M0NOlO"
    "skUdqwIwhLaLirHEOpAoGADddrkd0hGdOIpeov0CCRaDuBeJGimdcyFZD+TadT/efLsOgqHA5jq1BJK+hlwX9cuw/PQnaFRu49yBXbPVDhnsOR"
    "nVwQ6e3xGAtydof4RGR7irPVnvR+AU/VfN1WAwghBHn9B36IJmpxkSBBqyYb+TFmmOdtttvz7rm/psObCpY="
)
"""An RSA key of 2,048 bits, PKCS #8 in base64, which opens nothing."""


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_lifetimes, _refused, _spared, _said, _unspent, _given_up, _changed, _asserted)


def _grant(uid: str, **more: Any) -> dict[str, Any]:
    """What is set for an endpoint of a uid, whose token server has a path of its own."""
    fields = {"grantType": "clientCredentials", "authMethod": "clientSecretPost", "clientId": f"client-{uid}"}
    return {**fields, "clientSecret": f"hush-{uid}", "tokenUrl": f"https://tokens-login.example/{uid}", **more}


def _endpoints(talk: Talk, *uids: str) -> None:
    talk.ask("POST", "/app", {"name": "Tokens", "uid": "tokens"}, status=201)
    for uid in uids:
        fields = {"url": f"https://tokens-{uid}.example/in", "uid": uid}
        talk.ask("POST", f"{APP}/endpoint", fields, status=201)
        talk.ask("PUT", f"{APP}/endpoint/{uid}/oauth", _grant(uid), status=204)


def _post(talk: Talk, number: int = 1) -> str:
    body = {"eventType": KIND, "payload": {"n": number}}
    return str(talk.ask("POST", f"{APP}/msg", body, status=202)["id"])


def _gives(token: str, **more: Any) -> tuple[int, bytes]:
    return 200, json.dumps({"access_token": token, "token_type": "Bearer", **more}).encode()


def _shown(came: Sequence[Came]) -> list[str | None]:
    return [each.headers.get("authorization") for each in came]


def _state(talk: Talk, message_id: str) -> dict[str, int]:
    return {each["uid"]: each["status"] for each in talk.ask("GET", f"{APP}/msg/{message_id}/endpoint")["data"]}


LIFETIMES: Mapping[str, tuple[int | None, Sequence[int]]] = {
    "brief": (100, (1, 1, 2, 3, 3, 4, 4, 5, 6)),
    "some": (1_000, (1, 1, 1, 1, 1, 1, 2, 3, 3)),
    "long": (7_200, (1, 1, 1, 1, 1, 1, 1, 1, 2)),
    "unsaid": (None, (1, 1, 1, 1, 2, 3, 3, 4, 5)),
}
"""How long tokens last, seconds, and which of them is shown at each of :data:`MOMENTS`."""

MOMENTS = (0, 60, 80, 240, 280, 880, 930, 3_000, 3_700)
"""Seconds after the first message."""


def _lifetimes(talk: Talk) -> None:
    """One token serves until shortly before its end, for an hour at most, and without a lifetime for four minutes and a
    half; each endpoint has its own, by which its attempts are known.
    """
    given: dict[str, int] = {}

    def give(came: Came) -> tuple[int, bytes]:
        uid = came.path.strip("/")
        given[uid] = given.get(uid, 0) + 1
        lasts = LIFETIMES[uid][0]
        return _gives(f"{uid}-{given[uid]}", **({} if lasts is None else {"expires_in": lasts}))

    asked = talk.listen("tokens-login.example", give)
    came = {uid: talk.listen(f"tokens-{uid}.example", lambda _: (200, b"")) for uid in (*LIFETIMES, "plain")}
    _endpoints(talk, *LIFETIMES)
    talk.ask("POST", f"{APP}/endpoint", {"url": "https://tokens-plain.example/in", "uid": "plain"}, status=201)
    talk.sleep(2)
    began = talk.now()
    for number, moment in enumerate(MOMENTS):
        talk.sleep(moment - (talk.now() - began) / SECOND, exactly=True)
        _post(talk, number)
        talk.sleep(8 + talk.put_off_s, exactly=True)
    for uid, (_, numbers) in LIFETIMES.items():
        talk.came(f"which token, {uid}", [f"Bearer {uid}-{number}" for number in numbers], _shown(came[uid]))
        own = [each for each in asked if each.path == f"/{uid}"]
        talk.came(f"asked so often, {uid}", max(numbers), len(own))
        forms = {parse_qs(each.body.decode())["client_id"][0] for each in own}
        talk.came(f"as its own client, {uid}", {f"client-{uid}"}, forms)
    talk.came("none of them to others", {None}, {*_shown(came["plain"])})
    for uid in (*LIFETIMES, "plain"):
        rows = talk.ask("GET", f"{APP}/attempt/endpoint/{uid}")["data"]
        talk.is_so(f"all arrived, {uid}", {200}, {each["responseStatusCode"] for each in rows})
        talk.is_so(
            f"by which client, {uid}",
            {f"client-{uid}" if uid != "plain" else None},
            {each.get("tokenClient") for each in rows},
        )
    talk.ask("DELETE", APP, status=204)


def _refused(talk: Talk) -> None:
    """A refused token is replaced within the attempt, at most twice, and then none is asked for during five minutes;
    meanwhile the other endpoint of that server gets its own.
    """
    given: list[str] = []
    takes: dict[str, Any] = {"from": 1}

    def give(came: Came) -> tuple[int, bytes]:
        given.append(f"{came.path[1:]}-{sum(each.startswith(came.path[1:]) for each in given) + 1}")
        return _gives(given[-1], expires_in=3_600)

    def guarded(came: Came) -> tuple[int, bytes]:
        number = int(came.headers["authorization"].rpartition("-")[2])
        return (200, b"") if number >= takes["from"] else (401, b"")

    talk.listen("tokens-login.example", give)
    came, other = (
        talk.listen("tokens-guarded.example", guarded),
        talk.listen("tokens-easy.example", lambda _: (200, b"")),
    )
    _endpoints(talk, "guarded", "easy")
    talk.sleep(2)

    def attempts(message_id: str) -> list[tuple[int, int]]:
        rows = talk.ask("GET", f"{APP}/attempt/msg/{message_id}")["data"]
        return [(each["status"], each["responseStatusCode"]) for each in rows if "guarded" in each["url"]]

    one = _post(talk, 1)
    talk.sleep(10 + talk.put_off_s)
    takes["from"] = 2
    two = _post(talk, 2)
    talk.sleep(10 + talk.put_off_s)
    talk.came("once more with another", ["Bearer guarded-1", "Bearer guarded-1", "Bearer guarded-2"], _shown(came))
    talk.is_so("in one attempt", [[(0, 200)], [(0, 200)]], [attempts(one), attempts(two)])
    takes["from"] = 99
    before, count = len(came), len(given)
    three = _post(talk, 3)
    talk.sleep(4 + talk.put_off_s)
    talk.came("with a new one, and no more", lambda each: 2 <= each <= 4, len(came) - before)
    talk.is_so("it has failed", [(2, 401)], attempts(three)[-1:])
    asked = len(given) - count
    talk.came(
        "at most so many tokens", lambda each: 1 <= each <= 2, sum(each.startswith("guarded") for each in given[count:])
    )
    talk.sleep(LEFT_ALONE_S - 60, exactly=True)
    talk.came("none for five minutes", asked, len(given) - count)
    takes["from"] = 1
    talk.sleep(2 * LEFT_ALONE_S + LATE_S + talk.gathered_s)
    talk.is_so("in the end", [0, 0, 0], [_state(talk, each)["guarded"] for each in (one, two, three)])
    talk.came("the other's serves for all", {"Bearer easy-1"}, {*_shown(other)})
    talk.came("each of them once", 3, len(other))
    talk.ask("DELETE", APP, status=204)


def _spared(talk: Talk) -> None:
    """A token server that fails is asked after 5 seconds, then 10, 20 and so on, or when it says; nothing is sent
    meanwhile, which is no failure of the endpoint; and changed settings are tried at once.
    """
    says: dict[str, Any] = {"steps": (503, b""), "later": (503, b"", {"retry-after": "400"}), "changed": (503, b"")}
    asked = talk.listen(
        "tokens-login.example", lambda came: says.get(came.path[1:], _gives("a-token", expires_in=3_600))
    )
    came = {uid: talk.listen(f"tokens-{uid}.example", lambda _: (200, b"")) for uid in says}
    _endpoints(talk, *says)
    talk.sleep(2)
    ids = [_post(talk, number) for number in range(3)]
    talk.sleep(3 * MINUTE + talk.put_off_s)
    by_path = {uid: [each.at for each in asked if each.path == f"/{uid}"] for uid in says}
    gaps = [(after - before) / SECOND for before, after in pairwise(by_path["steps"])]
    least = (5, 10, 20, 40, 80, 160)
    talk.came(
        "ever more rarely", [True] * len(gaps), [gap >= 0.9 * wait for gap, wait in zip(gaps, least, strict=False)]
    )
    talk.came("but again and again", lambda count: 3 <= count <= 6, len(by_path["steps"]))
    talk.came("when it says", 1, len(by_path["later"]))
    for uid, heard in came.items():
        talk.came(f"nothing is sent to {uid}", [], heard)
        shows = {"disabled": False, "circuit": "closed", "health": {"state": "token_server_down"}}
        talk.ask("GET", f"{APP}/endpoint/{uid}/health", shows=shows)
    before = talk.now()
    talk.ask(
        "PUT",
        f"{APP}/endpoint/changed/oauth",
        _grant("changed", tokenUrl="https://tokens-login.example/well"),
        status=204,
    )
    talk.sleep(2)
    ids.append(_post(talk, 9))
    talk.sleep(10 + talk.put_off_s)
    talk.came("changed, it is asked at once", True, any(each.path == "/well" and each.at >= before for each in asked))
    talk.came("and sent to", True, 9 in [json.loads(each.body)["n"] for each in came["changed"]])
    talk.came("not to the others", [[], []], [came["steps"], came["later"]])
    says.clear()
    talk.sleep(5 * MINUTE + 2 * LATE_S + 2 * talk.gathered_s)
    again = [each.at for each in asked if each.path == "/later"]
    waited = (again[1] - again[0]) / SECOND if len(again) > 1 else 0
    talk.came("as late as it said", lambda each: 395 <= each <= 400 * 1.2 + 2 * LATE_S + talk.gathered_s, waited)
    for uid, heard in came.items():
        talk.came(f"all of it came to {uid}", [0, 1, 2, 9], sorted(json.loads(each.body)["n"] for each in heard))
    talk.is_so("all have arrived", {0}, {state for each in ids for state in _state(talk, each).values()})
    talk.ask("DELETE", APP, status=204)


def _said(talk: Talk) -> None:
    """What a token server answers instead of a token, as the attempt has it; a redirect is not followed."""
    elsewhere = talk.listen("tokens-elsewhere.example", lambda _: _gives("stolen"))
    says: Mapping[str, tuple[Any, str]] = {
        "client": ((400, b'{"error": "invalid_client", "error_description": "hush"}'), "oauth: invalid_client"),
        "denied": ((401, b'{"error": "invalid_client"}'), "oauth: invalid_client"),
        "scope": ((400, b'{"error": "invalid_scope"}'), "oauth: invalid_scope"),
        "page": ((200, b"<html>hush</html>"), "oauth: the token server's answer has no access_token"),
        "empty": ((200, b"{}"), "oauth: the token server's answer has no access_token"),
        "name": ((0, b"dns"), "oauth: the token server gave no answer (dns)"),
        "refuses": ((0, b"connect"), "oauth: the token server gave no answer (connect)"),
        "down": ((503, b"hush"), "oauth: the token server answered 503"),
        "moved": ((302, b"", {"location": "https://tokens-elsewhere.example/"}), "oauth: "),
    }
    talk.listen("tokens-login.example", lambda came: says[came.path[1:]][0])
    came = [talk.listen(f"tokens-{uid}.example", lambda _: (200, b"")) for uid in says]
    _endpoints(talk, *says)
    talk.sleep(2)
    _post(talk)
    talk.sleep(8 + talk.put_off_s)
    for uid, (_, text) in says.items():
        rows = talk.ask("GET", f"{APP}/attempt/endpoint/{uid}", shows={"data": lambda each: len(each) >= 1})["data"]
        answered = {(each["responseStatusCode"], each["response"].startswith(text)) for each in rows}
        talk.is_so(f"{uid}: {text}", {(0, True)}, answered)
        talk.is_so(f"{uid}: no more than that", False, "hush" in json.dumps(rows))
    talk.came("nothing is sent", [0] * len(says), [len(each) for each in came])
    talk.came("not followed", [], elsewhere)
    talk.ask("DELETE", APP, status=204)


def _unspent(talk: Talk) -> None:
    """A token server that is down for less than five minutes uses up no tries; the schedule begins when it is back."""
    server: dict[str, Any] = {"says": (503, b"")}
    talk.listen("tokens-login.example", lambda _: server["says"])
    came = talk.listen("tokens-patient.example", lambda _: (500, b""))
    _endpoints(talk, "patient")
    talk.sleep(2)
    message_id = _post(talk)
    talk.sleep(100 + talk.put_off_s)
    server["says"] = _gives("a-token", expires_in=36_000)
    talk.sleep(2 * LATE_S + talk.gathered_s)
    talk.came("tried when it is back, and once more", 2, len(came))
    talk.came("after the first wait", lambda gap: 3.5 <= gap <= 9 + talk.gathered_s, (came[1].at - came[0].at) / SECOND)
    talk.sleep(300 * 1.2 + LATE_S + talk.gathered_s)
    talk.came("then after the second", 3, len(came))
    talk.ask("GET", f"{APP}/msg/{message_id}/endpoint", shows={"data": [{"nextAttempt": str}]})
    rows = talk.ask("GET", f"{APP}/attempt/msg/{message_id}")["data"]
    talk.is_so("with and without a token", {0, 500}, {each["responseStatusCode"] for each in rows})
    talk.ask("DELETE", APP, status=204)


def _given_up(talk: Talk) -> None:
    """If the token server refuses its client, tries are used up as the policy has it; if it is only down, for less than
    five minutes, they are not, and from then on they are; other subscribers of the queue do not wait.
    """
    queues = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    server: dict[str, Any] = {"refused": (400, b'{"error": "invalid_client"}'), "down": (503, b""), "gone": (503, b"")}
    talk.listen("tokens-login.example", lambda came: server[came.path[1:]])
    names = ("refused", "down", "gone", "plain")
    came = {name: talk.listen(f"tokens-queue-{name}.example", lambda _: (200, b"")) for name in names}
    subscribers: list[dict[str, Any]] = []
    for name in names:
        grant = {"token_url": f"https://tokens-login.example/{name}", "client_id": "c", "client_secret": "hush"}
        gate = {} if name == "plain" else {"oauth": grant}
        subscribers.append({"name": name, "url": f"https://tokens-queue-{name}.example/", **gate})
    push = {"subscribers": subscribers, "retries": 1, "retries_delay": 3, "error_queue": "tokens-failed"}
    queues.ask("PUT", "/queues/tokens", {"queue": {"type": "multicast", "push": push}})
    queues.ask("POST", "/queues/tokens/messages", {"messages": [{"body": "one"}]}, status=201)
    talk.sleep(2 * MINUTE + 2 * talk.gathered_s)
    talk.came("who needs none", ["one"], [each.body.decode() for each in came["plain"]])
    queues.ask("GET", "/queues/tokens-failed", shows={"queue": {"size": 1}})
    [held] = queues.ask("POST", "/queues/tokens-failed/reservations", {})["messages"]
    spared = any(name in held["body"] for name in ("down", "gone"))
    talk.is_so("whose it was", True, "refused" in held["body"] and not spared)
    server["down"] = _gives("a-token")
    talk.sleep(3 * MINUTE + 2 * talk.gathered_s)
    talk.came(
        "when it is back",
        [("one", "Bearer a-token")],
        [(each.body.decode(), each.headers.get("authorization")) for each in came["down"]],
    )
    talk.sleep(30 * MINUTE)
    queues.ask("GET", "/queues/tokens-failed", shows={"queue": {"size": 2}})
    held = queues.ask("POST", "/queues/tokens-failed/reservations", {"n": 9})["messages"]
    talk.is_so("who was down for too long", True, any('"gone"' in each["body"] for each in held))
    talk.came("never", [[], []], [came["refused"], came["gone"]])
    for name in ("tokens", "tokens-failed"):
        queues.ask("DELETE", f"/queues/{name}")


def _changed(talk: Talk) -> None:
    """Settings that are replaced are replaced whole, and what was removed is not sent any more."""
    asked = talk.listen("tokens-login.example", lambda came: _gives(f"of-{came.path[1:]}", expires_in=3_600))
    came = talk.listen("tokens-one.example", lambda _: (200, b""))
    _endpoints(talk, "one")
    path = f"{APP}/endpoint/one/oauth"
    first = _grant("one", scopes=["a", "b"], extraParams={"audience": "x"}, extraHeaders={"X-Tenant": "t"})
    for fields in (first, _grant("other", clientSecret="another"), None):
        if fields is None:
            talk.ask("DELETE", path, status=204)
        else:
            talk.ask("PUT", path, fields, status=204)
        talk.sleep(2)
        _post(talk)
        talk.sleep(8 + talk.put_off_s)
    talk.came("each its own", ["Bearer of-one", "Bearer of-other", None], _shown(came))
    forms = [parse_qs(each.body.decode()) for each in asked]
    whole = {"grant_type": ["client_credentials"], "client_id": ["client-one"], "client_secret": ["hush-one"]}
    talk.came("first", lambda each: each == {**whole, "scope": ["a b"], "audience": ["x"]}, forms[0])
    whole |= {"client_id": ["client-other"], "client_secret": ["another"]}
    talk.came("then", lambda each: each == whole, forms[1])
    talk.came("asked twice", (2, ["t", None]), (len(asked), [each.headers.get("x-tenant") for each in asked]))
    rows = talk.ask("GET", f"{APP}/attempt/endpoint/one")["data"]
    talk.is_so("all arrived", {200}, {each["responseStatusCode"] for each in rows})
    talk.ask("DELETE", APP, status=204)


def _part(text: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def _asserted(talk: Talk) -> None:
    """A client with a key proves who it is by an assertion, each time another one, for five minutes at most."""
    asked = talk.listen("tokens-login.example", lambda _: _gives("a-token", expires_in=40))
    talk.listen("tokens-keyed.example", lambda _: (200, b""))
    _endpoints(talk, "keyed")
    path = f"{APP}/endpoint/keyed/oauth"
    key = load_der_private_key(base64.b64decode(KEY), None)
    assert isinstance(key, RSAPrivateKey)
    base: dict[str, Any] = {"secretBase64": KEY, "signingAlgorithm": "RS256", "secretId": "k-1"}
    fields = _grant("keyed", authMethod="clientSecretJwt")
    del fields["clientSecret"]
    for more in ({}, {"audience": "https://aud.example", "tokenExpirySecs": 60}):
        talk.ask("PUT", path, {**fields, "jwtParams": {**base, **more}}, status=204)
        shown = talk.ask("GET", path, shows={"authMethod": "clientSecretJwt"})
        talk.is_so("the key is not shown", False, KEY[200:300] in json.dumps(shown))
        for _ in range(2):
            talk.sleep(45, exactly=True)
            _post(talk)
            talk.sleep(8 + talk.put_off_s)
        for each in asked[-2:]:
            form = {name: texts[0] for name, texts in parse_qs(each.body.decode()).items()}
            kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
            talk.came("by an assertion", (kind, False), (form.get("client_assertion_type"), "client_secret" in form))
            head, claims, signature = form["client_assertion"].split(".")
            proof = key.sign(f"{head}.{claims}".encode(), PKCS1v15(), SHA256())
            talk.came("signed", base64.urlsafe_b64encode(proof).rstrip(b"=").decode(), signature)
            talk.came("its head", {"alg": "RS256", "kid": "k-1"}, _part(head))
            claimed = _part(claims)
            audience = more.get("audience", fields["tokenUrl"])
            talk.came(
                "about whom", {"iss": "client-keyed", "sub": "client-keyed", "aud": audience, "jti": str}, claimed
            )
            lasts = claimed["exp"] - talk.epoch_s() + (talk.now() - each.at) / SECOND
            most = more.get("tokenExpirySecs", LONGEST_PROOF_S)
            talk.came("for so long", lambda left, most=most: 5 <= left <= most + 2, lasts)
    ids = {_part(parse_qs(each.body.decode())["client_assertion"][0].split(".")[1])["jti"] for each in asked}
    talk.came("each another one", (4, 4), (len(asked), len(ids)))
    for bad in ({"tokenExpirySecs": LONGEST_PROOF_S + 1}, {"signingAlgorithm": "HS256"}, {"secretBase64": "AAAA"}):
        talk.ask("PUT", path, {**fields, "jwtParams": {**base, **bad}}, status=422)
    rows = talk.ask("GET", f"{APP}/attempt/endpoint/keyed")["data"]
    talk.is_so("all arrived", {200}, {each["responseStatusCode"] for each in rows})
    talk.ask("DELETE", APP, status=204)


__all__ = ["webhooks"]
