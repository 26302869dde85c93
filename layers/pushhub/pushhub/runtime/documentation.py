"""The description of all APIs: ``/openapi.json`` for programs and for the page at ``/docs``, ``/llms.txt`` for
assistants; and of webhooks alone, ``/api/v1/openapi.json``.

Imported only when it is requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pushhub.base.errors import RequestRefused
from pushhub.runtime.hub import PROTOCOLS
from pushhub.web.http import MethodNotAllowed, Request, Response, Router, serve
from pushhub.web.openapi import document
from pushhub.webhooks.wiring import Webhooks

VERSION = "0.1.0"
"""The version of this hub; a test compares it with pyproject.toml."""

MEANS = (
    "A message hub that pushes until every subscriber has it. A 2xx means stored and queued. Each protocol has its own "
    "words, credentials and errors; what a project owns is the same in all of them."
)


@cache
def describe() -> dict[str, Any]:
    """The OpenAPI 3.1 document of all routes of all protocols."""
    apis = [(each.routes(), each.description()) for each in PROTOCOLS]
    return document(apis, title="Pushhub", version=VERSION, means=MEANS)


@cache
def describe_webhooks() -> dict[str, Any]:
    """The same of the webhooks API alone, where Svix has its own: generators that are pointed there make clients of
    nothing else.
    """
    apis = [(each.routes(), each.description()) for each in PROTOCOLS if each is Webhooks]
    return document(apis, title="Pushhub: webhooks", version=VERSION, means=MEANS)


_FOR_AN_HOUR = {"Cache-Control": "public, max-age=3600", "X-Content-Type-Options": "nosniff"}


# Tools on other sites may read documents, as everything in them is public.
_FOR_TOOLS = {**_FOR_AN_HOUR, "Access-Control-Allow-Origin": "*"}


def _document(_: Request) -> Response:
    return Response(status=200, body=describe(), headers=_FOR_TOOLS, compressed=True)


def _webhooks_document(_: Request) -> Response:
    return Response(status=200, body=describe_webhooks(), headers=_FOR_TOOLS, compressed=True)


GUIDE = """# Pushhub

> A message hub: producers post messages to an HTTP API, and the hub pushes each until every subscriber has it.
> It speaks IronMQ v3, the Spree hub protocol v5, Cumulocity Notifications 2.0 and Svix's webhooks API.

## Pages

- [API reference](/docs): all routes, with examples
- [OpenAPI 3.1](/openapi.json): the same for programs
- [Console](/console): queues, stores and webhooks in a browser; needs a project's token
- [Addresses](/.well-known/webhook-source-ips.json): where the hub calls receivers from, for their firewalls

## APIs

- `/3/projects/PROJECT/`: queues as IronMQ v3, pushed to subscribers or pulled; also alerts, searches, export of traces.
  `Authorization: OAuth TOKEN`. To post: `POST queues/QUEUE/messages` with `{"messages": [{"body": "..."}]}`
- `/api/v1/`: webhooks as Svix: applications, endpoints, event types, messages. `Authorization: Bearer TOKEN`.
  To post: `POST app/APP/msg` with `{"eventType": "...", "payload": {}}`
- `/ingest/api/v1/`: sources, which take in other senders' webhooks, as Svix's ingest. `Authorization: Bearer TOKEN`
- `/api/stores/STORE/`: messages routed to services by mappings, the Spree hub protocol v5. `X-Augury-Token: TOKEN`.
  To post: `POST messages` with `{"message": "...", "payload": {}}`
- `/notification2/`: topics and consumers on WebSockets, Cumulocity Notifications 2.0. Basic (user `PROJECT/ANYBODY`,
  the token as password) or Bearer. To post: `POST notifications`
- `/mcp`: Model Context Protocol, one POST for each request, `Authorization: Bearer TOKEN` (of a project, or of an
  application's portal). Tools to find out why an endpoint gets nothing. With `?writes=true` also tools that send again

## Rules

Every route needs a token, except these pages. A 2xx for a post means stored: the message is delivered, acknowledged,
expired by its own lifetime, or ends in an error queue. Errors say what to do, in the format of the protocol.
"""


def _guide(_: Request) -> Response:
    return Response(status=200, body=GUIDE, headers={**_FOR_AN_HOUR, "Content-Type": "text/plain; charset=utf-8"})


class Documentation:
    """Serves all its paths without authentication."""

    def __init__(self) -> None:
        self._router = Router(
            [
                ("GET", "/openapi.json", _document),
                ("GET", "/api/v1/openapi.json", _webhooks_document),
                ("GET", "/llms.txt", _guide),
            ]
        )

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Answer an API Gateway HTTP API event."""
        return serve(event, answer=self._answer, refused=_refused)

    def _answer(self, request: Request) -> Response:
        try:
            answer, _ = self._router.find(request.method, request.path.rstrip("/"))
        except RequestRefused as error:
            return _refused(error)
        return answer(request)


def _refused(error: RequestRefused) -> Response:
    if isinstance(error, MethodNotAllowed):
        return Response(status=405, body={"error": error.message}, headers={"Allow": ", ".join(error.allowed)})
    return Response(status=404, body={"error": error.message})
