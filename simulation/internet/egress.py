"""The hub's own code that sends requests, loaded a second time, on sockets in memory and the virtual clock.

What differs are only the modules that it imports: ``socket``, ``ssl``, ``select``, ``time``, ``threading`` and
``concurrent.futures`` have other sockets, another clock and tasks in place of threads.
"""

from __future__ import annotations

import builtins
import concurrent.futures
import importlib.util
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

import certifi  # noqa: F401 (whatever the hub's code imports has the system's own modules)
import requests.adapters  # noqa: F401
import urllib3.connection
from greenlet import getcurrent

from simulation.internet.network import current
from simulation.internet.sockets import MemorySocket, MemoryTLSSocket, Poll
from simulation.scheduler import SECOND, VirtualFuture

PACKAGE = "pushhub.egress"
PURE = frozenset({"answer", "url"})
"""Its modules that use none of these, and are the hub's own ones here, too."""


class _Thread:
    """A thread that looks a name up: at once, or in a task of its own where that takes long."""

    def __init__(self, *, target: Callable[..., None], args: Sequence[Any], **_: object) -> None:
        self._work: Callable[[], None] = lambda: target(*args)
        self._name = str(args[0])

    def start(self) -> None:
        """Begin."""
        network, _ = current()
        takes = network.slow.get(self._name.removesuffix("."), 0)
        if not takes:
            self._work()
            return
        environment: Any = getcurrent().environment  # type: ignore[attr-defined]

        def later() -> None:
            getcurrent().environment = environment  # type: ignore[attr-defined]
            self._work()

        network.scheduler.spawn(later, after=takes)


def _found(name: str, *_: object, **__: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
    """The addresses of a name, as ``getaddrinfo`` tells them."""
    addresses = current()[0].resolve(name)
    return [
        (socket.AF_INET6 if ":" in each else socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 0)) for each in addresses
    ]


def _like(module: ModuleType, **others: Any) -> ModuleType:
    """A module, of which something is replaced."""
    copy = ModuleType(module.__name__)
    copy.__dict__.update({name: each for name, each in vars(module).items() if not name.startswith("__")} | others)
    return copy


def _monotonic() -> float:
    return current()[0].scheduler.now / SECOND


@cache
def _instead() -> dict[str, Any]:
    return {
        "socket": _like(socket, socket=MemorySocket, getaddrinfo=_found),
        "ssl": _like(ssl, SSLSocket=MemoryTLSSocket),
        "select": SimpleNamespace(poll=Poll),
        "time": SimpleNamespace(monotonic=_monotonic),
        # A look-up begins, and may end, while its lock is held.
        "threading": _like(threading, Thread=_Thread, Lock=threading.RLock),
        "concurrent.futures": _like(concurrent.futures, Future=lambda: VirtualFuture(current()[0].scheduler)),
    }


_loaded: dict[str, ModuleType] = {}


def module(name: str) -> Any:
    """A module of the hub's package, such as ``sender``."""
    full = f"{PACKAGE}.{name}"
    if name in PURE:
        return importlib.import_module(full)
    if full not in _loaded:
        # Data classes look for the module that they are from.
        importlib.import_module(full)
        spec = importlib.util.find_spec(full)
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        loaded.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import}
        _loaded[full] = loaded
        spec.loader.exec_module(loaded)
    return _loaded[full]


def _import(name: str, given: Any = None, local: Any = None, names: Sequence[str] = (), level: int = 0) -> Any:
    """What ``import`` calls in those modules."""
    if name.startswith(f"{PACKAGE}."):
        return module(name.removeprefix(f"{PACKAGE}."))
    return _instead().get(name) or __import__(name, given, local, names, level)


_WAITS: Callable[..., bool] = vars(urllib3.connection)["wait_for_read"]


def readable(of: Any, timeout: float | None = None) -> bool:
    """What urllib3 asks before it uses a connection again."""
    return of.readable() if isinstance(of, MemorySocket) else _WAITS(of, timeout)


# Without a type, mypy notes all that the module has, and cannot read that back from its cache.
REPLACED: tuple[ModuleType, str, object] = (urllib3.connection, "wait_for_read", readable)
