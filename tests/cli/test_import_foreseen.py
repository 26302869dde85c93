"""``pushhub import``: what a dry run says is what is done, and what is not copied is named."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import requests
from cli.migration.foreseen import _TARGETS
from cli.migration.svix import _APPLICATION, _CLOUD_EVENTS, _ENDPOINT, _EVENT_TYPE
from cli.rest import segment
from tests.cli.conftest import Typed
from tests.cli.served_hub import TOKEN as HUB_TOKEN
from tests.cli.served_hub import ServedHub
from tests.cli.test_import import Organizations, organizations
from tests.cli.test_import_senders import Sender, convoy, hook0, outpost, queue, sender, world
from tests.engine.world import PROJECT, World
from tests.fakes.private_keys import identity
from tests.fakes.verifier import new_asymmetric, symmetric
from tests.web.known_good import GOOD
from tests.webhooks.world import WebhooksWorld

from pushhub.engine.projects.projects import Projects

__all__ = ["organizations", "sender", "world"]

NAMES = ["", ".", "..", "a/b", "a b", "grün", "x" * 256, "x" * 257, "app_x", "ep_x", "a%2Fb", "a?b", "a#b", "\u2028"]
TEXTS: list[Any] = ["", "x" * 70_000, "\x01", "\U0001f600", "********", "a/b"]
URLS: list[Any] = [
    *("http://a.example", "HTTPS://A.example:443/x", "https://u:p@a.example/", "http://a..b/", "http://127.1:9/"),
    *("http://169.254.169.254/", "https://[:::::]", "ftp://a.example", "a.example", "https://"),
    *("ironmq:///orders", "ironmq://p:t@hub.example/orders", "ironmq://p@hub/x", "ironmq:///a/b", "ironmq:///"),
    *("ironworker://p:t@worker.example/code", "ironworker:///x", "notification2://orders", "notification2:///"),
    *("notification2://orders", "https://a.example/\u00fc", "https://a.example/ x"),
    *("https://********@a.example/", "http://a.example:0/", "http://a.example:99999/", "https://a.example/?a=1"),
    *("https://a.example/" + "x" * 70_000, "notification2:///?topic=orders", "IRONMQ:///orders"),
]
SCHEMAS: list[Any] = [
    *({"1": {"type": "nonsense"}}, {"x": True}, {"1": 7}, {}, {"1": {"$ref": "#/x"}}, {"1": {"type": "object"}}),
    {"1": {"type": "object", "properties": {"a": {"pattern": "("}}}},
    {"1": {"description": "x" * 400_000}},
]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 65_535, 65_536, 19.90, 1e300, "", "x", [], ["x"], {}, {"x": "y"}, [None]),
]
TYPES: list[Any] = [["late"], ["old"], ["made"], ["known", "never"], ["a b"], [".."], ["endpoint.created"], "known"]
FILTERS: list[Any] = [
    [{"path": path, "operator": operator, "value": value}]
    for path, operator, value in [("", "eq", 1), ("a", "like", 1), ("a", "gt", "1"), ("a", "in", [1, "x"])]
]
METADATA: list[Any] = [{"a": 1}, {"a": "x" * 5_000}, {"a": "x"}]
HEADERS: list[Any] = [
    *({"Host": "x"}, {"Content-Type": "x"}, {"webhook-id": "x"}, {"Bad Name": "x"}, {"": "x"}, {"X-\u00fc": "x"}),
    *({"X-A": "a\nb"}, {"X-A": "\u00fc"}, {"X-A": "x" * 5_000}, {"X-A": "********"}, {"X-A": "1", "x-a": "2"}),
    *({"Authorization": "x"}, {"X-Sign": "1"}, {"X-Outpost-Signature": "1"}),
]
SCHEMES: list[Any] = [
    [{"preset": "outpost"}],
    [{"preset": "nonsense"}],
    [{"preset": "standard-webhooks"}],
    [{"preset": "twilio"}],
    [{"preset": "hmac-body", "header": {"name": "X-Sign"}}],
    [{"content": "{body}", "header": {"name": "X-Sign"}, "hash": "md5"}],
    [{"content": "{body}", "header": {"name": "X-Sign"}, "hash": "sha256"}],
    [{"content": "{body}{body}", "header": {"name": "X-Sign"}, "hash": "sha256"}],
]
KEYS = ["whsec_short", "whsec_!!!!", "whpk_x", "x" * 300, "whsec_" + "A" * 2_000, "short"]


class Svix:
    """A server with Svix's API whose things are good but for some members, by a seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.answers: dict[str, Any] = {}
        types = [self._type(number) for number in range(12)]
        types += [{"name": "late", "description": "x"}, {"name": "old", "description": "x", "archived": True}]
        apps = [self._app(number) for number in range(8)]
        for number, uid in enumerate(THERE):
            apps.append({"id": f"app_there{number}", "uid": uid, "name": "There"})
        self.answers["/event-type"], self.answers["/app"] = types, apps
        for app in apps:
            path = f"/app/{app['id']}"
            self.answers[f"{path}/endpoint"] = [self._endpoint(path, number) for number in range(6)]
            if self._chance.random() < 0.4:
                self.answers[f"{path}/signatures"] = {"signatures": self._odd([], SCHEMES, 0.4)}

    def _odd(self, good: Any, odd: list[Any], rate: float = 0.06) -> Any:
        """A good value; seldom one of the odd ones, and more seldom any at all."""
        drawn = self._chance.random()
        return self._chance.choice(VALUES) if drawn < rate / 3 else self._chance.choice(odd) if drawn < rate else good

    def _name(self, good: str) -> str:
        return self._chance.choice(NAMES) if self._chance.random() < 0.1 else good

    def _type(self, number: int) -> dict[str, Any]:
        return {
            "name": self._name(f"type{number}") or "x",
            "description": self._odd("x", TEXTS),
            "archived": self._odd(False, [True]),
            "deprecated": self._odd(False, [True]),
            "schemas": self._odd(None, SCHEMAS, 0.2),
            "featureFlags": self._odd(["beta"], [["a b"], [], ["x"] * 200, [f"f{each}" for each in range(101)]]),
            "groupName": self._odd("g", TEXTS),
            "schemaEnforcement": self._odd("off", ["warn", "reject", "always"], 0.2),
        }

    def _app(self, number: int) -> dict[str, Any]:
        return {
            "id": f"app_{number}",
            "uid": self._name(f"app{number}"),
            "name": self._odd("Acme", TEXTS),
            "throttleRate": self._odd(None, [7, 70_000, 1.5]),
            "metadata": self._odd({"a": "b"}, METADATA),
            "redaction": self._odd({"payload": ["a.b"]}, [{"payload": ["a..b"]}, {"payload": 7}]),
            "searchFields": self._odd(["a.b"], [["x" * 200], ["header:x"], "a"]),
            "eager": self._odd(False, [True]),
        }

    def _endpoint(self, app: str, number: int) -> dict[str, Any]:
        path = f"{app}/endpoint/ep_{number}"
        self.answers[f"{path}/headers"] = {
            "headers": self._chance.choice([{"X-A": "1"}, {}, *HEADERS]),
            "sensitive": [],
        }
        self.answers[f"{path}/secret"] = {"key": self._chance.choice([symmetric("s")] * 20 + KEYS)}
        if self._chance.random() < 0.4:
            self.answers[f"{path}/signatures"] = {"signatures": self._chance.choice(SCHEMES)}
        if self._chance.random() < 0.3:
            self.answers[f"{path}/transformation"] = {
                "code": self._odd(CODE, [*TEXTS, "x" * 60_000, READS_PARAMETERS], 0.3),
                "enabled": self._odd(True, [False], 0.3),
                "variables": self._odd({"A": "x"}, [{"A": "********"}, {"A": 7}, {"A": "x" * 20_000}], 0.3),
            }
        return {
            "id": f"ep_{number}",
            "uid": self._name(f"e{self._chance.randrange(8)}"),
            "url": self._odd("https://a.example/in", URLS, 0.3),
            "description": self._odd("x", TEXTS),
            "disabled": self._odd(False, [True]),
            "eventTypes": self._odd(["known"], TYPES, 0.3),
            "channels": self._odd(None, [["a"], ["a b"], ["x"] * 20, [], [f"c{each}" for each in range(11)]]),
            "throttleRate": self._odd(None, [1, 70_000]),
            "metadata": self._odd({"a": "b"}, METADATA),
            "payloadFilters": self._odd([{"path": "a", "operator": "eq", "value": 1}], FILTERS),
            "cloudEvents": self._odd(
                None, [{"mode": "binary"}, {"mode": "x"}, {"mode": "structured", "consent": True}, {}], 0.2
            ),
        }

    def answer(self, path: str) -> Any:
        """What it answers to a GET."""
        found = self.answers[path]
        return {"data": found, "done": True, "iterator": None} if isinstance(found, list) else found


