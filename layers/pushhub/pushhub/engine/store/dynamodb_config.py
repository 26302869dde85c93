"""The configuration store on DynamoDB, with a short in-memory cache: projects, tokens and queues rarely change and are
read all the time.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

from pushhub.base.cache import ExpiringCache
from pushhub.base.conflicts import ROUNDS
from pushhub.base.errors import Conflict, Contended, NotFound, Unavailable
from pushhub.base.shared_reads import SharedReads
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, Table, number, text
from pushhub.cloud.unreadable import decodes, readable
from pushhub.engine.model.project import Project, ProjectToken
from pushhub.engine.model.quota import Mark
from pushhub.engine.ports import PROJECT_MS
from pushhub.engine.store._change_notes import NOTES, decode_notes
from pushhub.engine.store._project_items import (
    OPTIONAL,
    decode_project,
    decode_span_export,
    encode_project,
    encode_schemes,
    encode_span_export,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock
    from pushhub.base.signature_schemes import Scheme
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.model.span_export import SpanExport

CACHE_TTL_MS = 30_000
"""How long another process's change may go unnoticed, milliseconds."""

TOTAL_PARTS = 8
"""Number of keys that a queue's total is spread over; one takes 1,000 writes a second."""

MARK_ROUNDS = 5
"""How often moving a quota's mark is tried again after other writers have moved it."""

SPANS = "SPANS"
"""Sort key of where a project exports spans to."""

_CACHE_ENTRIES = 2_000
_QUEUE = "QUEUE#"
_TOKEN = "TOKEN#"  # noqa: S105 (a key's prefix)


def _nothing_to_seal(queue: Queue) -> Queue:
    """For those that never write a subscriber's credentials."""
    from pushhub.base.credentials import hidden_in  # noqa: PLC0415 (few write queues)

    if any(hidden_in(each.url, each.headers) for each in (queue.push.subscribers if queue.push else ())):
        raise ValueError("there is no vault to seal this queue's credentials with")
    return queue


