"""Text for a terminal: in colour where it matters, and never with characters that move a cursor or turn a line."""

from __future__ import annotations

from typing import Any

import click

from pushhub.base import json_text

GOOD = ("delivered", "acknowledged", "completed", "enabled", "ok")
BAD = ("failed", "failing", "exhausted", "expired", "held", "refused", "wrong")


def coloured(line: str) -> str:
    """A line with the words that matter in colour; click takes colours out where nobody sees them."""
    words = []
    for word in line.split(" "):
        bare = word.strip(",:()").lower()
        words.append(
            click.style(word, fg="green") if bare in GOOD else click.style(word, fg="red") if bare in BAD else word
        )
    return " ".join(words)


def printable(value: Any) -> str:
    """A value in one line of text that cannot move anybody's cursor: what a tenant named is shown to operators."""
    if isinstance(value, list | tuple):
        return ", ".join(map(printable, value)) or "-"
    if isinstance(value, dict):
        return printable(json_text.write(value, spaced=True))
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in str(value))
    return "-" if value is None or value == "" else shown


def printable_lines(text: str) -> str:
    """The same for a text of several lines, such as an error of click."""
    return "\n".join(printable(line.expandtabs(4)) if line else "" for line in text.split("\n"))


def as_json(value: Any) -> str:
    r"""A value in one line of JSON. What a terminal would obey (controls, escapes, marks that turn the direction of
    writing) and what cannot be encoded is written as ``\uXXXX``, so every parser reads the same value.
    """
    text = json_text.write(value, spaced=True)
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    # The one control character that JSON leaves alone.
    return "\\u007f" if character == "\x7f" else json_text.write(character, ascii_only=True)[1:-1]
