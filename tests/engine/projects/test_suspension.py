"""A suspended project: refused in each protocol's own words, silent at once, and nothing of it is lost."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.world import PROJECT, World, subscribers
from tests.hub.world import HubWorld
from tests.ironmq.api.hub import OTHER_PROJECT, Hub
from tests.notifications.world import PROJECT as TENANT
from tests.notifications.world import NotificationWorld
from tests.web.described import violation
from tests.web.known_good import GOOD
from tests.web.protocols import PROTOCOLS, Served, served
from tests.webhooks.world import WebhooksWorld

from pushhub.base.errors import Conflict, ProjectSuspended
from pushhub.engine.model.project import Project
from pushhub.engine.projects.projects import Projects
from pushhub.hub.model.schedule import Scheduler
from pushhub.runtime.routes import all_routes
from pushhub.web.api import Auth, Route

URL = "https://shop.example/in"
HOUR = 3_600
SAYS = {"ironmq": "msg", "hub": "error", "notifications": "message", "webhooks": "detail"}
ROUTES = [each for each in all_routes() if each.auth not in {Auth.NONE, Auth.CAPABILITY}]


def suspend(world: Any, project: str = PROJECT) -> Projects:
    projects = Projects(config=world.config, clock=world.clock)
    if world.config.project(project) is None:
        world.config.put_project(Project(project_id=project, created_at=0))
    projects.suspend(project)
    world.clock.advance(seconds=1)
    return projects


def sent(world: World) -> list[bytes]:
    return [each.body for each in world.sender.requests_to(URL)]


@pytest.fixture(scope="module")
def apis() -> dict[str, Served]:
    """Each protocol's API, for a project that is suspended."""
    found = {name: served(name) for name in PROTOCOLS}
    for each in found.values():
        suspend(each.world, each.project)
    return found


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_a_suspended_project_may_be_looked_at_and_is_refused_everything_else(
    apis: dict[str, Served], route: Route[Any, Any]
) -> None:
    protocol = route.name.partition(".")[0]
    answer = apis[protocol].call(route, GOOD[route.name].body)
    if route.only_looks:
        assert answer.status != 403
        return
    assert answer.status == 403
    assert answer.body[SAYS[protocol]] == "The project is suspended"
    assert violation(route.name, answer) is None
    # Whoever has no token of the project learns nothing
    assert apis[protocol].call(route, GOOD[route.name].body, token="wrong").status == 401


def test_a_get_that_hands_messages_to_a_consumer_is_more_than_a_look() -> None:
    handing = {"webhooks.poll", "webhooks.consume", "webhooks.lease", "webhooks.read_stream_sink"}
    assert {each.name for each in all_routes() if each.takes} == handing


@pytest.mark.parametrize("unicast", [False, True])
def test_what_is_owed_is_held_in_sight_and_sent_once_when_the_project_is_resumed(unicast: bool) -> None:
    # Given a message that failed once, one that was just posted, and one with a delay
    world = World()
    world.make_queue("q", subscribers(URL), unicast=unicast)
    world.sender.script(URL, 500, 200)
    world.post("q", b"failed")
    world.run(seconds=1)
    posted = world.post("q", b"new") + world.post("q", b"later", delay_s=HOUR)
    # When its project is suspended
    projects = suspend(world)
    world.run(seconds=2 * HOUR)
    # Then no attempt begins, though the table is swept, and all of it is in sight
    assert sent(world) == [b"failed"]
    assert world.hub.engine.sweep.run(0, 1, lambda: 10**6) == 0
    world.run(seconds=24 * HOUR)
    assert sent(world) == [b"failed"]
    assert all(world.messages.message_with_deliveries(each.key) for each in world.messages.all_messages())
    # When it is resumed, then each is sent once, within two minutes
    projects.resume(PROJECT)
    world.run(seconds=120)
    assert sorted(sent(world)) == [b"failed", b"failed", b"later", b"new"]
    world.run(seconds=HOUR)
    assert len(sent(world)) == 4
    assert {each.state.value for each in world.messages.all_deliveries()} == {"delivered"}
    assert [*world.ports.subscribers.looked_after()] == []
    assert len(posted) == 2


def test_other_projects_are_not_affected() -> None:
    world = World()
    world.make_queue("q", subscribers(URL))
    suspend(world, OTHER_PROJECT)
    world.post("q", b"one")
    world.run(seconds=1)
    assert sent(world) == [b"one"]


def test_a_paused_subscriber_stays_paused_when_its_project_is_resumed() -> None:
    hub = Hub()
    push = {"subscribers": [{"name": "shop", "url": URL}]}
    hub.call("PUT", "/queues/q", {"queue": {"type": "multicast", "push": push}})
    hub.call("POST", "/queues/q/pause", {"subscriber": "shop"})
    hub.call("POST", "/queues/q/messages", {"messages": [{"body": "one"}]})
    projects = suspend(hub.world)
    hub.world.run(seconds=HOUR)
    projects.resume(PROJECT)
    hub.world.run(seconds=HOUR)
    assert sent(hub.world) == []
    hub.world.clock.advance(seconds=5)
    hub.call("POST", "/queues/q/resume", {"subscriber": "shop"})
    hub.world.run(seconds=120)
    assert sent(hub.world) == [b"one"]


