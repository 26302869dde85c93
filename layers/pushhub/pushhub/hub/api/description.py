"""The hub API's descriptions for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pushhub.engine.model.search import MAX_FIELD_BYTES, MAX_FIELDS
from pushhub.hub.api.call import MAX_PAGE
from pushhub.hub.model.filters import FilterOperator, MatchRule
from pushhub.hub.model.log import HubState, Location
from pushhub.hub.model.mapping import MAX_PARAMETERS as MAX_PARAMETERS_OF_MAPPING
from pushhub.hub.model.message import MAX_CHAIN
from pushhub.hub.model.notice import Level
from pushhub.hub.model.parameters import DataType
from pushhub.hub.wire.mapping import LONGEST_WAIT_S, MAX_FILTERS, MAX_IDENTIFIERS, MAX_MESSAGES
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
    text,
    whole,
)

_ID = "6afd86c01a84b29127400200"
_STORE = "5f0000000000000000000001"
_OBJECT_ID = text(pattern="^[0-9a-f]{24}$")
_TIME = text(format="date-time")
_MESSAGE_TYPE = text("For example `order:new`.", minLength=1, maxLength=200, examples=["order:new"])

_FILTER = {"path": "payload.status", "operator": "eq", "value": "complete", "match_rule": "any"}
_OPTIONS: dict[str, Any] = {
    "retries_allowed": True,
    "retry_base": 30.0,
    "retry_cap": 3600.0,
    "max_attempts": None,
    "lenient": False,
}
_MAPPING_SENT = {
    "name": "acme.import",
    "url": "https://acme.example/import",
    "token": "a-secret-of-the-service",
    "messages": ["order:new"],
    "filters": [_FILTER],
    "identifiers": {"number": "payload.number"},
    "search_fields": ["number"],
}
_MAPPING: dict[str, Any] = {
    "id": _ID,
    **_MAPPING_SENT,
    "parameters": [],
    "formatted_filters": [_FILTER],
    "options": _OPTIONS,
    "enabled": True,
    "required": False,
    "integration_id": None,
    "store_id": _STORE,
}
_SCHEDULER_SENT = {"key": "acme:order:poll", "count": 1, "interval": "hours"}
_SCHEDULER = {"id": _ID, **_SCHEDULER_SENT, "next_at": "2026-11-18T12:06:40.000Z", "store_id": _STORE}
_PARAMETER_SENT = {"name": "acme.key", "value": 1, "data_type": "integer"}
_PARAMETER = {"id": _ID, **_PARAMETER_SENT, "store_id": _STORE}
_INTEGRATION_SENT = {"name": "acme", "url": "https://acme.example", "category": "custom"}
_INTEGRATION: dict[str, Any] = {
    "id": _ID,
    **_INTEGRATION_SENT,
    "token": "a-secret-of-the-endpoint",
    "display": "Acme",
    "description": None,
    "help": None,
    "icon_url": None,
    "services": [{"name": "import", "path": "/import"}],
    "state": "ready",
    "error_messages": None,
    "store_id": _STORE,
}
_ROW: dict[str, Any] = {
    "id": _ID,
    "message_id": _ID,
    "message": "order:new",
    "state": "pending",
    "queue_name": "incoming",
    "source": "incoming",
    "consumer": None,
    "destination_name": None,
    "is_consumer_remote": False,
    "integration_icon_url": None,
    "mapping_id": None,
    "parent_id": None,
    "attempts": 0,
    "last_error": None,
    "reason": None,
    "created_at": "2026-11-18T11:06:40.000Z",
    "attempt_at": None,
    "completed_at": None,
    "locked_at": None,
    "next_attempt": "2026-11-18T11:06:40.000Z",
}
_MESSAGE: dict[str, Any] = {
    **_ROW,
    "payload": {"number": "R1"},
    "origin": None,
    "extra": {},
    "store_id": _STORE,
    "store_name": "A shop",
    "consumer_class": None,
    "can_attempt": False,
    "result": None,
    "events": [],
    "last_answer": None,
    "children": [],
    "notifications": [],
    "references": None,
    "reference_token": None,
    "mapping": None,
}
_NOTICE: dict[str, Any] = {
    "id": _ID,
    "store_id": _STORE,
    "message_id": _ID,
    "level": "warn",
    "subject": "An address is missing",
    "description": "Order R1 has no street.",
    "occurrences": 1,
    "logged_on": "2026-11-18T11:06:40.000Z",
    "last_update": "2026-11-18T11:06:40.000Z",
    "origin": None,
    "reference_type": "Order",
    "reference_id": None,
    "reference_token": "R1",
    "details": {},
}

_FILTER_FIELDS: dict[str, Schema] = {
    "path": text("Path in the message, for example `payload.order.items.*.sku`.", minLength=1, maxLength=500),
    "operator": text("How to compare the value; `eq` by default.", enum=list(FilterOperator)),
    "value": text("With what.", maxLength=2000),
    "match_rule": text("Whether all values found must match, or any; `all` by default.", enum=list(MatchRule)),
}
_OPTION_FIELDS: dict[str, Schema] = {
    "retries_allowed": boolean("If false, a failed message waits for a person."),
    "retry_base": {
        "type": "number",
        "description": "Seconds to the first retry.",
        "minimum": 1,
        "maximum": LONGEST_WAIT_S,
    },
    "retry_cap": {
        "type": "number",
        "description": "Maximum seconds between retries.",
        "minimum": 1,
        "maximum": LONGEST_WAIT_S,
    },
    "max_attempts": nullable(whole("Failures until a person decides; null for any number.", 1, 100_000)),
    "lenient": boolean("Accepts answers without the message's id as success."),
}
_TYPES = array(_MESSAGE_TYPE, "Types of messages that go to it.", minItems=1, maxItems=MAX_MESSAGES)
_MAPPING_NAME = text("For example `acme.import`.", minLength=1, maxLength=255)
_URL = text("Where messages are posted.", maxLength=2048, examples=["https://acme.example/import"])
_SECRET = text("Sent to the service, as `X-Augury-Token`.", minLength=1, maxLength=500)
_INTERVAL = text("`minutes`, `hours`, `days` or `weeks`.", examples=["hours"])
_VALUE: Schema = {"description": "A value of the given type."}
_DATA_TYPE = text("The type of the value.", enum=list(DataType))


def _wrapped(name: str, schema: str) -> Schema:
    return request(
        {name: ref(schema)}, needs=(name,), means=f"The fields may also be sent without `{name}` around them."
    )


_ROW_FIELDS: dict[str, Schema] = {
    "id": _OBJECT_ID,
    "message_id": _OBJECT_ID,
    "message": _MESSAGE_TYPE,
    "state": text("Its state.", enum=list(HubState)),
    "queue_name": text("Where it is.", enum=list(Location)),
    "source": text("`incoming`, or `accepted` for a copy that goes to a service.", enum=list(Location)),
    "consumer": nullable(text("The service it is for.")),
    "destination_name": nullable(text("The same.")),
    "is_consumer_remote": boolean(),
    "integration_icon_url": nullable(text()),
    "mapping_id": nullable(_OBJECT_ID),
    "parent_id": nullable({**_OBJECT_ID, "description": "The message from which it was made."}),
    "attempts": whole("Failed tries in a row.", 0),
    "last_error": nullable(text()),
    "reason": nullable(text("Why it went nowhere.")),
    "created_at": nullable(_TIME),
    "attempt_at": nullable(_TIME),
    "completed_at": nullable(_TIME),
    "locked_at": {**nullable(_TIME), "description": "Since when its service is working on it."},
    "next_attempt": _TIME,
}

INVALID = 422
"""The status of an object that breaks a rule, with what is wrong by field."""

_SCHEMAS: dict[str, Schema] = {
    "HubRefusal": answer(
        {
            "error": text("What is wrong."),
            "errors": obj("What is wrong, by field.", additionalProperties=array(text())),
        },
        lacks=("errors",),
    ),
    "HubNothing": answer({}, means="An empty object."),
    "HubFilter": request(_FILTER_FIELDS, needs=("path",)),
    "HubOptions": request(_OPTION_FIELDS),
    "HubMappingFields": request(
        {
            "name": _MAPPING_NAME,
            "url": _URL,
            "token": _SECRET,
            "messages": _TYPES,
            "parameters": array(_OBJECT_ID, "Ids of the parameters sent to it.", maxItems=MAX_PARAMETERS_OF_MAPPING),
            "filters": array(ref("HubFilter"), "All must match.", maxItems=MAX_FILTERS),
            "identifiers": obj(
                "Names and paths; only the first message with the same values goes there.",
                additionalProperties=text(minLength=1, maxLength=500),
                maxProperties=MAX_IDENTIFIERS,
            ),
            "search_fields": array(
                text(maxLength=MAX_FIELD_BYTES),
                "Fields of payloads, such as `order.number`, by whose values its messages are found by the queue API's"
                " `/search`. Each costs a write for each message.",
                maxItems=MAX_FIELDS,
            ),
            "options": ref("HubOptions"),
            "enabled": boolean(),
            "required": boolean("Cannot be disabled."),
            "signing": SIGNING_WANTED,
            **GATES_WANTED,
        }
    ),
    "HubMapping": answer(
        {
            "id": _OBJECT_ID,
            "name": text(),
            "url": text(),
            "token": text("A secret, visible to anyone who has the store's token."),
            "messages": array(text()),
            "parameters": array(_OBJECT_ID),
            "identifiers": obj(additionalProperties=text()),
            "search_fields": array(text()),
            "filters": array(answer(_FILTER_FIELDS)),
            "formatted_filters": array(answer(_FILTER_FIELDS), "The same."),
            "options": answer(_OPTION_FIELDS),
            "enabled": boolean(),
            "required": boolean(),
            "integration_id": nullable(_OBJECT_ID),
            "store_id": text(),
            "signing": SIGNING_SHOWN,
            "signing_ends": SIGNING_ENDS,
            **GATES_SHOWN,
            "health": ref("SubscriberHealth"),
        },
        lacks=("signing", "signing_ends", "oauth", "mtls", "health"),
        means="Which types of messages go to which service.",
    ),
    "HubSchedulerFields": request(
        {
            "key": _MESSAGE_TYPE,
            "count": whole("Number of intervals between messages.", 1, 1_000_000),
            "interval": _INTERVAL,
        }
    ),
    "HubScheduler": answer(
        {
            "id": _OBJECT_ID,
            "key": text(),
            "count": whole(),
            "interval": text(),
            "next_at": _TIME,
            "store_id": text(),
        },
        means="A message of one type at regular intervals.",
    ),
    "HubParameterFields": request(
        {"name": text("For example `acme.key`.", minLength=1, maxLength=255), "value": _VALUE, "data_type": _DATA_TYPE}
    ),
    "HubParameter": answer(
        {"id": _OBJECT_ID, "name": text(), "value": _VALUE, "data_type": _DATA_TYPE, "store_id": text()},
        means="A value that is sent to services.",
    ),
    "HubIntegrationFields": request(
        {
            "name": text("Lower-case letters, digits, `-` and `_`.", pattern="^[a-z0-9_-]{1,100}$"),
            "url": text(
                "The endpoint's URL, without `/endpoint.json`.", maxLength=2048, examples=["https://acme.example"]
            ),
            "token": text("Sent to the endpoint.", maxLength=500),
            "category": text(minLength=1, maxLength=100),
        }
    ),
    "HubIntegration": answer(
        {
            "id": _OBJECT_ID,
            "name": text(),
            "url": text(),
            "token": text(),
            "category": text(),
            "display": nullable(text("Its name for people.")),
            "description": nullable(text()),
            "help": nullable(text()),
            "icon_url": nullable(text()),
            "services": array(obj(), "As the endpoint describes them."),
            "state": text("`pending` while it has no services.", enum=["ready", "pending"]),
            "error_messages": nullable(array(text(), "The parts of `endpoint.json` that could not be read.")),
            "store_id": text(),
        },
        means="An endpoint, registered by its URL.",
    ),
    "HubNotification": answer(
        {
            "id": text(),
            "store_id": text(),
            "message_id": _OBJECT_ID,
            "level": text(enum=list(Level)),
            "subject": text(),
            "description": nullable(text()),
            "occurrences": whole("How often it was reported.", 1),
            "logged_on": _TIME,
            "last_update": _TIME,
            "origin": nullable(text()),
            "reference_type": {},
            "reference_id": {},
            "reference_token": {},
            "details": obj("Further keys."),
        },
        means="A remark for people, from a service or the hub.",
    ),
    "HubRow": answer(_ROW_FIELDS, lacks=("next_attempt",), means="A message in a list."),
    "HubMessage": answer(
        {
            **_ROW_FIELDS,
            "payload": nullable(obj("Its content; null when it is no longer kept.")),
            "origin": nullable(text()),
            "extra": obj("Other fields with which it was pushed."),
            "store_id": text(),
            "store_name": text(),
            "consumer_class": nullable(text()),
            "can_attempt": boolean("Whether `attempt_now` would have an effect."),
            "result": {"description": "The last answer: its JSON, or its text."},
            "events": {"description": "The field `events` of the answer."},
            "last_answer": nullable(
                answer(
                    {
                        "attempt": whole(),
                        "status": nullable(whole()),
                        "error": nullable(text()),
                        "message": nullable(text()),
                        "content_type": nullable(text()),
                        "polled": nullable(text("The address that was polled, for a poll.")),
                        "at": _TIME,
                        "duration_ms": whole(),
                    }
                )
            ),
            "children": array(
                answer(
                    {
                        "id": _OBJECT_ID,
                        "message": _MESSAGE_TYPE,
                        "state": text(enum=list(HubState)),
                        "location": text(enum=list(Location)),
                    }
                ),
                "Messages made from it.",
            ),
            "notifications": array(ref("HubNotification")),
            "references": {"type": "null"},
            "reference_token": {"type": "null"},
            "mapping": nullable(ref("HubMapping")),
        },
        lacks=("next_attempt",),
        means="A message with all details.",
    ),
}

_NOTHING = ref("HubNothing")
_BARE = "With `.json` at the end of the path, the answer is a bare array."
_WAITING = {429: "Too many requests of the store wait for endpoints: `Retry-After` says when to try again"}
_CHANGED = {409: "It was changed in the meantime: try again"}


def _object(
    kind: str, schema: str, sent: dict[str, Any], shown: dict[str, Any], change: dict[str, Any]
) -> dict[str, Described]:
    """The five routes of one kind of object: list, create, show, change, delete."""
    answered = ref(schema)
    wanted = _wrapped(kind, f"{schema}Fields")
    return {
        f"hub.list_{kind}s": Described(answer=array(answered), answered=[shown]),
        f"hub.make_{kind}": Described(
            request=wanted, sent={kind: sent}, answer=answered, answered=shown, refusals=_CHANGED
        ),
        f"hub.show_{kind}": Described(answer=answered, answered=shown),
        f"hub.change_{kind}": Described(
            means="Fields that are left out do not change.",
            request=wanted,
            sent={kind: change},
            answer=answered,
            answered=shown | change,
            refusals=_CHANGED,
        ),
        f"hub.delete_{kind}": Described(answer=_NOTHING, answered={}, refusals=_CHANGED),
    }


def _paged(name: str, of: Schema, **more: Schema) -> Schema:
    return answer({"page": whole("", 1), "pages": whole("", 1), **more, name: array(of)})


DESCRIPTION = ApiDescription(
    tag="Stores (Spree hub protocol)",
    means=("Messages of a store, the services they go to, and the results; hub protocol v5. A store is a project."),
    credentials={
        "storeToken": {
            "type": "apiKey",
            "in": "header",
            "name": "X-Augury-Token",
            "description": "A token of the store. A store that does not exist is refused like a wrong token.",
        }
    },
    shown={Auth.PROJECT: ("storeToken",)},
    schemas=_SCHEMAS,
    names={
        "store": Named(means="The store's id.", example=_STORE),
        "id": Named(means="Its id.", schema=_OBJECT_ID, example=_ID),
        "hub.show_queue:id": Named(means="Which queue.", schema=text(enum=list(Location)), example="accepted"),
    },
    query={
        "page": Named(means="Page number; a page has 25 items.", schema=whole("", 1, MAX_PAGE, default=1)),
        "message": Named(means="Only messages of this type."),
        "filter_state": Named(means="Only messages in this state.", schema=text(enum=list(HubState))),
        "state": Named(means="The same.", schema=text(enum=list(HubState))),
        "mapping_id": Named(means="Only those for this mapping.", schema=_OBJECT_ID),
        "consumer_class": Named(means="The same.", schema=_OBJECT_ID),
        "source": Named(means="Only incoming messages, or only copies.", schema=text(enum=list(Location))),
        "message_id": Named(means="Only this message.", schema=_OBJECT_ID),
        "start_date": Named(means="Not before.", schema=_TIME),
        "end_date": Named(means="Before.", schema=_TIME),
        "level": Named(means="Only of this level.", schema=text(enum=list(Level))),
        "reference_type": Named(means="Only about objects of this kind."),
        "reference_token": Named(means="Only about this object."),
        "attempt_now": Named(means="`true`: try it again at once.", schema=boolean()),
        "archive": Named(means="`true`: give it up.", schema=boolean()),
        "global": Named(means="`1`: global integrations, of which there are none."),
    },
    refusal=ref("HubRefusal"),
    refused=lambda status, reason: (
        {"error": "Invalid object.", "errors": {"url": ["can't be blank"]}} if status == INVALID else {"error": reason}
    ),
    refusals={
        401: "No token, or not one of this store",
        404: "Nothing has that id",
        406: "The answer would be too large: accept gzip",
        413: "Larger than 2 MiB",
        422: "The object is not valid",
        500: "The hub failed. The request may or may not have been carried out",
        503: "The hub is busy. The request may or may not have been carried out; repeat it after `Retry-After`",
    },
    routes={
        "hub.push_message": Described(
            means="201 means stored and queued. The answer contains the fields that were sent, and the ids.",
            request=request(
                {"message": _MESSAGE_TYPE, "payload": obj("Its content."), "origin": text("Where it comes from.")},
                needs=("message", "payload"),
                means="Other fields are kept and passed on.",
            ),
            sent={"message": "order:new", "payload": {"order": {"number": "R1"}}},
            answer=obj(
                "The fields that were sent.",
                properties={"id": _OBJECT_ID, "message_id": _OBJECT_ID},
                required=["id", "message_id"],
            ),
            answered={"message": "order:new", "payload": {"order": {"number": "R1"}}, "id": _ID, "message_id": _ID},
            refusals={**OVER_QUOTA, 508: f"{MAX_CHAIN} messages led to it; taken for a loop"},
        ),
        "hub.show_message": Described(answer=ref("HubMessage"), answered=_MESSAGE),
        "hub.handle_message": Described(
            means="Give one of the two, in the body or the query.",
            request=request({"attempt_now": boolean("Try it again at once."), "archive": boolean("Give it up.")}),
            sent={"attempt_now": True},
            answer=ref("HubMessage"),
            answered=_MESSAGE,
            refusals=_CHANGED,
        ),
        "hub.list_message_types": Described(answer=array(text()), answered=["order:new"]),
        "hub.count_messages": Described(
            answer=answer(
                {
                    "incoming": whole("", 0),
                    "pending": whole("", 0),
                    "failing": whole("", 0),
                    "scheduled": whole("", 0),
                    "parked": whole("Waiting for a person.", 0),
                    "archived": whole("", 0),
                }
            ),
            answered={"incoming": 0, "pending": 2, "failing": 1, "scheduled": 0, "parked": 0, "archived": 12},
        ),
        "hub.show_queue": Described(
            means=f"The newest first. By default the archive shows completed messages. {_BARE}",
            asked={"page": "1", "state": "completed"},
            answer=_paged(
                "messages",
                ref("HubRow"),
                available_messages=array(text(), "Types that the store has had."),
                available_consumers=array(array(text()), "Names and ids of mappings."),
            ),
            answered={
                "page": 1,
                "pages": 1,
                "available_messages": ["order:new"],
                "available_consumers": [["acme.import", _ID]],
                "messages": [_ROW],
            },
        ),
        "hub.list_notifications": Described(
            means=f"Remarks from services and from the hub itself. {_BARE}",
            asked={"level": "error"},
            answer=_paged("notifications", ref("HubNotification")),
            answered={"page": 1, "pages": 1, "notifications": [_NOTICE]},
        ),
        **_object("mapping", "HubMapping", _MAPPING_SENT, _MAPPING, {"enabled": False}),
        **_object("scheduler", "HubScheduler", _SCHEDULER_SENT, _SCHEDULER, {"count": 2}),
        **_object("parameter", "HubParameter", _PARAMETER_SENT, _PARAMETER, {"value": 2}),
        "hub.list_integrations": Described(answer=array(ref("HubIntegration")), answered=[_INTEGRATION]),
        "hub.register_integration": Described(
            means="Reads the endpoint's `endpoint.json` and creates a mapping for each of its services. An endpoint "
            "that cannot be read is registered as `pending`, with the reason.",
            request=_wrapped("integration", "HubIntegrationFields"),
            sent={"integration": _INTEGRATION_SENT},
            answer=ref("HubIntegration"),
            answered=_INTEGRATION,
            refusals={**_CHANGED, **_WAITING},
        ),
        "hub.show_integration": Described(answer=ref("HubIntegration"), answered=_INTEGRATION),
        "hub.change_integration": Described(
            means="Reads the endpoint's description again; the owner's settings stay.",
            request=_wrapped("integration", "HubIntegrationFields"),
            sent={"integration": {"category": "shipping"}},
            answer=ref("HubIntegration"),
            answered=_INTEGRATION | {"category": "shipping"},
            refusals={**_CHANGED, **_WAITING},
        ),
        "hub.delete_integration": Described(answer=_NOTHING, answered={}, refusals=_CHANGED),
        "hub.sign_up": Described(
            means="Sets parameters and enables services. If one value is invalid, none is set.",
            request=request(
                {
                    "parameters": obj("Values by name, without the endpoint's prefix."),
                    "enabled": array(text(), "Names of services."),
                }
            ),
            sent={"parameters": {"api_key": "a-key"}, "enabled": ["import"]},
            answer=ref("HubIntegration"),
            answered=_INTEGRATION,
            refusals=_CHANGED,
        ),
        "hub.enable_mappings": Described(answer=array(ref("HubMapping")), answered=[_MAPPING], refusals=_CHANGED),
        "hub.disable_mappings": Described(
            answer=array(ref("HubMapping")), answered=[_MAPPING | {"enabled": False}], refusals=_CHANGED
        ),
    },
)
"""Of all routes of the hub's API."""
