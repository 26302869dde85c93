"""What operators type after the messages table was lost: what can be known from the records comes back.

Source: docs/operations.md ("If the messages table is lost").
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from simulation.promises.talks.talk import Came, Talk

HOUR = 3_600
DELAY_S = HOUR
"""Between two tries: long enough for nothing to be due while the table is empty."""

LARGE = {each: hashlib.shake_256(each.encode()).hexdigest(20_000) for each in ("waits", "arrives", "shared")}
"""Bodies that take more than 8 KiB, compressed."""

UNKNOWN = (
    ("lost", "waits", "its headers and the message it follows from: sent without headers"),
    ("any", "shared", "its headers and the message it follows from: sent without headers"),
    ("lost", "small", "its body"),
)
"""Queue, message, and what no record says of it."""


def recovered(talk: Talk) -> None:
    """A table that is lost."""
    talk.through(_table_lost)


def _table_lost(talk: Talk) -> None:
    ill = True

    def says(came: Came) -> tuple[int, bytes]:
        return (503, b"down") if ill and came.body.decode() not in {LARGE["arrives"], "arrived"} else (200, b"ok")

    came = talk.listen("lost.example", says)
    day = datetime.fromtimestamp(talk.epoch_s(), UTC).date().isoformat()
    subscriber = {"name": "s", "url": "https://lost.example/in"}
    for name, kind in (("lost", "multicast"), ("any", "unicast")):
        push = {"subscribers": [subscriber], "retries": 5, "retries_delay": DELAY_S}
        talk.ask("PUT", f"/queues/{name}", {"queue": {"type": kind, "push": push}})
    ids = {name: _posted(talk, "lost", LARGE[name]) for name in ("waits", "arrives")}
    ids |= {"shared": _posted(talk, "any", LARGE["shared"])}
    ids |= {name: _posted(talk, "lost", name) for name in ("small", "arrived")}
    talk.sleep(3 * 60 + talk.put_off_s)
    before = _statuses(talk, ids["waits"])
    tried = len(came)
    # A first look changes nothing, and finds nothing amiss
    rows = talk.typed("rebuild", "--since", day, says="put back: 0 messages")
    talk.is_so("nothing is missing", [], rows)

    lost = talk.loses("MessagesTable")
    talk.is_so("the table is empty", True, lost >= len(ids))
    talk.ask("GET", f"/queues/lost/messages/{ids['waits']}/subscribers", status=404)
    numbers = "put back: 2 messages; deliveries that go on: 2, wait for a person: 0, given up without their body: 1"
    unknown = sorted((queue, ids[name], what) for queue, name, what in UNKNOWN)
    for dry in (("--dry-run",), ()):
        would = "would be " if dry else ""
        rows = talk.typed("rebuild", "--since", day, *dry, code=1, says=f"{would}{numbers}, expired: 0; not lost: ")
        unknown_now = sorted((each["queue"], each["message"], each["not known"].partition(",")[0]) for each in rows)
        talk.is_so("what is not known", unknown, unknown_now)
        talk.ask("GET", f"/queues/lost/messages/{ids['waits']}/subscribers", status=404 if dry else 200)
    talk.sleep(3 * 60 + talk.put_off_s)
    # Others' messages were not lost, and are as they were
    talk.typed("rebuild", "--since", day, says="messages, with 0 deliveries as they were earlier", shows=[])
    talk.is_so("its statuses", before, _statuses(talk, ids["waits"]))
    talk.came("nothing is sent at once", tried, len(came))

    ill = False
    talk.sleep(DELAY_S + 3 * 60)
    later = sorted(each.body.decode() for each in came[tried:])
    talk.came("what was open comes, once", sorted(LARGE[each] for each in ("waits", "shared")), later)
    [status] = _statuses(talk, ids["waits"])
    talk.is_so("it was the second try", (200, 2), (status["status_code"], status["tries"]))
    talk.typed("rebuild", "--since", day, says="put back: 0 messages", shows=[])


def _posted(talk: Talk, queue: str, body: str) -> str:
    [message_id] = talk.ask("POST", f"/queues/{queue}/messages", {"messages": [{"body": body}]}, status=201)["ids"]
    return str(message_id)


def _statuses(talk: Talk, message_id: str) -> Any:
    shown = talk.ask("GET", f"/queues/lost/messages/{message_id}/subscribers")["subscribers"]
    return [{name: each.get(name) for name in ("subscriber_name", "status_code", "tries")} for each in shown]


__all__ = ["recovered"]
