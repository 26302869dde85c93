"""The descriptions of sources and their URLs for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pushhub.base.webhook_senders import SENDERS
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
from pushhub.webhooks.api.description_parts import AT, ENDPOINT_ID, RATE, TEXTS, TIME, TOO_FAR, UID, page
from pushhub.webhooks.api.transformation_description import TRANSFORMATIONS
from pushhub.webhooks.model.arrival import REASONS

SOURCE_ID = "src_3MRPxozw7TPC3MSkZFTrdbEFpc6"
TOKEN = "kV6mTq0nJYbY2ZC2w1o0lWQ7uJcJ5rQh"  # noqa: S105 (an example)
_URL = f"https://hub.example/ingest/in/5f0000000000000000000001/{SOURCE_ID}/{TOKEN}"
_KIND = text("How its sender signs, and what is known of its events.", enum=list(SENDERS))

SOURCE_SCHEMAS: dict[str, Schema] = {
    "WebhooksSource": answer(
        {
            "id": text("Begins with `src_`."),
            "uid": nullable(UID),
            "name": text(),
            "type": _KIND,
            "config": obj("Without secrets."),
            "ingestUrl": text("Where its sender posts to. Whoever has it may post, if there is no secret."),
            "metadata": TEXTS,
            "verified": boolean("Whether there is a secret, so that what comes in is verified. An extension."),
            "createdAt": TIME,
            "updatedAt": TIME,
        }
    ),
    "WebhooksSourceEndpoint": answer(
        {
            "id": text("Begins with `ep_`."),
            "uid": nullable(UID),
            "url": text(),
            "description": text(),
            "disabled": boolean(),
            "throttleRate": nullable(RATE),
            "metadata": TEXTS,
            "createdAt": TIME,
            "updatedAt": TIME,
        }
    ),
}

_SOURCE: dict[str, Any] = {
    "id": SOURCE_ID,
    "uid": None,
    "name": "Our repositories",
    "type": "github",
    "config": {},
    "ingestUrl": _URL,
    "metadata": {},
    "verified": True,
    "createdAt": AT,
    "updatedAt": AT,
}
_ENDPOINT: dict[str, Any] = {
    "id": ENDPOINT_ID,
    "uid": None,
    "url": "https://acme.example/webhooks",
    "description": "",
    "disabled": False,
    "throttleRate": None,
    "metadata": {},
    "createdAt": AT,
    "updatedAt": AT,
}
_TAKEN = {409: "The uid is already in use"}
_WANTED = Described(
    means="A secret is never shown again. `generic-webhook` takes what any sender posts; `config.signature` may say "
    "how it is verified, as `signatures` of endpoints do (docs/sources.md).",
    request=request(
        {
            "name": text(minLength=1),
            "uid": nullable(UID),
            "metadata": nullable(TEXTS),
            "type": _KIND,
            "config": nullable(
                request(
                    {
                        "secret": nullable(text("With which the sender signs.")),
                        "verifyToken": nullable(text("What Meta shows when it asks about the URL.")),
                        "signature": nullable(obj("For `generic-webhook`: how its sender signs. An extension.")),
                    }
                )
            ),
        },
        needs=("name", "type"),
    ),
    sent={"name": "Our repositories", "type": "github", "config": {"secret": "It's a Secret to Everybody"}},
    answer=ref("WebhooksSource"),
    answered=_SOURCE,
    refusals=_TAKEN,
)
_ENDPOINT_FIELDS: dict[str, Schema] = {
    "url": text("http or https.", format="uri"),
    "description": text(),
    "uid": nullable(UID),
    "disabled": boolean("Whether it gets no messages."),
    "throttleRate": nullable(RATE),
    "metadata": nullable(TEXTS),
}
_ENDPOINT_WANTED = Described(
    request=request(_ENDPOINT_FIELDS, needs=("url",)),
    sent={"url": "https://acme.example/webhooks"},
    answer=ref("WebhooksSourceEndpoint"),
    answered=_ENDPOINT,
    refusals=_TAKEN,
)
_BINARY = "application/octet-stream"


SOURCE_ROUTES: Mapping[str, Described] = {
    "webhooks.create_source": _WANTED,
    "webhooks.list_sources": page("WebhooksSource", _SOURCE, SOURCE_ID),
    "webhooks.show_source": Described(answer=ref("WebhooksSource"), answered=_SOURCE),
    "webhooks.replace_source": replace(
        _WANTED,
        means="It keeps its URL, and its secrets if the kind stays and `config` names no others; null removes one. If "
        "it does not exist, it is created from the body, with 201.",
        also=(201,),
    ),
    "webhooks.delete_source": Described(means="Nothing comes in any more, and what came in is no longer delivered."),
    "webhooks.rotate_source_token": Described(
        means="Three times in 48 hours.",
        answer=answer({"ingestUrl": text("The new URL.")}),
        answered={"ingestUrl": _URL},
        refusals={400: "It was rotated three times in 48 hours"},
    ),
    "webhooks.show_source_stats": Described(
        means="Of the last 30 days. An extension. What was accepted is listed like the messages of an application, by "
        "the source's id.",
        answer=answer(
            {
                "days": array(answer({"day": text("UTC."), **{each: whole() for each in REASONS}})),
                "last": nullable(
                    answer(
                        {
                            "reason": text(enum=list(REASONS)),
                            "at": TIME,
                            "address": text("Whence it came."),
                            "agent": text("Its User-Agent."),
                        }
                    )
                ),
            }
        ),
        answered={
            "days": [{"day": "2026-11-22", **dict.fromkeys(REASONS, 0), "forged": 1}],
            "last": {"reason": "forged", "at": AT, "address": "192.0.2.7", "agent": "curl/8.5.0"},
        },
    ),
    "webhooks.source_access": Described(
        means="The portal shows the source as an application.",
        request=request(
            {"expiry": nullable(whole("Seconds.", 3_600, 604_800)), "readOnly": nullable(boolean("Only to look."))}
        ),
        sent={"expiry": 3600},
        answer=ref("WebhooksAccess"),
        answered={
            "url": "https://hub.example/console#key=eyJhcHBJZCI6Li4ufQ==",
            "token": "srcsk_5f0000000000000000000001_3MRPxozw7TPC3MSkZFTrdbEFpc6_5rF0bqzYz1h3mKpX",
        },
    ),
    "webhooks.create_source_endpoint": replace(
        _ENDPOINT_WANTED,
        request=request(
            {
                **_ENDPOINT_FIELDS,
                "secret": nullable(text("`whsec_` and base64 of 24 to 75 bytes; generated if left out.")),
                "headers": nullable(TEXTS),
            },
            needs=("url",),
        ),
    ),
    "webhooks.list_source_endpoints": page("WebhooksSourceEndpoint", _ENDPOINT, ENDPOINT_ID),
    "webhooks.show_source_endpoint": Described(answer=ref("WebhooksSourceEndpoint"), answered=_ENDPOINT),
    "webhooks.replace_source_endpoint": replace(
        _ENDPOINT_WANTED,
        means="Its secret and headers stay. If it does not exist, it is created from the body, with 201.",
        also=(201,),
    ),
    "webhooks.delete_source_endpoint": Described(),
    "webhooks.show_source_transformation": TRANSFORMATIONS["webhooks.show_transformation"],
    "webhooks.patch_source_transformation": TRANSFORMATIONS["webhooks.patch_transformation"],
    "webhooks.take_in": Described(
        means="What is verified is stored, and goes to the source's endpoints byte for byte. An empty answer with 200 "
        "means stored, or that the event was there before; the header `Pushhub-Message-Id` names what is new. "
        "A batch of CloudEvents (`application/cloudevents-batch+json`, at most 100) becomes a message for each event. "
        "Questions of Slack and Zoom about the URL are answered.",
        request={"description": "Any bytes."},
        request_type=_BINARY,
        answer=text("Empty, or the answer to a question about the URL (as JSON for Zoom)."),
        answer_type="text/plain",
        answered="",
        refusals={
            **OVER_QUOTA,
            400: "`unsigned`, `forged`, `old`, or `malformed`: no batch of events, though it says so",
            403: "The project is suspended",
            508: TOO_FAR,
        },
    ),
    "webhooks.ask_source": Described(
        asked={"hub.mode": "subscribe", "hub.challenge": "1158201444", "hub.verify_token": "mine"},
        answer=text("The challenge."),
        answer_type="text/plain",
        answered="1158201444",
        refusals={400: "The token is another one"},
    ),
    "webhooks.ask_source_consent": Described(
        headers={"WebHook-Request-Origin": Named(means="Who asks.", example="events.example")}
    ),
}
SOURCE_NAMES: Mapping[str, Named] = {
    "source": Named(means="Id or uid of the source; in its URL, its id.", example=SOURCE_ID),
    "token": Named(means="The last part of the URL.", example=TOKEN),
}
SOURCE_QUERY: Mapping[str, Named] = {
    "hub.mode": Named(means="`subscribe`."),
    "hub.challenge": Named(means="What is to be sent back."),
    "hub.verify_token": Named(means="What the source's owner has told its sender."),
}
