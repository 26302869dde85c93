"""How many concurrent attempts a subscriber gets."""

from __future__ import annotations

import pytest

from pushhub.engine.model import concurrency
from pushhub.engine.model.concurrency import KNOWN, MOST, REMEMBERED_MS, SLOW_MS, ConcurrencyLimits
from pushhub.engine.model.keys import Addressee

ONE: Addressee = ("p", "q", "one")
OTHER: Addressee = ("p", "q", "other")


def begun_at_once(known: ConcurrencyLimits, key: Addressee, now: int) -> int:
    """Begin as many attempts as possible; returns their number."""
    count = 0
    while known.admits(key, now):
        known.begin(key, now)
        count += 1
    return count


def test_a_subscriber_starts_with_one_attempt_and_gets_more_with_each_prompt_answer() -> None:
    known, now, seen = ConcurrencyLimits(), 0, []
    for _ in range(9):
        count = begun_at_once(known, ONE, now)
        seen.append(count)
        now += 100
        for _ in range(count):
            known.end(ONE, now - 100, now)
    assert seen == [1, 2, 4, 8, 16, 32, 64, MOST, MOST]


def test_one_that_has_not_answered_yet_is_slow_and_others_are_not() -> None:
    known = ConcurrencyLimits()
    known.begin(ONE, 0)
    assert not known.slow(ONE, SLOW_MS)
    assert known.slow(ONE, SLOW_MS + 1)
    assert not known.admits(ONE, SLOW_MS + 1)
    assert not known.slow(OTHER, SLOW_MS + 1)
    assert known.admits(OTHER, SLOW_MS + 1)


def test_a_slow_answer_is_remembered_until_a_prompt_one_or_for_some_time() -> None:
    known = ConcurrencyLimits()
    for begun in (0, 0, 0):
        known.begin(ONE, begun)
    known.end(ONE, 0, 10)
    known.end(ONE, 0, 10)
    assert begun_at_once(known, ONE, 10) == 2
    end = SLOW_MS + 11
    for begun in (0, 10, 10):
        known.end(ONE, begun, end)
    assert known.slow(ONE, end)
    assert begun_at_once(known, ONE, end) == 1
    assert known.slow(ONE, end + REMEMBERED_MS - 1)
    # A prompt answer makes it a subscriber like others
    known.end(ONE, end, end + 100)
    assert not known.slow(ONE, end + 100)
    assert begun_at_once(known, ONE, end + 100) == 2


def test_what_a_run_that_broke_off_had_begun_is_forgotten() -> None:
    known = ConcurrencyLimits()
    known.begin(ONE, 0)
    known.start_over()
    assert not known.slow(ONE, SLOW_MS * 2)
    assert begun_at_once(known, ONE, SLOW_MS * 2) == 1
    known.end(ONE, 0, SLOW_MS * 2)


def test_only_so_many_are_remembered_and_those_being_asked_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert KNOWN >= 1000
    monkeypatch.setattr(concurrency, "KNOWN", 3)
    known = ConcurrencyLimits()
    known.begin(ONE, 0)
    for number in range(10):
        key: Addressee = ("p", "q", str(number))
        known.begin(key, 0)
        known.end(key, 0, SLOW_MS * 2)
    assert known.slow(ONE, SLOW_MS * 2)
    assert not known.slow(("p", "q", "0"), SLOW_MS * 2)
    assert known.slow(("p", "q", "9"), SLOW_MS * 2)


def hanging(known: ConcurrencyLimits, project: str, count: int, now: int) -> None:
    """This many endpoints of a project, each asked for the first time."""
    for number in range(count):
        known.begin((project, "q", f"hangs-{number}"), now)


def test_a_project_of_fifty_hanging_endpoints_is_one_neighbour() -> None:
    # Given fifty endpoints of one project that do not answer, which nobody knew before
    known, now = ConcurrencyLimits(), SLOW_MS + 1
    hanging(known, "p", 50, 0)
    for number in range(50):
        known.end(("p", "q", f"hangs-{number}"), 0, now)
    # When all of them are to be retried, then only a few are at a time
    begun = 0
    for number in range(50):
        key = ("p", "q", f"hangs-{number}")
        if known.admits(key, now):
            known.begin(key, now)
            begun += 1
    assert begun == concurrency.SLOW_OF_A_PROJECT
    # And as soon as those have answered, others are
    known.end(("p", "q", "hangs-0"), now, now + SLOW_MS + 1)
    assert known.admits(("p", "q", "hangs-49"), now + SLOW_MS + 1)


