"""What DynamoDB checks of a request before it looks at any item: expressions, their names and values, numbers, keys to
start from. Emulators take much of it.

Rules: the Amazon DynamoDB Developer Guide, "Quotas in Amazon DynamoDB", "Reserved words" and "Expressions in DynamoDB",
and the API reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

MOST_EXPRESSION_BYTES = 4_096
MOST_OPERATORS = 300
"""Operators, functions and operands are counted together; here, all tokens but commas and dots."""
MOST_DIGITS, MOST_EXPONENT, LEAST_EXPONENT = 38, 125, -130
MOST_DEPTH = 32

EXPRESSIONS = (
    "ConditionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
    "UpdateExpression",
)
_TOKEN = re.compile(r"<=|>=|<>|[=<>(),.+-]|[#:]?[A-Za-z_][A-Za-z0-9_]*|\S")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"-?(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?")
_CALL = re.compile(r"[a-z_]+\s*\(")
_WORDS = frozenset({"AND", "OR", "NOT", "BETWEEN", "IN", "SET", "ADD", "REMOVE", "DELETE"})
_CLAUSES = frozenset({"SET", "ADD", "REMOVE", "DELETE"})
_FUNCTIONS = frozenset(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "size"}
    | {"if_not_exists", "list_append"}
)
_HALF_PAIR = re.compile("[\ud800-\udfff]")
Path = tuple[str, ...]


@cache
def reserved_words() -> frozenset[str]:
    """Words that an expression may not use as names of attributes, in capitals."""
    return frozenset(files("simulation").joinpath("reserved_words.txt").read_text(encoding="utf-8").split())


def fault(parameters: Mapping[str, Any], keys: Iterable[str], *, index: bool, query: bool) -> str:
    """Why DynamoDB would refuse a request; empty if it would not.

    Args:
        keys: Attributes of the keys that it reads or writes by: the table's, or the index's.
        index: Whether it reads an index that is not local.
        query: Whether it is a query.
    """
    return next(_faults(parameters, frozenset(keys), index=index, query=query), "")


def _faults(parameters: Mapping[str, Any], keys: frozenset[str], *, index: bool, query: bool) -> Iterator[str]:
    texts = {name: parameters[name] for name in EXPRESSIONS if name in parameters}
    names = parameters.get("ExpressionAttributeNames")
    values = parameters.get("ExpressionAttributeValues")
    if names == {} or values == {}:
        yield "names or values that are given must not be empty"
    names, values = names or {}, values or {}
    yield from _of_texts(tuple(texts.items()), tuple(names.items()), frozenset(values), keys, query)
    for each in values.values():
        yield from of_value(each)
    if parameters.get("Limit", 1) < 1:
        yield "a limit below 1"
    if index and parameters.get("ConsistentRead"):
        yield "a consistent read of an index"
    if parameters.get("Select") == "COUNT" and "ProjectionExpression" in texts:
        yield "a projection of a count"
    if query:
        yield from _of_key_condition(parameters["KeyConditionExpression"], values)


@cache
def _of_texts(
    texts: tuple[tuple[str, str], ...],
    names: tuple[tuple[str, str], ...],
    values: frozenset[str],
    keys: frozenset[str],
    query: bool,
) -> list[str]:
    """What is wrong with expressions as they are written."""
    found: list[str] = []
    used: set[str] = set()
    for kind, text in texts:
        tokens = _TOKEN.findall(text)
        used |= {each for each in tokens if each[0] in "#:"}
        found += _of_text(kind, text, tokens)
        found += _of_paths(kind, tokens, _paths(kind, tokens, dict(names)), keys, query=query)
    known = values | {name for name, _ in names}
    if used != known:
        found.append(f"what is not defined or not used: {used ^ known}")
    return found


def _of_text(kind: str, text: str, tokens: Sequence[str]) -> Iterator[str]:
    if not text.strip() or len(text.encode()) > MOST_EXPRESSION_BYTES:
        yield f"{kind} has {len(text.encode())} bytes"
    if sum(each not in ",." for each in tokens) > MOST_OPERATORS:
        yield f"{kind} has more than {MOST_OPERATORS} operators"
    if re.search(r"\(\s*\(", _CALL.sub("f", text)):
        yield f"{kind} has redundant parentheses"
    for each in tokens:
        if _WORD.fullmatch(each) and each.upper() in reserved_words() and not _is_word(each, kind):
            yield f"{each!r} in {kind} is a reserved word"
        if len(each) == 1 and not each.isalnum() and each not in "=<>(),.+-_[]":
            yield f"{each!r} in {kind}"


def _of_paths(
    kind: str, tokens: Sequence[str], paths: Sequence[Path], keys: frozenset[str], *, query: bool
) -> Iterator[str]:
    if kind == "FilterExpression" and query and any(each[0] in keys for each in paths):
        yield "a filter of a query with an attribute of its keys"
    if kind == "UpdateExpression":
        clauses = [each.upper() for each in tokens if each.upper() in _CLAUSES]
        if len(set(clauses)) < len(clauses):
            yield "a clause that is there twice"
        if any(each[0] in keys for each in paths):
            yield "an update of an attribute of the keys"
    if kind in {"UpdateExpression", "ProjectionExpression"}:
        for number, each in enumerate(paths):
            if any(each[: len(other)] == other[: len(each)] for other in paths[:number]):
                yield f"paths that overlap at {each}"


def _is_word(token: str, kind: str) -> bool:
    clause = token.upper() in _CLAUSES and kind == "UpdateExpression"
    return clause or token in _FUNCTIONS or (token.upper() in _WORDS - _CLAUSES and kind != "UpdateExpression")


def _paths(kind: str, tokens: Sequence[str], names: Mapping[str, str]) -> list[Path]:
    """The paths that are projected, compared, or changed (what an update only reads is left out)."""
    paths: list[list[str]] = []
    before, depth, left = "", 0, True
    for each in tokens:
        depth += (each == "(") - (each == ")")
        if kind == "UpdateExpression" and (each.upper() in _CLAUSES or (each == "," and not depth)):
            left = True
        elif kind == "UpdateExpression" and each == "=":
            left = False
        elif left and (each[0] == "#" or (_WORD.fullmatch(each) and not _is_word(each, kind))):
            name = names.get(each, each)
            if before == ".":
                paths[-1].append(name)
            else:
                paths.append([name])
        before = each
    return [tuple(each) for each in paths]


def _of_key_condition(text: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Empty texts, and bounds in the wrong order."""
    tokens = _TOKEN.findall(text)
    for each in values:
        if each in tokens and values[each] in ({"S": ""}, {"B": b""}):
            yield f"{each}, of a key, is empty"
    for place, each in enumerate(tokens):
        if each.upper() == "BETWEEN":
            low, high = values[tokens[place + 1]], values[tokens[place + 3]]
            if _sortable(low) > _sortable(high):
                yield "the lower bound is above the upper one"


