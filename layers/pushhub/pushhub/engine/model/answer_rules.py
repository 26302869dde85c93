"""What an answer asks the hub to do besides accepting or refusing a message: come later, stop,
or send nothing more at all. Pure.

Nothing of it is done unless the settings of a queue or of a subscriber say so: the waits of IronMQ and the hub protocol
are promised on the wire. Sources: RFC 9110 (``Retry-After``: seconds or a date), Standard Webhooks (410 disables, 429,
502 and 504 slow down), CloudEvents' web hooks (410, 429), Svix's delivery control (the header ``webhook-delivery``).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushhub.base.verdict import Answer

OVERLOADED = frozenset({429, 502, 503, 504})
"""Statuses that say the subscriber, or what stands before it, has too much to do."""

SLOW_DOWN_SPREAD = 0.2
"""Share of a slow-down's wait that is added at random, so that what was refused together does not come back
together.
"""

MOST_RETRY_AFTER_MS = 366 * 86_400_000
"""A longer ``Retry-After`` counts as this: no message lives as long."""

_SECONDS = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
_LONGEST_HEADER = 64


class Stops(StrEnum):
    """What comes to its end with an answer."""

    DELIVERY = "delivery"
    """This message is not tried again at this subscriber."""
    SUBSCRIBER = "subscriber"
    """Nothing more is sent to this subscriber: its protocol disables it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an answer asks for.

    Attributes:
        wait_ms: Milliseconds from the answer's end before which the delivery is not tried again.
        stops: What ends, if anything.
        reason: Why it ends, in a word for states and records: ``status_410``, ``asked_to_stop`` and the like.
    """

    wait_ms: int = 0
    stops: Stops | None = None
    reason: str = ""


NOTHING_ASKED = Asked()


class OnStatus(StrEnum):
    """What a rule makes of a status."""

    RETRY = "retry"
    """Try again as the policy says, even where a rule that follows, or 410, would stop."""
    STOP = "stop"
    DISABLE = "disable"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRule:
    """What failures with a status from ``first`` to ``last`` lead to.

    Attributes:
        first: Least status; 0 stands for no answer at all.
        last: Greatest status.
        then: What follows.
    """

    first: int
    last: int
    then: OnStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRules:
    """How much a queue or a subscriber lets its answers ask for; by itself nothing.

    Attributes:
        retry_after: Obey ``Retry-After`` on failures.
        slow_down_s: Least seconds between a failure that speaks of overload (429, 502, 503, 504, a timeout) and the
            next try.
        gone_disables: 410 disables the subscriber.
        delivery_header: Obey ``webhook-delivery: disable`` on every answer and ``webhook-delivery: abort-message`` on
            failures.
        on_status: The first rule that fits a failure decides.
    """

    retry_after: bool = False
    slow_down_s: float = 0
    gone_disables: bool = False
    delivery_header: bool = False
    on_status: tuple[StatusRule, ...] = ()

    def asked(self, answer: Answer, *, failed: bool, jitter: float) -> Asked:
        """What an answer asks for, as far as these rules let it.

        Args:
            answer: As it came; its body is not read.
            failed: Whether it means a failure.
            jitter: Random number in 0..1.
        """
        header = answer.headers.get("webhook-delivery", "").strip().lower() if self.delivery_header else ""
        if header == "disable":
            return Asked(stops=Stops.SUBSCRIBER, reason="asked_to_disable")
        if not failed:
            return NOTHING_ASKED
        if header == "abort-message":
            return Asked(stops=Stops.DELIVERY, reason="asked_to_stop")
        rule = next((each.then for each in self.on_status if each.first <= answer.status_code <= each.last), None)
        if rule is None and self.gone_disables and answer.status_code == 410:
            rule = OnStatus.DISABLE
        if rule in (OnStatus.DISABLE, OnStatus.STOP):
            stops = Stops.SUBSCRIBER if rule is OnStatus.DISABLE else Stops.DELIVERY
            return Asked(stops=stops, reason=f"status_{answer.status_code}")
        return Asked(wait_ms=max(self._slow_down_ms(answer, jitter), self._retry_after_ms(answer)))

    def _slow_down_ms(self, answer: Answer, jitter: float) -> int:
        overloaded = answer.status_code in OVERLOADED or answer.error_class == "timeout"
        return round(self.slow_down_s * (1 + SLOW_DOWN_SPREAD * jitter) * 1000) if overloaded else 0

    def _retry_after_ms(self, answer: Answer) -> int:
        if not self.retry_after:
            return 0
        return retry_after_ms(answer.headers.get("retry-after", ""), answer.finished_at) or 0


NO_RULES = AnswerRules()
"""Answers may ask for nothing."""

STANDARD_RULES = AnswerRules(retry_after=True, slow_down_s=60, gone_disables=True, delivery_header=True)
"""What senders of webhooks are expected to obey."""


def retry_after_ms(value: str, now: int) -> int | None:
    """Milliseconds that a ``Retry-After`` asks to wait: seconds, perhaps with decimals, or a date;
    None when it is neither.

    Args:
        value: The header's value; anything may stand there.
        now: When the answer came, epoch milliseconds.
    """
    value = value.strip()
    if len(value) > _LONGEST_HEADER:
        return None
    if _SECONDS.fullmatch(value):
        return min(math.ceil(float(value) * 1000), MOST_RETRY_AFTER_MS)
    try:
        date = parsedate_to_datetime(value)
        # RFC 9110: dates are in GMT, whether or not they say so.
        wait_ms = math.ceil((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() * 1000) - now
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return max(0, min(wait_ms, MOST_RETRY_AFTER_MS))
