"""What happens to topics and their subscribers meanwhile: who is removed while connected, whose token ends, what is
refused as a whole, which source belongs to whom, and what waits since when.

Sources: Cumulocity's documents of Notifications 2.0, and docs/notifications.md for what is the hub's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.notifications import Connect, connecting
from simulation.promises.talks.records import recorded_of
from simulation.promises.talks.talk import Talk
from simulation.promises.talks.topic_clients import (
    acknowledge,
    data_of,
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
A_DAY_S = 86_400
BACKLOG_S = 36 * 3_600
OLD_EVERY = 4
"""What takes days is asked in one run of so many."""

TOO_LARGE = 131_072
COPIED = ("id", "type", "source", "time", "name", "text", "status", "severity")


def through(talk: Talk, connect: Connect) -> None:
    """Everything."""
    parts = (
        _removed,
        _removed_together,
        _expired,
        _shares,
        _joined,
        _once,
        _as_a_whole,
        _copied,
        _waiting,
        _made_first,
    )
    talk.through(*connecting(connect, parts))


def aged(talk: Talk, connect: Connect) -> None:
    """What takes days, in one run of some; where nobody else is connected meanwhile."""

    def ages(one: Talk) -> None:
        _ages(one, connect)

    if talk.turn % OLD_EVERY == 1:
        talk.through(ages)


def _removed(talk: Talk, connect: Connect) -> None:
    """Removed while connected: the connection is closed, what waited is gone, and all others of that name go on."""
    rules = [new_rule(talk, each) for each in ("removedOne", "removedTwo")]
    rules.append(new_rule(talk, "removedOne", source="1", nonPersistent=True))
    tokens = {
        "here": new_token(talk, "removedOne"),
        "brief": new_token(talk, "removedOne", nonPersistent=True),
        "there": new_token(talk, "removedTwo"),
        "other": new_token(talk, "removedOne", "other"),
    }
    sides = {name: let_in(talk, connect, token) for name, token in tokens.items()}
    publish(talk, 1)
    unsubscribe(talk, tokens["here"])
    talk.sleep(3)
    talk.is_so("who is left", [("other", False), ("s", True)], names_of(talk, "removedOne"))
    talk.is_so("of another topic", [("s", False)], names_of(talk, "removedTwo"))
    publish(talk, 2)
    for name, numbers in (("here", [1]), ("brief", [1, 2]), ("there", [1, 2]), ("other", [1, 2])):
        talk.came(f"what {name} got", numbers, numbers_of(sides[name]))
    # Nobody has it any more, so that it can be made at once; and it begins with what is new
    sides["here"] = connect({"token": tokens["here"]})
    talk.is_so("made anew", 200, sides["here"].status)
    talk.sleep(3)
    publish(talk, 3)
    talk.came("from then on", [3], numbers_of(sides["here"]))
    unsubscribe(talk, tokens["brief"])
    talk.is_so("only the brief one", [("other", False), ("s", False)], names_of(talk, "removedOne"))
    for side in sides.values():
        side.close()
    talk.sleep(3)
    unsubscribe(talk, tokens["here"], tokens["there"], tokens["other"])
    for each in rules:
        talk.ask("DELETE", each, status=204)


def _removed_together(talk: Talk, connect: Connect) -> None:
    """Of a shared subscriber each consumer unsubscribes for itself, and the last one removes it; in the band anyone
    does.
    """
    rule = new_rule(talk, "togetherTopic")
    tokens = [new_token(talk, "togetherTopic", shared=True) for _ in range(2)]
    sides = [let_in(talk, connect, token, consumer=name) for token, name in zip(tokens, "ab", strict=True)]
    publish(talk, *range(4))
    talk.ask("POST", f"/unsubscribe?token={tokens[0]}", status=500)
    talk.is_so("it is still there", [("s", False)], names_of(talk, "togetherTopic"))
    publish(talk, 4)
    talk.came("and goes on", [*range(5)], sorted({*numbers_of(sides[0]), *numbers_of(sides[1])}))
    unsubscribe(talk, tokens[1])
    talk.is_so("gone", [], names_of(talk, "togetherTopic"))
    talk.ask("POST", f"/unsubscribe?token={tokens[0]}", status=500)
    before = [len(side.frames) for side in sides]
    again = [let_in(talk, connect, token, consumer=name) for token, name in zip(tokens, "ab", strict=True)]
    publish(talk, 5)
    talk.came("nobody of before", before, [len(side.frames) for side in sides])
    talk.came("made anew", [5], sorted(numbers_of(again[0]) + numbers_of(again[1])))
    again[0].send("unsubscribe_subscriber")
    talk.sleep(10)
    talk.is_so("gone in the band", [], names_of(talk, "togetherTopic"))
    talk.ask("DELETE", rule, status=204)


def _expired(talk: Talk, connect: Connect) -> None:
    """A token that ends opens no connection any more, and closes none."""
    rule = new_rule(talk, "endsTopic")
    token = new_token(talk, "endsTopic", expiresInMinutes=1)
    side = let_in(talk, connect, token)
    publish(talk, 1)
    talk.sleep(MINUTE, exactly=True)
    publish(talk, 2)
    talk.came("both", [1, 2], numbers_of(side))
    side.send(side.frames[0].partition("\n")[0])
    talk.sleep(3)
    side.close()
    talk.sleep(3)
    talk.is_so("no more", 401, connect({"token": token}).status)
    talk.ask("POST", f"/unsubscribe?token={token}", status=401)
    again = new_token(talk, "endsTopic")
    side = let_back(talk, connect, again)
    talk.came("what the one with another token did not acknowledge", [2], numbers_of(side))
    side.close()
    talk.sleep(3)
    unsubscribe(talk, again)
    talk.ask("DELETE", rule, status=204)


def _shares(talk: Talk, connect: Connect) -> None:
    """A source belongs to one consumer while anything of it is unacknowledged; a name has the same share again."""
    rule = new_rule(talk, "shareTopic")
    token = new_token(talk, "shareTopic", shared=True)
    sides = {name: let_in(talk, connect, token, consumer=name) for name in ("a", "b")}
    sources = [f"{number}" for number in range(12)]

    def owners() -> dict[str, set[str]]:
        """The names of those who got something of a source."""
        found: dict[str, set[str]] = {}
        for name, side in sides.items():
            for each in side.frames:
                found.setdefault(source_of(each), set()).add(name)
        return found

    for round_ in range(3):
        for source in sources:
            talk.ask(
                "POST", "/notifications", {"api": "operations", "source": source, "data": {"n": round_}}, status=201
            )
        talk.sleep(5)
    first = owners()
    talk.came("one of them each", (sorted(sources), {1}), (sorted(first), {len(each) for each in first.values()}))
    talk.came("both have some", {"a", "b"}, {name for each in first.values() for name in each})
    for name, side in sides.items():
        in_order: dict[str, list[int]] = {}
        for frame, data in zip(side.frames, data_of(side), strict=True):
            in_order.setdefault(source_of(frame), []).append(data["n"])
        talk.came(f"each source in order, at {name}", {(0, 1, 2)}, {tuple(each) for each in in_order.values()})
    acknowledge(talk, *sides.values())
    sides["a"].close()
    talk.sleep(5)
    sides["a"] = let_back(talk, connect, token, consumer="a")
    talk.came("nothing again", 0, len(sides["a"].frames))
    before = len(sides["b"].frames)
    for source in sources:
        talk.ask("POST", "/notifications", {"api": "operations", "source": source, "data": {"n": 3}}, status=201)
    talk.sleep(5)
    own = {source_of(each) for each in sides["a"].frames}
    talk.came("the same share", {source for source, each in first.items() if each == {"a"}}, own)
    talk.came("the others at the other", len(sources) - len(own), len(sides["b"].frames) - before)
    for side in sides.values():
        side.close()
    talk.sleep(5)
    unsubscribe(talk, token)
    talk.ask("DELETE", rule, status=204)


def _joined(talk: Talk, connect: Connect) -> None:
    """Who joins gets nothing of a source of which another has anything unacknowledged, old or new."""
    rule = new_rule(talk, "joinTopic")
    token = new_token(talk, "joinTopic", shared=True)
    first = let_in(talk, connect, token, consumer="a")
    sources = [f"{number}" for number in range(10)]

    def published(number: int) -> None:
        for source in sources:
            notification = {"api": "operations", "source": source, "data": {"n": number}}
            talk.ask("POST", "/notifications", notification, status=201)
        talk.sleep(5)

    published(0)
    second = let_in(talk, connect, token, consumer="b")
    published(1)
    talk.came("all at who was there", ([0] * 10 + [1] * 10, []), (numbers_of(first), numbers_of(second)))
    kept = {*sources[:5]}
    for each in first.frames:
        if source_of(each) not in kept:
            first.send(each.partition("\n")[0])
    talk.sleep(5)
    published(2)
    moved = {source_of(each) for each in second.frames}
    talk.came("only what is acknowledged moves", True, moved.isdisjoint(kept))
    talk.came("each once", [2] * 10, [each for each in numbers_of(first) + numbers_of(second) if each == 2])
    for side in (first, second):
        side.close()
    talk.sleep(5)
    unsubscribe(talk, token)
    talk.ask("DELETE", rule, status=204)


def _once(talk: Talk, connect: Connect) -> None:
    """However many subscriptions lead to a topic, it gets a notification once; as long as one of them is left."""
    rules = [new_rule(talk, "onceTopic"), new_rule(talk, "onceTopic", source="1")]
    token = new_token(talk, "onceTopic")
    side = let_in(talk, connect, token)
    publish(talk, 1)
    publish(talk, 2, source="2")
    talk.ask("DELETE", rules[0], status=204)
    publish(talk, 3)
    publish(talk, 4, source="2")
    for each in rules[1:]:
        talk.ask("DELETE", each, status=204)
    publish(talk, 5)
    talk.came("each once", [1, 2, 3], numbers_of(side))
    side.close()
    talk.sleep(3)
    unsubscribe(talk, token)


def _as_a_whole(talk: Talk, connect: Connect) -> None:
    """A request of which one notification is wrong, or too large, is refused as a whole."""
    rule = new_rule(talk, "wholeTopic")
    token = new_token(talk, "wholeTopic")
    side = let_in(talk, connect, token)
    good = {"api": "operations", "source": "1", "data": {"n": 1}}
    for bad, status in (
        ({"api": "other"}, 422),
        ({"source": ""}, 422),
        ({"action": "CHANGE"}, 422),
        ({"data": {"text": TOO_LARGE * "x"}}, 413),
    ):
        for some in ([good, {**good, **bad}], [{**good, **bad}, good]):
            talk.ask("POST", "/notifications", some, status=status)
    talk.sleep(10)
    talk.came("nothing of them", [], [*side.frames])
    publish(talk, 2)
    talk.came("and what is right", [2], numbers_of(side))
    side.close()
    talk.sleep(3)
    unsubscribe(talk, token)
    talk.ask("DELETE", rule, status=204)


def _copied(talk: Talk, connect: Connect) -> None:
    """The standard fields and the named ones are copied; where none are named, everything is."""
    rules = [new_rule(talk, "copiedTopic", fragmentsToCopy=["kept", "also"]), new_rule(talk, "allTopic")]
    tokens = [new_token(talk, each) for each in ("copiedTopic", "allTopic")]
    sides = [let_in(talk, connect, each) for each in tokens]
    standard = {name: {"id": "1"} if name == "source" else f"the {name}" for name in COPIED}
    whole = {**standard, "left": {"kept": 1}, "kept": {"a": [1, None]}, "Also": 1, "kept2": 2}
    body = {"api": "operations", "source": "1", "data": whole}
    talk.ask("POST", "/notifications", body, status=201)
    talk.sleep(5)
    talk.came("some", [{**standard, "kept": whole["kept"]}], data_of(sides[0]))
    talk.came("no others", {*COPIED, "kept"}, {name for each in data_of(sides[0]) for name in each})
    talk.came("all", [whole], data_of(sides[1]))
    for side in sides:
        side.close()
    talk.sleep(3)
    unsubscribe(talk, *tokens)
    for each in rules:
        talk.ask("DELETE", each, status=204)


def _waiting(talk: Talk, connect: Connect) -> None:
    """What waits, in bytes, and since when; of each subscriber for itself, connected or not."""
    rule = new_rule(talk, "waitingTopic")
    tokens = {name: new_token(talk, "waitingTopic", name) for name in ("away", "reads")}
    sides = {name: let_in(talk, connect, token) for name, token in tokens.items()}
    sides["away"].close()
    talk.sleep(5)
    times = []
    for number in range(2):
        times.append(talk.now())
        publish(talk, number)
        talk.sleep(20)

    def rows() -> Mapping[str, Mapping[str, Any]]:
        found = talk.ask("GET", "/subscribers?subscription=waitingTopic")["subscribers"]
        return {each["subscriber"]: each for each in found}

    def since(at: int) -> Callable[[str], bool]:
        return lambda text: abs(talk.moment(text) - at) <= 2 * SECOND

    both = rows()
    size = both["away"]["bytes"]
    talk.is_so("who is away", {"oldest": since(times[0]), "shared": False}, both["away"])
    talk.is_so("who reads", {"oldest": since(times[0]), "unacknowledged": 2, "consumers": 1}, both["reads"])
    talk.is_so("the same for both", size, both["reads"]["bytes"])
    for place, left in ((0, 1), (1, 0)):
        sides["reads"].send(sides["reads"].frames[place].partition("\n")[0])
        talk.sleep(5)
        now = rows()
        shown: dict[str, Any] = {"unacknowledged": left, "bytes": size * left // 2}
        talk.is_so("less", shown | ({"oldest": since(times[1])} if left else {}), now["reads"])
        talk.is_so("the other's stays", {"bytes": size, "oldest": since(times[0])}, now["away"])
    talk.is_so("nothing is the oldest", None, now["reads"].get("oldest"))
    sides["away"] = let_back(talk, connect, tokens["away"])
    talk.came("what waited", [0, 1], numbers_of(sides["away"]))
    for side in sides.values():
        side.close()
    talk.sleep(3)
    unsubscribe(talk, *tokens.values())
    talk.ask("DELETE", rule, status=204)


def _made_first(talk: Talk, connect: Connect) -> None:
    """A subscriber may come before its subscription; beside an exclusive one, no shared consumer is let in."""
    exclusive = new_token(talk, "earlierTopic")
    shared = new_token(talk, "earlierTopic", shared=True)
    side = let_in(talk, connect, exclusive)
    talk.is_so("no shared one beside it", 409, connect({"token": shared, "consumer": "a"}).status)
    publish(talk, 1)
    rule = new_rule(talk, "earlierTopic")
    publish(talk, 2)
    talk.came("since there was a subscription", [2], numbers_of(side))
    side.close()
    talk.sleep(3)
    unsubscribe(talk, exclusive)
    talk.is_so("nobody is left", [], names_of(talk, "earlierTopic"))
    talk.ask("DELETE", rule, status=204)


def _ages(talk: Talk, connect: Connect) -> None:
    """A key makes repeats harmless for a day; what nobody acknowledges waits for a day and a half, and no longer."""
    rule = new_rule(talk, "agesTopic")
    token = new_token(talk, "agesTopic", expiresInMinutes=4 * 1_440)
    side = let_in(talk, connect, token)
    side.close()
    talk.sleep(5)
    began, once = talk.now(), talk.with_headers(idempotency_key="ages")
    event = {"api": "operations", "source": "1", "data": {"n": 0}}
    ids = once.ask("POST", "/notifications", event, status=201)["ids"]

    def until(seconds: float) -> None:
        talk.sleep(seconds - (talk.now() - began) / SECOND, exactly=True)

    until(A_DAY_S - 5 * MINUTE)
    once.ask("POST", "/notifications", event, status=201, shows={"ids": ids})
    publish(talk, 1)
    until(BACKLOG_S - 10 * MINUTE)
    side = let_back(talk, connect, token)
    talk.came("both wait", [0, 1], numbers_of(side))
    side.close()
    until(BACKLOG_S + 10 * MINUTE)
    side = let_back(talk, connect, token)
    talk.came("the newer one", [1], numbers_of(side))
    ends = [each["kind"] for each in recorded_of(talk, lambda each: each["message_id"] == ids[0], 3)]
    talk.is_so("its end", ["accepted", "attempt", "expired"], sorted(ends))
    side.close()
    talk.sleep(3)
    unsubscribe(talk, token)
    talk.ask("DELETE", rule, status=204)


__all__ = ["aged", "through"]
