"""The time that is left to answer a request: calls of services keep to it (docs/decisions/acceptance.md).

A function that answers requests is stopped when its time is over, wherever it is, and its caller learns nothing. So, as
the end comes nearer, calls of services wait for an answer for a shorter time, and then none is begun any more: it fails
with :class:`pushhub.base.errors.Overdue`, like a call of a service that is down.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Overdue

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest

CONNECT_S = 2.0
READ_S = 10.0
"""How long a call waits for a connection and for an answer, while there is time."""

SHORT_CONNECT_S = 1.0
SHORT_READS_S = (8.0, 5.0, 2.5)
"""The same when there is not; the longest that the time allows."""

ANSWER_S = 2.0
"""What is left for the answer itself after the last call, whatever happens in it. A busy machine needs it."""


class Deadline:
    """When the request must be answered that this environment works on; it has one at a time.

    Args:
        now: Seconds of a clock that does not go back.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._ends = math.inf

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Answer a request in that time."""
        self._ends = self._now() + seconds
        try:
            yield
        finally:
            self._ends = math.inf

    @property
    def is_near(self) -> bool:
        """Whether calls have to hurry."""
        return self._left_s() < CONNECT_S + READ_S + ANSWER_S

    def read_s(self) -> float | None:
        """How long the next call may wait for its answer; None: as long as always.

        Raises:
            Overdue: There is no time for a call.
        """
        if not self.is_near:
            return None
        left_s = self._left_s() - SHORT_CONNECT_S - ANSWER_S
        for each in SHORT_READS_S:
            if each <= left_s:
                return each
        raise Overdue("any call")

    def _left_s(self) -> float:
        return self._ends - self._now()


deadline = Deadline()
"""The only one of this execution environment."""


class DeadlineCalls:
    """Sends the requests of AWS clients while there is little time.

    Args:
        until: When the environment's answer is due.
        connections: Size of the connection pools.
    """

    def __init__(self, until: Deadline, *, connections: int) -> None:
        self._until = until
        self._connections = connections
        self._lock = Lock()
        self._sessions: dict[float, Any] = {}

    def watch(self, client: Any) -> None:
        """Let a client's requests keep to the time."""
        client.meta.events.register_first("before-send", self._send)

    def _send(self, request: AWSPreparedRequest, **_: object) -> Any:
        """Answer a request, or leave it to botocore, which does so when there is time. It is called for each attempt of
        a call; what it raises is not retried, unless botocore would.
        """
        read_s = self._until.read_s()
        return None if read_s is None else self._session(read_s).send(request)

    def _session(self, read_s: float) -> Any:
        from botocore.httpsession import URLLib3Session  # noqa: PLC0415 (imported when the first client is made)

        with self._lock:
            if read_s not in self._sessions:
                # Its stubs know only one of the forms of a timeout.
                timeout: Any = (SHORT_CONNECT_S, read_s)
                self._sessions[read_s] = URLLib3Session(timeout=timeout, max_pool_connections=self._connections)
            return self._sessions[read_s]
