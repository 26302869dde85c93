"""The hub protocol: what each service is sent of the messages of its types, from what was pushed and answered, what the
owner and the person who looks after held messages did, and what services saw and answered.

A service that fails is asked again without an end, unless its mapping says how often: then the message waits for a
person. An answer with ``delay`` and ``update_url`` means that it works on the message: from then on that address is
asked, and earlier failures no longer count. ``delay`` alone puts the message off.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulation.promises.judgement import SECOND, Exchange, Faults, Judgement, moment
from simulation.promises.push import FOREVER, Doubling, Meaning, Owed, Pushes, Request, Seen, Terms

SPREAD = 0.2
MADE_OF = "of"
"""What services have made names its origin in this field."""

FOR_EVER_S = 10**9
HANGS_S = 60
"""While a service takes so long, what else is for it waits for its turn (docs/flow-control.md, "The slow lane")."""
NOT_WANTED, NEVER_PUSHED, TWO_PUSHES = "sent and not wanted", "sent and never pushed", "an identifier twice"


@dataclass(frozen=True)
class Service:
    """A service, as the owner set it up.

    Attributes:
        types: The types of messages that it wants.
        base_s: The first wait; it doubles.
        cap_s: The longest one.
        most_attempts: Failed tries until a person is needed; None for no limit.
        off: When its owner had it off, or may have had, microseconds.
    """

    types: frozenset[str]
    base_s: float
    cap_s: float
    most_attempts: int | None = None
    off: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class Pushed:
    """A producer's request; ``message_id`` if it was answered."""

    kind: str
    payload: Mapping[str, Any]
    exchange: Exchange
    message_id: str = ""


@dataclass
class _Known:
    """What was pushed with one payload: the requests, and who saw it under which ids."""

    pushes: list[Pushed] = field(default_factory=list)
    asked: dict[str, dict[str, list[Request]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))


def is_taken(request: Request) -> bool:
    """Whether a service answered that a message is done with."""
    if request.status != 200 or not request.said:
        return False
    return {"delay", "update_url"}.isdisjoint(json.loads(request.said))


class Hub:
    """Judges a run; arguments as :class:`simulation.promises.push.Pushes`."""

    def __init__(
        self, services: Mapping[str, Service], judgement: Judgement, faults: Faults, *, clocks_s: float, ends: int
    ) -> None:
        self._services = services
        self._judgement = judgement
        self._faults = faults
        self._pushes = Pushes(judgement, faults, clocks_s=clocks_s, ends=ends)
        self._hung: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def judge(
        self, pushed: Sequence[Pushed], requests: Sequence[Request], by_hand: Mapping[str, Sequence[Exchange]]
    ) -> None:
        """Judge each message at each service.

        Args:
            pushed: All requests of producers.
            requests: All requests that services saw.
            by_hand: What the person decided, by message.
        """
        known: dict[str, _Known] = defaultdict(_Known)
        for request in sorted(requests, key=lambda each: each.at):
            if request.ended - request.at >= HANGS_S * SECOND:
                self._hung[request.receiver].append((request.at, request.ended))
        ids: set[str] = set()
        for each in pushed:
            if each.message_id:
                self._judgement.fact(each.message_id not in ids, TWO_PUSHES, each.message_id, each.kind)
                ids.add(each.message_id)
            known[json.dumps(each.payload)].pushes.append(each)
        for request in sorted(requests, key=lambda each: each.at):
            content = json.loads(request.body)
            payload = content.get("payload", {})
            key = json.dumps(payload)
            if key not in known and MADE_OF in payload:
                # A message that a service had made.
                known[key].pushes.append(Pushed(content["message"], payload, Exchange(0, request.at, 0)))
            detail = f"{request.receiver} at {moment(request.at)}: {request.body[:60]!r}"
            if self._judgement.fact(key in known, NEVER_PUSHED, request.message_id, detail):
                known[key].asked[request.receiver][request.message_id].append(request)
        for message in known.values():
            for name in self._services:
                copies = message.asked[name]
                if not copies and message.pushes[-1].message_id:
                    copies[message.pushes[-1].message_id] = []
                for message_id, asked in copies.items():
                    hands = by_hand.get(message_id, ())
                    self._delivery(message_id, message.pushes, asked, name, by_hand=hands)

    def _delivery(
        self,
        message_id: str,
        pushes: Sequence[Pushed],
        asked: Sequence[Request],
        name: str,
        *,
        by_hand: Sequence[Exchange],
    ) -> None:
        pushed, service = pushes[-1], self._services[name]
        exchange = Exchange(pushes[0].exchange.asked, pushed.exchange.answered, pushed.exchange.status)
        wanted = pushed.kind in service.types
        for each in asked:
            self._judgement.fact(wanted, NOT_WANTED, message_id, f"{name} at {moment(each.at)}")
        if not wanted:
            return
        self._faults.same(message_id, pushed.message_id)
        waits = Doubling(service.base_s, service.cap_s, SPREAD, service.most_attempts)
        # The store's messages have no end; whether a type is for a service may be a minute old where it was turned off,
        # and is asked late where nothing runs.
        owed = Owed(message_id, name, frozenset({name}), exchange, 0, FOR_EVER_S, [Terms(0, FOREVER, waits)])
        owed.by_hand = list(by_hand)
        # A service that hangs is asked a few at a time: the others wait for their turn.
        owed.held = next(
            (max(at, exchange.asked) for at, ended in self._hung[name] if ended >= exchange.asked), FOREVER
        )
        last = asked[-1].ended if asked else exchange.answered
        asked_by = self._faults.over(last + 60 * SECOND)
        off = [begins for begins, ends in service.off if begins <= asked_by and exchange.asked <= ends]
        if off:
            owed.disturbed = max(exchange.asked, min(off))
        if len(pushes) > 1 or not exchange.done:
            owed.disturbed = exchange.asked
        polls = False
        seen: list[Seen] = []
        for each in asked:
            one = self._seen(each, pushed, polls=polls)
            polls = polls or one.meaning is Meaning.WORKING
            seen.append(one)
        self._pushes.judge(owed, seen)

    @staticmethod
    def _seen(each: Request, pushed: Pushed, *, polls: bool) -> Seen:
        content = json.loads(each.body)
        exact = content.get("payload") == pushed.payload and content.get("message") == pushed.kind
        meaning, wait_s = Meaning.FAILED, 0.0
        if each.status == 200 and each.said:
            said = json.loads(each.said)
            meaning, wait_s = Meaning.TAKEN, float(max(1, said.get("delay", 0)))
            if "update_url" in said or ("delay" in said and polls):
                meaning = Meaning.WORKING
            elif "delay" in said:
                meaning = Meaning.POSTPONED
        of = "" if exact else f"{each.body[:60]!r} for {json.dumps(pushed.payload)[:60]}"
        return Seen(each.at, each.ended, each.receiver, exact, meaning, wait_s, of)
