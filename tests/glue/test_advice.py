"""Advice on retries: based also on deliveries that were given up, in the protocol's own settings, with savings and
costs.
"""

from __future__ import annotations

from typing import Any

import pytest
from glue_jobs.delivery_report.advice import (
    Course,
    DoublingWaits,
    Failed,
    FixedWaits,
    advice,
    in_words,
    setting_in_use,
    suggested,
)


def recovering(*parts: tuple[float, int], lost: tuple[float, int] | None = None) -> list[Failed]:
    """Deliveries accepted after this many seconds, and those not accepted by then."""
    given_up = [Failed(waited_s=lost[0], won=False, n=lost[1])] if lost else []
    return [*(Failed(waited_s=at, won=True, n=n) for at, n in parts), *given_up]


def test_what_gave_up_counts() -> None:
    # Given half of the deliveries accepted at the only retry, and half given up then
    course = Course(recovering((60.3, 50), lost=(60.3, 50)))
    # Then half remains, not none
    assert course.left(60) == pytest.approx(0.5)
    outcome = course.outcome(FixedWaits(retries=1, delay_s=60))
    assert (outcome.attempts, outcome.lost, outcome.half_s) == (100, 50, 60)


def test_tries_that_win_nothing_are_saved() -> None:
    # Given ten retries, of which only the first two succeed
    history = recovering((60.2, 80), (120.5, 10), lost=(603, 30))
    better = suggested(Course(history), FixedWaits(retries=10, delay_s=60))
    # Then two are enough, at today's wait
    assert better == FixedWaits(retries=2, delay_s=60)


def test_where_deliveries_still_recover_at_the_last_try_more_of_them_are_worth_it() -> None:
    # Given three retries, each of which succeeds for a third of the rest
    history = recovering((60, 30), (120, 20), (180, 13), lost=(180, 37))
    now = FixedWaits(retries=3, delay_s=60)
    course = Course(history)
    better = suggested(course, now)
    assert isinstance(better, FixedWaits)
    assert better.times_s[-1] > 180
    # It succeeds for most of them, and those that recover today do not wait longer
    assert course.outcome(better).lost < course.outcome(now).lost / 2
    assert course.outcome(better, half_of=0.63).half_s <= 120


def test_waits_are_not_rounded_up() -> None:
    # Given deliveries that recover at the first retry, after an odd wait
    now = FixedWaits(retries=1, delay_s=61)
    assert suggested(Course(recovering((61.2, 100))), now) == now


def test_a_queue_that_does_well_is_left_alone() -> None:
    now = FixedWaits(retries=3, delay_s=60)
    assert suggested(Course(recovering((60, 60), (120, 30), (180, 10))), now) == now


def test_a_mapping_has_settings_of_its_own() -> None:
    # Given waits of 30, 60, 120 s ... with everything accepted at the fourth try
    now = DoublingWaits(base_s=30, cap_s=3_600, max_attempts=None)
    assert now.times_s[:4] == [30, 90, 210, 450]
    better = suggested(Course(recovering((460.0, 200))), now)
    # Then longer waits save tries, of the same kind
    assert isinstance(better, DoublingWaits)
    assert better.base_s > 30
    assert better.max_attempts is None


def queue(**changes: Any) -> dict[str, Any]:
    known = {"project": "p", "queue": "orders", "dialect": "raw", "given_up": 30, "tries_max": 11, "wait_ms": 60_000}
    return {**known, "first_wait_ms": 60_000, "longest_wait_ms": 60_000, **changes}


def test_the_row_says_what_to_set_and_what_it_saves() -> None:
    row = advice(queue(), recovering((60.2, 80), (120.5, 10), lost=(603, 30)), usd_per_try=0.001)
    assert row is not None
    assert in_words(row, "_now") == "retries 10, retries_delay 60"
    assert in_words(row) == "retries 2, retries_delay 60"
    # Thirty that are lost in any case were tried eight more times each
    assert (row["failed_first"], row["given_up"], row["tries_saved"], row["deliveries_saved"]) == (120, 30, 240, 0)
    assert row["usd_saved"] == pytest.approx(0.24)
    assert row["change"]


def test_a_mapping_is_told_in_its_own_words() -> None:
    seen = queue(dialect="hub", tries_max=None, first_wait_ms=31_400)
    row = advice(seen, recovering((31, 100)), usd_per_try=0.001)
    assert row is not None
    assert in_words(row) == "retry_base 31, retry_cap 3600, max_attempts none"
    assert not row["change"]


@pytest.mark.parametrize("unknown", [{"tries_max": None}, {"wait_ms": None}, {"dialect": "hub", "first_wait_ms": None}])
def test_without_knowing_the_setting_there_is_no_advice(unknown: dict[str, Any]) -> None:
    assert advice(queue(**unknown), recovering((60, 100)), 0.001) is None


def test_few_failures_are_no_ground_for_advice() -> None:
    assert advice(queue(), recovering((60, 19)), 0.001) is None


def test_a_list_of_waits_is_no_setting_to_give_advice_on() -> None:
    # Given tries from which a setting can be inferred, of a queue and of webhooks
    seen = {"tries_max": 8, "wait_ms": 300_000, "first_wait_ms": 5_000, "longest_wait_ms": 36_000_000}
    assert setting_in_use("raw", seen) == FixedWaits(retries=7, delay_s=300)
    assert setting_in_use("webhooks", seen) is None
