"""The index of decisions: ``python -m local.decisions`` writes ``docs/decisions/README.md``."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "decisions"
INDEX = FOLDER / "README.md"

_FORM = re.compile(
    r"# (?P<number>\d{4})\. (?P<title>[^\n]+)\n\n(?P<date>\d{4}-\d\d-\d\d)(?P<said>\.[^\n]*(?:\n[^\n]+)*)?\n"
)

_PREFACE = """# Decisions

Why Pushhub is built as it is, oldest first; each is a few lines. This page is made of them by
`.venv/bin/python -m local.decisions`. "Changes" names older decisions that a later one replaces in part or adds to:
where they differ, the later one holds. A number that is missing was given to a decision that was never made, or was
taken into another.

| | decision | date | changes | changed by |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Decision:
    """What the index says of a decision.

    Attributes:
        file: Name of its page.
        named: Numbers of other decisions that its date's paragraph names.
    """

    number: str
    title: str
    date: str
    file: str
    named: frozenset[str]


def read(page: Path) -> Decision:
    """A decision's page: its title with its number, then its date, and which decisions it changes or is changed by."""
    found = _FORM.match(page.read_text(encoding="utf-8"))
    if not found or not page.name.startswith(f"{found['number']}-"):
        raise ValueError(f"{page.name} must begin with '# {page.name[:4]}. Title', an empty line, and its date")
    named = frozenset(re.findall(r"\b0\d{3}\b", re.sub(r"\([^)]*\)", "", found["said"] or ""))) - {found["number"]}
    return Decision(found["number"], found["title"], found["date"], page.name, named)


def index(pages: list[Path]) -> str:
    """The index of these decisions, in Markdown."""
    decisions = {each.number: each for each in map(read, sorted(pages))}
    changes, changed_by = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for each in decisions.values():
        for other in each.named:
            older, later = sorted((each.number, other))
            changes[later].add(older)
            changed_by[older].add(later)

    def links(numbers: set[str]) -> str:
        return ", ".join(f"[{each}]({decisions[each].file})" for each in sorted(numbers & decisions.keys()))

    return _PREFACE + "".join(
        f"| {each.number} | [{each.title}]({each.file}) | {each.date} "
        f"| {links(changes[each.number])} | {links(changed_by[each.number])} |\n"
        for each in decisions.values()
    )


def pages() -> list[Path]:
    """The page of every decision."""
    return sorted(FOLDER.glob("[0-9]*.md"))


if __name__ == "__main__":
    INDEX.write_text(index(pages()), encoding="utf-8")
    sys.stdout.write(f"{INDEX.relative_to(Path.cwd())}\n")
