"""RSA signatures, judged by the library that everybody uses; and what is no key."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from tests.fakes.private_keys import private_key

from pushhub.base.der import NotDer, only, values
from pushhub.base.rsa import read_key

FORMS = {
    "PEM, PKCS #8": (Encoding.PEM, PrivateFormat.PKCS8),
    "PEM, PKCS #1": (Encoding.PEM, PrivateFormat.TraditionalOpenSSL),
    "DER, PKCS #8": (Encoding.DER, PrivateFormat.PKCS8),
    "DER, PKCS #1": (Encoding.DER, PrivateFormat.TraditionalOpenSSL),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [2_048, 3_071])
def test_signatures_verify(form: str, size: int) -> None:
    # Given a key in each form
    key = private_key() if size == 2_048 else rsa.generate_private_key(public_exponent=65_537, key_size=size)
    read = read_key(key.private_bytes(*FORMS[form], NoEncryption()))
    # When bytes are signed, then the library verifies them, each time
    for content in (b"", b"x" * 10_000):
        key.public_key().verify(read.sign(content), content, padding.PKCS1v15(), SHA256())


def test_a_key_is_in_no_text() -> None:
    key = private_key()
    read = read_key(key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()))
    assert str(key.private_numbers().p) not in repr(read)


def _pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _with_other_prime() -> bytes:
    """A key whose last part is another number."""
    der = private_key().private_bytes(Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    return der[:-1] + bytes([der[-1] ^ 1])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"junk",
        b"-----BEGIN PRIVATE KEY-----\n!!\n-----END PRIVATE KEY-----",
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
        private_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word")),
        private_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        _pem(ec.generate_private_key(ec.SECP256R1())),
        _pem(rsa.generate_private_key(public_exponent=65_537, key_size=1_024)),
        _pem(private_key()) * 2,
        _with_other_prime(),
        b"\x30\x84\xff\xff\xff\xff",
        b"\x30\x03\x02\x01\x00" * 3,
        b"\x30" * 10_000,
        base64.b64decode("MAA="),
    ],
    ids=range(14),
)
def test_what_is_no_key_is_refused(content: bytes) -> None:
    with pytest.raises(NotDer):
        read_key(content)


def test_der_is_read_strictly() -> None:
    # Long forms of lengths, and object identifiers beyond one byte
    (value,) = values(b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01")
    assert value.object_id == "1.2.840.113549.1.1.1"
    assert values(b"\x04\x81\x80" + b"x" * 128)[0].content == b"x" * 128
    for wrong in (b"\x02", b"\x02\x02\x00", b"\x1f\x01\x00", b"\x02\x80\x00\x00", b"\x02\x84\x00\x00\x00\x01\x00"):
        with pytest.raises(NotDer):
            values(wrong)
    with pytest.raises(NotDer):
        only(b"\x02\x01\x01\x02\x01\x01", 0x02)
    with pytest.raises(NotDer):
        _ = values(b"\x02\x01\x80")[0].number
