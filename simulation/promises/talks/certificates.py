"""Receivers that want a client certificate: to whom it is shown, and to whom not; what ends it, and what comes then.

Sources: docs/gates.md ("Client certificates", "Subscribers of queues and services of stores").
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from simulation.promises.talks.customers import LATE_S, MINUTE, Customer
from simulation.promises.talks.services import done, mapped, pushed
from simulation.promises.talks.talk import Came, Talk

FAR = 2_400_000_000
"""Seconds since 1970 at which certificates end that are not to end."""

OAUTH: Mapping[str, Any] = {
    "grantType": "clientCredentials",
    "authMethod": "clientSecretPost",
    "clientId": "c",
    "clientSecret": "hush",
    "tokenUrl": "https://certified-login.example/token",
}


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_shown, _ended, _of_queues, _of_stores)


def identity(number: int, ends_s: int = FAR) -> str:
    """A certificate of a number with its key, the same each time."""
    key = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"certified {number}")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    dated = builder.serial_number(number).not_valid_before(datetime(2026, 1, 1, tzinfo=UTC))
    signed = dated.not_valid_after(datetime.fromtimestamp(ends_s, UTC)).sign(key, None)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return (private + signed.public_bytes(Encoding.PEM)).decode()


def _digest(pem: str) -> str:
    """The SHA-256 of a certificate, in hexadecimal."""
    certificate = x509.load_pem_x509_certificate(pem[pem.index("-----BEGIN CERTIFICATE") :].encode())
    return hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()


def _numbers(came: Sequence[Came], *known: str) -> list[int | None]:
    """Which certificate each request was sent with, by its place in a list; None for none."""
    places = {pem.strip(): place for place, pem in enumerate(known)}
    return [places[each.identity.strip()] if each.identity else None for each in came]


def _shown(talk: Talk) -> None:
    """A certificate is shown by its endpoint alone, also beside others at its host, and not to the token server;
    another one takes its place, and it is shown no more when it was removed. Attempts say which one it was.
    """
    first, second = identity(1), identity(2)
    asked = talk.listen("certified-login.example", lambda _: (200, json.dumps({"access_token": "t"}).encode()))
    one = Customer(talk, "certified")
    came = one.endpoint("own")
    beside = {"url": "https://certified-own.example/beside", "uid": "beside"}
    talk.ask("POST", f"{one.path}/endpoint", beside, status=201)
    path = f"{one.path}/endpoint/own"
    talk.ask("PUT", f"{path}/oauth", OAUTH, status=204)
    for change, place in ((first, 0), (second, 1), (None, None)):
        if change is None:
            talk.ask("DELETE", f"{path}/mtls", status=204)
        else:
            talk.ask("PUT", f"{path}/mtls", {"identity": change}, status=204)
        talk.sleep(2)
        before = len(came)
        message_id = one.post(1)
        talk.sleep(10 + talk.put_off_s)
        new = came[before:]
        own, other = ([each for each in new if each.path == where] for where in ("/in", "/beside"))
        talk.came(f"its own, {place}", [place], _numbers(own, first, second))
        talk.came(f"none beside it, {place}", [None], _numbers(other, first, second))
        rows = talk.ask("GET", f"{one.path}/attempt/msg/{message_id}")["data"]
        shown = {each["url"].rpartition("/")[2]: each.get("certificate") for each in rows}
        digest = None if change is None else _digest(change)
        talk.is_so(f"which it was, {place}", {"beside": None, "in": digest}, shown)
        talk.is_so("all arrived", {200}, {each["responseStatusCode"] for each in rows})
    talk.came("none to the token server", {""}, {each.identity for each in asked})
    one.over()


def _ended(talk: Talk) -> None:
    """Once a certificate has ended nothing is sent, which says why; with a new one, what waits is sent as planned."""
    one = Customer(talk, "ending")
    came, other = one.endpoint("own"), one.endpoint("other")
    ends_s = talk.epoch_s() + 120
    path = f"{one.path}/endpoint/own"
    talk.ask("PUT", f"{path}/mtls", {"identity": identity(3, ends_s)}, status=204)
    talk.sleep(2)
    one.post(1)
    talk.sleep(130 + talk.put_off_s)
    talk.came("before its end", [1], one.numbers("own"))
    message_id = one.post(2)
    talk.sleep(20 + talk.put_off_s)
    talk.came("nothing after it", 1, len(came))
    talk.came("the other gets all", [1, 2], [json.loads(each.body)["n"] for each in other])
    rows = talk.ask("GET", f"{one.path}/attempt/endpoint/own?limit=1")["data"]
    why = [
        (each["responseStatusCode"], each["response"].startswith("mtls: the client certificate ended")) for each in rows
    ]
    talk.is_so("why", [(0, True)], why)
    shows = {"health": {"state": "certificate_ended"}, "circuit": "closed", "certificateDaysLeft": int}
    talk.ask("GET", f"{path}/health", shows=shows)
    talk.ask("PUT", f"{path}/mtls", {"identity": identity(4)}, status=204)
    talk.sleep(300 * 1.2 + LATE_S + talk.gathered_s)
    talk.came("as planned", [1, 2], one.numbers("own"))
    talk.came("with the new one", [0], _numbers(came[1:], identity(4)))
    talk.is_so("it has arrived", (0, None), one.state(message_id)["own"])
    talk.ask("GET", f"{path}/health", shows={"health": {"state": "delivering"}})
    one.over()


def _of_queues(talk: Talk) -> None:
    """A queue's subscriber has its own; left out, it stays, ``false`` ends it; only ``https`` has one."""
    queues = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    pem = identity(5)
    came = talk.listen("certified-queue.example", lambda _: (200, b""))
    own = {"name": "own", "url": "https://certified-queue.example/own"}
    beside = {"name": "beside", "url": "https://certified-queue.example/beside"}
    push = {"subscribers": [{**own, "mtls": {"identity": pem}}, beside]}
    queues.ask("PUT", "/queues/certified", {"queue": {"type": "multicast", "push": push}})
    steps: tuple[tuple[Any, bool], ...] = ((..., True), ({}, True), ({"mtls": True}, True), ({"mtls": False}, False))
    for number, (change, has) in enumerate(steps):
        if change is not ...:
            queues.ask("POST", "/queues/certified/subscribers", {"subscribers": [{**own, **change}]})
            talk.sleep(2)
        rows = {each["name"]: each for each in queues.ask("GET", "/queues/certified")["queue"]["push"]["subscribers"]}
        talk.is_so("what is shown", has, "certified 5" in json.dumps(rows["own"].get("mtls")))
        talk.is_so("nothing of the other", False, bool(rows["beside"].get("mtls")))
        talk.is_so("no key", False, "PRIVATE" in json.dumps(rows))
        before = len(came)
        queues.ask("POST", "/queues/certified/messages", {"messages": [{"body": f"{number}"}]}, status=201)
        talk.sleep(8 + talk.gathered_s)
        new = {each.path: each for each in came[before:]}
        talk.came(
            "who shows it",
            {"/own": [0 if has else None], "/beside": [None]},
            {where: _numbers([each], pem) for where, each in new.items()},
        )
    plain = {"name": "plain", "url": "http://certified-queue.example/", "mtls": {"identity": pem}}
    queues.ask("POST", "/queues/certified/subscribers", {"subscribers": [plain]}, status=400)
    queues.ask("DELETE", "/queues/certified")


