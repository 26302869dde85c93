"""Streams while something goes wrong or is changed: a sink that waits and is changed, batches that are left out, events
that are erased, readers that read again, batches as large as each service takes, and two streams with equal names.

Sources: docs/streaming.md, docs/streaming-code.md, docs/destinations.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.aws_services import KEY_ID, REGION, got, takes
from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.webhooks import OTHER_SECRET, is_signed

KIND, OTHER = "meanwhile.made", "meanwhile.else"
STREAM, TWIN = "/stream/meanwhile", "/stream/twin"
SETTLED_S = 5
"""An event is written three seconds after it was posted at the earliest."""

LONGEST_WAIT_S = 900
"""What failed is tried again within a quarter of an hour."""

A_DAY_S = 86_400
AT_A_TIME = 100
MOST_RECORDS = 500
MOST_FOR_CODE = 512 * 1_024
LARGE = 200_000


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_fields, _changed, _resized, _left_out, _erased, _read_again, _records, _for_code, _twins, _disabled)


def _stream(talk: Talk, path: str = STREAM) -> str:
    uid = path.rpartition("/")[2]
    return str(talk.ask("POST", "/stream", {"name": "Meanwhile", "uid": uid}, status=201)["id"])


def _post(talk: Talk, *payloads: str, path: str = STREAM, kind: str = KIND) -> None:
    events = [{"eventType": kind, "payload": each} for each in payloads]
    talk.ask("POST", f"{path}/events", {"events": events}, status=202)


def _sink(talk: Talk, uid: str, *, path: str = STREAM, host: str = "", **more: Any) -> str:
    """A sink that posts to a host; its path."""
    config = {"url": f"https://{host or f'meanwhile-{uid}.example'}/in"}
    talk.ask("POST", f"{path}/sink", {"type": "http", "uid": uid, "config": config, **more}, status=201)
    return f"{path}/sink/{uid}"


def _switch(talk: Talk, sink: str, status: str) -> None:
    talk.ask("PATCH", sink, {"type": "http", "status": status}, shows={"status": status})


def _skip(talk: Talk, sink: str, *, shows: object) -> None:
    """Leave out a batch, which is refused while it is being written."""
    for _ in range(5):
        answer = talk.answered("POST", f"{sink}/skip")
        if answer.status == 200:
            talk.is_so("what is left out", shows, answer.body)
            return
        talk.sleep(3)
    talk.is_so("a batch is left out", True, False)


def _payloads(came: Sequence[Came]) -> list[list[str]]:
    """The payloads of each batch."""
    return [[each["payload"] for each in json.loads(one.body)["events"]] for one in came]


def _ids(talk: Talk, path: str = STREAM) -> list[str]:
    """The ids of all events, oldest first."""
    return [each["id"] for each in talk.ask("GET", f"{path}/events?limit=250")["data"]][::-1]


def _over(talk: Talk, *paths: str) -> None:
    for each in paths or (STREAM,):
        talk.ask("DELETE", each, status=204)


def _gaps(came: Sequence[Came]) -> list[float]:
    return [(after.at - before.at) / SECOND for before, after in pairwise(came)]


def _fields(talk: Talk) -> None:
    """Each event of a batch has its own type, time and id, at each kind of sink, as the stream's list has it."""
    kinds = (KIND, OTHER, KIND)
    for name in (KIND, OTHER):
        talk.ask("POST", "/event-type", {"name": name, "description": "d"}, status=201)
    stream = _stream(talk)
    queue = "https://meanwhile-sqs.example/111122223333/orders"
    configs: dict[str, dict[str, str]] = {
        "amazonS3": {"bucket": "orders"},
        "kinesis": {"streamName": "orders"},
        "sqs": {"queueUrl": queue},
        "eventBridge": {"eventBusName": f"arn:aws:events:{REGION}:111122223333:event-bus/orders"},
    }
    of_url = {"amazonS3": "s3", "eventBridge": "events"}
    came = {}
    for kind, config in configs.items():
        service = of_url.get(kind, kind)
        came[service] = talk.listen(f"meanwhile-{service}.example", takes(service))
        keys = {"accessKeyId": KEY_ID, "secretAccessKey": "wJalrXUtnFEMI/K7MDENG", "region": REGION}
        whole = {**keys, "endpointUrl": f"https://meanwhile-{service}.example", **config}
        talk.ask("POST", f"{STREAM}/sink", {"type": kind, "config": whole, "maxWaitSecs": 10}, status=201)
    came["http"] = talk.listen("meanwhile-http.example", lambda _: (200, b""))
    _sink(talk, "http", maxWaitSecs=10)
    talk.ask("POST", f"{STREAM}/sink", {"type": "poller", "config": {}, "uid": "reads"}, status=201)
    talk.sleep(2)
    for number, kind in enumerate(kinds):
        _post(talk, f'{{"n": {number}}}', kind=kind)
        talk.sleep(1.1, exactly=True)
    talk.sleep(20 + SETTLED_S + talk.put_off_s + talk.gathered_s)
    listed = talk.ask("GET", f"{STREAM}/events", shows={"data": 3 * [...]})["data"][::-1]
    about = [(each["eventType"], each["timestamp"]) for each in listed]
    talk.is_so("as they were posted", ([*kinds], 3), ([kind for kind, _ in about], len({*about})))
    lines = [json.loads(line) for each in came["s3"] for line in each.body.decode().splitlines()]
    records = [json.loads(each.body) for each in got("kinesis", came["kinesis"])]
    named = [(each["id"], each["eventType"], each["timestamp"], each["payload"]["n"]) for each in listed]
    for where, found in (("objects", lines), ("records", records)):
        members = [(each["id"], each["eventType"], each["timestamp"], each["payload"]["n"]) for each in found]
        talk.came(where, named, members)
    events = [each for one in came["http"] for each in json.loads(one.body)["events"]]
    read = talk.ask("GET", f"{STREAM}/sink/reads/events")["data"]
    for where, found in (("requests", events), ("what is read", read)):
        talk.came(where, about, [(each["eventType"], each["timestamp"]) for each in found])
    messages = got("sqs", came["sqs"])
    attributes = [(each.attributes.get("webhook-id"), each.attributes.get("webhook-event-type")) for each in messages]
    talk.came("attributes", [(event, kind) for event, kind, _, _ in named], attributes)
    bus = got("events", came["events"])
    ids = [(each.named["Resources"], each.named["Source"], each.named["DetailType"]) for each in bus]
    source = f"svix-webhooks-{stream}"
    talk.came("a bus's", [([event], source, "application/json") for event, *_ in named], ids)
    for where, found in (("messages", messages), ("details", bus)):
        envelopes = [{"payload": {"n": number}, "eventType": kind} for number, kind in enumerate(kinds)]
        talk.came(f"envelopes of {where}", envelopes, [json.loads(each.body) for each in found])
    _over(talk)
    for name in (KIND, OTHER):
        talk.ask("DELETE", f"/event-type/{name}?expunge=true", status=204)


