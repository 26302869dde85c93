"""Delivery records, as a client of a project may read them: those of some messages, and what is expected of an attempt.

Source: docs/records.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.talk import Came, Talk

MINUTE = 60
LOOKS = 30
"""Records are looked for so often, each minute, from when all of them may have been written."""

NEAR_S = 2

Record = Mapping[str, Any]
Answers = Sequence[tuple[int, bytes]]


def recorded_of(talk: Talk, wanted: Callable[[Record], bool], count: int) -> list[Record]:
    """What is recorded of some messages, once there is so much of it."""
    talk.sleep(3 * MINUTE, exactly=True)
    for _ in range(LOOKS):
        found = {each["record_id"]: each for each in talk.records() if wanted(each)}
        if len(found) >= count:
            break
        talk.sleep(MINUTE, exactly=True)
    return [*found.values()]


def lives_of(talk: Talk, message_id: str, count: int) -> tuple[list[Record], dict[str, list[Record]]]:
    """The acceptances of a message, and the records of its deliveries in order, by the subscriber's name."""
    found = recorded_of(talk, lambda each: each["message_id"] == message_id, count)
    talk.is_so(f"records of {message_id}", count, len(found))
    names = {each["delivery_id"]: each["subscriber"] for each in found if "subscriber" in each}
    lives: dict[str, list[Record]] = defaultdict(list)
    for each in sorted(found, key=_place):
        if "delivery_id" in each:
            whole = each["delivery_id"].partition(".")[2]
            lives[whole if whole in ("*", "line") else names.get(each["delivery_id"], whole)].append(each)
    return [each for each in found if each["kind"] == "accepted"], lives


def _place(record: Record) -> tuple[int, int, bool]:
    """Its place among the records of its delivery; what ended is the last of its kind."""
    kind = record["kind"]
    return record.get("version", 0), record.get("reservations", 0), kind == record.get("state") and kind != "reserved"


def near(talk: Talk, at: float) -> Callable[[str], bool]:
    """A time at about a moment, microseconds since the start."""
    return lambda text: abs(talk.moment(text) - at) <= NEAR_S * SECOND


def after(talk: Talk, text: str, seconds: float) -> Callable[[str], bool]:
    """A time so long after another."""
    return lambda later: abs(talk.moment(later) - talk.moment(text) - seconds * SECOND) <= SECOND


def in_turn(answers: Answers) -> Callable[[Came], tuple[int, bytes]]:
    """One answer after the other; the last one is that of all that follow."""
    left = [*answers]
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def attempt(talk: Talk, came: Came, number: int, answer: tuple[int, bytes], **more: Any) -> dict[str, Any]:
    """An attempt as its record tells of it."""
    return {
        "kind": "attempt",
        "at": near(talk, came.at),
        "attempt": number,
        "status_code": answer[0],
        "error_class": "",
        "started_at": near(talk, came.at),
        "finished_at": near(talk, came.at),
        "bytes_out": len(came.body),
        "bytes_in": len(answer[1]),
        "scheduled": False,
        **more,
    }


__all__ = ["Answers", "Record", "after", "attempt", "in_turn", "lives_of", "near", "recorded_of"]
