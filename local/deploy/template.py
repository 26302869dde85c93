"""The SAM template in a form that the emulator accepts: transformed, with packages in its S3.

It is read as it lies in the repository, as SAM reads it. Nothing is left out: a resource of a type that the emulator
does not support fails the deployment.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
import yaml
from samtranslator.model.exceptions import InvalidDocumentException
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import intrinsics_multi_constructor
from yaml import YAMLError

from local.errors import LocalError
from local.place import REGION

# It warns that nobody collects its own usage metrics.
logging.getLogger("samtranslator").setLevel(logging.ERROR)


class _Loader(yaml.CSafeLoader):
    """SAM's own reader of YAML takes 1.5 s for this template; compiled, the same takes a tenth."""


_Loader.add_multi_constructor("!", intrinsics_multi_constructor)

_CODE = {"AWS::Serverless::Function": "CodeUri", "AWS::Serverless::LayerVersion": "ContentUri"}
_NESTED = "AWS::Serverless::Application"
_VARIABLE = re.compile(r"\$\{([^!}]+)\}")


def load(path: Path) -> dict[str, Any]:
    """Read a SAM template.

    Raises:
        LocalError: There is none, or it is no template.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise LocalError(f"the template cannot be read: {path}: {error.strerror}") from error
    try:
        parsed = yaml.load(text, _Loader)  # noqa: S506 (derived from the safe one)
    except (ValueError, YAMLError) as error:
        raise LocalError(f"the template is not valid YAML: {path}: {error}") from error
    if not isinstance(parsed, dict) or not isinstance(parsed.get("Resources"), dict):
        raise LocalError(f"the template has no resources: {path}")
    return parsed


def nested(template: Mapping[str, Any], folder: Path) -> dict[str, dict[str, Any]]:
    """The templates of the nested stacks, by the logical id of the stack.

    Args:
        folder: Where the template is: the locations in it start there.
    """
    stacks = {name: each for name, each in template["Resources"].items() if each["Type"] == _NESTED}
    return {name: load(folder / each["Properties"]["Location"]) for name, each in stacks.items()}


def code_folders(template: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Where the code of each function and layer is: logical id to (type, folder relative to the template)."""
    common = template.get("Globals", {}).get("Function", {}).get("CodeUri")
    folders = {}
    for name, resource in template["Resources"].items():
        kind = resource["Type"]
        if kind in _CODE:
            folder = resource["Properties"].get(_CODE[kind], common)
            if not isinstance(folder, str):
                raise LocalError(f"{name} in the template has no {_CODE[kind]} that names a folder")
            folders[name] = (kind, folder)
    return folders


def transform(
    template: dict[str, Any], code: Mapping[str, tuple[str, str]], stacks: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Do the SAM transform, offline.

    Args:
        template: As :func:`load` gave it; it is changed.
        code: Bucket and key of each package, by logical id.
        stacks: Where the template of each nested stack is, by logical id: an URL.
    """
    for name, (bucket, key) in code.items():
        resource = template["Resources"][name]
        resource["Properties"][_CODE[resource["Type"]]] = {"Bucket": bucket, "Key": key}
    for name, url in (stacks or {}).items():
        template["Resources"][name]["Properties"]["Location"] = url
    session = boto3.Session(region_name=REGION)
    try:
        result = Translator({}, Parser(), boto_session=session).translate(template, {})
    except InvalidDocumentException as error:
        reasons = "; ".join(cause.message for cause in error.causes)
        raise LocalError(f"the SAM transform refuses the template: {reasons or error.message}") from error
    # A plain copy: the transform returns dictionaries of its own kinds.
    copy: dict[str, Any] = json.loads(json.dumps(result))
    return copy


def as_one(template: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A template with what its nested stacks make, as if all of it were in one file: for whoever looks at the whole.

    A stack's parameters are replaced by what they are given, its outputs by what they tell. A resource under a
    condition of its own in a stack with a condition has one that is named after both.
    """
    one = {**template, "Resources": dict(template["Resources"]), "Conditions": dict(template.get("Conditions", {}))}
    outputs: dict[str, Any] = {}
    for name, inner in nested(template, folder).items():
        stack = one["Resources"].pop(name)
        place = _Placed(_given(inner.get("Parameters", {}), stack["Properties"].get("Parameters", {})), {})
        for each, condition in inner.get("Conditions", {}).items():
            placed = place.value(condition)
            if one["Conditions"].setdefault(each, placed) != placed:
                raise LocalError(f"{name} in the template has another condition {each}")
        outer = stack.get("Condition")
        for each, resource in inner["Resources"].items():
            if each in one["Resources"]:
                raise LocalError(f"{name} in the template has another {each}")
            placed = place.value(resource)
            if outer and "Condition" in placed:
                both = f"{outer}And{placed['Condition']}"
                one["Conditions"][both] = {"Fn::And": [{"Condition": outer}, {"Condition": placed["Condition"]}]}
                placed["Condition"] = both
            elif outer:
                placed["Condition"] = outer
            one["Resources"][each] = placed
        for each, output in inner.get("Outputs", {}).items():
            outputs[f"{name}.Outputs.{each}"] = place.value(output["Value"])
    # What one stack is given may be what another tells.
    final = _Placed({}, outputs)
    for _ in range(2):
        one = final.value(one)
    return one


def _given(declared: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a nested stack. A list is a text with commas where it is said, and a list where it is used."""
    values = {}
    for name, each in declared.items():
        value = said.get(name, each.get("Default", ""))
        if each["Type"] == "CommaDelimitedList":
            joined = value.get("Fn::Join") if isinstance(value, dict) else None
            value = joined[1] if joined else {"Fn::Split": [",", value]}
        values[name] = value
    return values


class _Placed:
    """Values with the names in them replaced: of parameters, and of what stacks tell."""

    def __init__(self, names: Mapping[str, Any], attributes: Mapping[str, Any]) -> None:
        self._names = names
        self._attributes = attributes

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {"Ref"} and value["Ref"] in self._names:
            return self._names[value["Ref"]]
        if value.keys() == {"Fn::GetAtt"}:
            named = value["Fn::GetAtt"]
            return self._attributes.get(named if isinstance(named, str) else ".".join(named), value)
        if value.keys() == {"Fn::Sub"}:
            return self._substituted(value["Fn::Sub"])
        return {key: self.value(each) for key, each in value.items()}

    def _substituted(self, argument: Any) -> Any:
        text, own = argument if isinstance(argument, list) else (argument, {})
        own = {name: self.value(each) for name, each in own.items()}

        def placed(found: re.Match[str]) -> str:
            name = found[1]
            given = own.get(name, self._names.get(name, self._attributes.get(name)))
            if given is None:
                return found[0]
            stands = _text_of(given)
            if stands is None or (name in own and not _is_reference(given)):
                own[name] = given
                return found[0]
            return stands

        text = _VARIABLE.sub(placed, text)
        left = {name: each for name, each in own.items() if f"${{{name}}}" in text}
        return {"Fn::Sub": [text, left] if left else text}


def _text_of(value: Any) -> str | None:
    """What stands for a value in the text of ``Fn::Sub``; None if nothing does."""
    if isinstance(value, (str, int)):
        return str(value)
    ((function, inner),) = value.items()
    if function == "Ref":
        return f"${{{inner}}}"
    if function == "Fn::GetAtt":
        return f"${{{inner if isinstance(inner, str) else '.'.join(inner)}}}"
    return inner if function == "Fn::Sub" and isinstance(inner, str) else None


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and bool(value.keys() & {"Ref", "Fn::GetAtt"})
