"""``pushhub search``."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from ..answers import Odd, fields, number, sections, text
from ..durations import Duration
from ..framework import Command
from ..hub import HubOptions
from .queues import complete

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..rest import Rest

MOST_PAGES = 1_000
WAIT_S = 1.0
"""Between two looks at a search that still runs."""

LONGEST_S = 1_800
"""A search that runs longer is not waited for."""

NOT_FOUND = (
    "looked for it as a whole text, number or word in the bodies of the last week's messages. One of the last two "
    "minutes may not be there yet; headers are found only where search_fields names them; a message's id is found "
    "with --past."
)


@click.command(cls=Command)
@click.argument("value", required=False)
@click.option("--past", is_flag=True, help="Search the delivery records instead: by id, queue, subscriber, state.")
@click.option("--queue", help="With --past: the message's queue or topic.", shell_complete=complete)
@click.option("--subscriber", help="With --past: name or id of a subscriber.")
@click.option("--state", help="With --past: the delivery's state after the event, such as exhausted.")
@click.option("--since", type=Duration(), help="With --past: from how far back: 2h, 7d; a day by default.")
@click.option("--until", type=Duration(), help="With --past: until how long ago; now by default.")
@click.pass_obj
def search(
    hub: HubOptions, /, *, value: str | None, past: bool, since: int | None, until: int | None, **wanted: str | None
) -> None:
    """Find messages by a VALUE in their body, such as an order's number: of all queues, applications, the store and
    topics, whatever became of them.

    With --past, VALUE is a message's id, and what happened to it is shown from the delivery records, which hold no
    contents, also when the message is long gone.
    """
    rest = hub.rest()
    if past:
        wanted["message_id"] = value
        if not any(wanted.values()):
            raise click.UsageError("with --past, give a message's id, --queue, --subscriber or --state")
        now = datetime.now(UTC)
        # Without a time the hub decides, by its own clock.
        times = {name: now - timedelta(milliseconds=ago) for name, ago in (("since", since), ("until", until)) if ago}
        asked = {name: each for name, each in wanted.items() if each}
        hub.show(_in_the_past(hub, rest, asked | {name: each.isoformat() for name, each in times.items()}))
        return
    if not value or any(wanted.values()) or since or until:
        raise click.UsageError("give a VALUE alone, or --past")
    rows = list(_found(hub, rest, value))
    hub.show(rows)
    if not rows:
        hub.note(NOT_FOUND)


def _found(hub: HubOptions, rest: Rest, value: str) -> Iterator[dict[str, Any]]:
    after: str | None = ""
    for _ in range(MOST_PAGES):
        answer = rest.call("GET", f"{rest.path}/search", query={"value": value, "after": after or ""})
        for each in sections(answer, "found"):
            yield _message(each) | {"field": text(each, "field"), "excerpt": text(each, "excerpt")}
        after = fields(answer).get("after")
        if after is not None and (read := fields(answer).get("read_back_to")):
            hub.note(f"reading messages that have many values, back to {read}")
        if after is None:
            return
    raise Odd("its pages do not end")


@click.command(cls=Command)
@click.option("--queue", help="Only messages of this queue.", shell_complete=complete)
@click.option("--application", help="Only messages of the application with this id.")
@click.option("--topic", help="Only notifications of this topic.")
@click.option("--store", is_flag=True, help="Only messages of the store.")
@click.option("--state", help="Only those with a delivery in this state, such as exhausted or delivered.")
@click.option("--subscriber", help="Only those for a receiver with this id, or this in its name or URL.")
@click.option("--type", "kind", help="Only messages of this type, such as order:new.")
@click.option("--since", type=Duration(), help="From how far back: 2h, 7d; a week by default.")
@click.option("--until", type=Duration(), help="Until how long ago; now by default.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=25, show_default=True, help="How many at most.")
@click.pass_obj
def events(
    hub: HubOptions,
    /,
    *,
    store: bool,
    kind: str | None,
    since: int | None,
    until: int | None,
    limit: int,
    **wanted: str | None,
) -> None:
    """List what was accepted in the last week, newest first, whatever became of it."""
    places = {name: wanted.pop(name) for name in ("queue", "application", "topic")} | {"store": "" if store else None}
    given = {name: each for name, each in places.items() if each is not None}
    if len(given) > 1:
        raise click.UsageError("give one of --queue, --application, --topic and --store")
    now = datetime.now(UTC)
    asked: dict[str, str] = {"type": kind or "", "in_state": wanted["state"] or ""}
    asked["subscriber"] = wanted["subscriber"] or ""
    for name, of in given.items():
        asked |= {"kind": name, "of": of}
    for name, ago in (("since", since), ("until", until)):
        if ago:
            asked[name] = (now - timedelta(milliseconds=ago)).isoformat()
    hub.show(list(islice(_events(hub, hub.rest(), asked, limit), limit)))


def _events(hub: HubOptions, rest: Rest, asked: dict[str, str], limit: int) -> Iterator[dict[str, Any]]:
    after: str | None = ""
    for _ in range(MOST_PAGES):
        query = {name: each for name, each in asked.items() if each}
        query |= {"after": after or "", "limit": str(min(limit, 100))}
        answer = rest.call("GET", f"{rest.path}/events", query=query)
        yield from (
            {"accepted": text(each, "accepted_at"), **_message(each), "excerpt": text(each, "excerpt")}
            for each in sections(answer, "events")
        )
        after = fields(answer).get("after")
        if after is None:
            return
        if not sections(answer, "events"):
            hub.note(f"looked back to {fields(answer).get('looked_back_to')}")
    raise Odd("its pages do not end")


def _message(each: dict[str, Any]) -> dict[str, Any]:
    deliveries = sections(each, "deliveries")
    states = ", ".join(f"{one.get('subscriber_name')} {one.get('state')}" for one in deliveries)
    return {"message": text(each, "message_id"), "of": _owner(each), "state": states or text(each, "state")}


def _in_the_past(hub: HubOptions, rest: Rest, asked: dict[str, str]) -> list[dict[str, Any]]:
    # Starts something, but changes nothing.
    started = rest.call("POST", f"{rest.path}/past", asked, reads=True)
    path = f"{rest.path}/past/{quote(text(started, 'id'), safe='')}"
    hub.note(f"reading the delivery records of {text(started, 'first_day')} to {text(started, 'last_day')}")
    rows: list[dict[str, Any]] = []
    after, ends = "", time.monotonic() + LONGEST_S
    while time.monotonic() < ends:
        answer = rest.call("GET", path, query={"after": after})
        rows += [_event(each) for each in sections(answer, "found")]
        state, following = text(answer, "state"), fields(answer).get("after")
        if state == "failed":
            raise click.ClickException(f"the search failed: {fields(answer).get('reason')}")
        if state != "running" and not following:
            return sorted(rows, key=lambda each: str(each["at"]), reverse=True)
        if state == "running":
            left = fields(answer).get("hours_left")
            rest_of = f", {left} hours left" if isinstance(left, int) else ""
            hub.note(f"{number(answer, 'scanned_bytes') / 1e6:.1f} MB read{rest_of}, {len(rows)} found")
        if following:
            after = text(answer, "after")
        else:
            time.sleep(WAIT_S)
    raise Odd("its search does not end")


def _event(each: dict[str, Any]) -> dict[str, Any]:
    outcome = each.get("error") or each.get("status_code")
    return {
        "at": text(each, "at"),
        "event": text(each, "event"),
        "of": _owner(each),
        "message": text(each, "message_id"),
        "subscriber": each.get("subscriber"),
        "state": each.get("state"),
        "attempt": each.get("attempt"),
        "answer": outcome,
        "ms": each.get("duration_ms"),
    }


def _owner(each: dict[str, Any]) -> str:
    """What a person calls the place where a message was posted."""
    return str(each.get("queue") or each.get("application_name") or each.get("topic") or each.get("kind"))
