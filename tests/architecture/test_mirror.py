"""Tests are where a newcomer looks for them: in the folder that mirrors the package."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest
from tests.architecture.test_layers import LAYER, ROOT, dotted, folder, imports, part, tree_of

TESTS = ROOT / "tests"
OF_THE_LAYER = {path.name for path in LAYER.iterdir() if (path / "__init__.py").exists()}
OF_OTHER_CODE = {
    "cli": "cli",
    "console": "functions/console/static",
    "functions": "functions",
    "glue": "glue_jobs",
    "local": "local",
    "operating": "cli",
    "simulation": "simulation",
    "template": "template.yaml",
}
"""Folders that mirror something other than a package of the layer, and what they mirror."""
ACROSS = {
    *("architecture", "browser", "contract", "dialects", "exhaustive", "fakes", "hostile", "paths", "sam", "seeds"),
    "stack",
}
"""Folders of tests of the whole (rules, one suite per port, pages, deployments), and of code shared by tests."""


def folders(path: Path) -> set[str]:
    return {each.name for each in path.iterdir() if each.is_dir() and each.name != "__pycache__"}


def rules() -> list[Path]:
    """Modules of pure rules that have functions."""
    found = (path for path in LAYER.rglob("*.py") if part(path.relative_to(LAYER).parts) == "model")
    return sorted(path for path in found if any(isinstance(each, ast.FunctionDef) for each in tree_of(path).body))


@cache
def imported_by_tests(package: str) -> set[str]:
    """Every module that tests of a package import."""
    return set().union(*(imports(path) for path in (TESTS / package).rglob("test_*.py")))


def test_every_folder_of_tests_mirrors_something() -> None:
    """Given the folders below tests, then each belongs to a package, to other existing code, or to the whole."""
    assert folders(TESTS) == (OF_THE_LAYER - {"runtime"}) | OF_OTHER_CODE.keys() | ACROSS
    assert all((ROOT / place).exists() for place in OF_OTHER_CODE.values())


@pytest.mark.parametrize("package", sorted(OF_THE_LAYER - {"runtime"}))
def test_folders_of_tests_are_parts_of_their_package(package: str) -> None:
    """Given the folders in a package's tests, then the package has parts of these names (model, wire, store, api)."""
    assert folders(TESTS / package) <= folders(LAYER / package)


@pytest.mark.parametrize("package", sorted(OF_THE_LAYER - {"runtime"}))
def test_tests_named_after_a_module_lie_where_the_module_does(package: str) -> None:
    """Given tests with the name of a module, then they are in its part of the package, or use the API."""
    places: dict[str, set[str]] = {}
    for path in (LAYER / package).rglob("*.py"):
        places.setdefault(path.stem.lstrip("_"), {"api"}).add(folder(path.relative_to(LAYER).parts))
    for path in (TESTS / package).rglob("test_*.py"):
        there = folder(path.relative_to(TESTS).parts)
        assert there in places.get(path.stem.removeprefix("test_"), {there}), f"{path.relative_to(ROOT)} is elsewhere"


def test_pure_rules_have_tests_of_their_own() -> None:
    """Given pure rules, then tests of their package call them directly, without the code that uses them.

    Shapes (``wire``) are seen through the API, use cases through what they do, stores through the port's contract.
    """
    for path in rules():
        package = path.relative_to(LAYER).parts[0]
        module = dotted(path)
        assert module in imported_by_tests(package), f"no test in tests/{package} imports {module}"
