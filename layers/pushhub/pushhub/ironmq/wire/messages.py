"""Messages on the wire: posting, reserving, deleting, and how they are shown (IronMQ v3 "Messages")."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Invalid, MessageNotFound
from pushhub.engine.model.message import NewMessage
from pushhub.ironmq.wire.headers import push_headers_of, webhook_push_headers, webhook_trail
from pushhub.ironmq.wire.names import is_message_id
from pushhub.web.json import Fields, boolean, integer, listed, number_in_query, section, text

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BATCH = 100
"""Maximum number of messages in one post, reservation, peek or deletion."""
MAX_DELAY_S = 604_800
MAX_TIMEOUT_S = 86_400
MAX_WAIT_S = 30
MAX_REPLACED_BYTES = 1_048_576
"""The largest non-text body that is also shown as text."""
RESERVATION_REQUIRED = "A reservation_id is required"
"""The refusal of touch, release, and deletion of a reserved message without its reservation; clients match this
text.
"""

_UNREAD = frozenset({"oauth"})
_ORDERING_KEY = re.compile("[!-~]{1,256}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveRequest:
    """A request to reserve messages.

    Attributes:
        count: Maximum number of messages.
        timeout_s: Seconds to reserve them; None for the queue's setting.
        wait_s: Seconds to wait for the first one.
        delete: Whether to delete them at once.
    """

    count: int
    timeout_s: int | None
    wait_s: int
    delete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """One message to delete, or one push to acknowledge.

    Attributes:
        reservation_id: Its reservation; None when none was given.
        subscriber_name: Who acknowledges a push; None when the request does not say.
    """

    message_id: str
    reservation_id: str | None = None
    subscriber_name: str | None = None


def parse_messages(fields: Fields) -> list[NewMessage]:
    """The messages of a post, in order.

    Raises:
        Invalid: No messages, too many, or an invalid one.
    """
    given = listed(fields, "messages")
    if not given:
        raise Invalid("messages must be an array of at least one message")
    if len(given) > MAX_BATCH:
        raise Invalid(f"At most {MAX_BATCH} messages can be posted at once")
    return [_message(each) for each in given]


def _message(given: Any) -> NewMessage:
    if not isinstance(given, dict):
        raise Invalid("Message must be an object")
    body = text(given, "body")
    if body is None:
        raise Invalid("Message body is required")
    return NewMessage(
        body=body.encode(),
        delay_s=integer(given, "delay", least=0, most=MAX_DELAY_S) or 0,
        headers=push_headers_of(section(given, "push_headers")),
        order_key=_ordering_key(given),
    )


def _ordering_key(given: Fields) -> str | None:
    """An addition to IronMQ."""
    key = text(given, "ordering_key") or None
    if key is not None and _ORDERING_KEY.fullmatch(key) is None:
        raise Invalid("ordering_key must be 1 to 256 characters of ASCII without spaces")
    return key


def webhook_message(body: bytes, headers: Mapping[str, str]) -> NewMessage:
    """The message of a webhook request: the body's bytes, unchanged and uninterpreted.

    Raises:
        Invalid: It is a push that has passed too many queues, or sets a header that it may not.
    """
    hops, descendants = webhook_trail(headers)
    return NewMessage(body=body, headers=webhook_push_headers(headers), hops=hops, descendants=descendants)


def parse_reserve(fields: Fields) -> ReserveRequest:
    """Read a reservation request. Timeouts below the documented 30 seconds are accepted, because clients use them."""
    return ReserveRequest(
        count=integer(fields, "n", least=1, most=MAX_BATCH) or 1,
        timeout_s=integer(fields, "timeout", least=1, most=MAX_TIMEOUT_S),
        wait_s=integer(fields, "wait", least=0, most=MAX_WAIT_S) or 0,
        delete=boolean(fields, "delete"),
    )


def parse_peek(query: Mapping[str, str]) -> int:
    """How many messages a peek asks for."""
    count = number_in_query(query, "n", default=1)
    if count > MAX_BATCH:
        raise Invalid(f"n must be from 1 to {MAX_BATCH}")
    return count


def _reservation(fields: Fields) -> str:
    reservation_id = text(fields, "reservation_id")
    if not reservation_id:
        raise Invalid(RESERVATION_REQUIRED)
    return reservation_id


def parse_touch(fields: Fields) -> tuple[str, int | None]:
    """(reservation id, seconds or None for the queue's setting) of a touch."""
    return _reservation(fields), integer(fields, "timeout", least=1, most=MAX_TIMEOUT_S)


def parse_release(fields: Fields) -> tuple[str, int]:
    """(reservation id, delay in seconds) of a release."""
    return _reservation(fields), integer(fields, "delay", least=0, most=MAX_DELAY_S) or 0


def parse_deletion(message_id: str, fields: Fields, query: Mapping[str, str]) -> Deletion:
    """Read a request to delete one message.

    The query is used for what the body leaves out: it contains the capability from ``Iron-Subscriber-Message-Url``, for
    subscribers that send a bare DELETE.
    """
    return Deletion(
        message_id=message_id,
        reservation_id=text(fields, "reservation_id") or query.get("reservation_id") or None,
        subscriber_name=text(fields, "subscriber_name") or query.get("subscriber_name") or None,
    )


def parse_deletions(fields: Fields) -> list[Deletion] | None:
    """The messages of a batch deletion, without duplicates; None when nothing is given, which clears the queue.

    Raises:
        Invalid: ``ids`` is not an array of 1..100 messages; null is not an array, so it never clears a queue, and
            neither does a body that says something else.
        MessageNotFound: One is not a valid message id.
    """
    if "ids" not in fields:
        if fields.keys() - _UNREAD:
            raise Invalid("ids is missing: without it the whole queue would be cleared, for which {} is sent")
        return None
    given = listed(fields, "ids")
    if not given:
        raise Invalid("ids must be an array of at least one message")
    if len(given) > MAX_BATCH:
        raise Invalid(f"At most {MAX_BATCH} messages can be deleted at once")
    return list(dict.fromkeys(_deletion(each) for each in given))


def _deletion(given: Any) -> Deletion:
    """``{"id", "reservation_id"?, "subscriber_name"?}`` or just the id; numeric ids are accepted, too."""
    entry = given if isinstance(given, dict) else {"id": given}
    message_id = entry.get("id")
    if isinstance(message_id, int) and not isinstance(message_id, bool):
        message_id = str(message_id)
    if not isinstance(message_id, str) or not message_id:
        raise Invalid("ids must hold message ids")
    if not is_message_id(message_id):
        raise MessageNotFound
    return Deletion(
        message_id=message_id,
        reservation_id=text(entry, "reservation_id") or None,
        subscriber_name=text(entry, "subscriber_name") or None,
    )


def render_message(
    message_id: str, body: bytes, *, reserved_count: int, reservation_id: str | None = None
) -> dict[str, object]:
    """A message as shown to clients. A body that is not UTF-8 is shown with replacements in ``body`` and exactly in
    ``body_base64``.

    If it is larger than a megabyte, ``body`` is empty and only the exact form is shown, so that it fits into an answer.

    Args:
        reservation_id: Only when it has just been reserved.
    """
    shown: dict[str, object] = {"id": message_id}
    try:
        shown["body"] = body.decode()
    except UnicodeDecodeError:
        shown["body"] = body.decode(errors="replace") if len(body) <= MAX_REPLACED_BYTES else ""
        shown["body_base64"] = base64.b64encode(body).decode()
    shown["reserved_count"] = reserved_count
    if reservation_id is not None:
        shown["reservation_id"] = reservation_id
    return shown
