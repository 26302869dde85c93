"""The table at the end of the demonstration."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Row", "table"]


class Row(NamedTuple):
    """One subscriber."""

    subscriber: str
    manner: str
    received: str
    tries: str
    given_up: str


_HEADINGS = Row("subscriber", "what it does", "received", "tries", "in the error queue")


def table(rows: list[Row]) -> str:
    """The rows under headings, in columns of the necessary width."""
    lines = [_HEADINGS, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    rule = "  ".join("-" * width for width in widths)
    texts = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join(["", texts[0], rule, *texts[1:], ""])
