"""The internet in memory: the hub's own code that sends requests runs on it, and what is said there comes as it was
said.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from greenlet import getcurrent
from simulation.endpoints import Endpoints, Mood
from simulation.internet import egress, tls
from simulation.internet.http import Reading
from simulation.internet.network import Network, exchanged
from simulation.internet.places import Places
from simulation.internet.servers import Servers
from simulation.promises.talks.internet import PRIVATE, Again, Certificate, End, Request, Step, Wait, said
from simulation.recorded import OTHERWISE, as_told
from simulation.scheduler import SECOND, Scheduler

from pushhub.base.ports import ClientIdentity, PushRequest
from pushhub.egress.sender import GuardedSender

HOST = "a.example"


@dataclass
class Abroad:
    """A hub's environment, and the internet."""

    scheduler: Scheduler = field(default_factory=lambda: Scheduler("internet/1"))

    def __post_init__(self) -> None:
        self.account = SimpleNamespace(
            scheduler=self.scheduler, seed="internet/1", asked=0, note=lambda _: None, random=Random(1)
        )
        self.endpoints = self.account.endpoints = Endpoints(self.account)
        self.network = self.account.network = Network(self.scheduler, self.account.random, Servers(self.endpoints))
        self.places = Places(self.network)
        self._environment = SimpleNamespace(name="push-1", account=self.account, pause=self.scheduler.sleep)
        self._sender = egress.module("sender").GuardedSender(
            now=lambda: self.scheduler.now // 1000, threads=2, ca_file=tls.trusted()
        )

    def place(self, *steps: Step, host: str = HOST, **more: Any) -> Any:
        """A server that does the same at each request."""
        address = self.places.address()
        self.places.leads(host, lambda: [address])
        return self.places.stands([(address, 80), (address, 443)], lambda _: steps, **more)

    def send(self, *requests: PushRequest) -> list[Any]:
        """The answers to some requests, one after the other."""
        answers: list[Any] = []

        def work() -> None:
            getcurrent().environment = self._environment  # type: ignore[attr-defined]
            for each in requests:
                with exchanged(each):
                    answers.append(self._sender.send(each))

        with patch.object(*egress.REPLACED):
            self.scheduler.spawn(work)
            self.scheduler.run(self.scheduler.now + 1_000 * SECOND)
        return answers


@pytest.fixture
def abroad() -> Iterator[Abroad]:
    there = Abroad()
    yield there
    there.scheduler.end()


def asking(url: str = f"http://{HOST}/in", body: bytes = b"hello", **more: Any) -> PushRequest:
    return PushRequest(url=url, body=body, **more)


def test_the_code_that_sends_is_the_deployed_one_on_other_sockets() -> None:
    # Given the class that the simulator sends with, then it is another one, of the same text
    simulated = egress.module("sender").GuardedSender
    assert simulated is not GuardedSender
    assert inspect.getsourcefile(simulated) == inspect.getsourcefile(GuardedSender)
    assert egress.module("socket").BoundedSocket.__mro__[1].__name__ == "MemorySocket"
    assert egress.module("url").parse_target.__module__ == "pushhub.egress.url"


def test_an_endpoint_is_asked_over_its_connection_and_answers_in_its_time(abroad: Abroad) -> None:
    # Given an endpoint that is well, and one at which nobody listens
    well = abroad.endpoints.add("well.example", [(0, Mood.WELL)])
    down = abroad.endpoints.add("down.example", [(0, Mood.DOWN)])
    # When both are asked
    one, other = abroad.send(
        asking("https://well.example/a?b=c", headers={"X-Own": "\u20ac"}), asking("http://down.example/")
    )
    # Then the first has the bytes, its headers and no others
    [seen] = well.log
    assert (seen.body, seen.headers, seen.path, seen.query) == (b"hello", {"x-own": "\u20ac"}, "/a", "b=c")
    assert one.status_code == seen.status
    assert seen.answered_at is not None
    assert seen.at < seen.answered_at
    # And what nobody got is told where it was meant to go
    assert (other.error_class, len(down.log), down.log[0].status) == ("connect", 1, 0)


