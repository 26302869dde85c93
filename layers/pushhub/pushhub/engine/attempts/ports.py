"""What attempts need from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    pass


class AttemptProjects(Protocol):
    """Projects, as attempts go by them."""

    def is_suspended(self, project_id: str, *, since: int) -> bool:
        """Whether a project is suspended, with every change that was made before the given time (epoch milliseconds) or
        half a second ago.
        """

    def exports_spans(self, project_id: str) -> bool:
        """Whether a project exports spans of its attempts; may be half a minute old."""
