"""Where the sinks of streams are, on DynamoDB: ``READER#{endpoint id}`` in their stream's partition."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.cloud.documents import Document
from pushhub.cloud.table import Item, TableStore, number
from pushhub.cloud.unreadable import decodes
from pushhub.webhooks.model.reading import Reader
from pushhub.webhooks.store._items import app_pk, doc, key

if TYPE_CHECKING:
    from pushhub.webhooks.model.endpoint import Endpoint

_READER = Document(Reader, {})


class DynamoDBReaders(TableStore):
    """Implements :class:`pushhub.webhooks.streams.reading.Readers`."""

    def reader(self, sink: Endpoint) -> Reader | None:
        item = self._table.get(_key(sink))
        return decode_reader(item) if item else None

    def put_reader(self, sink: Endpoint, reader: Reader) -> Reader:
        raised = replace(reader, version=reader.version + 1)
        # Whoever has written it writes the batch, so of several that write the same only one may.
        self._table.put_version(_key(sink) | encode_reader(raised), read=decode_reader, alone=True)
        return raised


def encode_reader(reader: Reader) -> Item:
    """All attributes but the key."""
    return {"version": number(reader.version), "doc": doc(_READER.encode(reader))}


@decodes
def decode_reader(item: Item) -> Reader:
    """Where a sink is, from its item."""
    reader: Reader = _READER.decode(json_text.stored(item["doc"]["S"]))
    return reader


def _key(sink: Endpoint) -> Item:
    return key(app_pk(sink.project, sink.app_id), f"READER#{sink.endpoint_id}")
