"""Writes out the loops of a template, as CloudFormation's transform ``AWS::LanguageExtensions`` does before the SAM
transform.

Only the parts that ``template.yaml`` needs: ``Fn::ForEach`` over written lists of names; in its body the name in keys,
in ``Fn::Sub`` and by ``Ref``; ``Ref`` and ``Fn::GetAtt`` of what the name makes; ``Fn::FindInMap`` by the name.
Anything on which implementations of the transform differ is refused. ``tests/sam`` compares the outcome with those of
the SAM CLI and the emulator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from local.errors import LocalError

TRANSFORM = "AWS::LanguageExtensions"
_LOOP = "Fn::ForEach::"
_SECTIONS = ("Conditions", "Resources", "Outputs")
_VARIABLE = re.compile(r"\$\{([^!}]+)\}")
_UNKNOWN = ("Fn::Length", "Fn::ToJsonString")


def expand(template: Mapping[str, Any]) -> dict[str, Any]:
    """A template without loops, and without the transform that asks for them."""
    named = template.get("Transform", [])
    transforms = [named] if isinstance(named, str) else list(named)
    if TRANSFORM not in transforms:
        return dict(template)
    left = [each for each in transforms if each != TRANSFORM]
    expanded = {key: value for key, value in template.items() if key != "Transform"}
    if left:
        expanded["Transform"] = left[0] if len(left) == 1 else left
    maps = template.get("Mappings", {})
    for section in _SECTIONS:
        if section in template:
            expanded[section] = _Scope(maps, {}).members(template[section])
    # The others contained the values of the loops.
    needed = _looked_into([expanded[section] for section in _SECTIONS if section in expanded])
    left_over = {name: each for name, each in maps.items() if name in needed}
    if left_over:
        expanded["Mappings"] = left_over
    else:
        expanded.pop("Mappings", None)
    return expanded


def _looked_into(value: Any) -> set[str]:
    """Names of the mappings that are used when a template is deployed."""
    if isinstance(value, list):
        return set().union(*map(_looked_into, value))
    if not isinstance(value, dict):
        return set()
    found = _looked_into(list(value.values()))
    if "Fn::FindInMap" in value and isinstance(value["Fn::FindInMap"][0], str):
        found.add(value["Fn::FindInMap"][0])
    return found


class _Scope:
    """The values of the names of the enclosing loops."""

    def __init__(self, maps: Mapping[str, Any], names: Mapping[str, str]) -> None:
        self._maps = maps
        self._names = names

    def members(self, body: Mapping[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in body.items():
            for name, each in self._looped(key, value) if key.startswith(_LOOP) else [(key, self.value(value))]:
                if name in made:
                    raise LocalError(f"the template makes {name} twice")
                made[name] = each
        return made

    def _looped(self, key: str, loop: Any) -> Iterator[tuple[str, Any]]:
        if not (isinstance(loop, list) and len(loop) == 3 and isinstance(loop[1], list) and isinstance(loop[2], dict)):
            raise LocalError(f"{key} in the template is not a name, a list and a body")
        name, items, body = loop
        for item in items:
            inner = _Scope(self._maps, {**self._names, name: str(item)})
            for member, value in body.items():
                if member.startswith(_LOOP):
                    yield from inner._looped(member, value)
                    continue
                made = inner._filled(member)
                if made == member or not made.isalnum():
                    raise LocalError(f"{key} in the template makes {made}: a key has to hold ${{{name}}}")
                yield made, inner.value(value)

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            if len(value) == 1:
                ((function, argument),) = value.items()
                return self._function(function, argument)
            return self.members(value)
        if isinstance(value, str) and self._names.keys() & set(_VARIABLE.findall(value)):
            raise LocalError(f"a loop's name in the template stands outside of Fn::Sub: {value}")
        return value

    def _function(self, function: str, argument: Any) -> Any:
        if function in _UNKNOWN:
            raise LocalError(f"{function} in the template is not supported on one machine")
        if function == "Fn::Sub":
            return self._substituted(argument)
        if function == "Ref":
            if isinstance(argument, str) and argument in self._names:
                return self._names[argument]
            return {"Ref": self._literal(argument)}
        if function == "Fn::GetAtt" and isinstance(argument, list):
            return {"Fn::GetAtt": [self._literal(each) for each in argument]}
        if function == "Fn::FindInMap":
            return self._found(self.value(argument))
        return self.members({function: argument})

    def _literal(self, argument: Any) -> str:
        text = self.value(argument)
        if not isinstance(text, str):
            raise LocalError(f"the template refers to what no loop names: {argument}")
        return text

    def _substituted(self, argument: Any) -> Any:
        text, variables = argument if isinstance(argument, list) else (argument, {})
        values = {name: self.value(each) for name, each in variables.items()}
        known = {name: each for name, each in values.items() if isinstance(each, str) and "${" not in each}
        filled = _Scope(self._maps, {**self._names, **known})._filled(text)
        left = {name: each for name, each in values.items() if name not in known}
        if left:
            return {"Fn::Sub": [filled, left]}
        return {"Fn::Sub": filled} if "${" in filled else filled

    def _filled(self, text: str) -> str:
        return _VARIABLE.sub(lambda found: self._names.get(found[1], found[0]), text)

    def _found(self, path: Any) -> Any:
        if not (isinstance(path, list) and len(path) == 3 and all(isinstance(each, str) for each in path)):
            return {"Fn::FindInMap": path}
        found: Any = self._maps
        for key in path:
            if not isinstance(found, dict) or key not in found:
                raise LocalError(f"the template's mappings have no {'/'.join(path)}")
            found = found[key]
        return found
