"""A good request for every route of every protocol, with every field the route knows, and what it requires to exist."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.engine.world import PROJECT
from tests.fakes import FakeClock, Reply
from tests.fakes.private_keys import identity, secret_base64
from tests.hub.api.hub_store import Store
from tests.web.protocols import Answer, Served
from tests.web.shapes import filled, places, world_of

from pushhub.base.times import iso_time
from pushhub.engine.model.activity import HOUR_MS
from pushhub.runtime.routes import all_routes
from pushhub.web.api import Route

ROUTES: dict[str, Route[Any, Any]] = {each.name: each for each in all_routes()}
ENDPOINT = "https://a.example/in"
_NOW = FakeClock().now()
_HOUR = FakeClock().now() // HOUR_MS * HOUR_MS - 3 * HOUR_MS


@dataclass(frozen=True)
class Good:
    """A good request to one route.

    Attributes:
        prepare: Creates its object if it does not exist; returns the names for its path, and further fields for its
            body or query.
        body: Its JSON, None for none.
        query: Its query.
    """

    prepare: Callable[[Served], tuple[dict[str, str], dict[str, Any]]] = lambda _: ({}, {})
    body: Any = None
    query: Mapping[str, str] = field(default_factory=dict)


def ask(api: Served, name: str, body: Any = None, *, query: Mapping[str, str] | None = None, **names: str) -> Answer:
    """Make a request that must succeed."""
    answer = api.call(ROUTES[name], body, names=names, query=query)
    assert answer.status == ROUTES[name].status, (name, answer)
    return answer


GATES: dict[str, Any] = {
    "oauth": {
        "token_url": "https://login.example/token",
        "client_id": "pushhub",
        "client_secret": "s3cret",
        "auth_method": "client_secret_post",
        "grant_type": "client_credentials",
        "scopes": ["webhooks"],
        "extra_params": {"audience": "x"},
        "extra_headers": {"X-Key": "1"},
    },
    "mtls": {"identity": identity(), "ca": identity(key=False)},
}
"""Gates of a subscriber or service."""

# IronMQ

SUBSCRIBER = {
    "name": "shop",
    "url": ENDPOINT,
    "headers": {"X-Key": "1"},
    "timeout": 5,
    "dialect": "raw",
    "signing": {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "grace_period": 60},
    **GATES,
}
QUEUE = {
    "message_timeout": 60,
    "message_expiration": 3600,
    "dead_letter": {"queue_name": "dead", "max_reservations": 3},
    "alerts": [{"type": "fixed", "direction": "asc", "trigger": 1000, "queue": "alarms", "snooze": 5}],
    "type": "pull",
    "convert": False,
}
ALERT = {
    "name": "Shop fails",
    "measure": "failure_rate",
    "threshold": 50,
    "minutes": 15,
    "queue": "p",
    "subscriber": "shop",
    "url": ENDPOINT,
    "format": "slack",
}
SPAN_EXPORT = {"url": "https://otel.example/v1/traces", "headers": {"Authorization": "Bearer x"}, "on": True}
PUSH_QUEUE = {
    "message_timeout": 60,
    "push_type": "multicast",
    "type": "multicast",
    "push": {"subscribers": [SUBSCRIBER], "retries": 2, "retries_delay": 30, "error_queue": "errors", "eager": True},
    "search_fields": ["order"],
    "webhook": {"type": "github", "secret": "s3cret"},
}


def _pull(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    ask(api, "ironmq.put_queue", {"queue": {"type": "pull"}}, queue="q")
    return {"queue": "q"}, {}


def _push(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    ask(api, "ironmq.put_queue", {"queue": PUSH_QUEUE}, queue="p")
    return {"queue": "p"}, {}


def _gone(name: str) -> Callable[[Served], tuple[dict[str, str], dict[str, Any]]]:
    def prepare(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
        # Whatever a mutated request made of it
        api.call(ROUTES["ironmq.delete_queue"], names={"queue": name})
        return {"queue": name}, {}

    return prepare


def _changed(name: str, created: Mapping[str, Any]) -> Callable[[Served], tuple[dict[str, str], dict[str, Any]]]:
    def prepare(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
        api.call(ROUTES["ironmq.delete_queue"], names={"queue": name})
        ask(api, "ironmq.put_queue", {"queue": created}, queue=name)
        return {"queue": name}, {}

    return prepare


def _posted(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _pull(api)
    ask(api, "ironmq.delete_messages", {}, queue="q")
    message = ask(api, "ironmq.post_messages", {"messages": [{"body": "x"}]}, queue="q").body["ids"][0]
    return {**names, "message": message}, {}


def _reserved(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _posted(api)
    [taken] = ask(api, "ironmq.reserve_messages", {"n": 1}, queue="q").body["messages"]
    return names, {"reservation_id": taken["reservation_id"]}


def _reserved_listed(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, reservation = _reserved(api)
    return {"queue": names["queue"]}, {"ids": [{"id": names["message"], **reservation}]}


def _no_alert(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    _push(api)
    for each in api.world.ports.alerts.alerts(PROJECT):
        api.world.ports.alerts.remove(PROJECT, each.alert_id)
    return {}, {}


def _past_search(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    return {"search": ask(api, "ironmq.start_past_search", {"queue": "p"}).body["id"]}, {}


def _span_export(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    ask(api, "ironmq.set_span_export", {"traces": SPAN_EXPORT})
    return {}, {}


def _alert(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    _no_alert(api)
    created = ask(api, "ironmq.create_project_alert", {"alert": ALERT}).body["alert"]
    return {"alert": created["id"]}, {}


def _pushed(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _push(api)
    message = ask(api, "ironmq.post_messages", {"messages": [{"body": "x"}]}, queue="p").body["ids"][0]
    return {**names, "message": message}, {}


IRONMQ = {
    "ironmq.version": Good(),
    "ironmq.list_queues": Good(_pull, query={"per_page": "2", "previous": "a", "prefix": "q", "health": "true"}),
    "ironmq.put_queue": Good(_gone("new"), {"queue": QUEUE, "dry_run": False, "oauth": "unused"}),
    "ironmq.show_queue": Good(_push),
    "ironmq.change_queue": Good(_changed("changed", PUSH_QUEUE), {"queue": PUSH_QUEUE, "dry_run": False}),
    "ironmq.delete_queue": Good(_changed("gone", QUEUE), {"oauth": "unused"}),
    "ironmq.add_subscribers": Good(_push, {"subscribers": [{**SUBSCRIBER, "name": "second"}]}),
    "ironmq.replace_subscribers": Good(_push, {"subscribers": [SUBSCRIBER]}),
    "ironmq.remove_subscribers": Good(
        _changed("shrunk", {**PUSH_QUEUE, "push": {"subscribers": [SUBSCRIBER, {**SUBSCRIBER, "name": "second"}]}}),
        {"subscribers": [{"name": "second", "url": ""}]},
    ),
    "ironmq.pause": Good(_push, {"subscriber": "shop"}),
    "ironmq.resume": Good(_push, {"subscriber": "shop"}),
    "ironmq.show_health": Good(_push),
    "ironmq.list_deliveries": Good(_push, query={"state": "exhausted", "count": "10", "after": ""}),
    "ironmq.replay": Good(
        _push, {"subscriber": "shop", "n": 10, "after": "", "message_ids": ["1911857267695685120"], "dry_run": True}
    ),
    "ironmq.show_subscriber_activity": Good(
        _changed("orders", PUSH_QUEUE), query={"queue": "orders", "subscriber": "shop", "hours": "2"}
    ),
    "ironmq.post_messages": Good(
        _pull,
        {"messages": [{"body": "x", "delay": 5, "push_headers": {"X-Key": "1"}, "ordering_key": "k"}, {"body": "y"}]},
    ),
    "ironmq.post_webhook": Good(_pull),
    "ironmq.peek_messages": Good(_posted, query={"n": "2"}),
    "ironmq.delete_messages": Good(
        _reserved_listed, {"ids": [{"id": "", "reservation_id": "", "subscriber_name": None}]}
    ),
    "ironmq.reserve_messages": Good(_posted, {"n": 1, "timeout": 60, "wait": 0, "delete": False}),
    "ironmq.show_message": Good(_posted),
    "ironmq.delete_message": Good(_reserved, {"subscriber_name": None}, query={"subscriber_name": ""}),
    "ironmq.touch_message": Good(_reserved, {"timeout": 60}),
    "ironmq.release_message": Good(_reserved, {"delay": 5}),
    "ironmq.show_push_statuses": Good(_pushed),
    "ironmq.list_attempts": Good(_pushed),
    "ironmq.list_project_alerts": Good(_alert),
    "ironmq.create_project_alert": Good(_no_alert, {"alert": ALERT}),
    "ironmq.change_project_alert": Good(_alert, {"alert": ALERT}),
    "ironmq.delete_project_alert": Good(_alert),
    "ironmq.test_project_alert": Good(_alert),
    "ironmq.show_span_export": Good(_span_export),
    "ironmq.set_span_export": Good(body={"traces": SPAN_EXPORT}),
    "ironmq.delete_span_export": Good(_span_export),
    "ironmq.start_past_search": Good(
        body={
            "message_id": "6112035678239908289",
            "queue": "p",
            "subscriber": "shop",
            "state": "exhausted",
            "since": iso_time(_HOUR),
            "until": iso_time(_HOUR + HOUR_MS),
        }
    ),
    "ironmq.show_past_search": Good(_past_search, query={"after": ""}),
    "ironmq.search": Good(query={"value": "4711", "after": ""}),
    "ironmq.list_events": Good(
        query={
            "kind": "queue",
            "of": "q",
            "in_state": "delivered",
            "subscriber": "s",
            "type": "order.paid",
            "since": iso_time(_HOUR),
            "until": iso_time(_HOUR + HOUR_MS),
            "limit": "10",
            "after": "",
        }
    ),
    "ironmq.show_overview": Good(query={"previous": ""}),
    "ironmq.show_outages": Good(query={"queue": "q", "subscriber": "s"}),
    "ironmq.show_report": Good(),
    "ironmq.show_external_id": Good(),
    "ironmq.list_changes": Good(query={"after": "2026-11-18T11:00:00.000Z-e63e39bb267dbe46"}),
    "ironmq.show_report_table": Good(lambda _: ({"table": "queues"}, {})),
    "ironmq.show_activity": Good(query={"hours": "2"}),
}

# The hub

MAPPING = {
    **GATES,
    "signing": {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "grace_period": 60},
    "name": "acme.import",
    "url": ENDPOINT,
    "token": "t",
    "messages": ["order:new"],
    "parameters": [],
    "filters": [{"path": "payload.status", "operator": "eq", "value": "complete", "match_rule": "any"}],
    "identifiers": {"number": "payload.number"},
    "search_fields": ["number"],
    "options": {
        "retries_allowed": True,
        "allow_retries": True,
        "retry_base": 1,
        "retry_cap": 60,
        "max_attempts": 5,
        "lenient": False,
    },
    "enabled": True,
    "required": False,
}
SCHEDULER = {"key": "acme:poll", "count": 5, "interval": "minutes", "enabled": True}
PARAMETER = {"name": "acme.key", "value": "1", "data_type": "integer"}
INTEGRATION = {"name": "acme", "url": "https://acme.example", "token": "t", "category": "custom"}


def _existing(
    name: str, key: str, fields: Mapping[str, Any]
) -> Callable[[Served], tuple[dict[str, str], dict[str, Any]]]:
    """A new object, replacing an earlier one."""

    def prepare(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
        _none(f"{key}s")(api)
        return {"id": ask(api, name, {key: fields}).body["id"]}, {}

    return prepare


def _none(kind: str) -> Callable[[Served], tuple[dict[str, str], dict[str, Any]]]:
    def prepare(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
        for each in ask(api, f"hub.list_{kind}").body:
            if each.get("required"):
                # No caller may delete it.
                api.world.settings.delete_mapping(PROJECT, each["id"])
                continue
            ask(api, f"hub.delete_{kind.removesuffix('s')}", id=each["id"])
        return {}, {}

    return prepare


def _pushed_message(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    return {
        "id": ask(api, "hub.push_message", {"message": "order:new", "payload": {"number": "R1"}}).body["message_id"]
    }, {}


def _failing_message(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    """One that a person may handle: its endpoint failed."""
    store: Store = api.world
    _none("mappings")(api)
    store.map("order:new", says=lambda _: 500)
    _pushed_message(api)
    store.run(seconds=1)
    return {"id": store.call("GET", "/queues/accepted.json", state="failing")[1][0]["id"]}, {}


def _endpoint(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    described = {"name": "acme", "services": [{"name": "import", "path": "/import"}]}
    reply = Reply(status_code=200, body=json.dumps(described).encode())
    api.world.sender.script(f"{INTEGRATION['url']}/endpoint.json", reply)
    return _none("integrations")(api)


def _integration(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    _endpoint(api)
    return {"id": ask(api, "hub.register_integration", {"integration": INTEGRATION}).body["id"]}, {}


HUB = {
    "hub.push_message": Good(
        body={
            "message": "order:new",
            "payload": {"number": "R1", "nested": {"a": [1, "b"]}},
            "origin": "shop",
            "message_id": "x",
            "more": 1,
        }
    ),
    "hub.show_message": Good(_pushed_message),
    "hub.handle_message": Good(_failing_message, {"attempt_now": True, "archive": False}),
    "hub.list_message_types": Good(),
    "hub.count_messages": Good(),
    "hub.show_queue": Good(
        lambda _: ({"id": "incoming"}, {}),
        query={
            "page": "1",
            "message": "order:new",
            "filter_state": "completed",
            "state": "completed",
            "mapping_id": "1" * 24,
            "consumer_class": "1" * 24,
            "source": "incoming",
            "message_id": "1" * 24,
            "start_date": "2026-11-21T00:00:00+00:00",
            "end_date": "2026-11-22T00:00:00+00:00",
        },
    ),
    "hub.list_notifications": Good(
        query={"page": "1", "level": "info", "reference_type": "Order", "reference_token": "R1"}
    ),
    "hub.list_mappings": Good(),
    "hub.make_mapping": Good(_none("mappings"), {"mapping": MAPPING}),
    "hub.show_mapping": Good(_existing("hub.make_mapping", "mapping", MAPPING)),
    "hub.change_mapping": Good(_existing("hub.make_mapping", "mapping", MAPPING), {"mapping": MAPPING}),
    "hub.delete_mapping": Good(_existing("hub.make_mapping", "mapping", MAPPING)),
    "hub.list_schedulers": Good(),
    "hub.make_scheduler": Good(_none("schedulers"), {"scheduler": SCHEDULER}),
    "hub.show_scheduler": Good(_existing("hub.make_scheduler", "scheduler", SCHEDULER)),
    "hub.change_scheduler": Good(_existing("hub.make_scheduler", "scheduler", SCHEDULER), {"scheduler": SCHEDULER}),
    "hub.delete_scheduler": Good(_existing("hub.make_scheduler", "scheduler", SCHEDULER)),
    "hub.list_parameters": Good(),
    "hub.make_parameter": Good(_none("parameters"), {"parameter": PARAMETER}),
    "hub.show_parameter": Good(_existing("hub.make_parameter", "parameter", PARAMETER)),
    "hub.change_parameter": Good(_existing("hub.make_parameter", "parameter", PARAMETER), {"parameter": PARAMETER}),
    "hub.delete_parameter": Good(_existing("hub.make_parameter", "parameter", PARAMETER)),
    "hub.list_integrations": Good(query={"global": ""}),
    "hub.register_integration": Good(_endpoint, {"integration": INTEGRATION}),
    "hub.show_integration": Good(_integration),
    "hub.change_integration": Good(_integration, {"integration": INTEGRATION}),
    "hub.delete_integration": Good(_integration),
    "hub.sign_up": Good(
        _integration,
        {"parameters": {"api_key": "1" * 20}, "enabled": ["import"]},
    ),
    "hub.enable_mappings": Good(_integration),
    "hub.disable_mappings": Good(_integration),
}

# Notifications

SUBSCRIPTION = {
    "context": "mo",
    "subscription": "orders",
    "source": {"id": "1"},
    "subscriptionFilter": {"apis": ["alarms", "measurements"], "typeFilter": "'a' or 'b'"},
    "fragmentsToCopy": ["c8y_Temperature"],
    "nonPersistent": False,
}
NOTIFICATION = {
    "api": "alarms",
    "source": {"id": "1"},
    "action": "UPDATE",
    "data": {"id": "7", "type": "a", "c8y_Temperature": {"T": {"value": 1.5}}},
}
CONSUMER = {
    "subscriber": "shop",
    "subscription": "orders",
    "type": "notification",
    "signed": True,
    "shared": False,
    "nonPersistent": False,
    "expiresInMinutes": 60,
}


def _no_rules(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    rules = ask(api, "notifications.list_subscriptions", query={"pageSize": "2000"}).body["subscriptions"]
    for each in rules:
        ask(api, "notifications.delete_subscription", subscription=each["id"])
    return {}, {}


def _rule(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    _no_rules(api)
    return {"subscription": ask(api, "notifications.create_subscription", SUBSCRIPTION).body["id"]}, {}


def _rules_of_all_kinds(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    _rule(api)
    tenant = {"context": "tenant", "subscriptionFilter": {"apis": ["*"], "typeFilter": "a"}}
    ask(api, "notifications.create_subscription", {**tenant, "subscription": "all"})
    ask(api, "notifications.create_subscription", {"context": "tenant", "subscription": "plain"})
    for topic in ("orders", "all", "plain"):
        # There must be a subscriber for what is published
        token = ask(api, "notifications.create_token", {"subscriber": "shop", "subscription": topic}).body["token"]
        if topic not in api.notes:
            api.world.consumers.connect(token, "", topic)
            api.notes.add(topic)
    return {}, {}


def _token(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    return {}, {"token": ask(api, "notifications.create_token", CONSUMER).body["token"]}


def _subscriber(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    _, shown = _token(api)
    api.world.consumers.connect(shown["token"], "", "a")
    api.world.consumers.disconnect("a")
    return {}, shown


NOTIFICATIONS = {
    "notifications.root": Good(),
    "notifications.create_subscription": Good(_no_rules, SUBSCRIPTION),
    "notifications.list_subscriptions": Good(
        _rule,
        query={
            "source": "1",
            "context": "mo",
            "subscription": "orders",
            "typeFilter": "a",
            "currentPage": "1",
            "pageSize": "5",
            "withTotalElements": "true",
            "withTotalPages": "true",
        },
    ),
    "notifications.delete_subscriptions": Good(_rule, query={"source": "1", "context": "mo"}),
    "notifications.show_subscription": Good(_rule),
    "notifications.delete_subscription": Good(_rule),
    "notifications.publish": Good(
        _rules_of_all_kinds, [NOTIFICATION, {"api": "events", "source": "2", "data_base64": "eA=="}]
    ),
    "notifications.create_token": Good(body=CONSUMER),
    "notifications.show_token": Good(_token, query={"token": ""}),
    "notifications.unsubscribe": Good(_subscriber, query={"token": ""}),
    "notifications.list_subscribers": Good(_subscriber, query={"subscription": "orders"}),
    "notifications.consume": Good(_token, query={"token": ""}),
}

# Webhooks

APPLICATION = {
    "name": "Acme",
    "uid": "acme",
    "throttleRate": 5,
    "rateLimit": 5,
    "metadata": {"a": "b"},
    "redaction": {"payload": ["a.b"], "answers": ["**.c"]},
    "searchFields": ["order.id"],
    "portalConsent": False,
    "eager": False,
}
EVENT_TYPE = {
    "name": "user.created",
    "description": "A user was created",
    "archived": False,
    "deprecated": False,
    "schemas": {"1": {"type": "object", "properties": {"a": {"type": "string"}}, "examples": [{"a": "b"}]}},
    "featureFlag": "beta",
    "featureFlags": ["beta"],
    "groupName": "users",
    "schemaEnforcement": "warn",
}
WEBHOOK_ENDPOINT = {
    "url": ENDPOINT,
    "description": "theirs",
    "uid": "shop",
    "disabled": False,
    "eventTypes": ["user.created"],
    "filterTypes": ["user.created"],
    "channels": ["a"],
    "throttleRate": 5,
    "rateLimit": 5,
    "version": 1,
    "metadata": {"a": "b"},
    "payloadFilters": [{"path": "a.b.0", "operator": "in", "value": [1, "x"]}],
    "cloudEvents": {"mode": "structured", "consent": False},
}
SECRET = {"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "headers": {"X-Key": "1"}}
OWN_SIGNATURE = {
    "content": "{ts}.{header:x-kind}.{body}",
    "hash": "sha256",
    "encoding": "hex",
    "key": {"prefix": "key_", "encoding": "utf8"},
    "header": {"name": "X-Sign", "value": "t={ts},{signatures}", "each": "v={signature}", "joiner": ",", "keys": "all"},
    "headers": {"X-Kind": "{event_type}"},
    "query": {},
    "legacy": True,
    "oldSecretsEnd": [],
    "secret": "key_0123456789",
    "gracePeriodSeconds": 60,
}
DEFAULT_SIGNATURE = {
    "content": "{ts}.{body}",
    "key": {"prefix": "whsec_", "encoding": "base64"},
    "header": {"name": "X-Sign"},
    "headers": {"X-Kind": "{event_type}"},
}
OAUTH = {
    "grantType": "clientCredentials",
    "authMethod": "clientSecretJwt",
    "clientId": "pushhub",
    "clientSecret": None,
    "refreshToken": None,
    "tokenUrl": "https://login.example/token",
    "scopes": ["a"],
    "extraParams": {"resource": "b"},
    "extraHeaders": {"X-Key": "1"},
    "jwtParams": {
        "secretBase64": secret_base64(),
        "signingAlgorithm": "RS256",
        "secretId": "key-1",
        "audience": "https://login.example",
        "tokenExpirySecs": 60,
    },
}
LIST = {"limit": "2", "iterator": "", "order": "ascending"}


def _no_application(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    for each in ask(api, "webhooks.list_applications", query={"limit": "250"}).body["data"]:
        ask(api, "webhooks.delete_application", app=each["id"])
    return {}, {}


def _application(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    _no_application(api)
    return {"app": ask(api, "webhooks.create_application", APPLICATION).body["id"]}, {}


def _with_event_type(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    api.call(ROUTES["webhooks.replace_event_type"], EVENT_TYPE, names={"event_type": "user.created"})
    return _application(api)


def _webhook_endpoint(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _with_event_type(api)
    created = ask(api, "webhooks.create_endpoint", {**WEBHOOK_ENDPOINT, **SECRET}, app=names["app"])
    return {**names, "endpoint": created.body["id"]}, {}


SINK = {
    "type": "sqs",
    "uid": "q",
    "status": "enabled",
    "batchSize": 10,
    "maxWaitSecs": 5,
    "eventTypes": ["user.created"],
    "channels": ["a"],
    "metadata": {"a": "b"},
    "config": {
        "queueUrl": "https://sqs.eu-west-1.amazonaws.com/111122223333/orders",
        "region": "eu-west-1",
        "roleArn": "arn:aws:iam::111122223333:role/hub",
    },
}


TRANSFORMATION = {
    "code": "function handler(webhook) { return webhook }",
    "enabled": True,
    "variables": {"KEY": "v"},
    "language": "javascript",
}
TRIAL = {
    "code": "function handler(webhook) { return webhook }",
    "eventType": "user.created",
    "payload": {"a": 1},
    "channels": ["a"],
    "variables": {"KEY": "v"},
    "language": "javascript",
}


def _sink(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _with_event_type(api)
    created = ask(api, "webhooks.create_sink", {**SINK, "uid": None}, app=names["app"])
    return {**names, "destination": created.body["id"]}, {}


def _certified(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, body = _webhook_endpoint(api)
    ask(api, "webhooks.set_mtls", {"identity": identity()}, app=names["app"], endpoint=names["endpoint"])
    return names, body


def _gated(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, body = _webhook_endpoint(api)
    ask(api, "webhooks.set_oauth", OAUTH, app=names["app"], endpoint=names["endpoint"])
    return names, body


def _asymmetric(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _webhook_endpoint(api)
    key = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
    ask(api, "webhooks.rotate_secret", {"key": key}, app=names["app"], endpoint=names["endpoint"])
    return {"project": api.project, **names}, {}


def _asked(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _with_event_type(api)
    wanted = {"mode": "binary", "consent": True, "callback": True}
    created = ask(api, "webhooks.create_endpoint", {**WEBHOOK_ENDPOINT, "cloudEvents": wanted}, app=names["app"])
    api.world.run(seconds=1)
    callback = api.world.sender.requests[-1].headers["WebHook-Request-Callback"]
    return {
        "project": api.project,
        "app": names["app"],
        "endpoint": created.body["id"],
        "secret": callback.rpartition("/")[2],
    }, {}


SOURCE: dict[str, Any] = {
    "name": "Our pages",
    "uid": None,
    "metadata": {"team": "x"},
    "type": "meta",
    "config": {"secret": "app-secret", "verifyToken": "mine"},
}
SOURCE_ENDPOINT: dict[str, Any] = {
    "url": ENDPOINT,
    "description": "x",
    "uid": None,
    "disabled": False,
    "throttleRate": 5,
    "metadata": {"a": "b"},
}


def _source(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    return {"source": ask(api, "webhooks.create_source", SOURCE).body["id"]}, {}


def _source_endpoint(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _source(api)
    created = ask(api, "webhooks.create_source_endpoint", SOURCE_ENDPOINT, source=names["source"])
    return {**names, "endpoint": created.body["id"]}, {}


def _at_source(api: Served, wanted: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    url = ask(api, "webhooks.create_source", wanted).body["ingestUrl"]
    return dict(zip(("project", "source", "token"), url.split("/")[-3:], strict=True)), {}


def _open_source(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    return _at_source(api, {"name": "Anybody", "type": "generic-webhook"})


def _asking_source(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    return _at_source(api, SOURCE)


STREAM: dict[str, Any] = {"name": "Orders", "uid": None, "metadata": {"team": "x"}}
STREAM_EVENT_TYPE: dict[str, Any] = {
    "name": "user.created",
    "description": "A user",
    "featureFlags": ["beta"],
    "deprecated": False,
    "archived": False,
}
STREAM_EVENTS: dict[str, Any] = {
    "events": [{"eventType": "user.created", "payload": '{"id": 1}', "channels": ["eu"]}],
    "stream": {"name": "Orders"},
}


def _stream(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    return {"stream": ask(api, "webhooks.create_stream", STREAM).body["id"]}, {}


def _named_stream(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    api.call(ROUTES["webhooks.replace_stream"], {**STREAM, "uid": "orders"}, names={"stream": "orders"})
    return {"stream": "orders"}, {}


STREAM_SINK: dict[str, Any] = {
    "type": "http",
    "config": {"url": ENDPOINT, "headers": {"X-Key": "1"}, "key": SECRET["secret"]},
    "uid": None,
    "status": "enabled",
    "batchSize": 7,
    "maxWaitSecs": 60,
    "eventTypes": ["user.created"],
    "channels": ["eu"],
    "metadata": {"a": "b"},
}


def _typed_stream(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    _event_type(api)
    return _stream(api)


def _stream_sink(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _typed_stream(api)
    return {
        **names,
        "sink": ask(api, "webhooks.create_stream_sink", STREAM_SINK, stream=names["stream"]).body["id"],
    }, {}


def _poller(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _stream(api)
    wanted = {"type": "poller", "config": {}}
    return {**names, "sink": ask(api, "webhooks.create_stream_sink", wanted, stream=names["stream"]).body["id"]}, {}


def _waiting_sink(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _poller(api)
    ask(api, "webhooks.create_stream_events", {"events": STREAM_EVENTS["events"]}, stream=names["stream"])
    api.world.clock.advance(ms=5_000)
    return names, {}


def _stream_event(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _stream(api)
    ask(api, "webhooks.create_stream_events", {"events": STREAM_EVENTS["events"]}, stream=names["stream"])
    [event] = ask(api, "webhooks.list_stream_events", stream=names["stream"]).body["data"]
    return {**names, "message": event["id"]}, {}


def _event_type(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    api.call(ROUTES["webhooks.replace_event_type"], EVENT_TYPE, names={"event_type": "user.created"})
    return {"event_type": "user.created"}, {}


def _no_event_type(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    for each in ask(api, "webhooks.list_event_types", query={"include_archived": "true"}).body["data"]:
        ask(api, "webhooks.delete_event_type", event_type=each["name"], query={"expunge": "true"})
    return {}, {}


REPLAY = {
    "since": "2026-11-10T00:00:00Z",
    "until": "2026-11-18T11:06:40Z",
    "rate": 5,
    "dryRun": True,
    "unlimited": False,
}
OPERATIONAL = {
    **{name: value for name, value in WEBHOOK_ENDPOINT.items() if name != "channels"},
    "eventTypes": ["endpoint.created"],
    "filterTypes": ["endpoint.created"],
}


def _webhook_task(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    """A running task: at one message per second, it has to wait after the first."""
    names, _ = _webhook_endpoint(api)
    for _ in range(3):
        ask(api, "webhooks.create_message", {**MESSAGE, "eventId": None}, app=names["app"])
        ask(api, "webhooks.list_messages", app=names["app"])
    api.world.clock.advance(seconds=1)
    body = {"since": "2026-11-10T00:00:00Z", "rate": 1, "dryRun": True}
    begun = ask(api, "webhooks.bulk_replay", body, app=names["app"], endpoint=names["endpoint"])
    return {"task": begun.body["id"]}, {}


def _no_operational_endpoint(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    for each in ask(api, "webhooks.list_operational_endpoints").body["data"]:
        ask(api, "webhooks.delete_operational_endpoint", endpoint=each["id"])
    return {}, {}


def _operational_endpoint(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    _no_operational_endpoint(api)
    created = ask(api, "webhooks.create_operational_endpoint", {**OPERATIONAL, **SECRET})
    return {"endpoint": created.body["id"]}, {}


def _operational_gated(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, body = _operational_endpoint(api)
    ask(api, "webhooks.set_operational_oauth", OAUTH, endpoint=names["endpoint"])
    return names, body


def _operational_certified(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, body = _operational_endpoint(api)
    ask(api, "webhooks.set_operational_mtls", {"identity": identity()}, endpoint=names["endpoint"])
    return names, body


def _polled(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _webhook_message(api)
    return {"app": names["app"], "sink": "poller", "consumer": "one"}, {}


APP_INTEGRATION = {"name": "Order desk", "featureFlags": ["beta"]}


CONNECTOR: dict[str, Any] = {
    "name": "Chat",
    "kind": "Slack",
    "logo": "data:image/svg+xml;base64,PHN2Zy8+",
    "description": "Posts a line into a channel",
    "instructions": "Make a webhook in your chat, and enter its URL.",
    "allowedEventTypes": ["user.created"],
    "transformation": "function handler(webhook) { return webhook }",
    "featureFlags": ["beta"],
}


def _connector(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    return {"connector": ask(api, "webhooks.create_connector", CONNECTOR).body["id"]}, {}


def _app_integration(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _application(api)
    created = ask(api, "webhooks.create_integration", APP_INTEGRATION, app=names["app"]).body["id"]
    return {**names, "integration": created}, {}


def _autoconfig(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _with_event_type(api)
    return {**names, "autoconfig": ask(api, "webhooks.create_autoconfig", {}, app=names["app"]).body["id"]}, {}


def _with_its_token(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    """The caller presents the key in an autoconfiguration's token, a new one each time."""
    api.token = api.world.token
    names, _ = _with_event_type(api)
    created = ask(api, "webhooks.create_autoconfig", {"featureFlags": ["beta"]}, app=names["app"]).body
    api.token = json.loads(base64.b64decode(created["token"].removeprefix("auto_v2_")))["tok"]
    return {**names, "autoconfig": created["id"]}, {}


