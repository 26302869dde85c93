"""Applications, endpoints and event types on DynamoDB.

Nothing is cached: changes take effect with the next read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pushhub.base.conflicts import until_saved
from pushhub.base.credentials import masked_url
from pushhub.base.errors import Conflict, Unreadable
from pushhub.cloud.calls import ConditionRefused
from pushhub.cloud.table import Item, Table, WritesRefused, number, text
from pushhub.cloud.unreadable import readable
from pushhub.webhooks.endpoints.credentials import sealed, without_secrets
from pushhub.webhooks.model.ids import IdPrefix, is_id
from pushhub.webhooks.model.page import KeyRange
from pushhub.webhooks.ports import UidTaken
from pushhub.webhooks.store._items import (
    app_pk,
    between,
    decode_application,
    decode_endpoint,
    decode_event_type,
    encode_application,
    encode_endpoint,
    encode_event_type,
    key,
    project_pk,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from pushhub.base.ports import Clock
    from pushhub.engine.security.credentials import Credentials
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.model.event_type import EventType

_APP, _APP_UID, _SOURCE_UID, _STREAM_UID = "APP#", "APPUID#", "SRCUID#", "STRMUID#"
_EP, _EP_DELETED, _EP_UID = "EP#", "EPX#", "EPUID#"
_OFF = "OFF#"
_TYPE = "TYPE#"

_PAGE = 100
"""Items that one call of a list reads."""

_VERSION = {"#version": "version"}

Write = tuple[str, dict[str, Any]]


class DynamoDBWebhooksSettings:
    """Implements :class:`pushhub.webhooks.ports.Applications`, ``Endpoints`` and ``EventTypes``.

    Args:
        credentials: Seals what opens something in endpoints.
    """

    def __init__(self, client: DynamoDBClient, table: str, clock: Clock, credentials: Credentials) -> None:
        self._credentials = credentials
        self._table = Table(client, table, clock)

    def application(self, project_id: str, name: str) -> Application | None:
        pk = project_pk(project_id)
        by_id = is_id(IdPrefix.SOURCE, name) or is_id(IdPrefix.STREAM, name)
        other = self._table.get(key(pk, _APP + name)) if by_id else None
        item = other or self._named(pk, name, IdPrefix.APPLICATION, _APP, _APP_UID)
        return decode_application(item) if item else None

    def source(self, project_id: str, name: str) -> Application | None:
        item = self._named(project_pk(project_id), name, IdPrefix.SOURCE, _APP, _SOURCE_UID)
        return decode_application(item) if item else None

    def stream(self, project_id: str, name: str) -> Application | None:
        item = self._named(project_pk(project_id), name, IdPrefix.STREAM, _APP, _STREAM_UID)
        return decode_application(item) if item else None

    def applications(self, project_id: str, span: KeyRange) -> Iterator[Application]:
        found = readable(self._within(project_pk(project_id), _APP, span), decode_application)
        return (each for each in found if span.has(each.app_id))

    def put_application(self, application: Application, before: Application | None) -> Application:
        """See the port. This is an update because the same item also counts changes of endpoints."""
        raised = replace(application, version=application.version + 1)
        pk = project_pk(application.project)
        values = {":doc": encode_application(raised)["doc"], ":after": number(raised.version)}
        if before is None:
            condition, values[":none"] = "attribute_not_exists(pk)", number(0)
            change = "SET #doc = :doc, #version = :after, endpoints = :none"
        else:
            condition, values[":before"] = "#version = :before", number(application.version)
            change = "SET #doc = :doc, #version = :after"
        update: Write = (
            "Update",
            {
                "Key": key(pk, _APP + application.app_id),
                "UpdateExpression": change,
                "ConditionExpression": condition,
                "ExpressionAttributeNames": {"#doc": "doc", **_VERSION},
                "ExpressionAttributeValues": values,
            },
        )
        claims = _claims(pk, _uids(application), application.app_id, before.uid if before else None, application.uid)
        self._write(update, claims, named=application.uid is not None and (not before or before.uid != raised.uid))
        return raised

    def delete_application(self, application: Application) -> bool:
        """See the port. The endpoints first: if this is interrupted, the application is there to be deleted again. Its
        uid goes with it: left behind, nobody could ever have it.
        """
        project_id, app_id = application.project, application.app_id
        there: Application | None = application

        def once() -> bool:
            nonlocal there
            if there is None:
                return False
            listed = self.endpoints(project_id, app_id, KeyRange())
            deleted = [
                until_saved(partial(self._delete_as_it_is, each), doing="deleting an endpoint") for each in listed
            ]
            # Whoever adds an endpoint meanwhile counts it, and it is found by the next try.
            gone = _as_counted(there.version, there.endpoints + sum(deleted))
            free = _claims(project_pk(project_id), _uids(there), app_id, there.uid, None)
            try:
                self._write(("Delete", {"Key": key(project_pk(project_id), _APP + app_id)} | gone), free, named=False)
            except Conflict:
                there = self.application(project_id, app_id)
                raise
            return True

        return until_saved(once, doing="deleting an application")

    def _delete_as_it_is(self, listed: Endpoint) -> bool:
        """Delete an endpoint of an application that is being deleted, whatever has become of both meanwhile; returns
        whether it was there.
        """
        there = self.endpoint(listed.project, listed.app_id, listed.endpoint_id)
        if there is None or self.application(listed.project, listed.app_id) is None:
            return False
        self.delete_endpoint(there)
        return True

    def endpoint(self, project_id: str, app_id: str, name: str) -> Endpoint | None:
        item = self._named(app_pk(project_id, app_id), name, IdPrefix.ENDPOINT, _EP, _EP_UID)
        return decode_endpoint(item) if item else None

    def endpoints(self, project_id: str, app_id: str, span: KeyRange) -> Iterator[Endpoint]:
        found = readable(self._within(app_pk(project_id, app_id), _EP, span), decode_endpoint)
        return (each for each in found if span.has(each.endpoint_id))

    def put_endpoint(self, endpoint: Endpoint, before: Endpoint | None) -> Endpoint:
        raised = sealed(replace(endpoint, version=endpoint.version + 1), self._credentials)
        pk = app_pk(endpoint.project, endpoint.app_id)
        put: dict[str, Any] = {"Item": key(pk, _EP + endpoint.endpoint_id) | encode_endpoint(raised)}
        put |= _as_before(before.version if before else 0)
        claims = _claims(pk, _EP_UID, endpoint.endpoint_id, before.uid if before else None, endpoint.uid)
        named = endpoint.uid is not None and (not before or before.uid != endpoint.uid)
        self._write(("Put", put), [*claims, *_noted_as_off(before, raised), _counted(endpoint)], named=named)
        return raised

    def delete_endpoint(self, endpoint: Endpoint) -> None:
        pk = app_pk(endpoint.project, endpoint.app_id)
        shown = replace(endpoint.fields, url=masked_url(endpoint.fields.url))
        gone = replace(without_secrets(endpoint), deleted=True, sealed=b"", fields=shown)
        kept: Write = ("Put", {"Item": key(pk, _EP_DELETED + endpoint.endpoint_id) | encode_endpoint(gone)})
        delete: Write = ("Delete", {"Key": key(pk, _EP + endpoint.endpoint_id)} | _as_before(endpoint.version))
        claims = _claims(pk, _EP_UID, endpoint.endpoint_id, endpoint.uid, None)
        self._write(delete, [*claims, kept, *_noted_as_off(endpoint, None), _counted(endpoint)], named=False)

    def disabled(self, project_id: str) -> Iterator[Endpoint]:
        """See the port. Reads each endpoint in addition to the list."""
        listed = self._table.items(
            KeyConditionExpression="pk = :pk AND begins_with(sk, :off)",
            ExpressionAttributeValues={":pk": text(project_pk(project_id)), ":off": text(_OFF)},
            Limit=_PAGE,
        )
        for item in listed:
            _, app_id, endpoint_id = item["sk"]["S"].split("#")
            with suppress(Unreadable):
                endpoint = self.endpoint(project_id, app_id, endpoint_id)
                if endpoint is not None and endpoint.fields.disabled:
                    yield endpoint

    def deleted_endpoint(self, project_id: str, app_id: str, endpoint_id: str) -> Endpoint | None:
        item = self._table.get(key(app_pk(project_id, app_id), _EP_DELETED + endpoint_id))
        return decode_endpoint(item) if item else None

    def event_type(self, project_id: str, name: str) -> EventType | None:
        item = self._table.get(key(project_pk(project_id), _TYPE + name))
        return decode_event_type(item) if item else None

    def event_types(self, project_id: str, span: KeyRange) -> Iterator[EventType]:
        found = readable(self._within(project_pk(project_id), _TYPE, span), decode_event_type)
        return (each for each in found if span.has(each.name))

    def event_types_named(self, project_id: str, names: Sequence[str]) -> list[EventType]:
        keys = [key(project_pk(project_id), _TYPE + each) for each in names]
        return [*readable(self._table.get_many(keys), decode_event_type)]

    def put_event_type(self, event_type: EventType) -> EventType:
        # One that is made anew under its name has other versions than the one before.
        raised = replace(event_type, version=(event_type.version or event_type.created_at) + 1)
        item = key(project_pk(event_type.project), _TYPE + event_type.name) | encode_event_type(raised)
        try:
            self._table.put(item, **_as_before(event_type.version))
        except ConditionRefused as refused:
            # The client repeats a call that timed out.
            if not refused.stored or decode_event_type(refused.stored) != raised:
                raise Conflict(f"event type {event_type.name} changed") from refused
        return raised

    def delete_event_type(self, project_id: str, name: str) -> None:
        self._table.delete(key(project_pk(project_id), _TYPE + name))

    def _within(self, pk: str, prefix: str, span: KeyRange) -> Iterator[Item]:
        return iter(()) if span.empty else self._table.items(Limit=_PAGE, **between(pk, prefix, span))

    def _named(self, pk: str, name: str, kind: IdPrefix, prefix: str, uid_prefix: str) -> Item | None:
        """The item with an id or uid."""
        if is_id(kind, name):
            return self._table.get(key(pk, prefix + name))
        claim = self._table.get(key(pk, uid_prefix + name))
        return self._table.get(key(pk, prefix + claim["id"]["S"])) if claim else None

    def _write(self, main: Write, others: Sequence[Write], *, named: bool) -> None:
        """Make a write together with the others that it requires.

        Args:
            main: The write of the object itself.
            others: Claims of uids, new ones first, and further writes.
            named: Whether the first of them claims a uid.
        """
        try:
            self._table.write_together([main, *others])
        except WritesRefused as refused:
            if named and refused.conditions[1]:
                raise UidTaken from refused
            raise Conflict("it changed") from refused


def _uids(application: Application) -> str:
    """Where uids like an application's are claimed: those of sources and of streams are their own."""
    if application.is_stream:
        return _STREAM_UID
    return _SOURCE_UID if application.source else _APP_UID


