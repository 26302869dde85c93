"""Loops of a template are written out as CloudFormation writes them out."""

from __future__ import annotations

from typing import Any

import pytest
from local.errors import LocalError
from samtranslator.yaml_helper import yaml_parse

from local import language_extensions

HEAD = """
Transform: [AWS::LanguageExtensions, AWS::Serverless-2016-10-31]
Mappings:
  Sizes: {One: {Bytes: 1, Name: one}, Two: {Bytes: 2, Name: two}}
  Zones: {eu: {Zone: a}}
Resources:
"""


def expanded(resources: str) -> dict[str, Any]:
    return language_extensions.expand(yaml_parse(HEAD + resources))


def test_a_loop_makes_a_resource_of_each_name() -> None:
    # Given a loop that refers to its name in each supported way
    made = expanded("""
  Fn::ForEach::Queues:
    - Name
    - [One, Two]
    - ${Name}Queue:
        Type: AWS::SQS::Queue
        Properties:
          Tag: !Ref Name
          Text: !Sub "${Name} of ${AWS::StackName}"
          Joined: !Sub ["/${AWS::StackName}/${Small}", {Small: !FindInMap [Sizes, !Ref Name, Name]}]
          Size: !FindInMap [Sizes, !Ref Name, Bytes]
          Twin: {Ref: !Sub "${Name}Dead"}
          Arn: {"Fn::GetAtt": [!Sub "${Name}Dead", Arn]}
      ${Name}Dead: {Type: AWS::SQS::Queue}
""")["Resources"]
    # Then what it made is what one would have written
    assert list(made) == ["OneQueue", "OneDead", "TwoQueue", "TwoDead"]
    assert made["TwoQueue"]["Properties"] == {
        "Tag": "Two",
        "Text": {"Fn::Sub": "Two of ${AWS::StackName}"},
        "Joined": {"Fn::Sub": "/${AWS::StackName}/two"},
        "Size": 2,
        "Twin": {"Ref": "TwoDead"},
        "Arn": {"Fn::GetAtt": ["TwoDead", "Arn"]},
    }


def test_loops_stand_in_loops_and_in_properties() -> None:
    # Given
    made = expanded("""
  Fn::ForEach::Outer:
    - Name
    - [One, Two]
    - Fn::ForEach::Inner:
        - Kind
        - [A, B]
        - ${Name}${Kind}:
            Type: T
            Fn::ForEach::Members: [Key, [x, y], {"Is${Key}": !Sub "${Name}-${Kind}-${Key}"}]
""")["Resources"]
    # Then
    assert list(made) == ["OneA", "OneB", "TwoA", "TwoB"]
    assert made["TwoA"] == {"Type": "T", "Isx": "Two-A-x", "Isy": "Two-A-y"}


def test_what_is_decided_at_the_deployment_stays_with_the_mappings_it_needs() -> None:
    # Given a value looked up by a parameter, and a variable that is no loop's
    made = expanded("""
  Other:
    Type: T
    Properties:
      Zone: !FindInMap [Zones, !Ref AWS::Region, Zone]
      Place: !Sub "${Bucket.Arn}/${!kept}"
      Chosen: !If [Large, !Ref Bucket, !Ref AWS::NoValue]
""")
    # Then it is as it was, and the mapping that only loops could have needed is gone, as is their transform
    assert made["Resources"]["Other"]["Properties"] == {
        "Zone": {"Fn::FindInMap": ["Zones", {"Ref": "AWS::Region"}, "Zone"]},
        "Place": {"Fn::Sub": "${Bucket.Arn}/${!kept}"},
        "Chosen": {"Fn::If": ["Large", {"Ref": "Bucket"}, {"Ref": "AWS::NoValue"}]},
    }
    assert set(made["Mappings"]) == {"Zones"}
    assert made["Transform"] == "AWS::Serverless-2016-10-31"


def test_a_template_without_the_transform_is_left_alone() -> None:
    # Given a template that does not ask for it
    plain = {"Mappings": {"Unused": {}}, "Resources": {"One": {"Type": "T"}}}
    # Then
    assert language_extensions.expand(plain) == plain


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ('  Fn::ForEach::L: [Name, [One], {"${Name}": {Type: T}}]\n  One: {Type: T}', "makes One twice"),
        ("  Fn::ForEach::L: [Name, [One], {Same: {Type: T}}]", "makes Same: a key has to hold"),
        ('  Fn::ForEach::L: [Name, [a-b], {"X${Name}": {Type: T}}]', "makes Xa-b: a key has to hold"),
        ('  Fn::ForEach::L: [Name, !Ref Names, {"${Name}": {Type: T}}]', "is not a name, a list and a body"),
        ('  Fn::ForEach::L: [Name, [One], {"${Name}": {Type: "${Name}"}}]', "outside of Fn::Sub"),
        ('  Fn::ForEach::L: [Name, [One], {"${Name}": {T: !Ref {Ref: Else}}}]', "refers to what no loop names"),
        ("  One: {T: !FindInMap [Sizes, One, Colour]}", "mappings have no Sizes/One/Colour"),
        ('  One: {T: {"Fn::Length": [1]}}', "Fn::Length in the template is not supported"),
    ],
)
def test_what_is_not_supported_is_refused(resources: str, message: str) -> None:
    with pytest.raises(LocalError, match=message):
        expanded(resources)
