"""Attempts go by copies of queues, but never by one from before a change that was answered a moment ago."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.fakes import FakeClock, FakeConfigStore

from pushhub.base.errors import Unavailable
from pushhub.engine.model.queue import PushSettings, Queue, QueueType, Subscriber
from pushhub.engine.projects.copies import (
    KEPT_MS,
    NOTED_AGAIN_MS,
    NOTED_MS,
    NOTES_MS,
    SLOTS,
    ChangeNotes,
    Changes,
    CopiedQueues,
    Copies,
    slot_of,
)

PROJECT, NAME = "p", "q"
OLD = Queue(
    project=PROJECT,
    name=NAME,
    uid="uid",
    pull_uid="line",
    type=QueueType.MULTICAST,
    push=PushSettings(subscribers=(Subscriber(subscriber_id="s1", name="s1", url="http://a"),)),
    secret="s",
    created_at=0,
)


class Config(FakeConfigStore):
    """Counts what is read and noted; reads may be held up or refused."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.queue_reads = self.note_reads = self.notes = 0
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.begun = threading.Event()
        self.refuses = False

    def queue(self, project_id: str, name: str, *, fresh: bool = False) -> Queue | None:
        assert fresh
        self.queue_reads += 1
        self.begun.set()
        assert self.goes_on.wait(90)
        if self.refuses:
            raise Unavailable("refused")
        return super().queue(project_id, name)

    def note_change(self, slot: int, until: int) -> None:
        self.notes += 1
        super().note_change(slot, until)

    def noted_changes(self) -> dict[int, int]:
        self.note_reads += 1
        return super().noted_changes()

    def stored(self) -> Queue:
        found = super().queue(PROJECT, NAME)
        assert found is not None
        return found


class Bench:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.config = Config(self.clock)
        self.config.create_queue(OLD)
        self.queues = CopiedQueues(self.config, Changes(self.config, self.clock), self.clock)
        self.notes = ChangeNotes(self.config, self.clock)

    def find(self, *, since: int = 0) -> Queue | None:
        return self.queues.queue(PROJECT, NAME, since=since)

    def change(self, notes: ChangeNotes | None = None) -> Queue:
        (notes or self.notes).note(PROJECT, NAME)
        stored = self.config.stored()
        return self.config.update_queue(replace(stored, message_expiration=stored.message_expiration + 1))


