"""Defects as small diffs: what is wrong, and the change. Those in ``known/`` also say where it shows, and which rules
it breaks.

A hunk is found by its text, not by its line numbers, so that a diff lasts as long as the lines that it changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "known"
ROOT = Path(__file__).parents[2] / "layers" / "pushhub"


class DoesNotFit(Exception):
    """The code has no such lines, or has them more than once."""


@dataclass(frozen=True)
class Hunk:
    """Lines that are replaced, and by what."""

    before: str
    after: str


@dataclass(frozen=True)
class Known:
    """A defect.

    Attributes:
        name: Its name, which is that of its file.
        summary: What is wrong, in a sentence.
        world: The world in which it shows.
        seed: A seed that finds it.
        found_by: Rules that it breaks there, at least one of which is reported.
        hours: Hours of traffic.
        rate: Posts per hour of each producer.
        calm: Whether it is looked for while nothing else goes wrong.
        only: Names of the storms and actors that take part; None for all.
        modules: By name of a module, what is replaced in it.
    """

    name: str
    summary: str
    world: str
    seed: int
    found_by: tuple[str, ...]
    hours: float
    rate: float
    calm: bool
    only: tuple[str, ...] | None
    modules: Mapping[str, tuple[Hunk, ...]]


def known() -> list[Known]:
    """All of them, by name."""
    return [_read(path) for path in sorted(FOLDER.glob("*.diff"))]


def read(path: Path) -> tuple[str, Mapping[str, tuple[Hunk, ...]]]:
    """What a diff says in its first line, and by name of a module, what it replaces there."""
    (summary, *_), modules = _parts(path)
    return summary, modules


def _parts(path: Path) -> tuple[list[str], Mapping[str, tuple[Hunk, ...]]]:
    """The lines before the diff, and what it replaces."""
    head, _, diff = path.read_text(encoding="utf-8").partition("\n--- ")
    return head.splitlines(), _modules("--- " + diff)


def _read(path: Path) -> Known:
    (summary, *fields), modules = _parts(path)
    given = dict(each.split(": ", 1) for each in fields if each)
    return Known(
        path.stem.replace("-", " "),
        summary,
        given["world"],
        int(given["seed"]),
        tuple(given["breaks"].split("; ")),
        float(given.get("hours", "2")),
        float(given.get("rate", "12")),
        given.get("calm") == "yes",
        tuple(given["only"].split(", ")) if "only" in given else None,
        modules,
    )


def _modules(diff: str) -> dict[str, tuple[Hunk, ...]]:
    found: dict[str, tuple[Hunk, ...]] = {}
    for part in ("\n" + diff).split("\n--- ")[1:]:
        _, target, *_ = part.splitlines()
        path = target.removeprefix("+++ b/layers/pushhub/").partition("\t")[0]
        hunks = ["".join(hunk.splitlines(keepends=True)[1:]) for hunk in part.split("\n@@ ")[1:]]
        found[path.removesuffix(".py").replace("/", ".")] = tuple(_hunk(each) for each in hunks)
    return found


def _hunk(text: str) -> Hunk:
    lines = text.splitlines(keepends=True)
    lines[-1] = lines[-1].rstrip("\n") + "\n"
    return Hunk(
        "".join(each[1:] or "\n" for each in lines if each[:1] in {" ", "-", "\n"}),
        "".join(each[1:] or "\n" for each in lines if each[:1] in {" ", "+", "\n"}),
    )


def changed(source: str, hunks: tuple[Hunk, ...]) -> str:
    """A module's text with a change.

    Raises:
        DoesNotFit: It has no such lines.
    """
    for hunk in hunks:
        text, before = "\n" + source, "\n" + hunk.before
        place = text.find(before)
        if place < 0 or text.find(before, place + 1) >= 0:
            raise DoesNotFit(hunk.before)
        source = (text[:place] + "\n" + hunk.after + text[place + len(before) :])[1:]
    return source
