"""The control function: every HTTP route, of all protocols, and their description."""

from __future__ import annotations

from typing import Any

from pushhub.engine.protocol import Api
from pushhub.runtime.apis import handle
from pushhub.runtime.hub import Pushhub
from pushhub.runtime.invocation import LambdaContext


def _documentation() -> Api:
    from pushhub.runtime.documentation import Documentation  # noqa: PLC0415 (few ask for it)

    return Documentation()


DOCUMENTATION = {"/openapi.json/": _documentation, "/docs/": _documentation}


def answer(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 (Lambda passes both)
    """Answer an HTTP API event by the API that its path belongs to."""
    return handle((DOCUMENTATION, *(each.apis for each in hub.engine.protocols)), event)
