"""Turns changes of stored state into delivery records: each change exactly once and in order, without losing any or
letting one block the others. Written records are counted.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Unavailable, Unreadable
from pushhub.engine.component import Component
from pushhub.engine.model.activity import (
    Activity,
    SubscriberActivity,
    activity_of,
    busiest,
    hour_of,
    subscriber_activity_of,
)
from pushhub.engine.model.record import DeliveryRecord, RecordKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pushhub.base.ports import Telemetry
    from pushhub.engine.model.pulse import Pulse
    from pushhub.engine.protocol import RecordListener
    from pushhub.engine.records.ports import ActivityStore, RecordStore


class Records(Component):
    """Writes the records of stream batches."""

    # Makes the record or records of one stream record, or the pulse; None when the change is not recorded. Raises on
    # stream records it cannot read, and ``Unavailable`` when a lookup failed.
    read: Callable[[Mapping[str, Any]], DeliveryRecord | Sequence[DeliveryRecord | Pulse] | None]
    store: RecordStore  # Where records are written.
    activity: ActivityStore
    # Whether the hub itself handles the messages of a queue, by queue name; records of those are not counted.
    internal: Callable[[str], bool]
    telemetry: Telemetry  # Metrics, and events about what was set aside.
    listeners: Sequence[RecordListener] = ()  # Told of records that were written.

    def run(self, batch: Sequence[Mapping[str, Any]], *, table: str) -> int:
        """Record a batch from one shard of one table's stream. Safe to repeat: the same batch writes the same objects.

        Args:
            batch: Stream records in order.
            table: Name of the table whose stream it is.

        Returns:
            Number of records and pulses made, whether they were written now or before.

        Raises:
            Unavailable: A lookup or write failed; the whole batch must be retried.
        """
        hours: dict[tuple[str, str], list[tuple[str, DeliveryRecord | Pulse]]] = {}
        for stream_record in batch:
            try:
                found = self.read(stream_record)
            except Unreadable as error:
                self._set_aside(stream_record, table, error)
                continue
            except Unavailable:
                raise
            except Exception as error:  # noqa: BLE001 (whatever is wrong with it, it must neither block its shard nor vanish)
                self._set_aside(stream_record, table, error)
                continue
            for record in (found,) if isinstance(found, DeliveryRecord) else found or ():
                hours.setdefault(record.hour, []).append((_sequence(stream_record), record))
        written = 0
        for recorded in hours.values():
            lines = [line for _, line in recorded]
            made_now = [line for line in lines if isinstance(line, DeliveryRecord)]
            first, last = recorded[0][0], recorded[-1][0]
            if self.store.write(lines, table=table, first=first, last=last) and made_now:
                written += len(made_now)
                self._count(made_now)
            # Also if they were written before: whoever wrote them may have died before this.
            for each in self.listeners:
                each.recorded(made_now, f"{table}-{first}-{last}-{len(lines)}")
        if written:
            self.telemetry.count("RecordsWritten", written)
        return sum(len(recorded) for recorded in hours.values())

    def _count(self, records: Sequence[DeliveryRecord]) -> None:
        """Count the records of one hour: one write for each project that has any, and for its busiest subscribers.

        This is a statistic: an error while counting affects nothing else.
        """
        hour = hour_of(records[0])
        counts: dict[str, Activity] = {}
        subscribers: dict[str, dict[str, SubscriberActivity]] = {}
        for record in records:
            if record.kind is not RecordKind.ACCEPTED and self.internal(record.queue):
                continue
            counts[record.project] = counts.get(record.project, Activity()) + activity_of(record)
            at_subscriber = subscriber_activity_of(record)
            if record.subscriber_id and at_subscriber != SubscriberActivity():
                of_project = subscribers.setdefault(record.project, {})
                known = of_project.get(record.subscriber_id, SubscriberActivity())
                of_project[record.subscriber_id] = known + at_subscriber
        for project, activity in counts.items():
            counted, left_out = busiest(subscribers.get(project, {}))
            whole = activity + Activity(unattributed=left_out)
            if whole == Activity():
                continue
            try:
                self.activity.add_activity(project, hour, whole)
                for subscriber_id, each in counted.items():
                    self.activity.add_subscriber_activity(project, subscriber_id, hour, each)
            except Unavailable as error:
                self.telemetry.event("activity_not_counted", error=str(error), project=project)

    def _set_aside(self, stream_record: Mapping[str, Any], table: str, error: Exception) -> None:
        sequence = _sequence(stream_record)
        self.store.quarantine(stream_record, error=repr(error), table=table, sequence=sequence)
        self.telemetry.count("RecordsQuarantined")
        self.telemetry.event("record_quarantined", table=table, sequence=sequence, error=type(error).__name__)


def _sequence(stream_record: Mapping[str, Any]) -> str:
    """The stream record's sequence number, or a digest of the record if even that is missing."""
    try:
        return str(stream_record["dynamodb"]["SequenceNumber"])
    except (KeyError, TypeError):
        return hashlib.sha256(json.dumps(stream_record, sort_keys=True, default=str).encode()).hexdigest()[:32]
