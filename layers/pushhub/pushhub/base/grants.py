"""What an owner asks for who wants tokens to be obtained, and the words in which a dialect says it.

A request keeps the words that it came in: whoever reads it names a field in them and cannot name it otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantWords:
    """A dialect's words: the name of each field, and those of its values that are words, too.

    Attributes:
        grant_type: Which grant; there is one, :attr:`client_credentials`.
        auth_method: How the client authenticates; one of :attr:`methods`.
        client_id: The client.
        client_secret: Its secret.
        token_url: Where tokens are obtained.
        scopes: What is asked for.
        extra_params: What is sent along.
        extra_headers: What is sent along as headers.
        refresh_token: A token that is never wanted.
        assertion: The fields below, for a client that authenticates by a signature.
        key: Its private key.
        algorithm: How it signs.
        key_id: Its name for the key.
        assertion_s: Seconds for which a signature counts.
        audience: Whom it is for.
        client_credentials: The value of :attr:`grant_type`.
        methods: The value of :attr:`auth_method` for each of :data:`pushhub.base.oauth.METHODS`.
    """

    grant_type: str
    auth_method: str
    client_id: str
    client_secret: str
    token_url: str
    scopes: str
    extra_params: str
    extra_headers: str
    refresh_token: str
    assertion: str
    key: str
    algorithm: str
    key_id: str
    assertion_s: str
    audience: str
    client_credentials: str
    methods: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionRequest:
    """A signature that is asked for: what was sent as each field, whatever it is; None for nothing."""

    key: object = field(default=None, repr=False)
    algorithm: object = None
    key_id: object = None
    assertion_s: object = None
    audience: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRequest:
    """A grant that is asked for: what was sent as each field, whatever it is; None for nothing.

    Attributes:
        words: The words that it came in, and in which it is refused.
        assertion: An :class:`AssertionRequest` if it was an object.
        as_stored: Whether what is stored is to stay as it is; the fields count only if nothing is stored.
    """

    words: GrantWords
    grant_type: object = None
    auth_method: object = None
    client_id: object = None
    client_secret: object = field(default=None, repr=False)
    token_url: object = None
    scopes: object = None
    extra_params: object = field(default=None, repr=False)
    extra_headers: object = field(default=None, repr=False)
    refresh_token: object = field(default=None, repr=False)
    assertion: object = field(default=None, repr=False)
    as_stored: bool = False


_ASSERTION = tuple(AssertionRequest.__dataclass_fields__)
_GRANT = tuple(name for name in GrantRequest.__dataclass_fields__ if name not in {"words", "as_stored"})


def grant_request(words: GrantWords, given: Mapping[str, object], *, as_stored: bool = False) -> GrantRequest:
    """What was sent, in a dialect's words. Nothing is refused here, and what has no word is ignored."""
    asked = {name: given.get(getattr(words, name)) for name in _GRANT}
    inner = asked["assertion"]
    if isinstance(inner, Mapping):
        asked["assertion"] = AssertionRequest(**{name: inner.get(getattr(words, name)) for name in _ASSERTION})
    return GrantRequest(words=words, as_stored=as_stored, **asked)
