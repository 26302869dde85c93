"""What settings and requests of IronMQ v3 do: how long a reservation lasts, who is told of a size, what a webhook
becomes, how an acknowledgement may be sent, when alerts of a project fire.

Sources: docs/ironmq.md, docs/ironmq-behaviour.md, and Iron.io's documents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from simulation.promises.talks.talk import Came, Talk

MINUTE = 60


def pull(talk: Talk) -> None:
    """Of pull queues."""
    talk.through(_lasts, _waits, _notified, _webhook, _asked_otherwise)


def push(talk: Talk) -> None:
    """Of push queues."""
    talk.through(_acknowledged, _hops, _left, _failure_rate, _oldest_waiting)


def _posted(talk: Talk, queue: str, *bodies: str, **more: Any) -> list[str]:
    messages = {"messages": [{"body": each, **more} for each in bodies]}
    ids: list[str] = talk.ask("POST", f"/queues/{queue}/messages", messages, status=201)["ids"]
    return ids


def _reserved(talk: Talk, queue: str, shows: object = ..., **more: Any) -> list[dict[str, Any]]:
    got: list[dict[str, Any]] = talk.ask("POST", f"/queues/{queue}/reservations", more)["messages"]
    talk.is_so(f"reserved of {queue}", shows, got)
    return got


def _lasts(talk: Talk) -> None:
    """A reservation lasts as long as its queue says, or its request, or who touches it, from then on."""
    talk.ask("PUT", "/queues/lasts", {"queue": {"message_timeout": 20}})
    [one] = _posted(talk, "lasts", "a")
    path = f"/queues/lasts/messages/{one}"
    for reserves, lasts in (({}, 20), ({"timeout": 5}, 5), ({"timeout": 0}, 20), ({"timeout": 31}, 31)):
        _reserved(talk, "lasts", [{"id": one}], **reserves)
        talk.sleep(lasts - 2, exactly=True)
        _reserved(talk, "lasts", [])
        talk.sleep(3, exactly=True)
    for given, lasts in (({}, 20), ({"timeout": 40}, 40), ({"timeout": 3}, 3)):
        [held] = _reserved(talk, "lasts", [{"id": one}], timeout=10)
        talk.sleep(8, exactly=True)
        touched = {"reservation_id": held["reservation_id"], **given}
        again = talk.ask("POST", f"{path}/touch", touched, shows={"msg": "Touched", "reservation_id": str})
        talk.sleep(lasts - 2, exactly=True)
        _reserved(talk, "lasts", [])
        talk.sleep(3, exactly=True)
        for late in (held, again):
            talk.ask("POST", f"{path}/touch", {"reservation_id": late["reservation_id"]}, status=403)
            talk.ask("POST", f"{path}/release", {"reservation_id": late["reservation_id"]}, status=403)
            talk.ask("DELETE", path, {"reservation_id": late["reservation_id"]}, status=403)
    # Four times, and three times with a touch each
    talk.ask("GET", path, shows={"message": {"reserved_count": 10}})
    [held] = _reserved(talk, "lasts", [{"reserved_count": 11}])
    back = {"reservation_id": held["reservation_id"], "delay": 12}
    talk.ask("POST", f"{path}/release", back, shows={"msg": "Released"})
    talk.sleep(10, exactly=True)
    _reserved(talk, "lasts", [])
    talk.ask("GET", "/queues/lasts/messages", shows={"messages": []})
    talk.ask("GET", "/queues/lasts", shows={"queue": {"size": 1, "total_messages": 1}})
    talk.sleep(3, exactly=True)
    # One that was released or timed out comes before what was posted later
    _posted(talk, "lasts", "b")
    _reserved(talk, "lasts", [{"id": one, "reserved_count": 12}, {"body": "b", "reserved_count": 1}], n=2, delete=True)
    talk.ask("GET", path, status=404)
    talk.ask("DELETE", "/queues/lasts")


def _waits(talk: Talk) -> None:
    """Who waits gets a message as soon as it can be reserved, and nothing when the time is over."""
    _posted(talk, "waits", "later", delay=7)
    talk.timed(0, 1, lambda: _reserved(talk, "waits", []))
    talk.timed(2.9, 4.5, lambda: _reserved(talk, "waits", [], wait=3))
    talk.timed(2, 6, lambda: _reserved(talk, "waits", [{"body": "later"}], wait=20, timeout=6))
    talk.timed(4, 8, lambda: _reserved(talk, "waits", [{"body": "later", "reserved_count": 2}], wait=25, n=9))
    talk.timed(0, 1, lambda: _reserved(talk, "waits", [], wait=0))
    talk.ask("DELETE", "/queues/waits")


def _notified(talk: Talk) -> None:
    """Each crossing of a size tells once, with what it says of itself; not again within its rest."""
    kinds = [("fixed", "asc", 2), ("fixed", "desc", 2), ("progressive", "asc", 3), ("progressive", "desc", 3)]
    alerts = [{"type": a, "direction": b, "trigger": c, "queue": f"sized-{a}-{b}"} for a, b, c in kinds]
    alerts.append({"type": "fixed", "direction": "asc", "trigger": 1, "queue": "sized-rested", "snooze": 3_600})
    created = talk.ask("PUT", "/queues/sized", {"queue": {"alerts": alerts}})["queue"]["alerts"]
    sizes: dict[str, list[int]] = {
        "sized-fixed-asc": [2, 2],
        "sized-fixed-desc": [2, 2],
        "sized-progressive-asc": [3, 6, 3],
        "sized-progressive-desc": [6, 3, 3],
        # The second crossing is within the hour
        "sized-rested": [1],
    }
    ids: list[str] = []
    for up, down in ((7, 7), (4, 4)):
        for number in range(up):
            ids += _posted(talk, "sized", f"{number}")
            talk.sleep(6)
        for _ in range(down):
            talk.ask("DELETE", f"/queues/sized/messages/{ids.pop(0)}", {})
            talk.sleep(6)
    for alert in created:
        said = [json.loads(each["body"]) for each in _reserved(talk, alert["queue"], n=100)]
        about = {"alert_id": alert["id"], "alert_type": alert["type"], "alert_direction": alert["direction"]}
        fields = {"source_queue": "sized", **about, "alert_trigger": alert["trigger"], "created_at": str}
        shown = [{**fields, "queue_size": size} for size in sizes[alert["queue"]]]
        talk.is_so(f"what {alert['queue']} was told", shown, said)
        talk.ask("DELETE", f"/queues/{alert['queue']}")
    talk.ask("DELETE", "/queues/sized")


def _webhook(talk: Talk) -> None:
    """A body of any type, and headers that go with each push; one over a limit is left out, a reserved one refused."""
    came = talk.listen("effects-hook.example", lambda _: (200, b""))
    push = {"subscribers": [{"name": "hook", "url": "https://effects-hook.example/in", "headers": {"X-A": "own"}}]}
    talk.ask("PUT", "/queues/hooked", {"queue": {"push": push}})
    named = {"x_subscribers_x_a": "a", "x_subscribers_x_long": 1_025 * "v", "content_type": "text/csv"}
    sender = talk.with_headers(**named)
    [one] = sender.ask("POST", "/queues/hooked/webhook", b"1;2\r\n\xff", status=201)["ids"]
    for others in (0, 5, 6):
        several = {f"x_subscribers_a_{number}": "1" for number in range(others)} | {
            "x_subscribers_iron_message_id": "1"
        }
        talk.with_headers(**several).ask("POST", "/queues/hooked/webhook", b"x", status=400)
    talk.sleep(20 + talk.put_off_s)
    talk.came(
        "what was posted", [(one, b"1;2\r\n\xff")], [(each.headers["iron-message-id"], each.body) for each in came]
    )
    talk.came("its headers", {"x-a": "a"}, came[0].headers)
    talk.came("not one that is too long", None, came[0].headers.get("x-long"))
    talk.ask("DELETE", "/queues/hooked")
    # A pull queue is made of a name that nobody knows; a token may be in the query
    bare = talk.with_headers(authorization="")
    bare.ask("POST", f"/queues/hooked-new/webhook?oauth={talk.token}", b"", status=201, shows={"ids": [str]})
    bare.ask("POST", "/queues/hooked-new/webhook", b"", status=401)
    talk.ask("GET", "/queues/hooked-new", shows={"queue": {"type": "pull", "size": 1}})
    _reserved(talk, "hooked-new", [{"body": ""}])
    talk.ask("DELETE", "/queues/hooked-new")


def _asked_otherwise(talk: Talk) -> None:
    """What may be asked without a token, in another way, or not at all."""
    bare = talk.with_headers(authorization="").at("")
    bare.ask("GET", "/version")
    bare.ask("GET", f"/3/projects/{talk.project}/queues", status=401)
    asked: tuple[tuple[str, str, int, set[str]], ...] = (
        ("OPTIONS", "/queues/any", 200, {"GET", "PUT", "PATCH", "DELETE"}),
        ("OPTIONS", "/queues/any/messages", 200, {"GET", "POST", "DELETE"}),
        ("PUT", "/queues/any/messages", 405, {"GET", "POST", "DELETE"}),
        ("GET", "/queues/any/reservations", 405, {"POST"}),
    )
    for method, path, status, allowed in asked:
        answer = talk.answered(method, path)
        known = {each.strip() for each in answer.headers.get("allow", "").split(",")}
        talk.is_so(f"{method} {path}", (status, True), (answer.status, allowed <= known))
    talk.ask("GET", "/nothing", status=404)
    talk.ask("PUT", "/queues/overridden", {})
    # Clients in Java
    override = talk.with_headers(x_http_method_override="PATCH")
    override.ask(
        "POST", "/queues/overridden", {"queue": {"message_timeout": 9}}, shows={"queue": {"message_timeout": 9}}
    )
    talk.with_headers(x_http_method_override="DELETE").ask("POST", "/queues/overridden", {}, shows={"msg": "Deleted"})
    talk.ask("GET", "/queues/overridden", status=404)


def _acknowledged(talk: Talk) -> None:
    """A DELETE of the URL acknowledges: without a body, with its ids in the body, without a token; once."""
    came = talk.listen("effects-ack.example", lambda _: (202, b""))
    push = {
        "subscribers": [{"name": "ack", "url": "https://effects-ack.example/in"}],
        "retries": 0,
        "retries_delay": 60,
    }
    talk.ask("PUT", "/queues/acked", {"queue": {"push": {**push, "error_queue": "unacked"}}})
    ids = _posted(talk, "acked", *"abc")
    talk.sleep(15 + talk.put_off_s)
    found = {each.headers["iron-message-id"]: each.headers for each in came}
    bare = talk.with_headers(authorization="").at("")
    urls = {each: urlsplit(found[each]["iron-subscriber-message-url"]) for each in ids}
    first, third = (f"{urls[each].path}?{urls[each].query}" for each in (ids[0], ids[2]))
    held = {"reservation_id": found[ids[1]]["iron-reservation-id"], "subscriber_name": "ack"}
    bare.ask("DELETE", first, shows={"msg": "Deleted"})
    bare.ask("DELETE", urls[ids[1]].path, held, shows={"msg": "Deleted"})
    bare.ask("DELETE", urls[ids[2]].path, held, status=403)
    bare.ask("DELETE", f"{urls[ids[2]].path}1", held, status=404)
    talk.sleep(3 * MINUTE + talk.put_off_s)
    bare.ask("DELETE", third, status=403)
    for each, state in zip(ids, ("acknowledged", "acknowledged", "exhausted"), strict=True):
        talk.ask(
            "GET", f"/queues/acked/messages/{each}/subscribers", shows={"subscribers": [{"state": state, "tries": 1}]}
        )
    [error] = _reserved(talk, "unacked", [...], n=9)
    said = {"source_msg_id": ids[2], "queue": "acked", "body": "c", "subscribers": [{"name": "ack"}]}
    talk.is_so("what was never acknowledged", said, json.loads(error["body"]))
    talk.is_so("why", True, "Not acknowledged in time" in error["body"])
    for name in ("acked", "unacked"):
        talk.ask("DELETE", f"/queues/{name}")


def _hops(talk: Talk) -> None:
    """Each queue that a message passes counts as one, and copies divide among themselves what may follow."""
    came = talk.listen("effects-hops.example", lambda _: (200, b""))
    url = "https://effects-hops.example/in"
    chain = {
        "hop-c": [{"name": "c", "url": url}],
        "hop-b": [{"name": "to c", "url": "ironmq:///hop-c"}, {"name": "b", "url": url}],
        "hop-a": [{"name": "to b", "url": "ironmq:///hop-b"}, {"name": "a", "url": url}],
    }
    for name, subscribers in chain.items():
        talk.ask("PUT", f"/queues/{name}", {"queue": {"push": {"subscribers": subscribers}}})
    _posted(talk, "hop-a", "x", push_headers={"X-Own": "o"})
    talk.sleep(45 + 3 * talk.put_off_s)
    hops, follow = (
        {each.headers["iron-subscriber-name"]: int(each.headers[f"pushhub-{name}"]) for each in came}
        for name in ("hops", "descendants")
    )
    talk.came("how many queues it has passed", {"a": 1, "b": 2, "c": 3}, hops)
    talk.came("how many may follow", True, 0 < follow["a"] <= 500 and 0 < follow["b"] + follow["c"] <= 500)
    talk.came("with its own headers", 3 * [{"x-own": "o"}], [each.headers for each in came])
    # One that has passed ten goes no further
    for before, status in (("10", 201), ("11", 400)):
        talk.with_headers(pushhub_hops=before).ask("POST", "/queues/hop-c/webhook", b"late", status=status)
    talk.with_headers(pushhub_descendants="0").ask("POST", "/queues/hop-c/webhook", b"late", status=400)
    for name in chain:
        talk.ask("DELETE", f"/queues/{name}")


def _left(talk: Talk) -> None:
    """A subscriber that is renamed keeps what it is owed, one that is removed gets nothing more, and stays visible."""
    says: dict[str, int] = {"stays": 500, "goes": 500}
    came: Mapping[str, Any] = {
        name: talk.listen(f"effects-{name}.example", lambda _, name=name: (says[name], b"no"))  # type: ignore[misc]
        for name in says
    }

    def named(*names: str) -> dict[str, Any]:
        hosts = ("stays", "goes")
        return {
            "subscribers": [
                {"name": a, "url": f"https://effects-{b}.example/in"} for a, b in zip(names, hosts, strict=False)
            ]
        }

    # However late the first try is, it is looked at before the second
    delay = 40 + talk.gathered_s + talk.put_off_s
    talk.ask(
        "PUT", "/queues/left", {"queue": {"push": {**named("stays", "goes"), "retries": 3, "retries_delay": delay}}}
    )
    [one] = _posted(talk, "left", "x")
    talk.sleep(10 + talk.put_off_s)
    talk.came("one try each", (1, 1), (len(came["stays"]), len(came["goes"])))
    talk.ask("PUT", "/queues/left/subscribers", named("renamed"), shows={"msg": "Updated"})
    says["stays"] = 200
    talk.sleep(delay + 3 * MINUTE)
    talk.came("only to who is still there", (2, 1), (len(came["stays"]), len(came["goes"])))
    talk.came("by its new name", ["stays", "renamed"], [each.headers["iron-subscriber-name"] for each in came["stays"]])
    shown = talk.ask("GET", f"/queues/left/messages/{one}/subscribers")["subscribers"]
    talk.is_so("both are shown", {"renamed": "delivered", "goes": str}, {each["name"]: each["state"] for each in shown})
    talk.is_so("with its last answer", [500], [each["status_code"] for each in shown if each["name"] == "goes"])
    talk.ask("DELETE", "/queues/left")


def _looked_after(talk: Talk, name: str) -> None:
    """While anything is due later, each minute is looked at."""
    push = {"subscribers": [{"name": "later", "url": "https://effects-later.example/in"}]}
    talk.ask("PUT", f"/queues/{name}", {"queue": {"push": push}})
    _posted(talk, name, "0", delay=120 * MINUTE)


def _alert(talk: Talk, host: str, **fields: Any) -> str:
    alert = {"name": host, "url": f"https://{host}.example/in", **fields}
    return f"/alerts/{talk.ask('POST', '/alerts', {'alert': alert}, status=201)['alert']['id']}"


def _states(came: Any) -> list[str]:
    return [json.loads(each.body).get("state") for each in came]


def _failure_rate(talk: Talk) -> None:
    """Percent of a subscriber's attempts, of which there have to be five; one fires that reaches it, no other one."""
    if talk.gathered_s or talk.put_off_s:
        return

    def half(each: Came) -> tuple[int, bytes]:
        return (500 if int(each.body) % 2 else 200), b""

    talk.listen("effects-half.example", half)
    _looked_after(talk, "looked-after")
    few = talk.listen("effects-few.example", lambda _: (500, b""))
    for name in ("half", "few"):
        push = {"subscribers": [{"name": name, "url": f"https://effects-{name}.example/in"}], "retries": 0}
        talk.ask("PUT", f"/queues/rate-{name}", {"queue": {"push": push}})
    heard: dict[str, Any] = {}
    paths: list[str] = []
    for name, queue, threshold in (("at", "half", 50), ("above", "half", 51), ("of-few", "few", 1)):
        host = f"effects-rate-{name}"
        heard[name] = talk.listen(f"{host}.example", lambda _: (200, b""))
        watched = {"queue": f"rate-{queue}", "subscriber": queue}
        paths.append(_alert(talk, host, measure="failure_rate", threshold=threshold, minutes=30, **watched))
    _posted(talk, "rate-half", *map(str, range(6)))
    _posted(talk, "rate-few", *map(str, range(4)))
    talk.sleep(6 * MINUTE)
    talk.came("four failed", 4, len(few))
    talk.came(
        "who is told",
        {"at": ["firing"], "above": [], "of-few": []},
        {name: _states(each) for name, each in heard.items()},
    )
    fired = json.loads(heard["at"][0].body)
    talk.came(
        "what it says", {"value": 50, "alert": {"name": "effects-rate-at", "threshold": 50}, "project": str}, fired
    )
    found = {each["name"].rpartition("-")[2]: each["state"] for each in talk.ask("GET", "/alerts")["alerts"]}
    talk.is_so("as they are shown", {"at": "firing", "above": "quiet"}, found)
    _posted(talk, "rate-few", "5")
    talk.sleep(6 * MINUTE)
    talk.came("five are enough", ["firing"], _states(heard["of-few"]))
    for path in paths:
        talk.ask("DELETE", path)
    for name in ("rate-half", "rate-few", "looked-after"):
        talk.ask("DELETE", f"/queues/{name}")


