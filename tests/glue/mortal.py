"""A process that can be killed at each of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import pytest

__all__ = ["Killed", "Mortal"]


class Killed(BaseException):
    """The process ends here."""


class Mortal:
    """Counts the steps of a process, and kills it at one of them."""

    def __init__(self) -> None:
        self._left = 0

    def dies_at(self, step: int) -> None:
        """Kill the process at this step from now; 0: never."""
        self._left = step

    def step(self) -> None:
        """The process takes a step.

        Raises:
            Killed: It was its last.
        """
        self._left -= 1
        if self._left == 0:
            raise Killed

    def at_each_call(self, patched: pytest.MonkeyPatch, module: ModuleType, names: Iterable[str]) -> None:
        """Make each call of functions of a module two steps, one before it and one after."""
        for name in names:
            patched.setattr(module, name, self._mortal(getattr(module, name)))

    def _mortal(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            self.step()
            done = real(*args, **named)
            self.step()
            return done

        return call
