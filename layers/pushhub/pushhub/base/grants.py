"""What an owner asks for who wants tokens to be obtained, and the words in which an API says it.

A request keeps the words that it came in: whoever reads it names a field in them, and cannot name it otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantFields(Generic[Value]):
    """Something for each field of a grant: its name in an API, or what was sent as it.

    Attributes:
        assertion: The object with the fields that follow it, for clients that authenticate by a signature.
    """

    grant_type: Value
    auth_method: Value
    client_id: Value
    client_secret: Value
    token_url: Value
    scopes: Value
    extra_params: Value
    extra_headers: Value
    refresh_token: Value
    assertion: Value
    key: Value
    algorithm: Value
    key_id: Value
    assertion_s: Value
    audience: Value


_NAMES = tuple(each.name for each in fields(GrantFields))
_ASSERTION = _NAMES.index("assertion")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantWords:
    """An API's words.

    Attributes:
        names: The name of each field.
        client_credentials: The only grant type.
        methods: The word for each of :data:`pushhub.base.oauth.METHODS`.
    """

    names: GrantFields[str]
    client_credentials: str
    methods: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRequest:
    """A grant that is asked for.

    Attributes:
        words: The words that it came in, and in which it is refused.
        said: What was sent as each field, whatever it is; None for nothing.
        as_stored: Whether what is stored is to stay as it is; what was sent counts only if nothing is stored.
    """

    words: GrantWords
    said: GrantFields[object] = field(repr=False)
    as_stored: bool = False


def grant_request(words: GrantWords, given: Mapping[str, object], *, as_stored: bool = False) -> GrantRequest:
    """What was sent, in an API's words. Nothing is refused here, and what has no word is ignored."""
    inner = given.get(words.names.assertion)
    places = (given, inner if isinstance(inner, Mapping) else {})
    said = {name: places[number > _ASSERTION].get(getattr(words.names, name)) for number, name in enumerate(_NAMES)}
    return GrantRequest(words=words, said=GrantFields(**said), as_stored=as_stored)
