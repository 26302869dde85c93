"""Round trips: every field that is written comes back as it was, is kept when another is changed, and is as if it had
never been given when the whole is replaced without it.

Sources: Svix's resources as its clients read and write them, docs/webhooks.md, docs/sources.md, docs/streaming.md,
docs/connectors.md and docs/destinations.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simulation.promises.talks.talk import Talk, differs

NAME = "Ünïcode 🦊 \u202e"
URL = "https://talk-trips.example/in"
QUEUE = "https://sqs.eu-west-1.amazonaws.com/111122223333/q"
ROLE = "arn:aws:iam::111122223333:role/r"
CODE = "function handler(webhook) { return webhook }"
OTHER_CODE = "function handler(webhook) { webhook.cancel = true; return webhook }"
FILTERS = [
    {"path": "a.0.b", "operator": "in", "value": [1, "x", None, True]},
    {"path": "c", "operator": "ne", "value": 2.5},
]
ABSENT = object()
"""What is not shown while it has its default."""


@dataclass(frozen=True)
class Kind:
    """A kind of resource.

    Attributes:
        path: Of its list.
        base: What the path follows.
        least: What has to be given.
        fields: The others: a value, another one, and what is shown if none is given.
        nulls: Which of them null clears in a PATCH.
        patched: Whether there is PATCH.
        replaced: What is left out of a PUT's body, as it cannot be changed so.
        named: Whether a path may have the uid.
        conflicts: Whether a second one of the uid is refused.
        creates: Whether PUT creates one that is not there.
        unfit: Values of fields that are refused.
    """

    path: str
    least: Mapping[str, Any]
    fields: Mapping[str, tuple[Any, Any, Any]]
    base: str = "/api/v1"
    nulls: frozenset[str] = frozenset()
    patched: bool = True
    replaced: frozenset[str] = frozenset()
    conflicts: bool = True
    creates: bool = True
    unfit: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


METADATA: tuple[dict[str, str], dict[str, str], dict[str, str]] = ({"ключ": "значение", "b": ""}, {"c": "d"}, {})
UIDS = ("a b", "a/b", "é", "", 257 * "u", 7)
RATE = (17, 65_535, None)
KINDS: tuple[Kind, ...] = (
    Kind(
        "/app",
        {"name": NAME},
        {
            "throttleRate": RATE,
            "metadata": METADATA,
            "redaction": ({"payload": ["a.*.b"], "answers": ["**.c"]}, {"payload": [], "answers": ["d"]}, ABSENT),
            "searchFields": (["a.b", "c"], ["d"], ABSENT),
            "portalConsent": (True, True, ABSENT),
            "eager": (True, True, ABSENT),
        },
        nulls=frozenset({"throttleRate", "metadata", "redaction"}),
        unfit={
            "uid": (*UIDS, "app_x"),
            "name": ("", None, 7, "\x00"),
            "metadata": ({"a": 1}, {"a": 4_100 * "x"}, []),
            "throttleRate": (0, 65_536, "5", 1.5),
            "redaction": ({"payload": "a"}, {"payload": ["a..b"]}, {"payload": [""]}, 7),
            "searchFields": (["a", "b", "c", "d"], [""], "a", [101 * "a"]),
            "eager": ("yes", None),
        },
    ),
    Kind(
        "/app/trips/endpoint",
        {"url": URL},
        {
            "description": (NAME, "other", ""),
            "disabled": (True, True, False),
            "eventTypes": (["trips.a", "trips.b"], ["trips.b"], None),
            "channels": (["a", "b.c_d-e"], ["z"], None),
            "throttleRate": RATE,
            "metadata": METADATA,
            "payloadFilters": (FILTERS, FILTERS[:1], ABSENT),
            "cloudEvents": ({"mode": "binary"}, {"mode": "structured"}, ABSENT),
        },
        nulls=frozenset({"eventTypes", "channels", "throttleRate", "metadata", "payloadFilters", "cloudEvents"}),
        unfit={
            "uid": (*UIDS, "ep_x"),
            "url": ("", "x", "ftp://a.example/", "http://a..b/", "http://127.1/", "http://169.254.169.254/", None),
            "description": (None, 7, "\x00"),
            "disabled": (None, "true", 1),
            "eventTypes": ([], ["trips.none"], "trips.a", [1]),
            "channels": ([], ["a b"], [129 * "c"], [""], "a", [f"c{n}" for n in range(11)]),
            "payloadFilters": (
                [{"path": "", "operator": "eq", "value": 1}],
                [{"path": "a", "operator": "like", "value": 1}],
                [{"path": "a", "operator": "eq", "value": []}],
                [{"path": "a", "operator": "in", "value": 1}],
                [{"path": "a", "operator": "in", "value": list(range(51))}],
                [{"path": "a", "operator": "prefix", "value": 1}],
                [{"path": "a", "operator": "gt", "value": "1"}],
                [{"path": "a", "operator": "lt", "value": True}],
                [{"path": "a", "operator": "exists", "value": 1}],
                [{"operator": "eq", "value": 1}],
            ),
            "cloudEvents": ({}, {"mode": "batched"}, {"mode": "binary", "consent": "yes"}, "binary"),
            "metadata": ({"a": 1}, {"a": 4_100 * "x"}),
        },
    ),
    Kind(
        "/operational-webhook/endpoint",
        {"url": URL},
        {
            "description": (NAME, "other", ""),
            "disabled": (True, True, False),
            "eventTypes": (["endpoint.created", "message.attempt.failing"], ["endpoint.disabled"], None),
            "throttleRate": RATE,
            "metadata": METADATA,
        },
        patched=False,
        creates=False,
        unfit={"eventTypes": ([], "trips.a"), "url": ("", "ftp://a.example/")},
    ),
    Kind(
        "/event-type",
        {"name": "trips.kind", "description": NAME},
        {
            "deprecated": (True, True, False),
            "schemas": ({"1": {"type": "object"}}, {"2": {}}, None),
            "featureFlags": (["beta", "gamma"], ["delta"], ...),
            "groupName": ("group.a-b_c", "other", ...),
            "schemaEnforcement": ("warn", "reject", ...),
        },
        nulls=frozenset({"schemas", "featureFlags", "groupName"}),
        replaced=frozenset({"name"}),
        creates=False,
        unfit={
            "name": ("", "a b", 257 * "n", None),
            "description": (None, 7),
            "schemas": ({"1": {"readOnly": 15}}, [], {"1": 1}),
            "schemaEnforcement": ("always", 1),
            "featureFlags": ([], [1], "a"),
            "groupName": ("Grüppe", 7),
        },
    ),
    Kind(
        "/connector",
        {"name": NAME, "transformation": CODE},
        {
            "kind": ("Slack", "Zapier", "Custom"),
            "logo": ("https://logo.example/a.png", "https://logo.example/b.png", None),
            "description": (NAME, "other", ""),
            "instructions": ("How\nto", "other", ""),
            "allowedEventTypes": (["trips.a"], ["trips.b"], None),
            "featureFlags": (["beta"], ["gamma"], None),
        },
        nulls=frozenset({"logo", "allowedEventTypes", "featureFlags"}),
        replaced=frozenset({"uid"}),
        unfit={
            "name": ("", 257 * "n", None),
            "transformation": (9 * "c", 51_201 * "c", None),
            "kind": ("Carrier pigeon", 7),
            "allowedEventTypes": ("trips.a", [1]),
        },
    ),
    Kind(
        "/app/trips/destination",
        {"type": "sqs", "config": {"queueUrl": QUEUE, "roleArn": ROLE}},
        {
            "status": ("disabled", "disabled", "enabled"),
            "eventTypes": (["trips.a"], ["trips.b"], None),
            "channels": (["a"], ["b"], None),
            "metadata": METADATA,
        },
        unfit={
            "type": ("carrierPigeon", None),
            "config": (
                {},
                {"queueUrl": QUEUE},
                {"queueUrl": "https://a.example/q", "roleArn": ROLE},
                {"queueUrl": QUEUE, "roleArn": "arn:aws:iam::1:user/r"},
                {"queueUrl": QUEUE, "roleArn": ROLE, "externalId": "mine"},
            ),
            "status": ("paused",),
            "uid": ("sink_x", "a.b", 61 * "u"),
            "batchSize": (0, 1_001),
            "maxWaitSecs": (-1, 301),
        },
    ),
    Kind(
        "/stream",
        {"name": NAME},
        {"metadata": METADATA},
        unfit={"name": ("", None, 257 * "n"), "uid": (*UIDS, "strm_x")},
    ),
    Kind(
        "/stream/trips/sink",
        {"type": "http", "config": {"url": URL}},
        {
            "status": ("disabled", "disabled", "enabled"),
            "batchSize": (7, 1_000, 100),
            "maxWaitSecs": (300, 1, 0),
            "eventTypes": (["trips.a"], ["trips.b"], None),
            "channels": (["a"], ["b"], None),
            "metadata": METADATA,
        },
        unfit={
            "type": ("carrierPigeon", None),
            "config": ({}, {"url": "ftp://a.example/"}, {"url": 7}),
            "batchSize": (0, 1_001, "7"),
            "maxWaitSecs": (-1, 301),
            "status": ("paused",),
            "uid": ("sink_x", "a.b", 61 * "u"),
        },
    ),
    Kind(
        "/source",
        {"name": NAME, "type": "generic-webhook"},
        {"metadata": METADATA},
        base="/ingest/api/v1",
        patched=False,
        unfit={"name": ("", None), "uid": (*UIDS, "src_x")},
    ),
    Kind(
        "/source/trips/endpoint",
        {"url": URL},
        {"description": (NAME, "x", ""), "disabled": (True, True, False), "throttleRate": RATE, "metadata": METADATA},
        base="/ingest/api/v1",
        patched=False,
        unfit={"uid": (*UIDS, "ep_x"), "url": ("", "ftp://a.example/")},
    ),
)
"""What can be made by itself."""


def webhooks(talk: Talk) -> None:
    """Every kind of resource of Svix's API."""
    talk.through(_begun, _kinds, _get_or_create, _integrations, _destinations, _sinks, _environment, _over)


