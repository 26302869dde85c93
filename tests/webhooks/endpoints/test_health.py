"""The health of endpoints, as shown to their owners."""

from __future__ import annotations

from typing import Any

from tests.fakes import Reply
from tests.fakes.verifier import new_asymmetric
from tests.webhooks.world import WebhooksWorld

from pushhub.base.times import epoch_ms, iso_time

DEAD, WELL = "https://dead.example/in", "https://well.example/in"
TOKENS = "https://login.example/token"
NONE: dict[str, Any] = {"total": 0, "totals": {}, "data": []}
WELL_SHOWN = {
    "state": "delivering",
    "text": "delivering",
    "since": None,
    "until": None,
    "reason": "",
    "waiting": 0,
    "complete": True,
}


def everywhere(world: WebhooksWorld, app: str, endpoint: str, message: str = "") -> list[dict[str, Any]]:
    """The health of an endpoint wherever it is told of."""
    answer = [world.ask("GET", f"/app/{app}/endpoint/{endpoint}/health")["health"]]
    lists = [f"/app/{app}/endpoint", *([f"/app/{app}/msg/{message}/endpoint"] if message else [])]
    answer += [each["health"] for path in lists for each in world.ask("GET", path)["data"] if each["id"] == endpoint]
    assert len(answer) == 1 + len(lists)
    listed = [each for each in world.ask("GET", "/health/endpoints")["data"] if each["endpoint"]["id"] == endpoint]
    return answer + [each["health"] for each in listed]


def post(world: WebhooksWorld, app: str, count: int = 1) -> str:
    """Messages; the id of the last."""
    created = [
        world.ask("POST", f"/app/{app}/msg", {"eventType": "a", "payload": {"n": each}}) for each in range(count)
    ]
    return str(created[-1]["id"])


def test_behind_an_open_circuit_every_place_says_the_same_and_leaves_nothing_out(world: WebhooksWorld) -> None:
    # Given an endpoint whose circuit is open, with messages that were tried and one that never was
    app = world.make_app()
    world.make_endpoint(app, WELL)
    endpoint = world.make_endpoint(app, DEAD)
    world.sender.script(DEAD, 503)
    post(world, app, 30)
    world.run(seconds=900)
    last = post(world, app)
    world.run(seconds=5)
    # Then each list, page and answer has the same health, and all messages are counted, each once
    reported = everywhere(world, app, endpoint, last)
    assert len(reported) == 4
    assert [each for each in reported if each != reported[0]] == []
    assert (reported[0]["state"], reported[0]["text"]) == ("circuit_open", "failing, circuit open")
    assert (reported[0]["waiting"], reported[0]["complete"]) == (31, True)
    # And the message that was never tried there names this endpoint, with an attempt that is not in the past
    destinations = world.ask("GET", f"/app/{app}/msg/{last}/endpoint")["data"]
    (behind,) = (each for each in destinations if each["id"] == endpoint)
    assert (behind["status"], behind["statusText"]) == (1, "pending")
    assert behind["nextAttempt"] >= reported[0]["until"]
    assert len(destinations) == 2
    # And so do the messages that were
    ahead = world.ask("GET", f"/app/{app}/endpoint/{endpoint}/msg", status=3, limit=250)["data"]
    assert ahead
    assert all(epoch_ms(each["nextAttempt"]) >= epoch_ms(reported[0]["until"]) for each in ahead)


def test_an_endpoint_whose_token_server_is_down_is_told_of_with_the_reason(world: WebhooksWorld, app: str) -> None:
    # Given an endpoint behind OAuth whose token server is down: its circuit is closed, as it was never asked
    endpoint = world.make_endpoint(app, WELL)
    oauth = {"grantType": "clientCredentials", "authMethod": "clientSecretPost", "clientId": "c", "clientSecret": "s"}
    world.ask("PUT", f"/app/{app}/endpoint/{endpoint}/oauth", {**oauth, "tokenUrl": TOKENS})
    world.sender.script(TOKENS, 503)
    begun = world.clock.now()
    last = post(world, app, 3)
    world.run(seconds=15)
    # Then it needs attention, everywhere with the same words
    reported = everywhere(world, app, endpoint, last)
    assert len(reported) == 4
    assert [each for each in reported if each != reported[0]] == []
    assert (reported[0]["state"], reported[0]["text"]) == ("token_server_down", "waits for its token server")
    assert "503" in reported[0]["reason"]
    assert begun <= epoch_ms(reported[0]["since"]) <= begun + 2_000
    assert epoch_ms(reported[0]["until"]) > world.clock.now()
    assert reported[0]["waiting"] == 3
    # When the server is back, then nothing is the matter
    world.sender.script(TOKENS, Reply(status_code=200, body=b'{"access_token": "t", "token_type": "Bearer"}'))
    world.run(seconds=900)
    assert everywhere(world, app, endpoint, last) == 3 * [WELL_SHOWN]
    assert world.ask("GET", "/health/endpoints") == NONE


