"""How the subscribers of a queue are doing, as its owner is told."""

from __future__ import annotations

from typing import Any

from tests.fakes import Reply
from tests.ironmq.api.hub import Hub
from tests.ironmq.api.test_pause import CRM, QUEUE, SHOP, change, post

OAUTH = {"client_id": "c", "client_secret": "s", "token_url": "https://login.example/token"}


def health(hub: Hub) -> tuple[int, dict[str, tuple[str, int]]]:
    """What waits in the queue; and for each subscriber its state and what waits for it."""
    body: dict[str, Any] = hub.call("GET", f"{QUEUE}/health").body
    assert body["complete"]
    return body["waiting"], {
        each["name"]: (each["health"]["state"], each["health"]["waiting"]) for each in body["subscribers"]
    }


def create_queue(hub: Hub, kind: str = "multicast", **more: Any) -> None:
    subscribers = [{"name": "shop", "url": SHOP, **more}, {"name": "crm", "url": CRM}]
    push = {"subscribers": subscribers, "retries": 5, "retries_delay": 600}
    assert hub.call("PUT", QUEUE, {"queue": {"type": kind, "push": push}}).status == 200


def test_a_delivery_counts_once_wherever_it_waits(hub: Hub) -> None:
    # Given one that failed, and is paused before its next attempt, when another message comes
    create_queue(hub)
    hub.world.sender.script(SHOP, 503)
    post(hub, "one")
    assert health(hub) == (1, {"shop": ("retrying", 1), "crm": ("delivering", 0)})
    change(hub, "pause")
    post(hub, "two")
    # Then both wait, also when the first one waits in the backlog as well as among those that failed
    assert health(hub) == (2, {"shop": ("paused", 2), "crm": ("delivering", 0)})
    hub.world.run(seconds=700)
    assert health(hub) == (2, {"shop": ("paused", 2), "crm": ("delivering", 0)})
    # When it is resumed and well, then nothing waits
    hub.world.sender.script(SHOP, 200)
    change(hub, "resume")
    hub.world.run(seconds=180)
    assert health(hub) == (0, {"shop": ("delivering", 0), "crm": ("delivering", 0)})


def test_a_subscriber_whose_token_server_is_down_is_told_of(hub: Hub) -> None:
    create_queue(hub, oauth=OAUTH)
    hub.world.sender.script(OAUTH["token_url"], Reply(status_code=500))
    post(hub, "one")
    assert health(hub) == (1, {"shop": ("token_server_down", 1), "crm": ("delivering", 0)})


def test_what_a_unicast_queue_owes_is_counted_for_the_queue(hub: Hub) -> None:
    create_queue(hub, "unicast")
    for each in (SHOP, CRM):
        hub.world.sender.script(each, 503)
    post(hub, "one")
    assert health(hub) == (1, {"shop": ("delivering", 0), "crm": ("delivering", 0)})
