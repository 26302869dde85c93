"""Traces, talked through: what receivers get of a producer's trace, and the spans that a collector is sent.

Sources: W3C Trace Context, OTLP over HTTP, docs/traces.md.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

from simulation.promises.talks.talk import Came, Talk

MINUTE = 60
TRACE, PARENT = 32 * "a", 16 * "b"
WITHIN_S = 3 * MINUTE
"""Spans come within two minutes, if a collector takes them."""


def queues(talk: Talk) -> None:
    """With queues of IronMQ."""
    talk.through(_passed_on, _exported)


def _push(talk: Talk, name: str) -> None:
    push = {"subscribers": [{"name": "traced", "url": f"https://talk-{name}.example/in"}], "retries": 1}
    talk.ask("PUT", f"/queues/{name}", {"queue": {"push": {**push, "retries_delay": 10}}})


def _post(talk: Talk, name: str, body: str, traceparent: str, tracestate: str = "") -> str:
    sends = talk.with_headers(traceparent=traceparent, **({"tracestate": tracestate} if tracestate else {}))
    return str(sends.ask("POST", f"/queues/{name}/messages", {"messages": [{"body": body}]}, status=201)["ids"][0])


def _passed_on(talk: Talk) -> None:
    """Each attempt has a parent of its own in the producer's trace; what is not valid is dropped."""
    fails = {"first": 1}

    def say(came: Came) -> tuple[int, bytes]:
        left = fails.get(came.body.decode(), 0)
        fails[came.body.decode()] = left - 1
        return (500, b"") if left > 0 else (200, b"")

    came = talk.listen("talk-traced.example", say)
    _push(talk, "traced")
    # More than 512 characters: the long member goes, and then, as that is not enough, the last one
    long, few = "long=" + 150 * "x", [f"m{number}=" + 97 * "x" for number in range(5)]
    _post(talk, "traced", "first", f"00-{TRACE}-{PARENT}-01", ",".join(("one=1", long, *few, "last=1")))
    for number, bad in enumerate(
        (
            f"00-{32 * '0'}-{PARENT}-01",
            f"00-{TRACE}-{16 * '0'}-01",
            f"00-{TRACE.upper()}-{PARENT}-01",
            f"ff-{TRACE}-{PARENT}-01",
            f"00-{TRACE[1:]}-{PARENT}-01",
            f"00-{TRACE}-{PARENT}-01-00",
            "x",
        )
    ):
        _post(talk, "traced", f"bad-{number}", bad, "one=1")
    _post(talk, "traced", "unsampled", f"00-{TRACE}-{PARENT}-00")
    _post(talk, "traced", "flags", f"00-{TRACE}-{PARENT}-ff")
    _post(talk, "traced", "later", f"01-{TRACE}-{PARENT}-01-more")
    talk.sleep(3 * MINUTE + talk.put_off_s)
    by_body: dict[str, list[Mapping[str, str]]] = {}
    for each in came:
        by_body.setdefault(each.body.decode(), []).append(each.headers)
    for number in range(7):
        [headers] = by_body[f"bad-{number}"]
        talk.came(f"what is not valid {number}", [], sorted({"traceparent", "tracestate"} & headers.keys()))
    first = [each["traceparent"].split("-") for each in by_body["first"]]
    talk.came("both tries, in the trace", [["00", TRACE, str, "01"], ["00", TRACE, str, "01"]], first)
    parents = [each[2] for each in first]
    talk.came("a parent of its own each", 3, len({*parents, PARENT}))
    talk.came(
        "long members go first", [",".join(("one=1", *few))] * 2, [each["tracestate"] for each in by_body["first"]]
    )
    for body, flags in (("unsampled", "00"), ("flags", "03"), ("later", "01")):
        [headers] = by_body[body]
        talk.came(body, ["00", TRACE, str, flags], headers["traceparent"].split("-"))
    talk.ask("DELETE", "/queues/traced")


