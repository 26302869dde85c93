"""urllib3 connections, pools and pool manager, with the egress guard built in where sockets are made.

The hook is ``HTTPConnection._new_conn``, the one place where urllib3 turns a name into a socket. Here the name is
resolved once, every address is checked, and the connection goes to a checked address, while TLS and ``Host`` keep the
name. A reused connection keeps its checked address, so nothing is resolved again. Each allow-list has its own pools,
because an address allowed for one project may be forbidden for another.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import certifi
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.poolmanager import PoolKey
from urllib3.util import SKIP_HEADER

from pushhub.egress.answer import AnswerCut, Reply, read_answer
from pushhub.egress.guard import AllowedTargets, TargetRefused, checked_addresses
from pushhub.egress.identity import IdentityRefused, TlsContexts
from pushhub.egress.lookup import LookupFailed, NameLookup
from pushhub.egress.socket import BoundedSocket, connect_to, time_left

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.base.ports import ClientIdentity
    from pushhub.egress.url import UrlParts


class AttemptFailed(Exception):
    """An attempt ended without an answer.

    Args:
        error_class: See :class:`pushhub.base.verdict.Answer`.
        message: One line for the subscriber's owner; of the URL it contains only the host.
        sent: Whether the other side may have seen the request.
    """

    def __init__(self, error_class: str, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.message = message
        self.sent = sent


class StaleConnection(Exception):
    """The other side closed the connection before sending any byte of its answer.

    Args:
        unread: Whether it has certainly read nothing of the request.
    """

    def __init__(self, *, unread: bool) -> None:
        super().__init__()
        self.unread = unread


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRoute:
    """Where a request goes, and its deadline.

    Attributes:
        target: The parsed URL.
        allowed: Exceptions from the guard.
        deadline: End of the whole exchange, on ``time.monotonic``.
        lookup: How names are resolved.
        identity: The certificate that it is sent with; None for none.
    """

    target: UrlParts
    allowed: AllowedTargets
    deadline: float
    lookup: NameLookup
    identity: ClientIdentity | None = None


class _Broken(Exception):
    """The connection broke while the answer was read; the cause says how. ``http.client`` closes a connection at once
    for the system's own errors, and then nobody could ask it whether the request was read.
    """


class _Answer:
    """What ``http.client`` takes for its own kind of answer; all of it is read at once.

    Attributes:
        reply: The answer, once it was read.
        will_close: Whether the connection cannot be used again.
    """

    reply: Reply
    will_close = True

    def __init__(self, receive: Callable[[bytearray], int], method: str, limit: int) -> None:
        self._asked = receive, method, limit

    def begin(self) -> None:
        """Read it."""
        try:
            self.reply = read_answer(*self._asked)
        except ConnectionError as error:
            raise _Broken from error
        self.will_close = not self.reply.reusable

    def isclosed(self) -> bool:
        """Whether another request may be sent."""
        return True

    def close(self) -> None:
        """Nothing is held."""


class GuardedConnection(HTTPConnection):
    """A connection to a checked address.

    Attributes:
        route: The route of the current exchange; set by :meth:`open`.
        idle_since: When the last exchange ended, on ``time.monotonic``.
    """

    route: RequestRoute
    idle_since = 0.0
    _answer_limit = 0

    def response_class(self, sock: socket.socket, method: str | None = None) -> _Answer:  # type: ignore[override]
        """Called by ``http.client`` for the answer to a request."""
        return _Answer(sock.recv_into, method or "", self._answer_limit)

    def putheader(self, header: str | bytes, *values: Any) -> None:
        """Called for each header. urllib3 leaves one out, or raises, if its value reads like :data:`SKIP_HEADER`, which
        anybody can write: only the sender's own means that.
        """
        if not any(value is SKIP_HEADER for value in values):
            http.client.HTTPConnection.putheader(self, header, *values)

    def _new_conn(self) -> socket.socket:
        target, deadline = self.route.target, self.route.deadline
        try:
            addresses = checked_addresses(target, self.route.allowed, self.route.lookup, time_left(deadline))
        except TargetRefused as error:
            raise AttemptFailed("refused_by_guard", str(error)) from error
        except LookupFailed as error:
            raise AttemptFailed("dns", f"{target.host} cannot be resolved: {error}") from error
        except TimeoutError as error:
            raise AttemptFailed("timeout", f"{target.host} was not resolved in time") from error
        try:
            return connect_to(addresses, target.port, deadline)
        except TimeoutError as error:
            raise AttemptFailed("timeout", f"{target.host} did not accept a connection in time") from error
        except OSError as error:
            raise AttemptFailed("connect", f"No connection to {target.host}: {_reason(error)}") from error

    def open(self, route: RequestRoute) -> bool:
        """Prepare for an exchange: connect, unless already connected.

        Returns:
            Whether the connection has been used before.

        Raises:
            AttemptFailed: No connection to an allowed address could be made; nothing was sent.
        """
        self.route = route
        if not self.is_closed:
            return True
        self.connect()
        return False

    def exchange(self, method: str, headers: dict[str, str], body: bytes, answer_limit: int) -> Reply:
        """Send a request and read its answer; the connection stays open only if it can be reused.

        Raises:
            StaleConnection: Closed by the other side without an answer.
            OSError, NotHttp, AnswerCut, AnswerTooLarge: What went wrong after the request was begun.
        """
        bounded = cast(BoundedSocket, self.sock)
        bounded.bind_to(self.route.deadline)
        self._answer_limit = answer_limit
        try:
            # A server that refuses a body half-way closes early, after sending its answer: so try to read that anyway.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
                self.request(method, self.route.target.path, body=body or None, headers=headers)
            # Not urllib3's own wrapper, which expects its own kind of answer.
            answer = cast(_Answer, http.client.HTTPConnection.getresponse(self))
        except (_Broken, ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError, AnswerCut) as error:
            if bounded.received == 0:
                raise StaleConnection(unread=bounded.nothing_was_read()) from error
            if isinstance(error, _Broken) and error.__cause__:
                raise error.__cause__ from None
            raise
        return answer.reply


class _GuardedTLSConnection(GuardedConnection, HTTPSConnection):
    def connect(self) -> None:
        host = self.route.target.host
        try:
            super().connect()
        except ssl.SSLCertVerificationError as error:
            reason = error.verify_message or error.reason
            raise AttemptFailed("tls", f"The certificate of {host} is not valid: {reason}") from error
        except TimeoutError as error:
            raise AttemptFailed("timeout", f"{host} did not complete the TLS handshake in time") from error
        except OSError as error:
            hint = certificate_hint(error, self.route.identity)
            raise AttemptFailed("tls", f"TLS handshake with {host} failed: {_reason(error)}{hint}") from error


_ABOUT_CERTIFICATES = re.compile(
    "CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE|BAD_CERTIFICATE|UNKNOWN_CA|CERTIFICATE_(EXPIRED|REVOKED|UNKNOWN)|ACCESS_DENIED"
)
"""Alerts by which a server says that it misses a client certificate, or does not accept the one it got."""


def certificate_hint(error: Exception, identity: ClientIdentity | None) -> str:
    """What a failure has to do with client certificates, as far as can be known; empty if nothing."""
    if not isinstance(error, ssl.SSLError) or not _ABOUT_CERTIFICATES.search(error.reason or ""):
        return ""
    if identity is not None and identity.pem:
        return ": it does not accept the client certificate"
    return ": it may ask for a client certificate, and there is none"


class GuardedPool(HTTPConnectionPool):
    """Idle connections to one destination; hands out unconnected ones when none is idle.

    Attributes:
        idle_limit_s: Seconds after which an idle connection is not reused. Devices in between may have dropped it
            without telling either end, especially while a Lambda environment was frozen, and a request on it would only
            time out.
    """

    ConnectionCls = GuardedConnection
    idle_limit_s: float

    def borrow(self) -> GuardedConnection:
        """A connection, to be returned with :meth:`give_back`.

        One that was idle for too long, or that the other side closed, is returned closed.
        """
        connection = cast(GuardedConnection, self._get_conn())
        if time.monotonic() - connection.idle_since > self.idle_limit_s:
            connection.close()
        return connection

    def give_back(self, connection: GuardedConnection) -> None:
        """Take back a connection, open (when the exchange ended cleanly) or closed."""
        connection.idle_since = time.monotonic()
        self._put_conn(connection)


class _GuardedTLSPool(GuardedPool, HTTPSConnectionPool):
    ConnectionCls = _GuardedTLSConnection


class GuardedPoolManager(PoolManager):
    """Pools by destination and allow-list.

    Args:
        ca_file: Trusted CA certificates (PEM).
        places: Maximum number of pools; the least recently used one is dropped first.
        connections: Idle connections kept per pool.
        idle_limit_s: See :class:`GuardedPool`.
    """

    def __init__(self, *, ca_file: str | None, places: int, connections: int, idle_limit_s: float) -> None:
        super().__init__(num_pools=places, maxsize=connections)
        self.pool_classes_by_scheme = {"http": GuardedPool, "https": _GuardedTLSPool}
        self._idle_limit_s = idle_limit_s
        self._contexts = TlsContexts(ca_file or certifi.where())

    def pool(self, route: RequestRoute) -> GuardedPool:
        """The pool of connections a route may use.

        Raises:
            AttemptFailed: Its certificate cannot be used; nothing was sent.
        """
        target, identity = route.target, route.identity
        place: dict[str, Any] = {"scheme": target.scheme, "host": target.host, "port": target.port}
        key: tuple[object, ...] = (target.scheme, target.lookup_name, target.port, route.allowed.texts)
        if identity is not None:
            # A connection belongs to whoever has shown a certificate on it.
            key = (*key, identity.digest)
            try:
                place["ssl_context"] = self._contexts.of(identity)
            except IdentityRefused as error:
                raise AttemptFailed("tls", f"The client certificate cannot be used: {error}") from error
        # Any hashable key will do; urllib3's own key has thirty fields and is slow to build.
        pool = self.connection_from_pool_key(cast(PoolKey, key), {**self.connection_pool_kw, **place})
        return cast(GuardedPool, pool)

    def _new_pool(
        self, scheme: str, host: str, port: int, request_context: dict[str, Any] | None = None
    ) -> HTTPConnectionPool:
        context = dict(request_context or {})
        if scheme == "https" and "ssl_context" not in context:
            context["ssl_context"] = self._contexts.of(None)
        pool = super()._new_pool(scheme, host, port, request_context=context)
        cast(GuardedPool, pool).idle_limit_s = self._idle_limit_s
        return pool


def _reason(error: OSError) -> str:
    """The system's description of the error."""
    return (error.reason if isinstance(error, ssl.SSLError) else error.strerror) or type(error).__name__
