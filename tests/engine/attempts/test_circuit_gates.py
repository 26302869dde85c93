"""One environment's view of circuits, and the run that handles them each minute: call by call, on a store in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.fakes import FakeClock, FakeConfigStore, Fault, FaultPlan, faulty
from tests.fakes.ports import InlineExecutor
from tests.fakes.subscribers import FakeSubscribers
from tests.fakes.telemetry import FakeTelemetry

from pushhub.base.conflicts import ROUNDS
from pushhub.base.errors import Unavailable
from pushhub.engine.attempts import circuits as module
from pushhub.engine.attempts.circuits import (
    FRESH_MS,
    MARGIN_MS,
    MOST_AT_ONCE,
    QUIET_MS,
    SETTLED_MS,
    Circuits,
    Gate,
    Recover,
)
from pushhub.engine.model.circuit import Circuit, CircuitState, Health, SubscriberKey, warned
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.subscriber_event import SubscriberEvent, SubscriberEventKind
from pushhub.engine.model.work import WorkOrder
from pushhub.engine.ports import BacklogOrder

KEY = SubscriberKey(project="p", queue="q", queue_uid="u", subscriber_id="s0")
CIRCUIT = Circuit(failures=3, share=0.5, least=10, window_s=60, probe_s=60)
PROBE_MS = 70_000


class Bench:
    """Circuits of one environment, and the events they send."""

    def __init__(self, plan: FaultPlan | None = None) -> None:
        self.plan = plan or FaultPlan()
        self.clock = FakeClock()
        self.store = FakeSubscribers()
        self.telemetry = FakeTelemetry()
        self.events: list[SubscriberEvent] = []
        self.sent: list[tuple[WorkOrder, int]] = []
        self.circuits = self.environment()
        self.recover = Recover(
            queues=FakeConfigStore(),
            is_suspended=lambda _: False,
            healths=faulty(self.store, "store", self.plan),
            backlog=faulty(self.store, "store", self.plan),
            retry_queue=self,
            clock=self.clock,
            telemetry=self.telemetry,
            executor=InlineExecutor(),
        )

    def environment(self) -> Circuits:
        """Another environment's circuits."""
        return Circuits(
            healths=faulty(self.store, "store", self.plan),
            events=lambda _: [self],
            clock=self.clock,
            telemetry=self.telemetry,
        )

    def happened(self, event: SubscriberEvent) -> None:
        """As a protocol."""
        self.events.append(event)

    def send(self, orders: Sequence[tuple[WorkOrder, int]]) -> None:
        """As the retry queue."""
        self.sent += orders

    def ended(self, *answers: bool, circuit: Circuit = CIRCUIT, probe: bool = False, key: SubscriberKey = KEY) -> None:
        """Attempts that ended one after the other, True for a failure."""
        for failure in answers:
            self.circuits.ended(key, circuit, failure=failure, probe=probe)

    def gate(self, circuits: Circuits | None = None, key: SubscriberKey = KEY) -> Gate:
        return (circuits or self.circuits).gate(key, probe_ms=PROBE_MS)

    def health(self, key: SubscriberKey = KEY) -> Health:
        return self.store.health(key) or Health(key=key)

    def put(self, **fields: object) -> Health:
        """Store a health as another environment would."""
        health = replace(self.health(), version=self.health().version + 1, **fields)  # type: ignore[arg-type]
        self.store.save(health)
        return health

    def wait(self, count: int, key: SubscriberKey = KEY) -> None:
        """Put orders into a subscriber's backlog."""
        for number in range(count):
            order = WorkOrder(
                key=DeliveryKey(key.project, key.queue_uid, f"{number:05d}", key.subscriber_id), queue="q"
            )
            self.store.add(key, order, self.clock.now())


# -- which subscribers may be attempted


def test_an_open_circuit_lets_one_probe_through_and_again_when_nothing_was_heard_of_it() -> None:
    bench = Bench()
    opened = bench.put(state=CircuitState.OPEN, probe_at=bench.clock.now() + 5, failing_since=1)
    assert bench.gate() is Gate.WAIT
    bench.clock.advance(ms=5)
    assert [bench.gate(), bench.gate()] == [Gate.PROBE, Gate.WAIT]
    claim = bench.health().claim
    assert bench.health() == replace(opened, probe_at=bench.clock.now() + PROBE_MS, claim=claim, version=2)
    assert claim
    assert bench.telemetry.counts == {"CircuitProbes": 1}
    bench.clock.advance(ms=PROBE_MS - 1)
    assert bench.gate() is Gate.WAIT
    bench.clock.advance(ms=1)
    assert bench.gate() is Gate.PROBE