def _sortable(value: Mapping[str, Any]) -> Any:
    ((kind, content),) = value.items()
    return float(content) if kind == "N" else content.encode(errors="surrogatepass") if kind == "S" else bytes(content)


def of_item(item: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the values of an item."""
    for name, each in item.items():
        if not name:
            yield "an attribute without a name"
        yield from of_value(each)


def of_value(value: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """What is wrong with a value."""
    if len(value) != 1:
        yield f"a value of types {[*value]}"
        return
    ((kind, content),) = value.items()
    if kind not in {"L", "M", "SS", "NS", "BS"}:
        if kind not in _RIGHT or not _RIGHT[kind](content):
            yield f"no {kind}: {content!r}"
    elif depth > MOST_DEPTH:
        yield "a document that is too deep"
    elif kind in {"L", "M"}:
        if kind == "M" and "" in content:
            yield "a member without a name"
        for each in content.values() if kind == "M" else content:
            yield from of_value(each, depth + 1)
    else:
        if not content or len(set(content)) < len(content):
            yield "a set that is empty, or has something twice"
        for each in content:
            yield from of_value({kind[0]: each}, depth)


def _is_number(text: str) -> bool:
    if text.isascii() and len(text) < MOST_DIGITS and text.removeprefix("-").isdigit():
        return True
    found = _NUMBER.fullmatch(text)
    if found is None or not (found[1] or found[2]):
        return False
    digits = (found[1] + found[2]).strip("0")
    exponent = int(found[3] or 0) + (len(found[1].lstrip("0")) - 1 if found[1].strip("0") else -len(found[2]) - 1)
    return len(digits) <= MOST_DIGITS and (not digits or LEAST_EXPONENT <= exponent <= MOST_EXPONENT)


_RIGHT: Mapping[str, Callable[[Any], bool]] = {
    "S": lambda content: isinstance(content, str) and (content.isascii() or _HALF_PAIR.search(content) is None),
    "N": _is_number,
    "B": lambda content: isinstance(content, bytes | bytearray),
    "BOOL": lambda content: isinstance(content, bool),
    "NULL": lambda content: content is True,
}
"""What values of each type that holds no others are right."""
