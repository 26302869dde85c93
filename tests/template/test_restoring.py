"""``pushhub deploy table`` makes a table as the template does: keys, index, stream, time to live, readers."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from cli.operators.deployment import Deployment
from cli.operators.restoring import KEPT, STREAM, TABLES, Table, described, put_in_place
from moto import mock_aws
from tests.template.cloudformation import of_type, own_mappings, source


def named() -> dict[str, str]:
    """The output of each table, by its logical id."""
    outputs = {each["Value"].get("Ref"): name for name, each in source()["Outputs"].items()}
    return {table: outputs[table] for table in of_type("AWS::DynamoDB::Table")}


def test_every_table_can_be_put_in_place() -> None:
    assert sorted(named().values()) == sorted(each.output for each in TABLES.values())
    assert all(table.output == f"{name.capitalize()}TableName" for name, table in TABLES.items())


@pytest.mark.parametrize("logical", of_type("AWS::DynamoDB::Table"))
def test_it_gets_what_the_template_gives_it(logical: str) -> None:
    properties = of_type("AWS::DynamoDB::Table")[logical]
    (table,) = (each for each in TABLES.values() if each.output == named()[logical])
    created = described(table)
    # Given the template's keys and index
    kept = ("IndexName", "KeySchema", "Projection")
    indexes = [{key: each[key] for key in kept} for each in properties.get("GlobalSecondaryIndexes", ())]
    # Then the table has the same
    assert created["KeySchema"] == properties["KeySchema"]
    assert created.get("GlobalSecondaryIndexes", []) == indexes
    assert by_name(created["AttributeDefinitions"]) == by_name(properties["AttributeDefinitions"])
    # And stream and time to live
    assert properties.get("StreamSpecification", {}).items() <= STREAM.items()
    assert table.streamed == ("StreamSpecification" in properties)
    assert table.ttl == properties.get("TimeToLiveSpecification", {}).get("AttributeName", "")


@pytest.mark.parametrize("table", [each for each in TABLES.values() if each.streamed], ids=lambda each: each.output)
def test_what_is_written_into_a_new_table_at_once_is_in_its_stream(table: Table) -> None:
    # Given a table that was lost, and producers that have been posting all the while
    with mock_aws():
        session = boto3.Session("testing", "testing", region_name="us-east-1")
        steps = put_in_place(Deployment("", {table.output: "lost"}, session, {}), table, empty=True)
        # When it has just been made, and the next step has not begun
        next(steps)
        created = session.client("dynamodb").describe_table(TableName="lost")["Table"]
    # Then it has a stream already: nothing is accepted that no function hears of
    assert created["StreamSpecification"] == STREAM


def by_name(attributes: list[dict[str, str]]) -> dict[str, str]:
    return {each["AttributeName"]: each["AttributeType"] for each in attributes}


def test_a_new_mapping_takes_over_all_that_the_template_says_of_it() -> None:
    said: set[str] = set()
    for mapping in own_mappings().values():
        arn: Any = mapping["EventSourceArn"]["Fn::GetAtt"]
        if "StreamArn" in arn:
            said |= mapping.keys()
            assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert said - {"EventSourceArn", "FunctionName", "StartingPosition"} == {*KEPT}
