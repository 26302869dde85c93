"""Private keys and certificates for tests, made anew in each run."""

from __future__ import annotations

import base64
import datetime
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_BEGINS = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
_ENDS = datetime.datetime(2046, 1, 1, tzinfo=datetime.UTC)


@cache
def private_key() -> rsa.RSAPrivateKey:
    """An RSA key of 2,048 bits."""
    return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


@cache
def secret_base64() -> str:
    """The same in PEM and base64, as an owner sends it."""
    pem = private_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return base64.b64encode(pem).decode()


def identity(
    *,
    ends: datetime.datetime = _ENDS,
    name: str = "pushhub.example",
    rsa_bits: int = 0,
    key: bool = True,
    form: PrivateFormat = PrivateFormat.PKCS8,
) -> str:
    """A certificate signed by itself, with its private key, in PEM.

    Args:
        ends: Its end.
        name: Its common name; empty for no subject.
        rsa_bits: Size of an RSA key; 0 for an elliptic curve.
        key: Whether the key stands before it.
        form: How the key is written.
    """
    private: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey = ec.generate_private_key(ec.SECP256R1())
    if rsa_bits:
        private = rsa.generate_private_key(public_exponent=65_537, key_size=rsa_bits)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else [])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGINS)
        .not_valid_after(ends)
        .sign(private, SHA256())
    )
    written = private.private_bytes(Encoding.PEM, form, NoEncryption()).decode() if key else ""
    return written + certificate.public_bytes(Encoding.PEM).decode()