class DynamoDBConfigStore:
    """Implements :class:`pushhub.engine.stores.ConfigStore`.

    Only existing things are cached, so new ones are seen at once; so are our own writes. Threads that miss the same
    project, token or queue at the same time share one read.

    Args:
        sealed: Makes the stored form of a queue, which holds nothing that opens something
            (:meth:`pushhub.engine.security.credentials.Credentials.sealed`).
    """

    def __init__(
        self,
        client: DynamoDBClient,
        table: str,
        clock: Clock,
        sealed: Callable[[Queue], Queue] = _nothing_to_seal,
    ) -> None:
        self._sealed = sealed
        self._table = Table(client, table, clock)
        self._part = int(clock.jitter() * TOTAL_PARTS) % TOTAL_PARTS
        self._project_reads = SharedReads[Project | None]()
        self._token_reads = SharedReads[ProjectToken | None]()
        self._queue_reads: SharedReads[Queue | None] = SharedReads()
        self._projects = ExpiringCache[tuple[Project, int]](clock, ttl_ms=CACHE_TTL_MS, capacity=_CACHE_ENTRIES)
        self._span_exports: ExpiringCache[tuple[SpanExport | None]] = ExpiringCache(
            clock, ttl_ms=CACHE_TTL_MS, capacity=_CACHE_ENTRIES
        )
        self._clock = clock
        self._tokens = ExpiringCache[ProjectToken](clock, ttl_ms=CACHE_TTL_MS, capacity=_CACHE_ENTRIES)
        self._owners = ExpiringCache[str](clock, ttl_ms=CACHE_TTL_MS, capacity=_CACHE_ENTRIES)
        self._queues: ExpiringCache[Queue] = ExpiringCache(clock, ttl_ms=CACHE_TTL_MS, capacity=_CACHE_ENTRIES)

    def put_project(self, project: Project) -> None:
        self._projects.drop(project.project_id)
        self._table.put(_key(project.project_id, "PROJECT") | encode_project(project))
        self._projects.put(project.project_id, (project, self._clock.now()))

    def project(self, project_id: str, *, within_ms: int = PROJECT_MS) -> Project | None:
        """Cached."""
        if not within_ms:
            return self._read_project(project_id)
        cached = self._projects.get(project_id)
        if cached is not None and 0 <= self._clock.now() - cached[1] < within_ms:
            return cached[0]
        return self._project_reads.read(project_id, lambda: self._read_project(project_id))[0]

    def _read_project(self, project_id: str) -> Project | None:
        read_at = self._clock.now()
        item = self._table.get(_key(project_id, "PROJECT"))
        if item is None:
            self._projects.drop(project_id)
            return None
        project = decode_project(item, project_id)
        self._projects.put(project_id, (project, read_at))
        return project

    def change_project(self, project_id: str, change: Callable[[Project], Project]) -> Project:
        """Written if everything of it is as it was read. What the item has and this version does not know stays."""
        for _ in range(ROUNDS):
            stored = self._table.get(_key(project_id, "PROJECT"))
            if stored is None:
                self._projects.drop(project_id)
                raise NotFound("Project not found")
            before = decode_project(stored, project_id)
            after = change(before)
            if after == before:
                return before
            others = {name: value for name, value in stored.items() if name not in OPTIONAL}
            self._projects.drop(project_id)
            try:
                self._table.put(others | encode_project(after), **_unchanged(stored))
            except ConditionRefused:
                continue
            self._projects.put(project_id, (after, self._clock.now()))
            return after
        raise Contended("changing a project")

    def sign_project(self, project_id: str, signatures: Sequence[Scheme]) -> None:
        """An update of this alone: the project that others know may be half a minute old."""
        self._projects.drop(project_id)
        try:
            self._table.update(
                _key(project_id, "PROJECT"),
                UpdateExpression="SET signs = :signs",
                ConditionExpression="attribute_exists(pk)",
                ExpressionAttributeValues={":signs": encode_schemes(signatures)},
            )
        except ConditionRefused as refused:
            raise Conflict("there is no such project") from refused
        self._projects.drop(project_id)

    def projects(self) -> list[Project]:
        found = self._table.scan(
            FilterExpression="sk = :project", ExpressionAttributeValues={":project": text("PROJECT")}
        )
        projects = readable(found, lambda item: decode_project(item, item["pk"]["S"].removeprefix("P#")))
        return sorted(projects, key=lambda each: (each.created_at, each.project_id))

    def put_span_export(self, export: SpanExport) -> None:
        self._span_exports.drop(export.project)
        self._table.put(_key(export.project, SPANS) | encode_span_export(export))
        self._span_exports.put(export.project, (export,))

    def span_export(self, project_id: str, *, fresh: bool = False) -> SpanExport | None:
        """Cached, and so is that there is none: it is asked for at each attempt that has a trace."""
        cached = None if fresh else self._span_exports.get(project_id)
        if cached is None:
            item = self._table.get(_key(project_id, SPANS))
            cached = (decode_span_export(item, project_id) if item else None,)
            self._span_exports.put(project_id, cached)
        return cached[0]

    def remove_span_export(self, project_id: str) -> None:
        self._table.delete(_key(project_id, SPANS))
        self._span_exports.drop(project_id)

    def put_token(
        self, project_id: str, token_hash: str, label: str, now: int, *, expires_at: int | None = None
    ) -> None:
        self._tokens.drop((project_id, token_hash))
        self._owners.drop(token_hash)
        # First the mapping from token to project: it has no effect without the token's own item.
        self._table.put(_token_key(token_hash) | {"project": text(project_id)})
        self._table.put(_key(project_id, _TOKEN + token_hash) | _encode_token(label, now, expires_at))

    def end_token(self, project_id: str, token: ProjectToken, at: int) -> None:
        item = _key(project_id, _TOKEN + token.token_hash) | _encode_token(token.label, token.created_at, at)
        self._tokens.drop((project_id, token.token_hash))
        with suppress(ConditionRefused):
            self._table.put(
                item,
                ConditionExpression="attribute_exists(pk) AND (attribute_not_exists(expires_at) OR expires_at > :at)",
                ExpressionAttributeValues={":at": number(at)},
            )
        self._tokens.drop((project_id, token.token_hash))

    def tokens(self, project_id: str) -> list[ProjectToken]:
        """Read consistently."""
        items = self._table.items(
            KeyConditionExpression="pk = :project AND begins_with(sk, :token)",
            ExpressionAttributeValues={":project": text(f"P#{project_id}"), ":token": text(_TOKEN)},
            ConsistentRead=True,
        )
        return sorted(readable(items, _decode_token), key=lambda each: (each.created_at, each.token_hash))

    def has_token(self, project_id: str, token_hash: str) -> bool:
        """Cached, so a token revoked elsewhere may keep working for 30 s."""
        token = self._tokens.get((project_id, token_hash))
        if token is None:
            key = project_id, token_hash
            token, _ = self._token_reads.read(key, lambda: self._read_token(project_id, token_hash))
        return token is not None and (token.expires_at is None or self._clock.now() < token.expires_at)

    def _read_token(self, project_id: str, token_hash: str) -> ProjectToken | None:
        item = self._table.get(_key(project_id, _TOKEN + token_hash))
        if item is None:
            return None
        token = _decode_token(item)
        self._tokens.put((project_id, token_hash), token)
        return token

    def project_of(self, token_hash: str) -> str | None:
        """Cached, because a token never moves to another project; :meth:`has_token` checks that it is still valid."""
        project_id = self._owners.get(token_hash)
        if project_id is None:
            item = self._table.get(_token_key(token_hash))
            if item is None:
                return None
            project_id = str(item["project"]["S"])
            self._owners.put(token_hash, project_id)
        return project_id if self.has_token(project_id, token_hash) else None

    def remove_token(self, project_id: str, token_hash: str) -> None:
        self._table.delete(_key(project_id, _TOKEN + token_hash))
        self._table.delete(_token_key(token_hash))
        self._tokens.drop((project_id, token_hash))
        self._owners.drop(token_hash)

    def create_queue(self, queue: Queue) -> None:
        """Creating the very same queue twice counts as success (the client repeats a call that timed out)."""
        self._write_queue(replace(queue, version=1))

    def queue(self, project_id: str, name: str, *, fresh: bool = False) -> Queue | None:
        """Cached unless ``fresh``."""
        if fresh:
            return self._read_queue(project_id, name)
        if cached := self._queues.get((project_id, name)):
            return cached
        return self._queue_reads.read((project_id, name), lambda: self._read_queue(project_id, name))[0]

    def _read_queue(self, project_id: str, name: str) -> Queue | None:
        item = self._table.get(_key(project_id, _QUEUE + name))
        if item is None:
            self._queues.drop((project_id, name))
            return None
        from pushhub.engine.store._queue_items import decode_queue  # noqa: PLC0415 (half the functions read none)

        queue = decode_queue(item, project_id, name)
        self._queues.put((project_id, name), queue)
        return queue

    def update_queue(self, queue: Queue) -> Queue:
        return self._write_queue(replace(queue, version=queue.version + 1))

    def delete_queue(self, queue: Queue) -> bool:
        self._queues.drop((queue.project, queue.name))
        try:
            stored = self._table.delete(
                _key(queue.project, _QUEUE + queue.name),
                ConditionExpression="attribute_not_exists(pk) OR (uid = :uid AND #version = :version)",
                ExpressionAttributeNames={"#version": "version"},
                ExpressionAttributeValues={":uid": text(queue.uid), ":version": number(queue.version)},
            )
        except ConditionRefused as refused:
            raise Conflict(f"queue {queue.name} has changed") from refused
        return stored is not None

    def queues(self, project_id: str, *, prefix: str, after: str, limit: int) -> list[str]:
        """Read consistently."""
        listed = self._listed(project_id, prefix, after, limit, ProjectionExpression="sk")
        return [item["sk"]["S"].removeprefix(_QUEUE) for item in islice(listed, limit)]

    def whole_queues(self, project_id: str, *, prefix: str, after: str, limit: int) -> list[Queue]:
        """Read consistently."""
        from pushhub.engine.store._queue_items import decode_queue  # noqa: PLC0415 (half the functions read none)

        listed = self._listed(project_id, prefix, after, limit)
        found = readable(listed, lambda item: decode_queue(item, project_id, item["sk"]["S"].removeprefix(_QUEUE)))
        return [*islice(found, limit)]

    def _listed(self, project_id: str, prefix: str, after: str, limit: int, **more: str) -> Iterator[Item]:
        # Keys sort as bytes, and Python strings by code point, which gives the same order for UTF-8. Names with the
        # prefix are adjacent, so the list starts after the greater of the two bounds and ends at the first name without
        # the prefix.
        condition, start = (">", after) if after and after >= prefix else (">=", prefix)
        items = self._table.items(
            KeyConditionExpression=f"pk = :project AND sk {condition} :start",
            ExpressionAttributeValues={":project": text(f"P#{project_id}"), ":start": text(_QUEUE + start)},
            ConsistentRead=True,
            Limit=limit,
            **more,
        )
        return takewhile(lambda item: item["sk"]["S"].startswith(_QUEUE + prefix), items)

    def next_worker(self) -> int:
        key = {"pk": text("WORKERS"), "sk": text("COUNTER")}
        return int(self._add(key, "given", 1)["given"]["N"])

    def add_to_total(self, project_id: str, queue_uid: str, count: int) -> None:
        """Each execution environment adds to one of several parts. The first part has the key that was used when there
        was only one.
        """
        part = f"#{self._part}" if self._part else ""
        self._add(_key(project_id, f"TOTAL#{queue_uid}{part}"), "posted", count)

    def total(self, project_id: str, queue_uid: str) -> int:
        parts = self._table.items(
            KeyConditionExpression="pk = :pk AND begins_with(sk, :total)",
            ExpressionAttributeValues={
                ":pk": _key(project_id, "")["pk"],
                ":total": text(f"TOTAL#{queue_uid}"),
            },
            ConsistentRead=True,
        )
        return sum(int(each["posted"]["N"]) for each in parts)

    def move_mark(self, project_id: str, by_us: int, *, now: int, most_us: int, ahead: bool) -> Mark:
        """Tries two conditional updates, because an update expression has no maximum of two numbers; the stored mark
        shows which one applies.
        """
        key, names = _key(project_id, "QUOTA"), {"#until": "until"}
        for _ in range(MARK_ROUNDS):
            condition, after = "attribute_not_exists(#until) OR #until <= :now", ":after"
            values = {":now": number(now), ":after": number(now + by_us)}
            if ahead:
                condition, after = "#until > :now AND #until <= :last", "#until + :by"
                values = {":now": number(now), ":last": number(now + most_us - by_us), ":by": number(by_us)}
            try:
                item = self._table.update(
                    key,
                    UpdateExpression=f"SET #until = {after}",
                    ConditionExpression=condition,
                    ExpressionAttributeNames=names,
                    ExpressionAttributeValues=values,
                )
            except ConditionRefused as refused:
                stored = int(refused.stored["until"]["N"]) if refused.stored else 0
                ahead = stored > now
                if ahead and stored + by_us > now + most_us:
                    return Mark(until=stored, moved=False)
            else:
                return Mark(until=int(item["until"]["N"]), moved=True)
        raise Unavailable("moving the mark of a quota")

    def note_change(self, slot: int, until: int) -> None:
        self._table.update(
            NOTES,
            UpdateExpression="SET #slot = :until",
            ExpressionAttributeNames={"#slot": f"s{slot}"},
            ExpressionAttributeValues={":until": number(until)},
        )

    def noted_changes(self) -> dict[int, int]:
        return decode_notes(self._table.get(NOTES))

    def _add(self, key: Item, attribute: str, count: int) -> Item:
        return self._table.update(
            key,
            UpdateExpression="ADD #attribute :count",
            ExpressionAttributeNames={"#attribute": attribute},
            ExpressionAttributeValues={":count": number(count)},
        )

    def _write_queue(self, queue: Queue) -> Queue:
        """Conditionally write a queue, updating the cache. Returns it as stored."""
        from pushhub.engine.store._queue_items import decode_queue, encode_queue  # noqa: PLC0415 (as above)

        queue = self._sealed(queue)
        item = _key(queue.project, _QUEUE + queue.name) | encode_queue(queue)
        try:
            self._table.put_version(
                item, read=lambda stored: decode_queue(stored, queue.project, queue.name), same=("uid",)
            )
        except (Conflict, Unavailable):
            self._queues.drop((queue.project, queue.name))
            raise
        self._queues.put((queue.project, queue.name), queue)
        return queue


