"""The control function: every HTTP route, of all protocols, and their description."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pushhub.runtime.apis import handle, in_time

if TYPE_CHECKING:
    from pushhub.engine.protocol import Api
    from pushhub.runtime.hub import Pushhub
    from pushhub.runtime.invocation import LambdaContext


def _mcp(hub: Pushhub) -> Api:
    from pushhub.runtime.mcp import Mcp  # noqa: PLC0415 (few ask for it)

    return Mcp(hub, hub.engine.ports.base_url)


def _documentation() -> Api:
    from pushhub.runtime.documentation import Documentation  # noqa: PLC0415 (few ask for it)

    return Documentation()


class _ToConsole:
    """Redirects ``/console/``, which the gateway treats neither as ``/console`` nor as one of the console's files."""

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Redirect any method; the browser keeps the fragment."""
        del event
        return {"statusCode": 308, "headers": {"Location": "/console"}, "body": "", "isBase64Encoded": False}


def _addresses() -> Api:
    from pushhub.runtime.source_addresses import SourceAddresses  # noqa: PLC0415 (few ask for it)

    return SourceAddresses()


CONSOLE = {"/console/": _ToConsole}
DOCUMENTATION = dict.fromkeys(
    ("/openapi.json/", "/api/v1/openapi.json/", "/docs/", "/llms.txt/"),
    _documentation,
)
ADDRESSES = {"/.well-known/webhook-source-ips.json/": _addresses}


def answer(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer an HTTP API event with the API that its path belongs to. A browser in which somebody opens the hub's base
    URL is led to the console; other clients are told that there is nothing.
    """
    wanted = (event.get("headers") or {}).get("accept", "")
    if event.get("rawPath") in ("", "/") and "text/html" in wanted:
        return {"statusCode": 302, "headers": {"Location": "/console"}, "body": "", "isBase64Encoded": False}
    with in_time(event, context):
        return handle(
            (
                CONSOLE,
                DOCUMENTATION,
                ADDRESSES,
                {"/mcp/": partial(_mcp, hub)},
                *(each.apis for each in hub.engine.protocols),
            ),
            event,
        )
