"""Refusals of the API, with the details its clients get besides the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pushhub.base.errors import NotFound, RequestRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with a request.

    Attributes:
        where: Its path in the request, beginning with ``body``, ``query`` or ``path``.
        text: For people.
        kind: A word for programs.
    """

    where: tuple[str, ...]
    text: str
    kind: str = "value_error"


class Unprocessable(RequestRefused):
    """A value breaks a rule (422)."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems[0].text)
        self.problems = tuple(problems)


class Refused(RequestRefused):
    """Another refusal with a status and a code of its own.

    Args:
        status: HTTP status.
        code: A word for programs.
        detail: For people.
    """

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code


class Gone(Refused):
    """The body of a message is no longer there, so it cannot be sent again."""

    def __init__(self) -> None:
        super().__init__(400, "missing_payload", "The payload of the message was expunged or has expired")


def unprocessable(text: str, *where: str, kind: str = "value_error") -> Unprocessable:
    """One value breaks a rule.

    Args:
        text: For people.
        where: Its path in the request. kind: A word for programs.
    """
    return Unprocessable([Problem(where=where, text=text, kind=kind)])


def conflict(detail: str, code: str = "conflict") -> Refused:
    """A 409: something that must be unique already exists, or another request made a change at the same time."""
    return Refused(409, code, detail)


def insufficient() -> Refused:
    """The caller's token does not open this (403)."""
    return Refused(403, "insufficient access", "Insufficient access for the given operation.")


def not_found(what: str = "Entity") -> NotFound:
    """What the request names does not exist or belongs to another owner."""
    return NotFound(f"{what} not found")
