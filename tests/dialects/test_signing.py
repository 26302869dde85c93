"""Signatures, in every dialect that has them as a setting: what receivers are sent, how keys are set, changed and
ended, and that nobody sees them.
"""

from __future__ import annotations

import base64
import hmac
from typing import Any

import pytest
from tests.dialects.receivers import OTHER_URL, URL, Receiver, header, sent
from tests.engine.world import PROJECT
from tests.fakes.verifier import new_asymmetric, symmetric, verified

from pushhub.base.ports import PushRequest
from pushhub.base.signature_schemes import PRESETS
from pushhub.base.times import epoch_ms, iso_time

FIRST, SECOND = symmetric("1"), symmetric("2")
STRIPE = {"preset": "stripe", "secret": "whsec_test_stripe_0123456789"}
GITHUB = {"preset": "github", "secret": "hush"}
DAY_MS = 86_400_000


def is_signed(secret: str, request: PushRequest) -> bool:
    return verified(secret, request.headers, request.body)


def stripe_of(secret: str, request: PushRequest) -> str:
    at = str(header(request, "Stripe-Signature")).partition(",")[0].removeprefix("t=")
    return f"v1={hmac.digest(secret.encode(), at.encode() + b'.' + request.body, 'sha256').hex()}"


def ends(receiver: Receiver, days: float) -> str:
    return iso_time(receiver.world.clock.now() + round(days * DAY_MS))


