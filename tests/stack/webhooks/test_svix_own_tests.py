"""The tests that Svix's npm package brings along, as they are: of its verification of deliveries, and of its client
against a server, which is this hub.

They are not ours: they come with the package that ``requirements/svix-node`` pins, and are only compiled. The tests of
the Python client are in no package (its sdist has none), and want Svix's own server in a container.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stack.node import NodeMissing, node_packages
from tests.webhooks.live import LiveWorld

pytestmark = pytest.mark.slow

OWN = {"webhook.test": 14, "KitchenSink.test": 2}
"""The tests of each file, those in tests counted, too."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The package's sources with their tests, compiled; None if this machine has no Node or no npm."""
    try:
        packages = node_packages("svix-node") / "node_modules"
    except NodeMissing:
        return None
    folder = tmp_path_factory.mktemp("svix")
    shutil.copytree(packages / "svix" / "src", folder / "src")
    (folder / "node_modules").symlink_to(packages)
    options = ["--outDir", "built", "--rootDir", "src", "--module", "commonjs", "--moduleResolution", "node"]
    options += ["--target", "es2022", "--esModuleInterop", "--skipLibCheck", "--noCheck"]
    _run([packages / ".bin" / "tsc", *options, *(f"src/{name}.ts" for name in OWN)], folder)
    (folder / "built" / "package.json").write_text('{"type": "commonjs"}')
    return folder


@pytest.fixture(scope="module")
def hub() -> Iterator[LiveWorld]:
    """A hub in real time."""
    with LiveWorld() as hub:
        yield hub
    assert not hub.faults


@pytest.mark.parametrize("name", OWN)
def test_svix_own_tests_pass(built: Path | None, hub: LiveWorld, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if built is None:
        with capsys.disabled():
            print(f"\nleft out, as this machine has no Node or no npm: Svix's own {name}")  # noqa: T201
        return
    finished = _run(
        ["node", "--test", "--test-reporter", "tap", f"built/{name}.js"],
        built,
        SVIX_TOKEN=hub.make_token(),
        SVIX_SERVER_URL=hub.base_url,
    )
    # None of them is left out, or gone from a later version of the package
    passed = re.findall(r"^ *ok \d+ - (?!.*# SKIP)", finished, re.MULTILINE)
    assert len(passed) == OWN[name], finished
    assert "# fail 0" in finished


def _run(command: list[str | Path], folder: Path, **environ: str) -> str:
    ran = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "NODE_NO_WARNINGS": "1", **environ},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout
