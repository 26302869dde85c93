"""Settings of endpoints and messages by their effects: what a receiver gets, and what it does not.

Sources: docs/webhooks.md (payload filters, CloudEvents, consent, redaction, differences from Svix); CloudEvents' HTTP
binding and its HTTP webhooks, section 4.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.webhooks import is_signed

KIND = "effects.made"
APP = "/app/effects"
A_DAY_S = 86_400


def webhooks(talk: Talk) -> None:
    """All settings that a receiver notices."""
    talk.through(
        _begun, _filters, _channels, _said, _raw, _later, _examples, _cloud_events, _consent, _redacted, _headers, _over
    )


def _begun(talk: Talk) -> None:
    example = {"1": {"type": "object", "examples": [{"first": 1}, {"second": 2}]}, "2": {"examples": [{"third": 3}]}}
    talk.ask("POST", "/event-type", {"name": KIND, "description": "d", "schemas": example}, status=201)
    talk.ask("POST", "/event-type", {"name": "effects.else", "description": "d"}, status=201)
    talk.ask("POST", "/app", {"name": "Effects", "uid": "effects"}, status=201)


def _over(talk: Talk) -> None:
    talk.ask("DELETE", APP, status=204)
    for name in (KIND, "effects.else"):
        talk.ask("DELETE", f"/event-type/{name}?expunge=true", status=204)


def _endpoint(talk: Talk, name: str, says: Callable[[Came], Any] = lambda _: (200, b""), **more: Any) -> Sequence[Came]:
    """An endpoint of a name, and what comes to it."""
    host = f"talk-{name}.example"
    came = talk.listen(host, says)
    talk.ask("POST", f"{APP}/endpoint", {"url": f"https://{host}/in", "uid": name, **more}, status=201)
    return came


def _post(talk: Talk, payload: Any, **more: Any) -> str:
    return str(talk.ask("POST", f"{APP}/msg", {"eventType": KIND, "payload": payload, **more}, status=202)["id"])


ORDER = {"status": "paid", "total": 100, "vip": True, "note": None, "items": [{"sku": "a-1"}], "empty": "", "one": 1}
ORDER |= {"by": {"0": "zero"}, "größe": "L"}
FILTERS: tuple[tuple[str, str, Any, bool], ...] = (
    ("order.status", "eq", "paid", True),
    ("order.status", "eq", "Paid", False),
    ("order.total", "eq", 100, True),
    ("order.total", "eq", 100.0, True),
    ("order.total", "eq", "100", False),
    ("order.total", "eq", True, False),
    ("order.vip", "eq", True, True),
    ("order.vip", "eq", 1, False),
    ("order.note", "eq", None, True),
    ("order.none", "eq", None, False),
    ("order.status", "ne", "refunded", True),
    ("order.status", "ne", "paid", False),
    ("order.none", "ne", "paid", True),
    ("order.vip", "ne", 1, True),
    ("order.status", "in", ["paid", "refunded"], True),
    ("order.status", "in", ["refunded"], False),
    ("order.total", "in", [99, 100], True),
    ("order.total", "in", ["100", True], False),
    ("order.none", "in", [None], False),
    ("order.note", "in", [0, None], True),
    ("order.vip", "in", [1, "true"], False),
    ("order.vip", "in", [False, True], True),
    ("order.one", "in", [True, "1"], False),
    ("order.one", "in", [True, 1], True),
    ("order.one", "ne", True, True),
    ("order.status", "prefix", "pa", True),
    ("order.status", "prefix", "paid", True),
    ("order.status", "prefix", "aid", False),
    ("order.total", "prefix", "1", False),
    ("order.empty", "prefix", "a", False),
    ("order.total", "gt", 99.5, True),
    ("order.total", "gt", 100, False),
    ("order.total", "lt", 100.5, True),
    ("order.total", "lt", 100, False),
    ("order.status", "gt", 1, False),
    ("order.vip", "gt", 0, False),
    ("order.none", "lt", 1, False),
    ("order.note", "exists", True, True),
    ("order.none", "exists", True, False),
    ("order.none", "exists", False, True),
    ("order.note", "exists", False, False),
    ("order.items.0.sku", "eq", "a-1", True),
    ("order.items.1.sku", "exists", True, False),
    ("order.items.sku", "exists", True, False),
    ("order", "exists", True, True),
    ("order.status.more", "exists", True, False),
    ("order.by.0", "eq", "zero", True),
    ("order.items.-1.sku", "exists", True, False),
    ("order.größe", "in", ["L"], True),
    ("order.größe", "prefix", "l", False),
    ("order.none", "ne", None, True),
    ("order.note", "ne", None, False),
    ("order.note", "gt", -1, False),
    ("order.empty", "prefix", "", True),
    ("order.empty", "exists", True, True),
    ("order.empty", "eq", None, False),
    ("Order.status", "exists", True, False),
)
"""Filters, and whether the order passes each."""


def _filters(talk: Talk) -> None:
    """Each operator, by what passes it; all of several have to let pass; none is left when they are removed."""
    came: dict[str, Sequence[Came]] = {}
    for number, (path, operator, value, _) in enumerate(FILTERS):
        one = {"path": path, "operator": operator, "value": value}
        came[f"f{number}"] = _endpoint(talk, f"f{number}", payloadFilters=[one])
    both = [
        {"path": "order.vip", "operator": "eq", "value": True},
        {"path": "order.total", "operator": "gt", "value": 100},
    ]
    came["both"] = _endpoint(talk, "both", payloadFilters=both)
    talk.ask(
        "POST", f"{APP}/endpoint", {"url": "https://talk-off.example/", "uid": "off", "disabled": True}, status=201
    )
    _post(talk, {"order": ORDER})
    talk.sleep(15 + talk.put_off_s)
    passed = {f"f{number}": int(passes) for number, (*_, passes) in enumerate(FILTERS)} | {"both": 0}
    found = {name: len(each) for name, each in came.items()}
    wrong = [FILTERS[int(name[1:])] if name != "both" else name for name, each in passed.items() if found[name] != each]
    talk.came("who gets it", [], wrong)
    talk.ask("PATCH", f"{APP}/endpoint/both", {"payloadFilters": both[:1]})
    _post(talk, {"order": ORDER})
    talk.sleep(10 + talk.put_off_s)
    talk.came("one of them is enough", 1, len(came["both"]))
    talk.ask(
        "PATCH", f"{APP}/endpoint/both", {"payloadFilters": None}, shows=lambda each: not each.get("payloadFilters")
    )
    _post(talk, {"order": {}})
    talk.sleep(10 + talk.put_off_s)
    talk.came("all", 2, len(came["both"]))
    for name in (*came, "off"):
        talk.ask("DELETE", f"{APP}/endpoint/{name}", status=204)


def _channels(talk: Talk) -> None:
    """Event types and channels, asked before and seen afterwards."""
    came = {
        "all": _endpoint(talk, "all"),
        "one": _endpoint(talk, "one", channels=["a"]),
        "two": _endpoint(talk, "two", channels=["a", "b"], eventTypes=[KIND]),
    }
    talk.ask("PATCH", f"{APP}/endpoint/all", {"disabled": True})
    for kind, channels, active, gets in (
        (KIND, ["a"], True, {"one", "two"}),
        (KIND, ["b", "c"], True, {"two"}),
        ("effects.else", ["b"], False, set()),
        ("effects.else", ["a"], True, {"one"}),
        (KIND, None, False, set()),
        (KIND, ["A"], False, set()),
    ):
        asked = {"eventType": kind} | ({} if channels is None else {"channels": channels})
        talk.ask("POST", f"{APP}/msg/precheck/active", asked, shows={"active": active})
        before = {name: len(each) for name, each in came.items()}
        talk.ask("POST", f"{APP}/msg", {**asked, "payload": {}}, status=202)
        talk.sleep(5 + talk.put_off_s)
        talk.came(f"{kind} in {channels}", gets, {name for name, each in came.items() if len(each) > before[name]})
    for bad in ({"eventType": "a b"}, {}, {"eventType": KIND, "channels": "a"}):
        talk.ask("POST", f"{APP}/msg/precheck/active", bad, status=422)
    for name in came:
        talk.ask("DELETE", f"{APP}/endpoint/{name}", status=204)


def _said(talk: Talk) -> None:
    """What answers mean: 410 and the standard's headers end more than one message; others are tried again."""
    said: dict[int, Any] = {}
    came = _endpoint(talk, "says", lambda each: said.get(json.loads(each.body)["n"], (200, b"")))
    said |= {
        1: (503, b"", {"webhook-delivery": "abort-message"}),
        2: (503, b"", {"webhook-delivery": "nothing-known"}),
        3: (204, b""),
        4: (301, b"", {"location": "https://talk-says.example/other"}),
        5: (400, b"x" * 30_000),
        6: (200, b"\xff\xfe"),
    }
    ids = {number: _post(talk, {"n": number}) for number in said}
    talk.sleep(20 + talk.put_off_s)
    tries = {number: sum(json.loads(each.body)["n"] == number for each in came) for number in said}
    talk.came("how often each was tried", {1: 1, 2: 2, 3: 1, 4: 2, 5: 2, 6: 1}, tries)
    for number, status, then in ((1, 2, None), (2, 2, str), (3, 0, None), (4, 2, str), (5, 2, str), (6, 0, None)):
        shows = {"data": [{"status": status, "nextAttempt": then}]}
        talk.ask("GET", f"{APP}/msg/{ids[number]}/endpoint", shows=shows)
    shown = talk.ask("GET", f"{APP}/attempt/msg/{ids[5]}?limit=1")["data"][0]
    talk.is_so("what is kept of an answer", 20_000, len(shown["response"]))
    shown = talk.ask("GET", f"{APP}/attempt/msg/{ids[6]}")["data"][0]
    talk.is_so("an answer that is no text", base64.b64encode(b"\xff\xfe").decode(), shown["response"])
    for number, answer in ((7, (410, b"")), (8, (200, b"", {"webhook-delivery": "disable"}))):
        said[number] = answer
        talk.ask("PATCH", f"{APP}/endpoint/says", {"disabled": False}, shows={"disabled": False})
        talk.sleep(2)
        _post(talk, {"n": number})
        talk.sleep(10 + talk.put_off_s)
        talk.ask("GET", f"{APP}/endpoint/says", shows={"disabled": True})
        talk.ask("GET", f"{APP}/endpoint/says/health", shows={"disabled": True, "health": {"state": "disabled"}})
    one = _post(talk, {"n": 9})
    talk.ask("POST", f"{APP}/msg/{one}/endpoint/says/resend", status=202, shows={"skipped": "endpoint_disabled"})
    talk.sleep(5)
    talk.came("nothing more", False, any(json.loads(each.body)["n"] == 9 for each in came))
    talk.ask("DELETE", f"{APP}/endpoint/says", status=204)