def test_while_a_project_hangs_its_other_subscribers_and_other_projects_do_not_wait() -> None:
    # Given a prompt subscriber of a project, and more hanging endpoints of it than allowed
    known, now = ConcurrencyLimits(), SLOW_MS + 1
    known.begin(ONE, 0)
    known.end(ONE, 0, 100)
    hanging(known, "p", 2 * concurrency.SLOW_OF_A_PROJECT, 0)
    # Then the prompt one, one that nobody has asked yet, and those of others are asked
    assert known.admits(ONE, now)
    assert known.admits(OTHER, now)
    # And one of another project that is slow itself has its one attempt
    slow = ("other", "q", "slow")
    known.begin(slow, 0)
    known.end(slow, 0, now)
    assert begun_at_once(known, slow, now) == 1
    # And a run that starts over knows of no attempt in progress
    known.start_over()
    assert known.admits(("p", "q", "hangs-0"), now)


def test_orders_hold_up_others_when_their_subscriber_is_slow_or_keeps_them_waiting() -> None:
    known = ConcurrencyLimits()
    assert not known.holds_up(ONE, 0)
    # Given one that was asked for the first time, half a second ago
    known.begin(ONE, 0)
    assert not known.holds_up(ONE, concurrency.HOLD_MS)
    assert known.holds_up(ONE, concurrency.HOLD_MS + 1)
    assert not known.holds_up(OTHER, concurrency.HOLD_MS + 1)
    # When it has answered, then there is room for one more, and for none when both wait
    known.end(ONE, 0, 600)
    assert not known.holds_up(ONE, 600)
    known.begin(ONE, 600)
    assert not known.holds_up(ONE, 5_000)
    known.begin(ONE, 600)
    assert known.holds_up(ONE, 600 + concurrency.HOLD_MS + 1)
    # And a slow one does at any time
    known.end(ONE, 600, 601 + SLOW_MS)
    known.end(ONE, 600, 601 + SLOW_MS)
    assert known.holds_up(ONE, 602 + SLOW_MS)


@pytest.mark.parametrize(("took_ms", "gives_way"), [(concurrency.BRISK_MS, False), (concurrency.BRISK_MS + 1, True)])
def test_orders_stay_behind_a_late_attempt_while_others_at_their_subscriber_end_soon(
    took_ms: int, gives_way: bool
) -> None:
    # Given a subscriber with as many attempts as it may have, of which one is late
    known = ConcurrencyLimits()
    known.begin(ONE, 0)
    known.end(ONE, 0, 1)
    known.begin(ONE, 1)
    late = 2 * concurrency.BRISK_MS
    known.begin(ONE, late - took_ms)
    # When another one ends, soon or not, and the next ones begin
    known.end(ONE, late - took_ms, late)
    assert begun_at_once(known, ONE, late) == 2
    # Then its orders wait, or give way
    assert known.holds_up(ONE, late) == gives_way
    # And give way once none has ended soon for as long
    assert known.holds_up(ONE, late + concurrency.HOLD_MS) == gives_way
    assert known.holds_up(ONE, late + concurrency.HOLD_MS + 1)


def test_those_that_nobody_knows_hold_up_others_once_ten_of_their_project_keep_waiting() -> None:
    # Given a prompt subscriber, and ten more of its project that do not answer
    known, now = ConcurrencyLimits(), concurrency.HOLD_MS + 1
    known.begin(ONE, 0)
    known.end(ONE, 0, 100)
    hanging(known, "p", concurrency.SLOW_OF_A_PROJECT, 0)
    # Then another one that nobody knows does, and the prompt one and those of other projects do not
    assert not known.holds_up(("p", "q", "new"), now - 1)
    assert known.holds_up(("p", "q", "new"), now)
    assert not known.holds_up(ONE, now)
    assert not known.holds_up(("other", "q", "new"), now)


