"""The record's fields stand in one place; whatever else spells them out says the same."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from bench.records_generate import Plan, generate
from local.record_schema import ROOT, with_columns, with_fields

from pushhub.engine.model.record import COLUMNS, REQUIRED, DeliveryRecord, RecordKind

JSON_TYPES: dict[str, type] = {
    "int": int,
    "bigint": int,
    "boolean": bool,
    "string": str,
    "timestamp": str,
    "array<string>": list,
}


def test_the_page_lists_the_fields_as_they_are() -> None:
    page = (ROOT / "docs/records.md").read_text()
    assert with_fields(page) == page, "docs/records.md is out of date: make record-schema"


def test_the_template_lists_the_columns_as_they_are() -> None:
    template = (ROOT / "stacks" / "report.yaml").read_text()
    assert with_columns(template) == template, "stacks/report.yaml is out of date: make record-schema"


@pytest.mark.parametrize("derived", [with_columns, with_fields])
def test_a_file_without_the_place_to_write_to_is_refused(derived: Any) -> None:
    with pytest.raises(ValueError, match="is there 0 times"):
        derived("nothing of the kind")


def test_every_type_in_python_has_its_column() -> None:
    columns = {
        "int": {"int", "bigint"},
        "str": {"string", "timestamp"},
        "RecordKind": {"string"},
        "bool": {"boolean"},
        "tuple[str, ...]": {"array<string>"},
    }
    for each in fields(DeliveryRecord):
        assert COLUMNS[each.name] in columns[str(each.type).removesuffix(" | None")], each.name


def test_the_record_needs_nothing_else_of_the_hub() -> None:
    # Given that the report takes this one module along
    code = (
        "import sys, pushhub.engine.model.record; print(*[each for each in sys.modules if each.startswith('pushhub')])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "layers/pushhub",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    # Then only packages come with it
    assert set(found.stdout.split()) == {
        "pushhub",
        "pushhub.engine",
        "pushhub.engine.model",
        "pushhub.engine.model.record",
    }


def test_generated_records_are_records(tmp_path: Path) -> None:
    # Given what the bench generates, which names their fields itself
    generate(Plan(records=3_000, days=2, last_day=date(2026, 11, 18), projects=5), tmp_path)
    lines = [
        json.loads(line)
        for file in tmp_path.rglob("*.json.gz")
        for line in gzip.decompress(file.read_bytes()).decode().splitlines()
    ]
    assert lines
    # Then each line has fields of the record only, of their types, and all that every record has
    for line in lines:
        assert not set(REQUIRED) - set(line)
        for name, value in line.items():
            assert isinstance(value, JSON_TYPES[COLUMNS[name]]), name
        assert line["kind"] in set(RecordKind)
    # And no field of an attempt is missing from the generator
    attempt = {name for line in lines if line["kind"] == "attempt" for name in line}
    theirs = {each.name for each in fields(DeliveryRecord) if "attempt" in each.metadata["kinds"].split(", ")}
    spans, shown = {"trace_id", "parent_span_id", "span_id"}, {"signed_by", "token_client", "certificate"}
    assert theirs - attempt == {"order_key", "sequence", "manual", *spans, *shown}, (
        "the generator makes no ordered queues, no topics, no tries by hand, no traces, no signatures or gates"
    )
