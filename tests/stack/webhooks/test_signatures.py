"""What signed subscribers of other protocols are sent, verified by the libraries that receivers use, unmodified."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from typing import Any

import pytest
from tests.fakes.verifier import symmetric
from tests.hub.api.hub_store import Store
from tests.hub.world import URL
from tests.ironmq.api.hub import Hub
from tests.stack.webhooks import clients

from pushhub.base.ports import PushRequest

pytestmark = pytest.mark.slow

FIRST, SECOND, WRONG = symmetric("1"), symmetric("2"), symmetric("3")

JUDGE = """
import json, sys
import standardwebhooks, svix

given = json.load(sys.stdin)
for secret, headers, body, good in given:
    for library in (standardwebhooks, svix):
        try:
            library.Webhook(secret).verify(body, headers)
            verified = True
        except library.WebhookVerificationError:
            verified = False
        assert verified is good, (library.__name__, headers)
print(len(given))
"""
"""Reads secrets, headers, bodies and what is to come of them; fails at the first that comes to something else."""


def judged(requests: Sequence[PushRequest], secrets: Sequence[str]) -> None:
    """See that both libraries take every request with each of its secrets, and with no other secret or body."""
    given: list[tuple[str, dict[str, str], str, bool]] = []
    for request in requests:
        headers, body = dict(request.headers), request.body.decode()
        given += [(each, headers, body, True) for each in secrets]
        given += [(WRONG, headers, body, False), (secrets[0], headers, body + " ", False)]
    ran = subprocess.run(
        [clients.python(2), "-c", JUDGE],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.stdout.strip() == str(len(given)), ran.stderr


def test_the_libraries_take_what_queues_push() -> None:
    # Given a queue whose subscribers are signed for, one of them a queue that hands the signature on, after a change of
    # secrets
    hub = Hub()
    hub.world.clock.set(time.time_ns() // 1_000_000)
    hub.make_push("next", "https://b.example/in")
    for secret in (FIRST, SECOND):
        urls = {"shop": "https://a.example/in", "next": "ironmq:///next"}
        subscribers = [{"name": name, "url": url, "signing": {"secret": secret}} for name, url in urls.items()]
        hub.make("q", push={"subscribers": subscribers, "retries_delay": 3})
    # When messages are pushed, one of them twice
    hub.world.sender.script("https://a.example/in", 500, 200)
    hub.post("q", '{"said": "Grüße"}', "[]")
    hub.world.run(seconds=10)
    # Then every request is verified with the new secret and with the old one
    assert len(hub.world.sender.requests) == 5
    judged(hub.world.sender.requests, [SECOND, FIRST])


def test_the_libraries_take_what_services_of_the_hub_are_sent() -> None:
    store = Store()
    store.clock.set(time.time_ns() // 1_000_000)
    fields = {"name": "acme.import", "url": URL, "token": "t" * 32, "messages": ["order:new"]}
    _, created = store.call("POST", "/mappings", {"mapping": {**fields, "signing": {"secret": FIRST}}})
    store.call("PUT", f"/mappings/{created['id']}", {"mapping": {"signing": {"secret": SECOND}}})
    answers: list[Any] = [500, {"update_url": URL, "delay": 5}, {}]
    store.endpoints[URL] = lambda _: answers.pop(0)
    store.push_message("order:new", number="ü")
    store.run(seconds=60)
    assert len(store.sender.requests) == 3
    judged(store.sender.requests, [SECOND, FIRST])
