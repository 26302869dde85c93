"""Names, addresses and connections, in virtual time, and what each side has said on them.

A connection is one list of what its client will find there, each with its moment. Whoever answers says all of it when
something comes, so a client that waits needs only to let time pass.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from random import Random
from typing import Any, Protocol

from greenlet import getcurrent

from pushhub.base.ports import PushRequest
from simulation.scheduler import Scheduler

PUBLIC = int(IPv4Address("93.184.0.1"))
"""The first address that hosts are given."""

NEAREST, FARTHEST = 500, 5_000
"""Microseconds until a connection stands, or a request arrives on one that was kept."""


def broken(number: int) -> OSError:
    """The system's error of a number."""
    return OSError(number, os.strerror(number))


@dataclass
class Event:
    """Something that comes to the client of a connection.

    Attributes:
        at: When, microseconds.
        data: Bytes; none for an end.
        times: How often they come, one after the other.
        error: Raised, in place of bytes; with neither, the other side has ended its direction.
        when_taken: Called when the client takes it.
    """

    at: int
    data: bytes = b""
    times: int = 1
    error: OSError | None = None
    when_taken: Callable[[], None] | None = None
    begun: int = 0


class Peer(Protocol):
    """Whoever is at the other end of connections."""

    encrypted: bool
    """Whether it speaks TLS; otherwise what is sent to it by https is left as it is."""

    def begun(self, line: Line) -> None:
        """A connection was made."""

    def came(self, line: Line, data: bytes) -> None:
        """Bytes came on it."""

    def refuses(self, exchange: Exchange) -> int | None:
        """When a connection is refused, microseconds from now; None if it is accepted."""

    def gone(self, line: Line) -> bool:
        """Whether it has let go of a connection that nobody uses."""


class Line:
    """One connection.

    Args:
        scheduler: The clock.
        peer: Who is at its other end.
        address: The address that it leads to.
        port: The port there.
        environment: Who made it.

    Attributes:
        asked_for: The request for which it was made.
        acknowledged: Bytes of the client that the other side's system has taken.
        taken: Bytes that the client has taken.
        closed_at: When the client closed it, microseconds.
        fresh: Whether the other side's answer is not the last that went over it.
        deaf_at: From when on the other side's system refuses what comes, microseconds.
    """

    def __init__(self, scheduler: Scheduler, peer: Peer, address: str, port: int, environment: Any) -> None:
        self.scheduler = scheduler
        self.peer = peer
        self.address = address
        self.port = port
        self.environment = environment
        self.asked_for: PushRequest | None = None
        self.acknowledged = 0
        self.taken = 0
        self.closed_at: int | None = None
        self.fresh = True
        self.deaf_at: int | None = None
        self._coming: deque[Event] = deque()
        self._last = scheduler.now

    def say(self, data: bytes, after: int = 0, *, times: int = 1, when_taken: Callable[[], None] | None = None) -> None:
        """Send bytes to the client, so long after now and after what was said before."""
        self._add(Event(self._moment(after), data, times, when_taken=when_taken))

    def end(self, after: int = 0, *, reads_on: bool = False, unseen: int = 0) -> None:
        """End this direction; without ``reads_on``, what comes later is refused. The client learns of the end so long
        after it.
        """
        moment = self._moment(after)
        if not reads_on:
            self._deaf(moment)
        self._add(Event(moment + unseen))

    def reset(self, after: int = 0) -> None:
        """Break it."""
        moment = self._moment(after)
        self._deaf(moment)
        self._add(Event(moment, error=broken(errno.ECONNRESET)))

    def _deaf(self, moment: int) -> None:
        self.deaf_at = moment if self.deaf_at is None else min(moment, self.deaf_at)

    def fail(self, error: OSError, after: int = 0) -> None:
        """Let the client's next look fail."""
        self._add(Event(self._moment(after), error=error))

    def _moment(self, after: int) -> int:
        self._last = max(self._last, self.scheduler.now + after)
        return self._last

    def _add(self, event: Event) -> None:
        self._coming.append(event)

    def sent(self, data: bytes) -> None:
        """Bytes of the client arrive.

        Raises:
            BrokenPipeError: The other side has refused the connection.
        """
        if self.hung_up():
            raise broken(errno.EPIPE)
        if self.deaf_at is not None and self.deaf_at <= self.scheduler.now:
            # Its system refuses what comes, a round trip later, whatever was on its way.
            refused = self.scheduler.now + FARTHEST
            self._coming = deque(each for each in self._coming if each.at <= refused)
            self._add(Event(refused, error=broken(errno.ECONNRESET)))
            return
        self.acknowledged += len(data)
        self.peer.came(self, data)

    def next_at(self) -> int | None:
        """When something comes next; None if nothing does."""
        return self._coming[0].at if self._coming else None

    def readable(self) -> bool:
        """Whether bytes or an end have come."""
        return self.peer.gone(self) or bool(self._coming and self._coming[0].at <= self.scheduler.now)

    def hung_up(self, by: int | None = None) -> bool:
        """Whether the other side has refused the connection by now, or by a moment."""
        until = self.scheduler.now if by is None else by
        return any(each.error is not None and each.at <= until for each in self._coming)

    def refused_at(self) -> int | None:
        """When the other side refuses the connection, if it does."""
        return next((each.at for each in self._coming if each.error is not None), None)

    def take(self, most: int) -> bytes:
        """What has come, at most so much of it; empty for its end.

        Raises:
            OSError: It is broken.
        """
        event = self._coming[0]
        taken, event.when_taken = event.when_taken, None
        if taken is not None:
            taken()
        if event.error is not None:
            raise event.error
        if not event.data:
            return b""
        piece = event.data[event.begun : event.begun + most]
        event.begun += len(piece)
        if event.begun == len(event.data):
            event.begun, event.times = 0, event.times - 1
            if not event.times:
                self._coming.popleft()
        self.taken += len(piece)
        self.fresh = False
        return piece


