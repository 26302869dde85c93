"""The description of all APIs: complete, valid, true.

Its examples are sent, and the answers compared with its schemas.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.fakes.gateway import http_event
from tests.web.described import violation
from tests.web.known_good import GOOD, ROUTES
from tests.web.protocols import Answer
from tests.web.shapes import filled, world_of

from pushhub.runtime.control import DOCUMENTATION
from pushhub.runtime.documentation import VERSION, Documentation, describe
from pushhub.runtime.hub import PROTOCOLS
from pushhub.web.api import Auth
from pushhub.web.openapi import Undescribed, document

OPERATIONS: dict[str, Any] = {
    operation["operationId"]: operation for methods in describe()["paths"].values() for operation in methods.values()
}


def get(path: str, method: str = "GET") -> dict[str, Any]:
    return Documentation().handle(http_event(method, path))


def test_every_route_is_described_and_nothing_else() -> None:
    """A new route without a description fails here; its protocol's ``api/description.py`` wants it."""
    assert set(OPERATIONS) == set(ROUTES)
    for each in PROTOCOLS:
        assert set(each.description().routes) == {route.name for route in each.routes()}


def test_a_route_without_a_description_is_named() -> None:
    routes = [PROTOCOLS[0].routes()[0]]
    description = PROTOCOLS[1].description()
    with pytest.raises(Undescribed, match=routes[0].name):
        document([(routes, description)], title="", version="", means="")


def test_the_document_is_valid_openapi() -> None:
    OpenAPIV31SpecValidator(json.loads(json.dumps(describe()))).validate()


def test_no_two_protocols_share_a_name() -> None:
    for kind in ("schemas", "credentials", "routes"):
        names = [name for each in PROTOCOLS for name in getattr(each.description(), kind)]
        assert len(names) == len(set(names))


def test_the_example_of_each_refusal_is_of_its_own_status() -> None:
    for name, operation in OPERATIONS.items():
        refusals = {
            status: json.dumps(content["example"])
            for status, response in operation["responses"].items()
            if status >= "400"
            for content in response["content"].values()
        }
        assert len(set(refusals.values())) == len(refusals), (name, refusals)


def test_a_route_of_webhooks_may_refuse_a_token_that_opens_less() -> None:
    # A portal's token gets 403 from what only the project may see, too
    routes = [route for each in PROTOCOLS for route in each.routes() if route.name.startswith("webhooks.")]
    refusing = {route.name for route in routes if "403" in OPERATIONS[route.name]["responses"]}
    assert {route.name for route in routes if route.auth is not Auth.NONE} - refusing == set()
    assert "webhooks.list_applications" in refusing


def test_a_route_that_asks_for_no_credentials_refuses_none() -> None:
    public = [route.name for each in PROTOCOLS for route in each.routes() if route.auth is Auth.NONE]
    assert public
    assert [name for name in public if "401" in OPERATIONS[name]["responses"]] == []


def test_routes_that_take_a_message_for_a_loop_say_so() -> None:
    refusing = {name for name, operation in OPERATIONS.items() if "508" in operation["responses"]}
    posting = {"create_message", "create_stream_events", "take_in"}
    assert refusing == {"hub.push_message"} | {f"webhooks.{each}" for each in posting}


def test_a_batch_of_events_is_described_with_its_own_status() -> None:
    webhook = OPERATIONS["ironmq.post_webhook"]["responses"]
    assert {"200", "201"} <= webhook.keys()
    assert webhook["200"]["content"] == webhook["201"]["content"]


def test_an_object_says_whether_it_may_hold_anything() -> None:
    """Generators take an object without fields for an empty one: a payload could not be posted."""

    def vague(schema: Any, at: str) -> list[str]:
        if isinstance(schema, list):
            return [each for index, item in enumerate(schema) for each in vague(item, f"{at}/{index}")]
        if not isinstance(schema, dict):
            return []
        kind = schema.get("type")
        known = {"properties", "additionalProperties", "patternProperties"} & {*schema}
        mine = [at] if (kind == "object" or (isinstance(kind, list) and "object" in kind)) and not known else []
        return mine + [each for key, item in schema.items() if key != "example" for each in vague(item, f"{at}/{key}")]

    assert vague(describe(), "") == []


