"""Subscribers of push queues on the wire: ``{"name", "url", "headers"}``, and our additions ``timeout``,
``signing``, ``oauth`` and ``mtls``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.base.credentials import masked_headers, masked_url
from pushhub.base.errors import Invalid
from pushhub.base.gates import KEEP_GATES, GateChange
from pushhub.base.signing_change import KEEP, SigningChange
from pushhub.engine.model.queue import Subscriber
from pushhub.ironmq.wire.cursors import MAX_LOOKED_AT, parse_cursor
from pushhub.ironmq.wire.headers import check_header_value, subscriber_headers_of
from pushhub.ironmq.wire.names import is_message_id
from pushhub.web.gates import gates_view, parse_gates
from pushhub.web.json import Fields, boolean, integer, listed, moment, section, text
from pushhub.web.signing import parse_signing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_SUBSCRIBERS_BYTES = 65_536
"""Maximum size of a queue's list of subscribers, in bytes of JSON (IronMQ v3: 64 KB)."""

NO_SUBSCRIBER = "Push queues must have at least one subscriber"
"""The refusal of a push queue without subscribers; clients look for these words."""

MAX_URL_BYTES = 2048
MAX_NAME_BYTES = 255
DEFAULT_TIMEOUT_S = 10
MAX_TIMEOUT_S = 180

MAX_SIGNED = 50
"""Maximum number of subscribers per queue with signing: each has its own keys, encrypted one by one."""

MAX_GATES_BYTES = 120_000
"""Most bytes of the certificates and grants of a queue's subscribers, encrypted: a queue is one item."""

