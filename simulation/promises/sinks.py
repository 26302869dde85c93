"""Promises about what receivers on AWS, and URLs that take batches, are sent: a model from docs/destinations.md,
docs/streaming.md and docs/sources.md. It shares no code with the hub.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from simulation.promises.judgement import Exchange, Faults, Judgement, moment

IN_TIME_S = 240
"""How late something may come to a receiver without trouble, seconds: what a dead run had in hand comes back within two
minutes, and waits for a batch, or for the schedule, meanwhile.
"""

FOREVER = 10**18
"""Never, as a moment."""

LATE_S = 1
"""What took longer than so many seconds to be posted may be in two batches."""

BEFORE_S = 60
"""How long before its first arrival a fault may have struck that explains a second one, seconds."""

AT_ONCE_S = 1
"""What arrives again so soon was under way beside the first, seconds. Whatever doubled its order since it was posted
explains that: while no run can begin, both orders wait in their queue, and come back together.
"""


@dataclass(frozen=True)
class Sent:
    """Something that was posted.

    Attributes:
        marker: Which one it is.
        body: Its payload, as it was posted.
        exchange: The request, with all of its repetitions.
        key: Its ordering key; empty for none.
    """

    marker: str
    body: str
    exchange: Exchange
    key: str = ""


@dataclass(frozen=True)
class Taken:
    """Something that a receiver took.

    Attributes:
        at: When, microseconds.
        marker: Which one it is.
        message_id: The hub's id of it.
        body: Its payload.
        sure: Whether the hub was told so.
        group: Its message group.
        place: The object that it is in; empty if it is in none.
    """

    at: int
    marker: str
    message_id: str
    body: str
    sure: bool
    group: str = ""
    place: str = ""


@dataclass(frozen=True)
class Looked:
    """How far a sink is said to be.

    Attributes:
        at: When that was said, microseconds.
        arrived: The markers that have arrived by that.
    """

    at: int
    arrived: frozenset[str]


@dataclass(frozen=True)
class Order:
    """What order a receiver is owed.

    Attributes:
        keyed: Of each ordering key; otherwise of everything or nothing.
        whole: Of everything.
        off_s: By how much clocks may differ, which give events their ids, seconds.
    """

    keyed: bool = False
    whole: bool = False
    off_s: float = 0


class Sinks:
    """The model.

    Args:
        judgement: Is told of each fact.
        faults: What the fault plan did, by the hub's ids of messages.
        calm: Whether nothing but single calls went wrong, so that everything is in time.
    """

    def __init__(self, judgement: Judgement, faults: Faults, *, calm: bool) -> None:
        self._judgement = judgement
        self._faults = faults
        self._calm = calm

    def judge(
        self,
        receiver: str,
        sent: Sequence[Sent],
        taken: Sequence[Taken],
        order: Order,
        *,
        well_until: int = FOREVER,
        looked: Iterable[Looked] = (),
    ) -> None:
        """Judge what a receiver took.

        Args:
            receiver: Its name.
            sent: Everything that it is owed.
            taken: What it took, in the order in which it did.
            order: What order it is owed.
            well_until: When its first trouble began, microseconds. What comes later may wait for others.
            looked: How far it was said to be.
        """
        first: dict[str, Taken] = {}
        for each in taken:
            first.setdefault(each.marker, each)
        self._judge_each(receiver, sent, first, well_until)
        slow = {each.marker for each in sent if each.exchange.answered - each.exchange.asked > LATE_S * 1_000_000}
        self._judge_again(receiver, taken, slow if order.whole else set(), together=order.whole)
        self._judge_order(receiver, {each.marker: each for each in sent}, first, order)
        for look in looked:
            missing = {each for each in look.arrived if each not in first or first[each].at > look.at}
            late = sorted(missing - slow)
            detail = f"{receiver}, said at {moment(look.at)}"
            self._judgement.fact(not late, "a position past what has arrived", late[0] if late else "", detail)

    def _judge_each(self, receiver: str, sent: Sequence[Sent], first: Mapping[str, Taken], well_until: int) -> None:
        for each in sent:
            found = first.get(each.marker)
            if each.exchange.done:
                self._judgement.fact(found is not None, "never arrived at a sink", each.marker, receiver)
            if found is None:
                continue
            self._judgement.fact(found.body == each.body, "other bytes at a sink", each.marker, receiver)
            due = each.exchange.answered + IN_TIME_S * 1_000_000
            if self._calm and due < well_until:
                detail = f"{receiver} at {moment(found.at)}"
                self._judgement.fact(found.at <= due, "held up by another sink", each.marker, detail)

    def _judge_again(self, receiver: str, taken: Sequence[Taken], late: Collection[str], *, together: bool) -> None:
        before: dict[str, list[Taken]] = defaultdict(list)
        every = {each.message_id for each in taken}
        for each in taken:
            own = before[each.marker]
            if own and each.marker in late:
                continue
            if each.place and own:
                same = all(other.place == each.place for other in own)
                self._judgement.fact(same, "in two objects", each.marker, f"{each.place} and {own[0].place}")
            sure = next((other for other in own if other.sure and other.at < each.at), None)
            if sure is not None and not each.place:
                at_once = not together and each.at - sure.at <= AT_ONCE_S * 1_000_000
                begins = 0 if at_once else sure.at - BEFORE_S * 1_000_000
                # Of a batch, the run that died may have had the order of any other.
                about = every if together else {each.message_id}
                because = [fault for one in sorted(about) for fault in self._faults.on(one, begins, each.at)]
                detail = f"{receiver} at {moment(sure.at)} and {moment(each.at)}"
                self._judgement.fact(False, "arrived again at a sink", each.marker, detail, because)
            else:
                self._judgement.judged += 1
            own.append(each)

    def _judge_order(self, receiver: str, sent: Mapping[str, Sent], first: Mapping[str, Taken], order: Order) -> None:
        latest: dict[str, Sent] = {}
        for each in first.values():
            own = sent.get(each.marker)
            if own is None:
                continue
            if order.keyed and own.key:
                self._judgement.fact(
                    each.group == own.key, "in another group", each.marker, f"{receiver}: {each.group}"
                )
            if not (order.whole or (order.keyed and own.key)):
                continue
            before = latest.get(own.key if order.keyed else "")
            ends = own.exchange.answered + order.off_s * 1_000_000
            late = before is not None and before.exchange.asked > ends
            detail = f"{receiver}: after {before.marker if before else ''}, which was posted later"
            self._judgement.fact(not late, "out of order at a sink", each.marker, detail)
            if before is None or own.exchange.asked > before.exchange.asked:
                latest[own.key if order.keyed else ""] = own
