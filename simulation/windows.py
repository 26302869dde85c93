"""The windows between two calls: a short run is made again and again, and each time another call of it goes wrong, or
waits until others have made theirs.

What is done in the wrong order around a crash, and what is lost when two runs cross, shows here without any luck:
every call that writes is followed once by a death, fails once with its effect and once without, takes effect late and
twice; and before every call, some, and at last all, of what others do comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from random import Random

from simulation.run import SMALL_WORLDS, Plan, Result, played, simulate
from simulation.scheduler import SECOND
from simulation.strikes import ALL, Call, Strike, Wrong

HOURS = 0.02
"""Length of the traffic of small worlds; what they do ends when it has ended."""

READS = frozenset({"get_item", "batch_get_item", "query", "scan", "get_object", "head_object", "decrypt"})
"""Calls without effect: when they fail, all that matters is that they did."""

OF_WRITES = (Wrong.DIES_AFTER, Wrong.REFUSED, Wrong.LOST, Wrong.LATE, Wrong.REPEATED)
OTHERS = (1, 2, 4, ALL)
"""For how many calls of others a call waits."""

EQUAL = 2
"""Of equal calls of one environment, made from the same lines, so many are struck."""

TURNS = 10
"""Ten seeds in a row strike everything, a tenth each."""


def plan(world: str, strike: Strike | None = None, *, past: bool = False) -> Plan:
    """A run of a small world in which one call is struck; see :attr:`simulation.run.Plan.past`."""
    return Plan(1, world, HOURS, calm=True, talk=False, strike=strike, past=past)


@cache
def calls(world: str) -> Sequence[Call]:
    """The calls of a small world that can be struck."""
    with played(plan(world)) as scene:
        assert scene.account.chosen is not None
        calls_made = scene.account.chosen.calls
        return [each for each in calls_made if each.at <= calls_made[0].at + scene.world.struck_s * SECOND]


def near(world: str, places: Collection[str], most: int) -> Sequence[Strike]:
    """So many of the strikes of calls that these modules make, or functions (``module:function``), and of the calls
    that follow in the same environments: between those lies what a change there may do in another order. What makes no
    calls itself, but decides, stands for its package. Strikes of calls that are equal to others come last.
    """
    own = _near(world, places) or _near(world, {each.partition(":")[0].rpartition(".")[0] for each in places})
    chance = Random(world)
    first = [each for each in strikes(world) if each.call in own]
    if len(first) > most:
        return chance.sample(first, most)
    known = {*first}
    further = [each for each in strikes(world, whole=True) if each.call in own and each not in known]
    return first + chance.sample(further, min(len(further), most - len(first)))


def _near(world: str, places: Collection[str]) -> set[int]:
    """The calls that are made in modules, functions or packages, and those that follow them."""
    own: set[int] = set()
    within: set[str] = set()
    for number, call in enumerate(calls(world)):
        packages = {each.rpartition(".")[0] for each in call.through if ":" not in each}
        inside = not (call.through | packages).isdisjoint(places)
        if inside or call.environment in within:
            own.add(number)
        within = within | {call.environment} if inside else within - {call.environment}
    return own


def strikes(world: str, *, whole: bool = False) -> Iterator[Strike]:
    """All that can happen to a small world, in order; ``whole`` with each of the equal calls."""
    begun: set[str] = set()
    before: Counter[tuple[str, object]] = Counter()
    for number, call in enumerate(calls(world)):
        if call.environment not in begun:
            begun.add(call.environment)
            yield Strike(number, Wrong.DIES_BEFORE)
        before[str(call), call.lines] += 1
        if before[str(call), call.lines] > EQUAL and not whole:
            continue
        yield from (Strike(number, wrong) for wrong in ((Wrong.REFUSED,) if call.operation in READS else OF_WRITES))
        yield from (Strike(number, None, others) for others in OTHERS)


def turn(world: str, seed: int) -> Sequence[Strike]:
    """A seed's tenth of all strikes, spread over all calls and kinds."""
    return [each for place, each in enumerate(strikes(world)) if (place * 7 + seed) % TURNS == 0]


def sample(world: str, seed: int, most: int) -> Sequence[Strike]:
    """So many of all strikes, as a seed draws them."""
    every = [*strikes(world)]
    return Random(f"{seed}/{world}").sample(every, min(most, len(every)))


def struck(world: str, chosen: Iterable[Strike]) -> Iterator[Result]:
    """Make the runs, one after the other. None reads the past: its calls would have other numbers."""
    for strike in chosen:
        yield simulate(plan(world, strike))


__all__ = ["SMALL_WORLDS", "calls", "near", "plan", "sample", "strikes", "struck", "turn"]
