"""Projects, tokens and queues in memory."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.fakes.clock import FakeClock
from tests.fakes.credentials import credentials

from pushhub.base.errors import Conflict, NotFound
from pushhub.base.signature_schemes import Scheme
from pushhub.engine.model.project import Project, ProjectToken
from pushhub.engine.model.queue import Queue
from pushhub.engine.model.quota import Mark
from pushhub.engine.model.span_export import SpanExport
from pushhub.engine.ports import PROJECT_MS


class FakeConfigStore:
    """Keeps everything in dictionaries; has no cache, so every read is fresh."""

    def __init__(self, clock: FakeClock | None = None) -> None:
        self._clock = clock or FakeClock()
        self._credentials = credentials()
        self._lock = threading.Lock()
        self._projects: dict[str, Project] = {}
        self._tokens: dict[tuple[str, str], ProjectToken] = {}
        self._queues: dict[tuple[str, str], Queue] = {}
        self._span_exports: dict[str, SpanExport] = {}
        self._workers = itertools.count(1)
        self._totals: Counter[tuple[str, str]] = Counter()
        self._marks: dict[str, int] = {}
        self._change_notes: dict[int, int] = {}

    def put_project(self, project: Project) -> None:
        self._projects[project.project_id] = project

    def project(self, project_id: str, *, within_ms: int = PROJECT_MS) -> Project | None:
        return self._projects.get(project_id)

    def put_span_export(self, export: SpanExport) -> None:
        self._span_exports[export.project] = export

    def span_export(self, project_id: str, *, fresh: bool = False) -> SpanExport | None:
        return self._span_exports.get(project_id)

    def remove_span_export(self, project_id: str) -> None:
        self._span_exports.pop(project_id, None)

    def change_project(self, project_id: str, change: Callable[[Project], Project]) -> Project:
        while True:
            before = self.project(project_id, within_ms=0)
            if before is None:
                raise NotFound("Project not found")
            after = change(before)
            with self._lock:
                if self._projects.get(project_id) is before:
                    self._projects[project_id] = after
                    return after

    def sign_project(self, project_id: str, signatures: Sequence[Scheme]) -> None:
        if project_id not in self._projects:
            raise Conflict("there is no such project")
        self._projects[project_id] = replace(self._projects[project_id], signatures=tuple(signatures))

    def projects(self) -> list[Project]:
        return sorted(self._projects.values(), key=lambda each: (each.created_at, each.project_id))

    def put_token(
        self, project_id: str, token_hash: str, label: str, now: int, *, expires_at: int | None = None
    ) -> None:
        self._tokens[project_id, token_hash] = ProjectToken(
            token_hash=token_hash, label=label, created_at=now, expires_at=expires_at
        )

    def end_token(self, project_id: str, token: ProjectToken, at: int) -> None:
        with self._lock:
            stored = self._tokens.get((project_id, token.token_hash))
            if stored is not None and (stored.expires_at is None or stored.expires_at > at):
                self._tokens[project_id, token.token_hash] = replace(stored, expires_at=at)

    def tokens(self, project_id: str) -> list[ProjectToken]:
        own = [each for (project, _), each in self._tokens.items() if project == project_id]
        return sorted(own, key=lambda each: (each.created_at, each.token_hash))

    def has_token(self, project_id: str, token_hash: str) -> bool:
        token = self._tokens.get((project_id, token_hash))
        return token is not None and (token.expires_at is None or self._clock.now() < token.expires_at)

    def project_of(self, token_hash: str) -> str | None:
        owners = (project for project, known in self._tokens if known == token_hash)
        return next((each for each in owners if self.has_token(each, token_hash)), None)

    def remove_token(self, project_id: str, token_hash: str) -> None:
        self._tokens.pop((project_id, token_hash), None)

    def create_queue(self, queue: Queue) -> None:
        created = self._credentials.sealed(replace(queue, version=1))
        with self._lock:
            if self._queues.setdefault((queue.project, queue.name), created) != created:
                raise Conflict(f"queue {queue.name} exists")

    def queue(self, project_id: str, name: str, *, fresh: bool = False) -> Queue | None:
        return self._queues.get((project_id, name))

    def update_queue(self, queue: Queue) -> Queue:
        updated = self._credentials.sealed(replace(queue, version=queue.version + 1))
        with self._lock:
            stored = self._queues.get((queue.project, queue.name))
            if stored == updated:
                return updated
            if stored is None or (stored.uid, stored.version) != (queue.uid, queue.version):
                raise Conflict(f"queue {queue.name} changed")
            self._queues[queue.project, queue.name] = updated
        return updated

    def delete_queue(self, queue: Queue) -> bool:
        with self._lock:
            stored = self._queues.get((queue.project, queue.name))
            if stored is not None and (stored.uid, stored.version) != (queue.uid, queue.version):
                raise Conflict(f"queue {queue.name} changed")
            return self._queues.pop((queue.project, queue.name), None) is not None

    def queues(self, project_id: str, *, prefix: str, after: str, limit: int) -> list[str]:
        names = sorted(name for project, name in self._queues if project == project_id)
        return [name for name in names if name.startswith(prefix) and name > after][:limit]

    def whole_queues(self, project_id: str, *, prefix: str, after: str, limit: int) -> list[Queue]:
        names = self.queues(project_id, prefix=prefix, after=after, limit=limit)
        return [self._queues[project_id, name] for name in names]

    def next_worker(self) -> int:
        return next(self._workers)

    def move_mark(self, project_id: str, by_us: int, *, now: int, most_us: int, ahead: bool) -> Mark:
        with self._lock:
            until = self._marks.get(project_id, 0)
            if max(until, now) + by_us > now + most_us:
                return Mark(until=until, moved=False)
            self._marks[project_id] = max(until, now) + by_us
            return Mark(until=self._marks[project_id], moved=True)

    def note_change(self, slot: int, until: int) -> None:
        self._change_notes[slot] = until

    def noted_changes(self) -> dict[int, int]:
        return dict(self._change_notes)

    def add_to_total(self, project_id: str, queue_uid: str, count: int) -> None:
        with self._lock:
            self._totals[project_id, queue_uid] += count

    def total(self, project_id: str, queue_uid: str) -> int:
        return self._totals[project_id, queue_uid]
