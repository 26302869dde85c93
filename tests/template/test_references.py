"""Whatever a file refers to, it has: CloudFormation refuses a template that refers to what is in another file."""

from __future__ import annotations

from typing import Any

import pytest
from local.deploy import template
from tests.template.cloudformation import ROOT, references

FILES = ["template.yaml", *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "stacks").glob("*.yaml")))]
OF_SAM = ("FunctionRole", "FunctionAliaslive")
"""What SAM makes beside a function, by the ends of its logical ids."""


def stacks_told(value: Any) -> set[tuple[str, str]]:
    """Outputs of nested stacks that a value reads."""
    if isinstance(value, list):
        return set().union(*map(stacks_told, value))
    if not isinstance(value, dict):
        return set()
    if "Fn::GetAtt" in value and ".Outputs." in ".".join(value["Fn::GetAtt"]):
        stack, _, output = ".".join(value["Fn::GetAtt"]).partition(".Outputs.")
        return {(stack, output)}
    return stacks_told(list(value.values()))


@pytest.mark.parametrize("name", FILES)
def test_a_file_refers_to_its_own_resources_and_parameters_only(name: str) -> None:
    written = template.load(ROOT / name)
    has = {*written["Resources"], *written.get("Parameters", ())}
    named = {each for each in references(written) if not each.startswith("AWS::")}
    missing = named - has
    assert {each for each in missing if not each.endswith(OF_SAM)} == set()
    assert all(each.partition("Function")[0] + "Function" in has for each in missing)


def test_what_is_read_of_a_nested_stack_is_told_by_it() -> None:
    hub = template.load(ROOT / "template.yaml")
    inner = template.nested(hub, ROOT)
    reported = {(stack, output) for stack, each in inner.items() for output in each.get("Outputs", ())}
    assert stacks_told(hub) <= reported
