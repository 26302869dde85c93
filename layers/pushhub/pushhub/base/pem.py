"""Private keys and certificates as owners send them: read, checked for what the hub needs, and told without the key.

The library does the reading. It is imported when there is something to read: few subscribers have any.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.x509 import Certificate

MOST_BYTES = 32_768
"""Largest PEM file of certificates."""

MOST_CERTIFICATES = 10

LEAST_BITS, MOST_BITS = 2_048, 4_096
"""Sizes of an RSA modulus: smaller ones are not safe (RFC 7518, 3.3), larger ones take long."""

_LABEL = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----")
_SHOWN = 100


class PemRefused(ValueError):
    """The text is not what it should be. The error says what is expected, and repeats nothing of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFacts:
    """What may be told of a certificate.

    Attributes:
        digest: Its SHA-256, hexadecimal.
        subject: Its common name; its digest if it has none.
        ends_at: Epoch milliseconds from which it is no longer valid.
    """

    digest: str
    subject: str
    ends_at: int


def read_identity(text: str) -> CertificateFacts:
    """Check a PEM file that has a private key, its certificate, and perhaps those that lead to an authority.

    Whether the key can be read, and belongs to the certificate, is known when both are loaded
    (:func:`pushhub.egress.identity.check_identity`).

    Raises:
        PemRefused: It is something else.
    """
    keys = [label for label in _labels(text) if label.endswith("PRIVATE KEY")]
    if any(label.startswith("ENCRYPTED") for label in keys) or "Proc-Type: 4,ENCRYPTED" in text:
        raise PemRefused("the private key is encrypted: decrypt it first")
    if len(keys) != 1:
        raise PemRefused("one private key is expected" if keys else "the private key is missing")
    return _certificates(text)[0]


def read_authorities(text: str) -> list[CertificateFacts]:
    """Check a PEM file of certificates only.

    Raises:
        PemRefused: It is something else.
    """
    if any(label.endswith("PRIVATE KEY") for label in _labels(text)):
        raise PemRefused("only certificates are expected, and there is a private key")
    return _certificates(text)


def _labels(text: str) -> list[str]:
    if len(text) > MOST_BYTES:
        raise PemRefused(f"at most {MOST_BYTES} characters are expected")
    return _LABEL.findall(text)


def _certificates(text: str) -> list[CertificateFacts]:
    from cryptography.x509 import InvalidVersion, load_pem_x509_certificates  # noqa: PLC0415 (see the module)

    count = _labels(text).count("CERTIFICATE")
    if not count:
        raise PemRefused("the certificate is missing")
    if count > MOST_CERTIFICATES:
        raise PemRefused(f"at most {MOST_CERTIFICATES} certificates are expected")
    try:
        return [_facts(each) for each in load_pem_x509_certificates(text.encode())]
    except (ValueError, TypeError, InvalidVersion) as error:
        # A TypeError is of a name whose value is no text.
        raise PemRefused("a certificate is malformed") from error


def _facts(certificate: Certificate) -> CertificateFacts:
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415 (see the module)
    from cryptography.x509.oid import NameOID  # noqa: PLC0415 (see the module)

    digest = certificate.fingerprint(SHA256()).hex()
    names = [str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    name = "".join(each if each.isprintable() else " " for each in "".join(names[-1:]))[:_SHOWN].strip()
    ends_at = round(certificate.not_valid_after_utc.timestamp() * 1000)
    return CertificateFacts(digest=digest, subject=name or digest[:16], ends_at=ends_at)


def check_rsa_key(content: bytes) -> None:
    """Check a private key for RS256: PEM or DER, PKCS #8 or PKCS #1, not encrypted, its numbers belonging together.

    The numbers are examined for tenths of a second.

    Raises:
        PemRefused: It is something else.
    """
    if content.count(b"PRIVATE KEY-----") > 2:
        raise PemRefused("one private key is expected")
    key = _loaded(content, known=True)
    # Nothing is done with its numbers before its size is known to be bearable.
    if not LEAST_BITS <= key.key_size <= MOST_BITS:
        raise PemRefused(f"an RSA key of {LEAST_BITS} to {MOST_BITS} bits is expected")
    _loaded(content, known=False)


def load_rsa_key(content: bytes) -> RSAPrivateKey:
    """A key that :func:`check_rsa_key` has accepted, and that nobody could change since (it was sealed).

    Raises:
        PemRefused: It is something else.
    """
    return _loaded(content, known=True)


def _loaded(content: bytes, *, known: bool) -> RSAPrivateKey:
    """The key; its numbers are not examined again if it is known."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 (see the module)
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey  # noqa: PLC0415 (see the module)
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 (see the module)
        load_der_private_key,
        load_pem_private_key,
    )

    load = load_pem_private_key if b"-----BEGIN" in content else load_der_private_key
    try:
        key = load(content, None, unsafe_skip_rsa_key_validation=known)
    except TypeError as error:
        raise PemRefused("a private key that is not encrypted is expected") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise PemRefused("an RSA private key in PKCS #8 or PKCS #1 is expected") from error
    if not isinstance(key, RSAPrivateKey):
        raise PemRefused("an RSA private key is expected")
    return key
