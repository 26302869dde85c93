"""DynamoDB's condition, filter, key and update expressions, as far as the hub uses them; each is parsed once and
cached.

Rules: the Amazon DynamoDB Developer Guide, "Expressions in DynamoDB". Anything unknown here is an error, so that
nothing is silently accepted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

Item = dict[str, Any]
Names = Mapping[str, str]
Values = Mapping[str, Any]
Path = tuple[str, ...]

_TOKEN = re.compile(r"\s*(<=|>=|<>|[=<>(),.+-]|[#:]?[A-Za-z_][A-Za-z0-9_]*)")
_COMPARATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: bool(left == right),
    "<>": lambda left, right: bool(left != right),
    "<": lambda left, right: bool(left < right),
    "<=": lambda left, right: bool(left <= right),
    ">": lambda left, right: bool(left > right),
    ">=": lambda left, right: bool(left >= right),
}
_CLAUSES = frozenset({"SET", "ADD", "REMOVE", "DELETE"})

Condition = Callable[[Item, Names, Values], bool]
Operand = Callable[[Item, Names, Values], Any]
Change = Callable[[Item, Item, Names, Values], None]


class Unknown(Exception):
    """An expression of a kind that the model does not have."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        position = 0
        text = text.strip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise Unknown(f"{text!r} at {position}")
            self.tokens.append(match.group(1))
            position = match.end()
        self.at = 0

    @property
    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek
        if not token or (expected and token.upper() != expected):
            raise Unknown(f"{expected or 'more'} expected at {self.at} in {self.tokens}")
        self.at += 1
        return token

    def path(self) -> Path:
        parts = [self.take()]
        while self.peek == ".":
            self.take()
            parts.append(self.take())
        return tuple(parts)


def found_at(item: Item, path: Path, names: Names) -> Any:
    """The attribute value at a path, or None."""
    here: Any = {"M": item}
    for part in path:
        name = names[part] if part.startswith("#") else part
        here = here.get("M", {}).get(name) if isinstance(here, dict) else None
        if here is None:
            return None
    return here


def plain(value: Any) -> Any:
    """An attribute value as Python compares it: numbers by value, strings and bytes by their UTF-8 bytes."""
    if "S" in value:
        return value["S"].encode(errors="surrogatepass")
    if "N" in value:
        return int(value["N"])
    if "B" in value:
        return bytes(value["B"])
    (only,) = value.values()
    return only


@cache
def condition(text: str) -> Condition:
    """A condition, filter or key condition."""
    reader = _Reader(text)
    read = _either(reader)
    if reader.peek:
        raise Unknown(f"{reader.peek!r} in {text!r}")
    return read


def _either(reader: _Reader) -> Condition:
    some = [_both(reader)]
    while reader.peek.upper() == "OR":
        reader.take()
        some.append(_both(reader))
    return some[0] if len(some) == 1 else lambda item, names, values: any(each(item, names, values) for each in some)


def _both(reader: _Reader) -> Condition:
    every = [_negated(reader)]
    while reader.peek.upper() == "AND":
        reader.take()
        every.append(_negated(reader))
    return every[0] if len(every) == 1 else lambda item, names, values: all(each(item, names, values) for each in every)


def _negated(reader: _Reader) -> Condition:
    if reader.peek.upper() == "NOT":
        reader.take()
        inner = _negated(reader)
        return lambda item, names, values: not inner(item, names, values)
    if reader.peek == "(":
        reader.take()
        inner = _either(reader)
        reader.take(")")
        return inner
    return _comparison(reader)


def _comparison(reader: _Reader) -> Condition:
    function = reader.peek
    if function in {"attribute_exists", "attribute_not_exists", "begins_with", "contains"}:
        return _function(reader)
    left = _operand(reader)
    comparator = reader.take()
    if comparator.upper() == "BETWEEN":
        low = _operand(reader)
        reader.take("AND")
        high = _operand(reader)

        def between(item: Item, names: Names, values: Values) -> bool:
            value = left(item, names, values)
            return value is not None and (
                plain(low(item, names, values)) <= plain(value) <= plain(high(item, names, values))
            )

        return between
    if comparator not in _COMPARATORS:
        raise Unknown(comparator)
    compare, right = _COMPARATORS[comparator], _operand(reader)

    def compared(item: Item, names: Names, values: Values) -> bool:
        one, other = left(item, names, values), right(item, names, values)
        if one is None or other is None:
            # A missing value fails every comparison except "differs".
            return comparator == "<>"
        if comparator in {"=", "<>"}:
            return compare(one, other)
        return one.keys() == other.keys() and compare(plain(one), plain(other))

    return compared


