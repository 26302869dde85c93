"""Asks endpoints for their consent to receive messages (CloudEvents' HTTP webhooks 1.0, section 4).

The request that registers an endpoint does not wait for a stranger: it posts a question, a message of the hub's own,
which push delivers to the endpoint like any other (docs/decisions/webhooks.md).
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from pushhub.base import json_text
from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Invalid
from pushhub.base.numerals import digits
from pushhub.base.ports import PushRequest
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.component import Component
from pushhub.engine.model.message import Message
from pushhub.engine.projects.projects import allowed_targets
from pushhub.engine.target import Outcome, PushOrder
from pushhub.webhooks.endpoints.credentials import opened
from pushhub.webhooks.model.endpoint import OpenQuestion
from pushhub.webhooks.model.internal_queues import CONSENT_QUEUE, CONSENT_UID, PROTOCOL, queue_of
from pushhub.webhooks.queues import ASKED
from pushhub.webhooks.wire.consent import consent_url

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Vault
    from pushhub.engine.acceptance.accept import Accept
    from pushhub.engine.ports import MessageSink, ProjectStore
    from pushhub.engine.projects.copies import ChangeNotes
    from pushhub.engine.security.credentials import Credentials
    from pushhub.engine.security.gate_sending import GateSending
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.ports import Endpoints

OPEN_MS = 86_400_000
"""How long a question is open, milliseconds: an endpoint may be out of order, and for a callback, a person may have to
find the URL in a log first.
"""

STORED_MS = 60_000
"""Within this time of its question, an endpoint has been stored, or it never will be; milliseconds."""

MOST_A_MINUTE = 60_000_000
"""A higher rate, in requests per minute, counts as no limit."""

MAX_PROBLEM = 300
"""Longest reason kept for a missing consent, in characters."""


def origin_of(base_url: str) -> str:
    """The DNS name by which a hub identifies itself."""
    return urlsplit(base_url).hostname or "localhost"


def digest_of(secret: str) -> str:
    """What is stored of the secret of a question."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


