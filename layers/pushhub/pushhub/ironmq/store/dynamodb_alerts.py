"""Alerts of projects on DynamoDB, in the configuration table: all under one key, because one function looks at all of
them each minute.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pushhub.base import json_text
from pushhub.cloud.table import Item, TableStore, number, text
from pushhub.cloud.unreadable import decodes, readable
from pushhub.ironmq.model.project_alert import (
    AlertEvent,
    AlertNotification,
    AlertState,
    Counts,
    Format,
    Measure,
    ProjectAlert,
    Sample,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


_PARTITION = "ALERTS"


class DynamoDBAlerts(TableStore):
    """Implements :class:`pushhub.ironmq.alerts.ports.AlertStore`."""

    def alerts(self, project_id: str) -> list[ProjectAlert]:
        items = self._table.items(
            KeyConditionExpression="pk = :pk AND begins_with(sk, :project)",
            ExpressionAttributeValues={":pk": text(_PARTITION), ":project": text(f"{project_id}#")},
            ConsistentRead=True,
        )
        return [_decode(each) for each in items]

    def all_alerts(self) -> Iterator[ProjectAlert]:
        items = self._table.items(
            KeyConditionExpression="pk = :pk", ExpressionAttributeValues={":pk": text(_PARTITION)}
        )
        yield from readable(items, _decode)

    def alert(self, project_id: str, alert_id: str) -> ProjectAlert | None:
        item = self._table.get(_key(project_id, alert_id))
        return _decode(item) if item else None

    def save(self, alert: ProjectAlert) -> ProjectAlert:
        saved = replace(alert, version=alert.version + 1)
        self._table.put_version(_encode(saved), read=_decode)
        return saved

    def remove(self, project_id: str, alert_id: str) -> bool:
        return self._table.delete(_key(project_id, alert_id)) is not None


def _key(project_id: str, alert_id: str) -> Item:
    return {"pk": text(_PARTITION), "sk": text(f"{project_id}#{alert_id}")}


def _encode(alert: ProjectAlert) -> Item:
    settings = asdict(replace(alert, state=AlertState()))
    for name in ("project", "alert_id", "state", "version"):
        del settings[name]
    state = asdict(alert.state)
    state["samples"] = [[each.at, *asdict(each.counts).values()] for each in alert.state.samples]
    return _key(alert.project, alert.alert_id) | {
        "version": number(alert.version),
        "settings": text(json_text.write(settings)),
        "state": text(json_text.write(state)),
    }


@decodes
def _decode(item: Item) -> ProjectAlert:
    project, alert_id = item["sk"]["S"].split("#")
    settings, state = json_text.stored(item["settings"]["S"]), json_text.stored(item["state"]["S"])
    settings |= {"measure": Measure(settings["measure"]), "format": Format(settings["format"])}
    state |= {"samples": tuple(map(_sample, state["samples"])), "pending": _notification(state["pending"])}
    return ProjectAlert(
        project=project,
        alert_id=alert_id,
        state=AlertState(**state),
        version=int(item["version"]["N"]),
        **settings,
    )


def _sample(stored: list[int]) -> Sample:
    at, attempts, failed, given_up = stored
    return Sample(at=at, counts=Counts(attempts=attempts, failed=failed, given_up=given_up))


def _notification(stored: dict[str, Any] | None) -> AlertNotification | None:
    return None if stored is None else AlertNotification(**{**stored, "happened": AlertEvent(stored["happened"])})
