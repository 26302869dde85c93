"""Name lookups with a time limit.

``getaddrinfo`` has no time limit, and a name whose servers never answer blocks it for half a minute. So each lookup
runs in its own thread, which is abandoned when the time is up. The number of threads is bounded, and a name is looked
up by only one of them at a time, however many callers wait for it.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable

if TYPE_CHECKING:
    from pushhub.egress.url import IPAddress

Resolve = Callable[[str], Iterable[str]]


class LookupFailed(Exception):
    """The name has no address, or its servers said so."""


def system_resolve(name: str) -> list[str]:
    """Every address the system's resolver knows for a name. Raises ``OSError`` when it knows none."""
    answers = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


class NameLookup:
    """Resolves names within a time limit; thread-safe.

    Args:
        resolve: The blocking lookup: addresses of a name, ``OSError`` when there are none.
        limit: Maximum number of concurrent lookups, including abandoned ones.
    """

    def __init__(self, resolve: Resolve = system_resolve, *, limit: int = 64) -> None:
        self._resolve = resolve
        self._limit = limit
        self._lock = threading.Lock()
        self._running: dict[str, Future[tuple[IPAddress, ...]]] = {}

    def addresses(self, name: str, timeout_s: float) -> tuple[IPAddress, ...]:
        """All addresses of a name, at least one.

        Raises:
            LookupFailed: There are none.
            TimeoutError: No answer within ``timeout_s`` seconds.
            Unavailable: Too many other lookups are still running; this says nothing about the name.
        """
        with self._lock:
            future = self._running.get(name)
            if future is None:
                if len(self._running) >= self._limit:
                    raise Unavailable("name lookup")
                future = self._running[name] = Future()
                # A daemon thread, so that an abandoned lookup does not keep the process alive.
                threading.Thread(target=self._look_up, args=(name, future), name="name-lookup", daemon=True).start()
        return future.result(max(timeout_s, 0))

    def _look_up(self, name: str, future: Future[tuple[IPAddress, ...]]) -> None:
        found: tuple[IPAddress, ...] = ()
        reason = "it has no address"
        try:
            # A scope id ("fe80::1%eth0") is dropped: addresses with one are link-local and refused.
            found = tuple(ipaddress.ip_address(text.partition("%")[0]) for text in self._resolve(name))
        except Exception as error:  # noqa: BLE001 - whatever a resolver does, those who wait must hear of it
            reason = getattr(error, "strerror", None) or type(error).__name__
        with self._lock:
            self._running.pop(name, None)
        if found:
            future.set_result(found)
        else:
            future.set_exception(LookupFailed(reason))
