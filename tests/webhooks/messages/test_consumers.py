"""Polling endpoints: their consumers are given messages in order, alone, and acknowledge them by their numbers."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.webhooks.world import WebhooksWorld

QUEUE = "https://sqs.eu-west-1.amazonaws.com/111122223333/q"


class Polled(WebhooksWorld):
    """An application with a polling endpoint that a consumer has set up with nothing but a token."""

    def __init__(self) -> None:
        super().__init__()
        self.app = self.make_app()
        self.autoconfig = self.ask("POST", f"/app/{self.app}/autoconfig", {})
        token = json.loads(base64.b64decode(self.autoconfig["token"].removeprefix("auto_v2_")))
        self.key = token["tok"]
        self.own = f"/app/{self.app}/autoconfig/{token['sid']}"
        self.sink = self.subscribed()["id"]
        self.path = f"/app/{self.app}/polling-endpoint/{self.sink}/consumer/c"

    def subscribed(self, **fields: Any) -> Any:
        wanted = {"type": "pollingEndpoint", "uid": None, "eventTypes": None, "metadata": None, **fields}
        return self.ask("PUT", f"{self.own}/destination", wanted, token=self.key)

    def sent(self, *numbers: int, kind: str = "a") -> None:
        for each in numbers:
            self.ask("POST", f"/app/{self.app}/msg", {"eventType": kind, "payload": {"n": each}})
        self.clock.advance(ms=5_000)

    def poll(self, path: str = "", **query: Any) -> list[tuple[int, int]]:
        """The numbers of what is given, and of the messages."""
        found = self.ask("GET", path or self.path, token=self.key, **query)
        return [(each["offset"], each["payload"]["n"]) for each in found["data"]]

    def commit(self, offset: int, path: str = "") -> int:
        return self.call("POST", f"{path or self.path}/commit", {"offset": offset}, token=self.key).status


@pytest.fixture
def world() -> Polled:
    return Polled()


def test_a_consumer_works_on_what_it_was_given_until_it_acknowledges_it(world: Polled) -> None:
    world.sent(1, 2, 3, 4)
    # It is given messages in order, and nothing else until it acknowledges some of them
    assert world.poll(limit=3) == [(1, 1), (2, 2), (3, 3)]
    found = world.ask("GET", world.path, token=world.key)
    assert found == {"data": [], "done": False}
    assert world.commit(2) == 204
    # What it has not done comes first then
    assert world.poll() == [(3, 3), (4, 4)]
    assert world.commit(4) == 204
    assert world.ask("GET", world.path, token=world.key) == {"data": [], "done": True}
    # A repeated acknowledgement does nothing; of what was never given, it is refused
    assert [world.commit(each) for each in (4, 0)] == [204, 204]
    assert world.commit(5) == 422
    world.sent(5)
    assert world.poll() == [(5, 5)]


def test_what_is_not_acknowledged_in_time_is_given_again(world: Polled) -> None:
    world.sent(1)
    assert world.poll(lease_duration_ms=10_000) == [(1, 1)]
    world.clock.advance(ms=9_999)
    assert world.poll() == []
    world.clock.advance(ms=1)
    assert world.poll() == [(1, 1)]
    # Whoever was late has done it all the same
    assert world.commit(1) == 204
    assert world.poll() == []


def test_each_consumer_has_a_place_of_its_own(world: Polled) -> None:
    world.sent(1)
    other = world.path.removesuffix("c") + "d"
    late = world.path.removesuffix("c") + "late"
    assert world.poll(late, starting_position="latest") == []
    assert world.poll() == world.poll(other, starting_position="earliest") == [(1, 1)]
    world.sent(2)
    assert world.poll(late) == [(1, 2)]


def test_it_gets_what_it_has_chosen_and_nothing_while_it_is_disabled(world: Polled) -> None:
    world.ask("POST", "/event-type", {"name": "b", "description": ""})
    assert world.subscribed(eventTypes=["b"])["id"] == world.sink
    world.sent(1)
    world.sent(2, kind="b")
    assert world.poll() == [(1, 2)]
    assert world.commit(1) == 204
    world.sent(3, kind="b")
    world.subscribed(eventTypes=["b"], status="disabled")
    assert world.poll() == []
    # And nothing is ever pushed to it
    world.run(seconds=60)
    assert world.sender.requests == []


def test_a_key_opens_the_polling_endpoint_that_it_has_set_up_and_no_other(world: Polled) -> None:
    shown = world.ask("GET", world.own, token=world.key)
    assert (shown["destId"], shown["status"], "endpId" in shown) == (world.sink, "active", False)
    created = world.ask("POST", f"/app/{world.app}/destination", {"type": "pollingEndpoint"})
    assert (created["type"], created["config"], created["status"]) == ("pollingEndpoint", {}, "enabled")
    path = f"/app/{world.app}/polling-endpoint/{created['id']}/consumer/c"
    assert world.call("GET", path, token=world.key).status == 404
    assert world.call("POST", f"{path}/commit", {"offset": 1}, token=world.key).status == 404
    assert world.call("GET", path).status == 200
    assert world.call("GET", f"/app/{world.app}/msg", token=world.key).status == 403
    # A destination that is pushed to is read by nobody
    queue = {"queueUrl": QUEUE, "roleArn": "arn:aws:iam::111122223333:role/h"}
    pushed = world.ask("POST", f"/app/{world.app}/destination", {"type": "sqs", "config": queue})["id"]
    assert world.call("GET", f"/app/{world.app}/polling-endpoint/{pushed}/consumer/c").status == 404
    # And with the autoconfiguration its key goes, and its polling endpoint stays
    world.call("DELETE", world.own)
    assert world.call("GET", world.path, token=world.key).status == 401
    assert world.call("GET", world.path).status == 200


def test_an_autoconfiguration_sets_up_one_kind(world: Polled) -> None:
    wanted = {"url": "https://a.example/in"}
    assert world.call("PUT", f"{world.own}/endpoint", wanted, token=world.key).status == 409
    queue = {"type": "sqs", "config": {"queueUrl": QUEUE}}
    assert world.call("PUT", f"{world.own}/destination", queue, token=world.key).status == 422
    assert world.call("PUT", f"{world.own}/destination", {"type": "pollingEndpoint"}).status == 403


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"lease_duration_ms": "x"}, 422),
        ({"lease_duration_ms": 43_200_001}, 422),
        ({"starting_position": "middle"}, 422),
        ({"limit": 0}, 422),
    ],
)
def test_what_cannot_be_asked_for_is_refused(world: Polled, query: dict[str, Any], status: int) -> None:
    assert world.call("GET", world.path, token=world.key, **query).status == status
    assert world.commit(2**53) == 422


def test_code_and_examples_are_not_for_what_is_polled(world: Polled) -> None:
    path = f"/app/{world.app}/destination/{world.sink}"
    assert world.call("PATCH", f"{path}/transformation", {"code": "function handler(i) { }"}).status == 422
    world.sent(1)
    [message] = world.ask("GET", f"/app/{world.app}/msg")["data"]
    endpoint = world.sink.replace("sink_", "ep_")
    world.call("POST", f"/app/{world.app}/msg/{message['id']}/endpoint/{endpoint}/resend")
    world.call("POST", f"/app/{world.app}/endpoint/{endpoint}/send-example", {"eventType": "svix.ping"})
    world.run(seconds=60)
    assert world.sender.requests == []


def test_setting_up_that_was_interrupted_is_repeated(world: Polled) -> None:
    # Given an autoconfiguration whose polling endpoint was made, but not noted
    store = world.ports.autoconfig_store
    [found] = store._kept.values()
    store.put_autoconfig(replace(found, endpoint_id="", polls=False))
    # Then setting it up again finds it
    assert world.subscribed()["id"] == world.sink
    assert world.ask("GET", world.own)["destId"] == world.sink
