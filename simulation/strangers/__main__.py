"""Does the simulator notice changes that a seed chose? ``make sabotage`` tries some (docs/simulation.md).

Each change is tried in a process of its own, in the worlds whose runs reach the changed statement. What no run reaches
is counted and not tried. ``--known`` tries defects that people chose in the same way, from the diffs in ``known/``.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from simulation.strangers.changes import places
from simulation.strangers.diffs import Known, known
from simulation.strangers.installed import Marks, change, put_back, watch

ROOT = Path(__file__).parents[2]
LAYER = ROOT / "layers" / "pushhub"
LONGEST_S = 120
"""Seconds of CPU for a run with a change; a hub that never comes to rest is a change that was found."""

LONGEST_TESTS_S = 600
"""Seconds for the tests of a package with a change."""

NOT_THE_AIM = re.compile(r"\.(wire|api)\b|\.wiring$")
"""Formats, routes and construction: the simulator's aim are use cases, rules and stores."""

NOTICED = frozenset({"found", "stopped", "endless"})

Json = dict[str, Any]


@dataclass(frozen=True)
class Candidate:
    """A change that may be tried.

    Attributes:
        module: Name of the module.
        number: Of its place there.
        operator: What is done there.
        line: Of the statement.
        of_module: Whether the statement is the module's own.
    """

    module: str
    number: int
    operator: str
    line: int
    of_module: bool

    @property
    def name(self) -> str:
        """What it can be asked for by (``--these``)."""
        return f"{self.module}#{self.number}"

    def told(self) -> str:
        """The statement, and what the change makes of it."""
        source = _source(self.module)
        tree = ast.parse(source)
        place = places(tree)[self.number]
        before = _line(place.statement)
        place.make()
        after = {"dropped call": "", "swapped calls": "after the next"}.get(self.operator, _line(place.statement))
        return before + (f" -> {after}" if after else "")


@dataclass(frozen=True)
class Outcome:
    """What came of a change.

    Attributes:
        verdict: ``found``, ``stopped`` (the run ended in an error), ``endless``, ``tests`` (they noticed it, and the
            simulator did not), ``lived``, or ``no effect``: all runs did exactly what they do without it.
        by: The rules that it broke, the error, or the worlds that it lived in.
    """

    candidate: Candidate
    verdict: str
    by: str


@dataclass
class Reached:
    """What the runs of a world do as the code is.

    Attributes:
        lines: Modules and lines that they reach.
        digests: Of all that each of them did.
    """

    lines: set[tuple[str, int]] = field(default_factory=set)
    digests: list[str] = field(default_factory=list)


def candidates(parts: Sequence[str], *, all_of_it: bool = True) -> list[Candidate]:
    """Every change of the modules whose names begin with one of ``parts``, in order; unless ``all_of_it``, only of use
    cases, rules and stores.
    """
    found: list[Candidate] = []
    for path in sorted((LAYER / "pushhub").rglob("*.py")):
        module = ".".join(path.relative_to(LAYER).with_suffix("").parts)
        left_out = not all_of_it and NOT_THE_AIM.search(module)
        if path.name == "__init__.py" or not module.startswith(tuple(parts)) or left_out:
            continue
        for number, place in enumerate(places(ast.parse(_source(module)))):
            found.append(Candidate(module, number, place.operator, place.line, place.of_module))
    return found


@cache
def _source(module: str) -> str:
    return (LAYER / Path(*module.split("."))).with_suffix(".py").read_text(encoding="utf-8")


def _line(statement: ast.stmt) -> str:
    return ast.unparse(statement).splitlines()[0]


