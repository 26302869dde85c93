"""Judges whether the delivery records of notifications say what consumers saw: each frame that was sent on a
connection and each acknowledgement that was heard has its record, with its place, its size and its time, and none tells
of one that was not (docs/records.md). Whoever has connected is owed what comes from then on, until it is removed; then
the rest is cancelled.

What was sent and not recorded was sent to a consumer that left before its sender had recorded it, or faults struck what
sends and hears meanwhile. Only the last is an excuse.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from simulation.consumers import Acknowledged, Connection, Consumers, Removal, Sent, Subscriber
from simulation.promises.judgement import SECOND, Faults, Judgement, moment
from simulation.worlds import shown

Record = Mapping[str, Any]
Position = tuple[Subscriber, int]
"""A place in a topic, as owed to a subscriber."""

SENT, OTHERWISE = "a frame without its record", "a frame is recorded otherwise than it was sent"
NEVER_SENT = "a frame is recorded that was never sent"
ACKNOWLEDGED, LATE = "an acknowledgement without its record", "an acknowledgement is recorded late"
NOBODYS = "an acknowledgement is recorded that nobody sent"
NOT_OWED = "a notification is not owed to a subscriber that was there"
OWED_TO_NONE = "a notification is owed to a subscriber that was not there"
CANCELLED, LEFT = "cancelled, and nobody removed its subscriber", "its subscriber was removed, and it has no end"
EXPIRED = "expired before its time"

CLOCK_S = 0.03
"""By how much a clock is off without a storm, and what is lost where times are rounded."""

SENDING_S = 10
"""A sender has recorded what it sent after so long, as its function runs no longer."""

RECORDED_S = 600
"""An acknowledgement is recorded within ten minutes at the latest."""

UNTOLD_S = 120
"""What happened in so many last seconds of a run is perhaps not recorded yet."""

LATE_S = 60
"""What a handshake or a removal that failed has begun, or a call of it that was not answered, is over after so long."""


class NotificationRecords:
    """Judges a run.

    Args:
        judgement: Where the facts go.
        faults: What the fault plan did, under the name "" where it struck what sends and hears.
        clocks_s: The most by which a clock of the hub is off, by the fault plan, in seconds.
        ends: When the run ended, microseconds.
    """

    def __init__(self, judgement: Judgement, faults: Faults, *, clocks_s: float, ends: int) -> None:
        self._judgement = judgement
        self._faults = faults
        self._slack = round((CLOCK_S + clocks_s) * SECOND)
        self._until = ends - UNTOLD_S * SECOND

    def judge(self, records: Iterable[Record], seen: Consumers) -> None:
        """Compare the records with what was seen."""
        known = {each["record_id"]: each for each in records if each["dialect"] == "notifications"}
        self._records = known.values()
        self._accepted = {_message(each): each for each in self._records if each["kind"] == "accepted"}
        self._names = {
            each["subscriber_id"]: Subscriber(each["project"], each["queue"], each["subscriber"])
            for each in self._records
            if each["kind"] != "accepted"
        }
        self._handshakes: dict[Subscriber, list[Connection]] = defaultdict(list)
        for connection in seen.connections.values():
            if connection.persistent:
                self._handshakes[connection.subscriber].append(connection)
        self._removals: dict[Subscriber, list[Removal]] = defaultdict(list)
        for removal in seen.removals:
            self._removals[removal.subscriber].append(removal)
        self._frames(seen)
        self._acknowledgements(seen)
        self._subscribers()

    def _frames(self, seen: Consumers) -> None:
        """What was sent, and what is recorded of it."""
        sent: dict[tuple[str, int], list[Sent]] = defaultdict(list)
        for frame in seen.sent:
            sent[frame.connection, frame.position].append(frame)
        attempts: dict[tuple[str, int], list[Record]] = defaultdict(list)
        for each in self._records:
            if each["kind"] == "attempt":
                attempts[each["order_key"].partition("/")[0], each["sequence"]].append(each)
        for place, frames in sent.items():
            connection = seen.connections.get(place[0])
            if connection is not None and connection.persistent and place not in attempts:
                self._unrecorded(connection, frames)
        for place, several in attempts.items():
            connection = seen.connections.get(place[0])
            for each in several:
                about = each["message_id"]
                came = connection is not None and connection.persistent and place in sent
                self._judgement.fact(came, NEVER_SENT, about, f"{each}")
                if came and connection is not None:
                    wrong = self._wrong(each, connection, sent[place])
                    self._judgement.fact(not wrong, OTHERWISE, about, f"{wrong}: {each}, and {sent[place]}")
        firsts: dict[str, list[Record]] = defaultdict(list)
        for several in attempts.values():
            for each in several:
                firsts[each["queue_uid"], each["delivery_id"]].append(each)  # type: ignore[index]
        for several in firsts.values():
            ordered = sorted(several, key=_version)
            if any("attempt" in each for each in ordered[1:]):
                self._judgement.fact(False, OTHERWISE, ordered[0]["message_id"], f"first more than once: {ordered}")

    def _unrecorded(self, connection: Connection, frames: Sequence[Sent]) -> None:
        """A frame that has no record; its consumer may have left before there was one."""
        first, last = frames[0].at, frames[-1].at
        if last > self._until:
            return
        left = connection.ended is not None and connection.ended <= last + SENDING_S * SECOND
        because = self._faults.on("", first - SENDING_S * SECOND, last + SENDING_S * SECOND)[-1:]
        detail = f"{frames[-1].position} of {connection.subscriber} on {connection.id} at {moment(last)}"
        self._judgement.fact(left, SENT, connection.id, detail, because)

    def _wrong(self, record: Record, connection: Connection, frames: Sequence[Sent]) -> str:
        """What a record says of a frame that is not so."""
        at = _at(record)
        if not any(each.at - self._slack <= at <= each.at + SENDING_S * SECOND + self._slack for each in frames):
            return "its time"
        if record["bytes_out"] not in {each.size for each in frames}:
            return "its size"
        if (record["project"], record["queue"], record["subscriber"]) != connection.subscriber:
            return "its subscriber"
        if connection.shared != ("/" in record["order_key"]):
            return "its order"
        if record["wait_before_ms"] != max(0, at - shown.at(record["accepted_at"])) // 1000:
            return "how long it waited"
        accepted = self._accepted.get(_message(record))
        return "its place" if accepted is not None and accepted["sequence"] != record["sequence"] else ""

    def _acknowledgements(self, seen: Consumers) -> None:
        """What was acknowledged, and what is recorded of it."""
        frames: dict[tuple[str, str], int] = {}
        for frame in seen.sent:
            frames.setdefault((frame.connection, frame.ack_id), frame.at)
        acknowledged: dict[Position, list[Acknowledged]] = defaultdict(list)
        for each in seen.acknowledged:
            connection = seen.connections.get(each.connection)
            if connection is None or not connection.persistent:
                continue
            # Of a shared subscriber, an acknowledgement counts where it was sent, and nowhere else.
            if not connection.shared or (each.connection, each.ack_id) in frames:
                acknowledged[connection.subscriber, each.position].append(each)
        ends: dict[Position, list[Record]] = defaultdict(list)
        for record in self._records:
            accepted = self._accepted.get(_message(record))
            if record["kind"] in {"acknowledged", "expired", "cancelled"} and accepted is not None:
                ends[self._names[record["subscriber_id"]], accepted["sequence"]].append(record)
        for place, several in acknowledged.items():
            heard = [
                each
                for each in several
                if each.heard is not None and frames.get((each.connection, each.ack_id), each.at + 1) <= each.at
            ]
            if heard:
                self._heard(place, min(heard, key=lambda each: each.heard or 0), ends.get(place, ()))
        for place, recorded in ends.items():
            for record in recorded:
                if record["kind"] == "acknowledged":
                    sent = any(each.at <= _at(record) + SECOND for each in acknowledged.get(place, ()))
                    self._judgement.fact(sent, NOBODYS, record["message_id"], f"{place}: {record}")

    def _heard(self, place: Position, first: Acknowledged, ends: Sequence[Record]) -> None:
        """An acknowledgement that was heard is recorded, in time; unless the notification's time was over before."""
        heard = first.heard or 0
        if heard > self._until - RECORDED_S * SECOND:
            return
        kinds = [each for each in ends if each["kind"] == "acknowledged"]
        expired = any(shown.at(each["expires_at"]) <= heard + self._slack for each in ends if each["kind"] == "expired")
        about, detail = first.connection, f"{place} on {first.connection} at {moment(heard)}: {ends}"
        because = self._faults.on("", first.at - SENDING_S * SECOND, heard)[-1:]
        self._judgement.fact(bool(kinds) or expired, ACKNOWLEDGED, about, detail, because)
        if kinds:
            at, due = min(map(_at, kinds)), heard + RECORDED_S * SECOND
            because = self._faults.delaying("", first.at, at)[-1:] if at > due else []
            self._judgement.fact(at <= due, LATE, about, detail, because)

    def _subscribers(self) -> None:
        """Whom notifications are owed to, and what becomes of them when a subscriber is removed."""
        kept = {each["queue_uid"] for each in self._records if each["kind"] != "accepted" or each["owed"]}
        ends = {
            (_message(each), each["subscriber_id"]): each
            for each in self._records
            if each["kind"] not in {"accepted", "attempt"}
        }
        there: dict[tuple[str, str], list[Subscriber]] = defaultdict(list)
        for subscriber in self._handshakes:
            there[subscriber.project, subscriber.topic].append(subscriber)
        for each in self._accepted.values():
            if each["queue_uid"] not in kept:
                continue
            owed = {delivery.rpartition(".")[2] for delivery in each["owed"]}
            names = {self._names.get(uid) for uid in owed}
            for subscriber in there[each["project"], each["queue"]]:
                # Of whom nothing is recorded yet, nobody knows the name.
                if None not in names and self._was_there(subscriber, _at(each)):
                    detail = f"{subscriber}: {each}"
                    self._judgement.fact(subscriber in names, NOT_OWED, each["message_id"], detail)
            for uid in owed & self._names.keys():
                self._owed(each, self._names[uid], ends.get((_message(each), uid)))
        for (_, uid), end in ends.items():
            about, by = end["message_id"], self._names[uid]
            if end["kind"] == "expired":
                over = shown.at(end["expires_at"]) <= _at(end) + SECOND + self._slack
                self._judgement.fact(over, EXPIRED, about, f"{end}")
            elif end["kind"] == "cancelled":
                removed = any(each.exchange.asked <= _at(end) + SECOND for each in self._removed(by))
                self._judgement.fact(removed or self._half(by, end), CANCELLED, about, f"{by}: {end}")

    def _was_there(self, subscriber: Subscriber, at: int) -> bool:
        """Whether a subscriber certainly existed at some time."""
        last = max(
            (each for each in self._handshakes[subscriber] if each.opened and each.opened < at - self._slack),
            key=lambda each: each.asked,
            default=None,
        )
        return last is not None and not any(
            each.exchange.asked <= at + self._slack and (not each.exchange.done or each.exchange.answered >= last.asked)
            for each in self._removed(subscriber)
        )

    def _removed(self, subscriber: Subscriber) -> Iterator[Removal]:
        """Requests that may have removed a subscriber."""
        return (
            each for each in self._removals[subscriber] if each.exchange.done or each.exchange.status in {0, 500, 503}
        )

    def _owed(self, accepted: Record, subscriber: Subscriber, end: Record | None) -> None:
        """A notification is owed to whoever began to connect, and was not removed since."""
        at, about, detail = _at(accepted), accepted["message_id"], f"{subscriber}: {accepted}"
        begun = [each for each in self._handshakes[subscriber] if each.asked <= at + self._slack]
        gone = [
            removal.exchange
            for removal in self._removals[subscriber]
            if removal.exchange.done and all(self._over(each) <= removal.exchange.asked for each in begun)
        ]
        there = bool(begun) and not any(each.answered < at - self._slack for each in gone)
        self._judgement.fact(there, OWED_TO_NONE, about, detail)
        for removal in self._removals[subscriber]:
            asked, answered = removal.exchange.asked, removal.exchange.answered
            if removal.exchange.done and at < asked - self._slack and answered <= self._until:
                kept = end is not None or shown.at(accepted["expires_at"]) <= answered + self._slack
                self._judgement.fact(kept, LEFT, about, f"{detail}, at {moment(answered)}")

    def _half(self, subscriber: Subscriber, end: Record) -> bool:
        """Whether nobody was connected before a notification came, as the first handshake had failed half-way."""
        came = shown.at(end["accepted_at"])
        begun = [each for each in self._handshakes[subscriber] if each.asked <= came + self._slack]
        return bool(begun) and not any(each.opened and each.opened < came - self._slack for each in begun)

    @staticmethod
    def _over(handshake: Connection) -> int:
        """When nothing of a handshake goes on any more."""
        if handshake.opened is not None:
            return handshake.opened
        return (handshake.answered or handshake.asked) + LATE_S * SECOND


def _message(record: Record) -> tuple[str, str]:
    return record["queue_uid"], record["message_id"]


def _version(record: Record) -> int:
    return int(record["record_id"].rpartition("/")[2])


def _at(record: Record) -> int:
    """When it says that it happened, microseconds since the start."""
    return shown.at(record["at"])


__all__ = ["NotificationRecords"]
