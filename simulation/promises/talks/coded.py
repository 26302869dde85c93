"""Code of endpoints, of sources' endpoints and of destinations: what is sent of what it makes, what becomes of what it
cancels, and where it may not send to.

Sources: docs/transformations.md, docs/destinations.md, docs/connectors.md. A run of code may take too long, or end with
its process, at any time: so deliveries are waited for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from simulation.promises.talks.aws_services import ACCOUNT, KEY_ID, REGION, got, takes
from simulation.promises.talks.customers import KIND, Customer
from simulation.promises.talks.senders import comes, new_source, removed
from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.webhooks import is_signed

OAUTH: Mapping[str, Any] = {
    "grantType": "clientCredentials",
    "authMethod": "clientSecretPost",
    "clientId": "c",
    "clientSecret": "hush",
    "tokenUrl": "https://coded-login.example/token",
}


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_shaped, _canceled, _bound, _of_destinations, _of_sources, _connectors)


def _code(talk: Talk, path: str, text: str, **more: Any) -> None:
    """Set a handler that does something to ``webhook``, and returns it; or a text of JSONata."""
    code = text if more.get("language") == "jsonata" else f"function handler(webhook) {{ {text}; return webhook }}"
    talk.ask("PATCH", f"{path}/transformation", {"code": code, "enabled": True, **more}, status=204)
    talk.sleep(2)


def _waited(talk: Talk, came: Sequence[Came], count: int) -> Came:
    """Wait until so many have come; code may be run again, after ever longer waits."""
    for wait in (5, 5, 10, *12 * (30,), *40 * (300,)):
        if len(came) >= count:
            break
        talk.sleep(wait)
    talk.came("so many", count, len(came))
    return came[-1]


def _shaped(talk: Talk) -> None:
    """Method, URL, content type and body are as code makes them, signed as they are sent; what it leaves out stays."""
    one = Customer(talk, "coded")
    came = one.endpoint("one", headers={"X-Own": "own", "X-Same": "own"})
    other = one.endpoint("other")
    path = f"{one.path}/endpoint/one"
    key = talk.ask("GET", f"{path}/secret")["key"]
    exact = b'{ "n" : 1.0 }'
    cases: tuple[tuple[str, Mapping[str, Any], Any], ...] = (
        ("webhook.method = 'PUT'; delete webhook.payload", {}, ("PUT", "/in", exact, "own")),
        ("webhook.method = 'PATCH'; webhook.url += '/more?a=b'", {}, ("PATCH", "/in/more", b'{"n":1}', "own")),
        (
            "webhook.headers = { 'x-same': 'made', 'Content-Type': 'text/x-own' }",
            {},
            ("POST", "/in", b'{"n":1}', "made"),
        ),
        ("webhook.payload = 'só'", {}, ("POST", "/in", "só".encode(), "own")),
        ("webhook.payload.more = [true]", {}, ("POST", "/in", b'{"n":1,"more":[true]}', "own")),
        ("webhook.payload = { k: webhook.env.K }", {"variables": {"K": "v"}}, ("POST", "/in", b'{"k":"v"}', "own")),
        ('{"payload": {"twice": payload.n * 2}}', {"language": "jsonata"}, ("POST", "/in", b'{"twice":2}', "own")),
    )
    for number, (text, more, expected) in enumerate(cases, 1):
        _code(talk, path, text, **{"language": "javascript", **more})
        body = b'{"eventType":"' + KIND.encode() + b'","payload":' + exact + b"}"
        message_id = talk.ask("POST", f"{one.path}/msg", body, status=202)["id"]
        each = _waited(talk, came, number)
        written = (
            each.body
            if each.body in {exact, "só".encode()}
            else json.dumps(json.loads(each.body), separators=(",", ":")).encode()
        )
        talk.came(f"what is sent by {text}", expected, (each.method, each.path, written, each.headers["x-same"]))
        talk.came("its own other header", ("own", message_id), (each.headers["x-own"], each.headers["webhook-id"]))
        talk.came("signed", True, is_signed(each, key))
        kind = "text/x-own" if "text/x-own" in text else "application/json"
        if "só" not in text:
            talk.came("its type", True, each.headers["content-type"].startswith(kind))
        talk.ask("GET", f"{one.path}/msg/{message_id}", shows={"payload": lambda each: each == {"n": 1}})
    talk.came("the other gets what was posted", len(cases) * [exact], [each.body for each in other])
    talk.ask("PATCH", f"{path}/transformation", {"enabled": False}, status=204)
    talk.sleep(2)
    first = talk.ask("GET", f"{one.path}/msg?limit=1")["data"][0]["id"]
    talk.ask("POST", f"{one.path}/msg/{first}/endpoint/one/resend", status=202)
    talk.came("sent again, as it is by now", exact, _waited(talk, came, len(cases) + 1).body)
    one.over()


def _canceled(talk: Talk) -> None:
    """What code cancels is neither an attempt nor a failure, holds nobody up, and is sent by hand once it is not any
    more; what fails is tried again, and hides its variables.
    """
    one = Customer(talk, "cancels")
    came, other = one.endpoint("one"), one.endpoint("other")
    path = f"{one.path}/endpoint/one"
    _code(talk, path, "webhook.cancel = webhook.payload.n < 3")
    ids = [one.post(number, orderingKey="k") for number in (1, 2, 3)]
    last = _waited(talk, came, 1)
    talk.came("the one behind them", (3, "3"), (json.loads(last.body)["n"], last.headers["webhook-sequence"]))
    talk.came("the other gets all", [1, 2, 3], one.numbers("other"))
    talk.is_so("canceled", [(4, None), (4, None), (0, None)], [one.state(each)["one"] for each in ids])
    for each in ids[:2]:
        rows = talk.ask("GET", f"{one.path}/attempt/msg/{each}")["data"]
        sent = [row for row in rows if "cancels-one" in row["url"] and row["status"] == 0]
        talk.is_so("not sent", [], sent)
    talk.sleep(150)
    talk.ask("GET", f"{path}/health", shows={"circuit": "closed", "waiting": 0, "health": {"state": "delivering"}})
    talk.ask("PATCH", f"{path}/transformation", {"code": None}, status=204)
    talk.sleep(2)
    talk.ask("POST", f"{one.path}/msg/{ids[0]}/endpoint/one/resend", status=202)
    talk.came("by hand", 1, json.loads(_waited(talk, came, 2).body)["n"])
    _code(
        talk,
        path,
        "throw new Error('of ' + webhook.env.K + ' and ' + webhook.env.S)",
        variables={"K": "hush", "S": "abc"},
    )
    failing = one.post(4)
    talk.sleep(15 + talk.put_off_s)
    rows = [row for row in talk.ask("GET", f"{one.path}/attempt/msg/{failing}")["data"] if "cancels-one" in row["url"]]
    talk.is_so("tried more than once", True, len(rows) >= 2)
    talk.is_so("no answer", {(2, 0)}, {(row["status"], row["responseStatusCode"]) for row in rows})
    talk.is_so("its variable is hidden", False, "hush" in json.dumps(rows))
    _code(talk, path, "webhook.payload.mended = true")
    mended = _waited(talk, came, 3)
    talk.came("then it comes, as code makes it by now", {"n": 4, "mended": True}, json.loads(mended.body))
    talk.came("and to the other as it was", {"n": 4}, json.loads(other[-1].body))
    one.over()


def _bound(talk: Talk) -> None:
    """Code of an endpoint with tokens or consent sends to no other host; without them it does, but without what belongs
    to the endpoint; inside no network.
    """
    answer = {"access_token": "t", "token_type": "Bearer", "expires_in": 3_600}
    talk.listen("coded-login.example", lambda _: (200, json.dumps(answer).encode()))
    there = talk.listen("coded-there.example", lambda _: (200, b""))
    one = Customer(talk, "bound")
    yes = (200, b"", {"webhook-allowed-origin": "*"})
    one.says["consents"] = yes
    one.endpoint("tokens", headers={"X-Own": "1"})
    one.endpoint("consents", cloudEvents={"mode": "binary", "consent": True})
    one.endpoint("plain", headers={"X-Own": "1", "X-Api-Key": "hush"})
    talk.ask("PUT", f"{one.path}/endpoint/tokens/oauth", OAUTH, status=204)
    talk.sleep(10)
    for uid in one.came:
        _code(talk, f"{one.path}/endpoint/{uid}", f"webhook.url = 'https://coded-there.example/{uid}'")
    message_id = one.post(1)
    _waited(talk, there, 1)
    talk.sleep(30)
    talk.came("the one that may", {"/plain"}, {each.path for each in there})
    talk.came("without what is the endpoint's", set(), {"x-own", "x-api-key", "authorization"} & {*there[0].headers})
    sent = {uid: [each for each in heard if "webhook-id" in each.headers] for uid, heard in one.came.items()}
    talk.came("and nowhere else", [0, 0, 0], [len(each) for each in sent.values()])
    states = one.state(message_id)
    talk.is_so("tried again", (2, 2, 0), tuple(states[uid][0] for uid in ("tokens", "consents", "plain")))
    for uid in ("tokens", "consents"):
        rows = talk.ask("GET", f"{one.path}/attempt/endpoint/{uid}")["data"]
        talk.is_so(f"{uid}, as a failure", {(2, 0)}, {(row["status"], row["responseStatusCode"]) for row in rows})
        _code(talk, f"{one.path}/endpoint/{uid}", "webhook.url += '/mine'")
    for uid in ("tokens", "consents"):
        for _ in range(20):
            if any(each.path == "/in/mine" for each in one.came[uid]):
                break
            talk.sleep(300)
    paths = {
        uid: {each.path for each in one.came[uid] if "webhook-id" in each.headers} for uid in ("tokens", "consents")
    }
    talk.came(
        "its own host is open to it",
        {"tokens": lambda each: each == {"/in/mine"}, "consents": lambda each: each == {"/in/mine"}},
        paths,
    )
    token = next(each.headers.get("authorization") for each in one.came["tokens"] if each.path == "/in/mine")
    talk.came("with its token", "Bearer t", token)
    one.over()


def _of_destinations(talk: Talk) -> None:
    """A destination's code gets a list with one event, and returns a message, which is the payload of the envelope, or
    none.
    """
    talk.ask("POST", "/app", {"name": "Destined", "uid": "destined"}, status=201)
    came = {
        uid: talk.listen(f"coded-{uid}.example", takes("sqs" if uid == "queue" else "events"))
        for uid in ("queue", "bus")
    }
    key = {"accessKeyId": KEY_ID, "secretAccessKey": "wJalrXUtnFEMI/K7MDENG"}
    configs: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
        "queue": ("sqs", {"queueUrl": f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/orders"}, "messages"),
        "bus": ("eventBridge", {"eventBusName": f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/orders"}, "payloads"),
    }
    for uid, (kind, config, returned) in configs.items():
        whole = {**config, **key, "endpointUrl": f"https://coded-{uid}.example"}
        fields = {"type": kind, "uid": uid, "config": whole}
        talk.ask("POST", "/app/destined/destination", fields, status=201)
        item = "{ payload: made }" if uid == "queue" else "made"
        shaped = (
            "const made = { n: input.events[0].payload.n, of: input.events[0].eventType, count: input.events.length }"
        )
        code = f"function handler(input) {{ {shaped}; return {{ {returned}: made.n > 1 ? [{item}] : [] }} }}"
        talk.ask("PATCH", f"/app/destined/destination/{uid}/transformation", {"code": code})
        talk.ask("GET", f"/app/destined/destination/{uid}/transformation", shows={"code": code, "enabled": True})
    talk.sleep(2)
    ids = []
    for number in (1, 2):
        body = {"eventType": KIND, "payload": {"n": number}}
        ids.append(talk.ask("POST", "/app/destined/msg", body, status=202)["id"])
    for heard in came.values():
        _waited(talk, heard, 1)
    talk.sleep(20)
    sent = {"n": 2, "of": KIND, "count": 1}
    [queued] = got("sqs", came["queue"])
    talk.came("a message", lambda each: each == {"payload": sent, "eventType": KIND}, json.loads(queued.body))
    [put] = got("events", came["bus"])
    detail = json.loads(put.body)
    talk.came("a detail", lambda each: sent in (each, each.get("payload")), detail)
    app_id = talk.ask("GET", "/app/destined")["id"]
    talk.came("from which application", f"svix-webhooks-{app_id}", put.named["Source"])
    talk.came("of which type", "application/json", put.named["DetailType"])
    for message_id, status in zip(ids, (4, 0), strict=True):
        rows = talk.ask("GET", f"/app/destined/msg/{message_id}/endpoint")["data"]
        talk.is_so("what became of it", [status, status], [each["status"] for each in rows])
    talk.ask("DELETE", "/app/destined", status=204)


def _of_sources(talk: Talk) -> None:
    """Code of a source's endpoint makes what that one gets of what came; others get the sender's bytes."""
    came = {uid: talk.listen(f"coded-of-{uid}.example", lambda _: (200, b"")) for uid in ("made", "exact")}
    source = new_source(talk, "coded", "generic-webhook", {})
    ingest = talk.at("/ingest/api/v1")
    for uid in came:
        fields = {"url": f"https://coded-of-{uid}.example/in", "uid": uid}
        ingest.ask("POST", "/source/coded/endpoint", fields, status=201)
    _code(ingest, "/source/coded/endpoint/made", "webhook.payload = { text: webhook.payload.a + 1 }")
    ingest.ask("GET", "/source/coded/endpoint/made/transformation", shows={"enabled": True, "code": str})
    exact = b'{ "a" : 1.0 }'
    comes(talk, source["ingestUrl"], exact, {"content-type": "application/json", "x-own": "1"})
    each = _waited(talk, came["made"], 1)
    talk.came("what code made", {"text": 2}, json.loads(each.body))
    talk.came("with the sender's header", "1", each.headers.get("x-own"))
    talk.came("byte for byte", [exact], [each.body for each in came["exact"]])
    removed(talk, "coded")


MOST_CODE, MOST_TEXT, MOST_CONNECTOR, MOST_PAGE = 51_200, 65_536, 350_000, 4_000_000


def _connectors(talk: Talk) -> None:
    """A connector is what portals may copy, if they have one of its flags; a copy does not change with it; texts and
    the whole are bounded, and so is a page of them.
    """
    code = "function handler(webhook) { webhook.payload = { by: 1 }; return webhook }"
    flags: Mapping[str, Any] = {"open": None, "beta": ["beta"], "either": ["beta", "gamma"]}
    for uid, flagged in flags.items():
        fields = {"name": uid, "uid": uid, "transformation": code, **({"featureFlags": flagged} if flagged else {})}
        talk.ask("POST", "/connector", fields, status=201, shows={"uid": uid, "transformation": code})
    talk.ask("POST", "/connector", {"name": "again", "uid": "open", "transformation": code}, status=409)
    one = Customer(talk, "connected")
    came = one.endpoint("one")
    for wanted, seen in (
        ({}, {"open"}),
        ({"featureFlags": ["beta"]}, {*flags}),
        ({"featureFlags": ["gamma"]}, {"open", "either"}),
    ):
        token = talk.ask("POST", "/auth/app-portal-access/connected", wanted)["token"]
        portal = talk.with_headers(authorization=f"Bearer {token}")
        listed = {each["uid"] for each in portal.ask("GET", "/connector")["data"]}
        talk.is_so(f"with {wanted}", seen, listed)
        for uid in flags:
            portal.ask("GET", f"/connector/{uid}", status=200 if uid in seen else 404)
            for method in ("DELETE", "PATCH"):
                status = portal.status(method, f"/connector/{uid}", {"name": "x"} if method == "PATCH" else None)
                talk.is_so("portals change none", lambda each: each in {403, 404}, status)
    copied = talk.ask("GET", "/connector/open")["transformation"]
    talk.ask("PATCH", f"{one.path}/endpoint/one/transformation", {"code": copied, "enabled": True}, status=204)
    other = code.replace("by: 1", "by: 2")
    talk.ask("PATCH", "/connector/open", {"transformation": other}, shows={"transformation": other, "uid": "open"})
    talk.ask("DELETE", "/connector/either", status=204)
    talk.ask("GET", f"{one.path}/endpoint/one/transformation", shows={"code": code})
    one.post(1)
    talk.came("the copy's", {"by": 1}, json.loads(_waited(talk, came, 1).body))
    one.over()
    long = code + (MOST_CODE - len(code)) * " "
    texts: tuple[tuple[Mapping[str, Any], int], ...] = (
        ({"transformation": long}, 200),
        ({"transformation": f"{long} "}, 422),
        *(
            ({name: size * "x"}, status)
            for name in ("description", "instructions")
            for size, status in ((MOST_TEXT, 200), (MOST_TEXT + 1, 422))
        ),
    )
    for change, status in texts:
        talk.ask("PATCH", "/connector/beta", change, status=status)
    wide = {"instructions": MOST_TEXT * "\u20ac", "description": MOST_TEXT * "\u20ac"}
    talk.ask("PATCH", "/connector/beta", wide, status=422)
    large = {"instructions": MOST_TEXT * "\u20ac", "description": "d", "transformation": long}
    count = MOST_PAGE // (3 * MOST_TEXT) + 2
    for number in range(count):
        fields = {"name": f"large {number}", "uid": f"large-{number}", **large}
        talk.ask("POST", "/connector", fields, status=201)
    found: list[str] = []
    query, sizes = "", []
    for _ in range(count):
        answer = talk.answered("GET", f"/connector?limit=50{query}")
        sizes.append(len(json.dumps(answer.body, ensure_ascii=False).encode()))
        found += [each["uid"] for each in answer.body["data"]]
        if answer.body["done"]:
            break
        query = f"&iterator={answer.body['iterator']}"
    talk.is_so(
        "all of them, by pages",
        sorted([*(f"large-{number}" for number in range(count)), "beta", "open"]),
        sorted(found),
    )
    talk.is_so("none too large", (True, True), (len(sizes) > 1, max(sizes) <= MOST_PAGE))
    for uid in found:
        talk.ask("DELETE", f"/connector/{uid}", status=204)


__all__ = ["webhooks"]
