"""The backlog of a subscriber by itself: examples of each transition, and invariants for any sequence of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pushhub.notifications.model.backlog import (
    MAX_CONSUMERS,
    MAX_HELD,
    WINDOW,
    AlreadyConnected,
    Assigner,
    Backlog,
    Consumer,
    Entry,
    absorb,
    join,
    leave,
    record,
)
from pushhub.notifications.model.topic import Topic

TOPIC = Topic(project="p", name="orders")
VOLATILE = Topic(project="p", name="orders", non_persistent=True)
NOW = 1_795_000_000_000


def entries(*positions: int) -> tuple[Entry, ...]:
    """Each in a bucket of its own."""
    return tuple(Entry(position, position) for position in positions)


def consumer(connection_id: str = "a", *positions: int, name: str = "", active_at: int = NOW) -> Consumer:
    return Consumer(
        connection_id=connection_id,
        name=name or connection_id,
        joined_at=NOW,
        active_at=active_at,
        unacknowledged=entries(*positions),
    )


def backlog(*consumers: Consumer, **more: Any) -> Backlog:
    fields: dict[str, Any] = {
        "topic": TOPIC,
        "subscriber": "app",
        "uid": "u",
        "shared": len(consumers) > 1,
        "next": 100,
        "consumers": consumers,
        "created_at": NOW,
        "version": 7,
    }
    return Backlog(**fields | more)


def unacknowledged(now: Backlog) -> dict[str, list[int]]:
    return {each.connection_id: [entry.position for entry in each.unacknowledged] for each in now.consumers}


def returned(now: Backlog) -> list[int]:
    return [entry.position for entry in now.returned]


def test_before_the_first_consumer_nothing_is_needed() -> None:
    assert backlog(next=None).oldest is None


@pytest.mark.parametrize(
    ("now", "oldest"),
    [
        (backlog(), 100),
        (backlog(consumer("a")), 100),
        (backlog(consumer("a", 40, 50)), 40),
        (backlog(consumer("a", 40), consumer("b", 30)), 30),
        (backlog(consumer("a", 40), returned=entries(20, 60)), 20),
        (backlog(consumer("a", 10), returned=entries(20)), 10),
    ],
)
def test_it_is_the_first_that_is_unacknowledged_returned_or_not_assigned_yet(now: Backlog, oldest: int) -> None:
    assert now.oldest == oldest


def test_the_first_consumer_ever_starts_at_the_end_of_the_log() -> None:
    before = backlog(next=None, returned=entries(3), acknowledged_early=frozenset({4}), lapsed=((1, 2),))
    joined = join(before, consumer("a"), shared=False, end=70)
    assert (joined.next, joined.returned, joined.acknowledged_early, joined.lapsed) == (70, (), frozenset(), ())
    assert (joined.consumers, joined.shared, joined.version) == ((consumer("a"),), False, 8)


def test_a_later_one_goes_on_where_the_backlog_is() -> None:
    before = backlog(returned=entries(3), acknowledged_early=frozenset({104}), lapsed=((1, 2),))
    joined = join(before, consumer("a"), shared=True, end=170)
    assert (joined.next, joined.returned, joined.acknowledged_early) == (100, entries(3), frozenset({104}))
    assert (joined.consumers, joined.shared, joined.lapsed, joined.version) == ((consumer("a"),), True, (), 8)


def test_who_joins_consumers_of_a_shared_subscriber_comes_after_them() -> None:
    before = backlog(consumer("a", 4), shared=True)
    joined = join(before, consumer("b"), shared=True, end=170)
    assert joined.consumers == (consumer("a", 4), consumer("b"))
    assert joined.next == 100


def test_a_non_persistent_one_starts_anew_with_each_first_connection() -> None:
    before = backlog(topic=VOLATILE, returned=entries(3), acknowledged_early=frozenset({104}))
    joined = join(before, consumer("a"), shared=False, end=170)
    assert (joined.next, joined.returned, joined.acknowledged_early) == (170, (), frozenset())


def test_a_second_one_of_a_non_persistent_one_takes_nothing_from_the_first() -> None:
    before = backlog(consumer("a", 4), topic=VOLATILE, shared=True, returned=entries(3))
    joined = join(before, consumer("b"), shared=True, end=170)
    assert (joined.next, joined.returned) == (100, entries(3))


@pytest.mark.parametrize(("was", "token"), [(False, False), (False, True), (True, False)])
def test_an_exclusive_subscriber_or_token_lets_nobody_else_in(was: bool, token: bool) -> None:
    with pytest.raises(AlreadyConnected, match="exclusive"):
        join(backlog(consumer("a"), shared=was), consumer("b"), shared=token, end=170)


def test_what_a_subscriber_was_before_does_not_matter_when_nobody_is_connected() -> None:
    assert join(backlog(shared=True), consumer("a"), shared=False, end=170).shared is False


def test_the_bounds_are_the_documented_ones() -> None:
    assert (MAX_CONSUMERS, MAX_HELD, WINDOW) == (50, 15_000, 1000)


def test_a_shared_subscriber_takes_so_many_consumers() -> None:
    full = backlog(*(consumer(f"c{number}") for number in range(MAX_CONSUMERS)))
    one_less = replace(full, consumers=full.consumers[1:])
    assert len(join(one_less, consumer("x"), shared=True, end=1).consumers) == MAX_CONSUMERS
    with pytest.raises(AlreadyConnected, match=str(MAX_CONSUMERS)):
        join(full, consumer("x"), shared=True, end=1)


def test_what_was_not_acknowledged_is_returned_in_order() -> None:
    before = backlog(consumer("a", 10, 30, 50), consumer("b", 20), returned=entries(5, 40), lapsed=((1, 2),))
    left = leave(before, "a", frozenset({30}))
    assert returned(left) == [5, 10, 40, 50]
    assert unacknowledged(left) == {"b": [20]}
    assert (left.next, left.lapsed, left.version) == (100, (), 8)


def test_what_was_acknowledged_before_it_was_recorded_as_sent_is_kept_in_mind() -> None:
    before = backlog(consumer("a", 10), acknowledged_early=frozenset({120}))
    left = leave(before, "a", frozenset({10, 99, 100, 101}))
    assert left.acknowledged_early == {100, 101, 120}
    assert left.returned == ()


def test_an_acknowledgement_of_something_a_sibling_has_counts_there() -> None:
    # It was sent to the one that leaves first, and a crash prevented that from being recorded.
    left = leave(backlog(consumer("a"), consumer("b", 20, 21), returned=entries(5, 6)), "a", frozenset({5, 20}))
    assert unacknowledged(left) == {"b": [21]}
    assert returned(left) == [6]


def test_a_non_persistent_one_is_owed_nothing() -> None:
    left = leave(backlog(consumer("a", 10), topic=VOLATILE, returned=entries(5)), "a", frozenset())
    assert (returned(left), left.consumers) == ([5], ())


def test_who_is_not_there_changes_nothing() -> None:
    before = backlog(consumer("a", 10))
    assert leave(before, "b", frozenset({10})) is before
    unborn = backlog(consumer("a"), next=None)
    assert leave(unborn, "a", frozenset()) is unborn


def test_what_was_acknowledged_is_done_with_wherever_it_is() -> None:
    before = backlog(consumer("a", 10, 11), consumer("b", 20), returned=entries(5, 6))
    absorbed = absorb(before, frozenset({5, 11, 20, 999}))
    assert unacknowledged(absorbed) == {"a": [10], "b": []}
    assert returned(absorbed) == [6]
    assert absorbed.version == before.version


@pytest.mark.parametrize("acknowledged", [frozenset(), frozenset({7, 100, 2000})])
def test_it_is_the_very_same_when_that_changes_nothing(acknowledged: Set[int]) -> None:
    before = backlog(consumer("a", 10), returned=entries(5))
    assert absorb(before, acknowledged) is before


@pytest.mark.parametrize("position", [5, 10])
def test_one_place_is_enough_to_make_it_another(position: int) -> None:
    before = backlog(consumer("a", 10), returned=entries(5))
    assert absorb(before, frozenset({position})) != before


def test_a_window_is_filled_and_no_further() -> None:
    assigner = Assigner(backlog(consumer("a", 1, 2)), frozenset(), window=5)
    assert (assigner.room, assigner.full) == (3, frozenset())
    assert [assigner.assign(each) for each in entries(10, 11)] == ["a", "a"]
    assert (assigner.room, assigner.full) == (1, frozenset())
    assert assigner.assign(Entry(12, 12)) == "a"
    assert (assigner.room, assigner.full) == (0, frozenset("a"))
    assert assigner.assign(Entry(13, 13)) is None
    assert assigner.room == 0


def test_the_window_is_a_thousand_unless_told_otherwise() -> None:
    assert Assigner(backlog(consumer("a")), frozenset()).room == WINDOW == 1000


def test_one_that_has_more_than_its_window_takes_no_room_from_others() -> None:
    assigner = Assigner(backlog(consumer("a", *range(7)), consumer("b")), frozenset(), window=5)
    assert (assigner.room, assigner.full) == (5, frozenset("a"))


def test_a_source_stays_with_the_one_that_holds_some_of_it() -> None:
    for holder in ("a", "b"):
        other = "b" if holder == "a" else "a"
        held = replace(consumer(holder), unacknowledged=tuple(Entry(number, number) for number in range(50)))
        assigner = Assigner(backlog(held, consumer(other)), frozenset())
        assert {assigner.owner(bucket) for bucket in range(50)} == {holder}


def test_a_source_stays_where_the_first_of_it_was_assigned_and_waits_for_room_there() -> None:
    assigner = Assigner(backlog(consumer("a"), consumer("b")), frozenset(), window=1)
    first = assigner.assign(Entry(10, 4711))
    assert assigner.assign(Entry(11, 4711)) is None
    assert assigner.owner(4711) == first
    assert assigner.room == 1


def test_sources_are_shared_out_evenly_and_by_name() -> None:
    now = backlog(consumer("a", name="alpha"), consumer("b", name="beta"), consumer("c", name="gamma"))
    assigner = Assigner(now, frozenset())
    owners = [assigner.owner(bucket) for bucket in range(3000)]
    assert all(900 < owners.count(each) < 1100 for each in "abc")
    # The same names on other connections, and in another order, own the same
    again = backlog(consumer("z", name="gamma"), consumer("y", name="alpha"), consumer("x", name="beta"))
    renamed = {"a": "y", "b": "x", "c": "z"}
    other = Assigner(again, frozenset())
    assert [other.owner(bucket) for bucket in range(3000)] == [renamed[each] for each in owners]


def test_one_that_joins_takes_only_what_it_gets() -> None:
    before = Assigner(backlog(consumer("a"), consumer("b")), frozenset())
    after = Assigner(backlog(consumer("a"), consumer("b"), consumer("c")), frozenset())
    moved = [bucket for bucket in range(3000) if before.owner(bucket) != after.owner(bucket)]
    assert {after.owner(bucket) for bucket in moved} == {"c"}
    assert 900 < len(moved) < 1100


def test_of_two_of_one_name_the_later_connection_id_owns() -> None:
    assigner = Assigner(backlog(consumer("b", name="n"), consumer("a", name="n")), frozenset())
    assert {assigner.owner(bucket) for bucket in range(20)} == {"b"}


@pytest.mark.parametrize(("bucket", "owner"), [(0, "b"), (1, "b"), (4711, "a"), (65_535, "a")])
def test_who_owns_a_bucket_does_not_change_from_one_release_to_the_next(bucket: int, owner: str) -> None:
    # Consumers keep their share across a deployment.
    names = backlog(consumer("a", name="alpha"), consumer("b", name="beta"), consumer("c", name="gamma"))
    assert Assigner(names, frozenset()).owner(bucket) == owner


def test_a_name_may_hold_half_a_surrogate_pair() -> None:
    assert Assigner(backlog(consumer("a", name="\ud800"), consumer("b")), frozenset()).owner(1) in ("a", "b")


def test_what_was_acknowledged_although_nothing_was_recorded_is_done() -> None:
    assigner = Assigner(backlog(consumer("a"), acknowledged_early=frozenset({101})), frozenset({102}))
    assert [assigner.done(Entry(each, 0)) for each in (100, 101, 102, 103)] == [False, True, True, False]


def recorded(now: Backlog, **more: Any) -> Backlog:
    fields: dict[str, Any] = {"sent": {}, "held": (), "done": frozenset(), "lapsed": (), "up_to": 0, "now": NOW + 50}
    return record(now, **fields | more)


def test_what_was_sent_is_unacknowledged_in_order() -> None:
    before = backlog(consumer("a", 10, 30), consumer("b"), returned=entries(20))
    after = recorded(before, sent={"a": [*entries(100, 20)]}, up_to=101)
    assert unacknowledged(after) == {"a": [10, 20, 30, 100], "b": []}
    assert (returned(after), after.next, after.version) == ([], 101, 8)
    # And a consumer that was sent nothing was not active
    assert [each.active_at for each in after.consumers] == [NOW + 50, NOW]


def test_activity_does_not_go_back() -> None:
    before = backlog(consumer("a", active_at=NOW + 90))
    assert recorded(before, sent={"a": [Entry(100, 1)]}, up_to=101).consumers[0].active_at == NOW + 90


def test_what_nobody_had_room_for_is_returned_in_order() -> None:
    after = recorded(backlog(consumer("a"), returned=entries(40, 50)), held=entries(101, 40), up_to=102)
    assert (returned(after), after.next) == ([40, 50, 101], 102)


def test_what_was_sent_to_one_that_has_left_is_returned() -> None:
    after = recorded(backlog(consumer("b")), sent={"a": entries(100), "b": entries(101)}, up_to=102)
    assert (returned(after), unacknowledged(after)) == ([100], {"b": [101]})


def test_what_is_done_with_is_returned_no_more() -> None:
    before = backlog(consumer("a"), returned=entries(50, 51, 52), acknowledged_early=frozenset({52}))
    after = recorded(before, held=entries(101, 102), done=frozenset({50, 101}), up_to=103)
    assert returned(after) == [51, 102]


def test_early_acknowledgements_are_kept_until_their_position_is_passed() -> None:
    before = backlog(consumer("a"), acknowledged_early=frozenset({100, 101, 102}))
    assert recorded(before, up_to=101).acknowledged_early == {101, 102}
    assert recorded(before).acknowledged_early == {100, 101, 102}


def test_the_log_is_never_gone_back() -> None:
    assert recorded(backlog(consumer("a")), up_to=40).next == 100
    assert recorded(backlog(consumer("a"), next=None), up_to=40).next == 40


def test_what_expired_is_told_once() -> None:
    after = recorded(backlog(consumer("a"), lapsed=((1, 1),)), lapsed=[(100, 104)], up_to=105)
    assert after.lapsed == ((100, 104),)
    assert recorded(after).lapsed == ()


def test_a_non_persistent_one_sends_nothing_again() -> None:
    before = backlog(consumer("b"), topic=VOLATILE, returned=entries(50))
    after = recorded(before, sent={"a": entries(100)}, held=entries(101), up_to=102)
    assert (returned(after), after.next) == ([50, 101], 102)


def test_a_non_persistent_one_that_started_anew_meanwhile_is_not_sent_what_was_before() -> None:
    before = backlog(consumer("b"), topic=VOLATILE, next=200, returned=entries(201))
    after = recorded(before, sent={"a": entries(100)}, held=entries(101), up_to=102)
    assert (returned(after), after.next) == ([201], 200)
    # Nor if nothing was published since
    assert returned(recorded(replace(before, next=102), held=entries(101), up_to=102)) == [201]


def test_a_round_that_is_recorded_twice_with_a_leaver_in_between_changes_nothing_the_second_time() -> None:
    # Given a recorded round: four sent, one of which had been returned before, one held, and some expired
    before = backlog(consumer("a"), consumer("b"), returned=entries(50, 51))
    sent = {"a": entries(50, 100, 101), "b": entries(102)}
    reported: dict[str, Any] = {"sent": sent, "held": entries(103), "lapsed": [(51, 51), (104, 106)], "up_to": 107}
    first = recorded(before, done=frozenset({51}), **reported)
    # And one of its consumers, which then acknowledged two and left
    left = leave(first, "a", {50, 101})
    assert (returned(left), unacknowledged(left)) == ([100, 103], {"b": [102]})
    # When it is recorded again, because the call was repeated
    after = recorded(left, done=frozenset({51}), **reported)
    # Then what is done is not owed again, nor reported
    assert (returned(after), unacknowledged(after)) == ([100, 103], {"b": [102]})
    assert (after.next, after.lapsed) == (107, ())


SOURCES = 5


class Backlogs(RuleBasedStateMachine):
    """Random histories of one backlog: a log that grows, consumers that come and go,
    passes that send some of what they planned.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = backlog(next=None, version=1)
        self.window = 3
        self.length = 0
        self.start = 0
        self.joined = 0
        self.noted: dict[str, set[int]] = {}
        """Positions acknowledged on each live connection, absorbed or not."""
        self.done: set[int] = set()
        """Positions acknowledged or expired."""
        self.sent: dict[str, list[int]] = {}

    @initialize(shared=st.booleans(), length=st.integers(0, 3))
    def first(self, shared: bool, length: int) -> None:
        self.shared = shared
        self.length = self.start = length
        self.joins()

    @rule(count=st.integers(1, 6))
    def publishes(self, count: int) -> None:
        self.length += count

    @rule()
    def joins(self) -> None:
        connection_id = f"c{self.joined}"
        try:
            joined = join(self.now, consumer(connection_id), shared=self.shared, end=self.length)
        except AlreadyConnected:
            assert not self.shared
            assert self.now.consumers
            return
        self.joined += 1
        self.noted[connection_id] = set()
        self.sent[connection_id] = []
        self.saved(joined)

    @precondition(lambda self: self.now.consumers)
    @rule(data=st.data())
    def leaves(self, data: Any) -> None:
        self.leave(data.draw(st.sampled_from([each.connection_id for each in self.now.consumers])))

    def leave(self, connection_id: str) -> None:
        self.saved(leave(self.now, connection_id, self.noted.pop(connection_id)))

    @precondition(lambda self: any(self.sent[each] for each in self.noted))
    @rule(data=st.data())
    def acknowledges(self, data: Any) -> None:
        connection_id = data.draw(st.sampled_from([each for each in self.noted if self.sent[each]]))
        self.acknowledge(connection_id, data.draw(st.sampled_from(self.sent[connection_id])))

    def acknowledge(self, connection_id: str, position: int) -> None:
        self.noted[connection_id].add(position)
        self.done.add(position)

    @precondition(lambda self: self.now.consumers)
    @rule(data=st.data(), limit=st.integers(1, 6), fails=st.booleans(), recorded=st.booleans())
    def passes(self, data: Any, limit: int, fails: bool, recorded: bool) -> None:
        """As the sender does it: take over acknowledgements, plan, send, perhaps see the backlog change,
        record or crash.
        """
        noted = frozenset[int]().union(*self.noted.values())
        assigner = Assigner(absorb(self.now, noted), noted, self.window)
        plan, held, done, up_to = self.plan(assigner, limit)
        sent: dict[str, list[Entry]] = {}
        for number, (connection_id, entry) in enumerate(plan):
            if fails and number >= len(plan) // 2:
                held.append(entry)
                continue
            # Nothing acknowledged is sent, and nothing twice on a connection whose sending was recorded
            assert entry.position not in self.done
            sent.setdefault(connection_id, []).append(entry)
            self.sent[connection_id].append(entry.position)
        meanwhile = data.draw(st.sampled_from(["nothing", "leaves", "joins", "acknowledges"]))
        if meanwhile == "leaves":
            self.leave(data.draw(st.sampled_from([each.connection_id for each in self.now.consumers])))
        elif meanwhile == "joins":
            self.joins()
        elif meanwhile == "acknowledges" and sent:
            connection_id = data.draw(st.sampled_from(sorted(sent)))
            self.acknowledge(connection_id, sent[connection_id][0].position)
        if recorded:
            # The sender knows what was noted when the pass began
            self.saved(
                record(absorb(self.now, noted), sent=sent, held=held, done=done, lapsed=(), up_to=up_to, now=NOW)
            )

    def plan(self, assigner: Assigner, limit: int) -> tuple[list[tuple[str, Entry]], list[Entry], set[int], int]:
        view = assigner.backlog
        plan: list[tuple[str, Entry]] = []
        held: list[Entry] = []
        done: set[int] = set()
        for entry in view.returned:
            if assigner.done(entry):
                done.add(entry.position)
            elif len(plan) < limit and (target := assigner.assign(entry)):
                plan.append((target, entry))
            elif len(plan) >= limit:
                return plan, held, done, view.next or 0
        up_to = view.next or 0
        while up_to < self.length and len(plan) < limit:
            entry = Entry(up_to, up_to % SOURCES)
            if not assigner.done(entry):
                if assigner.room == 0:
                    break
                if target := assigner.assign(entry):
                    plan.append((target, entry))
                else:
                    held.append(entry)
            up_to += 1
        return plan, held, done, up_to

    def saved(self, after: Backlog) -> None:
        assert after.version == self.now.version + 1
        self.now = after

    @invariant()
    def every_position_that_was_assigned_is_in_exactly_one_place(self) -> None:
        if self.now.next is None:
            return
        held = [entry.position for each in self.now.consumers for entry in each.unacknowledged]
        back = returned(self.now)
        assert len(held) + len(back) == len({*held, *back})
        assert all(position < self.now.next for position in [*held, *back])
        below = set(range(self.start, self.now.next))
        assert below - {*held, *back} <= self.done
        assert back == sorted(back)

    @invariant()
    def windows_are_kept(self) -> None:
        assert all(len(each.unacknowledged) <= self.window for each in self.now.consumers)

    @invariant()
    def what_is_unacknowledged_is_in_order_and_was_sent(self) -> None:
        for each in self.now.consumers:
            positions = [entry.position for entry in each.unacknowledged]
            assert positions == sorted(positions)
            assert set(positions) <= set(self.sent[each.connection_id])

    def teardown(self) -> None:
        """At the end, one consumer gets everything that is left, once, and nothing else."""
        for connection_id in [each.connection_id for each in self.now.consumers]:
            self.leave(connection_id)
        self.shared = False
        self.joins()
        last = f"c{self.joined - 1}"
        for _ in range(self.length + 1):
            noted = frozenset(self.noted[last])
            assigner = Assigner(absorb(self.now, noted), noted, self.window)
            plan, held, done, up_to = self.plan(assigner, 100)
            for _, entry in plan:
                assert entry.position not in self.done
                self.acknowledge(last, entry.position)
            sent: Mapping[str, Sequence[Entry]] = {last: [entry for _, entry in plan]}
            self.saved(
                record(absorb(self.now, noted), sent=sent, held=held, done=done, lapsed=(), up_to=up_to, now=NOW)
            )
        assert set(range(self.start, self.length)) <= self.done


TestBacklogs = Backlogs.TestCase
TestBacklogs.settings = settings(
    max_examples=50, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@given(st.data())
def test_taking_over_acknowledgements_is_the_same_at_once_and_one_by_one(data: Any) -> None:
    positions = data.draw(st.lists(st.integers(0, 99), unique=True, max_size=12))
    cut = data.draw(st.integers(0, len(positions)))
    before = backlog(consumer("a", *sorted(positions[:cut])), returned=entries(*sorted(positions[cut:])))
    acknowledged = data.draw(st.sets(st.integers(0, 99)))
    one_by_one = before
    for each in acknowledged:
        one_by_one = absorb(one_by_one, frozenset({each}))
    assert one_by_one == absorb(before, acknowledged)
    assert absorb(one_by_one, acknowledged) is one_by_one
