"""The audit trail, talked through: who changed what, in the list of changes and in what the command prints.

Source: docs/operations.md (Audit trail), docs/ironmq.md (``GET /changes``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from simulation.promises.talks.command_line.printed import WRONG_USAGE
from simulation.promises.talks.talk import Talk

HIDDEN = "********"
ADDRESS = "203.0.113.9"
"""Where this client asks from."""
A_PAGE = 20
"""Changes in an answer."""
CLOCKS_S = 25
"""How far the clock of an environment may be off."""
SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"

QUEUE = "/queues/audited"
SUBSCRIBER = {
    "name": "one",
    "url": "https://user:word@audited.example/hook",
    "headers": {"Authorization": "Bearer 7c2f", "X-Plain": "also hidden"},
}
HIDES = {
    "name": "one",
    "url": f"https://{HIDDEN}@audited.example/hook",
    "headers": {"Authorization": HIDDEN, "X-Plain": HIDDEN},
}


def everything(talk: Talk) -> None:
    """Changes of settings, and what is none."""
    talk.through(_kept, _whose, _by_pages, _typed, _hidden, _of_all)


def _kept(talk: Talk) -> None:
    """Each change is kept with who made it, what was asked, the object before and after, and the status; what opens
    something is hidden. What changes no settings leaves nothing.
    """
    [token] = talk.typed("tokens", "list", talk.project)
    created = {"queue": {"type": "multicast", "push": {"subscribers": [SUBSCRIBER], "retries": 7}}}
    first, then = ({"queue": {"message_timeout": each, "push": {"subscribers": [HIDES]}}} for each in (60, 61))
    asked: list[dict[str, Any]] = []
    steps: tuple[tuple[str, str, object, int, Mapping[str, Any]], ...] = (
        ("PUT", QUEUE, created, 200, {"action": "ironmq.put_queue", "before": None, "after": first}),
        ("PATCH", QUEUE, {"queue": {"message_timeout": 61}}, 200, {"before": first, "after": then}),
        ("PATCH", QUEUE, {"queue": {"message_timeout": -1}}, 400, {"before": then, "after": None}),
        ("PATCH", "/queues/none", {"queue": {}}, 404, {"before": None, "after": None}),
        ("DELETE", QUEUE, None, 200, {"action": "ironmq.delete_queue", "before": then, "after": None, "asked": None}),
    )
    for method, path, body, status, shown in steps:
        began = talk.epoch_s()
        talk.with_headers(user_agent=f"client {status}").ask(method, path, body, status=status)
        asked.insert(
            0,
            {
                "at": _between(began, talk.epoch_s()),
                "by": {"kind": "token", "token": token["token_id"]},
                "from": {"address": ADDRESS, "agent": f"client {status}"},
                "what": f"{method} /3/projects/{talk.project}{path}",
                "status": status,
                "made": None,
                **({"asked": body} if method == "PATCH" else {}),
                **shown,
            },
        )
        talk.ask("GET", QUEUE, status=404 if method == "DELETE" else 200)
        talk.sleep(1, exactly=True)
    put = asked[-1]["asked"] = {"queue": {"type": "multicast", "push": {"subscribers": [HIDES], "retries": 7}}}
    talk.is_so("what opens something is nowhere", False, "Bearer" in str(put))
    talk.ask("POST", f"{QUEUE}/messages", {"messages": [{"body": "no change of settings"}]}, status=201)
    talk.ask("POST", f"{QUEUE}/reservations", {"n": 1}, shows={"messages": [...]})
    talk.ask("GET", "/changes", shows={"kept": True, "changes": asked, "after": None})
    talk.refused("GET", "/changes?after=x")


def _hidden(talk: Talk) -> None:
    """Nothing in the list opens anything: neither what owners set, nor what the hub has made for them."""
    api = talk.at("/api/v1").with_headers(authorization=f"Bearer {talk.token}")
    ingest = api.at("/ingest/api/v1")
    source = {"name": "Hidden", "uid": "hidden", "type": "generic-webhook", "config": {}}
    urls = [ingest.ask("POST", "/source", source, status=201)["ingestUrl"]]
    urls.append(ingest.ask("POST", "/source/hidden/token/rotate")["ingestUrl"])
    ingest.ask("PUT", "/source/hidden", {**source, "name": "Hidden too"})
    api.ask("POST", "/app", {"name": "Hidden", "uid": "hidden"}, status=201)
    given = "whsec_" + 32 * "h"
    endpoint = {"url": "https://audited-hidden.example/in", "uid": "e", "secret": given, "headers": {"X-Key": "hush-1"}}
    api.ask("POST", "/app/hidden/endpoint", endpoint, status=201)
    api.ask("PATCH", "/app/hidden/endpoint/e", {"description": "changed"})
    tokens = [api.ask("POST", "/auth/app-portal-access/hidden", {})["token"]]
    integration = api.ask("POST", "/app/hidden/integration", {"name": "CRM"}, status=201)["id"]
    tokens.append(api.ask("POST", f"/app/hidden/integration/{integration}/key/rotate")["key"])
    grant = {
        "grantType": "clientCredentials",
        "authMethod": "clientSecretPost",
        "clientId": "c",
        "clientSecret": "hush-2",
        "tokenUrl": "https://audited-login.example/",
    }
    api.ask("PUT", "/app/hidden/endpoint/e/oauth", grant, status=204)
    for path in ("/app/hidden/endpoint/e", "/app/hidden"):
        api.ask("DELETE", path, status=204)
    ingest.ask("DELETE", "/source/hidden", status=204)
    listed = talk.ask("GET", "/changes")["changes"]
    talk.is_so("the latest first", [204, 204, 204, 204], [each["status"] for each in listed[:4]])
    shown = json.dumps(listed)
    secrets = [given, "hush-1", "hush-2", *tokens, *(each.rpartition("/")[2] for each in urls), talk.token]
    talk.is_so("what is shown", [True, *[False] * len(secrets)], [each in shown for each in ("Hidden too", *secrets)])


def _whose(talk: Talk) -> None:
    """An application's owner is told from the project; a project sees its own."""
    service = talk.at("").with_headers(authorization=f"Bearer {talk.token}")
    app = service.ask("POST", "/api/v1/app", {"name": "Audited"}, status=201)["id"]
    access = service.ask("POST", f"/api/v1/auth/app-portal-access/{app}", {})
    owner = talk.at("").with_headers(authorization=f"Bearer {access['token']}")
    path = f"/api/v1/app/{app}/endpoint"
    endpoint = owner.ask("POST", path, {"url": "https://owned.example/", "secret": SECRET}, status=201)["id"]
    found = talk.ask("GET", "/changes")["changes"][:3]
    shown = [
        {
            "action": "webhooks.create_endpoint",
            "by": {"kind": "portal", "app": app},
            "what": f"POST {path}",
            "asked": {"url": "https://owned.example/", "secret": HIDDEN},
            "before": None,
            "made": endpoint,
            "status": 201,
        },
        {"what": f"POST /api/v1/auth/app-portal-access/{app}", "by": {"kind": "token"}, "status": 200},
        {"what": "POST /api/v1/app", "asked": {"name": "Audited"}, "made": app, "status": 201},
    ]
    talk.is_so("changes of webhooks", shown, found)
    talk.is_so("a token is nowhere", False, access["token"] in str(found))


