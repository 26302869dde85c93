"""The common part of all worlds: a project, people and programs that act in it, and promises that are checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from random import Random
from types import MappingProxyType
from typing import Any, ClassVar

from pushhub.engine.model.deflated import plain
from pushhub.engine.model.flow import Limits
from pushhub.engine.model.message import Message
from pushhub.engine.projects.projects import Projects
from simulation.account import START_MS, Account, HttpAnswer, Operator
from simulation.command_line import CommandLine
from simulation.consuming import consuming
from simulation.endpoints import Asked, Endpoint, Mood, Reply
from simulation.gateway import WebSocketGateway
from simulation.internet.places import Places
from simulation.notification_records import NotificationRecords
from simulation.promises.flow import LEARNED_S, Flow, Limit, Waiting
from simulation.promises.flow import Asked as FlowAsked
from simulation.promises.judgement import HARMLESS, Fault, Faults, Judgement, Violation
from simulation.promises.push import FOREVER, Request
from simulation.promises.talks import shapes
from simulation.promises.talks.notifications import Connect, Connected
from simulation.promises.talks.talk import Came, Say, Surroundings, Talk
from simulation.reservations import ReservationRecords
from simulation.scheduler import SECOND
from simulation.sources import SHARDS
from simulation.truth import Accepted, Truth
from simulation.weather import HOUR, Kind

HARDLY_ANYTHING = 0.1
"""A storm that strikes at this rate is one fault for all that it strikes."""

ALL_OR_NOTHING = frozenset(
    {Kind.STOPPED, Kind.THROTTLED, Kind.CROWDED, Kind.OUTAGE, Kind.RESERVED, Kind.WINDOW, Kind.HALF_OPEN}
)
DELAYING = frozenset({Kind.REFUSED, Kind.LOST, Kind.SLOW, Kind.UNDONE, Kind.LATE, Kind.CONFLICT, Kind.CRASH})
COPYING = frozenset({"replay", "duplicates"})
"""Faults by which a message may end twice, each of which lets go the next one of its ordering key."""

FOR_ALL = ("wake-", "sweep-")
"""Environments that work on whatever is due, not on what they were called with."""

SENDERS = ("notify-", "consumers-")
"""Environments that send notifications, and hear of connections and acknowledgements."""

QUEUES_ON_THE_WAY = 3
"""How many queues a message passes at most from its post to its arrival."""

Owed = tuple[str, str]
"""A delivery: message and subscriber, by the hub's own ids."""

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
LONGEST_PUT_OFF_S = 30
"""How long a batch of a stream waits that Lambda has refused to run four times."""