def _changed(talk: Talk) -> None:
    """Any change of a sink has a batch that failed tried at once, as the sink is by then; else it waits longer each
    time, and never longer than a quarter of an hour; and it never gives up.
    """
    _stream(talk)
    says = {"status": 500}
    came = talk.listen("meanwhile-changed.example", lambda _: (says["status"], b""))
    sink = _sink(talk, "changed")
    other = talk.listen("meanwhile-elsewhere.example", lambda _: (says["status"], b""))
    _post(talk, "1")
    talk.sleep(60 + talk.gathered_s)
    whole = {"type": "http", "uid": "changed", "config": {"url": "https://meanwhile-elsewhere.example/in"}}
    steps: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("PATCH", "", {"type": "http", "batchSize": 7}),
        ("PATCH", "/headers", {"headers": {"X-Changed": "yes"}}),
        ("POST", "/secret/rotate", {"key": OTHER_SECRET}),
        ("PATCH", "/transformation", {"code": "function handler(input) { return { data: [input.events.length] }; }"}),
        ("PATCH", "/transformation", {"code": None}),
        ("PUT", "", whole),
    )
    for method, route, body in steps:
        before = len(came) + len(other)
        talk.ask(method, f"{sink}{route}", body)
        talk.sleep(4 + SETTLED_S + talk.put_off_s + talk.gathered_s)
        count = len(came) + len(other) - before
        # A run of code may fail by itself, and then waits.
        talk.came(f"at once after {method} {route}", True, count >= 1 or "code" in body)
    last = other[-1]
    talk.came("where it leads now", 1, len(other))
    talk.came("as it is now", ("yes", True), (last.headers.get("x-changed"), is_signed(last, OTHER_SECRET)))
    talk.came("the same batch", [["1"]], _payloads([last]))
    # From the eighth failure on it waits no longer than before
    talk.sleep(2 * 3_600, exactly=True)
    late = LONGEST_WAIT_S / 2 + talk.gathered_s + talk.put_off_s
    waits = _gaps(other)[-3:]
    fit = [LONGEST_WAIT_S - 1 <= each <= LONGEST_WAIT_S + late for each in waits]
    talk.came(f"a quarter of an hour: {waits}", [True] * 3, fit)
    shown = talk.ask("GET", sink, shows={"status": "retrying", "failureReason": str})
    left = (talk.moment(shown["nextRetryAt"]) - talk.now()) / SECOND
    talk.is_so("when it is tried next", lambda each: -75 <= each <= LONGEST_WAIT_S, left)
    says["status"] = 200
    talk.sleep(LONGEST_WAIT_S + late)
    talk.came("in the end", [["1"]], _payloads(other)[-1:])
    [event] = _ids(talk)
    shows = {"status": "enabled", "currentIterator": lambda each: each >= event, "batchSize": AT_A_TIME}
    shown = talk.ask("GET", sink, shows=shows)
    talk.is_so("no reason any more", False, "failureReason" in shown or "nextRetryAt" in shown)
    _over(talk)


