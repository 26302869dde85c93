"""The status of each route on success, as its protocol has it: descriptions and other tests take it from the route."""

from __future__ import annotations

from collections.abc import Mapping

from pushhub.runtime.routes import all_routes

USUAL: Mapping[str, Mapping[str, int]] = {
    "ironmq": {},
    "hub": {"POST": 201},
    "notifications": {"POST": 201, "DELETE": 204},
    "webhooks": {"DELETE": 204, "OPTIONS": 204},
}
"""By protocol and method, where it is not 200."""

OTHERS: Mapping[tuple[str, int], frozenset[str]] = {
    ("ironmq", 201): frozenset({"post_messages", "post_webhook", "create_project_alert"}),
    ("ironmq", 202): frozenset({"start_past_search"}),
    ("hub", 200): frozenset({"sign_up"}),
    ("notifications", 200): frozenset({"create_token", "unsubscribe"}),
    ("notifications", 426): frozenset({"consume"}),
    ("webhooks", 202): frozenset(
        {
            *("create_message", "resend_message", "create_stream_events"),
            *("recover", "replay_missing", "bulk_replay", "expunge_all", "count_by_app", "count_by_event_type"),
        }
    ),
    ("webhooks", 204): frozenset(
        {
            *("ping", "logout", "stream_logout", "expire_portal", "expire_stream", "import_environment", "acknowledge"),
            *("change_headers", "set_headers", "replace_operational_headers", "set_source_headers"),
            *("set_oauth", "set_mtls", "set_operational_oauth", "set_operational_mtls"),
            *("patch_transformation", "patch_source_transformation"),
            *("rotate_operational_secret", "rotate_source_secret"),
        }
    ),
}
"""Routes with another one, by protocol and status."""


def test_each_route_has_the_status_of_its_protocol() -> None:
    others = {f"{protocol}.{name}": status for (protocol, status), names in OTHERS.items() for name in names}
    routes = {each.name: each for each in all_routes()}
    assert {*others} <= {*routes}
    for name, route in routes.items():
        protocol, _, own = name.partition(".")
        # What the webhooks API makes is created.
        created = protocol == "webhooks" and own.startswith("create_")
        usual = 201 if created else USUAL[protocol].get(route.method, 200)
        assert route.status == others.get(name, usual), name
