"""What streams write: objects, records and messages on AWS, batches as large as they may be, and what code makes.

Sources: docs/streaming.md, docs/streaming-code.md, docs/destinations.md; the API references of S3, Kinesis, SQS and
EventBridge. A run of code may take too long, or end with its process, at any time: so batches are waited for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from simulation.promises.talks.aws_services import ACCOUNT, KEY_ID, REGION, got, takes
from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.webhooks import OTHER_SECRET, is_signed

KIND, OTHER = "written.made", "written.else"
STREAM = "/stream/written"
SETTLED_S = 5
"""An event is written three seconds after it was posted at the earliest."""

AT_A_TIME = 100
"""``batchSize`` by default, and how many events a request may have."""

MOST_BATCH = 4 * 1_024 * 1_024
MOST_PAYLOAD = 256 * 1_024
PAYLOADS = ('{"id": 1.0}', "text", '{"id":2}', "null", '["a"]')
KEYS = {"accessKeyId": KEY_ID, "secretAccessKey": "wJalrXUtnFEMI/K7MDENG"}


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(
        _objects, _records, _messages, _batches, _coded, _made_otherwise, _the_same, _well_again, _own_key, _while_off
    )


def _stream(talk: Talk) -> str:
    return str(talk.ask("POST", "/stream", {"name": "Written", "uid": "written"}, status=201)["id"])


def _over(talk: Talk, *streams: str) -> None:
    for each in streams or (STREAM,):
        talk.ask("DELETE", each, status=204)


def _post(talk: Talk, *payloads: str, kind: str = KIND) -> None:
    events = [{"eventType": kind, "payload": each} for each in payloads]
    talk.ask("POST", f"{STREAM}/events", {"events": events}, status=202)


def _sink(talk: Talk, uid: str, kind: str, config: Mapping[str, Any], **more: Any) -> str:
    """A sink on AWS whose service is at a host of its uid; its path."""
    whole = {**KEYS, "endpointUrl": f"https://written-{uid}.example", **config}
    if kind == "http":
        whole = {"url": f"https://written-{uid}.example/in"}
    talk.ask("POST", f"{STREAM}/sink", {"type": kind, "uid": uid, "config": whole, **more}, status=201)
    return f"{STREAM}/sink/{uid}"


def _code(talk: Talk, sink: str, code: str, **more: Any) -> None:
    talk.ask("PATCH", f"{sink}/transformation", {"code": code, **more})


def _ids(talk: Talk) -> list[str]:
    """The ids of all events, oldest first."""
    return [each["id"] for each in talk.ask("GET", f"{STREAM}/events?limit=250")["data"]][::-1]


def _waited(talk: Talk, enough: Callable[[], bool]) -> None:
    """Wait until enough has come; code may be run again, after ever longer waits."""
    for wait in (5, 5, 10, *12 * (30,), *12 * (300,)):
        talk.sleep(wait)
        if enough():
            return


def _more(came: Sequence[Came], than: int) -> bool:
    return len(came) > than


def _objects(talk: Talk) -> None:
    """An object is named by its sink, the hour and the ids of its first and last event, and has a line for each."""
    _stream(talk)
    came = {uid: talk.listen(f"written-{uid}.example", takes("s3")) for uid in ("plain", "prefixed")}
    bucket = {"bucket": "orders", "region": REGION}
    sinks = {
        "plain": _sink(talk, "plain", "amazonS3", bucket, batchSize=2),
        "prefixed": _sink(talk, "prefixed", "amazonS3", {**bucket, "prefix": "in/dt=1/"}),
    }
    _post(talk, *PAYLOADS)
    talk.sleep(4 + 2 * SETTLED_S)
    ids = _ids(talk)
    names: list[str] = []
    for uid, heard in came.items():
        prefix, own = "in/dt=1/" if uid == "prefixed" else "", talk.ask("GET", sinks[uid])["id"].partition("_")[2]
        lines: list[dict[str, Any]] = []
        for each in heard:
            batch = [json.loads(line) for line in each.body.decode().splitlines()]
            hour = batch[0]["timestamp"][:13].replace("-", "/").replace("T", "/")
            name = f"/orders/{prefix}ep_{own}/{hour}/{batch[0]['id']}-{batch[-1]['id']}.jsonl"
            talk.came(f"its name, {uid}", ("PUT", name), (each.method, unquote(each.path)))
            talk.came(f"no more than that, {uid}", True, len(batch) <= (2 if uid == "plain" else AT_A_TIME))
            lines += batch
            names.append(each.path)
        talk.came(f"in order, {uid}", ids, [each["id"] for each in lines])
        payloads = [{"id": 1.0}, "text", {"id": 2}, None, ["a"]]
        talk.came(f"JSON as it is, {uid}", payloads, [each["payload"] for each in lines])
        talk.came(f"of which type, {uid}", {KIND}, {each["eventType"] for each in lines})
        talk.came(f"as it was written, {uid}", True, b'{"id": 1.0}' in heard[0].body)
        members = {"id", "eventType", "timestamp", "payload"}
        talk.came(f"nothing else, {uid}", True, all({*each} == members for each in lines))
        talk.ask("GET", sinks[uid], shows={"status": "enabled", "currentIterator": ids[-1]})
    talk.came("no name twice", len(names), len({*names}))
    _over(talk)


def _records(talk: Talk) -> None:
    """Records go to one shard, in order; if some are refused, all of the request come again, and nothing behind it."""
    _stream(talk)
    calls: list[int] = []

    def says(came: Came) -> tuple[int, bytes]:
        calls.append(len(got("kinesis", [came])))
        if len(calls) > 1:
            return takes("kinesis")(came)
        wrong = {"ErrorCode": "ProvisionedThroughputExceededException", "ErrorMessage": "no"}
        records = [*(calls[0] - 1) * [{"SequenceNumber": "1", "ShardId": "0"}], wrong]
        return 200, json.dumps({"FailedRecordCount": 1, "Records": records}).encode()

    came = talk.listen("written-shards.example", says)
    sink = _sink(talk, "shards", "kinesis", {"streamName": "orders", "region": REGION}, batchSize=3, maxWaitSecs=10)
    _post(talk, *PAYLOADS)
    talk.sleep(60)
    ids = _ids(talk)
    requests = [[json.loads(one.body) for one in got("kinesis", [each])] for each in came]
    talk.came(
        "the whole request again", [ids[:3], ids[:3], ids[3:]], [[each["id"] for each in one] for one in requests]
    )
    talk.came("the same bytes", came[0].body, came[1].body)
    records = got("kinesis", came)
    talk.came("one shard", 1, len({each.group for each in records}))
    talk.came("where", {"orders"}, {each.named["StreamName"] for each in records})
    payloads = [{"id": 1.0}, "text", {"id": 2}, None, ["a"]]
    talk.came("as an object's lines", payloads, [each["payload"] for one in requests[1:] for each in one])
    talk.ask("GET", sink, shows={"status": "enabled", "currentIterator": ids[-1]})
    _over(talk)


def _messages(talk: Talk) -> None:
    """Queues, topics and buses get events one after the other; in a FIFO queue as one group of each sink, whose ids for
    deduplication are its own.
    """
    _stream(talk)
    fifo = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/orders.fifo"
    configs: Mapping[str, tuple[str, Mapping[str, Any]]] = {
        "one": ("sqs", {"queueUrl": fifo}),
        "other": ("sqs", {"queueUrl": fifo}),
        "topic": ("sns", {"topicArn": f"arn:aws:sns:{REGION}:{ACCOUNT}:orders"}),
        "bus": ("eventBridge", {"eventBusName": f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/orders"}),
    }
    came: dict[str, Sequence[Came]] = {}
    for uid, (kind, config) in configs.items():
        of_url = "events" if kind == "eventBridge" else kind
        came[uid] = talk.listen(f"written-{uid}.example", takes(of_url))
        _sink(talk, uid, kind, config)
    _post(talk, '{"id": 1}', '{"id": 2}')
    _post(talk, '{"id": 3}')
    talk.sleep(15 + 2 * SETTLED_S)
    ids = _ids(talk)
    for uid, (kind, _) in configs.items():
        found = got("events" if kind == "eventBridge" else kind, came[uid])
        talk.came(f"one at a time, {uid}", [1, 1, 1], [each.count for each in found])
        bodies = [json.loads(each.body) for each in found]
        payloads = [each.get("payload", each) for each in bodies]
        talk.came(f"in order, {uid}", [{"id": 1}, {"id": 2}, {"id": 3}], payloads)
        if kind != "eventBridge":
            talk.came(f"which events, {uid}", ids, [each.attributes.get("webhook-id") for each in found])
    one, other = (got("sqs", came[uid]) for uid in ("one", "other"))
    talk.came("a group of each", [1, 1], [len({each.group for each in found}) for found in (one, other)])
    talk.came("another of each", 2, len({each.group for each in (*one, *other)}))
    talk.came("no id twice", 2 * len(ids), len({each.once for each in (*one, *other)}))
    _over(talk)


def _batches(talk: Talk) -> None:
    """A batch has a hundred events by default, and 4 MiB at most; ``maxWaitSecs`` counts from its oldest event."""
    _stream(talk)
    came = {uid: talk.listen(f"written-{uid}.example", lambda _: (200, b"")) for uid in ("many", "waits", "one")}
    _sink(talk, "many", "http", {})
    _sink(talk, "waits", "http", {}, maxWaitSecs=20)
    _sink(talk, "one", "http", {}, batchSize=1)
    numbers = [f"{number}" for number in range(AT_A_TIME + 30)]
    began = talk.now()
    _post(talk, *numbers[:AT_A_TIME])
    talk.sleep(8, exactly=True)
    _post(talk, *numbers[AT_A_TIME:-1])
    talk.sleep(13, exactly=True)
    _post(talk, numbers[-1])
    talk.sleep(60)

    def batches(uid: str) -> list[list[str]]:
        return [[each["payload"] for each in json.loads(one.body)["events"]] for one in came[uid]]

    for uid in came:
        talk.came(f"each once, in order, {uid}", numbers, [each for batch in batches(uid) for each in batch])
        talk.came(f"its size, {uid}", True, max(map(len, batches(uid))) <= (1 if uid == "one" else AT_A_TIME))
    talk.came("a full one at once", numbers[:AT_A_TIME], batches("waits")[0])
    first, last = ((came["waits"][place].at - began) / 1_000_000 for place in (0, -1))
    talk.came("and the rest when it has waited", (True, True), (first <= 12, 27 <= last <= 40))
    talk.came("the latest with the oldest", numbers[AT_A_TIME:], batches("waits")[-1])
    for uid in ("many", "one"):
        talk.ask("DELETE", f"{STREAM}/sink/{uid}", status=204)
    before = len(came["waits"])
    large = MOST_BATCH // MOST_PAYLOAD + 2
    for number in range(large // 2):
        _post(talk, *(f"{2 * number + each}".rjust(MOST_PAYLOAD, "x") for each in range(2)))
    talk.sleep(60)
    sizes = [len(each.body) for each in came["waits"][before:]]
    found = [each.lstrip("x") for batch in batches("waits")[before:] for each in batch]
    talk.came("all that is large", [f"{number}" for number in range(large)], found)
    talk.came("not in one", (True, True), (len(sizes) >= 2, max(sizes) <= MOST_BATCH + 64 * 1_024))
    _over(talk)


HANDLERS: Mapping[str, tuple[str, str]] = {
    "lines": ("amazonS3", "{ config: { format: 'jsonl', key: 'made/lines' }, data: events.map((e) => e.payload.id) }"),
    "json": (
        "amazonS3",
        "{ config: { format: 'json', key: 'made/json' }, data: events.map((e) => ({ id: e.payload.id })) }",
    ),
    "raw": ("amazonS3", "{ config: { format: 'raw', key: 'made/raw' }, data: 'só ' + events.length }"),
    "shards": ("kinesis", "{ messages: events.map((e) => ({ payload: 'n' + e.payload.id })) }"),
    "queue": ("sqs", "{ messages: events.map((e) => ({ payload: { id: e.payload.id }, subject: 'none' })) }"),
    "bus": ("eventBridge", "{ payloads: events.map((e) => ({ id: e.payload.id, more: true })) }"),
}
"""Code of sinks of each type, by what it makes of a batch."""


def _coded(talk: Talk) -> None:
    """What code returns for each type is what is written, and what it leaves out counts as arrived."""
    _stream(talk)
    bucket = {"bucket": "orders", "region": REGION, "prefix": "in/"}
    configs: Mapping[str, Mapping[str, Any]] = {
        "amazonS3": bucket,
        "kinesis": {"streamName": "orders", "region": REGION},
        "sqs": {"queueUrl": f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/orders"},
        "eventBridge": {"eventBusName": f"arn:aws:events:{REGION}:{ACCOUNT}:event-bus/orders"},
    }
    of_url = {"amazonS3": "s3", "eventBridge": "events"}
    came: dict[str, Sequence[Came]] = {}
    sinks: dict[str, str] = {}
    for uid, (kind, returned) in HANDLERS.items():
        came[uid] = talk.listen(f"written-{uid}.example", takes(of_url.get(kind, kind)))
        sinks[uid] = _sink(talk, uid, kind, configs[kind], maxWaitSecs=10)
        chosen = "const events = input.events.filter((e) => e.payload.id);"
        _code(
            talk,
            sinks[uid],
            f"function handler(input) {{ {chosen} if (!events.length) return {{ cancel: true }}; return {returned}; }}",
        )
    talk.sleep(2)
    _post(talk, '{"id": 1}', '{"no": 2}', '{"id": 3}')
    ids = _ids(talk)
    _waited(talk, lambda: all(talk.ask("GET", each)["currentIterator"] == ids[-1] for each in sinks.values()))
    for uid, path in sinks.items():
        talk.ask("GET", path, shows={"status": "enabled", "currentIterator": ids[-1], "uid": uid})
    objects = {uid: [(each.path, each.body.decode()) for each in came[uid]] for uid in ("lines", "json", "raw")}
    for uid, extension, written in (
        ("lines", ".jsonl", "1\n3"),
        ("json", ".json", '[{"id":1},{"id":3}]'),
        ("raw", "", "só 2"),
    ):
        own = talk.ask("GET", sinks[uid])["id"].partition("_")[2]
        name = f"/orders/in/made/{uid}-ep_{own}-{ids[0]}-{ids[-1]}{extension}"
        text = re.sub(r"\s*$", "", re.sub(r": ", ":", objects[uid][-1][1])) if objects[uid] else ""
        talk.came(f"{uid}: its name", {name}, {path for path, _ in objects[uid]})
        talk.came(f"{uid}: what is in it", written, text)
    records = [each.body.strip('"') for each in got("kinesis", came["shards"])]
    talk.came("records", ["n1", "n3"], records[-2:])
    queue = got("sqs", came["queue"])
    talk.came("messages", [{"id": 1}, {"id": 3}], [json.loads(each.body) for each in queue][-2:])
    talk.came("no subject", False, "none" in json.dumps([each.attributes for each in queue]))
    bus = [json.loads(each.body) for each in got("events", came["bus"])]
    talk.came("details", [{"id": 1, "more": True}, {"id": 3, "more": True}], bus[-2:])
    counts = {uid: len(heard) for uid, heard in came.items()}
    _post(talk, '{"no": 4}')
    last = _ids(talk)[-1]
    _waited(talk, lambda: all(talk.ask("GET", each)["currentIterator"] == last for each in sinks.values()))
    talk.came("nothing of what is left out", counts, {uid: len(heard) for uid, heard in came.items()})
    for path in sinks.values():
        talk.ask("GET", path, shows={"status": "enabled", "currentIterator": last})
    _over(talk)


def _made_otherwise(talk: Talk) -> None:
    """A URL's code may choose method, URL, headers and a text; elsewhere its own headers are not sent."""
    _stream(talk)
    own = talk.listen("written-own.example", lambda _: (200, b""))
    there = talk.listen("written-there.example", lambda _: (200, b""))
    sink = _sink(talk, "own", "http", {})
    talk.ask("PATCH", f"{sink}/headers", {"headers": {"X-Own": "1"}})
    steps = (
        (
            "{ config: { method: 'PUT', headers: { 'X-Made': 'yes' } }, data: { n: 1 } }",
            own,
            ("PUT", "1", "yes", '{"n":1}'),
        ),
        ("{ config: { format: 'raw' }, data: 'a text' }", own, ("POST", "1", None, "a text")),
        ("{ data: [1, 2] }", own, ("POST", "1", None, '{"data":[1,2]}')),
        (
            "{ config: { url: 'https://written-there.example/x' }, data: { at: input.url } }",
            there,
            ("POST", None, None, '{"at":"https://written-own.example/in"}'),
        ),
    )
    for returned, heard, expected in steps:
        _code(talk, sink, f"function handler(input) {{ return {returned}; }}")
        talk.sleep(2)
        counts, before = (len(own), len(there)), len(heard)
        _post(talk, "{}")
        _waited(talk, partial(_more, heard, before))
        each = heard[-1]
        sent = (
            each.method,
            each.headers.get("x-own"),
            each.headers.get("x-made"),
            each.body.decode().replace(" ", "") if "raw" not in returned else each.body.decode(),
        )
        talk.came(f"what is made by {returned[:40]}", expected, sent)
        talk.came("once", 1, len(own) + len(there) - sum(counts))
    talk.came("where", {"/in"}, {each.path for each in own})
    talk.came("and where else", ["/x"], [each.path for each in there])
    _over(talk)


