"""OAuth 2.0 and mutual TLS, in every dialect that has them as settings: what receivers are sent, how gates are set,
kept and ended, and that nobody sees what is secret in them.
"""

from __future__ import annotations

import datetime
import json
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from tests.dialects.receivers import OTHER_URL, URL, Receiver, header, records, sent
from tests.fakes import Reply
from tests.fakes.private_keys import identity, secret_base64

from pushhub.engine.ends import DAY_MS

TOKEN_URL = "https://login.example/token"
SECRET = "s3cr%t:+/="
PEM = identity()
KEY, CERTIFICATE = PEM[: PEM.index("-----BEGIN CERTIFICATE")], PEM[PEM.index("-----BEGIN CERTIFICATE") :]
OAUTH = {"token_url": TOKEN_URL, "client_id": "pushhub", "client_secret": SECRET, "auth_method": "client_secret_post"}
BOTH: dict[str, Any] = {"oauth": OAUTH, "mtls": {"identity": PEM, "ca": CERTIFICATE}}


def token(value: str = "token-1") -> Reply:
    body = json.dumps({"access_token": value, "token_type": "Bearer", "expires_in": 3600})
    return Reply(status_code=200, body=body.encode())


@pytest.fixture(autouse=True)
def token_server(receiver: Receiver) -> None:
    receiver.world.sender.script(TOKEN_URL, token())


def asked(receiver: Receiver) -> list[dict[str, str]]:
    """The forms that the token server was sent."""
    forms = (parse_qs(each.body.decode()) for each in receiver.world.sender.requests_to(TOKEN_URL))
    return [{name: value for name, (value,) in form.items()} for form in forms]


def authorizations(receiver: Receiver, url: str = URL) -> list[str | None]:
    return [header(each, "Authorization") for each in receiver.world.sender.requests_to(url)]


def ending_in(receiver: Receiver, days: float) -> str:
    at = receiver.world.clock.now() // 1000 + round(days * 86_400)
    return identity(ends=datetime.datetime.fromtimestamp(at, datetime.UTC))


