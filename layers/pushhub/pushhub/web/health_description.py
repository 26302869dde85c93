"""Describes the health of a subscriber for the OpenAPI document (:mod:`pushhub.web.health`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.web.description import answer, boolean, nullable, text, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pushhub.web.description import Schema


def health_schema(states: Sequence[str]) -> Schema:
    """Describes that member.

    Args:
        states: The words there are.
    """
    return answer(
        {
            "state": text("How it is doing.", enum=[*states]),
            "text": text("The same in words for people, such as `waits for its token server`."),
            "since": nullable(text("Since when, where that is known. RFC 3339, UTC.")),
            "until": nullable(text("When it is tried next, if all deliveries wait for that. RFC 3339, UTC.")),
            "reason": text("What its token server said; empty where the state says it all."),
            "waiting": whole("Deliveries that wait, each counted once wherever it waits.", 0),
            "complete": boolean("Whether these are all; otherwise there are more."),
        }
    )


HEALTH_EXAMPLE: dict[str, Any] = {
    "state": "circuit_open",
    "text": "failing, circuit open",
    "since": "2026-11-22T05:30:00.000Z",
    "until": "2026-11-22T05:38:16.123Z",
    "reason": "",
    "waiting": 12,
    "complete": True,
}
"""An example."""
