"""Judges signatures with the senders' own libraries, unmodified, in the environment of ``requirements/verifiers.txt``.

Reads a list of objects ``{preset, secret, url, headers, body, good}`` (the body in base64, names of headers in lower
case) and prints how many came to what was expected; fails at the first that did not.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Mapping
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


VERIFIERS: Mapping[str, Callable[[str, str, Headers, bytes], bool]] = {
    "convoy-simple": _convoy,
    "hook0": _hook0,
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
