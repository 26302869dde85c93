"""The console function: the static files of the console and of the API reference, which ask the public APIs from the
browser.

It may write its log, and read who may show portals in frames: nothing else. Only for the second it imports an SDK.
"""

# ruff: noqa: PLC0415 (the SDK is imported when a portal in a frame is asked for)

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pushhub.base.errors import Unavailable
from pushhub.cloud.settings import EnvironmentSetting, Settings, optional_text
from pushhub.web.site import Framed, Site, content_security_policy

if TYPE_CHECKING:
    from pushhub.webhooks.model.portal_frame import PortalFrame
    from pushhub.webhooks.store.dynamodb_portal_frames import DynamoDBPortalFrames

WEBSOCKET_URL = optional_text("WEBSOCKET_URL")
"""Where consumers of notifications connect; empty means the base URL, which serves them too then."""
WEBHOOKS_TABLE = optional_text("WEBHOOKS_TABLE")
"""Where it is kept who may show portals in frames; empty means that nobody may."""
SETTINGS: tuple[EnvironmentSetting[Any], ...] = (WEBSOCKET_URL, WEBHOOKS_TABLE)
PATH = "/console"
REFERENCE = "/docs"
"""Where the API reference is: ``/openapi.json`` in a viewer."""
KEPT_S = 10.0
MOST_KEPT = 1_000

_log = logging.getLogger("pushhub.console")


def site_beside(handler: str) -> Callable[[dict[str, Any], object], dict[str, Any]]:
    """A handler for the console's requests that serves the files in ``static`` beside the given handler file, and for
    those of the API reference the files in ``reference``.

    Args:
        handler: The handler's ``__file__``.

    Raises:
        MissingSettingError: A setting is unusable.
    """
    settings = Settings(SETTINGS)
    websocket = settings[WEBSOCKET_URL]
    connect = (_origin(websocket),) if websocket else ()
    frames = _Frames(settings[WEBHOOKS_TABLE], connect)
    site = Site(
        Path(handler).with_name("static"),
        path=PATH,
        policy=content_security_policy(connect=connect),
        configuration={"websocket": websocket},
        framed=frames.framed,
    )

    @cache
    def reference() -> Site:
        # Its viewer has inline styles and images, and makes markup of the descriptions (docs/decisions/interfaces.md).
        policy = content_security_policy(inline=True, markup=("lit-html",))
        return Site(Path(handler).with_name("reference"), path=REFERENCE, policy=policy, configuration={})

    def answer(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001 (Lambda passes both)
        path = str(event.get("rawPath", ""))
        asked = reference() if path == REFERENCE or path.startswith(f"{REFERENCE}/") else site
        return asked.answer(event)

    return answer


class _Frames:
    """Who may show portals in frames. What was read is known for ten seconds."""

    def __init__(self, table: str, connect: tuple[str, ...]) -> None:
        self._table = table
        self._connect = connect
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}

    def framed(self, name: str) -> Framed | None:
        """The page at the address of a frame. Nobody may show it if that cannot be read now, or is not stored."""
        from pushhub.webhooks.model.portal_frame import frame_named

        wanted = frame_named(name)
        if wanted is None:
            return None
        known = self._known.get(name)
        if known is None or known[0] < monotonic():
            if len(self._known) >= MOST_KEPT:
                self._known.clear()
            try:
                known = self._known[name] = monotonic() + KEPT_S, self._read(wanted) if self._table else ()
            except Unavailable:
                _log.exception("who may show portals in frames cannot be read")
                known = 0.0, ()
        origins = known[1]
        return Framed(origins=origins, policy=content_security_policy(connect=self._connect, framers=origins))

    def _read(self, wanted: PortalFrame) -> tuple[str, ...]:
        return self._store.frame(wanted).origins

    @cached_property
    def _store(self) -> DynamoDBPortalFrames:
        from pushhub.cloud.clients import Clients
        from pushhub.cloud.clock import SystemClock
        from pushhub.webhooks.store.dynamodb_portal_frames import DynamoDBPortalFrames

        return DynamoDBPortalFrames(Clients().of("dynamodb"), self._table, SystemClock())


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
