"""What owners ask for about the signatures of a subscriber."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pushhub.base.signing import DEFAULT_GRACE_S

if TYPE_CHECKING:
    from pushhub.base.signature_schemes import Scheme
    from pushhub.base.signing import SigningKey


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSignature:
    """A scheme that an owner asks for.

    Attributes:
        scheme: The scheme.
        secret: To sign with from now on; None keeps the stored one.
        grace_s: Seconds that the previous secret still signs; None if nothing was said.
    """

    scheme: Scheme
    secret: str | None = field(default=None, repr=False)
    grace_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningChange:
    """A requested change to how a subscriber's requests are signed.

    Attributes:
        on: Whether to sign; None leaves that unchanged.
        key: The key of Standard Webhooks from now on; None keeps the present ones.
        grace_s: Seconds that the previous key still signs.
        schemes: The schemes that sign; empty for Standard Webhooks alone, if there is a key, and else for those there
            are.
    """

    on: bool | None = None
    key: SigningKey | None = None
    grace_s: int = DEFAULT_GRACE_S
    schemes: tuple[WantedSignature, ...] = ()


KEEP = SigningChange()
"""Changes nothing."""
