"""Each entry of a mapping that loops read belongs to a loop: a forgotten one would silently not be deployed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from samtranslator.yaml_helper import yaml_parse
from tests.template.cloudformation import ROOT, source, walk

WRITTEN: dict[str, Any] = yaml_parse((ROOT / "template.yaml").read_text(encoding="utf-8"))


def loops() -> Iterator[tuple[str, list[str], Any]]:
    for each in walk(WRITTEN["Resources"]):
        if isinstance(each, dict):
            yield from (tuple(body) for key, body in each.items() if key.startswith("Fn::ForEach::"))


def test_each_entry_of_a_mapping_is_used_by_a_loop() -> None:
    # Given the names that loops look up in each mapping
    used: dict[str, set[str]] = defaultdict(set)
    for name, items, body in loops():
        for each in walk(body):
            if isinstance(each, dict) and "Fn::FindInMap" in each and each["Fn::FindInMap"][1] == {"Ref": name}:
                used[each["Fn::FindInMap"][0]] |= set(items)
    # Then no entry is missing (that of the release is in no loop)
    for name in WRITTEN["Mappings"].keys() - source()["Mappings"].keys() - {"Release"}:
        assert set(WRITTEN["Mappings"][name]) == used[name]


def test_no_loop_is_named_as_a_resource() -> None:
    # CloudFormation refuses it
    keys = [key for each in walk(WRITTEN) if isinstance(each, dict) for key in each if key.startswith("Fn::ForEach::")]
    names = [key.removeprefix("Fn::ForEach::") for key in keys]
    assert len(names) == len(set(names))
    assert set(names).isdisjoint(source()["Resources"])
