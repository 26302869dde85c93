"""Values at and beside the bounds that the documents state, where the other talks have none of them.

Each number is the documents', and not the code's: docs/ironmq.md, docs/webhooks.md, docs/signatures.md,
docs/hub-protocol.md and docs/notifications.md.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from random import Random
from typing import Any

from simulation.promises.talks.notifications import Connect
from simulation.promises.talks.talk import Came, Talk

KIB = 1_024
A_YEAR_S = 31_536_000
IN_THE_TABLE = 8 * KIB
"""Bodies that take more than this, compressed, are kept elsewhere."""

WINDOW = 1_000
"""Notifications that a connection is sent before the first is acknowledged."""


def queues(talk: Talk) -> None:
    """IronMQ."""
    talk.through(_bodies, _pulled_bodies, _fields)


def _around(random: Random) -> list[str]:
    """Bodies of about the size from which on they are kept elsewhere, that cannot be compressed, and larger ones."""
    sizes = [1, IN_THE_TABLE - 1, IN_THE_TABLE, IN_THE_TABLE + 1, 2 * IN_THE_TABLE, 40_000, 300_000]
    # Each character is one of 2 ** 16: what a body takes, compressed, is about what it takes.
    return ["".join(chr(random.randrange(0x4E00, 0x9FFF)) for _ in range(max(1, size // 3))) for size in sizes]


def _bodies(talk: Talk) -> None:
    came = talk.listen("edge-bodies.example", lambda _: (200, b""))
    push = {"subscribers": [{"name": "s", "url": "https://edge-bodies.example/in"}]}
    talk.ask("PUT", "/queues/sizes", {"queue": {"push": push}})
    bodies = _around(Random(1))
    ids = talk.ask("POST", "/queues/sizes/messages", {"messages": [{"body": each} for each in bodies]}, status=201)[
        "ids"
    ]
    talk.sleep(30)
    got = {each.headers["iron-message-id"]: each.body.decode() for each in came}
    talk.came("each of its own size", dict(zip(ids, bodies, strict=True)) == got, True)
    for each, body in zip(ids, bodies, strict=True):
        talk.ask("GET", f"/queues/sizes/messages/{each}", shows={"message": {"body": body}})
    talk.ask("DELETE", "/queues/sizes")


def _pulled_bodies(talk: Talk) -> None:
    bodies = _around(Random(2))
    talk.ask("POST", "/queues/sized/messages", {"messages": [{"body": each} for each in bodies]}, status=201)
    talk.ask("GET", "/queues/sized/messages?n=100", shows={"messages": [{"body": each} for each in bodies]})
    got = talk.ask("POST", "/queues/sized/reservations", {"n": 100}, shows={"messages": [{"body": b} for b in bodies]})
    held = [{"id": each["id"], "reservation_id": each["reservation_id"]} for each in got["messages"]]
    talk.ask("DELETE", "/queues/sized/messages", {"ids": held}, shows={"msg": "Deleted"})
    talk.ask("DELETE", "/queues/sized")


def _fields(talk: Talk) -> None:
    """What a queue may have at most."""
    three = {"search_fields": [100 * letter for letter in "abc"]}
    talk.ask("PUT", "/queues/wide", {"queue": three}, shows={"queue": three})
    dead = {"dead_letter": {"queue_name": "others"}}
    shown = {"dead_letter": {"queue_name": "others", "max_reservations": 10}}
    talk.ask("PATCH", "/queues/wide", {"queue": dead}, shows={"queue": shown})
    alert = {"type": "fixed", "direction": "asc", "queue": "told"}
    five = {"alerts": [{**alert, "trigger": number} for number in range(1, 6)]}
    talk.ask("PATCH", "/queues/wide", {"queue": five}, shows={"queue": five})
    talk.ask("GET", "/queues/wide", shows={"queue": {**three, **shown, **five}})
    talk.ask("DELETE", "/queues/wide")


def webhooks(talk: Talk) -> None:
    """Svix's API."""
    talk.through(_secrets, _messages, _dates)


def _secret(size: int) -> str:
    return f"whsec_{base64.b64encode(bytes(range(size))).decode()}"


