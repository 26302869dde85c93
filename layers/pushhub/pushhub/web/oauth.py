"""Reads how a token is obtained as owners write it, in Svix's words, and shows it without its secrets."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Never

from pushhub.base.credentials import MASK, masked_headers, named_like_a_secret
from pushhub.base.der import NotDer
from pushhub.base.oauth import BASIC, DEFAULT_ASSERTION_S, METHODS, PRIVATE_KEY_JWT, Grant

GRANT_TYPE = "clientCredentials"
ALGORITHM = "RS256"
MOST_SCOPES = 50
MOST_EXTRAS = 10
MOST_TEXT = 1_024
"""Longest id, scope, parameter or header, in characters."""

MOST_SECRET = 16_384
"""Longest secret: a private key in base64, in characters."""

MOST_ASSERTION_S = 300
"""Longest time for which an assertion is valid: token servers refuse longer ones."""

_VISIBLE = re.compile(r"[\x20-\x7e]+")
# RFC 6749, appendix A.4.
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN_PARAMS = frozenset(
    {
        *("grant_type", "scope", "client_id", "client_secret"),
        *("client_assertion", "client_assertion_type", "code", "refresh_token"),
    }
)
_OWN_HEADERS = frozenset(
    {
        *("accept", "accept-encoding", "authorization", "connection", "content-encoding", "content-length"),
        *("content-type", "cookie", "expect", "host", "keep-alive", "proxy-authorization", "te", "trailer"),
        *("transfer-encoding", "upgrade", "user-agent"),
    }
)


class GrantRefused(Exception):
    """What was asked for could not be right.

    Args:
        message: Why; never repeats a secret.
        place: Where.
    """

    def __init__(self, message: str, *place: str) -> None:
        super().__init__(message)
        self.message = message
        self.place = place


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Where a token URL may lead.

    Attributes:
        refusal: Says why a URL is refused; None when it may be used.
        reach: How far the caller reaches.
    """

    refusal: Callable[[str], str | None]
    reach: str


def read_grant(given: Mapping[str, Any], stored: Grant | None, allowed: Allowed) -> Grant:
    """Read how a token is obtained.

    Secrets that are left out, and values that read ``********``, are those that are stored, provided that they go where
    they went before.

    Args:
        given: What was sent.
        stored: What is stored; None for nothing.
        allowed: Where the token URL may lead.

    Raises:
        GrantRefused: It could not be right.
    """
    return _Reader(given, stored, allowed).read()


