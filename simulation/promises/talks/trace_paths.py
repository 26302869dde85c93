"""Which ways a producer's trace goes: with all messages of a request, through other queues, from webhooks and events,
to services, their polls and children; and to whom it does not.

Source: docs/traces.md; W3C Trace Context; the distributed tracing extension of CloudEvents.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

from simulation.promises.talks.push_queues import LATE_S, MINUTE, OK, created, posted, subscriber
from simulation.promises.talks.talk import Came, Said, Talk

TRACE, PARENT = 32 * "c", 16 * "d"
OTHER_TRACE = 32 * "e"
TRACEPARENT, OTHER = f"00-{TRACE}-{PARENT}-01", f"00-{OTHER_TRACE}-{PARENT}-01"


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_queues, _own, _webhooks, _stores, _wanted, _spans)


def _trace(came: Came) -> str:
    """The trace of a request; none is empty."""
    return came.headers.get("traceparent", "-").split("-")[1]


def _by_body(came: Sequence[Came]) -> dict[str, list[tuple[str, str | None]]]:
    """Trace and state of the requests for each body."""
    found: dict[str, list[tuple[str, str | None]]] = {}
    for each in came:
        found.setdefault(each.body.decode(), []).append((_trace(each), each.headers.get("tracestate")))
    return found


def _queues(talk: Talk) -> None:
    """All messages of a request go on in its trace, to each subscriber, and through another queue; messages of other
    requests do not, and ``baggage`` never does.
    """
    came = {name: talk.listen(f"paths-{name}.example", lambda _: OK) for name in ("one", "two", "next")}
    following = created(talk, "paths-next", subscriber("paths-next"), retries=0)
    several = (subscriber("paths-one"), subscriber("paths-two"), {"name": "on", "url": "ironmq:///paths-next"})
    queue = created(talk, "paths", *several, retries=0)
    traced = talk.with_headers(traceparent=TRACEPARENT, tracestate="a=1,b=2", baggage="k=v")
    posted(traced, queue, "first", "second")
    posted(talk, queue, "third")
    posted(talk.with_headers(traceparent=OTHER), queue, "fourth")
    # Without the one the other says nothing
    posted(talk.with_headers(tracestate="a=1"), queue, "fifth")
    talk.sleep(30 + 2 * talk.put_off_s)
    expected = {
        "first": [(TRACE, "a=1,b=2")],
        "second": [(TRACE, "a=1,b=2")],
        "third": [("", None)],
        "fourth": [(OTHER_TRACE, None)],
        "fifth": [("", None)],
    }
    for name, heard in came.items():
        talk.came(f"traces of {name}", expected, _by_body(heard))
        talk.came("no baggage", [], [each for each in heard if "baggage" in each.headers])
    parents = [each.headers["traceparent"].split("-")[2] for heard in came.values() for each in heard if _trace(each)]
    talk.came("a parent of its own for each", 9, len({*parents} - {PARENT}))
    for path in (queue, following):
        talk.ask("DELETE", path)


def _own(talk: Talk) -> None:
    """What a subscriber or a message has of its own is sent instead, the message's before the subscriber's."""
    subscribers = {
        "paths-own": {"headers": {"traceparent": OTHER}},
        "paths-plain": {},
    }
    came = {name: talk.listen(f"{name}.example", lambda _: OK) for name in subscribers}
    queue = created(talk, "paths-owned", *(subscriber(name, **each) for name, each in subscribers.items()), retries=0)
    traced = talk.with_headers(traceparent=TRACEPARENT)
    posted(traced, queue, "traced")
    third = f"00-{32 * 'f'}-{PARENT}-01"
    posted(traced, queue, "pushed", push_headers={"Traceparent": third})
    talk.sleep(10 + talk.put_off_s)
    expected = {
        "paths-own": {"traced": [(OTHER_TRACE, None)], "pushed": [(32 * "f", None)]},
        "paths-plain": {"traced": [(TRACE, None)], "pushed": [(32 * "f", None)]},
    }
    talk.came("whose trace", expected, {name: _by_body(heard) for name, heard in came.items()})
    sent = [each.headers["traceparent"] for each in came["paths-own"] if each.body == b"traced"]
    talk.came("as it was set", [OTHER], sent)
    talk.ask("GET", queue, shows={"queue": {"total_messages": 2}})
    talk.ask("DELETE", queue)


def _webhooks(talk: Talk) -> None:
    """Of a webhook its headers count, or else what the event in it says of itself."""
    came = talk.listen("paths-hooked.example", lambda _: OK)
    queue = created(talk, "paths-hooked", subscriber("paths-hooked"), retries=0)
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
    binary = {f"ce_{name}": value for name, value in event.items()}
    sent: Sequence[tuple[str, Mapping[str, str], Mapping[str, str], str]] = (
        ("plain", {"traceparent": TRACEPARENT}, {}, TRACE),
        ("untraced", {}, {}, ""),
        ("binary", {**binary, "ce_id": "2", "ce_traceparent": TRACEPARENT}, {}, TRACE),
        ("both", {**binary, "ce_id": "3", "ce_traceparent": OTHER, "traceparent": TRACEPARENT}, {}, TRACE),
        ("structured", {}, {**event, "id": "4", "traceparent": TRACEPARENT, "tracestate": "a=1"}, TRACE),
        ("structured too", {"traceparent": TRACEPARENT}, {**event, "id": "5", "traceparent": OTHER}, TRACE),
        ("structured untraced", {}, {**event, "id": "6"}, ""),
    )
    for body, headers, structured, _ in sent:
        kind = "application/cloudevents+json" if structured else "text/plain"
        content = json.dumps({**structured, "data": body}) if structured else body
        talk.with_headers(**headers, content_type=kind).ask("POST", f"{queue}/webhook", content.encode(), status=201)
    talk.sleep(10 + talk.put_off_s)
    for body, _, _, trace in sent:
        talk.came(f"the trace of {body}", [trace], [_trace(each) for each in came if _is(each, body)])
    for each in came:
        expected = "a=1" if _is(each, "structured") else None
        talk.came("its state", expected, each.headers.get("tracestate"))
    talk.ask("GET", queue, shows={"queue": {"total_messages": 7}})
    talk.ask("DELETE", queue)


def _is(came: Came, body: str) -> bool:
    text = came.body.decode()
    return text == body or (text.startswith("{") and json.loads(text)["data"] == body)


def _stores(talk: Talk) -> None:
    """Services get it at each try and poll, and with the messages that they answer with."""
    asked: list[str] = []

    def parent(came: Came) -> Said:
        asked.append(came.path)
        message_id = json.loads(came.body).get("message_id") if came.body else None
        if len(asked) == 1:
            return 500, b"no"
        if len(asked) == 2:
            return 200, json.dumps({"message_id": message_id, "delay": 1, "update_url": "/poll"}).encode()
        return 200, json.dumps(
            {"message_id": message_id, "messages": [{"message": "paths:child", "payload": {}}]}
        ).encode()

    def done(came: Came) -> Said:
        return 200, json.dumps({"message_id": json.loads(came.body)["message_id"]}).encode()

    store = talk.at(f"/api/stores/{talk.project}").with_headers(authorization="", x_augury_token=talk.token)
    parents = talk.listen("paths-parent.example", parent)
    children = talk.listen("paths-child.example", done)
    mappings = []
    options = {"retry_base": 10, "retry_cap": 10}
    for name in ("parent", "child"):
        fields = {"name": name, "url": f"https://paths-{name}.example/in", "token": "t", "messages": [f"paths:{name}"]}
        made_mapping = store.ask("POST", "/mappings", {"mapping": {**fields, "options": options}}, status=201)
        mappings.append(f"/mappings/{made_mapping['id']}")
    talk.sleep(MINUTE + 1)
    traced = store.with_headers(traceparent=TRACEPARENT, tracestate="a=1")
    traced.ask("POST", "/messages", {"message": "paths:parent", "payload": {}}, status=201)
    talk.sleep(2 * LATE_S + talk.put_off_s)
    store.ask("POST", "/messages", {"message": "paths:child", "payload": {"n": 1}}, status=201)
    talk.sleep(20 + talk.put_off_s)
    talk.came("tries and a poll", 3, len(parents))
    talk.came(
        "in the trace", 3 * [(TRACE, "a=1")], [(_trace(each), each.headers.get("tracestate")) for each in parents]
    )
    talk.came("a parent each", 3, len({each.headers["traceparent"].split("-")[2] for each in parents} - {PARENT}))
    talk.came("what they have", [{}, {"n": 1}], [json.loads(each.body)["payload"] for each in children])
    talk.came("a child, and what has none", [TRACE, ""], [_trace(each) for each in children])
    for path in mappings:
        store.ask("DELETE", path)


def _wanted(talk: Talk) -> None:
    """Endpoints of applications get it if the project wants that, and nobody if it does not want it at all: within
    half a minute, and also of messages that are waiting.
    """
    hooks = talk.at("/api/v1").with_headers(authorization=f"Bearer {talk.token}", traceparent=TRACEPARENT)
    heard = talk.listen("paths-endpoint.example", lambda _: OK)
    came = talk.listen("paths-wanted.example", lambda _: OK)
    application = hooks.ask("POST", "/app", {"name": "Paths"}, status=201)["id"]
    hooks.ask("POST", f"/app/{application}/endpoint", {"url": "https://paths-endpoint.example/in"}, status=201)
    queue = created(talk, "paths-wanted", subscriber("paths-wanted"), retries=0)
    traced = talk.with_headers(traceparent=TRACEPARENT)
    for wanted, at_queue, at_endpoint in (("", TRACE, ""), ("all", TRACE, TRACE), ("off", "", ""), ("own", TRACE, "")):
        posted(traced, queue, f"waits for {wanted}", delay=60)
        if wanted:
            talk.typed("projects", "traces", talk.project, wanted, shows=[{"traces": wanted}])
            talk.sleep(31, exactly=True)
        posted(traced, queue, f"posted for {wanted}")
        hooks.ask("POST", f"/app/{application}/msg", {"eventType": "paths", "payload": {}}, status=202)
        talk.sleep(60 + LATE_S + talk.put_off_s)
        traces = {body: trace for body, [(trace, _)] in _by_body(came[-2:]).items()}
        expected = {f"waits for {wanted}": at_queue, f"posted for {wanted}": at_queue}
        talk.came(f"at the queue's: {wanted}", expected, traces)
        talk.came(f"at the application's: {wanted}", at_endpoint, _trace(heard[-1]))
        states = [name for name in heard[-1].headers if name.startswith("trace")]
        talk.came("and nothing else of it", ["traceparent"] if at_endpoint else [], states)
    talk.came("each once", (8, 4), (len(came), len(heard)))
    hooks.ask("DELETE", f"/app/{application}", status=204)
    talk.ask("GET", queue, shows={"queue": {"total_messages": 8}})
    talk.ask("DELETE", queue)


def _spans(talk: Talk) -> None:
    """Spans of webhooks' attempts come also where endpoints get no trace, those of retries by number, and of polls; a
    collector that is switched off gets none.
    """
    collected = talk.listen("paths-collector.example", lambda _: (200, b"{}"))
    collector = {"url": "https://paths-collector.example/v1/traces"}
    talk.ask("PUT", "/traces", {"traces": {**collector, "on": True}}, shows={"traces": {"on": True}})
    talk.sleep(35)
    hooks = talk.at("/api/v1").with_headers(authorization=f"Bearer {talk.token}", traceparent=TRACEPARENT)
    came = talk.listen("paths-spans.example", lambda _: OK)
    application = hooks.ask("POST", "/app", {"name": "Spans", "uid": "paths-spans"}, status=201)["id"]
    hooks.ask("POST", f"/app/{application}/endpoint", {"url": "https://paths-spans.example/in"}, status=201)
    message_id = hooks.ask("POST", f"/app/{application}/msg", {"eventType": "paths", "payload": {}}, status=202)["id"]
    ill = talk.listen("paths-retried.example", lambda _: (503, b""))
    queue = created(talk, "paths-retried", subscriber("paths-retried"), retries=2, retries_delay=5)
    posted(talk.with_headers(traceparent=OTHER), queue, "x")
    talk.sleep(5 * MINUTE + 2 * LATE_S + talk.put_off_s)
    talk.came("without a trace", [False], ["traceparent" in each.headers for each in came])
    talk.came("three tries", 3, len(ill))
    spans = [span for each in collected for span in _outer(each.body)]
    hooked = [each for each in spans if each["traceId"] == TRACE]
    talk.came("of the endpoint", [{"parentSpanId": PARENT, "status": {"code": 1}}], hooked)
    talk.came("of its message", [True], [message_id in json.dumps(each) for each in hooked])
    tried = sorted(_value(each, "attempt_count") for each in spans if each["traceId"] == OTHER_TRACE)
    talk.came("of all tries", ["1", "2", "3"], tried)
    talk.ask("PUT", "/traces", {"traces": {**collector, "on": False}}, shows={"traces": {"on": False}})
    talk.sleep(35)
    before = len(collected)
    hooks.ask("POST", f"/app/{application}/msg", {"eventType": "paths", "payload": {}}, status=202)
    talk.sleep(4 * MINUTE)
    talk.came("none any more", before, len(collected))
    talk.ask("DELETE", "/traces")
    hooks.ask("DELETE", f"/app/{application}", status=204)
    talk.ask("DELETE", queue)


def _outer(body: bytes) -> list[Mapping[str, Any]]:
    """The spans of attempts at messages in what a collector gets."""
    resources = json.loads(gzip.decompress(body))["resourceSpans"]
    scopes = [scope for each in resources for scope in each["scopeSpans"]]
    return [span for each in scopes for span in each["spans"] if span["name"] == "message_attempt"]


def _value(span: Mapping[str, Any], name: str) -> str:
    return next(str(next(iter(each["value"].values()))) for each in span["attributes"] if each["key"] == name)


__all__ = ["through"]
