"""All queues of a project in one look, none missed."""

from __future__ import annotations

import pytest
from tests.ironmq.api.hub import Hub

from pushhub.ironmq import overview

SHOP = "https://shop.example/in"


def test_every_queue_is_counted_also_the_last_of_many_and_an_error_queue() -> None:
    # Given 150 queues, of which the last has an error queue whose name comes last, and what it gave up and retries
    hub = Hub()
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


def test_a_look_that_takes_long_says_where_it_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub()
    monkeypatch.setattr(overview, "LOOKS_MS", 0)
    for number in range(10):
        hub.call("PUT", f"/queues/q{number}", {"queue": {}})
    first = hub.call("GET", "/overview").body
    assert (first["counted"], first["after"]) == (8, "q7")
    rest = hub.call("GET", "/overview?previous=q7").body
    assert (rest["counted"], hub.call("GET", "/overview?previous=q9").body["after"]) == (2, None)
    assert hub.call("GET", "/overview?previous=a%2Fb").status == 400
