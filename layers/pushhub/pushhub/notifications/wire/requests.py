"""Requests around consumers: tokens, handshakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pushhub.base.errors import Invalid
from pushhub.notifications.model.topic import Topic
from pushhub.notifications.wire.subscriptions import parse_name
from pushhub.web.json import boolean, integer, parse_object, text

_DEFAULT_MINUTES = 1440
_MAX_MINUTES = 525_600_000
_MAX_NAME = 200
_MAX_CONSUMER = 255
_MAX_KEY = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """The claims requested for a token.

    Attributes:
        topic: The topic that may be consumed.
        subscriber: The subscriber to consume as.
        shared: Whether several consumers may be connected.
        minutes: How long it is valid.
    """

    topic: Topic
    subscriber: str
    shared: bool
    minutes: int


def parse_token_request(body: bytes, project: str) -> TokenRequest:
    """Read the body of ``POST /notification2/token``. Tokens are always signed, whatever ``signed`` says."""
    fields = parse_object(body)
    subscriber = text(fields, "subscriber") or ""
    if not 1 <= len(subscriber) <= _MAX_NAME or not subscriber.isprintable():
        raise Invalid(f"subscriber must be a string of 1 to {_MAX_NAME} printable characters")
    if fields.get("type") not in (None, "notification"):
        raise Invalid("type must be 'notification'")
    boolean(fields, "signed")
    minutes = integer(fields, "expiresInMinutes", least=0, most=_MAX_MINUTES, zero_is_unset=False)
    return TokenRequest(
        topic=Topic(
            project=project,
            name=parse_name(fields.get("subscription")),
            non_persistent=boolean(fields, "nonPersistent"),
        ),
        subscriber=subscriber,
        shared=boolean(fields, "shared"),
        minutes=_DEFAULT_MINUTES if minutes is None else minutes,
    )


def parse_idempotency_key(headers: Mapping[str, str]) -> str:
    """The key under which a request may be repeated; empty when it has none.

    Args:
        headers: Headers of the request, names in lower case.

    Raises:
        Invalid: It is empty, too long, or contains anything but printable ASCII characters.
    """
    key = headers.get("idempotency-key")
    if key is None:
        return ""
    if not 1 <= len(key) <= _MAX_KEY or not key.isascii() or not key.isprintable():
        raise Invalid(f"Idempotency-Key must be 1 to {_MAX_KEY} printable ASCII characters")
    return key


def parse_consumer_name(given: Sequence[str]) -> str:
    """The client's name from a handshake's query; empty when there is none.

    Args:
        given: Every value of ``consumer``.

    Raises:
        Invalid: It is there more than once, blank ("a non blank unique name"), or too long.
    """
    if not given:
        return ""
    name, *more = given
    if more:
        raise Invalid("consumer may be given only once")
    if not name.strip() or len(name) > _MAX_CONSUMER:
        raise Invalid(f"consumer must be a name of 1 to {_MAX_CONSUMER} characters that is not blank")
    return name.strip()
