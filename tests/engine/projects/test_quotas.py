"""What a project's producers may post: how exact a quota is, what it costs, and which projects it does not affect."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count as numbers
from random import Random

import pytest
from tests.engine.world import PROJECT
from tests.fakes import FakeClock, FakeConfigStore, Fault, FaultPlan, faulty
from tests.fakes.telemetry import FakeTelemetry

from pushhub.base.errors import QuotaExceeded
from pushhub.engine.model.project import Project
from pushhub.engine.model.quota import LEAST_BURST, Mark, Quota
from pushhub.engine.projects.ports import QuotaStore
from pushhub.engine.projects.quotas import CREDIT_PERCENT, LATELY_MS, Quotas

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
    # When a thousand are posted at once, then the burst is accepted, and what is owed
    assert 0 <= sum(hub.post() == 0 for _ in range(1000)) - LEAST_BURST <= CREDIT_PERCENT
    # And as long as posts continue, as many as the rate allows
    assert hub.accepted(100, 50) == pytest.approx(1000, rel=0.02)


def test_who_is_refused_by_a_call_that_took_long_waits_from_its_end_on() -> None:
    # Given calls of eight seconds, at whose end there is room for a post in a second and a half
    quota, clock = Quota.of(2), FakeClock()

    class Slow(FakeConfigStore):
        def move_mark(self, project_id: str, by_us: int, *, now: int, most_us: int, ahead: bool) -> Mark:
            clock.advance(seconds=8)
            return Mark(until=clock.now() * 1000 + quota.room_us(1) + 1_500_000, moved=False)

    store = Slow(clock)
    store.put_project(Project(project_id=PROJECT, created_at=0, quota=quota))
    quotas = Quotas(projects=store, marks=store, default=lambda: 0, clock=clock, telemetry=FakeTelemetry())
    # When a post is refused, then it waits for what it lacks, not for the time that the call took, too
    for _ in range(2):
        with pytest.raises(QuotaExceeded) as refused:
            quotas.take(PROJECT, 1)
        assert refused.value.retry_after_s == 2


MINUTE_MS = 60_000


class Clients:
    """Producers in virtual time, which post to any environment and wait as they are told; their answers are counted.

    Args:
        hub: The environments.
        random: Draws environments and pauses.
        size: Draws the messages of a post.
        pause_ms: Mean time between an answer and the client's next post.
        patient: Whether they wait as long as ``Retry-After`` says.
        to: The environment for a post, by the time, milliseconds from the start; any unless given.
    """

    def __init__(
        self,
        hub: Hub,
        random: Random,
        *,
        size: Callable[[], int],
        pause_ms: float,
        clients: int,
        patient: bool = True,
        to: Callable[[int], int] | None = None,
    ) -> None:
        self._hub, self._random, self._size, self._pause_ms, self._patient = hub, random, size, pause_ms, patient
        self._to = to or (lambda _: random.randrange(len(hub.environments)))
        self._order = numbers()
        self._begun = hub.clock.now()
        self._next = [(self._begun + self._pause(), next(self._order)) for _ in range(clients)]
        heapq.heapify(self._next)
        self.accepted: list[tuple[int, int]] = []
        """When, milliseconds from the start, and how many."""

    def run(self, minutes: int) -> None:
        """Let them post for some minutes."""
        end = self._begun + minutes * MINUTE_MS
        while self._next[0][0] < end:
            at, number = heapq.heappop(self._next)
            self._hub.clock.advance(seconds=max(0, at - self._hub.clock.now()) / 1000)
            now, count = self._hub.clock.now(), self._size()
            refused_s = self._hub.post(count, to=self._to(now - self._begun))
            if not refused_s:
                self.accepted.append((now - self._begun, count))
            again = refused_s * 1000 + self._random.randrange(50) if refused_s and self._patient else self._pause()
            heapq.heappush(self._next, (now + again, number))

    def _pause(self) -> int:
        return 1 + int(self._random.expovariate(1 / self._pause_ms))

    def in_minutes(self) -> Sequence[int]:
        """Messages accepted in each minute that begins when a post is accepted, as far as they are over."""
        found, last, total = [], 0, 0
        ends = self.accepted[-1][0] - MINUTE_MS
        for first, (at, count) in enumerate(self.accepted):
            if at > ends:
                break
            while last < len(self.accepted) and self.accepted[last][0] < at + MINUTE_MS:
                total += self.accepted[last][1]
                last += 1
            found.append(total)
            total -= count
            assert last > first
        return found


@pytest.mark.parametrize("environments", [1, 50])
@pytest.mark.parametrize("seed", range(3))
def test_a_quota_is_kept_within_five_percent_in_each_minute(seed: int, environments: int) -> None:
    # Given a quota with the default burst, and clients that post singly or batches, more than it allows
    random = Random(f"{seed}/{environments}")
    per_second = random.choice([1, 3, 5, 10, 20, 33, 60, 150])
    size = 1 if seed % 2 else random.choice([2, 7, 30, 100])
    hub = Hub(Quota.of(per_second), environments=environments)
    times = random.choice([4, 10])
    clients = random.choice([8, 30])
    pause_ms = clients * 1000 * size / (times * per_second)
    posting = Clients(hub, random, size=lambda: size, pause_ms=pause_ms, clients=clients)
    # When they post for four minutes, and wait as they are told
    posting.run(4)
    # Then no minute has more than its share and the burst
    minutes = posting.in_minutes()
    assert max(minutes) <= 1.05 * (60 * per_second + Quota.of(per_second).burst)
    # And none has less than its share; whether one more post is in this minute or in the next is chance
    assert min(minutes) >= 0.95 * 60 * per_second - size


@pytest.mark.parametrize("environments", [1, 50])
def test_batches_as_large_as_the_burst_are_kept_to_the_rate(environments: int) -> None:
    # Given five a second, and batches of a hundred from clients that wait as they are told
    hub = Hub(Quota.of(5), environments=environments)
    posting = Clients(hub, Random(environments), size=lambda: 100, pause_ms=10, clients=4)
    posting.run(20)
    # Then there is one each twenty seconds, where forty a second were accepted
    total = sum(count for _, count in posting.accepted)
    assert 0.95 * 20 * 60 * 5 <= total <= 20 * 60 * 5 + LEAST_BURST + 10
    assert max(posting.in_minutes()) <= 1.05 * (60 * 5 + LEAST_BURST)


@pytest.mark.parametrize("seed", range(2))
def test_a_flood_that_waits_for_nothing_gets_no_more(seed: int) -> None:
    # Given any quota and burst, and fifty environments
    random = Random(seed)
    per_second, most = random.choice([1, 5, 40, 200]), random.choice([1, 10, 100])
    burst = random.randint(1, 20 * per_second)
    hub = Hub(Quota.of(per_second, burst), environments=50)
    flood = Clients(hub, random, size=lambda: random.randint(1, most), pause_ms=40, clients=10, patient=False)
    flood.run(2)
    # Then they get the burst at most, or two seconds' worth and one batch if that is more
    assert max(flood.in_minutes()) <= 1.05 * (60 * per_second + max(burst, most + 2 * per_second))


def test_a_project_below_its_quota_is_never_refused() -> None:
    for environments in (1, 7, 50):
        hub = Hub(Quota.of(60), environments=environments)
        assert hub.accepted(60, 50) == 60 * 50


@pytest.mark.parametrize("turn_s", [1, 20])
def test_a_quota_is_kept_however_posts_move_between_environments(turn_s: int) -> None:
    # Given environments that are each the only one for a while, and leave with what they owe; and then work all at once
    random, per_second = Random(turn_s), 24
    hub = Hub(Quota.of(per_second), environments=30)
    alone_ms = 6 * MINUTE_MS

    def to(at: int) -> int:
        return at // (1000 * turn_s) % 30 if at < alone_ms else random.randrange(30)

    posting = Clients(hub, random, size=lambda: 1, pause_ms=80, clients=8, to=to)
    # When producers always have more, and wait as they are told
    posting.run(9)
    # Then no minute has more than its share and the burst, and none less than its share
    minutes = posting.in_minutes()
    assert max(minutes) <= 1.05 * (60 * per_second + Quota.of(per_second).burst)
    assert min(minutes) >= 0.95 * 60 * per_second - 1
    # And beyond the first burst, all of them together have the rate
    assert sum(count for _, count in posting.accepted) <= 1.05 * 9 * 60 * per_second + Quota.of(per_second).burst


def test_a_quota_costs_a_write_a_post_at_most_and_few_where_there_are_many_posts() -> None:
    for per_second, posts, environments in ((10, 10, 1), (25, 20, 1), (60, 50, 1), (60, 50, 10), (1000, 500, 10)):
        hub = Hub(Quota.of(per_second), environments=environments)
        hub.accepted(LATELY_MS // 1000, posts)
        before = hub.store.moves
        assert before <= LATELY_MS // 1000 * posts
        # An environment that has worked for half a minute pays for a part of what it accepted in half of that at least
        assert hub.accepted(60, posts) == 60 * posts
        least = LATELY_MS // 2000 * posts // environments * CREDIT_PERCENT // 100
        assert hub.store.moves - before <= 60 * posts / (1 + least) + environments


def test_a_month_of_a_small_quota_that_is_all_used_is_a_few_dollars() -> None:
    # Given 20 a second, which one environment accepts, singly, all the time
    hub = Hub(Quota.of(25), environments=1)
    hub.accepted(60, 20)
    hub.store.moves = 0
    hub.accepted(600, 20)
    # Then a month of it is below three dollars, where a write for each was 32
    assert hub.store.moves / 600 * 30 * 86_400 * 0.625e-6 < 3


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


def test_a_batch_larger_than_the_burst_borrows_and_is_repaid_before_the_next() -> None:
    hub = Hub(Quota.of(10, 20))
    assert hub.post(100) == 0
    # Then the next one has to wait until all but two seconds of it are repaid
    assert hub.post(100) == 8
    hub.clock.advance(seconds=7)
    assert hub.post(100) == 1
    hub.clock.advance(seconds=1)
    assert hub.post(100) == 0


def test_a_refused_producer_is_told_when_its_post_would_be_accepted() -> None:
    # Given a message per second, at least two seconds' worth at once
    hub = Hub(Quota.of(1, 1))
    assert [hub.post() for _ in range(4)] == [0, 0, 0, 1]
    # When the second is over, then the next one is accepted
    hub.clock.advance(seconds=1)
    assert hub.post() == 0


def test_the_projects_own_quota_counts_instead_of_the_stacks() -> None:
    # Given a stack's default
    default = Hub(None, default=1)
    assert 0 <= sum(default.post() == 0 for _ in range(1000)) - LEAST_BURST <= CREDIT_PERCENT
    # Then a project may have more, or no limit at all
    more = Hub(Quota.of(1, 500), default=1)
    assert 0 <= sum(more.post() == 0 for _ in range(1000)) - 500 <= 5 * CREDIT_PERCENT
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


@pytest.mark.parametrize(("per_second", "burst"), [(-1, 1), (1, 0)])
def test_a_quota_is_sensible(per_second: int, burst: int) -> None:
    with pytest.raises(ValueError, match="a rate of at least 0"):
        Quota(per_second=per_second, burst=burst)
