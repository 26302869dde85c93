"""OAuth 2.0 client credentials (RFC 6749, 4.4): what a client sends to a token server, and what its answers mean. Pure.

Nothing that a token server says is repeated, except the error codes of the standard: a description may echo the secret.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlencode

from pushhub.base.http_dates import http_date_ms
from pushhub.base.json_text import NotJson, read, stored, write
from pushhub.base.numerals import fraction

if TYPE_CHECKING:
    from pushhub.base.verdict import Answer

BASIC, POST, PRIVATE_KEY_JWT = "clientSecretBasic", "clientSecretPost", "clientSecretJwt"
METHODS = (BASIC, POST, PRIVATE_KEY_JWT)
"""How a client authenticates, as it is stored; the last is ``private_key_jwt`` of RFC 7523."""

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
DEFAULT_ASSERTION_S = 300

ANSWER_LIMIT = 65_536
"""Most bytes of an answer that are read."""

UNSAID_LIFETIME_S = 300
"""Lifetime of a token whose answer names none."""

MOST_LIFETIME_S = 3_600
"""A token is asked for anew after this time at the latest."""

MOST_WAIT_S = 3_600
"""Longest wait that a token server can ask for."""

MOST_TOKEN = 16_384
"""Longest token, in characters."""

_NOT_ASKED = frozenset({"refused_by_guard", "invalid_url", "invalid_header"})
"""Classes of errors with which a token server was not asked, and will not be until something is changed."""

_TOKEN = re.compile(r"[\x21-\x7e]+")
_CODES = frozenset(
    {
        *("invalid_request", "invalid_client", "invalid_grant", "unauthorized_client"),
        *("unsupported_grant_type", "invalid_scope", "invalid_target", "access_denied"),
        *("server_error", "temporarily_unavailable", "slow_down"),
    }
)


class TokenRefused(Exception):
    """A token server gave no token.

    Args:
        reason: Why, for the endpoint's owner; holds nothing that the server wrote but a code of the standard.
        wait_ms: How long it asks to wait, milliseconds.
        is_outage: Whether it could not say: nothing is wrong with what it was sent, as far as anybody knows.
    """

    def __init__(self, reason: str, wait_ms: int = 0, *, is_outage: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait_ms = wait_ms
        self.is_outage = is_outage


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """How a token is obtained.

    Attributes:
        token_url: Where.
        method: One of :data:`METHODS`.
        client_id: The client.
        secret: Its secret; its private key in PEM or DER, base64, for :data:`PRIVATE_KEY_JWT`.
        scopes: What it asks for.
        params: Further parameters of the request, such as ``audience``.
        headers: Further headers of the request.
        key_id: ``kid`` of an assertion; empty for none.
        audience: ``aud`` of an assertion; empty for the token URL.
        assertion_s: Seconds for which an assertion is valid.
        reach: How far the caller reached who set the token URL; see :class:`pushhub.engine.model.reach.Reach`.
        revision: Random text that differs for each change.
    """

    token_url: str
    method: str
    client_id: str
    secret: str = field(repr=False)
    scopes: tuple[str, ...] = ()
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    key_id: str = ""
    audience: str = ""
    assertion_s: int = DEFAULT_ASSERTION_S
    reach: str = ""
    revision: str = ""

    def encode(self) -> bytes:
        """As bytes, ready to be sealed."""
        return write({name: getattr(self, name) for name in _FIELDS}).encode()

    @classmethod
    def decode(cls, content: bytes) -> Grant:
        """What :meth:`encode` wrote."""
        fields = stored(content)
        return cls(**{**fields, "scopes": tuple(fields["scopes"])})


_FIELDS = tuple(Grant.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Token:
    """A token.

    Attributes:
        value: What is sent.
        usable_until: Epoch milliseconds from which another one is used.
    """

    value: str = field(repr=False)
    usable_until: int


def token_request(grant: Grant, now: int) -> tuple[dict[str, str], bytes]:
    """The headers and the body of a request for a token.

    Args:
        grant: How it is obtained.
        now: Epoch milliseconds.
    """
    form = {"grant_type": "client_credentials"}
    if grant.scopes:
        form["scope"] = " ".join(grant.scopes)
    form |= grant.params
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/x-www-form-urlencoded",
        "User-Agent": "Pushhub/1.0",
        **grant.headers,
    }
    if grant.method == BASIC:
        # RFC 6749, 2.3.1 and appendix B: each half is form-encoded first.
        pair = f"{quote_plus(grant.client_id)}:{quote_plus(grant.secret)}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif grant.method == POST:
        form |= {"client_id": grant.client_id, "client_secret": grant.secret}
    else:
        form |= {"client_id": grant.client_id, "client_assertion_type": ASSERTION_TYPE}
        form["client_assertion"] = _assertion(grant, now // 1000)
    return headers, urlencode(form).encode()


def _assertion(grant: Grant, now_s: int) -> str:
    """A new assertion, signed with the client's private key: its ``jti`` may be used once."""
    import jwt  # noqa: PLC0415 (few clients have a key)

    from pushhub.base.pem import load_rsa_key  # noqa: PLC0415 (few clients have a key)

    key, head = load_rsa_key(base64.b64decode(grant.secret)), {"kid": grant.key_id} if grant.key_id else {}
    claims = {
        "iss": grant.client_id,
        "sub": grant.client_id,
        "aud": grant.audience or grant.token_url,
        "iat": now_s,
        "exp": now_s + grant.assertion_s,
        "jti": secrets.token_urlsafe(24),
    }
    return jwt.encode(claims, key, algorithm="RS256", headers=head)


