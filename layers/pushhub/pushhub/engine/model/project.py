"""Projects, the tenants of a hub, and the tokens that act for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pushhub.engine.model.trace import Traces

if TYPE_CHECKING:
    from pushhub.base.signature_schemes import Scheme
    from pushhub.engine.model.quota import Quota


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A tenant. It owns tokens, queues and messages.

    Attributes:
        project_id: 24 hex characters.
        allowed_targets: Hosts or networks that this project may push to although the egress guard blocks them.
        quota: How many messages its producers may post; None for as many as the stack allows each project.
        suspended_at: Since when it is suspended, epoch milliseconds; None when it is not.
        erased_since: Since when it is being erased, epoch milliseconds; it is suspended then, for good.
        traces: To whom the traces of its producers are passed on.
        signatures: The schemes of its receivers that are signed, and have none of their own; empty for Standard
            Webhooks alone.
        external_secret: Random text from which its external ids are made
            (:class:`pushhub.engine.security.external_ids.ExternalIds`).
    """

    project_id: str
    name: str = ""
    created_at: int
    allowed_targets: tuple[str, ...] = ()
    quota: Quota | None = None
    suspended_at: int | None = None
    erased_since: int | None = None
    traces: Traces = Traces.OWN
    signatures: tuple[Scheme, ...] = ()
    external_secret: str = field(default="", repr=False)

    @property
    def suspended(self) -> bool:
        """Whether it may only be looked at: nothing is accepted from it, sent for it, or handed to its consumers."""
        return self.suspended_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectToken:
    """What the hub stores about a project's token.

    Attributes:
        token_hash: SHA-256 of the token, in hex.
        expires_at: When it stops working, epoch milliseconds; None for never.
    """

    token_hash: str
    label: str
    created_at: int
    expires_at: int | None = None

    @property
    def token_id(self) -> str:
        """Short id for people: the first 12 characters of its hash."""
        return self.token_hash[:12]
