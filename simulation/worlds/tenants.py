"""Tenants side by side: projects whose producers post more than their quotas let in, singly and in batches, projects
with background tasks, one of them with many; and what each was promised.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from pushhub.engine.model.quota import Quota as Limit
from pushhub.engine.projects.projects import Projects
from pushhub.webhooks.model.ids import engine_id
from simulation.account import HttpAnswer
from simulation.endpoints import Endpoint, Mood
from simulation.gateway import WebSocketGateway
from simulation.promises.judgement import Violation
from simulation.promises.quotas import Posted, Quota, Quotas
from simulation.promises.talks import (
    command_line,
    conditions,
    lasting,
    operational_events,
    portals,
    rates,
    rights,
    round_trips,
    topics_meanwhile,
    webhook_lives,
)
from simulation.promises.tasks import SOON_S, Began, Replay, Tasks
from simulation.scheduler import SECOND
from simulation.weather import Kind
from simulation.worlds.world import World

QUOTAS = {
    "singles": (Quota(2, 20), (1,)),
    "batches": (Quota(3, 60), (15,)),
    "larger than the burst": (Quota(2, 10), (50,)),
    "mixed": (Quota(2, 30), (1, 1, 1, 10, 40)),
    "free": (None, (1, 20)),
}
"""Projects by name: what each was promised, and the sizes of its posts."""

CLIENTS = 3
LASTS_S = 140
"""How many producers of a project post at a time, and for how long, more than its quota."""

MESSAGES = {"busy": 25, "quiet": 5}
"""Messages that a task of each project with tasks sends."""
CROWD = 8
"""Tasks that the busy one begins at once; soon after, the quiet one begins one."""

REST_OF_A_RATE = 8
"""Producers have a time of many posts, and owners begin tasks, one time for so many posts of other worlds."""

BEFORE_S = 120
"""What failed so long before a task was begun may disturb it: a run that died has its project's turn for a minute."""


@dataclass
class Tenant:
    """A project with tasks.

    Attributes:
        name: Its name.
        project: Its id.
        token: Its token.
        app: The application whose messages its tasks send.
        messages: Their ids, as its producer was told.
        begun: The endpoint of each task, by the key that it was begun with, and when that was first tried.
    """

    name: str
    project: str
    token: str
    app: str = ""
    messages: list[str] = field(default_factory=list)
    begun: dict[str, tuple[Endpoint, int]] = field(default_factory=dict)


