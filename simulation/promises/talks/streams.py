"""Streams: what is posted, listed, read, written to a URL in batches, skipped, stopped, and made by code.

Sources: docs/streaming.md, docs/streaming-code.md and Svix's streaming as its client uses it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.transformed import arrived, simulated
from simulation.promises.talks.webhooks import is_signed

KIND, OTHER = "streams.made", "streams.else"
STREAM = "/stream/flows"
SETTLED_S = 5
"""An event is written three seconds after it was posted at the earliest."""


def webhooks(talk: Talk) -> None:
    """All of streams that needs no AWS."""
    talk.through(_begun, _posted, _batches, _chosen, _stopped, _disabled, _polled, _coded, _over)


def _begun(talk: Talk) -> None:
    for name in (KIND, OTHER):
        talk.ask("POST", "/stream/event-type", {"name": name, "description": "d"}, status=201)
    talk.ask(
        "POST",
        "/stream",
        {"name": "Flows", "uid": "flows"},
        status=201,
        shows={"id": lambda each: each.startswith("strm_")},
    )


def _over(talk: Talk) -> None:
    stream = talk.ask("GET", STREAM)["id"]
    for path in (f"/app/{stream}", "/app/flows", f"/app/{stream}/msg", f"/app/{stream}/endpoint"):
        talk.ask("GET", path, status=404)
    talk.ask("DELETE", STREAM, status=204)
    talk.ask("POST", f"{STREAM}/events", {"events": [{"eventType": KIND, "payload": "{}"}]}, status=404)
    for name in (KIND, OTHER):
        talk.ask("DELETE", f"/stream/event-type/{name}?expunge=true", status=204)


def _events(*payloads: str, kind: str = KIND, **more: Any) -> dict[str, Any]:
    return {"events": [{"eventType": kind, "payload": each, **more} for each in payloads]}


def _post(talk: Talk, *payloads: str, kind: str = KIND, **more: Any) -> None:
    talk.ask("POST", f"{STREAM}/events", _events(*payloads, kind=kind, **more), status=202)


def _sink(talk: Talk, uid: str, **more: Any) -> str:
    config = {"url": f"https://talk-{uid}.example/in"}
    fields = {"type": "http", "config": config, "uid": uid, **more}
    talk.ask("POST", f"{STREAM}/sink", fields, status=201, shows={"status": "enabled", "uid": uid})
    return f"{STREAM}/sink/{uid}"


def _written(came: Sequence[Came]) -> list[list[str]]:
    """The payloads of each batch, which are the very text that was posted."""
    return [[each["payload"] for each in json.loads(one.body)["events"]] for one in came]


def _posted(talk: Talk) -> None:
    """Any text, up to a hundred at once, listed newest first; the same request again is the same events."""
    payloads = ['{"n": 1}', "no JSON", '["a"]', "7", ""]
    for each in payloads:
        _post(talk, each, channels=["a"] if each == "7" else None)
        talk.sleep(0.1, exactly=True)
    once = talk.with_headers(idempotency_key="events")
    for _ in range(2):
        once.ask("POST", f"{STREAM}/events", _events("b1", "b2"), status=202)
    once.ask("POST", f"{STREAM}/events", _events("b3"), status=422)
    shown = talk.ask("GET", f"{STREAM}/events", shows={"data": 7 * [{"eventType": KIND}], "done": True})["data"]
    found = [each["payload"].get("rawPayload", each["payload"]) for each in shown]
    talk.is_so("newest first", ["b2", "b1", "", "7", '["a"]', "no JSON", {"n": 1}], found)
    talk.ask(
        "GET", f"{STREAM}/events?limit=2", shows={"data": [{"id": each["id"]} for each in shown[:2]], "done": False}
    )
    talk.ask("GET", f"{STREAM}/events?channel=a", shows={"data": [{"id": shown[3]["id"]}]})
    talk.ask("GET", f"{STREAM}/events?event_types={OTHER}", shows={"data": []})
    talk.ask(
        "GET",
        f"{STREAM}/events?before={shown[4]['timestamp']}",
        shows={"data": [{"id": each["id"]} for each in shown[5:]]},
    )
    talk.ask(
        "GET",
        f"{STREAM}/events?after={shown[3]['timestamp']}",
        shows={"data": [{"id": each["id"]} for each in shown[:4]]},
    )
    talk.ask("DELETE", f"{STREAM}/events/{shown[6]['id']}/content", status=204)
    talk.ask(
        "GET", f"{STREAM}/events", shows={"data": [*6 * [...], {"payload": lambda each: each == {"expired": True}}]}
    )
    talk.ask("DELETE", f"{STREAM}/events/msg_none/content", status=404)
    for count, status in ((100, 202), (101, 422), (0, 422)):
        talk.ask("POST", f"{STREAM}/events", _events(*(f"{n}" for n in range(count))), status=status)
    most = 256 * 1_024
    for size, status in ((most, 202), (most + 1, 422)):
        talk.ask("POST", f"{STREAM}/events", _events(size * "x"), status=status)
    event = {"eventType": KIND, "payload": "{}"}
    for bad in (
        {},
        {"events": event},
        {"events": [{**event, "payload": {}}]},
        {"events": [{"payload": "{}"}]},
        {"events": [{**event, "eventType": "a b"}]},
        {"events": [{**event, "channels": "a"}]},
        {"events": [event, {**event, "payload": None}]},
    ):
        talk.ask("POST", f"{STREAM}/events", bad, status=422)
    talk.ask("POST", "/stream/none/events", _events("x"), status=404)
    its_stream = {"stream": {"name": "With its first", "uid": "first"}}
    talk.ask("POST", "/stream/first/events", {**_events("x"), **its_stream}, status=202)
    talk.ask("GET", "/stream/first", shows={"name": "With its first"})
    talk.ask("DELETE", "/stream/first", status=204)


def _batches(talk: Talk) -> None:
    """What is posted from then on, in order, in batches of a size, or after a wait; JSON as it is, text as text."""
    came = talk.listen("talk-batched.example", lambda _: (200, b""))
    waited = talk.listen("talk-waited.example", lambda _: (200, b""))
    batched = _sink(talk, "batched", batchSize=3)
    waits = _sink(talk, "waited", batchSize=100, maxWaitSecs=60)
    key = talk.ask("GET", f"{batched}/secret")["key"]
    began = talk.now()
    _post(talk, '{"n": 1}', "two", "[3]", "4", "null", '"six"', "seven")
    talk.sleep(3.5 + SETTLED_S)
    written = ['{"n": 1}', "two", "[3]", "4", "null", '"six"', "seven"]
    talk.came("in order", written, [each for batch in _written(came) for each in batch])
    talk.came("of three at most", True, all(len(batch) <= 3 for batch in _written(came)))
    first = json.loads(came[0].body)["events"][0]
    talk.came("an event", {"eventType": KIND, "timestamp": str}, first)
    talk.came("signed", len(came) * [True], [is_signed(each, key) for each in came])
    talk.came("not too soon", True, came[0].at - began >= 3_000_000)
    talk.came("nothing before its wait", [], waited)
    last = talk.ask("GET", f"{STREAM}/events?limit=1")["data"][0]["id"]
    talk.ask("GET", batched, shows={"status": "enabled", "currentIterator": last})
    talk.sleep(70)
    talk.came("then all at once", [written], _written(waited))
    talk.came("after its wait", lambda each: 58 <= each <= 75, (waited[0].at - began) / 1_000_000)
    # As much as is waited for goes at once
    talk.ask("PATCH", waits, {"type": "http", "batchSize": 2})
    _post(talk, "a", "b", "c")
    talk.sleep(10)
    talk.came("a full batch does not wait", ["a", "b"], _written(waited)[1])
    for path in (batched, waits):
        talk.ask("DELETE", path, status=204)
    _post(talk, "nobody")
    talk.sleep(10)
    talk.came("nothing is written any more", False, any("nobody" in batch for batch in _written(came)))


def _chosen(talk: Talk) -> None:
    """Event types and channels choose; what is switched off goes on where it was; headers are sent."""
    came = talk.listen("talk-chosen.example", lambda _: (200, b""))
    path = _sink(talk, "chosen", eventTypes=[KIND], channels=["a", "b"])
    talk.ask("PATCH", f"{path}/headers", {"headers": {"X-Team": "orders"}})
    for number, (kind, channels) in enumerate(
        ((KIND, ["a"]), (OTHER, ["a"]), (KIND, ["c"]), (KIND, None), (KIND, ["c", "b"]))
    ):
        _post(talk, f"{number}", kind=kind, channels=channels)
    talk.sleep(3 + SETTLED_S)
    talk.came("those it wants", ["0", "4"], [each for batch in _written(came) for each in batch])
    talk.came("its headers", {"orders"}, {each.headers.get("x-team") for each in came})
    talk.ask("PATCH", path, {"type": "http", "status": "disabled"}, shows={"status": "disabled"})
    _post(talk, "5", channels=["a"])
    talk.sleep(3 + SETTLED_S)
    talk.came("nothing meanwhile", 2, sum(len(batch) for batch in _written(came)))
    talk.ask(
        "PATCH",
        path,
        {"type": "http", "status": "enabled", "eventTypes": None, "channels": None},
        shows={"status": "enabled"},
    )
    talk.sleep(3 + SETTLED_S)
    talk.came("then it goes on", ["0", "4", "5"], [each for batch in _written(came) for each in batch])
    talk.ask("DELETE", path, status=204)


def _stopped(talk: Talk) -> None:
    """A batch that fails stops its sink alone, for ever longer; it is tried when asked for, or left out."""
    says = {"status": 500}
    came = talk.listen("talk-stopped.example", lambda _: (says["status"], b"no"))
    well = talk.listen("talk-well.example", lambda _: (200, b""))
    path, other = _sink(talk, "stopped", batchSize=1), _sink(talk, "well")
    _post(talk, "1", "2", "3")
    talk.sleep(40)
    talk.came("the other goes on", ["1", "2", "3"], [each for batch in _written(well) for each in batch])
    talk.came("the same batch", {("1",)}, {tuple(batch) for batch in _written(came)})
    talk.came("by the same id", 1, len({each.headers["webhook-id"] for each in came}))
    gaps = [(after.at - before.at) / 1_000_000 for before, after in pairwise(came)]
    talk.came(
        "ever longer",
        True,
        all(0.8 * wait <= gap <= 1.2 * wait + 10 for gap, wait in zip(gaps, (5, 10, 20), strict=False)),
    )
    talk.ask("GET", path, shows={"status": "retrying", "failureReason": "Internal Server Error", "nextRetryAt": str})
    before = len(came)
    talk.ask("POST", f"{path}/force-retry", shows={"status": str})
    talk.sleep(5)
    talk.came("when asked for", True, len(came) > before)
    talk.ask("POST", f"{path}/skip")
    talk.sleep(8)
    talk.came("the next one", ["2"], _written(came)[-1])
    says["status"] = 200
    talk.ask("PATCH", path, {"type": "http", "metadata": {"a": "b"}})
    talk.sleep(10 + SETTLED_S)
    talk.came("the rest", [["2"], ["3"]], _written(came)[-2:])
    talk.ask("GET", path, shows={"status": "enabled"})
    for each in (path, other):
        talk.ask("DELETE", each, status=204)


def _disabled(talk: Talk) -> None:
    """A sink that is disabled before it has written anything begins with what was posted since it was made."""
    came = talk.listen("talk-off.example", lambda _: (200, b""))
    path = _sink(talk, "off")
    talk.ask("PATCH", path, {"type": "http", "status": "disabled"}, shows={"status": "disabled"})
    talk.sleep(5)
    _post(talk, "1", "2")
    talk.sleep(30)
    talk.came("nothing", [], came)
    talk.ask("PATCH", path, {"type": "http", "status": "enabled"}, shows={"status": "enabled"})
    _post(talk, "3")
    talk.sleep(30)
    talk.came("all of it", ["1", "2", "3"], [each for batch in _written(came) for each in batch])
    talk.ask("DELETE", path, status=204)


def _polled(talk: Talk) -> None:
    """A poller: from its making on, in order; its iterator says that everything before it has arrived."""
    talk.ask("POST", f"{STREAM}/sink", {"type": "poller", "config": {}, "uid": "polled"}, status=201)
    path = f"{STREAM}/sink/polled"
    talk.ask("GET", f"{path}/events", shows={"data": [], "done": True, "iterator": str})
    _post(talk, "1", "2")
    _post(talk, "3", kind=OTHER)
    talk.sleep(SETTLED_S, exactly=True)
    first = talk.ask(
        "GET",
        f"{path}/events?limit=2",
        shows={"data": [{"payload": "1", "eventType": KIND}, {"payload": "2"}], "done": False},
    )
    talk.ask("GET", f"{path}/events?limit=2", shows={"data": [{"payload": "1"}, {"payload": "2"}]})
    rest = talk.ask(
        "GET",
        f"{path}/events?iterator={first['iterator']}",
        shows={"data": [{"payload": "3", "eventType": OTHER}], "done": True},
    )
    talk.ask("GET", f"{path}/events?limit=2", shows={"data": [{"payload": "3"}]})
    talk.ask("GET", f"{path}/events?iterator={rest['iterator']}", shows={"data": []})
    talk.ask("GET", f"{path}/events", shows={"data": []})
    after = talk.ask("GET", f"{STREAM}/events?limit=2")["data"][1]["timestamp"]
    shown = talk.ask("GET", f"{path}/events?after={after}")["data"]
    talk.is_so("from a time on", True, [each["payload"] for each in shown][-1] == "3")
    for query in ("iterator=x", "limit=0", "limit=251"):
        talk.ask("GET", f"{path}/events?{query}", status=422)
    http = _sink(talk, "no-poller")
    talk.is_so("a poller alone is read", True, talk.status("GET", f"{http}/events") in {400, 404, 422})
    for each in (path, http):
        talk.ask("DELETE", each, status=204)


CODE = """function handler(input) {
  const kept = input.events.filter((each) => each.payload.id);
  if (!kept.length) return { cancel: true };
  const headers = { "X-Kind": kept[0].eventType, "X-Env": input.env.KEY };
  return { config: { headers }, data: kept.map((each) => each.payload.id) };
}"""


def _coded(talk: Talk) -> None:
    """Code makes the body of a batch; what it leaves out counts as arrived; if it fails, the sink waits."""
    came = talk.listen("talk-coded.example", lambda _: (200, b""))
    path = _sink(talk, "coded")
    code = f"{path}/transformation"
    talk.ask("GET", code, shows={"code": None, "enabled": False, "variables": {}, "language": "javascript"})
    talk.ask("PATCH", code, {"code": CODE, "variables": {"KEY": "value"}}, shows={})
    talk.ask("GET", code, shows={"code": CODE, "enabled": True, "variables": {"KEY": "********"}})
    tried = {"code": CODE, "eventType": KIND, "payload": {"id": 7}, "variables": {"KEY": "v"}}
    tried_so = simulated(talk, code, tried, shows={"cancel": False, "method": "POST"})
    talk.is_so("tried", {"data": [7]}, json.loads(tried_so["payload"]))
    simulated(talk, code, {**tried, "payload": {}}, shows={"cancel": True})
    simulated(talk, code, {**tried, "code": "function handler() { throw new Error('no') }"}, status=422)
    _post(talk, '{"id": 1}', '{"no": 2}', '{"id": 3}')
    arrived(talk, came, 1)
    ids = [each for one in came for each in json.loads(one.body)["data"]]
    talk.came("what code kept", [1, 3], ids)
    talk.came(
        "its headers", {("value", KIND)}, {(each.headers.get("x-env"), each.headers.get("x-kind")) for each in came}
    )
    last = talk.ask("GET", f"{STREAM}/events?limit=1")["data"][0]["id"]
    talk.ask("GET", path, shows={"currentIterator": last})
    talk.ask("PATCH", code, {"code": "function handler(input) { throw new Error('broken: ' + input.env.KEY) }"})
    _post(talk, '{"id": 4}')
    talk.sleep(15 + SETTLED_S)
    shown = talk.ask("GET", path, shows={"status": "retrying", "failureReason": str})
    talk.is_so("no variable is shown", False, "value" in shown["failureReason"])
    talk.ask("PATCH", code, {"code": None}, shows={})
    talk.ask("GET", code, shows={"code": None, "enabled": False})
    talk.sleep(10 + SETTLED_S)
    talk.came("without code", [['{"id": 4}']], _written(came[-1:]))
    for bad in (
        {"code": 9 * "c"},
        {"code": 51_201 * "c"},
        {"language": "cobol"},
        {"variables": {"a": 1}},
        {"enabled": "yes"},
    ):
        talk.ask("PATCH", code, bad, status=422)
    talk.ask("DELETE", path, status=204)


__all__ = ["webhooks"]
