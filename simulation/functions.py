"""A model of Lambda: execution environments that start cold, run one event at a time, and die at any call.

Each environment has the hub built anew by the code that :func:`pushhub.runtime.hub.start` runs, on clients of the
simulated services, and runs the handler that is deployed.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial
from random import Random
from types import CodeType
from typing import Any, Protocol
from unittest.mock import patch

from botocore.exceptions import ClientError, ReadTimeoutError
from greenlet import getcurrent, greenlet

from pushhub.base.ports import PushRequest
from pushhub.base.verdict import Answer
from pushhub.cloud.clients import CONNECTIONS
from pushhub.cloud.settings import Settings
from pushhub.engine.wiring import AwsEnginePorts
from pushhub.runtime import hub as runtime
from pushhub.runtime.hub import Pushhub
from pushhub.web.audit import Trail
from simulation import trails
from simulation.conditions import Conditions
from simulation.dynamodb import THROTTLED, DynamoDB, service_error
from simulation.endpoints import Endpoints
from simulation.ids import ids_in
from simulation.internet.network import Network, exchanged
from simulation.internet.servers import Pretended
from simulation.roles import Role
from simulation.scheduler import SECOND, Killed, Signal, VirtualExecutor
from simulation.sqs import NO_LINEAGE, Lineage, Queue
from simulation.strikes import Chosen, Strike, Wrong
from simulation.template import ROOT, FunctionSettings
from simulation.weather import Kind

IDLE_AT_MOST = 420 * SECOND
"""An environment that was not used for so long is gone."""

ATTEMPTS = frozenset({"push", "poll"})
"""The functions that make attempts."""

TAKES_UP = frozenset({"receive_message", "query"})
"""What a run of those takes up orders with, besides those of its event: from their queues, and from the lines of
subscribers with limits.
"""

SDK_REPEATS = 3
"""How often the SDK repeats a call that is refused for lack of capacity: ``total_max_attempts`` of
:mod:`pushhub.cloud.clients`, less the first. It waits up to 1, 2 and 4 seconds.
"""

LONGEST_CHAIN = 16
"""Runs of one function in one chain of requests, after which Lambda would not run it again ("approximately 16 times"),
unless it allows that. Chains lead through messages of SQS and through calls of Lambda; a table's stream begins a new
one.
"""


class Telemetry:
    """Counts log lines and metrics; has the interface of the hub's telemetry.

    Attributes:
        counts: By metric.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def event(self, name: str, /, **fields: object) -> None:  # noqa: ARG002 (the port's)
        """A log line, counted by name."""
        self.counts[f"log {name}"] += 1

    def count(self, metric: str, value: int = 1) -> None:
        """A metric."""
        self.counts[metric] += value

    def flush(self) -> None:
        """Nothing to write."""


class Services(Conditions, Protocol):
    """The services that functions call, and what goes wrong with them; the account says what each is."""

    random: Random
    numbers: Iterator[int]
    telemetry: Telemetry
    endpoints: Endpoints
    network: Network
    sends: Callable[[Environment, object], object]
    services: dict[str, object]
    dynamodb: DynamoDB
    queues: dict[str, Queue]
    roles: dict[str, Role]
    long_polls: bool
    calls: int
    chosen: Chosen | None
    sweeps: list[Callable[[str], None]]

    def now_ms(self) -> int:
        """The true time, epoch milliseconds."""

    def moment(self, at_ms: int) -> int:
        """A time in microseconds since the start."""

    def trouble(self, function: str, line: str) -> None:
        """Tell what went wrong in a function."""

    def chain_ended(self, function: str, text: str) -> None:
        """Lambda would not run a function again in the same chain of requests."""

    def lose(self, kind: Kind, ids: list[str]) -> None:
        """Orders, or places in a stream, are lost."""

    def ignoring_refusals(self, call: Callable[[], object]) -> None:
        """Make a call and ignore its answer."""


class Clock:
    """An environment's clock: off by some milliseconds; it sleeps in virtual time."""

    def __init__(self, environment: Environment, off_ms: int, random: Random) -> None:
        self._environment = environment
        self._off_ms = off_ms
        self._random = random

    def now(self) -> int:
        """Epoch milliseconds, as this machine has them."""
        return self._environment.account.now_ms() + self._off_ms

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self._environment.pause(round(seconds * SECOND))

    def jitter(self) -> float:
        """A random number in 0..1."""
        return self._random.random()