@dataclass
class Exchange:
    """A request that the hub's code is asked to send.

    Attributes:
        request: What it is asked.
        asked: What endpoints recorded of it.
    """

    request: PushRequest
    asked: list[Any] = field(default_factory=list)


class Servers(Protocol):
    """Who answers where."""

    def at_host(self, host: str) -> Peer | None:
        """Who answers at a host; None if nobody has that name."""


class Network:
    """What an account's functions reach.

    Args:
        scheduler: The clock.
        random: Decides how far others are.
        servers: Who has a name of their own.

    Attributes:
        names: Addresses of other names; what is looked up more than once may have another answer each time.
        slow: Names whose servers take so many microseconds.
        peers: Who answers at other addresses.
        silent: Addresses, perhaps with ports, where nobody answers a connection's first packet.
        lookups: Names that were looked up.
        lines: Connections that were made to those at other addresses.
    """

    def __init__(self, scheduler: Scheduler, random: Random, servers: Servers) -> None:
        self.scheduler = scheduler
        self._random = random
        self._servers = servers
        self.names: dict[str, Callable[[], Sequence[str]]] = {}
        self.slow: dict[str, int] = {}
        self.peers: dict[tuple[str, int], Peer] = {}
        self.silent: set[str] = set()
        self.lookups: list[str] = []
        self.lines: list[Line] = []
        self._given = 0
        self._addresses: dict[str, str] = {}
        self._hosts: dict[str, str] = {}

    def address(self) -> str:
        """A public address that nobody has."""
        self._given += 1
        return str(IPv4Address(PUBLIC + self._given))

    def resolve(self, name: str) -> Sequence[str]:
        """The addresses of a name.

        Raises:
            OSError: It has none.
        """
        host = name.removesuffix(".").lower()
        found = self.names.get(host)
        if found is not None:
            self.lookups.append(host)
            addresses = found()
            if not addresses:
                raise OSError(-2, "Name or service not known")
            return addresses
        if self._servers.at_host(host) is None:
            raise OSError(-2, "Name or service not known")
        if host not in self._addresses:
            self._addresses[host] = self.address()
            self._hosts[self._addresses[host]] = host
        return [self._addresses[host]]

    def connect(self, address: str, port: int, timeout: float | None, pause: Callable[[int], None]) -> Line:
        """A connection.

        Raises:
            OSError: There is none.
        """
        if address in self.silent:
            pause(round((timeout or 0) * 1_000_000))
            raise TimeoutError("timed out")
        task: Any = getcurrent()
        pause(self._random.randrange(NEAREST, FARTHEST))
        peer = self.peers.get((address, port))
        listed = peer is not None
        if peer is None and address in self._hosts:
            peer = self._servers.at_host(self._hosts[address])
        if peer is None:
            raise broken(errno.ECONNREFUSED)
        exchange: Exchange = task.exchange
        later = peer.refuses(exchange)
        if later is not None:
            pause(later)
            raise broken(errno.ECONNREFUSED)
        line = Line(self.scheduler, peer, address, port, task.environment)
        line.asked_for = exchange.request
        if listed:
            self.lines.append(line)
        peer.begun(line)
        return line

    def arrives(self, line: Line, pause: Callable[[int], None]) -> None:
        """Wait until what is sent on a connection begins to arrive."""
        if not line.fresh:
            line.fresh = True
            pause(self._random.randrange(NEAREST, FARTHEST))


@contextmanager
def exchanged(request: PushRequest) -> Iterator[Exchange]:
    """The request that the current task sends."""
    task: Any = getcurrent()
    task.exchange = exchange = Exchange(request)
    try:
        yield exchange
    finally:
        task.exchange = None


def current() -> tuple[Network, Callable[[int], None]]:
    """The network of the current task, and how it waits."""
    environment: Any = getcurrent().environment  # type: ignore[attr-defined]
    return environment.account.network, environment.pause


def current_exchange() -> Exchange:
    """The request that the current task sends."""
    found: Exchange = getcurrent().exchange  # type: ignore[attr-defined]
    return found


Headers = Mapping[str, str]

__all__ = ["Event", "Exchange", "Headers", "Line", "Network", "Peer", "Servers", "broken", "current", "exchanged"]
