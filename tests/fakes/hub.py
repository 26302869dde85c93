"""The hub's settings and log in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.fakes.credentials import credentials

from pushhub.base.errors import Conflict
from pushhub.hub.model.integration import Integration
from pushhub.hub.model.log import LoggedMessage, LogList, OpenRequest, RecordedAnswer
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.model.notice import Notice
from pushhub.hub.model.parameters import Parameter
from pushhub.hub.model.schedule import Scheduler
from pushhub.hub.tokens import sealed

_Key = tuple[str, str]


class FakeHubSettings:
    """Keeps everything in dictionaries, by project and id."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._mappings: dict[_Key, ServiceMapping] = {}
        self._credentials = credentials()
        self._integrations: dict[_Key, Integration] = {}
        self._schedulers: dict[_Key, Scheduler] = {}
        self._parameters: dict[_Key, Parameter] = {}
        self._deleted_parameters: dict[_Key, int] = {}
        self._types: set[_Key] = set()
        self._claims: dict[tuple[str, str, str], str] = {}

    def mapping(self, project_id: str, mapping_id: str) -> ServiceMapping | None:
        return self._mappings.get((project_id, mapping_id))

    def mappings(self, project_id: str) -> list[ServiceMapping]:
        return [each for (project, _), each in sorted(self._mappings.items()) if project == project_id]

    def routed_mappings(self, project_id: str) -> tuple[Sequence[ServiceMapping], int]:
        return self.mappings(project_id), 0

    def put_mapping(self, project_id: str, mapping: ServiceMapping) -> ServiceMapping:
        with self._lock:
            stored = self._mappings.get((project_id, mapping.mapping_id))
            _check_version(stored.version if stored else 0, mapping.version)
            raised = sealed(replace(mapping, version=mapping.version + 1), project_id, self._credentials)
            self._mappings[project_id, mapping.mapping_id] = raised
            return raised

    def delete_mapping(self, project_id: str, mapping_id: str) -> bool:
        return self._mappings.pop((project_id, mapping_id), None) is not None

    def integration(self, project_id: str, integration_id: str) -> Integration | None:
        return self._integrations.get((project_id, integration_id))

    def integrations(self, project_id: str) -> list[Integration]:
        return [each for (project, _), each in sorted(self._integrations.items()) if project == project_id]

    def put_integration(self, project_id: str, integration: Integration) -> Integration:
        with self._lock:
            stored = self._integrations.get((project_id, integration.integration_id))
            _check_version(stored.version if stored else 0, integration.version)
            raised = sealed(replace(integration, version=integration.version + 1), project_id, self._credentials)
            self._integrations[project_id, integration.integration_id] = raised
            return raised

    def delete_integration(self, project_id: str, integration_id: str) -> bool:
        return self._integrations.pop((project_id, integration_id), None) is not None

    def scheduler(self, project_id: str, scheduler_id: str) -> Scheduler | None:
        return self._schedulers.get((project_id, scheduler_id))

    def schedulers(self, project_id: str) -> list[Scheduler]:
        return [each for (project, _), each in sorted(self._schedulers.items()) if project == project_id]

    def put_scheduler(self, scheduler: Scheduler) -> Scheduler:
        with self._lock:
            stored = self._schedulers.get((scheduler.project, scheduler.scheduler_id))
            _check_version(stored.version if stored else 0, scheduler.version)
            raised = replace(scheduler, version=scheduler.version + 1)
            self._schedulers[scheduler.project, scheduler.scheduler_id] = raised
            return raised

    def delete_scheduler(self, project_id: str, scheduler_id: str) -> bool:
        return self._schedulers.pop((project_id, scheduler_id), None) is not None

    def due_schedulers(self, now: int, limit: int) -> list[Scheduler]:
        due = [each for each in self._schedulers.values() if each.next_at <= now]
        return sorted(due, key=lambda each: each.next_at)[:limit]

    def parameters(self, project_id: str) -> list[Parameter]:
        return [each for (project, _), each in sorted(self._parameters.items()) if project == project_id]

    def parameters_of(self, project_id: str, ids: Sequence[str]) -> list[Parameter]:
        by_id = {each.parameter_id: each for each in self.parameters(project_id)}
        return [by_id[each] for each in ids if each in by_id]

    def set_parameter(self, parameter: Parameter) -> bool:
        key = (parameter.project, parameter.name)
        with self._lock:
            stored = self._parameters.get(key)
            if parameter.as_of < (stored.as_of if stored else self._deleted_parameters.get(key, 0)):
                return False
        self.put_parameter(parameter, keep_type=True)
        return True

    def put_parameter(self, parameter: Parameter, *, keep_type: bool) -> None:
        key = (parameter.project, parameter.name)
        with self._lock:
            stored = self._parameters.get(key)
            kept = replace(parameter, data_type=stored.data_type) if stored and keep_type else parameter
            self._parameters[key] = kept

    def delete_parameter(self, project_id: str, name: str, as_of: int) -> bool:
        with self._lock:
            self._deleted_parameters[project_id, name] = as_of
            return self._parameters.pop((project_id, name), None) is not None

    def note_type(self, project_id: str, message_type: str) -> None:
        self._types.add((project_id, message_type))

    def types(self, project_id: str) -> list[str]:
        return sorted(each for project, each in self._types if project == project_id)

    def claim(self, project_id: str, mapping_id: str, identity: str, message_id: str) -> str:
        with self._lock:
            return self._claims.setdefault((project_id, mapping_id, identity), message_id)


