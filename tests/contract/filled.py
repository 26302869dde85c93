"""Values made from their types alone: every field set, to something that is not its default.

Nobody lists fields here, so a new field is in the next run's values by itself.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import Enum
from functools import cache
from random import Random
from typing import Any, NamedTuple, TypeVar, Union, cast

from tests.fakes.clock import START_MS

from pushhub.base.json_text import Verbatim
from pushhub.engine.model.deflated import Deflated
from pushhub.engine.model.message import BodyRef, Message
from pushhub.engine.model.queue import PushSettings, Subscriber
from pushhub.engine.model.search import IndexEntry
from pushhub.hub.model.parameters import Parameter
from pushhub.notifications.model.backlog import Backlog, Consumer, Entry

T = TypeVar("T")


@cache
def hints(cls: Any) -> Mapping[str, Any]:
    """The types of a class's fields, resolved even if they are imported for type checkers only."""
    return typing.get_type_hints(cls, localns=_names_for_type_checkers(cls.__module__))


@cache
def _names_for_type_checkers(module: str) -> dict[str, Any]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    names: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            try:
                source = importlib.import_module(node.module)
            except ImportError:  # Stubs that exist for mypy only.
                continue
            names |= {
                each.asname or each.name: getattr(source, each.name)
                for each in node.names
                if hasattr(source, each.name)
            }
    return names


def is_record(cls: object) -> bool:
    """Whether a type has fields of its own: a dataclass or a named tuple."""
    return isinstance(cls, type) and (dataclasses.is_dataclass(cls) or hasattr(cls, "_fields"))


def alternatives(kind: Any) -> list[Any]:
    """What a value of a type may be, without ``None``."""
    if typing.get_origin(kind) in (Union, types.UnionType):
        return [each for each in typing.get_args(kind) if each is not type(None)]
    return [kind]


def reachable(cls: type) -> set[type]:
    """The records that a value of a type may hold, itself included."""
    found: set[type] = set()
    waiting: list[Any] = [cls]
    while waiting:
        kind = waiting.pop()
        if is_record(kind):
            if kind in found:
                continue
            found.add(kind)
            waiting += hints(kind).values()
        else:
            waiting += [each for each in typing.get_args(kind) if each is not Ellipsis]
    return found


class Default(NamedTuple):
    """A field and the value it has when nobody sets it."""

    name: str
    value: object


def defaults(cls: type) -> Iterator[Default]:
    """The fields of a dataclass that need not be given."""
    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING:
            yield Default(field.name, field.default)
        elif field.default_factory is not dataclasses.MISSING:
            yield Default(field.name, field.default_factory())


class Filler:
    """Makes values; the same seed makes the same ones.

    Args:
        seed: Decides every value, and which alternative a union takes.
        fixed: Values of particular fields, for rules that no type can say: by (class, field).
    """

    def __init__(self, seed: int, fixed: Mapping[tuple[type, str], Any]) -> None:
        self._random = Random(seed)
        self._fixed = fixed
        self._count = seed

    def record(self, cls: type[T]) -> T:
        """A record with every field set, and none to its default."""
        given = {
            name: self._of_field(cls, name, kind)
            for name, kind in hints(cast(Any, cls)).items()
            if _is_given(cls, name)
        }
        if dataclasses.is_dataclass(cls):
            for name, value in defaults(cls):
                if name in given and given[name] == value and (cls, name) not in self._fixed:
                    raise AssertionError(f"{cls.__name__}.{name} was left at its default {value!r}")
        return cls(**given)

    def _of_field(self, cls: type, name: str, kind: Any) -> Any:
        if (cls, name) in self._fixed:
            fixed = self._fixed[cls, name]
            return fixed(self) if callable(fixed) else fixed
        default = {each.name: each.value for each in defaults(cls)} if dataclasses.is_dataclass(cls) else {}
        while True:
            value = self.value(kind)
            if name not in default or value != default[name]:
                return value

    def value(self, kind: Any) -> Any:
        """A value of a type."""
        kind = self._random.choice(alternatives(kind))
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if is_record(kind):
            return self.record(kind)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return self._random.choice(list(kind))
        if origin is tuple:
            kinds = [inner[0]] * 2 if inner[-1] is Ellipsis else inner
            return tuple(self.value(each) for each in kinds)
        if origin in (frozenset, set):
            return frozenset(self.value(inner[0]) for _ in range(2))
        if origin is not None and issubclass(origin, Mapping):
            return {self.value(inner[0]): self.value(inner[1]) for _ in range(2)}
        if origin is not None and issubclass(origin, typing.Sequence):
            return [self.value(inner[0]) for _ in range(2)]
        return self._plain(kind)

    def _plain(self, kind: Any) -> Any:
        self._count += 1
        plain: dict[Any, Any] = {
            str: f"{self._random.getrandbits(64):016x}",
            bytes: self._random.randbytes(24),
            int: START_MS + self._count * 1_000 + self._random.randrange(1_000),
            float: self._count + self._random.randrange(1, 16) / 16,
            bool: self._random.random() < 0.5,
        }
        if kind in plain:
            return plain[kind]
        if kind is Any or kind is object:
            return {"text": "ä", "whole": self._count, "list": [True, None, 0.5]}
        raise AssertionError(f"no value can be made for {kind!r}: teach it to tests/contract/filled.py")


def _is_given(cls: type, name: str) -> bool:
    if not dataclasses.is_dataclass(cls):
        return name in cast(Any, cls)._fields
    return any(field.name == name and field.init for field in dataclasses.fields(cls))


FIXED: dict[tuple[type, str], Any] = {
    # A message knows the length of its body, wherever that is stored.
    (Message, "body_size"): 9_000,
    (BodyRef, "length"): 9_000,
    (Deflated, "size"): 9_000,
    # Positions of a backlog rise, and a bucket has two bytes.
    (Backlog, "returned"): (Entry(3, 7), Entry(400, 65_535)),
    (Consumer, "unacknowledged"): (Entry(5, 0), Entry(70_000, 12)),
    # Entries of the index go by their messages' lifetimes, in seconds.
    (IndexEntry, "expires_at"): 1_795_000_000_000,
    (Entry, "position"): 5,
    (Entry, "bucket"): 6,
    # Numbers that are not whole keep their text.
    (Parameter, "value"): {"text": "ä", "whole": 3, "list": [True, None, Verbatim("0.5")]},
    # Queues of protocols have these, and are not stored.
    (Subscriber, "attached"): {},
    (PushSettings, "find"): None,
}
"""What no type says."""


def filled(cls: type[T], **changes: Any) -> T:
    """A record with every field set, some of them to what a test needs."""
    created: T = replace(cast(Any, Filler(0, FIXED).record(cls)), **changes)
    return created
