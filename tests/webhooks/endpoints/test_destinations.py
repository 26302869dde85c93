"""Destinations of Svix's API: endpoints on AWS in other words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.fakes import Reply
from tests.webhooks.world import OTHER_PROJECT, WebhooksWorld

ACCOUNT = "111122223333"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/hub"
KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
QUEUE_URL = f"https://sqs.eu-west-1.amazonaws.com/{ACCOUNT}/orders"
SERVICE = "https://sqs.eu-west-1.amazonaws.com/"
SQS: dict[str, Any] = {"type": "sqs", "config": {"queueUrl": QUEUE_URL, "region": "eu-west-1", "roleArn": ROLE}}
SNS: dict[str, Any] = {"type": "sns", "config": {"topicArn": f"arn:aws:sns:eu-west-1:{ACCOUNT}:t", "roleArn": ROLE}}
BUS: dict[str, Any] = {"type": "eventBridge", "config": {"eventBusName": "bus", "region": "eu-west-1", "roleArn": ROLE}}


@pytest.fixture
def world() -> WebhooksWorld:
    world = WebhooksWorld()
    world.sender.script(SERVICE, Reply(status_code=200, body=b'{"MessageId": "1"}'))
    return world


def create(world: WebhooksWorld, app: str, given: Any = SQS, **more: Any) -> Any:
    return world.ask("POST", f"/app/{app}/destination", {**given, **more})


def test_a_destination_is_made_and_shown_as_svix_shows_it(world: WebhooksWorld, app: str) -> None:
    # Given an application, and what a role has to demand
    ids = world.ask("GET", f"/app/{app}/external-id")
    assert ids["principal"] == "arn:aws:iam::999999999999:root"
    world.ask("POST", "/event-type", {"name": "invoice.paid", "description": "x"})
    # When a destination is made
    shown = create(world, app, uid="q", eventTypes=["invoice.paid"], channels=["c"], metadata={"a": "b"}, batchSize=10)
    # Then it reads as its client does
    assert shown["id"].startswith("sink_")
    assert {name: value for name, value in shown.items() if name not in ("id", "createdAt", "updatedAt")} == {
        "uid": "q",
        "type": "sqs",
        "config": {
            "queueUrl": QUEUE_URL,
            "region": "eu-west-1",
            "roleArn": ROLE,
            "externalId": ids["externalId"],
        },
        "status": "enabled",
        "batchSize": 1,
        "maxWaitSecs": 0,
        "currentIterator": "",
        "eventTypes": ["invoice.paid"],
        "channels": ["c"],
        "metadata": {"a": "b"},
    }
    # And by its id and its uid, and in the list, beside an endpoint that is none
    world.make_endpoint(app)
    for name in (shown["id"], "q"):
        assert world.ask("GET", f"/app/{app}/destination/{name}") == shown
    assert world.ask("GET", f"/app/{app}/destination")["data"] == [shown]


def test_a_message_is_sent_in_svixs_envelope_with_the_applications_external_id(world: WebhooksWorld) -> None:
    app, other = world.make_app(), world.make_app("Other")
    mine, others = (world.ask("GET", f"/app/{each}/external-id")["externalId"] for each in (app, other))
    assert mine != others
    world.ports.roles.trusting[ROLE] = mine
    create(world, app)
    world.ask("POST", f"/app/{app}/msg", {"eventType": "invoice.paid", "payload": {"n": 1}})
    world.run(seconds=5)
    [request] = world.sender.requests
    sent = json.loads(request.body)
    assert sent["MessageBody"] == '{"payload":{"n": 1},"eventType":"invoice.paid"}'
    assert sent["MessageAttributes"]["webhook-event-type"]["StringValue"] == "invoice.paid"
    assert "webhook-signature" not in sent["MessageAttributes"]
    assert world.ports.roles.asked[0].external_id == mine
    # And its attempts are listed as those of any endpoint
    [attempt] = world.ask("GET", f"/app/{app}/attempt/endpoint/{_endpoint(world, app)}")["data"]
    assert (attempt["status"], attempt["responseStatusCode"]) == (0, 200)


def test_a_destination_stays_where_it_was_moved_to_while_something_else_is_changed(
    world: WebhooksWorld, app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a destination
    path = f"/app/{app}/destination/{create(world, app)['id']}"
    store, moved = world.ports.endpoints, {**SQS, "config": {**SQS["config"], "queueUrl": f"{QUEUE_URL}-2"}}
    put = store.put_endpoint

    def meanwhile(*given: Any) -> Any:
        monkeypatch.setattr(store, "put_endpoint", put)
        world.ask("PATCH", path, moved)
        return put(*given)

    # When it is moved while a change is made that says nothing of that
    monkeypatch.setattr(store, "put_endpoint", meanwhile)
    shown = world.ask("PATCH", path, {"type": "sqs", "metadata": {"team": "orders"}})
    # Then both count
    assert (shown["config"]["queueUrl"], shown["metadata"]) == (f"{QUEUE_URL}-2", {"team": "orders"})


def _endpoint(world: WebhooksWorld, app: str) -> str:
    [endpoint] = world.ask("GET", f"/app/{app}/endpoint")["data"]
    return str(endpoint["id"])


def test_an_endpoint_with_such_a_url_gets_the_payload_and_its_signature(world: WebhooksWorld, app: str) -> None:
    world.ports.roles.trusting[ROLE] = world.ask("GET", f"/app/{app}/external-id")["externalId"]
    world.make_endpoint(app, f"sqs://eu-west-1/{ACCOUNT}/orders?role={ROLE}")
    world.ask("POST", f"/app/{app}/msg", {"eventType": "invoice.paid", "payload": {"n": 1}})
    world.run(seconds=5)
    [request] = world.sender.requests
    sent = json.loads(request.body)
    assert sent["MessageBody"] == '{"n": 1}'
    signed = {"webhook-id", "webhook-timestamp", "webhook-signature", "webhook-event-type"}
    # A hub that takes it in again must know how far it has come (docs/destinations.md)
    assert set(sent["MessageAttributes"]) == signed | {"Pushhub-Hops"}


@pytest.mark.parametrize(
    ("given", "config"),
    [
        (SNS, {"topicArn": f"arn:aws:sns:eu-west-1:{ACCOUNT}:t", "region": "eu-west-1"}),
        (
            BUS,
            {
                "eventBusName": f"arn:aws:events:eu-west-1:{ACCOUNT}:event-bus/bus",
                "region": "eu-west-1",
                "detailType": "application/json",
            },
        ),
        (
            {
                "type": "eventBridge",
                "config": {
                    **SNS["config"],
                    "eventBusName": f"arn:aws:events:eu-west-1:{ACCOUNT}:event-bus/b",
                    "detailType": "x",
                },
            },
            {
                "eventBusName": f"arn:aws:events:eu-west-1:{ACCOUNT}:event-bus/b",
                "region": "eu-west-1",
                "detailType": "x",
            },
        ),
        (
            {
                "type": "sqs",
                "config": {
                    "queueUrl": f"https://sqs.internal.example:8443/{ACCOUNT}/q.fifo",
                    "endpointUrl": "https://sqs.internal.example:8443/",
                    "region": "eu-west-1",
                    "roleArn": ROLE,
                },
            },
            {
                "queueUrl": f"https://sqs.internal.example:8443/{ACCOUNT}/q.fifo",
                "endpointUrl": "https://sqs.internal.example:8443",
                "region": "eu-west-1",
            },
        ),
    ],
)
def test_each_type_is_shown_as_it_was_given(world: WebhooksWorld, app: str, given: Any, config: Any) -> None:
    external = world.ask("GET", f"/app/{app}/external-id")["externalId"]
    assert create(world, app, given)["config"] == {**config, "roleArn": ROLE, "externalId": external}


def test_a_destination_that_fails_says_so_and_when_it_is_well_again(world: WebhooksWorld, app: str) -> None:
    # Given a destination whose role lets nobody in
    shown = create(world, app, uid="q")
    world.ask("POST", f"/app/{app}/msg", {"eventType": "t", "payload": {}})
    world.run(seconds=2)
    # Then it says that it is retried
    there = world.ask("GET", f"/app/{app}/destination/q")
    assert there["status"] == "retrying"
    assert there["failureReason"]
    assert world.ask("GET", f"/app/{app}/destination")["data"] == [there]
    # And nothing more once it has taken a message
    world.ports.roles.trusting[ROLE] = shown["config"]["externalId"]
    world.run(seconds=600)
    assert world.ask("GET", f"/app/{app}/destination/q") == shown


def test_a_secret_is_written_and_never_read(world: WebhooksWorld, app: str) -> None:
    # Given a destination with an access key
    keyed = {"queueUrl": QUEUE_URL, "accessKeyId": KEY, "secretAccessKey": SECRET}
    shown = create(world, app, config=keyed)
    assert shown["config"] == {"queueUrl": QUEUE_URL, "region": "eu-west-1", "accessKeyId": KEY}
    texts = [
        world.text("GET", f"/app/{app}/destination"),
        world.text("GET", f"/app/{app}/endpoint"),
        world.text("GET", f"/app/{app}/destination/{shown['id']}"),
    ]
    assert not [each for each in texts if SECRET in each or "wJalr" in each]
    assert "wJalr" not in repr(list(world.ports.endpoints._endpoints.values()))
    # When something else of it changes, the secret stays
    world.ask("PATCH", f"/app/{app}/destination/{shown['id']}", {"type": "sqs", "metadata": {"a": "b"}, "config": {}})
    world.ask("POST", f"/app/{app}/msg", {"eventType": "t", "payload": {}})
    world.run(seconds=5)
    [request] = world.sender.requests
    assert f"Credential={KEY}/" in request.headers["Authorization"]
    # And another key needs its own secret, while a role takes the place of both
    path = f"/app/{app}/destination/{shown['id']}"
    other = {"type": "sqs", "config": {"accessKeyId": "AKIAOTHEROTHEROTHER1"}}
    assert world.call("PATCH", path, other).status == 422
    assert "accessKeyId" not in world.ask("PATCH", path, {"type": "sqs", "config": {"roleArn": ROLE}})["config"]


def test_a_destination_is_changed_replaced_and_deleted(world: WebhooksWorld, app: str) -> None:
    shown = create(world, app, uid="q", metadata={"a": "b"})
    path = f"/app/{app}/destination/q"
    off = world.ask("PATCH", path, {"type": "sqs", "status": "disabled"})
    assert (off["status"], off["metadata"], off["config"]) == ("disabled", {"a": "b"}, shown["config"])
    # A replacement says all of it
    whole = world.call("PUT", path, {**SNS, "uid": "q"})
    assert (whole.status, whole.body["type"], whole.body["metadata"], whole.body["status"]) == (
        200,
        "sns",
        {},
        "enabled",
    )
    assert world.call("PUT", f"/app/{app}/destination/new", {**BUS, "uid": "new"}).status == 201
    assert world.ask("POST", f"{path}/secret/rotate", {})["key"].startswith("whsec_")
    assert world.call("DELETE", path).status == 204
    assert world.call("GET", path).status == 404


def test_what_is_no_destination_is_not_found_as_one(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app, uid="http")
    for name in (endpoint, "http", "sink_x", endpoint.replace("ep_", "sink_")):
        for method in ("GET", "PATCH", "DELETE"):
            assert (
                world.call(method, f"/app/{app}/destination/{name}", SQS if method == "PATCH" else None).status == 404
            )
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}")["id"] == endpoint


def test_lists_go_on_from_an_iterator(world: WebhooksWorld, app: str) -> None:
    wanted = {create(world, app)["id"] for _ in range(5)}
    found, iterator, done = set(), "", False
    while not done:
        query = {"limit": "2", **({"iterator": iterator} if iterator else {})}
        page = world.ask("GET", f"/app/{app}/destination", **query)
        found |= {each["id"] for each in page["data"]}
        iterator, done = page["iterator"], page["done"]
    assert found == wanted


def test_a_transformation_is_given_the_event_and_returns_messages(world: WebhooksWorld, app: str) -> None:
    # Given a destination with code, as Svix writes it
    world.ports.roles.trusting[ROLE] = world.ask("GET", f"/app/{app}/external-id")["externalId"]
    path = f"/app/{app}/destination/{create(world, app)['id']}/transformation"
    assert world.ask("GET", path)["code"] is None
    code = "function handler(input) { return { messages: input.events } }"
    assert world.ask("PATCH", path, {"code": code, "enabled": True}) == {}
    world.ports.scripts.does = lambda asked: {"result": {"payload": {"json": '{"n":2}'}}}
    # When a message is sent, then the code gets a list of one event, and what it returns is sent
    world.ask("POST", f"/app/{app}/msg", {"eventType": "invoice.paid", "payload": {"n": 1}})
    world.run(seconds=1)
    [asked] = world.ports.scripts.asked
    assert asked["answers"] == "messages"
    assert json.loads(asked["input"])["events"] == [{"eventType": "invoice.paid", "payload": {"n": 1}}]
    [sent] = [each for each in world.sender.requests if each.url.startswith(SERVICE)]
    assert json.loads(json.loads(sent.body)["MessageBody"]) == {"payload": {"n": 2}, "eventType": "invoice.paid"}


@pytest.mark.parametrize("kind", ["snowflake", "amazonS3", "elasticSearch"])
def test_another_type_is_named_in_a_501(world: WebhooksWorld, app: str, kind: str) -> None:
    refused = world.call("POST", f"/app/{app}/destination", {"type": kind, "config": {"bucket": "x"}})
    assert (refused.status, refused.body["code"]) == (501, "not_implemented")
    assert kind in refused.body["detail"]


HUBS = "arn:aws:iam::999999999999:role/x"
WRONG: list[dict[str, Any]] = [
    {"config": None},
    {"type": "nonsense"},
    {"uid": "sink_x"},
    {"uid": "a.b"},
    {"status": "paused"},
    {"batchSize": 1_001},
    {"maxWaitSecs": 301},
    {"eventTypes": ["no.such.type"]},
    {"config": {"queueUrl": QUEUE_URL}},
    {"config": {"queueUrl": QUEUE_URL, "accessKeyId": KEY}},
    {"config": {"queueUrl": QUEUE_URL, "accessKeyId": KEY, "secretAccessKey": SECRET, "roleArn": ROLE}},
    {"config": {"queueUrl": QUEUE_URL, "roleArn": HUBS}},
    {"config": {"queueUrl": QUEUE_URL, "roleArn": ROLE, "externalId": "guessed"}},
    {"config": {"queueUrl": QUEUE_URL, "roleArn": ROLE, "region": "us-east-1"}},
    {"config": {"queueUrl": QUEUE_URL, "roleArn": "arn:aws:iam::111122223333:role/a\r\nX: 1"}},
    {"config": {"queueUrl": QUEUE_URL, "roleArn": ROLE + "\u0000"}},
    {"config": {"queueUrl": f"https://evil.example/{ACCOUNT}/orders", "roleArn": ROLE}},
    {"config": {"queueUrl": f"https://sqs.eu-west-1.amazonaws.com.evil.example/{ACCOUNT}/q", "roleArn": ROLE}},
    {"config": {"queueUrl": f"https://sqs.eu-west-1.amazonaws.com@evil.example/{ACCOUNT}/q", "roleArn": ROLE}},
    {"config": {"queueUrl": f"{QUEUE_URL}\r\nX: 1", "roleArn": ROLE}},
    {"config": {"queueUrl": f"{QUEUE_URL}?role=x", "roleArn": ROLE}},
    {
        "config": {
            "queueUrl": f"http://169.254.169.254/{ACCOUNT}/q",
            "endpointUrl": "http://169.254.169.254",
            "region": "eu-west-1",
            "roleArn": ROLE,
        }
    },
    {"config": {"queueUrl": QUEUE_URL, "endpointUrl": "http://a.example", "roleArn": ROLE}},
    {"config": {"queueUrl": QUEUE_URL, "endpointUrl": "https://a.example/x?y", "roleArn": ROLE}},
    {"config": {"queueUrl": 7, "roleArn": ROLE}},
    {"type": "sns", "config": {"topicArn": "arn:aws:sqs:eu-west-1:111122223333:t", "roleArn": ROLE}},
    {"type": "sns", "config": {"topicArn": f"arn:aws:sns:eu-west-1:{ACCOUNT}:t:sub", "roleArn": ROLE}},
    {"type": "eventBridge", "config": {"eventBusName": "bus", "accessKeyId": KEY, "secretAccessKey": SECRET}},
    {"type": "eventBridge", "config": {**BUS["config"], "detailType": "x" * 129}},
    {"type": "eventBridge", "config": {**BUS["config"], "detailType": "a\nb"}},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_what_could_not_be_right_is_refused_and_nothing_is_stored(world: WebhooksWorld, wrong: dict[str, Any]) -> None:
    app = world.make_app()
    there = create(world, app, uid="there")
    for method, path in (("POST", ""), ("PUT", "/there"), ("PUT", "/new")):
        refused = world.call(method, f"/app/{app}/destination{path}", {**SQS, **wrong})
        assert refused.status == 422, refused
        assert {"loc", "msg", "type"} <= set(refused.body["detail"][0])
        assert SECRET not in refused.text
    assert world.ask("GET", f"/app/{app}/destination")["data"] == [there]
    assert world.ports.roles.asked == []


def test_a_portal_makes_destinations_of_its_application_alone(world: WebhooksWorld) -> None:
    app, other = world.make_app(), world.make_app("Other")
    token = world.ask("POST", f"/auth/app-portal-access/{app}", {})["token"]
    shown = world.ask("POST", f"/app/{app}/destination", SQS, token=token)
    assert world.ask("GET", f"/app/{app}/external-id", token=token)["externalId"] == shown["config"]["externalId"]
    for path in (f"/app/{other}/destination", f"/app/{other}/external-id"):
        assert world.call("GET", path, token=token).status in (401, 403, 404)
    # And not at hosts that the operator opened to the project alone, also when it is sent a message
    internal = {
        "queueUrl": f"http://10.0.0.1/{ACCOUNT}/q",
        "endpointUrl": "http://10.0.0.1",
        "region": "eu-west-1",
        "accessKeyId": KEY,
        "secretAccessKey": SECRET,
    }
    world.ask("DELETE", f"/app/{app}/destination/{shown['id']}")
    world.ask("POST", f"/app/{app}/destination", {"type": "sqs", "config": internal}, token=token)
    project = world.config.project(PROJECT)
    assert project is not None
    world.config.put_project(replace(project, allowed_targets=("10.0.0.1",)))
    world.ask("POST", f"/app/{app}/msg", {"eventType": "t", "payload": {}})
    world.run(seconds=5)
    [request] = world.sender.requests
    assert request.allowed_targets == ()


def test_nobody_reads_anothers_external_id(world: WebhooksWorld, app: str) -> None:
    assert world.call("GET", f"/app/{app}/external-id", token=world.other_token).status == 404
    assert world.call("GET", f"/app/{app}/external-id", token="wrong").status == 401
    assert OTHER_PROJECT not in json.dumps(world.ask("GET", f"/app/{app}/external-id"))
