"""What goes wrong, and when: storms derived from the seed. Each can be left out, to see whether a failure needs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from types import MappingProxyType

from simulation.ids import ids_in
from simulation.scheduler import SECOND, current_task, current_work

HOUR = 3_600 * SECOND
MINUTE = 60 * SECOND


class Kind(StrEnum):
    """Kinds of storms."""

    REFUSED = "refused"
    """Calls of a service fail without effect, after the SDK's own retries."""
    LOST = "lost"
    """Calls of a service take effect, but their answers do not arrive, after the SDK's own retries."""
    REPEATED = "repeated"
    """Calls of a service take effect twice: the SDK repeated a call that it got no answer to."""
    SLOW = "slow"
    """Calls of a service take seconds."""
    UNDONE = "undone"
    """Entries of batch calls of a service fail or stay unprocessed."""
    CRASH = "crash"
    """Execution environments die at a call, before or after its effect."""
    THROTTLED = "throttled"
    """Lambda refuses to run functions for lack of concurrency."""
    RECYCLED = "recycled"
    """Execution environments are replaced, as after a deployment."""
    DUPLICATES = "duplicates"
    """SQS delivers messages a second time."""
    LAG = "lag"
    """Indexes show writes minutes late."""
    REPLAY = "replay"
    """Streams deliver batches again that were already handled."""
    STOPPED = "stopped"
    """A function is broken: each of its runs fails at its start."""
    PURGED = "purged"
    """An operator purges a queue by mistake."""
    CLOCKS = "clocks"
    """New execution environments have clocks that are seconds off."""
    OUTAGE = "outage"
    """Several services, or a whole one, are down for minutes: every call of them fails."""
    CROWDED = "crowded"
    """The account's concurrency is used up: Lambda refuses runs of all functions."""
    LATE = "late"
    """Calls of a service are not answered, and take effect after their caller has given up."""
    CONFLICT = "conflict"
    """Transactions of DynamoDB take long: other writes to their items conflict with them, and so do they."""
    STALE = "stale"
    """Reads that are not consistent show items as they were up to two seconds ago."""
    TWICE = "twice"
    """The scheduler fires twice."""
    HALF_OPEN = "half-open"
    """Clients of WebSockets vanish without a word: their connections stay open, and what is sent on them is lost."""
    SPLIT = "split"
    """A shard of a stream closes as a record is written, and two others follow it."""
    RESERVED = "reserved"
    """The stack is deployed with little concurrency reserved for functions, which is their limit."""
    WINDOW = "window"
    """The stack is deployed with batching windows: messages wait in flight until a batch is full, or its time over."""


@dataclass(frozen=True)
class Storm:
    """Something that goes wrong for a while.

    Attributes:
        name: Identifies it in a trace, and to leave it out.
        kind: What goes wrong.
        where: Service, function or queue; empty for all.
        begins: Microseconds since the start.
        ends: Microseconds since the start.
        rate: Share of calls that it strikes (0..1), or a number that its kind explains.
    """

    name: str
    kind: Kind
    where: str
    begins: int
    ends: int
    rate: float

    def __str__(self) -> str:
        hours = f"{self.begins / HOUR:.2f} h to {self.ends / HOUR:.2f} h"
        return f"{self.name}: {self.kind} {self.where or 'everywhere'} {self.rate:.3g}, {hours}"


@dataclass(frozen=True)
class Applied:
    """A fault that struck.

    Attributes:
        at: When, microseconds.
        kind: What went wrong.
        where: The service, function or queue.
        who: The task and the environment that it struck.
        storm: The storm that it belongs to, if it struck by chance.
        ids: The messages that were being worked on.
    """

    at: int
    kind: Kind
    where: str
    who: tuple[str, str]
    storm: Storm | None
    ids: tuple[str, ...]


SERVICES = ("dynamodb", "sqs", "s3")

DRIZZLE = (
    (Kind.REFUSED, "", 0.001),
    (Kind.LOST, "", 0.0005),
    (Kind.REPEATED, "", 0.001),
    (Kind.UNDONE, "", 0.003),
    (Kind.CRASH, "", 0.0004),
    (Kind.DUPLICATES, "", 0.01),
    (Kind.REPLAY, "", 0.01),
)
"""What goes wrong all the time."""


