"""One call of a run, chosen by its number, that goes wrong or waits until others have made theirs.

The weather strikes at random. Here nothing is left to chance: a short run is made once to number its calls, and then
again for each call and each way in which it can go wrong (:mod:`simulation.windows`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import FrameType, MappingProxyType
from typing import Any

from simulation.conditions import Conditions
from simulation.ids import ids_in
from simulation.scheduler import Signal
from simulation.weather import Kind, Storm

HELD_S = 15
"""The longest time that a call waits for others, seconds: less than a run of any function may last."""

ALL = 10**6
"""More calls than others make in that time: a call that waits for so many waits for all of them."""


class Wrong(StrEnum):
    """How a call goes wrong."""

    DIES_BEFORE = "dies before"
    """The environment dies, and the call is not made."""
    DIES_AFTER = "dies after"
    """The call takes effect, and the environment dies."""
    REFUSED = "refused"
    """The call fails without effect."""
    LOST = "lost"
    """The call takes effect, and times out."""
    LATE = "late"
    """The call times out, and takes effect after its caller has given up."""
    REPEATED = "repeated"
    """The SDK makes the call twice, some time apart."""


KINDS: Mapping[Wrong | None, Kind] = MappingProxyType(
    {
        Wrong.DIES_BEFORE: Kind.CRASH,
        Wrong.DIES_AFTER: Kind.CRASH,
        Wrong.REFUSED: Kind.REFUSED,
        Wrong.LOST: Kind.LOST,
        Wrong.LATE: Kind.LATE,
        Wrong.REPEATED: Kind.REPEATED,
        None: Kind.SLOW,
    }
)
"""What the judges know each as."""


@dataclass(frozen=True)
class Strike:
    """What happens to one call.

    Attributes:
        call: Its number, from 0.
        wrong: How it goes wrong; None if it only waits for others.
        others: For how many calls of other environments it waits.
    """

    call: int
    wrong: Wrong | None = None
    others: int = 0

    def __str__(self) -> str:
        return f"{self.call}:{self.wrong.value if self.wrong else 'waits'}:{self.others}"

    @classmethod
    def read(cls, text: str) -> Strike:
        """What :meth:`__str__` wrote.

        Raises:
            ValueError: It is nothing of the kind.
        """
        call, wrong, others = text.split(":")
        return cls(int(call), None if wrong == "waits" else Wrong(wrong), int(others))


@dataclass(frozen=True)
class Call:
    """A call that was numbered.

    Attributes:
        environment: Who made it.
        operation: What was called.
        where: The table or queue.
        at: When, microseconds.
        through: The modules of the hub, and their functions (``module:function``), that it was made in.
        lines: The lines of the hub that it was made from, innermost first.
    """

    environment: str
    operation: str
    where: str
    at: int
    through: frozenset[str] = frozenset()
    lines: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        return f"{self.environment} {self.operation} {self.where}".rstrip()


class Chosen:
    """Numbers the calls of an account, and tells which one is struck.

    Args:
        account: The account.
        strike: What happens to one call; None to number them only.

    Attributes:
        calls: The calls, by number.
    """

    def __init__(self, account: Conditions, strike: Strike | None = None) -> None:
        self.calls: list[Call] = []
        self._account = account
        self._strike = strike
        self._waiting: tuple[str, Signal] | None = None
        self._others = strike.others if strike else 0

    def reached(self, environment: str, service: str, operation: str, parameters: Mapping[str, Any]) -> Strike | None:
        """Number a call; what happens to it, if anything does."""
        account, strike, now = self._account, self._strike, self._account.scheduler.now
        number = len(self.calls)
        through, lines = _through() if strike is None else (frozenset[str](), ())
        self.calls.append(Call(environment, operation, _where(parameters), now, through, lines))
        self._goes_on(environment)
        if strike is None or number != strike.call:
            return None
        kind = KINDS[strike.wrong]
        where = environment.partition("-")[0] if kind is Kind.CRASH else service
        # A rate that is a drizzle's: it is one fault, which explains what it struck and nothing else.
        storm = Storm("strike", kind, where, now, now, 0.0)
        account.weather.strike(kind, where, now, storm)
        account.note(f"strike {strike} at {self.calls[number]} {' '.join(ids_in(str(parameters)))}")
        return strike

    def wait(self, environment: str) -> None:
        """Wait until others have made their calls, in the current task."""
        signal = Signal(self._account.scheduler)
        self._waiting = environment, signal
        signal.wait(HELD_S)
        self._waiting = None

    def _goes_on(self, environment: str) -> None:
        if self._waiting is None or self._waiting[0] == environment:
            return
        self._others -= 1
        if self._others <= 0:
            # This one takes effect before whoever waits goes on.
            self._waiting[1].set()


def _through() -> tuple[frozenset[str], tuple[tuple[str, int], ...]]:
    """The modules and functions of the hub that are under way in the current task, and their lines."""
    found: set[str] = set()
    lines: list[tuple[str, int]] = []
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        module = frame.f_globals["__name__"]
        if module.startswith("pushhub."):
            found |= {module, f"{module}:{frame.f_code.co_name}"}
            lines.append((module, frame.f_lineno))
        frame = frame.f_back
    return frozenset(found), tuple(lines)


def _where(parameters: Mapping[str, Any]) -> str:
    """The table or queue of a call, if it names one."""
    if "TransactItems" in parameters:
        tables = {write["TableName"] for each in parameters["TransactItems"] for write in each.values()}
        return "+".join(sorted(tables))
    if "RequestItems" in parameters:
        return "+".join(sorted(parameters["RequestItems"]))
    return str(parameters.get("TableName") or parameters.get("QueueUrl", "")).rpartition("/")[2]


__all__ = ["ALL", "HELD_S", "Call", "Chosen", "Strike", "Wrong"]
