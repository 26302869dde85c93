"""``pushhub retry``, ``replay``, ``expunge``: a person's decisions about messages."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import click

from cli.commands.post import send
from cli.commands.queues import complete
from cli.durations import Duration
from cli.framework import Command, ask, destructive
from cli.hub import HubOptions
from cli.rest import Refused, Rest

BATCH = 10
RESERVED_S = 300
PAGES = 100


def _app(app: str, rest: str = "") -> str:
    return f"/api/v1/app/{quote(app, safe='')}{rest}"


@click.command(cls=Command)
@click.argument("message", required=False)
@click.option("--waiting", is_flag=True, help="All messages of the store that wait for a person.")
@click.option("--app", help="For a webhook: the application.")
@click.option("--endpoint", help="For a webhook: the endpoint.")
@click.pass_obj
def retry(hub: HubOptions, *, message: str | None, app: str | None, endpoint: str | None, waiting: bool) -> None:
    """Try a message again now: one of the store, or a webhook (--app, --endpoint)."""
    rest = hub.rest()
    if waiting == (message is not None):
        raise click.UsageError("give a MESSAGE, or --waiting")
    if app or endpoint:
        if not (app and endpoint and message):
            raise click.UsageError("for a webhook, give MESSAGE, --app and --endpoint")
        path = f"/msg/{quote(message, safe='')}/endpoint/{quote(endpoint, safe='')}/resend"
        rest.call("POST", _app(app, path), {})
        hub.show([{"message": message, "endpoint": endpoint, "state": "queued"}])
        return
    ids = _waiting(rest) if waiting else [str(message)]
    rows = [_attempt(rest, each) for each in ids]
    hub.show(rows)


def _waiting(rest: Rest) -> list[str]:
    ids: list[str] = []
    for page in range(1, PAGES + 1):
        found = rest.call("GET", f"{rest.store}/queues/accepted", query={"state": "parked", "page": str(page)})
        ids += [each["id"] for each in found["messages"]]
        if page >= found["pages"]:
            break
    return ids


def _attempt(rest: Rest, message: str) -> dict[str, Any]:
    path = f"{rest.store}/messages/{quote(message, safe='')}"
    try:
        shown = rest.call("PUT", path, {"attempt_now": True})
    except Refused as error:
        return {"message": message, "type": "", "consumer": "", "state": f"refused: {error.message}"}
    return {
        name: shown[key]
        for name, key in (("message", "id"), ("type", "message"), ("consumer", "consumer"), ("state", "state"))
    }


@click.command(cls=Command)
@click.argument("error_queue", required=False, shell_complete=complete)
@click.option(
    "--to", "target", help="The queue; by default each goes back to where it failed.", shell_complete=complete
)
@click.option("--limit", type=int, default=1_000_000, help="Maximum number of messages.")
@click.option("--app", help="For webhooks: the application.")
@click.option("--endpoint", help="For webhooks: the endpoint.")
@click.option("--since", type=Duration(), help="For webhooks: from how far back: 2h, 7d.")
@click.option("--missing", is_flag=True, help="Webhooks that were never tried, instead of those that failed.")
@click.option("--queue", help="For a subscriber: its queue.", shell_complete=complete)
@click.option("--subscriber", help="The subscriber that missed them; each gets one more try.")
@click.option("--dry-run", is_flag=True, help="Only count what a subscriber missed.")
@click.pass_obj
def replay(
    hub: HubOptions,
    *,
    error_queue: str | None,
    target: str | None,
    limit: int,
    app: str | None,
    endpoint: str | None,
    since: int | None,
    missing: bool,
    queue: str | None,
    subscriber: str | None,
    dry_run: bool,
) -> None:
    """Send failed messages again: those of an error queue, those that a queue gave up at a subscriber (--queue,
    --subscriber), or those that an endpoint missed (--app, --endpoint, --since).

    A message leaves the error queue once the hub has accepted it again, so it may come twice but is never lost.
    """
    rest = hub.rest()
    if queue is not None or subscriber is not None:
        if queue is None or subscriber is None or error_queue or app or endpoint:
            raise click.UsageError("for a subscriber, give --queue and --subscriber")
        hub.show([_replayed_at(hub, rest, queue, subscriber, dry_run=dry_run)])
        return
    if app or endpoint:
        if error_queue or not (app and endpoint and since is not None):
            raise click.UsageError("for webhooks, give --app, --endpoint and --since")
        kind = "replay-missing" if missing else "recover"
        start = (datetime.now(UTC) - timedelta(milliseconds=since)).isoformat().replace("+00:00", "Z")
        path = _app(app, f"/endpoint/{quote(endpoint, safe='')}/{kind}")
        hub.show([rest.call("POST", path, {"since": start})])
        return
    if error_queue is None:
        raise click.UsageError("give an ERROR_QUEUE, or --queue and --subscriber, or --app, --endpoint and --since")
    counted = {"sent": 0, "left": 0}
    while sum(counted.values()) < limit:
        wanted = {"n": min(BATCH, limit - sum(counted.values())), "timeout": RESERVED_S}
        taken = rest.call("POST", rest.queue(error_queue, "/reservations"), wanted)["messages"]
        if not taken:
            break
        for each in taken:
            counted["sent" if _sent_again(hub, rest, error_queue, each, target) else "left"] += 1
    hub.show([{"queue": error_queue, **counted}])


def _replayed_at(hub: HubOptions, rest: Rest, queue: str, subscriber: str, *, dry_run: bool) -> dict[str, Any]:
    """Retry what a queue gave up at a subscriber, page by page."""
    counted = {"looked": 0, "found": 0, "replayed": 0}
    after: str | None = ""
    while after is not None:
        body = {"subscriber": subscriber, "dry_run": dry_run, "after": after}
        part = rest.call("POST", rest.queue(queue, "/replay"), body)
        counted = {name: count + part[name] for name, count in counted.items()}
        after = part["after"]
        if after is not None:
            hub.note(f"examined {counted['looked']}, tried again {counted['replayed']}")
    return {"queue": queue, "subscriber": subscriber, **counted}


@dataclass(frozen=True, slots=True)
class _Failed:
    """The failed message that a message of an error queue describes."""

    queue: str
    headers: dict[str, str]
    body: bytes

    @classmethod
    def of(cls, told: str) -> _Failed:
        """Read the body of an error message.

        Raises:
            ValueError: It is not an error message, or does not contain the failed one.
        """
        fields = json.loads(told)
        if not isinstance(fields, dict) or "source_msg_id" not in fields:
            raise ValueError("it is not an error message")
        if fields.get("body_left_out"):
            raise ValueError("the body is not in it")
        exact = fields.get("body_base64")
        body = base64.b64decode(exact, validate=True) if exact else str(fields["body"]).encode()
        return cls(str(fields.get("queue", "")), dict(fields.get("headers") or {}), body)


def _sent_again(hub: HubOptions, rest: Rest, error_queue: str, taken: dict[str, Any], target: str | None) -> bool:
    """Return a message; whether that worked. One that cannot go back stays, hidden for a few minutes."""
    try:
        failed = _Failed.of(taken["body"])
    except (ValueError, KeyError, TypeError) as error:
        hub.note(f"{taken['id']} stays in {error_queue}: {error}")
        return False
    send(rest, target or failed.queue, failed.body, headers=failed.headers)
    reservation = {"reservation_id": taken["reservation_id"]}
    rest.call("DELETE", rest.queue(error_queue, f"/messages/{taken['id']}"), reservation)
    return True


@click.command(cls=Command)
@click.argument("message")
@click.option("--queue", help="The queue it is in.", shell_complete=complete)
@click.option("--app", help="For a webhook: the application.")
@destructive
@click.pass_obj
def expunge(hub: HubOptions, *, message: str, queue: str | None, app: str | None, yes: bool) -> None:
    """Remove a message: from a queue, with its outstanding deliveries (--queue),
    or the content of a webhook (--app).
    """
    if (queue is None) == (app is None):
        raise click.UsageError("give --queue or --app")
    ask(f"Remove {message} for good?", yes=yes)
    rest = hub.rest()
    if queue is not None:
        rest.call("DELETE", rest.queue(queue, f"/messages/{quote(message, safe='')}"))
    else:
        rest.call("DELETE", _app(str(app), f"/msg/{quote(message, safe='')}/content"))
