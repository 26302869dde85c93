"""Faults on demand: any port call can fail, time out after taking effect, or be followed by a crash.

A test of "each call fails once" runs the use case once with an empty plan to learn its calls, then once more for each
call and fault::

    learned = FaultPlan()
    run(faulty(store, "messages", learned))
    for number in range(1, len(learned.calls) + 1):
        for fault in Fault:
            run(faulty(FakeMessageStore(schedule), "messages", FaultPlan(fault, at=number)))
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, TypeVar, cast

from pushhub.base.errors import Unavailable

P = TypeVar("P")


class Crash(BaseException):
    """The process dies here: none of our handlers may catch it; tests start again with the same stores."""


class Fault(Enum):
    """What goes wrong with one call."""

    FAILS = "fails"
    """``Unavailable`` and no effect."""
    TIMES_OUT = "times_out"
    """The effect, and ``Unavailable`` all the same."""
    CRASHES_BEFORE = "crashes_before"
    """The process dies before the call took effect."""
    CRASHES_AFTER = "crashes_after"
    """The process dies after the call took effect."""


READS = frozenset(
    {
        *("bodies.get", "config.noted_changes", "config.project", "config.queue", "messages.deliveries"),
        *("messages.messages", "schedule.due", "schedule.positions", "settings.mapping", "settings.mappings"),
        *(
            "settings.parameters",
            "settings.parameters_of",
            "subscribers.backlog",
            "subscribers.listed_backlogs",
            "subscribers.slow",
        ),
    }
)
"""Calls without effect: for them it is one fault whether it strikes before or after they took it."""

EQUAL = 4
"""Of calls of one name that are made from the same lines, so many are struck."""


class FaultPlan:
    """Which call goes wrong, and how. One plan may be shared by several ports; then calls count across them.

    Args:
        fault: What goes wrong; None plans nothing and only records.
        at: Number of the call that goes wrong, from 1.
        of: Count only calls of this name, e.g. ``"messages.save"``; empty counts all.

    Attributes:
        calls: Every call made so far, as ``"port.method"``.
        struck: Whether the planned fault happened.
    """

    def __init__(self, fault: Fault | None = None, *, at: int = 1, of: str = "") -> None:
        self._fault = fault
        self._at = at
        self._of = of
        self._seen = 0
        self._lock = threading.Lock()
        self.calls: list[str] = []
        self.struck = False

    def strike(self, fault: Fault, *, of: str) -> None:
        """Plan that the next call of this name goes wrong."""
        with self._lock:
            self._fault, self._of, self._at, self._seen, self.struck = fault, of, 1, 0, False

    def next_fault(self, call: str) -> Fault | None:
        """Record a call; returns the fault planned for it, if any."""
        with self._lock:
            self.calls.append(call)
            self._seen += self._of in ("", call)
            strikes = self._of in ("", call) and self._seen == self._at and self._fault is not None
            self.struck = self.struck or strikes
            return self._fault if strikes else None


class _Faulty:
    def __init__(self, port: object, name: str, plan: FaultPlan) -> None:
        self._port = port
        self._name = name
        self._plan = plan

    def __getattr__(self, method: str) -> Any:
        real = getattr(self._port, method)
        if not callable(real):
            return real

        def call(*args: Any, **kwargs: Any) -> Any:
            name = f"{self._name}.{method}"
            fault = self._plan.next_fault(name)
            if fault is Fault.FAILS:
                raise Unavailable(name)
            if fault is Fault.CRASHES_BEFORE:
                raise Crash(name)
            result = real(*args, **kwargs)
            if fault is Fault.TIMES_OUT:
                raise Unavailable(name)
            if fault is Fault.CRASHES_AFTER:
                raise Crash(name)
            return result

        return call


def faulty(port: P, name: str, plan: FaultPlan) -> P:
    """The port with faults by plan; its methods and results are otherwise the same.

    Args:
        port: Any port, real or fake.
        name: Its name in the plan's record of calls.
        plan: What goes wrong and when.
    """
    return cast(P, _Faulty(port, name, plan))


class _Learned(FaultPlan):
    """Plans nothing, and notes from which lines each call was made."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[int] = []

    def next_fault(self, call: str) -> Fault | None:
        frame, lines = sys._getframe(1), []
        while frame is not None:
            if "/pushhub/" in frame.f_code.co_filename:
                lines.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back  # type: ignore[assignment]
        self.lines.append(hash(tuple(lines)))
        return super().next_fault(call)


def each_strike(play: Callable[[FaultPlan], object]) -> Iterator[tuple[Fault, int]]:
    """Every fault of every call that a play makes, as arguments of a plan; all plays make the same calls.

    Of equal calls that are made from the same lines the first :data:`EQUAL` are struck.
    """
    learned = _Learned()
    play(learned)
    seen = Counter[tuple[str, int]]()
    for number, call in enumerate(zip(learned.calls, learned.lines, strict=True), start=1):
        seen[call] += 1
        if seen[call] <= EQUAL:
            faults = (Fault.FAILS, Fault.CRASHES_BEFORE) if call[0] in READS else Fault
            yield from ((fault, number) for fault in faults)