class Client:
    """A service as one environment sees it: calls take time, and go wrong as the weather has it."""

    def __init__(self, service: object, name: str, environment: Environment) -> None:
        self._service = service
        self._name = name
        self._environment = environment

    def __getattr__(self, operation: str) -> Any:
        call, name = self._environment.call, self._name
        real = self._environment.guarded(name, operation, getattr(self._service, operation))
        waits = operation == "receive_message"

        def operation_of_environment(**parameters: Any) -> Any:
            answer = call(name, operation, real, parameters)
            if waits and not answer["Messages"] and parameters.get("WaitTimeSeconds"):
                self._environment.await_message(parameters["QueueUrl"], parameters["WaitTimeSeconds"])
                answer = call(name, operation, real, parameters)
            return answer

        setattr(self, operation, operation_of_environment)
        return operation_of_environment


class Clients:
    """The clients of one environment."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._clients: dict[str, Client] = {}

    def of(self, service: str, *, endpoint_url: str | None = None) -> Any:  # noqa: ARG002 (there is one WebSocket API)
        """The client of a service."""
        if service not in self._clients:
            self._clients[service] = Client(self._environment.account.services[service], service, self._environment)
        return self._clients[service]


class Sender:
    """Requests to endpoints, from one environment, without a network: for runs that only count."""

    def __init__(self, environment: Environment, _: object = None) -> None:
        self._environment = environment

    def send(self, request: PushRequest) -> Any:
        """Send and wait for the answer."""
        environment = self._environment
        account = environment.account
        started = environment.clock.now()
        environment.pause(account.random.randrange(500, 5_000))
        seen, reply = account.endpoints.at(request.url).asked(request, environment.name)
        limit = round(request.timeout_s * SECOND)
        try:
            environment.pause(min(reply.takes, limit))
        finally:
            seen.ended_at = account.scheduler.now
        if reply.takes > limit:
            return self.failed(request, started, "timed out", "timeout")
        if reply.error_class:
            return self.failed(request, started, reply.error_class, reply.error_class)
        seen.answered_at = seen.ended_at
        body = reply.body[: request.answer_limit]
        return Answer(
            status_code=reply.status,
            message=reply.reason,
            body=body,
            headers=dict(reply.headers),
            started_at=started,
            finished_at=environment.clock.now(),
            bytes_out=len(request.body),
            bytes_in=len(body),
        )

    def failed(self, request: PushRequest, started: int, message: str, error_class: str) -> Answer:
        """What is told of a request that had no answer."""
        return Answer(
            status_code=0,
            message=message,
            error_class=error_class,
            started_at=started,
            finished_at=self._environment.clock.now(),
            bytes_out=len(request.body),
        )


class WireSender:
    """The hub's own code that sends requests, from one environment, on the account's network."""

    def __init__(self, environment: Environment, ports: object) -> None:
        self._environment = environment
        self._ports = ports

    def send(self, request: PushRequest) -> Any:
        """Send and wait for the answer."""
        environment, scheduler = self._environment, self._environment.account.scheduler
        started = environment.clock.now()
        with exchanged(request) as exchange:
            try:
                return self._guarded.send(request)
            except Pretended as pretended:
                environment.pause(pretended.reply.takes)
                error_class = pretended.reply.error_class
                return Sender(environment).failed(request, started, error_class, error_class)
            finally:
                for seen in exchange.asked:
                    seen.ended_at = scheduler.now

    @cached_property
    def _guarded(self) -> Any:
        return vars(AwsEnginePorts)["sender"].func(self._ports)


@cache
def _handler(name: str) -> CodeType:
    """The module that Lambda loads for a function."""
    path = ROOT / "functions" / name / "handler.py"
    return compile(path.read_text(), str(path), "exec")


def _ports(environment: Environment) -> Any:
    """The ports that functions have on AWS, on the simulated services; only the machine's own are replaced."""
    settings = environment.settings
    clients: Any = Clients(environment)
    ports: Any = AwsEnginePorts(Settings(runtime.settings_of(settings.name), settings.environ), clients)
    ports.clock = environment.clock
    ports.sender = environment.account.sends(environment, ports)
    ports.executor = environment.executor(CONNECTIONS)
    ports.telemetry = environment.account.telemetry
    return ports


