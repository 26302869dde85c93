"""What every body store does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from mypy_boto3_s3 import S3Client
from tests.cloud import aws_services as aws
from tests.contract.samples import NOW, PROJECT

from pushhub.base.errors import MessageNotFound
from pushhub.engine.ports import BodyStore
from pushhub.engine.store.s3_bodies import S3BodyStore


def test_the_bodies_of_a_post_come_back_byte_by_byte(body_store: BodyStore) -> None:
    # Given the bodies of one post: text, bytes that are not text, an empty one, and a large one
    bodies = ["Grüße".encode(), bytes(range(256)), b"", b"x" * 4_194_304]
    refs = body_store.put(PROJECT, bodies, NOW)
    # Then they are in one object and each can be read by itself
    assert len({ref.key for ref in refs}) == 1
    assert [ref.length for ref in refs] == [len(body) for body in bodies]
    assert [body_store.get(ref) for ref in refs] == bodies


def test_two_posts_do_not_share_an_object(body_store: BodyStore) -> None:
    (one,) = body_store.put(PROJECT, [b"one"], NOW)
    (two,) = body_store.put(PROJECT, [b"two"], NOW)
    assert one.key != two.key
    assert (body_store.get(one), body_store.get(two)) == (b"one", b"two")


def test_a_body_that_is_gone_is_not_found(body_store: BodyStore) -> None:
    (ref,) = body_store.put(PROJECT, [b"one"], NOW)
    with pytest.raises(MessageNotFound):
        body_store.get(replace(ref, key=ref.key + "x"))


def test_an_erased_body_is_gone_and_its_neighbours_are_whole(body_store: BodyStore) -> None:
    # Given the bodies of one post
    bodies = [b"a" * 10_000, b"b" * 20_000, b"", b"c" * 3]
    refs = body_store.put(PROJECT, bodies, NOW)
    # When some are erased, one of them twice
    for erased in (0, 0, 3):
        body_store.erase(refs[erased])
    # Then they are not found, and the others are as they were
    for erased in (0, 3):
        with pytest.raises(MessageNotFound):
            body_store.get(refs[erased])
    assert [body_store.get(refs[kept]) for kept in (1, 2)] == [bodies[1], bodies[2]]
    # And erasing one that is gone does nothing
    body_store.erase(replace(refs[0], key="bodies/none"))


def test_two_bodies_of_one_object_erased_at_the_same_time_are_both_gone() -> None:
    # Given an erasure during which another one changes the same object
    with aws.s3() as client:
        refs = S3BodyStore(client, aws.BUCKET).put(PROJECT, [b"a" * 100, b"b" * 100, b"c"], NOW)
        intercepted = aws.Intercepted(client)

        def overtaken(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
            S3BodyStore(client, aws.BUCKET).erase(refs[1])
            return real(**parameters)

        intercepted.next("put_object", overtaken)
        store = S3BodyStore(cast(S3Client, intercepted), aws.BUCKET)
        store.erase(refs[0])
        # Then neither restored the bytes that the other erased
        stored = client.get_object(Bucket=aws.BUCKET, Key=refs[0].key)["Body"].read()
        assert len(stored) == 201
        assert b"a" * 10 not in stored
        assert b"b" * 10 not in stored
        assert store.get(refs[2]) == b"c"