def look(receiver: Receiver) -> int:
    """Go on to the next hour, and look for ends."""
    receiver.world.clock.set((receiver.world.clock.now() // 3_600_000 + 1) * 3_600_000)
    return receiver.look_for_ends()


def test_a_token_is_asked_for_once_and_others_get_none(receiver: Receiver) -> None:
    # Given a receiver behind OAuth, and one that is not
    receiver.make(oauth={**OAUTH, "scopes": ["a", "b"]})
    receiver.make(OTHER_URL)
    assert receiver.shown()["oauth"] is True
    # When messages are pushed
    for _ in range(3):
        receiver.post()
    # Then one token was asked for, in the way that was set, and it is sent to that receiver alone
    (form,) = asked(receiver)
    assert (form["scope"], form["client_id"], form["client_secret"]) == ("a b", "pushhub", SECRET)
    assert authorizations(receiver) == ["Bearer token-1"] * 3
    assert authorizations(receiver, OTHER_URL) == [None] * 3


def test_a_receiver_without_gates_pays_nothing(receiver: Receiver) -> None:
    receiver.make()
    receiver.world.ports.token_store.token_state = None  # type: ignore[assignment,method-assign]
    assert sent(receiver).identity is None


def test_a_refused_token_is_replaced_once_in_the_same_attempt(receiver: Receiver) -> None:
    receiver.make(oauth=OAUTH)
    receiver.post()
    # When the receiver no longer takes the token, then the message comes with a new one, in one attempt
    receiver.world.sender.script(TOKEN_URL, token("token-2"))
    receiver.answers(401)
    receiver.post()
    assert authorizations(receiver) == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]
    # And one that takes none does not turn messages into requests for tokens
    receiver.world.sender.script(TOKEN_URL, token("token-3"))
    receiver.answers(*[401] * 8)
    for _ in range(3):
        receiver.post()
    assert len(asked(receiver)) == 3


def test_nothing_reaches_the_receiver_while_the_token_server_fails(receiver: Receiver) -> None:
    # Given a token server that is down, and more messages than it may be asked for
    receiver.world.sender.script(TOKEN_URL, *[503] * 3)
    receiver.make(oauth=OAUTH)
    for _ in range(5):
        receiver.post(seconds=0.2)
    # Then nothing reaches the receiver, it was asked once, and the reason is told
    assert authorizations(receiver) == []
    assert len(asked(receiver)) == 1
    assert receiver.said() == "oauth: the token server answered 503"
    # When it is up again, then all come, once each
    receiver.world.sender.script(TOKEN_URL, *[token()] * 3)
    receiver.world.run(seconds=300)
    assert authorizations(receiver) == ["Bearer token-1"] * 5
    assert len(asked(receiver)) <= 4


def test_a_key_signs_what_the_token_server_is_asked(receiver: Receiver) -> None:
    jwt = {"secret_base64": secret_base64(), "signing_algorithm": "RS256", "secret_id": "k1"}
    oauth = {"token_url": TOKEN_URL, "client_id": "pushhub", "auth_method": "private_key_jwt", "jwt_params": jwt}
    receiver.make(oauth=oauth)
    receiver.post()
    (form,) = asked(receiver)
    assert len(form["client_assertion"].split(".")) == 3
    assert "client_secret" not in form


@pytest.mark.parametrize("gates", [{}, {"oauth": None, "mtls": None}, {"oauth": True, "mtls": True}, "as shown"])
def test_whoever_does_not_speak_of_gates_leaves_them_as_they_are(receiver: Receiver, gates: Any) -> None:
    receiver.make(**BOTH)
    receiver.write_back() if gates == "as shown" else receiver.change(**gates)
    request = sent(receiver)
    assert header(request, "Authorization") == "Bearer token-1"
    assert request.identity is not None
    assert (request.identity.pem, request.identity.ca) == (PEM, CERTIFICATE)
    # And the token server is not shown the certificate
    assert receiver.world.sender.requests_to(TOKEN_URL)[0].identity is None
    expected = {"subject": "pushhub.example", "ends_at": "2046-01-01T00:00:00.000Z", "private_ca": True}
    assert receiver.shown()["mtls"] == expected


def test_false_ends_them(receiver: Receiver) -> None:
    receiver.make(**BOTH)
    receiver.change(oauth=False, mtls=False)
    request = sent(receiver)
    assert (header(request, "Authorization"), request.identity) == (None, None)
    assert not {"oauth", "mtls"} & {*receiver.shown()}


def test_another_project_with_the_same_settings_shares_neither_token_nor_connection(receiver: Receiver) -> None:
    # Given two projects in which everything is the same
    receiver.world.sender.script(TOKEN_URL, token("mine"), token("theirs"))
    for theirs in (False, True):
        receiver.make(theirs=theirs, **BOTH)
        receiver.post(theirs=theirs)
    # Then each is sent a token of its own, over a connection of its own
    assert authorizations(receiver) == ["Bearer mine", "Bearer theirs"]
    identities = [each.identity for each in receiver.world.sender.requests_to(URL)]
    assert len({each.digest for each in identities if each is not None}) == 2


def test_after_its_end_nothing_is_sent_and_a_new_certificate_sends_what_waits(receiver: Receiver) -> None:
    receiver.make(mtls={"identity": ending_in(receiver, 2)})
    receiver.world.clock.advance(seconds=2 * 86_400)
    receiver.post()
    assert not receiver.world.sender.requests_to(URL)
    assert receiver.said().startswith("mtls: the client certificate ended ")
    receiver.change(mtls={"identity": PEM})
    receiver.world.run(seconds=120)
    assert len(receiver.world.sender.requests_to(URL)) == 1


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"oauth": 5}, "oauth"),
        ({"oauth": True}, "oauth.token_url"),
        ({"oauth": {}}, "oauth.token_url"),
        ({"oauth": {**OAUTH, "token_url": "http://login.example/token"}}, "oauth.token_url"),
        ({"oauth": {**OAUTH, "client_secret": None}}, "oauth.client_secret"),
        ({"oauth": {**OAUTH, "auth_method": "none"}}, "oauth.auth_method"),
        ({"oauth": {**OAUTH, "scopes": ["a b"]}}, "oauth.scopes.0"),
        ({"oauth": {**OAUTH, "extra_headers": {"Host": "x"}}}, "oauth.extra_headers.Host"),
        ({"mtls": 5}, "mtls"),
        ({"mtls": {}}, "mtls.identity"),
        ({"mtls": {"identity": CERTIFICATE}}, "mtls.identity"),
        ({"mtls": {"identity": KEY + identity(key=False)}}, "mtls.identity"),
        ({"mtls": {"identity": PEM, "ca": "junk"}}, "mtls.ca"),
    ],
    ids=range(13),
)
def test_what_could_not_be_right_is_refused_by_name(receiver: Receiver, settings: Any, place: str) -> None:
    told = receiver.refusal(**settings)
    assert told.partition(":")[0] == place
    assert SECRET not in told
    assert KEY[40:80] not in told


