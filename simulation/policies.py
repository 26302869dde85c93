"""Rules for subscribers with a circuit, or whose answers are obeyed, and for messages with ordering keys.

They are checked against what endpoints received and what was written.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from pushhub.engine.attempts.circuits import FRESH_MS
from pushhub.engine.model.circuit import CircuitState, Health
from pushhub.engine.model.message import Message
from simulation.account import START_MS
from simulation.endpoints import Asked, Endpoint
from simulation.promises.judgement import Violation
from simulation.scheduler import SECOND
from simulation.truth import Truth

UNDER_WAY = FRESH_MS * 1000 + 30 * SECOND
"""A request may begin this long (microseconds) after its sender read that the circuit is closed: cached state is used
for ten seconds, and calls take their time.
"""

A_RUN = 50 * SECOND
"""Within this time there is at most one run of wake that releases orders; a slow one may reach into the next."""


def left_alone(truth: Truth, endpoint: Endpoint, subscriber_id: str, clocks_off_ms: int) -> Iterator[Violation]:
    """While a circuit is open, only probes are made, one at a time and none before its time.

    Waiting orders follow the ramp. A person who asks for a manual try knows about the circuit, so such requests do not
    count.
    """
    history = truth.circuits.get(subscriber_id, [])
    log = [each for each in endpoint.log if not truth.asked_by_hand((each.message_id, subscriber_id), each.at)]
    for (_, before), (at, after) in pairwise(history):
        if _claims(before, after) and START_MS + at // 1000 < before.probe_at - clocks_off_ms:
            detail = (
                f"{endpoint.name} at {_clock(at)}, {(before.probe_at - START_MS - at // 1000) / 1000:.1f} s too soon"
            )
            yield Violation("probed before its time", subscriber_id, detail)
    for begins, ends in _open(history):
        claims = [
            at for (_, before), (at, after) in pairwise(history) if begins < at <= ends and _claims(before, after)
        ]
        alone = [each for each in log if begins + UNDER_WAY < each.at < ends]
        for each in alone:
            claim = next((at for at in claims if each.at - UNDER_WAY <= at <= each.at), None)
            if claim is None:
                detail = f"{endpoint.name} at {_clock(each.at)}, open since {_clock(begins)}"
                yield Violation("asked while its circuit was open", each.message_id, detail)
            else:
                claims.remove(claim)
        for earlier, later in pairwise(alone):
            if earlier.ended_at is None or later.at < earlier.ended_at:
                detail = f"{endpoint.name} at {_clock(earlier.at)} and {_clock(later.at)}"
                yield Violation("two probes at a time", later.message_id, detail)
    yield from _ramp(truth, endpoint, subscriber_id, history)


def _claims(before: Health, after: Health) -> bool:
    """Whether a write claims the probe of an open circuit."""
    still = before.state is CircuitState.OPEN and after.state is CircuitState.OPEN
    return still and after.probe_at > before.probe_at and after.probes == before.probes


def _open(history: Sequence[tuple[int, Health]]) -> Iterator[tuple[int, int]]:
    """The periods in which a circuit was open, microseconds."""
    since: int | None = None
    for at, health in history:
        if health.state is CircuitState.OPEN:
            since = at if since is None else since
        elif since is not None:
            yield since, at
            since = None
    if since is not None:
        yield since, 10**18


def _ramp(
    truth: Truth, endpoint: Endpoint, subscriber_id: str, history: Sequence[tuple[int, Health]]
) -> Iterator[Violation]:
    times = truth.let_go.get(subscriber_id, [])
    for at in times:
        place = bisect.bisect_right(history, at, key=lambda each: each[0])
        health = history[place - 1][1] if place else None
        if health is None or health.state is CircuitState.CLOSED:
            continue
        most = 2 * (1 if health.state is CircuitState.OPEN else 10 * 2**health.ramped)
        count = bisect.bisect_right(times, at) - bisect.bisect_left(times, at - A_RUN)
        # Requests that a closed circuit allowed just before it opened again are not part of the ramp.
        if count > most and (place < 2 or at - history[place - 1][0] > A_RUN):
            detail = (
                f"{endpoint.name}: {count} let go within a minute at {_clock(at)}, {health.state} for {health.ramped} "
                f"minutes"
            )
            yield Violation("more let go than its ramp allows", subscriber_id, detail)
            return


def in_order(
    truth: Truth, messages: Sequence[Message], requests: Mapping[tuple[str, str], Sequence[Asked]]
) -> Iterator[Violation]:
    """Of one key, a message is first asked about when the one before it at that subscriber has ended, its time is over,
    or it was cleared; if it was deleted before its turn, when the one before that has.

    Args:
        truth: What was written.
        messages: The messages that have an ordering key.
        requests: By message and subscriber's id, in order of time.
    """
    places: dict[tuple[str, str, int], str] = {}
    for message in messages:
        assert message.ordering is not None
        place = message.queue_uid, message.ordering.key, message.ordering.sequence
        if places.setdefault(place, message.message_id) != message.message_id:
            yield Violation("two at one place", message.message_id, f"{place} is {places[place]} too")
        for subscriber_id, before in message.ordering.previous.items():
            asked = requests.get((message.message_id, subscriber_id))
            if not asked:
                continue
            began = asked[0].at
            if any(each.asked for each in truth.deliveries.get((message.message_id, subscriber_id), ())):
                # A manual try keeps no order; for the others it is known when the first of them was written.
                history = truth.deliveries[message.message_id, subscriber_id]
                tried = next((each.at for each in history if each.tries), None)
                if tried is None:
                    continue
                began = tried
            over = _over_at(truth, message.queue_uid, before, subscriber_id)
            if over is None or began < over:
                detail = (
                    f"asked at {_clock(began)}, {before} ended at {_clock(over) if over is not None else 'no time'}"
                )
                yield Violation("out of order", message.message_id, detail)
    for (queue_uid, key, sequence), message_id in places.items():
        if sequence > 1 and (queue_uid, key, sequence - 1) not in places:
            yield Violation("a place left out", message_id, f"{key} has no {sequence - 1}")


def _over_at(truth: Truth, queue_uid: str, message_id: str, subscriber_id: str) -> int | None:
    """From when on a message holds back none behind it, microseconds; None if it still does."""
    accepted = truth.accepted[queue_uid, message_id]
    message = accepted.message
    cleared = (
        at
        for at, queue in truth.queues[message.queue]
        if queue is not None and queue.uid == queue_uid and queue.cleared_at >= message.accepted_at
    )
    times = (truth.settled_at(message_id, subscriber_id), accepted.gone_at, next(cleared, None))
    over = min((each for each in times if each is not None), default=None)
    before = message.ordering.previous.get(subscriber_id) if message.ordering else None
    history = truth.deliveries.get((message_id, subscriber_id), ())
    had_its_turn = any(each.tries or each.state not in {"pending", "cancelled"} for each in history)
    if over is None or before is None or had_its_turn or not any(each.state == "cancelled" for each in history):
        return over
    earlier = _over_at(truth, queue_uid, before, subscriber_id)
    return None if earlier is None else max(over, earlier)


def _clock(at: int) -> str:
    return f"{at / SECOND:.3f} s"
