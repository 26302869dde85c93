"""The delivery record: the single definition of its fields for everything that writes, reads or describes them.

Pure, and free of imports from the hub.

The delivery report ships this file and takes its columns from it. ``make record-schema`` generates the field table in
``docs/records.md`` and the Athena columns (``template.yaml``) from it. Add a new field here and where it gets its
value, and nowhere else by hand.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION: Final = 2
"""Incremented when a field changes its meaning or is removed; not when one is added."""


PULSE: Final = "pulse"
"""The ``kind`` of what stands among the records of a table and is none: it has come through the table's stream. Its
``record_id`` is ``pulse/{table}/{at}``.
"""

LINK: Final = "link"
"""The ``kind`` of a line that names an object which was written before. Its ``record_id`` is ``link/`` and that
object's key below ``records/``.
"""

PULSE_EVERY_S: Final = 300
"""Seconds from one pulse to the next; they stand for whole multiples of it."""


NO_RECORDS: Final = (PULSE, LINK)
"""Kinds of lines that stand among delivery records and are none."""


class RecordKind(StrEnum):
    """What happened."""

    ACCEPTED = "accepted"
    ATTEMPT = "attempt"
    POLL = "poll"
    ACKNOWLEDGED = "acknowledged"
    DELIVERED = "delivered"
    EXHAUSTED = "exhausted"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    RESCHEDULED = "rescheduled"
    RESERVED = "reserved"
    RELEASED = "released"


def _column(column: str, kinds: str, meaning: str) -> Mapping[str, str]:
    """Metadata of a field: the SQL type of its column, the kinds of record that have it, and what it means."""
    return {"column": column, "kinds": kinds, "meaning": meaning}


_EACH: Final = "all but accepted"
_ASKED: Final = "attempt, poll"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRecord:
    """One event in the life of a message. Fields and units: ``docs/records.md``; None means left out."""

    schema_version: int = field(
        default=SCHEMA_VERSION,
        metadata=_column(
            "int",
            "all",
            "2. Fields may be added within a version; a reader ignores those it does not know",
        ),
    )
    record_id: str = field(
        metadata=_column(
            "string",
            "all",
            "`{queue_uid}/{message_id}/{subscriber of the delivery, or -}/{kind}/{n}` (n: attempt number, else "
            "delivery version; pull: reservation"
            " count; notifications: version of the backlog for attempts, else 1). A dead letter keeps its message id "
            "in another queue, hence"
            " `queue_uid`. In pull queues, the message id of what the hub itself put there is followed by `~` and eight"
            " hex digits, as it may come there again after it was consumed. The same event has the same id however"
            " often the stream replays it",
        )
    )
    kind: RecordKind = field(metadata=_column("string", "all", "see below"))
    at: str = field(
        metadata=_column(
            "timestamp", "all", "time of the event, ISO 8601 UTC with milliseconds, `2026-11-21T05:34:16.123Z`"
        )
    )
    project: str = field(metadata=_column("string", "all", "id of the project"))
    queue: str = field(metadata=_column("string", "all", "name of the queue. Notifications: the topic"))
    queue_uid: str = field(
        metadata=_column(
            "string",
            "all",
            "the queue's generation, for a pull queue that of its messages. Notifications: the topic's id",
        )
    )
    message_id: str = field(metadata=_column("string", "all", "unique within `queue_uid`"))
    dialect: str = field(
        metadata=_column(
            "string",
            "all",
            (
                "what the subscriber is sent: `raw`, `hub`, `webhooks`, `notifications`; `pull` for pull queues; on "
                "`accepted`: how it was posted"
            ),
        )
    )
    accepted_at: str = field(metadata=_column("timestamp", "all", "when the message was accepted"))
    expires_at: str = field(metadata=_column("timestamp", "all", "when it expires"))
    body_size: int | None = field(default=None, metadata=_column("bigint", "accepted", "bytes of the message's body"))
    body_ref: str | None = field(
        default=None,
        metadata=_column(
            "string",
            "accepted",
            (
                "where a body that is too large for the table is in the bodies bucket: `{object key}@{first byte}`; "
                "with it a lost message can be restored"
            ),
        ),
    )
    owed: tuple[str, ...] | None = field(
        default=None,
        metadata=_column(
            "array<string>",
            "accepted",
            (
                "delivery ids owed: `{message_id}.{subscriber_id}`; unicast one `{message_id}.*`; pull queues one "
                "`{message_id}.line`, or `{message_id}~{stay}.line` where the record's id says so too"
            ),
        ),
    )
    due_at: str | None = field(
        default=None,
        metadata=_column(
            "timestamp",
            "accepted; unsettled deliveries",
            (
                "when the delivery is looked at next: first delivery due, next try, end of a reservation; "
                "notifications: when they expire. Left out when settled"
            ),
        ),
    )
    delivery_id: str | None = field(default=None, metadata=_column("string", _EACH, "as in `owed`"))
    subscriber_id: str | None = field(
        default=None,
        metadata=_column(
            "string",
            _EACH,
            (
                "the subscriber (in unicast the one tried, while delivery_id ends in `*`); `line` for pull queues; "
                "notifications: the subscriber's generation"
            ),
        ),
    )
    subscriber: str | None = field(
        default=None,
        metadata=_column("string", f"{_ASKED}; notifications: {_EACH}", "the subscriber's name, if it has one"),
    )
    state: str | None = field(
        default=None,
        metadata=_column(
            "string",
            _EACH,
            (
                "state of the delivery after the event: pending retrying reserved polling held delivered acknowledged "
                "exhausted expired cancelled"
            ),
        ),
    )
    reason: str | None = field(
        default=None,
        metadata=_column(
            "string",
            _EACH,
            "why the delivery ended, where its state alone does not say it: status_410 asked_to_stop asked_to_disable "
            "subscriber_disabled"
            " subscriber_removed queue_deleted queue_cleared message_gone unfit cancelled_by_transformation body_lost",
        ),
    )
    scheduled: bool | None = field(
        default=None,
        metadata=_column(
            "boolean",
            "attempt, poll, rescheduled",
            "whether it waits in the schedule, a DynamoDB table, instead of in SQS",
        ),
    )
    version: int | None = field(
        default=None,
        metadata=_column(
            "int",
            "push: all but accepted; manual: accepted; notifications: the end only",
            (
                "the delivery's version after the event. Every change raises it by one and makes one record, so a "
                "missing number is a missing record"
            ),
        ),
    )
    reservations: int | None = field(
        default=None,
        metadata=_column(
            "int",
            "pull: all",
            "how often it has been reserved or touched, including this time. Each time makes one record",
        ),
    )
    attempt: int | None = field(
        default=None,
        metadata=_column(
            "int",
            "attempt, poll, acknowledged",
            (
                "number of the attempt, from 1. Notifications: 1 when sent for the first time; left out for "
                "repetitions, which are not counted, and where it had waited for its consumer"
            ),
        ),
    )
    tries: int | None = field(
        default=None,
        metadata=_column("int", "push: all but accepted", "tries used up (in unicast a try is a whole round)"),
    )
    tries_max: int | None = field(
        default=None, metadata=_column("int", _ASKED, "tries allowed; left out if unlimited or unknown")
    )
    verdict: str | None = field(
        default=None, metadata=_column("string", _ASKED, "delivered reserved failed poll postponed")
    )
    status_code: int | None = field(default=None, metadata=_column("int", _ASKED, "0 if there was no answer"))
    error_class: str | None = field(
        default=None,
        metadata=_column("string", _ASKED, "empty if there was an answer; of a hub service, one that could be read"),
    )
    started_at: str | None = field(default=None, metadata=_column("timestamp", _ASKED, "when the request began"))
    finished_at: str | None = field(default=None, metadata=_column("timestamp", _ASKED, "when the request ended"))
    duration_ms: int | None = field(default=None, metadata=_column("bigint", _ASKED, "between the two, milliseconds"))
    bytes_out: int | None = field(default=None, metadata=_column("bigint", _ASKED, "bytes sent"))
    bytes_in: int | None = field(default=None, metadata=_column("bigint", _ASKED, "bytes of the answer"))
    wait_before_ms: int | None = field(
        default=None, metadata=_column("bigint", _ASKED, "since the end of the previous attempt, or acceptance")
    )
    wait_after_ms: int | None = field(default=None, metadata=_column("bigint", _ASKED, "until the next look"))
    manual: bool | None = field(
        default=None,
        metadata=_column(
            "boolean",
            "accepted, attempt, rescheduled",
            "a person asked for it: one try besides the automatic ones, and what is owed since then; else left out",
        ),
    )
    order_key: str | None = field(
        default=None,
        metadata=_column(
            "string",
            "attempt",
            "if order was promised: within an order key, deliveries to a subscriber come in rising sequence. "
            "Notifications: the connection, for shared"
            " subscribers with the source's bucket",
        ),
    )
    sequence: int | None = field(
        default=None,
        metadata=_column(
            "bigint", "accepted, attempt", "place in that order. Notifications: the position in the topic"
        ),
    )

    trace_id: str | None = field(
        default=None,
        metadata=_column("string", _ASKED, "the producer's trace, in projects that export spans; else left out"),
    )
    parent_span_id: str | None = field(
        default=None, metadata=_column("string", _ASKED, "the span that posted the message; likewise")
    )
    span_id: str | None = field(
        default=None, metadata=_column("string", _ASKED, "the attempt's own, which its receiver got; likewise")
    )
    signed_by: tuple[str, ...] | None = field(
        default=None,
        metadata=_column(
            "array<string>",
            _ASKED,
            "names of the signature schemes of the request: the preset, or else the header, in lower case; webhooks: "
            "left out if it was Standard Webhooks alone",
        ),
    )
    token_client: str | None = field(
        default=None, metadata=_column("string", _ASKED, "the OAuth client whose token was sent, never the token")
    )
    certificate: str | None = field(
        default=None,
        metadata=_column("string", _ASKED, "SHA-256 of the client certificate that was shown, hexadecimal"),
    )

    @property
    def hour(self) -> tuple[str, str]:
        """Date and hour (UTC) of the event, as used in the object key."""
        return self.at[:10], self.at[11:13]

    def as_fields(self) -> dict[str, object]:
        """The fields that have a value, ready for JSON."""
        named = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: value for name, value in named if value is not None}


COLUMNS: Final[Mapping[str, str]] = {each.name: each.metadata["column"] for each in fields(DeliveryRecord)}
"""The SQL type of each field, in field order."""

REQUIRED: Final = tuple(each.name for each in fields(DeliveryRecord) if each.default is MISSING)
"""Fields that every record has, whatever its kind; a record without one of them is useless."""
