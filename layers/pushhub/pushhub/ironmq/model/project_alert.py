"""Alerts that a project sets: what they measure, when they fire and when they are resolved. Pure.

Not to be confused with the alerts of pull queues (:class:`pushhub.engine.model.queue.Alert`), which IronMQ defines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from pushhub.engine.model.activity import HOUR_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

ALERT_QUEUES = "ironmq/alerts/"
"""Prefix of the internal queues of alerts; the rest is the alert's id. Names of owners' queues never hold a slash."""

_ID = re.compile("[0-9a-f]{12}")

MINUTE_MS = 60_000

HOURS_READ = 3
"""How many hours of counts a window may need, with the current one."""

LEAST_ATTEMPTS = 5
"""A failure rate of fewer attempts fires nothing."""

CALM_MS = 600_000
"""How long a value stays below its threshold before the alert is resolved: so an alert speaks at most twice in that
time, however much its value varies.
"""

SAMPLES = 12
"""A window is measured in so many steps, but in minutes at least."""


class Measure(StrEnum):
    """What an alert watches."""

    FAILURE_RATE = "failure_rate"
    """Percent of the attempts in the window that failed."""
    GIVEN_UP = "given_up"
    """Deliveries that were given up in the window."""
    OLDEST_WAITING = "oldest_waiting"
    """Seconds since the oldest message that waits in a queue was accepted."""


class Format(StrEnum):
    """How an alert is written."""

    JSON = "json"
    SLACK = "slack"


class AlertEvent(StrEnum):
    """What a notification tells."""

    FIRING = "firing"
    RESOLVED = "resolved"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What was counted in some time."""

    attempts: int = 0
    failed: int = 0
    given_up: int = 0

    def __add__(self, other: Counts) -> Counts:
        """Both together."""
        return Counts(
            attempts=self.attempts + other.attempts,
            failed=self.failed + other.failed,
            given_up=self.given_up + other.given_up,
        )

    def __sub__(self, other: Counts) -> Counts:
        """What is left; nothing is negative."""
        return Counts(
            attempts=max(0, self.attempts - other.attempts),
            failed=max(0, self.failed - other.failed),
            given_up=max(0, self.given_up - other.given_up),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The counts of an hour as they were at a time within it.

    Attributes:
        counts: Of the hour, up to then.
    """

    at: int
    counts: Counts

    @property
    def hour(self) -> int:
        """Start of its hour, epoch milliseconds."""
        return self.at - self.at % HOUR_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertNotification:
    """Something to be told.

    Attributes:
        number: Counts the notifications of an alert, from 1.
    """

    number: int
    happened: AlertEvent
    at: int
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertState:
    """What is known of an alert.

    Attributes:
        firing_since: Epoch milliseconds; 0 while it does not fire.
        calm_since: While it fires: since when its value has been below the threshold; 0 while it is not.
        value: The last value; None before the first.
        samples: Counts at earlier times, oldest first, as far as the window needs them.
        notified: Number of notifications so far.
        pending: The last one, until it is posted.
    """

    firing_since: int = 0
    calm_since: int = 0
    value: int | None = None
    samples: tuple[Sample, ...] = ()
    notified: int = 0
    pending: AlertNotification | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSettings:
    """What an owner sets.

    Attributes:
        threshold: The value from which it fires.
        minutes: The window of the measures that count something.
        queue: The queue it watches; empty for the whole project, or for a subscriber that is named by its id.
        subscriber: The subscriber it watches: by name with a queue, by id without; empty for all.
        url: Where notifications go.
    """

    name: str
    measure: Measure
    threshold: int
    minutes: int
    queue: str = ""
    subscriber: str = ""
    url: str
    format: Format


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectAlert(AlertSettings):
    """An alert of a project.

    Attributes:
        alert_id: 12 hex characters.
        state: What is known of it.
        version: Incremented by each write.
    """

    project: str
    alert_id: str
    created_at: int
    state: AlertState = field(default_factory=AlertState)
    version: int = 0


def is_alert_id(text: str) -> bool:
    """Whether an alert could have this id."""
    return _ID.fullmatch(text) is not None


def sampled(alert: ProjectAlert, hours: Mapping[int, Counts], now: int) -> tuple[ProjectAlert, Counts]:
    """What was counted in the alert's window, and the alert with what it has to remember for the next one.

    The window begins where the alert looked last before it: up to a twelfth, or a minute, earlier than asked for. The
    first call, when an alert is made, counts nothing. What is unchanged is not remembered, so that nothing is written
    in quiet times.

    Args:
        hours: Counts by the start of their hour: the current one and those before it, :data:`HOURS_READ` together.
    """
    present = Sample(at=now, counts=hours.get(now - now % HOUR_MS, Counts()))
    known = alert.state.samples
    if not known:
        return replace(alert, state=replace(alert.state, samples=(present,))), Counts()
    window_ms = alert.minutes * MINUTE_MS
    past = [each for each in known if each.at <= now - window_ms]
    kept = (*past[-1:], *(each for each in known if each.at > now - window_ms))
    step_ms = max(MINUTE_MS, window_ms // SAMPLES) - MINUTE_MS // 2
    if now - kept[-1].at >= step_ms and _since(kept[-1], hours) != Counts():
        kept = (*kept, present)
    return replace(alert, state=replace(alert.state, samples=kept)), _since(kept[0], hours)


def _since(sample: Sample, hours: Mapping[int, Counts]) -> Counts:
    later = sum((counts for hour, counts in hours.items() if hour > sample.hour), Counts())
    return later + (hours.get(sample.hour, Counts()) - sample.counts)


def value_of(measure: Measure, counts: Counts) -> int | None:
    """The value of a measure that counts something; None when too little was counted to say."""
    if measure is Measure.GIVEN_UP:
        return counts.given_up
    if not counts.failed:
        return 0
    return None if counts.attempts < LEAST_ATTEMPTS else 100 * counts.failed // counts.attempts


def judged(alert: ProjectAlert, value: int | None, now: int) -> ProjectAlert:
    """The alert after a look, with a notification if it begins to fire or is resolved.

    Args:
        value: Its value now; None when nothing can be said, which changes nothing.
    """
    state = alert.state
    if value is None:
        return alert
    state = replace(state, value=value)
    if value >= alert.threshold:
        state = replace(state, calm_since=0)
        if not state.firing_since:
            state = _telling(replace(state, firing_since=now), AlertEvent.FIRING, value, now)
    elif state.firing_since:
        state = replace(state, calm_since=state.calm_since or now)
        if now - state.calm_since >= CALM_MS:
            state = _telling(replace(state, firing_since=0, calm_since=0), AlertEvent.RESOLVED, value, now)
    return replace(alert, state=state)


def to_test(alert: ProjectAlert, now: int) -> ProjectAlert:
    """The alert with a notification that says that it is a test."""
    return replace(alert, state=_telling(alert.state, AlertEvent.TEST, alert.state.value or 0, now))


def _telling(state: AlertState, happened: AlertEvent, value: int, now: int) -> AlertState:
    number = state.notified + 1
    return replace(
        state, notified=number, pending=AlertNotification(number=number, happened=happened, at=now, value=value)
    )
