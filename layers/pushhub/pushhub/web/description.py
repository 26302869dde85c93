"""How an API is described beyond its routes: schemas, examples and refusals, as data for an OpenAPI 3.1 document.

A protocol keeps an :class:`ApiDescription` in its ``api`` package, beside its routes. Functions that only serve
requests import nothing from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pushhub.base.fields import Setting, settings_of
from pushhub.base.signing import MAX_GRACE_S
from pushhub.web.gates import WORDS

if TYPE_CHECKING:
    from pushhub.web.api import Auth

Schema = Mapping[str, Any]
"""A JSON schema of the 2020-12 dialect."""

JSON_TYPE = "application/json"

OVER_QUOTA: Mapping[int, str] = {
    429: "The project posts more than its quota allows: `Retry-After` says when to try again"
}
"""A refusal of routes that producers call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A parameter in a path, a query or a header.

    Attributes:
        means: Its meaning, in one or two sentences.
        schema: Schema of its value.
        example: A value that works.
        required: Whether a request must have it; path parameters are always required.
    """

    means: str
    schema: Schema = field(default_factory=lambda: {"type": "string"})
    example: Any = None
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """The description of one route, beyond its summary.

    Attributes:
        means: What a caller should know, in full sentences; may be empty if the summary is enough.
        request: Schema of the body, None if no body is read.
        request_type: Content type of the body.
        sent: Example body. A test sends it.
        asked: Example query, by name. A test sends it, too.
        answer: Schema of the response on success, None for no content.
        answer_type: Its content type.
        answered: Example of the response.
        also: Other success statuses with the same response schema.
        headers: Headers that are read, by name.
        refusals: Refusals specific to this route, beyond those of the whole API: the reason by HTTP status.
    """

    means: str = ""
    request: Schema | None = None
    request_type: str = JSON_TYPE
    sent: Any = None
    asked: Mapping[str, str] = field(default_factory=dict)
    answer: Schema | None = None
    answer_type: str = JSON_TYPE
    answered: Any = None
    also: Sequence[int] = ()
    headers: Mapping[str, Named] = field(default_factory=dict)
    refusals: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDescription:
    """The description of one API.

    Attributes:
        tag: Its name for people.
        means: What it is for, in a few sentences.
        credentials: Security schemes by name.
        shown: The security schemes that a request may use, as alternatives, by its route's ``Auth``.
        schemas: Schemas that several routes share, by a name that no other API uses.
        names: The ``{name}`` segments of its paths.
        query: The fields of its queries.
        refusal: Schema of every refusal ...
        refusal_shapes: ... but those with these statuses.
        refusal_type: Their content type.
        refused: Makes an example refusal from its status and the reason for it.
        refusals: Refusals that any request may get, the reason by HTTP status; 401 only for routes that need
            credentials.
        routes: By the route's name.
    """

    tag: str
    means: str
    credentials: Mapping[str, Schema]
    shown: Mapping[Auth, Sequence[str]]
    schemas: Mapping[str, Schema]
    names: Mapping[str, Named]
    query: Mapping[str, Named]
    refusal: Schema
    refusal_shapes: Mapping[int, Schema] = field(default_factory=dict)
    refusal_type: str = JSON_TYPE
    refused: Callable[[int, str], Any]
    refusals: Mapping[int, str]
    routes: Mapping[str, Described]


def text(means: str = "", **more: Any) -> Schema:
    """A string."""
    return _schema("string", means, more)


def whole(means: str = "", least: int | None = None, most: int | None = None, **more: Any) -> Schema:
    """A whole number within inclusive bounds."""
    bounds = {name: value for name, value in (("minimum", least), ("maximum", most)) if value is not None}
    return _schema("integer", means, bounds | more)


def number(means: str = "", least: float | None = None, most: float | None = None, **more: Any) -> Schema:
    """A number within inclusive bounds."""
    bounds = {name: value for name, value in (("minimum", least), ("maximum", most)) if value is not None}
    return _schema("number", means, bounds | more)


def boolean(means: str = "", **more: Any) -> Schema:
    """True or false."""
    return _schema("boolean", means, more)


def array(of: Schema, means: str = "", **more: Any) -> Schema:
    """A list of items with one schema."""
    return _schema("array", means, {"items": of} | more)


def obj(means: str = "", **more: Any) -> Schema:
    """An object with any fields. It says so, as generators of clients take the default for none at all."""
    return _schema("object", means, {"additionalProperties": True} | more)


def request(fields: Mapping[str, Schema], *, needs: Sequence[str] = (), means: str = "", **more: Any) -> Schema:
    """An object in a request; unknown fields are ignored."""
    return _schema("object", means, {"properties": dict(fields)} | ({"required": list(needs)} if needs else {}) | more)


def answer(fields: Mapping[str, Schema], *, lacks: Sequence[str] = (), means: str = "") -> Schema:
    """An object in a response: exactly these fields, of which those in ``lacks`` may be missing."""
    needs = [each for each in fields if each not in lacks]
    unknown = {*lacks} - {*fields}
    if unknown:
        raise ValueError(f"no such fields: {sorted(unknown)}")
    return _schema("object", means, {"properties": dict(fields), "required": needs, "additionalProperties": False})


def settings_wanted(cls: type, **more: Schema) -> dict[str, Schema]:
    """The settings of a data class in a request (:mod:`pushhub.base.fields`), those with older names under these, too.

    Args:
        more: By its name in the request, its schema where the annotation does not say it.
    """
    found: dict[str, Schema] = {}
    for name, annotation, _, setting in settings_of(cls):
        means = f"{setting.means} {setting.left_out}".rstrip()
        new, *old = setting.names(name)
        found[new] = more[new] if new in more else setting_schema(annotation, setting, means)
        found |= {each: more.get(each, {**found[new], "description": f"The old name of {new}."}) for each in old}
    return found


def additions_shown(cls: type, **more: Schema) -> dict[str, Schema]:
    """The settings of a data class that an answer leaves out while they have their defaults.

    Args:
        more: By its name in the answer, its schema where the annotation does not say it.
    """
    found: dict[str, Schema] = {}
    for name, annotation, _, setting in settings_of(cls):
        if setting.hidden:
            new, *_ = setting.names(name)
            found[new] = more[new] if new in more else setting_schema(annotation, setting, setting.shown or "")
    return found


def settings_shown(cls: type, **more: Schema) -> Schema:
    """The settings of a data class in an answer, without bounds: what is stored may be from before they were set.

    Args:
        more: By field, its schema where the annotation does not say it.
    """
    found: dict[str, Schema] = {}
    for name, annotation, _, setting in settings_of(cls):
        means = setting.means if setting.shown is None else setting.shown
        found[name] = more[name] if name in more else _PLAIN[annotation](means)
    return answer(found, lacks=[name for name, _, _, setting in settings_of(cls) if setting.hidden])


def setting_schema(annotation: str, setting: Setting, means: str) -> Schema:
    """A setting with its bounds, under a meaning of one's own."""
    if annotation.endswith(" | None"):
        return nullable(setting_schema(annotation.removesuffix(" | None"), setting, means))
    if annotation == "int":
        return whole(means, setting.least, setting.most)
    if annotation == "str":
        bounds = {"minLength": setting.least, "maxLength": setting.most}
        return text(means, **{name: each for name, each in bounds.items() if each is not None})
    return _PLAIN[annotation](means)


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    if "type" in schema and isinstance(schema["type"], str):
        more = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
        return {**schema, "type": [schema["type"], "null"], **more}
    return {"anyOf": [dict(schema), {"type": "null"}]}


