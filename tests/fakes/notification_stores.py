"""The stores of Notifications 2.0 in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace

from pushhub.base.errors import Conflict
from pushhub.base.ids import new_uid
from pushhub.notifications.model.backlog import Backlog
from pushhub.notifications.model.records import BacklogChange, CommitChange
from pushhub.notifications.model.request import REPEATABLE_MS, CommitPart, PublishRequest
from pushhub.notifications.model.subscription import Context, Subscription
from pushhub.notifications.model.topic import Commit, Head, Reservation, Topic
from pushhub.notifications.ports import AlreadyAppended, Connection, TopicFull


class FakeSubscriptionStore:
    """Publishing rules."""

    def __init__(self) -> None:
        self._rules: dict[tuple[str, str, str, str], Subscription] = {}

    def create(self, rule: Subscription) -> None:
        if _key(rule) in self._rules:
            raise Conflict("subscription exists")
        self._rules[_key(rule)] = rule

    def subscription(self, project_id: str, subscription_id: str) -> Subscription | None:
        rules = self.subscriptions(project_id)
        return next((each for each in rules if each.subscription_id == subscription_id), None)

    def subscriptions(self, project_id: str) -> list[Subscription]:
        mine = [each for each in self._rules.values() if each.project == project_id]
        return sorted(mine, key=lambda each: int(each.subscription_id))

    def concerning(self, project_id: str, source: str) -> list[Subscription]:
        rules = self.subscriptions(project_id)
        return [each for each in rules if each.context is Context.TENANT or each.source == source]

    def delete(self, rule: Subscription) -> bool:
        return self._rules.pop(_key(rule), None) is not None


def _key(rule: Subscription) -> tuple[str, str, str, str]:
    return rule.project, rule.context.value, rule.source, rule.name


class FakeRequestStore:
    """Publish requests that may be repeated."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: dict[tuple[str, str], tuple[int, PublishRequest]] = {}

    def note(self, request: PublishRequest, now: int) -> PublishRequest:
        key = request.project, request.key
        with self._lock:
            noted_at, stored = self._noted.get(key, (now, None))
            if stored is None or noted_at <= now - REPEATABLE_MS:
                self._noted[key] = now, request
            return self._noted[key][1]

    def may_take(self, topic: Topic, part: CommitPart) -> bool:
        """Whether a part of a request is not in a topic."""
        _, request = self._noted[topic.project, part.key]
        return request.taken.get(topic, 0) < part.up_to

    def take(self, topic: Topic, part: CommitPart) -> None:
        """Note that a part of a request is in a topic."""
        with self._lock:
            noted_at, request = self._noted[topic.project, part.key]
            taken = {**request.taken, topic: part.up_to}
            self._noted[topic.project, part.key] = noted_at, replace(request, taken=taken)


class FakeTopicStore:
    """Heads and logs.

    Args:
        requests: Where parts of requests are noted.

    Attributes:
        page: Most commits a read returns, to test short pages.
        changes: What its table's stream would tell, in order.
    """

    def __init__(self, requests: FakeRequestStore | None = None) -> None:
        self._requests = requests or FakeRequestStore()
        self._lock = threading.Lock()
        self._heads: dict[Topic, Head] = {}
        self._commits: dict[tuple[Topic, int], Commit] = {}
        self.page = 1000
        self.changes: list[CommitChange] = []

    def admit(self, topic: Topic, subscriber_uid: str, *, ceiling: int) -> Head:
        with self._lock:
            head = self._heads.get(topic) or Head(uid=new_uid(), ceiling=ceiling)
            self._heads[topic] = replace(head, subscribers=head.subscribers | {subscriber_uid})
            return self._heads[topic]

    def dismiss(self, topic: Topic, subscriber_uid: str) -> None:
        with self._lock:
            if head := self._heads.get(topic):
                self._heads[topic] = replace(head, subscribers=head.subscribers - {subscriber_uid})

    def head(self, topic: Topic) -> Head | None:
        return self._heads.get(topic)

    def reserve(self, topic: Topic, size: int, now: int, *, admitted: bool = False) -> Reservation | None:
        with self._lock:
            head = self._heads.get(topic)
            if head is None or not head.subscribers:
                return None
            if head.size >= head.ceiling and not admitted:
                raise TopicFull(head)
            self._heads[topic] = replace(
                head, sequence=head.sequence + 1, size=head.size + size, reserved_at=max(now, head.reserved_at)
            )
            return Reservation(
                topic_uid=head.uid,
                sequence=head.sequence + 1,
                size_before=head.size,
                reserved_at=now,
                previous_at=head.reserved_at,
                subscribers=head.subscribers,
            )

    def raise_ceiling(self, topic: Topic, ceiling: int) -> None:
        with self._lock:
            head = self._heads[topic]
            self._heads[topic] = replace(head, ceiling=max(head.ceiling, ceiling))

    def append(self, commit: Commit, part: CommitPart | None = None) -> None:
        with self._lock:
            if part is not None and not self._requests.may_take(commit.topic, part):
                raise AlreadyAppended("part of a request")
            if (commit.topic, commit.sequence) not in self._commits:
                self.changes.append(CommitChange(commit=commit, removed=False, changed_at=commit.accepted_at))
            stored = self._commits.setdefault((commit.topic, commit.sequence), commit)
            if stored != commit:
                raise Conflict("place is taken")
            if part is not None:
                self._requests.take(commit.topic, part)

    def commits(self, topic: Topic, first: int, limit: int) -> list[Commit]:
        found = [each for (where, number), each in self._commits.items() if where == topic and number >= first]
        return sorted(found, key=lambda each: each.sequence)[: min(limit, self.page)]

    def commits_at(self, topic: Topic, sequences: Sequence[int]) -> dict[int, Commit]:
        return {each: self._commits[topic, each] for each in sequences if (topic, each) in self._commits}

    def expire(self, now: int) -> None:
        """Delete what expired, as the table's time to live does."""
        for key in [key for key, each in self._commits.items() if each.expires_at <= now]:
            self.changes.append(CommitChange(commit=self._commits.pop(key), removed=True, changed_at=now))


