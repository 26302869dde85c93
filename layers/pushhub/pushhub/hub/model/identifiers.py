"""Identifiers of a mapping: which messages a service considers duplicates, so that it is sent only one of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from pushhub.base.json_text import write
from pushhub.base.steps import Steps
from pushhub.hub.model.filters import counted_text
from pushhub.hub.model.paths import values_at


def identity_of(identifiers: Mapping[str, str], message: dict[str, Any], steps: Steps | None = None) -> str | None:
    """The identity of a message for a mapping, or None when the mapping has no identifiers.

    A message without a value at any of the paths has no identity either, and is always delivered.

    Args:
        steps: Spent for the values; None for a budget of its own.

    Returns:
        SHA-256 hex of the named values, whatever the order of the names.

    Raises:
        TooMuchWork: The steps are used up.
    """
    steps = steps or Steps()
    if not identifiers:
        return None
    values = {
        name: [counted_text(each, steps) for each in values_at(message, path, steps)]
        for name, path in identifiers.items()
    }
    if not any(text for texts in values.values() for text in texts):
        return None
    return hashlib.sha256(write(values, sort_keys=True).encode()).hexdigest()