def _begun(talk: Talk) -> None:
    for name in ("trips.a", "trips.b"):
        talk.ask("POST", "/event-type", {"name": name, "description": name}, status=201)
    talk.ask("POST", "/app", {"name": "Trips", "uid": "trips"}, status=201)
    talk.ask("POST", "/stream", {"name": "Trips", "uid": "trips"}, status=201)
    fields = {"name": "Trips", "uid": "trips", "type": "generic-webhook"}
    talk.at("/ingest/api/v1").ask("POST", "/source", fields, status=201)


def _over(talk: Talk) -> None:
    for path in ("/app/trips", "/stream/trips"):
        talk.ask("DELETE", path, status=204)
    talk.at("/ingest/api/v1").ask("DELETE", "/source/trips", status=204)
    for name in ("trips.a", "trips.b"):
        talk.ask("DELETE", f"/event-type/{name}?expunge=true", status=204)


def _kinds(talk: Talk) -> None:
    for kind in KINDS:
        _trip(talk.at(kind.base), kind)


def _shown(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not ABSENT and value is not ...}


def _trip(talk: Talk, kind: Kind) -> None:
    """One of a kind: made with little, with everything, changed field by field, replaced, removed."""
    named = {} if "name" in kind.replaced else {"uid": "one"}
    key = named.get("uid", kind.least.get("name"))
    first = {name: each for name, (each, _, _) in kind.fields.items()}
    second = {name: each for name, (_, each, _) in kind.fields.items()}
    default = {name: each for name, (_, _, each) in kind.fields.items()}
    path = f"{kind.path}/{key}"
    # With what is required alone, each other field has its default; null is the same, where null is taken
    created = talk.ask(
        "POST", kind.path, {**kind.least, **named}, status=201, shows={**kind.least, **named, **_shown(default)}
    )
    absent = [name for name, each in default.items() if each is ABSENT]
    talk.is_so(f"{path}: not shown", [], [name for name in absent if created.get(name) is not None])
    if named:
        talk.ask("GET", f"{kind.path}/{created['id']}", shows={**kind.least, **named})
        talk.ask("POST", kind.path, {**kind.least, **named}, status=409, shows={"code": "conflict", "detail": str})
    talk.ask("DELETE", path + ("" if named else "?expunge=true"), status=204)
    talk.ask("GET", path, status=404)
    # With everything
    whole = {**kind.least, **named, **first}
    created = talk.ask("POST", kind.path, whole, status=201, shows=whole)
    talk.is_so("it was made now", True, created["createdAt"] == created["updatedAt"])
    talk.ask("GET", path, shows=whole)
    rows = talk.ask("GET", kind.path + ("" if named else "?with_content=true"), shows={"data": list})["data"]
    talk.is_so(f"{path} is listed", 1, sum(not differs(whole, each) for each in rows))
    for bad_name, values in kind.unfit.items():
        for value in values:
            fields = {**kind.least, **({} if named else {"name": "trips.unfit"}), bad_name: value}
            talk.ask("POST", kind.path, fields, status=422)
            if kind.patched and bad_name not in {"name", "uid", "type", "config", "transformation", "description"}:
                fields = (
                    {bad_name: value} if "type" not in kind.least else {"type": kind.least["type"], bad_name: value}
                )
                talk.ask("PATCH", path, fields, status=422)
    after = talk.ask("GET", path, shows=lambda each: each == created)
    talk.sleep(1, exactly=True)
    # Field by field: the others stay
    if kind.patched:
        kind_given = {"type": kind.least["type"]} if "type" in kind.least else {}
        now = {**whole}
        for name, value in second.items():
            now[name] = value
            changed = talk.ask("PATCH", path, {**kind_given, name: value}, shows=now)
            talk.is_so(f"{path}: when it was made", after["createdAt"], changed["createdAt"])
        talk.is_so(f"{path}: it was changed", True, changed["updatedAt"] > after["updatedAt"])
        talk.ask("PATCH", path, kind_given, shows=now)
        for name in kind.nulls:
            cleared = talk.ask("PATCH", path, {**kind_given, name: None})
            expected = default[name]
            talk.is_so(
                f"{path}: {name} is cleared",
                True,
                cleared.get(name) in ([expected] if expected is not ABSENT and expected is not ... else [None, {}, []]),
            )
    # As a whole, and without all that need not be given
    body = {name: each for name, each in whole.items() if name not in kind.replaced}
    talk.ask("PUT", path, body, shows=whole)
    body = {name: each for name, each in {**kind.least, **named}.items() if name not in kind.replaced}
    bare = talk.ask("PUT", path, body, shows={**kind.least, **named, **_shown(default)})
    talk.is_so(f"{path}: not shown any more", [], [name for name in absent if bare.get(name) not in (None, {}, [])])
    talk.is_so(f"{path}: the same one", (created.get("id"), created["createdAt"]), (bare.get("id"), bare["createdAt"]))
    talk.ask("GET", path, shows=lambda each: each == bare)
    talk.ask("DELETE", path + ("" if named else "?expunge=true"), status=204)
    for method, sent in (("GET", None), ("DELETE", None)) + ((("PATCH", kind_given),) if kind.patched else ()):
        talk.ask(method, path, sent, status=404, shows={"code": "not_found", "detail": str})
    if kind.creates:
        fields = {"name": "x"} if kind.path == "/connector" else {}
        created = talk.ask("PUT", path, {**body, **fields}, status=201, shows=named)
        talk.ask("DELETE", path, status=204)
    else:
        talk.is_so("not made so", lambda each: each in {201, 404, 200}, talk.status("PUT", path, body))
        talk.status("DELETE", path + ("" if named else "?expunge=true"))


