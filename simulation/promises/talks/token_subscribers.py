"""Subscribers of queues and services of stores that want a token: who is shown it, and what ends it.

Sources: docs/gates.md ("Subscribers of queues and services of stores"); RFC 6749.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from simulation.promises.talks.services import done, mapped, pushed
from simulation.promises.talks.talk import Came, Said, Talk

MINUTE = 60
METHOD = "client_secret_post"


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_of_queues, _of_several, _of_stores)


def _gives(token: str) -> tuple[int, bytes]:
    answer = {"access_token": token, "token_type": "Bearer", "expires_in": 36_000}
    return 200, json.dumps(answer).encode()


def _shown(came: Sequence[Came]) -> list[str | None]:
    return [each.headers.get("authorization") for each in came]


def _of_queues(talk: Talk) -> None:
    """A queue's subscriber: its token comes in place of a message's own header; left out, it stays, ``false`` ends it;
    a URL that is none of HTTP's has none.
    """
    queues = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    asked = talk.listen("tokens-login.example", lambda _: _gives("of-a-queue"))
    came = {name: talk.listen(f"tokens-sub-{name}.example", lambda _: (200, b"")) for name in ("one", "plain")}
    grant = {"token_url": "https://tokens-login.example/q", "client_id": "c:é", "client_secret": "hush"}

    def given(**more: Any) -> dict[str, Any]:
        return {"name": "one", "url": "https://tokens-sub-one.example/", **more}

    plain = {"name": "plain", "url": "https://tokens-sub-plain.example/"}
    push = {"subscribers": [given(oauth=grant), plain], "retries": 0}
    queues.ask("PUT", "/queues/tokens", {"queue": {"type": "multicast", "push": push}})
    path, expected = "/queues/tokens/subscribers", []
    steps: tuple[tuple[Any, str | None], ...] = (
        (..., "Bearer of-a-queue"),
        (None, "Bearer of-a-queue"),
        (True, "Bearer of-a-queue"),
        (..., "Bearer of-a-queue"),
        (False, "Basic own"),
        (grant, "Bearer of-a-queue"),
    )
    for number, (change, token) in enumerate(steps):
        if number:
            more = {} if change is ... else {"oauth": change}
            queues.ask("POST", path, {"subscribers": [given(**more)]})
            talk.sleep(2)
        rows = queues.ask("GET", "/queues/tokens")["queue"]["push"]["subscribers"]
        talk.is_so("as it is shown", [token != "Basic own", False], [each.get("oauth", False) for each in rows])
        talk.is_so("no secret is shown", False, "hush" in json.dumps(rows))
        message = {"body": f"{number}", "push_headers": {"Authorization": "Basic own"}}
        queues.ask("POST", "/queues/tokens/messages", {"messages": [message]}, status=201)
        talk.sleep(8 + talk.gathered_s)
        expected.append(token)
    talk.came("whose token", expected, _shown(came["one"]))
    talk.came("a message's own", ["Basic own"] * len(steps), _shown(came["plain"]))
    basic = base64.b64encode(b"c%3A%C3%A9:hush").decode()
    talk.came("asked as the client, by default", {f"Basic {basic}"}, {*_shown(asked)})
    wrong: Mapping[str, Any]
    for wrong, field in (
        ({"token_url": "http://tokens-login.example/"}, "oauth.token_url"),
        ({"client_secret": ""}, "oauth.client_secret"),
        ({"client_id": ""}, "oauth.client_id"),
        ({"auth_method": "none"}, "oauth.auth_method"),
    ):
        said = queues.ask("POST", path, {"subscribers": [given(oauth={**grant, **wrong})]}, status=400)
        talk.is_so(f"{field} is named", True, field in json.dumps(said))
    for url in ("ironmq:///other", "sqs://eu-west-1/111122223333/orders?role=arn:aws:iam::111122223333:role/r"):
        other = {"name": "other", "url": url, "oauth": grant}
        queues.ask("POST", path, {"subscribers": [other]}, status=400)
    queues.ask("DELETE", "/queues/tokens")


def _of_several(talk: Talk) -> None:
    """Each subscriber of a queue has its own client, also under another name; a secret that is left out or masked stays
    for the same token URL, method and client alone. While the token server refuses one of them, that one's health says
    so, with the reason, and the other one gets everything.
    """
    queues = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    refused: set[str] = set()

    def give(came: Came) -> Said:
        client = parse_qs(came.body.decode())["client_id"][0]
        refusal = 400, b'{"error": "invalid_client"}', {"retry-after": "400"}
        return refusal if client in refused else _gives(f"of-{client}")

    asked = talk.listen("tokens-several.example", give)
    names = ("one", "two")
    came = {name: talk.listen(f"tokens-several-{name}.example", lambda _: (200, b"")) for name in names}
    grants = {
        name: {"token_url": "https://tokens-several.example/t", "client_id": f"c-{name}", "auth_method": METHOD}
        for name in names
    }

    def given(name: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "url": f"https://tokens-several-{name}.example/", **more}

    path = "/queues/several/subscribers"
    several = [given(name, oauth={**grants[name], "client_secret": f"hush-{name}"}) for name in names]
    queues.ask("PUT", "/queues/several", {"queue": {"push": {"subscribers": several, "retries": 1}}})
    for secret in ({}, {"client_secret": "********"}):
        queues.ask("POST", path, {"subscribers": [given("one", oauth={**grants["one"], **secret})]})
        for other in (
            {"client_id": "c-other"},
            {"token_url": "https://tokens-several.example/other"},
            {"auth_method": "client_secret_basic"},
        ):
            wrong = given("one", oauth={**grants["one"], **other, **secret})
            queues.ask("POST", path, {"subscribers": [wrong]}, status=400)
    queues.ask("PUT", path, {"subscribers": [{**given("two"), "name": "renamed"}, given("one")]})
    talk.sleep(2)

    def posted(body: str) -> str:
        message = {"messages": [{"body": body}]}
        message_id: str = queues.ask("POST", "/queues/several/messages", message, status=201)["ids"][0]
        talk.sleep(10 + talk.gathered_s + talk.put_off_s)
        return message_id

    posted("1")
    talk.came("each its own", {name: [f"Bearer of-c-{name}"] for name in names}, {n: _shown(came[n]) for n in names})
    secrets = {parse_qs(each.body.decode())["client_secret"][0] for each in asked}
    talk.came("asked for with their secrets", {"hush-one", "hush-two"}, secrets)
    refused.add("c-new")
    new = {**grants["two"], "client_id": "c-new", "client_secret": "hush-new"}
    queues.ask("POST", path, {"subscribers": [{**given("two"), "name": "renamed", "oauth": new}]})
    talk.sleep(2)
    last = posted("2")
    talk.came("who gets it", {"one": 2, "two": 1}, {name: len(each) for name, each in came.items()})
    shown = {
        each["name"]: each for each in queues.ask("GET", f"/queues/several/messages/{last}/subscribers")["subscribers"]
    }
    talk.is_so("its status", {"status_code": 0, "msg": "oauth: invalid_client"}, shown["renamed"])
    talk.is_so("the other one's", {"status_code": 200, "state": "delivered", "tries": 1}, shown["one"])
    rows = {each["name"]: each["health"] for each in queues.ask("GET", "/queues/several/health")["subscribers"]}
    down = {"state": "token_server_down", "since": str, "until": str, "reason": lambda each: "invalid_client" in each}
    talk.is_so(
        "how it is doing", {"renamed": {**down, "waiting": 1}, "one": {"state": "delivering", "waiting": 0}}, rows
    )
    queues.ask("DELETE", "/queues/several")


def _of_stores(talk: Talk) -> None:
    """A service: requests carry a token, and polls do where scheme, host and port are its own, and nowhere else."""
    store = talk.at(f"/api/stores/{talk.project}").with_headers(authorization="", x_augury_token=talk.token)
    talk.listen("tokens-login.example", lambda _: _gives("of-a-store"))
    places = (
        "/later",
        "https://tokens-service.example/there",
        "https://tokens-service.example:8443/port",
        "http://tokens-service.example/scheme",
        "https://tokens-service-other.example/host",
    )

    def answers(came: Came) -> tuple[int, bytes]:
        place = json.loads(came.body)["payload"]["place"]
        return done(came, **({"delay": 1, "update_url": places[place]} if came.path == "/in" else {}))

    came = talk.listen("tokens-service.example", answers)
    other = talk.listen("tokens-service-other.example", done)
    grant = {"token_url": "https://tokens-login.example/s", "client_id": "c", "client_secret": "hush"}
    mapping = mapped(store, "tokens-service", ["tokens:made"], oauth=grant)
    shown = store.ask("GET", mapping, shows={"oauth": True})
    talk.is_so("no secret is shown", False, "hush" in json.dumps(shown))
    talk.sleep(61)
    for place in range(len(places)):
        pushed(store, "tokens:made", {"place": place})
    talk.sleep(2 * MINUTE + 3 * talk.gathered_s + talk.put_off_s)
    first = [each for each in came if each.path == "/in"]
    talk.came("each request", [len(places), {"Bearer of-a-store"}], [len(first), {*_shown(first)}])
    polls = {each.path: each.headers.get("authorization") for each in (*came, *other) if each.path != "/in"}
    own = dict.fromkeys(("/later", "/there"), "Bearer of-a-store")
    talk.came("each poll", {**own, **dict.fromkeys(("/port", "/scheme", "/host"))}, polls)
    wrong = {"mapping": {"oauth": {**grant, "client_secret": ""}}}
    store.ask("PUT", mapping, wrong, status=422)
    store.ask("PUT", mapping, {"mapping": {"oauth": False}}, shows=lambda each: not each.get("oauth"))
    talk.sleep(61)
    pushed(store, "tokens:made", {"place": 0})
    talk.sleep(MINUTE + 3 * talk.gathered_s + talk.put_off_s)
    talk.came("then none", [None], _shown([each for each in came if each.path == "/in"][len(places) :]))
    store.ask("DELETE", mapping)


__all__ = ["webhooks"]
