"""A suspended project can be looked at, and nothing else: nothing is taken from it, sent for it, or handed to anybody.

Requests are refused here. Attempts ask :class:`pushhub.engine.projects.copies.CopiedProjects`
(docs/decisions/projects.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import ProjectSuspended

if TYPE_CHECKING:
    from pushhub.engine.ports import ProjectStore

KNOWN_WITHIN_MS = 3_000
"""How old a copy of a project may be that a request is admitted by, milliseconds."""


def is_suspended(projects: ProjectStore, project_id: str) -> bool:
    """Whether a project is suspended, as it was three seconds ago or later."""
    project = projects.project(project_id, within_ms=KNOWN_WITHIN_MS)
    return project is not None and project.suspended


def refuse_suspended(projects: ProjectStore, project_id: str) -> None:
    """Refuse what a suspended project may not do.

    Raises:
        ProjectSuspended: It is suspended.
    """
    if is_suspended(projects, project_id):
        raise ProjectSuspended
