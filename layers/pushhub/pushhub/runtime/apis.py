"""Several APIs behind one function, told apart by their paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pushhub.engine.protocol import Api


def handle(mounted: Iterable[Mapping[str, Callable[[], Api]]], event: Mapping[str, Any]) -> dict[str, Any]:
    """Answer an HTTP API event by the API that its path belongs to: the one with the longest prefix that fits.

    Args:
        mounted: By prefix of the path, what makes each API. It is asked when the API is: a hub without stores does not
            pay for theirs at its cold starts.
        event: Payload format 2.0.
    """
    path: str = (event.get("rawPath") or "/").rstrip("/") + "/"
    apis = {prefix: make for each in mounted for prefix, make in each.items()}
    return apis[max((prefix for prefix in apis if path.startswith(prefix)), key=len)]().handle(event)
