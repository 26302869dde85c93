"""Alerts: which changes of size fire them, and what keeps them quiet."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.world import PROJECT
from tests.fakes import FakeClock, FakeConfigStore, FakePullStore, Fault, FaultPlan
from tests.ironmq.api.hub import Hub

from pushhub.engine.model.message import NewMessage
from pushhub.engine.model.queue import Alert
from pushhub.ironmq.alerts import Alerts, crosses
from pushhub.ironmq.queue_changes import pull_queue
from pushhub.ironmq.wiring import Ironmq


def alert(kind: str, trigger: int, direction: str) -> Alert:
    return Alert(alert_id="a", type=kind, trigger=trigger, direction=direction, queue="t")


@pytest.mark.parametrize(
    ("kind", "direction", "before", "after", "fires"),
    [
        ("fixed", "asc", 9, 10, True),
        ("fixed", "asc", 0, 25, True),
        ("fixed", "asc", 10, 11, False),
        ("fixed", "asc", 11, 9, False),
        ("fixed", "desc", 11, 10, True),
        ("fixed", "desc", 10, 9, False),
        ("fixed", "desc", 25, 0, True),
        ("fixed", "desc", 9, 11, False),
        ("progressive", "asc", 19, 20, True),
        ("progressive", "asc", 20, 29, False),
        ("progressive", "asc", 0, 9, False),
        ("progressive", "asc", 9, 31, True),
        ("progressive", "desc", 21, 20, True),
        ("progressive", "desc", 20, 11, False),
        ("progressive", "desc", 10, 0, False),
        ("progressive", "desc", 11, 0, True),
    ],
)
def test_triggers(kind: str, direction: str, before: int, after: int, fires: bool) -> None:
    assert crosses(alert(kind, 10, direction), before, after) is fires


@given(
    kind=st.sampled_from(["fixed", "progressive"]),
    direction=st.sampled_from(["asc", "desc"]),
    trigger=st.integers(1, 8),
    before=st.integers(0, 40),
    after=st.integers(0, 40),
)
def test_a_jump_fires_what_its_single_steps_would(
    kind: str, direction: str, trigger: int, before: int, after: int
) -> None:
    step = 1 if after >= before else -1
    sizes = list(range(before, after + step, step))
    single = any(crosses(alert(kind, trigger, direction), one, two) for one, two in pairwise(sizes))
    assert crosses(alert(kind, trigger, direction), before, after) is single


def told(hub: Hub, name: str = "told") -> list[dict[str, Any]]:
    """The alert messages in a queue; they are removed from it."""
    if hub.call("GET", f"/queues/{name}").status == 404:
        return []
    return [json.loads(each["body"]) for each in hub.reserve(name, n=100, delete=True)]


def test_a_growing_queue_tells_of_it_once() -> None:
    # Given an alert at three messages
    hub = Hub()
    queue = hub.make("q", alerts=[{"type": "fixed", "trigger": 3, "queue": "told"}])
    hub.post("q", "1", "2")
    assert told(hub) == []
    # When the third comes
    hub.post("q", "3")
    # Then the other queue gets the alert, in the documented format
    [message] = told(hub)
    assert message.pop("created_at").endswith("Z")
    assert message == {
        "source_queue": "q",
        "queue_size": 3,
        "alert_id": queue["alerts"][0]["id"],
        "alert_type": "fixed",
        "alert_direction": "asc",
        "alert_trigger": 3,
    }
    # And not again by the fourth
    hub.post("q", "4")
    assert told(hub) == []


@given(
    triggers=st.lists(st.integers(1, 8), min_size=1, max_size=3, unique=True),
    direction=st.sampled_from(["asc", "desc"]),
    before=st.integers(0, 40),
    after=st.integers(0, 40),
)
def test_a_long_line_is_counted_only_as_far_as_it_matters(
    triggers: list[int], direction: str, before: int, after: int
) -> None:
    # Given fixed alerts, and a queue that is counted only as far as they need
    queue = replace(pull_queue("p", "q", 0), alerts=tuple(alert("fixed", each, direction) for each in triggers))
    counted: list[int] = []

    class Long(FakePullStore):
        def size(
            self, project_id: str, pull_uid: str, now: int, *, at_most: int | None = None, exact: bool = False
        ) -> int:
            assert at_most is not None
            counted.append(at_most)
            return min(after, at_most)

    found = Alerts(config=FakeConfigStore(), pull=Long(), clock=FakeClock()).fired(queue, after - before)
    # Then the same alerts fire as if all of it were counted
    assert len(found) == sum(crosses(each, before, after) for each in queue.alerts)
    assert all(each <= max(triggers) + abs(after - before) + 1 for each in counted)


def test_a_shrinking_queue_tells_of_it_however_messages_leave() -> None:
    hub = Hub()
    hub.make("q", alerts=[{"type": "progressive", "trigger": 1, "direction": "desc", "queue": "told"}])
    ids = hub.post("q", *"abcdef")
    hub.call("DELETE", f"/queues/q/messages/{ids[5]}")
    hub.call("DELETE", "/queues/q/messages", {"ids": ids[3:5]})
    hub.reserve("q", delete=True)
    assert [each["queue_size"] for each in told(hub)] == [5, 3, 2]


def test_a_snoozed_alert_keeps_quiet_and_wakes_up() -> None:
    hub = Hub()
    hub.make("q", alerts=[{"type": "progressive", "trigger": 1, "queue": "told", "snooze": 60}])
    hub.post("q", "1")
    hub.post("q", "2")
    hub.world.clock.advance(seconds=59)
    hub.post("q", "3")
    assert [each["queue_size"] for each in told(hub)] == [1]
    hub.world.clock.advance(seconds=1)
    hub.post("q", "4")
    assert [each["queue_size"] for each in told(hub)] == [4]
    # changing other settings does not forget the snooze
    hub.make("q", message_timeout=90, alerts=[{"type": "progressive", "trigger": 1, "queue": "told", "snooze": 60}])
    hub.post("q", "5")
    assert told(hub) == []


def test_alerts_about_each_other_end() -> None:
    hub = Hub()
    for name, target in (("a", "b"), ("b", "a")):
        hub.make(name, alerts=[{"type": "progressive", "trigger": 1, "queue": target}])
    hub.post("a", "x")
    assert (hub.info("a")["size"], hub.info("b")["size"]) == (1, 1)


def test_alerts_can_be_pushed() -> None:
    hub = Hub()
    hub.make_push("told", "https://a.example/in")
    hub.make("q", alerts=[{"type": "fixed", "trigger": 1, "queue": "told"}])
    hub.post("q", "x")
    [message] = hub.world.messages.all_messages()
    assert json.loads(message.body or b"")["source_queue"] == "q"


@pytest.mark.parametrize("call", ["pull.size", "config.update_queue", "pull.put"])
@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.TIMES_OUT])
def test_a_failing_alert_does_not_fail_the_post(call: str, fault: Fault) -> None:
    # Given a post that crosses a trigger, and a failure while posting the alert
    hub = Hub()
    hub.make("q", alerts=[{"type": "fixed", "trigger": 1, "queue": "told", "snooze": 5}])
    plan = FaultPlan(fault, of=call, at=2 if call == "pull.put" else 1)
    ingest = hub.world.ports.build(plan, only=("config", "pull")).part(Ironmq).post
    # Then the producer still gets its answer
    assert len(ingest.post(PROJECT, "q", [NewMessage(body=b"x")])) == 1
    assert plan.struck
    assert hub.info("q")["size"] == 1
