"""Event types taken out of OpenAPI documents."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings, target
from hypothesis import strategies as st
from tests.fakes.effort import effort
from tests.webhooks.world import Answered, WebhooksWorld

from pushhub.base.errors import Invalid
from pushhub.base.steps import MOST_STEPS
from pushhub.webhooks.applications.event_types import MAX_BYTES
from pushhub.webhooks.wire import openapi
from pushhub.webhooks.wire.openapi import MAX_EVENT_TYPES, STEPS, event_types_of
from pushhub.webhooks.wire.yaml import MOST_CHARACTERS, parse_yaml

PATH = "/event-type/import/openapi"
USER = {"type": "object", "properties": {"id": {"type": "string"}, "address": {"$ref": "#/components/schemas/Address"}}}
ADDRESS = {"type": "object", "properties": {"city": {"type": "string"}, "of": {"$ref": "#/components/schemas/User"}}}
SPEC: dict[str, Any] = {
    "openapi": "3.1.0",
    "webhooks": {
        "user.created": {
            "post": {
                "description": "A user was created",
                "deprecated": True,
                "x-svix-group-name": "user",
                "x-svix-feature-flags": ["beta"],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/User"}}}},
            }
        },
        "user.deleted": {"summary": "A user was deleted", "post": {}},
    },
    "components": {"schemas": {"User": USER, "Address": ADDRESS, "Other": {"type": "null"}}},
}


def imported(world: WebhooksWorld, spec: Any = SPEC, **more: Any) -> Any:
    return world.ask("POST", PATH, {"spec": spec, **more})["data"]


def stored(world: WebhooksWorld, name: str) -> Any:
    return world.ask("GET", f"/event-type/{name}")


def posting(schema: Any, **components: Any) -> dict[str, Any]:
    """A document with one event type whose post is this."""
    body = {"content": {"application/json": {"schema": schema}}}
    return {"webhooks": {"a": {"post": {"requestBody": body}}}, "components": {"schemas": components}}


def test_a_document_makes_event_types_with_all_that_their_schemas_refer_to(world: WebhooksWorld) -> None:
    assert imported(world) == {"modified": ["user.created", "user.deleted"]}
    created = stored(world, "user.created")
    assert (created["description"], created["deprecated"], created["groupName"]) == ("A user was created", True, "user")
    assert created["featureFlags"] == ["beta"]
    inner = {"$ref": "#/definitions/Address"}
    user = {"type": "object", "properties": {"id": {"type": "string"}, "address": inner}}
    address = {"type": "object", "properties": {"city": {"type": "string"}, "of": {"$ref": "#/definitions/User"}}}
    assert created["schemas"] == {
        "1": {"$ref": "#/definitions/User", "definitions": {"User": user, "Address": address}}
    }
    assert stored(world, "user.deleted")["description"] == "A user was deleted"


def test_a_schema_that_was_imported_can_be_enforced(world: WebhooksWorld) -> None:
    imported(world)
    world.ask("PATCH", "/event-type/user.created", {"schemaEnforcement": "reject"})
    app = world.make_app()
    good, bad = ({"eventType": "user.created", "payload": {"address": {"city": city}}} for city in ("Ulm", 1))
    assert world.call("POST", f"/app/{app}/msg", good).status == 202
    assert world.call("POST", f"/app/{app}/msg", bad).status == 422
    # And the next import leaves that setting alone
    spec = json.loads(json.dumps(SPEC))
    spec["webhooks"]["user.created"]["post"]["description"] = "changed"
    assert imported(world, spec) == {"modified": ["user.created"]}
    assert stored(world, "user.created")["schemaEnforcement"] == "reject"


def test_a_schema_is_enforced_that_its_owner_has_enforced_during_an_import(
    world: WebhooksWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an import that has read what is stored, and is about to write
    imported(world)
    types = world.ports.applications
    put = types.put_event_type

    def late(*given: Any) -> Any:
        monkeypatch.setattr(types, "put_event_type", put)
        world.ask("PATCH", "/event-type/user.created", {"schemaEnforcement": "reject"})
        return put(*given)

    # When its owner has the schema enforced meanwhile
    monkeypatch.setattr(types, "put_event_type", late)
    spec = json.loads(json.dumps(SPEC))
    spec["webhooks"]["user.created"]["post"]["description"] = "changed"
    imported(world, spec)
    # Then both have what they asked for
    found = stored(world, "user.created")
    assert (found["description"], found["schemaEnforcement"]) == ("changed", "reject")


def test_the_same_document_again_changes_nothing(world: WebhooksWorld) -> None:
    imported(world)
    before = stored(world, "user.created")
    world.clock.advance(seconds=60)
    assert imported(world) == {"modified": []}
    assert stored(world, "user.created") == before


def test_a_dry_run_says_what_would_be_done_and_does_nothing(world: WebhooksWorld) -> None:
    found = imported(world, dryRun=True)
    assert found["modified"] == []
    assert [each["name"] for each in found["to_modify"]] == ["user.created", "user.deleted"]
    assert found["to_modify"][0]["group_name"] == "user"
    assert world.ask("GET", "/event-type")["data"] == []


def test_what_is_not_in_the_document_is_archived_if_that_is_asked_for_and_what_is_comes_back(
    world: WebhooksWorld,
) -> None:
    world.ask("POST", "/event-type", {"name": "old", "description": "x"})
    imported(world)
    assert stored(world, "old")["archived"] is False
    world.ask("DELETE", "/event-type/user.deleted")
    assert imported(world, replaceAll=True) == {"modified": ["user.deleted", "old"]}
    assert stored(world, "old")["archived"] is True
    assert stored(world, "user.deleted")["archived"] is False


def test_a_document_may_be_text_and_its_webhooks_an_extension(world: WebhooksWorld) -> None:
    text = json.dumps({"swagger": "2.0", "x-webhooks": {"a.b": {"post": {"summary": "x"}}}})
    assert world.ask("POST", PATH, {"specRaw": text})["data"] == {"modified": ["a.b"]}


def test_what_openapi_30_has_of_its_own_is_rewritten(world: WebhooksWorld) -> None:
    schema = {
        "type": "object",
        "example": {"n": 1},
        "properties": {
            "n": {"type": "integer", "nullable": True, "minimum": 0, "exclusiveMinimum": True},
            "m": {"type": "integer", "maximum": 5, "exclusiveMaximum": False},
        },
    }
    imported(world, posting(schema))
    found = stored(world, "a")["schemas"]["1"]
    assert found["examples"] == [{"n": 1}]
    assert found["properties"]["n"] == {"type": ["integer", "null"], "nullable": True, "exclusiveMinimum": 0}
    assert found["properties"]["m"] == {"type": "integer", "maximum": 5}


@pytest.mark.parametrize("body", [{}, {"spec": {}, "specRaw": "{}"}, {"spec": None, "specRaw": None}])
def test_one_document_is_given(world: WebhooksWorld, body: dict[str, Any]) -> None:
    assert world.call("POST", PATH, body).status == 400


def refused(world: WebhooksWorld, spec: Any) -> Answered:
    answer = world.call("POST", PATH, {"spec": spec})
    assert answer.status == 422, answer
    assert world.ask("GET", "/event-type", include_archived="true")["data"] == []
    return answer


DEEP = posting(
    {"$ref": "#/components/schemas/S0"},
    **{f"S{n}": {"not": {"$ref": f"#/components/schemas/S{n + 1}"}} for n in range(9)},
)


@pytest.mark.parametrize(
    "spec",
    [
        *("text", [], {}, {"webhooks": []}, {"webhooks": {}}, {"webhooks": {"a": 1}}, {"webhooks": {"a": {"post": 1}}}),
        {"webhooks": {"no name": {"post": {}}}},
        {"webhooks": {"good": {"post": {}}, "ü": {"post": {}}}},
        {"webhooks": {"a": {"post": {"x-svix-group-name": 1}}}},
        {"webhooks": {"a": {"post": {"x-svix-feature-flags": "beta"}}}},
        {"webhooks": {"a": {"$ref": "#/webhooks/a"}}},
        {"webhooks": {"a": {"$ref": "https://elsewhere.example/x"}}},
        {"webhooks": {"a": {"$ref": "#/nowhere"}}},
        posting({"$ref": "#/components/schemas/Missing"}),
        posting({"$ref": "#/components/responses/X"}),
        posting({"$ref": "#/components/schemas/User/properties/id"}, User=USER, Address=ADDRESS),
        posting({"type": "nonsense"}),
        posting({"definitions": {"A": {}}, "$ref": "#/components/schemas/A"}, A={}),
        posting({"type": "string", "description": "x" * MAX_BYTES}),
        DEEP,
    ],
)
def test_a_document_that_cannot_be_read_is_refused_whole(world: WebhooksWorld, spec: Any) -> None:
    refused(world, spec)


YAML = """
%YAML 1.2
---
openapi: 3.1.0  # the version
webhooks:
  user.created:
    post:
      description: >-
        A user
        was created
      deprecated: true
      x-svix-group-name: 'user'
      x-svix-feature-flags: [beta]
      requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/User"}}}}
  "user.deleted":
    summary: A user was deleted
    post: {}
