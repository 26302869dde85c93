"""Delivers to endpoints: a signed POST, logged with its answer."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.credentials import masked_url, user_of, without_credentials
from pushhub.base.errors import Unavailable
from pushhub.base.ports import Clock, PushRequest, Telemetry
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.attempts.traces import passed_on
from pushhub.engine.component import Component
from pushhub.engine.model.answer_rules import NOTHING_ASKED
from pushhub.engine.model.queue import Subscriber
from pushhub.engine.projects.projects import allowed_targets
from pushhub.engine.target import OUT_OF_REACH, Outcome, PushOrder, Targets
from pushhub.webhooks.endpoints.credentials import opened
from pushhub.webhooks.model.attempt import KEPT_BYTES, LoggedAttempt
from pushhub.webhooks.model.endpoint import is_sensitive
from pushhub.webhooks.model.internal_queues import PROTOCOL
from pushhub.webhooks.model.message import LISTED_MS, MessageFields
from pushhub.webhooks.model.transformation import CodeFailed
from pushhub.webhooks.queues import APPLICATION, ENDPOINT
from pushhub.webhooks.wire.endpoint import is_http

if TYPE_CHECKING:
    from pushhub.engine.model.trace import Trace
    from pushhub.engine.ports import ProjectStore
    from pushhub.engine.security.credentials import Credentials
    from pushhub.engine.security.gate_sending import GateSending
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.sending.attempt_groups import AttemptGroups
    from pushhub.webhooks.sending.signed_requests import SignedRequest, SignedRequests


class WebhookTarget(Component):
    """Implements :class:`pushhub.engine.target.Target` for endpoints of applications."""

    projects: ProjectStore
    credentials: Credentials
    requests: SignedRequests
    attempts: AttemptGroups
    sending: GateSending
    targets: Callable[[], Targets]  # Other kinds of subscribers, for endpoints whose URL is one of theirs.
    clock: Clock
    telemetry: Telemetry

    dialect = PROTOCOL

    def check(self, url: str) -> None:
        """Nothing to do: owners create endpoints, not subscribers, and the API checks an endpoint's URL."""

    def reaches(self, url: str, *, project: str, queue: str) -> str | None:  # noqa: ARG002 (the same for all)
        """The endpoint's URL."""
        return url.partition(":")[2]

    def deliver(self, order: PushOrder) -> Outcome:
        """Sign, send and log.

        Raises:
            Unavailable: Nothing was sent because of a fault of ours.
            Declined: The endpoint's transformation wants it to be sent nothing.
        """
        endpoint = opened(ENDPOINT.of(order.subscriber), self.credentials)
        fields = MessageFields.of(order.message)
        trace = passed_on(self.projects, order, own=False)
        self.attempts.begin(endpoint.endpoint_id)
        begun = self.clock.now()
        try:
            outcome = self._sent(order, self.requests.of(order, endpoint, trace), trace)
        except CodeFailed as failed:
            outcome = self._code_failed(failed, begun)
        except BaseException:
            self.attempts.give_up(endpoint.endpoint_id)
            raise
        self._log(order, endpoint, fields, outcome)
        return outcome

    def _sent(self, order: PushOrder, request: SignedRequest, trace: Trace | None) -> Outcome:
        endpoint = request.endpoint
        if not self.targets().within(endpoint.reach, endpoint.fields.url):
            return self._refused()
        if not is_http(endpoint.fields.url):
            return self._hand_over(order, endpoint, request, trace)
        outcome = self._post(order, endpoint, request)
        if outcome.reached and request.schemes:
            return replace(outcome, proof=replace(outcome.proof, schemes=request.schemes))
        return outcome

    def _code_failed(self, failed: CodeFailed, begun: int) -> Outcome:
        """The outcome of a try whose transformation failed: the endpoint was not asked, and is not to blame."""
        answer = Answer(
            status_code=0,
            message=f"transformation: {failed.text}"[:200],
            error_class="transformation",
            started_at=begun,
            finished_at=max(begun, self.clock.now()),
        )
        return Outcome(answer=answer, verdict=Verdict.FAILED, asked=NOTHING_ASKED, reached=False)

    def _post(self, order: PushOrder, endpoint: Endpoint, request: SignedRequest) -> Outcome:
        sent = self.sending.send(
            endpoint.project,
            endpoint.receiver,
            endpoint,
            PushRequest(
                url=request.url,
                body=request.body,
                headers=request.headers,
                method=request.method,
                timeout_s=order.subscriber.timeout_s,
                answer_limit=KEPT_BYTES,
                allowed_targets=allowed_targets(self.projects, order.message.project, endpoint.reach),
            ),
        )
        taken = not sent.answer.error_class and 200 <= sent.answer.status_code < 300
        verdict = Verdict.DELIVERED if taken else Verdict.FAILED
        answer = _without_secrets(sent.answer, endpoint)
        return Outcome(answer=answer, verdict=verdict, asked=sent.asked, reached=sent.reached, proof=sent.proof)

    def _refused(self) -> Outcome:
        """The outcome for an endpoint whose URL was set by a portal when that was not checked.

        It can be retried: a token of the project confirms the URL by setting it.
        """
        now = self.clock.now()
        answer = Answer(
            status_code=0, message=OUT_OF_REACH, error_class="refused_by_guard", started_at=now, finished_at=now
        )
        return Outcome(answer=answer, verdict=Verdict.FAILED)

    def _hand_over(self, order: PushOrder, endpoint: Endpoint, request: SignedRequest, trace: Trace | None) -> Outcome:
        """Deliver to another kind of subscriber. If it keeps headers with messages, they include those of signature and
        event, and the event type.
        """
        fields = MessageFields.of(order.message)
        signed = {
            name: value
            for name, value in request.headers.items()
            if name.startswith(("webhook-", "ce-")) or name in fields.passed
        }
        signed["webhook-event-type"] = fields.event_type
        subscriber = Subscriber(
            subscriber_id=endpoint.endpoint_id,
            name=order.subscriber.name,
            url=endpoint.fields.url,
            timeout_s=order.subscriber.timeout_s,
        )
        message = replace(order.message, headers=signed, trace=trace)
        handed = replace(order, subscriber=subscriber, message=message, body=request.body, reach=endpoint.reach)
        return self.targets().of(endpoint.fields.url).deliver(handed)

    def _log(self, order: PushOrder, endpoint: Endpoint, fields: MessageFields, outcome: Outcome) -> None:
        """Log an attempt.

        The attempt was made, whether it can be logged or not: repeating it for the log's sake would be worse than a
        gap.
        """
        answer = outcome.answer
        attempt = LoggedAttempt(
            project=endpoint.project,
            app_id=endpoint.app_id,
            endpoint_id=endpoint.endpoint_id,
            engine_id=order.message.message_id,
            number=order.attempt,
            manual=order.manual,
            url=masked_url(endpoint.fields.url),
            status_code=answer.status_code,
            success=outcome.verdict is Verdict.DELIVERED,
            response=self._kept_of(order, answer),
            duration_ms=answer.duration_ms,
            started_at=answer.started_at,
            event_type=fields.event_type,
            channels=fields.channels,
            tags=fields.tags,
            listed_until=answer.finished_at + LISTED_MS,
            before_at=order.delivery.last.started_at if order.delivery.last else None,
            proof=outcome.proof,
        )
        try:
            self.attempts.log(attempt)
        except Unavailable as error:
            self.telemetry.count("AttemptsUnlogged")
            self.telemetry.event("attempt_not_logged", error=str(error), endpoint=endpoint.endpoint_id)

    @staticmethod
    def _kept_of(order: PushOrder, answer: Answer) -> str:
        text = response_text(answer)
        redaction = APPLICATION.of(order.subscriber).fields.redaction
        return text if answer.error_class else redaction.of_answer(text)


def _without_secrets(answer: Answer, endpoint: Endpoint) -> Answer:
    """An answer as it may be kept and shown: without what its endpoint hides, which error pages repeat. Whoever may see
    attempts need not see secrets.
    """
    url, hidden = endpoint.fields.url, {name: text for name, text in endpoint.headers.items() if is_sensitive(name)}
    if not answer.body or not (hidden or endpoint.oauth or user_of(url) is not None):
        return answer
    return replace(answer, body=without_credentials(answer.body, url, hidden))


def response_text(answer: Answer) -> str:
    """The stored part of an answer: its body as text (base64 if it is not text), or what went wrong.

    What is stored was cut at a number of bytes, which may be within a letter.
    """
    if answer.error_class:
        return answer.message
    try:
        return answer.body.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return answer.body[: error.start].decode()
        return base64.b64encode(answer.body).decode()
