"""What came of changes: by module, part and operator, with how sure a share of a sample is."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Protocol

from simulation.strangers.changes import places

ROOT = Path(__file__).parents[2]
LAYER = ROOT / "layers" / "pushhub"

NOTICED = frozenset({"found", "stopped", "endless"})
"""Verdicts of the simulator's own."""

LONGEST_LINE, AROUND = 300, 60
"""Of a longer statement, such as a description of all routes, what differs is shown, and so many characters around."""

COLUMNS = ("found", "tests", "lived", "no effect", "not reached")


class Change(Protocol):
    """A change of the code, of whatever kind."""

    @property
    def name(self) -> str:
        """What it can be asked for by (``--these``)."""

    @property
    def module(self) -> str:
        """The first module that it changes."""

    @property
    def package(self) -> str:
        """The package of that module."""

    @property
    def operator(self) -> str:
        """What is done there."""

    @property
    def line(self) -> int:
        """Of the first statement that it changes."""

    @property
    def of_module(self) -> bool:
        """Whether all that it changes is the modules' own."""

    @property
    def lines(self) -> frozenset[tuple[str, int]]:
        """The statements that are changed, by module and line."""

    @property
    def places(self) -> frozenset[str]:
        """The functions that are changed (``module:function``); the module, where it is none's."""

    @property
    def what(self) -> dict[str, object]:
        """How a process that makes it is asked for it."""

    def sentence(self) -> str:
        """What it changes."""


@dataclass(frozen=True)
class Candidate:
    """A change that an operator makes.

    Attributes:
        module: Name of the module.
        number: Of its place there.
        operator: What is done there.
        line: Of the statement.
        of_module: Whether the statement is the module's own.
    """

    module: str
    number: int
    operator: str
    line: int
    of_module: bool

    @property
    def name(self) -> str:
        """What it can be asked for by (``--these``)."""
        return f"{self.module}#{self.number}"

    @property
    def package(self) -> str:
        """The package of the layer, or ``cli``."""
        return package_of(self.module)

    @property
    def lines(self) -> frozenset[tuple[str, int]]:
        """The statement."""
        return frozenset({(self.module, self.line)})

    @property
    def places(self) -> frozenset[str]:
        """The function around it."""
        return frozenset({function_at(self.module, self.line)})

    @property
    def what(self) -> dict[str, object]:
        """How a process that makes it is asked for it."""
        return {"module": self.module, "number": self.number}

    def sentence(self) -> str:
        """The statement, and what the change makes of it."""
        tree = ast.parse(source(self.module))
        place = places(tree)[self.number]
        before = _line(place.statement)
        place.make()
        after = {"dropped call": "", "swapped calls": "after the next"}.get(self.operator, _line(place.statement))
        begins, ends = _shared(before, after) if max(len(before), len(after)) > LONGEST_LINE else (0, 0)
        before, after = (each[begins : len(each) - ends] for each in (before, after))
        return before + (f" -> {after}" if after else "")


@dataclass(frozen=True)
class Outcome:
    """What came of a change.

    Attributes:
        candidate: The change.
        verdict: ``tests`` (those of its package noticed it); ``found``, ``stopped`` (the run ended in an error) and
            ``endless``, of the simulator; ``lived``, ``no effect`` (all runs did exactly what they do without it), or
            ``not reached`` (by any test or run that was asked).
        by: The rules that it broke, the error, the test, or the worlds that it lived in.
    """

    candidate: Change
    verdict: str
    by: str

    @property
    def name(self) -> str:
        """That of the change."""
        return self.candidate.name

    def sentence(self) -> str:
        """In a line."""
        change = self.candidate
        return f"{self.verdict:9} {change.name} line {change.line} {change.operator}: {change.sentence()} ({self.by})"


@cache
def source(module: str) -> str:
    """The text of a module of the hub, or of the command line."""
    root = LAYER if module.startswith("pushhub.") else ROOT
    return (root / Path(*module.split("."))).with_suffix(".py").read_text(encoding="utf-8")


def package_of(module: str) -> str:
    """The package of a module of the layer; ``cli`` for the command line's."""
    return module.removeprefix("pushhub.").partition(".")[0]


def function_at(module: str, line: int) -> str:
    """The function that a line is in (``module:function``); the module, if it is in none."""
    around = _function_around(module, line)
    return f"{module}:{around.name}" if around else module


def lines_around(module: str, line: int) -> range:
    """The lines of the function that a line is in; none if it is in none."""
    around = _function_around(module, line)
    return range(around.lineno, (around.end_lineno or around.lineno) + 1) if around else range(0)


def _function_around(module: str, line: int) -> ast.FunctionDef | None:
    around = [
        each
        for each in ast.walk(ast.parse(source(module)))
        if isinstance(each, ast.FunctionDef) and each.lineno <= line <= (each.end_lineno or 0)
    ]
    return max(around, key=lambda each: each.lineno, default=None)


def _line(statement: ast.stmt) -> str:
    return ast.unparse(statement).splitlines()[0]


def _shared(one: str, other: str) -> tuple[int, int]:
    """How many characters two texts share at their beginning and at their end, but for some :data:`AROUND`."""
    begins = _same(one, other)
    ends = _same(one[begins:][::-1], other[begins:][::-1])
    return max(0, begins - AROUND), max(0, ends - AROUND)


def _same(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def part(module: str) -> str:
    """A package's rules, stores, or use cases."""
    package, *inner = module.removeprefix("pushhub.").split(".")
    return f"{package}.{inner[0]}" if len(inner) > 1 else f"{package}, use cases"


def share(of: int, all_of_them: int) -> str:
    """A share in percent, and the interval in which that of the whole lies in 95 of 100 samples (Wilson's)."""
    if not all_of_them:
        return "of none"
    z, n, p = 1.96, all_of_them, of / all_of_them
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = ((middle + sign * half) / (1 + z * z / n) for sign in (-1, 1))
    return f"{of} of {n}, {p:.0%} ({low:.0%} to {high:.0%})"


def tables(outcomes: Sequence[Outcome]) -> list[str]:
    """Lines of Markdown: what became of changes, by module, part and operator."""
    verdicts = ["found" if each.verdict in NOTICED else each.verdict for each in outcomes]

    def rows(name: str, of: Sequence[str]) -> Iterator[str]:
        yield f"\n| {name} | drawn | {' | '.join(COLUMNS)} |\n|---|{'---|' * (len(COLUMNS) + 1)}"
        for key, drawn in sorted(Counter(of).items()):
            own = [verdict for verdict, its in zip(verdicts, of, strict=True) if its == key]
            yield f"| {key} | {drawn} | {' | '.join(str(own.count(each)) for each in COLUMNS)} |"

    counts = Counter(verdicts)
    simulator, both = counts["found"], counts["found"] + counts["tests"]
    effective = both + counts["lived"]
    return [
        *rows("module", [each.candidate.module.removeprefix("pushhub.") for each in outcomes]),
        *rows("part", [part(each.candidate.module) for each in outcomes]),
        *rows("operator", [each.candidate.operator for each in outcomes]),
        "\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()),
        f"reached: {share(len(verdicts) - counts['not reached'], len(verdicts))}",
        f"of those that changed something, the simulator noticed {share(simulator, effective)}",
        f"tests {share(counts['tests'], effective)}",
        f"both together {share(both, effective)}",
        f"of all that were reached, both together {share(both, effective + counts['no effect'])}",
    ]
