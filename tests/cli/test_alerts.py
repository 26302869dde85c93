"""Alerts and paused subscribers, against a hub on fakes."""

from __future__ import annotations

import json

from cli.commands.health import WELL
from tests.cli.conftest import Typed
from tests.cli.served_hub import ServedHub
from tests.cli.test_messages import SHOP, given_up
from tests.cli.test_webhooks import STORE, asked
from tests.engine.world import PROJECT

from pushhub.engine.model import subscriber_health
from pushhub.engine.model.activity import HOUR_MS, SubscriberActivity

HOOK = "https://hooks.example/T/B/x"


def test_an_alert_is_set_changed_by_its_name_tested_and_deleted(hub: ServedHub, typed: Typed) -> None:
    given_up(hub, 1)
    [created] = typed.json("alerts", "set", "Shop", "failure-rate", "50", "--url", HOOK, "--slack", "--queue", "orders")
    assert (created["measure"], created["threshold"], created["format"], created["state"]) == (
        "failure_rate",
        50,
        "slack",
        "quiet",
    )
    [changed] = typed.json("alerts", "set", "Shop", "oldest-waiting", "600", "--url", HOOK, "--queue", "orders")
    assert (changed["id"], changed["measure"], changed["format"]) == (created["id"], "oldest_waiting", "json")
    assert typed.json("alerts", "list") == [changed]
    typed("alerts", "test", "Shop")
    assert HOOK in typed.errors
    world = hub.worlds["ironmq"].world
    world.run(seconds=1)
    [sent] = [json.loads(each.body) for each in world.sender.requests if each.url == HOOK]
    assert sent["state"] == "test"
    typed("alerts", "delete", created["id"], "--yes")
    assert typed.json("alerts", "list") == []
    # And what is not there, or cannot be, is said
    typed("alerts", "delete", "Shop", "--yes", code=1)
    typed("alerts", "test", "Shop", code=1)
    typed("alerts", "set", "Shop", "failure-rate", "101", "--url", HOOK, code=1)


def test_a_subscriber_is_paused_and_resumed(hub: ServedHub, typed: Typed) -> None:
    world = given_up(hub, 1)
    sent = len(world.sender.requests_to(SHOP))
    paused = typed.json("pause", "orders", "shop")[0]
    assert (paused["subscriber"], paused["state"], paused["waiting"]) == ("shop", "paused", 0)
    typed("post", "orders", "x")
    paused = typed.json("health", "orders")[0]
    assert (paused["waiting"], len(world.sender.requests_to(SHOP))) == (1, sent)
    # When it is resumed, then nothing is paused, and what waited is sent
    assert "paused" not in typed("resume", "orders", "shop")
    world.run(seconds=180)
    assert len(world.sender.requests_to(SHOP)) == sent + 1
    typed("pause", "orders", "nobody", code=1)
    typed("resume", "nosuch", "shop", code=1)


def test_a_subscriber_that_gave_up_all_it_was_owed_is_not_told_to_be_well(hub: ServedHub, typed: Typed) -> None:
    # Given a queue that tries nothing again: all that shop refused is in the error queue, and was counted an hour ago
    world = given_up(hub, 3)
    now = world.clock.now()
    push = world.config.queue(PROJECT, "orders").push
    [shop_id] = [each.subscriber_id for each in push.subscribers if each.name == "shop"]
    before = now - now % HOUR_MS - HOUR_MS
    world.ports.activity.add_subscriber_activity(PROJECT, shop_id, before, SubscriberActivity(failed=3, given_up=3))
    shop, crm = typed.json("health", "orders")
    assert [(each["subscriber"], each["state"], each["waiting"]) for each in (shop, crm)] == [
        ("shop", "failing", 0),
        ("crm", "delivering", 0),
    ]
    # And it is the one that is not well in the whole project
    [alone] = typed.json("health")
    assert (alone["of"], alone["receiver"], alone["state"]) == ("queue orders", "shop", "failing")
    assert typed.json("queues", "list", "--prefix", "orders")[0]["state"] == "failing"
    # When it has accepted something, then it is well
    world.ports.activity.add_subscriber_activity(PROJECT, shop_id, before + HOUR_MS, SubscriberActivity(delivered=1))
    assert [each["state"] for each in typed.json("health", "orders")] == ["delivering", "delivering"]


def test_the_command_line_takes_those_for_well_that_the_hub_does() -> None:
    assert {state.value for state in subscriber_health.WELL} == WELL


def test_the_services_of_a_store_are_told_of(hub: ServedHub, typed: Typed) -> None:
    assert typed.json("health", "--store") == []
    mapping = {"name": "acme.ship", "url": "https://a.example/in", "token": "t" * 32, "messages": ["order:new"]}
    asked(hub, "POST", "/mappings", {"mapping": mapping}, api=STORE)
    [shown] = typed.json("health", "--store")
    assert (shown["mapping"], shown["state"], shown["waiting"]) == ("acme.ship", "delivering", 0)
    typed("health", "orders", "--store", code=2)


def test_the_endpoints_that_get_no_messages_are_told_of(hub: ServedHub, typed: Typed) -> None:
    assert typed.json("health") == []
    world = hub.worlds["webhooks"].world
    world.make_endpoint(world.make_app(), "https://a.example/in", disabled=True)
    [shown] = typed.json("health")
    assert (shown["receiver"], shown["of"]) == ("https://a.example/in", "application Acme")
    assert (shown["state"], shown["waiting"]) == ("disabled", 0)
