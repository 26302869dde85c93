"""HTTP routes: each API behind its prefix."""

from __future__ import annotations

from typing import Any

from pushhub.runtime.hub import Pushhub
from pushhub.runtime.invocation import LambdaContext


def answer(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 (Lambda passes both)
    """Answer an HTTP API event by the API that its path belongs to: the one with the longest prefix that fits."""
    path: str = (event.get("rawPath") or "/").rstrip("/") + "/"
    apis = {prefix: make for protocol in hub.engine.protocols for prefix, make in protocol.apis.items()}
    # Made when it is first asked for: a hub without stores does not pay for theirs at its cold starts.
    return apis[max((prefix for prefix in apis if path.startswith(prefix)), key=len)]().handle(event)
