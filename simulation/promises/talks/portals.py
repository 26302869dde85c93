"""What a portal's holder may do within limits, and what receivers and senders of his demand: event types with flags,
URLs out of reach, tokens and certificates that stay with their host, and queues that take one sender's webhooks.

Sources: docs/webhooks.md (Portal, Operational webhooks), docs/gates.md, docs/sources.md (Queues), RFC 6749, RFC 7523.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from simulation.promises.talks.talk import Came, Talk

KIND, FLAGGED, HIDDEN = "portals.made", "portals.beta", "portals.gamma"
APP = "/app/portals"
URL = {"url": "https://talk-portals.example/in"}


def webhooks(talk: Talk) -> None:
    """All that is limited."""
    talk.through(_begun, _flags, _reach, _bound, _granted, _certified, _operational, _troubled, _queues, _over)


def _begun(talk: Talk) -> None:
    for name, more in ((KIND, {}), (FLAGGED, {"featureFlags": ["beta"]}), (HIDDEN, {"featureFlags": ["gamma"]})):
        talk.ask("POST", "/event-type", {"name": name, "description": "d", **more}, status=201)
    talk.ask("POST", "/app", {"name": "Portals", "uid": "portals"}, status=201)


def _over(talk: Talk) -> None:
    talk.ask("DELETE", APP, status=204)
    for name in (KIND, FLAGGED, HIDDEN):
        talk.ask("DELETE", f"/event-type/{name}?expunge=true", status=204)


def _portal(talk: Talk, **wanted: Any) -> Talk:
    token = talk.ask("POST", "/auth/app-portal-access/portals", wanted)["token"]
    return talk.with_headers(authorization=f"Bearer {token}")


def _post(talk: Talk, event_type: str = KIND, **payload: Any) -> str:
    return str(talk.ask("POST", f"{APP}/msg", {"eventType": event_type, "payload": payload}, status=202)["id"])


def _flags(talk: Talk) -> None:
    """Event types with a flag are for tokens that have it; endpoints for all get what their maker could choose."""
    came = {name: talk.listen(f"talk-flags-{name}.example", lambda _: (200, b"")) for name in ("plain", "beta", "all")}
    plain, beta = _portal(talk), _portal(talk, featureFlags=["beta"])
    for caller, names in ((plain, [KIND]), (beta, [FLAGGED, KIND]), (talk, [FLAGGED, HIDDEN, KIND])):
        caller.ask("GET", "/event-type", shows={"data": [{"name": each} for each in names]})
        for name in (KIND, FLAGGED, HIDDEN):
            caller.ask("GET", f"/event-type/{name}", status=200 if name in names else 404)
            fields = {**URL, "uid": "flagged", "eventTypes": [name]}
            caller.ask("POST", f"{APP}/endpoint", fields, status=201 if name in names else 422)
            if name in names:
                talk.ask("DELETE", f"{APP}/endpoint/flagged", status=204)
    for name, caller in (("plain", plain), ("beta", beta), ("all", talk)):
        fields = {"url": f"https://talk-flags-{name}.example/in", "uid": name}
        caller.ask("POST", f"{APP}/endpoint", fields, status=201)
        # Who chose them stays who did
        talk.ask("PATCH", f"{APP}/endpoint/{name}", {"description": "changed by the project"})
    for name in (KIND, FLAGGED, HIDDEN):
        _post(talk, name, kind=name)
    talk.sleep(15 + talk.put_off_s)
    for name, kinds in (("plain", [KIND]), ("beta", [FLAGGED, KIND]), ("all", [FLAGGED, HIDDEN, KIND])):
        found = sorted(json.loads(each.body)["kind"] for each in came[name])
        talk.came(f"for all types, made by {name}", kinds, found)
    # Whoever sets the event types is from then on who chose them
    talk.ask("PATCH", f"{APP}/endpoint/plain", {"eventTypes": None})
    beta.ask("PATCH", f"{APP}/endpoint/all", {"eventTypes": None})
    before = {name: len(each) for name, each in came.items()}
    for name in (KIND, FLAGGED, HIDDEN):
        _post(talk, name, kind=name)
    talk.sleep(15 + talk.put_off_s)
    for name, kinds in (("plain", [FLAGGED, HIDDEN, KIND]), ("beta", [FLAGGED, KIND]), ("all", [FLAGGED, KIND])):
        found = sorted(json.loads(each.body)["kind"] for each in came[name][before[name] :])
        talk.came(f"for all types, set by another, {name}", kinds, found)
    plain.ask("PATCH", f"{APP}/endpoint/plain", {"eventTypes": None})
    # What it could not choose is not sent to it by a portal, either
    *_, hidden = (each["id"] for each in talk.ask("GET", f"{APP}/msg")["data"] if each["eventType"] == HIDDEN)
    plain.ask("POST", f"{APP}/msg/{hidden}/endpoint/plain/resend", status=403)
    talk.ask("POST", f"{APP}/msg/{hidden}/endpoint/plain/resend", status=202)
    talk.sleep(5)
    talk.came("the project may", HIDDEN, json.loads(came["plain"][-1].body)["kind"])
    for name in came:
        talk.ask("DELETE", f"{APP}/endpoint/{name}", status=204)


def _reach(talk: Talk) -> None:
    """Endpoints in the hub itself are the project's: a portal neither makes, sees into, nor changes them."""
    portal = _portal(talk)
    path = f"{APP}/endpoint/inner"
    for url in ("ironmq:///inner", "notification2://inner?api=events&source=1", "ironworker://p:t@worker.example/code"):
        portal.ask("POST", f"{APP}/endpoint", {"url": url, "uid": "inner"}, status=422)
    talk.ask("POST", f"{APP}/endpoint", {"url": "ironmq:///inner", "uid": "inner"}, status=201)
    talk.ask("GET", path, shows={"url": "ironmq:///inner"})
    seen = portal.ask("GET", path, shows={"uid": "inner"})
    talk.is_so("without its URL", False, "ironmq:///inner" in json.dumps(seen))
    message = _post(talk, n=1)
    talk.sleep(15 + talk.put_off_s)
    for method, more, body in (
        ("PATCH", "", {"description": "x"}),
        ("PATCH", "", URL),
        ("PUT", "", {**URL, "uid": "inner"}),
        ("DELETE", "", None),
        ("GET", "/secret", None),
        ("GET", "/headers", None),
        ("PUT", "/headers", {"headers": {}}),
        ("POST", "/secret/rotate", {}),
        ("POST", "/recover", {"since": "2026-11-17T00:00:00Z"}),
    ):
        portal.ask(method, f"{path}{more}", body, status=403)
    portal.ask("POST", f"{APP}/msg/{message}/endpoint/inner/resend", status=403)
    queue = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    queue.ask("GET", "/queues/inner", shows={"queue": {"size": 1}})
    [held] = queue.ask("POST", "/queues/inner/reservations", {}, shows={"messages": [...]})["messages"]
    talk.is_so("its payload", {"n": 1}, json.loads(held["body"]))
    queue.ask("DELETE", "/queues/inner")
    talk.ask("PATCH", path, {"description": "mine"}, shows={"description": "mine"})
    talk.ask("DELETE", path, status=204)


