"""The API of the export of spans: what may be set, what is shown, and whose it is."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.world import PROJECT
from tests.ironmq.api.hub import OTHER_PROJECT, Hub

COLLECTOR = "https://otel.example/v1/traces"
SECRET = "Bearer s3cret"


def put(hub: Hub, **settings: Any) -> Any:
    return hub.call("PUT", "/traces", {"traces": {"url": COLLECTOR, **settings}})


def opened(hub: Hub) -> dict[str, str]:
    export = hub.world.config.span_export(PROJECT)
    assert export is not None
    return hub.world.hub.engine.credentials.open(PROJECT, export.credentials).get("spans", {})


def test_an_export_is_set_shown_without_its_secrets_and_removed(hub: Hub) -> None:
    assert hub.call("GET", "/traces").body == {"traces": None}
    created = put(hub, headers={"Authorization": SECRET, "Accept": "*/*"})
    assert created.status == 200
    shown = {
        "url": COLLECTOR,
        "headers": {"Authorization": "********", "Accept": "*/*"},
        "on": True,
        "exported": 0,
        "dropped": 0,
        "failing": None,
    }
    assert created.body == hub.call("GET", "/traces").body == {"traces": shown}
    # And the secret is stored sealed
    assert "s3cret" not in repr(hub.world.config.span_export(PROJECT))
    assert opened(hub) == {"Authorization": SECRET}
    for _ in range(2):
        assert hub.call("DELETE", "/traces").status == 200
    assert hub.call("GET", "/traces").body == {"traces": None}


def test_a_header_that_is_sent_back_as_it_was_shown_keeps_its_value_at_the_same_place_only(hub: Hub) -> None:
    put(hub, headers={"Authorization": SECRET})
    kept = hub.call("PUT", "/traces", {"traces": {"url": COLLECTOR + "?x", "headers": {"Authorization": "********"}}})
    assert kept.status == 200
    assert opened(hub) == {"Authorization": SECRET}
    for url, name in (("https://evil.example/v1/traces", "Authorization"), (COLLECTOR, "X-Other")):
        refused = hub.call("PUT", "/traces", {"traces": {"url": url, "headers": {name: "********"}}})
        assert refused.status == 400
        assert name in refused.msg
    assert opened(hub) == {"Authorization": SECRET}
    # And whoever leaves headers out has none
    put(hub)
    assert opened(hub) == {}


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"url": ""}, "url"),
        ({"url": "ftp://otel.example"}, "url"),
        ({"url": "ironmq:///q"}, "url"),
        ({"url": "https://user:pass@otel.example/"}, "user name"),
        ({"url": "https://" + "x" * 2000}, "url"),
        ({"headers": {"a b": "1"}}, "eader"),
        ({"headers": {"Host": "x"}}, "Host"),
        ({"headers": {"content-encoding": "br"}}, "content-encoding"),
        ({"headers": {"Content-Type": "x"}}, "Content-Type"),
        ({"headers": {"X": "a\r\nb"}}, "eader"),
        ({"headers": {"X": 1}}, "eader"),
        ({"headers": {"X": "1", "x": "2"}}, "eader"),
        ({"headers": {f"X-{n}": "1" for n in range(11)}}, "headers"),
        ({"headers": {"X": "1" * 2001}}, "X"),
        ({"headers": []}, "headers"),
        ({"on": "yes"}, "on"),
    ],
)
def test_what_cannot_be_set_is_refused_with_its_name(hub: Hub, settings: dict[str, Any], word: str) -> None:
    answer = put(hub, **settings)
    assert answer.status == 400
    assert word in answer.msg
    assert hub.call("GET", "/traces").body == {"traces": None}


def test_the_guard_refuses_a_collector_in_the_hubs_own_network(hub: Hub) -> None:
    hub.refusals[COLLECTOR] = "otel.example is not allowed"
    answer = put(hub)
    assert answer.status == 400
    assert "not allowed" in answer.msg
    assert hub.checked == [(COLLECTOR, ())]


def test_an_export_is_its_projects_alone(hub: Hub) -> None:
    put(hub, headers={"Authorization": SECRET})
    assert hub.call("GET", "/traces", project=OTHER_PROJECT).body == {"traces": None}
    assert hub.call("DELETE", "/traces", project=OTHER_PROJECT).status == 200
    assert hub.call("GET", "/traces").body["traces"]["url"] == COLLECTOR
    for method in ("GET", "PUT", "DELETE"):
        answer = hub.send(method, f"/3/projects/{PROJECT}/traces", b"{}", token=hub.other_token)
        assert answer.status == 401
