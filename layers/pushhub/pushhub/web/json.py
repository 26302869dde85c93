"""Reads request bodies strictly, so that anything odd is refused before anything is stored; and writes responses.

Null counts as absent, and so does zero where zero means nothing (IronMQ v3 clients send ``"timeout": 0`` for "not
set"). Unknown fields are ignored, as clients send many. A field of another type is refused as ``Invalid``.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Invalid

if TYPE_CHECKING:
    from pushhub.base.steps import Steps

MAX_REQUEST_BYTES = 4_194_304
"""The largest request body accepted, in bytes (4 MiB)."""

MAX_QUERY_DIGITS = 6

_VERBATIM_STEPS = 2
_HALVES = re.compile("[\ud800-\udfff]")

Fields = Mapping[str, Any]
"""A JSON object."""


def parse_object(body: bytes) -> dict[str, Any]:
    """Read a request body; an empty body counts as an empty object.

    Raises:
        Invalid: Not UTF-8, not JSON, not an object, a key given twice, NaN or Infinity, an unpaired surrogate, or
            nested too deeply to read.
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
    return _parsed(body, _unique_keys)


def parse_to_show(body: bytes, steps: Steps) -> Any:
    """Read JSON of which parts are shown: numbers that Python would write differently are :class:`Verbatim`.

    Args:
        body: As for :func:`parse_value`.
        steps: Spent for objects and numbers; the rest takes little time.

    Raises:
        Invalid: As :func:`parse_value`.
        TooMuchWork: The steps are used up.
    """

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        steps.spend()
        return _unique_keys(pairs)

    def number(written: str) -> Verbatim:
        # Read here, written in the answer by way of a mark, and inserted there.
        steps.spend(_VERBATIM_STEPS)
        return Verbatim(written)

    return _parsed(body, members, parse_float=number, parse_int=number if b"-0" in body else None)


def _parsed(body: bytes, members: Callable[[list[tuple[str, Any]]], Any], **hooks: Any) -> Any:
    try:
        decoded = body.decode()
        value = json.loads(decoded, object_pairs_hook=members, parse_constant=_no_constant, **hooks)
    except UnicodeDecodeError as error:
        raise Invalid("Request body is not UTF-8") from error
    except RecursionError as error:
        raise Invalid("JSON is nested too deeply") from error
    except ValueError as error:
        raise Invalid("Request body is not valid JSON") from error
    if "\\ud" in decoded.lower():
        _refuse_surrogates(value)
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Invalid("JSON object has a key twice")
    return fields


def _no_constant(constant: str) -> Any:
    raise Invalid(f"{constant} is not JSON")


def _refuse_surrogates(value: Any) -> None:
    for each in _strings(value):
        if _HALVES.search(each):
            raise Invalid("JSON string holds half a surrogate pair")


def _strings(value: Any) -> Iterator[str]:
    """Every string and key in a JSON value. Not recursive, as the sender controls the nesting depth."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


@dataclass(frozen=True, slots=True)
class Verbatim:
    """JSON that is sent in a response exactly as it was received.

    Attributes:
        text: Valid JSON.
    """

    text: str


def written(value: object) -> str:
    """A response as JSON; each :class:`Verbatim` in it is inserted unchanged."""
    # The mark is unpredictable, so no text in a response can be mistaken for it.
    mark, texts = secrets.token_hex(16), list[str]()

    def marked(part: object) -> str:
        if not isinstance(part, Verbatim):
            raise TypeError(f"{type(part).__name__} is not JSON")
        texts.append(part.text)
        return f"{mark}{len(texts) - 1}"

    content = json.dumps(value, ensure_ascii=False, default=marked)
    return re.sub(f'"{mark}([0-9]+)"', lambda found: texts[int(found[1])], content) if texts else content


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


def number_in_query(query: Mapping[str, str], name: str, *, default: int) -> int:
    """A whole number of a query string; ``default`` when absent, empty or zero.

    Raises:
        Invalid: Not a whole number, negative, or of more than six digits.
    """
    given = query.get(name, "")
    if not given:
        return default
    if not (given.isascii() and given.isdigit() and len(given) <= MAX_QUERY_DIGITS):
        raise Invalid(f"{name} must be a whole number")
    return int(given) or default
