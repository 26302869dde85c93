"""Judges whether delivery records are as docs/records.md describes them: which kinds have which fields, what an id is
made of, in which object a record stands, what a record says of itself, and what those of one delivery say one after the
other.

What is recorded of an attempt is compared with what the endpoint saw in :mod:`simulation.recorded`; whether all is
accounted for is judged in :mod:`simulation.conservation`.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import pairwise
from typing import Any

from simulation.conservation import ENDS
from simulation.promises.documents import rows
from simulation.promises.judgement import Violation
from simulation.truth import Written

Record = Mapping[str, Any]

CLOCKS_MS = 22_000
"""The most by which an environment's clock is off in a storm, and a second for what is stored in whole ones."""

MANY_OBJECTS = 20
"""Of so many objects, most name one that was before."""

FIELDS, ID = "a record with other fields than documented", "a record with another id than documented"
ITSELF, OTHERS = "a record that contradicts itself", "records that contradict each other"
OBJECT, STORED = "a record in another object than documented", "a record of what was never stored"

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
TYPES: Mapping[str, Callable[[Any], bool]] = {
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "array of strings": lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
}
FAMILIES = ("push", "pull", "notifications")
OF_A_DELIVERY = {"delivery_id", "subscriber_id", "state"}
OF_A_REQUEST = {
    *("attempt", "verdict", "status_code", "error_class", "started_at", "finished_at", "duration_ms"),
    *("bytes_out", "bytes_in", "wait_before_ms", "scheduled"),
}
SENT = {"subscriber", "verdict", "status_code", "error_class", "finished_at", "bytes_out", "wait_before_ms"}
AFTER: Mapping[str, set[str]] = {
    "delivered": {"delivered"},
    "reserved": {"reserved"},
    "poll": {"polling"},
    "postponed": {"pending"},
    "failed": {"retrying", "held"},
}
"""What a delivery is after a verdict, where it has not ended."""

SPARED, STREAMS = frozenset({"oauth"}), "webhooks/strm_"
"""A try is not used up where the hub was given no token to send, nor at the sinks of a stream, which are tried without
end.
"""


def family(record: Record) -> str:
    """Whether a record is of what is pushed, of a pull queue, or of a topic."""
    dialect = record["dialect"]
    return str(dialect) if dialect in FAMILIES[1:] else FAMILIES[0]


@cache
def _columns() -> Mapping[str, tuple[str, str]]:
    """Type and kinds of each field, as the table says."""
    found = {name: cells.split(" | ") for name, cells in rows("records", "Fields").items() if name != "field"}
    return {name: (cells[0], cells[1]) for name, cells in found.items()}


@cache
def _allowed(kind: str, of: str, manual: bool, open_still: bool) -> frozenset[str]:
    """The fields that a record may have."""

    def has(kinds: str) -> bool:
        for part in kinds.split("; "):
            whose, colon, which = part.rpartition(": ")
            if colon and whose not in {of, *(["manual"] if manual else [])}:
                continue
            if which == "all" or (which == "all but accepted" and kind != "accepted"):
                return True
            if which == "unsettled deliveries" and open_still and kind != "accepted":
                return True
            if which == "the end only" and kind in ENDS:
                return True
            if kind in which.split(", "):
                return True
        return False

    return frozenset(name for name, (_, kinds) in _columns().items() if has(kinds))


@cache
def _needed(kind: str, of: str, manual: bool) -> frozenset[str]:
    """The fields that a record always has."""
    needed = {name for name, (_, kinds) in _columns().items() if kinds == "all"}
    if kind == "accepted":
        own = {"push": {"version"} if manual else {"body_size"}, "pull": {"body_size", "reservations"}}
        return frozenset(needed | {"owed", "due_at"} | own.get(of, {"body_size", "sequence"}))
    needed |= OF_A_DELIVERY
    if of == "pull":
        return frozenset(needed | {"reservations"})
    if of == "notifications":
        return frozenset(needed | (SENT | {"due_at", "order_key", "sequence"} if kind == "attempt" else {"version"}))
    needed |= {"version", "tries"}
    if kind in {"attempt", "poll"}:
        return frozenset(needed | OF_A_REQUEST)
    return frozenset(needed | ({"scheduled"} if kind == "rescheduled" else set()))


