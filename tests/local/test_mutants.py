"""What `make mutants` makes of mutmut's results."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from local import mutants


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place to work in."""
    monkeypatch.setattr(mutants, "WORKPLACE", tmp_path / "mutants")
    return tmp_path / "mutants"


def test_modules_lie_as_they_are_imported_and_only_some_are_changed(workplace: Path) -> None:
    # When a run over the engine's model is prepared
    mutants.prepared(["pushhub/engine/model/*"], ["tests/engine/model"])
    # Then the package is found by its name from there, with its tests and what they read
    assert (workplace / "pushhub" / "engine" / "model" / "delivery.py").is_file()
    assert (workplace / "tests" / "engine" / "model" / "test_delivery.py").is_file()
    assert (workplace / "docs" / "records.md").is_file()
    settings = tomllib.loads((workplace / "pyproject.toml").read_text())["tool"]
    assert settings["mutmut"]["only_mutate"] == ["pushhub/engine/model/*"]
    assert settings["pytest"]["ini_options"]["pythonpath"] == ["."]


def test_a_mutant_is_killed_when_a_test_fails_and_lives_when_none_does_or_none_looks(workplace: Path) -> None:
    # Given results: killed, survived, without a test, and one that was not tried
    place = workplace / "mutants" / "pushhub" / "engine"
    place.mkdir(parents=True)
    codes = {"a__mutmut_1": 1, "a__mutmut_2": 0, "b__mutmut_1": 33, "b__mutmut_2": None}
    (place / "wake.py.meta").write_text(json.dumps({"exit_code_by_key": codes}))
    (place / "empty.py.meta").write_text(json.dumps({"exit_code_by_key": {}}))
    # Then
    modules, alive = mutants.score()
    assert modules == {"pushhub/engine/wake.py": {"killed": 1, "lived": 2, "open": 1}}
    assert alive == ["a__mutmut_2", "b__mutmut_1"]