THERE: dict[str, dict[str, Any]] = {
    "plain": {"headers": {"X-A": "1"}, "url": "https://u:p@old.example/", "eventTypes": ["retired"]},
    "signed": {"signatures": [{"preset": "outpost", "secret": "whsec_a1b2c3d4e5f6"}]},
    "topic": {"url": "notification2://orders"},
    "events": {"cloudEvents": {"mode": "structured", "consent": True}},
}
"""What endpoints are in the hub already, by the uid of their application."""


def fill(world: WebhooksWorld, seed: int) -> None:
    """Have the hub have some things already."""
    for name in ("known", "retired"):
        world.ask("POST", "/event-type", {"name": name, "description": "x"})
    for uid, fields in THERE.items():
        world.make_app("There", uid=uid)
        for number in range(8):
            body = {"url": "https://old.example/", "uid": f"e{number}", **fields}
            assert world.call("POST", f"/app/{uid}/endpoint", body).status in (201, 422)
    world.ask("DELETE", "/event-type/retired")
    if seed % 3 == 0:
        world.ask("PUT", "/signatures", {"signatures": [{"preset": "outpost"}]})


def serve(sender: Sender, given: Svix) -> None:
    """Have a server answer what it is made to have."""
    sender.has_svix_api = True
    sender.answers = {f"/api/v1{path}": lambda _, path=path: given.answer(path) for path in given.answers}


