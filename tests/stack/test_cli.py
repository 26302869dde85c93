"""The operator's command line on the running local stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
import requests
from local.place import REPOSITORY
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack


def cli(stack: RunningStack, *words: str) -> Any:
    """Run a command as an operator does."""
    environment = {**os.environ, "PUSHHUB_HOME": str(stack.place.home)}
    command = [sys.executable, "-m", "cli", "--json", *words]
    result = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


def test_an_operator_makes_a_project_and_takes_its_token_back(stack: RunningStack) -> None:
    # Given a project that an operator made, whose token works
    [made] = cli(stack, "projects", "make", "operated")
    url = f"{stack.base_url}/3/projects/{made['project']}/queues/first"
    headers = {"Authorization": f"OAuth {made['token']}"}
    assert requests.put(url, json={"queue": {}}, headers=headers, timeout=30).ok
    # When the token is rotated without an overlap
    [token] = cli(stack, "tokens", "list", made["project"])
    [new] = cli(stack, "tokens", "rotate", made["project"], token["token_id"], "--overlap", "0s")
    # Then the new one works at once
    renewed = {"Authorization": f"OAuth {new['token']}"}
    assert requests.get(url, headers=renewed, timeout=30).status_code == 200
