"""The output of ``sam build``: the layer with its dependencies and without the SDK, and otherwise only handlers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sam.toolbox import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.stack]


def test_the_layer_holds_the_hub_requests_and_powertools_and_not_boto3(build: Path) -> None:
    packed = {path.name for path in (build / "PushhubLayer" / "python").iterdir()}
    assert {"pushhub", "requests", "aws_lambda_powertools", "urllib3"} <= packed
    assert packed.isdisjoint({"boto3", "botocore", "aws_xray_sdk", "pydantic"})


def test_the_layer_runs_on_the_other_architecture_too(build: Path, tmp_path: Path) -> None:
    # Given the layer as seen by an interpreter that can load none of its compiled files
    layer = tmp_path / "python"
    shutil.copytree(build / "PushhubLayer" / "python", layer, ignore=shutil.ignore_patterns("*.so"))
    # When
    program = f"""
import sys
sys.path.insert(0, {str(layer)!r})
import charset_normalizer.md, requests, pushhub.engine.model.delivery
from aws_lambda_powertools.logging import Logger
print(requests.__file__)
"""
    loaded = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    # Then
    assert loaded.stdout.startswith(str(layer)), loaded.stderr


def test_a_function_is_its_handler_only(build: Path) -> None:
    for folder in (ROOT / "functions").iterdir():
        packed = build / f"{folder.name.title()}Function"
        if (folder / "handler.py").is_file():
            assert (packed / "handler.py").read_bytes() == (folder / "handler.py").read_bytes()
            assert not list(packed.glob("**/*.so"))
