"""Pushes: what each receiver must see of a message that is owed to it, whatever the protocol, from what was posted and
answered, what owners changed, and what receivers saw and answered.

A message is pushed when its delay is over, with exactly its bytes. A try that fails is repeated after the wait that the
schedule in force says, counted from the end of the try, neither earlier nor much later, and so often as it says; then
it is given up. Nothing is asked after it was taken, acknowledged, taken back or expired. Only a fault that the fault
plan applied while the hub worked on this very message allows one more request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from simulation.promises.judgement import SECOND, Exchange, Fault, Faults, Judgement, moment

FOREVER = 10**18
IN_FORCE_S = 1
"""What an owner changed is in force for each request that begins a second after the answer."""

LATE_S = 75
"""A try may begin so long after its time: longer waits are looked after by the minute."""

LONGEST_S = 190
"""How much later an order may be that waits for another one: the longest time limit, and some."""

FOUND_AGAIN_S = 3_600
"""What a run that died had in hand comes back within this time; an order that got lost is found by the daily sweep."""

SWEPT_S = 26 * 3_600
LOSING = frozenset({"purged", "stopped", "replay"})
"""Faults that lose orders: a queue that is emptied, and a stream that nobody reads until its records are too old."""

OTHER_BYTES, TOO_EARLY, TOO_LATE = "other bytes than were posted", "asked before its time", "asked after its time"
AT_ONCE, AFTER_END, TAKEN_BACK = "asked twice at once", "asked after its end", "asked after its owner took it back"
TOO_OFTEN, NOT_AGAIN, AFTER_EXPIRY = "more tries than allowed", "given up too soon", "asked after it expired"
NOT_ITS_TURN = "asked out of turn"


class Meaning(Enum):
    """What an answer means to the protocol."""

    TAKEN = "taken"
    ENDED = "ended"
    """Refused for good."""
    PROMISED = "promised"
    """It will be acknowledged; until the wait is over, it is not asked again, and then that was a failed try."""
    POSTPONED = "postponed"
    """The same, but the try does not count."""
    WORKING = "working"
    """The same, and nothing that failed before counts any more."""
    FAILED = "failed"


@dataclass(frozen=True)
class Request:
    """A request as a receiver's endpoint saw it, in any protocol.

    Attributes:
        at: When it came, microseconds.
        ended: When the connection ended.
        receiver: Who got it, by name.
        message_id: The message that it says it has.
        body: Its body.
        status: The answer; 0 if the hub got none.
        wait_s: What ``Retry-After`` asked for.
        said: The body of the answer if the hub got one.
        queue: Whose receiver it is, where names are given by queue.
    """

    at: int
    ended: int
    receiver: str
    message_id: str
    body: bytes
    status: int
    wait_s: float = 0
    said: bytes = b""
    queue: str = ""


@dataclass(frozen=True)
class Seen:
    """A request as its receiver saw it.

    Attributes:
        at: When it came, microseconds.
        ended: When the connection ended.
        receiver: Who got it.
        exact: Whether its content was what was posted.
        meaning: What the answer means; None if the hub did not get it.
        wait_s: The least wait that the answer asks for.
        of: What was got, in a few words, for people.
    """

    at: int
    ended: int
    receiver: str
    exact: bool
    meaning: Meaning | None
    wait_s: float = 0
    of: str = ""


class Waits(Protocol):
    """A schedule."""

    def after(self, tries: int) -> tuple[float, float] | None:
        """Least and longest wait after so many failed tries, seconds; None when that was the last."""


@dataclass(frozen=True)
class Fixed:
    """A first try and so many more, the same time apart."""

    retries: int
    delay_s: float

    def after(self, tries: int) -> tuple[float, float] | None:
        """See :class:`Waits`."""
        return (self.delay_s, self.delay_s) if tries <= self.retries else None


@dataclass(frozen=True)
class Doubling:
    """Waits that double up to a cap, each up to a share longer; without an end unless ``most`` says so."""

    base_s: float
    cap_s: float
    spread: float
    most: int | None = None

    def after(self, tries: int) -> tuple[float, float] | None:
        """See :class:`Waits`."""
        if self.most is not None and tries >= self.most:
            return None
        wait = self.base_s * 2.0 ** min(tries - 1, 60)
        return min(self.cap_s, wait), min(self.cap_s, wait * (1 + self.spread))


@dataclass(frozen=True)
class Listed:
    """A list of waits, each to be multiplied by a factor between two."""

    waits_s: tuple[float, ...]
    factors: tuple[float, float]

    def after(self, tries: int) -> tuple[float, float] | None:
        """See :class:`Waits`."""
        if tries > len(self.waits_s):
            return None
        return self.waits_s[tries - 1] * self.factors[0], self.waits_s[tries - 1] * self.factors[1]


@dataclass(frozen=True)
class Terms:
    """What an owner had set, from when it may have been in force until when it may still have been."""

    since: int
    until: int
    waits: Waits
    promised_s: float | None = None
    """How long a promise holds; as long as the first wait unless given."""

    def promised(self) -> float:
        """How long a promise holds, seconds."""
        if self.promised_s is not None:
            return self.promised_s
        wait = self.waits.after(1)
        return wait[0] if wait else 0


@dataclass
class Owed:
    """A message that is owed to a receiver, or to any one of several.

    Attributes:
        message_id: The message.
        where: Where to, for people.
        receivers: Who may be asked.
        posted: The post.
        delay_s: Its delay.
        expires_s: How long it lives, from the end of its delay.
        terms: What was set, in order of time.
        back: Acts of its owner that take it back.
        acknowledged: Acknowledgements.
        by_hand: Requests for a try now.
        disturbed: When its owner first did something that leaves open what becomes of it, microseconds.
        prompt: Whether nothing but its schedule holds it up.
        held: From when on something else may, microseconds.
    """

    message_id: str
    where: str
    receivers: frozenset[str]
    posted: Exchange
    delay_s: float
    expires_s: float
    terms: Sequence[Terms]
    back: list[Exchange] = field(default_factory=list)
    acknowledged: list[Exchange] = field(default_factory=list)
    by_hand: list[Exchange] = field(default_factory=list)
    disturbed: int = FOREVER
    prompt: bool = True
    held: int = FOREVER


@dataclass
class Came:
    """What became of a message.

    Attributes:
        earliest: When the next try may begin, microseconds.
        latest: When it must.
        rest: Receivers that were not asked in this round.
        over: When it had certainly ended; None if it had not.
        why: How.
        least: Failed tries that certainly counted.
        most: Those that may have counted.
        may_end: Whether no further try need be made.
        must_end: Whether none may.
    """

    earliest: int
    latest: int
    rest: frozenset[str]
    over: int | None = None
    why: str = ""
    least: int = 0
    most: int = 0
    may_end: bool = False
    must_end: bool = False


class Pushes:
    """Judges a run.

    Args:
        judgement: Where the facts go.
        faults: What the fault plan did.
        clocks_s: The most by which two clocks of the hub differ, by the fault plan, in seconds.
        ends: When the run ended, microseconds.
    """

    def __init__(self, judgement: Judgement, faults: Faults, *, clocks_s: float, ends: int) -> None:
        self._judgement = judgement
        self._faults = faults
        # Streams tell the whole second.
        self._slack = round((1.1 + clocks_s) * SECOND)
        self._ends = ends

    def judge(self, owed: Owed, seen: Sequence[Seen]) -> Came:
        """Go through all requests for a message, in order of time; returns what became of it."""
        delay = round(owed.delay_s * SECOND)
        came = Came(owed.posted.asked + delay, owed.posted.answered + delay, owed.receivers)
        before: Seen | None = None
        for each in seen:
            self._request(owed, came, before, each)
            self._answered(owed, came, each)
            before = each
        self._not_again(owed, came, before)
        return came

    def _request(self, owed: Owed, came: Came, before: Seen | None, each: Seen) -> None:
        fact, about = self._judgement.fact, owed.message_id
        detail = f"{owed.where} at {moment(each.at)}"
        fact(each.exact, OTHER_BYTES, about, f"{detail}: {each.of}")
        # An order that came twice may stay for all tries. The last fault explains it: what one did is one excuse.
        because = self._faults.on(about, owed.posted.asked, each.at)[-1:]
        for back in owed.back:
            kept = not back.done or each.at <= back.answered + IN_FORCE_S * SECOND + self._slack
            fact(kept, TAKEN_BACK, about, f"{detail}, taken back at {moment(back.answered)}")
        expired = owed.posted.answered + round((owed.delay_s + owed.expires_s) * SECOND) + self._slack
        fact(each.at <= expired, AFTER_EXPIRY, about, f"{detail}, expired at {moment(expired)}")
        if any(hand.asked <= each.at for hand in owed.by_hand):
            return
        over = self._over_before(owed, came, each)
        if not fact(not over, AFTER_END, about, f"{detail}, {over}", because):
            return
        together = before is not None and each.at < before.ended
        if not fact(not together, AT_ONCE, about, f"{detail}, and since {moment(before.at if before else 0)}", because):
            return
        early = f"{detail}, {(came.earliest - each.at) / SECOND:.1f} s too soon"
        fact(each.at >= came.earliest - self._slack, TOO_EARLY, about, early, because)
        fact(not came.must_end, TOO_OFTEN, about, f"{detail}, after {came.least} tries", because)
        its_turn = each.receiver in came.rest or owed.disturbed <= each.at
        fact(its_turn, NOT_ITS_TURN, about, f"{detail}, {each.receiver} before the others", because)
        if owed.prompt and came.latest < FOREVER and each.at <= min(owed.disturbed, owed.held):
            late = each.at - came.latest
            because = self._delaying(owed, came.earliest - 60 * SECOND, each.at)
            # An order may have been lost at any time while it waited, and one whose attempt could not be recorded as a
            # whole waits for another one, which is not there.
            because = because or self._losing(owed, before.at if before else owed.posted.asked, each.at)
            if before and late <= (LATE_S + LONGEST_S) * SECOND + self._slack:
                because = because or self._faults.on(about, before.at, before.ended + 60 * SECOND)[-1:]
            kept = late <= LATE_S * SECOND + self._slack
            fact(kept, TOO_LATE, about, f"{detail}, {late / SECOND:.1f} s too late", because)

    @staticmethod
    def _over_before(owed: Owed, came: Came, each: Seen) -> str:
        """How it had ended before a request, if it had."""
        if came.over is not None and each.at > came.over:
            return f"{came.why} at {moment(came.over)}"
        answered = (
            exchange.answered for exchange in owed.acknowledged if exchange.done and each.at > exchange.answered
        )
        return next((f"acknowledged at {moment(at)}" for at in answered), "")

    def _delaying(self, owed: Owed, begins: int, until: int) -> list[Fault]:
        """A fault that explains why nothing came from a time on until another."""
        found = [
            (each.ends + (SWEPT_S if each.kind in LOSING else FOUND_AGAIN_S) * SECOND, each)
            for each in self._faults.delaying(owed.message_id, begins, until)
        ]
        return [max(found, key=lambda pair: pair[0])[1]] if any(at >= until for at, _ in found) else []

    def _losing(self, owed: Owed, begins: int, until: int) -> list[Fault]:
        """The same, but only of those by which an order is lost."""
        found = self._faults.delaying(owed.message_id, begins, until)
        return [each for each in found if each.kind in LOSING and each.ends + SWEPT_S * SECOND >= until][-1:]

    def _answered(self, owed: Owed, came: Came, each: Seen) -> None:
        """What follows from an answer."""
        if came.over is not None:
            return
        if each.meaning in {Meaning.TAKEN, Meaning.ENDED}:
            came.over, came.why = each.ended, each.meaning.value
            return
        if any(hand.asked <= each.ended for hand in owed.by_hand):
            came.latest, came.may_end = FOREVER, True
            return
        # Where something struck from here on, the hub may not know of the answer, or of the request.
        struck = self._faults.on(owed.message_id, each.at - SECOND, each.ended + 60 * SECOND)
        counted = not struck and each.meaning is not None
        if each.meaning in {Meaning.POSTPONED, Meaning.WORKING}:
            if each.meaning is Meaning.WORKING:
                came.least = came.most = 0
            came.must_end = came.may_end = False
            self._next(came, each, [(each.wait_s, each.wait_s)])
            return
        came.rest -= {each.receiver}
        certain = owed.disturbed > each.ended
        if each.meaning is not Meaning.PROMISED and came.rest and certain:
            came.earliest = came.latest = each.ended
            return
        came.most += 1
        came.least += counted and certain
        ends = not came.rest or each.meaning is Meaning.PROMISED
        came.rest = owed.receivers
        terms = list(self._terms(owed, each.at, each.ended))
        again = [one.waits.after(max(1, tries)) for one in terms for tries in {came.least, came.most}]
        came.must_end = counted and ends and bool(terms) and not any(again)
        waits = [max(wait, (each.wait_s, each.wait_s)) for wait in again if wait]
        if each.meaning is Meaning.PROMISED:
            waits = [(one.promised(), one.promised()) for one in terms]
            came.must_end = False
        self._next(came, each, waits if ends else [(0, 0), *waits])
        later = self._terms(owed, each.at, came.latest)
        came.may_end = any(one.waits.after(came.most) is None for one in later) or not waits

    @staticmethod
    def _next(came: Came, each: Seen, waits: Sequence[tuple[float, float]]) -> None:
        came.earliest = each.ended + round(min((least for least, _ in waits), default=0.0) * SECOND)
        came.latest = each.ended + round(max((longest for _, longest in waits), default=0.0) * SECOND)

    def _terms(self, owed: Owed, begins: int, ends: int) -> Iterator[Terms]:
        """What may have been in force from a second before a time until another."""
        begins -= IN_FORCE_S * SECOND + self._slack
        return (one for one in owed.terms if one.since <= ends + self._slack and begins <= one.until)

    @staticmethod
    def _ends_it(terms: Terms, came: Came) -> bool:
        return terms.since > came.latest and came.most > 0 and terms.waits.after(came.most) is None

    def _not_again(self, owed: Owed, came: Came, last: Seen | None) -> None:
        """Whether something should have come after the last request."""
        exchanges = [*owed.acknowledged, *owed.back]
        ended = came.over is not None or came.may_end or any(each.done or each.unsure for each in exchanges)
        if ended or owed.by_hand or owed.disturbed < FOREVER or came.latest >= FOREVER:
            return
        until = min(owed.posted.asked + round((owed.delay_s + owed.expires_s) * SECOND), self._ends) - self._slack
        # From when its owner allows no further try, none needs to come that was late until then.
        until = min([until, *(one.since for one in owed.terms if self._ends_it(one, came))])
        due = came.latest + (LATE_S if owed.prompt and owed.held == FOREVER else SWEPT_S) * SECOND + self._slack
        because = self._delaying(owed, last.at - SECOND if last else owed.posted.asked, until)
        told_of = f"{owed.where}, due at {moment(came.latest)} after {came.most} tries"
        self._judgement.fact(due > until, NOT_AGAIN, owed.message_id, told_of, because)
