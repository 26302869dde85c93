"""OAuth 2.0 and mutual TLS, in every dialect that has them as settings: what receivers are sent, how gates are set,
kept and ended, and that nobody sees what is secret in them.
"""

from __future__ import annotations

import base64
import datetime
import json
from dataclasses import replace
from itertools import count
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from tests.dialects.receivers import OTHER_URL, URL, Gated, header, records, sent
from tests.engine.world import PROJECT
from tests.fakes import Reply
from tests.fakes.private_keys import identity, secret_base64

from pushhub.engine.ends import DAY_MS

TOKEN_URL = "https://login.example/token"
SECRET = "s3cr%t:+/="
PEM = identity()
KEY, CERTIFICATE = PEM[: PEM.index("-----BEGIN CERTIFICATE")], PEM[PEM.index("-----BEGIN CERTIFICATE") :]
OAUTH = {"token_url": TOKEN_URL, "client_id": "pushhub", "client_secret": SECRET, "auth_method": "client_secret_post"}
WITHOUT = {name: OAUTH[name] for name in OAUTH if name != "client_secret"}
JWT = {"secret_base64": secret_base64(), "signing_algorithm": "RS256", "secret_id": "k1"}
BY_KEY = {"token_url": TOKEN_URL, "client_id": "pushhub", "auth_method": "private_key_jwt", "jwt_params": JWT}
ENDED = identity(ends=datetime.datetime(2026, 2, 1, tzinfo=datetime.UTC))
BOTH: dict[str, Any] = {"oauth": OAUTH, "mtls": {"identity": PEM, "ca": CERTIFICATE}}


def token(value: str = "token-1") -> Reply:
    body = json.dumps({"access_token": value, "token_type": "Bearer", "expires_in": 3600})
    return Reply(status_code=200, body=body.encode())


@pytest.fixture(autouse=True)
def token_server(gated: Gated) -> None:
    gated.world.sender.script(TOKEN_URL, token())


def asked(gated: Gated) -> list[dict[str, str]]:
    """The forms that the token server was sent."""
    forms = (parse_qs(each.body.decode()) for each in gated.world.sender.requests_to(TOKEN_URL))
    return [{name: value for name, (value,) in form.items()} for form in forms]


def authorizations(gated: Gated, url: str = URL) -> list[str | None]:
    return [header(each, "Authorization") for each in gated.world.sender.requests_to(url)]


def ending_in(gated: Gated, days: float) -> str:
    at = gated.world.clock.now() // 1000 + round(days * 86_400)
    return identity(ends=datetime.datetime.fromtimestamp(at, datetime.UTC))


