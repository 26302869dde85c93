"""The SAM template as the emulator can take it: transformed, with packages in its S3, without what it does not know."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from samtranslator.model.exceptions import InvalidDocumentException
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

from local.errors import LocalError
from local.place import REGION

__all__ = ["SKIPPED", "Resources", "Skip", "code_folders", "leave_out", "load", "transform"]

Resources = dict[str, dict[str, Any]]
"""Resources of a template by logical id."""

# It warns that nobody collects its own usage metrics.
logging.getLogger("samtranslator").setLevel(logging.ERROR)
_CODE = {"AWS::Serverless::Function": "CodeUri", "AWS::Serverless::LayerVersion": "ContentUri"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """A kind of resource that is not deployed to the emulator.

    Attributes:
        kind: CloudFormation type.
        having: Only resources with this property; None for all of the type.
        reason: Why nothing is lost by it.
    """

    kind: str
    having: str | None = None
    reason: str

    def applies_to(self, resource: Mapping[str, Any]) -> bool:
        """Whether the resource is of this kind."""
        return resource["Type"] == self.kind and (self.having is None or self.having in resource.get("Properties", {}))


SKIPPED = (
    Skip(
        kind="AWS::CloudWatch::Alarm",
        having="Metrics",
        reason="MiniStack refuses metric math; it publishes no metrics either, so no alarm ever sounds there",
    ),
)
"""All that is left out. Anything else the emulator does not know fails the deployment."""


def load(path: Path) -> dict[str, Any]:
    """Read a SAM template.

    Raises:
        LocalError: It is missing or no YAML.
    """
    try:
        parsed = yaml_parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LocalError(f"the template cannot be read: {path}: {error.strerror}") from error
    except ValueError as error:
        raise LocalError(f"the template is not valid YAML: {path}: {error}") from error
    if not isinstance(parsed, dict) or not isinstance(parsed.get("Resources"), dict):
        raise LocalError(f"the template has no resources: {path}")
    return parsed


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


def transform(template: dict[str, Any], code: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Do the SAM transform, offline.

    Args:
        template: As :func:`load` gave it; it is changed.
        code: Bucket and key of each package, by logical id.

    Raises:
        LocalError: The transform refuses the template.
    """
    for name, (bucket, key) in code.items():
        resource = template["Resources"][name]
        resource["Properties"][_CODE[resource["Type"]]] = {"Bucket": bucket, "Key": key}
    session = boto3.Session(region_name=REGION)
    try:
        result = Translator({}, Parser(), boto_session=session).translate(template, {})
    except InvalidDocumentException as error:
        reasons = "; ".join(cause.message for cause in error.causes)
        raise LocalError(f"the SAM transform refuses the template: {reasons or error.message}") from error
    # A plain copy: the transform returns dictionaries of its own kinds.
    copy: dict[str, Any] = json.loads(json.dumps(result))
    return copy


def leave_out(
    resources: Resources, skipped: tuple[Skip, ...] = SKIPPED, *, say: Callable[[str], None] | None = None
) -> Resources:
    """The resources without those that :data:`SKIPPED` names."""
    kept = {}
    for name, resource in resources.items():
        skip = next((skip for skip in skipped if skip.applies_to(resource)), None)
        if skip is None:
            kept[name] = resource
        elif say:
            say(f"left out: {name} ({skip.kind}): {skip.reason}")
    return kept
