"""What is no HTTP, sent to the door of the running hub: refused or hung up on, and nothing is stored.

What is HTTP and refused: ``tests/exhaustive``, ``tests/egress``, ``tests/web``.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from tests.stack.project import ProjectClient
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def project(stack: RunningStack) -> ProjectClient:
    return ProjectClient.another(stack)


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
