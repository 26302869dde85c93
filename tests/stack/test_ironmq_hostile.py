"""Hostile producers against the running hub: everything is refused with a 4xx in JSON, and nothing is stored.

A sample of each kind, as the way through the doors may change what functions are given: every value is in
``tests/exhaustive``, every address in ``tests/egress``, every caller in ``tests/web/test_callers.py``.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
import requests
from tests.stack.endpoints import Recorder
from tests.stack.project import ProjectClient, unique
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def project(stack: RunningStack) -> ProjectClient:
    return ProjectClient.another(stack)


@pytest.fixture(scope="module")
def pull(project: ProjectClient) -> Iterator[str]:
    """A pull queue that nothing must reach or change."""
    queue = unique("pull")
    project.make_queue(queue)
    before = project.info(queue)
    yield queue
    assert project.info(queue) == before
    assert before["total_messages"] == 0


@pytest.fixture(scope="module")
def push(project: ProjectClient) -> Iterator[str]:
    """A push queue whose endpoint nothing must reach."""
    queue = unique("push")
    with Recorder() as recorder:
        endpoint = recorder.endpoint()
        project.make_push(queue, endpoint)
        before = project.info(queue)
        yield queue
        assert project.info(queue) == before
        assert before["total_messages"] == 0
        assert endpoint.pushes == []


def assert_refused(answer: requests.Response, *statuses: int) -> None:
    assert answer.status_code in (statuses or (400,)), f"{answer.status_code} {answer.text[:300]}"
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json()["msg"]


def deep(levels: int, inside: str = "1") -> bytes:
    return f'{{"messages":[{{"body":"x","extra":{"[" * levels}{inside}{"]" * levels}}}]}}'.encode()


UNREADABLE: dict[str, bytes] = {
    "nothing": b"",
    "half": b'{"messages": [{"body": "x"}]',
    "bad utf-8": b'{"messages": [{"body": "\xff\xfe"}]}',
    "utf-16": '{"messages": [{"body": "x"}]}'.encode("utf-16"),
    "half a surrogate pair": rb'{"messages": [{"body": "a \ud800 b"}]}',
    "nan": b'{"messages": [{"body": "x", "delay": NaN}]}',
    "a key twice": b'{"messages": [], "messages": [{"body": "x"}]}',
    "depth": deep(200_000),
    "depth without end": b"[" * 1_000_000,
}


@pytest.mark.parametrize("body", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read_is_refused(project: ProjectClient, pull: str, body: bytes) -> None:
    assert_refused(project.send("POST", f"/queues/{pull}/messages", data=body, headers=JSON))


def test_nothing_that_is_refused_makes_a_queue(project: ProjectClient) -> None:
    queue = unique("unmade")
    for body in (b"{", b'{"messages": [{"body": 1}]}', deep(200_000)):
        assert_refused(project.send("POST", f"/queues/{queue}/messages", data=body, headers=JSON))
    assert project.call("GET", f"/queues/{queue}").status_code == 404


TARGETS = [
    "http://169.254.169.254/latest/meta-data/",
    # Spelt so that only a resolver makes an address of them
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://10.1/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://169.254.169.254\\@public.example/",
    "ironmq://P:T@10.0.0.1/q",
    "http://127.0.0.1/\r\nX-Injected: 1",
]


@pytest.mark.parametrize("url", TARGETS)
def test_targets_inside_are_refused_at_registration(project: ProjectClient, push: str, url: str) -> None:
    subscriber = {"name": "inside", "url": url}
    assert_refused(project.call("POST", f"/queues/{push}/subscribers", {"subscribers": [subscriber]}))


def test_requests_that_are_no_http(stack: RunningStack, project: ProjectClient) -> None:
    host = urlsplit(stack.base_url)
    path = f"/3/projects/{project.project_id}/queues/x/messages"
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: OAuth {project.token}\r\n".encode()
    requests_ = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        head + b"Content-Length: -1\r\n\r\n",
        head + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        head + b"X-A: " + b"x" * 100_000 + b"\r\n\r\n",
        head + b"X-A : 1\r\nContent-Length: 0\r\n\r\n",
        b"POST " + b"/x" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    ]
    for sent in requests_:
        assert host.hostname
        answer = b""
        # (a server that does not read to the end may reset the connection before its answer is read)
        with (
            suppress(ConnectionError),
            socket.create_connection((host.hostname, host.port or 80), timeout=90) as connection,
        ):
            connection.sendall(sent)
            answer = connection.recv(65_536)
        # Then it gets an error, or the connection is closed
        assert answer == b"" or 400 <= int(answer.split(b" ", 2)[1]) < 500, (sent[:80], answer[:200])
    assert project.call("GET", "/queues/x").status_code == 404
