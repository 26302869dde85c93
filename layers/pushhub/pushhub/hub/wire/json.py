"""Reads JSON from clients and endpoints."""

from __future__ import annotations

from typing import Any

from pushhub.base.errors import Invalid
from pushhub.base.json_text import NameTwice, NotJson, Verbatim, members, read


def parse_object(body: bytes | str, *, exact: bool = False) -> dict[str, Any]:
    """The JSON object in ``body``; of members with the same name, the last one counts.

    Args:
        exact: Whether numbers keep their text; see :func:`pushhub.base.json_text.read`.

    Raises:
        Invalid: With a message that fits after "The body ".
    """
    try:
        parsed = read(body, last_wins=True, exact=exact)
    except NotJson as error:
        raise Invalid(str(error)) from error
    if not isinstance(parsed, dict):
        raise Invalid("is JSON but not an object")
    return parsed


def parse_written(body: bytes) -> tuple[dict[str, Any], str | None]:
    """The same, and how it was written: None if that cannot be handed on, as a member in it has the name of another
    one, so that whoever reads it may take the other one for the value, and not the one that filters have seen.

    Raises:
        Invalid: As :func:`parse_object`.
    """
    try:
        parsed = read(body)
    except NameTwice:
        return parse_object(body), None
    except NotJson as error:
        raise Invalid(str(error)) from error
    if not isinstance(parsed, dict):
        raise Invalid("is JSON but not an object")
    return parsed, body.decode("utf-8-sig")


def own_members(value: object, text: str | None) -> dict[str, Any]:
    """The members of an object with their values as they were written.

    Args:
        value: The object as it was read; anything else has no members.
        text: As it was written; None if that cannot be handed on, so the members are as they were read.
    """
    if not isinstance(value, dict):
        return {}
    return value if text is None else {name: Verbatim(each) for name, each in members(text).items()}
