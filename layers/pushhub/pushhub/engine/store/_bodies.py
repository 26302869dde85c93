"""Bodies in table items: the one place where they are written and read."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from pushhub.engine.model.deflated import Deflated, StoredBody

if TYPE_CHECKING:
    from pushhub.cloud.table import Item


def encode_body(body: StoredBody) -> Item:
    """The attribute that holds a body."""
    return {"deflated": {"B": body.content}} if isinstance(body, Deflated) else {"body": {"B": body}}


def decode_body(item: Item, size: int) -> StoredBody | None:
    """The body in an item or a stream image, not yet opened; None if there is none in it.

    Args:
        size: Bytes of the body.
    """
    if "deflated" in item:
        return Deflated(_bytes(item["deflated"]["B"]), size)
    return _bytes(item["body"]["B"]) if "body" in item else None


def _bytes(stored: bytes | str) -> bytes:
    return base64.b64decode(stored) if isinstance(stored, str) else bytes(stored)