def _resized(talk: Talk) -> None:
    """What was begun as one batch and failed may be several once its sink's batches are smaller, and hold fewer events
    or more once it chooses others: all that it chooses by then arrives, in order, and nothing is passed over.
    """
    for name in (KIND, OTHER):
        talk.ask("POST", "/event-type", {"name": name, "description": "d"}, status=201)
    _stream(talk)
    says = {"status": 500}
    changes: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "smaller": ({}, {"batchSize": 2}),
        "larger": ({"batchSize": 2}, {"batchSize": 10}),
        "narrower": ({}, {"eventTypes": [OTHER]}),
        "wider": ({"eventTypes": [OTHER]}, {"eventTypes": None}),
        "unchanged": ({}, {}),
    }
    came, sinks = {}, {}
    for name, (at_first, _) in changes.items():
        came[name] = talk.listen(f"meanwhile-{name}.example", lambda _: (says["status"], b""))
        sinks[name] = _sink(talk, name, **at_first)
    events = [{"eventType": (KIND, OTHER)[n % 2], "payload": f"{n}"} for n in range(7)]
    talk.ask("POST", f"{STREAM}/events", {"events": events}, status=202)
    talk.sleep(60 + talk.put_off_s + talk.gathered_s)
    talk.came("each has failed", dict.fromkeys(changes, True), {name: bool(each) for name, each in came.items()})
    before = {name: len(each) for name, each in came.items()}
    for name, (_, by_then) in changes.items():
        talk.ask("PATCH", sinks[name], {"type": "http", **by_then})
    says["status"] = 200
    talk.sleep(LONGEST_WAIT_S + talk.put_off_s + talk.gathered_s)
    others = [each["payload"] for each in events if each["eventType"] == OTHER]
    chosen = {name: others if name == "narrower" else [each["payload"] for each in events] for name in changes}
    batches = {name: _payloads(each[before[name] :]) for name, each in came.items()}
    arrived = {name: [*dict.fromkeys(one for each in some for one in each)] for name, some in batches.items()}
    talk.came("all that each chooses", chosen, arrived)
    talk.came("no more at a time", True, max(map(len, batches["smaller"])) <= 2)
    _over(talk)
    for name in (KIND, OTHER):
        talk.ask("DELETE", f"/event-type/{name}?expunge=true", status=204)