@pytest.mark.parametrize(
    ("steps", "error_class", "took"),
    [
        ((said(),), "", 0),
        ((Wait(3), said()), "", 3),
        ((), "timeout", 10),
        ((b"HTTP/1.1 200 OK\r\n", *[Wait(1), b"a"] * 60), "timeout", 10),
        ((Wait(2), End.CLOSED), "reset", 2),
        ((End.RESET,), "reset", 0),
        ((b"what?\r\n", End.CLOSED), "bad_response", 0),
        ((b"HTTP/1.1 200 OK\r\n", Again(b"A: b\r\n", 100_000)), "too_large", 0),
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_what_a_server_does_comes_when_it_does_it(
    abroad: Abroad, steps: Sequence[Step], error_class: str, took: int, scheme: str
) -> None:
    # Given a server that does one thing after the other, in the clear or over TLS
    shows = Certificate((HOST,)) if scheme == "https" else None
    server = abroad.place(*steps, shows=shows)
    # When it is asked
    [answer] = abroad.send(asking(f"{scheme}://{HOST}/in"))
    # Then it comes in virtual time, and the server knows what was asked by whom
    assert answer.error_class == error_class
    # (whether what was closed had been read is waited for, half a second)
    assert took * 1000 <= answer.duration_ms <= took * 1000 + 520
    [heard] = server.heard
    assert (heard.request.body, heard.request.wrong, heard.named) == (b"hello", "", HOST if shows else "")


@pytest.mark.parametrize(
    ("end", "answers"), [(End.CLOSED, ["", ""]), (End.UNSEEN, ["", ""]), (End.HALF, ["", ""]), (None, ["", "timeout"])]
)
def test_a_kept_connection_may_end_in_several_ways(abroad: Abroad, end: End | None, answers: Sequence[str]) -> None:
    # Given a server that answers the first request of each connection, and then ends it, or says no more
    address = abroad.places.address()
    abroad.places.leads(HOST, lambda: [address])
    server = abroad.places.stands(
        [(address, 80)], lambda heard: () if heard.number else (said(), end) if end else (said(),)
    )
    # When it is asked twice
    found = abroad.send(asking(), asking())
    # Then a connection that ended is not used, or what it refused unread is sent once more
    assert [each.error_class for each in found] == answers
    assert [each.number for each in server.heard] == ([0, 0] if end else [0, 1])


def test_certificates_are_checked_and_shown(abroad: Abroad) -> None:
    # Given a server that lets in whom an authority knows, and a name that is not in its certificate
    server = abroad.place(said(), shows=Certificate((HOST,), clients=PRIVATE))
    abroad.place(said(), host="b.example", shows=Certificate((HOST,)))
    identity = ClientIdentity(digest="1", pem=tls.identity(1, PRIVATE))
    # When they are asked with a certificate, without, and by the other name
    answers = abroad.send(
        asking(f"https://{HOST}/", identity=identity), asking(f"https://{HOST}/"), asking("https://b.example/")
    )
    # Then only the first has an answer
    assert [each.error_class for each in answers] == ["", "tls", "tls"]
    assert [each.client for each in server.heard] == ["client 1"]
    assert server.refused


def test_names_lead_where_they_are_told_to(abroad: Abroad) -> None:
    # Given names that are slow, unknown, lead inside, or to somebody who is silent
    silent = abroad.places.address()
    found: dict[str, Callable[[], Sequence[str]]] = {
        "slow": lambda: ["93.184.0.1"],
        "unknown": lambda: [],
        "inside": lambda: ["10.0.0.1"],
        "silent": lambda: [silent],
    }
    for name, leads in found.items():
        abroad.places.leads(f"{name}.example", leads)
    abroad.places.is_slow("slow.example", 60)
    abroad.places.is_silent(silent)
    # When each is asked
    answers = abroad.send(*(asking(f"http://{name}.example/") for name in found))
    # Then each says why there is none
    assert [each.error_class for each in answers] == ["timeout", "dns", "refused_by_guard", "timeout"]
    assert [each.duration_ms for each in answers] == [10_000, 0, 0, 10_000]


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (b"POST /in HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok", ""),
        (b"POST /in HTTP/1.1\nHost: a\r\n\r\n", "no request of HTTP/1.1"),
        (b"POST in HTTP/1.1\r\nHost: a\r\n\r\n", "no request of HTTP/1.1"),
        (b"POST /in HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n", "no request of HTTP/1.1"),
        (b"POST /in HTTP/1.1\r\n\r\n", "it does not name one host"),
        (b"POST /in HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "it does not name one host"),
        (b"POST /in HTTP/1.1\r\nHost: a\r\nX: y\r\nx: z\r\n\r\n", "headers occur twice: ['x']"),
        (
            b"POST /in HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
            "it is not clear where it ends",
        ),
        (b"POST /in HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "it is not clear where it ends"),
    ],
)
def test_requests_are_read_strictly(data: bytes, wrong: str) -> None:
    # Given what came, byte by byte
    reading, found = Reading(), list[Request]()
    for byte in data:
        found += reading.requests(bytes([byte]))
    # Then it is one request, and what is wrong with it is told
    assert [each.wrong for each in found] == [wrong]


def test_records_are_compared_with_how_a_try_went() -> None:
    # Given the records of two messages, of which one was tried twice
    records: list[dict[str, Any]] = [
        {"kind": "attempt", "message_id": "1", "status_code": 0, "error_class": "tls"},
        {"kind": "attempt", "message_id": "2", "status_code": 200, "error_class": ""},
        {"kind": "attempt", "message_id": "2", "status_code": 200, "error_class": ""},
        {"kind": "accepted", "message_id": "1"},
    ]
    # Then they are as was told, or not
    assert [*as_told(records, {"1": {"status_code": 0, "error_class": "tls"}})] == []
    for expected in ({"1": {"error_class": "dns"}}, {"2": {"status_code": 200}}, {"3": {"status_code": 200}}):
        assert [each.rule for each in as_told(records, expected)] == [OTHERWISE]
