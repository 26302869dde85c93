"""The numbers of the template: each that is much less or more than what it is for needs is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from simulation.deployed import OTHER_NUMBER, deployed
from simulation.run import Plan, played
from simulation.template import template

from simulation import run

HARMLESS = {
    ("ErrorsQueue", "maxReceiveCount", 360): "what fails is set aside sooner, and can be put back",
    ("ErrorsQueue", "VisibilityTimeout", 30): "as long as a run may last, and comes back sooner",
    ("NotifyQueue", "maxReceiveCount", 500): "a wake-up that fails for hours is made again by the next notification",
    ("NotifyQueue", "VisibilityTimeout", 30): "longer than a run lasts, and comes back sooner",
}
"""Other numbers that break nothing, and why."""

NUMBERS = {"VisibilityTimeout", "MessageRetentionPeriod", "maxReceiveCount"}


def numbers(place: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], int]]:
    """All numbers of a part of the template, by where they are."""
    items = place.items() if isinstance(place, dict) else enumerate(place) if isinstance(place, list) else ()
    for name, each in items:
        if name in NUMBERS and isinstance(each, int):
            yield (*path, name), each
        else:
            yield from numbers(each, (*path, name))


def of_queues() -> list[tuple[tuple[Any, ...], int]]:
    return [
        found
        for name, each in template()["Resources"].items()
        if each["Type"] == "AWS::SQS::Queue"
        for found in numbers(each["Properties"], (name, "Properties"))
    ]


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The template with another value at a place of its resources."""
    created = deepcopy(template())
    place = created["Resources"]
    for each in path[:-1]:
        place = place[each]
    place[path[-1]] = value
    return created


def test_what_is_deployed_is_as_promised() -> None:
    assert [*deployed(template())] == []
    assert len(of_queues()) > 25


@pytest.mark.parametrize(("path", "value"), of_queues(), ids=str)
def test_a_queue_with_half_of_a_number_or_too_much_of_it_is_noticed(path: tuple[Any, ...], value: int) -> None:
    # Given half of what a queue has, or ten times as much
    for other in [each for each in (value // 2, 10 * value) if (path[0], path[-1], each) not in HARMLESS]:
        # Then a promise is broken, and the one that is broken is that queue's
        broken = {each.about for each in deployed(changed(path, other))}
        assert broken == {path[0]}, other


@pytest.mark.parametrize(
    ("function", "seconds"),
    [
        *(("Push", 30), ("Push", 130), ("Poll", 200), ("Poll", 500), ("Control", 20), ("Control", 60)),
        *(("Ingest", 900), ("Wake", 70), ("Errors", 61), ("Consumers", 30)),
    ],
)
def test_a_function_with_another_time_limit_than_its_promises_need_is_noticed(function: str, seconds: int) -> None:
    broken = [*deployed(changed((f"{function}Function", "Properties", "Timeout"), seconds))]
    assert broken
    assert {each.rule for each in broken} == {OTHER_NUMBER}


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("MaximumRetryAttempts", 3),
        ("MaximumRecordAgeInSeconds", 3_600),
        ("StartingPosition", "LATEST"),
        ("BisectBatchOnFunctionError", False),
        ("MaximumBatchingWindowInSeconds", 5),
    ],
)
def test_a_stream_that_may_lose_or_delay_what_was_accepted_is_noticed(setting: str, value: object) -> None:
    events = template()["Resources"]["DispatchFunction"]["Properties"]["Events"]
    [stream] = [name for name, each in events.items() if each["Type"] == "DynamoDB"]
    path = ("DispatchFunction", "Properties", "Events", stream, "Properties", setting)
    assert {each.about for each in deployed(changed(path, value))} == {"dispatch's stream"}


@pytest.mark.parametrize(("name", "prefix", "days"), [("bodies", "bodies/", 37), ("webhooks", "webhooks/", 400)])
def test_bodies_that_are_gone_before_their_messages_are_noticed(name: str, prefix: str, days: int) -> None:
    rules = template()["Resources"]["BodiesBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    [place] = [place for place, each in enumerate(rules) if each.get("Prefix") == prefix]
    path = ("BodiesBucket", "Properties", "LifecycleConfiguration", "Rules", place, "ExpirationInDays")
    [broken] = deployed(changed(path, days))
    assert f"{name}/ {days} days" in broken.detail


def test_each_run_judges_what_is_deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    with played(Plan(1, "gates", 0.01, calm=True, talk=False)) as scene:
        assert scene.broken() == []
        monkeypatch.setattr(run, "template", lambda: changed(("PushQueue", "Properties", "VisibilityTimeout"), 5))
        run._numbers.cache_clear()
        assert {each.rule for each in scene.broken()} == {OTHER_NUMBER}
    run._numbers.cache_clear()