def _fields(record: Record) -> str:
    """How its fields differ from the table; empty if they do not."""
    kind, of, manual = record["kind"], family(record), bool(record.get("manual"))
    open_still = record.get("state") not in ENDS
    if lacks := _needed(kind, of, manual) - record.keys():
        return f"it lacks {sorted(lacks)}"
    if more := record.keys() - _allowed(kind, of, manual, open_still):
        return f"it has {sorted(more)}"
    for name, value in record.items():
        if not TYPES[_columns()[name][0]](value) or (name.endswith("at") and not TIME.fullmatch(value)):
            return f"{name} is {value!r}"
    return ""


def _id(record: Record) -> str:
    """The id that it should have; where a number of its own is in it, that number is taken as it is."""
    uid, kind, of = record["queue_uid"], record["kind"], family(record)
    if kind == "accepted" and not record.get("manual"):
        stay = record["owed"][0].rpartition(".")[0] if of == "pull" else record["message_id"]
        return f"{uid}/{stay}/-/{kind}/1"
    whose, _, subscriber = (record["owed"][0] if kind == "accepted" else record["delivery_id"]).partition(".")
    if of == "pull":
        number = record["reservations"]
    elif of == "notifications":
        number = 1 if kind in ENDS else record["record_id"].rpartition("/")[2]
    else:
        number = record["attempt"] if kind in {"attempt", "poll"} else record["version"]
    return f"{uid}/{whose}/{subscriber}/{kind}/{number}"


def _itself(record: Record) -> str:
    """What it says of itself that cannot be; empty if nothing."""
    kind, state = record["kind"], record.get("state")
    if record["schema_version"] != 2:
        return "its version"
    if kind == "accepted":
        other = [each for each in record["owed"] if each.partition(".")[0].partition("~")[0] != record["message_id"]]
        return "it owes another message" if other else ""
    if record["delivery_id"].partition(".")[0].partition("~")[0] != record["message_id"]:
        return "it is of another message"
    whole = record["delivery_id"].partition(".")[2]
    if whole not in ("*", record["subscriber_id"]):
        return "it is of another subscriber"
    if kind in {"attempt", "poll"} and record["subscriber_id"] == "*":
        return "it names nobody who was asked"
    if kind in ENDS and state != kind:
        return "its end"
    if (kind, state) in {("reserved", "pending"), ("released", "reserved")}:
        return "its state"
    if state in {"retrying", "reserved", "polling"} and "due_at" not in record:
        return "nothing is due"
    if "reason" in record and state not in ENDS | {"held"}:
        return "a reason for no end"
    if state == "reserved" and kind == "reserved" and record["due_at"] < record["at"]:
        return "reserved until before"
    return _verdict(record) if kind in {"attempt", "poll"} and "started_at" in record else ""


def _verdict(record: Record) -> str:
    """What its verdict contradicts."""
    verdict, state, status, manual = record["verdict"], record["state"], record["status_code"], record.get("manual")
    if not manual and state not in ENDS | AFTER.get(verdict, set()):
        return f"{verdict} leads to no {state}"
    # Code of the endpoint's own may take too long, or its process may end: that is no failure of the endpoint.
    if status == 0 and verdict != "failed" and record["error_class"] != "transformation":
        return "without an answer it has not failed"
    if record["dialect"] == "raw" and status and not record["error_class"]:
        meant = "reserved" if status == 202 else "delivered" if 200 <= status < 300 else "failed"
        if verdict != meant:
            return f"{status} is {meant}"
    if "wait_after_ms" in record and "due_at" not in record:
        return "it waits for nothing"
    if verdict != "failed" or manual or "tries_max" not in record or record["error_class"] in SPARED:
        return ""
    tries, most = record["tries"], record["tries_max"]
    if state == "retrying" and not record["delivery_id"].endswith("*") and tries >= most:
        return "all tries are used up"
    if state in {"exhausted", "held"} and "reason" not in record and tries < most:
        return "not all tries are used up"
    return ""


