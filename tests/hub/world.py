"""The engine with the hub protocol on it, on fakes and a fake clock."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from tests.engine.world import BASE_URL, PROJECT, InlineExecutor, World
from tests.fakes import FaultPlan, Reply, faulty
from tests.fakes.hub import FakeHubLog, FakeHubSettings

from pushhub.base.ports import PushRequest
from pushhub.engine.deliver import Deliver
from pushhub.engine.model.message import Message
from pushhub.engine.model.queue import Dialect
from pushhub.engine.push import Push
from pushhub.engine.target import HttpTarget, Targets
from pushhub.hub.effects import HubEffects
from pushhub.hub.intake import HubIntake
from pushhub.hub.model.filters import PatternTimeout
from pushhub.hub.model.log import LoggedMessage
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.model.message import HubMessage
from pushhub.hub.model.object_ids import from_object_id, new_object_id, to_object_id
from pushhub.hub.queues import HubQueues
from pushhub.hub.router import HubRouter
from pushhub.hub.target import HubTarget
from pushhub.hub.ticks import HubTicks
from pushhub.hub.watch import HubWatch

__all__ = ["ENDLESS", "URL", "HubWorld", "Says"]

ENDLESS = "(a|aa)+$"
"""The pattern that takes for ever on a text that almost fits."""

URL = "https://acme.example/import"

Says = Callable[[dict[str, Any]], "Reply | int | dict[str, Any]"]
"""What an endpoint answers to a request body: a reply, a bare status, or the fields of a 200 (``message_id`` is added)."""


def re_matches(pattern: str, texts: Sequence[str]) -> list[bool]:
    """Runs patterns here, but for the one that takes for ever."""
    if pattern == ENDLESS:
        raise PatternTimeout(pattern)
    return [re.search(pattern, text) is not None for text in texts]


class HubWorld(World):
    """A store with mappings, and endpoints that are functions.

    Args:
        plan: Which port call goes wrong; none by default.
    """

    def __init__(self, plan: FaultPlan | None = None) -> None:
        super().__init__(plan)
        plan = self.plan
        self.settings = FakeHubSettings()
        self.log = FakeHubLog()
        self.endpoints: dict[str, Says] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        config = faulty(self.config, "config", plan)
        messages = faulty(self.messages, "messages", plan)
        settings = faulty(self.settings, "settings", plan)
        log = faulty(self.log, "log", plan)
        self.intake = HubIntake(
            messages=messages,
            bodies=faulty(self.bodies, "bodies", plan),
            settings=settings,
            log=log,
            clock=self.clock,
            telemetry=self.telemetry,
            next_worker=config.next_worker,
        )
        hub = HubTarget(
            config=config,
            settings=settings,
            log=log,
            sender=self,
            bodies=faulty(self.bodies, "bodies", plan),
            kept_bodies=faulty(self.bodies, "bodies", plan),
            router=HubRouter(settings=settings, log=log, intake=self.intake, clock=self.clock, matches=re_matches),
            effects=HubEffects(settings=settings, log=log, intake=self.intake),
            clock=self.clock,
        )
        http = HttpTarget(sender=self.sender, config=config, base_url=BASE_URL)
        self.deliver = Deliver(
            config=HubQueues(config=config, settings=settings),
            messages=messages,
            bodies=faulty(self.bodies, "bodies", plan),
            targets=Targets(raw={"http": http, "https": http}, by_dialect={Dialect.HUB: hub}),
            retry_queue=self._retry_queue,
            clock=self.clock,
            telemetry=self.telemetry,
            in_flight_limit=100_000,
            watcher=HubWatch(log=log, clock=self.clock),
        )
        self.push = Push(
            messages=messages,
            deliver=self.deliver,
            retry_queue=self._retry_queue,
            errors_queue=self._errors_queue,
            poll_queue=self._poll_queue,
            clock=self.clock,
            telemetry=self.telemetry,
            executor=InlineExecutor(),
        )
        self.ticks = HubTicks(settings=settings, intake=self.intake, clock=self.clock, telemetry=self.telemetry)

    def map(self, *types: str, url: str = URL, says: Says | None = None, **fields: Any) -> ServiceMapping:
        """A mapping of some types to a URL, and what the endpoint there answers (``{"message_id"}`` alone by default)."""
        self.endpoints.setdefault(url, says or (lambda _: {}))
        mapping = ServiceMapping(
            **{
                "mapping_id": new_object_id(self.clock.now()),
                "name": "acme.import",
                "url": url,
                "token": "t" * 32,
                "messages": types,
                **fields,
            }
        )
        return self.settings.put_mapping(PROJECT, mapping)

    def push_message(self, message_type: str = "order:new", **payload: Any) -> str:
        """Push a message as a store does; its object id."""
        accepted = self.intake.push(PROJECT, HubMessage(type=message_type, payload=payload))
        return to_object_id(accepted.message_id)

    def send(self, request: PushRequest) -> Any:
        """The sender: lets the endpoint at the URL answer."""
        body = json.loads(request.body)
        self.asked.append((request.url, body))
        said = self.endpoints[request.url](body)
        if isinstance(said, dict):
            said = Reply(status_code=200, body=json.dumps({"message_id": body["message_id"], **said}).encode())
        self.sender.script(request.url, said)
        return self.sender.send(request)

    def asked_at(self, url: str = URL) -> list[dict[str, Any]]:
        """The bodies sent to a URL, in order."""
        return [body for each, body in self.asked if each == url]

    def entry(self, object_id: str) -> LoggedMessage:
        """How a message stands."""
        message_id = from_object_id(object_id)
        assert message_id is not None
        entry = self.log.entry(PROJECT, message_id)
        assert entry is not None
        return entry

    def copies(self, object_id: str) -> list[LoggedMessage]:
        """The messages that a message led to."""
        return self.log.entries(PROJECT, self.entry(object_id).children)

    def of_type(self, message_type: str) -> list[Message]:
        """Incoming messages of a type."""
        every = self.messages.all_messages()
        return [each for each in every if each.queue == "hub/incoming" and each.headers["type"] == message_type]
