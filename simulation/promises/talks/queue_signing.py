"""Signed pushes: which secrets sign and for how long, each try anew, subscriber by subscriber; schemes of other
senders; what the project hands down; and how signatures go on through a queue.

Source: docs/ironmq.md ("Signatures"), docs/signatures.md ("Subscribers of queues and services of stores").
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from simulation.promises.documents import said
from simulation.promises.judgement import SECOND
from simulation.promises.talks.push_queues import LATE_S, MINUTE, OK, created, posted, subscriber
from simulation.promises.talks.talk import Came, Said, Talk
from simulation.promises.talks.webhooks import is_signed

A_DAY_S = 86_400
SECRETS = tuple("whsec_" + base64.b64encode(bytes(range(first, first + 24))).decode() for first in (1, 31, 61))
SEED = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
STRIPE, GITHUB = "stripe-signature", "x-hub-signature-256"
KEY = "key of the receiver"


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_tries, _secrets, _switched, _schemes, _refused, _inherited, _ends, _passed_on)


def _sent(talk: Talk, queue: str, came: Sequence[Came], body: str = "{}") -> Came:
    """Post a message, and wait for what comes of it."""
    talk.sleep(2)
    before = len(came)
    [message_id] = posted(talk, queue, body)
    talk.sleep(8 + talk.put_off_s)
    talk.came("one request", 1, len(came) - before)
    talk.came("with its message", message_id, came[-1].headers["iron-message-id"])
    return came[-1]


def _signs(talk: Talk, queue: str, name: str, signing: object, *, status: int = 200, **more: Any) -> None:
    """Change what a subscriber is signed with, as its owner does."""
    one = {**subscriber(name), "signing": signing, **more}
    talk.ask("POST", f"{queue}/subscribers", {"subscribers": [one]}, status=status)


def _by(came: Came, secrets: Sequence[str] = SECRETS) -> list[bool]:
    """Which of some secrets have signed a request."""
    return ["webhook-signature" in came.headers and is_signed(came, each) for each in secrets]


def _tries(talk: Talk) -> None:
    """Each try is signed anew, with the message's id and its own time; who has another secret is signed with that, and
    who has none is not.
    """
    fails: dict[str, int] = {}

    def once(came: Came) -> Said:
        fails[came.headers["iron-subscriber-name"]] = fails.get(came.headers["iron-subscriber-name"], 0) + 1
        return (500, b"") if fails[came.headers["iron-subscriber-name"]] == 1 else OK

    names = ("tries-one", "tries-two", "tries-none")
    came = {name: talk.listen(f"{name}.example", once) for name in names}
    signing = [{"signing": {"secret": each}} for each in SECRETS[:2]] + [{}]
    several = [subscriber(name, **each) for name, each in zip(names, signing, strict=True)]
    queue = created(talk, "tries", *several, retries=1, retries_delay=20)
    talk.ask("GET", queue, shows=lambda each: not any(secret in json.dumps(each) for secret in SECRETS))
    [one] = posted(talk, queue, '{"a": "é"}')
    talk.sleep(20 + LATE_S + talk.put_off_s)
    expected = {"tries-one": [True, False, False], "tries-two": [False, True, False], "tries-none": [False] * 3}
    for name, heard in came.items():
        talk.came(f"tries of {name}", [expected[name]] * 2, [_by(each) for each in heard])
        if name == "tries-none":
            names_sent = {header for each in heard for header in each.headers}
            talk.came("nothing of it", set(), {each for each in names_sent if each.startswith(("webhook-", "svix-"))})
            continue
        talk.came("the message's id", [one] * 2, [each.headers["webhook-id"] for each in heard])
        began_s = talk.epoch_s() - talk.now() // SECOND
        off = [int(each.headers["webhook-timestamp"]) - began_s - each.at // SECOND for each in heard]
        talk.came("the time of the try", 2 * [lambda each: -2 <= each <= 1], off)
    talk.ask("DELETE", queue)


def _secrets(talk: Talk) -> None:
    """The secret before signs beside the new one as long as is said, or for a day; at once it does not if that is 0."""
    came = talk.listen("secrets.example", lambda _: OK)
    queue = created(talk, "secrets", subscriber("secrets", signing={"secret": SECRETS[0]}), retries=0)
    talk.came("the first", [True, False, False], _by(_sent(talk, queue, came)))
    # Long enough for what is gathered on its way in between
    _signs(talk, queue, "secrets", {"secret": SECRETS[1], "grace_period": 300})
    talk.came("both", [True, True, False], _by(_sent(talk, queue, came)))
    talk.sleep(150, exactly=True)
    talk.came("both, until then", [True, True, False], _by(_sent(talk, queue, came)))
    talk.sleep(150 + talk.gathered_s, exactly=True)
    talk.came("the second alone", [False, True, False], _by(_sent(talk, queue, came)))
    _signs(talk, queue, "secrets", {"secret": SECRETS[2], "grace_period": 0})
    talk.came("at once", [False, False, True], _by(_sent(talk, queue, came)))
    for _ in range(2):
        # Given once more, it is the one that it has, and no former one
        _signs(talk, queue, "secrets", {"secret": SECRETS[0]})
    talk.came("two of three", [True, False, True], _by(_sent(talk, queue, came)))
    day = said("ironmq", r"\(default ([\d,]+), 0\.\.[\d,]+\)")
    talk.is_so("a day", A_DAY_S, day)
    talk.sleep(day - 3 * MINUTE, exactly=True)
    talk.came("for nearly a day", [True, False, True], _by(_sent(talk, queue, came)))
    talk.sleep(3 * MINUTE, exactly=True)
    talk.came("for a day", [True, False, False], _by(_sent(talk, queue, came)))
    _signs(talk, queue, "secrets", {"secret": SEED, "grace_period": 60})
    one = _sent(talk, queue, came)
    kinds = [each.partition(",")[0] for each in one.headers["webhook-signature"].split(" ")]
    talk.came("a key beside a secret", (["v1", "v1a"], True), (sorted(kinds), is_signed(one, SECRETS[0])))
    talk.ask("DELETE", queue)


def _switched(talk: Talk) -> None:
    """What is left out, null or true keeps what signs; false ends it, and then there is nothing to switch on."""
    came = talk.listen("switched.example", lambda _: OK)
    others = talk.listen("switched-other.example", lambda _: OK)
    queue = created(talk, "switched", "switched", "switched-other", retries=0)
    plain = subscriber("switched")
    _signs(talk, queue, "switched", True, status=400)
    _signs(talk, queue, "switched", {"secret": SECRETS[0]})
    for method, path, body in (
        ("POST", f"{queue}/subscribers", {"subscribers": [plain]}),
        ("POST", f"{queue}/subscribers", {"subscribers": [{**plain, "signing": None}]}),
        ("POST", f"{queue}/subscribers", {"subscribers": [{**plain, "signing": True, "timeout": 20}]}),
        (
            "PUT",
            f"{queue}/subscribers",
            {"subscribers": [subscriber("switched-other"), {**plain, "headers": {"X-A": "a"}}]},
        ),
        ("PATCH", queue, {"queue": {"push": {"retries": 1}}}),
        ("PATCH", queue, {"queue": talk.ask("GET", queue)["queue"]}),
    ):
        talk.ask(method, path, body)
        shown = {
            each["name"]: each.get("signing", False) for each in talk.ask("GET", queue)["queue"]["push"]["subscribers"]
        }
        talk.is_so("which are signed", {"switched": True, "switched-other": False}, shown)
    talk.came("signed still", [True, False, False], _by(_sent(talk, queue, came)))
    talk.came("the other is not", [[False] * 3], [_by(each) for each in others])
    _signs(talk, queue, "switched", False)
    talk.came("not any more", "none", _sent(talk, queue, came).headers.get("webhook-signature", "none"))
    _signs(talk, queue, "switched", True, status=400)
    talk.ask("GET", queue, shows=lambda each: not any("signing" in one for one in each["queue"]["push"]["subscribers"]))
    _signs(talk, queue, "switched", {"secret": SECRETS[1]})
    talk.came("with a new one alone", [False, True, False], _by(_sent(talk, queue, came)))
    talk.ask("DELETE", queue)


def _stripe(came: Came, key: str) -> bool:
    fields = [each.partition("=") for each in came.headers.get(STRIPE, "").split(",")]
    at = next((text for name, _, text in fields if name == "t"), "")
    own = hmac.digest(key.encode(), f"{at}.".encode() + came.body, "sha256").hex()
    return own in {text for name, _, text in fields if name == "v1"}


def _github(came: Came, key: str) -> bool:
    own = f"sha256={hmac.digest(key.encode(), came.body, 'sha256').hex()}"
    return hmac.compare_digest(came.headers.get(GITHUB, "").encode(), own.encode())


OWN = {
    "content": "{id}|{event_id}|{event_type}|{url}|{header:x-more}|{body}",
    "header": {"name": "X-Own"},
    "headers": {"X-More": "{event_type}/{event_id}/{id}"},
}
"""A scheme of one's own, with what stands for the queue and the message."""


