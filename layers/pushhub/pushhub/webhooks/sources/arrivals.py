"""What comes to the URLs of sources: verified, answered where it only asks about the URL, taken in once.

These URLs are public. Whoever does not know one is told nothing, and costs one read. Nothing is stored of what is not
verified but a count, and the last caller's address.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

from pushhub.base import json_text
from pushhub.base.cloud_events import MalformedBatch
from pushhub.base.errors import Overloaded, Unavailable
from pushhub.base.ids import is_project_id
from pushhub.base.ports import PushRequest
from pushhub.base.signature_check import Doubt, SignedPost, Unverified, verify
from pushhub.base.webhook_senders import (
    GENERIC,
    SENDERS,
    Challenge,
    Event,
    batch_of,
    event_of,
    passed_on,
    sns_confirmation,
)
from pushhub.engine.component import Component
from pushhub.engine.projects.suspension import refuse_suspended
from pushhub.webhooks.model.arrival import MOST_OF_AN_AGENT, Turned, TurnedAway, Why
from pushhub.webhooks.model.ids import IdPrefix, is_id
from pushhub.webhooks.model.message import DAY_MS, MessageFields
from pushhub.webhooks.model.refusals import Refused, not_found
from pushhub.webhooks.model.source import TOKEN, Source, SourceSecrets
from pushhub.webhooks.wire.hops import hops_of
from pushhub.webhooks.wire.message import NewWebhook

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Sender, Telemetry, Vault
    from pushhub.base.webhook_senders import WebhookSender
    from pushhub.engine.model.trace import Trace
    from pushhub.engine.ports import ProjectStore
    from pushhub.webhooks.messages.posting import WebhooksPosting
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.ports import ReadApplications

KEPT_MS = 90 * DAY_MS
"""How long what came in is kept, milliseconds: the default for payloads."""

SHOWN_DAYS = 30
"""Of how many days it is shown what was turned away."""

CONFIRM_S = 5
"""Seconds that Amazon SNS has to answer; a sender waits meanwhile."""

OCTETS = "application/octet-stream"

_MOST_OF_A_CHALLENGE = 4_096
_PRINTABLE = re.compile(r"[\x20-\x7e]+")
_CONTENT_TYPE = re.compile(r"[!-~]{1,64}/[!-~]{1,64}(?: ?;[ -~]{1,128})?")


class ArrivalCounts(Protocol):
    """Counts what was turned away. May raise ``Unavailable``."""

    def count(self, project_id: str, source_id: str, day: int, turned: Turned) -> None:
        """Count one more on a day (days since 1970, UTC), and remember it as the last."""

    def counts(self, project_id: str, source_id: str, since: int) -> Sequence[TurnedAway]:
        """The days from one on on which anything was turned away, newest first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceUrl:
    """What is in a source's URL; nothing of it has to be right."""

    project: str
    source: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """How a request was taken.

    Attributes:
        message_ids: Of the messages that it became, in order; none for what was there before.
        answer: What its sender wants to read; empty for nothing.
        content_type: Of the answer.
    """

    message_ids: tuple[str, ...] = ()
    answer: str = ""
    content_type: str = "text/plain"


