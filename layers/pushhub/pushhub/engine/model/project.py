"""Projects, the tenants of a hub, and the tokens that act for them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A tenant. Owns its tokens, queues and messages.

    Attributes:
        project_id: 24 hex characters.
        name: For people.
        created_at: Epoch milliseconds.
        allowed_targets: Hosts or networks behind the egress guard that this project may push to all the same.
    """

    project_id: str
    name: str = ""
    created_at: int
    allowed_targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectToken:
    """A token of a project, as far as the hub knows it.

    Attributes:
        token_hash: SHA-256 of it, in hex.
        label: For people.
        created_at: Epoch milliseconds.
        expires_at: Epoch milliseconds from which it no longer acts; None for never.
    """

    token_hash: str
    label: str
    created_at: int
    expires_at: int | None = None

    @property
    def token_id(self) -> str:
        """What people call it by: the first 12 characters of its hash."""
        return self.token_hash[:12]
