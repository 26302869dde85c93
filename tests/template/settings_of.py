"""Which settings a function can ask for, read from the code that its handler can reach."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests.template.cloudformation import ROOT

__all__ = ["settings_of"]

LAYER = ROOT / "layers" / "pushhub"
_READER = LAYER / "pushhub" / "cloud" / "settings.py"
_SETTING = re.compile(r"[A-Z]+(_[A-Z]+)+")


def settings_of(function: str) -> set[str]:
    """Names of environment variables that a function folder's code reads through the runtime."""
    handler = ROOT / "functions" / function / "handler.py"
    found: set[str] = set()
    seen: set[tuple[Path, str]] = set()
    # What a handler module makes when it is imported counts too.
    waiting = [(handler, name) for name in _definitions(handler)]
    while waiting:
        path, name = waiting.pop()
        if (path, name) in seen or path == _READER:
            continue
        seen.add((path, name))
        definition = _definitions(path).get(name)
        if definition is None:
            continue
        found |= _settings_in(definition)
        waiting += _reached_from(path, definition)
    return found


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _definitions(path: Path) -> dict[str, ast.AST]:
    """Top-level functions and classes, and names given a value."""
    found: dict[str, ast.AST] = {}
    for node in _tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
    return found


@cache
def _imports(path: Path) -> dict[str, tuple[Path, str | None]]:
    """Names imported from the layer: the file, and the name in it (None for the module itself)."""
    found: dict[str, tuple[Path, str | None]] = {}
    for node in ast.walk(_tree(path)):
        if not isinstance(node, ast.ImportFrom) or node.module is None or not node.module.startswith("pushhub."):
            continue
        inner = LAYER / Path(*node.module.split("."))
        for each in node.names:
            name = each.asname or each.name
            below = inner / f"{each.name}.py"
            found[name] = (below, None) if below.is_file() else (inner.with_suffix(".py"), each.name)
    return found


def _reached_from(path: Path, definition: ast.AST) -> list[tuple[Path, str]]:
    imports = _imports(path)
    reached: list[tuple[Path, str]] = []
    for node in ast.walk(definition):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = imports.get(node.value.id)
            if module and module[1] is None:
                reached.append((module[0], node.attr))
        elif isinstance(node, ast.Name):
            target = imports.get(node.id)
            if target and target[1]:
                reached.append((target[0], target[1]))
            else:
                reached.append((path, node.id))
    return [each for each in reached if each[0].is_file() and _may_read_settings(each[0])]


def _may_read_settings(path: Path) -> bool:
    """Whether a module puts things together: only wirings, entry points and handlers read settings."""
    return path.name in {"wiring.py", "handler.py"} or path.parent.name == "runtime"


def _settings_in(definition: ast.AST) -> set[str]:
    found = {
        node.value
        for node in ast.walk(definition)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _SETTING.fullmatch(node.value)
    }
    calls = {node.attr for node in ast.walk(definition) if isinstance(node, ast.Attribute)}
    return found | ({"PUBLIC_BASE_URL"} if "base_url" in calls else set())