OAUTH: Mapping[str, Any] = {
    "grantType": "clientCredentials",
    "authMethod": "clientSecretBasic",
    "clientId": "me:é",
    "clientSecret": "s p&",
    "tokenUrl": "https://talk-tokens.example/token",
    "scopes": ["a", "b"],
    "extraParams": {"audience": "x"},
    "extraHeaders": {"X-Tenant": "t"},
}


def _bound(talk: Talk) -> None:
    """What was given for one host does not go with an endpoint to another, but by who may see secrets."""
    path = f"{APP}/endpoint/bound"
    talk.listen("talk-elsewhere.example", lambda _: (200, b""))
    talk.ask("POST", f"{APP}/endpoint", {**URL, "uid": "bound", "headers": {"Authorization": "Bearer x"}}, status=201)
    blind = _portal(talk, capabilities=["ViewBase", "ManageEndpoint", "ManageEndpointSecret"])
    seeing = _portal(talk)
    there = {"url": "https://talk-elsewhere.example/in"}
    blind.ask("PATCH", path, {"url": "https://talk-portals.example/other"}, shows={"url": lambda url: "other" in url})
    for url in (there["url"], "https://talk-portals.example:8443/in", "http://talk-portals.example/in"):
        blind.ask("PATCH", path, {"url": url}, status=422)
    blind.ask("PATCH", f"{path}/headers", {"headers": {}, "deleteHeaders": ["Authorization"]}, status=204)
    blind.ask("PATCH", path, there, shows=there)
    talk.ask("PUT", f"{path}/oauth", OAUTH, status=204)
    blind.ask("PATCH", path, URL, status=422)
    seeing.ask("PATCH", path, URL, shows=URL)
    blind.ask("PATCH", path, there, status=422)
    blind.ask("DELETE", f"{path}/oauth", status=204)
    blind.ask("PATCH", path, there, shows=there)
    talk.ask("PUT", f"{path}/mtls", {"identity": _identity(talk)}, status=204)
    blind.ask("PATCH", path, URL, status=422)
    blind.ask("PATCH", path, {"url": f"{there['url']}/deeper"}, shows={"url": f"{there['url']}/deeper"})
    seeing.ask("PATCH", path, URL, shows=URL)
    blind.ask("DELETE", f"{path}/mtls", status=204)
    blind.ask("PATCH", path, there, shows=there)
    talk.ask("DELETE", path, status=204)


