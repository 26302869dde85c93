"""``pushhub projects``."""

from __future__ import annotations

from typing import Any

import click

from cli.framework import Group
from cli.hub import HubOptions
from cli.operator import projects_of
from pushhub.base.times import iso_time
from pushhub.engine.model.project import Project


@click.group(cls=Group)
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
    service = projects_of(hub)
    project = service.make(name, allowed_targets=allow)
    hub.show([_shown(project) | {"token": service.make_token(project.project_id, "first")}])


@projects.command("list")
@click.pass_obj
def list_projects(hub: HubOptions) -> None:
    """All projects, oldest first."""
    hub.show([_shown(each) for each in projects_of(hub).projects()])


@projects.command("rename")
@click.argument("project")
@click.argument("name")
@click.pass_obj
def rename_project(hub: HubOptions, project: str, name: str) -> None:
    """Give a project another name."""
    hub.show([_shown(projects_of(hub).rename(project, name))])


@projects.command("allow")
@click.argument("project")
@click.argument("targets", nargs=-1)
@click.pass_obj
def allow_targets(hub: HubOptions, project: str, targets: tuple[str, ...]) -> None:
    """Set the hosts or networks behind the egress guard that a project may push to; none closes all.

    Functions that know the project may go by its old list for another 30 seconds.
    """
    hub.show([_shown(projects_of(hub).allow(project, targets))])


def _shown(project: Project) -> dict[str, Any]:
    return {
        "project": project.project_id,
        "name": project.name,
        "created": iso_time(project.created_at),
        "allowed_targets": list(project.allowed_targets),
    }
