"""Rights: each route, asked for by each kind of caller. Who may not is refused as documented, and nothing changes.

Sources: the portal's table and the routes marked ``P`` in docs/webhooks.md; docs/signatures.md, docs/gates.md and
docs/transformations.md for the capabilities; Svix's capabilities; and the hub's own description for which routes there
are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulation.promises.talks.shapes import Shapes
from simulation.promises.talks.talk import Talk

CAPABILITIES = (
    *("ViewEndpointSecret", "ManageEndpointSecret", "ManageTransformations", "CreateAttempts", "ManageEndpoint"),
)
"""All but ``ViewBase``, with which a portal shows what anybody sees there."""

CODE = "function handler(webhook) { return webhook }"
SECRET = {"preset": "stripe", "secret": "whsec_0123456789"}
OAUTH = {
    "grantType": "clientCredentials",
    "authMethod": "clientSecretPost",
    "clientId": "c",
    "clientSecret": "s",
    "tokenUrl": "https://talk-login.example/token",
}
URL = {"url": "https://talk-rights.example/in"}
SINCE = {"since": "2026-11-17T00:00:00Z"}


@dataclass(frozen=True)
class Asked:
    """A request of a portal.

    Attributes:
        method: HTTP method.
        path: Behind that of the application.
        needs: The capability without which it is refused; "" if every portal may, "nobody" if none may.
        status: What it is answered with if it is let.
        body: Of the request.
    """

    method: str
    path: str
    needs: str
    status: int = 200
    body: Any = None


E = "/endpoint/one"
OF_APPLICATION: tuple[Asked, ...] = (
    Asked("GET", "", ""),
    Asked("GET", "/endpoint", ""),
    Asked("GET", E, ""),
    Asked("GET", f"{E}/health", ""),
    Asked("GET", f"{E}/stats", ""),
    Asked("GET", f"{E}/attempt-stats", ""),
    Asked("GET", f"{E}/msg", ""),
    Asked("GET", "/msg", ""),
    Asked("GET", "/msg/m", ""),
    Asked("GET", "/msg/m/endpoint", ""),
    Asked("GET", "/attempt/msg/m", ""),
    Asked("GET", "/attempt/endpoint/one", ""),
    Asked("GET", "/external-id", ""),
    Asked("GET", f"{E}/secret", "ViewEndpointSecret"),
    Asked("GET", f"{E}/signatures", "ViewEndpointSecret"),
    Asked("GET", f"{E}/oauth-config", "ViewEndpointSecret"),
    Asked("GET", f"{E}/mtls-config", "ViewEndpointSecret"),
    Asked("POST", f"{E}/secret/rotate", "ManageEndpointSecret", body={}),
    Asked("PUT", f"{E}/signatures", "ManageEndpointSecret", body={"signatures": [SECRET]}),
    Asked("PUT", f"{E}/signatures", "ManageEndpointSecret", body={"signatures": []}),
    Asked("PUT", f"{E}/oauth", "ManageEndpointSecret", 204, OAUTH),
    Asked("DELETE", f"{E}/oauth", "ManageEndpointSecret", 204),
    Asked("GET", f"{E}/transformation", "ManageTransformations"),
    Asked("PATCH", f"{E}/transformation", "ManageTransformations", 204, {"code": CODE}),
    Asked("PATCH", f"{E}/transformation", "ManageTransformations", 204, {"code": None}),
    Asked(
        "POST",
        f"{E}/transformation/simulate",
        "ManageTransformations",
        body={"code": CODE, "eventType": "rights.made", "payload": {}},
    ),
    Asked("POST", f"/msg/m{E}/resend", "CreateAttempts", 202),
    Asked("POST", f"{E}/recover", "CreateAttempts", 202, SINCE),
    Asked("POST", f"{E}/replay-missing", "CreateAttempts", 202, SINCE),
    Asked("POST", f"{E}/bulk-replay", "CreateAttempts", 202, SINCE),
    Asked("POST", "/endpoint", "ManageEndpoint", 201, URL),
    Asked("PUT", E, "ManageEndpoint", body={**URL, "uid": "one"}),
    Asked("PATCH", E, "ManageEndpoint", body={"description": "d"}),
    Asked("PUT", f"{E}/headers", "ManageEndpoint", 204, {"headers": {"X-One": "1"}}),
    Asked("PATCH", f"{E}/headers", "ManageEndpoint", 204, {"headers": {"X-Two": "2"}}),
    Asked("DELETE", "/endpoint/other", "ManageEndpoint", 204),
    Asked("PUT", "", "nobody", body={"name": "R"}),
    Asked("PATCH", "", "nobody", body={"name": "R"}),
    Asked("DELETE", "", "nobody"),
    Asked("POST", "/msg", "nobody", body={"eventType": "rights.made", "payload": {}}),
    Asked("DELETE", "/msg/m/content", "nobody"),
    Asked("POST", "/msg/bulk-expunge", "nobody", body={"ids": []}),
    Asked("POST", "/msg/expunge-all-contents", "nobody"),
    Asked("POST", f"{E}/send-example", "nobody", body={"eventType": "svix.ping"}),
    Asked("GET", "/poller/any", "nobody"),
    Asked("GET", "/poller/any/consumer/c", "nobody"),
    Asked("PUT", "/signatures", "nobody", body={"signatures": []}),
    Asked("PUT", "/portal/frame", "nobody", body={"origins": []}),
    Asked("POST", "/integration", "nobody", body={"name": "i"}),
    Asked("GET", "/integration", "nobody"),
    Asked("POST", "/autoconfig", "nobody", body={}),
)
"""What a portal may do with its own application."""

OF_PROJECT: tuple[Asked, ...] = (
    Asked("GET", "/event-type", ""),
    Asked("GET", "/event-type/rights.made", ""),
    Asked("GET", "/connector", "ManageTransformations"),
    Asked("POST", "/event-type", "nobody", body={"name": "rights.other", "description": "d"}),
    Asked("PUT", "/event-type/rights.made", "nobody", body={"description": "d"}),
    Asked("PATCH", "/event-type/rights.made", "nobody", body={"description": "d"}),
    Asked("DELETE", "/event-type/rights.made", "nobody"),
    Asked("POST", "/connector", "nobody", body={"name": "c", "transformation": CODE}),
    Asked("GET", "/app", "nobody"),
    Asked("POST", "/app", "nobody", body={"name": "R"}),
    Asked("GET", "/operational-webhook/endpoint", "nobody"),
    Asked("POST", "/operational-webhook/endpoint", "nobody", body=URL),
    Asked("GET", "/background-task", "nobody"),
    Asked("POST", "/stats/usage/app", "nobody", body={**SINCE, "until": "2026-11-18T00:00:00Z"}),
    Asked("PUT", "/stats/usage/event-types", "nobody"),
    Asked("POST", "/environment/export", "nobody"),
    Asked("POST", "/environment/import", "nobody", body={}),
    Asked("GET", "/health/endpoints", "nobody"),
    Asked("PUT", "/portal/frame", "nobody", body={"origins": []}),
    Asked("PUT", "/signatures", "nobody", body={"signatures": []}),
    Asked("POST", "/auth/app-portal-access/mine", "nobody", body={}),
    Asked("POST", "/auth/app/mine/expire-all", "nobody", body={}),
    Asked("GET", "/stream", "nobody"),
    Asked("POST", "/stream", "nobody", body={"name": "s"}),
)
"""What a portal may do with what is the project's."""