def _identity(talk: Talk) -> str:
    """A client certificate with its key, as the hub's own description has one."""
    document = talk.at("").ask("GET", "/openapi.json")
    content = document["paths"]["/api/v1/app/{app}/endpoint/{endpoint}/mtls"]["put"]["requestBody"]["content"]
    return str(content["application/json"]["example"]["identity"])


def _granted(talk: Talk) -> None:
    """How the token server is asked, by each method; what is kept when a secret is left out; what is refused."""
    answers = {"access_token": "the-token", "token_type": "Bearer", "expires_in": 3_600}
    asked = talk.listen("talk-tokens.example", lambda _: (200, json.dumps(answers).encode()))
    came = talk.listen("talk-portals.example", lambda _: (200, b""))
    path = f"{APP}/endpoint/granted"
    talk.ask("POST", f"{APP}/endpoint", {**URL, "uid": "granted"}, status=201)
    talk.ask("DELETE", f"{path}/oauth", status=404)
    more: Mapping[str, Any]
    for method, more in (("clientSecretBasic", {}), ("clientSecretPost", {"scopes": [], "extraParams": {}})):
        talk.ask("PUT", f"{path}/oauth", {**OAUTH, "authMethod": method, **more}, status=204)
        shown = {**OAUTH, "authMethod": method, **more}
        hidden = {name: each for name, each in shown.items() if name not in {"clientSecret", "extraHeaders"}}
        talk.ask("GET", f"{path}/oauth", shows=hidden)
        config = talk.ask("GET", f"{path}/oauth-config", shows={"enabled": True, "config": hidden})
        talk.is_so("no secret", False, "s p&" in json.dumps(config))
        talk.sleep(2)
        before = len(asked)
        _post(talk, n=1)
        talk.sleep(10)
        talk.came("one token", 1, len(asked) - before)
        _is_asked_so(talk, asked[-1], method, more)
        talk.came("with it", "Bearer the-token", came[-1].headers.get("authorization"))
    # Left out or masked, the secret stays; for another client there has to be one
    kept = {**OAUTH, "authMethod": "clientSecretPost"}
    for secret in ({"clientSecret": "********"}, {}):
        without = {name: each for name, each in kept.items() if name != "clientSecret"}
        talk.ask("PUT", f"{path}/oauth", {**without, **secret}, status=204)
        for other in ({"clientId": "else"}, {"tokenUrl": "https://talk-tokens.example/else"}):
            talk.ask("PUT", f"{path}/oauth", {**without, **secret, **other}, status=422)
    for bad in (
        {"grantType": "password"},
        {"authMethod": "none"},
        {"clientId": ""},
        {"tokenUrl": "ftp://a.example/"},
        {"scopes": "a"},
        {"scopes": [7]},
        {"extraParams": {"a": 7}},
        {"extraParams": {f"n{number}": "v" for number in range(11)}},
        {"extraHeaders": {"Authorization": "x"}},
        {"authMethod": "clientSecretJwt"},
        {"authMethod": "clientSecretJwt", "jwtParams": {"secretBase64": "AAAA"}},
    ):
        talk.ask("PUT", f"{path}/oauth", {**OAUTH, **bad}, status=422)
    # One authorization: neither beside a header of its own, nor in its URL
    talk.ask("PUT", f"{path}/headers", {"headers": {"Authorization": "Bearer x"}}, status=422)
    talk.ask("PATCH", path, {"url": "https://me:too@talk-portals.example/in"}, status=422)
    talk.ask("DELETE", f"{path}/oauth", status=204)
    talk.ask("GET", f"{path}/oauth", status=404)
    talk.ask("DELETE", path, status=204)