def _get_or_create(talk: Talk) -> None:
    """What is there is returned as it is; an application comes with its first message, or its portal."""
    first = talk.ask("POST", "/app?get_if_exists=true", {"name": "A", "uid": "got"}, status=201)
    same = {"id": first["id"], "name": "A", "updatedAt": first["updatedAt"]}
    talk.ask("POST", "/app?get_if_exists=true", {"name": "B", "uid": "got", "throttleRate": 5}, shows=same)
    talk.ask("POST", "/app?get_if_exists=false", {"name": "B", "uid": "got"}, status=409)
    talk.ask("GET", "/app/got", shows=same)
    ids = {talk.ask("POST", "/app?get_if_exists=true", {"name": "C"}, status=201)["id"] for _ in range(2)}
    talk.is_so("without a uid there is none to get", 2, len(ids))
    # A uid is free again when its owner is gone, or has another
    talk.ask("PATCH", "/app/got", {"uid": None}, shows={"id": first["id"]})
    other = talk.ask("POST", "/app", {"name": "D", "uid": "got"}, status=201)
    talk.ask("PATCH", f"/app/{first['id']}", {"uid": "got"}, status=409, shows={"code": "conflict"})
    talk.ask("PUT", f"/app/{first['id']}", {"name": "A", "uid": "got"}, status=409)
    talk.ask("DELETE", "/app/got", status=204)
    talk.ask("PATCH", f"/app/{first['id']}", {"uid": "got"}, shows={"uid": "got"})
    talk.ask("GET", f"/app/{other['id']}", status=404)
    message = {"eventType": "trips.a", "payload": {}}
    for path, sent, status in (("/app/came/msg", message, 202), ("/auth/app-portal-access/portal", {}, 200)):
        uid = "came" if "came" in path else "portal"
        for bad in ({"name": "Came"}, {"name": "Came", "uid": "else"}, {"uid": uid}):
            talk.ask("POST", path, {**sent, "application": bad}, status=422)
        talk.ask("GET", f"/app/{uid}", status=404)
        talk.ask("POST", path, {**sent, "application": {"name": "Came", "uid": uid, "throttleRate": 3}}, status=status)
        came = talk.ask("GET", f"/app/{uid}", shows={"name": "Came", "throttleRate": 3})
        talk.ask("POST", path, {**sent, "application": {"name": "Other", "uid": uid}}, status=status)
        talk.ask("GET", f"/app/{uid}", shows={"id": came["id"], "name": "Came"})
        ids.add(came["id"])
    for each in (first["id"], *ids):
        talk.ask("DELETE", f"/app/{each}", status=204)


