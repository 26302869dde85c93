"""Who notices changes of the code that a seed chose? ``make sabotage`` tries some (docs/simulation.md).

Each change is tried by the suites that are named, one after the other, until one notices it: the tests of its package
that reach the changed statement, the quickest first; and the simulator, in a process of its own, in the worlds that fit
the change: its protocol's own, and those whose runs reach the statement most often. What nobody reaches is counted and
not tried. ``--diffs`` tries changes that somebody wrote, in the same way. ``--known`` looks for the defects in
``known/``, each in the world where it shows.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulation.strangers.changes import places
from simulation.strangers.diffs import Known, known, read
from simulation.strangers.forked import Forks, serve
from simulation.strangers.installed import Marks, change, put_back, watch
from simulation.strangers.notice import KEPT, digest_of, noticed_by, python
from simulation.strangers.tables import (
    LAYER,
    NOTICED,
    ROOT,
    Candidate,
    Change,
    Outcome,
    function_at,
    lines_around,
    source,
    tables,
)
from simulation.strangers.written import written

if TYPE_CHECKING:
    from simulation.strikes import Strike

LONGEST_S, TIMES_LONGER = 20, 6
"""Seconds of CPU for a run with a change, and how often those that it takes without; the larger counts. A hub that
never comes to rest is a change that was found.
"""

SMALL_ONES = "small "
"""What names of small worlds begin with."""

STRUCK = 80
"""How many strikes are made in each small world that fits a change: of calls that its module makes."""

Json = dict[str, Any]

PLAYING = threading.Lock()
"""Held while this process plays a small world to see its calls: a run puts its own things into modules, so two at once
would mix.
"""


@dataclass
class Reached:
    """What the runs of a world do as the code is.

    Attributes:
        lines: How often they reach a line of a module.
        modules: How often they reach any of a module.
        digests: Of all that each of them did.
        seconds: Of CPU that each of them took.
    """

    lines: dict[tuple[str, int], int] = field(default_factory=dict)
    modules: Counter[str] = field(default_factory=Counter)
    digests: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def hits(self, lines: Iterable[tuple[str, int]]) -> int:
        """How often they reach any of some lines."""
        return sum(self.lines.get(line, 0) for line in lines)


def candidates(parts: Sequence[str]) -> list[Candidate]:
    """Every change of the modules whose names begin with one of ``parts``, in order."""
    found: list[Candidate] = []
    of_layer = ((path, LAYER) for path in sorted((LAYER / "pushhub").rglob("*.py")))
    of_command_line = ((path, ROOT) for path in sorted((ROOT / "cli").rglob("*.py")))
    for path, root in (*of_layer, *of_command_line):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        if path.name == "__init__.py" or not module.startswith(tuple(parts)):
            continue
        for number, place in enumerate(places(ast.parse(source(module)))):
            found.append(Candidate(module, number, place.operator, place.line, place.of_module))
    return found


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
    parser.add_argument("--suites", default="tests,simulator", help="who is asked, in this order, until one notices")
    parser.add_argument("--fitting", type=int, default=3, help="worlds that a change is tried in, those that fit best")
    parser.add_argument("--into", default="", help="a file that is added to; what it tells of is not tried again")
    parser.add_argument("--these", default="", help="names of changes, or a file in which an earlier run told of them")
    parser.add_argument("--diffs", default="", help="a folder of changes as diffs, of which all are tried")
    parser.add_argument("--known", default="", help="names of known defects, or 'all', or so many that --seed draws")
    parser.add_argument("--no-calm", action="store_true", help="without the runs in which nothing goes wrong")
    parser.add_argument("--worlds", default="", help="only these, with commas between")
    parser.add_argument("--of", default="pushhub.,cli.", help="beginnings of modules' names, with commas between")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--forks", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.forks:
        serve(sys.stdin, sys.stdout, _run)
        return 0
    if given.run:
        return _run(**json.loads(given.run))
    if given.known:
        return _known(given.known, given.seed, given.processes)
    return _strangers(given)


def _strangers(given: argparse.Namespace) -> int:
    began = time.monotonic()
    drawn: list[Change] = [*candidates(given.of.split(","))]
    random.Random(given.seed).shuffle(drawn)
    if given.diffs:
        drawn = [*written(Path(given.diffs).resolve())]
        given.most = len(drawn)
    elif given.these:
        file = Path(given.these)
        names = {*re.findall(r"[\w.]+#\d+", file.read_text() if file.exists() else given.these)}
        drawn = [each for each in candidates([""]) if each.name in names]
    print(f"seed {given.seed}: {len(drawn)} changes; trying {min(given.most, len(drawn))}", flush=True)
    kept = _Kept(given.into)
    suites = given.suites.split(",")
    assert {*suites} <= {"tests", "simulator"}, f"there are tests and simulator, and not {given.suites}"

    # Forks do one at a time.
    with Forks() if given.processes == 1 and "simulator" in suites else nullcontext() as forks:
        simulator = _Simulator(given, forks)

        def tried(each: Change) -> Outcome | None:
            if each.name in kept.before:
                return Outcome(each, *kept.before[each.name])
            if time.monotonic() - began > given.minutes * 60:
                return None
            return kept.add(_by_suites(each, suites, simulator))

        with ThreadPoolExecutor(given.processes) as pool:
            outcomes = [*filter(None, pool.map(tried, drawn[: given.most]))]
    print("\n".join(tables(outcomes)))
    effective = [each for each in outcomes if each.verdict not in {"no effect", "not reached"}]
    noticed = sum(each.verdict in {*NOTICED, "tests"} for each in effective)
    return 0 if noticed * 100 >= given.least * len(effective) else 1


def _by_suites(candidate: Change, suites: Sequence[str], simulator: _Simulator) -> Outcome:
    """What becomes of a change: the first suite that notices it, or what is known of those that did not."""
    came = Outcome(candidate, "not reached", "")
    for suite in suites:
        if suite == "simulator":
            found = simulator.tries(candidate)
            if found.verdict in NOTICED:
                return found
        elif test := noticed_by(candidate):
            return Outcome(candidate, "tests", test)
        else:
            found = Outcome(candidate, "not reached" if test is None else "lived", "" if test is None else "tests")
        # Tests cannot tell that a change has no effect: what the simulator says of one that it reached counts more.
        if came.verdict == "not reached" or (suite == "simulator" and found.verdict != "not reached"):
            came = found
    return came


class _Simulator:
    """Tries changes in the worlds that fit them. What runs reach is looked for when the first change is tried."""

    def __init__(self, given: argparse.Namespace, forks: Forks | None) -> None:
        self._given = given
        self._forks = forks
        self._lock = threading.Lock()
        self._learned: tuple[dict[str, list[Json]], dict[str, Reached]] | None = None

    def tries(self, candidate: Change) -> Outcome:
        """What became of a change."""
        with self._lock:
            plans, reached = self._learned = self._learned or self._learn()
        if not _worlds(candidate, reached):
            return Outcome(candidate, "not reached", "")
        return _tried(candidate, plans, reached, self._given.fitting, self._forks)

    def _learn(self) -> tuple[dict[str, list[Json]], dict[str, Reached]]:
        given = self._given
        print("looking for what the simulator's runs reach ...", flush=True)
        plans = _plans(given.hours, given.seeds, {*filter(None, given.worlds.split(","))}, calm=not given.no_calm)
        return plans, _reached(plans, given.processes)


class _Kept:
    """What came of changes, told as it is known, and kept in a file if one is named."""

    def __init__(self, file: str) -> None:
        self.before: dict[str, tuple[str, str]] = {}
        self._file = Path(file) if file else None
        if self._file and self._file.exists():
            for line in self._file.read_text().splitlines():
                earlier = json.loads(line)
                self.before[earlier["name"]] = (earlier["verdict"], earlier["by"])

    def add(self, outcome: Outcome) -> Outcome:
        """Tell of one more."""
        print(outcome.sentence(), flush=True)
        if self._file:
            outcome_line = {"name": outcome.name, "verdict": outcome.verdict, "by": outcome.by}
            with self._file.open("a") as file:
                file.write(json.dumps(outcome_line) + "\n")
        return outcome


def _plans(hours: float, seeds: int, only: set[str], *, calm: bool) -> dict[str, list[Json]]:
    """The runs of each world: some with faults, and a short, busy one without; and those of small worlds, in each of
    which another call is struck.
    """
    from simulation.run import SMALL_WORLDS, WORLDS  # noqa: PLC0415

    busy = {"seed": 1, "hours": min(0.1, hours), "rate": 30.0, "calm": True, "talk": False}
    plans: dict[str, list[Json]] = {
        world: [
            *({"world": world, "seed": seed, "hours": hours} for seed in range(1, seeds + 1)),
            *([{"world": world, **busy}] if calm else []),
        ]
        for world in WORLDS
        if not only or world in only
    }
    for world in SMALL_WORLDS:
        if not only or world in only:
            plans[world] = _strikes(world, [None, None])
    return plans


def _strikes(world: str, struck: Sequence[Strike | None]) -> list[Json]:
    """Runs of a small world; of two in which nothing is struck, the second reads the past."""
    from simulation import windows  # noqa: PLC0415 (a run with a change imports it later)

    return [
        {**asdict(windows.plan(world, past=strike is None and place > 0)), "strike": strike and str(strike)}
        for place, strike in enumerate(struck)
    ]


def _worlds(candidate: Change, reached: Mapping[str, Reached]) -> list[str]:
    """The worlds that reach a change, its own first, then those that do so most often; what a module itself states is
    reached with the module. What no run reaches may be for when a call fails, which strikes bring about: it is tried
    where its function is reached.
    """
    hits = {
        world: found.modules[candidate.module] if candidate.of_module else found.hits(candidate.lines)
        for world, found in reached.items()
    }
    if not any(hits.values()):
        around = {(module, each) for module, line in candidate.lines for each in lines_around(module, line)}
        hits = {world: found.hits(around) for world, found in reached.items()}
    return sorted(filter(hits.get, hits), key=lambda world: (world != candidate.package, -hits[world], world))


def _reached(plans: Mapping[str, list[Json]], processes: int) -> dict[str, Reached]:
    """What the runs of each world do as the code is; kept for as long as neither the hub nor the simulator change.

    Raises:
        SystemExit: One of them breaks a promise, so nothing could be learnt from changes.
    """
    code = digest_of([*LAYER.rglob("*.py"), *(ROOT / "cli").rglob("*.py"), *(ROOT / "simulation").rglob("*.py")])

    def found(world: str) -> Reached:
        plan = hashlib.sha256(json.dumps(plans[world]).encode()).hexdigest()[:8]
        file = KEPT / f"{world}-{code}-{plan}.json"
        if not file.exists():
            run = _process({"plans": plans[world]})
            if run.returncode != 0 or json.loads(run.stdout)["rules"]:
                raise SystemExit(f"without any change, {world} already fails: {run.stdout[:300]}{run.stderr[-500:]}")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(run.stdout)
        stored = json.loads(file.read_text())
        lines = {(module, line): count for module, line, count in stored["reached"]}
        modules: Counter[str] = Counter()
        for (module, _), count in lines.items():
            modules[module] += count
        return Reached(lines, modules, stored["digests"], stored["seconds"])

    with ThreadPoolExecutor(processes) as pool:
        return dict(zip(plans, pool.map(found, plans), strict=True))


def _tried(
    candidate: Change,
    plans: Mapping[str, list[Json]],
    reached: Mapping[str, Reached],
    fitting: int,
    forks: Forks | None,
) -> Outcome:
    """Run the worlds that fit a change, first all of them with faults, until one breaks a promise; then one run of each
    other world that reaches it, as what many worlds share may be asked about in one of them alone.
    """
    from simulation import windows  # noqa: PLC0415 (a run with a change imports it later)

    every = _worlds(candidate, reached)
    small = [each for each in every if each.startswith(SMALL_ONES)][:fitting]
    large = [each for each in every if not each.startswith(SMALL_ONES)]
    worlds, others = large[:fitting], [(each, 0) for each in large[fitting:]]
    # The short runs first.
    order = [
        (world, number)
        for some in (small, worlds)
        for number in range(max((len(plans[each]) for each in some), default=0))
        for world in some
        if number < len(plans[world])
    ]
    with PLAYING:
        struck = [
            (world, each) for world in small for each in _strikes(world, windows.near(world, candidate.places, STRUCK))
        ]

    def planned(runs: Sequence[tuple[str, int]]) -> list[tuple[Json, float]]:
        """Each of some runs of worlds, and seconds of CPU that it may take."""
        return [
            (plans[world][number], max(LONGEST_S, TIMES_LONGER * reached[world].seconds[number]))
            for world, number in runs
        ]

    runs = [*planned(order), *((each, LONGEST_S) for _, each in struck), *planned(others)]
    what = {
        "plans": [each for each, _ in runs],
        "limits": [limit for _, limit in runs],
        **candidate.what,
    }
    in_a_fork = isinstance(candidate, Candidate) and not candidate.of_module
    if (run := forks.run(what) if forks and in_a_fork else None) is None:
        alone = _process(what)
        run = alone.returncode, alone.stdout, alone.stderr
    code, said, failed = run
    if code != 0:
        return Outcome(candidate, "stopped", (failed.strip().splitlines() or ["?"])[-1][:120])
    report = json.loads(said)
    if report["endless"] or report["rules"]:
        world = [*order, *struck, *others][report["at"]][0]
        return Outcome(candidate, "endless" if report["endless"] else "found", ": ".join([world, *report["rules"][:3]]))
    digests = report["digests"][: len(order)] + report["digests"][len(order) + len(struck) :]
    same = digests == [reached[world].digests[number] for world, number in (*order, *others)]
    return Outcome(candidate, "no effect" if same else "lived", ", ".join([*small, *large]))


def _known(which: str, seed: int, processes: int) -> int:
    """Look for known defects, each from its seed on, and print a table; returns 1 when one is not found."""
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


MOST_STRUCK = 400
"""How many strikes a known defect may need."""

MOST_SEEDS, LONGEST_KNOWN_S = 5, 300
"""Seeds that a known defect may need, and seconds of CPU for each; also for runs without any change."""


def _looked_for(defect: Known) -> tuple[str, bool]:
    from simulation import windows  # noqa: PLC0415 (a run with a change imports it later)

    began, others = time.monotonic(), set[str]()
    for seed in range(defect.seed, defect.seed + MOST_SEEDS):
        plan: Json = {"world": defect.world, "seed": seed, "hours": defect.hours, "rate": defect.rate}
        plan |= {"calm": defect.calm, "only": defect.only}
        small = defect.world.startswith(SMALL_ONES)
        # Of a small world, strikes of calls that the changed functions make: all seeds are the same.
        struck = windows.near(defect.world, _places(defect), MOST_STRUCK) if small else ()
        plans = _strikes(defect.world, [None, None, *struck]) if small else [plan]
        run = _process({"plans": plans, "known": defect.name})
        report = json.loads(run.stdout) if run.returncode == 0 else {"rules": ["?", run.stderr[-300:]]}
        rules = [each for each in report["rules"] if each in defect.found_by]
        others |= {*report["rules"]}
        if rules or small:
            break
    text = ", ".join(rules) if rules else f"not found; {sorted(others)}"
    took = time.monotonic() - began
    return f"| {defect.name}: {defect.summary} | {defect.world} | {seed} | {took:.0f} | {text} |", bool(rules)


def _places(defect: Known) -> set[str]:
    """The functions that a known defect changes."""
    found: set[str] = set()
    for module, hunks in defect.modules.items():
        text = source(module)
        for hunk in hunks:
            first = text[: text.index(hunk.before)].count("\n") + 1
            found |= {function_at(module, line) for line in range(first, first + hunk.before.count("\n"))}
    return found


def _process(what: Mapping[str, object]) -> subprocess.CompletedProcess[str]:
    return python(["-m", "simulation.strangers", "--run", json.dumps(what)])


def _run(
    *,
    plans: list[Json],
    module: str = "",
    number: int = 0,
    diff: str = "",
    known: str = "",
    limits: Sequence[float] = (),
) -> int:
    """In a process of its own, as JSON: the rules that the first run breaks that breaks any, its place in ``plans``,
    and of what runs did the digests; without a change what they reach.
    """
    marks = Marks()
    if module:
        change(module, number)
    elif diff:
        put_back(read(Path(diff))[1])
    elif known:
        put_back(_named(known).modules)
    else:
        marks = watch()
    from simulation.run import Plan, simulate  # noqa: PLC0415 (after the change)
    from simulation.strangers.observed import observed  # noqa: PLC0415
    from simulation.strikes import Strike  # noqa: PLC0415

    digests: list[str] = []
    rules: list[str] = []
    seconds: list[float] = []
    at, said = 0, sys.stdout

    def tell(*, endless: bool = False) -> None:
        report = {"rules": rules, "digests": digests, "endless": endless, "reached": marks.reached()}
        # Not what a command prints that is under way.
        said.write(json.dumps({**report, "at": at, "seconds": seconds}))
        said.flush()

    def too_long(*_: object) -> None:
        tell(endless=True)
        os._exit(0)

    signal.signal(signal.SIGPROF, too_long)
    for at, plan in enumerate(plans):
        if only := plan.get("only"):
            plan["only"] = frozenset(only)
        if strike := plan.get("strike"):
            plan["strike"] = Strike.read(strike)
        signal.setitimer(signal.ITIMER_PROF, limits[at] if limits else LONGEST_KNOWN_S)
        began = time.process_time()
        with observed() as digest:
            result = simulate(Plan(**plan))
        digests.append(digest.text())
        seconds.append(time.process_time() - began)
        rules += dict.fromkeys(each.rule for each in result.violations)
        if rules:
            break
    signal.setitimer(signal.ITIMER_PROF, 0)
    tell()
    return 0


def _named(name: str) -> Known:
    return next(each for each in known() if each.name == name)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Calls have the same numbers in all processes only if sets have the same order.
        again = [sys.executable, "-m", "simulation.strangers", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606 (this very program)
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Threads of the hub's that a change left waiting must not keep the process.
    os._exit(code)
