"""What the pages say about the template is so: parameters that they name, commands of a deployment, local settings."""

from __future__ import annotations

import re

from local.deploy import deployer
from local.place import Place
from tests.template.cloudformation import ROOT, source

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
