"""Describes searches and the list of what was accepted for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pushhub.engine.model.catalogue import KEPT_DAYS, MAX_VALUE
from pushhub.engine.model.queue import QueueType
from pushhub.ironmq.wire.search import KINDS
from pushhub.web.description import Described, Schema, answer, array, nullable, text, whole

_MESSAGE_ID = "1910848478410441216"

_MESSAGE: dict[str, Schema] = {
    "kind": text("What it belongs to.", enum=list(KINDS)),
    "queue": nullable(text("Its queue.")),
    "application": nullable(text("The id of its application.")),
    "application_name": nullable(text("What its application is called.")),
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
    "application_name": None,
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
    "ironmq.show_overview": Described(
        means="Counts what waits in all queues by name, as many as eight seconds allow: continue with `after` as "
        "`previous` until it is null. Queues in which nothing waits are counted and left out.",
        asked={"previous": "orders"},
        answer=answer(
            {
                "counted": whole("How many queues were looked at.", 0),
                "queues": array(
                    answer(
                        {
                            "name": text(),
                            "type": text(enum=[each.value for each in QueueType]),
                            "size": whole("Messages in a pull queue; in others, deliveries that failed and wait.", 1),
                            "oldest": nullable(
                                text("The message that has waited longest; told of the largest queues.")
                            ),
                            "retries": nullable(whole("Of a push queue.", 0)),
                            "retries_delay": nullable(whole("Of a push queue, seconds.", 0)),
                        }
                    )
                ),
                "error_queues": array(text("A queue to which one of those reports what it gives up.")),
                "after": nullable(text("Send it with the next request as `previous`.")),
            }
        ),
        answered={
            "counted": 200,
            "queues": [
                {
                    "name": "orders",
                    "type": "multicast",
                    "size": 3,
                    "oldest": _MESSAGE_ID,
                    "retries": 3,
                    "retries_delay": 60,
                }
            ],
            "error_queues": ["errors"],
            "after": None,
        },
    ),
    "ironmq.search": Described(
        means="Finds messages of all protocols that have this value in their body, in whatever state: first by named "
        f"fields, at once; then by any value of up to {MAX_VALUE} characters, of the last {KEPT_DAYS} days, which is "
        "found within two minutes; last by reading those messages that have more values than are kept. Each newest "
        "first. Case does not matter. A page may be short or empty; continue with `after` until it is null.",
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
        "became of them. They are listed within two minutes. A page may be short or empty; continue with `after` until "
        "it is null.",
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
