"""Judges whether the delivery records of pull queues say what callers were answered: each reservation, extension,
release and removal that somebody was told of has its record, with its number, its times and its end, and no record
tells of one that nobody asked for (docs/records.md).

What nobody was told of was reserved by a request that was going on then: it became a dead letter, was given back by
the same request, does not fit into an answer, or faults struck the request, of which each explains as many messages as
it asked for and did not show. Only the last is an excuse. Of a queue that was converted, the hub itself takes what it
then pushes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pushhub.engine.model.queue import Queue
from simulation.promises.judgement import SECOND, Exchange, Judgement, moment
from simulation.promises.pull import Act, Reserve
from simulation.pulls import Pulls
from simulation.worlds import shown

Record = Mapping[str, Any]
Place = tuple[str, str]
"""A queue: its project and its name."""

Key = tuple[str, str, str]
"""A message: the project, the queue and the id."""

RESERVED, OTHERWISE = "a reservation without its record", "a reservation is recorded otherwise than it was answered"
RELEASED, REMOVED = "a release without its record", "a removal without its record"
NOBODYS = "a reservation is recorded that nobody got"
RELEASED_BY_NONE = "a release is recorded that nobody asked for"
REMOVED_BY_NONE = "a removal is recorded that nobody asked for"

CLOCK_S = 0.03
"""By how much a clock is off without a storm, and what is lost where times are rounded."""

POP_S = 60
"""The shortest reservation of a message that is deleted at once."""

LATE, LATE_S = "late", 50
"""A call that this fault struck takes effect at most so long after its request."""

UNTOLD_S = 120
"""What happened in so many last seconds of a run is perhaps not answered or recorded yet."""

CHANGED_S = 2
"""A queue's settings may be in force so long after they were changed."""

LARGE = 6_200_000 // 7
"""Messages of fewer bytes fit into an answer (docs/ironmq.md), which has up to seven for each of them."""


@dataclass(frozen=True)
class _Answer:
    """A reservation that somebody was answered.

    Attributes:
        exchange: The request.
        id: Its id.
        count: ``reserved_count`` as its caller knows it, this time included.
        timeouts: How long it lasts, milliseconds; any of these.
        pops: Whether its message was deleted at once.
    """

    exchange: Exchange
    id: str
    count: int
    timeouts: frozenset[int]
    pops: bool = False


@dataclass
class _Message:
    """What is recorded of a message in a queue, by kind; and what callers did with it.

    Attributes:
        place: Its queue.
        message_id: Its id.
        records: Its records.
        acts: What was done with it by its id.
        known: The record of each reservation that somebody knows, by the reservation's id.
        claimed: Ids of the records that are accounted for.
    """

    place: Place
    message_id: str
    records: Mapping[str, Sequence[Record]]
    acts: Sequence[Act]

    def __post_init__(self) -> None:
        self.known: dict[str, Record] = {}
        self.claimed: set[str] = set()

    def left(self, kind: str) -> list[Record]:
        """Records of a kind that are not accounted for."""
        return [each for each in self.records.get(kind, ()) if each["record_id"] not in self.claimed]

    def same(self, of: Record, *kinds: str) -> Record | None:
        """The first record of some kinds that is not accounted for, of the same stay, with the number of another."""
        return next((each for kind in kinds for each in self.left(kind) if _number(each) == _number(of)), None)