class FakeBacklogStore:
    """Backlogs.

    Attributes:
        changes: What its table's stream would tell, in order.
    """

    def __init__(self) -> None:
        self.changes: list[BacklogChange] = []
        self._lock = threading.Lock()
        self._backlogs: dict[tuple[Topic, str], Backlog] = {}

    def backlog(self, topic: Topic, subscriber: str) -> Backlog | None:
        return self._backlogs.get((topic, subscriber))

    def backlogs(self, topic: Topic) -> list[Backlog]:
        return [each for (where, _), each in sorted(self._backlogs.items(), key=_by_name) if where == topic]

    def save(self, backlog: Backlog) -> None:
        key = backlog.topic, backlog.subscriber
        with self._lock:
            stored = self._backlogs.get(key)
            if stored == backlog:
                return
            version = stored.version if stored and stored.uid == backlog.uid else 0
            if version != backlog.version - 1 or (stored is not None and version == 0):
                raise Conflict("backlog changed")
            self._backlogs[key] = backlog
            self.changes.append(BacklogChange(before=stored, after=backlog, changed_at=backlog.created_at))

    def delete(self, backlog: Backlog) -> None:
        key = backlog.topic, backlog.subscriber
        with self._lock:
            if (stored := self._backlogs.get(key)) and stored.uid == backlog.uid:
                if stored.version != backlog.version:
                    raise Conflict("backlog changed")
                del self._backlogs[key]
                self.changes.append(BacklogChange(before=stored, after=None, changed_at=stored.created_at))


def _by_name(item: tuple[tuple[Topic, str], Backlog]) -> str:
    return item[0][1]


class FakeConnectionStore:
    """Connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: dict[str, Connection] = {}
        self._check_at: dict[str, int] = {}

    def open(self, connection: Connection, *, check_at: int) -> None:
        self._connections[connection.connection_id] = connection
        self._check_at[connection.connection_id] = check_at

    def connections(self, connection_ids: Sequence[str]) -> dict[str, Connection]:
        return {each: self._connections[each] for each in connection_ids if each in self._connections}

    def acknowledge(self, connection_id: str, positions: Set[int], *, shared: bool) -> Connection | None:
        with self._lock:
            stored = self._connections.get(connection_id)
            if stored is None or stored.shared != shared:
                return None
            return self._change(stored, acknowledged=stored.acknowledged | positions)

    def stall(self, connection_id: str, *, stalled: bool) -> Connection | None:
        with self._lock:
            stored = self._connections.get(connection_id)
            return self._change(stored, stalled=stalled) if stored else None

    def leave(self, connection_id: str) -> None:
        with self._lock:
            if stored := self._connections.get(connection_id):
                self._change(stored, leaving=True)

    def everyone(self) -> Iterator[Connection]:
        yield from list(self._connections.values())

    def forget(self, connection_id: str, positions: Iterable[int]) -> None:
        with self._lock:
            if stored := self._connections.get(connection_id):
                self._change(stored, acknowledged=stored.acknowledged - set(positions))

    def close(self, connection_id: str) -> Connection | None:
        self._check_at.pop(connection_id, None)
        return self._connections.pop(connection_id, None)

    def idle(self, now: int, limit: int) -> list[str]:
        return [each for each, at in sorted(self._check_at.items(), key=lambda item: item[1]) if at <= now][:limit]

    def check_again(self, connection_id: str, check_at: int) -> None:
        if connection_id in self._connections:
            self._check_at[connection_id] = check_at

    def _change(self, stored: Connection, **changes: object) -> Connection:
        changed = replace(stored, **changes)  # type: ignore[arg-type]
        self._connections[stored.connection_id] = changed
        return changed
