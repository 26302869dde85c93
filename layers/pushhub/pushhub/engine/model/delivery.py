r"""The delivery state machine: given a delivery and what happened, the next delivery. Pure, no clock, no I/O.

::

              attempt fails, tries left            attempt fails, none left
    PENDING ----------------------------> RETRYING ------------------------> EXHAUSTED
       |  \___ 202 ___> RESERVED __lapses__/  |                                  ^
       |                   |  |               |                                  |
       |  2xx              |  ack             | 2xx / ack      (un-acked 202, none left)
       +-----------------> DELIVERED / ACKNOWLEDGED <--------+
    any unsettled state: EXPIRED when the message expires, CANCELLED when its owner deletes it, or when its subscriber's
    own rules want none of it

Hub protocol: POLLING after an asynchronous answer (a failed poll makes it RETRYING, still with its ``update_url``);
HELD instead of EXHAUSTED when the policy says so, until :func:`resume`; an answer that postpones leaves it PENDING with
a later due time. Independently, a person may ask for one try (:func:`ask_for_try`), even of a delivery that has ended:
success makes it DELIVERED, failure leaves it as it was.

Rules and sources: IronMQ v3 makes ``retries + 1`` tries, each ``retries_delay`` after the end of the one before;
unicast asks the next subscriber immediately, and a whole round counts as one try; a 202 reserves for ``retries_delay``
and stops the round; a 202 that is not acknowledged is a failed try.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from pushhub.base.errors import Forbidden
from pushhub.base.gates import NO_PROOF, Proof
from pushhub.base.verdict import Answer, Verdict
from pushhub.engine.model.answer_rules import NOTHING_ASKED, Asked, Stops
from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.model.queue import RAW, dialect_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pushhub.engine.model.backoff import RetryPolicy
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.trace import Span


class DeliveryState(StrEnum):
    """The state of a delivery."""

    PENDING = "pending"
    RETRYING = "retrying"
    RESERVED = "reserved"
    POLLING = "polling"
    """The subscriber is working on it; its ``update_url`` is polled from ``due_at`` on (hub protocol)."""
    HELD = "held"
    """Failed, and not retried until a person decides (hub protocol)."""
    DELIVERED = "delivered"
    ACKNOWLEDGED = "acknowledged"
    EXHAUSTED = "exhausted"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


SETTLED = frozenset(
    {
        DeliveryState.DELIVERED,
        DeliveryState.ACKNOWLEDGED,
        DeliveryState.EXHAUSTED,
        DeliveryState.EXPIRED,
        DeliveryState.CANCELLED,
    }
)
"""Final states, unless a person asks for a try and it succeeds."""

DECLINED = "cancelled_by_transformation"
"""Why a delivery was cancelled that its subscriber's own rules did not want. A person can still have it tried: they may
have changed.
"""

STATUS_TEXT_BYTES = 100_000
"""Maximum total size of the texts in a delivery's statuses, in bytes of UTF-8. A DynamoDB item is limited to 400 KB,
and a unicast queue may have some 1,700 subscribers.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The last attempt of a delivery, as its record shows it.

    Attributes:
        number: Number of the request among all made for the delivery, from 1.
        status_code: HTTP status, 0 when none came.
        error_class: See :class:`pushhub.base.verdict.Answer`.
        bytes_out: Bytes of the request body.
        bytes_in: Bytes of the answer's body.
        wait_before_ms: From the end of the previous attempt (or from acceptance) to the start of this one.
        wait_after_ms: Until the next step of the delivery; None when there is none.
        subscriber: Name of the subscriber asked; empty when it has none or is unknown.
        dialect: Dialect it was sent in, see :func:`pushhub.engine.model.queue.dialect_of`.
        tries_max: Tries the retry policy allowed at the time; None for no limit, or unknown.
        poll: Whether it polled the ``update_url`` of an earlier answer (hub protocol).
        span: Its place in the message's trace; None unless the project exports spans.
        proof: What it showed of who asked.
        answer: The beginning of the answer's body, as text, at most :data:`ANSWER_BYTES`; only in owners' queues.
    """

    number: int
    subscriber_id: str
    verdict: Verdict
    status_code: int
    error_class: str
    started_at: int
    finished_at: int
    bytes_out: int
    bytes_in: int
    wait_before_ms: int
    wait_after_ms: int | None
    subscriber: str = ""
    dialect: str = "raw"
    tries_max: int | None = None
    poll: bool = False
    manual: bool = False
    span: Span | None = None
    proof: Proof = NO_PROOF
    answer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierAttempt:
    """An attempt before the last one, as people want to see it.

    Attributes:
        number: As in :class:`Attempt`.
        status_code: HTTP status, 0 when none came.
        message: One line describing the answer.
        took_ms: Milliseconds until the answer was complete, or the attempt was given up.
        answer: As in :class:`Attempt`; empty for older ones, for which there was no room.
    """

    number: int
    subscriber_id: str
    verdict: Verdict
    status_code: int
    message: str
    started_at: int
    took_ms: int
    manual: bool = False
    answer: str = ""


ANSWER_BYTES = 300
"""Of the body of an answer so much is kept, UTF-8."""

_ANSWERS_BYTES, _LESS_FOR_EACH, _LEAST_ANSWERS_BYTES = 350, 25, 100
"""All answers of a delivery share so much, less for each earlier attempt, so that its item stays within the write unit
that it takes without them.
"""

MOST_EARLIER = 50
"""Attempts before the last one that a delivery remembers; the newest. Delivery records have all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetStatus:
    """The last answer of one subscriber (IronMQ push status).

    Attributes:
        tries: Requests made to it for this delivery.
        status_code: Its last status, 0 when no answer came, None before the first try.
        message: One line describing it.
        last_try_at: End of its last request, epoch milliseconds.
        name: The subscriber's name at its last request; None when unknown.
    """

    tries: int = 0
    status_code: int | None = None
    message: str = ""
    last_try_at: int | None = None
    name: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message owed to one subscriber, or (unicast, ``subscriber_id`` ``*``) to any one of several.

    Attributes:
        subscriber_id: The subscriber owed, ``*`` for unicast.
        targets: Subscribers to ask in turn; one except for unicast.
        accepted_at: Epoch milliseconds of the message's acceptance.
        expires_at: Epoch milliseconds of the message's expiry.
        due_at: Epoch milliseconds of the next step: the next try, or the end of the reservation. None when settled.
        delayed_until: When its message was due, epoch milliseconds; None if that was at its acceptance.
        tries: Tries used up (unicast: whole rounds).
        cursor: Index into ``targets`` of the next one to ask in this round.
        acknowledged_attempt: Number of the attempt that was acknowledged.
        statuses: By subscriber id; only those asked already.
        earlier: Those before it, oldest first, at most :data:`MOST_EARLIER`; only in owners' queues, because other
            protocols have logs of their own.
        update_url: Where to poll for the outcome, once the subscriber answered asynchronously (hub protocol).
        deferrals: Answers that postponed it, since a person last had it tried (hub protocol).
        settled_at: Epoch milliseconds when it was settled.
        changed_at: When it last changed other than by an attempt, its end or a request for a try, epoch milliseconds;
            None if it never did, or unknown.
        asked_at: When a person asked for a try that is still to be made, epoch milliseconds; None when there is none.
        added: Whether it was added after its message was accepted; set from its first version on.
        order_key: For ordered delivery: see :class:`pushhub.engine.model.message.Ordering`.
        sequence: Position of its message in that order.
        behind: The message before it in that order, if it was cancelled before its turn.
        awaits: The message whose end those behind it wait for then: that one; of several that were cancelled from the
            oldest on, the one before them all.
        reason: Why it ended, where the state alone does not say: ``status_410``, ``subscriber_disabled`` and the like.
        scheduled: Whether it waits in the schedule rather than in a queue.
        version: Incremented by each change; 0 means never stored. Guards every write.
    """

    project: str
    queue: str
    queue_uid: str
    message_id: str
    subscriber_id: str
    targets: tuple[str, ...]
    accepted_at: int
    expires_at: int
    state: DeliveryState = DeliveryState.PENDING
    due_at: int | None
    delayed_until: int | None = None
    tries: int = 0
    attempts: int = 0
    cursor: int = 0
    acknowledged_attempt: int | None = None
    statuses: Mapping[str, TargetStatus] = field(default_factory=dict)
    last: Attempt | None = None
    earlier: tuple[EarlierAttempt, ...] = ()
    update_url: str | None = None
    deferrals: int = 0
    settled_at: int | None = None
    changed_at: int | None = None
    asked_at: int | None = None
    added: bool = False
    order_key: str | None = None
    sequence: int | None = None
    behind: str | None = None
    awaits: str | None = None
    reason: str = ""
    scheduled: bool = False
    version: int = 0

    @property
    def delivery_id(self) -> str:
        """Unique among all deliveries of the project."""
        return f"{self.message_id}.{self.subscriber_id}"

    @property
    def key(self) -> DeliveryKey:
        """The key it is stored under."""
        return DeliveryKey(self.project, self.queue_uid, self.message_id, self.subscriber_id)

    @property
    def settled(self) -> bool:
        """Whether it has reached a final state."""
        return self.state in SETTLED

    @property
    def declined(self) -> bool:
        """Whether its subscriber's own rules wanted none of it."""
        return self.state is DeliveryState.CANCELLED and self.reason == DECLINED

    @property
    def begun(self) -> bool:
        """Whether its automatic tries have begun."""
        return self.state is not DeliveryState.PENDING or self.deferrals > 0

    @property
    def wakes_at(self) -> int | None:
        """When the next step is due, epoch milliseconds: at its due time, or when it expires.

        A reservation may outlast the message.
        """
        if self.due_at is None or self.state is DeliveryState.RESERVED:
            return self.due_at
        return min(self.due_at, self.expires_at)

    @property
    def target(self) -> str:
        """The subscriber to ask next."""
        return self.targets[self.cursor]

    def status(self, subscriber_id: str) -> TargetStatus:
        """The last answer of that subscriber; an empty status before its first try."""
        return self.statuses.get(subscriber_id, TargetStatus())


