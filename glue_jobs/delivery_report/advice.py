"""Advice on retry settings per queue: what they would have saved, and what they would have cost.

Every setting that the protocol supports is tried on the queue's own deliveries (:mod:`.replay`). An advice is given
only if the present setting, replayed, gives what really happened, and if the figures of the suggested one hardly depend
on what cannot be known. Otherwise there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from pushhub.engine.model.backoff import Exponential, FixedDelay

from .replay import Assumption, Evidence, Replayed, Setting, Subscriber

LEAST: Final = 20
"""Minimum number of deliveries that failed at first for an advice."""

WORTH: Final = 100
"""How many tries one more delivery may cost."""

PATIENCE: Final = 1.25
"""Half of those that recover must not wait longer than this many times what they do now ..."""

PATIENCE_S: Final = 5.0
"""... and this many seconds."""

LITTLE: Final = 0.02
"""A change that is worth less than this share of today's retries and losses, poison aside, is not suggested."""

TOLERANCE: Final = 0.1
"""How far each figure of an advice may be from the truth, as a share of it."""

NEGLIGIBLE: Final = 0.01
"""... or, where that is more, as a share of today's tries or of the deliveries that failed at first."""

MARGIN: Final = 0.7
"""Share of that which all that cannot be known may take up."""

CONSIDERED: Final = 12
"""So many of the best settings are examined closely."""

