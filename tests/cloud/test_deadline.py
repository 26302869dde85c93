"""Calls of services keep to the time that is left to answer a request."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pytest

from pushhub.base.errors import Overdue, Unavailable
from pushhub.cloud import deadline as module
from pushhub.cloud.calls import aws_call
from pushhub.cloud.clients import Clients
from pushhub.cloud.deadline import Deadline

STOPPED_S = 29.0
"""The function's timeout in the template."""


@dataclass
class Seconds:
    """A clock that tests move."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Service:
    """A service on loopback that accepts connections and answers nothing, or as it is told."""

    answer: bytes = b""
    requests: int = 0
    opened: list[socket.socket] = field(default_factory=list)
    clock: Seconds = field(default_factory=Seconds)
    takes_s: float = 0.0

    def serve(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                self.opened.append(connection)
                connection.recv(65_536)
                self.requests += 1
                self.clock.now += self.takes_s
                if self.answer:
                    connection.sendall(self.answer)


@contextmanager
def service(**settings: object) -> Iterator[tuple[Service, str]]:
    created = Service(**settings)  # type: ignore[arg-type]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=created.serve, args=[listening], daemon=True).start()
        yield created, f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    for each in created.opened:
        each.close()


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")


@pytest.mark.parametrize("begins_ms", range(0, 29_000, 250))
def test_a_call_is_over_before_the_function_is_stopped_whenever_it_begins(begins_ms: int) -> None:
    # Given a request, and a call some time later
    clock = Seconds()
    until = Deadline(clock)
    with until.within(STOPPED_S):
        clock.now += begins_ms / 1000
        try:
            read_s = until.read_s()
        except Overdue:
            # Then it is refused only in the last seconds
            assert begins_ms > 22_000
            return
    # Or it ends, however long the service takes, with two seconds left for the answer
    worst_s = 2.0 + 10.0 if read_s is None else 1.0 + read_s
    assert begins_ms / 1000 + worst_s + 2 <= STOPPED_S
    # And while there is time, it may take as long as always
    assert read_s is None or begins_ms > 14_000


def test_without_a_request_there_is_no_hurry() -> None:
    until = Deadline(Seconds())
    assert until.read_s() is None
    with until.within(0.5):
        assert until.is_near
    assert not until.is_near
    assert until.read_s() is None


def test_a_call_that_begins_too_late_is_not_made() -> None:
    # Given a client of an environment whose answer is due
    until = Deadline(Seconds())
    with service(answer=b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as (asked, url):
        client = Clients(until).of("dynamodb", endpoint_url=url)
        # When it calls in time and too late, then only the first request reaches the service
        client.list_tables()
        with until.within(1), pytest.raises(Overdue), aws_call("dynamodb:ListTables"):
            client.list_tables()
    assert asked.requests == 1


def test_a_call_in_the_last_seconds_waits_for_as_long_as_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a service that does not answer, and little time
    monkeypatch.setattr(module, "SHORT_READS_S", (8.0, 0.1))
    clock = Seconds()
    until = Deadline(clock)
    with service(clock=clock, takes_s=1.0) as (asked, url):
        client = Clients(until).of("dynamodb", endpoint_url=url)
        # When it is called, then attempts are made while there is time for one, and it fails as a service that is down
        with until.within(4.5), pytest.raises(Overdue) as raised, aws_call("dynamodb:ListTables"):
            client.list_tables()
    assert asked.requests == 2
    assert isinstance(raised.value, Unavailable)


def test_a_call_in_the_last_seconds_is_answered() -> None:
    until = Deadline(Seconds())
    with service(answer=b'HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{"TableNames": []}') as (_, url):
        client = Clients(until).of("dynamodb", endpoint_url=url)
        with until.within(6):
            assert client.list_tables()["TableNames"] == []
