"""The engine with the hub protocol on it, on fakes and a fake clock."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.engine.world import PROJECT, World
from tests.fakes import FaultPlan, Reply

from pushhub.base.ports import PushRequest
from pushhub.engine.model.message import Message
from pushhub.hub.intake import HubIntake
from pushhub.hub.model.log import LoggedMessage
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.model.message import HubMessage
from pushhub.hub.model.object_ids import from_object_id, new_object_id, to_object_id
from pushhub.hub.ticks import HubTicks
from pushhub.hub.wiring import Hub

__all__ = ["URL", "HubWorld", "Says"]

URL = "https://acme.example/import"

Says = Callable[[dict[str, Any]], "Reply | int | dict[str, Any]"]
"""An endpoint's answer to a request body: a reply, a bare status, or the fields of a 200 (``message_id`` is added).
"""


class HubWorld(World):
    """A store with mappings, and endpoints that are functions.

    Args:
        plan: Which port call goes wrong; none by default.
    """

    def __init__(self, plan: FaultPlan | None = None) -> None:
        super().__init__(plan)
        self.settings = self.ports.settings
        self.log = self.ports.log
        self.descendants = self.ports.descendants
        self.endpoints: dict[str, Says] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.ports.sender = self

    @property
    def intake(self) -> HubIntake:
        """Accepts messages of the hub."""
        return self.hub.part(Hub).intake

    @property
    def ticks(self) -> HubTicks:
        """Makes the ticks of schedulers."""
        return self.hub.part(Hub).ticks

    def map(self, *types: str, url: str = URL, says: Says | None = None, **fields: Any) -> ServiceMapping:
        """A mapping of some types to a URL, and what the endpoint there answers (``{"message_id"}`` alone by
        default).
        """
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
        """Push a message as a store does; returns its object id."""
        accepted = self.intake.push(PROJECT, HubMessage(type=message_type, payload=payload))
        return to_object_id(accepted.message_id)

    def send(self, request: PushRequest) -> Any:
        """The sender: lets the endpoint at the URL answer; what is asked of integrations and token servers is
        scripted."""
        if request.method == "GET" or request.headers.get("Content-Type") == "application/x-www-form-urlencoded":
            return self.sender.send(request)
        body, began = json.loads(request.body), self.clock.now()
        self.asked.append((request.url, body))
        said = self.endpoints[request.url](body)
        if isinstance(said, dict):
            said = Reply(status_code=200, body=json.dumps({"message_id": body["message_id"], **said}).encode())
        self.sender.script(request.url, said)
        return replace(self.sender.send(request), started_at=began)

    def asked_at(self, url: str = URL) -> list[dict[str, Any]]:
        """The bodies sent to a URL, in order."""
        return [body for each, body in self.asked if each == url]

    def entry(self, object_id: str) -> LoggedMessage:
        """The log entry of a message."""
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
