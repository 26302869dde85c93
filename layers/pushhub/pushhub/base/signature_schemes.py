"""Signature schemes as data: what is hashed, with which key, and how the result is written into headers.

A scheme is a template with placeholders and nothing else, so that it ends, costs the same each time, and can be checked
once when it is stored. One HMAC over the request's exact bytes expresses what most senders do.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any

from pushhub.base import json_text
from pushhub.base.signing import MAX_OLD_KEYS, TooManyKeys

HASHES = ("sha256", "sha512", "sha1")
ENCODINGS = ("hex", "base64")
KEY_ENCODINGS = ("utf8", "hex", "base64")

STANDARD = "standard-webhooks"
"""The scheme with which all endpoints sign if nobody says otherwise."""

_MARK = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class Malformed(ValueError):
    """A template or a secret has the wrong form; the text says why and never repeats a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """How a request is signed.

    Attributes:
        preset: Its name if it is one of :data:`PRESETS`, changed where that may be; empty for an owner's own.
        content: Template of what is hashed.
        hash: One of :data:`HASHES`.
        encoding: How the hash is written, one of :data:`ENCODINGS`.
        key_prefix: What is cut off a secret before it is decoded; each secret must begin with it.
        key_encoding: How the rest of the secret is decoded, one of :data:`KEY_ENCODINGS`.
        header: Name of the header that carries the signature.
        value: Template of its value; ``{signatures}`` stands for all of them.
        each: Template of one of them; ``{signature}`` stands for the hash.
        many: Whether old keys sign beside the newest; a header with a single value has room for one.
        joiner: Between the signatures of several keys.
        companions: Names and templates of further headers.
        query: Name of a parameter that is added to the URL and holds the SHA-256 of the body; empty for none.
        ends_at: From when on it signs no more, epoch milliseconds; 0 for never.
    """

    preset: str = ""
    content: str
    hash: str = "sha256"
    encoding: str = "hex"
    key_prefix: str = ""
    key_encoding: str = "utf8"
    header: str
    value: str = "{signatures}"
    each: str = "{signature}"
    many: bool = False
    joiner: str = ","
    companions: tuple[tuple[str, str], ...] = ()
    query: str = ""
    ends_at: int = 0

    @property
    def name(self) -> str:
        """Its name in records: the preset's, or the header's in lower case."""
        return self.preset or self.header.lower()

    @property
    def standard(self) -> bool:
        """Whether it is Standard Webhooks', which signs with the endpoint's own key ring."""
        return self.preset == STANDARD

    @property
    def names(self) -> tuple[str, ...]:
        """The headers that it sets, in lower case."""
        return (self.header.lower(), *(name.lower() for name, _ in self.companions))

    def signs_at(self, now: int) -> bool:
        """Whether it signs what is sent at a time (epoch milliseconds)."""
        return not self.ends_at or now < self.ends_at

    def key(self, secret: str) -> bytes:
        """The bytes of the key that a secret stands for. Nothing is trimmed, completed or guessed.

        Raises:
            Malformed: It lacks the prefix, or is not written as the scheme says.
        """
        if not secret.startswith(self.key_prefix):
            raise Malformed(f"The secret must begin with {self.key_prefix}")
        rest = secret.removeprefix(self.key_prefix)
        try:
            if self.key_encoding == "hex":
                # fromhex would skip spaces.
                return binascii.unhexlify(rest)
            if self.key_encoding == "base64":
                return base64.b64decode(rest, validate=True)
            return rest.encode()
        except (ValueError, binascii.Error) as error:
            raise Malformed(f"The secret is not valid {self.key_encoding}") from error

    def encode(self) -> dict[str, Any]:
        """As stored: a preset's name and what is different from it."""
        return {
            "preset": self.preset,
            **{
                each.name: getattr(self, each.name)
                for each in fields(self)
                if getattr(self, each.name) != getattr(PRESETS.get(self.preset, _BLANK), each.name)
            },
        }

    @classmethod
    def decode(cls, stored: Mapping[str, Any]) -> Scheme:
        """The scheme that :meth:`encode` wrote."""
        given = dict(stored)
        if "companions" in given:
            given["companions"] = tuple((name, text) for name, text in given["companions"])
        return replace(PRESETS.get(given["preset"], _BLANK), **given)


