"""A module of the hub imported with a change, or all of them with marks at the statements that are reached."""

from __future__ import annotations

import ast
import gc
import importlib.abc
import importlib.machinery
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from simulation.strangers.changes import places
from simulation.strangers.diffs import Hunk, changed
from simulation.strangers.tables import LAYER, ROOT

OURS = ("pushhub.", "cli.")
"""Beginnings of the names of modules that can be changed."""
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
        edit = self._edits(fullname) if fullname.startswith(OURS) else None
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


class NotInPlace(Exception):
    """Functions that live already cannot take the change."""


Live = Mapping[tuple[str, str, int], Sequence[FunctionType]]
"""All functions of the hub, by file, name and line; several where one was made more than once."""


def live_functions() -> Live:
    """Import the whole hub and the command line, and find their functions."""
    roots = {LAYER / "pushhub": LAYER, ROOT / "cli": ROOT}
    for folder, root in roots.items():
        for path in sorted(folder.rglob("*.py")):
            importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"))
    found: dict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(tuple(map(str, roots))):
            code = each.__code__
            found[code.co_filename, code.co_qualname, code.co_firstlineno].append(each)
    return found


def change_live(live: Live, module: str, number: int) -> None:
    """Make a change in a module that was imported already: its functions get the code of the changed ones.

    Raises:
        NotInPlace: It is a change of what the module itself states, or of which names a function shares with others.
    """
    file = str(sys.modules[module].__file__)
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    before = _codes(compile(tree, file, "exec"))
    place = places(tree)[number]
    place.make()
    after = _codes(compile(ast.fix_missing_locations(tree), file, "exec"))
    other = [key for key, code in after.items() if before.get(key) != code]
    if place.of_module or not other or before.keys() - after.keys():
        raise NotInPlace(module)
    for qualname, line in other:
        for function in live.get((file, qualname, line), ()):
            if function.__code__.co_freevars != after[qualname, line].co_freevars:
                raise NotInPlace(qualname)
            function.__code__ = after[qualname, line]


def _codes(code: CodeType) -> dict[tuple[str, int], CodeType]:
    found: dict[tuple[str, int], CodeType] = {}
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found[each.co_qualname, each.co_firstlineno] = each
            found |= _codes(each)
    return found


def put_back(modules: Mapping[str, tuple[Hunk, ...]]) -> None:
    """Import the hub with a defect from now on.

    Args:
        modules: By name, what is replaced in them.

    Raises:
        AssertionError: One of them was imported already, so nothing would change.
    """
    assert not {*modules} & {*sys.modules}

    def edits(name: str) -> Edit | None:
        hunks = modules.get(name)
        return (lambda text: ast.parse(changed(text, hunks))) if hunks is not None else None

    sys.meta_path.insert(0, _Finder(edits))


class Marks:
    """Which statements of functions were reached, of modules that were imported with :func:`watch`."""

    def __init__(self) -> None:
        self.places: list[tuple[str, int]] = []
        self.hit: list[int] = []

    def add(self, module: str, line: int) -> int:
        """The number of a new mark."""
        self.places.append((module, line))
        self.hit.append(0)
        return len(self.places) - 1

    def reached(self) -> list[tuple[str, int, int]]:
        """Modules, lines, and how often."""
        return sorted((*place, hits) for place, hits in zip(self.places, self.hit, strict=True) if hits)


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
                mark = ast.parse(f"__reached__[{marks.add(module, statement.lineno)}] += 1").body[0]
                marked.append(ast.copy_location(mark, statement))
            marked.append(statement)
        setattr(node, name, marked)
    for each in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
        _mark_all(each, module, marks)
