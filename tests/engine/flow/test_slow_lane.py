"""The slow lane: a slow subscriber delays no other orders, in any environment, and loses nothing."""

from __future__ import annotations

from collections.abc import Sequence

from tests.engine.flow.test_waiting import hung_and_victim, post, pushing, run
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import FakeClock, FakeWorkQueue, Fault, FaultPlan, Reply, faulty
from tests.fakes.subscribers import FakeSubscribers
from tests.fakes.telemetry import FakeTelemetry

from pushhub.engine.flow import slow_lane
from pushhub.engine.flow.slow_lane import BUSY_ORDERS, FRESH_MS, SlowLane
from pushhub.engine.model.concurrency import REMEMBERED_MS, SLOW_MS
from pushhub.engine.model.delivery import DeliveryState

SLOW = "https://slow.example/in"
KEY = (PROJECT, "uid-q", "s0")


def a_slow_queue(*, takes_ms: int = SLOW_MS + 1, plan: FaultPlan | None = None) -> World:
    """A queue whose only subscriber is slow."""
    world = World(plan)
    world.make_queue("q", subscribers(SLOW), retries=2, retries_delay=3)
    world.sender.script(SLOW, Reply(status_code=200, takes_ms=takes_ms))
    return world


def run_one(world: World, name: str) -> None:
    """One run on what is visible in a queue."""
    run(world, world.push, getattr(world.hub.engine.ports, name))


def test_orders_for_a_listed_subscriber_are_handed_over_before_anything_is_read_for_them() -> None:
    # Given a subscriber that another environment found to be slow, and a busy batch of orders for it
    plan = FaultPlan()
    world = a_slow_queue(takes_ms=10, plan=plan)
    world.ports.subscribers.note_slow([KEY], world.clock.now() + REMEMBERED_MS)
    world.post("q", *[b"x"] * BUSY_ORDERS)
    world.dispatch_only()
    # When a run of first attempts gets it
    before = len(plan.calls)
    run_one(world, "push_queue")
    # Then they are in the slow lane, in one SQS message as before, and no attempt was made and no delivery read
    assert (len(world.push_queue), len(world.slow_queue)) == (0, 1)
    assert len(world.slow_queue.orders()) == BUSY_ORDERS
    assert world.sender.requests_to(SLOW) == []
    assert plan.calls[before:].count("messages.deliveries") == 0
    # And the slow lane's own runs attempt them
    run_one(world, "slow_queue")
    assert len(world.sender.requests_to(SLOW)) == BUSY_ORDERS
    assert {each.state for each in world.messages.all_deliveries()} == {DeliveryState.DELIVERED}


def test_a_lone_order_is_attempted_without_a_look_at_the_list() -> None:
    world = a_slow_queue(takes_ms=10)
    world.ports.subscribers.note_slow([KEY], world.clock.now() + REMEMBERED_MS)
    world.post("q", b"x")
    world.dispatch_only()
    run_one(world, "push_queue")
    assert len(world.sender.requests_to(SLOW)) == 1


def test_one_that_hangs_is_listed_while_it_hangs_and_its_backlog_makes_room() -> None:
    # Given an endpoint that hangs, a backlog for it, and behind that a message of another project
    world, hung = hung_and_victim()
    post(world, "hung0", 100)
    with pushing(world) as push:
        listed: list[dict[tuple[str, str, str], int]] = []

        def served(_: object) -> None:
            listed.append(world.ports.subscribers.slow(world.clock.now(), 10))
            hung.free.set()

        world.sender.script("https://victim.example/in", Reply(status_code=200, meanwhile=served))
        post(world, "victim")
        # When one run works on all of that
        run(world, push, world.push_queue)
    # Then the other project was served while it hung, all environments knew by then, and all but one order wait in the
    # slow lane
    assert listed == [{(PROJECT, "uid-hung0", "s0"): world.clock.now() + REMEMBERED_MS}]
    assert len(world.slow_queue.orders()) == 99
    assert len(world.push_queue) == len(world.retry_queue) == 0


