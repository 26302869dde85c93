"""The pages of other origins that may show the portal of an application in a frame."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pushhub.base.ids import is_project_id
from pushhub.egress.url import InvalidTarget, wire_url
from pushhub.webhooks.model.ids import is_application

MAX_ORIGINS = 20
MAX_ORIGIN_LENGTH = 255
_HOST = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*"
_LOCAL = r"localhost|127\.0\.0\.1|\[::1\]"
_ORIGIN = re.compile(rf"(?:https://(?:{_HOST}|\[[0-9a-f:]+\])|http://(?:{_LOCAL}))(?::[1-9][0-9]{{0,4}})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class PortalFrame:
    """Who may show a portal in a frame.

    Attributes:
        app_id: The application; empty for all applications of the project that have no frame of their own.
        origins: Of the pages, as browsers write them.
    """

    project: str
    app_id: str = ""
    origins: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The public id in the portal's URL. It opens nothing."""
        return f"{self.project}.{self.app_id}" if self.app_id else self.project


def frame_named(name: str) -> PortalFrame | None:
    """The frame that a public id names, without its origins; None for a text that names none."""
    project, dot, app_id = name.partition(".")
    if not is_project_id(project) or (dot and not is_application(app_id)):
        return None
    return PortalFrame(project=project, app_id=app_id)


def is_origin(text: str) -> bool:
    """Whether a text is an origin that may be allowed: https, or http on the machine itself; written as browsers do,
    without a default port; no path and no wildcard.
    """
    found = _ORIGIN.fullmatch(text) if len(text) <= MAX_ORIGIN_LENGTH else None
    if found is None:
        return False
    try:
        # Browsers shorten addresses: what says the same in another way is no page's origin.
        return wire_url(text) == f"{text}/"
    except InvalidTarget:
        return False
