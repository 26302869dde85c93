"""JSON as text: the one place where it is read, written, and split into lines.

A stranger's text is read strictly, by :func:`read` (RFC 8259, and I-JSON of RFC 7493 where parsers differ): UTF-8, no
NaN, no number that is none in Python, no half of a surrogate pair, nested at most :data:`MAX_DEPTH` deep. So whatever
has been read can be written again as valid JSON in UTF-8. A name given twice in an object is refused in requests; in
answers of others, the last one counts, as with most parsers.

What the hub has written itself, and keeps in its own tables, queues and buckets, is read by :func:`stored`.

Python's own parser does the work: why no other one, docs/dependencies.md.
"""

from __future__ import annotations

import gzip
import json
import re
import secrets
import zlib
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pushhub.base.nesting import is_deeper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MAX_DEPTH: Final = 100
"""Deepest nesting that is read. Deeper documents overflow parsers further on (ours, DynamoDB clients', Spark's)."""

_MAYBE_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_NO_HALF = re.compile(
    r"(?:[^\\]++|\\[^u]|\\u(?![dD][89a-fA-F])|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+"
)
"""Valid JSON up to its first escaped half of a surrogate pair."""
_VERBATIM_STEPS = 2
"""A number is read, written by way of a mark, and inserted there."""
_SPACES = " \t\r\n"
_SPACE = re.compile(r"[ \t\r\n]*")
_NAME = re.compile(r'[ \t\r\n]*+,?+[ \t\r\n]*+"((?:[^"\\]|\\.)*+)"[ \t\r\n]*+:[ \t\r\n]*+')
"""The name of a member of an object that was read before: from the end of the value before it up to its own value."""
_scanned = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
"""A value from a place on, and where it ends."""


class Fault(StrEnum):
    """What is wrong with a text."""

    NOT_UNICODE = "is not UTF-8"
    NOT_JSON = "is not valid JSON"
    NO_NUMBER = "is not valid JSON: it holds NaN, Infinity or a number that is too large"
    HALF_PAIR = "holds half a surrogate pair"
    TOO_DEEP = f"is nested deeper than {MAX_DEPTH} levels"
    NAME_TWICE = "has an object with a key twice"


class NotJson(ValueError):
    """A text cannot be read as JSON.

    Attributes:
        fault: What is wrong.
        place: Where: ``line 3, column 17``, both from 1, in characters; empty if it is no one place.
    """

    def __init__(self, fault: Fault, place: str = "") -> None:
        super().__init__(f"{fault} ({place})" if place else fault.value)
        self.fault = fault
        self.place = place


class NameTwice(NotJson):
    """An object has a name twice."""

    def __init__(self) -> None:
        super().__init__(Fault.NAME_TWICE)


@dataclass(frozen=True, slots=True)
class Verbatim:
    """JSON that is written exactly as it was received.

    Attributes:
        text: Valid JSON.
    """

    text: str


def read(
    content: bytes | str,
    *,
    last_wins: bool = False,
    exact: bool = False,
    spend: Callable[[int], None] | None = None,
) -> Any:
    """Read a stranger's JSON.

    Args:
        content: UTF-8, with or without a byte order mark; or text.
        last_wins: Whether the last of several members of the same name counts, instead of being refused.
        exact: Whether numbers that Python would write differently are read as :class:`Verbatim`.
        spend: Called with the steps that each object and each exact number costs; whatever it raises ends the reading.

    Raises:
        NotJson: It is not JSON, or not what is read here.
    """
    text = _text(content)
    hooks: dict[str, Any] = {}
    if spend is not None:
        hooks["object_pairs_hook"] = _members(last_wins=last_wins, spend=spend)
    if exact:
        number = _exact(spend)
        hooks["parse_float"] = number
        if "-0" in text:
            hooks["parse_int"] = number
    value = _parsed(text, _decoder(last_wins=last_wins, hooks=hooks))
    if _MAYBE_HALF.search(text):
        # In valid JSON, backslashes are only in strings.
        end = _NO_HALF.match(text).end()  # type: ignore[union-attr]
        if end < len(text):
            raise NotJson(Fault.HALF_PAIR, _place(text, end))
    return value


def read_words(content: bytes | str) -> Any:
    """Read a stranger's JSON with all numbers as the texts that they are written as: ``0042`` is none, and ``1.10`` is
    not ``1.1``. The last of several members of the same name counts.

    Raises:
        NotJson: As :func:`read`.
    """
    text = _text(content)
    value = _parsed(text, _WORDS)
    if _MAYBE_HALF.search(text) and _NO_HALF.match(text).end() < len(text):  # type: ignore[union-attr]
        raise NotJson(Fault.HALF_PAIR)
    return value


