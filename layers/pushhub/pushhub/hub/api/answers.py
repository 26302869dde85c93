"""Parts that several answers of the hub's API share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.web.http import Response

if TYPE_CHECKING:
    from pushhub.hub.model.integration import Integration
    from pushhub.hub.model.mapping import ServiceMapping

NOTHING = Response(status=200, body={})
"""The answer to a deletion."""


def listed(items: list[dict[str, Any]]) -> Response:
    """A list that is not paged."""
    return Response(status=200, body=items)


def icon_of(mapping: ServiceMapping | None, integrations: list[Integration]) -> str | None:
    """The icon of the endpoint that a mapping belongs to."""
    found = (each for each in integrations if mapping and each.integration_id == mapping.integration_id)
    integration = next(found, None)
    return integration.endpoint.icon_url if integration and integration.endpoint else None
