"""Properties of the queue API (IronMQ v3) that only real time, real HTTP and the real path through gateway and
functions can show.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import requests
from tests.stack.project import ProjectClient, unique
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

LIMIT = 4 * 1024 * 1024


@pytest.fixture(scope="module")
def project(stack: RunningStack) -> ProjectClient:
    return ProjectClient.another(stack)


@pytest.fixture
def connection(project: ProjectClient) -> Iterator[http.client.HTTPConnection]:
    with contextlib.closing(http.client.HTTPConnection(urlsplit(project.base_url).netloc, timeout=40)) as opened:
        yield opened


def assert_told(answer: requests.Response, status: int, msg: str | None = None) -> None:
    """Check an error as clients need it: JSON, with exactly that content type, and a text."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert int(answer.headers["Content-Length"]) > 0
    assert answer.json()["msg"]
    assert msg is None or answer.json()["msg"] == msg


# Time


def test_a_long_poll_is_answered_when_a_message_comes(project: ProjectClient) -> None:
    # Given a consumer that waits, while another one has waited in vain
    queue, other = unique("poll"), unique("nothing")
    for each in (queue, other):
        project.make_queue(each)
    with ThreadPoolExecutor() as executor:
        waiting = executor.submit(project.reserve, queue, wait=30)
        assert project.reserve(other, wait=2) == []
        assert not waiting.done()
        # When a message is posted, then it gets that
        project.post(queue, "x")
        [message] = waiting.result()
    assert message["body"] == "x"


def test_a_long_poll_sees_a_reservation_lapse(project: ProjectClient) -> None:
    # Given a message touched to stay reserved, and one reserved for two seconds
    queue = unique("lapse")
    project.post(queue, "touched", "lapses")
    [touched] = project.reserve(queue, n=1, timeout=60)
    project.take(
        "POST",
        f"/queues/{queue}/messages/{touched['id']}/touch",
        {"reservation_id": touched["reservation_id"], "timeout": 600},
    )
    [lapsing] = project.reserve(queue, n=1, timeout=2)
    # When a consumer waits, then it gets the second one when its reservation ends
    [message] = project.reserve(queue, wait=20)
    assert (message["id"], message["reserved_count"]) == (lapsing["id"], 2)
    assert project.reserve(queue) == []
    answer = project.call("DELETE", f"/queues/{queue}/messages/{lapsing['id']}", lapsing)
    assert_told(answer, 403)


# Sizes and numbers


def json_of_size(size: int) -> bytes:
    """A post of one message with the given size in bytes."""
    head, tail = b'{"messages":[{"body":"', b'"}]}'
    return head + b"x" * (size - len(head) - len(tail)) + tail


def test_a_request_of_4_mib_is_taken_and_one_byte_more_is_not(project: ProjectClient) -> None:
    queue, headers = unique("size"), {"Content-Type": "application/json"}
    path = f"/queues/{queue}/messages"
    assert_told(project.send("POST", path, data=json_of_size(LIMIT + 1), headers=headers), 413)
    assert project.call("GET", f"/queues/{queue}").status_code == 404
    answer = project.send("POST", path, data=json_of_size(LIMIT), headers=headers)
    assert (answer.status_code, answer.json()["msg"]) == (201, "Messages put on queue.")
    [message] = project.reserve(queue, delete=True)
    assert message["body"] == "x" * (LIMIT - len(json_of_size(40)) + len("x" * 14))
    # And likewise for the raw bytes of a webhook, and for what even the gateway refuses
    path = f"/queues/{queue}/webhook"
    binary = {"Content-Type": "application/octet-stream"}
    assert_told(project.send("POST", path, data=bytes(LIMIT + 1), headers=binary), 413)
    assert_told(project.send("POST", path, data=bytes(10 * 1024 * 1024 + 1), headers=binary), 413)
    assert project.send("POST", path, data=bytes(LIMIT), headers=binary).status_code == 201
    assert project.info(queue)["total_messages"] == 2


