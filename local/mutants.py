"""Mutation testing: changes the code in small ways, one at a time, and sees whether a test notices (``make mutants``).

mutmut does the work. It knows a module by its path, so what it looks at is laid out beside the tests in
``build/mutants`` as it is imported.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
WORKPLACE = REPOSITORY / "build" / "mutants"
CHILDREN = "2"
BESIDE = ("docs", "functions", "layers", "local", "cli", "glue_jobs")
"""Folders that tests read or import from."""
KILLED = frozenset({1, 3})
"""Exit codes of pytest by which mutmut tells that a test failed."""
SETTINGS = """\
[tool.mutmut]
source_paths = ["pushhub"]
only_mutate = [{only}]
do_not_mutate_patterns = ["raise AssertionError"]
pytest_add_cli_args_test_selection = [{tests}]
also_copy = ["pushhub", {beside}, "template.yaml"]

"""


def prepared(parts: list[str], tests: list[str]) -> None:
    """Lay everything out. Results of an earlier run are kept for functions that have not changed since.

    Args:
        parts: Patterns of the modules to change, from ``pushhub/`` on.
        tests: Folders or files of tests.
    """
    WORKPLACE.mkdir(parents=True, exist_ok=True)
    without = shutil.ignore_patterns("__pycache__", "browser", "glue", "stack", "sam")
    for name, place in (
        ("layers/pushhub/pushhub", "pushhub"),
        *((each, each) for each in ("tests", *BESIDE)),
    ):
        shutil.rmtree(WORKPLACE / place, ignore_errors=True)
        shutil.copytree(REPOSITORY / name, WORKPLACE / place, ignore=without)
    shutil.copy(REPOSITORY / "template.yaml", WORKPLACE)
    project = (REPOSITORY / "pyproject.toml").read_text()
    pytest = project[project.index("[tool.pytest.ini_options]") :].replace('"layers/pushhub", ', "")
    settings = SETTINGS.format(only=_listed(parts), tests=_listed(tests), beside=_listed([*BESIDE]))
    (WORKPLACE / "pyproject.toml").write_text(settings + pytest)


def _listed(texts: list[str]) -> str:
    return ", ".join(json.dumps(each) for each in texts)


def score() -> tuple[dict[str, Counter[str]], list[str]]:
    """What the run found: for each module how many mutants were killed and lived, and the names of those that lived."""
    modules: dict[str, Counter[str]] = {}
    alive: list[str] = []
    for meta in sorted((WORKPLACE / "mutants").rglob("*.meta")):
        codes = json.loads(meta.read_text())["exit_code_by_key"]
        if not codes:
            continue
        name = meta.relative_to(WORKPLACE / "mutants").as_posix().removesuffix(".meta")
        modules[name] = Counter(
            "killed" if code in KILLED else "open" if code is None else "lived" for code in codes.values()
        )
        alive += [key for key, code in codes.items() if code is not None and code not in KILLED]
    return modules, alive


def main(arguments: list[str]) -> int:
    """Run, and print a line for each module; ``arguments`` are parts and tests as in
    ``engine/model/*=tests/engine``.
    """
    pairs = [each.partition("=") for each in arguments or ["engine/*=tests/engine"]]
    prepared([f"pushhub/{part}" for part, _, _ in pairs], list(dict.fromkeys(tests for _, _, tests in pairs)))
    subprocess.run([sys.executable, "-m", "mutmut", "run", "--max-children", CHILDREN], cwd=WORKPLACE, check=False)
    modules, alive = score()
    print("\n".join(["", "Lived:", *alive, ""]))
    total: Counter[str] = Counter()
    for name, counts in modules.items():
        total += counts
        print(_line(name, counts))
    print(_line("all", total))
    return 0 if total["killed"] else 1


def _line(name: str, counts: Counter[str]) -> str:
    tried = counts["killed"] + counts["lived"]
    share = 100 * counts["killed"] / tried if tried else 0.0
    return f"{share:5.1f} %  {counts['killed']:5} of {tried:5}  {name}" + (
        f" ({counts['open']} not tried)" if counts["open"] else ""
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
