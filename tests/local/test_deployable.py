"""The template that ``sam build`` takes is the one that is tested, with paths that lead to the same code."""

from __future__ import annotations

import json
from pathlib import Path

from local.place import REPOSITORY

from local import deployable, language_extensions, template

SOURCE = REPOSITORY / "template.yaml"


def test_it_holds_no_loop_and_everything_else(tmp_path: Path) -> None:
    # When
    deployable.main([str(tmp_path / "build" / "template.json")])
    # Then it says what the template says, and needs no transform but SAM's
    written = json.loads((tmp_path / "build" / "template.json").read_text(encoding="utf-8"))
    assert "Fn::ForEach" not in json.dumps(written)
    assert written["Transform"] == "AWS::Serverless-2016-10-31"
    assert language_extensions.TRANSFORM in SOURCE.read_text(encoding="utf-8")
    assert written["Resources"].keys() == template.load(SOURCE)["Resources"].keys()


def test_its_paths_lead_to_the_same_code(tmp_path: Path) -> None:
    # Given where each function and layer of the template finds its code
    source = template.load(SOURCE)
    folders = template.code_paths(source)
    # When it is written to another folder
    target = tmp_path / "elsewhere" / "template.json"
    made = deployable.deployable(SOURCE, target)
    # Then they still find it
    for name, path in template.code_paths(made).items():
        assert (target.parent / path).resolve() == (REPOSITORY / folders[name]).resolve()
    # And the layer's Makefile for each runtime and processor
    (layer,) = (each for each in made["Resources"].values() if each["Type"] == "AWS::Serverless::LayerVersion")
    path = layer["Metadata"]["ContextPath"]["Fn::Sub"]
    assert ((target.parent / path).resolve().parent / "python3.13-arm64" / "Makefile").is_file()
