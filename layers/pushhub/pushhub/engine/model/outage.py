"""How an endpoint in trouble behaves, as data: time windows, and the answer to each attempt within them.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pushhub.base.verdict import Answer

REFUSED_MS = 20
"""Milliseconds until a connection is refused."""


class Trouble(StrEnum):
    """What goes wrong."""

    TIMES_OUT = "times_out"
    """No answer before the hub times out."""
    REFUSES = "refuses"
    """The connection is refused."""
    ANSWERS = "answers"
    """It answers with an error status."""
    SLOW = "slow"
    """It succeeds, but slowly; if slower than the timeout, it times out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One period of trouble. All times are milliseconds from the start.

    Attributes:
        begins: Its first moment.
        ends: The first moment after it.
        trouble: What goes wrong.
        status: With ``ANSWERS``: the status.
        retry_after_s: With ``ANSWERS``: seconds in its ``Retry-After``; None for no such header.
        takes_ms: How long an answer takes; refusals and timeouts have their own durations.
        share: Share of attempts that are affected (0..1); the others succeed.
        down_ms: For intermittent trouble, how long each period lasts; 0 for continuous trouble.
        up_ms: How long the pauses between last.
    """

    begins: int
    ends: int
    trouble: Trouble
    status: int = 503
    retry_after_s: int | None = None
    takes_ms: int = 50
    share: float = 1.0
    down_ms: int = 0
    up_ms: int = 0

    def meets(self, at: int, span_ms: int) -> float:
        """The affected share of attempts that begin evenly spread over a span of time.

        With no span, all begin at once.
        """
        least_ms = max(1, span_ms)
        first, end = max(at, self.begins), min(at + least_ms, self.ends)
        if first >= end:
            return 0.0
        return self.share * (self._down_before(end) - self._down_before(first)) / least_ms

    def _down_before(self, at: int) -> int:
        """Total time of trouble in the window up to a given time."""
        passed = at - self.begins
        if not self.down_ms:
            return passed
        cycles, rest = divmod(passed, self.down_ms + self.up_ms)
        return cycles * self.down_ms + min(rest, self.down_ms)

    def fails_after_ms(self, timeout_ms: int) -> int | None:
        """How long an attempt takes to fail here; None if it succeeds."""
        match self.trouble:
            case Trouble.TIMES_OUT:
                return timeout_ms
            case Trouble.REFUSES:
                return min(REFUSED_MS, timeout_ms)
            case Trouble.ANSWERS:
                return min(self.takes_ms, timeout_ms)
            case Trouble.SLOW:
                return timeout_ms if self.takes_ms >= timeout_ms else None

    def answer(self, started_at: int, timeout_ms: int) -> Answer:
        """The answer to an attempt that begins at the given time, epoch milliseconds."""
        if self.trouble is Trouble.REFUSES:
            finished_at = started_at + min(REFUSED_MS, timeout_ms)
            return _answer(started_at, finished_at, message="Connection refused", error_class="connect")
        if self.trouble is Trouble.TIMES_OUT or self.takes_ms >= timeout_ms:
            return _answer(started_at, started_at + timeout_ms, message="Timed out", error_class="timeout")
        headers = {} if self.retry_after_s is None else {"retry-after": str(self.retry_after_s)}
        status = 200 if self.trouble is Trouble.SLOW else self.status
        return _answer(started_at, started_at + self.takes_ms, status_code=status, headers=headers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An endpoint with its periods of trouble.

    Attributes:
        windows: Where several overlap, the first one counts.
        takes_ms: How long an answer takes when nothing is wrong.
    """

    windows: tuple[Window, ...] = ()
    takes_ms: int = 50

    def troubles(self, at: int, span_ms: int) -> list[tuple[Window, float]]:
        """The windows that affect attempts begun evenly over a span of time, each with its share of the attempts not
        yet taken by an earlier window.
        """
        met: list[tuple[Window, float]] = []
        left = 1.0
        for each in self.windows:
            share = min(left, each.meets(at, span_ms))
            if share > 0:
                met.append((each, share / left))
                left -= share
            if left <= 0:
                break
        return met

    def well(self, started_at: int, timeout_ms: int) -> Answer:
        """The answer, when nothing is wrong, to an attempt that begins at the given time, epoch milliseconds."""
        if self.takes_ms >= timeout_ms:
            return _answer(started_at, started_at + timeout_ms, message="Timed out", error_class="timeout")
        return _answer(started_at, started_at + self.takes_ms, status_code=200)


def _answer(
    started_at: int,
    finished_at: int,
    *,
    status_code: int = 0,
    message: str = "",
    error_class: str = "",
    headers: dict[str, str] | None = None,
) -> Answer:
    return Answer(
        status_code=status_code,
        message=message,
        error_class=error_class,
        headers=headers or {},
        started_at=started_at,
        finished_at=finished_at,
    )