FORBIDDEN = {"code": "insufficient access", "detail": str}


def webhooks(mine: Talk, theirs: Talk) -> None:
    """Svix's API, by all who might ask."""
    mine.through(_prepared, _portals, lambda talk: _strangers(talk, theirs), _of_streams, _removed)


def _prepared(talk: Talk) -> None:
    talk.listen("talk-rights.example", lambda _: (200, b""))
    talk.ask("POST", "/event-type", {"name": "rights.made", "description": "d"}, status=201)
    for uid in ("mine", "yours"):
        talk.ask("POST", "/app", {"name": uid, "uid": uid}, status=201)
        talk.ask("POST", f"/app/{uid}/endpoint", {**URL, "uid": "one"}, status=201)
        talk.ask("POST", f"/app/{uid}/msg", {"eventType": "rights.made", "payload": {}, "eventId": "m"}, status=202)
    talk.sleep(10)


def _removed(talk: Talk) -> None:
    for uid in ("mine", "yours"):
        talk.ask("DELETE", f"/app/{uid}", status=204)
    talk.ask("DELETE", "/event-type/rights.made?expunge=true", status=204)


def _portal(talk: Talk, app: str, **wanted: Any) -> Talk:
    """A customer with a portal's token."""
    access = talk.ask("POST", f"/auth/app-portal-access/{app}", wanted, shows={"token": str})
    return talk.with_headers(authorization=f"Bearer {access['token']}")