@pytest.mark.parametrize("state", [CircuitState.CLOSED, CircuitState.RAMPING])
def test_any_other_circuit_lets_everything_through(state: CircuitState) -> None:
    bench = Bench()
    assert bench.gate() is Gate.GO
    bench.put(state=state)
    bench.clock.advance(ms=FRESH_MS)
    assert [bench.gate() for _ in range(3)] == [Gate.GO] * 3


def test_of_two_environments_one_makes_the_probe_and_the_other_looks_anew() -> None:
    # Given two environments that know of a due probe
    bench = Bench()
    bench.put(state=CircuitState.OPEN, probe_at=bench.clock.now() + 1)
    other = bench.environment()
    assert [bench.gate(), bench.gate(other)] == [Gate.WAIT, Gate.WAIT]
    bench.clock.advance(ms=1)
    # When both want to make it, in the same millisecond
    assert bench.gate() is Gate.PROBE
    assert bench.gate(other) is Gate.WAIT
    # Then the second one learns right afterwards that the subscriber is back
    bench.put(state=CircuitState.RAMPING)
    assert bench.gate(other) is Gate.GO
    assert bench.gate() is Gate.WAIT


def test_what_is_known_may_be_ten_seconds_old() -> None:
    bench = Bench()
    assert bench.gate() is Gate.GO
    bench.put(state=CircuitState.OPEN, probe_at=bench.clock.now() + 10**6)
    bench.clock.advance(ms=FRESH_MS - 1)
    assert bench.gate() is Gate.GO
    bench.clock.advance(ms=1)
    assert bench.gate() is Gate.WAIT
    assert bench.plan.calls == ["store.health"] * 2
    # And that stays so, whether or not it has changed
    bench.clock.advance(ms=FRESH_MS)
    assert [bench.gate(), bench.gate()] == [Gate.WAIT, Gate.WAIT]
    assert bench.plan.calls == ["store.health"] * 3


def test_only_so_many_are_remembered_those_asked_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KNOWN", 3)
    bench = Bench()
    keys = [replace(KEY, subscriber_id=str(number)) for number in range(4)]
    for key in (*keys[:3], keys[0], keys[3]):
        bench.gate(key=key)
    read = len(bench.plan.calls)
    # Then the one asked longest ago is read again, the others are not
    for key in (keys[0], keys[2], keys[3]):
        bench.gate(key=key)
    assert len(bench.plan.calls) == read
    bench.gate(key=keys[1])
    assert len(bench.plan.calls) == read + 1


# -- what is learned from attempts


def test_a_run_of_failures_opens_the_circuit() -> None:
    bench = Bench()
    now = bench.clock.now()
    bench.ended(True, True)
    assert bench.health() == Health(key=KEY, failing_since=now, version=1)
    assert [*bench.store.looked_after()] == []
    bench.ended(True)
    assert bench.health() == Health(
        key=KEY, state=CircuitState.OPEN, changed_at=now, probe_at=now + 60_000, failing_since=now, version=2
    )
    # Then it is added to the list of circuits to look after before it is written, and an event is sent
    assert [*bench.store.looked_after()] == [KEY]
    assert bench.plan.calls[-2:] == ["store.look_after", "store.save"]
    assert bench.telemetry.counts == {"CircuitsOpen": 1}
    reported = {"state": "open", "project": "p", "queue": "q", "subscriber_id": "s0"}
    assert bench.telemetry.events == [("circuit", reported)]
    assert bench.gate() is Gate.WAIT


def test_a_success_between_them_begins_the_run_anew() -> None:
    bench = Bench()
    bench.ended(True, True, False, True, True)
    assert bench.health().state is CircuitState.CLOSED
    bench.ended(True)
    assert bench.health().state is CircuitState.OPEN


@pytest.mark.parametrize(("successes", "failures", "opens"), [(5, 5, True), (6, 4, False), (4, 5, False)])
def test_a_share_of_failures_opens_it_once_there_are_enough_attempts(
    successes: int, failures: int, opens: bool
) -> None:
    # Given attempts of which never two in a row fail, the last one a failure
    bench = Bench()
    circuit = replace(CIRCUIT, failures=100)
    bench.ended(*[False] * successes, *[True] * failures, circuit=circuit)
    assert (bench.health().state is CircuitState.OPEN) is opens


def test_failures_of_another_minute_are_no_part_of_the_share() -> None:
    def opens(wait_ms: int) -> bool:
        bench = Bench()
        circuit = replace(CIRCUIT, failures=100)
        bench.ended(*[True] * 9, circuit=circuit)
        bench.clock.advance(ms=wait_ms)
        bench.ended(True, circuit=circuit)
        return bench.health().state is CircuitState.OPEN

    assert [opens(60_000), opens(60_001)] == [True, False]


