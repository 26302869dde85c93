"""Reads template.yaml and the stacks nested in it as CloudFormation will see them, after the SAM transform."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from local.deploy import template

ROOT = Path(__file__).parents[2]
Resource = dict[str, Any]


@cache
def source() -> Resource:
    """The template as written, with functions like ``!Ref`` in their long form."""
    return template.load(ROOT / "template.yaml")


def whole() -> Resource:
    """The template with its nested stacks in it, as if all of it were one file."""
    return template.as_one(template.load(ROOT / "template.yaml"), ROOT)


@cache
def resources() -> dict[str, Resource]:
    """All resources by logical id, nested stacks' too, with SAM's own types transformed to CloudFormation's."""
    written = whole()
    code = {name: ("artifacts", f"{name}.zip") for name in template.code_folders(written)}
    created: dict[str, Resource] = template.transform(written, code)["Resources"]
    return created


def of_type(kind: str) -> dict[str, Resource]:
    """Properties of all resources of a CloudFormation type, by logical id."""
    return {name: each.get("Properties", {}) for name, each in resources().items() if each["Type"] == kind}


def own_mappings() -> dict[str, Resource]:
    """Properties of the event source mappings of the stack's own queues and streams; not of what it is to consume from
    elsewhere.
    """
    found = of_type("AWS::Lambda::EventSourceMapping")
    return {name: each for name, each in found.items() if "Fn::GetAtt" in each["EventSourceArn"]}


def called_by(integration: str) -> str:
    """Logical id of the function that an API's integration calls."""
    uri = resources()[integration]["Properties"]["IntegrationUri"]
    (function,) = {each for each in references(uri) if resources().get(each, {}).get("Type") == "AWS::Lambda::Function"}
    return function


def function_of(mapping: Resource) -> str:
    """Logical id of the function that an event source mapping runs: by default, and not a version of it."""
    named = mapping["FunctionName"]
    return str((named["Fn::If"][2] if "Fn::If" in named else named)["Ref"])


def parameter(name: str) -> Resource:
    """A parameter's declaration."""
    declaration: Resource = source()["Parameters"][name]
    return declaration


def walk(value: Any) -> Iterator[Any]:
    """A value and everything inside it."""
    yield value
    if isinstance(value, dict):
        for each in value.values():
            yield from walk(each)
    elif isinstance(value, list):
        for each in value:
            yield from walk(each)


def references(value: Any) -> set[str]:
    """Logical ids and parameters that a value refers to."""
    found: set[str] = set()
    for each in walk(value):
        if not isinstance(each, dict):
            continue
        if "Ref" in each:
            found.add(each["Ref"])
        if "Fn::GetAtt" in each:
            target = each["Fn::GetAtt"]
            found.add(target.split(".")[0] if isinstance(target, str) else target[0])
        if "Fn::Sub" in each:
            text, own = each["Fn::Sub"] if isinstance(each["Fn::Sub"], list) else (each["Fn::Sub"], {})
            found |= {part.split("}")[0].split(".")[0] for part in text.split("${")[1:]} - set(own)
    return found


def conditions(**parameters: str) -> dict[str, bool]:
    """The values of the template's conditions, with the given parameters and defaults for the others."""
    values = {name: str(each["Default"]) for name, each in source()["Parameters"].items()} | parameters

    declared = whole()["Conditions"]

    def holds(condition: Resource) -> bool:
        ((function, arguments),) = condition.items()
        if function == "Condition":
            return holds(declared[arguments])
        if function == "Fn::Not":
            return not holds(arguments[0])
        if function in ("Fn::And", "Fn::Or"):
            return (all if function == "Fn::And" else any)(map(holds, arguments))
        assert function == "Fn::Equals", function
        left, right = (values[each["Ref"]] if isinstance(each, dict) else str(each) for each in arguments)
        return left == right

    return {name: holds(each) for name, each in declared.items()}


def deployed(**parameters: str) -> dict[str, Resource]:
    """The resources deployed with the given parameters and defaults for the others."""
    decided = conditions(**parameters)
    return {
        name: resolved(each, **decided)
        for name, each in resources().items()
        if decided.get(str(each.get("Condition")), True)
    }


def resolved(value: Any, **conditions: bool) -> Any:
    """A value with each ``Fn::If`` on a named condition resolved, and without values that become ``AWS::NoValue``."""
    if isinstance(value, dict):
        if "Fn::If" in value and value["Fn::If"][0] in conditions:
            condition, then, otherwise = value["Fn::If"]
            return resolved(then if conditions[condition] else otherwise, **conditions)
        decided = {key: resolved(each, **conditions) for key, each in value.items()}
        return {key: each for key, each in decided.items() if each != {"Ref": "AWS::NoValue"}}
    if isinstance(value, list):
        items = [resolved(each, **conditions) for each in value]
        return [each for each in items if each != {"Ref": "AWS::NoValue"}]
    return value