def ref(name: str) -> Schema:
    """A reference to a schema that several routes share."""
    return {"$ref": f"#/components/schemas/{name}"}


def _schema(kind: str, means: str, more: Mapping[str, Any]) -> Schema:
    return {"type": kind, **({"description": means} if means else {}), **more}


_PLAIN: Mapping[str, Callable[[str], Schema]] = {"int": whole, "str": text, "bool": boolean}

SIGNING_WANTED: Schema = {
    "description": "Signatures as Standard Webhooks specifies, with a secret that is never shown again, or as other "
    "senders make them. After a change "
    "of secret, the previous one also signs for the grace period. "
    "`true` keeps the secret, `false` switches signing off; if left out, nothing changes.",
    "anyOf": [
        {"type": ["boolean", "null"]},
        request(
            {
                "secret": text(
                    (
                        "`whsec_` and base64 of 24 to 75 bytes, or `whsk_` and base64 of an Ed25519 seed with its "
                        "public key."
                    ),
                    pattern="^whsec_[A-Za-z0-9+/]{32}$",
                ),
                "grace_period": whole("Seconds; a day by default.", 0, MAX_GRACE_S),
                "signatures": nullable(
                    array(obj("A preset or template."), "Other senders' schemes (docs/signatures.md).")
                ),
            },
        ),
    ],
}
"""How owners of subscribers ask for signatures (:func:`pushhub.web.signing.parse_signing`)."""