def _as_before(version: int) -> dict[str, Any]:
    """The condition that an item has a version; with 0, that it does not exist."""
    if version == 0:
        return {"ConditionExpression": "attribute_not_exists(pk)"}
    return {
        "ConditionExpression": "#version = :before",
        "ExpressionAttributeNames": _VERSION,
        "ExpressionAttributeValues": {":before": number(version)},
    }


def _as_counted(version: int, endpoints: int) -> dict[str, Any]:
    """The condition that an application has a version, and had so many changes of its endpoints."""
    return {
        "ConditionExpression": "#version = :before AND endpoints = :endpoints",
        "ExpressionAttributeNames": _VERSION,
        "ExpressionAttributeValues": {":before": number(version), ":endpoints": number(endpoints)},
    }


def _claims(pk: str, prefix: str, owner: str, before: str | None, after: str | None) -> list[Write]:
    """The writes that claim a uid and release another."""
    if before == after:
        return []
    mine = {"ExpressionAttributeValues": {":id": text(owner)}}
    writes: list[Write] = []
    if after is not None:
        item = key(pk, prefix + after) | {"id": text(owner)}
        writes.append(("Put", {"Item": item, "ConditionExpression": "attribute_not_exists(pk) OR id = :id", **mine}))
    if before is not None:
        condition = "attribute_not_exists(pk) OR id = :id"
        writes.append(("Delete", {"Key": key(pk, prefix + before), "ConditionExpression": condition, **mine}))
    return writes


def _noted_as_off(before: Endpoint | None, after: Endpoint | None) -> list[Write]:
    """The write that notes that an endpoint is now disabled, or no longer; none if that has not changed."""
    was, now = (each is not None and each.fields.disabled for each in (before, after))
    owner = after or before
    if was == now or owner is None:
        return []
    place = key(project_pk(owner.project), f"{_OFF}{owner.app_id}#{owner.endpoint_id}")
    return [("Put", {"Item": place}) if now else ("Delete", {"Key": place})]


def _counted(endpoint: Endpoint) -> Write:
    """The write that counts a change of an application's endpoints."""
    return (
        "Update",
        {
            "Key": key(project_pk(endpoint.project), _APP + endpoint.app_id),
            "UpdateExpression": "SET endpoints = endpoints + :one",
            "ConditionExpression": "attribute_exists(pk)",
            "ExpressionAttributeValues": {":one": number(1)},
        },
    )
