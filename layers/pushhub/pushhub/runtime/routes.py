"""Every HTTP route of the hub, as data for API descriptions and tests. No function imports it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.runtime.hub import PROTOCOLS

if TYPE_CHECKING:
    from pushhub.web.api import Route


def all_routes() -> tuple[Route[Any, Any], ...]:
    """The routes of all protocols."""
    return tuple(route for each in PROTOCOLS for route in each.routes())
