"""An attempt that was made, and deliveries with it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pushhub.base.credentials import masked_url
from pushhub.base.verdict import Verdict
from pushhub.engine.model.delivery import (
    Delivery,
    after_asked_try,
    after_attempt,
    counts_as_it_is,
    merge_attempt,
    with_proof,
    with_span,
)

if TYPE_CHECKING:
    from pushhub.engine.model.answer_rules import Asked
    from pushhub.engine.model.backoff import RetryPolicy
    from pushhub.engine.model.trace import Span
    from pushhub.engine.target import Outcome, PushOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedAttempt:
    """An attempt that was made.

    Attributes:
        order: What was asked; its delivery is as it was when the attempt began.
        policy: The retry policy at that time.
        dialect: In which the subscriber was asked.
        jitter: Random number in 0..1.
        span: Its place in the message's trace, if its project exports spans.
    """

    order: PushOrder
    outcome: Outcome
    policy: RetryPolicy
    dialect: str
    jitter: float
    span: Span | None

    @property
    def asked(self) -> Asked:
        """What the answer asks for: the dialect says it, or the rules of the subscriber or queue do."""
        outcome, subscriber, last = self.outcome, self.order.subscriber, self.order.delivery.last
        if outcome.asked is not None:
            return outcome.asked
        rules = subscriber.rules or self.order.push.rules
        failed = outcome.verdict is Verdict.FAILED
        return rules.asked(outcome.answer, failed=failed, jitter=self.jitter, before=last.status_code if last else None)

    def recorded_in(self, before: Delivery) -> Delivery:
        """A delivery with the attempt.

        Args:
            before: As it was when the attempt began, or as it is now if the attempt counts all the same.
        """
        after = self._asked_try(before) if self.order.manual else self._automatic_try(before)
        return with_span(with_proof(after, self.outcome.proof), self.span)

    def folded_into(self, current: Delivery) -> Delivery | None:
        """A delivery that changed during the attempt, with it; None if it does not count any more."""
        begun = self.order.delivery
        if counts_as_it_is(current, begun):
            return self.recorded_in(current)
        folded = merge_attempt(
            current,
            begun,
            self.outcome.answer,
            self.outcome.verdict,
            subscriber=self.order.subscriber.name,
            url=masked_url(self.order.subscriber.url),
            dialect=self.dialect,
        )
        if folded is None:
            return None
        folded = with_span(folded, self.span)
        return with_proof(folded, self.outcome.proof) if folded.attempts > current.attempts else folded

    def _asked_try(self, before: Delivery) -> Delivery:
        return after_asked_try(
            before,
            self.outcome.answer,
            self.outcome.verdict,
            asked_at=self.order.delivery.asked_at,
            asked=self.asked,
            subscriber=self.order.subscriber.name,
            url=masked_url(self.order.subscriber.url),
            dialect=self.dialect,
        )

    def _automatic_try(self, before: Delivery) -> Delivery:
        return after_attempt(
            before,
            self.outcome.answer,
            self.outcome.verdict,
            policy=self.policy,
            reserve_ms=self.outcome.reserve_ms,
            jitter=self.jitter,
            subscriber=self.order.subscriber.name,
            url=masked_url(self.order.subscriber.url),
            dialect=self.dialect,
            update_url=self.outcome.update_url,
            asked=self.asked,
        )