SEEDS = [0, 33]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_dry_run_says_what_a_run_does(world: WebhooksWorld, sender: Sender, typed: Typed, seed: int) -> None:
    # Given a server whose things are odd, and a hub that has some of them already
    serve(sender, Svix(seed))
    fill(world, seed)
    before = state(world)

    def outcomes(*words: str) -> list[dict[str, Any]]:
        words = ("import", "--from", sender.url, "--token", "their-token", "--json", *words)
        printed = typed(*words, code=1)
        return [json.loads(line) for line in printed.split("\n") if line]

    # When it is copied dry, and then for good
    planned = outcomes("--dry-run")
    assert state(world) == before
    done = outcomes()
    # Then each thing became what the dry run said, and was refused for the reason that it gave
    assert planned == done
    assert {each["outcome"] for each in done} >= {"made", "changed", "failed"}
    assert [each for each in done if each["kind"] == "endpoint"]


def state(world: WebhooksWorld) -> str:
    return json.dumps(
        [
            world.ask("GET", path)
            for path in ("/app", "/event-type", *(f"/app/{each}/endpoint" for each in THERE), "/signatures")
        ]
    )


def test_a_dry_run_into_a_suspended_project_says_so(world: WebhooksWorld, sender: Sender, typed: Typed) -> None:
    # Given a project in which nothing may be changed
    outpost(sender)
    Projects(config=world.config, clock=world.clock).suspend(PROJECT)
    words = ("import", "--from", "outpost", "--url", sender.url, "--json")
    # When something is copied to it, then a dry run says the same as a run
    planned = typed(*words, "--dry-run", code=1)
    assert planned == typed(*words, code=1)
    assert {json.loads(line)["outcome"] for line in planned.split("\n") if line} == {"failed"}


def test_urls_are_checked_as_the_hub_does() -> None:
    # Given the kinds of subscribers of the hub, then the command line knows them, and no other
    targets = World().hub.engine.targets
    assert _TARGETS.schemes == targets.schemes
    for scheme in targets.schemes:
        url = f"{scheme}://a.example/x"
        assert _TARGETS.signs(url) is targets.signs(url)
        assert _TARGETS.carries_headers(url) is targets.carries_headers(url)


FULL: dict[str, Any] = {
    "url": "https://a.example/in",
    "uid": "one",
    "description": "d",
    "payloadFilters": [{"path": "a", "operator": "eq", "value": 1}],
    "cloudEvents": {"mode": "structured"},
    "channels": ["x"],
    "metadata": {"a": "b"},
    "throttleRate": 7,
}
GRANT = {
    "grantType": "clientCredentials",
    "authMethod": "clientSecretBasic",
    "clientId": "me",
    "clientSecret": "hidden-secret",
    "tokenUrl": "https://tokens.example/",
}


def test_what_only_a_hub_of_this_kind_has_is_copied(organizations: Organizations) -> None:
    # Given every setting of an event type, an application and an endpoint at another hub
    organizations.there("POST", "/event-type", {"name": "a", "description": "", "schemaEnforcement": "warn"})
    settings = {"redaction": {"payload": ["x"]}, "searchFields": ["a.b"], "portalConsent": True, "eager": True}
    organizations.there("POST", "/app", {"name": "Acme", "uid": "acme", **settings})
    organizations.there("PUT", "/app/acme/signatures", {"signatures": [{"preset": "outpost"}]})
    organizations.there("POST", "/app/acme/endpoint", FULL)
    # When it is copied
    shown = organizations.imported()
    # Then everything is here, and nothing is left to say
    assert {(each["outcome"], each["note"]) for each in shown} == {("made", "")}
    for path in ("/event-type/a", "/app/acme", "/app/acme/signatures", "/app/acme/endpoint/one"):
        here, there = organizations.here(path), organizations.there("GET", path)
        for name in ("id", "createdAt", "updatedAt"):
            assert here.pop(name, None) != there.pop(name, None) or name not in there
        assert here == there, path
    assert organizations.imported() == []
    # And what goes there goes here
    changed = [{**FULL["payloadFilters"][0], "value": 2}]
    organizations.there("PATCH", "/app/acme/endpoint/one", {"payloadFilters": changed})
    organizations.there("PUT", "/app/acme/signatures", {"signatures": []})
    assert {each["name"]: each["outcome"] for each in organizations.imported()} == {
        "acme": "changed",
        "acme/one": "changed",
    }
    assert organizations.here("/app/acme/endpoint/one")["payloadFilters"] == changed
    assert organizations.here("/app/acme/signatures")["signatures"] == []


