"""A module of the hub imported with a change, or all of them with marks at the statements that are reached."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from simulation.strangers.changes import places

Edit = Callable[[ast.Module], None]


class _Loader(SourceFileLoader):
    """Compiles what ``edit`` made of the source, never what was compiled before."""

    def __init__(self, name: str, path: str, edit: Edit) -> None:
        super().__init__(name, path)
        self._edit = edit

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 (the loader knows its module)
        tree = ast.parse(self.get_data(self.path), self.path)
        self._edit(tree)
        code: CodeType = compile(ast.fix_missing_locations(tree), self.path, "exec")
        return code


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, edits: Callable[[str], Edit | None]) -> None:
        self._edits = edits

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG002 (of reloads)
    ) -> ModuleSpec | None:
        edit = self._edits(fullname) if fullname.startswith("pushhub.") else None
        spec = PathFinder.find_spec(fullname, path) if edit else None
        if edit and spec and spec.origin and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.origin, edit)
        return spec


def change(module: str, number: int) -> None:
    """Import a module with one of its changes from now on.

    Args:
        module: Its name, of a module that was not imported yet.
        number: Of the place, from 0.

    Raises:
        AssertionError: It was imported already, so nothing would change.
    """
    assert module not in sys.modules

    def edit(tree: ast.Module) -> None:
        places(tree)[number].make()

    sys.meta_path.insert(0, _Finder(lambda name: edit if name == module else None))


def watch() -> set[tuple[str, int]]:
    """Import all modules of the hub with marks; returns the set that modules and lines of statements go into once they
    are reached in a function.
    """
    reached: set[tuple[str, int]] = set()

    def edits(name: str) -> Edit:
        return lambda tree: _mark(tree, name)

    def mark(module: str, line: int) -> None:
        reached.add((module, line))

    builtins: Any = sys.modules["builtins"]
    builtins.__reached__ = mark
    sys.meta_path.insert(0, _Finder(edits))
    return reached


def _mark(tree: ast.Module, module: str) -> None:
    class Marks(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
            self.generic_visit(node)
            _mark_all(node, module)
            return node

    Marks().visit(tree)


def _mark_all(node: ast.AST, module: str) -> None:
    """Put a mark before each statement of a function, in all its blocks but those of functions in it."""
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if not isinstance(body, list):
            continue
        marked: list[ast.stmt] = []
        for statement in body:
            if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                _mark_all(statement, module)
            mark = ast.parse(f"__reached__({module!r}, {statement.lineno})").body[0]
            is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            is_scope = isinstance(statement, ast.Global | ast.Nonlocal)
            marked += [statement] if is_docstring or is_scope else [ast.copy_location(mark, statement), statement]
        setattr(node, name, marked)
    for each in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
        _mark_all(each, module)
