"""What is read before attempts, from the messages table and the configuration table in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.cloud.table import Table
from pushhub.engine.store._change_notes import NOTES, decode_notes
from pushhub.engine.store._delivery_items import decode_delivery
from pushhub.engine.store._keys import delivery_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.keys import DeliveryKey


class DynamoDBDeliveriesAndNotes:
    """Implements :class:`pushhub.engine.flow.ports.DeliveriesAndNotes`.

    Args:
        messages: Name of the messages table.
        config: Name of the configuration table.
    """

    def __init__(self, client: DynamoDBClient, messages: str, clock: Clock, config: str) -> None:
        self._messages = Table(client, messages, clock)
        self._config = config

    def deliveries_and_notes(
        self, keys: Sequence[DeliveryKey]
    ) -> tuple[dict[DeliveryKey, Delivery], Mapping[int, int]]:
        wanted = [delivery_key(each) for each in dict.fromkeys(keys)]
        notes, items = self._messages.get_many_beside(self._config, NOTES, wanted)
        return {each.key: each for each in map(decode_delivery, items)}, decode_notes(notes)
