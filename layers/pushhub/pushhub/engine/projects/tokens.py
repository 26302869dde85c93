"""Authorization: tokens are random, stored only as hashes, and belong to one project."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pushhub.base.ids import is_project_id

if TYPE_CHECKING:
    from pushhub.engine.ports import TokenStore


TOKEN_ID = 12
"""How many characters of a token's hash are its id for people (:attr:`.model.project.ProjectToken.token_id`)."""


def token_hash(token: str) -> str:
    """The stored form of a token: its SHA-256 in hex. Tokens are long and random, so no slower hash is needed."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def is_allowed(config: TokenStore, project_id: str, token: str) -> bool:
    """Whether a token acts for a project.

    Looked up by hash, so that timing reveals nothing about existing tokens.
    """
    return bool(token) and is_project_id(project_id) and config.has_token(project_id, token_hash(token))
