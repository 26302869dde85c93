"""Who asks for a token, and who waits for it: within an execution environment, and among several."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.engine.world import PROJECT
from tests.fakes import FakeClock, FakeSender, Reply
from tests.fakes.credentials import FakeVault
from tests.fakes.telemetry import FakeTelemetry
from tests.fakes.tokens import FakeTokens

from pushhub.base.errors import Conflict, Unavailable
from pushhub.base.oauth import POST, Grant
from pushhub.base.ports import PushRequest
from pushhub.engine.security.oauth import AccessTokens, NoToken, TokenOwner, TokenState

URL = "https://login.example/token"
GRANT = Grant(token_url=URL, method=POST, client_id="c", secret="s", revision="1")
OWNER = TokenOwner(PROJECT, "ep_1")
WAITS_MS = 10_000
"""How long a caller can wait."""


class Environments:
    """Several execution environments and one token server.

    Attributes:
        others: What another one was told while the token server was asked.
    """

    def __init__(self, store: FakeTokens | None = None) -> None:
        self.clock = FakeClock()
        self.store = store or FakeTokens()
        self.sender = FakeSender(self.clock)
        self.others: list[str] = []
        self.telemetry = FakeTelemetry()
        self.answer()

    def answer(self, *, token: str = "t", takes_ms: int = 0, meanwhile: AccessTokens | None = None) -> None:
        """Have the token server give a token, and somebody else ask for one while it does."""

        def ask(_: PushRequest) -> None:
            if meanwhile is not None:
                try:
                    self.others.append(self.token(meanwhile))
                except NoToken as error:
                    self.others.append(error.reason)

        body = json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": 3600}).encode()
        self.sender.script(URL, Reply(status_code=200, body=body, takes_ms=takes_ms, meanwhile=ask))

    def make(self) -> AccessTokens:
        """Another environment."""
        return AccessTokens(
            store=self.store, sender=self.sender, vault=FakeVault(), clock=self.clock, telemetry=self.telemetry
        )

    def token(self, tokens: AccessTokens, *, grant: Grant = GRANT) -> str:
        """A token, by a caller that can wait for so long."""
        return tokens.token(OWNER, grant, allowed=(), until=self.clock.now() + WAITS_MS)


@pytest.mark.parametrize("same", [True, False])
def test_one_asks_and_the_others_wait_for_it(same: bool) -> None:
    # Given a token server that has not answered yet when somebody else needs the same token
    hub = Environments()
    one = hub.make()
    hub.answer(meanwhile=one if same else hub.make())
    # When both ask, then one request is made; the other waits as long as it can, and no longer
    assert hub.token(one) == "t"
    assert hub.others == ["the token server has not answered yet"]
    assert len(hub.sender.requests) == 1
    assert sum(hub.clock.slept) <= WAITS_MS / 1000
    # And later, all have it
    assert hub.token(hub.make()) == hub.token(one) == "t"
    assert len(hub.sender.requests) == 1


def test_a_claim_of_the_dead_ends() -> None:
    # Given an environment that dies while it asks
    hub = Environments()

    def die(_: PushRequest) -> None:
        raise KeyboardInterrupt

    hub.sender.script(URL, Reply(status_code=200, meanwhile=die))
    with pytest.raises(KeyboardInterrupt):
        hub.token(hub.make())
    hub.answer()
    other = hub.make()
    # When another one needs the token, then it waits in vain at first, and asks itself when the claim has ended
    with pytest.raises(NoToken, match="not answered yet"):
        hub.token(other)
    assert hub.token(other) == "t"
    assert len(hub.sender.requests) == 2


def test_a_change_of_the_settings_counts_at_once() -> None:
    # Given settings by which there is no token
    hub = Environments()
    hub.sender.script(URL, 500)
    tokens = hub.make()
    for _ in range(2):
        with pytest.raises(NoToken, match="answered 500"):
            hub.token(tokens)
    assert len(hub.sender.requests) == 1
    # When they are changed, then the token server is asked at once; and nobody gets what was given by earlier ones
    hub.answer()
    changed = replace(GRANT, revision="2")
    assert hub.token(tokens, grant=changed) == hub.token(hub.make(), grant=changed) == "t"
    assert len(hub.sender.requests) == 2
    hub.token(tokens, grant=replace(GRANT, revision="3"))
    assert len(hub.sender.requests) == 3


class Failing(FakeTokens):
    """Fails at a given save."""

    def __init__(self, error: Exception, *, at: int) -> None:
        super().__init__()
        self.error = error
        self.left = at

    def save_token_state(self, state: TokenState) -> None:
        self.left -= 1
        if self.left == 0:
            raise self.error
        super().save_token_state(state)


def test_a_claim_that_cannot_be_written_asks_nobody() -> None:
    hub = Environments(Failing(Unavailable("dynamodb:PutItem"), at=1))
    with pytest.raises(Unavailable):
        hub.token(hub.make())
    assert not hub.sender.requests
    # A claim that loses a race looks again
    hub = Environments(Failing(Conflict("another was first"), at=1))
    assert hub.token(hub.make()) == "t"


@pytest.mark.parametrize("error", [Unavailable("dynamodb:PutItem"), Conflict("the settings have changed")])
def test_a_token_that_cannot_be_shared_is_used_all_the_same(error: Exception) -> None:
    hub = Environments(Failing(error, at=2))
    tokens = hub.make()
    assert hub.token(tokens) == hub.token(tokens) == "t"
    assert len(hub.sender.requests) == 1
    assert hub.telemetry.counts["TokensUnshared"] == 1


def test_a_refused_token_is_not_used_again_by_who_knows_it_though_there_is_no_other_yet() -> None:
    # Given an environment whose token is refused (simulation, gates, seed 2 of 0aa6faff), while the store fails
    hub = Environments(Failing(Unavailable("dynamodb:PutItem"), at=3))
    tokens = hub.make()
    assert hub.token(tokens) == "t"
    tokens.refuse(OWNER, "t")
    with pytest.raises(Unavailable):
        hub.token(tokens)
    # When the next attempt needs one, then another is asked for, once, and used from then on
    hub.answer(token="t2")
    assert hub.token(tokens) == hub.token(tokens) == "t2"
    assert len(hub.sender.requests) == 2
    # And a server that gives the same one again is asked no more often
    hub.answer(token="t2")
    tokens.refuse(OWNER, "t2")
    assert hub.token(tokens) == hub.token(tokens) == "t2"
    assert len(hub.sender.requests) == 3


def test_a_token_that_is_useless_is_tried_again_as_the_receiver_may_take_it_later() -> None:
    # Given a receiver that refuses a token and the new one, too
    hub = Environments()
    tokens = hub.make()
    tokens.refuse(OWNER, hub.token(tokens))
    hub.answer(token="t2")
    assert hub.token(tokens) == "t2"
    tokens.useless(OWNER, GRANT)
    # Then the next attempt is made with it, and when it is refused once more, no third one is asked for
    assert hub.token(tokens) == "t2"
    tokens.refuse(OWNER, "t2")
    with pytest.raises(NoToken, match="refuses new tokens, too"):
        hub.token(tokens)
    assert hub.token(tokens) == "t2"
    assert len(hub.sender.requests) == 2