class _Reader:
    def __init__(self, given: Mapping[str, Any], stored: Grant | None, allowed: Allowed) -> None:
        self._given = given
        self._stored = stored
        self._allowed = allowed

    def read(self) -> Grant:
        self._one_of("grantType", (GRANT_TYPE,), "Only clientCredentials is supported")
        if self._given.get("refreshToken") is not None:
            _refuse("Client credentials have no refresh token", "refreshToken")
        method = self._one_of("authMethod", METHODS, f"It must be one of {', '.join(METHODS)}")
        url = self._url()
        client = self._text("clientId", MOST_TEXT)
        before = self._stored
        if before is not None and (before.token_url, before.method, before.client_id) != (url, method, client):
            before = None
        assertion = self._assertion(method, before)
        secret = assertion["secret"] if assertion else self._secret(method, before)
        return Grant(
            token_url=url,
            method=method,
            client_id=client,
            secret=secret,
            scopes=self._scopes(),
            params=self._extras("extraParams", before.params if before else {}, _OWN_PARAMS),
            headers=self._headers(before),
            **{name: value for name, value in assertion.items() if name != "secret"},
            reach=self._allowed.reach,
            revision=secrets.token_hex(8),
        )

    def _url(self) -> str:
        url = self._text("tokenUrl", 2_048)
        refused = self._allowed.refusal(url)
        if refused is not None:
            _refuse(refused, "tokenUrl")
        return url

    def _secret(self, method: str, before: Grant | None) -> str:
        if self._given.get("jwtParams") is not None:
            _refuse(f"Only {PRIVATE_KEY_JWT} has these", "jwtParams")
        if self._given.get("clientSecret") is None and before is not None:
            return before.secret
        secret = self._text("clientSecret", MOST_TEXT)
        if method == BASIC and not secret.isascii():
            _refuse("A client secret may only have visible ASCII characters", "clientSecret")
        return secret

    def _assertion(self, method: str, before: Grant | None) -> dict[str, Any]:
        """What an assertion is made of; nothing for other methods."""
        if method != PRIVATE_KEY_JWT:
            return {}
        if self._given.get("clientSecret") is not None:
            _refuse(f"{PRIVATE_KEY_JWT} has a private key in jwtParams instead", "clientSecret")
        given = self._given.get("jwtParams")
        if given is None and before is not None:
            return {
                "secret": before.secret,
                "key_id": before.key_id,
                "audience": before.audience,
                "assertion_s": before.assertion_s,
            }
        if not isinstance(given, dict):
            _refuse("An object is required", "jwtParams")
        if given.get("signingAlgorithm") != ALGORITHM:
            _refuse(f"It must be {ALGORITHM}", "jwtParams", "signingAlgorithm")
        expiry = given.get("tokenExpirySecs")
        if expiry is not None and (isinstance(expiry, bool) or not isinstance(expiry, int)):
            _refuse("A whole number is required", "jwtParams", "tokenExpirySecs")
        if expiry is not None and not 10 <= expiry <= MOST_ASSERTION_S:
            _refuse(f"The number must be from 10 to {MOST_ASSERTION_S}", "jwtParams", "tokenExpirySecs")
        secret = given.get("secretBase64")
        if secret is None and before is not None:
            secret = before.secret
        else:
            _check_key(secret)
        return {
            "secret": secret,
            "key_id": _optional(given, "secretId", "jwtParams"),
            "audience": _optional(given, "audience", "jwtParams"),
            "assertion_s": DEFAULT_ASSERTION_S if expiry is None else expiry,
        }

    def _scopes(self) -> tuple[str, ...]:
        given = self._given.get("scopes")
        if given is None:
            return ()
        if not isinstance(given, list) or len(given) > MOST_SCOPES:
            _refuse(f"A list of up to {MOST_SCOPES} scopes is required", "scopes")
        for number, each in enumerate(given):
            if not isinstance(each, str) or len(each) > MOST_TEXT or _SCOPE.fullmatch(each) is None:
                _refuse("A scope has visible ASCII characters, but no space, quote or backslash", "scopes", str(number))
        return tuple(given)

    def _headers(self, before: Grant | None) -> dict[str, str]:
        headers = self._extras("extraHeaders", before.headers if before else {}, _OWN_HEADERS)
        if len({name.lower() for name in headers}) != len(headers):
            _refuse("A header is given twice", "extraHeaders")
        for name in headers:
            if _HEADER_NAME.fullmatch(name) is None:
                _refuse("A header's name has characters that may not be sent", "extraHeaders", name)
        return headers

    def _extras(self, field: str, before: Mapping[str, str], own: frozenset[str]) -> dict[str, str]:
        given = self._given.get(field)
        if given is None:
            return {}
        if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
            _refuse("An object whose values are strings is required", field)
        if len(given) > MOST_EXTRAS:
            _refuse(f"At most {MOST_EXTRAS} are allowed", field)
        found = {}
        for name, value in given.items():
            if name.lower() in own:
                _refuse("The hub itself sets this", field, name)
            meant = before.get(name) if value == MASK else value
            if meant is None:
                _refuse(f"{MASK} stands for a stored value, and there is none", field, name)
            for each in (name, meant):
                if len(each) > MOST_TEXT or _VISIBLE.fullmatch(each) is None:
                    _refuse(f"Names and values have 1 to {MOST_TEXT} visible ASCII characters", field, name)
            found[name] = meant
        return found

    def _one_of(self, field: str, choices: tuple[str, ...], text: str) -> str:
        given = self._given.get(field)
        if not isinstance(given, str) or given not in choices:
            _refuse(text, field)
        return given

    def _text(self, field: str, most: int) -> str:
        given = self._given.get(field)
        if not isinstance(given, str) or not given:
            _refuse("A string is required", field)
        if len(given) > most:
            _refuse(f"The string may have at most {most} characters", field)
        if any(ord(each) < 0x20 or ord(each) == 0x7F or 0xD800 <= ord(each) < 0xE000 for each in given):
            _refuse("The string contains control characters", field)
        return given


def _check_key(secret: object) -> None:
    if not isinstance(secret, str) or not secret or len(secret) > MOST_SECRET:
        _refuse(f"A string of up to {MOST_SECRET} characters is required", "jwtParams", "secretBase64")
    from pushhub.base.rsa import read_key  # noqa: PLC0415 (few clients have a key)

    try:
        read_key(base64.b64decode(secret, validate=True)).sign(b"")
    except (binascii.Error, ValueError) as error:
        told = str(error) if isinstance(error, NotDer) else "it is not base64"
        _refuse(f"The base64 of an RSA private key is required: {told}", "jwtParams", "secretBase64")


def _optional(given: Mapping[str, Any], field: str, place: str) -> str:
    value = given.get(field)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MOST_TEXT or _VISIBLE.fullmatch(value) is None:
        _refuse(f"A string of 1 to {MOST_TEXT} visible ASCII characters is required", place, field)
    return value


def _refuse(text: str, *place: str) -> Never:
    raise GrantRefused(text, *place)


def grant_view(grant: Grant) -> dict[str, Any]:
    """How a token is obtained, as its owner is shown it; may be sent back."""
    return {
        "grantType": GRANT_TYPE,
        "authMethod": grant.method,
        "clientId": grant.client_id,
        "tokenUrl": grant.token_url,
        "scopes": list(grant.scopes),
        "extraParams": {name: MASK if named_like_a_secret(name) else each for name, each in grant.params.items()},
        "extraHeaders": masked_headers(grant.headers),
    }
