"""The webhooks API's descriptions for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pushhub.base.fields import setting_of
from pushhub.base.signature_schemes import ENCODINGS, HASHES, PRESETS
from pushhub.base.signing import MAX_GRACE_S
from pushhub.engine.model.circuit import CircuitState
from pushhub.engine.model.search import MAX_FIELD_BYTES, MAX_FIELDS
from pushhub.engine.model.subscriber_health import HealthState
from pushhub.engine.waiting.health import MOST_COUNTED
from pushhub.web.api import Auth
from pushhub.web.description import (
    OVER_QUOTA,
    ApiDescription,
    Described,
    Named,
    Schema,
    additions_shown,
    answer,
    array,
    boolean,
    nullable,
    obj,
    ref,
    request,
    settings_wanted,
    text,
    whole,
)
from pushhub.web.health_description import HEALTH_EXAMPLE, health_schema
from pushhub.webhooks.api.connector_description import (
    CONNECTOR,
    CONNECTOR_ID,
    CONNECTOR_ROUTES,
    CONNECTOR_SCHEMAS,
    CONNECTOR_WANTED,
)
from pushhub.webhooks.api.description_parts import AT, ENDPOINT_ID, RATE, TEXTS, TIME, TOO_FAR, UID, page
from pushhub.webhooks.api.dialect import CODES
from pushhub.webhooks.api.poller import STARTS
from pushhub.webhooks.api.source_description import SOURCE_NAMES, SOURCE_QUERY, SOURCE_ROUTES, SOURCE_SCHEMAS
from pushhub.webhooks.api.stream_description import STREAM_NAMES, STREAM_ROUTES, STREAM_SCHEMAS
from pushhub.webhooks.api.transformation_description import TRANSFORMATIONS
from pushhub.webhooks.applications.integrations import MOST
from pushhub.webhooks.endpoints.health import MOST_SHOWN
from pushhub.webhooks.model.application import ApplicationFields
from pushhub.webhooks.model.cloud_events import Mode
from pushhub.webhooks.model.connector import ConnectorProduct
from pushhub.webhooks.model.consumer import DEFAULT_LEASE_MS, MOST_LEASE_MS
from pushhub.webhooks.model.endpoint import EndpointFields
from pushhub.webhooks.model.event_type import EventType
from pushhub.webhooks.model.page import MAX_LIMIT
from pushhub.webhooks.model.portal import Capability
from pushhub.webhooks.model.portal_frame import MAX_ORIGIN_LENGTH, MAX_ORIGINS
from pushhub.webhooks.model.redaction import MAX_PATH_LENGTH, MAX_PATHS
from pushhub.webhooks.model.task import TaskKind, TaskStatus
from pushhub.webhooks.wire.destination import DESTINATION_TYPES
from pushhub.webhooks.wire.grant import WORDS
from pushhub.webhooks.wire.integration import MAX_NAME
from pushhub.webhooks.wire.portal import MAX_FLAGS

INVALID = 422
"""The status of a request that breaks a rule, with a list of what is wrong."""

_FURTHER_CODES = {
    403: "insufficient access",
    409: "conflict",
    500: "server_error",
    501: "not_implemented",
    508: "loop",
}

_NAMES = array(text(), minItems=1)
_MESSAGE_ID, _ATTEMPT_ID = "msg_3MRPxozovyLlR7ADBjfm3xddNLq", "atmpt_3MRPxozovyLlR7ADBjfm3xddNLq"
_APP_ID = "app_3MRPxozw7TPC3MSkZFTrdbEFpc6"


def _object(
    kind: str,
    schema: str,
    example: dict[str, Any],
    key: str,
    *,
    wanted: Mapping[str, Schema],
    needs: Sequence[str],
    sent: Mapping[str, Any],
    refusals: Mapping[int, str],
    **more: Mapping[str, Any],
) -> dict[str, Described]:
    """The routes of one kind of object.

    Args:
        kind: Its name, after the verb of a route.
        key: By which it is listed.
        sent: Example of a whole one.
        more: By verb, what its route has besides.
    """
    shown = Described(answer=ref(schema), answered=example)
    whole = replace(shown, request=request(wanted, needs=needs), sent=sent, refusals=refusals)
    routes = {
        "list": page(schema, example, key),
        "show": shown,
        "create": whole,
        "replace": whole,
        "patch": replace(whole, request=request(wanted)),
        "delete": Described(),
    }
    differing: dict[str, Mapping[str, Any]] = {"list": {}, "show": {}, **more}
    return {
        f"webhooks.{verb}_{kind}{'s' if verb == 'list' else ''}": replace(routes[verb], **each)
        for verb, each in differing.items()
    }


_APPLICATION: dict[str, Any] = {
    "id": _APP_ID,
    "uid": "acme",
    "name": "Acme",
    "throttleRate": None,
    "metadata": {},
    "createdAt": AT,
    "updatedAt": AT,
}
_ENDPOINT: dict[str, Any] = {
    "id": ENDPOINT_ID,
    "uid": None,
    "url": "https://acme.example/webhooks",
    "version": 1,
    "description": "",
    "disabled": False,
    "eventTypes": None,
    "filterTypes": None,
    "channels": None,
    "throttleRate": None,
    "rateLimit": None,
    "metadata": {},
    "createdAt": AT,
    "updatedAt": AT,
}
_SINK: dict[str, Any] = {
    "id": ENDPOINT_ID.replace("ep_", "sink_"),
    "uid": None,
    "type": "sqs",
    "config": {
        "queueUrl": "https://sqs.eu-west-1.amazonaws.com/123456789012/orders",
        "region": "eu-west-1",
        "roleArn": "arn:aws:iam::123456789012:role/pushhub",
        "externalId": "5b2f9e1c7a4d4e0f8c6b3a2d1e0f9c8b7a6d5e4f",
    },
    "status": "enabled",
    "batchSize": 1,
    "maxWaitSecs": 0,
    "currentIterator": "",
    "eventTypes": None,
    "channels": None,
    "metadata": {},
    "createdAt": AT,
    "updatedAt": AT,
}
_AUTOCONFIG_ID = "autocfg_3MRPxozw7TPC3MSkZFTrdbEFpc6"
_AUTOCONFIG_TOKEN: dict[str, Any] = {"id": _AUTOCONFIG_ID, "token": "auto_v2_eyJhaWQiOiJhcHBfM01S...", "createdAt": AT}
_INTEGRATION_ID = "integ_3MRPxozw7TPC3MSkZFTrdbEFpc6"
_INTEGRATION: dict[str, Any] = {"id": _INTEGRATION_ID, "name": "Order desk", "createdAt": AT, "updatedAt": AT}
_INTEGRATION_WANTED: dict[str, Schema] = {
    "name": text("", minLength=1, maxLength=MAX_NAME),
    "featureFlags": nullable(array(text(), maxItems=MAX_FLAGS)),
}
_EVENT_TYPE: dict[str, Any] = {
    "name": "user.created",
    "description": "A user was created",
    "archived": False,
    "deprecated": False,
    "schemas": None,
    "createdAt": AT,
    "updatedAt": AT,
    "featureFlag": None,
}

_ACCESS = {
    "url": "https://hub.example/console#key=eyJhcHBJZCI6Li4ufQ==",
    "token": "appsk_5f0000000000000000000001_3MRPxozw7TPC3MSkZFTrdbEFpc6_5rF0bqzYz1h3mKpX",
}
_MESSAGE: dict[str, Any] = {
    "id": _MESSAGE_ID,
    "eventId": None,
    "eventType": "user.created",
    "payload": {"email": "a@b.example"},
    "channels": None,
    "timestamp": AT,
}
_ATTEMPT: dict[str, Any] = {
    "id": _ATTEMPT_ID,
    "url": "https://acme.example/webhooks",
    "msgId": _MESSAGE_ID,
    "endpointId": ENDPOINT_ID,
    "response": "ok",
    "responseStatusCode": 200,
    "responseDurationMs": 50,
    "status": 0,
    "statusText": "success",
    "triggerType": 0,
    "timestamp": AT,
}
_DESTINATION: dict[str, Any] = {
    **{name: value for name, value in _ENDPOINT.items() if name != "metadata"},
    "nextAttempt": None,
    "status": 0,
    "statusText": "success",
    "health": {
        **HEALTH_EXAMPLE,
        "state": "delivering",
        "text": "delivering",
        "since": None,
        "until": None,
        "waiting": 0,
    },
}

_PATHS = nullable(array(text(maxLength=MAX_PATH_LENGTH, pattern=r"^[^.]+(\.[^.]+){0,9}$"), maxItems=MAX_PATHS))
_REDACTION: dict[str, Schema] = {
    "payload": {
        **_PATHS,
        "description": "Paths such as `user.email`, `items.*.card` or `**.email`, withheld when payloads are shown.",
    },
    "answers": {**_PATHS, "description": "Paths withheld from endpoints' answers before they are stored."},
}
_APPLICATION_WANTED = settings_wanted(
    ApplicationFields,
    uid=nullable(UID),
    metadata=nullable(TEXTS),
    redaction=nullable(request(_REDACTION, means=setting_of(ApplicationFields, "redaction").means)),
    searchFields=nullable(
        array(
            text(maxLength=MAX_FIELD_BYTES), setting_of(ApplicationFields, "search_fields").means, maxItems=MAX_FIELDS
        )
    ),
)
_APPLICATION_ADDITIONS = additions_shown(
    ApplicationFields,
    redaction=answer({name: array(text()) for name in _REDACTION}),
    searchFields=array(text(), setting_of(ApplicationFields, "search_fields").shown or ""),
)
_CLOUD_EVENTS: dict[str, Schema] = {
    "mode": text("Attributes in headers (`ce-...`), or everything in one JSON object.", enum=list(Mode)),
    "consent": boolean("Whether it gets no messages until the hub has asked it and it has consented."),
    "callback": boolean("Whether it may also consent later with a callback."),
}
_FRAME = {"origins": ["https://app.example.com"]}
_FRAME_WANTED = request(
    {
        "origins": array(
            text("https://, a host in lower case, a port if it is not 443.", maxLength=MAX_ORIGIN_LENGTH),
            "Of pages that may show the portal in a frame.",
            maxItems=MAX_ORIGINS,
        )
    },
    needs=("origins",),
)
_ENDPOINT_WANTED = settings_wanted(
    EndpointFields,
    url=text(setting_of(EndpointFields, "url").means, format="uri"),
    uid=nullable(UID),
    version=nullable(whole(setting_of(EndpointFields, "version").means, 1, 65_535)),
    eventTypes=nullable(array(text(), setting_of(EndpointFields, "event_types").means, minItems=1)),
    channels=nullable(array(text(), setting_of(EndpointFields, "channels").means, minItems=1, maxItems=10)),
    metadata=nullable(TEXTS),
    payloadFilters=nullable(
        array(
            request(
                {
                    "path": text("Names and indexes separated by dots."),
                    "operator": text(enum=["eq", "ne", "in", "exists", "prefix", "gt", "lt"]),
                    "value": {"description": "The value to compare with."},
                },
                needs=("path", "operator"),
            ),
            setting_of(EndpointFields, "filters").means,
            maxItems=10,
        )
    ),
    cloudEvents=nullable(
        request(_CLOUD_EVENTS, needs=("mode",), means=setting_of(EndpointFields, "cloud_events").means)
    ),
)
_ENDPOINT_ADDITIONS = additions_shown(
    EndpointFields,
    payloadFilters=_ENDPOINT_WANTED["payloadFilters"],
    cloudEvents=answer(
        {
            **_CLOUD_EVENTS,
            "allowedRate": nullable(whole("Requests a minute that it consented to; null for any number.")),
            "consented": boolean("Whether it consented."),
            "callbackUntil": TIME,
            "consentProblem": text("Why it has not consented so far."),
        },
        lacks=("allowedRate", "callback", "consented", "callbackUntil", "consentProblem"),
    ),
)
_ENDPOINT_SHOWN_FIELDS = {**_ENDPOINT_WANTED, **_ENDPOINT_ADDITIONS}
_SIGNATURE_FIELDS: dict[str, Schema] = {
    "preset": text("A known sender's scheme.", enum=list(PRESETS)),
    "content": text("Template of what is hashed."),
    "hash": text(enum=list(HASHES)),
    "encoding": text(enum=list(ENCODINGS)),
    "key": obj("`prefix`, cut off the secret, and `encoding` of the rest: `utf8`, `hex` or `base64`."),
    "header": obj("`name`, `value`, `each`, `joiner`, and `keys`: `all` or `newest`."),
    "headers": TEXTS,
    "query": TEXTS,
    "legacy": boolean("Needed for `sha1`."),
    "endsAt": text("When it ends, RFC 3339, within 400 days; at least one stays."),
    "oldSecretsEnd": array(TIME, "The end of each earlier secret that still signs."),
}
_SIGNATURES_WANTED = nullable(
    array(
        request(
            {
                **{name: nullable(schema) for name, schema in _SIGNATURE_FIELDS.items() if name != "oldSecretsEnd"},
                "oldSecretsEnd": nullable(array(text(), "Ignored.")),
                "secret": nullable(text("Never shown again.")),
                "gracePeriodSeconds": nullable(whole("How long the previous secret signs too.", 0, MAX_GRACE_S)),
            }
        ),
        "One or two schemes that sign each request (docs/signatures.md); none for Standard Webhooks.",
    )
)
_SIGNATURES_LIST = array(answer(_SIGNATURE_FIELDS, lacks=tuple(_SIGNATURE_FIELDS)))
_SIGNATURES_SHOWN = answer(
    {
        "signatures": _SIGNATURES_LIST,
        "inheritedFrom": text("Whose they are, if not the endpoint's own.", enum=["application", "project"]),
    },
    lacks=("inheritedFrom",),
)
_STRIPE: dict[str, Any] = {"preset": "stripe", "secret": "whsec_0123456789"}
_STRIPE_SHOWN: dict[str, Any] = {
    "signatures": [{"preset": "stripe", "content": "{ts}.{body}", "hash": "sha256", "oldSecretsEnd": []}]
}
_SHOW_SIGNATURES = Described(means="Without secrets. An extension.", answer=_SIGNATURES_SHOWN, answered=_STRIPE_SHOWN)
_SET_SIGNATURES = Described(
    means=(
        "A signature without a secret keeps the one that is stored with its header's name. An extension: "
        "docs/signatures.md has the presets and templates."
    ),
    request=request({"signatures": _SIGNATURES_WANTED}, needs=("signatures",)),
    sent={"signatures": [_STRIPE]},
    answer=_SIGNATURES_SHOWN,
    answered=_STRIPE_SHOWN,
)
_SIGNATURE_DEFAULTS_SHOWN = answer({"signatures": _SIGNATURES_LIST})
_DEFAULTS_ANSWERED: dict[str, Any] = {"signatures": [{"preset": "stripe", "content": "{ts}.{body}", "hash": "sha256"}]}
_SHOW_SIGNATURE_DEFAULTS = Described(
    means="None if there are none. An extension.", answer=_SIGNATURE_DEFAULTS_SHOWN, answered=_DEFAULTS_ANSWERED
)
_SET_SIGNATURE_DEFAULTS = Described(
    means=(
        "They sign with each receiver's own secret, so none is given here. A receiver's own schemes come first, then "
        "those of its application, then those of the project. An extension: docs/signatures.md."
    ),
    request=request({"signatures": _SIGNATURES_WANTED}, needs=("signatures",)),
    sent={"signatures": [{"preset": "stripe"}]},
    answer=_SIGNATURE_DEFAULTS_SHOWN,
    answered=_DEFAULTS_ANSWERED,
)
_OAUTH_NEEDED = ("grantType", "authMethod", "clientId", "tokenUrl")
_OAUTH_FIELDS: dict[str, Schema] = {
    "grantType": text(enum=["clientCredentials"]),
    "authMethod": text("`clientSecretJwt` is `private_key_jwt` of RFC 7523.", enum=list(WORDS.methods.values())),
    "clientId": text(),
    "tokenUrl": text("Of the token server."),
    "scopes": array(text()),
    "extraParams": TEXTS,
    "extraHeaders": TEXTS,
}
_OAUTH_SENT: dict[str, Any] = {
    "grantType": "clientCredentials",
    "authMethod": "clientSecretBasic",
    "clientId": "pushhub",
    "clientSecret": "secret-of-the-client",
    "tokenUrl": "https://login.example/token",
    "scopes": ["webhooks"],
}
_OAUTH_SHOWN: dict[str, Any] = {
    **{name: each for name, each in _OAUTH_SENT.items() if name != "clientSecret"},
    "extraParams": {},
    "extraHeaders": {},
}
_SET_OAUTH = Described(
    means=(
        "The endpoint is sent `Authorization: Bearer` with a token, which is asked for once in its lifetime. A secret "
        "that is left out stays as it is, as long as the token URL, the method and the client do. docs/gates.md."
    ),
    request=request(
        {
            **{name: nullable(each) for name, each in _OAUTH_FIELDS.items() if name not in _OAUTH_NEEDED},
            **{name: _OAUTH_FIELDS[name] for name in _OAUTH_NEEDED},
            "clientSecret": nullable(text("Never shown again.")),
            "refreshToken": nullable(text("Not supported.")),
            "jwtParams": nullable(
                request(
                    {
                        "secretBase64": nullable(text("An RSA private key, PEM or DER, in base64. Never shown again.")),
                        "signingAlgorithm": text(enum=["RS256"]),
                        "secretId": nullable(text("`kid` of the assertion.")),
                        "audience": nullable(text("`aud` of the assertion; the token URL if left out. An extension.")),
                        "tokenExpirySecs": nullable(whole("Seconds for which an assertion is valid.", 10, 300)),
                    },
                    needs=("signingAlgorithm",),
                )
            ),
        },
        needs=_OAUTH_NEEDED,
    ),
    sent=_OAUTH_SENT,
)
_IDENTITY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg0AiDFWsxfXLDQiXt
EhXmIY9cZ6s8vG7NTGBTCa5aqGahRANCAAS1B0dUm5IaIt/swC5Y9hnJ+XtFHInb
FUye9QP+JAnJHVSO4DDn0Mo1rWuAFOpJ9aB1QpJec6Rhsl0M4A4St9kC
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBIjCByaADAgECAgEBMAoGCCqGSM49BAMCMBoxGDAWBgNVBAMMD3B1c2hodWIu
ZXhhbXBsZTAgFw0yNjAxMDEwMDAwMDBaGA8yMTI2MDEwMTAwMDAwMFowGjEYMBYG
A1UEAwwPcHVzaGh1Yi5leGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
tQdHVJuSGiLf7MAuWPYZyfl7RRyJ2xVMnvUD/iQJyR1UjuAw59DKNa1rgBTqSfWg
dUKSXnOkYbJdDOAOErfZAjAKBggqhkjOPQQDAgNIADBFAiAGWeRGYKv9fKb9A+8N
quBznZlNM9Q4suobhlk9i9a/jgIhALqH3q5ngwTLXIc7CEz8omjP3O+l2qnCZMnj
qqKv29ZY
-----END CERTIFICATE-----
"""
"""Of nobody: an example."""
_MTLS_FIELDS: dict[str, Schema] = {
    "subject": text("Its common name."),
    "endsAt": TIME,
    "privateCa": boolean("Whether the receiver's own certificate is checked by authorities that were set."),
}
_MTLS_SHOWN = {"subject": "pushhub.example", "endsAt": AT, "privateCa": False}
_SECRET = nullable(text("`whsec_` and base64 of 24 to 75 bytes, or `whsk_` and an Ed25519 key; generated if left out."))
_CONSENT = Described(
    means="The URL is the one that an endpoint was given when it was asked; it counts once and for a day."
    " A header `WebHook-Allowed-Rate` names the requests a minute that it allows.",
    answer=answer(
        {
            "consented": boolean("Whether it gets messages now."),
            "allowedRate": nullable(whole("Requests a minute; null for any number.")),
        }
    ),
    answered={"consented": True, "allowedRate": 120},
)
_EVENT_TYPE_FIELDS = settings_wanted(
    EventType,
    schemas=nullable(obj(setting_of(EventType, "schemas").means)),
    featureFlag=nullable(text()),
    featureFlags=nullable(_NAMES),
    schemaEnforcement=nullable(text(setting_of(EventType, "enforcement").means, enum=["off", "warn", "reject"])),
)

