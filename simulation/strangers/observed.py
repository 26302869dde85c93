"""Everything that a run did, in one digest: each call of a service, each answer of the hub, each request that it made,
with what went over the wire.

A change with which a run has the same digest as without it changed nothing there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from simulation.account import Account
from simulation.functions import Environment, WireSender
from simulation.internet.http import Reading
from simulation.internet.network import Network


class Digest:
    """A digest that grows."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, *parts: object) -> None:
        """One event, in order."""
        self._hash.update(repr(parts).encode("utf-8", "surrogatepass") + b"\n")

    def text(self) -> str:
        """What it is by now."""
        return self._hash.hexdigest()[:16]


@contextmanager
def observed() -> Iterator[Digest]:
    """The digest of what runs within do."""
    digest, call, answer, send = Digest(), Environment.call, Account._answer, WireSender.send
    connect, read = Network.connect, Reading.requests

    def called(self: Environment, service: str, operation: str, real: Callable[..., Any], parameters: Any) -> Any:
        digest.add(self.account.scheduler.now, self.name, operation, parameters)
        return call(self, service, operation, real, parameters)

    def answered(self: Account, method: str, path: str, *given: Any) -> Any:
        answered_with = answer(self, method, path, *given)
        digest.add(self.scheduler.now, method, path, answered_with.status, answered_with.body, answered_with.headers)
        return answered_with

    def sent(self: WireSender, request: Any) -> Any:
        digest.add(request.url, sorted(request.headers.items()), request.body)
        answer = send(self, request)
        digest.add(answer)
        return answer

    def connected(self: Network, address: str, port: int, *given: Any) -> Any:
        digest.add(address, port)
        return connect(self, address, port, *given)

    def came(self: Reading, data: bytes) -> Any:
        digest.add(data)
        return read(self, data)

    with (
        patch.object(Environment, "call", called),
        patch.object(Account, "_answer", answered),
        patch.object(WireSender, "send", sent),
        patch.object(Network, "connect", connected),
        patch.object(Reading, "requests", came),
    ):
        yield digest
