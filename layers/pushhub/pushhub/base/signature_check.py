"""Verifies what senders have signed: signature schemes (:mod:`pushhub.base.signature_schemes`) the other way round.

The same description serves both ways. Here its templates say where a request has its signature, its time and its id,
and what was hashed.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from urllib.parse import parse_qs, parse_qsl

from pushhub.base.errors import Invalid
from pushhub.base.numerals import digits
from pushhub.base.signature_schemes import Scheme, parts, placeholders
from pushhub.base.times import epoch_ms

TOLERANCE_S = 300
"""How far the time that a sender signed may be from ours, seconds: what Stripe, Slack and Standard Webhooks advise."""

MOST_SIGNATURES = 20
"""Signatures of one header that are compared; the rest is not looked at."""

_MOST_OF_A_HEADER = 8_192
_MOST_FIELDS = 1_000
_FORM = "application/x-www-form-urlencoded"
_TIMES = ("ts", "ts_ms", "ts_iso")
_VALUES: Mapping[str, str] = {
    "signatures": r"(?P<signatures>.+)",
    "ts": r"(?P<ts>[0-9]{1,15})",
    "ts_ms": r"(?P<ts_ms>[0-9]{1,18})",
}
_OTHER_VALUE = r"(?P<%s>[^,; ]{1,256})"


class Doubt(StrEnum):
    """Why a request is not taken for its sender's."""

    UNSIGNED = "unsigned"
    """It has no signature where its sender puts one, or one of another form."""
    FORGED = "forged"
    """Its signature is not of these bytes with this secret."""
    OLD = "old"
    """It was signed too long ago, or its time is still to come."""


_TEXTS = {
    Doubt.UNSIGNED: "The request has no signature of its sender",
    Doubt.FORGED: "The signature is not right for this body and secret",
    Doubt.OLD: "The request was signed too long ago, or its time is still to come",
}


class Unverified(Invalid):
    """A request is not taken for its sender's.

    Args:
        doubt: Why.
    """

    def __init__(self, doubt: Doubt) -> None:
        super().__init__(_TEXTS[doubt])
        self.doubt = doubt


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedPost:
    """A request as it came in.

    Attributes:
        url: As its sender called it, with the query.
        headers: Names in lower case.
        body: The exact bytes.
        at: When it came, epoch milliseconds.
    """

    url: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    at: int


def verify(scheme: Scheme, secrets: Sequence[str], request: SignedPost) -> None:
    """Check that a request was signed with one of some secrets, and not long ago.

    Args:
        scheme: How its sender signs.
        secrets: The valid ones.
        request: The request.

    Raises:
        Unverified: It was not.
    """
    given = request.headers.get(scheme.header.lower(), "")
    found = _pattern(scheme.value).fullmatch(given.strip()) if 0 < len(given) <= _MOST_OF_A_HEADER else None
    if found is None:
        raise Unverified(Doubt.UNSIGNED)
    values = {**_companions(scheme, request.headers), **found.groupdict()}
    content = _content(scheme, values, request)
    signatures = _signatures(scheme, values["signatures"])
    digests = [hmac.digest(scheme.key(secret), content, scheme.hash) for secret in secrets]
    # Every pair is compared, so that the time taken says nothing of which one was right.
    right = [hmac.compare_digest(digest, each) for digest in digests for each in signatures]
    if not any(right):
        raise Unverified(Doubt.FORGED)
    _check_age(scheme, values, request.at)


def _companions(scheme: Scheme, headers: Mapping[str, str]) -> dict[str, str]:
    """The values that further headers carry, by the name of the placeholder that each of them consists of."""
    found = {}
    for name, template in scheme.companions:
        if name.lower() not in headers:
            continue
        value = headers[name.lower()].strip()
        found[f"header:{name.lower()}"] = value
        names = placeholders(template)
        if names and template == f"{{{names[0]}}}":
            found[names[0]] = value
    return found


def _content(scheme: Scheme, values: Mapping[str, str], request: SignedPost) -> bytes:
    """What was hashed."""
    if scheme.query:
        return _with_url(scheme, request)
    known = {name: value.encode(errors="replace") for name, value in values.items()}
    known |= {"body": request.body, "url": request.url.encode(errors="replace")}
    try:
        return b"".join(known[name] if name else literal for name, literal in parts(scheme.content))
    except KeyError as error:
        raise Unverified(Doubt.UNSIGNED) from error


def _with_url(scheme: Scheme, request: SignedPost) -> bytes:
    """What Twilio hashes: the URL, whose query has the body's digest, or the URL and then the fields of a form."""
    url = request.url.encode(errors="replace")
    claimed = parse_qs(request.url.partition("?")[2]).get(scheme.query)
    if claimed:
        digest = sha256(request.body).hexdigest()
        if not hmac.compare_digest(digest.encode(), claimed[0].lower().encode(errors="replace")):
            raise Unverified(Doubt.FORGED)
        return url
    if not request.headers.get("content-type", "").lower().startswith(_FORM):
        raise Unverified(Doubt.UNSIGNED)
    try:
        pairs = parse_qsl(request.body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise Unverified(Doubt.FORGED) from error
    return url + b"".join((name + value).encode(errors="replace") for name, value in sorted(set(pairs)))


def _signatures(scheme: Scheme, text: str) -> list[bytes]:
    """The signatures that a header carries, decoded; others than those of the scheme are passed over."""
    pattern = _pattern(scheme.each)
    found = (pattern.fullmatch(each.strip()) for each in text.split(scheme.joiner)[:MOST_SIGNATURES])
    decoded = (_decoded(scheme.encoding, each["signature"]) for each in found if each)
    return [each for each in decoded if each]


def _decoded(encoding: str, text: str) -> bytes:
    """A signature's bytes, of either alphabet of base64; empty if it is written in another way."""
    try:
        if encoding == "hex":
            return binascii.unhexlify(text)
        plain = text.translate({ord("-"): "+", ord("_"): "/"}).rstrip("=")
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (ValueError, binascii.Error):
        return b""


def _check_age(scheme: Scheme, values: Mapping[str, str], now: int) -> None:
    """A scheme that signs no time says nothing about age."""
    signed = set(placeholders(scheme.content))
    name = next((each for each in _TIMES if each in signed), None)
    if name is None:
        return
    at = _moment(name, values[name])
    if at is None or abs(now - at) > TOLERANCE_S * 1000:
        raise Unverified(Doubt.OLD)


def _moment(name: str, text: str) -> int | None:
    """A time in epoch milliseconds; None if it is not one."""
    if name == "ts_iso":
        try:
            return epoch_ms(text)
        except (ValueError, OverflowError):
            return None
    number = digits(text, 18)
    return None if number is None else number * (1000 if name == "ts" else 1)


@lru_cache(maxsize=256)
def _pattern(template: str) -> re.Pattern[str]:
    """What a template's text looks like."""
    written = []
    for name, literal in parts(template):
        if not name:
            written.append(re.escape(literal.decode()))
        elif name == "signature":
            written.append(r"(?P<signature>[A-Za-z0-9+/=_-]{1,256})")
        else:
            written.append(_VALUES.get(name) or _OTHER_VALUE % name)
    return re.compile("".join(written))