def _the_same(talk: Talk) -> None:
    """What code makes of a batch is the same at each try, though it asks for the time and for chance; the next batch's
    is another.
    """
    _stream(talk)
    says = {"status": 500}
    came = talk.listen("written-again.example", lambda _: (says["status"], b""))
    sink = _sink(talk, "again", "http", {})
    _code(talk, sink, "function handler(input) { return { data: { at: Date.now(), by: Math.random() } } }")
    talk.sleep(2)
    _post(talk, "{}")
    _waited(talk, lambda: len(came) >= 3)
    talk.came("the same each time", 1, len({each.body for each in came}))
    at = json.loads(came[0].body)["at"]
    shown = talk.ask("GET", f"{STREAM}/events")["data"][0]
    talk.came(
        "the time of its first event", True, abs(at / 1_000 - talk.epoch_s()) < 9_000 and bool(shown["timestamp"])
    )
    talk.ask("GET", sink, shows={"status": "retrying", "batchSize": AT_A_TIME, "maxWaitSecs": 0})
    says["status"] = 200
    before = len(came)
    talk.ask("POST", f"{sink}/force-retry")
    _waited(talk, lambda: len(came) > before)
    _post(talk, "{}")
    _waited(talk, lambda: len(came) > before + 1)
    talk.came(
        "the next one's is another",
        (1, 2),
        (len({each.body for each in came[: before + 1]}), len({each.body for each in came})),
    )
    _over(talk)


