"""Where the hub calls receivers from, for their firewalls: ``/.well-known/webhook-source-ips.json``
(docs/decisions/security.md).

Imported only when it is requested; its settings are checked when control starts.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pushhub.cloud.settings import EnvironmentSetting, Settings
from pushhub.web.http import MethodNotAllowed, Request, Response, serve

if TYPE_CHECKING:
    from pushhub.base.errors import RequestRefused

PATH: Final = "/.well-known/webhook-source-ips.json"
VERSION: Final = 1
"""Of the format."""


def _networks(given: str) -> tuple[str, ...]:
    return tuple(str(ipaddress.ip_network(each.strip())) for each in given.split(",") if each.strip())


def _moment(given: str) -> str:
    if not given:
        return ""
    read = datetime.fromisoformat(given)
    if read.tzinfo is None:
        raise ValueError("must have a time zone, such as Z")
    return read.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


ADDRESSES: Final = EnvironmentSetting("SOURCE_ADDRESSES", _networks, optional=True)
"""Addresses that all calls of strangers come from; none if they may come from anywhere."""
NEXT: Final = EnvironmentSetting("NEXT_SOURCE_ADDRESSES", _networks, optional=True)
"""What they will be; none if no change is announced."""
NEXT_FROM: Final = EnvironmentSetting("NEXT_SOURCE_ADDRESSES_FROM", _moment, optional=True)
"""From when on; ISO 8601 with a time zone."""
SETTINGS: tuple[EnvironmentSetting[Any], ...] = (ADDRESSES, NEXT, NEXT_FROM)


class SourceAddresses:
    """Serves the addresses to everybody.

    Raises:
        MissingSettingError: A setting is unusable.
    """

    def __init__(self) -> None:
        settings = Settings(SETTINGS)
        addresses, upcoming = settings[ADDRESSES], settings[NEXT]
        self._document = {
            "version": VERSION,
            "fixed": bool(addresses),
            "prefixes": addresses,
            "upcoming": [{"from": settings[NEXT_FROM] or None, "prefixes": upcoming}] if upcoming else [],
        }

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Answer an API Gateway HTTP API event. Never raises."""
        return serve(event, answer=self._answer, refused=_refused)

    def _answer(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return _refused(MethodNotAllowed(["GET", "HEAD"]))
        # Firewalls of others read it; a day is how far ahead a change has to be announced at least
        headers = {"Cache-Control": "public, max-age=3600", "Access-Control-Allow-Origin": "*"}
        return Response(status=200, body=self._document, headers=headers)


def _refused(error: RequestRefused) -> Response:
    allowed = {"Allow": ", ".join(error.allowed)} if isinstance(error, MethodNotAllowed) else {}
    return Response(status=405 if allowed else 400, body={"error": error.message}, headers=allowed)
