"""``pushhub traces``."""

from __future__ import annotations

from typing import Any

import click

from ..answers import fields, section
from ..dry import changes
from ..framework import Group
from ..hub import HubOptions


@click.group(cls=Group)
def traces() -> None:
    """Where the spans of attempts are exported to, with OpenTelemetry's protocol (OTLP over HTTP)."""


@traces.command("show")
@click.pass_obj
def show_traces(hub: HubOptions) -> None:
    """Show the collector, what it took and did not take in the last 24 hours, and how it fails."""
    rest = hub.rest()
    answer = rest.call("GET", f"{rest.path}/traces")
    hub.show([_row(section(answer, "traces"))] if fields(answer).get("traces") is not None else [])


@traces.command("export")
@click.argument("url")
@click.option("--header", "-H", multiple=True, metavar="NAME=VALUE", help="Sent with the spans. Repeatable.")
@click.option("--off", is_flag=True, help="Keep the setting, but export nothing for now.")
@changes
@click.pass_obj
def export_traces(hub: HubOptions, url: str, header: tuple[str, ...], off: bool) -> None:
    """Export spans to URL, with its whole path (mostly /v1/traces). Headers are replaced.

    Of each attempt of a message that was posted with a sampled traceparent, from half a minute on.
    """
    rest = hub.rest()
    asked = {"url": url, "headers": dict(_header(each) for each in header), "on": not off}
    hub.show([_row(section(rest.call("PUT", f"{rest.path}/traces", {"traces": asked}), "traces"))])


@traces.command("stop")
@changes
@click.pass_obj
def stop_traces(hub: HubOptions) -> None:
    """Export no spans any more, and forget the collector."""
    rest = hub.rest()
    rest.call("DELETE", f"{rest.path}/traces")


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        # Not the text itself, which may open something.
        raise click.UsageError("A header is given as NAME=VALUE")
    return name, value


def _row(shown: dict[str, Any]) -> dict[str, Any]:
    failing = shown.get("failing")
    row = {name: shown.get(name) for name in ("url", "on", "exported", "dropped")}
    return row | {"failing": failing.get("message") if isinstance(failing, dict) else None}
