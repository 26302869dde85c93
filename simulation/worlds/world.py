"""The common part of all worlds: a project, people and programs that act in it, and promises that are checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from random import Random
from typing import ClassVar

from pushhub.engine.model.message import Message
from pushhub.engine.projects import Projects
from simulation.account import Account, HttpAnswer, Operator
from simulation.endpoints import Asked
from simulation.promises.judgement import Judgement, Violation
from simulation.scheduler import SECOND
from simulation.truth import Accepted, Truth
from simulation.weather import HOUR, Kind

Owed = tuple[str, str]
"""A delivery: message and subscriber, by the hub's own ids."""


class World(ABC):
    """Tenants of an account, and the promises made to them.

    Args:
        account: The account they belong to.
        truth: Watches the account.
        hours: How long there is traffic.
        rate: Posts per hour of each producer, on average.

    Attributes:
        judgement: What the models of :mod:`simulation.promises` say of it, once it was checked.
    """

    name: ClassVar[str]

    def __init__(self, account: Account, truth: Truth, hours: float, rate: float) -> None:
        self._account = account
        self._truth = truth
        self._hours = hours
        self._rate = rate
        self._random = self._chance(self.name)
        self._operator = Operator(account)
        self._project = self._token = ""
        self.judgement = Judgement()

    @property
    def _clocks_off_s(self) -> float:
        """The most by which two clocks of the hub differ in this run, seconds."""
        return 2 * max((each.rate for each in self._account.weather.storms if each.kind is Kind.CLOCKS), default=0.0)

    def _chance(self, who: str) -> Random:
        """Random numbers for one actor, so that leaving out others changes nothing for it."""
        return Random(f"{self._account.seed}/{who}")

    @abstractmethod
    def set_up(self) -> None:
        """Make what is needed, before any weather."""

    @abstractmethod
    def actors(self) -> Mapping[str, Callable[[], object]]:
        """Those who begin something, by name, each with what it does; a run may leave some out."""

    def begin(self, names: Collection[str]) -> None:
        """Let those act from now on."""
        for name, act in self.actors().items():
            if name in names:
                self._account.scheduler.spawn(act)

    @abstractmethod
    def open(self) -> int:
        """The number of things that have not ended."""

    @abstractmethod
    def check(self) -> Iterable[Violation]:
        """Every promise that was not kept."""

    def _make_project(self) -> None:
        projects = Projects(config=self._operator.config, clock=self._operator.clock)
        self._project = projects.make("simulated").project_id
        self._token = projects.make_token(self._project)

    def _eager(self, number: int) -> bool:
        """Whether a producer's queue or application is eager: every second one, in about half of the runs."""
        return number % 2 == 0 and self._chance("eager").random() < 0.5

    def _in_good_weather(self, *works: Callable[[], object], seconds: int = 60) -> None:
        """Do several things concurrently before there is any weather."""
        for work in works:
            self._account.scheduler.spawn(work)
        self._account.scheduler.run(self._account.scheduler.now + seconds * SECOND)

    def _each_while_traffic(self, random: Random, act: Callable[[], object], *, an_hour: float) -> None:
        """Do something at random moments, this often per hour, each time concurrently with the previous time, until the
        hours of traffic are over.
        """
        scheduler = self._account.scheduler
        end = scheduler.now + round(self._hours * HOUR)
        while True:
            scheduler.sleep(round(random.expovariate(an_hour) * HOUR))
            if scheduler.now >= end:
                return
            scheduler.spawn(act)

    def _until(self, status: int, ask: Callable[[], HttpAnswer], *, tries: int = 6) -> HttpAnswer | None:
        """Ask until the answer has a status, with waits that double; None when it never had."""
        for again in range(tries):
            answer = ask()
            if answer.status == status:
                return answer
            self._account.scheduler.sleep(min(2**again, 600) * SECOND)
        return None

    def _body(self, message: Message) -> bytes:
        """The bytes of a stored message."""
        if message.body is not None:
            return message.body
        ref = message.body_ref
        assert ref is not None
        stored = self._account.s3.objects["BodiesBucket", ref.key]
        return stored[ref.offset : ref.offset + ref.length]


class PushWorld(World):
    """A world whose messages the hub delivers."""

    @abstractmethod
    def _is_own(self, message: Message) -> bool:
        """Whether a message is owed to subscribers of this world."""

    def _waits_for_a_person(self, owed: Owed) -> bool:  # noqa: ARG002 (for those where it may)
        """Whether a delivery cannot continue without a person's decision."""
        return False

    def _owed(self) -> Iterator[tuple[Accepted, Owed]]:
        """Every delivery of every message that the hub has."""
        for accepted in self._truth.accepted.values():
            if not accepted.pull and self._is_own(accepted.message):
                for subscriber_id in accepted.message.delivery_subscribers:
                    yield accepted, (accepted.message.message_id, subscriber_id)

    def _has_ended(self, owed: Owed) -> bool:
        history = self._truth.deliveries.get(owed)
        return bool(history and history[-1].settled) or self._waits_for_a_person(owed)

    def open(self) -> int:
        """Number of deliveries that have not ended."""
        return sum(not self._has_ended(owed) for _, owed in self._owed())

    def _never_ended(self, owed: Owed, where: str) -> Violation:
        history = self._truth.deliveries.get(owed)
        return Violation("never ended", owed[0], f"{where}: {history[-1].state if history else 'never looked at'}")

    def _asked_after_its_end(self, owed: Owed, asked: Iterable[Asked], where: str) -> Iterator[Violation]:
        """Requests whose sender could have known that the delivery had ended."""
        settled_at = self._truth.settled_at(*owed)
        for seen in asked:
            after = settled_at is not None and seen.known_at > settled_at
            if after and not self._truth.asked_by_hand(owed, seen.known_at):
                told = f"{where} at {moment(seen.at)}, ended at {moment(settled_at or 0)}"
                yield Violation("asked after its end", owed[0], told)

    def _asked_twice(self, owed: Owed, asked: Iterable[Asked], where: str) -> Iterator[Violation]:
        """While nothing fails: requests whose sender did not know of the one before. A repeat is allowed only where a
        failure may have kept the first from being known.
        """
        if self._account.weather.struck:
            return
        written = [each.at for each in self._truth.deliveries[owed]]
        for earlier, later in pairwise(sorted(asked, key=lambda each: each.at)):
            ended_at = later.at if earlier.ended_at is None else earlier.ended_at
            noted_at = next((at for at in written if at >= ended_at), later.at)
            # One of several subscribers is asked after the other, without another look at the delivery.
            next_of_round = owed[1] == "*" and later.environment == earlier.environment
            if (later.at if next_of_round else later.known_at) < noted_at:
                told = f"{where} at {moment(earlier.at)} and {moment(later.at)}"
                yield Violation("asked twice while nothing failed", owed[0], told)


def moment(at: int) -> str:
    """A time (microseconds since the start) as text for people."""
    return f"{at / SECOND:.3f} s"


__all__ = ["Owed", "PushWorld", "World", "moment"]
