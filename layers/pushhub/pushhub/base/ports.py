"""What every package needs from outside: time, requests to endpoints, and telemetry.

The real implementations are in :mod:`pushhub.cloud` and :mod:`pushhub.egress`, fakes for tests in ``tests/fakes``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pushhub.base.verdict import Answer


class Clock(Protocol):
    """Time, as something that tests can control."""

    def now(self) -> int:
        """Epoch milliseconds."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    def jitter(self) -> float:
        """A random number in 0..1."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientIdentity:
    """How a request shows who it is from in the TLS handshake, and whom it trusts.

    Attributes:
        digest: Differs for each certificate, key and set of authorities.
        pem: Private key, certificate and chain; empty for none.
        ca: Certificates of the only authorities that are trusted; empty for the public ones.
    """

    digest: str
    pem: str = field(default="", repr=False)
    ca: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushRequest:
    """One HTTP request to a subscriber.

    Attributes:
        url: ``http`` or ``https``.
        body: Sent unchanged.
        headers: Sent unchanged, subject to the egress rules; names are unique regardless of case.
        timeout_s: Seconds for the whole exchange: resolve, connect, send, answer.
        method: HTTP method.
        answer_limit: Bytes of the answer's body to keep; reading stops there.
        allowed_targets: Hosts or networks behind the egress guard that the project may reach.
        identity: The certificate that it is sent with; None for none, and the public authorities.
    """

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 10.0
    method: str = "POST"
    answer_limit: int = 65_536
    allowed_targets: tuple[str, ...] = ()
    identity: ClientIdentity | None = None


class Sender(Protocol):
    """Makes one guarded HTTP request. Never raises for failures of the other side: those are answers."""

    def send(self, request: PushRequest) -> Answer:
        """Send and wait for the answer, at most ``request.timeout_s``."""
        ...


class Telemetry(Protocol):
    """Receives the wide events and counts of the use cases."""

    def event(self, name: str, /, **fields: object) -> None:
        """One structured log line; never holds bodies, tokens or URL secrets."""
        ...

    def count(self, metric: str, value: int = 1) -> None:
        """Add to a metric of this service."""
        ...


class Vault(Protocol):
    """Encrypts at rest what opens something. Both methods raise :class:`pushhub.base.errors.Unavailable` on failure."""

    def seal(self, project_id: str, content: bytes) -> bytes:
        """Encrypt; the result can be decrypted for the same project only."""
        ...

    def open(self, project_id: str, sealed: bytes) -> bytes:
        """Decrypt; results may be cached."""
        ...


CheckUrl = Callable[[str, Sequence[str]], str | None]
"""Says why an ``http`` or ``https`` URL is refused, given the project's allowed targets; None when it is allowed."""
