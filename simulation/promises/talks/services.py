"""A service of the hub protocol: how it answers, the mapping that leads to it, and messages for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from simulation.promises.talks.talk import Came, Talk

AN_ID = 24
"""Digits of an identifier."""


def done(came: Came, **more: Any) -> tuple[int, bytes]:
    """The answer of a service that has completed a message, and says more."""
    return 200, json.dumps({"message_id": json.loads(came.body)["message_id"], **more}).encode()


def mapped(talk: Talk, name: str, kinds: Sequence[str], **more: Any) -> str:
    """A mapping with a service at a host of its name; its path."""
    fields = {"name": name, "url": f"https://{name}.example/in", "token": "t", "messages": list(kinds), **more}
    return f"/mappings/{talk.ask('POST', '/mappings', {'mapping': fields}, status=201)['id']}"


def pushed(talk: Talk, kind: str, payload: Mapping[str, Any], **more: Any) -> str:
    """A message is posted; its id."""
    body = {"message": kind, "payload": payload, **more}
    shows = {**body, "message_id": lambda each: len(each) == AN_ID}
    return str(talk.ask("POST", "/messages", body, status=201, shows=shows)["message_id"])


def copies(talk: Talk, message_id: str) -> list[dict[str, Any]]:
    """What was made of a message, with all details."""
    children = talk.ask("GET", f"/messages/{message_id}")["children"]
    return [talk.ask("GET", f"/messages/{each['id']}") for each in children]
