"""What is noted of an attempt at a service: that it began, and its answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import MessageNotFound
from pushhub.engine.component import Component
from pushhub.hub.model.log import OpenRequest, RecordedAnswer
from pushhub.hub.ports import Answers, OpenRequests
from pushhub.hub.wire.answer import ANSWER_LIMIT, unpacked

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.base.verdict import Answer
    from pushhub.engine.ports import BodyStore
    from pushhub.engine.target import PushOrder

OPEN_MARGIN_MS = 10_000
"""How much longer than its time limit a request may be open at most, milliseconds."""

KEPT_OF_FAILURE = 65_536
"""Bytes kept (and read) of the body of a failure."""

KEPT_FAILURES_MS = 30 * 86_400_000
"""How long answers that are not the result are kept."""

KEPT_HEADERS = ("content-type", "retry-after", "server", "date")
"""Headers kept of an answer, each up to 500 characters."""

INLINE_ANSWER_LIMIT = 8_192
"""Bodies of answers up to this many bytes are stored in the table; larger ones in the bodies bucket."""


class AnswerLog(Answers, OpenRequests, Protocol):
    """Where it is noted."""


class RecordedAnswers(Component):
    """Notes attempts, and records their answers before anything is done about them."""

    log: AnswerLog
    bodies: BodyStore  # Stores large answers that are not the result.
    kept_bodies: BodyStore  # Stores large answers that are the result.
    clock: Clock

    def note_open(self, order: PushOrder) -> None:
        """An operator must not have a message posted again while its service is working on it."""
        now = self.clock.now()
        ends_at = now + order.subscriber.timeout_s * 1000 + OPEN_MARGIN_MS
        self.log.note_open(order.message.project, order.message.message_id, OpenRequest(opened_at=now, ends_at=ends_at))

    def of(self, order: PushOrder) -> RecordedAnswer | None:
        """What an attempt was answered, if it is already recorded."""
        return self.log.answer(order.message.project, order.message.message_id, order.attempt)

    def record(self, order: PushOrder, answer: Answer) -> RecordedAnswer:
        """Record the answer to an attempt; returns the one recorded first.

        Raises:
            Unavailable: It may or may not have been recorded; call again.
        """
        project_id, now = order.message.project, self.clock.now()
        answer, is_result = _bounded(unpacked(answer))
        ref = None
        if len(answer.body) > INLINE_ANSWER_LIMIT:
            (ref,) = (self.kept_bodies if is_result else self.bodies).put(project_id, [answer.body], now)
        return self.log.record(
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

    def whole(self, recorded: RecordedAnswer) -> Answer:
        """The answer with its body."""
        if recorded.body_ref is None:
            return recorded.answer
        try:
            return replace(recorded.answer, body=self.bodies.get(recorded.body_ref))
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
        problem = f"The answer is larger than {ANSWER_LIMIT} bytes"
        return replace(answer, body=answer.body[:KEPT_OF_FAILURE], error_class="too_large", message=problem), False
    return replace(answer, body=answer.body[:KEPT_OF_FAILURE]), False
