"""A shorter way for the calls that each message makes, as long as they succeed.

A call of DynamoDB or SQS takes the SDK 1.2 ms of CPU, which was most of what a message cost. Nearly half of it is for
its layers above ``http.client``, and for reading each answer by the service's model. Here the SDK makes and signs the
request as ever. It is sent here, and an answer is read as the JSON that it is. Anything but success is handed to the
SDK as the outcome of its own first try, so errors and repetitions stay its own.

It stands where the SDK has a place for it, in the events ``before-call`` and ``before-send``: whoever listens to what
is sent hears of each request. Behind a proxy all calls go the SDK's way (docs/decisions/cost.md).
"""

# ruff: noqa: PLC0415 (the SDK is imported when the first client is made)

from __future__ import annotations

import base64
import json
import os
import select
import socket
import ssl
import weakref
import zlib
from collections import defaultdict, deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import local
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from botocore.awsrequest import AWSPreparedRequest, AWSResponse

    from pushhub.cloud.deadline import Deadline

OPERATIONS: Final[Mapping[str, frozenset[str]]] = {
    "dynamodb": frozenset(
        {
            *("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query"),
            *("BatchGetItem", "BatchWriteItem", "BatchExecuteStatement", "TransactWriteItems"),
        }
    ),
    "sqs": frozenset({"SendMessageBatch", "ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"}),
}
"""By service, calls in whose answers nothing is more than JSON but DynamoDB's bytes."""

_OK = 200
_CHECKSUM = "x-amz-crc32"
"""DynamoDB says so what its answer should be."""


class FirstTries:
    """Makes the first try of calls.

    Args:
        until: When the environment's answer is due. While there is little time, calls go the SDK's way.
        connections: How they are sent.
    """

    def __init__(self, until: Deadline, connections: KeptConnections) -> None:
        self._until = until
        self._connections = connections
        self._thread = local()

    def watch(self, client: Any) -> None:
        """Make the first tries of a client's calls."""
        from botocore.utils import get_environ_proxies

        operations = OPERATIONS.get(client.meta.service_model.service_name)
        if operations and not get_environ_proxies(client.meta.endpoint_url):
            events = client.meta.events
            # After all who add something to requests.
            events.register_last("before-call", partial(self._try, events, operations))

    def outcome(self, request: AWSPreparedRequest) -> AWSResponse | None:
        """What came of the try that the SDK is about to make; None if it was not made here. Told once.

        Raises:
            ConnectionError, HTTPClientError: It has failed so.
        """
        tried, self._thread.tried = getattr(self._thread, "tried", None), None
        if tried is None or not tried.is_the_same_as(request):
            return None
        if isinstance(tried.outcome, Exception):
            raise tried.outcome
        answer: AWSResponse = tried.outcome
        return answer

    def _try(
        self,
        events: Any,
        operations: frozenset[str],
        *,
        model: Any,
        params: dict[str, Any],
        request_signer: Any,
        **_: object,
    ) -> tuple[AWSResponse, dict[str, Any]] | None:
        """An HTTP answer, and what it says; None to let the SDK go on."""
        from botocore.awsrequest import create_request_object
        from botocore.exceptions import ConnectionError as NotConnected
        from botocore.exceptions import HTTPClientError

        self._thread.tried = None
        if model.name not in operations or self._until.is_near:
            return None
        request = create_request_object(params)
        signer = request_signer.get_auth_instance(request_signer.signing_name, request_signer.region_name)
        signer.add_auth(request)
        prepared = request.prepare()
        try:
            _, answer = events.emit_until_response(
                f"before-send.{model.service_model.service_id.hyphenize()}.{model.name}", request=prepared
            )
            answer = answer or self._connections.send(prepared)
        except (HTTPClientError, NotConnected) as error:
            self._thread.tried = _Tried(prepared, error)
            return None
        if answer.status_code == _OK and _is_whole(answer):
            with suppress(ValueError):
                return answer, _read(answer.content)
        self._thread.tried = _Tried(prepared, answer)
        return None


@dataclass(frozen=True)
class _Tried:
    request: AWSPreparedRequest
    outcome: Exception | AWSResponse

    def is_the_same_as(self, request: AWSPreparedRequest) -> bool:
        return (self.request.url, self.request.body) == (request.url, request.body)


