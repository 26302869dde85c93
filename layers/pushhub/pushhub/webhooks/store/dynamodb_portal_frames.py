"""Who may show portals in frames, on DynamoDB: an item for each, ``FRAME#{project}`` or ``FRAME#{project}#{app id}``.

The partition is of its own kind because the console function may read nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base import json_text
from pushhub.cloud.table import Item, TableStore
from pushhub.webhooks.store._items import doc, key

if TYPE_CHECKING:
    from pushhub.webhooks.model.portal_frame import PortalFrame


class DynamoDBPortalFrames(TableStore):
    """Implements :class:`pushhub.webhooks.applications.portal.PortalFrames`."""

    def frame(self, wanted: PortalFrame) -> PortalFrame:
        item = self._table.get(_key(wanted))
        return replace(wanted, origins=tuple(json_text.stored(item["doc"]["S"])["origins"]) if item else ())

    def put_frame(self, frame: PortalFrame) -> None:
        if frame.origins:
            self._table.put(_key(frame) | {"doc": doc({"origins": list(frame.origins)})})
        else:
            self._table.delete(_key(frame))


def _key(frame: PortalFrame) -> Item:
    return key("#".join(filter(None, ("FRAME", frame.project, frame.app_id))), "FRAME")
