"""The policy simulator in the queue API: a subscriber's own failures as the outage, and no other project's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.ironmq.api.hub import OTHER_PROJECT, Hub

from pushhub.base.times import iso_time
from pushhub.engine.model.activity import HOUR_MS
from pushhub.engine.model.attempt_counts import FIRST, AttemptCounts, CountedSubscriber

PATH = "/policies/simulate"


def a_failure(hub: Hub, *, project: str = PROJECT) -> dict[str, Any]:
    """An hour in which each minute's message got 503, three hours ago; returns the request for it."""
    hour = hub.world.clock.now() // HOUR_MS * HOUR_MS - 3 * HOUR_MS
    minutes = {(minute, each): 1 for minute in range(60) for each in ("503", FIRST)}
    counts = AttemptCounts(minutes=minutes, failed_ms=60 * 70, life_ms=3_600_000)
    hub.world.ports.attempt_counts.add_attempts(CountedSubscriber(project, "webhooks/app_1", "ep_1"), hour, counts)
    return {"queue": "webhooks/app_1", "subscriber": "ep_1", "since": iso_time(hour - HOUR_MS)}


def test_a_subscribers_own_failures_are_the_outage() -> None:
    # Given a webhook's endpoint that answered 503 for an hour
    hub = Hub()
    replay = a_failure(hub)
    # When its project simulates another policy
    answer = hub.call("POST", PATH, {"policy": {"schedule": [7200]}, "replay": replay, "compare": "nothing"})
    # Then the counted history is used, and each message is tried once in the hour and once after it
    assert answer.status == 200
    told = answer.body["replayed"]
    assert (told["messages"], told["attempts"], told["failed"]) == (60, 60, 60)
    [window] = told["outage"]
    assert (window["start"], window["end"], window["status"], window["takes"]) == (0, 3600, 503, 0.07)
    plan = answer.body["plan"]
    assert (plan["duration"], plan["message_expiration"], plan["rate"]) == (3600, 3600, pytest.approx(1 / 60))
    assert answer.body["forecast"]["expired"] == 60
    # And values in the request take precedence
    request = {"policy": {"schedule": [7200]}, "circuit": False, "replay": replay, "rate": 0.1}
    forecast = hub.call("POST", PATH, request | {"message_expiration": 86_400}).body["forecast"]
    assert (forecast["accepted"], forecast["delivered"], forecast["attempts"]) == (360, 360, 720)


def test_nobody_replays_what_others_had() -> None:
    hub = Hub()
    replay = a_failure(hub, project=OTHER_PROJECT)
    assert hub.call("POST", PATH, {"replay": replay}).status == 404
    foreign = hub.send(
        "POST", f"/3/projects/{OTHER_PROJECT}{PATH}", json.dumps({"replay": replay}).encode(), token=hub.token
    )
    assert foreign.status == 401


@pytest.mark.parametrize(
    "change",
    [
        {"queue": None},
        {"queue": ""},
        {"queue": 7},
        {"queue": "é" * 257},
        {"subscriber": ["ep_1"]},
        {"subscriber": "x" * 513},
        {"since": None},
        {"since": "yesterday"},
        {"since": 1_790_000_000},
        {"since": "2026-11-20", "until": "2026-11-20"},
        {"since": "2026-11-01", "until": "2026-11-09"},
        {"until": "9999-12-31T23:59:59-23:59"},
    ],
)
def test_what_cannot_be_meant_is_refused(change: dict[str, Any]) -> None:
    hub = Hub()
    answer = hub.call("POST", PATH, {"replay": a_failure(hub) | change})
    assert answer.status == 400, answer
    assert hub.call("POST", PATH, {"replay": "ep_1"}).status == 400


@pytest.mark.parametrize("name", ["a#b", "../../", "\u0000", "*", "ep_1' OR 1=1", "é" * 256, "$ref", "ATTEMPTS#x"])
@pytest.mark.parametrize("since", ["1970-01-01", "9999-12-01", "0001-01-01", "2026-W40"])
def test_a_name_or_time_that_nothing_has_finds_nothing(name: str, since: str) -> None:
    hub = Hub()
    replay = {"queue": name, "subscriber": name, "since": since}
    assert hub.call("POST", PATH, {"replay": replay}).status == 404