class KeptConnections:
    """Sends requests on connections that it keeps. Thread-safe.

    Args:
        connect_s: How long it may take to connect.
        read_s: How long an answer may let wait for its next bytes.
        kept: Idle connections to an address.
    """

    def __init__(self, *, connect_s: float, read_s: float, kept: int) -> None:
        self._connect_s = connect_s
        self._read_s = read_s
        self._kept = kept
        self._idle: defaultdict[tuple[str, str], deque[HTTPConnection]] = defaultdict(deque)
        weakref.finalize(self, _close, self._idle)

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        """The answer to a request.

        Raises:
            ConnectionError, HTTPClientError: The SDK's own; those that it makes of the same failures.
        """
        from botocore.awsrequest import AWSResponse

        # The stubs of both sides are narrower than what they take: of the answer's body, only ``stream`` is called.
        headers: Any = request.headers
        body: Any = request.body
        to = urlsplit(request.url)
        idle = self._idle[to.scheme, to.netloc]
        connection = self._connected(to.scheme, to.netloc, idle, request.url)
        with _told_as_by_the_sdk(connection, request.url):
            connection.request(request.method, to.path or "/", body, headers)
            answer: Any = connection.getresponse()
            raw: Any = _Body(answer.read())
        if answer.will_close or len(idle) >= self._kept:
            connection.close()
        else:
            idle.append(connection)
        return AWSResponse(request.url, answer.status, answer.headers, raw)

    def _connected(self, scheme: str, address: str, idle: deque[HTTPConnection], url: str) -> HTTPConnection:
        """The connection that was used last, or a new one."""
        from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError

        while idle:
            try:
                connection = idle.pop()
            except IndexError:
                break
            if not _has_ended(connection):
                return connection
            connection.close()
        if scheme == "https":
            connection = HTTPSConnection(address, timeout=self._connect_s, context=tls())
        else:
            connection = HTTPConnection(address, timeout=self._connect_s)
        try:
            connection.connect()
        except TimeoutError as error:
            connection.close()
            raise ConnectTimeoutError(endpoint_url=url, error=error) from error
        except OSError as error:
            connection.close()
            raise EndpointConnectionError(endpoint_url=url, error=error) from error
        connection.sock.settimeout(self._read_s)
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return connection


def _close(idle: Mapping[tuple[str, str], Iterable[HTTPConnection]]) -> None:
    for connections in idle.values():
        for each in connections:
            each.close()


@contextmanager
def _told_as_by_the_sdk(connection: HTTPConnection, url: str) -> Iterator[None]:
    """Close a connection on which something fails, and raise what the SDK makes of it."""
    from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

    try:
        yield
    except TimeoutError as error:
        connection.close()
        raise ReadTimeoutError(endpoint_url=url, error=error) from error
    except (OSError, HTTPException) as error:
        connection.close()
        raise ConnectionClosedError(endpoint_url=url, error=error) from error


class _Body:
    """A body that was read."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self) -> Iterator[bytes]:
        yield self._content


def _has_ended(connection: HTTPConnection) -> bool:
    """Whether the other side has ended an idle connection: nothing else comes on one."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))


@cache
def tls() -> ssl.SSLContext:
    """Whom the SDK trusts."""
    from botocore.httpsession import get_cert_path

    return ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE") or get_cert_path(True))


def _is_whole(answer: AWSResponse) -> bool:
    checksum = answer.headers.get(_CHECKSUM)
    return checksum is None or checksum == str(zlib.crc32(answer.content))


def _read(content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(content, object_hook=_with_bytes) if content else {}
    return found


def _with_bytes(value: dict[str, Any]) -> dict[str, Any]:
    """A value, its bytes decoded: DynamoDB calls them B and BS, where one that is an owner's name has a dict."""
    if len(value) == 1:
        if isinstance(binary := value.get("B"), str):
            return {"B": base64.b64decode(binary)}
        if "BS" in value and isinstance(binaries := value["BS"], list):
            return {"BS": [base64.b64decode(each) for each in binaries]}
    return value
