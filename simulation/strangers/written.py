"""Changes that somebody wrote as diffs, tried like those that a seed draws (``--diffs``).

A diff begins with a sentence that says what is wrong. It needs no world, seed or rule: it is tried in the worlds whose
runs reach the lines that it changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from simulation.strangers.diffs import Hunk, changed, read
from simulation.strangers.tables import function_at, package_of, source


@dataclass(frozen=True)
class Written:
    """A diff.

    Attributes:
        path: Its file.
        summary: What is wrong, in a sentence.
        modules: By name of a module, what is replaced in it.
    """

    path: Path
    summary: str
    modules: Mapping[str, tuple[Hunk, ...]]

    @property
    def name(self) -> str:
        """That of the file."""
        return self.path.stem

    @property
    def operator(self) -> str:
        """That of all of them."""
        return "written"

    @property
    def module(self) -> str:
        """The first that it changes."""
        return next(iter(self.modules))

    @property
    def package(self) -> str:
        """That of its first module."""
        return package_of(self.module)

    @cached_property
    def lines(self) -> frozenset[tuple[str, int]]:
        """The statements that it changes, and those beside what it adds."""
        return frozenset((module, line) for module, line, _ in self._statements())

    @property
    def line(self) -> int:
        """The first."""
        return min(line for module, line in self.lines if module == self.module)

    @cached_property
    def of_module(self) -> bool:
        """Whether all of them are modules' own."""
        return all(own for _, _, own in self._statements())

    @property
    def places(self) -> frozenset[str]:
        """The functions that it changes."""
        return frozenset(function_at(module, line) for module, line in self.lines)

    @property
    def what(self) -> dict[str, object]:
        """How a process that makes it is asked for it."""
        return {"diff": str(self.path)}

    def sentence(self) -> str:
        """What is wrong."""
        return self.summary

    def _statements(self) -> Iterator[tuple[str, int, bool]]:
        for module, hunks in self.modules.items():
            text = source(module)
            changed(text, hunks)
            tree = ast.parse(text)
            for hunk in hunks:
                for line in _lines(text, hunk):
                    yield module, *_statement(tree, line)


def written(folder: Path) -> list[Written]:
    """The diffs of a folder, by name.

    Raises:
        DoesNotFit: The code has no such lines.
    """
    return [Written(path, *read(path)) for path in sorted(folder.glob("*.diff"))]


def _lines(text: str, hunk: Hunk) -> Iterator[int]:
    """The numbers of lines that a hunk replaces; of what it only adds, those of the lines around."""
    before, after = hunk.before.splitlines(), hunk.after.splitlines()
    first = text[: text.index(hunk.before)].count("\n") + 1
    begins, ends = _shared(before, after), _shared(before[::-1], after[::-1])
    ends = min(ends, len(before) - begins, len(after) - begins)
    replaced = range(begins, len(before) - ends) or range(max(0, begins - 1), min(len(before), begins + 1))
    return (first + number for number in replaced if before[number].strip())


def _shared(one: list[str], other: list[str]) -> int:
    return next((number for number, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))


def _statement(tree: ast.Module, line: int) -> tuple[int, bool]:
    """The first line of the innermost statement at a line, and whether it is the module's own."""
    around = [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.stmt) and each.lineno <= line <= (each.end_lineno or each.lineno)
    ]
    if not around:
        return line, True
    inner = max(around, key=lambda each: (each.lineno, -(each.end_lineno or 0)))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    within = any(isinstance(each, functions) and each is not inner for each in around)
    return inner.lineno, not within
