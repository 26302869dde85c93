"""Judges whether the delivery records say what endpoints saw: each record of an attempt is a request that was made,
with its answer, its bytes and its time (docs/records.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from simulation.endpoints import Asked
from simulation.promises.judgement import SECOND, Violation, moment
from simulation.worlds import shown

CLOCKS = 22 * SECOND
"""The most by which an environment's clock is off in a storm, and a second for what is stored in whole ones."""

UNASKED = frozenset({"oauth", "credentials", "transformation"})
"""Errors that come before a request, so that there is none."""

OTHERWISE = "an attempt is recorded otherwise than it went"
NEVER_MADE, OTHER_BYTES = "a request is recorded that was never made", "a request is recorded with other bytes"


def compared(records: Iterable[dict[str, Any]], requests: Iterable[Asked]) -> Iterator[Violation]:
    """Compare the records of attempts on messages that endpoints were asked for with what these saw.

    Args:
        records: All of them.
        requests: All that endpoints saw.
    """
    seen: dict[str, list[Asked]] = defaultdict(list)
    for request in requests:
        if request.message_id:
            seen[request.message_id].append(request)
    for record in records:
        if record["kind"] != "attempt" or record["message_id"] not in seen:
            continue
        if record["error_class"] in UNASKED and record["status_code"] == 0:
            continue
        began = shown.at(record["started_at"])
        about, status = record["message_id"], record["status_code"]
        matching = [each for each in seen[about] if _had(each) == status and abs(each.at - began) <= CLOCKS]
        if not matching:
            yield Violation(NEVER_MADE, about, f"{status} at {moment(began)}: {record}")
            continue
        recorded = record.get("bytes_out"), record.get("bytes_in") if status else None
        sizes = {(len(each.body) if each.arrived else 0, len(each.said) if status else None) for each in matching}
        if recorded not in sizes:
            yield Violation(OTHER_BYTES, about, f"{recorded}, and it was one of {sorted(sizes)}: {record}")


def as_told(records: Iterable[dict[str, Any]], expected: Mapping[str, Mapping[str, object]]) -> Iterator[Violation]:
    """Compare the records of messages that were tried once with how that went.

    Args:
        records: All of them.
        expected: Fields of the one record, by message.
    """
    found: dict[str, list[Mapping[str, object]]] = {each: [] for each in expected}
    for record in records:
        if record["kind"] == "attempt" and record["message_id"] in expected:
            found[record["message_id"]].append({name: record.get(name) for name in expected[record["message_id"]]})
    for message, fields in expected.items():
        if found[message] != [fields]:
            yield Violation(OTHERWISE, message, f"{found[message]}, not {fields}")


def _had(request: Asked) -> int:
    """The status that the hub had; 0 if it did not wait for it."""
    return 0 if request.answered_at is None else request.status
