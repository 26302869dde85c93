"""Judges by the delivery records alone whether everything that was accepted is accounted for.

The nightly job proves the same on Spark (``glue_jobs/delivery_report``), but a simulation that takes seconds cannot
start Spark. This is a second, independent reading of the rules in docs/records.md, in plain Python: balance, no gap in
versions and attempts, no delivery with two ends, no record of anything that was never owed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from simulation.promises.judgement import Violation

ENDS = frozenset({"delivered", "acknowledged", "exhausted", "expired", "cancelled"})


def judged(records: Iterable[dict[str, Any]]) -> tuple[dict[tuple[str, str], str], list[Violation]]:
    """The state of each delivery according to its records, by queue generation and delivery id; and the violations
    found.

    Args:
        records: All of them, in any order; some may occur twice.
    """
    known: dict[str, dict[str, Any]] = {}
    violations: list[Violation] = []
    for each in records:
        same = known.setdefault(each["record_id"], each)
        if same != each:
            violations.append(Violation("record told twice differently", each["record_id"], f"{same} and {each}"))
    owed: set[tuple[str, str]] = set()
    added: dict[tuple[str, str], int] = {}
    events: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for each in known.values():
        if each["kind"] == "accepted":
            owed.update((each["queue_uid"], delivery) for delivery in each["owed"])
            if each.get("manual"):
                # Added after its message was accepted: the record shows the delivery's first version.
                added |= {(each["queue_uid"], delivery): each["version"] for delivery in each["owed"]}
        else:
            events[each["queue_uid"], each["delivery_id"]].append(each)
    standing: dict[tuple[str, str], str] = {}
    for key in owed | set(events):
        lives = events[key]
        about = key[1].partition(".")[0]
        if key not in owed:
            violations.append(Violation("never accepted", about, f"{key} has {[each['kind'] for each in lives]}"))
            continue
        standing[key] = _standing(lives)
        violations += [Violation(rule, about, f"{key}: {detail}") for rule, detail in _wrongs(lives, added.get(key))]
    return standing, violations


def _standing(lives: list[dict[str, Any]]) -> str:
    ends = [each for each in lives if each["state"] in ENDS]
    if ends:
        # A delivery that had ended may have been retried manually, and delivered.
        return str(max(ends, key=lambda each: each.get("version", 0))["state"])
    if not lives:
        return "unheard of"
    numbered = [each for each in lives if "version" in each]
    last = max(numbered, key=lambda each: each["version"]) if numbered else max(lives, key=lambda each: each["at"])
    return str(last["state"])


def _wrongs(lives: list[dict[str, Any]], added: int | None) -> Iterable[tuple[str, str]]:
    versions = sorted([each["version"] for each in lives if "version" in each] + [added] * (added is not None))
    if versions and versions != list(range(1, versions[-1] + 1)):
        yield "record missing", f"versions {versions}"
    attempts = sorted(each["attempt"] for each in lives if each["kind"] in {"attempt", "poll"} and "attempt" in each)
    if attempts and lives[0]["dialect"] not in {"notifications"} and attempts != list(range(1, attempts[-1] + 1)):
        yield "record missing", f"attempts {attempts}"
    counts = sorted({each["reservations"] for each in lives if each["kind"] == "reserved" and "reservations" in each})
    if counts and counts != list(range(counts[0], counts[-1] + 1)):
        yield "record missing", f"reservations {counts}"
    yield from _times(lives)
    # A manual try may follow an end, and deliver a second time.
    ends = [each for each in lives if each["state"] in ENDS and not each.get("manual")]
    # An acknowledgement, its owner or its time may end it before the answer of its attempt: both records say so then.
    different = {each["state"] for each in ends}
    late = {"acknowledged", "cancelled", "expired"}
    settled = [each for each in ends if not (each["kind"] in {"attempt", "poll"} and each["state"] in late)]
    if len(different) > 1 or len(settled) > 1:
        yield "ended twice", ", ".join(f"{each['kind']} {each['state']} {each['at']}" for each in ends)


def _times(lives: list[dict[str, Any]]) -> Iterable[tuple[str, str]]:
    """An attempt lasts from its beginning to its end, and begins after the wait that it tells of."""
    asked = {each["attempt"]: each for each in lives if each["kind"] in {"attempt", "poll"} and "started_at" in each}
    for number, each in asked.items():
        began, ended = _ms(each["started_at"]), _ms(each["finished_at"])
        before = asked.get(number - 1)
        waited_from = before["finished_at"] if before else each["accepted_at"] if number == 1 else None
        expected: dict[str, object] = {"duration_ms": ended - began, "at": each["finished_at"]}
        if waited_from is not None:
            expected["wait_before_ms"] = max(0, began - _ms(waited_from))
        if "due_at" in each and "wait_after_ms" in each:
            expected["wait_after_ms"] = max(0, _ms(each["due_at"]) - ended)
        shown = {name: each.get(name) for name in expected}
        if shown != expected:
            yield "an attempt is recorded with other times", f"{shown}, and it was {expected}"
        # An answer of a service's that cannot be read has both.
        unread = each["dialect"] == "hub" and each["status_code"] == 200
        if (each["status_code"] == 0) != bool(each["error_class"]) and not unread:
            yield "an answer and an error", f"{each['status_code']} {each['error_class']}"


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


__all__ = ["ENDS", "judged"]