def look(gated: Gated) -> int:
    """Go on to the next hour, and look for ends."""
    gated.world.clock.set((gated.world.clock.now() // 3_600_000 + 1) * 3_600_000)
    return gated.look_for_ends()


def test_a_token_is_asked_for_once_and_others_get_none(gated: Gated) -> None:
    # Given a receiver behind OAuth, and one that is not
    gated.make(oauth={**OAUTH, "scopes": ["a", "b"]})
    gated.make(OTHER_URL)
    assert gated.shown()["oauth"] is True
    # When messages are pushed
    for _ in range(3):
        gated.post()
    # Then one token was asked for, in the way that was set, and it is sent to that receiver alone
    (form,) = asked(gated)
    assert (form["scope"], form["client_id"], form["client_secret"]) == ("a b", "pushhub", SECRET)
    assert authorizations(gated) == ["Bearer token-1"] * 3
    assert authorizations(gated, OTHER_URL) == [None] * 3


def test_a_receiver_without_gates_pays_nothing(gated: Gated) -> None:
    gated.make()
    gated.world.ports.token_store.token_state = None  # type: ignore[assignment,method-assign]
    request = sent(gated)
    assert (header(request, "Authorization"), request.identity) == (None, None)
    assert not gated.world.ports.token_store.states


def test_a_refused_token_is_replaced_once_in_the_same_attempt(gated: Gated) -> None:
    gated.make(oauth=OAUTH)
    gated.post()
    # When the receiver no longer takes the token, then the message comes with a new one, in one attempt
    gated.world.sender.script(TOKEN_URL, token("token-2"))
    gated.answers(401)
    gated.post()
    assert authorizations(gated) == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]
    # And one that takes none does not turn messages into requests for tokens
    gated.world.sender.script(TOKEN_URL, token("token-3"))
    gated.answers(*[401] * 8)
    for _ in range(3):
        gated.post()
    assert len(asked(gated)) == 3


def test_a_token_that_another_environment_obtained_before_is_no_new_one(gated: Gated) -> None:
    # Given an environment with a token, and a later one that another environment has obtained meanwhile
    gated.make(oauth=OAUTH)
    gated.post()
    ports = gated.world.ports
    (state,) = ports.token_store.token_states_of(PROJECT)
    sealed = ports.vault.seal(PROJECT, b"token-of-another")
    ports.token_store.save_token_state(replace(state, sealed=sealed, version=state.version + 1))
    # When the receiver has taken back both (simulation, world gates, tokens taken back six times an hour, seed 3)
    gated.world.sender.script(TOKEN_URL, token("token-2"))
    gated.answers(401, 401)
    gated.post()
    gated.post()
    # Then another is asked for at once, with which the message comes, and all that follow
    shown = ["token-1", "token-1", "token-of-another", "token-2", "token-2"]
    assert authorizations(gated) == [f"Bearer {each}" for each in shown]
    assert len(asked(gated)) == 2


def test_nothing_reaches_the_receiver_while_the_token_server_fails(gated: Gated) -> None:
    # Given a token server that is down, and more messages than it may be asked for
    gated.world.sender.script(TOKEN_URL, *[503] * 3)
    gated.make(oauth=OAUTH)
    for _ in range(5):
        gated.post(seconds=0.2)
    # Then nothing reaches the receiver, it was asked once, and the reason is told
    assert authorizations(gated) == []
    assert len(asked(gated)) == 1
    assert gated.said() == "oauth: the token server answered 503"
    # When it is up again, then all come, once each
    gated.world.sender.script(TOKEN_URL, *[token()] * 3)
    gated.world.run(seconds=300)
    assert authorizations(gated) == ["Bearer token-1"] * 5
    assert len(asked(gated)) <= 4


def test_a_key_signs_what_the_token_server_is_asked(gated: Gated) -> None:
    gated.make(oauth=BY_KEY)
    # When the grant is set again without its parameters, then those that are stored are used
    gated.change(oauth={name: BY_KEY[name] for name in BY_KEY if name != "jwt_params"})
    gated.world.sender.script(TOKEN_URL, 503, token())
    gated.post(seconds=60)
    # Then each request has an assertion of its own, by that key, and no secret
    first, second = (form["client_assertion"].split(".") for form in asked(gated))
    assert len(first) == len(second) == 3
    assert first != second
    assert json.loads(base64.urlsafe_b64decode(first[0] + "=="))["kid"] == "k1"
    assert not any("client_secret" in form for form in asked(gated))


@pytest.mark.parametrize("gates", [{}, {"oauth": None, "mtls": None}, {"oauth": True, "mtls": True}, "as shown"])
def test_whoever_does_not_speak_of_gates_leaves_them_as_they_are(gated: Gated, gates: Any) -> None:
    gated.make(**BOTH)
    gated.write_back() if gates == "as shown" else gated.change(**gates)
    request = sent(gated)
    assert header(request, "Authorization") == "Bearer token-1"
    assert request.identity is not None
    assert (request.identity.pem, request.identity.ca) == (PEM, CERTIFICATE)
    # And the token server is not shown the certificate
    assert gated.world.sender.requests_to(TOKEN_URL)[0].identity is None
    expected = {"subject": "pushhub.example", "ends_at": "2046-01-01T00:00:00.000Z", "private_ca": True}
    assert gated.shown()["mtls"] == expected


def test_false_ends_them(gated: Gated) -> None:
    gated.make(**BOTH)
    gated.change(oauth=False, mtls=False)
    request = sent(gated)
    assert (header(request, "Authorization"), request.identity) == (None, None)
    assert not {"oauth", "mtls"} & {*gated.shown()}


def test_another_project_with_the_same_settings_shares_neither_token_nor_connection(gated: Gated) -> None:
    # Given two projects in which everything is the same
    gated.world.sender.script(TOKEN_URL, token("mine"), token("theirs"))
    for theirs in (False, True):
        gated.make(theirs=theirs, **BOTH)
        gated.post(theirs=theirs)
    # Then each is sent a token of its own, over a connection of its own
    assert authorizations(gated) == ["Bearer mine", "Bearer theirs"]
    identities = [each.identity for each in gated.world.sender.requests_to(URL)]
    assert len({each.digest for each in identities if each is not None}) == 2


def test_after_its_end_nothing_is_sent_and_a_new_certificate_sends_what_waits(gated: Gated) -> None:
    gated.make(mtls={"identity": ending_in(gated, 2)})
    gated.world.clock.advance(seconds=2 * 86_400)
    gated.post()
    assert not gated.world.sender.requests_to(URL)
    assert gated.said().startswith("mtls: the client certificate ended ")
    gated.change(mtls={"identity": PEM})
    gated.world.run(seconds=120)
    assert len(gated.world.sender.requests_to(URL)) == 1


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"oauth": 5}, "oauth"),
        ({"oauth": []}, "oauth"),
        ({"oauth": True}, "oauth.token_url"),
        ({"oauth": {}}, "oauth.token_url"),
        *(
            ({"oauth": {**OAUTH, "token_url": url}}, "oauth.token_url")
            for url in (
                *(None, 5, "http://login.example/token", "ftp://login.example", "ironmq:///q"),
                *("https://login.example/token#x", "https://u:p@login.example/token"),
                "https://login.example\\@evil.example/",
            )
        ),
        *(({"oauth": {**OAUTH, "client_id": each}}, "oauth.client_id") for each in (None, "", "x" * 1_025, "a\nb")),
        *(({"oauth": {**OAUTH, "client_secret": each}}, "oauth.client_secret") for each in (None, "", 5, "********")),
        ({"oauth": {**OAUTH, "auth_method": "none"}}, "oauth.auth_method"),
        ({"oauth": {**OAUTH, "auth_method": 5}}, "oauth.auth_method"),
        ({"oauth": {**OAUTH, "grant_type": "refresh_token"}}, "oauth.grant_type"),
        ({"oauth": {**OAUTH, "refresh_token": "x"}}, "oauth.refresh_token"),
        ({"oauth": {**OAUTH, "scopes": "a b"}}, "oauth.scopes"),
        ({"oauth": {**OAUTH, "scopes": ["a"] * 51}}, "oauth.scopes"),
        ({"oauth": {**OAUTH, "scopes": ["a b"]}}, "oauth.scopes.0"),
        ({"oauth": {**OAUTH, "scopes": ["a", ""]}}, "oauth.scopes.1"),
        ({"oauth": {**OAUTH, "extra_params": ["a"]}}, "oauth.extra_params"),
        ({"oauth": {**OAUTH, "extra_params": {"a": 1}}}, "oauth.extra_params"),
        ({"oauth": {**OAUTH, "extra_params": {f"p{each}": "x" for each in range(11)}}}, "oauth.extra_params"),
        ({"oauth": {**OAUTH, "extra_params": {"Grant_Type": "x"}}}, "oauth.extra_params.Grant_Type"),
        *(
            ({"oauth": {**OAUTH, "extra_headers": {name: "x"}}}, f"oauth.extra_headers.{name}")
            for name in ("Host", "Authorization", "X(A")
        ),
        ({"oauth": {**OAUTH, "extra_headers": {"X-A": "x\r\nY: 1"}}}, "oauth.extra_headers.X-A"),
        ({"oauth": {**OAUTH, "extra_headers": {"X-A": "********"}}}, "oauth.extra_headers.X-A"),
        ({"oauth": {**OAUTH, "extra_headers": {"X-A": "x", "x-a": "y"}}}, "oauth.extra_headers"),
        ({"oauth": {**OAUTH, "jwt_params": {}}}, "oauth.jwt_params"),
        ({"oauth": {**BY_KEY, "client_secret": "x"}}, "oauth.client_secret"),
        ({"oauth": {**BY_KEY, "jwt_params": None}}, "oauth.jwt_params"),
        *(
            ({"oauth": {**BY_KEY, "jwt_params": {**JWT, name: wrong}}}, f"oauth.jwt_params.{name}")
            for name, wrong in (
                *(("signing_algorithm", "HS256"), ("secret_id", "\u00e9")),
                *(("secret_base64", None), ("secret_base64", "no base64"), ("secret_base64", "bm8ga2V5")),
            )
        ),
        ({"mtls": 5}, "mtls"),
        *(({"mtls": given}, "mtls.identity") for given in ({}, {"identity": None}, {"identity": 5})),
        *(
            ({"mtls": {"identity": pem}}, "mtls.identity")
            for pem in ("junk", KEY, CERTIFICATE, KEY + identity(key=False), "\x00" + "\u00e9" * 40_000, ENDED)
        ),
        *(({"mtls": {"identity": PEM, "ca": each}}, "mtls.ca") for each in (5, "junk", PEM)),
    ],
    ids=(str(each) for each in count()),
)
def test_what_could_not_be_right_is_refused_by_name(gated: Gated, settings: Any, place: str) -> None:
    refusal = gated.refusal(**settings)
    assert refusal.partition(":")[0] == place
    assert SECRET not in refusal
    assert KEY[40:80] not in refusal


