"""Sources: what other senders sign is verified as each of them signs, kept once, and passed on byte for byte.

Sources: docs/sources.md and docs/consuming.md; each sender's own documentation for how it signs (GitHub, Stripe,
Shopify, Slack, HubSpot, Zoom, Meta, Standard Webhooks, CloudEvents).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from simulation.promises.talks.talk import Talk

SECRET = "It's a Secret to Everybody"
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OLD_S = 300
"""What a sender has signed longer ago is old."""

MOST_BYTES = 2 * 1_024 * 1_024
"""The largest request that a source takes."""


def _hmac(secret: str, signed: bytes) -> bytes:
    return hmac.digest(secret.encode(), signed, hashlib.sha256)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


@dataclass(frozen=True)
class Event:
    """What a sender sends.

    Attributes:
        body: Its bytes.
        number: Which one it is, for its own id.
        at_s: When it was signed, seconds since 1970.
        url: Where it is sent.
        secret: With what it is signed.
    """

    body: bytes
    number: int
    at_s: int
    url: str
    secret: str


Headers = Mapping[str, str]


@dataclass(frozen=True)
class Sender:
    """A sender.

    Attributes:
        kind: Its name.
        signs: The headers of an event.
        body: The body of its event of a number.
        event_type: The event type that the hub finds; "" if it finds none.
        secret: What it signs with.
        other: Another secret of its kind.
        times: Whether it signs the time.
        tells: Whether its events have ids of their own.
        config: What is configured beside the secret.
    """

    kind: str
    signs: Callable[[Event], Headers]
    body: Callable[[int], Any]
    event_type: str = ""
    secret: str = SECRET
    other: str = "another secret"
    times: bool = False
    tells: bool = True
    config: Mapping[str, Any] | None = None


def _github(event: Event) -> Headers:
    signature = _hmac(event.secret, event.body).hex()
    return {
        "x-hub-signature-256": f"sha256={signature}",
        "x-github-event": "push",
        "x-github-delivery": f"72d3162e-{event.number}",
    }


def _stripe(event: Event) -> Headers:
    signature = _hmac(event.secret, f"{event.at_s}.".encode() + event.body).hex()
    return {"stripe-signature": f"t={event.at_s},v1={signature},v0=00"}


def _shopify(event: Event) -> Headers:
    return {
        "x-shopify-hmac-sha256": _base64(_hmac(event.secret, event.body)),
        "x-shopify-topic": "orders/create",
        "x-shopify-webhook-id": f"b54557e4-{event.number}",
    }


def _slack(event: Event) -> Headers:
    signature = _hmac(event.secret, f"v0:{event.at_s}:".encode() + event.body).hex()
    return {"x-slack-signature": f"v0={signature}", "x-slack-request-timestamp": f"{event.at_s}"}


def _hubspot(event: Event) -> Headers:
    at_ms = f"{event.at_s * 1000}"
    signed = b"POST" + event.url.encode() + event.body + at_ms.encode()
    return {"x-hubspot-signature-v3": _base64(_hmac(event.secret, signed)), "x-hubspot-request-timestamp": at_ms}


def _zoom(event: Event) -> Headers:
    signature = _hmac(event.secret, f"v0:{event.at_s}:".encode() + event.body).hex()
    return {"x-zm-signature": f"v0={signature}", "x-zm-request-timestamp": f"{event.at_s}"}


def _meta(event: Event) -> Headers:
    return {"x-hub-signature-256": f"sha256={_hmac(event.secret, event.body).hex()}"}


def standard_webhooks(prefix: str) -> Callable[[Event], Headers]:
    """Signs as Standard Webhooks has it, with headers that begin so."""

    def signs(event: Event) -> Headers:
        message_id, key = f"msg_{event.number}", base64.b64decode(event.secret.removeprefix("whsec_"))
        signed = f"{message_id}.{event.at_s}.".encode() + event.body
        signature = _base64(hmac.digest(key, signed, hashlib.sha256))
        return {
            f"{prefix}-id": message_id,
            f"{prefix}-timestamp": f"{event.at_s}",
            f"{prefix}-signature": f"v1a,AAAA v1,{signature}",
        }

    return signs


OTHER_KEY = "whsec_" + _base64(bytes(range(24)))
SENDERS: tuple[Sender, ...] = (
    Sender("github", _github, lambda number: {"ref": f"refs/{number}"}, "push"),
    Sender("stripe", _stripe, lambda number: {"id": f"evt_{number}", "type": "charge.paid"}, "charge.paid", times=True),
    Sender("shopify", _shopify, lambda number: {"id": number}, "orders.create"),
    Sender(
        "slack",
        _slack,
        lambda number: {"event_id": f"Ev{number}", "type": "event_callback", "event": {"type": "message"}},
        "message",
        times=True,
    ),
    Sender("hubspot", _hubspot, lambda number: [{"objectId": number}], times=True, tells=False),
    Sender(
        "zoom",
        _zoom,
        lambda number: {"event": "meeting.started", "n": number},
        "meeting.started",
        times=True,
        tells=False,
    ),
    Sender(
        "meta",
        _meta,
        lambda number: {"object": "page", "entry": [{"id": number}]},
        "page",
        tells=False,
        config={"verifyToken": "the token"},
    ),
    *(
        Sender(
            kind,
            standard_webhooks(prefix),
            lambda number: {"type": "made", "n": number},
            "made",
            KEY,
            OTHER_KEY,
            times=True,
        )
        for kind, prefix in (("svix", "svix"), ("clerk", "svix"), ("open-ai", "webhook"), ("replicate", "webhook"))
    ),
)


def webhooks(talk: Talk) -> None:
    """All kinds of sources."""
    talk.through(_signed, _questions, _generic, _form, _events, _places, _settings)


def new_source(talk: Talk, uid: str, kind: str, config: Any, *, hears: str = "") -> Any:
    """A source, perhaps with an endpoint; what is shown of it."""
    fields = {"name": kind, "uid": uid, "type": kind, "config": config}
    source = talk.at("/ingest/api/v1").ask("POST", "/source", fields, status=201, shows={"uid": uid, "type": kind})
    if hears:
        url = {"url": f"https://{hears}/in", "uid": "all"}
        talk.at("/ingest/api/v1").ask("POST", f"/source/{uid}/endpoint", url, status=201)
    return source


def removed(talk: Talk, *uids: str) -> None:
    """Remove sources."""
    for uid in uids:
        talk.at("/ingest/api/v1").ask("DELETE", f"/source/{uid}", status=204)


def path_of(url: str) -> str:
    """The path of a URL."""
    return "/" + url.split("/", 3)[3]


def aligned(talk: Talk) -> int:
    """The second that it is, in the middle of it: clocks are a little off, and a request takes a while."""
    talk.sleep(1.4 - talk.now() % 1_000_000 / 1_000_000, exactly=True)
    return talk.epoch_s()


def comes(
    talk: Talk, url: str, body: bytes, headers: Headers, *, status: int = 200, code: str = ""
) -> Mapping[str, str]:
    """What comes to a URL; the headers of the answer."""
    answer = talk.at("").with_headers(authorization="", **headers).answered("POST", path_of(url), body)
    talk.is_so(f"what comes to {path_of(url)[:12]} with {[*headers]}", status, answer.status)
    if code:
        talk.is_so("why it is refused", {"code": code, "detail": str}, answer.body)
    return answer.headers


def _status(talk: Talk, url: str, body: bytes, headers: Headers) -> int:
    return talk.at("").with_headers(authorization="", **headers).status("POST", path_of(url), body)


def _signed(talk: Talk) -> None:
    """Each kind: good, once more, forged, changed on the way, unsigned, too old."""
    for place, sender in enumerate(SENDERS):
        uid, host = f"from-{place}", f"talk-from-{place}.example"
        came = talk.listen(host, lambda _: (200, b""))
        source = new_source(talk, uid, sender.kind, {"secret": sender.secret, **(sender.config or {})}, hears=host)
        talk.is_so("verified", {"verified": True}, source)
        talk.is_so(f"{sender.kind}: no secret is shown", False, sender.secret in json.dumps(source))
        url, now = source["ingestUrl"], aligned(talk)
        bodies = [json.dumps(sender.body(number), indent=1).encode() for number in range(4)]

        def event(
            number: int, at_s: int, secret: str = sender.secret, url: str = url, bodies: list[bytes] = bodies
        ) -> Event:
            return Event(bodies[number], number, at_s, url, secret)

        first = comes(talk, url, bodies[0], sender.signs(event(0, now)))
        talk.is_so("it has an id", True, first.get("pushhub-message-id", "").startswith("msg_"))
        again = comes(talk, url, bodies[0], sender.signs(event(0, now)))
        talk.is_so("the same again is not stored again", not sender.tells, "pushhub-message-id" in again)
        comes(talk, url, bodies[1], sender.signs(event(1, now, sender.other)), status=400, code="forged")
        comes(talk, url, bodies[1] + b" ", sender.signs(event(1, now)), status=400, code="forged")
        unsigned = {
            name: text
            for name, text in sender.signs(event(1, now)).items()
            if "sign" not in name and "hmac" not in name
        }
        comes(talk, url, bodies[1], unsigned, status=400, code="unsigned")
        refused = {"unsigned": 1, "forged": 2, "old": 0, "duplicate": int(sender.tells)}
        if sender.times:
            now = aligned(talk)
            comes(talk, url, bodies[2], sender.signs(event(2, now - OLD_S + 1)))
            now = aligned(talk)
            comes(talk, url, bodies[3], sender.signs(event(3, now - OLD_S - 1)), status=400, code="old")
            refused["old"] = 1
        comes(talk, url.rpartition("/")[0] + "/none", bodies[1], sender.signs(event(1, now)), status=404)
        talk.sleep(10)
        taken = [bodies[0], *([] if sender.tells else bodies[:1]), *(bodies[2:3] if sender.times else ())]
        talk.came(f"{sender.kind}: byte for byte", sorted(taken), sorted(each.body for each in came))
        stored = talk.ask("GET", f"/app/{source['id']}/msg", shows={"data": len(taken) * [...], "done": True})["data"]
        if sender.event_type:
            talk.is_so("the event type", {sender.event_type}, {each["eventType"] for each in stored})
        for each in came[:1]:
            sent = sender.signs(event(0, now))
            own = {name: text for name, text in sent.items() if name.startswith(("x-", "stripe"))}
            if not sender.times:
                talk.came("the sender's own headers", own, each.headers)
            talk.came("each of them", {*own}, {*own} & {*each.headers})
            talk.came("the hub's own signature", True, each.headers["webhook-signature"].startswith("v1,"))
        stats = talk.at("/ingest/api/v1").ask("GET", f"/source/{uid}/stats", shows={"days": [{"loop": 0, **refused}]})
        talk.is_so("the last one", {"reason": str, "address": "203.0.113.9"}, stats["last"])
        removed(talk, uid)
        comes(talk, url, bodies[1], sender.signs(event(1, now)), status=404)


def _questions(talk: Talk) -> None:
    """What senders ask of a URL before they use it; nothing of it is stored."""
    slack = new_source(talk, "asks-slack", "slack", {"secret": SECRET})
    zoom = new_source(talk, "asks-zoom", "zoom", {"secret": SECRET})
    meta = new_source(talk, "asks-meta", "meta", {"secret": SECRET, "verifyToken": "let-me-in"})
    now = aligned(talk)
    asked = json.dumps({"type": "url_verification", "challenge": "4711"}).encode()
    event = Event(asked, 1, now, slack["ingestUrl"], SECRET)
    nobody = talk.at("").with_headers(authorization="")
    answer = nobody.with_headers(**_slack(event)).answered("POST", path_of(slack["ingestUrl"]), asked)
    said = answer.body.get("challenge") if isinstance(answer.body, dict) else answer.body
    talk.is_so("Slack's challenge", (200, "4711"), (answer.status, str(said)))
    comes(talk, slack["ingestUrl"], asked, {}, status=400, code="unsigned")
    asked = json.dumps({"event": "endpoint.url_validation", "payload": {"plainToken": "abc"}}).encode()
    signed = _zoom(Event(asked, 1, now, zoom["ingestUrl"], SECRET))
    answer = nobody.with_headers(**signed).answered("POST", path_of(zoom["ingestUrl"]), asked)
    hashed = {"plainToken": "abc", "encryptedToken": _hmac(SECRET, b"abc").hex()}
    talk.is_so("Zoom's token", (200, hashed), (answer.status, answer.body))
    comes(talk, zoom["ingestUrl"], asked, {}, status=400, code="unsigned")
    # What another has signed is no question, and none but Meta's asks with a GET
    for each, signs, text in ((zoom, _zoom, asked), (slack, _slack, b'{"type": "url_verification", "challenge": "1"}')):
        comes(
            talk,
            each["ingestUrl"],
            text,
            signs(Event(text, 1, now, each["ingestUrl"], "no")),
            status=400,
            code="forged",
        )
        query = "hub.mode=subscribe&hub.challenge=4711&hub.verify_token=let-me-in"
        talk.is_so("no question", 404, nobody.answered("GET", f"{path_of(each['ingestUrl'])}?{query}").status)
    path = path_of(meta["ingestUrl"])
    for token, mode, status in (
        ("let-me-in", "subscribe", 200),
        ("let-me-on", "subscribe", 400),
        ("", "subscribe", 400),
        ("let-me-in", "unsubscribe", 404),
    ):
        query = f"hub.mode={mode}&hub.challenge=4711&hub.verify_token={token}"
        answer = nobody.answered("GET", f"{path}?{query}")
        talk.is_so(f"Meta's question with {token} to {mode}", status, answer.status)
        if status == 200:
            talk.is_so("Meta's challenge", 4711, answer.body)
    for each in (slack, zoom, meta):
        talk.ask("GET", f"/app/{each['id']}/msg", shows={"data": []})
    removed(talk, "asks-slack", "asks-zoom", "asks-meta")


def _generic(talk: Talk) -> None:
    """A sender that signs nothing, and those with a scheme of their own; how each tells its duplicates."""
    came = talk.listen("talk-generic.example", lambda _: (200, b""))
    source = new_source(talk, "generic", "generic-webhook", {}, hears="talk-generic.example")
    talk.is_so("whoever has the URL may post", {"verified": False}, source)
    url, body = source["ingestUrl"], b"anything \xc3\xa9"
    seen: tuple[tuple[Headers, bool], ...] = (
        ({"webhook-id": "1", "x-own": "a", "other": "b", "content-type": "text/plain"}, True),
        ({"webhook-id": "1"}, False),
        ({"webhook-id": "2"}, True),
        ({"idempotency-key": "k"}, True),
        ({"idempotency-key": "k"}, False),
        ({"idempotency-key": "l"}, True),
        ({"webhook-id": "3", "idempotency-key": "k"}, True),
        ({"webhook-id": "3", "idempotency-key": "m"}, False),
        ({}, True),
        ({}, True),
    )
    for headers, new in seen:
        answer = comes(talk, url, body, headers)
        talk.is_so(f"new with {headers}", new, "pushhub-message-id" in answer)
    talk.sleep(10)
    talk.came("each new one", [body] * sum(new for _, new in seen), [each.body for each in came])
    one = next((each.headers for each in came if "x-own" in each.headers), {})
    talk.came("its headers", {"x-own": "a", "content-type": "text/plain"}, one)
    talk.came("and no others", False, "other" in one)
    talk.ask("GET", f"/app/{source['id']}/msg", shows={"data": 7 * [...]})
    scheme = {
        "content": "{ts}.{body}",
        "header": {"name": "X-Theirs", "value": "t={ts},{signatures}", "each": "v={signature}"},
    }
    own = {"preset": "github", "secret": SECRET}
    sources: dict[str, tuple[Any, Callable[[bytes, int], Headers]]] = {
        "own-body": (own, lambda body, _: {"x-hub-signature-256": f"sha256={_hmac(SECRET, body).hex()}"}),
        "own-scheme": (
            {**scheme, "secret": SECRET},
            lambda body, at_s: {"x-theirs": f"t={at_s},v={_hmac(SECRET, f'{at_s}.'.encode() + body).hex()}"},
        ),
        "own-twilio": (
            {"preset": "twilio", "secret": SECRET},
            lambda body, _: {},
        ),
    }
    for uid, (signature, signs) in sources.items():
        source = new_source(talk, uid, "generic-webhook", {"signature": signature})
        talk.is_so("it is verified", {"verified": True}, source)
        now = aligned(talk)
        if headers := signs(body, now):
            comes(talk, source["ingestUrl"], body, headers)
            comes(talk, source["ingestUrl"], body + b"!", headers, status=400, code="forged")
        comes(talk, source["ingestUrl"], body, {}, status=400, code="unsigned")
        talk.ask("GET", f"/app/{source['id']}/msg", shows={"data": [...] if headers else []})
        removed(talk, uid)
    removed(talk, "generic")


def _form(talk: Talk) -> None:
    """Twilio signs the URL and every field of a form, in the order of their names, also those without a value."""
    source = new_source(talk, "form", "generic-webhook", {"signature": {"preset": "twilio", "secret": SECRET}})
    url = source["ingestUrl"]
    form = {"content-type": "application/x-www-form-urlencoded"}

    def signed(*fields: str) -> Headers:
        content = (url + "".join(fields)).encode()
        return {**form, "x-twilio-signature": _base64(hmac.digest(SECRET.encode(), content, hashlib.sha1))}

    comes(talk, url, b"To=%2B2&From=%2B1&Body=", signed("Body", "From+1", "To+2"))
    comes(talk, url, b"A=1&A=2", signed("A1", "A2"))
    for other in (signed("From+1", "To+2"), signed("To+2", "From+1", "Body"), signed("Body", "From+1", "To+3")):
        comes(talk, url, b"To=%2B2&From=%2B1&Body=", other, status=400, code="forged")
    talk.ask("GET", f"/app/{source['id']}/msg", shows={"data": 2 * [...]})
    removed(talk, "form")


CLOUD = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.new", "data": {"n": 1}}


def _events(talk: Talk) -> None:
    """CloudEvents in three modes: each is a message, known by its source and id."""
    came = talk.listen("talk-cloud.example", lambda _: (200, b""))
    source = new_source(talk, "cloud", "generic-webhook", {}, hears="talk-cloud.example")
    url = source["ingestUrl"]
    binary = {"ce-specversion": "1.0", "ce-id": "b", "ce-source": "/shop", "ce-type": "order.binary"}
    known = [({**binary, "ce-source": source, "ce-id": own}, True) for source, own in (("/s", "b/1"), ("/s/b", "1"))]
    for headers, new in ((binary, True), (binary, False), ({**binary, "ce-source": "/other"}, True), *known):
        answer = comes(talk, url, b'{"n": 2}', {**headers, "content-type": "application/json"})
        talk.is_so("new by its source and id", new, "pushhub-message-id" in answer)
    structured = {"content-type": "application/cloudevents+json; charset=utf-8"}
    batched = {"content-type": "application/cloudevents-batch+json"}
    for new in (True, False):
        answer = comes(talk, url, json.dumps(CLOUD).encode(), structured)
        talk.is_so("one event", new, "pushhub-message-id" in answer)

    def batch(*ids: str) -> bytes:
        return json.dumps([{**CLOUD, "id": each} for each in ids]).encode()

    comes(talk, url, batch("1", "2", "3"), batched)
    comes(talk, url, batch("2", "3", "4"), batched)
    comes(talk, url, batch(*(f"n{number}" for number in range(99)), "n99", "n99"), batched, status=400)
    comes(talk, url, batch(*(f"n{number}" for number in range(99)), "n98"), batched)
    comes(talk, url, batch("n99", "n99"), batched)
    comes(talk, url, batch(*(f"m{number}" for number in range(101))), batched, status=400)
    for missing in ("id", "source", "type"):
        bad = json.dumps([CLOUD, {name: each for name, each in CLOUD.items() if name != missing}]).encode()
        comes(talk, url, bad, batched, status=400)
    for bad in (b"{}", b"[1]", b"["):
        comes(talk, url, bad, batched, status=400)
    talk.sleep(30 + talk.put_off_s)
    bodies = [each.body for each in came]
    talk.came("as they were written", 4, bodies.count(b'{"n": 2}'))
    rest = [json.loads(each) for each in bodies if each != b'{"n": 2}']
    talk.came("each event once", sorted([*"1234", *(f"n{n}" for n in range(100))]), sorted(each["id"] for each in rest))
    shown = talk.ask("GET", f"/app/{source['id']}/msg?limit=250", shows={"data": 108 * [...]})["data"]
    talk.is_so("their types", {"order.new", "order.binary"}, {each["eventType"] for each in shown})
    asked = talk.at("").with_headers(**{"webhook-request-origin": "them.example"}).answered("OPTIONS", path_of(url))
    allowed = {name: asked.headers.get(f"webhook-allowed-{name}") for name in ("origin", "rate")}
    talk.is_so("any origin and rate", ({"origin": lambda each: each in {"*", "them.example"}, "rate": "*"}), allowed)
    removed(talk, "cloud")


def _places(talk: Talk) -> None:
    """Another URL: the previous one serves for 48 hours, and there are three in that time."""
    source = new_source(talk, "moves", "generic-webhook", {})
    ingest, first = talk.at("/ingest/api/v1"), source["ingestUrl"]
    second = ingest.ask("POST", "/source/moves/token/rotate", shows={"ingestUrl": str})["ingestUrl"]
    talk.is_so("another one", True, first != second)
    ingest.ask("GET", "/source/moves", shows={"ingestUrl": second})
    for url in (first, second):
        comes(talk, url, b"x", {})
    # Each previous one has hours of its own, and makes room for another when it has ended
    urls = [first, second]
    for _ in range(2):
        talk.sleep(3_600, exactly=True)
        urls.append(ingest.ask("POST", "/source/moves/token/rotate", shows={"ingestUrl": str})["ingestUrl"])
    ingest.ask("POST", "/source/moves/token/rotate", status=400)
    comes(talk, urls[-1], b"x", {"webhook-id": "once"})
    comes(talk, urls[-1], b"x", {"webhook-id": "once"})
    stats = ingest.ask(
        "GET", "/source/moves/stats", shows={"days": [{"duplicate": 1}], "last": {"reason": "duplicate"}}
    )
    talk.sleep(46 * 3_600 - 60, exactly=True)
    for url in urls:
        comes(talk, url, b"x", {})
    talk.sleep(120, exactly=True)
    for url in urls:
        comes(talk, url, b"x", {"webhook-id": "once"}, status=404 if url == first else 200)
    days = [{"duplicate": 3, "loop": 0}, {"duplicate": 1, "day": stats["days"][0]["day"]}]
    ingest.ask("GET", "/source/moves/stats", shows={"days": days})
    ingest.ask("POST", "/source/moves/token/rotate", shows={"ingestUrl": lambda url: url not in urls})
    ingest.ask("POST", "/source/moves/token/rotate", status=400)
    # Its own URL is no endpoint's
    url = ingest.ask("GET", "/source/moves")["ingestUrl"]
    for own in (url, url.replace("/ingest/in", "/ingest/./in"), url + "?a=b"):
        ingest.ask("POST", "/source/moves/endpoint", {"url": own}, status=422)
    ingest.ask("POST", "/source/moves/endpoint", {"url": "https://talk-moves.example/in"}, status=201)
    # What has gone round ten times goes no further
    for hops, status in (("9", 200), ("10", 508), ("11", 508)):
        comes(talk, url, b"x", {"pushhub-hops": hops}, status=status)
    removed(talk, "moves")


def _settings(talk: Talk) -> None:
    """A secret that is left out stays, null removes it, and another kind needs another."""
    ingest = talk.at("/ingest/api/v1")
    source = new_source(talk, "kept", "github", {"secret": SECRET})
    body, url = b'{"a": 1}', source["ingestUrl"]

    def signed(number: int, secret: str) -> Headers:
        return _github(Event(body, number, 0, url, secret))

    comes(talk, url, body, signed(1, SECRET))
    whole = {"name": "Kept", "uid": "kept", "type": "github", "metadata": {"m": "n"}}
    ingest.ask("PUT", "/source/kept", whole, shows={**whole, "id": source["id"], "verified": True, "ingestUrl": url})
    comes(talk, url, body, signed(2, SECRET))
    ingest.ask("PUT", "/source/kept", {**whole, "config": {"secret": "new secret"}}, shows={"verified": True})
    comes(talk, url, body, signed(3, SECRET), status=400, code="forged")
    comes(talk, url, body, signed(3, "new secret"))
    ingest.ask("PUT", "/source/kept", {**whole, "config": {"secret": None}}, shows={"verified": False})
    comes(talk, url, body, {"x-github-event": "ping", "x-github-delivery": "4"})
    shown = ingest.ask("GET", "/source/kept", shows={**whole, "verified": False})
    talk.is_so(
        "it was changed", True, shown["updatedAt"] > source["updatedAt"] and shown["createdAt"] == source["createdAt"]
    )
    talk.ask("GET", f"/app/{source['id']}/msg", shows={"data": [{"eventType": "ping"}, ..., ..., ...]})
    # Of another kind, it keeps its URL, and not its secret
    ingest.ask("PUT", "/source/kept", {**whole, "config": {"secret": SECRET}}, shows={"verified": True})
    ingest.ask("PUT", "/source/kept", {**whole, "type": "hubspot"}, shows={"verified": False, "ingestUrl": url})
    ingest.ask("PUT", "/source/kept", {**whole, "type": "stripe"}, status=422)
    ingest.ask("GET", "/source/kept", shows={"type": "hubspot", "verified": False})
    own = {"preset": "github", "secret": SECRET}
    for signature, verified in ((own, True), ({"preset": "github"}, True), (None, False)):
        config = {"signature": signature} if signature else {}
        generic = {**whole, "type": "generic-webhook", "config": config}
        ingest.ask("PUT", "/source/kept", generic, shows={"verified": verified, "ingestUrl": url})
        comes(talk, url, body, signed(9, SECRET))
        talk.is_so("only what is signed", 400 if verified else 200, _status(talk, url, body, signed(9, "no")))
    for size, status in ((MOST_BYTES, 200), (MOST_BYTES + 1, 413)):
        talk.is_so(f"{size} bytes", status, _status(talk, url, size * b"x", {"content-type": "text/plain"}))
    for kind in ("stripe", "shopify", "slack", "zoom", "meta", "svix"):
        fields: dict[str, Any] = {"name": "x", "uid": f"no-{kind}", "type": kind, "config": {}}
        ingest.ask("POST", "/source", fields, status=422)
    for none in ("adobe-sign", "nothing", "", None):
        ingest.ask("POST", "/source", {"name": "x", "type": none}, status=422)
    ingest.ask("POST", "/source", {**whole, "name": "again"}, status=409, shows={"code": "conflict"})
    ingest.ask("PUT", "/source/made", {**whole, "uid": "made"}, status=201, shows={"uid": "made"})
    removed(talk, "kept", "made")
    ingest.ask("GET", "/source/kept", status=404)


__all__ = [
    "KEY",
    "SECRET",
    "Event",
    "aligned",
    "comes",
    "new_source",
    "path_of",
    "removed",
    "standard_webhooks",
    "webhooks",
]