class Step(StrEnum):
    """What to do with a delivery next."""

    ATTEMPT = "attempt"
    ASKED_TRY = "asked_try"
    """The try that a person asked for."""
    WAIT = "wait"
    CLOSE = "close"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """The next step of a delivery.

    Attributes:
        wait_ms: With ``WAIT``: milliseconds until the next look.
        closes_as: With ``CLOSE``: the state it ends in.
    """

    step: Step
    wait_ms: int = 0
    closes_as: DeliveryState | None = None


def opening(message: Message, subscriber_id: str) -> Delivery:
    """The delivery of a message that was just accepted.

    Unicast starts each message at a different subscriber, to share the load.

    Args:
        message: The accepted message.
        subscriber_id: One of ``message.delivery_subscribers``.
    """
    targets: tuple[str, ...] = (subscriber_id,)
    if message.unicast:
        start = int(message.message_id) % max(1, len(message.subscriber_ids))
        targets = message.subscriber_ids[start:] + message.subscriber_ids[:start]
    return Delivery(
        project=message.project,
        queue=message.queue,
        queue_uid=message.queue_uid,
        message_id=message.message_id,
        subscriber_id=subscriber_id,
        targets=targets,
        accepted_at=message.accepted_at,
        expires_at=message.expires_at,
        due_at=message.due_at,
        delayed_until=_delayed_until(message),
        order_key=message.ordering.key if message.ordering else None,
        sequence=message.ordering.sequence if message.ordering else None,
    )


