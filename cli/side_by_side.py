"""Calls side by side: what takes an operator hours one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TypeVar

import click
from click.globals import push_context

AT_ONCE = 8
"""Calls at once; a client keeps ten connections."""
_AHEAD = 64
"""How many answers are held at most, until they are asked for."""
Given = TypeVar("Given")
Found = TypeVar("Found")


def each(call: Callable[[Given], Found], of: Iterable[Given]) -> Iterator[Found]:
    """What the calls give, in order, each made for the command that runs. The first that fails ends it, when those that
    have begun are over.
    """
    rest = iter(of)
    command = click.get_current_context(silent=True)
    begins = partial(push_context, command) if command else None
    with ThreadPoolExecutor(AT_ONCE, initializer=begins) as pool:
        while some := list(islice(rest, _AHEAD)):
            yield from pool.map(call, some)


def in_parts(items: list[Given], size: int) -> list[list[Given]]:
    """A list in parts of a size."""
    return [items[start : start + size] for start in range(0, len(items), size)]
