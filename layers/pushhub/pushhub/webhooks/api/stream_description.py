"""The descriptions of streams for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pushhub.base.signing import MAX_GRACE_S
from pushhub.web.description import (
    OVER_QUOTA,
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
    text,
    whole,
)
from pushhub.webhooks.api.description_parts import AT, TEXTS, TIME, TOO_FAR, UID, page
from pushhub.webhooks.api.transformation_description import TRANSFORMATIONS
from pushhub.webhooks.model.reading import MOST_SIZE, MOST_WAIT_S
from pushhub.webhooks.wire.stream import MOST_EVENTS, MOST_PAYLOAD
from pushhub.webhooks.wire.stream_sink import SINK_TYPES

STREAM_ID = "strm_3MRPxozw7TPC3MSkZFTrdbEFpc6"

STREAM_SCHEMAS: dict[str, Schema] = {
    "WebhooksStream": answer(
        {
            "id": text("Begins with `strm_`."),
            "uid": nullable(UID),
            "name": text(),
            "metadata": TEXTS,
            "createdAt": TIME,
            "updatedAt": TIME,
        }
    ),
    "WebhooksStreamEventType": answer(
        {
            "name": text(),
            "description": text(),
            "archived": boolean("No further sink may choose it."),
            "deprecated": boolean(),
            "featureFlags": array(text()),
            "createdAt": TIME,
            "updatedAt": TIME,
        }
    ),
}

_STREAM: dict[str, Any] = {
    "id": STREAM_ID,
    "uid": "orders",
    "name": "Orders",
    "metadata": {},
    "createdAt": AT,
    "updatedAt": AT,
}
_TYPE: dict[str, Any] = {
    "name": "order.paid",
    "description": "An order was paid",
    "archived": False,
    "deprecated": False,
    "featureFlags": [],
    "createdAt": AT,
    "updatedAt": AT,
}
_STREAM_FIELDS: dict[str, Schema] = {
    "name": text(minLength=1, maxLength=256),
    "uid": nullable(UID),
    "metadata": nullable(TEXTS),
}
_WANTED = Described(
    request=request(_STREAM_FIELDS, needs=("name",)),
    sent={"name": "Orders", "uid": "orders"},
    answer=ref("WebhooksStream"),
    answered=_STREAM,
    refusals={409: "The uid is already in use"},
)
_TYPE_FIELDS: dict[str, Schema] = {
    "description": nullable(text()),
    "featureFlags": nullable(array(text(), maxItems=100)),
    "deprecated": nullable(boolean()),
    "archived": nullable(boolean()),
}
_TYPE_WANTED = Described(
    means="A project has one list of event types, for streams and for webhooks.",
    request=request({"name": text(), **_TYPE_FIELDS}, needs=("name",)),
    sent={"name": "order.paid", "description": "An order was paid"},
    answer=ref("WebhooksStreamEventType"),
    answered=_TYPE,
)


_SINK_ID = "sink_3MRPxozw7TPC3MSkZFTrdbEFpc6"
_MESSAGE_ID = "msg_3MRPxozw7TPC3MSkZFTrdbEFpc6"
_EVENT: dict[str, Any] = {
    "id": _MESSAGE_ID,
    "eventId": None,
    "eventType": "order.paid",
    "payload": {"id": 7},
    "channels": None,
    "timestamp": AT,
}
_SINK: dict[str, Any] = {
    "id": _SINK_ID,
    "uid": None,
    "type": "amazonS3",
    "config": {"bucket": "orders", "region": "eu-west-1", "roleArn": "arn:aws:iam::111122223333:role/hub"},
    "status": "retrying",
    "failureReason": "AccessDenied: Access Denied",
    "nextRetryAt": AT,
    "batchSize": 100,
    "maxWaitSecs": 0,
    "currentIterator": _MESSAGE_ID,
    "eventTypes": None,
    "channels": None,
    "metadata": {},
    "createdAt": AT,
    "updatedAt": AT,
}
_TYPE_OF_SINK = text("`kinesis` is not Svix's, whose clients cannot read it.", enum=list(SINK_TYPES))
_FILTERS: dict[str, Schema] = {
    "eventTypes": nullable(array(text("The types it gets; all if null or empty."))),
    "channels": nullable(array(text("It gets events in any of these; all if null or empty."))),
}
STREAM_SCHEMAS["WebhooksStreamSink"] = answer(
    {
        "id": text("Begins with `sink_`."),
        "uid": nullable(text()),
        "type": _TYPE_OF_SINK,
        "config": obj("Without secrets (docs/streaming.md)."),
        "status": text(enum=["enabled", "retrying", "disabled"]),
        "failureReason": text("Why its batch could not be written."),
        "nextRetryAt": text("When that batch is tried again."),
        "batchSize": whole("Events of a batch, at most.", 1, MOST_SIZE),
        "maxWaitSecs": whole("Seconds that the oldest event waits for others.", 0, MOST_WAIT_S),
        "currentIterator": text("The id of the last event that has arrived."),
        "eventTypes": nullable(array(text())),
        "channels": nullable(array(text())),
        "metadata": TEXTS,
        "createdAt": TIME,
        "updatedAt": TIME,
    },
    lacks=("failureReason", "nextRetryAt"),
)
_SINK_FIELDS: dict[str, Schema] = {
    "type": _TYPE_OF_SINK,
    "config": nullable(obj("docs/streaming.md.")),
    "uid": nullable(text(pattern=r"^(?!sink_)[a-zA-Z0-9_-]{1,60}$")),
    "status": nullable(text(enum=["enabled", "disabled"])),
    "batchSize": nullable(whole("100 by default; Kinesis takes 500, SQS, SNS and EventBridge one.", 1, MOST_SIZE)),
    "maxWaitSecs": nullable(whole("", 0, MOST_WAIT_S)),
    **_FILTERS,
    "metadata": nullable(TEXTS),
}
_SINK_WANTED = Described(
    request=request(_SINK_FIELDS, needs=("type",)),
    sent={"type": "amazonS3", "config": _SINK["config"]},
    answer=ref("WebhooksStreamSink"),
    answered=_SINK,
    refusals={409: "The uid is already in use", 501: "A type that this hub does not have"},
)
_SINK_SHOWN = Described(answer=ref("WebhooksStreamSink"), answered=_SINK)
_HEADERS = Described(
    answer=answer({"headers": TEXTS, "sensitive": array(text("A header whose value is not shown."))}),
    answered={"headers": {"X-Team": "orders"}, "sensitive": []},
)
_KEY = Described(answer=answer({"key": text()}), answered={"key": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"})

SINK_ROUTES: Mapping[str, Described] = {
    "webhooks.create_stream_sink": replace(_SINK_WANTED, means="It gets what is posted from now on."),
    "webhooks.list_stream_sinks": page("WebhooksStreamSink", _SINK, _SINK_ID),
    "webhooks.show_stream_sink": _SINK_SHOWN,
    "webhooks.replace_stream_sink": replace(
        _SINK_WANTED,
        sent={"type": "http", "config": {"url": "https://acme.example/events"}},
        means="It keeps its place. If it does not exist, it is created from the body, with 201.",
        also=(201,),
    ),
    "webhooks.patch_stream_sink": replace(
        _SINK_WANTED,
        means="What is not given stays. What failed is tried again.",
        sent={"type": "http", "batchSize": 500},
    ),
    "webhooks.delete_stream_sink": Described(),
    "webhooks.retry_stream_sink": replace(_SINK_SHOWN, means="An extension."),
    "webhooks.skip_stream_sink": replace(_SINK_SHOWN, means="It goes on behind that batch. An extension."),
    "webhooks.read_stream_sink": Described(
        means="Without an iterator or a time it goes on behind what has arrived. An iterator says that everything "
        "before it has.",
        asked={"limit": "50"},
        answer=answer(
            {
                "data": array(answer({"eventType": text(), "payload": text("As it was posted."), "timestamp": TIME})),
                "iterator": text("Where to go on."),
                "done": boolean("Whether there is nothing more at present."),
            }
        ),
        answered={
            "data": [{"eventType": "order.paid", "payload": '{"id": 7}', "timestamp": AT}],
            "iterator": _MESSAGE_ID,
            "done": True,
        },
    ),
    "webhooks.show_stream_headers": _HEADERS,
    "webhooks.patch_stream_headers": replace(
        _HEADERS,
        means="Headers that are not given stay; null removes one.",
        request=request(
            {
                "headers": nullable({"type": "object", "additionalProperties": nullable(text())}),
                "deleteHeaders": nullable(array(text())),
            }
        ),
        sent={"headers": {"X-Team": "orders"}},
    ),
    "webhooks.show_stream_secret": _KEY,
    "webhooks.rotate_stream_secret": replace(
        _KEY,
        means="The old one goes on for a day, or for as long as is asked for.",
        request=request(
            {
                "key": nullable(text("`whsec_` and base64 of 24 to 75 bytes; generated if left out.")),
                "gracePeriodSeconds": nullable(whole("", 0, MAX_GRACE_S)),
            }
        ),
        sent={},
        refusals={400: "Too many old secrets are still valid"},
    ),
    "webhooks.show_stream_transformation": TRANSFORMATIONS["webhooks.show_sink_transformation"],
    "webhooks.set_stream_transformation": TRANSFORMATIONS["webhooks.set_sink_transformation"],
    "webhooks.simulate_stream_transformation": TRANSFORMATIONS["webhooks.simulate_sink_transformation"],
}
_POLLER_TOKEN = Described(
    means="It opens `.../sink/{sink}/events` alone.",
    answer=answer(
        {"token": text(), "id": text(), "createdAt": TIME, "expiresAt": text("There if it ends.")},
        lacks=("expiresAt",),
    ),
    answered={
        "token": "strmsk_5f0000000000000000000001_3MRPxozw7TPC3MSkZFTrdbEFpc6_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
        "id": "0123456789abcdef",
        "createdAt": AT,
    },
)
ACCESS_ROUTES: Mapping[str, Described] = {
    "webhooks.stream_access": Described(
        means="The portal shows the stream as an application.",
        request=request(
            {
                "expiry": nullable(whole("Seconds.", 3_600, 604_800)),
                "featureFlags": nullable(array(text())),
                "sessionId": nullable(text("A name to end it by.")),
            }
        ),
        sent={"expiry": 3600},
        answer=ref("WebhooksAccess"),
        answered={
            "url": "https://hub.example/console#key=eyJhcHBJZCI6Li4ufQ==",
            "token": "strmsk_5f0000000000000000000001_3MRPxozw7TPC3MSkZFTrdbEFpc6_5rF0bqzYz1h3mKpX",
        },
    ),
    "webhooks.stream_logout": Described(refusals={403: "It is not the token of a stream"}),
    "webhooks.expire_stream": Described(
        request=request(
            {
                "expiry": nullable(whole("Seconds that they remain valid.", 0, 259_200)),
                "sessionIds": nullable(array(text("Only tokens of these."))),
            }
        ),
        sent={},
    ),
    "webhooks.show_poller_token": _POLLER_TOKEN,
    "webhooks.rotate_poller_token": replace(
        _POLLER_TOKEN,
        request=request(
            {
                "expiry": nullable(whole("Seconds that the new one is valid; for ever if left out.", 1, 31_536_000)),
                "oldTokenExpiry": nullable(whole("Seconds that the old one remains so; 300 by default.", 0, 86_400)),
            }
        ),
        sent={"oldTokenExpiry": 60},
        refusals={400: "Too many old secrets are still valid", 409: "Another request gives it one at the same time"},
    ),
}
STREAM_ROUTES: Mapping[str, Described] = {
    **SINK_ROUTES,
    **ACCESS_ROUTES,
    "webhooks.create_stream": _WANTED,
    "webhooks.list_streams": page("WebhooksStream", _STREAM, STREAM_ID),
    "webhooks.show_stream": Described(answer=ref("WebhooksStream"), answered=_STREAM),
    "webhooks.replace_stream": replace(
        _WANTED, means="If it does not exist, it is created from the body, with 201.", also=(201,)
    ),
    "webhooks.patch_stream": replace(
        _WANTED,
        means="`description` is the name by which Svix calls it here.",
        request=request(
            {
                "name": nullable(text(minLength=1, maxLength=256)),
                "description": nullable(text(minLength=1, maxLength=256)),
                "uid": nullable(UID),
                "metadata": nullable(TEXTS),
            }
        ),
        sent={"description": "Orders"},
    ),
    "webhooks.show_stream_external_id": Described(
        means="For sinks with a role. An extension.",
        answer=answer({"externalId": text("The stream's own."), "principal": text("Who assumes the role.")}),
        answered={"externalId": "6XyTzmYkJ7vDqS0n2aWbQ1", "principal": "arn:aws:iam::999999999999:root"},
    ),
    "webhooks.list_stream_events": replace(
        page("WebhooksMessage", _EVENT, _MESSAGE_ID),
        means="What is no JSON object is shown as `rawPayload`. An extension.",
    ),
    "webhooks.expunge_stream_event": Described(
        means="It stays listed, and sinks that have not read it do not get it. An extension."
    ),
    "webhooks.delete_stream": Described(means="Its sinks read nothing more, and its tokens end."),
    "webhooks.create_stream_events": Described(
        means="They keep their order. With 202 all of them are stored; after any other answer post all of them again, "
        "with the same `Idempotency-Key` if you have one.",
        request=request(
            {
                "events": array(
                    request(
                        {
                            "eventType": text(pattern=r"^[a-zA-Z0-9\-_.]{1,256}$"),
                            "payload": text(f"Any text of at most {MOST_PAYLOAD} bytes."),
                            "channels": nullable(array(text())),
                        },
                        needs=("eventType", "payload"),
                    ),
                    minItems=1,
                    maxItems=MOST_EVENTS,
                ),
                "stream": nullable(request(_STREAM_FIELDS, needs=("name",))),
            },
            needs=("events",),
        ),
        sent={"events": [{"eventType": "order.paid", "payload": '{"id": 7}'}]},
        answer=answer({}),
        answered={},
        refusals={**OVER_QUOTA, 508: TOO_FAR},
    ),
    "webhooks.create_stream_event_type": replace(_TYPE_WANTED, refusals={409: "One that is not archived has the name"}),
    "webhooks.list_stream_event_types": page("WebhooksStreamEventType", _TYPE, "order.paid"),
    "webhooks.show_stream_event_type": Described(answer=ref("WebhooksStreamEventType"), answered=_TYPE),
    "webhooks.replace_stream_event_type": replace(
        _TYPE_WANTED,
        means="If it does not exist, it is created, with 201. Schemas and group stay.",
        request=request({"name": nullable(text()), **_TYPE_FIELDS}),
        also=(201,),
    ),
    "webhooks.patch_stream_event_type": replace(
        _TYPE_WANTED, means="", request=request(_TYPE_FIELDS), sent={"deprecated": True}
    ),
    "webhooks.delete_stream_event_type": Described(
        means="Archives it; with `expunge=true` it is deleted.", asked={"expunge": "true"}
    ),
}
STREAM_NAMES: Mapping[str, Named] = {
    "stream": Named(means="Id or uid of the stream.", example=STREAM_ID),
}
