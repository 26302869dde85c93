"""What the emulator notes of its memory between snapshots, and makes again. Runs in the emulator's process.

Noted are the requests that change what accepted messages are kept in: items of tables, with the records of their
streams, and messages sent to queues. Made again in their order, at the time they came, they make the same. Not noted is
what may be done twice: messages taken from queues or deleted there come again after a crash, as SQS delivers at least
once. Tables, queues and functions themselves are in the snapshot that follows a deployment.
"""

from __future__ import annotations

import time
from collections.abc import Coroutine, Iterable
from types import SimpleNamespace
from typing import Any

from ministack.core import responses  # type: ignore[import-not-found]
from ministack.services import dynamodb, sqs  # type: ignore[import-not-found]

from .journal import Change, Journal

TABLES = "DynamoDB_20120810."
QUEUES = "AmazonSQS."
CHANGING = {
    *(TABLES + each for each in ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")),
    *(TABLES + each for each in ("ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction")),
    *(QUEUES + each for each in ("SendMessage", "SendMessageBatch")),
}
"""What is noted, by the header ``X-Amz-Target``."""

_services = {TABLES: dynamodb, QUEUES: sqs}
_handle = {each: each.handle_request for each in _services.values()}


def keep_journal(journal: Journal) -> None:
    """Note each change before the request that makes it is answered."""

    def noting(service: Any) -> Any:
        handle = _handle[service]

        async def handle_request(method: str, path: str, headers: dict[str, str], body: bytes, query: Any) -> Any:
            answer = await handle(method, path, headers, body, query)
            target = headers.get("x-amz-target")
            # Nothing else was answered since: such requests wait for nothing.
            if target in CHANGING and answer[0] == 200:
                scope = responses.get_account_id(), responses.get_region()
                journal.note([time.time(), *scope, target, path, body.decode()])
            return answer

        return handle_request

    for service in _services.values():
        service.handle_request = noting(service)


def make_again(changes: Iterable[Change]) -> int:
    """Make noted changes again, after the snapshot before them was loaded.

    Returns:
        How many. Those of tables and queues that the snapshot does not have are left out.

    Raises:
        OSError: They cannot be read.
    """
    repeated = 0
    for change in changes:
        at, account, region, target, path, body = change
        service = _services[TABLES if target.startswith(TABLES) else QUEUES]
        # What happened then does not happen now, and functions that saw it before are told the same again.
        service.time = SimpleNamespace(**{**vars(time), "time": lambda at=at: at})
        try:
            with responses.request_scope(account, region):
                headers = {"x-amz-target": target}
                repeated += at_once(_handle[service]("POST", path, headers, body.encode(), {}))[0] == 200
        finally:
            service.time = time
    return repeated


def at_once(does: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns that waits for nothing."""
    try:
        does.send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("it waits for something")