def _exported(talk: Talk) -> None:
    """Spans of the attempts of sampled traces; what a collector does not take is tried again or counted."""
    says: dict[str, Any] = {"status": 200, "body": b"{}"}
    taken = talk.listen("talk-collector.example", lambda _: (says["status"], says["body"]))
    fails = {"failed": 9}
    came = talk.listen("talk-spans.example", lambda each: (503 if each.body.decode() in fails else 200, b"said"))
    collector = {"url": "https://talk-collector.example/v1/traces", "headers": {"X-Key": "hush"}}
    shown = talk.ask("PUT", "/traces", {"traces": {**collector, "on": True}}, shows={"traces": {"on": True}})
    talk.is_so("no secret", False, "hush" in json.dumps(shown))
    for bad in (
        {"url": "ftp://a.example/"},
        {"url": ""},
        {**collector, "headers": {"Content-Type": "x"}},
        {**collector, "on": 1},
    ):
        talk.refused("PUT", "/traces", {"traces": bad})
    talk.sleep(35)
    _push(talk, "spans")
    ids = {body: _post(talk, "spans", body, f"00-{TRACE}-{PARENT}-01") for body in ("well", "failed")}
    _post(talk, "spans", "unsampled", f"00-{TRACE}-{PARENT}-00")
    talk.ask("POST", "/queues/spans/messages", {"messages": [{"body": "untraced"}]}, status=201)
    talk.sleep(2 * WITHIN_S + talk.put_off_s)
    sent = {"content-type": "application/json", "content-encoding": "gzip", "x-key": "hush"}
    talk.came("how they come", True, all(sent.items() <= each.headers.items() for each in taken))
    spans = [span for each in taken for span in _spans(talk, each.body)]
    outer = [each for each in spans if each["name"] == "message_attempt"]
    inner = {each["parentSpanId"]: each for each in spans if each["name"] == "http_attempt"}
    talk.came("two of each attempt", (3, 3), (len(outer), len(spans) - len(outer)))
    receivers = {each.headers["traceparent"].split("-")[2]: each for each in came if "traceparent" in each.headers}
    for each in outer:
        about, within = _attributes(each), inner[each["spanId"]]
        number, failed = about["attempt_count"], about["messaging.message.id"] == ids["failed"]
        common = {
            "traceId": TRACE,
            "parentSpanId": PARENT,
            "kind": 1,
            "flags": 1,
            "status": {"code": 2 if failed else 1},
        }
        talk.came("an attempt", common, each)
        names = {"messaging.system": "pushhub", "messaging.destination.name": "spans", "pushhub.subscriber": "traced"}
        states = {"status": "failed" if failed else "delivered"}
        talk.came("what it tells", {**names, **states}, about)
        talk.came("of which message", True, about["messaging.message.id"] in ids.values())
        talk.came("its kind and parent", {"traceId": TRACE, "kind": 3, "parentSpanId": each["spanId"]}, within)
        receiver = receivers[within["spanId"]]
        said = {"http.response.status_code": "503" if failed else "200", "http.response.body.size": "4"}
        size = {"http.request.body.size": f"{len(receiver.body)}"}
        talk.came("the request", {**said, **size}, _attributes(within))
        talk.came("its error", "503" if failed else None, _attributes(within).get("error.type"))
        talk.came("its number", "1" if not failed else lambda one: one in {"1", "2"}, number)
        began, ended = (int(each[name]) for name in ("startTimeUnixNano", "endTimeUnixNano"))
        at = talk.epoch_s() * 1_000_000_000
        talk.came("its times", True, at - 3_600 * 10**9 < began <= ended <= at)
    talk.ask("GET", "/traces", shows={"traces": {"exported": 6, "dropped": 0}})
    says.update(status=200, body=json.dumps({"partialSuccess": {"rejectedSpans": "1", "errorMessage": "no"}}).encode())
    _post(talk, "spans", "rejected", f"00-{TRACE}-{PARENT}-01")
    talk.sleep(WITHIN_S)
    talk.ask("GET", "/traces", shows={"traces": {"exported": 7, "dropped": 1}})
    says.update(status=400, body=b"")
    _post(talk, "spans", "refused", f"00-{TRACE}-{PARENT}-01")
    talk.sleep(WITHIN_S)
    talk.ask("GET", "/traces", shows={"traces": {"exported": 7, "dropped": 3}})
    before = len(taken)
    says.update(status=503)
    _post(talk, "spans", "again", f"00-{TRACE}-{PARENT}-01")
    talk.sleep(WITHIN_S)
    talk.came("tried again", True, len(taken) >= before + 2)
    says.update(status=200)
    talk.sleep(10 * MINUTE)
    talk.ask("GET", "/traces", shows={"traces": {"exported": 9, "dropped": 3, "failing": None}})
    talk.ask("DELETE", "/traces")
    talk.sleep(35)
    before = len(taken)
    _post(talk, "spans", "stopped", f"00-{TRACE}-{PARENT}-01")
    talk.sleep(WITHIN_S)
    talk.came("no more", before, len(taken))
    talk.ask("DELETE", "/queues/spans")


def _spans(talk: Talk, body: bytes) -> Sequence[Mapping[str, Any]]:
    [resource] = json.loads(gzip.decompress(body))["resourceSpans"]
    of = {each["key"]: each["value"] for each in resource["resource"]["attributes"]}
    talk.came("whose", {"service.name": {"stringValue": "pushhub"}}, of)
    [scope] = resource["scopeSpans"]
    talk.came("at most 120", True, len(scope["spans"]) <= 120)
    spans: Sequence[Mapping[str, Any]] = scope["spans"]
    return spans


def _attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in span["attributes"]}


__all__ = ["queues"]