def test_what_attempts_read_does_not_grow_with_their_number() -> None:
    # Given a thousand attempts within half a minute
    bench = Bench()
    for _ in range(1_000):
        assert bench.find() == bench.config.stored()
        bench.clock.advance(ms=(KEPT_MS - 1) // 1_000)
    # Then the queue was read once, and the notes twice a second
    assert bench.config.queue_reads == 1
    assert bench.config.note_reads <= KEPT_MS // NOTES_MS
    # When the copy is too old, then the queue is read again
    bench.clock.advance(seconds=1)
    bench.find()
    assert bench.config.queue_reads == 2


def test_a_copy_is_as_old_as_its_read_is_not_as_its_answer() -> None:
    # Given a read that takes nearly as long as a copy is kept
    bench = Bench()
    with ThreadPoolExecutor(1) as threads:
        bench.config.goes_on.clear()
        first = threads.submit(bench.find)
        assert bench.config.begun.wait(90)
        bench.clock.advance(ms=KEPT_MS - 1)
        bench.config.goes_on.set()
        first.result()
    # When a moment more has passed, then its copy is not used
    bench.clock.advance(ms=1)
    bench.find()
    assert bench.config.queue_reads == 2


def test_no_copy_is_used_when_the_clock_has_gone_back() -> None:
    bench = Bench()
    bench.find()
    bench.clock.set(bench.clock.now() - 1)
    bench.find()
    assert (bench.config.queue_reads, bench.config.note_reads) == (2, 2)


def test_a_change_is_heard_of_after_half_a_second() -> None:
    # Given a copy
    bench = Bench()
    bench.find()
    # When the queue is changed, then attempts go by it once the notes are read again
    changed = bench.change()
    bench.clock.advance(ms=NOTES_MS)
    assert bench.find() == changed


def test_a_message_posted_after_a_change_goes_by_it_at_once() -> None:
    # Given a copy, and a change a millisecond later
    bench = Bench()
    bench.find()
    bench.clock.advance(ms=1)
    changed = bench.change()
    # When a message comes that was posted after it
    assert bench.find(since=bench.clock.now()) == changed
    # Then those that were posted before it have the new copy as well, for as long as notes are kept
    bench.clock.advance(ms=NOTES_MS - 1)
    assert bench.find() == changed
    assert bench.config.queue_reads == 2


def test_a_copy_from_between_note_and_change_is_used_no_longer_than_the_notes() -> None:
    # Given a change that takes its time after its note, and a read in that time
    bench = Bench()
    bench.notes.note(PROJECT, NAME)
    bench.clock.advance(seconds=29)
    bench.find()
    stored = bench.config.stored()
    changed = bench.config.update_queue(replace(stored, message_expiration=7))
    # When half a second has passed since, then attempts go by the change
    bench.clock.advance(ms=NOTES_MS)
    assert bench.find() == changed


def test_notes_end_and_copies_are_kept_again() -> None:
    bench = Bench()
    bench.change()
    bench.clock.advance(ms=NOTED_MS)
    for _ in range(10):
        bench.find()
        bench.clock.advance(ms=NOTES_MS)
    assert bench.config.queue_reads == 1


def test_changes_in_a_row_are_noted_once() -> None:
    # Given changes within a few seconds, then they are one note
    bench = Bench()
    for _ in range(5):
        bench.change()
        bench.clock.advance(ms=NOTED_AGAIN_MS // 6)
    assert bench.config.notes == 1
    # And a later one is another, as is one of another environment
    bench.clock.advance(ms=NOTED_AGAIN_MS)
    bench.change()
    bench.change(ChangeNotes(bench.config, bench.clock))
    assert bench.config.notes == 3


def test_queues_that_do_not_share_a_slot_do_not_share_notes() -> None:
    # Given a queue whose changes are noted in another slot
    bench = Bench()
    other = next(f"q{number}" for number in range(100) if slot_of(PROJECT, f"q{number}") != slot_of(PROJECT, NAME))
    bench.find()
    # When it is changed, then copies of this one are kept
    bench.notes.note(PROJECT, other)
    bench.clock.advance(ms=NOTES_MS)
    bench.find()
    assert bench.config.queue_reads == 1
    assert {slot_of(PROJECT, f"queue-{number}") for number in range(10_000)} == set(range(SLOTS))


def test_a_hundred_that_miss_a_queue_share_one_read() -> None:
    # Given a slow read, and a hundred threads that want it
    bench = Bench()
    bench.config.goes_on.clear()
    with ThreadPoolExecutor(100) as threads:
        found = [threads.submit(bench.find) for _ in range(100)]
        assert bench.config.begun.wait(90)
        bench.config.goes_on.set()
        assert [each.result() for each in found] == [bench.config.stored()] * 100
    assert bench.config.queue_reads == 1


def test_a_read_of_others_that_began_too_long_ago_is_not_shared() -> None:
    # Given a read that hangs, and a change meanwhile
    clock = FakeClock()
    config = Config(clock)
    copies: Copies[int] = Copies(Changes(config, clock), clock)
    ChangeNotes(config, clock).note(PROJECT, NAME)
    begun, goes_on = threading.Event(), threading.Event()

    def hang() -> int:
        begun.set()
        assert goes_on.wait(90)
        return 1

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(copies.find, PROJECT, NAME, hang, since=0)
        assert begun.wait(90)
        clock.advance(ms=NOTES_MS)
        # When another wants it half a second later
        second = threads.submit(copies.find, PROJECT, NAME, lambda: 2, since=0)
        goes_on.set()
        # Then it gets what is read after that, whether or not it waited for the first
        assert (first.result(), second.result()) == (1, 2)


def test_what_is_missing_is_looked_for_each_time() -> None:
    bench = Bench()
    bench.find()
    bench.notes.note(PROJECT, NAME)
    bench.config.delete_queue(bench.config.stored())
    bench.clock.advance(ms=NOTES_MS)
    assert bench.find() is None
    bench.config.create_queue(OLD)
    assert bench.find() == bench.config.stored()


def test_a_queue_as_it_is_now_is_read_each_time() -> None:
    bench = Bench()
    assert bench.queues.queue(PROJECT, NAME) == bench.queues.queue(PROJECT, NAME) == bench.config.stored()
    assert (bench.config.queue_reads, bench.config.note_reads) == (2, 0)


def test_a_refused_read_leaves_nothing_behind() -> None:
    bench = Bench()
    bench.config.refuses = True
    with pytest.raises(Unavailable):
        bench.find()
    bench.config.refuses = False
    assert bench.find() == bench.config.stored()


def test_a_change_whose_note_cannot_be_made_is_not_made() -> None:
    bench = Bench()

    def refuse(slot: int, until: int) -> None:
        raise Unavailable("refused")

    real, bench.config.note_change = bench.config.note_change, refuse  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        bench.change()
    # And the next one is noted
    bench.config.note_change = real  # type: ignore[method-assign]
    bench.change()
    assert bench.config.notes == 1


class OffClock(FakeClock):
    """A clock that is ahead of, or behind, the one of the world."""

    def __init__(self, world: FakeClock, off_ms: int) -> None:
        super().__init__()
        self.world, self.off_ms = world, off_ms

    def now(self) -> int:
        return self.world.now() + self.off_ms


OFFS_MS = 0, -1_000, 1_000


class Environments(RuleBasedStateMachine):
    """Environments whose clocks differ by up to two seconds. They attempt, and change the queue; a change takes up to
    half a minute after its note, and may be cut off before or after it is made.
    """

    def __init__(self) -> None:
        super().__init__()
        self.world = FakeClock()
        self.config = FakeConfigStore(self.world)
        self.config.create_queue(OLD)
        clocks = [OffClock(self.world, off) for off in OFFS_MS]
        self.queues = [CopiedQueues(self.config, Changes(self.config, clock), clock) for clock in clocks]
        self.notes = [ChangeNotes(self.config, clock) for clock in clocks]
        self.changes = self.posted_after = OLD.message_expiration
        self.answered: list[tuple[int, int]] = []

    @rule(ms=st.sampled_from([1, 50, 450, 500, 1_000, 13_000, 29_000, 31_000, 61_000]))
    def time_passes(self, ms: int) -> None:
        self.world.advance(ms=ms)

    @rule(one=st.integers(0, 2), posted_ms_ago=st.sampled_from([0, 1, 300, 60_000]))
    def attempt(self, one: int, posted_ms_ago: int) -> None:
        """An attempt goes by every change answered half a second ago; where clocks agree, by every one from before its
        message, too.
        """
        posted_at = self.world.now() - posted_ms_ago
        found = self.queues[one].queue(PROJECT, NAME, since=posted_at)
        assert found is not None
        heard_of = [change for at, change in self.answered if at <= self.world.now() - NOTES_MS]
        if OFFS_MS[one] == 0:
            heard_of += [change for at, change in self.answered if at < posted_at]
        assert found.message_expiration >= max(heard_of, default=0)

    @invariant()
    def attempts(self) -> None:
        """All environments work all the time, or only now and then (the rule above alone)."""
        for one in range(2):
            self.attempt(one, 60_000)

    @rule(
        one=st.integers(0, 2),
        takes_ms=st.sampled_from([0, 600, 29_000]),
        cut=st.sampled_from(["", "before", "after"]),
    )
    def change(self, one: int, takes_ms: int, cut: str) -> None:
        self.changes += 1
        self.notes[one].note(PROJECT, NAME)
        for _ in range(4):
            self.world.advance(ms=takes_ms // 4)
            self.attempts()
        if cut == "before":
            return
        stored = self.config.queue(PROJECT, NAME)
        assert stored is not None
        self.config.update_queue(replace(stored, message_expiration=self.changes))
        if not cut:
            self.answered.append((self.world.now(), self.changes))


TestEnvironments = Environments.TestCase
TestEnvironments.settings = settings(max_examples=50, stateful_step_count=25)
