"""``pushhub cost``: what a month costs on AWS."""

from __future__ import annotations

from dataclasses import asdict

import click

from ..framework import Command
from ..hub import HubOptions
from ..reckoning import Month, bill, total

MOST_MESSAGES, LARGEST_BODY, MOST_SUBSCRIBERS = 10**12, 262_144, 10_000


@click.command(cls=Command)
@click.option("--messages", type=click.IntRange(0, MOST_MESSAGES), default=1_000_000, help="A month. Default: 1000000.")
@click.option("--size", type=click.IntRange(0, LARGEST_BODY), default=2_048, help="Bytes of a body. Default: 2048.")
@click.option("--subscribers", type=click.IntRange(1, MOST_SUBSCRIBERS), default=1, help="Of each message. Default: 1.")
@click.option(
    "--failing",
    type=click.FloatRange(0, 100),
    default=0,
    help="Percent of deliveries that succeed at the second attempt only. Default: 0.",
)
@click.pass_obj
def cost(hub: HubOptions, messages: int, size: int, subscribers: int, failing: float) -> None:
    """Reckon what a hub costs on AWS in a month, part by part, in US dollars.

    From units that were counted by running the hub's code, and list prices of us-east-1; nothing is asked of any hub.
    Messages are spread evenly over the month and posted one at a time; what comes in bursts, or many in a post, costs
    less. Bodies are JSON. docs/figures/months.md says what was counted, and how.
    """
    lines = bill(Month(messages, size, subscribers, failing / 100))
    if hub.as_json:
        hub.show([asdict(each) for each in lines] + [{"part": "all", "counted": "", "dollars": total(lines)}])
        return
    shown = [{"part": each.part, "counted": each.counted, "$ a month": f"{each.dollars:,.2f}"} for each in lines]
    hub.show([*shown, {"part": "all", "counted": "", "$ a month": f"{total(lines):,.2f}"}])
    if messages:
        hub.note(f"${total(lines) / messages * 1e6:,.2f} a million messages.")