def _of_stores(talk: Talk) -> None:
    """A service is shown it at its own scheme, host and port, and at no other that it names for later."""
    store = talk.at(f"/api/stores/{talk.project}").with_headers(authorization="", x_augury_token=talk.token)
    pem = identity(6)
    places = ("/later", "https://certified-service.example:8443/port", "https://certified-elsewhere.example/host")

    def answers(came: Came) -> tuple[int, bytes]:
        place = json.loads(came.body)["payload"]["place"]
        return done(came, **({"delay": 1, "update_url": places[place]} if came.path == "/in" else {}))

    came = talk.listen("certified-service.example", answers)
    other = talk.listen("certified-elsewhere.example", done)
    mapping = mapped(store, "certified-service", ["certified:made"], mtls={"identity": pem})
    shown = store.ask("GET", mapping, shows={"mtls": {"subject": str, "ends_at": str}})
    talk.is_so("no key", False, "PRIVATE" in json.dumps(shown))
    talk.sleep(MINUTE + 1)
    for place in range(len(places)):
        pushed(store, "certified:made", {"place": place})
    talk.sleep(2 * MINUTE + 3 * talk.gathered_s + talk.put_off_s)
    first = [each for each in came if each.path == "/in"]
    talk.came("each request", len(places) * [0], _numbers(first, pem))
    polls = {each.path: _numbers([each], pem) for each in (*came, *other) if each.path != "/in"}
    talk.came("each poll", {"/later": [0], "/port": [None], "/host": [None]}, polls)
    store.ask("DELETE", mapping)


__all__ = ["identity", "webhooks"]
