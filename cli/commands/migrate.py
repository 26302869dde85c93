"""``pushhub import``."""

from __future__ import annotations

from collections import Counter

import click

from cli.framework import Command
from cli.hub import HubOptions
from cli.migration import Migration, Outcome, svix_url
from cli.rest import Rest
from cli.terminal import printable


@click.command("import", cls=Command)
@click.option("--from", "source", help="URL of the server; by default Svix's own service in the token's region.")
@click.option(
    "--token",
    envvar="SVIX_TOKEN",
    prompt="Token of the organization there",
    hide_input=True,
    help="The token; by default SVIX_TOKEN, or you are asked for it.",
)
@click.option("--app", help="Id or uid of a single application to copy, along with the event types.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.pass_obj
def migrate(hub: HubOptions, *, source: str | None, token: str, app: str | None, dry_run: bool) -> int:
    """Copy event types, applications and endpoints with their secrets from Svix, or a server that speaks its API.

    What is already the same is left alone, and nothing is deleted, so you can repeat a run that broke off. The exit
    code is 1 if something could not be copied.
    """
    here = hub.rest()
    there = Rest(source or svix_url(token), "", token)
    counts: Counter[tuple[str, Outcome]] = Counter()
    for each in Migration(there=there, here=here, dry=dry_run).run(app):
        counts[each.kind, each.outcome] += 1
        if each.outcome is not Outcome.SAME or each.note:
            fields = {"kind": each.kind, "name": each.name, "outcome": each.outcome.value, "note": each.note}
            note = f" ({printable(each.note)})" if each.note else ""
            hub.event(fields, f"{each.kind} {printable(each.name)}: {each.outcome}{note}")
    kinds = dict.fromkeys(kind for kind, _ in counts)
    totals = ("; ".join(f"{kind}s: {_counted(counts, kind)}" for kind in kinds)) or "nothing is there"
    hub.note(f"{'would be, as this was a dry run: ' if dry_run else ''}{totals}")
    return 1 if any(outcome is Outcome.FAILED for _, outcome in counts) else 0


def _counted(counts: Counter[tuple[str, Outcome]], kind: str) -> str:
    return ", ".join(f"{counts[kind, each]} {each}" for each in Outcome if counts[kind, each])
