"""How IronMQ v3 pushes: the request a subscriber sees, and the two special subscriber URL schemes.

Only ``User-Agent`` and ``Content-Type`` may be set by the headers of subscribers and messages; the ``Iron-*`` headers
are always the hub's (IronMQ v3, "Push Queue Headers").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from pushhub.base.errors import Invalid
from pushhub.base.ids import push_reservation_id
from pushhub.ironmq.wire.headers import trail_headers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pushhub.engine.model.message import Message
    from pushhub.engine.model.queue import Queue, Subscriber

USER_AGENT = "IronMQ Pusherd"
CONTENT_TYPE = "text/plain; encoding=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class IronMqTarget:
    """``ironmq://[{project}:{token}@[{host}[:{port}]]]/{queue}``.

    Attributes:
        queue: Queue name, decoded.
        project: The queue's project; None for the subscriber's own.
        token: A token of that project; None when ``project`` is.
        host: Host and port of another hub; None for this one.
    """

    queue: str
    project: str | None = None
    token: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IronWorkerTarget:
    """``ironworker://{project}:{token}@{host}[:{port}]/{code name}``."""

    project: str
    token: str
    host: str
    code_name: str


def _credentials_and_host(url: str) -> tuple[str | None, str | None, str | None, str]:
    """(user, password, host[:port] or None, decoded path without its leading slash)."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 (raises ValueError when it is no number)
    except ValueError as error:
        raise Invalid("Subscriber URL is malformed") from error
    credentials, at, host = parts.netloc.rpartition("@")
    user, _, password = credentials.partition(":")
    path = unquote(parts.path.removeprefix("/"))
    if not path or "/" in path or parts.query or parts.fragment:
        raise Invalid("Subscriber URL must end in a single name")
    return (unquote(user) if at else None), (unquote(password) if at else None), host or None, path


def parse_ironmq_url(url: str) -> IronMqTarget:
    """Read an ``ironmq:`` URL."""
    project, token, host, queue = _credentials_and_host(url)
    if project is None:
        if host:
            raise Invalid("An ironmq URL with a host needs a project and token")
        return IronMqTarget(queue=queue)
    if not project or not token:
        raise Invalid("An ironmq URL with a project needs a token")
    return IronMqTarget(queue=queue, project=project, token=token, host=host)


def parse_ironworker_url(url: str) -> IronWorkerTarget:
    """Read an ``ironworker:`` URL."""
    project, token, host, code_name = _credentials_and_host(url)
    if not (project and token and host):
        raise Invalid("An ironworker URL needs a project, a token and a host")
    return IronWorkerTarget(project=project, token=token, host=host, code_name=code_name)


def message_url(base_url: str, project: str, queue: str, message_id: str) -> str:
    """The URL of a message in the queue API."""
    return f"{base_url}/3/projects/{project}/queues/{quote(queue, safe='')}/messages/{message_id}"


def push_headers(
    *,
    base_url: str,
    queue: Queue,
    message: Message,
    subscriber: Subscriber,
    attempt: int,
    allowance: int,
    signature: Mapping[str, str],
    trace: Mapping[str, str],
) -> dict[str, str]:
    """The headers of one push. Per-message headers override the subscriber's; the hub's own override both.

    Args:
        base_url: Public base URL of this hub, without a trailing slash.
        queue: The queue pushed from.
        message: The message pushed.
        subscriber: The subscriber pushed to.
        attempt: Number of the attempt; part of the reservation id.
        allowance: How many messages may derive from it, because a subscriber may be a queue of this hub.
        signature: The signature headers, if it is signed.
        trace: The headers of its trace, if it has one; headers of the subscriber or message go before them.
    """
    reservation = push_reservation_id(queue.secret, message.message_id, subscriber.subscriber_id, attempt)
    url = message_url(base_url, message.project, message.queue, message.message_id)
    capability = f"reservation_id={reservation}&subscriber_name={quote(subscriber.name, safe='')}"
    fixed = {
        "Iron-Message-Id": message.message_id,
        "Iron-Reservation-Id": reservation,
        "Iron-Subscriber-Name": subscriber.name,
        "Iron-Subscriber-Message-Url": f"{url}?{capability}",
        **trail_headers(message, allowance),
    }
    defaults = {"User-Agent": USER_AGENT, "Content-Type": CONTENT_TYPE}
    return layered(defaults, trace, subscriber.headers, message.headers, fixed, signature)


def layered(*layers: Mapping[str, str]) -> dict[str, str]:
    """Later layers replace earlier ones, ignoring the case of names; the later spelling is kept."""
    merged: dict[str, tuple[str, str]] = {}
    for layer in layers:
        for name, value in layer.items():
            merged[name.lower()] = (name, value)
    return dict(merged.values())