class FakeHubLog:
    """Keeps entries, answers and notifications in dictionaries; lists are computed, so they are never late."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[_Key, LoggedMessage] = {}
        self._children: dict[_Key, tuple[str, ...]] = {}
        self._answers: dict[tuple[str, str, int], RecordedAnswer] = {}
        self._notifications: dict[_Key, Notice] = {}
        self._open: dict[_Key, OpenRequest] = {}

    def put(self, entry: LoggedMessage) -> None:
        key = (entry.project, entry.message_id)
        with self._lock:
            stored = self._entries.get(key)
            if stored is None or stored.version < entry.version:
                self._entries[key] = entry

    def add_children(self, project_id: str, message_id: str, children: Sequence[str]) -> None:
        self._children[project_id, message_id] = tuple(children)

    def entry(self, project_id: str, message_id: str) -> LoggedMessage | None:
        entry = self._entries.get((project_id, message_id))
        return replace(entry, children=self._children.get((project_id, message_id), ())) if entry else None

    def entries(self, project_id: str, message_ids: Sequence[str]) -> list[LoggedMessage]:
        found = (self.entry(project_id, each) for each in message_ids)
        return [each for each in found if each is not None]

    def listed(
        self, project_id: str, listings: Sequence[LogList], *, before: str | None, after: str | None, limit: int
    ) -> list[LoggedMessage]:
        ids = sorted((message_id for project, message_id in self._entries if project == project_id), reverse=True)
        found = [
            each
            for each in self.entries(project_id, ids)
            if each.listing in listings
            and (before is None or each.message_id < before)
            and (after is None or each.message_id > after)
        ]
        return found[:limit]

    def count(self, project_id: str, listing: LogList) -> int:
        return len(self.listed(project_id, [listing], before=None, after=None, limit=1_000_000))

    def record(self, project_id: str, message_id: str, answer: RecordedAnswer) -> RecordedAnswer:
        with self._lock:
            return self._answers.setdefault((project_id, message_id, answer.attempt), answer)

    def answer(self, project_id: str, message_id: str, attempt: int) -> RecordedAnswer | None:
        return self._answers.get((project_id, message_id, attempt))

    def last_answer(self, project_id: str, message_id: str) -> RecordedAnswer | None:
        attempts = [key for key in self._answers if key[:2] == (project_id, message_id)]
        return self._answers[max(attempts)] if attempts else None

    def note_open(self, project_id: str, message_id: str, request: OpenRequest) -> None:
        self._open[project_id, message_id] = request

    def open_requests(self, project_id: str, message_ids: Sequence[str]) -> dict[str, OpenRequest]:
        return {each: self._open[project_id, each] for each in message_ids if (project_id, each) in self._open}

    def count_notification(self, notification: Notice) -> Notice:
        key = (notification.project, notification.notification_id)
        with self._lock:
            stored = self._notifications.get(key)
            if stored is None:
                self._notifications[key] = notification
            elif stored.attempt < notification.attempt:
                self._notifications[key] = replace(
                    notification,
                    occurrences=stored.occurrences + notification.occurrences,
                    logged_at=stored.logged_at,
                    first_attempt=stored.first_attempt,
                )
            return self._notifications[key]

    def notifications_of(self, project_id: str, message_id: str) -> list[Notice]:
        every = list(self.notifications(project_id))
        return [each for each in reversed(every) if each.message_id == message_id]

    def notifications(
        self, project_id: str, *, start_at: int | None = None, end_at: int | None = None
    ) -> Iterator[Notice]:
        found = [
            each
            for (project, _), each in self._notifications.items()
            if project == project_id
            and (start_at is None or each.logged_at >= start_at)
            and (end_at is None or each.logged_at < end_at)
        ]
        return iter(sorted(found, key=lambda each: (each.logged_at, each.notification_id), reverse=True))


def _check_version(stored: int, expected: int) -> None:
    if stored != expected:
        raise Conflict("changed")
