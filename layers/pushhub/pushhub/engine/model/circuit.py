r"""The circuit of a subscriber: when it is open, one attempt at a time finds out whether the subscriber is back.

Pure, no clock, no I/O.

::

             a run of failures                     an attempt succeeds
    CLOSED ---------------------> OPEN ---------------------------------> RAMPING
      ^  \______________________/  ^  one probe at a time, further apart     |  |
      |         (again)            |_____________ a run of failures _________|  |
      |__________________ nothing waits any more ______________________________|

While it is open, what is owed to the subscriber waits on the subscriber: it is not tried one by one. While it ramps,
new messages go out as always and what waited follows behind them, twice as much each minute.

Beside this, days of nothing but failure end in the subscriber's being disabled, after three warnings; one success
starts them anew. Svix counts such days only if failures are at least 12 hours apart; the same is reached here by
warnings that are a tenth of the time apart at least.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

WARNINGS = (50, 70, 90)
"""Percent of the time until it is disabled at which a failing subscriber is warned of."""

FIRST_RELEASE = 10
"""How many of those that waited are sent in the first minute of a ramp; twice as many in each that follows."""

MOST_RELEASED = 5_000
"""How many are sent in a minute at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberKey:
    """A subscriber, unique in the hub.

    Attributes:
        project: Owner.
        queue: Name of the queue.
        queue_uid: Its generation.
        subscriber_id: Of the subscriber.
    """

    project: str
    queue: str
    queue_uid: str
    subscriber_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """How a queue protects its subscribers, and itself from them.

    Attributes:
        failures: So many in a row open the circuit. Each execution environment counts its own.
        share: So large a share of failures opens it too (0..1) ...
        least: ... of at least so many attempts ...
        window_s: ... within so many seconds.
        probe_s: Seconds until the first probe; each that fails doubles them ...
        most_probe_s: ... up to so many.
        disable_after_s: Seconds of nothing but failure after which the subscriber is disabled; None for never.
    """

    failures: int = 5
    share: float = 0.7
    least: int = 20
    window_s: int = 60
    probe_s: int = 60
    most_probe_s: int = 3_600
    disable_after_s: int | None = 432_000

    def probe_wait_ms(self, probes: int) -> int:
        """Milliseconds until the next probe, after so many that failed."""
        return min(self.most_probe_s, self.probe_s << min(probes, 30)) * 1000


class CircuitState(StrEnum):
    """Where a circuit stands."""

    CLOSED = "closed"
    OPEN = "open"
    RAMPING = "ramping"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What is known of a subscriber, as stored. Times are epoch milliseconds.

    Attributes:
        key: The subscriber.
        state: Of its circuit.
        changed_at: When that state was entered.
        probe_at: While it is open: from when on one attempt may be made.
        probes: While it is open: probes that failed.
        ramped: While it ramps: minutes so far.
        failing_since: When the first failure since the last success was; None after a success.
        warnings: How many warnings were given since then.
        warned_at: When the last of them was given.
        version: Raised by one with each change; 0 means never stored. Guards every write.
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
    version: int = 0

    @property
    def well(self) -> bool:
        """Nothing is to be changed by a success."""
        return self.state is not CircuitState.OPEN and self.failing_since is None

    @property
    def release(self) -> int:
        """How many of those that waited may be sent in the next minute of the ramp."""
        return min(MOST_RELEASED, FIRST_RELEASE << min(self.ramped, 20))


def claimed(health: Health, now: int, *, for_ms: int) -> Health | None:
    """The health of an open circuit with its probe taken by whoever stores it; None when none is due.

    Args:
        health: As stored.
        now: Epoch milliseconds.
        for_ms: Milliseconds after which another one may be made, should nothing be heard of this one.
    """
    if health.state is not CircuitState.OPEN or now < health.probe_at:
        return None
    return replace(health, probe_at=now + for_ms, version=health.version + 1)


def failed(health: Health, circuit: Circuit, now: int, *, tripped: bool, probe: bool) -> Health:
    """The health after a failure; the very same one when it says nothing new.

    Args:
        health: As stored.
        circuit: Its settings.
        now: When the failure was, epoch milliseconds.
        tripped: It was one too many.
        probe: It was the probe.
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
    """The health after a success; the very same one when it says nothing new."""
    if health.well:
        return health
    after = replace(health, failing_since=None, warnings=0, warned_at=0, version=health.version + 1)
    if health.state is CircuitState.OPEN:
        after = replace(after, state=CircuitState.RAMPING, changed_at=now, probe_at=0, probes=0, ramped=0)
    return after


def due_warning(health: Health, circuit: Circuit, now: int) -> int | None:
    """How many percent of its time a failing subscriber has used up, if a warning of it is due;
    100 if it is to be disabled.

    Args:
        health: As stored, or as it becomes.
        circuit: Its settings.
        now: When the last failure was, epoch milliseconds.
    """
    if health.failing_since is None or circuit.disable_after_s is None:
        return None
    whole_ms = circuit.disable_after_s * 1000
    percent = (*WARNINGS, 100)[health.warnings]
    too_soon = health.warnings and now - health.warned_at < whole_ms // 10
    return percent if (now - health.failing_since) * 100 >= percent * whole_ms and not too_soon else None


def warned(health: Health, now: int) -> Health:
    """The health after the due warning was given; after the last one the subscriber is disabled,
    and nothing is known of it any more.
    """
    if health.warnings == len(WARNINGS):
        return reset(health, now)
    return replace(health, warnings=health.warnings + 1, warned_at=now, version=health.version + 1)


def reset(health: Health, now: int) -> Health:
    """The health of a subscriber that starts anew: it was disabled or enabled, or has another URL.

    What waits on it is looked at soon.
    """
    return Health(key=health.key, changed_at=now, version=health.version + 1)


def ramped(health: Health) -> Health:
    """The health after a minute's share of those that waited was sent."""
    return replace(health, ramped=health.ramped + 1, version=health.version + 1)


def drained(health: Health, now: int) -> Health:
    """The health of a ramping circuit when nothing waits any more."""
    return replace(health, state=CircuitState.CLOSED, changed_at=now, ramped=0, version=health.version + 1)
