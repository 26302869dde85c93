"""Advice on retries: settings replayed on a subscriber's own deliveries, right or not given at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from bench.records_advice import Score, judge, world
from glue_jobs.delivery_report.advice import History, advice, in_words, setting_in_use, suggested
from glue_jobs.delivery_report.replay import Assumption, Evidence, Life

from pushhub.engine.model.backoff import Exponential, FixedDelay

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
WEEK = 7 * 24 * HOUR

Span = tuple[int, int]


def lived(
    policy: FixedDelay | Exponential,
    *,
    down: Sequence[Span] = (),
    poison: int = 0,
    every: int = MINUTE,
    lasts: int = 24 * HOUR,
) -> Evidence:
    """The attempts of a subscriber that is sent messages at regular times, and never takes each n-th."""
    lives, well = [], []
    for number, at in enumerate(range(0, lasts, every)):
        begins, started, taken, tries = at, list[int](), False, 0
        while begins < WEEK and not taken:
            started.append(begins)
            sick = any(start <= begins < end for start, end in down)
            taken = not sick and not (poison and number % poison == 0)
            tries += 1
            wait = policy.wait_ms(tries, 0.5)
            if taken or wait is None:
                break
            begins += wait
        if taken:
            well.append(started[-1])
        if len(started) > 1 or not taken:
            lives.append(Life(started=started, finished=started, won=taken, expires=WEEK))
    recovered = sum(each.won for each in lives)
    return Evidence(
        lives=lives,
        recovered=recovered,
        lost=len(lives) - recovered,
        well=np.array(sorted(well), dtype=np.int64),
        won=len(well),
        lag_ms=0,
    )


NOW = FixedDelay(retries=3, delay_s=60)


def test_the_present_setting_replayed_gives_what_happened() -> None:
    # Given an hour without an answer
    history = History([lived(NOW, down=[(10 * HOUR, 11 * HOUR)])], NOW)
    outcome = history.outcome(NOW)
    assert outcome.tries == history.retries
    assert outcome.delivered == history.failures - history.lost
    assert history.understood()


def test_an_outage_is_survived_by_retries_that_last_longer() -> None:
    # Given an hour without an answer, and retries for three minutes
    history = History([lived(NOW, down=[(10 * HOUR, 11 * HOUR)])], NOW)
    assert history.lost == 57
    better = suggested(history)
    # Then the advice is right about all that would have been delivered
    assert better is not None
    assert isinstance(better.setting, FixedDelay)
    assert better.deliveries_saved == pytest.approx(57, abs=2)
    real = lived(better.setting, down=[(10 * HOUR, 11 * HOUR)])
    assert real.lost <= 1
    tries = sum(len(each.started) - 1 for each in real.lives)
    assert -better.tries_saved == pytest.approx(tries - history.retries, rel=0.1)


def test_poison_is_not_taken_for_an_outage() -> None:
    # Given that each 30th message fails whenever it is tried, and nothing else does
    history = History([lived(NOW, poison=30)], NOW)
    assert history.poisoned == pytest.approx(48, abs=3)
    # Then no number of retries would deliver it
    longer = history.outcome(FixedDelay(retries=50, delay_s=60))
    assert longer.delivered == pytest.approx(0, abs=1)
    # And fewer are suggested
    better = suggested(history)
    assert better is not None
    assert better.deliveries_saved == 0
    assert better.tries_saved > 0


def test_poison_and_outage_are_told_apart() -> None:
    history = History([lived(NOW, poison=30, down=[(10 * HOUR, 11 * HOUR)])], NOW)
    longer = history.outcome(FixedDelay(retries=100, delay_s=60))
    # The outage's deliveries come through: one in thirty of them is poison, too
    assert longer.delivered == pytest.approx(55 + 3, abs=4)


def test_after_half_a_day_without_an_answer_nobody_is_told_to_give_up_sooner() -> None:
    history = History([lived(NOW, down=[(2 * HOUR, 14 * HOUR)])], NOW)
    better = suggested(history)
    assert better is None or history.outcome(better.setting).span_s >= history.outcome(NOW).span_s


def test_what_cannot_be_known_is_a_range() -> None:
    # Given a message an hour, and one of them failing twice within a minute
    now = FixedDelay(retries=1, delay_s=60)
    history = History([lived(now, down=[(10 * HOUR, 10 * HOUR + 90_000)], every=HOUR)], NOW)
    later = FixedDelay(retries=3, delay_s=600)
    worst, best = (history.outcome(later, each).delivered for each in (Assumption.WORST, Assumption.BEST))
    # Then nobody knows whether it was the message or the subscriber
    assert worst < 0.1
    assert best == 1


def test_what_a_setting_does_not_explain_gets_no_advice() -> None:
    # Given a circuit that made nine of ten tries wait for an hour
    history = History([lived(NOW, down=[(10 * HOUR, 11 * HOUR)])], FixedDelay(retries=30, delay_s=5))
    assert not history.understood()
    assert suggested(history) is None


def test_advice_on_worlds_is_right_or_not_given() -> None:
    # Given quiet worlds, in which most is hidden (all: bench/records_advice.py)
    score = Score()
    for seed in (each for each in range(3_000, 3_024) if world(each).rate <= 60):
        judge(world(seed), score, misses=False)
    # Then no advice is wrong, and there is some
    assert (score.advised - score.right, score.harmful) == (0, 0), score.notes
    assert score.advised >= 2


def queue(**changes: Any) -> dict[str, Any]:
    known = {"project": "p", "queue": "orders", "dialect": "raw", "given_up": 57, "tries_max": 4, "wait_ms": 60_000}
    return {**known, "first_wait_ms": 60_000, "longest_wait_ms": 60_000, **changes}


def test_the_row_says_what_to_set_and_what_it_saves() -> None:
    row = advice(queue(), [lived(NOW, poison=20)], usd_per_try=0.001)
    assert row is not None
    assert in_words(row, "_now") == "retries 3, retries_delay 60"
    assert in_words(row) == "retries 0, retries_delay 60"
    # 72 that nothing can deliver were tried three more times each
    assert (row["failed_first"], row["tries_saved"], row["deliveries_saved"]) == (72, 216, 0)
    assert row["usd_saved"] == pytest.approx(0.216)
    assert row["change"]


def test_a_mapping_is_told_in_its_own_words() -> None:
    now = Exponential(base_s=31, cap_s=3_600, holds=True)
    seen = queue(dialect="hub", tries_max=None, first_wait_ms=31_400)
    row = advice(seen, [lived(now, down=[(10 * HOUR, 10 * HOUR + 30 * MINUTE)])], usd_per_try=0.001)
    assert row is not None
    assert in_words(row, "_now") == "retry_base 31, retry_cap 3600, max_attempts none"
    assert row["max_attempts"] is None


@pytest.mark.parametrize("unknown", [{"tries_max": None}, {"wait_ms": None}, {"dialect": "hub", "first_wait_ms": None}])
def test_without_knowing_the_setting_there_is_no_advice(unknown: dict[str, Any]) -> None:
    assert advice(queue(**unknown), [lived(NOW, poison=20)], 0.001) is None


def test_few_failures_are_no_ground_for_advice() -> None:
    assert advice(queue(), [lived(NOW, poison=100)], 0.001) is None


def test_a_list_of_waits_is_no_setting_to_give_advice_on() -> None:
    # Given tries from which a setting can be inferred, of a queue and of webhooks
    seen = {"tries_max": 8, "wait_ms": 300_000, "first_wait_ms": 5_000, "longest_wait_ms": 36_000_000}
    assert setting_in_use("raw", seen) == FixedDelay(retries=7, delay_s=300)
    assert setting_in_use("webhooks", seen) is None
