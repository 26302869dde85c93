"""How right the advice on retries is: judged on simulated worlds whose truth is known.

A world is a subscriber for some days: when it is down, how it comes back, which messages it never takes, how many come
and how they are retried. The truth is had by trying *every* setting on the world itself, with arithmetic of this file's
own; the advice sees only attempts that were made under the present setting. The advice was made with other seeds than
those of the documented table.

    .venv-glue/bin/python -m bench.records_advice --seeds 1000 1200
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np
from glue_jobs.delivery_report.advice import (
    BASES_S,
    CAPS_S,
    DELAYS_S,
    NEGLIGIBLE,
    PATIENCE,
    PATIENCE_S,
    RETRIES,
    TOLERANCE,
    WORTH,
    History,
    suggested,
)
from glue_jobs.delivery_report.replay import Evidence, Life
from glue_jobs.delivery_report.retries import LIVES, WINS
from numpy.typing import NDArray

from bench.harness import Page, cells
from pushhub.engine.model.backoff import Exponential, FixedDelay

Floats = NDArray[np.float64]

HOUR = 3_600.0
KINDS = ("well", "blips", "half-day outage", "hour outages", "slow recovery", "errors by chance", "mixed")
RATES = (10, 60, 300, 1_000, 5_000)
POISON = (0.0, 0.01, 0.03, 0.1)
LIFE_S = 7 * 24 * HOUR
ENDLESS = 100_000
HELPFUL = 0.05
"""A silent advice is a miss if some setting had been worth this share of today's tries and losses, poison aside."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A retry setting in this file's own words: ``tries`` in all; waits double up to the cap if there is one."""

    tries: int
    wait_s: float
    cap_s: float | None = None

    def wait(self, number: int, jitter: Floats) -> Floats:
        """Seconds after failed try ``number``."""
        if self.cap_s is None:
            return np.full(len(jitter), self.wait_s)
        return np.minimum(self.cap_s, self.wait_s * 2.0 ** (number - 1) * (1 + 0.2 * jitter))


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is true. Times in seconds.

    Attributes:
        seed: Of all that is by chance in it.
        kind: What happens to the subscriber.
        rate: Messages an hour.
        poison: Share of messages that it never takes.
        days: How long messages come.
        down: Begin and end of each outage.
        ramp_s: Seconds from the end of an outage until all attempts succeed again.
        errors: Share of attempts that fail by chance.
        now: The present policy.
        fails_s: How long a failed attempt takes.
    """

    seed: int
    kind: str
    rate: float
    poison: float
    days: int
    down: tuple[tuple[float, float], ...]
    ramp_s: float
    errors: float
    now: Policy
    fails_s: float


@dataclass(slots=True)
class Truth:
    """What a policy does in a world.

    Attributes:
        tries: Attempts after the first.
        delivered: Messages delivered after their first attempt failed.
        failed: Messages whose first attempt failed.
        half_s: The wait after which half of ``of`` were delivered.
        attempts: Of each failed message: begins and whether the last succeeded; only if asked for.
    """

    tries: list[int] = field(default_factory=lambda: [0])
    delivered: list[int] = field(default_factory=lambda: [0])
    waits_s: list[float] = field(default_factory=lambda: [0.0])
    failed: int = 0

    def worth(self, number: int) -> float:
        """The worth of so many retries, in tries; only differences mean anything."""
        at = min(number, len(self.tries) - 1)
        return WORTH * self.delivered[at] - self.tries[at]

    def half_s(self, of: int, number: int) -> float:
        """Seconds after which half of so many deliveries were made."""
        for at in range(min(number, len(self.tries) - 1) + 1):
            if self.delivered[at] >= of / 2:
                return self.waits_s[at]
        return float("inf")