def test_what_a_project_signs_by_is_copied_to_each_application(organizations: Organizations) -> None:
    # Given a project there with a scheme of its own, and an endpoint with none of its own and one that has none at all
    organizations.there("PUT", "/signatures", {"signatures": [{"preset": "outpost"}]})
    organizations.there("POST", "/app", {"name": "Acme", "uid": "acme"})
    organizations.there("POST", "/app/acme/endpoint", {"url": "https://a.example", "uid": "inherits"})
    organizations.there("POST", "/app/acme/endpoint", {"url": "https://b.example", "uid": "own"})
    plain = {"signatures": [{"preset": "standard-webhooks"}]}
    organizations.there("PUT", "/app/acme/endpoint/own/signatures", plain)
    # When they are copied, then they are signed as there, and the project here is as it was
    reported = {each["kind"]: each for each in organizations.imported()}
    assert reported["signatures"]["outcome"] == "left"
    assert organizations.here("/signatures") == {"signatures": []}
    shown = organizations.here("/app/acme/endpoint/inherits/signatures")
    assert (shown["inheritedFrom"], shown["signatures"][0]["preset"]) == ("application", "outpost")
    [own] = organizations.here("/app/acme/endpoint/own/signatures")["signatures"]
    assert own["preset"] == "standard-webhooks"


def test_what_this_project_signs_by_changes_nothing_for_copied_endpoints(organizations: Organizations) -> None:
    # Given a project here whose receivers are signed by a scheme, and an application of a project that has none
    token = organizations.world.other_token
    organizations.world.ask("PUT", "/signatures", {"signatures": [{"preset": "outpost"}]}, token=token)
    app = organizations.world.make_app(uid="acme")
    organizations.world.make_endpoint(app, uid="one")
    organizations.imported()
    shown = organizations.here("/app/acme/endpoint/one/signatures")
    assert shown == {"signatures": [{"preset": "standard-webhooks"}], "inheritedFrom": "application"}


@pytest.mark.parametrize("gate", ["oauth", "mtls", "header", "key", "second scheme"])
def test_an_endpoint_whose_receiver_would_refuse_it_is_disabled(organizations: Organizations, gate: str) -> None:
    # Given an endpoint that shows its receiver something that nobody is shown
    body: dict[str, Any] = {"url": "https://a.example/in", "uid": "one"}
    body |= {"headers": {"Authorization": "Bearer x"}} if gate == "header" else {}
    body |= {"secret": new_asymmetric()[0]} if gate == "key" else {}
    organizations.there("POST", "/app", {"name": "Acme", "uid": "acme"})
    organizations.there("POST", "/app/acme/endpoint", body)
    path, token = "/app/acme/endpoint/one", organizations.world.other_token
    mtls = {"identity": identity()}
    schemes = {"signatures": [{"preset": "standard-webhooks"}, {"preset": "outpost", "secret": "whsec_a1b2c3d4e5f6"}]}
    gates = {"oauth": GRANT, "mtls": mtls}
    if gate in gates:
        organizations.there("PUT", f"{path}/{gate}", gates[gate])
    if gate == "second scheme":
        organizations.there("PUT", f"{path}/signatures", schemes)
    # When it is copied
    shown = {each["name"]: each for each in organizations.imported()}
    # Then it is disabled, the output says what to do, and no secret is in it
    words = {"oauth": "https://tokens.example/", "mtls": "client certificate", "header": "Authorization"}
    assert (
        words.get(gate, "key" if gate == "key" else "X-Outpost-Signature").lower() in shown["acme/one"]["note"].lower()
    )
    assert "it is disabled until then" in shown["acme/one"]["note"]
    assert "hidden-secret" not in json.dumps(shown)
    assert organizations.here(path)["disabled"] is True
    # And once somebody has set it and enabled the endpoint, a later run leaves it so
    if gate in gates:
        organizations.world.ask("PUT", f"{path}/{gate}", gates[gate], token=token)
    if gate == "header":
        organizations.world.ask("PATCH", f"{path}/headers", {"headers": body["headers"]}, token=token)
    organizations.world.ask("PATCH", path, {"disabled": False}, token=token)
    assert [each["outcome"] for each in organizations.imported()] in (["same"], [])
    assert organizations.here(path)["disabled"] is False


CODE = "function handler(webhook) { return webhook }"
READS_PARAMETERS = "function handler(webhook) { webhook.payload = webhook.transformationsParams; return webhook }"