class Questions(Component):
    """Posts questions."""

    accept: Accept
    messages: MessageSink
    vault: Vault
    clock: Clock

    def ask(self, endpoint: Endpoint, *, callback: bool) -> OpenQuestion:
        """Post the question for an endpoint that is about to be stored, with the question that is returned.

        Args:
            endpoint: The endpoint; its URL is read again when it is asked.
            callback: Whether it may consent later, with a URL that it is given.
        """
        now = self.clock.now()
        secret = secrets.token_urlsafe(32)
        digest = digest_of(secret)
        question = {"app": endpoint.app_id, "endpoint": endpoint.endpoint_id, "digest": digest}
        if callback:
            sealed = self.vault.seal(endpoint.project, secret.encode())
            question["secret"] = base64.b64encode(sealed).decode()
        body = json_text.write(question, ascii_only=True).encode()

        def make(ids: tuple[str, ...]) -> list[Message]:
            return [
                Message(
                    project=endpoint.project,
                    queue=CONSENT_QUEUE,
                    queue_uid=CONSENT_UID,
                    message_id=each,
                    body=body,
                    body_size=len(body),
                    accepted_at=now,
                    due_at=now,
                    expires_at=now + OPEN_MS,
                    subscriber_ids=(ASKED,),
                )
                for each in ids
            ]

        self.accept.new(self.messages, 1, lambda ids: make(tuple(ids)))
        return OpenQuestion(digest=digest, until=now + OPEN_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentReply:
    """What an endpoint answered.

    Attributes:
        given: Whether it consents.
        rate: Requests per minute that it allows; None for any number.
        problem: Why it does not consent, for its owner; empty if it does, or may still do so by a callback.
    """

    given: bool
    rate: int | None = None
    problem: str = ""


def read_reply(answer: Answer, origin: str, *, callback: bool) -> ConsentReply:
    """Read the answer to a question.

    Args:
        callback: Whether the endpoint was given a URL to consent at later.
    """
    try:
        rate = allowed_rate(answer.headers.get("webhook-allowed-rate", "*"))
    except Invalid as error:
        return ConsentReply(given=False, problem=error.message)
    allowed = answer.headers.get("webhook-allowed-origin", "").strip()
    if callback and not allowed:
        # An endpoint that does not know this protocol may answer anything; its operator may find the URL in its log.
        return ConsentReply(given=False, rate=rate)
    if allowed != "*" and allowed.lower() != origin.lower():
        return ConsentReply(
            given=False, problem=f"The endpoint does not consent: WebHook-Allowed-Origin must be * or {origin}"
        )
    return ConsentReply(given=True, rate=rate)


class Changed(Protocol):
    """Sends an event about a change of an endpoint."""

    def __call__(self, event: str, endpoint: Endpoint, /) -> None:
        """Send an event with the endpoint after the change."""


class Consents(Component):
    """What endpoints answered to questions, stored with them."""

    endpoints: Endpoints
    notes: ChangeNotes
    changed: Changed  # Called with the endpoint when it has consented.
    clock: Clock

    def asked(self, project_id: str, app_id: str, endpoint_id: str, digest: str) -> Endpoint | None:
        """The endpoint, if a question is still open there."""
        endpoint = self.endpoints.endpoint(project_id, app_id, endpoint_id)
        return endpoint if endpoint is not None and self._is_open(endpoint, digest) else None

    def _is_open(self, endpoint: Endpoint, digest: str) -> bool:
        asked = endpoint.question
        return asked is not None and asked.digest == digest and asked.open_at(self.clock.now())

    def store(self, asked: Endpoint, digest: str, reply: ConsentReply, *, final: bool) -> None:
        """Store an answer with the endpoint, unless the question is no longer open there.

        Args:
            asked: The endpoint when it was asked.
            digest: Identifies the question.
            reply: Its answer.
            final: Whether an endpoint that does not consent has said so, and cannot do it later.
        """

        def once() -> Endpoint | None:
            before = self.asked(asked.project, asked.app_id, asked.endpoint_id, digest)
            if before is None or before.question is None:
                return None
            now = self.clock.now()
            question = replace(before.question, rate=reply.rate, problem=reply.problem[:MAX_PROBLEM])
            if reply.given:
                question = replace(question, answered=True)
            elif reply.problem and final:
                question = replace(question, until=now)
            if question == before.question:
                return None
            rate = reply.rate if reply.given else before.allowed_rate
            after = replace(before, question=question, allowed_rate=rate, updated_at=now)
            self.notes.note(after.project, queue_of(after.app_id))
            return self.endpoints.put_endpoint(after, before)

        after = until_saved(once, doing="storing an endpoint's consent")
        if after is not None and reply.given:
            self.changed("endpoint.updated", after)


class ConsentTarget(Component):
    """Implements :class:`pushhub.engine.target.Target` for questions: asks, and stores the answer with the endpoint."""

    dialect = PROTOCOL

    consents: Consents
    projects: ProjectStore
    sending: GateSending
    vault: Vault
    credentials: Credentials
    base_url: str
    clock: Clock

    def check(self, url: str) -> None:
        """Nothing to do: nobody registers this subscriber."""

    def reaches(self, url: str, *, project: str, queue: str) -> str | None:  # noqa: ARG002 (the same for all)
        """Unknown: it is different for each message."""
        return None

    def deliver(self, order: PushOrder) -> Outcome:
        """Ask an endpoint whether it consents. No answer is a failed attempt; any answer settles the question.

        Raises:
            Unavailable: The answer could not be stored, or nothing was sent because of a fault of ours.
        """
        question = json_text.stored(order.body)
        digest = question["digest"]
        endpoint = self.consents.asked(order.message.project, question["app"], question["endpoint"], digest)
        if endpoint is None:
            return self._nothing_to_ask(order)
        sent = self.sending.send(
            endpoint.project, endpoint.receiver, endpoint, self._request(order, endpoint, question.get("secret"))
        )
        answer = sent.answer
        if answer.error_class:
            problem = f"The endpoint could not be asked for its consent: {answer.message}"
            self.consents.store(endpoint, digest, ConsentReply(given=False, problem=problem), final=False)
            return Outcome(answer=answer, verdict=Verdict.FAILED, asked=sent.asked, reached=sent.reached)
        reply = read_reply(answer, origin_of(self.base_url), callback="secret" in question)
        self.consents.store(endpoint, digest, reply, final=True)
        return Outcome(answer=answer, verdict=Verdict.DELIVERED)

    def _nothing_to_ask(self, order: PushOrder) -> Outcome:
        """The outcome for an endpoint that is not waiting for this question, or not yet: it is stored after the
        question is posted.
        """
        now = self.clock.now()
        early = now - order.message.accepted_at < STORED_MS
        answer = Answer(
            status_code=0 if early else 200,
            message="No endpoint waits for this question",
            error_class="connect" if early else "",
            started_at=now,
            finished_at=now,
        )
        return Outcome(answer=answer, verdict=Verdict.FAILED if early else Verdict.DELIVERED)

    def _request(self, order: PushOrder, endpoint: Endpoint, sealed: str | None) -> PushRequest:
        headers = {"WebHook-Request-Origin": origin_of(self.base_url)}
        if endpoint.fields.throttle_rate is not None:
            headers["WebHook-Request-Rate"] = str(endpoint.fields.throttle_rate * 60)
        if sealed is not None:
            secret = self.vault.open(endpoint.project, base64.b64decode(sealed)).decode()
            headers["WebHook-Request-Callback"] = consent_url(self.base_url, endpoint, secret)
        return PushRequest(
            method="OPTIONS",
            url=opened(endpoint, self.credentials).fields.url,
            body=b"",
            headers=headers,
            timeout_s=order.subscriber.timeout_s,
            answer_limit=0,
            allowed_targets=allowed_targets(self.projects, endpoint.project, endpoint.reach),
        )


def allowed_rate(text: str) -> int | None:
    """Requests per minute in a ``WebHook-Allowed-Rate``; None for any number.

    Raises:
        Invalid: It is neither ``*`` nor a positive whole number.
    """
    text = text.strip()
    if text == "*":
        return None
    rate = digits(text, 100)
    if not rate:
        raise Invalid("The endpoint's WebHook-Allowed-Rate is neither * nor a positive whole number")
    return rate if rate < MOST_A_MINUTE else None