LATELY = (
    Kind.OUTAGE,
    Kind.CROWDED,
    Kind.LATE,
    Kind.CONFLICT,
    Kind.STALE,
    Kind.TWICE,
    Kind.HALF_OPEN,
    Kind.SPLIT,
    Kind.RESERVED,
    Kind.WINDOW,
)
"""Kinds with random numbers of their own, so that the storms of the others are what they were before these existed.
Each world has each of them in at least one of any ten seeds that follow one another: where chance does not, its turn
does.
"""

TURNS = 10
"""Seeds in which each kind has its turn."""

CHOSEN: Mapping[Kind, Mapping[str, str]] = MappingProxyType(
    {
        Kind.RESERVED: {"IngestConcurrency": "10", "DispatchConcurrency": "1", "ControlConcurrency": "8"},
        Kind.WINDOW: {"BatchSize": "100", "BatchWindowSeconds": "5"},
    }
)
"""Parameters that the stack is deployed with, for kinds that are an operator's choice."""

OUTAGES = (("kms",), ("dynamodb",), ("dynamodb", "sqs", "s3"))
"""What is down together."""


def _has_turn(seed: str, kind: Kind) -> bool:
    """Whether it is a seed's turn to have a kind, whatever chance says."""
    number = seed.rpartition("/")[2]
    return number.isdigit() and int(number) % TURNS == LATELY.index(kind) % TURNS


def _lately(seed: str, end: int) -> list[Storm]:
    """Storms of the kinds that have random numbers of their own, each in some of the runs."""
    random = Random(f"{seed}/weather/lately")

    def storm(name: str, kind: Kind, where: str, rate: float, minutes: float) -> Storm:
        begins = round(random.random() * max(0, end - minutes * MINUTE))
        return Storm(name, kind, where, begins, min(end, begins + round(minutes * MINUTE)), rate)

    storms = [
        # Not for most of a short run: little could be judged in it.
        storm(
            "late",
            Kind.LATE,
            random.choice(SERVICES),
            random.choice((0.02, 0.1)),
            min(random.choice((20, 60)), end / MINUTE / 6),
        ),
        storm("conflict", Kind.CONFLICT, "dynamodb", random.choice((0.1, 0.5)), random.choice((60, 240))),
        storm("stale", Kind.STALE, "dynamodb", 0.5, random.choice((240, 600))),
        storm("twice", Kind.TWICE, "", random.choice((0.1, 0.5)), random.choice((30, 240))),
        storm("crowded", Kind.CROWDED, "", random.choice((0.3, 0.9)), random.choice((2, 10, 30))),
    ]
    storms = [each for each in storms if random.random() < 0.4 or _has_turn(seed, each.kind)]
    if random.random() < 0.4 or _has_turn(seed, Kind.OUTAGE):
        began, together = storm("outage", Kind.OUTAGE, "", 1.0, 20), random.choice(OUTAGES)
        storms += [replace(began, name=f"outage-{where}", where=where) for where in together]
    random = Random(f"{seed}/weather/connections, shards and parameters")
    last = [
        Storm("half-open", Kind.HALF_OPEN, "", 0, end, random.choice((0.2, 0.6))),
        Storm("split", Kind.SPLIT, "", 0, end, random.choice((0.003, 0.03))),
        *(Storm(kind.value, kind, "", 0, end, 1.0) for kind in CHOSEN),
    ]
    return storms + [each for each in last if random.random() < 0.2 or _has_turn(seed, each.kind)]


def chosen(storms: Sequence[Storm]) -> dict[str, str]:
    """Parameters that the stack is deployed with in a run with these storms."""
    return {name: value for each in storms for name, value in CHOSEN.get(each.kind, {}).items()}


