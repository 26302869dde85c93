"""What alerts of projects need from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pushhub.ironmq.model.project_alert import ProjectAlert


class AlertStore(Protocol):
    """Alerts of projects."""

    def alerts(self, project_id: str) -> list[ProjectAlert]:
        """A project's alerts, read consistently."""

    def all_alerts(self) -> Iterator[ProjectAlert]:
        """The alerts of all projects; possibly slightly out of date."""

    def alert(self, project_id: str, alert_id: str) -> ProjectAlert | None:
        """One alert, read consistently; None when there is none."""

    def save(self, alert: ProjectAlert) -> ProjectAlert:
        """Write an alert if the stored one still has its version (none is stored when that is 0); returns it with the
        next version.

        Raises:
            Conflict: The stored one has another version, or was removed.
        """

    def remove(self, project_id: str, alert_id: str) -> bool:
        """Remove an alert; returns whether there was one."""
