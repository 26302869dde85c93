"""The tables that Athena sees have the columns that the job writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from glue_jobs.delivery_report.figures.cells import HOURLY
from glue_jobs.delivery_report.proof.deliveries import KEPT_DELIVERY
from glue_jobs.delivery_report.proof.findings import FINDING
from glue_jobs.delivery_report.storage.schema import CURATED, SETTLED, STATES
from pyspark.sql.types import StructType

from pushhub.engine.model.delivery import DeliveryState

TEMPLATE = (Path(__file__).parents[2] / "stacks" / "report.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("table", "schema"),
    [("records", CURATED), ("deliveries", KEPT_DELIVERY), ("attempts_hourly", HOURLY), ("findings", FINDING)],
)
def test_a_table_has_the_columns_of_its_schema_in_their_order(table: str, schema: StructType) -> None:
    (section,) = re.findall(rf"\n +Name: {table}\n.*?Columns:\n((?: +- [^\n]*\n)+)", TEMPLATE, re.DOTALL)
    columns = re.findall(r"\{Name: (\w+), Type: ([\w<>]+)\}", section)
    assert columns == [(field.name, field.dataType.simpleString()) for field in schema.fields]


def test_the_report_knows_every_state_a_delivery_can_have() -> None:
    assert {each.value for each in DeliveryState} <= set(STATES)
    assert set(SETTLED) < {each.value for each in DeliveryState}
