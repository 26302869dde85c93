"""Consumers' tokens: issued with a token of the project, and valid as long as that one is, for a year at most."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pushhub.base.errors import Unauthorized
from pushhub.engine.component import Component
from pushhub.engine.projects.suspension import refuse_suspended
from pushhub.notifications.wire.tokens import Claims, Tokens

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.ports import ProjectDirectory
    from pushhub.notifications.wire.requests import TokenRequest

LONGEST_MINUTES = 525_600
"""Longest lifetime of a token in minutes (a year), even if a longer one is requested."""


class ConsumerTokens(Component):
    """Makes and checks tokens."""

    tokens: Tokens  # Signs and verifies them.
    projects: ProjectDirectory  # Knows the projects and their tokens.
    clock: Clock

    def make(self, request: TokenRequest, *, issued_by: str) -> str:
        """Issue a token. Neither topic nor subscriber has to exist: the first connection creates them.

        Args:
            request: The claims requested.
            issued_by: Hash of the project's token that was used to request it.
        """
        now_s = self.clock.now() // 1000
        claims = Claims(
            topic=request.topic,
            subscriber=request.subscriber,
            shared=request.shared,
            issued_at=now_s,
            expires_at=now_s + min(request.minutes, LONGEST_MINUTES) * 60,
            issued_by=issued_by,
            token_id=str(uuid.uuid4()),
        )
        return self.tokens.sign(claims)

    def check(self, token: str) -> Claims:
        """The claims of a token.

        Raises:
            Unauthorized: The token is invalid or has expired, or its project, or the project's token it was issued
                with, no longer exists.
            ProjectSuspended: Its project is suspended.
        """
        claims = self.tokens.check(token, self.clock.now() / 1000)
        project = claims.topic.project
        if self.projects.project(project) is None or self.projects.project_of(claims.issued_by) != project:
            raise Unauthorized("Invalid token")
        refuse_suspended(self.projects, project)
        return claims