def main(arguments: Sequence[str]) -> int:
    """Try changes that a seed draws, and print what became of each; returns 1 when too few were found."""
    parser = argparse.ArgumentParser(prog="python -m simulation.strangers", description=__doc__)
    today = datetime.now(UTC).toordinal()
    parser.add_argument("--seed", type=int, default=today, help="draws them; the day's if absent")
    parser.add_argument("--most", type=int, default=40, help="how many to try")
    parser.add_argument("--minutes", type=float, default=10**6, help="none is begun after so long")
    parser.add_argument("--hours", type=float, default=1.0, help="hours of traffic and faults in each run")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each world; and one in which nothing goes wrong")
    parser.add_argument("--least", type=float, default=0, help="percent of what had an effect that must be found")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="runs at a time")
    parser.add_argument("--tests", action="store_true", help="let the package's tests try what the simulator missed")
    parser.add_argument("--these", default="", help="names of changes, or a file in which an earlier run told of them")
    parser.add_argument("--known", default="", help="names of known defects, or 'all', or so many that --seed draws")
    parser.add_argument("--no-calm", action="store_true", help="without the runs in which nothing goes wrong")
    parser.add_argument("--worlds", default="", help="only these, with commas between")
    parser.add_argument(
        "--of",
        default="pushhub.engine,pushhub.ironmq,pushhub.hub,pushhub.notifications,pushhub.webhooks",
        help="beginnings of modules' names, with commas between; formats, routes and wiring only where named in full",
    )
    parser.add_argument("--run", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.run:
        return _run(**json.loads(given.run))
    if given.known:
        return _known(given.known, given.seed, given.processes)
    return _strangers(given)


def _strangers(given: argparse.Namespace) -> int:
    began = time.monotonic()
    print(f"seed {given.seed}: looking for what runs reach ...", flush=True)
    plans = _plans(given.hours, given.seeds, {*filter(None, given.worlds.split(","))}, calm=not given.no_calm)
    reached = _reached(plans, given.processes)
    parts = given.of.split(",")
    drawn = candidates(parts, all_of_it=any(NOT_THE_AIM.search(each) for each in parts))
    random.Random(given.seed).shuffle(drawn)
    if given.these:
        file = Path(given.these)
        names = {*re.findall(r"[\w.]+#\d+", file.read_text() if file.exists() else given.these)}
        drawn = [each for each in candidates(["pushhub."]) if each.name in names]
    hit = [each for each in drawn if _worlds(each, reached)]
    print(f"{len(drawn)} changes, {len(hit)} of them reached; trying {min(given.most, len(hit))}", flush=True)
    _tell_reach(drawn, hit)
    outcomes: list[Outcome] = []

    def tried(each: Candidate) -> Outcome | None:
        if time.monotonic() - began > given.minutes * 60:
            return None
        return _tried(each, plans, reached, tests=given.tests)

    with ThreadPoolExecutor(given.processes) as pool:
        for outcome in filter(None, pool.map(tried, hit[: given.most])):
            outcomes.append(outcome)
            print(_told(outcome), flush=True)
    print("\n".join(_table(outcomes)))
    effective = [each for each in outcomes if each.verdict != "no effect"]
    noticed = sum(each.verdict in NOTICED for each in effective)
    return 0 if noticed * 100 >= given.least * len(effective) else 1


def _plans(hours: float, seeds: int, only: set[str], *, calm: bool) -> dict[str, list[Json]]:
    """The runs of each world: some with faults, and a short, busy one without."""
    from simulation.run import WORLDS  # noqa: PLC0415 (a run with a change imports it later)

    busy = {"seed": 1, "hours": min(0.25, hours), "rate": 60.0, "calm": True}
    return {
        world: [
            *({"world": world, "seed": seed, "hours": hours} for seed in range(1, seeds + 1)),
            *([{"world": world, **busy}] if calm else []),
        ]
        for world in WORLDS
        if not only or world in only
    }


def _tell_reach(drawn: Sequence[Candidate], hit: Sequence[Candidate]) -> None:
    packages, those = Counter(_part(each.module) for each in drawn), Counter(_part(each.module) for each in hit)
    print("reached: " + ", ".join(f"{name} {those[name]} of {count}" for name, count in sorted(packages.items())))


def _part(module: str) -> str:
    """A package's rules, stores, or use cases."""
    _, package, *inner = module.split(".")
    return f"{package}.{inner[0]}" if len(inner) > 1 else f"{package}, use cases"


def _worlds(candidate: Candidate, reached: Mapping[str, Reached]) -> list[str]:
    """The worlds that reach a change, its own first; what a module itself states is reached with the module."""
    [package, *_] = candidate.module.split(".")[1:]
    hits = [
        world
        for world, found in reached.items()
        if (candidate.module, candidate.line) in found.lines
        or (candidate.of_module and any(module == candidate.module for module, _ in found.lines))
    ]
    return sorted(hits, key=lambda world: (world != package, world))


def _reached(plans: Mapping[str, list[Json]], processes: int) -> dict[str, Reached]:
    """What the runs of each world do as the code is.

    Raises:
        SystemExit: One of them breaks a promise, so nothing could be learnt from changes.
    """
    reached = {world: Reached() for world in plans}
    with ThreadPoolExecutor(processes) as pool:
        whole = [{"plans": own} for own in plans.values()]
        for world, run in zip(plans, pool.map(_process, whole), strict=True):
            if run.returncode != 0 or (told := json.loads(run.stdout))["rules"]:
                raise SystemExit(f"without any change, {world} already fails: {run.stdout[:300]}{run.stderr[-500:]}")
            reached[world].lines = {(module, line) for module, line in told["reached"]}
            reached[world].digests = told["digests"]
    return reached


def _tried(
    candidate: Candidate, plans: Mapping[str, list[Json]], reached: Mapping[str, Reached], *, tests: bool
) -> Outcome:
    worlds = _worlds(candidate, reached)
    same = True
    for world in worlds:
        run = _process({"plans": plans[world], "module": candidate.module, "number": candidate.number})
        if run.returncode != 0:
            return Outcome(candidate, "stopped", (run.stderr.strip().splitlines() or ["?"])[-1][:120])
        told = json.loads(run.stdout)
        if told["endless"]:
            return Outcome(candidate, "endless", world)
        if told["rules"]:
            return Outcome(candidate, "found", f"{world}: {', '.join(told['rules'])}")
        same = same and told["digests"] == reached[world].digests
    if same:
        return Outcome(candidate, "no effect", ", ".join(worlds))
    if tests and (test := _by_tests(candidate)):
        return Outcome(candidate, "tests", test)
    return Outcome(candidate, "lived", ", ".join(worlds))


def _by_tests(candidate: Candidate) -> str:
    """The test that notices a change, of those of its package; empty if none does."""
    package = ROOT / "tests" / candidate.module.split(".")[1]
    script = (
        "import sys, pytest; from simulation.strangers.installed import change; "
        f"change({candidate.module!r}, {candidate.number}); "
        f"sys.exit(pytest.main(['-x', '-q', '-p', 'no:cacheprovider', '--no-header', {str(package)!r}]))"
    )
    try:
        run = _python(["-c", script], LONGEST_TESTS_S)
    except subprocess.TimeoutExpired:
        return "did not end"
    found = re.findall(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    return str([*found, "?"][0]) if run.returncode else ""


def _known(which: str, seed: int, processes: int) -> int:
    """Look for known defects, each from its seed on, and print the table of docs/simulation.md; returns 1 when one is
    not found.
    """
    chosen = known()
    if which.isdigit():
        chosen = random.Random(seed).sample(chosen, min(int(which), len(chosen)))
    elif which != "all":
        names = which.split(",")
        chosen = [each for each in chosen if each.name in names]
        assert len(chosen) == len(names), f"there are {[each.name for each in known()]}"
    print("| defect | world | seed | seconds | rules broken, the first one first |\n|---|---|---|---|---|", flush=True)
    missed = 0
    with ThreadPoolExecutor(processes) as pool:
        for line, found in pool.map(_looked_for, chosen):
            print(line, flush=True)
            missed += not found
    return 1 if missed else 0


MOST_SEEDS = 5
"""Seeds that a known defect may need."""


def _looked_for(defect: Known) -> tuple[str, bool]:
    began, others = time.monotonic(), set[str]()
    for seed in range(defect.seed, defect.seed + MOST_SEEDS):
        plan: Json = {"world": defect.world, "seed": seed, "hours": defect.hours, "rate": defect.rate}
        plan |= {"calm": defect.calm, "only": defect.only}
        run = _process({"plans": [plan], "known": defect.name})
        told = json.loads(run.stdout) if run.returncode == 0 else {"rules": ["?", run.stderr[-300:]]}
        rules = [each for each in told["rules"] if each in defect.found_by]
        others |= {*told["rules"]}
        if rules:
            break
    text = ", ".join(rules) if rules else f"not found; {sorted(others)}"
    took = time.monotonic() - began
    return f"| {defect.name}: {defect.told} | {defect.world} | {seed} | {took:.0f} | {text} |", bool(rules)


def _process(what: Mapping[str, object]) -> subprocess.CompletedProcess[str]:
    return _python(["-m", "simulation.strangers", "--run", json.dumps(what)], None)


def _python(arguments: list[str], timeout_s: float | None) -> subprocess.CompletedProcess[str]:
    # Compiled modules are kept, but in a place of their own.
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(ROOT / "build" / "strangers"), "PYTHONHASHSEED": "0"}
    env["PYTHONPATH"] = f"{LAYER}{os.pathsep}{ROOT}"
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=timeout_s, check=False)


