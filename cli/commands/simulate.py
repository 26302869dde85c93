"""``pushhub simulate``: what a policy would do in an outage, and the whole hub in disasters."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from pushhub.base.errors import Invalid
from pushhub.base.json_text import read
from pushhub.base.numerals import fraction
from pushhub.base.times import epoch_ms, iso_time
from pushhub.engine.history import history
from pushhub.engine.store.s3_records import S3Records
from pushhub.ironmq.policy_simulation import simulate as run_simulation
from pushhub.ironmq.wire.policies import (
    MAX_DURATION_S,
    MAX_RATE,
    MAX_WINDOWS,
    MIN_RATE,
    parse_simulation,
    render_forecast,
    render_windows,
    request_of,
)

from ..answers import Odd, number, section, sections, text
from ..clone import folder
from ..durations import Duration, OutageWindow, worded
from ..framework import Command, Group
from ..hub import HubOptions
from ..operator import deployment
from ..passing_over import PassedOver
from ..pictures import as_svg, sparkline
from ..terminal import as_json

AS_THEY_ARE = {"ignore_unknown_options": True, "help_option_names": []}

WORK = 20_000
"""Limit of a simulation's attempts of lots here: a second or so."""

FIGURES = (
    "accepted",
    "delivered",
    "expired",
    "given_up",
    "held",
    "waiting",
    "attempts",
    "failed_attempts",
    "peak_per_minute",
)


@click.group(cls=Group)
def simulate() -> None:
    """Try a retry policy in an outage, or the whole hub in a year of disasters."""


@simulate.command(name="hub", cls=Command, context_settings=AS_THEY_ARE)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def whole_hub(arguments: tuple[str, ...]) -> int:
    """Run the whole hub with simulated clocks, networks and faults.

    Arguments go to the simulator (simulate hub --help).
    """
    clone = folder()
    if clone is None:
        raise click.ClickException("the simulator is missing: run this in a clone of the repository")
    return subprocess.run([sys.executable, "-m", "simulation", *arguments], cwd=clone, check=False).returncode  # noqa: S603 (our own module)


@simulate.command(cls=Command)
@click.option("--request", "given", type=click.File("rb"), help="A request in the API's format; options change it.")
@click.option("--schedule", help="Webhooks: svix, standard-webhooks, or seconds to wait: 5,300,1800.")
@click.option("--retries", type=int, help="IronMQ: tries after the first.")
@click.option("--retries-delay", type=int, help="IronMQ: seconds between tries.")
@click.option("--max-attempts", type=int, help="Hub protocol: total tries; unlimited by default.")
@click.option(
    "--retry-base", type=float, help="Hub protocol: seconds of the first wait; each later one is twice as long."
)
@click.option("--retry-cap", type=float, help="Hub protocol: seconds of the longest wait.")
@click.option(
    "--outage",
    type=OutageWindow(),
    multiple=True,
    help="When, and what the endpoint does: 6h, 1h-7h:refuses, 30m:503,retry_after=120. Repeatable.",
)
@click.option("--rate", type=float, help="Messages a second; 1 by default.")
@click.option("--for", "duration", type=Duration(), help="How long messages come; by default until the outage is over.")
@click.option("--life", type=Duration(), help="How long a message lives; 7d by default.")
@click.option("--watch", type=Duration(), help="How long to simulate; by default until everything has ended.")
@click.option("--timeout", type=int, help="Seconds that the endpoint has to answer.")
@click.option("--rate-limit", type=float, help="Maximum requests a second.")
@click.option("--circuit/--no-circuit", default=None, help="Probe a failing endpoint instead of trying each message.")
@click.option("--obey/--ignore", "obey_answers", default=None, help="Whether Retry-After, 410 and the like are obeyed.")
@click.option("--compare", type=click.Choice(["no_circuit", "default", "nothing"]), help="What to compare it with.")
@click.option("--seed", type=int, help="Seeds the random parts of waits.")
@click.option("--replay", metavar="SUBSCRIBER", help="Derive outage and traffic from its delivery records (operators).")
@click.option("--queue", help="With --replay: the subscriber's queue; for a webhook's endpoint webhooks/APPLICATION.")
@click.option("--since", metavar="TIME", help="With --replay: the beginning, 2026-11-01 or 2026-11-01T12:00:00Z.")
@click.option("--until", metavar="TIME", help="With --replay: the end; by default a week later, or now.")
@click.option(
    "--ask-hub", is_flag=True, help="With --replay: use the failures that the hub has counted for the project."
)
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Write the picture to a file.")
@click.pass_obj
def policy(
    hub: HubOptions,
    /,
    *,
    given: Any,
    outage: tuple[dict[str, Any], ...],
    replay: str | None,
    queue: str | None,
    since: str | None,
    until: str | None,
    ask_hub: bool,
    svg: Path | None,
    **options: Any,
) -> int:
    """Show what a retry policy would do in an outage: attempts, load, delays, losses, cost.

    Runs the hub's own rules in virtual time on this machine, without a hub. The same command gives the same result.
    """
    request = _read(given)
    _put_policy(request, options)
    for name, milliseconds in (("duration", "duration"), ("message_expiration", "life"), ("watch", "watch")):
        if options[milliseconds] is not None:
            request[name] = options[milliseconds] // 1000
    for name in ("rate", "timeout", "rate_limit", "circuit", "obey_answers", "compare", "seed"):
        if options[name] is not None:
            request[name] = options[name]
    if outage:
        request["outage"] = [*outage]
    if replay is not None:
        if queue is None or since is None:
            raise click.UsageError("--replay needs --queue and --since")
        replayed = _counted if ask_hub else _recorded
        request = replayed(hub, replay, queue, since, until) | request
    try:
        done = run_simulation(parse_simulation(request), work=WORK)
    except Invalid as error:
        raise click.ClickException(error.message) from error
    beside = done.asked.compared_with
    if svg is not None:
        svg.write_text(as_svg(done.forecast.series, "Attempts at the endpoint"))
    if hub.as_json:
        click.echo(as_json(done.answer() | {"outage": render_windows(done.asked.plan.endpoint)}))
        return 0
    forecasts = {"forecast": done.forecast} | ({beside: done.compared} if done.compared else {})
    _show(hub, {name: render_forecast(each) for name, each in forecasts.items()})
    for name, each in forecasts.items():
        click.echo(
            f"{name}: attempts, one column each {worded(each.series.every_ms)}\n  {sparkline(each.series.attempts)}"
        )
        click.echo(f"  {sparkline(each.series.failed, max(each.series.attempts, default=0))}  failed")
    for note in done.notes:
        hub.note(note)
    return 0


