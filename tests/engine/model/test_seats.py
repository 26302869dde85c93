"""Who shares a limit, and that the shares never exceed it in total."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.engine.model.circuit import SubscriberKey
from pushhub.engine.model.seats import Limits, Seats, Share, epoch_of

NOBODY = Seats(key=SubscriberKey(project="p", queue="q", queue_uid="u", subscriber_id="s"))


def test_who_is_alone_begins_at_once_and_has_it_all() -> None:
    seats = NOBODY.with_seat("a", 5, outlasts=3)
    assert seats.share("a", 5) == Share(place=0, of=1)


def test_a_newcomer_begins_when_the_attempts_of_before_are_over() -> None:
    # Given an environment with a seat, whose attempts may reach into three further epochs
    seats = NOBODY.with_seat("b", 5, outlasts=3).with_seat("a", 5, outlasts=3)
    # Then the newcomer counts from the next epoch on, and begins three epochs later; the other keeps its place
    shares = {}
    for epoch in range(5, 11):
        seats = seats.with_seat("a", epoch, outlasts=3).with_seat("b", epoch, outlasts=3)
        shares[epoch] = seats.share("b", epoch), seats.share("a", epoch)
    assert shares[5] == (Share(place=0, of=1), None)
    assert shares[6] == shares[8] == (Share(place=0, of=2), None)
    assert shares[9] == (Share(place=0, of=2), Share(place=1, of=2))


def test_who_does_not_come_back_is_counted_until_its_attempts_are_over() -> None:
    seats = NOBODY.with_seat("a", 5, outlasts=3).with_seat("b", 5, outlasts=3)
    shares = {}
    for epoch in range(6, 12):
        seats = seats.with_seat("b", epoch, outlasts=3)
        shares[epoch] = seats.share("b", epoch)
    assert shares[9] == Share(place=1, of=2)
    assert shares[10] == Share(place=0, of=1)
    assert "a" not in seats.holders


def test_shares_of_a_small_limit_leave_some_without() -> None:
    assert [Share(place=place, of=4).concurrency(6) for place in range(4)] == [2, 2, 1, 1]
    assert [Share(place=place, of=4).concurrency(1) for place in range(4)] == [1, 0, 0, 0]
    assert Share(place=2, of=4).rate(10) == 2.5


@given(limit=st.integers(1, 10_000), of=st.integers(1, 200))
def test_shares_add_up_to_the_limit_and_are_even(limit: int, of: int) -> None:
    shares = [Share(place=place, of=of).concurrency(limit) for place in range(of)]
    assert sum(shares) == limit
    assert max(shares) - min(shares) <= 1


def test_an_epoch_is_ten_seconds() -> None:
    assert [epoch_of(now) for now in (0, 9_999, 10_000, 1_795_000_005_000)] == [0, 0, 1, 179_500_000]


@pytest.mark.parametrize("limits", [{"rate_per_s": 0}, {"rate_per_s": -1.0}, {"concurrency": 0}])
def test_a_limit_is_positive(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="positive"):
        Limits(**limits)


def test_any_positive_limit_will_do() -> None:
    assert Limits(rate_per_s=0.001, concurrency=1).concurrency == 1
    assert Limits().rate_per_s is None


def test_a_seat_is_good_up_to_its_last_epoch_and_kept_as_long() -> None:
    # Given a seat taken in the fifth epoch: for this epoch and the next, and three more for attempts begun in them
    seats = NOBODY.with_seat("a", 5, outlasts=3)
    assert (seats.version, seats.holders["a"].last) == (1, 9)
    assert [seats.share("a", epoch) is not None for epoch in (4, 5, 9, 10)] == [False, True, True, False]
    # Then it counts in its last epoch and is removed after it, when another one comes
    assert "a" in seats.with_seat("b", 9, outlasts=0).holders
    assert "a" not in seats.with_seat("b", 10, outlasts=0).holders
    # And an environment without a seat has no share
    assert seats.share("b", 5) is None
