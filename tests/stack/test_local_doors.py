"""What the local stack does in place of API Gateway, and what it does not allow."""

from __future__ import annotations

import base64
import contextlib
import secrets

import pytest
import requests
from tests.stack.project import until
from tests.stack.running import RunningStack
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

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


def test_no_secret_is_in_any_log(stack: RunningStack) -> None:
    # Given a project of which every secret is known
    project = stack.make_project("logged")
    headers = {"Authorization": f"Bearer {project.token}"}
    marks = {name: f"{name}-{secrets.token_hex(12)}" for name in ("wrong", "oauth", "header", "password", "query")}
    signing = base64.b64encode(secrets.token_bytes(24)).decode()

    def asked(method: str, path: str, body: object = None) -> requests.Response:
        answer = requests.request(method, f"{stack.base_url}{path}", json=body, headers=headers, timeout=40)
        assert answer.ok, answer.text
        return answer

    # When consumers connect with a token in their URL: a good one, a wrong one, one that is damaged
    rule = {"context": "tenant", "subscription": "logged"}
    asked("POST", "/notification2/subscriptions", rule)
    token = asked("POST", "/notification2/token", {"subscription": "logged", "subscriber": "me"}).json()["token"]
    door = stack.base_url.replace("http", "ws", 1) + "/notification2/consumer/"
    with connect(f"{door}?token={token}", proxy=None, open_timeout=60):
        pass
    for wrong in (marks["wrong"], f"{token}x", f"{token}&token={token}"):
        with contextlib.suppress(InvalidStatus), connect(f"{door}?token={wrong}", proxy=None, open_timeout=60):
            pass
    # And a queue is asked for with a token in the query, right and wrong, and an address that does not exist
    queues = f"{stack.base_url}/3/projects/{project.project_id}/queues"
    assert requests.get(f"{queues}?oauth={project.token}", timeout=40).ok
    assert requests.get(f"{queues}?oauth={marks['oauth']}", timeout=40).status_code == 401
    requests.get(f"{stack.base_url}/nothing?token={project.token}", timeout=40)
    # And subscribers with secrets fail
    url = f"http://user:{marks['password']}@127.0.0.1:9/?key={marks['query']}"
    subscriber = {"name": "s", "url": url, "headers": {"Authorization": marks["header"]}}
    push = {"subscribers": [subscriber], "retries": 0, "error_queue": "errors"}
    path = f"/3/projects/{project.project_id}/queues/logged"
    asked("PUT", path, {"queue": {"type": "multicast", "push": push}})
    asked("POST", f"{path}/messages", {"messages": [{"body": "x"}]})
    app = asked("POST", "/api/v1/app", {"name": "logged"}).json()["id"]
    asked("POST", f"/api/v1/app/{app}/endpoint", {"url": "http://127.0.0.1:9/", "secret": f"whsec_{signing}"})
    asked("POST", f"/api/v1/app/{app}/msg", {"eventType": "a.b", "payload": {}})

    def failed() -> bool:
        shown = requests.get(f"{queues}/errors", headers=headers, timeout=40)
        return bool(shown.ok and shown.json()["queue"]["size"])

    until(failed, 120, lambda: "the subscriber has not failed")
    # Then none of the secrets is in anything that the stack has logged
    logs = list(stack.place.logs.iterdir())
    assert len(logs) >= 2
    known = {
        **marks,
        "token": project.token,
        "consumer's token": token,
        "signature": token.rpartition(".")[2],
        "key": signing,
    }
    found = [(name, log.name) for name, secret in known.items() for log in logs if secret.encode() in log.read_bytes()]
    assert found == []