def _integrations(talk: Talk) -> None:
    """A service of another company: its key opens one application, until it is rotated or deleted."""
    path = "/app/trips/integration"
    fields = {"name": NAME, "featureFlags": ["beta"]}
    created = talk.ask("POST", path, fields, status=201, shows=fields)
    one = f"{path}/{created['id']}"
    talk.ask("GET", one, shows={**fields, "id": created["id"]})
    for bad in ({}, {"name": ""}, {"name": 257 * "n"}, {"name": "x", "featureFlags": "a"}):
        talk.refused("POST", path, bad, status=422)
        talk.refused("PUT", one, bad, status=422)
    keys = [talk.ask("POST", f"{one}/key/rotate", shows={"key": str})["key"]]
    service = talk.with_headers(authorization=f"Bearer {keys[0]}")
    service.ask("GET", "/app/trips", shows={"uid": "trips"})
    # Another one of the same name has a key of its own; each sees event types by the flags that its integration has
    flagged = {"name": "trips.flagged", "description": "d", "featureFlags": ["beta"]}
    talk.ask("POST", "/event-type", flagged, status=201)
    second = talk.ask("POST", path, {"name": NAME}, status=201)["id"]
    twin_key = talk.ask("POST", f"{path}/{second}/key/rotate", shows={"key": str})["key"]
    twin = talk.with_headers(authorization=f"Bearer {twin_key}")
    service.ask("GET", "/event-type/trips.flagged")
    twin.ask("GET", "/event-type/trips.flagged", status=404)
    talk.ask("PUT", f"{path}/{second}", {"name": NAME, "featureFlags": ["beta"]}, shows={"featureFlags": ["beta"]})
    twin.ask("GET", "/event-type/trips.flagged")
    service.ask("GET", "/app", status=403)
    service.ask("GET", one, status=403)
    talk.ask("PUT", one, {"name": "Other"}, shows={"name": "Other", "id": created["id"]})
    service.ask("GET", "/app/trips")
    service.ask("GET", "/event-type/trips.flagged", status=404)
    keys.append(talk.ask("POST", f"{one}/key/rotate")["key"])
    service.ask("GET", "/app/trips", status=401)
    other = talk.with_headers(authorization=f"Bearer {keys[1]}")
    other.ask("GET", "/app/trips")
    talk.ask("DELETE", one, status=204)
    other.ask("GET", "/app/trips", status=401)
    twin.ask("GET", "/app/trips")
    talk.ask("GET", path, shows={"data": [{"id": second}], "done": True})
    talk.ask("DELETE", f"{path}/{second}", status=204)
    twin.ask("GET", "/app/trips", status=401)
    talk.ask("DELETE", "/event-type/trips.flagged?expunge=true", status=204)
    talk.ask("GET", one, status=404)
    talk.ask("POST", f"{one}/key/rotate", status=404)


