"""Signatures, gates and frames of webhooks, against a hub on fakes."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Typed
from tests.cli.served_hub import TOKEN, ServedHub
from tests.engine.world import PROJECT
from tests.fakes.private_keys import identity, secret_base64
from tests.fakes.verifier import symmetric

from pushhub.base.times import iso_time

SHOP = ("--app", "acme", "--endpoint", "shop")
OPERATIONAL = ("--operational", "--endpoint", "ops")
GATE = ("--token-url", "https://login.example/token", "--client-id", "pushhub")


def asked(hub: ServedHub, method: str, path: str, body: Any = None, *, api: str = "/api/v1") -> Any:
    """A request as the project, which must go well."""
    given = b"" if body is None else json.dumps(body).encode()
    answer = hub.answer(method, f"{api}{path}", {"Authorization": f"Bearer {TOKEN}"}, given)
    assert answer is not None
    assert 200 <= answer[0] < 300, answer
    return json.loads(answer[1]) if answer[1] else None


def with_endpoints(hub: ServedHub) -> None:
    """An application acme with an endpoint shop behind both gates, and an operational endpoint ops."""
    asked(hub, "POST", "/app", {"name": "Acme", "uid": "acme"})
    both = [{"preset": "stripe", "secret": "s"}, {"preset": "standard-webhooks"}]
    asked(hub, "POST", "/app/acme/endpoint", {"url": "https://a.example/in", "uid": "shop", "signatures": both})
    asked(hub, "POST", "/operational-webhook/endpoint", {"url": "https://ops.example/in", "uid": "ops"})


def secret_file(folder: Path, secret: str) -> str:
    path = folder / "secret"
    path.write_text(f"{secret}\n")
    return str(path)


def test_signatures_are_added_ended_replaced_and_removed(hub: ServedHub, typed: Typed, tmp_path: Path) -> None:
    with_endpoints(hub)
    [stripe, standard] = typed.json("signatures", "show", *SHOP)
    assert (stripe["preset"], stripe["header"]) == ("stripe", "Stripe-Signature")
    assert (standard["header"], standard["inheritedFrom"]) == ("webhook-signature", None)
    # When the scheme gets a new secret, then both sign for a while, and nobody is shown one
    replaced = typed(
        "signatures", "add", "stripe", *SHOP, "--secret-file", secret_file(tmp_path, "whsec_new"), "--json"
    )
    assert "whsec_new" not in replaced
    assert len(next(each for each in json.loads(replaced) if each["preset"] == "stripe")["oldSecretsEnd"]) == 1
    # When it is given an end, by its header, and the end is taken away, by its preset
    end = iso_time(hub.worlds["webhooks"].world.clock.now() + int(timedelta(days=9).total_seconds()) * 1000)
    typed("signatures", "end", "stripe-signature", end, *SHOP)
    assert {each["endsAt"] for each in typed.json("signatures", "show", *SHOP)} == {None, end}
    typed("signatures", "end", "stripe", "never", *SHOP)
    assert {each["endsAt"] for each in typed.json("signatures", "show", *SHOP)} == {None}
    # When one is removed, and another takes its place
    typed("signatures", "remove", "standard-webhooks", *SHOP, "--yes")
    own = json.dumps([{"content": "{body}", "header": {"name": "X-Own"}, "secret": "12345678"}])
    [shown] = typed.json("signatures", "set", "-", *SHOP, given=own.encode())
    assert (shown["preset"], shown["header"], shown["content"]) == (None, "X-Own", "{body}")
    # Then what cannot be is refused with the field's name or a sentence
    typed("signatures", "end", "x-own", end, *SHOP, code=1)
    assert "One signature has to stay" in typed.errors
    typed("signatures", "end", "stripe", end, *SHOP, code=1)
    typed("signatures", "add", "github", *SHOP, code=1)
    assert "secret" in typed.errors.lower()
    typed("signatures", "set", "-", *SHOP, given=b"{", code=2)


def test_what_an_application_and_a_project_hand_down(hub: ServedHub, typed: Typed) -> None:
    with_endpoints(hub)
    typed("signatures", "set", "-", *SHOP, given=b"[]")
    assert typed.json("signatures", "show") == []
    typed("signatures", "add", "github")
    typed("signatures", "add", "hmac-body", "--header", "X-Sign", "--app", "acme")
    shopify = ("--send", "X-Shopify-Shop-Domain=a.example", "--send", "X-Shopify-API-Version=2026-10")
    typed("signatures", "add", "shopify", *shopify, "--app", "acme")
    assert [each["header"] for each in typed.json("signatures", "show", "--app", "acme")] == [
        "X-Sign",
        "X-Shopify-Hmac-Sha256",
    ]
    assert {each["inheritedFrom"] for each in typed.json("signatures", "show", *SHOP)} == {"application"}
    typed("signatures", "remove", "github", *SHOP, "--yes", code=1)
    assert "those of the application" in typed.errors
    # And its own takes their place
    [shown] = typed.json("signatures", "add", "standard-webhooks", *SHOP)
    assert (shown["preset"], shown["inheritedFrom"]) == ("standard-webhooks", None)


def test_what_a_role_has_to_demand_is_told_for_the_project_and_for_an_application(hub: ServedHub, typed: Typed) -> None:
    with_endpoints(hub)
    [project], [acme] = typed.json("gates", "external-id"), typed.json("gates", "external-id", "--app", "acme")
    assert project["principal"] == acme["principal"] == "arn:aws:iam::999999999999:root"
    assert len({project["external_id"], acme["external_id"]}) == 2
    typed("gates", "external-id", "--app", "nobody", code=1)


@pytest.mark.parametrize("whose", [SHOP, OPERATIONAL], ids=["application", "operational"])
def test_gates_are_set_shown_and_removed(hub: ServedHub, typed: Typed, tmp_path: Path, whose: tuple[str, ...]) -> None:
    with_endpoints(hub)
    typed("gates", "oauth", *GATE, "--secret-file", secret_file(tmp_path, "hush"), "--scope", "a", *whose)
    pem, authority = tmp_path / "identity.pem", tmp_path / "ca.pem"
    pem.write_text(identity(name="hub.acme.example"))
    authority.write_text(identity(key=False))
    typed("gates", "certificate", str(pem), "--ca", str(authority), *whose)
    [oauth, certificate] = typed.json("gates", "show", *whose)
    assert (oauth["enabled"], oauth["clientId"], oauth["authMethod"]) == (True, "pushhub", "clientSecretBasic")
    assert (certificate["enabled"], certificate["subject"]) == (True, "hub.acme.example")
    # When it is set again without a secret, then the stored one stays
    typed("gates", "oauth", *GATE, *whose)
    for gate in ("oauth", "certificate"):
        typed("gates", "remove", gate, *whose, "--yes")
        typed("gates", "remove", gate, *whose, "--yes", code=1)
    assert [each["enabled"] for each in typed.json("gates", "show", *whose)] == [False, False]


QUEUES, STORE = f"/3/projects/{PROJECT}/queues", f"/api/stores/{PROJECT}"
SUBSCRIBER, SERVICE = ("--queue", "q", "--subscriber", "shop"), ("--mapping", "acme.ship")
RECEIVERS = pytest.mark.parametrize("whose", [SUBSCRIBER, SERVICE], ids=["subscriber", "service"])


def with_receivers(hub: ServedHub) -> None:
    """A queue q with a subscriber shop that has a secret header, another one, and a mapping acme.ship."""
    shop = {"name": "shop", "url": "https://a.example/in", "headers": {"X-Key": "hidden-value"}}
    subscribers = [shop, {"name": "other", "url": "https://b.example/in"}]
    asked(hub, "PUT", "/q", {"queue": {"push": {"subscribers": subscribers}}}, api=QUEUES)
    mapping = {"name": "acme.ship", "url": "https://a.example/in", "token": "t" * 32, "messages": ["order:new"]}
    asked(hub, "POST", "/mappings", {"mapping": mapping}, api=STORE)


def receiver(hub: ServedHub, whose: tuple[str, ...]) -> dict[str, Any]:
    """What its API shows of a receiver's gates and signatures, and of what must not change with them."""
    if whose == SERVICE:
        [shown] = asked(hub, "GET", "/mappings", api=STORE)
        assert (shown["url"], shown["messages"]) == ("https://a.example/in", ["order:new"])
    else:
        shown, other = asked(hub, "GET", "/q", api=QUEUES)["queue"]["push"]["subscribers"]
        assert other == {"name": "other", "url": "https://b.example/in"}
        if "oauth" not in shown:  # there is no token server
            asked(hub, "POST", "/q/messages", {"messages": [{"body": "x"}]}, api=QUEUES)
            hub.worlds["ironmq"].world.run(seconds=1)
            pushed = hub.worlds["ironmq"].world.sender.requests_to("https://a.example/in")
            assert [each.headers.get("X-Key") for each in pushed][-1] == "hidden-value"
    return {name: shown[name] for name in ("oauth", "mtls", "signing", "signing_ends") if name in shown}


