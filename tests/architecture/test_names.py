"""A name says what it stands for, and stands for one thing."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.architecture.test_layers import LAYER, tree_of

RIDDLES = {"astray", "hurried", "lined", "roomy", "told", "Saying"}
"""Names that once stood for something and said nothing of it; those of functions, parameters and classes."""


def test_no_class_name_has_two_homes() -> None:
    # Given the public classes of the layer, when they are listed by name
    homes: dict[str, list[str]] = defaultdict(list)
    for path in LAYER.rglob("*.py"):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(LAYER)))
    # Then whoever meets one knows which it is
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_no_name_is_a_riddle() -> None:
    # Given the names of classes, functions and parameters, when they are read
    found = set()
    for path in LAYER.rglob("*.py"):
        for node in ast.walk(tree_of(path)):
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                    if name in RIDDLES:
                        found.add((str(path.relative_to(LAYER)), name))
    # Then each says what it stands for
    assert found == set()
