"""IronMQ v3, talked through: queues and settings, messages, reservations, dead letters, alerts, lists; push queues with
their subscribers, statuses, replays, pauses and counts.

Sources: Iron.io's documents of the API and of push queues, of dead letters and alerts, and docs/ironmq.md for what is
the hub's own.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

from simulation.promises.talks.talk import Came, Talk

MINUTE = 60
NO_QUEUE, NO_MESSAGE = {"msg": "Queue not found"}, {"msg": "Message not found"}
A_DAY, A_WEEK, A_MONTH = 86_400, 604_800, 2_592_000


def pull(talk: Talk) -> None:
    """Everything about pull queues."""
    talk.through(settings, refusals, life, reservations, batches, expiry, dead_letters, alerts, lists)


def push(talk: Talk) -> None:
    """Everything about push queues."""
    talk.through(push_settings, delivered, given_up, acknowledged, one_of_several, paused, converted, found)


def settings(talk: Talk) -> None:
    """Defaults, the widest bounds, and one beyond; what is left out of a change stays."""
    queue = {"name": "plain", "type": "pull", "message_timeout": 60, "message_expiration": A_WEEK}
    talk.ask("PUT", "/queues/plain", {}, shows={"queue": queue})
    talk.ask("GET", "/queues/plain", shows={"queue": {**queue, "size": 0, "total_messages": 0}})
    for name, least, most in (("message_timeout", 1, A_DAY), ("message_expiration", 1, A_MONTH)):
        for value in (least, most):
            talk.ask("PATCH", "/queues/plain", {"queue": {name: value}}, shows={"queue": {name: value}})
        talk.refused("PATCH", "/queues/plain", *({"queue": {name: each}} for each in (-1, most + 1, "x", 1.5)))
        talk.ask("GET", "/queues/plain", shows={"queue": {name: most}})
    talk.ask(
        "PUT", "/queues/plain", {"queue": {"message_timeout": 30}}, shows={"queue": {"message_expiration": A_MONTH}}
    )
    talk.ask("PUT", "/queues/plain", {"queue": {"message_timeout": 0}}, shows={"queue": {"message_timeout": 30}})
    for number in (1, 1_000):
        dead = {"queue_name": "dead", "max_reservations": number}
        talk.ask("PATCH", "/queues/plain", {"queue": {"dead_letter": dead}}, shows={"queue": {"dead_letter": dead}})
    dead = {"queue_name": "dead", "max_reservations": 1_001}
    talk.refused("PATCH", "/queues/plain", {"queue": {"dead_letter": dead}})
    talk.ask("PUT", "/queues/x" + 254 * "y", {}, shows={"queue": {"name": "x" + 254 * "y"}})
    talk.refused("PUT", "/queues/x" + 255 * "y", {})
    talk.ask("DELETE", "/queues/x" + 254 * "y", shows={"msg": "Deleted"})


def refusals(talk: Talk) -> None:
    """What is not there, not allowed, or no request at all."""
    body: object
    for method, path, body in (
        ("GET", "/queues/none", None),
        ("PATCH", "/queues/none", {"queue": {}}),
        ("DELETE", "/queues/none", None),
        ("POST", "/queues/none/reservations", {}),
        ("GET", "/queues/none/messages", None),
        ("DELETE", "/queues/none/messages", {}),
        ("POST", "/queues/none/subscribers", {"subscribers": [{"name": "a", "url": "https://a.example/"}]}),
        ("GET", "/queues/none/health", None),
    ):
        talk.ask(method, path, body, status=404, shows=NO_QUEUE)
    for method, path, body in (
        ("GET", "/queues/plain/messages/123", None),
        ("DELETE", "/queues/plain/messages/123", {}),
        ("POST", "/queues/plain/messages/123/touch", {"reservation_id": 32 * "a"}),
        ("POST", "/queues/plain/messages/123/release", {"reservation_id": 32 * "a"}),
    ):
        talk.ask(method, path, body, status=404)
    others = {"subscribers": [{"name": "a", "url": "https://a.example/"}]}
    talk.ask("PATCH", "/queues/plain", {"queue": {"type": "multicast", "push": others}}, status=403)
    talk.ask("PUT", "/queues/plain", {"queue": {"type": "unicast", "push": others}}, status=403)
    talk.refused("PUT", "/queues/odd", {"queue": {"type": "other"}}, {"queue": {"type": "multicast"}}, [])
    talk.ask("GET", "/queues/odd", status=404, shows=NO_QUEUE)
    talk.with_headers(authorization="OAuth no").ask("GET", "/queues", status=401)


def life(talk: Talk) -> None:
    """Post, look at, count, delete and clear."""
    put_on = {"msg": "Messages put on queue."}
    several = {"messages": [{"body": "a"}, {"body": ""}, {"body": "c é 🦊"}]}
    ids = talk.ask("POST", "/queues/life/messages", several, status=201, shows={**put_on, "ids": [str, str, str]})[
        "ids"
    ]
    talk.is_so("identifiers rise", sorted(ids), ids)
    first, second, third = ids
    shown = [
        {"id": each, "body": body, "reserved_count": 0} for each, body in zip(ids, ("a", "", "c é 🦊"), strict=True)
    ]
    talk.ask("GET", "/queues/life/messages?n=100", shows={"messages": shown})
    talk.ask("GET", "/queues/life/messages", shows={"messages": shown[:1]})
    talk.ask("GET", f"/queues/life/messages/{second}", shows={"message": shown[1]})
    talk.refused("GET", "/queues/life/messages?n=101")
    talk.ask("GET", "/queues/life", shows={"queue": {"type": "pull", "size": 3, "total_messages": 3}})
    talk.ask("DELETE", f"/queues/life/messages/{second}", {}, shows={"msg": "Deleted"})
    talk.ask("DELETE", f"/queues/life/messages/{second}", {}, status=404, shows=NO_MESSAGE)
    talk.ask("GET", "/queues/life/messages?n=3", shows={"messages": [shown[0], shown[2]]})
    talk.sleep(6, exactly=True)
    talk.ask("GET", "/queues/life", shows={"queue": {"size": 2, "total_messages": 3}})
    later = {"messages": [{"body": "d", "delay": 20}, {"body": "e", "delay": A_WEEK}]}
    talk.ask("POST", "/queues/life/messages", later, status=201)
    talk.refused(
        "POST", "/queues/life/messages", *({"messages": [{"body": "f", "delay": each}]} for each in (-1, A_WEEK + 1))
    )
    talk.refused("POST", "/queues/life/messages", {"messages": []}, {"messages": [{}]}, {"messages": [{"body": 1}]}, {})
    talk.ask("GET", "/queues/life/messages?n=9", shows={"messages": [{"id": first}, {"id": third}]})
    talk.sleep(22, exactly=True)
    talk.ask("GET", "/queues/life/messages?n=9", shows={"messages": [{"id": first}, {"id": third}, {"body": "d"}]})
    talk.ask("GET", "/queues/life", shows={"queue": {"size": 4, "total_messages": 5}})
    talk.ask("POST", "/queues/life/webhook", b"\xff\x00bytes", status=201, shows=put_on)
    talk.ask("GET", "/queues/life/messages?n=9", shows={"messages": [..., ..., ..., {"body_base64": "/wBieXRlcw=="}]})
    talk.ask("DELETE", "/queues/life/messages", {}, shows={"msg": "Cleared"})
    talk.ask("GET", "/queues/life/messages?n=9", shows={"messages": []})
    talk.ask("GET", "/queues/life", shows={"queue": {"size": 0, "total_messages": 6}})
    talk.ask("GET", f"/queues/life/messages/{first}", status=404, shows=NO_MESSAGE)
    talk.ask("DELETE", "/queues/life", shows={"msg": "Deleted"})
    talk.ask("GET", "/queues/life", status=404, shows=NO_QUEUE)
    talk.ask("GET", f"/queues/life/messages/{third}", status=404)


def reservations(talk: Talk) -> None:
    """Reserve, touch, release, delete, and let go; who comes too late, and with what is wrong."""
    ids = talk.ask("POST", "/queues/work/messages", {"messages": [{"body": str(n)} for n in range(4)]}, status=201)[
        "ids"
    ]
    one, *_ = talk.ask("POST", "/queues/work/reservations", {}, shows={"messages": [{"id": ids[0], "body": "0"}]})[
        "messages"
    ]
    talk.is_so("a reservation", {"reserved_count": 1, "reservation_id": lambda each: len(each) == 32}, one)
    path = f"/queues/work/messages/{ids[0]}"
    talk.ask("GET", "/queues/work/messages?n=9", shows={"messages": [{"id": each} for each in ids[1:]]})
    talk.ask("DELETE", path, {}, status=400)
    talk.ask("DELETE", path, {"reservation_id": 32 * "0"}, status=403)
    talk.ask("POST", f"{path}/touch", {"reservation_id": 32 * "0"}, status=403)
    talk.ask("POST", f"{path}/release", {"reservation_id": 32 * "0"}, status=403)
    talk.refused("POST", f"{path}/touch", {})
    talk.refused("POST", f"{path}/release", {})
    touched = talk.ask(
        "POST", f"{path}/touch", {"reservation_id": one["reservation_id"], "timeout": 100}, shows={"msg": "Touched"}
    )
    talk.is_so("another reservation", lambda each: each != one["reservation_id"], touched["reservation_id"])
    talk.ask("DELETE", path, {"reservation_id": one["reservation_id"]}, status=403)
    talk.ask("GET", path, shows={"message": {"reserved_count": 2}})
    talk.sleep(95, exactly=True)
    talk.ask(
        "POST",
        "/queues/work/reservations",
        {"n": 100, "timeout": 50},
        shows={"messages": [{"id": each} for each in ids[1:]]},
    )
    talk.ask("DELETE", path, {"reservation_id": touched["reservation_id"]}, shows={"msg": "Deleted"})
    talk.ask("GET", path, status=404, shows=NO_MESSAGE)
    talk.sleep(46, exactly=True)
    talk.ask("POST", "/queues/work/reservations", {"n": 2}, shows={"messages": []})
    talk.sleep(6, exactly=True)
    again = talk.ask(
        "POST",
        "/queues/work/reservations",
        {"n": 2},
        shows={"messages": [{"id": ids[1], "reserved_count": 2}, {"id": ids[2]}]},
    )
    second, third = again["messages"]
    back = {"reservation_id": second["reservation_id"]}
    talk.refused(
        "POST", f"/queues/work/messages/{ids[1]}/release", *({**back, "delay": each} for each in (-1, A_WEEK + 1))
    )
    talk.ask("POST", f"/queues/work/messages/{ids[1]}/release", {**back, "delay": 10}, shows={"msg": "Released"})
    talk.ask("DELETE", f"/queues/work/messages/{ids[1]}", back, status=403)
    talk.ask("POST", f"/queues/work/messages/{ids[2]}/release", {"reservation_id": third["reservation_id"]})
    talk.ask(
        "POST",
        "/queues/work/reservations",
        {"n": 9, "timeout": 1},
        shows={"messages": [{"id": ids[2]}, {"id": ids[3]}]},
    )
    talk.sleep(3, exactly=True)
    talk.ask(
        "POST",
        "/queues/work/reservations",
        {"n": 9, "timeout": 40},
        shows={"messages": [{"id": ids[2]}, {"id": ids[3]}]},
    )
    talk.sleep(9, exactly=True)
    talk.ask(
        "POST",
        "/queues/work/reservations",
        {"n": 9, "delete": True},
        shows={"messages": [{"id": ids[1], "reserved_count": 3}]},
    )
    talk.ask("GET", f"/queues/work/messages/{ids[1]}", status=404)
    for field, most in (("n", 100), ("timeout", A_DAY), ("wait", 30)):
        talk.ask(
            "POST",
            "/queues/work/reservations",
            {field: most, "n": 0 if field != "n" else most} if field != "wait" else {"n": 1},
        )
        talk.refused("POST", "/queues/work/reservations", {field: most + 1}, {field: -1}, {field: "x"})
    talk.timed(4.9, 8, lambda: talk.ask("POST", "/queues/work/reservations", {"wait": 5}, shows={"messages": []}))
    talk.ask("DELETE", "/queues/work")


def batches(talk: Talk) -> None:
    """A hundred at a time, and not one more; one that cannot be deleted refuses them all."""
    hundred = {"messages": [{"body": f"m{number}"} for number in range(100)]}
    talk.refused("POST", "/queues/many/messages", {"messages": [*hundred["messages"], {"body": "x"}]})
    ids = talk.ask("POST", "/queues/many/messages", hundred, status=201)["ids"]
    more = talk.ask("POST", "/queues/many/messages", {"messages": [{"body": "y"}]}, status=201)["ids"]
    talk.refused("DELETE", "/queues/many/messages", {"ids": [*ids, *more]})
    got = talk.ask("POST", "/queues/many/reservations", {"n": 100}, shows={"messages": [{"id": each} for each in ids]})
    held = [{"id": each["id"], "reservation_id": each["reservation_id"]} for each in got["messages"]]
    wrong = {"id": held[1]["id"], "reservation_id": 32 * "0"}
    talk.ask("DELETE", "/queues/many/messages", {"ids": [held[0], wrong]}, status=403)
    talk.ask("DELETE", "/queues/many/messages", {"ids": [{"id": ids[0]}]}, status=400)
    talk.ask("GET", f"/queues/many/messages/{ids[0]}", shows={"message": {"reserved_count": 1}})
    talk.ask("DELETE", "/queues/many/messages", {"ids": held}, shows={"msg": "Deleted"})
    talk.ask("DELETE", "/queues/many/messages", {"ids": more}, shows={"msg": "Deleted"})
    talk.ask("DELETE", "/queues/many/messages", {"ids": more}, status=404)
    talk.ask("GET", "/queues/many", shows={"queue": {"total_messages": 101}})
    five = {f"X-{number}": "v" for number in range(5)}
    for good in (five, {64 * "h": "v"}, {"X-Long": 1_024 * "v"}, {"User-Agent": "x", "Content-Type": "text/csv"}):
        talk.ask("POST", "/queues/many/messages", {"messages": [{"body": "x", "push_headers": good}]}, status=201)
    for bad in (
        {**five, "X-5": "v"},
        {65 * "h": "v"},
        {"X-Long": 1_025 * "v"},
        {"Iron-Message-Id": "1"},
    ):
        talk.refused("POST", "/queues/many/messages", {"messages": [{"body": "x", "push_headers": bad}]})
    talk.ask("DELETE", "/queues/many")


def expiry(talk: Talk) -> None:
    """A message lives as long as its queue says, reserved or not."""
    talk.ask("PUT", "/queues/brief", {"queue": {"message_expiration": 60}})
    ids = talk.ask(
        "POST", "/queues/brief/messages", {"messages": [{"body": "a"}, {"body": "b", "delay": 30}]}, status=201
    )["ids"]
    talk.ask("POST", "/queues/brief/reservations", {"timeout": 10}, shows={"messages": [{"id": ids[0]}]})
    talk.sleep(55, exactly=True)
    talk.ask("GET", "/queues/brief/messages?n=9", shows={"messages": [{"id": each} for each in ids]})
    talk.sleep(6, exactly=True)
    talk.ask("GET", "/queues/brief/messages?n=9", shows={"messages": [{"id": ids[1]}]})
    talk.ask("GET", f"/queues/brief/messages/{ids[0]}", status=404, shows=NO_MESSAGE)
    talk.sleep(32, exactly=True)
    talk.ask("POST", "/queues/brief/reservations", {"n": 9}, shows={"messages": []})
    talk.ask("DELETE", "/queues/brief")


def dead_letters(talk: Talk) -> None:
    """What was reserved as often as allowed goes elsewhere, once, with its bytes; there it counts and is watched."""
    dead = {"queue_name": "letters", "max_reservations": 2}
    _watched(talk, "letters", 1)
    talk.ask("PUT", "/queues/tired", {"queue": {"dead_letter": dead}})
    talk.ask("GET", "/queues/letters", shows={"queue": {"type": "pull", "size": 0}})
    [one] = talk.ask("POST", "/queues/tired/messages", {"messages": [{"body": "tired é"}]}, status=201)["ids"]
    for count in (1, 2):
        got = {"messages": [{"id": one, "reserved_count": count}]}
        talk.ask("POST", "/queues/tired/reservations", {"timeout": 2}, shows=got)
        talk.sleep(4, exactly=True)
    talk.ask("POST", "/queues/tired/reservations", {}, shows={"messages": []})
    talk.ask("GET", "/queues/letters", shows={"queue": {"size": 1, "total_messages": 1}})
    _alerted(talk, "letters", 1)
    talk.ask("POST", "/queues/letters/reservations", {"n": 9}, shows={"messages": [{"id": one, "body": "tired é"}]})
    talk.ask("GET", f"/queues/tired/messages/{one}", status=404)
    talk.ask("DELETE", "/queues/tired")
    talk.ask("DELETE", "/queues/letters")


def _watched(talk: Talk, name: str, trigger: int) -> None:
    """A queue in which the hub itself puts messages, whose size is watched."""
    alert = {"type": "fixed", "direction": "asc", "trigger": trigger, "queue": f"told-{name}"}
    talk.ask("PUT", f"/queues/{name}", {"queue": {"alerts": [alert]}}, shows={"queue": {"alerts": [alert]}})


def _alerted(talk: Talk, name: str, size: int) -> None:
    """Its alert came, once."""
    got = talk.ask("POST", f"/queues/told-{name}/reservations", {"n": 9})["messages"]
    said = [{"source_queue": name, "queue_size": size}]
    talk.is_so(f"an alert of {name}", said, [json.loads(each["body"]) for each in got])


def alerts(talk: Talk) -> None:
    """A message tells another queue when a size crosses a number, rising or falling."""

    def alert(kind: str, direction: str, trigger: int) -> dict[str, Any]:
        return {"type": kind, "direction": direction, "trigger": trigger, "queue": f"told-{kind}-{direction}"}

    wanted = [alert("fixed", "asc", 3), alert("fixed", "desc", 1), alert("progressive", "asc", 2)]
    talk.ask("PUT", "/queues/watched", {"queue": {"alerts": wanted}}, shows={"queue": {"alerts": wanted}})
    talk.refused("PATCH", "/queues/watched", {"queue": {"alerts": [wanted[0], wanted[0]]}})
    talk.refused(
        "PATCH", "/queues/watched", {"queue": {"alerts": [alert("fixed", "asc", each) for each in range(1, 7)]}}
    )
    talk.refused("PATCH", "/queues/watched", {"queue": {"alerts": [alert("fixed", "asc", 0)]}})
    talk.refused("PATCH", "/queues/watched", {"queue": {"alerts": [alert("other", "asc", 1)]}})
    ids = []
    for number in range(5):
        ids += talk.ask("POST", "/queues/watched/messages", {"messages": [{"body": str(number)}]}, status=201)["ids"]
        talk.sleep(6)
    for each in ids:
        talk.ask("DELETE", f"/queues/watched/messages/{each}", {})
        talk.sleep(6)

    def alerts_in(queue: str) -> list[Any]:
        got = talk.ask("POST", f"/queues/{queue}/reservations", {"n": 100})
        return [json.loads(each["body"]) for each in got["messages"]]

    fields = {"source_queue": "watched", "alert_type": "fixed", "alert_direction": "asc", "alert_trigger": 3}
    talk.is_so("an alert of three", [{**fields, "queue_size": 3}], alerts_in("told-fixed-asc"))
    talk.is_so("an alert of one", [{"alert_direction": "desc", "queue_size": 1}], alerts_in("told-fixed-desc"))
    talk.is_so("each two", [{"queue_size": 2}, {"queue_size": 4}], alerts_in("told-progressive-asc"))
    talk.ask("DELETE", "/queues/watched")


def lists(talk: Talk) -> None:
    """Queues by name, page by page."""
    names = [f"list-{number:02}" for number in range(32)]
    for name in names:
        talk.ask("PUT", f"/queues/{name}", {})

    def shows(some: list[str]) -> dict[str, Any]:
        return {"queues": [{"name": name} for name in some]}

    talk.ask("GET", "/queues?prefix=list-", shows=shows(names[:30]))
    talk.ask("GET", "/queues?prefix=list-&per_page=101", shows=shows(names))
    talk.ask("GET", "/queues?prefix=list-&per_page=3&previous=list-04", shows=shows(names[5:8]))
    talk.ask("GET", "/queues?prefix=list-3", shows=shows(names[30:]))
    talk.ask("GET", "/queues?previous=list-29&per_page=2", shows=shows(names[30:]))
    for name in names:
        talk.ask("DELETE", f"/queues/{name}")


def push_settings(talk: Talk) -> None:
    """Defaults, bounds, and the subscribers of a push queue."""
    one, two = ({"name": each, "url": f"https://{each}.example/in"} for each in ("one", "two"))
    queue = {"type": "multicast", "push": {"subscribers": [one], "retries": 3, "retries_delay": 60, "error_queue": ""}}
    talk.ask("PUT", "/queues/pushed", {"queue": {"push": {"subscribers": [one]}}}, shows={"queue": queue})
    talk.refused("PUT", "/queues/empty", {"queue": {"push": {"subscribers": []}}})
    for name, least, most in (("retries", 0, 100), ("retries_delay", 3, A_DAY)):
        for value in (least, most):
            talk.ask(
                "PATCH", "/queues/pushed", {"queue": {"push": {name: value}}}, shows={"queue": {"push": {name: value}}}
            )
        below = least - 1
        talk.refused("PATCH", "/queues/pushed", *({"queue": {"push": {name: each}}} for each in (below, most + 1, "x")))
    talk.ask("GET", "/queues/pushed", shows={"queue": {"push": {"retries": 100, "retries_delay": A_DAY}}})
    talk.refused("PATCH", "/queues/pushed", {"queue": {"alerts": [{"type": "fixed", "trigger": 1, "queue": "x"}]}})
    updated = {"msg": "Updated"}
    talk.ask("POST", "/queues/pushed/subscribers", {"subscribers": [two]}, shows=updated)
    talk.ask("GET", "/queues/pushed", shows={"queue": {"push": {"subscribers": [one, two]}}})
    other = {**one, "url": "https://other.example/in"}
    talk.ask("POST", "/queues/pushed/subscribers", {"subscribers": [other]}, shows=updated)
    talk.ask("GET", "/queues/pushed", shows={"queue": {"push": {"subscribers": [other, two]}}})
    talk.ask("DELETE", "/queues/pushed/subscribers", {"subscribers": [{"name": "one"}]}, shows=updated)
    talk.ask("GET", "/queues/pushed", shows={"queue": {"push": {"subscribers": [two]}}})
    talk.refused("DELETE", "/queues/pushed/subscribers", {"subscribers": [{"name": "two"}]})
    talk.ask("PUT", "/queues/pushed/subscribers", {"subscribers": [one]}, shows=updated)
    talk.ask("GET", "/queues/pushed", shows={"queue": {"push": {"subscribers": [one]}}})
    widest: tuple[dict[str, Any], ...] = (
        {"timeout": 1},
        {"timeout": 180},
        {"name": 255 * "n"},
        {"url": "https://a.example/" + 2_030 * "u"},
    )
    for good in widest:
        talk.ask("PUT", "/queues/pushed/subscribers", {"subscribers": [{**one, **good}]}, shows=updated)
    wrong: tuple[dict[str, Any], ...] = (
        *({"timeout": each} for each in (-1, 181)),
        *(
            {"url": each}
            for each in ("", "ftp://a.example/", "x", "ironmq:///pushed", "https://a.example/" + 2_031 * "u")
        ),
        {"name": 256 * "n"},
        {"headers": {"X": 1}},
    )
    for bad in wrong:
        talk.refused("PUT", "/queues/pushed/subscribers", {"subscribers": [{**one, **bad}]})
    talk.ask("DELETE", "/queues/pushed", shows={"msg": "Deleted"})


def delivered(talk: Talk) -> None:
    """A push as its subscriber gets it, and what is shown of it before and after; and counts of the project."""
    came = talk.listen("talk-well.example", lambda _: (200, b""))
    well = {"name": "well", "url": "https://talk-well.example/in", "headers": {"X-Key": "k"}}
    talk.ask("PUT", "/queues/sent", {"queue": {"push": {"subscribers": [well], "retries": 2}}})
    body = {"messages": [{"body": "é\n\x01", "push_headers": {"X-Own": "o"}}, {"body": "later", "delay": 60}]}
    ids = talk.ask("POST", "/queues/sent/messages", body, status=201)["ids"]
    begun = {"name": "well", "subscriber_name": "well", "url": well["url"], "retries_remaining": 2}
    talk.ask(
        "GET",
        f"/queues/sent/messages/{ids[1]}/subscribers",
        shows={"subscribers": [{**begun, "tries": 0, "state": "pending"}]},
    )
    talk.sleep(20)
    done = {**begun, "tries": 1, "state": "delivered", "status_code": 200, "last_try_at": str}
    talk.ask("GET", f"/queues/sent/messages/{ids[0]}/subscribers", shows={"subscribers": [done]})
    talk.ask("GET", f"/queues/sent/messages/{ids[0]}", shows={"message": {"body": "é\n\x01", "push_statuses": [done]}})
    attempt = {"subscriber_name": "well", "number": 1, "status_code": 200, "manual": False}
    talk.ask("GET", f"/queues/sent/messages/{ids[0]}/attempts", shows={"attempts": [attempt], "forgotten": 0})
    headers = {
        "user-agent": "IronMQ Pusherd",
        "content-type": "text/plain; encoding=utf-8",
        "iron-message-id": ids[0],
        "iron-subscriber-name": "well",
        "iron-reservation-id": lambda each: len(each) == 32,
        "iron-subscriber-message-url": lambda each: f"/queues/sent/messages/{ids[0]}" in each,
        "x-key": "k",
        "x-own": "o",
    }
    talk.came("a push", [{"headers": headers, "body": "é\n\x01".encode()}], _plain(came))
    talk.sleep(55)
    talk.came("a delayed push", [..., {"body": b"later"}], _plain(came))
    # Bodies that a queue holds are up to 4 MiB with all of their request.
    large = 3_000_000 * "x"
    talk.ask("POST", "/queues/sent/messages", {"messages": [{"body": large}]}, status=201)
    talk.sleep(20)
    talk.came("a large push", [..., ..., {"body": large.encode()}], _plain(came))
    talk.ask("POST", "/queues/sent/messages", {"messages": [{"body": 4_300_000 * "x"}]}, status=413)
    talk.ask("GET", "/queues/sent", shows={"queue": {"size": 0, "total_messages": 3}})
    talk.ask("POST", "/queues/sent/reservations", {}, status=400)
    talk.ask("DELETE", f"/queues/sent/messages/{ids[0]}", {}, shows={"msg": "Deleted"})
    talk.ask("GET", f"/queues/sent/messages/{ids[0]}", status=404, shows=NO_MESSAGE)
    talk.ask("DELETE", "/queues/sent")


def given_up(talk: Talk) -> None:
    """Tries, their times, the error message, the lists of what failed, alerts, charts, and a replay."""
    says = {"status": 500}
    came = talk.listen("talk-ill.example", lambda _: (says["status"], b"no"))
    alarms = talk.listen("talk-alarm.example", lambda _: (200, b""))
    ill = {"name": "ill", "url": "https://talk-ill.example/in"}
    wanted = {
        "name": "ill",
        "measure": "given_up",
        "threshold": 2,
        "minutes": 5,
        "queue": "lost",
        "url": "https://talk-alarm.example/",
    }
    # However long batches are gathered, the first look is before the second try.
    delay = 10 + talk.gathered_s
    push = {"subscribers": [ill], "retries": 2, "retries_delay": delay, "error_queue": "wrong"}
    _watched(talk, "wrong", 2)
    talk.ask("PUT", "/queues/lost", {"queue": {"push": push}})
    # While anything is due later, each minute is looked at.
    talk.ask("PUT", "/queues/later", {"queue": {"push": {"subscribers": [ill]}}})
    talk.ask("POST", "/queues/later/messages", {"messages": [{"body": "x", "delay": 60 * MINUTE}]}, status=201)
    alert = talk.ask("POST", "/alerts", {"alert": wanted}, status=201, shows={"alert": {**wanted, "state": "quiet"}})[
        "alert"
    ]
    talk.refused(
        "POST",
        "/alerts",
        *(
            {"alert": {**wanted, **bad}}
            for bad in ({"threshold": 0}, {"minutes": 4}, {"minutes": 61}, {"measure": "x"}, {"name": ""})
        ),
    )
    ids = talk.ask(
        "POST",
        "/queues/lost/messages",
        {"messages": [{"body": "a", "push_headers": {"X-A": "b"}}, {"body": "b"}]},
        status=201,
    )["ids"]
    talk.sleep(8)
    retrying = [{"message_id": each, "state": "retrying", "tries": 1, "retries_remaining": 2} for each in ids]
    talk.ask("GET", "/queues/lost/deliveries?state=retrying", shows={"deliveries": retrying, "after": None})
    talk.ask("GET", "/queues/lost", shows={"queue": {"size": 2}})
    talk.sleep(3 * MINUTE + 4 * talk.gathered_s)
    mine = [each for each in came if each.headers["iron-message-id"] == ids[0]]
    talk.came("three tries", 3, len(mine))
    for before, after in itertools.pairwise(mine):
        talk.came("apart", lambda each: delay - 0.5 <= each <= delay + 80, (after.at - before.at) / 1_000_000)
    talk.ask("GET", "/queues/lost/deliveries?state=retrying", shows={"deliveries": []})
    exhausted = [
        {"message_id": each, "state": "exhausted", "tries": 3, "retries_remaining": 0, "status_code": 500}
        for each in ids
    ]
    talk.ask("GET", "/queues/lost/deliveries?state=exhausted", shows={"deliveries": exhausted})
    page = talk.ask(
        "GET", "/queues/lost/deliveries?state=exhausted&count=1", shows={"deliveries": exhausted[:1], "after": str}
    )
    talk.ask(
        "GET",
        f"/queues/lost/deliveries?state=exhausted&count=1&after={page['after']}",
        shows={"deliveries": exhausted[1:]},
    )
    talk.refused("GET", "/queues/lost/deliveries?state=other")
    talk.refused("GET", "/queues/lost/deliveries?state=exhausted&count=101")
    attempts = [{"number": number, "status_code": 500, "manual": False} for number in (1, 2, 3)]
    talk.ask("GET", f"/queues/lost/messages/{ids[0]}/attempts", shows={"attempts": attempts})
    talk.ask("GET", "/queues/wrong", shows={"queue": {"size": 2, "total_messages": 2}})
    _alerted(talk, "wrong", 2)
    errors = talk.ask("POST", "/queues/wrong/reservations", {"n": 9})["messages"]
    said = [
        {
            "source_msg_id": ids[0],
            "queue": "lost",
            "body": "a",
            "headers": {"X-A": "b"},
            "subscribers": [{"name": "ill", "code": 500}],
        },
        {"source_msg_id": ids[1], "body": "b"},
    ]
    talk.is_so(
        "error messages",
        said,
        sorted((json.loads(each["body"]) for each in errors), key=lambda each: str(each["source_msg_id"])),
    )
    talk.sleep(5 * MINUTE)
    talk.came("an alert", ["firing"], [json.loads(each.body).get("state") for each in alarms])
    talk.ask("GET", "/alerts", shows={"alerts": [{"id": alert["id"], "state": "firing"}]})
    talk.ask("POST", "/queues/lost/replay", {"subscriber": "none"}, status=404)
    looked = {"looked": 2, "found": 2, "after": None}
    talk.ask("POST", "/queues/lost/replay", {"subscriber": "ill", "dry_run": True}, shows={**looked, "replayed": 0})
    talk.came("nothing was sent", 6, len(came))
    says["status"] = 200
    talk.ask(
        "POST", "/queues/lost/replay", {"subscriber": "ill", "message_ids": [ids[1]]}, shows={"found": 1, "replayed": 1}
    )
    talk.sleep(20)
    talk.came("one again", [ids[1]], [each.headers["iron-message-id"] for each in came[6:]])
    talk.ask("POST", "/queues/lost/replay", {"subscriber": "ill"}, shows={"found": 1, "replayed": 1, "after": None})
    talk.sleep(20)
    talk.came("the other again", ids[::-1], [each.headers["iron-message-id"] for each in came[6:]])
    talk.ask("GET", "/queues/lost/deliveries?state=exhausted", shows={"deliveries": []})
    talk.ask(
        "GET",
        f"/queues/lost/messages/{ids[0]}/attempts",
        shows={"attempts": [..., ..., ..., {"manual": True, "status_code": 200}]},
    )
    talk.sleep(20 * MINUTE)
    talk.came("an alert that is over", ["firing", "resolved"], [json.loads(each.body).get("state") for each in alarms])
    counted = {"attempts": 8, "failed": 6, "delivered": 2, "given_up": 2}
    hours = talk.ask("GET", "/activity/subscriber?queue=lost&subscriber=ill&hours=2", shows={"complete": True})["hours"]
    talk.is_so("a chart", counted, {name: sum(each[name] for each in hours) for name in counted})
    talk.is_so("of so many hours", True, len(hours) <= 2 and hours == sorted(hours, key=lambda each: str(each["hour"])))
    talk.ask("DELETE", "/queues/later")
    talk.ask("DELETE", f"/alerts/{alert['id']}")
    talk.ask("GET", "/alerts", shows={"alerts": []})
    talk.ask("DELETE", "/queues/lost")


def acknowledged(talk: Talk) -> None:
    """Who answers 202 has until the next try to say that it is done."""
    came = talk.listen("talk-slow.example", lambda _: (202, b""))
    slow = {"name": "slow", "url": "https://talk-slow.example/in"}
    talk.ask("PUT", "/queues/taken", {"queue": {"push": {"subscribers": [slow], "retries": 1, "retries_delay": 30}}})
    ids = talk.ask("POST", "/queues/taken/messages", {"messages": [{"body": "a"}, {"body": "b"}]}, status=201)["ids"]
    talk.sleep(10)
    talk.ask(
        "GET", "/queues/taken/deliveries?state=reserved", shows={"deliveries": [{"message_id": each} for each in ids]}
    )
    first = next(each for each in came if each.headers["iron-message-id"] == ids[0])
    held = {"reservation_id": first.headers["iron-reservation-id"], "subscriber_name": "slow"}
    path = f"/queues/taken/messages/{ids[0]}"
    talk.ask("DELETE", path, {**held, "reservation_id": 32 * "0"}, status=403)
    talk.ask("DELETE", path, held, shows={"msg": "Deleted"})
    status = {"state": "acknowledged", "status_code": 200, "tries": 1}
    talk.ask("GET", f"{path}/subscribers", shows={"subscribers": [status]})
    talk.sleep(3 * MINUTE)
    talk.came(
        "who was acknowledged is not asked again",
        sorted([ids[0], ids[1], ids[1]]),
        sorted(each.headers["iron-message-id"] for each in came),
    )
    talk.ask(
        "GET",
        f"/queues/taken/messages/{ids[1]}/subscribers",
        shows={"subscribers": [{"state": "exhausted", "tries": 2}]},
    )
    late = {"reservation_id": came[-1].headers["iron-reservation-id"], "subscriber_name": "slow"}
    talk.ask("DELETE", f"/queues/taken/messages/{ids[1]}", late, status=403)
    talk.ask("DELETE", "/queues/taken")


def one_of_several(talk: Talk) -> None:
    """A unicast queue turns to the next at once, and tells of all in one error message."""
    first = talk.listen("talk-first.example", lambda _: (503, b""))
    second = talk.listen("talk-second.example", lambda _: (404, b""))
    both = [{"name": each, "url": f"https://talk-{each}.example/in"} for each in ("first", "second")]
    push = {"subscribers": both, "retries": 1, "retries_delay": 15, "error_queue": "single"}
    talk.ask("PUT", "/queues/one", {"queue": {"type": "unicast", "push": push}}, shows={"queue": {"type": "unicast"}})
    [one] = talk.ask("POST", "/queues/one/messages", {"messages": [{"body": "u"}]}, status=201)["ids"]
    talk.sleep(10)
    talk.came("each was asked once", (1, 1), (len(first), len(second)))
    talk.sleep(2 * MINUTE)
    talk.came("each was asked twice", (2, 2), (len(first), len(second)))
    [error] = talk.ask("POST", "/queues/single/reservations", {"n": 9}, shows={"messages": [...]})["messages"]
    codes = {"source_msg_id": one, "subscribers": [{"name": "first", "code": 503}, {"name": "second", "code": 404}]}
    talk.is_so("one error message", codes, json.loads(error["body"]))
    talk.ask("DELETE", "/queues/one")


def paused(talk: Talk) -> None:
    """A paused subscriber is sent only what a person sends again; what waits for it comes when it is resumed."""
    says = {"status": 500}
    came = talk.listen("talk-rest.example", lambda _: (says["status"], b""))
    rest = {"name": "rest", "url": "https://talk-rest.example/in"}

    def doing(state: str, waiting: int) -> dict[str, Any]:
        health = {"state": state, "waiting": waiting, "complete": True}
        return {"waiting": waiting, "complete": True, "subscribers": [{"name": "rest", "health": health}]}

    talk.ask("PUT", "/queues/held", {"queue": {"push": {"subscribers": [rest], "retries": 0}}})
    [failed] = talk.ask("POST", "/queues/held/messages", {"messages": [{"body": "no"}]}, status=201)["ids"]
    talk.sleep(15)
    says["status"] = 200
    talk.ask("GET", "/queues/held/health", shows=doing("delivering", 0))
    talk.ask("POST", "/queues/held/pause", {"subscriber": "none"}, status=404)
    talk.ask("POST", "/queues/held/pause", {"subscriber": "rest"}, shows={"msg": "Paused"})
    # Updating it by name leaves it paused
    for method, path, body in (
        ("POST", "/queues/held/subscribers", {"subscribers": [{**rest, "timeout": 20}]}),
        ("PUT", "/queues/held/subscribers", {"subscribers": [rest]}),
        ("PATCH", "/queues/held", {"queue": {"push": {"retries": 0}}}),
    ):
        talk.ask(method, path, body)
        talk.ask("GET", "/queues/held", shows={"queue": {"push": {"subscribers": [{"paused": True}]}}})
    talk.sleep(5)
    ids = talk.ask("POST", "/queues/held/messages", {"messages": [{"body": "a"}, {"body": "b"}]}, status=201)["ids"]
    talk.sleep(3 * MINUTE)
    talk.came("nothing more", [failed], [each.headers["iron-message-id"] for each in came])
    talk.ask("GET", "/queues/held/health", shows=doing("paused", 2))
    talk.ask("POST", "/queues/held/replay", {"subscriber": "rest"}, shows={"replayed": 1})
    talk.sleep(15)
    talk.came("what is sent again", [failed, failed], [each.headers["iron-message-id"] for each in came])
    talk.ask("POST", "/queues/held/resume", {"subscriber": "rest"}, shows={"msg": "Resumed"})
    talk.sleep(3 * MINUTE)
    talk.came("what waited", ids, sorted(each.headers["iron-message-id"] for each in came[2:]))
    talk.ask("GET", "/queues/held/health", shows=doing("delivering", 0))
    talk.ask("DELETE", "/queues/held")


def converted(talk: Talk) -> None:
    """A pull queue becomes a push queue, with what it holds."""
    came = talk.listen("talk-new.example", lambda _: (200, b""))
    ids = talk.ask("POST", "/queues/turned/messages", {"messages": [{"body": str(n)} for n in range(3)]}, status=201)[
        "ids"
    ]
    talk.ask("POST", "/queues/turned/reservations", {"timeout": 20}, shows={"messages": [{"id": ids[0]}]})
    push = {"subscribers": [{"name": "new", "url": "https://talk-new.example/in"}]}
    talk.ask("PUT", "/queues/turned", {"queue": {"push": push}}, status=400)
    talk.ask(
        "PUT", "/queues/turned", {"queue": {"convert": True, "push": push}}, shows={"queue": {"type": "multicast"}}
    )
    talk.sleep(60)
    talk.ask(
        "PUT",
        "/queues/turned",
        {"queue": {"convert": True, "push": push}},
        shows={"queue": {"type": "multicast", "left": 0}},
    )
    talk.sleep(30)
    talk.came(
        "all that it held",
        sorted((each, str(n)) for n, each in enumerate(ids)),
        sorted((each.headers["iron-message-id"], each.body.decode()) for each in came),
    )
    talk.ask("PUT", "/queues/turned", {"queue": {"type": "pull"}}, status=403)
    talk.ask("DELETE", "/queues/turned")


def found(talk: Talk) -> None:
    """Messages are found by the values of named fields, until they are deleted."""
    talk.listen("talk-found.example", lambda _: (200, b""))
    push = {"subscribers": [{"name": "f", "url": "https://talk-found.example/in"}]}
    named = {"search_fields": ["order.id", "header:X-Who"], "push": push}
    talk.ask("PUT", "/queues/named", {"queue": named}, shows={"queue": {"search_fields": named["search_fields"]}})
    talk.refused(
        "PATCH",
        "/queues/named",
        {"queue": {"search_fields": ["a", "b", "c", "d"]}},
        {"queue": {"search_fields": [101 * "f"]}},
    )
    bodies = [{"body": json.dumps({"order": {"id": each}}), "push_headers": {"X-Who": "Ann"}} for each in ("o-1", 4711)]
    ids = talk.ask("POST", "/queues/named/messages", {"messages": bodies}, status=201)["ids"]
    talk.sleep(20)
    one = {"kind": "queue", "queue": "named", "message_id": ids[0], "field": "order.id"}
    talk.ask(
        "GET",
        "/search?value=O-1",
        shows={"found": [{**one, "deliveries": [{"subscriber_name": "f", "state": "delivered"}]}]},
    )
    talk.ask("GET", "/search?value=4711", shows={"found": [{"message_id": ids[1]}]})
    talk.ask(
        "GET",
        "/search?value=ann",
        shows={"found": [{"message_id": each, "field": "header:X-Who"} for each in ids[::-1]]},
    )
    talk.ask("GET", "/search?value=o-2", shows={"found": []})
    talk.ask("DELETE", f"/queues/named/messages/{ids[0]}", {})
    talk.sleep(5)
    talk.ask("GET", "/search?value=o-1", shows={"found": []})
    talk.ask("DELETE", "/queues/named")


def _plain(came: Any) -> list[dict[str, Any]]:
    return [{"headers": each.headers, "body": each.body} for each in came]


__all__ = ["Came", "pull", "push"]