components:
  schemas:
    User:
      type: object
      properties:
        id: {type: string}
        address:
          $ref: '#/components/schemas/Address'
    Address:
      type: object
      properties:
        city: {type: string}
        of: {$ref: '#/components/schemas/User'}
    Other:
      type: 'null'
"""


def test_a_document_may_be_yaml(world: WebhooksWorld) -> None:
    # Given the same document in YAML and in JSON
    assert parse_yaml(YAML) == SPEC
    # Then both give the same event types
    assert world.ask("POST", PATH, {"specRaw": YAML})["data"] == {"modified": ["user.created", "user.deleted"]}
    assert imported(world) == {"modified": []}


def test_words_numbers_and_dates_of_yaml_are_what_its_core_schema_says() -> None:
    text = (
        "[yes, No, on, 2026-11-22, 012, 0x1F, 0o17, 1_000, .5, -1.5e3, +7, ~, NULL, True, 'true',"
        " 1.2.3, 12:30:45, .inf]"
    )
    read = ["yes", "No", "on", "2026-11-22", 12, 31, 15, "1_000", 0.5, -1500.0, 7, None, None, True, "true"]
    assert parse_yaml(text) == [*read, "1.2.3", "12:30:45", ".inf"]
    assert parse_yaml("200: a\ntrue: b\nnull:\n") == {"200": "a", "true": "b", "null": None}
    assert parse_yaml("# nothing") is None


LAUGHS = "\n".join(
    ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)), "webhooks: *a9"]
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LAUGHS, "Line 2: YAML aliases are not allowed"),
        ("webhooks: &a [*a]", "aliases"),
        ("a: &a {b: 1}\nc: {<<: *a}", "aliases"),
        ("a: !!python/object/apply:os.system [ls]", "tags"),
        ("a: !!binary aGk=", "tags"),
        ("a: 1\na: 2", "Line 2: the key a is given twice"),
        ("? [a, b]\n: c", "a key must be a string"),
        ("a: 1\n---\nb: 2", "single YAML document"),
        ("a: [1", "Not YAML in line"),
        ("a: b: c", "Not YAML in line 1"),
        ("a: \x00", "control characters"),
        ("a: \x7f", "Not YAML"),
        ('a: "\\ud800"', ""),
        ("a: 1e999", "The number 1e999 is too large"),
        ("x" * (MOST_CHARACTERS + 1), "converted to JSON"),
        ("- " * 101 + "a", "deeper than 100"),
        ("a: " + "[" * 20_000, "deeper than"),
        ("- a", "object"),
        ("", "object"),
        ("just words", "object"),
        ('{"webhooks": {"a": {}}', "Not a JSON document"),
    ],
)
def test_what_is_no_yaml_or_more_than_json_can_say_is_refused_in_words(
    world: WebhooksWorld, text: str, reason: str
) -> None:
    answer = world.call("POST", PATH, {"specRaw": text})
    assert answer.status == 422, answer
    assert answer.body["detail"][0]["loc"] == ["body", "specRaw"]
    assert reason in answer.body["detail"][0]["msg"]
    assert world.ask("GET", "/event-type", include_archived="true")["data"] == []


@given(st.text(alphabet=" \n-:[]{},#&*!|>'\"%@`?~\\\tab0.x\u00fc", max_size=40))
@settings(max_examples=100, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        json.dumps(parse_yaml(text))
    except Invalid:
        return


def test_a_small_document_that_stands_for_a_huge_one_is_refused(world: WebhooksWorld) -> None:
    many = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(2_000)}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Many"}}}}
    assert STEPS < 2_000 * 3 * 200
    webhooks = {f"a{number}": {"post": {"requestBody": body}} for number in range(200)}
    refused(world, {"webhooks": webhooks, "components": {"schemas": {"Many": many}}})


def test_a_yaml_document_with_more_values_than_are_read_is_refused(world: WebhooksWorld) -> None:
    """Given a document that is short enough, but has so many values that reading it would take too many steps."""
    document = f"webhooks: [{','.join('1' * MOST_STEPS)}]"
    assert len(document) < MOST_CHARACTERS
    answer = world.call("POST", PATH, {"specRaw": document})
    assert answer.status == 422
    assert "converted to JSON" in answer.body["detail"][0]["msg"]


NAMES = st.sampled_from(("A", "B", "C"))
SCHEMAS = st.recursive(
    st.just({}) | st.builds(lambda name: {"$ref": f"#/components/schemas/{name}"}, NAMES),
    lambda inner: (
        st.builds(lambda many, times: {"allOf": many * times}, st.lists(inner, max_size=3), st.integers(1, 9))
        | st.builds(lambda one: {"properties": {"p": one}, "nullable": True, "type": "string", "example": 1}, inner)
    ),
    max_leaves=6,
)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(NAMES, SCHEMAS), SCHEMAS, st.integers(1, 30))
def test_no_document_takes_more_work_than_its_steps(components: Any, schema: Any, times: int) -> None:
    few = 400
    one = {"post": {"requestBody": {"content": {"application/json": {"schema": schema}}}}}
    document = {"webhooks": {str(each): one for each in range(times)}, "components": {"schemas": components}}

    def work() -> None:
        with suppress(Invalid), pytest.MonkeyPatch.context() as patched:
            patched.setattr(openapi, "STEPS", few)
            event_types_of(document)

    done = effort(work)
    target(done)
    # A step is some instructions, and so is an event type.
    assert done <= 100 * few + 1_500 * times


def test_more_event_types_than_one_request_may_bring_are_refused(world: WebhooksWorld) -> None:
    refused(world, {"webhooks": {f"a{number}": {"post": {}} for number in range(MAX_EVENT_TYPES + 1)}})


@pytest.mark.parametrize(
    "schemas", [{"1": {"description": "x" * MAX_BYTES}}, {"1": {"enum": ["ü" * (MAX_BYTES // 2)]}}]
)
def test_an_event_type_that_would_not_fit_is_refused(world: WebhooksWorld, schemas: Any) -> None:
    body = {"name": "a", "description": "x", "schemas": schemas}
    assert world.call("POST", "/event-type", body).status == 422
    assert world.call("PUT", "/event-type/a", body).status == 422


def test_an_endpoint_that_would_not_fit_is_refused(world: WebhooksWorld, app: str) -> None:
    huge = {"url": "https://a.example/" + "x" * 60_000, "description": "\U0001f600" * 65_000}
    answer = world.call("POST", f"/app/{app}/endpoint", huge)
    assert answer.status == 422
    # Nor can it grow that large step by step
    endpoint = world.make_endpoint(app, description=huge["description"])
    assert world.call("PATCH", f"/app/{app}/endpoint/{endpoint}", {"url": huge["url"]}).status == 422
