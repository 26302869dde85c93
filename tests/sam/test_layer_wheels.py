"""The layer's lock file can be installed for each available runtime and processor, from wheels alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sam.toolbox import ROOT
from tests.template.cloudformation import parameter

PLATFORMS = {"arm64": "manylinux2014_aarch64", "x86_64": "manylinux2014_x86_64"}


@pytest.mark.slow
@pytest.mark.parametrize("runtime", parameter("Runtime")["AllowedValues"])
@pytest.mark.parametrize("architecture", parameter("Architecture")["AllowedValues"])
def test_the_lock_installs(runtime: str, architecture: str, tmp_path: Path) -> None:
    # When pip resolves for that Python and processor
    options = ["--dry-run", "--no-deps", "--require-hashes", "--only-binary=:all:", "--target", str(tmp_path)]
    place = ["--python-version", runtime.removeprefix("python"), "--platform", PLATFORMS[architecture]]
    lock = str(ROOT / "layers" / "pushhub" / "requirements.txt")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", *options, *place, "--requirement", lock],
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    # Then it finds every package
    assert done.returncode == 0, done.stderr