class World(ABC):
    """Tenants of an account, and the promises made to them.

    Args:
        account: The account they belong to.
        truth: Watches the account.
        hours: How long there is traffic.
        rate: Posts per hour of each producer, on average.

    Attributes:
        judgement: What the models of :mod:`simulation.promises` say of it, once it was checked.
        talked: What came of the talk with the hub, in which nothing is excused.
        recorded: What came of comparing the delivery records with what callers were answered.
        happened: Counts of what the world itself did to the hub.
        recorded_as: How the only try of a message has to be recorded, by the message's id, as talks say.
    """

    name: ClassVar[str]
    most_excused: ClassVar[int] = 1
    ends_within_s: ClassVar[int] = 0
    struck_s: ClassVar[int] = 200
    """In small worlds, calls of so many first seconds are struck; what follows is repairs, which the worlds with
    weather have enough of.
    """

    def __init__(self, account: Account, truth: Truth, hours: float, rate: float) -> None:
        self._account = account
        self._truth = truth
        self._hours = hours
        self._rate = rate
        self._random = self._chance(self.name)
        self._operator = Operator(account)
        self._project = self._token = self._talked_to = ""
        self.judgement, self.talked = Judgement(self.most_excused), Judgement()
        self.recorded = Judgement(self.most_excused)
        self.happened: Counter[str] = Counter()
        self.recorded_as: dict[str, Mapping[str, object]] = {}

    @staticmethod
    def _requests(receiver: str, endpoint: Endpoint, queue: str = "") -> list[Request]:
        """What an endpoint saw, for the models; one that had no answer may have ended when it came."""
        return [
            Request(
                seen.at,
                seen.at if seen.ended_at is None else seen.ended_at,
                receiver,
                seen.message_id,
                seen.body,
                0 if seen.answered_at is None else seen.status,
                seen.wait_s,
                b"" if seen.answered_at is None else seen.said,
                queue,
            )
            for seen in endpoint.log
        ]

    def _judge_flow(
        self,
        endpoint: Endpoint,
        limits: Limits,
        waiting: Iterable[Waiting],
        *,
        window_s: float,
        calm_s: float = LEARNED_S,
        disturbed: Iterable[tuple[int, int]] = (),
    ) -> None:
        """Judge what an endpoint with limits was sent; see :class:`simulation.promises.flow.Flow`."""
        log = [
            FlowAsked(
                each.at,
                FOREVER if each.ended_at is None else each.ended_at,
                each.message_id,
                each.answered_at is not None and each.status // 100 == 2,
            )
            for each in endpoint.log
        ]
        flow = Flow(self.judgement, self._of_push, clocks_s=self._clocks_off_s)
        flow.judge(
            endpoint.name,
            Limit(limits.rate_per_s, limits.concurrency),
            log,
            waiting,
            window_s=window_s,
            calm_s=calm_s,
            disturbed=disturbed,
        )

    @property
    def _clocks_off_s(self) -> float:
        """The most by which two clocks of the hub differ in this run, seconds."""
        return 2 * max((each.rate for each in self._account.weather.storms if each.kind is Kind.CLOCKS), default=0.0)

    def _faults(self, of: tuple[str, ...] = ()) -> Faults:
        """What the fault plan did in this run, for the models; what struck environments whose names begin with one of
        ``of`` also under the name "".
        """
        faults, strokes = Faults(), list[tuple[int, Fault, list[str]]]()
        for each in self._account.weather.applied:
            storm, kind = each.storm, each.kind
            if kind.value in HARMLESS or kind is Kind.TWICE:
                continue
            if storm is None:
                fault = Fault(kind.value, kind.value, 0, self._account.weather.over)
            elif kind in ALL_OR_NOTHING or storm.rate >= HARDLY_ANYTHING:
                fault = Fault(kind.value, storm.name, storm.begins, storm.ends)
            else:
                fault = Fault(kind.value, f"{storm.name} at {each.at}", each.at, each.at)
            strokes.append((each.at, fault, [*each.ids, *([""] if each.who[1].startswith(of) and of else [])]))
            if each.who[1].startswith(FOR_ALL):
                faults.everywhere(fault)
        for at, kind, ids in self._account.lost:
            strokes.append((at, Fault(kind.value, f"lost at {at}", at, at), ids))
        for storm in self._account.weather.storms:
            heavy = storm.kind in ALL_OR_NOTHING or (storm.kind in DELAYING and storm.rate >= HARDLY_ANYTHING)
            if heavy:
                faults.everywhere(Fault(storm.kind.value, storm.name, storm.begins, storm.ends))
        for at, fault, ids in sorted(strokes, key=lambda stroke: stroke[0]):
            faults.struck(fault, at, ids)
        placed = [(each.message.ordering, each.message.message_id) for each in self._truth.accepted.values()]
        for ordering, message_id in sorted(placed, key=lambda each: each[0].sequence if each[0] else 0):
            for before in {*ordering.previous.values()} if ordering else ():
                faults.same(message_id, before, COPYING)
        return faults

    @cached_property
    def _of_push(self) -> Faults:
        """The same, with what struck push under the name ""; to be asked for at the end of a run."""
        return self._faults(("push-",))

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

    def talk(self) -> None:  # noqa: B027 (most have nothing to say)
        """Talk a protocol through, in good weather, in a project of its own, in the current task."""

    def _talking(self, base: str, headers: Callable[[str, str], Mapping[str, str]]) -> Talk:
        """A client of a new project, with headers made of its id and token."""
        projects = Projects(config=self._operator.config, clock=self._operator.clock)
        project = self._talked_to = projects.make("talked to").project_id
        token = projects.make_token(project)
        account, given = self._account, headers(project, token)
        around = Surroundings(
            lambda method, path, body, sent: account.http(method, path, body, headers=sent),
            lambda seconds: account.scheduler.sleep(round(seconds * SECOND)),
            lambda: account.scheduler.now,
            self._listen,
            QUEUES_ON_THE_WAY * self._gathers_s,
            LONGEST_PUT_OFF_S if self._puts_off else 0,
            int(account.seed.rpartition("/")[2]),
            CommandLine(account, project, token),
            project,
            token,
            START_MS // 1000,
            lambda table: account.dynamodb.lose(table, project),
            Places(account.network),
            self.recorded_as.__setitem__,
            self._recorded(project),
            consuming(account),
            account.sts.lets_in,
            account.seal_with,
            account.disable_key,
        )
        return Talk(around, self.talked, base=base.format(project=project), headers=given)

    def _recorded(self, project: str) -> Callable[[], Sequence[Mapping[str, Any]]]:
        """Reads the delivery records of a project that are written from now on, each object once."""
        objects, found = self._account.s3.objects, list[Mapping[str, Any]]()
        known = {*objects}

        def records() -> Sequence[Mapping[str, Any]]:
            found.extend(each for each in self._truth.records(besides=known) if each["project"] == project)
            known.update(objects)
            return found

        return records

    def _client(self, base: str, headers: Callable[[str, str], Mapping[str, str]]) -> Talk:
        """A client of a new project, who holds each answer to its description."""
        return shapes.described(self._talking(base, headers))

    def _talking_webhooks(self) -> Talk:
        """Such a client of Svix's API."""
        return self._client("/api/v1", lambda _, token: {"authorization": f"Bearer {token}"})

    @property
    def _gathers_s(self) -> int:
        """The longest time for which a function's batches are gathered, as an operator has chosen."""
        windows = (queue.window_s for function in self._account.stack.functions for queue in function.queues)
        return max(windows, default=0)

    @property
    def _puts_off(self) -> bool:
        """Whether an operator has left a function with less concurrency than its streams have batches at a time."""
        return any(
            each.reserved is not None and each.reserved < SHARDS * sum(stream.parallel for stream in each.streams)
            for each in self._account.stack.functions
        )

    def _connects(self, gateway: WebSocketGateway) -> Connect:
        """Opens connections of consumers, for a talk."""

        def connect(query: Mapping[str, str]) -> Connected:
            frames: list[str] = []
            closed: list[bool] = []

            def heard(_: str, frame: str) -> None:
                if frame:
                    frames.append(frame)
                else:
                    closed.append(True)

            status, connection = gateway.connect(query, heard)
            return Connected(
                status,
                frames,
                partial(gateway.send, connection),
                partial(gateway.cut, connection),
                partial(gateway.vanish, connection),
                lambda: bool(closed),
            )

        return connect

    def _listen(self, host: str, say: Say) -> Sequence[Came]:
        came: list[Came] = []

        def answers(seen: Asked, _: Random) -> Reply:
            came.append(Came(seen.at, seen.headers, seen.body, seen.path, seen.query, seen.method, seen.identity))
            return _reply(*say(came[-1]))

        self._account.endpoints.add(host, [(0, Mood.WELL)]).answers = answers
        return came

    @abstractmethod
    def open(self) -> int:
        """The number of things that have not ended."""

    @abstractmethod
    def check(self) -> Iterable[Violation]:
        """Every promise that was not kept."""

    def check_records(self, records: Sequence[Mapping[str, Any]]) -> Iterable[Violation]:
        """Whatever delivery records say otherwise than callers were answered."""
        self.recorded, now = Judgement(self.most_excused), self._account.scheduler.now
        of_pulls = ReservationRecords(self.recorded, self._truth.queues, clocks_s=self._clocks_off_s / 2, ends=now)
        of_pulls.judge(records, self._account.pulls)
        if self._account.consumers.connections:
            faults = self._faults(SENDERS)
            of_topics = NotificationRecords(self.recorded, faults, clocks_s=self._clocks_off_s / 2, ends=now)
            of_topics.judge(records, self._account.consumers)
        return self.recorded.total(beside=self.judgement)

    def held_up(self) -> Iterable[Violation]:
        """What ended later than :attr:`ends_within_s`, where that is given."""
        return ()

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
            return plain(message.body)
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

    def held_up(self) -> Iterator[Violation]:
        """Deliveries that ended later than all do in a world in which everybody is well again soon, whatever one fault
        did: what only the daily sweep finds was forgotten.
        """
        for accepted, owed in self._owed() if self.ends_within_s else ():
            at = self._truth.settled_at(*owed)
            if at is not None and at > accepted.at + self.ends_within_s * SECOND:
                yield Violation("held up", owed[0], f"to {owed[1]} until {moment(at)}")

    def _never_ended(self, owed: Owed, where: str) -> Violation:
        history = self._truth.deliveries.get(owed)
        return Violation("never ended", owed[0], f"{where}: {history[-1].state if history else 'never looked at'}")


def _reply(status: int, body: bytes, headers: Mapping[str, str] = NO_HEADERS, takes_s: float = 0) -> Reply:
    """An answer as clients say it: with the class of an error in place of a status and a body."""
    return Reply(status, round(takes_s * SECOND), "" if status else body.decode(), body, headers)


def moment(at: int) -> str:
    """A time (microseconds since the start) as text for people."""
    return f"{at / SECOND:.3f} s"


__all__ = ["SENDERS", "Owed", "PushWorld", "World", "moment"]
