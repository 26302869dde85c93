"""One limited, or slow, endpoint on many environments: what it was sent, and when, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pushhub.base.ports import PushRequest
from pushhub.engine.flow.wake_ups import WakeUps
from pushhub.engine.model.flow import Limits
from pushhub.engine.projects.copies import ChangeNotes
from pushhub.engine.projects.projects import Projects
from simulation.account import Account, Operator
from simulation.endpoints import Asked as Seen
from simulation.endpoints import Reply
from simulation.functions import Sender
from simulation.promises.flow import Asked, Flow, Limit, Waiting
from simulation.promises.judgement import Faults, Judgement
from simulation.scheduler import SECOND
from simulation.template import stack
from simulation.weather import Kind, Storm, Weather

PER_POST = 100


@dataclass
class Receiver:
    """An endpoint's own log.

    Attributes:
        takes_ms: How long each answer takes, by the number of the request.
        begun: When each request came, microseconds.
        ended: When it was answered.
        ids: Its message.
        environments: Who made it.
    """

    account: Account
    takes_ms: Callable[[int], int]
    begun: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    environments: set[str] = field(default_factory=set)

    def asked(self, request: PushRequest, environment: str) -> tuple[Seen, Reply]:
        """A request."""
        now, takes = self.account.scheduler.now, self.takes_ms(len(self.begun)) * 1_000
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.begun.append(now)
        self.ended.append(now + takes)
        self.ids.append(headers["iron-message-id"])
        self.environments.add(environment)
        return Seen(now, headers, b"", self.ids[-1], environment), Reply(takes=takes)

    def most_within(self, seconds: float) -> int:
        """The most requests that began within any span of so many seconds."""
        first = most = 0
        for last, at in enumerate(self.begun):
            while self.begun[first] <= at - seconds * SECOND:
                first += 1
            most = max(most, last - first + 1)
        return most

    def at_once(self, at: int) -> int:
        """Requests in progress at a moment."""
        return sum(begun <= at < ended for begun, ended in zip(self.begun, self.ended, strict=True))

    @property
    def most_at_once(self) -> int:
        """The most requests that were in progress at a time."""
        most = now = 0
        # At one moment what ends comes first.
        for _, change in sorted([*((at, 1) for at in self.begun), *((at, -1) for at in self.ended)]):
            now += change
            most = max(most, now)
        return most


class Bench:
    """A hub with one queue and one subscriber.

    Args:
        seed: Decides everything.
        limits: The subscriber's limits.
        takes_ms: How long its answers take.
        runs: Concurrent runs on each queue at most.
        timeout_s: The subscriber's timeout.
    """

    def __init__(
        self,
        seed: str,
        *,
        limits: Limits | None = None,
        takes_ms: Callable[[int], int] = lambda _: 20,
        runs: int = 50,
        timeout_s: int = 10,
    ) -> None:
        deployed = stack()
        functions = tuple(
            replace(
                each, queues=tuple(replace(queue, concurrency=min(queue.concurrency, runs)) for queue in each.queues)
            )
            for each in deployed.functions
        )
        self.account = Account(seed, replace(deployed, functions=functions), Weather((), seed))
        self.account.sends = Sender
        self.receiver = Receiver(self.account, takes_ms)
        self._limits = limits
        self._waiting: list[Waiting] = []
        self._timeout_s = timeout_s

    @contextmanager
    def running(self) -> Iterator[None]:
        """The hub, set up; the clock stands."""
        account = self.account
        with account.installed():
            self._operator = Operator(account)
            self.project, self._token = self._owner("only.example", self.receiver)
            self.goes_on(30)
            self.limit(self._limits)
            account.begin_schedules()
            self.goes_on(60)
            yield

    def _owner(self, host: str, receiver: Receiver) -> tuple[str, str]:
        """Another project with a queue for an endpoint, and its token."""
        projects = Projects(config=self._operator.config, clock=self._operator.clock)
        project = projects.make("owner").project_id
        token = projects.make_token(project)
        known: Any = self.account.endpoints.known
        known[host] = receiver
        only = {"name": "only", "url": f"https://{host}/in", "timeout": self._timeout_s}
        queue = {"queue": {"type": "multicast", "push": {"subscribers": [only], "retries_delay": 60}}}
        put = partial(self.account.http, "PUT", f"/3/projects/{project}/queues/q", queue, token=token)
        self.account.scheduler.spawn(put)
        return project, token

    def neighbour(self, messages: int, *, takes_ms: int, after: float) -> Receiver:
        """Another project, whose messages are posted after so many seconds; what its endpoint gets."""
        receiver = Receiver(self.account, lambda _: takes_ms)
        project, token = self._owner("neighbour.example", receiver)
        path, body = f"/3/projects/{project}/queues/q/messages", {"messages": [{"body": "x"}] * messages}
        post = partial(self.account.http, "POST", path, body, token=token)
        self.account.scheduler.spawn(post, after=round(after * SECOND))
        return receiver

    def limit(self, limits: Limits | None, *, timeout_s: int | None = None) -> None:
        """Change the subscriber's limits, and its time limit if one is given. That is noted first, as an owner's change
        is (docs/decisions/acceptance.md), and what is arranged under the former ones is begun anew.
        """
        config = self._operator.config
        ChangeNotes(config, self._operator.clock).note(self.project, "q")
        stored = config.queue(self.project, "q", fresh=True)
        assert stored is not None
        assert stored.push is not None
        changed = tuple(
            replace(each, limits=limits, timeout_s=timeout_s or each.timeout_s) for each in stored.push.subscribers
        )
        config.update_queue(replace(stored, push=replace(stored.push, subscribers=changed)))
        operator = self._operator
        wake_ups = WakeUps(
            backlogs=operator.subscribers,
            queue=operator.retry_queue,
            clock=operator.clock,
            telemetry=self.account.telemetry,
        )
        for each in changed:
            wake_ups.hurry((self.project, stored.uid, each.subscriber_id), "q")

    def post(self, messages: int, *, after: float = 0) -> None:
        """Post messages after so many seconds."""
        path = f"/3/projects/{self.project}/queues/q/messages"
        for first in range(0, messages, PER_POST):
            body = {"messages": [{"body": "x"}] * min(PER_POST, messages - first)}
            post = partial(self._post, path, body)
            self.account.scheduler.spawn(post, after=round(after * SECOND) + first * 1_000)

    def _post(self, path: str, body: Any) -> None:
        answer = self.account.http("POST", path, body, token=self._token)
        posted = answer.body.get("ids", ()) if answer.status // 100 == 2 else ()
        self._waiting += [Waiting(each, self.account.scheduler.now) for each in posted]

    @property
    def broken(self) -> set[str]:
        """The promises of its limits that were not kept, judged as in every world."""
        judgement, receiver = Judgement(), self.receiver
        log = [Asked(*each) for each in zip(receiver.begun, receiver.ended, receiver.ids, strict=True)]
        limits = self._limits or Limits()
        Flow(judgement, Faults()).judge("only", Limit(limits.rate_per_s, limits.concurrency), log, self._waiting)
        return {each.rule for each in judgement.violations}

    def kills(self, function: str, *, seconds: float, rate: float, repeats: float = 0.0) -> None:
        """From now on, environments of a function die at this share of their calls; this share of SQS messages comes
        twice.
        """
        self.troubled(Kind.CRASH, function, seconds=seconds, rate=rate, name="kills")
        if repeats:
            kills, now = self.account.weather.storms, self.account.scheduler.now
            storm = Storm("repeats", Kind.DUPLICATES, "", now, now + round(seconds * SECOND), repeats)
            self.account.weather = Weather((*kills, storm), self.account.seed)

    def troubled(self, kind: Kind, where: str, *, seconds: float, rate: float, name: str = "troubled") -> None:
        """From now on, faults of a kind strike this share of the calls of a function, or of a service."""
        now = self.account.scheduler.now
        storm = Storm(name, kind, where, now, now + round(seconds * SECOND), rate)
        self.account.weather = Weather((storm,), self.account.seed)

    def goes_on(self, seconds: float) -> None:
        """Let time go by."""
        self.account.scheduler.run(self.account.scheduler.now + round(seconds * SECOND))
