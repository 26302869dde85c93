"""Lets one thing at a time be done to the emulator's queues. Runs in the emulator's process.

MiniStack hands out messages to functions on one thread and answers calls of queues on another, and only the first takes
its lock. Both then find the same messages due and hand them out, to a run of a function and to whoever asks for them,
and each of two deletions puts back what the other has deleted. On AWS that is so rare that a test that counts pushes
can go without it; here, on busy cores, it was one message in some thousands.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from ministack.services import sqs  # type: ignore[import-not-found]

OF_RECEIVES = ("_collect_msgs", "_expire_retained", "_dlq_sweep")
"""The parts of a receive, which itself waits for messages and must not keep others from sending them."""


def take_turns_at_queues() -> None:
    """Let each call of a queue, and each part of a receive, be done before another begins."""
    turn = sqs._queues_lock = threading.RLock()

    def in_turn(does: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(does)
        def do(*about: Any, **more: Any) -> Any:
            with turn:
                return does(*about, **more)

        return do

    for action, does in sqs._HANDLERS.items():
        if not asyncio.iscoroutinefunction(does):
            sqs._HANDLERS[action] = in_turn(does)
    for name in OF_RECEIVES:
        setattr(sqs, name, in_turn(getattr(sqs, name)))