def _left_out(talk: Talk) -> None:
    """One batch is left out at a time, also while a sink is off, and only if there is one; what is behind it comes."""
    _stream(talk)
    says = {"status": 500}
    came = talk.listen("meanwhile-skips.example", lambda _: (says["status"], b""))
    sink = _sink(talk, "skips", batchSize=2)
    talk.sleep(2)
    talk.ask("POST", f"{sink}/skip", status=422)
    _post(talk, *(f"{number}" for number in range(7)))
    talk.sleep(8 + SETTLED_S + talk.put_off_s + talk.gathered_s)
    ids = _ids(talk)
    talk.came("the first of them", {("0", "1")}, {tuple(each) for each in _payloads(came)})
    _skip(talk, sink, shows={"currentIterator": ids[1]})
    talk.sleep(4 + SETTLED_S + talk.put_off_s + talk.gathered_s)
    talk.came("then the second", ["2", "3"], _payloads(came)[-1])
    _switch(talk, sink, "disabled")
    talk.sleep(2)
    before = len(came)
    _skip(talk, sink, shows={"currentIterator": ids[3], "status": "disabled"})
    talk.ask("POST", f"{sink}/force-retry", shows={"currentIterator": ids[3], "status": "disabled"})
    talk.sleep(4 + SETTLED_S + talk.put_off_s + talk.gathered_s)
    talk.came("nothing while it is off", before, len(came))
    says["status"] = 200
    _switch(talk, sink, "enabled")
    talk.sleep(4 + SETTLED_S + talk.put_off_s + talk.gathered_s)
    talk.came("the rest", [["4", "5"], ["6"]], _payloads(came)[before:])
    # Asked for without an event, it may have read further than to the last one
    shows = {"currentIterator": lambda each: each >= ids[6], "status": "enabled", "batchSize": 2}
    talk.ask("GET", sink, shows=shows)
    talk.ask("POST", f"{sink}/skip", status=422)
    _over(talk)


def _erased(talk: Talk) -> None:
    """What was erased before it was written is left out, and holds up nothing; what a sink has not written it still
    owes, in its order, however long it was off.
    """
    _stream(talk)
    came = talk.listen("meanwhile-erased.example", lambda _: (200, b""))
    sink = _sink(talk, "erased")
    _switch(talk, sink, "disabled")
    _post(talk, *"01234")
    talk.sleep(SETTLED_S)
    ids = _ids(talk)
    for place in (0, 2, 4):
        talk.ask("DELETE", f"{STREAM}/events/{ids[place]}/content", status=204)
    talk.sleep(3_600, exactly=True)
    _switch(talk, sink, "enabled")
    talk.sleep(4 + SETTLED_S + talk.put_off_s + talk.gathered_s)
    talk.came("the others", ["1", "3"], [each for batch in _payloads(came) for each in batch])
    _post(talk, "5")
    talk.sleep(4 + SETTLED_S + talk.put_off_s + talk.gathered_s)
    talk.came("and what comes after it", ["1", "3", "5"], [each for batch in _payloads(came) for each in batch])
    talk.ask("GET", sink, shows={"currentIterator": _ids(talk)[-1], "batchSize": AT_A_TIME})
    _over(talk)


def _read_again(talk: Talk) -> None:
    """A poller's position is as far as an iterator that it was shown, and never goes back; another poller has its own;
    event types choose; while it is off there is nothing, and afterwards all of it.
    """
    for name in (KIND, OTHER):
        talk.ask("POST", "/event-type", {"name": name, "description": "d"}, status=201)
    _stream(talk)
    for uid, more in (("first", {}), ("second", {"eventTypes": [OTHER]})):
        talk.ask("POST", f"{STREAM}/sink", {"type": "poller", "config": {}, "uid": uid, **more}, status=201)
    talk.sleep(2)
    for number in range(4):
        _post(talk, f"{number}", kind=OTHER if number % 2 else KIND)
    talk.sleep(SETTLED_S, exactly=True)

    def read(uid: str, query: str = "") -> tuple[list[str], str, bool]:
        answer = talk.ask("GET", f"{STREAM}/sink/{uid}/events{query}")
        return [each["payload"] for each in answer["data"]], answer["iterator"], answer["done"]

    some, first, done = read("first", "?limit=1")
    talk.is_so("one", (["0"], False), (some, done))
    some, second, _ = read("first", f"?limit=2&iterator={first}")
    talk.is_so("two more", ["1", "2"], some)
    talk.is_so("not yet acknowledged", ["1", "2", "3"], read("first")[0])
    talk.is_so("now they are", ["3"], read("first", f"?iterator={second}")[0])
    talk.is_so("read again from before", ["1", "2", "3"], read("first", f"?iterator={first}")[0])
    talk.is_so("that took nothing back", ["3"], read("first")[0])
    began = talk.ask("GET", f"{STREAM}/events?limit=250")["data"][-1]["timestamp"]
    talk.is_so("from a time on", ["3"], read("first", f"?after={began}")[0][-1:])
    talk.is_so("which moves nothing", ["3"], read("first")[0])
    talk.is_so("another's own", ["1", "3"], read("second")[0])
    path = f"{STREAM}/sink/second"
    talk.ask("PATCH", path, {"type": "poller", "config": {}, "status": "disabled"}, shows={"status": "disabled"})
    talk.is_so("nothing while it is off", [], read("second")[0])
    talk.ask("PATCH", path, {"type": "poller", "config": {}, "status": "enabled"}, shows={"status": "enabled"})
    talk.is_so("all of it afterwards", ["1", "3"], read("second")[0])
    talk.ask("PATCH", path, {"type": "poller", "config": {}, "eventTypes": None})
    talk.is_so("as it is when it is read", ["0", "1", "2", "3"], read("second")[0])
    ids = _ids(talk)
    talk.ask("GET", f"{STREAM}/sink/first", shows={"currentIterator": ids[2]})
    talk.ask("DELETE", f"{STREAM}/events/{ids[3]}/content", status=204)
    talk.is_so("nothing of what is erased", [[], ["0", "1", "2"]], [read(uid)[0] for uid in ("first", "second")])
    _over(talk)
    for name in (KIND, OTHER):
        talk.ask("DELETE", f"/event-type/{name}?expunge=true", status=204)


