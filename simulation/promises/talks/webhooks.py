"""Webhooks, talked through: applications, event types, endpoints, secrets, headers, messages, attempts, counts,
replays, pollers, portals and operational webhooks.

Sources: Svix's API as its clients use it, Standard Webhooks, and docs/webhooks.md for what is the hub's own.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from simulation.promises.talks.talk import Came, Talk

MINUTE = 60
NOT_FOUND = {"code": "not_found", "detail": str}
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
"""Of the documentation."""

OTHER_SECRET = "whsec_" + base64.b64encode(bytes(range(24))).decode()
THIRD_SECRET = "whsec_dGhlIHRoaXJkIG9mIHRoZSBzZWNyZXRz"
SINCE = "2020-01-01T00:00:00Z"


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(
        applications,
        event_types,
        endpoints,
        keys,
        gated,
        sent,
        filtered,
        given_up,
        dropped,
        expunged,
        polled,
        portals,
        operational,
    )


def applications(talk: Talk) -> None:
    """Made, found by either name, changed in part and whole, listed in pages, removed."""
    fields = {"name": "Acme", "uid": "acme", "throttleRate": 5, "metadata": {"a": "b"}}
    app = talk.ask("POST", "/app", fields, status=201, shows={**fields, "id": _id("app_"), "createdAt": str})
    talk.ask("POST", "/app", fields, status=409, shows={"code": "conflict"})
    talk.ask("POST", "/app?get_if_exists=true", {**fields, "name": "B"}, shows={"id": app["id"], "name": "Acme"})
    for name in ("acme", app["id"]):
        talk.ask("GET", f"/app/{name}", shows={**fields, "id": app["id"]})
    talk.ask("PATCH", "/app/acme", {"name": "New"}, shows={**fields, "name": "New"})
    talk.ask("PATCH", "/app/acme", {"throttleRate": None}, shows={"throttleRate": None, "metadata": {"a": "b"}})
    talk.ask(
        "PUT", "/app/acme", {"name": "Whole", "uid": "acme"}, shows={"id": app["id"], "name": "Whole", "metadata": {}}
    )
    for good in ({"throttleRate": 1}, {"throttleRate": 65_535}, {"metadata": {"k": 4_086 * "v"}}):
        talk.ask("PATCH", "/app/acme", good, shows=good)
    for bad in (
        {"throttleRate": 0},
        {"throttleRate": 65_536},
        {"name": ""},
        {"name": None},
        {"uid": "a b"},
        {"uid": "app_x"},
        {"uid": 257 * "u"},
        {"metadata": {"k": 4_100 * "v"}},
        {"metadata": {"k": 1}},
    ):
        talk.refused(
            "PATCH", "/app/acme", bad, status=422, shows={"detail": [{"loc": ["body", ...], "msg": str, "type": str}]}
        )
    talk.ask("PATCH", "/app/acme", {"uid": 256 * "u"}, shows={"uid": 256 * "u"})
    talk.ask("GET", "/app/acme", status=404, shows=NOT_FOUND)
    talk.ask("PATCH", f"/app/{app['id']}", {"uid": "acme"})
    talk.with_headers(authorization="Bearer no").ask("GET", "/app", status=401, shows={"code": "authentication_failed"})
    others = []
    for number in range(4):
        others.append(talk.ask("POST", "/app", {"name": f"app {number}", "uid": f"u{number}"}, status=201)["id"])
        talk.sleep(0.1)
    everything = [app["id"], *others]
    _in_pages(talk, "/app", everything, 2)
    _in_pages(talk, "/app?order=descending", everything[::-1], 2)
    talk.ask("GET", "/app?limit=5", shows={"data": [{"id": each} for each in everything], "done": True})
    talk.ask("GET", "/app?limit=250", shows={"done": True})
    talk.refused("GET", "/app?limit=251", status=422)
    talk.refused("GET", "/app?order=other", status=400)
    for each in everything:
        talk.ask("DELETE", f"/app/{each}", status=204)
        talk.ask("GET", f"/app/{each}", status=404, shows=NOT_FOUND)
    talk.ask("GET", "/app", shows={"data": [], "iterator": None, "done": True})
    again = talk.with_headers(idempotency_key="talk-1")
    one = again.ask("POST", "/app", {"name": "Once"}, status=201)
    again.ask("POST", "/app", {"name": "Once"}, status=201, shows={"id": one["id"]})
    talk.ask("GET", "/app", shows={"data": [{"id": one["id"]}]})
    talk.ask("DELETE", f"/app/{one['id']}", status=204)


def event_types(talk: Talk) -> None:
    """Made, changed, archived, brought back, expunged, exported and imported."""
    fields = {"name": "talk.made", "description": "made", "groupName": "talk", "deprecated": False, "archived": False}
    talk.ask("POST", "/event-type", fields, status=201, shows=fields)
    talk.ask("POST", "/event-type", fields, status=409, shows={"code": "event_type_exists"})
    talk.ask("GET", "/event-type/talk.made", shows=fields)
    talk.ask("PATCH", "/event-type/talk.made", {"description": "other"}, shows={**fields, "description": "other"})
    talk.ask(
        "PUT", "/event-type/talk.made", {"description": "whole"}, shows={"name": "talk.made", "description": "whole"}
    )
    talk.ask("PUT", "/event-type/talk.new", {"description": "new"}, status=201, shows={"name": "talk.new"})
    for bad in (
        {"name": "a b", "description": "x"},
        {"name": "", "description": "x"},
        {"name": 257 * "n", "description": "x"},
        {"name": "x"},
    ):
        talk.refused("POST", "/event-type", bad, status=422)
    names = [{"name": "talk.made"}, {"name": "talk.new"}]
    talk.ask("GET", "/event-type", shows={"data": names, "done": True})
    talk.ask("GET", "/event-type?limit=1", shows={"data": names[:1], "iterator": "talk.made", "done": False})
    talk.ask("GET", "/event-type?limit=1&iterator=talk.made", shows={"data": names[1:], "done": True})
    talk.ask("DELETE", "/event-type/talk.new", status=204)
    talk.ask("GET", "/event-type", shows={"data": names[:1]})
    talk.ask("GET", "/event-type?include_archived=true", shows={"data": [..., {**names[1], "archived": True}]})
    talk.ask("GET", "/event-type/talk.new", shows={"archived": True})
    talk.ask("POST", "/event-type", {"name": "talk.new", "description": "back"}, status=201)
    exported = talk.ask("POST", "/environment/export", shows={"eventTypes": names})
    talk.ask("DELETE", "/event-type/talk.new?expunge=true", status=204)
    talk.ask("GET", "/event-type/talk.new", status=404, shows=NOT_FOUND)
    talk.ask("POST", "/environment/import", {"eventTypes": exported["eventTypes"]}, status=204)
    talk.ask("GET", "/event-type/talk.new", shows={"description": "back", "archived": False})
    described = {"webhooks": {"talk.openapi": {"post": {"description": "from a description"}}}}
    talk.ask("POST", "/event-type/import/openapi", {"spec": described, "dryRun": True})
    talk.ask("GET", "/event-type/talk.openapi", status=404)
    talk.ask("POST", "/event-type/import/openapi", {"spec": described})
    talk.ask("GET", "/event-type/talk.openapi", shows={"description": "from a description"})
    talk.ask("DELETE", "/event-type/talk.openapi?expunge=true", status=204)


def endpoints(talk: Talk) -> None:
    """Made, changed in part and whole, listed, refused, removed."""
    app = talk.ask("POST", "/app", {"name": "E", "uid": "e"}, status=201)
    fields = {
        "url": "https://talk-e.example/in",
        "description": "d",
        "uid": "one",
        "disabled": False,
        "eventTypes": ["talk.made"],
        "channels": ["c"],
        "throttleRate": 7,
        "metadata": {"m": "n"},
    }
    both = {**fields, "filterTypes": ["talk.made"], "rateLimit": 7, "version": 1, "id": _id("ep_")}
    endpoint = talk.ask("POST", "/app/e/endpoint", fields, status=201, shows=both)
    talk.ask("POST", "/app/e/endpoint", fields, status=409, shows={"code": "conflict"})
    for path in ("/app/e/endpoint/one", f"/app/{app['id']}/endpoint/{endpoint['id']}"):
        talk.ask("GET", path, shows=both)
    path = "/app/e/endpoint/one"
    talk.ask("PATCH", path, {"description": "new"}, shows={**both, "description": "new"})
    talk.ask(
        "PATCH",
        path,
        {"eventTypes": None, "channels": None, "throttleRate": None},
        shows={"eventTypes": None, "channels": None, "throttleRate": None, "uid": "one"},
    )
    talk.ask(
        "PUT",
        path,
        {"url": fields["url"], "uid": "one"},
        shows={"id": endpoint["id"], "description": "", "metadata": {}},
    )
    for good in ({"throttleRate": 65_535}, {"throttleRate": 1}, {"channels": [f"c{number}" for number in range(10)]}):
        talk.ask("PATCH", path, good, shows=good)
    for bad in (
        *({"throttleRate": each} for each in (0, 65_536)),
        *({"channels": each} for each in ([], [f"c{number}" for number in range(11)], ["a b"])),
        *({"eventTypes": each} for each in ([], ["talk.none"])),
        *({"url": each} for each in ("", "x", "ftp://a.example/", None)),
        {"uid": "ep_x"},
        {"disabled": None},
    ):
        talk.refused("PATCH", path, bad, status=422)
    talk.refused("POST", "/app/e/endpoint", {}, {"url": fields["url"], "secret": "whsec_c2hvcnQ="}, status=422)
    rest = [endpoint["id"]]
    for _ in range(3):
        talk.sleep(0.1)
        rest.append(talk.ask("POST", "/app/e/endpoint", {"url": fields["url"]}, status=201)["id"])
    _in_pages(talk, "/app/e/endpoint", rest[::-1], 2)
    _in_pages(talk, "/app/e/endpoint?order=ascending", rest, 3)
    talk.ask("DELETE", path, status=204)
    talk.ask("GET", path, status=404, shows=NOT_FOUND)
    talk.ask("GET", "/app/e/endpoint", shows={"data": [{"id": each} for each in rest[:0:-1]]})
    talk.ask("DELETE", "/app/e", status=204)
    talk.ask("GET", f"/app/e/endpoint/{rest[1]}", status=404, shows=NOT_FOUND)


def keys(talk: Talk) -> None:
    """Secrets and headers: what is shown of them, what endpoints get, and for how long an old secret signs."""
    came = talk.listen("talk-keys.example", lambda _: (200, b""))
    talk.ask("POST", "/app", {"name": "K", "uid": "k"}, status=201)
    path = "/app/k/endpoint/keys"
    given = {"url": "https://talk-keys.example/in", "uid": "keys", "secret": SECRET, "headers": {"X-One": "1"}}
    talk.ask("POST", "/app/k/endpoint", given, status=201)
    talk.ask("GET", f"{path}/secret", shows={"key": SECRET})
    talk.ask("GET", f"{path}/headers", shows={"headers": {"X-One": "1"}, "sensitive": list})
    talk.ask("PATCH", f"{path}/headers", {"headers": {"X-Two": "2"}}, status=204)
    talk.ask("GET", f"{path}/headers", shows={"headers": {"X-One": "1", "X-Two": "2"}})
    talk.ask("PATCH", f"{path}/headers", {"headers": {}, "deleteHeaders": ["X-One"]}, status=204)
    message = {"eventType": "talk.made", "payload": {"a": 1.10, "é": "🦊"}}
    one = talk.ask("POST", "/app/k/msg", message, status=202, shows={**message, "id": _id("msg_")})
    talk.sleep(10)
    talk.came(
        "headers",
        [{"x-two": "2", "content-type": "application/json", "webhook-id": one["id"]}],
        [each.headers for each in came],
    )
    talk.came("the first header is gone", False, "x-one" in came[0].headers)
    talk.came("its payload", message["payload"], json.loads(came[0].body))
    talk.came("signatures", [True], [is_signed(each, SECRET) for each in came])
    talk.ask(
        "POST", f"{path}/secret/rotate", {"key": OTHER_SECRET, "gracePeriodSeconds": 120}, shows={"key": OTHER_SECRET}
    )
    talk.ask("POST", f"{path}/secret/rotate", {"key": THIRD_SECRET, "gracePeriodSeconds": 300})
    talk.refused(
        "POST", f"{path}/secret/rotate", {"key": "x"}, {"key": SECRET, "gracePeriodSeconds": 604_801}, status=422
    )
    for wait in (5, 150):
        talk.sleep(wait)
        talk.ask("POST", "/app/k/msg", message, status=202)
        talk.sleep(10)
    signed = [tuple(is_signed(each, secret) for secret in (SECRET, OTHER_SECRET, THIRD_SECRET)) for each in came]
    expected = [(True, False, False), (True, True, True), (False, True, True)]
    talk.came("each signs as long as was said when it was replaced", expected, signed)
    talk.ask("PUT", f"{path}/headers", {"headers": {"X-Three": "3"}}, status=204)
    talk.ask("GET", f"{path}/headers", shows={"headers": lambda each: each == {"X-Three": "3"}})
    talk.refused(
        "PUT", f"{path}/headers", {"headers": {"webhook-id": "x"}}, {"headers": {"Content-Length": "1"}}, status=422
    )
    talk.ask("DELETE", "/app/k", status=204)


def gated(talk: Talk) -> None:
    """A receiver that wants tokens, whose token server is down, comes back, and takes back what it gave."""
    given: list[str] = []
    server = {"up": False}

    def give(_: Came) -> tuple[int, bytes]:
        if not server["up"]:
            return 503, b"the secret is shown-nowhere"
        given.append(f"token-{len(given) + 1}")
        return 200, json.dumps({"access_token": given[-1], "token_type": "Bearer", "expires_in": 3600}).encode()

    def take(each: Came) -> tuple[int, bytes]:
        return (204, b"") if given and each.headers.get("authorization") == f"Bearer {given[-1]}" else (401, b"")

    asked, came = talk.listen("talk-login.example", give), talk.listen("talk-gated.example", take)
    talk.ask("POST", "/app", {"name": "G", "uid": "g"}, status=201)
    talk.ask("POST", "/app/g/endpoint", {"url": "https://talk-gated.example/in", "uid": "gated"}, status=201)
    path = "/app/g/endpoint/gated"
    oauth = {
        "grantType": "clientCredentials",
        "authMethod": "clientSecretPost",
        "clientId": "c",
        "tokenUrl": "https://talk-login.example/token",
    }
    talk.ask("GET", f"{path}/oauth", status=404, shows=NOT_FOUND)
    for bad in ({"grantType": "refreshToken"}, {"tokenUrl": "http://talk-login.example/token"}, {"clientSecret": ""}):
        talk.refused("PUT", f"{path}/oauth", {**oauth, "clientSecret": "shown-nowhere", **bad}, status=422)
    talk.ask("PUT", f"{path}/oauth", {**oauth, "clientSecret": "shown-nowhere"}, status=204)
    shown = talk.ask("GET", f"{path}/oauth-config", shows={"enabled": True, "config": {**oauth, "scopes": []}})
    # While the token server is down, it is asked now and then, and nothing comes
    ids = []
    for _ in range(3):
        ids.append(talk.ask("POST", "/app/g/msg", {"eventType": "talk.made", "payload": {}}, status=202)["id"])
        talk.sleep(1)
    talk.sleep(100)
    talk.came("nothing without a token", [], came)
    talk.came("a token server that is down is asked ever more rarely", lambda count: 1 <= count <= 5, len(asked))
    attempts = talk.ask("GET", "/app/g/attempt/endpoint/gated")
    reasons = {(each["responseStatusCode"], each["response"]) for each in attempts["data"]}
    talk.is_so("why", {(0, "oauth: the token server answered 503")}, reasons)
    talk.is_so("the secret", False, "shown-nowhere" in json.dumps([shown, attempts]))
    # When it is back, then one token serves for all
    server["up"] = True
    talk.sleep(3_000)
    for each in ids:
        talk.ask("GET", f"/app/g/msg/{each}/endpoint", shows={"data": [{"status": 0}]})
    talk.came("one token", {"Bearer token-1"}, {each.headers.get("authorization") for each in came})
    # When it takes a token back, then the next message arrives all the same, in one attempt
    given.append("another")
    one = talk.ask("POST", "/app/g/msg", {"eventType": "talk.made", "payload": {}}, status=202)["id"]
    talk.sleep(20)
    talk.ask("GET", f"/app/g/attempt/msg/{one}", shows={"data": [{"status": 0, "responseStatusCode": 204}]})
    talk.came("another token", "Bearer token-3", came[-1].headers.get("authorization"))
    talk.came("two tokens in all", 2, sum(each.startswith("token") for each in given))
    talk.ask("DELETE", f"{path}/oauth", status=204)
    talk.ask("GET", f"{path}/oauth-config", shows={"enabled": False})
    talk.refused("PUT", f"{path}/mtls", {}, {"identity": "junk"}, status=422)
    talk.ask("GET", f"{path}/mtls-config", shows={"enabled": False})
    talk.ask("DELETE", "/app/g", status=204)


def sent(talk: Talk) -> None:
    """A message, its attempt, and everything in which they are shown."""
    came = talk.listen("talk-sent.example", lambda _: (201, b"thanks"))
    app = talk.ask("POST", "/app", {"name": "S", "uid": "s"}, status=201)["id"]
    endpoint_id = talk.ask(
        "POST", "/app/s/endpoint", {"url": "https://talk-sent.example/in", "uid": "sent"}, status=201
    )["id"]
    body = {"eventType": "talk.made", "payload": {"n": 1}, "eventId": "ev-1", "channels": ["c"], "tags": ["t"]}
    message = talk.ask("POST", "/app/s/msg", body, status=202, shows={**body, "timestamp": str})
    talk.ask("POST", "/app/s/msg", body, status=409, shows={"code": "conflict"})
    bad: dict[str, Any]
    for bad in (
        {"eventType": ""},
        {"eventType": "a b"},
        {"payload": None},
        {"payload": "x"},
        {"channels": []},
        {"channels": list("abcdefghijk")},
        {"eventId": "a b"},
        {"eventId": "msg_x"},
        {"orderingKey": ""},
        {"orderingKey": "a b"},
        {"tags": list("abcdefghijk")},
        {"payloadRetentionPeriod": 0},
        {"payloadRetentionPeriod": 91},
    ):
        talk.refused("POST", "/app/s/msg", {**body, "eventId": "ev-2", **bad}, status=422)
    talk.ask("POST", "/app/none/msg", body, status=404, shows=NOT_FOUND)
    talk.ask("POST", "/app/s/msg/precheck/active", {"eventType": "talk.made"}, shows={"active": True})
    talk.sleep(10)
    talk.came("one request", [{"n": 1}], [json.loads(each.body) for each in came])
    shown = {**body, "id": message["id"]}
    for name in ("ev-1", message["id"]):
        talk.ask("GET", f"/app/s/msg/{name}", shows=shown)
    talk.ask("GET", "/app/s/msg/ev-1?with_content=false", shows={"payload": lambda each: each == {}})
    talk.ask("GET", "/app/s/msg", shows={"data": [shown], "done": True})
    for query, finds in (
        ("channel=c", 1),
        ("channel=d", 0),
        ("tag=t", 1),
        ("tag=u", 0),
        ("event_types=talk.made", 1),
        ("event_types=talk.new", 0),
        (f"after={message['timestamp']}", 1),
        (f"before={message['timestamp']}", 0),
    ):
        talk.ask("GET", f"/app/s/msg?{query}", shows={"data": finds * [shown]})
    attempt = {
        "msgId": message["id"],
        "endpointId": endpoint_id,
        "responseStatusCode": 201,
        "response": "thanks",
        "status": 0,
        "statusText": "success",
        "triggerType": 0,
        "url": "https://talk-sent.example/in",
        "id": _id("atmpt_"),
        "timestamp": str,
        "responseDurationMs": int,
    }
    lists = (
        "/app/s/attempt/endpoint/sent",
        "/app/s/attempt/msg/ev-1",
        "/app/s/msg/ev-1/attempt",
        "/app/s/msg/ev-1/endpoint/sent/attempt",
    )
    for path in lists[:2]:
        found = talk.ask("GET", path, shows={"data": [attempt], "done": True})["data"]
        for query, finds in (
            ("status=0", 1),
            ("status=2", 0),
            ("status_code_class=200", 1),
            ("status_code_class=500", 0),
            ("channel=d", 0),
            ("event_types=talk.new", 0),
            (f"before={found[0]['timestamp']}", 0),
            (f"after={found[0]['timestamp']}", 1),
        ):
            talk.ask("GET", f"{path}?{query}", shows={"data": finds * [{"msgId": message["id"]}]})
    talk.ask("GET", f"/app/s/msg/ev-1/attempt/{found[0]['id']}", shows=attempt)
    ended = {"id": message["id"], "status": 0, "statusText": "success"}
    talk.ask("GET", "/app/s/endpoint/sent/msg", shows={"data": [ended]})
    talk.ask("GET", "/app/s/endpoint/sent/msg?status=2", shows={"data": []})
    talk.ask(
        "GET",
        "/app/s/msg/ev-1/endpoint",
        shows={"data": [{"id": endpoint_id, "status": 0, "url": "https://talk-sent.example/in"}]},
    )
    talk.ask("GET", "/app/s/endpoint/sent/stats", shows={"success": 1, "pending": 0, "sending": 0, "fail": 0})
    talk.ask("POST", "/app/s/msg/ev-1/endpoint/sent/resend", {}, status=202)
    talk.sleep(10)
    talk.came("again", [{"n": 1}, {"n": 1}], [json.loads(each.body) for each in came])
    talk.ask("GET", "/app/s/attempt/msg/ev-1", shows={"data": [{**attempt, "triggerType": 1}, attempt]})
    talk.ask("GET", "/app/s/attempt/msg/ev-1?limit=1", shows={"data": [{"triggerType": 1}], "done": False})
    talk.ask("DELETE", f"/app/s/msg/ev-1/attempt/{found[0]['id']}/content", status=204)
    talk.ask("GET", f"/app/s/msg/ev-1/attempt/{found[0]['id']}", shows={"response": lambda each: "thanks" not in each})
    ids = [message["id"]]
    for number in range(5):
        ids.append(
            talk.ask("POST", "/app/s/msg", {"eventType": "talk.new", "payload": {"n": number}}, status=202)["id"]
        )
        talk.sleep(1)
    talk.sleep(20)
    _in_pages(talk, "/app/s/msg", ids[::-1], 2)
    _in_pages(talk, "/app/s/endpoint/sent/msg", ids[::-1], 2)
    talk.sleep(150)
    talk.ask("GET", "/app/s/endpoint/sent/stats", shows={"success": 7, "pending": 0, "sending": 0, "fail": 0})
    talk.ask("GET", "/app/s/endpoint/sent/attempt-stats", shows={"success": 7, "fail": 0})
    usage = talk.ask(
        "POST",
        "/stats/usage/app",
        {"since": "2026-11-10T00:00:00Z", "until": "2026-11-20T00:00:00Z", "appIds": ["s", "none"]},
        status=202,
    )
    talk.is_so("unknown applications", {"unresolvedAppIds": ["none"], "task": "application.stats"}, usage)
    _ends(talk, usage)
    talk.ask("GET", "/app/s/endpoint/sent/health", shows={"circuit": str})
    talk.ask("DELETE", f"/app/{app}", status=204)


def filtered(talk: Talk) -> None:
    """Who gets what: event types, channels, switched off; later, in order, and by replay."""
    hosts = {name: talk.listen(f"talk-{name}.example", lambda _: (200, b"")) for name in ("all", "made", "c", "off")}
    talk.ask("POST", "/app", {"name": "F", "uid": "f"}, status=201)
    for name, more in (
        ("all", {}),
        ("made", {"eventTypes": ["talk.made"]}),
        ("c", {"channels": ["c"]}),
        ("off", {"disabled": True}),
    ):
        talk.ask("POST", "/app/f/endpoint", {"url": f"https://talk-{name}.example/", "uid": name, **more}, status=201)

    def post(number: int, kind: str, **more: Any) -> str:
        answer = talk.ask("POST", "/app/f/msg", {"eventType": kind, "payload": {"n": number}, **more}, status=202)
        talk.sleep(2)
        return str(answer["id"])

    def got(name: str) -> list[int]:
        return sorted(json.loads(each.body)["n"] for each in hosts[name])

    post(1, "talk.made")
    post(2, "talk.new", channels=["c", "d"])
    third = post(3, "talk.made", channels=["d"])
    talk.sleep(10)
    for name, expected in (("all", [1, 2, 3]), ("made", [1, 3]), ("c", [2]), ("off", [])):
        talk.came(name, expected, got(name))
    talk.ask("GET", f"/app/f/msg/{third}/endpoint", shows={"data": [..., ...]})
    talk.ask("PATCH", "/app/f/endpoint/off", {"disabled": False}, shows={"disabled": False})
    talk.sleep(5)
    dry = talk.ask(
        "POST",
        "/app/f/endpoint/off/replay-missing",
        {"since": SINCE, "unlimited": True, "dryRun": True},
        status=202,
        shows={"task": "endpoint.replay"},
    )
    talk.is_so("three would be", {"messagesFound": 3}, _ends(talk, dry))
    talk.came("a dry run", [], got("off"))
    _ends(talk, talk.ask("POST", "/app/f/endpoint/off/replay-missing", {"since": SINCE, "unlimited": True}, status=202))
    talk.sleep(30)
    talk.came("what it missed", [1, 2, 3], got("off"))
    talk.refused("POST", "/app/f/endpoint/off/replay-missing", {"since": SINCE}, {}, status=422)
    again = {"since": SINCE, "unlimited": True, "eventTypes": ["talk.new"]}
    _ends(
        talk,
        talk.ask("POST", "/app/f/endpoint/all/bulk-replay", again, status=202, shows={"task": "endpoint.bulk-replay"}),
    )
    talk.sleep(30)
    talk.came("again", [1, 2, 2, 3], got("all"))
    for number in (4, 5):
        post(number, "talk.made", orderingKey="k")
    talk.sleep(10)
    numbered = [(each.headers["webhook-ordering-key"], each.headers["webhook-sequence"]) for each in hosts["made"][2:]]
    talk.came("in order", [("k", "1"), ("k", "2")], numbered)
    talk.ask(
        "GET",
        "/background-task",
        shows={"data": [{"task": "endpoint.bulk-replay", "status": "finished"}, ..., ..., ...]},
    )
    talk.ask("DELETE", "/app/f", status=204)


def given_up(talk: Talk) -> None:
    """An endpoint that fails: when it is asked, what is shown meanwhile and at the end, and what brings it back."""
    says = {"status": 500}
    came = talk.listen("talk-fails.example", lambda _: (says["status"], b"no"))
    heard = talk.listen("talk-heard.example", lambda _: (200, b""))
    events = ["message.attempt.failing", "message.attempt.exhausted", "background_task.finished"]
    hook = talk.ask(
        "POST",
        "/operational-webhook/endpoint",
        {"url": "https://talk-heard.example/", "eventTypes": events},
        status=201,
        shows={"eventTypes": sorted(events)},
    )
    talk.ask("POST", "/app", {"name": "G", "uid": "g"}, status=201)
    talk.ask("POST", "/app/g/endpoint", {"url": "https://talk-fails.example/", "uid": "fails"}, status=201)
    one = talk.ask("POST", "/app/g/msg", {"eventType": "talk.made", "payload": {"n": 1}}, status=202)["id"]
    talk.sleep(15)
    talk.ask(
        "GET",
        "/app/g/endpoint/fails/msg",
        shows={"data": [{"id": one, "status": 3, "statusText": "sending", "nextAttempt": str}]},
    )
    talk.sleep(15)
    talk.came("after five seconds", 2, len(came))
    talk.sleep(6 * MINUTE)
    talk.came("after five minutes", 3, len(came))
    talk.sleep(36 * 3_600)
    talk.came("eight tries", 8, len(came))
    waits = [(after.at - before.at) / 1_000_000 for before, after in itertools.pairwise(came)]
    for wait, listed in zip(waits, (5, 300, 1_800, 7_200, 18_000, 36_000, 36_000), strict=False):
        talk.came("the list of waits", lambda each, listed=listed: 0.8 * listed - 1 <= each <= 1.2 * listed + 75, wait)
    talk.ask("GET", "/app/g/endpoint/fails/msg", shows={"data": [{"id": one, "status": 2, "statusText": "fail"}]})
    talk.ask("GET", "/app/g/endpoint/fails/msg?status=2", shows={"data": [{"id": one}]})
    talk.ask(
        "GET",
        "/app/g/attempt/endpoint/fails?status=2&limit=3",
        shows={"data": 3 * [{"status": 2, "responseStatusCode": 500}]},
    )
    talk.ask("GET", "/app/g/endpoint/fails/stats", shows={"success": 0, "fail": 8, "sending": 0})
    payloads = [json.loads(each.body) for each in heard]
    talk.came("what is told of it", events[:2], [each["type"] for each in payloads])
    talk.came(
        "and of which",
        2 * [{"appUid": "g", "msgId": one, "lastAttempt": {"responseStatusCode": 500}}],
        [each["data"] for each in payloads],
    )
    talk.ask("GET", "/health/endpoints")
    says["status"] = 200
    task = talk.ask(
        "POST",
        "/app/g/endpoint/fails/recover",
        {"since": "2026-11-10T00:00:00Z", "unlimited": True},
        status=202,
        shows={"task": "endpoint.recover"},
    )
    talk.is_so("one was sent", {"messagesSent": 1}, _ends(talk, task))
    talk.sleep(30)
    talk.came("once more", 9, len(came))
    talk.ask("GET", "/app/g/endpoint/fails/msg", shows={"data": [{"id": one, "status": 0}]})
    talk.sleep(30)
    talk.came("the end of the task", [*events], [json.loads(each.body)["type"] for each in heard])
    talk.ask("DELETE", f"/operational-webhook/endpoint/{hook['id']}", status=204)
    talk.ask("DELETE", "/app/g", status=204)


def dropped(talk: Talk) -> None:
    """What waits for an application that is deleted is not sent any more, nor to one of its name that comes after."""
    came = talk.listen("talk-dropped.example", lambda _: (500, b""))
    for _ in range(2):
        talk.ask("POST", "/app", {"name": "D", "uid": "d"}, status=201)
        talk.ask("POST", "/app/d/endpoint", {"url": "https://talk-dropped.example/", "uid": "one"}, status=201)
        before = len(came)
        waits = talk.ask("POST", "/app/d/msg", {"eventType": "talk.made", "payload": {}}, status=202)["id"]
        talk.sleep(30)
        talk.came("until then", 2, len(came) - before)
        talk.ask("DELETE", "/app/d", status=204)
        talk.ask("GET", f"/app/d/msg/{waits}", status=404, shows=NOT_FOUND)
    talk.sleep(10 * MINUTE)
    talk.came("nothing after that", 4, len(came))


def expunged(talk: Talk) -> None:
    """What is erased is not shown any more, and everything else is."""
    talk.ask("POST", "/app", {"name": "X", "uid": "x"}, status=201)
    ids = [
        talk.ask("POST", "/app/x/msg", {"eventType": "talk.made", "payload": {"secret": n}}, status=202)["id"]
        for n in range(4)
    ]
    talk.sleep(5)
    gone = {"payload": lambda each: "secret" not in each}
    talk.ask("DELETE", f"/app/x/msg/{ids[0]}/content", status=204)
    talk.ask("GET", f"/app/x/msg/{ids[0]}", shows={"id": ids[0], **gone})
    talk.ask("POST", "/app/x/msg/bulk-expunge", {"ids": [ids[1], "msg_none"]})
    talk.ask("GET", f"/app/x/msg/{ids[1]}", shows=gone)
    talk.ask("GET", f"/app/x/msg/{ids[2]}", shows={"payload": {"secret": 2}})
    _ends(
        talk,
        talk.ask("POST", "/app/x/msg/expunge-all-contents", status=202, shows={"task": "application.purge_content"}),
    )
    for each in ids:
        talk.ask("GET", f"/app/x/msg/{each}", shows=gone)
    talk.ask("DELETE", "/app/x", status=204)


def polled(talk: Talk) -> None:
    """Pollers get what comes after they began, once, in order; consumers are remembered."""
    talk.ask("POST", "/app", {"name": "P", "uid": "p"}, status=201)
    first = talk.ask("GET", "/app/p/poller/sink", shows={"data": [], "iterator": str, "done": bool})
    ids = []
    for number in range(3):
        ids.append(
            talk.ask("POST", "/app/p/msg", {"eventType": "talk.made", "payload": {"n": number}}, status=202)["id"]
        )
        talk.sleep(2)
    talk.sleep(30)
    page = talk.ask(
        "GET",
        f"/app/p/poller/sink?limit=2&iterator={first['iterator']}",
        shows={"data": [{"id": each} for each in ids[:2]], "done": False},
    )
    page = talk.ask(
        "GET",
        f"/app/p/poller/sink?limit=2&iterator={page['iterator']}",
        shows={"data": [{"id": ids[2], "payload": {"n": 2}}], "done": True},
    )
    talk.ask("GET", f"/app/p/poller/sink?iterator={page['iterator']}", shows={"data": [], "done": True})
    talk.ask("DELETE", "/app/p", status=204)


def portals(talk: Talk) -> None:
    """What a customer's token may do, until it ends."""
    for uid in ("mine", "yours"):
        talk.ask("POST", "/app", {"name": uid, "uid": uid}, status=201)
    access = talk.ask("POST", "/auth/app-portal-access/mine", {"expiry": 3_600}, shows={"token": str, "url": str})
    customer = talk.with_headers(authorization=f"Bearer {access['token']}")
    customer.ask("GET", "/app/mine", shows={"uid": "mine"})
    customer.ask("GET", "/app/yours", status=404)
    customer.ask("GET", "/app", status=403)
    customer.ask("POST", "/app/mine/msg", {"eventType": "talk.made", "payload": {}}, status=403)
    customer.ask("POST", "/app/mine/endpoint", {"url": "https://talk-own.example/", "uid": "own"}, status=201)
    customer.ask("POST", "/app/mine/endpoint", {"url": "ironmq:///queue"}, status=422)
    customer.ask("DELETE", "/app/mine/endpoint/own", status=204)
    talk.refused("POST", "/auth/app-portal-access/mine", {"expiry": 3_599}, {"expiry": 604_801}, status=422)
    talk.sleep(3_590, exactly=True)
    customer.ask("GET", "/app/mine", shows={"uid": "mine"})
    talk.sleep(20)
    customer.ask("GET", "/app/mine", status=401)
    tokens = [talk.ask("POST", "/auth/app-portal-access/mine", {})["token"] for _ in range(2)]
    one, two = (talk.with_headers(authorization=f"Bearer {each}") for each in tokens)
    one.ask("POST", "/auth/logout", status=204)
    one.ask("GET", "/app/mine", status=401)
    two.ask("GET", "/app/mine")
    talk.ask("POST", "/auth/app/mine/expire-all", {}, status=204)
    two.ask("GET", "/app/mine", status=401)
    for uid in ("mine", "yours"):
        talk.ask("DELETE", f"/app/{uid}", status=204)


