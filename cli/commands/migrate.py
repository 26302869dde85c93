"""``pushhub import``."""

from __future__ import annotations

from collections import Counter

import click

from ..dry import changes
from ..framework import Command
from ..hub import HubOptions
from ..migration import Migration, Outcome, svix_url
from ..terminal import printable


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
@changes
@click.pass_obj
def migrate(hub: HubOptions, *, source: str | None, token: str, app: str | None) -> int:
    """Copy event types, applications and endpoints with their secrets from Svix, or a server that speaks its API.

    What is already the same is left alone, and nothing is deleted, so you can repeat a run that broke off. The exit
    code is 1 if something could not be copied.
    """
    here = hub.rest()
    if source is not None and not source.startswith(("http://", "https://")):
        raise click.UsageError("--from must begin with http:// or https://")
    there = hub.rest_of(source or svix_url(token), "", token)
    counts: Counter[tuple[str, Outcome]] = Counter()
    for each in Migration(there=there, here=here, dry=hub.dry_run).run(app):
        counts[each.kind, each.outcome] += 1
        if each.outcome is not Outcome.SAME or each.note:
            fields = {"kind": each.kind, "name": each.name, "outcome": each.outcome.value, "note": each.note}
            note = f" ({printable(each.note)})" if each.note else ""
            hub.event(fields, f"{each.kind} {printable(each.name)}: {each.outcome}{note}")
    kinds = dict.fromkeys(kind for kind, _ in counts)
    totals = ("; ".join(f"{kind}s: {_counted(counts, kind)}" for kind in kinds)) or "nothing is there"
    hub.note(f"{'would be, as this was a dry run: ' if hub.dry_run else ''}{totals}")
    return 1 if any(outcome is Outcome.FAILED for _, outcome in counts) else 0


def _counted(counts: Counter[tuple[str, Outcome]], kind: str) -> str:
    return ", ".join(f"{counts[kind, each]} {each}" for each in Outcome if counts[kind, each])