def next_step(delivery: Delivery, policy: RetryPolicy, now: int) -> NextStep:
    """The step that is due now. Safe to call at any time and any number of times.

    Args:
        delivery: As stored.
        policy: The queue's retry policy as it is now.
    """
    if delivery.asked_at is not None and now < delivery.expires_at:
        return NextStep(step=Step.ASKED_TRY)
    wakes_at = delivery.wakes_at
    if delivery.settled or wakes_at is None:
        outlived = _without_automatic_tries(delivery) and now >= delivery.expires_at
        return NextStep(step=Step.CLOSE, closes_as=DeliveryState.EXPIRED) if outlived else NextStep(step=Step.NOTHING)
    if wakes_at > now:
        return NextStep(step=Step.WAIT, wait_ms=wakes_at - now)
    if now >= delivery.expires_at:
        return NextStep(step=Step.CLOSE, closes_as=DeliveryState.EXPIRED)
    starts_a_try = delivery.cursor == 0
    if starts_a_try and policy.max_tries is not None and delivery.tries >= policy.max_tries:
        used_up = DeliveryState.HELD if policy.holds else DeliveryState.EXHAUSTED
        return NextStep(step=Step.CLOSE, closes_as=used_up)
    return NextStep(step=Step.ATTEMPT)


def after_attempt(
    delivery: Delivery,
    answer: Answer,
    verdict: Verdict,
    *,
    policy: RetryPolicy,
    reserve_ms: int,
    jitter: float,
    subscriber: str = "",
    url: str | None = None,
    dialect: str = "raw",
    update_url: str | None = None,
    asked: Asked = NOTHING_ASKED,
) -> Delivery:
    """The delivery after an attempt at its current target.

    Args:
        delivery: As it was when the attempt began; not settled.
        verdict: What that means in the subscriber's dialect.
        reserve_ms: Milliseconds that a 202 reserves, or that a polling or postponing answer asks to wait.
        jitter: Random number in 0..1.
        url: Its URL; None leaves the status without name and URL.
        dialect: Dialect it was sent in, for the record.
        update_url: With ``Verdict.POLL``: where to poll next.
        asked: What the answer asks for. In unicast, disabling a subscriber stops nothing while others can be asked, and
            only the wait requested by the last one of a round counts.
    """
    failed = verdict is Verdict.FAILED
    stopped = asked.stops is Stops.DELIVERY or (asked.stops is Stops.SUBSCRIBER and len(delivery.targets) == 1)
    round_goes_on = failed and not stopped and delivery.cursor + 1 < len(delivery.targets)
    spared = failed and asked.spares
    counts = not (round_goes_on or spared or verdict is Verdict.POSTPONED)
    tries = delivery.tries + counts
    asks_at = delivery.update_url
    settled_at: int | None = None
    due_at: int | None
    if verdict is Verdict.DELIVERED:
        state, due_at, settled_at = DeliveryState.DELIVERED, None, answer.finished_at
    elif verdict is Verdict.RESERVED:
        state, due_at = DeliveryState.RESERVED, answer.finished_at + reserve_ms
    elif verdict is Verdict.POLL:
        # The subscriber accepted the work: earlier failures no longer count, and it is never posted again.
        state, due_at, tries, asks_at = DeliveryState.POLLING, answer.finished_at + reserve_ms, 0, update_url
    elif verdict is Verdict.POSTPONED:
        state, due_at = DeliveryState.PENDING, answer.finished_at + reserve_ms
    elif round_goes_on:
        state, due_at = DeliveryState.RETRYING, answer.finished_at
    else:
        wait = None if stopped else 0 if spared else policy.wait_ms(tries, jitter)
        if wait is None and policy.holds:
            state, due_at = DeliveryState.HELD, None
        elif wait is None:
            state, due_at, settled_at = DeliveryState.EXHAUSTED, None, answer.finished_at
        else:
            state, due_at = DeliveryState.RETRYING, answer.finished_at + max(wait, asked.wait_ms)
    attempted = _with_attempt(
        delivery, delivery.target, answer, verdict, due_at, name=None if url is None else subscriber, url=url
    )
    last = attempted.last and replace(
        attempted.last, subscriber=subscriber, dialect=dialect, tries_max=policy.max_tries
    )
    return replace(
        attempted,
        last=last,
        state=state,
        due_at=due_at,
        tries=tries,
        cursor=delivery.cursor + 1 if round_goes_on else 0,
        update_url=asks_at,
        deferrals=delivery.deferrals + (verdict is Verdict.POSTPONED),
        settled_at=settled_at,
        reason=asked.reason if failed and stopped else "",
    )


