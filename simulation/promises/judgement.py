"""What a model says of a run: the promises that were broken, and what was excused, for which fault."""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

SECOND = 1_000_000
"""Microseconds, the unit of all times."""

MOST_EXCUSED = 0.01
"""A run in which a larger share of what was judged is excused proves nothing, and fails."""


@dataclass(frozen=True)
class Violation:
    """A promise that was not kept.

    Attributes:
        rule: The rule that was broken.
        about: Its subject: an id that can be searched for in the trace.
        detail: What happened.
    """

    rule: str
    about: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.about}: {self.detail}"


@dataclass(frozen=True)
class Exchange:
    """A request and when it was answered.

    Attributes:
        asked: When it was made, microseconds.
        answered: When the answer came, or nobody waited for it any more.
        status: HTTP status; 0 for no answer.
        struck: The faults that the fault plan applied to this very request, by kind.
    """

    asked: int
    answered: int
    status: int
    struck: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Whether it certainly took effect."""
        return 200 <= self.status < 300

    @property
    def unsure(self) -> bool:
        """Whether it may have taken effect, or an effect nobody was told of: it failed in some way, other than by not
        being begun.
        """
        if not self.status or self.status >= 500:
            return not self.struck or bool({*self.struck} - NOT_BEGUN)
        return bool({*self.struck} - HARMLESS)


@dataclass(frozen=True)
class Post:
    """A producer's request.

    Attributes:
        queue: The queue.
        exchange: The request.
        bodies: The body of each message.
        delays_s: The delay of each message.
        ids: Their ids, if they were answered.
    """

    queue: str
    exchange: Exchange
    bodies: Sequence[bytes]
    delays_s: Sequence[int]
    ids: Sequence[str] = ()


@dataclass(frozen=True)
class Fault:
    """Something that the fault plan did to the hub while it worked on messages.

    Attributes:
        kind: What went wrong.
        name: Which one it was. A storm in which hardly anything works is one fault, however many runs and calls it
            struck; in a drizzle each stroke is one.
        at: When it struck, microseconds.
        ends: When it was over.
    """

    kind: str
    name: str
    at: int
    ends: int

    @property
    def struck(self) -> tuple[str, ...]:
        """Its kind, as :attr:`Exchange.struck`."""
        return (self.kind,)

    @property
    def kept_from_running(self) -> bool:
        """Whether it kept functions from running at all."""
        return self.kind in NOT_BEGUN


Because = Exchange | Fault


class Faults:
    """What the fault plan did, by the messages that were being worked on."""

    def __init__(self) -> None:
        self._times: dict[str, list[int]] = defaultdict(list)
        self._faults: dict[str, list[Fault]] = defaultdict(list)
        self._storms: list[Fault] = []

    def struck(self, fault: Fault, at: int, message_ids: Iterable[str]) -> None:
        """A fault struck, at this time, while these messages were worked on; in order of time."""
        for each in message_ids:
            self._times[each].append(at)
            self._faults[each].append(fault)

    def everywhere(self, fault: Fault) -> None:
        """While this fault lasts, nothing is in time."""
        self._storms.append(fault)

    def same(self, message_id: str, other: str, kinds: Container[str] | None = None) -> None:
        """What struck another message struck this one, which was made of it or waited for it; of these kinds only, if
        some are given.
        """
        if other and other != message_id and other in self._times:
            pairs = [*zip(self._times[message_id], self._faults[message_id], strict=True)]
            others = zip(self._times[other], self._faults[other], strict=True)
            pairs += [pair for pair in others if (kinds is None or pair[1].kind in kinds) and pair not in pairs]
            ordered = sorted(pairs, key=lambda pair: pair[0])
            self._times[message_id] = [at for at, _ in ordered]
            self._faults[message_id] = [fault for _, fault in ordered]

    def on(self, message_id: str, begins: int, ends: int) -> list[Fault]:
        """What struck while a message was worked on, between two moments."""
        times = self._times.get(message_id, ())
        found = self._faults[message_id] if times else []
        return found[bisect.bisect_left(times, begins) : bisect.bisect_right(times, ends)]

    @property
    def storms(self) -> list[Fault]:
        """What is :meth:`everywhere`."""
        return [*self._storms]

    def over(self, by: int) -> int:
        """When what would have been done by some time is done, if storms until then kept functions from doing it."""
        for each in sorted(self._storms, key=lambda storm: storm.at):
            if each.at <= by and each.kept_from_running:
                by = max(by, each.ends + HIDDEN_S * SECOND)
        return by

    def delaying(self, message_id: str, begins: int, ends: int) -> list[Fault]:
        """The same, and the storms of that time."""
        return [
            *self.on(message_id, begins, ends),
            *(each for each in self._storms if each.at <= ends and begins <= each.ends),
        ]


NOT_BEGUN = frozenset({"throttled", "stopped", "crowded", "reserved"})
"""Faults that keep a function from running at all."""

HIDDEN_S = 480
"""What was handed out in vain, as its function could not run, is shown again within so long (450 s, and some)."""

HARMLESS = NOT_BEGUN | {"recycled", "split", "window", "half-open"}


class Judgement:
    """Collects what is found.

    Args:
        most_excused: So many facts may be excused in any run, and in a larger one a share (:data:`MOST_EXCUSED`).

    Attributes:
        violations: Promises that were not kept.
        judged: Number of facts looked at.
        excused: Facts that would have broken a rule but for faults, by the rule and the kinds of the faults. What the
            same faults did to several messages counts once.
    """

    def __init__(self, most_excused: int = 1) -> None:
        self.most_excused = most_excused
        self.violations: list[Violation] = []
        self.judged = 0
        self.excused: Counter[str] = Counter()
        self._known: set[tuple[str, frozenset[Because]]] = set()

    def fact(self, kept: bool, rule: str, about: str, detail: str, because: Iterable[Because] = ()) -> bool:
        """Judge one fact.

        Args:
            kept: Whether the promise was kept.
            rule: The rule.
            about: Its subject.
            detail: What happened.
            because: Faults that explain it, and requests that do, if faults were applied to them.

        Returns:
            Whether it was kept.
        """
        self.judged += 1
        if kept:
            return True
        faults = frozenset(each for each in because if each.struck)
        kinds = sorted({kind for each in faults for kind in each.struck})
        if kinds and (rule, faults) in self._known:
            return False
        if kinds:
            self._known.add((rule, faults))
            self.excused[f"{rule}, for {' and '.join(kinds)}"] += 1
        else:
            self.violations.append(Violation(rule, about, detail))
        return False

    def total(self, beside: Judgement | None = None) -> list[Violation]:
        """Everything broken, and whether too much was excused.

        Args:
            beside: What was found in the same run by others, whose facts and excuses count, too.
        """
        parts = [self] if beside is None else [self, beside]
        excused = sum((each.excused for each in parts), Counter[str]())
        count, judged = excused.total(), sum(each.judged for each in parts)
        if count <= max(sum(each.most_excused for each in parts), judged * MOST_EXCUSED):
            return self.violations
        detail = f"{count} of {judged}: {dict(excused.most_common(5))}"
        return [*self.violations, Violation("too much is excused", "the run", detail)]


def moment(at: int) -> str:
    """A time (microseconds since the start) as text for people."""
    return f"{at / SECOND:.3f} s"
