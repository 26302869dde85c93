"""The sinks of streams: created, changed, looked up, tried again, moved on; and read, if they are pollers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Invalid
from pushhub.base.ids import id_before
from pushhub.base.signing import DEFAULT_GRACE_S
from pushhub.base.sink_url import BATCHED_SCHEMES, parse_sink_url
from pushhub.engine.component import Component
from pushhub.webhooks.endpoints.credentials import opened
from pushhub.webhooks.endpoints.destinations import in_config
from pushhub.webhooks.messages.poller import place_of
from pushhub.webhooks.model.endpoint import POLLER, EndpointFields
from pushhub.webhooks.model.ids import message_id
from pushhub.webhooks.model.internal_queues import queue_of
from pushhub.webhooks.model.reading import MOST_SIZE, Reader, Reading
from pushhub.webhooks.model.refusals import not_found, unprocessable
from pushhub.webhooks.streams.reading import MOST_LOOKED, first_reader, next_batch
from pushhub.webhooks.wire.destination import endpoint_name, url_of
from pushhub.webhooks.wire.endpoint import EndpointChange, NewEndpoint, Rotation, is_http

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.base.ports import Clock
    from pushhub.engine.model.message import Message
    from pushhub.engine.security.credentials import Credentials
    from pushhub.engine.security.external_ids import ExternalIds
    from pushhub.webhooks.endpoints.endpoints import WebhooksEndpoints
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.model.page import Page, Window
    from pushhub.webhooks.model.rights import Rights
    from pushhub.webhooks.streams.kicks import Kicks
    from pushhub.webhooks.streams.log import StreamLog
    from pushhub.webhooks.streams.reading import Readers
    from pushhub.webhooks.wire.stream_sink import GivenHttp, GivenSink


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledEvents:
    """The events that a poller was given.

    Attributes:
        iterator: Where to go on.
        done: Whether there is nothing more at present.
    """

    events: Sequence[tuple[Message, bytes]]
    iterator: str
    done: bool


class StreamSinks(Component):
    """The sinks of streams. What is returned is opened.

    Methods raise ``NotFound`` for what is not there, and ``Unprocessable`` for what breaks a rule.
    """

    endpoints: WebhooksEndpoints
    readers: Readers
    kicks: Kicks
    log: StreamLog
    credentials: Credentials
    external_ids: ExternalIds
    clock: Clock

    def external_id(self, stream: Application) -> str:
        """What a role has to demand that a stream's sinks are reached with."""
        return self.external_ids.of(stream.project, queue_of(stream.app_id))

    @property
    def principal(self) -> str:
        """Who assumes such a role."""
        return self.external_ids.principal

    def create(self, stream: Application, given: GivenSink, rights: Rights) -> Endpoint:
        """Make a sink; it gets what is posted from now on."""
        with in_config():
            url = self._url(stream, given, None)
            fields = EndpointFields(url=url, **given.settings)
            reads = _fit(given.reading(Reading()), url)
            headers = {} if given.http.headers is None else given.http.headers.apply({})
            wanted = NewEndpoint(fields=fields, key=given.http.key, headers=headers, reads=reads)
            return self._opened(self.endpoints.create(stream, wanted, tuple, rights))

    def page(self, stream: Application, window: Window) -> Page[Endpoint]:
        """A page of a stream's sinks."""
        page = self.endpoints.page(stream.project, stream.app_id, window)
        return replace(page, items=[self._opened(each) for each in page.items if each.reads is not None])

    def find(self, stream: Application, name: str) -> Endpoint | None:
        """The sink with an id or uid, or None."""
        found = self.endpoints.find(stream, endpoint_name(name))
        return self._opened(found) if found is not None and found.reads is not None else None

    def sink(self, stream: Application, name: str) -> Endpoint:
        """The sink with an id or uid."""
        found = self.find(stream, name)
        if found is None:
            raise not_found("Sink")
        return found

    def update(
        self, stream: Application, there: Endpoint, given: GivenSink, rights: Rights, *, whole: bool
    ) -> Endpoint:
        """Change a sink; if it failed, it is tried again.

        Args:
            there: Opened.
            whole: Whether nothing stays that is not given.
        """
        if given.http.headers is not None:
            # Refused, if they are, before anything is changed.
            given.http.headers.apply(there.headers)
        if there.polls and given.scheme != "poller":
            # Its key was the secret of its consumer's token, and is to sign nothing.
            rotated, _ = self.endpoints.rotate(*there.place, Rotation(key=None, grace_s=0))
            there = self._opened(rotated)

        def url(stored: str) -> str:
            return self._url(stream, given, None if whole else stored)

        def read(stored: Endpoint) -> Endpoint:
            before = Reading() if whole else stored.reads or Reading()
            return replace(stored, reads=_fit(given.reading(before), stored.fields.url))

        with in_config():
            change = EndpointChange(settings={**given.settings, "url": url(there.fields.url)}, url=url)
            changed = self.endpoints.update(stream, there, change, rights)
        if read(changed) != changed:
            changed = self.endpoints.change(stream.project, stream.app_id, there.endpoint_id, read)
        changed = self._with_http(changed, given.http)
        self.retry(changed)
        return self._opened(changed)

    def _with_http(self, sink: Endpoint, given: GivenHttp) -> Endpoint:
        """A sink of the type http, changed, with the headers and the key that its config names."""
        names = sink.place
        if given.headers is not None:
            self.endpoints.change_headers(*names, given.headers)
            sink = self.endpoints.endpoint(*names)
        if given.key is not None and given.key != self.endpoints.keys(sink).current:
            sink, _ = self.endpoints.rotate(*names, Rotation(key=given.key, grace_s=DEFAULT_GRACE_S))
        return sink

    def delete(self, stream: Application, name: str) -> None:
        """Delete a sink."""
        self.endpoints.delete(stream.project, stream.app_id, self.sink(stream, name).endpoint_id)

    def http_sink(self, stream: Application, name: str) -> Endpoint:
        """The sink of the type http with an id or uid: others have neither headers nor a secret.

        Raises:
            Unprocessable: It is of another type.
        """
        sink = self.sink(stream, name)
        if not is_http(sink.fields.url):
            raise unprocessable("Only a sink of the type http has headers and a signing secret", "path", "sink")
        return sink

    def reader(self, sink: Endpoint) -> Reader:
        """Where a sink is."""
        return self.readers.reader(sink) or first_reader(sink)

    def retry(self, sink: Endpoint) -> None:
        """Have a sink go on now, whatever it waits for."""

        def once() -> None:
            reader = self.readers.reader(sink)
            if reader is not None and reader.next_at:
                self.readers.put_reader(sink, reader.due_now())

        until_saved(once, doing="having a sink tried again")
        if sink.active:
            self.kicks.kick(sink.project, sink.app_id, [sink.endpoint_id])

    def skip(self, sink: Endpoint) -> Reader:
        """Leave out the batch that a sink is to write next, and have it go on behind it.

        Raises:
            Unprocessable: Somebody is writing it just now, or there is none.
        """

        def once() -> Reader:
            now, reader = self.clock.now(), self.reader(sink)
            if reader.busy_until > now:
                raise unprocessable("The batch is being written just now", "path", "sink")
            batch = next_batch(self.log, sink, reader, now)
            if not batch.events:
                raise unprocessable("There is no batch to leave out", "path", "sink")
            return self.readers.put_reader(sink, reader.without_batch(batch.last))

        skipped = until_saved(once, doing="skipping a batch")
        if sink.active:
            self.kicks.kick(sink.project, sink.app_id, [sink.endpoint_id])
        return skipped

    def read(self, sink: Endpoint, *, limit: int, iterator: str, after: int | None) -> PolledEvents:
        """The events of a poller behind an iterator or a time; with neither, behind its position. Its position moves to
        an iterator that it shows: what is before it has arrived.

        Raises:
            Unprocessable: It is no poller, or no iterator.
        """
        if not sink.polls:
            raise unprocessable("Only a sink of the type poller can be read", "path", "sink")
        now = self.clock.now()
        start = self.reader(sink).position if after is None else id_before(min(after, now))
        if iterator:
            start = place_of(iterator, now)
            self._arrived(sink, start)
        events: list[tuple[Message, bytes]] = []
        last, looked, done = start, 0, True
        if not sink.fields.disabled:
            for place, message in self.log.events(sink, start, limit):
                if len(events) == limit or looked == MOST_LOOKED:
                    done = False
                    break
                body = None if message is None else self.log.body(message)
                if message is not None and body is not None:
                    events.append((message, body))
                last, looked = place, looked + 1
        return PolledEvents(events=events, iterator=message_id(last), done=done)

    def _arrived(self, sink: Endpoint, place: str) -> None:
        def once() -> None:
            reader = self.reader(sink)
            if place > reader.position:
                self.readers.put_reader(sink, reader.moved(place))

        until_saved(once, doing="moving a poller")

    def _url(self, stream: Application, given: GivenSink, stored: str | None) -> str:
        if given.scheme == "poller":
            return POLLER
        if given.scheme == "http":
            if given.http.url is not None:
                return given.http.url
            if stored is None or not is_http(stored):
                raise unprocessable("A sink of the type http needs a url", "body", "config", "url")
            return stored
        on_aws = stored is not None and stored != POLLER and not is_http(stored)
        there = parse_sink_url(stored) if stored is not None and on_aws else None
        kept = there if there is not None and there.scheme == given.scheme else None
        try:
            return url_of(given.destination, kept, app_id=stream.app_id, external_id=self.external_id(stream))
        except Invalid as error:
            raise unprocessable(error.message, "body", "config") from error

    def _opened(self, endpoint: Endpoint) -> Endpoint:
        return opened(endpoint, self.credentials)


def _fit(reads: Reading, url: str) -> Reading:
    """As many events together as the service takes."""
    scheme = url.partition(":")[0].lower()
    together = scheme in BATCHED_SCHEMES or scheme in ("http", "https", "poller")
    most = 500 if scheme == "kinesis" else MOST_SIZE if together else 1
    return replace(reads, size=min(reads.size, most))