def _raw(talk: Talk) -> None:
    """The very bytes of a payload, as JSON or as any text; what is no payload."""
    came = _endpoint(talk, "raw")
    exact = b'{ "b":1.10, "a" : [1e2, "\\u00e9\\/"],"c":{} }'
    body = b'{"eventType":"' + KIND.encode() + b'","payload":' + exact + b',"eventId":"exact"}'
    talk.ask("POST", f"{APP}/msg", body, status=202)
    talk.sleep(5)
    talk.came("exactly as posted", [exact], [each.body for each in came])
    talk.ask("GET", f"{APP}/msg/exact", shows={"payload": {"b": 1.1, "a": [100, "é/"], "c": {}}})
    for text, kind in (("<a>é</a>", "application/xml"), ('{"a": 1}', "application/json; charset=utf-8")):
        talk.ask(
            "POST",
            f"{APP}/msg",
            {
                "eventType": KIND,
                "payload": {},
                "transformationsParams": {"rawPayload": text, "headers": {"content-type": kind}},
            },
            status=202,
        )
        talk.sleep(5)
        talk.came("any text", (text, kind), (came[-1].body.decode(), came[-1].headers["content-type"]))
    talk.ask("POST", f"{APP}/msg", {"eventType": KIND, "data": {"n": 1}}, status=202)
    talk.ask(
        "POST",
        f"{APP}/msg",
        {"eventType": KIND, "payload": {}, "transformationsParams": {"orderingKey": "k"}},
        status=202,
        shows={"orderingKey": "k"},
    )
    talk.sleep(5)
    talk.came("by its old name", True, b'{"n": 1}' in [each.body for each in came])
    for bad in ('{"a":1,"a":2}', '{"a":"\\ud800"}', "[1]", '"a"', "null", "1"):
        talk.ask("POST", f"{APP}/msg", f'{{"eventType":"{KIND}","payload":{bad}}}'.encode(), status=422)
    for none in (b"", b"{", b"[]", b"\xff"):
        talk.ask("POST", f"{APP}/msg", none, status=422)
    # What is erased is not sent again, and is shown as gone
    gone = _post(talk, {"secret": 1}, eventId="erased")
    talk.sleep(5)
    talk.ask("DELETE", f"{APP}/msg/{gone}/content", status=204)
    talk.ask("GET", f"{APP}/msg/erased", shows={"payload": lambda each: each == {"expired": True}})
    talk.ask("POST", f"{APP}/msg/{gone}/endpoint/raw/resend", status=400, shows={"code": "missing_payload"})
    gone = _post(talk, {"secret": 2})
    results = {"results": {gone: "expunged", "msg_none": "not-found"}}
    talk.ask("POST", f"{APP}/msg/bulk-expunge", {"ids": [gone, "msg_none"]}, shows=results)
    talk.ask("GET", f"{APP}/msg/{gone}", shows={"payload": lambda each: each == {"expired": True}})
    # Kept for an hour, and then gone by itself
    brief = _post(talk, {"secret": 2}, payloadRetentionHours=1)
    talk.sleep(3_500, exactly=True)
    talk.ask("GET", f"{APP}/msg/{brief}", shows={"payload": {"secret": 2}})
    talk.sleep(200, exactly=True)
    talk.ask("GET", f"{APP}/msg/{brief}", shows={"payload": lambda each: each == {"expired": True}})
    talk.ask(
        "POST",
        f"{APP}/msg",
        {"eventType": KIND, "payload": {}, "payloadRetentionHours": 1, "payloadRetentionPeriod": 1},
        status=422,
    )
    talk.ask("DELETE", f"{APP}/endpoint/raw", status=204)


