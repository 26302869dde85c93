"""Senders of webhooks: what each of them signs is verified, and nothing else.

The vectors are GitHub's and Slack's own, or were accepted or made by the library that is named: stripe 16.1.0,
twilio 9.13.0, standardwebhooks 1.1.0, npm @shopify/shopify-api 15.0.0, hubspot-api-client (``Signature``); Zoom's and
Meta's follow npm @zoom/rivet 0.4.0 and GitHub's scheme, of which Meta's is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256

import pytest

from pushhub.base.signature_check import TOLERANCE_S, Doubt, SignedPost, Unverified, verify
from pushhub.base.signature_schemes import PRESETS, Malformed, Scheme, Unsigned, sign, signed_url
from pushhub.base.webhook_senders import MOST_PASSED, MOST_PASSED_BYTES, SENDERS, event_of, passed_on

URL = "https://mycompany.com/hook"
BODY = '{"id":"evt_1","amount":1000,"note":"café"}'.encode()
AT = 1_800_000_000_123
SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar"
    b"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack."
    b"com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc8"
    b"87a14d10d2c447fce8b6703c"
)
STANDARD = "v1,msi7CqqzU7k6EC0Nl3m3GrlzNyldsq1EiZ9cmtz2uTg="
STANDARD_SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
STANDARD_ID = "msg_2yZwUhtgs5Ai8T9yRQJXAabcdef"

VECTORS: dict[str, tuple[str, str, bytes, int, dict[str, str]]] = {
    "github": (
        "github",
        "It's a Secret to Everybody",
        b"Hello, World!",
        AT,
        {"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
    ),
    "slack": (
        "slack",
        "8f742231b10e8888abcd99yyyzzz85a5",
        SLACK_BODY,
        1_531_420_618_000,
        {
            "x-slack-request-timestamp": "1531420618",
            "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        },
    ),
    "stripe": (
        "stripe",
        "whsec_test_stripe_0123456789",
        BODY,
        AT,
        {
            "stripe-signature": f"t=1800000000,v0={'f' * 64},v1={'0' * 64},"
            "v1=1839df617bca38b4d26379f35902101b2aefd063e52ee663e81c89072bc936cc"
        },
    ),
    "shopify": ("shopify", "hush", BODY, AT, {"x-shopify-hmac-sha256": "QmKvSs36iHLGkKnJiAGxewyZswuxnLbMUresM50e7uM="}),
    "svix": (
        "svix",
        STANDARD_SECRET,
        BODY,
        AT,
        {"svix-id": STANDARD_ID, "svix-timestamp": "1800000000", "svix-signature": f"v1a,AAAA {STANDARD}"},
    ),
    "standard webhooks": (
        "resend",
        STANDARD_SECRET.removeprefix("whsec_"),
        BODY,
        AT,
        {"webhook-id": STANDARD_ID, "webhook-timestamp": "1800000000", "webhook-signature": STANDARD},
    ),
    "hubspot": (
        "hubspot",
        "hubspot-client-secret",
        BODY,
        AT,
        {
            "x-hubspot-signature-v3": "ugm9Re1nzIuxlr9uEu9sfPBm5gYb7wUnp99NhDOx/NU=",
            "x-hubspot-request-timestamp": "1800000000123",
        },
    ),
    "zoom": (
        "zoom",
        "zoom-secret-token",
        BODY,
        AT,
        {
            "x-zm-signature": "v0=d2dd0ac90d010c0dd36ff28e4e5bf6e7b1029a8f7dcefea9190cc44cc551e203",
            "x-zm-request-timestamp": "1800000000",
        },
    ),
    "meta": (
        "meta",
        "meta-app-secret",
        BODY,
        AT,
        {"x-hub-signature-256": "sha256=87982982039ca7376e3d9568c302436916959616e1437538a860ce1c30d24c71"},
    ),
}
SIGNED_TIMES = [name for name in VECTORS if name not in ("github", "shopify", "meta")]


def received(headers: Mapping[str, str], body: bytes = BODY, *, at: int = AT, url: str = URL) -> SignedPost:
    return SignedPost(url=url, headers=headers, body=body, at=at)


def doubt(name: str, secret: str, request: SignedPost) -> Doubt | None:
    try:
        SENDERS[name].verify(secret, request)
    except Unverified as error:
        return error.doubt
    return None


@pytest.mark.parametrize("vector", VECTORS)
class TestEachSender:
    def test_its_request_is_verified_and_one_that_differs_by_anything_is_not(self, vector: str) -> None:
        # Given what the sender itself signs
        name, secret, body, at, headers = VECTORS[vector]
        assert doubt(name, secret, received(headers, body, at=at)) is None
        # Then neither other bytes, nor another secret, nor another signature will do
        assert doubt(name, secret, received(headers, body + b" ", at=at)) is Doubt.FORGED
        other = secret[:-1] + ("A" if secret[-1] != "A" else "B")
        assert doubt(name, other, received(headers, body, at=at)) is Doubt.FORGED
        changed = {
            each: value[:-5] + ("A" if value[-5] != "A" else "B") + value[-4:] for each, value in headers.items()
        }
        assert doubt(name, secret, received(changed, body, at=at)) in (Doubt.FORGED, Doubt.UNSIGNED)

    def test_without_any_of_its_headers_it_is_unsigned(self, vector: str) -> None:
        name, secret, body, at, headers = VECTORS[vector]
        for missing in headers:
            rest = {each: value for each, value in headers.items() if each != missing}
            assert doubt(name, secret, received(rest, body, at=at)) is Doubt.UNSIGNED

    @pytest.mark.parametrize(
        "nonsense", ["", " ", "=", ",", "sha256=", "v1,", "t=1,v1=", "é", "\udcff", "v0=" + "a" * 9_000]
    )
    def test_a_signature_of_another_form_is_refused_as_a_request_and_breaks_nothing(
        self, vector: str, nonsense: str
    ) -> None:
        name, secret, body, at, headers = VECTORS[vector]
        for each in headers:
            assert doubt(name, secret, received({**headers, each: nonsense}, body, at=at)) is not None


@pytest.mark.parametrize("vector", SIGNED_TIMES)
@pytest.mark.parametrize("way", [1, -1])
def test_a_request_is_old_when_its_time_is_too_far_from_now(vector: str, way: int) -> None:
    name, secret, body, at, headers = VECTORS[vector]
    at -= at % 1000 if vector != "hubspot" else 0
    just, over = at + way * TOLERANCE_S * 1000, at + way * (TOLERANCE_S * 1000 + 1)
    assert doubt(name, secret, received(headers, body, at=just)) is None
    assert doubt(name, secret, received(headers, body, at=over)) is Doubt.OLD


TWILIO = PRESETS["twilio"]


class TestTwilio:
    """The owner of a generic source may choose it, as the one preset whose signature covers the URL."""

    def test_a_form_is_verified_by_its_fields(self) -> None:
        # Twilio's documented example
        url = "https://mycompany.com/myapp.php?foo=1&bar=2"
        body = b"CallSid=CA1234567890ABCDE&Caller=%2B12349013030&Digits=1234&From=%2B12349013030&To=%2B18005551212"
        headers = {
            "content-type": "application/x-www-form-urlencoded; charset=utf-8",
            "x-twilio-signature": "0/KCTR6DLpKmkAf8muzZqo1nDgQ=",
        }
        verify(TWILIO, ["12345"], received(headers, body, url=url))
        for changed in (body + b"&Digits=5", b"\xff", b"a=1&" * 1_001):
            with pytest.raises(Unverified):
                verify(TWILIO, ["12345"], received(headers, changed, url=url))

    def test_fields_without_a_value_are_part_of_it(self) -> None:
        headers = {
            "content-type": "application/x-www-form-urlencoded",
            "x-twilio-signature": "2Ph1Tnnax9GZzpRFjOAmHftBs0w=",
        }
        verify(TWILIO, ["12345"], received(headers, b"Media=&From=%2B1&Body=", url="https://a.example/in"))

    def test_another_body_is_verified_by_its_digest_in_the_url(self) -> None:
        url = f"{URL}?bodySHA256=533ff28f28cfd86dd8429995a77911c4cc2fb0058dca1c8bbc6d991fa0c78c1a"
        headers = {"content-type": "application/json", "x-twilio-signature": "Ruht7uOvCclBsWlbbaTfz9v3nS4="}
        verify(TWILIO, ["12345"], received(headers, url=url))
        with pytest.raises(Unverified) as refused:
            verify(TWILIO, ["12345"], received(headers, BODY + b" ", url=url))
        assert refused.value.doubt is Doubt.FORGED
        with pytest.raises(Unverified) as refused:
            verify(TWILIO, ["12345"], received(headers))
        assert refused.value.doubt is Doubt.UNSIGNED


@pytest.mark.parametrize("preset", [name for name in PRESETS if name not in ("standard-webhooks",)])
def test_what_any_preset_signs_it_verifies(preset: str) -> None:
    # Given a request that the hub itself signs
    scheme = PRESETS[preset] if preset != "hmac-body" else replace(PRESETS[preset], header="X-Sign")
    url = signed_url(scheme, URL, BODY)
    unsigned = Unsigned(message_id="m1", event_id="e1", event_type="a.b", at=AT, url=url, body=BODY)
    headers = {name.lower(): value for name, value in sign(scheme, ["old-secret-1"], unsigned).items()}
    # Then the same description verifies it, also beside a newer secret
    verify(scheme, ["new-secret-1", "old-secret-1"], received(headers, url=url))
    with pytest.raises(Unverified):
        verify(scheme, ["new-secret-1"], received(headers, url=url))


def test_a_time_in_words_is_a_time_too() -> None:
    scheme = Scheme(content="{ts_iso}.{body}", header="X-Sign", value="{ts_iso} {signatures}")
    unsigned = Unsigned(message_id="m", event_id="e", event_type="t", at=AT, url=URL, body=BODY)
    headers = {name.lower(): value for name, value in sign(scheme, ["a-secret-1"], unsigned).items()}
    verify(scheme, ["a-secret-1"], received(headers))
    with pytest.raises(Unverified) as refused:
        verify(scheme, ["a-secret-1"], received(headers, at=AT + 10**6))
    assert refused.value.doubt is Doubt.OLD


@pytest.mark.parametrize(
    ("sender", "headers", "body", "expected"),
    [
        ("github", {"x-github-delivery": "0b1f", "x-github-event": "push"}, b"not json", ("0b1f", "push")),
        ("stripe", {}, b'{"id": "evt_1", "type": "invoice.paid"}', ("evt_1", "invoice.paid")),
        ("stripe", {}, b'{"id": 1, "type": ["x"]}', (None, "stripe")),
        ("slack", {}, b'{"event_id": "Ev1", "event": {"type": "app_mention"}}', ("Ev1", "app_mention")),
        ("slack", {}, b'{"event": "no object"}', (None, "slack")),
        ("shopify", {"x-shopify-topic": "orders/create", "x-shopify-webhook-id": "w1"}, b"{}", ("w1", "orders.create")),
        ("svix", {"svix-id": "msg_1"}, b'{"type": "user.created"}', ("msg_1", "user.created")),
        # An id that is not signed says nothing, though it is where the other signature has its own
        ("svix", {"svix-id": "x", "webhook-id": "msg_1", "webhook-signature": "v1,A"}, b"{}", ("msg_1", "svix")),
        ("svix", {"svix-id": "msg_1", "webhook-id": "x", "svix-signature": "v1,A"}, b"{}", ("msg_1", "svix")),
        ("generic-webhook", {}, b'{"type": "x", "id": "1"}', (None, "generic-webhook")),
        (
            "generic-webhook",
            {"ce-source": "/a", "ce-id": "1", "ce-type": "a.b"},
            b"",
            (sha256(b"2:/a/1").hexdigest(), "a.b"),
        ),
        ("generic-webhook", {"ce-id": "1"}, b"", (None, "generic-webhook")),
        ("meta", {}, b"[" * 10_000, (None, "meta")),
    ],
)
def test_the_event_is_known_by_what_its_sender_says(
    sender: str, headers: dict[str, str], body: bytes, expected: tuple[str | None, str]
) -> None:
    found = event_of(SENDERS[sender], received(headers, body))
    event_id = (
        found.event_id if expected[0] != "DIGEST" or found.event_id is None or len(found.event_id) != 64 else "DIGEST"
    )
    assert (event_id, found.event_type) == expected


def test_a_prefix_without_a_key_is_no_secret() -> None:
    # Given a sender whose secrets have a prefix, then what everybody knows is none
    for secret in ("whsec_", ""):
        with pytest.raises(Malformed):
            SENDERS["svix"].check_secret(secret)
    SENDERS["svix"].check_secret(STANDARD_SECRET)


def test_headers_of_the_sender_go_on_and_those_of_proxies_do_not() -> None:
    headers = {
        "x-github-event": " push ",
        "x-hub-signature-256": "sha256=00",
        "x-forwarded-for": "10.0.0.1",
        "x-amzn-trace-id": "Root=1",
        "authorization": "Bearer x",
        "cookie": "a=b",
        "host": "hub.example",
        "svix-signature": "v1,x",
        "x-custom": "1",
        "x-evil": "a\r\nb: c",
        "x-\u00e9": "1",
    }
    assert passed_on(SENDERS["github"], headers) == {"x-github-event": "push", "x-hub-signature-256": "sha256=00"}
    expected = {"x-custom": "1", "x-github-event": "push", "x-hub-signature-256": "sha256=00"}
    assert passed_on(SENDERS["generic-webhook"], headers) == expected
    assert passed_on(SENDERS["svix"], headers) == {}


def test_headers_that_go_on_are_bounded() -> None:
    many = {f"x-{number:04d}": "v" for number in range(100)}
    assert len(passed_on(SENDERS["generic-webhook"], many)) == MOST_PASSED
    long = {"x-a": "v" * 4_000, "x-b": "v" * 4_000, "x-c": "v"}
    found = passed_on(SENDERS["generic-webhook"], long)
    assert set(found) == {"x-a", "x-c"}
    assert sum(len(name) + len(value) for name, value in found.items()) <= MOST_PASSED_BYTES
