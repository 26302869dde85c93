"""Svix's own clients, unmodified, use the hub as they use Svix: every check of the protocol's list,
through each client, and with real requests. (What only a running stack can show: test_running_stack.py.)
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.stack.node import NodeMissing, node_packages
from tests.stack.webhooks import clients
from tests.webhooks.live import LiveWorld

pytestmark = pytest.mark.slow

VECTOR = {
    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "timestamp": "1614265330",
    "body": '{"test": 2432232314}',
    "signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
"""From Svix's documentation."""
TODAY = [each for each in clients.names_for_python(2) if not each.startswith(clients.ONLY_ON_A_STACK)]


@pytest.fixture(scope="module")
def hub() -> Iterator[LiveWorld]:
    """A hub in real time, with real requests."""
    with LiveWorld() as hub:
        yield hub
    assert not hub.faults


class Judges:
    """Runs the checks of each client once, all against the same hub."""

    def __init__(self, hub: LiveWorld) -> None:
        self._hub = hub
        self.today = cache(self._today)
        self.former = cache(self._former)
        self.node = cache(self._node)

    def _today(self) -> dict[str, str]:
        return clients.judged_by_python(2, self._hub.base_url, self._tokens(), *TODAY)

    def _former(self) -> dict[str, str]:
        return clients.judged_by_python(1, self._hub.base_url, self._tokens())

    def _node(self) -> dict[str, str]:
        return clients.judged_by_node(self._hub.base_url, self._tokens())

    def _tokens(self) -> list[str]:
        return [self._hub.make_token() for _ in range(2)]


@pytest.fixture(scope="module")
def judges(hub: LiveWorld) -> Judges:
    return Judges(hub)


@pytest.mark.parametrize("check", TODAY)
def test_python_of_today(check: str, judges: Judges) -> None:
    assert not (failure := judges.today()[check]), failure


@pytest.mark.parametrize("check", clients.names_for_python(1))
def test_python_of_the_1x_generation(check: str, judges: Judges) -> None:
    assert not (failure := judges.former()[check]), failure


@pytest.mark.parametrize("check", clients.names_for_node())
def test_javascript(check: str, judges: Judges, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        found = judges.node()
    except NodeMissing:
        with capsys.disabled():
            print(f"\nleft out, as this machine has no Node or no npm: {check}")  # noqa: T201
        return
    assert not found[check], found[check]


@pytest.mark.parametrize("generation", [1, 2])
def test_the_judges_sign_as_the_protocol_says(generation: int) -> None:
    """Given the published vector, when the client that verifies deliveries signs it,
    then the signature is the published one.
    """
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
        folder = node_packages("svix-node")
    except NodeMissing:
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


def written(kind: str, heading: str) -> str:
    """The first block of a kind below a heading of docs/webhooks.md."""
    text = (clients.ROOT / "docs" / "webhooks.md").read_text(encoding="utf-8").partition(f"## {heading}")[2]
    block = re.search(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1]


def shown(hub: LiveWorld, folder: Path, command: list[str | Path], typed: str, **environ: str) -> str:
    """What a command shows that reads what is typed, in a checkout whose hub this is."""
    (folder / ".pushhub").mkdir()
    here = {"base_url": hub.base_url, "token": hub.make_token()}
    (folder / ".pushhub" / "local.json").write_text(json.dumps(here))
    (folder / ".venv").symlink_to(clients.ROOT / ".venv")
    ran = subprocess.run(
        command,
        input=typed,
        cwd=folder,
        env={**os.environ, "NODE_NO_WARNINGS": "1", **environ},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_first_steps_in_curl(hub: LiveWorld, tmp_path: Path) -> None:
    lines = shown(hub, tmp_path, ["/bin/sh", "-eu"], written("sh", "First steps")).splitlines()
    app, endpoint, secret, message, sent = map(json.loads, lines)
    assert (app["uid"], endpoint["uid"]) == ("acme", "crm")
    assert secret["key"].startswith("whsec_")
    assert message["id"] in [each["id"] for each in sent["data"]]
    assert {each["statusText"] for each in sent["data"]} == {"sending"}


def test_the_first_steps_in_python(hub: LiveWorld, tmp_path: Path) -> None:
    message, key = shown(hub, tmp_path, [clients.python(2), "-"], written("python", "First steps")).split()
    assert (message[:4], key[:6]) == ("msg_", "whsec_")


def test_the_first_steps_in_javascript(hub: LiveWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        folder = node_packages("svix-node")
    except NodeMissing:
        with capsys.disabled():
            print("\nleft out, as this machine has no Node or no npm: the first steps in JavaScript")  # noqa: T201
        return
    (tmp_path / "node_modules").symlink_to(folder / "node_modules")
    (tmp_path / "first.mjs").write_text(written("js", "First steps"))
    message, key = shown(hub, tmp_path, ["node", "first.mjs"], "").split()
    assert (message[:4], key[:6]) == ("msg_", "whsec_")