def _records(talk: Talk) -> None:
    """A request to a data stream has 500 records at most, whatever a batch may have; each event is in one of them. So
    many events are posted in the first of five runs.
    """
    if talk.turn % 5 != 1:
        return
    _stream(talk)
    came = talk.listen("meanwhile-shards.example", takes("kinesis"))
    keys = {"accessKeyId": KEY_ID, "secretAccessKey": "wJalrXUtnFEMI/K7MDENG"}
    config = {"streamName": "orders", "region": REGION, "endpointUrl": "https://meanwhile-shards.example", **keys}
    wanted = {"type": "kinesis", "uid": "shards", "config": config, "batchSize": 1_000, "maxWaitSecs": 20}
    talk.ask("POST", f"{STREAM}/sink", wanted, status=201)
    numbers = [f"{number}" for number in range(MOST_RECORDS + AT_A_TIME)]
    for begins in range(0, len(numbers), AT_A_TIME):
        _post(talk, *numbers[begins : begins + AT_A_TIME])
    talk.sleep(60 + talk.put_off_s + talk.gathered_s)
    found = got("kinesis", came)
    talk.came(
        "each once, in order", [int(each) for each in numbers], [json.loads(each.body)["payload"] for each in found]
    )
    talk.came("no more in a request", lambda most: AT_A_TIME < most <= MOST_RECORDS, max(each.count for each in found))
    talk.ask("GET", f"{STREAM}/sink/shards", shows={"status": "enabled", "batchSize": MOST_RECORDS})
    _over(talk)


def _for_code(talk: Talk) -> None:
    """A batch for code ends at half a megabyte, without code it does not."""
    _stream(talk)
    came = {uid: talk.listen(f"meanwhile-{uid}.example", lambda _: (200, b"")) for uid in ("coded", "plain")}
    sinks = {uid: _sink(talk, uid, maxWaitSecs=10) for uid in came}
    code = "function handler(input) { return { data: input.events.map((each) => each.payload.length) }; }"
    talk.ask("PATCH", f"{sinks['coded']}/transformation", {"code": code})
    talk.sleep(2)
    for _ in range(2):
        _post(talk, *(2 * [json.dumps(LARGE * "x")]))
    last = _ids(talk)[-1]
    for wait in (30, *(10 * (60,))):
        talk.sleep(wait + talk.gathered_s)
        if talk.ask("GET", sinks["coded"])["currentIterator"] == last:
            break
    lengths = [json.loads(each.body)["data"] for each in came["coded"]]
    talk.came("as many as fit", [2 * [LARGE], 2 * [LARGE]], lengths)
    talk.came("half a megabyte", True, max(sum(each) for each in lengths) <= MOST_FOR_CODE)
    talk.came("all at once without", [4], [len(each) for each in _payloads(came["plain"])])
    _over(talk)


