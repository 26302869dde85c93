"""The sender: one HTTP request to a subscriber, guarded, bounded, and reported as an
:class:`~pushhub.base.verdict.Answer`.

It uses a single stateless ``requests`` session: no proxies or credentials from the environment, no cookies, no
redirects. What a failure's ``error_class`` says:

* Nothing was sent: ``invalid_url invalid_header refused_by_guard dns connect``, and ``tls`` and ``timeout`` with
  ``bytes_out`` 0.
* The request may have been handled: ``reset bad_response too_large``, and ``tls`` and ``timeout`` with ``bytes_out``
  above 0.
"""

from __future__ import annotations

import http.client
import io
import re
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3.util import SKIP_HEADER

from pushhub.base.verdict import Answer
from pushhub.egress.answer import AnswerCut, AnswerTooLarge, NotHttp, Reply
from pushhub.egress.connection import (
    AttemptFailed,
    GuardedConnection,
    GuardedPoolManager,
    RequestRoute,
    StaleConnection,
    certificate_hint,
)
from pushhub.egress.guard import AllowedTargets
from pushhub.egress.lookup import NameLookup
from pushhub.egress.url import InvalidTarget, UrlParts, parse_target

if TYPE_CHECKING:
    from pushhub.base.ports import PushRequest

# Headers that frame the message or belong to the connection are set by us: RFC 9110 (7.6.1, 7.2, 8.6, 10.1.1), and to
# prevent request smuggling.
_OURS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ILLEGAL_IN_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\s]+")
_MESSAGE_LIMIT = 200
# Idle connections of all pools together; a Lambda environment may have 1,024 open files.
_IDLE_CONNECTIONS = 512


class GuardedSender:
    """Implements :class:`pushhub.base.ports.Sender`; created once, thread-safe.

    Args:
        now: Epoch milliseconds, for the answers' times.
        allowed_targets: Non-public targets allowed for every project, see :class:`pushhub.egress.guard.AllowedTargets`.
        threads: Number of concurrent requests; this many connections are kept per destination.
        lookup: How names are resolved.
        ca_file: Trusted CA certificates (PEM) instead of certifi's.
        idle_limit_s: Seconds after which an idle connection is not reused.

    Raises:
        ValueError: ``allowed_targets`` contains an entry that cannot be parsed.
    """

    def __init__(
        self,
        *,
        now: Callable[[], int],
        allowed_targets: Sequence[str] = (),
        threads: int = 10,
        lookup: NameLookup | None = None,
        ca_file: str | None = None,
        idle_limit_s: float = 50.0,
    ) -> None:
        self._now = now
        self._allowed_targets = AllowedTargets.parse(allowed_targets).texts
        self._lookup = lookup or NameLookup()
        self._session = _Session()
        self._session.trust_env = False
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        adapter = _GuardedAdapter(
            ca_file=ca_file,
            places=max(1, _IDLE_CONNECTIONS // threads),
            connections=threads,
            idle_limit_s=idle_limit_s,
        )
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)

    def send(self, request: PushRequest) -> Answer:
        """Make the request and wait for its answer, with a total limit of ``request.timeout_s`` seconds.

        Returns:
            The answer, or (with ``status_code`` 0) the reason why there is none.

        Raises:
            Unavailable: This machine was unable to try; nothing was sent, and the subscriber is not to blame.
        """
        started_at = self._now()
        deadline = time.monotonic() + request.timeout_s
        try:
            response = self._session.send(
                self._guarded(request, deadline), stream=True, allow_redirects=False, proxies={}
            )
        except AttemptFailed as failure:
            return Answer(
                status_code=0,
                message=_one_line(failure.message),
                error_class=failure.error_class,
                started_at=started_at,
                finished_at=max(started_at, self._now()),
                bytes_out=len(request.body) if failure.sent else 0,
            )
        body: bytes = response.raw.read()
        return Answer(
            status_code=response.status_code,
            message=_one_line(_as_sent(response.reason) or http.client.responses.get(response.status_code, "")),
            body=body,
            headers=dict(response.headers),
            started_at=started_at,
            finished_at=max(started_at, self._now()),
            bytes_out=len(request.body),
            bytes_in=len(body),
        )

    def close(self) -> None:
        """Close every idle connection."""
        self._session.close()

    def _guarded(self, request: PushRequest, deadline: float) -> _GuardedRequest:
        try:
            target = parse_target(request.url)
        except InvalidTarget as error:
            raise AttemptFailed("invalid_url", str(error)) from error
        try:
            allowed = AllowedTargets.parse((*self._allowed_targets, *request.allowed_targets))
        except ValueError as error:
            raise AttemptFailed(
                "refused_by_guard", f"The project's list of allowed targets cannot be read: {error}"
            ) from error
        route = RequestRoute(
            target=target, allowed=allowed, deadline=deadline, lookup=self._lookup, identity=request.identity
        )
        return _GuardedRequest(request, route)


class _GuardedRequest(requests.PreparedRequest):
    """A request as it goes on the wire. It bypasses the preparation by ``requests``, which would parse the URL
    again.
    """

    def __init__(self, request: PushRequest, route: RequestRoute) -> None:
        super().__init__()
        self.method = request.method
        self.url = f"{route.target.scheme}://{route.target.host}/"
        self.headers = CaseInsensitiveDict()
        self.push = request
        self.route = route
        self.wire_headers = _wire_headers(request.headers, route.target)


