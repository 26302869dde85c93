"""How owners of subscribers ask for signatures: ``"signing": {"secret": "whsec_...", "grace_period": 86400}``,
``true`` or ``false``.
"""

from __future__ import annotations

from typing import Any

from pushhub.base.errors import Invalid
from pushhub.base.signing import DEFAULT_GRACE_S, KEEP, MAX_GRACE_S, SigningChange, parse_key
from pushhub.web.json import integer, text


def parse_signing(given: Any) -> SigningChange:
    """The change that a subscriber's field ``signing`` asks for; none when absent or null.

    ``true`` keeps the existing keys, because clients that write back what they read send it.

    Raises:
        Invalid: It is invalid; the error text never repeats the value.
    """
    if given is None:
        return KEEP
    if isinstance(given, bool):
        return SigningChange(on=given)
    if not isinstance(given, dict):
        raise Invalid("signing must be true, false, or an object with a secret")
    secret = text(given, "secret")
    if secret is None:
        raise Invalid("signing.secret is required")
    grace = integer(given, "grace_period", least=0, most=MAX_GRACE_S, zero_is_unset=False)
    return SigningChange(on=True, key=parse_key(secret), grace_s=DEFAULT_GRACE_S if grace is None else grace)
