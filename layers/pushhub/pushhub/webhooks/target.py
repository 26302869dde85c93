"""Delivers to endpoints: a signed POST, logged with its answer."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pushhub.base.credentials import masked_url
from pushhub.base.errors import Unavailable
from pushhub.base.ports import Clock, PushRequest, Telemetry, Vault
from pushhub.base.signature_schemes import STANDARD, Unsigned
from pushhub.base.signing import KeyRing, signatures
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.model.queue import Subscriber
from pushhub.engine.projects import allowed_targets
from pushhub.engine.target import OUT_OF_REACH, Outcome, PushOrder, Targets
from pushhub.engine.traces import passed_on
from pushhub.webhooks.consent import origin_of
from pushhub.webhooks.credentials import opened
from pushhub.webhooks.model.attempt import KEPT_BYTES, LoggedAttempt
from pushhub.webhooks.model.cloud_events import STRUCTURED_TYPE, CloudEvent, Mode
from pushhub.webhooks.model.ids import message_id
from pushhub.webhooks.model.internal_queues import PROTOCOL
from pushhub.webhooks.model.message import LISTED_MS, MessageFields
from pushhub.webhooks.queues import EndpointPush, EndpointSubscriber
from pushhub.webhooks.wire.endpoint import is_http

if TYPE_CHECKING:
    from pushhub.base.signature_schemes import Scheme
    from pushhub.engine.credentials import Credentials
    from pushhub.engine.gate_sending import GateSending
    from pushhub.engine.model.message import Ordering
    from pushhub.engine.model.trace import Trace
    from pushhub.engine.ports import ProjectStore
    from pushhub.webhooks.attempt_groups import AttemptGroups
    from pushhub.webhooks.model.endpoint import Endpoint

USER_AGENT = "Pushhub-Webhooks/1.0"


JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """The content sent to an endpoint for a message, apart from the signature."""

    body: bytes
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


class WebhookTarget:
    """Implements :class:`pushhub.engine.target.Target` for endpoints of applications.

    Args:
        projects: For the project's allowed targets.
        vault: Opens signing keys.
        credentials: Opens what endpoints hide.
        attempts: Logs attempts, grouped with others that end at the same time.
        sending: Makes the request.
        base_url: Public base URL of this hub.
        targets: Other kinds of subscribers, for endpoints whose URL is one of theirs.
        clock: Dates signatures.
        telemetry: Reports attempts that could not be logged.
    """

    def __init__(
        self,
        *,
        projects: ProjectStore,
        vault: Vault,
        credentials: Credentials,
        attempts: AttemptGroups,
        sending: GateSending,
        base_url: str,
        targets: Callable[[], Targets],
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._projects = projects
        self._vault = vault
        self._credentials = credentials
        self._attempts = attempts
        self._sending = sending
        self._base_url = base_url
        self._targets = targets
        self._clock = clock
        self._telemetry = telemetry

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
        """
        if not isinstance(order.subscriber, EndpointSubscriber):
            raise TypeError("the subscriber is not an endpoint")
        endpoint = opened(order.subscriber.endpoint, self._credentials)
        fields = MessageFields.of(order.message)
        trace = passed_on(self._projects, order, own=False)
        content = self._content(order, endpoint, fields, traced=trace is not None)
        url, headers, schemes = self._signed(order, endpoint, content, trace)
        self._attempts.begin(endpoint.endpoint_id)
        try:
            if not self._targets().within(endpoint.reach, endpoint.fields.url):
                outcome = self._refused()
            elif is_http(endpoint.fields.url):
                outcome = self._post(order, endpoint, url, headers, content.body)
                if outcome.reached and schemes:
                    outcome = replace(outcome, proof=replace(outcome.proof, schemes=schemes))
            else:
                outcome = self._hand_over(order, endpoint, headers, content.body, trace)
        except BaseException:
            self._attempts.give_up(endpoint.endpoint_id)
            raise
        self._log(order, endpoint, fields, outcome)
        return outcome

    def _content(self, order: PushOrder, endpoint: Endpoint, fields: MessageFields, *, traced: bool) -> _Content:
        """The content sent to an endpoint: the message's bytes unchanged, or an event."""
        content_type, wanted = fields.content_type or JSON_TYPE, endpoint.fields.cloud_events
        if wanted is None:
            return _Content(body=order.body, content_type=content_type)
        event = CloudEvent(
            identifier=message_id(order.message.message_id),
            source=f"{self._base_url}/api/v1/app/{endpoint.app_id}",
            type=fields.event_type,
            time=order.message.accepted_at,
            content_type=content_type,
            data=order.body,
            trace=order.message.trace if traced else None,
        )
        origin = {"WebHook-Request-Origin": origin_of(self._base_url)} if wanted.consent else {}
        if wanted.mode is Mode.BINARY:
            return _Content(body=order.body, content_type=content_type, headers={**event.headers, **origin})
        return _Content(body=event.structured, content_type=STRUCTURED_TYPE, headers=origin)

    def _signed(
        self, order: PushOrder, endpoint: Endpoint, content: _Content, trace: Trace | None
    ) -> tuple[str, dict[str, str], tuple[str, ...]]:
        """The URL to call, all headers, with signatures of this moment, and the names of the schemes; none for Standard
        Webhooks alone, which records would otherwise name for each attempt.
        """
        now = self._clock.now()
        identifier = message_id(order.message.message_id)
        schemes = self._schemes(order, endpoint)
        keys, own = None, []
        if not endpoint.signatures or any(each.standard for each in schemes):
            keys = KeyRing.decode(self._vault.open(endpoint.project, endpoint.sealed))
        if schemes:
            from pushhub.webhooks.signatures import secrets_of  # noqa: PLC0415 (only those who have schemes pay)

            own = secrets_of(endpoint, schemes, keys, self._vault, now)
        standard = not own or any(each.standard and each.signs_at(now) for each in schemes)
        signature = signatures(keys.live(now), identifier, now // 1000, content.body) if standard and keys else None
        headers = request_headers(
            identifier,
            now // 1000,
            signature,
            content_type=content.content_type,
            own=endpoint.headers,
            ordering=order.message.ordering,
            trace=trace,
        )
        taken = {name.lower() for name in content.headers}
        headers = {name: value for name, value in headers.items() if name.lower() not in taken} | dict(content.headers)
        if not own:
            return endpoint.fields.url, headers, ()
        from pushhub.webhooks.signatures import signed  # noqa: PLC0415

        fields = MessageFields.of(order.message)
        request = Unsigned(
            message_id=identifier,
            event_id=fields.event_id or identifier,
            event_type=fields.event_type,
            at=now,
            url="",
            body=content.body,
        )
        url, extra = signed(endpoint.fields.url, own, request)
        # What an endpoint itself sets may have the name of a scheme that it inherits.
        taken = {name.lower() for name in extra}
        headers = {name: value for name, value in headers.items() if name.lower() not in taken} | extra
        names = (*([STANDARD] if signature else []), *(scheme.name for scheme, _ in own))
        return url, headers, names

    def _schemes(self, order: PushOrder, endpoint: Endpoint) -> tuple[Scheme, ...]:
        """The schemes that sign an endpoint's requests; none for Standard Webhooks alone."""
        project = self._projects.project(endpoint.project)
        return endpoint.signed_by(
            order.push.application.signatures if isinstance(order.push, EndpointPush) else (),
            project.signatures if project else (),
        )

    def _post(self, order: PushOrder, endpoint: Endpoint, url: str, headers: Mapping[str, str], body: bytes) -> Outcome:
        sent = self._sending.send(
            endpoint.project,
            endpoint.endpoint_id,
            endpoint,
            PushRequest(
                url=url,
                body=body,
                headers=headers,
                timeout_s=order.subscriber.timeout_s,
                answer_limit=KEPT_BYTES,
                allowed_targets=allowed_targets(self._projects, order.message.project, endpoint.reach),
            ),
        )
        taken = not sent.answer.error_class and 200 <= sent.answer.status_code < 300
        verdict = Verdict.DELIVERED if taken else Verdict.FAILED
        return Outcome(answer=sent.answer, verdict=verdict, asked=sent.asked, reached=sent.reached, proof=sent.proof)

    def _refused(self) -> Outcome:
        """The outcome for an endpoint whose URL was set by a portal when that was not checked.

        It can be retried: a token of the project confirms the URL by setting it.
        """
        now = self._clock.now()
        answer = Answer(
            status_code=0, message=OUT_OF_REACH, error_class="refused_by_guard", started_at=now, finished_at=now
        )
        return Outcome(answer=answer, verdict=Verdict.FAILED)

    def _hand_over(
        self, order: PushOrder, endpoint: Endpoint, headers: Mapping[str, str], body: bytes, trace: Trace | None
    ) -> Outcome:
        """Deliver to another kind of subscriber. If it keeps headers with messages, they include those of signature and
        event.
        """
        signed = {name: value for name, value in headers.items() if name.startswith(("webhook-", "ce-"))}
        subscriber = Subscriber(
            subscriber_id=endpoint.endpoint_id,
            name=order.subscriber.name,
            url=endpoint.fields.url,
            timeout_s=order.subscriber.timeout_s,
        )
        message = replace(order.message, headers=signed, trace=trace)
        handed = replace(order, subscriber=subscriber, message=message, body=body)
        return self._targets().of(endpoint.fields.url).deliver(handed)

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
            self._attempts.log(attempt)
        except Unavailable as error:
            self._telemetry.count("AttemptsUnlogged")
            self._telemetry.event("attempt_not_logged", error=str(error), endpoint=endpoint.endpoint_id)

    @staticmethod
    def _kept_of(order: PushOrder, answer: Answer) -> str:
        text = response_text(answer)
        application = order.push.application if isinstance(order.push, EndpointPush) else None
        return application.fields.redaction.of_answer(text) if application and not answer.error_class else text


def response_text(answer: Answer) -> str:
    """The stored part of an answer: its body as text (base64 if it is not text), or what went wrong."""
    if answer.error_class:
        return answer.message
    try:
        return answer.body.decode()
    except UnicodeDecodeError:
        return base64.b64encode(answer.body).decode()


def request_headers(
    identifier: str,
    timestamp: int,
    signature: str | None,
    *,
    content_type: str,
    own: Mapping[str, str],
    ordering: Ordering | None = None,
    trace: Trace | None = None,
) -> dict[str, str]:
    """The headers of a request to an endpoint: those of Standard Webhooks and those of Svix, with equal values,
    then the endpoint's own.

    Args:
        identifier: Id of the message.
        timestamp: Epoch seconds of the attempt.
        signature: See :func:`pushhub.base.signing.signatures`; None if only schemes of the endpoint's own sign. Then
            Svix's headers are left out, too: a receiver that prefers them would miss the signature.
        content_type: Content type of the body.
        own: The endpoint's own headers.
        ordering: The message's place among those of its ordering key, sent if there is one.
        trace: Its trace, if the project passes it on.
    """
    named = {"id": identifier, "timestamp": str(timestamp)}
    signed = {} if signature is None else {**named, "signature": signature}
    headers = {
        "Accept": "*/*",
        "Content-Type": content_type,
        **{f"webhook-{name}": value for name, value in (signed or named).items()},
        **{f"svix-{name}": value for name, value in signed.items()},
        "User-Agent": USER_AGENT,
    }
    if ordering is not None:
        headers |= {"webhook-ordering-key": ordering.key, "webhook-sequence": str(ordering.sequence)}
    if trace is not None:
        headers |= trace.headers
    given = {name.lower() for name in own}
    return {name: value for name, value in headers.items() if name.lower() not in given} | dict(own)