_STATUS: dict[str, Schema] = {
    "status": whole("0 success, 1 pending, 2 fail, 3 sending, 4 canceled.", 0, 4),
    "statusText": text(enum=["success", "pending", "fail", "sending", "canceled"]),
}
_MESSAGE_FIELDS: dict[str, Schema] = {
    "id": text("Begins with `msg_`."),
    "eventId": nullable(text("The producer's own id for it.")),
    "eventType": text(),
    "payload": obj("`{}` if it was not requested, `expired` if it no longer exists."),
    "channels": nullable(array(text())),
    "tags": array(text()),
    "timestamp": TIME,
    "deliverAt": TIME,
    "orderingKey": text("Messages with the same key reach each endpoint one after the other."),
}
_MESSAGE_LACKS = ("tags", "deliverAt", "orderingKey")

_CIRCUIT_FIELDS: dict[str, Schema] = {
    "health": ref("SubscriberHealth"),
    "circuit": text(
        "`open`: it gets only probes. `ramping`: waiting messages are sent, more each minute.",
        enum=[each.value for each in CircuitState if each is not CircuitState.PAUSED],
    ),
    "circuitSince": nullable(text("When its circuit entered this state. RFC 3339, UTC.")),
    "nextProbe": nullable(text("While it is open: the time from which it is tried again. RFC 3339, UTC.")),
    "failedProbes": whole("While it is open: probes that failed.", 0),
    "failingSince": nullable(text("The first failure since it last accepted anything. RFC 3339, UTC.")),
    "disablesAt": nullable(text("When it is disabled if it continues to fail. RFC 3339, UTC.")),
}
_CIRCUIT: dict[str, Any] = {
    "health": HEALTH_EXAMPLE,
    "circuit": "open",
    "circuitSince": AT,
    "nextProbe": "2026-11-22T05:38:16.123Z",
    "failedProbes": 2,
    "failingSince": "2026-11-22T05:30:00.000Z",
    "disablesAt": "2026-11-27T05:30:00.000Z",
}

