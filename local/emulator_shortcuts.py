"""Cheaper ways for what the emulator does all the time. Runs in the emulator's process."""

from __future__ import annotations

import contextvars
import copy
import gc
import marshal
import re
import sys
import threading
from collections.abc import Callable
from functools import lru_cache
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

from ministack.core import concurrency  # type: ignore[import-not-found]
from ministack.services import dynamodb  # type: ignore[import-not-found]

YOUNG = 50_000
"""Objects that are made before the newest are looked through for garbage; Python's 700 are one item of a table."""
SWITCH_S = 0.0005
"""How long a thread may compute while another waits: work goes through several threads, each waits that long."""
OF_RUNS = frozenset({"ministack-apigw-invoke", "ministack-esm", "pushhub-stream"})
"""Names of threads for functions' runs."""

_INSERTION = re.compile(r'INSERT INTO "[^"]+" VALUE \{((?:\'[^\']+\': \?(?:, )?)+)\}')
_parse = dynamodb._parse_partiql


def take_shortcuts() -> None:
    """Copy items fast, read insertions and numbers once, look for garbage seldom, keep threads for the next run, hand
    over between them soon.
    """
    dynamodb.copy = SimpleNamespace(copy=copy.copy, deepcopy=deepcopy)
    dynamodb._parse_partiql = parse
    for name in ("_ddb_canonicalize_number", "_number_error", "_number_size_bytes"):
        setattr(dynamodb, name, _remembered(getattr(dynamodb, name)))
    concurrency.threading = SimpleNamespace(**{**vars(threading), "Thread": _thread})
    gc.set_threshold(YOUNG, 20, 20)
    sys.setswitchinterval(SWITCH_S)


def _thread(*, target: Callable[[], object], name: str, **options: Any) -> Any:
    """A thread for some work; one that may be kept if the work is a function's run, for which nobody waits by it."""
    return KeptThread(target, name) if name in OF_RUNS else threading.Thread(target=target, name=name, **options)


class KeptThread:
    """Stands for :class:`threading.Thread`, and takes one that has done such work before, if one is idle. There may be
    as many as there is work at a time.

    Args:
        target: The work.
        name: Of a thread that has to be made.
    """

    _idle: list[SimpleQueue[Callable[[], object]]] = []  # noqa: RUF012 (all of them share it)

    def __init__(self, target: Callable[[], object], name: str) -> None:
        self._target = target
        self._name = name

    def start(self) -> None:
        """Begin the work."""
        try:
            idle = self._idle.pop()
        except IndexError:
            threading.Thread(target=self._work, daemon=True, name=self._name).start()
        else:
            idle.put(self._target)

    def _work(self) -> None:
        target: Callable[[], object] = self._target
        more: SimpleQueue[Callable[[], object]] = SimpleQueue()
        while True:
            try:
                contextvars.Context().run(target)
            except BaseException:  # noqa: BLE001 (told as for a thread of its own; the next work is another's)
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))
            # What it holds must not live until there is more to do.
            del target
            self._idle.append(more)
            target = more.get()


def _remembered(reads: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What reads a number's text and remembers that. Whatever else a request has in its place is read each time."""
    remembers = lru_cache(maxsize=20_000)(reads)
    return lambda text: (remembers if isinstance(text, str) else reads)(text)


def deepcopy(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """Like :func:`copy.deepcopy`, and many times as fast for what JSON can say."""
    try:
        return marshal.loads(marshal.dumps(value))  # noqa: S302 (its own bytes)
    except ValueError:
        return copy.deepcopy(value, memo)


@lru_cache(maxsize=500)
def _insertion(statement: str) -> tuple[dict[str, Any], list[str]] | None:
    """What MiniStack reads from an insertion, and the attributes its parameters are for; None for other statements."""
    found = _INSERTION.fullmatch(statement)
    names = re.findall("'([^']+)'", found[1]) if found else []
    return (_parse(statement, [{"NULL": True}] * len(names)), names) if names else None


def parse(statement: str, parameters: list[Any] | None = None) -> Any:
    """What MiniStack reads from a statement. It does so letter by letter, and in a batch twice."""
    insertion = _insertion(statement)
    if insertion is None or len(insertion[1]) != len(parameters or []):
        return _parse(statement, parameters)
    read, names = insertion
    return {**read, "item": dict(zip(names, parameters or [], strict=True))}
