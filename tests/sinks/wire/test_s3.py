"""Objects of S3."""

from __future__ import annotations

from urllib.parse import quote, unquote

import pytest
from tests.sinks.examples import ACCOUNT, answered, message, place

from pushhub.base.errors import Invalid
from pushhub.base.sink_url import parse_sink_url
from pushhub.engine.target import BatchedMessage
from pushhub.sinks.wire.s3 import Buckets

BATCH = tuple(
    BatchedMessage(message_id=f"msg_{each}", about="a", at=1_800_000_000_000 + each, body=b"{}") for each in range(3)
)


def test_a_batch_is_an_object_named_by_its_first_and_last_message() -> None:
    call = Buckets().call(place("s3", "orders", prefix="all/"), message(receiver="ep_1", batch=BATCH))
    assert call.method == "PUT"
    assert call.path == "/orders/all/ep_1/2027/01/15/08/msg_0-msg_2.jsonl"
    assert call.body.count(b"\n") == 3
    assert call.headers["x-amz-expected-bucket-owner"] == ACCOUNT


def test_a_message_that_goes_alone_is_an_object_with_its_bytes() -> None:
    call = Buckets().call(place("s3", "orders"), message(b"\xff", receiver="s1", message_id="../x"))
    assert call.path.startswith("/orders/s1/2027/01/15/08/")
    assert ".." not in call.path
    assert call.body == b"\xff"


@pytest.mark.parametrize("batch", [BATCH, ()])
def test_a_path_is_written_as_s3_signs_it(batch: tuple[BatchedMessage, ...]) -> None:
    # When an object has a name as tables of data lakes have them
    call = Buckets().call(place("s3", "orders", prefix="all/dt=1/"), message(receiver="ep_1", batch=batch))
    # Then its path is the canonical one: S3 escapes what it has read anew, and compares the signature of that
    assert unquote(call.path).startswith("/orders/all/dt=1/ep_1/")
    assert call.path == quote(unquote(call.path), safe="/-_.~")


@pytest.mark.parametrize("url", ["s3://eu-west-1/000000000000/UPPER", "s3://eu-west-1/000000000000/a/b"])
def test_what_is_no_bucket_is_refused(url: str) -> None:
    with pytest.raises(Invalid):
        Buckets().check(parse_sink_url(url))


@pytest.mark.parametrize("prefix", ["/a", "../a", "a/../b", "a b", "é"])
def test_a_prefix_leads_nowhere_else(prefix: str) -> None:
    with pytest.raises(Invalid):
        Buckets().check(place("s3", "orders", prefix=prefix))


def test_nothing_that_s3_refuses_is_refused_for_good() -> None:
    refused = answered(403, b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
    fault = Buckets().fault(refused)
    assert fault is not None
    assert (fault.code, fault.lasting) == ("AccessDenied", False)
    assert Buckets().fault(answered(200)) is None
