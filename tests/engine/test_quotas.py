"""What a project's producers may post: how exact a quota is, what it costs, and which projects it does not affect."""

from __future__ import annotations

import pytest
from tests.engine.world import PROJECT
from tests.fakes import FakeClock, FakeConfigStore, Fault, FaultPlan, faulty
from tests.fakes.telemetry import FakeTelemetry

from pushhub.base.errors import QuotaExceeded
from pushhub.engine.model.project import Project
from pushhub.engine.model.quota import LEAST_BURST, Mark, Quota
from pushhub.engine.ports import QuotaStore
from pushhub.engine.quotas import LEASE_MS, LEASES_OF_A_BURST, STRICT_MS, Quotas

OTHER = "5f0000000000000000000002"


class Counted(FakeConfigStore):
    """Counts the calls that move marks: each is a write, refused or not."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.moves = 0

    def move_mark(self, project_id: str, by_us: int, *, now: int, most_us: int, ahead: bool) -> Mark:
        self.moves += 1
        return super().move_mark(project_id, by_us, now=now, most_us=most_us, ahead=ahead)


class Hub:
    """Execution environments that share a store.

    Args:
        quota: Quota of the project; None for the stack's default.
        default: The stack's default.
    """

    def __init__(self, quota: Quota | None = None, *, default: int = 0, environments: int = 1) -> None:
        self.clock = FakeClock()
        self.store = Counted(self.clock)
        self.telemetry = FakeTelemetry()
        self.store.put_project(Project(project_id=PROJECT, created_at=0, quota=quota))
        self.environments = [self.environment(self.store, default=default) for _ in range(environments)]

    def environment(self, marks: QuotaStore, *, default: int = 0) -> Quotas:
        """A new environment."""
        return Quotas(
            projects=self.store, marks=marks, default=lambda: default, clock=self.clock, telemetry=self.telemetry
        )

    def post(self, count: int = 1, *, to: int = 0, project: str = PROJECT) -> int:
        """Post; 0 when that was accepted, otherwise the seconds to wait."""
        try:
            self.environments[to].take(project, count)
        except QuotaExceeded as refused:
            return refused.retry_after_s
        return 0

    def accepted(self, seconds: int, each_second: int, count: int = 1) -> int:
        """Messages accepted when this many posts are made each second, spread over the environments and the second."""
        total = 0
        assert 1000 % each_second == 0
        for number in range(seconds * each_second):
            total += 0 if self.post(count, to=number % len(self.environments)) else count
            self.clock.advance(seconds=1 / each_second)
        return total


def test_without_a_quota_everything_is_accepted_and_nothing_written() -> None:
    hub = Hub()
    assert [hub.post(100) for _ in range(100)] == [0] * 100
    assert hub.store.moves == 0


def test_a_burst_is_accepted_and_then_the_rate() -> None:
    # Given ten a second, and a burst of a hundred
    hub = Hub(Quota.of(10))
    # When a thousand are posted at once, then the burst is accepted, and one without a lease
    assert sum(hub.post() == 0 for _ in range(1000)) == LEAST_BURST + 1
    # And as long as posts continue, as many as the rate allows
    assert hub.accepted(100, 50) == pytest.approx(1000, rel=0.02)


@pytest.mark.parametrize("environments", [1, 10, 100])
def test_environments_share_a_quota(environments: int) -> None:
    # Given a hundred a second, and five times as much posted, by however many environments
    hub = Hub(Quota.of(100), environments=environments)
    accepted = hub.accepted(60, 500)
    # Then the burst and the rate are accepted, minus unused leases, plus one message every ten seconds from each
    # environment that did not refuse any
    assert 0.95 * 7000 <= accepted <= 7000 + environments * 6


def test_a_project_below_its_quota_is_never_refused() -> None:
    for environments in (1, 7, 50):
        hub = Hub(Quota.of(60), environments=environments)
        assert hub.accepted(60, 50) == 60 * 50


def test_a_busy_project_costs_a_write_a_second_and_a_quiet_one_none() -> None:
    hub = Hub(Quota.of(1000))
    assert hub.accepted(60, 500) == 30_000
    assert hub.store.moves <= 60
    # A message each ten seconds
    quiet = Hub(Quota.of(1000))
    for _ in range(20):
        assert quiet.post() == 0
        quiet.clock.advance(seconds=LEASE_MS / 1000)
    assert quiet.store.moves == 0
    # One that is spread over many environments costs each a write in ten seconds
    spread = Hub(Quota.of(1000), environments=100)
    spread.accepted(10, 500)
    spread.store.moves = 0
    assert spread.accepted(60, 500) == 30_000
    assert spread.store.moves <= 100 * 6 * 2


def test_a_flood_of_refused_posts_costs_a_write_in_seconds() -> None:
    # Given an environment that has refused for a while
    hub = Hub(Quota.of(1, 1))
    hub.accepted(60, 100)
    hub.store.moves = 0
    hub.accepted(60, 100)
    assert hub.store.moves <= 60 * 2


def test_a_batch_counts_its_messages_and_is_taken_or_refused_whole() -> None:
    hub = Hub(Quota.of(10, 250))
    assert [hub.post(100) for _ in range(3)][:2] == [0, 0]
    waits_s = hub.post(100)
    # Then fewer messages are still accepted, and the whole batch after the stated time
    assert waits_s > 0
    assert hub.post(1) == 0
    hub.clock.advance(seconds=waits_s + 10)
    assert hub.post(100) == 0


def test_a_batch_larger_than_the_burst_passes_when_nothing_else_was_posted() -> None:
    hub = Hub(Quota.of(10, 20))
    assert hub.post(100) == 0
    assert hub.post(100) == 2
    hub.clock.advance(seconds=2)
    assert hub.post(100) == 0


def test_a_refused_producer_is_told_when_its_post_would_be_accepted() -> None:
    # Given a message per second, and one accepted without a lease
    hub = Hub(Quota.of(1, 1))
    assert [hub.post() for _ in range(3)] == [0, 0, 1]
    # When the second is over, then the next one is accepted
    hub.clock.advance(seconds=1)
    assert hub.post() == 0


def test_an_environment_that_refused_accepts_nothing_unasked_for_a_minute() -> None:
    hub = Hub(Quota.of(1, 1), environments=2)
    assert [hub.post() for _ in range(3)] == [0, 0, 1]
    # Given that another environment uses up the quota
    for _ in range(STRICT_MS // 1000 - 1):
        hub.clock.advance(seconds=1)
        hub.post(to=1)
    before = hub.store.moves
    hub.post()
    assert hub.store.moves > before


def test_the_projects_own_quota_counts_instead_of_the_stacks() -> None:
    # Given a stack's default
    default = Hub(None, default=1)
    assert sum(default.post() == 0 for _ in range(1000)) == LEAST_BURST + 1
    # Then a project may have more, or no limit at all
    more = Hub(Quota.of(1, 500), default=1)
    assert sum(more.post() == 0 for _ in range(1000)) == 501
    free = Hub(Quota.of(0), default=1)
    assert sum(free.post() == 0 for _ in range(1000)) == 1000


def test_projects_do_not_share_a_quota() -> None:
    hub = Hub(None, default=1)
    while hub.post() == 0:
        pass
    assert hub.post(project=OTHER) == 0


def test_what_is_refused_is_counted() -> None:
    hub = Hub(Quota.of(1, 1))
    for _ in range(3):
        hub.post(5)
    assert hub.telemetry.counts["MessagesRefused"] == 10


@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.TIMES_OUT])
def test_a_failed_call_of_our_own_refuses_nothing(fault: Fault) -> None:
    hub = Hub(Quota.of(1, 1))
    plan = FaultPlan()
    marks = faulty(hub.store, "config", plan)
    quotas = hub.environment(marks)
    quotas.take(PROJECT, 1)
    plan.strike(fault, of="config.move_mark")
    quotas.take(PROJECT, 1)
    assert hub.telemetry.counts["CallsFailed"] == 1
    assert hub.telemetry.named("quota_unknown")


def test_one_lease_is_a_small_part_of_the_burst() -> None:
    # Given an environment that has been the only one to post for long
    hub = Hub(Quota.of(100), environments=2)
    for _ in range(50):
        hub.post(to=0)
        hub.clock.advance(seconds=0.01)
    hub.clock.advance(seconds=20)
    hub.post(to=0)
    # Then another one may post nearly all of the burst
    posted = 0
    while hub.post(to=1) == 0:
        posted += 1
    assert posted >= 1000 - 1000 // LEASES_OF_A_BURST - 1


@pytest.mark.parametrize(("per_second", "burst"), [(-1, 1), (1, 0)])
def test_a_quota_is_sensible(per_second: int, burst: int) -> None:
    with pytest.raises(ValueError, match="a rate of at least 0"):
        Quota(per_second=per_second, burst=burst)