def _with_attempt(
    delivery: Delivery,
    target: str,
    answer: Answer,
    verdict: Verdict,
    due_at: int | None,
    *,
    name: str | None = None,
    url: str | None = None,
    manual: bool = False,
) -> Delivery:
    """``delivery`` with one more attempt recorded; the caller sets the state."""
    before = delivery.last.finished_at if delivery.last else delivery.accepted_at
    old = delivery.status(target)
    said = _beginning(answer) if dialect_of(delivery.queue) == RAW else ""
    kept, earlier = _with_room_for(said, known_attempts(delivery)[-MOST_EARLIER:])
    status = TargetStatus(
        tries=old.tries + 1,
        status_code=answer.status_code,
        message=_share(answer.message, len(delivery.targets)),
        last_try_at=answer.finished_at,
        name=old.name if name is None else name,
        url=old.url if url is None else url,
    )
    attempt = Attempt(
        number=delivery.attempts + 1,
        subscriber_id=target,
        verdict=verdict,
        status_code=answer.status_code,
        error_class=answer.error_class,
        started_at=answer.started_at,
        finished_at=answer.finished_at,
        bytes_out=answer.bytes_out,
        bytes_in=answer.bytes_in,
        wait_before_ms=max(0, answer.started_at - before),
        wait_after_ms=None if due_at is None else max(0, due_at - answer.finished_at),
        poll=delivery.update_url is not None,
        manual=manual,
        answer=kept,
    )
    return replace(
        delivery,
        attempts=delivery.attempts + 1,
        statuses={**delivery.statuses, target: status},
        last=attempt,
        earlier=earlier,
        scheduled=False,
        version=delivery.version + 1,
    )