RETRIES: Final = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100)
DELAYS_S: Final = (
    *(3, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900),
    *(1_800, 3_600, 7_200, 14_400, 28_800, 86_400),
)
BASES_S: Final = (1, 5, 10, 15, 30, 60, 120, 300)
CAPS_S: Final = (300, 900, 1_800, 3_600, 7_200, 14_400, 43_200)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The results of a setting for the deliveries whose first try failed.

    Attributes:
        tries: Tries after the first.
        delivered: Deliveries that succeed.
        doubt: Standard deviation of ``delivered``.
        tries_doubt: Standard deviation of ``tries``.
        half_s: Seconds after which half of those that succeed today have succeeded.
        span_s: Seconds after which the last try is made.
    """

    tries: float
    delivered: float
    doubt: float
    tries_doubt: float
    half_s: float
    span_s: float

    def worth_more_than(self, other: Outcome) -> float:
        """How much better it is than another one, in tries."""
        return (other.tries - self.tries) + WORTH * (self.delivered - other.delivered)


class History:
    """What a queue's subscribers went through."""

    def __init__(self, subscribers: Sequence[Evidence], now: Setting) -> None:
        self._subscribers = [Subscriber(each) for each in subscribers]
        self.now = now
        self.failures = sum(each.failures for each in self._subscribers)
        self.retries = sum(each.retries for each in self._subscribers)
        self.lost = sum(each.lost for each in self._subscribers)
        self.poisoned = sum(each.poisoned for each in self._subscribers)
        self._recovered = self.failures - self.lost

    def outcomes(self, setting: Setting, assumption: Assumption = Assumption.LIKELIEST) -> list[Outcome]:
        """The outcome of a setting with 0, 1, 2 ... retries, up to its own number."""
        of = [each.replayed(setting, assumption) for each in self._subscribers]
        together = of[0]
        for each in of[1:]:
            together = together + each
        return [self._outcome(together, number) for number in range(len(together.tries))]

    def outcome(self, setting: Setting, assumption: Assumption = Assumption.LIKELIEST) -> Outcome:
        """The outcome of a setting."""
        return self.outcomes(setting, assumption)[-1]

    def understood(self) -> bool:
        """Whether the present setting, replayed, gives what really happened."""
        made = self.outcome(self.now)
        return abs(made.tries - self.retries) <= max(self.retries * TOLERANCE / 2, 3) and abs(
            made.delivered - self._recovered
        ) <= max(self.failures * NEGLIGIBLE, 2)

    def _outcome(self, of: Replayed, number: int) -> Outcome:
        half = self._recovered / 2
        reached = np.nonzero(of.delivered[: number + 1] >= half)[0]
        return Outcome(
            tries=float(of.tries[number]),
            delivered=float(of.delivered[number]),
            doubt=math.sqrt(float(of.doubt[number])),
            tries_doubt=math.sqrt(float(of.tries_doubt[number])),
            half_s=float(of.waits_s[reached[0]]) if len(reached) else math.inf,
            span_s=float(of.waits_s[number]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A setting that would have served better.

    Attributes:
        tries_saved: Tries that it would have saved, negative those it would have cost.
        deliveries_saved: Deliveries that would have succeeded besides, negative those that would not.
    """

    setting: Setting
    tries_saved: float
    deliveries_saved: float


def suggested(history: History) -> Suggestion | None:
    """The best setting of the same protocol; None if no other is clearly better or the figures are not certain.

    A delivery is worth :data:`WORTH` tries; those that recover today must not wait much longer. Giving up sooner is not
    suggested where an outage cost deliveries.
    """
    if not history.understood():
        return None
    today = history.outcome(history.now)
    least = LITTLE * (today.tries + WORTH * max(0.0, history.lost - history.poisoned))
    longest = today.half_s * PATIENCE + PATIENCE_S
    found = [
        (made.worth_more_than(today), -order, setting)
        for order, (setting, made) in enumerate(_tried(history))
        if made.half_s <= longest and made.worth_more_than(today) > max(1.0, least)
    ]
    for _, _, setting in sorted(found, key=lambda each: each[:2], reverse=True)[:CONSIDERED]:
        certain = _certain(history, setting)
        if certain is not None:
            return certain
    return None


def _certain(history: History, setting: Setting) -> Suggestion | None:
    """The suggestion of a setting, if it is right whatever is assumed."""
    now, made = history.outcome(history.now), history.outcome(setting)
    if made.span_s < now.span_s and history.lost - history.poisoned > max(1.0, NEGLIGIBLE * history.lost):
        return None
    tries, deliveries = now.tries - made.tries, made.delivered - now.delivered
    tries_off = MARGIN * max(TOLERANCE * abs(tries), NEGLIGIBLE * now.tries)
    deliveries_off = MARGIN * max(TOLERANCE * abs(deliveries), NEGLIGIBLE * history.failures)
    if 2 * made.doubt > deliveries_off or 2 * made.tries_doubt > tries_off:
        return None
    for assumption in Assumption:
        # What happened under the present setting is known, whatever is assumed.
        other = history.outcome(setting, assumption)
        if abs(other.tries - made.tries) > tries_off or abs(other.delivered - made.delivered) > deliveries_off:
            return None
    return Suggestion(setting=setting, tries_saved=tries, deliveries_saved=deliveries)


def _tried(history: History) -> Iterator[tuple[Setting, Outcome]]:
    """Settings of the same protocol with their outcomes; the smallest change first."""
    now = history.now
    for setting in _others(now):
        outcomes = history.outcomes(setting)
        if isinstance(setting, FixedDelay):
            for retries in sorted({*RETRIES, now.retries if isinstance(now, FixedDelay) else 0}):
                yield replace(setting, retries=retries), outcomes[min(retries, len(outcomes) - 1)]
        elif setting.max_attempts is None:
            yield setting, outcomes[-1]
        else:
            for retries in RETRIES:
                yield replace(setting, max_attempts=retries + 1), outcomes[min(retries, len(outcomes) - 1)]


def _others(now: Setting) -> Iterable[Setting]:
    """Settings of the same protocol, each with the largest number of tries."""
    if isinstance(now, FixedDelay):
        delays = sorted({*DELAYS_S, now.delay_s}, key=lambda delay: (delay != now.delay_s, delay))
        return [FixedDelay(retries=RETRIES[-1], delay_s=delay) for delay in delays]
    most = None if now.max_attempts is None else RETRIES[-1] + 1
    return [
        replace(now, base_s=base, cap_s=cap, max_attempts=most)
        for base in sorted({*BASES_S, now.base_s}, key=lambda base: (base != now.base_s, base))
        for cap in sorted({*CAPS_S, now.cap_s}, key=lambda cap: (cap != now.cap_s, cap))
        if cap >= base
    ]


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
        return Exponential(base_s=base, cap_s=max(3_600, longest), max_attempts=seen["tries_max"], holds=True)
    if dialect != "raw" or seen["tries_max"] is None or seen["wait_ms"] is None:
        # Webhooks are tried after a published list of waits, which owners cannot change.
        return None
    return FixedDelay(retries=max(0, seen["tries_max"] - 1), delay_s=max(1, round(seen["wait_ms"] / 1000)))


def advice(queue: Mapping[str, Any], subscribers: Sequence[Evidence], usd_per_try: float) -> dict[str, Any] | None:
    """The row of a queue; None if there is too little data.

    Args:
        queue: Its ``project``, ``queue``, ``dialect``, ``given_up`` and what :func:`setting_in_use` needs.
    """
    now = setting_in_use(queue["dialect"], queue)
    if now is None or not subscribers:
        return None
    history = History(subscribers, now)
    if history.failures < LEAST:
        return None
    better = suggested(history) or Suggestion(setting=now, tries_saved=0, deliveries_saved=0)
    values = {f"{name}_now": value for name, value in _values(now).items()} | _values(better.setting)
    fewer = round(better.tries_saved)
    return {
        **{name: queue[name] for name in ("project", "queue", "dialect", "given_up")},
        **values,
        "failed_first": round(history.failures),
        "change": better.setting != now,
        "tries_saved": fewer,
        "deliveries_saved": round(better.deliveries_saved),
        "usd_saved": fewer * usd_per_try,
    }


def _values(setting: Setting) -> dict[str, int | None]:
    """The protocol's names and their values."""
    if isinstance(setting, FixedDelay):
        return {"retries": setting.retries, "retries_delay": setting.delay_s}
    return {
        "retry_base": round(setting.base_s),
        "retry_cap": round(setting.cap_s),
        "max_attempts": setting.max_attempts,
    }


def in_words(values: Mapping[str, Any], suffix: str = "") -> str:
    """A setting as it is set: ``retries 3, retries_delay 60``.

    Args:
        values: A row of :func:`advice`.
        suffix: ``_now`` for the setting in use.
    """
    names = ("retries", "retries_delay") if values["dialect"] != "hub" else ("retry_base", "retry_cap", "max_attempts")
    return ", ".join(f"{name} {'none' if values[name + suffix] is None else values[name + suffix]}" for name in names)