def described(records: Iterable[Record]) -> Iterator[Violation]:
    """Judge records, in any order; some may occur twice."""
    known: dict[str, Record] = {}
    for each in records:
        if each["record_id"] not in known:
            wrong = _fields(each)
            if not wrong:
                known[each["record_id"]] = each
            yield from _noted(each["message_id"], (FIELDS, f"{wrong}: {each}") if wrong else None)
    of_delivery: dict[tuple[str, str], list[Record]] = defaultdict(list)
    of_message: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record_id, each in known.items():
        expected, wrong = _id(each), _itself(each)
        yield from _noted(each["message_id"], (ID, f"not {expected}: {each}") if record_id != expected else None)
        yield from _noted(each["message_id"], (ITSELF, f"{wrong}: {each}") if wrong else None)
        of_message[each["queue_uid"], record_id.split("/")[-4]].append(each)
        if each["kind"] != "accepted" or each.get("manual"):
            of_delivery[each["queue_uid"], each.get("delivery_id") or each["owed"][0]].append(each)
    for several in of_message.values():
        for name in ("project", "queue", "accepted_at", "expires_at"):
            if len({each[name] for each in several}) > 1:
                yield Violation(OTHERS, several[0]["message_id"], f"{name}: {several}")
    for several in of_delivery.values():
        for wrong in _one_after_the_other(several):
            yield Violation(OTHERS, several[0]["message_id"], f"{wrong}: {several}")
    yield from _in_order(known.values())


def _noted(about: str, wrong: tuple[str, str] | None) -> Iterator[Violation]:
    if wrong is not None:
        yield Violation(wrong[0], about, wrong[1])


def _one_after_the_other(several: Sequence[Record]) -> Iterator[str]:
    """What the records of a delivery say one after the other that cannot be."""
    of = family(several[0])
    if of == "notifications":
        return
    if of == "pull":
        ordered = sorted(several, key=lambda each: (each["reservations"], each["kind"] != "reserved"))
    else:
        ordered = sorted(several, key=lambda each: each["version"])
        yield from _by_hand(ordered)
        yield from _requests(ordered)
    for before, later in pairwise(ordered):
        if _ms(later["at"]) < _ms(before["at"]) - CLOCKS_MS:
            yield "times"
        if before.get("state") in ENDS and later["state"] not in ENDS:
            yield "it goes on after its end"
        if of == "push" and before["kind"] != "accepted" and not _counts(later, before["tries"]):
            yield f"{before['tries']} and {later['tries']} tries"
    if ordered[0].get("version") == 1 and ordered[0]["kind"] != "accepted" and not _counts(ordered[0], 0):
        yield "the first try"


def _by_hand(ordered: Sequence[Record]) -> Iterator[str]:
    """No more tries by hand than somebody asked for."""
    asked = 0
    for each in ordered:
        if each.get("manual"):
            asked += -1 if each["kind"] == "attempt" else 1
            if asked < 0:
                yield "by hand, and nobody asked for it"


def _requests(ordered: Sequence[Record]) -> Iterator[str]:
    """Attempts are numbered as they were stored, polls follow an answer that asked for them, and a place stays."""
    attempts = [each for each in ordered if each["kind"] in {"attempt", "poll"}]
    numbers = [each["attempt"] for each in attempts]
    if numbers != sorted({*numbers}):
        yield "attempts"
    first = next((place for place, each in enumerate(attempts) if each["verdict"] == "poll"), len(attempts))
    if any(each["kind"] == "poll" for each in attempts[: first + 1]):
        yield "a poll of nothing"
    for name in ("order_key", "sequence"):
        if len({each.get(name) for each in attempts if each["kind"] == "attempt"}) > 1:
            yield name


def _counts(record: Record, before: int) -> bool:
    """Whether the tries of a record follow from those before it."""
    tries, verdict = int(record["tries"]), record.get("verdict")
    more = tries - before
    several = record["delivery_id"].endswith("*")
    if record["kind"] not in {"attempt", "poll"}:
        # Who resumes what is held gives it all its tries again; a round ends where its last subscriber is gone.
        return more == 0 or tries == 0 or several
    if record.get("manual"):
        return more == 0
    late = record["state"] in ENDS and verdict in {"poll", "postponed"}
    if late or several or record["error_class"] in SPARED or record["queue"].startswith(STREAMS):
        return 0 <= more <= 1
    if verdict == "poll":
        return tries == 0
    return more == (0 if verdict == "postponed" else 1)


