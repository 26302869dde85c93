"""Talks compare what is answered with what the documents say, and go on when an answer cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from simulation.account import Account
from simulation.promises.judgement import SECOND, Exchange, Judgement
from simulation.promises.talks import pushes
from simulation.promises.talks.talk import (
    BROKEN_OFF,
    OTHER_ANSWER,
    OTHER_OUTPUT,
    OTHER_REQUESTS,
    OTHER_STATUS,
    Came,
    Surroundings,
    Talk,
    Typed,
    differs,
)
from simulation.run import Plan, simulate
from simulation.template import stack
from simulation.truth import Truth
from simulation.weather import Kind, Weather
from simulation.worlds.policies import PoliciesWorld


@dataclass(frozen=True)
class Answer:
    """An answer."""

    status: int
    body: Any
    exchange: Exchange = field(default_factory=lambda: Exchange(0, 0, 200))
    headers: Mapping[str, str] = field(default_factory=dict)


class Hub:
    """Answers what it is told to, and lets time pass."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = [*answers]
        self.asked: list[tuple[str, str, object, Mapping[str, str]]] = []
        self.now = 0

    def http(self, method: str, path: str, body: object, headers: Mapping[str, str]) -> Answer:
        self.asked.append((method, path, body, headers))
        return self.answers.pop(0)

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)

    def talk(self, judgement: Judgement) -> Talk:
        around = Surroundings(self.http, self.sleep, lambda: self.now, lambda *_: [])
        return Talk(around, judgement, base="/api", headers={"a": "b"})


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"b": 2}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": [1, ...]}, {"a": [1, 2]}, True),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ([str, int], ["x", 3], True),
        ([str], [3], False),
        (lambda each: each > 1, 2, True),
        (lambda each: each > 1, 1, False),
        ({"a": None}, {"a": None}, True),
        ({}, [], False),
    ],
)
def test_what_is_expected_is_at_least_what_is_found(expected: object, found: object, same: bool) -> None:
    assert (not differs(expected, found)) == same


def test_an_answer_is_compared_and_a_broken_talk_is_told() -> None:
    # Given a hub whose first answer is right, whose second has another status, and whose third lacks a member
    hub = Hub(Answer(200, {"a": 1}), Answer(404, {}), Answer(200, {"b": 1}), Answer(200, {}))
    judgement = Judgement()

    def whole(talk: Talk) -> None:
        talk.ask("GET", "/one", shows={"a": 1})
        talk.ask("GET", "/two")
        talk.ask("POST", "/three", {"x": 1}, shows={"a": 1})
        talk.ask("GET", "/four")["a"]

    # When it is talked through
    hub.talk(judgement).through(whole)
    # Then each difference is told of once, and so is that it could not go on
    assert [each.rule for each in judgement.violations] == [OTHER_STATUS, OTHER_ANSWER, BROKEN_OFF]
    assert judgement.judged == 7
    assert hub.asked[2] == ("POST", "/api/three", {"x": 1}, {"a": "b"})


@pytest.mark.parametrize(
    ("came", "rules"),
    [
        (Typed(0, '[{"name": "q"}]', "made"), []),
        (Typed(1, '[{"name": "q"}]', "made"), [OTHER_STATUS]),
        (Typed(0, '[{"name": "p"}]', "made"), [OTHER_OUTPUT]),
        (Typed(0, "", "made"), [OTHER_OUTPUT]),
        (Typed(0, '[{"name": "q"}]', ""), [OTHER_OUTPUT]),
    ],
)
def test_what_a_command_prints_is_compared(came: Typed, rules: list[str]) -> None:
    # Given a command line, and a client that types a command whose exit code, row and remark are documented
    hub, judgement = Hub(), Judgement()
    around = Surroundings(hub.http, hub.sleep, lambda: 0, lambda *_: [], types=lambda *_: came)
    Talk(around, judgement).typed("queues", "list", shows=[{"name": "q"}], says="made")
    # Then what differs is told of
    assert [each.rule for each in judgement.violations] == rules


def test_times_are_compared() -> None:
    hub, judgement = Hub(), Judgement()
    talk = hub.talk(judgement)
    talk.timed(4, 6, lambda: hub.sleep(5))
    assert judgement.violations == []
    talk.timed(4, 6, lambda: hub.sleep(7))
    assert [each.rule for each in judgement.violations] == [OTHER_ANSWER]


def test_a_talk_waits_as_long_as_batches_are_gathered() -> None:
    # Given a stack that an operator has deployed with batching windows, and a service that is turned off for a while
    # (seed 3 for an hour, reduced to what broke it)
    result = simulate(Plan(3, world="hub", hours=0.02, only=frozenset({"window"})))
    assert [each.kind for each in result.storms] == [Kind.WINDOW]
    # Then what the documents say comes, later
    assert result.violations == []
    assert result.figures["judged in talks"] > 100


class Rated:
    """A hub that sends the messages of a queue as often as it is told to, and the last one of forty later."""

    def __init__(self, last_s: float) -> None:
        self.now, self.gap_s = 0, 10.0
        self._last_s = last_s
        self._came: list[Came] = []
        self._coming: list[Came] = []

    def http(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Answer:
        if method != "POST":
            return Answer(200, {})
        bodies = [each["body"].encode() for each in body["messages"]]
        for number, each in enumerate(bodies):
            late = self._last_s if number == 39 else 0
            self._coming.append(Came(self.now + round((number * self.gap_s + late) * SECOND), {}, each))
        return Answer(201, {"ids": []})

    def sleep(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)
        self._came += [each for each in self._coming if each.at <= self.now]
        self._coming = [each for each in self._coming if each.at > self.now]

    def rules(self, put_off_s: int) -> list[str]:
        """What a talk about rates has to say."""
        judgement, circuit = Judgement(), pushes.Circuit(1, 1, 1)
        around = Surroundings(self.http, self.sleep, lambda: self.now, lambda *_: self._came, put_off_s=put_off_s)
        protection = pushes.Protection(circuit, lambda _: None, self._limit)
        pushes.rate(Talk(around, judgement), protection)
        return [each.rule for each in judgement.violations]

    def _limit(self, _: str, rate: float) -> None:
        self.gap_s = 1 / rate


@pytest.mark.parametrize(
    ("last_s", "put_off_s", "rules"),
    [(0, 0, []), (10, 0, [OTHER_REQUESTS]), (10, 30, []), (12, 0, [OTHER_REQUESTS]), (60, 30, [OTHER_REQUESTS])],
)
def test_many_at_once_may_come_later_where_an_operator_has_left_dispatch_little_concurrency(
    last_s: float, put_off_s: int, rules: list[str]
) -> None:
    # Seed 90002 of policies: the last of forty was dispatched fourteen seconds after its post, by one run at a time
    assert Rated(last_s).rules(put_off_s) == rules


@pytest.mark.parametrize(("concurrency", "put_off_s"), [("0", 0), ("1", 30), ("7", 30), ("8", 0)])
def test_a_talk_knows_how_many_batches_a_stream_has_at_a_time(concurrency: str, put_off_s: int) -> None:
    # Given two shards with four batches at a time each, and so many runs of dispatch that an operator has reserved
    account = Account("talks/1", stack(DispatchConcurrency=concurrency), Weather((), "talks/1"))
    known: list[int] = []

    class Quiet(PoliciesWorld):
        """Says nothing."""

        def talk(self) -> None:
            known.append(self._talking("", lambda *_: {}).put_off_s)

    Quiet(account, Truth(account), 1, 1).talk()
    assert known == [put_off_s]
