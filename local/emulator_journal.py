"""What the emulator notes of its memory between snapshots, and makes again. Runs in the emulator's process.

Noted is what accepted messages are kept in: items of tables, records of their streams, and messages sent to queues. Not
noted is what may be done twice: messages taken from queues or deleted there come again after a crash, as SQS delivers
at least once. Tables, queues and functions themselves are in the snapshot that follows a deployment.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ministack.core import responses  # type: ignore[import-not-found]
from ministack.services import dynamodb, sqs  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from local.journal import Change, Journal
else:
    # Put there by the emulator's process, which has no package "local".
    _journal = sys.modules["pushhub_journal"]
    Change, Journal = _journal.Change, _journal.Journal

SET, REMOVED, TOLD, SENT = "set", "removed", "told", "sent"

_set, _remove, _tell, _send = (
    dynamodb._set_item,
    dynamodb._remove_item,
    dynamodb._emit_stream_event,
    sqs._act_send_message,
)


def keep_journal(journal: Journal) -> None:
    """Note each change before the request that makes it is answered."""

    def set_item(table: dict[str, Any], partition: Any, sort: Any, item: dict[str, Any]) -> Any:
        with journal.turn:
            before = _set(table, partition, sort, item)
            journal.note([SET, table["TableArn"], partition, sort, item])
        return before

    def remove_item(table: dict[str, Any], partition: Any, sort: Any) -> Any:
        with journal.turn:
            before = _remove(table, partition, sort)
            journal.note([REMOVED, table["TableArn"], partition, sort])
        return before

    def tell(table_name: str, event: str, old: Any, new: Any, **more: Any) -> None:
        with journal.turn:
            _tell(table_name, event, old, new, **more)
            table = dynamodb._tables.get(table_name)
            if _has_stream(table):
                # Its images are what was noted of that item before.
                journal.note([TOLD, table["TableArn"], *_key(table, new or old), event, _told_at(table_name)])

    def send(data: dict[str, Any], queue_url: str) -> Any:
        with journal.turn:
            answer = _send(data, queue_url)
            url = data.get("QueueUrl", queue_url)
            queue = sqs._get_q(url)
            message = next((each for each in reversed(queue["messages"]) if each["id"] == answer["MessageId"]), None)
            # None: it is a repeated one of a FIFO queue, or gone already.
            if message is not None and not message["receive_count"]:
                journal.note([SENT, queue["attributes"]["QueueArn"], message])
        return answer

    dynamodb._set_item, dynamodb._remove_item, dynamodb._emit_stream_event = set_item, remove_item, tell
    sqs._act_send_message = sqs._HANDLERS["SendMessage"] = send


def make_again(changes: Iterable[Change]) -> int:
    """Make noted changes again, after the snapshot before them was loaded.

    Returns:
        How many. Those of tables and queues that the snapshot does not have are left out.
    """
    images: dict[tuple[str, ...], tuple[Any, Any]] = {}
    sent: dict[str, set[str]] = {}
    made = 0
    for kind, arn, *about in changes:
        account, region, name = _parts(arn)
        tokens = responses._request_account_id.set(account), responses._request_region.set(region)
        try:
            if kind == SENT:
                made += _sent(name, about[0], sent)
            else:
                made += _changed(dynamodb._tables.get(name), kind, (arn, *about[:2]), about[2:], images)
        finally:
            responses._request_account_id.reset(tokens[0])
            responses._request_region.reset(tokens[1])
    return made


def _changed(
    table: Any, kind: str, key: tuple[str, ...], about: list[Any], images: dict[tuple[str, ...], tuple[Any, Any]]
) -> bool:
    """Change an item, or tell the stream of the last change; whether there was anything to do it with."""
    if table is None:
        return False
    if kind == TOLD:
        if key not in images:
            return False
        event, *told_at = about
        _tell(table["TableName"], event, *images.pop(key))
        if told_at and (records := dynamodb._stream_records.get(table["TableName"])):
            # What happened then does not happen now, and functions that saw it before are told the same again.
            records[-1]["dynamodb"]["ApproximateCreationDateTime"] = told_at[0]
        return True
    _, partition, sort = key
    new = about[0] if kind == SET else None
    old = _set(table, partition, sort, new) if kind == SET else _remove(table, partition, sort)
    if _has_stream(table):
        images[key] = old, new
    return True


def _told_at(table_name: str) -> float:
    """The time of the last record of a stream, seconds since the epoch."""
    records = dynamodb._stream_records.get(table_name)
    return float(records[-1]["dynamodb"]["ApproximateCreationDateTime"]) if records else time.time()


def _has_stream(table: Any) -> bool:
    return bool(table and (table.get("StreamSpecification") or {}).get("StreamEnabled"))


def _key(table: dict[str, Any], item: dict[str, Any]) -> tuple[str, str]:
    """Where MiniStack keeps an item."""
    sort = table["sk_name"]
    partition: str = dynamodb._extract_key_val(item[table["pk_name"]])
    return partition, dynamodb._extract_key_val(item[sort]) if sort else "__no_sort__"


def _sent(name: str, message: dict[str, Any], sent: dict[str, set[str]]) -> bool:
    """Put a message into its queue unless it is there.

    Args:
        name: The queue's.
        message: The message.
        sent: Ids of what each queue has, as far as they were looked for.
    """
    queue = sqs._queues.get(sqs._queue_name_to_url.get(name))
    if queue is None:
        return False
    if name not in sent:
        sent[name] = {each["id"] for each in queue["messages"]}
    ids = sent[name]
    if message["id"] in ids:
        return False
    ids.add(message["id"])
    queue["messages"].append(message)
    if message["seq"]:
        queue["fifo_seq"] = max(queue["fifo_seq"], int(message["seq"]))
    return True


def _parts(arn: str) -> tuple[str, str, str]:
    """Account, region, and name of a table or queue."""
    _, _, _, region, account, name = arn.split(":", 5)
    return account, region, name.removeprefix("table/")
