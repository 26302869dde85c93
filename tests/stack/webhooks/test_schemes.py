"""Endpoints with the signatures of other senders, verified by those senders' own libraries, unmodified."""

from __future__ import annotations

import base64
import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from local.environment import make
from tests.stack.node import NodeMissing, node_packages
from tests.webhooks.world import WebhooksWorld

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
STANDARD_SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
SHOP = {"X-Shopify-Shop-Domain": "acme.myshopify.com", "X-Shopify-API-Version": "2026-07"}
NODE = {"github", "shopify"}
SCHEMES: Mapping[str, dict[str, Any]] = {
    "convoy-advanced": {"secret": "convoy-webhook-secret"},
    "convoy-simple": {"secret": "convoy-webhook-secret"},
    "github": {"secret": "It's a Secret to Everybody"},
    "hook0": {"secret": "a-subscription-secret"},
    "outpost": {"secret": "whsec_a1b2c3"},
    "shopify": {"secret": "hush", "headers": SHOP},
    "slack": {"secret": "8f742231b10e8888abcd99yyyzzz85a5"},
    "standard-webhooks": {},
    "stripe": {"secret": "whsec_test_stripe_0123456789"},
    "twilio": {"secret": "12345"},
}
MESSAGE = {"eventType": "orders.paid", "payload": {"id": "evt_1", "note": "café"}}


def cases(preset: str, url: str, headers: Mapping[str, str], body: bytes) -> list[dict[str, Any]]:
    """A request as it was received, the same for another secret, and with another body."""
    lowered = {name.lower(): value for name, value in headers.items()}
    secret = SCHEMES[preset].get("secret", STANDARD_SECRET)
    wrong = "whsec_" + base64.b64encode(b"k" * 24).decode()
    return [
        {
            "preset": preset,
            "secret": given,
            "url": url,
            "headers": lowered,
            "body": base64.b64encode(sent).decode(),
            "good": good,
        }
        for given, sent, good in ((secret, body, True), (wrong, body, False), (secret, body + b" ", False))
    ]


def judge(given: list[dict[str, Any]], folder: Path) -> None:
    """See that the libraries come to what is expected of each case."""
    python = [each for each in given if each["preset"] not in NODE]
    _judged([str(verifiers()), str(HERE / "verify.py")], python)
    node = [each for each in given if each["preset"] in NODE]
    try:
        # Node looks for packages beside the script.
        script = node_packages("verifiers-node") / "verify.mjs"
    except NodeMissing:
        pytest.skip("the others passed; Node judges GitHub's and Shopify's")
    script.write_bytes((HERE / "verify.mjs").read_bytes())
    (folder / "given.json").write_text(json.dumps(node))
    _judged(["node", str(script), str(folder / "given.json")], node)


def verifiers() -> Path:
    """The interpreter that has the libraries."""
    environment = ROOT / ".venv-verifiers"
    make(environment, ROOT / "requirements" / "verifiers.txt")
    return environment / "bin" / "python"


def _judged(command: list[str], given: list[dict[str, Any]]) -> None:
    ran = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True, check=False, timeout=60, cwd=ROOT
    )
    assert ran.stdout.strip() == str(len(given)), ran.stdout + ran.stderr


def wanted(preset: str) -> dict[str, Any]:
    return {"signatures": [{"preset": preset, **SCHEMES[preset]}]}


def test_the_senders_own_libraries_take_what_endpoints_are_sent(tmp_path: Path) -> None:
    # Given an endpoint for each sender whose library is to be had, the first try of which fails
    world = WebhooksWorld()
    world.clock.set(time.time_ns() // 1_000_000)
    app = world.make_app()
    urls = {preset: f"https://{preset}.example/in?x=1" for preset in SCHEMES}
    for preset, url in urls.items():
        secret = {"secret": STANDARD_SECRET} if preset == "standard-webhooks" else {}
        world.make_endpoint(app, url, **wanted(preset), **secret)
        if preset != "twilio":  # whose URL is different for each body
            world.sender.script(url, 503, 200)
    # When a message is posted, and tried again
    world.ask("POST", f"/app/{app}/msg", json.dumps(MESSAGE, ensure_ascii=False))
    world.run(seconds=30)
    # Then both attempts are verified, and nothing else is
    sent = [
        (preset, each) for preset, url in urls.items() for each in world.sender.requests if each.url.startswith(url)
    ]
    assert len(sent) == 2 * len(SCHEMES) - 1
    judge([case for preset, each in sent for case in cases(preset, each.url, each.headers, each.body)], tmp_path)
