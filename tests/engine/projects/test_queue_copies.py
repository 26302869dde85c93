"""Posts go by copies of push queues, but never by one from before a change that was answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.fakes import FakeClock, FakeConfigStore

from pushhub.base.errors import Conflict
from pushhub.engine.model.queue import PushSettings, Queue, QueueType, Subscriber
from pushhub.engine.projects.copies import slot_of
from pushhub.engine.projects.queue_copies import (
    CHANGE_MS,
    CLOCKS_OFF_MS,
    KEPT_MS,
    QUIET_S,
    UNCOPIED_MS,
    QueueCopies,
    QuietQueues,
    uncopied_from_now,
)

PROJECT, NAME = "p", "q"
ONE = (Subscriber(subscriber_id="s1", name="s1", url="http://a"),)
OLD = Queue(
    project=PROJECT,
    name=NAME,
    uid="uid",
    pull_uid="line",
    type=QueueType.MULTICAST,
    push=PushSettings(subscribers=ONE),
    secret="s",
    created_at=0,
)


class Config(FakeConfigStore):
    """Counts reads of queues."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.reads = 0

    def queue(self, project_id: str, name: str, *, fresh: bool = False) -> Queue | None:
        assert fresh
        self.reads += 1
        return super().queue(project_id, name, fresh=fresh)

    def stored(self) -> Queue:
        found = super().queue(PROJECT, NAME)
        assert found is not None
        return found


class Bench:
    def __init__(self, queue: Queue = OLD) -> None:
        self.clock = FakeClock()
        self.config = Config(self.clock)
        self.config.create_queue(queue)
        self.copies = QueueCopies(self.config, self.clock)
        self.quiet = QuietQueues(self.config, self.clock)

    def read(self) -> Queue | None:
        return self.copies.queue(PROJECT, NAME)

    def change(self, **changes: object) -> Queue:
        stored = self.config.stored()
        return self.quiet.save(stored, replace(stored, **changes))  # type: ignore[arg-type]


