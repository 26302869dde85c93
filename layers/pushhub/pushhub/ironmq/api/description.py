"""Describes the queue API (IronMQ v3) for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pushhub.base.sink_url import AWS_SCHEMES
from pushhub.base.verdict import Verdict
from pushhub.base.webhook_senders import GENERIC, MOST_SECRET, SENDERS
from pushhub.engine.model.delivery import ANSWER_BYTES, MOST_EARLIER, DeliveryState
from pushhub.engine.model.queue import DeadLetter, PushSettings, Queue, QueueType
from pushhub.engine.model.search import MAX_FIELD_BYTES, MAX_FIELDS, MAX_VALUE
from pushhub.engine.model.subscriber_health import HealthState
from pushhub.engine.records.report import TABLES
from pushhub.ironmq.api.alert_description import ALERT_ID, ALERTS
from pushhub.ironmq.api.changes_description import CHANGES
from pushhub.ironmq.api.finding_description import FINDING
from pushhub.ironmq.api.past_description import PAST, SEARCH_ID
from pushhub.ironmq.api.traces_description import TRACES
from pushhub.ironmq.wire.cursors import MAX_CURSOR, MAX_LOOKED_AT
from pushhub.ironmq.wire.messages import MAX_BATCH, MAX_DELAY_S, MAX_WAIT_S
from pushhub.ironmq.wire.messages import MAX_TIMEOUT_S as MAX_RESERVATION_S
from pushhub.ironmq.wire.names import MAX_QUEUE_NAME_BYTES
from pushhub.ironmq.wire.project import DEFAULT_HOURS, MAX_HOURS, PERCENTS
from pushhub.ironmq.wire.queues import (
    DEFAULT_PER_PAGE,
    MAX_PER_PAGE,
)
from pushhub.ironmq.wire.search import DEFAULT_EVENTS, KINDS, MAX_NAME, MOST_EVENTS
from pushhub.ironmq.wire.statuses import STATES
from pushhub.ironmq.wire.subscribers import (
    DEFAULT_TIMEOUT_S,
    MAX_NAME_BYTES,
    MAX_URL_BYTES,
)
from pushhub.ironmq.wire.subscribers import MAX_TIMEOUT_S as MAX_ANSWER_S
from pushhub.web.api import Auth
from pushhub.web.description import (
    GATES_SHOWN,
    GATES_WANTED,
    OVER_QUOTA,
    SIGNING_ENDS,
    SIGNING_SHOWN,
    SIGNING_WANTED,
    ApiDescription,
    Described,
    Named,
    Schema,
    answer,
    array,
    boolean,
    nullable,
    obj,
    ref,
    request,
    settings_shown,
    settings_wanted,
    text,
    whole,
)
from pushhub.web.health_description import HEALTH_EXAMPLE, health_schema

_MESSAGE_ID = "1910848478410441216"
_RESERVATION = "add54a65746d41389fcd7046e06f0ad6"
_SUBSCRIBER = {"name": "shop", "url": "https://shop.example/in", "headers": {"X-Key": "1"}, "timeout": 5}
_PUSH = {"subscribers": [_SUBSCRIBER], "retries": 2, "retries_delay": 30, "error_queue": "errors"}
_QUEUE: dict[str, Any] = {
    "project_id": "5f0000000000000000000001",
    "id": "336c96bb77d5",
    "name": "orders",
    "message_timeout": 60,
    "message_expiration": 604_800,
    "type": "multicast",
    "push": _PUSH,
}
_MESSAGE = {"id": _MESSAGE_ID, "body": "grüß dich", "reserved_count": 0}
_STATUS = {
    "name": "shop",
    "subscriber_name": "shop",
    "url": "https://shop.example/in",
    "retries_remaining": 2,
    "tries": 1,
    "state": "delivered",
    "status_code": 200,
    "msg": "Message was pushed successfully.",
    "last_try_at": "2026-11-18T11:06:40.000Z",
}

_TYPE = text(
    "`pull`: consumers reserve messages. `multicast`: each subscriber gets each message. `unicast`: one of them does.",
    enum=["pull", "multicast", "unicast"],
)
_PERCENTILES = {
    f"p{percent}_ms": nullable(whole(f"Milliseconds that {percent} of 100 attempts did not exceed, to a fifth.", 0))
    for percent in PERCENTS
}

_PERCENTILES_SHOWN = {"p50_ms": 64, "p95_ms": 170, "p99_ms": 178}

_SUBSCRIBER_FIELDS: dict[str, Schema] = {
    "name": text("Its name in a message's statuses.", maxLength=MAX_NAME_BYTES),
    "url": text(
        "`http://`, `https://`, `ironmq:///queue`, `ironmq://project:token@host/queue`, `ironworker://...`, "
        f"`notification2://topic`, or {', '.join(f'`{each}://`' for each in AWS_SCHEMES)} with "
        "`REGION/ACCOUNT/NAME?role=ARN` (docs/destinations.md). Addresses inside networks need an operator's leave.",
        maxLength=MAX_URL_BYTES,
        examples=["https://shop.example/in"],
    ),
    "headers": obj("Sent with each push.", additionalProperties={"type": "string"}),
    "timeout": whole(f"Seconds it has to answer; {DEFAULT_TIMEOUT_S} by default.", 1, MAX_ANSWER_S),
}

_ALERT_FIELDS: dict[str, Schema] = {
    "type": text("Once at the trigger, or at each multiple of it.", enum=["fixed", "progressive"]),
    "direction": text("When the size rises, or when it falls.", enum=["asc", "desc"]),
    "trigger": whole("The queue's size.", 1),
    "queue": text("The queue that gets a message about it.", minLength=1, maxLength=MAX_QUEUE_NAME_BYTES),
    "snooze": whole("Seconds before the next message.", 0),
}


def _shown_queue(**counts: Schema) -> Schema:
    return answer(
        {
            "project_id": text("The project."),
            "id": text("Different for each queue that ever had the name."),
            "name": text("The name."),
            **settings_shown(Queue)["properties"],
            "type": _TYPE,
            "push": settings_shown(
                PushSettings,
                subscribers=array(
                    answer(
                        {
                            **_SUBSCRIBER_FIELDS,
                            "signing": SIGNING_SHOWN,
                            "signing_ends": SIGNING_ENDS,
                            **GATES_SHOWN,
                            "paused": boolean("Whether deliveries to it wait."),
                        },
                        lacks=("headers", "timeout", "signing", "signing_ends", "oauth", "mtls", "paused"),
                    )
                ),
            ),
            "dead_letter": settings_shown(DeadLetter),
            "alerts": array(answer({"id": text("Its id."), **_ALERT_FIELDS})),
            "left": whole("Messages that a converted queue still holds; convert it again to push them.", 0),
            "search_fields": array(text(), "Fields by which messages can be found."),
            "webhook": answer({"type": text("Whose webhooks it takes.")}),
            **counts,
        },
        lacks=("push", "dead_letter", "alerts", "left", "search_fields", "webhook"),
    )


_STATUS_LACKS = ("status_code", "msg", "last_try_at", "status", "next_try_at")
_STATUS_FIELDS: dict[str, Schema] = {
    "name": text("The subscriber's name."),
    "subscriber_name": text("The same; the original service uses this field."),
    "url": text("Its URL at its last try."),
    "retries_remaining": whole("Tries that are left.", 0),
    "tries": whole("Tries that were made.", 0),
    "status_code": whole("Of the last answer; 0 when there was none."),
    "msg": text("The result of the last try."),
    "last_try_at": text("When the last try was made.", format="date-time"),
    "status": text("Present only if the message expired.", enum=["expired"]),
    "state": text(
        "State of the delivery; in unicast of the one delivery for all subscribers.", enum=list(DeliveryState)
    ),
    "next_try_at": text("When it is tried next.", format="date-time"),
}
_SCHEMAS: dict[str, Schema] = {
    "IronmqRefusal": answer({"msg": text("What to change.")}, means="Why a request was refused."),
    "IronmqDone": answer({"msg": text("What was done.")}),
    "IronmqQueue": _shown_queue(),
    "IronmqQueueWithCounts": _shown_queue(
        size=whole("Messages that wait; of a push queue, deliveries that failed and wait.", 0),
        total_messages=whole("Messages ever posted.", 0),
    ),
    "IronmqQueueSettings": request(
        {
            "type": _TYPE,
            **settings_wanted(Queue),
            "push": request(
                settings_wanted(PushSettings, subscribers=array(ref("IronmqSubscriber"), minItems=1)),
                means="Only for push queues.",
            ),
            "dead_letter": request(settings_wanted(DeadLetter), means="Only for pull queues."),
            "alerts": array(
                request(_ALERT_FIELDS, needs=("type", "trigger", "queue")), "Only for pull queues.", maxItems=5
            ),
            "convert": boolean("Whether a pull queue becomes a push queue, and what it holds is pushed."),
            "search_fields": array(
                text(maxLength=MAX_FIELD_BYTES, minLength=1),
                "Fields by which messages can be found: `order.id` in a JSON body, or `header:NAME`. Each costs a write"
                " for each message that has it; it holds for messages posted from then on.",
                maxItems=MAX_FIELDS,
            ),
            "webhook": {
                "description": "Whose webhooks `.../webhook` takes: what is not signed by that sender is refused."
                " `false` for anybody's; the secret is never shown again, and one that is left out stays.",
                "anyOf": [
                    {"type": ["boolean", "null"]},
                    request(
                        {
                            "type": text("As in docs/sources.md.", enum=[each for each in SENDERS if each != GENERIC]),
                            "secret": nullable(text("With which it signs.", minLength=1, maxLength=MOST_SECRET)),
                        },
                        needs=("type",),
                    ),
                ],
            },
        },
        means="Fields that are left out do not change, or get their defaults in a new queue.",
    ),
    "IronmqSubscriber": request({**_SUBSCRIBER_FIELDS, "signing": SIGNING_WANTED, **GATES_WANTED}, needs=("url",)),
    "IronmqMessage": answer(
        {
            "id": text("The message's id."),
            "body": text("Its body; bytes that are not text are replaced."),
            "body_base64": text("The exact bytes of a body that is not text."),
            "reserved_count": whole("How often it was reserved.", 0),
            "reservation_id": text("Needed to touch, release or delete it."),
            "push_statuses": array(ref("IronmqPushStatus")),
        },
        lacks=("body_base64", "reservation_id", "push_statuses"),
    ),
    "IronmqDelivery": answer(
        {
            "message_id": text("The message's id."),
            "accepted_at": text("When it was accepted.", format="date-time"),
            **_STATUS_FIELDS,
            "fields": obj("Values of the queue's named fields.", additionalProperties={"type": "string"}),
        },
        lacks=(*_STATUS_LACKS, "fields"),
        means="A delivery with its subscriber's last answer.",
    ),
    "IronmqPushStatus": answer(
        _STATUS_FIELDS,
        lacks=_STATUS_LACKS,
        means="A subscriber's last answer.",
    ),
}

_QUEUE_PLANNED = request(
    {
        "queue": ref("IronmqQueueSettings"),
        "dry_run": boolean("Only check it: the answer is the queue that there would be, and nothing is stored."),
    }
)
_SUBSCRIBERS_WANTED = request({"subscribers": array(ref("IronmqSubscriber"), minItems=1)}, needs=("subscribers",))
_MESSAGES_SHOWN = answer({"messages": array(ref("IronmqMessage"))})
_RESERVATION_FIELD: dict[str, Schema] = {"reservation_id": text("From the answer to the reservation.", minLength=1)}
_DONE = ref("IronmqDone")
_NAMED = request({"subscriber": text("Name of the subscriber.")}, needs=("subscriber",))
_STALE = {403: "The reservation is over"}
_POSTED = answer({"ids": array(text(), "In the order of the messages."), "msg": text()})
_POSTED_EXAMPLE = {"ids": [_MESSAGE_ID], "msg": "Messages put on queue."}
_ANY_BODY = request({}, means="Not needed; early IronMQ clients put their token here, as `oauth`.")

DESCRIPTION = ApiDescription(
    tag="Queues (IronMQ v3)",
    means="Push queues whose messages the hub delivers, and pull queues whose messages consumers reserve. "
    "Clients of IronMQ v3 work unchanged.",
    credentials={
        "ironmqOAuth": {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`OAuth TOKEN` or `Bearer TOKEN`, with a token of the project.",
        },
        "ironmqQuery": {
            "type": "apiKey",
            "in": "query",
            "name": "oauth",
            "description": "A token of the project. A header is better: queries are logged in many places.",
        },
    },
    shown={
        Auth.PROJECT: ("ironmqOAuth", "ironmqQuery"),
        Auth.PROJECT_OR_CAPABILITY: ("ironmqOAuth", "ironmqQuery"),
    },
    schemas=_SCHEMAS,
    names={
        "project": Named(means="The project's id.", example="5f0000000000000000000001"),
        "queue": Named(
            means="The queue's name: no slash, `?`, `%` or control characters.",
            schema=text(minLength=1, maxLength=MAX_QUEUE_NAME_BYTES),
            example="orders",
        ),
        "search": Named(means="The search's id.", schema=text(pattern="^[0-9a-f]{32}$"), example=SEARCH_ID),
        "alert": Named(means="The alert's id.", schema=text(pattern="^[0-9a-f]{12}$"), example=ALERT_ID),
        "table": Named(means="The table of the delivery report.", schema=text(enum=list(TABLES)), example="queues"),
        "message": Named(means="The message's id.", schema=text(pattern=r"^[0-9]{1,19}$"), example=_MESSAGE_ID),
    },
    query={
        "per_page": Named(means="Names on a page.", schema=whole("", 1, MAX_PER_PAGE, default=DEFAULT_PER_PAGE)),
        "previous": Named(means="The last name of the page before."),
        "prefix": Named(means="The beginning of the names."),
        "health": Named(
            means="Whether to tell of each queue what waits, and how its subscribers are doing: the worst of them.",
            schema=boolean("", default=False),
        ),
        "state": Named(means="State of the deliveries.", schema=text(enum=list(STATES))),
        "count": Named(means="Deliveries to examine.", schema=whole("", 1, MAX_LOOKED_AT, default=MAX_LOOKED_AT)),
        "after": Named(means="From the previous answer; omit it at first.", schema=text(maxLength=MAX_CURSOR)),
        "hours": Named(means="How many hours.", schema=whole("", 1, MAX_HOURS, default=DEFAULT_HOURS)),
        "value": Named(means="A value in a message.", schema=text(minLength=1, maxLength=MAX_VALUE)),
        "kind": Named(means="What the messages belong to.", schema=text(enum=list(KINDS))),
        "of": Named(
            means="The name of that queue or topic, or the application's name or id.", schema=text(maxLength=MAX_NAME)
        ),
        "in_state": Named(means="State of a delivery, in its protocol's words.", schema=text(maxLength=MAX_NAME)),
        "type": Named(means="The messages' type, in protocols that have types.", schema=text(maxLength=MAX_NAME)),
        "since": Named(means="From then on, as `2026-11-01T12:00:00Z`."),
        "until": Named(means="Before then."),
        "limit": Named(means="Messages at most.", schema=whole("", 1, MOST_EVENTS, default=DEFAULT_EVENTS)),
        "queue": Named(means="The queue's name, for a subscriber of a queue."),
        "subscriber": Named(means="Its name in the queue, or its id if there is no queue."),
        "n": Named(means="Messages at most.", schema=whole("", 1, MAX_BATCH, default=1)),
        "reservation_id": Named(means="The reservation, if it is not in the body."),
        "subscriber_name": Named(means="The subscriber that acknowledges a push, if it is not in the body."),
    },
    refusal=ref("IronmqRefusal"),
    refused=lambda _, reason: {"msg": reason},
    refusals={
        400: "Malformed, wrong type, or out of range",
        401: "No token, or not one of this project",
        404: "No such queue or message",
        406: "The answer would be too large: accept gzip",
        413: "Larger than 4 MiB",
        500: "The hub failed. The request may or may not have been carried out",
        503: "The hub is busy. The request may or may not have been carried out; repeat it after `Retry-After`",
    },
    routes={
        "ironmq.version": Described(
            means="Needs no token.", answer=answer({"version": text()}), answered={"version": "3"}
        ),
        "ironmq.list_queues": Described(
            means="By name, a page at a time: continue with `previous` until a page is not full.",
            asked={"per_page": "30", "prefix": "ord"},
            answer=answer(
                {
                    "queues": array(
                        answer(
                            {
                                "name": text(),
                                "type": text(enum=[each.value for each in QueueType]),
                                "subscribers": whole("0 of a pull queue.", 0),
                                "waiting": whole(
                                    "Messages in a pull queue; in others, deliveries that are owed, each counted once.",
                                    0,
                                ),
                                "complete": boolean("Whether these are all; otherwise there are more."),
                                "health": nullable(ref("SubscriberHealth")),
                            },
                            lacks=("type", "subscribers", "waiting", "complete", "health"),
                        )
                    )
                }
            ),
            answered={"queues": [{"name": "orders"}]},
        ),
        "ironmq.put_queue": Described(
            means="Without `push` it is a pull queue. The type of an existing queue cannot change, unless `convert` "
            "makes a pull queue a push queue.",
            request=_QUEUE_PLANNED,
            sent={"queue": {"type": "multicast", "push": _PUSH}},
            answer=answer({"queue": ref("IronmqQueue")}),
            answered={"queue": _QUEUE},
            refusals={403: "The type cannot change"},
        ),
        "ironmq.show_queue": Described(
            answer=answer({"queue": ref("IronmqQueueWithCounts")}),
            answered={"queue": {**_QUEUE, "size": 0, "total_messages": 12}},
        ),
        "ironmq.change_queue": Described(
            means="Fields that are left out do not change.",
            request=_QUEUE_PLANNED,
            sent={"queue": {"message_timeout": 120}},
            answer=answer({"queue": ref("IronmqQueueWithCounts")}),
            answered={"queue": {**_QUEUE, "message_timeout": 120, "size": 0, "total_messages": 12}},
            refusals={403: "The type cannot change"},
        ),
        "ironmq.delete_queue": Described(request=_ANY_BODY, answer=_DONE, answered={"msg": "Deleted"}),
        "ironmq.add_subscribers": Described(
            request=_SUBSCRIBERS_WANTED,
            sent={"subscribers": [{"name": "second", "url": "https://second.example/in"}]},
            answer=_DONE,
            answered={"msg": "Updated"},
        ),
        "ironmq.replace_subscribers": Described(
            means="Outstanding deliveries to subscribers that are not in the new list are cancelled.",
            request=_SUBSCRIBERS_WANTED,
            sent={"subscribers": [_SUBSCRIBER]},
            answer=_DONE,
            answered={"msg": "Updated"},
        ),
        "ironmq.remove_subscribers": Described(
            means="A push queue keeps at least one.",
            request=request(
                {"subscribers": array(request({"name": text(), "url": text()}), minItems=1)}, needs=("subscribers",)
            ),
            sent={"subscribers": [{"name": "second"}]},
            answer=_DONE,
            answered={"msg": "Updated"},
        ),
        "ironmq.pause": Described(
            means="Nothing is sent to it, except what a person asks for, until it is resumed. Deliveries that become"
            " due wait and use up no attempts; they still expire with their messages. Not for unicast queues.",
            request=_NAMED,
            sent={"subscriber": "shop"},
            answer=_DONE,
            answered={"msg": "Paused"},
        ),
        "ironmq.resume": Described(
            means="What waits is sent from the next minute on, up to 1,000 deliveries a minute; new messages at once.",
            request=_NAMED,
            sent={"subscriber": "shop"},
            answer=_DONE,
            answered={"msg": "Resumed"},
        ),
        "ironmq.show_health": Described(
            means="In one word, the same wherever it is told, with what waits for it. What a unicast queue owes"
            " is owed to no one of its subscribers, and counted for the queue alone.",
            answer=answer(
                {
                    "waiting": whole("Deliveries that wait in this queue, each counted once.", 0),
                    "complete": boolean("Whether these are all."),
                    "subscribers": array(answer({"name": text(), "health": health_schema([*HealthState])})),
                }
            ),
            answered={
                "waiting": 12,
                "complete": True,
                "subscribers": [
                    {
                        "name": "shop",
                        "health": {**HEALTH_EXAMPLE, "state": "paused", "text": "paused", "since": None, "until": None},
                    }
                ],
            },
        ),
        "ironmq.replay": Described(
            means="Each delivery to it that was given up gets one more try, as long as its message lives. One request"
            " examines `n` deliveries that the queue gave up; send its `after` with the next request to continue,"
            " until it is null. With `message_ids`, only those messages are examined; with `since` and `until`, only"
            " messages accepted in that time are found.",
            request=request(
                {
                    "subscriber": text("Name of the subscriber, or its id, as searches and events show it."),
                    "message_ids": array(
                        text("A message's id.", pattern=r"^[0-9]{1,19}$"),
                        "Only these messages.",
                        minItems=1,
                        maxItems=MAX_LOOKED_AT,
                    ),
                    "n": whole("Deliveries to examine.", 1, MAX_LOOKED_AT, default=MAX_LOOKED_AT),
                    "after": nullable(text("From the previous answer; omit it at first.", maxLength=MAX_CURSOR)),
                    "since": nullable(text("Only messages accepted from then on: 2026-11-01T12:00:00Z.")),
                    "until": nullable(text("Only messages accepted before then.")),
                    "dry_run": boolean("Only count."),
                },
                needs=("subscriber",),
            ),
            sent={"subscriber": "shop", "dry_run": True},
            answer=answer(
                {
                    "looked": whole("Deliveries that were examined.", 0),
                    "found": whole("Those that it missed.", 0),
                    "replayed": whole("Those that will be tried again.", 0),
                    "after": nullable(text("Send it with the next request to continue.")),
                    "msg": text(),
                }
            ),
            answered={"looked": 3, "found": 2, "replayed": 0, "after": None, "msg": "Counted"},
        ),
        "ironmq.post_messages": Described(
            means="A queue that does not exist is created as a pull queue. 201 means that all messages are stored and"
            " queued.",
            request=request(
                {
                    "messages": array(
                        request(
                            {
                                "body": text("Delivered byte by byte."),
                                "delay": whole("Seconds before it is available.", 0, MAX_DELAY_S),
                                "push_headers": obj(
                                    "Sent with each push; five at most. `User-Agent` and `Content-Type` replace the"
                                    " hub's and the subscriber's.",
                                    additionalProperties={"type": "string"},
                                    maxProperties=5,
                                ),
                                "ordering_key": text(
                                    "Messages of a push queue with the same key reach each subscriber one after the "
                                    "other.",
                                    pattern="^[!-~]*$",
                                    maxLength=256,
                                ),
                            },
                            needs=("body",),
                        ),
                        minItems=1,
                        maxItems=MAX_BATCH,
                    )
                },
                needs=("messages",),
            ),
            sent={"messages": [{"body": "grüß dich"}, {"body": "later", "delay": 60}]},
            answer=_POSTED,
            answered={"ids": [_MESSAGE_ID, "1910848478410441217"], "msg": "Messages put on queue."},
            refusals=OVER_QUOTA,
        ),
        "ironmq.post_webhook": Described(
            means="The message is the exact body. A batch of CloudEvents (`application/cloudevents-batch+json`, at most"
            " 100) is a message for each event, and is answered with 200. Headers `X-Subscribers-NAME` are push"
            " headers, with the names that `push_headers` may have.",
            request={"description": "Any bytes."},
            request_type="application/octet-stream",
            answer=_POSTED,
            answered=_POSTED_EXAMPLE,
            also=(200,),
            refusals=OVER_QUOTA,
        ),
        "ironmq.peek_messages": Described(asked={"n": "10"}, answer=_MESSAGES_SHOWN, answered={"messages": [_MESSAGE]}),
        "ironmq.delete_messages": Described(
            means="Without `ids` the queue is cleared.",
            request=request(
                {
                    "ids": array(
                        {
                            "anyOf": [
                                text("A message's id.", pattern="^[0-9]{1,19}$"),
                                request(
                                    {
                                        "id": text(pattern="^[0-9]{1,19}$"),
                                        "reservation_id": text(),
                                        "subscriber_name": text(),
                                    },
                                    needs=("id",),
                                ),
                            ]
                        },
                        minItems=1,
                        maxItems=MAX_BATCH,
                    )
                }
            ),
            sent={"ids": [{"id": _MESSAGE_ID, "reservation_id": _RESERVATION}]},
            answer=_DONE,
            answered={"msg": "Deleted"},
            refusals=_STALE,
        ),
        "ironmq.reserve_messages": Described(
            means=(
                "Nobody else gets a reserved message until the reservation is over. Only pull queues have reservations."
            ),
            request=request(
                {
                    "n": whole("Messages at most; one by default.", 1, MAX_BATCH),
                    "timeout": whole("Seconds; the queue's setting by default.", 1, MAX_RESERVATION_S),
                    "wait": whole("Seconds to wait for a first one.", 0, MAX_WAIT_S),
                    "delete": boolean("Delete them at once."),
                }
            ),
            sent={"n": 1, "timeout": 60},
            answer=_MESSAGES_SHOWN,
            answered={"messages": [{**_MESSAGE, "reserved_count": 1, "reservation_id": _RESERVATION}]},
        ),
        "ironmq.show_message": Described(
            answer=answer({"message": ref("IronmqMessage")}), answered={"message": _MESSAGE}
        ),
        "ironmq.delete_message": Described(
            means=(
                "This is how a subscriber that answered 202 acknowledges; it needs only the reservation, and no token."
            ),
            request=request({"reservation_id": text(), "subscriber_name": text()}),
            sent={"reservation_id": _RESERVATION},
            answer=_DONE,
            answered={"msg": "Deleted"},
            refusals=_STALE,
        ),
        "ironmq.touch_message": Described(
            means="The answer has a new reservation id; the old one is over.",
            request=request(
                {**_RESERVATION_FIELD, "timeout": whole("Seconds from now.", 1, MAX_RESERVATION_S)},
                needs=("reservation_id",),
            ),
            sent={"reservation_id": _RESERVATION, "timeout": 120},
            answer=answer({"reservation_id": text(), "msg": text()}),
            answered={"reservation_id": "b9b03c509b8bacbcc26faaec3671b554", "msg": "Touched"},
            refusals=_STALE,
        ),
        "ironmq.release_message": Described(
            request=request(
                {**_RESERVATION_FIELD, "delay": whole("Seconds before it is available.", 0, MAX_DELAY_S)},
                needs=("reservation_id",),
            ),
            sent={"reservation_id": _RESERVATION, "delay": 5},
            answer=_DONE,
            answered={"msg": "Released"},
            refusals=_STALE,
        ),
        "ironmq.show_push_statuses": Described(
            answer=answer({"subscribers": array(ref("IronmqPushStatus"))}), answered={"subscribers": [_STATUS]}
        ),
        "ironmq.list_attempts": Described(
            means=f"Attempts of all subscribers, manual ones too; of each subscriber the last {MOST_EARLIER + 1}.",
            answer=answer(
                {
                    "attempts": array(
                        answer(
                            {
                                "subscriber_name": text("Its name when it was last asked."),
                                "number": whole("Number of the attempt at this subscriber, from 1.", 1),
                                "started_at": text("When it began.", format="date-time"),
                                "took_ms": whole("Milliseconds until the answer was complete.", 0),
                                "status_code": whole("HTTP status; 0 when no answer came.", 0),
                                "msg": text("The answer in a line."),
                                "answer": text(
                                    f"The beginning of the answer's body, at most {ANSWER_BYTES} bytes; empty if"
                                    " there was none, and for older attempts. Credentials of the request are hidden."
                                ),
                                "result": text("What the answer meant.", enum=[each.value for each in Verdict]),
                                "manual": boolean("Whether a person asked for it."),
                            }
                        )
                    ),
                    "forgotten": whole("Older attempts that are in the delivery records only.", 0),
                }
            ),
            answered={
                "attempts": [
                    {
                        "subscriber_name": "shop",
                        "number": 1,
                        "started_at": "2026-11-21T05:34:16.123Z",
                        "took_ms": 104,
                        "status_code": 503,
                        "msg": "Service Unavailable",
                        "answer": '{"error": "the database is down"}',
                        "result": "failed",
                        "manual": False,
                    }
                ],
                "forgotten": 0,
            },
        ),
        "ironmq.list_deliveries": Described(
            means="Oldest first. One request examines `count` failed deliveries that have not arrived, and shows those"
            " in the state. Pages may be short or empty; continue with `after` until it is null. Deliveries that"
            " succeeded or were not tried yet can only be found by their message's id.",
            asked={"state": "exhausted"},
            answer=answer(
                {
                    "deliveries": array(ref("IronmqDelivery")),
                    "after": nullable(text("Send it with the next request to continue.")),
                }
            ),
            answered={
                "deliveries": [
                    {"message_id": _MESSAGE_ID, "accepted_at": "2026-11-18T11:00:00.000Z", **_STATUS},
                ],
                "after": None,
            },
        ),
        "ironmq.show_report": Described(
            means="This project's part of the newest delivery report, which covers all projects. `verdict` is null if "
            "the report has nothing about the project. "
            "`conserved`: each delivery owed is delivered, given up or still on its way, and no finding is a breach. "
            "Columns may be added.",
            answer=answer(
                {
                    "report": answer(
                        {
                            "from": text("First day, UTC.", format="date"),
                            "to": text("Last day, UTC.", format="date"),
                            "as_of": text("When deliveries were judged."),
                            "verdict": nullable(obj("The project's totals, by state of its deliveries.")),
                        }
                    )
                }
            ),
            answered={
                "report": {
                    "from": "2026-11-15",
                    "to": "2026-11-21",
                    "as_of": "2026-11-22T01:30:00.000000+00:00",
                    "verdict": {
                        "messages": 81,
                        "owed": 93,
                        "delivered": 93,
                        "missing": 0,
                        "breaches": 0,
                        "conserved": True,
                    },
                }
            },
            refusals={404: "There is no report yet"},
        ),
        "ironmq.show_external_id": Described(
            means="For subscribers on AWS with a role (docs/destinations.md): its trust policy lets in the principal, "
            "with this `sts:ExternalId`. The hub chose it, and it stays the same.",
            answer=answer(
                {
                    "external_id": text("The project's own; an application of webhooks has another one."),
                    "principal": text("Who assumes the role."),
                }
            ),
            answered={
                "external_id": "5b2f9e1c7a4d4e0f8c6b3a2d1e0f9c8b7a6d5e4f",
                "principal": "arn:aws:iam::999999999999:root",
            },
        ),
        "ironmq.show_report_table": Described(
            means=(
                "Rows of the newest delivery report. `complete` is false if the report's table has more rows than can "
                "be read here."
            ),
            answer=answer(
                {"rows": array(obj("A row; its columns are those of the report's table.")), "complete": boolean()}
            ),
            answered={
                "rows": [{"queue": "orders", "messages": 81, "deliveries": 93, "delivered": 93}],
                "complete": True,
            },
            refusals={404: "No such table, or no report yet"},
        ),
        "ironmq.show_outages": Described(
            means="From the newest delivery report, which is made each night, for subscribers of any protocol: a "
            "queue's by `queue` and its name or id, a webhook's endpoint by `webhooks/` and the application's id, and "
            "its own. Down is who let at least three attempts in a row fail, of several messages, until the next "
            "success. Columns may be added.",
            asked={"queue": "orders", "subscriber": "shop"},
            answer=answer(
                {
                    "as_of": text("When the report was made."),
                    "said": array(text(), "A sentence for each row; or one that says why there is none."),
                    "outages": array(
                        obj("One; several if it was removed and registered again under the same name."),
                    ),
                }
            ),
            answered={
                "as_of": "2026-11-22T01:30:00.000000+00:00",
                "said": [
                    "Down once in 30 days, longest 4 h; its retries last 1 h; 214 messages were given up meanwhile."
                ],
                "outages": [
                    {
                        "queue": "orders",
                        "subscriber": "shop",
                        "days": 30,
                        "times_down": 1,
                        "longest_ms": 14_400_000,
                        "down_ms": 14_400_000,
                        "down_since": None,
                        "retries_lasted_ms": 3_600_000,
                        "given_up": 214,
                        "reachable": 0,
                        "needed_ms": None,
                    }
                ],
            },
            refusals={404: "There is no report yet"},
        ),
        "ironmq.show_subscriber_activity": Described(
            means="For subscribers of any protocol: a queue's by `queue` and name, a mapping or endpoint by its id."
            " Counted like the project's activity; `complete` is false if so many subscribers were busy that quieter"
            " ones may not have been counted.",
            asked={"queue": "orders", "subscriber": "shop", "hours": "1"},
            answer=answer(
                {
                    "hours": array(
                        answer(
                            {
                                "hour": text("When it began, UTC.", format="date-time"),
                                "attempts": whole("Requests made to it.", 0),
                                "delivered": whole("Deliveries that it accepted.", 0),
                                "failed": whole("Attempts that failed.", 0),
                                "given_up": whole("Deliveries to it that used up their tries or expired.", 0),
                                "average_ms": nullable(whole("Milliseconds that an attempt took on average.", 0)),
                                **_PERCENTILES,
                            }
                        )
                    ),
                    **_PERCENTILES,
                    "complete": boolean("Whether all its attempts are counted."),
                }
            ),
            answered={
                "hours": [
                    {
                        "hour": "2026-11-18T11:00:00.000Z",
                        "attempts": 5,
                        "delivered": 4,
                        "failed": 1,
                        "given_up": 0,
                        "average_ms": 87,
                        **_PERCENTILES_SHOWN,
                    }
                ],
                **_PERCENTILES_SHOWN,
                "complete": True,
            },
        ),
        **ALERTS,
        **TRACES,
        **CHANGES,
        **PAST,
        **FINDING,
        "ironmq.show_activity": Described(
            means="For all protocols, oldest hour first, including the current hour. Counted from the delivery records "
            "with a delay of a minute or two; "
            "a statistic, which may be a little low after a crash.",
            asked={"hours": "1"},
            answer=answer(
                {
                    "hours": array(
                        answer(
                            {
                                "hour": text("When it began, UTC.", format="date-time"),
                                "accepted": whole(
                                    "Messages accepted, including those that the hub made from others.", 0
                                ),
                                "attempts": whole("Requests made to subscribers.", 0),
                                "delivered": whole("Deliveries that a subscriber accepted.", 0),
                                "failed": whole("Attempts that failed.", 0),
                                "given_up": whole("Deliveries that used up their tries or expired.", 0),
                                **_PERCENTILES,
                            }
                        )
                    ),
                    **_PERCENTILES,
                }
            ),
            answered={
                "hours": [
                    {
                        "hour": "2026-11-18T11:00:00.000Z",
                        "accepted": 5,
                        "attempts": 6,
                        "delivered": 4,
                        "failed": 2,
                        "given_up": 1,
                        **_PERCENTILES_SHOWN,
                    }
                ],
                **_PERCENTILES_SHOWN,
            },
        ),
    },
)
"""Covers all routes of the queue API."""
