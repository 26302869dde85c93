"""The webhooks API (``/api/v1/...``, Svix API v1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.web.api import Api, Function, Route
from pushhub.web.http import Response
from pushhub.webhooks.api import (
    applications,
    arrivals,
    attempts,
    autoconfigs,
    connectors,
    consent,
    destinations,
    endpoints,
    environment,
    event_types,
    gates,
    health,
    integrations,
    messages,
    poller,
    portal,
    posting,
    public_keys,
    sources,
    stream_access,
    stream_event_types,
    stream_sinks,
    streams,
    tasks,
    transformations,
)
from pushhub.webhooks.api.call import WebhooksCall
from pushhub.webhooks.api.use_cases import WebhooksUseCases
from pushhub.webhooks.ports import KeptAnswer

if TYPE_CHECKING:
    from pushhub.webhooks.api.dialect import WebhooksDialect

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    *health.ROUTES,
    *applications.ROUTES,
    *endpoints.ROUTES,
    *destinations.ROUTES,
    *gates.ROUTES,
    *transformations.ROUTES,
    *public_keys.ROUTES,
    *consent.ROUTES,
    *event_types.ROUTES,
    *portal.ROUTES,
    *integrations.ROUTES,
    *autoconfigs.ROUTES,
    *connectors.ROUTES,
    *environment.ROUTES,
    *endpoints.OPERATIONAL_ROUTES,
    *tasks.ROUTES,
    *poller.ROUTES,
    *sources.ROUTES,
    *stream_access.ROUTES,
    *stream_event_types.ROUTES,
    *streams.ROUTES,
    *stream_sinks.ROUTES,
    *arrivals.ROUTES,
    *arrivals.ASKING_ROUTES,
    *posting.ROUTES,
    *messages.ROUTES,
    *attempts.ROUTES,
)
"""Every route of the webhooks API; if two paths match, the first one wins."""

_UNKEPT = frozenset({consent.POST_NAME}).union(
    *(each.UNKEPT for each in (portal, tasks, sources, stream_access, stream_sinks, transformations))
)
"""POSTs whose answers are not kept for repeated requests."""

_SECRET_ANSWERS = frozenset().union(
    *(
        each.SECRET_ANSWERS
        for each in (autoconfigs, destinations, endpoints, integrations, sources, stream_access, stream_sinks)
    )
)

Handler = Callable[[WebhooksUseCases, WebhooksCall], Response]


class WebhooksApi(Api[WebhooksUseCases, WebhooksCall]):
    """The webhooks API."""

    def __init__(
        self,
        *,
        use_cases: WebhooksUseCases,
        dialect: WebhooksDialect,
        warnings: Callable[[str, bytes], Sequence[str]] | None = None,
    ) -> None:
        routes = (
            replace(each, handler=_once(each.handler, secret=each.name in _SECRET_ANSWERS))
            if each.method == "POST" and each.function is Function.CONTROL and each.name not in _UNKEPT
            else each
            for each in ROUTES
        )
        super().__init__(routes=routes, use_cases=use_cases, dialect=dialect, warnings=warnings)


def _once(handler: Handler, *, secret: bool) -> Handler:
    """A handler whose requests may be repeated with an ``Idempotency-Key``."""

    def handle(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
        key = call.repeatable
        if key is None:
            return handler(hub, call)

        def work() -> KeptAnswer:
            response = handler(hub, call)
            body = json_text.write(response.body, spaced=True)
            return KeptAnswer(status=response.status, body=body, headers=response.headers)

        answer = hub.repeats.run(call.project, key, work, secret=secret)
        body = json_text.read(answer.body, exact=True)
        return Response(status=answer.status, body=body, headers=answer.headers)

    return handle
