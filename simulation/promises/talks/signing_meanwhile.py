"""Signatures that change meanwhile: between the tries of a message, by parts of a list, and after a scheme's end.

Sources: docs/signatures.md; Standard Webhooks; Stripe and GitHub for how each is verified.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from simulation.promises.talks.customers import Customer
from simulation.promises.talks.signing import ENDPOINT_KEY, KEY, NEXT_KEY, stripe
from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.webhooks import OTHER_SECRET, is_signed

OWN_KEY = "the key of one's own"
LATE_S = 75
"""What waits longer than a minute is looked after each minute."""

SECOND_TRY_S = 10
"""Within which a second try comes, after a wait of five seconds."""

SECOND_WAIT_S = 300
STANDARD = {"preset": "standard-webhooks"}


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_between_tries, _ends_between, _in_part, _forgotten)


def _own(came: Came, key: str, name: str = "x-own") -> bool:
    return came.headers.get(name) == hmac.digest(key.encode(), came.body, hashlib.sha256).hex()


def _times(came: Sequence[Came]) -> list[int]:
    return [int(each.headers["webhook-timestamp"]) for each in came]


def _between_tries(talk: Talk) -> None:
    """Each try is signed at its own time, with the secrets that there are by then, also of a message that was posted
    before; so is what is sent by hand.
    """
    one = Customer(talk, "tries")
    came = one.endpoint("one", secret=ENDPOINT_KEY)
    one.says["one"] = (500, b"")
    message_id = one.post(1)
    talk.sleep(SECOND_TRY_S + talk.put_off_s)
    talk.came("twice", 2, len(came))
    talk.came("each signed", [True, True], [is_signed(each, ENDPOINT_KEY) for each in came])
    first, second = _times(came[:2])
    talk.came("at its own time", lambda gap: 4 <= gap <= 30 + talk.put_off_s, second - first)
    talk.came("one id", 1, len({each.headers["webhook-id"] for each in came}))
    path = f"{one.path}/endpoint/one"
    talk.ask("POST", f"{path}/secret/rotate", {"key": OTHER_SECRET, "gracePeriodSeconds": 0})
    talk.sleep(SECOND_WAIT_S * 1.2 + LATE_S + talk.gathered_s)
    talk.came("once more", 3, len(came))
    signed = [is_signed(came[-1], each) for each in (OTHER_SECRET, ENDPOINT_KEY)]
    talk.came("with the new one alone", [True, False], signed)
    talk.ask("PUT", f"{path}/signatures", {"signatures": [{"preset": "stripe", "secret": KEY}]})
    one.says["one"] = (200, b"")
    talk.sleep(2)
    talk.ask("POST", f"{one.path}/msg/{message_id}/endpoint/one/resend", status=202)
    talk.sleep(10 + talk.put_off_s)
    talk.came("by hand, too", (True, False), (stripe(came[-1], KEY), "webhook-signature" in came[-1].headers))
    attempts = talk.ask("GET", f"{one.path}/attempt/endpoint/one")["data"]
    talk.is_so("which says so", ["stripe"], attempts[0].get("signedBy"))
    talk.is_so("and of no other", [False] * 3, ["signedBy" in each for each in attempts[1:]])
    one.over()


def _ends_between(talk: Talk) -> None:
    """A scheme that has ended signs no try any more, also of a message that was posted before its end."""
    one = Customer(talk, "ends")
    came = one.endpoint("one", secret=ENDPOINT_KEY)
    one.says["one"] = (500, b"")
    ends = datetime.fromtimestamp(talk.epoch_s() + 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    both = [{"preset": "stripe", "secret": KEY, "endsAt": ends}, STANDARD]
    talk.ask("PUT", f"{one.path}/endpoint/one/signatures", {"signatures": both})
    talk.sleep(2)
    one.post(1)
    talk.sleep(SECOND_TRY_S + talk.put_off_s)
    talk.came("both", {(True, True)}, {(stripe(each, KEY), is_signed(each, ENDPOINT_KEY)) for each in came})
    one.says["one"], before = (200, b""), len(came)
    talk.sleep(SECOND_WAIT_S * 1.2 + LATE_S + talk.gathered_s)
    last = [("stripe-signature" in each.headers, is_signed(each, ENDPOINT_KEY)) for each in came[before:]]
    talk.came("then the other alone", [(False, True)], last)
    attempts = talk.ask("GET", f"{one.path}/attempt/endpoint/one")["data"]
    named = [sorted(each.get("signedBy", ["standard-webhooks"])) for each in attempts]
    talk.is_so("as attempts have it", [["standard-webhooks"], *(before * [["standard-webhooks", "stripe"]])], named)
    one.over()


def _in_part(talk: Talk) -> None:
    """A scheme is known by its header: in another place of the list, in other letters, and beside one that gets another
    secret, it keeps its own.
    """
    one = Customer(talk, "parts")
    came = one.endpoint("one", secret=ENDPOINT_KEY)
    path = f"{one.path}/endpoint/one"
    own = {"preset": "hmac-body", "header": {"name": "X-Own"}}

    def set_to(*schemes: dict[str, Any], count: int) -> Came:
        talk.ask("PUT", f"{path}/signatures", {"signatures": [*schemes]}, shows={"signatures": count * [...]})
        talk.sleep(2)
        before = len(came)
        one.post(before)
        talk.sleep(8 + talk.put_off_s)
        talk.came("one request", 1, len(came) - before)
        return came[-1]

    last = set_to({"preset": "stripe", "secret": KEY}, {**own, "secret": OWN_KEY}, count=2)
    talk.came("each with its own", (True, True), (stripe(last, KEY), _own(last, OWN_KEY)))
    talk.ask("GET", f"{path}/secret", shows={"key": KEY})
    last = set_to({**own, "header": {"name": "x-OWN"}}, {"preset": "stripe"}, count=2)
    talk.came("the other way round", (True, True), (stripe(last, KEY), _own(last, OWN_KEY)))
    talk.ask("GET", f"{path}/secret", shows={"key": OWN_KEY})
    last = set_to({"preset": "stripe", "secret": NEXT_KEY}, own, count=2)
    signed = [stripe(last, each) for each in (KEY, NEXT_KEY)]
    talk.came("one of them gets another", ([True, True], True), (signed, _own(last, OWN_KEY)))
    last = set_to({"preset": "stripe"}, STANDARD, count=2)
    signed = [stripe(last, each) for each in (KEY, NEXT_KEY)]
    talk.came("which both go on", ([True, True], True), (signed, is_signed(last, ENDPOINT_KEY)))
    last = set_to(STANDARD, count=1)
    names = [name in last.headers for name in ("stripe-signature", "x-own", "webhook-signature")]
    talk.came("none but one", [False, False, True], names)
    one.over()


def _forgotten(talk: Talk) -> None:
    """The next change of an endpoint removes a scheme that has ended with its secrets, whatever is changed; until then
    and afterwards it is not shown, and signs nothing.
    """
    one = Customer(talk, "forgotten")
    came = one.endpoint("one", secret=ENDPOINT_KEY)
    path = f"{one.path}/endpoint/one"
    ends = datetime.fromtimestamp(talk.epoch_s() + 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    both = [{"preset": "stripe", "secret": KEY, "endsAt": ends}, STANDARD]
    talk.ask("PUT", f"{path}/signatures", {"signatures": both}, shows={"signatures": 2 * [...]})
    talk.sleep(70, exactly=True)
    talk.ask("GET", f"{path}/signatures", shows={"signatures": [STANDARD]})
    talk.ask("PATCH", path, {"description": "changed"}, shows={"description": "changed"})
    talk.ask("GET", f"{path}/signatures", shows={"signatures": [STANDARD]})
    talk.ask("PUT", f"{path}/signatures", {"signatures": [{"preset": "stripe"}, STANDARD]}, status=422)
    talk.sleep(2)
    one.post(1)
    talk.sleep(8 + talk.put_off_s)
    last = [("stripe-signature" in each.headers, is_signed(each, ENDPOINT_KEY)) for each in came]
    talk.came("the other alone", [(False, True)], last)
    talk.ask("GET", f"{path}/stats", shows={"success": 1, "fail": 0})
    one.over()


__all__ = ["webhooks"]
