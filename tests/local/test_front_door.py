"""The front door hands requests and answers on unchanged, and says itself only what API Gateway would."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from local.front_door import http_door
from local.place import HOST, REPOSITORY
from tests.local.upstream import Upstream, exchange, serving

STAGE = "/_aws/execute-api/feed0001/$default"


def through(upstream: Upstream, talk: Callable[[int], Awaitable[bytes]]) -> bytes:
    """Open a front door before the upstream, talk to it, and close both."""

    async def run() -> bytes:
        async with serving(upstream):
            runner = http_door.runner(upstream.url + STAGE)
            await runner.setup()
            try:
                site = web.TCPSite(runner, HOST, 0)
                await site.start()
                return await talk(runner.addresses[0][1])
            finally:
                await runner.cleanup()

    return asyncio.run(run())


def send(upstream: Upstream, request: bytes) -> bytes:
    return through(upstream, lambda port: exchange(port, request))


def request(target: bytes = b"/", method: bytes = b"POST", headers: bytes = b"", body: bytes = b"") -> bytes:
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    return (
        method
        + b" "
        + target
        + b" HTTP/1.1\r\nHost: hub.example:8377\r\nConnection: close\r\n"
        + (headers + length + b"\r\n" + body)
    )


@pytest.mark.parametrize(
    "target",
    [
        b"/3/projects/p/queues/a%20b",
        b"/3/projects/p/queues/a+b%2Bc",
        b"/3/projects/p/queues/a%2Fb%2fc",
        b"/3/projects/p/queues/%252F%25",
        b"/3/projects/p/queues/gr%C3%BC%C3%9Fe%F0%9F%9B%B0",
        b"/3/projects/p/queues/%FF%fe%0D%0A%00",
        b"/3/projects/p//queues/./../x",
        b"/3/projects/p/queues/a:b=c;d,e@f!$&'()*~",
        b"/3/projects/p/queues?prefix=a%26b&per_page=3&x&y=&z=1=2?3",
        b"/3/projects/p/queues?oauth=a%20b+c%2B",
        b"/?",
    ],
)
def test_path_and_query_arrive_as_they_were_sent(target: bytes) -> None:
    # Given an upstream, when a path is asked for whose encoding matters
    upstream = Upstream()
    send(upstream, request(target, b"GET"))
    # Then it is asked for with the very same encoding
    assert upstream.line == b"GET " + STAGE.encode() + target.removesuffix(b"?") + b" HTTP/1.1"


def test_a_request_line_with_bytes_that_may_not_stand_there_is_refused() -> None:
    # Given a client that does not encode, when it asks
    upstream = Upstream()
    answer = send(upstream, request("/queues/grüße".encode(), b"GET"))
    # Then it is told so, and the hub is not bothered
    assert answer.split(b"\r\n")[0].split()[1] == b"400"
    assert upstream.heads == []


@pytest.mark.parametrize("method", [b"GET", b"POST", b"PUT", b"PATCH", b"DELETE"])
def test_every_method_carries_its_body(method: bytes) -> None:
    # Given a body of all bytes there are (IronMQ clients send bodies with GET and DELETE, too)
    upstream, body = Upstream(), bytes(range(256)) * 40
    # When it is sent
    send(upstream, request(method=method, body=body))
    # Then it arrives
    assert (upstream.line.split()[0], upstream.bodies) == (method, [body])


def test_a_compressed_body_is_not_unpacked() -> None:
    # Given a compressed body
    upstream, body = Upstream(), gzip.compress(b"x" * 5000)
    # When it is sent
    send(upstream, request(headers=b"Content-Encoding: gzip\r\n", body=body))
    # Then it arrives as it is
    assert upstream.bodies == [body]
    assert (b"Content-Encoding", b"gzip") in upstream.headers


def test_a_chunked_body_arrives_whole() -> None:
    # Given a body sent in chunks, when it is sent
    upstream = Upstream()
    head = request(headers=b"Transfer-Encoding: chunked\r\n")
    send(upstream, head + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    # Then it arrives with its length
    assert upstream.bodies == [b"abcde"]


def test_headers_pass_but_for_those_of_the_connection() -> None:
    # Given headers of every sort
    sent = (
        b"Authorization: OAuth token\r\nX-Twice: 1\r\nx-twice: 2\r\nX-Latin: caf\xc3\xa9\r\nContent-Type: text/plain; "
        b"encoding=utf-8\r\n"
        b"TE: trailers\r\nKeep-Alive: 3\r\nX-Http-Method-Override: PATCH\r\nUser-Agent: iron_mq_python (version: "
        b"0.9)\r\n"
    )
    # When they are sent
    upstream = Upstream()
    send(upstream, request(headers=sent, body=b"x"))
    # Then they arrive, with what API Gateway adds, and nothing was made up
    names = sorted(name.lower() for name, _ in upstream.headers)
    assert names == [
        b"authorization",
        b"content-length",
        b"content-type",
        b"host",
        b"user-agent",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-port",
        b"x-forwarded-proto",
        b"x-http-method-override",
        b"x-latin",
        b"x-twice",
        b"x-twice",
    ]
    assert [value for name, value in upstream.headers if name.lower() == b"x-twice"] == [b"1", b"2"]
    assert (b"X-Latin", "café".encode()) in upstream.headers
    assert (b"X-Forwarded-For", b"127.0.0.1") in upstream.headers
    assert (b"X-Forwarded-Host", b"hub.example:8377") in upstream.headers


def test_a_request_without_content_type_gets_none() -> None:
    # Given a bare request (the type decides how API Gateway hands a body to a function)
    upstream = Upstream()
    # When it is sent
    send(upstream, request(body=b"raw"))
    # Then nothing is added that describes the body or the client
    assert not {name.lower() for name, _ in upstream.headers} & {b"content-type", b"user-agent", b"accept"}


def test_a_header_that_is_no_utf8_is_refused() -> None:
    # Given a header with bytes that are no UTF-8
    upstream = Upstream()
    # When it is sent
    answer = send(upstream, request(headers=b"X-Raw: \xff\xfe\r\n", body=b"x"))
    # Then the client is told, rather than the header changed
    check_refusal(answer, 400, "Bad Request")
    assert upstream.heads == []


@pytest.mark.parametrize("status", [b"200 OK", b"201 Created", b"401 Unauthorized", b"404 Not Found", b"500 Oops"])
def test_answers_pass_with_their_bytes_and_headers(status: bytes) -> None:
    # Given an answer that is compressed and has a header twice
    body = gzip.compress(b"{}")
    headers = (
        b"Content-Type: application/json\r\nContent-Encoding: gzip\r\nX-A: 1\r\nX-A: 2\r\nDate: then\r\nServer: it\r\n"
    )
    upstream = Upstream(b"HTTP/1.1 " + status + b"\r\n" + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    # When it is asked for
    answer = send(upstream, request())
    # Then it comes back
    head, _, content = answer.partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"HTTP/1.1 " + status
    assert content == body
    lines = head.split(b"\r\n")[1:]
    wanted = {
        b"Content-Type: application/json",
        b"Content-Encoding: gzip",
        b"X-A: 1",
        b"X-A: 2",
        b"Date: then",
        b"Server: it",
    }
    assert wanted <= set(lines)
    assert b"Content-Length: %d" % len(body) in lines


def test_a_redirect_is_handed_on_and_not_followed() -> None:
    # Given a redirect
    upstream = Upstream(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
    # When it is met
    answer = send(upstream, request())
    # Then it is the client's to follow
    assert answer.startswith(b"HTTP/1.1 302 ")
    assert len(upstream.heads) == 1


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_failing_gateway_is_a_500_in_json_and_never_a_503(status: int) -> None:
    # Given a gateway that fails, when it is asked
    upstream = Upstream(b"HTTP/1.1 %d Sorry\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\noops" % status)
    answer = send(upstream, request())
    # Then the client, which would retry 503 and 504 for long, reads a 500
    check_refusal(answer, 500, "Internal Server Error")


def test_a_503_of_the_hub_itself_passes() -> None:
    # Given a hub that is busy, and says when to come again
    upstream = Upstream(b'HTTP/1.1 503 Sorry\r\nRetry-After: 5\r\nContent-Length: 12\r\n\r\n{"msg": "x"}')
    # Then the client reads that
    answer = send(upstream, request())
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nRetry-After: 5\r\n" in answer
    assert answer.endswith(b'{"msg": "x"}')


def test_an_upstream_that_is_gone_is_a_500() -> None:
    # Given an upstream that hangs up
    upstream = Upstream(b"")
    upstream.answer = b"HTTP/1.1"

    async def close_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    upstream.handle = close_at_once  # type: ignore[method-assign]
    # When it is asked, then
    check_refusal(send(upstream, request(body=b"x")), 500, "Internal Server Error")


def test_a_body_over_api_gateways_limit_is_refused_before_lambdas_is_asked_for() -> None:
    # Given bodies at API Gateway's limit and a byte over it
    limit = http_door.REQUEST_LIMIT
    upstream = Upstream()
    # When they are sent
    at, over = send(upstream, request(body=b"a" * limit)), send(upstream, request(body=b"a" * (limit + 1)))
    # Then the one is too long an event, and the other too large a request
    check_refusal(at, 413, "Request Too Long")
    check_refusal(over, 413, "Request Entity Too Large")
    assert upstream.bodies == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"/api/v1/app/a/msg", {"code": "payload_too_large", "detail": "Request Too Long"}),
        (b"/api/stores/s/messages", {"error": "Request Too Long"}),
        (
            b"/notification2/notifications",
            {"error": "general/requestTooLarge", "message": "Request Too Long", "info": ""},
        ),
        (b"/3/projects/p/queues/q/webhook", {"message": "Request Too Long", "msg": "Request Too Long"}),
    ],
)
def test_a_body_of_8_mb_is_refused_in_the_words_of_its_protocol(path: bytes, expected: dict[str, str]) -> None:
    upstream = Upstream()
    head, _, content = send(upstream, request(path, body=b"a" * 8_000_000)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ")
    assert json.loads(content) == expected
    assert upstream.bodies == []


def test_an_endless_chunked_body_is_cut_at_the_limit() -> None:
    # Given a body without a length that goes on and on
    upstream = Upstream()
    chunk = b"100000\r\n" + b"a" * 0x100000 + b"\r\n"
    # When it is sent
    answer = send(upstream, request(headers=b"Transfer-Encoding: chunked\r\n") + chunk * 11)
    # Then it is refused before it ends
    check_refusal(answer, 413, "Request Entity Too Large")
    assert upstream.heads == []


JSON = b"Content-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("headers", "body", "passes"),
    [
        (JSON, b"a" * 4_160_000, True),
        # Each quote is two bytes in the event
        (JSON, b'"' * 4_160_000, False),
        (JSON, b'"' * 3_140_000, True),
        # A control character is six
        (JSON, b"\x01" * 1_040_000, True),
        (JSON, b"\x01" * 1_050_000, False),
        # Base64 makes four bytes of three, whatever they are
        (b"Content-Type: application/octet-stream\r\n", b'"' * 4_160_000, True),
        (b"", b"a" * 4_720_000, False),
        (JSON + b"Content-Encoding: gzip\r\n", b"a" * 4_720_000, False),
    ],
)
def test_a_request_whose_event_lambda_would_not_take_is_refused(headers: bytes, body: bytes, passes: bool) -> None:
    # Given a request under API Gateway's limit
    upstream = Upstream()
    # When it is sent
    answer = send(upstream, request(headers=headers, body=body))
    # Then it is handed on if its event is under Lambda's limit of 6 MiB, and otherwise refused as API Gateway does
    if passes:
        assert answer.startswith(b"HTTP/1.1 200 ")
    else:
        check_refusal(answer, 413, "Request Too Long")
    assert len(upstream.bodies) == passes


def check_refusal(answer: bytes, status: int, message: str) -> None:
    head, _, content = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert re.search(rb"(?mi)^content-type: application/json\r?$", head)
    assert json.loads(content) == {"message": message, "msg": message}


def test_one_connection_serves_many_requests() -> None:
    # Given a client that keeps its connection
    upstream = Upstream()
    kept = request(b"/1").replace(b"Connection: close\r\n", b"")

    async def talk(port: int) -> bytes:
        return await exchange(port, kept + request(b"/2"))

    # When it sends two requests
    answer = through(upstream, talk)
    # Then both are answered on it
    assert answer.count(b"HTTP/1.1 200 OK") == 2


def test_long_polls_do_not_hold_each_other_up() -> None:
    # Given answers that take a second
    upstream = Upstream(seconds=1)

    async def talk(port: int) -> bytes:
        return b"".join(await asyncio.gather(*(exchange(port, request()) for _ in range(40))))

    # When many wait at once
    started = time.monotonic()
    answer = through(upstream, talk)
    # Then they wait together
    assert answer.count(b"HTTP/1.1 200 OK") == 40
    assert time.monotonic() - started < 30


def test_when_told_to_stop_it_finishes_what_is_under_way() -> None:
    # Given the front door as a process, and a request under way
    async def run() -> tuple[bytes, int]:
        upstream = Upstream(seconds=0.8)
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port = probe.getsockname()[1]
        async with serving(upstream):
            command = [sys.executable, "-m", "local.front_door.http_door", str(port), upstream.url + STAGE]
            process = await asyncio.create_subprocess_exec(*command, cwd=REPOSITORY, stderr=subprocess.DEVNULL)
            await opened(port)
            under_way = asyncio.create_task(exchange(port, request().replace(b"Connection: close\r\n", b"")))
            while not upstream.heads:
                await asyncio.sleep(0.01)
            # When it is told to stop
            process.send_signal(signal.SIGTERM)
            return await under_way, await asyncio.wait_for(process.wait(), 90)

    answer, status = asyncio.run(run())
    # Then the request is answered, and the process ends well
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert status == 0


async def opened(port: int) -> None:
    deadline = time.monotonic() + 90
    while True:
        try:
            _, writer = await asyncio.open_connection(HOST, port)
        except ConnectionError:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        else:
            writer.close()
            await writer.wait_closed()
            return


@pytest.mark.parametrize(
    ("path", "at_once"), [(b"/x", http_door.REQUESTS_AT_ONCE), (b"/console/1/app.js", http_door.FILES_AT_ONCE)]
)
def test_a_burst_waits_its_turn_and_all_of_it_is_answered(path: bytes, at_once: int) -> None:
    """The emulator would start a process for each of them at once."""
    burst = 3 * at_once
    under_way = most = 0

    async def slow(_: web.Request) -> web.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.02)
        under_way -= 1
        return web.json_response({})

    async def run() -> list[bytes]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", slow)
        behind = web.AppRunner(app)
        await behind.setup()
        await web.TCPSite(behind, HOST, 0).start()
        runner = http_door.runner(f"http://{HOST}:{behind.addresses[0][1]}" + STAGE)
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, 0).start()
            port = runner.addresses[0][1]
            return await asyncio.gather(*[exchange(port, request(path)) for _ in range(burst)])
        finally:
            await runner.cleanup()
            await behind.cleanup()

    answers = asyncio.run(run())
    assert all(b" 200 " in answer for answer in answers)
    assert len(answers) == burst
    assert most == at_once


def test_long_polls_of_one_project_do_not_hold_up_those_of_another() -> None:
    """Each may wait half a minute for a message."""
    asked: list[str] = []
    ended = asyncio.Event()

    async def poll(request: web.Request) -> web.Response:
        asked.append(request.path.split("/projects/")[1].split("/")[0])
        if asked[-1] == "greedy":
            await ended.wait()
        return web.json_response({"messages": []})

    async def run() -> bytes:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", poll)
        behind = web.AppRunner(app, shutdown_timeout=1)
        await behind.setup()
        await web.TCPSite(behind, HOST, 0).start()
        runner = http_door.runner(f"http://{HOST}:{behind.addresses[0][1]}" + STAGE)
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, 0).start()
            port = runner.addresses[0][1]
            # Given one project that waits for messages with many requests at once
            path = b"/3/projects/%s/queues/q/reservations"
            greedy = [asyncio.create_task(exchange(port, request(path % b"greedy"))) for _ in range(30)]
            while len(asked) < http_door.LONG_POLLS_OF_A_PROJECT:
                await asyncio.sleep(0.01)
            # When another one asks, then it is answered while they wait
            answer = await asyncio.wait_for(exchange(port, request(path % b"other")), 90)
            assert asked.count("greedy") == http_door.LONG_POLLS_OF_A_PROJECT
            ended.set()
            assert all(b" 200 " in each for each in await asyncio.gather(*greedy))
            return answer
        finally:
            ended.set()
            await runner.cleanup()
            await behind.cleanup()

    assert b" 200 " in asyncio.run(run())


@pytest.mark.parametrize(
    "malformed",
    [
        b"GET /?oauth=s3cr3t HTTP/1.1\r\nAuthorization : OAuth s3cr3t\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: OAuth s3cr3t\0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: s3cr3t\r\n\r\n",
    ],
)
def test_a_malformed_request_leaves_nothing_of_itself_in_the_log(
    malformed: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    # When a request that cannot be read holds a token
    answer = send(Upstream(), malformed)
    # Then it is refused, and the log says so without it
    assert b" 400 " in answer[:16]
    reported = "".join(f"{each.getMessage()} {each.exc_info} {each.exc_text}" for each in caplog.records)
    assert "could not be read" in reported
    assert "s3cr3t" not in reported