def _well_again(talk: Talk) -> None:
    """A batch that fails is tried after five seconds, then twice as long each time; the next that fails, too."""
    _stream(talk)
    says = {"status": 500}
    came = talk.listen("written-well.example", lambda _: (says["status"], b""))
    sink = _sink(talk, "well", "http", {})
    talk.sleep(2)
    for number in range(2):
        says["status"], before = 500, len(came)
        _post(talk, f"{number}")
        _waited(talk, lambda before=before: len(came) >= before + 4)  # type: ignore[misc]
        lasted = [(after.at - one.at) / 1_000_000 for one, after in pairwise(came[before : before + 4])]
        late = 2 + 2 * talk.gathered_s + talk.put_off_s
        soon = [wait - 1 <= each <= 1.5 * wait + late for wait, each in zip((5, 10, 20), lasted, strict=True)]
        talk.came(f"its waits, {number}: {lasted}", [True] * 3, soon)
        says["status"], before = 200, len(came)
        talk.ask("POST", f"{sink}/force-retry")
        _waited(talk, lambda before=before: len(came) > before)  # type: ignore[misc]
    talk.ask("GET", sink, shows={"status": "enabled", "batchSize": AT_A_TIME, "maxWaitSecs": 0})
    _over(talk)


def _own_key(talk: Talk) -> None:
    """A URL's batches are signed with the key that it was configured with, until there is another; each sink has its
    own headers.
    """
    _stream(talk)
    came = {uid: talk.listen(f"written-{uid}.example", lambda _: (200, b"")) for uid in ("keyed", "beside")}
    for uid, more in (("keyed", {"key": OTHER_SECRET, "headers": {"X-Of": "keyed"}}), ("beside", {})):
        config = {"url": f"https://written-{uid}.example/in", **more}
        talk.ask("POST", f"{STREAM}/sink", {"type": "http", "uid": uid, "config": config}, status=201)
    sink = f"{STREAM}/sink/keyed"
    talk.ask("GET", f"{sink}/secret", shows={"key": OTHER_SECRET})
    keys = [OTHER_SECRET]
    for number in range(2):
        if number:
            keys.append(talk.ask("POST", f"{sink}/secret/rotate", {}, shows={"key": str})["key"])
            talk.sleep(2)
        _post(talk, f"{number}")
        talk.sleep(4 + SETTLED_S)
    beside = talk.ask("GET", f"{STREAM}/sink/beside/secret")["key"]
    talk.came("by its key", [True, True], [is_signed(each, key) for each, key in zip(came["keyed"], keys, strict=True)])
    talk.came(
        "by its own",
        [(True, False)] * 2,
        [(is_signed(each, beside), is_signed(each, OTHER_SECRET)) for each in came["beside"]],
    )
    headers = {uid: {each.headers.get("x-of") for each in heard} for uid, heard in came.items()}
    talk.came("its headers", {"keyed": {"keyed"}, "beside": {None}}, headers)
    payloads = [json.loads(each.body)["events"][0]["payload"] for each in came["keyed"]]
    talk.came("what came", ["0", "1"], payloads)
    talk.ask("GET", sink, shows={"status": "enabled", "batchSize": AT_A_TIME})
    _over(talk)