def test_an_attempt_that_a_person_asked_for_before_waits_too() -> None:
    hub = Hub()
    world = hub.world
    push = {"subscribers": [{"name": "shop", "url": URL}], "retries": 0}
    hub.call("PUT", "/queues/q", {"queue": {"type": "multicast", "push": push}})
    world.sender.script(URL, 500, 200)
    (posted,) = hub.call("POST", "/queues/q/messages", {"messages": [{"body": "one"}]}).body["ids"]
    world.run(seconds=10)
    replay = {"subscriber": "shop", "message_ids": [posted]}
    assert hub.call("POST", "/queues/q/replay", replay).body["replayed"] == 1
    projects = suspend(world)
    world.run(seconds=HOUR)
    assert len(sent(world)) == 1
    projects.resume(PROJECT)
    world.run(seconds=120)
    assert len(sent(world)) == 2


def test_another_project_cannot_post_to_it_and_tries_again() -> None:
    # Given a queue of another project whose subscriber is a queue of this one
    hub = Hub()
    hub.call("PUT", "/queues/in", {"queue": {"type": "pull"}})
    url = f"ironmq://{PROJECT}:{hub.token}@/in"
    push = {"subscribers": [{"name": "in", "url": url}], "retries": 5, "retries_delay": 60}
    created = hub.call("PUT", "/queues/q", {"queue": {"type": "multicast", "push": push}}, project=OTHER_PROJECT)
    assert created.status == 200
    projects = suspend(hub.world)
    hub.call("POST", "/queues/q/messages", {"messages": [{"body": "one"}]}, project=OTHER_PROJECT)
    hub.world.run(seconds=5)
    assert hub.world.pulled("in") == []
    projects.resume(PROJECT)
    hub.world.run(seconds=120)
    assert hub.world.pulled("in") == [b"one"]


def test_a_consumer_that_waits_for_messages_of_a_pull_queue_gets_no_more() -> None:
    hub = Hub()
    hub.call("PUT", "/queues/in", {"queue": {"type": "pull"}})
    hub.call("POST", "/queues/in/messages", {"messages": [{"body": "one", "delay": 10}]})
    sleep = hub.world.clock.sleep

    def asleep(seconds: float) -> None:
        suspend(hub.world)
        sleep(seconds)

    # When the project is suspended while the request waits for the message's delay
    hub.world.clock.sleep = asleep  # type: ignore[method-assign]
    answer = hub.call("POST", "/queues/in/reservations", {"n": 1, "wait": 25})
    # Then it is answered without it
    assert answer.body["messages"] == []


def test_messages_of_a_store_are_compared_but_nothing_is_posted_or_polled() -> None:
    # Given a service that answers later, and one that answers at once
    world = HubWorld()
    later = {"update_url": "https://acme.example/update"}
    world.map("order:new", says=lambda _: dict(later))
    world.endpoints["https://acme.example/update"] = lambda _: {}
    world.push_message()
    world.run(seconds=1)
    asked = len(world.asked)
    assert asked == 1
    # When the store is suspended after another message
    world.push_message()
    projects = suspend(world)
    world.run(seconds=HOUR)
    # Then nobody is asked until it is resumed
    assert len(world.asked) == asked
    later.clear()
    projects.resume(PROJECT)
    world.run(seconds=300)
    assert {each.state.value for each in world.messages.all_deliveries()} == {"delivered"}


def test_ticks_of_a_suspended_store_are_left_out() -> None:
    world = HubWorld()
    now = world.clock.now()
    world.settings.put_scheduler(
        Scheduler(
            project=PROJECT,
            scheduler_id="1" * 24,
            key="tick",
            count=1,
            interval="minute",
            next_at=now,
            created_at=now,
        )
    )
    projects = suspend(world)
    for _ in range(10):
        world.ticks.run(lambda: 10**6)
        world.clock.advance(seconds=60)
    assert world.messages.all_messages() == []
    projects.resume(PROJECT)
    world.ticks.run(lambda: 10**6)
    assert len(world.messages.all_messages()) == 1


def test_webhooks_wait_until_the_organization_is_resumed() -> None:
    world = WebhooksWorld()
    app = world.make_app()
    world.make_endpoint(app, URL)
    world.ask("POST", f"/app/{app}/msg", {"eventType": "order.new", "payload": {"n": 1}})
    projects = suspend(world)
    world.run(seconds=HOUR)
    assert sent(world) == []
    projects.resume(PROJECT)
    world.run(seconds=120)
    assert len(sent(world)) == 1


def test_consumers_of_topics_are_closed_and_not_admitted_and_get_the_rest_later() -> None:
    world = NotificationWorld()
    world.rule()
    world.connect("a")
    world.publish(1)
    projects = suspend(world, TENANT)
    # When the next run looks at the connections
    world.idle.run(lambda: 60_000)
    # Then its consumer is gone, cannot come back, and what it has not seen waits
    assert world.sockets.closed == ["a"]
    world.send_all()
    assert world.numbers("a") == []
    with pytest.raises(ProjectSuspended):
        world.connect("b")
    projects.resume(TENANT)
    world.connect("c")
    world.send_all()
    assert world.numbers("c") == [1]


def test_suspending_twice_keeps_the_time_and_what_is_being_erased_cannot_be_resumed() -> None:
    world = World()
    projects = suspend(world)
    first = world.config.project(PROJECT)
    world.clock.advance(seconds=60)
    assert projects.suspend(PROJECT) == first
    assert first is not None
    world.config.put_project(
        Project(project_id=PROJECT, created_at=0, suspended_at=first.suspended_at, erased_since=world.clock.now())
    )
    with pytest.raises(Conflict):
        projects.resume(PROJECT)
