"""``pushhub simulate hub`` hands its words to the simulator; and spans of time as people read them."""

from __future__ import annotations

import pytest
from cli.durations import worded
from tests.cli.conftest import Typed


def test_the_whole_hubs_simulator_takes_its_own_words(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    class Done:
        returncode = 0

    def run(words: list[str], **_: object) -> Done:
        ran.append(words)
        return Done()

    monkeypatch.setattr("cli.commands.simulate.subprocess.run", run)
    typed("simulate", "hub", "--seed", "7", "--help")
    assert ran[0][1:] == ["-m", "simulation", "--seed", "7", "--help"]


def test_spans() -> None:
    assert [worded(each) for each in (0, 1500, 59_999, 60_000, 3_661_000, 90_000_000, 86_400_000)] == [
        "0 s",
        "1.5 s",
        "60 s",
        "1 min",
        "1 h 1 min",
        "1 d 1 h",
        "1 d",
    ]
