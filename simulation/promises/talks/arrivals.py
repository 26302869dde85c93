"""What comes to sources: each sender of Standard Webhooks, Amazon SNS, headers as far as they are passed on, ids that
are remembered, and what becomes of it beside other sources, and when an endpoint is off.

Sources: docs/sources.md; Standard Webhooks; Amazon SNS's HTTP notifications.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any

from simulation.promises.talks.senders import (
    KEY,
    SECRET,
    Event,
    aligned,
    comes,
    new_source,
    path_of,
    removed,
    standard_webhooks,
)
from simulation.promises.talks.talk import Came, Talk
from simulation.promises.talks.webhooks import is_signed

STANDARD = (
    *("beehiiv", "brex", "clerk", "guesty", "incident-io", "lithic", "nash", "open-ai", "pleo", "psi-fi", "render"),
    *("replicate", "resend", "safebase", "sardine", "stych", "svix"),
)
"""Kinds whose webhooks are signed as Standard Webhooks has it."""

MOST_HEADERS, MOST_BYTES = 20, 4_096
INGEST = "/ingest/api/v1"


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_each_standard, _notified, _headers, _beside, _later, _of_queues)


def _each_standard(talk: Talk) -> None:
    """Each sender's headers may have either prefix; its id is known under both; another's key is none."""
    body = b'{"type": "made", "n": 1}'
    for number, kind in enumerate(STANDARD):
        source = new_source(talk, f"of-{kind}", kind, {"secret": KEY})
        url, now = source["ingestUrl"], aligned(talk)
        first, second = ("svix", "webhook") if number % 2 else ("webhook", "svix")
        event = Event(body, 1, now, url, KEY)
        answer = comes(talk, url, body, standard_webhooks(first)(event))
        talk.is_so(f"{kind} is taken", True, "pushhub-message-id" in answer)
        again = comes(talk, url, body, standard_webhooks(second)(event))
        talk.is_so(f"{kind}: the same id", False, "pushhub-message-id" in again)
        forged = {**standard_webhooks(first)(Event(body, 2, now, url, KEY)), f"{first}-id": "msg_else"}
        comes(talk, url, body, forged, status=400, code="forged")
        talk.ask("GET", f"/app/{source['id']}/msg", shows={"data": [{"eventType": "made", "payload": {"n": 1}}]})
        stats = talk.at(INGEST).ask("GET", f"/source/of-{kind}/stats")
        talk.is_so(f"{kind}, counted", {"forged": 1, "duplicate": 1, "unsigned": 0, "old": 0}, stats["days"][0])
        removed(talk, f"of-{kind}")


def _notified(talk: Talk) -> None:
    """Amazon SNS's question is answered by calling its URL, if that is SNS's own; nothing of it is stored; what it
    notifies of is taken once.
    """
    came = talk.listen("arrivals-sns.example", lambda _: (200, b""))
    asked = {
        host: talk.listen(host, lambda _: (200, b"<ConfirmSubscriptionResponse/>"))
        for host in ("sns.eu-west-1.amazonaws.com", "sns.eu-west-1.amazonaws.com.example", "elsewhere.example")
    }
    source = new_source(talk, "sns", "generic-webhook", {}, hears="arrivals-sns.example")
    url = source["ingestUrl"]
    for number, place in enumerate(
        (
            "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=t",
            "https://sns.eu-west-1.amazonaws.com.example/?Action=ConfirmSubscription",
            "https://elsewhere.example/?Action=ConfirmSubscription",
            "http://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription",
        )
    ):
        said = {"Type": "SubscriptionConfirmation", "MessageId": f"c{number}", "SubscribeURL": place, "Token": "t"}
        sent = {"x-amz-sns-message-type": "SubscriptionConfirmation", "x-amz-sns-message-id": f"c{number}"}
        talk.at("").with_headers(authorization="", **sent).status("POST", path_of(url), json.dumps(said).encode())
    talk.sleep(5)
    talk.came("its own alone is called", [1, 0, 0], [len(each) for each in asked.values()])
    talk.came(
        "as it says",
        ["Action=ConfirmSubscription&Token=t"],
        [each.query for each in asked["sns.eu-west-1.amazonaws.com"]],
    )
    talk.ask("GET", f"/app/{source['id']}/msg", shows={"data": []})
    for number, new in ((1, True), (1, False), (2, True)):
        said = {"Type": "Notification", "MessageId": f"m{number}", "Message": "hello"}
        sent = {
            "x-amz-sns-message-type": "Notification",
            "x-amz-sns-message-id": f"m{number}",
            "content-type": "text/plain",
        }
        answer = comes(talk, url, json.dumps(said).encode(), sent)
        talk.is_so(f"number {number}", new, "pushhub-message-id" in answer)
    talk.sleep(10 + talk.put_off_s)
    talk.came("each once", ["m1", "m2"], sorted(json.loads(each.body)["MessageId"] for each in came))
    counted = {"duplicate": 1, "forged": 3, "unsigned": 0}
    talk.at(INGEST).ask("GET", "/source/sns/stats", shows={"days": [counted]})
    removed(talk, "sns")


def _headers(talk: Talk) -> None:
    """A generic sender's headers that begin with ``x-`` or ``ce-`` are passed on, twenty of them and so many bytes; the
    hub's own signature replaces only those of Svix and Standard Webhooks.
    """
    came = talk.listen("arrivals-headers.example", lambda _: (200, b""))
    source = new_source(talk, "headers", "generic-webhook", {}, hears="arrivals-headers.example")
    key = talk.at(INGEST).ask("GET", "/source/headers/endpoint/all/secret")["key"]
    url = source["ingestUrl"]
    theirs = {"svix-id": "theirs", "svix-signature": "v1,theirs", "webhook-signature": "v1,theirs"}
    cases: tuple[tuple[Mapping[str, str], int], ...] = (
        ({"x-one": "1", "x-acme-signature": "own", "ce-more": "2", "accept-language": "de", **theirs}, 2),
        ({f"x-h{number:02}": "v" for number in range(MOST_HEADERS)}, MOST_HEADERS),
        ({f"x-h{number:02}": "v" for number in range(MOST_HEADERS + 5)}, MOST_HEADERS),
        ({f"x-h{number}": 1_500 * "v" for number in range(4)}, 2),
    )
    for number, (headers, count) in enumerate(cases):
        body = f"body {number} \u00e9".encode()
        comes(talk, url, body, {**headers, "content-type": "text/csv"})
        talk.sleep(8 + talk.put_off_s)
        one = came[-1]
        passed = {
            name: value for name, value in one.headers.items() if headers.get(name) == value and name.startswith("x-")
        }
        talk.came(f"so many headers, {number}", count, len(passed))
        talk.came(
            f"so many bytes, {number}",
            True,
            sum(len(name) + len(value) for name, value in passed.items()) <= MOST_BYTES,
        )
        talk.came(f"byte for byte, {number}", (body, "text/csv"), (one.body, one.headers["content-type"]))
        talk.came(f"the hub's own signature, {number}", True, is_signed(one, key))
        talk.came(f"none of theirs, {number}", False, "theirs" in json.dumps(dict(one.headers)))
        talk.came(
            f"no others, {number}", False, "accept-language" in one.headers and one.headers["accept-language"] == "de"
        )
    talk.came("each once", len(cases), len(came))
    removed(talk, "headers")


def _beside(talk: Talk) -> None:
    """An id is known in its own source alone, and only once it was taken; a source of the same uid that is made after
    another has been deleted knows none of it, and the former URL is none.
    """
    came = {uid: talk.listen(f"arrivals-{uid}.example", lambda _: (200, b"")) for uid in ("left", "right")}
    urls = {
        uid: new_source(talk, uid, "github", {"secret": SECRET}, hears=f"arrivals-{uid}.example")["ingestUrl"]
        for uid in came
    }
    body = b'{"ref": "main"}'

    def signed(number: int, secret: str = SECRET) -> dict[str, str]:
        mac = hmac.digest(secret.encode(), body, hashlib.sha256).hex()
        return {"x-hub-signature-256": f"sha256={mac}", "x-github-event": "push", "x-github-delivery": f"d{number}"}

    # A forged request takes no id from the one that is not
    comes(talk, urls["left"], body, signed(1, "no"), status=400, code="forged")
    for uid, new in (("left", True), ("right", True), ("left", False), ("right", False)):
        answer = comes(talk, urls[uid], body, signed(1))
        talk.is_so(f"new to {uid}", new, "pushhub-message-id" in answer)
    talk.is_so("another URL", True, urls["left"] != urls["right"])
    talk.sleep(10 + talk.put_off_s)
    talk.came("each once", [1, 1], [len(each) for each in came.values()])
    for uid, forged in (("left", 1), ("right", 0)):
        counted = {"forged": forged, "duplicate": 1, "unsigned": 0}
        talk.at(INGEST).ask("GET", f"/source/{uid}/stats", shows={"days": [counted]})
    removed(talk, "left")
    comes(talk, urls["left"], body, signed(2), status=404)
    again = new_source(talk, "left", "github", {"secret": SECRET}, hears="arrivals-left.example")["ingestUrl"]
    for url, status in ((urls["left"], 404), (again, 200)):
        comes(talk, url, body, signed(1), status=status)
    talk.sleep(10 + talk.put_off_s)
    talk.came("the other had nothing of it", 1, len(came["right"]))
    # Uids of sources and applications are apart
    talk.ask("GET", "/app/left", status=404)
    talk.ask("POST", "/app", {"name": "Left", "uid": "left"}, status=201)
    talk.at(INGEST).ask("GET", "/source/left", shows={"type": "github"})
    talk.ask("DELETE", "/app/left", status=204)
    talk.at(INGEST).ask("GET", "/source/left", shows={"type": "github"})
    removed(talk, "left", "right")


def _later(talk: Talk) -> None:
    """What a source has taken is owed to its endpoints as any message: tried again with the same bytes, chosen by type,
    not sent where an endpoint is off, sent there by a replay, and by hand.
    """
    says = {"status": 500}
    came: dict[str, Sequence[Came]] = {
        "fails": talk.listen("arrivals-fails.example", lambda _: (says["status"], b"")),
        "push": talk.listen("arrivals-push.example", lambda _: (200, b"")),
        "off": talk.listen("arrivals-off.example", lambda _: (200, b"")),
    }
    source = new_source(talk, "later", "generic-webhook", {})
    ingest = talk.at(INGEST)
    more: Mapping[str, Any] = {"push": {"eventTypes": ["push.made"]}, "off": {"disabled": True}}
    talk.ask("POST", "/event-type", {"name": "push.made", "description": "d"}, status=201)
    for uid in came:
        fields = {"url": f"https://arrivals-{uid}.example/in", "uid": uid, **more.get(uid, {})}
        ingest.ask("POST", "/source/later/endpoint", fields, status=201)
    url, exact = source["ingestUrl"], b'{ "n" : 1.10 }'
    for number, kind in enumerate(("push.made", "else.made")):
        event = {"ce-specversion": "1.0", "ce-id": f"{number}", "ce-source": "/s", "ce-type": kind}
        comes(talk, url, exact, {**event, "content-type": "application/json"})
    talk.sleep(15 + talk.put_off_s)
    talk.came("twice each", 4, len(came["fails"]))
    talk.came("the same bytes", {exact}, {each.body for each in came["fails"]})
    talk.came("by its type", ["push.made"], [each.headers["ce-type"] for each in came["push"]])
    talk.came("none where it is off", [], came["off"])
    says["status"] = 200
    talk.sleep(300 * 1.2 + 75 + talk.gathered_s)
    talk.came("then they arrive", 6, len(came["fails"]))
    path = f"/app/{source['id']}/endpoint"
    enabled = {"url": "https://arrivals-off.example/in", "uid": "off", "disabled": False}
    ingest.ask("PUT", "/source/later/endpoint/off", enabled, shows={"disabled": False})
    talk.sleep(2)
    since = {"since": "2026-11-10T00:00:00Z", "unlimited": True}
    talk.ask("POST", f"{path}/off/replay-missing", since, status=202)
    talk.sleep(120 + talk.put_off_s)
    talk.came("a replay", [exact] * 2, [each.body for each in came["off"]])
    [first, *_] = talk.ask("GET", f"/app/{source['id']}/msg", shows={"data": [..., ...]})["data"]
    talk.ask("POST", f"/app/{source['id']}/msg/{first['id']}/endpoint/push/resend", status=202)
    talk.sleep(10 + talk.put_off_s)
    talk.came("by hand", [exact] * 2, [each.body for each in came["push"]])
    talk.ask("GET", "/app", shows={"data": lambda each: source["id"] not in json.dumps(each)})
    removed(talk, "later")
    talk.ask("DELETE", "/event-type/push.made?expunge=true", status=204)


def _of_queues(talk: Talk) -> None:
    """A queue that names a sender takes what that one has signed; it drops no duplicates and answers no questions."""
    queue = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    path = f"/3/projects/{talk.project}/queues/arrivals/webhook?oauth={talk.token}"
    sender = talk.at("").with_headers(authorization="")
    body, asked = b'{"event_id": "E1"}', b'{"type": "url_verification", "challenge": "4711"}'
    webhook = {"type": "slack", "secret": SECRET}
    queue.ask("PUT", "/queues/arrivals", {"queue": {"type": "pull", "webhook": webhook}})

    def signed(text: bytes, at_s: int) -> dict[str, str]:
        mac = hmac.digest(SECRET.encode(), f"v0:{at_s}:".encode() + text, hashlib.sha256).hex()
        return {"x-slack-signature": f"v0={mac}", "x-slack-request-timestamp": f"{at_s}"}

    now = aligned(talk)
    for text, at_s, status in (
        (body, now, 201),
        (body, now, 201),
        (asked, now, 201),
        (body, now - 290, 201),
        (body, now - 302, 400),
    ):
        talk.is_so(f"at {at_s - now}", status, sender.with_headers(**signed(text, at_s)).status("POST", path, text))
    talk.is_so("another's", 400, sender.with_headers(**signed(body, now)).status("POST", path, body + b" "))
    held = queue.ask("POST", "/queues/arrivals/reservations", {"n": 9})["messages"]
    talk.is_so(
        "each of them", sorted(map(bytes.decode, (asked, body, body, body))), sorted(each["body"] for each in held)
    )
    # Other posts need no signature
    queue.ask("POST", "/queues/arrivals/messages", {"messages": [{"body": "x"}]}, status=201)
    queue.ask("DELETE", "/queues/arrivals")


__all__ = ["webhooks"]
