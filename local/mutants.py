"""Mutation testing: makes small changes to the code, one at a time, and sees whether a test notices (``make mutants``).

mutmut does the work. It knows a module by its path, so what it looks at is laid out beside the tests, as it is
imported, in a folder of ``build/mutants`` for each choice of modules. What makes it quick: mypy's judgement comes
first, so that a change that does not even pass the types costs no test; only the tests that call the changed function
run, the quickest first, in a fork of a process that has imported everything; :mod:`local.mutant_tests` bounds them; and
a later run tries only what lived before and what has changed since.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
WORKPLACE = REPOSITORY / "build" / "mutants"
CHILDREN = os.environ.get("CHILDREN", "2")
"""Mutants tried at a time."""
BESIDE = ("docs", "functions", "layers", "local", "cli", "glue_jobs")
"""Folders that tests read or import from."""
KILLED = frozenset({1, 3, 24, -24, 152, 255})
"""Exit codes by which mutmut tells that a test failed, or that the tests did not come to an end."""
REFUSED = 37
"""mutmut's code for what mypy refuses."""
SETTINGS = """\
[tool.mutmut]
source_paths = ["pushhub"]
only_mutate = [{only}]
do_not_mutate_patterns = ["raise (AssertionError|ValueError)"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "local.mutant_tests"]
pytest_add_cli_args_test_selection = [{tests}]
also_copy = [{beside}, "template.yaml", "dashboard.yaml"]
on_dependency_change = "ignore"
timeout_constant = 20.0
timeout_multiplier = 4.0
type_check_command = [{mypy}]

[tool.mypy]
strict = true
warn_unused_ignores = false
namespace_packages = true
explicit_package_bases = true

"""


def prepared(place: Path, parts: list[str], tests: list[str]) -> None:
    """Lay everything out. A mutant that an earlier run killed stays killed until its function changes.

    Args:
        parts: Patterns of the modules to change, from ``pushhub/`` on.
    """
    place.mkdir(parents=True, exist_ok=True)
    without = shutil.ignore_patterns("__pycache__", "browser", "glue", "stack", "sam")
    for each in ("tests", *BESIDE):
        shutil.rmtree(place / "mutants" / each, ignore_errors=True)
        _copied(REPOSITORY / each, place / each, without)
    _copied(REPOSITORY / "layers" / "pushhub" / "pushhub", place / "pushhub", without)
    for each in ("template.yaml", "dashboard.yaml"):
        shutil.copy(REPOSITORY / each, place)
    sources = sorted({path.relative_to(place).as_posix() for part in parts for path in place.glob(part)})
    mypy = [sys.executable, "-m", "mypy", "--output", "json", *(each for each in sources if each.endswith(".py"))]
    settings = SETTINGS.format(only=_listed(parts), tests=_listed(tests), beside=_listed([*BESIDE]), mypy=_listed(mypy))
    project = (REPOSITORY / "pyproject.toml").read_text()
    pytest = project[project.index("[tool.pytest.ini_options]") :].replace('"layers/pushhub", ', "")
    (place / "pyproject.toml").write_text(settings + pytest)
    _try_again_what_lived(place)
    _measure_again_what_changed(place)


def _copied(source: Path, target: Path, without: Callable[[str, list[str]], set[str]]) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=without)


def _listed(texts: list[str]) -> str:
    return ", ".join(json.dumps(each) for each in texts)


def _try_again_what_lived(place: Path) -> None:
    for meta in (place / "mutants").rglob("*.meta"):
        if not (place / meta.relative_to(place / "mutants").with_suffix("")).exists():
            meta.unlink()
            continue
        data = json.loads(meta.read_text())
        codes = data["exit_code_by_key"]
        data["exit_code_by_key"] = {key: code if code in KILLED else None for key, code in codes.items()}
        meta.write_text(json.dumps(data))


def _measure_again_what_changed(place: Path) -> None:
    """Make mutmut forget what the tests of changed files call, so that it runs them to find out."""
    seen, measured = place / "tests.json", place / "mutants" / "mutmut-stats.json"
    files = {
        path.relative_to(place).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (place / "tests").rglob("*.py")
    }
    before = json.loads(seen.read_text()) if seen.exists() else {}
    seen.write_text(json.dumps(files))
    if not measured.exists():
        return
    changed = {name for name in before if files.get(name) != before[name]}
    data = json.loads(measured.read_text())
    durations, callers = data["duration_by_test"], data["tests_by_mangled_function_name"]
    data["duration_by_test"] = {name: took for name, took in durations.items() if name.split("::")[0] not in changed}
    data["tests_by_mangled_function_name"] = {
        function: [name for name in names if name.split("::")[0] not in changed] for function, names in callers.items()
    }
    measured.write_text(json.dumps(data))


def score(place: Path) -> tuple[dict[str, Counter[str]], list[str]]:
    """The results of a run: counts of the mutants of each module, and the names of the survivors."""
    modules: dict[str, Counter[str]] = {}
    alive: list[str] = []
    for meta in sorted((place / "mutants").rglob("*.meta")):
        codes = json.loads(meta.read_text())["exit_code_by_key"]
        if not codes:
            continue
        name = meta.relative_to(place / "mutants").as_posix().removesuffix(".meta")
        modules[name] = Counter(_fate(code) for code in codes.values())
        alive += [key for key, code in codes.items() if _fate(code) == "lived"]
    return modules, alive


def _fate(code: int | None) -> str:
    if code is None:
        return "open"
    return "killed" if code in KILLED else "refused" if code == REFUSED else "lived"


def main(arguments: list[str]) -> int:
    """Run, and print a line for each module.

    Args:
        arguments: Modules and the tests that are to notice, as in ``engine/model/*,engine/push.py=tests/engine``.
    """
    whole = " ".join(arguments) or "engine/*=tests/engine"
    parts, _, tests = whole.partition("=")
    # A name that identifies it, and is not too long for a file system.
    place = WORKPLACE / f"{re.sub(r'[^a-z]+', '-', parts)[:60]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
    prepared(place, [f"pushhub/{part}" for part in parts.split(",")], tests.split(","))
    subprocess.run([sys.executable, "-m", "mutmut", "run", "--max-children", CHILDREN], cwd=place, check=False)
    modules, alive = score(place)
    print("\n".join(["", f"Lived (cd {place.relative_to(REPOSITORY)}; mutmut show NAME):", *alive, ""]))
    total: Counter[str] = Counter()
    for name, counts in modules.items():
        total += counts
        print(_line(name, counts))
    print(_line("all", total))
    return 0 if total["killed"] else 1


def _line(name: str, counts: Counter[str]) -> str:
    tried = counts["killed"] + counts["lived"]
    share = 100 * counts["killed"] / tried if tried else 0.0
    said = {"refused": "refused by mypy", "open": "not tried"}
    more = ", ".join(f"{counts[fate]} {text}" for fate, text in said.items() if counts[fate])
    return f"{share:5.1f} %  {counts['killed']:5} of {tried:5}  {name}" + (f" ({more})" if more else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
