"""What a subscriber's receiver demands before it looks at a request: a token, a client certificate, or both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from pushhub.base.fields import SPARSE, field_metadata

if TYPE_CHECKING:
    from pushhub.base.grants import GrantRequest

OAUTH, MTLS = "oauth", "mtls"
"""The two gates, by their names in every dialect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCertificate:
    """What may be told of the certificate that a subscriber's requests are sent with.

    Attributes:
        digest: Differs for each that is set.
        subject: Its common name.
        ends_at: Epoch milliseconds from which it is no longer valid.
        private_ca: Whether the receiver's own certificate is checked by authorities of its own.
        fingerprint: Its SHA-256, hexadecimal, as receivers write it.
    """

    digest: str
    subject: str
    ends_at: int
    private_ca: bool
    fingerprint: str


class Gated(Protocol):
    """A subscriber of any kind, as far as its gates go."""

    @property
    def oauth(self) -> bytes:
        """How its tokens are obtained, encrypted; see :class:`pushhub.base.oauth.Grant`. Empty for no tokens."""
        ...

    @property
    def certificate(self) -> ClientCertificate | None:
        """The certificate that its requests are sent with."""
        ...

    @property
    def identity(self) -> bytes:
        """That certificate, its key and authorities, encrypted by :func:`pushhub.engine.security.gates.identity_of`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Implements :class:`Gated` by itself."""

    oauth: bytes = field(default=b"", repr=False)
    certificate: ClientCertificate | None = None
    identity: bytes = field(default=b"", repr=False)


OPEN = Gates()
"""No gates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What an attempt showed its receiver. Nothing of it is secret.

    Attributes:
        schemes: The signature schemes, by preset or else by header.
        client: The OAuth client whose token was sent; empty for none.
        certificate: The client certificate's SHA-256, hexadecimal; empty for none.
    """

    schemes: tuple[str, ...] = field(default=(), metadata=field_metadata(stored=SPARSE))
    client: str = field(default="", metadata=field_metadata(stored=SPARSE))
    certificate: str = field(default="", metadata=field_metadata(stored=SPARSE))


NO_PROOF = Proof()
"""Nothing was shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRequest:
    """A client certificate that is asked for: what was sent, whatever it is; None for nothing.

    Attributes:
        identity: A private key with its certificate, as PEM.
        ca: The only authorities that the receiver's own certificate may be of, as PEM.
        as_stored: Whether what is stored is to stay as it is; the others count only if nothing is stored.
    """

    identity: object = field(default=None, repr=False)
    ca: object = None
    as_stored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GateChange:
    """A requested change of gates.

    Attributes:
        oauth: How tokens are obtained from now on; None keeps that, False ends it.
        mtls: The certificate from now on, likewise.
    """

    oauth: GrantRequest | Literal[False] | None = field(default=None, repr=False)
    mtls: CertificateRequest | Literal[False] | None = field(default=None, repr=False)


KEEP_GATES = GateChange()
"""Changes nothing."""
