"""AWS clients, one for each service that a function really uses."""

# ruff: noqa: PLC0415 (boto3 is imported when the first client is made)

from __future__ import annotations

from threading import Lock
from typing import Any

from pushhub.cloud.deadline import CONNECT_S, READ_S, Deadline, DeadlineCalls, deadline

LEAST_BOTOCORE = (1, 35, 2)
"""The first version that supports the newest parameter the hub uses: ``IfNoneMatch`` of S3's ``PutObject``.

Because validation is off, an older version would fail in mid-call with a ``KeyError``.
"""

CONNECTIONS = 100
"""Size of a client's connection pool; also the number of attempts a function makes in parallel."""


class OldSdkError(Exception):
    """The runtime's boto3 is too old for the hub."""

    def __init__(self, version: str) -> None:
        least = ".".join(map(str, LEAST_BOTOCORE))
        super().__init__(f"botocore {version} is too old: the hub needs {least} or later; choose a newer Runtime")


class Clients:
    """Low-level clients, created on first use and cached. Call timeouts are well below the functions' own timeouts.

    Args:
        until: When the environment's answer is due; calls keep to it.
    """

    def __init__(self, until: Deadline = deadline) -> None:
        self._calls = DeadlineCalls(until, connections=CONNECTIONS)
        self._lock = Lock()
        self._session: Any = None
        self._clients: dict[tuple[str, str | None], Any] = {}

    def of(self, service: str, *, endpoint_url: str | None = None) -> Any:
        """The client of a service, or of one of its endpoints where there are several."""
        with self._lock:
            key = service, endpoint_url
            if key not in self._clients:
                self._clients[key] = self._make(service, endpoint_url)
            return self._clients[key]

    def _make(self, service: str, endpoint_url: str | None) -> Any:
        import boto3
        import botocore
        from botocore.config import Config

        if self._session is None:
            check_version(botocore.__version__)
            self._session = boto3.session.Session()
        client = self._session.client(
            service,
            endpoint_url=endpoint_url,
            config=Config(
                retries={"mode": "standard", "total_max_attempts": 4},
                connect_timeout=CONNECT_S,
                read_timeout=READ_S,
                max_pool_connections=CONNECTIONS,
                tcp_keepalive=True,
                # Validation takes a quarter of a call's CPU; the contract tests run the same calls with it on.
                parameter_validation=False,
                # Composed twice for each call otherwise, from parts that never change: a tenth of a call's CPU.
                user_agent=f"Boto3/{boto3.__version__} Pushhub",
            ),
        )
        self._calls.watch(client)
        return client


def check_version(version: str) -> None:
    """Check at a function's start that botocore is new enough.

    Raises:
        OldSdkError: It is not.
    """
    if tuple(int(each) for each in version.split(".")[:3] if each.isdecimal()) < LEAST_BOTOCORE:
        raise OldSdkError(version)