def _is_asked_so(talk: Talk, asked: Came, method: str, more: Mapping[str, Any]) -> None:
    """A request for a token, as RFC 6749 has it."""
    form = {name: texts[0] for name, texts in parse_qs(asked.body.decode()).items()}
    expected = {"grant_type": "client_credentials"}
    expected |= {} if more else {"scope": "a b", "audience": "x"}
    authorization = None
    if method == "clientSecretBasic":
        authorization = f"Basic {base64.b64encode(b'me%3A%C3%A9:s+p%26').decode()}"
    else:
        expected |= {"client_id": "me:é", "client_secret": "s p&"}
    talk.came("what it is asked", lambda each: each == expected, form)
    talk.came("as whom", authorization, asked.headers.get("authorization"))
    talk.came("its headers", {"x-tenant": "t", "content-type": "application/x-www-form-urlencoded"}, asked.headers)


def _certified(talk: Talk) -> None:
    """A client certificate: what is shown of it, for whom there is none, and how it ends."""
    identity = _identity(talk)
    talk.ask("POST", f"{APP}/endpoint", {**URL, "uid": "certified"}, status=201)
    talk.ask(
        "POST",
        "/operational-webhook/endpoint",
        {**URL, "uid": "certified", "eventTypes": ["endpoint.deleted"]},
        status=201,
    )
    for path in (f"{APP}/endpoint/certified", "/operational-webhook/endpoint/certified"):
        talk.ask("GET", f"{path}/mtls", status=404)
        talk.ask("DELETE", f"{path}/mtls", status=404)
        talk.ask("PUT", f"{path}/mtls", {"identity": identity}, status=204)
        shown = talk.ask("GET", f"{path}/mtls-config", shows={"enabled": True, "config": dict})
        talk.is_so(
            "its name, and no key", (True, False), ("pushhub.example" in f"{shown}", "PRIVATE KEY" in f"{shown}")
        )
        talk.ask("GET", f"{path}/mtls", shows=lambda each, shown=shown: each == shown["config"])
        key, _, certificate = identity.partition("-----BEGIN CERTIFICATE-----")
        for bad in (key, f"-----BEGIN CERTIFICATE-----{certificate}", 2 * key, 33_000 * "x", 7):
            talk.ask("PUT", f"{path}/mtls", {"identity": bad}, status=422)
        talk.ask("PUT", f"{path}/mtls", {"identity": identity, "ca": "junk"}, status=422)
        talk.ask("GET", f"{path}/mtls-config", shows=lambda each, shown=shown: each == shown)
    path = f"{APP}/endpoint/certified"
    talk.ask(
        "GET",
        f"{path}/health",
        shows={"certificateEndsAt": lambda at: at.startswith("2126-01-01"), "certificateDaysLeft": int},
    )
    talk.ask("PATCH", path, {"url": "http://talk-portals.example/in"}, status=422)
    for path in (f"{APP}/endpoint/certified", "/operational-webhook/endpoint/certified"):
        talk.ask("DELETE", f"{path}/mtls", status=204)
        talk.ask("GET", f"{path}/mtls-config", shows={"enabled": False})
        talk.ask("DELETE", path, status=204)
    talk.ask("POST", f"{APP}/endpoint", {"url": "http://talk-portals.example/in", "uid": "plain"}, status=201)
    talk.ask("PUT", f"{APP}/endpoint/plain/mtls", {"identity": identity}, status=422)
    talk.ask("DELETE", f"{APP}/endpoint/plain", status=204)