class Transformed:
    """Svix with one endpoint, which has a transformation."""

    PATH = "/app/acme/endpoint/one"

    def __init__(self, world: WebhooksWorld, sender: Sender, typed: Typed) -> None:
        self.world, self._sender, self._typed = world, sender, typed
        sender.has_svix_api = True
        listed = {
            "/event-type": [],
            "/app": [{"id": "app_1", "uid": "acme", "name": "Acme"}],
            "/app/app_1/endpoint": [{"id": "ep_1", "uid": "one", "url": "https://a.example/in"}],
        }
        sender.answers = {f"/api/v1{path}": {"data": each, "done": True} for path, each in listed.items()}
        self._there = "/api/v1/app/app_1/endpoint/ep_1"
        sender.answers |= {f"{self._there}/headers": {"headers": {}}, f"{self._there}/secret": {"key": symmetric("s")}}

    def has(self, **transformation: Any) -> None:
        """What the transformation is there."""
        self._sender.answers[f"{self._there}/transformation"] = transformation

    def imported(self, code: int = 0) -> dict[str, Any]:
        """What is said of the endpoint, by a dry run and by a run; without an outcome if it is the same."""
        words = ("import", "--from", self._sender.url, "--token", "their-token", "--json")
        before = self.here()
        planned = self._typed(*words, "--dry-run", code=code)
        assert self.here() == before
        assert self._typed(*words, code=code) == planned
        answer: dict[str, dict[str, Any]] = {
            each["name"]: each for each in map(json.loads, filter(None, planned.split("\n")))
        }
        return answer.get("acme/one", {})

    def here(self) -> Any:
        """The endpoint here and its transformation; None if there is none."""
        found = self.world.call("GET", self.PATH)
        if found.status == 404:
            return None
        return found.body["disabled"], self.world.ask("GET", f"{self.PATH}/transformation")

    def env(self) -> Any:
        """What code finds here as its variables."""
        trial = {"code": CODE, "eventType": "t", "payload": {}}
        self.world.ask("POST", f"{self.PATH}/transformation/simulate", trial)
        return json.loads(self.world.ports.scripts.asked[-1]["input"])["env"]


@pytest.fixture
def transformed(world: WebhooksWorld, sender: Sender, typed: Typed) -> Transformed:
    return Transformed(world, sender, typed)


def test_a_transformation_comes_along_and_what_changes_there_changes_here(transformed: Transformed) -> None:
    # Given an endpoint at Svix with code and variables
    transformed.has(code=CODE, enabled=True, variables={"KEY": "s3cret"}, updatedAt="2026-11-29T03:30:00Z")
    # When it is copied, then it has them here, and it is enabled
    assert transformed.imported() == {"kind": "endpoint", "name": "acme/one", "outcome": "made", "note": ""}
    disabled, here = transformed.here()
    assert (disabled, here["code"], here["enabled"], here["variables"]) == (False, CODE, True, {"KEY": "********"})
    assert transformed.env() == {"KEY": "s3cret"}
    # And a second run changes nothing but values, which nobody can compare
    transformed.has(code=CODE, enabled=True, variables={"KEY": "other"})
    assert transformed.imported() == {}
    assert transformed.env() == {"KEY": "other"}
    # And what is switched off or taken away there is so here
    transformed.has(code=CODE, enabled=False, variables={})
    assert transformed.imported()["outcome"] == "changed"
    assert (transformed.here()[1]["enabled"], transformed.env()) == (False, {})
    transformed.has()
    assert transformed.imported()["outcome"] == "changed"
    assert transformed.here()[1]["code"] is None


def test_code_that_the_hub_refuses_leaves_its_endpoint_disabled(transformed: Transformed) -> None:
    # Given code that is larger than it may be here
    transformed.has(code="x" * 51_201, enabled=True)
    # When it is copied, then that is said, and the endpoint gets nothing that is not transformed
    failed = transformed.imported(code=1)
    assert (failed["outcome"], "code" in failed["note"]) == ("failed", True)
    assert transformed.here()[0] is True
    # And a later run goes on from there
    transformed.has(code=CODE, enabled=True)
    assert transformed.imported()["outcome"] == "changed"
    assert (transformed.here()[0], transformed.here()[1]["code"]) == (False, CODE)


def test_variables_that_are_not_shown_have_to_be_set_here(transformed: Transformed) -> None:
    # Given another hub of this kind, which shows no values
    transformed.has(code=CODE, enabled=True, variables={"KEY": "********"}, language="javascript")
    # When it is copied, then the endpoint is disabled, and the mask is no value of the variable
    assert "KEY" in transformed.imported()["note"]
    assert (transformed.here()[0], transformed.here()[1]["code"], transformed.env()) == (True, CODE, {})
    # And once somebody has set it and enabled the endpoint, a later run leaves it so
    transformed.world.ask("PATCH", f"{transformed.PATH}/transformation", {"variables": {"KEY": "s3cret"}})
    transformed.world.ask("PATCH", transformed.PATH, {"disabled": False})
    assert transformed.imported().get("outcome", "same") == "same"
    assert (transformed.here()[0], transformed.env()) == (False, {"KEY": "s3cret"})


def test_code_that_reads_what_is_empty_here_is_named(transformed: Transformed) -> None:
    # Given code that reads what Svix's clients send beside a message
    transformed.has(code=READS_PARAMETERS, enabled=True)
    # When it is copied, then it is said, and the endpoint is disabled until somebody has looked at it
    assert "transformationsParams" in transformed.imported()["note"]
    assert transformed.here()[0] is True
    transformed.world.ask("PATCH", transformed.PATH, {"disabled": False})
    transformed.imported()
    assert transformed.here()[0] is False
    # And code that is switched off there is no reason
    transformed.has(code=READS_PARAMETERS, enabled=False)
    assert transformed.imported()["note"] == ""


