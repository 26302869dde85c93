"""The answer to producers of each protocol when their project posts more than its quota."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.world import PROJECT, World, subscribers
from tests.ironmq.api.hub import Hub
from tests.web.described import violation
from tests.web.known_good import ENDPOINT, GOOD
from tests.web.protocols import served

from pushhub.base.errors import QuotaExceeded
from pushhub.engine.model.message import NewMessage
from pushhub.engine.model.project import Project
from pushhub.engine.model.quota import Quota
from pushhub.runtime.routes import all_routes
from pushhub.web.api import Function, Route

PRODUCERS = [each for each in all_routes() if each.function is Function.INGEST and each.method == "POST"]
STORES = ("messages", "pull", "bodies", "topics", "requests", "settings", "log", "applications", "message_log")
SAYS = {
    "ironmq": ("msg", {}),
    "hub": ("error", {}),
    "notifications": ("message", {"error": "general/tooManyRequests"}),
    "webhooks": ("detail", {"code": "too_many_requests"}),
}
"""The field with the text, and further fields that clients use."""


def test_every_protocol_has_producers() -> None:
    assert {each.name.partition(".")[0] for each in PRODUCERS} == {*SAYS}


@pytest.mark.parametrize("route", PRODUCERS, ids=lambda route: route.name)
def test_a_post_over_the_quota_is_refused_in_the_protocols_own_words_and_nothing_is_stored(
    route: Route[Any, Any],
) -> None:
    # Given a project that may post one message a second
    protocol = route.name.partition(".")[0]
    api = served(protocol, noted=STORES)
    good = GOOD[route.name]
    names, _ = good.prepare(api)
    api.world.config.put_project(Project(project_id=PROJECT, created_at=0, quota=Quota.of(1, 1)))
    body = {**good.body, "eventId": None} if protocol == "webhooks" else good.body
    # When it has used up its quota
    for _ in range(4):
        api.reads.clear()
        answer = api.call(route, body, names=names, query=good.query)
        if answer.status != route.status:
            break
    # Then the answer says, as described, when to try again, and no store was called, but for what names the project
    assert answer.status == 429
    assert violation(route.name, answer) is None
    said, more = SAYS[protocol]
    assert answer.headers["Retry-After"].isdigit()
    assert answer.body[said].startswith("The project may post 1 messages per second")
    assert more.items() <= answer.body.items()
    assert api.reads == (["application"] if route.name == "webhooks.take_in" else [])
    # And after that time it is accepted
    api.world.clock.advance(seconds=60)
    assert api.call(route, body, names=names, query=good.query).status == route.status


def test_what_the_hub_makes_of_a_message_is_not_refused() -> None:
    # Given a project that has used up its quota, with a queue that feeds another and whose messages fail
    world = World()
    world.sender.script(ENDPOINT, 500)
    world.make_queue("q", subscribers("ironmq:///next", ENDPOINT), retries=0, error_queue="errors")
    world.config.put_project(Project(project_id=PROJECT, created_at=0, quota=Quota.of(1, 1)))
    for _ in range(3):
        world.ingest.post(PROJECT, "q", [NewMessage(body=b"x")])
    with pytest.raises(QuotaExceeded):
        world.ingest.post(PROJECT, "q", [NewMessage(body=b"x")])
    # Then each of its messages has its copy and its error message
    world.run(seconds=30)
    hub = Hub(world)
    for queue in ("next", "errors"):
        assert hub.call("GET", f"/queues/{queue}").body["queue"]["size"] == 3
