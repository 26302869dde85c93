"""Describes searches and the list of what was accepted for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pushhub.engine.model.catalogue import KEPT_DAYS, MAX_VALUE
from pushhub.ironmq.wire.search import KINDS
from pushhub.web.description import Described, Schema, answer, array, nullable, text

_MESSAGE_ID = "1910848478410441216"

_MESSAGE: dict[str, Schema] = {
    "kind": text("What it belongs to.", enum=list(KINDS)),
    "queue": nullable(text("Its queue.")),
    "application": nullable(text("The id of its application.")),
    "topic": nullable(text("Its topic.")),
    "message_id": text("The message's id."),
    "type": nullable(text("Its type.")),
    "accepted_at": text("When it was accepted, UTC.", format="date-time"),
    "state": text("One state for all its deliveries: the one that most needs somebody."),
    "deliveries": array(
        answer(
            {
                "subscriber_id": text("The hub's id of the subscriber, mapping or endpoint."),
                "subscriber_name": text("Its name, or URL."),
                "state": text("State of the delivery, in its protocol's words."),
            }
        ),
        "None in a pull queue or a topic.",
    ),
    "excerpt": text("A part of its body: around what was looked for, or its beginning."),
}

_EXAMPLE: dict[str, Any] = {
    "kind": "queue",
    "queue": "orders",
    "application": None,
    "topic": None,
    "message_id": _MESSAGE_ID,
    "type": None,
    "accepted_at": "2026-11-21T05:34:16.123Z",
    "state": "exhausted",
    "deliveries": [
        {"subscriber_id": "0123456789ab", "subscriber_name": "shop https://shop.example/in", "state": "exhausted"}
    ],
    "excerpt": '{"order": {"id": 4711}}',
}

_AFTER = nullable(text("Send it with the next request to continue."))

FINDING = {
    "ironmq.search": Described(
        means="Finds messages of all protocols that have this value in their body, in whatever state: first by named "
        f"fields, at once; then by any value of up to {MAX_VALUE} characters, of the last {KEPT_DAYS} days, which is "
        "found within a minute; last by reading those messages that have more values than are kept. Each newest first."
        " Case does not matter. A page may be short or empty; continue with `after` until it is null.",
        asked={"value": "4711"},
        answer=answer(
            {
                "found": array(
                    answer({**_MESSAGE, "field": text("Path of the value in a JSON body, or the named field.")})
                ),
                "after": _AFTER,
                "read_back_to": nullable(
                    text("While messages are read: how far back that went, UTC.", format="date-time")
                ),
            }
        ),
        answered={"found": [{**_EXAMPLE, "field": "order.id"}], "after": None, "read_back_to": None},
    ),
    "ironmq.list_events": Described(
        means=f"Messages of all protocols that were accepted in the last {KEPT_DAYS} days, newest first, whatever "
        "became of them. They are listed within a minute. A page may be short or empty; continue with `after` until it "
        "is null.",
        asked={"kind": "queue", "limit": "10"},
        answer=answer(
            {
                "events": array(answer(_MESSAGE)),
                "after": _AFTER,
                "looked_back_to": nullable(
                    text("How far back this page has looked, UTC; null if to the end.", format="date-time")
                ),
            }
        ),
        answered={"events": [_EXAMPLE], "after": None, "looked_back_to": None},
    ),
}
