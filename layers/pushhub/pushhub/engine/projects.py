"""Making projects and their tokens (for the operator's command line; there is no HTTP way to do this)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Protocol

from pushhub.base.errors import NotFound
from pushhub.base.ports import Clock
from pushhub.engine.model.queue import Project
from pushhub.engine.ports import ProjectStore, TokenStore
from pushhub.engine.tokens import token_hash

TOKEN_BYTES = 24
"""Randomness of a token, written as 32 characters."""


def allowed_targets(projects: ProjectStore, project_id: str) -> tuple[str, ...]:
    """Hosts or networks behind the egress guard that a project may reach."""
    project = projects.project(project_id)
    return project.allowed_targets if project else ()


class _Config(ProjectStore, TokenStore, Protocol):
    """Projects and their tokens."""


class Projects:
    """Makes projects and tokens.

    Args:
        config: Where they are kept.
        clock: Time.
    """

    def __init__(self, *, config: _Config, clock: Clock) -> None:
        self._config = config
        self._clock = clock

    def make(self, name: str = "", *, allowed_targets: Sequence[str] = ()) -> Project:
        """Make a project with a new id of 24 hex characters.

        Args:
            name: For people.
            allowed_targets: Hosts or networks behind the egress guard that it may push to.
        """
        project = Project(
            project_id=secrets.token_hex(12),
            name=name,
            created_at=self._clock.now(),
            allowed_targets=tuple(allowed_targets),
        )
        self._config.put_project(project)
        return project

    def make_token(self, project_id: str, label: str = "") -> str:
        """Make a token for a project. It is returned this once; only its hash is kept.

        Args:
            project_id: The project.
            label: For people, to know it by later.

        Raises:
            NotFound: No such project.
        """
        if self._config.project(project_id) is None:
            raise NotFound("Project not found")
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._config.put_token(project_id, token_hash(token), label, self._clock.now())
        return token

    def revoke_token(self, project_id: str, token: str) -> None:
        """Take a token back; one that does not exist is ignored."""
        self._config.remove_token(project_id, token_hash(token))
