"""What a change of the template changes on AWS is said, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from local import template, template_diff

BY_HAND = """
Transform: AWS::Serverless-2016-10-31
Resources:
  OneQueue: {Type: AWS::SQS::Queue, Properties: {DelaySeconds: 1}}
  TwoQueue: {Type: AWS::SQS::Queue, Properties: {DelaySeconds: 2}}
Outputs:
  One: {Value: !Ref OneQueue}
"""
IN_A_LOOP = """
Transform: [AWS::LanguageExtensions, AWS::Serverless-2016-10-31]
Mappings:
  Queues: {One: {Delay: 1}, Two: {Delay: 2}}
Resources:
  Fn::ForEach::Queues:
    - Name
    - [One, Two]
    - ${Name}Queue:
        Type: AWS::SQS::Queue
        Properties: {DelaySeconds: !FindInMap [Queues, !Ref Name, Delay]}
Outputs:
  One: {Value: !Ref OneQueue}
"""


def differences(before: str, after: str) -> list[str]:
    return list(
        template_diff.differences(
            template_diff.as_deployed(template.parse(before, "before")),
            template_diff.as_deployed(template.parse(after, "after")),
        )
    )


def test_the_same_thing_written_as_a_loop_is_no_difference() -> None:
    assert differences(BY_HAND, IN_A_LOOP) == []


def test_each_resource_that_changes_is_named_with_its_change() -> None:
    # When a value changes, a resource comes, an output goes
    after = IN_A_LOOP.replace("[One, Two]", "[One, Two, Six]").replace("{Delay: 2}", "{Delay: 3}, Six: {Delay: 6}")
    found = differences(BY_HAND, after.split("Outputs")[0])
    # Then each is told by itself
    assert [each.splitlines()[0] for each in found] == ["Resources SixQueue", "Resources TwoQueue", "Outputs One"]
    assert '-  "DelaySeconds": 2' in found[1]
    assert '+  "DelaySeconds": 3' in found[1]


def test_the_working_tree_is_compared_with_a_revision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Given a repository with a template, written anew since
    path = tmp_path / "template.yaml"
    path.write_text(BY_HAND)
    name = ["-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "--quiet"], ["add", "."], [*name, "commit", "--quiet", "--message", "made"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    path.write_text(IN_A_LOOP)
    # When it says the same, and when it does not
    same = template_diff.main(["HEAD", "--template", str(path)])
    path.write_text(IN_A_LOOP.replace("Delay: 2", "Delay: 5"))
    other = template_diff.main(["HEAD", "--template", str(path)])
    missing = template_diff.main(["no-such-revision", "--template", str(path)])
    # Then the status says so
    assert (same, other, missing) == (0, 1, 2)
    assert "Resources TwoQueue" in capsys.readouterr().out