def test_all_messages_of_a_slow_subscriber_are_delivered_once_each() -> None:
    world = a_slow_queue()
    ids = world.post("q", *[b"x"] * 30)
    world.run(seconds=3_600)
    assert sorted(each.message_id for each in world.messages.all_deliveries()) == sorted(ids)
    assert {each.state for each in world.messages.all_deliveries()} == {DeliveryState.DELIVERED}
    assert len(world.sender.requests_to(SLOW)) == 30
    assert len(world.slow_queue) == 0


class Counted(FakeSubscribers):
    """Counts how often the list is read and written."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.notes: list[tuple[str, str, str]] = []

    def slow(self, now: int, limit: int) -> dict[tuple[str, str, str], int]:
        self.reads += 1
        return super().slow(now, limit)

    def note_slow(self, keys: Sequence[tuple[str, str, str]], until: int) -> None:
        self.notes += keys
        super().note_slow(keys, until)


def test_the_list_is_read_once_in_ten_seconds_and_only_by_those_who_are_busy() -> None:
    clock, store = FakeClock(), Counted()
    lane = SlowLane(queue=FakeWorkQueue(clock), subscribers=store, clock=clock, telemetry=FakeTelemetry())
    for orders in (1, BUSY_ORDERS - 1, BUSY_ORDERS, 100):
        lane.refresh(orders)
    assert store.reads == 1
    clock.advance(ms=FRESH_MS)
    lane.refresh(100)
    assert store.reads == 2


def test_who_is_on_the_list_is_not_entered_again_and_a_full_list_takes_no_more() -> None:
    clock, store, telemetry = FakeClock(), Counted(), FakeTelemetry()
    lane = SlowLane(queue=FakeWorkQueue(clock), subscribers=store, clock=clock, telemetry=telemetry)
    lane.tell([KEY])
    lane.tell([KEY])
    assert store.notes == [KEY]
    others = [(KEY[0], KEY[1], str(number)) for number in range(slow_lane.LISTED + 5)]
    lane.tell(others)
    assert len(store.notes) == slow_lane.LISTED
    lane.tell([(KEY[0], KEY[1], "one more")])
    assert len(store.notes) == slow_lane.LISTED
    assert telemetry.counts == {"SubscribersSlow": slow_lane.LISTED}
    # And it is forgotten when its time is over
    assert lane.listed[KEY] > clock.now()
    clock.advance(ms=REMEMBERED_MS)
    assert lane.listed[KEY] <= clock.now()


def test_a_list_that_cannot_be_read_or_written_is_told_and_what_is_known_stays() -> None:
    # Given an environment that knows one slow subscriber
    clock, telemetry, plan = FakeClock(), FakeTelemetry(), FaultPlan()
    store = faulty(FakeSubscribers(), "store", plan)
    lane = SlowLane(queue=FakeWorkQueue(clock), subscribers=store, clock=clock, telemetry=telemetry)
    store.note_slow([KEY], clock.now() + REMEMBERED_MS)
    lane.refresh(BUSY_ORDERS)
    # When the list cannot be read, then the cached one is still used
    clock.advance(ms=FRESH_MS)
    plan.strike(Fault.FAILS, of="store.slow")
    lane.refresh(BUSY_ORDERS)
    assert lane.listed[KEY] > clock.now()
    assert telemetry.events == [("slow_list_unread", {"error": "store.slow failed"})]
    # And another one that cannot be listed is known here
    other = (PROJECT, "uid-q", "s1")
    plan.strike(Fault.FAILS, of="store.note_slow")
    lane.tell([other])
    assert lane.listed[other] > clock.now()
    assert telemetry.events[1:] == [("slow_list_unwritten", {"error": "store.note_slow failed"})]
    assert telemetry.counts == {"CallsFailed": 2, "SubscribersSlow": 1}
