"""Client certificates as owners send them."""

from __future__ import annotations

import datetime

import pytest
from tests.fakes.private_keys import identity

from pushhub.base.certificates import MOST_BYTES, read_authorities, read_identity
from pushhub.base.der import NotDer

PEM = identity()
KEY, CERTIFICATE = PEM[: PEM.index("-----BEGIN CERTIFICATE")], PEM[PEM.index("-----BEGIN CERTIFICATE") :]


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
    ("pem", "told"),
    [
        ("", "missing"),
        ("junk", "missing"),
        (KEY, "certificate is missing"),
        (CERTIFICATE, "key is missing"),
        (KEY * 2 + CERTIFICATE, "one private key"),
        (KEY.replace("PRIVATE", "ENCRYPTED PRIVATE") + CERTIFICATE, "encrypted"),
        (KEY + CERTIFICATE * 11, "at most 10"),
        (KEY + CERTIFICATE.replace("MII", "!!!"), "base64"),
        (KEY + "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----", "malformed"),
        (KEY + "-----BEGIN CERTIFICATE-----\nMAQwAgUA\n-----END CERTIFICATE-----", "malformed"),
        (PEM + "x" * MOST_BYTES, "at most"),
    ],
    ids=range(11),
)
def test_what_is_no_identity_is_refused_by_what_is_missing(pem: str, told: str) -> None:
    with pytest.raises(NotDer, match=told):
        read_identity(pem)


def test_authorities_are_certificates_only() -> None:
    with pytest.raises(NotDer, match="private key"):
        read_authorities(PEM)
    with pytest.raises(NotDer, match="missing"):
        read_authorities("junk")