def world(seed: int) -> World:
    """A world, drawn by its seed."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(KINDS))
    rate = float(rng.choice(RATES))
    days = 7 if rate <= 300 else 3 if rate <= 1_000 else 2
    end = days * 24 * HOUR
    down: list[tuple[float, float]] = []
    if kind in ("blips", "mixed"):
        every, longest = rng.uniform(0.5, 4) * HOUR, rng.uniform(20, 600)
        for at in np.cumsum(rng.exponential(every, 4_000)):
            if at < end:
                down.append((float(at), float(at + rng.uniform(0.2, 1) * longest)))
    if kind in ("half-day outage", "mixed"):
        at = rng.uniform(0.05, 0.4) * end
        down.append((at, at + rng.uniform(8, 14) * HOUR))
    if kind in ("hour outages", "slow recovery", "mixed"):
        for _ in range(int(rng.integers(2, 6))):
            at = rng.uniform(0, 0.85) * end
            down.append((at, at + rng.uniform(0.5, 2) * HOUR))
    errors = float(rng.uniform(0.01, 0.3)) if kind == "errors by chance" else float(rng.choice([0.0, 0.002]))
    if rng.random() < 0.7:
        now = Policy(int(rng.choice([1, 3, 5, 10, 20])) + 1, float(rng.choice([10, 60, 60, 300, 1_800])))
    else:
        now = Policy(int(rng.choice([4, 8, 12, ENDLESS])), float(rng.choice([5, 30, 60])), 3_600.0)
    return World(
        seed=seed,
        kind=kind,
        rate=rate,
        poison=float(rng.choice(POISON)),
        days=days,
        down=tuple(sorted(down)),
        ramp_s=float(rng.uniform(0.3, 2) * HOUR) if kind == "slow recovery" else 0.0,
        errors=errors,
        now=now,
        fails_s=float(rng.choice([0.1, 1.0, 10.0])),
    )


def drawn_world(seed: int) -> World:
    """A world of which chance draws the numbers as well: how many messages come, how they are retried, how many are
    poison, and how long failures take.
    """
    rng, of = np.random.default_rng([seed, 9]), world(seed)

    def between(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    most = min(4_000.0, 50_000 / (of.days * 24))
    now = Policy(round(between(2, 25)), float(round(between(5, 2_400))))
    if of.now.cap_s is not None:
        now = Policy(of.now.tries if of.now.tries == ENDLESS else round(between(3, 20)), float(round(between(5, 120))))
        now = replace(now, cap_s=float(round(between(600, 7_200))))
    poison = float(rng.uniform(0, 0.12)) if of.poison else 0.0
    return replace(of, rate=between(8, most), poison=poison, now=now, fails_s=between(0.05, 20))


def _success(of: World, at: Floats) -> Floats:
    """The chance that a message that is not poison is taken at each of these times."""
    chance = np.full(len(at), 1 - of.errors)
    for begin, end in of.down:
        chance[(at >= begin) & (at < end)] = 0.0
        if of.ramp_s:
            rising = (at >= end) & (at < end + of.ramp_s)
            chance[rising] = np.minimum(chance[rising], (at[rising] - end) / of.ramp_s)
    return chance


def truth(of: World, policy: Policy, evidence: bool = False) -> tuple[Truth, Evidence | None]:
    """What the policy really does in the world; and, if asked for, the attempts that a report would see."""
    rng = np.random.default_rng([of.seed, 1])
    count = int(of.rate * of.days * 24)
    accepted = np.sort(rng.uniform(0, of.days * 24 * HOUR, count))
    poison = rng.random(count) < of.poison
    until = np.minimum(accepted + LIFE_S, of.days * 24 * HOUR)
    found = Truth()
    begins, alive = accepted.copy(), np.arange(count)
    ended = np.zeros(count)
    made: dict[int, list[tuple[float, float]]] = defaultdict(list)
    wins: list[Floats] = []
    won: set[int] = set()
    tries = delivered = 0
    for number in range(1, policy.tries + 1):
        chance = np.random.default_rng([of.seed, 2, number]).random(len(alive))
        ok = ~poison[alive] & (chance < _success(of, begins[alive]))
        if evidence:
            wins.append(begins[alive][ok])
            for each, at, good in zip(alive.tolist(), begins[alive].tolist(), ok.tolist(), strict=True):
                if good and number > 1:
                    won.add(each)
                if not good or number > 1:
                    made[each].append((at, at + (0.1 if good else of.fails_s)))
        if number == 1:
            alive = alive[~ok]
            found.failed = len(alive)
        else:
            tries += len(alive)
            delivered += int(ok.sum())
            found.tries.append(tries)
            found.delivered.append(delivered)
            found.waits_s.append(float(np.median(begins[alive] - ended[alive])))
            alive = alive[~ok]
        if number == 1:
            ended[alive] = begins[alive] + of.fails_s
        jitter = np.random.default_rng([of.seed, 3, number]).random(len(alive))
        lag = np.random.default_rng([of.seed, 4, number]).uniform(0.05, 1.0, len(alive))
        begins[alive] += of.fails_s + policy.wait(min(number, 60), jitter) + lag
        alive = alive[begins[alive] < until[alive]]
        if not len(alive):
            break
    if not evidence:
        return found, None
    return found, _seen(of, until, made, won, np.concatenate(wins))


def _seen(
    of: World, until: Floats, made: dict[int, list[tuple[float, float]]], won: set[int], wins: Floats
) -> Evidence:
    """What the report collects of these attempts."""
    everybody = len(made)
    share = min(1.0, LIVES / max(1, everybody), WINS / max(1, len(wins)))
    by_chance = np.random.default_rng([of.seed, 5])
    chosen = [each for each in sorted(made) if by_chance.random() < share]
    lives = [
        Life(
            started=[round(at * 1000) for at, _ in made[each]],
            finished=[round(at * 1000) for _, at in made[each]],
            won=each in won,
            expires=round(until[each] * 1000),
        )
        for each in chosen
    ]
    drawn = wins[by_chance.random(len(wins)) < share]
    return Evidence(
        lives=lives,
        recovered=len(won),
        lost=everybody - len(won),
        well=np.sort(np.round(drawn * 1000).astype(np.int64)),
        won=len(wins),
        lag_ms=525,
    )


def candidates(of: World) -> list[Policy]:
    """The settings that an advice may choose from, each with the largest number of tries."""
    if of.now.cap_s is None:
        return [Policy(RETRIES[-1] + 1, float(delay)) for delay in DELAYS_S]
    most = ENDLESS if of.now.tries == ENDLESS else RETRIES[-1] + 1
    return [Policy(most, float(base), float(cap)) for base in BASES_S for cap in CAPS_S if cap >= base]


@dataclass(slots=True)
class Score:
    """Of the worlds of a kind."""

    worlds: int = 0
    advised: int = 0
    right: int = 0
    harmful: int = 0
    silent: int = 0
    missed: int = 0
    too_few: int = 0
    notes: list[str] = field(default_factory=list)


def judge(of: World, score: Score, *, misses: bool = True) -> None:
    """Let the advice judge a world, and judge the advice.

    Args:
        of: The world.
        score: What is added to.
        misses: Whether to look for what silence missed, which takes longest.
    """
    today, evidence = truth(of, of.now, evidence=True)
    assert evidence is not None
    score.worlds += 1
    now: FixedDelay | Exponential = FixedDelay(retries=of.now.tries - 1, delay_s=round(of.now.wait_s))
    if of.now.cap_s is not None:
        most = None if of.now.tries == ENDLESS else of.now.tries
        now = Exponential(base_s=of.now.wait_s, cap_s=of.now.cap_s, max_attempts=most, holds=True)
    if today.failed < 20:
        score.too_few += 1
        return
    history = History([evidence], now)
    better = suggested(history)
    lost = today.failed - today.delivered[-1]
    said = (
        f"{of.seed} {of.kind}, {of.rate:g}/h, poison {of.poison:g}, errors {of.errors:.2f}, {of.now}, "
        f"failed {today.failed} lost {lost} tries {today.tries[-1]}"
    )
    if better is None:
        score.silent += 1
        if not misses:
            return
        gain, best = _best(of, today)
        share = gain / max(1.0, today.tries[-1] + WORTH * max(0.0, lost - of.poison * of.rate * of.days * 24))
        if share > HELPFUL:
            score.missed += 1
            made = history.outcome(now)
            score.notes.append(
                f"missed {share:.2f} {best}: {said}; understood {history.understood()} "
                f"replayed {made.tries:.0f} tries {history.failures - made.delivered:.0f} lost"
            )
        return
    score.advised += 1
    setting = better.setting
    if isinstance(setting, FixedDelay):
        policy = Policy(setting.retries + 1, setting.delay_s)
    else:
        policy = Policy(setting.max_attempts or ENDLESS, setting.base_s, setting.cap_s)
    real, _ = truth(of, policy)
    tries, saved = today.tries[-1] - real.tries[-1], real.delivered[-1] - today.delivered[-1]
    tries_off, saved_off = abs(better.tries_saved - tries), abs(better.deliveries_saved - saved)
    right = tries_off <= max(TOLERANCE * abs(tries), NEGLIGIBLE * today.tries[-1], 2) and saved_off <= max(
        TOLERANCE * abs(saved), NEGLIGIBLE * today.failed, 2
    )
    harmful = tries + WORTH * saved <= 0
    score.right += right
    score.harmful += harmful
    if not right or harmful:
        score.notes.append(
            f"{'HARMFUL' if harmful else 'wrong'} {policy}: said {better.deliveries_saved:+.0f} deliveries "
            f"{better.tries_saved:+.0f} tries, truth {saved:+d} {tries:+d}: {said}"
        )


def _best(of: World, today: Truth) -> tuple[float, Policy]:
    """The greatest true gain of any setting that keeps to the same patience, and the setting."""
    # An advice to give up sooner after an outage that cost deliveries is none.
    poisoned = of.poison * of.rate * of.days * 24
    outage = today.failed - today.delivered[-1] > 1.5 * poisoned + 5
    longest = today.half_s(today.delivered[-1], of.now.tries - 1) * PATIENCE + PATIENCE_S
    best, chosen = 0.0, of.now
    for policy in candidates(of):
        real, _ = truth(of, policy)
        for retries in (ENDLESS,) if of.now.tries == ENDLESS else RETRIES:
            gain = real.worth(retries) - today.worth(len(today.tries))
            if outage and real.waits_s[min(retries, len(real.waits_s) - 1)] < today.waits_s[-1]:
                continue
            if gain > best and real.half_s(today.delivered[-1], retries) <= longest:
                best, chosen = gain, Policy(retries + 1, policy.wait_s, policy.cap_s)
    return best, chosen


def main() -> None:
    """Judge the worlds of some seeds, print, save."""
    page = Page("Advice on retries", __doc__, seeds=[0, 40], notes=False, drawn=False)
    options = page.options
    scores: dict[str, Score] = defaultdict(Score)
    for seed in range(*options.seeds):
        of = drawn_world(seed) if options.drawn else world(seed)
        judge(of, scores[of.kind])
    names = ("worlds", "too_few", "advised", "right", "harmful", "silent", "missed")
    rows = [[kind, *cells("", *(getattr(scores[kind], name) for name in names))] for kind in KINDS]
    sums = (sum(getattr(each, name) for each in scores.values()) for name in names)
    page.table(["world", *names], [*rows, ["all", *cells("", *sums)]])
    if options.notes:
        page.tell(*(note for each in scores.values() for note in each.notes))
    page.save()


if __name__ == "__main__":
    main()
