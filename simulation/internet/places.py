"""Servers that somebody wrote, well or badly (:mod:`simulation.promises.talks.internet` has their words)."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from simulation.internet import tls
from simulation.internet.http import Reading
from simulation.internet.network import Exchange, Line, Network
from simulation.promises.talks.internet import PUBLIC, Again, Certificate, End, Heard, Request, Say, Step, Wait
from simulation.scheduler import SECOND

UNSEEN = 600 * SECOND


@dataclass
class Connection:
    """One connection as such a server has it."""

    line: Line
    number: int
    inner: tls.EncryptedLine | None = None
    heard: int = 0
    answered_early: bool = False
    come: bytearray = field(default_factory=bytearray)
    reading: Reading = field(default_factory=Reading)

    @property
    def port(self) -> int:
        """The port that it was made to."""
        return self.line.port

    @property
    def taken(self) -> int:
        """Bytes of what the server said that were read."""
        return self.line.taken

    @property
    def closed_at(self) -> int | None:
        """When its client closed it, microseconds."""
        return self.line.closed_at


class Place:
    """Such a server; see :meth:`.Internet.stands`.

    Attributes:
        heard: The requests that came.
        connected: The connections that were made, in order.
        refused: Why handshakes failed.
    """

    def __init__(
        self, say: Say, *, context: ssl.SSLContext | None = None, greeting: Sequence[Step] = (), early: bool = False
    ) -> None:
        self.encrypted = context is not None or bool(greeting)
        self.heard: list[Heard] = []
        self.connected: list[Connection] = []
        self.refused: list[str] = []
        self._say = say
        self._context = context
        self._greeting = greeting
        self._early = early
        self._of: dict[Line, Connection] = {}

    def begun(self, line: Line) -> None:
        """A connection stands."""
        found = Connection(line, len(self.connected))
        if self._context is not None:
            found.inner = tls.EncryptedLine(line, self._context)
        self.connected.append(found)
        self._of[line] = found
        _perform(found, self._greeting)

    def refuses(self, exchange: Exchange) -> None:
        """It accepts each."""

    def gone(self, line: Line) -> bool:  # noqa: ARG002 (the protocol's)
        """It says itself when it lets go."""
        return False

    def came(self, line: Line, data: bytes) -> None:
        """Do what was said."""
        found = self._of[line]
        if found.inner is not None:
            try:
                data = found.inner.came(data)
            except ssl.SSLError as error:
                self.refused.append(error.reason or type(error).__name__)
                line.end()
                return
        if self._early:
            found.come += data
            if not found.answered_early and b"\r\n\r\n" in found.come:
                found.answered_early = True
                self._does(found, Request("", "", (), b""))
            return
        for request in found.reading.requests(data):
            self._does(found, request)

    def _does(self, found: Connection, request: Request) -> None:
        named, client = (found.inner.named, found.inner.client) if found.inner else ("", "")
        heard = Heard(found.line.scheduler.now, request, found.number, found.heard, named, client)
        found.heard += 1
        self.heard.append(heard)
        _perform(found, self._say(heard))


def _perform(found: Connection, steps: Sequence[Step]) -> None:
    line, after = found.line, 0
    says = found.inner or line
    for step in steps:
        if isinstance(step, Wait):
            after += round(step.seconds * SECOND)
        elif isinstance(step, Again):
            says.say(step.data, after, times=step.times)
        elif isinstance(step, bytes):
            says.say(step, after)
        elif step is End.RESET:
            line.reset(after)
        else:
            line.end(after, reads_on=step is End.HALF, unseen=UNSEEN if step is End.UNSEEN else 0)


class Places:
    """What a client of the hub has on a network; see :class:`.Internet`."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def address(self) -> str:
        """See there."""
        return self._network.address()

    def stands(
        self,
        addresses: Sequence[tuple[str, int]],
        say: Say,
        *,
        shows: Certificate | None = None,
        greeting: Sequence[Step] = (),
        early: bool = False,
    ) -> Place:
        """See there."""
        place = Place(say, context=tls.server(shows) if shows else None, greeting=greeting, early=early)
        for address, port in addresses:
            self._network.peers[str(ip_address(address)), port] = place
        return place

    def leads(self, host: str, found: Callable[[], Sequence[str]]) -> None:
        """See there."""
        self._network.names[host] = found

    def is_slow(self, host: str, seconds: int) -> None:
        """See there."""
        self._network.slow[host] = seconds * SECOND

    def is_silent(self, address: str) -> None:
        """See there."""
        self._network.silent.add(address)

    def identity(self, number: int, by: int = PUBLIC) -> str:
        """See there."""
        return tls.identity(number, by)

    def authority(self, number: int = PUBLIC) -> str:
        """See there."""
        return tls.authority(number)
