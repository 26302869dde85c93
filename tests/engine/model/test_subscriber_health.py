"""In which one word it is told how a subscriber is doing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pushhub.engine.model.activity import SubscriberActivity
from pushhub.engine.model.circuit import Circuit, Health, SubscriberKey, failed, succeeded
from pushhub.engine.model.subscriber_health import TEXTS, HealthState, Owed, SubscriberHealth, TokenOutage, health_of

NOW = 1_795_000_000_000
KEY = SubscriberKey(project="p", queue="q", queue_uid="u", subscriber_id="s")
FAILING = failed(Health(key=KEY), Circuit(), NOW - 50_000, tripped=False, probe=False)
OPEN = failed(FAILING, Circuit(), NOW - 20_000, tripped=True, probe=False)
RAMPING = succeeded(OPEN, NOW - 10_000)
OUTAGE = TokenOutage(since=NOW - 9_000, ask_at=NOW + 5_000, reason="the token server answered 503")


def test_the_first_that_is_the_matter_is_told() -> None:
    # Given everything that can be the matter at once, when one after the other is over, then the next one is told
    matters = {
        "disabled": True,
        "awaits_consent": True,
        "suspended": True,
        "paused": True,
        "certificate_ends_at": NOW,
        "outage": OUTAGE,
        "stored": OPEN,
    }
    reported = []
    while matters:
        reported.append(health_of(now=NOW, **matters).state)  # type: ignore[arg-type]
        del matters[next(iter(matters))]
    rest = [
        health_of(now=NOW, stored=RAMPING),
        health_of(now=NOW, stored=FAILING),
        health_of(now=NOW, owed=Owed(waiting=1, retried=1, in_line=1)),
        health_of(now=NOW, owed=Owed(waiting=1, in_line=1)),
        health_of(now=NOW),
    ]
    assert [*reported, *(each.state for each in rest)] == [*HealthState]
    assert {*TEXTS} == {*HealthState}


def test_times_are_those_of_what_is_told() -> None:
    def times(health: SubscriberHealth) -> tuple[int | None, int | None]:
        return health.since, health.until

    assert times(health_of(now=NOW, stored=OPEN)) == (NOW - 50_000, OPEN.probe_at)
    assert times(health_of(now=NOW, stored=FAILING)) == (NOW - 50_000, None)
    assert times(health_of(now=NOW, outage=OUTAGE, stored=FAILING)) == (OUTAGE.since, OUTAGE.ask_at)
    # A probe that is due is made with the next message: no time in the past is told
    assert times(health_of(now=OPEN.probe_at, stored=OPEN)) == (NOW - 50_000, None)
    assert times(health_of(now=NOW, owed=Owed(retried=1, oldest_at=7))) == (7, None)
    assert health_of(now=NOW, outage=OUTAGE).reason == OUTAGE.reason
    assert health_of(now=NOW, outage=OUTAGE, paused=True).reason == ""


@pytest.mark.parametrize("owed", [Owed(), Owed(waiting=2, retried=2, oldest_at=NOW - 9_000)])
def test_a_subscriber_that_accepted_nothing_lately_is_failing_whether_it_is_owed_anything_or_not(owed: Owed) -> None:
    # Given one without a circuit: nothing is stored of it
    health = health_of(now=NOW, owed=owed, lately=SubscriberActivity(attempts=3, failed=3, given_up=3))
    assert (health.state, health.since, health.well) == (HealthState.FAILING, owed.oldest_at, False)


@pytest.mark.parametrize(
    ("health", "due_at", "next_at"),
    [
        # Behind an open circuit it was due long ago, and waits for the probe
        (health_of(now=NOW, stored=OPEN), NOW - 1_000_000, OPEN.probe_at),
        (health_of(now=NOW, stored=OPEN), OPEN.probe_at + 1, OPEN.probe_at + 1),
        (health_of(now=NOW, stored=RAMPING), NOW - 1_000_000, NOW),
        (health_of(now=NOW), NOW + 5, NOW + 5),
        (health_of(now=NOW), None, None),
        (health_of(now=NOW, paused=True), NOW + 5, None),
        (health_of(now=NOW, disabled=True), NOW + 5, None),
    ],
)
def test_no_attempt_ahead_is_in_the_past(health: SubscriberHealth, due_at: int | None, next_at: int | None) -> None:
    assert health.next_attempt(due_at, NOW) == next_at


def test_who_accepts_messages_is_well() -> None:
    assert health_of(now=NOW).well
    assert health_of(now=NOW, owed=Owed(retried=1)).well
    assert health_of(now=NOW, owed=Owed(retried=1), lately=SubscriberActivity(failed=9, delivered=1)).well
    assert not health_of(now=NOW, stored=replace(FAILING, version=9)).well
