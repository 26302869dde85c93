"""API Gateway HTTP APIs as plain requests and responses (payload format 2.0), and a small router.

Hand-written rather than using a framework, because a function pays for its imports at every cold start.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl

from pushhub.base.errors import Invalid, NotFound, RequestRefused, Unanswerable
from pushhub.base.json_text import write
from pushhub.base.numerals import digits
from pushhub.web.answer_size import ANSWER_BYTES, as_base64, as_text

Handler = TypeVar("Handler")

NO_CONTENT = 204

MAX_QUERY_FIELDS = 100
_MOST_PER_CHARACTER = 12
_ACCEPTS_GZIP = re.compile(r"(?:^|,)\s*(?:x-)?gzip\s*(?:,|$|;(?!\s*q=0(?:\.0*)?\s*(?:,|$)))")
OVERRIDE = "x-http-method-override"
WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})
REPLACEMENT = "\ufffd".encode()


class MethodNotAllowed(RequestRefused):
    """The path exists, the method does not.

    Args:
        allowed: The methods it has.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        super().__init__("Method not allowed")
        self.allowed = tuple(sorted(allowed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An HTTP request.

    Attributes:
        method: In upper case; for a POST with ``X-HTTP-Method-Override``, the method named there.
        path: Decoded.
        query: Decoded; if a name occurs twice, the first value.
        pairs: Names and values of the query as they were sent, in order.
        raw_query: The query as it was sent, without the question mark.
        headers: Names in lower case.
        body: The exact bytes; empty for methods whose body has no meaning (some clients send one anyway).
        source_ip: The caller's address.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    pairs: Sequence[tuple[str, str]] = ()
    raw_query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    source_ip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An HTTP response with a JSON body, or with text.

    Attributes:
        status: HTTP status.
        body: A JSON object or array. Text is sent as it is and needs a ``Content-Type``.
        headers: In addition to ``Content-Type``.
        compressed: Whether it is compressed for clients that accept that, however small it is.
    """

    status: int
    body: Mapping[str, object] | Sequence[object] | str
    headers: Mapping[str, str] = field(default_factory=dict)
    compressed: bool = False


_PACKED = frozenset({"gzip", "x-gzip", "deflate", "compress", "br", "zstd"})
"""Content encodings that nobody here unpacks: a small body may become a very large one."""


def request_from_event(event: Mapping[str, Any]) -> Request:
    """The request in an HTTP API event.

    Raises:
        Invalid: Path or query is not UTF-8, the body is packed, or it does not match the event's encoding flag.
    """
    context = event["requestContext"]
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    method = context["http"]["method"].upper()
    if method == "POST" and headers.get(OVERRIDE):
        method = headers[OVERRIDE].strip().upper()
    packed = headers.get("content-encoding", "").strip().lower()
    if not _PACKED.isdisjoint(map(str.strip, packed.split(","))) and method not in WITHOUT_BODY:
        raise Invalid(f"Request body is packed ({packed}): send it without Content-Encoding")
    pairs = _query(event.get("rawQueryString") or "")
    return Request(
        method=method,
        path=_path(event.get("rawPath") or "/", context.get("stage") or "$default"),
        query=dict(reversed(pairs)),
        pairs=pairs,
        raw_query=event.get("rawQueryString") or "",
        headers=headers,
        body=b"" if method in WITHOUT_BODY else _body(event, headers.get("content-length", "")),
        source_ip=context["http"].get("sourceIp", ""),
    )


def _path(raw_path: str, stage: str) -> str:
    """The path as the client meant it. In the event it follows the stage's name, unless the stage is the default one.

    The gateway has already decoded it: decoding it again would turn ``a%41`` into another name. AWS does not document
    what happens to ``%25``, which the emulator leaves as it is (docs/testing.md). So ``%25``, and nothing else, is
    decoded if every percent sign in the path belongs to one. Bytes that are not UTF-8 have become U+FFFD, which would
    merge different names into one.
    """
    if stage != "$default" and (raw_path + "/").startswith(f"/{stage}/"):
        raw_path = raw_path[len(stage) + 1 :] or "/"
    if "\ufffd" in raw_path:
        raise Invalid("Path is not UTF-8")
    keeps_percent_signs = raw_path.count("%") == raw_path.count("%25")
    return raw_path.replace("%25", "%") if keeps_percent_signs else raw_path


def _query(raw_query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(raw_query, keep_blank_values=True, errors="strict", max_num_fields=MAX_QUERY_FIELDS)
    except ValueError as error:
        raise Invalid("Query is malformed") from error


def _body(event: Mapping[str, Any], sent_length: str) -> bytes:
    """The body's bytes. A body that the gateway could not read as the text its content type claims is refused; the
    gateway's repaired version is not used.
    """
    body = event.get("body") or ""
    if event.get("isBase64Encoded"):
        try:
            return base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError) as error:
            raise Invalid("Request body could not be read") from error
    try:
        # Some gateways pass bytes that are not UTF-8 through a string as lone surrogates.
        encoded = str(body).encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise Invalid("Request body is not UTF-8") from error
    # Others replace such bytes with U+FFFD, which changes the length of the body.
    if REPLACEMENT in encoded and digits(sent_length, 18) not in (None, len(encoded)):
        raise Invalid("Request body is not UTF-8")
    return encoded


def accepts_gzip(request: Request) -> bool:
    """Whether the client accepts a compressed response."""
    return _ACCEPTS_GZIP.search(request.headers.get("accept-encoding", "").lower()) is not None


def event_from_response(response: Response, *, head: bool = False, compressible: bool = False) -> dict[str, Any]:
    """The return value of a function behind an HTTP API: as text, or as base64 or compressed if it is too large for
    that or the response wants it.

    Args:
        head: It answers a HEAD request, so the body is left out.
        compressible: The client accepts gzip.

    Raises:
        Unanswerable: The body does not fit.
    """
    headers = {"Content-Type": "application/json", **response.headers}
    content = response.body if isinstance(response.body, str) else write(response.body, spaced=True)
    body = "" if head else content
    wanted = response.compressed and compressible and body != ""
    encoded = wanted or (len(body) * _MOST_PER_CHARACTER > ANSWER_BYTES and as_text(body) > ANSWER_BYTES)
    if response.compressed:
        headers["Vary"] = "Accept-Encoding"
    if encoded:
        encoded_body = body.encode()
        if wanted or as_base64(body) > ANSWER_BYTES:
            if not compressible:
                raise Unanswerable
            encoded_body, headers["Content-Encoding"] = gzip.compress(encoded_body), "gzip"
        body = base64.b64encode(encoded_body).decode()
        if len(body) > ANSWER_BYTES:
            raise Unanswerable
    return {"statusCode": response.status, "headers": headers, "body": body, "isBase64Encoded": encoded}


def serve(
    event: Mapping[str, Any], *, answer: Callable[[Request], Response], refused: Callable[[RequestRefused], Response]
) -> dict[str, Any]:
    """Answer an HTTP API event in the formats of one API.

    Args:
        event: Payload format 2.0.
        answer: Answers a request; never raises.
        refused: Builds the response when the request cannot be read or the answer is too large.
    """
    try:
        request = request_from_event(event)
        response = answer(request)
        bodiless = request.method == "HEAD" or response.status == NO_CONTENT
        return event_from_response(response, head=bodiless, compressible=accepts_gzip(request))
    except RequestRefused as error:
        return event_from_response(refused(error))


class Router(Generic[Handler]):
    """Finds the handler of a method and path.

    Args:
        routes: (method, pattern, handler); a pattern's ``{name}`` segments match any non-empty text.
    """

    def __init__(self, routes: Iterable[tuple[str, str, Handler]]) -> None:
        # By how many segments they have: that leaves a few of a hundred and more to be compared.
        self._patterns: dict[int, dict[tuple[str, ...], dict[str, Handler]]] = {}
        for method, pattern, handler in routes:
            segments = tuple(pattern.split("/"))
            self._patterns.setdefault(len(segments), {}).setdefault(segments, {})[method] = handler

    def find(self, method: str, path: str) -> tuple[Handler, dict[str, str]]:
        """The handler, and the values of the pattern's names. HEAD is served by GET's handler.

        Raises:
            NotFound: No such path.
            MethodNotAllowed: No such method there.
        """
        methods, names = self._match(path)
        handler = methods.get("GET" if method == "HEAD" else method)
        if handler is None:
            raise MethodNotAllowed(self._allowed(methods))
        return handler, names

    def allowed(self, path: str) -> tuple[str, ...]:
        """The methods of a path, in order.

        Raises:
            NotFound: No such path.
        """
        return tuple(sorted(self._allowed(self._match(path)[0])))

    @staticmethod
    def _allowed(methods: Mapping[str, Handler]) -> set[str]:
        return {*methods, "OPTIONS", *({"HEAD"} if "GET" in methods else ())}

    def has(self, method: str, path: str) -> bool:
        """Whether a path has a handler of its own for a method.

        Raises:
            NotFound: No such path.
        """
        return method in self._match(path)[0]

    def _match(self, path: str) -> tuple[dict[str, Handler], dict[str, str]]:
        segments = tuple(path.split("/"))
        for pattern, methods in self._patterns.get(len(segments), {}).items():
            names = _names(pattern, segments)
            if names is not None:
                return methods, names
        raise NotFound


def _names(pattern: tuple[str, ...], segments: tuple[str, ...]) -> dict[str, str] | None:
    names: dict[str, str] = {}
    for expected, segment in zip(pattern, segments, strict=True):
        if expected.startswith("{"):
            if not segment:
                return None
            names[expected[1:-1]] = segment
        elif expected != segment:
            return None
    return names