def with_proof(delivery: Delivery, proof: Proof) -> Delivery:
    """A delivery whose last attempt showed this."""
    if delivery.last is None or proof == NO_PROOF:
        return delivery
    return replace(delivery, last=replace(delivery.last, proof=proof))


def known_attempts(delivery: Delivery) -> tuple[EarlierAttempt, ...]:
    """All attempts of a delivery that are known, oldest first; none of other queues than owners'."""
    last = delivery.last
    if last is None or dialect_of(delivery.queue) != RAW:
        return delivery.earlier
    attempt = EarlierAttempt(
        number=last.number,
        subscriber_id=last.subscriber_id,
        verdict=last.verdict,
        status_code=last.status_code,
        message=_share(delivery.status(last.subscriber_id).message, len(delivery.targets)),
        started_at=last.started_at,
        took_ms=last.finished_at - last.started_at,
        manual=last.manual,
        answer=last.answer,
    )
    return (*delivery.earlier, attempt)


def _beginning(answer: Answer) -> str:
    """What is kept of an answer's body at most."""
    return "" if answer.error_class else _cut(answer.body.decode(errors="replace"), ANSWER_BYTES)


def _cut(text: str, size: int) -> str:
    return text.encode(errors="replace")[:size].decode(errors="ignore")


def _with_room_for(said: str, earlier: tuple[EarlierAttempt, ...]) -> tuple[str, tuple[EarlierAttempt, ...]]:
    """What is kept of the last answer, and the attempts before it with what there is room for: the newest answers.
    Several in a row that say the same take the room of one, as in an outage.
    """
    room = max(_LEAST_ANSWERS_BYTES, _ANSWERS_BYTES - _LESS_FOR_EACH * len(earlier))
    kept = newer = _cut(said, room)
    room -= len(kept.encode())
    found: list[EarlierAttempt] = []
    for each in reversed(earlier):
        if each.answer != newer:
            room -= len(each.answer.encode())
        newer = each.answer
        found.append(each if room >= 0 else replace(each, answer=""))
    return kept, tuple(reversed(found))


