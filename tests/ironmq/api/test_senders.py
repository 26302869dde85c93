"""Queues that name the sender whose webhooks they take."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from tests.engine.world import BASE_URL, PROJECT
from tests.ironmq.api.hub import Hub

from pushhub.base.credentials import MASK
from pushhub.base.webhook_senders import GENERIC, SENDERS

SECRET = "It's a Secret to Everybody"
BODY = b'{"zen": "Keep it logically awesome.",\n "caf\xc3\xa9": 1.10}'
PATH = f"/3/projects/{PROJECT}/queues/q/webhook"
GITHUB = {"type": "github", "secret": SECRET}


def signed(body: bytes = BODY, secret: str = SECRET) -> dict[str, str]:
    """What GitHub sends with a body."""
    return {"X-Hub-Signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


def posted(hub: Hub, headers: dict[str, str], query: str = "") -> int:
    """The status with which what a sender posts is answered."""
    return hub.send("POST", PATH + query, BODY, headers, token="" if query else hub.token).status


@pytest.mark.parametrize("kind", ["pull", "multicast"])
def test_only_what_the_named_sender_signed_is_taken(hub: Hub, kind: str) -> None:
    # Given a queue of either kind that names its sender
    if kind == "pull":
        hub.make("q", webhook=GITHUB)
    else:
        hub.make_push("q", "https://a.example/in")
        hub.make("q", webhook=GITHUB)

    def taken() -> list[bytes]:
        if kind == "pull":
            return [each["body"].encode() for each in hub.call("GET", "/queues/q/messages?n=9").body["messages"]]
        hub.world.run(seconds=5)
        return [each.body for each in hub.world.sender.requests_to("https://a.example/in")]

    # When others post, then they are refused in the protocol's own words, and nothing is stored
    for headers in ({}, signed(secret="another"), signed(BODY + b" ")):
        refused = hub.send("POST", PATH, BODY, headers, token=hub.token)
        assert (refused.status, "sign" in refused.msg) == (400, True)
    assert taken() == []
    # When the sender posts, also with the token in its URL, then its bytes are taken
    assert posted(hub, signed()) == 201
    assert posted(hub, signed(), f"?oauth={hub.token}") == 201
    assert taken() == [BODY, BODY]
    # And other routes are as before
    assert hub.post("q", "x")


def test_a_signature_over_the_url_covers_its_query(hub: Hub) -> None:
    hub.make("q", webhook={"type": "hubspot", "secret": "hubspot-secret"})
    at, query = str(hub.world.clock.now()), f"?oauth={hub.token}&a=b%20c"
    content = f"POST{BASE_URL}{PATH}{query}".encode() + BODY + at.encode()
    signature = base64.b64encode(hmac.new(b"hubspot-secret", content, hashlib.sha256).digest()).decode()
    headers = {"X-HubSpot-Signature-v3": signature, "X-HubSpot-Request-Timestamp": at}
    assert posted(hub, headers, query) == 201
    assert posted(hub, headers, f"?oauth={hub.token}&a=c") == 400


def test_the_secret_is_sealed_kept_and_replaced(hub: Hub) -> None:
    assert hub.make("q", webhook=GITHUB)["webhook"] == {"type": "github"}
    stored = hub.world.config.queue(PROJECT, "q", fresh=True)
    assert stored is not None
    assert SECRET not in repr(stored)
    # What was shown may be sent back, and other changes leave it
    for settings in ({"webhook": {"type": "github"}}, {"message_timeout": 30}, {"webhook": None}, {"webhook": GITHUB}):
        hub.make("q", **settings)
        assert posted(hub, signed()) == 201
    # Another secret counts at once, and false ends it
    hub.make("q", webhook={**GITHUB, "secret": "another"})
    assert posted(hub, signed()) == 400
    assert posted(hub, signed(secret="another")) == 201
    assert "webhook" not in hub.make("q", webhook=False)
    assert posted(hub, {}) == 201


@pytest.mark.parametrize(
    "webhook",
    [
        *("github", True, 1, [], {}),
        *({"type": "docusign", "secret": "s"}, {"type": GENERIC, "secret": "s"}, {"type": "github"}),
        *({"type": "github", "secret": each} for each in ("", 5, MASK, "s" * 257)),
        {"type": "svix", "secret": "whsec_not base64"},
    ],
)
def test_what_could_not_verify_anything_is_refused(webhook: object) -> None:
    assert Hub().call("PUT", "/queues/q", {"queue": {"webhook": webhook}}).status == 400


@pytest.mark.parametrize("kind", [each for each in SENDERS if each != GENERIC])
def test_each_kind_may_be_named(hub: Hub, kind: str) -> None:
    hub.make("q", webhook={"type": kind, "secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"})
    assert posted(hub, {}) == 400
