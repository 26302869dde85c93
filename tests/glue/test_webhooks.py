"""Webhooks in the report: two days of them, recorded by the whole engine, are accounted for, in order, without
findings.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import fields, replace
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.glue.lives import Lives
from tests.glue.runs import asked, proved

from pushhub.base.verdict import Verdict
from pushhub.engine.model.record import DeliveryRecord, RecordKind

ROOT = Path(__file__).parents[2]
NOW = "2026-11-20T12:00:00"


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> list[DeliveryRecord]:
    """The records of ``tests.webhooks.lived``, made in the hub's own environment."""
    file = tmp_path_factory.mktemp("lived") / "records.json"
    subprocess.run(
        [ROOT / ".venv/bin/python", "-m", "tests.webhooks.lived", file],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'layers/pushhub'}:{ROOT}", "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
    )
    return [_record(json.loads(line)) for line in file.read_text().splitlines()]


def _record(said: dict[str, object]) -> DeliveryRecord:
    known = {each.name for each in fields(DeliveryRecord)}
    assert set(said) <= known
    record = DeliveryRecord(**said)  # type: ignore[arg-type]
    return replace(record, owed=tuple(record.owed)) if record.owed else record


def test_webhooks_are_accounted_for_without_a_finding(
    spark: SparkSession, tmp_path: Path, lived: list[DeliveryRecord]
) -> None:
    Lives(records=lived).write(tmp_path / "records")
    proof = proved(spark, asked(tmp_path, first=date(2026, 11, 18), last=date(2026, 11, 20), now=NOW))
    assert proof.set_aside == 0
    assert [each for each in proof.findings if each["severity"] == "breach"] == []
    assert proof.balanced
    owed = Counter(each.dialect for each in lived if each.kind == RecordKind.ATTEMPT)
    assert set(owed) == {"webhooks"}


def test_a_key_whose_messages_came_out_of_order_is_named(
    spark: SparkSession, tmp_path: Path, lived: list[DeliveryRecord]
) -> None:
    # Given the same records with two deliveries of one key at an endpoint swapped
    delivered = [
        number
        for number, each in enumerate(lived)
        if each.order_key == "customer-1" and each.verdict == Verdict.DELIVERED and each.subscriber == "well"
    ]
    swapped = [*lived]
    one, two = delivered[2], delivered[3]
    swapped[one] = replace(lived[one], sequence=lived[two].sequence)
    swapped[two] = replace(lived[two], sequence=lived[one].sequence)
    Lives(records=swapped).write(tmp_path / "records")
    proof = proved(spark, asked(tmp_path, first=date(2026, 11, 18), last=date(2026, 11, 20), now=NOW))
    # Then the late one is listed
    assert [each for each, _ in proof.named if each == "out_of_order"] == ["out_of_order"]
