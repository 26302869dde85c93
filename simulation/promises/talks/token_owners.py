"""Whose tokens are whose: one request for all messages of an endpoint, and none that another's namesake could use.

Sources: docs/gates.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from simulation.promises.talks.talk import Came, Said, Talk

KIND = "owners.made"
MANY = 30


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_one_for_all, _namesakes)


def _grant(path: str) -> dict[str, Any]:
    fields = {"grantType": "clientCredentials", "authMethod": "clientSecretPost", "clientId": f"client-{path}"}
    return {**fields, "clientSecret": f"hush-{path}", "tokenUrl": f"https://owners-login.example/{path}"}


def _endpoint(talk: Talk, app: str, uid: str, path: str, says: Any = (200, b"")) -> Sequence[Came]:
    """An endpoint that wants a token; what comes to it."""
    host = f"owners-{app}-{uid}.example"
    came = talk.listen(host, lambda _: says)
    talk.ask("POST", f"/app/{app}/endpoint", {"url": f"https://{host}/in", "uid": uid}, status=201)
    talk.ask("PUT", f"/app/{app}/endpoint/{uid}/oauth", _grant(path), status=204)
    return came


def _application(talk: Talk, uid: str) -> None:
    talk.ask("POST", "/app", {"name": uid, "uid": uid}, status=201)


def _post(talk: Talk, app: str, number: int = 1) -> str:
    body = {"eventType": KIND, "payload": {"n": number}}
    return str(talk.ask("POST", f"/app/{app}/msg", body, status=202)["id"])


def _gives(token: str, lasts: int = 36_000) -> tuple[int, bytes]:
    return 200, json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": lasts}).encode()


def _shown(came: Sequence[Came]) -> list[str | None]:
    return [each.headers.get("authorization") for each in came]


def _numbers(came: Sequence[Came]) -> list[int]:
    return [json.loads(each.body)["n"] for each in came]


def _one_for_all(talk: Talk) -> None:
    """Many messages at once need one token, and none of them is sent without it, though the server is slow."""
    says: Said = (*_gives("for-all"), {}, 3.0)
    asked = talk.listen("owners-login.example", lambda _: says)
    _application(talk, "many")
    came = _endpoint(talk, "many", "one", "many")
    talk.sleep(2)
    for number in range(MANY):
        _post(talk, "many", number)
    talk.sleep(30 + talk.put_off_s + talk.gathered_s)
    talk.came("one request", 1, len(asked))
    talk.came("for all", {"Bearer for-all"}, {*_shown(came)})
    talk.came("each once", [*range(MANY)], sorted(_numbers(came)))
    talk.ask("DELETE", "/app/many", status=204)


def _namesakes(talk: Talk) -> None:
    """Endpoints with equal names have nothing in common: each its own token and settings; one that is removed leaves
    the other's, and one that is made again under its name has none.
    """
    asked = talk.listen("owners-login.example", lambda came: _gives(f"of-{came.path[1:]}"))
    came = {}
    for app in ("left", "right"):
        _application(talk, app)
        came[app] = _endpoint(talk, app, "same", app)
    talk.sleep(2)
    for app in came:
        _post(talk, app)
    talk.sleep(10 + talk.put_off_s)
    talk.came("each its own", [["Bearer of-left"], ["Bearer of-right"]], [_shown(each) for each in came.values()])
    talk.ask("DELETE", "/app/left/endpoint/same", status=204)
    talk.ask("GET", "/app/right/endpoint/same/oauth", shows={"clientId": "client-right"})
    url = {"url": "https://owners-left-same.example/in", "uid": "same"}
    talk.ask("POST", "/app/left/endpoint", url, status=201)
    talk.ask("GET", "/app/left/endpoint/same/oauth", status=404)
    talk.ask("DELETE", "/app/left/endpoint/same/oauth", status=404)
    talk.ask("GET", "/app/left/endpoint/same/oauth-config", shows={"enabled": False})
    talk.sleep(2)
    for app in came:
        _post(talk, app, 2)
    talk.sleep(10 + talk.put_off_s)
    talk.came("none where it is new", [None, "Bearer of-right"], [_shown(each)[-1] for each in came.values()])
    talk.came("each once", [2, 2, 2], [len(asked), *(len(each) for each in came.values())])
    # What stands for a stored secret stands for nothing there
    for secret in ({"clientSecret": "********"}, {}):
        fields = {name: each for name, each in _grant("left").items() if name != "clientSecret"}
        talk.ask("PUT", "/app/left/endpoint/same/oauth", {**fields, **secret}, status=422)
    for app in came:
        talk.ask("DELETE", f"/app/{app}", status=204)


__all__ = ["webhooks"]
