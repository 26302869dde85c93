"""URLs of subscribers on AWS: read strictly, and written so that they read the same."""

from __future__ import annotations

import pytest

from pushhub.base.credentials import masked_url
from pushhub.base.errors import Invalid
from pushhub.base.sink_url import SinkUrl, account_of, parse_sink_url

KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
ROLE = "arn:aws:iam::111122223333:role/path/hub"


def test_a_url_says_where_a_queue_is_and_what_signs() -> None:
    # Given a URL with a key whose secret has a slash and a plus
    written = (
        f"SQS://{KEY}:{SECRET.replace('/', '%2F')}@eu-west-1/111122223333/orders.fifo?endpoint=https%3A//a.example"
    )
    # Then it is read
    read = parse_sink_url(written)
    assert read == SinkUrl(
        scheme="sqs",
        region="eu-west-1",
        account="111122223333",
        name="orders.fifo",
        key_id=KEY,
        secret=SECRET,
        endpoint="https://a.example",
    )
    # And what is written from it reads the same, and shows no secret
    assert parse_sink_url(read.text) == read
    assert SECRET not in masked_url(read.text)
    assert SECRET not in repr(read)
    assert masked_url(read.text).startswith("sqs://********@eu-west-1/")


def test_options_and_a_role_survive_being_written() -> None:
    url = SinkUrl(
        scheme="events",
        region="us-gov-west-1",
        account="111122223333",
        name="a/b",
        role=ROLE,
        options={"detailType": "a & b=c?#é", "source": "x"},
    )
    assert parse_sink_url(url.text) == url
    assert (url.partition, url.domain) == ("aws-us-gov", "amazonaws.com")


@pytest.mark.parametrize(("region", "domain"), [("cn-north-1", "amazonaws.com.cn"), ("eu-west-1", "amazonaws.com")])
def test_a_region_has_a_domain(region: str, domain: str) -> None:
    assert parse_sink_url(f"sns://{region}/111122223333/t").domain == domain


@pytest.mark.parametrize(
    "url",
    [
        "sqs://",
        "sqs:eu-west-1/111122223333/q",
        "ftp://eu-west-1/111122223333/q",
        "sqs://evil.example/111122223333/q",
        "sqs://eu-west-1.evil.example/111122223333/q",
        "sqs://eu-west-1:80/111122223333/q",
        "sqs://EU-WEST-1/111122223333/q",
        "sqs://eu-west-1/11112222333/q",
        "sqs://eu-west-1/١١١١٢٢٢٢٣٣٣٣/q",
        "sqs://eu-west-1\n/111122223333/q",
        "sqs://user@eu-west-1/111122223333/q",
        f"sqs://{KEY}:short@eu-west-1/111122223333/q",
        f"sqs://{KEY}:{'s' * 20}%0a@eu-west-1/111122223333/q",
        "sqs://a@b@eu-west-1/111122223333/q",
        "sqs://eu-west-1/111122223333/q?role=x&role=x",
        "sqs://eu-west-1/111122223333/q?role",
        "sqs://eu-west-1/111122223333/q?role=arn:aws:iam::1:role/x",
        f"sqs://eu-west-1/111122223333/q?role={ROLE}%0d%0aX:1",
        f"sqs://eu-west-1/111122223333/q?role={ROLE}%00",
        "sqs://eu-west-1/111122223333/q?endpoint=a%0ab",
        "sqs://eu-west-1/111122223333/q?" + "&".join(f"a{each}=1" for each in range(11)),
        "sqs://eu-west-1/111122223333/q#fragment",
    ],
)
def test_anything_else_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_sink_url(url)
    assert KEY not in refused.value.message
    assert "evil" not in refused.value.message


def test_a_role_belongs_to_an_account() -> None:
    assert account_of(ROLE) == "111122223333"
    for wrong in ("arn:aws:iam::111122223333:user/x", "", f"{ROLE}\n", "arn:aws:sts::111122223333:assumed-role/x/y"):
        with pytest.raises(Invalid):
            account_of(wrong)