def _function(reader: _Reader) -> Condition:
    function = reader.take()
    reader.take("(")
    path = reader.path()
    if function in {"attribute_exists", "attribute_not_exists"}:
        reader.take(")")
        wanted = function == "attribute_exists"
        return lambda item, names, values: (found_at(item, path, names) is not None) is wanted
    reader.take(",")
    operand = _operand(reader)
    reader.take(")")
    if function == "begins_with":

        def begins(item: Item, names: Names, values: Values) -> bool:
            value = found_at(item, path, names)
            return value is not None and bool(plain(value).startswith(plain(operand(item, names, values))))

        return begins

    def contains(item: Item, names: Names, values: Values) -> bool:
        value = found_at(item, path, names)
        if value is None:
            return False
        ((kind, members),) = value.items()
        wanted = operand(item, names, values)
        if kind in {"SS", "NS"}:
            return next(iter(wanted.values())) in members
        return wanted in members if kind == "L" else plain(wanted) in plain(value)

    return contains


def _operand(reader: _Reader) -> Operand:
    token = reader.peek
    if token[0] == ":":
        reader.take()
        return lambda item, names, values: values[token]
    if token == "if_not_exists":  # noqa: S105 (a word of an expression)
        reader.take()
        reader.take("(")
        path = reader.path()
        reader.take(",")
        otherwise = _operand(reader)
        reader.take(")")

        def known(item: Item, names: Names, values: Values) -> Any:
            value = found_at(item, path, names)
            return otherwise(item, names, values) if value is None else value

        return known
    path = reader.path()
    return lambda item, names, values: found_at(item, path, names)


@cache
def update(text: str) -> Callable[[Item, Names, Values], Item]:
    """An update expression: makes the new item from the old one. Operands are read from the old one, as in DynamoDB."""
    reader = _Reader(text)
    changes: list[Change] = []
    while reader.peek:
        clause = reader.take().upper()
        if clause not in _CLAUSES:
            raise Unknown(f"{clause!r} in {text!r}")
        while True:
            changes.append(_change(reader, clause))
            if reader.peek != ",":
                break
            reader.take()

    def apply(item: Item, names: Names, values: Values) -> Item:
        after = dict(item)
        for each in changes:
            each(item, after, names, values)
        return after

    return apply


def _change(reader: _Reader, clause: str) -> Change:
    path = reader.path()
    if clause == "REMOVE":
        return lambda before, after, names, values: _put(after, path, names, None)
    if clause == "SET":
        reader.take("=")
        operand = _operand(reader)
        if reader.peek in {"+", "-"}:
            sign = 1 if reader.take() == "+" else -1
            other = _operand(reader)

            def summed(before: Item, after: Item, names: Names, values: Values) -> None:
                total = plain(operand(before, names, values)) + sign * plain(other(before, names, values))
                _put(after, path, names, {"N": str(total)})

            return summed

        def put(before: Item, after: Item, names: Names, values: Values) -> None:
            value = operand(before, names, values)
            if value is None:
                raise Unknown(f"{path} is set to what does not exist")
            _put(after, path, names, value)

        return put
    operand = _operand(reader)
    if clause == "ADD":
        return lambda before, after, names, values: _put(
            after, path, names, _added(found_at(before, path, names), operand(before, names, values))
        )
    return lambda before, after, names, values: _put(
        after, path, names, _without(found_at(before, path, names), operand(before, names, values))
    )


def _added(value: Any, more: Any) -> Any:
    if "N" in more:
        return {"N": str((plain(value) if value else 0) + plain(more))}
    ((kind, members),) = more.items()
    return {kind: sorted({*(value[kind] if value else ()), *members})}


def _without(value: Any, less: Any) -> Any:
    if value is None:
        return None
    ((kind, members),) = less.items()
    left = sorted(set(value[kind]) - set(members))
    # DynamoDB has no empty sets: the attribute is removed with its last member.
    return {kind: left} if left else None


def _put(item: Item, path: Path, names: Names, value: Any) -> None:
    """Change a copy in place, copying everything on the way to the path's end."""
    here = item
    for part in path[:-1]:
        name = names[part] if part.startswith("#") else part
        if name not in here:
            raise Unknown(f"the document path {path} is invalid")
        here[name] = {"M": dict(here[name]["M"])}
        here = here[name]["M"]
    last = names[path[-1]] if path[-1].startswith("#") else path[-1]
    if value is None:
        here.pop(last, None)
    else:
        here[last] = value


@cache
def _partition_of(text: str) -> tuple[str, str]:
    reader = _Reader(text)
    while reader.peek:
        token = reader.take()
        if reader.peek == "=":
            reader.take()
            return token, reader.take()
    raise Unknown(text)


def key_values(text: str, names: Names, values: Values) -> tuple[str, Any]:
    """Name and value of the partition key in a key condition: every condition contains ``name = :value``."""
    name, value = _partition_of(text)
    return (names[name] if name.startswith("#") else name), values[value]
