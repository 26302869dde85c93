"""Polling: readers fetch an application's messages in order instead of being sent them, either with an iterator of
their own or from a place that the hub keeps for them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from pushhub.base.ids import first_message_id, id_before
from pushhub.engine.component import Component
from pushhub.webhooks.applications.applications import found_application
from pushhub.webhooks.messages.listing import SETTLED_MS
from pushhub.webhooks.model.endpoint import selects, wants
from pushhub.webhooks.model.ids import engine_id, message_id
from pushhub.webhooks.model.message import LISTED_MS
from pushhub.webhooks.model.page import KeyRange
from pushhub.webhooks.model.refusals import not_found, unprocessable
from pushhub.webhooks.wire.fields import NAME

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.webhooks.messages.ports import MessageLog
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.model.message import ListedMessage
    from pushhub.webhooks.ports import ReadApplications, ReadEndpoints

MOST_LOOKED = 1_000
"""Messages that one call examines, selected or not."""


class Places(Protocol):
    """Keeps the places of consumers. May raise ``Unavailable``."""

    def place(self, project_id: str, app_id: str, consumer: str) -> str | None:
        """The place of a consumer, or None."""

    def put_place(self, project_id: str, app_id: str, consumer: str, place: str) -> None:
        """Keep the place of a consumer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled:
    """The messages read.

    Attributes:
        messages: Oldest first.
        iterator: Where to continue reading.
        done: Whether there is nothing more at present.
        places: Of the messages; a late one has another place than its id says.
    """

    messages: Sequence[ListedMessage]
    iterator: str
    done: bool
    places: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which messages are read.

    Attributes:
        limit: Maximum number of messages.
        event_types: Of these types; empty for all.
        channel: In this channel; empty for all.
    """

    limit: int = 50
    event_types: Collection[str] = ()
    channel: str = ""


class WebhooksPoller(Component):
    """Reads messages for pollers. Methods raise ``NotFound`` where there is no such application, or no poller or
    consumer can have the name, and ``Unprocessable`` for an iterator that is none.
    """

    applications: ReadApplications
    # Finds endpoints: a poller named like an endpoint reads the messages that the endpoint selects.
    endpoints: ReadEndpoints
    log: MessageLog
    places: Places
    # See :meth:`pushhub.webhooks.applications.event_types.WebhooksEventTypes.flags_for`.
    flags_for: Callable[[Endpoint, str], Sequence[str]]
    clock: Clock

    def poll(
        self, project_id: str, app: str, sink: str, choice: Choice, *, iterator: str = "", after: int | None = None
    ) -> Polled:
        """Continue reading from an iterator or a time; with neither, from the oldest message that is listed. A time to
        come is now: whoever goes by a clock that is ahead misses nothing.
        """
        application, now = self._application(project_id, app, sink), self.clock.now()
        start = place_of(iterator, now) if iterator else self._oldest() if after is None else id_before(min(after, now))
        return self._read(application, sink, choice, start)

    def consume(self, project_id: str, app: str, sink: str, consumer: str, choice: Choice, *, iterator: str) -> Polled:
        """Continue reading from the place kept for a consumer; a new one begins with the oldest message that is listed.

        If an iterator is given, it acknowledges everything before it, and reading continues from there.
        """
        application = self._application(project_id, app, sink, consumer)
        name = f"{sink}/{consumer}"
        kept = iterator or self.places.place(project_id, application.app_id, name)
        start = place_of(iterator, self.clock.now()) if iterator else engine_id(kept or "") or self._oldest()
        if iterator or not kept:
            self.places.put_place(project_id, application.app_id, name, message_id(start))
        return self._read(application, sink, choice, start)

    def seek(self, project_id: str, app: str, sink: str, consumer: str, after: int) -> str:
        """Move a consumer's place to a point in time, at most to now; returns the iterator for it."""
        application = self._application(project_id, app, sink, consumer)
        place = message_id(id_before(min(after, self.clock.now())))
        self.places.put_place(project_id, application.app_id, f"{sink}/{consumer}", place)
        return place

    def _application(self, project_id: str, app: str, *names: str) -> Application:
        application = found_application(self.applications, project_id, app)
        if not all(map(NAME.fullmatch, names)):
            raise not_found()
        return application

    def _oldest(self) -> str:
        """A place before every message that is still listed."""
        return id_before(self.clock.now() - LISTED_MS)

    def _read(self, application: Application, sink: str, choice: Choice, start: str) -> Polled:
        endpoint = self.endpoints.endpoint(application.project, application.app_id, sink)
        return self._chosen(application.project, application.app_id, endpoint, choice, start)

    def behind(self, endpoint: Endpoint, choice: Choice, start: str) -> Polled:
        """Messages for a polling endpoint behind a place."""
        return self._chosen(endpoint.project, endpoint.app_id, endpoint, choice, start)

    def _chosen(self, project_id: str, app_id: str, endpoint: Endpoint | None, choice: Choice, start: str) -> Polled:
        span = KeyRange(above=start, below=first_message_id(self.clock.now() - SETTLED_MS))
        chosen: list[ListedMessage] = []
        places: list[str] = []
        last, looked = start, 0
        for place, each in islice(self._in_order(project_id, app_id, span), MOST_LOOKED):
            if len(chosen) == choice.limit:
                return Polled(messages=chosen, iterator=message_id(last), done=False, places=places)
            last, looked = place, looked + 1
            if each is None:
                continue
            fields = each.fields
            if choice.event_types and fields.event_type not in choice.event_types:
                continue
            if choice.channel and choice.channel not in fields.channels:
                continue
            if endpoint is None or self._is_for(endpoint, each):
                chosen.append(each)
                places.append(place)
        return Polled(messages=chosen, iterator=message_id(last), done=looked < MOST_LOOKED, places=places)

    def _is_for(self, endpoint: Endpoint, message: ListedMessage) -> bool:
        fields, flags = message.fields, self.flags_for(endpoint, message.fields.event_type)
        if endpoint.polls:
            # Nothing is pushed to it, so it is never active.
            chosen = selects(endpoint, fields.event_type, fields.channels, type_flags=flags)
            return chosen and not endpoint.fields.disabled
        return wants(endpoint, fields.event_type, fields.channels, type_flags=flags)

    def _in_order(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[tuple[str, ListedMessage | None]]:
        """Messages at their places; late ones appear at a later place as well."""
        listed = ((each.engine_id, each) for each in self.log.messages(project_id, app_id, span))
        late = (
            (place, self.log.listed(project_id, app_id, engine))
            for place, engine in self.log.late(project_id, app_id, span)
        )
        both: Iterator[tuple[str, ListedMessage | None]] = heapq.merge(listed, late, key=lambda each: each[0])
        return both


def place_of(iterator: str, now: int) -> str:
    """The place at which an iterator goes on; ``Unprocessable`` if it is none. Nobody has read what is still to come,
    so none leads there: what is posted until then would be passed over.

    Args:
        now: The time, epoch milliseconds.
    """
    place, last = engine_id(iterator), id_before(now + SETTLED_MS)
    # Ids of the next decade have a digit more.
    if place is None or (len(place), place) > (len(last), last):
        raise unprocessable("The iterator does not belong to this list", "query", "iterator")
    return place
