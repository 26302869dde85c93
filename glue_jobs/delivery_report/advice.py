"""Advice on retry settings per queue: what they would have saved, and what they would have cost.

Based on the deliveries whose first try failed, including those given up. How many succeed by what time is estimated
from both (product-limit estimate: a delivery given up did not succeed until then), and each setting that the protocol
supports is compared with it. Two things cannot be known: whether a try between today's tries would
have succeeded (so quicker retries are never suggested), and what comes after today's last try, which is
extrapolated at the rate of the last half, and called an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

LEAST: Final = 20
"""Minimum number of deliveries that failed at first for an advice."""

WORTH: Final = 100
"""How many tries one more delivery may cost."""

PATIENCE: Final = 1.25
"""Half of those that recover must not wait longer than this many times what they do now ..."""

PATIENCE_S: Final = 5.0
"""... and this many seconds."""

BEYOND: Final = 4.0
"""How far beyond the observed time estimates go, as a multiple of it."""

LATE_SHARE: Final = 0.1
LATE_S: Final = 2.0
"""How much later a try comes than its setting says: a share of the wait, and seconds."""

LITTLE: Final = 0.01
"""A change that saves less than this share of the retries, and no delivery, is not suggested."""

LONGEST_S: Final = 7 * 86_400
MOST_TRIES: Final = 200
"""Where endless settings are cut off."""

RETRIES: Final = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100)
DELAYS_S: Final = (
    3,
    5,
    10,
    15,
    20,
    30,
    45,
    60,
    90,
    120,
    180,
    300,
    600,
    900,
    1_800,
    3_600,
    7_200,
    14_400,
    28_800,
    86_400,
)
BASES_S: Final = (1, 5, 10, 15, 30, 60, 120, 300)
CAPS_S: Final = (300, 900, 1_800, 3_600, 7_200, 14_400, 43_200)


class Setting(Protocol):
    """Retry settings."""

    @property
    def times_s(self) -> list[float]:
        """Total seconds waited until each retry."""

    @property
    def values(self) -> dict[str, int | None]:
        """The protocol's names and their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedWaits:
    """``retries`` and ``retries_delay`` of a queue.

    Attributes:
        retries: Tries after the first.
        delay_s: Seconds between tries.
    """

    retries: int
    delay_s: int

    @property
    def times_s(self) -> list[float]:
        """Total seconds waited until each retry."""
        return [self.delay_s * (n + 1.0) for n in range(self.retries)]

    @property
    def values(self) -> dict[str, int | None]:
        """The protocol's names and their values."""
        return {"retries": self.retries, "retries_delay": self.delay_s}


@dataclass(frozen=True, slots=True, kw_only=True)
class DoublingWaits:
    """``retry_base``, ``retry_cap`` and ``max_attempts`` of a mapping.

    Attributes:
        base_s: Seconds of the first wait; each following one doubles.
        cap_s: Seconds of the longest wait.
        max_attempts: Tries in all, None for no end.
    """

    base_s: int
    cap_s: int
    max_attempts: int | None

    @property
    def times_s(self) -> list[float]:
        """Total seconds waited until each retry."""
        most = MOST_TRIES if self.max_attempts is None else self.max_attempts - 1
        times, at = [], 0.0
        for n in range(most):
            at += min(self.cap_s, self.base_s * 2.0 ** min(n, 40))
            if at > LONGEST_S:
                break
            times.append(at)
        return times

    @property
    def values(self) -> dict[str, int | None]:
        """The protocol's names and their values."""
        return {"retry_base": self.base_s, "retry_cap": self.cap_s, "max_attempts": self.max_attempts}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Deliveries of a queue whose first try failed, grouped by their outcome.

    Attributes:
        waited_s: Total seconds waited before the last try.
        won: Whether that try succeeded; otherwise none did until then.
        n: How many.
    """

    waited_s: float
    won: bool
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The results of a setting for the deliveries whose first try failed.

    Attributes:
        attempts: Tries after the first.
        lost: Deliveries that never succeed.
        half_s: Seconds after which half of those that succeed now have succeeded.
    """

    attempts: float
    lost: float
    half_s: float


class Course:
    """The share of deliveries that have not yet succeeded after a given wait.

    Args:
        failed: Deliveries whose first try failed.
    """

    def __init__(self, failed: Sequence[Failed]) -> None:
        self.count = sum(each.n for each in failed)
        # A try comes a little later than its setting says; what counts is the setting, not the clock.
        meant = [(max(0.0, (each.waited_s - LATE_S) / (1 + LATE_SHARE)), each) for each in failed]
        self._end_s = max(each.waited_s for each in failed)
        self._steps: list[tuple[float, float]] = [(0.0, 1.0)]
        left = 1.0
        for at in sorted({at for at, each in meant if each.won}):
            at_risk = sum(each.n for other, each in meant if other >= at)
            taken = sum(each.n for other, each in meant if other == at and each.won)
            left *= 1 - taken / at_risk
            self._steps.append((at, left))
        middle = self._end_s / 2
        taken = sum(each.n for at, each in meant if each.won and at > middle)
        exposed = sum(each.n * (at - middle) for at, each in meant if at > middle)
        self._rate = taken / exposed if exposed else 0.0

    def left(self, at_s: float) -> float:
        """The share that has not yet succeeded.

        Args:
            at_s: Seconds waited.
        """
        known = min(at_s, self._end_s)
        left = next(share for at, share in reversed(self._steps) if at <= known)
        further = min(at_s, self._end_s * BEYOND) - self._end_s
        return left * math.exp(-self._rate * further) if further > 0 else left

    def outcome(self, setting: Setting, half_of: float | None = None) -> Outcome:
        """The results of the deliveries under a setting.

        Args:
            setting: The setting.
            half_of: The share whose half is timed; by default that which succeeds with this setting.
        """
        shares = [1.0, *(self.left(at) for at in setting.times_s)]
        attempts = sum(shares[:-1])
        half = (1 - shares[-1] if half_of is None else half_of) / 2
        within = (at for at, share in zip([0.0, *setting.times_s], shares, strict=True) if 1 - share >= half)
        return Outcome(
            attempts=self.count * attempts,
            lost=self.count * shares[-1],
            half_s=next(within, math.inf) if half > 0 else 0.0,
        )


