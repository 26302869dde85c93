"""The small changes that a stranger would make to a module: every place where an operator fits, in order.

An operator changes what one line does and leaves it valid Python. What it cannot change sensibly is left out: type
annotations, decorators, log lines, what only a type checker reads.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_BOUNDS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_LOGGED = frozenset({"debug", "info", "warning", "error", "exception", "critical"})


_Change = tuple[str, ast.stmt, Callable[[], None]]


@dataclass(frozen=True)
class Place:
    """Where an operator fits.

    Attributes:
        operator: What is done there, for instance ``dropped call``.
        line: Of the statement, from 1.
        statement: That statement; what it says once :attr:`make` was called is the changed one.
        of_module: Whether the statement is the module's own, so that it is reached when the module is imported.
        make: Makes the change in the tree that the place was found in.
    """

    operator: str
    line: int
    statement: ast.stmt
    of_module: bool
    make: Callable[[], None]


def places(tree: ast.Module) -> list[Place]:
    """Every place in a module, in the order of its text. The same text has the same places."""
    own = {id(each) for each in tree.body}
    return [
        Place(operator, statement.lineno, statement, id(statement) in own, make)
        for body in _bodies(tree)
        for operator, statement, make in _in_body(body)
    ]


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements of functions; what a module or a class states is changed by its constants only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _blocks(node.body)
        elif isinstance(node, ast.Module):
            for each in node.body:
                if isinstance(each, ast.Assign | ast.AnnAssign):
                    yield [each]


def _blocks(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    yield body
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for name in ("body", "orelse", "finalbody"):
            if inner := getattr(statement, name, None):
                yield from _blocks(inner)
        for handler in getattr(statement, "handlers", []):
            yield from _blocks(handler.body)
        for case in getattr(statement, "cases", []):
            yield from _blocks(case.body)


def _in_body(body: list[ast.stmt]) -> Iterator[_Change]:
    for number, statement in enumerate(body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Raise | ast.Assert):
            continue
        if _is_call(statement):
            if _is_logged(statement):
                continue
            yield ("dropped call", statement, _replacing(body, number, ast.Pass()))
            if number + 1 < len(body) and _is_call(body[number + 1]) and not _is_logged(body[number + 1]):
                yield ("swapped calls", statement, _swapping(body, number))
        if isinstance(statement, ast.If):
            yield ("condition", statement, _negating(statement))
        for node in _own(statement):
            yield from _in_expression(node, statement)


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement without those of the statements in it, and without annotations."""
    for name, value in ast.iter_fields(statement):
        if name in {"annotation", "returns", "decorator_list", "body", "orelse", "finalbody", "handlers", "cases"}:
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from ast.walk(each)


def _in_expression(node: ast.AST, statement: ast.stmt) -> Iterator[_Change]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPPOSITES:
        operator = "boundary" if isinstance(node.ops[0], _BOUNDS) else "comparison"
        yield (operator, statement, _comparing(node))
    elif isinstance(node, ast.BoolOp):
        yield ("and, or", statement, _joining(node))
    elif isinstance(node, ast.IfExp):
        yield ("condition", statement, _negating(node))
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield ("constant", statement, _counting(node, node.value + 1))
    elif isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg and keyword.arg[0].isupper():
                yield ("dropped argument", statement, _without(node, keyword))
    elif isinstance(node, ast.Dict):
        for number, key in enumerate(node.keys):
            if isinstance(key, ast.Constant) and key.value in {"ConsistentRead", "ConditionExpression"}:
                yield ("dropped argument", statement, _without_key(node, number))


def _is_call(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)


def _is_logged(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _LOGGED


def _replacing(body: list[ast.stmt], number: int, other: ast.stmt) -> Callable[[], None]:
    def make() -> None:
        body[number] = ast.copy_location(other, body[number])

    return make


def _swapping(body: list[ast.stmt], number: int) -> Callable[[], None]:
    def make() -> None:
        body[number], body[number + 1] = body[number + 1], body[number]

    return make


def _negating(node: ast.If | ast.IfExp) -> Callable[[], None]:
    def make() -> None:
        node.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)

    return make


def _comparing(node: ast.Compare) -> Callable[[], None]:
    def make() -> None:
        node.ops = [_OPPOSITES[type(node.ops[0])]()]

    return make


def _joining(node: ast.BoolOp) -> Callable[[], None]:
    def make() -> None:
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()

    return make


def _counting(node: ast.Constant, value: int) -> Callable[[], None]:
    def make() -> None:
        node.value = value

    return make


def _without(node: ast.Call, keyword: ast.keyword) -> Callable[[], None]:
    return lambda: node.keywords.remove(keyword)


def _without_key(node: ast.Dict, number: int) -> Callable[[], None]:
    def make() -> None:
        del node.keys[number], node.values[number]

    return make