class TenantsWorld(World):
    """Several projects, which know nothing of each other."""

    name = "tenants"

    def set_up(self) -> None:
        """Make the projects, their queues, and the messages that tasks send, before any weather."""
        self.posted: list[Posted] = []
        self.began: list[Began] = []
        self._unfinished: dict[str, tuple[Tenant, str]] = {}
        self._quotas: dict[str, Quota] = {}
        self._producers: dict[str, tuple[str, str]] = {}
        projects = Projects(config=self._operator.config, clock=self._operator.clock)
        for name, (quota, _) in QUOTAS.items():
            project, token = self._create_project(projects, name)
            self._producers[name] = project, token
            if quota is not None:
                projects.limit(project, Limit(per_second=quota.per_second, burst=quota.burst))
                self._quotas[project] = quota
        self.tenants = [Tenant(name, *self._create_project(projects, name)) for name in MESSAGES]
        self._in_good_weather(*(partial(self._put, *each) for each in self._producers.values()))
        self._in_good_weather(*(partial(self._fill, each) for each in self.tenants), seconds=120)
        assert all(len(each.messages) == MESSAGES[each.name] for each in self.tenants)

    @staticmethod
    def _create_project(projects: Projects, name: str) -> tuple[str, str]:
        project = projects.make(name).project_id
        return project, projects.make_token(project)

    def _put(self, project: str, token: str) -> None:
        queue = {"queue": {"type": "pull", "message_expiration": 60}}
        answer = self._account.http("PUT", f"/3/projects/{project}/queues/q", queue, token=token)
        assert answer.status == 200, answer

    def _ask(self, tenant: Tenant, method: str, path: str, body: object = None, key: str = "") -> HttpAnswer:
        headers = {"authorization": f"Bearer {tenant.token}"} | ({"idempotency-key": key} if key else {})
        return self._account.http(method, f"/api/v1{path}", body, headers=headers)

    def _fill(self, tenant: Tenant) -> None:
        """Messages of an application without endpoints: they are listed, and owed to nobody."""
        kind = self._ask(tenant, "POST", "/event-type", {"name": "a.b", "description": "any"})
        assert kind.status == 201, kind
        tenant.app = self._ask(tenant, "POST", "/app", {"name": tenant.name}).body["id"]
        for number in range(MESSAGES[tenant.name]):
            body = {"eventType": "a.b", "payload": {"number": number}}
            tenant.messages.append(self._ask(tenant, "POST", f"/app/{tenant.app}/msg", body).body["id"])

    def talk(self) -> None:
        """What an operator types about projects and tokens; who may do what with Svix's API, and what it keeps."""
        talk = self._client("", lambda *_: {})
        command_line.operators(talk)
        command_line.archives(talk)
        command_line.recovered(
            self._client("/3/projects/{project}", lambda _, token: {"authorization": f"OAuth {token}"})
        )
        command_line.signing_secret(
            self._client("/notification2", lambda _, token: {"authorization": f"Bearer {token}"})
        )
        command_line.keys_changed(
            self._client("/3/projects/{project}", lambda _, token: {"authorization": f"OAuth {token}"})
        )
        one, two = (self._talking_webhooks() for _ in range(2))
        rights.webhooks(one, two)
        round_trips.webhooks(one)
        portals.webhooks(one)
        operational_events.webhooks(one)
        lasting.webhooks(one)
        conditions.webhooks(one)
        webhook_lives.webhooks(one)
        rates.webhooks(one)
        topics_meanwhile.aged(
            self._client("/notification2", lambda _, token: {"authorization": f"Bearer {token}"}),
            self._connects(WebSocketGateway(self._account)),
        )

    def actors(self) -> Mapping[str, Callable[[], object]]:
        """Producers of each project with a quota, and the owners who begin tasks."""
        acts: dict[str, Callable[[], object]] = {}
        for name, (_, sizes) in QUOTAS.items():
            random = self._chance(f"producers of {name}")
            post = partial(self._post_too_much, name, sizes, random)
            acts[f"producers of {name}"] = partial(
                self._each_while_traffic, random, post, an_hour=self._rate / REST_OF_A_RATE
            )
        random = self._chance("owners")
        begin = partial(self._begin_side_by_side, random)
        return acts | {"owners": partial(self._each_while_traffic, random, begin, an_hour=self._rate / REST_OF_A_RATE)}

    def _post_too_much(self, name: str, sizes: tuple[int, ...], random: Random) -> None:
        for client in range(CLIENTS):
            own = Random(f"{random.random()}")
            self._account.scheduler.spawn(partial(self._produce, name, sizes, own), after=client * SECOND)

    def _produce(self, name: str, sizes: tuple[int, ...], random: Random) -> None:
        """A producer, which waits as it is told."""
        scheduler = self._account.scheduler
        until = scheduler.now + LASTS_S * SECOND
        project, token = self._producers[name]
        # Without a quota it would post as fast as it is answered.
        pause_s = 0.1 if project in self._quotas else 10
        while scheduler.now < until:
            size = random.choice(sizes)
            path, body = f"/3/projects/{project}/queues/q/messages", {"messages": [{"body": "x"}] * size}
            answer = self._account.http("POST", path, body, token=token)
            told_s = int(answer.headers.get("retry-after", "0"))
            self.posted.append(Posted(project, answer.exchange, size, told_s))
            wait_s = told_s + random.random() / 2 if told_s else random.expovariate(1 / pause_s)
            scheduler.sleep(round(wait_s * SECOND))

    def _begin_side_by_side(self, random: Random) -> None:
        busy, quiet = self.tenants
        self._account.scheduler.spawn(
            partial(self._begin_tasks, quiet, 1, random), after=round(random.uniform(0.5, 4) * SECOND)
        )
        self._begin_tasks(busy, CROWD, random)

    def _begin_tasks(self, tenant: Tenant, count: int, random: Random) -> None:
        """Begin tasks, each to a new endpoint, with requests that are repeated: at once, a little later, or until there
        is an answer.
        """
        for _ in range(count):
            number = len(tenant.begun)
            key = f"{tenant.name}-{number}"
            endpoint = self._account.endpoints.add(f"{key}.example", [(0, Mood.WELL)])
            tenant.begun[key] = endpoint, self._account.scheduler.now
            endpoint.about = lambda headers, _: engine_id(headers["webhook-id"]) or ""
            fields = {"url": f"https://{key}.example/in", "uid": key}
            answer = self._until(
                201, partial(self._ask, tenant, "POST", f"/app/{tenant.app}/endpoint", fields, f"{key} made")
            )
            if answer is None:
                continue
            path = f"/app/{tenant.app}/endpoint/{key}/replay-missing"
            begin = partial(self._begin, tenant, path, key)
            for after in random.choice(((0,), (0, 0, 0.1), (0, 5, 60))):
                self._account.scheduler.spawn(begin, after=round(after * SECOND))

    def _begin(self, tenant: Tenant, path: str, key: str) -> None:
        def ask() -> HttpAnswer:
            answer = self._ask(tenant, "POST", path, {"since": "2020-01-01T00:00:00Z", "unlimited": True}, key)
            task_id = answer.body["id"] if answer.status == 202 else ""
            self.began.append(Began(tenant.project, key, answer.exchange, task_id))
            if task_id:
                self._unfinished[task_id] = tenant, key
            return answer

        self._until(202, ask)

    def open(self) -> int:
        """Number of tasks that have not ended, and of messages of theirs that have not arrived."""
        for task_id, (tenant, _) in [*self._unfinished.items()]:
            answers: list[HttpAnswer] = []
            show = partial(self._ask, tenant, "GET", f"/background-task/{task_id}")
            self._account.scheduler.spawn(lambda show=show, answers=answers: answers.append(show()))  # type: ignore[misc]
            self._account.scheduler.run(self._account.scheduler.now + 5 * SECOND)
            if answers and answers[0].status == 200 and answers[0].body["status"] != "running":
                del self._unfinished[task_id]
        answered = {each.key for each in self.began if each.task_id}
        missing = sum(
            len({*tenant.messages} - {seen.headers["webhook-id"] for seen in endpoint.log})
            for tenant in self.tenants
            for key, (endpoint, _) in tenant.begun.items()
            if key in answered
        )
        return len(self._unfinished) + missing

    def _undisturbed(self, begins: int, ends: int) -> bool:
        """Whether nothing failed in this time."""
        weather = self._account.weather
        lags = any(each.kind is Kind.LAG and each.begins <= ends and each.ends >= begins for each in weather.storms)
        return not (lags or self._clocks_off_s or any(begins <= each.at <= ends for each in weather.applied))

    def check(self) -> Iterator[Violation]:
        """Every promise that was not kept."""
        Quotas(self._quotas, clocks_s=self._clocks_off_s, judgement=self.judgement).judge(self.posted)
        listed = {each.project: {*self._listed(each)} for each in self.tenants}
        Tasks(self.judgement).judge(self.began, listed, [*self._replays()])
        yield from self.judgement.total()

    def _listed(self, tenant: Tenant) -> Iterator[str]:
        """The tasks of a project, as its owner is told them, page by page."""
        path, following = "/background-task?limit=50", ""
        while True:
            answers: list[Any] = []
            ask = partial(self._ask, tenant, "GET", path + following)
            self._account.scheduler.spawn(lambda ask=ask, answers=answers: answers.append(ask()))  # type: ignore[misc]
            self._account.scheduler.run(self._account.scheduler.now + 10 * SECOND)
            assert answers[0].status == 200, answers[0]
            page = answers[0].body
            yield from (each["id"] for each in page["data"])
            if page["done"]:
                return
            following = f"&iterator={page['iterator']}"

    def _replays(self) -> Iterator[Replay]:
        for tenant in self.tenants:
            for key, (endpoint, at) in tenant.begun.items():
                arrived: dict[str, list[int]] = defaultdict(list)
                for seen in endpoint.log:
                    arrived[seen.headers["webhook-id"]].append(seen.at)
                alone = tenant.name == "quiet"
                answered = [each.exchange.answered for each in self.began if each.key == key and each.task_id]
                since, until = at - BEFORE_S * SECOND, max(answered, default=at) + 2 * SOON_S * SECOND
                undisturbed = alone and self._undisturbed(since, until)
                yield Replay(tenant.project, key, {*tenant.messages}, arrived, undisturbed)


__all__ = ["TenantsWorld"]
