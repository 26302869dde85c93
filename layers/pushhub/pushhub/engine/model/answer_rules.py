"""What an answer asks of the hub besides accepting or refusing a message: wait, stop, or send nothing more. Pure.

None of this applies unless the settings of a queue or subscriber enable it, because the waits of IronMQ and of the hub
protocol are part of their contracts. Sources: RFC 9110 (``Retry-After``: seconds or a date), Standard Webhooks (410
disables, 429, 502 and 504 slow down), CloudEvents' web hooks (410, 429), Svix's delivery control (the header
``webhook-delivery``).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pushhub.base.http_dates import http_date_ms
from pushhub.base.numerals import fraction

if TYPE_CHECKING:
    from pushhub.base.verdict import Answer

RESTARTING = frozenset({502, 503, 504})
"""Statuses that a proxy also gives for the moment in which the subscriber behind it is restarted."""

OVERLOADED = RESTARTING | {429}
"""Statuses that say the subscriber, or a proxy in front of it, is overloaded."""

SLOW_DOWN_SPREAD = 0.2
"""Share of a slow-down's wait that is added at random, so that deliveries refused together do not come back
together.
"""

MOST_RETRY_AFTER_MS = 366 * 86_400_000
"""A longer ``Retry-After`` is cut to this: no message lives longer."""

_SECONDS = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
_LONGEST_HEADER = 64


class Stops(StrEnum):
    """What an answer ends."""

    DELIVERY = "delivery"
    """This message is not tried again at this subscriber."""
    SUBSCRIBER = "subscriber"
    """Nothing more is sent to this subscriber: its protocol disables it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an answer asks for.

    Attributes:
        wait_ms: Milliseconds, from the end of the answer, before the next try.
        spares: Whether that wait takes the place of the retry policy's, and the try is not counted.
        stops: What ends, if anything.
        reason: Why it ends, in a word for states and records: ``status_410``, ``asked_to_stop`` and the like.
    """

    wait_ms: int = 0
    spares: bool = False
    stops: Stops | None = None
    reason: str = ""


NOTHING_ASKED = Asked()


class OnStatus(StrEnum):
    """What a rule does with a status."""

    RETRY = "retry"
    """Retry as the policy says, even where a later rule, or 410, would stop."""
    STOP = "stop"
    DISABLE = "disable"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRule:
    """What to do about failures with a status from ``first`` to ``last``.

    Attributes:
        first: Lowest status; 0 means no answer at all.
        last: Highest status.
    """

    first: int
    last: int
    then: OnStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRules:
    """Which requests in its answers a queue or subscriber obeys; none by default.

    Attributes:
        retry_after: Obey ``Retry-After`` on failures.
        slow_down_s: Minimum seconds between a failure that signals overload (429, 502, 503, 504, a timeout) and the
            next try. A first 502, 503 or 504 does not signal it yet: a receiver that is being restarted gives it too.
        gone_disables: 410 disables the subscriber.
        delivery_header: Obey ``webhook-delivery: disable`` on every answer and ``webhook-delivery: abort-message`` on
            failures.
        on_status: The first rule that matches a failure decides.
    """

    retry_after: bool = False
    slow_down_s: float = 0
    gone_disables: bool = False
    delivery_header: bool = False
    on_status: tuple[StatusRule, ...] = ()

    def asked(self, answer: Answer, *, failed: bool, jitter: float, before: int | None = None) -> Asked:
        """What an answer asks for, as far as these rules allow it.

        Args:
            answer: The answer; its body is not read.
            failed: Whether it counts as a failure.
            jitter: Random number in 0..1.
            before: Status of the delivery's attempt before this one; None if this is its first.
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
        return Asked(wait_ms=max(self._slow_down_ms(answer, before, jitter), self._retry_after_ms(answer)))

    def _slow_down_ms(self, answer: Answer, before: int | None, jitter: float) -> int:
        first = answer.status_code in RESTARTING and before not in OVERLOADED
        overloaded = (answer.status_code in OVERLOADED and not first) or answer.error_class == "timeout"
        return round(self.slow_down_s * (1 + SLOW_DOWN_SPREAD * jitter) * 1000) if overloaded else 0

    def _retry_after_ms(self, answer: Answer) -> int:
        if not self.retry_after:
            return 0
        return retry_after_ms(answer.headers.get("retry-after", ""), answer.finished_at) or 0


NO_RULES = AnswerRules()
"""Answers cannot ask for anything."""

STANDARD_RULES = AnswerRules(retry_after=True, slow_down_s=60, gone_disables=True, delivery_header=True)
"""What webhook senders are expected to obey."""


def retry_after_ms(value: str, now: int) -> int | None:
    """Milliseconds that a ``Retry-After`` asks to wait, given in seconds (decimals allowed) or as a date; None when it
    is neither.

    Args:
        value: The header's value; untrusted.
        now: When the answer came, epoch milliseconds.
    """
    value = value.strip()
    if len(value) > _LONGEST_HEADER:
        return None
    if _SECONDS.fullmatch(value):
        return min(math.ceil(fraction(value) * 1000), MOST_RETRY_AFTER_MS)
    date = http_date_ms(value)
    return None if date is None else max(0, min(date - now, MOST_RETRY_AFTER_MS))
