"""Deliveries to services of AWS: what is sent with which keys, and what its answers lead to."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any
from urllib.parse import unquote_plus

import pytest
from tests.engine.world import PROJECT, World, subscribers
from tests.fakes import Reply
from tests.sinks.examples import ACCOUNT, ROLE

from pushhub.base.errors import Invalid
from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.keys import MessageKey
from pushhub.engine.model.message import NewMessage
from pushhub.engine.model.project import Project
from pushhub.engine.model.reach import Reach

SERVICE = "https://sqs.eu-west-1.amazonaws.com/"
QUEUE = f"sqs://eu-west-1/{ACCOUNT}/orders?role={ROLE}"
KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
KEYED = f"sqs://{KEY}:{SECRET.replace('/', '%2F')}@eu-west-1/{ACCOUNT}/orders"
ONCE = re.compile(r'MessageDeduplicationId(?:": ?"|=)([^"&]+)')
TAKEN = Reply(status_code=200, body=b'{"MessageId": "1"}')


def refused(code: str, status: int = 400) -> Reply:
    return Reply(
        status_code=status, body=json.dumps({"__type": f"com.amazonaws.sqs#{code}", "message": "no\nx"}).encode()
    )


@pytest.fixture
def world() -> World:
    """A hub whose project has an external id, which a role demands."""
    world = World()
    world.config.put_project(Project(project_id=PROJECT, created_at=world.clock.now(), external_secret="s3cret"))
    world.ports.roles.trusting[ROLE] = world.hub.engine.external_ids.of(PROJECT)
    world.sender.script(SERVICE, TAKEN)
    return world


def sent(world: World) -> list[Any]:
    return [json.loads(each.body) for each in world.sender.requests]


def test_a_message_is_sent_with_keys_of_the_role_that_can_do_nothing_else(world: World) -> None:
    # Given a queue whose subscriber is a queue of SQS with a role
    world.make_queue("q", subscribers(QUEUE))
    world.ingest.post(PROJECT, "q", [NewMessage(body=b"<hello/>", headers={"X-Shop": "7"})])
    world.run(seconds=5)
    # Then the message is there, as it was posted
    [request] = world.sender.requests
    assert (request.url, request.method) == (SERVICE, "POST")
    said = json.loads(request.body)
    assert said["MessageBody"] == "<hello/>"
    assert said["MessageAttributes"]["X-Shop"]["StringValue"] == "7"
    # And a hub that consumes that queue would know how far it has come
    assert said["MessageAttributes"]["Pushhub-Hops"]["StringValue"] == "1"
    # And the role was assumed with the hub's external id, for that queue alone
    [wanted] = world.ports.roles.asked
    assert (wanted.role, wanted.session) == (ROLE, f"pushhub-{PROJECT}")
    assert wanted.external_id == world.hub.engine.external_ids.of(PROJECT) != ""
    statements = json.loads(wanted.policy)["Statement"]
    assert statements[0]["Resource"] == f"arn:aws:sqs:eu-west-1:{ACCOUNT}:orders"
    assert [each["Action"] for each in statements] == ["sqs:SendMessage", ["kms:GenerateDataKey", "kms:Decrypt"]]
    # And the request is signed with its keys
    assert request.headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=ASIA0000000000000001/")
    assert "/eu-west-1/sqs/aws4_request" in request.headers["Authorization"]
    assert request.headers["X-Amz-Security-Token"] == "session-1"


def test_an_access_key_signs_and_is_shown_to_nobody(world: World) -> None:
    # Given a subscriber with an access key
    world.make_queue("q", subscribers(KEYED))
    stored = world.config.queue(PROJECT, "q")
    assert stored is not None
    assert SECRET not in repr(stored)
    assert "wJalrXUtnFEMI" not in repr(stored)
    [message] = world.post("q", b"x")
    world.run(seconds=5)
    # Then it signs, and no role is assumed
    [request] = world.sender.requests
    assert f"Credential={KEY}/" in request.headers["Authorization"]
    assert world.ports.roles.asked == []
    assert [each.state for each in world.deliveries(message)] == [DeliveryState.DELIVERED]


def test_a_fifo_queue_gets_the_ordering_key_and_an_id_for_each_try_that_is_asked_for(world: World) -> None:
    world.make_queue("q", subscribers(QUEUE.replace("orders", "orders.fifo")))
    [message] = world.post("q", b"1", order_key="customer-7")
    world.run(seconds=5)
    [said] = sent(world)
    assert (said["MessageGroupId"], said["MessageDeduplicationId"]) == ("customer-7", f"{message}/s0")
    assert said["MessageAttributes"]["webhook-id"]["StringValue"] == message
    # When a person has it sent again within the five minutes in which the queue drops duplicates
    stored = world.messages.message(MessageKey(PROJECT, "uid-q", message))
    assert stored is not None
    world.hub.engine.resend.ask(stored, "s0")
    world.run(seconds=5)
    # Then it is another message for the queue
    _, again = sent(world)
    assert again["MessageDeduplicationId"].startswith(f"{message}/s0/")


@pytest.mark.parametrize("scheme", ["sqs", "sns"])
def test_two_subscribers_that_lead_to_one_fifo_queue_have_ids_of_their_own(world: World, scheme: str) -> None:
    # Given two subscribers of a queue that lead to one FIFO queue or topic, which only fails
    place = QUEUE.replace("sqs", scheme).replace("orders", "orders.fifo")
    world.sender.script(SERVICE.replace("sqs", scheme), Reply(status_code=500))
    world.make_queue("q", subscribers(f"{place}&body=envelope", place), retries_delay=3)
    # And a producer that gives each of its messages the same id
    world.ingest.post(PROJECT, "q", [NewMessage(body=b"x", headers={"webhook-id": "mine"}) for _ in range(2)])
    world.run(seconds=20)
    # Then each delivery keeps its id for deduplication at each try, and no other has it
    tries = Counter(unquote_plus(found) for each in world.sender.requests for found in ONCE.findall(each.body.decode()))
    assert len(tries) == 4
    assert min(tries.values()) > 1


def test_messages_to_which_a_producer_gives_one_id_are_objects_of_their_own(world: World) -> None:
    # Given a bucket that gets the messages of a queue
    world.make_queue("q", subscribers(f"s3://eu-west-1/{ACCOUNT}/orders?role={ROLE}"))
    # When a producer posts two with the same id, spelled as he likes
    world.ingest.post(
        PROJECT,
        "q",
        [NewMessage(body=b"1", headers={"webhook-id": "mine"}), NewMessage(body=b"2", headers={"Webhook-Id": "mine"})],
    )
    world.run(seconds=5)
    # Then neither takes the other's place
    objects = {each.url.rpartition("/")[2]: each.body for each in world.sender.requests}
    assert sorted(objects.values()) == [b"1", b"2"]
    assert all(name.startswith("mine-") for name in objects)


def test_a_producers_id_is_the_same_header_however_it_is_spelled(world: World) -> None:
    world.make_queue("q", subscribers(QUEUE))
    world.ingest.post(PROJECT, "q", [NewMessage(body=b"1", headers={"Webhook-ID": "mine"})])
    world.run(seconds=5)
    [said] = sent(world)
    named = {name: each["StringValue"] for name, each in said["MessageAttributes"].items() if "id" in name.lower()}
    assert named == {"webhook-id": "mine"}


@pytest.mark.parametrize("code", ["RequestThrottled", "ThrottlingException"])
def test_a_throttle_waits_at_least_seconds_and_goes_on_with_the_retries(world: World, code: str) -> None:
    world.sender.script(SERVICE, refused(code), TAKEN)
    world.make_queue("q", subscribers(QUEUE), retries_delay=3)
    [message] = world.post("q", b"x")
    world.run(seconds=4.9)
    assert len(world.sender.requests) == 1
    world.run(seconds=6)
    assert len(world.sender.requests) == 2
    assert [each.state for each in world.deliveries(message)] == [DeliveryState.DELIVERED]


@pytest.mark.parametrize(
    ("code", "status"), [("QueueDoesNotExist", 400), ("AccessDenied", 403), ("X", 500), ("X", 503)]
)
def test_what_may_be_put_right_is_tried_again(world: World, code: str, status: int) -> None:
    world.sender.script(SERVICE, refused(code, status), TAKEN)
    world.make_queue("q", subscribers(QUEUE))
    [message] = world.post("q", b"x")
    world.run(seconds=70)
    [delivery] = world.deliveries(message)
    assert (delivery.state, delivery.attempts) == (DeliveryState.DELIVERED, 2)


def test_a_message_that_the_service_will_never_take_ends(world: World) -> None:
    world.sender.script(SERVICE, refused("InvalidMessageContents"))
    world.make_queue("q", subscribers(QUEUE))
    [message] = world.post("q", b"x")
    world.run(seconds=300)
    [delivery] = world.deliveries(message)
    assert (delivery.state, delivery.attempts, delivery.reason) == (DeliveryState.EXHAUSTED, 1, "unfit")
    # And its owner is told why, in one line
    assert [each.message for each in delivery.statuses.values()] == ["InvalidMessageContents: no"]


@pytest.mark.parametrize("body", [b"\x00", b"\xff", "￿".encode()])
def test_what_it_could_never_take_is_not_even_sent(world: World, body: bytes) -> None:
    world.make_queue("q", subscribers(QUEUE))
    [message] = world.post("q", body)
    world.run(seconds=300)
    [delivery] = world.deliveries(message)
    assert (delivery.state, delivery.attempts, delivery.reason) == (DeliveryState.EXHAUSTED, 1, "unfit")
    assert world.sender.requests == []
    assert world.ports.roles.asked == []


def test_a_role_that_lets_nobody_in_is_asked_once_a_minute(world: World) -> None:
    # Given a role that demands another external id: another tenant's
    world.ports.roles.trusting[ROLE] = "somebody-elses"
    world.make_queue("q", subscribers(QUEUE), retries=5, retries_delay=3)
    messages = world.post("q", *(b"x" for _ in range(20)))
    world.run(seconds=59)
    # Then nothing was sent, and it was asked once for all of them
    assert (world.sender.requests, len(world.ports.roles.asked)) == ([], 1)
    [first] = world.deliveries(messages[0])
    assert first.last is not None
    assert first.last.error_class == "credentials"
    assert [each.message for each in first.statuses.values()] == [
        "credentials: the role cannot be assumed: AccessDenied"
    ]
    # And when it lets the hub in, the messages come
    world.ports.roles.trusting[ROLE] = world.hub.engine.external_ids.of(PROJECT)
    world.run(seconds=65)
    assert len(world.sender.requests) == 20


def test_no_message_loses_a_try_to_an_outage_of_sts(world: World) -> None:
    world.ports.roles.out = True
    world.make_queue("q", subscribers(QUEUE))
    [message] = world.post("q", b"x")
    world.run(seconds=20)
    assert world.deliveries(message) == []
    world.ports.roles.out = False
    world.run(seconds=900)
    assert [(each.state, each.attempts) for each in world.deliveries(message)] == [(DeliveryState.DELIVERED, 1)]


def test_keys_that_end_before_their_time_are_replaced_in_the_same_attempt(world: World) -> None:
    world.sender.script(SERVICE, TAKEN, refused("ExpiredToken", 403), TAKEN)
    world.make_queue("q", subscribers(QUEUE))
    world.post("q", b"1")
    world.run(seconds=5)
    [message] = world.post("q", b"2")
    world.run(seconds=5)
    assert [(each.state, each.attempts) for each in world.deliveries(message)] == [(DeliveryState.DELIVERED, 1)]
    assert [each.headers["X-Amz-Security-Token"] for each in world.sender.requests] == [
        "session-1",
        "session-1",
        "session-2",
    ]


def test_an_access_key_that_is_refused_is_not_tried_twice(world: World) -> None:
    world.sender.script(SERVICE, refused("InvalidClientTokenId", 403))
    world.make_queue("q", subscribers(KEYED))
    world.post("q", b"1")
    world.run(seconds=5)
    assert len(world.sender.requests) == 1


def test_a_role_of_the_hubs_own_account_stays_closed_unless_it_is_opened(world: World) -> None:
    # Given a subscriber whose role is of the hub's own account, stored while the operator had opened it
    own = f"arn:aws:iam::{world.ports.account}:role/own"
    world.ports.roles.trusting[own] = world.hub.engine.external_ids.of(PROJECT)
    world.make_queue("q", subscribers(f"sqs://eu-west-1/{ACCOUNT}/orders?role={own}"))
    world.post("q", b"1")
    world.run(seconds=5)
    # Then nothing asks for it
    assert (world.sender.requests, world.ports.roles.asked) == ([], [])
    with pytest.raises(Invalid):
        world.hub.engine.targets.of("sqs:").check(f"sqs://eu-west-1/{ACCOUNT}/orders?role={own}")
    opened = World()
    opened.ports.own_roles = (own,)
    opened.hub.engine.targets.of("sqs:").check(f"sqs://eu-west-1/{ACCOUNT}/orders?role={own}")


@pytest.mark.parametrize(
    "url",
    [
        f"sqs://eu-west-1/{ACCOUNT}/orders",
        f"{KEYED}?role={ROLE}",
        f"{QUEUE}&externalId=x",
        f"{QUEUE}&endpoint=http://169.254.169.254/",
        f"{QUEUE}&endpoint=http://[fd00:ec2::254]",
        f"{QUEUE}&endpoint=https://a.example/path",
        f"{QUEUE}&endpoint=https://u:p@a.example",
        f"{QUEUE}&endpoint=https://a.example%3Fx",
        f"{QUEUE}&endpoint=http://a.example",
        f"{QUEUE}&endpoint=ftp://a.example",
        f"{QUEUE}&endpoint=https://a.example%0d%0aX:1",
        f"sqs://eu-west-1/{ACCOUNT}/or%0d%0aders?role={ROLE}",
    ],
)
def test_a_url_that_could_not_be_right_is_refused(world: World, url: str) -> None:
    with pytest.raises(Invalid):
        world.hub.engine.targets.registered(url, Reach.PROJECT)


def test_the_guard_is_asked_about_where_the_service_is_called(world: World) -> None:
    targets = world.hub.engine.targets
    reaches = {
        scheme: targets.of(url).reaches(url, project=PROJECT, queue="q")
        for scheme, url in {
            "sqs": QUEUE,
            "sns": QUEUE.replace("sqs", "sns"),
            "events": QUEUE.replace("sqs", "events"),
            "lambda": QUEUE.replace("sqs", "lambda"),
            "elsewhere": f"{QUEUE}&endpoint=http://127.0.0.1:4566/",
        }.items()
    }
    assert reaches == {
        **{each: f"https://{each}.eu-west-1.amazonaws.com" for each in ("sqs", "sns", "events", "lambda")},
        "elsewhere": "http://127.0.0.1:4566",
    }


def test_what_a_project_may_reach_alone_its_customers_may_not(world: World) -> None:
    # Given a project with hosts of its own behind the guard
    project = Project(project_id=PROJECT, created_at=0, external_secret="s", allowed_targets=("10.0.0.1",))
    world.config.put_project(project)
    world.make_queue("q", subscribers(KEYED))
    world.post("q", b"1")
    world.run(seconds=5)
    # Then its own queues may reach them
    [request] = world.sender.requests
    assert request.allowed_targets == ("10.0.0.1",)


def test_a_signature_that_the_sdk_makes_covers_body_host_and_session(world: World) -> None:
    world.make_queue("q", subscribers(f"{QUEUE}&endpoint=http://127.0.0.1:4566"))
    world.post("q", b"1")
    world.run(seconds=5)
    [request] = world.sender.requests
    signed = request.headers["Authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {"host", "x-amz-date", "x-amz-security-token", "x-amz-target", "content-type"} == set(signed)


def test_nothing_is_sent_for_a_project_without_an_external_id(world: World) -> None:
    world.config.put_project(Project(project_id=PROJECT, created_at=0))
    world.ports.roles.trusting[ROLE] = ""
    world.make_queue("q", subscribers(QUEUE))
    world.post("q", b"1")
    world.run(seconds=5)
    assert (world.sender.requests, world.ports.roles.asked) == ([], [])