@RECEIVERS
def test_gates_of_subscribers_and_services_are_set_shown_and_removed(
    hub: ServedHub, typed: Typed, tmp_path: Path, whose: tuple[str, ...]
) -> None:
    with_receivers(hub)
    shown = typed("gates", "oauth", *GATE, "--secret-file", secret_file(tmp_path, "hush"), "--scope", "a", *whose)
    pem, authority = tmp_path / "identity.pem", tmp_path / "ca.pem"
    pem.write_text(identity(name="hub.acme.example"))
    authority.write_text(identity(key=False))
    shown += typed("gates", "certificate", str(pem), "--ca", str(authority), *whose)
    assert "hush" not in shown
    assert receiver(hub, whose)["oauth"] is True
    assert receiver(hub, whose)["mtls"]["private_ca"] is True
    [oauth, certificate] = typed.json("gates", "show", *whose)
    assert (oauth["enabled"], certificate["subject"]) == (True, "hub.acme.example")
    assert certificate["endsAt"] == "2046-01-01T00:00:00.000Z"
    # When it is set again without a secret, then the stored one stays; and a key may take its place
    typed("gates", "oauth", *GATE, *whose)
    key = tmp_path / "key.pem"
    key.write_text(base64.b64decode(secret_base64()).decode())
    typed("gates", "oauth", *GATE, "--by", "key", "--secret-file", str(key), "--key-id", "k1", *whose)
    typed("gates", "oauth", *GATE, "--by", "key", *whose)
    typed("gates", "oauth", "--token-url", "http://a.example/", "--client-id", "x", *whose, code=1)
    assert "oauth" in typed.errors
    # When they are removed, then nothing is left of them, and nothing else has changed
    for gate in ("oauth", "certificate"):
        typed("gates", "remove", gate, *whose, "--dry-run")
        typed("gates", "remove", gate, *whose, "--yes")
        typed("gates", "remove", gate, *whose, "--yes", code=1)
    assert [each["enabled"] for each in typed.json("gates", "show", *whose)] == [False, False]
    assert receiver(hub, whose) == {}


