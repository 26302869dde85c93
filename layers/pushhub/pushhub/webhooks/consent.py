"""Asks endpoints for their consent to receive messages (CloudEvents' HTTP webhooks 1.0, section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pushhub.base.errors import Invalid
from pushhub.base.ports import PushRequest, Sender
from pushhub.engine.projects import allowed_targets

if TYPE_CHECKING:
    from pushhub.engine.ports import ProjectStore

TIMEOUT_S = 10
"""Seconds that an endpoint has to answer; the caller who registers it waits for that."""

MOST_A_MINUTE = 60_000_000
"""A higher rate, in requests per minute, counts as no limit."""


def origin_of(base_url: str) -> str:
    """The DNS name by which a hub identifies itself."""
    return urlsplit(base_url).hostname or "localhost"


@dataclass(frozen=True, slots=True)
class Consent:
    """What an endpoint answered.

    Attributes:
        given: Whether it consents; if not, it may still do so by a callback.
        rate: Requests per minute that it allows; None for any number.
    """

    given: bool
    rate: int | None


class Consents:
    """Asks endpoints for their consent.

    Args:
        sender: Makes the request.
        projects: For the project's allowed targets.
        base_url: Public base URL of this hub.
    """

    def __init__(self, *, sender: Sender, projects: ProjectStore, base_url: str) -> None:
        self._sender = sender
        self._projects = projects
        self._origin = origin_of(base_url)

    def ask(self, project_id: str, url: str, rate_per_s: int | None, callback: str = "") -> Consent:
        """Ask for consent, and for a rate if one is wanted.

        Args:
            project_id: Owner of the endpoint.
            url: The endpoint's URL, ``http`` or ``https``.
            rate_per_s: Maximum messages per second to send to it; None leaves it to the endpoint.
            callback: URL where it may consent later; empty for none.

        Raises:
            Invalid: It does not consent, or there was no answer; the message is written for its owner.
        """
        wanted = {} if rate_per_s is None else {"WebHook-Request-Rate": str(rate_per_s * 60)}
        if callback:
            wanted["WebHook-Request-Callback"] = callback
        answer = self._sender.send(
            PushRequest(
                method="OPTIONS",
                url=url,
                body=b"",
                headers={"WebHook-Request-Origin": self._origin, **wanted},
                timeout_s=TIMEOUT_S,
                answer_limit=0,
                allowed_targets=allowed_targets(self._projects, project_id),
            )
        )
        if answer.error_class:
            raise Invalid(f"The endpoint could not be asked for its consent: {answer.message}")
        rate = allowed_rate(answer.headers.get("webhook-allowed-rate", "*"))
        allowed = answer.headers.get("webhook-allowed-origin", "").strip()
        if callback and not allowed:
            # An endpoint that does not know this protocol may answer anything; its operator may find the URL in its
            # log.
            return Consent(given=False, rate=rate)
        if allowed != "*" and allowed.lower() != self._origin.lower():
            raise Invalid(f"The endpoint does not consent: WebHook-Allowed-Origin must be * or {self._origin}")
        return Consent(given=True, rate=rate)


def allowed_rate(text: str) -> int | None:
    """Requests per minute in a ``WebHook-Allowed-Rate``; None for any number.

    Raises:
        Invalid: It is neither ``*`` nor a positive whole number.
    """
    text = text.strip()
    if text == "*":
        return None
    if not (text.isascii() and text.isdecimal() and text.strip("0") and len(text) <= 100):
        raise Invalid("The endpoint's WebHook-Allowed-Rate is neither * nor a positive whole number")
    rate = int(text)
    return rate if rate < MOST_A_MINUTE else None
