"""``pushhub verify``: a good signature is accepted, and for a bad one the wrong part is named."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.commands.verify import read_request
from cli.messages.signatures import Signed, findings
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import Typed

NOW = 1_795_000_000
KEY = b"k" * 24
SECRET = "whsec_" + base64.b64encode(KEY).decode()
BODY = '{"type": "order.paid", "name": "Grüße"}'.encode()


def sign(key: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    digest = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return "v1," + base64.b64encode(digest).decode()


def signed(key: bytes = KEY, message_id: str = "msg_1", timestamp: str = str(NOW), body: bytes = BODY) -> Signed:
    return Signed(
        message_id=message_id, timestamp=timestamp, signature=sign(key, message_id, timestamp, body), body=body
    )


def changed(request: Signed, **fields: object) -> Signed:
    return Signed(**{**{name: getattr(request, name) for name in Signed.__slots__}, **fields})


def wrong(request: Signed, secret: str = SECRET, now: int = NOW) -> dict[str, str]:
    return {each.part: each.says for each in findings(request, secret, now) if each.wrong}


def test_the_example_of_the_specification_fits() -> None:
    """Standard Webhooks' own libraries test with this request."""
    request = Signed(
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp="1614265330",
        signature="v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        body=b'{"test": 2432232314}',
    )
    assert wrong(request, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1614265330) == {}


def test_one_signature_of_several_is_enough_and_a_key_needs_no_prefix() -> None:
    request = signed()
    several = changed(request, signature=f"v1,AAAA v2,odd {request.signature}")
    assert wrong(several) == {}
    assert wrong(request, SECRET.removeprefix("whsec_")) == {}


def test_a_signature_of_a_public_key_fits() -> None:
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    given = base64.b64encode(private.sign(f"msg_1.{NOW}.".encode() + BODY)).decode()
    request = Signed(message_id="msg_1", timestamp=str(NOW), signature=f"v1a,{given}", body=BODY)
    secret = "whpk_" + base64.b64encode(public).decode()
    assert wrong(request, secret) == {}
    assert "body" in wrong(changed(request, body=b"x"), secret)
    assert "32 bytes" in wrong(request, "whpk_AAAA")["key"]


@pytest.mark.parametrize(
    ("request_of", "part", "reason"),
    [
        (lambda: changed(signed(), message_id=""), "id", "is missing"),
        (lambda: changed(signed(), message_id=" msg_1"), "id", "white space"),
        (lambda: changed(signed(), timestamp="soon"), "timestamp", "not a number"),
        (lambda: changed(signed(), timestamp="9" * 5000), "timestamp", "not a number"),
        (lambda: signed(timestamp=str(NOW * 1000)), "timestamp", "milliseconds"),
        (lambda: signed(timestamp=str(NOW - 301)), "timestamp", "301 s old"),
        (lambda: signed(timestamp=str(NOW + 301)), "timestamp", "301 s ahead"),
        (lambda: changed(signed(timestamp=str(NOW * 1000)), timestamp=str(NOW)), "timestamp", "signed in milliseconds"),
        (lambda: changed(signed(), signature=""), "signature", "is missing"),
        (lambda: changed(signed(), signature="v3,AAAA"), "signature", "neither v1,BASE64"),
        (lambda: changed(signed(), signature="v1,?"), "signature", "not base64"),
        (lambda: signed(key=SECRET.encode()), "key", "including its whsec_"),
        (lambda: signed(key=SECRET.removeprefix("whsec_").encode()), "key", "not decoded from base64"),
        (lambda: changed(signed(), body=BODY + b"\n"), "body", "an extra line ending"),
        (lambda: changed(signed(body=BODY + b"\n"), body=BODY), "body", "lacks the line ending"),
        (lambda: changed(signed(body=b"a\nb"), body=b"a\r\nb"), "body", "different line endings"),
        (lambda: changed(signed(), body=b"\xef\xbb\xbf" + BODY), "body", "byte order mark"),
        (lambda: changed(signed(), body=json.dumps(json.loads(BODY)).encode()), "body", "parsed and serialised again"),
        (lambda: changed(signed(), body=b"something else"), "body", "does not fit"),
    ],
)
def test_the_part_that_is_wrong_is_named(request_of: Callable[[], Signed], part: str, reason: str) -> None:
    assert reason in wrong(request_of())[part]


def test_a_key_that_is_none_is_named() -> None:
    assert "not base64" in wrong(signed(), "whsec_???")["key"]
    assert "not base64" in wrong(signed(), "")["key"]


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=60), st.binary(max_size=40), st.text(max_size=20))
def test_nothing_that_is_given_is_a_fault(
    message_id: str, timestamp: str, signature: str, body: bytes, secret: str
) -> None:
    """Given any input, then a problem is reported, and nothing is raised."""
    assert wrong(Signed(message_id=message_id, timestamp=timestamp, signature=signature, body=body), secret)


@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize("prefix", ["webhook", "Svix"])
def test_a_whole_request_is_read(end: str, prefix: str) -> None:
    request = signed(body=b"first\n\nsecond")
    head = end.join(
        [
            "POST /in HTTP/1.1",
            f"{prefix}-Id: {request.message_id}",
            f"{prefix}-Timestamp:{request.timestamp}",
            f"{prefix}-Signature: {request.signature}",
        ]
    )
    assert read_request((head + end * 2).encode() + request.body) == request


def test_the_exit_code_is_the_verdict(typed: Typed, tmp_path: Path) -> None:
    request = signed(timestamp=str(int(time.time())))
    body = tmp_path / "body"
    body.write_bytes(request.body)
    words = ("verify", "--id", request.message_id, "--timestamp", request.timestamp, "--signature", request.signature)
    assert "wrong" not in typed(*words, "--secret", SECRET, "--body", str(body))
    shown = json.loads(typed(*words, "--secret", SECRET, "--json", given=b"other", code=1))
    assert [each["part"] for each in shown if each["state"] == "wrong"] == ["body"]
    typed(*words, "--secret", SECRET, "--request", str(body), code=2)
