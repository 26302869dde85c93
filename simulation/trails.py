"""The audit trail of control: in Lambda one for each process, so here one for each environment."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Protocol

from greenlet import getcurrent

from pushhub.runtime import auditing
from pushhub.web import audit as kept
from pushhub.web.audit import Trail, audit


class _Clock(Protocol):
    def now(self) -> int: ...


class _Environment(Protocol):
    trail: Trail | None

    @property
    def clock(self) -> _Clock: ...


class _OfEnvironment:
    """The trail of the environment that the current task runs in."""

    def append(self, project: str, at: str, name: str, entry: Mapping[str, Any]) -> None:
        """See :class:`pushhub.web.audit.Trail`."""
        self._trail.append(project, at, name, entry)

    def newest(self, project: str, after: str, most: int) -> tuple[list[dict[str, Any]], str]:
        """See :class:`pushhub.web.audit.Trail`."""
        return self._trail.newest(project, after, most)

    @property
    def _trail(self) -> Trail:
        trail: Trail = getcurrent().environment.trail  # type: ignore[attr-defined]
        return trail


def keep(environment: _Environment, ports: Any) -> None:
    """Have an environment of control keep its trail, if its hub has one."""
    audit.trail = None
    auditing.keep(ports)
    if audit.trail is not None:
        environment.trail, audit.trail = audit.trail, _OfEnvironment()


def changed() -> list[tuple[object, str, object]]:
    """What is otherwise while a simulation runs: nobody keeps a trail yet, and the time of a change is that of the
    environment.
    """

    def now() -> float:
        environment: _Environment = getcurrent().environment  # type: ignore[attr-defined]
        return environment.clock.now() / 1000

    return [(audit, "trail", None), (kept, "time", SimpleNamespace(time=now))]
