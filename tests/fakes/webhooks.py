"""The stores of webhooks, in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.fakes.credentials import credentials

from pushhub.base.errors import Conflict
from pushhub.webhooks.endpoints.credentials import sealed, without_secrets
from pushhub.webhooks.messages.ports import KeyBusy, KeyReused
from pushhub.webhooks.model.application import Application
from pushhub.webhooks.model.arrival import Turned, TurnedAway
from pushhub.webhooks.model.attempt import LoggedAttempt
from pushhub.webhooks.model.consumer import PollingConsumer
from pushhub.webhooks.model.endpoint import Endpoint
from pushhub.webhooks.model.event_type import EventType
from pushhub.webhooks.model.message import ListedMessage
from pushhub.webhooks.model.page import KeyRange, taken
from pushhub.webhooks.model.reading import Reader
from pushhub.webhooks.ports import KeptAnswer, RequestKey, UidTaken

_Key = tuple[str, ...]


def _uid_of_application(each: Application) -> str | None:
    """The uid by which an application is found; sources and streams have uids of their own."""
    return None if each.source or each.is_stream else each.uid


class FakeWebhooksSettings:
    """Keeps applications, endpoints and event types in dictionaries."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._applications: dict[_Key, Application] = {}
        self._credentials = credentials()
        self._endpoints: dict[_Key, Endpoint] = {}
        self._deleted: dict[_Key, Endpoint] = {}
        self._types: dict[_Key, EventType] = {}

    def application(self, project_id: str, name: str) -> Application | None:
        of_project = [each for key, each in self._applications.items() if key[0] == project_id]
        return next((each for each in of_project if name in (each.app_id, _uid_of_application(each))), None)

    def source(self, project_id: str, name: str) -> Application | None:
        of_project = [each for key, each in self._applications.items() if key[0] == project_id and each.source]
        return next((each for each in of_project if name in (each.app_id, each.uid)), None)

    def stream(self, project_id: str, name: str) -> Application | None:
        of_project = [each for key, each in self._applications.items() if key[0] == project_id and each.is_stream]
        return next((each for each in of_project if name in (each.app_id, each.uid)), None)

    def applications(self, project_id: str, span: KeyRange) -> Iterator[Application]:
        of_project = [each for key, each in self._applications.items() if key[0] == project_id]
        return iter(taken(of_project, lambda each: each.app_id, span))

    def put_application(self, application: Application, before: Application | None) -> Application:
        with self._lock:
            key = (application.project, application.app_id)
            stored = self._applications.get(key)
            find = self.source if application.source else self.application
            find = self.stream if application.is_stream else find
            self._check_uid(application.uid, application.app_id, find, application.project)
            if (stored.version if stored else 0) != application.version or (before is None) != (stored is None):
                raise Conflict("it changed")
            endpoints = stored.endpoints if stored else 0
            raised = replace(application, version=application.version + 1, endpoints=endpoints)
            self._applications[key] = raised
            return raised

    def delete_application(self, application: Application) -> bool:
        for each in list(self.endpoints(application.project, application.app_id, KeyRange())):
            self.delete_endpoint(each)
        return self._applications.pop((application.project, application.app_id), None) is not None

    def endpoint(self, project_id: str, app_id: str, name: str) -> Endpoint | None:
        of_app = [each for key, each in self._endpoints.items() if key[:2] == (project_id, app_id)]
        return next((each for each in of_app if name in (each.endpoint_id, each.uid)), None)

    def endpoints(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[Endpoint]:
        of_app = [each for key, each in self._endpoints.items() if key[:2] == (project_id, app_id)]
        return iter(taken(of_app, lambda each: each.endpoint_id, span))

    def put_endpoint(self, endpoint: Endpoint, before: Endpoint | None) -> Endpoint:
        with self._lock:
            key = (endpoint.project, endpoint.app_id, endpoint.endpoint_id)
            stored = self._endpoints.get(key)
            self._check_uid(endpoint.uid, endpoint.endpoint_id, self.endpoint, endpoint.project, endpoint.app_id)
            if (stored.version if stored else 0) != (before.version if before else 0):
                raise Conflict("it changed")
            self._count(endpoint)
            raised = sealed(replace(endpoint, version=endpoint.version + 1), self._credentials)
            self._endpoints[key] = raised
            return raised

    def delete_endpoint(self, endpoint: Endpoint) -> None:
        with self._lock:
            key = (endpoint.project, endpoint.app_id, endpoint.endpoint_id)
            stored = self._endpoints.get(key)
            if stored is None or stored.version != endpoint.version:
                raise Conflict("it changed")
            self._count(endpoint)
            del self._endpoints[key]
            self._deleted[key] = replace(without_secrets(endpoint), deleted=True, sealed=b"")

    def disabled(self, project_id: str) -> Iterator[Endpoint]:
        return iter([each for key, each in self._endpoints.items() if key[0] == project_id and each.fields.disabled])

    def deleted_endpoint(self, project_id: str, app_id: str, endpoint_id: str) -> Endpoint | None:
        return self._deleted.get((project_id, app_id, endpoint_id))

    def event_type(self, project_id: str, name: str) -> EventType | None:
        return self._types.get((project_id, name))

    def event_types(self, project_id: str, span: KeyRange) -> Iterator[EventType]:
        of_project = [each for key, each in self._types.items() if key[0] == project_id]
        return iter(taken(of_project, lambda each: each.name, span))

    def event_types_named(self, project_id: str, names: Sequence[str]) -> list[EventType]:
        return [each for each in (self._types.get((project_id, name)) for name in names) if each]

    def put_event_type(self, event_type: EventType) -> EventType:
        with self._lock:
            key = (event_type.project, event_type.name)
            stored = self._types.get(key)
            if (stored.version if stored else 0) != event_type.version:
                raise Conflict("it changed")
            self._types[key] = replace(event_type, version=(event_type.version or event_type.created_at) + 1)
            return self._types[key]

    def delete_event_type(self, project_id: str, name: str) -> None:
        self._types.pop((project_id, name), None)

    def _count(self, endpoint: Endpoint) -> None:
        key = (endpoint.project, endpoint.app_id)
        if key not in self._applications:
            raise Conflict("its application is gone")
        application = self._applications[key]
        self._applications[key] = replace(application, endpoints=application.endpoints + 1)

    @staticmethod
    def _check_uid(uid: str | None, owner: str, find: object, *place: str) -> None:
        assert callable(find)
        there = find(*place, uid) if uid is not None else None
        if there is not None and owner not in (getattr(there, "app_id", ""), getattr(there, "endpoint_id", "")):
            raise UidTaken


class FakeConsumers:
    """Implements :class:`pushhub.webhooks.messages.consumers.ConsumerStore`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._consumers: dict[tuple[str, str, str, str], PollingConsumer] = {}

    def consumer(self, endpoint: Endpoint, name: str) -> PollingConsumer | None:
        return self._consumers.get((endpoint.project, endpoint.app_id, endpoint.endpoint_id, name))

    def put_consumer(self, endpoint: Endpoint, name: str, consumer: PollingConsumer) -> PollingConsumer:
        with self._lock:
            stored = self.consumer(endpoint, name)
            if (stored.version if stored else 0) != consumer.version:
                raise Conflict
            raised = replace(consumer, version=consumer.version + 1)
            self._consumers[endpoint.project, endpoint.app_id, endpoint.endpoint_id, name] = raised
            return raised


class FakeReaders:
    """Keeps in a dictionary where the sinks of streams are."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: dict[_Key, Reader] = {}

    def reader(self, sink: Endpoint) -> Reader | None:
        return self._readers.get((sink.project, sink.app_id, sink.endpoint_id))

    def put_reader(self, sink: Endpoint, reader: Reader) -> Reader:
        with self._lock:
            stored = self.reader(sink)
            if (stored.version if stored else 0) != reader.version:
                raise Conflict("it changed")
            raised = replace(reader, version=reader.version + 1)
            self._readers[sink.project, sink.app_id, sink.endpoint_id] = raised
            return raised


class FakeArrivalCounts:
    """Counts in a dictionary what sources have turned away."""

    def __init__(self) -> None:
        self._days: dict[tuple[str, str, int], TurnedAway] = {}

    def count(self, project_id: str, source_id: str, day: int, turned: Turned) -> None:
        key = (project_id, source_id, day)
        counts = dict(self._days[key].counts) if key in self._days else {}
        counts[turned.why] = counts.get(turned.why, 0) + 1
        self._days[key] = TurnedAway(day=day, counts=counts, last=turned)

    def counts(self, project_id: str, source_id: str, since: int) -> Sequence[TurnedAway]:
        found = [each for key, each in self._days.items() if key[:2] == (project_id, source_id) and key[2] >= since]
        return sorted(found, key=lambda each: -each.day)


class FakeIdempotencyKeys:
    """Keeps keys in a dictionary: until when each is valid, for which body, and its answer or message."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[_Key, tuple[int, str, KeptAnswer | str | None]] = {}

    def begin(self, project_id: str, key: RequestKey, *, now: int, locked_ms: int) -> KeptAnswer | None:
        with self._lock:
            if not self._valid(project_id, key, now):
                self._kept[project_id, key.digest] = (now + locked_ms, key.content, None)
                return None
            kept = self._kept[project_id, key.digest][2]
            if not isinstance(kept, KeptAnswer):
                raise KeyBusy
            return kept

    def keep(self, project_id: str, key: RequestKey, answer: KeptAnswer, *, until: int) -> None:
        self._kept[project_id, key.digest] = (until, key.content, answer)

    def release(self, project_id: str, key: RequestKey) -> None:
        self._kept.pop((project_id, key.digest), None)

    def note_id(self, project_id: str, key: RequestKey, new_id: str, *, now: int, until: int) -> str:
        with self._lock:
            if self._valid(project_id, key, now):
                return str(self._kept[project_id, key.digest][2])
            self._kept[project_id, key.digest] = (until, key.content, new_id)
            return new_id

    def _valid(self, project_id: str, key: RequestKey, now: int) -> bool:
        ends_at, content, _ = self._kept.get((project_id, key.digest), (0, "", None))
        if ends_at > now and content != key.content:
            raise KeyReused
        return ends_at > now


class FakeWebhooksLogs:
    """Keeps messages and attempts in dictionaries."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._messages: dict[_Key, ListedMessage] = {}
        self._events: dict[_Key, str] = {}
        self._late: dict[_Key, str] = {}
        self._attempts: dict[_Key, LoggedAttempt] = {}

    def list_message(self, message: ListedMessage) -> None:
        key = (message.project, message.app_id, message.engine_id)
        if message.expunged:
            self._messages[key] = message
        self._messages.setdefault(key, message)

    def listed(self, project_id: str, app_id: str, engine_id: str) -> ListedMessage | None:
        return self._messages.get((project_id, app_id, engine_id))

    def messages(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[ListedMessage]:
        of_app = [each for key, each in self._messages.items() if key[:2] == (project_id, app_id)]
        return iter(taken(of_app, lambda each: each.engine_id, span))

    def note_late(self, message: ListedMessage, position: str) -> None:
        self._late[message.project, message.app_id, position] = message.engine_id

    def late(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[tuple[str, str]]:
        of_app = [(key[2], each) for key, each in self._late.items() if key[:2] == (project_id, app_id)]
        return iter(taken(of_app, lambda each: each[0], span))

    def claim_event(self, project_id: str, app_id: str, event_id: str, engine_id: str, *, until: int) -> str:
        del until
        with self._lock:
            return self._events.setdefault((project_id, app_id, event_id), engine_id)

    def message_of_event(self, project_id: str, app_id: str, event_id: str) -> str | None:
        return self._events.get((project_id, app_id, event_id))

    def log_attempts(self, attempts: Sequence[LoggedAttempt]) -> None:
        for each in attempts:
            self.change_attempt(each)

    def change_attempt(self, attempt: LoggedAttempt) -> None:
        self._attempts[attempt.project, attempt.endpoint_id, attempt.attempt_id] = attempt

    def attempts(
        self, project_id: str, endpoint_id: str, span: KeyRange, *, engine_id: str | None = None
    ) -> Iterator[LoggedAttempt]:
        of_endpoint = [each for key, each in self._attempts.items() if key[:2] == (project_id, endpoint_id)]
        found = taken(of_endpoint, lambda each: each.attempt_id, span)
        return (each for each in found if engine_id in (None, each.engine_id))