def test_after_a_success_was_written_failures_are_not_for_a_minute() -> None:
    # Given a subscriber that failed once and recovered
    bench = Bench()
    bench.ended(True, False)
    assert [each.failing_since is None for each in bench.store.writes] == [False, True]
    # When it fails now and then within a minute, then nothing is written
    bench.clock.advance(ms=QUIET_MS - 1)
    bench.ended(True, False)
    assert len(bench.store.writes) == 2
    # And after that it is
    bench.clock.advance(ms=1)
    bench.ended(True)
    assert bench.health().failing_since == bench.clock.now()


def test_a_run_of_failures_opens_it_however_quiet_it_is() -> None:
    bench = Bench()
    bench.ended(True, False, True, True)
    assert bench.health().state is CircuitState.CLOSED
    bench.ended(True)
    assert bench.health().state is CircuitState.OPEN


def test_a_success_of_one_that_is_well_is_not_written() -> None:
    bench = Bench()
    bench.ended(*[False] * 5)
    assert bench.store.writes == []


def test_a_probe_that_fails_moves_the_next_one_and_one_that_succeeds_begins_the_ramp() -> None:
    bench = Bench()
    bench.ended(True, True, True)
    for wait_ms in (60_000, 120_000, 240_000):
        bench.clock.set(bench.health().probe_at)
        assert bench.gate() is Gate.PROBE
        bench.ended(True, probe=True)
        assert bench.health().probe_at == bench.clock.now() + wait_ms * 2
    bench.clock.set(bench.health().probe_at)
    assert bench.gate() is Gate.PROBE
    bench.ended(False, probe=True)
    assert bench.health().state is CircuitState.RAMPING
    assert bench.telemetry.counts["CircuitsRamping"] == 1
    # And counting begins anew
    bench.ended(True, True)
    assert bench.health().state is CircuitState.RAMPING
    bench.ended(True)
    assert bench.health().state is CircuitState.OPEN


def test_a_failed_probe_counts_also_just_after_a_success() -> None:
    # Given an environment that has just written a success, and a circuit that others have opened since
    bench = Bench()
    bench.ended(True, False)
    bench.put(state=CircuitState.OPEN, probe_at=1, failing_since=1)
    bench.clock.advance(ms=FRESH_MS)
    assert bench.gate() is Gate.PROBE
    bench.ended(True, probe=True)
    assert bench.health().probes == 1


def test_what_another_one_wrote_first_is_taken_into_account() -> None:
    # Given an environment that does not yet know that a subscriber has been failing since yesterday
    bench = Bench()
    bench.gate()
    before = bench.put(failing_since=5, warnings=1, warned_at=7)
    # When it opens the circuit
    bench.ended(True, True, True, circuit=replace(CIRCUIT, disable_after_s=None))
    # Then that is preserved
    after = bench.health()
    assert (after.state, after.failing_since, after.warnings) == (CircuitState.OPEN, 5, 1)
    assert after.version == before.version + 1


def test_one_that_changes_all_the_time_is_given_up_after_some_rounds() -> None:
    # Given a store in which another writer always comes first
    bench = Bench()
    bench.gate()
    save, tries = bench.store.save, []

    def contended(health: Health) -> None:
        tries.append(health.version)
        save(replace(bench.health(), changed_at=len(tries), version=bench.health().version + 1))
        save(health)

    bench.store.save = contended  # type: ignore[method-assign]
    bench.ended(True)
    assert tries == [*range(1, ROUNDS + 1)]
    assert bench.health().failing_since is None
    [event] = bench.telemetry.named("health_not_written")
    assert str(event["error"]).startswith("writing what is known of a subscriber")
    # And whoever wants one that fails to start over has to ask again
    bench.clock.advance(ms=FRESH_MS)
    save(replace(bench.health(), failing_since=1, version=bench.health().version + 1))
    with pytest.raises(Unavailable, match="what is known of a subscriber"):
        bench.circuits.start_over(KEY)


def test_what_cannot_be_written_is_told_and_harms_no_delivery() -> None:
    bench = Bench(FaultPlan(Fault.FAILS, of="store.save"))
    bench.ended(True)
    fields = {"error": "store.save failed", "project": "p", "subscriber_id": "s0"}
    assert bench.telemetry.events == [("health_not_written", fields)]
    assert bench.telemetry.counts == {"CallsFailed": 1}
    # And the next one writes it
    bench.ended(True)
    assert bench.health().failing_since is not None


# -- days of failure


