"""Deliveries to queues and workers: the requests they make, and where loops end."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace

import pytest
from tests.engine.world import BASE_URL, PROJECT, World, subscribers
from tests.fakes import Reply
from tests.ironmq.api.hub import Hub

from pushhub.base.ports import PushRequest
from pushhub.engine.model.deflated import plain
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.keys import MessageKey
from pushhub.engine.model.message import DESCENDANTS, MAX_HOPS, NewMessage
from pushhub.engine.model.project import Project
from pushhub.ironmq.ports import PullMessage

OTHER = "5f0000000000000000000002"
TOKEN = "t0ken"


@pytest.fixture
def world() -> World:
    """A hub with a second project and its token."""
    world = World()
    world.config.put_project(Project(project_id=OTHER, created_at=world.clock.now()))
    world.config.put_token(OTHER, hashlib.sha256(TOKEN.encode()).hexdigest(), "", world.clock.now())
    return world


def pulled(world: World, project: str, name: str) -> list[bytes | None]:
    queue = world.config.queue(project, name)
    assert queue is not None
    held = world.pull.peek(project, queue.pull_uid, count=100, now=world.clock.now())
    return [None if each.message.body is None else plain(each.message.body) for each in held]


def codes(world: World, message_id: str) -> list[int | None]:
    return [each.status_code for delivery in world.deliveries(message_id) for each in delivery.statuses.values()]


def test_a_queue_of_this_hub_is_posted_to_without_http(world: World) -> None:
    # Given subscribers that are queues here: of this project, and of another, also by this hub's name
    host = BASE_URL.partition("//")[2]
    urls = ("ironmq:///near%20by", f"ironmq://{OTHER}:{TOKEN}@/other", f"ironmq://{OTHER}:{TOKEN}@{host}/named")
    world.make_queue("q", subscribers(*urls))
    world.ingest.post(PROJECT, "q", [NewMessage(body=b"\xff x", headers={"X-A": "1"})])
    world.run(seconds=5)
    # Then the bytes arrive there
    assert pulled(world, PROJECT, "near by") == [b"\xff x"]
    assert pulled(world, OTHER, "other") == pulled(world, OTHER, "named") == [b"\xff x"]
    assert world.sender.requests == []


def test_what_a_person_has_sent_again_comes_to_the_queue_again(world: World) -> None:
    # Given a message in a pull queue and in a push queue, by way of another
    world.make_queue("q", subscribers("ironmq:///pull", "ironmq:///push"))
    world.make_queue("push", subscribers("https://a.example/"))
    [message_id] = world.post("q", b"x")
    world.run(seconds=5)
    assert len(pulled(world, PROJECT, "pull")) == len(world.sender.requests) == 1
    # When a person has it sent again, and asks twice before it is
    message = world.messages.message(MessageKey(PROJECT, "uid-q", message_id))
    assert message is not None
    for subscriber_id in ("s0", "s1"):
        asked = world.hub.engine.resend.ask(message, subscriber_id)
        world.hub.engine.resend.ask(message, subscriber_id)
        assert asked.asked_at is not None
    world.run(seconds=5)
    # Then one more copy is there of each, whether or not the first was consumed
    assert len(pulled(world, PROJECT, "pull")) == len(world.sender.requests) == 2


def test_another_projects_queue_needs_its_token(world: World) -> None:
    world.make_queue("q", subscribers(f"ironmq://{OTHER}:wrong@/other"), retries=0)
    [message_id] = world.post("q", b"x")
    world.run(seconds=5)
    assert codes(world, message_id) == [401]
    assert world.config.queue(OTHER, "other") is None


def test_a_queue_of_another_hub_is_posted_to_through_its_webhook(world: World) -> None:
    # Given a subscriber that is a queue of another hub
    world.make_queue("q", subscribers("ironmq://P%20P:T%3A@elsewhere.example:8443/far%20off"))
    world.ingest.post(PROJECT, "q", [NewMessage(body=b"\xff x", headers={"X-A": "1"}, hops=3)])
    world.run(seconds=5)
    # Then this request is made, in a form that preserves bytes
    [request] = world.sender.requests
    assert request.url == "https://elsewhere.example:8443/3/projects/P%20P/queues/far%20off/webhook"
    assert request.body == b"\xff x"
    assert request.headers == {
        "Authorization": "OAuth T:",
        "Content-Type": "application/octet-stream",
        "x-subscribers-X-A": "1",
        "Pushhub-Hops": "4",
        "Pushhub-Descendants": "1000",
    }


@pytest.mark.parametrize("url", ["ironmq:///next", "ironmq://P:T@elsewhere.example/next"])
def test_a_message_that_has_come_too_far_is_not_passed_on(world: World, url: str) -> None:
    world.make_queue("q", subscribers(url), retries=0)
    [message_id] = world.ingest.post(PROJECT, "q", [NewMessage(body=b"x", hops=MAX_HOPS)])
    world.run(seconds=5)
    assert codes(world, message_id) == [508]
    assert world.sender.requests == []
    assert world.config.queue(PROJECT, "next") is None


def test_a_loop_ends(world: World) -> None:
    # Given two queues that push to each other
    world.make_queue("a", subscribers("ironmq:///b"), retries=0)
    world.make_queue("b", subscribers("ironmq:///a"), retries=0)
    world.post("a", b"x")
    world.run(seconds=60)
    # Then a message passes the maximum number of queues
    assert len({each.message_id for each in world.messages.all_deliveries()}) == MAX_HOPS + 1


def test_a_queue_that_is_its_own_error_queue_comes_to_an_end(world: World) -> None:
    world.make_queue("q", subscribers("https://a.example/"), retries=0, error_queue="q")
    world.sender.script("https://a.example/", 500)
    world.post("q", b"x")
    world.run(seconds=60)
    assert len(world.sender.requests) == MAX_HOPS + 1


def _copies(world: World, *queues: str) -> int:
    """Messages in push queues of these names."""
    return sum(each.queue in queues for each in world.messages.all_messages())


def test_queues_that_feed_each_other_make_a_bounded_number_of_copies(world: World) -> None:
    # Given two queues of two subscribers each, all of which are the other queue
    for name, other in (("a", "b"), ("b", "a")):
        world.make_queue(name, subscribers(*[f"ironmq:///{other}"] * 2), retries=1, error_queue="cut-off")
    # When one message is posted
    world.post("a", b"x")
    world.run(seconds=300)
    # Then the maximum number derived from it, and no more
    created = _copies(world, "a", "b") - 1
    assert DESCENDANTS / 2 < created <= DESCENDANTS
    # And each delivery that was cut off is in the error queue, once
    cut_off = [each for each in world.messages.all_deliveries() if each.state is DeliveryState.EXHAUSTED]
    errors = _waiting(world, "cut-off")
    assert len(cut_off) > 0
    assert len(errors) == len(cut_off)
    answer = Counter(json.loads(plain(each.message.body or b""))["source_msg_id"] for each in errors)
    assert answer == Counter(each.message_id for each in cut_off)


def test_error_queues_that_are_each_others_make_a_bounded_number_of_messages(world: World) -> None:
    # Given two queues of three dead subscribers each, which are each other's error queues
    urls = ["https://a.example/", "https://b.example/", "https://c.example/"]
    for url in urls:
        world.sender.script(url, 500)
    for name, other in (("a", "b"), ("b", "a")):
        world.make_queue(name, subscribers(*urls), retries=0, error_queue=other)
    world.post("a", b"x")
    world.run(seconds=120)
    # Then no more derive from it than allowed
    assert DESCENDANTS / 2 < _copies(world, "a", "b") <= DESCENDANTS + 1


def _waiting(world: World, name: str) -> list[PullMessage]:
    queue = world.config.queue(PROJECT, name)
    assert queue is not None
    return world.pull.peek(PROJECT, queue.pull_uid, count=100_000, now=world.clock.now())


@pytest.mark.parametrize("webhooks", [1, 2])
def test_a_queue_that_is_subscribed_to_its_own_webhook_comes_to_an_end(world: World, webhooks: int) -> None:
    # Given a queue whose subscribers are its own webhook, over HTTP
    hub = Hub(world)
    url = f"{BASE_URL}/3/projects/{PROJECT}/queues/q/webhook?oauth={hub.token}"

    def through_the_gateway(request: PushRequest) -> None:
        result = hub.send("POST", request.url.removeprefix(BASE_URL), request.body, request.headers)
        statuses.append(result.status)

    statuses: list[int] = []
    urls = [f"{url}&n={number}" for number in range(webhooks)]
    for each in urls:
        world.sender.script(each, Reply(status_code=201, meanwhile=through_the_gateway))
    # And headers of the owner that would hide how many queues a message has passed
    owed = tuple(
        replace(each, headers={"pushhub-hops": "0", "Pushhub-Descendants": "9"}) for each in subscribers(*urls)
    )
    world.make_queue("q", owed, retries=0)
    hub.post("q", "x")
    world.run(seconds=120)
    # Then the hub refuses its own message once it has passed too many
    created = _copies(world, "q") - 1
    assert created == (MAX_HOPS if webhooks == 1 else created)
    assert created <= DESCENDANTS
    assert set(statuses) == {201, 400}


def test_a_worker_gets_a_task(world: World) -> None:
    world.make_queue("q", subscribers("ironworker://P:T%26@worker.example/my%20code"))
    world.post("q", b'{"a": 1}')
    world.run(seconds=5)
    [request] = world.sender.requests
    assert request.url == "https://worker.example/2/projects/P/tasks/webhook?code_name=my%20code&oauth=T%26"
    assert (request.method, request.body) == ("POST", b'{"a": 1}')


def test_how_many_messages_may_come_of_one_is_a_setting() -> None:
    # Given a hub that allows three
    world = World(descendants=3)
    world.make_queue("a", subscribers("ironmq:///b", "ironmq:///b"), retries=0)
    world.make_queue("b", subscribers("ironmq:///a", "ironmq:///a"), retries=0)
    world.post("a", b"x")
    world.run(seconds=60)
    assert _copies(world, "a", "b") == 4
