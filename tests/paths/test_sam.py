"""SAM takes the template as it lies, and its build is the layer with its dependencies and without the SDK, and
otherwise only handlers.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.sam.toolbox import ROOT, built, sam

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def build() -> Path:
    """The output of ``sam build``."""
    return built()


def test_sam_validate_finds_nothing_in_the_template_as_it_is_written() -> None:
    # When
    result = sam("validate", "--lint", "--template", str(ROOT / "template.yaml"))
    # Then
    assert result.returncode == 0, result.stdout + result.stderr
    assert "is a valid SAM Template" in result.stdout


def test_the_layer_holds_the_hub_its_libraries_and_not_boto3(build: Path) -> None:
    packed = {path.name for path in (build / "PushhubLayer" / "python").iterdir()}
    assert {"pushhub", "requests", "aws_lambda_powertools", "urllib3", "cryptography", "jwt"} <= packed
    assert packed.isdisjoint({"boto3", "botocore", "aws_xray_sdk", "pydantic"})


def test_whatever_the_layer_brings_can_be_imported_from_it(build: Path) -> None:
    # Given the layer as built for this machine, and an interpreter without any package
    layer = build / "PushhubLayer" / "python"
    program = f"""
import sys
sys.path.insert(0, {str(layer)!r})
import charset_normalizer, cryptography.x509, jwt, re2, requests, yaml
import pushhub.engine.model.delivery
from aws_lambda_powertools.logging import Logger
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
Ed25519PrivateKey.generate().sign(b"")
print(requests.__file__)
"""
    # When
    loaded = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    # Then
    assert loaded.stdout.startswith(str(layer)), loaded.stderr


def test_a_function_is_its_handler_only(build: Path) -> None:
    for folder in (ROOT / "functions").iterdir():
        packed = build / f"{folder.name.title()}Function"
        if (folder / "handler.py").is_file():
            assert (packed / "handler.py").read_bytes() == (folder / "handler.py").read_bytes()
            assert not list(packed.glob("**/*.so"))
