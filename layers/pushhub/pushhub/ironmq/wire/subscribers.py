"""Subscribers of push queues on the wire: ``{"name", "url", "headers"}`` and our additions ``timeout`` and ``dialect``."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from pushhub.base.errors import Invalid
from pushhub.engine.model.queue import Dialect, Subscriber
from pushhub.ironmq.wire.headers import check_header_value, subscriber_headers_of
from pushhub.ironmq.wire.names import check_queue_name
from pushhub.ironmq.wire.push import parse_ironmq_url, parse_ironworker_url
from pushhub.notifications.wire.url import parse_topic_url
from pushhub.web.json import Fields, integer, listed, section, text

__all__ = [
    "MAX_SUBSCRIBERS_BYTES",
    "NO_SUBSCRIBER",
    "check_subscribers_size",
    "parse_removals",
    "parse_subscriber_request",
    "parse_subscribers",
    "render_subscriber",
]

MAX_SUBSCRIBERS_BYTES = 65_536
"""The largest list of subscribers a queue may have, in bytes of JSON (IronMQ v3: 64 KB)."""

NO_SUBSCRIBER = "Push queues must have at least one subscriber"
"""What a push queue without subscribers is refused with; clients look for these words."""

MAX_URL_BYTES = 2048
MAX_NAME_BYTES = 255
DEFAULT_TIMEOUT_S = 10
MAX_TIMEOUT_S = 180
SCHEMES = frozenset({"http", "https", "ironmq", "ironworker", "notification2"})
OFFERED_DIALECTS = frozenset({Dialect.RAW})
"""What a subscriber may ask for through this API."""

_UNUSABLE_IN_URL = re.compile("[\x00-\x20\x7f-\xa0\\\\\ud800-\udfff]")


def parse_subscriber_request(fields: Fields) -> tuple[Subscriber, ...]:
    """The subscribers of an add or replace request.

    Raises:
        Invalid: There are none, or one is not acceptable.
    """
    given = listed(fields, "subscribers")
    if not given:
        raise Invalid("subscribers must be an array of at least one subscriber")
    return parse_subscribers(given)


def parse_subscribers(given: Sequence[Any]) -> tuple[Subscriber, ...]:
    """Subscribers as asked for; their ``subscriber_id`` is still empty.

    Raises:
        Invalid: One is not acceptable, or two have the same name (those without a name aside).
    """
    subscribers = tuple(_subscriber(each) for each in given)
    names = [each.name for each in subscribers if each.name]
    if len(set(names)) != len(names):
        raise Invalid("Subscriber names must be unique")
    return subscribers


def _subscriber(given: Any) -> Subscriber:
    if not isinstance(given, dict):
        raise Invalid("Subscriber must be an object")
    return Subscriber(
        subscriber_id="",
        name=_name(given),
        url=_url(text(given, "url") or ""),
        headers=subscriber_headers_of(section(given, "headers")),
        dialect=_dialect(text(given, "dialect") or Dialect.RAW.value),
        timeout_s=integer(given, "timeout", least=1, most=MAX_TIMEOUT_S) or DEFAULT_TIMEOUT_S,
    )


def _name(given: Fields) -> str:
    name = check_header_value(text(given, "name") or "", "Subscriber name")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise Invalid(f"Subscriber name is longer than {MAX_NAME_BYTES} bytes")
    return name


def _dialect(given: str) -> Dialect:
    if given not in OFFERED_DIALECTS:
        raise Invalid("Subscriber dialect must be one of: " + ", ".join(sorted(OFFERED_DIALECTS)))
    return Dialect(given)


def _url(url: str) -> str:
    """The URL, if its form is good. Errors never repeat it: it may hold a password or token."""
    if not url:
        raise Invalid("Subscriber url is required")
    if len(url.encode(errors="surrogatepass")) > MAX_URL_BYTES:
        raise Invalid(f"Subscriber url is longer than {MAX_URL_BYTES} bytes")
    if _UNUSABLE_IN_URL.search(url):
        raise Invalid("Subscriber url holds characters that are not allowed")
    scheme = url.partition(":")[0].lower()
    if scheme not in SCHEMES or not url[len(scheme) :].startswith("://"):
        raise Invalid("Subscriber url must begin with http://, https://, ironmq://, ironworker:// or notification2://")
    if scheme == "ironmq":
        check_queue_name(parse_ironmq_url(url).queue, "Queue name in a subscriber url")
    elif scheme == "ironworker":
        parse_ironworker_url(url)
    elif scheme == "notification2":
        parse_topic_url(url)
    else:
        _check_http(url)
    return url


def _check_http(url: str) -> None:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise Invalid("Subscriber url is malformed") from error
    if not host or port == 0:
        raise Invalid("Subscriber url has no usable host")


def parse_removals(fields: Fields) -> tuple[tuple[str, str], ...]:
    """(name, url) of the subscribers to remove; the URL counts only where the name is empty.

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
    """Refuse a list of subscribers that is too large.

    Raises:
        Invalid: It is.
    """
    rendered = json.dumps([render_subscriber(each) for each in subscribers], ensure_ascii=False)
    if len(rendered.encode()) > MAX_SUBSCRIBERS_BYTES:
        raise Invalid(f"Subscribers take more than {MAX_SUBSCRIBERS_BYTES} bytes")


def render_subscriber(subscriber: Subscriber) -> dict[str, object]:
    """A subscriber as queue info shows it; our additions only where they differ from IronMQ's way."""
    shown: dict[str, object] = {"name": subscriber.name, "url": subscriber.url}
    if subscriber.headers:
        shown["headers"] = dict(subscriber.headers)
    if subscriber.timeout_s != DEFAULT_TIMEOUT_S:
        shown["timeout"] = subscriber.timeout_s
    if subscriber.dialect is not Dialect.RAW:
        shown["dialect"] = subscriber.dialect.value
    return shown
