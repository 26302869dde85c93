"""``pushhub import``: from one organization to another, each behind a port."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click
import pytest
from cli.migration.svix import Migration, svix_url
from cli.migration.taking_over import TRIES
from cli.rest import Refused, Rest
from tests.cli.conftest import Typed
from tests.engine.world import PROJECT
from tests.fakes.verifier import new_asymmetric, symmetric
from tests.webhooks.served import ServedWorld
from tests.webhooks.world import OTHER_PROJECT, WebhooksWorld


class Organizations:
    """Two organizations; the command line belongs to the second."""

    def __init__(self, world: WebhooksWorld, base_url: str, typed: Typed) -> None:
        self.world = world
        self._base_url = base_url
        self._typed = typed

    def there(self, method: str, path: str, body: Any = None) -> Any:
        """A request to the first."""
        return self.world.ask(method, path, body)

    def here(self, path: str) -> Any:
        """What the second organization answers to a GET."""
        return self.world.ask("GET", path, token=self.world.other_token)

    def imported(self, *words: str, code: int = 0) -> list[dict[str, Any]]:
        """What the command reports about each object."""
        printed = self._typed("import", "--from", self._base_url, "--json", *words, code=code)
        return [json.loads(line) for line in printed.splitlines()]

    @property
    def errors(self) -> str:
        """What it wrote to standard error."""
        return self._typed.errors

    def fill(self) -> tuple[str, str]:
        """Event types, an application that has a uid, and one that has none; ids of that one and its endpoint."""
        self.there("POST", "/event-type", {"name": "a.b", "description": "d", "schemas": {"1": {"type": "object"}}})
        self.there(
            "POST", "/event-type", {"name": "old", "description": "x", "featureFlags": ["beta"], "groupName": "g"}
        )
        self.there("DELETE", "/event-type/old")
        self.there("POST", "/app", {"name": "Acme", "uid": "acme", "throttleRate": 7, "metadata": {"a": "b"}})
        endpoint = {"url": "https://a.example/in", "uid": "crm", "eventTypes": ["a.b"], "channels": ["x"]}
        more = {"headers": {"X-Region": "1"}, "secret": symmetric("s"), "description": "ü"}
        self.there("POST", "/app/acme/endpoint", {**endpoint, **more})
        bare = self.world.make_app("No uid")
        return bare, self.world.make_endpoint(bare, disabled=True)


@pytest.fixture
def organizations(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, typed: Typed) -> Iterator[Organizations]:
    world = WebhooksWorld()
    with ServedWorld(world) as served:
        for name, value in {
            "PUSHHUB_CONFIG": str(tmp_path / "config"),
            "PUSHHUB_URL": served.base_url,
            "PUSHHUB_PROJECT": OTHER_PROJECT,
            "PUSHHUB_TOKEN": world.other_token,
            "SVIX_TOKEN": world.token,
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("PUSHHUB_PROFILE", raising=False)
        yield Organizations(world, served.base_url, typed)


def test_everything_is_copied_and_receivers_notice_nothing(organizations: Organizations) -> None:
    app, endpoint = organizations.fill()
    shown = organizations.imported()
    assert all(each["outcome"] == "made" for each in shown)
    kinds = [each["kind"] for each in shown]
    assert [kinds.count(each) for each in ("event type", "application", "endpoint")] == [2, 2, 2]
    bare = f"/app/{app.removeprefix('app_')}/endpoint/{endpoint.removeprefix('ep_')}"
    same = ["/event-type/a.b", "/event-type/old", "/app/acme"]
    same += [f"/app/acme/endpoint/crm{rest}" for rest in ("", "/secret", "/headers")]
    theirs = f"/app/{app}/endpoint/{endpoint}"
    for path, original in {**{each: each for each in same}, bare: theirs, f"{bare}/secret": f"{theirs}/secret"}.items():
        copy, there = organizations.here(path), organizations.there("GET", original)
        for name in ("id", "uid", "createdAt", "updatedAt"):
            copy.pop(name, None)
            there.pop(name, None)
        assert copy == there, path


def test_a_second_run_changes_nothing_and_a_later_one_only_what_differs(organizations: Organizations) -> None:
    organizations.fill()
    organizations.imported()
    assert organizations.imported() == []
    # Given a change of each kind in the first one, and a secret changed in the second
    organizations.there("PATCH", "/event-type/a.b", {"description": "other"})
    organizations.there("PATCH", "/app/acme", {"name": "Acme Ltd"})
    organizations.there("PATCH", "/app/acme/endpoint/crm/headers", {"headers": {"X-Region": "2"}})
    world, body = organizations.world, {"key": symmetric("z")}
    world.ask("POST", "/app/acme/endpoint/crm/secret/rotate", body, token=world.other_token)
    assert [(each["kind"], each["name"], each["outcome"]) for each in organizations.imported()] == [
        ("event type", "a.b", "changed"),
        ("application", "acme", "changed"),
        ("endpoint", "acme/crm", "changed"),
    ]
    assert organizations.here("/app/acme")["name"] == "Acme Ltd"
    assert organizations.here("/app/acme/endpoint/crm/secret")["key"] == symmetric("s")
    assert organizations.here("/app/acme/endpoint/crm/headers")["headers"] == {"X-Region": "2"}
    assert organizations.imported() == []


def test_a_dry_run_tells_the_same_and_does_nothing(organizations: Organizations) -> None:
    organizations.fill()
    planned = organizations.imported("--dry-run")
    assert organizations.here("/app")["data"] == organizations.here("/event-type")["data"] == []
    assert "dry run" in organizations.errors
    assert planned == organizations.imported()


def test_one_application_alone(organizations: Organizations) -> None:
    organizations.fill()
    assert [each["name"] for each in organizations.imported("--app", "acme")] == ["a.b", "old", "acme", "acme/crm"]


def test_what_cannot_be_copied_is_said(organizations: Organizations) -> None:
    # Given an endpoint with a sensitive header and an Ed25519 key, and one whose event type was archived since
    world = organizations.world
    app = world.make_app(uid="acme")
    organizations.there("POST", "/event-type", {"name": "gone", "description": "x"})
    world.make_endpoint(app, uid="one", secret=new_asymmetric()[0], headers={"Authorization": "Bearer x", "X-A": "1"})
    world.make_endpoint(app, uid="two", eventTypes=["gone"])
    organizations.there("DELETE", "/event-type/gone")
    shown = {each["name"]: each for each in organizations.imported(code=1)}
    assert "Authorization" in shown["acme/one"]["note"]
    assert "Ed25519" in shown["acme/one"]["note"]
    assert shown["acme/two"]["outcome"] == "failed"
    assert "gone" in shown["acme/two"]["note"]
    assert organizations.here("/app/acme/endpoint/one/headers")["headers"] == {"X-A": "1"}
    assert organizations.here("/app/acme/endpoint/one/secret")["key"].startswith("whsec_")
    # And no secret is printed
    assert "whsec_" not in json.dumps(shown) + organizations.errors


OUTPOST = {"preset": "outpost", "secret": "whsec_a1b2c3d4e5f6"}
OWN: dict[str, Any] = {
    "content": "{ts}.{body}",
    "hash": "sha512",
    "encoding": "base64",
    "header": {"name": "X-Acme", "value": "t={ts},{signatures}", "each": "v1={signature}"},
    "secret": "a-secret-of-its-own-of-32-letters",
}
STANDARD = {"preset": "standard-webhooks"}


@pytest.mark.parametrize("scheme", [OUTPOST, OWN], ids=["preset", "own"])
def test_schemes_of_an_endpoints_own_are_copied_with_their_secret(
    organizations: Organizations, scheme: dict[str, Any]
) -> None:
    # Given an endpoint at another hub of this kind that signs by a scheme of its own
    app = organizations.world.make_app(uid="acme")
    organizations.world.make_endpoint(app, uid="one", url="https://a.example/in")
    organizations.there("PUT", "/app/acme/endpoint/one/signatures", {"signatures": [scheme]})
    # When it is copied, then it signs by the same here
    shown = {each["name"]: each for each in organizations.imported()}
    assert (shown["acme/one"]["outcome"], shown["acme/one"]["note"]) == ("made", "")
    for rest in ("/signatures", "/secret"):
        assert organizations.here(f"/app/acme/endpoint/one{rest}") == organizations.there(
            "GET", f"/app/acme/endpoint/one{rest}"
        )
    # And a second run changes nothing, until the secret there changes
    assert organizations.imported() == []
    changed = {"signatures": [{**scheme, "secret": "whsec_another-one-of-32-letters-or-so"}]}
    organizations.there("PUT", "/app/acme/endpoint/one/signatures", changed)
    assert [each["outcome"] for each in organizations.imported()] == ["changed"]
    assert organizations.here("/app/acme/endpoint/one/secret")["key"] == "whsec_another-one-of-32-letters-or-so"


def test_a_scheme_whose_secret_is_not_shown_is_named(organizations: Organizations) -> None:
    app = organizations.world.make_app(uid="acme")
    organizations.world.make_endpoint(app, uid="one", secret=symmetric("s"))
    organizations.there("PUT", "/app/acme/endpoint/one/signatures", {"signatures": [STANDARD, OWN]})
    shown = {each["name"]: each for each in organizations.imported()}
    assert "X-Acme" in shown["acme/one"]["note"]
    assert organizations.here("/app/acme/endpoint/one/secret")["key"] == symmetric("s")


def test_many_are_read_page_by_page(organizations: Organizations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.migration.svix.PAGE", 2)
    app = organizations.world.make_app(uid="acme")
    for number in range(5):
        organizations.world.make_endpoint(app, uid=f"e{number}")
    shown = organizations.imported()
    assert len([each for each in shown if each["kind"] == "endpoint"]) == 5


def test_a_wrong_token_is_one_line(organizations: Organizations) -> None:
    organizations.imported("--token", "nonsense", code=1)
    assert "401" in organizations.errors
    assert "nonsense" not in organizations.errors


class Scripted(Rest):
    """Answers in order; the last answer repeats for ever."""

    def __init__(self, *answers: Any) -> None:
        super().__init__("https://there.example", PROJECT, "t")
        self._answers = list(answers)
        self.asked = 0

    def call(self, *_: Any, **__: Any) -> Any:
        self.asked += 1
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


EMPTY: dict[str, Any] = {"data": [], "iterator": None, "done": True}


def copied(there: Rest) -> tuple[list[Any], list[float]]:
    """The copied objects, and the waits."""
    slept: list[float] = []
    migration = Migration(there=there, here=Scripted(EMPTY), dry=False, sleep=slept.append)
    return list(migration.run()), slept


def test_a_server_that_asks_for_patience_gets_it() -> None:
    assert copied(Scripted(Refused(429, "slow down"), Refused(503, "a moment"), EMPTY)) == ([], [1.0, 2.0])
    never = Scripted(Refused(429, "slow down"))
    with pytest.raises(Refused):
        copied(never)
    assert never.asked == TRIES


@pytest.mark.parametrize(
    "answer",
    [[], {}, {"data": None}, {"data": [1]}, {"data": [{}], "done": True}, {"data": [{"name": 1}], "done": True}],
)
def test_a_server_that_answers_something_else_is_one_line(answer: Any) -> None:
    with pytest.raises(click.ClickException):
        copied(Scripted(answer))


def test_a_list_that_stands_still_ends() -> None:
    there = Scripted({"data": [], "iterator": "x", "done": False})
    assert copied(there)[0] == []
    # Of applications, event types and connectors
    assert there.asked <= 9


@pytest.mark.parametrize(
    ("token", "url"),
    [
        ("testsk_abc.eu", "https://api.eu.svix.com"),
        ("sk_a.b.us", "https://api.us.svix.com"),
        ("testsk_abc", "https://api.svix.com"),
        ("sk_abc.evil.example", "https://api.svix.com"),
    ],
)
def test_a_tokens_region_says_where_svix_is(token: str, url: str) -> None:
    assert svix_url(token) == url