def _while_off(talk: Talk) -> None:
    """Types and channels choose when events are read: what was posted while a sink was off is chosen as it is by then,
    and what it does not want is behind it, too; a sink that is made again begins with what is posted afterwards.
    """
    for name in (KIND, OTHER):
        talk.ask("POST", "/stream/event-type", {"name": name, "description": "d"}, status=201)
    _stream(talk)
    came = talk.listen("written-off.example", lambda _: (200, b""))
    sink = _sink(talk, "off", "http", {})
    talk.ask("PATCH", sink, {"type": "http", "status": "disabled"})
    talk.sleep(2)
    _post(talk, "1")
    _post(talk, "2", kind=OTHER)
    _post(talk, "3")
    talk.sleep(4 + SETTLED_S)
    talk.came("nothing meanwhile", [], came)
    talk.ask("PATCH", sink, {"type": "http", "eventTypes": [OTHER]})
    talk.ask("PATCH", sink, {"type": "http", "status": "enabled"}, shows={"status": "enabled"})
    talk.sleep(4 + SETTLED_S)

    def payloads() -> list[str]:
        return [each["payload"] for one in came for each in json.loads(one.body)["events"]]

    talk.came("what it wants by then", ["2"], payloads())
    talk.ask("PATCH", sink, {"type": "http", "eventTypes": None})
    _post(talk, "4")
    talk.sleep(4 + SETTLED_S)
    talk.came("what is behind it does not come", ["2", "4"], payloads())
    last = _ids(talk)[-1]
    talk.ask("GET", sink, shows={"currentIterator": last, "batchSize": AT_A_TIME})
    talk.ask("DELETE", sink, status=204)
    _post(talk, "5")
    talk.sleep(2)
    _sink(talk, "off", "http", {})
    talk.sleep(2)
    _post(talk, "6")
    talk.sleep(4 + SETTLED_S)
    talk.came("from then on", ["2", "4", "6"], payloads())
    _over(talk)
    for name in (KIND, OTHER):
        talk.ask("DELETE", f"/stream/event-type/{name}?expunge=true", status=204)


__all__ = ["webhooks"]
