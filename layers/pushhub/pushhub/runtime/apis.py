"""Serves several APIs with one function, selected by path."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from pushhub.cloud.deadline import deadline

if TYPE_CHECKING:
    from pushhub.engine.protocol import ProtocolApi
    from pushhub.runtime.invocation import LambdaContext

GATEWAY_MS = 29_500
"""How long API Gateway waits for an answer, less what the way takes."""
SENSIBLE_MS = 60_000
"""A request that seems to be older, or younger than nothing, says something about clocks."""


def handle(mounted: Iterable[Mapping[str, Callable[[], ProtocolApi]]], event: Mapping[str, Any]) -> dict[str, Any]:
    """Answer an HTTP API event with the API that its path belongs to: the one with the longest matching prefix.

    Args:
        mounted: A factory for each API, by path prefix. It is called only when the API is requested, so that a hub
            without stores does not pay for the stores' API at cold starts.
        event: Payload format 2.0.
    """
    # Slashes too many are a path that no API has, and each says so in its own dialect.
    path: str = f"/{(event.get('rawPath') or '/').strip('/')}/".replace("//", "/")
    apis = {prefix: make for each in mounted for prefix, make in each.items()}
    return apis[max((prefix for prefix in apis if path.startswith(prefix)), key=len)]().handle(event)


def in_time(event: Mapping[str, Any], context: LambdaContext) -> AbstractContextManager[None]:
    """Keeps to the time in which an event must be answered: what the function has left and what the gateway waits, for
    which a cold start counts, too.
    """
    left = context.get_remaining_time_in_millis()
    began = event["requestContext"].get("timeEpoch")
    age = time.time() * 1000 - began if isinstance(began, int) else 0
    if 0 <= age <= SENSIBLE_MS:
        left = min(left, GATEWAY_MS - round(age))
    return deadline.within(left / 1000)