def _in_order(records: Iterable[Record]) -> Iterator[Violation]:
    """On a connection, notifications come in rising sequence, each once."""
    by_key: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for each in records:
        if "order_key" in each and family(each) == "notifications":
            by_key[each["queue_uid"], each["subscriber_id"], each["order_key"]].append(each)
    for (_, _, key), several in by_key.items():
        places = sorted((int(each["record_id"].rpartition("/")[2]), each["sequence"]) for each in several)
        if [place for _, place in places] != sorted({place for _, place in places}):
            yield Violation(OTHERS, several[0]["message_id"], f"the order of {key}: {places}")


def stored(records: Iterable[Record], deliveries: Mapping[tuple[str, str], Sequence[Written]]) -> Iterator[Violation]:
    """Compare the records of pushed deliveries with what was stored, version by version.

    Args:
        records: All of them.
        deliveries: What was stored, by message id and subscriber id.
    """
    versions = {
        (message_id, subscriber_id, each.version): each
        for (message_id, subscriber_id), history in deliveries.items()
        for each in history
    }
    for record in records:
        if record["kind"] == "accepted" or family(record) != "push":
            continue
        key = record["message_id"], record["delivery_id"].partition(".")[2], record["version"]
        found = versions.get(key)
        if found is None:
            # What goes by its time to live is written by nobody.
            if record["kind"] != "expired":
                yield Violation(STORED, record["message_id"], f"{record}")
            continue
        was = found.state, found.tries, found.due_at
        told_of = record["state"], record["tries"], _ms(record["due_at"]) if "due_at" in record else None
        if told_of != was:
            yield Violation(STORED, record["message_id"], f"{was}: {record}")


def placed(objects: Mapping[tuple[str, str], bytes]) -> Iterator[Violation]:
    """Where records are: each in an object of its hour, which says how many it had, and names one that was before it:
    most do, as environments write many, and the first of each names none.

    Args:
        objects: All objects, by bucket and key.
    """
    written, linked = 0, 0
    for (bucket, key), content in objects.items():
        if bucket != "RecordsBucket" or not key.startswith("records/dt="):
            continue
        written += 1
        named = re.fullmatch(
            r"records/(dt=(\d{4}-\d\d-\d\d)/hour=(\d\d))/(\w+)-(\w+)-(\w+)-(\d+)\.json\.gz", key, re.ASCII
        )
        if named is None:
            yield Violation(OBJECT, key, "its name")
            continue
        lines = [json.loads(each) for each in gzip.decompress(content).splitlines()]
        own = [each for each in lines if each["kind"] != "link"]
        linked += len(own) < len(lines)
        # The lines of a project that was deleted are taken out.
        if len(own) > int(named[7]) or lines[: len(own)] != own:
            yield Violation(OBJECT, key, f"{len(own)} lines")
        for each in own:
            if (each["at"][:10], each["at"][11:13]) != (named[2], named[3]):
                yield Violation(OBJECT, key, str(each))
            if each["kind"] == "pulse" and each != _pulse(named[4], each["at"]):
                yield Violation(OBJECT, key, str(each))
        for each in lines[len(own) :]:
            target = each["record_id"].removeprefix("link/")
            known = (bucket, f"records/{target}") in objects
            if not known or {*each} != {"schema_version", "record_id", "kind", "at"} or f"records/{target}" == key:
                yield Violation(OBJECT, key, str(each))
        if b"://" in gzip.decompress(content):
            yield Violation(OBJECT, key, "it has a URL")
    if written >= MANY_OBJECTS and linked <= written / 2:
        yield Violation(OBJECT, f"{written} objects", f"{linked} of them name one that was before")


def _pulse(table: str, at: str) -> Record:
    return {"schema_version": 2, "record_id": f"pulse/{table}/{at}", "kind": "pulse", "at": at}


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


__all__ = ["described", "family", "placed", "stored"]
