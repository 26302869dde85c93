"""Requests for tokens, and what the answers of token servers mean."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import parse_qs, unquote_plus

import pytest
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.hashes import SHA256
from tests.fakes.private_keys import private_key, secret_base64

from pushhub.base.oauth import BASIC, POST, PRIVATE_KEY_JWT, Grant, TokenRefused, read_token, token_request
from pushhub.base.verdict import Answer

NOW = 1_800_000_000_000
URL = "https://login.example/token"
SECRET = "s3cr%t:+/= é"


def grant(**more: Any) -> Grant:
    return Grant(**{"token_url": URL, "method": BASIC, "client_id": "client:1", "secret": SECRET, **more})


def form(body: bytes) -> dict[str, str]:
    return {name: value for name, (value,) in parse_qs(body.decode(), strict_parsing=True).items()}


def test_basic_authentication_is_form_encoded_first() -> None:
    headers, body = token_request(grant(scopes=("a", "b"), params={"audience": "x"}, headers={"X-Tenant": "1"}), NOW)
    name, _, word = base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode().partition(":")
    assert (unquote_plus(name), unquote_plus(word)) == ("client:1", SECRET)
    assert ":" not in name + word
    assert form(body) == {"grant_type": "client_credentials", "scope": "a b", "audience": "x"}
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert headers["X-Tenant"] == "1"


def test_the_body_authenticates_instead() -> None:
    headers, body = token_request(grant(method=POST), NOW)
    assert "Authorization" not in headers
    assert form(body) == {"grant_type": "client_credentials", "client_id": "client:1", "client_secret": SECRET}


def test_each_assertion_is_signed_and_new() -> None:
    asked = grant(method=PRIVATE_KEY_JWT, secret=secret_base64(), key_id="k1", assertion_s=60)
    seen = []
    for _ in range(2):
        headers, body = token_request(asked, NOW)
        sent = form(body)
        assert "Authorization" not in headers
        assert sent["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        head, claims, signature = sent["client_assertion"].split(".")
        padded = signature + "=" * (-len(signature) % 4)
        private_key().public_key().verify(
            base64.urlsafe_b64decode(padded), f"{head}.{claims}".encode(), padding.PKCS1v15(), SHA256()
        )
        assert json.loads(base64.urlsafe_b64decode(head + "==")) == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
        seen.append(json.loads(base64.urlsafe_b64decode(claims + "==")))
    first, second = seen
    assert first["jti"] != second["jti"]
    assert {**first, "jti": ""} == {
        "iss": "client:1",
        "sub": "client:1",
        "aud": URL,
        "iat": NOW // 1000,
        "exp": NOW // 1000 + 60,
        "jti": "",
    }


def test_a_grant_survives_being_stored_and_shows_no_secret() -> None:
    created = grant(scopes=("a",), params={"p": "1"}, headers={"h": "hidden"}, reach="portal", revision="r")
    assert Grant.decode(created.encode()) == created
    assert SECRET not in repr(created)
    assert "hidden" not in repr(created)


def answered(body: Any, status: int = 200, **more: Any) -> Answer:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status_code=status, message="", body=text, started_at=NOW, finished_at=NOW, **more)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ({"expires_in": 3600}, 3240),
        ({"expires_in": "3600"}, 3240),
        ({"expires_in": 100}, 70),
        ({"expires_in": 5}, 2.5),
        ({"expires_in": 0}, 1),
        ({"expires_in": -5}, 1),
        ({"expires_in": 10**300}, 3600),
        ({"expires_in": "9" * 5_000}, 270),
        ({"expires_in": 1e300}, 3600),
        ({}, 270),
        ({"expires_in": None}, 270),
        ({"expires_in": "soon"}, 270),
        ({"expires_in": True}, 270),
        ({"token_type": "BEARER"}, 270),
    ],
)
def test_a_token_is_used_until_shortly_before_its_end(said: dict[str, Any], seconds: float) -> None:
    token = read_token(answered({"access_token": "abc", "token_type": "Bearer", **said}))
    assert (token.value, token.usable_until) == ("abc", NOW + round(seconds * 1000))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (answered({"error": "invalid_client", "error_description": SECRET}, 401), "invalid_client"),
        (answered({"error": SECRET}, 400), "the token server answered 400"),
        (answered({"error": ["invalid_client"]}, 400), "the token server answered 400"),
        (answered(b"<html>" + SECRET.encode(), 502), "the token server answered 502"),
        (answered(b"", 302, headers={"location": "http://169.254.169.254/"}), "the token server answered 302"),
        (answered(b"", 0, error_class="timeout"), "the token server gave no answer (timeout)"),
        (answered(b"no json"), "the token server's answer has no access_token that can be sent"),
        (answered([1]), "the token server's answer has no access_token that can be sent"),
        (answered({"access_token": ""}), "the token server's answer has no access_token that can be sent"),
        (answered({"access_token": "a\r\nX: 1"}), "the token server's answer has no access_token that can be sent"),
        (answered({"access_token": "a b"}), "the token server's answer has no access_token that can be sent"),
        (answered({"access_token": "é"}), "the token server's answer has no access_token that can be sent"),
        (answered({"access_token": "x" * 16_385}), "the token server's answer has no access_token that can be sent"),
        (
            answered({"access_token": "a", "token_type": "mac"}),
            "the token server's answer has another token_type than Bearer",
        ),
    ],
    ids=range(14),
)
def test_why_there_is_no_token_repeats_nothing_but_the_codes_of_the_standard(answer: Answer, reason: str) -> None:
    with pytest.raises(TokenRefused) as refused:
        read_token(answer)
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("said", "wait_ms"),
    [
        ("7", 7_000),
        ("99999", 3_600_000),
        ("Fri, 15 Jan 2027 08:00:30 GMT", 30_000),
        ("Fri, 15 Jan 2027 07:00:30 GMT", 0),
        ("soon", 0),
        ("", 0),
    ],
)
def test_a_token_server_says_when_to_ask_again(said: str, wait_ms: int) -> None:
    with pytest.raises(TokenRefused) as refused:
        read_token(answered({}, 503, headers={"retry-after": said}))
    assert refused.value.wait_ms == wait_ms
