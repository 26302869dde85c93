"""Queues that hold what opens something, to be sealed anew."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pushhub.base.errors import Conflict, Unreadable
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, Table, text
from pushhub.engine.model.queue import PushSettings
from pushhub.engine.security.reseal import SealedItem, damaged_item
from pushhub.engine.store._project_items import decode_span_export
from pushhub.engine.store._queue_items import decode_queue
from pushhub.engine.store.dynamodb_config import SPANS, DynamoDBConfigStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock, Vault
    from pushhub.engine.model.queue import Queue
    from pushhub.engine.model.span_export import SpanExport
    from pushhub.engine.security.credentials import Credentials

_QUEUE = "QUEUE#"


def sealed_queues(
    client: DynamoDBClient, table: str, clock: Clock, vault: Vault, credentials: Credentials
) -> Iterator[SealedItem]:
    """All queues whose subscribers have credentials, signing keys or gates, or whose sender has a secret.

    Args:
        vault: Opens and seals signing keys.
        credentials: Opens and seals the rest.
    """
    store = DynamoDBConfigStore(client, table, clock, credentials.sealed)
    scanned = Table(client, table, clock).scan(
        FilterExpression="begins_with(sk, :queue) AND (attribute_exists(push) OR attribute_exists(sender))",
        ExpressionAttributeValues={":queue": text(_QUEUE)},
    )
    for item in scanned:
        project = item["pk"]["S"].removeprefix("P#")
        try:
            queue = decode_queue(item, project, item["sk"]["S"].removeprefix(_QUEUE))
        except Unreadable:
            yield damaged_item(item["pk"]["S"], item["sk"]["S"])
            continue
        sealed = tuple(_of(queue))
        if sealed:
            write = partial(_write, store, queue, vault, credentials)
            yield SealedItem(f"queue {queue.name} of project {project}", project, sealed, write)


def sealed_span_exports(
    client: DynamoDBClient, table: str, clock: Clock, credentials: Credentials
) -> Iterator[SealedItem]:
    """All exports of spans whose headers hold something; arguments as of :func:`sealed_queues`."""
    exports = Table(client, table, clock)
    for item in exports.scan(FilterExpression="sk = :spans", ExpressionAttributeValues={":spans": text(SPANS)}):
        try:
            export = decode_span_export(item, item["pk"]["S"].removeprefix("P#"))
        except Unreadable:
            yield damaged_item(item["pk"]["S"], item["sk"]["S"])
            continue
        if export.credentials:
            write = partial(_write_span_export, exports, item, export, credentials)
            yield SealedItem(f"traces of project {export.project}", export.project, (export.credentials,), write)


def _write_span_export(table: Table, item: Item, export: SpanExport, credentials: Credentials) -> None:
    project = export.project
    sealed = credentials.seal(project, credentials.open(project, export.credentials))
    try:
        table.put(
            {**item, "credentials": {"B": sealed}},
            ConditionExpression="credentials = :credentials AND headers = :headers AND #url = :url AND #on = :on",
            ExpressionAttributeNames={"#url": "url", "#on": "on"},
            ExpressionAttributeValues={f":{name}": item[name] for name in ("credentials", "headers", "url", "on")},
        )
    except ConditionRefused as error:
        raise Conflict("The export of spans was changed") from error


def _of(queue: Queue) -> Iterator[bytes]:
    push = queue.push or PushSettings(subscribers=())
    held = [push.credentials, queue.sender.sealed if queue.sender else b""]
    held += [text for each in push.subscribers for text in (each.sealed, each.oauth, each.identity)]
    return filter(None, held)


def _write(store: DynamoDBConfigStore, queue: Queue, vault: Vault, credentials: Credentials) -> None:
    project, push = queue.project, queue.push

    def again(sealed: bytes) -> bytes:
        return vault.seal(project, vault.open(project, sealed)) if sealed else b""

    if queue.sender is not None:
        queue = replace(queue, sender=replace(queue.sender, sealed=again(queue.sender.sealed)))
    if push is None:
        store.update_queue(queue)
        return
    opened = tuple(
        replace(
            credentials.opened(project, push, each),
            sealed=again(each.sealed),
            oauth=again(each.oauth),
            identity=again(each.identity),
        )
        for each in push.subscribers
    )
    store.update_queue(replace(queue, push=replace(push, subscribers=opened, credentials=b"")))
