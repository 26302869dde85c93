"""What a model says of a run: the promises that were broken, and what was excused, for which fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
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
        told: What happened.
    """

    rule: str
    about: str
    told: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.about}: {self.told}"


@dataclass(frozen=True)
class Told:
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


NOT_BEGUN = frozenset({"throttled", "stopped", "crowded", "reserved"})
"""Faults that keep a function from running at all."""

HARMLESS = NOT_BEGUN | {"recycled", "split", "window", "half-open", "deployed"}


class Judgement:
    """Collects what is found.

    Attributes:
        violations: Promises that were not kept.
        judged: Number of facts looked at.
        excused: Facts that would have broken a rule but for faults, by the rule and the kinds of the faults. What the
            same faults did to several messages counts once.
    """

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.judged = 0
        self.excused: Counter[str] = Counter()
        self._known: set[tuple[str, frozenset[Told]]] = set()

    def fact(self, kept: bool, rule: str, about: str, told: str, because: Iterable[Told] = ()) -> bool:
        """Judge one fact.

        Args:
            kept: Whether the promise was kept.
            rule: The rule.
            about: Its subject.
            told: What happened.
            because: Requests that explain it, if faults were applied to them.

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
            self.violations.append(Violation(rule, about, told))
        return False

    def total(self) -> list[Violation]:
        """Everything broken, and whether too much was excused."""
        count = self.excused.total()
        if count <= max(1, self.judged * MOST_EXCUSED):
            return self.violations
        told = f"{count} of {self.judged}: {dict(self.excused.most_common(5))}"
        return [*self.violations, Violation("too much is excused", "the run", told)]


def moment(at: int) -> str:
    """A time (microseconds since the start) as text for people."""
    return f"{at / SECOND:.3f} s"