def test_a_subscriber_is_newly_slow_once_in_five_minutes_and_never_for_one_slow_answer_among_prompt_ones() -> None:
    known, now = ConcurrencyLimits(), SLOW_MS + 1
    known.begin(ONE, 0)
    known.begin(OTHER, 0)
    known.end(OTHER, 0, 100)
    known.begin(OTHER, 0)
    assert known.newly_slow(SLOW_MS) == []
    assert known.newly_slow(now) == [ONE]
    assert known.newly_slow(now + REMEMBERED_MS // 2 - 1) == []
    assert known.newly_slow(now + REMEMBERED_MS // 2) == [ONE]


def test_slow_is_longer_than_five_seconds_and_for_ten_minutes() -> None:
    known = ConcurrencyLimits()
    known.begin(ONE, 0)
    known.end(ONE, 0, 0)
    assert not known.slow(ONE, 0)
    known.begin(ONE, 0)
    known.end(ONE, 0, SLOW_MS)
    assert not known.slow(ONE, SLOW_MS)
    known.begin(ONE, 0)
    known.end(ONE, 0, SLOW_MS + 1)
    assert known.slow(ONE, SLOW_MS + REMEMBERED_MS)
    assert not known.slow(ONE, SLOW_MS + 1 + REMEMBERED_MS)


def test_a_slow_one_that_answers_earns_places_where_its_lease_is_taken_and_loses_them_when_it_does_not() -> None:
    # Given answers that each take six seconds
    known, now = ConcurrencyLimits(), 0
    assert known.places(ONE, now) == 1
    for number in range(2, 15):
        known.begin(ONE, now)
        known.end(ONE, now, now + 6_000, answered=True)
        now += 6_000
        assert known.places(ONE, now) == number
    # Then so many attempts may begin in its turn, and one anywhere else
    begun = 0
    while known.admits(ONE, now, leased=True):
        known.begin(ONE, now)
        begun += 1
        assert not known.admits(ONE, now)
    assert begun == concurrency.SLOW_OF_A_PROJECT
    # And while no other project has anything in that run, all that it has earned
    while known.admits(ONE, now, leased=True, alone=True):
        known.begin(ONE, now)
        begun += 1
    assert begun == 14
    # When one is not answered, then it has one place again
    known.end(ONE, now, now + 10_000, answered=False)
    assert known.places(ONE, now + 10_000) == 1


def test_slow_ones_of_a_project_that_is_alone_have_half_of_the_threads_if_they_answer() -> None:
    # Given one that has answered sixty times, slowly, and one that has not answered
    known, now = ConcurrencyLimits(), 0
    for _ in range(60):
        known.begin(ONE, now)
        known.end(ONE, now, now + 6_000, answered=True)
        now += 6_000
    known.begin(OTHER, now - 6_000)
    known.end(OTHER, now - 6_000, now, answered=False)
    begun = 0
    while known.admits(ONE, now, leased=True, alone=True):
        known.begin(ONE, now)
        begun += 1
    assert begun == concurrency.SLOW_ALONE
    # Then the other one gets none of them, as before
    assert not known.admits(OTHER, now, leased=True, alone=True)
    # And nobody gets any when somebody else comes, until no more are in use than usually
    for left in range(concurrency.SLOW_ALONE - 1, 0, -1):
        known.end(ONE, now, now + 6_000)
        assert known.admits(OTHER, now + 6_000, leased=True) == (left < concurrency.SLOW_OF_A_PROJECT)


def test_what_was_earned_elsewhere_is_known_here_up_to_the_most_of_a_project() -> None:
    known, now = ConcurrencyLimits(), SLOW_MS + 1
    known.begin(ONE, 0)
    known.end(ONE, 0, now)
    for granted, has in ((4, 4), (2, 4), (99, concurrency.SLOW_OF_A_PROJECT)):
        known.grant(ONE, granted, now)
        assert known.places(ONE, now) == has


def test_what_a_prompt_one_earned_elsewhere_is_known_here_until_it_is_slow() -> None:
    known = ConcurrencyLimits()
    for granted, has in ((4, 4), (2, 4), (999, concurrency.MOST)):
        known.grant(ONE, granted, 0)
        assert known.places(ONE, 0) == has
    for _ in range(concurrency.MOST):
        assert known.admits(ONE, 0)
        known.begin(ONE, 0)
    assert not known.admits(ONE, 0)
    # When an answer is slow, then it has one again, and knows no better from elsewhere
    known.end(ONE, 0, SLOW_MS + 1, answered=False)
    known.grant(ONE, concurrency.MOST, SLOW_MS + 1)
    assert not known.admits(ONE, SLOW_MS + 1)


def tried_at_once(known: ConcurrencyLimits, key: Addressee, now: int, **how: bool) -> int:
    """Begin as many attempts as possible in the subscriber's turn; returns their number."""
    count = 0
    while known.admits(key, now, leased=True, spare_threads=True, **how):
        known.begin(key, now)
        count += 1
    return count


def test_one_that_is_met_for_the_first_time_is_tried_with_ten_and_goes_on_from_what_it_answered() -> None:
    # Given a subscriber whose turn nobody had before
    known = ConcurrencyLimits()
    known.meet(ONE, 0)
    # Then it has one attempt outside of its turn, or where few threads are free, and otherwise ten
    assert begun_at_once(known, ONE, 0) == 1
    assert not known.admits(ONE, 0, leased=True)
    assert tried_at_once(known, ONE, 0) == concurrency.MET_WITH - 1
    # When they are answered, slowly, then it has earned a place with each, and is never asked for less meanwhile
    for answered in range(1, concurrency.MET_WITH + 1):
        known.end(ONE, 0, 6_000)
        assert tried_at_once(known, ONE, 6_000, alone=True) == 1 + (answered == concurrency.MET_WITH)
        assert known.places(ONE, 6_000) == 1 + answered
    # And once that turn is over, only what it has earned counts
    known.met(ONE)
    known.meet(OTHER, 0)
    known.met(OTHER)
    assert tried_at_once(known, OTHER, 0) == 1


def test_one_that_is_met_and_hangs_has_one_attempt_at_a_time_as_soon_as_that_is_known() -> None:
    known, times_out = ConcurrencyLimits(), 10_000
    known.meet(ONE, 0)
    assert tried_at_once(known, ONE, 0) == concurrency.MET_WITH
    # When it has not answered for five seconds, then nothing more begins, though some are over
    known.end(ONE, 0, 100, answered=None)
    assert not known.admits(ONE, SLOW_MS + 1, leased=True, spare_threads=True)
    # And when the others have not been answered in time, then one at a time does
    for _ in range(concurrency.MET_WITH - 1):
        known.end(ONE, 0, times_out, answered=False)
    assert tried_at_once(known, ONE, times_out, alone=True) == 1
    # And one that is known to hang is not met
    known.end(ONE, times_out, 2 * times_out, answered=False)
    known.meet(ONE, 2 * times_out)
    assert tried_at_once(known, ONE, 2 * times_out) == 1
    # Nor is one in a run whose former one broke off
    known.meet(OTHER, 0)
    known.start_over()
    assert tried_at_once(known, OTHER, 0) == 1


def test_those_that_are_met_share_ten_with_the_slow_ones_of_their_project_and_take_none_from_those() -> None:
    known, now = ConcurrencyLimits(), SLOW_MS + 1
    slow: Addressee = ("p", "q", "slow")
    # Given a slow one that has earned four places and uses three of them
    known.begin(slow, 0)
    known.end(slow, 0, now)
    known.grant(slow, 4, now)
    for _ in range(3):
        known.begin(slow, now)
    # When two others are met, then they begin so many more that it is ten in all, but each at least one
    known.meet(ONE, now)
    known.meet(OTHER, now)
    assert tried_at_once(known, ONE, now) == concurrency.SLOW_OF_A_PROJECT - 3
    assert tried_at_once(known, OTHER, now) == 1
    # And once they count as slow, too, the first one has its places nevertheless
    assert known.slow(ONE, now + SLOW_MS + 1)
    assert tried_at_once(known, slow, now + SLOW_MS + 1) == 1
    # And ten that hang, and a project that is crowded, leave nothing to try with
    hanging(known, "q", concurrency.SLOW_OF_A_PROJECT, 0)
    waits: Addressee = ("q", "q", "waits")
    known.begin(waits, 0)
    known.end(waits, 0, now)
    assert known.crowded(waits, now)
    known.start_over()
    known.meet(("q", "q", "met"), now)
    assert tried_at_once(known, ("q", "q", "met"), now) == 1


def test_slow_ones_of_a_crowded_project_begin_one_attempt_each() -> None:
    # Given a slow subscriber that has all places of its project
    known, now = ConcurrencyLimits(), 10_000
    for key in (ONE, OTHER):
        known.begin(key, 0)
        known.end(key, 0, SLOW_MS + 1)
    known.grant(ONE, concurrency.SLOW_OF_A_PROJECT, now)
    assert not known.crowded(OTHER, now)
    while known.admits(ONE, now, leased=True):
        known.begin(ONE, now)
    # When another one of the project has none
    assert known.crowded(OTHER, now)
    assert not known.crowded(ONE, now)
    # Then the first gets no further ones, and the other one does
    for _ in range(concurrency.SLOW_OF_A_PROJECT - 1):
        known.end(ONE, now, now + 6_000)
    assert not known.admits(ONE, now + 6_000, leased=True)
    assert known.admits(OTHER, now + 6_000, leased=True)
    # And that for half a minute
    assert known.admits(ONE, now + 2_000 * concurrency.ASIDE_S, leased=True)


def test_who_is_forgotten_is_not_looked_at_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given an environment that remembers two subscribers, and three in a row
    monkeypatch.setattr(concurrency, "KNOWN", 2)
    known = ConcurrencyLimits()
    keys: list[Addressee] = [("p", "q", str(number)) for number in range(3)]
    for key in keys[:2]:
        known.begin(key, 0)
        known.end(key, 0, SLOW_MS + 1)
    assert [known.slow(key, SLOW_MS + 1) for key in keys] == [True, True, False]
    known.begin(keys[2], SLOW_MS + 1)
    # Then the first is forgotten, and the last is the one that is newly slow
    assert [known.slow(key, SLOW_MS + 1) for key in keys] == [False, True, False]
    assert known.newly_slow(2 * SLOW_MS + 2) == [keys[2]]


def test_one_of_two_attempts_that_is_over_leaves_the_other_under_way() -> None:
    known = ConcurrencyLimits()
    known.begin(ONE, 0)
    known.end(ONE, 0, 10)
    for begun in (10, 20):
        known.begin(ONE, begun)
    known.end(ONE, 10, SLOW_MS + 11)
    assert known.newly_slow(SLOW_MS + 21) == [ONE]


def test_a_projects_attempts_are_counted_until_they_end_or_their_run_did() -> None:
    known = ConcurrencyLimits()
    for key in (ONE, OTHER, OTHER, ("another", "q", "one")):
        known.begin(key, 0)
    assert (known.held("p"), known.held("another"), known.held("nobody")) == (3, 1, 0)
    known.end(OTHER, 0, 10)
    # A repeated end changes nothing
    known.end(OTHER, 7, 10)
    assert known.held("p") == 2
    known.start_over()
    assert known.held("p") == 0


def test_who_is_newly_slow_is_found_whatever_began_and_ended_before() -> None:
    # Given attempts that began together and one after them, of which some have ended
    known, third = ConcurrencyLimits(), ("p", "q", "third")
    known.begin(ONE, 0)
    known.begin(OTHER, 0)
    known.begin(third, 100)
    known.end(ONE, 0, 50)
    # Then the other one of those that began first is found when its time has come, and then the one after it
    assert known.newly_slow(SLOW_MS) == []
    assert known.newly_slow(SLOW_MS + 1) == [OTHER]
    known.end(OTHER, 0, SLOW_MS + 2)
    assert known.newly_slow(SLOW_MS + 100) == []
    assert known.newly_slow(SLOW_MS + 101) == [third]
    # And nobody, when all have ended
    known.end(third, 100, SLOW_MS + 102)
    assert known.newly_slow(9 * SLOW_MS) == []
