"""Input and output of the policy simulator: what a policy is tested against, and the outcome. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pushhub.engine.model.answer_rules import NO_RULES, AnswerRules
from pushhub.engine.model.cost import Counts, dollars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.engine.model.backoff import RetryPolicy
    from pushhub.engine.model.circuit import Circuit
    from pushhub.engine.model.outage import Endpoint

MINUTE_MS: Final = 60_000
POINTS: Final = 240
"""Maximum number of points in a series."""

STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 240, 480, 1440)
"""Lengths, in minutes, that a point of a series may have."""

PERCENTS: Final = (50, 90, 99, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A policy, and the conditions it is tested under.

    Attributes:
        policy: When failed tries are repeated.
        rules: What answers may ask for.
        circuit: How the subscriber is protected; None for no protection.
        rate_limit: Maximum requests per second; None for no limit.
        timeout_s: Seconds allowed for an answer.
        endpoint: How the endpoint behaves over time.
        rate: Messages per second.
        duration_ms: How long messages keep coming.
        life_ms: Lifetime of a message.
        watch_ms: How long to simulate; at least ``duration_ms``.
        body_bytes: Size of a message's body, for the cost.
        seed: Seeds the random part of the waits.
    """

    policy: RetryPolicy
    rules: AnswerRules = NO_RULES
    circuit: Circuit | None = None
    rate_limit: float | None = None
    timeout_s: int = 10
    endpoint: Endpoint
    rate: float
    duration_ms: int
    life_ms: int
    watch_ms: int
    body_bytes: int = 1000
    seed: int = 1

    @property
    def messages(self) -> int:
        """Number of messages accepted: at least one at the start, the rest spread evenly after it."""
        return max(1, round(self.rate * self.duration_ms / 1000))


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Attempts over time.

    Attributes:
        every_ms: Length of one point.
        attempts: Attempts begun within each point.
    """

    every_ms: int
    attempts: tuple[int, ...]
    failed: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The outcome. ``accepted`` is the sum of the five figures that follow it; every message is in one of those.

    Attributes:
        expired: Messages lost because they expired.
        given_up: Messages out of tries, ended by an answer, or ended because the subscriber was disabled. They go to
            the error queue, if there is one.
        held: Messages out of tries and held for a person (hub protocol).
        waiting: Messages still on their way when the simulation ended.
        retries: Requests beyond the first for each message.
        peak: Attempts in the busiest minute.
        delays_ms: Time from acceptance to the successful attempt: its 50th, 90th and 99th percentile and its maximum;
            None if nothing was delivered.
        series: Attempts over time.
        disabled_at_ms: When the subscriber was disabled, from the start; None if it was not.
        dollars: Cost, estimated from list prices.
        sample: How many real messages each simulated message stands for; 1 if each was simulated individually.
    """

    accepted: int
    delivered: int
    expired: int
    given_up: int
    held: int
    waiting: int
    attempts: int
    failed: int
    retries: int
    peak: int
    delays_ms: tuple[int, ...] | None
    series: Series
    opened: int
    disabled_at_ms: int | None
    dollars: float
    sample: int


class PerMinute:
    """Counts per minute of events spread evenly over time spans of any length."""

    def __init__(self) -> None:
        self._counts: defaultdict[int, float] = defaultdict(float)
        self._changes: defaultdict[int, float] = defaultdict(float)

    def add(self, at_ms: int, span_ms: int, count: int) -> None:
        """Count this many events, spread evenly over a span that starts at a given time."""
        ends_ms = at_ms + max(span_ms, 1)
        first, last = at_ms // MINUTE_MS, (ends_ms - 1) // MINUTE_MS
        if first == last:
            self._counts[first] += count
            return
        rate = count / span_ms
        self._counts[first] += rate * ((first + 1) * MINUTE_MS - at_ms)
        self._counts[last] += rate * (ends_ms - last * MINUTE_MS)
        # The minutes in between get the full rate, so only its start and end are noted.
        self._changes[first + 1] += rate * MINUTE_MS
        self._changes[last] -= rate * MINUTE_MS

    def counts(self) -> list[float]:
        """The count of each minute, from the first one to the last that has any."""
        level, counts = 0.0, []
        for minute in range(max(self._counts, default=-1) + 1):
            level += self._changes.get(minute, 0.0)
            counts.append(max(0.0, level) + self._counts.get(minute, 0.0))
        return counts


