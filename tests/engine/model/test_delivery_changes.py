"""The effect of each change on a delivery, field by field, and that it changes nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.samples import message

from pushhub.base.errors import Forbidden
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.model.answer_rules import Asked, Stops
from pushhub.engine.model.backoff import Exponential, FixedDelay
from pushhub.engine.model.delivery import (
    STATUS_TEXT_BYTES,
    Attempt,
    Delivery,
    DeliveryState,
    EarlierAttempt,
    NextStep,
    Step,
    TargetStatus,
    acknowledge,
    added,
    after_asked_try,
    after_attempt,
    ask_for_try,
    close,
    counts_as_it_is,
    known_attempts,
    merge_attempt,
    next_step,
    opening,
    resume,
    retries_remaining,
    without_asked_try,
    without_target,
)
from pushhub.engine.model.message import Message, Ordering

START = 1_795_000_000_000
EXPIRES = START + 604_800_000
POLICY = FixedDelay(retries=2, delay_s=60)
HOLDING = Exponential(base_s=30, cap_s=3600, max_attempts=2, holds=True)


def a_message(
    *subscribers: str, unicast: bool = False, message_id: str = "0", ordering: Ordering | None = None
) -> Message:
    ids = {"project": "p", "queue": "q", "queue_uid": "u", "message_id": message_id}
    return message(
        **ids,
        body=b"x",
        due_at=START + 7000,
        subscriber_ids=subscribers or ("a",),
        unicast=unicast,
        ordering=ordering,
    )


def to_one(**changes: object) -> Delivery:
    """A delivery to one subscriber that has been tried three times, with every field set."""
    waiting = replace(
        opening(a_message("a"), "a"),
        state=DeliveryState.RETRYING,
        due_at=START + 90_000,
        tries=2,
        attempts=3,
        statuses={
            "a": TargetStatus(tries=3, status_code=500, message="Oh", last_try_at=START + 30_000, name="A", url="u:a")
        },
        last=an_attempt(),
        deferrals=4,
        reason="before",
        scheduled=True,
        version=8,
    )
    return replace(waiting, **changes)  # type: ignore[arg-type]


def to_any(*, cursor: int = 0, **changes: object) -> Delivery:
    """A unicast delivery to one of three."""
    delivery = replace(opening(a_message("a", "b", "c", unicast=True), "*"), due_at=START, scheduled=True, version=5)
    return replace(delivery, cursor=cursor, **changes)  # type: ignore[arg-type]


def an_attempt() -> Attempt:
    return Attempt(
        number=3,
        subscriber_id="a",
        verdict=Verdict.FAILED,
        status_code=500,
        error_class="",
        started_at=START + 29_000,
        finished_at=START + 30_000,
        bytes_out=1,
        bytes_in=2,
        wait_before_ms=0,
        wait_after_ms=60_000,
    )


def an_answer(status: int = 200, message: str = "OK", *, at: int = START + 90_500) -> Answer:
    return Answer(status_code=status, message=message, started_at=at, finished_at=at + 250, bytes_out=11, bytes_in=13)


BEFORE = EarlierAttempt(
    number=3,
    subscriber_id="a",
    verdict=Verdict.FAILED,
    status_code=500,
    message="Oh",
    started_at=START + 29_000,
    took_ms=1000,
)
"""What is remembered of :func:`an_attempt` once another one is made."""


def recorded(status: int, **more: object) -> Attempt:
    """The attempt that :func:`an_answer` ended, as the fourth of :func:`to_one`."""
    attempt = Attempt(
        number=4,
        subscriber_id="a",
        verdict=Verdict.FAILED,
        status_code=status,
        error_class="",
        started_at=START + 90_500,
        finished_at=START + 90_750,
        bytes_out=11,
        bytes_in=13,
        wait_before_ms=60_500,
        wait_after_ms=None,
    )
    return replace(attempt, **more)  # type: ignore[arg-type]


# -- opening


def test_a_delivery_opens_with_what_its_message_says() -> None:
    # Given a message that is delivered in order, from seven seconds after its acceptance on
    message = a_message("a", "b", ordering=Ordering(key="k", sequence=3))
    # When its delivery to b opens
    delivery = opening(message, "b")
    # Then
    assert delivery == Delivery(
        project="p",
        queue="q",
        queue_uid="u",
        message_id="0",
        subscriber_id="b",
        targets=("b",),
        accepted_at=START,
        expires_at=EXPIRES,
        state=DeliveryState.PENDING,
        due_at=START + 7000,
        delayed_until=START + 7000,
        order_key="k",
        sequence=3,
    )
    assert delivery.delivery_id == "0.b"
    assert delivery.key == message.delivery_key("b")


def test_unicast_starts_with_the_subscriber_whose_turn_it_is_and_goes_round() -> None:
    starts = {
        number: opening(a_message("a", "b", "c", unicast=True, message_id=str(number)), "*").targets
        for number in range(4)
    }
    assert starts == {0: ("a", "b", "c"), 1: ("b", "c", "a"), 2: ("c", "a", "b"), 3: ("a", "b", "c")}


def test_a_delivery_to_a_subscriber_that_came_later_is_marked_and_has_the_due_time_it_is_given() -> None:
    delivery = added(a_message("a"), "z", due_at=START + 99)
    assert delivery == replace(
        opening(a_message("a"), "a"), subscriber_id="z", targets=("z",), due_at=START + 99, added=True
    )
    assert added(a_message("a"), "z", due_at=None).due_at is None


# -- the next step


def test_a_try_that_a_person_asked_for_comes_first_until_the_message_expires() -> None:
    asked = to_one(asked_at=START, due_at=EXPIRES + 1)
    assert next_step(asked, POLICY, EXPIRES - 1) == NextStep(step=Step.ASKED_TRY)
    assert next_step(asked, POLICY, EXPIRES) == NextStep(step=Step.CLOSE, closes_as=DeliveryState.EXPIRED)


def test_a_delivery_that_was_only_asked_for_expires_and_does_nothing_before() -> None:
    # Given a delivery without automatic tries, created for a manual try
    delivery = added(a_message("a"), "z", due_at=None)
    assert next_step(delivery, POLICY, EXPIRES - 1) == NextStep(step=Step.NOTHING)
    assert next_step(delivery, POLICY, EXPIRES) == NextStep(step=Step.CLOSE, closes_as=DeliveryState.EXPIRED)
    # And one that is held for a person waits indefinitely
    held = to_one(state=DeliveryState.HELD, due_at=None)
    assert next_step(held, POLICY, EXPIRES + 10**9) == NextStep(step=Step.NOTHING)


def test_a_reservation_outlasts_its_message_and_any_other_wait_does_not() -> None:
    late = EXPIRES + 5000
    assert to_one(state=DeliveryState.RESERVED, due_at=late).wakes_at == late
    assert to_one(state=DeliveryState.RETRYING, due_at=late).wakes_at == EXPIRES
    assert to_one(due_at=None).wakes_at is None


def test_tries_are_used_up_only_between_rounds() -> None:
    # Given all tries used up: a round that has begun continues, another does not begin
    assert next_step(to_any(cursor=1, tries=3), POLICY, START) == NextStep(step=Step.ATTEMPT)
    assert next_step(to_any(tries=3), POLICY, START).closes_as is DeliveryState.EXHAUSTED
    assert next_step(to_any(tries=2), POLICY, START) == NextStep(step=Step.ATTEMPT)
    assert next_step(to_any(tries=2), HOLDING, START).closes_as is DeliveryState.HELD


# -- after an attempt


def test_a_failed_attempt_is_on_the_books_and_the_next_is_due() -> None:
    # Given a delivery with one try left
    before = to_one(tries=1)
    # When it fails again
    after = after_attempt(
        before,
        an_answer(503, "Busy"),
        Verdict.FAILED,
        policy=POLICY,
        reserve_ms=1,
        jitter=0.5,
        subscriber="Anna",
        url="u:anna",
        dialect="hub",
        asked=Asked(wait_ms=5, reason="not for this"),
    )
    # Then every field is as the attempt left it
    status = TargetStatus(
        tries=4, status_code=503, message="Busy", last_try_at=START + 90_750, name="Anna", url="u:anna"
    )
    assert after == replace(
        before,
        state=DeliveryState.RETRYING,
        due_at=START + 90_750 + 60_000,
        tries=2,
        attempts=4,
        statuses={"a": status},
        earlier=(BEFORE,),
        last=recorded(503, wait_after_ms=60_000, subscriber="Anna", dialect="hub", tries_max=3),
        reason="",
        scheduled=False,
        version=9,
    )


def test_success_settles_when_the_answer_came() -> None:
    before = to_one()
    after = after_attempt(before, an_answer(), Verdict.DELIVERED, policy=POLICY, reserve_ms=1, jitter=0)
    # The subscriber's name and URL stay as they were, because the caller gave none
    status = TargetStatus(tries=4, status_code=200, message="OK", last_try_at=START + 90_750, name="A", url="u:a")
    assert after == replace(
        before,
        state=DeliveryState.DELIVERED,
        due_at=None,
        tries=3,
        attempts=4,
        statuses={"a": status},
        earlier=(BEFORE,),
        last=recorded(200, verdict=Verdict.DELIVERED, tries_max=3),
        settled_at=START + 90_750,
        reason="",
        scheduled=False,
        version=9,
    )


def test_waits_before_and_after_an_attempt_are_never_negative() -> None:
    # Given a clock that is behind the one that recorded the previous attempt
    after = after_attempt(to_one(), an_answer(at=START), Verdict.RESERVED, policy=POLICY, reserve_ms=-400, jitter=0)
    assert after.last is not None
    assert (after.last.wait_before_ms, after.last.wait_after_ms) == (0, 0)


def test_the_longer_of_the_policys_wait_and_the_asked_one_counts() -> None:
    def due(asked_ms: int) -> int | None:
        asked = Asked(wait_ms=asked_ms)
        after = after_attempt(
            to_one(tries=0), an_answer(503), Verdict.FAILED, policy=POLICY, reserve_ms=0, jitter=0, asked=asked
        )
        return after.due_at

    assert due(59_999) == START + 90_750 + 60_000
    assert due(60_001) == START + 90_750 + 60_001


@pytest.mark.parametrize(("policy", "ends_as"), [(POLICY, DeliveryState.EXHAUSTED), (HOLDING, DeliveryState.HELD)])
@pytest.mark.parametrize("stops", [Stops.DELIVERY, Stops.SUBSCRIBER])
def test_an_answer_that_asks_to_stop_ends_it_with_tries_left(
    policy: FixedDelay | Exponential, ends_as: DeliveryState, stops: Stops
) -> None:
    asked = Asked(stops=stops, reason="status_410")
    after = after_attempt(
        to_one(tries=0), an_answer(410), Verdict.FAILED, policy=policy, reserve_ms=0, jitter=0, asked=asked
    )
    assert (after.state, after.due_at, after.tries, after.reason) == (ends_as, None, 1, "status_410")
    assert after.settled_at == (START + 90_750 if ends_as is DeliveryState.EXHAUSTED else None)


def test_in_unicast_who_is_disabled_leaves_the_others_and_a_stopped_message_does_not() -> None:
    def after(stops: Stops, cursor: int = 0) -> Delivery:
        return after_attempt(
            to_any(cursor=cursor),
            an_answer(410),
            Verdict.FAILED,
            policy=POLICY,
            reserve_ms=0,
            jitter=0,
            asked=Asked(stops=stops, wait_ms=10**9, reason="status_410"),
        )

    # Then another subscriber is asked at once, whatever wait was requested
    next_one = after(Stops.SUBSCRIBER)
    assert (next_one.state, next_one.cursor, next_one.due_at) == (DeliveryState.RETRYING, 1, START + 90_750)
    assert (next_one.tries, next_one.reason) == (0, "")
    # And the last one of the round leads to the next round
    last = after(Stops.SUBSCRIBER, cursor=2)
    assert (last.state, last.cursor, last.tries, last.reason) == (DeliveryState.RETRYING, 0, 1, "")
    # But if the message is not wanted, nobody else is asked
    stopped = after(Stops.DELIVERY)
    assert (stopped.state, stopped.cursor, stopped.reason) == (DeliveryState.EXHAUSTED, 0, "status_410")


def test_a_success_that_asks_to_be_disabled_is_a_success() -> None:
    asked = Asked(stops=Stops.SUBSCRIBER, reason="asked_to_disable")
    after = after_attempt(to_one(), an_answer(), Verdict.DELIVERED, policy=POLICY, reserve_ms=0, jitter=0, asked=asked)
    assert (after.state, after.reason) == (DeliveryState.DELIVERED, "")


def test_postponements_are_counted_and_cost_no_try_also_in_the_middle_of_a_round() -> None:
    after = after_attempt(
        to_any(cursor=1, tries=1, deferrals=2), an_answer(), Verdict.POSTPONED, policy=POLICY, reserve_ms=500, jitter=0
    )
    assert (after.state, after.due_at) == (DeliveryState.PENDING, START + 90_750 + 500)
    assert (after.tries, after.deferrals, after.cursor) == (1, 3, 0)


def test_texts_of_all_subscribers_together_stay_bounded() -> None:
    # Given the maximum number of subscribers, and a long answer with letters of three bytes
    names = tuple(f"s{number}" for number in range(1700))
    delivery = opening(a_message(*names, unicast=True), "*")
    after = after_attempt(delivery, an_answer(500, "€" * 200), Verdict.FAILED, policy=POLICY, reserve_ms=0, jitter=0)
    # Then each keeps its share of whole letters
    assert after.status("s0").message == "€" * (STATUS_TEXT_BYTES // 1700 // 3)
    # And characters that cannot be written as UTF-8 are replaced
    odd = after_attempt(to_one(), an_answer(500, "\ud800!"), Verdict.FAILED, policy=POLICY, reserve_ms=0, jitter=0)
    assert odd.status("a").message == "?!"


# -- an attempt during which the delivery changed


def test_an_acknowledgement_during_its_attempt_stands_with_the_attempt_on_the_books() -> None:
    # Given an attempt that is acknowledged before its answer
    begun = to_one()
    current = acknowledge(begun, "a", 4, START + 90_600)
    # When the answer comes
    merged = merge_attempt(current, begun, an_answer(500, "late"), Verdict.FAILED)
    # Then the status is that of the acknowledgement, except for the time of the try
    status = TargetStatus(
        tries=4,
        status_code=200,
        message="Message was acknowledged.",
        last_try_at=START + 90_750,
        name="A",
        url="u:a",
    )
    assert merged == replace(
        current,
        tries=3,
        attempts=4,
        statuses={"a": status},
        last=recorded(500),
        earlier=(BEFORE,),
        version=current.version + 1,
    )


def test_an_answer_to_another_attempt_than_the_acknowledged_one_is_dropped() -> None:
    # Given a delivery whose third attempt is acknowledged
    begun = to_one(attempts=2)
    current = acknowledge(to_one(), "a", 3, START + 60_000)
    # When the answer to a duplicate of it comes, success or not
    assert merge_attempt(current, begun, an_answer(), Verdict.FAILED) is None
    assert merge_attempt(current, begun, an_answer(), Verdict.DELIVERED) is None
    # And an answer arrives after its attempt's number was used by another attempt
    assert merge_attempt(to_one(acknowledged_attempt=4), to_one(), an_answer(), Verdict.FAILED) is None


@pytest.mark.parametrize("state", [DeliveryState.CANCELLED, DeliveryState.EXPIRED])
@pytest.mark.parametrize("verdict", [Verdict.DELIVERED, Verdict.FAILED])
def test_an_attempt_of_what_its_owner_or_its_time_ends_meanwhile_is_recorded_and_the_end_stands(
    state: DeliveryState, verdict: Verdict
) -> None:
    # Given a delivery that ends without an attempt while one is made
    begun = to_one()
    ended = close(begun, state, START + 90_600)
    # When its answer comes, and that of a duplicate
    late = merge_attempt(ended, begun, an_answer(201, "Made"), verdict, subscriber="A2", url="u:a2", dialect="hub")
    assert late is not None
    # Then it is on the books once, and nothing is due
    status = TargetStatus(tries=4, status_code=201, message="Made", last_try_at=START + 90_750, name="A2", url="u:a2")
    attempt = replace(recorded(201), verdict=verdict, subscriber="A2", dialect="hub", wait_after_ms=None)
    assert late == replace(
        ended, tries=3, attempts=4, statuses={"a": status}, last=attempt, earlier=(BEFORE,), version=10
    )
    assert merge_attempt(late, begun, an_answer(), Verdict.DELIVERED) is None


def test_attempts_under_way_while_manual_tries_end_a_delivery_are_recorded() -> None:
    # Given an automatic try under way, and two manual ones beside it, of which the second ends the delivery
    begun = to_one()
    current = begun
    for code, verdict in ((500, Verdict.FAILED), (200, Verdict.DELIVERED)):
        wanted = ask_for_try(current, START + 90_400)
        current = after_asked_try(wanted, an_answer(code), verdict, asked_at=wanted.asked_at)
        assert current.attempts > 3
    # When the automatic one's answer comes, also after the first manual one only
    late = merge_attempt(current, begun, an_answer(503, "Busy", at=START + 91_000), Verdict.FAILED)
    # Then it is the sixth attempt, what arrived stays so, and a duplicate of it is not counted
    assert late is not None
    assert (late.state, late.attempts, late.tries, late.settled_at) == (
        DeliveryState.DELIVERED,
        6,
        3,
        current.settled_at,
    )
    assert late.last is not None
    assert (late.last.number, late.last.status_code, late.last.manual) == (6, 503, False)
    assert [each.manual for each in known_attempts(late)] == [False, True, True, False]
    assert (late.status("a").status_code, late.status("a").tries) == (200, 6)
    assert merge_attempt(late, begun, an_answer(), Verdict.DELIVERED) is None


def test_success_of_an_attempt_that_was_recorded_otherwise_delivers() -> None:
    # Given a duplicate that failed first, and waits in the schedule
    begun = to_one()
    current = to_one(attempts=4, tries=3, version=12)
    # When the other one succeeds
    merged = merge_attempt(current, begun, an_answer(201, "Made"), Verdict.DELIVERED)
    # Then the delivery is delivered; the attempt is counted once
    status = TargetStatus(tries=3, status_code=201, message="Made", last_try_at=START + 90_750, name="A", url="u:a")
    assert merged == replace(
        current,
        state=DeliveryState.DELIVERED,
        due_at=None,
        settled_at=START + 90_750,
        statuses={"a": status},
        scheduled=False,
        version=13,
    )


def test_statuses_of_others_are_kept() -> None:
    # Given a unicast delivery with the status of another subscriber
    other = {"c": TargetStatus(tries=1, status_code=500)}
    begun = to_any(statuses=other)
    # Then every way to a status keeps it
    tried = after_attempt(begun, an_answer(), Verdict.DELIVERED, policy=POLICY, reserve_ms=0, jitter=0)
    merged = merge_attempt(replace(begun, version=6), begun, an_answer(), Verdict.DELIVERED)
    acknowledged = acknowledge(begun, "a", 1, START)
    late = merge_attempt(acknowledged, begun, an_answer(), Verdict.RESERVED)
    for each in (tried, merged, acknowledged, late):
        assert each is not None
        assert set(each.statuses) == {"a", "c"}
        assert each.statuses["c"] == other["c"]


@pytest.mark.parametrize("field", ["state", "due_at", "tries", "cursor", "update_url"])
def test_an_automatic_try_counts_as_it_is_while_what_it_was_made_for_stands(field: str) -> None:
    # Given a delivery for which a person asked for a try while an automatic one is in progress
    begun = to_one()
    assert counts_as_it_is(to_one(asked_at=START, version=9), begun)
    # Then it does not if anything else has changed
    other = {"state": DeliveryState.POLLING, "due_at": START, "tries": 0, "cursor": 1, "update_url": "u:x"}[field]
    assert not counts_as_it_is(to_one(**{field: other}), begun)


def test_nothing_counts_as_it_is_once_it_is_settled() -> None:
    ended = close(to_one(), DeliveryState.CANCELLED, START)
    assert not counts_as_it_is(ended, ended)


def test_an_asked_for_try_counts_as_it_is_until_another_one_was_made_for_it() -> None:
    begun = to_one(asked_at=START)
    assert counts_as_it_is(close(begun, DeliveryState.HELD, START), begun) is False
    assert counts_as_it_is(to_one(asked_at=START, state=DeliveryState.DELIVERED, due_at=None), begun)
    assert not counts_as_it_is(to_one(), begun)
    # Asked for again meanwhile, it is made for the first request, and the second stays
    again = to_one(asked_at=START + 1)
    assert counts_as_it_is(again, begun)
    assert after_asked_try(again, an_answer(), Verdict.DELIVERED, asked_at=START).asked_at == START + 1


@pytest.mark.parametrize(("status", "verdict", "waits"), [(200, Verdict.DELIVERED, False), (500, Verdict.FAILED, True)])
def test_after_an_asked_for_try_that_ends_it_nothing_is_waited_for(status: int, verdict: Verdict, waits: bool) -> None:
    # Given a delivery whose next automatic try is arranged, and a try that a person asked for
    wanted = to_one(asked_at=START)
    # When that succeeds, the record of it names no wait; if it fails, the automatic try is still to come
    tried = after_asked_try(wanted, an_answer(status, at=START + 40_000), verdict, asked_at=START)
    assert tried.last is not None
    assert (tried.last.wait_after_ms is not None) == waits == (tried.due_at is not None)


# -- acknowledgements


def test_an_acknowledgement_settles_and_says_so() -> None:
    before = to_one(cursor=0)
    after = acknowledge(before, "a", 3, START + 60_000, name="Other", url="u:other")
    # Then the subscriber's name and URL stay as they were when it was asked
    status = TargetStatus(
        tries=3,
        status_code=200,
        message="Message was acknowledged.",
        last_try_at=START + 60_000,
        name="A",
        url="u:a",
    )
    assert after == replace(
        before,
        state=DeliveryState.ACKNOWLEDGED,
        due_at=None,
        acknowledged_attempt=3,
        statuses={"a": status},
        settled_at=START + 60_000,
        scheduled=False,
        version=9,
    )


def test_an_acknowledgement_of_an_open_attempt_takes_the_subscribers_name_from_the_queue() -> None:
    # Given the second of three in its first attempt
    after = acknowledge(to_any(cursor=1), "b", 1, START + 10, name="B", url="u:b")
    assert (after.status("b").name, after.status("b").url) == ("B", "u:b")
    # Then it is over, not in the middle of a round
    assert after.cursor == 0


def test_an_acknowledgement_is_good_until_the_next_try_is_due() -> None:
    reserved = to_one(state=DeliveryState.RESERVED)
    assert acknowledge(reserved, "a", 3, START + 89_999).state is DeliveryState.ACKNOWLEDGED
    for attempt, now in ((3, START + 90_000), (2, START), (5, START)):
        with pytest.raises(Forbidden, match=r"^Reservation has timed out$"):
            acknowledge(reserved, "a", attempt, now)


def test_what_was_delivered_or_acknowledged_by_an_attempt_may_be_acknowledged_with_it_again() -> None:
    delivered = close(to_one(), DeliveryState.DELIVERED, START)
    assert acknowledge(delivered, "a", 3, START + 10**9) is delivered
    # Given an acknowledgement of an attempt that has not answered yet
    acknowledged = acknowledge(to_one(), "a", 4, START)
    assert acknowledge(acknowledged, "a", 4, START + 10**9) is acknowledged
    # Then no other reservation is good
    for attempt in (2, 5):
        with pytest.raises(Forbidden):
            acknowledge(delivered, "a", attempt, START)


# -- ends without an attempt


@pytest.mark.parametrize("state", [DeliveryState.EXPIRED, DeliveryState.CANCELLED, DeliveryState.EXHAUSTED])
def test_closing_ends_all_that_was_under_way(state: DeliveryState) -> None:
    before = to_any(cursor=2, asked_at=START, tries=1)
    assert close(before, state, START + 5, "queue_deleted") == replace(
        before,
        state=state,
        due_at=None,
        cursor=0,
        settled_at=START + 5,
        asked_at=None,
        reason="queue_deleted",
        scheduled=False,
        version=6,
    )
    assert close(before, state, START).reason == ""


def test_leaving_it_to_a_person_settles_nothing() -> None:
    assert close(to_one(), DeliveryState.HELD, START).settled_at is None


# -- a removed subscriber


def test_the_next_subscriber_that_is_there_is_asked_and_nothing_is_stored_for_it() -> None:
    def following(cursor: int, *here: str) -> Delivery:
        return without_target(to_any(cursor=cursor), here, POLICY, now=START, jitter=0, reason="subscriber_removed")

    assert following(0, "b", "c") == to_any(cursor=1)
    assert following(0, "c") == to_any(cursor=2)
    assert following(1, "a", "c") == to_any(cursor=2)
    # Then those before it in the round, and itself, are not asked in this round
    assert following(1, "a", "b").cursor == 0


def test_a_round_that_ends_with_a_subscriber_that_is_gone_was_a_try() -> None:
    # Given a unicast delivery whose last subscriber of the round is gone, after another one failed
    before = to_any(cursor=2, tries=1, attempts=4)
    after = without_target(before, {"a"}, POLICY, now=START + 9, jitter=0, reason="subscriber_removed")
    assert after == replace(
        before,
        state=DeliveryState.RETRYING,
        due_at=START + 9 + 60_000,
        tries=2,
        cursor=0,
        changed_at=START + 9,
        scheduled=False,
        version=6,
    )


def test_its_wait_is_spread_as_any_other() -> None:
    policy = Exponential(base_s=100, cap_s=3600, spread=0.5)
    after = without_target(to_any(cursor=2), {"a"}, policy, now=START, jitter=0.5, reason="")
    assert after.due_at == START + 125_000


@pytest.mark.parametrize(("policy", "ends_as"), [(POLICY, DeliveryState.EXHAUSTED), (HOLDING, DeliveryState.HELD)])
def test_when_that_was_the_last_try_it_ends_for_the_reason_that_nobody_was_asked(
    policy: FixedDelay | Exponential, ends_as: DeliveryState
) -> None:
    most = policy.max_tries or 0
    before = to_any(cursor=2, tries=most - 1)
    after = without_target(before, {"a"}, policy, now=START + 9, jitter=0, reason="subscriber_disabled")
    assert after == replace(close(before, ends_as, START + 9, "subscriber_disabled"), tries=most)


def test_when_nobody_is_left_it_ends_whatever_the_policy_holds() -> None:
    before = to_any(cursor=1)
    after = without_target(before, {"other"}, HOLDING, now=START + 9, jitter=0, reason="subscriber_removed")
    assert after == close(before, DeliveryState.EXHAUSTED, START + 9, "subscriber_removed")


# -- manual tries


def test_resuming_makes_it_due_and_counts_postponements_anew() -> None:
    waiting = to_one()
    assert resume(waiting, START + 5) == replace(
        waiting, due_at=START + 5, deferrals=0, changed_at=START + 5, reason="", scheduled=True, version=9
    )
    # Given one that was held: its tries start again
    held = to_one(state=DeliveryState.HELD, due_at=None, scheduled=False)
    assert resume(held, START + 5) == replace(
        held,
        state=DeliveryState.RETRYING,
        due_at=START + 5,
        tries=0,
        deferrals=0,
        changed_at=START + 5,
        reason="",
        scheduled=True,
        version=9,
    )
    with pytest.raises(Forbidden, match=r"^Delivery is settled$"):
        resume(close(waiting, DeliveryState.EXPIRED, START), START)


def test_asking_for_a_try_changes_nothing_but_that() -> None:
    before = to_one()
    asked = ask_for_try(before, START + 5)
    assert asked == replace(before, asked_at=START + 5, version=9)
    # Asked once more, even by a clock that is behind, it is another request
    assert ask_for_try(asked, START + 6) == replace(before, asked_at=START + 6, version=10)
    assert ask_for_try(asked, START + 4) == replace(before, asked_at=START + 6, version=10)


@pytest.mark.parametrize(
    "changes",
    [
        {"state": DeliveryState.EXPIRED, "due_at": None},
        {"state": DeliveryState.CANCELLED, "due_at": None},
        {"expires_at": START + 5},
        {"targets": ("a", "b")},
        {"subscriber_id": "*"},
        {"update_url": "https://acme.example/status"},
    ],
)
def test_what_cannot_be_tried_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(Forbidden, match=r"^Delivery cannot be tried again$"):
        ask_for_try(to_one(**changes), START + 5)


def test_an_asked_for_try_that_fails_leaves_all_but_the_books() -> None:
    before = to_one(asked_at=START)
    after = after_asked_try(
        before,
        an_answer(500, "No"),
        Verdict.FAILED,
        asked_at=before.asked_at,
        subscriber="Anna",
        url="u:anna",
        dialect="hub",
    )
    status = TargetStatus(tries=4, status_code=500, message="No", last_try_at=START + 90_750, name="Anna", url="u:anna")
    # Then the recorded wait is until the automatic try, which was due before the answer came
    assert after == replace(
        before,
        attempts=4,
        statuses={"a": status},
        earlier=(BEFORE,),
        last=recorded(500, wait_after_ms=0, manual=True, subscriber="Anna", dialect="hub"),
        asked_at=None,
        version=9,
    )


def test_an_asked_for_try_that_succeeds_delivers_and_ends_the_automatic_ones() -> None:
    before = to_one(asked_at=START)
    after = after_asked_try(before, an_answer(), Verdict.DELIVERED, asked_at=before.asked_at)
    # Given no name, the known name stays
    status = TargetStatus(tries=4, status_code=200, message="OK", last_try_at=START + 90_750, name="A", url="u:a")
    assert after == replace(
        before,
        state=DeliveryState.DELIVERED,
        due_at=None,
        attempts=4,
        statuses={"a": status},
        earlier=(BEFORE,),
        last=recorded(200, verdict=Verdict.DELIVERED, wait_after_ms=None, manual=True, subscriber="", dialect="raw"),
        settled_at=START + 90_750,
        asked_at=None,
        reason="",
        scheduled=False,
        version=9,
    )


@pytest.mark.parametrize("state", [DeliveryState.DELIVERED, DeliveryState.ACKNOWLEDGED])
@pytest.mark.parametrize("verdict", [Verdict.DELIVERED, Verdict.FAILED])
def test_what_had_arrived_stays_as_it_ended(state: DeliveryState, verdict: Verdict) -> None:
    before = replace(close(to_one(), state, START + 77), asked_at=START + 80)
    after = after_asked_try(
        before,
        an_answer(),
        verdict,
        asked_at=before.asked_at,
        asked=Asked(stops=Stops.DELIVERY, reason="asked_to_stop"),
    )
    assert (after.state, after.settled_at, after.reason) == (state, START + 77, "")
    assert (after.attempts, after.asked_at) == (4, None)


def test_an_answer_that_stops_a_message_ends_its_automatic_tries_too_and_one_that_disables_does_not() -> None:
    before = to_one(asked_at=START)
    stopped = after_asked_try(
        before,
        an_answer(400),
        Verdict.FAILED,
        asked_at=before.asked_at,
        asked=Asked(stops=Stops.DELIVERY, reason="asked_to_stop"),
    )
    assert (stopped.state, stopped.due_at, stopped.settled_at) == (DeliveryState.EXHAUSTED, None, START + 90_750)
    assert (stopped.reason, stopped.scheduled) == ("asked_to_stop", False)
    disabled = after_asked_try(
        before,
        an_answer(410),
        Verdict.FAILED,
        asked_at=before.asked_at,
        asked=Asked(stops=Stops.SUBSCRIBER, reason="status_410"),
    )
    assert (disabled.state, disabled.due_at, disabled.reason) == (DeliveryState.RETRYING, START + 90_000, "before")


def test_a_delivery_without_automatic_tries_ends_with_the_one_that_was_asked_for() -> None:
    before = replace(added(a_message("a"), "z", due_at=None), asked_at=START, version=1)
    failed = after_asked_try(before, an_answer(500), Verdict.FAILED, asked_at=before.asked_at)
    assert (failed.state, failed.reason) == (DeliveryState.EXHAUSTED, "")
    delivered = after_asked_try(before, an_answer(), Verdict.DELIVERED, asked_at=before.asked_at)
    assert (delivered.state, delivered.reason) == (DeliveryState.DELIVERED, "")
    # And without a try when its subscriber was removed
    assert without_asked_try(before, START + 5, "subscriber_removed") == close(
        before, DeliveryState.EXHAUSTED, START + 5, "subscriber_removed"
    )
    # While one with automatic tries continues with them
    waiting = to_one(asked_at=START)
    assert without_asked_try(waiting, START + 5, "subscriber_removed") == replace(
        waiting, asked_at=None, changed_at=START + 5, version=9
    )


def test_retries_that_remain_are_counted_as_ironmq_counts_them() -> None:
    assert [retries_remaining(to_one(tries=tries), POLICY) for tries in range(5)] == [2, 2, 1, 0, 0]
    assert retries_remaining(to_one(tries=0), Exponential(base_s=1, cap_s=1)) == 0
    for state in (DeliveryState.EXHAUSTED, DeliveryState.EXPIRED):
        assert retries_remaining(close(to_one(tries=0), state, START), POLICY) == 0


def answered(delivery: Delivery, *bodies: str) -> Delivery:
    for place, body in enumerate(bodies):
        answer = replace(an_answer(500, at=START + 1000 * place), body=body.encode())
        delivery = after_attempt(delivery, answer, Verdict.FAILED, policy=POLICY, reserve_ms=0, jitter=0)
    return delivery


def said(delivery: Delivery) -> list[str]:
    return [each.answer for each in known_attempts(delivery)]


def test_answers_are_kept_as_long_as_there_is_room_for_them_the_newest_first() -> None:
    # Short ones are all kept, and of a long one the beginning
    assert said(answered(to_one(last=None), "é" * 200)) == ["é" * 150]
    assert said(answered(to_one(last=None), "a", "b", "é" * 100)) == ["a", "b", "é" * 100]
    # Long ones that differ leave no room for those before
    many = said(answered(to_one(last=None), *(str(each) * 200 for each in range(5))))
    assert many == ["", "", "", "", "4" * 200]
    # In an outage one answer is like the other: that takes the room of one
    assert said(answered(to_one(last=None), *["x" * 120] * 5)) == ["x" * 120] * 5
    # However many there are, the last one's beginning is kept
    sixty = said(answered(to_one(last=None), *(f"{each}-" + "x" * 400 for each in range(60))))
    assert sixty[-2:] == ["", "59-" + "x" * 97]
    # Other protocols have logs of their own
    others = answered(to_one(last=None, queue="svix/app_1"), "a")
    assert others.last is not None
    assert others.last.answer == ""
