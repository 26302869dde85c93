"""Who may do what: tokens in header, query or body; projects apart from each other (IronMQ v3 section 1)."""

from __future__ import annotations

import json

import pytest
from tests.engine.world import PROJECT
from tests.ironmq.api.hub import OTHER_PROJECT, Hub

from pushhub.engine.projects.projects import Projects
from pushhub.engine.projects.tokens import token_hash

REFUSED = {"msg": "Invalid project/token combination"}
QUEUES = f"/3/projects/{PROJECT}/queues"

ROUTES = [
    ("GET", ""),
    ("PUT", "/q"),
    ("GET", "/q"),
    ("PATCH", "/q"),
    ("DELETE", "/q"),
    ("POST", "/q/subscribers"),
    ("PUT", "/q/subscribers"),
    ("DELETE", "/q/subscribers"),
    ("POST", "/q/messages"),
    ("GET", "/q/messages"),
    ("DELETE", "/q/messages"),
    ("POST", "/q/webhook"),
    ("POST", "/q/reservations"),
    ("GET", "/q/messages/1"),
    ("DELETE", "/q/messages/1"),
    ("POST", "/q/messages/1/touch"),
    ("POST", "/q/messages/1/release"),
    ("GET", "/q/messages/1/subscribers"),
]


@pytest.mark.parametrize("scheme", ["OAuth", "oauth", "Bearer", "OAuth  "])
def test_the_token_in_the_header(hub: Hub, scheme: str) -> None:
    assert hub.send("GET", QUEUES, headers={"Authorization": f"{scheme} {hub.token}"}).status == 200


def test_the_token_in_the_query(hub: Hub) -> None:
    assert hub.send("GET", f"{QUEUES}?oauth={hub.token}").status == 200


def test_the_token_in_the_body(hub: Hub) -> None:
    body = json.dumps({"oauth": hub.token, "messages": [{"body": "x"}]}).encode()
    assert hub.send("POST", f"{QUEUES}/q/messages", body).status == 201
    assert hub.send("DELETE", f"{QUEUES}/q/messages", json.dumps({"oauth": hub.token}).encode()).status == 200
    assert hub.send("DELETE", f"{QUEUES}/q", json.dumps({"oauth": hub.token}).encode()).status == 200


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "authorization", [None, "OAuth wrong", "OAuth", "OAuth ", "Basic dXNlcjpwYXNz", "wrong", "", "Bearer wrong"]
)
def test_every_route_refuses_others(hub: Hub, method: str, path: str, authorization: str | None) -> None:
    # When a request comes without a valid token, whether or not its target exists
    headers = {} if authorization is None else {"Authorization": authorization}
    result = hub.send(method, QUEUES + path, b'{"ids": ["1"]}', headers)
    # Then the answer is always the same
    assert (result.status, result.body) == (401, REFUSED)


@pytest.mark.parametrize("body", [b"[[[", b"{}", b'{"oauth": 1}', b'{"oauth": ""}', b"\xff", b'{"oauth": "x"}'])
def test_bad_bodies_do_not_get_past_the_token(hub: Hub, body: bytes) -> None:
    assert hub.send("POST", f"{QUEUES}/q/messages", body).status == 401
    assert hub.send("DELETE", f"{QUEUES}/q/messages/1", body).status == 401


def test_a_wrong_token_in_the_header_is_not_saved_by_a_right_one_elsewhere(hub: Hub) -> None:
    result = hub.send("GET", f"{QUEUES}?oauth={hub.token}", headers={"Authorization": "OAuth wrong"})
    assert result.status == 401


def test_a_token_of_one_project_sees_nothing_of_another(hub: Hub) -> None:
    # Given the same name in two projects
    hub.post("q", "mine")
    assert (
        hub.call("POST", "/queues/q/messages", {"messages": [{"body": "theirs"}]}, project=OTHER_PROJECT).status == 201
    )
    # Then each sees its own
    assert [each["body"] for each in hub.reserve("q", n=10)] == ["mine"]
    theirs = hub.call("POST", "/queues/q/reservations", {"n": 10}, project=OTHER_PROJECT)
    assert [each["body"] for each in theirs.body["messages"]] == ["theirs"]
    # And one project's token is not valid for the other
    result = hub.send("GET", f"/3/projects/{OTHER_PROJECT}/queues/q", token=hub.token)
    assert (result.status, result.body) == (401, REFUSED)


def test_a_revoked_token_is_refused(hub: Hub) -> None:
    Projects(config=hub.world.config, clock=hub.world.clock).revoke_token(PROJECT, token_hash(hub.token)[:12])
    assert hub.call("GET", "/queues").status == 401
