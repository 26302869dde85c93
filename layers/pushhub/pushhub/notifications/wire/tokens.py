"""Consumers' tokens: JWTs that name a topic and a subscriber, signed with a key used only for that tenant's tokens.

Shape and traps (Notifications 2.0, its Java, Python and Go clients): booleans are the string ``"true"`` or left out;
``topic`` is ``<tenant>/relnotif/<subscription>``; clients decode the payload with the *standard* base64 alphabet, so it
must not contain ``-`` or ``_``, which means that its text must be ASCII without ``>``, ``?`` and ``~``; there is no
padding.

PyJWT makes and checks them. It is imported with the first token: the functions that do so have other work, too.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.base.errors import Unauthorized
from pushhub.notifications.model.topic import Topic

if TYPE_CHECKING:
    from jwt.types import Options

_ALGORITHM = "HS256"
_MAX_CHARACTERS = 4096
_SPELLING = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
_TOPIC_PARTS = 3
_RELIABLE = "relnotif"
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in ">?~\x7f"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The claims of a token.

    Attributes:
        topic: The topic that may be consumed.
        subscriber: The subscriber to consume as.
        shared: Whether several consumers may be connected.
        issued_at: Epoch seconds.
        expires_at: Epoch seconds; connecting is refused from then on, an open connection stays.
        issued_by: Hash of the project's token it was issued with. When that one is revoked, this token ends too.
        token_id: The token's own id.
    """

    topic: Topic
    subscriber: str
    shared: bool = False
    issued_at: int
    expires_at: int
    issued_by: str = ""
    token_id: str = ""

    def as_fields(self) -> dict[str, str | int]:
        """The JSON of the claims that Notifications 2.0 defines, except the token's own id."""
        topic = self.topic
        fields: dict[str, str | int] = {
            "sub": self.subscriber,
            "webSocketOnly": "true",
            "topic": f"{topic.project}/{_RELIABLE}/{topic.name}",
        }
        if self.shared:
            fields["shared"] = "true"
        if topic.non_persistent:
            fields["volatile"] = "true"
        return fields | {"iat": self.issued_at, "exp": self.expires_at}


class Tokens:
    """Makes and checks tokens.

    Args:
        secrets: Returns the secrets of this deployment: the first signs, all are valid for verification.
        signing: The same when a token is to be signed; may make the first. ``secrets`` if left out.
    """

    def __init__(
        self, secrets: Callable[[], Sequence[bytes]], signing: Callable[[], Sequence[bytes]] | None = None
    ) -> None:
        self._secrets = secrets
        self._signing = signing or secrets

    def sign(self, claims: Claims) -> str:
        """A token."""
        import jwt  # noqa: PLC0415 (see the module)

        fields = claims.as_fields() | {"issuedBy": claims.issued_by, "jti": claims.token_id}
        text = json_text.write(fields, ascii_only=True).translate(_ESCAPES)
        key = _key(self._signing()[0], claims.topic.project)
        # The clients' own tokens have no ``typ``.
        return jwt.PyJWS().encode(text.encode(), key, _ALGORITHM, headers={"typ": None})

    def check(self, token: str, now_s: float) -> Claims:
        """The claims of a token.

        Args:
            now_s: Epoch seconds.

        Raises:
            Unauthorized: Malformed, unsigned, signed with another algorithm or key, or expired.
        """
        # Stricter than the library, which forgives padding: a token has one spelling.
        if len(token) > _MAX_CHARACTERS or _SPELLING.fullmatch(token) is None:
            raise Unauthorized("Invalid token")
        # Whose key it must be signed with is in the token itself: it is read first, and believed afterwards.
        project = _claims(_fields(token, None)).topic.project
        for secret in self._secrets():
            with suppress(_NotVerified):
                claims = _claims(_fields(token, _key(secret, project)))
                break
        else:
            raise Unauthorized("Invalid token")
        if now_s >= claims.expires_at:
            raise Unauthorized("Token has expired")
        return claims


class _NotVerified(Unauthorized):
    """The token is not signed with this key."""


def _key(secret: bytes, project: str) -> bytes:
    # Each tenant has its own key, so a token of one tenant can never be turned into a token of another.
    return hmac.digest(secret, b"notification2/" + project.encode("utf-8", "surrogatepass"), hashlib.sha256)


def _fields(token: str, key: bytes | None) -> dict[str, Any]:
    """The claims in a token.

    Args:
        key: What it must be signed with; None if they are not to be believed.
    """
    import jwt  # noqa: PLC0415 (see the module)

    # One algorithm, whatever the header says. Times are compared with the hub's clock, by the caller.
    unchecked: Options = {"verify_exp": False, "verify_iat": False, "verify_nbf": False, "verify_aud": False}
    try:
        if key is None:
            return jwt.decode(token, options={**unchecked, "verify_signature": False})
        return jwt.decode(token, key, [_ALGORITHM], options=unchecked)
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise _NotVerified("Invalid token") from error


def _claims(fields: dict[str, Any]) -> Claims:
    names = [fields.get(name) for name in ("sub", "topic", "issuedBy", "jti")]
    times = [fields.get(name) for name in ("iat", "exp")]
    if not all(isinstance(each, str) for each in names) or not all(type(each) is int for each in times):
        raise Unauthorized("Invalid token")
    parts = str(fields["topic"]).split("/")
    if len(parts) != _TOPIC_PARTS or parts[1] != _RELIABLE:
        raise Unauthorized("Invalid token")
    return Claims(
        topic=Topic(project=parts[0], name=parts[2], non_persistent=fields.get("volatile") == "true"),
        subscriber=fields["sub"],
        shared=fields.get("shared") == "true",
        issued_at=fields["iat"],
        expires_at=fields["exp"],
        issued_by=fields["issuedBy"],
        token_id=fields["jti"],
    )
