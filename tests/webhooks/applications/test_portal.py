"""Portal tokens: what they give access to, and how they are revoked."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.engine.world import PROJECT
from tests.fakes import FakeClock
from tests.fakes.webhook_tasks import FakePortalFrames, FakePortalTokens

from pushhub.webhooks.applications.portal import Portal
from pushhub.webhooks.model.application import Application, ApplicationFields
from pushhub.webhooks.model.ids import IdPrefix, new_id
from pushhub.webhooks.model.portal import (
    EVERYTHING,
    Capability,
    PortalAccess,
    PortalAsk,
    capability_for,
    portal_token,
)
from pushhub.webhooks.model.refusals import Unprocessable
from pushhub.webhooks.wire.fields import Fields
from pushhub.webhooks.wire.portal import parse_expire, parse_portal_ask

CLOCK = FakeClock()
NOW = CLOCK.now()


def app(**more: object) -> Application:
    return Application(
        project=PROJECT,
        app_id=new_id(IdPrefix.APPLICATION, NOW),
        fields=ApplicationFields(name="a"),
        created_at=NOW,
        updated_at=NOW,
    )


class CrossedTokens(FakePortalTokens):
    """Tokens one of which is about to be changed when something else happens."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], None] = lambda: None

    def change_access(self, access: PortalAccess) -> None:
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        super().change_access(access)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def portal(clock: FakeClock) -> Portal:
    return Portal(tokens=FakePortalTokens(), frames=FakePortalFrames(), clock=clock)


def test_a_token_opens_its_application_until_it_expires(portal: Portal, clock: FakeClock) -> None:
    application = app()
    token = portal.open(application, PortalAsk(expiry_s=3_600, session="s", flags=frozenset({"beta"}))).token
    found = portal.find(token)
    assert found is not None
    assert (found.project, found.app_id, found.session) == (PROJECT, application.app_id, "s")
    assert (found.capabilities, found.flags) == (EVERYTHING, frozenset({"beta"}))
    assert token not in repr(found)
    clock.advance(seconds=3_600)
    assert portal.find(token) is None


def test_a_text_that_is_no_token_opens_nothing(portal: Portal) -> None:
    application = app()
    token = portal.open(application, PortalAsk()).token
    for wrong in (
        "",
        "x",
        token[:-1],
        token + "x",
        "appsk___",
        portal_token("nobody", application.app_id, "x"),
        portal_token(PROJECT, "app_x", "y"),
        "appsk_\udc80_x_y",
    ):
        assert portal.find(wrong) is None, wrong


def test_tokens_end_one_by_one_by_session_and_all_together(portal: Portal, clock: FakeClock) -> None:
    application, other = app(), app()
    one, two, three = (portal.open(application, PortalAsk(session=name)).token for name in ("one", "two", None))
    others = portal.open(other, PortalAsk(session="two")).token
    portal.close(one)
    assert [portal.find(each) is not None for each in (one, two, three, others)] == [False, True, True, True]
    portal.expire(application, sessions=["two"])
    assert [portal.find(each) is not None for each in (two, three, others)] == [False, True, True]
    # Given a grace period, then they work for that long, and a second one does not prolong it
    portal.expire(application, grace_s=60)
    portal.expire(application, grace_s=3_600)
    assert portal.find(three) is not None
    clock.advance(seconds=60)
    assert portal.find(three) is None
    assert portal.find(others) is not None


def test_a_token_ends_when_the_sooner_of_two_ends_that_cross_says(clock: FakeClock) -> None:
    # Given a token that shall end in an hour, and before that is stored, in a minute
    tokens = CrossedTokens()
    portal = Portal(tokens=tokens, frames=FakePortalFrames(), clock=clock)
    application = app()
    token = portal.open(application, PortalAsk()).token
    tokens.meanwhile = lambda: portal.expire(application, grace_s=60)
    portal.expire(application, grace_s=3_600)
    # Then it ends in a minute
    clock.advance(seconds=60)
    assert portal.find(token) is None


@pytest.mark.parametrize(
    ("method", "path", "needed"),
    [
        ("GET", "app/x/endpoint/y", Capability.VIEW_BASE),
        ("GET", "app/x/endpoint/y/secret", Capability.VIEW_SECRET),
        ("POST", "app/x/endpoint/y/secret/rotate", Capability.MANAGE_SECRET),
        ("PATCH", "app/x/endpoint/y/headers", Capability.MANAGE_ENDPOINT),
        ("DELETE", "app/x/endpoint/y", Capability.MANAGE_ENDPOINT),
        ("POST", "app/x/msg/z/endpoint/y/resend", Capability.CREATE_ATTEMPTS),
        ("POST", "app/x/endpoint/y/recover", Capability.CREATE_ATTEMPTS),
    ],
)
def test_each_request_needs_a_capability(method: str, path: str, needed: Capability) -> None:
    assert capability_for(method, path.split("/")) is needed


def test_what_is_asked_for_is_read_with_its_defaults() -> None:
    assert parse_portal_ask(Fields({})) == PortalAsk()
    nulls = dict.fromkeys(("capabilities", "expiry", "sessionId", "featureFlags", "readOnly"))
    assert parse_portal_ask(Fields({**nulls, "featureFlags": []})) == PortalAsk()
    assert parse_portal_ask(Fields({"readOnly": True})).capabilities == {Capability.VIEW_BASE}
    asked = parse_portal_ask(
        Fields({"capabilities": ["ManageEndpoint"], "expiry": 3600, "sessionId": "a@b", "featureFlags": ["f"]})
    )
    assert asked.capabilities == {Capability.VIEW_BASE, Capability.MANAGE_ENDPOINT}
    assert (asked.expiry_s, asked.session, asked.flags) == (3600, "a@b", frozenset({"f"}))
    assert parse_expire(Fields({})) == (0, None)
    assert parse_expire(Fields({"expiry": 60, "sessionIds": ["b", "a"]})) == (60, ("a", "b"))


@pytest.mark.parametrize(
    "body",
    [
        {"expiry": 3599},
        {"expiry": 604_801},
        {"expiry": "day"},
        {"sessionId": "a b"},
        {"sessionId": ""},
        {"sessionId": "x" * 65},
        {"capabilities": ["Everything"]},
        {"capabilities": "ViewBase"},
        {"featureFlags": ["a b"]},
    ],
)
def test_what_breaks_a_rule_is_refused(body: object) -> None:
    with pytest.raises(Unprocessable):
        parse_portal_ask(Fields(body))


@pytest.mark.parametrize("body", [{"expiry": -1}, {"expiry": 259_201}, {"sessionIds": ["a b"]}, {"sessionIds": 1}])
def test_an_end_that_breaks_a_rule_is_refused(body: object) -> None:
    with pytest.raises(Unprocessable):
        parse_expire(Fields(body))
