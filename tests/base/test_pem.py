"""Private keys and certificates as owners send them: which are taken, and what is said of the others."""

from __future__ import annotations

import base64
import datetime

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.private_keys import identity, private_key
from tests.fakes.vectors import VECTORS

from pushhub.base.pem import (
    MOST_BYTES,
    PemRefused,
    check_rsa_key,
    load_rsa_key,
    read_authorities,
    read_identity,
)

PEM = identity()
KEY, CERTIFICATE = PEM[: PEM.index("-----BEGIN CERTIFICATE")], PEM[PEM.index("-----BEGIN CERTIFICATE") :]
FORMS = {
    "PEM, PKCS #8": (Encoding.PEM, PrivateFormat.PKCS8),
    "PEM, PKCS #1": (Encoding.PEM, PrivateFormat.TraditionalOpenSSL),
    "DER, PKCS #8": (Encoding.DER, PrivateFormat.PKCS8),
    "DER, PKCS #1": (Encoding.DER, PrivateFormat.TraditionalOpenSSL),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_key_is_taken_in_each_form(form: str) -> None:
    content = private_key().private_bytes(*FORMS[form], NoEncryption())
    check_rsa_key(content)
    assert load_rsa_key(content).private_numbers() == private_key().private_numbers()


@pytest.mark.parametrize("vector", VECTORS["rs256"]["tests"], ids=lambda vector: vector["id"])
def test_rs256_is_as_wycheproof_has_it(vector: dict[str, str]) -> None:
    # Given a published key, when what makes assertions signs with it, then the signature is the published one
    key = load_rsa_key(VECTORS["rs256"]["key"].encode())
    signed = jwt.get_algorithm_by_name("RS256").sign(bytes.fromhex(vector["message"]), key)
    assert signed.hex() == vector["signature"]


def _pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _with_other_prime() -> bytes:
    """A key whose last part is another number."""
    der = private_key().private_bytes(Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    return der[:-1] + bytes([der[-1] ^ 1])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "PKCS"),
        (b"junk", "PKCS"),
        (b"-----BEGIN PRIVATE KEY-----\n!!\n-----END PRIVATE KEY-----", "PKCS"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "PKCS"),
        (
            private_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"w")),
            "not encrypted",
        ),
        (private_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), "PKCS"),
        (_pem(ec.generate_private_key(ec.SECP256R1())), "RSA"),
        (_pem(rsa.generate_private_key(public_exponent=65_537, key_size=1_024)), "2048 to 4096 bits"),
        (_pem(private_key()) * 2, "one private key"),
        (_with_other_prime(), "PKCS"),
        (b"\x30\x84\xff\xff\xff\xff", "PKCS"),
        (b"\x30" * 10_000, "PKCS"),
        (base64.b64decode("MAA="), "PKCS"),
    ],
    ids=range(13),
)
def test_what_is_no_key_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(PemRefused, match=reason):
        check_rsa_key(content)


@pytest.mark.parametrize("year", [2030, 2049, 2050, 2300])
def test_what_is_told_of_a_certificate(year: int) -> None:
    ends = datetime.datetime(year, 3, 1, 12, 30, tzinfo=datetime.UTC)
    facts = read_identity(identity(ends=ends, name="Büro é"))
    assert facts.subject == "Büro é"
    assert facts.ends_at == round(ends.timestamp() * 1000)
    assert len(facts.digest) == 64
    assert read_identity(identity(name="")).subject


def test_the_order_of_key_and_certificates_does_not_matter_and_the_first_certificate_counts() -> None:
    other = identity(name="above", key=False)
    for pem in (KEY + CERTIFICATE + other, CERTIFICATE + other + KEY, "text before\n" + CERTIFICATE + KEY):
        assert read_identity(pem).subject == "pushhub.example"
    assert [each.subject for each in read_authorities(CERTIFICATE + other)] == ["pushhub.example", "above"]


@pytest.mark.parametrize(
    ("pem", "reason"),
    [
        ("", "missing"),
        ("junk", "missing"),
        (KEY, "certificate is missing"),
        (CERTIFICATE, "key is missing"),
        (KEY * 2 + CERTIFICATE, "one private key"),
        (KEY.replace("PRIVATE", "ENCRYPTED PRIVATE") + CERTIFICATE, "encrypted"),
        (KEY + CERTIFICATE * 11, "at most 10"),
        (KEY + CERTIFICATE.replace("MII", "!!!"), "malformed"),
        (KEY + "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----", "malformed"),
        (KEY + "-----BEGIN CERTIFICATE-----\nMAQwAgUA\n-----END CERTIFICATE-----", "malformed"),
        (KEY + "-----BEGIN CERTIFICATE-----\nMAA=", "malformed"),
        (PEM + "x" * MOST_BYTES, "at most"),
        (PEM + "\ud800", "malformed"),
    ],
    ids=range(13),
)
def test_what_is_no_identity_is_refused_by_what_is_missing(pem: str, reason: str) -> None:
    with pytest.raises(PemRefused, match=reason):
        read_identity(pem)


def test_authorities_are_certificates_only() -> None:
    with pytest.raises(PemRefused, match="private key"):
        read_authorities(PEM)
    with pytest.raises(PemRefused, match="missing"):
        read_authorities("junk")


# A serial number of zero or less is read with a warning.
@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
@given(place=st.integers(0, 700), value=st.integers(0, 255))
def test_a_certificate_with_a_byte_changed_is_told_or_refused(place: int, value: int) -> None:
    der = bytearray(base64.b64decode("".join(CERTIFICATE.splitlines()[1:-1])))
    der[place % len(der)] = value
    text = f"-----BEGIN CERTIFICATE-----\n{base64.b64encode(der).decode()}\n-----END CERTIFICATE-----\n"
    try:
        (facts,) = read_authorities(text)
    except PemRefused:
        return
    assert facts.subject.isprintable()


@given(place=st.integers(0, 2_000), value=st.integers(0, 255))
def test_a_key_with_a_byte_changed_is_read_or_refused(place: int, value: int) -> None:
    der = bytearray(private_key().private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()))
    der[place % len(der)] = value
    try:
        load_rsa_key(bytes(der))
    except PemRefused:
        return
