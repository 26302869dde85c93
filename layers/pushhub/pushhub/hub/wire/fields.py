"""Reads the objects sent to the hub's administration API (``{"mapping": {...}}`` and the like), as JSON or as a web
form.

All errors of an object are collected and reported together (hub protocol v5: 422 ``{"error": "Invalid object.",
"errors": {...}}``). Forms carry everything as text, and the admin client sends identifiers and filters as JSON text
inside, so values are accepted in both forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pushhub.base.errors import Invalid
from pushhub.base.json_text import NotJson, read
from pushhub.base.numerals import fraction

MAX_TEXT = 1000
"""Longest text field accepted, in characters, where a field has no limit of its own."""

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off", ""})


class InvalidObject(Invalid):
    """The object has errors.

    Args:
        errors: What is wrong, by field.
    """

    def __init__(self, errors: Mapping[str, Sequence[str]]) -> None:
        super().__init__("Invalid object.")
        self.errors = {name: list(each) for name, each in errors.items()}


class CheckedFields:
    """The fields of one object, and the errors found so far."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        self._errors: dict[str, list[str]] = {}

    def __contains__(self, name: str) -> bool:
        """Whether the field was sent with a value."""
        return self._fields.get(name) is not None

    def raw(self, name: str) -> Any:
        """The field as it was sent."""
        return self._fields.get(name)

    def error(self, name: str, message: str) -> None:
        """Record that a field is invalid."""
        self._errors.setdefault(name, []).append(message)

    def check(self) -> None:
        """Check that no errors were found.

        Raises:
            InvalidObject: Errors were found.
        """
        if self._errors:
            raise InvalidObject(self._errors)

    def text(self, name: str, default: str = "", *, required: bool = False, longest: int = MAX_TEXT) -> str:
        """A text without control characters."""
        value = self._fields.get(name)
        if value is None:
            value = default
        if not isinstance(value, str):
            self.error(name, "must be text")
            return default
        value = value.strip()
        if required and not value:
            self.error(name, "can't be blank")
        elif len(value) > longest:
            self.error(name, f"is longer than {longest} characters")
        elif not value.isprintable():
            self.error(name, "holds control characters")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """True or false, or one of their spellings in a form."""
        value = self._fields.get(name)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        spelt = str(value).strip().lower()
        if spelt in _TRUE or spelt in _FALSE:
            return spelt in _TRUE
        self.error(name, "must be true or false")
        return default

    def number(self, name: str, default: float | None, *, least: float, most: float) -> float | None:
        """A number within bounds; null and empty text mean the default."""
        value = self._fields.get(name)
        if value is None or value == "":
            return default
        try:
            number = _number(value)
        except (ValueError, OverflowError):
            number = None
        if number is None or not least <= number <= most:
            self.error(name, f"must be a number from {least:g} to {most:g}")
            return default
        return number

    def whole(self, name: str, default: int | None, *, least: int, most: int) -> int | None:
        """A whole number within bounds."""
        number = self.number(name, default, least=least, most=most)
        if number is not None and number != int(number):
            self.error(name, "must be a whole number")
            return default
        return None if number is None else int(number)

    def texts(self, name: str, *, most: int, longest: int = 255) -> tuple[str, ...]:
        """A list of texts: an array, a JSON array as text, or a single text."""
        value = self._parsed(name)
        if value is None or value == "":
            return ()
        items = [value] if isinstance(value, str) else list(value.values()) if isinstance(value, dict) else value
        if not isinstance(items, list) or not all(isinstance(each, str) for each in items):
            self.error(name, "must be a list of strings")
            return ()
        if len(items) > most or any(len(each) > longest for each in items):
            self.error(name, f"must have at most {most} elements of at most {longest} characters")
            return ()
        # Rails forms send an empty element to say "none".
        return tuple(dict.fromkeys(each for each in items if each))

    def section(self, name: str) -> dict[str, Any]:
        """An object, or a JSON object as text."""
        value = self._parsed(name)
        if value is None or value in ("", []):
            return {}
        if not isinstance(value, dict):
            self.error(name, "must be an object")
            return {}
        return value

    def sections(self, name: str, *, most: int) -> list[dict[str, Any]]:
        """An array of objects, a JSON array as text, or a form's numbered list."""
        value = self._parsed(name)
        if value is None or value in ("", {}):
            return []
        items = list(value.values()) if isinstance(value, dict) else value
        if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
            self.error(name, "must be a list of objects")
            return []
        if len(items) > most:
            self.error(name, f"must have at most {most} elements")
            return []
        return items

    def _parsed(self, name: str) -> Any:
        value = self._fields.get(name)
        if isinstance(value, str) and value.strip()[:1] in ("{", "["):
            try:
                return read(value)
            except NotJson as error:
                self.error(name, str(error))
                return None
        return value


def _number(value: object) -> float | None:
    """A number, or one that a form has sent as text; None if it is none."""
    if isinstance(value, str):
        return fraction(value)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
