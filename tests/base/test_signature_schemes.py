"""Signature schemes: vectors that the providers' own verifiers accepted, and the rules of templates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pushhub.base.signature_schemes import (
    PRESETS,
    Malformed,
    Scheme,
    SecretRing,
    Unsigned,
    decode_rings,
    encode_rings,
    parts,
    sign,
    signed_url,
)
from pushhub.base.signing import MAX_OLD_KEYS, TooManyKeys

BODY = '{"id":"evt_1","amount":1000,"note":"café"}'.encode()
CHARGE = b'{"event":"charge.success","amount":1000,"currency":"NGN"}'
REQUEST = Unsigned(
    message_id="msg_2yZwUhtgs5Ai8T9yRQJXAabcdef",
    event_id="evt-1",
    event_type="order.paid",
    at=1_800_000_000_123,
    url="https://mycompany.com/hook",
    body=BODY,
)
HOOK0 = "t=1800000000,h=x-event-id x-delivery-id,v1=19a6fb8f6581715b241a93af02a58611c3b0ac7b747a8d2a5b120ee418d0c347"
PLAIN = Scheme(content="{body}", header="X-Sign")


@pytest.mark.parametrize(
    ("preset", "secret", "request_", "expected"),
    [
        (
            "stripe",
            "whsec_test_stripe_0123456789",
            REQUEST,
            "t=1800000000,v1=1839df617bca38b4d26379f35902101b2aefd063e52ee663e81c89072bc936cc",
        ),
        (
            "github",
            "It's a Secret to Everybody",
            REQUEST,
            "sha256=f848d3b9a5ff5107f20b03001497b09816871c1dfd87107e7ef7cdfee66a3001",
        ),
        ("shopify", "hush", REQUEST, "QmKvSs36iHLGkKnJiAGxewyZswuxnLbMUresM50e7uM="),
        (
            "slack",
            "8f742231b10e8888abcd99yyyzzz85a5",
            REQUEST,
            "v0=8f6b892d6ab1857be0e3102a73f55cd4a2447937f2018c9defa75e74c255e4dd",
        ),
        ("twilio", "12345", REQUEST, "Ruht7uOvCclBsWlbbaTfz9v3nS4="),
        (
            "convoy-simple",
            "convoy-webhook-secret",
            replace(REQUEST, body=CHARGE),
            "244449b7f48cbc2709060c9dcdc2b3aa47a78f540430579015c579fb12defbb4",
        ),
        (
            "convoy-advanced",
            "convoy-webhook-secret",
            replace(REQUEST, body=CHARGE, at=1_700_000_000_000),
            "t=1700000000,v1=77b8b9269f25a199846a55a2bd25b3fba151c70fdae60bb1dcd87fbbc943c55c",
        ),
        (
            "outpost",
            "whsec_a1b2c3",
            REQUEST,
            "v0=c0a3e5e2018e3066f62288d7e5836e9faf0509b142059e981d72afe6fea0ca85",
        ),
        (
            "hook0",
            "a-subscription-secret",
            replace(REQUEST, message_id="dlv-1", body=b'{"event":"user.created"}'),
            HOOK0,
        ),
        ("hmac-body", "plain-secret", REQUEST, "423012bafb62628df4e16e07343c06774c52583082545feab539f22f63c0137e"),
    ],
)
def test_a_preset_signs_as_its_senders_receivers_verify(
    preset: str, secret: str, request_: Unsigned, expected: str
) -> None:
    scheme = replace(PRESETS[preset], header=PRESETS[preset].header or "X-Sign")
    url = signed_url(scheme, request_.url, request_.body)
    headers = sign(scheme, [secret], replace(request_, url=url))
    assert headers[scheme.header] == expected
    # And the preset is stored by its name alone
    assert Scheme.decode(scheme.encode()) == scheme
    assert PRESETS[preset].encode() == {"preset": preset}


@pytest.mark.parametrize(
    ("hash_", "encoding", "simple", "advanced"),
    [
        (
            "sha256",
            "hex",
            "244449b7f48cbc2709060c9dcdc2b3aa47a78f540430579015c579fb12defbb4",
            "77b8b9269f25a199846a55a2bd25b3fba151c70fdae60bb1dcd87fbbc943c55c",
        ),
        (
            "sha256",
            "base64",
            "JERJt/SMvCcJBgydzcKzqkenj1QEMFeQFcV5+xLe+7Q=",
            "d7i5Jp8loZmEalWivSWz+6FRxw/a5gux3Nh/u8lDxVw=",
        ),
        (
            "sha512",
            "hex",
            (
                "6cc772dc81942ae1b5ffa91c3a6a07b0d37edc8dc6bd83e3518a219f1f19ff71"
                "ae1b76d6b320940d414c236a1aad7f7930b63e0f1928951955d31219545e1b66"
            ),
            (
                "b2122e252cd2582cf225cb2b8d4ceede9e34329e2fe95c02619c3ed5d4a3d9a7"
                "3e6beaf2dff8e76d71a693ae198cee40685eed12ad4ee2e033dc2d0399ede057"
            ),
        ),
        (
            "sha512",
            "base64",
            "bMdy3IGUKuG1/6kcOmoHsNN+3I3GvYPjUYohnx8Z/3GuG3bWsyCUDUFMI2oarX95MLY+DxkolRlV0xIZVF4bZg==",
            "shIuJSzSWCzyJcsrjUzu3p40Mp4v6VwCYZw+1dSj2ac+a+ry3/jnbXGmk64ZjO5AaF7tEq1O4uAz3C0Dme3gVw==",
        ),
    ],
)
def test_convoys_own_vectors(hash_: str, encoding: str, simple: str, advanced: str) -> None:
    """Those of ``pkg/signature/testdata/signature-vectors.json`` that are to be made, not only refused."""
    charge = replace(REQUEST, body=CHARGE, at=1_700_000_000_000)
    for preset, expected in (("convoy-simple", simple), ("convoy-advanced", f"t=1700000000,v1={advanced}")):
        scheme = replace(PRESETS[preset], hash=hash_, encoding=encoding)
        assert sign(scheme, ["convoy-webhook-secret"], charge) == {"X-Convoy-Signature": expected}


def test_hook0s_older_form_and_another_hash_are_templates() -> None:
    v0 = Scheme(content="{ts}.{body}", header="X-Hook0-Signature", value="t={ts},v0={signatures}")
    signature = sign(v0, ["a-subscription-secret"], replace(REQUEST, body=b'{"event":"user.created"}'))
    assert signature == {
        "X-Hook0-Signature": "t=1800000000,v0=d17d66b66fca89390c5b967c45e8928fc732db07a0aabe8167b1e98213081ffe"
    }
    sha512 = replace(PLAIN, hash="sha512", encoding="base64")
    expected = "wLm9+tKxouJ2KpY3RamhOWZQMOXPJUBLDGaVkDMJohoiHb4R0vo+6aGQYsYbXoTZZwhKQXqmSZCeiMgj5tanoA=="
    assert sign(sha512, ["plain-secret"], REQUEST) == {"X-Sign": expected}
    assert Scheme.decode(sha512.encode()) == sha512


def test_the_companions_carry_what_is_known_of_the_message() -> None:
    signature = sign(PRESETS["outpost"], ["s"], REQUEST)
    assert {name: value for name, value in signature.items() if name != "x-outpost-signature"} == {
        "x-outpost-event-id": REQUEST.message_id,
        "x-outpost-timestamp": "2027-01-15T08:00:00Z",
        "x-outpost-topic": "order.paid",
    }


def test_several_keys_sign_where_the_header_has_room_and_else_the_newest() -> None:
    stripe = sign(PRESETS["stripe"], ["new", "old"], REQUEST)["Stripe-Signature"]
    alone = sign(PRESETS["stripe"], ["old"], REQUEST)["Stripe-Signature"]
    assert stripe.count(",v1=") == 2
    assert stripe.endswith(alone.partition(",")[2])
    assert sign(PRESETS["github"], ["new", "old"], REQUEST) == sign(PRESETS["github"], ["new"], REQUEST)


def test_a_template_has_placeholders_and_braces_that_are_doubled() -> None:
    assert parts("{{{ts}}}é") == (("", b"{"), ("ts", b""), ("", b"}"), ("", "é".encode()))
    for bad in ("{ts", "ts}", "{", "}", "{}", "{a{b}", "\ud800"):
        with pytest.raises(Malformed):
            parts(bad)


@pytest.mark.parametrize(
    ("scheme", "secret", "key"),
    [
        (PRESETS["stripe"], "whsec_aGk=", b"whsec_aGk="),
        (PRESETS["github"], " spaces stay ", b" spaces stay "),
        (replace(PLAIN, key_prefix="key_"), "key_x", b"x"),
        (replace(PLAIN, key_encoding="hex"), "6869", b"hi"),
        (replace(PLAIN, key_prefix="whsec_", key_encoding="base64"), "whsec_aGk=", b"hi"),
    ],
)
def test_a_secret_is_taken_as_it_is_written(scheme: Scheme, secret: str, key: bytes) -> None:
    assert scheme.key(secret) == key


@pytest.mark.parametrize(
    ("scheme", "secret"),
    [
        (replace(PLAIN, key_prefix="key_"), "x"),
        (replace(PLAIN, key_encoding="hex"), "68 69"),
        (replace(PLAIN, key_encoding="hex"), "686"),
        (replace(PLAIN, key_encoding="base64"), "aGk"),
        (replace(PLAIN, key_encoding="base64"), "aGk=\n"),
        (PLAIN, "\ud800"),
    ],
)
def test_a_secret_that_is_written_otherwise_is_not_repaired(scheme: Scheme, secret: str) -> None:
    with pytest.raises(Malformed) as refused:
        scheme.key(secret)
    assert secret not in str(refused.value)


def test_old_secrets_sign_until_they_end() -> None:
    # Given a secret that was replaced with a second's grace
    ring = SecretRing("one").rotated("two", grace_ms=1_000, now=0)
    assert (ring.live(999), ring.live(1_000)) == (["two", "one"], ["two"])
    # And stored
    assert decode_rings(encode_rings([ring, None])) == [ring, None]
    # Without grace the previous one ends at once; an earlier one may come back
    assert ring.rotated("three", grace_ms=0, now=0).live(0) == ["three", "one"]
    assert ring.rotated("one", grace_ms=0, now=0).live(0) == ["one"]
    # At most so many old ones sign
    for number in range(MAX_OLD_KEYS - 1):
        ring = ring.rotated(str(number), grace_ms=1_000, now=0)
    with pytest.raises(TooManyKeys):
        ring.rotated("last", grace_ms=1_000, now=0)
