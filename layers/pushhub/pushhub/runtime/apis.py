"""Serves several APIs with one function, selected by path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pushhub.engine.protocol import Api


def handle(mounted: Iterable[Mapping[str, Callable[[], Api]]], event: Mapping[str, Any]) -> dict[str, Any]:
    """Answer an HTTP API event with the API that its path belongs to: the one with the longest matching prefix.

    Args:
        mounted: A factory for each API, by path prefix. It is called only when the API is requested, so that a hub
            without stores does not pay for the stores' API at cold starts.
        event: Payload format 2.0.
    """
    path: str = (event.get("rawPath") or "/").rstrip("/") + "/"
    apis = {prefix: make for each in mounted for prefix, make in each.items()}
    return apis[max((prefix for prefix in apis if path.startswith(prefix)), key=len)]().handle(event)
