"""Delivering in the hub's dialect: the target of the internal queues.

One attempt: check whether its answer is already recorded; if not, POST and record the answer; then do what it asks for.
Only then is the engine told the outcome, which it writes. After a crash before the answer is recorded, the request is
repeated (at least once, same message id). After a later crash, the recorded answer is used instead of asking again, so
that it makes no difference if an endpoint would answer differently the second time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.credentials import place_of
from pushhub.base.errors import MessageNotFound
from pushhub.base.gates import NO_PROOF, OPEN
from pushhub.base.ports import Clock, PushRequest
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.gate_sending import was_sent
from pushhub.engine.model.reach import Reach
from pushhub.engine.projects import allowed_targets
from pushhub.engine.target import Outcome, PushOrder
from pushhub.engine.traces import trace_headers
from pushhub.hub.effects import Answered, HubEffects
from pushhub.hub.model.internal_queues import DIALECT
from pushhub.hub.model.log import OpenRequest, RecordedAnswer
from pushhub.hub.model.mapping import ServiceMapping, ServicePush
from pushhub.hub.model.message import HubMessage
from pushhub.hub.model.object_ids import to_object_id
from pushhub.hub.ports import Answers, OpenRequests
from pushhub.hub.tokens import token_of
from pushhub.hub.wire.answer import ANSWER_LIMIT, paced, read_answer, unpacked
from pushhub.hub.wire.request import request_body, request_headers

if TYPE_CHECKING:
    from pushhub.engine.credentials import Credentials
    from pushhub.engine.gate_sending import GateSending, Sent
    from pushhub.engine.ports import BodyStore, ProjectStore
    from pushhub.engine.signing import Signing
    from pushhub.hub.ports import ReadParameters
    from pushhub.hub.router import HubRouter

OPEN_MARGIN_MS = 10_000
"""How much longer than its time limit a request may be open at most, milliseconds."""

KEPT_OF_FAILURE = 65_536
"""Bytes kept (and read) of the body of a failure."""

KEPT_FAILURES_MS = 30 * 86_400_000
"""How long answers that are not the result are kept."""

KEPT_HEADERS = ("content-type", "retry-after", "server", "date")
"""Headers kept of an answer, each up to 500 characters."""

MAX_TOLD = 1_000
"""Longest text about the routing of a message, in characters."""

INLINE_ANSWER_LIMIT = 8_192
"""Bodies of answers up to this many bytes are stored in the table; larger ones in the bodies bucket."""


class AttemptLog(Answers, OpenRequests, Protocol):
    """What is noted of an attempt: that it began, and its answer."""


class HubTarget:
    """Implements :class:`pushhub.engine.target.Target` for the subscribers of internal queues.

    Args:
        config: For the project's allowed targets.
        settings: Parameters.
        log: Open requests and recorded answers.
        sending: Makes the request.
        signing: Signs the request if the mapping has keys.
        credentials: Opens the mapping's token.
        bodies: Stores large answers that are not the result.
        kept_bodies: Stores large answers that are the result.
        router: Routes what is on the incoming queue.
        effects: Does what answers ask for.
        clock: Times of attempts that need no HTTP.
    """

    def __init__(
        self,
        *,
        config: ProjectStore,
        settings: ReadParameters,
        log: AttemptLog,
        sending: GateSending,
        signing: Signing,
        credentials: Credentials,
        bodies: BodyStore,
        kept_bodies: BodyStore,
        router: HubRouter,
        effects: HubEffects,
        clock: Clock,
    ) -> None:
        self._config = config
        self._settings = settings
        self._log = log
        self._sending = sending
        self._signing = signing
        self._credentials = credentials
        self._bodies = bodies
        self._kept_bodies = kept_bodies
        self._router = router
        self._effects = effects
        self._clock = clock

    dialect = DIALECT

    def check(self, url: str) -> None:
        """Nothing to do: owners register mappings, not subscribers, and a mapping's URL is checked when it is saved."""

    def reaches(self, url: str, *, project: str, queue: str) -> str | None:  # noqa: ARG002 (the same for all)
        """The mapping's URL."""
        return url.partition(":")[2]

    def deliver(self, order: PushOrder) -> Outcome:
        """Route, post or poll.

        Raises:
            Unavailable: One of our own calls failed; the stored state tells what is left to do.
        """
        if not isinstance(order.push, ServicePush):
            return self._route(order)
        mapping = order.push.mapping
        content = HubMessage.decode(order.body)
        object_id = to_object_id(order.message.message_id)
        recorded, sent = self._recorded(order), None
        if recorded is None:
            self._note_open(order)
            sent = self._ask(order, mapping, content, object_id)
            recorded = self._record(order, sent.answer)
        answer = self._whole(recorded)
        read = read_answer(answer, object_id=object_id, mapping=mapping, polled=recorded.polled)
        reading = paced(read, deferrals=order.delivery.deferrals)
        self._effects.apply(
            Answered(
                message=order.message,
                content=content,
                delivery=order.delivery,
                mapping=mapping,
                answer=answer,
                reading=reading,
            )
        )
        return Outcome(
            answer=replace(answer, message=reading.error[:200]) if reading.error else answer,
            verdict=reading.verdict,
            reserve_ms=reading.wait_s * 1000,
            update_url=reading.update_url,
            asked=sent.asked if sent is not None else None,
            reached=sent.reached if sent is not None else was_sent(answer),
            proof=sent.proof if sent is not None else NO_PROOF,
        )

    def _route(self, order: PushOrder) -> Outcome:
        started_at = self._clock.now()
        routed = self._router.route(order.message, order.body, attempt=order.attempt)
        answer = Answer(
            status_code=200 if routed.finished else 0,
            error_class="" if routed.finished else "routing",
            message=routed.told[:MAX_TOLD],
            started_at=started_at,
            finished_at=self._clock.now(),
        )
        return Outcome(answer=answer, verdict=Verdict.DELIVERED if routed.finished else Verdict.FAILED)

    def _ask(self, order: PushOrder, mapping: ServiceMapping, content: HubMessage, object_id: str) -> Sent:
        """Make one request, to the service or, after it has taken the message for later, to its ``update_url``."""
        by_id = {each.parameter_id: each for each in self._settings.parameters(order.message.project)}
        parameters = [by_id[each] for each in mapping.parameter_ids if each in by_id]
        project, body = order.message.project, request_body(content, object_id, parameters)
        url = order.delivery.update_url or mapping.url
        signature = self._signing.signature(
            project, mapping.sealed, message_id=object_id, body=body, kind=content.type, url=url
        )
        # A token goes only where its owner sends messages.
        gated = mapping if place_of(url) == place_of(mapping.url) else OPEN
        sent = self._sending.send(
            project,
            mapping.mapping_id,
            gated,
            PushRequest(
                url=url,
                body=body,
                headers={
                    **trace_headers(self._config, order, own=True),
                    **request_headers(token_of(mapping, project, self._credentials)),
                    **signature.headers,
                },
                timeout_s=order.subscriber.timeout_s,
                answer_limit=ANSWER_LIMIT + 1,
                allowed_targets=allowed_targets(self._config, project, Reach.PROJECT),
            ),
        )
        return replace(sent, proof=replace(sent.proof, schemes=signature.schemes)) if sent.reached else sent

    def _note_open(self, order: PushOrder) -> None:
        """An operator must not have a message posted again while its service is working on it."""
        now = self._clock.now()
        ends_at = now + order.subscriber.timeout_s * 1000 + OPEN_MARGIN_MS
        self._log.note_open(
            order.message.project, order.message.message_id, OpenRequest(opened_at=now, ends_at=ends_at)
        )

    def _recorded(self, order: PushOrder) -> RecordedAnswer | None:
        return self._log.answer(order.message.project, order.message.message_id, order.attempt)

    def _record(self, order: PushOrder, answer: Answer) -> RecordedAnswer:
        project_id, now = order.message.project, self._clock.now()
        answer, is_result = _bounded(unpacked(answer))
        ref = None
        if len(answer.body) > INLINE_ANSWER_LIMIT:
            (ref,) = (self._kept_bodies if is_result else self._bodies).put(project_id, [answer.body], now)
        return self._log.record(
            project_id,
            order.message.message_id,
            RecordedAnswer(
                attempt=order.attempt,
                answer=replace(answer, body=b"") if ref else answer,
                body_ref=ref,
                polled=order.delivery.update_url,
                expires_at=None if is_result else now + KEPT_FAILURES_MS,
            ),
        )

    def _whole(self, recorded: RecordedAnswer) -> Answer:
        if recorded.body_ref is None:
            return recorded.answer
        try:
            return replace(recorded.answer, body=self._bodies.get(recorded.body_ref))
        except MessageNotFound:
            # The attempt was left open for longer than such bodies are kept. The answer is lost, so the service is
            # asked again.
            return replace(recorded.answer, error_class="bad_response", message="The answer is no longer kept")


def _bounded(answer: Answer) -> tuple[Answer, bool]:
    """The answer truncated to what is kept, and whether it may be the result.

    It is truncated before it is interpreted, so that a repetition reads the same text.
    """
    kept = {name: answer.headers[name][:500] for name in KEPT_HEADERS if name in answer.headers}
    answer = replace(answer, headers=kept)
    if answer.status_code == 200 and not answer.error_class:
        if len(answer.body) <= ANSWER_LIMIT:
            return answer, True
        told = f"The answer is larger than {ANSWER_LIMIT} bytes"
        return replace(answer, body=answer.body[:KEPT_OF_FAILURE], error_class="too_large", message=told), False
    return replace(answer, body=answer.body[:KEPT_OF_FAILURE]), False
