"""A subscriber's own failures as an outage: read from counts, within its project, as long as they are kept."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.world import PROJECT, World, subscribers

from pushhub.base.errors import NotFound
from pushhub.engine.history import History
from pushhub.engine.model.activity import HOUR_MS
from pushhub.engine.model.attempt_counts import FIRST, GOOD, TIMEOUT, AttemptCounts, CountedSubscriber
from pushhub.engine.model.outage import Trouble
from pushhub.engine.subscriber_history import KEPT_MS, SubscriberHistory

MINUTE_MS = 60_000


class Shop:
    """A queue ``orders`` with the subscriber ``name-0``, and queries about it."""

    def __init__(self) -> None:
        self.world = World()
        self.world.make_queue("orders", subscribers("https://shop.example/in"))
        self.counts = self.world.ports.attempt_counts
        self.hour = self.world.clock.now() // HOUR_MS * HOUR_MS
        self.histories = SubscriberHistory(store=self.counts, queues=self.world.config, clock=self.world.clock)

    def count(
        self, hours_ago: int, *minutes: tuple[int, str, int], queue: str = "orders", project: str = PROJECT
    ) -> None:
        counts = AttemptCounts(
            minutes={(minute, outcome): count for minute, outcome, count in minutes},
            failed_ms=30_000 * sum(count for _, outcome, count in minutes if outcome not in (GOOD, FIRST)),
            good_ms=40 * sum(count for _, outcome, count in minutes if outcome == GOOD),
            life_ms=7 * 24 * HOUR_MS,
        )
        subscriber = CountedSubscriber(project, queue, "s0")
        self.counts.add_attempts(subscriber, self.hour - hours_ago * HOUR_MS, counts)

    def told(
        self, subscriber: str = "s0", *, queue: str = "orders", hours: float = 24, project: str = PROJECT
    ) -> History:
        now = self.world.clock.now()
        return self.histories.told(
            project, queue, subscriber, since=now - round(hours * HOUR_MS), until=now + 10**15, most_windows=60
        )


def test_an_outage_is_told_by_minutes_with_the_traffic_in_it() -> None:
    # Given two hours without an answer, a message each minute, and the minute of the recovery
    shop = Shop()
    shop.count(3, *[(minute, TIMEOUT, 1) for minute in range(60)], *[(minute, FIRST, 1) for minute in range(60)])
    shop.count(2, *[(minute, TIMEOUT, 2) for minute in range(60)], *[(minute, FIRST, 1) for minute in range(60)])
    shop.count(1, (0, GOOD, 7), (0, FIRST, 1))
    # Then it is one period of trouble, whether the subscriber is given by name or id
    told = shop.told()
    assert told == shop.told("name-0")
    [window] = told.endpoint.windows
    assert (window.begins, window.ends, window.trouble, window.share) == (0, 2 * HOUR_MS, Trouble.TIMES_OUT, 1.0)
    assert (told.messages, told.attempts, told.failed) == (121, 187, 180)
    assert told.rate == pytest.approx(1 / 60)
    assert told.endpoint.takes_ms == 40
    assert window.takes_ms == 30_000


def test_a_share_of_failures_is_a_share() -> None:
    shop = Shop()
    shop.count(1, *[(minute, "503", 1) for minute in range(10)], *[(minute, GOOD, 3) for minute in range(10)])
    [window] = shop.told().endpoint.windows
    assert (window.status, window.ends) == (503, 10 * MINUTE_MS)
    assert window.share == pytest.approx(0.25)


def test_only_what_began_within_the_time_counts() -> None:
    shop = Shop()
    shop.count(5, (30, "500", 1))
    shop.count(1, (30, "500", 1))
    assert shop.told().failed == 2
    assert shop.told(hours=3).failed == 1


def test_nothing_is_told_of_other_projects_queues_and_times() -> None:
    shop = Shop()
    shop.count(1, (30, "500", 1))
    shop.count(1, (30, "500", 1), project="another")
    shop.count(KEPT_MS // HOUR_MS + 2, (30, "500", 1), queue="old")
    asks: tuple[dict[str, Any], ...] = (
        {"project": "a third"},
        {"queue": "other"},
        {"subscriber": "other"},
        {"queue": "old", "hours": 300},
    )
    for asked in asks:
        with pytest.raises(NotFound):
            shop.told(**asked)
    assert shop.told(project="another").failed == 1