def _oldest_waiting(talk: Talk) -> None:
    """Seconds since the oldest message that waits was accepted, for a consumer or for a paused subscriber."""
    if talk.gathered_s or talk.put_off_s:
        return
    talk.listen("effects-aged.example", lambda _: (200, b""))
    _looked_after(talk, "looked-after")
    push = {"subscribers": [{"name": "aged", "url": "https://effects-aged.example/in"}]}
    queues: dict[str, dict[str, Any]] = {"aged-pull": {}, "aged-push": {"queue": {"push": push}}}
    heard: dict[str, Any] = {}
    paths: list[str] = []
    for queue, settings in queues.items():
        talk.ask("PUT", f"/queues/{queue}", settings)
        heard[queue] = talk.listen(f"effects-{queue}.example", lambda _: (200, b""))
        paths.append(_alert(talk, f"effects-{queue}", measure="oldest_waiting", threshold=300, queue=queue))
    talk.ask("POST", "/queues/aged-push/pause", {"subscriber": "aged"})
    talk.sleep(5)
    for queue in queues:
        _posted(talk, queue, "x")
    talk.sleep(4 * MINUTE)
    talk.came("not yet", {name: [] for name in queues}, {name: _states(each) for name, each in heard.items()})
    talk.sleep(5 * MINUTE)
    talk.came("both fire", {name: ["firing"] for name in queues}, {name: _states(each) for name, each in heard.items()})
    for name in queues:
        talk.came("for how long", {"value": lambda each: 300 <= each <= 500}, json.loads(heard[name][0].body))
    talk.ask("POST", "/queues/aged-push/resume", {"subscriber": "aged"})
    _reserved(talk, "aged-pull", [{"body": "x", "reserved_count": 1}], delete=True)
    # What reaches the threshold once more is calm for ten minutes from then on
    talk.sleep(MINUTE)
    _posted(talk, "aged-pull", "y")
    talk.sleep(8 * MINUTE)
    _reserved(talk, "aged-pull", [{"body": "y"}], delete=True)
    talk.sleep(6 * MINUTE)
    half = {"aged-pull": ["firing"], "aged-push": ["firing", "resolved"]}
    talk.came("one is over", half, {name: _states(each) for name, each in heard.items()})
    talk.sleep(9 * MINUTE)
    over = {name: ["firing", "resolved"] for name in queues}
    talk.came("both are over", over, {name: _states(each) for name, each in heard.items()})
    for path in paths:
        talk.ask("DELETE", path)
    for name in (*queues, "looked-after"):
        talk.ask("DELETE", f"/queues/{name}")


__all__ = ["pull", "push"]
