"""``pushhub shovel``."""

from __future__ import annotations

import click

from ..dry import changes
from ..framework import Command
from ..hub import HubOptions
from ..messages.shovelling import End, Shovel
from ..rest import THERE


@click.command("shovel", cls=Command)
@click.argument("queue")
@click.option("--from", "source", metavar="URL", help="The server to take them from, into QUEUE here.")
@click.option("--to", "target", metavar="URL", help="The server to bring them to, from QUEUE here.")
@click.option("--project", "there_project", required=True, help="The project there.")
@click.option(
    "--token",
    envvar="PUSHHUB_THERE_TOKEN",
    prompt="Token of the project there",
    hide_input=True,
    help="Its token; by default PUSHHUB_THERE_TOKEN, or you are asked for it.",
)
@click.option("--queue-there", help="The queue's name there, if it is another one.")
@changes
@click.pass_obj
def shovel(
    hub: HubOptions,
    *,
    queue: str,
    source: str | None,
    target: str | None,
    there_project: str,
    token: str,
    queue_there: str | None,
) -> int:
    """Move the messages of a pull queue between this hub and another server with IronMQ's API.

    A message is deleted where it was once the other server has stored it, so nothing is lost if the command is killed
    or a server fails: run it again. What was under way then may come twice. Delays and reservations are not carried
    over, and the order is that in which the source hands them out.
    """
    if (source is None) == (target is None):
        raise click.UsageError("use either --from or --to")
    url = source or target or ""
    if not url.startswith(("http://", "https://")):
        raise click.UsageError("--from and --to must begin with http:// or https://")
    here = End(rest=hub.rest(), queue=queue)
    there = End(rest=hub.rest_of(url, there_project, token, THERE), queue=queue_there or queue)
    first, last = (there, here) if source else (here, there)
    if (first.rest.base_url, first.rest.project, first.queue) == (last.rest.base_url, last.rest.project, last.queue):
        raise click.UsageError("a queue cannot be moved into itself")
    work = Shovel(source=first, target=last, say=hub.note)
    if hub.dry_run:
        hub.show([{"would move": work.waiting(), "from": first.queue, "to": last.queue}])
        return 0
    moved = 0
    for count in work.run():
        moved += count
        hub.note(f"{moved} moved")
    hub.show([{"moved": moved, "maybe twice": work.twice, "from": first.queue, "to": last.queue}])
    return 0
