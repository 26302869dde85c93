"""Judges signatures with the senders' own libraries, unmodified, in the environment of ``requirements/verifiers.txt``.

Two senders have no library that could be had: convoy-python hashes the body alone, and Outpost has a guide. Their rules
are written here again, without a line of the hub's, and Convoy's own vectors judge the judge first.

Reads a list of objects ``{preset, secret, url, headers, body, good}`` (the body in base64, names of headers in lower
case) and prints how many came to what was expected; fails at the first that did not.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import hook0.signature
import slack_sdk.signature
import standardwebhooks
import stripe
import twilio.request_validator
from convoy.utils.webhook import Webhook

Headers = Mapping[str, str]


def _stripe(secret: str, _: str, headers: Headers, body: bytes) -> bool:
    try:
        return bool(stripe.WebhookSignature.verify_header(body.decode(), headers["stripe-signature"], secret, 300))
    except stripe.SignatureVerificationError:
        return False


def _slack(secret: str, _: str, headers: Headers, body: bytes) -> bool:
    verifier = slack_sdk.signature.SignatureVerifier(secret)
    return bool(verifier.is_valid(body, headers["x-slack-request-timestamp"], headers["x-slack-signature"]))


def _twilio(secret: str, url: str, headers: Headers, body: bytes) -> bool:
    validator = twilio.request_validator.RequestValidator(secret)
    return bool(validator.validate(url, body.decode(), headers["x-twilio-signature"]))


def _convoy(secret: str, _: str, headers: Headers, body: bytes) -> bool:
    try:
        # For a wrong signature it may answer a text.
        return Webhook(secret).verify_simple_signature(body.decode(), headers["x-convoy-signature"]) is True
    except Exception:  # noqa: BLE001 (its own classes have no common base)
        return False


def _hook0(secret: str, _: str, headers: Headers, body: bytes) -> bool:
    try:
        hook0.signature.verify_webhook_signature(
            headers["x-hook0-signature"], body, list(headers.items()), secret, tolerance=300
        )
    except hook0.signature.Hook0ClientError:
        return False
    return True


def _standard(secret: str, _: str, headers: Headers, body: bytes) -> bool:
    try:
        standardwebhooks.Webhook(secret).verify(body, dict(headers))
    except standardwebhooks.WebhookVerificationError:
        return False
    return True


CONVOY_SECRET = "convoy-webhook-secret"
CONVOY_BODY = b'{"event":"charge.success","amount":1000,"currency":"NGN"}'
CONVOY_RIGHT = "77b8b9269f25a199846a55a2bd25b3fba151c70fdae60bb1dcd87fbbc943c55c"
CONVOY_WRONG = "449623e4897bbde05e35358293f97b8c2f697367ffa3e7466e98178dfba44d19"
CONVOY_VECTORS = (
    (f"t=1700000000,v1={CONVOY_RIGHT}", math.inf, True),
    (f"v1={CONVOY_RIGHT},t=1700000000", math.inf, True),
    (f"t=1700000000,v1={CONVOY_WRONG},v1={CONVOY_RIGHT}", math.inf, True),
    (f"t=1700000000,v1={CONVOY_WRONG},v1={CONVOY_WRONG[::-1]}", math.inf, False),
    (f"t=1700000000,v1={CONVOY_RIGHT[:-1]}0", math.inf, False),
    (f"t=1700000000,v1={CONVOY_RIGHT}", 300, False),
    (f"t=Infinity,v1={CONVOY_RIGHT}", math.inf, False),
    ("t=1700000000,v1=1234567890", math.inf, False),
    (f"v1={CONVOY_RIGHT},v2={CONVOY_RIGHT}", math.inf, False),
)
"""Header, tolerance in seconds and result, as in ``pkg/signature/testdata/signature-vectors.json`` of Convoy."""


def _by_convoys_rules(secret: str, header: str, body: bytes, tolerance: float) -> bool:
    pairs = [tuple(each.split("=", 1)) for each in header.split(",")]
    times = [value for name, value in pairs if name.strip() == "t"]
    if len(times) != 1 or not times[0].isdecimal() or time.time() - int(times[0]) > tolerance:
        return False
    expected = hmac.new(secret.encode(), times[0].encode() + b"," + body, hashlib.sha256).hexdigest()
    return any(hmac.compare_digest(value, expected) for name, value in pairs if name.strip() != "t")


def _convoy_advanced(secret: str, _: str, headers: Headers, body: bytes) -> bool:
    for header, tolerance, good in CONVOY_VECTORS:
        assert _by_convoys_rules(CONVOY_SECRET, header, CONVOY_BODY, tolerance) is good, header
    return _by_convoys_rules(secret, headers["x-convoy-signature"], body, 300)


def _outpost(secret: str, _: str, headers: Headers, body: bytes) -> bool:
    version, _, signatures = headers["x-outpost-signature"].partition("=")
    assert version == "v0"
    assert datetime.fromisoformat(headers["x-outpost-timestamp"]).tzinfo is not None
    expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return any(hmac.compare_digest(each.strip(), expected) for each in signatures.split(","))


VERIFIERS: Mapping[str, Callable[[str, str, Headers, bytes], bool]] = {
    "convoy-advanced": _convoy_advanced,
    "convoy-simple": _convoy,
    "hook0": _hook0,
    "outpost": _outpost,
    "slack": _slack,
    "standard-webhooks": _standard,
    "stripe": _stripe,
    "twilio": _twilio,
}


def main(given: list[dict[str, Any]]) -> None:
    """Judge what is given."""
    for each in given:
        verify = VERIFIERS[each["preset"]]
        found = verify(each["secret"], each["url"], each["headers"], base64.b64decode(each["body"]))
        assert found is each["good"], each
    print(len(given))  # noqa: T201 (the answer)


if __name__ == "__main__":
    main(json.load(sys.stdin))
