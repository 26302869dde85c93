"""The console function: the static files of the console, which talks to the public APIs from the browser.

It imports no SDK, and its only permission is to write its log.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pushhub.cloud.settings import Setting, Settings, optional_text
from pushhub.web.site import Site, content_security_policy

WEBSOCKET_URL = optional_text("WEBSOCKET_URL")
"""Where consumers of notifications connect; empty means the base URL, which serves them too then."""
SETTINGS: tuple[Setting[Any], ...] = (WEBSOCKET_URL,)
PATH = "/console"


def site_beside(handler: str) -> Callable[[dict[str, Any], object], dict[str, Any]]:
    """A handler for the console's requests that serves the files in ``static`` beside the given handler file.

    Args:
        handler: The handler's ``__file__``.

    Raises:
        MissingSettingError: A setting is unusable.
    """
    websocket = Settings(SETTINGS)[WEBSOCKET_URL]
    site = Site(
        Path(handler).with_name("static"),
        path=PATH,
        policy=content_security_policy(connect=(_origin(websocket),) if websocket else ()),
        configuration={"websocket": websocket},
    )

    def answer(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001 (Lambda passes both)
        return site.answer(event)

    return answer


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
