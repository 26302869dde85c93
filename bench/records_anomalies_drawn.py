"""A second labelled set for the report's anomalies, in which nothing was chosen by hand: chance draws the sizes,
lengths and times of incidents as well as the subscribers they happen to.

    .venv-glue/bin/python -m bench.records_anomalies_drawn --seeds 61001 61002 61003

It shares no model with bench/records_anomalies.py, on which the thresholds were chosen. A subscriber's day is a sum of
two waves with a break at the weekend, on the clock of one of seven zones (one of them half an hour off); its traffic
wanders (an autoregressive walk of its logarithm, hour by hour) and its counts are negative binomial; its failures are
beta-binomial; its answers are of two modes, quick and slow; failures take as long as a refusal or as a time-out. Some
moved to another level for good in the weeks before. To half of them, one of twelve things happens in the last week. An
incident is drawn again until it is one that a person would call so, see :func:`_matters`: how much it must change is
the only thing that is set here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from bench.harness import Page
from bench.records_anomalies import DAYS, FIRST_REPORTED, SLOTS, Subscriber, judged, of_seeds, offsets, tell

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ZONES = (
    *("America/Sao_Paulo", "America/Los_Angeles", "Europe/Lisbon", "Europe/Helsinki"),
    *("Asia/Kolkata", "Australia/Sydney", "UTC"),
)
SUBSCRIBERS = 240
"""In a set; something happens to every other one."""

HOUR, DAY = 12, 288
"""In slots of five minutes."""


@dataclass(slots=True)
class Life:
    """What chance has its say about, by slot."""

    due: Floats
    odds: Floats
    took: Floats


@dataclass(frozen=True, slots=True)
class Incident:
    """What happens.

    Attributes:
        hours: The shortest and the longest.
        lasts: Whether it goes on to the end of what is known.
        change: Changes a life by slots' shares in it, and the slots since its begin by its length.
        of: What it changes: ``failures``, ``less``, ``more`` or ``time``.
    """

    hours: tuple[float, float]
    change: Callable[[np.random.Generator, Life, Floats, Floats], Life]
    of: str
    lasts: bool = False


def _failing(low: float, high: float) -> Callable[[np.random.Generator, Life, Floats, Floats], Life]:
    def change(chance: np.random.Generator, life: Life, part: Floats, _: Floats) -> Life:
        share = chance.uniform(low, high)
        return Life(life.due, life.odds + np.maximum(share - life.odds, 0) * part, life.took)

    return change


def _rising(chance: np.random.Generator, life: Life, part: Floats, done: Floats) -> Life:
    share = chance.uniform(0.1, 0.6)
    return Life(life.due, life.odds + share * done * part, life.took)


def _on_and_off(chance: np.random.Generator, life: Life, part: Floats, done: Floats) -> Life:
    turns = chance.integers(3, 8)
    out = (done * turns * 2).astype(int) % 2 == 0
    return Life(life.due, life.odds + (chance.uniform(0.85, 1) - life.odds) * part * out, life.took)


def _times(low: float, high: float) -> Callable[[np.random.Generator, Life, Floats, Floats], Life]:
    def change(chance: np.random.Generator, life: Life, part: Floats, _: Floats) -> Life:
        factor = np.exp(chance.uniform(np.log(low), np.log(high))) if low else 0.0
        return Life(life.due * (1 + (factor - 1) * part), life.odds, life.took)

    return change


def _slower(low: float, high: float) -> Callable[[np.random.Generator, Life, Floats, Floats], Life]:
    def change(chance: np.random.Generator, life: Life, part: Floats, _: Floats) -> Life:
        return Life(life.due, life.odds, life.took * (1 + (chance.uniform(low, high) - 1) * part))

    return change


INCIDENTS: Mapping[str, Incident] = {
    "short outage": Incident((0.07, 0.5), _failing(0.9, 1), "failures"),
    "outage": Incident((0.5, 12), _failing(0.9, 1), "failures"),
    "partial outage": Incident((0.5, 24), _failing(0.15, 0.6), "failures"),
    "lasting errors": Incident((24, 160), _failing(0.02, 0.25), "failures"),
    "rising errors": Incident((18, 120), _rising, "failures"),
    "flapping": Incident((2, 12), _on_and_off, "failures"),
    "silence": Incident((2, 24), _times(0, 0), "less"),
    "stopped": Incident((4, 40), _times(0, 0), "less", lasts=True),
    "much less": Incident((12, 120), _times(0.1, 0.5), "less"),
    "much more": Incident((2, 48), _times(2.5, 8), "more"),
    "slow for hours": Incident((1.5, 12), _slower(2.5, 10), "time"),
    "slow for days": Incident((18, 120), _slower(2.1, 4), "time"),
}


def labelled(seed: int) -> list[Subscriber]:
    """A set; the same seed makes the same."""
    world = np.random.default_rng((seed, 0))
    # Any midnight of three years.
    until = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=int(world.integers(0, 1095)))
    kinds = list(INCIDENTS)
    return [
        _subscriber(
            np.random.default_rng((seed, number)), number, until, kinds[number // 2 % len(kinds)] if number % 2 else ""
        )
        for number in range(1, SUBSCRIBERS + 1)
    ]


def _subscriber(chance: np.random.Generator, number: int, until: datetime, kind: str) -> Subscriber:
    zone = str(chance.choice(ZONES))
    life, around = _usual(chance, until, zone)
    event: tuple[int, int] | None = None
    hourly = float(life.due.sum() / SLOTS * HOUR)
    name = f"{number}, {kind or 'nothing'}, {hourly:.1f} an hour, {zone}"
    while kind:
        incident = INCIDENTS[kind]
        lasts = HOUR * float(np.exp(chance.uniform(*np.log(incident.hours))))
        latest = SLOTS - lasts
        start = latest if incident.lasts else float(chance.uniform(FIRST_REPORTED, max(FIRST_REPORTED + 1, latest - 1)))
        slot = np.arange(SLOTS)
        part = np.clip(np.minimum(slot + 1, start + lasts) - np.maximum(slot, start), 0, 1)
        changed = incident.change(chance, life, part, np.clip((slot - start) / lasts, 0, 1))
        if _matters(incident.of, life, changed, part > 0):
            event, life = (int(start), int(np.ceil(start + lasts))), changed
            name += f", {lasts / HOUR:.1f} hours"
            break
        # Who has too little to do for such a thing gets more.
        life.due *= 1.15
    tried = _negative_binomial(chance, life.due * around)
    failed = _beta_binomial(chance, tried, life.odds)
    p50, p95 = _percentiles(chance, life, tried, failed)
    return Subscriber(
        name=name,
        kind=kind or "nothing",
        project=zone,
        until=until,
        event=event,
        tried=tried,
        failed=failed,
        p50=p50,
        p95=p95,
    )


def _matters(of: str, life: Life, changed: Life, when: NDArray[np.bool_]) -> bool:
    """Whether it is an incident: ten failures more and three times as many as usual; 60 deliveries more or less in
    hours in which 90 are due; 60 answers that are late.
    """
    due = float(life.due[when].sum())
    if of == "failures":
        usual = float((life.due * life.odds)[when].sum())
        return float((changed.due * changed.odds)[when].sum()) >= max(usual * 3, usual + 10)
    if of == "time":
        return due >= 60
    return due >= 90 and abs(float(changed.due[when].sum()) - due) >= 60


def _usual(chance: np.random.Generator, until: datetime, zone: str) -> tuple[Life, Floats]:
    """What a subscriber lives by, and by how much its traffic wanders about that."""
    begin = until - timedelta(days=DAYS)
    local = np.arange(SLOTS) + offsets(begin, zone)
    of_day, day = local % DAY / DAY, local // DAY
    weekend = np.isin((begin.weekday() + day) % 7, (5, 6))
    volume = float(np.exp(chance.uniform(np.log(3), np.log(4000)))) / HOUR
    first, second = chance.uniform(0, 0.9), chance.uniform(0, 0.3)
    wave = first * np.sin(2 * np.pi * (of_day - chance.uniform()))
    wave += second * np.sin(4 * np.pi * (of_day - chance.uniform()))
    due = volume * np.exp(wave) * np.where(weekend, chance.choice((1.0, chance.uniform(0.05, 1))), 1.0)
    took = np.full(SLOTS, float(np.exp(chance.uniform(np.log(30), np.log(1500)))))
    odds = np.full(SLOTS, float(chance.choice((0.0005, 0.003, chance.uniform(0.005, 0.05)), p=(0.4, 0.4, 0.2))))
    if chance.random() < 0.3:
        since = FIRST_REPORTED - int(chance.uniform(4, 24) * DAY)
        due[:since] *= np.exp(chance.uniform(-1.2, 1.2))
    if chance.random() < 0.15:
        since = FIRST_REPORTED - int(chance.uniform(4, 24) * DAY)
        took[:since] *= np.exp(chance.uniform(-0.8, 0.8))
    # An autoregressive walk: a busy hour is followed by another one, for some hours.
    keeps, scatter = float(chance.uniform(0.3, 0.9)), float(chance.uniform(0.02, 0.15))
    steps = chance.normal(0, scatter * np.sqrt(1 - keeps**2), SLOTS // HOUR)
    walk = np.zeros(SLOTS // HOUR)
    for hour in range(1, len(walk)):
        walk[hour] = keeps * walk[hour - 1] + steps[hour]
    return Life(due, odds, took), np.repeat(np.exp(walk), HOUR)


def _negative_binomial(chance: np.random.Generator, mean: Floats) -> Ints:
    shape = float(np.exp(chance.uniform(np.log(5), np.log(100))))
    return chance.poisson(mean * chance.gamma(shape, 1 / shape, len(mean)))


def _beta_binomial(chance: np.random.Generator, tried: Ints, odds: Floats) -> Ints:
    by_hour = odds.reshape(-1, HOUR).mean(axis=1)
    # Of the usual share; from hours of which one in ten has four times as many to some that are all alike.
    tight = float(np.exp(chance.uniform(np.log(0.3), np.log(20)))) / float(np.median(by_hour))
    drawn = chance.beta(np.maximum(by_hour * tight, 1e-3), np.maximum((1 - by_hour) * tight, 1e-3))
    factor = np.repeat(drawn / np.maximum(by_hour, 1e-9), HOUR)
    return chance.binomial(tried, np.clip(odds * factor, 0, 1))


def _percentiles(chance: np.random.Generator, life: Life, tried: Ints, failed: Ints) -> tuple[Ints, Ints]:
    """Of all attempts of each hour, those that failed included."""
    scatter, slow_share = float(chance.uniform(0.2, 0.9)), float(chance.uniform(0, 0.04))
    slow, failing_ms = float(chance.uniform(2, 6)), float(chance.choice((20.0, 5_000.0, 30_000.0)))
    made, bad = (each.reshape(-1, HOUR).sum(axis=1) for each in (tried, failed))
    logs = np.log(life.took).reshape(-1, HOUR).mean(axis=1)
    found = np.zeros((2, len(made)), dtype=np.int64)
    for hour in np.flatnonzero(made):
        answered = int(min(made[hour] - bad[hour], 3_000))
        failures = round(float(bad[hour]) * min(1.0, 3_000 / max(1, int(made[hour] - bad[hour]))))
        took = np.exp(chance.normal(logs[hour], scatter, answered))
        took[chance.random(answered) < slow_share] *= slow
        every = np.sort(np.concatenate((took, np.full(failures, failing_ms))))
        if len(every):
            found[:, hour] = [every[int(np.ceil(share * len(every))) - 1] for share in (0.5, 0.95)]
    return found[0], found[1]


def main() -> None:
    """Measure, print, save."""
    page = Page("The report's anomalies, drawn", __doc__, seeds=[61001, 61002, 61003], notes=False)
    total = of_seeds(page.options.seeds, lambda seed: judged(labelled(seed)))
    ordered = {kind: total[kind] for kind in (*INCIDENTS, "nothing")}
    tell(page, ordered, ["what happened", "incidents", "reported", "anomalies told", "of an incident"])
    page.save()


if __name__ == "__main__":
    main()
