"""The import rules of docs/architecture.md."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYER = ROOT / "layers/pushhub/pushhub"

SDKS = frozenset({"boto3", "botocore", "requests", "urllib3", "aws_lambda_powertools"})

MAY_IMPORT = {
    "domain": {"domain"},
    "dialects": {"domain", "dialects"},
    "ports": {"domain", "ports"},
    "services": {"domain", "dialects", "ports", "services"},
    "adapters": {"domain", "ports", "adapters"},
    "runtime": {"domain", "dialects", "ports", "services", "adapters", "runtime"},
}
"""Which rooms of the layer each room may import from."""

MAY_USE_SDKS = {"adapters", "runtime"}


def imports(path: Path) -> set[str]:
    """Every module a file imports, type-checking blocks and late imports included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            module = node.module or ""
            found |= {module} | ({f"pushhub.{each.name}" for each in node.names} if module == "pushhub" else set())
    return found


def room(module: str) -> str:
    """The room of a module of ours: the first name below ``pushhub``; all ports modules are one room."""
    name = module.split(".")[1] if "." in module else ""
    return "ports" if name.startswith("ports") else name


def files() -> list[Path]:
    return sorted(path for path in LAYER.rglob("*.py") if path.parent != LAYER or path.stem != "__init__")


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(LAYER)))
def test_a_module_imports_only_from_the_rooms_it_may(path: Path) -> None:
    own = path.relative_to(LAYER).parts[0].removesuffix(".py")
    own = "ports" if own.startswith("ports") else own
    for module in imports(path):
        if module.split(".")[0] == "pushhub" and room(module):
            assert room(module) in MAY_IMPORT[own], f"{own} may not import {module}"
        elif module.split(".")[0] in SDKS:
            assert own in MAY_USE_SDKS, f"{own} may not import {module}"


@pytest.mark.parametrize("path", sorted(ROOT.glob("functions/*/*.py")), ids=lambda path: path.parent.name)
def test_a_function_imports_the_runtime_only(path: Path) -> None:
    for module in imports(path):
        assert module in {"__future__", "typing"} or module.startswith("pushhub.runtime"), module


def test_every_function_is_one_thin_handler() -> None:
    for folder in sorted(ROOT.glob("functions/*/")):
        assert [each.name for each in folder.glob("*.py")] == ["handler.py"], folder
        assert len((folder / "handler.py").read_text().splitlines()) <= 40, folder
