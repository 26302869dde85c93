"""Consumers of topics as they come and go: whose connection the hub ends and when, who may connect beside or after
whom, what a team that keeps nothing is sent, and which of several consumers removes a subscriber.

Sources: docs/notifications.md ("Consuming", "Our decisions"), and Cumulocity's documents of Notifications 2.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simulation.promises.talks.notifications import Connect, Connected, connecting
from simulation.promises.talks.talk import Talk
from simulation.promises.talks.topic_clients import (
    acknowledge,
    let_back,
    let_in,
    names_of,
    new_rule,
    new_token,
    numbers_of,
    publish,
    source_of,
    unsubscribe,
)

MINUTE = 60
CLOSES_S = 5 * MINUTE
"""A connection without traffic is closed after so long."""
LOOKED_AT_S = 2 * MINUTE
"""Connections are looked at each minute, by clocks that may be off."""

LARGE, AT_ONCE, REQUESTS = 130_000, 30, 6
LARGE_EVERY = 4
"""Many large notifications are published in one run of so many, as that takes a second of CPU."""


def through(talk: Talk, connect: Connect) -> None:
    """Everything."""
    parts = [_closed, _idle, _vanished, _in_turns, _brief_team, _last_of_three]
    talk.through(*connecting(connect, parts + [_large] * (talk.turn % LARGE_EVERY == 0)))


def _rows(talk: Talk, topic: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = talk.ask("GET", f"/subscribers?subscription={topic}")["subscribers"]
    return sorted(rows, key=lambda each: (each["subscriber"], each["nonPersistent"]))


def _over(talk: Talk, rules: Iterable[str], sides: Iterable[Connected], tokens: Iterable[str]) -> None:
    for side in sides:
        side.close()
    talk.sleep(5)
    unsubscribe(talk, *tokens)
    for each in rules:
        talk.ask("DELETE", each, status=204)


def _closed(talk: Talk, connect: Connect) -> None:
    """Whoever removes a subscriber, by REST or on its connection, has the hub end its connections, and no others."""
    rules = [new_rule(talk, "closedTopic"), new_rule(talk, "closedTopic", source="1", nonPersistent=True)]
    tokens = {name: new_token(talk, "closedTopic", name) for name in ("rest", "band", "stays")}
    tokens["brief"] = new_token(talk, "closedTopic", "rest", nonPersistent=True)
    team = [new_token(talk, "closedTopic", "team", shared=True) for _ in range(2)]
    sides = {name: let_in(talk, connect, token) for name, token in tokens.items()}
    sides |= {name: let_in(talk, connect, token, consumer=name) for name, token in zip("ab", team, strict=True)}

    def closed() -> set[str]:
        talk.sleep(5)
        return {name for name, side in sides.items() if side.closed()}

    publish(talk, 1)
    unsubscribe(talk, tokens["rest"])
    talk.came("by REST", {"rest"}, closed())
    sides["band"].send("unsubscribe_subscriber")
    talk.came("on the connection", {"rest", "band"}, closed())
    talk.ask("POST", f"/unsubscribe?token={team[0]}", status=500)
    talk.came("not before the last of a team", {"rest", "band"}, closed())
    unsubscribe(talk, team[1])
    talk.came("then all of the team", {"rest", "band", "a", "b"}, closed())
    publish(talk, 2)
    talk.came("the others go on", [[1, 2], [2]], [numbers_of(sides["stays"]), numbers_of(sides["brief"])[-1:]])
    shown = [{"subscriber": "rest", "nonPersistent": True, "consumers": 1}, {"subscriber": "stays", "consumers": 1}]
    talk.is_so("who is left", shown, _rows(talk, "closedTopic"))
    _over(talk, rules, [sides["stays"], sides["brief"]], [tokens["stays"], tokens["brief"]])


def _idle(talk: Talk, connect: Connect) -> None:
    """A connection without traffic for five minutes is closed, and not before; what it was sent and what it sends count
    alike. Its subscriber keeps what it has not acknowledged.
    """
    rules = [new_rule(talk, each) for each in ("idleTopic", "idleTold")]
    tokens = {"silent": new_token(talk, "idleTopic", "silent"), "pings": new_token(talk, "idleTopic", "pings")}
    tokens["told"] = new_token(talk, "idleTold", "told")
    sides = {name: let_in(talk, connect, token) for name, token in tokens.items()}
    publish(talk, 1)
    began = talk.now()

    def closed_at(seconds: float) -> set[str]:
        talk.sleep(seconds - (talk.now() - began) / 1_000_000, exactly=True)
        return {name for name, side in sides.items() if side.closed()}

    talk.came("still open", set(), closed_at(CLOSES_S - MINUTE))
    sides["pings"].send("still here")
    # Only one of them has a subscription of this source left
    talk.ask("DELETE", rules[0], status=204)
    publish(talk, 2)
    talk.came("who is silent", {"silent"}, closed_at(CLOSES_S + LOOKED_AT_S))
    talk.came("the others, as long again", {"silent"}, closed_at(2 * CLOSES_S - 2 * MINUTE))
    shown = [{"subscriber": "pings", "consumers": 1}, {"subscriber": "silent", "consumers": 0, "oldest": str}]
    talk.is_so("it is there still", shown, _rows(talk, "idleTopic"))
    talk.came("then they, too", {*sides}, closed_at(2 * CLOSES_S + LOOKED_AT_S))
    sides = {name: let_back(talk, connect, token) for name, token in tokens.items()}
    expected = {"silent": [1], "pings": [1], "told": [1, 2]}
    talk.came("what was kept", expected, {name: numbers_of(side) for name, side in sides.items()})
    _over(talk, rules[1:], sides.values(), tokens.values())


def _vanished(talk: Talk, connect: Connect) -> None:
    """A consumer that ended unnoticed is in the way until it has been idle for five minutes: of its name in a team, or
    of all. Others of the team get what it had.
    """
    rule = new_rule(talk, "vanishTopic")
    alone, team = new_token(talk, "vanishTopic", "alone"), new_token(talk, "vanishTopic", "team", shared=True)
    queries = {"alone": {"token": alone}, "a": {"token": team, "consumer": "a"}}
    sides = {name: connect(query) for name, query in queries.items()}
    talk.sleep(2)
    publish(talk, 1)
    talk.came("both", [[1], [1]], [numbers_of(side) for side in sides.values()])
    other = let_in(talk, connect, team, consumer="b")
    for side in sides.values():
        side.vanish()
    for wait in (1, CLOSES_S - MINUTE):
        talk.sleep(wait, exactly=True)
        other.send("still here")
        talk.is_so("in the way", [409, 409], [connect(query).status for query in queries.values()])
        talk.came("not yet known", [], numbers_of(other))
    talk.sleep(2 * MINUTE, exactly=True)
    other.send("still here")
    talk.sleep(MINUTE + 10, exactly=True)
    talk.came("who is left has it", [1], numbers_of(other))
    again = {name: connect(query) for name, query in queries.items()}
    talk.is_so("not any more", [200, 200], [side.status for side in again.values()])
    talk.sleep(5)
    talk.came("what it had", [[1], []], [numbers_of(side) for side in again.values()])
    _over(talk, [rule], [*again.values(), other], [alone, team])


def _in_turns(talk: Talk, connect: Connect) -> None:
    """An exclusive subscriber that nobody is connected to may be shared next time, and the other way round; what waits
    is the same.
    """
    rule = new_rule(talk, "turnsTopic")
    alone, team = new_token(talk, "turnsTopic"), new_token(talk, "turnsTopic", shared=True)
    side = let_in(talk, connect, alone)
    publish(talk, 1, 2, 3)
    side.send(side.frames[1].partition("\n")[0])
    talk.sleep(5)
    side.close()
    talk.sleep(5)
    several = [let_back(talk, connect, team, consumer="a"), let_in(talk, connect, team, consumer="b")]
    talk.is_so("an exclusive one beside them", 409, connect({"token": alone}).status)
    [row] = _rows(talk, "turnsTopic")
    talk.is_so("shared now", {"shared": True, "consumers": 2, "unacknowledged": 2}, row)
    came = [numbers_of(each) for each in several]
    talk.came("what was left", [[], [1, 3]], sorted(came))
    first = next(each for each in several if each.frames)
    first.send(first.frames[0].partition("\n")[0])
    publish(talk, 4)
    for each in several:
        each.close()
    talk.sleep(5)
    side = let_back(talk, connect, alone)
    talk.came("and now", [3, 4], numbers_of(side))
    talk.is_so("a shared one beside it", 409, connect({"token": team, "consumer": "c"}).status)
    [row] = _rows(talk, "turnsTopic")
    talk.is_so("exclusive now", {"shared": False, "consumers": 1, "unacknowledged": 2}, row)
    acknowledge(talk, side)
    _over(talk, [rule], [side], [alone])


def _brief_team(talk: Talk, connect: Connect) -> None:
    """A non-persistent topic starts empty for the first of a team, not for each: whoever joins takes nothing from the
    others, and what one leaves behind is sent to nobody.
    """
    rule = new_rule(talk, "briefTopic", nonPersistent=True)
    token = new_token(talk, "briefTopic", nonPersistent=True, shared=True)
    sources = [f"{number}" for number in range(8)]

    def all_tell(number: int) -> None:
        some = [{"api": "operations", "source": each, "data": {"n": number}} for each in sources]
        talk.ask("POST", "/notifications", some, status=201)
        talk.sleep(5)

    sides = {"a": let_in(talk, connect, token, consumer="a")}
    all_tell(0)
    sides["b"] = let_in(talk, connect, token, consumer="b")
    talk.came("nothing for who joins", (8 * [0], []), (numbers_of(sides["a"]), numbers_of(sides["b"])))
    acknowledge(talk, sides["a"])
    all_tell(1)
    shares = {name: [source_of(each) for each in side.frames] for name, side in sides.items()}
    shares["a"] = shares["a"][len(sources) :]
    talk.came("divided", sources, sorted(shares["a"] + shares["b"]))
    sides["b"].close()
    talk.sleep(5)
    sides["b"] = let_back(talk, connect, token, consumer="b")
    talk.came("nothing again", ([], 8 + len(shares["a"])), (sides["b"].frames, len(sides["a"].frames)))
    all_tell(2)
    came = [numbers_of(side) for side in sides.values()]
    talk.came("all that is new", 8 * [2], [each for one in came for each in one if each == 2])
    for side in sides.values():
        side.close()
    talk.sleep(5)
    all_tell(3)
    side = let_back(talk, connect, token, consumer="a")
    all_tell(4)
    talk.came("the first one again begins with what is new", 8 * [4], numbers_of(side))
    _over(talk, [rule], [side], [token])


def _last_of_three(talk: Talk, connect: Connect) -> None:
    """A shared subscriber goes with its last consumer: when one asks after all others have asked or left. Who only
    leaves removes nothing, and who has asked and stays is sent what comes until then.
    """
    rule = new_rule(talk, "lastTopic")
    tokens = {name: new_token(talk, "lastTopic", shared=True) for name in "abc"}
    sides = {name: let_in(talk, connect, token, consumer=name) for name, token in tokens.items()}
    for name in "ab":
        talk.ask("POST", f"/unsubscribe?token={tokens[name]}", status=500)
    publish(talk, 1)
    sides["c"].close()
    talk.sleep(8)
    talk.is_so("who leaves removes nothing", [("s", False)], names_of(talk, "lastTopic"))
    publish(talk, 2)
    came = [numbers_of(sides[name]) for name in "ab"]
    talk.came("it goes on", [1, 2], sorted({each for one in came for each in one}))
    unsubscribe(talk, tokens["a"])
    talk.sleep(3)
    talk.came("gone, with who has asked before", [True, True], [sides[name].closed() for name in "ab"])
    talk.is_so("nobody", [], names_of(talk, "lastTopic"))
    talk.ask("POST", f"/unsubscribe?token={tokens['b']}", status=500)
    talk.ask("DELETE", rule, status=204)


def _large(talk: Talk, connect: Connect) -> None:
    """However much it is, all that was not acknowledged comes again, and all that waited comes; what is acknowledged of
    it makes room.
    """
    rule = new_rule(talk, "largeTopic")
    tokens = {name: new_token(talk, "largeTopic", name) for name in ("here", "away")}
    sides = {name: let_in(talk, connect, token) for name, token in tokens.items()}
    sides["away"].close()
    for first in range(0, REQUESTS * AT_ONCE, AT_ONCE):
        numbers = range(first, first + AT_ONCE)
        some = [{"api": "operations", "source": "1", "data": {"n": each, "text": LARGE * "x"}} for each in numbers]
        talk.ask("POST", "/notifications", some, status=201)
        talk.sleep(5)
    talk.sleep(30)
    whole = [*range(REQUESTS * AT_ONCE)]
    talk.came("all of it", whole, numbers_of(sides["here"]))
    sides["here"].close()
    talk.sleep(5)
    for name, token in tokens.items():
        sides[name] = let_back(talk, connect, token)
        talk.sleep(45)
        talk.came(f"all of it, who was {name}", whole, numbers_of(sides[name]))
    before = _rows(talk, "largeTopic")
    acknowledge(talk, sides["here"])
    talk.sleep(30)
    rest = {"subscriber": "here", "unacknowledged": 0, "bytes": 0, "oldest": None}
    talk.is_so("what waits", [before[0], rest], _rows(talk, "largeTopic"))
    _over(talk, [rule], sides.values(), tokens.values())


__all__ = ["through"]
