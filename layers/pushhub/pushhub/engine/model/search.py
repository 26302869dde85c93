"""Fields by which people find messages: which values a message has, and in which form they are looked up. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Any

from pushhub.base.json_text import NotJson, read_words
from pushhub.base.nesting import is_deeper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pushhub.engine.model.message import Message

MAX_FIELDS = 3
"""Maximum number of fields of a queue: each costs a write for each message that has it."""

MAX_FIELD_BYTES = 100

MAX_VALUE = 200
"""Longer values are not indexed; characters."""

MOST_READ = 262_144
"""Bodies longer than this are not read for their fields, bytes."""

MOST_LEVELS = 50
"""Bodies nested deeper than this are not read for their fields."""

HEADER = "header:"
"""Prefix of a field that is a header of the message; any other is a path in its JSON body (``order.id``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """A message can be found by a value.

    Attributes:
        value: The value, as it is in the message; not stored.
        expires_at: When the message expires, epoch milliseconds.
    """

    project: str
    value: str
    queue: str
    queue_uid: str
    message_id: str
    field: str
    expires_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A message that was found, as its protocol names it.

    Attributes:
        kind: What it belongs to, in a word (``queue``, ``application``).
        of: The name or id of that; empty where a project has only one.
        name: What people call that, where ``of`` is an id; otherwise empty.
        message_id: Its id in the protocol.
        field: Where the value is that was looked for: a named field; empty if the message was found otherwise.
        receivers: Whom it is for, and how it stands there.
        state: How it stands where nobody receives it by himself, as in a pull queue; otherwise empty.
        type: Its type, in protocols that have types.
        content: Its body as its readers may see it.
    """

    kind: str
    of: str
    message_id: str
    field: str
    receivers: Sequence[Receiver]
    accepted_at: int
    state: str = ""
    type: str = ""
    name: str = ""
    content: bytes = dataclass_field(default=b"", repr=False)

    @property
    def shown_state(self) -> str:
        """One state for all receivers: the one that most needs somebody."""
        states = {each.state for each in self.receivers}
        return self.state or next((each for each in _BY_NEED if each in states), "")


@dataclass(frozen=True, slots=True)
class Receiver:
    """Whom a message is for.

    Attributes:
        subscriber_id: The hub's id.
        name: What people call it: its name, or its URL.
        state: State of the delivery to it, as the protocol calls it.
        url: Where it is, without what opens something; may be empty.
    """

    subscriber_id: str
    name: str
    state: str
    url: str = ""


_BY_NEED = (
    "exhausted",
    "held",
    "parked",
    "retrying",
    "failing",
    "reserved",
    "pending",
    "scheduled",
    "expired",
    "cancelled",
    "canceled",
    "never_processed",
    "delivered",
    "acknowledged",
    "completed",
)
"""States of deliveries, those first that somebody should know of."""


def is_path(text: object) -> bool:
    """Whether something can be a path in a JSON body."""
    return isinstance(text, str) and 0 < len(text.encode(errors="replace")) <= MAX_FIELD_BYTES and text.isprintable()


def index_entries(fields: Sequence[str], message: Message, body: bytes) -> list[IndexEntry]:
    """The entries by which a message is found.

    Args:
        fields: The fields of its queue.
    """
    return [
        IndexEntry(
            project=message.project,
            value=value,
            queue=message.queue,
            queue_uid=message.queue_uid,
            message_id=message.message_id,
            field=field,
            expires_at=message.expires_at,
        )
        for field, value in field_values(fields, body, message.headers).items()
    ]


def field_values(fields: Sequence[str], body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
    """The values of a message by field; those that it does not have, or that are no text, number or boolean, are
    missing.

    Args:
        fields: The fields of its queue.
        body: Its body; anything.
    """
    if not fields:
        return {}
    by_name = {name.lower(): value for name, value in headers.items()}
    parsed = _parsed(body) if any(not each.startswith(HEADER) for each in fields) else None
    found: dict[str, str] = {}
    for each in fields:
        value = by_name.get(each[len(HEADER) :].lower()) if each.startswith(HEADER) else _at(parsed, each)
        if value is not None and 0 < len(value.strip()) <= MAX_VALUE:
            found[each] = value
    return found


def lookup_key(value: str) -> str:
    """The form in which a value is looked up: no upper case, no space around it, and unreadable, because it may be
    personal data.
    """
    return hashlib.sha256(value.strip().casefold().encode(errors="surrogatepass")).hexdigest()[:32]


def _parsed(body: bytes) -> Any:
    if len(body) > MOST_READ or is_deeper(body, MOST_LEVELS):
        return None
    try:
        return read_words(body)
    except NotJson:
        return None


def _at(value: Any, path: str) -> str | None:
    if isinstance(value, dict) and path in value:
        value = value[path]
    else:
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else None
