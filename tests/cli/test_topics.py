"""What waits for the subscribers of topics, against a hub on fakes."""

from __future__ import annotations

from tests.cli.conftest import Typed
from tests.cli.served_hub import ServedHub
from tests.web.known_good import GOOD, ask


def test_what_waits_is_shown_for_all_topics_that_are_subscribed_to_and_for_one_by_name(
    hub: ServedHub, typed: Typed
) -> None:
    # Given subscribers of three topics, one of which has something to read
    api = hub.worlds["notifications"]
    GOOD["notifications.publish"].prepare(api)
    ask(api, "notifications.publish", {"api": "events", "source": "2", "data": {"type": "a"}})
    # When all are asked for, then each subscriber is there
    shown = typed.json("topics")
    assert {each["topic"] for each in shown} == {"all", "orders", "plain"}
    assert {each["subscriber"] for each in shown} == {"shop"}
    waits = {each["topic"]: each["bytes"] for each in shown}
    assert waits["orders"] == 0 < waits["plain"]
    # And a single one by name; one that is no topic has no subscribers
    assert [each["bytes"] for each in typed.json("topics", "plain")] == [waits["plain"]]
    assert typed("topics", "nobody").strip() == "none"
    assert "until acknowledged" in typed("topics", "plain")


def test_all_pages_of_subscriptions_are_read(hub: ServedHub, typed: Typed) -> None:
    api = hub.worlds["notifications"]
    for number in range(3):
        ask(api, "notifications.create_subscription", {"context": "tenant", "subscription": f"t{number}"})
    assert typed.json("topics") == []
    read = [path for method, path in hub.asked if path == "/notification2/subscribers"]
    assert len(read) == 3
