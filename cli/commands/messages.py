"""``pushhub retry``, ``replay``, ``expunge``: a person's decisions about messages; ``attempts``: what came of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import click

from ..answers import Odd, fields, number, sections, text
from ..dry import changes
from ..durations import Duration
from ..framework import Command, ask, destructive
from ..hub import HubOptions
from ..messages.replaying import ErrorQueue
from ..rest import Refused, Rest, typed
from .post import send
from .queues import QUEUE_NAME

PAGES = 100
MOST_PAGES = 100_000
REFUSED = "refused"
PROGRESS_EVERY = 20
"""Messages after which a person who waits is told how far it is."""


@click.command(cls=Command)
@click.argument("queue", type=QUEUE_NAME)
@click.argument("message")
@click.pass_obj
def attempts(hub: HubOptions, *, queue: str, message: str) -> None:
    """List the attempts to push a MESSAGE of a QUEUE, oldest first, with the beginning of what was answered."""
    rest = hub.rest()
    answer = rest.call("GET", rest.queue(queue, f"/messages/{typed(message)}/attempts"))
    hub.show(
        {"subscriber": text(each, "subscriber_name")}
        | {name: number(each, name) for name in ("number", "status_code", "took_ms")}
        | {name: text(each, name) for name in ("started_at", "result", "msg", "answer")}
        for each in sections(answer, "attempts")
    )
    if forgotten := number(fields(answer), "forgotten"):
        hub.note(f"{forgotten} older attempts are in the delivery records only")


def _app(app: str, rest: str = "") -> str:
    return f"/api/v1/app/{typed(app)}{rest}"


@click.command(cls=Command)
@click.argument("message", required=False)
@click.option("--waiting", is_flag=True, help="All messages of the store that wait for a person.")
@click.option("--app", help="For a webhook: the application.")
@click.option("--endpoint", help="For a webhook: the endpoint.")
@changes
@destructive
@click.pass_obj
def retry(
    hub: HubOptions, *, message: str | None, app: str | None, endpoint: str | None, waiting: bool, yes: bool
) -> int:
    """Try a message again now: one of the store, or a webhook (--app, --endpoint).

    The exit code is 1 if one could not be tried. Before all that wait are tried (--waiting), it asks.
    """
    rest = hub.rest()
    if waiting == (message is not None):
        raise click.UsageError("give a MESSAGE, or --waiting")
    if app or endpoint:
        if not (app and endpoint and message):
            raise click.UsageError("for a webhook, give MESSAGE, --app and --endpoint")
        path = f"/msg/{typed(message)}/endpoint/{typed(endpoint)}/resend"
        skipped = "skipped" in fields(rest.call("POST", _app(app, path), {}))
        state = "nothing is sent: the endpoint is disabled" if skipped else "queued"
        hub.show([{"message": message, "endpoint": endpoint, "state": state}])
        return 1 if skipped else 0
    ids = _waiting(rest) if waiting else [str(message)]
    if hub.dry_run:
        hub.show({"message": each, "state": "would be tried"} for each in ids)
        return 0
    if waiting and ids:
        ask(f"Send {len(ids)} messages again now?", yes=yes)
    rows = []
    for count, each in enumerate(ids, 1):
        if count % PROGRESS_EVERY == 0:
            hub.note(f"tried {count} of {len(ids)}")
        rows.append(_attempt(rest, each))
    hub.show(rows)
    return 1 if any(each["state"].startswith(REFUSED) for each in rows) else 0


def _waiting(rest: Rest) -> list[str]:
    ids: list[str] = []
    for page in range(1, PAGES + 1):
        found = rest.call("GET", f"{rest.store}/queues/accepted", query={"state": "parked", "page": str(page)})
        ids += [text(each, "id") for each in sections(found, "messages")]
        if page >= number(found, "pages"):
            break
    return ids


def _attempt(rest: Rest, message: str) -> dict[str, Any]:
    path = f"{rest.store}/messages/{typed(message)}"
    try:
        shown = rest.call("PUT", path, {"attempt_now": True})
    except Refused as error:
        return {"message": message, "type": "", "consumer": "", "state": f"{REFUSED}: {error.message}"}
    return {
        name: text(shown, key)
        for name, key in (("message", "id"), ("type", "message"), ("consumer", "consumer"), ("state", "state"))
    }


@click.command(cls=Command)
@click.argument("error_queue", required=False, type=QUEUE_NAME)
@click.option("--to", "target", help="The queue; by default each goes back to where it failed.", type=QUEUE_NAME)
@click.option("--limit", type=click.IntRange(min=1), default=1_000_000, help="Maximum number of messages.")
@click.option("--app", help="For webhooks: the application.")
@click.option("--endpoint", help="For webhooks: the endpoint.")
@click.option("--since", type=Duration(), help="For webhooks: from how far back: 2h, 7d.")
@click.option("--missing", is_flag=True, help="Webhooks that were never tried, instead of those that failed.")
@click.option("--queue", help="For a subscriber: its queue.", type=QUEUE_NAME)
@click.option("--subscriber", help="The subscriber that missed them; each gets one more try.")
@changes
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
) -> int:
    """Send failed messages again: those of an error queue, those that a queue gave up at a subscriber (--queue,
    --subscriber), or those that an endpoint missed (--app, --endpoint, --since).

    What is in the error queue now is sent once, to the subscriber that missed it and to no other. An error message is
    deleted once its message has arrived; otherwise it stays, so a message may come twice but is never lost.

    The exit code is 1 if a message of the error queue stays in it, or if none could be sent again.
    """
    rest = hub.rest()
    if queue is not None or subscriber is not None:
        if queue is None or subscriber is None or error_queue or app or endpoint:
            raise click.UsageError("for a subscriber, give --queue and --subscriber")
        counted = _replayed_at(hub, rest, queue, subscriber)
        hub.show([counted])
        return 1 if counted["found"] and not (counted["replayed"] or hub.dry_run) else 0
    if app or endpoint:
        if error_queue or not (app and endpoint and since is not None):
            raise click.UsageError("for webhooks, give --app, --endpoint and --since")
        kind = "replay-missing" if missing else "recover"
        start = (datetime.now(UTC) - timedelta(milliseconds=since)).isoformat().replace("+00:00", "Z")
        path = _app(app, f"/endpoint/{typed(endpoint)}/{kind}")
        hub.show([fields(rest.call("POST", path, {"since": start}))])
        return 0
    if error_queue is None:
        raise click.UsageError("give an ERROR_QUEUE, or --queue and --subscriber, or --app, --endpoint and --since")
    replayed = ErrorQueue(
        rest=rest,
        name=error_queue,
        target=target,
        send=lambda queue, body, headers: send(rest, queue, body, headers=headers),
        say=hub.note,
    )
    if hub.dry_run:
        hub.show(replayed.look(limit))
        return 0
    ended = replayed.run(limit)
    hub.show([{"queue": error_queue, **ended}])
    if not ended.total():
        hub.note(f"there was nothing in {error_queue}, or others have reserved it")
    return 1 if ended["left"] else 0


def _replayed_at(hub: HubOptions, rest: Rest, queue: str, subscriber: str) -> dict[str, Any]:
    """Retry what a queue gave up at a subscriber, page by page."""
    counted = {"looked": 0, "found": 0, "replayed": 0}
    after = ""
    for _ in range(MOST_PAGES):
        body = {"subscriber": subscriber, "dry_run": hub.dry_run, "after": after}
        part = rest.call("POST", rest.queue(queue, "/replay"), body, reads=hub.dry_run)
        counted = {name: count + number(part, name) for name, count in counted.items()}
        following = None if part.get("after") is None else text(part, "after")
        if following is None:
            break
        if following == after:
            raise Odd("its 'after' leads to itself")
        hub.note(f"examined {counted['looked']}, tried again {counted['replayed']}")
        after = following
    return {"queue": queue, "subscriber": subscriber, **counted}


@click.command(cls=Command)
@click.argument("message")
@click.option("--queue", help="The queue it is in.", type=QUEUE_NAME)
@click.option("--app", help="For a webhook: the application.")
@changes
@destructive
@click.pass_obj
def expunge(hub: HubOptions, *, message: str, queue: str | None, app: str | None, yes: bool) -> None:
    """Remove a message: from a queue, with its outstanding deliveries (--queue),
    or the content of a webhook (--app).
    """
    if (queue is None) == (app is None):
        raise click.UsageError("give --queue or --app")
    ask(f"Remove {message} for good?", yes=yes or hub.dry_run)
    rest = hub.rest()
    if queue is not None:
        rest.call("DELETE", rest.queue(queue, f"/messages/{typed(message)}"))
    else:
        rest.call("DELETE", _app(str(app), f"/msg/{typed(message)}/content"))
