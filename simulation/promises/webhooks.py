"""Webhooks: when and how often an endpoint is sent each message, by Svix's schedule, and with which bytes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulation.promises.judgement import SECOND, Exchange, Faults, Judgement, moment
from simulation.promises.push import FOREVER, Listed, Meaning, Owed, Pushes, Request, Seen, Terms

SCHEDULE = Listed((5, 300, 1_800, 7_200, 18_000, 36_000, 36_000), (0.8, 1.2))
"""Waits after each failed try, seconds, each up to a fifth shorter or longer."""

GONE, TOO_MANY = 410, 429
SLOW_DOWN_S = 60
FOR_EVER_S = 10**9
CALM_FAILURES = 10
"""So many failures one after another open no circuit."""

RAMP_S = 7_200
"""Once an endpoint is well, what its circuit held back is let go within this time."""

NEVER_POSTED, TWO_POSTS, NOBODYS = "sent and never posted", "an identifier twice", "sent to another application"


@dataclass(frozen=True)
class Posted:
    """A message that was posted, with its first request and the last one, which was answered or not.

    Attributes:
        ordered: Whether it waits for others of its key.
    """

    app: int
    payload: Mapping[str, Any]
    exchange: Exchange
    message_id: str = ""
    ordered: bool = False


@dataclass(frozen=True)
class Endpoint:
    """An endpoint.

    Attributes:
        app: Its application.
        changed: From when to when its owner was about to disable, enable, change or delete it, microseconds.
        limited: Whether it has a rate.
    """

    app: int
    changed: Sequence[tuple[int, int]]
    limited: bool = False


class Webhooks:
    """Judges a run; arguments as :class:`simulation.promises.push.Pushes`."""

    def __init__(
        self, endpoints: Mapping[str, Endpoint], judgement: Judgement, faults: Faults, *, clocks_s: float, ends: int
    ) -> None:
        self._endpoints = endpoints
        self._judgement = judgement
        self._pushes = Pushes(judgement, faults, clocks_s=clocks_s, ends=ends)

    def judge(
        self,
        posted: Sequence[Posted],
        requests: Sequence[Request],
        resent: Mapping[tuple[str, str], Sequence[Exchange]],
    ) -> None:
        """Judge each message at each endpoint that was ever sent it.

        Args:
            posted: All messages.
            requests: All requests that endpoints saw.
            resent: What people asked for, by message and endpoint.
        """
        known: dict[str, Posted] = {}
        for each in posted:
            if each.message_id:
                self._judgement.fact(each.message_id not in known, TWO_POSTS, each.message_id, str(each.exchange))
                known[each.message_id] = each
        unanswered = {json.dumps(each.payload): each for each in posted if not each.message_id}
        asked: dict[tuple[str, str], list[Request]] = defaultdict(list)
        gone: dict[str, list[int]] = defaultdict(list)
        held = _held(requests)
        for request in sorted(requests, key=lambda each: each.at):
            asked[request.message_id, request.receiver].append(request)
            if request.status == GONE:
                gone[request.receiver].append(request.at)
        for (message_id, name), own in asked.items():
            endpoint, message = self._endpoints[name], known.get(message_id)
            if message is None:
                message = unanswered.get(json.dumps(json.loads(own[0].body)))
            detail = f"{name} at {moment(own[0].at)}: {own[0].body[:60]!r}"
            if not self._judgement.fact(message is not None, NEVER_POSTED, message_id, detail) or message is None:
                continue
            self._judgement.fact(message.app == endpoint.app, NOBODYS, message_id, detail)
            owed = Owed(
                message_id,
                name,
                frozenset({name}),
                message.exchange,
                0,
                FOR_EVER_S,
                [Terms(0, FOREVER, SCHEDULE)],
                by_hand=list(resent.get((message_id, name), ())),
                prompt=not endpoint.limited and not message.ordered,
            )
            owed.held = next((max(begins, 0) for begins, ends in held[name] if ends >= message.exchange.asked), FOREVER)
            since = message.exchange.asked - SECOND
            changes = [*endpoint.changed, *((at, at) for at in gone[name])]
            owed.disturbed = min((max(begins, since) for begins, ends in changes if ends >= since), default=FOREVER)
            self._pushes.judge(owed, [self._seen(each, message) for each in own])

    @staticmethod
    def _seen(each: Request, message: Posted) -> Seen:
        exact = json.loads(each.body) == message.payload
        meaning = Meaning.TAKEN if 200 <= each.status < 300 else Meaning.FAILED
        if each.status == GONE:
            meaning = Meaning.ENDED
        wait_s = max(each.wait_s, SLOW_DOWN_S) if each.status == TOO_MANY else each.wait_s
        of = "" if exact else f"{each.body[:60]!r} for {json.dumps(message.payload)[:60]}"
        return Seen(each.at, each.ended, each.receiver, exact, meaning, wait_s if each.status else 0, of)


def _held(requests: Sequence[Request]) -> Mapping[str, Sequence[tuple[int, int]]]:
    """When circuits may hold up what is owed to each endpoint: from many failures until some time after a success."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    failures: dict[str, int] = defaultdict(int)
    for each in sorted(requests, key=lambda request: request.ended):
        own = found[each.receiver]
        if not 200 <= each.status < 300:
            failures[each.receiver] += 1
            if failures[each.receiver] == CALM_FAILURES:
                own.append((each.ended, FOREVER))
            continue
        failures[each.receiver] = 0
        if own and own[-1][1] == FOREVER:
            own[-1] = own[-1][0], each.ended + RAMP_S * SECOND
    return found