_BLANK = Scheme(content="", header="")


def preset(name: str, **given: Any) -> Scheme:
    """A scheme that is known by a name."""
    companions = tuple(sorted(given.pop("companions", ())))
    return Scheme(preset=name, companions=companions, **given)


PRESETS: Mapping[str, Scheme] = {
    each.preset: each
    for each in (
        preset(
            STANDARD,
            content="{id}.{ts}.{body}",
            encoding="base64",
            key_prefix="whsec_",
            key_encoding="base64",
            header="webhook-signature",
            each="v1,{signature}",
            many=True,
            joiner=" ",
            companions=(("webhook-id", "{id}"), ("webhook-timestamp", "{ts}")),
        ),
        preset(
            "stripe",
            content="{ts}.{body}",
            header="Stripe-Signature",
            value="t={ts},{signatures}",
            each="v1={signature}",
            many=True,
        ),
        preset(
            "github",
            content="{body}",
            header="X-Hub-Signature-256",
            value="sha256={signatures}",
            companions=(("X-GitHub-Event", "{event_type}"), ("X-GitHub-Delivery", "{id}")),
        ),
        preset(
            "shopify",
            content="{body}",
            encoding="base64",
            header="X-Shopify-Hmac-Sha256",
            companions=(("X-Shopify-Topic", "{event_type}"), ("X-Shopify-Webhook-Id", "{id}")),
        ),
        preset(
            "slack",
            content="v0:{ts}:{body}",
            header="X-Slack-Signature",
            value="v0={signatures}",
            companions=(("X-Slack-Request-Timestamp", "{ts}"),),
        ),
        preset(
            "twilio",
            content="{url}",
            hash="sha1",
            encoding="base64",
            header="X-Twilio-Signature",
            query="bodySHA256",
        ),
        preset("convoy-simple", content="{body}", header="X-Convoy-Signature"),
        preset(
            "convoy-advanced",
            content="{ts},{body}",
            header="X-Convoy-Signature",
            value="t={ts},{signatures}",
            each="v1={signature}",
            many=True,
        ),
        preset(
            "outpost",
            content="{body}",
            header="x-outpost-signature",
            value="v0={signatures}",
            many=True,
            companions=(
                ("x-outpost-event-id", "{id}"),
                ("x-outpost-timestamp", "{ts_iso}"),
                ("x-outpost-topic", "{event_type}"),
            ),
        ),
        preset(
            "hook0",
            content="{ts}.x-event-id x-delivery-id.{header:x-event-id}.{header:x-delivery-id}.{body}",
            header="X-Hook0-Signature",
            value="t={ts},h=x-event-id x-delivery-id,v1={signatures}",
            companions=(("X-Event-Id", "{event_id}"), ("X-Delivery-Id", "{id}"), ("X-Event-Type", "{event_type}")),
        ),
        preset("hmac-body", content="{body}", header=""),
    )
}
"""Schemes of known senders; each reproduces what their receivers' own libraries accept."""


@lru_cache(maxsize=512)
def parts(template: str) -> tuple[tuple[str, bytes], ...]:
    """A template's parts in order: a placeholder's name and nothing, or no name and literal bytes.

    Raises:
        Malformed: A brace has no partner, a placeholder no name, or the text no UTF-8 form.
    """
    found: list[tuple[str, bytes]] = []
    end = 0
    try:
        for mark in _MARK.finditer(template):
            found.append(("", template[end : mark.start()].encode()))
            end = mark.end()
            if mark[0] in ("{{", "}}"):
                found.append(("", mark[0][:1].encode()))
            elif mark[1] is None:
                raise Malformed("A brace has no partner; a brace itself is written {{ or }}")
            elif not mark[1]:
                raise Malformed("A placeholder has no name")
            else:
                found.append((mark[1], b""))
        found.append(("", template[end:].encode()))
    except UnicodeEncodeError as error:
        raise Malformed("The text contains half of a character") from error
    return tuple(each for each in found if each != ("", b""))


def placeholders(template: str) -> list[str]:
    """The names of a template's placeholders, in order."""
    return [name for name, _ in parts(template) if name]


