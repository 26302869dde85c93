"""Webhooks API: the URLs of sources, to which senders post. They are public: the path itself is what opens them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.base.signature_check import SignedPost
from pushhub.engine.model.trace import Trace
from pushhub.web.api import Auth, Body, Function, Route
from pushhub.web.http import NO_CONTENT, Response
from pushhub.webhooks.sources.arrivals import Arrived, SourceUrl
from pushhub.webhooks.wire.source import IN

if TYPE_CHECKING:
    from pushhub.webhooks.api.call import WebhooksCall
    from pushhub.webhooks.api.use_cases import WebhooksPostingUseCases

PATH = IN + "/{project}/{source}/{token}"

ORIGIN = "webhook-request-origin"
"""With this a sender of CloudEvents asks whether a URL wants events (CloudEvents' HTTP webhooks, section 4)."""

MESSAGE_ID = "Pushhub-Message-Id"
"""Names the messages that a request became, with commas between; the answer itself is empty, as some senders show
answers to their users.
"""

_SAFE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


def _parts(call: WebhooksCall) -> SourceUrl:
    names = call.names
    return SourceUrl(project=names["project"], source=names["source"], token=names["token"])


def _answer(arrived: Arrived) -> Response:
    named = {MESSAGE_ID: ", ".join(arrived.message_ids)} if arrived.message_ids else {}
    headers = {"Content-Type": arrived.content_type, **_SAFE, **named}
    return Response(status=200, body=arrived.answer, headers=headers)


def _take(hub: WebhooksPostingUseCases, call: WebhooksCall) -> Response:
    request = call.request
    query = f"?{request.raw_query}" if request.raw_query else ""
    received = SignedPost(
        url=f"{hub.base_url}{request.path}{query}", headers=request.headers, body=request.body, at=hub.clock.now()
    )
    arrived = hub.arrivals().take(_parts(call), received, address=request.source_ip, trace=Trace.of(request.headers))
    return _answer(arrived)


def _asked(hub: WebhooksPostingUseCases, call: WebhooksCall) -> Response:
    return _answer(hub.arrivals().asked(_parts(call), dict(call.query)))


def _consent(hub: WebhooksPostingUseCases, call: WebhooksCall) -> Response:
    hub.arrivals().exists(_parts(call))
    origin = call.request.headers.get(ORIGIN, "")
    consented = {"WebHook-Allowed-Origin": "*", "WebHook-Allowed-Rate": "*"} if origin else {}
    return Response(status=NO_CONTENT, body={}, headers={"Allow": "GET, HEAD, OPTIONS, POST", **consented})


_route = partial(Route, auth=Auth.NONE, settings=False)

ROUTES: tuple[Route[WebhooksPostingUseCases, WebhooksCall], ...] = (
    _route(
        "POST",
        PATH,
        _take,
        name="webhooks.take_in",
        summary="Post to a source, as its sender does",
        function=Function.INGEST,
        body=Body.RAW,
    ),
)

ASKING_ROUTES: tuple[Route[WebhooksPostingUseCases, WebhooksCall], ...] = (
    _route(
        "GET",
        PATH,
        _asked,
        name="webhooks.ask_source",
        summary="Ask a source's URL for a challenge, as Meta does",
        query=("hub.mode", "hub.challenge", "hub.verify_token"),
    ),
    _route(
        "OPTIONS",
        PATH,
        _consent,
        name="webhooks.ask_source_consent",
        summary="Ask a source's URL for its consent, as CloudEvents demands",
        status=204,
    ),
)
