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
from simulation.strangers.diffs import Known, changed

Edit = Callable[[str], ast.Module]
"""Makes a tree of a module's text."""


class _Loader(SourceFileLoader):
    """Compiles what ``edit`` made of the source, never what was compiled before."""

    def __init__(self, name: str, path: str, edit: Edit) -> None:
        super().__init__(name, path)
        self._edit = edit

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 (the loader knows its module)
        tree = self._edit(self.get_data(self.path).decode("utf-8"))
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

    def edit(text: str) -> ast.Module:
        tree = ast.parse(text)
        places(tree)[number].make()
        return tree

    sys.meta_path.insert(0, _Finder(lambda name: edit if name == module else None))


def put_back(defect: Known) -> None:
    """Import the hub with a known defect from now on.

    Raises:
        AssertionError: One of its modules was imported already, so nothing would change.
    """
    assert not {*defect.modules} & {*sys.modules}

    def edits(name: str) -> Edit | None:
        hunks = defect.modules.get(name)
        return (lambda text: ast.parse(changed(text, hunks))) if hunks is not None else None

    sys.meta_path.insert(0, _Finder(edits))


class Marks:
    """Which statements of functions were reached, of modules that were imported with :func:`watch`."""

    def __init__(self) -> None:
        self.places: list[tuple[str, int]] = []
        self.hit = bytearray()

    def add(self, module: str, line: int) -> int:
        """The number of a new mark."""
        self.places.append((module, line))
        self.hit.append(0)
        return len(self.places) - 1

    def reached(self) -> set[tuple[str, int]]:
        """Modules and lines."""
        return {place for place, hit in zip(self.places, self.hit, strict=True) if hit}


def watch() -> Marks:
    """Import all modules of the hub with marks, which show what is reached in functions."""
    marks = Marks()

    def edits(name: str) -> Edit:
        return lambda text: _mark(ast.parse(text), name, marks)

    builtins: Any = sys.modules["builtins"]
    builtins.__reached__ = marks.hit
    sys.meta_path.insert(0, _Finder(edits))
    return marks


def _mark(tree: ast.Module, module: str, marks: Marks) -> ast.Module:
    class Marking(ast.NodeTransformer):
        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
            self.generic_visit(node)
            _mark_all(node, module, marks)
            return node

    Marking().visit(tree)
    return tree


def _mark_all(node: ast.AST, module: str, marks: Marks) -> None:
    """Put a mark before each statement of a function, in all its blocks but those of functions in it."""
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if not isinstance(body, list):
            continue
        marked: list[ast.stmt] = []
        for statement in body:
            if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                _mark_all(statement, module, marks)
            is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            is_scope = isinstance(statement, ast.Global | ast.Nonlocal)
            if not (is_docstring or is_scope):
                mark = ast.parse(f"__reached__[{marks.add(module, statement.lineno)}] = 1").body[0]
                marked.append(ast.copy_location(mark, statement))
            marked.append(statement)
        setattr(node, name, marked)
    for each in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
        _mark_all(each, module, marks)
