"""Totals of many runs: what was run, what went wrong, and which states of the hub were reached."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from enum import StrEnum

from pushhub.engine.model.circuit import CircuitState
from pushhub.engine.model.delivery import DeliveryState
from simulation.run import Result
from simulation.weather import Kind

MOST = "most "
"""Figures whose names begin with this are the maximum over all runs; the others are summed."""


def applied(figures: Mapping[str, int]) -> str:
    """How often each kind of fault was applied."""
    return "applied: " + ", ".join(f"{each} {figures.get(f'fault {each}', 0)}" for each in Kind)


class Totals:
    """Adds up runs.

    Attributes:
        figures: Figures of all runs.
        broken: Runs that broke a promise, by world and seed.
    """

    def __init__(self) -> None:
        self.figures: Counter[str] = Counter()
        self.broken: list[str] = []
        self._struck: dict[str, tuple[set[str], int]] = {}
        self._runs: Counter[str] = Counter()
        self._hours: dict[str, float] = {}
        self._cpu_s: dict[str, float] = {}
        self._states: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, result: Result, cpu_s: float, strikes: int = 0) -> None:
        """Add a run that took this many seconds of CPU time; in a small world, one of so many possible strikes."""
        world = result.plan.world
        if result.plan.strike is not None:
            self._struck.setdefault(world, (set(), strikes))[0].add(str(result.plan.strike))
        self._runs[world] += 1
        self._hours[world] = self._hours.get(world, 0.0) + result.simulated_hours
        self._cpu_s[world] = self._cpu_s.get(world, 0.0) + cpu_s
        self._states[world] |= {name.split(" ")[3] for name in result.figures if name.startswith("step ")}
        if result.violations:
            named = result.plan.strike or result.plan.seed
            self.broken.append(f"{world} {named}")
        for name, count in result.figures.items():
            self.figures[name] = max(self.figures[name], count) if name.startswith(MOST) else self.figures[name] + count

    def lines(self) -> Iterator[str]:
        """The totals as text, on one screen: what was tried, what was excused, and how sure that makes one."""
        kept = f"promises broken in {', '.join(dict.fromkeys(self.broken))}" if self.broken else "all promises kept"
        yield f"{_amount(self._runs.total(), sum(self._hours.values()), sum(self._cpu_s.values()))}; {kept}"
        yield "tried:"
        for world, runs in self._runs.items():
            if world in self._struck:
                continue
            states = ", ".join(each.value for each in DeliveryState if each.value in self._states[world])
            reached = f"; deliveries were {states}" if states else ""
            yield f"  {world}: {_amount(runs, self._hours[world], self._cpu_s[world])}{reached}"
        for world, (struck, every) in self._struck.items():
            yield f"  {world}: {len(struck)} of {every} strikes of single calls, {self._cpu_s[world]:.0f} s of CPU"
        faults = sum(count for name, count in self.figures.items() if name.startswith("fault "))
        yield f"  {faults} faults; reached: {self._reached('step', DeliveryState, 'deliveries')}; " + self._reached(
            "circuit", CircuitState, "circuits"
        )
        yield f"  {applied(self.figures)}"
        judged, excused = self.figures["judged"], sum(self._excused().values())
        yield f"excused: {excused} of {judged} facts: " + ", ".join(
            f"{name} {count}" for name, count in sorted(self._excused().items())
        )
        yield from self._sure()

    def _sure(self) -> Iterator[str]:
        """How sure that makes one."""
        talked, runs = self.figures["judged in talks"], self._runs.total()
        yield f"sure: {talked} answers compared with the documents, none of them excused"
        for world, (struck, every) in self._struck.items():
            if len(struck) < every:
                yield f"  {world}: {every - len(struck)} strikes are left; ten seeds in a row make all of them"
        if not self.broken:
            # The rule of three: of what happens in a share p of all runs, n runs show nothing with 0.05 if p is 3 / n.
            yield f"  with 95 %, fewer than {min(1.0, 3 / max(1, runs)):.1%} of such runs break a promise"
        found = "what no rule covers, and what is not modelled, is not found: docs/simulation.md has the measured rate"
        yield f"  {found}"

    def _excused(self) -> Counter[str]:
        """What was excused, by the kinds of the faults."""
        kinds: Counter[str] = Counter()
        for name, count in self.figures.items():
            if name.startswith("excused "):
                kinds[name.rpartition(", for ")[2]] += count
        return kinds

    def _reached(self, kind: str, states: type[StrEnum], whose: str) -> str:
        """How many states of a kind were reached, which ones never were, and through how many different transitions."""
        steps = [name.split(" ") for name in self.figures if name.startswith(f"{kind} ")]
        seen = {state for _, before, _, after in steps for state in (before, after)}
        never = [each.value for each in states if each.value not in seen]
        lacking = f" (never {', '.join(never)})" if never else ""
        return f"{len(states) - len(never)} of {len(states)} states of {whose}{lacking} by {len(steps)} steps"


def _amount(runs: int, hours: float, cpu_s: float) -> str:
    counted = f"{runs} run{'s' if runs > 1 else ''}"
    return f"{counted}, {hours:.0f} simulated hours in {cpu_s:.0f} s of CPU, {hours / max(cpu_s, 0.001):.1f} a second"
