"""Attempts at one endpoint that end at about the same time are logged together, with one write instead of one each.

When an attempt ends while others at the same endpoint are in progress, it waits a moment for them. The first one
waiting writes for all. The others continue only when that is done, so that an attempt is always logged before its
outcome is stored, just as when it is alone.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import Unavailable

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.webhooks.model.attempt import LoggedAttempt

GATHER_S = 0.03
"""How long the first one waits for others, seconds."""

_LOOK_S = 0.01
_LOOKS = 3_000
"""How often the others check whether the write is done, at most; our own calls give up sooner."""


class WriteAttempts(Protocol):
    """Where attempts are logged."""

    def log_attempts(self, attempts: Sequence[LoggedAttempt]) -> None:
        """Log attempts made at one endpoint."""


@dataclass
class _Group:
    attempts: list[LoggedAttempt] = field(default_factory=list)
    written: bool | None = None


class AttemptGroups:
    """Logs attempts of one execution environment. Safe to share between threads."""

    def __init__(self, *, log: WriteAttempts, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way: Counter[str] = Counter()
        self._open: dict[str, _Group] = {}

    def begin(self, endpoint_id: str) -> None:
        """Register an attempt that begins; :meth:`log` or :meth:`give_up` must follow."""
        with self._lock:
            self._under_way[endpoint_id] += 1

    def give_up(self, endpoint_id: str) -> None:
        """Abandon an attempt that began, without logging it."""
        with self._lock:
            self._end(endpoint_id)

    def log(self, attempt: LoggedAttempt) -> None:
        """Log an attempt that began, together with those that end at about the same time."""
        with self._lock:
            others = self._end(attempt.endpoint_id)
            group = self._open.get(attempt.endpoint_id)
            writes = group is None
            if group is None:
                group = self._open[attempt.endpoint_id] = _Group()
            group.attempts.append(attempt)
        if writes:
            self._write(attempt.endpoint_id, group, wait=others)
        else:
            self._wait_for(group)

    def _end(self, endpoint_id: str) -> bool:
        """Unregister an attempt; returns whether others are in progress."""
        self._under_way[endpoint_id] -= 1
        if self._under_way[endpoint_id] > 0:
            return True
        del self._under_way[endpoint_id]
        return False

    def _write(self, endpoint_id: str, group: _Group, *, wait: bool) -> None:
        try:
            if wait:
                self._clock.sleep(GATHER_S)
        finally:
            with self._lock:
                del self._open[endpoint_id]
        try:
            self._log.log_attempts(group.attempts)
        except BaseException:
            group.written = False
            raise
        group.written = True

    def _wait_for(self, group: _Group) -> None:
        for _ in range(_LOOKS):
            if group.written is not None:
                break
            self._clock.sleep(_LOOK_S)
        if not group.written:
            raise Unavailable("logging attempts together")
