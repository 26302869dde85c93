"""What each function imports when it starts: only the parts of the hub that it needs for its first event."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from bench.imports import CLIENTS, environment

ROOT = Path(__file__).parents[2]

PARTS = {
    "ingest": {"ironmq", "web"},
    "control": {"ironmq", "web"},
    "console": {"web"},
    "past": {"ironmq", "web"},
    "dispatch": set(),
    "push": {"ironmq", "egress"},
    "poll": {"hub", "egress"},
    "wake": {"hub"},
    "sweep": set(),
    "errors": {"ironmq", "web"},
    "consumers": {"notifications", "web"},
    "notify": {"notifications", "web"},
    "records": set(),
    "transform": {"scripting"},
}
"""The packages of the layer that each function starts with, besides the engine and the foundation."""

WITHOUT_HUB = {"console", "transform"}
"""Functions that start neither the hub nor an SDK."""

SEEN = """
import json, sys
made = []
try:
    from pushhub.cloud import clients
    clients.Clients._make = lambda self, service, url: made.append(service)
    {before}
except ImportError:
    pass
common = set(sys.modules)
import handler
print(json.dumps([sorted(set(sys.modules)), sorted(common), made]))
"""


@cache
def start(function: str) -> tuple[set[str], set[str], list[str]]:
    """Modules after a cold start, modules that every function has, and the AWS clients that were made."""
    path = os.pathsep.join([str(ROOT / "layers/pushhub"), str(ROOT / "functions" / function)])
    before = "" if function in WITHOUT_HUB else "import pushhub.runtime.hub"
    finished = subprocess.run(
        [sys.executable, "-c", SEEN.format(before=before)],
        env={**os.environ, **environment(function), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded, common, created = json.loads(finished.stdout.splitlines()[-1])
    return set(loaded), set(common), created


def packages(modules: set[str]) -> set[str]:
    """The packages of the layer that some modules are in, except the foundation."""
    own = (each.split(".") for each in modules if each.startswith("pushhub."))
    return {each[1] for each in own if len(each) > 2} - {"base", "cloud", "engine", "runtime"}


def test_every_function_is_held_to_its_parts() -> None:
    assert set(PARTS) == {each.parent.name for each in ROOT.glob("functions/*/handler.py")}


@pytest.mark.parametrize("function", sorted(PARTS))
def test_a_cold_start_imports_the_parts_that_the_function_needs(function: str) -> None:
    """Given the list of protocols, when a handler is also imported, then nothing of other protocols is imported."""
    loaded, common, _ = start(function)
    assert packages(loaded - common) == PARTS[function]


@pytest.mark.parametrize("function", sorted(PARTS))
def test_a_cold_start_imports_nothing_heavy_that_it_can_do_without(function: str) -> None:
    loaded, _, _ = start(function)
    heavy = {"requests", "charset_normalizer"} if "egress" not in PARTS[function] else set()
    heavy |= {"aws_lambda_powertools", "botocore"} if function in WITHOUT_HUB else set()
    assert not loaded & (heavy | {"asyncio", "cryptography", "pushhub.web.openapi", "pushhub.web.description"})


def test_the_list_of_protocols_imports_their_wirings_and_names_only() -> None:
    """Given what every function imports, then of each protocol it is only the modules with its name, settings and
    targets.
    """
    _, common, _ = start("dispatch")
    protocols = {each for each in common if each.startswith("pushhub.") and packages({each})}
    assert {each.rpartition(".")[2] for each in protocols} <= {"wiring", "model", "internal_queues", "kinds"}


@pytest.mark.parametrize("function", sorted(CLIENTS))
def test_a_cold_start_makes_the_clients_that_the_bench_compares_it_with(function: str) -> None:
    """Given :data:`bench.imports.CLIENTS`, then the function makes these when it starts."""
    _, _, created = start(function)
    assert sorted(created) == sorted(CLIENTS[function])