def test_no_secret_is_seen_anywhere(receiver: Receiver) -> None:
    # Given a receiver with both gates that fails, whose token server repeats what it was sent
    echo = json.dumps({"error": "invalid_client", "error_description": f"wrong {SECRET}"}).encode()
    receiver.world.sender.script(TOKEN_URL, Reply(status_code=401, body=echo), token())
    receiver.make(**BOTH)
    receiver.answers(500)
    receiver.post(seconds=200)
    assert authorizations(receiver) == ["Bearer token-1"] * 2
    # Then neither secret, key nor token is in the log, in what is shown, stored or kept of it
    kept = receiver.kept()
    assert not [each for each in (SECRET, KEY[40:80], "token-1") if each in kept]
    assert not [each for each in receiver.world.ports.token_store.states.values() if b"token-1" in each.sealed]


def test_records_say_what_was_shown(receiver: Receiver) -> None:
    receiver.make(signing={"signatures": [{"preset": "stripe", "secret": "whsec_test"}]}, **BOTH)
    receiver.post()
    shown = [[each.get(name) for name in ("signed_by", "token_client", "certificate")] for each in records(receiver)]
    fingerprint = x509.load_pem_x509_certificate(CERTIFICATE.encode()).fingerprint(SHA256()).hex()
    assert [("stripe",), "pushhub", fingerprint] in shown
    # And an attempt at which nothing was sent has shown nothing
    receiver.world.sender.script(TOKEN_URL, 503)
    receiver.change(oauth={**OAUTH, "client_id": "other"})
    receiver.post()
    assert "other" not in {each.get("token_client") for each in records(receiver)}


def test_operators_are_told_30_7_and_1_days_before_an_end_and_at_the_end(receiver: Receiver) -> None:
    # Given a certificate that ends in 40 days, when time goes by, with two looks at each time
    receiver.make(mtls={"identity": ending_in(receiver, 40)})
    begun = receiver.world.clock.now()
    for day in (9.5, 10.5, 20, 33.5, 38, 39.5, 40.5, 60):
        receiver.world.clock.set(begun + round(day * DAY_MS))
        look(receiver)
        look(receiver)
    # Then it was told once each time
    told = receiver.world.telemetry.named("certificate_ending")
    assert [each["days_left"] for each in told] == [30, 7, 1, 0]


@pytest.mark.parametrize("then", [{"mtls": {"identity": PEM}}, {"mtls": False}], ids=["replaced", "ended"])
def test_a_certificate_that_is_gone_is_told_nothing_of(receiver: Receiver, then: Any) -> None:
    receiver.make(mtls={"identity": ending_in(receiver, 2)})
    receiver.change(**then)
    for _ in range(2):
        receiver.world.clock.advance(seconds=2 * 86_400)
        assert look(receiver) == 0
    assert not receiver.world.telemetry.named("certificate_ending")
