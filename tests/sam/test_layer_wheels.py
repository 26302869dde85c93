"""The layer is built for each available runtime and processor, on this machine, from wheels alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sam.toolbox import ROOT
from tests.template.cloudformation import parameter


@pytest.mark.slow
@pytest.mark.parametrize("runtime", parameter("Runtime")["AllowedValues"])
@pytest.mark.parametrize("architecture", parameter("Architecture")["AllowedValues"])
def test_the_layer_is_built(runtime: str, architecture: str, tmp_path: Path) -> None:
    # When the Makefile is called as the SAM CLI does it: the build reads tags, compiled files and size itself
    makefile = ROOT / "layers" / "targets" / f"{runtime}-{architecture}" / "Makefile"
    done = subprocess.run(
        ["make", "--makefile", str(makefile), "build-PushhubLayer"],
        env={**os.environ, "ARTIFACTS_DIR": str(tmp_path), "LAYER_PYTHON": sys.executable},
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )
    # Then it holds compiled files for that processor
    assert done.returncode == 0, done.stderr
    names = {"arm64": "aarch64", "x86_64": "x86_64"}
    minor = runtime.removeprefix("python3.")
    assert list((tmp_path / "python").glob(f"**/*.cpython-3{minor}-{names[architecture]}-linux-gnu.so"))
    assert (tmp_path / "python" / "cryptography" / "hazmat" / "bindings" / "_rust.abi3.so").is_file()
    assert (tmp_path / "python" / "pushhub").is_dir()


@pytest.mark.parametrize("architecture", parameter("Architecture")["AllowedValues"])
def test_the_layer_of_transformations_is_built(architecture: str, tmp_path: Path) -> None:
    # When the newest runtime's layer is built, then it is the engine alone, whose wheel is right for each Python
    runtime = parameter("Runtime")["AllowedValues"][-1]
    makefile = ROOT / "layers" / "targets" / f"{runtime}-{architecture}" / "Makefile"
    done = subprocess.run(
        ["make", "--makefile", str(makefile), "build-ScriptingLayer"],
        env={**os.environ, "ARTIFACTS_DIR": str(tmp_path), "LAYER_PYTHON": sys.executable},
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "python" / "_quickjs.abi3.so").is_file()
    assert not (tmp_path / "python" / "pushhub").exists()
