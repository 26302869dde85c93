"""Clients that generators make of ``/openapi.json`` can be made, imported and compiled, and post a message."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import requests
from local.environment import make
from tests.stack.node import NodeMissing, node_packages
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

ROOT = Path(__file__).parents[2]
SECONDS = 300
PAYLOAD = {"größe": [1, None, {"tief": True}], "order": {"number": "R1"}}


@pytest.fixture
def described(stack: RunningStack, tmp_path: Path) -> Path:
    path = tmp_path / "openapi.json"
    path.write_bytes(requests.get(f"{stack.base_url}/openapi.json", timeout=60).content)
    return path


@pytest.fixture
def arguments(stack: RunningStack) -> list[str]:
    """A project's token and an application of it, as a client needs them."""
    project = stack.make_project()
    answer = requests.post(
        f"{stack.base_url}/api/v1/app",
        json={"name": "Generated"},
        headers={"Authorization": f"Bearer {project.token}"},
        timeout=60,
    )
    return [stack.base_url, project.token, answer.json()["id"], json.dumps(PAYLOAD)]


def run(command: list[str], folder: Path, **environ: str) -> str:
    ran = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environ},
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]
    return ran.stdout


def test_a_python_client_made_of_the_description_posts_a_message(described: Path, arguments: list[str]) -> None:
    # Given the client that openapi-python-client makes, with none of its parts left out
    environment = ROOT / ".venv-generated-clients"
    make(environment, ROOT / "requirements" / "generated-clients.txt")
    # (as it comes from the generator, before a formatter makes it nice)
    (described.parent / "config.yaml").write_text("post_hooks: []\n")
    finished = run(
        [
            *(str(environment / "bin" / "openapi-python-client"), "generate", "--path", described.name),
            *("--output-path", "hub_client", "--meta", "none", "--config", "config.yaml"),
        ],
        described.parent,
    )
    assert "Unable to" not in finished

    # When it posts a message, and asks for what cannot be
    script = Path(__file__).parent / "generated_client.py"
    reported = run(
        [str(environment / "bin" / "python"), str(script), *arguments],
        described.parent,
        PYTHONPATH=str(described.parent),
    )

    # Then it reads every answer as what it is
    found: dict[str, Any] = json.loads(reported)
    assert found.pop("modules") > 300
    assert found == {
        "payload": PAYLOAD,
        "missing": [404, "WebhooksRefusal", "not_found"],
        "wrong": [422, "WebhooksValidationRefusal", ["body", "eventType"]],
    }


def test_a_typescript_client_made_of_the_description_posts_a_message(described: Path, arguments: list[str]) -> None:
    # Given the types that openapi-typescript makes, and a program that uses them
    try:
        packages = node_packages("generated-clients-node")
    except NodeMissing:
        pytest.skip("Node or npm is missing")
    folder = packages / described.parent.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    run([f"{packages}/node_modules/.bin/openapi-typescript", str(described), "-o", f"{folder}/hub.d.ts"], packages)
    shutil.copy(Path(__file__).parent / "generated_client.ts", folder / "client.ts")

    # When it is compiled as strictly as can be, and run
    strict = ["--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2023,dom"]
    run([f"{packages}/node_modules/.bin/tsc", *strict, "client.ts"], folder)
    found: dict[str, Any] = json.loads(run(["node", "client.js", *arguments], folder))
    shutil.rmtree(folder)

    # Then the payload came back whole, and the refusal is the one described
    assert found == {"payload": PAYLOAD, "missing": {"code": "not_found", "detail": "Application not found"}}
