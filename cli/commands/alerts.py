"""``pushhub alerts``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from ..answers import section, sections
from ..dry import changes
from ..framework import Group, ask, destructive
from ..hub import HubOptions
from .queues import QUEUE_NAME

if TYPE_CHECKING:
    from ..rest import Rest

MEASURES = {"failure-rate": "failure_rate", "given-up": "given_up", "oldest-waiting": "oldest_waiting"}
"""Measures as they are typed, and in the API."""

_COLUMNS = ("id", "name", "state", "value", "measure", "threshold", "minutes", "queue", "subscriber", "url", "format")


@click.group(cls=Group)
def alerts() -> None:
    """Alerts of the project: sent to a webhook or to Slack when too much fails, is given up, or waits too long."""


@alerts.command("list")
@click.pass_obj
def list_alerts(hub: HubOptions) -> None:
    """List all alerts, and which are firing."""
    rest = hub.rest()
    hub.show(_row(each) for each in sections(rest.call("GET", _path(rest)), "alerts"))


@alerts.command("set")
@click.argument("name")
@click.argument("measure", type=click.Choice([*MEASURES]))
@click.argument("threshold", type=int)
@click.option("--url", required=True, help="Where it is sent.")
@click.option("--slack", is_flag=True, help="The URL is an incoming webhook of Slack.")
@click.option("--queue", type=QUEUE_NAME, help="The queue it watches; the whole project by default.")
@click.option("--subscriber", help="The subscriber: by name with --queue, or an endpoint by its id.")
@click.option("--minutes", type=int, help="The time it counts in, 5 to 60; 15 by default.")
@changes
@click.pass_obj
def set_alert(hub: HubOptions, /, *, name: str, measure: str, slack: bool, **given: Any) -> None:
    """Create an alert, or change the one of that NAME.

    THRESHOLD is percent of the attempts, a number of deliveries, or seconds.
    """
    rest = hub.rest()
    alert = {"name": name, "measure": MEASURES[measure], "format": "slack" if slack else "json", **given}
    known = [each for each in sections(rest.call("GET", _path(rest)), "alerts") if each.get("name") == name]
    if len(known) > 1:
        raise click.UsageError(f"{len(known)} alerts are called {name}: delete all but one by their ids")
    method, path = ("PUT", _path(rest, known[0])) if known else ("POST", _path(rest))
    hub.show([_row(section(rest.call(method, path, {"alert": alert}), "alert"))])


@alerts.command("delete")
@click.argument("name")
@changes
@destructive
@click.pass_obj
def delete_alert(hub: HubOptions, name: str, *, yes: bool) -> None:
    """Delete an alert, by its name or id."""
    rest = hub.rest()
    found = _found(rest, name)
    ask(f"Delete the alert {name}?", yes=yes or hub.dry_run)
    rest.call("DELETE", _path(rest, found))


@alerts.command("test")
@click.argument("name")
@changes
@click.pass_obj
def send_test(hub: HubOptions, name: str) -> None:
    """Send a notification that says that it is a test."""
    rest = hub.rest()
    found = _found(rest, name)
    rest.call("POST", f"{_path(rest, found)}/test", {})
    hub.note(f"A test is on its way to {found.get('url')}")


def _found(rest: Rest, name: str) -> dict[str, Any]:
    all_alerts = sections(rest.call("GET", _path(rest)), "alerts")
    found = [each for each in all_alerts if name in (each.get("id"), each.get("name"))]
    if len(found) != 1:
        raise click.ClickException(f"{len(found) or 'no'} alerts are called {name}")
    return found[0]


def _path(rest: Rest, alert: dict[str, Any] | None = None) -> str:
    base = f"{rest.path}/alerts"
    return f"{base}/{quote(str(alert.get('id')), safe='')}" if alert else base


def _row(alert: dict[str, Any]) -> dict[str, Any]:
    return {name: alert.get(name) for name in _COLUMNS}
