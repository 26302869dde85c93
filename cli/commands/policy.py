"""``pushhub policy``: whether a subscriber's retries last as long as its outages."""

from __future__ import annotations

import click

from ..answers import sections, text, texts
from ..framework import Printing
from ..hub import HubOptions
from ..terminal import as_json, printable
from .queues import complete


@click.command(cls=Printing)
@click.argument("queue", shell_complete=complete)
@click.argument("subscriber")
@click.pass_obj
def policy(hub: HubOptions, queue: str, subscriber: str) -> None:
    """Show whether the retries of a SUBSCRIBER of a QUEUE last as long as its outages do.

    For a webhook's endpoint: webhooks/APPLICATION and the endpoint's id. From last night's delivery report.
    """
    rest = hub.rest()
    asked = {"queue": queue, "subscriber": subscriber}
    answer = rest.call("GET", f"/3/projects/{rest.project}/outages", query=asked)
    if hub.as_json:
        click.echo(as_json({"as_of": text(answer, "as_of"), "outages": sections(answer, "outages")}))
        return
    for each in texts(answer, "said"):
        click.echo(printable(each))
    hub.note(f"As of {text(answer, 'as_of')}.")
