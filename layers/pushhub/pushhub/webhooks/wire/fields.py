"""Reads JSON bodies and queries of the Svix API: each value is checked, and a refusal names the faulty place.

Unknown fields are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Invalid
from pushhub.base.json_text import write
from pushhub.base.numerals import digits
from pushhub.web.json import parse_value
from pushhub.webhooks.model.ids import is_application
from pushhub.webhooks.model.refusals import Refused, Unprocessable, unprocessable

if TYPE_CHECKING:
    from pushhub.webhooks.model.ids import IdPrefix

METADATA_BYTES = 4_096
"""Maximum size of metadata, in bytes of compact JSON."""

NAME = re.compile(r"[a-zA-Z0-9\-_.]{1,256}")
"""The format of uids and names of event types."""

_OFFSET = re.compile(r"(:\S+) +([+-]?)(\d\d:?\d\d)$")
_MOST_OF_A_TIME = 64
"""Maximum length of a time, in characters."""
_CONTROL = re.compile(r"[\x00-\x08]")


def parse_body(body: bytes) -> Any:
    """The JSON of a request, whatever its content type says; no body at all is an empty object."""
    if not body.strip():
        return {}
    try:
        return parse_value(body)
    except Invalid as error:
        raise unprocessable(error.message, "body", kind="value_error.jsondecode") from error


def size_of(value: Any) -> int:
    """Bytes that a value takes as compact JSON."""
    return len(write(value).encode())


def bad_request(detail: str) -> Refused:
    """A value of the query has the wrong type (400)."""
    return Refused(400, "generic_error", detail)


def moment(text: str) -> int | None:
    """A time as clients write it, in epoch milliseconds; without an offset it is UTC. None if it is not a time.

    Besides RFC 3339, the formats of Rust and Go are accepted: ``2026-01-01 00:00:00.5 UTC``, ``2026-01-01 00:00:00
    +00:00``.
    """
    if len(text) > _MOST_OF_A_TIME:
        return None
    try:
        # An unescaped plus sign arrives as a space.
        named = re.sub(r" *(UTC|Z|z)$", "+00:00", text.strip())
        read = datetime.fromisoformat(_OFFSET.sub(lambda found: f"{found[1]}{found[2] or '+'}{found[3]}", named))
        aware = read if read.tzinfo else read.replace(tzinfo=UTC)
        return max(0, round(aware.timestamp() * 1000))
    except (ValueError, OverflowError):
        return None


def moment_in_query(query: Mapping[str, str], name: str) -> int | None:
    """A time in the query, epoch milliseconds; None when absent or empty."""
    given = query.get(name, "")
    if not given:
        return None
    at = moment(given)
    if at is None:
        raise bad_request(f"{name} is not a time such as 2026-01-01T00:00:00Z")
    return at


def whole_in_query(query: Mapping[str, str], name: str, *, least: int, most: int) -> int | None:
    """A whole number in the query; None when absent or empty."""
    given = query.get(name, "")
    if not given:
        return None
    value = digits(given, 12) if given.isascii() and given.isdigit() else None
    if value is None or not least <= value <= most:
        raise unprocessable(f"A whole number from {least} to {most} is required", "query", name)
    return value


def flag_in_query(query: Mapping[str, str], name: str, *, default: bool) -> bool:
    """A boolean in the query."""
    given = query.get(name)
    if given is None or given in ("", "null"):
        return default
    if given.lower() not in ("true", "false"):
        raise bad_request(f"{name} must be true or false")
    return given.lower() == "true"


class Fields:
    """A JSON object that is read field by field.

    Methods refuse what has another type or is out of bounds, and what is null or absent unless that has a meaning.

    Args:
        value: What was sent.
        where: Its path in the request.
    """

    def __init__(self, value: Any, *where: str) -> None:
        self._where = where or ("body",)
        if not isinstance(value, dict):
            raise unprocessable("A JSON object is expected", *self._where)
        self._value: Mapping[str, Any] = value

    @property
    def members(self) -> Mapping[str, Any]:
        """All fields as they were sent."""
        return self._value

    def has(self, name: str) -> bool:
        """Whether a field was sent, even if null."""
        return name in self._value

    def raw(self, name: str) -> Any:
        """A field as it was sent; None when absent."""
        return self._value.get(name)

    def refuse(self, text: str, *where: str, kind: str = "value_error") -> Unprocessable:
        """A refusal of a value at a place below this object."""
        return unprocessable(text, *self._where, *where, kind=kind)

    def chosen(self, *names: str) -> str:
        """The first of a field's names, newest first, whose value is not null; else the first that was sent; else the
        first name.
        """
        sent = [name for name in names if self.has(name)]
        return next((name for name in sent if self._value[name] is not None), sent[0] if sent else names[0])

    def text(self, name: str, *, least: int = 0, most: int = 65_536, default: str | None = None) -> str:
        """A string that must not be null."""
        if not self.has(name) and default is not None:
            return default
        value = self.optional_text(name, least=least, most=most)
        if value is None:
            raise self.refuse("A string is required", name)
        return value

    def optional_text(self, name: str, *, least: int = 0, most: int = 65_536) -> str | None:
        """A string, or None when absent or null."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.refuse("A string is required", name)
        if not least <= len(value) <= most:
            raise self.refuse(f"The string must have {least} to {most} characters", name)
        if _CONTROL.search(value):
            raise self.refuse("The string contains control characters", name)
        return value

    def whole(self, name: str, *, least: int, most: int) -> int | None:
        """A whole number, or None when absent or null."""
        value = self.raw(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refuse("A whole number is required", name)
        if not least <= value <= most:
            raise self.refuse(f"The number must be from {least} to {most}", name)
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """A boolean that must not be null."""
        if not self.has(name):
            return default
        value = self.raw(name)
        if not isinstance(value, bool):
            raise self.refuse("True or false is required", name)
        return value

    def name(self, name: str) -> str:
        """The name of an event type."""
        value = self.raw(name)
        if not isinstance(value, str) or NAME.fullmatch(value) is None:
            raise self.refuse("A name must have 1 to 256 letters, digits, hyphens, underscores and dots", name)
        return value

    def uid(self, name: str, kind: IdPrefix) -> str | None:
        """An owner's own id, or None when absent or null."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, str) or NAME.fullmatch(value) is None:
            raise self.refuse("A uid must have 1 to 256 letters, digits, hyphens, underscores and dots", name)
        if value.startswith(kind) or is_application(value):
            raise self.refuse(f"A uid may neither begin with {kind} nor be like an id", name)
        return value

    def names(self, name: str, pattern: re.Pattern[str], *, most: int) -> tuple[str, ...] | None:
        """A list of different names, sorted; None when absent or null."""
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, list) or not value:
            raise self.refuse("A list with at least one item is required", name)
        if not all(isinstance(each, str) and pattern.fullmatch(each) for each in value):
            raise self.refuse("The list has an item with characters that are not allowed", name)
        found = tuple(sorted(set(value)))
        if len(found) > most:
            raise self.refuse(f"The list may have at most {most} items", name)
        return found

    def texts_by_name(self, name: str) -> Mapping[str, str]:
        """Metadata: strings by name; empty when absent or null."""
        value = self.raw(name)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
            raise self.refuse("An object whose values are strings is required", name)
        if size_of(value) > METADATA_BYTES:
            raise self.refuse(f"The object may take at most {METADATA_BYTES} bytes as JSON", name)
        return dict(value)

    def section(self, name: str) -> Fields | None:
        """An object inside this one, or None when absent or null."""
        value = self.raw(name)
        return None if value is None else Fields(value, *self._where, name)

    def moment(self, name: str) -> int | None:
        """A time, epoch milliseconds; None when absent or null."""
        value = self.raw(name)
        if value is None:
            return None
        at = moment(value) if isinstance(value, str) else None
        if at is None:
            raise self.refuse("A time such as 2026-01-01T00:00:00Z is required", name)
        return at

    def required_moment(self, name: str) -> int:
        """A time, epoch milliseconds."""
        at = self.moment(name)
        if at is None:
            raise self.refuse("A time is required", name)
        return at


def names_in_query(pairs: Sequence[tuple[str, str]], name: str) -> tuple[str, ...]:
    """A list in the query, in any of the forms that clients write: ``a=x,y``, ``a[]=x``, ``a[0]=x``, ``a=x&a=y``.

    Empty when absent.
    """
    form = re.compile(re.escape(name) + r"(?:\[\d{0,4}\])?")
    found = [each for key, value in pairs if form.fullmatch(key) for each in value.split(",")]
    if not all(NAME.fullmatch(each) for each in found):
        raise unprocessable("An item is not a valid name", "query", name)
    return tuple(dict.fromkeys(found))
