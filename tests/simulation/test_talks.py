"""Talks compare what is answered with what the documents say, and go on when an answer cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from simulation.promises.judgement import SECOND, Judgement, Told
from simulation.promises.talks.talk import BROKEN_OFF, OTHER_ANSWER, OTHER_STATUS, Surroundings, Talk, differs
from simulation.run import Plan, simulate
from simulation.weather import Kind


@dataclass(frozen=True)
class Answer:
    """An answer."""

    status: int
    body: Any
    told: Told = field(default_factory=lambda: Told(0, 0, 200))
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
