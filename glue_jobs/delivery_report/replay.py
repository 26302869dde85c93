"""What another retry policy would have made of a subscriber's own deliveries, message by message.

The attempts of a subscriber say when it answered and when it did not. Messages that failed while others succeeded are
told from times at which everything failed (:func:`poison_shares`): another policy saves the latter only. What no
attempt shows, a time between a failure and a success, or whether a message that failed alone was at fault itself, is
assumed both for and against, so every figure has a range.

Waits are the engine's own (``pushhub.engine.model.backoff``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pushhub.engine.model.backoff import Exponential, FixedDelay

__all__ = ["Assumption", "Evidence", "Life", "Replayed", "Setting", "Subscriber"]

Setting = FixedDelay | Exponential
"""Retry policies that an owner can change."""

Floats = NDArray[np.float64]
Times = NDArray[np.int64]

MOST_TRIES: Final = 2_500
"""More attempts than these do not fit into a week."""

JITTERS: Final = 8
"""Different waits after the same try that a policy with jitter is replayed with."""

_NEAR: Final = 8
"""Other attempts that tell how a subscriber did at a time."""
_FLIPS: Final = 4
"""So many changes among twice as many attempts are chance, not outages."""
_ENOUGH: Final = 1e-3
"""Chance of being undelivered from which on a delivery is no longer replayed."""
_EACH: Final = 101
"""Attempts that are replayed one by one even if nothing can come of them."""
_APART: Final = 1 << 42
"""Keeps the times of different deliveries apart in one list; more than any time in milliseconds."""
_MOMENT_MS: Final = 1_000
"""Attempts of a delivery so close to each other are the same."""
_RARE: Final = 1e-3
"""How rarely a delivery is in an outage that nobody else notices, at least."""
_BAD_LUCK: Final = 0.5
"""From this chance on, failures prove nothing against a delivery."""
_ROUNDS: Final = 50
"""Rounds after which the estimate of poison has settled."""
_LIKELY: Final = 0.5
_SURE: Final = 0.05
"""Up to this chance of the opposite, a message counts as poison, or as none."""


class Assumption(Enum):
    """What is assumed of all that the attempts do not show.

    Its value says whether doubtful messages are poison (None: the likelier), and how much of the time between a failure
    and a success the subscriber was well (None: changed at any moment with the same chance).
    """

    LIKELIEST = (None, None)
    WORST = (True, 0.0)
    BEST = (False, 1.0)
    POISON_AND_WELL = (True, 1.0)
    NO_POISON_AND_SICK = (False, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A delivery whose first attempt failed. Times in epoch milliseconds.

    Attributes:
        started: When each attempt began.
        finished: When each ended.
        won: Whether the last one succeeded; all others failed.
        expires: When the message expired, or the report's days ended, if that was earlier.
    """

    started: Sequence[int]
    finished: Sequence[int]
    won: bool
    expires: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The attempts of a subscriber.

    Attributes:
        lives: Deliveries whose first attempt failed, or some of them, drawn by chance.
        recovered: How many there are in all that succeeded later.
        lost: How many in all that did not.
        well: Moments at which attempts of the same drawn share of deliveries succeeded, rising.
        won: How many attempts succeeded in all.
        lag_ms: How much later an attempt begins than its policy says.
    """

    lives: Sequence[Life]
    recovered: int
    lost: int
    well: Times
    won: int
    lag_ms: int

    def weights(self) -> Floats:
        """How many deliveries each life stands for."""
        won = np.array([each.won for each in self.lives])
        drawn = int(won.sum())
        return np.where(won, self.recovered / max(1, drawn), self.lost / max(1, len(won) - drawn))


@dataclass(frozen=True, slots=True)
class Replayed:
    """Results of a policy by the number of attempts it allows; the first number is that of no retries.

    Attributes:
        tries: Attempts after the first.
        delivered: Deliveries that succeeded.
        doubt: Variance of ``delivered``: what chance leaves open even if all assumptions hold.
        tries_doubt: The same of ``tries``.
        waits_s: Seconds from the end of the first attempt to the last allowed one, in the middle.
    """

    tries: Floats
    delivered: Floats
    doubt: Floats
    tries_doubt: Floats
    waits_s: Floats

    def __add__(self, other: Replayed) -> Replayed:
        """Of two subscribers together."""
        size = max(len(self.tries), len(other.tries))

        def longer(series: Floats) -> Floats:
            return np.pad(series, (0, size - len(series)), mode="edge")

        return Replayed(
            longer(self.tries) + longer(other.tries),
            longer(self.delivered) + longer(other.delivered),
            longer(self.doubt) + longer(other.doubt),
            longer(self.tries_doubt) + longer(other.tries_doubt),
            np.maximum(longer(self.waits_s), longer(other.waits_s)),
        )


class Subscriber:
    """A subscriber whose deliveries can be tried again under other policies.

    Args:
        evidence: Its attempts; at least one life.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        lives = evidence.lives
        self._weights = evidence.weights()
        self.failures = evidence.recovered + evidence.lost
        self.lost = evidence.lost
        made = np.array([len(each.started) - 1 for each in lives])
        self.retries = float((made * self._weights).sum())
        self._ended_at = np.array([each.finished[0] for each in lives], dtype=np.int64)
        self._expires = np.array([each.expires for each in lives], dtype=np.int64)
        self._poison, self._doubtful = poison_shares(evidence)
        self.poisoned = float((self._poison * self._weights).sum())
        self._attempts = np.array([len(each.started) for each in lives], dtype=np.int64)
        self._own = np.array(
            [number * _APART + begin for number, each in enumerate(lives) for begin in each.started], dtype=np.int64
        )
        self._own_won = np.array(
            [each.won and begin == each.started[-1] for each in lives for begin in each.started], dtype=bool
        )
        took = [end - begin for each in lives for begin, end in zip(each.started, each.finished, strict=True)]
        self._took_ms = int(np.median(took))
        self._timelines = {each: self._timeline(each) for each in Assumption}

    def replayed(self, policy: Setting, assumption: Assumption = Assumption.LIKELIEST) -> Replayed:
        """The results of a policy, whatever number of attempts it allows (see :class:`Replayed`).

        Args:
            policy: The policy; its number of attempts is the largest that is replayed.
        """
        line, poison = self._timelines[assumption]
        at, left, weights = self._ended_at.copy(), np.ones(len(self._ended_at)), self._weights
        alive = np.arange(len(at))
        spread = alive % JITTERS
        rows = [(0.0, 0.0, 0.0, 0.0, 0.0)]
        tries = delivered = varied = 0.0
        sound = 1 - poison
        for number in range(1, MOST_TRIES):
            waits = [policy.wait_ms(number, (each + 0.5) / JITTERS) for each in range(JITTERS)]
            if waits[0] is None:
                break
            begins = at[alive] + np.array(waits, dtype=np.int64)[spread[alive]] + self._evidence.lag_ms
            within = begins < self._expires[alive]
            alive, begins = alive[within], begins[within]
            if not len(alive):
                break
            chance = line.chance(begins, assumption.value[1])
            chance = self._known(alive, begins, chance)
            going_on = poison[alive] + sound[alive] * left[alive]
            tries += float((going_on * weights[alive]).sum())
            varied += float((going_on * (1 - going_on) * weights[alive] ** 2).sum())
            delivered += float((sound[alive] * left[alive] * chance * weights[alive]).sum())
            left[alive] *= 1 - chance
            waited = float(np.median(begins - self._ended_at[alive])) / 1000
            at[alive] = begins + self._took_ms
            taken = sound * (1 - left)
            rows.append((tries, delivered, float((taken * (1 - taken) * weights**2).sum()), varied, waited))
            alive = alive[(left[alive] > _ENOUGH) | (poison[alive] > _ENOUGH)]
            if number >= _EACH and (sound[alive] * left[alive] < _SURE).all():
                # What will never succeed is tried at the longest wait until its time is over.
                step = max(each or 0 for each in waits) + self._evidence.lag_ms + self._took_ms
                more = np.maximum(0, self._expires[alive] - at[alive] - 1 + self._took_ms) // step
                rows.append((tries + float((more * weights[alive]).sum()), delivered, *rows[-1][2:]))
                break
        table = np.array(rows)
        return Replayed(table[:, 0], table[:, 1], table[:, 2], table[:, 3], table[:, 4])

    def _known(self, lives: Times, begins: Times, chance: Floats) -> Floats:
        """The chances of attempts, certain where a delivery was really tried at that moment."""
        own = self._own
        key = lives * _APART + begins
        right = np.minimum(np.searchsorted(own, key), len(own) - 1)
        left = np.maximum(right - 1, 0)
        nearest = np.where(np.abs(own[left] - key) < np.abs(own[right] - key), left, right)
        same = np.abs(own[nearest] - key) <= max(_MOMENT_MS, self._evidence.lag_ms)
        return np.where(same, self._own_won[nearest].astype(float), chance)

    def _timeline(self, assumption: Assumption) -> tuple[_Timeline, Floats]:
        """What is known of the subscriber at which time, and the chance that each life is poison."""
        guilty = assumption.value[0]
        poison = self._poison if guilty is None else np.where(self._doubtful, float(guilty), self._poison)
        owned = np.repeat(poison < _LIKELY, self._attempts)
        well = self._evidence.well
        times = np.concatenate([self._own[owned] % _APART, well])
        succeeded = np.concatenate([self._own_won[owned], np.ones(len(well), dtype=bool)])
        owners = np.concatenate([self._own[owned] // _APART, np.full(len(well), -1)])
        order = np.argsort(times, kind="stable")
        return _Timeline(times[order], succeeded[order], owners[order]), poison


class _Timeline:
    """How a subscriber did, from moments at which that is known.

    Args:
        times: The moments, rising.
        well: Whether an attempt succeeded then.
        owners: Whose attempt it was; -1 for any.
    """

    def __init__(self, times: Times, well: NDArray[np.bool_], owners: Times) -> None:
        self._times, self._well = times, well
        flips = np.concatenate([[0], np.cumsum(well[1:] != well[:-1])]) if len(times) else np.zeros(1, dtype=np.int64)
        at = np.arange(max(0, len(times) - 1))
        around = flips[np.minimum(at + _NEAR, len(flips) - 1)] - flips[np.maximum(at - _NEAR + 1, 0)]
        # A failure between two successes of others; where these are many, and few come in twos, they are chance.
        alone = np.zeros(len(times), dtype=bool)
        alone[1:-1] = ~well[1:-1] & well[:-2] & well[2:]
        runs = np.count_nonzero(well[:-1] & ~well[1:]) - np.count_nonzero(alone)
        usual = np.count_nonzero(~well) / max(1, len(well))
        by_chance = runs < (0.1 + 2 * usual) * np.count_nonzero(alone)
        erratic = around >= _FLIPS
        if by_chance:
            erratic |= alone[:-1] | alone[1:]
        # Between two attempts of the same delivery, nobody else was asked.
        self._erratic = erratic & ~((owners[:-1] == owners[1:]) & (owners[1:] >= 0))

    def chance(self, at: Times, between: float | None) -> Floats:
        """The chance that an attempt succeeds at each of some moments.

        Args:
            at: The moments.
            between: The chance while it changes from sick to well or back; None: the closer it is to the moment when it
                was well, the likelier it is. Where attempts fail now and then by chance, nothing changes in between.
        """
        times, well = self._times, self._well
        if not len(times):
            return np.zeros(len(at))
        after = np.searchsorted(times, at)
        left, right = np.maximum(after - 1, 0), np.minimum(after, len(times) - 1)
        before, behind = well[left], well[right]
        passed = np.clip((at - times[left]) / np.maximum(times[right] - times[left], 1), 0.0, 1.0)
        likely = np.where(behind, passed, 1 - passed)
        if between is not None and len(self._erratic):
            likely = np.where(self._erratic[np.minimum(left, len(self._erratic) - 1)], likely, between)
        return np.where(before == behind, before.astype(float), likely)


def poison_shares(evidence: Evidence) -> tuple[Floats, NDArray[np.bool_]]:
    """The chance that each delivery is poison: that it fails whenever it is tried, though others succeed.

    And which of these chances hang on how common outages are that nobody else noticed, which is not known. In an outage
    that others noticed, poison is as common as ever.

    Those that succeeded in the end are none. The others fail for one of two reasons; how likely it is that they were
    merely unlucky follows from how others did around each of their attempts. An attempt tells something new only if
    another delivery succeeded since the one before: failures of one outage are one piece of evidence.
    """
    lives = evidence.lives
    never = ~np.array([each.won for each in lives])
    if not never.any():
        return np.zeros(len(lives)), never
    owner = np.array([n for n, each in enumerate(lives) for _ in each.started], dtype=np.int64)
    times = np.array([begin for each in lives for begin in each.started], dtype=np.int64)
    won = np.zeros(len(times), dtype=bool)
    won[np.cumsum([len(each.started) for each in lives]) - 1] = [each.won for each in lives]
    count = len(evidence.well)
    every = np.concatenate([times, evidence.well])
    order = np.argsort(every, kind="stable")
    succeeded = np.concatenate([np.zeros(len(times)), np.ones(count)])
    place = np.empty(len(every), dtype=np.int64)
    place[order] = np.arange(len(every))
    wins = np.concatenate([[0.0], np.cumsum(succeeded[order])])
    own = place[: len(times)]
    # Evidence begins with the first attempt of a life, and anew with each before which another delivery succeeded.
    first = np.concatenate([[True], owner[1:] != owner[:-1]])
    since = wins[own] - wins[np.concatenate([[0], own[:-1]])]
    begins = np.nonzero((first | (since > 0)) & ~won)[0]
    ends = np.concatenate([begins[1:], [len(times)]]) - 1
    group = np.cumsum(np.isin(np.arange(len(times)), begins)) - 1
    low, high = np.maximum(own[begins] - _NEAR // 2, 0), np.minimum(own[ends] + _NEAR // 2 + 1, len(every))
    near_wins = wins[high] - wins[low]
    weights = evidence.weights()
    # Of deliveries and of successes the same share was drawn.
    relative = weights / weights.mean()
    everybody = float(evidence.won + evidence.lost)
    # How often deliveries that recovered had failed for half as long: nobody else noticed many of these outages.
    spans = np.array([each.started[-1] - each.started[0] for each in lives])
    lasting = np.sort(spans[~never])
    unnoticed = (len(lasting) - np.searchsorted(lasting, spans / 2)) * (evidence.recovered / max(1, len(lasting)))
    floor = np.clip(unnoticed / everybody, _RARE, 1.0)[owner[begins]]

    def settled(rarest: Floats) -> tuple[Floats, Floats]:
        """The chances of poison and of bad luck, given how rarely a delivery is in an outage of its own at least."""
        shares, unlucky, rate = np.where(never, 0.5, 0.0), np.ones(len(lives)), 0.01
        for _ in range(_ROUNDS):
            weight = np.concatenate([np.where(won, 0.0, (1 - shares[owner]) * relative[owner]), np.zeros(count)])
            fails = np.concatenate([[0.0], np.cumsum(weight[order])])
            its_own = np.bincount(group, weight[: len(times)], minlength=len(begins))
            near_fails = np.maximum(0.0, fails[high] - fails[low] - its_own)
            chance = near_wins / np.maximum(near_wins + near_fails, 1e-9)
            bad_luck = np.log(np.clip(1 - chance, rarest, 1.0))
            unlucky = np.exp(np.bincount(owner[begins], bad_luck, minlength=len(lives)))
            shares = np.where(never, rate / (rate + (1 - rate) * unlucky), 0.0)
            rate = float(np.clip((shares * weights).sum() / everybody, 1e-6, 0.5))
        return shares, unlucky

    (least, _), (most, unlucky) = settled(floor), settled(np.full(len(begins), _RARE))
    shares = (least + most) / 2
    # One piece of evidence is an outage that nobody else noticed as well as it is poison.
    single = (unlucky >= _RARE) & (unlucky < _BAD_LUCK)
    middling = (shares > _SURE) & (shares < 1 - _SURE) & (unlucky < _BAD_LUCK)
    return shares, never & (single | middling | (most - least > _SURE))
