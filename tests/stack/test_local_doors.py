"""What the local stack does in place of API Gateway, and what it does not allow."""

from __future__ import annotations

import pytest
import requests
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

ORIGIN = "http://admin.example"


@pytest.mark.parametrize(
    ("path", "status", "allowed"),
    [
        ("/3/projects/{project}/queues/q/messages", 200, "POST"),
        ("/3/projects/{project}/queues", 200, "GET"),
        ("/api/stores/{project}/messages", 204, "POST"),
        ("/notification2/subscriptions", 200, "POST"),
    ],
)
def test_a_browser_that_asks_first_is_answered_by_the_hub(
    stack: RunningStack, path: str, status: int, allowed: str
) -> None:
    # Given a browser's preflight request
    headers = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "x-augury-token",
    }
    # When it is made
    url = stack.base_url + path.format(project=stack.project_id)
    answer = requests.options(url, headers=headers, timeout=40)
    # Then the hub's own answer is returned, as on AWS
    assert answer.status_code == status
    assert allowed in answer.headers["Allow"].split(", ")


def test_a_browser_may_read_the_hub_protocols_answers(stack: RunningStack) -> None:
    # Given an admin client on another origin, when it sends a preflight request, and then reads
    url = f"{stack.base_url}/api/stores/{stack.project_id}/integrations"
    headers = {"Origin": ORIGIN, "X-Augury-Token": stack.token}
    answers = [requests.options(url, headers=headers, timeout=40), requests.get(url, headers=headers, timeout=40)]
    # Then both answers allow it
    for answer in answers:
        assert answer.ok
        assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2", "[::1]", "[::ffff:127.0.0.1]"])
def test_no_subscriber_reaches_the_emulator(stack: RunningStack, host: str) -> None:
    # Given a subscriber that would write into the stack's tables
    subscribers = [{"name": "thief", "url": f"http://{host}:{stack.place.aws_port}/"}]
    # When it is registered, then it is refused
    answer = stack.call(
        "PUT", "/queues/own", json={"queue": {"type": "multicast", "push": {"subscribers": subscribers}}}
    )
    assert answer.status_code == 400
    assert "is not open to subscribers" in answer.json()["msg"]


def test_a_refused_subscriber_is_told_how_to_allow_it_here(stack: RunningStack) -> None:
    # Given a subscriber in the local network
    subscribers = [{"name": "printer", "url": "http://192.168.1.20/in"}]
    # When it is registered
    answer = stack.call(
        "PUT", "/queues/own", json={"queue": {"type": "multicast", "push": {"subscribers": subscribers}}}
    )
    # Then the refusal says why, and how to allow it on this machine
    assert answer.status_code == 400
    message = answer.json()["msg"]
    assert "private address, which is not allowed" in message
    assert "PUSHHUB_ALLOWED_TARGETS=" in message
    assert "make up" in message
