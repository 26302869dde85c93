"""``pushhub cost``: what a month costs on AWS."""

from __future__ import annotations

from dataclasses import asdict

import click

from ..cost.reckoning import SINKS, Month, bill, total
from ..framework import Command
from ..hub import HubOptions

PERCENT = click.FloatRange(0, 100)
MOST_MESSAGES, LARGEST_BODY, MOST_SUBSCRIBERS = 10**12, 262_144, 10_000
LARGEST_CALL, LARGEST_BATCH = 10, 1_000
"""Messages in a call to SQS, SNS or EventBridge, and events in a batch of a stream."""


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
@click.option("--sink", type=click.Choice([*SINKS]), default=None, help="All subscribers are receivers of this kind.")
@click.option(
    "--together", type=click.IntRange(1, LARGEST_BATCH), default=1, help="Messages in a call to a sink. Default: 1."
)
@click.option("--stream", is_flag=True, help="Messages are events of a stream, and subscribers its sinks.")
@click.option("--transformed", type=PERCENT, default=0, help="Percent of deliveries with a transformation. Default: 0.")
@click.option("--sourced", type=PERCENT, default=0, help="Percent of messages that come to sources. Default: 0.")
@click.pass_obj
def cost(
    hub: HubOptions,
    *,
    messages: int,
    size: int,
    subscribers: int,
    failing: float,
    sink: str | None,
    together: int,
    transformed: float,
    sourced: float,
    stream: bool,
) -> None:
    """Reckon what a hub costs on AWS in a month, part by part, in US dollars.

    From units that were counted by running the hub's code, and list prices of us-east-1; nothing is asked of any hub.
    Messages are spread evenly over the month and posted one at a time; what comes in bursts, or many in a post, costs
    less. Bodies are JSON. docs/figures/months.md says what was counted, and how. What a service bills for what a sink
    gets is on the bill of whoever owns the role or key.
    """
    if together > LARGEST_CALL and not stream:
        raise click.BadParameter(f"Only batches of a stream have more than {LARGEST_CALL}.", param_hint="--together")
    month = Month(
        messages,
        size,
        subscribers,
        failing=failing / 100,
        sink=sink or "",
        together=together,
        transformed=transformed / 100,
        sourced=sourced / 100,
        stream=stream,
    )
    lines = bill(month)
    if hub.as_json:
        hub.show([asdict(each) for each in lines] + [{"part": "all", "counted": "", "dollars": total(lines)}])
        return
    shown = [{"part": each.part, "counted": each.counted, "$ a month": f"{each.dollars:,.2f}"} for each in lines]
    hub.show([*shown, {"part": "all", "counted": "", "$ a month": f"{total(lines):,.2f}"}])
    if messages:
        hub.note(f"${total(lines) / messages * 1e6:,.2f} a million messages.")