_TASK_ID = "qtask_3MRPxozw7TPC3MSkZFTrdbEFpc6"
_TASK_BEGUN: dict[str, Any] = {"id": _TASK_ID, "status": "running", "task": "endpoint.recover", "updatedAt": AT}
_TASK: dict[str, Any] = {**_TASK_BEGUN, "status": "finished", "data": {"messagesSent": 2, "messagesLooked": 5}}
_TASK_FIELDS: dict[str, Schema] = {
    "id": text("Begins with `qtask_`."),
    "status": text(enum=[each.value for each in TaskStatus]),
    "task": text(enum=[each.value for each in TaskKind]),
    "updatedAt": TIME,
}
_REPLAY_FIELDS: dict[str, Schema] = {
    "since": TIME,
    "until": nullable(TIME),
    "rate": nullable(whole("Messages per second. The hub's own field.", 1, 65_535)),
    "dryRun": boolean("Whether messages are only counted. The hub's own field."),
    "unlimited": boolean("Whether since may be more than 14 days before until. The hub's own field."),
}
_REPLAY: dict[str, Any] = {"request": request(_REPLAY_FIELDS, needs=("since",)), "sent": {"since": AT}}
_OPERATIONAL_WANTED = {name: schema for name, schema in _ENDPOINT_WANTED.items() if name != "channels"}
_OPERATIONAL_SHOWN_FIELDS = {name: schema for name, schema in _ENDPOINT_SHOWN_FIELDS.items() if name != "channels"}
_OPERATIONAL = {name: value for name, value in _ENDPOINT.items() if name != "channels"}
_POLLED = {"data": [_MESSAGE], "iterator": _MESSAGE_ID, "done": True}


def _endpoint_shown(fields: Mapping[str, Schema]) -> Schema:
    own = {"id": text("Begins with `ep_`."), "metadata": TEXTS, "createdAt": TIME, "updatedAt": TIME}
    # Only lists tell how each is doing.
    listed = {"health": ref("SubscriberHealth")}
    return answer({**fields, **own, **listed}, lacks=(*_ENDPOINT_ADDITIONS, *listed))


