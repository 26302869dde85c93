"""Writes the catalogue (:mod:`pushhub.engine.model.catalogue`) from the tables' streams, and reads from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.engine.component import Component
from pushhub.engine.model.catalogue import Accepted, chunks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pushhub.base.ports import Telemetry
    from pushhub.engine.records.ports import Catalogue


class Cataloguer(Component):
    """Enters what was accepted. Records come first: whatever cannot be read here is left out and told of."""

    # The messages that one stream record brought. May raise anything on one that it cannot read.
    read: Callable[[Mapping[str, Any]], Sequence[Accepted]]
    catalogue: Callable[[], Catalogue]
    telemetry: Telemetry

    def run(self, batch: Sequence[Mapping[str, Any]], *, table: str) -> None:
        """Enter the messages of a batch. Safe to repeat: the same batch writes the same items.

        Raises:
            Unavailable: They are not all entered; the batch must be repeated.
        """
        found: list[Accepted] = []
        for each in batch:
            if each.get("eventName") != "INSERT":
                continue
            try:
                found += self.read(each)
            except Exception as error:  # noqa: BLE001 (the record of it is set aside as a whole; it must not block its shard)
                self.telemetry.event("not_catalogued", table=table, error=type(error).__name__)
        if found:
            first = batch[0]["dynamodb"]["SequenceNumber"]
            self.catalogue().add([*chunks_of(found, f"{table}-{first}")])