def _by_pages(talk: Talk) -> None:
    """Newest first, so many in an answer; the next answer goes on where the last one ended."""
    for number in range(A_PAGE + 1):
        talk.ask("PUT", f"/queues/page-{number}", {})
    first = talk.ask("GET", "/changes")
    talk.is_so("a page", [f"/queues/page-{each}" for each in range(A_PAGE, 0, -1)], [*map(_queue, first["changes"])])
    talk.is_so("there is more", str, first["after"])
    rest = talk.ask("GET", f"/changes?after={first['after']}")
    talk.is_so("the page goes on", "/queues/page-0", _queue(rest["changes"][0]))
    talk.is_so("the last page", None, rest["after"])
    times = [each["at"] for each in (*first["changes"], *rest["changes"])]
    talk.is_so("newest first", sorted(times, reverse=True), times)


def _typed(talk: Talk) -> None:
    """The command prints the same, oldest first, and what operators did."""
    talk.ask("PUT", "/queues/typed", {})
    talk.ask("DELETE", "/queues/typed")
    listed: list[Any] = []
    page: Any = {"after": ""}
    while page["after"] is not None:
        page = talk.ask("GET", f"/changes?after={page['after']}")
        listed += page["changes"]
    listed.reverse()
    talk.typed("audit", talk.project, shows=listed)
    talk.typed("audit", talk.project, "--since", "1h", shows=listed)
    puts = [each for each in listed if each["action"] == "ironmq.put_queue"]
    talk.typed("audit", talk.project, "--action", "ironmq.put_queue", shows=puts)
    talk.typed("audit", talk.project, "--action", "ironmq.put", shows=puts)
    talk.sleep(120, exactly=True)
    talk.typed("audit", talk.project, "--since", "1m", shows=[])
    talk.typed("audit", "operators", "--action", "audit", shows=[])
    talk.typed("audit", "unknown", shows=[])
    talk.typed("audit", "none", code=WRONG_USAGE)


