"""A name says what it stands for, and stands for one thing."""

from __future__ import annotations

import ast
from collections import defaultdict

import pytest
from tests.architecture.test_layers import LAYER, ROOT, nodes_of

RIDDLES = {"astray", "hurried", "lined", "made", "roomy", "told", "Saying"}
"""Names that once stood for something and said nothing of it."""


HOUSES = {"the layer": LAYER, "the command line": ROOT / "cli", "the local stack": ROOT / "local"}
"""Whoever reads one of these reads all of it, and so no name of a class has two homes there."""

READ = {
    **HOUSES,
    "the simulator": ROOT / "simulation",
    "the delivery report": ROOT / "glue_jobs",
    "the tests": ROOT / "tests",
    "the benches": ROOT / "bench",
}
UNREAD = (ROOT / "tests/glue", *sorted((ROOT / "bench").glob("records_*.py")))
"""What judges and measures the report, which has words of its own."""


@pytest.mark.parametrize("house", HOUSES)
def test_no_class_name_has_two_homes(house: str) -> None:
    # Given the public classes of a house, when they are listed by name
    homes: dict[str, list[str]] = defaultdict(list)
    for path in HOUSES[house].rglob("*.py"):
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(ROOT)))
    # Then whoever meets one knows which it is
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


@pytest.mark.parametrize("house", READ)
def test_no_name_is_a_riddle(house: str) -> None:
    # Given the names of classes, functions, parameters, fields and what is assigned
    found = set()
    for path in READ[house].rglob("*.py"):
        if any(path.is_relative_to(each) for each in UNREAD):
            continue
        for node in nodes_of(path):
            match node:
                case (
                    ast.ClassDef(name=name)
                    | ast.FunctionDef(name=name)
                    | ast.AsyncFunctionDef(name=name)
                    | ast.arg(arg=name)
                    | ast.Name(id=name, ctx=ast.Store())
                ):
                    if name.removeprefix("_") in RIDDLES:
                        found.add((str(path.relative_to(ROOT)), name))
    # When they are read, then each says what it stands for
    assert found == set()
