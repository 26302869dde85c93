"""An AWS account in memory with the whole stack in it: services as template.yaml makes them,
functions as they are deployed, and the gateway in front.
"""

from __future__ import annotations

import base64
import bisect
import gzip
import itertools
import json
import logging
import os
import secrets
import sys
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qsl

from botocore.exceptions import ClientError
from greenlet import getcurrent
from local.iam.roles import Granted, keep

from pushhub.base import shared_reads
from pushhub.base.errors import NotFound
from pushhub.cloud import observability
from pushhub.cloud.settings import Settings
from pushhub.egress import guard, sender
from pushhub.engine.flow import finished
from pushhub.engine.wiring import AwsEnginePorts
from pushhub.runtime.hub import settings_of
from pushhub.runtime.routes import all_routes
from pushhub.sinks import roles as role_keys
from pushhub.web.http import MethodNotAllowed, Router
from pushhub.webhooks.streams import reading
from simulation import trails
from simulation.athena import Athena
from simulation.code import CodeRuns
from simulation.consumers import Consumers
from simulation.dynamodb import MOST_STALE_MS, Change, DynamoDB, service_error
from simulation.endpoints import Endpoints
from simulation.expressions import Item
from simulation.functions import Environment, Function, RunFailed, Telemetry, WireSender
from simulation.ids import ids_in
from simulation.internet import egress
from simulation.internet.network import Network
from simulation.internet.servers import Servers
from simulation.internet.tls import trusted
from simulation.items import Pace
from simulation.locks import VirtualLock, waited
from simulation.promises.judgement import Exchange
from simulation.pulls import Pulls
from simulation.roles import roles
from simulation.scheduler import SECOND, Scheduler, VirtualFuture, current_task
from simulation.sources import QueueSource, StreamSource
from simulation.sqs import NO_LINEAGE, Chances, Lineage, Queue, Sqs
from simulation.storage import S3, Kms, Sockets
from simulation.strikes import Chosen
from simulation.sts import Sts
from simulation.template import Stack, stack
from simulation.weather import Kind, Weather

SAID_WITH = {405: "allow", 503: "retry-after"}
"""The header that an answer has, by status, in every dialect: which methods there are, and when to come again."""

START_MS = 1_795_000_000_000
"""When every simulation starts, epoch milliseconds (November 2026)."""

SCHEDULES = {"wake": 60, "notify": 60, "sweep": 3600}
"""Seconds between the scheduled runs of functions."""

MOST_IN_FLIGHT = 120_000
"""About so many messages of a queue may be in flight."""

MOST_EVENT_BYTES, MOST_ANSWER_BYTES = 6_291_456, 6_291_556
"""What a function may be run with, and answer, as JSON; MOST_ASYNCHRONOUS_BYTES if nobody waits for the answer."""
MOST_ASYNCHRONOUS_BYTES = 262_144

WOKEN = ("ScheduleTable", "WebhooksTable")
"""Tables that say what ``wake`` has to do."""

PAST_MS = 1_000
"""How old what DynamoDB shows may always be where nobody asked for a consistent read ("usually within a second")."""

GATEWAY_GIVES_UP_S = 30
"""API Gateway waits no longer for a function."""


NOT_ASKED = Exchange(0, 0, 0)


@dataclass(frozen=True)
class HttpAnswer:
    """What a client of the hub's API receives.

    Attributes:
        status: HTTP status; 0 when no answer came.
        body: What the JSON says.
        exchange: When it was asked for and came, and which faults struck that request.
        headers: Its headers, names in lower case.
    """

    status: int
    body: Any
    exchange: Exchange = NOT_ASKED
    headers: Mapping[str, str] = field(default_factory=dict)


