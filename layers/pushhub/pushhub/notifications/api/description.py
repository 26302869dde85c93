"""The descriptions of Notifications 2.0's REST API for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from pushhub.notifications.model.subscription import ANY_API, APIS
from pushhub.notifications.model.topic import COMMIT_NOTIFICATIONS
from pushhub.notifications.wire.errors import ERROR_TYPE, KINDS, fault_body
from pushhub.notifications.wire.publish import ACTIONS
from pushhub.notifications.wire.subscriptions import COLLECTION_TYPE, SUBSCRIPTION_TYPE
from pushhub.web.api import Auth
from pushhub.web.description import (
    OVER_QUOTA,
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

_INFO = "https://www.cumulocity.com/guides/reference-guide/#error_reporting"

_NAMES = {status: name for _, status, name in reversed(KINDS)} | {500: fault_body()["error"]}
"""What errors are called, by status."""
_URL = "http://hub.example/notification2/subscriptions"
_RULE: dict[str, Any] = {
    "id": "1910848478410441216",
    "self": f"{_URL}/1910848478410441216",
    "source": {"id": "111", "self": "http://hub.example/inventory/managedObjects/111"},
    "context": "mo",
    "subscription": "orders",
    "nonPersistent": False,
    "fragmentsToCopy": ["c8y_Temperature"],
    "subscriptionFilter": {"apis": ["alarms", "measurements"], "typeFilter": "'a' or 'b'"},
}
_CONTEXT = text("`mo`: one source. `tenant`: the whole project.", enum=["mo", "tenant"])
_NAME = text("Letters and digits; the topic has the same name.", pattern="^[a-zA-Z0-9]{1,200}$")
_SOURCE: Schema = {
    "anyOf": [text(minLength=1, maxLength=200, pattern="^[^/]+$"), request({"id": {"type": ["string", "integer"]}})],
    "description": "The id of what it is about, or an object that has it.",
}
_FILTER_FIELDS: dict[str, Schema] = {
    "apis": array(text(enum=[*APIS, ANY_API]), "Types of notifications; by default all of the context."),
    "typeFilter": text("`t`, `'t'` or `'a' or 'b'`, compared with the type in the data.", maxLength=2000),
}
_TOKEN_QUESTION = {"token": "eyJhbGciOi..."}

_SCHEMAS: dict[str, Schema] = {
    "NotificationsRefusal": {
        **answer(
            {
                "error": text("A code for programs."),
                "message": text("What is wrong, for people."),
                "info": text("Where errors are described."),
                "details": obj("If backlogs are full: which topics accepted the request and which did not."),
            },
            lacks=("details",),
        )
    },
    "NotificationsSubscription": answer(
        {
            "id": text("Its id."),
            "self": text("Its URL.", format="uri"),
            "source": answer({"id": text(), "self": text()}, lacks=("self",)),
            "context": _CONTEXT,
            "subscription": _NAME,
            "nonPersistent": boolean("Whether notifications that are not consumed at once are lost."),
            "fragmentsToCopy": array(text(), "The only fields to copy, besides the standard ones."),
            "subscriptionFilter": answer(_FILTER_FIELDS, lacks=tuple(_FILTER_FIELDS)),
        },
        lacks=("fragmentsToCopy", "subscriptionFilter"),
        means="A rule that says which notifications go to which topic.",
    ),
    "NotificationsNotification": request(
        {
            "api": text("Its type.", enum=list(APIS)),
            "source": _SOURCE,
            "action": text("`CREATE` by default.", enum=list(ACTIONS)),
            "data": {"description": "Any JSON value."},
            "data_base64": text("Bytes, instead of `data`.", contentEncoding="base64"),
        },
        needs=("api", "source"),
        means="With either `data` or `data_base64`.",
    ),
}

_RULE_SHOWN = ref("NotificationsSubscription")
_NOTIFICATION = {"api": "alarms", "source": {"id": "111"}, "action": "UPDATE", "data": {"type": "a", "text": "hot"}}

DESCRIPTION = ApiDescription(
    tag="Topics (Notifications 2.0)",
    means="Rules, tokens and publishing for WebSocket consumers, for clients of Cumulocity's Notifications 2.0. "
    "A tenant is a project.",
    credentials={
        "tenantBasic": {
            "type": "http",
            "scheme": "basic",
            "description": "User `PROJECT/ANYBODY`; the password is a token of the project.",
        },
        "tenantBearer": {"type": "http", "scheme": "bearer", "description": "A token of the project."},
    },
    shown={Auth.PROJECT: ("tenantBasic", "tenantBearer"), Auth.CAPABILITY: ()},
    schemas=_SCHEMAS,
    names={
        "subscription": Named(means="The subscription's id.", example="1910848478410441216"),
    },
    query={
        "source": Named(means="Only those of this source."),
        "context": Named(means="Only those of this context.", schema=_CONTEXT),
        "notifications.delete_subscriptions:context": Named(means="The context; `mo` by default.", schema=_CONTEXT),
        "subscription": Named(means="Only those of this name."),
        "notifications.list_subscribers:subscription": Named(means="The topic's name.", required=True, schema=_NAME),
        "typeFilter": Named(means="Only those with this filter."),
        "currentPage": Named(means="Which page.", schema=whole("", 1, 1_000_000, default=1)),
        "pageSize": Named(means="Subscriptions on a page.", schema=whole("", 1, 2000, default=5)),
        "withTotalElements": Named(means="Whether to count them.", schema=boolean()),
        "withTotalPages": Named(means="Whether to count the pages.", schema=boolean()),
        "token": Named(means="A consumer's token.", required=True),
        "consumer": Named(
            means="The client's own name, unique among the consumers of a shared subscriber.",
            schema={"type": "string", "minLength": 1, "maxLength": 255, "pattern": "\\S"},
        ),
    },
    refusal=ref("NotificationsRefusal"),
    refusal_type=ERROR_TYPE,
    refused=lambda status, reason: {"error": _NAMES[status], "message": reason, "info": _INFO},
    refusals={
        401: "No credentials, or invalid ones",
        404: "No such subscription",
        413: "Larger than 4 MiB",
        422: "Malformed, wrong type, or out of range",
        500: "The hub failed. The request may or may not have been carried out",
        503: "The hub is busy. The request may or may not have been carried out; repeat it after `Retry-After`",
    },
    routes={
        "notifications.root": Described(
            means="URI templates, which clients expect.",
            answer=answer(
                {
                    "self": text(),
                    "notificationSubscriptions": text(),
                    "notificationSubscriptionsBySource": text(),
                    "notificationSubscriptionsBySourceAndContext": text(),
                    "notificationSubscriptionsByContext": text(),
                }
            ),
            answered={
                "self": "http://hub.example/notification2",
                "notificationSubscriptions": _URL,
                "notificationSubscriptionsBySource": f"{_URL}?source={{source}}",
                "notificationSubscriptionsBySourceAndContext": f"{_URL}?source={{source}}&context={{context}}",
                "notificationSubscriptionsByContext": f"{_URL}?context={{context}}",
            },
        ),
        "notifications.create_subscription": Described(
            means="It cannot be changed, only deleted and created again. It applies to what is published from now on.",
            request=request(
                {
                    "context": _CONTEXT,
                    "subscription": _NAME,
                    "source": request({"id": {"type": ["string", "integer"]}}, means="Needed if the context is `mo`."),
                    "subscriptionFilter": request(_FILTER_FIELDS),
                    "fragmentsToCopy": array(text(minLength=1), maxItems=100),
                    "nonPersistent": boolean(),
                },
                needs=("context", "subscription"),
            ),
            sent={
                "context": "mo",
                "subscription": "orders",
                "source": {"id": "111"},
                "subscriptionFilter": {"apis": ["alarms", "measurements"]},
            },
            answer=_RULE_SHOWN,
            answer_type=SUBSCRIPTION_TYPE,
            answered=_RULE,
            refusals={409: "There is already one with that source, context and name"},
        ),
        "notifications.list_subscriptions": Described(
            means="A page of subscriptions.",
            asked={"context": "mo", "pageSize": "5"},
            answer=answer(
                {
                    "self": text(),
                    "next": text("Present if there is a next page."),
                    "prev": text("Present if there is a previous page."),
                    "subscriptions": array(_RULE_SHOWN),
                    "statistics": answer(
                        {
                            "currentPage": whole(),
                            "pageSize": whole(),
                            "totalElements": whole(),
                            "totalPages": whole(),
                        },
                        lacks=("totalElements", "totalPages"),
                    ),
                },
                lacks=("next", "prev"),
            ),
            answer_type=COLLECTION_TYPE,
            answered={
                "self": f"{_URL}?context=mo&pageSize=5&currentPage=1",
                "subscriptions": [_RULE],
                "statistics": {"currentPage": 1, "pageSize": 5},
            },
        ),
        "notifications.delete_subscriptions": Described(
            means="Give a context or a source. Published notifications stay in their topics.",
            asked={"source": "111", "context": "mo"},
        ),
        "notifications.show_subscription": Described(answer=_RULE_SHOWN, answer_type=SUBSCRIPTION_TYPE, answered=_RULE),
        "notifications.delete_subscription": Described(means="Published notifications stay in their topic."),
        "notifications.publish": Described(
            means=f"One, or an array of up to {COMMIT_NOTIFICATIONS}, in order. Each goes once into every topic with a "
            "matching subscription. If topics are full, the answer is 500 and says which accepted it.",
            request={
                "anyOf": [
                    ref("NotificationsNotification"),
                    array(ref("NotificationsNotification"), minItems=1, maxItems=COMMIT_NOTIFICATIONS),
                ]
            },
            sent=[_NOTIFICATION],
            answer=answer({"ids": array(text(), "In the order of the notifications.")}),
            answered={"ids": ["1910848478410441219"]},
            headers={
                "Idempotency-Key": Named(
                    means="A repeat with the same key within a day gets the same answer and has no further effect.",
                    schema=text(minLength=1, maxLength=255, pattern="^[!-~]+$"),
                )
            },
            refusals=OVER_QUOTA,
        ),
        "notifications.create_token": Described(
            means="Nothing is kept for a subscriber until it has connected once.",
            request=request(
                {
                    "subscriber": text("As whom.", minLength=1, maxLength=200),
                    "subscription": _NAME,
                    "type": text(enum=["notification"]),
                    "signed": boolean("Tokens are always signed."),
                    "shared": boolean("Whether several consumers may be connected and share the notifications."),
                    "nonPersistent": boolean("Which of the two topics of that name."),
                    "expiresInMinutes": whole("A day by default.", 0, 525_600),
                },
                needs=("subscriber", "subscription"),
            ),
            sent={"subscriber": "dashboard", "subscription": "orders", "expiresInMinutes": 60},
            answer=answer({"token": text()}),
            answered=_TOKEN_QUESTION,
        ),
        "notifications.show_token": Described(
            means="401 if it is bad or expired.",
            answer=answer(
                {
                    "sub": text("The subscriber."),
                    "webSocketOnly": text(),
                    "topic": text("`PROJECT/relnotif/SUBSCRIPTION`"),
                    "shared": text(),
                    "volatile": text(),
                    "iat": whole("Epoch seconds."),
                    "exp": whole("Epoch seconds."),
                },
                lacks=("shared", "volatile"),
            ),
            answered={
                "sub": "dashboard",
                "webSocketOnly": "true",
                "topic": "5f0000000000000000000001/relnotif/orders",
                "iat": 1_795_000_000,
                "exp": 1_795_003_600,
            },
        ),
        "notifications.unsubscribe": Described(
            means="500 if there is no such subscriber (any more), as clients expect.",
            answer=answer({"result": text()}),
            answered={"result": "DONE"},
        ),
        "notifications.list_subscribers": Described(
            means="Of the persistent and the non-persistent topic of that name. `bytes` is what its limit counts.",
            asked={"subscription": "orders"},
            answer=answer(
                {
                    "subscribers": array(
                        answer(
                            {
                                "subscription": _NAME,
                                "nonPersistent": boolean("Which of the two topics of that name."),
                                "subscriber": text("Its name."),
                                "shared": boolean("Whether several consumers may be connected."),
                                "consumers": whole("How many are connected."),
                                "unacknowledged": whole("Notifications sent to them and not acknowledged."),
                                "bytes": whole("From the oldest notification that it needs on."),
                                "oldest": nullable(text("When that one was accepted.", format="date-time")),
                            }
                        )
                    )
                }
            ),
            answered={
                "subscribers": [
                    {
                        "subscription": "orders",
                        "nonPersistent": False,
                        "subscriber": "dashboard",
                        "shared": False,
                        "consumers": 0,
                        "unacknowledged": 0,
                        "bytes": 20_480,
                        "oldest": "2026-11-23T08:00:00Z",
                    }
                ]
            },
        ),
        "notifications.consume": Described(
            means="The WebSocket API answers a WebSocket handshake; any other request gets 426.",
            answer=ref("NotificationsRefusal"),
            answer_type=ERROR_TYPE,
            answered={
                "error": "general/upgradeRequired",
                "message": "WebSocket handshake expected",
                "info": _INFO,
            },
            refusals={
                409: "Another consumer of the subscriber is connected, and the token is not shared or the name the same"
            },
        ),
    },
)
"""Of all routes of the REST API."""
