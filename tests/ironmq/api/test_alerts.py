"""Alerts that a project sets: by the API, looked at each minute, and told to a webhook or to Slack."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Crash, Fault, FaultPlan
from tests.ironmq.api.hub import OTHER_PROJECT, Hub

from pushhub.base.errors import Unavailable
from pushhub.engine.model.activity import HOUR_MS, Activity, SubscriberActivity
from pushhub.ironmq.alerts.check_alerts import CheckAlerts
from pushhub.ironmq.alerts.project_alerts import MOST_ALERTS
from pushhub.ironmq.model.project_alert import ALERT_QUEUES
from pushhub.ironmq.wire.project_alerts import parse_alert
from pushhub.ironmq.wiring import Ironmq

OPS, SHOP = "https://ops.example/hook", "https://shop.example/in"
RATE = {"name": "Failing", "measure": "failure_rate", "threshold": 50, "minutes": 15, "url": OPS}


def create(hub: Hub, **changes: Any) -> dict[str, Any]:
    answer = hub.call("POST", "/alerts", {"alert": {**RATE, **changes}})
    assert answer.status == 201, answer
    return dict(answer.body["alert"])


def check(hub: Hub) -> CheckAlerts:
    return hub.world.hub.part(Ironmq).check_alerts


def minute(hub: Hub, times: int = 1) -> None:
    for _ in range(times):
        hub.world.clock.advance(seconds=60)
        check(hub).run(lambda: 60_000)
        hub.world.run(seconds=1)


def count(hub: Hub, *, attempts: int = 0, failed: int = 0, given_up: int = 0, subscriber: str = "") -> None:
    now = hub.world.clock.now()
    store, hour = hub.world.ports.activity, now - now % HOUR_MS
    if subscriber:
        at = SubscriberActivity(attempts=attempts, failed=failed, given_up=given_up)
        store.add_subscriber_activity(PROJECT, subscriber, hour, at)
    else:
        store.add_activity(PROJECT, hour, Activity(attempts=attempts, failed=failed, given_up=given_up))


def notified(hub: Hub, url: str = OPS) -> list[dict[str, Any]]:
    """What was sent to a URL."""
    return [json.loads(each.body) for each in hub.world.sender.requests if each.url == url]


def states(hub: Hub) -> list[str]:
    return [each["state"] for each in notified(hub)]


def test_an_alert_is_made_changed_listed_and_removed(hub: Hub) -> None:
    created = create(hub, format="slack")
    assert {name: created[name] for name in RATE} == RATE
    assert (created["format"], created["state"], created["value"], created["since"]) == ("slack", "quiet", None, None)
    changed = hub.call("PUT", f"/alerts/{created['id']}", {"alert": {**RATE, "threshold": 20}}).body["alert"]
    assert (changed["id"], changed["threshold"], changed["format"]) == (created["id"], 20, "json")
    assert hub.call("GET", "/alerts").body == {"alerts": [changed]}
    assert hub.call("DELETE", f"/alerts/{created['id']}").status == 200
    assert hub.call("GET", "/alerts").body == {"alerts": []}
    for method, path in (("DELETE", ""), ("PUT", ""), ("POST", "/test")):
        for name in (created["id"], "x" * 3000, "0123456789ab#"):
            path_of = f"/alerts/{name.replace('#', '%23')}{path}"
            assert hub.call(method, path_of, {"alert": RATE}).status == 404


def test_no_other_project_sees_or_changes_an_alert(hub: Hub) -> None:
    created = create(hub)
    assert hub.call("GET", "/alerts", project=OTHER_PROJECT).body == {"alerts": []}
    for method, path in (("DELETE", ""), ("PUT", ""), ("POST", "/test")):
        answer = hub.call(method, f"/alerts/{created['id']}{path}", {"alert": RATE}, project=OTHER_PROJECT)
        assert answer.status == 404
    assert hub.send("GET", f"/3/projects/{PROJECT}/alerts", token=hub.other_token).status == 401
    # And another project's failures fire nothing here
    minute(hub)
    now = hub.world.clock.now()
    hub.world.ports.activity.add_activity(OTHER_PROJECT, now - now % HOUR_MS, Activity(attempts=99, failed=99))
    minute(hub, 3)
    assert notified(hub) == []


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"measure": "latency"}, "measure"),
        ({"threshold": 101}, "threshold"),
        ({"threshold": None}, "threshold"),
        ({"minutes": 61}, "minutes"),
        ({"minutes": 4}, "minutes"),
        ({"name": " "}, "name"),
        ({"format": "teams"}, "format"),
        ({"url": "ironmq:///orders"}, "url"),
        ({"url": "https://user:secret@ops.example/"}, "user name"),
        ({"url": "https://"}, "url"),
        ({"measure": "oldest_waiting"}, "queue"),
        ({"measure": "oldest_waiting", "queue": "orders", "subscriber": "shop"}, "subscriber"),
        ({"queue": "a/b"}, "queue"),
    ],
)
def test_what_cannot_be_is_refused_and_said(hub: Hub, changes: dict[str, Any], word: str) -> None:
    answer = hub.call("POST", "/alerts", {"alert": {**RATE, **changes}})
    assert answer.status == 400
    assert word in answer.msg
    assert "secret" not in answer.msg


def test_queues_and_subscribers_must_exist_and_the_guard_is_asked(hub: Hub) -> None:
    hub.make_push("orders", SHOP)
    hub.make("pulled", type="pull")
    assert hub.call("POST", "/alerts", {"alert": {**RATE, "queue": "none"}}).status == 404
    assert hub.call("POST", "/alerts", {"alert": {**RATE, "queue": "orders", "subscriber": "none"}}).status == 404
    assert hub.call("POST", "/alerts", {"alert": {**RATE, "queue": "pulled"}}).status == 400
    hub.refusals["https://inside.example/"] = "This address is private"
    refused = hub.call("POST", "/alerts", {"alert": {**RATE, "url": "https://inside.example/"}})
    assert (refused.status, "private" in refused.msg) == (400, True)
    for _ in range(MOST_ALERTS):
        create(hub)
    assert hub.call("POST", "/alerts", {"alert": RATE}).status == 400


def test_a_failure_rate_fires_once_and_is_resolved_once(hub: Hub) -> None:
    alert = create(hub)
    minute(hub)
    # Given most attempts fail for ten minutes
    for _ in range(10):
        count(hub, attempts=10, failed=6)
        minute(hub)
    # Then it is told once, with what happened and where to look
    [fired] = notified(hub)
    assert (fired["state"], fired["value"], fired["alert"]["id"]) == ("firing", 60, alert["id"])
    assert fired["text"] == "Failing is firing: 60 % of the attempts of the project failed in 15 minutes (limit 50 %)."
    assert fired["link"] == "https://hub.example/console#/charts"
    shown = hub.call("GET", "/alerts").body["alerts"][0]
    assert (shown["state"], shown["value"]) == ("firing", 60)
    # When all succeed again, then it is resolved, once, after the window and some calm
    for _ in range(40):
        count(hub, attempts=10)
        minute(hub)
    assert states(hub) == ["firing", "resolved"]
    assert hub.call("GET", "/alerts").body["alerts"][0]["state"] == "quiet"


@pytest.mark.parametrize("watches", [{}, {"queue": "orders"}, {"queue": "orders", "subscriber": "s0"}])
def test_an_alert_counts_from_the_moment_it_is_made_or_watches_something_else(
    hub: Hub, watches: dict[str, str]
) -> None:
    # Given much that failed before, and a queue that already fails
    hub.make_push("orders", SHOP)
    stored = hub.world.config.queue(PROJECT, "orders")
    assert stored is not None
    assert stored.push is not None
    [shop] = [each.subscriber_id for each in stored.push.subscribers]

    def fail(times: int) -> None:
        for subscriber in ("", shop):
            count(hub, attempts=times, failed=times, given_up=times, subscriber=subscriber)

    fail(100)
    # When alerts are made while it goes on failing, before anybody has looked at them
    given_up = {"measure": "given_up", "minutes": 5}
    create(hub, **given_up, **watches, name="four", threshold=4)
    create(hub, **given_up, **watches, name="five", threshold=5)
    fail(4)
    minute(hub)
    # Then what was given up since counts, and nothing before
    assert [(each["alert"]["name"], each["value"]) for each in notified(hub)] == [("four", 4)]
    # And so when one is made to watch failures
    five = next(each for each in hub.call("GET", "/alerts").body["alerts"] if each["name"] == "five")
    hub.call("PUT", f"/alerts/{five['id']}", {"alert": {**RATE, **watches, "name": "five", "threshold": 100}})
    fail(6)
    minute(hub)
    assert [(each["alert"]["name"], each["value"]) for each in notified(hub)] == [("four", 4), ("five", 100)]


def test_an_alert_is_not_made_when_nobody_can_say_what_was_counted_before_it(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise Unavailable("no answer")

    monkeypatch.setattr(hub.world.ports.activity, "activity", fails)
    with pytest.raises(Unavailable):
        hub.world.hub.part(Ironmq).project_alerts.create(PROJECT, parse_alert({"alert": RATE}))
    assert hub.call("GET", "/alerts").body == {"alerts": []}


def test_an_alert_watches_a_queue_or_one_of_its_subscribers_or_any_subscriber_by_id(hub: Hub) -> None:
    hub.make_push("orders", SHOP, "https://crm.example/in")
    stored = hub.world.config.queue(PROJECT, "orders")
    assert stored is not None
    assert stored.push is not None
    shop, crm = (each.subscriber_id for each in stored.push.subscribers)
    given_up = {"measure": "given_up", "threshold": 3}
    create(hub, **given_up, name="queue", queue="orders")
    create(hub, **given_up, name="shop", queue="orders", subscriber="s0")
    create(hub, **given_up, name="crm", queue="orders", subscriber="s1")
    create(hub, **given_up, name="endpoint", subscriber="ep_1")
    minute(hub)
    count(hub, given_up=2, subscriber=shop)
    count(hub, given_up=1, subscriber=crm)
    minute(hub, 2)
    assert [each["alert"]["name"] for each in notified(hub)] == ["queue"]
    count(hub, given_up=1, subscriber=shop)
    count(hub, given_up=3, subscriber="ep_1")
    minute(hub, 2)
    assert sorted(each["alert"]["name"] for each in notified(hub)) == ["endpoint", "queue", "shop"]
    assert notified(hub)[1]["link"].startswith("https://hub.example/console#/charts?")


@pytest.mark.parametrize("clears", [True, False])
def test_the_oldest_that_waits_is_watched_in_queues_of_both_kinds_and_at_paused_subscribers(
    hub: Hub, clears: bool
) -> None:
    old = {"measure": "oldest_waiting", "threshold": 300}
    hub.make("pulled", type="pull")
    hub.make_push("failing", SHOP, retries=3, retries_delay=3600)
    hub.make_push("paused", "https://crm.example/in")
    hub.call("POST", "/queues/paused/pause", {"subscriber": "s0"})
    for queue in ("pulled", "failing", "paused"):
        create(hub, **old, name=queue, queue=queue)
    hub.world.sender.script(SHOP, 500, 500, 500)
    _, _, [at_paused] = (hub.post(queue, "x") for queue in ("pulled", "failing", "paused"))
    hub.world.run(seconds=1)
    minute(hub, 4)
    assert notified(hub) == []
    minute(hub, 2)
    assert sorted(each["alert"]["name"] for each in notified(hub)) == ["failing", "paused", "pulled"]
    assert all(300 <= each["value"] < 400 for each in notified(hub))
    # And what was cleared or deleted does not wait
    for queue in ("pulled", "failing"):
        hub.call("DELETE", f"/queues/{queue}/messages", {})
    hub.call("DELETE", "/queues/paused/messages" if clears else f"/queues/paused/messages/{at_paused}", {})
    minute(hub, 12)
    resolved = sorted(each["alert"]["name"] for each in notified(hub) if each["state"] == "resolved")
    assert resolved == ["failing", "paused", "pulled"]


def test_what_was_cleared_hides_nothing_that_waits(hub: Hub) -> None:
    # Given more failed messages than are looked at together, which are cleared
    hub.make_push("failing", SHOP, retries=3, retries_delay=36_000)
    create(hub, measure="oldest_waiting", threshold=300, queue="failing")
    hub.world.sender.script(SHOP, *(40 * [500]))
    hub.post("failing", *map(str, range(30)))
    hub.world.run(seconds=1)
    hub.call("DELETE", "/queues/failing/messages", {})
    minute(hub, 1)
    # When another one fails, then that is watched
    hub.post("failing", "new")
    hub.world.run(seconds=1)
    minute(hub, 4)
    assert notified(hub) == []
    minute(hub, 2)
    assert [300 <= each["value"] < 400 for each in notified(hub)] == [True]


def test_slack_gets_a_text_in_which_names_call_nobody(hub: Hub) -> None:
    alert = create(hub, name="<!channel> & co", format="slack")
    assert hub.call("POST", f"/alerts/{alert['id']}/test", {}).status == 200
    hub.world.run(seconds=1)
    [sent] = notified(hub)
    assert sent == {
        "text": ":wave: A test of &lt;!channel&gt; &amp; co: 0 % of the attempts of the project failed in 15 minutes "
        "(limit 50 %). <https://hub.example/console#/charts|Console>"
    }
    [request] = hub.world.sender.requests
    assert request.headers["Content-Type"] == "application/json"
    # And a test is no state
    assert hub.call("GET", "/alerts").body["alerts"][0]["state"] == "quiet"


def test_a_receiver_that_fails_gets_it_again_and_does_not_count_as_a_failure_of_the_project(hub: Hub) -> None:
    create(hub)
    minute(hub)
    count(hub, attempts=10, failed=10)
    hub.world.sender.script(OPS, 500, 503, 200)
    minute(hub)
    hub.world.run(seconds=600)
    assert states(hub) == ["firing"] * 3
    # The records of these attempts are not counted
    uncounted = [each.uncounted for each in hub.world.hub.engine.protocols]
    assert any(each(f"{ALERT_QUEUES}0123456789ab") for each in uncounted)
    assert not any(each("orders") for each in uncounted)


def test_a_removed_alert_tells_nothing_more(hub: Hub) -> None:
    alert = create(hub)
    minute(hub)
    count(hub, attempts=10, failed=10)
    hub.world.sender.script(OPS, 500)
    minute(hub)
    hub.call("DELETE", f"/alerts/{alert['id']}")
    hub.world.run(seconds=3600)
    assert states(hub) == ["firing"]


def test_nothing_is_written_while_nothing_happens(hub: Hub) -> None:
    create(hub)
    hub.make("pulled", type="pull")
    create(hub, measure="oldest_waiting", queue="pulled")
    minute(hub)
    before = hub.world.ports.alerts.writes
    minute(hub, 120)
    assert hub.world.ports.alerts.writes == before


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("of", ["alerts.save", "messages.accept_once"])
@pytest.mark.parametrize("at", [1, 2])
def test_a_crash_loses_no_notification_and_repeats_none(hub: Hub, fault: Fault, of: str, at: int) -> None:
    create(hub)
    minute(hub)
    count(hub, attempts=10, failed=10)
    # Given a look at the alert in which something goes wrong
    struck = hub.world.ports.build(FaultPlan(fault, at=at, of=of), only=("alerts", "messages")).part(Ironmq)
    hub.world.clock.advance(seconds=60)
    with suppress(Unavailable, Crash):
        struck.check_alerts.run(lambda: 60_000)
    hub.world.run(seconds=1)
    # When others follow, then it was told once
    minute(hub, 3)
    assert states(hub) == ["firing"]


def test_one_alert_that_cannot_be_looked_at_does_not_hold_up_the_others(hub: Hub) -> None:
    hub.make("pulled", type="pull")
    create(hub, measure="oldest_waiting", queue="pulled", threshold=1)
    create(hub)
    minute(hub)
    count(hub, attempts=10, failed=10)
    hub.world.clock.advance(seconds=60)
    struck = hub.world.ports.build(FaultPlan(Fault.FAILS, at=1, of="pull.peek"), only=("pull",)).part(Ironmq)
    struck.check_alerts.run(lambda: 60_000)
    hub.world.run(seconds=1)
    assert states(hub) == ["firing"]


def test_no_alert_waits_for_ever_when_there_is_never_time_for_all_of_them(hub: Hub) -> None:
    # Given seven alerts that should fire, and time for one of them a minute
    names = [f"Failing {number}" for number in range(7)]
    for name in names:
        create(hub, name=name)
    minute(hub)
    count(hub, attempts=10, failed=10)
    # When twice as many minutes are over
    for _ in range(2 * len(names)):
        hub.world.clock.advance(seconds=60)
        left = iter([60_000])
        check(hub).run(lambda left=left: next(left, 0))  # type: ignore[misc]
        hub.world.run(seconds=1)
    # Then each was told
    assert {each["alert"]["name"] for each in notified(hub)} == set(names)
