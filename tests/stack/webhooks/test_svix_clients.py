"""Svix's own clients, unmodified, use the hub as they use Svix: every check of the protocol's list, through each client."""

from __future__ import annotations

import subprocess

import pytest
from tests.stack.webhooks import clients
from tests.webhooks.served import ServedWorld
from tests.webhooks.world import WebhooksWorld

pytestmark = pytest.mark.stack

VECTOR = {
    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "timestamp": "1614265330",
    "body": '{"test": 2432232314}',
    "signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
"""From Svix's documentation."""


@pytest.fixture(scope="module")
def in_time() -> dict[str, str]:
    """What became of the checks that take days, on a hub whose clock can be turned."""
    world = WebhooksWorld()
    with ServedWorld(world) as served:
        return clients.judged_by_python(2, served.base_url, [world.token, world.other_token], "timed_")


@pytest.mark.parametrize("check", clients.names_for_python(2, "timed_"))
def test_python_of_today_in_time(check: str, in_time: dict[str, str]) -> None:
    assert not in_time[check], in_time[check]


@pytest.mark.parametrize("generation", [1, 2])
def test_the_judges_sign_as_the_protocol_says(generation: int) -> None:
    """Given the published vector, when the client that verifies deliveries signs it, then the signature is the published one."""
    script = (
        "import sys, datetime, svix\n"
        "secret, id, timestamp, body = sys.argv[1:5]\n"
        "at = datetime.datetime.fromtimestamp(int(timestamp), datetime.timezone.utc)\n"
        "sys.stdout.write(svix.Webhook(secret).sign(id, at, body))\n"
    )
    values = [VECTOR[name] for name in ("secret", "id", "timestamp", "body")]
    ran = subprocess.run(
        [clients.python(generation), "-c", script, *values], check=False, capture_output=True, text=True
    )
    assert ran.stdout == VECTOR["signature"], ran.stderr


def test_the_judge_in_javascript_signs_as_the_protocol_says(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        folder = clients.node()
    except clients.NodeMissing:
        with capsys.disabled():
            print("\nleft out, as this machine has no Node or no npm: Svix's client for JavaScript")  # noqa: T201
        return
    script = (
        'import {Webhook} from "svix"\n'
        "const [secret, id, timestamp, body] = process.argv.slice(2)\n"
        "process.stdout.write(new Webhook(secret).sign(id, new Date(timestamp * 1000), body))\n"
    )
    (folder / "sign.mjs").write_text(script)
    values = [VECTOR[name] for name in ("secret", "id", "timestamp", "body")]
    ran = subprocess.run(["node", folder / "sign.mjs", *values], check=False, capture_output=True, text=True)
    assert ran.stdout == VECTOR["signature"], ran.stderr
