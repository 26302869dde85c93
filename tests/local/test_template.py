"""The template for the emulator: transformed, and nothing left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from local.deploy import template
from local.errors import LocalError
from local.place import REPOSITORY

SMALL = """
Transform: AWS::Serverless-2016-10-31
Parameters:
  Runtime: {Type: String, Default: python3.13}
Globals:
  Function: {Runtime: !Ref Runtime, Handler: handler.handler, Layers: [!Ref Shared]}
Resources:
  Shared:
    Type: AWS::Serverless::LayerVersion
    Metadata: {BuildMethod: makefile}
    Properties: {ContentUri: layers/shared}
  Greet:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: functions/greet/, Role: !GetAtt GreetRole.Arn}
  GreetRole:
    Type: AWS::IAM::Role
    Properties: {AssumeRolePolicyDocument: {}}
  Unheard:
    Type: AWS::Unheard::Of
"""


@pytest.fixture
def small(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "template.yaml"
    path.write_text(SMALL)
    return template.load(path)


def test_the_code_of_functions_and_layers_is_found(small: dict[str, Any]) -> None:
    # Given a template, when its code is looked for, then every function and layer is found
    assert template.code_folders(small) == {
        "Shared": ("AWS::Serverless::LayerVersion", "layers/shared"),
        "Greet": ("AWS::Serverless::Function", "functions/greet/"),
    }


def test_the_transform_points_to_the_packages_and_keeps_everything(small: dict[str, Any]) -> None:
    # Given uploaded packages, when the template is transformed
    code = {"Greet": ("bucket", "greet.zip"), "Shared": ("bucket", "shared.zip")}
    resources = template.transform(small, code)["Resources"]
    # Then functions take their code from there, and their layer's new version
    layer = next(name for name, each in resources.items() if each["Type"] == "AWS::Lambda::LayerVersion")
    assert resources["Greet"]["Type"] == "AWS::Lambda::Function"
    assert resources["Greet"]["Properties"]["Code"] == {"S3Bucket": "bucket", "S3Key": "greet.zip"}
    assert resources["Greet"]["Properties"]["Layers"] == [{"Ref": layer}]
    assert resources[layer]["Properties"]["Content"] == {"S3Bucket": "bucket", "S3Key": "shared.zip"}
    # And resources of types it does not know are untouched
    assert resources["Unheard"] == {"Type": "AWS::Unheard::Of"}


def test_of_the_real_template_nothing_is_left_out() -> None:
    # Given the real template
    source = template.load(REPOSITORY / "template.yaml")
    named = set(source["Resources"])
    code = dict.fromkeys(template.code_folders(source), ("bucket", "package.zip"))
    # When it is transformed
    resources = template.transform(source, code)["Resources"]
    # Then every resource is there (the layer with its version in its name)
    assert {name for name in named if not any(each.startswith(name) for each in resources)} == set()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "the template cannot be read: .*No such file"),
        ("a: [", "the template is not valid YAML: "),
        ("- list", "the template has no resources: "),
        ("Resources: text", "the template has no resources: "),
    ],
)
def test_an_unusable_template_is_one_line(tmp_path: Path, content: str | None, message: str) -> None:
    # Given a template that is missing or none
    path = tmp_path / "template.yaml"
    if content is not None:
        path.write_text(content)
    # When it is loaded, then the reason is one line
    with pytest.raises(LocalError, match=message) as raised:
        template.load(path)
    assert "\n" not in str(raised.value)


def test_a_template_the_transform_refuses_is_one_line(small: dict[str, Any]) -> None:
    # Given a function with a property of the wrong type
    small["Resources"]["Greet"]["Properties"]["Timeout"] = {"no": "number"}
    small["Resources"]["Greet"]["Properties"]["Events"] = "none"
    # When it is transformed, then the reason names it
    with pytest.raises(LocalError, match=r"the SAM transform refuses the template: .*Greet"):
        template.transform(small, {"Greet": ("b", "k"), "Shared": ("b", "k")})


def test_a_function_without_code_is_named(small: dict[str, Any]) -> None:
    # Given a function without a folder, when its code is looked for, then the message names it
    del small["Resources"]["Greet"]["Properties"]["CodeUri"]
    with pytest.raises(LocalError, match="Greet in the template has no CodeUri"):
        template.code_folders(small)