def _polling_endpoint(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _with_event_type(api)
    created = ask(api, "webhooks.create_sink", {"type": "pollingEndpoint"}, app=names["app"])
    return {**names, "sink": created.body["id"], "consumer": "c"}, {}


def _leased(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _polling_endpoint(api)
    ask(api, "webhooks.create_message", {"eventType": "user.created", "payload": {}}, app=names["app"])
    api.world.clock.advance(ms=5_000)
    ask(api, "webhooks.lease", app=names["app"], sink=names["sink"], consumer="c")
    return names, {}


def _own_stream_token(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    """The caller presents a stream's token, a new one each time."""
    api.token = api.world.token
    names, _ = _stream(api)
    api.token = ask(api, "webhooks.stream_access", {}, stream=names["stream"]).body["token"]
    return {}, {}


def _in_a_portal(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    """The caller presents an application's token, a new one each time."""
    api.token = api.world.token
    names, _ = _application(api)
    api.token = ask(api, "webhooks.dashboard_access", app=names["app"]).body["token"]
    return {}, {}


MESSAGE = {
    "eventType": "user.created",
    "payload": {"a": {"b": [1, "c"]}},
    "eventId": "e-1",
    "channels": ["a"],
    "tags": ["t"],
    "payloadRetentionPeriod": 5,
    "ttl": 60,
    "deliverAt": "2026-11-18T12:00:00Z",
    "orderingKey": "customer:7",
    "application": {"name": "Acme", "uid": "acme"},
    "transformationsParams": {"rawPayload": "x", "headers": {"content-type": "text/plain"}},
}
TIMED = {"before": "2099-01-01T00:00:00Z", "after": "2026-01-01T00:00:00Z"}
CHOSEN = {"channel": "a", "tag": "t", "event_types": "user.created", "with_content": "true"}
ATTEMPTS = {
    **{"limit": "2", "iterator": "", "status": "0", "status_code_class": "200"},
    **{"with_msg": "true", "expanded_statuses": "true"},
}


def _webhook_message(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _webhook_endpoint(api)
    posted = ask(api, "webhooks.create_message", {**MESSAGE, "deliverAt": None}, app=names["app"]).body
    return {**names, "message": posted["id"]}, {}


def _attempted(api: Served) -> tuple[dict[str, str], dict[str, Any]]:
    names, _ = _webhook_message(api)
    api.world.run(seconds=1)
    answer = api.call(ROUTES["webhooks.list_attempts_of_message"], names=names)
    return {**names, "attempt": answer.body["data"][0]["id"]}, {}


WEBHOOKS = {
    "webhooks.create_message": Good(_with_event_type, MESSAGE, {"with_content": "true"}),
    "webhooks.list_messages": Good(_webhook_message, query={"limit": "2", "iterator": "", **TIMED, **CHOSEN}),
    "webhooks.show_message": Good(_webhook_message, query={"with_content": "true"}),
    "webhooks.expunge_message": Good(_webhook_message),
    "webhooks.expunge_messages": Good(_webhook_message, {"ids": ["msg_none"]}),
    "webhooks.precheck_message": Good(_webhook_endpoint, {"eventType": "user.created", "channels": ["a"]}),
    "webhooks.list_attempts_of_endpoint": Good(_attempted, query={**ATTEMPTS, **TIMED, **CHOSEN}),
    "webhooks.list_attempts_of_message": Good(_attempted, query={**ATTEMPTS, **TIMED, **CHOSEN, "endpoint_id": "shop"}),
    "webhooks.list_attempts": Good(_attempted, query={**ATTEMPTS, **TIMED, **CHOSEN}),
    "webhooks.list_attempts_at_endpoint": Good(_attempted, query={**ATTEMPTS, **TIMED, **CHOSEN}),
    "webhooks.list_attempted_messages": Good(
        _attempted, query={"limit": "2", "iterator": "", "status": "0", **TIMED, **CHOSEN}
    ),
    "webhooks.list_destinations": Good(_attempted, query={"limit": "2", "iterator": ""}),
    "webhooks.show_attempt": Good(
        _attempted, query={"with_content": "true", "with_msg": "true", "expanded_statuses": "true"}
    ),
    "webhooks.expunge_attempt": Good(_attempted),
    "webhooks.resend_message": Good(_attempted),
    "webhooks.show_stats": Good(_attempted, query={"since": "2026-11-18T00:00:00Z", "until": "2026-11-18T11:06:40Z"}),
    "webhooks.send_example": Good(
        _webhook_endpoint, {"eventType": "user.created", "exampleIndex": 0, "payload": {"a": "b"}}
    ),
    "webhooks.health": Good(),
    "webhooks.ping": Good(),
    "webhooks.list_troubled_endpoints": Good(_webhook_endpoint),
    "webhooks.show_endpoint_health": Good(_webhook_endpoint),
    "webhooks.create_application": Good(_no_application, APPLICATION, {"get_if_exists": "false"}),
    "webhooks.list_applications": Good(_application, query=LIST),
    "webhooks.show_application": Good(_application),
    "webhooks.replace_application": Good(_application, APPLICATION),
    "webhooks.patch_application": Good(_application, APPLICATION),
    "webhooks.delete_application": Good(_application),
    "webhooks.create_endpoint": Good(_with_event_type, {**WEBHOOK_ENDPOINT, **SECRET}),
    "webhooks.list_endpoints": Good(_webhook_endpoint, query=LIST),
    "webhooks.show_endpoint": Good(_webhook_endpoint),
    "webhooks.replace_endpoint": Good(_webhook_endpoint, WEBHOOK_ENDPOINT),
    "webhooks.patch_endpoint": Good(_webhook_endpoint, WEBHOOK_ENDPOINT),
    "webhooks.delete_endpoint": Good(_webhook_endpoint),
    "webhooks.show_external_id": Good(_application),
    "webhooks.create_sink": Good(_with_event_type, SINK),
    "webhooks.list_sinks": Good(_sink, query=LIST),
    "webhooks.show_sink": Good(_sink),
    "webhooks.replace_sink": Good(_sink, SINK),
    "webhooks.patch_sink": Good(_sink, SINK),
    "webhooks.delete_sink": Good(_sink),
    "webhooks.rotate_sink_secret": Good(_sink, {"key": SECRET["secret"], "gracePeriodSeconds": 60}),
    "webhooks.show_sink_transformation": Good(_sink),
    "webhooks.set_sink_transformation": Good(_sink, TRANSFORMATION),
    "webhooks.simulate_sink_transformation": Good(_sink, TRIAL),
    "webhooks.show_transformation": Good(_webhook_endpoint),
    "webhooks.patch_transformation": Good(_webhook_endpoint, TRANSFORMATION),
    "webhooks.simulate_transformation": Good(_webhook_endpoint, TRIAL),
    "webhooks.show_secret": Good(_webhook_endpoint),
    "webhooks.rotate_secret": Good(_webhook_endpoint, {"key": SECRET["secret"], "gracePeriodSeconds": 60}),
    "webhooks.show_signatures": Good(_webhook_endpoint),
    "webhooks.set_signatures": Good(
        _webhook_endpoint,
        {"signatures": [{**OWN_SIGNATURE, "endsAt": iso_time(_NOW + 86_400_000)}, {"preset": "standard-webhooks"}]},
    ),
    "webhooks.show_application_signatures": Good(_application),
    "webhooks.set_application_signatures": Good(_application, {"signatures": [DEFAULT_SIGNATURE]}),
    "webhooks.show_project_signatures": Good(),
    "webhooks.set_project_signatures": Good(body={"signatures": [DEFAULT_SIGNATURE]}),
    "webhooks.show_oauth": Good(_gated),
    "webhooks.set_oauth": Good(_webhook_endpoint, OAUTH),
    "webhooks.remove_oauth": Good(_gated),
    "webhooks.show_oauth_config": Good(_gated),
    "webhooks.show_mtls": Good(_certified),
    "webhooks.set_mtls": Good(_certified, {"identity": identity(), "ca": identity(key=False)}),
    "webhooks.remove_mtls": Good(_certified),
    "webhooks.show_mtls_config": Good(_certified),
    "webhooks.show_operational_oauth": Good(_operational_gated),
    "webhooks.set_operational_oauth": Good(_operational_endpoint, OAUTH),
    "webhooks.remove_operational_oauth": Good(_operational_gated),
    "webhooks.show_operational_oauth_config": Good(_operational_gated),
    "webhooks.show_operational_mtls": Good(_operational_certified),
    "webhooks.set_operational_mtls": Good(_operational_endpoint, {"identity": identity(), "ca": identity(key=False)}),
    "webhooks.remove_operational_mtls": Good(_operational_certified),
    "webhooks.show_operational_mtls_config": Good(_operational_certified),
    "webhooks.show_public_keys": Good(_asymmetric),
    "webhooks.consent": Good(_asked),
    "webhooks.consent_by_link": Good(_asked),
    "webhooks.show_headers": Good(_webhook_endpoint),
    "webhooks.set_headers": Good(_webhook_endpoint, {"headers": {"X-Key": "1"}}),
    "webhooks.change_headers": Good(_webhook_endpoint, {"headers": {"X-Key": "1"}, "deleteHeaders": ["X-Other"]}),
    "webhooks.create_source": Good(body=SOURCE),
    "webhooks.list_sources": Good(_source, query=LIST),
    "webhooks.show_source": Good(_source),
    "webhooks.replace_source": Good(_source, SOURCE),
    "webhooks.delete_source": Good(_source),
    "webhooks.rotate_source_token": Good(_source),
    "webhooks.show_source_stats": Good(_source),
    "webhooks.source_access": Good(_source, {"expiry": 3600, "readOnly": True}),
    "webhooks.create_source_endpoint": Good(_source, {**SOURCE_ENDPOINT, **SECRET}),
    "webhooks.list_source_endpoints": Good(_source_endpoint, query=LIST),
    "webhooks.show_source_endpoint": Good(_source_endpoint),
    "webhooks.replace_source_endpoint": Good(_source_endpoint, SOURCE_ENDPOINT),
    "webhooks.delete_source_endpoint": Good(_source_endpoint),
    "webhooks.show_source_secret": Good(_source_endpoint),
    "webhooks.rotate_source_secret": Good(_source_endpoint, {"key": SECRET["secret"], "gracePeriodSeconds": 60}),
    "webhooks.show_source_headers": Good(_source_endpoint),
    "webhooks.set_source_headers": Good(_source_endpoint, {"headers": {"X-Key": "1"}}),
    "webhooks.show_source_transformation": Good(_source_endpoint),
    "webhooks.patch_source_transformation": Good(_source_endpoint, TRANSFORMATION),
    "webhooks.take_in": Good(_open_source, {"any": "body"}),
    "webhooks.ask_source": Good(
        _asking_source, query={"hub.mode": "subscribe", "hub.challenge": "1158201444", "hub.verify_token": "mine"}
    ),
    "webhooks.ask_source_consent": Good(_open_source),
    "webhooks.create_stream": Good(body=STREAM),
    "webhooks.list_streams": Good(_stream, query=LIST),
    "webhooks.show_stream": Good(_stream),
    "webhooks.replace_stream": Good(_stream, STREAM),
    "webhooks.patch_stream": Good(_stream, {**STREAM, "description": "Sold"}),
    "webhooks.delete_stream": Good(_stream),
    "webhooks.create_stream_events": Good(_named_stream, STREAM_EVENTS),
    "webhooks.list_stream_events": Good(
        _stream_event,
        query={"limit": "2", "iterator": "", **TIMED, "channel": "eu", "event_types": "user.created"},
    ),
    "webhooks.expunge_stream_event": Good(_stream_event),
    "webhooks.show_stream_external_id": Good(_stream),
    "webhooks.stream_access": Good(_stream, {"expiry": 3600, "featureFlags": ["beta"], "sessionId": "s"}),
    "webhooks.stream_logout": Good(_own_stream_token),
    "webhooks.expire_stream": Good(_stream, {"expiry": 60, "sessionIds": ["s"]}),
    "webhooks.show_poller_token": Good(_poller),
    "webhooks.rotate_poller_token": Good(_poller, {"expiry": 3600, "oldTokenExpiry": 60}),
    "webhooks.create_stream_sink": Good(_typed_stream, STREAM_SINK),
    "webhooks.list_stream_sinks": Good(_stream_sink, query=LIST),
    "webhooks.show_stream_sink": Good(_stream_sink),
    "webhooks.replace_stream_sink": Good(_stream_sink, STREAM_SINK),
    "webhooks.patch_stream_sink": Good(_stream_sink, STREAM_SINK),
    "webhooks.delete_stream_sink": Good(_stream_sink),
    "webhooks.retry_stream_sink": Good(_stream_sink),
    "webhooks.skip_stream_sink": Good(_waiting_sink),
    "webhooks.read_stream_sink": Good(_poller, query={"limit": "3", "after": "2026-01-01T00:00:00Z"}),
    "webhooks.show_stream_headers": Good(_stream_sink),
    "webhooks.patch_stream_headers": Good(_stream_sink, {"headers": {"X-Key": "1"}, "deleteHeaders": ["X-Old"]}),
    "webhooks.show_stream_secret": Good(_stream_sink),
    "webhooks.rotate_stream_secret": Good(_stream_sink, {"key": SECRET["secret"], "gracePeriodSeconds": 60}),
    "webhooks.show_stream_transformation": Good(_stream_sink),
    "webhooks.set_stream_transformation": Good(_stream_sink, TRANSFORMATION),
    "webhooks.simulate_stream_transformation": Good(_stream_sink, TRIAL),
    "webhooks.create_stream_event_type": Good(_no_event_type, STREAM_EVENT_TYPE),
    "webhooks.list_stream_event_types": Good(_event_type, query={**LIST, "include_archived": "true"}),
    "webhooks.show_stream_event_type": Good(_event_type),
    "webhooks.replace_stream_event_type": Good(_event_type, STREAM_EVENT_TYPE),
    "webhooks.patch_stream_event_type": Good(_event_type, STREAM_EVENT_TYPE),
    "webhooks.delete_stream_event_type": Good(_event_type, query={"expunge": "true"}),
    "webhooks.create_event_type": Good(_no_event_type, EVENT_TYPE),
    "webhooks.list_event_types": Good(_event_type, query={**LIST, "include_archived": "true", "with_content": "true"}),
    "webhooks.show_event_type": Good(_event_type),
    "webhooks.replace_event_type": Good(_event_type, EVENT_TYPE),
    "webhooks.patch_event_type": Good(_event_type, EVENT_TYPE),
    "webhooks.delete_event_type": Good(_event_type, query={"expunge": "true"}),
    "webhooks.show_attempt_stats": Good(
        _attempted, query={"since": "2026-11-18T00:00:00Z", "until": "2026-11-18T11:06:40Z"}
    ),
    "webhooks.recover": Good(_webhook_endpoint, REPLAY),
    "webhooks.replay_missing": Good(_webhook_endpoint, REPLAY),
    "webhooks.bulk_replay": Good(
        _webhook_endpoint,
        {
            **REPLAY,
            "eventTypes": ["user.created"],
            "channel": "a",
            "tag": "t",
            "status": 2,
            "statusCodeClass": 500,
        },
    ),
    "webhooks.expunge_all": Good(_webhook_message),
    "webhooks.count_by_app": Good(
        _application, {"since": "2026-11-01T00:00:00Z", "until": "2026-11-18T11:06:40Z", "appIds": ["acme"]}
    ),
    "webhooks.count_by_event_type": Good(),
    "webhooks.list_tasks": Good(_webhook_task, query={**LIST, "status": "running", "task": "endpoint.recover"}),
    "webhooks.show_task": Good(_webhook_task),
    "webhooks.cancel_task": Good(_webhook_task),
    "webhooks.create_operational_endpoint": Good(_no_operational_endpoint, {**OPERATIONAL, **SECRET}),
    "webhooks.list_operational_endpoints": Good(_operational_endpoint, query=LIST),
    "webhooks.show_operational_endpoint": Good(_operational_endpoint),
    "webhooks.replace_operational_endpoint": Good(_operational_endpoint, OPERATIONAL),
    "webhooks.delete_operational_endpoint": Good(_operational_endpoint),
    "webhooks.show_operational_secret": Good(_operational_endpoint),
    "webhooks.rotate_operational_secret": Good(
        _operational_endpoint, {"key": SECRET["secret"], "gracePeriodSeconds": 60}
    ),
    "webhooks.show_operational_signatures": Good(_operational_endpoint),
    "webhooks.set_operational_signatures": Good(_operational_endpoint, {"signatures": [OWN_SIGNATURE]}),
    "webhooks.show_operational_headers": Good(_operational_endpoint),
    "webhooks.replace_operational_headers": Good(_operational_endpoint, {"headers": {"X-Key": "1"}}),
    "webhooks.poll": Good(
        _polled,
        query={
            "limit": "2",
            "iterator": "",
            "event_type": "user.created",
            "channel": "a",
            "after": "2026-11-18T00:00:00Z",
        },
    ),
    "webhooks.consume": Good(_polled, query={"limit": "2", "iterator": ""}),
    "webhooks.seek": Good(_polled, {"after": "2026-11-18T00:00:00Z"}),
    "webhooks.portal_access": Good(
        _application,
        {
            "capabilities": ["ViewBase"],
            "expiry": 3600,
            "featureFlags": ["beta"],
            "sessionId": "s",
            "readOnly": False,
            "application": APPLICATION,
        },
    ),
    "webhooks.dashboard_access": Good(_application),
    "webhooks.show_portal_frame": Good(),
    "webhooks.set_portal_frame": Good(body={"origins": ["https://app.example.com", "http://localhost:8080"]}),
    "webhooks.show_application_frame": Good(_application),
    "webhooks.set_application_frame": Good(_application, {"origins": ["https://app.example.com"]}),
    "webhooks.create_integration": Good(_application, APP_INTEGRATION),
    "webhooks.list_integrations": Good(_app_integration, query=LIST),
    "webhooks.show_integration": Good(_app_integration),
    "webhooks.replace_integration": Good(_app_integration, APP_INTEGRATION),
    "webhooks.delete_integration": Good(_app_integration),
    "webhooks.rotate_integration_key": Good(_app_integration),
    "webhooks.create_connector": Good(body={**CONNECTOR, "uid": "chat", "productType": "Dispatch"}),
    "webhooks.list_connectors": Good(_connector, query={**LIST, "product_type": "Dispatch"}),
    "webhooks.show_connector": Good(_connector),
    "webhooks.replace_connector": Good(_connector, CONNECTOR),
    "webhooks.patch_connector": Good(_connector, CONNECTOR),
    "webhooks.delete_connector": Good(_connector),
    "webhooks.create_autoconfig": Good(_application, {"featureFlags": ["beta"]}),
    "webhooks.show_autoconfig": Good(_autoconfig),
    "webhooks.rotate_autoconfig": Good(_autoconfig),
    "webhooks.delete_autoconfig": Good(_autoconfig),
    "webhooks.subscribe_poller": Good(
        _with_its_token,
        {**{name: value for name, value in SINK.items() if name != "config"}, "type": "pollingEndpoint"},
    ),
    "webhooks.lease": Good(
        _polling_endpoint, query={"limit": "2", "lease_duration_ms": "1000", "starting_position": "earliest"}
    ),
    "webhooks.acknowledge": Good(_leased, {"offset": 1}),
    "webhooks.subscribe": Good(_with_its_token, {**WEBHOOK_ENDPOINT, **SECRET}),
    "webhooks.logout": Good(_in_a_portal),
    "webhooks.expire_portal": Good(_application, {"expiry": 60, "sessionIds": ["s"]}),
    "webhooks.export_environment": Good(_event_type),
    "webhooks.import_openapi": Good(
        body={
            "spec": {"webhooks": {"user.created": {"post": {"description": "A user was created"}}}},
            "dryRun": False,
            "replaceAll": False,
        }
    ),
    "webhooks.import_environment": Good(
        body={"eventTypes": [EVENT_TYPE], "settings": {}, "connectors": [{**CONNECTOR, "uid": "chat"}]}
    ),
}

GOOD: dict[str, Good] = {**IRONMQ, **HUB, **NOTIFICATIONS, **WEBHOOKS}
"""By the name of the route."""


def request_to(api: Served, name: str) -> tuple[dict[str, str], Any, Mapping[str, str]]:
    """The good request of a route to an API in which its object is made: names in the path, body and query."""
    names, fields = GOOD[name].prepare(api)
    return names, *filled(GOOD[name].body, GOOD[name].query, fields)


def values_in(name: str) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value in the body of the good request of a route, with its place."""
    _, body, _ = request_to(world_of(name), name)
    for path in places(body):
        value = body
        for key in path:
            value = value[key]
        yield path, value
