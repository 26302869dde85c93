"""What a hub answered, read without trusting it: another server, a proxy or a newer hub may answer anything."""

from __future__ import annotations

from typing import Any, TypeVar

import click

_T = TypeVar("_T")


class Odd(click.ClickException):
    """The answer is not what a hub answers to this request."""

    exit_code = 1

    def __init__(self, problem: str) -> None:
        super().__init__(f"the hub's answer cannot be understood: {problem}")


def fields(answer: Any) -> dict[str, Any]:
    """An answer that is an object."""
    if not isinstance(answer, dict):
        raise Odd("it is no object")
    return answer


def _of(answer: Any, name: str, kind: type[_T], called: str) -> _T:
    value = fields(answer).get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Odd(f"its {name!r} is no {called}")
    return value


def text(answer: Any, name: str) -> str:
    """A text in an answer; :class:`Odd` without it, as with all of these."""
    return _of(answer, name, str, "text")


def number(answer: Any, name: str) -> int:
    """A whole number in an answer."""
    return _of(answer, name, int, "whole number")


def section(answer: Any, name: str) -> dict[str, Any]:
    """An object in an answer."""
    return _of(answer, name, dict, "object")


def sections(answer: Any, name: str) -> list[dict[str, Any]]:
    """A list of objects in an answer."""
    return _all(answer, name, dict, "objects")


def texts(answer: Any, name: str) -> list[str]:
    """A list of texts in an answer."""
    return _all(answer, name, str, "texts")


def _all(answer: Any, name: str, kind: type[_T], called: str) -> list[_T]:
    found: list[Any] = _of(answer, name, list, "list")
    if not all(isinstance(each, kind) for each in found):
        raise Odd(f"its {name!r} does not hold {called}")
    return found