def test_posts_of_a_moment_share_one_read() -> None:
    # Given posts that come one after the other
    bench = Bench()
    for _ in range(10):
        assert bench.read() == bench.config.stored()
        bench.clock.advance(ms=KEPT_MS // 10)
    assert bench.config.reads == 1
    # When a copy is as old as it may get, then the queue is read again
    assert bench.read() == bench.config.stored()
    assert bench.config.reads == 2


def test_a_copy_is_as_old_as_its_read_is_not_as_its_answer() -> None:
    # Given a read that takes nearly as long as a copy is kept
    bench = Bench()
    read = bench.config.queue

    def slowly(*args: object, **options: object) -> Queue | None:
        found = read(*args, **options)  # type: ignore[arg-type]
        bench.clock.advance(ms=KEPT_MS - 1)
        return found

    bench.config.queue = slowly  # type: ignore[method-assign]
    bench.read()
    # When a moment more has passed, then its copy is not used
    bench.clock.advance(ms=1)
    bench.read()
    assert bench.config.reads == 2


def test_a_copy_is_not_used_when_the_clock_has_gone_back() -> None:
    bench = Bench()
    bench.read()
    bench.clock.set(bench.clock.now() - 1)
    bench.read()
    assert bench.config.reads == 2


@pytest.mark.parametrize(
    "queue", [replace(OLD, type=QueueType.PULL, push=None), replace(OLD, uncopied_until=FakeClock().now() + 1_000)]
)
def test_pull_queues_and_queues_about_to_be_changed_are_read_each_time(queue: Queue) -> None:
    bench = Bench(queue)
    bench.read()
    bench.read()
    assert bench.config.reads == 2


def test_a_queue_that_is_missing_is_looked_for_each_time() -> None:
    clock = FakeClock()
    config = Config(clock)
    copies = QueueCopies(config, clock)
    assert copies.queue(PROJECT, NAME) is None
    config.create_queue(OLD)
    assert copies.queue(PROJECT, NAME) == config.stored()


def test_a_change_waits_for_the_last_copy_to_be_too_old() -> None:
    # Given a copy
    bench = Bench()
    bench.read()
    # When the queue is changed, then that is noted for attempts, and takes longer than a copy is kept
    changed = bench.change(message_expiration=7)
    assert bench.config.noted_changes().keys() == {slot_of(PROJECT, NAME)}
    assert bench.clock.slept == [QUIET_S]
    assert QUIET_S * 1000 > KEPT_MS
    # And posts see it, and make no copies for a while
    assert bench.read() == bench.read() == changed
    assert bench.config.reads == 3
    # And then they do
    bench.clock.advance(ms=UNCOPIED_MS)
    bench.read()
    bench.read()
    assert bench.config.reads == 4


@pytest.mark.parametrize("elsewhere", [True, False])
def test_changes_soon_after_another_do_not_wait(elsewhere: bool) -> None:
    # Given a queue that was changed, here or, whatever the difference of clocks, in another environment
    bench = Bench()
    bench.change(message_expiration=1)
    if elsewhere:
        bench.quiet = QuietQueues(bench.config, bench.clock)
        bench.clock.advance(ms=CLOCKS_OFF_MS)
    # When it is changed again, up to the time after which a change could outlast the note, then that waits for nothing
    while bench.clock.now() < bench.config.stored().uncopied_until - CLOCKS_OFF_MS - CHANGE_MS:
        bench.change(message_expiration=bench.config.stored().message_expiration + 1)
        bench.clock.advance(ms=5_000)
    assert bench.clock.slept == [QUIET_S]
    assert bench.config.stored().message_expiration > 5
    # And then one does again
    bench.change(message_expiration=1)
    assert bench.clock.slept == [QUIET_S, QUIET_S]


def test_a_new_queue_is_changed_at_once() -> None:
    bench = Bench(uncopied_from_now(OLD, FakeClock().now()))
    bench.change(message_expiration=1)
    assert bench.clock.slept == []


def test_pull_queues_are_changed_at_once() -> None:
    bench = Bench(uncopied_from_now(replace(OLD, type=QueueType.PULL, push=None), FakeClock().now()))
    assert bench.config.stored().uncopied_until == 0
    bench.change(message_expiration=1)
    assert bench.clock.slept == []


def test_who_comes_second_while_another_waits_waits_too_and_starts_over() -> None:
    # Given two that have read the queue as it is stored
    bench = Bench()
    second = QuietQueues(bench.config, bench.clock)
    read = bench.config.stored()
    noted = bench.quiet.quiet(read)
    # When the second wants to change it as well, then it has to read it again
    with pytest.raises(Conflict):
        second.save(read, replace(read, message_expiration=1))
    # And then waits, as the first one's clock may be ahead, but makes no other note, and waits only once
    assert second.quiet(noted) == second.quiet(noted) == bench.config.stored() == noted
    assert bench.clock.slept == [QUIET_S, QUIET_S]


def test_a_wait_counts_for_its_own_note_only() -> None:
    # Given a change, and much later another environment that is about to change the queue
    bench = Bench()
    bench.change(message_expiration=1)
    bench.clock.advance(ms=UNCOPIED_MS)
    QuietQueues(bench.config, bench.clock).quiet(bench.config.stored())
    # When the first one changes it again, then it waits again
    bench.change(message_expiration=2)
    assert bench.clock.slept == [QUIET_S] * 3


class Cut(Exception):
    """A function's environment ended."""


class OffClock(FakeClock):
    """A clock that is ahead of, or behind, the one of the world; who sleeps lets the world go on."""

    def __init__(self, world: FakeClock, off_ms: int) -> None:
        super().__init__()
        self.world, self.off_ms = world, off_ms
        self.meanwhile: Callable[[], None] = lambda: None

    def now(self) -> int:
        return self.world.now() + self.off_ms

    def sleep(self, seconds: float) -> None:
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        self.world.advance(ms=round(seconds * 500))
        meanwhile()
        self.world.advance(ms=round(seconds * 500))


OFFS_MS = -1_000, 0, 1_000
LONGEST_MS = 29_000
"""The longest that a function makes a change after it has looked at the queue."""


class Environments(RuleBasedStateMachine):
    """Environments whose clocks differ by up to two seconds. They post to a queue, change it, delete it and make it
    again, and are cut off.
    """

    def __init__(self) -> None:
        super().__init__()
        self.world = FakeClock()
        self.config = FakeConfigStore(self.world)
        self.clocks = [OffClock(self.world, off) for off in OFFS_MS]
        self.copies = [QueueCopies(self.config, clock) for clock in self.clocks]
        self.quiet = [QuietQueues(self.config, clock) for clock in self.clocks]
        self.config.create_queue(OLD)
        self.answered = self.changes = OLD.message_expiration

    @rule(ms=st.sampled_from([0, 50, 150, 1_000, 27_000, 29_000, 61_000]))
    def time_passes(self, ms: int) -> None:
        self.world.advance(ms=ms)

    @invariant()
    def post(self) -> None:
        """At any moment, a post goes by nothing older than the last change that was answered before."""
        for copies in self.copies:
            queue = copies.queue(PROJECT, NAME)
            assert queue is None or queue.message_expiration >= self.answered

    @rule(
        one=st.integers(0, 2),
        deleting=st.booleans(),
        cut=st.sampled_from(["", "in the wait", "at the end"]),
        takes_ms=st.sampled_from([0, LONGEST_MS - round(QUIET_S * 1000)]),
    )
    def change(self, one: int, deleting: bool, cut: str, takes_ms: int) -> None:
        """A change, with posts during its wait; it may be cut off, or take as long as a change may."""
        clock = self.clocks[one]
        stored = self.config.queue(PROJECT, NAME)
        if stored is None:
            self.make(one)
            return
        self.changes += 1

        def meanwhile() -> None:
            self.post()
            if cut == "in the wait":
                raise Cut

        clock.meanwhile = meanwhile
        try:
            quiet = self.quiet[one].quiet(stored)
            self.world.advance(ms=takes_ms)
            self.post()
            if deleting:
                self.config.delete_queue(quiet)
            else:
                self.config.update_queue(replace(quiet, message_expiration=self.changes))
        except Cut:
            return
        finally:
            clock.meanwhile = lambda: None
        if not cut:
            self.answered = self.changes

    def make(self, one: int) -> None:
        """A queue is made, also under the name of one that was deleted without an answer."""
        self.changes += 1
        queue = replace(OLD, uid=f"uid-{self.changes}", message_expiration=self.changes)
        self.config.create_queue(uncopied_from_now(queue, self.clocks[one].now()))
        self.answered = self.changes


TestEnvironments = Environments.TestCase
TestEnvironments.settings = settings(max_examples=50, stateful_step_count=20)
