"""Tokens as the clients of Notifications 2.0 read them, and forged ones."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushhub.base.errors import Unauthorized
from pushhub.notifications.model.topic import Topic
from pushhub.notifications.wire.tokens import Claims, Tokens

SECRET, OTHER = b"a" * 32, b"b" * 32
NOW = 1_795_000_000
TOKENS = Tokens(lambda: [SECRET])


def claims(**more: Any) -> Claims:
    fields: dict[str, Any] = {
        "topic": Topic(project="t1", name="orders"),
        "subscriber": "app",
        "issued_at": NOW,
        "expires_at": NOW + 60,
        "issued_by": "0f" * 32,
        "token_id": "11-22",
    }
    return Claims(**fields | more)


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def payload(token: str) -> dict[str, Any]:
    """The payload as the Python client reads it: the standard alphabet, perhaps with too much padding."""
    decoded: dict[str, Any] = json.loads(base64.b64decode(token.split(".")[1] + "==", validate=False))
    return decoded


def test_claims_are_as_real_tokens_have_them() -> None:
    fields = payload(TOKENS.sign(claims()))
    assert (fields.pop("jti"), fields.pop("issuedBy")) == ("11-22", "0f" * 32)
    assert fields == {
        "sub": "app",
        "webSocketOnly": "true",
        "topic": "t1/relnotif/orders",
        "iat": NOW,
        "exp": NOW + 60,
    }


def test_booleans_are_strings_and_left_out_when_false() -> None:
    topic = Topic(project="t1", name="orders", non_persistent=True)
    fields = payload(TOKENS.sign(claims(topic=topic, shared=True)))
    assert (fields["shared"], fields["volatile"]) == ("true", "true")


def test_the_header_names_a_registered_algorithm() -> None:
    header = TOKENS.sign(claims()).split(".")[0]
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "HS256"}


@given(st.text(min_size=1, max_size=40))
def test_the_payload_reads_the_same_in_the_standard_alphabet_whatever_the_subscriber_s_name(subscriber: str) -> None:
    if any("\ud800" <= each <= "\udfff" for each in subscriber):
        return
    token = TOKENS.sign(claims(subscriber=subscriber))
    assert "-" not in token.split(".")[1]
    assert "_" not in token.split(".")[1]
    assert "=" not in token
    assert payload(token)["sub"] == subscriber
    assert TOKENS.check(token, NOW).subscriber == subscriber


@given(st.booleans(), st.booleans())
def test_what_was_signed_is_read_back(shared: bool, volatile: bool) -> None:
    given_claims = claims(topic=Topic(project="t1", name="a", non_persistent=volatile), shared=shared)
    assert TOKENS.check(TOKENS.sign(given_claims), NOW) == given_claims


def test_expiry_counts_to_the_second() -> None:
    token = TOKENS.sign(claims())
    assert TOKENS.check(token, NOW + 59.9)
    with pytest.raises(Unauthorized, match="expired"):
        TOKENS.check(token, NOW + 60)


def test_a_secret_that_was_rotated_out_still_checks() -> None:
    token = TOKENS.sign(claims())
    assert Tokens(lambda: [OTHER, SECRET]).check(token, NOW) == claims()
    with pytest.raises(Unauthorized):
        Tokens(lambda: [OTHER]).check(token, NOW)


def forgeries() -> dict[str, str]:
    good = TOKENS.sign(claims())
    header, body, signature = good.split(".")
    fields = payload(good)
    elsewhere = part(fields | {"topic": "t2/relnotif/orders"})
    foreign = Tokens(lambda: [SECRET]).sign(claims(topic=Topic(project="t2", name="orders"))).split(".")
    raw = hmac.new(SECRET, f"{header}.{body}".encode(), hashlib.sha256).digest()
    return {
        "empty": "",
        "dots": "..",
        "no token": "hello",
        "two parts": f"{header}.{body}",
        "four parts": f"{good}.x",
        "unsigned": f"{header}.{body}.",
        "alg none": f"{part({'alg': 'none'})}.{body}.",
        "alg none, signed": f"{part({'alg': 'none'})}.{body}.{signature}",
        "alg in other letters": f"{part({'alg': 'hs256'})}.{body}.{signature}",
        "alg RS256": f"{part({'alg': 'RS256'})}.{body}.{signature}",
        "no alg": f"{part({})}.{body}.{signature}",
        "other topic": f"{header}.{elsewhere}.{signature}",
        "other tenant's signature": f"{header}.{body}.{foreign[2]}",
        "later expiry": f"{header}.{part(fields | {'exp': NOW + 10**9})}.{signature}",
        "the deployment's secret without the tenant": f"{header}.{body}.{base64.urlsafe_b64encode(raw).decode()}",
        "other secret": Tokens(lambda: [OTHER]).sign(claims()),
        "signature cut": good[:-1],
        "signature padded": f"{good}=",
        "not JSON": f"{header}.{base64.urlsafe_b64encode(b'{').decode()}.{signature}",
        "a list": f"{header}.{part([1])}.{signature}",
        "deep": f"{header}.{base64.urlsafe_b64encode(b'[' * 2000).decode()}.{signature}",
        "no topic": f"{header}.{part({'sub': 'a', 'iat': 1, 'exp': NOW + 60})}.{signature}",
        "not ascii": good[:-1] + "é",
        "a newline": good + "\n",
        "huge": good + "A" * 100_000,
    }


@pytest.mark.parametrize("kind", forgeries())
def test_forgeries_are_refused(kind: str) -> None:
    with pytest.raises(Unauthorized):
        TOKENS.check(forgeries()[kind], NOW)


@pytest.mark.parametrize(
    "change",
    [
        {"sub": 7},
        {"topic": None},
        {"topic": "t1/orders"},
        {"topic": "t1/other/orders"},
        {"topic": "t1/relnotif/a/b"},
        {"exp": "later"},
        {"exp": True},
        {"iat": None},
    ],
)
def test_well_signed_nonsense_is_refused_too(change: dict[str, Any]) -> None:
    fields = payload(TOKENS.sign(claims())) | change
    signed = f"{part({'alg': 'HS256'})}.{part(fields)}"
    key = hmac.digest(SECRET, b"notification2/t1", hashlib.sha256)
    signature = base64.urlsafe_b64encode(hmac.digest(key, signed.encode(), hashlib.sha256)).rstrip(b"=").decode()
    with pytest.raises(Unauthorized):
        TOKENS.check(f"{signed}.{signature}", NOW)


@given(st.text(max_size=200))
def test_anything_else_is_refused_without_any_other_error(text: str) -> None:
    with pytest.raises(Unauthorized):
        TOKENS.check(text, NOW)
