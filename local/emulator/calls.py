"""A backlog's calls of tables and queues give way to those of others. Runs in the emulator's process.

The emulator answers one call after the other. A function that works on a backlog makes up to a hundred at a time, and a
single message needs a dozen calls on its way: at each it would stand behind them. So calls of backlogs wait for each
other, and one of somebody else waits for one of them at most. On AWS, services do not know such a queue.
"""

from __future__ import annotations

import asyncio
from typing import Any

TOKEN = "backlog"  # noqa: S105 (no secret)
"""Session token in the credentials of functions that work on a backlog, by which their calls are known."""
_KNOWN = (b"x-amz-security-token", TOKEN.encode())
_TABLES = b"DynamoDB_"
_QUEUES = b"AmazonSQS."
_LONG_POLL = b"AmazonSQS.ReceiveMessage"


def let_calls_of_backlogs_give_way(app: Any) -> Any:
    """An ASGI application that hands on calls of backlogs one at a time.

    Args:
        app: Answers them.
    """
    turn = asyncio.Lock()

    async def handle(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and _gives_way(scope["headers"]):
            async with turn:
                await app(scope, receive, send)
        else:
            await app(scope, receive, send)

    return handle


def _gives_way(headers: list[tuple[bytes, bytes]]) -> bool:
    if _KNOWN not in headers:
        return False
    operation = next((value for name, value in headers if name == b"x-amz-target"), b"")
    # Who waits for a message must not be waited for.
    return operation.startswith((_TABLES, _QUEUES)) and operation != _LONG_POLL
