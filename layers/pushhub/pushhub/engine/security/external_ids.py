"""External ids: what a role of another account demands before it lets the hub in, so that nobody can have the hub use
somebody else's role (AWS, "The confused deputy problem").

A project has one, and each of its webhooks' applications, sources and streams another one: they are different
customers. The hub makes them; nobody can choose one, or guess another's from his own.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from pushhub.engine.component import Component

if TYPE_CHECKING:
    from pushhub.engine.ports import ProjectStore

_OWNERS = ("/app_", "/src_", "/strm_")
_OPERATIONAL = "/app_" + "0" * 27


class ExternalIds(Component):
    """Tells external ids."""

    projects: ProjectStore
    account: str  # The account that the hub runs in, twelve digits.

    def of(self, project_id: str, queue: str = "") -> str:
        """The external id with which roles are assumed for a queue: that of its application, source or
        stream, or the project's.

        Empty if there is no such project.

        Args:
            queue: Its name; empty for the project's.
        """
        project = self.projects.project(project_id)
        if project is None or not project.external_secret:
            return ""
        own = any(each in queue for each in _OWNERS) and not queue.endswith(_OPERATIONAL)
        owner = f"{project_id}/{queue if own else ''}"
        return hmac.new(project.external_secret.encode(), owner.encode(), hashlib.sha256).hexdigest()[:40]

    @property
    def principal(self) -> str:
        """Who has to be let in, for the trust policy of a role."""
        return f"arn:aws:iam::{self.account}:root"
