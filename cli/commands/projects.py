"""``pushhub projects``."""

from __future__ import annotations

from typing import Any

import click

from pushhub.base.times import iso_time
from pushhub.engine.model.project import Project
from pushhub.engine.model.quota import Quota

from ..dry import changes
from ..framework import Group
from ..hub import HubOptions
from ..operator import close_consumers, projects_of

MOST_PER_SECOND = 1_000_000


class _Rate(click.ParamType[int | None]):
    """Messages per second; ``none`` for 0, ``default`` for None."""

    name = "rate"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        """The rate."""
        if value == "default":
            return None
        if value == "none":
            return 0
        if not (value.isascii() and value.isdigit() and 1 <= int(value[:8]) <= MOST_PER_SECOND):
            self.fail(f"{value} is neither 1 to {MOST_PER_SECOND}, nor none, nor default", param, ctx)
        return int(value)


@click.group(cls=Group)
def projects() -> None:
    """Tenants: each owns its queues, stores, topics and tokens."""


@projects.command("make")
@click.argument("name")
@click.option("--allow", multiple=True, help="A host or network that the egress guard lets it push to. Repeatable.")
@changes
@click.pass_obj
def make_project(hub: HubOptions, name: str, allow: tuple[str, ...]) -> None:
    """Create a project with one token, which is shown only this once."""
    service = projects_of(hub)
    project = service.make(name, allowed_targets=allow)
    hub.show([_shown(project) | {"token": service.make_token(project.project_id, "first")}])


@projects.command("list")
@click.pass_obj
def list_projects(hub: HubOptions) -> None:
    """List all projects, oldest first."""
    hub.show([_shown(each) for each in projects_of(hub).projects()])


@projects.command("rename")
@click.argument("project")
@click.argument("name")
@changes
@click.pass_obj
def rename_project(hub: HubOptions, project: str, name: str) -> None:
    """Rename a project."""
    hub.show([_shown(projects_of(hub).rename(project, name))])


@projects.command("allow")
@click.argument("project")
@click.argument("targets", nargs=-1)
@changes
@click.pass_obj
def allow_targets(hub: HubOptions, project: str, targets: tuple[str, ...]) -> None:
    """Set the hosts or networks that the egress guard lets a project push to; without any, only public addresses.

    Functions that have cached the project may use its old list for another 30 seconds.
    """
    hub.show([_shown(projects_of(hub).allow(project, targets))])


@projects.command("quota")
@click.argument("project")
@click.argument("per_second", type=_Rate(), metavar="MESSAGES_PER_SECOND|none|default")
@click.option("--burst", type=click.IntRange(1, 10_000_000), help="Messages that may come at once: ten seconds' worth.")
@changes
@click.pass_obj
def limit_project(hub: HubOptions, project: str, per_second: int | None, burst: int | None) -> None:
    """Set how many messages a project's producers may post: a rate, none (no limit), or default (the stack's).

    Functions that have cached the project may use its old quota for another 30 seconds.
    """
    quota = None if per_second is None else Quota.of(per_second, burst)
    hub.show([_shown(projects_of(hub).limit(project, quota))])


@projects.command("suspend")
@click.argument("project")
@changes
@click.pass_obj
def suspend_project(hub: HubOptions, project: str) -> None:
    """Suspend a project: its posts are refused, its deliveries held, its consumers' connections closed.

    This is so within five seconds, after which the command ends. Its owner may still look at everything. Nothing is
    lost, except what expires meanwhile.
    """
    suspended = projects_of(hub).suspend(project)
    close_consumers(hub)
    hub.show([_shown(suspended)])


@projects.command("resume")
@click.argument("project")
@changes
@click.pass_obj
def resume_project(hub: HubOptions, project: str) -> None:
    """End the suspension of a project: what was held is sent from the next minute on, oldest first."""
    hub.show([_shown(projects_of(hub).resume(project))])


def _shown(project: Project) -> dict[str, Any]:
    return {
        "project": project.project_id,
        "name": project.name,
        "created": iso_time(project.created_at),
        "allowed_targets": list(project.allowed_targets),
        "quota": _quota(project.quota),
        "suspended": None if project.suspended_at is None else iso_time(project.suspended_at),
    }


def _quota(quota: Quota | None) -> str:
    if quota is None:
        return "default"
    return f"{quota.per_second}/s, {quota.burst} at once" if quota.per_second else "none"
