"""CloudEvents that are posted to queues in each of their modes: what becomes a message, what is known already, and what
is refused as a whole.

Source: docs/consuming.md ("CloudEvents over HTTP", "Decided").
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from simulation.promises.talks.talk import Talk

A_DAY_S = 86_400
KEPT_DAYS, AHEAD_S = 90, 300
"""An event that is older, or further ahead, is always new."""

MOST = 100
JSON = {"content-type": "application/json"}
ONE = {"content-type": "application/cloudevents+json; charset=utf-8"}
BATCH = {"content-type": "application/cloudevents-batch+json"}


def queues(talk: Talk) -> None:
    """Posted to queues."""
    talk.through(_binary, _structured, _batched, _pushed)


def _time(talk: Talk, away_s: int = 0) -> str:
    return datetime.fromtimestamp(talk.epoch_s() + away_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _post(talk: Talk, queue: str, body: bytes, headers: Mapping[str, str], status: int) -> Any:
    named: dict[str, Any] = dict(headers)
    return talk.with_headers(**named).ask("POST", f"/queues/{queue}/webhook", body, status=status)


def _bodies(talk: Talk, queue: str) -> list[str]:
    """What waits in a queue, in order."""
    found = talk.ask("GET", f"/queues/{queue}/messages?n=100")["messages"]
    return [each["body"] for each in found]


def _binary(talk: Talk) -> None:
    """By headers: the body is the message; known by source, id and time, as long as its message is there."""
    at, body = _time(talk), b'{"n":  2.0}'
    event = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/shop", "ce-type": "order.new", "ce-time": at, **JSON}
    first = _post(talk, "binary", body, event, 201)["ids"]
    for _ in range(2):
        talk.is_so("the same one", first, _post(talk, "binary", body, event, 201)["ids"])
    others = ({"ce-id": "2"}, {"ce-source": "/other"}, {"ce-time": _time(talk, -1)})
    for count, other in enumerate(others, start=2):
        _post(talk, "binary", body, {**event, **other}, 201)
        talk.is_so(f"another one: {other}", count * [body.decode()], _bodies(talk, "binary"))
    _post(talk, "binary", b"another type", {**event, "ce-type": "order.old"}, 201)
    talk.is_so("known whatever its type", len(others) + 1, len(_bodies(talk, "binary")))
    talk.ask("DELETE", f"/queues/binary/messages/{first[0]}", {})
    _post(talk, "binary", body, event, 201)
    talk.is_so("new once its message is gone", len(others) + 1, len(_bodies(talk, "binary")))
    without = {name: each for name, each in event.items() if name != "ce-time"}
    old, ahead = _time(talk, -KEPT_DAYS * A_DAY_S - 3_600), _time(talk, AHEAD_S + 60)
    count = len(others) + 1
    for always in (without, {**event, "ce-time": old}, {**event, "ce-time": ahead}):
        for _ in range(2):
            _post(talk, "binary", body, always, 201)
        count += 2
        talk.is_so(f"always new: {always.get('ce-time')}", count, len(_bodies(talk, "binary")))
    talk.ask("DELETE", "/queues/binary")


def _event(talk: Talk, event_id: str, **more: Any) -> dict[str, Any]:
    event = {"specversion": "1.0", "id": event_id, "source": "/shop", "type": "order.new", "time": _time(talk)}
    return {**event, "data": {"n": event_id}, **more}


def _structured(talk: Talk) -> None:
    """The whole event is the message, as it was written."""
    event = _event(talk, "1")
    text = json.dumps(event, indent=1)
    first = _post(talk, "structured", text.encode(), ONE, 201)["ids"]
    talk.is_so("the same one", first, _post(talk, "structured", text.encode(), ONE, 201)["ids"])
    _post(talk, "structured", json.dumps({**event, "id": "2"}).encode(), ONE, 201)
    talk.is_so("as they were written", [text, json.dumps({**event, "id": "2"})], _bodies(talk, "structured"))
    # The same event by headers
    by_headers = {f"ce-{name}": event[name] for name in ("specversion", "id", "source", "type", "time")}
    talk.is_so("in either mode", first, _post(talk, "structured", b"x", {**by_headers, **JSON}, 201)["ids"])
    talk.ask("DELETE", "/queues/structured")


def _batched(talk: Talk) -> None:
    """A message for each event, as it is written in the batch; posted again, nothing is accepted twice; one that is
    wrong is refused as a whole.
    """
    # What comes in a batch has no order of its own
    texts = [json.dumps(_event(talk, f"{number}", data={"n": 1.0}), separators=(", ", " :  ")) for number in range(4)]

    def batch(*some: str) -> bytes:
        return f"[{' , '.join(some)}]".encode()

    _post(talk, "batched", batch(*texts[:3]), BATCH, 200)
    talk.is_so("each", texts[:3], sorted(_bodies(talk, "batched")))
    _post(talk, "batched", batch(*texts[1:]), BATCH, 200)
    _post(talk, "batched", batch(*texts), BATCH, 200)
    talk.is_so("each once", texts, sorted(_bodies(talk, "batched")))
    _post(talk, "batched", texts[0].encode(), ONE, 201)
    talk.is_so("alone, too", texts, sorted(_bodies(talk, "batched")))
    new = _event(talk, "new")
    for missing in ("id", "source", "type"):
        wrong = {name: each for name, each in new.items() if name != missing}
        for some in ((new, wrong), (wrong, new)):
            _post(talk, "batched", batch(*map(json.dumps, some)), BATCH, 400)
    for bad in (b"{}", b"[1]", b"[", b"null"):
        _post(talk, "batched", bad, BATCH, 400)
    talk.is_so("nothing of those", texts, sorted(_bodies(talk, "batched")))
    many = [json.dumps(_event(talk, f"many-{number}")) for number in range(MOST + 1)]
    talk.is_so("refused", True, _status(talk, batch(*many)) in {400, 413})
    talk.is_so("nothing of too many", texts, sorted(_bodies(talk, "batched")))
    _post(talk, "batched", batch(*many[:MOST]), BATCH, 200)
    talk.ask("GET", "/queues/batched", shows={"queue": {"size": len(texts) + MOST}})
    talk.ask("DELETE", "/queues/batched")


def _status(talk: Talk, body: bytes) -> int:
    headers: dict[str, Any] = dict(BATCH)
    return talk.with_headers(**headers).status("POST", "/queues/batched/webhook", body)


def _pushed(talk: Talk) -> None:
    """Of a push queue, each event of a batch is pushed by itself, once."""
    came = talk.listen("queued-events.example", lambda _: (200, b""))
    one = {"name": "s", "url": "https://queued-events.example/in"}
    push = {"subscribers": [one], "retries": 2}
    talk.ask("PUT", "/queues/eventful", {"queue": {"push": push}}, shows={"queue": {"push": {"retries": 2}}})
    texts = [json.dumps(_event(talk, f"{number}")) for number in range(3)]
    for _ in range(2):
        _post(talk, "eventful", f"[{','.join(texts)}]".encode(), BATCH, 200)
    talk.sleep(20 + talk.put_off_s)
    talk.came("each once", sorted(texts), sorted(each.body.decode() for each in came))
    talk.came("of three messages", 3, len({each.headers["iron-message-id"] for each in came}))
    talk.ask("DELETE", "/queues/eventful")


__all__ = ["queues"]