def _later(talk: Talk) -> None:
    """What is to be delivered later comes then, and those behind it with its ordering key after it."""
    came = _endpoint(talk, "later")
    at = datetime.fromtimestamp(talk.epoch_s() + 120, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    began = talk.now()
    shown = talk.ask(
        "POST", f"{APP}/msg", {"eventType": KIND, "payload": {"n": 1}, "deliverAt": at, "orderingKey": "l"}, status=202
    )
    talk.is_so("when", True, shown["deliverAt"].startswith(at[:-1]))
    _post(talk, {"n": 2}, orderingKey="l")
    _post(talk, {"n": 3})
    talk.sleep(60)
    talk.came("what waits for nothing", [3], [json.loads(each.body)["n"] for each in came])
    talk.sleep(150)
    talk.came("then both", [3, 1, 2], [json.loads(each.body)["n"] for each in came])
    talk.came("not before", lambda waited: 119 <= waited <= 200, (came[1].at - began) / 1_000_000)
    for seconds, status in ((30, 422), (90, 202), (A_DAY_S - 60, 202), (A_DAY_S + 60, 422), (-60, 422)):
        at = datetime.fromtimestamp(talk.epoch_s() + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        talk.ask("POST", f"{APP}/msg", {"eventType": KIND, "payload": {}, "deliverAt": at}, status=status)
    talk.ask("DELETE", f"{APP}/endpoint/later", status=204)


def _examples(talk: Talk) -> None:
    """An example of an event type, whatever the endpoint's filter."""
    came = _endpoint(talk, "example", eventTypes=["effects.else"], channels=["none"])
    path = f"{APP}/endpoint/example/send-example"
    for asked, payload in (
        ({"eventType": "svix.ping"}, {"success": True}),
        ({"eventType": KIND}, {"first": 1}),
        ({"eventType": KIND, "exampleIndex": 1}, {"second": 2}),
        ({"eventType": KIND, "payload": {"own": 1}}, {"own": 1}),
    ):
        talk.ask("POST", path, asked, shows={"eventType": asked["eventType"], "id": str})
        talk.sleep(5)
        talk.came(f"the example of {asked}", payload, json.loads(came[-1].body))
    talk.came("one each", 4, len(came))
    talk.ask("POST", path, {"eventType": "effects.none"}, status=404)
    talk.ask("POST", path, {"eventType": "effects.else"}, status=400, shows={"code": "invalid_scheme"})
    talk.ask("POST", path, {"eventType": KIND, "exampleIndex": 2}, status=400, shows={"code": "invalid_scheme"})
    talk.ask("POST", path, {}, status=422)
    talk.ask("DELETE", f"{APP}/endpoint/example", status=204)


def _cloud_events(talk: Talk) -> None:
    """Both modes, their headers and attributes; what an endpoint's own headers add, and cannot replace."""
    app_id = talk.ask("GET", APP)["id"]
    own = {"ce-subject": "mine", "ce-id": "not mine"}
    binary = _endpoint(talk, "binary", cloudEvents={"mode": "binary"}, headers=own)
    structured = _endpoint(talk, "structured", cloudEvents={"mode": "structured"})
    message_id = _post(talk, {"n": 1.0})
    talk.sleep(10 + talk.put_off_s)
    source = f"/api/v1/app/{app_id}"
    named = {"ce-id": message_id, "ce-type": KIND, "ce-specversion": "1.0", "ce-subject": "mine", "ce-time": str}
    talk.came("binary", [{**named, "ce-source": lambda each: each.endswith(source)}], [each.headers for each in binary])
    talk.came("its body", [{"n": 1.0}], [json.loads(each.body) for each in binary])
    event = {"id": message_id, "type": KIND, "specversion": "1.0", "data": {"n": 1.0}, "time": str}
    shown = {**event, "source": lambda each: each.endswith(source)}
    talk.came("structured", [shown], [json.loads(each.body) for each in structured])
    talk.came("its type", True, structured[-1].headers["content-type"].startswith("application/cloudevents+json"))
    secrets = [talk.ask("GET", f"{APP}/endpoint/{uid}/secret")["key"] for uid in ("binary", "structured")]
    signed = [is_signed(each[-1], secret) for each, secret in zip((binary, structured), secrets, strict=True)]
    talk.came("signed as sent", [True, True], signed)
    # The payload's exact text
    exact = b'{ "b":1.10, "a" : [1e2, "\\u00e9\\/"] }'
    talk.ask("POST", f"{APP}/msg", b'{"eventType":"' + KIND.encode() + b'","payload":' + exact + b"}", status=202)
    talk.sleep(10 + talk.put_off_s)
    talk.came("its very text", (exact, True), (binary[-1].body, exact in structured[-1].body))
    texts: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
        ("<a/>", "application/xml", {"data": "<a/>", "datacontenttype": "application/xml"}),
        ("{no", "application/json", {"data_base64": base64.b64encode(b"{no").decode()}),
    )
    for text, kind, data in texts:
        raw = {"rawPayload": text, "headers": {"content-type": kind}}
        _post(talk, {}, transformationsParams=raw)
        talk.sleep(10 + talk.put_off_s)
        talk.came(f"text of {kind}", data, json.loads(structured[-1].body))
        talk.came("and binary", (text, kind), (binary[-1].body.decode(), binary[-1].headers["content-type"]))
    for name in ("binary", "structured"):
        talk.ask("DELETE", f"{APP}/endpoint/{name}", status=204)


def _consent(talk: Talk) -> None:
    """An endpoint is asked before it is sent anything; by its answer, or by a call of the URL that it was given."""
    says: dict[str, Any] = {"status": 200, "headers": {}}
    asked: list[Came] = []

    def answers(each: Came) -> tuple[int, bytes, Mapping[str, str]]:
        if "webhook-id" not in each.headers:
            asked.append(each)
            return says["status"], b"", says["headers"]
        return 200, b"", {}

    came = talk.listen("talk-consent.example", answers)
    began = datetime.fromtimestamp(talk.epoch_s(), UTC).isoformat()
    path = f"{APP}/endpoint/consent"
    events = {"mode": "binary", "consent": True}
    fields = {"url": "https://talk-consent.example/in", "uid": "consent", "throttleRate": 2, "cloudEvents": events}
    talk.ask("POST", f"{APP}/endpoint", fields, status=201)
    talk.sleep(10)
    refused = {"consented": False, "consentProblem": str}
    talk.ask("GET", path, shows={"cloudEvents": refused})
    talk.ask("GET", f"{path}/health", shows={"health": {"state": "awaits_consent"}})
    talk.came(
        "it was asked",
        [{"webhook-request-origin": str, "webhook-request-rate": "120"}],
        [each.headers for each in asked],
    )
    _post(talk, {"n": 1})
    talk.sleep(10)
    talk.came("nothing yet", len(asked), len(came))
    # Another URL is asked again, and agrees for all, at most thirty a minute
    says["headers"] = {"webhook-allowed-origin": "*", "webhook-allowed-rate": "30"}
    talk.ask("PATCH", path, {"url": "https://talk-consent.example/other"})
    talk.sleep(10)
    talk.ask("GET", path, shows={"cloudEvents": {"consented": True, "allowedRate": 30}})
    _post(talk, {"n": 2})
    talk.sleep(10)
    talk.came("what is posted from then on", [2], _numbers(came))
    talk.ask("POST", f"{path}/replay-missing", {"since": began}, status=202)
    talk.sleep(120)
    talk.came("and what it missed", [2, 1], _numbers(came))
    # Its own host's name is enough; another's is none
    origin = asked[0].headers["webhook-request-origin"]
    for allowed, consented in ((origin, True), ("else.example", False)):
        says["headers"] = {"webhook-allowed-origin": allowed}
        talk.ask("PATCH", path, {"url": f"https://talk-consent.example/{allowed}"})
        talk.sleep(10)
        talk.ask("GET", path, shows={"cloudEvents": {"consented": consented}})
    # Or by the URL that it is given, once
    says["headers"] = {}
    talk.ask("PATCH", path, {"cloudEvents": {**events, "callback": True}, "url": "https://talk-consent.example/call"})
    talk.sleep(10)
    talk.ask("GET", path, shows={"cloudEvents": {"consented": False, "callbackUntil": str}})
    callback = "/" + asked[-1].headers["webhook-request-callback"].split("/", 3)[3]
    nobody = talk.at("").with_headers(authorization="")
    talk.is_so("a wrong one", 404, nobody.status("GET", callback[:-4] + "none"))
    talk.is_so("consents", 200, nobody.with_headers(webhook_allowed_rate="60").status("POST", callback))
    talk.ask("GET", path, shows={"cloudEvents": {"consented": True, "allowedRate": 60}})
    talk.is_so("once", 404, nobody.status("GET", callback))
    # A portal cannot do without it where the application wants it
    access = talk.ask("POST", "/auth/app-portal-access/effects", {})["token"]
    portal = talk.with_headers(authorization=f"Bearer {access}")
    portal.ask("PATCH", path, {"cloudEvents": {"mode": "binary"}}, status=422)
    portal.ask("PATCH", path, {"cloudEvents": None}, status=422)
    portal.ask("POST", f"{APP}/endpoint", {"url": "https://talk-consent.example/", "uid": "free"}, status=201)
    talk.ask("PATCH", APP, {"portalConsent": True})
    talk.sleep(2)
    portal.ask("POST", f"{APP}/endpoint", {"url": "https://talk-consent.example/", "uid": "freer"}, status=422)
    portal.ask("PATCH", f"{APP}/endpoint/free", {"url": "https://talk-consent.example/2"}, status=422)
    talk.ask("PATCH", APP, {"portalConsent": False})
    talk.ask("PATCH", path, {"cloudEvents": {"mode": "binary"}}, shows={"cloudEvents": {"consent": False}})
    for name in ("free", "consent"):
        talk.ask("DELETE", f"{APP}/endpoint/{name}", status=204)


def _numbers(came: Sequence[Came]) -> list[int]:
    """Of the messages that came."""
    return [json.loads(each.body)["n"] for each in came if "webhook-id" in each.headers]


def _redacted(talk: Talk) -> None:
    """Values that are withheld from whoever looks, and not from receivers."""
    answer = {"token": "s3cret", "rows": [{"token": "s3cret", "a.b": 1}], "ok": True}
    came = _endpoint(talk, "redacted", lambda _: (200, json.dumps(answer).encode()))
    rules = {"payload": ["user.email", "items.*.card", "dotted.name", "list.1"], "answers": ["**.token"]}
    talk.ask("PATCH", APP, {"redaction": rules}, shows={"redaction": rules})
    talk.sleep(2)
    payload = {
        "user": {"email": "a@b.example", "name": "A"},
        "items": [{"card": "4111", "n": 1}, {"card": {"x": 1}}, 7],
        "dotted.name": 5,
        "list": [1, 2, 3],
    }
    hidden = "[redacted]"
    shown = {
        "user": {"email": hidden, "name": "A"},
        "items": [{"card": hidden, "n": 1}, {"card": hidden}, 7],
        "dotted.name": hidden,
        "list": [1, hidden, 3],
    }
    message_id = _post(talk, payload)
    talk.sleep(10)
    talk.came("the receiver gets everything", [payload], [json.loads(each.body) for each in came])
    talk.ask("GET", f"{APP}/msg/{message_id}", shows={"payload": lambda each: each == shown})
    for path in (f"{APP}/msg?limit=1", f"{APP}/endpoint/redacted/msg?limit=1"):
        talk.ask("GET", path, shows={"data": [{"payload": lambda each: each == shown}]})
    response = talk.ask("GET", f"{APP}/attempt/msg/{message_id}")["data"][0]["response"]
    kept = {"token": hidden, "rows": [{"token": hidden, "a.b": 1}], "ok": True}
    talk.is_so("of the answer", lambda each: each == kept, json.loads(response))
    talk.ask("POST", f"{APP}/msg/{message_id}/endpoint/redacted/resend", status=202)
    talk.sleep(5)
    talk.came("a resend, too", payload, json.loads(came[-1].body))
    talk.ask("PATCH", APP, {"redaction": None})
    talk.sleep(2)
    talk.ask("GET", f"{APP}/msg/{message_id}", shows={"payload": lambda each: each == payload})
    talk.ask("DELETE", f"{APP}/endpoint/redacted", status=204)


FORBIDDEN = (
    *("User-Agent", "TE", "Trailers", "Transfer-Encoding", "Upgrade", "Keep-Alive", "Content-Length", "Content-Type"),
    *("X-Amz-Date", "X-Goog-Id", "Svix-Id", "X-Svix-A", "Webhook-Id", "Content-Encoding", "Age", "Cache-Control"),
    *("a b", "", "ä"),
)
SENSITIVE = {
    **{
        "Authorization": True,
        "X-Auth-Token": True,
        "X-Api-Key": True,
        "Cookie": True,
        "X-My-Secret": True,
        "X-Plain": False,
    },
    **{"X-Session-Token": True, "X-Other": False},
}


def _headers(talk: Talk) -> None:
    """Headers: which cannot be set, which are shown by name only, and what a password in a URL becomes."""
    came = _endpoint(talk, "headers", headers={"X-First": "1"})
    path = f"{APP}/endpoint/headers"
    for bad in FORBIDDEN:
        for method in ("PUT", "PATCH"):
            talk.ask(method, f"{path}/headers", {"headers": {bad: "x"}}, status=422)
    value: Any
    for value in (4_097 * "v", "a\nb", 7):
        talk.ask("PUT", f"{path}/headers", {"headers": {"X-A": value}}, status=422)
    given = {name: f"value of {name}" for name in SENSITIVE}
    talk.ask("PUT", f"{path}/headers", {"headers": given}, status=204)
    plain = {name: given[name] for name, hidden in SENSITIVE.items() if not hidden}
    secret = sorted(name for name, hidden in SENSITIVE.items() if hidden)
    shown = talk.ask("GET", f"{path}/headers", shows={"headers": lambda each: each == plain})
    talk.is_so("shown by name", secret, sorted(shown["sensitive"]))
    _post(talk, {})
    talk.sleep(5)
    talk.came("all are sent", {name.lower(): text for name, text in given.items()}, came[-1].headers)
    talk.came("the first is replaced", False, "x-first" in came[-1].headers)
    talk.ask(
        "PATCH",
        f"{path}/headers",
        {"headers": {"X-Plain": None, "x-other": "2"}, "deleteHeaders": ["Cookie"]},
        status=204,
    )
    _post(talk, {})
    talk.sleep(5)
    talk.came("changed", {"x-other": "2", "authorization": str}, came[-1].headers)
    talk.came("deleted", set(), {"x-plain", "cookie"} & {*came[-1].headers})
    # A name and a password in a URL are not shown; sent back, they stay, and for another host they are refused
    talk.ask("PUT", f"{path}/headers", {"headers": {}}, status=204)
    talk.ask("PATCH", path, {"url": "https://me:s3cret@talk-headers.example/in"})
    url = talk.ask("GET", path)["url"]
    talk.is_so("masked", (False, True), ("s3cret" in url, "********" in url))
    for sent in (url, url.replace("/in", "/other")):
        talk.ask("PATCH", path, {"url": sent}, shows={"url": sent})
    talk.ask("PATCH", path, {"url": url.replace("talk-headers", "talk-elsewhere")}, status=422)
    talk.ask("DELETE", path, status=204)


__all__ = ["webhooks"]
