"""Shared by the tests of the guarded sender: a sender that may reach loopback, and a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pushhub.base.ports import Clock, PushRequest
from pushhub.cloud.clock import SystemClock
from pushhub.egress.lookup import NameLookup
from pushhub.egress.sender import GuardedSender

LOOPBACK = ("loopback",)


@contextmanager
def sender(
    *,
    allowed: Sequence[str] = LOOPBACK,
    lookup: NameLookup | None = None,
    ca_file: str | None = None,
    threads: int = 4,
    idle_limit_s: float = 50.0,
    clock: Clock | None = None,
) -> Iterator[GuardedSender]:
    """A sender that is closed at the end."""
    created = GuardedSender(
        now=(clock or SystemClock()).now,
        allowed_targets=allowed,
        lookup=lookup,
        ca_file=ca_file,
        threads=threads,
        idle_limit_s=idle_limit_s,
    )
    try:
        yield created
    finally:
        created.close()


def asking(
    url: str,
    *,
    body: bytes = b"hello",
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 3.0,
    answer_limit: int = 1024,
    allowed: tuple[str, ...] = (),
    method: str = "POST",
) -> PushRequest:
    """A push with short limits."""
    return PushRequest(
        url=url,
        body=body,
        headers=headers or {},
        timeout_s=timeout_s,
        method=method,
        answer_limit=answer_limit,
        allowed_targets=allowed,
    )


def names(**addresses: str) -> NameLookup:
    """A lookup that knows these names (``_`` stands for a dot) and no others."""

    def resolve(name: str) -> list[str]:
        known = addresses.get(name.removesuffix(".").replace(".", "_"))
        if known is None:
            raise OSError("unknown name")
        return known.split()

    return NameLookup(resolve)
