"""The layer: locked, and only what docs/decisions/0002-layer-contents.md says."""

from __future__ import annotations

import re

from tests.template.cloudformation import ROOT, source

LOCK = (ROOT / "layers" / "pushhub" / "requirements.txt").read_text(encoding="utf-8")


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)(?:\[[a-z0-9,-]+\])?==(\S+)", lock, flags=re.MULTILINE))


def test_each_package_of_the_layer_is_pinned_by_hash_and_no_index_is_named() -> None:
    blocks = re.split(r"\n(?=[a-z])", LOCK)[1:]
    assert len(blocks) == len(pins(LOCK))
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in LOCK


def test_the_layer_brings_no_sdk_and_no_tracer() -> None:
    assert pins(LOCK).keys() >= {"aws-lambda-powertools", "requests"}
    assert pins(LOCK).keys().isdisjoint({"boto3", "botocore", "aws-xray-sdk", "pydantic"})


def test_what_runs_in_lambda_is_what_is_tested() -> None:
    tested = pins((ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8"))
    assert pins(LOCK).items() <= tested.items()


def test_the_layer_is_built_by_sam_for_both_architectures() -> None:
    layer = source()["Resources"]["PushhubLayer"]
    assert layer["Metadata"] == {"BuildMethod": "python3.11"}
    assert layer["Properties"]["ContentUri"] == "layers/pushhub/"
    assert set(layer["Properties"]["CompatibleArchitectures"]) == {"arm64", "x86_64"}