def look(receiver: Receiver, days: int) -> int:
    """Let days pass, and look for ends each hour; how much was told."""
    reported = 0
    for _ in range(days * 24):
        receiver.world.clock.set((receiver.world.clock.now() // 3_600_000 + 1) * 3_600_000)
        reported += receiver.look_for_ends()
    return reported


def test_a_signed_receiver_can_verify_what_it_is_sent_and_others_see_no_signature(receiver: Receiver) -> None:
    receiver.make(signing={"secret": FIRST})
    receiver.make(OTHER_URL)
    request = sent(receiver)
    assert is_signed(FIRST, request)
    assert not is_signed(SECOND, request)
    assert not verified(FIRST, request.headers, b"something else")
    [other] = receiver.world.sender.requests_to(OTHER_URL)
    assert not [name for name in other.headers if name.lower().startswith("webhook")]
    assert receiver.shown()["signing"] is True


def test_a_retry_has_the_id_of_the_first_try_and_a_time_of_its_own(receiver: Receiver) -> None:
    receiver.make(signing={"secret": FIRST})
    receiver.answers(500)
    receiver.post(seconds=120)
    first, second = receiver.world.sender.requests_to(URL)
    assert header(first, "webhook-id") == header(second, "webhook-id")
    assert header(first, "webhook-timestamp") != header(second, "webhook-timestamp")
    assert is_signed(FIRST, first)
    assert is_signed(FIRST, second)


def test_an_old_secret_signs_beside_the_new_one_until_its_grace_period_is_over(receiver: Receiver) -> None:
    # Given a secret that is replaced by an asymmetric one
    private, public = new_asymmetric()
    receiver.make(signing={"secret": FIRST})
    receiver.change(signing={"secret": private, "grace_period": 600})
    # Then both sign for ten minutes
    request = sent(receiver)
    assert is_signed(FIRST, request)
    assert is_signed(public, request)
    assert "v1a," in str(header(request, "webhook-signature"))
    receiver.world.clock.advance(seconds=601)
    request = sent(receiver)
    assert not is_signed(FIRST, request)
    assert is_signed(public, request)
    # And without a grace period the previous one ends at once
    receiver.change(signing={"secret": FIRST, "grace_period": 0})
    assert not is_signed(public, sent(receiver))


@pytest.mark.parametrize("signing", [{}, {"signing": None}, {"signing": True}, "as shown"])
def test_whoever_does_not_speak_of_signing_leaves_it_as_it_is(receiver: Receiver, signing: Any) -> None:
    receiver.make(signing={"secret": FIRST})
    receiver.write_back() if signing == "as shown" else receiver.change(**signing)
    assert is_signed(FIRST, sent(receiver))


def test_false_ends_it_and_true_alone_begins_nothing(receiver: Receiver) -> None:
    assert "secret" in receiver.refusal(signing=True)
    receiver.make(signing={"secret": FIRST})
    receiver.change(signing=False)
    assert header(sent(receiver), "webhook-signature") is None
    assert "signing" not in receiver.shown()


@pytest.mark.parametrize(
    "signing",
    [
        *(1, "yes", [], {}, {"secret": None}, {"secret": 7}, {"secret": ""}, {"secret": "whsec_"}),
        *({"secret": "whsec_!"}, {"secret": [FIRST]}, {"secret": FIRST[:20]}),
        {"secret": "whsec_" + base64.b64encode(b"x" * 23).decode()},
        {"secret": "whsec_" + base64.b64encode(b"x" * 76).decode()},
        {"secret": "whsk_" + base64.b64encode(b"x" * 64).decode()},
        {"secret": "whpk_" + base64.b64encode(b"x" * 32).decode()},
        *({"secret": FIRST, "grace_period": wrong} for wrong in (-1, 604_801, "soon", 1.5, [1])),
    ],
)
def test_what_is_no_secret_is_refused_and_not_repeated(receiver: Receiver, signing: object) -> None:
    refusal = receiver.refusal(signing=signing)
    assert "whsec_M" not in refusal
    assert "MTEx" not in refusal


def test_no_secret_is_seen_anywhere(receiver: Receiver) -> None:
    # Given a signed receiver that fails, then neither the secret nor its bytes appear in lists, logs, stores or answers
    receiver.make(signing={"secret": FIRST})
    receiver.answers(500)
    receiver.post(seconds=60)
    kept = receiver.kept()
    assert FIRST.removeprefix("whsec_") not in kept
    assert "1" * 32 not in kept


def test_a_receiver_is_signed_by_another_senders_scheme(receiver: Receiver) -> None:
    # Given a receiver with a scheme, then it gets that signature and no other
    receiver.make(signing={"signatures": [STRIPE]})
    request = sent(receiver)
    assert str(header(request, "Stripe-Signature")).split(",")[1:] == [stripe_of(STRIPE["secret"], request)]
    assert header(request, "webhook-signature") is None
    # When a client writes back what it read, then nothing changes
    receiver.write_back()
    assert header(sent(receiver), "Stripe-Signature")
    # When Standard Webhooks are added and the secret is replaced, then all three signatures are there
    both = [{**STRIPE, "secret": "new"}, {"preset": "standard-webhooks"}]
    receiver.change(signing={"secret": FIRST, "signatures": both})
    request = sent(receiver)
    assert is_signed(FIRST, request)
    old_and_new = [stripe_of(each, request) for each in ("new", STRIPE["secret"])]
    assert str(header(request, "Stripe-Signature")).split(",")[1:] == old_and_new
    # When only a secret is given, then it is Standard Webhooks alone again
    receiver.change(signing={"secret": SECOND})
    request = sent(receiver)
    assert is_signed(SECOND, request)
    assert header(request, "Stripe-Signature") is None
    assert STRIPE["secret"] not in receiver.kept()


@pytest.mark.parametrize(
    ("signing", "place"),
    [
        ({"signatures": [{"preset": "stripe"}]}, "signing.signatures.0.secret"),
        ({"signatures": [{**STRIPE, "content": "{body}"}]}, "signing.signatures.0.content"),
        ({"signatures": [{**GITHUB, "hash": "md5"}]}, "signing.signatures.0.hash"),
        ({"signatures": [{"preset": "standard-webhooks"}]}, "signing.secret"),
        ({"secret": FIRST, "signatures": [STRIPE]}, "signing.secret"),
    ],
)
def test_a_scheme_that_could_not_be_right_is_refused_by_name(
    receiver: Receiver, signing: dict[str, Any], place: str
) -> None:
    assert place in receiver.refusal(signing=signing)


def test_a_scheme_ends_and_its_end_is_shown(receiver: Receiver) -> None:
    # Given a receiver that moves from Stripe's scheme to GitHub's within eight days
    end = ends(receiver, 8)
    both = [{**STRIPE, "endsAt": end}, GITHUB]
    receiver.make(signing={"signatures": both})
    assert receiver.shown()["signing_ends"] == {"Stripe-Signature": end}
    # When a client writes back what it read, then the end stays
    receiver.write_back()
    assert receiver.shown()["signing_ends"] == {"Stripe-Signature": end}
    assert header(sent(receiver), "Stripe-Signature")
    # When it is there, then the other one is sent alone
    receiver.world.clock.set(epoch_ms(end))
    request = sent(receiver)
    assert header(request, "Stripe-Signature") is None
    assert header(request, "X-Hub-Signature-256")
    # And a change of the schemes removes it
    receiver.change(signing={"signatures": both[1:]})
    assert "signing_ends" not in receiver.shown()


@pytest.mark.parametrize(("days", "place"), [((5,), "0"), ((5, 6), "1"), ((-1, None), "0"), ((401, None), "0")])
def test_an_end_that_cannot_be_is_refused(receiver: Receiver, days: Any, place: str) -> None:
    schemes = [
        each if day is None else {**each, "endsAt": ends(receiver, day)}
        for each, day in zip((STRIPE, GITHUB), days, strict=False)
    ]
    assert f"signing.signatures.{place}.endsAt" in receiver.refusal(signing={"signatures": schemes})


def test_operators_are_told_a_week_and_a_day_before_a_scheme_ends(receiver: Receiver) -> None:
    receiver.make(signing={"signatures": [{**STRIPE, "endsAt": ends(receiver, 20)}, GITHUB]})
    look(receiver, 21)
    assert [each["days_left"] for each in receiver.world.telemetry.named("signature_ending")] == [7, 1]


def test_an_end_that_is_no_more_is_told_nothing_of(receiver: Receiver) -> None:
    receiver.make(signing={"signatures": [{**STRIPE, "endsAt": ends(receiver, 9)}, GITHUB]})
    receiver.change(signing={"signatures": [{**STRIPE, "endsAt": ends(receiver, 300)}, GITHUB]})
    assert look(receiver, 10) == 0
    receiver.change(signing=False)
    assert look(receiver, 300) == 0


INHERITS: dict[str, tuple[dict[str, Any], str]] = {
    "a secret": ({"secret": FIRST}, "x-hub-signature-256"),
    "a scheme of its own": ({"signatures": [STRIPE]}, "stripe-signature"),
    "Standard Webhooks": ({"secret": FIRST, "signatures": [{"preset": "standard-webhooks"}]}, "webhook-signature"),
    "an asymmetric secret": ({"secret": new_asymmetric()[0]}, "webhook-signature"),
}
"""What a receiver is given, and the one signature that it gets in a project that signs as GitHub does."""


@pytest.mark.parametrize(("signing", "expected"), INHERITS.values(), ids=INHERITS)
def test_a_receiver_with_nothing_but_a_secret_inherits_the_projects_schemes(
    receiver: Receiver, signing: dict[str, Any], expected: str
) -> None:
    receiver.make(signing=signing)
    receiver.world.config.sign_project(PROJECT, (PRESETS["github"],))
    known = {"stripe-signature", "x-hub-signature-256", "webhook-signature"}
    assert known & {name.lower() for name in sent(receiver).headers} == {expected}


def test_what_is_inherited_is_signed_with_the_receivers_secret_and_rotates_with_it(receiver: Receiver) -> None:
    receiver.make(signing={"secret": FIRST})
    receiver.world.config.sign_project(PROJECT, (PRESETS["stripe"],))
    for secrets in ([FIRST], [SECOND, FIRST]):
        receiver.change(signing={"secret": secrets[0]})
        request = sent(receiver)
        signatures = str(header(request, "Stripe-Signature")).split(",")[1:]
        assert signatures == [stripe_of(each, request) for each in secrets]
