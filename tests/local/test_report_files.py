"""The delivery report's files are listed, read, written and removed alike on S3 and on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from glue_jobs.delivery_report.storage import files
from glue_jobs.delivery_report.storage.files import fetched, from_json, listed, put_file, read_text, remove, write_text
from moto import mock_aws


@pytest.fixture(params=["s3", "disk"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "disk":
        yield f"file://{tmp_path}"
        return
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        boto3.client("s3").create_bucket(Bucket="records")
        files._client.cache_clear()
        yield "s3://records/out"
        files._client.cache_clear()


def test_what_was_written_is_listed_and_read(root: str) -> None:
    write_text(f"{root}/dt=1/hour=05/a.json", "grün", "application/json")
    write_text(f"{root}/dt=1/_manifest.json", "{}", "application/json")
    write_text(f"{root}/dt=10/b", "b", "text/plain")
    # Hidden files are not listed, nor is a neighbour whose name begins alike, but they can be read
    assert {name: each.size for name, each in listed(f"{root}/dt=1").items()} == {"hour=05/a.json": 5}
    assert read_text(f"{root}/dt=1/_manifest.json") == "{}"
    assert read_text(f"{root}/dt=1/hour=05/a.json") == "grün"
    assert read_text(f"{root}/dt=1/nothing") is None
    assert listed(f"{root}/dt=2") == {}


def test_a_file_goes_there_and_comes_back_as_it_is(root: str, tmp_path: Path) -> None:
    # Given files of the same name for two days
    for day in (1, 2):
        (tmp_path / "mine").write_bytes(b"%d" % day)
        put_file(tmp_path / "mine", f"{root}/dt={day}/part.parquet")
    # Then each comes back, to wherever it can be read, and nothing unfinished is left
    back = fetched([f"{root}/dt={day}/part.parquet" for day in (1, 2)], tmp_path / "here")
    assert [each.read_bytes() for each in back] == [b"1", b"2"]
    assert sorted(listed(f"{root}/dt=1")) == ["part.parquet"]


@pytest.mark.parametrize("digests", [True, False])
def test_a_change_of_the_same_size_changes_the_mark(root: str, digests: bool) -> None:
    write_text(f"{root}/dt=1/a", "one", "text/plain")
    before = listed(f"{root}/dt=1", digests=digests)
    assert listed(f"{root}/dt=1", digests=digests) == before
    write_text(f"{root}/dt=1/a", "two", "text/plain")
    after = listed(f"{root}/dt=1", digests=digests)
    assert before["a"].size == after["a"].size
    assert before["a"].mark != after["a"].mark


def test_removing_takes_everything_below_and_nothing_beside(root: str) -> None:
    for name in ("dt=1/a", "dt=1/_manifest.json", "dt=1/hour=05/b", "dt=10/c"):
        write_text(f"{root}/{name}", "x", "text/plain")
    remove(f"{root}/dt=1")
    assert sorted(listed(root)) == ["dt=10/c"]
    assert read_text(f"{root}/dt=1/_manifest.json") is None
    remove(f"{root}/dt=1")


def test_what_is_no_list_of_files_is_refused() -> None:
    for wrong in ({"a": 5}, {"a": [1]}, ["a"]):
        with pytest.raises((AttributeError, TypeError, ValueError)):
            from_json(wrong)  # type: ignore[arg-type]