def test_every_shared_shape_is_used() -> None:
    text = json.dumps(describe())
    for name in describe()["components"]["schemas"]:
        assert f'"#/components/schemas/{name}"' in text, name


@pytest.mark.parametrize("name", GOOD)
def test_an_example_is_answered_as_it_says(name: str) -> None:
    # Given the route's object, and the example from the document
    api, operation, good = world_of(name), OPERATIONS[name], GOOD[name]
    names, known = good.prepare(api)
    contents: list[dict[str, Any]] = list(operation.get("requestBody", {"content": {}})["content"].values())
    body = contents[0].get("example") if contents else None
    query = {
        each["name"]: str(each["example"])
        for each in operation["parameters"]
        if each["in"] == "query" and "example" in each
    }
    body, query = filled(body, query, known)
    # When it is sent
    answer = api.call(ROUTES[name], body, names=names, query=query)
    # Then it succeeds, with an answer of the described shape
    assert answer.status == ROUTES[name].status, answer
    assert violation(name, answer) is None


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_examples_of_answers_have_the_shape_they_stand_for(name: str) -> None:
    for status, response in OPERATIONS[name]["responses"].items():
        for content_type, content in response.get("content", {}).items():
            answer = Answer(int(status), content["example"], {"Content-Type": content_type})
            assert violation(name, answer) is None


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert project["project"]["version"] == VERSION


def test_the_document_is_served() -> None:
    answer = get("/openapi.json")
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"]) == json.loads(json.dumps(describe()))
    assert get("/openapi.json", "HEAD")["body"] == ""
    assert get("/openapi.json", "PUT")["statusCode"] == 405


def test_webhooks_have_a_document_of_their_own_where_svix_has_it() -> None:
    # Given a caller without a token, as an SDK's own tests are
    answer = get("/api/v1/openapi.json")
    assert answer["statusCode"] == 200
    document = json.loads(answer["body"])
    # Then it is a valid document of all routes of webhooks, and of no others
    OpenAPIV31SpecValidator(document).validate()
    whole = {path: each for path, each in describe()["paths"].items() if path.startswith(("/api/v1/", "/ingest/"))}
    assert document["paths"] == json.loads(json.dumps(whole))


def test_the_control_function_has_both_paths() -> None:
    for prefix, make in DOCUMENTATION.items():
        assert make().handle(http_event("GET", prefix))["statusCode"] == 200


def test_a_browser_gets_the_document_compressed_and_other_clients_as_it_is() -> None:
    packed = Documentation().handle(http_event("GET", "/openapi.json", headers={"accept-encoding": "gzip, br"}))
    plain = get("/openapi.json")
    assert packed["headers"]["Content-Encoding"] == "gzip"
    assert {packed["headers"]["Vary"], plain["headers"]["Vary"]} == {"Accept-Encoding"}
    assert gzip.decompress(base64.b64decode(packed["body"])).decode() == plain["body"]


def test_programs_find_a_guide_to_what_is_where() -> None:
    answer = get("/llms.txt")
    assert (answer["statusCode"], answer["headers"]["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert answer["body"].startswith("# Pushhub\n\n> ")
    for path in re.findall(r"\]\((/[^)]*)\)", answer["body"]):
        assert path in {"/docs", "/openapi.json", "/console", "/.well-known/webhook-source-ips.json"}
    # And it names the place of every route that needs a token, and the header of every kind of token
    places = [re.sub("/[A-Z]+/", "/{", each) for each in re.findall(r"`(/[^`]*)`", answer["body"])]
    for name, route in ROUTES.items():
        assert route.auth is Auth.NONE or f"{route.path}/".startswith(tuple(places)), name
    for scheme in describe()["components"]["securitySchemes"].values():
        assert scheme.get("name", "Authorization") in answer["body"] or scheme["in"] == "query"