def _read(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    try:
        request = read(given.read())
    except ValueError as error:
        raise click.UsageError(f"the request cannot be read: it {error}") from error
    if not isinstance(request, dict):
        raise click.UsageError("the request must be a JSON object")
    if request.get("replay") is not None:
        raise click.UsageError(
            "only the hub can answer a request with replay: use --replay, --queue, --since and --ask-hub"
        )
    return request


def _put_policy(request: dict[str, Any], options: dict[str, Any]) -> None:
    policy = {
        name: options[name]
        for name in ("retries", "retries_delay", "max_attempts", "retry_base", "retry_cap")
        if options[name] is not None
    }
    if options["schedule"] is not None:
        policy["schedule"] = _schedule(options["schedule"])
    if policy:
        request["policy"] = policy


def _schedule(given: str) -> str | list[float]:
    parts = given.split(",")
    try:
        return [fraction(each) for each in parts]
    except ValueError:
        return given


def _counted(hub: HubOptions, subscriber: str, queue: str, since: str, until: str | None) -> dict[str, Any]:
    """The request that a subscriber's failures make, as the hub counted them."""
    rest = hub.rest()
    replay = {"queue": queue, "subscriber": subscriber, "since": iso_time(_time(since))}
    if until is not None:
        replay["until"] = iso_time(_time(until))
    # Simulated here, not there: the hub is asked for the least it takes.
    asked = {"replay": replay, "rate": 0.001, "compare": "nothing"}
    answer = rest.call("POST", f"/3/projects/{rest.project}/policies/simulate", asked, reads=True)
    plan, told = section(answer, "plan"), section(answer, "replayed")
    duration, outage, messages = number(plan, "duration"), sections(told, "outage"), number(told, "messages")
    if duration < 1:
        raise Odd("its 'duration' is none")
    hub.note(
        f"{messages} messages from {text(told, 'from')} on, in {worded(duration * 1000)}; "
        f"{number(told, 'failed')} of {number(told, 'attempts')} attempts failed; outages: {len(outage)}"
    )
    return {
        "outage": outage,
        "rate": min(float(MAX_RATE), max(MIN_RATE, messages / duration)),
        **{name: plan.get(name) for name in ("takes", "duration", "message_expiration")},
    }


def _recorded(hub: HubOptions, subscriber: str, queue: str, since: str, until: str | None) -> dict[str, Any]:
    """The request that a subscriber's own history makes, by its records."""
    begins = _time(since)
    ends = min(_time(until) if until else sys.maxsize, begins + MAX_DURATION_S * 1000)
    found = deployment(hub)
    passed_over = PassedOver(hub)
    records = S3Records(found.client("s3"), found.outputs["RecordsBucketName"]).read(iso_time(begins)[:10], passed_over)
    try:
        told = history(records, queue=queue, subscriber=subscriber, since=begins, until=ends, most_windows=MAX_WINDOWS)
    except (KeyError, ValueError) as error:
        raise click.ClickException(f"a record cannot be read: {error!r}") from error
    passed_over.summed_up()
    if told is None:
        raise click.ClickException(f"no attempt to {subscriber} is recorded in that time")
    hub.note(
        f"{told.messages} messages from {iso_time(told.starts_at)} on, in {worded(told.duration_ms)}; "
        f"{told.failed} of {told.attempts} attempts failed; outages: {len(told.endpoint.windows)}"
    )
    return request_of(told)


def _time(given: str) -> int:
    try:
        moment = datetime.fromisoformat(given)
    except ValueError as error:
        raise click.UsageError(f"{given!r} is not a time: use 2026-11-01 or 2026-11-01T12:00:00Z") from error
    return epoch_ms((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat())


def _show(hub: HubOptions, shown: dict[str, dict[str, Any]]) -> None:
    """A column for each forecast."""
    rows: list[dict[str, Any]] = [{"": each, **{name: told[each] for name, told in shown.items()}} for each in FIGURES]
    for percentile in ("p50", "p90", "p99", "max"):
        delays = {
            name: worded(round(told["delay"][percentile] * 1000)) if told["delay"] else ""
            for name, told in shown.items()
        }
        rows.append({"": f"delay {percentile}", **delays})
    rows.append({"": "circuit opened", **{name: told["circuit_opened"] for name, told in shown.items()}})
    rows.append({"": "cost in dollars", **{name: f"{told['dollars']:.2f}" for name, told in shown.items()}})
    hub.show(rows)
