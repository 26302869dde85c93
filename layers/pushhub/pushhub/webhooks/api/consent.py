"""Webhooks API: the URL where endpoints give their consent to receive messages.

CloudEvents' HTTP webhooks, section 4.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid
from pushhub.web.api import Auth, Route
from pushhub.web.http import Response
from pushhub.webhooks.model.refusals import Refused
from pushhub.webhooks.wire.consent import CONSENT

if TYPE_CHECKING:
    from pushhub.webhooks.api.call import WebhooksCall
    from pushhub.webhooks.api.use_cases import WebhooksUseCases

RATE = "webhook-allowed-rate"
PATH = CONSENT + "/{project}/{app}/{endpoint}/{secret}"


def _consent(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    names = call.names
    rate = call.request.headers.get(RATE)
    # Programs use HEAD to preview links that nobody has followed yet.
    give = call.request.method != "HEAD"
    try:
        endpoint = hub.endpoints.consent(
            names["project"], names["app"], names["endpoint"], names["secret"], rate, give=give
        )
    except Invalid as error:
        raise Refused(400, "generic_error", error.message) from error
    return Response(
        status=200,
        body={"consented": not endpoint.awaits_consent, "allowedRate": endpoint.allowed_rate},
        headers={"Cache-Control": "no-store"},
    )


_route = partial(Route, auth=Auth.NONE, summary="Consent to receive webhooks")

POST_NAME = "webhooks.consent"

ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    _route("GET", PATH, _consent, name="webhooks.consent_by_link"),
    _route("POST", PATH, _consent, name=POST_NAME),
)
"""Both methods, as the specification requires: a person may follow the link in a browser."""