def _operational(talk: Talk) -> None:
    """Operational endpoints have secrets, headers and signatures as others have, and no PATCH."""
    came = talk.listen("talk-portals.example", lambda _: (200, b""))
    path = "/operational-webhook/endpoint/told"
    talk.ask(
        "POST", "/operational-webhook/endpoint", {**URL, "uid": "told", "eventTypes": ["endpoint.created"]}, status=201
    )
    talk.is_so("no PATCH", lambda each: each in {404, 405}, talk.status("PATCH", path, {"description": "x"}))
    talk.ask("PUT", f"{path}/headers", {"headers": {"X-Own": "1", "X-Api-Key": "k"}}, status=204)
    talk.ask("GET", f"{path}/headers", shows={"headers": {"X-Own": "1"}, "sensitive": ["X-Api-Key"]})
    talk.ask("PUT", f"{path}/signatures", {"signatures": [{"preset": "github", "secret": "12345678"}]})
    talk.ask("GET", f"{path}/signatures", shows={"signatures": [{"preset": "github"}]})
    talk.sleep(2)
    made_id = talk.ask("POST", f"{APP}/endpoint", {**URL, "uid": "new"}, status=201)["id"]
    talk.sleep(10)
    about = [each for each in came if made_id.encode() in each.body]
    talk.came(
        "it is told of it",
        [{"x-own": "1", "x-api-key": "k", "x-hub-signature-256": str}],
        [each.headers for each in about],
    )
    told_of = {"type": "endpoint.created", "data": {"appUid": "portals", "endpointId": made_id, "endpointUid": "new"}}
    talk.came("as this", [told_of], [json.loads(each.body) for each in about])
    talk.ask("PUT", f"{path}/signatures", {"signatures": []})
    key = talk.ask("GET", f"{path}/secret", shows={"key": str})["key"]
    talk.ask("POST", f"{path}/secret/rotate", {}, status=204)
    talk.is_so("another key", True, talk.ask("GET", f"{path}/secret")["key"] != key)
    talk.ask("DELETE", path, status=204)
    talk.ask("DELETE", f"{APP}/endpoint/new", status=204)


def _troubled(talk: Talk) -> None:
    """Which endpoints get nothing, and why; counted, and by state."""
    talk.ask("GET", "/health/endpoints", shows={"total": 0, "data": []})
    talk.ask("POST", f"{APP}/endpoint", {**URL, "uid": "off", "disabled": True}, status=201)
    talk.ask("POST", f"{APP}/endpoint", {**URL, "uid": "on"}, status=201)
    talk.sleep(2)
    row = {"appName": "Portals", "endpoint": {"uid": "off"}, "health": {"state": "disabled"}, "circuit": "closed"}
    talk.ask("GET", "/health/endpoints", shows={"total": 1, "totals": {"disabled": 1}, "data": [row]})
    states = {"off": "disabled", "on": "delivering"}
    listed = talk.ask("GET", f"{APP}/endpoint")["data"]
    talk.is_so("in lists", states, {each["uid"]: each["health"]["state"] for each in listed})
    for uid, state in states.items():
        shows = {"disabled": uid == "off", "health": {"state": state}, "waiting": 0, "oldSecretsEnd": []}
        talk.ask("GET", f"{APP}/endpoint/{uid}/health", shows=shows)
        talk.ask("DELETE", f"{APP}/endpoint/{uid}", status=204)


def _queues(talk: Talk) -> None:
    """A queue that names a sender takes what that one has signed."""
    queue = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    sender = talk.at("").with_headers(authorization="")
    path = f"/3/projects/{talk.project}/queues/signed/webhook?oauth={talk.token}"
    queue.ask("PUT", "/queues/signed", {"queue": {"type": "pull", "webhook": {"type": "github", "secret": "s3cret"}}})
    shown = queue.ask("GET", "/queues/signed", shows={"queue": {"webhook": {"type": "github"}}})
    talk.is_so("no secret", False, "s3cret" in json.dumps(shown))
    body = b'{"ref": "main"}'
    signature = f"sha256={hmac.digest(b's3cret', body, hashlib.sha256).hex()}"
    for headers, status in (
        ({"x-hub-signature-256": signature}, 201),
        ({"x-hub-signature-256": signature.replace("sha256=", "sha256=0")}, 400),
        ({}, 400),
    ):
        talk.is_so(f"with {[*headers]}", status, sender.with_headers(**headers).status("POST", path, body))
    talk.is_so("of another token", 401, sender.status("POST", path + "x", body))
    queue.ask("GET", "/queues/signed/messages", shows={"messages": [{"body": body.decode()}]})
    queue.ask(
        "PATCH", "/queues/signed", {"queue": {"webhook": False}}, shows=lambda each: "webhook" not in each["queue"]
    )
    talk.is_so("anything", 201, sender.status("POST", path, b"anything"))
    queue.ask("DELETE", "/queues/signed")


__all__ = ["webhooks"]
