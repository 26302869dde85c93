"""How far a pushed message has come, as a mapping's URL may lead back to a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import RequestRefused
from pushhub.engine.model.message import HOPS_HEADER, hops_said
from pushhub.hub.model.message import MAX_CHAIN

if TYPE_CHECKING:
    from collections.abc import Mapping


class TakenForALoop(RequestRefused):
    """A message has come through as many stores and mappings as it may."""

    def __init__(self) -> None:
        super().__init__(f"{MAX_CHAIN} messages led to this one; taken for a loop.")


def hops_of(headers: Mapping[str, str]) -> int:
    """How many messages led to a pushed one, as the request says that a mapping sent; 0 for any other request. Forging
    it can only shorten a message's way.

    Args:
        headers: Names in lower case.

    Raises:
        TakenForALoop: As many as may.
    """
    hops = hops_said(headers.get(HOPS_HEADER.lower(), ""))
    if hops >= MAX_CHAIN:
        raise TakenForALoop
    return hops


def hops_headers(hops: int) -> dict[str, str]:
    """What tells whoever is sent a message how many led to what it pushes.

    Args:
        hops: Number of messages that led to the one that is sent.
    """
    return {HOPS_HEADER: str(hops + 1)}
