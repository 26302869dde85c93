"""Delivering in the hub's dialect: the target of the internal queues.

One attempt: check whether its answer is already recorded; if not, POST and record the answer; then do what it asks for.
Only then is the engine told the outcome, which it writes. After a crash before the answer is recorded, the request is
repeated (at least once, same message id). After a later crash, the recorded answer is used instead of asking again, so
that it makes no difference if an endpoint would answer differently the second time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.gates import NO_PROOF
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.component import Component
from pushhub.engine.security.gate_sending import was_sent
from pushhub.engine.target import Outcome, PushOrder
from pushhub.hub.effects import Answered, HubEffects
from pushhub.hub.model.internal_queues import DIALECT, INCOMING_QUEUE
from pushhub.hub.model.mapping import MAPPING
from pushhub.hub.model.message import HubMessage
from pushhub.hub.model.object_ids import to_object_id
from pushhub.hub.wire.answer import paced, read_answer

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.hub.recorded_answers import RecordedAnswers
    from pushhub.hub.router import HubRouter
    from pushhub.hub.service_requests import ServiceRequests

MAX_SUMMARY = 1_000
"""Longest text about the routing of a message, in characters."""


class HubTarget(Component):
    """Implements :class:`pushhub.engine.target.Target` for the subscribers of internal queues."""

    requests: ServiceRequests
    answers: RecordedAnswers
    router: HubRouter
    effects: HubEffects
    clock: Clock

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
        if order.queue.name == INCOMING_QUEUE:
            return self._route(order)
        mapping = MAPPING.of(order.subscriber)
        content = HubMessage.decode(order.body)
        object_id = to_object_id(order.message.message_id)
        recorded, sent = self.answers.of(order), None
        if recorded is None:
            self.answers.note_open(order)
            sent = self.requests.ask(order, mapping, content, object_id)
            recorded = self.answers.record(order, sent.answer)
        answer = self.answers.whole(recorded)
        read = read_answer(answer, object_id=object_id, mapping=mapping, polled=recorded.polled)
        reading = paced(read, deferrals=order.delivery.deferrals)
        self.effects.apply(
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
        started_at = self.clock.now()
        routed = self.router.route(order.message, order.body, attempt=order.attempt)
        answer = Answer(
            status_code=200 if routed.finished else 0,
            error_class="" if routed.finished else "routing",
            message=routed.summary[:MAX_SUMMARY],
            started_at=started_at,
            finished_at=self.clock.now(),
        )
        return Outcome(answer=answer, verdict=Verdict.DELIVERED if routed.finished else Verdict.FAILED)