def _schemes(talk: Talk) -> None:
    """Schemes of other senders: alone, two at a time, with the queue's name and the message's id."""
    came = talk.listen("schemes.example", lambda _: OK)
    queue = created(talk, "schemes", subscriber("schemes"), retries=0)
    _signs(talk, queue, "schemes", {"signatures": [{"preset": "stripe", "secret": KEY}]})
    talk.ask("GET", queue, shows={"queue": {"push": {"subscribers": [{"signing": True}]}}})
    talk.ask("GET", queue, shows=lambda each: KEY not in json.dumps(each) and "stripe" not in json.dumps(each).lower())
    one = _sent(talk, queue, came)
    talk.came(
        "Stripe's alone",
        (True, False, False),
        (_stripe(one, KEY), "webhook-signature" in one.headers, GITHUB in one.headers),
    )
    _signs(talk, queue, "schemes", True)
    talk.came("kept", True, _stripe(_sent(talk, queue, came), KEY))
    # Without its secret a scheme keeps the stored one; with another, both sign
    _signs(talk, queue, "schemes", {"signatures": [{"preset": "stripe"}]})
    talk.came("with the stored secret", True, _stripe(_sent(talk, queue, came), KEY))
    _signs(talk, queue, "schemes", {"signatures": [{"preset": "stripe", "secret": "the next one"}]})
    one = _sent(talk, queue, came)
    talk.came("both", (True, True), (_stripe(one, KEY), _stripe(one, "the next one")))
    _signs(talk, queue, "schemes", {"signatures": [{"preset": "github", "secret": KEY}]})
    one = _sent(talk, queue, came, "é")
    names = {"x-github-event": "schemes", "x-github-delivery": one.headers["iron-message-id"]}
    talk.came("GitHub's", names, one.headers)
    talk.came("alone", (True, False), (_github(one, KEY), STRIPE in one.headers))
    own = {**OWN, "secret": "12345678"}
    _signs(talk, queue, "schemes", {"secret": SECRETS[0], "signatures": [own, {"preset": "standard-webhooks"}]})
    one = _sent(talk, queue, came)
    ids = one.headers["iron-message-id"]
    talk.came("a further header", f"schemes/{ids}/{ids}", one.headers["x-more"])
    content = f"{ids}|{ids}|schemes|https://schemes.example/in|schemes/{ids}/{ids}|".encode() + one.body
    mac = hmac.digest(b"12345678", content, hashlib.sha256).hex()
    talk.came("one's own and the standard's", (mac, [True, False, False]), (one.headers["x-own"], _by(one)))
    _signs(talk, queue, "schemes", {"secret": SECRETS[1], "grace_period": 0})
    one = _sent(talk, queue, came)
    talk.came("the standard's alone", ([False, True, False], False), (_by(one), "x-own" in one.headers))
    talk.ask("DELETE", queue)
    # A name that a header could not carry
    path = "/queues/schémes b"
    talk.ask("PUT", path, {"queue": {"push": {"subscribers": [subscriber("schemes", signing={"signatures": [own]})]}}})
    one = _sent(talk, path, came)
    talk.came("percent-encoded", "sch%C3%A9mes%20b", one.headers["x-more"].partition("/")[0].replace(" ", "%20"))
    talk.ask("DELETE", path)


