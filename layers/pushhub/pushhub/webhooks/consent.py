"""Asking an endpoint whether it wants to be sent anything (CloudEvents' HTTP webhooks 1.0, section 4)."""

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
"""Seconds that an endpoint has for its answer; whoever registers it waits for that."""

MOST_A_MINUTE = 60_000_000
"""More requests a minute than this are no limit."""


def origin_of(base_url: str) -> str:
    """The DNS name that a hub calls itself by."""
    return urlsplit(base_url).hostname or "localhost"


@dataclass(frozen=True, slots=True)
class Consent:
    """What an endpoint answered.

    Attributes:
        given: Whether it consents; if not, it may do so by a callback.
        rate: Requests a minute that it allows; None for any number.
    """

    given: bool
    rate: int | None


class Consents:
    """Asks.

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
            url: The endpoint's, ``http`` or ``https``.
            rate_per_s: Messages a second that it is to get at most; None leaves it to the endpoint.
            callback: Where it may consent later; empty for nowhere.

        Raises:
            Invalid: It does not consent, in words for its owner; or there was no answer.
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
            # Whoever knows nothing of this answers anything; who runs it may find the URL in its log.
            return Consent(given=False, rate=rate)
        if allowed != "*" and allowed.lower() != self._origin.lower():
            raise Invalid(f"The endpoint does not consent: WebHook-Allowed-Origin must be * or {self._origin}")
        return Consent(given=True, rate=rate)


def allowed_rate(text: str) -> int | None:
    """Requests a minute of a ``WebHook-Allowed-Rate``; None for any number.

    Raises:
        Invalid: It is neither ``*`` nor a positive number.
    """
    text = text.strip()
    if text == "*":
        return None
    if not (text.isascii() and text.isdecimal() and text.strip("0") and len(text) <= 100):
        raise Invalid("The endpoint's WebHook-Allowed-Rate is neither * nor a positive whole number")
    rate = int(text)
    return rate if rate < MOST_A_MINUTE else None
