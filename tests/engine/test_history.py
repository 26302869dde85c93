"""A subscriber's history from its records: its failures as periods of trouble, its traffic as a rate."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import Reply
from tests.fakes.activity import FakeAttemptCounts
from tests.fakes.telemetry import FakeTelemetry

from pushhub.base.times import iso_time
from pushhub.engine.count_attempts import CountAttempts
from pushhub.engine.forecast import forecast
from pushhub.engine.history import History, history, history_of_counts
from pushhub.engine.model.attempt_counts import CountedSubscriber
from pushhub.engine.model.backoff import FixedDelay
from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.forecast import Plan
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.outage import Trouble
from pushhub.engine.model.record import DeliveryRecord
from pushhub.engine.model.records import record_of_delivery

URL, OTHER = "https://shop.example/in", "https://other.example/in"
MINUTE = 60_000
POLICY = FixedDelay(retries=100, delay_s=120)


def records_of(world: World) -> list[DeliveryRecord]:
    """The records of every delivery, as they are written."""
    before: dict[DeliveryKey, Delivery] = {}
    told: list[DeliveryRecord] = []
    for saved in world.messages.saved:
        record = record_of_delivery(before.get(saved.key), saved, world.clock.now())
        before[saved.key] = saved
        if record is not None:
            told.append(record)
    return told


def recorded(world: World) -> list[Mapping[str, Any]]:
    """The same, as they are read back."""
    return [json.loads(json.dumps(record.as_fields())) for record in records_of(world)]


def an_outage(reply: Reply) -> tuple[World, int]:
    """A message every ten seconds for two hours; after a good first half hour, half an hour of trouble."""
    world = World()
    start = world.clock.now()
    world.make_queue("q", subscribers(URL, OTHER), retry=POLICY)
    for step in range(720):
        if step == 180:
            world.sender.script(URL, reply)
        if step == 360:
            world.sender.script(URL, 200)
        world.post("q", b"x")
        world.run(seconds=10)
    world.run(seconds=3600)
    return world, start


def of(told: Sequence[Mapping[str, Any]], start: int, **more: Any) -> History | None:
    asked: dict[str, Any] = {"queue": "q", "subscriber": "name-0", "since": start, "until": start + 10**9} | more
    return history(told, most_windows=60, **asked)


@pytest.mark.parametrize(
    ("reply", "trouble", "status"),
    [
        (Reply(status_code=500), Trouble.ANSWERS, 500),
        (Reply(error_class="connect"), Trouble.REFUSES, 503),
        (Reply(error_class="timeout"), Trouble.TIMES_OUT, 503),
    ],
)
def test_an_outage_is_found_again_and_leads_to_as_many_attempts(reply: Reply, trouble: Trouble, status: int) -> None:
    world, start = an_outage(reply)
    found = of(recorded(world), start)
    assert found is not None
    # Then the period and kind of its trouble are known to the minute, and the number of messages
    [window] = found.endpoint.windows
    assert (window.trouble, window.status, window.share) == (trouble, status, 1.0)
    shift = start - found.starts_at
    assert abs(window.begins - shift - 30 * MINUTE) <= MINUTE
    assert abs(window.ends - shift - 60 * MINUTE) <= MINUTE
    assert found.messages == 720
    assert found.rate == pytest.approx(0.1, rel=0.02)
    assert found.life_ms == 604_800_000
    assert found.attempts == len(world.sender.requests_to(URL))
    # And the same policy simulated with it gives about the same result
    plan = Plan(
        policy=POLICY,
        endpoint=found.endpoint,
        rate=found.rate,
        duration_ms=found.duration_ms,
        life_ms=found.life_ms,
        watch_ms=found.duration_ms + found.life_ms,
    )
    if trouble is Trouble.ANSWERS:
        assert forecast(plan, work=50_000).attempts == pytest.approx(found.attempts, rel=0.05)


def test_counts_tell_the_same_outage_as_records() -> None:
    # Given the attempts of an outage, counted as they were recorded
    world, start = an_outage(Reply(status_code=500))
    store, telemetry = FakeAttemptCounts(), FakeTelemetry()
    counting = CountAttempts(store=store, telemetry=telemetry)
    for record in records_of(world):
        counting.count([record])
    hours = store.attempts(CountedSubscriber(PROJECT, "q", "s0"), 0, start + 10**9)
    counted = history_of_counts(hours, since=start, until=start + 10**9, most_windows=60)
    # Then both begin and end it within a minute, and see as many failures
    exact = of(recorded(world), start)
    assert counted is not None
    assert exact is not None
    assert counted.failed == exact.failed
    assert counted.life_ms == exact.life_ms
    assert {each.trouble for each in counted.endpoint.windows} == {Trouble.ANSWERS}
    [window] = exact.endpoint.windows
    begins, ends = (exact.starts_at + each for each in (window.begins, window.ends))
    assert abs(counted.starts_at + counted.endpoint.windows[0].begins - begins) <= MINUTE
    assert abs(counted.starts_at + counted.endpoint.windows[-1].ends - ends) <= MINUTE
    assert counted.rate == pytest.approx(exact.rate, rel=0.05)


def test_a_subscriber_that_failed_now_and_then_has_a_share_of_failures() -> None:
    told = [attempt(at=second * 1000, failed=second % 4 == 0) for second in range(600)]
    found = of(told, 0)
    assert found is not None
    [window] = found.endpoint.windows
    assert window.share == pytest.approx(0.25)
    assert (window.begins, window.ends) == (0, 10 * MINUTE)
    assert found.endpoint.takes_ms == 70


def test_what_is_not_meant_is_left_out() -> None:
    told = [attempt(at=1000)]
    assert of(told, 0) is not None
    assert of(told, 0, subscriber="s1") is None
    assert of(told, 0, subscriber="s0") is not None
    assert of(told, 0, queue="other") is None
    assert of(told, 2000) is None
    assert of(told, 0, until=1000) is None
    assert of([{**told[0], "manual": True}], 0) is None
    assert of([{**told[0], "kind": "acknowledged"}], 0) is None
    twice = of([*told, *told], 0)
    assert twice is not None
    assert twice.attempts == 1


@given(st.lists(st.tuples(st.integers(0, 10_000), st.booleans()), min_size=1, max_size=80), st.integers(1, 5))
def test_windows_are_in_order_and_as_few_as_asked_for(seconds: list[tuple[int, bool]], most: int) -> None:
    told = [attempt(at=second * 1000, failed=failed, number=n) for n, (second, failed) in enumerate(seconds)]
    found = history(told, queue="q", subscriber="s0", since=0, until=10**9, most_windows=most)
    assert found is not None
    windows = found.endpoint.windows
    assert len(windows) <= most
    assert all(0 <= each.begins < each.ends and 0 < each.share <= 1 for each in windows)
    assert all(one.ends <= other.begins for one, other in pairwise(windows))
    assert bool(windows) == any(failed for _, failed in seconds)


def attempt(*, at: int, failed: bool = True, number: int = 1) -> dict[str, Any]:
    return {
        "kind": "attempt",
        "record_id": f"{at}-{number}",
        "queue": "q",
        "queue_uid": "uid",
        "message_id": str(at),
        "subscriber": "name-0",
        "subscriber_id": "s0",
        "accepted_at": iso_time(at),
        "expires_at": iso_time(at + 1000),
        "started_at": iso_time(at),
        "duration_ms": 70,
        "verdict": "failed" if failed else "delivered",
        "status_code": 503 if failed else 200,
        "error_class": "",
    }
