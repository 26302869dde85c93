"""Endpoints, subscribers and services behind OAuth 2.0, with tokens of a token server that knows nothing of the hub:
npm's oidc-provider.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from tests.engine.world import World
from tests.fakes.private_keys import secret_base64
from tests.hostile import Peer
from tests.ironmq.api.hub import Hub
from tests.stack.endpoints import Push, Recorder, redirecting
from tests.stack.node import NodeMissing
from tests.stack.project import ProjectClient, unique
from tests.stack.running import RunningStack
from tests.stack.webhooks.token_server import SECRET, TokenServer
from tests.webhooks.world import WebhooksWorld

from pushhub.egress.sender import GuardedSender

pytestmark = pytest.mark.slow

CLIENTS: dict[str, dict[str, Any]] = {
    "basic": {"authMethod": "clientSecretBasic", "clientSecret": SECRET},
    "post": {"authMethod": "clientSecretPost", "clientSecret": SECRET},
    "jwt": {
        "authMethod": "clientSecretJwt",
        "jwtParams": {"secretBase64": secret_base64(), "signingAlgorithm": "RS256", "secretId": "k1"},
    },
}


@pytest.fixture(scope="module")
def server() -> Iterator[TokenServer]:
    try:
        created = TokenServer(seconds=600)
    except NodeMissing:
        pytest.skip("there is no Node here")
    with created:
        yield created


def oauth(server: TokenServer, client: str) -> dict[str, Any]:
    asked = {"grantType": "clientCredentials", "clientId": client, "tokenUrl": server.token_url}
    return {**asked, "scopes": ["webhooks"], **CLIENTS[client]}


def is_valid(server: TokenServer, authorization: str | None) -> bool:
    """Whether the token server says that it gave this token, and that it is still valid."""
    kind, _, token = (authorization or "").partition(" ")
    form = {"token": token, "client_id": "post", "client_secret": SECRET}
    answer = requests.post(f"{server.issuer}/token/introspection", data=form, timeout=60)
    return kind == "Bearer" and answer.ok and answer.json()["active"] is True


def test_every_method_gets_a_token_and_needs_one_request(server: TokenServer) -> None:
    # Given endpoints whose receivers want tokens, and the real sender
    world = WebhooksWorld()
    world.clock.set(time.time_ns() // 1_000_000)
    world.ports.sender = GuardedSender(now=world.clock.now, allowed_targets=["loopback"])
    app = world.make_app()
    with Recorder() as recorder:
        endpoints = {client: recorder.endpoint(path=client) for client in CLIENTS}
        for client, endpoint in endpoints.items():
            created = world.make_endpoint(app, endpoint.url)
            world.ask("PUT", f"/app/{app}/endpoint/{created}/oauth", oauth(server, client))
        # When messages are pushed
        for _ in range(3):
            world.ask("POST", f"/app/{app}/msg", {"eventType": "order.paid", "payload": {}})
            world.run(seconds=1)
        # Then each endpoint got tokens that its token server has given
        for endpoint in endpoints.values():
            tokens = {each.headers["Authorization"] for each in endpoint.wait(3)}
            assert len(tokens) == 1
            assert is_valid(server, tokens.pop())
    # And gave once
    assert sorted(each["client"] for each in server.answered(least=3)) == ["basic", "jwt", "post"]


@pytest.mark.parametrize("client", CLIENTS)
def test_what_the_token_server_refuses_reaches_nobody(server: TokenServer, client: str) -> None:
    world = WebhooksWorld()
    world.clock.set(time.time_ns() // 1_000_000)
    world.ports.sender = GuardedSender(now=world.clock.now, allowed_targets=["loopback"])
    app = world.make_app()
    with Recorder() as recorder:
        endpoint = recorder.endpoint(path=client)
        created = world.make_endpoint(app, endpoint.url)
        wrong = {"clientSecret": "another-secret"} if client != "jwt" else {"clientId": "nobody"}
        world.ask("PUT", f"/app/{app}/endpoint/{created}/oauth", {**oauth(server, client), **wrong})
        world.ask("POST", f"/app/{app}/msg", {"eventType": "order.paid", "payload": {}})
        world.run(seconds=1)
        assert not endpoint.pushes
    reported = server.answered(least=1)
    assert [each.get("error") for each in reported] == ["invalid_client"]
    (attempt,) = world.ask("GET", f"/app/{app}/attempt/endpoint/{created}")["data"]
    assert attempt["response"] == "oauth: invalid_client"


OWN_WORDS = {"basic": "client_secret_basic", "post": "client_secret_post", "jwt": "private_key_jwt"}


def in_own_words(server: TokenServer, client: str) -> dict[str, Any]:
    """The same grant as queues and stores have it."""
    asked = {"token_url": server.token_url, "client_id": client, "scopes": ["webhooks"]}
    if client == "jwt":
        jwt = {"secret_base64": secret_base64(), "signing_algorithm": "RS256", "secret_id": "k1"}
        return {**asked, "auth_method": OWN_WORDS[client], "jwt_params": jwt}
    return {**asked, "auth_method": OWN_WORDS[client], "client_secret": SECRET}


@pytest.mark.stack
def test_a_subscriber_and_a_service_on_the_running_stack_get_tokens_too(
    stack: RunningStack, server: TokenServer
) -> None:
    # Given a queue with a subscriber for each way to authenticate, and one with a secret that is wrong
    project, queue = ProjectClient.another(stack), unique("gated")
    server.answered()
    with Recorder() as recorder:
        endpoints = {client: recorder.endpoint(path=client) for client in CLIENTS}
        wrong = recorder.endpoint(path="wrong")
        grants = {client: in_own_words(server, client) for client in CLIENTS}
        refused = {"name": "wrong", "url": wrong.url, "oauth": {**grants["post"], "client_secret": "another-secret"}}
        gated = [{"name": each, "url": endpoints[each].url, "oauth": grants[each]} for each in CLIENTS]
        project.make_push(queue, *gated, refused)
        assert SECRET not in json.dumps(project.info(queue))

        # And a service that takes messages and answers later
        def later(peer: Peer, push: Push) -> bool:
            said = {"message_id": json.loads(push.body)["message_id"]}
            more = {"update_url": service.url, "delay": 1} if len(service.pushes) == 1 else {}
            return peer.answer(json.dumps({**said, **more}).encode())

        service = recorder.endpoint(later, path="service")
        mapping = {"name": "acme.import", "url": service.url, "token": "t" * 32, "messages": ["order:new"]}
        store, key = f"{stack.base_url}/api/stores/{project.project_id}", {"X-Augury-Token": project.token}
        asked = {"mapping": {**mapping, "oauth": grants["post"]}}
        created = requests.post(f"{store}/mappings", json=asked, headers=key, timeout=40)
        assert created.status_code == 201, created.text
        assert SECRET not in created.text
        # When messages are posted to both
        for number in range(5):
            project.post(queue, f"{number}")
        order = {"message": "order:new", "payload": {"number": "R1"}}
        assert requests.post(f"{store}/messages", json=order, headers=key, timeout=40).status_code == 201
        # Then each request has a token of the token server, asked for once for each; the poll has the same one
        for endpoint in endpoints.values():
            tokens = {each.headers["Authorization"] for each in endpoint.wait(5)}
            assert len(tokens) == 1
            assert is_valid(server, tokens.pop())
        tokens = {each.headers["Authorization"] for each in service.wait(2)}
        assert len(tokens) == 1
        assert is_valid(server, tokens.pop())
        # When a receiver takes a token no more, then the message comes with another one in the same attempt
        fickle, once = recorder.endpoint(401, 200, path="fickle"), unique("fickle")
        project.make_push(once, {"name": "fickle", "url": fickle.url, "oauth": grants["basic"]})
        [message_id] = project.post(once, "x")
        tokens = {each.headers["Authorization"] for each in fickle.wait(2)}
        assert [is_valid(server, each) for each in tokens] == [True, True]
        project.wait_codes(once, message_id, [200])
        assert project.tries(once, message_id) == [1]
    # And nothing came to the one with the wrong secret, for which the token server was not asked for each message
    assert not wrong.pushes
    given = server.answered(least=7)
    gave = sorted(each["client"] for each in given if "error" not in each)
    assert gave == ["basic", "basic", "basic", "jwt", "post", "post"], given
    assert {each["error"] for each in given if "error" in each} == {"invalid_client"}
    assert len(given) - len(gave) < 5


def real_hub(*allowed: str) -> Hub:
    """A hub on fakes whose requests are real."""
    world = World()
    world.clock.set(time.time_ns() // 1_000_000)
    world.ports.sender = GuardedSender(now=world.clock.now, allowed_targets=[*allowed])
    return Hub(world)


def test_a_token_server_that_redirects_leads_nowhere() -> None:
    # Given a token server that redirects to an address inside a network, and a subscriber behind it
    hub = real_hub("loopback")
    with Recorder() as recorder:
        inside = recorder.endpoint(path="meta-data")
        tokens = recorder.endpoint(redirecting(307, inside.url), path="token")
        receiver = recorder.endpoint(path="in")
        oauth = {"token_url": tokens.url, "client_id": "a", "client_secret": SECRET}
        hub.make("q", push={"subscribers": [{"name": "s", "url": receiver.url, "oauth": oauth}], "retries": 0})
        [message_id] = hub.post("q", "x")
        hub.world.run(seconds=0.5)
        # Then the secret went to the token server alone
        assert len(tokens.pushes) == 1
        assert not inside.pushes
        assert not receiver.pushes
    assert hub.statuses("q", message_id)[0]["msg"] == "oauth: the token server answered 307"