class ReservationRecords:
    """Judges a run.

    Args:
        judgement: Where the facts go.
        queues: The versions of the queues by name, each with the time from which on it applied.
        clocks_s: The most by which a clock of the hub is off, by the fault plan, in seconds.
        ends: When the run ended, microseconds.
    """

    def __init__(
        self,
        judgement: Judgement,
        queues: Mapping[str, Sequence[tuple[int, Queue | None]]],
        *,
        clocks_s: float,
        ends: int,
    ) -> None:
        self._judgement = judgement
        self._queues = queues
        self._slack = round((CLOCK_S + clocks_s) * SECOND)
        self._until = ends - UNTOLD_S * SECOND

    def judge(self, records: Iterable[Record], pulls: Pulls) -> None:
        """Compare the records with what was answered."""
        found: dict[Key, dict[str, dict[str, Record]]] = defaultdict(lambda: defaultdict(dict))
        self._elsewhere: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._pushed: set[Key] = set()
        for each in records:
            key = each["project"], each["queue"], each["message_id"]
            if each["dialect"] != "pull":
                self._pushed.add(key)
            else:
                found[key][each["kind"]][each["record_id"]] = each
            if each["kind"] == "accepted":
                # A dead letter may be in a queue that pushes
                self._elsewhere[each["project"], each["message_id"]].add(each["queue"])
        self._looks: dict[Place, list[Reserve]] = defaultdict(list)
        self._unseen: Counter[Exchange] = Counter()
        answered: dict[Key, list[_Answer]] = defaultdict(list)
        for project, looks in pulls.reserves.items():
            for look in looks:
                self._looks[project, look.queue].append(look)
                self._unseen[look.exchange] += look.count - len(look.messages)
                lasts = self._timeouts((project, look.queue), look)
                for got in look.messages:
                    one = _Answer(look.exchange, got.reservation_id, got.reserved_count, lasts, look.delete)
                    answered[project, look.queue, got.message_id].append(one)
        acts: dict[Key, list[Act]] = defaultdict(list)
        for project, several in pulls.acts.items():
            for act in several:
                acts[project, act.queue, act.message_id].append(act)
        for key in {**found, **answered}:
            ordered = {kind: sorted(each.values(), key=_number) for kind, each in found[key].items()}
            message = _Message(key[:2], key[2], ordered, acts[key])
            self._answered(message, [*answered[key], *self._touched(message, answered[key])])
            self._deleted(message)
            self._recorded(message)

    def _timeouts(self, place: Place, request: Reserve | Act) -> frozenset[int]:
        """How long a reservation by a request lasts, milliseconds."""
        given = request.timeout_s if isinstance(request, Reserve) else request.seconds
        least = POP_S if isinstance(request, Reserve) and request.delete else 0
        if given:
            return frozenset({max(given, least) * 1000})
        begins = request.exchange.asked - CHANGED_S * SECOND
        own = [
            (at, each) for at, each in self._queues.get(place[1], ()) if each is not None and each.project == place[0]
        ]
        ends = [*(at for at, _ in own[1:]), request.exchange.answered]
        return frozenset(
            max(each.message_timeout, least) * 1000
            for (at, each), until in zip(own, ends, strict=False)
            if at <= request.exchange.answered and begins <= until
        )

    def _touched(self, message: _Message, answered: Sequence[_Answer]) -> Iterator[_Answer]:
        """Reservations that were extended, of those that somebody was answered."""
        counts = {each.id: each.count for each in answered}
        for act in sorted(message.acts, key=lambda each: each.exchange.asked):
            if act.kind == "touch" and act.exchange.done and act.reservation_id in counts:
                counts[act.new_id] = counts[act.reservation_id] + 1
                yield _Answer(act.exchange, act.new_id, counts[act.new_id], self._timeouts(message.place, act))

    def _answered(self, message: _Message, answered: Sequence[_Answer]) -> None:
        """Each reservation that somebody was answered is recorded, and so is its end by whom has it."""
        for each in sorted(answered, key=lambda one: (one.count, one.exchange.asked)):
            at = moment(each.exchange.answered)
            detail = f"{message.place[1]} at {at}: {each.id} {each.count} for {sorted(each.timeouts)} ms"
            then = [one for one in message.left("reserved") if self._within(one, each.exchange)]
            as_told = [one for one in then if _lasts(one) in each.timeouts and self._counted(message, one, each)]
            as_told.sort(key=lambda one: self._was_given_back(message, one, each))
            found = next(iter([*as_told, *then]), None)
            if found is None:
                if each.exchange.answered <= self._until:
                    self._judgement.fact(False, RESERVED, message.message_id, f"{detail}: {message.records}")
                continue
            self._judgement.fact(bool(as_told), OTHERWISE, message.message_id, f"{detail}: {then}")
            message.known[each.id] = found
            message.claimed.add(found["record_id"])
            self._given_back(message, each, found)
            if each.pops:
                self._popped(message, each, found)

    @staticmethod
    def _was_given_back(message: _Message, record: Record, answered: _Answer) -> bool:
        """Whether a reservation was given back, by others than who has this one."""
        asked = any(act.kind == "release" and act.reservation_id == answered.id for act in message.acts)
        return not asked and message.same(record, "released") is not None

    @staticmethod
    def _counted(message: _Message, record: Record, answered: _Answer) -> bool:
        """Whether the number of a reservation is what its caller knows, and those more that nobody saw, which were
        given back without being counted.
        """
        back = [
            one for one in message.left("released") if _stay(one) == _stay(record) and _number(one) < _number(record)
        ]
        perhaps = {
            message.known[act.reservation_id]["reservations"]
            for act in message.acts
            if act.kind == "release" and act.exchange.unsure and act.reservation_id in message.known
        }
        counted = sum(one["reservations"] in perhaps for one in back)
        more: int = record["reservations"] - answered.count
        return len(back) - counted <= more <= len(back)

    def _given_back(self, message: _Message, answered: _Answer, record: Record) -> None:
        """What was given back by its caller is recorded as that."""
        for act in message.acts:
            if act.kind == "release" and act.exchange.done and act.reservation_id == answered.id:
                found = message.same(record, "released")
                kept = found is not None and self._within(found, act.exchange)
                if act.exchange.answered <= self._until:
                    detail = f"{message.place[1]} at {moment(act.exchange.answered)}: {found or record}"
                    self._judgement.fact(kept, RELEASED, message.message_id, detail)
                if found is not None:
                    message.claimed.add(found["record_id"])

    def _popped(self, message: _Message, answered: _Answer, record: Record) -> None:
        """What was deleted as it was handed out is recorded as delivered; it is handed out, too, if nobody knows."""
        found = message.same(record, "delivered")
        kept = found is not None and _written(found, answered.exchange)
        if answered.exchange.answered <= self._until:
            detail = f"{message.place[1]} at {moment(answered.exchange.answered)}: {found or record}"
            self._judgement.fact(kept, REMOVED, message.message_id, detail, [answered.exchange])
        if found is not None:
            message.claimed.add(found["record_id"])

    def _deleted(self, message: _Message) -> None:
        """What was deleted by somebody who was answered is recorded as delivered to whom had reserved it."""
        for act in message.acts:
            if act.kind != "delete" or not act.exchange.done or act.exchange.answered > self._until:
                continue
            reserved = message.known.get(act.reservation_id)
            if act.reservation_id and reserved is None:
                # A push that was acknowledged, or a reservation that nobody was answered.
                continue
            kinds = ("delivered", "cancelled", "expired")
            if reserved is not None:
                found = message.same(reserved, *kinds)
            else:
                ends = (each for kind in kinds for each in message.left(kind))
                found = next((each for each in ends if _written(each, act.exchange)), None)
            detail = f"{message.place[1]} at {moment(act.exchange.answered)}: {found or reserved}"
            kept = found is not None and _written(found, act.exchange) and self._fits(message, found, reserved)
            self._judgement.fact(kept, REMOVED, message.message_id, detail)
            if found is not None:
                message.claimed.add(found["record_id"])

    def _fits(self, message: _Message, end: Record, reserved: Record | None) -> bool:
        """Whether an end has the kind of who deleted it, as far as the clocks agree whether its time was over."""
        kind, at = end["kind"], _ms(end["at"])
        if kind == "expired":
            return 0 <= at - _ms(end["expires_at"]) <= self._slack // 1000
        if reserved is not None:
            return kind == "delivered" or 0 <= at - _ms(reserved["due_at"]) <= self._slack // 1000
        dues = [_ms(each["due_at"]) for each in message.records.get("reserved", ()) if _number(each) == _number(end)]
        return kind == "cancelled" or any(0 <= due - at <= self._slack // 1000 + 1000 for due in dues)

    def _recorded(self, message: _Message) -> None:
        """Nothing else is recorded than what somebody was answered, but for what is explained."""
        place, about = message.place, message.message_id
        if (*place, about) in self._pushed:
            self._claim_converted(message)
        for each in message.left("reserved"):
            looks = [look for look in self._looks[place] if self._within(each, look.exchange)]
            looks = [look for look in looks if _lasts(each) in self._timeouts(place, look)]
            if _at(each) > self._until or self._went_on(message, each, looks):
                continue
            because = [*self._unanswered(looks), *self._extended(message, each)][:1]
            self._unseen.subtract(because)
            self._judgement.fact(False, NOBODYS, about, f"{each}: {message.records}", because)
        for each in message.left("released"):
            asked = [act.exchange for act in message.acts if act.kind == "release" and self._within(each, act.exchange)]
            looks = [look for look in self._looks[place] if self._within(each, look.exchange)]
            if _at(each) <= self._until and not self._is_nobodys(message, each, looks):
                because = [exchange for exchange in asked if exchange.unsure]
                self._judgement.fact(False, RELEASED_BY_NONE, about, f"{each}: {message.records}", because)
        for kind in ("delivered", "cancelled"):
            for each in message.left(kind):
                if _at(each) <= self._until:
                    because = [*self._perhaps_deleted(message, each)]
                    self._judgement.fact(False, REMOVED_BY_NONE, about, f"{each}: {message.records}", because)
        for each in message.left("expired"):
            self._judgement.fact(each["expires_at"] <= each["at"], REMOVED_BY_NONE, about, f"{each}")
        for each in message.left("exhausted"):
            others = self._elsewhere[place[0], about] - {place[1]}
            kept = bool(others) and message.same(each, "reserved") is not None
            self._judgement.fact(kept, REMOVED_BY_NONE, about, f"{each}: {message.records}")

    @staticmethod
    def _claim_converted(message: _Message) -> None:
        """What was taken from a queue that was converted, as it is pushed since."""
        for each in message.left("reserved"):
            if (end := message.same(each, "delivered")) is not None:
                message.claimed |= {each["record_id"], end["record_id"]}

    def _went_on(self, message: _Message, reserved: Record, looks: Sequence[Reserve]) -> bool:
        """Whether a request reserved a message for nobody, as it has to be now and then."""
        if not looks:
            return False
        if message.same(reserved, "exhausted") is not None or self._is_large(message):
            return True
        back = message.same(reserved, "released")
        return back is not None and any(self._within(back, look.exchange) for look in looks)

    def _is_nobodys(self, message: _Message, released: Record, looks: Sequence[Reserve]) -> bool:
        """Whether what a request has given back is a reservation that it told nobody of."""
        return bool(looks) and message.same(released, "reserved") is not None

    @staticmethod
    def _is_large(message: _Message) -> bool:
        return any(each["body_size"] >= LARGE for each in message.records.get("accepted", ()))

    def _unanswered(self, looks: Iterable[Reserve]) -> Iterator[Exchange]:
        """Requests that may have reserved one more message than they have shown."""
        return (look.exchange for look in looks if look.exchange.unsure and self._unseen[look.exchange] > 0)

    def _extended(self, message: _Message, reserved: Record) -> Iterator[Exchange]:
        """Requests that may have extended the reservation before, and were not answered."""
        for act in message.acts:
            before = message.known.get(act.reservation_id)
            if (
                act.kind == "touch"
                and act.exchange.unsure
                and before is not None
                and self._within(reserved, act.exchange)
            ):
                follows = reserved["reservations"] == before["reservations"] + 1 and _stay(reserved) == _stay(before)
                if follows and _lasts(reserved) in self._timeouts(message.place, act):
                    yield act.exchange

    def _perhaps_deleted(self, message: _Message, end: Record) -> Iterator[Exchange]:
        """Requests that may have removed a message, although nobody was told so."""
        for act in message.acts:
            if act.kind == "delete" and act.exchange.unsure and _written(end, act.exchange):
                reserved = message.known.get(act.reservation_id)
                if reserved is None or _number(reserved) == _number(end):
                    yield act.exchange
        for look in self._looks[message.place]:
            if look.delete and look.exchange.unsure and _written(end, look.exchange):
                yield look.exchange

    def _within(self, record: Record, exchange: Exchange) -> bool:
        """Whether a record tells of something that a request did, by a clock that is off."""
        return exchange.asked - self._slack <= _at(record) <= exchange.answered + self._slack


def _written(record: Record, exchange: Exchange) -> bool:
    """Whether a record has the time at which a request wrote, in whole seconds."""
    late = LATE_S * SECOND if LATE in exchange.struck else 0
    return exchange.asked - SECOND <= _at(record) <= exchange.answered + late


def _number(record: Record) -> tuple[str, int]:
    """Its stay in the queue, and how often its message was reserved there."""
    return _stay(record), record["reservations"]


def _stay(record: Record) -> str:
    return str(record["owed"][0] if record["kind"] == "accepted" else record["delivery_id"])


def _lasts(record: Record) -> int:
    """How long a reservation is recorded to last, milliseconds."""
    return _ms(record["due_at"]) - _ms(record["at"])


def _at(record: Record) -> int:
    """When it says that it happened, microseconds since the start."""
    return shown.at(record["at"])


def _ms(text: str) -> int:
    return shown.at(text) // 1000


__all__ = ["ReservationRecords"]
