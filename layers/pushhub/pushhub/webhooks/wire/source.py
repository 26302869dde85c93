"""Sources on the wire, as Svix's clients know them: a kind (``type``) and its ``config``, whose secrets stay hidden."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pushhub.base.credentials import MASK, masked_url
from pushhub.base.errors import FieldRefused
from pushhub.base.signature_schemes import Malformed
from pushhub.base.times import iso_time
from pushhub.base.webhook_senders import GENERIC, MOST_SECRET, SENDERS, Challenge, WebhookSender
from pushhub.web.signatures import check_secret, read_signatures, scheme_view
from pushhub.webhooks.model.arrival import REASONS
from pushhub.webhooks.model.ids import IdPrefix

if TYPE_CHECKING:
    from pushhub.base.signature_schemes import Scheme
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.arrival import TurnedAway
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.wire.fields import Fields

IN = "/ingest/in"
"""Beginning of the paths of sources' URLs; followed by the ids of project and source, and a token."""

SIGNATURE = "signature"
"""Where the owner of a generic source says how its sender signs."""

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSource:
    """A source as its owner asks for it.

    Attributes:
        kind: One of :data:`pushhub.base.webhook_senders.SENDERS`.
        scheme: How its sender signs, if the owner says so.
        secret: None to keep the stored one; empty for none.
        verify_token: None to keep the stored one.
        demands_secret: Whether it is refused without a secret.
    """

    name: str
    uid: str | None
    metadata: Mapping[str, str]
    kind: str
    scheme: Scheme | None = None
    secret: str | None = field(default=None, repr=False)
    verify_token: str | None = field(default=None, repr=False)
    demands_secret: bool = False


def parse_source(fields: Fields) -> WantedSource:
    """Read a source to be created or replaced."""
    name, uid = fields.text("name", least=1, most=1_024), fields.uid("uid", IdPrefix.SOURCE)
    metadata, sender = fields.texts_by_name("metadata"), _sender(fields)
    config = fields.section("config")
    scheme, secret = None, None
    if config is not None:
        _refuse_unheeded(sender, config)
    if sender.name == GENERIC:
        scheme, secret = _own_scheme(config)
    elif config is not None:
        secret = _secret(sender, config)
    verify_token = None
    if config is not None and sender.challenge is Challenge.META:
        verify_token = config.optional_text("verifyToken", least=1, most=MOST_SECRET)
        if verify_token == MASK:
            raise config.refuse(f"{MASK} is no token; leave it out to keep the stored one", "verifyToken")
    return WantedSource(
        name=name,
        uid=uid,
        metadata=metadata,
        kind=sender.name,
        scheme=scheme,
        secret=secret,
        verify_token=verify_token,
        demands_secret=sender.demands_secret or scheme is not None,
    )


def _sender(fields: Fields) -> WebhookSender:
    kind = fields.text("type", most=64)
    if kind not in SENDERS:
        raise fields.refuse(
            f"This hub has no sources of the kind {kind}. The kind {GENERIC} takes what any sender posts, and verifies"
            f" it by what config.{SIGNATURE} says",
            "type",
        )
    return SENDERS[kind]


def _refuse_unheeded(sender: WebhookSender, config: Fields) -> None:
    """Refuse what would not be verified by: its owner would take a source for verified that anybody may post to."""
    if sender.name == GENERIC and config.raw("secret") is not None:
        raise config.refuse(f"A source of the kind {GENERIC} says in {SIGNATURE} how its sender signs", "secret")
    if sender.name != GENERIC and config.raw(SIGNATURE) is not None:
        raise config.refuse(f"Only a source of the kind {GENERIC} says how its sender signs", SIGNATURE)


def _secret(sender: WebhookSender, config: Fields) -> str | None:
    """The secret of a config; None if it says nothing about it, empty if it says that there is none."""
    if not config.has("secret"):
        return None
    secret = config.optional_text("secret")
    if secret is None:
        return ""
    try:
        sender.check_secret(secret)
    except Malformed as error:
        raise config.refuse(str(error), "secret") from error
    return secret


def _own_scheme(config: Fields | None) -> tuple[Scheme | None, str | None]:
    """How the sender of a generic source signs, and with which secret; neither if its URL is all that it has."""
    given = config.raw(SIGNATURE) if config is not None else None
    if config is None or given is None:
        return None, ""
    try:
        [wanted] = read_signatures([given])
    except FieldRefused as refused:
        raise config.refuse(refused.text, SIGNATURE, *refused.place[1:]) from refused
    if wanted.scheme.standard:
        raise config.refuse("A sender that signs as Standard Webhooks says is of the kind svix", SIGNATURE, "preset")
    if wanted.scheme.ends_at:
        raise config.refuse("What comes in has no end: change the source instead", SIGNATURE, "endsAt")
    if wanted.secret is not None:
        try:
            check_secret(wanted.scheme, wanted.secret)
        except FieldRefused as refused:
            raise config.refuse(refused.text, SIGNATURE, "secret") from refused
    return wanted.scheme, wanted.secret


def source_view(application: Application, url: str) -> dict[str, Any]:
    """A source as its owner reads it. ``verified`` is ours."""
    source, fields = application.source, application.fields
    assert source is not None
    config = {} if source.scheme is None else {SIGNATURE: scheme_view(source.scheme)}
    return {
        "id": application.app_id,
        "uid": fields.uid,
        "name": fields.name,
        "type": source.kind,
        "config": config,
        "ingestUrl": url,
        "metadata": dict(fields.metadata),
        "verified": source.verified,
        "createdAt": iso_time(application.created_at),
        "updatedAt": iso_time(application.updated_at),
    }


def source_endpoint_view(endpoint: Endpoint) -> dict[str, Any]:
    """An endpoint of a source as Svix's clients read it there."""
    fields = endpoint.fields
    return {
        "id": endpoint.endpoint_id,
        "uid": fields.uid,
        "url": masked_url(fields.url),
        "description": fields.description,
        "disabled": fields.disabled,
        "throttleRate": fields.throttle_rate,
        "metadata": dict(fields.metadata),
        "createdAt": iso_time(endpoint.created_at),
        "updatedAt": iso_time(endpoint.updated_at),
    }


def turned_away_view(days: Iterable[TurnedAway]) -> dict[str, Any]:
    """What a source has turned away, newest day first."""
    found = list(days)
    last = found[0].last if found else None
    return {
        "days": [
            {
                "day": iso_time(each.day * DAY_MS)[:10],
                **{reason: each.counts.get(reason, 0) for reason in REASONS},
            }
            for each in found
        ],
        "last": None
        if last is None
        else {"reason": last.why, "at": iso_time(last.at), "address": last.address, "agent": last.agent},
    }