def _destinations(talk: Talk) -> None:
    """Receivers on AWS as Svix writes them: what each becomes, what is shown, and what the hub lacks."""
    path = "/app/trips/destination"
    external_id = talk.ask("GET", "/app/trips/external-id", shows={"externalId": str, "principal": str})["externalId"]
    bus = "arn:aws:events:eu-west-1:111122223333:event-bus/orders"
    topic = "arn:aws:sns:eu-west-1:111122223333:orders"
    key = {"accessKeyId": "AKIAIOSFODNN7EXAMPLE", "secretAccessKey": "wJalrXUtnFEMI/K7MDENG"}
    for kind, config in (
        ("sqs", {"queueUrl": QUEUE, "roleArn": ROLE}),
        ("sqs", {"queueUrl": QUEUE, **key}),
        ("sns", {"topicArn": topic, "roleArn": ROLE}),
        ("eventBridge", {"eventBusName": bus, "roleArn": ROLE, "detailType": "Paid"}),
        ("pollingEndpoint", {}),
    ):
        sent = {name: each for name, each in config.items() if name != "secretAccessKey"}
        created = talk.ask(
            "POST", path, {"type": kind, "config": config}, status=201, shows={"type": kind, "config": sent}
        )
        more = {"status": "enabled", "batchSize": 1, "maxWaitSecs": 0, "currentIterator": ""}
        shown = talk.ask("GET", f"{path}/{created['id']}", shows={**more, "config": sent})
        talk.is_so("an id of its own", True, created["id"].startswith("sink_"))
        talk.is_so("no secret", False, key["secretAccessKey"] in f"{shown}")
        if "roleArn" in config:
            talk.is_so("the external id", external_id, shown["config"].get("externalId"))
        endpoint = f"/app/trips/endpoint/ep_{created['id'].removeprefix('sink_')}"
        if kind != "pollingEndpoint":
            talk.ask("GET", endpoint, shows={"url": lambda url: "eu-west-1/111122223333/" in url})
        talk.ask("PATCH", f"{path}/{created['id']}", {"type": kind, "status": "disabled"}, shows={"status": "disabled"})
        talk.ask("GET", f"{path}/{created['id']}", shows={"status": "disabled", "config": sent})
        other = "sns" if kind == "sqs" else "sqs"
        talk.ask("PATCH", f"{path}/{created['id']}", {"type": other, "status": "enabled"}, status=422)
        talk.ask("DELETE", f"{path}/{created['id']}", status=204)
        talk.ask("GET", f"{path}/{created['id']}", status=404)
    for missing in ("snowflake", "azureBlobStorage", "googleCloudPubSub", "redshift", "amazonS3"):
        shows = {"code": "not_implemented", "detail": lambda text, missing=missing: missing in text}
        talk.ask("POST", path, {"type": missing, "config": {}}, status=501, shows=shows)


