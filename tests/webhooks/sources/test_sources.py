"""Sources as their owners make, see and change them, in Svix's words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.webhooks.sources.test_arrivals import BODY, ENDPOINT, SECRET, Sources, github

from pushhub.base.webhook_senders import SENDERS
from pushhub.webhooks.model.source import GRACE_MS, MOST_ROTATIONS


@pytest.fixture
def world() -> Sources:
    return Sources()


def test_a_source_is_shown_without_its_secret_and_with_its_url(world: Sources) -> None:
    status, created = world.manage(
        "POST",
        "",
        {"name": "Repos", "uid": "repos", "metadata": {"a": "b"}, "type": "github", "config": {"secret": SECRET}},
    )
    assert status == 201
    assert {name: created[name] for name in ("name", "uid", "metadata", "type", "config", "verified")} == {
        "name": "Repos",
        "uid": "repos",
        "metadata": {"a": "b"},
        "type": "github",
        "config": {},
        "verified": True,
    }
    assert created["id"].startswith("src_")
    assert SECRET not in json.dumps(created)
    for name in (created["id"], "repos"):
        assert world.manage("GET", f"/{name}") == (200, created)
    assert world.manage("GET", "")[1]["data"] == [created]


def test_sources_and_applications_are_two_lists_with_uids_of_their_own(world: Sources) -> None:
    app = world.make_app(uid="same")
    status, source = world.manage("POST", "", {"name": "s", "uid": "same", "type": "generic-webhook", "config": None})
    assert status == 201
    assert [each["id"] for each in world.ask("GET", "/app")["data"]] == [app]
    assert [each["id"] for each in world.manage("GET", "")[1]["data"]] == [source["id"]]
    assert world.ask("GET", "/app/same")["id"] == app
    assert world.manage("GET", "/same")[1]["id"] == source["id"]
    assert world.manage("GET", f"/{app}")[0] == 404
    # And what can be asked of an application can be asked of a source, by its id
    assert world.ask("GET", f"/app/{source['id']}")["id"] == source["id"]
    assert (
        world.manage("POST", "", {"name": "s", "uid": "same", "type": "svix", "config": {"secret": "aaaa"}})[0] == 409
    )


def test_another_project_sees_nothing_of_a_source(world: Sources) -> None:
    source = world.create(secret=SECRET)
    other = world.other_token
    assert world.manage("GET", "", token=other)[1]["data"] == []
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/stats"),
        ("GET", "/endpoint"),
        ("POST", "/token/rotate"),
    ):
        assert world.manage(method, f"/{source['id']}{path}", token=other)[0] == 404
    assert world.manage("GET", "", token="nobody")[0] == 401


@pytest.mark.parametrize("kind", ["adobe-sign", "docusign", "cron", "telnyx", "no-such-kind"])
def test_a_kind_that_nobody_verifies_here_is_refused_by_name(kind: str) -> None:
    status, body = Sources().manage("POST", "", {"name": "s", "type": kind, "config": {"secret": "s"}})
    assert (status, body["detail"][0]["loc"]) == (422, ["body", "type"])
    assert kind in body["detail"][0]["msg"]


@pytest.mark.parametrize("kind", SENDERS)
def test_each_kind_is_made_and_those_that_sign_always_need_a_secret(world: Sources, kind: str) -> None:
    config = {"secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"} if kind != "generic-webhook" else {}
    assert world.manage("POST", "", {"name": "s", "type": kind, "config": config})[0] == 201
    status, body = world.manage("POST", "", {"name": "s", "type": kind})
    assert status == (422 if SENDERS[kind].demands_secret else 201)
    if status == 422:
        assert body["detail"][0]["loc"] == ["body", "config", "secret"]


@pytest.mark.parametrize(
    ("kind", "config", "place"),
    [
        ("svix", {"secret": "whsec_not base64"}, ["config", "secret"]),
        ("stripe", {"secret": ""}, ["config", "secret"]),
        ("stripe", {"secret": 5}, ["config", "secret"]),
        ("stripe", "text", ["config"]),
        ("meta", {"secret": "s", "verifyToken": ""}, ["config", "verifyToken"]),
        ("generic-webhook", {"signature": []}, ["config", "signature"]),
        # What would not be heeded, so that anybody could post
        ("generic-webhook", {"secret": "s"}, ["config", "secret"]),
        ("github", {"signature": {"preset": "stripe", "secret": "s"}}, ["config", "signature"]),
        ("generic-webhook", {"signature": {"preset": "unknown", "secret": "s"}}, ["config", "signature", "preset"]),
        ("generic-webhook", {"signature": {"preset": "standard-webhooks"}}, ["config", "signature", "preset"]),
        ("generic-webhook", {"signature": {"preset": "stripe"}}, ["config", "secret"]),
        (
            "generic-webhook",
            {"signature": {"preset": "stripe", "secret": "s", "endsAt": "2027-01-01T00:00:00Z"}},
            ["config", "signature", "endsAt"],
        ),
    ],
)
def test_what_could_not_verify_anything_is_refused_with_its_place(kind: str, config: Any, place: list[str]) -> None:
    status, body = Sources().manage("POST", "", {"name": "s", "type": kind, "config": config})
    assert (status, body["detail"][0]["loc"]) == (422, ["body", *place])


class TestReplacing:
    """A PUT, which is all that Svix's clients have."""

    def test_it_keeps_url_secret_and_endpoints_unless_it_says_otherwise(self, world: Sources) -> None:
        source = world.create(secret=SECRET)
        status, changed = world.manage("PUT", f"/{source['id']}", {"name": "new", "type": "github", "config": {}})
        assert (status, changed["name"], changed["ingestUrl"]) == (200, "new", source["ingestUrl"])
        assert world.arrive(source, BODY, github())["statusCode"] == 200
        # Another secret counts at once
        wanted = {"name": "new", "type": "github", "config": {"secret": "another"}}
        assert world.manage("PUT", f"/{source['id']}", wanted)[0] == 200
        assert world.arrive(source, BODY, github(delivery="2"))["statusCode"] == 400
        assert world.arrive(source, BODY, github(delivery="2", secret="another"))["statusCode"] == 200
        world.run(seconds=5)
        assert len(world.sender.requests_to(ENDPOINT)) == 2

    def test_only_null_takes_a_secret_away_and_another_kind_has_its_own(self, world: Sources) -> None:
        source = world.create(secret=SECRET)
        path = f"/{source['id']}"
        assert world.manage("PUT", path, {"name": "s", "type": "stripe", "config": {}})[0] == 422
        assert (
            world.manage("PUT", path, {"name": "s", "type": "github", "config": {"secret": None}})[1]["verified"]
            is False
        )
        assert world.arrive(source, BODY, {})["statusCode"] == 200

    def test_a_shown_scheme_may_be_sent_back(self, world: Sources) -> None:
        scheme = {"content": "{body}", "header": {"name": "X-Acme-Signature"}, "secret": "acme-secret"}
        source = world.create("generic-webhook", signature=scheme)
        wanted = {name: source[name] for name in ("name", "type", "config")}
        assert world.manage("PUT", f"/{source['id']}", wanted)[1]["verified"] is True
        # And without it, nothing is verified any more
        assert world.manage("PUT", f"/{source['id']}", {**wanted, "config": {}})[1]["verified"] is False

    def test_an_unknown_one_is_created(self, world: Sources) -> None:
        status, created = world.manage(
            "PUT", "/mine", {"name": "s", "uid": "mine", "type": "generic-webhook", "config": {}}
        )
        assert (status, created["uid"]) == (201, "mine")