def read_token(answer: Answer) -> Token:
    """The token in a token server's answer.

    Raises:
        TokenRefused: There is none.
    """
    if answer.error_class:
        is_outage = answer.error_class not in _NOT_ASKED
        raise TokenRefused(f"the token server gave no answer ({answer.error_class})", is_outage=is_outage)
    said = _object(answer.body)
    if not 200 <= answer.status_code < 300:
        code = said.get("error")
        known = isinstance(code, str) and code in _CODES
        reason = str(code) if known else f"the token server answered {answer.status_code}"
        is_outage = answer.status_code >= 500 or answer.status_code == 429
        raise TokenRefused(reason, wait_ms=_retry_after_ms(answer), is_outage=is_outage)
    value, kind = said.get("access_token"), said.get("token_type", "bearer")
    if not isinstance(value, str) or len(value) > MOST_TOKEN or _TOKEN.fullmatch(value) is None:
        raise TokenRefused("the token server's answer has no access_token that can be sent")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise TokenRefused("the token server's answer has another token_type than Bearer")
    lifetime_s = _lifetime_s(said.get("expires_in"))
    margin_s = min(max(30.0, lifetime_s / 10), lifetime_s / 2)
    usable_s = min(lifetime_s - margin_s, MOST_LIFETIME_S)
    return Token(value, answer.finished_at + max(1_000, round(usable_s * 1000)))


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        said = read(body, last_wins=True)
    except NotJson:
        return {}
    return said if isinstance(said, dict) else {}


def _lifetime_s(said: object) -> float:
    """The lifetime that an answer names: a number, or (as some servers write it) one in a string."""
    if isinstance(said, str) and re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", said):
        said = fraction(said)
    if isinstance(said, bool) or not isinstance(said, int | float):
        return UNSAID_LIFETIME_S
    return float(min(max(said, 0), 10**9))


def _retry_after_ms(answer: Answer) -> int:
    said = answer.headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", said):
        seconds = fraction(said)
    else:
        date = http_date_ms(said)
        seconds = 0 if date is None else (date - answer.finished_at) / 1000
    return round(min(max(seconds, 0), MOST_WAIT_S) * 1000)
