"""CloudEvents that come to a source: binary, structured and batched, each event once, byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.webhooks.sources.test_arrivals import ENDPOINT, Sources

from pushhub.engine.model.project import Project
from pushhub.engine.model.quota import Quota
from pushhub.webhooks.api.arrivals import MESSAGE_ID

BATCH = "application/cloudevents-batch+json; charset=utf-8"
ONE = '{"specversion":"1.0","id":"1","source":"/shop","type":"order.new","data":{"a":1.10, "b":"\\u00e9"}}'
TWO = '{ "id": "2", "source": "/shop", "type": "order.paid", "specversion": "1.0" ,"data_base64":"AA==" }'


def sent(world: Sources) -> list[bytes]:
    """The bodies that the endpoint has got."""
    world.run(seconds=5)
    return sorted(each.body for each in world.sender.requests_to(ENDPOINT))


def listed(world: Sources, source: Any) -> list[tuple[str, str]]:
    """Type and id of what the source has taken in."""
    data = world.ask("GET", f"/app/{source['id']}/msg")["data"]
    return sorted((each["eventType"], each["eventId"]) for each in data)


def test_a_batch_is_a_message_for_each_event_with_its_own_bytes() -> None:
    # Given a source, and a batch whose events are written in different ways
    world = Sources()
    source = world.create("generic-webhook")
    # When it is posted
    answer = world.arrive(source, f" [{ONE} ,\n{TWO}] ".encode(), {"content-type": BATCH, "x-shop": "7"})
    # Then each event is a message of its own, and both are named
    assert answer["statusCode"] == 200
    assert len(answer["headers"][MESSAGE_ID].split(", ")) == 2
    assert sent(world) == sorted([ONE.encode(), TWO.encode()])
    # And receivers see an event in structured mode, with its sender's headers
    headers = {name.lower(): value for name, value in world.sender.requests_to(ENDPOINT)[0].headers.items()}
    assert headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert headers["x-shop"] == "7"
    assert [kind for kind, _ in listed(world, source)] == ["order.new", "order.paid"]


def test_an_event_comes_once_however_it_is_sent() -> None:
    # Given an event that came in a batch
    world = Sources()
    source = world.create("generic-webhook")
    assert world.arrive(source, f"[{ONE}]".encode(), {"content-type": BATCH})["statusCode"] == 200
    # When it comes again: in a batch beside another one, structured, and binary
    again = world.arrive(source, f"[{ONE},{TWO},{TWO}]".encode(), {"content-type": BATCH})
    structured = world.arrive(source, ONE.encode(), {"content-type": "application/cloudevents+json"})
    binary = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/shop", "ce-type": "order.new"}
    alone = world.arrive(source, b'{"a":1}', {"content-type": "application/json", **binary})
    # Then only the other one is new
    assert len(again["headers"][MESSAGE_ID].split(", ")) == 1
    assert [each["statusCode"] for each in (structured, alone)] == [200, 200]
    assert sent(world) == sorted([ONE.encode(), TWO.encode()])
    assert world.stats(source)["days"][0]["duplicate"] == 4
    # And an event of the same id and another source is another event
    for other in (("/store", "1"), ("/shop/a", "1"), ("/shop", "a/1"), ("/shop/", "a-1"), ("/shop/a-", "1")):
        event = ONE.replace('"/shop"', f'"{other[0]}"').replace('"1"', f'"{other[1]}"').encode()
        assert MESSAGE_ID in world.arrive(source, event, {"content-type": "application/cloudevents+json"})["headers"]


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"{}", b"1", b'["x"]', b"[[]]", b"\xff", b"[" * 200),
        *(
            b'[{"id":"1","source":"/s"}]',
            b'[{"id":1,"source":"/s","type":"t"}]',
            b'[{"id":"","source":"/s","type":"t"}]',
        ),
        b"[" + b",".join([ONE.encode()] * 101) + b"]",
        f"[{ONE},{{}}]".encode(),
    ],
)
def test_what_is_no_batch_is_refused_as_a_whole(body: bytes) -> None:
    world = Sources()
    source = world.create("generic-webhook")
    answer = world.arrive(source, body, {"content-type": BATCH})
    assert (answer["statusCode"], json.loads(answer["body"])["code"]) == (400, "malformed")
    assert listed(world, source) == []


def test_a_batch_without_events_and_one_for_another_kind_of_source() -> None:
    world = Sources()
    assert world.arrive(world.create("generic-webhook"), b"[]", {"content-type": BATCH})["statusCode"] == 200
    # What is no batch to its sender's rules is one message
    github = world.create("github")
    assert world.arrive(github, f"[{ONE},{TWO}]".encode(), {"content-type": BATCH})["statusCode"] == 200
    assert sent(world) == [f"[{ONE},{TWO}]".encode()]


def test_a_batch_over_the_quota_is_refused_before_any_of_it_is_taken() -> None:
    # Given a project that may post one message a second
    world = Sources()
    source = world.create("generic-webhook")
    world.config.put_project(Project(project_id=PROJECT, created_at=0, quota=Quota.of(1, 1)))
    # When batches come until one is refused
    taken = 0
    for batch in range(50):
        events = [ONE.replace('"id":"1"', f'"id":"{batch}-{number}"') for number in range(20)]
        status = world.arrive(source, f"[{','.join(events)}]".encode(), {"content-type": BATCH})["statusCode"]
        if status == 429:
            break
        taken += 1
    else:
        pytest.fail("The quota did not count")
    # Then nothing of that one was taken
    world.run(seconds=5)
    assert len(world.sender.requests_to(ENDPOINT)) == 20 * taken
