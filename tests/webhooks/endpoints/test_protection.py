"""Endpoints that are down or slow, among others that work."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from tests.webhooks.world import WebhooksWorld

from pushhub.base.times import epoch_ms, iso_time
from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.records import record_of_delivery

DEAD, WELL, TOLD = "https://dead.example/in", "https://well.example/in", "https://told.example/in"
MESSAGES = 300


def statuses(world: WebhooksWorld, app: str, endpoint: str) -> list[str]:
    """The state of each message at an endpoint."""
    shown: list[str] = []
    more: dict[str, Any] = {}
    while True:
        page = world.ask("GET", f"/app/{app}/endpoint/{endpoint}/msg", limit=250, **more)
        shown += [each["statusText"] for each in page["data"]]
        if page["done"]:
            return shown
        more = {"iterator": page["iterator"]}


def test_a_dead_endpoint_is_probed_rather_than_asked_for_each_message_and_catches_up(world: WebhooksWorld) -> None:
    # Given an endpoint that is down, and a neighbour that works
    app = world.make_app()
    endpoint, neighbour = world.make_endpoint(app, DEAD), world.make_endpoint(app, WELL)
    world.sender.script(DEAD, 503)
    # When many messages are posted, and an hour passes
    for number in range(MESSAGES):
        world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {"n": number}})
    world.run(seconds=3600)
    # Then the neighbour has them all, and the dead one was asked few times
    assert statuses(world, app, neighbour) == ["success"] * MESSAGES
    assert len(world.sender.requests_to(DEAD)) < 50
    # When it is back, then it gets everything, with at most one more try for each message
    world.sender.script(DEAD, 200)
    world.run(seconds=4 * 3600)
    assert statuses(world, app, endpoint) == ["success"] * MESSAGES
    assert len(world.sender.requests_to(DEAD)) < MESSAGES + 50


def test_an_endpoint_that_only_fails_for_five_days_is_disabled_and_one_success_prevents_it() -> None:
    # Given two endpoints that fail, one of which takes a message on the third day, and an owner who listens
    world = WebhooksWorld()
    world.ask("POST", "/operational-webhook/endpoint", {"url": TOLD})
    began = iso_time(world.clock.now())
    app = world.make_app()
    dead, better = world.make_endpoint(app, DEAD), world.make_endpoint(app, WELL)
    world.sender.script(DEAD, 500)
    world.sender.script(WELL, 500)
    for day in range(7):
        if day == 3:
            world.sender.script(WELL, 200)
        for _ in range(4):
            world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
            world.run(seconds=6 * 3600)
        if day == 3:
            world.sender.script(WELL, 500)
    # Then the other one is disabled, and its owner is told since when it failed
    answer = [
        json.loads(each.body)["data"]
        for each in world.sender.requests
        if each.url == TOLD and b".disabled" in each.body
    ]
    assert [(each["endpointId"], each["failSince"][:13]) for each in answer] == [(dead, began[:13])]
    shown = {each: world.ask("GET", f"/app/{app}/endpoint/{each}")["disabled"] for each in (dead, better)}
    assert shown == {dead: True, better: False}


def test_a_rate_is_kept_the_endpoints_own_before_its_applications(world: WebhooksWorld) -> None:
    app = world.make_app(throttleRate=10)
    slow = world.make_endpoint(app, DEAD, throttleRate=1)
    fast = world.make_endpoint(app, WELL)
    for number in range(20):
        world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {"n": number}})
    world.run(seconds=600)

    def took(endpoint: str) -> float:
        attempts = world.ask("GET", f"/app/{app}/attempt/endpoint/{endpoint}")["data"]
        assert len(attempts) == 20
        times = [datetime.fromisoformat(each["timestamp"]).timestamp() for each in attempts]
        return max(times) - min(times)

    assert took(slow) >= 15
    assert took(fast) >= 1


def test_records_name_applications_and_endpoints_and_account_for_every_delivery(world: WebhooksWorld, app: str) -> None:
    # Given a message to two endpoints, one that fails and one that takes it, and one that is resent to a third
    world.make_endpoint(app, WELL, uid="well")
    world.make_endpoint(app, DEAD, uid="dead")
    other = world.make_endpoint(app, "https://other.example/", channels=["x"])
    world.sender.script(DEAD, 500)
    posted = world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
    world.run(seconds=5)
    world.ask("POST", f"/app/{app}/msg/{posted['id']}/endpoint/{other}/resend")
    world.run(seconds=48 * 3600)
    # When each change of its deliveries becomes a record
    before: dict[str, Delivery] = {}
    ended: dict[str, str] = {}
    for after in world.messages.saved:
        record = record_of_delivery(before.get(after.subscriber_id), after, world.clock.now())
        before[after.subscriber_id] = after
        if record is not None:
            assert record.queue == f"webhooks/{app}"
            assert record.dialect in ("webhooks", None)
            ended[str(record.subscriber)] = str(record.state)
    # Then every one has an end, under its endpoint's name
    assert ended["well"] == "delivered"
    assert ended["dead"] == "exhausted"
    assert ended[other] == "delivered"


def operational(world: WebhooksWorld) -> list[dict[str, Any]]:
    """The events about failing endpoints."""
    bodies = [json.loads(each.body) for each in world.sender.requests_to(OPS)]
    return [each for each in bodies if each["type"] in ("endpoint.failing", "endpoint.disabled")]


OPS = "https://ops.example/in"


def test_owners_are_warned_of_an_endpoint_that_fails_at_50_70_and_90_percent_once_each(world: WebhooksWorld) -> None:
    # Given an endpoint that fails for every message for five days, in several execution environments
    world.ask(
        "POST", "/operational-webhook/endpoint", {"url": OPS, "eventTypes": ["endpoint.failing", "endpoint.disabled"]}
    )
    app = world.make_app(uid="acme")
    dead = world.make_endpoint(app, DEAD, uid="crm")
    world.sender.script(DEAD, 500)
    begun = world.clock.now()
    for _ in range(6 * 4):
        for _ in range(10):
            world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
        world.run(seconds=6 * 3600)
    # Then each warning is sent once, then that it is disabled, and all say since when it fails
    reported = operational(world)
    ids = {"appId": app, "appUid": "acme", "endpointId": dead, "endpointUid": "crm"}
    assert [each["data"].get("percent") for each in reported] == [50, 70, 90, None]
    assert all(each["data"].items() >= ids.items() for each in reported)
    [since] = {each["data"]["failSince"] for each in reported}
    assert begun <= epoch_ms(since) < begun + 3_600_000
    assert {epoch_ms(each["data"]["disabledAt"]) - epoch_ms(since) for each in reported[:3]} == {432_000_000}
    assert (reported[3]["type"], reported[3]["data"]["trigger"]) == ("endpoint.disabled", "automatic")


def test_a_success_ends_the_warnings_and_the_next_outage_begins_them_anew(world: WebhooksWorld) -> None:
    world.ask("POST", "/operational-webhook/endpoint", {"url": OPS, "eventTypes": ["endpoint.failing"]})
    app = world.make_app()
    world.make_endpoint(app, DEAD)

    def days(count: int, status: int) -> None:
        world.sender.script(DEAD, status)
        for _ in range(count * 4):
            world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
            world.run(seconds=6 * 3600)

    days(3, 500)
    days(1, 200)
    days(3, 500)
    assert [each["data"]["percent"] for each in operational(world)] == [50, 50]


def test_of_an_endpoint_that_asks_to_be_disabled_many_times_at_once_it_is_told_once(world: WebhooksWorld) -> None:
    world.ask("POST", "/operational-webhook/endpoint", {"url": OPS, "eventTypes": ["endpoint.disabled"]})
    app = world.make_app()
    world.make_endpoint(app, DEAD)
    world.sender.script(DEAD, 410)
    for _ in range(50):
        world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
    world.run(seconds=60)
    assert [each["data"]["trigger"] for each in operational(world)] == ["automatic"]


def test_an_endpoint_that_is_told_of_failing_ones_is_not_told_of_itself(world: WebhooksWorld) -> None:
    world.ask("POST", "/operational-webhook/endpoint", {"url": OPS})
    app = world.make_app()
    world.make_endpoint(app, DEAD)
    world.sender.script(OPS, 500)
    world.sender.script(DEAD, 500)
    for _ in range(6 * 4):
        world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {}})
        world.run(seconds=6 * 3600)
    about = {json.loads(each.body)["data"].get("endpointId") for each in world.sender.requests_to(OPS)}
    [told_to] = world.ask("GET", "/operational-webhook/endpoint")["data"]
    assert told_to["disabled"] is True
    assert told_to["id"] not in about
