"""What is specific to bodies in S3: where they are stored, how they are read, and what can go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any, cast

import pytest
from botocore.exceptions import ReadTimeoutError
from mypy_boto3_s3 import S3Client
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import Intercepted
from tests.contract.samples import PROJECT
from tests.fakes import FakeClock

from pushhub.base.errors import MessageNotFound, Unavailable
from pushhub.engine.store.s3_bodies import S3BodyStore

NOVEMBER_21 = 1_795_305_599_999
"""The last millisecond of 2026-11-21, UTC."""


class Bench:
    """A store whose calls are recorded."""

    def __init__(self, client: S3Client) -> None:
        self.client = Intercepted(client)
        self.store = S3BodyStore(cast(S3Client, self.client), aws.BUCKET)


@pytest.fixture
def bench() -> Iterator[Bench]:
    with aws.s3() as client:
        yield Bench(client)


def test_a_post_is_one_object_under_its_project_and_day(bench: Bench) -> None:
    (first, second) = bench.store.put(PROJECT, [b"one", b"two"], NOVEMBER_21)
    (later,) = bench.store.put(PROJECT, [b"three"], NOVEMBER_21 + 1)
    assert bench.client.count("put_object") == 2
    assert first.key == second.key
    assert first.key.startswith(f"bodies/{PROJECT}/2026-11-21/")
    assert later.key.startswith(f"bodies/{PROJECT}/2026-11-22/")
    assert (second.offset, second.length) == (3, 3)


def test_only_the_body_asked_for_is_read(bench: Bench) -> None:
    (_, second) = bench.store.put(PROJECT, [b"one", b"two"], FakeClock().now())
    assert bench.store.get(second) == b"two"
    (_, parameters) = bench.client.calls[-1]
    assert parameters["Range"] == "bytes=3-5"


def test_an_object_that_is_too_short_is_unavailable_rather_than_half_a_body(bench: Bench) -> None:
    (ref,) = bench.store.put(PROJECT, [b"one"], FakeClock().now())
    with pytest.raises(Unavailable, match="s3:GetObject"):
        bench.store.get(replace(ref, length=4))
    with pytest.raises(Unavailable, match="s3:GetObject"):
        bench.store.get(replace(ref, offset=10))


@pytest.mark.parametrize("operation", ["put_object", "get_object"])
def test_what_goes_wrong_is_unavailable(bench: Bench, operation: str) -> None:
    (ref,) = bench.store.put(PROJECT, [b"one"], FakeClock().now())
    bench.client.next(operation, aws.fails)
    with pytest.raises(Unavailable, match="s3:"):
        bench.store.put(PROJECT, [b"two"], 0) if operation == "put_object" else bench.store.get(ref)


def test_an_answer_that_breaks_off_is_unavailable(bench: Bench) -> None:
    # Given an answer whose body never arrives completely
    (ref,) = bench.store.put(PROJECT, [b"one"], FakeClock().now())

    class Broken(BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise ReadTimeoutError(endpoint_url="http://127.0.0.1")

    def breaks_off(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
        return {**real(**parameters), "Body": Broken()}

    bench.client.next("get_object", breaks_off)
    with pytest.raises(Unavailable, match="s3:GetObject"):
        bench.store.get(ref)


def test_bodies_are_had_back_from_their_versions_as_the_runbook_says(bench: Bench) -> None:
    """The procedure below "Bodies that were removed or written over" of docs/operations.md, call by call."""
    # Given versions (``BodyVersionsDays``), bodies that somebody removed, and one that was written over by an erasure
    s3 = bench.client
    s3.put_bucket_versioning(Bucket=aws.BUCKET, VersioningConfiguration={"Status": "Enabled"})
    now = FakeClock().now()
    (removed,) = bench.store.put(PROJECT, [b"removed"], now)
    (kept, expunged) = bench.store.put(PROJECT, [b"kept", b"expunged"], now)
    s3.delete_object(Bucket=aws.BUCKET, Key=removed.key)
    bench.store.erase(expunged)
    with pytest.raises(MessageNotFound):
        bench.store.get(removed)
    # When the delete markers of the project's folder are removed
    found = s3.list_object_versions(Bucket=aws.BUCKET, Prefix=f"bodies/{PROJECT}/")
    markers = [(each["Key"], each["VersionId"]) for each in found["DeleteMarkers"] if each["IsLatest"]]
    assert [key for key, _ in markers] == [removed.key]
    for key, version in markers:
        s3.delete_object(Bucket=aws.BUCKET, Key=key, VersionId=version)
    # Then what was removed is there again, and what was written over is not yet
    assert (bench.store.get(removed), bench.store.get(kept)) == (b"removed", b"kept")
    with pytest.raises(MessageNotFound):
        bench.store.get(expunged)
    # And when its version before is copied, it is as it was
    (former,) = (each["VersionId"] for each in found["Versions"] if each["Key"] == kept.key and not each["IsLatest"])
    s3.copy_object(
        Bucket=aws.BUCKET, Key=kept.key, CopySource={"Bucket": aws.BUCKET, "Key": kept.key, "VersionId": former}
    )
    assert (bench.store.get(kept), bench.store.get(expunged)) == (b"kept", b"expunged")
