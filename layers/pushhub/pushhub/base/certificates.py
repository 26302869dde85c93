"""Client certificates as owners send them: read, checked for their form, and told without their key. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

from pushhub.base.der import SEQUENCE, NotDer, Value, only, pem_blocks

MOST_BYTES = 32_768
"""Largest PEM file."""

MOST_CERTIFICATES = 10

_COMMON_NAME = "2.5.4.3"
_UTC_TIME, _GENERALIZED_TIME, _VERSION = 0x17, 0x18, 0xA0


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

    Whether the key belongs to the certificate is known when both are loaded.

    Raises:
        NotDer: It is something else; the text says what is missing, and repeats nothing.
    """
    blocks = _blocks(text)
    keys = [label for label, _ in blocks if label.endswith("PRIVATE KEY")]
    if any(label.startswith("ENCRYPTED") for label in keys) or "Proc-Type: 4,ENCRYPTED" in text:
        raise NotDer("the private key is encrypted: decrypt it first")
    if len(keys) != 1:
        raise NotDer("one private key is expected" if keys else "the private key is missing")
    return _certificates(blocks)[0]


def read_authorities(text: str) -> list[CertificateFacts]:
    """Check a PEM file of certificates only.

    Raises:
        NotDer: It is something else.
    """
    blocks = _blocks(text)
    if any(label.endswith("PRIVATE KEY") for label, _ in blocks):
        raise NotDer("only certificates are expected, and there is a private key")
    return _certificates(blocks)


def _blocks(text: str) -> list[tuple[str, bytes]]:
    if len(text) > MOST_BYTES:
        raise NotDer(f"at most {MOST_BYTES} characters are expected")
    return pem_blocks(text)


def _certificates(blocks: list[tuple[str, bytes]]) -> list[CertificateFacts]:
    found = [_facts(content) for label, content in blocks if label == "CERTIFICATE"]
    if not found:
        raise NotDer("the certificate is missing")
    if len(found) > MOST_CERTIFICATES:
        raise NotDer(f"at most {MOST_CERTIFICATES} certificates are expected")
    return found


def _facts(content: bytes) -> CertificateFacts:
    """RFC 5280, 4.1: version, serial number, algorithm, issuer, validity, subject."""
    try:
        parts = only(content, SEQUENCE).parts[0].parts
        fields = parts[1:] if parts[0].tag == _VERSION else parts
        validity, subject = fields[3], fields[4]
        ends_at = _time(validity.parts[1])
        name = _common_name(subject)
    except IndexError as error:
        raise NotDer("a certificate is malformed") from error
    digest = hashlib.sha256(content).hexdigest()
    return CertificateFacts(digest=digest, subject=name or digest[:16], ends_at=ends_at)


def _time(value: Value) -> int:
    text = value.content.decode("ascii", "replace")
    if value.tag == _UTC_TIME:
        # RFC 5280, 4.1.2.5.1: two digits stand for 1950 to 2049.
        text = f"{'19' if text[:2] >= '50' else '20'}{text}"
    elif value.tag != _GENERALIZED_TIME:
        raise NotDer("a certificate's end is no time")
    try:
        return round(datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError as error:
        raise NotDer("a certificate's end is no time") from error


def _common_name(subject: Value) -> str:
    found = ""
    for group in subject.parts:
        for each in group.parts:
            kind, value = each.parts[:2]
            if kind.object_id == _COMMON_NAME:
                found = value.content.decode("utf-8", "replace")
    return "".join(each if each.isprintable() else " " for each in found)[:100].strip()
