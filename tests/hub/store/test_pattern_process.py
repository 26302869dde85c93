"""Untrusted regular expressions, run where they can be stopped."""

from __future__ import annotations

import sys

import pytest

from pushhub.base.errors import Unavailable
from pushhub.hub.model.filters import PatternTimeout
from pushhub.hub.store import pattern_process
from pushhub.hub.store.pattern_process import MAX_TEXT, matches


def test_each_text_is_searched() -> None:
    assert matches([("^R[0-9]+ ☃?$", ["R1 ☃", "R1 ", "W1", ""])]) == [[True, True, False, False]]
    assert matches([("x", [])]) == [[]]


def test_a_text_is_looked_at_up_to_its_limit() -> None:
    assert matches([("b", ["a" * MAX_TEXT + "b", "a" * (MAX_TEXT - 1) + "b"])]) == [[False, True]]


def test_a_pattern_that_backtracks_without_end_is_stopped() -> None:
    with pytest.raises(PatternTimeout):
        matches([("(a|aa)+$", ["a" * 60 + "b"])])


def test_a_process_that_is_slow_to_start_costs_the_pattern_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a machine on which starting the process takes longer than a pattern may
    monkeypatch.setattr(pattern_process, "MATCH_SECONDS", 0.05)
    slow_start = "import time\nbusy = time.process_time() + 0.2\nwhile time.process_time() < busy: pass\n"
    monkeypatch.setattr(pattern_process, "_PROGRAM", slow_start + pattern_process._PROGRAM)
    # Then a pattern is still answered
    assert matches([("^R[0-9]+$", ["R1", "W1"])]) == [[True, False]]


def test_a_machine_that_does_not_answer_in_time_is_our_own_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_process, "ANSWER_SECONDS", 0.01)
    monkeypatch.setattr(pattern_process, "_PROGRAM", "import time; time.sleep(60)")
    with pytest.raises(Unavailable):
        matches([("a", ["a"])])


def test_a_process_that_cannot_run_is_our_own_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(Unavailable):
        matches([("a", ["a"])])
    monkeypatch.undo()
    monkeypatch.setattr(pattern_process, "_PROGRAM", "raise SystemExit(3)")
    with pytest.raises(Unavailable):
        matches([("a", ["a"])])
