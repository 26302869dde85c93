"""Sources: Svix's ingest, as a new user takes in GitHub's webhooks with it."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any
from urllib.parse import urlsplit

import httpx
from svix import Webhook
from tests.stack.webhooks.judge.stage import Stage, today

SECRET = "It's a Secret to Everybody"
BODY = b'{"zen": "Keep it logically awesome.",\n "caf\xc3\xa9": 1.10}'


def posted(stage: Stage, url: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
    """What a sender gets that posts there; a hub in this process is not where its URL says."""
    there = stage.base_url + urlsplit(url).path
    return httpx.post(there, content=body, headers=headers, trust_env=False, timeout=60)


def signed(body: bytes, delivery: str, secret: str = SECRET) -> dict[str, str]:
    """What GitHub sends with a body."""
    return {
        "Content-Type": "application/json",
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": delivery,
        "X-Hub-Signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
    }


def create_source(stage: Stage, **more: Any) -> Any:
    """A source of GitHub's webhooks."""
    from svix.models import GithubConfig, IngestSourceIn  # noqa: PLC0415 (clients of the 1.x generation have them not)

    wanted = IngestSourceIn(name="repos", type="github", config=GithubConfig(secret=SECRET), **more)
    return stage.svix.ingest.source.create(wanted)


@today
def check_53_a_source_takes_in_what_its_sender_signs_and_nothing_else(stage: Stage) -> None:
    from svix.models import IngestEndpointIn  # noqa: PLC0415

    source, inbox = create_source(stage), stage.receiver.inbox()
    assert source.id.startswith("src_")
    endpoint = stage.svix.ingest.endpoint.create(source.id, IngestEndpointIn(url=inbox.url))
    delivery = secrets.token_hex(16)
    assert posted(stage, source.ingest_url, BODY, signed(BODY, delivery, "another secret")).status_code == 400
    assert posted(stage, source.ingest_url, BODY, {}).status_code == 400
    for _ in range(2):
        answer = posted(stage, source.ingest_url, BODY, signed(BODY, delivery))
        assert (answer.status_code, answer.content) == (200, b"")
    got = inbox.one()
    assert (got.body, got.headers["x-github-event"]) == (BODY, "push")
    # Both signatures are right: the sender's own, and the hub's
    assert got.headers["x-hub-signature-256"] == signed(BODY, delivery)["X-Hub-Signature-256"]
    key = stage.svix.ingest.endpoint.get_secret(source.id, endpoint.id).key
    Webhook(key).verify(got.body, got.headers)
    assert [each.event_type for each in stage.svix.message.list(source.id).data] == ["push"]