def _key(project_id: str, sort_key: str) -> Item:
    return {"pk": text(f"P#{project_id}"), "sk": text(sort_key)}


def _unchanged(stored: Item) -> dict[str, Any]:
    """The condition that a project is as it was read."""
    others = sorted({*stored, *OPTIONAL} - {"pk", "sk"})
    names = {f"a{place}": name for place, name in enumerate(others)}
    conditions = [
        f"#{each} = :{each}" if name in stored else f"attribute_not_exists(#{each})" for each, name in names.items()
    ]
    return {
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": {f"#{each}": name for each, name in names.items()},
        "ExpressionAttributeValues": {f":{each}": stored[name] for each, name in names.items() if name in stored},
    }


def _encode_token(label: str, created_at: int, expires_at: int | None) -> Item:
    expiry = {} if expires_at is None else {"expires_at": number(expires_at)}
    return {"label": text(label), "created_at": number(created_at)} | expiry


@decodes
def _decode_token(item: Item) -> ProjectToken:
    return ProjectToken(
        token_hash=item["sk"]["S"].removeprefix(_TOKEN),
        label=item["label"]["S"],
        created_at=int(item["created_at"]["N"]),
        expires_at=int(item["expires_at"]["N"]) if "expires_at" in item else None,
    )


def _token_key(token_hash: str) -> Item:
    return {"pk": text(f"T#{token_hash}"), "sk": text("TOKEN")}
