"""Bounds as the documents state them: the numbers in the rows of their tables, and in their sentences.

What a client relies on is what is written there, and not what the code takes for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

DOCUMENTS = Path(__file__).parents[2] / "docs"
_NUMBER = re.compile(r"(?<!\w)(\d[\d,]*(?:\.\d+)?)(?: (KiB|MiB|MB))?(?!\w)")
_UNITS = {"": 1, "KiB": 1_024, "MiB": 1_024 * 1_024, "MB": 1_000_000}


@cache
def rows(document: str, heading: str = "") -> Mapping[str, str]:
    """The rows of a document's tables, the first cell of each with the others.

    Args:
        document: Its name, for instance ``ironmq``.
        heading: Of the part whose tables are read; empty for all of it.
    """
    text = (DOCUMENTS / f"{document}.md").read_text(encoding="utf-8")
    if heading:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    cells = (line.strip("|").split("|") for line in text.splitlines() if line.startswith("| "))
    return {each[0].strip(): " | ".join(cell.strip() for cell in each[1:]) for each in cells if each[0].strip()}


def numbers(document: str, row: str, heading: str = "") -> Sequence[int]:
    """The numbers of a row, in order; sizes in bytes.

    Raises:
        KeyError: There is no such row.
    """
    found = _NUMBER.findall(rows(document, heading)[row])
    return [round(float(number.replace(",", "")) * _UNITS[unit]) for number, unit in found]


def said(document: str, words: str) -> int:
    """The number that a sentence states.

    Args:
        document: Its name.
        words: A regular expression of the words around the number, whose group is the number.

    Raises:
        LookupError: Nothing of the kind is said, or it is said twice and differently.
    """
    text = " ".join((DOCUMENTS / f"{document}.md").read_text(encoding="utf-8").split())
    found = {int(each.replace(",", "")) for each in re.findall(words, text)}
    if len(found) != 1:
        raise LookupError(f"{document}.md says {sorted(found)} about {words}")
    return found.pop()


__all__ = ["numbers", "rows", "said"]
