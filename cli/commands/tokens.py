"""``pushhub tokens``."""

from __future__ import annotations

from typing import Any

import click

from pushhub.base.times import iso_time
from pushhub.cloud.clock import SystemClock
from pushhub.engine.model.project import ProjectToken

from ..dry import changes
from ..durations import Duration
from ..framework import Group
from ..hub import HubOptions
from ..operators.deployment import projects_of

HOUR_MS = 3_600_000


@click.group(cls=Group)
def tokens() -> None:
    """Tokens of a project. The hub keeps only a hash: a token is shown once, when it is created."""


@tokens.command("make")
@click.argument("project")
@click.option("--label", default="", help="A name to recognise it by.")
@click.option("--expires", type=Duration(), help="How long it is valid: 90d, 12h, 30m. By default until it is revoked.")
@changes
@click.pass_obj
def make_token(hub: HubOptions, project: str, label: str, expires: int | None) -> None:
    """Create a token."""
    expires_at = None if expires is None else SystemClock().now() + expires
    token = projects_of(hub).make_token(project, label, expires_at=expires_at)
    hub.show([{"project": project, "label": label, "token": token}])


@tokens.command("list")
@click.argument("project")
@click.pass_obj
def list_tokens(hub: HubOptions, project: str) -> None:
    """List the tokens of a project, including expired ones, oldest first."""
    hub.show([_shown(each) for each in projects_of(hub).tokens(project)])


@tokens.command("revoke")
@click.argument("project")
@click.argument("token_id")
@changes
@click.pass_obj
def revoke_token(hub: HubOptions, project: str, token_id: str) -> None:
    """Revoke a token. Functions that have cached it may accept it for another 30 seconds."""
    hub.show([_shown(projects_of(hub).revoke_token(project, token_id))])


@tokens.command("rotate")
@click.argument("project")
@click.argument("token_id")
@click.option(
    "--overlap", type=Duration(), default=HOUR_MS, help="How long the old one stays valid; an hour by default."
)
@changes
@click.pass_obj
def rotate_token(hub: HubOptions, project: str, token_id: str, overlap: int) -> None:
    """Create a token to replace another; both are valid for a while."""
    hub.show([{"project": project, "token": projects_of(hub).rotate_token(project, token_id, overlap_ms=overlap)}])


def _shown(token: ProjectToken) -> dict[str, Any]:
    return {
        "token_id": token.token_id,
        "label": token.label,
        "created": iso_time(token.created_at),
        "expires": None if token.expires_at is None else iso_time(token.expires_at),
    }
