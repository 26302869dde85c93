"""HTTP itself: methods, paths, sizes, content types, faults."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from random import Random
from typing import Any
from urllib.parse import quote

import pytest
from tests.engine.world import PROJECT, World
from tests.fakes import Fault, FaultPlan
from tests.ironmq.api.hub import Hub

from pushhub.engine.model.project import Project
from pushhub.engine.projects.projects import Projects
from pushhub.ironmq.wiring import Ironmq
from pushhub.runtime.apis import handle
from pushhub.web.http import request_from_event

QUEUES = f"/3/projects/{PROJECT}/queues"
LIMIT = 4_194_304


def test_post_with_a_method_override(hub: Hub) -> None:
    # Given messages, and a client that sends POST for everything (IronMQ's Java client)
    def overridden(method: str, path: str, body: Any) -> tuple[int, Any]:
        result = hub.send(
            "POST", QUEUES + path, json.dumps(body).encode(), {"X-HTTP-Method-Override": method}, token=hub.token
        )
        return result.status, result.body

    ids = hub.post("q", "a", "b", "c")
    # Then what it means is done
    assert overridden("DELETE", f"/q/messages/{ids[0]}", {}) == (200, {"msg": "Deleted"})
    assert overridden("delete", "/q/messages", {"ids": [{"id": ids[1]}]}) == (200, {"msg": "Deleted"})
    assert overridden("DELETE", "/q/messages", {}) == (200, {"msg": "Cleared"})
    assert overridden("PATCH", "/q", {"queue": {"message_timeout": 69}})[1]["queue"]["message_timeout"] == 69
    assert overridden("PUT", "/q2", {})[0] == 200
    assert overridden("GET", "/q", {})[1]["queue"]["size"] == 0
    assert overridden("DELETE", "/q", {}) == (200, {"msg": "Deleted"})
    assert overridden("BREW", "/q2", {}) == (405, {"msg": "Method not allowed"})


def test_only_post_can_be_overridden(hub: Hub) -> None:
    hub.make("q")
    result = hub.send("GET", f"{QUEUES}/q", headers={"X-HTTP-Method-Override": "DELETE"}, token=hub.token)
    assert result.status == 200
    assert hub.info("q")["name"] == "q"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/3",
        "/3/stats",
        "/3/projects",
        "/3/projects/x",
        "/1/projects/x/queues",
        QUEUES + "/",
        QUEUES + "/q/",
        QUEUES + "//messages",
        QUEUES + "/q/messages/",
        QUEUES + "/q/messages//touch",
        QUEUES + "/q/alerts",
        QUEUES + "/q/nothing",
        "//3/projects/x/queues",
        "/VERSION",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
def test_unknown_paths(hub: Hub, method: str, path: str) -> None:
    result = hub.send(method, path, token=hub.token)
    assert (result.status, result.body) == (404, {"msg": "Not found"})


def test_the_version_needs_no_token(hub: Hub) -> None:
    result = hub.send("GET", "/version")
    assert (result.status, result.body) == (200, {"version": "3"})


def test_bodies_of_requests_that_have_none_are_ignored(hub: Hub) -> None:
    # The Go client sends a body with every GET, others may send anything
    hub.make("q")
    for body in (b"{}", b"[[[", b"\xff"):
        assert hub.send("GET", f"{QUEUES}/q", body, token=hub.token).status == 200
    assert hub.send("DELETE", f"{QUEUES}/q", b"[[[", token=hub.token).status == 200


def test_a_body_at_the_limit_is_taken_and_one_byte_more_is_refused(hub: Hub) -> None:
    # Given a webhook body of exactly 4 MiB, and a post of exactly that size
    assert hub.send("POST", f"{QUEUES}/q/webhook", b"x" * LIMIT, token=hub.token).status == 201
    frame = b'{"messages":[{"body":"%s"}]}'
    post = frame % (b"y" * (LIMIT - len(frame) + 2))
    assert len(post) == LIMIT
    assert hub.send("POST", f"{QUEUES}/q/messages", post, token=hub.token).status == 201
    # When one byte more is sent
    for path, body in (("webhook", b"x" * (LIMIT + 1)), ("messages", post + b" ")):
        result = hub.send("POST", f"{QUEUES}/q/{path}", body, token=hub.token)
        # Then it is refused in this API's shape, and nothing is stored
        assert (result.status, result.msg) == (413, "Request body is larger than 4194304 bytes")
    assert hub.info("q")["size"] == 2


def test_paired_surrogates_are_fine(hub: Hub) -> None:
    body = b'{"messages": [{"body": "\\ud83c\\udf89"}]}'
    assert hub.send("POST", f"{QUEUES}/q/messages", body, token=hub.token).status == 201
    assert hub.reserve("q")[0]["body"] == "\N{PARTY POPPER}"


def test_the_content_type_of_requests_does_not_matter(hub: Hub) -> None:
    for content_type in ("application/json; encoding=utf-8", "text/plain", "application/octet-stream", ""):
        result = hub.send(
            "POST",
            f"{QUEUES}/q/messages",
            b'{"messages":[{"body":"x"}]}',
            {"Content-Type": content_type},
            token=hub.token,
        )
        assert result.status == 201


def test_events_of_a_named_stage_have_its_name_in_their_path(hub: Hub) -> None:
    event = hub.event("GET", "/dev/version")
    event["requestContext"]["stage"] = "dev"
    assert hub.api.handle(event)["statusCode"] == 200
    event["rawPath"] = "/version"
    assert hub.api.handle(event)["statusCode"] == 200
    event["rawPath"] = "/dev"
    assert hub.api.handle(event)["statusCode"] == 404


NAMES = ["100%", "a%41", "a%2Fb", "%zz", "50%-60%", "%FF", "%25%41", "żółć", "a b", "a+b", "a?b", "%"]


@pytest.mark.parametrize("name", NAMES)
def test_a_path_that_the_gateway_has_decoded_is_not_decoded_again(hub: Hub, name: str) -> None:
    # Given the path of a name that the gateway has decoded completely
    event = hub.event("GET", "/version") | {"rawPath": f"{QUEUES}/{name}"}
    # Then it is the name
    assert request_from_event(event).path == f"{QUEUES}/{name}"


@pytest.mark.parametrize("name", [*NAMES, "%25", "a%25b", "a%2525"])
def test_a_path_of_which_the_gateway_kept_the_percent_signs_is_the_name_too(hub: Hub, name: str) -> None:
    # Given the path of a name as a client writes it, with every escape decoded but %25, as the emulator does
    event = hub.event("GET", f"{QUEUES}/{quote(name, safe='')}")
    # Then it is the name
    assert request_from_event(event).path == f"{QUEUES}/{name}"


def test_sparse_events(hub: Hub) -> None:
    event = {"rawPath": "/version", "requestContext": {"http": {"method": "get"}}}
    assert hub.api.handle(event)["statusCode"] == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rawPath", QUEUES + "/\ufffd"),
        ("rawQueryString", "prefix=%FF"),
        ("rawQueryString", "&".join("a=b" for _ in range(101))),
        ("body", "not base64 !"),
        ("body", "\ud800"),
    ],
)
def test_requests_that_cannot_be_read(hub: Hub, field: str, value: str) -> None:
    path = QUEUES if field == "rawQueryString" else f"{QUEUES}/q/webhook"
    event = hub.event("POST" if field == "body" else "GET", path, headers={"Authorization": f"OAuth {hub.token}"})
    event[field] = value
    event["isBase64Encoded"] = value.startswith("not")
    result = hub.api.handle(event)
    assert result["statusCode"] == 400
    assert "msg" in json.loads(result["body"])


def test_bytes_that_are_no_utf8_survive_gateways_that_pass_them_as_surrogates(hub: Hub) -> None:
    event = hub.event("POST", f"{QUEUES}/q/webhook?oauth={hub.token}")
    event["body"] = b"\xff\xfe".decode(errors="surrogateescape")
    assert hub.api.handle(event)["statusCode"] == 201
    [message] = hub.call("GET", "/queues/q/messages").body["messages"]
    assert base64.b64decode(message["body_base64"]) == b"\xff\xfe"


def test_a_body_that_the_gateway_had_to_mend_is_refused(hub: Hub) -> None:
    # Given bytes with a textual content type that are not text, from a gateway that replaces unreadable ones
    sent = b'{"messages": [{"body": "a \xff b"}]}'
    event = hub.event("POST", f"{QUEUES}/q/messages?oauth={hub.token}", headers={"Content-Length": str(len(sent))})
    event["body"] = sent.decode(errors="replace")
    # When it arrives, then it is refused, and nothing is stored
    assert hub.api.handle(event)["statusCode"] == 400
    assert hub.call("GET", "/queues/q").status == 404
    # And the same character is accepted if it was really sent
    event["headers"]["content-length"] = str(len(event["body"].encode()))
    assert hub.api.handle(event)["statusCode"] == 201


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_bodies_that_mean_nothing_are_not_looked_at(hub: Hub, method: str) -> None:
    event = hub.event(method, f"{QUEUES}?oauth={hub.token}", headers={"Content-Length": "1"})
    event |= {"body": "\ufffd not base64", "isBase64Encoded": True}
    assert hub.api.handle(event)["statusCode"] == 200


def test_the_first_of_repeated_query_fields_counts(hub: Hub) -> None:
    for name in ("a", "b"):
        hub.make(name)
    assert hub.call("GET", "/queues?per_page=1&per_page=2").body == {"queues": [{"name": "a"}]}


@pytest.mark.parametrize("fault", [Fault.FAILS, Fault.TIMES_OUT])
@pytest.mark.parametrize("port", ["config", "pull", "bodies", "messages"])
def test_faults_are_500_and_never_503(port: str, fault: Fault) -> None:
    # Given a hub in which the first call of one service fails
    stores = World()
    stores.config.put_project(Project(project_id=PROJECT, created_at=0))
    token = Projects(config=stores.config, clock=stores.clock).make_token(PROJECT)
    plan = FaultPlan(fault)

    def api(struck: str) -> Any:
        return stores.ports.build(plan, only={struck} if struck else ()).part(Ironmq).api

    hub = Hub(stores)
    hub.make_push("push", "https://a.example/in")
    queue = "push" if port == "messages" else "q"
    event = hub.event(
        "POST",
        f"{QUEUES}/{queue}/messages",
        json.dumps({"messages": [{"body": Random(1).randbytes(20_000).hex()}]}).encode(),
        {"Authorization": f"OAuth {token}", "Content-Type": "application/json"},
    )
    # When something is posted
    result = api(port).handle(event)
    # Then the producer gets a 500, and the same request works next time
    assert plan.struck
    assert (result["statusCode"], json.loads(result["body"])) == (500, {"msg": "Internal server error"})
    assert result["headers"]["Content-Type"] == "application/json"
    assert api("").handle(event)["statusCode"] == 201


@pytest.mark.parametrize("packed", ["gzip", "GZIP", "br", "deflate", "gzip, gzip", "identity,zstd"])
def test_a_packed_body_is_called_what_it_is(hub: Hub, packed: str) -> None:
    # Given a client that packs its body
    body = gzip.compress(b'{"messages": [{"body": "x"}]}')
    for path in ("/q/messages", "/q/webhook"):
        # When it posts, then it is told what to change, and nothing is stored
        sent = hub.send("POST", QUEUES + path, body, {"Content-Encoding": packed}, token=hub.token)
        assert (sent.status, sent.body) == (
            400,
            {"msg": f"Request body is packed ({packed.lower()}): send it without Content-Encoding"},
        )
    assert hub.call("GET", "/queues").body == {"queues": []}


@pytest.mark.parametrize("path", ["//api/v1/app", "///api/v1/app", "/api/v1/app"])
def test_a_path_with_slashes_too_many_is_answered_in_its_own_dialect(path: str) -> None:
    asked: list[str] = []

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
            asked.append(self.name)
            return {}

    mounted = {"/": lambda: Named("ironmq"), "/api/": lambda: Named("hub"), "/api/v1/": lambda: Named("webhooks")}
    handle([mounted], {"rawPath": path})
    assert asked == ["webhooks"]
