"""What may only become less: wide constructors, lines, private names of the emulator. Whoever makes it less lowers the
number here; who must raise one says why in a decision (docs/decisions/0108-ratchets.md).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYER = ROOT / "layers" / "pushhub" / "pushhub"

WIDEST = 8
"""Most parameters of a constructor."""

LINES = {
    "layers/pushhub/pushhub": 68_250,
    "cli": 8_120,
    "functions": 250,
    "glue_jobs": 8_990,
    "local": 7_940,
    "simulation": 16_350,
    "bench": 5_900,
}
"""Most lines of Python by folder."""

TEMPLATE = 1_900
"""Most lines of ``template.yaml``; what it says of one resource after another stands once (docs/decisions/0010)."""
WIDEST_LINE = 300
"""Longest line there: fewer lines are no gain if each says more."""

PRIVATE_NAMES = 13
"""Most private names of MiniStack that ``local/`` uses."""


def python_files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*.py") if not any(part.startswith(".") for part in each.parts))


def wide_constructors() -> dict[str, int]:
    """Classes whose ``__init__`` takes more than :data:`WIDEST` parameters, with their number; a component's are its
    fields.
    """
    found: dict[str, int] = {}
    for path in python_files(LAYER):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                fields = sum(isinstance(each, ast.AnnAssign) for each in node.body)
                if "Component" in {ast.unparse(each) for each in node.bases} and fields > WIDEST:
                    found[node.name] = fields
                for each in node.body:
                    if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                        width = len(each.args.args) - 1 + len(each.args.kwonlyargs)
                        if width > WIDEST:
                            found[node.name] = width
    return found


def test_no_constructor_becomes_wider() -> None:
    assert not wide_constructors()


@pytest.mark.parametrize("folder", LINES)
def test_no_folder_grows_beyond_its_lines(folder: str) -> None:
    lines = sum(len(each.read_text(encoding="utf-8").splitlines()) for each in python_files(ROOT / folder))
    # A number far above what there is would stop nothing
    assert 0.9 * LINES[folder] - 100 < lines <= LINES[folder]


def test_the_template_grows_neither_longer_nor_wider() -> None:
    lines = (ROOT / "template.yaml").read_text(encoding="utf-8").splitlines()
    assert 0.9 * TEMPLATE < len(lines) <= TEMPLATE
    assert [number for number, line in enumerate(lines, start=1) if len(line) > WIDEST_LINE] == []


def test_local_uses_no_more_private_names_of_the_emulator() -> None:
    found = {name for path in python_files(ROOT / "local") for name in _private_names(path)}
    assert len(found) == PRIVATE_NAMES, sorted(found)


def _private_names(path: Path) -> Iterator[str]:
    """Private attributes of MiniStack's modules and of what is imported from them, as ``module._name``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {each.asname or each.name.partition(".")[0] for each in node.names if "ministack" in each.name}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ministack"):
            known |= {each.asname or each.name for each in node.names}
            yield from (each.name for each in node.names if each.name.startswith("_"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            names = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
            if names & known:
                yield f"{ast.unparse(node.value)}.{node.attr}"