@RECEIVERS
def test_signatures_of_subscribers_and_services_are_set_shown_and_ended(
    hub: ServedHub, typed: Typed, tmp_path: Path, whose: tuple[str, ...]
) -> None:
    with_receivers(hub)
    assert typed.json("signatures", "show", *whose) == [{"header": None, "endsAt": None, "signed": False}]
    # Given schemes of which one ends
    world = hub.worlds["hub" if whose == SERVICE else "ironmq"].world
    end = iso_time(world.clock.now() + int(timedelta(days=9).total_seconds()) * 1000)
    both = [{"preset": "stripe", "secret": "whsec_old", "endsAt": end}, {"preset": "standard-webhooks"}]
    standard = ("--secret-file", secret_file(tmp_path, symmetric("1")))
    reported = typed("signatures", "set", "-", *standard, *whose, "--json", given=json.dumps(both).encode())
    assert json.loads(reported) == [{"header": "Stripe-Signature", "endsAt": end, "signed": True}]
    assert "whsec_" not in reported
    # When the list is sent again without secrets and ends, then the stored secrets stay
    again = json.dumps([{"preset": "stripe"}, {"preset": "standard-webhooks"}]).encode()
    [shown] = typed.json("signatures", "set", "-", *whose, given=again)
    assert (shown["signed"], shown["endsAt"]) == (True, None)
    # When there is no list, then a secret alone signs; and what cannot be is refused
    typed("signatures", "set", "-", *whose, given=b"[]", code=1)
    assert "signing" in typed.errors
    typed("signatures", "set", "-", *standard, *whose, given=b"[]")
    typed("signatures", "set", "-", *whose, given=b'[{"preset": "github"}]', code=1)
    for command in (("add", "github"), ("end", "stripe", end), ("remove", "stripe", "--yes")):
        typed("signatures", *command, *whose, code=2)
        assert "signatures set" in typed.errors
    # When it is ended, then nothing is left
    typed("signatures", "off", *whose, "--yes")
    assert receiver(hub, whose) == {}


def test_an_endpoint_is_always_signed(hub: ServedHub, typed: Typed, tmp_path: Path) -> None:
    with_endpoints(hub)
    typed("signatures", "off", *SHOP, "--yes", code=2)
    typed("signatures", "set", "-", "--secret-file", secret_file(tmp_path, "x"), *SHOP, given=b"[]", code=2)


