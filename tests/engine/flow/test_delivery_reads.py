"""Which call reads the deliveries of a run."""

from __future__ import annotations

import pytest
from tests.contract.samples import PROJECT
from tests.fakes import FakeClock, FaultPlan, faulty
from tests.fakes.attempt_reads import FakeAttemptReads
from tests.fakes.config_store import FakeConfigStore
from tests.fakes.message_store import FakeMessageStore
from tests.fakes.schedule import FakeSchedule

from pushhub.base.ids import first_message_id
from pushhub.engine.flow.delivery_reads import DeliveryReads
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.projects.copies import NOTES_MS, Changes, slot_of

BOTH = ["messages.deliveries", "config.noted_changes"]
QUEUE = "q"


class Bench:
    """Reads whose calls are noted."""

    def __init__(self) -> None:
        self.clock, self.plan = FakeClock(), FaultPlan()
        self.config = FakeConfigStore(self.clock)
        messages = faulty(FakeMessageStore(FakeSchedule(self.clock)), "messages", self.plan)
        config = faulty(self.config, "config", self.plan)
        self.changes = Changes(config, self.clock)
        together = FakeAttemptReads(messages, config)
        self.reads = DeliveryReads(messages=messages, together=together, changes=self.changes)

    def read(self, *ages_ms: int) -> list[str]:
        """The calls for deliveries of messages of so many milliseconds."""
        before = len(self.plan.calls)
        ids = [first_message_id(self.clock.now() - each) for each in ages_ms]
        self.reads.read([DeliveryKey(PROJECT, "u", each, "s") for each in ids])
        return self.plan.calls[before:]


def test_the_notes_are_read_beside_them_and_again_for_each_newer_message() -> None:
    # Given an environment that has read nothing yet
    bench = Bench()
    # Then the notes come with the first deliveries, and an attempt does not read them again
    accepted_at = bench.clock.now() - 20
    assert bench.read(20) == BOTH
    assert not bench.changes.noted(PROJECT, QUEUE, accepted_at)
    assert bench.plan.calls == BOTH
    # And not for what is older, but for what was accepted since, if only one of many was
    bench.clock.advance(ms=50)
    assert bench.read(80, 51) == BOTH[:1]
    assert bench.read(80, 20) == BOTH


@pytest.mark.parametrize(("later_ms", "calls"), [(NOTES_MS - 1, BOTH[:1]), (NOTES_MS, BOTH)])
def test_notes_that_have_become_old_are_read_again(later_ms: int, calls: list[str]) -> None:
    bench = Bench()
    bench.read(1_000)
    bench.clock.advance(ms=later_ms)
    assert bench.read(10_000) == calls


def test_a_change_that_was_noted_before_is_seen() -> None:
    bench = Bench()
    bench.config.note_change(slot_of(PROJECT, QUEUE), bench.clock.now() + 1_000)
    bench.read(20)
    assert bench.changes.noted(PROJECT, QUEUE, bench.clock.now() - 20)
    assert bench.plan.calls == BOTH


def test_a_glance_reads_no_notes() -> None:
    bench = Bench()
    assert bench.reads.glance([DeliveryKey(PROJECT, "u", first_message_id(bench.clock.now()), "s")]) == {}
    assert bench.plan.calls == BOTH[:1]
