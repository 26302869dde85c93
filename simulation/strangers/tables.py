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

from simulation.strangers.changes import places

ROOT = Path(__file__).parents[2]
LAYER = ROOT / "layers" / "pushhub"

NOTICED = frozenset({"found", "stopped", "endless"})
"""Verdicts of the simulator's own."""

LONGEST_LINE, AROUND = 300, 60
"""Of a longer statement, such as a description of all routes, what differs is shown, and so many characters around."""

COLUMNS = ("found", "tests", "lived", "no effect", "not reached")


@dataclass(frozen=True)
class Candidate:
    """A change that may be tried.

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
    def place(self) -> str:
        """The function that is changed (``module:function``); the module, if it is none's."""
        return function_at(self.module, self.line)

    @property
    def package(self) -> str:
        """The package of the layer, or ``cli``."""
        return self.module.removeprefix("pushhub.").partition(".")[0]

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

    candidate: Candidate
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


def function_at(module: str, line: int) -> str:
    """The function that a line is in (``module:function``); the module, if it is in none."""
    around = [
        each
        for each in ast.walk(ast.parse(source(module)))
        if isinstance(each, ast.FunctionDef) and each.lineno <= line <= (each.end_lineno or 0)
    ]
    return f"{module}:{max(around, key=lambda each: each.lineno).name}" if around else module


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