def test_one_that_fails_is_told_of_before_its_circuit_opens(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app, DEAD)
    world.sender.script(DEAD, 503)
    post(world, app, 2)
    world.run(seconds=2)
    reported = everywhere(world, app, endpoint)
    assert [(each["state"], each["waiting"]) for each in reported] == 3 * [("failing", 2)]
    assert reported[0]["since"] is not None


def test_all_that_need_attention_are_counted(world: WebhooksWorld) -> None:
    # Given 110 endpoints of which 39 fail in applications of their own, some of the others having failed before
    world.sender.script(DEAD, 503)
    for number in range(110):
        app = world.make_app(name=f"customer {number}")
        world.make_endpoint(app, DEAD if number < 39 else WELL)
        post(world, app)
    world.run(seconds=3)
    # Then all of them are shown and counted, and no other
    answer = world.ask("GET", "/health/endpoints")
    assert (answer["total"], answer["totals"], len(answer["data"])) == (39, {"failing": 39}, 39)


def test_an_endpoint_that_is_well_has_nothing_to_tell(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app, WELL)
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/health") == {
        "disabled": False,
        "health": WELL_SHOWN,
        "circuit": "closed",
        "circuitSince": None,
        "nextProbe": None,
        "failedProbes": 0,
        "failingSince": None,
        "disablesAt": None,
        "waiting": 0,
        "oldSecretsEnd": [],
    }
    assert world.ask("GET", "/health/endpoints") == NONE


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
    assert world.ask("GET", "/health/endpoints") == NONE
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/health")["waiting"] == 0


def test_endpoints_that_are_disabled_are_told_of_but_not_those_of_deleted_applications(world: WebhooksWorld) -> None:
    app, gone = world.make_app(), world.make_app(name="gone")
    endpoint = world.make_endpoint(app, WELL, disabled=True)
    world.make_endpoint(gone, DEAD, disabled=True)
    world.ask("DELETE", f"/app/{gone}")
    (troubled,) = world.ask("GET", "/health/endpoints")["data"]
    assert troubled["endpoint"]["id"] == endpoint
    assert troubled["endpoint"]["disabled"] is True
    # When it is enabled, then it is no longer shown
    world.ask("PATCH", f"/app/{app}/endpoint/{endpoint}", {"disabled": False})
    assert world.ask("GET", "/health/endpoints") == NONE


def test_ends_of_signatures_are_told_until_they_are_there(world: WebhooksWorld, app: str) -> None:
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
    answer = [world.ask("GET", each).get("signaturesEnd") for each in paths]
    assert answer == [{"Stripe-Signature": end}, {"X-Slack-Signature": end}, None]
    world.run(seconds=86_400)
    assert not any("signaturesEnd" in world.ask("GET", each) for each in paths)


def test_earlier_secrets_are_told_of_while_they_sign(world: WebhooksWorld, app: str) -> None:
    endpoint = world.make_endpoint(app, WELL)
    world.ask("POST", f"/app/{app}/endpoint/{endpoint}/secret/rotate", {})
    (ends,) = world.ask("GET", f"/app/{app}/endpoint/{endpoint}/health")["oldSecretsEnd"]
    assert epoch_ms(ends) - world.clock.now() == 86_400_000
    world.run(seconds=86_401)
    assert world.ask("GET", f"/app/{app}/endpoint/{endpoint}/health")["oldSecretsEnd"] == []
