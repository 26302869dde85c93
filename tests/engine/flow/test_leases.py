"""Leases and backlogs: who has one, who is woken, and that nothing stays there; on in-memory stores, a fake clock."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.samples import message
from tests.fakes import FakeClock, FakeWorkQueue, Fault, FaultPlan, faulty
from tests.fakes.subscribers import FakeSubscribers
from tests.fakes.telemetry import FakeTelemetry

from pushhub.engine.flow.leases import ENTRY_ORDERS, LEASE_MS, MARGIN_MS, Leases
from pushhub.engine.flow.wake_ups import HURRY_S, LOST_MS, UNTENDED_MS, WakeUps
from pushhub.engine.model.flow import FlowKey, Limits, Terms
from pushhub.engine.model.lease import LOOK_MS, Lease
from pushhub.engine.model.leases import LEFT_MS
from pushhub.engine.model.received import Received
from pushhub.engine.model.work import WorkOrder

KEY = ("5f0000000000000000000001", "uid", "s0")
FLOW = FlowKey.of_subscriber(*KEY)
RATE = Terms(limits=Limits(rate_per_s=2), longest_ms=15_000)
PLACES = Terms(limits=Limits(concurrency=3), longest_ms=15_000)


class Bench:
    """Two runs that share a store."""

    def __init__(self, plan: FaultPlan | None = None) -> None:
        self.clock, self.store, self.telemetry = FakeClock(), FakeSubscribers(), FakeTelemetry()
        self.queue = FakeWorkQueue(self.clock)
        store = faulty(self.store, "store", plan or FaultPlan())
        self.one, self.other = (
            Leases(store=store, calls=self.queue, clock=self.clock, telemetry=self.telemetry) for _ in range(2)
        )
        for each in (self.one, self.other):
            each.start_over()
        self.wake_ups = WakeUps(backlogs=store, queue=self.queue, clock=self.clock, telemetry=self.telemetry)

    def orders(self, count: int = 1) -> list[Received]:
        """Orders of the subscriber, as received."""
        created = [WorkOrder.carrying(message(), "s0") for _ in range(count)]
        keyed = [replace(each, key=each.key._replace(project=KEY[0], queue_uid=KEY[1])) for each in created]
        return [Received(order=each, sqs_id="1", receipt_handle="h", received_at=0) for each in keyed]

    def takes(self, who: Leases, terms: Terms = RATE) -> Lease | None:
        """Have a run take the lease."""
        taken = who.take(KEY, "q", terms)
        return taken[0] if taken else None

    def gives_back(self, who: Leases, lease: Lease, wake_up_ms: int | None = None) -> bool:
        """Have a run give its lease back."""
        return who.give_back(lease, places=1, wake_up_ms=wake_up_ms, to=self.queue)


def test_one_run_has_the_lease_and_the_next_one_goes_on_where_it_stopped() -> None:
    bench = Bench()
    lease = bench.takes(bench.one)
    assert lease is not None
    assert bench.takes(bench.other) is None
    assert bench.other.known.is_elsewhere(KEY, bench.clock.now())
    # When it begins an attempt and gives the lease back, then the next begins when the rate allows it
    lease.pace.begin(bench.clock.now())
    lease.pace.end(attempted=True)
    assert not bench.gives_back(bench.one, lease)
    following = bench.takes(bench.other)
    assert following is not None
    assert following.pace.wait_ms(bench.clock.now()) == 0  # half a second after the mark is made up for
    following.pace.begin(bench.clock.now())
    assert following.pace.wait_ms(bench.clock.now()) == 500


@pytest.mark.parametrize(("terms", "lasts_ms"), [(RATE, LEASE_MS), (PLACES, LEASE_MS + 15_000)])
def test_the_lease_of_a_run_that_died_is_free_when_its_attempts_are_over(terms: Terms, lasts_ms: int) -> None:
    bench = Bench()
    lease = bench.takes(bench.one, terms)
    assert lease is not None
    bench.clock.advance(ms=lasts_ms - 1)
    assert bench.takes(bench.other, terms) is None
    bench.clock.advance(ms=1)
    following = bench.takes(bench.other, terms)
    assert following is not None
    # Then all times until then count as used
    assert following.pace.mark == bench.clock.now()
    # And the former one notices that it has it no more
    assert not bench.one.hold(lease)
    assert lease.lost


def test_a_lease_is_extended_in_time_and_begins_nothing_that_might_outlast_it() -> None:
    plan = FaultPlan()
    bench = Bench(plan)
    lease = bench.takes(bench.one, PLACES)
    assert lease is not None
    for _ in range(10):
        bench.clock.advance(seconds=9)
        assert bench.one.hold(lease)
    # When the store fails, then it holds until an attempt would outlast it
    bench.clock.set(lease.until - PLACES.longest_ms - MARGIN_MS)
    plan.strike(Fault.FAILS, of="store.take_lease")
    assert bench.one.hold(lease)
    bench.clock.advance(ms=1)
    plan.strike(Fault.FAILS, of="store.take_lease")
    assert not bench.one.hold(lease)
    # And again when it works again
    assert bench.one.hold(lease)


def test_a_run_with_all_places_in_use_and_the_next_orders_at_hand_waits_for_an_answer() -> None:
    # Given a lease whose places are all in use, and a backlog with more orders than its run wants to have at hand
    bench = Bench()
    lease = bench.takes(bench.one, PLACES)
    assert lease is not None
    bench.other.add(KEY, bench.orders(9), bench.clock.now())
    lease.expect_backlog()
    assert lease.wake_in_ms(bench.clock.now(), 200) == 1
    bench.one.look(lease)
    for _ in range(3):
        lease.pace.begin(bench.clock.now())
    # When time passes, then only the end of an attempt changes anything
    bench.clock.advance(seconds=5)
    assert lease.backlogged
    assert lease.wake_in_ms(bench.clock.now(), 200) is None
    # And once orders are lacking, the backlog is read
    lease.fetched.clear()
    assert lease.wake_in_ms(bench.clock.now(), 200) == 1
    # And not by a run that has to give the lease back
    lease.close()
    assert lease.wake_in_ms(bench.clock.now(), 200) is None


def test_who_adds_to_the_backlog_learns_whether_somebody_has_the_lease() -> None:
    bench = Bench()
    lease = bench.takes(bench.one)
    assert lease is not None
    assert not bench.other.add(KEY, bench.orders(2 * ENTRY_ORDERS + 1), bench.clock.now())
    assert [len(each.orders) for each in bench.store.backlog(FLOW, 9)] == [ENTRY_ORDERS, ENTRY_ORDERS, 1]
    # When the lease is given back, then whoever does so learns that somebody stands there
    assert bench.gives_back(bench.one, lease)
    # And who steps in then takes the lease
    assert bench.other.add(KEY, bench.orders(), bench.clock.now())


def test_a_wake_up_is_sent_once_and_answered_by_who_gets_it() -> None:
    bench = Bench()
    lease = bench.takes(bench.one)
    assert lease is not None
    bench.one.add(KEY, bench.orders(), bench.clock.now())
    assert not bench.gives_back(bench.one, lease, wake_up_ms=7_900)
    [(wake_up, delay_s)] = bench.queue.sent
    assert (wake_up.wakes, wake_up.addressee, delay_s) == (True, KEY, 7)
    # Given the wake-up is on its way, then who steps into line need not take the lease, and wake sends none
    assert not bench.other.add(KEY, bench.orders(), bench.clock.now())
    assert bench.wake_ups.run(lambda: 10**6) == 0
    again = bench.takes(bench.other)
    assert again is not None
    bench.gives_back(bench.other, again, wake_up_ms=7_900)
    assert len(bench.queue.sent) == 1
    # When it comes, then whoever gets it has the lease with the stored terms and looks into the line
    bench.clock.advance(seconds=7)
    taken = bench.other.answer(WorkOrder.decode(wake_up.encode()))
    assert taken is not None
    assert (taken[0].terms, taken[0].backlogged, taken[0].looks_at) == (RATE, True, 0)
    bench.other.look(taken[0])
    assert len(taken[0].fetched) == 2
    # And a second one is void
    assert bench.one.answer(wake_up) is None


def test_wake_calls_for_a_backlog_that_nobody_works_off_and_forgets_one_that_is_empty() -> None:
    bench = Bench()
    lease = bench.takes(bench.one)
    assert lease is not None
    bench.one.add(KEY, bench.orders(), bench.clock.now())
    assert bench.wake_ups.run(lambda: 10**6) == 0
    # Given the run dies
    bench.clock.advance(ms=LEASE_MS)
    assert bench.wake_ups.run(lambda: 10**6) == 1
    assert bench.wake_ups.run(lambda: 10**6) == 0
    # And the wake-up is lost, too
    bench.clock.advance(ms=LOST_MS)
    assert bench.wake_ups.run(lambda: 10**6) == 1
    assert [order.wakes for order, _ in bench.queue.sent] == [True, True]
    # When nobody stands there for some time
    [place] = bench.store.backlog(FLOW, 9)
    bench.store.remove_from_backlog(FLOW, place.place, ())
    bench.clock.advance(ms=UNTENDED_MS)
    assert bench.wake_ups.run(lambda: 10**6) == 0
    assert [*bench.store.listed_backlogs()] == []


def test_a_changed_limit_calls_now_if_the_next_attempt_is_arranged_for_later() -> None:
    bench = Bench()
    # Given a subscriber that nobody has heard of, then nobody is called
    bench.wake_ups.hurry(KEY, "q")
    assert not bench.queue.sent
    # Given its lease was given back until the next attempt, an hour later
    lease = bench.takes(bench.one)
    assert lease is not None
    bench.one.add(KEY, bench.orders(), bench.clock.now())
    bench.gives_back(bench.one, lease, wake_up_ms=3_600_000)
    # When its limits change, then somebody is called at once, and finds out which they are
    bench.wake_ups.hurry(KEY, "q")
    wake_up, delay_s = bench.queue.sent[-1]
    assert (wake_up.wakes, wake_up.addressee, wake_up.queue, delay_s) == (True, KEY, "q", HURRY_S)
    taken = bench.other.answer(wake_up)
    assert taken is not None
    assert (taken[0].unsure, taken[0].backlogged) == (True, True)
    # And while it has the lease, too, as it may be about to give it back under the former limits
    bench.wake_ups.hurry(KEY, "q")
    assert len(bench.queue.sent) == 3
    # But not when a wake-up comes soon or has come
    bench.gives_back(bench.other, taken[0], wake_up_ms=1_000)
    bench.wake_ups.hurry(KEY, "q")
    assert len(bench.queue.sent) == 4


def test_a_change_is_made_though_nobody_can_be_called() -> None:
    plan = FaultPlan()
    bench = Bench(plan)
    plan.strike(Fault.FAILS, of="store.flow")
    bench.wake_ups.hurry(KEY, "q")
    assert bench.telemetry.named("wake_up_not_hurried")


def test_orders_leave_the_backlog_when_they_are_done_and_the_others_keep_their_entry() -> None:
    bench = Bench()
    lease = bench.takes(bench.one, PLACES)
    assert lease is not None
    orders = bench.orders(5)
    bench.one.add(KEY, orders, bench.clock.now())
    lease.expect_backlog()
    bench.one.look(lease)
    fetched = [*lease.fetched]
    assert [each.order.key for each in fetched] == [each.order.key for each in orders]
    assert {each.order.message for each in fetched} == {None}
    # When two are done and the lease is given back, then three stand there
    for each in fetched[:2]:
        bench.one.settle(lease, each, keep=False)
    bench.gives_back(bench.one, lease, wake_up_ms=0)
    [place] = bench.store.backlog(FLOW, 9)
    assert [each.key for each in place.orders] == [each.order.key for each in orders[2:]]
    # And when all are, nobody
    again = bench.takes(bench.other, PLACES)
    assert again is not None
    again.expect_backlog()
    bench.other.look(again)
    for each in [*again.fetched]:
        bench.other.settle(again, each, keep=False)
    assert bench.store.backlog(FLOW, 9) == []


def a_lease_with_attempts(bench: Bench) -> tuple[Lease, list[Received]]:
    """A lease given back while the first two of three orders from the line are being attempted; and those two."""
    lease = bench.takes(bench.one)
    assert lease is not None
    bench.one.add(KEY, bench.orders(3), bench.clock.now())
    lease.expect_backlog()
    bench.one.look(lease)
    under_way = [lease.fetched[0], lease.fetched[1]]
    bench.one.give_back(lease, places=1, wake_up_ms=0, to=bench.queue, attempted=under_way)
    return lease, under_way


def fetched(bench: Bench, who: Leases) -> list[str]:
    """The orders that a run finds in the line, by message, once it has the lease."""
    lease = bench.takes(who)
    assert lease is not None
    lease.expect_backlog()
    who.look(lease)
    return [each.order.key.message_id for each in lease.fetched]


def test_what_is_being_attempted_when_a_lease_is_given_back_is_left_alone_and_not_lost() -> None:
    bench = Bench()
    lease, under_way = a_lease_with_attempts(bench)
    # Then whoever has the lease next finds only the third
    assert len(fetched(bench, bench.other)) == 1
    # When one attempt is over and the run dies, then the other order is found when its attempt must be over, too
    bench.one.settle_aside(under_way[:1])
    assert bench.wake_ups.run(lambda: 10**6) == 0
    bench.clock.advance(ms=lease.terms.longest_ms + 2 * LEASE_MS)
    bench.one.start_over()
    assert fetched(bench, bench.one)[1:] == [under_way[1].order.key.message_id]


def test_what_was_attempted_leaves_its_entry_aside() -> None:
    bench = Bench()
    _, under_way = a_lease_with_attempts(bench)
    for each in under_way:
        bench.one.settle_aside([each])
    assert [len(each.orders) for each in bench.store.backlog(FLOW, 9)] == [1]


def test_a_lease_whose_orders_cannot_stand_aside_ends_by_itself_when_nobody_attempts_them_any_more() -> None:
    plan = FaultPlan()
    bench = Bench(plan)
    plan.strike(Fault.FAILS, of="store.set_aside")
    a_lease_with_attempts(bench)
    assert bench.telemetry.named("lease_not_given_back")
    assert bench.takes(bench.other) is None
    bench.clock.advance(ms=LEASE_MS)
    assert len(fetched(bench, bench.other)) == 3


def test_wake_calls_nobody_for_those_that_stand_aside_and_keeps_their_backlog() -> None:
    bench = Bench()
    lease, _ = a_lease_with_attempts(bench)
    [third] = bench.store.backlog(FLOW, 9, now=bench.clock.now())
    bench.store.remove_from_backlog(FLOW, third.place, ())
    bench.clock.advance(ms=lease.terms.longest_ms + LEASE_MS - 1)
    sent = len(bench.queue.sent)
    assert bench.wake_ups.run(lambda: 10**6) == 0
    assert len([*bench.store.listed_backlogs()]) == 1
    # When they should have gone, then it does
    bench.clock.advance(ms=LOST_MS)
    assert bench.wake_ups.run(lambda: 10**6) == 1
    assert len(bench.queue.sent) == sent + 1


def test_an_entry_that_is_kept_for_an_error_is_not_fetched_again_in_the_same_lease() -> None:
    bench = Bench()
    lease = bench.takes(bench.one, PLACES)
    assert lease is not None
    bench.one.add(KEY, bench.orders(), bench.clock.now())
    lease.expect_backlog()
    bench.one.look(lease)
    bench.one.settle(lease, lease.fetched.popleft(), keep=True)
    bench.clock.advance(seconds=9)
    bench.one.look(lease)
    assert not lease.fetched
    assert len(bench.store.backlog(FLOW, 9)) == 1


def test_a_changed_limit_changes_the_lease_and_none_is_none() -> None:
    bench = Bench()
    lease = bench.takes(bench.one)
    assert lease is not None
    bench.one.known.learn(KEY, RATE, bench.clock.now())
    bench.one.known.learn(KEY, PLACES, bench.clock.now())
    assert (lease.terms, lease.pace.limits, bench.one.known.terms(KEY)) == (PLACES, PLACES.limits, PLACES)
    bench.one.known.learn(KEY, None, bench.clock.now())
    assert (lease.terms.limits, bench.one.known.terms(KEY)) == (Limits(), None)


def test_of_an_order_that_stands_twice_in_one_entry_the_other_stays_when_one_is_done() -> None:
    bench = Bench()
    lease = bench.takes(bench.one, PLACES)
    assert lease is not None
    # Given an order that dispatch sent twice, so that one run put both into the line
    bench.one.add(KEY, bench.orders() * 2, bench.clock.now())
    lease.expect_backlog()
    bench.one.look(lease)
    first, second = lease.fetched
    bench.one.settle(lease, second, keep=False)
    assert [len(each.orders) for each in bench.store.backlog(FLOW, 9)] == [2]
    bench.one.settle(lease, first, keep=False)
    assert bench.store.backlog(FLOW, 9) == []


FAST = Terms(limits=Limits(rate_per_s=250), longest_ms=15_000)
"""A rate of three parts."""

PARTS = [FlowKey.of_subscriber(*KEY, part) for part in range(3)]


def test_a_high_rate_has_a_lease_a_mark_and_a_backlog_for_each_of_its_parts() -> None:
    bench = Bench()
    bench.one.known.learn(KEY, FAST, bench.clock.now())
    bench.other.known.learn(KEY, FAST, bench.clock.now())
    # Given one run has two of three turns, the other can have the third only
    assert all(bench.one.take(KEY, "q", FAST, part) for part in (0, 2))
    assert bench.other.take(KEY, "q", FAST, 0) is None
    assert bench.other.take(KEY, "q", FAST, 2) is None
    assert bench.other.known.free_parts(KEY, FAST, bench.clock.now()) == [1]
    assert not bench.other.known.is_elsewhere(KEY, bench.clock.now())
    assert bench.other.take(KEY, "q", FAST, 1) is not None
    for lease in (*bench.one.known.of(KEY), *bench.other.known.of(KEY)):
        assert lease.pace.limits == Limits(rate_per_s=250 / 3)
    # When many orders come, then each line has its share, and nobody need be called
    assert bench.other.add(KEY, bench.orders(90), bench.clock.now()) == []
    assert [sum(len(each.orders) for each in bench.store.backlog(flow, 99)) for flow in PARTS] == [30] * 3
    # And few stand together, in one line after the other, as each place is a write
    for _ in range(3):
        bench.other.add(KEY, bench.orders(10), bench.clock.now())
    assert [len(bench.store.backlog(flow, 99)) for flow in PARTS] == [2] * 3
    # And once nobody has a part's lease, then whoever steps into its line takes it
    for lease in [*bench.one.known.of(KEY)]:
        bench.gives_back(bench.one, lease)
    bench.clock.advance(ms=LOOK_MS)
    assert bench.other.add(KEY, bench.orders(90), bench.clock.now()) == [0, 2]


def test_a_run_that_has_left_a_part_to_others_passes_calls_for_it_on() -> None:
    bench = Bench()
    bench.one.known.learn(KEY, FAST, bench.clock.now())
    assert all(bench.one.take(KEY, "q", FAST, part) for part in range(2))
    lease = bench.one.known.of(KEY)[1]
    bench.one.add(KEY, bench.orders(90), bench.clock.now())
    bench.one.known.leave_to_others(lease, bench.clock.now())
    bench.gives_back(bench.one, lease, wake_up_ms=0)
    [(wake_up, _)] = bench.queue.sent
    wake_up = WorkOrder.decode(wake_up.encode())
    assert (
        wake_up.wakes,
        wake_up.part,
        bench.one.known.is_left(wake_up, bench.clock.now()),
        bench.other.known.is_left(wake_up, bench.clock.now()),
    ) == (
        True,
        1,
        True,
        False,
    )
    # When another run is called, it has the lease, looks into its line, and asks for the terms first
    taken = bench.other.answer(wake_up)
    assert taken is not None
    assert (taken[0].part, taken[0].backlogged, taken[0].unsure) == (1, True, True)
    # And after a while the run may have it again
    bench.clock.advance(ms=LEFT_MS)
    assert not bench.one.known.is_left(wake_up, bench.clock.now())


@pytest.mark.parametrize("fault", ["", "store.add_to_backlog", "store.remove_from_backlog"])
def test_who_stands_in_the_backlog_of_another_part_after_a_change_of_the_rate_is_moved(fault: str) -> None:
    plan = FaultPlan()
    bench = Bench(plan)
    # Given orders in the line of a rate of one part, which now has three
    lease = bench.takes(bench.one)
    assert lease is not None
    for _ in range(12):
        bench.one.add(KEY, bench.orders(), bench.clock.now())
        bench.clock.advance(ms=1)
    assert len(bench.store.backlog(FLOW, 99)) == 12
    bench.one.known.learn(KEY, FAST, bench.clock.now())
    if fault:
        plan.strike(Fault.FAILS, of=fault)
    # When whoever has the lease looks
    for _ in range(9):
        bench.clock.advance(ms=LOOK_MS)
        bench.one.look(lease)
    # Then each stands where it belongs (one whose move failed, also where it stood), and those are called for whose
    # turns nobody has
    found = [bench.store.backlog(flow, 99) for flow in PARTS]
    assert sum(map(len, found)) == 12 + (fault == "store.remove_from_backlog")
    assert len({each.orders[0].key for line in found for each in line}) == 12
    assert {len(each) for each in found} <= {3, 4, 5}
    assert {wake_up.part for wake_up, _ in bench.queue.sent} == {1, 2}
    assert bool(bench.telemetry.named("backlog_entry_not_moved")) is bool(fault)


def test_a_part_that_there_is_no_more_is_cleared_out_but_for_what_is_being_attempted() -> None:
    bench = Bench()
    first = bench.takes(bench.one, FAST)
    taken = bench.other.take(KEY, "q", FAST, 1)
    assert first is not None
    assert taken is not None
    lease = taken[0]
    for each in (bench.one, bench.other):
        each.known.learn(KEY, FAST, bench.clock.now())
    bench.one.add(KEY, bench.orders(90), bench.clock.now())
    bench.one.add(KEY, bench.orders(90), bench.clock.now())
    lease.expect_backlog()
    bench.other.look(lease)
    going = lease.fetched[7]
    # When the rate is one of a single part
    bench.other.known.learn(KEY, RATE, bench.clock.now())
    assert lease.superfluous
    bench.other.clear_out(lease, [going])
    for _ in range(3):
        lease.expect_backlog()
        bench.other.look(lease)
    # Then nobody stands there but for that one, until it is done
    assert [order.key for each in bench.store.backlog(lease.key, 99) for order in each.orders] == [going.order.key]
    bench.other.settle(lease, going, keep=False)
    assert bench.store.backlog(lease.key, 99) == []
    # And the others stand in the line that is left
    assert sum(len(each.orders) for each in bench.store.backlog(FLOW, 99)) == 30 + 30 + 59


def test_wake_calls_for_the_part_in_whose_backlog_somebody_stands() -> None:
    bench = Bench()
    bench.one.known.learn(KEY, FAST, bench.clock.now())
    bench.one.add(KEY, bench.orders(90), bench.clock.now())
    assert bench.wake_ups.run(lambda: 10**6) == 3
    assert {wake_up.part for wake_up, _ in bench.queue.sent} == {0, 1, 2}


def test_each_backlog_is_tended_though_there_is_never_time_for_all() -> None:
    # Given more backlogs without a wake-up than a minute has time for
    bench = Bench()
    for number in range(12):
        addressee = (KEY[0], KEY[1], f"s{number}")
        own = [
            replace(each, order=replace(each.order, key=each.order.key._replace(subscriber_id=addressee[2])))
            for each in bench.orders()
        ]
        bench.one.add(addressee, own, bench.clock.now())
    # When wake looks at three of them each minute
    for _ in range(12):
        left = iter([60_000] * 3)
        bench.wake_ups.run(lambda left=left: next(left, 0))  # type: ignore[misc]
        bench.clock.advance(seconds=60)
    # Then each was tended
    assert len({wake_up.addressee for wake_up, _ in bench.queue.sent}) == 12
