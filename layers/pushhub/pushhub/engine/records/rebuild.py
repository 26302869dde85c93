"""Restores messages and deliveries from delivery records, after the messages table was lost.

The records say what is still owed, and how far each delivery had got. They do not contain the bodies: only those in the
bodies bucket can be recovered. Any other delivery still owed is given up and reported, with the reason ``body_lost``.
Nothing is delivered again that a record says was delivered: also of a message that a backup still had, whose deliveries
went on after that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pushhub.base.errors import Conflict, MessageNotFound, Unreadable
from pushhub.base.gates import Proof
from pushhub.base.times import epoch_ms
from pushhub.base.verdict import Verdict
from pushhub.engine.bodies import body_of
from pushhub.engine.component import Component
from pushhub.engine.model.delivery import Attempt, Delivery, DeliveryState, TargetStatus, close, opening, schedule
from pushhub.engine.model.keys import MessageKey
from pushhub.engine.model.message import BodyRef, Message
from pushhub.engine.ports import BodyStore, QueueSource, StoredMessages
from pushhub.engine.records.ports import Restored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pushhub.base.ports import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

TOGETHER = 100
"""Messages that are looked for in one call."""

BODY_LOST = "body_lost"
"""Reason of a delivery given up because its message's body is lost."""

_ELSEWHERE = frozenset({"pull", "notifications"})
"""The dialect in records of messages from other tables."""

_ODD = (AttributeError, KeyError, TypeError, ValueError)
"""Raised by reading a record that is none."""


class _Messages(StoredMessages, Restored, Protocol):
    """Messages and deliveries, and a way to restore lost ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Something the records do not say about a message that was still owed.

    Attributes:
        what: What is unknown, and what happens because of it.
    """

    project: str
    queue: str
    message_id: str
    what: str


@dataclass(slots=True, kw_only=True)
class Rebuilt:
    """What a rebuild did, or would do in a dry run.

    Attributes:
        messages: Messages restored.
        resumed: Deliveries that continue.
        held: Deliveries held for a person.
        lost: Deliveries given up because the body is lost.
        expired: Deliveries whose message has expired.
        present: Messages that were not lost.
        updated: Deliveries of those that were older in the table than in the records.
        unknown: What the records do not say.
        passed_over: Records that cannot be understood, and why.
    """

    messages: int = 0
    resumed: int = 0
    held: int = 0
    lost: int = 0
    expired: int = 0
    present: int = 0
    updated: int = 0
    unknown: list[Unknown] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Life:
    """The records of one message: its acceptance, those of later additions, and for each delivery the last record, the
    last attempt at each subscriber, and the numbers of the attempts there.
    """

    accepted: Mapping[str, Any] | None = None
    added: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    last: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    attempts: dict[str, dict[str, Mapping[str, Any]]] = field(default_factory=dict)
    numbers: dict[tuple[str, str], set[int]] = field(default_factory=dict)

    def add(self, record: Mapping[str, Any]) -> None:
        if record["kind"] == "accepted":
            if record.get("manual"):
                self.added |= dict.fromkeys(record["owed"], record)
            else:
                self.accepted = record
            return
        delivery_id = record["delivery_id"]
        if record["version"] >= self.last.get(delivery_id, record)["version"]:
            self.last[delivery_id] = record
        if record["kind"] in ("attempt", "poll"):
            number, subscriber_id = record["attempt"], record["subscriber_id"]
            known = self.attempts.setdefault(delivery_id, {})
            if number >= known.get(subscriber_id, record)["attempt"]:
                known[subscriber_id] = record
            self.numbers.setdefault((delivery_id, subscriber_id), set()).add(number)

    def last_attempt(self, delivery_id: str) -> Mapping[str, Any] | None:
        """The last attempt of a delivery."""
        return max(self.attempts.get(delivery_id, {}).values(), key=lambda each: each["attempt"], default=None)

    def statuses(self, delivery_id: str) -> dict[str, TargetStatus]:
        """The last answer of each subscriber that was asked, without its text, which is in no record."""
        return {
            subscriber_id: TargetStatus(
                tries=len(self.numbers[delivery_id, subscriber_id]),
                status_code=each["status_code"],
                last_try_at=epoch_ms(each["finished_at"]),
                name=each.get("subscriber"),
            )
            for subscriber_id, each in self.attempts.get(delivery_id, {}).items()
        }

    @property
    def open(self) -> bool:
        """Whether something may still be owed."""
        owed = {*(self.accepted or {}).get("owed", ()), *self.added}
        return self.accepted is not None and any(
            each not in self.last or self.last[each]["state"] not in _SETTLED for each in owed
        )


_SETTLED = frozenset({"delivered", "acknowledged", "exhausted", "expired", "cancelled"})