def _state(talk: Talk) -> Mapping[str, Any]:
    """What is stored of it all, as its owner sees it."""
    e = "/app/mine/endpoint/one"
    paths = (
        *("/app", "/app/mine", "/app/mine/endpoint", f"{e}/secret", f"{e}/signatures", f"{e}/headers", "/event-type"),
        *(f"{e}/oauth-config", f"{e}/transformation", "/app/mine/msg", "/connector", "/operational-webhook/endpoint"),
        *(
            "/app/mine/signatures",
            "/signatures",
            "/portal/frame",
            "/stream",
            "/background-task",
            "/app/mine/integration",
        ),
    )
    return {path: talk.ask("GET", path) for path in paths}


def _portals(talk: Talk) -> None:
    """A portal with each capability alone: what needs it is let, and what needs another is not."""
    talk.ask("POST", "/app/mine/endpoint", {**URL, "uid": "other"}, status=201)
    before = _state(talk)
    bare = _portal(talk, "mine", capabilities=["ViewBase"])
    for each in OF_APPLICATION:
        _ask(bare, each, f"/app/mine{each.path}", let=not each.needs)
    for each in OF_PROJECT:
        _ask(bare, each, each.path, let=not each.needs)
    talk.is_so("who may not changes nothing", _same(before), _state(talk))
    for capability in CAPABILITIES:
        able = _portal(talk, "mine", capabilities=["ViewBase", capability])
        for each in OF_APPLICATION:
            if each.needs and each.needs != "nobody":
                _ask(able, each, f"/app/mine{each.path}", let=each.needs == capability)
    # All capabilities, which is what a token has by default: still not what nobody may, nor another application
    whole = _portal(talk, "mine")
    for each in OF_APPLICATION:
        if each.needs == "nobody":
            _ask(whole, each, f"/app/mine{each.path}", let=False)
        else:
            whole.ask(each.method, f"/app/yours{each.path}", each.body, status=404)
    for each in OF_PROJECT:
        _ask(whole, each, each.path, let=each.needs != "nobody")
    for bad in (
        {"capabilities": ["Everything"]},
        {"capabilities": "ViewBase"},
        {"sessionId": "a b"},
        {"sessionId": ""},
    ):
        talk.ask("POST", "/auth/app-portal-access/mine", bad, status=422)
    # Sessions end by their names, the others go on
    first, second = (_portal(talk, "mine", sessionId=name) for name in ("first", "second"))
    talk.ask("POST", "/auth/app/mine/expire-all", {"sessionIds": ["first"]}, status=204)
    first.ask("GET", "/app/mine", status=401)
    second.ask("GET", "/app/mine")
    # With some grace, until that is over
    talk.ask("POST", "/auth/app/mine/expire-all", {"expiry": 60}, status=204)
    talk.sleep(50, exactly=True)
    for portal in (second, whole):
        portal.ask("GET", "/app/mine")
    talk.sleep(12, exactly=True)
    for portal in (second, whole):
        portal.ask("GET", "/app/mine", status=401)
    # A token of the project cannot be ended so
    talk.ask("POST", "/auth/logout", status=403)
    talk.ask("GET", "/app/mine")


def _ask(portal: Talk, asked: Asked, path: str, *, let: bool) -> None:
    if let:
        portal.ask(asked.method, path, asked.body, status=asked.status)
    else:
        portal.ask(asked.method, path, asked.body, status=403, shows=FORBIDDEN)


def _same(before: Mapping[str, Any]) -> Any:
    return lambda after: before == after


OWN = {"app": "mine", "endpoint": "one", "message": "m"}
"""What is there, by its name in paths; whatever else a path names is not."""


