"""Hostile producers against the running hub: everything is refused with a 4xx in JSON, and nothing is stored."""

from __future__ import annotations

import socket
from collections.abc import Iterator
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
    "no json": b"hello",
    "half": b'{"messages": [{"body": "x"}]',
    "two values": b'{"messages": [{"body": "x"}]} {}',
    "an array": b'[{"body": "x"}]',
    "a string": b'"x"',
    "null": b"null",
    "a number of many digits": b"9" * 5000,
    "bad utf-8": b'{"messages": [{"body": "\xff\xfe"}]}',
    "overlong utf-8": b'{"messages": [{"body": "\xc0\xaf"}]}',
    "a surrogate in utf-8": b'{"messages": [{"body": "\xed\xa0\x80"}]}',
    "utf-16": '{"messages": [{"body": "x"}]}'.encode("utf-16"),
    "half a surrogate pair": rb'{"messages": [{"body": "a \ud800 b"}]}',
    "the other half": rb'{"messages": [{"body": "\uDFFF"}]}',
    "half a pair in a name": rb'{"messages": [{"body": "x", "push_headers": {"\ud800": "v"}}]}',
    "nan": b'{"messages": [{"body": "x", "delay": NaN}]}',
    "infinity": b'{"messages": [{"body": "x", "delay": Infinity}]}',
    "a control character": b'{"messages": [{"body": "a\nb"}]}',
    "a key twice": b'{"messages": [], "messages": [{"body": "x"}]}',
    "single quotes": b"{'messages': [{'body': 'x'}]}",
    "a comment": b'{"messages": [{"body": "x"}]} // x',
    "depth": deep(200_000),
    "depth of objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
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


def test_depth_that_can_be_read_is_no_harm(project: ProjectClient) -> None:
    # Given unknown fields, nested as deeply as some parsers allow
    queue = unique("deep")
    for levels in (50, 500, 5000, 50_000):
        answer = project.send("POST", f"/queues/{queue}/messages", data=deep(levels), headers=JSON)
        assert answer.status_code in (201, 400)
    # And text that looks like markup, nested or not, is just text
    body = "[" * 100_000
    project.post(queue, body)
    assert body in [each["body"] for each in project.reserve(queue)]


TARGETS = [
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1:8080/x",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[64:ff9b::169.254.169.254]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b:1::1]/",
    "http://[2002:a9fe:a9fe::1]/",
    "http://[fe80::1]/",
    "http://[fc00::1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://0.0.0.0/",
    "http://[::]/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://10.1/",
    "http://public.example@169.254.169.254/",
    "http://169.254.169.254\\@public.example/",
    "http://169.254.169.254#@public.example/",
    "http://\u2461\u2464\u2463.169.254/",
    "http://\uff11\uff10.0.0.1/",
    "https://10.0.0.1:443/",
    "ironmq://P:T@10.0.0.1/q",
    "ironmq://P:T@[::ffff:169.254.169.254]:80/q",
    "ironworker://P:T@169.254.169.254/code",
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
    "javascript:alert(1)",
    "http://127.0.0.1:99999/",
    "http://127.0.0.1/a b",
    "http://127.0.0.1/\r\nX-Injected: 1",
]


@pytest.mark.parametrize("url", TARGETS)
def test_targets_inside_are_refused_at_registration(project: ProjectClient, push: str, url: str) -> None:
    subscriber = {"name": "inside", "url": url}
    assert_refused(project.call("POST", f"/queues/{push}/subscribers", {"subscribers": [subscriber]}))


def test_targets_inside_are_refused_wherever_they_are_given(project: ProjectClient, push: str) -> None:
    before = project.info(push)
    subscribers = {"subscribers": [{"name": "s0", "url": "http://127.0.0.1/"}, {"name": "inside", "url": TARGETS[0]}]}
    for method, path, body in (
        ("PUT", f"/queues/{unique('inside')}", {"queue": {"push": subscribers}}),
        ("PATCH", f"/queues/{push}", {"queue": {"push": subscribers}}),
        ("POST", f"/queues/{push}/subscribers", subscribers),
        ("PUT", f"/queues/{push}/subscribers", subscribers),
    ):
        assert_refused(project.call(method, path, body))
    assert project.info(push) == before
    assert project.take("GET", "/queues?prefix=inside")["queues"] == []


def test_a_token_of_another_project_and_forged_ones(stack: RunningStack, project: ProjectClient, push: str) -> None:
    other = ProjectClient.another(stack)
    tokens = [
        other.token,
        project.token[:-1],
        project.token + "x",
        project.token.swapcase(),
        f"{project.token},{other.token}",
        "",
        "null",
        "' OR '1'='1",
        "x" * 8000,
        "ż",
    ]
    # Given every route
    calls = [
        ("GET", ""),
        ("PUT", f"/{push}"),
        ("GET", f"/{push}"),
        ("PATCH", f"/{push}"),
        ("DELETE", f"/{push}"),
        ("POST", f"/{push}/subscribers"),
        ("PUT", f"/{push}/subscribers"),
        ("DELETE", f"/{push}/subscribers"),
        ("POST", f"/{push}/messages"),
        ("GET", f"/{push}/messages"),
        ("DELETE", f"/{push}/messages"),
        ("POST", f"/{push}/webhook"),
        ("POST", f"/{push}/reservations"),
        ("GET", f"/{push}/messages/1"),
        ("DELETE", f"/{push}/messages/1"),
        ("POST", f"/{push}/messages/1/touch"),
        ("POST", f"/{push}/messages/1/release"),
        ("GET", f"/{push}/messages/1/subscribers"),
    ]
    before = project.info(push)
    body: dict[str, object] = {
        "messages": [{"body": "x"}],
        "queue": {},
        "subscribers": [{"name": "s0", "url": "http://127.0.0.1/"}],
    }
    with requests.Session() as session:
        # When they are called with another project's token
        for token in tokens[:2]:
            for method, path in calls:
                headers = {"Authorization": f"OAuth {token}"}
                answer = session.request(method, project.url(f"/queues{path}"), json=body, headers=headers, timeout=40)
                assert_refused(answer, 401)
        for token in tokens[2:]:
            encoded = {"Authorization": f"OAuth {token}".encode()}
            assert_refused(session.get(project.url("/queues"), headers=encoded, timeout=40), 400, 401)
            assert_refused(session.get(project.url("/queues"), params={"oauth": token}, timeout=40), 401)
            shown = {**body, "oauth": token}
            assert_refused(session.post(project.url(f"/queues/{push}/messages"), json=shown, timeout=40), 401)
        for odd in (5, None, ["x"], {"a": 1}, True):
            shown = {**body, "oauth": odd}
            assert_refused(session.post(project.url(f"/queues/{push}/messages"), json=shown, timeout=40), 401)
        for name in ("0" * 24, "..", "%00", "x" * 200, other.project_id, "*", "P%23"):
            url = f"{project.base_url}/3/projects/{name}/queues/{push}"
            headers = {"Authorization": f"OAuth {project.token}"}
            assert_refused(session.get(url, headers=headers, timeout=40), 400, 401, 404)
    # Then nothing has changed
    assert project.info(push) == before


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
        with socket.create_connection((host.hostname, host.port or 80), timeout=20) as connection:
            connection.sendall(sent)
            answer = connection.recv(65_536)
        # Then it gets an error, or the connection is closed
        assert answer == b"" or 400 <= int(answer.split(b" ", 2)[1]) < 500, (sent[:80], answer[:200])
    assert project.call("GET", "/queues/x").status_code == 404
