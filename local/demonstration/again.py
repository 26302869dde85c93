"""A request that failed for a moment is made again: a loaded machine answers 500 now and then,
and clients of a hub are expected to try again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import aiohttp

from local.errors import LocalError

PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""The waits before each further try."""
_FULL_DISK = 507

T = TypeVar("T")


class Failed(LocalError):
    """The hub failed; trying again may help."""


def check(status: int, what: str, text: str) -> None:
    """Take an answer for what it is.

    Args:
        status: Of the answer.
        what: The request, for the message.
        text: Of the answer.

    Raises:
        Failed: The hub failed; trying again may help.
        LocalError: It refused the request.
    """
    if status < 300:
        return
    kind = Failed if status >= 500 and status != _FULL_DISK else LocalError
    raise kind(f"the hub answered {status} to {what}: {text[:200]}")


async def again(
    what: str,
    attempt: Callable[[], Awaitable[T]],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    repeated: Callable[[], None] = lambda: None,
) -> T:
    """Repeat an attempt until the hub does not fail.

    Args:
        what: The request, for messages.
        attempt: Makes it; raises :class:`Failed`, or the client's errors.
        sleep: Waits so many seconds.
        repeated: Called before each further try: the failed try may have had its effect all the same.

    Raises:
        LocalError: The hub refused it, or failed every time.
    """
    for pause in (*PAUSES_S, None):
        try:
            return await attempt()
        except Failed:
            if pause is None:
                raise
        except (aiohttp.ClientError, TimeoutError) as error:
            if pause is None:
                raise Failed(f"the hub did not answer {what}: {error!r}") from error
        repeated()
        await sleep(pause)
    raise AssertionError  # Not reached: the last try returns or raises.