def test_a_rotated_url_goes_on_for_48_hours_and_is_rotated_three_times_in_them(world: Sources) -> None:
    # Given a source whose URL was rotated
    source = world.create(secret=SECRET)
    urls = [source]
    for _ in range(MOST_ROTATIONS):
        status, rotated = world.manage("POST", f"/{source['id']}/token/rotate")
        assert status == 200
        urls.append(rotated)
    # When it is asked for once more, then it is refused
    assert world.manage("POST", f"/{source['id']}/token/rotate")[1]["code"] == "limit_reached"
    assert world.manage("GET", f"/{source['id']}")[1]["ingestUrl"] == urls[-1]["ingestUrl"]

    def taken() -> list[int]:
        return [
            world.arrive(each, BODY, github(delivery=str(number)))["statusCode"] for number, each in enumerate(urls)
        ]

    # And the old ones work, for 48 hours
    assert taken() == [200] * len(urls)
    world.clock.advance(seconds=GRACE_MS // 1000)
    assert taken() == [404] * MOST_ROTATIONS + [200]
    assert world.manage("POST", f"/{source['id']}/token/rotate")[0] == 200


def test_a_portal_of_a_source_shows_it_and_no_other(world: Sources) -> None:
    source, other = world.create(secret=SECRET), world.create(secret=SECRET)
    status, access = world.manage("POST", f"/{source['id']}/dashboard", {"expiry": 3600, "readOnly": True})
    assert status == 200
    token = access["token"]
    assert world.ask("GET", f"/app/{source['id']}/endpoint", token=token)["data"][0]["url"] == ENDPOINT
    assert world.call("GET", f"/app/{other['id']}/endpoint", token=token).status == 404
    assert world.call("POST", f"/app/{source['id']}/endpoint", {"url": ENDPOINT}, token=token).status == 403
    # Neither its URL nor its sender's secret is the portal's
    assert world.manage("GET", f"/{source['id']}", token=token)[0] == 403
    assert "ingest/in" not in json.dumps(world.ask("GET", f"/app/{source['id']}", token=token))


class TestEndpoints:
    """They are those of any application."""

    def test_they_are_made_changed_and_deleted(self, world: Sources) -> None:
        source = world.create(url=None, secret=SECRET)
        path = f"/{source['id']}/endpoint"
        wanted = {"url": ENDPOINT, "uid": "e", "headers": {"X-Shop": "1"}, "throttleRate": None, "metadata": None}
        status, created = world.manage("POST", path, wanted)
        assert (status, created["url"], created["uid"], created["metadata"]) == (201, ENDPOINT, "e", {})
        assert world.manage("GET", f"{path}/e/headers")[1] == {"headers": {"X-Shop": "1"}, "sensitive": []}
        assert world.manage("PUT", f"{path}/e/headers", {"headers": {"X-Other": "2"}})[0] == 204
        assert world.manage("PUT", f"{path}/e", {"url": ENDPOINT, "uid": "e", "disabled": True})[1]["disabled"] is True
        assert world.manage("PUT", f"{path}/other", {"url": ENDPOINT, "uid": "other"})[0] == 201
        key = world.manage("GET", f"{path}/e/secret")[1]["key"]
        assert world.manage("POST", f"{path}/e/secret/rotate", {"gracePeriodSeconds": 0})[0] == 204
        assert world.manage("GET", f"{path}/e/secret")[1]["key"] != key
        assert {each["uid"] for each in world.manage("GET", path)[1]["data"]} == {"e", "other"}
        assert world.manage("DELETE", f"{path}/e")[0] == 204
        assert world.manage("GET", f"{path}/e")[0] == 404

    def test_a_transformation_is_set_and_shown(self, world: Sources) -> None:
        source = world.create(url=None, secret=SECRET)
        created = world.manage("POST", f"/{source['id']}/endpoint", {"url": ENDPOINT})[1]
        path = f"/{source['id']}/endpoint/{created['id']}/transformation"
        assert world.manage("GET", path)[1]["code"] is None
        code = "function handler(webhook) { return webhook }"
        assert world.manage("PATCH", path, {"code": code, "enabled": True})[0] == 204
        shown = world.manage("GET", path)[1]
        assert (shown["code"], shown["enabled"]) == (code, True)