class _Session(requests.Session):
    """A session that ignores redirects without even reading where they lead."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:  # noqa: ARG002
        return None


class _GuardedAdapter(HTTPAdapter):
    """Sends through guarded pools only, and also reads the answer, so that every failure surfaces here."""

    poolmanager: GuardedPoolManager

    def __init__(self, *, ca_file: str | None, places: int, connections: int, idle_limit_s: float) -> None:
        self._guarded = GuardedPoolManager(
            ca_file=ca_file, places=places, connections=connections, idle_limit_s=idle_limit_s
        )
        super().__init__()

    def init_poolmanager(self, *_: Any, **__: Any) -> None:
        self.poolmanager = self._guarded

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        if not isinstance(request, _GuardedRequest):
            raise TypeError("only guarded requests can be sent with this adapter")
        pool = self.poolmanager.pool(request.route)
        connection = pool.borrow()
        try:
            reply = _exchange(connection, request)
        except BaseException:
            connection.close()
            raise
        finally:
            pool.give_back(connection)
        response = requests.Response()
        response.request = request
        response.status_code = reply.status
        response.reason = reply.reason
        response.headers = _joined(reply)
        response.raw = io.BytesIO(reply.body)
        return response


def _exchange(connection: GuardedConnection, request: _GuardedRequest) -> Reply:
    route, push = request.route, request.push
    reused = connection.open(route)
    try:
        try:
            return connection.exchange(push.method, request.wire_headers, push.body, push.answer_limit)
        except StaleConnection as stale:
            if not (reused and stale.unread):
                raise
        # The other side closed an idle connection just as it was reused. One try is one request that can have been
        # read: only because this one certainly was not, is it sent again.
        connection.close()
        connection.open(route)
        return connection.exchange(push.method, request.wire_headers, push.body, push.answer_limit)
    except (StaleConnection, OSError, NotHttp, AnswerCut, AnswerTooLarge) as error:
        raise _explained(error, request) from error


def _explained(error: Exception, request: _GuardedRequest) -> AttemptFailed:
    match error:
        case TimeoutError():
            error_class, message = "timeout", f"No complete answer within {request.push.timeout_s:g} s"
        case StaleConnection():
            error_class, message = "reset", f"The connection was closed without an answer{_missed(request)}"
        case ssl.SSLError():
            hint = certificate_hint(error, request.route.identity)
            error_class, message = "tls", f"TLS failed: {error.reason or type(error).__name__}{hint}"
        case OSError():
            error_class, message = "reset", f"The connection broke: {error.strerror or type(error).__name__}"
        case AnswerTooLarge():
            error_class, message = "too_large", "The answer's head or framing is too large"
        case AnswerCut():
            error_class, message = "bad_response", "The answer ended before it was complete"
        case _:
            error_class, message = "bad_response", "The answer is not valid HTTP/1.1"
    return AttemptFailed(error_class, message, sent=True)


def _missed(request: _GuardedRequest) -> str:
    """What a server may have missed that closes a TLS connection without a word: over TLS 1.3 it asks for a client
    certificate only after the handshake has ended for the client.
    """
    identity = request.route.identity
    if request.route.target.scheme != "https" or (identity is not None and identity.pem):
        return ""
    return ", as servers do that ask for a client certificate and get none"


def _wire_headers(given: Mapping[str, str], target: UrlParts) -> dict[str, str]:
    """The headers to send, with names in their original spelling, without those that we set.

    Raises:
        AttemptFailed: A name or value cannot be sent.
    """
    headers: dict[str, str] = {}
    # urllib3 would send its own name otherwise.
    missing = {"user-agent": ("User-Agent", SKIP_HEADER)}
    if target.authorization:
        missing["authorization"] = ("Authorization", target.authorization)
    for name, value in given.items():
        lower = name.lower()
        if lower in _OURS:
            continue
        if not _HEADER_NAME.fullmatch(name) or _ILLEGAL_IN_VALUE.search(value):
            raise AttemptFailed("invalid_header", "A header has characters that may not be sent")
        missing.pop(lower, None)
        headers[name] = _latin_1(value)
    headers.update(missing.values())
    return headers


def _latin_1(value: str) -> str:
    """The value as text whose Latin-1 bytes go on the wire: unchanged, or its UTF-8 bytes if Latin-1 cannot encode
    it.
    """
    if value.isascii():
        return value
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        try:
            return value.encode().decode("latin-1")
        except UnicodeEncodeError as error:
            raise AttemptFailed("invalid_header", "A header is not valid Unicode") from error
    return value


def _joined(reply: Reply) -> CaseInsensitiveDict[str]:
    """Headers by lower-case name; repeated ones are joined with commas (RFC 9110, 5.3)."""
    headers: dict[str, list[str]] = {}
    for name, value in reply.headers:
        headers.setdefault(name, []).append(value)
    return CaseInsensitiveDict({name: ", ".join(values) for name, values in headers.items()})


def _as_sent(reason: str) -> str:
    """A reason phrase that was decoded as Latin-1, as UTF-8 if its bytes are (RFC 9112 does not specify the
    encoding).
    """
    try:
        return reason.encode("latin-1").decode()
    except UnicodeError:
        return reason


def _one_line(text: str) -> str:
    return _UNPRINTABLE.sub(" ", text).strip()[:_MESSAGE_LIMIT]
