"""The macros that ``template.yaml`` calls, in CloudFormation's own form (``Fn::Transform``). They are written out here,
before a deployment, as its loops are (docs/decisions/0010-loops-in-the-template.md).

``AWS::Include``
    What a file beside the template says; AWS's own, but for a file that nobody has to put into S3.
``Rights`` and ``NetworkRights``
    In a list: the statements under that name in the metadata of a function, also those in lists in it.
``Settings``
    In ``Globals``: each function gets the settings that its code asks for, with the values in the template's metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from local.errors import LocalError
from pushhub.runtime.hub import settings_of

_CALL = "Fn::Transform"
_RIGHTS = ("Rights", "NetworkRights")
_SETTINGS = "Settings"
_SHARED = "Shared"
"""The part of the metadata that holds the anchors."""


def write_out(template: Mapping[str, Any], included: Callable[[str], Any]) -> dict[str, Any]:
    """A template without calls of macros, and without the metadata that they are made from.

    Args:
        template: Without loops.
        included: Reads a file beside the template.
    """
    metadata = template.get("Metadata", {})
    written: dict[str, Any] = _Macros(template["Resources"], included).value(template)
    for resource in written["Resources"].values():
        _leave_out(resource, _RIGHTS)
    if _SETTINGS in metadata:
        del written["Globals"]["Function"]["Environment"]["Variables"][_CALL]
        for name, resource in written["Resources"].items():
            if resource["Type"] == "AWS::Serverless::Function":
                _give_settings(name, resource["Properties"], metadata[_SETTINGS])
    _leave_out(written, (_SETTINGS, _SHARED))
    return written


def _give_settings(name: str, function: dict[str, Any], values: Mapping[str, Any]) -> None:
    folder = function["CodeUri"].strip("/").rpartition("/")[2]
    asked = sorted(each.name for each in settings_of(folder))
    if missing := set(asked) - values.keys():
        raise LocalError(f"the template's metadata has no setting {', '.join(sorted(missing))}, which {name} asks for")
    own = function.setdefault("Environment", {}).setdefault("Variables", {})
    own |= {"POWERTOOLS_SERVICE_NAME": folder, **{each: values[each] for each in asked}}


def _leave_out(owner: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        owner.get("Metadata", {}).pop(name, None)
    if not owner.get("Metadata", True):
        del owner["Metadata"]


class _Macros:
    """What the calls stand for."""

    def __init__(self, resources: Mapping[str, Any], included: Callable[[str], Any]) -> None:
        self._resources = resources
        self._included = included

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [made for each in value for made in self._items(each)]
        if not isinstance(value, dict):
            return value
        if value.keys() == {_CALL} and value[_CALL]["Name"] == "AWS::Include":
            return self._included(value[_CALL]["Parameters"]["Location"])
        return {key: self.value(each) for key, each in value.items()}

    def _items(self, item: Any) -> Iterator[Any]:
        if isinstance(item, dict) and _CALL in item:
            name = item[_CALL]["Name"]
            if name not in _RIGHTS:
                raise LocalError(f"the template calls a macro {name}, which is not known")
            rights = self._resources[item[_CALL]["Parameters"]["Function"]].get("Metadata", {}).get(name, ())
            for each in rights:
                yield from each if isinstance(each, list) else [each]
        else:
            yield self.value(item)