def _twins(talk: Talk) -> None:
    """Two streams whose sinks have equal names have nothing in common; one that is made again begins with nothing."""
    ids = [_stream(talk), _stream(talk, TWIN)]
    talk.is_so("each its own", 2, len({*ids}))
    external = [talk.ask("GET", f"{path}/external-id")["externalId"] for path in (STREAM, TWIN)]
    talk.is_so("whose roles", 2, len({*external}))
    says: dict[str, int] = {"left": 500, "right": 200}

    def answers(side: str, _: Came) -> tuple[int, bytes]:
        return says[side], b""

    came = {side: talk.listen(f"meanwhile-{side}.example", partial(answers, side)) for side in says}
    sides = {"left": STREAM, "right": TWIN}
    for side, path in sides.items():
        _sink(talk, "same", path=path, host=f"meanwhile-{side}.example")
    once = talk.with_headers(idempotency_key="of-twins")
    for side, path in sides.items():
        _post(once, f"{side}-1", path=path)
    talk.sleep(8 + SETTLED_S + talk.put_off_s + talk.gathered_s)
    for side in sides:
        talk.came(f"its own, {side}", {(f"{side}-1",)}, {tuple(each) for each in _payloads(came[side])})
    enabled = {"status": "enabled", "batchSize": AT_A_TIME, "maxWaitSecs": 0}
    talk.ask("GET", f"{STREAM}/sink/same", shows={"status": "retrying"})
    talk.ask("GET", f"{TWIN}/sink/same", shows={**enabled, "currentIterator": _ids(talk, TWIN)[-1]})
    talk.ask("POST", f"{TWIN}/sink/same/skip", status=422)
    talk.ask("GET", f"{STREAM}/sink/same", shows={"status": "retrying"})
    [event] = talk.ask("GET", f"{TWIN}/events", shows={"data": [...]})["data"]
    talk.ask("DELETE", f"{STREAM}/events/{event['id']}/content", status=404)
    _over(talk, STREAM)
    before = len(came["left"])
    _stream(talk)
    talk.ask("GET", f"{STREAM}/events", shows={"data": []})
    talk.ask("GET", f"{STREAM}/sink", shows={"data": []})
    talk.ask("GET", f"{STREAM}/sink/same", status=404)
    says["left"] = 200
    _sink(talk, "same", host="meanwhile-left.example")
    talk.sleep(2)
    for side, path in sides.items():
        _post(talk, f"{side}-2", path=path)
    talk.sleep(30 + SETTLED_S + talk.put_off_s + talk.gathered_s)
    talk.came("from then on", [["left-2"]], _payloads(came["left"][before:]))
    talk.came("the other goes on", [["right-1"], ["right-2"]], _payloads(came["right"]))
    _over(talk, STREAM, TWIN)


def _disabled(talk: Talk) -> None:
    """A sink that only fails for five days is disabled, and no other; enabled again, it goes on where it was. So long
    is waited in the first of ten runs.
    """
    if talk.turn % 10 != 1:
        return
    _stream(talk)
    says = {"ill": 500, "well": 200}

    def answers(uid: str, _: Came) -> tuple[int, bytes]:
        return says[uid], b""

    came = {uid: talk.listen(f"meanwhile-{uid}.example", partial(answers, uid)) for uid in says}
    sinks = {uid: _sink(talk, uid) for uid in says}
    _post(talk, "1")
    for day, state in enumerate(("retrying", "retrying", "disabled")):
        talk.sleep(2 * A_DAY_S, exactly=True)
        _post(talk, f"{day + 2}")
        talk.ask("GET", sinks["ill"], shows={"status": state, "batchSize": AT_A_TIME})
    talk.came("the same batch all the time", {("1",)}, {tuple(each) for each in _payloads(came["ill"])})
    talk.came("the other's", [["1"], ["2"], ["3"]], _payloads(came["well"]))
    talk.ask("GET", sinks["well"], shows={"status": "enabled"})
    says["ill"], before = 200, len(came["ill"])
    talk.sleep(3_600, exactly=True)
    talk.came("nothing while it is off", before, len(came["ill"]))
    talk.ask("PATCH", sinks["ill"], {"type": "http", "status": "enabled"})
    talk.sleep(20 + SETTLED_S + talk.put_off_s + talk.gathered_s)
    found = [each for batch in _payloads(came["ill"])[before:] for each in batch]
    talk.came("all of it", ["1", "2", "3", "4"], found)
    _over(talk)


__all__ = ["webhooks"]