def operational(talk: Talk) -> None:
    """What is told of endpoints when they change."""
    heard = talk.listen("talk-ops.example", lambda _: (200, b""))
    hook = talk.ask(
        "POST",
        "/operational-webhook/endpoint",
        {"url": "https://talk-ops.example/", "uid": "ops", "secret": SECRET},
        status=201,
    )
    talk.ask("GET", "/operational-webhook/endpoint", shows={"data": [{"id": hook["id"], "uid": "ops"}]})
    talk.ask("GET", "/operational-webhook/endpoint/ops/secret", shows={"key": SECRET})
    talk.ask(
        "PUT",
        "/operational-webhook/endpoint/ops",
        {"url": "https://talk-ops.example/", "uid": "ops", "description": "d"},
        shows={"description": "d"},
    )
    talk.ask("POST", "/app", {"name": "O", "uid": "o"}, status=201)
    talk.ask("POST", "/app/o/endpoint", {"url": "https://talk-o.example/", "uid": "told"}, status=201)
    path = "/app/o/endpoint/told"
    for fields in ({"description": "x"}, {"disabled": True}, {"disabled": False}):
        talk.sleep(5)
        talk.ask("PATCH", path, fields)
    talk.sleep(5)
    talk.ask("DELETE", path, status=204)
    talk.sleep(20)
    kinds = ["created", "updated", "updated", "disabled", "updated", "enabled", "deleted"]
    payloads = [json.loads(each.body) for each in heard]
    talk.came("kinds", sorted(f"endpoint.{each}" for each in kinds), sorted(each["type"] for each in payloads))
    talk.came("of which", len(payloads) * [{"appUid": "o", "endpointUid": "told"}], [each["data"] for each in payloads])
    talk.came("signatures", len(payloads) * [True], [is_signed(each, SECRET) for each in heard])
    talk.ask("DELETE", "/operational-webhook/endpoint/ops", status=204)
    talk.ask("GET", "/operational-webhook/endpoint", shows={"data": [], "done": True})
    talk.ask("DELETE", "/app/o", status=204)