def _secrets(talk: Talk) -> None:
    """A secret has 24 to 75 bytes, and the one before it signs for up to seven days."""
    talk.ask("POST", "/app", {"name": "B", "uid": "b"}, status=201)
    endpoint = {"url": "https://edge-keys.example/", "uid": "e"}
    talk.refused("POST", "/app/b/endpoint", *({**endpoint, "secret": _secret(each)} for each in (23, 76)), status=422)
    talk.ask("POST", "/app/b/endpoint", {**endpoint, "secret": _secret(75)}, status=201)
    path = "/app/b/endpoint/e/secret"
    talk.ask("GET", path, shows={"key": _secret(75)})
    for grace in (0, 604_800):
        wanted = {"key": _secret(24), "gracePeriodSeconds": grace}
        talk.ask("POST", f"{path}/rotate", wanted, shows={"key": _secret(24)})
    for bad in (
        {"gracePeriodSeconds": -1},
        {"gracePeriodSeconds": 604_801},
        {"key": _secret(23)},
        {"key": _secret(76)},
    ):
        talk.refused("POST", f"{path}/rotate", {"key": _secret(25), **bad}, status=422)
    talk.ask("GET", path, shows={"key": _secret(24)})
    talk.ask("DELETE", "/app/b", status=204)


def _messages(talk: Talk) -> None:
    """Ten channels and five tags, 2 MiB a request, and lists of 1 to 250."""
    talk.ask("POST", "/event-type", {"name": "edge.made", "description": "d"}, status=201)
    talk.ask("POST", "/app", {"name": "M", "uid": "m"}, status=201)
    body: dict[str, Any] = {"eventType": "edge.made", "payload": {"n": 1}}
    for field, most in (("channels", 10), ("tags", 5)):
        good, bad = ({field: [f"c{number}" for number in range(count)]} for count in (most, most + 1))
        talk.ask("POST", "/app/m/msg", {**body, **good}, status=202)
        talk.refused("POST", "/app/m/msg", {**body, **bad}, status=422)
    for size, status in ((2 * KIB * KIB, 202), (2 * KIB * KIB + 1, 413)):
        frame = json.dumps({**body, "payload": {"text": ""}})
        text = json.dumps({**body, "payload": {"text": (size - len(frame)) * "x"}})
        talk.is_so("a request of its size", size, len(text))
        talk.ask("POST", "/app/m/msg", text.encode(), status=status)
    for limit, status in ((0, 422), (1, 200), (250, 200), (251, 422)):
        talk.ask("GET", f"/app/m/msg?limit={limit}", status=status)
    talk.ask("DELETE", "/app/m", status=204)
    talk.ask("DELETE", "/event-type/edge.made?expunge=true", status=204)


def _dates(talk: Talk) -> None:
    """``Retry-After`` may be a date, and is obeyed as one."""

    def later(each: Came) -> tuple[int, bytes, Mapping[str, str]]:
        if len(came) > 1:
            return 200, b"", {}
        at = datetime.fromtimestamp(int(each.headers["webhook-timestamp"]) + 60, UTC)
        return 503, b"", {"retry-after": format_datetime(at, usegmt=True)}

    came = talk.listen("edge-date.example", later)
    talk.ask("POST", "/event-type", {"name": "edge.dated", "description": "d"}, status=201)
    talk.ask("POST", "/app", {"name": "D", "uid": "dated"}, status=201)
    talk.ask("POST", "/app/dated/endpoint", {"url": "https://edge-date.example/"}, status=201)
    talk.ask("POST", "/app/dated/msg", {"eventType": "edge.dated", "payload": {}}, status=202)
    talk.sleep(200)
    gaps = [(after.at - before.at) / 1_000_000 for before, after in itertools.pairwise(came)]
    # The first wait of the schedule is five seconds; a wait is at most a fifth longer, and looked at by the minute.
    talk.came("not before that date", [lambda each: 57 <= each <= 150], gaps)
    talk.ask("DELETE", "/app/dated", status=204)
    talk.ask("DELETE", "/event-type/edge.dated?expunge=true", status=204)


def stores(talk: Talk) -> None:
    """The hub protocol."""
    talk.through(_mapping, _depths, _places)


def _mapping(talk: Talk) -> None:
    """Fifty filters, twenty identifiers, a type of 200 characters."""
    fields = {"name": "edge", "url": "https://edge.example/in", "token": "t", "messages": [200 * "m"]}
    one = {"path": "payload.a", "operator": "eq", "value": "x"}
    for more, status in (
        ({"filters": 50 * [one]}, 201),
        ({"filters": 51 * [one]}, 422),
        ({"identifiers": {f"i{number}": "payload.a" for number in range(20)}}, 201),
        ({"identifiers": {f"i{number}": "payload.a" for number in range(21)}}, 422),
    ):
        answer = talk.ask("POST", "/mappings", {"mapping": {**fields, **more}}, status=status)
        if status == 201:
            talk.ask("DELETE", f"/mappings/{answer.get('mapping', answer)['id']}")
    for length, status in ((200, 201), (201, 422)):
        talk.ask("POST", "/messages", {"message": length * "m", "payload": {}}, status=status)