SIGNING_SHOWN: Schema = boolean("True if requests are signed.")

SIGNING_ENDS: Schema = {
    "type": "object",
    "additionalProperties": text("RFC 3339, UTC."),
    "description": "When signature schemes end, by their header. An ended one stays here until the next change.",
}

GATES_WANTED: dict[str, Schema] = {
    "oauth": {
        "description": "How tokens are obtained (OAuth 2.0 client credentials) that each request is sent with. `true` "
        "keeps that, `false` ends it; if left out, nothing changes. Secrets are never shown again; one that is left "
        "out stays while token URL, method and client do.",
        "anyOf": [
            {"type": ["boolean", "null"]},
            request(
                {
                    "token_url": text("`https://`.", maxLength=2_048, examples=["https://login.example/token"]),
                    "client_id": text("The client."),
                    "client_secret": nullable(text("Its secret.")),
                    "auth_method": nullable(
                        text(
                            "How it authenticates; `client_secret_basic` by default.", enum=list(WORDS.methods.values())
                        )
                    ),
                    "grant_type": nullable(text("The only one.", enum=[WORDS.client_credentials])),
                    "scopes": nullable(array(text(), "What it asks for.", maxItems=50)),
                    "extra_params": nullable(obj("Sent along.", additionalProperties=text(), maxProperties=10)),
                    "extra_headers": nullable(obj("Sent along.", additionalProperties=text(), maxProperties=10)),
                    "jwt_params": nullable(
                        obj("For `private_key_jwt`: secret_base64, secret_id, audience, token_expiry_secs.")
                    ),
                },
                needs=("token_url", "client_id"),
            ),
        ],
    },
    "mtls": {
        "description": "The client certificate that each request is sent with. `true` keeps it, `false` ends it; if "
        "left out, nothing changes. What was shown may be sent back.",
        "anyOf": [
            {"type": ["boolean", "null"]},
            request(
                {
                    "identity": nullable(text("PEM: a private key, its certificate, those that lead to an authority.")),
                    "ca": nullable(text("PEM: the only authorities that the receiver's own certificate may be of.")),
                },
            ),
        ],
    },
}
"""How owners of subscribers ask for gates (:func:`pushhub.web.gates.parse_gates`)."""

GATES_SHOWN: dict[str, Schema] = {
    "oauth": boolean("True if requests are sent with tokens."),
    "mtls": answer(
        {
            "subject": text("Common name of the client certificate."),
            "ends_at": text("When it ends.", format="date-time"),
            "private_ca": boolean("Whether the receiver is checked by authorities of its own."),
        }
    ),
}
