"""The control function: every HTTP route, of all protocols, and their description."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pushhub.runtime.apis import handle, in_time

if TYPE_CHECKING:
    from pushhub.engine.protocol import ProtocolApi
    from pushhub.runtime.hub import Pushhub
    from pushhub.runtime.invocation import LambdaContext


def _mcp(hub: Pushhub) -> ProtocolApi:
    from pushhub.runtime.mcp import Mcp  # noqa: PLC0415 (few ask for it)

    return Mcp(hub, hub.engine.ports.base_url)


def _documentation() -> ProtocolApi:
    from pushhub.runtime.documentation import Documentation  # noqa: PLC0415 (few ask for it)

    return Documentation()


class _WithoutSlash:
    """Redirects ``/console/`` and ``/docs/``, which the gateway treats neither as the page nor as one of its files."""

    def __init__(self, page: str) -> None:
        self._page = page

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Redirect any method; the browser keeps the fragment."""
        del event
        return {"statusCode": 308, "headers": {"Location": self._page}, "body": "", "isBase64Encoded": False}


def _addresses() -> ProtocolApi:
    from pushhub.runtime.source_addresses import SourceAddresses  # noqa: PLC0415 (few ask for it)

    return SourceAddresses()


PAGES = {f"{page}/": partial(_WithoutSlash, page) for page in ("/console", "/docs")}
DOCUMENTATION = dict.fromkeys(
    ("/openapi.json/", "/api/v1/openapi.json/", "/llms.txt/"),
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
                PAGES,
                DOCUMENTATION,
                ADDRESSES,
                {"/mcp/": partial(_mcp, hub)},
                *(each.apis for each in hub.engine.protocols),
            ),
            event,
        )
