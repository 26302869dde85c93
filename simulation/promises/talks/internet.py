"""What a client of the hub has on the internet: names, addresses, certificates, and servers that do what it says, well
or badly, step by step; and what came to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from http.client import responses
from typing import Protocol

PUBLIC, PRIVATE = 200, 201
"""The authority that is trusted as the public ones are, and one that nobody knows."""


class End(Enum):
    """How a server ends a connection."""

    CLOSED = auto()
    """In both directions; what comes later is refused."""
    UNSEEN = auto()
    """The same, and its client learns of it only minutes later."""
    HALF = auto()
    """It says no more, and goes on reading."""
    RESET = auto()
    """At once."""


@dataclass(frozen=True)
class Wait:
    """Time passes, seconds."""

    seconds: float


@dataclass(frozen=True)
class Again:
    """Bytes, so many times."""

    data: bytes
    times: int


Step = bytes | Wait | Again | End


@dataclass(frozen=True)
class Request:
    """A request as its receiver read it.

    Attributes:
        method: Of HTTP.
        target: Path and query.
        headers: Names in lower case, and values, in order.
        body: Its body.
        wrong: What is wrong with it; empty for nothing.
    """

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    wrong: str = ""

    def header(self, name: str) -> str:
        """The value of a header; empty if there is none."""
        return next((value for each, value in self.headers if each == name), "")


@dataclass(frozen=True)
class Heard:
    """A request that came to a server.

    Attributes:
        at: When it was complete, microseconds.
        request: The request.
        line: Number of its connection, from 0.
        number: How many requests came on that connection before it.
        named: The name that was asked for in the TLS handshake; empty without.
        client: The common name of the certificate that was shown; empty for none.
    """

    at: int
    request: Request
    line: int
    number: int
    named: str = ""
    client: str = ""


@dataclass(frozen=True)
class Certificate:
    """A server's certificate.

    Attributes:
        hosts: The names and addresses that it is for.
        by: The authority that has signed it.
        ended: Whether it has ended.
        clients: The authority by which the server knows clients, all of which have to show a certificate; 0 for none.
    """

    hosts: tuple[str, ...]
    by: int = PUBLIC
    ended: bool = False
    clients: int = 0


class Connected(Protocol):
    """A connection that was made to a server."""

    @property
    def number(self) -> int:
        """Which one, from 0."""

    @property
    def port(self) -> int:
        """The port that it was made to."""

    @property
    def taken(self) -> int:
        """Bytes of what the server said that were read."""

    @property
    def closed_at(self) -> int | None:
        """When its client closed it, microseconds."""


class Server(Protocol):
    """A server."""

    @property
    def heard(self) -> Sequence[Heard]:
        """The requests that came."""

    @property
    def connected(self) -> Sequence[Connected]:
        """The connections that were made."""


Say = Callable[[Heard], Sequence[Step]]
"""What a server does when a request is complete."""


class Internet(Protocol):
    """See above."""

    def address(self) -> str:
        """A public address that nobody has."""

    def stands(
        self,
        addresses: Sequence[tuple[str, int]],
        say: Say,
        *,
        shows: Certificate | None = None,
        greeting: Sequence[Step] = (),
        early: bool = False,
    ) -> Server:
        """A server at some addresses and ports.

        Args:
            addresses: Where it stands.
            say: What it does when a request is complete.
            shows: Its certificate; without, nothing is encrypted.
            greeting: What it does as soon as a connection stands, where TLS is expected.
            early: Whether it answers as soon as the head of a request is complete.
        """

    def leads(self, host: str, found: Callable[[], Sequence[str]]) -> None:
        """A name leads to what this finds each time that it is looked up."""

    def is_slow(self, host: str, seconds: int) -> None:
        """Whoever looks a name up waits so long."""

    def is_silent(self, address: str) -> None:
        """Nobody answers at an address, not even with a refusal."""

    def identity(self, number: int, by: int = PUBLIC) -> str:
        """A client's key and certificate, PEM; its common name is ``client`` and the number."""

    def authority(self, number: int = PUBLIC) -> str:
        """An authority's certificate, PEM."""


def answer(status: int, body: bytes, headers: Mapping[str, str], reason: str = "") -> bytes:
    """A good answer's bytes."""
    lines = [f"HTTP/1.1 {status} {reason or responses.get(status, '')}".rstrip()]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if status not in (204, 304):
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def said(body: bytes = b"fine", status: int = 200, **headers: str) -> bytes:
    """A good answer; underscores in names of headers stand for hyphens."""
    return answer(status, body, {name.replace("_", "-"): value for name, value in headers.items()})
