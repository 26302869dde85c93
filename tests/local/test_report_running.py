"""Two runs of the report at once, as on Glue, where S3 says which of them is first."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import boto3
import pytest
from glue_jobs.delivery_report.run.arguments import BadInput
from glue_jobs.delivery_report.run.running import alone
from glue_jobs.delivery_report.storage import files
from glue_jobs.delivery_report.storage.files import read_text, replace_text
from local.place import Place

SIDE_BY_SIDE = 8


@pytest.fixture
def output(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of the emulator's."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{place.aws_port}")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    files._client.cache_clear()
    boto3.client("s3").create_bucket(Bucket="reports")
    yield "s3://reports"
    files._client.cache_clear()


@pytest.mark.parametrize("former", [None, "a dead run's"])
def test_of_several_that_take_a_note_at_once_one_has_it(output: str, former: str | None) -> None:
    # Given no note, or that of a dead run, which several have read
    place = f"{output}/{former}/running.json"
    if former is not None:
        assert replace_text(place, former, former=None)
    ready = Barrier(SIDE_BY_SIDE)

    def take(number: int) -> bool:
        ready.wait()
        return replace_text(place, f"{number}", former=former)

    # When all take it
    with ThreadPoolExecutor(SIDE_BY_SIDE) as side_by_side:
        taken = [*side_by_side.map(take, range(SIDE_BY_SIDE))]
    # Then one has it, and it says which
    assert taken.count(True) == 1
    assert read_text(place) == f"{taken.index(True)}"
    # And nobody has what has gone meanwhile
    files.remove_file(place)
    assert not replace_text(place, "9", former="0")


def test_the_second_run_says_who_runs_and_a_dead_one_is_followed(output: str) -> None:
    # Given a run elsewhere
    place = f"{output}/curated/running.json"
    other = {"since": "2999-01-01T00:00:00+00:00", "process": 7, "host": "elsewhere"}
    assert replace_text(place, json.dumps(other), former=None)
    # Then the second one is told
    with pytest.raises(BadInput, match="process 7 of elsewhere"), alone(output):
        pytest.fail("two ran at once")
    # And once it cannot live any more, it runs, and leaves nothing
    dead = {**other, "since": "2000-01-01T00:00:00+00:00"}
    assert replace_text(place, json.dumps(dead), former=json.dumps(other))
    with alone(output):
        assert json.loads(read_text(place) or "")["process"] == os.getpid()
    assert read_text(place) is None
