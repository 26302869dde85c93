"""How far a message has come: a hub that sends it on says in a header how many queues, sources and applications it has
passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.model.message import HOPS_HEADER, MAX_HOPS, hops_said
from pushhub.webhooks.model.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping


def hops_of(headers: Mapping[str, str]) -> int:
    """How many a request's message has passed; 0 without the header. Forging it can only shorten a message's way.

    Args:
        headers: Names in lower case.

    Raises:
        Refused: It has passed as many as it may (508).
    """
    hops = hops_said(headers.get(HOPS_HEADER.lower(), ""))
    if hops >= MAX_HOPS:
        raise Refused(508, "loop", f"It has passed {MAX_HOPS} queues, sources and applications; taken for a loop")
    return hops
