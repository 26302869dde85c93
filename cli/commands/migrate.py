"""``pushhub import``."""

from __future__ import annotations

import os
from collections import Counter

import click

from ..dry import changes
from ..framework import Printing
from ..hub import HubOptions
from ..migration.senders import SENDERS
from ..migration.svix import Migration, svix_url
from ..migration.taking_over import Importer, Outcome
from ..rest import THERE
from ..terminal import printable


@click.command("import", cls=Printing)
@click.option(
    "--from",
    "source",
    help=f"svix (the default), {', '.join(SENDERS)}; or the URL of a server with Svix's API.",
)
@click.option("--url", help="Where the server is; by default the sender's own service, if it has one.")
@click.option("--project", "there_project", help="The project there: Convoy's or IronMQ's; Hook0's organization.")
@click.option(
    "--token",
    envvar=["PUSHHUB_THERE_TOKEN", "SVIX_TOKEN"],
    prompt="Token of the organization there",
    hide_input=True,
    help="The token or API key; by default PUSHHUB_THERE_TOKEN or SVIX_TOKEN, or you are asked for it.",
)
@click.option("--app", help="Id or uid of a single application to copy, along with the event types.")
@changes
@click.pass_obj
def migrate(
    hub: HubOptions, *, source: str | None, url: str | None, there_project: str | None, token: str, app: str | None
) -> int:
    """Copy what another sender has: Svix, Outpost, Convoy, Hook0, IronMQ or QStash.

    Event types, applications and endpoints keep their secrets and are signed as before; queues keep their subscribers.
    What is already the same is left alone, and nothing is deleted, so you can repeat a run that broke off. The exit
    code is 1 if something could not be copied.
    """
    here = hub.rest()
    if source in SENDERS and source is not None:
        sender = SENDERS[source]
        if not (url or sender.url):
            raise click.UsageError(f"--url is needed: where your server of {source} is")
        if sender.needs_project and not there_project:
            raise click.UsageError(f"--project is needed: the one of {source} to copy")
        if token == os.environ.get("SVIX_TOKEN") and not os.environ.get("PUSHHUB_THERE_TOKEN"):
            raise click.UsageError(f"SVIX_TOKEN is not for {source}: use PUSHHUB_THERE_TOKEN or --token")
        there = hub.rest_of(_checked(url or sender.url), there_project or "", token, THERE)
        copied = Importer(source=SENDERS[source](there), here=here, dry=hub.dry_run).run(app)
    else:
        place = url or (svix_url(token) if source in (None, "svix") else source) or ""
        there = hub.rest_of(_checked(place), "", token, THERE)
        copied = Migration(there=there, here=here, dry=hub.dry_run).run(app)
    counts: Counter[tuple[str, Outcome]] = Counter()
    for each in copied:
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


def _checked(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise click.UsageError(f"{', '.join(SENDERS)}, or a URL that begins with http:// or https://")
    return url
