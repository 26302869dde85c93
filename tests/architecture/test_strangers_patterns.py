"""Regular expressions that are not our own are compiled by RE2 alone (:mod:`pushhub.base.patterns`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tests.architecture.test_layers import ROOT, nodes_of

PRODUCT = [path for folder in ("layers/pushhub/pushhub", "functions", "cli") for path in (ROOT / folder).rglob("*.py")]
ONLY = ROOT / "layers/pushhub/pushhub/base/patterns.py"

OF_PATTERNS = frozenset(
    {"compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn", "template"}
)
"""Functions of ``re`` whose first argument is a pattern."""


OURS = {
    "cli/archive/archived.py": "patterns of the keys of our own items, from a table above",
    "cli/archive/holdings.py": "patterns of the keys of our own items, from a table beside",
    "layers/pushhub/pushhub/base/signature_check.py": "escaped text of templates, and values in forms of our own",
    "layers/pushhub/pushhub/base/json_text.py": "a random number of our own",
}
"""Modules with patterns that are our own without being literals, and whose they are."""


def strange(nodes: Sequence[ast.AST]) -> Iterator[ast.Call]:
    """Calls of ``re`` with a pattern that is not made of literals, constants of modules and escaped text."""
    modules, functions = set(), set()
    for node in nodes:
        if isinstance(node, ast.Import):
            modules |= {each.asname or each.name for each in node.names if each.name == "re"}
        elif isinstance(node, ast.ImportFrom) and node.module == "re":
            functions |= {each.asname or each.name for each in node.names if each.name in OF_PATTERNS}
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        named = isinstance(called, ast.Name) and called.id in functions
        of_module = (
            isinstance(called, ast.Attribute)
            and isinstance(called.value, ast.Name)
            and called.value.id in modules
            and called.attr in OF_PATTERNS
        )
        if named or of_module:
            given = [*node.args[:1], *(each.value for each in node.keywords if each.arg == "pattern")]
            if not given or not all(map(_is_ours, given)):
                yield node


def _is_ours(pattern: ast.expr) -> bool:
    match pattern:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name.isupper()
        case ast.Attribute(attr=name):
            return name.isupper()
        case ast.JoinedStr(values=parts):
            return all(_is_ours(each.value if isinstance(each, ast.FormattedValue) else each) for each in parts)
        case ast.BinOp(left=left, right=right, op=ast.Add()):
            return _is_ours(left) and _is_ours(right)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr="escape")):
            return True
        case _:
            return False


def imports_re2(nodes: Sequence[ast.AST]) -> bool:
    return any(
        (isinstance(node, ast.Import) and any(each.name.split(".")[0] == "re2" for each in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "re2")
        for node in nodes
    )


def test_no_other_code_compiles_a_pattern_that_is_not_its_own() -> None:
    for path in PRODUCT:
        name = str(path.relative_to(ROOT))
        lines = [call.lineno for call in strange(nodes_of(path))]
        assert bool(lines) == (name in OURS), f"{name} uses patterns that may be a stranger's, in the lines {lines}"


def test_one_module_knows_re2() -> None:
    assert [path for path in PRODUCT if imports_re2(nodes_of(path))] == [ONLY]