class Account:
    """The whole simulated account.

    Args:
        seed: Decides everything.
        stack: What is deployed.
        weather: What goes wrong.
        most_in_flight: Messages in flight at which a queue hands out no more, by its name; 120,000 for the others, as
            on AWS.
        reads_the_past: Whether each read that is not consistent, and each index, shows what was up to a second ago.
            That is no fault, and excuses nothing.

    Attributes:
        written: Called with each change of a table: name, item before and after.
        long_polls: Whether a receive that waits ends as soon as a message comes, as on AWS. If not, it looks again only
            when its time is over: at a quiet queue, orders that come meanwhile wait for up to a second longer.
        calls: Calls of services so far.
        chosen: Numbers the calls, of which one was chosen to go wrong; None while they are not numbered.
        asked: Requests to endpoints so far.
        troubles: When a call or a run of each function went wrong, microseconds.
        hindered: The same without environments that died.
        sweeps: Called with the body of each SQS message that the sweeper is about to send.
        purged: Ids of messages whose orders, or whose place in a stream, were lost by an operator's mistake or because
            they were too old.
        lost: When orders, or places in a stream, were lost, by what, and those messages.
        unqueued: Messages for which a person asked for a try and got a 5xx each time: the sweeper may find them.
        roles: The roles of the functions, which know what was refused.
        bare: Answers of the hub's without the header that tells a client what to do (:data:`SAID_WITH`).
        pulls: What callers asked of pull queues, and were answered.
        consumers: What consumers of notifications did, and what came on their connections.
        chains_ended: What Lambda would not run a function for, as it was part of a chain that was too long: the
            function, and the text.
    """

    def __init__(
        self,
        seed: str,
        stack: Stack,
        weather: Weather,
        *,
        most_in_flight: Mapping[str, int] | None = None,
        reads_the_past: bool = False,
    ) -> None:
        self.seed = seed
        self.stack = stack
        self.weather = weather
        self.scheduler = Scheduler(seed)
        self.random = Random(f"{seed}/account")
        self._past = Random(f"{seed}/past") if reads_the_past else None
        self.telemetry = Telemetry()
        self.numbers: Iterator[int] = itertools.count(1)
        self.long_polls = False
        self.calls = 0
        self.chosen: Chosen | None = None
        self.asked = 0
        self.troubles: dict[str, list[int]] = defaultdict(list)
        self.hindered: dict[str, list[int]] = defaultdict(list)
        self._circuits = self._waiting = self._tasks = 0
        self._wakes_at = self._woken_at = 0
        self.endpoints = Endpoints(self)
        self.network = Network(self.scheduler, self.random, Servers(self.endpoints))
        self.sends: Callable[[Environment, object], object] = WireSender
        self.written: list[Callable[[str, Item | None, Item | None], None]] = []
        self.sweeps: list[Callable[[str], None]] = []
        self.purged: set[str] = set()
        self.lost: list[tuple[int, Kind, list[str]]] = []
        self.unqueued: set[str] = set()
        self.chains_ended: list[tuple[str, str]] = []
        self.bare: list[str] = []
        self.pulls = Pulls()
        self._streams: dict[str, list[StreamSource]] = {}
        self._sequence = itertools.count(1)
        self._router: Router[str] = Router((each.method, each.path, each.function) for each in all_routes())
        self.queues = self._make_queues(most_in_flight or {})
        self.dynamodb = DynamoDB(
            stack.tables,
            now_ms=self.now_ms,
            lag_ms=self._lag_ms,
            stale_ms=self._stale_ms,
            undone=lambda: self.weather.strikes(Kind.UNDONE, "dynamodb", self.scheduler.now),
            changed=self._changed,
        )
        self.s3 = S3()
        self.kms = Kms()
        self.consumers = Consumers(lambda: self.scheduler.now)
        self.sockets = Sockets(self.now_ms, self.consumers)
        self.sts = Sts(self.now_ms)
        self.services: dict[str, object] = {
            "dynamodb": self.dynamodb,
            "sqs": Sqs(
                self.queues,
                Chances(undone=lambda: self.weather.strikes(Kind.UNDONE, "sqs", self.scheduler.now)),
                lineage,
            ),
            "s3": self.s3,
            "kms": self.kms,
            "apigatewaymanagementapi": self.sockets,
            "lambda": Lambda(self),
            "athena": Athena(self.s3, self.now_ms),
            "sts": self.sts,
        }
        self.roles = roles(**stack.parameters)
        self.functions = {each.name: Function(self, each) for each in stack.functions}
        self._connect()

    def now_ms(self) -> int:
        """The true time, epoch milliseconds."""
        return START_MS + self.scheduler.now // 1000

    @staticmethod
    def moment(at_ms: int) -> int:
        """A time in microseconds since the start."""
        return (at_ms - START_MS) * 1000

    def note(self, line: str) -> None:
        """Tell what happened."""
        self.scheduler.note(line)

    def trouble(self, function: str, line: str) -> None:
        """Tell what went wrong in a function."""
        self.troubles[function].append(self.scheduler.now)
        if " dies " not in line:
            self.hindered[function].append(self.scheduler.now)
        self.note(line)

    def chain_ended(self, function: str, text: str) -> None:
        """Lambda would not run a function again in the same chain of requests."""
        self.chains_ended.append((function, text))
        self.note(f"{function} is not run: recursive loop: {' '.join(ids_in(text))}")

    def seal_with(self, key: str) -> None:
        """Deploy the stack anew, with another ``KmsKeyArn``; all else is as it was."""
        self.stack = stack(**{**self.stack.parameters, "KmsKeyArn": key})
        self.s3.encrypts_with = key
        for name, role in roles(**self.stack.parameters).items():
            self.roles[name].policies = role.policies
        for settings in self.stack.functions:
            function = self.functions[settings.name]
            function.settings = settings
            function.renew()

    def disable_key(self, key: str, disabled: bool) -> None:
        """Disable or enable a KMS key; environments that remember what it opened are gone."""
        (self.kms.disabled.add if disabled else self.kms.disabled.discard)(key)
        for function in self.functions.values():
            function.renew()

    def troubled(self, function: str, begins: int, ends: int, *, alive: bool = False) -> bool:
        """Whether anything went wrong in a function between two moments (microseconds); with ``alive`` only what its
        environments lived on with.
        """
        times = (self.hindered if alive else self.troubles)[function]
        found = bisect.bisect_left(times, begins)
        return found < len(times) and times[found] <= ends

    def ignoring_refusals(self, call: Callable[[], object]) -> None:
        """Make a call and ignore its answer."""
        with suppress(ClientError):
            call()

    def http(
        self, method: str, path: str, body: object = None, *, token: str = "", headers: Mapping[str, str] | None = None
    ) -> HttpAnswer:
        """Ask the hub over HTTP, in the current task."""
        asked, applied, ran = self.scheduler.now, len(self.weather.applied), [current_task()[0]]
        given = {**(headers or {})} | ({"authorization": f"OAuth {token}"} if token else {})
        answer = self._answer(method, path, body, given, ran)
        struck = (each.kind for each in self.weather.applied[applied:] if not {*each.who}.isdisjoint(ran))
        exchange = Exchange(asked, self.scheduler.now, answer.status, tuple(dict.fromkeys(struck)))
        self.pulls.heard(method, path, body, exchange, answer.body)
        self.consumers.heard(method, path, exchange)
        return replace(answer, exchange=exchange)

    def _answer(self, method: str, path: str, body: object, headers: Mapping[str, str], ran: list[str]) -> HttpAnswer:
        """Ask the hub over HTTP. The name of the environment is added to ``ran``."""
        scheduler = self.scheduler
        scheduler.sleep(self.random.randrange(2_000, 30_000))
        given = {name.lower(): value for name, value in headers.items()}
        raw_path, _, query = path.partition("?")
        exact = isinstance(body, bytes)
        text = base64.b64encode(body).decode() if isinstance(body, bytes) else _text(body)
        event = {
            "version": "2.0",
            "rawPath": raw_path,
            "rawQueryString": query,
            "queryStringParameters": dict(parse_qsl(query)),
            "headers": {"content-type": "application/json", **given},
            "requestContext": {
                "http": {"method": method, "path": raw_path, "sourceIp": "203.0.113.9"},
                "stage": "$default",
            },
            "body": text,
            "isBase64Encoded": exact,
        }
        if 6 * len(text) > MOST_EVENT_BYTES and len(json.dumps(event, ensure_ascii=False).encode()) > MOST_EVENT_BYTES:
            return HttpAnswer(413, {})
        function = self._function_of(method, raw_path)
        began = scheduler.now
        try:
            answer = self.functions[function].invoke(event, ran=ran)
        except RunFailed as failed:
            return HttpAnswer(503 if "throttled" in str(failed) else 500, {})
        if scheduler.now - began > GATEWAY_GIVES_UP_S * SECOND:
            return HttpAnswer(503, {})
        scheduler.sleep(self.random.randrange(2_000, 30_000))
        if self.weather.strikes(Kind.LOST, "http", scheduler.now):
            self.note(f"answer to {method} {raw_path} lost")
            return HttpAnswer(0, {})
        content = answer.get("body") or ""
        if 6 * len(content) > MOST_ANSWER_BYTES and len(json.dumps(answer)) > MOST_ANSWER_BYTES:
            return HttpAnswer(500, {})
        shown = {name.lower(): value for name, value in (answer.get("headers") or {}).items()}
        if answer.get("isBase64Encoded"):
            sent = base64.b64decode(content)
            content = (gzip.decompress(sent) if shown.get("content-encoding") == "gzip" else sent).decode()
        status = answer["statusCode"]
        if SAID_WITH.get(status, "") not in {"", *shown}:
            self.bare.append(f"{method} {raw_path}: {status} without {SAID_WITH[status]}")
        return HttpAnswer(status, json.loads(content) if content else {}, headers=shown)

    def _function_of(self, method: str, path: str) -> str:
        """The function that answers a path: that of the route, which ``.json`` may follow, and else the one that has
        the pages of the whole.
        """
        for each in (path, path.removesuffix(".json")):
            with suppress(NotFound, MethodNotAllowed):
                return str(self._router.find(method, each)[0])
        return "control"

    def purge(self, queue: str) -> None:
        """An operator empties a queue by mistake."""
        for body in self.queues[queue].bodies():
            self.lose(Kind.PURGED, ids_in(body))
        count = self.queues[queue].purge()
        self.weather.struck[Kind.PURGED] += count
        self.note(f"{queue} purged of {count}")

    def lose(self, kind: Kind, ids: list[str]) -> None:
        """The orders of messages, or their places in a stream, are lost."""
        self.purged.update(ids)
        self.lost.append((self.scheduler.now, kind, ids))

    def begin_schedules(self) -> None:
        """Let the schedules run from now on."""
        for name, seconds in SCHEDULES.items():
            self.scheduler.spawn(lambda name=name, seconds=seconds: self._each(name, seconds))  # type: ignore[misc]
        self.scheduler.spawn(self._expire_items)

    def _each(self, name: str, seconds: int) -> None:
        self.scheduler.sleep(self.random.randrange(60) * SECOND)
        while True:
            self.scheduler.spawn(lambda: self._scheduled(name))
            if self.weather.strikes(Kind.TWICE, name, self.scheduler.now):
                again = self.random.randrange(2 * SECOND)
                self.scheduler.spawn(lambda: self._scheduled(name), after=again)
            self.scheduler.sleep(seconds * SECOND)

    def _scheduled(self, name: str) -> None:
        minute = self.now_ms() // 60_000
        if (name == "wake" and self._nothing_wakes()) or (name == "notify" and self._nobody_connects()):
            return
        with suppress(RunFailed):
            self.functions[name].invoke({})
            if name == "wake":
                self._woken_at = minute

    def _nothing_wakes(self) -> bool:
        """Whether a run of wake would find nothing, in good weather: then it is left out,
        as it costs most of what idle hours cost.

        For circuits that nothing waits for, one run in half an hour is kept.
        """
        due = self._waiting or self._tasks or self._wakes_at >= self._woken_at
        if self.scheduler.now < self.weather.over or due:
            return False
        return not self._circuits or self.now_ms() // 60_000 < self._woken_at + 30

    def _nobody_connects(self) -> bool:
        """Whether notify's look for idle connections would find nothing, in good weather, as nobody has a topic."""
        return self.scheduler.now >= self.weather.over and not any(self.dynamodb.tables["BacklogsTable"].everything())

    def _note_waits(self, before: Item | None, after: Item | None) -> None:
        """Remember what wake has to look for: the schedule, circuits, lines, and unfinished tasks of webhooks."""
        pk = (after or before or {})["pk"]["S"]
        kind = pk.partition("#")[0]
        if kind == "CIRCUITS":
            self._circuits += (after is not None) - (before is not None)
        elif kind in {"WAITING", "LINES"}:
            self._waiting += (after is not None) - (before is not None)
        elif kind == "RUNNING":
            self._tasks += (after is not None) - (before is not None)
        elif kind.isdigit():
            self._wakes_at = max(self._wakes_at, int(kind))

    def _expire_items(self) -> None:
        """Time to live: items are removed some time after they expire, within about two days."""
        while True:
            self.scheduler.sleep(3_600 * SECOND)
            for table in self.dynamodb.tables.values():
                table.expire(lambda: self.random.random() < 0.2)

    def _make_queues(self, most_in_flight: Mapping[str, int]) -> dict[str, Queue]:
        queues: dict[str, Queue] = {}
        for settings in self.stack.queues:
            chances = Chances(
                repeats=lambda body, name=settings.name: self.weather.strikes(  # type: ignore[misc]
                    Kind.DUPLICATES, name, self.scheduler.now, partial(str, body)
                )
            )
            random = Random(f"{self.seed}/{settings.name}")
            queues[settings.name] = Queue(
                settings,
                now_ms=self.now_ms,
                random=random,
                chances=chances,
                most_in_flight=most_in_flight.get(settings.name, MOST_IN_FLIGHT),
            )
        for each in queues.values():
            each.dead = queues.get(each.settings.dead_letters)
        return queues

    def _connect(self) -> None:
        for settings in self.stack.functions:
            function = self.functions[settings.name]
            for events in settings.queues:
                QueueSource(function, self.queues[events.queue], events)
            for stream in settings.streams:
                self._streams.setdefault(stream.table, []).append(StreamSource(function, stream))

    @property
    def undelivered_records(self) -> int:
        """Stream records that no function has handled yet."""
        return sum(source.waiting for sources in self._streams.values() for source in sources)

    def streamed(self) -> Iterator[str]:
        """Keys of the stream records that no function has handled yet."""
        return (key for sources in self._streams.values() for source in sources for key in source.unhandled())

    def paces(self) -> Iterator[tuple[str, Pace]]:
        """The load of each partition key of the tables and their indexes, and of each queue, by name."""
        for table in self.dynamodb.tables.values():
            for name, writes, reads in table.paces():
                yield f"units written, {name}", writes
                yield f"units read, {name}", reads
        for queue in self.queues.values():
            yield f"messages sent, {queue.name}", queue.sent
            yield f"requests, {queue.name}", queue.requests

    def _lag_ms(self) -> int:
        worst = self.weather.worst(Kind.LAG, self.scheduler.now)
        if not worst:
            return self._past.randrange(5, PAST_MS) if self._past else self.random.randrange(5, 60)
        self.weather.struck[Kind.LAG.value] += 1
        return self.random.randrange(round(worst * 1000))

    def _stale_ms(self) -> int:
        stale = self.weather.strikes(Kind.STALE, "dynamodb", self.scheduler.now)
        if stale:
            return self.random.randrange(1, MOST_STALE_MS)
        return self._past.randrange(1, PAST_MS) if self._past else 0

    def _changed(self, change: Change) -> None:
        table, before, after = change.table, change.before, change.after
        for listener in self.written:
            listener(table, before, after)
        if table in WOKEN:
            self._note_waits(before, after)
        if table in self._streams and before != after:
            number, sources = next(self._sequence), self._streams[table]
            partition = (after or before or {})["pk"]["S"]
            if sources[0].may_split(partition) and self.weather.strikes(Kind.SPLIT, table, self.scheduler.now):
                self.note(f"a shard of {table} splits")
                for source in sources:
                    source.split(partition)
            for source in sources:
                source.written(change, number)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Context manager: sets up the process as a simulation needs it, with random numbers from the seed, tasks
        instead of threads, and telemetry that is counted.
        """
        random = Random(f"{self.seed}/secrets")

        def executor(max_workers: int | None = None, **_: Any) -> Any:
            return _environment().executor(max_workers or 1)

        def pause(duration: int) -> None:
            _environment().pause(duration)

        def lock() -> VirtualLock:
            return VirtualLock(self.scheduler, pause)

        def waits(event: threading.Event, timeout: float | None = None) -> bool:
            return waited(self.scheduler, pause, event.is_set, timeout)

        pools = [
            module
            for name, module in sys.modules.items()
            if name.startswith("pushhub.") and hasattr(module, "ThreadPoolExecutor")
        ]
        log = logging.getLogger(observability.logger.name or "")
        level = log.level
        with contextmanager(_patched)(
            [(module, "ThreadPoolExecutor", executor) for module in [*pools, futures]]
            + [
                # Messages that go together, sinks that are read in turn, and keys that are asked for once for all.
                (threading.Event, "wait", waits),
                (reading, "Lock", lock),
                (role_keys, "_Known", lambda known=role_keys._Known: known(lock=lock())),
                *((module, "Future", lambda: VirtualFuture(self.scheduler)) for module in (shared_reads, finished)),
                (secrets, "token_hex", lambda size=32: random.randbytes(size).hex()),
                (secrets, "token_bytes", lambda size=32: random.randbytes(size)),
                (
                    secrets,
                    "token_urlsafe",
                    lambda size=32: base64.urlsafe_b64encode(random.randbytes(size)).rstrip(b"=").decode(),
                ),
                (uuid, "uuid4", lambda: uuid.UUID(bytes=random.randbytes(16), version=4)),
                *trails.changed(),
                egress.REPLACED,
                (guard, "refusal", egress.module("guard").refusal),
                (sender, "GuardedSender", partial(egress.module("sender").GuardedSender, ca_file=trusted())),
                *(
                    (observability.telemetry, name, getattr(self.telemetry, name))
                    for name in ("event", "count", "flush")
                ),
            ]
        ):
            log.setLevel(logging.CRITICAL + 1)
            try:
                # The one function that has itself run again, and asks for its own name.
                with patch.dict(os.environ, {"AWS_LAMBDA_FUNCTION_NAME": "WakeFunction"}):
                    yield
            finally:
                self.scheduler.end()
                for role in self.roles.values():
                    keep(Granted.of(role.function, each) for each in role.used)
                log.setLevel(level)


def _text(body: object) -> str:
    return body if isinstance(body, str) else "" if body is None else json.dumps(body)


def _patched(changes: Sequence[tuple[object, str, object]]) -> Iterator[None]:
    patches = [patch.object(target, name, value) for target, name, value in changes]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in reversed(patches):
            each.stop()


def _environment() -> Environment:
    """The execution environment that the current task runs in."""
    environment: Environment = getcurrent().environment  # type: ignore[attr-defined]
    return environment


def lineage() -> Lineage:
    """The chain of requests that the current task works in."""
    environment: Environment | None = getattr(getcurrent(), "environment", None)
    return environment.lineage if environment else NO_LINEAGE


TRANSFORM = "TransformFunction"
"""The function that runs strangers' code."""


