"""Reads signature schemes as their owners write them, and shows them.

Whatever could not be right is refused here, with the place of the fault: nothing is left to fail at a delivery.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Never

from pushhub.base.errors import FieldRefused
from pushhub.base.signature_schemes import (
    ENCODINGS,
    HASHES,
    KEY_ENCODINGS,
    PRESETS,
    Malformed,
    Scheme,
    SecretRing,
    Unsigned,
    parts,
    placeholders,
    sign,
)
from pushhub.base.signing import DEFAULT_GRACE_S, MAX_GRACE_S, MAX_OLD_KEYS, TooManyKeys
from pushhub.base.signing_change import WantedSignature
from pushhub.base.times import epoch_ms, iso_time

MOST = 2
"""Most schemes that sign the same request."""

MOST_COMPANIONS = 10
MOST_TEMPLATE = 500
"""Longest template, in characters."""

MOST_VALUE = 4_096
"""Longest value of a header with the longest ids and all keys, in bytes."""

MOST_SECRET = 256
"""Most bytes of a key."""

LEAST_SECRET = 8
"""Least bytes of the key of an owner's own scheme; a preset takes what its sender hands out."""

FURTHEST_END_MS = 400 * 86_400_000
"""How far away the end of a scheme may be, milliseconds."""

_MOST_OF_A_TIME = 64
_TEXTS = ("id", "event_id", "event_type", "ts", "ts_ms", "ts_iso")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_PRINTABLE = re.compile(rb"[\x20-\x7e]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_FORBIDDEN = frozenset(
    (
        *("accept", "accept-encoding", "age", "authorization", "cache-control"),
        *("clear-site-data", "connection", "content-encoding", "content-language", "content-length"),
        *("content-location", "content-type", "cookie", "date", "expect"),
        *("expires", "forwarded", "host", "http2-settings", "keep-alive"),
        *("pragma", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te"),
        *("traceparent", "tracestate", "trailer", "trailers", "transfer-encoding"),
        *("upgrade", "user-agent", "via", "warning"),
    )
)
_FORBIDDEN_PREFIXES = (
    *("ce-", "iron-", "svix-", "webhook-", "x-amz-", "x-amzn-", "x-augury-", "x-azure-", "x-fd-", "x-forwarded-"),
    *("x-gfe", "x-goog-", "x-google", "x-svix-"),
)
_SHOPIFY = ("x-shopify-shop-domain", "x-shopify-api-version")
"""Without these its receivers refuse a request, and only their owner knows the values."""

_PLACES = {
    "content": ("content",),
    "hash": ("hash",),
    "encoding": ("encoding",),
    "key_prefix": ("key", "prefix"),
    "key_encoding": ("key", "encoding"),
    "header": ("header", "name"),
    "value": ("header", "value"),
    "each": ("header", "each"),
    "many": ("header", "keys"),
    "joiner": ("header", "joiner"),
    "companions": ("headers",),
    "query": ("query",),
    "ends_at": ("endsAt",),
}
"""Where a field of a scheme is written."""

_SETTABLE: Mapping[str, frozenset[str]] = {
    "shopify": frozenset({"companions"}),
    "convoy-simple": frozenset({"header", "hash", "encoding"}),
    "convoy-advanced": frozenset({"header", "hash", "encoding"}),
    "outpost": frozenset({"encoding"}),
    "hook0": frozenset({"header"}),
    "hmac-body": frozenset({"header", "value", "hash", "encoding", "key_prefix", "key_encoding"}),
}
"""What an owner may change of a preset: what its sender lets its own users set."""


def read_signatures(given: Any) -> tuple[WantedSignature, ...]:
    """Read a list of schemes; none when null or empty.

    Raises:
        FieldRefused: It is not a list, one is faulty, or two do not go together.
    """
    if given is None:
        return ()
    if not isinstance(given, list) or len(given) > MOST:
        raise FieldRefused(f"A list of up to {MOST} signatures is required")
    read = tuple(_Reader(each, str(number)).read() for number, each in enumerate(given))
    if len(read) == MOST:
        taken = set(read[0].scheme.names) & set(read[1].scheme.names)
        if taken:
            raise FieldRefused(f"Both signatures set the header {min(taken)}", "1", "header", "name")
    if read and all(each.scheme.ends_at for each in read):
        raise FieldRefused("One signature has to stay: only the other may end", str(len(read) - 1), "endsAt")
    return read


class _Reader:
    """Reads one scheme."""

    def __init__(self, given: Any, *where: str) -> None:
        self._where = where
        if not isinstance(given, dict):
            self._refuse("A signature must be an object")
        self._given: dict[str, Any] = given

    def read(self) -> WantedSignature:
        given = self._given
        known = {place[0] for place in _PLACES.values()}
        known |= {"preset", "secret", "gracePeriodSeconds", "legacy", "oldSecretsEnd"}
        for name in given:
            if name not in known:
                self._refuse("A signature has no such field", name)
        self._inner()
        preset = given.get("preset")
        if preset is not None and (not isinstance(preset, str) or preset not in PRESETS):
            self._refuse(f"The preset must be one of {', '.join(PRESETS)}", "preset")
        base = PRESETS[preset] if preset is not None else Scheme(content="", header="")
        scheme = self._scheme(base)
        secret, grace = self._secret(scheme), self._grace(scheme)
        return WantedSignature(scheme=scheme, secret=secret, grace_s=grace)

    def _scheme(self, base: Scheme) -> Scheme:
        changed: dict[str, Any] = {}
        for name in ("content", "value", "each", "joiner", "header", "key_prefix"):
            text = self._text(*_PLACES[name])
            if text is not None:
                changed[name] = text
        for name, choices in (("hash", HASHES), ("encoding", ENCODINGS), ("key_encoding", KEY_ENCODINGS)):
            text = self._text(*_PLACES[name])
            if text is None:
                continue
            if text not in choices:
                self._refuse(f"It must be one of {', '.join(choices)}", *_PLACES[name])
            changed[name] = text
        keys = self._text("header", "keys")
        if keys is not None:
            if keys not in ("all", "newest"):
                self._refuse("It must be all or newest", "header", "keys")
            changed["many"] = keys == "all"
        if self._given.get("headers") is not None:
            changed["companions"] = self._companions(base)
        if self._given.get("query") is not None and self._given["query"] != _query_view(base):
            self._refuse("Only the preset twilio adds to the URL", "query")
        scheme = replace(base, **changed, ends_at=self._end())
        for name, value in changed.items():
            if base.preset and name not in _SETTABLE.get(base.preset, ()) and value != getattr(base, name):
                self._refuse(f"The preset {base.preset} says what this is", *_PLACES[name])
        if not scheme.standard:
            self._check(scheme)
        return scheme

    def _companions(self, base: Scheme) -> tuple[tuple[str, str], ...]:
        given = self._given["headers"]
        if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
            self._refuse("An object whose values are strings is required", "headers")
        if len({name.lower() for name in given}) != len(given):
            self._refuse("A header is given twice", "headers")
        written = {name.lower() for name in given}
        kept = tuple(each for each in base.companions if each[0].lower() not in written)
        found = tuple(sorted((*kept, *given.items())))
        if len(found) > MOST_COMPANIONS:
            self._refuse(f"At most {MOST_COMPANIONS} headers are allowed", "headers")
        return found

    def _check(self, scheme: Scheme) -> None:
        """Check a scheme as a whole, and try it with the longest values there are."""
        if scheme.hash == "sha1" and scheme.preset != "twilio" and self._given.get("legacy") is not True:
            self._refuse("sha1 is outdated: it is used only together with legacy: true", "hash")
        if not isinstance(self._given.get("legacy", False), bool):
            self._refuse("True or false is required", "legacy")
        own = [f"header:{name.lower()}" for name, _ in scheme.companions]
        found = self._placeholders(scheme.content, (*_TEXTS, "url", "body", *own), "content")
        if found.count("body") != 1 and not (scheme.query and "url" in found):
            self._refuse("The content must have {body} exactly once: what is not hashed is not protected", "content")
        self._header(scheme.header, "header", "name")
        found = self._placeholders(scheme.value, (*_TEXTS, "signatures"), "header", "value")
        if found.count("signatures") != 1:
            self._refuse("The value must have {signatures} exactly once", "header", "value")
        found = self._placeholders(scheme.each, ("signature",), "header", "each")
        if found.count("signature") != 1:
            self._refuse("It must have {signature} exactly once", "header", "each")
        if _PRINTABLE.fullmatch(scheme.joiner.encode(errors="replace")) is None or not 1 <= len(scheme.joiner) <= 8:
            self._refuse("It must be 1 to 8 printable ASCII characters", "header", "joiner")
        for name, template in scheme.companions:
            self._header(name, "headers", name)
            self._placeholders(template, _TEXTS, "headers", name)
        for name, place in ((scheme.value, ("header", "value")), (scheme.each, ("header", "each"))):
            self._printable(name, *place)
        for name, template in scheme.companions:
            self._printable(template, "headers", name)
        missing = [name for name in _SHOPIFY if name not in scheme.names] if scheme.preset == "shopify" else []
        if missing:
            self._refuse(f"Receivers need the header {missing[0]}", "headers", missing[0])
        if len(set(scheme.names)) != len(scheme.names):
            self._refuse("A header is set twice", "headers")
        if len(scheme.key_prefix) > 32 or _CONTROL.search(scheme.key_prefix):
            self._refuse("It must be up to 32 characters without control characters", "key", "prefix")
        self._try(scheme)

    def _try(self, scheme: Scheme) -> None:
        longest = Unsigned(
            message_id="m" * 64, event_id="e" * 256, event_type="t" * 256, at=10**14 - 1, url="https://a/", body=b""
        )
        plain = replace(scheme, key_prefix="", key_encoding="utf8")
        for name, value in sign(plain, ["k"] * (MAX_OLD_KEYS + 1), longest).items():
            if len(value) > MOST_VALUE:
                place = ("header", "value") if name == scheme.header else ("headers", name)
                self._refuse(f"With the longest values, the header has more than {MOST_VALUE} bytes", *place)

    def _placeholders(self, template: str, allowed: Sequence[str], *place: str) -> list[str]:
        if len(template) > MOST_TEMPLATE:
            self._refuse(f"At most {MOST_TEMPLATE} characters are allowed", *place)
        try:
            found = placeholders(template)
        except Malformed as error:
            self._refuse(str(error), *place)
        unknown = next((name for name in found if name not in allowed), None)
        if unknown is not None:
            known = ", ".join(f"{{{name}}}" for name in allowed)
            self._refuse(f"There is no {{{unknown[:64]}}} here, only {known}", *place)
        return found

    def _printable(self, template: str, *place: str) -> None:
        if template != template.strip() or not all(_PRINTABLE.fullmatch(each) for _, each in parts(template)):
            self._refuse("A header's value takes printable ASCII only, and no space at its ends", *place)

    def _header(self, name: str, *place: str) -> None:
        if not name:
            self._refuse("The name of a header is required", *place)
        if _HEADER_NAME.fullmatch(name) is None:
            self._refuse("A header's name has characters that may not be sent", *place)
        if name.lower() in _FORBIDDEN or name.lower().startswith(_FORBIDDEN_PREFIXES):
            self._refuse("This header may not be set", *place)

    def _secret(self, scheme: Scheme) -> str | None:
        secret = self._given.get("secret")
        if secret is None:
            return None
        if scheme.standard:
            self._refuse("The endpoint's own secret signs this; it is changed where it is shown", "secret")
        if not isinstance(secret, str):
            self._refuse("A string is required", "secret")
        if _CONTROL.search(secret):
            self._refuse("The secret contains control characters", "secret")
        check_secret(scheme, secret, *self._where, "secret")
        return secret

    def _end(self) -> int:
        given = self._text("endsAt")
        if given is None:
            return 0
        moment = _moment(given)
        if moment is None:
            self._refuse("A time such as 2026-12-31T00:00:00Z is required", "endsAt")
        return max(1, moment)

    def _grace(self, scheme: Scheme) -> int | None:
        grace = self._given.get("gracePeriodSeconds")
        if grace is None:
            return None
        if isinstance(grace, bool) or not isinstance(grace, int) or not 0 <= grace <= MAX_GRACE_S:
            self._refuse(f"A whole number from 0 to {MAX_GRACE_S} is required", "gracePeriodSeconds")
        if grace and not scheme.many:
            self._refuse("This header has one value, so an old secret cannot sign beside the new", "gracePeriodSeconds")
        if self._given.get("secret") is None:
            self._refuse("This is about a new secret, and there is none", "gracePeriodSeconds")
        return grace

    def _inner(self) -> None:
        """Check that what is an object inside is one, and has no unknown fields."""
        for outer in ("header", "key"):
            inner = self._given.get(outer)
            if inner is None:
                continue
            if not isinstance(inner, dict):
                self._refuse("An object is required", outer)
            known = [place[1] for place in _PLACES.values() if place[0] == outer]
            for name in inner:
                if name not in known:
                    self._refuse("There is no such field", outer, name)

    def _text(self, *place: str) -> str | None:
        value: Any = self._given
        for name in place:
            value = value.get(name)
            if value is None:
                return None
        if not isinstance(value, str):
            self._refuse("A string is required", *place)
        return value

    def _refuse(self, message: str, *place: str) -> Never:
        raise FieldRefused(message, *self._where, *place)


def _moment(text: str) -> int | None:
    """A time in epoch milliseconds; None if it is not one, or of an unknown time zone."""
    try:
        aware = len(text) <= _MOST_OF_A_TIME and datetime.fromisoformat(text).tzinfo is not None
        return epoch_ms(text) if aware else None
    except (ValueError, OverflowError):
        return None


def check_secret(scheme: Scheme, secret: str, *place: str) -> None:
    """Check that a scheme can sign with a secret.

    Raises:
        FieldRefused: It is written in another way than the scheme says, or too short or long.
    """
    try:
        size = len(scheme.key(secret))
    except Malformed as error:
        raise FieldRefused(str(error), *place) from error
    least = 1 if scheme.preset else LEAST_SECRET
    if not least <= size <= MOST_SECRET:
        raise FieldRefused(f"The secret must have {least} to {MOST_SECRET} bytes", *place)


def by_header(schemes: Sequence[Scheme], rings: Sequence[SecretRing | None]) -> dict[str, SecretRing]:
    """Stored secrets by the header, in lower case, that carries their signatures."""
    pairs = zip(schemes, rings, strict=True)
    return {scheme.header.lower(): ring for scheme, ring in pairs if ring is not None}


def renewed(wanted: Sequence[WantedSignature], stored: Mapping[str, SecretRing], now: int) -> list[SecretRing | None]:
    """The secrets of schemes that an owner asks for, in their order: stored ones, new ones, or both for a while.

    Args:
        stored: See :func:`by_header`: a scheme is known by its header.

    Raises:
        FieldRefused: One has no secret, cannot be used with the stored one, has too many old ones, or ends at a
            time that is past or too far away.
    """
    check_ends(wanted, now)
    return [
        None if each.scheme.standard else _ring(each, stored.get(each.scheme.header.lower()), str(number), now)
        for number, each in enumerate(wanted)
    ]


def check_ends(wanted: Sequence[WantedSignature], now: int) -> None:
    """Check when schemes end.

    Raises:
        FieldRefused: One has ended, or ends too far away.
    """
    for number, each in enumerate(wanted):
        if not each.scheme.signs_at(now):
            raise FieldRefused("This is past", str(number), "endsAt")
        if each.scheme.ends_at > now + FURTHEST_END_MS:
            raise FieldRefused("A signature may end within 400 days", str(number), "endsAt")


def _ring(wanted: WantedSignature, before: SecretRing | None, place: str, now: int) -> SecretRing:
    if before is None:
        if wanted.secret is None:
            raise FieldRefused("A secret is required", place, "secret")
        return SecretRing(wanted.secret)
    ring, scheme = before, wanted.scheme
    if wanted.secret is not None:
        default = DEFAULT_GRACE_S if scheme.many else 0
        grace = default if wanted.grace_s is None else wanted.grace_s
        try:
            ring = before.rotated(wanted.secret, grace_ms=grace * 1000, now=now)
        except TooManyKeys as error:
            at = iso_time(error.next_expiry)
            raise FieldRefused(f"Too many old secrets are still valid; the next one ends at {at}", place) from error
    # The stored secrets were checked with the scheme as it was.
    for secret in ring.live(now):
        check_secret(scheme, secret, place, "secret")
    return ring


def _query_view(scheme: Scheme) -> dict[str, str]:
    return {scheme.query: "{sha256:body}"} if scheme.query else {}


def scheme_view(scheme: Scheme) -> dict[str, Any]:
    """A scheme as its owner is shown it, and may send it back."""
    shown: dict[str, Any] = {"preset": scheme.preset} if scheme.preset else {}
    if scheme.ends_at:
        shown["endsAt"] = iso_time(scheme.ends_at)
    if scheme.standard:
        return shown
    shown |= {
        "content": scheme.content,
        "hash": scheme.hash,
        "encoding": scheme.encoding,
        "key": {"prefix": scheme.key_prefix, "encoding": scheme.key_encoding},
        "header": {
            "name": scheme.header,
            "value": scheme.value,
            "each": scheme.each,
            "joiner": scheme.joiner,
            "keys": "all" if scheme.many else "newest",
        },
        "headers": dict(scheme.companions),
    }
    if scheme.query:
        shown["query"] = _query_view(scheme)
    if scheme.hash == "sha1" and scheme.preset != "twilio":
        shown["legacy"] = True
    return shown