_SINK_TYPE = text("What it is.", enum=list(DESTINATION_TYPES))
_SINK_WANTED: dict[str, Schema] = {
    "type": text("`sqs`, `sns` or `eventBridge`; other types of Svix are answered with 501."),
    "config": obj(
        "`queueUrl`, `topicArn` or `eventBusName` (an ARN; a name alone with a role of its account), and `roleArn`, or "
        "`accessKeyId` and `secretAccessKey` (never shown again). `region`, `endpointUrl`, `detailType`; `externalId` "
        "is the hub's, and may be left out."
    ),
    "uid": nullable(text("Your own id for it.", pattern=r"^(?!sink_)[a-zA-Z0-9_-]{1,60}$")),
    "status": nullable(text("Whether it gets messages.", enum=["enabled", "disabled"])),
    "batchSize": nullable(whole("Accepted; messages are sent one by one.", 1, 1_000)),
    "maxWaitSecs": nullable(whole("Accepted; nothing waits for a batch.", 0, 300)),
    "eventTypes": nullable(array(text(), "The types it gets; null or empty for all.")),
    "channels": nullable(array(text(), "It gets messages in any of these; null or empty for all.")),
    "metadata": nullable(TEXTS),
}
_SCHEMAS: dict[str, Schema] = {
    "WebhooksSink": answer(
        {
            "id": text("Begins with `sink_`; as an endpoint, with `ep_`."),
            "uid": nullable(text()),
            "type": _SINK_TYPE,
            "config": obj("Without the secret."),
            "status": text("How it is doing.", enum=["enabled", "disabled", "paused", "retrying"]),
            "failureReason": text("Why it is retried or paused."),
            "nextRetryAt": TIME,
            "batchSize": whole("Always 1."),
            "maxWaitSecs": whole("Always 0."),
            "currentIterator": text("Always empty."),
            "eventTypes": nullable(array(text())),
            "channels": nullable(array(text())),
            "metadata": TEXTS,
            "createdAt": TIME,
            "updatedAt": TIME,
        },
        lacks=("failureReason", "nextRetryAt"),
    ),
    **SOURCE_SCHEMAS,
    **STREAM_SCHEMAS,
    "SubscriberHealth": health_schema([*HealthState]),
    "WebhooksMessage": answer(_MESSAGE_FIELDS, lacks=_MESSAGE_LACKS),
    "WebhooksAttemptedMessage": answer(
        {**_MESSAGE_FIELDS, **_STATUS, "nextAttempt": TIME}, lacks=(*_MESSAGE_LACKS, "nextAttempt")
    ),
    "WebhooksDestination": answer(
        {
            **{name: schema for name, schema in _ENDPOINT_SHOWN_FIELDS.items() if name != "metadata"},
            **_STATUS,
            "id": text(),
            "nextAttempt": nullable(TIME),
            "createdAt": TIME,
            "updatedAt": TIME,
            "health": ref("SubscriberHealth"),
        },
        lacks=tuple(_ENDPOINT_ADDITIONS),
    ),
    "WebhooksAttempt": answer(
        {
            **_STATUS,
            "id": text("Begins with `atmpt_`."),
            "url": text(),
            "msgId": text(),
            "endpointId": text(),
            "response": text("The answer, at most 20,000 bytes."),
            "responseStatusCode": whole("0 if there was no answer."),
            "responseDurationMs": whole(),
            "triggerType": whole("0 scheduled, 1 by hand.", 0, 1),
            "timestamp": TIME,
            "signedBy": array(
                text(),
                "The signature schemes of the request, unless it was Standard Webhooks alone. Ours, as the next two.",
            ),
            "tokenClient": text("The OAuth client whose token was sent; left out if none was."),
            "certificate": text("SHA-256 of the client certificate that was shown; left out if none was."),
            "msg": ref("WebhooksMessage"),
        },
        lacks=("msg", "signedBy", "tokenClient", "certificate"),
    ),
    "WebhooksRefusal": answer({"code": text("A code for programs."), "detail": text("For people.")}),
    "WebhooksProblem": answer({"loc": array(text(), "Where it is."), "msg": text("For people."), "type": text()}),
    "WebhooksValidationRefusal": answer(
        {"detail": array(ref("WebhooksProblem"))}, means="The errors found by validation."
    ),
    "WebhooksApplication": answer(
        {
            **{name: _APPLICATION_WANTED[name] for name in ("name", "throttleRate", "metadata")},
            "id": text("Begins with `app_`."),
            "uid": UID,
            "rateLimit": RATE,
            "metadata": TEXTS,
            **_APPLICATION_ADDITIONS,
            "createdAt": TIME,
            "updatedAt": TIME,
        },
        lacks=("uid", "rateLimit", *_APPLICATION_ADDITIONS),
    ),
    "WebhooksEndpoint": _endpoint_shown(_ENDPOINT_SHOWN_FIELDS),
    "WebhooksEventType": answer(
        {"name": text(), **_EVENT_TYPE_FIELDS, "createdAt": TIME, "updatedAt": TIME},
        lacks=("featureFlags", "groupName", "schemaEnforcement"),
    ),
    "WebhooksHeaders": answer({"headers": TEXTS, "sensitive": array(text(), "Those whose values are withheld.")}),
    "WebhooksTaskBegun": answer(_TASK_FIELDS),
    "WebhooksTask": answer({**_TASK_FIELDS, "data": obj("Its results so far.")}),
    "WebhooksOperationalEndpoint": _endpoint_shown(_OPERATIONAL_SHOWN_FIELDS),
    "WebhooksPolled": answer(
        {
            "data": array(ref("WebhooksMessage")),
            "iterator": text("Where to continue."),
            "done": boolean("Whether there is nothing more at present."),
        }
    ),
    "WebhooksLeasedMessage": answer(
        {"offset": whole("By which it is acknowledged.", 1), **_MESSAGE_FIELDS}, lacks=_MESSAGE_LACKS
    ),
    "WebhooksIntegration": answer(
        {
            "id": text("Begins with `integ_`."),
            "name": text(),
            "featureFlags": array(
                text(), "Event types that have a flag are shown to its key only if it is among these."
            ),
            "createdAt": TIME,
            "updatedAt": TIME,
        },
        lacks=("featureFlags",),
    ),
    **CONNECTOR_SCHEMAS,
    "WebhooksIntegrationKey": answer({"key": text("Opens the application; shown only this once.")}),
    "WebhooksAutoconfigToken": answer(
        {"id": text(), "token": text("For the consumer; shown only this once."), "createdAt": TIME}
    ),
    "WebhooksAutoconfig": answer(
        {
            "id": text(),
            "tokenCensored": text(),
            "status": text("Whether a consumer has set up its endpoint.", enum=["pending", "active"]),
            "endpId": text("Id of that endpoint."),
            "destId": text("Id of that endpoint, if it is a polling one."),
            "createdAt": TIME,
        },
        lacks=("endpId", "destId"),
    ),
    "WebhooksAccess": answer({"url": text("The portal's URL."), "token": text("Opens one application.")}),
    "WebhooksFrame": answer({"origins": array(text("Of pages that may show the portal in a frame."))}),
    "WebhooksKey": answer(
        {
            "key": text("The secret; for an Ed25519 key, its public half."),
            "publicKeysUrl": text("Where receivers get the public keys, without a token; only for an Ed25519 key."),
        },
        lacks=("publicKeysUrl",),
    ),
}

