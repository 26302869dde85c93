"""The promises of Notifications 2.0 hold whatever publishers, clients, crashes and failing calls do, in any order.

* Every notification whose publishing was answered after the first connection reaches a consumer, again and again until
  it is acknowledged.
* What was acknowledged is never sent again.
* On every connection new notifications come in publishing order; for shared consumers this holds for each source.
* No connection has more unacknowledged notifications than its window, except those that a sender sent and could not
  record.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.fakes import Crash, Fault, FaultPlan
from tests.notifications.world import PROJECT, NotificationWorld

from pushhub.base.errors import Unavailable
from pushhub.notifications.model.backlog import AlreadyConnected
from pushhub.notifications.model.records import BacklogChange, CommitChange
from pushhub.notifications.model.topic import Topic
from pushhub.notifications.records import NotificationRecords

WINDOW = 7
TOPIC = Topic(project=PROJECT, name="orders")
SOURCES = ("s1", "s2", "s3", "s4")


class Notifications(RuleBasedStateMachine):
    """Random histories of one subscriber."""

    def __init__(self) -> None:
        super().__init__()
        self.world = NotificationWorld(window=WINDOW)
        self.world.rule()
        self.shared = False
        self.published: list[int] = []
        self.uncertain: set[int] = set()
        self.source_of: dict[int, str] = {}
        self.acknowledged: set[int] = set()
        self.perhaps_acknowledged: set[int] = set()
        self.seen: dict[str, int] = {}
        self.live: list[str] = []
        self.silent: list[str] = []
        self.count = 0
        self.senders_gone_wrong = 0

    @initialize(shared=st.booleans(), page=st.sampled_from([1, 3, 1000]))
    def first(self, shared: bool, page: int) -> None:
        self.shared = shared
        self.world.topics.page = page
        self.world.publish(0)
        self.connect("alpha")

    @rule(
        count=st.integers(1, 5),
        source=st.sampled_from(SOURCES),
        fault=st.sampled_from([None, *Fault]),
        at=st.integers(1, 6),
    )
    def publish(self, count: int, source: str, fault: Fault | None, at: int) -> None:
        numbers = list(range(self.count + 1, self.count + 1 + count))
        self.count += count
        self.source_of |= dict.fromkeys(numbers, source)
        if self.attempt(fault, at, lambda: self.world.publish(*numbers, source=source)):
            self.published += numbers
        else:
            self.uncertain |= set(numbers)

    @rule(
        name=st.sampled_from(["alpha", "beta", ""]), fault=st.sampled_from([None, None, *Fault]), at=st.integers(1, 9)
    )
    def connects(self, name: str, fault: Fault | None, at: int) -> None:
        connection_id = f"c{len(self.seen)}"
        self.seen[connection_id] = 0
        with suppress(AlreadyConnected):
            if self.attempt(
                fault,
                at,
                lambda: self.world.consumers.connect(self.world.token(shared=self.shared), name, connection_id),
            ):
                self.world.sockets.opened(connection_id)
                self.live.append(connection_id)

    def connect(self, name: str) -> None:
        connection_id = f"c{len(self.seen)}"
        self.seen[connection_id] = 0
        self.world.connect(connection_id, self.world.token(shared=self.shared), name)
        self.live.append(connection_id)

    @precondition(lambda self: self.live)
    @rule(data=st.data(), announced=st.booleans(), fault=st.sampled_from([None, None, *Fault]), at=st.integers(1, 5))
    def drops(self, data: Any, announced: bool, fault: Fault | None, at: int) -> None:
        connection_id = data.draw(st.sampled_from(self.live))
        self.live.remove(connection_id)
        self.world.sockets.cut(connection_id)
        if not announced or not self.attempt(fault, at, lambda: self.world.consumers.disconnect(connection_id)):
            self.silent.append(connection_id)

    @precondition(lambda self: any(self.world.sockets.frames(each) for each in self.seen))
    @rule(data=st.data(), fault=st.sampled_from([None, None, *Fault]))
    def acknowledges(self, data: Any, fault: Fault | None) -> None:
        """Any frame ever received, on its own connection: early, late, twice, or after the connection ended."""
        connection_id = data.draw(st.sampled_from([each for each in self.seen if self.world.sockets.frames(each)]))
        frame = data.draw(st.sampled_from(self.world.frames(connection_id)))
        counted = self.is_consumer(connection_id)
        if self.attempt(fault, 1, lambda: self.world.consumers.receive(connection_id, frame.ack_id)) and counted:
            self.acknowledged.add(frame.number)
        elif fault in (Fault.TIMES_OUT, Fault.CRASHES_AFTER):
            self.perhaps_acknowledged.add(frame.number)

    def is_consumer(self, connection_id: str) -> bool:
        """Whether the hub still counts a connection as a consumer's, even if it has ended unnoticed."""
        (backlog,) = self.world.backlogs.backlogs(TOPIC)
        noted = self.world.connections.connections([connection_id])
        return bool(noted) and backlog.consumer(connection_id) is not None

    @rule(fault=st.sampled_from([None, None, *Fault]), at=st.integers(1, 25))
    def sender(self, fault: Fault | None, at: int) -> None:
        if not self.attempt(fault, at, self.world.send_once) or fault:
            self.senders_gone_wrong += 1

    @precondition(lambda self: self.live)
    @rule(at=st.integers(1, 12), what=st.sampled_from(["acknowledges", "ends", "another joins", "publishes"]))
    def sends_while_something_happens(self, at: int, what: str) -> None:
        """Something happens between two frames of one pass, before what was sent is recorded."""
        left = at

        def meanwhile(connection_id: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self.happens(what, connection_id)

        self.world.sockets.meanwhile = meanwhile
        self.world.send_once()
        self.world.sockets.meanwhile = lambda _: None

    def happens(self, what: str, connection_id: str) -> None:
        if what == "acknowledges":
            frame = self.world.frames(connection_id)[-1]
            self.world.consumers.receive(connection_id, frame.ack_id)
            self.acknowledged.add(frame.number)
        elif what == "ends":
            self.live.remove(connection_id)
            self.world.disconnect(connection_id)
        elif what == "another joins":
            with suppress(AlreadyConnected):
                self.connect("gamma")
        else:
            self.count += 1
            self.source_of[self.count] = SOURCES[self.count % len(SOURCES)]
            self.world.publish(self.count, source=self.source_of[self.count])
            self.published.append(self.count)

    @rule(remaining_ms=st.sampled_from([0, 4_001, 60_000]))
    def sends_until_nothing_is_left(self, remaining_ms: int) -> None:
        for _ in range(5):
            self.world.send_once(remaining_ms)

    @rule(seconds=st.sampled_from([1, 3, 100, 400]))
    def time_passes(self, seconds: int) -> None:
        self.world.clock.advance(seconds=seconds)

    def attempt(self, fault: Fault | None, at: int, act: Any) -> bool:
        """Do something, perhaps with one failing call; returns whether it was answered."""
        self.world._plan = FaultPlan(fault, at=at)
        self.world.start()
        try:
            act()
        except (Crash, Unavailable):
            return False
        else:
            return True
        finally:
            self.world._plan = FaultPlan()
            self.world.start()

    @invariant()
    def nothing_acknowledged_is_sent_again(self) -> None:
        for connection_id, before in self.seen.items():
            numbers = self.world.numbers(connection_id)
            assert not set(numbers[before:]) & self.acknowledged_before
            self.seen[connection_id] = len(numbers)
        self.acknowledged_before = set(self.acknowledged)

    acknowledged_before: set[int] = frozenset()  # type: ignore[assignment]

    @invariant()
    def order_is_kept_on_every_connection(self) -> None:
        for connection_id in self.seen:
            numbers = list(dict.fromkeys(self.world.numbers(connection_id)))
            groups = SOURCES if self.shared else (None,)
            for source in groups:
                mine = [each for each in numbers if source is None or self.source_of[each] == source]
                assert mine == sorted(mine)

    @invariant()
    def windows_are_kept(self) -> None:
        for connection_id in self.seen:
            acknowledged = self.acknowledged | self.perhaps_acknowledged
            on_the_wire = set(self.world.numbers(connection_id)) - acknowledged
            assert len(on_the_wire) <= WINDOW * (1 + self.senders_gone_wrong)

    def teardown(self) -> None:
        """At the end, one consumer connects, acknowledges as it goes, and gets exactly what nobody acknowledged."""
        if not self.seen:
            return
        for each in self.live:
            self.world.disconnect(each)
        self.world.clock.advance(seconds=300)
        self.world.idle.run(lambda: 60_000)
        self.connect("last")
        last = list(self.seen)[-1]
        rng = random.Random(self.count)
        done: set[int] = set()
        for _ in range(2 * self.count + 20):
            self.world.send_all()
            received = set(self.world.numbers(last))
            waiting = sorted(received - done)
            if not waiting:
                break
            number = rng.choice(waiting)
            self.world.acknowledge(last, number)
            done.add(number)
        self.nothing_acknowledged_is_sent_again()
        self.order_is_kept_on_every_connection()
        self.acknowledged |= done
        lost = set(self.published) - self.acknowledged - self.perhaps_acknowledged
        assert not lost, f"never delivered: {sorted(lost)}"
        self.world.disconnect(last)
        self.records_add_up()
        received = {each for connection_id in self.seen for each in self.world.numbers(connection_id)}
        assert received <= set(self.published) | self.uncertain

    def records_add_up(self) -> None:
        """What the records say is what happened: each delivery owed ends once, as acknowledged,
        and none that was not owed does.
        """
        created = NotificationRecords(topics=self.world.topics, backlogs=self.world.backlogs, clock=self.world.clock)
        changes: list[BacklogChange | CommitChange] = [*self.world.topics.changes, *self.world.backlogs.changes]
        records = [record for change in changes for record in created.of(change)]
        assert len({each.record_id for each in records}) == len(records)
        owed = {each for record in records for each in record.owed or ()}
        ended = [each.delivery_id for each in records if each.version == 1]
        assert sorted(ended, key=str) == sorted(owed)
        assert {each.state for each in records if each.version == 1} <= {"acknowledged"}
        attempts = [each for each in records if each.kind == "attempt"]
        assert {each.delivery_id for each in attempts} <= owed
        # The promised order can be proved from the records alone
        for key in {each.order_key for each in attempts}:
            mine = sorted((each.finished_at or "", each.sequence or 0) for each in attempts if each.order_key == key)
            sequences = [sequence for _, sequence in mine]
            assert sequences == sorted(set(sequences)), key


TestNotifications = Notifications.TestCase
TestNotifications.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
