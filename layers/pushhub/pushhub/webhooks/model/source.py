"""Sources: applications that take in what other senders post, each at a URL of its own."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pushhub.base import json_text
from pushhub.base.fields import APART, SPARSE, field_metadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.base.signature_schemes import Scheme

GRACE_MS: Final = 48 * 3_600_000
"""How long a URL still works after its token was rotated, milliseconds (Svix: 48 hours)."""

MOST_ROTATIONS: Final = 3
"""How often a token may be rotated within that time (Svix: three times)."""

TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{32}")
"""The form of a URL's token: 24 random bytes as base64."""


class TooManyTokens(Exception):
    """Too many old tokens still work.

    Args:
        next_end: When the next of them ends, epoch milliseconds.
    """

    def __init__(self, next_end: int) -> None:
        super().__init__()
        self.next_end = next_end


def token_digest(token: str) -> str:
    """SHA-256 of a token, hexadecimal: whoever guesses one is not worth asking the vault for."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class TokenDigest:
    """A token that opens a source's URL.

    Attributes:
        digest: See :func:`token_digest`.
        ends_at: From when on it opens nothing, epoch milliseconds; 0 for never.
    """

    digest: str
    ends_at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSecrets:
    """What a source keeps sealed.

    Attributes:
        token: Of its URL.
        secret: With which its sender signs; empty for none, so that whoever knows the URL may post.
        verify_token: What its sender shows when it asks about the URL; empty for none.
    """

    token: str = field(repr=False)
    secret: str = field(default="", repr=False)
    verify_token: str = field(default="", repr=False)

    def encode(self) -> bytes:
        """Ready to be sealed."""
        return json_text.write([self.token, self.secret, self.verify_token]).encode()

    @classmethod
    def decode(cls, content: bytes) -> SourceSecrets:
        """What :meth:`encode` wrote."""
        token, secret, verify_token = json_text.stored(content)
        return cls(token=token, secret=secret, verify_token=verify_token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What makes an application a source.

    Attributes:
        kind: Its sender's, one of :data:`pushhub.base.webhook_senders.SENDERS`.
        scheme: How its sender signs, where its owner says so; None for the kind's own way.
        verified: Whether it has a secret.
        tokens: Of its URL, the current one first.
        sealed: :class:`SourceSecrets`, encrypted (:class:`pushhub.base.ports.Vault`).
    """

    kind: str
    scheme: Scheme | None = field(default=None, metadata=field_metadata(stored=SPARSE))
    verified: bool
    tokens: tuple[TokenDigest, ...]
    sealed: bytes = field(repr=False, metadata=field_metadata(stored=APART))

    def opened_by(self, token: str, now: int) -> bool:
        """Whether a token opens its URL at a time (epoch milliseconds)."""
        digest = token_digest(token)
        right = [hmac.compare_digest(each.digest, digest) for each in self._live(now)]
        return any(right)

    def with_token(self, token: str, now: int) -> Source:
        """The source with another token; the previous one goes on for :data:`GRACE_MS`.

        Raises:
            TooManyTokens: It was rotated :data:`MOST_ROTATIONS` times within that time.
        """
        live = self._live(now)
        old = live[1:]
        if len(old) >= MOST_ROTATIONS:
            raise TooManyTokens(min(each.ends_at for each in old))
        ended = [replace(each, ends_at=now + GRACE_MS) for each in live[:1]]
        return replace(self, tokens=(TokenDigest(token_digest(token)), *ended, *old))

    def _live(self, now: int) -> Sequence[TokenDigest]:
        return [each for each in self.tokens if not each.ends_at or now < each.ends_at]