def _deep(levels: int) -> str:
    """A message of so many levels."""
    return '{"message": "edge:deep", "payload": ' + (levels - 1) * '{"a": ' + "1" + (levels - 1) * "}" + "}"


def _depths(talk: Talk) -> None:
    """A hundred levels, and not one more."""
    talk.ask("POST", "/messages", _deep(100), status=201)
    talk.ask("POST", "/messages", _deep(101), status=422)


def _places(talk: Talk) -> None:
    """A relative ``update_url`` is that of the mapping's own URL, from its root or beside it; a year is a delay."""
    asked: dict[str, list[str]] = {}

    def answers(each: Came) -> tuple[int, bytes]:
        sent = json.loads(each.body)
        kind = sent["message"]
        paths = asked.setdefault(kind, [])
        paths.append(each.path)
        said: dict[str, Any] = {"message_id": sent["message_id"]}
        if len(paths) == 1 and kind != "edge:none":
            said |= {"delay": 1, "update_url": kind.removeprefix("edge:")}
        return 200, json.dumps(said).encode()

    talk.listen("edge-place.example", answers)
    kinds = ["edge:/root", "edge:beside", "edge:../up", "edge:?asked", "edge:none"]
    fields = {"name": "edge-place", "url": "https://edge-place.example/in/there", "token": "t", "messages": kinds}
    answer = talk.ask("POST", "/mappings", {"mapping": fields}, status=201)
    talk.sleep(61)
    for each in kinds:
        talk.ask("POST", "/messages", {"message": each, "payload": {}}, status=201)
    talk.sleep(100)
    expected = {
        "edge:/root": "/root",
        "edge:beside": "/in/beside",
        "edge:../up": "/up",
        "edge:?asked": "/in/there",
    }
    for kind, path in expected.items():
        talk.came(f"where {kind} is asked for", ["/in/there", path], asked.get(kind))
    talk.came("what says nothing of it", ["/in/there"], asked.get("edge:none"))
    talk.ask("DELETE", f"/mappings/{answer.get('mapping', answer)['id']}")


def topics(talk: Talk, connect: Connect) -> None:
    """Notifications 2.0."""

    def filled(one: Talk) -> None:
        _window(one, connect)

    talk.through(filled)


def _window(talk: Talk, connect: Connect) -> None:
    """A hundred in a request, a thousand on a connection, and one more for each that is acknowledged."""
    rule = {"context": "tenant", "subscription": "edgeWindow", "subscriptionFilter": {"apis": ["events"]}}
    subscription_id = talk.ask("POST", "/subscriptions", rule, status=201)["id"]
    wanted = {"subscription": "edgeWindow", "subscriber": "s"}
    # Valid for a year at most, even if a longer time is asked for.
    for minutes, lasts_s in ((525_599, A_YEAR_S - 60), (525_600, A_YEAR_S), (525_601, A_YEAR_S)):
        made_so = talk.ask("POST", "/token", {**wanted, "expiresInMinutes": minutes})["token"]
        claims = json.loads(base64.urlsafe_b64decode(made_so.split(".")[1] + "=="))
        talk.is_so("how long a token lasts", lasts_s, claims["exp"] - claims["iat"])
    token = str(talk.ask("POST", "/token", wanted)["token"])
    side = connect({"token": token})
    talk.is_so("it is let in", 200, side.status)
    talk.sleep(5)
    for first in range(0, WINDOW + 100, 100):
        some = [{"api": "events", "source": "1", "data": {"n": first + place}} for place in range(100)]
        talk.ask("POST", "/notifications", some, status=201, shows={"ids": lambda each: len(each) == 100})
    talk.sleep(60)
    talk.came("a thousand", list(range(WINDOW)), _numbers(side.frames))
    waits = {"subscribers": [{"unacknowledged": WINDOW}]}
    talk.ask("GET", "/subscribers?subscription=edgeWindow", shows=waits)
    # The next one is the one after the last, whichever is acknowledged
    for place, acknowledged in enumerate((0, WINDOW - 1, 500), start=1):
        side.send(side.frames[acknowledged].partition("\n")[0])
        talk.sleep(10)
        talk.came(f"{place} more", list(range(WINDOW + place)), _numbers(side.frames))
    side.close()
    talk.ask("POST", f"/unsubscribe?token={token}", shows={"result": "DONE"})
    talk.ask("DELETE", f"/subscriptions/{subscription_id}", status=204)


def _numbers(frames: Sequence[str]) -> list[int]:
    return [json.loads(each.partition("\n\n")[2])["n"] for each in frames]


__all__ = ["queues", "stores", "topics", "webhooks"]
