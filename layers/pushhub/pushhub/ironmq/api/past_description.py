"""Describes the routes of searches of the past for the OpenAPI document."""

from __future__ import annotations

from pushhub.engine.model.delivery import DeliveryState
from pushhub.engine.model.past import MAX_WANTED, MOST_AN_HOUR, MOST_DAYS, MOST_FOUND
from pushhub.engine.model.record import RecordKind
from pushhub.web.description import Described, answer, array, nullable, request, text, whole

SEARCH_ID = "0123456789abcdef0123456789abcdef"
_MESSAGE_ID = "6112035678239908289"
_ID = text("The message's id, of any protocol.", maxLength=MAX_WANTED)

_FOUND = answer(
    {
        "at": text("When it happened.", format="date-time"),
        "event": text("What happened (docs/records.md).", enum=list(RecordKind)),
        "kind": text("What the message belongs to.", enum=["queue", "application", "store"]),
        "queue": nullable(text("Its queue or topic.")),
        "application": nullable(text("The id of its application.")),
        "message_id": text("Its id."),
        "subscriber": nullable(text("Name of the subscriber if its record has it, otherwise its id.")),
        "state": nullable(text("State of the delivery after it.", enum=list(DeliveryState))),
        "reason": nullable(text("Why the delivery ended, if its state does not say it.")),
        "attempt": nullable(whole("Number of the attempt.", 0)),
        "status_code": nullable(whole("Of the answer; 0 when there was none.", 0)),
        "error": nullable(text("Why there was no answer.")),
        "duration_ms": nullable(whole("How long the attempt took.", 0)),
    }
)

PAST: dict[str, Described] = {
    "ironmq.start_past_search": Described(
        means="Looks for events in the delivery records of the project, also of messages that are long gone: by id,"
        f" queue, subscriber and state, in at most {MOST_DAYS} days. Records hold no bodies. One of the four is"
        f" required. A project may start {MOST_AN_HOUR} searches an hour.",
        request=request(
            {
                "message_id": _ID,
                "queue": text("Its queue or topic.", maxLength=MAX_WANTED),
                "subscriber": text("Name or id of a subscriber.", maxLength=MAX_WANTED),
                "state": text("State of the delivery after the event.", enum=list(DeliveryState)),
                "since": text("Begin; a day before the end if left out.", format="date-time"),
                "until": text("End; now if left out.", format="date-time"),
            }
        ),
        sent={"message_id": _MESSAGE_ID, "since": "2026-11-18T00:00:00Z", "until": "2026-11-18T11:00:00Z"},
        answer=answer(
            {
                "id": text("The search's id, for a day."),
                "since": text("Begin.", format="date-time"),
                "until": text("End.", format="date-time"),
                "first_day": text("The first day of records that is read.", format="date"),
                "last_day": text("The last one.", format="date"),
            }
        ),
        refusals={429: "The project has started too many in this hour: `Retry-After` says when to try again"},
        answered={
            "id": SEARCH_ID,
            "since": "2026-11-18T00:00:00.000Z",
            "until": "2026-11-18T11:00:00.000Z",
            "first_day": "2026-11-18",
            "last_day": "2026-11-18",
        },
    ),
    "ironmq.show_past_search": Described(
        means="Ask again, with `after` if the answer has it, while `state` is `running` or `after` is not null. Newest"
        f" hours first; with Athena, the newest {MOST_FOUND} events.",
        asked={"after": ""},
        answer=answer(
            {
                "state": text("How far it is.", enum=["running", "done", "failed"]),
                "reason": nullable(text("Why it failed.")),
                "scanned_bytes": whole("What was read until now, bytes.", 0),
                "hours_left": nullable(whole("Hours of records that are still to be read; null if unknown.", 0)),
                "found": array(_FOUND),
                "after": nullable(text("Send it with the next request to continue.")),
            }
        ),
        answered={
            "state": "done",
            "reason": None,
            "scanned_bytes": 4096,
            "hours_left": 0,
            "found": [
                {
                    "at": "2026-11-18T10:06:40.000Z",
                    "event": "attempt",
                    "kind": "queue",
                    "queue": "orders",
                    "application": None,
                    "message_id": _MESSAGE_ID,
                    "subscriber": "shop",
                    "state": "exhausted",
                    "reason": None,
                    "attempt": 3,
                    "status_code": 500,
                    "error": None,
                    "duration_ms": 40,
                }
            ],
            "after": None,
        },
    ),
}