def _run(*, plans: list[Json], module: str = "", number: int = 0, known: str = "") -> int:
    """In a process of its own, as JSON: the rules that the first run breaks that breaks any, and of what runs did the
    digests; without a change what they reach.
    """
    marks = Marks()
    if module:
        change(module, number)
    elif known:
        put_back(_named(known))
    else:
        marks = watch()
    from simulation.run import Plan, simulate  # noqa: PLC0415 (after the change)
    from simulation.strangers.observed import observed  # noqa: PLC0415

    digests: list[str] = []
    rules: list[str] = []

    def tell(*, endless: bool = False) -> None:
        told = {"rules": rules, "digests": digests, "endless": endless, "reached": sorted(marks.reached())}
        sys.stdout.write(json.dumps(told))
        sys.stdout.flush()

    def too_long(*_: object) -> None:
        tell(endless=True)
        os._exit(0)

    signal.signal(signal.SIGPROF, too_long)
    for plan in plans:
        if only := plan.get("only"):
            plan["only"] = frozenset(only)
        signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
        with observed() as digest:
            result = simulate(Plan(**plan))
        digests.append(digest.text())
        rules += dict.fromkeys(each.rule for each in result.violations)
        if rules:
            break
    signal.setitimer(signal.ITIMER_PROF, 0)
    tell()
    return 0


