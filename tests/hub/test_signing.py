"""Signed mappings, beside what every dialect promises (``tests/dialects``): retries and polls, forms, schemes with an
event type, and who is told of ends.
"""

from __future__ import annotations

import hmac
import json
from dataclasses import replace
from typing import Any

from tests.engine.world import PROJECT
from tests.fakes.verifier import symmetric, verified
from tests.hub.api.hub_store import Store
from tests.hub.world import URL

from pushhub.base.ports import PushRequest
from pushhub.base.signature_schemes import PRESETS
from pushhub.base.times import epoch_ms, iso_time
from pushhub.hub.wiring import Hub
from pushhub.webhooks.wiring import Webhooks

FIRST = symmetric("1")
MAPPING = {"name": "acme.import", "url": URL, "token": "t" * 32, "messages": ["order:new"]}


def create_mapping(store: Store, **fields: Any) -> dict[str, Any]:
    status, shown = store.call("POST", "/mappings", {"mapping": {**MAPPING, **fields}})
    assert status == 201, shown
    store.endpoints.setdefault(URL, lambda _: {})
    return dict(shown)


def change(store: Store, mapping: dict[str, Any], *, form: bool = False, **fields: Any) -> dict[str, Any]:
    status, shown = store.call("PUT", f"/mappings/{mapping['id']}", fields if form else {"mapping": fields}, form=form)
    assert status == 200, shown
    return dict(shown)


def sent(store: Store) -> PushRequest:
    """The request for a message pushed now."""
    store.push_message("order:new", number="R1")
    store.run(seconds=5)
    return store.sender.requests[-1]


def test_retries_and_polls_are_signed_with_what_they_send(store: Store) -> None:
    create_mapping(store, signing={"secret": FIRST})
    later = {"update_url": URL, "delay": 60}
    answers: list[Any] = [500, later, {}]
    store.endpoints[URL] = lambda _: answers.pop(0)
    store.push_message("order:new", number="R1")
    store.run(seconds=300)
    requests = store.sender.requests
    assert len(requests) == 3
    assert len({each.headers["webhook-id"] for each in requests}) == 1
    assert len({each.headers["webhook-timestamp"] for each in requests}) == 3
    assert all(verified(FIRST, each.headers, each.body) for each in requests)


def test_a_web_form_gives_a_secret_as_text(store: Store) -> None:
    mapping = create_mapping(store)
    text = json.dumps({"secret": FIRST, "grace_period": "60"})
    assert change(store, mapping, form=True, **{"mapping[signing]": text})["signing"] is True
    request = sent(store)
    assert verified(FIRST, request.headers, request.body)
    assert change(store, mapping, form=True, **{"mapping[signing]": "true"})["signing"] is True
    assert "signing" not in change(store, mapping, form=True, **{"mapping[signing]": "false"})


def test_a_service_is_signed_by_another_senders_scheme(store: Store) -> None:
    own = {
        "content": "{ts}|{event_type}|{url}|{body}",
        "header": {"name": "X-Sign", "value": "{ts}.{signatures}"},
        "secret": "12345678",
    }
    create_mapping(store, signing={"signatures": [own]})
    request = sent(store)
    at, _, signature = request.headers["X-Sign"].partition(".")
    content = f"{at}|order:new|{URL}|".encode() + request.body
    assert signature == hmac.digest(b"12345678", content, "sha256").hex()


def look(store: Store) -> int:
    """Go on to the next hour, and look for ends."""
    store.clock.set((store.clock.now() // 3_600_000 + 1) * 3_600_000)
    return store.hub.part(Hub).ends.run(lambda: 55_000)


def test_a_store_is_told_a_week_and_a_day_before_a_scheme_ends(store: Store) -> None:
    # Given a service with a scheme of its own that ends, one that inherits one that ends, and one that wants warnings
    watcher, end = "https://watch.example/in", iso_time(store.clock.now() + 20 * 86_400_000)
    store.endpoints[watcher] = lambda _: {}
    schemes = [{"preset": "stripe", "secret": "s", "endsAt": end}, {"preset": "github", "secret": "g"}]
    create_mapping(store, signing={"signatures": schemes})
    create_mapping(store, name="heir", signing={"secret": FIRST})
    create_mapping(store, url=watcher, name="watch", messages=["notification:warn"])
    inherited = (replace(PRESETS["slack"], ends_at=epoch_ms(end)), PRESETS["standard-webhooks"])
    store.hub.part(Webhooks).signature_defaults.set_of_project(PROJECT, inherited)
    # When the days pass, hour by hour
    for hour in range(21 * 24):
        look(store)
        if hour % 24 == 23:
            store.run(seconds=60)
    # Then there is a notification each time, once, in the list and at the service, and in the log
    names = ("signature Stripe-Signature for acme.import", "project's signature X-Slack-Signature")
    said = sorted(f"The {name} ends in {days}" for name in names for days in ("7 days", "1 day"))
    sent_to = [json.loads(each.body)["payload"]["subject"] for each in store.sender.requests_to(watcher)]
    assert sorted(sent_to) == said
    _, listed = store.call("GET", "/notifications")
    assert sorted(each["subject"] for each in listed["notifications"]) == said
    assert sorted(str(each["days_left"]) for each in store.telemetry.named("signature_ending")) == ["1", "1", "7", "7"]
    assert not store.ports.ends_of("hub").notes


def test_a_store_without_signed_services_is_told_nothing_of_what_it_could_inherit(store: Store) -> None:
    create_mapping(store)
    end = iso_time(store.clock.now() + 8 * 86_400_000)
    inherited = (replace(PRESETS["slack"], ends_at=epoch_ms(end)), PRESETS["standard-webhooks"])
    store.hub.part(Webhooks).signature_defaults.set_of_project(PROJECT, inherited)
    assert [look(store) for _ in range(9 * 24)] == [0] * 9 * 24
