"""What the routes of transformations say of themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pushhub.web.description import Described, answer, boolean, nullable, obj, request, text
from pushhub.webhooks.model.transformation import METHODS, Language
from pushhub.webhooks.wire.transformation import CODE_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Mapping

_LEAST, _MOST = CODE_CHARACTERS
_CODE = "function handler(webhook) { webhook.payload.seen = true; return webhook }"
_VARIABLES = obj(
    "Texts by name, which code finds in `env`. They are stored encrypted, and shown as `********`, which stands for "
    "the stored value when it is sent back.",
    additionalProperties=text(),
)
_LANGUAGE = text("What the code is written in; JavaScript unless it is said. An extension.", enum=list(Language))
_WANTED: dict[str, Any] = {
    "code": nullable(text("Null for none.", minLength=_LEAST, maxLength=_MOST)),
    "enabled": nullable(boolean()),
    "variables": nullable(_VARIABLES),
    "language": nullable(_LANGUAGE),
}
_SHOWN = answer(
    {
        "code": nullable(text("Null if there is none.")),
        "enabled": boolean(),
        "variables": _VARIABLES,
        "language": _LANGUAGE,
        "updatedAt": text("When it was last changed.", format="date-time"),
    },
    lacks=("updatedAt",),
)
_SHOW = Described(
    means="docs/transformations.md.",
    answer=_SHOWN,
    answered={
        "code": _CODE,
        "enabled": True,
        "variables": {"KEY": "********"},
        "language": "javascript",
        "updatedAt": "2026-11-29T03:30:00.000Z",
    },
)
_CHANGE = Described(
    means="What is left out stays as it is. From the next try on, what the code makes of a message is what is signed, "
    "sent and recorded. A portal needs the capability `ManageTransformations`. docs/transformations.md.",
    request=request(_WANTED),
    sent={"code": _CODE, "enabled": True, "variables": {"KEY": "v"}},
)
_TRY = Described(
    means="Nothing is sent or stored. Code that fails is a 422 that says why.",
    request=request(
        {
            "code": text(minLength=_LEAST, maxLength=_MOST),
            "eventType": text(minLength=1, maxLength=256),
            "payload": obj("Any JSON object."),
            "channels": nullable({"type": "array", "items": text()}),
            "variables": nullable(_VARIABLES),
            "language": nullable(_LANGUAGE),
        },
        needs=("code", "eventType", "payload"),
    ),
    sent={"code": _CODE, "eventType": "user.created", "payload": {"email": "a@b.example"}},
    answer=answer(
        {
            "url": text("Where it would be sent, without user information."),
            "method": text(enum=list(METHODS)),
            "payload": text("What would be sent."),
            "cancel": boolean("Whether nothing would be sent."),
            "headers": obj("What code sets.", additionalProperties=text()),
        }
    ),
    answered={
        "url": "https://shop.example/hook",
        "method": "POST",
        "payload": '{"email":"a@b.example","seen":true}',
        "cancel": False,
        "headers": {},
    },
)

TRANSFORMATIONS: Mapping[str, Described] = {
    "webhooks.show_transformation": _SHOW,
    "webhooks.patch_transformation": _CHANGE,
    "webhooks.simulate_transformation": _TRY,
    "webhooks.show_sink_transformation": _SHOW,
    "webhooks.set_sink_transformation": replace(_CHANGE, answer=answer({}), answered={}),
    "webhooks.simulate_sink_transformation": _TRY,
}