def _share(text: str, targets: int) -> str:
    """A text cut to the share that one of this many targets may store."""
    return _cut(text, STATUS_TEXT_BYTES // targets)


def with_span(delivery: Delivery, span: Span | None) -> Delivery:
    """The delivery whose last attempt has a place in a trace."""
    if span is None or delivery.last is None:
        return delivery
    return replace(delivery, last=replace(delivery.last, span=span))


def merge_attempt(
    current: Delivery,
    begun: Delivery,
    answer: Answer,
    verdict: Verdict,
    *,
    subscriber: str = "",
    url: str | None = None,
    dialect: str = "raw",
) -> Delivery | None:
    """The delivery with an attempt recorded that finished after the delivery changed; None when there is nothing to
    write.

    Two things can have happened. Its subscriber acknowledged it, a manual try, its owner or its time ended it: the
    attempt is recorded, as it was made, and the end stands. Or a duplicate of the same work was recorded first:
    success still counts, a second failure does not.

    Args:
        current: As stored now.
        begun: As it was when the attempt began.
    """
    if current.settled and not _tried_since(begun, current):
        return _with_late_attempt(current, begun, answer, verdict, subscriber=subscriber, url=url, dialect=dialect)
    if current.settled or verdict is not Verdict.DELIVERED:
        return None
    old = current.status(begun.target)
    status = replace(old, status_code=answer.status_code, message=answer.message, last_try_at=answer.finished_at)
    return replace(
        current,
        state=DeliveryState.DELIVERED,
        due_at=None,
        settled_at=answer.finished_at,
        statuses={**current.statuses, begun.target: status},
        scheduled=False,
        version=current.version + 1,
    )


def _tried_since(begun: Delivery, current: Delivery) -> bool:
    """Whether an automatic try was recorded since, or may have been."""
    more = current.attempts - begun.attempts
    if not more:
        # Without an attempt only a duplicate finds that it is given up.
        return current.state is DeliveryState.EXHAUSTED
    if more == 1 and current.last is not None:
        return not current.last.manual
    since = [each.manual for each in known_attempts(current) if each.number > begun.attempts]
    return len(since) != more or not all(since)


def _with_late_attempt(
    current: Delivery,
    begun: Delivery,
    answer: Answer,
    verdict: Verdict,
    *,
    subscriber: str,
    url: str | None,
    dialect: str,
) -> Delivery:
    """A settled delivery with an attempt that was under way when it was settled."""
    name = None if url is None else subscriber
    folded = _with_attempt(current, begun.target, answer, verdict, None, name=name, url=url)
    status = folded.status(begun.target)
    if current.state in (DeliveryState.DELIVERED, DeliveryState.ACKNOWLEDGED):
        arrived = current.status(begun.target)
        status = replace(status, status_code=arrived.status_code, message=arrived.message)
    # An acknowledgement takes the place of the earlier attempt's message.
    known = known_attempts(begun if current.attempts == begun.attempts else current)
    _, earlier = _with_room_for(folded.last.answer if folded.last else "", known[-MOST_EARLIER:])
    return replace(
        folded,
        last=folded.last and replace(folded.last, subscriber=subscriber, dialect=dialect),
        tries=current.tries + 1,
        statuses={**folded.statuses, begun.target: status},
        earlier=earlier,
    )


def acknowledge(
    delivery: Delivery, subscriber_id: str, attempt: int, now: int, *, name: str | None = None, url: str | None = None
) -> Delivery:
    """The delivery after a subscriber acknowledged one of its attempts.

    The caller has already checked the reservation that belongs to ``attempt``. It is valid while the attempt is in
    progress, and afterwards until the next try is due, whatever status the answer had; after that it is superseded.

    Args:
        delivery: As stored.
        subscriber_id: The subscriber that acknowledges.
        attempt: Number of the attempt whose reservation was shown.
        name: The subscriber's current name, for an attempt still in progress; None when the subscriber was removed.

    Returns:
        The acknowledged delivery, or the same object if this attempt had already acknowledged or delivered it.

    Raises:
        Forbidden: The reservation timed out or was superseded.
    """
    accepted = delivery.state in (DeliveryState.ACKNOWLEDGED, DeliveryState.DELIVERED)
    if accepted and attempt in (delivery.acknowledged_attempt, delivery.attempts):
        return delivery
    under_way = attempt == delivery.attempts + 1
    still_good = attempt == delivery.attempts and delivery.due_at is not None and now < delivery.due_at
    if delivery.settled or not (under_way or still_good):
        raise Forbidden("Reservation has timed out")
    asked = delivery.status(subscriber_id)
    status = replace(
        asked,
        status_code=200,
        message="Message was acknowledged.",
        last_try_at=now,
        name=asked.name if asked.name is not None else name,
        url=asked.url if asked.url is not None else url,
    )
    return replace(
        delivery,
        state=DeliveryState.ACKNOWLEDGED,
        due_at=None,
        cursor=0,
        acknowledged_attempt=attempt,
        statuses={**delivery.statuses, subscriber_id: status},
        settled_at=now,
        scheduled=False,
        version=delivery.version + 1,
    )


def close(delivery: Delivery, state: DeliveryState, now: int, reason: str = "") -> Delivery:
    """The delivery settled without an attempt (expired, cancelled, or exhausted by a 202 that was never acknowledged),
    or held for a person.

    Args:
        delivery: As stored; not settled.
        state: One of the settled states, or ``HELD``.
        reason: Why, where the state alone does not say.
    """
    return replace(
        delivery,
        state=state,
        due_at=None,
        cursor=0,
        settled_at=now if state in SETTLED else None,
        changed_at=delivery.changed_at if state in SETTLED else now,
        asked_at=None,
        reason=reason,
        scheduled=False,
        version=delivery.version + 1,
    )


def without_target(
    delivery: Delivery, here: Collection[str], policy: RetryPolicy, *, now: int, jitter: float, reason: str
) -> Delivery:
    """The delivery whose next subscriber was removed or disabled. Nobody was asked, so no attempt is counted.

    Args:
        delivery: As stored; due now.
        here: Ids of the subscribers that the queue can push to.
        jitter: Random number in 0..1.
        reason: Why that subscriber is not asked; recorded if the delivery ends because no subscriber or no try is left.

    Returns:
        The delivery with another subscriber next, which needs no write (its version stays the same); or with its round
        over; or exhausted, because no subscriber or no try is left.
    """
    rest = range(delivery.cursor + 1, len(delivery.targets))
    following = next((each for each in rest if delivery.targets[each] in here), None)
    if following is not None:
        return replace(delivery, cursor=following)
    if not any(each in here for each in delivery.targets):
        return close(delivery, DeliveryState.EXHAUSTED, now, reason)
    # The subscribers asked earlier in this round failed.
    tries = delivery.tries + 1
    wait = policy.wait_ms(tries, jitter)
    if wait is None:
        closed = close(delivery, DeliveryState.HELD if policy.holds else DeliveryState.EXHAUSTED, now, reason)
        return replace(closed, tries=tries)
    return replace(
        delivery,
        state=DeliveryState.RETRYING,
        due_at=now + wait,
        tries=tries,
        cursor=0,
        changed_at=now,
        scheduled=False,
        version=delivery.version + 1,
    )


def resume(delivery: Delivery, now: int) -> Delivery:
    """The delivery made due at once because a person wants it tried now; a held one gets all its tries again.

    It waits in the schedule until then, so this single write is enough to get it tried.

    Args:
        delivery: As stored; not settled.

    Raises:
        Forbidden: It is settled.
    """
    if delivery.settled:
        raise Forbidden("Delivery is settled")
    left_alone = delivery.state is DeliveryState.HELD
    return replace(
        delivery,
        state=DeliveryState.RETRYING if left_alone else delivery.state,
        due_at=now,
        tries=0 if left_alone else delivery.tries,
        deferrals=0,
        changed_at=now,
        reason="",
        scheduled=True,
        version=delivery.version + 1,
    )


def ask_for_try(delivery: Delivery, now: int) -> Delivery:
    """The delivery with a manual try requested, in addition to its automatic tries and possible even after those are
    over.

    The try is made at once. It is not repeated if it fails, and it uses up none of the automatic tries. Whoever asks
    again before it has begun gets one try, whoever does so later gets another one: ``asked_at`` differs each time.

    Args:
        delivery: As stored, or newly opened.

    Raises:
        Forbidden: It expired, its owner deleted it, it is a unicast delivery, or its subscriber is working on it.
    """
    cancelled = delivery.state is DeliveryState.CANCELLED and not delivery.declined
    over = cancelled or delivery.state is DeliveryState.EXPIRED or now >= delivery.expires_at
    if over or len(delivery.targets) > 1 or delivery.subscriber_id != delivery.targets[0] or delivery.update_url:
        raise Forbidden("Delivery cannot be tried again")
    asked_at = now if delivery.asked_at is None else max(now, delivery.asked_at + 1)
    return replace(delivery, asked_at=asked_at, version=delivery.version + 1)


def added(message: Message, subscriber_id: str, *, due_at: int | None) -> Delivery:
    """A delivery of a message to a subscriber it was not originally owed to; not stored yet.

    Args:
        subscriber_id: A subscriber of its queue, not among ``message.delivery_subscribers``.
        due_at: When its automatic tries begin, epoch milliseconds; None if it gets none.
    """
    return Delivery(
        project=message.project,
        queue=message.queue,
        queue_uid=message.queue_uid,
        message_id=message.message_id,
        subscriber_id=subscriber_id,
        targets=(subscriber_id,),
        accepted_at=message.accepted_at,
        expires_at=message.expires_at,
        due_at=due_at,
        delayed_until=_delayed_until(message),
        added=True,
    )


def _delayed_until(message: Message) -> int | None:
    return message.due_at if message.due_at > message.accepted_at else None


def after_asked_try(
    delivery: Delivery,
    answer: Answer,
    verdict: Verdict,
    *,
    asked_at: int | None,
    asked: Asked = NOTHING_ASKED,
    subscriber: str = "",
    url: str | None = None,
    dialect: str = "raw",
) -> Delivery:
    """The delivery after a manual try: delivered, or unchanged except that the attempt is recorded.

    Args:
        delivery: As stored now; a manual try is pending.
        asked_at: The request that the attempt began for. If there has been another one since, it stays.
        verdict: What the answer means; only a success changes the state.
        asked: What the answer asks for: it may end the automatic tries too.
    """
    attempted = _with_attempt(
        delivery,
        delivery.target,
        answer,
        verdict,
        delivery.due_at,
        name=None if url is None else subscriber,
        url=url,
        manual=True,
    )
    last = attempted.last and replace(attempted.last, subscriber=subscriber, dialect=dialect)
    later = None if delivery.asked_at == asked_at else delivery.asked_at
    tried = replace(attempted, last=last, asked_at=later, scheduled=delivery.scheduled)
    arrived = delivery.state in (DeliveryState.DELIVERED, DeliveryState.ACKNOWLEDGED)
    if verdict is Verdict.DELIVERED and not arrived:
        ended, reason = DeliveryState.DELIVERED, ""
    elif _without_automatic_tries(delivery) or (asked.stops is Stops.DELIVERY and not delivery.settled):
        ended, reason = DeliveryState.EXHAUSTED, asked.reason
    else:
        return tried
    # Nothing follows, whatever was arranged before.
    last = tried.last and replace(tried.last, wait_after_ms=None)
    return replace(
        tried, last=last, state=ended, due_at=None, settled_at=answer.finished_at, reason=reason, scheduled=False
    )


def without_asked_try(delivery: Delivery, now: int, reason: str) -> Delivery:
    """The delivery whose manual try cannot be made because its subscriber was removed or disabled.

    Args:
        delivery: As stored; a manual try is pending.
        reason: Why; also ends a delivery that has no automatic tries.
    """
    if _without_automatic_tries(delivery):
        return close(delivery, DeliveryState.EXHAUSTED, now, reason)
    return replace(delivery, asked_at=None, changed_at=now, version=delivery.version + 1)


def _without_automatic_tries(delivery: Delivery) -> bool:
    return delivery.state is DeliveryState.PENDING and delivery.due_at is None


def counts_as_it_is(current: Delivery, begun: Delivery) -> bool:
    """Whether an attempt is recorded as usual although its delivery changed: automatic and manual tries are
    independent.

    Args:
        current: As stored now.
        begun: As it was when the attempt began.
    """
    if begun.asked_at is not None:
        # Asked for again meanwhile: the attempt was for the first request, and counts.
        return current.asked_at is not None
    same = ("state", "due_at", "tries", "cursor", "update_url")
    return not current.settled and all(getattr(current, each) == getattr(begun, each) for each in same)


def schedule(delivery: Delivery) -> Delivery:
    """The delivery with its wait moved to the schedule, about to be stored; the version is not changed here."""
    return replace(delivery, scheduled=True)


def retries_remaining(delivery: Delivery, policy: RetryPolicy) -> int:
    """Retries left: the first try takes none of them, each later one takes one; 0 at the end."""
    if policy.max_tries is None:
        return 0
    if delivery.state in (DeliveryState.EXHAUSTED, DeliveryState.EXPIRED):
        return 0
    return max(0, policy.max_tries - max(1, delivery.tries))
