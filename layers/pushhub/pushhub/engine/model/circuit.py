r"""The circuit breaker of a subscriber: while it is open, single probes find out whether the subscriber is back.

Pure, no clock, no I/O.

::

             a run of failures                     an attempt succeeds
    CLOSED ---------------------> OPEN ---------------------------------> RAMPING
      ^  \______________________/  ^  one probe at a time, further apart     |  |
      |         (again)            |_____________ a run of failures _________|  |
      |__________________ nothing waits any more ______________________________|

While the circuit is open, deliveries wait in the subscriber's backlog and are not attempted one by one. While it ramps,
new messages go out as usual and the backlog follows behind them, twice as much each minute.

Separately, a subscriber that does nothing but fail for days is disabled, after three warnings; one success resets the
count. Svix counts such days only if failures are at least 12 hours apart; here the same is achieved by keeping warnings
at least a tenth of the whole time apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

WARNINGS = (50, 70, 90)
"""A failing subscriber triggers a warning at each of these percentages of the time until it is disabled."""

FIRST_RELEASE = 10
"""Waiting deliveries sent in the first minute of a ramp; the number doubles each minute."""

MOST_RELEASED = 5_000
"""Waiting deliveries sent per minute at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberKey:
    """A subscriber, unique in the hub."""

    project: str
    queue: str
    queue_uid: str
    subscriber_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """How a queue protects its subscribers, and itself from them.

    Attributes:
        failures: Consecutive failures that open the circuit. Each execution environment counts its own.
        share: It also opens when this share of attempts fails (0..1) ...
        least: ... out of at least this many attempts ...
        window_s: ... within this many seconds.
        probe_s: Seconds until the first probe; each failed probe doubles the wait ...
        most_probe_s: ... up to this many seconds.
        disable_after_s: Seconds of uninterrupted failure after which the subscriber is disabled; None for never.
    """

    failures: int = 5
    share: float = 0.7
    least: int = 20
    window_s: int = 60
    probe_s: int = 60
    most_probe_s: int = 3_600
    disable_after_s: int | None = 432_000

    def probe_wait_ms(self, probes: int) -> int:
        """Milliseconds until the next probe, after this many failed ones."""
        return min(self.most_probe_s, self.probe_s << min(probes, 30)) * 1000


class CircuitState(StrEnum):
    """The state of a circuit."""

    CLOSED = "closed"
    OPEN = "open"
    RAMPING = "ramping"
    PAUSED = "paused"
    """Not a matter of failures: the subscriber is paused or its project suspended; deliveries wait in its backlog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What is known of a subscriber, as stored. Times are epoch milliseconds.

    Attributes:
        changed_at: When that state was entered.
        probe_at: While open: when the next attempt may be made.
        probes: While open: how many probes failed.
        ramped: While ramping: minutes so far.
        failing_since: First failure since the last success; None after a success.
        warnings: Warnings given since then.
        warned_at: When the last warning was given.
        claim: Random text of the run that claimed the last probe: no two claims are ever the same write.
        version: Incremented by each change; 0 means never stored. Guards every write.
    """

    key: SubscriberKey
    state: CircuitState = CircuitState.CLOSED
    changed_at: int = 0
    probe_at: int = 0
    probes: int = 0
    ramped: int = 0
    failing_since: int | None = None
    warnings: int = 0
    warned_at: int = 0
    claim: str = ""
    version: int = 0

    @property
    def well(self) -> bool:
        """Whether a success would change nothing."""
        return self.state is not CircuitState.OPEN and self.failing_since is None

    @property
    def release(self) -> int:
        """How many waiting deliveries may be sent in the next minute of the ramp."""
        return min(MOST_RELEASED, FIRST_RELEASE << min(self.ramped, 20))


def claimed(health: Health, now: int, *, for_ms: int, claim: str = "") -> Health | None:
    """The health of an open circuit with its probe claimed by the run that stores it; None when no probe is due.

    Args:
        health: As stored.
        for_ms: Milliseconds after which another probe may be made if the outcome of this one is never reported.
        claim: Random text of this claim.
    """
    if health.state is not CircuitState.OPEN or now < health.probe_at:
        return None
    return replace(health, probe_at=now + for_ms, claim=claim, version=health.version + 1)


def failed(health: Health, circuit: Circuit, now: int, *, tripped: bool, probe: bool) -> Health:
    """The health after a failure; the same object when nothing changes.

    Args:
        health: As stored.
        now: When the failure happened, epoch milliseconds.
        tripped: Whether this failure was one too many.
        probe: Whether this attempt was the probe.
    """
    after = replace(health, failing_since=now) if health.failing_since is None else health
    if health.state is CircuitState.OPEN:
        if probe:
            probes = health.probes + 1
            after = replace(after, probes=probes, probe_at=now + circuit.probe_wait_ms(probes))
    elif tripped:
        after = replace(
            after,
            state=CircuitState.OPEN,
            changed_at=now,
            probe_at=now + circuit.probe_wait_ms(0),
            probes=0,
            ramped=0,
        )
    return after if after is health else replace(after, version=health.version + 1)


def succeeded(health: Health, now: int) -> Health:
    """The health after a success; the same object when nothing changes."""
    if health.well:
        return health
    after = replace(health, failing_since=None, warnings=0, warned_at=0, version=health.version + 1)
    if health.state is CircuitState.OPEN:
        after = replace(after, state=CircuitState.RAMPING, changed_at=now, probe_at=0, probes=0, ramped=0)
    return after


def due_warning(health: Health, circuit: Circuit, now: int) -> int | None:
    """Percentage of its time that a failing subscriber has used up, if a warning is due; 100 if it is to be disabled.

    Args:
        health: As stored, or as it is about to be.
        now: When the last failure happened, epoch milliseconds.
    """
    if health.failing_since is None or circuit.disable_after_s is None:
        return None
    whole_ms = circuit.disable_after_s * 1000
    percent = (*WARNINGS, 100)[health.warnings]
    too_soon = health.warnings and now - health.warned_at < whole_ms // 10
    return percent if (now - health.failing_since) * 100 >= percent * whole_ms and not too_soon else None


def warned(health: Health, now: int) -> Health:
    """The health after the due warning was given. After the last warning the subscriber is disabled and its health
    starts afresh.
    """
    if health.warnings == len(WARNINGS):
        return reset(health, now)
    return replace(health, warnings=health.warnings + 1, warned_at=now, version=health.version + 1)


def paused(health: Health, now: int) -> Health:
    """The health of a subscriber whose deliveries wait because its owner paused it; the same object if it says so."""
    if health.state is CircuitState.PAUSED:
        return health
    return Health(key=health.key, state=CircuitState.PAUSED, changed_at=now, version=health.version + 1)


def reset(health: Health, now: int) -> Health:
    """The health of a subscriber that starts afresh: it was disabled, enabled or resumed, or its URL changed.

    Its backlog is looked at soon.
    """
    return Health(key=health.key, changed_at=now, version=health.version + 1)


def ramped(health: Health) -> Health:
    """The health after a minute's share of the backlog was sent."""
    return replace(health, ramped=health.ramped + 1, version=health.version + 1)


def drained(health: Health, now: int) -> Health:
    """The health of a ramping circuit whose backlog is empty."""
    return replace(health, state=CircuitState.CLOSED, changed_at=now, ramped=0, version=health.version + 1)