def _refused(talk: Talk) -> None:
    """What no subscriber can be signed with; what it had stays."""
    came = talk.listen("refused.example", lambda _: OK)
    queue = created(talk, "refused", subscriber("refused", signing={"secret": SECRETS[0]}), retries=0)
    most = said("ironmq", r"base64 of \d+ to (\d+) bytes")
    stripe = {"preset": "stripe", "secret": KEY}
    bad: Any
    for bad in (
        {"signatures": [{"preset": "twilio", "secret": KEY}]},
        {"signatures": [{"preset": "nobody", "secret": KEY}]},
        {"signatures": [{"preset": "stripe"}]},
        {"signatures": [stripe, stripe]},
        {"signatures": [stripe, {"preset": "github", "secret": KEY}, {"preset": "hook0", "secret": KEY}]},
        {"signatures": [{**stripe, "secret": 2_100 * "k"}]},
        {"secret": f"whsec_{base64.b64encode(bytes(most + 1)).decode()}"},
        {"secret": "whsk_AAAA"},
        {"secret": ""},
        "yes",
        [],
    ):
        _signs(talk, queue, "refused", bad, status=400)
    _signs(talk, queue, "refused-new", {"signatures": [{"preset": "standard-webhooks"}]}, status=400)
    # A header that is its subscriber's
    _signs(talk, queue, "refused", {"signatures": [stripe]}, status=400, headers={"Stripe-Signature": "own"})
    for url in ("ironmq:///refused-next", "notification2://topic"):
        _signs(talk, queue, "refused-other", {"signatures": [stripe]}, status=400, url=url)
    talk.came("as before", [True, False, False], _by(_sent(talk, queue, came)))
    talk.ask("DELETE", queue)


