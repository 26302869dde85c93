"""Cheaper ways for what the emulator does all the time. Runs in the emulator's process."""

from __future__ import annotations

import copy
import marshal
import re
import sys
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from ministack.services import dynamodb  # type: ignore[import-not-found]

SWITCH_S = 0.0005
"""How long a thread may compute while another waits: work goes through several threads, each waits that long."""

_INSERTION = re.compile(r'INSERT INTO "[^"]+" VALUE \{((?:\'[^\']+\': \?(?:, )?)+)\}')
_parse = dynamodb._parse_partiql


def take_shortcuts() -> None:
    """Copy items fast, read insertions once, hand over between threads soon."""
    dynamodb.copy = SimpleNamespace(copy=copy.copy, deepcopy=deepcopy)
    dynamodb._parse_partiql = parse
    sys.setswitchinterval(SWITCH_S)


def deepcopy(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """Like :func:`copy.deepcopy`, and many times as fast for what JSON can say."""
    try:
        return marshal.loads(marshal.dumps(value))  # noqa: S302 (its own bytes)
    except ValueError:
        return copy.deepcopy(value, memo)


@lru_cache(maxsize=500)
def _insertion(statement: str) -> tuple[dict[str, Any], list[str]] | None:
    """What MiniStack reads from an insertion, and the attributes its parameters are for; None for other statements."""
    found = _INSERTION.fullmatch(statement)
    names = re.findall("'([^']+)'", found[1]) if found else []
    return (_parse(statement, [{"NULL": True}] * len(names)), names) if names else None


def parse(statement: str, parameters: list[Any] | None = None) -> Any:
    """What MiniStack reads from a statement. It does so letter by letter, and in a batch twice."""
    insertion = _insertion(statement)
    if insertion is None or len(insertion[1]) != len(parameters or []):
        return _parse(statement, parameters)
    read, names = insertion
    return {**read, "item": dict(zip(names, parameters or [], strict=True))}
