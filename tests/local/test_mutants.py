"""What `make mutants` gives mutmut, and makes of its results."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path

from local import mutants

FUNCTION = "pushhub.engine.wake.x_run"


def prepared(place: Path) -> None:
    mutants.prepared(place, ["pushhub/engine/wake.py"], ["tests/engine/test_wake.py"])


def written(place: Path, module: str, codes: dict[str, int | None]) -> None:
    results = place / "mutants" / "pushhub" / "engine"
    results.mkdir(parents=True, exist_ok=True)
    (results / f"{module}.py.meta").write_text(json.dumps({"exit_code_by_key": codes}))


def test_modules_lie_as_they_are_imported_and_only_some_are_changed(tmp_path: Path) -> None:
    # When a run over one module is prepared
    prepared(tmp_path)
    # Then the package is found by its name from there, with its tests and what they read
    assert (tmp_path / "pushhub" / "engine" / "wake.py").is_file()
    assert (tmp_path / "tests" / "engine" / "test_wake.py").is_file()
    assert (tmp_path / "docs" / "records.md").is_file()
    settings = tomllib.loads((tmp_path / "pyproject.toml").read_text())["tool"]
    assert settings["mutmut"]["only_mutate"] == ["pushhub/engine/wake.py"]
    assert settings["mutmut"]["type_check_command"][-1] == "pushhub/engine/wake.py"
    assert settings["pytest"]["ini_options"]["pythonpath"] == ["."]


def test_a_mutant_is_killed_when_a_test_fails_and_lives_when_none_does_or_none_looks(tmp_path: Path) -> None:
    # Given results: killed, never at an end, refused by mypy, survived, without a test, and one that was not tried
    codes = {"a__mutmut_1": 1, "a__mutmut_2": -24, "a__mutmut_3": 37, "b__mutmut_1": 0, "b__mutmut_2": 33}
    written(tmp_path, "wake", {**codes, "b__mutmut_3": None})
    written(tmp_path, "sweep", {})
    # Then
    modules, alive = mutants.score(tmp_path)
    assert modules == {"pushhub/engine/wake.py": {"killed": 2, "refused": 1, "lived": 2, "open": 1}}
    assert alive == ["b__mutmut_1", "b__mutmut_2"]


def test_a_later_run_tries_again_what_lived_and_keeps_what_was_killed(tmp_path: Path) -> None:
    # Given results of a module, and of one that is no longer there
    written(tmp_path, "wake", {"a__mutmut_1": 1, "a__mutmut_2": 0, "a__mutmut_3": 33, "a__mutmut_4": 37})
    written(tmp_path, "gone", {"a__mutmut_1": 0})
    # When another run is prepared
    prepared(tmp_path)
    # Then
    assert mutants.score(tmp_path) == ({"pushhub/engine/wake.py": {"killed": 1, "open": 3}}, [])


def test_tests_that_changed_are_measured_again(tmp_path: Path) -> None:
    # Given what the tests of two files call, one of which has changed since
    kept, changed = "tests/engine/test_wake.py::test_a", "tests/engine/test_sweep.py::test_b"
    same = hashlib.sha256((mutants.REPOSITORY / "tests" / "engine" / "test_wake.py").read_bytes()).hexdigest()
    files = {"tests/engine/test_wake.py": same, "tests/engine/test_sweep.py": "another"}
    (tmp_path / "tests.json").write_text(json.dumps(files))
    measured = tmp_path / "mutants" / "mutmut-stats.json"
    measured.parent.mkdir()
    stats = {"duration_by_test": {kept: 1, changed: 2}, "tests_by_mangled_function_name": {FUNCTION: [kept, changed]}}
    measured.write_text(json.dumps(stats))
    # When a run is prepared
    prepared(tmp_path)
    # Then only the other one's are known
    assert json.loads(measured.read_text()) == {
        "duration_by_test": {kept: 1},
        "tests_by_mangled_function_name": {FUNCTION: [kept]},
    }