def test_an_endpoint_may_be_shown_a_key(hub: ServedHub, typed: Typed, tmp_path: Path) -> None:
    with_endpoints(hub)
    key = tmp_path / "key.pem"
    key.write_text(base64.b64decode(secret_base64()).decode())
    typed("gates", "oauth", *GATE, "--by", "key", "--secret-file", str(key), "--key-id", "k1", *SHOP)
    [oauth, _] = typed.json("gates", "show", *SHOP)
    assert (oauth["enabled"], oauth["authMethod"]) == (True, "clientSecretJwt")


@pytest.mark.parametrize(
    "whose", [("--queue", "q", "--subscriber", "nobody"), ("--queue", "none", "--subscriber", "a"), ("--mapping", "no")]
)
def test_a_receiver_that_is_not_there_is_not_made(hub: ServedHub, typed: Typed, whose: tuple[str, ...]) -> None:
    with_receivers(hub)
    before = len(hub.writes)
    typed("gates", "oauth", *GATE, *whose, code=1)
    assert len(hub.writes) == before


def test_frames_are_set_by_project_and_application(hub: ServedHub, typed: Typed) -> None:
    with_endpoints(hub)
    assert typed.json("frames", "show") == []
    typed("frames", "set", "https://app.example.com", "http://localhost:8080")
    typed("frames", "set", "https://acme.example", "--app", "acme")
    assert [each["origin"] for each in typed.json("frames", "show")] == [
        "https://app.example.com",
        "http://localhost:8080",
    ]
    assert typed.json("frames", "show", "--app", "acme") == [{"origin": "https://acme.example"}]
    typed("frames", "set", "https://acme.example/path", code=1)
    assert typed.json("frames", "set", "--app", "acme") == []


@pytest.mark.parametrize(
    "whose",
    [
        ("--endpoint", "shop"),
        ("--operational",),
        ("--operational", "--app", "acme"),
        ("--operational", "--app", "acme", "--endpoint", "shop"),
        ("--queue", "q"),
        ("--subscriber", "shop"),
        ("--mapping", "m", "--queue", "q", "--subscriber", "shop"),
        ("--mapping", "m", "--app", "acme"),
    ],
)
def test_whose_it_is_has_to_be_clear(hub: ServedHub, typed: Typed, whose: tuple[str, ...]) -> None:
    typed("signatures", "show", *whose, code=2)
    typed("gates", "show", *whose, code=2)
    typed("gates", "show", code=2)
    assert hub.asked == []


def test_code_is_tried_on_a_file_and_kept(hub: ServedHub, typed: Typed, tmp_path: Path) -> None:
    # Given an endpoint, code and a payload in files
    with_endpoints(hub)
    code, payload = tmp_path / "code.js", tmp_path / "payload.json"
    code.write_text("function handler(webhook) { return webhook }")
    payload.write_text('{"n": 1}')
    # When it is tried, then it is shown what would be sent, and nothing is kept
    [tried] = typed.json("transformations", "try", str(code), str(payload), *SHOP, "--variable", "K=v")
    assert (tried["payload"], tried["cancel"]) == ('{"n": 1}', False)
    assert typed.json("transformations", "show", *SHOP)[0]["code"] is None
    # When it is set, then it is there, without the values of variables
    typed("transformations", "set", str(code), *SHOP, "--enable", "--variable", "K=v")
    assert typed.json("transformations", "show", *SHOP) == [
        {"enabled": True, "language": "javascript", "code": code.read_text(), "variables": "K"}
    ]
    typed("transformations", "set", *SHOP, "--disable")
    assert typed.json("transformations", "show", *SHOP)[0]["enabled"] is False
    # And a file of JSONata is known by its name
    expression = tmp_path / "code.JSONata"
    expression.write_text('{"payload": payload.n}')
    typed("transformations", "try", str(expression), str(payload), *SHOP)
    assert hub.worlds["webhooks"].world.ports.scripts.asked[-1]["language"] == "jsonata"
    typed("transformations", "set", str(expression), *SHOP)
    assert typed.json("transformations", "show", *SHOP)[0]["language"] == "jsonata"
    typed("transformations", "set", str(expression), *SHOP, "--language", "javascript")
    assert typed.json("transformations", "show", *SHOP)[0]["language"] == "javascript"
    # And what cannot be right is named
    typed("transformations", "set", *SHOP, code=2)
    typed("transformations", "set", *SHOP, "--variable", "K", code=2)
    payload.write_text("{")
    typed("transformations", "try", str(code), str(payload), *SHOP, code=1)