def members(text: str) -> dict[str, str]:
    """The members of a JSON object, each with its own text; the last of those with the same name.

    Args:
        text: A JSON object that was read before.
    """
    return _members_at(text, text.index("{"))[0]


def members_of_each(text: str) -> list[dict[str, str]]:
    """The members of each object in a JSON array, as :func:`members` has them.

    Args:
        text: A JSON array of objects that was read before.
    """
    found: list[dict[str, str]] = []
    place = _behind_space(text, text.index("[") + 1)
    while text[place] != "]":
        each, end = _members_at(text, place)
        found.append(each)
        place = _behind_space(text, end)
        if text[place] == ",":
            place = _behind_space(text, place + 1)
    return found


def elements(text: str) -> list[str]:
    """The elements of a JSON array, each as it is written.

    Args:
        text: A JSON array that was read before.
    """
    found: list[str] = []
    place = _behind_space(text, text.index("[") + 1)
    while text[place] != "]":
        _, end = _scanned(text, place)
        found.append(text[place:end])
        place = _behind_space(text, end)
        if text[place] == ",":
            place = _behind_space(text, place + 1)
    return found


def _members_at(text: str, start: int) -> tuple[dict[str, str], int]:
    """The members of the object that begins at a place, and where it ends."""
    found: dict[str, str] = {}
    end = start + 1
    while name := _NAME.match(text, end):
        value = name.end()
        _, end = _scanned(text, value)
        written = name[1]
        found[json.loads(f'"{written}"') if "\\" in written else written] = text[value:end]
    return found, _behind_space(text, end) + 1


def _behind_space(text: str, place: int) -> int:
    if text[place] not in _SPACES:
        return place
    return _SPACE.match(text, place).end()  # type: ignore[union-attr]


def object_of(texts: Mapping[str, str]) -> str:
    """An object whose members are inserted as they are written."""
    return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{text}" for name, text in texts.items()) + "}"


def stored(content: bytes | str) -> Any:
    """Read JSON that the hub has written itself.

    Raises:
        ValueError: It is not JSON.
    """
    return json.loads(content)


def write(
    value: object, *, spaced: bool = False, ascii_only: bool = False, sort_keys: bool = False, indent: int | None = None
) -> str:
    """A value as JSON, in one line unless it is indented; each :class:`Verbatim` in it is inserted as it is.

    Args:
        value: Of mappings, lists, tuples, texts, numbers, booleans and None.
        spaced: Whether there is a space behind commas and colons.
        ascii_only: Whether other characters are escaped.
        sort_keys: Whether members are in the order of their names.
        indent: Spaces by which each level begins a line of its own, for people.

    Raises:
        ValueError: There is a number in it that JSON does not have, or it is nested in itself.
        TypeError: There is something else in it.
    """
    if isinstance(value, Verbatim):
        return value.text
    try:
        return _encoder(spaced, ascii_only, sort_keys, indent, _no_verbatim).encode(value)
    except _HasVerbatim:
        pass
    # The mark is unpredictable, so no text in a value can be mistaken for it.
    mark, texts = secrets.token_hex(16), list[str]()

    def marked(part: object) -> object:
        if not isinstance(part, Verbatim):
            return _as_dict(part)
        texts.append(part.text)
        return f"{mark}{len(texts) - 1}"

    content = _encoder.__wrapped__(spaced, ascii_only, sort_keys, indent, marked).encode(value)
    return re.sub(f'"{mark}([0-9]+)"', lambda found: texts[int(found[1])], content)


class _HasVerbatim(Exception):
    """There is JSON in a value that is to be inserted as it is."""


def _no_verbatim(part: object) -> object:
    if isinstance(part, Verbatim):
        raise _HasVerbatim
    return _as_dict(part)


def _as_dict(part: object) -> object:
    """Another mapping than a dict, which is all that Python's encoder knows."""
    if hasattr(part, "keys"):
        return dict(part)  # type: ignore[call-overload]
    raise TypeError(f"{type(part).__name__} is not JSON")


