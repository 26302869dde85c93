"""Reads what a publisher posts, and turns it into the one line of text that a frame carries."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Invalid
from pushhub.base.json_text import NotJson, members, members_of_each, read, write
from pushhub.notifications.model.subscription import APIS
from pushhub.notifications.model.topic import COMMIT_NOTIFICATIONS
from pushhub.notifications.wire.subscriptions import parse_source_id
from pushhub.web.json import Fields, parse_value, text

if TYPE_CHECKING:
    from collections.abc import Mapping

_BREAKS = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
"""What Unicode, or Python, calls the end of a line."""

ACTIONS = ("CREATE", "UPDATE", "DELETE")
"""What can have happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A notification as its publisher gave it.

    Attributes:
        api: One of the types of notifications.
        source: The object it is about.
        action: One of :data:`ACTIONS`.
        data: JSON value; None for binary data.
        own: The same as the publisher wrote it; empty for what the hub has made.
        base64_data: Binary data as base64, None for JSON.
    """

    api: str
    source: str
    action: str
    data: Any = None
    own: str = field(default="", compare=False)
    base64_data: str | None = None

    @property
    def data_text(self) -> str:
        """The value as JSON."""
        return self.own or write(self.data)


def parse_drafts(body: bytes) -> list[Draft]:
    """Read the body of ``POST /notification2/notifications``: one object or an array of up to 100.

    Raises:
        Invalid: The body is something else, or a field is missing or invalid.
    """
    value = parse_value(body)
    text, many = body.decode("utf-8-sig"), isinstance(value, list)
    given = value if many else [value]
    if not 1 <= len(given) <= COMMIT_NOTIFICATIONS:
        raise Invalid(f"An array must hold 1 to {COMMIT_NOTIFICATIONS} notifications")
    if not all(isinstance(each, dict) for each in given):
        raise Invalid("A notification must be a JSON object")
    texts = members_of_each(text) if many else [members(text)]
    return [_draft(each, own) for each, own in zip(given, texts, strict=True)]


def _draft(fields: Fields, own: Mapping[str, str]) -> Draft:
    api = fields.get("api")
    if api not in APIS:
        raise Invalid(f"api must be one of {', '.join(APIS)}")
    action = "CREATE" if fields.get("action") is None else fields["action"]
    if action not in ACTIONS:
        raise Invalid(f"action must be one of {', '.join(ACTIONS)}")
    source = fields.get("source")
    if isinstance(source, dict):
        source = source.get("id")
    if ("data" in fields) == (fields.get("data_base64") is not None):
        raise Invalid("A notification must have either data or data_base64")
    return Draft(
        api=api,
        source=parse_source_id(source),
        action=action,
        data=fields.get("data"),
        own=own.get("data", ""),
        base64_data=_base64_data(fields),
    )


def _base64_data(fields: Fields) -> str | None:
    given = text(fields, "data_base64")
    if given is None:
        return None
    try:
        return base64.b64encode(base64.b64decode(given, validate=True)).decode()
    except (binascii.Error, ValueError) as error:
        raise Invalid("data_base64 is not valid base64") from error


def one_line(text: str) -> str:
    """JSON as one line, for clients that split frames at every character Unicode calls a line break. Otherwise it is as
    it was written.

    Args:
        text: Valid JSON, which has the ends of lines only between values, and the others only in strings.
    """
    bare = text.strip().replace("\r", "").replace("\n", "")
    return bare.replace("\x85", "\\u0085").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def one_line_of_bytes(body: bytes) -> str:
    """A queue message's body as one line: text as it is, JSON of several lines in one, anything else as base64."""
    try:
        decoded = body.decode()
        if not _BREAKS.search(decoded):
            return decoded
        read(body)
        return one_line(decoded.removeprefix("\ufeff"))
    except (UnicodeDecodeError, NotJson):
        return base64.b64encode(body).decode()
