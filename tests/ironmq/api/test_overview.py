"""All queues of a project in one look, none missed."""

from __future__ import annotations

import pytest
from tests.ironmq.api.hub import Hub

from pushhub.ironmq.finding import overview

SHOP = "https://shop.example/in"


def test_every_queue_is_counted_also_the_last_of_many_and_an_error_queue(hub: Hub) -> None:
    # Given 150 queues, of which the last has an error queue whose name comes last, and what it gave up and retries
    for number in range(150):
        hub.call("PUT", f"/queues/q{number:03}", {"queue": {}})
    push = {"subscribers": [{"name": "shop", "url": SHOP}], "retries": 1, "error_queue": "zz-errors"}
    hub.call("PUT", "/queues/z", {"queue": {"push": push}})
    hub.call("PUT", "/queues/zz-errors", {"queue": {}})
    hub.world.sender.script(SHOP, 500)
    ids = hub.call("POST", "/queues/z/messages", {"messages": [{"body": "a"}, {"body": "b"}]}).body["ids"]
    hub.call("POST", "/queues/q003/messages", {"messages": [{"body": "a"}]})
    hub.world.run(seconds=5)
    # When
    seen = hub.call("GET", "/overview").body
    # Then
    assert (seen["counted"], seen["after"], seen["error_queues"]) == (152, None, ["zz-errors"])
    sizes = {each["name"]: each["size"] for each in seen["queues"]}
    assert sizes == {"q003": 1, "z": 2}
    z = next(each for each in seen["queues"] if each["name"] == "z")
    assert z == {"name": "z", "type": "multicast", "size": 2, "oldest": ids[0], "retries": 1, "retries_delay": 60}
    hub.world.run(seconds=70)
    assert {each["name"]: each["size"] for each in hub.call("GET", "/overview").body["queues"]} == {
        "q003": 1,
        "zz-errors": 2,
    }


def test_a_look_that_takes_long_says_where_it_continues(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "LOOKS_MS", 0)
    monkeypatch.setattr(overview, "ROUND", 8)
    for number in range(10):
        hub.call("PUT", f"/queues/q{number}", {"queue": {}})
    first = hub.call("GET", "/overview").body
    assert (first["counted"], first["after"]) == (8, "q7")
    rest = hub.call("GET", "/overview?previous=q7").body
    assert (rest["counted"], hub.call("GET", "/overview?previous=q9").body["after"]) == (2, None)
    assert hub.call("GET", "/overview?previous=a%2Fb").status == 400


def test_a_list_of_queues_says_what_waits_in_each_and_how_its_subscribers_are_doing_as_one(hub: Hub) -> None:
    # Given a pull queue, a queue all of whose subscribers are well, and one of whose two one fails and one is paused
    hub.call("PUT", "/queues/a-pull", {"queue": {}})
    hub.call("POST", "/queues/a-pull/messages", {"messages": [{"body": "a"}, {"body": "b"}]})
    well = {"subscribers": [{"name": "shop", "url": "https://well.example/in"}]}
    hub.call("PUT", "/queues/b-well", {"queue": {"type": "multicast", "push": well}})
    hub.call("POST", "/queues/b-well/messages", {"messages": [{"body": "a"}]})
    both = [{"name": "shop", "url": SHOP}, {"name": "till", "url": "https://till.example/in"}]
    hub.call("PUT", "/queues/c-ill", {"queue": {"type": "multicast", "push": {"subscribers": both, "retries": 1}}})
    hub.world.sender.script(SHOP, 500)
    hub.call("POST", "/queues/c-ill/messages", {"messages": [{"body": "a"}]})
    hub.world.run(seconds=5)
    # When they are listed with their health
    answer = {each["name"]: each for each in hub.call("GET", "/queues?health=true").body["queues"]}
    # Then each says the same as its own page
    assert answer["a-pull"] == {
        "name": "a-pull", "type": "pull", "subscribers": 0, "waiting": 2, "complete": True, "health": None,
    }  # fmt: skip
    assert (answer["b-well"]["health"]["state"], answer["b-well"]["waiting"]) == ("delivering", 0)
    own = hub.call("GET", "/queues/c-ill/health").body
    (shop,) = (each["health"] for each in own["subscribers"] if each["name"] == "shop")
    assert answer["c-ill"] == {
        "name": "c-ill", "type": "multicast", "subscribers": 2, "waiting": 1, "complete": True, "health": shop,
    }  # fmt: skip
    # And the worst of several is told
    hub.call("POST", "/queues/c-ill/pause", {"subscriber": "till"})
    (ill,) = hub.call("GET", "/queues?health=true&prefix=c").body["queues"]
    assert (ill["health"]["state"], ill["waiting"]) == ("paused", 1)
    assert hub.call("GET", "/queues?health=maybe").status == 400
    assert hub.call("GET", "/queues?prefix=c").body == {"queues": [{"name": "c-ill"}]}