class Rebuild(Component):
    """Restores lost messages."""

    messages: _Messages  # The table that lost them.
    bodies: BodyStore  # The bodies bucket.
    queues: QueueSource  # Provides the subscribers of a unicast queue, which records do not contain.
    clock: Clock

    def run(self, records: Iterable[Mapping[str, Any]], *, dry: bool = False) -> Rebuilt:
        """Restore every message that is still owed to somebody, and resume its deliveries. Deliveries of a message that
        is there, but that a backup has as they were earlier, become what they were in the end. Can be repeated.

        Push must not run at the same time: it treats deliveries missing from the table as new ones.

        Args:
            records: The fields of all records since before the oldest message still owed; in any order, duplicates
                allowed.
            dry: Only report what would be done.

        Raises:
            Unavailable: Something could not be read or written; run it again.
        """
        lives: dict[tuple[str, str, str], _Life] = {}
        rebuilt = Rebuilt()
        for record in records:
            if record["dialect"] not in _ELSEWHERE:
                key = (record["project"], record["queue_uid"], record["message_id"])
                try:
                    lives.setdefault(key, _Life()).add(record)
                except _ODD as error:
                    rebuilt.passed_over.append(f"{record['record_id']}: {error!r}")
        keys = [*lives]
        for start in range(0, len(keys), TOGETHER):
            some = keys[start : start + TOGETHER]
            self._together({MessageKey(*key): lives[key] for key in some}, rebuilt, dry=dry)
        return rebuilt

    def _together(self, lives: Mapping[MessageKey, _Life], rebuilt: Rebuilt, *, dry: bool) -> None:
        there, damaged = _readable(self.messages.messages, [*lives])
        rebuilt.passed_over += [f"{'/'.join(key)}: the item of its message cannot be read" for key in damaged]
        kept: list[tuple[Message, list[Delivery]]] = []
        for key, life in lives.items():
            accepted, message = life.accepted, there.get(key)
            if accepted is None or key in damaged:
                continue
            try:
                if message is None and not life.open:
                    continue
                found = message or self._message(accepted)
                deliveries = [_delivery(found, each, life) for each in dict.fromkeys((*accepted["owed"], *life.added))]
            except _ODD as error:
                rebuilt.passed_over.append(f"{accepted['record_id']}: {error!r}")
                continue
            if message is None:
                self._one(accepted, found, deliveries, rebuilt, dry=dry)
            else:
                kept.append((message, [each for each in deliveries if each.version]))
        self._bring_up_to_date(kept, rebuilt, dry=dry)

    def _bring_up_to_date(
        self, kept: Sequence[tuple[Message, Sequence[Delivery]]], rebuilt: Rebuilt, *, dry: bool
    ) -> None:
        """Messages that were not lost: their deliveries go on from where the records say that they were."""
        rebuilt.present += len(kept)
        stored, damaged = _readable(
            self.messages.deliveries, [each.key for _, deliveries in kept for each in deliveries]
        )
        rebuilt.passed_over += [f"{'/'.join(key)}: the item of its delivery cannot be read" for key in damaged]
        for message, deliveries in kept:
            older = [
                each
                for each in deliveries
                if each.key not in damaged and (each.key not in stored or stored[each.key].version < each.version)
            ]
            rebuilt.updated += len(older)
            following = [*self._following(message, older, None, rebuilt)]
            if not dry:
                self._write(older, following)

    def _one(
        self,
        accepted: Mapping[str, Any],
        message: Message,
        deliveries: Sequence[Delivery],
        rebuilt: Rebuilt,
        *,
        dry: bool,
    ) -> None:
        missing = self._missing(message)
        following = list(self._following(message, deliveries, missing, rebuilt))
        if missing is None:
            rebuilt.messages += 1
            rebuilt.unknown += [_unknown(message, each) for each in _not_recorded(message, accepted)]
        else:
            rebuilt.unknown.append(_unknown(message, missing))
        if dry:
            return
        self._write([each for each in deliveries if each.version], following)
        if missing is None:
            # Last: as long as it is missing, a run that is repeated does all of this again.
            self.messages.restore(message, ())

    def _write(self, deliveries: Sequence[Delivery], following: Sequence[Delivery]) -> None:
        self.messages.restore(None, deliveries)
        for each in following:
            try:
                self.messages.save(each)
            except Conflict:
                continue  # it has gone on since

    def _following(
        self, message: Message, deliveries: Sequence[Delivery], missing: str | None, rebuilt: Rebuilt
    ) -> Iterator[Delivery]:
        """What happens to each unsettled delivery of a message."""
        now = self.clock.now()
        for delivery in deliveries:
            if delivery.settled:
                continue
            if message.expires_at <= now:
                rebuilt.expired += 1
                yield close(delivery, DeliveryState.EXPIRED, now)
            elif missing is not None:
                rebuilt.lost += 1
                yield close(delivery, DeliveryState.CANCELLED, now, BODY_LOST)
            elif delivery.state is DeliveryState.HELD:
                rebuilt.held += 1
            elif delivery.state is DeliveryState.POLLING:
                # The URL to poll is in no record, and posting again would repeat work that the endpoint has accepted.
                rebuilt.held += 1
                rebuilt.unknown.append(_unknown(message, "the URL to poll for its result: held for a person to decide"))
                yield close(delivery, DeliveryState.HELD, now)
            else:
                rebuilt.resumed += 1
                due_at = now if delivery.due_at is None else delivery.due_at
                yield schedule(replace(delivery, due_at=due_at, changed_at=now, version=delivery.version + 1))

    def _message(self, accepted: Mapping[str, Any]) -> Message:
        subscribers = tuple(_subscriber(each) for each in accepted["owed"])
        unicast = subscribers == ("*",)
        ref = accepted.get("body_ref")
        key, _, offset = (ref or "").rpartition("@")
        return Message(
            project=accepted["project"],
            queue=accepted["queue"],
            queue_uid=accepted["queue_uid"],
            message_id=accepted["message_id"],
            body=None,
            body_ref=BodyRef(key=key, offset=int(offset), length=accepted["body_size"]) if ref else None,
            body_size=accepted["body_size"],
            accepted_at=epoch_ms(accepted["accepted_at"]),
            due_at=epoch_ms(accepted["due_at"]),
            expires_at=epoch_ms(accepted["expires_at"]),
            subscriber_ids=self._subscribers(accepted) if unicast else subscribers,
            unicast=unicast,
        )

    def _subscribers(self, accepted: Mapping[str, Any]) -> tuple[str, ...]:
        queue = self.queues.queue(accepted["project"], accepted["queue"], fresh=True)
        if queue is None or queue.push is None or queue.uid != accepted["queue_uid"]:
            return ("*",)
        return tuple(each.subscriber_id for each in queue.push.subscribers) or ("*",)

    def _missing(self, message: Message) -> str | None:
        """Why a message's body cannot be recovered; None when it can."""
        if message.body_ref is None:
            return "its body, which was in the table: its open deliveries are cancelled"
        try:
            body_of(message, self.bodies)
        except MessageNotFound:
            return "its body, which is no longer in the bucket: its open deliveries are cancelled"
        return None