def test_no_secret_is_seen_anywhere(gated: Gated) -> None:
    # Given a receiver with both gates that fails, whose token server repeats what it was sent
    echo = json.dumps({"error": "invalid_client", "error_description": f"wrong {SECRET}"}).encode()
    gated.world.sender.script(TOKEN_URL, Reply(status_code=401, body=echo), token())
    gated.make(**BOTH)
    gated.answers(500)
    gated.post(seconds=700)
    assert authorizations(gated) == ["Bearer token-1"] * 2
    # Then neither secret, key nor token is in the log, in what is shown, stored or kept of it
    kept = gated.kept()
    assert not [each for each in (SECRET, KEY[40:80], "token-1") if each in kept]
    assert not [each for each in gated.world.ports.token_store.states.values() if b"token-1" in each.sealed]


def test_records_say_what_was_shown(gated: Gated) -> None:
    gated.make(signing={"signatures": [{"preset": "stripe", "secret": "whsec_test"}]}, **BOTH)
    gated.post()
    shown = [[each.get(name) for name in ("signed_by", "token_client", "certificate")] for each in records(gated)]
    fingerprint = x509.load_pem_x509_certificate(CERTIFICATE.encode()).fingerprint(SHA256()).hex()
    assert [("stripe",), "pushhub", fingerprint] in shown
    # And an attempt at which nothing was sent has shown nothing
    gated.world.sender.script(TOKEN_URL, 503)
    gated.change(oauth={**OAUTH, "client_id": "other"})
    gated.post()
    assert "other" not in {each.get("token_client") for each in records(gated)}


