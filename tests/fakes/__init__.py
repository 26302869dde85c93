"""In-memory implementations of the ports that pass the same contract tests as the real adapters."""

from tests.fakes.body_store import FakeBodyStore
from tests.fakes.clock import FakeClock
from tests.fakes.config_store import FakeConfigStore
from tests.fakes.faults import Crash, Fault, FaultPlan, each_strike, faulty
from tests.fakes.message_store import FakeMessageStore
from tests.fakes.pull_store import FakePullStore
from tests.fakes.schedule import FakeSchedule, FakeShardRuns
from tests.fakes.sender import FakeSender, Reply
from tests.fakes.work_queue import FakeWorkQueue

__all__ = [
    "Crash",
    "FakeBodyStore",
    "FakeClock",
    "FakeConfigStore",
    "FakeMessageStore",
    "FakePullStore",
    "FakeSchedule",
    "FakeSender",
    "FakeShardRuns",
    "FakeWorkQueue",
    "Fault",
    "FaultPlan",
    "Reply",
    "each_strike",
    "faulty",
]
