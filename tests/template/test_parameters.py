"""Parameters are explained and bounded; outputs are complete."""

from __future__ import annotations

import pytest
from tests.template.cloudformation import Resource, of_type, references, source

PARAMETERS: dict[str, Resource] = source()["Parameters"]
OUTPUTS: dict[str, Resource] = source()["Outputs"]


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_has_a_default_a_description_and_a_constraint(name: str) -> None:
    declaration = PARAMETERS[name]
    assert "Default" in declaration
    assert declaration["Description"].endswith(".")
    assert declaration["ConstraintDescription"].endswith(".")
    assert declaration.keys() & {"AllowedPattern", "AllowedValues", "MinValue"}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_is_used_and_shown_in_one_group(name: str) -> None:
    written = {key: value for key, value in source().items() if key not in {"Parameters", "Metadata"}}
    assert name in references(written)
    groups = source()["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    assert [name in group["Parameters"] for group in groups].count(True) == 1


def test_a_deployment_tells_its_address_and_the_names_of_what_it_made() -> None:
    named = references([each["Value"] for each in OUTPUTS.values()])
    for kind in ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::Lambda::Function"):
        assert set(of_type(kind)) <= named
    assert {"BaseUrl", "AlarmTopicArn"} <= set(OUTPUTS)


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_is_described(name: str) -> None:
    assert OUTPUTS[name]["Description"]
