"""Webhooks: when and how often an endpoint is sent each message, by Svix's schedule, and with which bytes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulation.promises.judgement import SECOND, Faults, Judgement, Told, moment
from simulation.promises.push import FOREVER, Listed, Meaning, Owed, Pushes, Request, Seen, Terms

SCHEDULE = Listed((5, 300, 1_800, 7_200, 18_000, 36_000, 36_000), (0.8, 1.2))
"""Waits after each failed try, seconds, each up to a fifth shorter or longer."""

GONE, TOO_MANY = 410, 429
SLOW_DOWN_S = 60
FOR_EVER_S = 10**9
NEVER_POSTED, TWO_POSTS, NOBODYS = "sent and never posted", "an identifier twice", "sent to another application"


@dataclass(frozen=True)
class Posted:
    """A message that was posted, with its first request and the last one, which was answered or not."""

    app: int
    payload: Mapping[str, Any]
    told: Told
    message_id: str = ""


@dataclass(frozen=True)
class Endpoint:
    """An endpoint.

    Attributes:
        app: Its application.
        changed: When its owner disabled, enabled or deleted it, or asked for that, microseconds.
    """

    app: int
    changed: Sequence[int]


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
        resent: Mapping[tuple[str, str], Sequence[Told]],
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
                self._judgement.fact(each.message_id not in known, TWO_POSTS, each.message_id, str(each.told))
                known[each.message_id] = each
        unanswered = {json.dumps(each.payload): each for each in posted if not each.message_id}
        asked: dict[tuple[str, str], list[Request]] = defaultdict(list)
        gone: dict[str, list[int]] = defaultdict(list)
        for request in sorted(requests, key=lambda each: each.at):
            asked[request.message_id, request.receiver].append(request)
            if request.status == GONE:
                gone[request.receiver].append(request.at)
        for (message_id, name), own in asked.items():
            endpoint, message = self._endpoints[name], known.get(message_id)
            if message is None:
                message = unanswered.get(json.dumps(json.loads(own[0].body)))
            told = f"{name} at {moment(own[0].at)}: {own[0].body[:60]!r}"
            if not self._judgement.fact(message is not None, NEVER_POSTED, message_id, told) or message is None:
                continue
            self._judgement.fact(message.app == endpoint.app, NOBODYS, message_id, told)
            owed = Owed(
                message_id,
                name,
                frozenset({name}),
                message.told,
                0,
                FOR_EVER_S,
                [Terms(0, FOREVER, SCHEDULE)],
                by_hand=list(resent.get((message_id, name), ())),
                # Rates, circuits and ordering keys hold messages up.
                prompt=False,
            )
            owed.disturbed = min(
                (at for at in [*endpoint.changed, *gone[name]] if at >= message.told.asked - SECOND), default=FOREVER
            )
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
