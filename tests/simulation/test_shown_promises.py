"""What the model of what people are shown finds, and what it leaves alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from simulation.promises.ironmq import is_taken
from simulation.promises.judgement import SECOND, Exchange, Fault, Faults, Judgement
from simulation.promises.push import Request
from simulation.promises.shown import (
    Attempt,
    End,
    Listed,
    Shown,
    ShownPushes,
    judge_given_up,
    judge_list,
    judge_settings,
)


def asked(at: float, status: int, name: str = "s") -> Request:
    return Request(round(at * SECOND), round((at + 0.1) * SECOND), name, "1", b"bytes", status)


def attempt(at: float, status: int, name: str = "s") -> Attempt:
    return Attempt(name, status, round(at * SECOND))


LOOKED = Exchange(600 * SECOND, 601 * SECOND, 200)
REQUESTS = [asked(1, 500), asked(62, 200)]
MADE = [attempt(1, 500), attempt(62, 200)]
SHOWN = Shown("1", LOOKED, 0, MADE, 0, [End("s", taken=True, status=200)])
PROMISED = Shown(
    "1",
    LOOKED,
    0,
    [attempt(1, 202)],
    0,
    [End("s", taken=True, status=200)],
    [("s", Exchange(20 * SECOND, 21 * SECOND, 200))],
)


def judged(shown: Shown, requests: list[Request], faults: Faults | None = None) -> Judgement:
    judgement = Judgement()
    ShownPushes(requests, judgement, faults or Faults(), clocks_s=0, taken=is_taken).judge(shown)
    return judgement


@pytest.mark.parametrize(
    ("shown", "requests"),
    [
        (SHOWN, REQUESTS),
        # The oldest are only counted.
        (replace(SHOWN, attempts=[attempt(62, 200)], forgotten=1), REQUESTS),
        # One that has just ended may not be noted yet.
        (replace(SHOWN, ends=[]), [*REQUESTS, asked(580, 500)]),
        (PROMISED, [asked(1, 202)]),
        # Owed to one of two, and the other one took it.
        (
            replace(
                SHOWN,
                attempts=[attempt(1, 500), attempt(2, 200, "t")],
                ends=[End("s", taken=True, status=500, any_of=frozenset({"s", "t"}))],
            ),
            [asked(1, 500), asked(2, 200, "t")],
        ),
    ],
)
def test_what_was_seen_is_shown(shown: Shown, requests: list[Request]) -> None:
    # Given a message that people look up, when what they are shown is what its receivers saw, then nothing is broken
    assert judged(shown, requests).violations == []


@pytest.mark.parametrize(
    ("shown", "requests", "rule"),
    [
        (replace(SHOWN, attempts=MADE[1:]), REQUESTS, "an attempt is not shown"),
        (replace(SHOWN, forgotten=3), REQUESTS, "an attempt is not shown"),
        (SHOWN, REQUESTS[1:], "an attempt is shown that was never made"),
        (SHOWN, [asked(1, 503), asked(62, 200)], "an attempt is shown that was never made"),
        (SHOWN, [asked(20, 500), asked(62, 200)], "an attempt is shown that was never made"),
        (replace(SHOWN, ends=[End("s", taken=False)]), REQUESTS, "another end is shown than it had"),
        (replace(SHOWN, ends=[End("s", taken=True, status=500)]), REQUESTS, "another end is shown than it had"),
        (replace(PROMISED, acknowledged=[]), [asked(1, 202)], "another end is shown than it had"),
        (replace(PROMISED, ends=[End("s", taken=False)]), [asked(1, 202)], "another end is shown than it had"),
        (replace(SHOWN, content={"n": 1}, posted_content={"n": 2}), REQUESTS, "a message is shown otherwise"),
        (replace(SHOWN, exchange=Exchange(0, 1, 404), attempts=[], ends=[]), [], "a message is not found"),
        (
            replace(SHOWN, attempts=[MADE[0], replace(MADE[1], by_hand=True)]),
            REQUESTS,
            "an attempt is shown as asked for by a person",
        ),
    ],
)
def test_anything_else_is_found(shown: Shown, requests: list[Request], rule: str) -> None:
    # Given a message that people look up, when something else is shown than its receivers saw, then a rule is broken
    assert rule in {each.rule for each in judged(shown, requests).violations}


def test_only_a_fault_that_struck_the_message_excuses_what_is_not_shown() -> None:
    # Given an attempt that is not shown
    lost, faults = replace(SHOWN, attempts=MADE[1:]), Faults()
    faults.struck(Fault("crash", "storm", 2 * SECOND, 2 * SECOND), 2 * SECOND, ["1"])
    # Then it is excused where a fault struck while the hub worked on this very message
    assert judged(lost, REQUESTS, faults).violations == []
    assert judged(lost, REQUESTS, faults).excused.total() == 1


ITEMS = [Listed("3", {"n": 3}, 3), Listed("2", {"n": 2}, 2), Listed("1", {"n": 1}, 1)]


@pytest.mark.parametrize(
    ("listed", "rules"),
    [
        (ITEMS, set()),
        ([Listed("4", {"n": 4}, 4), *ITEMS], set()),
        (ITEMS[1:], {"a message is not listed"}),
        ([ITEMS[0], *ITEMS], {"a message is listed twice"}),
        (ITEMS[::-1], {"messages are listed out of order"}),
        ([Listed("5", {"n": 5}, 5), *ITEMS], {"a message is listed that was never posted"}),
        ([Listed("3", {"n": 4}, 3), *ITEMS[1:]], {"a message is shown otherwise"}),
        ([replace(ITEMS[0], at=9 * SECOND), *ITEMS[1:]], {"a message is listed with another time"}),
    ],
)
def test_a_list_has_each_message_once_as_it_was_posted(listed: list[Listed], rules: set[str]) -> None:
    # Given three messages that were posted, and a post without an answer, when messages are listed
    judgement = Judgement()
    judge_list(judgement, {each.message_id: each for each in ITEMS}, listed, [{"n": 4}])
    # Then they are there once, newest first, and as they were posted
    assert {each.rule for each in judgement.violations} == rules


@pytest.mark.parametrize(("shown", "broken"), [({"a": 1, "more": 2}, False), ({"a": 2}, True), ({}, True)])
def test_settings_are_shown_as_they_were_made(shown: dict[str, object], broken: bool) -> None:
    judgement = Judgement()
    judge_settings(judgement, "queue", {"a": 1}, shown)
    assert [each.rule for each in judgement.violations] == ["settings are shown that nobody made"] * broken


@pytest.mark.parametrize(
    ("end", "listed", "rule"),
    [
        (End("s", taken=True), {("1", "t"), ("2", "s")}, None),
        (End("s", taken=True), {("1", "s")}, "what was taken is listed as given up"),
        (End("s", taken=False, given_up=True), {("1", "s")}, None),
        (End("s", taken=False, given_up=True), {("1", "t"), ("2", "s")}, "what was given up is not listed"),
        # One of a unicast message's subscribers stands for all
        (End("s", taken=False, given_up=True, any_of=frozenset({"s", "t"})), {("1", "t")}, None),
        # It is tried still, or was while it was looked up
        (End("s", taken=False), set(), None),
        (End("s", taken=False), {("1", "s")}, None),
    ],
)
def test_the_list_of_what_was_given_up_agrees_with_each_message(
    end: End, listed: set[tuple[str, str]], rule: str | None
) -> None:
    judgement = Judgement()
    judge_given_up(judgement, [replace(SHOWN, ends=[end])], listed)
    assert [each.rule for each in judgement.violations] == ([rule] if rule else [])
