"""The item of the configuration table that holds the notes of changes (:mod:`pushhub.engine.projects.copies`)."""

from __future__ import annotations

from pushhub.cloud.table import Item, text

NOTES: Item = {"pk": text("CHANGES"), "sk": text("NOTES")}
"""Its key."""


def decode_notes(item: Item | None) -> dict[int, int]:
    """Until when the last note of each slot lasts."""
    return {int(name[1:]): int(value["N"]) for name, value in (item or {}).items() if name not in NOTES}