def test_what_belongs_to_the_organization_is_named(organizations: Organizations) -> None:
    body = {"url": "https://a.example/in", "uid": "ops"}
    organizations.there("POST", "/operational-webhook/endpoint", body)
    organizations.there("PUT", "/portal/frame", {"origins": ["https://portal.example"]})
    shown = {each["kind"]: each for each in organizations.imported()}
    assert {each["outcome"] for each in shown.values()} == {"left"}
    assert "https://a.example/in" in shown["operational endpoint"]["note"]
    assert "https://portal.example" in shown["portal frame"]["note"]


def test_connectors_are_copied_changed_and_left_alone(organizations: Organizations) -> None:
    # Given two connectors there, one with a uid of its own
    chat = {"name": "Chat", "uid": "chat", "kind": "Slack", "instructions": "Enter a URL.", "transformation": CODE}
    organizations.there("POST", "/connector", chat)
    created = organizations.there(
        "POST", "/connector", {"name": "Bare", "productType": "Stream", "transformation": CODE}
    )
    # When they are imported
    assert [(each["kind"], each["outcome"]) for each in organizations.imported()] == [("connector", "made")] * 2
    # Then they are here as they are there
    ours = {each["uid"]: each for each in organizations.here("/connector")["data"]}
    assert ours.keys() == {"chat", created["id"].removeprefix("trtmpl_")}
    assert {name: ours["chat"][name] for name in chat} == chat
    assert ours[created["id"].removeprefix("trtmpl_")]["productType"] == "Stream"
    # Again, nothing is done but what differs
    organizations.there("PATCH", "/connector/chat", {"instructions": ""})
    shown = {each["name"]: each["outcome"] for each in organizations.imported()}
    assert shown == {"chat": "changed"}
    assert organizations.here("/connector/chat")["instructions"] == ""


