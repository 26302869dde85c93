"""What the pages say about the template is so: parameters that they name, commands of a deployment, local settings."""

from __future__ import annotations

import re

from local.deploy import deployer
from local.place import Place
from tests.template.cloudformation import ROOT, of_type, source

PAGES = [
    *ROOT.glob("*.md"),
    *(each for each in (ROOT / "docs").rglob("*.md") if "archive" not in each.parts),
]
GIVEN = re.compile(r"\b([A-Z][a-z]+(?:[A-Z][A-Za-z]*)+)=[^`= \n]")
"""A parameter with a value."""


def test_every_parameter_that_a_page_gives_a_value_exists() -> None:
    unknown = {
        f"{path.name}: {name}"
        for path in PAGES
        if path.name != "CHANGELOG.md"
        for name in GIVEN.findall(path.read_text(encoding="utf-8"))
        if name not in source()["Parameters"]
    }
    assert unknown == set()


def test_every_parameter_of_the_table_exists_and_stands_in_it() -> None:
    text = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    table = text[text.index("| parameter | default |") :].split("\n\n")[0]
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named - source()["Parameters"].keys() == set()


def test_the_settings_that_are_others_on_one_machine_are_named() -> None:
    text = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    [reported] = re.findall(r"others there \(`local/deploy/deployer.py`\): ([^.]*)\.", text)
    assert re.findall(r"`(\w+)`", reported) == [*deployer.settings(Place.from_environment({}))]


def commands() -> list[str]:
    """The lines of code of all pages, those that go on in the next one together."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGES if path.name != "CHANGELOG.md")
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```", text.replace("\\\n", " "), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_no_command_waits_for_a_run_longer_than_the_aws_cli_does() -> None:
    # After a minute without an answer it gives up, and has the function run once more, beside the first run
    timeouts = {name: each.get("Timeout", 0) for name, each in of_type("AWS::Lambda::Function").items()}
    outputs = {name: each["Value"].get("Ref") for name, each in source()["Outputs"].items()}
    asked = [
        (timeouts[str(outputs[name])], line)
        for line in commands()
        for name in re.findall(r"aws lambda invoke .*--function-name \$(\w+)", line)
    ]
    assert asked
    assert [line for seconds, line in asked if seconds > 60 and "--invocation-type Event" not in line] == []


def test_mappings_are_found_whichever_version_they_run() -> None:
    # With GradualDeployment some run an alias, under whose name alone Lambda lists them
    listed = [line for line in commands() if "list-event-source-mappings" in line]
    assert listed
    assert [line for line in listed if "--function-name" in line] == []


def test_whoever_gives_up_what_it_does_not_find_is_stopped_before_a_table_is_rebuilt() -> None:
    # errors drops an order whose delivery is not there: its error queue would never hear of it
    [stopped] = [line for line in commands() if line.strip().startswith("for F in ")]
    assert {each.strip(";") for each in stopped.split() if each.startswith("$")} == {
        *("$PushFunctionName", "$PollFunctionName", "$ErrorsFunctionName"),
    }