@lru_cache(maxsize=8)
def _encoder(
    spaced: bool, ascii_only: bool, sort_keys: bool, indent: int | None, default: Callable[[object], object]
) -> json.JSONEncoder:
    return json.JSONEncoder(
        ensure_ascii=ascii_only,
        allow_nan=False,
        separators=None if spaced or indent is not None else (",", ":"),
        sort_keys=sort_keys,
        indent=indent,
        default=default,
    )


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of some JSON lines that was passed over.

    Attributes:
        line: Number of the line, from 1; 0 for all that could not be unpacked.
        why: What is wrong with it, for people.
    """

    line: int
    why: str

    def __str__(self) -> str:
        """For people: which part, and why."""
        return f"line {self.line} {self.why}" if self.line else self.why


def split(content: bytes) -> list[bytes]:
    r"""Lines of JSON. They end at ``\n``, and at no other character that Unicode or Python calls the end of a line:
    these may be in the names that people give. Lines without anything are left out.
    """
    return [each for each in content.split(b"\n") if each.strip()]


def lines(content: bytes, passed_over: Callable[[Unread], None], *, naming: bytes = b"") -> Iterator[dict[str, Any]]:
    """The objects of JSON lines.

    Args:
        content: JSON lines; if packed with gzip, they are unpacked as far as they are there.
        passed_over: Told what cannot be read; the lines behind it are read.
        naming: Lines that do not hold this are not looked at.
    """
    text, fault = unpacked(content)
    if fault:
        # Its last line was cut off, too.
        text = text[: text.rfind(b"\n") + 1]
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip() or naming not in line:
            continue
        try:
            value = read(line, last_wins=True)
        except NotJson as error:
            passed_over(Unread(number, str(error)))
            continue
        if isinstance(value, dict):
            yield value
        else:
            passed_over(Unread(number, "is JSON but not an object"))
    if fault:
        passed_over(Unread(0, fault))


def unpacked(content: bytes) -> tuple[bytes, str]:
    """What was packed with gzip, as far as it is there, and what is wrong with the rest; empty if nothing is.

    What is not packed is returned as it is.
    """
    if not content.startswith(b"\x1f\x8b"):
        return content, ""
    try:
        return gzip.decompress(content), ""
    except EOFError:
        pass
    except (OSError, zlib.error):
        # What comes out of it may be what nobody ever packed, and look as if somebody had.
        return b"", "is damaged: nothing of it is read"
    # Other than a part that is damaged, the beginning of one that was cut off is what was packed.
    return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(content), "ends too early: only its beginning is read"


def _text(content: bytes | str) -> str:
    """The text, if it is one, and nested no deeper than is read."""
    if isinstance(content, str):
        try:
            encoded, text = content.encode(), content
        except UnicodeEncodeError as error:
            raise NotJson(Fault.HALF_PAIR, _place(content, error.start)) from error
    else:
        try:
            encoded, text = content, content.decode()
        except UnicodeDecodeError as error:
            raise NotJson(Fault.NOT_UNICODE, f"byte {error.start + 1}") from error
    if is_deeper(encoded, MAX_DEPTH):
        raise NotJson(Fault.TOO_DEEP)
    return text.removeprefix("\ufeff")


def _parsed(text: str, decoder: json.JSONDecoder) -> Any:
    try:
        return decoder.decode(text)
    except NotJson:
        raise
    except json.JSONDecodeError as error:
        raise NotJson(Fault.NOT_JSON, f"line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise NotJson(Fault.TOO_DEEP) from error
    except ValueError as error:
        # A whole number of more digits than Python reads.
        raise NotJson(Fault.NO_NUMBER) from error


def _decoder(*, last_wins: bool, hooks: Mapping[str, Any]) -> json.JSONDecoder:
    if not hooks:
        return _LAST_WINS if last_wins else _STRICT
    unique = {} if last_wins else {"object_pairs_hook": _unique}
    return json.JSONDecoder(**{"parse_constant": _no_constant, "parse_float": _finite, **unique, **hooks})


def _members(*, last_wins: bool, spend: Callable[[int], None]) -> Callable[[list[tuple[str, Any]]], Any]:
    def counted(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        spend(1)
        return dict(pairs) if last_wins else _unique(pairs)

    return counted


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise NameTwice
    return fields


def _exact(spend: Callable[[int], None] | None) -> Callable[[str], Verbatim]:
    def counted(written: str) -> Verbatim:
        _finite(written)
        if spend is not None:
            spend(_VERBATIM_STEPS)
        return Verbatim(written)

    return counted


def _finite(written: str) -> float:
    value = float(written)
    if value in (float("inf"), float("-inf")):
        raise NotJson(Fault.NO_NUMBER)
    return value


def _no_constant(constant: str) -> Any:
    del constant
    raise NotJson(Fault.NO_NUMBER)


def _place(text: str, at: int) -> str:
    before = text[:at]
    return f"line {before.count(chr(10)) + 1}, column {at - before.rfind(chr(10))}"


_LAST_WINS = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
_STRICT = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_unique)
_WORDS = json.JSONDecoder(parse_constant=_no_constant, parse_int=str, parse_float=str)
