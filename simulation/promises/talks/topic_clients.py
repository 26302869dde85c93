"""What talks about topics share: subscriptions, tokens, connections, and what came on them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from simulation.promises.talks.notifications import Connect, Connected
from simulation.promises.talks.talk import Talk


def new_rule(
    talk: Talk, topic: str, *, source: str = "", apis: Sequence[str] = ("operations",), types: str = "", **more: Any
) -> str:
    """A subscription of the tenant, or of one source; its path."""
    rule: dict[str, Any] = {"context": "mo" if source else "tenant", "subscription": topic, **more}
    rule |= {"source": {"id": source}} if source else {}
    rule |= {"subscriptionFilter": {"apis": [*apis], **({"typeFilter": types} if types else {})}}
    return f"/subscriptions/{talk.ask('POST', '/subscriptions', rule, status=201)['id']}"


def new_token(talk: Talk, topic: str, subscriber: str = "s", **more: Any) -> str:
    """A consumer's token."""
    return str(talk.ask("POST", "/token", {"subscription": topic, "subscriber": subscriber, **more})["token"])


def let_in(talk: Talk, connect: Connect, token: str, **query: str) -> Connected:
    """A connection of a consumer, who is let in at once."""
    side = connect({"token": token, **query})
    talk.is_so("it is let in", 200, side.status)
    talk.sleep(2)
    return side


def let_back(talk: Talk, connect: Connect, token: str, **query: str) -> Connected:
    """A connection of a consumer that was gone, which nobody may have been told."""
    for _ in range(30):
        side = connect({"token": token, **query})
        if side.status != 409:
            break
        talk.sleep(30)
    talk.is_so("who was gone is let in again", 200, side.status)
    talk.sleep(5)
    return side


def publish(talk: Talk, *numbers: int, source: str = "1") -> None:
    """Notifications of an API that no other talk publishes, in one request."""
    some = [{"api": "operations", "source": source, "data": {"n": each}} for each in numbers]
    talk.ask("POST", "/notifications", some, status=201)
    talk.sleep(5)


def source_of(frame: str) -> str:
    """Of which source a frame tells."""
    return frame.split("\n")[1].rpartition("/")[2]


def data_of(side: Connected) -> list[Any]:
    """What came on a connection."""
    return [json.loads(each.partition("\n\n")[2]) for each in side.frames]


def numbers_of(side: Connected) -> list[int]:
    """The numbers of what came on a connection."""
    return [each["n"] for each in data_of(side)]


def acknowledge(talk: Talk, *sides: Connected) -> None:
    """Acknowledge everything that came on connections."""
    for side in sides:
        for each in side.frames:
            side.send(each.partition("\n")[0])
    talk.sleep(5)


def unsubscribe(talk: Talk, *tokens: str) -> None:
    """Remove the subscribers of tokens."""
    for each in tokens:
        talk.ask("POST", f"/unsubscribe?token={each}", shows={"result": "DONE"})


def names_of(talk: Talk, topic: str) -> list[tuple[str, bool]]:
    """The subscribers of a topic, and whether each keeps nothing."""
    rows = talk.ask("GET", f"/subscribers?subscription={topic}")["subscribers"]
    return sorted((each["subscriber"], each["nonPersistent"]) for each in rows)


__all__ = [
    "acknowledge",
    "data_of",
    "let_back",
    "let_in",
    "names_of",
    "new_rule",
    "new_token",
    "numbers_of",
    "publish",
    "source_of",
    "unsubscribe",
]
