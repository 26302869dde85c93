"""How owners of subscribers ask for signatures: ``"signing": {"secret": "whsec_...", "grace_period": 86400}``,
``true`` or ``false``.
"""

from __future__ import annotations

from typing import Any

from pushhub.base.errors import FieldRefused, Invalid
from pushhub.base.signing import DEFAULT_GRACE_S, MAX_GRACE_S, parse_key
from pushhub.base.signing_change import KEEP, SigningChange, WantedSignature
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
    schemes = _schemes(given.get("signatures"))
    secret = text(given, "secret")
    if secret is None and not schemes:
        raise Invalid("signing.secret is required")
    if secret is not None and schemes and not any(each.scheme.standard for each in schemes):
        raise Invalid("signing.secret is Standard Webhooks' alone: each of the signatures has its own")
    grace = integer(given, "grace_period", least=0, most=MAX_GRACE_S, zero_is_unset=False)
    return SigningChange(
        on=True,
        key=None if secret is None else parse_key(secret),
        grace_s=DEFAULT_GRACE_S if grace is None else grace,
        schemes=schemes,
    )


def _schemes(given: Any) -> tuple[WantedSignature, ...]:
    if given is None:
        return ()
    from pushhub.web.signatures import read_signatures  # noqa: PLC0415 (few ask for it)

    try:
        schemes = read_signatures(given)
    except FieldRefused as refused:
        raise refused.within("signing", "signatures") from refused
    added = next((number for number, each in enumerate(schemes) if each.scheme.query), None)
    if added is not None:
        raise Invalid(f"signing.signatures.{added}.preset: it adds to the URL, which only endpoints of webhooks allow")
    return schemes
