"""What an endpoint gets because of something else than its own settings: schemes of its project, consent, redaction of
its application; and endpoints that lead into the hub itself.

Sources: docs/signatures.md ("For all at once", "Two at a time"), docs/webhooks.md ("CloudEvents", "Redaction",
"Endpoints that are not webhooks", "Portal").
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from simulation.promises.talks.customers import Customer, gaps
from simulation.promises.talks.services import done, mapped, pushed
from simulation.promises.talks.signing import ENDPOINT_KEY, KEY, NEXT_KEY, SEED, stripe
from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.webhooks import OTHER_SECRET, is_signed

MINUTE, HOUR, DAY = 60, 3_600, 86_400
MOST_KEPT = 20_000


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_schemes, _ended, _graceful, _inside, _not_inside, _withheld, _paced, _asked_again, _voided)


def _queues(talk: Talk) -> Talk:
    return talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")


def _schemes(talk: Talk) -> None:
    """The project's schemes sign for endpoints, queues' subscribers and services that have nothing but a secret, each
    with its own; not for those without, with an Ed25519 key, inside the hub, or that are told of operations.
    """
    queues = _queues(talk)
    store = talk.at(f"/api/stores/{talk.project}").with_headers(authorization="", x_augury_token=talk.token)
    own = {"content": "{ts}.{body}", "header": {"name": "X-Mine", "value": "t={ts},v1={signatures}"}}
    one = Customer(talk, "schemes")
    one.endpoint("heir", secret=ENDPOINT_KEY, headers={"Stripe-Signature": "own", "X-Own": "1"})
    one.endpoint("standard", secret=ENDPOINT_KEY)
    talk.ask("PUT", f"{one.path}/endpoint/standard/signatures", {"signatures": [{"preset": "standard-webhooks"}]})
    one.endpoint("keyed", secret=SEED)
    hook = {
        "url": "https://schemes-hook.example/",
        "uid": "hook",
        "secret": ENDPOINT_KEY,
        "eventTypes": ["endpoint.created"],
    }
    heard = talk.listen("schemes-hook.example", lambda _: (200, b""))
    talk.ask("POST", "/operational-webhook/endpoint", hook, status=201)
    came = {name: talk.listen(f"schemes-{name}.example", lambda _: (200, b"")) for name in ("signed", "plain")}
    signing: dict[str, dict[str, Any]] = {"signed": {"signing": {"secret": OTHER_SECRET}}, "plain": {}}
    subscribers = [{"name": name, "url": f"https://schemes-{name}.example/", **signing[name]} for name in came]
    queues.ask("PUT", "/queues/schemes", {"queue": {"type": "multicast", "push": {"subscribers": subscribers}}})
    served = {name: talk.listen(f"schemes-of-{name}.example", done) for name in came}
    mappings = [mapped(store, f"schemes-of-{name}", ["schemes:made"], **signing[name]) for name in served]
    talk.ask("PUT", "/signatures", {"signatures": [{"preset": "stripe"}]})
    talk.sleep(MINUTE + 1)

    def all_of_it() -> dict[str, list[Came]]:
        before = {name: len(heard) for name, heard in {**one.came, **came}.items()}
        counts = {f"of-{name}": len(heard) for name, heard in served.items()}
        one.post(1)
        queues.ask("POST", "/queues/schemes/messages", {"messages": [{"body": "{}"}]}, status=201)
        pushed(store, "schemes:made", {})
        talk.sleep(20 + talk.put_off_s + talk.gathered_s)
        new = {name: [*heard[before[name] :]] for name, heard in {**one.came, **came}.items()}
        return new | {f"of-{name}": [*heard[counts[f"of-{name}"] :]] for name, heard in served.items()}

    def signed(each: Came, key: str) -> tuple[bool, bool]:
        # Queues' subscribers and services get no time but in the signature
        stated = dict(part.partition("=")[::2] for part in each.headers.get("stripe-signature", "").split(","))
        own = hmac.digest(key.encode(), f"{stated.get('t')}.".encode() + each.body, hashlib.sha256).hex()
        return stated.get("v1") == own, "webhook-signature" in each.headers

    found = all_of_it()
    talk.came("one each", {1}, {len(each) for each in found.values()})
    keys = {"heir": ENDPOINT_KEY, "signed": OTHER_SECRET, "of-signed": OTHER_SECRET}
    expected = {**dict.fromkeys(keys, (True, False)), "plain": (False, False), "of-plain": (False, False)}
    expected |= {"standard": (False, True), "keyed": (False, True)}
    talk.came("by which", expected, {name: signed(each[0], keys.get(name, "")) for name, each in found.items()})
    talk.came("its own other header", "1", found["heir"][0].headers.get("x-own"))
    talk.came("the standard's", True, is_signed(found["standard"][0], ENDPOINT_KEY))
    talk.came("a key's", True, found["keyed"][0].headers["webhook-signature"].startswith("v1a,"))
    fields = {"url": "https://schemes-new.example/", "uid": "new", "disabled": True}
    talk.ask("POST", f"{one.path}/endpoint", fields, status=201)
    talk.sleep(10 + talk.put_off_s)
    about = [each for each in heard if b'"new"' in each.body]
    talk.came("what is told", [(False, True)], [signed(each, ENDPOINT_KEY) for each in about])
    # Of an application instead
    talk.ask("PUT", f"{one.path}/signatures", {"signatures": [own]})
    talk.sleep(2)
    found = all_of_it()
    names = {
        name: (
            "x-mine" in each[0].headers,
            "stripe-signature" in each[0].headers and each[0].headers["stripe-signature"] != "own",
        )
        for name, each in found.items()
    }
    others = dict.fromkeys(("signed", "of-signed"), (False, True))
    rest = dict.fromkeys(("plain", "of-plain", "standard", "keyed"), (False, False))
    talk.came("the application's alone", {"heir": (True, False), **others, **rest}, names)
    talk.came("then its own header is sent", "own", found["heir"][0].headers.get("stripe-signature"))
    for path in (f"{one.path}/signatures", "/signatures"):
        talk.ask("PUT", path, {"signatures": []})
    talk.sleep(2)
    found = all_of_it()
    standard = {
        name: ("webhook-signature" in each[0].headers, "x-mine" in each[0].headers) for name, each in found.items()
    }
    signs = ("heir", "standard", "keyed", "signed", "of-signed")
    talk.came(
        "the standard again",
        {**dict.fromkeys(signs, (True, False)), "plain": (False, False), "of-plain": (False, False)},
        standard,
    )
    talk.came("with its secret", True, is_signed(found["signed"][0], OTHER_SECRET))
    talk.ask("DELETE", "/operational-webhook/endpoint/hook", status=204)
    queues.ask("DELETE", "/queues/schemes")
    for each in mappings:
        store.ask("DELETE", each)
    one.over()


def _ended(talk: Talk) -> None:
    """A scheme of the project that has an end signs until then; from then on the other alone."""
    one = Customer(talk, "ended")
    one.endpoint("heir", secret=ENDPOINT_KEY)
    ends = talk.epoch_s() + 10 * MINUTE
    at = datetime.fromtimestamp(ends, UTC).isoformat()
    talk.ask(
        "PUT", "/signatures", {"signatures": [{"preset": "stripe", "endsAt": at}, {"preset": "standard-webhooks"}]}
    )
    talk.sleep(MINUTE, exactly=True)
    for until, both in ((ends - 60, True), (ends + 2, False), (ends + HOUR, False)):
        talk.sleep(until - talk.epoch_s(), exactly=True)
        one.post(1)
        talk.sleep(8 + talk.put_off_s)
        last = one.came["heir"][-1]
        seen = "stripe-signature" in last.headers, is_signed(last, ENDPOINT_KEY)
        talk.came(f"{until - ends} s after its end", (both, True), seen)
    talk.ask("PUT", "/signatures", {"signatures": []})
    talk.sleep(2)
    one.over()


def _graceful(talk: Talk) -> None:
    """The previous secret of a scheme signs for a day unless something else is said; a scheme that is changed but for
    its header keeps its secret.
    """
    one = Customer(talk, "graceful")
    one.endpoint("one", secret=ENDPOINT_KEY)
    path = f"{one.path}/endpoint/one/signatures"
    for secret in (KEY, NEXT_KEY):
        talk.ask("PUT", path, {"signatures": [{"preset": "stripe", "secret": secret}]})
    talk.sleep(2)
    for wait, both in ((0, True), (DAY - 120, True), (240, False)):
        talk.sleep(wait, exactly=True)
        one.post(1)
        talk.sleep(8 + talk.put_off_s)
        last = one.came["one"][-1]
        talk.came(f"after {wait} s", (both, True), (stripe(last, KEY), stripe(last, NEXT_KEY)))
    shown = talk.ask("GET", path, shows={"signatures": [{"preset": "stripe"}]})
    talk.ask("PUT", path, {"signatures": [*shown["signatures"], {"preset": "standard-webhooks"}]})
    talk.ask("PUT", path, {"signatures": [{"preset": "standard-webhooks"}]})
    # It was removed with its secret, and comes back only with one
    talk.ask("PUT", path, {"signatures": [{"preset": "stripe"}]}, status=422)
    one.post(2)
    talk.sleep(8 + talk.put_off_s)
    last = one.came["one"][-1]
    talk.came(
        "the standard's alone", (False, True), ("stripe-signature" in last.headers, is_signed(last, ENDPOINT_KEY))
    )
    one.over()


def _inside(talk: Talk) -> None:
    """A queue gets what an endpoint does, signed, and pushes it on; with a token that opens nothing, nothing comes."""
    queues = _queues(talk)
    one = Customer(talk, "inside")
    came = {name: talk.listen(f"inside-{name}.example", lambda _: (200, b"")) for name in ("open", "named")}
    urls = {"open": "ironmq:///inside-open", "named": f"ironmq://{talk.project}:{talk.token}@/inside-named"}
    for name in came:
        to = [{"name": "to", "url": f"https://inside-{name}.example/"}]
        queues.ask("PUT", f"/queues/inside-{name}", {"queue": {"type": "multicast", "push": {"subscribers": to}}})
        talk.ask("POST", f"{one.path}/endpoint", {"url": urls[name], "uid": name, "eventTypes": None}, status=201)
    queues.ask("PUT", "/queues/inside-closed", {"queue": {"type": "pull"}})
    closed = {"url": f"ironmq://{talk.project}:none@/inside-closed", "uid": "closed"}
    talk.ask("POST", f"{one.path}/endpoint", closed, status=201)
    shown = talk.ask("GET", f"{one.path}/endpoint/named")["url"]
    talk.is_so("no token is shown", (False, True), (talk.token in shown, "********" in shown))
    ids = []
    for number in range(3):
        ids.append(one.post(number, orderingKey="k"))
    talk.sleep(30 + talk.put_off_s + 3 * talk.gathered_s)
    for name, heard in came.items():
        key = talk.ask("GET", f"{one.path}/endpoint/{name}/secret")["key"]
        talk.came(f"each once, {name}", sorted(ids), sorted(each.headers["webhook-id"] for each in heard))
        talk.came(f"signed, {name}", [True] * 3, [is_signed(each, key) for each in heard])
        talk.came(f"its place, {name}", {"1", "2", "3"}, {each.headers.get("webhook-sequence") for each in heard})
        talk.came(f"its bytes, {name}", [0, 1, 2], sorted(json.loads(each.body)["n"] for each in heard))
    queues.ask("GET", "/queues/inside-closed", shows={"queue": {"size": 0}})
    states = {uid: state for uid, (state, _) in one.state(ids[0]).items()}
    talk.is_so("what became of it", {"open": 0, "named": 0}, states)
    talk.is_so("not there", True, states["closed"] != 0)
    talk.ask("POST", f"{one.path}/msg/{ids[0]}/endpoint/open/resend", status=202)
    talk.sleep(10 + talk.put_off_s)
    talk.came("sent again, it comes again", ids[0], came["open"][-1].headers["webhook-id"])
    talk.came("so often", (4, 3), (len(came["open"]), len(came["named"])))
    for name in (*came, "closed"):
        queues.ask("DELETE", f"/queues/inside-{name}")
    one.over()


def _not_inside(talk: Talk) -> None:
    """A topic carries neither headers nor a signature, so that they are refused."""
    one = Customer(talk, "topics")
    topic = {"url": "notification2://inside?api=events&source=111"}
    for bad in ({"headers": {"X-A": "1"}}, {"secret": ENDPOINT_KEY}):
        talk.ask("POST", f"{one.path}/endpoint", {**topic, **bad}, status=422)
    talk.ask("POST", f"{one.path}/endpoint", {**topic, "uid": "topic"}, status=201)
    talk.ask("PUT", f"{one.path}/endpoint/topic/headers", {"headers": {"X-A": "1"}}, status=422)
    message_id = one.post(1)
    talk.sleep(10 + talk.put_off_s)
    talk.is_so("it went there", (0, None), one.state(message_id)["topic"])
    one.over()


def _withheld(talk: Talk) -> None:
    """What paths cannot be applied to is withheld as a whole: texts, and answers that were cut; readers and receivers
    get everything; what was answered before there were rules stays as it was stored.
    """
    one = Customer(talk, "withheld")
    long = json.dumps({"token": "s3cret", "more": MOST_KEPT * "x"}).encode()
    answers = {
        0: b'{"token": "s3cret"}',
        1: b"token=s3cret",
        2: long,
        3: b'{"token": "s3cret", "n": 1}',
        4: b"token=s3cret",
    }
    one.says["one"] = lambda came: (200, answers[json.loads(came.body)["n"]] if came.body.startswith(b"{") else b"ok")
    one.endpoint("one")

    def stored(message_id: str) -> str:
        return str(talk.ask("GET", f"{one.path}/attempt/msg/{message_id}")["data"][-1]["response"])

    before = one.post(0)
    talk.sleep(8 + talk.put_off_s)
    rules = {"payload": ["user.email"], "answers": ["token"]}
    talk.ask("PATCH", one.path, {"redaction": rules}, shows={"redaction": rules})
    talk.sleep(2)
    ids = [one.post(number) for number in (1, 2, 3)]
    text = {"rawPayload": "the e-mail is a@b.example", "headers": {"content-type": "text/plain"}}
    raw = one.post(9, transformationsParams=text)
    talk.sleep(10 + talk.put_off_s)
    talk.is_so("of before", True, "s3cret" in stored(before))
    for message_id in ids:
        talk.is_so("withheld", False, "s3cret" in stored(message_id))
    talk.is_so("the rest of JSON", lambda each: each == {"token": "[redacted]", "n": 1}, json.loads(stored(ids[2])))
    for path in (f"{one.path}/msg/{raw}", f"{one.path}/msg?limit=1", f"{one.path}/endpoint/one/msg?limit=1"):
        talk.is_so("a text is not shown", False, "a@b.example" in json.dumps(talk.ask("GET", path)))
    talk.came("but sent", True, b"the e-mail is a@b.example" in [each.body for each in one.came["one"]])
    talk.sleep(3)
    page = talk.ask("GET", f"{one.path}/poller/any")["data"]
    talk.is_so("and read", True, "a@b.example" in json.dumps(page))
    talk.ask("PATCH", one.path, {"redaction": None})
    talk.sleep(2)
    talk.is_so("what is stored stays", False, "s3cret" in stored(ids[2]))
    talk.is_so("a text is shown again", True, "a@b.example" in json.dumps(talk.ask("GET", f"{one.path}/msg/{raw}")))
    later = one.post(4)
    talk.sleep(8 + talk.put_off_s)
    talk.is_so("and later answers", True, "s3cret" in stored(later))
    one.over()


def _consents(came: Came, headers: Mapping[str, str]) -> tuple[int, bytes, Mapping[str, str]]:
    return (200, b"", {}) if "webhook-id" in came.headers else (200, b"", headers)


def _messages(came: Sequence[Came]) -> list[Came]:
    return [each for each in came if "webhook-id" in each.headers]


def _paced(talk: Talk) -> None:
    """The rate that an endpoint allowed is obeyed, until it is asked again and allows more."""
    one = Customer(talk, "allowed")
    says = {"webhook-allowed-origin": "*", "webhook-allowed-rate": "12"}
    one.says["one"] = lambda came: _consents(came, says)
    one.endpoint("one", cloudEvents={"mode": "binary", "consent": True})
    talk.sleep(10)
    talk.ask("GET", f"{one.path}/endpoint/one", shows={"cloudEvents": {"consented": True, "allowedRate": 12}})
    for number in range(5):
        one.post(number)
    talk.sleep(MINUTE + talk.put_off_s)
    came = _messages(one.came["one"])
    # Each environment may have one more
    talk.came("one in five seconds", (5, True), (len(came), sum(gaps(came)) >= 14))
    says["webhook-allowed-rate"] = "*"
    talk.ask("PATCH", f"{one.path}/endpoint/one", {"url": "https://allowed-one.example/again"})
    talk.sleep(10)
    talk.ask("GET", f"{one.path}/endpoint/one", shows={"cloudEvents": {"consented": True, "allowedRate": None}})
    for number in range(5):
        one.post(number)
    talk.sleep(10 + talk.put_off_s)
    talk.came("as fast as they come", 10, len(_messages(one.came["one"])))
    one.over()


def _asked_again(talk: Talk) -> None:
    """Without an answer an endpoint is asked again for a day, and then consents; a refusal is one, and is not asked
    again.
    """
    one = Customer(talk, "again")
    says: dict[str, Any] = {
        "silent": (0, b"connect"),
        "mute": (0, b"connect"),
        "refuses": (200, b"", {"webhook-allowed-origin": "else.example"}),
    }
    yes = (200, b"", {"webhook-allowed-origin": "*"})
    for uid in [*says]:
        one.says[uid] = lambda came, uid=uid: (200, b"") if "webhook-id" in came.headers else says[uid]
        one.endpoint(uid, cloudEvents={"mode": "structured", "consent": True})
    talk.sleep(10)
    for uid in says:
        talk.ask(
            "GET", f"{one.path}/endpoint/{uid}", shows={"cloudEvents": {"consented": False, "consentProblem": str}}
        )
    first = one.post(1)
    talk.sleep(2 * HOUR)
    asked = {uid: len(heard) for uid, heard in one.came.items()}
    talk.came("again and again", True, asked["silent"] >= 3)
    talk.came("once", 1, asked["refuses"])
    says |= dict.fromkeys(("silent", "refuses"), yes)
    talk.sleep(12 * HOUR)
    talk.ask("GET", f"{one.path}/endpoint/silent", shows={"cloudEvents": {"consented": True}})
    talk.ask("GET", f"{one.path}/endpoint/refuses", shows={"cloudEvents": {"consented": False}})
    second = one.post(2)
    talk.sleep(10 + talk.put_off_s)
    came = {uid: [each.headers["webhook-id"] for each in _messages(heard)] for uid, heard in one.came.items()}
    expected = {"silent": [second], "mute": [], "refuses": []}
    talk.came("what is posted afterwards", lambda each: each == expected, came)
    talk.is_so("to whom", [set(), {"silent"}], [{*one.state(each)} for each in (first, second)])
    # For a day, and not after it
    talk.sleep(DAY - 13 * HOUR)
    asked_so_often, says["mute"] = len(one.came["mute"]), yes
    talk.came("and again", True, asked_so_often > asked["mute"])
    talk.sleep(DAY)
    talk.came("no more", asked_so_often, len(one.came["mute"]))
    talk.ask("GET", f"{one.path}/endpoint/mute", shows={"cloudEvents": {"consented": False, "consentProblem": str}})
    one.over()


def _voided(talk: Talk) -> None:
    """A new question voids the URL of the one before it; consent that is switched off and on is asked for again."""
    one = Customer(talk, "voided")
    asked: list[Came] = []

    def answers(came: Came) -> tuple[int, bytes]:
        if "webhook-id" not in came.headers:
            asked.append(came)
        return 200, b""

    one.says["one"] = answers
    events = {"mode": "binary", "consent": True, "callback": True}
    one.endpoint("one", cloudEvents=events)
    talk.sleep(10)
    path, nobody = f"{one.path}/endpoint/one", talk.at("").with_headers(authorization="")

    def url(number: int) -> str:
        return "/" + asked[number].headers["webhook-request-callback"].split("/", 3)[3]

    talk.ask("PATCH", path, {"url": "https://voided-one.example/other"})
    talk.sleep(10)
    talk.is_so("two questions", 2, len(asked))
    talk.is_so("another URL", True, url(0) != url(1))
    talk.is_so("the first is void", 404, nobody.status("GET", url(0)))
    talk.ask("GET", path, shows={"cloudEvents": {"consented": False}})
    talk.is_so("the second is not", 200, nobody.status("GET", url(1)))
    talk.ask("GET", path, shows={"cloudEvents": {"consented": True}})
    talk.ask("PATCH", path, {"description": "another"}, shows={"cloudEvents": {"consented": True}})
    talk.ask("PATCH", path, {"cloudEvents": {"mode": "binary"}}, shows={"cloudEvents": {"consent": False}})
    talk.sleep(2)
    one.post(1)
    talk.sleep(8 + talk.put_off_s)
    talk.came("without consent it is sent to", [1], [json.loads(each.body)["n"] for each in _messages(one.came["one"])])
    talk.ask("PATCH", path, {"cloudEvents": events})
    talk.sleep(10)
    talk.ask("GET", path, shows={"cloudEvents": {"consented": False}})
    talk.is_so("asked again", 3, len(asked))
    one.post(2)
    talk.sleep(8 + talk.put_off_s)
    talk.came("and nothing is sent", 1, len(_messages(one.came["one"])))
    talk.sleep(DAY + HOUR)
    talk.is_so("after a day it is over", 404, nobody.status("GET", url(-1)))
    one.over()


__all__ = ["webhooks"]
