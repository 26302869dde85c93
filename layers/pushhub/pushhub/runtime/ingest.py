"""The ingest function: the routes that producers of all protocols call, and what the hub consumes from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pushhub.runtime.apis import handle, in_time

if TYPE_CHECKING:
    from pushhub.runtime.hub import Pushhub
    from pushhub.runtime.invocation import LambdaContext


FUNCTION_URL = ".lambda-url."
"""In the domain name of every Lambda function URL, and of no API Gateway."""


def answer(hub: Pushhub, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer an HTTP API's event, or a function URL's, with the API that its path belongs to; take in the messages of
    queues that are not the hub's.
    """
    if "Records" in event:
        from pushhub.runtime.consuming import consume  # noqa: PLC0415 (few hubs do)

        return consume(hub, hub.engine.ports.settings, event, context)
    if FUNCTION_URL in event["requestContext"].get("domainName", ""):
        event = {**event, "rawPath": _decoded(event.get("rawPath") or "/")}
    with in_time(event, context):
        return handle((each.producer_apis for each in hub.engine.protocols), event)


def _decoded(raw_path: str) -> str:
    """The path as an HTTP API hands it over: a function URL leaves it percent-encoded (docs/decisions/acceptance.md).

    What is not UTF-8 becomes U+FFFD, which is refused. Percent signs stay encoded, each of them, so that the path's
    reader cannot take one for the start of another escape.
    """
    return unquote(raw_path, errors="replace").replace("%", "%25")