def _named(name: str) -> Known:
    return next(each for each in known() if each.name == name)


def _told(outcome: Outcome) -> str:
    change = outcome.candidate
    return f"{outcome.verdict:9} {change.name} line {change.line} {change.operator}: {change.told()} ({outcome.by})"


def _table(outcomes: Sequence[Outcome]) -> list[str]:
    columns = ("found", "tests", "lived", "no effect")

    def rows(name: str, of: Sequence[str]) -> Iterator[str]:
        yield f"\n| {name} | tried | {' | '.join(columns)} |\n|---|{'---|' * (len(columns) + 1)}"
        for key, tried in sorted(Counter(of).items()):
            own = [
                "found" if each.verdict in NOTICED else each.verdict
                for each, its in zip(outcomes, of, strict=True)
                if its == key
            ]
            yield f"| {key} | {tried} | {' | '.join(str(own.count(each)) for each in columns)} |"

    verdicts = Counter(each.verdict for each in outcomes)
    effective = len(outcomes) - verdicts["no effect"]
    simulator = sum(verdicts[each] for each in NOTICED)
    return [
        *rows("module", [each.candidate.module.removeprefix("pushhub.") for each in outcomes]),
        *rows("part", [_part(each.candidate.module) for each in outcomes]),
        *rows("operator", [each.candidate.operator for each in outcomes]),
        "\n" + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()),
        (
            f"of {effective} that changed what runs do, the simulator noticed {simulator} "
            f"({simulator / max(1, effective):.0%}), with tests {simulator + verdicts['tests']} "
            f"({(simulator + verdicts['tests']) / max(1, effective):.0%})"
        ),
    ]


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Threads of the hub's that a change left waiting must not keep the process.
    os._exit(code)