def _inherited(talk: Talk) -> None:
    """The project's schemes sign who has nothing but a secret, with that; who has none is not signed, and who has
    schemes of its own is signed by these.
    """
    names = ("inherits", "inherits-not", "inherits-own")
    came = {name: talk.listen(f"{name}.example", lambda _: OK) for name in names}
    project = talk.at("/api/v1").with_headers(authorization=f"Bearer {talk.token}")
    signing: Sequence[dict[str, Any]] = (
        {"signing": {"secret": SECRETS[0]}},
        {},
        {"signing": {"signatures": [{"preset": "github", "secret": KEY}]}},
    )
    several = [subscriber(name, **each) for name, each in zip(names, signing, strict=True)]
    queue = created(talk, "inherits", *several, retries=0)

    def signed() -> dict[str, tuple[bool, bool, bool]]:
        talk.sleep(2)
        posted(talk, queue, "{}")
        talk.sleep(8 + talk.put_off_s)
        last = {name: heard[-1] for name, heard in came.items()}
        return {name: (_by(each)[0], _stripe(each, SECRETS[0]), _github(each, KEY)) for name, each in last.items()}

    base = {
        "inherits": (True, False, False),
        "inherits-not": (False, False, False),
        "inherits-own": (False, False, True),
    }
    talk.came("without any", base, signed())
    project.ask("PUT", "/signatures", {"signatures": [{"preset": "stripe"}]})
    talk.came("the project's", {**base, "inherits": (False, True, False)}, signed())
    both = {"signatures": [{"preset": "stripe"}, {"preset": "standard-webhooks"}]}
    project.ask("PUT", "/signatures", both)
    talk.came("both of the project's", {**base, "inherits": (True, True, False)}, signed())
    project.ask("PUT", "/signatures", {"signatures": []})
    talk.came("none any more", base, signed())
    talk.ask("DELETE", queue)