def forecast(seed: str, hours: float, functions: Sequence[str], queues: Sequence[str]) -> list[Storm]:
    """The storms of a run.

    Args:
        seed: Seed of the run.
        hours: Its length.
        functions: Names of all functions.
        queues: Names of the queues that may be purged.
    """
    random = Random(f"{seed}/weather")
    end = round(hours * HOUR)
    storms = [
        Storm(f"drizzle-{kind}", kind, where, 0, end, rate * random.choice((0, 1, 1, 4)))
        for kind, where, rate in DRIZZLE
    ]
    for number in range(2 + round(hours / 3)):
        kind = random.choice([each for each in Kind if each not in LATELY])
        begins = round(random.random() * end)
        lasts = round(min(random.expovariate(1 / (20 * MINUTE)), 3 * HOUR))
        where, rate = "", random.choice((0.02, 0.1, 0.3))
        if kind in {Kind.REFUSED, Kind.LOST, Kind.REPEATED, Kind.SLOW, Kind.UNDONE}:
            where = random.choice(SERVICES)
            rate = random.choice((0.02, 0.1, 0.3, 1.0)) if kind in {Kind.REFUSED, Kind.SLOW} else rate
        elif kind is Kind.CRASH:
            where, rate = random.choice(functions), random.choice((0.005, 0.02, 0.1))
        elif kind is Kind.THROTTLED:
            where, rate = random.choice(functions), random.choice((0.1, 0.5, 1.0))
        elif kind is Kind.STOPPED:
            where, rate = random.choice(functions), 1.0
            # Sometimes longer than a stream keeps its records, except for the records function: without records nothing
            # could be proved.
            lasts = round(random.choice((0.3, 1, 4, 4 if where == "records" else 26)) * HOUR)
        elif kind is Kind.LAG:
            where, rate = "dynamodb", random.choice((5, 60, 300))
        elif kind is Kind.PURGED:
            where, rate, lasts = random.choice(queues), 1.0, 0
        elif kind is Kind.CLOCKS:
            rate = random.choice((1, 5, 20))
        ends = begins + lasts if kind is Kind.STOPPED else min(end, begins + lasts)
        storms.append(Storm(f"storm-{number}", kind, where, begins, ends, rate))
    return storms + _lately(seed, end)


class Weather:
    """The storms of a run in effect.

    Args:
        storms: The storms.
        seed: Seed of the run; each storm has random numbers of its own, so that leaving one out does not change the
            others.

    Attributes:
        struck: How often each kind struck.
        applied: Each time that something struck, in order.
        over: When the last storm ends, microseconds; the weather is good from then on.
    """

    def __init__(self, storms: Sequence[Storm], seed: str) -> None:
        self.storms = tuple(storms)
        self.struck: Counter[str] = Counter()
        self.applied: list[Applied] = []
        self.over = max((each.ends for each in storms), default=0)
        self._random = {each.name: Random(f"{seed}/{each.name}") for each in storms}
        self._of_kind: dict[Kind, list[Storm]] = {kind: [] for kind in Kind}
        for each in storms:
            self._of_kind[each.kind].append(each)

    def strikes(self, kind: Kind, where: str, now: int, about: Callable[[], str] = current_work) -> bool:
        """Whether something of a kind goes wrong at a place now (microseconds).

        Args:
            kind: What may go wrong.
            where: Service, function or queue.
            now: Microseconds since the start.
            about: Tells, if it does, in a text that names the messages, what is being worked on.
        """
        if now >= self.over:
            return False
        for storm in self._of_kind[kind]:
            if (
                storm.begins <= now < storm.ends
                and storm.where in ("", where)
                and self._random[storm.name].random() < storm.rate
            ):
                self.strike(kind, where, now, storm, about)
                return True
        return False

    def strike(
        self, kind: Kind, where: str, now: int, storm: Storm | None = None, about: Callable[[], str] = current_work
    ) -> None:
        """Something goes wrong at a place now (microseconds), by chance in a storm, or not; see :meth:`strikes`."""
        self.struck[kind.value] += 1
        self.applied.append(Applied(now, kind, where, current_task(), storm, tuple(ids_in(about()))))

    def under_way(self, kind: Kind, now: int) -> list[Storm]:
        """The current storms of a kind."""
        return [each for each in self._of_kind[kind] if each.begins <= now < each.ends]

    def worst(self, kind: Kind, now: int) -> float:
        """The highest rate among the current storms of a kind; 0 when there is none."""
        return max((each.rate for each in self.under_way(kind, now)), default=0.0)