def _readable(read: Callable[[Sequence[K]], Mapping[K, V]], keys: Sequence[K]) -> tuple[dict[K, V], set[K]]:
    """What is stored under keys, and the keys under which it cannot be read: one stops none of the others."""
    try:
        return {**read(keys)}, set()
    except Unreadable:
        if len(keys) == 1:
            return {}, {*keys}
    found: dict[K, V] = {}
    damaged: set[K] = set()
    for each in keys:
        good, bad = _readable(read, [each])
        found |= good
        damaged |= bad
    return found, damaged


def _delivery(message: Message, delivery_id: str, life: _Life) -> Delivery:
    """A delivery as described by its last record; newly opened if there is none."""
    subscriber_id = _subscriber(delivery_id)
    first = opening(message, subscriber_id)
    if delivery_id in life.added:
        first = replace(first, added=True, due_at=epoch_ms(life.added[delivery_id]["due_at"]), version=1)
    last = life.last.get(delivery_id)
    if last is None:
        return first
    state = DeliveryState(last["state"])
    attempt = life.last_attempt(delivery_id)
    settled = state.value in _SETTLED
    return replace(
        first,
        state=state,
        due_at=epoch_ms(last["due_at"]) if "due_at" in last else None,
        tries=last["tries"],
        attempts=attempt["attempt"] if attempt else 0,
        acknowledged_attempt=last.get("attempt") if last["kind"] == "acknowledged" else None,
        last=_attempt(attempt) if attempt else None,
        statuses=life.statuses(delivery_id),
        settled_at=epoch_ms(last["at"]) if settled else None,
        reason=last.get("reason", ""),
        version=last["version"],
    )


def _attempt(record: Mapping[str, Any]) -> Attempt:
    return Attempt(
        number=record["attempt"],
        subscriber_id=record["subscriber_id"],
        verdict=Verdict(record["verdict"]),
        status_code=record["status_code"],
        error_class=record.get("error_class", ""),
        started_at=epoch_ms(record["started_at"]),
        finished_at=epoch_ms(record["finished_at"]),
        bytes_out=record["bytes_out"],
        bytes_in=record["bytes_in"],
        wait_before_ms=record["wait_before_ms"],
        wait_after_ms=record.get("wait_after_ms"),
        subscriber=record.get("subscriber", ""),
        dialect=record["dialect"],
        tries_max=record.get("tries_max"),
        poll=record["kind"] == "poll",
        manual=bool(record.get("manual")),
        proof=Proof(
            schemes=tuple(record.get("signed_by", ())),
            client=record.get("token_client", ""),
            certificate=record.get("certificate", ""),
        ),
    )


def _not_recorded(message: Message, accepted: Mapping[str, Any]) -> Iterator[str]:
    """What a restored message may have had that is lost now."""
    yield "its headers and the message it follows from: sent without headers, descendants counted from zero"
    if message.subscriber_ids == ("*",):
        yield "the subscribers it may go to: its queue no longer exists"
    if "sequence" in accepted:
        yield "its ordering key: delivered without order"


def _unknown(message: Message, what: str) -> Unknown:
    return Unknown(project=message.project, queue=message.queue, message_id=message.message_id, what=what)


def _subscriber(delivery_id: str) -> str:
    return str(delivery_id).partition(".")[2]