def _ends(talk: Talk, begun: Mapping[str, Any]) -> Any:
    """The data of a task, once it has ended."""
    talk.is_so("a task", {"id": _id("qtask_"), "status": "running", "updatedAt": str}, begun)
    talk.sleep(100)
    shown = talk.ask("GET", f"/background-task/{begun['id']}", shows={"status": "finished", "task": begun["task"]})
    return shown["data"]


def _in_pages(talk: Talk, path: str, ids: Sequence[str], limit: int) -> None:
    joined = "&" if "?" in path else "?"
    iterator = ""
    for place in range(0, len(ids), limit):
        page, last = ids[place : place + limit], place + limit >= len(ids)
        shows = {"data": [{"id": each} for each in page], "done": last, "iterator": str}
        answer = talk.ask("GET", f"{path}{joined}limit={limit}{iterator}", shows=shows)
        iterator = f"&iterator={answer['iterator']}"


def _id(prefix: str) -> Any:
    return lambda each: isinstance(each, str) and each.startswith(prefix) and len(each) == len(prefix) + 27


def is_signed(came: Came, secret: str) -> bool:
    """Whether a request is signed as Standard Webhooks specifies."""
    signed = f"{came.headers['webhook-id']}.{came.headers['webhook-timestamp']}.".encode() + came.body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    own = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return f"v1,{own}" in came.headers["webhook-signature"].split(" ")


__all__ = ["OTHER_SECRET", "is_signed", "through"]
