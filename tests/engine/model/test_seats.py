"""Who shares a limit, and that shares never add up to more than it."""

from __future__ import annotations

import pytest

from pushhub.engine.model.circuit import SubscriberKey
from pushhub.engine.model.seats import Limits, Seats, Share

NOBODY = Seats(key=SubscriberKey(project="p", queue="q", queue_uid="u", subscriber_id="s"))


def test_who_is_alone_begins_at_once_and_has_it_all() -> None:
    seats = NOBODY.with_seat("a", 5, outlasts=3)
    assert seats.share("a", 5) == Share(place=0, of=1)


def test_a_newcomer_begins_when_the_attempts_of_before_are_over() -> None:
    # Given an environment that sits, whose attempts may reach into three epochs more
    seats = NOBODY.with_seat("b", 5, outlasts=3).with_seat("a", 5, outlasts=3)
    # Then the newcomer counts from the next epoch on, and begins three later; who sat keeps its place
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


@pytest.mark.parametrize("limits", [{"rate_per_s": 0}, {"rate_per_s": -1.0}, {"concurrency": 0}])
def test_a_limit_is_positive(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="positive"):
        Limits(**limits)
