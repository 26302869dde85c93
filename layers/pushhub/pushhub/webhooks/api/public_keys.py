"""Webhooks API: the public keys that receivers verify signatures with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.web.api import Auth, Route
from pushhub.web.http import Response
from pushhub.webhooks.wire.public_keys import PUBLIC_KEYS, key_set

if TYPE_CHECKING:
    from pushhub.webhooks.api.call import WebhooksCall
    from pushhub.webhooks.api.use_cases import WebhooksUseCases

KEPT_S = 300
"""How long a receiver may cache them, seconds; if none of them verifies a signature, it should fetch them again at
once.
"""


def _show(hub: WebhooksUseCases, call: WebhooksCall) -> Response:
    names = call.names
    keys = hub.endpoints.public_keys(names["project"], names["app"], names["endpoint"])
    return Response(status=200, body=key_set(keys), headers={"Cache-Control": f"public, max-age={KEPT_S}"})


ROUTES: tuple[Route[WebhooksUseCases, WebhooksCall], ...] = (
    Route(
        "GET",
        PUBLIC_KEYS + "/{project}/{app}/{endpoint}",
        _show,
        name="webhooks.show_public_keys",
        summary="Show the public keys for the signatures of an endpoint's requests",
        auth=Auth.NONE,
    ),
)