# Ways to ask


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "application/octet-stream",
        "image/png",
        "application/x-www-form-urlencoded",
    ],
)
def test_a_webhook_takes_bytes_as_they_are(project: ProjectClient, content_type: str | None) -> None:
    # Given a body with every byte value
    queue, body = unique("webhook"), bytes(range(256)) * 3 + b"\r\n\x00\xff\xfe"
    headers = {"Content-Type": content_type} if content_type else {}
    # When it is posted with any content type
    answer = project.send("POST", f"/queues/{queue}/webhook", data=body, headers=headers)
    assert (answer.status_code, len(answer.json()["ids"])) == (201, 1)
    # Then it is stored unchanged
    [message] = project.reserve(queue)
    assert base64.b64decode(message["body_base64"]) == body
    assert message["body"] == body.decode(errors="replace")


@pytest.mark.parametrize("content_type", ["text/plain", "application/json"])
def test_bytes_under_a_textual_type_are_refused_if_they_are_no_text(project: ProjectClient, content_type: str) -> None:
    # Given bytes that API Gateway passes on as text because of their content type
    path = f"/queues/{unique('webhook')}"
    headers = {"Content-Type": content_type}
    # When they are not text, then they are refused, not stored as something else
    answer = project.send("POST", f"{path}/webhook", data=b"a \xff\xfe b", headers=headers)
    assert_told(answer, 400, "Request body is not UTF-8")
    assert project.call("GET", path).status_code == 404
    # And text that contains the replacement character is accepted
    assert project.send("POST", f"{path}/webhook", data="a \ufffd b".encode(), headers=headers).status_code == 201


# Names

NAMES = [
    "with space",
    "plus+plus",
    "!*'();:@&=$,#[]",
    "żółć \U0001f6f0",
]


@pytest.mark.parametrize("name", NAMES)
def test_queue_names_survive_the_way(project: ProjectClient, name: str) -> None:
    # Given a queue of that name, created with one spelling
    path = f"/queues/{quote(name, safe='')}"
    assert project.take("PUT", path, {})["queue"]["name"] == name
    # Then every call means the same queue
    [message_id] = project.take("POST", f"{path}/messages", {"messages": [{"body": name}]})["ids"]
    assert project.take("GET", path)["queue"]["name"] == name
    assert name in [each["name"] for each in project.take("GET", "/queues?per_page=100")["queues"]]
    prefix = quote(name[:-1], safe="")
    assert {"name": name} in project.take("GET", f"/queues?per_page=100&prefix={prefix}")["queues"]
    assert project.take("GET", f"{path}/messages")["messages"][0]["id"] == message_id
    [message] = project.take("POST", f"{path}/reservations", {})["messages"]
    assert message["body"] == name
    assert project.take("DELETE", f"{path}/messages/{message_id}", message) == {"msg": "Deleted"}
    assert project.take("DELETE", path) == {"msg": "Deleted"}
    assert project.call("GET", path).status_code == 404


# HTTP


def test_bodies_of_get_and_delete_do_not_disturb_a_kept_connection(
    project: ProjectClient, connection: http.client.HTTPConnection
) -> None:
    # Given one connection
    parts, queue = urlsplit(project.url()), unique("kept")
    headers = {"Authorization": f"OAuth {project.token}", "Content-Type": "application/json"}

    def ask(method: str, path: str, body: bytes | None) -> tuple[int, Any]:
        connection.request(method, parts.path + path, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    # When every kind of request has a body, including one that looks like a request
    smuggled = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"
    assert ask("PUT", f"/queues/{queue}", None)[0] == 200
    sockets = {id(connection.sock)}
    for body in (b"{}", smuggled, b"\xff" * 70_000, None):
        assert ask("GET", f"/queues/{queue}", body)[1]["queue"]["name"] == queue
        assert ask("GET", f"/queues/{queue}/messages?n=2", body) == (200, {"messages": []})
        sockets.add(id(connection.sock))
    assert ask("DELETE", f"/queues/{queue}/messages", b"{}") == (200, {"msg": "Cleared"})
    assert ask("DELETE", f"/queues/{queue}", b"{}") == (200, {"msg": "Deleted"})
    assert ask("DELETE", f"/queues/{queue}", b"{}") == (404, {"msg": "Queue not found"})
    assert ask("GET", "/queues", b"{}")[0] == 200
    # Then the connection was kept throughout
    assert sockets == {id(connection.sock)}


# Rules that clients rely on
