"""Event types."""

from __future__ import annotations

import json
import secrets

from svix import models
from svix.models import EventTypeIn, EventTypePatch
from tests.stack.webhooks.judge.stage import OLD, Stage, is_invalid, options, refused, today, unprocessable

SCHEMA = {"1": {"type": "object", "properties": {"a": {"type": "string"}}, "examples": [{"a": "b"}]}}


def upsert(stage: Stage, name: str, **fields: object) -> object:
    if OLD:
        return stage.svix.event_type.update(name, models.EventTypeUpdate(**fields))
    return stage.svix.event_type.upsert(name, models.EventTypeUpsertIn(**fields))


def check_42_event_types_live_archived_and_are_revived(stage: Stage) -> None:
    # Alone in the other project, so that lists hold nothing else
    client, prefix = stage.other.event_type, f"t.{secrets.token_hex(4)}"
    names = [f"{prefix}.{letter}" for letter in "abc"]
    for name in names[::-1]:
        created = client.create(EventTypeIn(name=name, description="d", schemas=SCHEMA))
        assert (created.name, created.description, created.archived, created.deprecated) == (name, "d", False, False)
        assert created.schemas == SCHEMA
    assert refused(409, client.create, EventTypeIn(name=names[0], description="x")).code == "event_type_exists"

    def listed(**fields: object) -> list[object]:
        found = client.list(options("EventTypeListOptions", limit=250, **fields)).data
        return [each for each in found if each.name.startswith(prefix)]

    assert [each.name for each in listed()] == names  # type: ignore[attr-defined]
    assert all(each.schemas is None for each in listed())  # type: ignore[attr-defined]
    assert all(each.schemas == SCHEMA for each in listed(with_content=True))  # type: ignore[attr-defined]
    client.delete(names[1])
    assert [each.name for each in listed()] == [names[0], names[2]]  # type: ignore[attr-defined]
    assert [each.name for each in listed(include_archived=True)] == names  # type: ignore[attr-defined]
    assert client.get(names[1]).archived
    revived = client.create(EventTypeIn(name=names[1], description="revived"))
    assert (revived.archived, revived.description) == (False, "revived")
    client.delete(names[2], options("EventTypeDeleteOptions", expunge=True))
    refused(404, client.get, names[2])
    assert [each.name for each in listed(include_archived=True)] == names[:2]  # type: ignore[attr-defined]


def check_42_event_types_are_changed_and_checked(stage: Stage) -> None:
    name = stage.event_type(schemas=SCHEMA)
    client = stage.svix.event_type
    patched = client.patch(name, EventTypePatch(description="patched", deprecated=True))
    assert (patched.description, patched.deprecated, patched.schemas) == ("patched", True, SCHEMA)
    assert client.patch(name, EventTypePatch(schemas=None)).schemas is None
    put: object = upsert(stage, name, description="put")
    assert (put.description, put.deprecated, put.schemas) == ("put", False, None)  # type: ignore[attr-defined]
    new = f"{name}.new"
    assert stage.raw("PUT", f"/event-type/{new}", {"description": "made"}).status == 201
    assert stage.raw("PUT", f"/event-type/{new}", {"description": "again"}).status == 200
    assert client.get(new).description == "again"
    for fields in (
        {"name": "with space"},
        {"name": ""},
        {"name": "x" * 257},
        {"schemas": {"1": {"readOnly": 15}}},
        {"schemas": {"1": {"type": "nonsense"}}},
    ):
        unprocessable(client.create, EventTypeIn(**{"name": f"{name}.x", "description": "d", **fields}))
    is_invalid(stage.raw("POST", "/event-type", {"name": f"{name}.y"}))
    refused(404, client.get, "never.made")
    refused(404, client.patch, "never.made", EventTypePatch(description="x"))
    refused(404, client.delete, "never.made")


@today
def check_42_event_types_come_out_of_openapi_documents(stage: Stage) -> None:
    name = f"t.{secrets.token_hex(4)}"
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    body = {"content": {"application/json": {"schema": schema}}}
    spec = {"webhooks": {name: {"post": {"summary": "d", "requestBody": body}}}}
    client = stage.svix.event_type
    planned = client.import_openapi(models.EventTypeImportOpenApiIn(spec=spec, dry_run=True)).data
    assert planned.to_modify is not None
    assert [(each.name, each.description, each.schemas) for each in planned.to_modify] == [(name, "d", {"1": schema})]
    done = client.import_openapi(models.EventTypeImportOpenApiIn(spec_raw=json.dumps(spec))).data
    assert done.modified == [name]
    assert client.get(name).schemas == {"1": schema}
    refused(400, client.import_openapi, models.EventTypeImportOpenApiIn())
