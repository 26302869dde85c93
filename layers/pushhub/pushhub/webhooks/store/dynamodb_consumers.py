"""Consumers of polling endpoints on DynamoDB: ``LEASE#{endpoint id}#{consumer}`` in their application's partition."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.cloud.documents import Document
from pushhub.cloud.table import Item, TableStore, number
from pushhub.cloud.unreadable import decodes
from pushhub.webhooks.model.consumer import PollingConsumer
from pushhub.webhooks.store._items import app_pk, doc, key

if TYPE_CHECKING:
    from pushhub.webhooks.model.endpoint import Endpoint

_CONSUMER = Document(PollingConsumer, {})


class DynamoDBConsumers(TableStore):
    """Implements :class:`pushhub.webhooks.messages.consumers.ConsumerStore`."""

    def consumer(self, endpoint: Endpoint, name: str) -> PollingConsumer | None:
        item = self._table.get(_key(endpoint, name))
        return decode_consumer(item) if item else None

    def put_consumer(self, endpoint: Endpoint, name: str, consumer: PollingConsumer) -> PollingConsumer:
        raised = replace(consumer, version=consumer.version + 1)
        # Whoever has written it is given the messages, so of several that write the same only one may.
        self._table.put_version(_key(endpoint, name) | encode_consumer(raised), read=decode_consumer, alone=True)
        return raised


def encode_consumer(consumer: PollingConsumer) -> Item:
    """All attributes but the key."""
    return {"version": number(consumer.version), "doc": doc(_CONSUMER.encode(consumer))}


@decodes
def decode_consumer(item: Item) -> PollingConsumer:
    """A consumer, from its item."""
    consumer: PollingConsumer = _CONSUMER.decode(json_text.stored(item["doc"]["S"]))
    return consumer


def _key(endpoint: Endpoint, name: str) -> Item:
    return key(app_pk(endpoint.project, endpoint.app_id), f"LEASE#{endpoint.endpoint_id}#{name}")
