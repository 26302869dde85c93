"""A run of push, driven by answers that a test gives: nothing is stored, sent or waited for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.samples import message

from pushhub.base.errors import Unreadable
from pushhub.engine.model import run as module
from pushhub.engine.model.actions import (
    Action,
    AddToBacklog,
    AnswerWakeUp,
    AnyUnderWay,
    Arrange,
    Arranged,
    Await,
    Begin,
    Completions,
    Count,
    Delete,
    GiveBack,
    Glance,
    Granted,
    Hold,
    Keep,
    Look,
    Read,
    ReadSlowList,
    Receive,
    Send,
    Settle,
    Sleep,
    States,
    Take,
    TellFault,
    To,
    ToSlowLane,
)
from pushhub.engine.model.backoff import MAX_DELAY_MS
from pushhub.engine.model.concurrency import MET_WITH, SHARE_OF_A_PROJECT, SLOW_MS, ConcurrencyLimits
from pushhub.engine.model.delivery import DeliveryState, opening
from pushhub.engine.model.flow import SHORT_ATTEMPT_MS, FlowKey, Limits, Pace, Terms
from pushhub.engine.model.following import UNSURE_WAIT_MS, Follow, Following, Wait
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.lease import AGAIN_MS, Lease
from pushhub.engine.model.leases import KnownLeases
from pushhub.engine.model.received import GOOD_MS, Loaded, Received
from pushhub.engine.model.run import (
    ASIDE_MS,
    MANUAL_ASIDE_MS,
    MOST_ASIDE_MS,
    REFILL_AFTER_MS,
    Lane,
    OrderVerdict,
    Run,
    Running,
)
from pushhub.engine.model.work import WorkOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LONG_MS = SHORT_ATTEMPT_MS + 1
TERMS = Terms(limits=Limits(rate_per_s=2), longest_ms=10_000)
DONE = Following(Follow.NOTHING, answered=True)
NOW = 1_000_000


def an_order(message_id: str = "1", to: str = "s", project: str = "p", **changes: object) -> Received:
    sample = message(project=project, queue="orders", queue_uid="u", message_id=message_id, subscriber_ids=(to,))
    order: WorkOrder = replace(WorkOrder.carrying(sample, to), **changes)  # type: ignore[arg-type]
    return Received(order=order, sqs_id=f"sqs-{message_id}", receipt_handle=f"h-{message_id}", received_at=NOW)


def a_wake_up() -> Received:
    order = WorkOrder.wake_up(DeliveryKey("p", "u", "", "s"), "orders")
    return Received(order=order, sqs_id="sqs-w", receipt_handle="h-w", received_at=NOW)


def a_lease(terms: Terms = TERMS, *, mark: int = 0) -> Lease:
    return Lease(
        key=FlowKey.of_subscriber("p", "u", "s"),
        addressee=("p", "u", "s"),
        queue="orders",
        terms=terms,
        pace=Pace(terms.limits, mark),
        until=NOW + 10**6,
        woken_at=0,
        looks_at=NOW + 10**6,
    )


class Played:
    """A run whose actions are answered from a script.

    Attributes:
        done: What it asked for, but for what every run asks for in each round.
        answers: What an action of a kind is answered with; each is called with it.
        silent_ms: How long each wait takes in which nothing happens, before all attempts end.
        more: What the run receives, one batch after the other.
        follow: What comes of attempts, by message; nothing more unless it is named.
    """

    def __init__(
        self,
        *batch: Received,
        lane: Lane = Lane.NONE,
        longest_ms: int = SHORT_ATTEMPT_MS,
        left_ms: int = 10**6,
        listed: Mapping[Any, int] | None = None,
    ) -> None:
        self.now, self.left_ms = NOW, left_ms
        self.limits, self.leases = ConcurrencyLimits(), KnownLeases()
        self.done: list[Action[Any]] = []
        self.silent_ms: list[int] = []
        self.follow: dict[str, Following] = {}
        self.more: list[list[Received] | None] = []
        self.begun: dict[int, Received] = {}
        self.heard = 0
        self.run = Run(
            batch,
            lane=lane,
            longest_ms=longest_ms,
            limits=self.limits,
            leases=self.leases,
            listed=listed or {},
            choose=lambda parts: parts[0],
        )
        self.answers: dict[type[Action[Any]], Callable[[Any], Any]] = {
            Read: lambda _: States({}, {}, {}, NOW),
            Glance: lambda _: {},
            ReadSlowList: lambda _: listed or {},
            Await: self._await,
            AnyUnderWay: lambda _: True,
            Keep: lambda each: {wait.received.sqs_id for wait in each.waits},
            Arrange: lambda _: set(),
            Send: lambda _: True,
            ToSlowLane: lambda _: True,
            AddToBacklog: lambda _: [],
            Take: lambda _: Granted(None),
            Hold: lambda _: True,
            GiveBack: self._give_back,
        }

    def grants(self, lease: Lease, places: int = 1) -> Callable[[object], Granted]:
        """Have the lease granted that an action asks for."""

        def grant(_: object) -> Granted:
            self.leases.add(lease)
            return Granted(lease, places)

        return grant

    def _give_back(self, each: GiveBack) -> bool:
        self.leases.remove(each.lease)
        return False

    def _await(self, _: Await) -> Completions:
        if self.silent_ms:
            self.now += self.silent_ms.pop(0)
            return Completions({})
        ended = {
            number: self.follow.get(received.order.key.message_id, DONE) for number, received in self.begun.items()
        }
        self.begun = {}
        over, self.heard = self.receives > self.heard, self.receives
        return Completions(ended, self.more.pop(0) if over and self.more else [], over=over)

    @property
    def receives(self) -> int:
        """How often the run received orders itself."""
        return sum(isinstance(each, Receive) for each in self.done)

    def play(self, rounds: int = 200) -> Played:
        """Play the run to its end."""
        steps, answer = self.run.steps(), None
        for _ in range(rounds):
            self.run.tick(self.now, self.left_ms)
            try:
                action = steps.send(answer)
            except StopIteration:
                return self
            self.done.append(action)
            if isinstance(action, Begin):
                self.begun[action.number] = action.loaded.received
            answer = self.answers[type(action)](action) if type(action) in self.answers else None
        raise AssertionError("the run does not end")

    def of(self, *kinds: type[Action[Any]]) -> list[Any]:
        """What the run asked for of some kinds, in its order."""
        return [each for each in self.done if isinstance(each, kinds)]

    @property
    def attempted(self) -> list[str]:
        """Messages that were attempted."""
        return [each.loaded.received.order.key.message_id for each in self.of(Begin)]


# -- the verdict


def slow(played: Played) -> None:
    """The subscriber has taken long to answer."""
    played.limits.begin(("p", "u", "s"), NOW - SLOW_MS - 1)
    played.limits.end(("p", "u", "s"), NOW - SLOW_MS - 1, NOW)


def busy(played: Played) -> None:
    """An attempt at the subscriber is in progress."""
    played.limits.begin(("p", "u", "s"), NOW)


def full(played: Played) -> None:
    """All threads are in use."""
    attempt = Running(Loaded(an_order(to="else"), None), NOW, None)
    played.run.running = dict.fromkeys(range(module.AT_ONCE), attempt)


def shared(played: Played) -> None:
    """The project has its share of the threads."""
    for each in range(SHARE_OF_A_PROJECT):
        played.limits.begin(("p", "u", f"t{each}"), NOW)


def limited(played: Played) -> None:
    """The subscriber has limits."""
    played.leases.learn(("p", "u", "s"), TERMS, NOW)


def nothing(_: Played) -> None:
    """Nothing is known."""


@pytest.mark.parametrize(
    ("lane", "given", "left_ms", "verdict"),
    [
        (Lane.BESIDE, nothing, 10**6, OrderVerdict.BEGIN),
        (Lane.BESIDE, busy, 10**6, OrderVerdict.WAIT),
        (Lane.BESIDE, full, 10**6, OrderVerdict.WAIT),
        (Lane.BESIDE, shared, 10**6, OrderVerdict.WAIT),
        (Lane.BESIDE, slow, 10**6, OrderVerdict.SLOW_LANE),
        (Lane.BESIDE, limited, 10**6, OrderVerdict.LEASE),
        (Lane.SLOW, nothing, 10**6, OrderVerdict.LEASE),
        (Lane.NONE, nothing, 10**6, OrderVerdict.BEGIN),
        (Lane.NONE, slow, 10**6, OrderVerdict.BEGIN),
        (Lane.NONE, slow, SHORT_ATTEMPT_MS - 1, OrderVerdict.PUT_ASIDE),
        (Lane.NONE, slow, SHORT_ATTEMPT_MS, OrderVerdict.BEGIN),
    ],
)
def test_what_becomes_of_an_order(
    lane: Lane, given: Callable[[Played], None], left_ms: int, verdict: OrderVerdict
) -> None:
    played = Played(lane=lane)
    given(played)
    played.run.tick(NOW, left_ms)
    assert played.run.verdict(Loaded(an_order(), None), several=True) is verdict


@pytest.mark.parametrize(
    ("left_ms", "verdict"), [(2 * LONG_MS - 1, OrderVerdict.PUT_ASIDE), (2 * LONG_MS, OrderVerdict.BEGIN)]
)
def test_a_long_run_attempts_a_slow_one_only_if_there_is_time_for_two(left_ms: int, verdict: OrderVerdict) -> None:
    played = Played(longest_ms=LONG_MS)
    slow(played)
    played.run.tick(NOW, left_ms)
    assert played.run.verdict(Loaded(an_order(), None), several=False) is verdict


def test_a_listed_subscriber_holds_up_others_until_that_is_over_and_a_poll_never_does() -> None:
    played = Played(lane=Lane.BESIDE, listed={("p", "u", "s"): NOW + 1})
    polled = replace(opening(message(), "s"), update_url="https://a.example/status")
    for now, stored, verdict in (
        (NOW, None, OrderVerdict.SLOW_LANE),
        (NOW + 1, None, OrderVerdict.BEGIN),
        (NOW, polled, OrderVerdict.BEGIN),
    ):
        played.run.tick(now, 10**6)
        assert played.run.verdict(Loaded(an_order(), stored), several=False) is verdict


def test_an_order_from_the_backlog_of_a_lease_here_goes_back_there_and_nowhere_else() -> None:
    played = Played()
    limited(played)
    lease = a_lease()
    lease.entries["place"] = [an_order().order]
    played.leases.add(lease)
    loaded = Loaded(replace(an_order(), place="place"), None)
    assert played.run.verdict(loaded, several=False) is OrderVerdict.TAKE_BACK


# -- a run from its first order to its last


def test_a_delivery_is_read_attempted_and_arranged_and_then_the_run_is_over() -> None:
    played = Played(an_order("1"), an_order("2", to="t")).play()
    assert [type(each) for each in played.of(Read, Begin, Arrange, Delete)] == [Read, Begin, Begin, Arrange]
    assert [(each.received.order.key.message_id, each.following) for each in played.of(Arrange)[0].ended] == [
        ("1", DONE),
        ("2", DONE),
    ]
    assert played.run.ledger.kept_of_batch == set()


def test_what_could_not_be_arranged_is_kept() -> None:
    played = Played(an_order("1"))
    played.answers[Arrange] = lambda each: {ended.received.sqs_id for ended in each.ended}
    assert played.play().run.ledger.kept_of_batch == {"sqs-1"}


def test_a_delivery_is_attempted_once_however_many_orders_for_it_come() -> None:
    played = Played(an_order(), an_order(), an_order(manual=True)).play()
    assert played.attempted == ["1"]
    # Then the try that a person asked for waits until the other is over
    [keep] = played.of(Keep)
    assert [(each.received.order.manual, each.until) for each in keep.waits] == [(True, NOW + MANUAL_ASIDE_MS)]


def test_nothing_is_attempted_of_what_cannot_be_read() -> None:
    # Given deliveries that cannot be fetched now
    played = Played(an_order("1"), an_order("2"))
    played.answers[Read] = lambda _: None
    assert played.play().attempted == []
    assert [each.until for each in played.of(Keep)[0].waits] == [NOW + UNSURE_WAIT_MS] * 2
    # And one whose item is damaged, which touches no other
    played, error = Played(an_order("1"), an_order("2", to="t")), Unreadable()
    played.answers[Read] = lambda each: States({}, {each.keys[0]: error}, {}, NOW)
    assert played.play().attempted == ["2"]
    assert played.of(TellFault) == [TellFault(an_order("1"), error)]
    assert played.of(Keep) == [Keep([Wait(an_order("1"), NOW + UNSURE_WAIT_MS)])]
    late = replace(an_order("1"), receive_count=30)
    played = Played(late)
    played.answers[Read] = lambda each: States({}, {each.keys[0]: error}, {}, NOW)
    assert played.play().of(Keep) == [Keep([Wait(late, NOW + MAX_DELAY_MS)])]


def test_messages_that_orders_do_not_carry_are_read_with_their_deliveries() -> None:
    # Given orders with their messages and without, two of these for one message
    bare = [an_order("2", message=None), an_order("2", to="t", message=None), an_order("3", message=None)]
    played = Played(an_order("1"), *bare).play()
    # Then one read is for all of them
    (read,) = played.of(Read)
    assert [each.message_id for each in read.keys] == ["1", "2", "2", "3"]
    assert (read.messages, read.orders) == ([bare[0].order.key.message, bare[2].order.key.message], 4)


def test_an_attempt_begins_with_the_message_that_was_read_for_it() -> None:
    bare = an_order("1", message=None)
    stored, found = message(), opening(message(), "s")
    played = Played(bare)
    key = bare.order.key
    played.answers[Read] = lambda _: States({key: found}, {}, {key.message: stored}, NOW - 5)
    (begun,) = played.play().of(Begin)
    assert begun.loaded == Loaded(bare, found, stored, NOW - 5)


@pytest.mark.parametrize("waits", ["slow", "rate"])
def test_no_message_is_read_early_that_will_wait_for_long(waits: str) -> None:
    # Given a slow subscriber, or one with a rate, beside another one
    played = Played(an_order("1", message=None), an_order("2", to="t", message=None), lane=Lane.SLOW)
    if waits == "slow":
        slow(played)
    else:
        played.leases.learn(("p", "u", "s"), TERMS, NOW)
    played.play()
    (read,) = played.of(Read)
    assert [each.message_id for each in read.keys] == ["1", "2"]
    assert [each.message_id for each in read.messages] == ["2"]


@pytest.mark.parametrize(
    ("age_ms", "leased", "carried", "good"),
    [
        (GOOD_MS - 1, True, True, True),
        (GOOD_MS, True, True, False),
        (GOOD_MS, False, True, True),
        (GOOD_MS - 1, False, False, True),
        (GOOD_MS, False, False, False),
        (-1, False, False, False),
        (-1, True, True, False),
    ],
)
def test_a_message_is_good_for_half_a_second_and_as_it_came_for_an_order_that_waits_for_no_lease(
    age_ms: int, leased: bool, carried: bool, good: bool
) -> None:
    received = an_order() if carried else an_order(message=None)
    loaded = Loaded(received, None, None if carried else message(), NOW)
    assert (loaded.message(NOW + age_ms, leased=leased) is not None) is good


@pytest.mark.parametrize(
    ("begun", "shown", "receives", "attempted", "reads"),
    [
        (True, True, 1, False, [Glance]),
        (True, False, 1, False, [Glance, Read]),
        (False, False, 1, True, [Glance, Read]),
        (True, True, 2, True, [Read]),
    ],
)
def test_the_streams_order_for_what_ingest_had_attempted_costs_half_a_read(
    begun: bool, shown: bool, receives: int, attempted: bool, reads: list[type[Action[Any]]]
) -> None:
    # Given an attempt that was recorded or not, which a read that is not consistent may not show yet
    second = replace(an_order(second=True), receive_count=receives)
    state = DeliveryState.RETRYING if begun else DeliveryState.PENDING
    now = {second.order.key: replace(opening(message(), "s"), state=state)}
    played = Played(second)
    played.answers |= {Glance: lambda _: now if shown else {}, Read: lambda _: States(now, {}, {}, NOW)}
    # Then the stream's order is void if the attempt was recorded, whatever that read shows
    assert bool(played.play().attempted) is attempted
    assert [type(each) for each in played.of(Glance, Read)] == reads


@pytest.mark.parametrize(
    ("receives", "wait_ms"), [(1, ASIDE_MS), (2, 2 * ASIDE_MS), (3, MOST_ASIDE_MS), (90, MOST_ASIDE_MS)]
)
def test_what_has_no_slow_lane_is_put_aside_for_longer_each_time_up_to_a_minute(receives: int, wait_ms: int) -> None:
    played = Played(replace(an_order(), receive_count=receives), left_ms=SHORT_ATTEMPT_MS - 1)
    slow(played)
    [ended] = played.play().of(Arrange)[0].ended
    assert (ended.following, played.attempted) == (Following(Follow.LATER, NOW + wait_ms), [])
    assert played.of(Count) == [Count("DeliveriesPutAside", 1)]


@pytest.mark.parametrize("taken", [True, False])
def test_what_would_hold_up_others_moves_to_the_slow_lane_or_stays(taken: bool) -> None:
    # Given an order received before, which may have changed its delivery
    batch = [an_order("1", version=4), replace(an_order("2", version=4), receive_count=2)]
    played = Played(*batch, lane=Lane.BESIDE, listed={("p", "u", "s"): NOW + 1})
    played.answers[ToSlowLane] = lambda _: taken
    played.play()
    assert played.of(ToSlowLane) == [ToSlowLane([batch[0].order, batch[1].order.for_any_state])]
    assert (played.of(Read), played.attempted) == ([], [])
    assert played.run.ledger.kept_of_batch == (set() if taken else {"sqs-1", "sqs-2"})


# -- leases


def test_under_a_lease_attempts_begin_and_it_is_given_back_with_what_was_earned() -> None:
    played, lease = Played(an_order()), a_lease()
    limited(played)
    played.answers[Take] = played.grants(lease, places=4)
    played.follow["1"] = replace(DONE, terms=TERMS)
    played.play()
    assert [each.lease for each in played.of(Begin)] == [lease]
    [back] = played.of(GiveBack)
    assert (back.lease, back.places, back.wake_up_ms, back.to) == (lease, 5, None, To.RETRY)


@pytest.mark.parametrize("answer", [Granted(None), None])
def test_what_gets_no_lease_waits_in_the_backlog(answer: Granted | None) -> None:
    played = Played(an_order())
    limited(played)
    played.answers[Take] = lambda _: answer
    assert played.play().attempted == []
    assert [each.orders for each in played.of(AddToBacklog)] == [[an_order()]]
    assert played.run.ledger.kept_of_batch == set()


def test_what_cannot_be_put_into_the_backlog_stays_in_its_queue() -> None:
    played = Played(an_order())
    limited(played)
    played.answers[AddToBacklog] = lambda _: None
    assert played.play().run.ledger.kept_of_batch == {"sqs-1"}


def test_the_lease_of_a_backlog_that_nobody_works_off_is_taken_and_looked_into_at_once() -> None:
    played, lease = Played(an_order()), a_lease()
    limited(played)
    played.leases.note_elsewhere(lease.key, NOW + 1)
    played.answers[AddToBacklog] = lambda _: [0]
    played.answers[Take] = played.grants(lease)
    looks_at: list[int] = []

    def look(each: Look) -> None:
        looks_at.append(each.lease.looks_at)
        each.lease.looked(found=False, now=played.now)

    played.answers[Look] = look
    played.play()
    assert looks_at == [0]
    assert [type(each) for each in played.of(AddToBacklog, Take, Look, GiveBack)] == [
        AddToBacklog,
        Take,
        Look,
        GiveBack,
    ]
    assert played.of(Read) == []


@pytest.mark.parametrize("answer", [Granted(None), None])
def test_a_wake_up_is_void_if_somebody_has_the_lease_and_stays_if_that_is_not_known(answer: Granted | None) -> None:
    played = Played(a_wake_up())
    played.answers[AnswerWakeUp] = lambda _: answer
    assert played.play().run.ledger.kept_of_batch == ({"sqs-w"} if answer is None else set())


def test_a_lease_under_terms_that_are_too_long_here_is_left_to_a_long_run_and_forgotten() -> None:
    # Given a short run that is woken for a lease, whose subscriber may take longer than the run has
    played, lease = Played(a_wake_up()), a_lease(Terms(limits=Limits(rate_per_s=2), longest_ms=LONG_MS))
    played.leases.learn(("p", "u", "s"), lease.terms, NOW)
    played.answers[AnswerWakeUp] = played.grants(lease)
    played.play()
    # Then nothing of its backlog is looked at, and what comes next is looked at anew
    assert played.of(Look) == []
    assert [each.to for each in played.of(GiveBack)] == [To.POLL]
    assert played.leases.terms(("p", "u", "s")) is None


def test_a_duplicate_is_attempted_if_the_first_order_was_not_to_be() -> None:
    played = Played(an_order(), replace(an_order(), sqs_id="sqs-2", receipt_handle="h-2"))
    played.follow["1"] = Following(Follow.ANOTHER)
    assert played.play().attempted == ["1", "1"]


def test_a_lease_whose_next_attempt_is_far_away_is_given_back_with_a_wake_up_for_then() -> None:
    played, lease = Played(an_order()), a_lease(mark=NOW + 60_000)
    limited(played)
    played.answers[Take] = played.grants(lease)
    # Given that its order was put into the backlog

    def add(_: AddToBacklog) -> list[int]:
        lease.note_backlog()
        return []

    played.answers[AddToBacklog] = add
    played.play()
    [back] = played.of(GiveBack)
    assert played.attempted == []
    assert back.wake_up_ms is not None
    assert 50_000 < back.wake_up_ms <= 60_000


def test_a_lease_is_taken_again_if_something_came_while_it_was_given_back() -> None:
    played, lease, again = Played(an_order()), a_lease(), a_lease()
    limited(played)
    grants = [lease, again]

    def grant(each: Take) -> Granted:
        return played.grants(grants.pop(0))(each)

    def give_back(each: GiveBack) -> bool:
        played.leases.remove(each.lease)
        return each.lease is lease

    played.answers |= {Take: grant, GiveBack: give_back}
    played.follow["1"] = replace(DONE, terms=TERMS)
    played.answers[Look] = lambda each: each.lease.looked(found=False, now=played.now)
    assert [each.lease for each in played.play().of(GiveBack)] == [lease, again]


@pytest.mark.parametrize("kept", [False, True])
def test_what_is_done_has_left_the_backlog_before_the_lease_is_given_back(kept: bool) -> None:
    # Given an order from a backlog, and another subscriber that has not answered yet when it is done
    played, lease = Played(an_order("2", to="t")), a_lease()
    entry = replace(an_order("1"), place="place", sqs_id="place")
    lease.entries["place"] = [entry.order]
    lease.fetched.append(entry)
    played.leases.add(lease)
    played.follow["1"] = Following(Follow.ERROR, answered=False, terms=TERMS)

    def first_that(_: Await) -> Completions:
        ended = {number: each for number, each in played.begun.items() if each.place} or {**played.begun}
        for number in ended:
            del played.begun[number]
        return Completions(
            {number: played.follow.get(each.order.key.message_id, DONE) for number, each in ended.items()}
        )

    def arranged(each: Arranged) -> None:
        if each.keep:
            each.lease.keep(each.received.place)
        else:
            each.lease.strike(each.received)

    played.answers |= {Await: first_that, Arranged: arranged}
    played.answers[Arrange] = lambda each: {one.received.sqs_id for one in each.ended if kept and one.received.place}
    # When the run gives the lease back, then it has arranged what comes next for the order
    played.play()
    assert [type(each) for each in played.of(Arrange, GiveBack)] == [Arrange, Arrange, GiveBack]
    # And somebody is woken for it if that failed, and only then
    [back] = played.of(GiveBack)
    assert (lease.has_backlog, back.wake_up_ms) == ((True, AGAIN_MS) if kept else (False, None))


def test_orders_from_the_backlog_stay_there_if_their_deliveries_cannot_be_read() -> None:
    played, lease = Played(), a_lease()
    entry = replace(an_order(), place="place", sqs_id="place")
    lease.entries["place"] = [entry.order]
    lease.fetched.append(entry)
    played.leases.add(lease)
    played.answers[Read] = lambda _: None
    assert played.play().of(Settle) == [Settle(lease, entry, True)]
    assert played.attempted == []


def test_a_run_sleeps_no_longer_than_until_the_next_attempt_of_a_rate() -> None:
    played, lease = Played(an_order()), a_lease(mark=NOW + 50)
    limited(played)
    played.answers[Take] = played.grants(lease)
    played.follow["1"] = replace(DONE, terms=TERMS)

    def sleep(each: Sleep) -> None:
        played.now += max(1, round(each.seconds * 1000))

    played.answers[Sleep] = sleep
    played.play()
    assert [each.seconds for each in played.of(Sleep)] == [0.05]
    assert played.attempted == ["1"]


# -- receiving


def waiting_run(
    *orders: Received, lane: Lane = Lane.NONE, longest_ms: int = SHORT_ATTEMPT_MS, left_ms: int = 10**6, ms: int = 500
) -> Played:
    """A run after so many milliseconds without an answer."""
    played = Played(*orders, lane=lane, longest_ms=longest_ms, left_ms=left_ms)
    played.silent_ms = [ms, 0, 0]
    return played.play()


@pytest.mark.parametrize(("ms", "receives"), [(REFILL_AFTER_MS - 1, 0), (REFILL_AFTER_MS, 1)])
def test_a_run_receives_one_batch_once_an_answer_takes_half_a_second(ms: int, receives: int) -> None:
    assert waiting_run(an_order(), ms=ms).receives == receives


@pytest.mark.parametrize(
    ("longest_ms", "left_ms", "receives"),
    [
        (SHORT_ATTEMPT_MS, SHORT_ATTEMPT_MS, False),
        (SHORT_ATTEMPT_MS, SHORT_ATTEMPT_MS + 1, True),
        (LONG_MS, LONG_MS, False),
        (LONG_MS, LONG_MS + 1, True),
    ],
)
def test_a_run_receives_only_what_it_has_time_for(longest_ms: int, left_ms: int, receives: bool) -> None:
    assert bool(waiting_run(an_order(), longest_ms=longest_ms, left_ms=left_ms).receives) is receives


@pytest.mark.parametrize(("threads", "begun"), [(4 * MET_WITH, MET_WITH), (MET_WITH, MET_WITH // 2)])
def test_a_subscriber_met_for_the_first_time_is_tried_with_the_free_half_of_the_threads(
    monkeypatch: pytest.MonkeyPatch, threads: int, begun: int
) -> None:
    # Given a lease at a subscriber that nobody has asked before, for which much waits
    monkeypatch.setattr(module, "AT_ONCE", threads)
    lease = a_lease(Terms(limits=Limits(), longest_ms=10_000))
    played = Played(*(an_order(str(each)) for each in range(2 * MET_WITH)), lane=Lane.SLOW)
    played.answers[Take] = played.grants(lease, places=0)
    # Then so many attempts begin before any has ended
    kinds = [type(each) for each in played.play().done]
    assert kinds[: kinds.index(Await)].count(Begin) == begun


@pytest.mark.parametrize(("left_ms", "receives"), [(2 * LONG_MS, False), (2 * LONG_MS + 1, True)])
def test_in_the_slow_lane_that_is_time_for_two_attempts(left_ms: int, receives: bool) -> None:
    played, lease = Played(an_order(), lane=Lane.SLOW, longest_ms=LONG_MS, left_ms=left_ms), a_lease()
    played.answers[Take] = played.grants(lease)
    played.silent_ms = [REFILL_AFTER_MS, 0]
    assert bool(played.play().receives) is receives


@pytest.mark.parametrize(("at_once", "receives"), [(4, True), (3, False)])
def test_a_run_receives_nothing_while_all_threads_are_in_use(
    monkeypatch: pytest.MonkeyPatch, at_once: int, receives: bool
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    played = waiting_run(*(an_order(each, to=each) for each in "abc"))
    assert (bool(played.receives), len(played.attempted)) == (receives, 3)


@pytest.mark.parametrize(("orders", "receives"), [(3, True), (4, False)])
def test_a_run_receives_no_more_while_as_many_wait_as_there_are_threads(
    monkeypatch: pytest.MonkeyPatch, orders: int, receives: bool
) -> None:
    # Given a subscriber that gets one attempt at a time
    monkeypatch.setattr(module, "AT_ONCE", 3)
    assert bool(waiting_run(*(an_order(str(each)) for each in range(orders))).receives) is receives


def test_what_a_run_received_itself_it_deletes_unless_it_is_kept() -> None:
    played = Played(an_order("1"))
    played.silent_ms, played.more = [REFILL_AFTER_MS], [[an_order("2", to="t")]]
    assert played.play().attempted == ["1", "2"]
    assert [dict(each.handles) for each in played.of(Delete)] == [{"sqs-2": "h-2"}]
