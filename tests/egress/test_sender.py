"""The guarded sender with well-behaved endpoints: what is sent, what comes back, and how connections are reused."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from tests.egress.guarded_sending import asking, sender
from tests.hostile import BEHAVIOURS, HostileEndpoint
from tests.hostile.behaviours import GZIP_BOMB
from urllib3.util import SKIP_HEADER

from pushhub.base.verdict import Verdict, iron_verdict
from pushhub.egress.lookup import NameLookup
from pushhub.egress.sender import GuardedSender

pytest_plugins = ("tests.hostile.fixtures",)


@pytest.fixture
def sending() -> Iterator[GuardedSender]:
    with sender() as created:
        yield created


def test_the_exact_bytes_and_headers_are_sent(sending: GuardedSender, endpoint: HostileEndpoint) -> None:
    # Given a body of any bytes and headers in an unusual spelling
    body = bytes(range(256)) * 8
    headers = {
        "user-agent": "IronMQ Pusherd",
        "Content-Type": "text/plain; encoding=utf-8",
        "x-ODD-Case": "  kept  as is",
        "X-Empty": "",
    }
    # When it is sent
    answer = sending.send(asking(endpoint.url("healthy/a%20b?c=%2F&d=e f"), body=body, headers=headers))
    # Then exactly that arrives, plus only what HTTP requires
    assert answer.status_code == 200
    [request] = endpoint.requests
    assert request.body == body
    assert request.path == "/healthy/a%20b?c=%2F&d=e%20f"
    assert sorted(request.headers) == sorted(
        [
            ("Host", f"127.0.0.1:{endpoint.port}"),
            ("Accept-Encoding", "identity"),
            ("Content-Length", str(len(body))),
            *headers.items(),
        ]
    )


def test_without_a_user_agent_none_is_sent(sending: GuardedSender, endpoint: HostileEndpoint) -> None:
    sending.send(asking(endpoint.url("healthy")))
    assert {name.lower() for name, _ in endpoint.requests[0].headers} == {"host", "accept-encoding", "content-length"}


def test_values_go_as_latin_1_or_else_as_utf_8(sending: GuardedSender, endpoint: HostileEndpoint) -> None:
    sending.send(asking(endpoint.url("healthy"), headers={"X-Latin": "café", "X-Wide": "日本"}))
    head = endpoint.requests[0].head
    assert b"X-Latin: caf\xe9\r\n" in head + b"\r\n"
    assert b"X-Wide: \xe6\x97\xa5\xe6\x9c\xac\r\n" in head + b"\r\n"


def test_headers_that_frame_the_message_are_ours(sending: GuardedSender, endpoint: HostileEndpoint) -> None:
    # Given headers that would change where the request ends, where it goes or how the connection is used
    given = {
        "HOST": "inside.example",
        "content-length": "0",
        "Transfer-Encoding": "chunked",
        "Connection": "close",
        "Keep-Alive": "timeout=1",
        "Proxy-Connection": "x",
        "Proxy-Authorization": "x",
        "TE": "trailers",
        "Trailer": "X",
        "Upgrade": "h2c",
        "Expect": "100-continue",
        "X-Mine": "kept",
    }
    # When a request with them is sent
    answer = sending.send(asking(endpoint.url("healthy"), headers=given))
    # Then it arrives without them
    assert answer.status_code == 200
    received = dict(endpoint.requests[0].headers)
    assert received == {
        "Host": f"127.0.0.1:{endpoint.port}",
        "Accept-Encoding": "identity",
        "Content-Length": "5",
        "X-Mine": "kept",
    }
    assert endpoint.requests[0].body == b"hello"


@pytest.mark.parametrize(
    "header",
    [
        ("X-A", "b\r\nX-Injected: c"),
        ("X-A", "b\nc"),
        ("X-A", "b\rc"),
        ("X-A", "b\x00c"),
        ("X-A", "\udc80"),
        ("X-A\r\nX-B", "c"),
        ("X A", "c"),
        ("X-A:", "c"),
        ("", "c"),
        ("X-Ä", "c"),
    ],
)
def test_headers_that_cannot_be_sent_safely_are_not_sent(
    sending: GuardedSender, endpoint: HostileEndpoint, header: tuple[str, str]
) -> None:
    answer = sending.send(asking(endpoint.url("healthy"), headers=dict([header])))
    assert (answer.status_code, answer.error_class, answer.bytes_out) == (0, "invalid_header", 0)
    assert endpoint.requests == []


@pytest.mark.parametrize("name", ["X-A", "User-Agent", "Accept-Encoding"])
def test_a_value_that_urllib3_takes_for_a_sign_of_its_own_is_sent_as_it_is(
    sending: GuardedSender, endpoint: HostileEndpoint, name: str
) -> None:
    answer = sending.send(asking(endpoint.url("healthy"), headers={name: SKIP_HEADER[:1] + SKIP_HEADER[1:]}))
    assert answer.status_code == 200
    assert dict(endpoint.requests[0].headers)[name] == SKIP_HEADER


def test_userinfo_becomes_an_authorization_header_unless_one_is_given(
    sending: GuardedSender, endpoint: HostileEndpoint
) -> None:
    url = endpoint.url("healthy", host="us%65r:p%40ss@127.0.0.1")
    sending.send(asking(url))
    sending.send(asking(url, headers={"authorization": "Bearer x"}))
    assert dict(endpoint.requests[0].headers)["Authorization"] == "Basic dXNlcjpwQHNz"
    assert dict(endpoint.requests[1].headers)["authorization"] == "Bearer x"
    assert "Authorization" not in dict(endpoint.requests[1].headers)


def test_the_answer_tells_what_came(sending: GuardedSender, endpoint: HostileEndpoint) -> None:
    answer = sending.send(asking(endpoint.url("echo_cookie")))
    assert (answer.status_code, answer.message, answer.error_class) == (200, "OK", "")
    assert answer.headers == {"set-cookie": "a=1; Path=/, b=2", "content-length": "0"}
    assert (answer.bytes_out, answer.bytes_in) == (5, 0)
    assert 0 <= answer.duration_ms < 3000
    assert iron_verdict(answer) is Verdict.DELIVERED


@pytest.mark.parametrize("status", [200, 201, 202, 204, 304, 400, 404, 410, 429, 500, 503, 599])
def test_every_status_is_an_answer(sending: GuardedSender, endpoint: HostileEndpoint, status: int) -> None:
    answer = sending.send(asking(endpoint.url(f"status/{status}")))
    assert (answer.status_code, answer.message, answer.error_class) == (status, "Told to", "")


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
def test_other_methods(sending: GuardedSender, endpoint: HostileEndpoint, method: str) -> None:
    answer = sending.send(asking(endpoint.url("status/200"), method=method, body=b""))
    assert answer.status_code == 200
    assert endpoint.requests[0].head.startswith(method.encode() + b" /status/200 HTTP/1.1\r\n")


def test_redirects_are_not_followed(sending: GuardedSender, endpoint: HostileEndpoint) -> None:
    for path, status in (("redirect", 302), ("bad_redirect", 301)):
        answer = sending.send(asking(endpoint.url(path)))
        assert (answer.status_code, answer.error_class) == (status, "")
        assert iron_verdict(answer) is Verdict.FAILED
    assert [request.path for request in endpoint.requests] == ["/redirect", "/bad_redirect"]


def test_cookies_are_not_kept(sending: GuardedSender, endpoint: HostileEndpoint) -> None:
    for _ in range(2):
        sending.send(asking(endpoint.url("echo_cookie")))
    assert "Cookie" not in dict(endpoint.requests[1].headers)


def test_nothing_is_taken_from_the_environment(
    endpoint: HostileEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Given a proxy that does not exist, and a netrc file with credentials
    netrc = tmp_path_factory.mktemp("home") / ".netrc"
    netrc.write_text("default login user password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    # When a request is sent, then it goes straight to the endpoint without credentials
    with sender() as sending:
        assert sending.send(asking(endpoint.url("healthy"))).status_code == 200
    assert "Authorization" not in dict(endpoint.requests[0].headers)


def test_the_body_of_the_answer_is_not_decoded(sending: GuardedSender, endpoint: HostileEndpoint) -> None:
    answer = sending.send(asking(endpoint.url("gzip_bomb"), answer_limit=65_536))
    assert answer.body == GZIP_BOMB[:65_536]
    assert len(gzip.decompress(GZIP_BOMB)) > 200 * len(answer.body)


def test_connections_are_reused_and_resolved_once(endpoint: HostileEndpoint) -> None:
    # Given an endpoint reached by name
    asked: list[str] = []

    def resolve(name: str) -> list[str]:
        asked.append(name)
        return ["127.0.0.1"]

    with sender(lookup=NameLookup(resolve)) as sending:
        # When it is sent several requests
        for _ in range(5):
            assert sending.send(asking(endpoint.url("healthy", host="keep.example"))).status_code == 200
    # Then they went over one connection, and the name was looked up once
    assert endpoint.connections == 1
    assert asked == ["keep.example"]
    assert dict(endpoint.requests[0].headers)["Host"] == f"keep.example:{endpoint.port}"


def test_a_connection_closed_while_idle_is_replaced_without_a_trace(
    sending: GuardedSender, endpoint: HostileEndpoint
) -> None:
    for _ in range(3):
        assert sending.send(asking(endpoint.url("answer_and_close"))).status_code == 200
        endpoint.wait_until_closed()
    assert len(endpoint.requests) == 3


def test_a_connection_idle_for_too_long_is_not_used_again(endpoint: HostileEndpoint) -> None:
    # Given connections that may be idle for a tenth of a second
    with sender(idle_limit_s=0.1) as sending:
        for pause_s in (0.0, 0.0, 0.15):
            # When the third request comes later than that
            time.sleep(pause_s)
            assert sending.send(asking(endpoint.url("healthy"))).status_code == 200
    # Then it uses a new connection
    assert [request.connection for request in endpoint.requests] == [0, 0, 1]


def test_a_fresh_connection_closed_without_an_answer_is_not_tried_again(
    sending: GuardedSender, endpoint: HostileEndpoint
) -> None:
    answer = sending.send(asking(endpoint.url("close")))
    assert answer.error_class == "reset"
    assert len(endpoint.requests) == 1


def test_a_reused_connection_that_only_hangs_is_not_tried_again(
    sending: GuardedSender, endpoint: HostileEndpoint
) -> None:
    assert sending.send(asking(endpoint.url("hang_second"))).status_code == 200
    assert sending.send(asking(endpoint.url("hang_second"), timeout_s=0.2)).error_class == "timeout"
    assert len(endpoint.requests) == 2


def test_many_threads_share_one_sender(endpoint: HostileEndpoint) -> None:
    # Given a sender for eight threads
    with sender(threads=8) as sending, ThreadPoolExecutor(8) as pool:
        # When 400 requests with different bodies are sent at once
        bodies = [f"body {number}".encode() for number in range(400)]
        answers = list(pool.map(lambda body: sending.send(asking(endpoint.url("healthy"), body=body)), bodies))
    # Then each gets its answer, each body arrived once, and there were no more connections than threads
    assert {answer.status_code for answer in answers} == {200}
    assert sorted(request.body for request in endpoint.requests) == sorted(bodies)
    assert endpoint.connections <= 8


def test_times_come_from_the_clock_given(endpoint: HostileEndpoint) -> None:
    ticks = iter([1_000, 4_000, 9_000, 5_000])
    sending = GuardedSender(now=lambda: next(ticks), allowed_targets=("loopback",))
    answer = sending.send(asking(endpoint.url("healthy")))
    # A wall clock that is set back does not make an attempt end before it began.
    backwards = sending.send(asking(endpoint.url("healthy")))
    sending.close()
    assert (answer.started_at, answer.finished_at) == (1_000, 4_000)
    assert (backwards.started_at, backwards.finished_at) == (9_000, 9_000)


def test_ipv6_endpoints_are_reached() -> None:
    with HostileEndpoint(BEHAVIOURS, host="::1") as endpoint, sender() as sending:
        assert sending.send(asking(endpoint.url("healthy"))).status_code == 200
        assert dict(endpoint.requests[0].headers)["Host"] == f"[::1]:{endpoint.port}"


def test_plain_requests_cannot_pass_the_guard_by(sending: GuardedSender, endpoint: HostileEndpoint) -> None:
    # Given the internal session, used directly
    session: requests.Session = sending._session
    with pytest.raises(TypeError):
        session.get(endpoint.url("healthy"))
    assert endpoint.requests == []
