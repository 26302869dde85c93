"""``pushhub streams``: events that are kept in order, and the sinks that read them."""

from __future__ import annotations

from typing import IO, Any

import click

from ..answers import fields, sections
from ..dry import changes
from ..framework import Group, ask, destructive
from ..hub import HubOptions
from ..json_files import json_in
from ..rest import typed

ROOT = "/api/v1/stream"
TYPES = ("amazonS3", "kinesis", "http", "sqs", "sns", "eventBridge", "poller")
_COLUMNS = ("id", "uid", "name", "createdAt")
_SINK = ("id", "uid", "type", "status", "currentIterator", "batchSize", "maxWaitSecs", "failureReason", "nextRetryAt")
_EVENT = ("id", "eventType", "timestamp", "payload")


def _path(stream: str, *more: str) -> str:
    return "/".join((ROOT, *(typed(each) for each in (stream, *more))))


def _show(hub: HubOptions, columns: tuple[str, ...], *found: Any) -> None:
    hub.show({name: each.get(name) for name in columns} for each in found)


@click.group(cls=Group)
def streams() -> None:
    """Events that are kept in order, and the sinks that read them in batches."""


@streams.command("list")
@click.pass_obj
def list_streams(hub: HubOptions) -> None:
    """List the project's streams."""
    _show(hub, _COLUMNS, *hub.rest().every(ROOT))


@streams.command("create")
@click.argument("name")
@click.option("--uid", help="Your own id for it.")
@changes
@click.pass_obj
def create_stream(hub: HubOptions, *, name: str, uid: str | None) -> None:
    """Create a stream."""
    _show(hub, _COLUMNS, fields(hub.rest().call("POST", ROOT, {"name": name, "uid": uid})))


@streams.command("show")
@click.argument("stream")
@click.pass_obj
def show_stream(hub: HubOptions, *, stream: str) -> None:
    """Show a stream by its id or uid, and what roles of its sinks have to demand."""
    rest = hub.rest()
    shown = fields(rest.call("GET", _path(stream)))
    demanded = fields(rest.call("GET", _path(stream, "external-id")))
    hub.show([{**{name: shown.get(name) for name in _COLUMNS}, **demanded}])


@streams.command("delete")
@click.argument("stream")
@changes
@destructive
@click.pass_obj
def delete_stream(hub: HubOptions, *, stream: str, yes: bool) -> None:
    """Delete a stream: its sinks read nothing more."""
    ask(f"Delete the stream {stream}?", yes=yes or hub.dry_run)
    hub.rest().call("DELETE", _path(stream))


@streams.command("post")
@click.argument("stream")
@click.argument("event_type")
@click.argument("payloads", nargs=-1, required=True)
@changes
@click.pass_obj
def post_events(hub: HubOptions, *, stream: str, event_type: str, payloads: tuple[str, ...]) -> None:
    """Post events of one type, in the order in which their payloads are given."""
    events = [{"eventType": event_type, "payload": each} for each in payloads]
    hub.rest().call("POST", _path(stream, "events"), {"events": events})


@streams.command("events")
@click.argument("stream")
@click.option("--limit", type=click.IntRange(1, 250), default=50, help="Default: 50.")
@click.pass_obj
def list_events(hub: HubOptions, *, stream: str, limit: int) -> None:
    """List the last events of a stream."""
    page = hub.rest().call("GET", _path(stream, "events"), query={"limit": str(limit)})
    _show(hub, _EVENT, *sections(page, "data"))


@streams.command("sinks")
@click.argument("stream")
@click.pass_obj
def list_sinks(hub: HubOptions, *, stream: str) -> None:
    """List the sinks of a stream: how each is doing, and the last event that has arrived there."""
    _show(hub, _SINK, *hub.rest().every(_path(stream, "sink")))


@streams.command("add-sink")
@click.argument("stream")
@click.argument("kind", type=click.Choice(TYPES))
@click.option("--config-file", type=click.File(), help="Holds its config, JSON; - for standard input. No pollers.")
@click.option("--uid", help="Your own id for it.")
@click.option("--batch-size", type=click.IntRange(1, 1_000), help="Events of a batch, at most. Default: 100.")
@click.option("--max-wait", type=click.IntRange(0, 300), help="Seconds that the oldest event waits for others.")
@click.option("--event-type", "event_types", multiple=True, help="That it gets; all without this. Repeatable.")
@changes
@click.pass_obj
def add_sink(
    hub: HubOptions,
    *,
    stream: str,
    kind: str,
    config_file: IO[str] | None,
    uid: str | None,
    batch_size: int | None,
    max_wait: int | None,
    event_types: tuple[str, ...],
) -> None:
    """Add a sink: it gets what is posted from then on."""
    if config_file is None and kind != "poller":
        raise click.UsageError("a config is needed: --config-file")
    wanted = {
        "type": kind,
        "config": {} if config_file is None else json_in(config_file),
        "uid": uid,
        "batchSize": batch_size,
        "maxWaitSecs": max_wait,
        "eventTypes": list(event_types) or None,
    }
    _show(hub, _SINK, fields(hub.rest().call("POST", _path(stream, "sink"), wanted)))


@streams.command("retry")
@click.argument("stream")
@click.argument("sink")
@changes
@click.pass_obj
def retry_sink(hub: HubOptions, *, stream: str, sink: str) -> None:
    """Have a sink that waits try its batch now."""
    _show(hub, _SINK, fields(hub.rest().call("POST", _path(stream, "sink", sink, "force-retry"))))


@streams.command("skip")
@click.argument("stream")
@click.argument("sink")
@changes
@destructive
@click.pass_obj
def skip_batch(hub: HubOptions, *, stream: str, sink: str, yes: bool) -> None:
    """Leave out the batch that a sink is to write next: its events never get there."""
    ask(f"Leave out the next batch of {sink}?", yes=yes or hub.dry_run)
    _show(hub, _SINK, fields(hub.rest().call("POST", _path(stream, "sink", sink, "skip"))))


@streams.command("remove-sink")
@click.argument("stream")
@click.argument("sink")
@changes
@destructive
@click.pass_obj
def remove_sink(hub: HubOptions, *, stream: str, sink: str, yes: bool) -> None:
    """Remove a sink, and with it where it was."""
    ask(f"Remove the sink {sink}?", yes=yes or hub.dry_run)
    hub.rest().call("DELETE", _path(stream, "sink", sink))