_OF_A_REPLAY = ("subscriber", "n", "after", "message_ids", "since", "until", "dry_run")
_UNUSABLE_IN_URL = re.compile("[\x00-\x20\x7f-\xa0\\\\\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSubscriber(Subscriber):
    """A subscriber as requested by its owner.

    Attributes:
        signing: Requested change to its signing keys.
        gates: Requested change to its gates.
    """

    signing: SigningChange = field(default=KEEP)
    gates: GateChange = field(default=KEEP_GATES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest:
    """A request to retry what a subscriber missed.

    Attributes:
        subscriber: Name or id of the subscriber.
        count: How many deliveries of the queue to look at, 1..100.
        after: Cursor from the previous page; None to begin.
        message_ids: Only these messages, instead of a page of all; empty for all.
        since: Only messages accepted from then on, epoch milliseconds; None for no bound.
        until: Only messages accepted before then; None for no bound.
        dry_run: Whether only to count.
    """

    subscriber: str
    count: int
    after: str | None
    message_ids: tuple[str, ...]
    since: int | None
    until: int | None
    dry_run: bool


def parse_replay(fields: Fields) -> ReplayRequest:
    """Read a replay request."""
    if unknown := next(iter(fields.keys() - _OF_A_REPLAY), None):
        raise Invalid(f"{unknown[:64]} is not read here; what is: {', '.join(_OF_A_REPLAY)}")
    subscriber = parse_named(fields)
    ids = listed(fields, "message_ids") or ()
    # Neither null, an empty array nor another name must ever mean all of them.
    if "message_ids" in fields and not (1 <= len(ids) <= MAX_LOOKED_AT and all(map(_is_message_id, ids))):
        raise Invalid(f"message_ids must be an array of 1 to {MAX_LOOKED_AT} ids of messages")
    return ReplayRequest(
        subscriber=subscriber,
        count=integer(fields, "n", least=1, most=MAX_LOOKED_AT) or MAX_LOOKED_AT,
        after=parse_cursor(text(fields, "after")),
        message_ids=tuple(dict.fromkeys(ids)),
        since=moment(fields, "since"),
        until=moment(fields, "until"),
        dry_run=boolean(fields, "dry_run"),
    )


def parse_named(fields: Fields) -> str:
    """The name of the subscriber that a request is about."""
    name = text(fields, "subscriber")
    if name is None:
        raise Invalid("subscriber must be the name of a subscriber")
    return name


def _is_message_id(given: Any) -> bool:
    return isinstance(given, str) and is_message_id(given)


def parse_subscriber_request(fields: Fields) -> tuple[AskedSubscriber, ...]:
    """The subscribers of an add or replace request.

    Raises:
        Invalid: There are none, or one is not acceptable.
    """
    given = listed(fields, "subscribers")
    if not given:
        raise Invalid("subscribers must be an array of at least one subscriber")
    return parse_subscribers(given)


def parse_subscribers(given: Sequence[Any]) -> tuple[AskedSubscriber, ...]:
    """The requested subscribers, with an empty ``subscriber_id``.

    Several may share a name: IronMQ accepts that, and its own Ruby test suite creates such queues.

    Raises:
        Invalid: One is invalid, or too many use signing.
    """
    asked = tuple(_subscriber(each) for each in given)
    check_signed(sum(each.signing.on is True for each in asked))
    return asked


def check_signed(count: int) -> None:
    """Refuse more subscribers with signing than a queue may have."""
    if count > MAX_SIGNED:
        raise Invalid(f"At most {MAX_SIGNED} subscribers of a queue can have signing")


def check_gated(subscribers: Sequence[Subscriber]) -> None:
    """Refuse subscribers whose gates take more than a queue has room for."""
    if sum(len(each.oauth) + len(each.identity) for each in subscribers) > MAX_GATES_BYTES:
        raise Invalid(f"oauth and mtls of a queue's subscribers take more than {MAX_GATES_BYTES} bytes")


def _subscriber(given: Any) -> AskedSubscriber:
    if not isinstance(given, dict):
        raise Invalid("Subscriber must be an object")
    if text(given, "dialect") not in (None, "", "raw"):
        raise Invalid("Subscriber dialect must be one of: raw")
    return AskedSubscriber(
        subscriber_id="",
        name=_name(given),
        url=_url(text(given, "url") or ""),
        headers=subscriber_headers_of(section(given, "headers")),
        timeout_s=integer(given, "timeout", least=1, most=MAX_TIMEOUT_S) or DEFAULT_TIMEOUT_S,
        signing=parse_signing(given.get("signing")),
        gates=parse_gates(given),
    )


def _name(given: Fields) -> str:
    name = check_header_value(text(given, "name") or "", "Subscriber name")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise Invalid(f"Subscriber name is longer than {MAX_NAME_BYTES} bytes")
    return name


def _url(url: str) -> str:
    """The URL, if it is plausible; its target checks what its scheme requires.

    Errors never repeat it, because it may contain a password or token.
    """
    if not url:
        raise Invalid("Subscriber url is required")
    if len(url.encode(errors="surrogatepass")) > MAX_URL_BYTES:
        raise Invalid(f"Subscriber url is longer than {MAX_URL_BYTES} bytes")
    if _UNUSABLE_IN_URL.search(url):
        raise Invalid("Subscriber url holds characters that are not allowed")
    return url


def parse_removals(fields: Fields) -> tuple[tuple[str, str], ...]:
    """(name, url) of the subscribers to remove; either may be empty.

    Raises:
        Invalid: There are none, or one has neither name nor URL.
    """
    given = listed(fields, "subscribers")
    if not given:
        raise Invalid("subscribers must be an array of at least one subscriber")
    removals: list[tuple[str, str]] = []
    for each in given:
        if not isinstance(each, dict):
            raise Invalid("Subscriber must be an object")
        name, url = text(each, "name") or "", text(each, "url") or ""
        if not (name or url):
            raise Invalid("Subscriber name is required")
        removals.append((name, url))
    return tuple(removals)


def check_subscribers_size(subscribers: Sequence[Subscriber]) -> None:
    """Refuse a list of subscribers that is too large."""
    rendered = json_text.write([_rendered(each, each.url, each.headers) for each in subscribers], spaced=True)
    if len(rendered.encode()) > MAX_SUBSCRIBERS_BYTES:
        raise Invalid(f"Subscribers take more than {MAX_SUBSCRIBERS_BYTES} bytes")


def render_subscriber(subscriber: Subscriber) -> dict[str, object]:
    """A subscriber as queue info shows it: what opens something reads ``********``.

    Our additions appear only where they differ from IronMQ's behaviour.
    """
    return _rendered(subscriber, masked_url(subscriber.url), masked_headers(subscriber.headers))


def _rendered(subscriber: Subscriber, url: str, headers: Mapping[str, str]) -> dict[str, object]:
    shown: dict[str, object] = {"name": subscriber.name, "url": url}
    if headers:
        shown["headers"] = dict(headers)
    if subscriber.timeout_s != DEFAULT_TIMEOUT_S:
        shown["timeout"] = subscriber.timeout_s
    if subscriber.sealed:
        shown["signing"] = True
    if subscriber.signing_ends:
        shown["signing_ends"] = dict(subscriber.signing_ends)
    shown |= gates_view(subscriber)
    if subscriber.paused:
        shown["paused"] = True
    return shown
