"""What is read before attempts, from the messages table and the configuration table in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.cloud.table import Table
from pushhub.engine.store._change_notes import NOTES, decode_notes
from pushhub.engine.store._keys import delivery_key, message_key
from pushhub.engine.store.dynamodb_messages import deliveries_and_messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock
    from pushhub.cloud.table import Item
    from pushhub.engine.model.keys import DeliveryKey, MessageKey
    from pushhub.engine.model.received import ReadTogether


class DynamoDBAttemptReads:
    """Implements :class:`pushhub.engine.flow.ports.AttemptReads`.

    Args:
        messages: Name of the messages table.
        config: Name of the configuration table.
    """

    def __init__(self, client: DynamoDBClient, messages: str, clock: Clock, config: str) -> None:
        self._messages = Table(client, messages, clock)
        self._config = config

    def read(self, deliveries: Sequence[DeliveryKey], messages: Sequence[MessageKey]) -> ReadTogether:
        return deliveries_and_messages(self._messages.get_many(_keys(deliveries, messages)))

    def read_with_notes(
        self, deliveries: Sequence[DeliveryKey], messages: Sequence[MessageKey]
    ) -> tuple[ReadTogether, Mapping[int, int]]:
        notes, items = self._messages.get_many_beside(self._config, NOTES, _keys(deliveries, messages))
        return deliveries_and_messages(items), decode_notes(notes)


def _keys(deliveries: Iterable[DeliveryKey], messages: Iterable[MessageKey]) -> list[Item]:
    return [*map(delivery_key, dict.fromkeys(deliveries)), *map(message_key, dict.fromkeys(messages))]