def _ends(talk: Talk) -> None:
    """A scheme signs until its end, and is then not there; a week and a day before, who watches is told, once."""
    came = talk.listen("ends.example", lambda _: OK)
    notified = {name: talk.listen(f"ends-{name}.example", lambda _: OK) for name in ("all", "queue", "one", "other")}
    week = {"preset": "stripe", "secret": KEY, "endsAt": _iso(talk.epoch_s() + 7 * A_DAY_S + 4 * MINUTE)}
    standard = {"preset": "standard-webhooks"}
    # While anything is due later, each minute is looked at
    later = created(talk, "ends-later", subscriber("ends"))
    posted(talk, later, "0", delay=3_600)
    queue = created(talk, "ends", subscriber("ends"), subscriber("ends-two"), retries=0)
    talk.listen("ends-two.example", lambda _: OK)
    other = created(talk, "ends-not", subscriber("ends"), retries=0)
    watches: dict[str, dict[str, str]] = {
        "all": {},
        "queue": {"queue": "ends"},
        "one": {"queue": "ends", "subscriber": "ends"},
        "other": {"queue": "ends-not"},
    }
    alerts = []
    for name, of in watches.items():
        alert = {
            "name": name,
            "measure": "given_up",
            "threshold": 9,
            "minutes": 5,
            "url": f"https://ends-{name}.example/in",
        }
        made_alert = talk.ask("POST", "/alerts", {"alert": {**alert, **of}}, status=201)
        alerts.append(f"/alerts/{made_alert['alert']['id']}")
    for bad in (talk.epoch_s() - 60, talk.epoch_s() + 401 * A_DAY_S):
        ended = {"secret": SECRETS[0], "signatures": [{**week, "endsAt": _iso(bad)}, standard]}
        _signs(talk, queue, "ends", ended, status=400)
    _signs(talk, queue, "ends", {"signatures": [week]}, status=400)
    _signs(talk, queue, "ends", {"secret": SECRETS[0], "signatures": [week, standard]})
    day = {**week, "endsAt": _iso(talk.epoch_s() + A_DAY_S + 4 * MINUTE)}
    _signs(talk, queue, "ends-two", {"secret": SECRETS[1], "signatures": [day, standard]})
    shown = {each["name"]: each for each in talk.ask("GET", queue)["queue"]["push"]["subscribers"]}
    for name, scheme in (("ends", week), ("ends-two", day)):
        ends = {STRIPE: lambda each, scheme=scheme: each.startswith(scheme["endsAt"][:19])}
        found = {header.lower(): at for header, at in shown[name]["signing_ends"].items()}
        talk.is_so(f"when that of {name} ends", ends, found)
    talk.sleep(2 * MINUTE + 30, exactly=True)
    talk.came("not yet", {name: [] for name in notified}, {name: _ending(heard) for name, heard in notified.items()})
    talk.sleep(10 * MINUTE + talk.put_off_s)
    both = sorted([("ends", 7), ("ends-two", 1)])
    expected = {"all": both, "queue": both, "one": [("ends", 7)], "other": []}
    talk.came("who is told", expected, {name: _ending(heard) for name, heard in notified.items()})
    ends_at = {"header": lambda each: each.lower() == STRIPE, "ends_at": str}
    talk.came(
        "what is said",
        {"state": "signature_ending", "signature": ends_at, "text": str},
        json.loads(notified["one"][0].body),
    )
    soon = {**week, "endsAt": _iso(talk.epoch_s() + 3 * MINUTE)}
    _signs(talk, queue, "ends", {"secret": SECRETS[0], "signatures": [soon, standard]})
    one = _sent_to(talk, queue, came)
    talk.came("before its end", (True, True), (_stripe(one, KEY), _by(one)[0]))
    talk.sleep(3 * MINUTE, exactly=True)
    one = _sent_to(talk, queue, came)
    talk.came("after it", (False, True), (STRIPE in one.headers, _by(one)[0]))
    shown = {each["name"]: each for each in talk.ask("GET", queue)["queue"]["push"]["subscribers"]}
    talk.is_so(
        "not said again",
        {"all": both, "one": [("ends", 7)]},
        {name: _ending(notified[name]) for name in ("all", "one")},
    )
    for path in (*alerts, queue, other, later):
        talk.ask("DELETE", path)


def _sent_to(talk: Talk, queue: str, came: Sequence[Came]) -> Came:
    """Post a message for several, and wait for what comes to one of them."""
    talk.sleep(2)
    posted(talk, queue, "{}")
    talk.sleep(8 + talk.put_off_s)
    return came[-1]


def _ending(heard: Sequence[Came]) -> list[tuple[str, int]]:
    """Of whose schemes an alert has told the end, and how many days before."""
    said_of = [json.loads(each.body) for each in heard]
    return sorted((each["subscriber"], each["value"]) for each in said_of if each["state"] == "signature_ending")


def _iso(epoch_s: int) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _passed_on(talk: Talk) -> None:
    """A queue passes the signature of a push that it gets on to those of its subscribers that have none of their own;
    what comes to it otherwise is not signed for them.
    """
    came = {name: talk.listen(f"passed-{name}.example", lambda _: OK) for name in ("plain", "own")}
    second = created(
        talk,
        "passed-second",
        subscriber("passed-plain"),
        subscriber("passed-own", signing={"secret": SECRETS[1]}),
        retries=0,
    )
    one = {"name": "on", "url": "ironmq:///passed-second", "signing": {"secret": SECRETS[0]}}
    first = created(talk, "passed-first", one, retries=0)
    unsigned = created(talk, "passed-unsigned", {**one, "signing": None}, retries=0)
    for path, signed in ((first, True), (unsigned, False), (second, False)):
        posted(talk, path, '{"of": "é"}')
        talk.sleep(25 + 2 * talk.put_off_s)
        talk.came(f"who has none, from {path}", [signed, False, False], _by(came["plain"][-1]))
        talk.came(f"who has its own, from {path}", [False, True, False], _by(came["own"][-1]))
    talk.came("once each", [3, 3], [len(each) for each in came.values()])
    for path in (first, unsigned, second):
        talk.ask("DELETE", path)


__all__ = ["through"]
