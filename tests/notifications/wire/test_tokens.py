"""Tokens as the clients of Notifications 2.0 read them, and forged ones."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm
from tests.fakes.private_keys import private_key
from tests.fakes.vectors import VECTORS

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


def _hmac(algorithm: str, fields: dict[str, Any], *, key: bytes | None = None, **header: Any) -> str:
    """A token signed with the tenant's key or another one, with more in its header."""
    signing = hmac.digest(SECRET, b"notification2/t1", hashlib.sha256) if key is None else key
    signed = f"{part({'alg': algorithm, **header})}.{part(fields)}"
    digest = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}[algorithm]
    raw = hmac.digest(signing, signed.encode(), digest)
    return f"{signed}.{base64.urlsafe_b64encode(raw).rstrip(b'=').decode()}"


def _with_own_key(fields: dict[str, Any]) -> str:
    """A token whose header brings the key that verifies it."""
    public = RSAAlgorithm.to_jwk(private_key().public_key(), as_dict=True)
    return jwt.encode(fields, private_key(), "RS256", headers={"jwk": public, "jku": "https://attacker.example/keys"})


def test_a_public_key_taken_for_a_shared_secret_signs_nothing() -> None:
    # Given a secret that happens to be a public key, as whoever confuses the two kinds of keys would have it
    pem = private_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    fields = payload(TOKENS.sign(claims()))
    # When a token is signed with the public key by HMAC, then nobody takes it
    for key in (pem, pem.strip(), hmac.digest(pem, b"notification2/t1", hashlib.sha256)):
        with pytest.raises(Unauthorized):
            TOKENS.check(_hmac("HS256", fields, key=key), NOW)


@pytest.mark.parametrize("vector", VECTORS["hs256"], ids=lambda vector: vector["id"])
def test_the_library_takes_and_refuses_what_wycheproof_says(vector: dict[str, str]) -> None:
    # Given a token whose payload is no JSON, so that nothing but its signature is examined
    key = base64.urlsafe_b64decode(vector["key"] + "==")
    if vector["result"] == "valid":
        assert jwt.PyJWS().decode(vector["token"], key, ["HS256"])
        return
    with pytest.raises(jwt.PyJWTError):
        jwt.PyJWS().decode(vector["token"], key, ["HS256"])


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
        "alg None": f"{part({'alg': 'None'})}.{body}.",
        "alg NONE, signed": f"{part({'alg': 'NONE'})}.{body}.{signature}",
        "alg null": f"{part({'alg': None})}.{body}.{signature}",
        "alg a list": f"{part({'alg': ['HS256']})}.{body}.{signature}",
        "alg in other letters": f"{part({'alg': 'hs256'})}.{body}.{signature}",
        "alg RS256": f"{part({'alg': 'RS256'})}.{body}.{signature}",
        "RS256, signed by a key that the header brings": _with_own_key(fields),
        "HS384 with the right key": _hmac("HS384", fields),
        "HS512 with the right key": _hmac("HS512", fields),
        "kid, a path": _hmac("HS256", fields, key=b"", kid="../../../../dev/null"),
        "kid, a query": _hmac("HS256", fields, key=b"x", kid="x' UNION SELECT 'x"),
        "kid, no text": _hmac("HS256", fields, kid=["a"]),
        "kid, the deployment's secret": _hmac("HS256", fields, key=SECRET, kid=SECRET.decode()),
        "a key for everybody": _hmac("HS256", fields, key=b"notification2/t1"),
        "an extension that must be understood": _hmac("HS256", fields, crit=["exp"]),
        "a payload that is elsewhere": _hmac("HS256", fields, b64=False, crit=["b64"]),
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
