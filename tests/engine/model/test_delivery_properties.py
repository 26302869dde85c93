"""Any order of attempts, acknowledgements, duplicates and clock steps leaves a delivery in a legal state."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pushhub.base.errors import Forbidden
from pushhub.base.verdict import Answer, Verdict, iron_verdict
from pushhub.engine.model.backoff import FixedDelay
from pushhub.engine.model.delivery import (
    SETTLED,
    Delivery,
    DeliveryState,
    Step,
    acknowledge,
    after_asked_try,
    after_attempt,
    ask_for_try,
    close,
    counts_as_it_is,
    merge_attempt,
    next_step,
    opening,
    retries_remaining,
    schedule,
)
from pushhub.engine.model.message import Message

START = 1_795_000_000_000
STATUS = st.sampled_from([200, 201, 204, 202, 202, 301, 404, 500, 503, 0])


def a_message(subscribers: int, *, unicast: bool, delay_s: int, lives_s: int) -> Message:
    return Message(
        project="p" * 24,
        queue="orders",
        queue_uid="q" * 12,
        message_id="1911850762384703488",
        body=b"x",
        body_size=1,
        accepted_at=START,
        due_at=START + delay_s * 1000,
        expires_at=START + lives_s * 1000,
        subscriber_ids=tuple(f"s{number}" for number in range(subscribers)),
        unicast=unicast,
    )


def an_answer(status: int, started_at: int, took_ms: int) -> Answer:
    return Answer(
        status_code=status,
        message="",
        error_class="" if status else "timeout",
        started_at=started_at,
        finished_at=started_at + took_ms,
    )


class DeliveryLife(RuleBasedStateMachine):
    """Plays a store with version checks, a pusher that may run twice at the same time, subscribers and owners."""

    @initialize(
        retries=st.integers(0, 4),
        delay_s=st.sampled_from([3, 60, 86_400]),
        subscribers=st.integers(1, 3),
        unicast=st.booleans(),
        message_delay_s=st.sampled_from([0, 5, 5000]),
        lives_s=st.sampled_from([100, 604_800]),
    )
    def accepted(
        self, retries: int, delay_s: int, subscribers: int, unicast: bool, message_delay_s: int, lives_s: int
    ) -> None:
        self.policy = FixedDelay(retries=retries, delay_s=delay_s)
        self.message = a_message(subscribers, unicast=unicast, delay_s=message_delay_s, lives_s=lives_s)
        self.stored = opening(self.message, "*" if unicast else "s0")
        self.now = START
        self.open: list[Delivery] = []
        self.acknowledged = False
        self.pushes_begun = 0
        self.asked_tries = 0

    def save(self, delivery: Delivery) -> bool:
        if delivery.version != self.stored.version + 1:
            return False
        recovered = delivery.state is DeliveryState.DELIVERED and delivery.last is not None and delivery.last.manual
        assert self.stored.state not in SETTLED or delivery.state == self.stored.state or recovered
        self.stored = delivery
        return True

    @rule(seconds=st.sampled_from([0, 1, 3, 61, 3600, 86_401, 700_000]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds * 1000

    @rule(status=STATUS, early_ms=st.sampled_from([-1, 0, 0, 0, 1]))
    def its_time_comes(self, status: int, early_ms: int) -> None:
        """The usual case: looked at when it is about due, pushed, answered."""
        if self.stored.due_at is not None:
            self.now = max(self.now, self.stored.due_at + early_ms)
        self.an_order_arrives()
        if self.open:
            self.an_answer_comes(status=status, took_ms=20, which=len(self.open) - 1, scheduled=False)

    @rule()
    def an_order_arrives(self) -> None:
        """Including stale and duplicate ones: the stored state decides."""
        seen = next_step(self.stored, self.policy, self.now)
        if seen.step is Step.ATTEMPT:
            assert not self.acknowledged, "what was acknowledged is never pushed again"
            self.open.append(self.stored)
            self.pushes_begun += 1
        elif seen.step is Step.ASKED_TRY:
            self.open.append(self.stored)
            self.pushes_begun += 1
        elif seen.step is Step.CLOSE:
            assert seen.closes_as is not None
            assert self.save(close(self.stored, seen.closes_as, self.now))
        elif seen.step is Step.WAIT:
            assert seen.wait_ms > 0

    @precondition(lambda self: self.open)
    @rule(status=STATUS, took_ms=st.integers(0, 10_000), which=st.integers(0, 5), scheduled=st.booleans())
    def an_answer_comes(self, status: int, took_ms: int, which: int, scheduled: bool) -> None:
        begun = self.open.pop(which % len(self.open))
        answer = an_answer(status, self.now, took_ms)
        self.now += took_ms
        verdict = iron_verdict(answer)

        def attempted(before: Delivery) -> Delivery:
            if begun.asked_at is not None:
                return after_asked_try(before, answer, verdict, asked_at=begun.asked_at)
            after = after_attempt(
                before, answer, verdict, policy=self.policy, reserve_ms=self.policy.delay_s * 1000, jitter=0.5
            )
            return schedule(after) if scheduled and after.due_at is not None else after

        before = self.stored
        if not self.save(attempted(begun)):
            if counts_as_it_is(before, begun):
                assert self.save(attempted(before))
            else:
                folded = merge_attempt(before, begun, answer, verdict)
                if folded is not None:
                    assert self.save(folded)
        if begun.asked_at is not None and self.stored.attempts > before.attempts:
            self.asked_tries += 1
            # Whoever asked after it had begun still gets another one.
            assert self.stored.asked_at == (None if before.asked_at == begun.asked_at else before.asked_at)
            self.only_a_success_changed_anything(before, verdict)

    def only_a_success_changed_anything(self, before: Delivery, verdict: Verdict) -> None:
        """A manual try leaves the automatic ones unchanged."""
        stored = self.stored
        assert (stored.tries, stored.cursor) == (before.tries, before.cursor)
        if verdict is Verdict.DELIVERED:
            assert stored.state in (DeliveryState.DELIVERED, DeliveryState.ACKNOWLEDGED)
        else:
            assert (stored.state, stored.due_at, stored.scheduled, stored.settled_at) == (
                before.state,
                before.due_at,
                before.scheduled,
                before.settled_at,
            )

    @rule()
    def a_person_asks_for_a_try(self) -> None:
        """At any time, perhaps twice."""
        try:
            wanted = ask_for_try(self.stored, self.now)
        except Forbidden:
            over = self.stored.state in (DeliveryState.EXPIRED, DeliveryState.CANCELLED)
            assert over or self.now >= self.stored.expires_at or self.message.unicast
            return
        assert self.save(wanted)

    @precondition(lambda self: self.pushes_begun)
    @rule(back=st.integers(-1, 2))
    def a_subscriber_acknowledges(self, back: int) -> None:
        """With the reservation of the open attempt (-1), the last one (0), or an older one."""
        attempt = self.stored.attempts - back
        under_way = any(begun.attempts + 1 == attempt for begun in self.open)
        if attempt < 1 or (attempt > self.stored.attempts and not under_way):
            return
        try:
            after = acknowledge(self.stored, self.stored.target, attempt, self.now)
        except Forbidden:
            assert self.stored.settled or attempt < self.stored.attempts or self.now >= (self.stored.due_at or 0)
            return
        assert attempt >= self.stored.attempts or attempt == self.stored.acknowledged_attempt
        if after is not self.stored:
            assert not self.stored.settled
            assert under_way or self.now < (self.stored.due_at or 0)
            assert self.save(after)
            self.acknowledged = True

    @precondition(lambda self: not self.stored.settled)
    @rule()
    def the_owner_deletes_it(self) -> None:
        assert self.save(close(self.stored, DeliveryState.CANCELLED, self.now))

    @rule()
    def a_waker_takes_it_out_of_the_index(self) -> None:
        if self.stored.scheduled and (self.stored.due_at or 0) <= self.now:
            self.stored = replace(self.stored, scheduled=False)

    @invariant()
    def it_is_legal(self) -> None:
        stored = self.stored
        assert stored.tries <= self.policy.retries + 1
        assert stored.attempts - self.asked_tries <= (self.policy.retries + 1) * len(stored.targets)
        assert (stored.due_at is None) == stored.settled
        assert (stored.settled_at is not None) == stored.settled
        assert not (stored.scheduled and stored.settled)
        assert 0 <= stored.cursor < len(stored.targets)
        assert 0 <= retries_remaining(stored, self.policy) <= self.policy.retries
        assert sum(status.tries for status in stored.statuses.values()) == stored.attempts
        assert stored.last is None or stored.last.number == stored.attempts

    def teardown(self) -> None:
        """If looked at often enough, every delivery is settled."""
        if not hasattr(self, "stored"):
            return
        for _ in range(200):
            if self.stored.settled:
                return
            self.now = max(self.now, self.stored.due_at or 0)
            self.an_order_arrives()
            while self.open:
                self.an_answer_comes(status=500, took_ms=1, which=0, scheduled=False)
        raise AssertionError(f"still {self.stored.state}")


DeliveryLife.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestDeliveryLife = DeliveryLife.TestCase