def _sinks(talk: Talk) -> None:
    """Sinks of each type, with what is configured and shown of each."""
    path = "/stream/trips/sink"
    talk.ask("GET", "/stream/trips/external-id", shows={"externalId": str, "principal": str})
    for kind, config in (
        ("amazonS3", {"bucket": "orders", "region": "eu-west-1", "roleArn": ROLE, "prefix": "in/"}),
        ("kinesis", {"streamName": "orders", "region": "eu-west-1", "roleArn": ROLE}),
        ("http", {"url": URL}),
        ("sqs", {"queueUrl": QUEUE, "roleArn": ROLE}),
        ("poller", {}),
    ):
        created = talk.ask(
            "POST", path, {"type": kind, "config": config}, status=201, shows={"type": kind, "config": config}
        )
        one = f"{path}/{created['id']}"
        talk.ask("GET", one, shows={"status": "enabled", "batchSize": int, "maxWaitSecs": 0, "config": config})
        for switched in ("disabled", "enabled"):
            talk.ask("PATCH", one, {"type": kind, "status": switched}, shows={"status": switched, "config": config})
        if kind != "http":
            talk.is_so(
                "headers and secrets are of http",
                {400, 404} | {422},
                {talk.status("GET", f"{one}/secret")} | {400, 404, 422},
            )
        talk.ask("DELETE", one, status=204)
    created = talk.ask("POST", path, {"type": "http", "config": {"url": URL, "headers": {"X-One": "1"}}}, status=201)
    one = f"{path}/{created['id']}"
    talk.ask("GET", f"{one}/headers", shows={"headers": {"X-One": "1"}, "sensitive": []})
    talk.ask(
        "PATCH",
        f"{one}/headers",
        {"headers": {"X-Two": "2", "X-Api-Key": "k"}},
        shows={"headers": {"X-One": "1", "X-Two": "2"}, "sensitive": ["X-Api-Key"]},
    )
    talk.ask(
        "PATCH",
        f"{one}/headers",
        {"headers": {"X-Two": None}, "deleteHeaders": ["X-One"]},
        shows={"headers": lambda each: each == {}},
    )
    key = talk.ask("GET", f"{one}/secret", shows={"key": str})["key"]
    other = talk.ask("POST", f"{one}/secret/rotate", {}, shows={"key": str})["key"]
    talk.is_so("another one", True, key != other and other.startswith("whsec_"))
    talk.ask("GET", f"{one}/secret", shows={"key": other})
    for missing in ("snowflake", "otelTracing", "googleCloudStorage"):
        talk.ask("POST", path, {"type": missing, "config": {}}, status=501, shows={"code": "not_implemented"})
    talk.ask("DELETE", one, status=204)