def objects(value: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of an answer that is one of a list, or a part of such a one, with its place."""
    if isinstance(value, dict):
        yield place, value
        for name, each in value.items():
            yield from objects(each, f"{place}.{name}")
    if isinstance(value, list):
        for each in value:
            yield from objects(each, place)


SENDERS: dict[str, tuple[Callable[[Sender], Any], tuple[str, ...], set[str]]] = {
    "outpost": (outpost, (), {"", ".config", ".credentials"}),
    "convoy": (convoy, ("--project", "p1"), {".data.content"}),
    "hook0": (hook0, ("--project", "o"), {"", ".target"}),
}
"""What fills a server, what the command needs, and the places of things in its answers."""


@pytest.mark.parametrize("name", SENDERS)
def test_a_member_that_nobody_knows_is_named_wherever_it_is(
    world: WebhooksWorld, sender: Sender, typed: Typed, name: str
) -> None:
    # Given a sender that adds something to each of its things
    fill_sender, words, places = SENDERS[name]
    fill_sender(sender)
    for path in ("/api/v1/tenants/one/destinations", "/api/v1/subscriptions"):
        # The others are left as a whole.
        del sender.answers.get(path, [])[1:]
    added: list[str] = []

    def with_more(answer: Any) -> Any:
        answer = json.loads(json.dumps(answer))
        for place, each in objects(answer):
            if place in places and "pagination" not in each and "event_type_name" not in each:
                added.append(f"member{len(added)}")
                each[added[-1]] = "surprise"
        return answer

    def answering(found: Any) -> Callable[[dict[str, str]], Any]:
        known: dict[str, Any] = {}

        def answer(query: dict[str, str]) -> Any:
            key = json.dumps(query)
            if key not in known:
                known[key] = with_more(found(query) if callable(found) else found)
            return known[key]

        return answer

    sender.answers = {path: answering(found) for path, found in sender.answers.items()}
    # When it is copied, then each is named
    shown = typed("import", "--from", name, "--url", sender.url, "--json", *words)
    assert added
    assert [each for each in added if not re.search(rf"\b{each}\b", shown)] == []


COPIES = 12


def several(thing: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A thing of a sender's, and others like it with ids of their own."""
    created = []
    for number in range(COPIES):
        copy = json.loads(json.dumps(thing))
        for name in ("id", "uid", "subscription_id", "name"):
            if isinstance(copy.get(name), str):
                copy[name] = f"{copy[name]}-{number}"
        created.append(copy)
    return created


class OddAnswers:
    """Answers of a sender in its documented form with some values that its users, or an enemy, have put there.

    The same request is answered in the same way.
    """

    odd = (*VALUES, *TEXTS, *URLS, *NAMES, *KEYS, "*", "order.*", "**", {"filter": {"a": 1}}, [7], ["x", "x"])

    def __init__(self, answers: Mapping[str, Any], chance: random.Random, rate: float) -> None:
        self._answers = answers
        self._chance = chance
        self._rate = rate
        self._known: dict[str, Any] = {}

    def of(self, path: str) -> Callable[[dict[str, str]], Any]:
        found = self._answers[path]

        def answer(query: dict[str, str]) -> Any:
            key = f"{path} {json.dumps(query, sort_keys=True)}"
            if key not in self._known:
                self._known[key] = self._changed(found(query) if callable(found) else found)
            return self._known[key]

        return answer

    def _changed(self, value: Any, inside: bool = False) -> Any:
        if inside and self._chance.random() < self._rate:
            return self._chance.choice(self.odd)
        if isinstance(value, list):
            return [self._changed(each, inside) for each in value]
        if isinstance(value, dict):
            # Where one page follows another is not changed: the lists would end there.
            kept = {name: each for name, each in value.items() if "pagina" in name}
            things = {name: self._changed(each, inside or name not in LISTS) for name, each in value.items()}
            return things | kept
        return value


LISTS = ("models", "data", "content")


def filled_outpost(sender: Sender) -> None:
    destination = outpost(sender)
    sender.answers["/api/v1/tenants/one/destinations"] += several(destination)


def filled_convoy(sender: Sender) -> None:
    first = convoy(sender)
    root = "/api/v1/projects/p1"
    listed = [*several(first), *several({**first, "owner_id": ""})]
    names = ["order.paid", "*", "order.sent"]
    subscriptions = [
        {
            "uid": f"more-{number}",
            "endpoint_metadata": {"uid": each["uid"]},
            "filter_config": {"event_types": [names[number % 3]], "filter": {"body": {}, "headers": {}}},
        }
        for number, each in enumerate(listed)
    ]
    end = {"has_next_page": False}
    sender.answers[f"{root}/endpoints"] = {"data": {"content": listed, "pagination": end}}
    sender.answers[f"{root}/subscriptions"] = {"data": {"content": subscriptions, "pagination": end}}


def filled_hook0(sender: Sender) -> None:
    sender.answers["/api/v1/subscriptions"] = several(hook0(sender))


@pytest.mark.parametrize("seed", [1, 28])
@pytest.mark.parametrize("name", ["outpost", "convoy", "hook0"])
def test_a_dry_run_says_what_a_run_does_whatever_another_sender_answers(
    world: WebhooksWorld, sender: Sender, typed: Typed, name: str, seed: int
) -> None:
    # Given another sender, some of whose values are odd; in every other seed many of them
    fill_sender, words = {
        "outpost": (filled_outpost, ()),
        "convoy": (filled_convoy, ("--project", "p1")),
        "hook0": (filled_hook0, ("--project", "o")),
    }[name]
    fill_sender(sender)
    fill(world, seed)
    odd = OddAnswers(sender.answers, random.Random(f"{name} {seed}"), rate=0.01 if seed % 2 else 0.06)
    sender.answers = {path: odd.of(path) for path in sender.answers}
    before = state(world)

    def outcomes(*more: str) -> tuple[int, list[str], str]:
        code = typed.ends("import", "--from", name, "--url", sender.url, "--json", *words, *more)
        summary = typed.errors.removeprefix("would be, as this was a dry run: ")
        return code, [line for line in typed.printed.split("\n") if line], summary

    # When it is copied dry, and then for good
    planned = outcomes("--dry-run")
    assert state(world) == before
    # Then the run does what the dry run said, in the same words, and ends in the same way
    assert outcomes() == planned
    assert planned[0] in (0, 1)
    assert "Traceback" not in planned[2]


@pytest.mark.parametrize("seed", range(3))
def test_a_dry_run_says_what_becomes_of_qstashs_groups(hub: ServedHub, sender: Sender, typed: Typed, seed: int) -> None:
    # Given groups of QStash, some of whose values are odd
    group = {
        "name": "orders",
        "endpoints": [{"name": "crm", "url": "https://a.example/in"}, {"url": "https://b.example"}],
    }
    sender.answers = {
        "/v2/topics": several(group),
        "/v2/queues": [{"name": "slow", "parallelism": 2}],
        "/v2/schedules": [{"scheduleId": "scd_1", "cron": "* * * * *", "destination": "https://a.example"}],
    }
    odd = OddAnswers({path: {"data": each} for path, each in sender.answers.items()}, random.Random(seed), rate=0.1)
    sender.answers = {path: odd.of(path)({})["data"] for path in sender.answers}
    words = ("import", "--from", "qstash", "--url", sender.url, "--json")
    # When they are copied dry, and then for good
    planned = typed.ends(*words, "--dry-run"), typed.printed
    assert hub.writes == []
    # Then each became what the dry run said
    assert (typed.ends(*words), typed.printed) == planned
    assert "Traceback" not in typed.errors


def test_everything_that_this_hub_shows_is_known(organizations: Organizations) -> None:
    # Given things with every setting there is
    world = organizations.world
    good = {
        name: GOOD[f"webhooks.{name}"].body for name in ("create_application", "create_event_type", "create_endpoint")
    }
    shown = [
        (_EVENT_TYPE, world.ask("POST", "/event-type", good["create_event_type"])),
        (_APPLICATION, world.ask("POST", "/app", good["create_application"])),
    ]
    app, body = world.make_app(), {**good["create_endpoint"], "eventTypes": None, "signatures": None}
    shown.append((_ENDPOINT, world.ask("POST", f"/app/{app}/endpoint", body)))
    shown.append((_CLOUD_EVENTS, shown[-1][1]["cloudEvents"]))
    # Then an import knows what to do with each of their members
    assert [[*known.left(each)] for known, each in shown] == [[], [], [], []]


def odd_queue(chance: random.Random, name: str) -> dict[str, Any]:
    """A queue as another server shows it, good but for some members."""

    def odd(good: Any, *others: Any) -> Any:
        return chance.choice([good] * 40 + [*others, chance.choice(VALUES)])

    headers = odd({"X-A": "1"}, {"Host": "x"}, {"X-A": "a\nb"}, {"Bad Name": "x"})
    subscribers = [
        {"name": odd(f"s{number}", "x" * 300), "url": odd("https://a.example/in", *URLS), "headers": headers}
        for number in range(chance.randrange(1, 3))
    ]
    push = {
        "retries": odd(3, -1, 1_000),
        "retries_delay": odd(60, 0, 10**9),
        "error_queue": odd("", "a/b", name),
        "subscribers": odd(subscribers, []),
    }
    is_push = chance.random() < 0.7
    return {
        "name": name,
        "type": odd("multicast" if is_push else "pull", "unicast"),
        "message_timeout": odd(60, 10, 10**7),
        "message_expiration": odd(3_600, 1),
        **({"push": push} if is_push else {"dead_letter": odd({"queue_name": "dead", "max_reservations": 3}, {})}),
    }


@pytest.mark.parametrize("seed", range(3))
def test_a_dry_run_says_what_becomes_of_queues(hub: ServedHub, sender: Sender, typed: Typed, seed: int) -> None:
    # Given queues there that are odd, some of which are here already
    chance = random.Random(seed)
    names = [f"q{number}" for number in range(40)] + ["a/b", "x" * 300, ".."]
    sender.answers["/3/projects/p/queues"] = {"queues": [{"name": each} for each in names]}
    for name in names:
        sender.answers[f"/3/projects/p/queues/{segment(name)}"] = {"queue": odd_queue(chance, name)}
    for name in names[:20]:
        body = {"queue": {"type": "multicast", "push": {"subscribers": [{"name": "s0", "url": "https://old.example"}]}}}
        shown = {"Authorization": f"OAuth {HUB_TOKEN}"}
        put = requests.put(f"{hub.base_url}/3/projects/{PROJECT}/queues/{name}", json=body, headers=shown, timeout=40)
        assert put.status_code == 200, put.text
    before = len(hub.writes)

    def outcomes(*words: str) -> list[str]:
        printed = typed("import", "--from", "ironmq", "--url", sender.url, "--project", "p", "--json", *words, code=1)
        return [line for line in printed.split("\n") if line]

    # When they are copied dry, and then for good
    planned = outcomes("--dry-run")
    assert len(hub.writes) == before
    # Then each became what the dry run said
    assert outcomes() == planned
    assert {json.loads(each)["outcome"] for each in planned} == {"made", "changed", "failed"}


def test_a_subscriber_whose_receiver_would_refuse_it_is_paused(hub: ServedHub, sender: Sender, typed: Typed) -> None:
    # Given a queue of another hub, whose subscribers have what is not shown
    url = "https://a.example/in"
    subscribers = [
        {"name": "hidden", "url": url, "headers": {"Authorization": "********", "X-A": "1"}},
        {"name": "oauth", "url": url, "oauth": True},
        {
            "name": "mtls",
            "url": url,
            "mtls": {"subject": "CN=x", "ends_at": "2027-01-01T00:00:00Z", "private_ca": False},
        },
        {"name": "signed", "url": url, "signing": True},
        {"name": "plain", "url": url, "surprise": 1},
    ]
    shown = {"name": "q", "type": "multicast", "push": {"subscribers": subscribers}, "wonder": "x"}
    sender.answers = {"/3/projects/p/queues": {"queues": [{"name": "q"}]}, "/3/projects/p/queues/q": {"queue": shown}}
    # When it is copied
    printed = typed("import", "--from", "ironmq", "--url", sender.url, "--project", "p", "--json")
    # Then those are paused, and what to do is said
    note = json.loads(printed)["note"]
    for words in ("Authorization", "its OAuth", "its client certificate", "secret", "surprise", "wonder"):
        assert words in note
    created = {each["name"]: each for each in queue(hub, "q")["push"]["subscribers"]}
    assert {name for name, each in created.items() if each.get("paused")} == {"hidden", "oauth", "mtls", "signed"}
