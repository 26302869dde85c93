"""Does the simulator notice changes that a seed chose? ``make sabotage`` tries some (docs/simulation.md).

Each change is tried in a process of its own, in the worlds whose runs reach the changed statement. What no run reaches
is counted and not tried.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from simulation.strangers.changes import places
from simulation.strangers.installed import change, watch

ROOT = Path(__file__).parents[2]
LAYER = ROOT / "layers" / "pushhub"
LONGEST = 180
"""Seconds for a run with a change; a hub that never comes to rest is a change that was found."""

Reached = dict[str, set[tuple[str, int]]]


@dataclass(frozen=True)
class Candidate:
    """A change that may be tried.

    Attributes:
        module: Name of the module.
        number: Of its place there.
        line: Of the statement.
        of_module: Whether the statement is the module's own.
        before: The statement.
        after: The statement, or what follows it, with the change.
    """

    module: str
    number: int
    operator: str
    line: int
    of_module: bool
    before: str
    after: str


@dataclass(frozen=True)
class Outcome:
    """What came of a change: ``found``, ``stopped`` (the run ended in an error), ``endless``, or ``lived``.

    Attributes:
        by: The rules that it broke, the error, or the worlds that it lived in.
    """

    candidate: Candidate
    verdict: str
    by: str


def candidates(parts: Sequence[str]) -> list[Candidate]:
    """Every change of the modules whose names begin with one of ``parts``, in order."""
    found: list[Candidate] = []
    for path in sorted((LAYER / "pushhub").rglob("*.py")):
        module = ".".join(path.relative_to(LAYER).with_suffix("").parts)
        if path.name == "__init__.py" or not module.startswith(tuple(parts)):
            continue
        source = path.read_text(encoding="utf-8")
        for number in range(len(places(ast.parse(source)))):
            # Changed in a tree of its own, because changes in one tree would add up.
            tree = ast.parse(source)
            place = places(tree)[number]
            before = _line(place.statement)
            place.make()
            after = {"dropped call": "", "swapped calls": "after the next"}.get(place.operator, _line(place.statement))
            found.append(Candidate(module, number, place.operator, place.line, place.of_module, before, after))
    return found


def _line(statement: ast.stmt) -> str:
    return ast.unparse(statement).splitlines()[0]


def main(arguments: Sequence[str]) -> int:
    """Try changes that a seed draws, and print what became of each; returns 1 when too few were found."""
    parser = argparse.ArgumentParser(prog="python -m simulation.strangers", description=__doc__)
    today = datetime.now(UTC).toordinal()
    parser.add_argument("--seed", type=int, default=today, help="draws them; the day's if absent")
    parser.add_argument("--most", type=int, default=40, help="how many to try")
    parser.add_argument("--hours", type=float, default=1.0, help="hours of traffic and faults in each run")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each world")
    parser.add_argument("--least", type=float, default=0, help="percent that must be found")
    parser.add_argument(
        "--of",
        default="pushhub.engine,pushhub.ironmq,pushhub.hub,pushhub.notifications,pushhub.webhooks",
        help="beginnings of modules' names, with commas between",
    )
    parser.add_argument("--run", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.run:
        return _run(**json.loads(given.run))
    print(f"seed {given.seed}: looking for what runs reach ...", flush=True)
    reached = _reached(given.hours, given.seeds)
    drawn = candidates(given.of.split(","))
    random.Random(given.seed).shuffle(drawn)
    hit = [each for each in drawn if _worlds(each, reached)]
    print(f"{len(drawn)} changes, {len(hit)} of them reached; trying {min(given.most, len(hit))}", flush=True)
    outcomes: list[Outcome] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for outcome in pool.map(lambda each: _tried(each, reached, given.hours, given.seeds), hit[: given.most]):
            outcomes.append(outcome)
            print(_told(outcome), flush=True)
    print("\n".join(_table(outcomes)))
    noticed = sum(each.verdict != "lived" for each in outcomes)
    return 0 if noticed * 100 >= given.least * len(outcomes) else 1


def _worlds(candidate: Candidate, reached: Reached) -> list[str]:
    """The worlds that reach a change, its own first; what a module itself states is reached with the module."""
    [package, *_] = candidate.module.split(".")[1:]
    hits = [
        world
        for world, lines in reached.items()
        if (candidate.module, candidate.line) in lines
        or (candidate.of_module and any(module == candidate.module for module, _ in lines))
    ]
    return sorted(hits, key=lambda world: (world != package, world))


def _reached(hours: float, seeds: int) -> Reached:
    """What the runs of each world reach as the code is.

    Raises:
        SystemExit: One of them breaks a promise, so nothing could be learnt from changes.
    """
    from simulation.run import WORLDS  # noqa: PLC0415 (a run with a change imports it later)

    plans = [{"world": world, "seed": seed, "hours": hours} for world in WORLDS for seed in range(1, seeds + 1)]
    reached: Reached = {world: set() for world in WORLDS}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for plan, run in zip(plans, pool.map(_process, plans), strict=True):
            if run.returncode != 0 or json.loads(run.stdout)["rules"]:
                raise SystemExit(f"without any change, {plan} already fails: {run.stdout[:200]}{run.stderr[-500:]}")
            reached[str(plan["world"])] |= {(module, line) for module, line in json.loads(run.stdout)["reached"]}
    return reached


def _tried(candidate: Candidate, reached: Reached, hours: float, seeds: int) -> Outcome:
    worlds = _worlds(candidate, reached)
    for seed in range(1, seeds + 1):
        for world in worlds:
            plan = {"world": world, "seed": seed, "hours": hours}
            try:
                run = _process({**plan, "module": candidate.module, "number": candidate.number})
            except subprocess.TimeoutExpired:
                return Outcome(candidate, "endless", world)
            if run.returncode != 0:
                return Outcome(candidate, "stopped", (run.stderr.strip().splitlines() or ["?"])[-1][:120])
            if rules := json.loads(run.stdout)["rules"]:
                return Outcome(candidate, "found", f"{world} {seed}: {', '.join(rules)}")
    return Outcome(candidate, "lived", ", ".join(worlds))


def _process(what: Mapping[str, object]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "simulation.strangers", "--run", json.dumps(what)]
    # Compiled modules are kept, but in a place of their own.
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(ROOT / "build" / "strangers")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=LONGEST, check=False)


def _run(*, world: str, seed: int, hours: float, module: str = "", number: int = 0) -> int:
    """In a process of its own, as JSON: the rules that a run breaks, and without a change what it reaches."""
    marks = set[tuple[str, int]]()
    if module:
        change(module, number)
    else:
        marks = watch()
    from simulation.run import Plan, simulate  # noqa: PLC0415 (after the change)

    result = simulate(Plan(seed, world, hours))
    rules = [*dict.fromkeys(each.rule for each in result.violations)]
    sys.stdout.write(json.dumps({"rules": rules, "reached": sorted(marks)}))
    return 0


def _told(outcome: Outcome) -> str:
    change = outcome.candidate
    after = f" -> {change.after}" if change.after else ""
    return f"{outcome.verdict:8} {change.module}:{change.line} {change.operator}: {change.before}{after} ({outcome.by})"


def _table(outcomes: Sequence[Outcome]) -> list[str]:
    def rows(name: str, of: Sequence[str]) -> list[str]:
        tried, noticed = Counter(of), Counter[str]()
        for each, key in zip(outcomes, of, strict=True):
            noticed[key] += each.verdict != "lived"
        return [
            f"\n| {name} | tried | noticed |\n|---|---|---|",
            *(
                f"| {key} | {count} | {noticed[key]} ({noticed[key] / count:.0%}) |"
                for key, count in sorted(tried.items())
            ),
        ]

    packages = [".".join(each.candidate.module.split(".")[1:3]) for each in outcomes]
    verdicts = Counter(each.verdict for each in outcomes)
    return [
        *rows("package", packages),
        *rows("operator", [each.candidate.operator for each in outcomes]),
        "\n" + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()),
    ]


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Threads of the hub's that a change left waiting must not keep the process.
    os._exit(code)
