"""What the routes of connectors say of themselves."""

from __future__ import annotations

from typing import Any

from pushhub.web.description import Described, Schema, answer, array, nullable, ref, request, text
from pushhub.webhooks.api.description_parts import AT, TIME
from pushhub.webhooks.applications.connectors import MAX_CONNECTOR_BYTES
from pushhub.webhooks.model.connector import ConnectorKind, ConnectorProduct
from pushhub.webhooks.wire.connector import MAX_CONNECTOR_NAME, MAX_EVENT_TYPES
from pushhub.webhooks.wire.portal import MAX_FLAGS
from pushhub.webhooks.wire.transformation import CODE_CHARACTERS

_LEAST, _MOST = CODE_CHARACTERS
CONNECTOR_ID = "trtmpl_3MRPxozw7TPC3MSkZFTrdbEFpc6"
CONNECTOR: dict[str, Any] = {
    "id": CONNECTOR_ID,
    "orgId": "org_5f0000000000000000000001",
    "uid": "chat",
    "name": "Chat",
    "kind": "Slack",
    "logo": None,
    "description": "Posts a line into a channel",
    "instructions": "Make a webhook in your chat, and enter its URL.",
    "allowedEventTypes": ["user.created"],
    "transformation": "function handler(webhook) { webhook.payload = { text: webhook.eventType }; return webhook }",
    "featureFlags": None,
    "productType": "Dispatch",
    "createdAt": AT,
    "updatedAt": AT,
    "transformationUpdatedAt": AT,
}
_KIND = text("Which service's picture and words a portal shows with it.", enum=list(ConnectorKind))
_PRODUCT = text("Whether it is meant for endpoints, or for sinks of streams.", enum=list(ConnectorProduct))
_EVENT_TYPES = "Those that an endpoint made from it may choose; null for all. Portals go by that, the hub does not."
_FLAGS = "Portals whose token has none of these do not see it; null if all do."

CONNECTOR_SCHEMAS: dict[str, Schema] = {
    "WebhooksConnector": answer(
        {
            "id": text("Begins with `trtmpl_`."),
            "orgId": text("The project."),
            "uid": nullable(text("Your own id for it.")),
            "name": text(),
            "kind": _KIND,
            "logo": nullable(text("URL of a picture.")),
            "description": text(),
            "instructions": text("For whoever makes an endpoint from it."),
            "allowedEventTypes": nullable(array(text(), _EVENT_TYPES)),
            "transformation": text("Its code."),
            "featureFlags": nullable(array(text(), _FLAGS)),
            "productType": _PRODUCT,
            "createdAt": TIME,
            "updatedAt": TIME,
            "transformationUpdatedAt": text("When its code was last changed."),
        }
    )
}
_CHANGEABLE: dict[str, Schema] = {
    "name": text("", minLength=1, maxLength=MAX_CONNECTOR_NAME),
    "kind": nullable(_KIND),
    "logo": nullable(text("URL of a picture: `https`, `http`, or `data:image/`.", minLength=1)),
    "description": nullable(text("")),
    "instructions": nullable(text("For whoever makes an endpoint from it.")),
    "allowedEventTypes": nullable(array(text(), _EVENT_TYPES, maxItems=MAX_EVENT_TYPES)),
    "transformation": text("Its code.", minLength=_LEAST, maxLength=_MOST),
    "featureFlags": nullable(array(text(), _FLAGS, maxItems=MAX_FLAGS)),
}
CONNECTOR_WANTED: dict[str, Schema] = {
    **_CHANGEABLE,
    "uid": nullable(text("Your own id for it.", pattern=r"^[a-zA-Z0-9\-_.]{1,256}$")),
    "productType": nullable(_PRODUCT),
}
_SENT = {"name": "Chat", "uid": "chat", "kind": "Slack", "transformation": CONNECTOR["transformation"]}
_SHOWN: dict[str, Any] = {"answer": ref("WebhooksConnector"), "answered": CONNECTOR}

CONNECTOR_ROUTES: dict[str, Described] = {
    "webhooks.create_connector": Described(
        means="A template of a transformation: an endpoint that is made from it has a copy of its code. "
        f"It may take at most {MAX_CONNECTOR_BYTES} bytes as JSON. docs/transformations.md.",
        request=request(CONNECTOR_WANTED, needs=("name", "transformation")),
        sent=_SENT,
        refusals={409: "Another one has the uid"},
        **_SHOWN,
    ),
    "webhooks.show_connector": Described(
        means="A portal needs the capability `ManageTransformations`, and sees it only with one of its feature flags.",
        **_SHOWN,
    ),
    "webhooks.replace_connector": Described(
        means="If it does not exist, it is created, with 201 and the uid in the path; without `name` it has that name.",
        also=(201,),
        request=request({**_CHANGEABLE, "name": nullable(_CHANGEABLE["name"])}, needs=("transformation",)),
        sent={"name": "Chat", "transformation": CONNECTOR["transformation"]},
        **_SHOWN,
    ),
    "webhooks.patch_connector": Described(
        means="What is left out stays as it is. Endpoints that were made from it stay as they are.",
        request=request(_CHANGEABLE),
        sent={"description": "Posts a line into a channel"},
        **_SHOWN,
    ),
    "webhooks.delete_connector": Described(means="Endpoints that were made from it stay as they are."),
}