_EVENT_TYPE_SHOWN = ref("WebhooksEventType")
_TAKEN = {409: "The uid is already in use"}
_PATCHED = "Fields that are left out do not change; null clears a field."
_NEW_ENDPOINT: dict[str, Schema] = {
    "secret": _SECRET,
    "headers": nullable(TEXTS),
    "signatures": _SIGNATURES_WANTED,
}
_SHOW_SECRET = Described(answer=ref("WebhooksKey"), answered={"key": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
_ROTATE_SECRET = Described(
    request=request({"key": _SECRET, "gracePeriodSeconds": nullable(whole("", 0, MAX_GRACE_S))}),
    sent={"gracePeriodSeconds": 3600},
)
_SHOW_HEADERS = Described(
    answer=ref("WebhooksHeaders"), answered={"headers": {"X-Key": "1"}, "sensitive": ["Authorization"]}
)
_SET_HEADERS = Described(request=request({"headers": nullable(TEXTS)}), sent={"headers": {"X-Key": "1"}})
_SHOW_FRAME = Described(answer=ref("WebhooksFrame"), answered=_FRAME)
_SET_FRAME = replace(_SHOW_FRAME, request=_FRAME_WANTED, sent=_FRAME)


def _begun(task: str, **more: Any) -> Described:
    """A route that begins a background task."""
    return Described(answer=ref("WebhooksTaskBegun"), answered={**_TASK_BEGUN, "task": task}, **more)


def _counts(**example: int) -> Described:
    """A route that counts attempts."""
    counts = answer(dict.fromkeys(example, whole()))
    return Described(means="By default for the last 28 days.", answer=counts, answered=example)


_MESSAGE_SHOWN, _ATTEMPT_SHOWN = ref("WebhooksMessage"), ref("WebhooksAttempt")
_ATTEMPTS = page("WebhooksAttempt", _ATTEMPT, _ATTEMPT_ID)

_GATES: dict[str, Described] = {
    "webhooks.show_oauth": Described(
        means="Without secrets; 404 if it is sent none.", answer=answer(_OAUTH_FIELDS), answered=_OAUTH_SHOWN
    ),
    "webhooks.set_oauth": _SET_OAUTH,
    "webhooks.remove_oauth": Described(means="404 if it is sent none."),
    "webhooks.show_oauth_config": Described(
        answer=answer({"enabled": boolean(), "config": answer(_OAUTH_FIELDS)}, lacks=("config",)),
        answered={"enabled": True, "config": _OAUTH_SHOWN},
    ),
    "webhooks.show_mtls": Described(
        means="Never its key; 404 if there is none. Svix's answer is an empty object.",
        answer=answer(_MTLS_FIELDS),
        answered=_MTLS_SHOWN,
    ),
    "webhooks.set_mtls": Described(
        means="The connection to the endpoint shows this certificate, over TLS 1.2 and 1.3. docs/gates.md.",
        request=request(
            {
                "identity": text("PEM: a private key that is not encrypted, its certificate, and those above it."),
                "ca": nullable(text("PEM: the only authorities of the receiver's own certificate. An extension.")),
            },
            needs=("identity",),
        ),
        sent={"identity": _IDENTITY},
    ),
    "webhooks.remove_mtls": Described(means="404 if there is none."),
    "webhooks.show_mtls_config": Described(
        answer=answer({"enabled": boolean(), "config": answer(_MTLS_FIELDS)}, lacks=("config",)),
        answered={"enabled": True, "config": _MTLS_SHOWN},
    ),
}
_ROUTES: Mapping[str, Described] = {
    "webhooks.create_message": Described(
        means=(
            "202 means stored: every endpoint that wants it is sent it. What endpoints get is the very text of the "
            "payload."
        ),
        request=request(
            {
                "eventType": text(),
                "payload": obj("Any JSON object."),
                "eventId": nullable(UID),
                "channels": nullable(array(text(), minItems=1, maxItems=10)),
                "tags": nullable(array(text(), minItems=1, maxItems=5)),
                "payloadRetentionPeriod": nullable(whole("Days.", 1, 90)),
                "payloadRetentionHours": nullable(whole("Hours, instead of days.", 1, 2160)),
                "ttl": nullable(whole("Seconds after which it is no longer tried.", 1, 90 * 86_400)),
                "deliverAt": nullable(TIME),
                "orderingKey": nullable(
                    text("Messages with the same key reach each endpoint one after the other.", maxLength=256)
                ),
                "application": nullable(request(_APPLICATION_WANTED, means="Created if it does not exist.")),
                "transformationsParams": nullable(
                    request(
                        {
                            "rawPayload": nullable(text("Sent instead of the payload.")),
                            "headers": nullable(obj()),
                            "orderingKey": nullable(
                                text(
                                    "The same as the field of the message, for clients that do not know that field.",
                                    maxLength=256,
                                )
                            ),
                        }
                    )
                ),
            },
            needs=("eventType", "payload"),
        ),
        sent={"eventType": "user.created", "payload": {"email": "a@b.example"}},
        answer=_MESSAGE_SHOWN,
        answered=_MESSAGE,
        headers={
            "Idempotency-Key": Named(
                means="A repeat with the same key and body gets the same answer and has no further effect; another body"
                " is refused (422)."
            )
        },
        refusals={409: "The event id is already in use", **OVER_QUOTA, 508: TOO_FAR},
    ),
    "webhooks.list_messages": page("WebhooksMessage", _MESSAGE, _MESSAGE_ID),
    "webhooks.show_message": Described(answer=_MESSAGE_SHOWN, answered=_MESSAGE),
    "webhooks.expunge_message": Described(means="It is no longer tried, but stays listed."),
    "webhooks.expunge_messages": Described(
        request=request({"ids": nullable(array(text(), maxItems=1000))}),
        sent={"ids": [_MESSAGE_ID]},
        answer=answer({"results": TEXTS}),
        answered={"results": {_MESSAGE_ID: "expunged"}},
    ),
    "webhooks.precheck_message": Described(
        request=request({"eventType": text(), "channels": nullable(array(text()))}, needs=("eventType",)),
        sent={"eventType": "user.created"},
        answer=answer({"active": boolean()}),
        answered={"active": True},
    ),
    "webhooks.list_attempted_messages": page(
        "WebhooksAttemptedMessage", {**_MESSAGE, "status": 0, "statusText": "success"}, _MESSAGE_ID
    ),
    "webhooks.list_destinations": page("WebhooksDestination", _DESTINATION, ENDPOINT_ID),
    "webhooks.list_attempts_of_endpoint": _ATTEMPTS,
    "webhooks.list_attempts_of_message": _ATTEMPTS,
    "webhooks.list_attempts": _ATTEMPTS,
    "webhooks.list_attempts_at_endpoint": _ATTEMPTS,
    "webhooks.show_attempt": Described(answer=_ATTEMPT_SHOWN, answered=_ATTEMPT),
    "webhooks.expunge_attempt": Described(),
    "webhooks.resend_message": Described(
        means="One try at once, whatever the endpoint's filters; success ends the automatic tries. Nothing is sent to "
        "a disabled endpoint, and the answer says so.",
        answer=answer({"skipped": text("`endpoint_disabled`: nothing is sent.")}, lacks=("skipped",)),
        answered={},
    ),
    "webhooks.show_stats": _counts(success=5, fail=1, sending=0, pending=0, canceled=0),
    "webhooks.show_attempt_stats": _counts(success=3, fail=1, canceled=0),
    "webhooks.recover": _begun(
        "endpoint.recover",
        means="One try for each message.",
        **_REPLAY,
    ),
    "webhooks.replay_missing": _begun(
        "endpoint.replay",
        means="Those that match the endpoint's filters; with all automatic tries.",
        **_REPLAY,
    ),
    "webhooks.bulk_replay": _begun(
        "endpoint.bulk-replay",
        means="Including successful ones.",
        request=request(
            {
                **_REPLAY_FIELDS,
                "eventTypes": nullable(_NAMES),
                "channel": nullable(text(minLength=1, maxLength=128)),
                "tag": nullable(text(minLength=1, maxLength=128)),
                "status": nullable(whole("Its state at the endpoint.", 0, 4)),
                "statusCodeClass": nullable({**whole(), "enum": [0, 100, 200, 300, 400, 500]}),
            },
            needs=("since",),
        ),
        sent={"since": AT, "eventTypes": ["user.created"]},
    ),
    "webhooks.expunge_all": _begun("application.purge_content", means="The messages stay listed."),
    "webhooks.count_by_event_type": _begun("event-type.aggregate"),
    "webhooks.list_tasks": page("WebhooksTask", _TASK, _TASK_ID, "Tasks of the last 90 days."),
    "webhooks.count_by_app": Described(
        request=request(
            {"since": TIME, "until": TIME, "appIds": nullable(array(text(), "Ids or uids; by default all."))},
            needs=("since", "until"),
        ),
        sent={"since": "2026-11-01T00:00:00Z", "until": "2026-11-22T00:00:00Z"},
        answer=answer({**_TASK_FIELDS, "unresolvedAppIds": array(text())}),
        answered={**_TASK_BEGUN, "task": "application.stats", "unresolvedAppIds": []},
    ),
    "webhooks.show_task": Described(answer=ref("WebhooksTask"), answered=_TASK),
    "webhooks.cancel_task": Described(
        means=(
            "What it sent stays sent. Its status is `failed` then, as the API has no other word, and its data say "
            "`canceled`."
        ),
        answer=ref("WebhooksTask"),
        answered={**_TASK, "status": "failed", "data": {"messagesSent": 2, "messagesLooked": 5, "canceled": True}},
        refusals={409: "It has already ended"},
    ),
    "webhooks.show_operational_signatures": _SHOW_SIGNATURES,
    "webhooks.set_operational_signatures": _SET_SIGNATURES,
    "webhooks.poll": Described(
        means="Without an iterator or a time it begins with the oldest message that is listed. Messages are there two "
        "seconds after they were posted, so that none is left out.",
        asked={"limit": "50"},
        answer=ref("WebhooksPolled"),
        answered=_POLLED,
    ),
    "webhooks.consume": Described(
        means="An iterator acknowledges the messages before it. Messages that are not acknowledged are returned again.",
        asked={"iterator": "msg_3LkZPGC8embhFeJW4Ll9IDu7eVs"},
        answer=ref("WebhooksPolled"),
        answered=_POLLED,
    ),
    "webhooks.lease": Described(
        means="Of a polling endpoint, in order. Until the consumer acknowledges some of them, or the lease ends, it is "
        "given nothing else. Then what is not acknowledged is given again.",
        asked={"limit": "50", "lease_duration_ms": "30000", "starting_position": "earliest"},
        answer=answer(
            {"data": array(ref("WebhooksLeasedMessage")), "done": boolean("Whether there is nothing more at present.")}
        ),
        answered={"data": [{"offset": 1, **_MESSAGE}], "done": True},
    ),
    "webhooks.acknowledge": Described(
        means="This message and all before it are done.",
        request=request({"offset": whole("Of a message that the consumer was given.", 0)}, needs=("offset",)),
        sent={"offset": 1},
    ),
    "webhooks.seek": Described(
        request=request({"after": TIME}, needs=("after",)),
        sent={"after": AT},
        answer=answer({"iterator": text()}),
        answered={"iterator": _MESSAGE_ID},
    ),
    "webhooks.send_example": Described(
        means="`svix.ping`, or the first example of the event type's schema.",
        request=request({"eventType": text(), "exampleIndex": nullable(whole("", 0)), "payload": nullable(obj())}),
        sent={"eventType": "svix.ping"},
        answer=_MESSAGE_SHOWN,
        answered={**_MESSAGE, "payload": {}},
    ),
    "webhooks.health": Described(answer=obj(), answered={}),
    "webhooks.ping": Described(),
    "webhooks.list_troubled_endpoints": Described(
        means=f"Those of all applications that are disabled or fail, whose circuit is not closed, or that wait for "
        f"their token server or the like; {MOST_SHOWN:,} at most, and all of them counted. An extension.",
        answer=answer(
            {
                "total": whole("How many there are.", 0),
                "totals": {
                    "type": "object",
                    "additionalProperties": {"type": "integer"},
                    "description": "How many are in each state.",
                },
                "data": array(
                    answer({"appId": text(), "appName": text(), "endpoint": ref("WebhooksEndpoint"), **_CIRCUIT_FIELDS})
                ),
            }
        ),
        answered={
            "total": 1,
            "totals": {"circuit_open": 1},
            "data": [{"appId": _APP_ID, "appName": "Acme", "endpoint": _ENDPOINT, **_CIRCUIT}],
        },
    ),
    "webhooks.show_endpoint_health": Described(
        means=(
            "An endpoint that fails for many messages is sent only a probe now and then, while its deliveries wait. "
            "An extension."
        ),
        answer=answer(
            {
                "disabled": boolean("Whether it gets no messages."),
                **_CIRCUIT_FIELDS,
                "waiting": whole(f"As in `health`: counted up to {MOST_COUNTED:,} in a queue, or in a backlog.", 0),
                "oldSecretsEnd": array(TIME, "The end of each earlier secret that still signs."),
                "signaturesEnd": {**TEXTS, "description": "When signature schemes end, by their header."},
                "certificateEndsAt": text("RFC 3339, UTC: when its client certificate ends; left out if it has none."),
                "certificateDaysLeft": whole("Days until then, counted up; 0 when it has ended.", 0),
            },
            lacks=("signaturesEnd", "certificateEndsAt", "certificateDaysLeft"),
        ),
        answered={"disabled": False, **_CIRCUIT, "waiting": 12, "oldSecretsEnd": [AT]},
    ),
    **_object(
        "application",
        "WebhooksApplication",
        _APPLICATION,
        _APP_ID,
        wanted=_APPLICATION_WANTED,
        needs=("name",),
        sent={"name": "Acme", "uid": "acme"},
        refusals=_TAKEN,
        create={
            "means": "With `get_if_exists`, an existing application with the uid is returned unchanged, with 200.",
            "also": (200,),
        },
        replace={"means": "If it does not exist, it is created from the body, with 201.", "also": (201,)},
        patch={"means": _PATCHED, "sent": {"throttleRate": None}},
        delete={"means": "Its messages are no longer delivered."},
    ),
    **_object(
        "endpoint",
        "WebhooksEndpoint",
        _ENDPOINT,
        ENDPOINT_ID,
        wanted=_ENDPOINT_WANTED,
        needs=("url",),
        sent={"url": "https://acme.example/webhooks"},
        refusals=_TAKEN,
        create={"request": request({**_ENDPOINT_WANTED, **_NEW_ENDPOINT}, needs=("url",))},
        replace={
            "means": "Its secret and headers stay. If it does not exist, it is created from the body, with 201.",
            "also": (201,),
        },
        patch={"means": _PATCHED, "sent": {"disabled": True}},
        delete={"means": "Messages that were sent to it stay listed."},
    ),
    **_object(
        "sink",
        "WebhooksSink",
        _SINK,
        ENDPOINT_ID,
        wanted=_SINK_WANTED,
        needs=("type", "config"),
        sent={
            "type": "sqs",
            "config": {"queueUrl": _SINK["config"]["queueUrl"], "roleArn": _SINK["config"]["roleArn"]},
        },
        refusals={**_TAKEN, 501: "A type of destination that this hub does not have"},
        create={"means": "An endpoint on AWS (docs/destinations.md): it is listed as an endpoint, too."},
        replace={"means": "If it does not exist, it is created from the body, with 201.", "also": (201,)},
        patch={
            "means": "Fields that are left out do not change, in `config` neither.",
            "request": request(_SINK_WANTED, needs=("type",)),
            "sent": {"type": "sqs", "status": "disabled"},
        },
        delete={"means": "Messages that were sent to it stay listed."},
    ),
    "webhooks.rotate_sink_secret": replace(
        _ROTATE_SECRET, answer=ref("WebhooksKey"), answered={"key": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
    ),
    **TRANSFORMATIONS,
    "webhooks.show_external_id": Described(
        means="For destinations with a role (docs/destinations.md): its trust policy lets in the principal, with this "
        "`sts:ExternalId`. The hub chose it for the application, and it stays the same.",
        answer=answer({"externalId": text("The application's own."), "principal": text("Who assumes the role.")}),
        answered={
            "externalId": _SINK["config"]["externalId"],
            "principal": "arn:aws:iam::999999999999:root",
        },
    ),
    **_object(
        "operational_endpoint",
        "WebhooksOperationalEndpoint",
        _OPERATIONAL,
        ENDPOINT_ID,
        wanted=_OPERATIONAL_WANTED,
        needs=("url",),
        sent={"url": "https://ops.example/pushhub"},
        refusals=_TAKEN,
        create={
            "means": "It gets events about endpoints, and about messages that keep failing.",
            "request": request({**_OPERATIONAL_WANTED, **_NEW_ENDPOINT}, needs=("url",)),
            "sent": {"url": "https://ops.example/pushhub", "eventTypes": ["endpoint.disabled"]},
        },
        replace={},
        delete={},
    ),
    **_object(
        "event_type",
        "WebhooksEventType",
        _EVENT_TYPE,
        "user.created",
        wanted=_EVENT_TYPE_FIELDS,
        needs=("description",),
        sent={"description": "A user was created"},
        refusals={},
        create={
            "means": "An archived type with that name is restored.",
            "request": request({"name": text(), **_EVENT_TYPE_FIELDS}, needs=("name", "description")),
            "sent": {"name": "user.created", "description": "A user was created"},
            "refusals": {409: "There is already one with that name"},
        },
        list={"asked": {"include_archived": "true"}},
        replace={"means": "If it does not exist, it is created, with 201.", "also": (201,)},
        patch={"sent": {"deprecated": True}},
        delete={"means": "It is archived, or removed with `expunge`."},
    ),
    "webhooks.show_secret": _SHOW_SECRET,
    "webhooks.rotate_secret": replace(
        _SHOW_SECRET,
        means="The old key also signs for a while, by default for a day.",
        request=_ROTATE_SECRET.request,
        sent=_ROTATE_SECRET.sent,
    ),
    "webhooks.show_operational_secret": _SHOW_SECRET,
    "webhooks.rotate_operational_secret": _ROTATE_SECRET,
    "webhooks.show_headers": _SHOW_HEADERS,
    "webhooks.set_headers": _SET_HEADERS,
    "webhooks.show_operational_headers": _SHOW_HEADERS,
    "webhooks.replace_operational_headers": _SET_HEADERS,
    "webhooks.show_signatures": _SHOW_SIGNATURES,
    "webhooks.set_signatures": _SET_SIGNATURES,
    "webhooks.show_application_signatures": _SHOW_SIGNATURE_DEFAULTS,
    "webhooks.set_application_signatures": _SET_SIGNATURE_DEFAULTS,
    "webhooks.show_project_signatures": _SHOW_SIGNATURE_DEFAULTS,
    "webhooks.set_project_signatures": _SET_SIGNATURE_DEFAULTS,
    **SOURCE_ROUTES,
    **STREAM_ROUTES,
    "webhooks.show_source_secret": _SHOW_SECRET,
    "webhooks.rotate_source_secret": _ROTATE_SECRET,
    "webhooks.show_source_headers": _SHOW_HEADERS,
    "webhooks.set_source_headers": _SET_HEADERS,
    **_GATES,
    **{name.replace("_", "_operational_", 1): each for name, each in _GATES.items()},
    "webhooks.show_public_keys": Described(
        means=(
            "A JSON Web Key Set of the Ed25519 keys that sign now, the current one first; empty where all keys are "
            "symmetric. Of a rotation, old and new keys are in it."
        ),
        answer=answer(
            {
                "keys": array(
                    answer(
                        {
                            "kty": text(enum=["OKP"]),
                            "crv": text(enum=["Ed25519"]),
                            "x": text("The key in base64url."),
                            "use": text(enum=["sig"]),
                            "alg": text(enum=["EdDSA"]),
                            "kid": text("Its thumbprint (RFC 7638)."),
                            "whpk": text("The key as Svix writes it."),
                        }
                    )
                )
            }
        ),
        answered={
            "keys": [
                {
                    "crv": "Ed25519",
                    "kty": "OKP",
                    "x": "1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4",
                    "use": "sig",
                    "alg": "EdDSA",
                    "kid": "PFUxWvgWEuCJTR5ZjvY0c0NAeNmcMVfrzN8pqm6jnzM",
                    "whpk": "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=",
                }
            ]
        },
    ),
    "webhooks.consent": _CONSENT,
    "webhooks.consent_by_link": _CONSENT,
    "webhooks.change_headers": Described(
        means="Null removes a header, and so does its name in `deleteHeaders`.",
        request=request(
            {
                "headers": nullable({"type": "object", "additionalProperties": nullable(text())}),
                "deleteHeaders": nullable(array(text())),
            }
        ),
        sent={"headers": {"X-Key": "2"}, "deleteHeaders": ["X-Other"]},
    ),
    "webhooks.portal_access": Described(
        means=(
            "The token opens this application only, for a week unless said otherwise. One that is not there is made "
            "of `application`."
        ),
        request=request(
            {
                "capabilities": nullable(array(text(enum=[each.value for each in Capability]))),
                "expiry": nullable(whole("Seconds.", 3_600, 604_800)),
                "featureFlags": nullable(array(text())),
                "sessionId": nullable(
                    text("Your own name for the session, with which you can end it.", minLength=1, maxLength=64)
                ),
                "readOnly": nullable(boolean("The old way to request only `ViewBase`.")),
                "application": nullable(request(_APPLICATION_WANTED, needs=("name", "uid"))),
            }
        ),
        sent={"capabilities": ["ViewBase", "ManageEndpoint"], "expiry": 3600},
        answer=ref("WebhooksAccess"),
        answered=_ACCESS,
    ),
    **_object(
        "integration",
        "WebhooksIntegration",
        _INTEGRATION,
        _INTEGRATION_ID,
        wanted=_INTEGRATION_WANTED,
        needs=("name",),
        sent={"name": "Order desk"},
        refusals={},
        create={
            "means": f"A service of another company that looks after this application's endpoints; at most {MOST}. "
            "It has no key yet: give it one with `key/rotate`.",
            "refusals": {409: "The application has too many"},
        },
        replace={"means": "Its key stays, and has the new feature flags at once."},
        delete={"means": "Its key opens nothing any more."},
    ),
    "webhooks.rotate_integration_key": Described(
        means="The key is a token that opens this application until it is rotated, or the integration is deleted. "
        "The one before opens nothing any more.",
        answer=ref("WebhooksIntegrationKey"),
        answered={"key": _ACCESS["token"]},
    ),
    **CONNECTOR_ROUTES,
    "webhooks.list_connectors": replace(
        page("WebhooksConnector", CONNECTOR, CONNECTOR_ID),
        means="Pages may be short. A portal needs the capability `ManageTransformations`, and sees those that have no "
        "feature flags or one of its own.",
    ),
    "webhooks.create_autoconfig": Described(
        means="Clients read the hub's URL, a key that sets up one endpoint and that endpoint's signing secret in the "
        "token, and need nothing else.",
        request=request({"featureFlags": nullable(array(text(), maxItems=MAX_FLAGS))}),
        sent={},
        answer=ref("WebhooksAutoconfigToken"),
        answered=_AUTOCONFIG_TOKEN,
    ),
    "webhooks.show_autoconfig": Described(
        answer=ref("WebhooksAutoconfig"),
        answered={
            "id": _AUTOCONFIG_ID,
            "tokenCensored": "auto_v2_********",
            "status": "active",
            "endpId": ENDPOINT_ID,
            "createdAt": AT,
        },
    ),
    "webhooks.delete_autoconfig": Described(means="Its token sets up nothing any more; the endpoint stays."),
    "webhooks.rotate_autoconfig": Described(
        means="The token before sets up nothing any more. The endpoint goes on as it is; when a consumer comes with "
        "the new token, it signs with that one's secret, and for a day with the previous one, too. A `signingSecret` "
        "that is sent is ignored.",
        answer=ref("WebhooksAutoconfigToken"),
        answered=_AUTOCONFIG_TOKEN,
    ),
    "webhooks.subscribe": Described(
        means="Only with the key in the token. A `secret` that is sent is ignored: the token has it.",
        request=request({**_ENDPOINT_WANTED, **_NEW_ENDPOINT}, needs=("url",)),
        sent={"url": "https://acme.example/webhooks"},
        answer=ref("WebhooksEndpoint"),
        answered=_ENDPOINT,
        refusals={403: "It is not the key of this autoconfiguration", **_TAKEN},
    ),
    "webhooks.subscribe_poller": Described(
        means="Only with the key in the token. The `type` is `pollingEndpoint`. Nothing is pushed to it: consumers "
        "read it, with the same key.",
        request=request(_SINK_WANTED, needs=("type",)),
        sent={"type": "pollingEndpoint", "eventTypes": ["user.created"]},
        answer=ref("WebhooksSink"),
        answered={**_SINK, "type": "pollingEndpoint", "config": {}},
        refusals={403: "It is not the key of this autoconfiguration", 409: "It has set up another kind of endpoint"},
    ),
    "webhooks.show_portal_frame": _SHOW_FRAME,
    "webhooks.set_portal_frame": replace(
        _SET_FRAME,
        means="For all applications that have no origins of their own. Links to portals that are made from now on can "
        "be shown in a frame by pages of these origins. An empty list: by none.",
    ),
    "webhooks.show_application_frame": _SHOW_FRAME,
    "webhooks.set_application_frame": replace(
        _SET_FRAME, means="Instead of the project's. With an empty list the project's apply."
    ),
    "webhooks.dashboard_access": Described(answer=ref("WebhooksAccess"), answered=_ACCESS),
    "webhooks.logout": Described(
        means="Only tokens of applications can be ended in this way.", refusals={403: "The token is the project's"}
    ),
    "webhooks.expire_portal": Described(
        request=request(
            {
                "expiry": nullable(whole("Seconds for which they remain valid.", 0, 259_200)),
                "sessionIds": nullable(array(text(), "The sessions to end; by default all.", maxItems=1_000)),
            }
        ),
        sent={"sessionIds": ["user-7"]},
    ),
    "webhooks.export_environment": Described(
        answer=answer(
            {
                "version": whole(),
                "createdAt": TIME,
                "eventTypes": array(_EVENT_TYPE_SHOWN),
                "settings": nullable(obj()),
                "connectors": array(ref("WebhooksConnector")),
            }
        ),
        answered={
            "version": 1,
            "createdAt": AT,
            "eventTypes": [_EVENT_TYPE],
            "settings": None,
            "connectors": [CONNECTOR],
        },
    ),
    "webhooks.import_openapi": Described(
        means="Of `webhooks` (OpenAPI 3.1) or `x-webhooks`: a name is an event type, and what is posted its schema, "
        "with all that it refers to within the document. Archived ones come back. "
        "YAML is not read: convert it to JSON first.",
        request=request(
            {
                "spec": nullable(obj("The document.")),
                "specRaw": nullable(text("The document as text, JSON or YAML, instead of `spec`.")),
                "dryRun": nullable(boolean("Whether to say only what would be created and changed.")),
                "replaceAll": nullable(boolean("Whether to archive event types that are not in the document.")),
            }
        ),
        sent={
            "spec": {"openapi": "3.1.0", "webhooks": {"user.created": {"post": {"description": "A user was created"}}}}
        },
        answer=answer(
            {
                "data": answer(
                    {
                        "modified": array(text(), "Types that were created, changed or archived."),
                        "to_modify": array(
                            answer(
                                {
                                    "name": text(),
                                    "description": text(),
                                    "deprecated": boolean(),
                                    "schemas": obj(),
                                    "group_name": text(),
                                    "feature_flags": array(text()),
                                },
                                lacks=("schemas", "group_name", "feature_flags"),
                            ),
                            "Types that would be created or changed, for a dry run.",
                        ),
                    },
                    lacks=("to_modify",),
                )
            }
        ),
        answered={"data": {"modified": ["user.created"]}},
    ),
    "webhooks.import_environment": Described(
        means="Event types and connectors are added or replaced, none is deleted. A connector is known by its uid, or "
        "without one by its name. Settings are ignored.",
        request=request(
            {
                "eventTypes": nullable(
                    array(request({"name": text(), **_EVENT_TYPE_FIELDS}, needs=("name", "description")))
                ),
                "settings": nullable(obj()),
                "connectors": nullable(array(request(CONNECTOR_WANTED, needs=("name", "transformation")))),
            }
        ),
        sent={"eventTypes": [{"name": "user.created", "description": "A user was created"}]},
    ),
}


def _refused(status: int, reason: str) -> dict[str, Any]:
    if status == INVALID:
        return {"detail": [{"loc": ["body", "name"], "msg": reason, "type": "value_error"}]}
    codes = _FURTHER_CODES | {status: code for _, status, code in CODES}
    return {"code": codes[status], "detail": reason}


DESCRIPTION = ApiDescription(
    tag="Webhooks (Svix API v1)",
    means="Applications, their endpoints and messages, as Svix's own clients know them: set their server URL to this "
    "hub's. A project is an "
    "organization, and its token is the Svix token.",
    credentials={"webhooksToken": {"type": "http", "scheme": "bearer", "description": "A token of the project."}},
    shown={Auth.PROJECT: ("webhooksToken",), Auth.PROJECT_OR_CAPABILITY: ("webhooksToken",), Auth.NONE: ()},
    schemas=_SCHEMAS,
    names={
        "project": Named(means="Id of the project.", example="5f0000000000000000000001"),
        "app": Named(means="Id or uid of the application.", example=_APP_ID),
        "endpoint": Named(means="Id or uid of the endpoint.", example=ENDPOINT_ID),
        "destination": Named(means="Id or uid of the destination.", example=_SINK["id"]),
        "autoconfig": Named(means="Id of the autoconfiguration.", example=_AUTOCONFIG_ID),
        "integration": Named(means="Id of the integration.", example=_INTEGRATION_ID),
        "connector": Named(means="Id or uid of the connector.", example=CONNECTOR_ID),
        "event_type": Named(means="Name of the event type.", example="user.created"),
        "message": Named(means="Id of the message, or the producer's own.", example=_MESSAGE_ID),
        "task": Named(means="Id of the task.", example=_TASK_ID),
        "sink": Named(
            means="Name of a poller, or an endpoint's id or uid to read what matches its filters.", example="crm"
        ),
        "consumer": Named(means="Name of a consumer.", example="one"),
        "attempt": Named(means="Id of the attempt.", example=_ATTEMPT_ID),
        "secret": Named(means="The last part of the URL.", example="kV6mTq0nJYbY2ZC2w1o0lWQ7uJcJ5rQh8u2Zl1W3x9E"),
        **SOURCE_NAMES,
        **STREAM_NAMES,
    },
    query={
        **SOURCE_QUERY,
        "lease_duration_ms": Named(
            means="Milliseconds that the consumer has for what it is given.",
            schema=whole("", 0, MOST_LEASE_MS, default=DEFAULT_LEASE_MS),
        ),
        "starting_position": Named(
            means="Where a new consumer begins: with its polling endpoint, or now.", schema=text(enum=list(STARTS))
        ),
        "limit": Named(means="Items on a page.", schema=whole("", 1, MAX_LIMIT, default=50)),
        "iterator": Named(means="An `iterator` or `prevIterator` of another page."),
        "order": Named(means="The order of the list.", schema=text(enum=["ascending", "descending"])),
        "product_type": Named(means="Only those that are meant for it.", schema=text(enum=list(ConnectorProduct))),
        "get_if_exists": Named(means="Whether to return an existing one.", schema=boolean(default=False)),
        "include_archived": Named(means="Whether to list archived ones.", schema=boolean(default=False)),
        "with_content": Named(means="Whether to show schemas or payloads.", schema=boolean()),
        "channel": Named(means="Only messages in this channel."),
        "tag": Named(means="Only messages with this tag."),
        "event_types": Named(means="Only messages of these types, separated by commas."),
        "before": Named(means="Only items before this time."),
        "after": Named(means="Only items from this time on."),
        "event_type": Named(means="Only messages of these types, separated by commas."),
        "task": Named(means="Only tasks of this kind."),
        "since": Named(means="The beginning of the period."),
        "until": Named(means="The end of the period."),
        "status": Named(means="Only this status, by number."),
        "status_code_class": Named(means="Only HTTP statuses in this hundred."),
        "with_msg": Named(means="Whether to show the message too.", schema=boolean(default=False)),
        "expanded_statuses": Named(means="Accepted, without effect.", schema=boolean()),
        "endpoint_id": Named(means="Only for this endpoint."),
        "expunge": Named(means="Whether to remove it instead of archiving it.", schema=boolean(default=False)),
    },
    refusal=ref("WebhooksRefusal"),
    refusal_shapes={INVALID: ref("WebhooksValidationRefusal")},
    refused=_refused,
    refusals={
        400: "A value of the query has the wrong type",
        401: "No token, or an invalid one",
        403: "The token may not",
        404: "It does not exist, or belongs to another organization",
        413: "Larger than 2 MiB",
        422: "A value breaks a rule",
        500: "The hub failed. The request may or may not have been carried out",
        503: "The hub is busy. The request may or may not have been carried out; repeat it after `Retry-After`",
    },
    routes=_ROUTES,
)
"""Of all routes of the webhooks API."""
