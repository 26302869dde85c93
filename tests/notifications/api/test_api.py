"""The REST half of Notifications 2.0 as API Gateway events, with everything behind it in memory."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

import pytest
from tests.fakes import Fault, FaultPlan
from tests.fakes.gateway import http_event
from tests.notifications.world import PROJECT, NotificationWorld

from pushhub.engine.model.project import Project
from pushhub.engine.projects.tokens import token_hash
from pushhub.notifications.log import Retention
from pushhub.notifications.publish import NotificationPublish

BASE = "http://hub.example"
TOKEN, OTHER_TOKEN, OTHER_PROJECT = "t0ken-of-the-tenant", "an0ther", "5e0000000000000000000002"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: Any


class Client:
    """Calls the API."""

    def __init__(self, world: NotificationWorld) -> None:
        self.world = world
        world.config.put_token(PROJECT, token_hash(TOKEN), "", 0)
        world.config.put_project(Project(project_id=OTHER_PROJECT, created_at=0))
        world.config.put_token(OTHER_PROJECT, token_hash(OTHER_TOKEN), "", 0)
        self.authorization = basic(f"{PROJECT}/me", TOKEN)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """``body`` is sent as JSON, or unchanged if it is text."""
        api = self.world.notifications.api
        raw_path, _, query = path.partition("?")
        shown = {"authorization": self.authorization, **headers}
        answer = api.handle(http_event(method, raw_path, body, query=query, headers=shown))
        text = answer["body"]
        return Answer(answer["statusCode"], answer["headers"], json.loads(text) if text else None)


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def client() -> Client:
    return Client(NotificationWorld())


def subscribe(client: Client, **more: Any) -> Answer:
    return client.call("POST", "/notification2/subscriptions", {"context": "tenant", "subscription": "orders"} | more)


@pytest.mark.parametrize(
    "authorization",
    [
        basic(f"{PROJECT}/me", TOKEN),
        basic(PROJECT, TOKEN),
        basic(f"{PROJECT}/some/body", TOKEN),
        f"Bearer {TOKEN}",
        f"bearer  {TOKEN}",
    ],
)
def test_a_tenant_is_known_by_basic_and_by_bearer_credentials(client: Client, authorization: str) -> None:
    client.authorization = authorization
    assert subscribe(client).body["source"] == {"id": PROJECT}


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Basic",
        "Basic !",
        "Basic " + base64.b64encode(b"\xff:").decode(),
        basic(f"{PROJECT}/me", "wrong"),
        basic(f"{PROJECT}/me", ""),
        basic(f"{OTHER_PROJECT}/me", TOKEN),
        basic("/me", TOKEN),
        basic("me", TOKEN),
        "Bearer",
        "Bearer wrong",
        f"OAuth {TOKEN}",
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/subscriptions"), ("GET", "/subscriptions/1"), ("POST", "/token"), ("POST", "/notifications")],
)
def test_everybody_else_is_refused_in_json_with_a_message(
    client: Client, authorization: str, method: str, path: str
) -> None:
    client.authorization = authorization
    answer = client.call(method, "/notification2" + path, {})
    assert answer.status == 401
    assert answer.headers["Content-Type"] == "application/vnd.com.nsn.cumulocity.error+json"
    assert answer.body["error"] == "security/Unauthorized"
    assert answer.body["message"] == "Invalid credentials! : Bad credentials"


def test_a_subscription_is_made_shown_listed_and_deleted(client: Client) -> None:
    created = subscribe(client, context="mo", source={"id": "251982"}, subscriptionFilter={"apis": None})
    assert (created.status, created.headers["Content-Type"]) == (
        201,
        "application/vnd.com.nsn.cumulocity.subscription+json",
    )
    path = created.body["self"].removeprefix(BASE)
    assert client.call("GET", path).body == created.body
    listed = client.call("GET", "/notification2/subscriptions?source=251982&pageSize=1&pageSize=1&withTotalPages=true")
    assert listed.headers["Content-Type"] == "application/vnd.com.nsn.cumulocity.subscriptioncollection+json"
    assert listed.body["subscriptions"] == [created.body]
    assert listed.body["statistics"] == {"currentPage": 1, "pageSize": 1, "totalPages": 1}
    gone = client.call("DELETE", path)
    assert (gone.status, gone.body) == (204, None)
    for method in ("GET", "DELETE"):
        missing = client.call(method, path)
        assert (missing.status, missing.body["error"]) == (404, "reliable-notification/Not Found")
        assert missing.body["message"] == "Finding subscription from database failed"


def test_a_second_one_of_the_same_source_context_and_name_is_a_duplicate(client: Client) -> None:
    subscribe(client)
    again = subscribe(client)
    assert (again.status, again.body["error"]) == (409, "reliable-notification/Duplicate")
    assert subscribe(client, nonPersistent=True).status == 409
    assert subscribe(client, context="mo", source={"id": "1"}).status == 201
    assert subscribe(client, subscription="other").status == 201


def test_subscriptions_of_a_source_are_deleted_together(client: Client) -> None:
    for name in ("a", "b"):
        subscribe(client, context="mo", source={"id": "1"}, subscription=name)
        subscribe(client, subscription=name)
    assert client.call("DELETE", "/notification2/subscriptions?source=1&context=mo").status == 204
    assert len(client.call("GET", "/notification2/subscriptions").body["subscriptions"]) == 2
    assert client.call("DELETE", "/notification2/subscriptions?context=tenant").status == 204
    assert client.call("GET", "/notification2/subscriptions").body["subscriptions"] == []
    assert client.call("DELETE", "/notification2/subscriptions").status == 422


def test_tenants_do_not_see_each_other_s_subscriptions(client: Client) -> None:
    path = subscribe(client).body["self"].removeprefix(BASE)
    client.authorization = f"Bearer {OTHER_TOKEN}"
    assert client.call("GET", path).status == 404
    assert client.call("DELETE", path).status == 404
    assert client.call("GET", "/notification2/subscriptions").body["subscriptions"] == []
    assert subscribe(client).status == 201


@pytest.mark.parametrize("body", ["", "{", "[]", '{"context":"mo"}', '{"context":"tenant","subscription":"a b"}'])
def test_wrong_bodies_are_422_with_a_message(client: Client, body: str) -> None:
    answer = client.call("POST", "/notification2/subscriptions", body)
    assert answer.status == 422
    assert answer.body["message"]


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "application/vnd.x+json", ""])
def test_bodies_are_read_whatever_their_content_type(client: Client, content_type: str) -> None:
    headers = {"content-type": content_type} if content_type else {}
    answer = client.call("POST", "/notification2/token", {"subscriber": "app", "subscription": "orders"}, **headers)
    assert answer.status == 200


def test_a_token_connects_and_can_be_verified_and_used_to_unsubscribe(client: Client) -> None:
    token = client.call("POST", "/notification2/token", {"subscriber": "app", "subscription": "orders"}).body["token"]
    client.world.connect("a", token)
    client.authorization = ""
    claims = client.call("GET", f"/notification2/token?token={token}")
    assert (claims.status, claims.body["sub"]) == (200, "app")
    # With a slash at the end, as some clients write it; with an empty body, or none.
    done = client.call("POST", f"/notification2/unsubscribe/?token={token}", "")
    assert (done.status, done.body) == (200, {"result": "DONE"})
    again = client.call("POST", f"/notification2/unsubscribe?token={token}")
    assert again.status == 500
    assert again.body["message"]
    assert client.call("POST", "/notification2/unsubscribe?token=x").status == 401
    assert client.call("POST", "/notification2/unsubscribe").status == 401


def test_what_a_handshake_would_be_answered(client: Client) -> None:
    token = client.world.token()
    for path in ("/notification2/consumer", "/notification2/consumer/"):
        assert client.call("GET", f"{path}?token={token}").status == 426
    client.world.connect("a", token)
    assert client.call("GET", f"/notification2/consumer/?token={token}&consumer=x").status == 409
    assert client.call("GET", "/notification2/consumer/?token=x").status == 401
    for names in ("consumer=", "consumer=%20", "consumer=x&consumer=y"):
        assert client.call("GET", f"/notification2/consumer/?token={token}&{names}").status == 422


def test_publishing_answers_an_id_for_each_notification(client: Client) -> None:
    subscribe(client)
    client.world.connect("a")
    one = client.call("POST", "/notification2/notifications", {"api": "events", "source": "1", "data": {"n": 1}})
    two = client.call(
        "POST",
        "/notification2/notifications",
        [
            {"api": "events", "source": "1", "data": {"n": 2}},
            {"api": "measurements", "source": "1", "data": {"n": 3}},
            {"api": "alarms", "source": "2", "action": "UPDATE", "data_base64": "/wA="},
        ],
    )
    assert (one.status, two.status) == (201, 201)
    assert len({*one.body["ids"], *two.body["ids"]}) == 4
    client.world.send_all()
    # Measurements reach a tenant's subscription only if requested by name.
    assert [each.body for each in client.world.frames("a")] == ['{"n": 1}', '{"n": 2}', "/wA="]


def test_rules_of_several_subscriptions_of_one_topic_publish_once(client: Client) -> None:
    subscribe(client)
    subscribe(client, context="mo", source={"id": "1"})
    client.world.connect("a")
    client.call("POST", "/notification2/notifications", {"api": "events", "source": "1", "data": {"n": 1}})
    client.world.send_all()
    assert client.world.numbers("a") == [1]


def test_a_deleted_subscription_publishes_no_more_but_its_backlog_stays(client: Client) -> None:
    path = subscribe(client).body["self"].removeprefix(BASE)
    client.world.connect("a")
    client.call("POST", "/notification2/notifications", {"api": "events", "source": "1", "data": {"n": 1}})
    client.call("DELETE", path)
    client.call("POST", "/notification2/notifications", {"api": "events", "source": "1", "data": {"n": 2}})
    client.world.send_all()
    assert client.world.numbers("a") == [1]


def test_a_body_too_large_for_a_frame_is_refused(client: Client) -> None:
    subscribe(client)
    answer = client.call(
        "POST", "/notification2/notifications", {"api": "events", "source": "1", "data": "x" * 131_072}
    )
    assert answer.status == 413
    assert answer.body["message"]


def test_a_full_topic_is_told_with_what_the_others_took_and_a_key_to_repeat_with(client: Client) -> None:
    # Given two topics, one of which is full
    client.world.ports.retention = Retention(size=30)
    client.world.start()
    subscribe(client, subscriptionFilter={"apis": ["alarms"]})
    client.world.connect("a")
    client.call("POST", "/notification2/notifications", {"api": "alarms", "source": "1", "data": {"n": "x" * 30}})
    subscribe(client, subscription="other")
    client.world.connect("b", client.world.token(topic="other"))
    request = {"api": "alarms", "source": "1", "data": {"n": 2}}
    # When something is published to both
    answer = client.call("POST", "/notification2/notifications", request)
    # Then the publisher learns which one was full, and how to repeat what that one did not accept
    assert (answer.status, answer.body["error"]) == (500, "reliable-notification/Backlog Quota Exceeded")
    assert answer.body["message"] == "Backlog quota of 30 bytes reached for topic orders: acknowledge or unsubscribe"
    key = answer.headers["Idempotency-Key"]
    details = answer.body["details"]
    assert details["full"] == [{"subscription": "orders", "nonPersistent": False}]
    assert details["taken"] == [{"subscription": "other", "nonPersistent": False}]
    assert details["idempotencyKey"] == key
    client.world.send_all()
    client.world.consumers.receive("a", client.world.frames("a")[0].ack_id)
    client.world.disconnect("a")
    client.world.connect("c")
    client.world.send_all()
    again = client.call("POST", "/notification2/notifications", request, **{"idempotency-key": key})
    assert (again.status, again.body["ids"]) == (201, details["ids"])
    client.world.send_all()
    assert (client.world.numbers("c"), client.world.numbers("b")) == ([2], [2])


@pytest.mark.parametrize("key", ["", "x" * 256, "\u00e4", "a\tb"])
def test_a_key_that_is_none_is_refused(client: Client, key: str) -> None:
    request = {"api": "events", "source": "1", "data": 1}
    assert client.call("POST", "/notification2/notifications", request, **{"idempotency-key": key}).status == 422


def test_unknown_paths_and_methods_say_so(client: Client) -> None:
    assert client.call("GET", "/notification2/nothing").status == 404
    wrong = client.call("PUT", "/notification2/subscriptions", {})
    assert (wrong.status, wrong.headers["Allow"]) == (405, "DELETE, GET, HEAD, OPTIONS, POST")
    assert wrong.body["message"]
    assert client.call("OPTIONS", "/notification2/token").headers["Allow"] == "GET, HEAD, OPTIONS, POST"
    assert client.call("GET", "/notification2").body["self"] == f"{BASE}/notification2"


def test_a_fault_is_a_500_that_tells_nothing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret internals")

    monkeypatch.setattr(NotificationPublish, "publish", fail)
    answer = client.call("POST", "/notification2/notifications", {"api": "events", "source": "1", "data": 1})
    assert answer.status == 500
    assert "secret" not in json.dumps(answer.body)
    assert answer.body["message"] == "Internal server error"


def test_an_unavailable_table_is_a_500_too(client: Client) -> None:
    client.world._plan = FaultPlan(Fault.FAILS, of="backlogs.backlog")
    client.world.start()
    token = client.world.token()
    answer = client.call("POST", f"/notification2/unsubscribe?token={token}")
    assert (answer.status, answer.body["error"]) == (500, "general/internalError")


def test_paths_with_odd_bytes_and_large_bodies_are_refused(client: Client) -> None:
    assert client.call("GET", "/notification2/\ufffd").status == 422
    assert client.call("POST", "/notification2/subscriptions", "x" * 4_194_305).status == 413


def a_client() -> Client:
    """A client with subscriptions that use every field of a notification."""
    client = Client(NotificationWorld())
    subscribe(client, subscriptionFilter={"typeFilter": "'a' or 'b'"}, fragmentsToCopy=["x"])
    subscribe(client, context="mo", source={"id": "1"}, subscription="other", subscriptionFilter={"apis": ["*"]})
    client.world.connect("a")
    return client


@pytest.mark.parametrize("kind", [["a"], {"a": 1}, [], {}, 1, None, True])
def test_a_notification_whose_type_is_no_text_is_of_no_type_and_keeps_its_batch(kind: Any) -> None:
    # Given a subscription with a type filter, and a batch with an odd notification between two that fit
    client = a_client()
    batch = [
        {"api": "events", "source": "2", "data": {"type": each, "n": number}}
        for number, each in enumerate(["a", kind, "b"])
    ]
    # When it is published, then those that fit arrive
    assert client.call("POST", "/notification2/notifications", batch).status == 201
    client.world.send_all()
    bodies = [json.loads(each.body) for each in client.world.frames("a")]
    assert [each["type"] for each in bodies] == ["a", "b"]
