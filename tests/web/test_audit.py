"""The audit trail: every route that changes settings leaves its entries, no other does, and neither holds a secret."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.web.described import violation
from tests.web.known_good import GOOD, QUEUE, ROUTES, ask, request_to
from tests.web.protocols import Answer, Served
from tests.web.shapes import world_of

from pushhub.base.credentials import MASK
from pushhub.base.errors import Unavailable
from pushhub.engine.projects.tokens import token_hash
from pushhub.web.audit import audit, redacted

OF_MESSAGES = {
    *("ironmq.post_messages", "ironmq.post_webhook", "ironmq.delete_messages", "ironmq.reserve_messages"),
    *("ironmq.delete_message", "ironmq.touch_message", "ironmq.release_message"),
    *("hub.push_message", "hub.handle_message", "notifications.publish"),
    *("webhooks.create_message", "webhooks.precheck_message", "webhooks.seek", "webhooks.take_in"),
    *("webhooks.create_stream_events", "webhooks.acknowledge"),
}
"""Messages and their consumers: delivery records say what became of them."""
OF_LOOKS = {
    "ironmq.start_past_search",
    *("webhooks.count_by_app", "webhooks.count_by_event_type", "webhooks.ask_source_consent"),
}
"""Questions that are asked with another method than GET."""
OF_CONSUMERS = {"notifications.create_token"}
"""A token that is stored nowhere, made whenever a consumer connects."""
SECRETS = {"secret", "key", "token", "value", "password", "X-Key", "Authorization", "X-Own", "identity"}
"""Names of fields and headers in good requests that hold what opens something."""
CANARY = "c4n4ry"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\n"


class Kept:
    """A trail in memory.

    Attributes:
        entries: What was kept.
        fails: The parts that cannot be kept.
    """

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.fails: set[str] = set()

    def append(self, project: str, at: str, name: str, entry: Mapping[str, Any]) -> None:
        if entry["part"] in self.fails:
            raise Unavailable("s3:PutObject", "SlowDown")
        # As it is stored
        self.entries.append(json.loads(json.dumps(entry)))

    def newest(self, project: str, after: str, most: int) -> tuple[list[dict[str, Any]], str]:
        mine = [each for each in self.entries if each["project"] == project]
        return mine[-2 * most :], "2026-11-18T11:00:00.000Z-e63e39bb267dbe46" if len(mine) > 2 * most else ""


@pytest.fixture
def trail() -> Iterator[Kept]:
    audit.trail = kept = Kept()
    yield kept
    audit.trail = None


def sealed(value: Any, name: str = "") -> Any:
    """A body with a canary for each secret in it."""
    if isinstance(value, dict):
        # Variables of code and parameters of services have any names.
        inside = name in ("variables", "parameters")
        return {key: CANARY if inside else sealed(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [sealed(each, name) for each in value]
    return CANARY if name in SECRETS and isinstance(value, str) else value


@pytest.mark.parametrize("name", GOOD)
def test_every_change_of_settings_leaves_its_entries_and_nothing_else_does(trail: Kept, name: str) -> None:
    # Given a good request to a route
    api, route = world_of(name), ROUTES[name]
    names, body, query = request_to(api, name)
    trail.entries.clear()
    # When it is made
    answer = api.call(route, body, names=names, query=query)
    assert answer.status == route.status
    # Then it has left its two entries if it changes settings, and none if not
    if route.method == "GET" or name in OF_MESSAGES | OF_LOOKS | OF_CONSUMERS:
        assert trail.entries == []
        return
    asked, ended = trail.entries
    assert (asked["part"], ended["part"], asked["action"]) == ("asked", "ended", name)
    assert asked["id"] == ended["id"]
    assert ended["status"] == route.status
    # And they say who it was
    if name == "notifications.unsubscribe":
        assert (asked["project"], asked["by"]["kind"]) == ("", "link")
    elif name == "webhooks.consent":
        assert (asked["project"], asked["by"]["kind"]) == (PROJECT, "link")
        assert names["secret"] not in json.dumps(trail.entries)
    elif name in {"webhooks.logout", "webhooks.stream_logout", "webhooks.subscribe", "webhooks.subscribe_poller"}:
        assert (asked["project"], asked["by"]["kind"]) == (PROJECT, "portal")
    else:
        assert asked["project"] == PROJECT
        assert asked["by"] == {"kind": "token", "token": token_hash(api.token)[:12]}
    # And nothing of the caller's token
    assert api.token not in json.dumps(trail.entries)


@pytest.mark.parametrize("name", [name for name, good in GOOD.items() if good.body and ROUTES[name].is_audited])
def test_no_entry_holds_a_secret(trail: Kept, name: str) -> None:
    # Given a request with a secret in each place for one
    api = world_of(name)
    names, body, query = request_to(api, name)
    text = json.dumps(sealed(body)).replace("https://", f"https://user:{CANARY}@")
    trail.entries.clear()
    # When it is made, whether it is carried out or refused
    api.call(ROUTES[name], text.encode(), names=names, query=query)
    # Then no entry has one of them
    assert trail.entries
    assert CANARY not in json.dumps(trail.entries)


def test_what_is_no_secret_is_shown() -> None:
    shown = {
        "retries": 3,
        "push": {"subscribers": [{"name": "shop", "url": "https://shop.example/in", "paused": True}]},
        "headers": {"Content-Type": "text/plain", "X-Own": "hidden"},
        "filterTypes": ["a", "b"],
        "rate": None,
    }
    assert redacted(shown) == {**shown, "headers": {"Content-Type": "text/plain", "X-Own": MASK}}
    numbers = redacted({"parameters": {"pin": 8421, "on": True}, "parameter": {"value": 8421}})
    assert numbers == {"parameters": {"pin": MASK, "on": True}, "parameter": {"value": MASK}}
    assert redacted({"ca": f"{CERTIFICATE}-----BEGIN PRIVATE KEY-----"}) == {"ca": MASK}
    assert redacted({"ca": CERTIFICATE}) == {"ca": CERTIFICATE}
    hidden = {"token": "x", "keys": [{"old": "x"}], "value": "x", "secret": {"a": ["x"]}, "headers": {"A": {"b": "x"}}}
    assert "x" not in json.dumps([*redacted(hidden).values()]).replace(MASK, "")
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    assert redacted(deep) == MASK


def a_queue(trail: Kept) -> Served:
    api = world_of("ironmq.put_queue")
    ask(api, "ironmq.put_queue", {"queue": {**QUEUE, "message_timeout": 60}}, queue="orders")
    trail.entries.clear()
    return api


def test_before_and_after_are_what_the_caller_could_see(trail: Kept) -> None:
    api = a_queue(trail)
    api.call(
        ROUTES["ironmq.change_queue"],
        {"queue": {"message_timeout": 90}},
        names={"queue": "orders"},
        headers={"user-agent": "ops/1"},
    )
    asked, ended = trail.entries
    assert asked["asked"] == {"queue": {"message_timeout": 90}}
    assert (asked["before"]["queue"]["message_timeout"], ended["after"]["queue"]["message_timeout"]) == (60, 90)
    assert asked["what"] == f"PATCH /3/projects/{PROJECT}/queues/orders"
    assert asked["from"]["agent"] == "ops/1"
    ask(api, "ironmq.delete_queue", queue="orders")
    *_, asked, ended = trail.entries
    assert (asked["before"]["queue"]["message_timeout"], ended["after"]) == (90, None)


def test_a_refused_change_is_kept_with_its_refusal(trail: Kept) -> None:
    api = a_queue(trail)
    answer = api.call(ROUTES["ironmq.change_queue"], {"queue": {"type": "?"}}, names={"queue": "orders"})
    assert [each.get("status") for each in trail.entries] == [None, answer.status]
    # Who is not admitted leaves nothing
    trail.entries.clear()
    api.call(ROUTES["ironmq.change_queue"], {"queue": {}}, names={"queue": "orders"}, token="wrong")
    assert trail.entries == []


def test_nothing_is_changed_if_it_cannot_be_kept_and_what_was_changed_stays(trail: Kept) -> None:
    api = a_queue(trail)
    change = {"queue": {"message_timeout": 90}}
    trail.fails.add("asked")
    assert api.call(ROUTES["ironmq.change_queue"], change, names={"queue": "orders"}).status == 503
    shown = ask(api, "ironmq.show_queue", queue="orders").body["queue"]
    assert shown["message_timeout"] == 60
    # When only the end cannot be kept, then the answer is the change's own
    trail.fails = {"ended"}
    ask(api, "ironmq.change_queue", change, queue="orders")
    [asked] = trail.entries
    assert asked["action"] == "ironmq.change_queue"


def test_an_owners_portal_is_told_from_the_organization(trail: Kept) -> None:
    # Given an application's owner with a token of their own
    api = world_of("webhooks.create_endpoint")
    names, _ = GOOD["webhooks.create_endpoint"].prepare(api)
    token = ask(api, "webhooks.portal_access", {}, app=names["app"]).body["token"]
    trail.entries.clear()
    # When they add an endpoint
    created = api.call(
        ROUTES["webhooks.create_endpoint"], {"url": "https://b.example/in"}, names={"app": names["app"]}, token=token
    )
    # Then the entries say that, and what was made
    asked, ended = trail.entries
    assert (asked["by"]["kind"], asked["by"]["token"]) == ("portal", token_hash(token)[:12])
    assert asked["by"]["app"].startswith("app_")
    assert ended["made"] == created.body["id"]


def test_a_project_sees_who_changed_what(trail: Kept) -> None:
    api = a_queue(trail)
    ask(api, "ironmq.change_queue", {"queue": {"message_timeout": 90}}, queue="orders")
    answer = ask(api, "ironmq.list_changes").body
    [change] = answer["changes"]
    assert (answer["kept"], answer["after"]) == (True, None)
    assert (change["action"], change["status"], change["made"]) == ("ironmq.change_queue", 200, None)
    assert change["after"]["queue"]["message_timeout"] == 90
    assert violation("ironmq.list_changes", Answer(200, answer, {})) is None
    # What is no cursor is refused, and a hub without a trail says so
    assert api.call(ROUTES["ironmq.list_changes"], query={"after": "../x"}).status == 400
    audit.trail = None
    assert ask(api, "ironmq.list_changes").body == {"kept": False, "changes": [], "after": None}
