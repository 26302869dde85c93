"""``pushhub audit``: who changed what in a project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from pushhub.base.times import iso_time
from pushhub.cloud.audit_trail import OPERATORS, UNKNOWN, S3AuditTrail
from pushhub.cloud.clock import SystemClock
from pushhub.web.audit import joined

from ..archive.holdings import PROJECT_ID
from ..durations import Duration
from ..framework import Command
from ..hub import HubOptions
from ..operators.deployment import deployment

WEEK_MS = 7 * 86_400_000


@click.command(cls=Command)
@click.argument("project")
@click.option("--since", type=Duration(), default=WEEK_MS, help="How far back to begin: 12h, 30d. Default: 7d.")
@click.option("--action", help="Only this action, or those that begin with it: ironmq.put_queue, webhooks.")
@click.pass_obj
def audit(hub: HubOptions, project: str, since: int, action: str | None) -> None:
    """Show who changed what in a PROJECT, when, from where, and how it ended; with --json, before and after, too.

    For hubs that keep an audit trail (AuditTrail). Operators' commands about the project are among them; "operators" in
    place of a project: all of these. "unknown" in place of a project: requests that carried only a token
    of a consumer. A status of "?" means that it is not known how it ended.
    """
    if not (PROJECT_ID.fullmatch(project) or project in (UNKNOWN, OPERATORS)):
        raise click.UsageError(f"{project} is no project's id")
    found = deployment(hub)
    now = SystemClock().now()
    trail = S3AuditTrail(found.client("s3"), found.outputs["RecordsBucketName"])
    # Times of functions may be a little ahead.
    between = iso_time(now - since), iso_time(now + 60_000)
    entries = [*trail.read(project, *between)]
    if project != OPERATORS:
        entries += [each for each in trail.read(OPERATORS, *between) if each["project"] == project]
    changes = [each for each in joined(entries) if each["action"].startswith(action or "")]
    changes.sort(key=lambda each: str(each["at"]))
    hub.show(changes if hub.as_json else map(_line, changes))


def _line(change: Mapping[str, Any]) -> dict[str, Any]:
    by = change["by"]
    who = " ".join(part for part in (by["kind"], by["token"], by.get("app", ""), by.get("arn", "")) if part)
    status = "?" if change["status"] is None else change["status"]
    created = f" -> {change['made']}" if change.get("made") else ""
    return {
        "at": change["at"],
        "by": who,
        "from": change["from"]["address"],
        "action": change["action"],
        "what": f"{change['what']}{created}",
        "status": status,
    }