def _of_all(talk: Talk) -> None:
    """Stores and topics keep changes alike, refused ones too; who has only a consumer's token is in no project."""
    store = talk.at(f"/api/stores/{talk.project}").with_headers(x_augury_token=talk.token)
    topics = talk.at("/notification2").with_headers(authorization=f"Bearer {talk.token}")
    known = {each["id"] for each in talk.ask("GET", "/changes")["changes"]}
    fields = {"name": "m", "url": "https://audited-all.example/in", "token": "hush-3", "messages": ["audited:one"]}
    mapping = f"/mappings/{store.ask('POST', '/mappings', {'mapping': fields}, status=201)['id']}"
    talk.sleep(1, exactly=True)
    store.ask("PUT", mapping, {"mapping": {"enabled": False}})
    talk.sleep(1, exactly=True)
    store.ask("DELETE", mapping)
    talk.sleep(1, exactly=True)
    rule = {"context": "tenant", "subscription": "audited"}
    subscription = topics.ask("POST", "/subscriptions", rule, status=201)["id"]
    talk.sleep(1, exactly=True)
    topics.ask("POST", "/subscriptions", rule, status=409)
    talk.sleep(1, exactly=True)
    topics.ask("DELETE", f"/subscriptions/{subscription}", status=204)
    token = topics.ask("POST", "/token", {"subscription": "audited", "subscriber": "s"})["token"]
    topics.with_headers(authorization="").ask("POST", f"/unsubscribe?token={token}", status=500)
    listed = talk.ask("GET", "/changes")["changes"]
    found = [each for each in listed if each["id"] not in known]
    path = f"/api/stores/{talk.project}/mappings"
    expected: list[Any] = [
        {"what": f"DELETE /notification2/subscriptions/{subscription}", "status": 204, "before": rule},
        {"what": "POST /notification2/subscriptions", "status": 409, "asked": rule, "made": None},
        {"what": "POST /notification2/subscriptions", "status": 201, "asked": rule, "made": subscription},
        {"what": lambda each: each.startswith(f"DELETE {path}/"), "status": 200, "after": None},
        {"what": lambda each: each.startswith(f"PUT {path}/"), "status": 200},
        {"what": f"POST {path}", "status": 201, "before": None},
    ]
    talk.is_so("changes of all protocols", expected, found)
    talk.is_so("before and after", (True, False), (_enabled(found[4]["before"]), _enabled(found[4]["after"])))
    [shown] = talk.typed("audit", "unknown")
    own = {"by": {"kind": "link"}, "status": 500, "action": "notifications.unsubscribe"}
    talk.is_so("only a consumer's token", own, shown)
    talk.is_so(
        "nothing opens anything", [False] * 3, [each in f"{listed}{shown}" for each in (token, "hush-3", talk.token)]
    )


def _enabled(shown: Mapping[str, Any]) -> Any:
    """Whether a mapping is on."""
    return shown.get("mapping", shown)["enabled"]


def _between(began: int, ended: int) -> Any:
    """That a shown time is between two moments, seconds; clocks are off by some."""

    def holds(shown: str) -> bool:
        return began - CLOCKS_S <= _seconds(shown) <= ended + CLOCKS_S

    return holds


def _seconds(shown: str) -> float:
    return datetime.fromisoformat(shown).timestamp()


def _queue(change: Mapping[str, Any]) -> str:
    return str(change["what"].partition(change["what"].split("/")[3])[2])


__all__ = ["everything"]
