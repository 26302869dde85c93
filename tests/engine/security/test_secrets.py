"""Tokens in subscribers' URLs are shown to their owner only where the protocol shows the URL: never in error texts, nor
in logs.
"""

from __future__ import annotations

import json

import pytest
from tests.engine.world import World
from tests.ironmq.api.hub import Hub

from pushhub.egress.lookup import NameLookup
from pushhub.egress.sender import GuardedSender

URLS = [
    "http://user:S3CRET@none.example/p?auth=S3CRET",
    "http://private.example/p/S3CRET?x=S3CRET",
    "http://closed.example:1/S3CRET",
    "https://S3CRET:S3CRET@closed.example:1/",
    "ironmq://P:S3CRET@none.example/q",
    "ironmq://P:S3CRET%0d%0aX:1@private.example/q",
    "ironmq://P:S3CRET@/q",
    "ironworker://P:S3CRET@none.example/code",
    # These are refused when they are registered
    "ironmq://P:S3CRET@private.example:99999/q",
    "ironworker://P:S3CRET@[::1/code",
    "http://user:S3CRET@ho st/",
    "ftp://S3CRET@a.example/",
]


def resolve(name: str) -> list[str]:
    if name.startswith("none"):
        raise OSError("no such host")
    return ["10.0.0.1"] if name.startswith("private") else ["127.0.0.1"]


@pytest.mark.parametrize("url", URLS)
def test_no_text_and_no_log_repeats_a_token_of_a_url(url: str, caplog: pytest.LogCaptureFixture) -> None:
    # Given a real sender that cannot deliver, and a queue that reports errors
    world = World()
    sender = GuardedSender(now=world.clock.now, allowed_targets=["loopback"], lookup=NameLookup(resolve))
    world.sender.send = sender.send  # type: ignore[method-assign]
    hub = Hub(world)
    push = {"subscribers": [{"name": "s", "url": url}], "retries": 0, "error_queue": "failed"}
    created = hub.call("PUT", "/queues/q", {"queue": {"push": push}})
    texts = [str(created.body.get("msg", ""))]
    if created.status == 200:
        # When a message fails
        [message_id] = hub.post("q", "x")
        world.run(seconds=2)
        texts += [str(each["msg"]) for each in hub.statuses("q", message_id)]
        [error] = world.pulled("failed")
        texts += [each["msg"] for each in json.loads(error)["subscribers"]]
        assert len(texts) == 3
    # Then the failure is reported, and the token appears nowhere
    assert any(texts)
    assert "S3CRET" not in str([texts, world.telemetry.events, caplog.text])
    sender.close()
