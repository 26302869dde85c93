"""Push queues of IronMQ: with subscribers at hosts of their names, messages for them, and what is shown of these."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from simulation.promises.talks.talk import Came, Said, Talk

MINUTE = 60
LATE_S = 75
"""What waits longer than a minute is looked after each minute."""
OK: Said = (200, b"")
ILL: Said = (500, b"no")


def says(answer: Said, _: Came) -> Said:
    """Answers each request alike."""
    return answer


def listening(talk: Talk, answers: Mapping[str, Said]) -> Mapping[str, Sequence[Came]]:
    """Endpoints at hosts of their names, each with its answer; what comes to each."""
    return {name: talk.listen(f"{name}.example", partial(says, answer)) for name, answer in answers.items()}


def subscriber(name: str, **more: Any) -> dict[str, Any]:
    """A subscriber at a host of its name."""
    return {"name": name, "url": f"https://{name}.example/in", **more}


def created(talk: Talk, queue: str, *subscribers: str | Mapping[str, Any], **push: Any) -> str:
    """A push queue with subscribers, or with hosts of their names; its path.

    ``kind`` among the settings is its type, ``expires`` how long its messages live.
    """
    several = [subscriber(each) if isinstance(each, str) else each for each in subscribers]
    kind = push.pop("kind", "multicast")
    fields: dict[str, Any] = {"message_expiration": push.pop("expires")} if "expires" in push else {}
    talk.ask("PUT", f"/queues/{queue}", {"queue": {"type": kind, **fields, "push": {"subscribers": several, **push}}})
    return f"/queues/{queue}"


def posted(talk: Talk, path: str, *bodies: str, **more: Any) -> list[str]:
    """Messages are posted in one request; their ids."""
    messages = {"messages": [{"body": each, **more} for each in bodies]}
    ids: list[str] = talk.ask("POST", f"{path}/messages", messages, status=201)["ids"]
    talk.is_so("an id for each", len(bodies), len({*ids}))
    return ids


def statuses(talk: Talk, path: str, message_id: str) -> dict[str, dict[str, Any]]:
    """What is shown of a message at each of its subscribers, by name."""
    shown = talk.ask("GET", f"{path}/messages/{message_id}/subscribers")["subscribers"]
    return {each["name"]: each for each in shown}


def reported(talk: Talk, queue: str) -> list[dict[str, Any]]:
    """All that stands in an error queue, by message and subscriber, which is emptied."""
    path = f"/queues/{queue}/reservations"
    found: list[dict[str, Any]] = []
    for _ in range(10):
        some = talk.ask("POST", path, {"n": 100, "delete": True})["messages"]
        if not some:
            break
        found += [json.loads(each["body"]) for each in some]
    return sorted(found, key=lambda each: (each["source_msg_id"], each["subscribers"][0]["name"]))


def ids_of(came: Sequence[Came]) -> list[str]:
    """Which messages came, in order."""
    return [each.headers["iron-message-id"] for each in came]


__all__ = [
    "LATE_S",
    "MINUTE",
    "created",
    "ids_of",
    "listening",
    "posted",
    "reported",
    "says",
    "statuses",
    "subscriber",
]
