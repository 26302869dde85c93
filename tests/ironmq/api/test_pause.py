"""Pausing a subscriber of a queue: nothing is sent to it, nothing is lost, and everything comes when it is resumed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.ironmq.api.hub import Hub

SHOP, CRM = "https://shop.example/in", "https://crm.example/in"
QUEUE = "/queues/orders"
HOUR = 3_600


def hub_with(retries: int = 0, **queue: Any) -> Hub:
    """A queue with two subscribers."""
    hub = Hub()
    subscribers = [{"name": "shop", "url": SHOP}, {"name": "crm", "url": CRM}]
    push = {"subscribers": subscribers, "retries": retries, "error_queue": "errors"}
    assert hub.call("PUT", QUEUE, {"queue": {"type": "multicast", "push": push, **queue}}).status == 200
    return hub


def post(hub: Hub, *bodies: str) -> list[str]:
    answer = hub.call("POST", f"{QUEUE}/messages", {"messages": [{"body": each} for each in bodies]})
    assert answer.status == 201
    hub.world.run(seconds=5)
    return list(answer.body["ids"])


def change(hub: Hub, how: str, name: str = "shop") -> None:
    assert hub.call("POST", f"{QUEUE}/{how}", {"subscriber": name}).status == 200
    hub.world.clock.advance(seconds=2)


def sent(hub: Hub, url: str) -> list[bytes]:
    return [each.body for each in hub.world.sender.requests_to(url)]


def held(hub: Hub) -> dict[str, int]:
    """How many deliveries wait for each subscriber that is paused."""
    answer = hub.call("GET", f"{QUEUE}/health")
    assert answer.status == 200
    reported = [(each["name"], each["health"]) for each in answer.body["subscribers"]]
    assert all(health["complete"] for _, health in reported)
    return {name: health["waiting"] for name, health in reported if health["state"] == "paused"}


def paused_names(hub: Hub) -> list[str]:
    listed = hub.call("GET", QUEUE).body["queue"]["push"]["subscribers"]
    return [each["name"] for each in listed if each.get("paused")]


def sweep(hub: Hub) -> int:
    return hub.world.hub.engine.sweep.run(0, 1, lambda: 10**6)


def test_a_paused_subscriber_is_sent_nothing_and_gets_everything_when_it_is_resumed() -> None:
    hub = hub_with()
    post(hub, "before")
    # When one of two subscribers is paused
    change(hub, "pause")
    change(hub, "pause")
    assert paused_names(hub) == ["shop"]
    post(hub, "one", "two")
    # Then the other one goes on, and what waits is in sight
    assert sent(hub, CRM) == [b"before", b"one", b"two"]
    assert sent(hub, SHOP) == [b"before"]
    assert held(hub) == {"shop": 2}
    # However long it takes, and though the table is swept each day
    for _ in range(3):
        hub.world.run(seconds=24 * HOUR)
        assert sweep(hub) == 0
    assert sent(hub, SHOP) == [b"before"]
    # When it is resumed, then each comes once, within two minutes, and later ones at once
    change(hub, "resume")
    assert (paused_names(hub), held(hub)) == ([], {})
    hub.world.run(seconds=120)
    assert sorted(sent(hub, SHOP)) == [b"before", b"one", b"two"]
    post(hub, "after")
    assert sent(hub, SHOP)[-1] == b"after"
    hub.world.run(seconds=HOUR)
    assert len(sent(hub, SHOP)) == 4
    assert [*hub.world.ports.subscribers.looked_after()] == []


def test_what_was_cleared_does_not_wait() -> None:
    # Given a message that failed, and one that waits for a paused subscriber
    hub = hub_with(retries=9)
    hub.world.sender.script(SHOP, 500)
    post(hub, "failed")
    change(hub, "pause")
    post(hub, "waits")
    assert held(hub) == {"shop": 2}
    # When the queue is cleared, then neither is counted; what is posted then is
    assert hub.call("DELETE", f"{QUEUE}/messages", {}).status == 200
    hub.world.clock.advance(seconds=2)
    assert held(hub) == {"shop": 0}
    post(hub, "new")
    assert held(hub) == {"shop": 1}


def test_retries_wait_too_and_use_up_no_attempts() -> None:
    # Given a message that failed once and has one retry left
    hub = hub_with(retries=1)
    hub.world.sender.script(SHOP, 500, 200)
    (posted,) = post(hub, "one")
    change(hub, "pause")
    hub.world.run(seconds=HOUR)
    assert len(sent(hub, SHOP)) == 1
    # When the subscriber is resumed, then the retry is made and succeeds
    change(hub, "resume")
    hub.world.run(seconds=120)
    assert len(sent(hub, SHOP)) == 2
    statuses = hub.call("GET", f"{QUEUE}/messages/{posted}/subscribers").body["subscribers"]
    assert {each["name"]: (each["state"], each["tries"]) for each in statuses} == {
        "shop": ("delivered", 2),
        "crm": ("delivered", 1),
    }


def test_what_a_person_sends_again_is_sent_although_the_subscriber_is_paused() -> None:
    hub = hub_with()
    hub.world.sender.script(SHOP, 500, 200)
    (posted,) = post(hub, "one")
    change(hub, "pause")
    replay = {"subscriber": "shop", "message_ids": [posted]}
    assert hub.call("POST", f"{QUEUE}/replay", replay).body["replayed"] == 1
    hub.world.run(seconds=5)
    assert len(sent(hub, SHOP)) == 2


def test_a_held_delivery_expires_with_its_message() -> None:
    hub = hub_with(message_expiration=2 * HOUR)
    change(hub, "pause")
    post(hub, "one")
    hub.world.run(seconds=3 * HOUR)
    # When the table is swept, then the error queue is told, as for any other that expired
    assert sweep(hub) == 1
    hub.world.run(seconds=60)
    assert hub.call("GET", "/queues/errors").body["queue"]["size"] == 1
    change(hub, "resume")
    hub.world.run(seconds=HOUR)
    assert sent(hub, SHOP) == []


@pytest.mark.parametrize("ends", ["removed", "renamed back", "deleted"])
def test_what_waits_is_not_kept_by_a_pause_that_nobody_can_end(ends: str) -> None:
    # Given deliveries that wait for a paused subscriber
    hub = hub_with()
    change(hub, "pause")
    post(hub, "one")
    if ends == "removed":
        hub.call("DELETE", f"{QUEUE}/subscribers", {"subscribers": [{"name": "shop"}]})
    elif ends == "deleted":
        hub.call("DELETE", QUEUE, {})
    else:
        # An update of the subscriber by its name leaves it paused.
        hub.call("POST", f"{QUEUE}/subscribers", {"subscribers": [{"name": "shop", "url": CRM}]})
        hub.world.run(seconds=HOUR)
        assert paused_names(hub) == ["shop"]
        assert [*held(hub).values()] == [1]
        return
    # When it is removed, or the queue deleted, then they end, and nothing is looked after any more
    hub.world.run(seconds=HOUR)
    assert sent(hub, SHOP) == []
    assert [*hub.world.ports.subscribers.looked_after()] == []


@pytest.mark.parametrize("how", ["pause", "resume"])
@pytest.mark.parametrize(
    ("body", "status"), [({}, 400), ({"subscriber": 1}, 400), ({"subscriber": None}, 400), ({"subscriber": "no"}, 404)]
)
def test_what_cannot_be_paused_is_refused(how: str, body: dict[str, Any], status: int) -> None:
    hub = hub_with()
    assert hub.call("POST", f"{QUEUE}/{how}", body).status == status
    assert hub.call("POST", f"/queues/none/{how}", {"subscriber": "shop"}).status == 404
    hub.call("PUT", "/queues/pulled", {"queue": {"type": "pull"}})
    assert hub.call("POST", f"/queues/pulled/{how}", {"subscriber": "shop"}).status == 400
    assert hub.call("GET", "/queues/pulled/health").status == 400
    push = {"subscribers": [{"name": "shop", "url": SHOP}]}
    hub.call("PUT", "/queues/either", {"queue": {"type": "unicast", "push": push}})
    assert hub.call("POST", f"/queues/either/{how}", {"subscriber": "shop"}).status == 400


def test_what_waits_for_very_many_paused_subscribers_is_counted(hub: Hub) -> None:
    # Given a queue with as many paused subscribers as it may have
    named = [{"name": f"s{number}", "url": f"{SHOP}/{number}"} for number in range(1_000)]
    push = {"subscribers": named, "retries": 0}
    assert hub.call("PUT", QUEUE, {"queue": {"type": "multicast", "push": push}}).status == 200
    for each in named[::100]:
        change(hub, "pause", each["name"])
    post(hub, "one")
    # Then each is counted
    assert held(hub) == {each["name"]: 1 for each in named[::100]}
