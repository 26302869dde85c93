"""The SAM template in a form that the emulator accepts: transformed, with packages in its S3.

Nothing is left out: a resource of a type that the emulator does not support fails the deployment.
"""

from __future__ import annotations

import json
import logging
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

from local import language_extensions, macros
from local.errors import LocalError
from local.place import REGION, REPOSITORY

# It warns that nobody collects its own usage metrics.
logging.getLogger("samtranslator").setLevel(logging.ERROR)


class _Loader(yaml.CSafeLoader):
    """SAM's own reader of YAML takes 1.5 s for this template; compiled, the same takes a tenth."""


_Loader.add_multi_constructor("!", intrinsics_multi_constructor)

_CODE = {"AWS::Serverless::Function": "CodeUri", "AWS::Serverless::LayerVersion": "ContentUri"}


def load(path: Path, release: str = "") -> dict[str, Any]:
    """Read a SAM template, with its loops and macros written out.

    Args:
        path: The template.
        release: What its mapping ``Release`` says, in place of what is written there.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise LocalError(f"the template cannot be read: {path}: {error.strerror}") from error
    return parse(text, str(path), release, path.parent)


def parse(text: str, name: str, release: str = "", folder: Path = REPOSITORY) -> dict[str, Any]:
    """Like :func:`load`, from text; messages use the given name, and what is included is in the folder."""
    try:
        parsed = yaml.load(text, _Loader)  # noqa: S506 (derived from the safe one)
    except (ValueError, YAMLError) as error:
        raise LocalError(f"the template is not valid YAML: {name}: {error}") from error
    if not isinstance(parsed, dict) or not isinstance(parsed.get("Resources"), dict):
        raise LocalError(f"the template has no resources: {name}")
    if release:
        parsed["Mappings"]["Release"]["This"]["Id"] = release
    return macros.write_out(language_extensions.expand(parsed), lambda location: _included(folder / location))


def _included(path: Path) -> Any:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506 (as above)
    except (OSError, ValueError, YAMLError) as error:
        raise LocalError(f"the template includes what cannot be read: {path}: {error}") from error


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


def code_paths(template: Mapping[str, Any]) -> dict[str, str]:
    """Like :func:`code_folders`, but only the folders."""
    return {name: folder for name, (_, folder) in code_folders(template).items()}


def point(template: Mapping[str, Any], name: str, place: Any) -> None:
    """Set the place of the code of a function or layer."""
    resource = template["Resources"][name]
    resource["Properties"][_CODE[resource["Type"]]] = place


def transform(template: dict[str, Any], code: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Do the SAM transform, offline.

    Args:
        template: As :func:`load` gave it; it is changed.
        code: Bucket and key of each package, by logical id.
    """
    for name, (bucket, key) in code.items():
        point(template, name, {"Bucket": bucket, "Key": key})
    session = boto3.Session(region_name=REGION)
    try:
        result = Translator({}, Parser(), boto_session=session).translate(template, {})
    except InvalidDocumentException as error:
        reasons = "; ".join(cause.message for cause in error.causes)
        raise LocalError(f"the SAM transform refuses the template: {reasons or error.message}") from error
    # A plain copy: the transform returns dictionaries of its own kinds.
    copy: dict[str, Any] = json.loads(json.dumps(result))
    return copy
