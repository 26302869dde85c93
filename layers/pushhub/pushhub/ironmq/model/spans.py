"""Spans of attempts, made from their delivery records: the data model of OpenTelemetry, as JSON.

Sources: OpenTelemetry protocol 1.x, "OTLP/HTTP", "JSON Protobuf Encoding" (ids in hex, 64-bit numbers as text);
semantic conventions for HTTP and messaging. The names of the two spans are those of Svix.
"""

from __future__ import annotations

import gzip
import hashlib
from typing import TYPE_CHECKING, Any, Final

from pushhub.base.json_text import read, write
from pushhub.base.numerals import whole
from pushhub.base.times import epoch_ms
from pushhub.engine.model.record import DeliveryRecord, RecordKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

SPANS_QUEUE: Final = "ironmq/spans"
"""Name of the internal queue of a project whose messages are spans."""

SPANS_UID: Final = "spans"
"""Generation of that queue, and id of its only subscriber; under it is also counted what was exported and dropped."""

SPANS_SCHEME: Final = "ironmq-spans"
"""Scheme of that subscriber."""

SPANS_HEADER: Final = "Spans"
"""Of such a message: how many spans it holds. It is not sent."""

SPANS_OF_ATTEMPT: Final = 2

MOST_ATTEMPTS = 60
"""Attempts whose spans go into one message."""

MOST_BYTES = 8_192
"""Bytes that such a message may have, compressed: as many as are stored with a message."""

_INTERNAL, _CLIENT = 1, 3
_OK, _ERROR = 1, 2
_SAMPLED = 1
_NS = 1_000_000


def exported(record: DeliveryRecord) -> bool:
    """Whether a record becomes spans: an attempt of a trace, in a project that exports spans."""
    return record.kind in (RecordKind.ATTEMPT, RecordKind.POLL) and record.span_id is not None


def requests_of(
    records: Sequence[DeliveryRecord], shown: Callable[[str, str], tuple[str, str | None, str]]
) -> Iterator[tuple[int, bytes]]:
    """The bodies of export requests for the attempts of one project, compressed, each with its number of spans. The
    same records give the same bytes.

    Args:
        records: Those of :func:`exported`.
        shown: What a message belongs to, the id of that, and the message's own, as clients know them, by queue and id.
    """
    for start in range(0, len(records), MOST_ATTEMPTS):
        yield from _fitting(records[start : start + MOST_ATTEMPTS], shown)


def _fitting(
    records: Sequence[DeliveryRecord], shown: Callable[[str, str], tuple[str, str | None, str]]
) -> Iterator[tuple[int, bytes]]:
    spans = [span for each in records for span in _spans(each, shown)]
    resource = {"service.name": "pushhub", "pushhub.project": records[0].project}
    scope = {"scope": {"name": "pushhub"}, "spans": spans}
    request = {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scope]}]}
    body = gzip.compress(write(request, ascii_only=True).encode(), mtime=0)
    if len(body) <= MOST_BYTES or len(records) == 1:
        yield len(spans), body
        return
    half = len(records) // 2
    yield from _fitting(records[:half], shown)
    yield from _fitting(records[half:], shown)


def _spans(
    record: DeliveryRecord, shown: Callable[[str, str], tuple[str, str | None, str]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attempt, and within it the request, whose id the receiver got as its parent."""
    owner, owner_id, message_id = shown(record.queue, record.message_id)
    failed, code = record.verdict == "failed", record.status_code or None
    problem = record.error_class or (str(code) if code else "")
    attempt = {
        "messaging.system": "pushhub",
        "messaging.destination.name": record.queue,
        "messaging.message.id": message_id,
        f"pushhub.{owner}": owner_id,
        "pushhub.subscriber": record.subscriber,
        "pushhub.subscriber_id": record.subscriber_id,
        "pushhub.delivery_id": record.delivery_id,
        "pushhub.kind": record.kind.value,
        "pushhub.state": record.state,
        "pushhub.manual": record.manual,
        "pushhub.wait_before_ms": record.wait_before_ms,
        "attempt_count": record.attempt,
        "status": record.verdict,
        "error.type": problem if failed else None,
    }
    request = {
        "http.response.status_code": code,
        "http.request.body.size": record.bytes_out,
        "http.response.body.size": record.bytes_in,
        "error.type": problem if failed else None,
    }
    common = {
        "traceId": record.trace_id,
        "flags": _SAMPLED,
        "startTimeUnixNano": _ns(record.started_at),
        "endTimeUnixNano": _ns(record.finished_at),
        "status": _status(record, problem),
    }
    outer_id = hashlib.sha256(f"{record.span_id}/message_attempt".encode()).hexdigest()[:16]
    outer = {
        "spanId": outer_id,
        "parentSpanId": record.parent_span_id,
        "name": "message_attempt",
        "kind": _INTERNAL,
        "attributes": _attributes(attempt),
    }
    inner = {
        "spanId": record.span_id,
        "parentSpanId": outer_id,
        "name": "http_attempt",
        "kind": _CLIENT,
        "attributes": _attributes(request),
    }
    return common | outer, common | inner


def _status(record: DeliveryRecord, problem: str) -> dict[str, Any]:
    if record.verdict == "failed":
        return {"code": _ERROR, "message": problem}
    return {"code": _OK} if record.verdict == "delivered" else {}


def _ns(moment: str | None) -> str:
    return str(epoch_ms(moment or "1970-01-01T00:00:00.000Z") * _NS)


def _attributes(values: Mapping[str, str | int | bool | None]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value is not None]


def _value(value: str | int | bool) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def rejected_spans(body: bytes, spans: int) -> tuple[int, str]:
    """How many of the spans a collector says that it did not take, and why: the ``partialSuccess`` of its answer.

    Args:
        body: What it answered, at most; untrusted.
        spans: How many it was sent.
    """
    try:
        partial = read(body, last_wins=True)["partialSuccess"]
        rejected = max(0, min(_whole(partial.get("rejectedSpans", 0)), spans))
        reason = partial.get("errorMessage", "")
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0, ""
    return rejected, reason[:200] if isinstance(reason, str) else ""


def _whole(said: object) -> int:
    """A whole number, which the JSON of protocol buffers may write as a text."""
    if isinstance(said, str):
        return whole(said)
    if isinstance(said, bool) or not isinstance(said, int):
        raise TypeError
    return said
