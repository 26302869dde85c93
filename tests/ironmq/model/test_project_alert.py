"""When an alert fires and is resolved, and what is counted in its window."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pushhub.engine.model.activity import HOUR_MS
from pushhub.ironmq.model.project_alert import (
    CALM_MS,
    MINUTE_MS,
    SAMPLES,
    AlertEvent,
    Counts,
    Format,
    Measure,
    ProjectAlert,
    judged,
    sampled,
    to_test,
    value_of,
)

START = 500_000 * HOUR_MS
ALERT = ProjectAlert(
    project="5f0000000000000000000001",
    alert_id="0123456789ab",
    name="a",
    measure=Measure.GIVEN_UP,
    threshold=10,
    minutes=15,
    url="https://ops.example/",
    format=Format.JSON,
    created_at=START,
)


def looked(alert: ProjectAlert, failures: list[int], *, minutes: int, since: int = START) -> list[int]:
    """How many failures each of so many looks counted, a minute apart, of failures at the given minutes."""
    seen: list[int] = []
    for minute in range(minutes):
        now = since + minute * MINUTE_MS
        hours: dict[int, Counts] = {}
        for each in failures:
            at = since + each * MINUTE_MS
            # Hours that are long over are not read.
            if at < now and now - now % HOUR_MS - at % 1 - 2 * HOUR_MS <= at - at % HOUR_MS:
                hour = at - at % HOUR_MS
                hours[hour] = hours.get(hour, Counts()) + Counts(attempts=1, failed=1)
        alert, counts = sampled(alert, hours, now)
        seen.append(counts.failed)
    return seen


@pytest.mark.parametrize("window", [5, 15, 60])
@pytest.mark.parametrize("first", [3, 40, 57, 100])
def test_a_window_counts_what_happened_in_it_and_forgets_it_after_across_hours(window: int, first: int) -> None:
    # Given a look each minute, and three failures together
    seen = looked(replace(ALERT, minutes=window), [first] * 3, minutes=first + 2 * window + 10)
    # Then they count from the next look until the window is over, and a twelfth of it later at most
    assert seen[: first + 1] == [0] * (first + 1)
    assert seen[first + 1 : first + window] == [3] * (window - 1)
    late = max(1, window // SAMPLES) + 1
    assert seen[first + window + late :] == [0] * len(seen[first + window + late :])


def test_what_was_counted_before_an_alert_was_made_does_not_count() -> None:
    alert, counts = sampled(ALERT, {START: Counts(attempts=50, failed=50)}, START + 30 * MINUTE_MS)
    assert counts == Counts()
    _, counts = sampled(alert, {START: Counts(attempts=51, failed=51)}, START + 31 * MINUTE_MS)
    assert counts == Counts(attempts=1, failed=1)


def test_nothing_is_remembered_while_nothing_happens_and_little_when_much_does() -> None:
    alert, _ = sampled(ALERT, {}, START)
    for minute in range(1, 200):
        after, _ = sampled(alert, {}, START + minute * MINUTE_MS)
        assert after == alert
    busy = replace(ALERT, minutes=60)
    for minute in range(300):
        now = START + minute * MINUTE_MS
        hour = now - now % HOUR_MS
        hours = {hour: Counts(attempts=minute % 60), hour - HOUR_MS: Counts(attempts=60)}
        busy, _ = sampled(busy, hours, now)
    assert len(busy.state.samples) <= SAMPLES + 2


def test_an_hour_whose_count_comes_late_takes_nothing_away() -> None:
    alert, _ = sampled(ALERT, {START: Counts(given_up=9)}, START)
    _, counts = sampled(alert, {START: Counts(given_up=7)}, START + 2 * MINUTE_MS)
    assert counts == Counts()


@pytest.mark.parametrize(
    ("counts", "rate"),
    [
        (Counts(), 0),
        (Counts(attempts=1_000), 0),
        (Counts(attempts=4, failed=4), None),
        (Counts(attempts=5, failed=5), 100),
        (Counts(attempts=1_000, failed=999), 99),
    ],
)
def test_a_failure_rate_needs_some_attempts_or_no_failure(counts: Counts, rate: int | None) -> None:
    assert value_of(Measure.FAILURE_RATE, counts) == rate
    assert value_of(Measure.GIVEN_UP, replace(counts, given_up=7)) == 7


def test_an_alert_fires_once_and_is_resolved_once_it_has_been_calm() -> None:
    alert, reported = ALERT, list[tuple[int, AlertEvent]]()

    def look(minute: int, value: int | None) -> None:
        nonlocal alert
        alert = judged(alert, value, START + minute * MINUTE_MS)
        pending = alert.state.pending
        if pending is not None:
            reported.append((minute, pending.happened))
            assert pending.number == len(reported)
            alert = replace(alert, state=replace(alert.state, pending=None))

    for minute, value in enumerate([0, 9, None, 10, 99, None, 10]):
        look(minute, value)
    assert reported == [(3, AlertEvent.FIRING)]
    assert alert.state.firing_since == START + 3 * MINUTE_MS
    # A value that varies tells nothing more, for hours
    for minute in range(7, 307):
        look(minute, 50 if minute % 5 else 0)
    assert len(reported) == 1
    # And one that cannot be told ends no calm
    calm = CALM_MS // MINUTE_MS
    for minute in range(310, 310 + calm):
        look(minute, 0 if minute % 2 == 0 else None)
    assert len(reported) == 1
    look(310 + calm, 0)
    assert reported[1:] == [(310 + calm, AlertEvent.RESOLVED)]
    assert alert.state.firing_since == 0


def test_a_test_changes_nothing_else() -> None:
    firing = judged(ALERT, 10, START)
    tested = to_test(replace(firing, state=replace(firing.state, pending=None)), START + 5)
    assert tested.state.pending is not None
    assert (tested.state.pending.happened, tested.state.pending.number) == (AlertEvent.TEST, 2)
    assert tested.state.firing_since == firing.state.firing_since