def _strangers(talk: Talk, theirs: Talk) -> None:
    """Each route without a token, with one that is none, with another project's: nobody learns or changes anything."""
    before = _state(talk)
    shapes = Shapes(talk.at("").ask("GET", "/openapi.json"))
    nobody = talk.at("").with_headers(authorization="")
    for method, path, operation in shapes.operations():
        if not path.startswith(("/api/v1", "/ingest")) or not any(operation["security"]):
            continue
        steps = [OWN.get(each[1:-1], "none") if each.startswith("{") else each for each in path.split("/")]
        there, body = "/".join(steps), _example(operation)
        wrong = {"code": "authentication_failed", "detail": str}
        for header in ("", "Bearer none", f"Basic {talk.token}", f"Bearer {talk.token}x"):
            nobody.with_headers(authorization=header).ask(method, there, body, status=401, shows=wrong)
        creates = method == "PUT" and path.count("{") == 1
        if "/app/{app}" in path and "/autoconfig/" not in path and not creates:
            theirs.at("").ask(method, there, body, status=404, shows={"code": "not_found", "detail": str})
    talk.is_so("strangers change nothing", _same(before), _state(talk))


def _example(operation: Mapping[str, Any]) -> Any:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return content.get("example")


def _of_streams(talk: Talk) -> None:
    """Tokens that open one stream, or one of its pollers, and nothing else."""
    talk.ask("POST", "/stream", {"name": "R", "uid": "rights"}, status=201)
    talk.ask("POST", "/stream/rights/sink", {"type": "poller", "config": {}, "uid": "read"}, status=201)
    token = talk.ask("POST", "/auth/stream-portal-access/rights", {}, shows={"url": str, "token": str})["token"]
    portal = talk.with_headers(authorization=f"Bearer {token}")
    portal.ask("GET", "/stream/rights", shows={"uid": "rights"})
    portal.ask("GET", "/stream/rights/sink", shows={"data": [{"uid": "read"}]})
    for path in ("/app/mine", "/app/mine/endpoint", "/stream/none"):
        portal.ask("GET", path, status=404)
    for method, path, body in (
        ("GET", "/stream", None),
        ("GET", "/app", None),
        ("POST", "/stream/rights/events", {"events": [{"eventType": "a", "payload": "{}"}]}),
        ("DELETE", "/stream/rights", None),
    ):
        portal.ask(method, path, body, status=403)
    path = "/auth/stream/rights/sink/read/poller/token"
    key = talk.ask("GET", path, shows={"token": str, "id": str, "createdAt": str})["token"]
    reader = talk.with_headers(authorization=f"Bearer {key}")
    reader.ask("GET", "/stream/rights/sink/read/events", shows={"data": [], "done": True})
    for other in ("/stream/rights", "/stream/rights/sink/read", "/app/mine", "/stream/rights/events"):
        refused = reader.status("GET", other)
        talk.is_so(f"a poller's token does not open {other}", lambda each: each in {401, 403, 404}, refused)
    other_key = talk.ask("POST", f"{path}/rotate", {"oldTokenExpiry": 60, "expiry": 300})["token"]
    talk.ask("GET", path, shows={"token": other_key, "expiresAt": str})
    later = talk.with_headers(authorization=f"Bearer {other_key}")
    for each in (reader, later):
        each.ask("GET", "/stream/rights/sink/read/events")
    talk.sleep(70, exactly=True)
    reader.ask("GET", "/stream/rights/sink/read/events", status=401)
    later.ask("GET", "/stream/rights/sink/read/events")
    talk.sleep(240, exactly=True)
    later.ask("GET", "/stream/rights/sink/read/events", status=401)
    for bad in ({"expiry": 0}, {"expiry": 31_536_001}, {"oldTokenExpiry": -1}, {"oldTokenExpiry": 86_401}):
        talk.ask("POST", f"{path}/rotate", bad, status=422)
    portal.ask("POST", "/auth/stream-logout", status=204)
    portal.ask("GET", "/stream/rights", status=401)
    again = talk.ask("POST", "/auth/stream-portal-access/rights", {})["token"]
    talk.ask("POST", "/auth/stream/rights/expire-all", {}, status=204)
    talk.with_headers(authorization=f"Bearer {again}").ask("GET", "/stream/rights", status=401)
    talk.ask("DELETE", "/stream/rights", status=204)


__all__ = ["webhooks"]
