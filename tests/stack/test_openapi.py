"""The served OpenAPI document, tested against the running stack by Schemathesis: no 5xx, no undocumented status or
shape.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.stack.running import RunningStack

pytestmark = pytest.mark.stack

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
CONFIGURATION = """
[[operations]]
include-operation-id = "notifications.unsubscribe"
[operations.checks.not_a_server_error]
expected-statuses = ["2xx", "4xx", "500"]
"""
"""Notifications 2.0 answers 500 for an unknown subscriber, which its clients interpret as "already unsubscribed"."""

EXAMPLES = int(os.environ.get("PUSHHUB_OPENAPI_EXAMPLES", "0"))
"""Requests for each operation, set by hand. By default one for every sixth path: this is about the doors before the
functions. Without those, tests/web/test_openapi.py sends every example, tests/exhaustive/test_shapes.py every kind of
value to every operation, and both compare each answer with its description; tests/web/test_callers.py is about
authentication.
"""
SAMPLE = 1 if EXAMPLES else 6


def fixed(document: dict[str, Any], names: dict[str, list[str]]) -> None:
    """Restrict the named path parameters to these values, so that requests meet existing objects."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for each in operation["parameters"]:
                if each["in"] == "path" and each["name"] in names:
                    each["schema"] = {"type": "string", "enum": names[each["name"]]}
                    each["example"] = names[each["name"]][0]


def _operation(document: dict[str, Any], name: str) -> dict[str, Any]:
    every = (operation for methods in document["paths"].values() for operation in methods.values())
    return next(each for each in every if each["operationId"] == name)


def test_what_is_served_is_what_is_described(stack: RunningStack, tmp_path: Path) -> None:
    # Given a separate project with a pull queue, a push queue, and a message
    project = stack.make_project("described")
    queues = f"{stack.base_url}/3/projects/{project.project_id}/queues"
    token = {"Authorization": f"OAuth {project.token}"}
    posted = requests.post(
        f"{queues}/pulled/messages", json={"messages": [{"body": "x"}]}, headers=token, timeout=30
    ).json()
    push = {"queue": {"push": {"subscribers": [{"name": "copies", "url": "ironmq:///pulled"}]}}}
    assert requests.put(f"{queues}/pushed", json=push, headers=token, timeout=30).ok
    # When requests are generated from the document
    document = requests.get(f"{stack.base_url}/openapi.json", timeout=30).json()
    fixed(
        document,
        {
            "project": [project.project_id],
            "store": [project.project_id],
            "queue": ["pulled", "pushed", "none", "odd name+"],
            "message": [posted["ids"][0], "1"],
        },
    )
    # No request should wait half a minute for a message of an empty queue
    _operation(document, "ironmq.reserve_messages")["requestBody"]["content"]["application/json"]["schema"][
        "properties"
    ]["wait"]["maximum"] = 0
    document["paths"] = {path: document["paths"][path] for path in sorted(document["paths"])[::SAMPLE]}
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(document))
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", str(file), "--url", stack.base_url),
        *("--header", f"Authorization: Bearer {project.token}", "--header", f"X-Augury-Token: {project.token}"),
        *("--phases", "fuzzing", "--max-examples", str(EXAMPLES or 1), "--checks", ",".join(CHECKS)),
        # One worker: Python 3.11's parser, which Hypothesis uses, is not safe with threads (cpython#106905).
        *("--seed", "17", "--workers", "1", "--no-shrink", "--request-timeout", "40", "--warnings", "off"),
        *("--continue-on-failure", "--generation-database", "none", "--suppress-health-check", "all", "--no-color"),
    ]
    run = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=300 + 60 * EXAMPLES, check=False
    )
    # Then every answer is as described
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2_000:]


def test_the_reference_is_a_page_whose_files_are_there(stack: RunningStack) -> None:
    page = requests.get(f"{stack.base_url}/docs", timeout=30)
    assert page.status_code == 200
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
    files = re.findall('"(/docs/[^"]+)"', page.text)
    assert [requests.get(f"{stack.base_url}{each}", timeout=30).status_code for each in files] == [200] * len(files)
    assert any(each.endswith("/start.js") for each in files)
    # And with a slash at its end it is found, too
    assert requests.get(f"{stack.base_url}/docs/", timeout=30).url == f"{stack.base_url}/docs"
