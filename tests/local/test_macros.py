"""What the template calls by name is there when it is deployed, and what it is made from is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from local.errors import LocalError
from local.place import REPOSITORY

from local import template
from pushhub.runtime.hub import settings_of

FUNCTION = """
Transform: [AWS::LanguageExtensions, AWS::Serverless-2016-10-31]
Metadata:
  Shared:
    - &Kept {DeletionPolicy: Retain}
  Settings: {SETTINGS}
Globals:
  Function:
    Environment:
      Variables:
        LOG_LEVEL: INFO
        Fn::Transform: {Name: Settings}
Resources:
  ConsoleFunction:
    Type: AWS::Serverless::Function
    Properties: {CodeUri: functions/console/, Environment: {Variables: {ALSO: this}}}
    Metadata:
      Rights: [one, [two, three]]
  Fn::ForEach::Roles:
    - Name
    - [Console]
    - ${Name}Role:
        Type: AWS::IAM::Role
        <<: *Kept
        Properties:
          Rights: [zero, {"Fn::Transform": {Name: RIGHTS, Parameters: {Function: !Sub "${Name}Function"}}}, four]
"""
ASKED = sorted(each.name for each in settings_of("console"))


def written_out(settings: dict[str, str], rights: str = "Rights") -> dict[str, Any]:
    listed = ", ".join(f"{name}: {value}" for name, value in settings.items())
    return template.parse(FUNCTION.replace("SETTINGS", listed).replace("RIGHTS", rights), "small")


def test_a_function_gets_the_settings_that_its_code_asks_for_and_no_others() -> None:
    # Given values of them and of one that nobody asks for, when the template is written out
    made = written_out({**{name: f"of {name}" for name in ASKED}, "OF_NOBODY": "x"})
    # Then it has those, its name and what it says itself; the others keep what is common
    assert made["Resources"]["ConsoleFunction"]["Properties"]["Environment"]["Variables"] == {
        **{name: f"of {name}" for name in ASKED},
        "POWERTOOLS_SERVICE_NAME": "console",
        "ALSO": "this",
    }
    assert made["Globals"]["Function"]["Environment"]["Variables"] == {"LOG_LEVEL": "INFO"}


def test_a_setting_without_a_value_is_named() -> None:
    # Given all values but one
    given = dict.fromkeys(ASKED[1:], "x")
    # When it is written out, then it says which, and who asks
    with pytest.raises(LocalError, match=f"has no setting {ASKED[0]}, which ConsoleFunction asks for"):
        written_out(given)


def test_rights_stand_in_the_role_where_they_are_called_for() -> None:
    made = written_out(dict.fromkeys(ASKED, "x"))["Resources"]["ConsoleRole"]
    assert made["Properties"]["Rights"] == ["zero", "one", "two", "three", "four"]
    # Where a function has none of that name, there are none
    none = written_out(dict.fromkeys(ASKED, "x"), "NetworkRights")["Resources"]["ConsoleRole"]
    assert none["Properties"]["Rights"] == ["zero", "four"]


def test_what_it_is_made_from_is_not_deployed() -> None:
    made = written_out(dict.fromkeys(ASKED, "x"))
    assert "Metadata" not in made
    assert "Metadata" not in made["Resources"]["ConsoleFunction"]
    assert made["Resources"]["ConsoleRole"]["DeletionPolicy"] == "Retain"


def test_a_macro_that_is_not_known_is_refused() -> None:
    with pytest.raises(LocalError, match="calls a macro Wrongs, which is not known"):
        written_out(dict.fromkeys(ASKED, "x"), "Wrongs")


def test_what_is_included_is_beside_the_template(tmp_path: Path) -> None:
    # Given a template that includes a file
    path = tmp_path / "template.yaml"
    path.write_text(
        "Resources: {One: {Type: A, Properties: {Body: "
        '{"Fn::Transform": {Name: AWS::Include, Parameters: {Location: body.yaml}}}}}}'
    )
    # When that is missing, then it is named
    with pytest.raises(LocalError, match=r"includes what cannot be read: .*body\.yaml"):
        template.load(path)
    # When it is there, then it stands in its place
    (tmp_path / "body.yaml").write_text("Fn::Sub: of ${One}")
    assert template.load(path)["Resources"]["One"]["Properties"] == {"Body": {"Fn::Sub": "of ${One}"}}


def test_of_the_real_template_nothing_is_left_of_macros_and_no_value_is_for_nobody() -> None:
    # Given the real one, as it is written
    text = (REPOSITORY / "template.yaml").read_text(encoding="utf-8")
    table = text.split("\n  Settings:\n")[1].split("\n\n")[0].splitlines()
    values = {line.split(":")[0].strip() for line in table if not line.strip().startswith("#")}
    # When it is loaded
    made = template.load(REPOSITORY / "template.yaml")
    # Then no call is left in it, and each value is a setting of some function
    assert "Fn::Transform" not in str(made)
    folders = [each.parent.name for each in (REPOSITORY / "functions").glob("*/handler.py")]
    assert values == {each.name for folder in folders for each in settings_of(folder)}