def _environment(talk: Talk) -> None:
    """What is exported from one project can be imported, as it was."""
    connector = {"name": "Kept", "uid": "kept", "kind": "Slack", "transformation": CODE, "instructions": "How"}
    talk.ask("POST", "/connector", connector, status=201)
    kind = {"name": "trips.kept", "description": NAME, "schemas": {"1": {"type": "object"}}, "groupName": "g"}
    talk.ask("POST", "/event-type", kind, status=201)
    exported = talk.ask("POST", "/environment/export", shows={"createdAt": str, "version": int})
    talk.is_so("event types", True, "trips.kept" in {each["name"] for each in exported["eventTypes"]})
    talk.is_so("connectors", ["Kept"], [each["name"] for each in exported["connectors"]])
    talk.ask("PATCH", "/connector/kept", {"transformation": OTHER_CODE, "name": "Changed"}, shows={"name": "Changed"})
    talk.ask("DELETE", "/event-type/trips.kept?expunge=true", status=204)
    given = {"eventTypes": exported["eventTypes"], "connectors": exported["connectors"], "settings": None}
    talk.ask("POST", "/environment/import", given, status=204)
    talk.ask("GET", "/event-type/trips.kept", shows=kind)
    talk.ask("GET", "/connector/kept", shows=connector)
    talk.ask("GET", "/connector", shows={"data": [{"uid": "kept"}]})
    talk.ask("GET", "/connector?product_type=Stream", shows={"data": []})
    talk.ask("GET", "/connector?product_type=Dispatch", shows={"data": [{"uid": "kept"}]})
    bad: Mapping[str, Any]
    for bad in ({"eventTypes": {}}, {"eventTypes": [{"name": "x"}]}, {"connectors": [{"name": "x"}]}):
        talk.ask("POST", "/environment/import", bad, status=422)
    # Known by their uid, or else their name; nothing is deleted, and of what breaks a rule nothing is taken
    nameless = {"name": "Kept", "transformation": CODE}
    same_name = {"name": "Kept", "uid": "kept-too", "transformation": CODE}
    for code in (CODE, OTHER_CODE):
        brought = [{**nameless, "transformation": code}, {**same_name, "transformation": code}]
        talk.ask("POST", "/environment/import", {"connectors": brought}, status=204)
        shown = talk.ask("GET", "/connector", shows={"data": 3 * [...]})["data"]
    found = {(each["name"], each.get("uid")): each["transformation"] for each in shown}
    expected = {("Kept", "kept"): CODE, ("Kept", None): OTHER_CODE, ("Kept", "kept-too"): OTHER_CODE}
    talk.is_so("each one", lambda each: each == expected, found)
    half = {"eventTypes": [{**kind, "name": "trips.half"}, {**kind, "name": "trips.bad", "schemas": {"1": 1}}]}
    talk.ask("POST", "/environment/import", {**half, "connectors": [{**nameless, "name": "Half"}]}, status=422)
    talk.ask("GET", "/event-type/trips.half", status=404)
    talk.is_so("no connector of it", 3, len(talk.ask("GET", "/connector")["data"]))
    # What is archived is exported, and archived again where it is imported
    talk.ask("DELETE", "/event-type/trips.kept", status=204)
    exported = talk.ask("POST", "/environment/export")
    talk.ask("DELETE", "/event-type/trips.kept?expunge=true", status=204)
    talk.ask("POST", "/environment/import", {"eventTypes": exported["eventTypes"]}, status=204)
    talk.ask("GET", "/event-type/trips.kept", shows={**kind, "archived": True})
    for each in shown:
        talk.ask("DELETE", f"/connector/{each['id']}", status=204)
    talk.ask("DELETE", "/event-type/trips.kept?expunge=true", status=204)


__all__ = ["webhooks"]