@dataclass(slots=True, kw_only=True)
class Tally:
    """Running totals. All are weighted: a batch of messages counts as many.

    Attributes:
        ended: Messages by outcome.
        attempted: Messages with at least one attempt.
        closed: Ends without an attempt.
        scheduled: Waits spent in DynamoDB.
        busy_ms: Total milliseconds of all requests.
        delays: Delays in milliseconds, each with its number of messages.
        per_minute: Attempts by minute.
        failed_per_minute: Failed attempts by minute.
        disabled_at_ms: When the subscriber was disabled.
    """

    ended: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    failed: int = 0
    attempted: int = 0
    closed: int = 0
    scheduled: int = 0
    busy_ms: int = 0
    delays: list[tuple[int, int]] = field(default_factory=list)
    per_minute: PerMinute = field(default_factory=PerMinute)
    failed_per_minute: PerMinute = field(default_factory=PerMinute)
    opened: int = 0
    disabled_at_ms: int | None = None

    def attempt(self, at_ms: int, span_ms: int, count: int, *, failed: bool, took_ms: int) -> None:
        """Count attempts that began evenly spread over a time span."""
        self.attempts += count
        self.busy_ms += count * took_ms
        if failed:
            self.failed += count
        self.per_minute.add(at_ms, span_ms, count)
        if failed:
            self.failed_per_minute.add(at_ms, span_ms, count)

    def forecast(self, plan: Plan, *, sample: int) -> Forecast:
        """The figures."""
        attempts = self.per_minute.counts()
        counts = Counts(
            messages=plan.messages,
            body_bytes=plan.body_bytes,
            attempts=self.attempts,
            retries=self.attempts - self.attempted,
            changes=self.attempts + self.closed,
            scheduled=self.scheduled,
            busy_ms=self.busy_ms,
        )
        return Forecast(
            accepted=plan.messages,
            delivered=self.ended["delivered"],
            expired=self.ended["expired"],
            given_up=self.ended["exhausted"],
            held=self.ended["held"],
            waiting=self.ended["waiting"],
            attempts=self.attempts,
            failed=self.failed,
            retries=self.attempts - self.attempted,
            peak=round(max(attempts, default=0)),
            delays_ms=percentiles(self.delays),
            series=_series(attempts, self.failed_per_minute.counts(), plan.duration_ms // MINUTE_MS),
            opened=self.opened,
            disabled_at_ms=self.disabled_at_ms,
            dollars=dollars(counts),
            sample=sample,
        )


def _series(attempts: Sequence[float], failed: Sequence[float], least: int) -> Series:
    """The series of counts per minute, covering at least this many minutes."""
    minutes = max(len(attempts), least, 1)
    step = next((each for each in STEPS if minutes <= each * POINTS), STEPS[-1])

    def summed(counts: Sequence[float]) -> tuple[int, ...]:
        return tuple(round(sum(counts[at : at + step])) for at in range(0, minutes, step))

    return Series(every_ms=step * MINUTE_MS, attempts=summed(attempts), failed=summed(failed))


def percentiles(delays: Sequence[tuple[int, int]]) -> tuple[int, ...] | None:
    """The delays at each of :data:`PERCENTS`; None if there are no messages.

    Args:
        delays: Delays in milliseconds, each with its number of messages.
    """
    if not delays:
        return None
    in_order = sorted(delays)
    whole = sum(count for _, count in in_order)
    found: list[int] = []
    for percent in PERCENTS:
        passed, wanted = 0, whole * percent / 100
        for delay, count in in_order:
            passed += count
            if passed >= wanted:
                found.append(delay)
                break
    return tuple(found)
