"""Judges whether the delivery records say what endpoints saw: each record of an attempt is a request that was made,
with its answer, its bytes, its time, its signatures and its place in a trace, and each message has the size that came
(docs/records.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
OTHER_PROOF, OTHER_SIZE = "a request is recorded with other proofs", "a message is recorded with another size"

STANDARD, STANDARD_HEADER = "standard-webhooks", "webhook-signature"
HEADERS: Mapping[str, str] = {
    STANDARD: STANDARD_HEADER,
    "stripe": "stripe-signature",
    "github": "x-hub-signature-256",
    "shopify": "x-shopify-hmac-sha256",
    "slack": "x-slack-signature",
    "twilio": "x-twilio-signature",
}
"""Headers of signature schemes that always have the same one (docs/signatures.md)."""


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
        if record["message_id"] not in seen:
            continue
        if record["kind"] == "attempt" and "started_at" in record:
            yield from _attempt(record, seen[record["message_id"]])
        elif record["kind"] == "accepted" and record["dialect"] == "raw":
            sizes = {len(each.body) for each in seen[record["message_id"]]}
            if record["body_size"] not in sizes:
                yield Violation(OTHER_SIZE, record["message_id"], f"it was one of {sorted(sizes)}: {record}")


def _attempt(record: Mapping[str, Any], seen: Sequence[Asked]) -> Iterator[Violation]:
    if record["error_class"] in UNASKED and record["status_code"] == 0:
        return
    began = shown.at(record["started_at"])
    about, status = record["message_id"], record["status_code"]
    matching = [each for each in seen if _had(each) == status and abs(each.at - began) <= CLOCKS]
    if not matching:
        yield Violation(NEVER_MADE, about, f"{status} at {moment(began)}: {record}")
        return
    recorded = record.get("bytes_out"), record.get("bytes_in") if status else None
    sizes = {(len(each.body) if each.arrived else 0, len(each.said) if status else None) for each in matching}
    if recorded not in sizes:
        yield Violation(OTHER_BYTES, about, f"{recorded}, and it was one of {sorted(sizes)}: {record}")
    elif not any(_proves(record, each.headers) for each in matching):
        headers = [sorted(each.headers.items()) for each in matching]
        yield Violation(OTHER_PROOF, about, f"{record}, and it had one of {headers}")


def _proves(record: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
    """Whether a request had the signatures, the token and the span that its record tells of."""
    schemes = record.get("signed_by", [])
    if any(each in HEADERS and HEADERS[each] not in headers for each in schemes):
        return False
    # Where webhooks name no scheme, it was Standard Webhooks alone.
    told_of = record["status_code"] and record["dialect"] == "webhooks" and STANDARD not in schemes
    if told_of and (STANDARD_HEADER in headers) == bool(schemes):
        return False
    if "token_client" in record and not headers.get("authorization", "").startswith("Bearer "):
        return False
    span = record.get("span_id")
    return span is None or headers.get("traceparent", "").split("-")[1:3] == [record["trace_id"], span]


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
