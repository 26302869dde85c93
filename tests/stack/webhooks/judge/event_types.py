"""Event types."""

from __future__ import annotations

import secrets

from svix.models import EventTypeIn
from tests.stack.webhooks.judge.stage import Stage, options, refused

SCHEMA = {"1": {"type": "object", "properties": {"a": {"type": "string"}}, "examples": [{"a": "b"}]}}


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
