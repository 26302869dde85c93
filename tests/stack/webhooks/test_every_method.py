"""Every method of Svix's client, unmodified, against the whole API with fakes behind it: each gets an answer that it
can read, and the documentation says how many there are.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.stack.webhooks import clients
from tests.web.known_good import GOOD
from tests.web.protocols import Served
from tests.web.shapes import filled, world_of
from tests.webhooks.served import ServedWorld

from pushhub.webhooks.api.api import ROUTES

pytestmark = pytest.mark.slow

DOCUMENTED = clients.ROOT / "docs" / "webhooks.md"


@dataclass(frozen=True)
class Method:
    """A method of the client, and what it asks."""

    resource: str
    name: str
    asks: tuple[str, str]


def shape(method: str, path: str) -> tuple[str, str]:
    """What is asked, however the segments of its path are called."""
    return method.upper(), re.sub(r"\{\w+\}", "{}", path)


def methods() -> Iterator[Method]:
    """Those of the client without ``async``, read from its sources."""
    [folder] = clients.python(2).parents[1].glob("lib/python3*/site-packages/svix/api")
    for module in sorted(Path(folder).glob("*.py")):
        for resource in ast.parse(module.read_text()).body:
            if isinstance(resource, ast.ClassDef) and not resource.name.endswith("Async"):
                for method in resource.body:
                    for call in ast.walk(method):
                        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "_request_sync":
                            said = {each.arg: ast.literal_eval(each.value) for each in call.keywords[:2]}
                            name = getattr(method, "name", "")
                            yield Method(resource.name, name, shape(said["method"], said["path"]))


def call_of(method: Method, served: Served) -> dict[str, Any]:
    """A good call of a method."""
    [route] = [each for each in ROUTES if shape(each.method, each.path) == method.asks]
    good = GOOD[route.name]
    names, fields = good.prepare(served)
    body, _ = filled(good.body, {}, fields)
    return {
        "resource": method.resource,
        "method": method.name,
        "names": [names[each] for each in re.findall(r"\{(\w+)\}", route.path)],
        "body": body,
        "token": served.token,
    }


def test_every_method_of_the_client_gets_an_answer_that_it_can_read() -> None:
    # Given every method of the client, and a project
    found, served, said = list(methods()), world_of("webhooks"), {}
    with ServedWorld(served.world) as hub:
        command = [str(clients.python(2)), "-m", "tests.stack.webhooks.every_method", hub.base_url]
        environ = dict(os.environ, PYTHONPATH=str(clients.ROOT))
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=clients.ROOT, env=environ, stdin=pipe, stdout=pipe, text=True) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            # When the client makes a good call of each
            for each in found:
                served.token = served.world.token
                client.stdin.write(json.dumps(call_of(each, served)) + "\n")
                client.stdin.flush()
                said[f"{each.resource}.{each.name}"] = json.loads(client.stdout.readline())
    # Then each goes well
    assert {name: text for name, text in said.items() if text} == {}
    # And the documentation has their number
    assert f"all {len(said)} methods of 2.9.1 work" in " ".join(DOCUMENTED.read_text().split())
