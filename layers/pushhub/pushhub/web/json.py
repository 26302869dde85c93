"""Reads request bodies, so that anything odd is refused before anything is stored.

Null counts as absent, and so does zero where zero means nothing (IronMQ v3 clients send ``"timeout": 0`` for "not
set"). Unknown fields are ignored, as clients send many. A field of another type is refused as ``Invalid``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pushhub.base.errors import Invalid
from pushhub.base.json_text import NotJson, read
from pushhub.base.numerals import digits

MAX_REQUEST_BYTES = 4_194_304
"""The largest request body accepted, in bytes (4 MiB)."""

MAX_QUERY_DIGITS = 6

Fields = Mapping[str, Any]
"""A JSON object."""


def parse_object(body: bytes) -> dict[str, Any]:
    """Read a request body; an empty body counts as an empty object.

    Raises:
        Invalid: It is no object, or none that :func:`pushhub.base.json_text.read` reads.
    """
    value = parse_value(body) if body else {}
    if not isinstance(value, dict):
        raise Invalid("Request body must be a JSON object")
    return value


def parse_value(body: bytes) -> Any:
    """Read a request body that may be any JSON value.

    Raises:
        Invalid: As :func:`parse_object`, and when it is empty.
    """
    try:
        return read(body)
    except NotJson as error:
        raise Invalid(f"Request body {error}") from error


def text(fields: Fields, name: str) -> str | None:
    """A string, or None when absent or null."""
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise Invalid(f"{name} must be a string")
    return value


def integer(fields: Fields, name: str, *, least: int, most: int, zero_is_unset: bool = True) -> int | None:
    """A whole number within bounds, or None when absent, null, or (unless the caller wants it) zero.

    Raises:
        Invalid: Of another type (a fraction, a string, a boolean), or out of bounds.
    """
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(f"{name} must be a whole number")
    if value == 0 and zero_is_unset:
        return None
    if not least <= value <= most:
        raise Invalid(f"{name} must be from {least} to {most}")
    return value


def boolean(fields: Fields, name: str) -> bool:
    """A boolean; False when absent or null."""
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise Invalid(f"{name} must be true or false")
    return bool(value)


def moment(fields: Fields, name: str) -> int | None:
    """A time, ``2026-11-01`` or ``2026-11-01T12:00:00Z``, as epoch milliseconds; UTC unless it has a time zone. None
    when absent or null.

    Raises:
        Invalid: Of another type or format.
    """
    value = text(fields, name)
    if value is None:
        return None
    try:
        given = datetime.fromisoformat(value)
        return round((given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise Invalid(f"{name} must be a time like 2026-11-01 or 2026-11-01T12:00:00Z") from error


def section(fields: Fields, name: str) -> Fields | None:
    """An object, or None when absent or null."""
    value = fields.get(name)
    if value is not None and not isinstance(value, dict):
        raise Invalid(f"{name} must be an object")
    return value


def listed(fields: Fields, name: str) -> Sequence[Any] | None:
    """An array, or None when absent or null."""
    value = fields.get(name)
    if value is not None and not isinstance(value, list):
        raise Invalid(f"{name} must be an array")
    return value


def flag_in_query(query: Mapping[str, str], name: str) -> bool:
    """``true`` or ``false`` in a query string; false when absent or empty.

    Raises:
        Invalid: Something else.
    """
    given = query.get(name, "").lower()
    if given not in ("", "true", "false"):
        raise Invalid(f"{name} must be true or false")
    return given == "true"


def number_in_query(query: Mapping[str, str], name: str, *, default: int) -> int:
    """A whole number of a query string; ``default`` when absent, empty or zero.

    Raises:
        Invalid: Not a whole number, negative, or of more than six digits.
    """
    given = query.get(name, "")
    if not given:
        return default
    number = digits(given, MAX_QUERY_DIGITS)
    if number is None:
        raise Invalid(f"{name} must be a whole number of at most {MAX_QUERY_DIGITS} digits")
    return number or default
