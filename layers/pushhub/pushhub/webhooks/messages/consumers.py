"""Consumers of polling endpoints: each is given messages in order, and acknowledges them by their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pushhub.base.conflicts import until_saved
from pushhub.base.ids import id_before
from pushhub.engine.component import Component
from pushhub.webhooks.messages.listing import SETTLED_MS
from pushhub.webhooks.messages.poller import Choice
from pushhub.webhooks.model.consumer import PollingConsumer
from pushhub.webhooks.model.ids import engine_id
from pushhub.webhooks.model.refusals import not_found, unprocessable
from pushhub.webhooks.wire.fields import NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.base.ports import Clock
    from pushhub.webhooks.messages.poller import WebhooksPoller
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.model.message import ListedMessage


class ConsumerStore(Protocol):
    """Keeps consumers. May raise ``Unavailable``."""

    def consumer(self, endpoint: Endpoint, name: str) -> PollingConsumer | None:
        """A consumer of a polling endpoint, or None."""

    def put_consumer(self, endpoint: Endpoint, name: str, consumer: PollingConsumer) -> PollingConsumer:
        """Keep a consumer in place of its version; returns it with its version raised.

        Raises:
            Conflict: The stored one has another version.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """What a consumer is given.

    Attributes:
        messages: With their numbers.
        done: Whether there is nothing more at present.
    """

    messages: Sequence[tuple[int, ListedMessage]]
    done: bool


class PollingConsumers(Component):
    """Gives messages to the consumers of polling endpoints. A consumer works on what it was given, alone, until it
    acknowledges a part of that or its lease ends: so several processes of one name share the work in order, and what
    one of them leaves undone is given again.

    Methods raise ``NotFound`` for a name that no consumer can have.
    """

    poller: WebhooksPoller
    store: ConsumerStore
    clock: Clock

    def poll(self, endpoint: Endpoint, name: str, *, limit: int, lease_ms: int, latest: bool) -> Leased:
        """The messages behind what a consumer has acknowledged; none while somebody works on them.

        Args:
            latest: Whether a new consumer begins now, and not with the endpoint.
        """
        _check(name)

        def once() -> Leased:
            now = self.clock.now()
            begin = id_before(now - SETTLED_MS if latest else endpoint.created_at)
            consumer = self.store.consumer(endpoint, name) or PollingConsumer(position=begin)
            if consumer.works_at(now):
                return Leased(messages=(), done=False)
            read = self.poller.behind(endpoint, Choice(limit=limit), consumer.position)
            if read.messages:
                after = consumer.leased(tuple(read.places), now + lease_ms)
            else:
                after = consumer.moved(engine_id(read.iterator) or consumer.position)
            if after != consumer or not consumer.version:
                self.store.put_consumer(endpoint, name, after)
            return Leased(messages=list(enumerate(read.messages, consumer.offset + 1)), done=read.done)

        return until_saved(once, doing="leasing messages")

    def acknowledge(self, endpoint: Endpoint, name: str, offset: int) -> None:
        """A consumer has done what it was given, up to a number.

        Raises:
            Unprocessable: It was never given that.
        """
        _check(name)

        def once() -> None:
            consumer = self.store.consumer(endpoint, name)
            after = consumer.acknowledged(offset) if consumer is not None else None
            if after is None:
                raise unprocessable("This consumer was not given a message with that offset", "body", "offset")
            if after != consumer:
                self.store.put_consumer(endpoint, name, after)

        until_saved(once, doing="acknowledging messages")


def _check(name: str) -> None:
    if NAME.fullmatch(name) is None:
        raise not_found()
