"""The servers of the account's endpoints (:mod:`simulation.endpoints`): each has an address, where it answers on all
ports.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any, Protocol

from greenlet import getcurrent

from pushhub.base.ports import PushRequest
from simulation.endpoints import Asked, Endpoint, Reply
from simulation.internet.http import Reading
from simulation.internet.network import Exchange, Line, current_exchange
from simulation.promises.talks.internet import Request, answer

OF_THE_CONNECTION = frozenset({"content-length", "host"})
"""Headers that are not the sender's, and that endpoints are not told of; nor of the connection's default encoding."""
DEFAULT_ENCODING = ("accept-encoding", "identity")

TOO_LARGE = b"HTTP/1.1 200 OK\r\nx-filler: " + b"x" * 310_000
"""A head that is larger than any that is read."""


class Pretended(Exception):
    """An endpoint that was asked wants to have been out of reach, or whatever else no server can do.

    Args:
        reply: What its client sees.
    """

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.error_class)
        self.reply = reply


class Known(Protocol):
    """The endpoints, by host."""

    @property
    def known(self) -> dict[str, Endpoint]:
        """See above."""


class Servers:
    """Finds the server of an endpoint.

    Args:
        endpoints: All of them; they may change.
    """

    def __init__(self, endpoints: Known) -> None:
        self._endpoints = endpoints
        self._servers: dict[str, Server] = {}

    def at_host(self, host: str) -> Server | None:
        """The server at a host."""
        if host not in self._endpoints.known:
            return None
        if host not in self._servers:
            self._servers[host] = Server(self._endpoints, host)
        return self._servers[host]


class Server:
    """The server of one host, whose endpoint may become another.

    Args:
        endpoints: All endpoints.
        host: Its name.
    """

    encrypted = False

    def __init__(self, endpoints: Known, host: str) -> None:
        self._endpoints = endpoints
        self._host = host
        self._reading: dict[Line, Reading] = {}

    @property
    def endpoint(self) -> Endpoint:
        """Whose it is."""
        return self._endpoints.known[self._host]

    def refuses(self, exchange: Exchange) -> int | None:
        """When a connection is refused, as nothing listens; the endpoint is told of the request that nobody gets."""
        if self.endpoint.listens():
            return None
        seen, reply = self.endpoint.asked(exchange.request, current_environment())
        exchange.asked.append(seen)
        return reply.takes

    def begun(self, line: Line) -> None:
        """Nothing is said before a request."""

    def gone(self, line: Line) -> bool:  # noqa: ARG002 (the protocol's)
        """A server that is down has lost its connections."""
        return not self.endpoint.listens()

    def came(self, line: Line, data: bytes) -> None:
        """Answer each request that is complete."""
        reading = self._reading.pop(line, None) or Reading()
        for request in reading.requests(data):
            self._answer(line, request)
        if reading.begun:
            self._reading[line] = reading

    def _answer(self, line: Line, request: Request) -> None:
        host = request.header("host").rpartition(":")[0] or request.header("host")
        if request.wrong or host != self._host:
            line.say(answer(400, (request.wrong or f"{self._host} is not {host}").encode(), {}))
            return
        exchange, made_for = current_exchange(), line.asked_for
        headers = {name: value for name, value in request.headers if not _of_the_connection(name, value)}
        # Whose certificate was shown is known from the connection: it is that of whom it was made for.
        identity = made_for.identity if made_for is not None else None
        push = PushRequest(
            url=f"{exchange.request.url.partition(':')[0]}://{host}{request.target}",
            body=request.body,
            headers=headers,
            method=request.method,
            identity=identity,
        )
        seen, reply = self.endpoint.asked(push, current_environment())
        exchange.asked.append(seen)
        _say(line, seen, reply)


def _of_the_connection(name: str, value: str) -> bool:
    return name in OF_THE_CONNECTION or (name, value) == DEFAULT_ENCODING


def _say(line: Line, seen: Asked, reply: Reply) -> None:
    """Answer as an endpoint wants to."""
    if reply.error_class == "reset":
        line.reset(reply.takes)
    elif reply.error_class == "bad_response":
        line.say(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ncut", reply.takes)
        line.end()
    elif reply.error_class == "too_large":
        line.say(TOO_LARGE, reply.takes)
        line.end()
    elif reply.error_class == "tls":
        refused = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required")
        refused.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
        line.fail(refused, reply.takes)
    elif reply.error_class:
        raise Pretended(reply)
    else:
        said = answer(reply.status, reply.body, reply.headers, reply.reason)
        line.say(said, reply.takes, when_taken=_telling(line, seen))


def _telling(line: Line, seen: Asked) -> Callable[[], None]:
    def when_taken() -> None:
        seen.answered_at = line.scheduler.now

    return when_taken


def current_environment() -> str:
    """The name of the environment that the current task belongs to."""
    task: Any = getcurrent()
    return str(task.environment.name)
