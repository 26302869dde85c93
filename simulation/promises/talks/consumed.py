"""Messages of SQS and events of EventBridge that the hub consumes: what they become, what is known already, in which
order they go on, and what comes again.

Source: docs/consuming.md ("SQS and EventBridge").
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from simulation.promises.talks.talk import Talk

MINUTE = 60
HOPS = 10
"""What has passed so many queues is taken for a loop."""


def queues(talk: Talk) -> None:
    """Consumed for queues and applications. ``talk`` asks as a client of IronMQ."""
    talk.through(_for_queues, _in_groups, _from_a_bus, _for_applications, _not_taken)


def _message(talk: Talk, number: int, body: str, group: str = "", own_id: str = "", **said: str) -> dict[str, Any]:
    """A message as SQS writes it."""
    attributes = {"SentTimestamp": str(1_000 * talk.epoch_s()), "ApproximateReceiveCount": "1"}
    attributes |= {"MessageGroupId": group} if group else {}
    attributes |= {"MessageDeduplicationId": own_id} if own_id else {}
    named = {name.replace("_", "-"): {"stringValue": each, "dataType": "String"} for name, each in said.items()}
    return {"messageId": f"id-{number}", "body": body, "attributes": attributes, "messageAttributes": named}


def _event(talk: Talk, number: int, **more: Any) -> dict[str, Any]:
    event: dict[str, Any] = {
        "version": "0",
        "id": f"event-{number}",
        "detail-type": "Object Created",
        "source": "aws.s3",
    }
    event |= {"time": "2026-11-18T11:00:00Z", "detail": {"n": number}, **more}
    return _message(talk, number, json.dumps(event, indent=1))


def _taken(talk: Talk, to: str, messages: Sequence[Mapping[str, Any]], again: Sequence[int] = (), **how: bool) -> None:
    """Hand over messages, of which those at some places have to come again."""
    found = talk.consumes(f"{talk.project}/{to}", messages, how.get("events", False))
    talk.is_so(f"what comes again, of {to}", sorted(messages[each]["messageId"] for each in again), sorted(found))


def _bodies(talk: Talk, queue: str) -> list[str]:
    return [each["body"] for each in talk.ask("GET", f"/queues/{queue}/messages?n=100")["messages"]]


def _for_queues(talk: Talk) -> None:
    """The exact text, in a queue that is made if it is not there; dropped by the id of SQS's message, or by the one of
    a FIFO queue, unless SQS made it of the body.
    """
    texts = ['{"n":  1.0, "é": "\\u00e9"}', "no JSON\nat all", " "]
    messages = [_message(talk, number, text) for number, text in enumerate(texts)]
    _taken(talk, "queues/consumed", messages)
    talk.is_so("as they were written", sorted(texts), sorted(_bodies(talk, "consumed")))
    talk.ask("GET", "/queues/consumed", shows={"queue": {"type": "pull", "size": 3}})
    _taken(talk, "queues/consumed", messages[:2])
    _taken(talk, "queues/consumed", [_message(talk, 9, texts[0]), messages[1]])
    talk.is_so("each once, by its id", sorted([*texts, texts[0]]), sorted(_bodies(talk, "consumed")))
    talk.ask("DELETE", "/queues/consumed")
    digest = sha256(b"same").hexdigest()
    own_ids = ("a", "a", "b", digest, digest)
    for one in [_message(talk, number, "same", "g", own_id) for number, own_id in enumerate(own_ids, start=20)]:
        _taken(talk, "queues/consumed", [one])
    # Two of its sender's ids, and two of SQS's own
    talk.is_so("by the id for deduplication", 4 * ["same"], _bodies(talk, "consumed"))
    _taken(talk, "queues/consumed", [_message(talk, 30, "same", "other", "a")])
    talk.is_so("of its group", 5 * ["same"], _bodies(talk, "consumed"))
    talk.ask("DELETE", "/queues/consumed")


def _in_groups(talk: Talk) -> None:
    """A group becomes the ordering key of a push queue: one after the other, also behind one that fails for a while."""
    says = {"status": 500}
    came = talk.listen("consumed-groups.example", lambda each: (says["status"] if each.body == b"a0" else 200, b""))
    one = {"name": "s", "url": "https://consumed-groups.example/in"}
    push = {"subscribers": [one], "retries": 9, "retries_delay": 20}
    talk.ask("PUT", "/queues/grouped", {"queue": {"push": push}}, shows={"queue": {"push": {"retries": 9}}})
    messages = [_message(talk, n, f"{group}{n // 2}", group, f"{n}") for n, group in enumerate("ababab", start=0)]
    _taken(talk, "queues/grouped", messages)
    talk.sleep(10 + talk.put_off_s)
    talk.came(
        "the other group goes on", ["b0", "b1", "b2"], [each.body.decode() for each in came if each.body[:1] == b"b"]
    )
    talk.came("this one waits", {"a0"}, {each.body.decode() for each in came if each.body[:1] == b"a"})
    says["status"] = 200
    talk.sleep(2 * MINUTE + talk.put_off_s)
    talk.came(
        "in order", ["a0", "a1", "a2"], [*dict.fromkeys(each.body.decode() for each in came if each.body[:1] == b"a")]
    )
    talk.ask("DELETE", "/queues/grouped")


def _from_a_bus(talk: Talk) -> None:
    """An event as its bus wrote it, known by its own id, whatever SQS calls it; what is none comes again, alone."""
    events = [_event(talk, number) for number in range(2)]
    _taken(talk, "queues/bus", events, events=True)
    _taken(talk, "queues/bus", [{**each, "messageId": f"other-{each['messageId']}"} for each in events], events=True)
    written = sorted(each["body"] for each in events)
    talk.is_so("each once, as it was written", written, sorted(_bodies(talk, "bus")))
    whole = json.loads(events[0]["body"])
    wrong = ["no JSON", "[]", "7", *(json.dumps({**whole, name: ""}) for name in ("id", "detail-type"))]
    wrong += [json.dumps({name: each for name, each in whole.items() if name != "detail-type"})]
    mixed = [_event(talk, 5), *(_message(talk, n, body) for n, body in enumerate(wrong, start=50)), _event(talk, 6)]
    _taken(talk, "queues/bus", mixed, again=range(1, len(wrong) + 1), events=True)
    talk.is_so("the others are there", 4, len(_bodies(talk, "bus")))
    talk.ask("DELETE", "/queues/bus")


def _for_applications(talk: Talk) -> None:
    """Messages of an application, found by its uid or its id: their type, their order, and each once."""
    api = talk.at("/api/v1").with_headers(authorization=f"Bearer {talk.token}")
    came = talk.listen("consumed-app.example", lambda _: (200, b""))
    app = api.ask("POST", "/app", {"name": "Consumed", "uid": "consumed"}, status=201)["id"]
    api.ask("POST", "/app/consumed/endpoint", {"url": "https://consumed-app.example/in", "uid": "one"}, status=201)
    typed = _message(talk, 1, '{"n":  1}', webhook_event_type="order.new")
    _taken(talk, "applications/consumed", [typed, _message(talk, 2, '{"n": 2}')])
    _taken(talk, f"applications/{app}", [typed, _message(talk, 3, '{"n": 3}', "g", "x"), _message(talk, 4, "text")])
    _taken(talk, "applications/consumed", [_event(talk, 5)], events=True)
    talk.sleep(20 + talk.put_off_s)
    shown = api.ask("GET", "/app/consumed/msg")["data"]
    kinds = sorted(each["eventType"] for each in shown)
    talk.is_so("their types", ["Object.Created", "consumed", "consumed", "consumed", "order.new"], kinds)
    bodies = sorted(each.body.decode() for each in came)
    talk.came("each once", 5, len(bodies))
    talk.came("as they were written", {'{"n":  1}', '{"n": 2}', '{"n": 3}', "text"} - {*bodies}, set())
    keyed = [each for each in came if "webhook-sequence" in each.headers]
    talk.came("a group is an ordering key", ['{"n": 3}'], [each.body.decode() for each in keyed])
    api.ask("DELETE", "/app/consumed", status=204)


def _not_taken(talk: Talk) -> None:
    """What cannot be accepted comes again, and others do not: without its project or application, or in a circle."""
    loops = [
        _message(talk, number, "x", Pushhub_Hops=str(hops)) for number, hops in enumerate((HOPS - 1, HOPS, HOPS + 1))
    ]
    _taken(talk, "queues/circle", loops, again=(1, 2))
    talk.is_so("the one before", ["x"], _bodies(talk, "circle"))
    grouped = [("g0", "g", 0), ("g1", "g", HOPS), ("h0", "h", 0), ("g2", "g", 0)]
    group = [
        _message(talk, 50 + number, body, name, body, Pushhub_Hops=f"{hops}")
        for number, (body, name, hops) in enumerate(grouped)
    ]
    _taken(talk, "queues/circle", group, again=(1, 3))
    talk.is_so("what is behind one that fails waits", ["g0", "h0", "x"], sorted(_bodies(talk, "circle")))
    _taken(talk, "queues/circle", group[3:])
    talk.is_so("and is taken later", ["g0", "g2", "h0", "x"], sorted(_bodies(talk, "circle")))
    talk.ask("DELETE", "/queues/circle")
    _taken(talk, "queues/circle", [_message(talk, 60, "x")])
    for to in ("applications/none", "queues/" + 256 * "q"):
        _taken(talk, to, [_message(talk, 9, "{}")], again=(0,))
    found = talk.consumes(f"{'0' * len(talk.project)}/queues/circle", [_message(talk, 9, "x")], False)
    talk.is_so("without its project", ["id-9"], [*found])
    talk.typed("projects", "suspend", talk.project)
    talk.sleep(6, exactly=True)
    for to in ("queues/circle", "queues/new"):
        _taken(talk, to, [_message(talk, 10, "rests"), _message(talk, 11, "rests")], again=(0, 1))
    talk.typed("projects", "resume", talk.project)
    talk.sleep(6, exactly=True)
    talk.is_so("nothing of those", ["x"], _bodies(talk, "circle"))
    _taken(talk, "queues/circle", [_message(talk, 10, "rested")])
    talk.is_so("it goes on", ["rested", "x"], sorted(_bodies(talk, "circle")))
    # A quota is not used up, and stops nothing
    talk.typed("projects", "quota", talk.project, "1", "--burst", "2")
    talk.sleep(31, exactly=True)
    _taken(talk, "queues/circle", [_message(talk, number, "free") for number in range(100, 110)])
    answer = talk.answered("POST", "/queues/circle/messages", {"messages": 2 * [{"body": "posted"}]})
    talk.is_so("its own posts go on", 201, answer.status)
    talk.ask("GET", "/queues/circle", shows={"queue": {"size": 14}})
    talk.typed("projects", "quota", talk.project, "default")
    talk.sleep(31, exactly=True)
    talk.ask("DELETE", "/queues/circle")


__all__ = ["queues"]
