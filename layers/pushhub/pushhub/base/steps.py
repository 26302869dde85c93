"""A budget for the work that somebody's rule does on somebody's data: a schema on a payload, a filter on a message.

Each loop of such an evaluator spends from the budget, so an evaluation ends when it is used up, whatever the rule and
the data. Steps are counted rather than time, so that the same request has the same result on every machine. Decision
0062 says which evaluators count, and what a step costs.
"""

from __future__ import annotations

from pushhub.base.errors import TooMuchWork

MOST_STEPS = 50_000
"""Steps for one rule, or one set of rules, on one document. A step is work of about a microsecond."""

_CHARACTERS = 500
"""How many characters are compared or copied for a step."""


class Steps:
    """A budget of steps.

    Args:
        most: How many there are.

    Attributes:
        left: How many are left; negative when the budget is overdrawn.
    """

    __slots__ = ("_most", "left")

    def __init__(self, most: int = MOST_STEPS) -> None:
        self._most = most
        self.left = most

    @property
    def spent(self) -> int:
        """How many were spent; all of them if more were asked for, as that work was not done."""
        return self._most - max(0, self.left)

    def spend(self, count: int = 1) -> None:
        """Spend steps, before the work is done.

        Raises:
            TooMuchWork: There are not that many left.
        """
        self.left -= count
        if self.left < 0:
            raise TooMuchWork

    def spend_on_text(self, length: int) -> None:
        """Spend the steps for reading a text of that many characters.

        Raises:
            TooMuchWork: There are not that many left.
        """
        self.spend(1 + length // _CHARACTERS)

    def part(self, most: int = MOST_STEPS) -> Steps:
        """A budget for one of several documents that share this one: that many steps, if so many are left.

        What it spends is to be charged to this one with :meth:`charge`.
        """
        return Steps(max(0, min(most, self.left)))

    def charge(self, part: Steps) -> None:
        """Take off what a part has spent."""
        self.left -= part.spent
