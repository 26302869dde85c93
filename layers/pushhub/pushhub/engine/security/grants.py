"""Reads how a token is obtained as owners ask for it, in whichever dialect, and refuses it in their words."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Never

from pushhub.base.credentials import MASK
from pushhub.base.errors import FieldRefused
from pushhub.base.oauth import BASIC, DEFAULT_ASSERTION_S, PRIVATE_KEY_JWT, Grant
from pushhub.base.pem import PemRefused, check_rsa_key

if TYPE_CHECKING:
    from pushhub.base.grants import GrantRequest

ALGORITHM = "RS256"
MOST_SCOPES = 50
MOST_EXTRAS = 10
MOST_TEXT = 1_024
"""Longest id, scope, parameter or header, in characters."""

MOST_SECRET = 16_384
"""Longest secret: a private key in base64, in characters."""

MOST_ASSERTION_S = 300
"""Longest time for which an assertion is valid: token servers refuse longer ones."""

_NONE_STORED = f"{MASK} stands for a stored value, and there is none that goes there"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """Where a token URL may lead.

    Attributes:
        refusal: Says why a URL is refused; None when it may be used.
        reach: How far the caller reaches.
    """

    refusal: Callable[[str], str | None]
    reach: str


def read_grant(asked: GrantRequest, stored: Grant | None, allowed: Allowed) -> Grant:
    """Read how a token is obtained.

    Secrets that are left out, and values that read ``********``, are those that are stored, provided that they go where
    they went before.

    Args:
        stored: What is stored; None for nothing.
        allowed: Where the token URL may lead.

    Raises:
        FieldRefused: It could not be right.
    """
    return _Reader(asked, stored, allowed).read()


class _Reader:
    def __init__(self, asked: GrantRequest, stored: Grant | None, allowed: Allowed) -> None:
        self._said = asked.said
        self._names = asked.words.names
        self._words = asked.words
        self._stored = stored
        self._allowed = allowed

    def read(self) -> Grant:
        said, names, only = self._said, self._names, self._words.client_credentials
        if said.grant_type != only:
            _refuse(f"Only {only} is supported", names.grant_type)
        if said.refresh_token is not None:
            _refuse("Client credentials have no refresh token", names.refresh_token)
        method = self._method()
        url = self._url()
        client = _text(said.client_id, MOST_TEXT, names.client_id)
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
            params=_extras(said.extra_params, before.params if before else {}, _OWN_PARAMS, names.extra_params),
            headers=self._headers(before),
            **{name: value for name, value in assertion.items() if name != "secret"},
            reach=self._allowed.reach,
            revision=secrets.token_hex(8),
        )

    def _method(self) -> str:
        methods = self._words.methods
        found = next((method for method, word in methods.items() if word == self._said.auth_method), None)
        if found is None:
            _refuse(f"It must be one of {', '.join(methods.values())}", self._names.auth_method)
        return found

    def _url(self) -> str:
        url = _text(self._said.token_url, 2_048, self._names.token_url)
        refused = self._allowed.refusal(url)
        if refused is not None:
            _refuse(refused, self._names.token_url)
        return url

    def _secret(self, method: str, before: Grant | None) -> str:
        if self._said.assertion is not None:
            _refuse(f"Only {self._words.methods[PRIVATE_KEY_JWT]} has these", self._names.assertion)
        if self._said.client_secret in (None, MASK) and before is not None:
            return before.secret
        if self._said.client_secret == MASK:
            _refuse(_NONE_STORED, self._names.client_secret)
        secret = _text(self._said.client_secret, MOST_TEXT, self._names.client_secret)
        if method == BASIC and not secret.isascii():
            _refuse("A client secret may only have visible ASCII characters", self._names.client_secret)
        return secret

    def _assertion(self, method: str, before: Grant | None) -> dict[str, Any]:
        """What an assertion is made of; nothing for other methods."""
        if method != PRIVATE_KEY_JWT:
            return {}
        said, names = self._said, self._names
        if said.client_secret is not None:
            _refuse(
                f"{self._words.methods[method]} has a private key in {names.assertion} instead", names.client_secret
            )
        if said.assertion is None and before is not None:
            return {
                "secret": before.secret,
                "key_id": before.key_id,
                "audience": before.audience,
                "assertion_s": before.assertion_s,
            }
        if not isinstance(said.assertion, dict):
            _refuse("An object is required", names.assertion)
        if said.algorithm != ALGORITHM:
            _refuse(f"It must be {ALGORITHM}", names.assertion, names.algorithm)
        seconds = DEFAULT_ASSERTION_S if said.assertion_s is None else said.assertion_s
        if isinstance(seconds, bool) or not isinstance(seconds, int):
            _refuse("A whole number is required", names.assertion, names.assertion_s)
        if not 10 <= seconds <= MOST_ASSERTION_S:
            _refuse(f"The number must be from 10 to {MOST_ASSERTION_S}", names.assertion, names.assertion_s)
        kept = before is not None and said.key in (None, MASK)
        return {
            "secret": before.secret if before is not None and kept else _key(said.key, names.assertion, names.key),
            "key_id": _optional(said.key_id, names.assertion, names.key_id),
            "audience": _optional(said.audience, names.assertion, names.audience),
            "assertion_s": seconds,
        }

    def _scopes(self) -> tuple[str, ...]:
        given, place = self._said.scopes, self._names.scopes
        if given is None:
            return ()
        if not isinstance(given, list) or len(given) > MOST_SCOPES:
            _refuse(f"A list of up to {MOST_SCOPES} scopes is required", place)
        for number, each in enumerate(given):
            if not isinstance(each, str) or len(each) > MOST_TEXT or _SCOPE.fullmatch(each) is None:
                _refuse("A scope has visible ASCII characters, but no space, quote or backslash", place, str(number))
        return tuple(given)

    def _headers(self, before: Grant | None) -> dict[str, str]:
        place = self._names.extra_headers
        headers = _extras(self._said.extra_headers, before.headers if before else {}, _OWN_HEADERS, place)
        if len({name.lower() for name in headers}) != len(headers):
            _refuse("A header is given twice", place)
        for name in headers:
            if _HEADER_NAME.fullmatch(name) is None:
                _refuse("A header's name has characters that may not be sent", place, name)
        return headers


def _extras(given: object, before: Mapping[str, str], own: frozenset[str], place: str) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
        _refuse("An object whose values are strings is required", place)
    if len(given) > MOST_EXTRAS:
        _refuse(f"At most {MOST_EXTRAS} are allowed", place)
    found = {}
    for name, value in given.items():
        if name.lower() in own:
            _refuse("The hub itself sets this", place, name)
        meant = before.get(name) if value == MASK else value
        if meant is None:
            _refuse(_NONE_STORED, place, name)
        for each in (name, meant):
            if len(each) > MOST_TEXT or _VISIBLE.fullmatch(each) is None:
                _refuse(f"Names and values have 1 to {MOST_TEXT} visible ASCII characters", place, name)
        found[name] = meant
    return found


def _text(given: object, most: int, place: str) -> str:
    if not isinstance(given, str) or not given:
        _refuse("A string is required", place)
    if len(given) > most:
        _refuse(f"The string may have at most {most} characters", place)
    if any(ord(each) < 0x20 or ord(each) == 0x7F or 0xD800 <= ord(each) < 0xE000 for each in given):
        _refuse("The string contains control characters", place)
    return given


def _key(given: object, *place: str) -> str:
    if not isinstance(given, str) or not given or len(given) > MOST_SECRET:
        _refuse(f"A string of up to {MOST_SECRET} characters is required", *place)
    try:
        check_rsa_key(base64.b64decode(given, validate=True))
    except (binascii.Error, ValueError) as error:
        problem = str(error) if isinstance(error, PemRefused) else "it is not base64"
        _refuse(f"The base64 of an RSA private key is required: {problem}", *place)
    return given


def _optional(given: object, *place: str) -> str:
    if given is None:
        return ""
    if not isinstance(given, str) or len(given) > MOST_TEXT or _VISIBLE.fullmatch(given) is None:
        _refuse(f"A string of 1 to {MOST_TEXT} visible ASCII characters is required", *place)
    return given


def _refuse(text: str, *place: str) -> Never:
    raise FieldRefused(text, *place)