def test_an_end_is_told_of_30_7_and_1_days_before_an_end_and_at_the_end(gated: Gated) -> None:
    # Given a certificate that ends in 40 days, when time goes by, with two looks at each time
    gated.make(mtls={"identity": ending_in(gated, 40)})
    begun = gated.world.clock.now()
    for day in (9.5, 10.5, 20, 33.5, 38, 39.5, 40.5, 60):
        gated.world.clock.set(begun + round(day * DAY_MS))
        look(gated)
        look(gated)
    # Then it was told once each time
    assert gated.ends_told() == [30, 7, 1, 0]


@pytest.mark.parametrize("then", [{"mtls": {"identity": PEM}}, {"mtls": False}], ids=["replaced", "ended"])
def test_a_certificate_that_is_gone_is_told_nothing_of(gated: Gated, then: Any) -> None:
    gated.make(mtls={"identity": ending_in(gated, 2)})
    gated.change(**then)
    for _ in range(2):
        gated.world.clock.advance(seconds=2 * 86_400)
        assert look(gated) == 0
    assert gated.ends_told() == []


def test_a_certificate_that_ends_in_five_days_is_told_of_within_a_minute(gated: Gated) -> None:
    gated.make(mtls={"identity": ending_in(gated, 5)})
    for _ in range(3):
        gated.world.clock.advance(seconds=60)
        gated.look_for_ends()
    assert gated.ends_told() == [5]


@pytest.mark.parametrize(
    "url", ["https://metadata.example/latest/meta-data/", "https://[::1]/token", "https://a.local/t"]
)
def test_a_token_url_that_the_guard_refuses_is_not_registered(gated: Gated, url: str) -> None:
    gated.guard(url, "it leads into a network")
    refusal = gated.refusal(oauth={**OAUTH, "token_url": url})
    assert refusal.partition(":")[0] == "oauth.token_url"
    assert "it leads into a network" in refusal


@pytest.mark.parametrize(
    "moved",
    [{"token_url": "https://evil.example/token"}, {"client_id": "other"}, {"auth_method": "client_secret_basic"}],
    ids=["to another URL", "with another client", "in another way"],
)
def test_a_secret_goes_only_where_it_went_before(gated: Gated, moved: dict[str, str]) -> None:
    gated.make(oauth={**OAUTH, "extra_headers": {"X-Api-Key": "hidden"}})
    # When it is to go elsewhere, then it has to be given, and the mask is no secret of its own
    assert gated.refused_change(oauth={**WITHOUT, **moved}) == "oauth.client_secret"
    assert gated.refused_change(oauth={**WITHOUT, **moved, "client_secret": "********"}) == "oauth.client_secret"
    masked = {"extra_headers": {"X-Api-Key": "********"}}
    assert gated.refused_change(oauth={**OAUTH, **moved, **masked}) == "oauth.extra_headers.X-Api-Key"
    # When all stays as it was, then both are kept behind their masks
    gated.change(oauth={**OAUTH, "client_secret": "********", **masked})
    gated.post()
    assert [form["client_secret"] for form in asked(gated)] == [SECRET]
    assert header(gated.world.sender.requests_to(TOKEN_URL)[0], "X-Api-Key") == "hidden"


def test_a_changed_grant_counts_at_once_and_the_same_grant_again_is_none(gated: Gated) -> None:
    gated.make(oauth=OAUTH)
    gated.post()
    # When the same is set again, even without the secret, then the token is kept
    gated.change(oauth=WITHOUT)
    gated.post()
    # When another client is set, then the old one's token is not used any more
    gated.world.sender.script(TOKEN_URL, token("token-2"))
    gated.change(oauth={**OAUTH, "client_id": "another"})
    gated.post()
    assert authorizations(gated) == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]
    assert {form["client_secret"] for form in asked(gated)} == {SECRET}