@dataclass
class Context:
    """What Lambda tells a run about itself."""

    aws_request_id: str
    remaining_ms: Callable[[], int]

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the run is stopped."""
        return self.remaining_ms()


class Environment:
    """One execution environment, or rather a process in it.

    Args:
        account: The services, and whoever else there is.
        settings: Of its function.
        number: Its number; later ones of its function have higher ones.

    Attributes:
        lineage: Of its present run, which is that of what it sends.
        work: What its present run was called with, and what that has sent.
        trail: Where it keeps who changed what.
    """

    trail: Trail | None = None

    def __init__(
        self,
        account: Services,
        settings: FunctionSettings,
        number: int,
    ) -> None:
        self.account = account
        self.settings = settings
        self.timeout_s = settings.timeout_s
        self.name = f"{settings.name}-{number}"
        self.number = number
        self.alive = True
        self.used_at = account.scheduler.now
        self.random = Random(f"{account.seed}/{self.name}")
        off = account.weather.worst(Kind.CLOCKS, account.scheduler.now) * 1000
        if off:
            account.weather.struck[Kind.CLOCKS.value] += 1
        self.clock = Clock(
            self, round(self.random.uniform(-off, off)) if off else self.random.randint(-20, 20), self.random
        )
        self._tasks: list[greenlet] = []
        self._ended: Signal | None = None
        self.deadline = 0
        self.lineage: Lineage = NO_LINEAGE
        self.work: list[Any] = []

    def start(self) -> None:
        """Build the hub and load the handler, as a cold start does."""
        name = self.settings.name
        getcurrent().environment = self  # type: ignore[attr-defined]
        ports = _ports(self)
        self.hub = runtime.build(ports, lambda each: each.aws_ports(ports))
        runtime.WARM[name](self.hub)
        if name == "control":
            trails.keep(self, ports)
        namespace: dict[str, Any] = {"__name__": f"functions.{name}.handler"}
        with patch.object(runtime, "start", lambda _: self.hub):
            exec(_handler(name), namespace)  # noqa: S102 (the deployed handler)
        self.handler = namespace["handler"]

    def executor(self, threads: int) -> VirtualExecutor:
        """Threads of this environment."""
        return VirtualExecutor(self.account.scheduler, threads, self._begin)

    def _begin(self, work: Callable[[], None]) -> None:
        if not self.alive:
            raise Killed
        task = getcurrent()
        task.environment = self  # type: ignore[attr-defined]
        self._tasks.append(task)
        try:
            work()
        finally:
            self._tasks.remove(task)

    def pause(self, duration: int) -> None:
        """Let time pass.

        Raises:
            Killed: This environment is gone meanwhile.
        """
        self.account.scheduler.sleep(duration)
        if not self.alive:
            raise Killed

    def await_message(self, queue_url: str, seconds: int) -> None:
        """Wait until a queue has a message, or for so many seconds; for all of them if nobody is told of it.

        Raises:
            Killed: This environment is gone meanwhile.
        """
        account = self.account
        if not account.long_polls:
            self.pause(seconds * SECOND)
            return
        queue = account.queues[queue_url.rpartition("/")[2]]
        until = account.scheduler.now + seconds * SECOND
        while (now := account.scheduler.now) < until:
            at_ms = queue.next_at()
            if at_ms is not None and at_ms <= account.now_ms():
                break
            wakes = until if at_ms is None else min(until, account.moment(at_ms))
            signal = Signal(account.scheduler)
            queue.awaiting.append(signal.set)
            signal.wait((wakes - now) / SECOND)
        self.pause(0)

    def guarded(self, service: str, operation: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """A call of a service, as far as the function's role grants it."""
        return self.account.roles[self.settings.name].guarded(service, operation, real)

    def call(self, service: str, operation: str, real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        """One call of a service, which may go wrong in every way there is."""
        account, weather = self.account, self.account.weather
        now = account.scheduler.now
        getcurrent().parameters = parameters  # type: ignore[attr-defined]
        if operation == "send_message_batch":
            self.work.append(parameters)
        latency = account.random.randrange(1_000, 9_000)
        if weather.strikes(Kind.SLOW, service, now):
            latency += account.random.randrange(200_000, 4_000_000)
        self.pause(latency)
        now = account.scheduler.now
        account.calls += 1
        if account.chosen is not None and (strike := account.chosen.reached(self.name, service, operation, parameters)):
            return self._struck(strike, service, operation, real, parameters)
        if now < weather.over:
            return self._in_weather(service, operation, real, parameters)
        return self._call_and_note(operation, real, parameters)

    def _call_and_note(self, operation: str, real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        """A call that is made, and noted."""
        account = self.account
        if self.settings.name == "sweep" and operation == "send_message_batch":
            for entry in parameters["Entries"]:
                for listener in account.sweeps:
                    listener(entry["MessageBody"])
        account.scheduler.note(f"{self.name} {operation}", lambda: " ".join(ids_in(str(parameters))))
        for repeat in range(SDK_REPEATS):
            try:
                return self._taken_up(operation, real(**parameters))
            except ClientError as error:
                if error.response["Error"]["Code"] != THROTTLED:
                    raise
            self.pause(round(account.random.random() * 2**repeat * SECOND))
        return self._taken_up(operation, real(**parameters))

    def _taken_up(self, operation: str, answer: Any) -> Any:
        """An answer; a run that receives orders itself, or reads them from a line, has them in hand since."""
        if self.settings.name in ATTEMPTS and operation in TAKES_UP:
            self.work.append(answer)
        return answer

    def _in_weather(self, service: str, operation: str, real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        """A call in which chance decides what goes wrong."""
        account, weather = self.account, self.account.weather
        now = account.scheduler.now
        wrong = partial(self._goes_wrong, service=service, operation=operation, real=real, parameters=parameters)
        if weather.strikes(Kind.CRASH, self.settings.name, now):
            return wrong(Wrong.DIES_AFTER if account.random.random() < 0.5 else Wrong.DIES_BEFORE)
        if weather.strikes(Kind.REFUSED, service, now):
            return wrong(Wrong.REFUSED)
        if weather.strikes(Kind.OUTAGE, service, now):
            account.trouble(self.settings.name, f"{self.name} {operation} refused, as {service} is down")
            raise service_error("ServiceUnavailable", operation)
        if weather.strikes(Kind.LATE, service, now):
            return wrong(Wrong.LATE)
        if operation == "transact_write_items" and weather.strikes(Kind.CONFLICT, service, now):
            account.trouble(self.settings.name, f"{self.name} {operation} takes long")
            return self._call_and_note(operation, partial(self._transact_slowly, real), parameters)
        if weather.strikes(Kind.REPEATED, service, now):
            self._repeated(operation, real, parameters)
        if weather.strikes(Kind.LOST, service, now):
            return wrong(Wrong.LOST)
        return self._call_and_note(operation, real, parameters)

    def _goes_wrong(
        self, wrong: Wrong, *, service: str, operation: str, real: Callable[..., Any], parameters: dict[str, Any]
    ) -> Any:
        """A call that goes wrong in a given way.

        Raises:
            Killed: The environment died.
            ClientError: The call was refused.
            ReadTimeoutError: It was not answered.
        """
        account, function = self.account, self.settings.name
        if wrong in {Wrong.DIES_BEFORE, Wrong.DIES_AFTER}:
            if wrong is Wrong.DIES_AFTER:
                # What it would have been told, a refusal too, nobody learns.
                account.ignoring_refusals(lambda: real(**parameters))
            account.trouble(function, f"{self.name} {wrong} {operation}")
            self.die()
            raise Killed
        if wrong is Wrong.REFUSED:
            account.trouble(function, f"{self.name} {operation} refused")
            raise service_error("ThrottlingException", operation)
        if wrong is Wrong.LATE:
            account.trouble(function, f"{self.name} {operation} unanswered, and late")
            self._take_effect_late(real, parameters)
            raise ReadTimeoutError(endpoint_url=service)
        if wrong is Wrong.REPEATED:
            self._repeated(operation, real, parameters)
            return self._call_and_note(operation, real, parameters)
        self._call_and_note(operation, real, parameters)
        account.trouble(function, f"{self.name} {operation} unanswered")
        self.pause(account.random.randrange(1_000_000, 40_000_000))
        raise ReadTimeoutError(endpoint_url=service)

    def _repeated(self, operation: str, real: Callable[..., Any], parameters: dict[str, Any]) -> None:
        """The SDK has had no answer, and makes a call again some time later; only that answer counts."""
        account = self.account
        account.trouble(self.settings.name, f"{self.name} {operation} repeated")
        account.ignoring_refusals(lambda: real(**parameters))
        self.pause(account.random.randrange(50_000, 10_000_000))

    def _struck(
        self, strike: Strike, service: str, operation: str, real: Callable[..., Any], parameters: dict[str, Any]
    ) -> Any:
        """The call that was chosen to go wrong, or to wait for others."""
        account = self.account
        if strike.wrong is not None:
            wrong = strike.wrong
            return self._goes_wrong(wrong, service=service, operation=operation, real=real, parameters=parameters)
        account.trouble(self.settings.name, f"{self.name} {operation} waits for {strike.others} calls")
        assert account.chosen is not None
        account.chosen.wait(self.name)
        self.pause(0)
        return self._call_and_note(operation, real, parameters)

    def _take_effect_late(self, real: Callable[..., Any], parameters: dict[str, Any]) -> None:
        """Wait for an answer in vain; the call takes effect some time after its caller has given up."""
        account = self.account
        gives_up = account.random.randrange(1_000_000, 40_000_000)
        late = gives_up + account.random.randrange(1, 10_000_000)
        account.scheduler.spawn(lambda: account.ignoring_refusals(lambda: real(**parameters)), after=late)
        self.pause(gives_up)

    def _transact_slowly(self, real: Callable[..., Any], **parameters: Any) -> Any:
        """A transaction that takes seconds, in which nobody else may write to its items.

        Raises:
            ClientError: It was cancelled as another write came first; or the SDK repeated it while it was in progress,
                and has given up before its end.
        """
        account, table = self.account, self.account.dynamodb
        lasts = account.random.randrange(50_000, 2_000_000)
        chance = account.random.random()
        if chance < 0.4:
            raise service_error(
                "TransactionCanceledException",
                "TransactWriteItems",
                CancellationReasons=[
                    {"Code": "None" if number else "TransactionConflict"}
                    for number, _ in enumerate(parameters["TransactItems"])
                ],
            )
        release = table.hold(parameters["TransactItems"])

        def ends() -> Any:
            release()
            return real(**parameters)

        if chance < 0.6:
            lasts *= 3
            until = account.scheduler.now + lasts
            account.scheduler.spawn(lambda: account.ignoring_refusals(ends), after=lasts)
            for repeat in range(SDK_REPEATS):
                self.pause(round(account.random.random() * 2**repeat * SECOND))
                if account.scheduler.now > until:
                    return real(**parameters)
            raise service_error("TransactionInProgressException", "TransactWriteItems")
        try:
            self.pause(lasts)
        finally:
            release()
        return real(**parameters)

    def run(self, event: Any, instead: Callable[[Pushhub], Any] | None = None) -> Any:
        """Handle an event in the current task; see :meth:`Function.invoke`.

        Raises:
            Killed: The environment died: a crash, or a timeout.
            Exception: What the handler raised.
        """
        account = self.account
        self._ended, self.work = Signal(account.scheduler), [event]
        outcome: list[Any] = []
        self.deadline = account.scheduler.now + self.timeout_s * SECOND
        number = next(account.numbers)
        context = Context(str(number), lambda: max(0, (self.deadline - account.scheduler.now) // 1000))
        ended = self._ended

        def work() -> None:
            try:
                outcome.append((True, instead(self.hub) if instead else self.handler(event, context)))
            except Exception as error:  # noqa: BLE001 (Lambda's own view of a run)
                outcome.append((False, error))
            ended.set()

        account.scheduler.spawn(lambda: self._begin(work))
        ended.wait(self.timeout_s)
        if not outcome:
            if self.alive:
                account.trouble(self.settings.name, f"{self.name} runs out of time")
                account.telemetry.count("RunsOutOfTime")
                self.die()
            raise Killed
        self._ended = None
        self.used_at = account.scheduler.now
        good, result = outcome[0]
        if good:
            return result
        account.trouble(self.settings.name, f"{self.name} raises {result!r}")
        raise result

    def die(self) -> None:
        """The environment is gone, with everything that runs in it."""
        if not self.alive:
            return
        self.alive = False
        current = getcurrent()
        for task in self._tasks:
            if task is not current:
                self.account.scheduler.at(self.account.scheduler.now, lambda task=task: _kill(task))  # type: ignore[misc]
        if self._ended is not None:
            self._ended.set()


def _kill(task: greenlet) -> None:
    if task:
        task.throw(Killed())


class RunFailed(Exception):
    """A run of a function failed: an error, a crash, a timeout, or Lambda would not run it."""


class Function:
    """One function and its environments.

    Args:
        account: The services.
        settings: As deployed.
    """

    def __init__(self, account: Services, settings: FunctionSettings) -> None:
        self.account = account
        self.settings = settings
        self._idle: list[Environment] = []
        self._count = itertools.count(1)
        self._oldest = 0
        self._running = 0

    def invoke(
        self,
        event: Any,
        *,
        instead: Callable[[Pushhub], Any] | None = None,
        lineage: Lineage = NO_LINEAGE,
        ran: list[str] | None = None,
    ) -> Any:
        """Run it in the current task.

        Args:
            event: What it is called with.
            instead: Called with the hub of its environment in place of its handler, for work that no event triggers.
            lineage: Of the chain of requests that leads here.
            ran: The name of its environment is added to this list.

        Raises:
            RunFailed: It failed; whatever it did before that stays done.
        """
        account, name = self.account, self.settings.name
        now = account.scheduler.now
        weather, about = account.weather, partial(str, event)
        if self._throttled(now, about):
            account.note(f"{name} throttled")
            raise RunFailed("throttled")
        if weather.strikes(Kind.STOPPED, name, now, about):
            account.note(f"{name} is broken")
            raise RunFailed("broken")
        if self.ends(lineage):
            account.chain_ended(name, str(event))
            raise RunFailed("part of a chain that is too long")
        self._running += 1
        try:
            return self._run(event, instead, lineage, ran)
        finally:
            self._running -= 1

    def _throttled(self, now: int, about: Callable[[], str]) -> bool:
        """Whether Lambda refuses a run. What is reserved for a function is its limit, and nobody else uses it up."""
        weather, name, reserved = self.account.weather, self.settings.name, self.settings.reserved
        if reserved is not None and self._running >= reserved:
            weather.strike(Kind.RESERVED, name, now, about=about)
            return True
        return weather.strikes(Kind.THROTTLED, name, now, about) or (
            reserved is None and weather.strikes(Kind.CROWDED, name, now, about)
        )

    def _run(
        self, event: Any, instead: Callable[[Pushhub], Any] | None, lineage: Lineage, ran: list[str] | None
    ) -> Any:
        name = self.settings.name
        environment = self._environment()
        environment.lineage = {**lineage, name: lineage.get(name, 0) + 1}
        self.account.note(f"{environment.name} runs")
        if ran is not None:
            ran.append(environment.name)
        try:
            return environment.run(event, instead)
        except Killed as killed:
            raise RunFailed("crashed") from killed
        except Exception as error:
            raise RunFailed(repr(error)) from error
        finally:
            if environment.alive:
                self._idle.append(environment)

    def ends(self, lineage: Lineage) -> bool:
        """Whether Lambda would not run it in such a chain."""
        return not self.settings.chains and lineage.get(self.settings.name, 0) >= LONGEST_CHAIN

    def renew(self) -> None:
        """New runs begin in environments that are made from now on."""
        self._oldest = next(self._count)

    def _reusable(self, environment: Environment) -> bool:
        idle = self.account.scheduler.now - environment.used_at
        return environment.alive and environment.number > self._oldest and idle < IDLE_AT_MOST

    def _environment(self) -> Environment:
        scheduler = self.account.scheduler
        self._idle = idle = [each for each in self._idle if self._reusable(each)]
        if idle and self.account.weather.strikes(Kind.RECYCLED, self.settings.name, scheduler.now):
            idle.clear()
        if idle:
            return idle.pop()
        environment = Environment(self.account, self.settings, next(self._count))
        scheduler.sleep(self.account.random.randrange(200_000, 900_000))
        environment.start()
        self.account.telemetry.count("ColdStarts")
        return environment