class Arrivals(Component):
    """Takes in what senders post to sources."""

    applications: ReadApplications
    projects: ProjectStore
    vault: Callable[[], Vault]  # Opens what a source keeps sealed; made when something comes.
    posting: WebhooksPosting
    counts: ArrivalCounts
    sender: Callable[[], Sender]  # Confirms subscriptions of Amazon SNS; made for the first.
    telemetry: Telemetry
    clock: Clock

    def take(self, url: SourceUrl, request: SignedPost, *, address: str = "", trace: Trace | None = None) -> Arrived:
        """Take in a request.

        Args:
            address: Whence it came.

        Raises:
            NotFound: No source has such a URL.
            ProjectSuspended: Its project takes nothing.
            Refused: It is not verified, or no batch though it says so (400), or goes round in circles (508).
            QuotaExceeded: The project's senders post more than it may.
            Overloaded: A subscription of Amazon SNS cannot be confirmed now.
            Unavailable: It may or may not have been taken; its sender posts again.
        """
        application, source = self._opened_by(url)
        refuse_suspended(self.projects, application.project)
        sender = SENDERS[source.kind]
        secrets = SourceSecrets.decode(self.vault().open(application.project, source.sealed))
        agent = request.headers.get("user-agent", "")[:MOST_OF_AN_AGENT]

        def turned(why: str) -> None:
            self._count(application, Turned(why=why, at=request.at, address=address, agent=agent))

        try:
            _verify(sender, source, secrets.secret, request)
            batch = batch_of(sender, request)
            event = event_of(sender, request)
            confirmation = sns_confirmation(request, event) if sender.name == GENERIC else None
        except Unverified as error:
            turned(error.doubt)
            raise Refused(400, error.doubt, error.message) from error
        except MalformedBatch as error:
            raise Refused(400, "malformed", str(error)) from error
        try:
            hops = hops_of(request.headers)
        except Refused:
            turned(Why.LOOP)
            raise
        if confirmation is not None:
            return self._confirm(confirmation)
        asked = _answered(sender, secrets.secret, event)
        if asked is not None:
            return asked
        events = [(event, request)] if batch is None else batch
        news = [_new(sender, each, part, hops=hops, trace=trace) for each, part in events]
        posted = self.posting.take_in(application, news)
        for each in posted:
            if each is None:
                turned(Why.DUPLICATE)
        return Arrived(message_ids=tuple(each.message.message_id for each in posted if each is not None))

    def asked(self, url: SourceUrl, query: dict[str, str]) -> Arrived:
        """Answer a sender that asks about the URL by a GET, as Meta does.

        Raises:
            NotFound: No source has such a URL, or its sender does not ask like this.
            Refused: It does not show what the owner has told it (400).
        """
        application, source = self._opened_by(url)
        challenge = query.get("hub.challenge", "")
        asks = query.get("hub.mode") == "subscribe" and _may_be_sent_back(challenge)
        if SENDERS[source.kind].challenge is not Challenge.META or not asks:
            raise not_found()
        secrets = SourceSecrets.decode(self.vault().open(application.project, source.sealed))
        shown = query.get("hub.verify_token", "").encode(errors="replace")
        if not secrets.verify_token or not hmac.compare_digest(secrets.verify_token.encode(), shown):
            raise Refused(400, Doubt.FORGED, "This is not the token that the source's owner has set")
        return Arrived(answer=challenge)

    def _confirm(self, url: str) -> Arrived:
        """Confirm a subscription of Amazon SNS.

        Raises:
            Overloaded: SNS does not answer; it asks again.
        """
        answer = self.sender().send(
            PushRequest(method="GET", url=url, body=b"", timeout_s=CONFIRM_S, answer_limit=1_024)
        )
        if answer.error_class or not 200 <= answer.status_code < 300:
            raise Overloaded
        return Arrived()

    def exists(self, url: SourceUrl) -> None:
        """Check that there is such a URL.

        Raises:
            NotFound: There is none.
        """
        self._opened_by(url)

    def turned_away(self, application: Application) -> Sequence[TurnedAway]:
        """What a source has turned away lately, newest day first."""
        today = self.clock.now() // DAY_MS
        return self.counts.counts(application.project, application.app_id, today - SHOWN_DAYS + 1)

    def _opened_by(self, url: SourceUrl) -> tuple[Application, Source]:
        named = is_project_id(url.project) and is_id(IdPrefix.SOURCE, url.source) and TOKEN.fullmatch(url.token)
        found = self.applications.application(url.project, url.source) if named else None
        if found is None or found.source is None or not found.source.opened_by(url.token, self.clock.now()):
            raise not_found()
        return found, found.source

    def _count(self, application: Application, turned: Turned) -> None:
        """Count what was turned away; its sender's answer does not depend on that."""
        try:
            self.counts.count(application.project, application.app_id, turned.at // DAY_MS, turned)
        except Unavailable as error:
            self.telemetry.count("CallsFailed")
            self.telemetry.event("turned_away_uncounted", error=str(error), source=application.app_id)


def _verify(sender: WebhookSender, source: Source, secret: str, request: SignedPost) -> None:
    if not source.verified:
        return
    if source.scheme is not None:
        verify(source.scheme, [secret], request)
    else:
        sender.verify(secret, request)


def _answered(sender: WebhookSender, secret: str, event: Event) -> Arrived | None:
    """The answer to a request that only asks about the URL; None for any other."""
    value = event.value if isinstance(event.value, dict) else {}
    if sender.challenge is Challenge.SLACK and value.get("type") == "url_verification":
        challenge = value.get("challenge")
        if isinstance(challenge, str) and _may_be_sent_back(challenge):
            return Arrived(answer=challenge)
    if sender.challenge is Challenge.ZOOM and value.get("event") == "endpoint.url_validation":
        payload = value.get("payload")
        token = payload.get("plainToken") if isinstance(payload, dict) else None
        if isinstance(token, str) and _may_be_sent_back(token):
            hashed = hmac.new(secret.encode(), token.encode(), sha256).hexdigest()
            answer = json_text.write({"plainToken": token, "encryptedToken": hashed})
            return Arrived(answer=answer, content_type="application/json")
    return None


def _may_be_sent_back(text: str) -> bool:
    return len(text) <= _MOST_OF_A_CHALLENGE and _PRINTABLE.fullmatch(text) is not None


def _new(sender: WebhookSender, event: Event, request: SignedPost, *, hops: int, trace: Trace | None) -> NewWebhook:
    """The message that a request becomes: its bytes as they are."""
    content_type = request.headers.get("content-type", "")
    return NewWebhook(
        fields=MessageFields(
            event_type=event.event_type,
            event_id=event.event_id,
            content_type=content_type if _CONTENT_TYPE.fullmatch(content_type) else OCTETS,
            passed=passed_on(sender, request.headers),
        ),
        payload=event.value if isinstance(event.value, dict) else {},
        payload_text="",
        body=request.body,
        retention_ms=KEPT_MS,
        application=None,
        trace=trace,
        hops=hops,
    )
