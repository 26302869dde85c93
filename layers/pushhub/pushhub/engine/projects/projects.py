"""Projects and their tokens, as the operator creates and changes them (there is no HTTP API for this)."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import Conflict, NotFound
from pushhub.engine.component import Component
from pushhub.engine.model.project import Project, ProjectToken
from pushhub.engine.model.reach import Reach, Scope, may_reach
from pushhub.engine.ports import ProjectStore, TokenStore
from pushhub.engine.projects.copies import PROJECT, ChangeNotes
from pushhub.engine.projects.ports import ChangeNoteStore
from pushhub.engine.projects.tokens import token_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pushhub.base.ports import Clock
    from pushhub.engine.model.quota import Quota
    from pushhub.engine.model.trace import Traces

TOKEN_BYTES = 24
"""Randomness of a token, written as 32 characters."""


def allowed_targets(projects: ProjectStore, project_id: str, reach: Reach) -> tuple[str, ...]:
    """Hosts or networks behind the egress guard that the operator opened to a project alone, if the caller who set the
    URL reaches what is the project's.
    """
    if not may_reach(reach, Scope.PROJECT):
        return ()
    project = projects.project(project_id)
    return project.allowed_targets if project else ()


class _Config(ProjectStore, TokenStore, ChangeNoteStore, Protocol):
    """Projects, their tokens, and notes of changes."""


class Projects(Component):
    """Creates projects and tokens. Methods raise ``NotFound`` for what is not there."""

    config: _Config
    clock: Clock

    def __post_init__(self) -> None:
        self._notes = ChangeNotes(self.config, self.clock)

    def make(self, name: str = "", *, allowed_targets: Sequence[str] = ()) -> Project:
        """Create a project with a new id of 24 hex characters.

        Args:
            name: For display.
            allowed_targets: Hosts or networks behind the egress guard that it may push to.
        """
        project = Project(
            project_id=secrets.token_hex(12),
            name=name,
            created_at=self.clock.now(),
            allowed_targets=tuple(allowed_targets),
            external_secret=secrets.token_hex(16),
        )
        self.config.put_project(project)
        return project

    def projects(self) -> list[Project]:
        """All projects, oldest first."""
        return self.config.projects()

    def rename(self, project_id: str, name: str) -> Project:
        """Rename a project."""
        return self.config.change_project(project_id, lambda stored: replace(stored, name=name))

    def allow(self, project_id: str, targets: Sequence[str]) -> Project:
        """Set the hosts or networks behind the egress guard that a project may push to; an empty list allows none."""
        return self.config.change_project(project_id, lambda stored: replace(stored, allowed_targets=tuple(targets)))

    def limit(self, project_id: str, quota: Quota | None) -> Project:
        """Set how many messages a project's producers may post; None for as many as the stack allows each project."""
        return self.config.change_project(project_id, lambda stored: replace(stored, quota=quota))

    def trace(self, project_id: str, traces: Traces) -> Project:
        """Set to whom the traces of a project's producers are passed on."""
        return self.config.change_project(project_id, lambda stored: replace(stored, traces=traces))

    def suspend(self, project_id: str) -> Project:
        """Suspend a project: within three seconds nothing is accepted from it, and within one no attempt begins for it.

        Raises:
            Unavailable: It may not be suspended; call again.
        """

        def suspended(stored: Project) -> Project:
            return stored if stored.suspended else replace(stored, suspended_at=self.clock.now())

        return self._noted(project_id, suspended)

    def resume(self, project_id: str) -> Project:
        """End the suspension of a project. What was held is sent from the next minute on.

        Raises:
            Conflict: It is being erased.
            Unavailable: It may still be suspended; call again.
        """

        def resumed(stored: Project) -> Project:
            if stored.erased_since is not None:
                raise Conflict("The project is being erased")
            return replace(stored, suspended_at=None)

        return self._noted(project_id, resumed)

    def begin_erasure(self, project_id: str) -> Project:
        """Suspend a project for good, because everything that is its is about to be removed.

        Raises:
            Unavailable: It may not be suspended; call again.
        """

        def erased(stored: Project) -> Project:
            if stored.erased_since is not None:
                return stored
            now = self.clock.now()
            at = now if stored.suspended_at is None else stored.suspended_at
            return replace(stored, suspended_at=at, erased_since=now)

        return self._noted(project_id, erased)

    def make_token(self, project_id: str, label: str = "", *, expires_at: int | None = None) -> str:
        """Create a token for a project. It is returned only this once; the hub keeps its hash.

        Args:
            label: For people, to recognize it later.
            expires_at: When it stops working, epoch milliseconds; None for never.
        """
        self._project(project_id)
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self.config.put_token(project_id, token_hash(token), label, self.clock.now(), expires_at=expires_at)
        return token

    def tokens(self, project_id: str) -> list[ProjectToken]:
        """All tokens of a project, oldest first."""
        self._project(project_id)
        return self.config.tokens(project_id)

    def rotate_token(self, project_id: str, token_id: str, *, overlap_ms: int) -> str:
        """Create a token to replace another, with the same label and lifetime. The old one keeps working for a while,
        unless it is revoked meanwhile.

        Args:
            token_id: See :attr:`pushhub.engine.model.project.ProjectToken.token_id`.
            overlap_ms: How long the old one keeps working, unless it expires sooner.

        Raises:
            NotFound: No such project, or it has no such token.
        """
        old, now = self._token(project_id, token_id), self.clock.now()
        life = None if old.expires_at is None else old.expires_at - old.created_at
        new = self.make_token(project_id, old.label, expires_at=None if life is None else now + life)
        self.config.end_token(project_id, old, now + overlap_ms)
        return new

    def revoke_token(self, project_id: str, token_id: str) -> ProjectToken:
        """Revoke a token; functions that have it cached may accept it for another 30 s.

        Raises:
            NotFound: No such project, or it has no such token.
        """
        token = self._token(project_id, token_id)
        self.config.remove_token(project_id, token.token_hash)
        return token

    def _project(self, project_id: str) -> Project:
        project = self.config.project(project_id)
        if project is None:
            raise NotFound("Project not found")
        return project

    def _token(self, project_id: str, token_id: str) -> ProjectToken:
        found = [each for each in self.tokens(project_id) if each.token_id == token_id]
        if not found:
            raise NotFound("Token not found")
        return found[0]

    def _noted(self, project_id: str, change: Callable[[Project], Project]) -> Project:
        """Change a project so that attempts hear of it."""
        self._project(project_id)
        self._notes.note(project_id, PROJECT)
        return self.config.change_project(project_id, change)