def suggested(course: Course, now: Setting) -> Setting:
    """The best setting of the same protocol, or the present one if no other is clearly better.

    A delivery is worth :data:`WORTH` tries; those that recover today must not wait much longer.

    Args:
        course: Of the queue's deliveries.
        now: The present setting.
    """
    today = course.outcome(now)
    share = 1 - today.lost / course.count
    longest = today.half_s * PATIENCE + PATIENCE_S
    best, gain = now, max(1.0, today.attempts * LITTLE)
    for each in _others(now):
        made = course.outcome(each, share)
        if made.half_s > longest:
            continue
        worth = (today.attempts - made.attempts) + WORTH * (today.lost - made.lost)
        if worth > gain * (1 + 1e-9):
            best, gain = each, worth
    return best


def _others(now: Setting) -> Iterable[Setting]:
    """Settings of the same protocol; of equally good ones, the smallest change first."""
    if isinstance(now, FixedWaits):
        delays = sorted({*DELAYS_S, now.delay_s}, key=lambda delay: (delay != now.delay_s, delay))
        return [
            FixedWaits(retries=retries, delay_s=delay)
            for delay in delays
            for retries in sorted({*RETRIES, now.retries})
        ]
    if isinstance(now, DoublingWaits):
        tries = (
            [now.max_attempts]
            if now.max_attempts is None
            else sorted({*(each + 1 for each in RETRIES), now.max_attempts})
        )
        return [
            DoublingWaits(base_s=base, cap_s=cap, max_attempts=most)
            for base in sorted({*BASES_S, now.base_s})
            for cap in sorted({*CAPS_S, now.cap_s})
            for most in tries
            if cap >= base
        ]
    return []


def setting_in_use(dialect: str, seen: Mapping[str, Any]) -> Setting | None:
    """The setting with which a queue's tries were made; None if they do not show it.

    Args:
        dialect: The protocol of its subscribers.
        seen: ``tries_max``, and of the waits after failed tries, in milliseconds: ``wait_ms`` (the median),
            ``first_wait_ms`` (the shortest after a first try) and ``longest_wait_ms``.
    """
    if dialect == "hub":
        if seen["first_wait_ms"] is None:
            return None
        base, longest = max(1, seen["first_wait_ms"] // 1000), round((seen["longest_wait_ms"] or 0) / 1000)
        # Until waits reach it, nobody can see the cap; 3600 is the protocol's.
        return DoublingWaits(base_s=base, cap_s=max(3_600, longest), max_attempts=seen["tries_max"])
    if dialect != "raw" or seen["tries_max"] is None or seen["wait_ms"] is None:
        # Webhooks are tried after a published list of waits, which owners cannot change.
        return None
    return FixedWaits(retries=max(0, seen["tries_max"] - 1), delay_s=max(1, round(seen["wait_ms"] / 1000)))


def advice(queue: Mapping[str, Any], failed: Sequence[Failed], usd_per_try: float) -> dict[str, Any] | None:
    """The row of a queue; None if there is too little data.

    Args:
        queue: Its ``project``, ``queue``, ``dialect``, ``given_up`` and what :func:`setting_in_use` needs.
        failed: Its deliveries whose first try failed.
        usd_per_try: What a try costs.
    """
    now = setting_in_use(queue["dialect"], queue)
    if now is None or sum(each.n for each in failed) < LEAST:
        return None
    course = Course(failed)
    better = suggested(course, now)
    before, after = course.outcome(now), course.outcome(better)
    values = {f"{name}_now": value for name, value in now.values.items()} | dict(better.values)
    fewer = round(before.attempts - after.attempts)
    return {
        **{name: queue[name] for name in ("project", "queue", "dialect", "given_up")},
        **values,
        "failed_first": course.count,
        "change": better != now,
        "tries_saved": fewer,
        "deliveries_saved": round(before.lost - after.lost),
        "usd_saved": fewer * usd_per_try,
    }


def in_words(values: Mapping[str, Any], suffix: str = "") -> str:
    """A setting as it is set: ``retries 3, retries_delay 60``.

    Args:
        values: A row of :func:`advice`.
        suffix: ``_now`` for the setting in use.
    """
    names = ("retries", "retries_delay") if values["dialect"] != "hub" else ("retry_base", "retry_cap", "max_attempts")
    return ", ".join(f"{name} {'none' if values[name + suffix] is None else values[name + suffix]}" for name in names)
