"""Budgets of steps: nothing is done that was not paid for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.errors import Invalid, TooMuchWork
from pushhub.base.steps import MOST_STEPS, Steps


@given(st.integers(0, 100), st.lists(st.integers(0, 30)))
def test_a_budget_ends_with_the_step_that_goes_beyond_it(most: int, counts: list[int]) -> None:
    steps, paid = Steps(most), 0
    for count in counts:
        if paid + count > most:
            with pytest.raises(TooMuchWork):
                steps.spend(count)
            break
        steps.spend(count)
        paid += count
        assert (steps.spent, steps.left) == (paid, most - paid)
    assert steps.spent <= most


def test_texts_cost_by_their_length_and_nothing_is_free() -> None:
    steps = Steps()
    steps.spend_on_text(0)
    assert steps.spent == 1
    with pytest.raises(TooMuchWork):
        steps.spend_on_text(10**9)


@given(st.integers(0, 50), st.lists(st.tuples(st.integers(1, 20), st.integers(0, 40)), max_size=8))
def test_documents_that_share_a_budget_never_spend_more_than_it_has(
    most: int, documents: list[tuple[int, int]]
) -> None:
    # Given a budget that several documents share
    shared = Steps(most)
    for limit, wanted in documents:
        # When each takes its part, and wants more or less than that
        part = shared.part(limit)
        for _ in range(wanted):
            try:
                part.spend()
            except TooMuchWork:
                break
        shared.charge(part)
        # Then none gets more than its part, or than is left
        assert part.spent <= min(limit, wanted)
    assert 0 <= shared.left <= most


def test_a_refusal_is_one_that_every_dialect_knows() -> None:
    with pytest.raises(Invalid, match="too many steps"):
        Steps().spend(MOST_STEPS + 1)
