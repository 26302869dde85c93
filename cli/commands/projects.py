"""``pushhub projects``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pushhub.base.errors import NotFound
from pushhub.base.numerals import digits
from pushhub.base.times import iso_time
from pushhub.cloud.clock import SystemClock
from pushhub.engine.model.project import Project
from pushhub.engine.model.quota import Quota
from pushhub.engine.model.trace import Traces

from ..archive.carried import Folder
from ..archive.erasing import SETTLED_MS
from ..archive.holdings import PROJECT_ID
from ..dry import changes
from ..framework import Group, ask, destructive
from ..hub import HubOptions
from ..operators.deployment import close_consumers, erasing_of, exporting_of, importing_of, projects_of

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
        quota = digits(value, 9)
        if quota is None or not 1 <= quota <= MOST_PER_SECOND:
            self.fail(f"{value} is neither 1 to {MOST_PER_SECOND}, nor none, nor default", param, ctx)
        return quota


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


@projects.command("traces")
@click.argument("project")
@click.argument("traces", type=click.Choice([each.value for each in Traces]))
@changes
@click.pass_obj
def trace_project(hub: HubOptions, project: str, traces: str) -> None:
    """Set to whom the traces (traceparent, tracestate) of a project's producers are passed on.

    Nobody (off), subscribers of its queues and services of its stores (own, as it is at first), or endpoints of its
    applications too (all).

    Functions that have cached the project may go by the old setting for another 30 seconds.
    """
    hub.show([_shown(projects_of(hub).trace(project, Traces(traces)))])


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


@projects.command("delete")
@click.argument("project")
@destructive
@changes
@click.pass_obj
def delete_project(hub: HubOptions, project: str, yes: bool) -> int:
    """Delete a project and everything that is its, and show what was removed and what is left: a proof of erasure.

    It is suspended first, for good. The command may be interrupted and repeated; it has to be run again a quarter of an
    hour after the first time, when nothing can be written for the project any more, and says so. Exit code 1: something
    is left, or may still come.
    """
    if not PROJECT_ID.fullmatch(project):
        raise click.UsageError(f"{project} is no project's id")
    service, erasing = projects_of(hub), erasing_of(hub)
    if hub.dry_run:
        there = erasing.look(project, 0).left
        hub.show([{"place": each, "would remove": there[each]} for each in sorted(there)])
        return 0
    ask(f"Delete the project {project} with all its data? This cannot be undone.", yes=yes)
    try:
        known: Project | None = service.begin_erasure(project)
    except NotFound:
        known = None
    if known is not None and known.erased_since is not None and not _is_silent(known.erased_since):
        close_consumers(hub)
    erased = erasing.run(project, known.created_at if known else 0, _progress)
    places = {**erased.removed, **erased.left}
    hub.show([{"place": each, "removed": erased.removed[each], "left": erased.left[each]} for each in sorted(places)])
    for table, keys in erased.unknown.items():
        click.echo(f"{table}: names the project and is of no known kind: {', '.join(keys[:3])}", err=True)
    if erased.days:
        click.echo(
            f"curated files and reports of {len(erased.days)} days were made from records that are gone now: run the "
            f"report's job with --date-from {erased.days[0]}, then this command again",
            err=True,
        )
    if known is None or known.erased_since is None:
        return 0 if erased.nothing_left else 1
    if not _is_silent(known.erased_since):
        at = iso_time(known.erased_since + SETTLED_MS)
        click.echo(f"something may still be written for it until {at}: run this command again after that", err=True)
        return 1
    if not erased.nothing_left:
        click.echo("something is left: run this command again", err=True)
        return 1
    erasing.finish(project)
    return 0


@projects.command("export")
@click.argument("project")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--with-keys", is_flag=True, help="Signing keys, tokens and passwords, opened. Guard the folder.")
@click.option("--running", is_flag=True, help="Although something may still change; that may be missing, or old.")
@click.pass_obj
def export_project(hub: HubOptions, project: str, folder: Path, with_keys: bool, running: bool) -> int:
    """Export a project with everything that is its: settings, messages, bodies, deliveries, records, changes.

    It has to be suspended for a quarter of an hour, after which nothing changes any more. The command may be
    interrupted and repeated: it goes on where it was. What is sealed stays sealed without --with-keys, for a stack with
    the same key.
    """
    known = next((each for each in projects_of(hub).projects() if each.project_id == project), None)
    if known is None:
        raise NotFound("Project not found")
    silent_since = known.suspended_at if known.suspended_at is not None and _is_silent(known.suspended_at) else None
    if not running and silent_since is None:
        raise click.ClickException(
            f"something may still change: suspend it (pushhub projects suspend {project}), and export it a quarter of "
            "an hour later"
        )
    place = Folder(folder)
    # A run goes on where another one ended only if nothing has changed in between: what was exported of a project that
    # was running, or has been resumed since, is not what it holds now.
    begun = {"project": project, "keys": with_keys, "hub": hub.settings().stack, "suspended_at": silent_since}
    if (place.state() or begun) != begun:
        raise click.ClickException(f"another export was begun in {folder}: {place.state()}; choose another folder")
    if not place.state() and place.files():
        raise click.ClickException(f"{folder} is not empty")
    place.keep(begun)
    counts = exporting_of(hub, place, with_keys=with_keys).run(project, known.created_at, _progress)
    hub.show([{"place": each, "exported": counts[each]} for each in sorted(counts)])
    return 0


@projects.command("import")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@changes
@click.pass_obj
def import_project(hub: HubOptions, folder: Path) -> int:
    """Import an exported project, with the same ids. It is suspended here until it is resumed.

    The command may be interrupted and repeated, as long as the project is suspended. Exit code 1: less was written than
    was exported.
    """
    place = Folder(folder)
    importing = importing_of(hub, place)
    begun = importing.begun
    manifest = importing.check()
    counts: dict[str, int] = manifest["counts"]
    project = manifest["project"]
    there = next((each for each in projects_of(hub).projects() if each.project_id == project), None)
    if there is not None and (not place.state(begun) or not there.suspended or there.erased_since is not None):
        raise click.ClickException(f"there is a project {project} already, which this does not go on to import")
    if hub.dry_run:
        hub.show([{"place": each, "would import": counts[each]} for each in sorted(counts)])
        return 0
    if there is None:
        place.keep({"project": project}, begun)
    # So that the audit trail says whose data it was.
    click.get_current_context().params["project"] = project
    done = importing.run(manifest, _progress)
    hub.show([{"place": each, "exported": counts[each], "imported": done[each]} for each in sorted(counts)])
    return 0 if all(done[each] == counts[each] for each in counts) else 1


def _progress(done: str) -> None:
    click.echo(f"done: {done}", err=True)


def _is_silent(since: int) -> bool:
    return SystemClock().now() - since >= SETTLED_MS


def _shown(project: Project) -> dict[str, Any]:
    return {
        "project": project.project_id,
        "name": project.name,
        "created": iso_time(project.created_at),
        "allowed_targets": list(project.allowed_targets),
        "quota": _quota(project.quota),
        "traces": project.traces.value,
        "suspended": None if project.suspended_at is None else iso_time(project.suspended_at),
    }


def _quota(quota: Quota | None) -> str:
    if quota is None:
        return "default"
    return f"{quota.per_second}/s, {quota.burst} at once" if quota.per_second else "none"
