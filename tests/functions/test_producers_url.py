"""The function URL of ingest: producers of all protocols get there what they get behind the gateway."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from tests.engine.world import PROJECT
from tests.fakes.gateway import http_event
from tests.functions.conftest import Context, as_json
from tests.webhooks.world import WebhooksWorld

from pushhub.runtime import control, ingest
from pushhub.runtime.routes import all_routes
from pushhub.web.api import Function

EVENTS = Path(__file__).parents[2] / "events"
POSTS = sorted(EVENTS.glob("ingest-http-*.json"))
HOST = "q7xk2mz4v5n3r8t1w6y9b0c2d4f6g8h1.lambda-url.eu-central-1.on.aws"
IDS = re.compile(r"\d{19}|[0-9a-f]{24}|msg_\w{27}")
SOURCE_URL = "src_3MRPxozwlbpv3eYVMIVKFWpsdzC/kV6mTq0nJYbY2ZC2w1o0lWQ7uJcJ5rQh"
SHOWN = "Zx3nV0sK9qTb7mLr2YwHc8Jd5PfGa1Ue", "5b6c2f1d9e8a4c7b3d2e1f0a"


def gateways(path: Path, world: WebhooksWorld) -> dict[str, Any]:
    """An example of an HTTP API's event, of a project that exists."""
    token, project = SHOWN
    text = path.read_text(encoding="utf-8").replace(token, world.token).replace(project, PROJECT)
    if SOURCE_URL in text:
        wanted = {"name": "s", "type": "github", "config": {"secret": "It's a Secret to Everybody"}}
        created = world.call("POST", "/source", wanted, root="/ingest/api/v1")
        text = text.replace(SOURCE_URL, "/".join(created.body["ingestUrl"].split("/")[-2:]))
    event: dict[str, Any] = json.loads(text.replace("app_3MRPxozw7TPC3MSkZFTrdbEFpc6", "acme"))
    return event


def urls(event: dict[str, Any]) -> dict[str, Any]:
    """The same request as a function URL hands it over: its path is as the client wrote it, and has no names."""
    created: dict[str, Any] = json.loads(json.dumps(event))
    created.pop("pathParameters", None)
    created["routeKey"] = created["requestContext"]["routeKey"] = "$default"
    created["rawPath"] = created["requestContext"]["http"]["path"] = quote(created["rawPath"])
    created["headers"] |= {"host": HOST, "x-amzn-tls-version": "TLSv1.3"}
    created["requestContext"] |= {
        "accountId": "anonymous",
        "apiId": HOST.split(".", maxsplit=1)[0],
        "domainName": HOST,
        "domainPrefix": HOST.split(".", maxsplit=1)[0],
    }
    return created


def a_world() -> WebhooksWorld:
    """A hub with what the examples are posted to."""
    world = WebhooksWorld()
    assert world.call("POST", "/app", {"name": "Acme", "uid": "acme"}).status == 201
    return world