def test_a_warning_is_told_then_written_and_the_last_one_has_it_disabled() -> None:
    bench = Bench()
    circuit = replace(CIRCUIT, failures=100, least=100, disable_after_s=1000)
    start = bench.clock.now()
    bench.ended(True, circuit=circuit)
    for _ in range(10):
        bench.clock.advance(seconds=100)
        bench.ended(True, circuit=circuit)
    reported = [(each.percent, (each.at - start) // 1000) for each in bench.events]
    assert reported == [(50, 500), (70, 700), (90, 900), (100, 1000)]
    assert len({each.cause for each in bench.events}) == 4
    common = {"project": "p", "queue": "q", "queue_uid": "u", "subscriber_id": "s0"}
    assert bench.events[0] == SubscriberEvent(
        kind=SubscriberEventKind.FAILING,
        at=start + 500_000,
        reason="failing",
        failing_since=start,
        percent=50,
        **common,
    )
    assert [each.kind for each in bench.events] == [*[SubscriberEventKind.FAILING] * 3, SubscriberEventKind.DISABLE]
    assert bench.telemetry.counts == {"SubscribersFailing": 3, "SubscribersDisabled": 1}
    # Then nothing is stored about it any more
    health = bench.health()
    assert health == Health(key=KEY, changed_at=start + 1_000_000, version=health.version)


@pytest.mark.parametrize("warnings", [0, 1, 2, 3])
def test_a_warning_that_two_give_at_once_counts_once(warnings: int) -> None:
    # Given a subscriber with a due warning
    bench = Bench()
    circuit = replace(CIRCUIT, failures=100, least=100, disable_after_s=1000)
    start = bench.clock.now()
    bench.put(failing_since=start, warnings=warnings)
    bench.clock.advance(seconds=1000)
    # When another environment gives it while this one does
    another_one = warned(bench.health(), bench.clock.now() - 1)
    meanwhile = iter([lambda: bench.store.save(another_one)])
    bench.happened = lambda event: next(meanwhile)()  # type: ignore[method-assign]
    bench.ended(True, circuit=circuit)
    # Then it counts as given once
    assert bench.health() == another_one


def test_starting_over_forgets_what_there_was_and_costs_nothing_where_there_was_nothing() -> None:
    bench = Bench()
    bench.circuits.start_over(KEY)
    assert bench.store.writes == []
    bench.ended(True, True, True)
    bench.clock.advance(ms=7)
    bench.circuits.start_over(KEY)
    assert bench.health() == Health(key=KEY, changed_at=bench.clock.now(), version=3)
    bench.circuits.start_over(KEY)
    assert bench.health().version == 3
    assert bench.gate() is Gate.GO


# -- the run of each minute


def let_go(bench: Bench) -> int:
    """Number of orders that one run releases."""
    before = len(bench.sent)
    count = bench.recover.run(lambda: MARGIN_MS + 1)
    assert count == len(bench.sent) - before
    return count


def test_an_open_circuit_gets_one_order_for_its_probe_when_that_is_due() -> None:
    bench = Bench()
    bench.wait(3)
    bench.store.look_after(KEY, 0)
    bench.put(state=CircuitState.OPEN, probe_at=bench.clock.now() + 1, failing_since=1)
    assert let_go(bench) == 0
    bench.clock.advance(ms=1)
    assert let_go(bench) == 1
    [(order, delay_s)] = bench.sent
    assert (order.key.message_id, delay_s) == ("00000", 0)
    assert [each.order.key.message_id for each in bench.store.waiting(KEY, 9)] == ["00001", "00002"]
    assert bench.telemetry.counts == {"DeliveriesReleased": 1}


def test_a_ramp_lets_twice_as_many_go_each_minute_and_ends_a_minute_after_the_last() -> None:
    bench = Bench()
    bench.wait(35)
    bench.store.look_after(KEY, 0)
    began = bench.put(state=CircuitState.RAMPING, changed_at=bench.clock.now())
    assert [let_go(bench) for _ in range(4)] == [10, 20, 5, 0]
    assert bench.telemetry.counts == {"DeliveriesReleased": 35}
    # Then orders that other runs may still add are waited for
    assert bench.health() == replace(began, ramped=4, version=5)
    bench.clock.advance(ms=SETTLED_MS)
    assert let_go(bench) == 0
    assert bench.health().state is CircuitState.RAMPING
    bench.clock.advance(ms=1)
    assert let_go(bench) == 0
    now = bench.clock.now()
    assert bench.health() == replace(began, state=CircuitState.CLOSED, changed_at=now, ramped=0, version=7)


def test_a_ramp_that_another_one_changed_meanwhile_is_left_as_that_made_it() -> None:
    bench = Bench()
    bench.wait(1)
    bench.store.look_after(KEY, 0)
    bench.put(state=CircuitState.RAMPING)
    bench.store.remove = lambda key, waiting: bench.put(ramped=9)  # type: ignore[method-assign, assignment]
    assert let_go(bench) == 1
    assert bench.health().ramped == 9
    assert bench.telemetry.events == []


def test_a_closed_circuit_lets_all_go_and_leaves_the_list_a_minute_after_it_closed() -> None:
    bench = Bench()
    bench.wait(MOST_AT_ONCE + 1)
    bench.store.look_after(KEY, 0)
    bench.put(changed_at=bench.clock.now() - SETTLED_MS - 1)
    assert [let_go(bench), let_go(bench)] == [MOST_AT_ONCE, 1]
    assert [*bench.store.looked_after()] == [KEY]
    assert let_go(bench) == 0
    assert [*bench.store.looked_after()] == []
    # And one that has just closed stays
    bench.store.look_after(KEY, 0)
    bench.put(changed_at=bench.clock.now() - SETTLED_MS)
    assert let_go(bench) == 0
    assert [*bench.store.looked_after()] == [KEY]


def test_a_circuit_that_opens_while_it_is_taken_off_the_list_stays_on_it() -> None:
    # Given a circuit that has been closed for a while, and is about to leave the list
    bench = Bench()
    bench.store.look_after(KEY, 0)
    bench.put(changed_at=bench.clock.now() - SETTLED_MS - 1)
    leave = bench.store.leave

    def opened(key: SubscriberKey, since: int) -> None:
        # When another environment opens it meanwhile
        bench.ended(True, True, True)
        leave(key, since)

    bench.store.leave = opened  # type: ignore[method-assign]
    assert let_go(bench) == 0
    # Then it is still looked after: what waits for it would wait until it expires
    assert bench.health().state is CircuitState.OPEN
    assert [*bench.store.looked_after()] == [KEY]


def test_a_run_ends_in_time_and_the_next_begins_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given five subscribers, two of which are handled at a time, and time for one round
    monkeypatch.setattr(module, "AT_ONCE", 2)
    bench = Bench()
    bench.clock.set(600_000)
    keys = [replace(KEY, subscriber_id=str(number)) for number in range(5)]
    for key in keys:
        bench.store.look_after(key, 0)
    seen: list[list[str]] = []
    for _ in range(3):
        for key in keys:
            bench.wait(1 - len(bench.store.waiting(key, 1)), key)
        left = iter([MARGIN_MS + 1, MARGIN_MS])
        del bench.sent[:]
        assert bench.recover.run(lambda left=left: next(left)) == 2  # type: ignore[misc]
        seen.append([order.key.subscriber_id for order, _ in bench.sent])
        bench.clock.advance(seconds=60)
    assert seen == [["0", "1"], ["2", "3"], ["4", "0"]]
    # And with time for all the rounds together are counted
    left = iter([MARGIN_MS + 1] * 9)
    assert bench.recover.run(lambda: next(left)) == 3
    # And with an empty list there is nothing to do
    assert Bench().recover.run(lambda: 10**6) == 0
    assert Bench().telemetry.counts == {}


def test_what_goes_wrong_with_one_is_told_and_counted_by_kind() -> None:
    bench = Bench(FaultPlan(Fault.FAILS, of="store.waiting"))
    bench.wait(1)
    bench.store.look_after(KEY, 0)
    assert bench.recover.run(lambda: 10**6) == 0
    assert bench.telemetry.counts == {"CallsFailed": 1}
    [(name, fields)] = bench.telemetry.events
    assert name == "circuit_not_seen_to"
    assert fields["error"] == f"{Unavailable.__name__}: store.waiting failed"
    assert (fields["project"], fields["queue"], fields["subscriber_id"]) == ("p", "q", "s0")
    # And the next minute it is handled
    assert let_go(bench) == 1
    # Given a fault of our own, and another subscriber
    bench, other = Bench(), replace(KEY, subscriber_id="s1")
    bench.wait(1, other)
    for each in (KEY, other):
        bench.store.look_after(each, 0)
    whole = bench.store.waiting

    def spoiled(key: SubscriberKey, limit: int) -> list[BacklogOrder]:
        if key == KEY:
            raise ValueError("not a work order")
        return whole(key, limit)

    bench.store.waiting = spoiled  # type: ignore[method-assign]
    # Then that is not held up
    assert bench.recover.run(lambda: 10**6) == 1
    assert bench.telemetry.counts == {"CircuitFaults": 1, "DeliveriesReleased": 1}
