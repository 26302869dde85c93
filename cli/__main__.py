"""``python -m cli``: projects and their tokens."""

from __future__ import annotations

import sys
from typing import Any

import click

from cli.durations import Duration
from cli.hub import HubOptions
from pushhub.base.errors import HubError
from pushhub.base.times import iso_time
from pushhub.cloud.clock import SystemClock
from pushhub.engine.model.queue import Project, ProjectToken

HOUR_MS = 3_600_000


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--stack", help="Name of a deployed stack. Without it: the stack on this machine.")
@click.option("--profile", help="Profile of your AWS configuration.")
@click.option("--region", help="Region of the deployed stack.")
@click.option("--json", "as_json", is_flag=True, help="Print results as JSON.")
@click.pass_context
def main(context: click.Context, *, stack: str | None, profile: str | None, region: str | None, as_json: bool) -> None:
    """Operate a Pushhub: the one on this machine, or a deployed one (--stack NAME)."""
    context.obj = HubOptions(stack, profile, region, as_json)


@main.group()
def projects() -> None:
    """Tenants: each owns its queues, stores, topics and tokens."""


@projects.command("make")
@click.argument("name")
@click.option(
    "--allow", multiple=True, help="A host or network behind the egress guard that it may push to. Repeatable."
)
@click.pass_obj
def make_project(hub: HubOptions, name: str, allow: tuple[str, ...]) -> None:
    """Make a project with one token, which is shown this once."""
    service = hub.projects()
    project = service.make(name, allowed_targets=allow)
    hub.show([_project(project) | {"token": service.make_token(project.project_id, "first")}])


@projects.command("list")
@click.pass_obj
def list_projects(hub: HubOptions) -> None:
    """All projects, oldest first."""
    hub.show([_project(each) for each in hub.projects().projects()])


@projects.command("rename")
@click.argument("project")
@click.argument("name")
@click.pass_obj
def rename_project(hub: HubOptions, project: str, name: str) -> None:
    """Give a project another name."""
    hub.show([_project(hub.projects().rename(project, name))])


@projects.command("allow")
@click.argument("project")
@click.argument("targets", nargs=-1)
@click.pass_obj
def allow_targets(hub: HubOptions, project: str, targets: tuple[str, ...]) -> None:
    """Set the hosts or networks behind the egress guard that a project may push to; none closes all.

    Functions that know the project may go by its old list for another 30 seconds.
    """
    hub.show([_project(hub.projects().allow(project, targets))])


@main.group()
def tokens() -> None:
    """Tokens of a project. The hub keeps a hash only: a token is shown once, when it is made."""


@tokens.command("make")
@click.argument("project")
@click.option("--label", default="", help="To know it by later.")
@click.option("--expires", type=Duration(), help="How long it acts: 90d, 12h, 30m. Without it: until it is revoked.")
@click.pass_obj
def make_token(hub: HubOptions, project: str, label: str, expires: int | None) -> None:
    """Make a token."""
    expires_at = None if expires is None else SystemClock().now() + expires
    hub.show(
        [
            {
                "project": project,
                "label": label,
                "token": hub.projects().make_token(project, label, expires_at=expires_at),
            }
        ]
    )


@tokens.command("list")
@click.argument("project")
@click.pass_obj
def list_tokens(hub: HubOptions, project: str) -> None:
    """Tokens of a project, expired ones among them, oldest first."""
    hub.show([_token(each) for each in hub.projects().tokens(project)])


@tokens.command("revoke")
@click.argument("project")
@click.argument("token_id")
@click.pass_obj
def revoke_token(hub: HubOptions, project: str, token_id: str) -> None:
    """Take a token back. Functions that know it may accept it for another 30 seconds."""
    hub.show([_token(hub.projects().revoke_token(project, token_id))])


@tokens.command("rotate")
@click.argument("project")
@click.argument("token_id")
@click.option(
    "--overlap", type=Duration(), default=HOUR_MS, help="How long the old one still acts; an hour by default."
)
@click.pass_obj
def rotate_token(hub: HubOptions, project: str, token_id: str, overlap: int) -> None:
    """Make a token in place of another; both act for a while."""
    hub.show([{"project": project, "token": hub.projects().rotate_token(project, token_id, overlap_ms=overlap)}])


def _project(project: Project) -> dict[str, Any]:
    return {
        "project": project.project_id,
        "name": project.name,
        "created": iso_time(project.created_at),
        "allowed_targets": list(project.allowed_targets),
    }


def _token(token: ProjectToken) -> dict[str, Any]:
    return {
        "token_id": token.token_id,
        "label": token.label,
        "created": iso_time(token.created_at),
        "expires": None if token.expires_at is None else iso_time(token.expires_at),
    }


def run(arguments: list[str] | None = None) -> int:
    """Run a command; its exit code. Errors of the hub are said in a line."""
    try:
        main(args=arguments, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except HubError as error:
        click.echo(f"Error: {error}", err=True)
        return 1
    except click.Abort:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(run())
