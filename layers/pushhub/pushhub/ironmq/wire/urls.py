"""URLs that a request gives, and that something is to be sent to."""

from __future__ import annotations

from pushhub.base.errors import Invalid


def check_callable(url: str, what: str = "url") -> None:
    """Refuse a URL that the sender could never call (:func:`pushhub.egress.guard.unusable`).

    Args:
        url: What would be called.
        what: What the request calls it. The URL is not repeated: it may contain a password or token.
    """
    from pushhub.egress.guard import unusable  # noqa: PLC0415 (few requests give a URL)

    reason = unusable(url)
    if reason is not None:
        raise Invalid(f"{what} cannot be used: {reason}")