class Lambda:
    """Lambda as functions call it: to run another function asynchronously, or the one that runs strangers' code."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._code = CodeRuns(Random(f"{account.seed}/code"))

    def invoke(
        self,
        *,
        FunctionName: str,  # noqa: N803 (the service's)
        Payload: bytes,  # noqa: N803
        InvocationType: str = "RequestResponse",  # noqa: N803
    ) -> dict[str, Any]:
        """Invoke, asynchronously; what has neither a hub nor rights is waited for."""
        if InvocationType != "Event":
            if FunctionName != TRANSFORM:
                raise ValueError(f"{FunctionName} has asynchronous runs only in the simulator")
            answer, takes = self._code.answer(Payload)
            self._account.scheduler.sleep(takes)
            return answer
        if len(Payload) > MOST_ASYNCHRONOUS_BYTES:
            raise service_error("RequestTooLargeException", "Invoke")
        event = json.loads(Payload)
        sent_in = lineage()
        self._account.scheduler.spawn(lambda: self._run(FunctionName, event, sent_in), after=50_000)
        return {"StatusCode": 202}

    def _run(self, function: str, event: Any, sent_in: Lineage) -> None:
        with suppress(RunFailed):
            # The template's name is that of the folder, in a longer form.
            self._account.functions[function.removesuffix("Function").lower()].invoke(event, lineage=sent_in)


class Operator(AwsEnginePorts):
    """An operator's own access to the account, without weather: to create projects, and to look."""

    def __init__(self, account: Account) -> None:
        environ = next(each.environ for each in account.stack.functions if each.name == "control")
        super().__init__(Settings(settings_of("control"), environ), _Direct(account.services))  # type: ignore[arg-type]
        self.clock = _TrueClock(account)  # type: ignore[assignment]


class _Direct:
    def __init__(self, services: Mapping[str, object]) -> None:
        self._services = services

    def of(self, service: str, *, endpoint_url: str | None = None) -> Any:  # noqa: ARG002 (as the real one)
        return self._services[service]


class _TrueClock:
    def __init__(self, account: Account) -> None:
        self._account = account

    def now(self) -> int:
        return self._account.now_ms()

    def sleep(self, seconds: float) -> None:
        """Return at once: nothing waits here."""

    def jitter(self) -> float:
        return 0.5
