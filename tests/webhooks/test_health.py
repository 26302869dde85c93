"""The health of endpoints, as shown to their owners."""

from __future__ import annotations

from tests.fakes.verifier import new_asymmetric
from tests.webhooks.world import WebhooksWorld

from pushhub.base.times import epoch_ms, iso_time

DEAD, WELL = "https://dead.example/in", "https://well.example/in"


def test_an_endpoint_that_is_well_has_nothing_to_tell() -> None:
    world = WebhooksWorld()
    app = world.make_app()
    endpoint = world.make_endpoint(app, WELL)
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/health") == {
        "disabled": False,
        "circuit": "closed",
        "circuitSince": None,
        "nextProbe": None,
        "failedProbes": 0,
        "failingSince": None,
        "disablesAt": None,
        "waiting": 0,
        "oldSecretsEnd": [],
    }
    assert world.ask("GET", "/health/endpoints") == {"data": []}


def test_an_endpoint_that_is_down_tells_of_its_circuit_and_what_waits_and_is_well_again_later() -> None:
    # Given an endpoint that fails for many messages
    world = WebhooksWorld()
    app = world.make_app(name="acme")
    world.make_endpoint(app, WELL)
    endpoint = world.make_endpoint(app, DEAD)
    world.sender.script(DEAD, 503)
    for number in range(60):
        world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {"n": number}})
    world.run(seconds=600)
    # Then it is shown since when it fails, when it is probed next and disabled, and how many messages wait
    health = world.ask("GET", f"/app/{app}/endpoint/{endpoint}/health")
    assert health["circuit"] == "open"
    assert health["failedProbes"] >= 1
    assert epoch_ms(health["nextProbe"]) > epoch_ms(health["circuitSince"])
    assert epoch_ms(health["disablesAt"]) - epoch_ms(health["failingSince"]) == 5 * 86_400_000
    assert 0 < health["waiting"] <= 60
    # And the project sees this endpoint and no other
    (troubled,) = world.ask("GET", "/health/endpoints")["data"]
    assert (troubled["appId"], troubled["appName"], troubled["endpoint"]["id"]) == (app, "acme", endpoint)
    assert troubled["circuit"] == "open"
    # When it is back and has everything, then nothing is shown any more
    world.sender.script(DEAD, 200)
    world.run(seconds=4 * 3600)
    assert world.ask("GET", "/health/endpoints") == {"data": []}
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/health")["waiting"] == 0


def test_endpoints_that_are_disabled_are_told_of_but_not_those_of_deleted_applications() -> None:
    world = WebhooksWorld()
    app, gone = world.make_app(), world.make_app(name="gone")
    endpoint = world.make_endpoint(app, WELL, disabled=True)
    world.make_endpoint(gone, DEAD, disabled=True)
    world.ask("DELETE", f"/app/{gone}")
    (troubled,) = world.ask("GET", "/health/endpoints")["data"]
    assert troubled["endpoint"]["id"] == endpoint
    assert troubled["endpoint"]["disabled"] is True
    # When it is enabled, then it is no longer shown
    world.ask("PATCH", f"/app/{app}/endpoint/{endpoint}", {"disabled": False})
    assert world.ask("GET", "/health/endpoints") == {"data": []}


def test_ends_of_signatures_are_told_until_they_are_there() -> None:
    world = WebhooksWorld()
    app = world.make_app()
    end = iso_time(world.clock.now() + 86_400_000)
    both = [{"preset": "stripe", "endsAt": end}, {"preset": "github"}]
    own = world.make_endpoint(app, WELL, signatures=[{**each, "secret": "s"} for each in both])
    inherits = world.make_endpoint(app, WELL)
    world.ask("PUT", f"/app/{app}/signatures", {"signatures": both})
    paths = [f"/app/{app}/endpoint/{each}/health" for each in (own, inherits)]
    assert [world.ask("GET", each)["signaturesEnd"] for each in paths] == 2 * [{"Stripe-Signature": end}]
    # And so are those of the project, where the application has none; but not where Standard Webhooks signs anyway
    world.ask("PUT", f"/app/{app}/signatures", {"signatures": []})
    world.ask("PUT", "/signatures", {"signatures": [{"preset": "slack", "endsAt": end}, {"preset": "github"}]})
    asymmetric = world.make_endpoint(app, WELL, secret=new_asymmetric()[0])
    paths.append(f"/app/{app}/endpoint/{asymmetric}/health")
    told = [world.ask("GET", each).get("signaturesEnd") for each in paths]
    assert told == [{"Stripe-Signature": end}, {"X-Slack-Signature": end}, None]
    world.run(seconds=86_400)
    assert not any("signaturesEnd" in world.ask("GET", each) for each in paths)


def test_earlier_secrets_are_told_of_while_they_sign() -> None:
    world = WebhooksWorld()
    app = world.make_app()
    endpoint = world.make_endpoint(app, WELL)
    world.ask("POST", f"/app/{app}/endpoint/{endpoint}/secret/rotate", {})
    (ends,) = world.ask("GET", f"/app/{app}/endpoint/{endpoint}/health")["oldSecretsEnd"]
    assert epoch_ms(ends) - world.clock.now() == 86_400_000
    world.run(seconds=86_401)
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/health")["oldSecretsEnd"] == []
