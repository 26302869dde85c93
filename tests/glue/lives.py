"""Lives of messages according to the hub's own rules, and the records they leave.

Written to disk as the records function does.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.model.backoff import FixedDelay
from pushhub.engine.model.delivery import (
    Delivery,
    DeliveryState,
    acknowledge,
    after_asked_try,
    after_attempt,
    ask_for_try,
    close,
    merge_attempt,
    opening,
)
from pushhub.engine.model.delivery import schedule as scheduled
from pushhub.engine.model.message import Message
from pushhub.engine.model.record import DeliveryRecord
from pushhub.engine.model.records import record_of_acceptance, record_of_delivery
from pushhub.ironmq.model.records import PullItem, record_of_pull

__all__ = ["DAY", "HOUR", "MINUTE", "NOON", "Lives"]

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NOON = 1_795_003_200_000
"""2026-11-18T12:00:00Z."""

POLICY = FixedDelay(retries=2, delay_s=60)


@dataclass
class Lives:
    """Records what happens.

    Attributes:
        records: In the order they were made.
        deliveries: The current state of every delivery, by its id: the report must arrive at the same.
    """

    project: str = "p1"
    queue: str = "orders"
    records: list[DeliveryRecord] = field(default_factory=list)
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    posted: int = 0

    def post(
        self,
        at: int = NOON,
        subscribers: Sequence[str] = ("s0",),
        *,
        unicast: bool = False,
        delay: int = 0,
        size: int = 100,
        expires_in: int = 7 * DAY,
    ) -> list[Delivery]:
        """Accept a message; its deliveries, untried."""
        self.posted += 1
        message = Message(
            project=self.project,
            queue=self.queue,
            queue_uid=f"uid-{self.queue}",
            message_id=str(10**18 + self.posted),
            body=None,
            body_size=size,
            accepted_at=at,
            due_at=at + delay,
            expires_at=at + expires_in,
            subscriber_ids=tuple(subscribers),
            unicast=unicast,
        )
        self.records.append(record_of_acceptance(message))
        opened = [opening(message, each) for each in message.delivery_subscribers]
        self.deliveries.update({each.delivery_id: each for each in opened})
        return opened

    def attempt(
        self,
        delivery: Delivery,
        status: int = 200,
        *,
        at: int | None = None,
        took: int = 100,
        schedule: bool = False,
        error: str = "",
        policy: FixedDelay = POLICY,
        name: str = "erp",
    ) -> Delivery:
        """Try it once, when it is due or at ``at``."""
        start = at if at is not None else (delivery.due_at or delivery.accepted_at)
        answer = Answer(
            status_code=0 if error else status,
            message="",
            error_class=error,
            started_at=start,
            finished_at=start + took,
            bytes_out=100,
            bytes_in=2,
        )
        verdict = Verdict.RESERVED if status == 202 else Verdict.DELIVERED if status < 300 else Verdict.FAILED
        verdict = Verdict.FAILED if error else verdict
        after = after_attempt(
            delivery,
            answer,
            verdict,
            policy=policy,
            reserve_ms=policy.delay_s * 1000,
            jitter=0,
            subscriber=name,
        )
        return self.became(delivery, scheduled(after) if schedule and after.due_at else after, start + took)

    def resend(self, delivery: Delivery, status: int, *, at: int) -> Delivery:
        """A person has it tried once, whatever its state."""
        asked = self.became(delivery, ask_for_try(delivery, at), at)
        answer = Answer(status_code=status, message="", started_at=at, finished_at=at + 100)
        verdict = Verdict.DELIVERED if status < 300 else Verdict.FAILED
        return self.became(asked, after_asked_try(asked, answer, verdict, asked_at=asked.asked_at), at + 100)

    def add(self, delivery: Delivery, subscriber_id: str, *, at: int) -> Delivery:
        """Owe the message of a delivery to another subscriber too."""
        later = replace(
            delivery,
            subscriber_id=subscriber_id,
            targets=(subscriber_id,),
            due_at=at,
            version=0,
            attempts=0,
            added=True,
        )
        return self.became(later, replace(later, version=1), at)

    def acknowledge(self, delivery: Delivery, at: int, attempt: int | None = None) -> Delivery:
        """Its subscriber acknowledges its last attempt, or another."""
        return self.became(
            delivery, acknowledge(delivery, delivery.subscriber_id, attempt or delivery.attempts, at), at
        )

    def answer_late(self, ended: Delivery, begun: Delivery, *, at: int, status: int = 202) -> Delivery:
        """The answer of an attempt during which its delivery was acknowledged, or ended otherwise."""
        answer = Answer(status_code=status, message="", started_at=at - 50, finished_at=at)
        verdict = Verdict.RESERVED if status == 202 else Verdict.DELIVERED if status < 300 else Verdict.FAILED
        folded = merge_attempt(ended, begun, answer, verdict)
        assert folded is not None
        return self.became(ended, folded, at)

    def close(self, delivery: Delivery, state: str, at: int) -> Delivery:
        """Settle it without an attempt."""
        return self.became(delivery, close(delivery, DeliveryState(state), at), at)

    def schedule(self, delivery: Delivery, at: int) -> Delivery:
        """Schedule an untried delivery, as dispatch does with a long delay."""
        return self.became(delivery, replace(scheduled(delivery), version=delivery.version + 1), at)

    def became(self, before: Delivery, after: Delivery, at: int) -> Delivery:
        """Write a delivery, and the record of that change."""
        record = record_of_delivery(before if before.version else None, after, at)
        assert record is not None
        self.records.append(record)
        self.deliveries[after.delivery_id] = after
        return after

    def put(self, at: int = NOON, *, reserved: int = 0, expires_in: int = 7 * DAY, entry: str = "") -> PullItem:
        """Put a message into a pull queue; the hub itself does it with an entry."""
        self.posted += 1
        message = Message(
            project=self.project,
            queue="tasks",
            queue_uid="uid-tasks",
            message_id=str(10**18 + self.posted),
            body=None,
            body_size=10,
            accepted_at=at,
            due_at=at,
            expires_at=at + expires_in,
        )
        return self.lined(None, PullItem(message=message, reserved_count=reserved, entry=entry), at)

    def put_again(self, line: PullItem, at: int, entry: str) -> PullItem:
        """The hub puts a message that was consumed there once more, under the same id."""
        message = replace(line.message, accepted_at=at, due_at=at, expires_at=at + 7 * DAY)
        return self.lined(None, PullItem(message=message, entry=entry), at)

    def reserve(self, line: PullItem, at: int) -> PullItem:
        """A consumer reserves it for a minute."""
        held = replace(
            line, reserved_count=line.reserved_count + 1, reservation_id=f"r{at}", reserved_until=at + MINUTE
        )
        return self.lined(line, held, at)

    def release(self, line: PullItem, at: int) -> PullItem:
        """The consumer gives it back."""
        return self.lined(line, replace(line, reservation_id=None, reserved_until=0), at)

    def remove(self, line: PullItem, at: int, leaving: str | None = None) -> None:
        """It leaves its queue."""
        record = record_of_pull(replace(line, leaving=leaving), None, at)
        assert record is not None
        self.records.append(record)

    def lined(self, before: PullItem | None, after: PullItem, at: int) -> PullItem:
        """Write a pull queue's item, and the record of that change."""
        record = record_of_pull(before, after, at)
        assert record is not None
        self.records.append(record)
        return after

    def states(self) -> Counter[str]:
        """The states of pushed deliveries, not taken from records."""
        return Counter(each.state.value for each in self.deliveries.values())

    def write(self, folder: Path, *, batch: int = 1000) -> list[Path]:
        """Write the records as the records function does; returns the objects written."""
        files: list[Path] = []
        hours: dict[tuple[str, str], list[DeliveryRecord]] = {}
        for record in self.records:
            hours.setdefault(record.hour, []).append(record)
        for (date, hour), records in sorted(hours.items()):
            for start in range(0, len(records), batch):
                part = records[start : start + batch]
                file = (
                    folder
                    / f"dt={date}"
                    / f"hour={hour}"
                    / f"messages-{start + 1}-{start + len(part)}-{len(part)}.json.gz"
                )
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(gzip.compress(lines_of(part).encode(), mtime=0))
                files.append(file)
        return files


def lines_of(records: Sequence[DeliveryRecord]) -> str:
    """JSON lines."""
    return "".join(json.dumps(each.as_fields()) + "\n" for each in records)
