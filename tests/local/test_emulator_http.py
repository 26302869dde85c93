"""The emulator answers whatever is HTTP, plain requests by a way of its own, and none gets another one's answer."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from local.place import HOST, Place
from tests.local.test_emulator import free_port

from local import emulator


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(
        home=tmp_path_factory.mktemp("http"),
        port=free_port(),
        aws_port=free_port(),
        emulator_python=Place.from_environment().emulator_python,
    )
    emulator.start(place)
    yield place
    emulator.abandon(place)


class Client:
    """A connection that is written to byte by byte."""

    def __init__(self, place: Place) -> None:
        self.socket = socket.create_connection((HOST, place.aws_port), timeout=30)
        self._file = self.socket.makefile("rb")

    def ask(self, *parts: bytes) -> tuple[int, dict[str, str], bytes]:
        """Send a request in parts; its answer."""
        for each in parts:
            self.socket.sendall(each)
        return self.answer(head=parts[0].startswith(b"HEAD"))

    def answer(self, *, head: bool = False) -> tuple[int, dict[str, str], bytes]:
        """The next answer: status, fields, body."""
        status = 100
        while status == 100:
            line = self._file.readline()
            assert re.fullmatch(rb"HTTP/1\.1 \d{3} [ -~]*\r\n", line), line
            status, fields = int(line.split()[1]), {}
            while (field := self._file.readline()) != b"\r\n":
                name, _, value = field.decode().partition(":")
                fields[name.lower()] = value.strip()
        if head or status == 204:
            return status, fields, b""
        if fields.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self._file.readline(), 16):
                body += self._file.read(size)
                self._file.readline()
            self._file.readline()
            return status, fields, body
        return status, fields, self._file.read(int(fields["content-length"]))

    def close(self) -> None:
        """Leave."""
        self._file.close()
        self.socket.close()

    def is_closed(self) -> bool:
        """Whether the emulator has closed it."""
        return self._file.read() == b""


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    client = Client(place)
    with closing(client):
        assert client.ask(request("PUT", "/bucket"))[0] == 200
        yield client


def request(method: str, target: str, body: bytes = b"", *fields: str) -> bytes:
    """A plain request to S3, with further fields or without."""
    scope = "Credential=test/20261122/us-east-1/s3/aws4_request"
    lines = [
        f"{method} {target} HTTP/1.1",
        "Host: localhost",
        f"Authorization: AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=none",
        *([f"Content-Length: {len(body)}"] if body else []),
        *fields,
    ]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


def test_requests_of_a_connection_are_answered_one_after_the_other(client: Client) -> None:
    # When objects are put and read on one connection, two requests in one piece among them
    for number in range(3):
        assert client.ask(request("PUT", f"/bucket/{number}", b"%d" % number * 1000))[0] == 200
    client.socket.sendall(request("GET", "/bucket/1") + request("GET", "/bucket/2"))
    # Then each has its own answer, with its length and one date
    for number in (1, 2):
        status, fields, body = client.answer()
        assert (status, body) == (200, b"%d" % number * 1000)
        assert fields["content-length"] == "1000"
        assert fields["date"].endswith("GMT")
    assert client.ask(request("GET", "/bucket/none"))[0] == 404
    assert client.ask(request("DELETE", "/bucket/1"))[0] == 204
    assert client.ask(request("GET", "/bucket/2"))[2] == b"2" * 1000


def test_a_request_may_come_in_any_pieces(client: Client) -> None:
    whole = request("PUT", "/bucket/pieces", b"\r\n\r\nbody\r\n\r\n", "X-Amz-Meta-Some: a:  b ")
    # When a request comes byte by byte, then it is the same
    status, _, _ = client.ask(*(whole[at : at + 1] for at in range(len(whole))))
    assert status == 200
    status, fields, body = client.ask(request("GET", "/bucket/pieces"))
    assert (status, body) == (200, b"\r\n\r\nbody\r\n\r\n")
    assert fields["x-amz-meta-some"] == "a:  b"


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (request("PUT", "/bucket/other", b"x" * 3_000_000), b"x" * 3_000_000),
        (request("PUT", "/bucket/other", b"", "Transfer-Encoding: chunked") + b"3\r\nabc\r\n0\r\n\r\n", b"abc"),
        (request("PUT", "/bucket/other", b"abc", "Expect: 100-continue"), b"abc"),
        (request("PUT", "/bucket/other", b"abc", "Connection: Upgrade", "Upgrade: h2c"), b"abc"),
        (request("PUT", "/bucket/other", b"abc", "X-Amz-Meta-Large: " + "x" * 1_000), b"abc"),
    ],
)
def test_what_is_not_plain_is_answered_too(client: Client, sent: bytes, stored: bytes) -> None:
    # Given a connection with a plain request before, When another one follows, Then it is answered, and so is the next
    assert client.ask(sent)[0] == 200
    status, fields, _ = client.ask(request("HEAD", "/bucket/other"))
    assert (status, fields["content-length"]) == (200, str(len(stored)))
    assert client.ask(request("GET", "/bucket/other"))[2] == stored


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost : b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nBad\0: a\r\n\r\n",
        b"no request\r\n\r\n",
        b"\x16\x03\x01\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(client: Client, sent: bytes) -> None:
    status, _, _ = client.ask(sent)
    assert status in {400, 431}
    assert client.is_closed()


def test_who_asks_to_close_or_leaves_is_let_go(client: Client, place: Place) -> None:
    # When a client asks for the end of the connection, then it has its answer first
    assert client.ask(request("GET", "/", b"", "Connection: close"))[0] == 200
    assert client.is_closed()
    # And one that leaves in the middle of a request harms nobody
    other = Client(place)
    other.socket.sendall(request("PUT", "/bucket/half", b"x" * 1000)[:-500])
    other.close()
    with closing(Client(place)) as another:
        assert another.ask(request("GET", "/bucket/half"))[0] == 404


def test_connections_that_nobody_uses_do_not_hold_up_the_end(place: Place) -> None:
    # Given a connection that is kept open, When the emulator is stopped, Then it ends in order, and closes it
    with closing(Client(place)) as kept:
        assert emulator.stop(place)
        assert kept.is_closed()
        assert emulator.rolled_back(place) == ""
