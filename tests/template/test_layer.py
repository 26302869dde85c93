"""The layer: locked, and only what docs/dependencies.md says."""

from __future__ import annotations

import ast
import re
import tomllib

import botocore.session
from local.layer import read_target
from tests.template.cloudformation import ROOT, parameter, source

LOCK = (ROOT / "layers" / "pushhub" / "requirements.txt").read_text(encoding="utf-8")


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)(?:\[[a-z0-9,-]+\])?==(\S+)", lock, flags=re.MULTILINE))


def test_each_package_of_the_layer_is_pinned_by_hash_and_no_index_is_named() -> None:
    blocks = re.split(r"\n(?=[a-z])", LOCK)[1:]
    assert len(blocks) == len(pins(LOCK))
    assert all("--hash=sha256:" in block for block in blocks)
    assert "://" not in LOCK


def test_the_layer_brings_no_sdk_and_no_tracer() -> None:
    assert pins(LOCK).keys() >= {"aws-lambda-powertools", "requests", "pyyaml"}
    assert pins(LOCK).keys().isdisjoint({"boto3", "botocore", "aws-xray-sdk", "pydantic"})


def test_what_runs_in_lambda_is_what_is_tested() -> None:
    tested = pins((ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8"))
    assert pins(LOCK).items() <= tested.items()
    engine = (ROOT / "layers" / "scripting" / "requirements.txt").read_text(encoding="utf-8")
    assert "--hash=sha256:" in engine
    assert pins(engine).items() <= tested.items()


def test_the_engine_of_transformations_is_built_as_the_layer_is() -> None:
    layers = {name: each for name, each in source()["Resources"].items() if name in {"PushhubLayer", "ScriptingLayer"}}
    assert layers["ScriptingLayer"]["Metadata"] == layers["PushhubLayer"]["Metadata"]
    assert layers["ScriptingLayer"]["Properties"]["ContentUri"] == "layers/scripting/"


def test_the_layer_is_built_for_the_runtime_and_the_processor_of_the_functions() -> None:
    # Given what the SAM CLI reads
    layer = source()["Resources"]["PushhubLayer"]
    assert layer["Metadata"] == {
        "BuildMethod": "makefile",
        "BuildArchitecture": {"Ref": "Architecture"},
        "ContextPath": {"Fn::Sub": "layers/targets/${Runtime}-${Architecture}"},
    }
    assert layer["Properties"]["ContentUri"] == "layers/pushhub/"
    assert layer["Properties"]["CompatibleRuntimes"] == [{"Ref": "Runtime"}]
    assert layer["Properties"]["CompatibleArchitectures"] == [{"Ref": "Architecture"}]
    # Then there is a folder for each choice, whose name says what is built
    chosen = {
        f"{runtime}-{architecture}"
        for runtime in parameter("Runtime")["AllowedValues"]
        for architecture in parameter("Architecture")["AllowedValues"]
    }
    assert {folder.name for folder in (ROOT / "layers" / "targets").iterdir()} == chosen
    for name in chosen:
        assert read_target(name).architecture in name
        assert "layer.mk" in (ROOT / "layers" / "targets" / name / "Makefile").read_text(encoding="utf-8")


def test_each_runtime_that_may_be_chosen_is_one_of_lambda_on_amazon_linux_2023() -> None:
    # Given the available runtimes and processors
    runtimes = parameter("Runtime")["AllowedValues"]
    assert runtimes == ["python3.12", "python3.13", "python3.14"]
    # Then Lambda has them; python3.11 is on Amazon Linux 2, whose glibc 2.26 is too old for google-re2's wheels
    model = botocore.session.get_session().get_service_model("lambda")
    assert set(runtimes) <= set(model.shape_for("Runtime").metadata["enum"])
    # And the build and the deployment are given the same ones, in one place
    with (ROOT / "samconfig.toml").open("rb") as file:
        given = tomllib.load(file)["default"]["global"]["parameters"]["parameter_overrides"]
    chosen = dict(each.split("=") for each in given.split())
    assert chosen == {name: parameter(name)["Default"] for name in ("Architecture", "Runtime")}


REMOVED = {
    *("asynchat", "asyncore", "distutils", "imp", "smtpd"),
    *("aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "mailcap", "msilib", "nis", "nntplib", "lib2to3"),
    *("ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib"),
}
"""Modules of Python 3.11 that 3.12, 3.13 or 3.14 no longer have."""


def test_the_hubs_own_code_imports_nothing_that_newer_pythons_have_no_more() -> None:
    for folder in ("layers/pushhub/pushhub", "functions"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert REMOVED.isdisjoint(name.split(".")[0] for name in names), path
