"""The report job finds its script and its libraries under the names that its template gives."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from glue_jobs.libraries import WANTED
from local.errors import LocalError
from tests.template.cloudformation import of_type

from local import report_upload

LOCK = """# Made by a tool
contourpy==1.3.3 \\
    --hash=sha256:aa
    # via matplotlib
matplotlib==3.11.2 \\
    --hash=sha256:bb \\
    --hash=sha256:cc
python-dateutil==2.9.0.post0 \\
    --hash=sha256:dd
"""


class Stack:
    """A stack with some outputs, and S3."""

    def __init__(self, **outputs: str) -> None:
        self.outputs = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
        self.uploaded: list[tuple[str, str, str]] = []

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803 (boto3's name)
        return {"Stacks": [{"StackName": StackName, "Outputs": self.outputs}]}

    def upload_file(self, *call: str) -> None:
        self.uploaded.append(call)  # type: ignore[arg-type]


def test_versions_and_hashes_are_those_of_the_lock() -> None:
    assert report_upload.pinned(LOCK, ["python-dateutil", "contourpy"]) == (
        "python-dateutil==2.9.0.post0 \\\n    --hash=sha256:dd\n\n"
        "contourpy==1.3.3 \\\n    --hash=sha256:aa\n    # via matplotlib\n"
    )
    with pytest.raises(LocalError, match="the lock file has no pillow, six"):
        report_upload.pinned(LOCK, ["pillow", "matplotlib", "six"])


def test_the_zip_is_laid_out_as_glue_installs_it(tmp_path: Path) -> None:
    # Given wheels as they were downloaded, and something else
    lock = report_upload.LOCK.read_text(encoding="utf-8")
    for name in ("matplotlib-3.whl", "six-1.whl", "requirements.txt"):
        (tmp_path / name).write_text(name)
    # When they are packed
    target = tmp_path / "libraries.zip"
    report_upload.zip_of_wheels(tmp_path, lock, target)
    # Then the wheels lie beside the list of what to install
    with zipfile.ZipFile(target) as archive:
        assert archive.namelist() == ["wheels/requirements.txt", "wheels/matplotlib-3.whl", "wheels/six-1.whl"]
        wanted = archive.read("wheels/requirements.txt").decode().splitlines()
    assert [line.split("==")[0] for line in wanted] == list(WANTED)
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", line) for line in wanted)


def test_both_come_where_the_job_looks(tmp_path: Path) -> None:
    # Given a stack
    stack = Stack(BaseUrl="https://hub", RecordsBucketName="records-1")
    files = {report_upload.SCRIPT: tmp_path / "a.py", report_upload.LIBRARIES: tmp_path / "b.zip"}
    # When they are uploaded
    assert report_upload.upload("pushhub", stack, stack, files) == "records-1"  # type: ignore[arg-type]
    # Then they have the names that the job has for them
    (job,) = of_type("AWS::Glue::Job").values()
    looked_for = {
        job["Command"]["ScriptLocation"]["Fn::Sub"],
        job["DefaultArguments"]["--additional-python-modules"]["Fn::Sub"],
    }
    assert {f"s3://${{RecordsBucket}}/{key}" for _, _, key in stack.uploaded} == looked_for
    assert {bucket for _, bucket, _ in stack.uploaded} == {"records-1"}


def test_a_stack_of_something_else_is_said(tmp_path: Path) -> None:
    stack = Stack(Other="x")
    with pytest.raises(LocalError, match="the stack other has no output RecordsBucketName"):
        report_upload.upload("other", stack, stack, {"k": tmp_path})  # type: ignore[arg-type]
    assert stack.uploaded == []


def test_it_goes_to_the_region_and_the_account_that_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given two profiles with regions of their own
    config = tmp_path / "config"
    config.write_text("[default]\nregion = us-east-1\n[profile other]\nregion = eu-west-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    seen: list[str] = []
    monkeypatch.setattr(report_upload, "download", lambda *_: None)
    monkeypatch.setattr(report_upload, "zip_of_wheels", lambda *_: None)

    def upload(stack: str, cloudformation: Any, s3: Any, files: object) -> str:
        assert cloudformation.meta.region_name == s3.meta.region_name
        seen.append(f"{stack} {s3.meta.region_name}")
        return "records-1"

    monkeypatch.setattr(report_upload, "upload", upload)
    # When files are uploaded with and without saying where
    for words in ([], ["--profile", "other"], ["--profile", "other", "--region", "ap-south-1"]):
        assert report_upload.main(["hub", *words]) == 0
    # Then they go there
    assert seen == ["hub us-east-1", "hub eu-west-1", "hub ap-south-1"]
    # And a profile that is not there is said in a line
    assert report_upload.main(["hub", "--profile", "none"]) == 1
    assert "could not be found" in capsys.readouterr().err
