"""Alerts: which changes of size fire them, and what keeps them quiet."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.engine.world import PROJECT
from tests.fakes import FakeClock, FakeConfigStore, FakePullStore, Fault, FaultPlan
from tests.fakes.alerts import FakeAlertLevels
from tests.fakes.telemetry import FakeTelemetry
from tests.ironmq.api.hub import Hub

from pushhub.engine.model.deflated import plain
from pushhub.engine.model.message import NewMessage
from pushhub.engine.model.queue import Alert, Queue
from pushhub.ironmq.model.alert_level import AlertLevels
from pushhub.ironmq.queues.queue_changes import pull_queue
from pushhub.ironmq.queues.size_alerts import Alerts, Fired, reached
from pushhub.ironmq.queues.size_alerts import crosses as crosses_levels
from pushhub.ironmq.wiring import Ironmq


def crosses(one: Alert, before: int, after: int) -> bool:
    """Whether a change from one size to another crosses a trigger."""
    return crosses_levels(one, reached(one, before), reached(one, after))


def alert(kind: str, trigger: int, direction: str) -> Alert:
    return Alert(alert_id=f"{kind} {trigger} {direction}", type=kind, trigger=trigger, direction=direction, queue="t")


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


def alerted(hub: Hub, name: str = "told") -> list[dict[str, Any]]:
    """The alert messages in a queue; they are removed from it."""
    if hub.call("GET", f"/queues/{name}").status == 404:
        return []
    return [json.loads(each["body"]) for each in hub.reserve(name, n=100, delete=True)]


def test_a_growing_queue_tells_of_it_once(hub: Hub) -> None:
    # Given an alert at three messages
    queue = hub.make("q", alerts=[{"type": "fixed", "trigger": 3, "queue": "told"}])
    hub.post("q", "1", "2")
    assert alerted(hub) == []
    # When the third comes
    hub.post("q", "3")
    # Then the other queue gets the alert, in the documented format
    [message] = alerted(hub)
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
    assert alerted(hub) == []


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

    alerts = Alerts(
        config=FakeConfigStore(),
        pull=Long(),
        levels=FakeAlertLevels(),
        clock=FakeClock(),
        telemetry=FakeTelemetry(),
    )
    found = [*alerts.fired(queue, after - before, began=0)]
    # Then the same alerts fire as if all of it were counted
    assert len(found) == sum(crosses(each, before, after) for each in queue.alerts)
    assert all(each <= max(triggers) + abs(after - before) + 1 for each in counted)


def test_a_shrinking_queue_tells_of_it_however_messages_leave(hub: Hub) -> None:
    hub.make("q", alerts=[{"type": "progressive", "trigger": 1, "direction": "desc", "queue": "told"}])
    ids = hub.post("q", *"abcdef")
    hub.call("DELETE", f"/queues/q/messages/{ids[5]}")
    hub.call("DELETE", "/queues/q/messages", {"ids": ids[3:5]})
    hub.reserve("q", delete=True)
    assert [each["queue_size"] for each in alerted(hub)] == [5, 3, 2]


def test_a_snoozed_alert_keeps_quiet_and_wakes_up(hub: Hub) -> None:
    hub.make("q", alerts=[{"type": "progressive", "trigger": 1, "queue": "told", "snooze": 60}])
    hub.post("q", "1")
    hub.post("q", "2")
    hub.world.clock.advance(seconds=59)
    hub.post("q", "3")
    assert [each["queue_size"] for each in alerted(hub)] == [1]
    hub.world.clock.advance(seconds=1)
    hub.post("q", "4")
    assert [each["queue_size"] for each in alerted(hub)] == [4]
    # changing other settings does not forget the snooze
    hub.make("q", message_timeout=90, alerts=[{"type": "progressive", "trigger": 1, "queue": "told", "snooze": 60}])
    hub.post("q", "5")
    assert alerted(hub) == []


def test_a_snoozed_alert_speaks_although_its_owner_changes_the_queue(hub: Hub) -> None:
    hub.make("q", alerts=[{"type": "fixed", "trigger": 1, "queue": "told", "snooze": 60}])
    update_queue = hub.world.config.update_queue

    def changed(queue: Queue) -> Queue:
        hub.world.config.update_queue = update_queue  # type: ignore[method-assign]
        hub.make("q", message_timeout=90)
        return update_queue(queue)

    # Given a change of the queue between the look at its alert and the write that starts the snooze
    hub.world.config.update_queue = changed  # type: ignore[method-assign]
    hub.post("q", "1")
    # Then its alert fires, once, and the change stays
    assert [each["queue_size"] for each in alerted(hub)] == [1]
    assert hub.info("q")["message_timeout"] == 90


def test_alerts_about_each_other_end(hub: Hub) -> None:
    for name, target in (("a", "b"), ("b", "a")):
        hub.make(name, alerts=[{"type": "progressive", "trigger": 1, "queue": target}])
    hub.post("a", "x")
    assert (hub.info("a")["size"], hub.info("b")["size"]) == (1, 1)


def test_alerts_can_be_pushed(hub: Hub) -> None:
    hub.make_push("told", "https://a.example/in")
    hub.make("q", alerts=[{"type": "fixed", "trigger": 1, "queue": "told"}])
    hub.post("q", "x")
    [message] = hub.world.messages.all_messages()
    assert json.loads(plain(message.body or b""))["source_queue"] == "q"


@pytest.mark.parametrize(
    "call", ["pull.size", "config.update_queue", "pull.put", "alert_levels.levels", "alert_levels.save"]
)
@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.TIMES_OUT])
def test_a_failing_alert_does_not_fail_the_post(hub: Hub, call: str, fault: Fault) -> None:
    # Given a post that crosses a trigger, and a failure while posting the alert
    hub.make("q", alerts=[{"type": "fixed", "trigger": 1, "queue": "told", "snooze": 5}])
    plan = FaultPlan(fault, of=call, at=2 if call == "pull.put" else 1)
    ingest = hub.world.ports.build(plan, only=("config", "pull", "alert_levels")).part(Ironmq).post
    # Then the producer still gets its answer
    assert len(ingest.post(PROJECT, "q", [NewMessage(body=b"x")])) == 1
    assert plan.struck
    assert hub.info("q")["size"] == 1
    # And the operator learns of it, with the call that failed
    telemetry = hub.world.telemetry
    assert telemetry.counts["AlertsUnseen"] == 1
    [event] = telemetry.named("alerts_unseen")
    assert (event["project"], event["queue"]) == (PROJECT, "q")
    assert str(event["error"])


class Together:
    """A queue whose size several change at the same time: in each call of one, others may run as a whole.

    Args:
        alerts: Alerts of the queue.
        size: Messages in it at first.
        changes: What is done, one after the other or inside one another.
        inside: For each call, whether the next change is made just before it.
        call_s: How long each call takes, seconds.
    """

    def __init__(
        self, alerts: tuple[Alert, ...], size: int, changes: list[int], inside: list[bool], call_s: int = 0
    ) -> None:
        self.queue = replace(pull_queue("p", "q", 0), alerts=alerts)
        self.sizes = [size]
        self.clock = FakeClock()
        self.levels = FakeAlertLevels()
        self._ready = False
        self._waiting = [*changes]
        self._inside = [*inside]
        self._call_s = call_s
        self.fired: list[Fired] = []
        self.alerts = Alerts(
            config=FakeConfigStore(),
            pull=_Sized(self),
            levels=_Levels(self),
            clock=self.clock,
            telemetry=FakeTelemetry(),
        )

    def interrupted(self) -> None:
        """A call is made."""
        self.clock.advance(seconds=self._call_s)
        if self._ready and self._inside and self._inside.pop(0):
            self.change()

    def change(self) -> None:
        """The next change is made, and looks for alerts."""
        if self._waiting:
            change, began = self._waiting.pop(0), self.clock.now()
            if self.sizes[-1] + change >= 0:
                self.sizes.append(self.sizes[-1] + change)
                self.interrupted()
                self.fired += self.alerts.fired(self.queue, change, began=began)

    def play(self) -> None:
        """Everything is done."""
        self.alerts.begin(self.queue)
        self._ready = True
        while self._waiting:
            self.change()

    def crossings(self, one: Alert) -> int:
        """How often the true size crossed a trigger, step by step."""
        return sum(crosses(one, before, after) for before, after in pairwise(self.sizes))


class _Sized(FakePullStore):
    def __init__(self, together: Together) -> None:
        super().__init__()
        self._together = together

    def size(self, project_id: str, pull_uid: str, now: int, *, at_most: int | None = None, exact: bool = False) -> int:
        self._together.interrupted()
        counted = self._together.sizes[-1]
        self._together.interrupted()
        return counted if at_most is None else min(counted, at_most)


class _Levels:
    def __init__(self, together: Together) -> None:
        self._together = together

    def levels(self, project_id: str, pull_uid: str) -> AlertLevels:
        self._together.interrupted()
        return self._together.levels.levels(project_id, pull_uid)

    def save(self, levels: AlertLevels) -> None:
        self._together.interrupted()
        self._together.levels.save(levels)


def test_several_that_reach_a_size_together_are_told_of_once() -> None:
    # Given an alert at two, and three messages that are all stored before anybody counts
    together = Together((alert("fixed", 2, "asc"),), 0, [1, 1, 1], [True, True])
    # When each looks
    together.play()
    # Then one of them tells, and no other
    assert together.sizes == [0, 1, 2, 3]
    assert len(together.fired) == 1


@given(
    one=st.builds(
        alert, st.sampled_from(["fixed", "progressive"]), st.integers(1, 4), st.sampled_from(["asc", "desc"])
    ),
    size=st.integers(0, 8),
    changes=st.lists(st.sampled_from([1, 1, 2, -1, -1, -2]), min_size=1, max_size=7),
    inside=st.lists(st.booleans(), max_size=40),
)
@example(alert("fixed", 2, "asc"), 1, [1, -1], [False, False, True])
@example(alert("fixed", 2, "asc"), 1, [1, 1], [False, False, False, True])
@example(alert("progressive", 1, "asc"), 1, [1, 1, -1], [False, False, False, True, False, False, True])
@settings(max_examples=300)
def test_however_changes_meet_no_crossing_is_lost_or_told_twice(
    one: Alert, size: int, changes: list[int], inside: list[bool]
) -> None:
    # Given a queue with an alert
    together = Together((one,), size, changes, inside)
    # When its size is changed by several, in each other's midst
    together.play()
    # Then what is known is what is so, no more is told than happened, and what is so now has been told
    known = together.levels.levels("p", together.queue.pull_uid).levels[one.alert_id].reached
    assert known == reached(one, together.sizes[-1])
    assert len(together.fired) <= together.crossings(one)
    assert together.fired or not crosses(one, together.sizes[0], together.sizes[-1])


@given(
    one=st.builds(
        alert, st.sampled_from(["fixed", "progressive"]), st.integers(1, 4), st.sampled_from(["asc", "desc"])
    ),
    size=st.integers(0, 8),
    change=st.sampled_from([1, 2, -1, -2]),
    times=st.integers(1, 7),
    inside=st.lists(st.booleans(), max_size=40),
    call_s=st.sampled_from([1, 10]),
)
@example(alert("fixed", 3, "asc"), 0, 1, 3, [True, True], 10)
@settings(max_examples=300)
def test_however_long_a_call_takes_no_crossing_is_lost_or_told_twice(
    one: Alert, size: int, change: int, times: int, inside: list[bool], call_s: int
) -> None:
    # Given a queue with an alert, on a machine that stands still again and again
    together = Together((one,), size, [change] * times, inside, call_s)
    # When several post, or consume, in each other's midst
    together.play()
    # Then what is known is what is so, and each crossing has been told, if not each by itself
    known = together.levels.levels("p", together.queue.pull_uid).levels[one.alert_id].reached
    assert known == reached(one, together.sizes[-1])
    assert len(together.fired) <= together.crossings(one)
    assert together.fired or not crosses(one, together.sizes[0], together.sizes[-1])


@given(
    one=st.builds(
        alert, st.sampled_from(["fixed", "progressive"]), st.integers(1, 4), st.sampled_from(["asc", "desc"])
    ),
    size=st.integers(0, 8),
    changes=st.lists(st.sampled_from([1, 2, -1, -2]), min_size=1, max_size=9),
)
def test_one_after_the_other_each_crossing_is_told(one: Alert, size: int, changes: list[int]) -> None:
    together = Together((one,), size, changes, [])
    together.play()
    assert len(together.fired) == together.crossings(one)


def test_a_size_that_is_reached_again_after_messages_expired_is_told_again(hub: Hub) -> None:
    # Given an alert at two that has told
    hub.make("q", alerts=[{"type": "fixed", "trigger": 2, "queue": "told"}], message_expiration=60)
    hub.post("q", "1", "2")
    assert len(alerted(hub)) == 1
    # When the messages expire, of which nobody is told, and others come
    hub.world.clock.advance(seconds=61)
    hub.post("q", "3")
    hub.post("q", "4")
    # Then it tells again
    assert [each["queue_size"] for each in alerted(hub)] == [2]


@pytest.mark.parametrize("again", ["cleared", "made"])
def test_what_alerts_know_begins_anew_with_the_messages(hub: Hub, again: str) -> None:
    # Given a queue that is past its alert
    alerts = [{"type": "fixed", "trigger": 2, "queue": "told"}]
    hub.make("q", alerts=alerts)
    hub.post("q", "1", "2", "3")
    assert len(alerted(hub)) == 1
    # When it is cleared, or deleted and made again
    hub.call("DELETE", "/queues/q/messages" if again == "cleared" else "/queues/q", {})
    hub.make("q", alerts=alerts)
    # Then it tells of the next two
    hub.post("q", "5")
    assert alerted(hub) == []
    hub.post("q", "6")
    assert [each["queue_size"] for each in alerted(hub)] == [2]


def test_an_alert_that_is_made_for_a_queue_beyond_it_waits_until_that_is_crossed(hub: Hub) -> None:
    hub.make("q")
    ids = hub.post("q", "1", "2", "3")
    hub.make("q", alerts=[{"type": "fixed", "trigger": 2, "queue": "told"}])
    hub.post("q", "4")
    assert alerted(hub) == []
    hub.call("DELETE", "/queues/q/messages", {"ids": [{"id": each} for each in ids]})
    hub.post("q", "5")
    assert [each["queue_size"] for each in alerted(hub)] == [2]


def test_an_alert_is_told_although_the_look_after_it_fails(hub: Hub) -> None:
    # Given a post that crosses a trigger, and a second look at what was reached that fails
    hub.make("q", alerts=[{"type": "fixed", "trigger": 1, "queue": "told"}])
    plan = FaultPlan(Fault.FAILS, of="alert_levels.levels", at=2)
    hub.struck(plan, "alert_levels").post("q", "1")
    # Then the alert has come all the same
    assert plan.struck
    assert len(alerted(hub)) == 1


def test_an_alert_that_cannot_be_looked_after_does_not_fail_its_making(hub: Hub) -> None:
    plan = FaultPlan(Fault.FAILS, of="alert_levels.save")
    created = hub.struck(plan, "alert_levels").make("q", alerts=[{"type": "fixed", "trigger": 1, "queue": "told"}])
    assert plan.struck
    assert len(created["alerts"]) == 1
    # And what its first message reaches is told all the same
    hub.post("q", "1")
    assert len(alerted(hub)) == 1