def answered(world: WebhooksWorld, event: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = as_json(ingest.answer(world.hub, event, Context()))
    return answer


def stored(world: WebhooksWorld) -> list[Any]:
    """The bodies that are stored: of push queues, and of the pull queues that the examples are posted to."""
    peeked = []
    for queue in ("orders", "payments"):
        answer = control.answer(
            world.hub, gateways_get(world, f"/3/projects/{PROJECT}/queues/{queue}/messages"), Context()
        )
        peeked += [
            (each.get("body"), each.get("body_base64")) for each in json.loads(answer["body"]).get("messages", ())
        ]
    return [*peeked, *(each.body for each in world.messages.all_messages())]


def queues(world: WebhooksWorld) -> list[str]:
    """The names of the project's queues."""
    return world.config.queues(PROJECT, prefix="", after="", limit=9)


def gateways_get(world: WebhooksWorld, path: str) -> dict[str, Any]:
    """A consumer's request for all messages of a queue."""
    return http_event("GET", path, query="n=100", headers={"authorization": f"OAuth {world.token}"})


@pytest.mark.parametrize("path", POSTS, ids=lambda path: path.stem)
def test_a_post_is_answered_and_stored_as_behind_the_gateway(path: Path) -> None:
    # Given the same post to two hubs, one behind the gateway and one behind the function URL
    reported, kept = [], []
    for shape in (lambda event: event, urls):
        world = a_world()
        # When it is handed over
        answer = answered(world, shape(gateways(path, world)))
        assert answer["statusCode"] in {200, 201, 202}, answer
        reported.append(IDS.sub("ID", json.dumps(answer)))
        kept.append(stored(world))
    # Then both answer alike, and store the same bytes
    assert reported[0] == reported[1]
    assert kept[0] == kept[1]
    assert kept[0] or "notification" in path.stem


def test_every_producers_route_is_among_the_examples() -> None:
    examples = {json.loads(each.read_text(encoding="utf-8"))["routeKey"] for each in POSTS}
    assert examples == {f"{each.method} {each.path}" for each in all_routes() if each.function is Function.INGEST}


def test_the_example_of_a_function_urls_event_is_answered() -> None:
    # Given a post to a queue whose name has letters and a space that its path encodes
    world = a_world()
    event = gateways(EVENTS / "ingest-url-post-messages.json", world)
    # When it is handed over
    answer = answered(world, event)
    # Then the queue has its name
    assert answer["statusCode"] == 201
    assert queues(world) == ["zamówienia 2026"]


NAMES = ["żółć", "a b", "a+b", "a;b", "a#b", "🎉"]
NO_NAMES = ["100%", "a%41", "a%2Fb", "%zz", "%FF", "%25%41", "a?b", "%", "a%"]


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_queue_is_what_the_client_encoded(name: str) -> None:
    # Given a queue's name, as a client writes it into a path
    world = a_world()
    event = urls(gateways(EVENTS / "ingest-http-post-messages.json", world))
    event["rawPath"] = f"/3/projects/{PROJECT}/queues/{quote(name, safe='')}/messages"
    # When a message is posted to it
    assert answered(world, event)["statusCode"] == 201
    # Then the queue has that name
    assert queues(world) == [name]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_the_gateway_would_change_is_refused_here_too(name: str) -> None:
    world = a_world()
    event = urls(gateways(EVENTS / "ingest-http-post-messages.json", world))
    event["rawPath"] = f"/3/projects/{PROJECT}/queues/{quote(name, safe='')}/messages"
    assert answered(world, event)["statusCode"] == 400
    assert queues(world) == []


ELSEWHERE = {
    "ironmq": ["/", "", "/version", "//3/projects/x/queues", "/3/projects/{}/queues", "/3/projects/{}/queues/q"],
    "hub": ["/api", "/api/", "/api/stores/{}", "/api/stores/{}/integrations", "/api/stores/{}/messages/1"],
    "notifications": ["/notification2", "/notification2/token", "/notification2/subscriptions"],
    "webhooks": ["/api/v1", "/api/v1/app", "/api/v1/app/acme", "/api/v1/app/acme/endpoint"],
}
SHAPES = {"ironmq": "msg", "hub": "error", "notifications": "message", "webhooks": "detail"}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW", ""])
@pytest.mark.parametrize(
    ("protocol", "path"), [(protocol, path) for protocol, paths in ELSEWHERE.items() for path in paths]
)
def test_what_ingest_does_not_serve_is_not_found_in_the_protocols_own_words(
    protocol: str, path: str, method: str
) -> None:
    world = a_world()
    event = urls(gateways(EVENTS / "ingest-http-post-messages.json", world))
    event["rawPath"] = path.format(PROJECT)
    event["requestContext"]["http"]["method"] = method
    before = queues(world)
    # When something else than a producer's route is asked for, then it is not there, and nothing happens
    answer = answered(world, event)
    assert answer["statusCode"] == 404
    assert method == "HEAD" or SHAPES[protocol] in json.loads(answer["body"])
    assert queues(world) == before


def test_a_method_that_a_producers_path_does_not_have_is_refused_with_those_it_has() -> None:
    for path in POSTS:
        world = a_world()
        event = urls(gateways(path, world))
        event["requestContext"]["http"]["method"] = "PUT"
        answer = answered(world, event)
        assert answer["statusCode"] == 405, path
        assert "POST" in answer["headers"]["Allow"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        # An encoded slash is a slash, as behind the gateway
        ("/3/projects/{}/queues/a%2Fb/messages", 404),
        ("/3%2Fprojects%2F{}%2Fqueues%2Fq%2Fmessages", 201),
        ("/3/projects/{}/queues/..%2F..%2Fversion/messages", 404),
        # A path leads to its protocol however it is spelled
        ("/%33/projects/{}/queues/q/messages", 201),
        ("/%61pi/v1/app/acme/nothing", 404),
        # Not UTF-8, or not for certain
        ("/3/projects/{}/queues/%FF/messages", 400),
        ("/3/projects/{}/queues/%C3/messages", 400),
        ("/3/projects/{}/queues/%EF%BF%BD/messages", 400),
        ("/3/projects/{}/queues//messages", 404),
        ("/3/projects/{}/queues/%00/messages", 400),
        ("/3/projects/{}/queues/" + "q" * 5_000 + "/messages", 400),
        ("/3/projects/{}/queues/q/messages/", 404),
        ("/3/projects/{}/queues/q/messages?x", 404),
    ],
)
def test_hostile_paths(path: str, status: int) -> None:
    world = a_world()
    event = urls(gateways(EVENTS / "ingest-http-post-messages.json", world))
    event["rawPath"] = path.format(PROJECT)
    answer = answered(world, event)
    assert answer["statusCode"] == status, answer
    assert json.loads(answer["body"])
    # And the gateway, which decodes a path itself, leads to the same answer
    event = gateways(EVENTS / "ingest-http-post-messages.json", world)
    event["rawPath"] = unquote(path.format(PROJECT), errors="replace")
    assert answered(world, event)["statusCode"] == status


@pytest.mark.parametrize("field", ["headers", "rawQueryString", "body", "isBase64Encoded", "routeKey", "version"])
@pytest.mark.parametrize("path", POSTS, ids=lambda path: path.stem)
def test_an_event_without_one_of_its_fields_is_a_client_error_at_worst(path: Path, field: str) -> None:
    world = a_world()
    event = urls(gateways(path, world))
    del event[field]
    assert answered(world, event)["statusCode"] < 500


def test_bytes_arrive_as_they_were_sent() -> None:
    # Given bytes that are no text, which a function URL hands over in base64
    world = a_world()
    event = urls(gateways(EVENTS / "ingest-http-webhook.json", world))
    sent = bytes(range(256)) * 4
    event |= {"body": base64.b64encode(sent).decode(), "isBase64Encoded": True}
    # When they are posted, then they are stored
    assert answered(world, event)["statusCode"] == 201
    assert any(base64.b64decode(encoded or "") == sent for _, encoded in stored(world))