def _expand(template: str, values: Mapping[str, bytes]) -> bytes:
    return b"".join(values[name] if name else literal for name, literal in parts(template))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsigned:
    """A request before it is signed.

    Attributes:
        message_id: The same at every attempt.
        event_id: The producer's own id of the event.
        event_type: Of the message; empty for none.
        at: When the attempt begins, epoch milliseconds.
        url: As it goes on the wire, without user information and fragment.
        body: The exact bytes that are sent.
    """

    message_id: str
    event_id: str
    event_type: str
    at: int
    url: str
    body: bytes = field(repr=False)


def signed_url(scheme: Scheme, url: str, body: bytes) -> str:
    """A URL with the parameter that a scheme adds; the same URL if it adds none."""
    if not scheme.query:
        return url
    return f"{url}{'&' if '?' in url else '?'}{scheme.query}={sha256(body).hexdigest()}"


def sign(scheme: Scheme, secrets: Sequence[str], request: Unsigned) -> dict[str, str]:
    """The headers that sign a request.

    Args:
        scheme: The scheme; not Standard Webhooks', whose keys may be asymmetric.
        secrets: The valid secrets, the newest first.
        request: With the URL that is called, see :func:`signed_url`.
    """
    moment = datetime.fromtimestamp(request.at // 1000, UTC)
    known = {
        "id": request.message_id.encode(),
        "event_id": request.event_id.encode(),
        "event_type": request.event_type.encode(),
        "ts": b"%d" % (request.at // 1000),
        "ts_ms": b"%d" % request.at,
        "ts_iso": moment.strftime("%Y-%m-%dT%H:%M:%SZ").encode(),
    }
    companions = {name: _expand(template, known) for name, template in scheme.companions}
    hashed = {f"header:{name.lower()}": value for name, value in companions.items()}
    content = _expand(scheme.content, {**known, **hashed, "url": request.url.encode(), "body": request.body})
    found = []
    for secret in secrets if scheme.many else secrets[:1]:
        digest = hmac.digest(scheme.key(secret), content, scheme.hash)
        text = digest.hex().encode() if scheme.encoding == "hex" else base64.b64encode(digest)
        found.append(_expand(scheme.each, {"signature": text}))
    value = _expand(scheme.value, {**known, "signatures": scheme.joiner.encode().join(found)})
    return {name: text.decode() for name, text in {**companions, scheme.header: value}.items()}


@dataclass(frozen=True, slots=True)
class SecretRing:
    """The secrets of one scheme of a subscriber, in their owner's writing.

    Attributes:
        current: Signs first.
        old: Previous ones, each with the time after which it no longer signs (epoch milliseconds), earliest first.
    """

    current: str = field(repr=False)
    old: tuple[tuple[str, int], ...] = field(default=(), repr=False)

    def live(self, now: int) -> list[str]:
        """The secrets to sign with, the current one first."""
        return [self.current, *(secret for secret, ends_at in self.old if ends_at > now)]

    def rotated(self, secret: str, *, grace_ms: int, now: int) -> SecretRing:
        """The ring with another current secret.

        Args:
            secret: The new one; may be an earlier one.
            grace_ms: How long the previous one still signs; 0 ends it at once.
            now: Epoch milliseconds.

        Raises:
            TooManyKeys: Too many old ones are still valid.
        """
        old = [each for each in self.old if each[1] > now and each[0] != secret]
        if self.current != secret and grace_ms > 0:
            old.append((self.current, now + grace_ms))
        old.sort(key=lambda each: each[1])
        if len(old) > MAX_OLD_KEYS:
            raise TooManyKeys(old[0][1])
        return SecretRing(secret, tuple(old))


def encode_rings(rings: Sequence[SecretRing | None]) -> bytes:
    """The rings of a subscriber's schemes in their order, ready to be sealed; None for one with no ring here."""
    return json_text.write([None if ring is None else [ring.current, ring.old] for ring in rings]).encode()


def decode_rings(content: bytes) -> list[SecretRing | None]:
    """What :func:`encode_rings` wrote."""
    return [
        None if each is None else SecretRing(each[0], tuple((secret, ends_at) for secret, ends_at in each[1]))
        for each in json_text.stored(content)
    ]
