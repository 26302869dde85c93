"""What is specific to the REST API of Notifications 2.0: authentication and error format."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import RequestRefused, Unauthorized
from pushhub.engine.projects.suspension import refuse_suspended
from pushhub.engine.projects.tokens import TOKEN_ID, is_allowed, token_hash
from pushhub.notifications.api.call import NotificationsCall
from pushhub.notifications.wire.errors import (
    CONSUMER_CHALLENGE,
    ERROR_TYPE,
    BacklogFull,
    error_body,
    fault_body,
    status_of,
)
from pushhub.web.api import Auth, Dialect, Route
from pushhub.web.audit import Identity
from pushhub.web.http import Request, Response
from pushhub.web.json import MAX_REQUEST_BYTES

if TYPE_CHECKING:
    from pushhub.engine.ports import ProjectDirectory


class BadCredentials(Unauthorized):
    """The caller's credentials belong to no tenant."""

    def __init__(self) -> None:
        super().__init__("Invalid credentials! : Bad credentials")


class NotificationsDialect(Dialect[NotificationsCall]):
    """Notifications 2.0: Basic or Bearer credentials, and errors as ``{"error", "message", "info"}``."""

    max_request_bytes = MAX_REQUEST_BYTES

    def __init__(self, config: ProjectDirectory) -> None:
        self._config = config

    def path(self, request: Request) -> str:
        """The path without a trailing slash, which some clients add."""
        return request.path.rstrip("/") or "/"

    def admit(
        self, route: Route[Any, NotificationsCall], request: Request, names: Mapping[str, str]
    ) -> NotificationsCall:
        """Admit a tenant, or anyone if the request's own token is enough."""
        if route.auth is not Auth.PROJECT:
            return NotificationsCall(request=request, names=names, project="")
        project, issued_by = self._tenant(request.headers.get("authorization", ""))
        if not route.only_looks:
            refuse_suspended(self._config, project)
        return NotificationsCall(request=request, names=names, project=project, issued_by=issued_by)

    def _tenant(self, authorization: str) -> tuple[str, str]:
        """The project a request acts for, and the hash of its token: Basic ``project/user:token``, or Bearer ``token``.

        Raises:
            BadCredentials: Neither, or a token that is not the project's.
        """
        scheme, _, credentials = authorization.strip().partition(" ")
        project: str | None = None
        token = credentials.strip()
        if scheme.lower() == "bearer" and token:
            project = self._config.project_of(token_hash(token))
        elif scheme.lower() == "basic":
            try:
                user, _, token = base64.b64decode(credentials, validate=True).decode().partition(":")
            except (binascii.Error, ValueError) as error:
                raise BadCredentials from error
            project = user.partition("/")[0]
        if project is None or not is_allowed(self._config, project, token):
            raise BadCredentials
        return project, token_hash(token)

    def identity(self, call: NotificationsCall) -> Identity:
        """The tenant's token; a consumer's own names no tenant here."""
        return Identity(project=call.project, kind="token" if call.project else "link", token=call.issued_by[:TOKEN_ID])

    def refused(self, error: RequestRefused) -> Response:
        """Always with a ``message``, which every client reads without checking that it exists."""
        headers = {"Content-Type": ERROR_TYPE}
        if isinstance(error, BacklogFull) and error.key:
            headers["Idempotency-Key"] = error.key
        return Response(status=status_of(error), body=error_body(error), headers=headers)

    def challenge(self, request: Request, error: Unauthorized) -> str:
        """Basic first, as some clients read no further; ``XBasic`` for web applications that request it so that
        browsers show no dialog.
        """
        if not isinstance(error, BadCredentials):
            return CONSUMER_CHALLENGE
        basic = "XBasic" if request.headers.get("usexbasic", "").strip().lower() == "true" else "Basic"
        return f'{basic} realm="pushhub", Bearer realm="pushhub"'

    def failed(self) -> Response:
        """A 500."""
        return Response(status=500, body=fault_body(), headers={"Content-Type": ERROR_TYPE})

    def options(self) -> Response:
        """Answered without credentials, too."""
        return Response(status=200, body={})
