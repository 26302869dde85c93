"""Pull queues: how often a message is handed out before it is a dead letter, what is too large for an answer, what
becomes of messages when their queue begins to push, and what changes of settings mean for those that are there.

Source: docs/ironmq.md ("A queue", "From pull to push"), docs/ironmq-behaviour.md ("Pull queues").
"""

from __future__ import annotations

from typing import Any

from simulation.promises.documents import numbers
from simulation.promises.talks.push_queues import MINUTE, created, ids_of, posted
from simulation.promises.talks.talk import Talk

HOUR = 3_600
ESCAPED = 1_200_000
"""So many control characters take more room in JSON than an answer has."""


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_not_given, _dead, _changed, _released, _too_large, _sizes, _converted, _many)


def _reserved(talk: Talk, path: str, shows: object, **more: Any) -> list[dict[str, Any]]:
    got: list[dict[str, Any]] = talk.ask("POST", f"{path}/reservations", more)["messages"]
    talk.is_so(f"reserved of {path}", shows, got)
    return got


def _not_given(talk: Talk) -> None:
    """``null``, an empty text and zero mean that nothing was given; bodies are JSON whatever they are called."""
    path = "/queues/nothing"
    named = talk.with_headers(content_type="text/plain")
    named.ask("PUT", path, {"queue": {"message_timeout": 5, "message_expiration": None, "type": "", "push": None}})
    talk.ask("GET", path, shows={"queue": {"type": "pull", "message_timeout": 5, "message_expiration": 604_800}})
    given = {"body": "a", "delay": None, "push_headers": None, "ordering_key": ""}
    named.ask("POST", f"{path}/messages", {"messages": [given, {"body": "b", "delay": 0}]}, status=201)
    bare = talk.with_headers(content_type="application/x-www-form-urlencoded")
    asked = {"n": None, "timeout": None, "wait": None, "delete": None}
    first = bare.ask("POST", f"{path}/reservations", asked, shows={"messages": [{"body": "a"}]})["messages"][0]
    back = {"reservation_id": first["reservation_id"], "delay": None}
    named.ask("POST", f"{path}/messages/{first['id']}/release", back, shows={"msg": "Released"})
    both = [{"body": "a", "reserved_count": 2}, {"body": "b", "reserved_count": 1}]
    [held, _] = _reserved(talk, path, both, n=2, timeout=0, wait=0, delete=False)
    touched = {"reservation_id": held["reservation_id"], "timeout": None}
    talk.ask("POST", f"{path}/messages/{held['id']}/touch", touched, shows={"msg": "Touched"})
    talk.sleep(4, exactly=True)
    _reserved(talk, path, [], n=2)
    talk.sleep(2, exactly=True)
    _reserved(talk, path, [{"body": "a", "reserved_count": 4}, {"body": "b", "reserved_count": 2}], n=2)
    # Neither is all of them, so neither clears
    nothing: tuple[Any, ...] = (None, [], "")
    for ids in nothing:
        talk.refused("DELETE", f"{path}/messages", {"ids": ids})
    talk.ask("GET", path, shows={"queue": {"size": 2, "total_messages": 2}})
    talk.ask("DELETE", path)


def _dead(talk: Talk) -> None:
    """After ten reservations, unless the queue says otherwise, a message is a dead letter, however they ended; what was
    reserved less often is not.
    """
    most = numbers("ironmq", "`dead_letter.max_reservations`", "A queue")[0]
    path, letters = "/queues/dies", "/queues/dies-letters"
    queue = talk.ask("PUT", path, {"queue": {"dead_letter": {"queue_name": "dies-letters"}}})["queue"]
    talk.is_so("ten", {"queue_name": "dies-letters", "max_reservations": most}, queue["dead_letter"])
    one, other = posted(talk, path, "one", "other", push_headers={"X-Of": "letter"})
    for count in range(1, most + 1):
        # Every second one is given back, the others time out; both are reserved until one is left alone
        got = _reserved(talk, path, lambda each: each, n=1 if count > 1 else 2, timeout=2)
        held = {each["id"]: each for each in got}
        talk.is_so("its count", {"reserved_count": count, "body": "one"}, held[one])
        if count == 1:
            back = {"reservation_id": held[other]["reservation_id"], "delay": 3_600}
            talk.ask("POST", f"{path}/messages/{other}/release", back, shows={"msg": "Released"})
        if count % 2:
            back = {"reservation_id": held[one]["reservation_id"]}
            talk.ask("POST", f"{path}/messages/{one}/release", back, shows={"msg": "Released"})
        else:
            talk.sleep(3, exactly=True)
        talk.is_so("not yet", 0, talk.ask("GET", letters)["queue"]["size"] if count < most else 0)
    _reserved(talk, path, [], n=9)
    talk.ask("GET", f"{path}/messages/{one}", status=404)
    talk.ask("GET", f"{path}/messages/{other}", shows={"message": {"reserved_count": 1}})
    talk.ask("GET", path, shows={"queue": {"size": 1, "total_messages": 2}})
    talk.ask("GET", f"{letters}/messages?n=9", shows={"messages": [{"id": one, "body": "one"}]})
    talk.ask("GET", letters, shows={"queue": {"size": 1, "total_messages": 1}})
    for each in (path, letters):
        talk.ask("DELETE", each)


def _changed(talk: Talk) -> None:
    """What is changed counts for the next reservation of what is there; how long it lives, for what comes then."""
    path, letters = "/queues/changes", "/queues/changes-letters"
    talk.ask("PUT", path, {"queue": {"message_timeout": 20, "message_expiration": 100}})
    [one] = posted(talk, path, "one")
    _reserved(talk, path, [{"id": one}])
    talk.ask("PATCH", path, {"queue": {"message_timeout": 5}})
    talk.sleep(8, exactly=True)
    _reserved(talk, path, [])
    talk.sleep(13, exactly=True)
    _reserved(talk, path, [{"id": one, "reserved_count": 2}])
    dead = {"queue_name": "changes-letters", "max_reservations": 3}
    talk.ask("PATCH", path, {"queue": {"dead_letter": dead, "message_expiration": 1_000}})
    talk.sleep(6, exactly=True)
    _reserved(talk, path, [{"id": one, "reserved_count": 3}])
    talk.sleep(6, exactly=True)
    _reserved(talk, path, [])
    talk.ask("GET", f"{letters}/messages?n=9", shows={"messages": [{"id": one, "body": "one"}]})
    talk.ask("PATCH", path, {"queue": {"dead_letter": {"queue_name": ""}}})
    [other] = posted(talk, path, "other")
    for count in range(1, 6):
        _reserved(talk, path, [{"id": other, "reserved_count": count}], timeout=1)
        talk.sleep(2, exactly=True)
    talk.sleep(120, exactly=True)
    # One of before has expired by now where it was posted to; this one has not
    _reserved(talk, path, [{"id": other, "reserved_count": 6}])
    for each in (path, letters):
        talk.ask("DELETE", each)


def _released(talk: Talk) -> None:
    """What is given back comes first, at once or after its delay; each message of a batch has a reservation of its own,
    and what is held by somebody is not cleared of its number.
    """
    path = "/queues/gives"
    ids = posted(talk, path, *"abcd") if talk.ask("PUT", path, {}) else []
    got = _reserved(talk, path, [{"id": each, "reserved_count": 1} for each in ids[:3]], n=3, timeout=60)
    talk.is_so("reservations", 3, len({each["reservation_id"] for each in got}))
    for place, delay in ((1, 0), (0, 10)):
        back = {"reservation_id": got[place]["reservation_id"], **({"delay": delay} if delay else {})}
        talk.ask("POST", f"{path}/messages/{ids[place]}/release", back, shows={"msg": "Released"})
        talk.ask("POST", f"{path}/messages/{ids[place]}/release", back, status=403)
    talk.ask("GET", path, shows={"queue": {"size": 4}})
    _reserved(talk, path, [{"id": ids[1], "reserved_count": 2}, {"id": ids[3], "reserved_count": 1}], n=9, timeout=20)
    talk.sleep(11, exactly=True)
    _reserved(talk, path, [{"id": ids[0], "reserved_count": 2}], n=9, delete=True)
    talk.ask("GET", f"{path}/messages/{ids[0]}", status=404)
    talk.sleep(10, exactly=True)
    again = [{"id": ids[1], "reserved_count": 3}, {"id": ids[3], "reserved_count": 2}]
    _reserved(talk, path, again, n=9, delete=True)
    last = {"reservation_id": got[2]["reservation_id"]}
    talk.ask("DELETE", f"{path}/messages/{ids[2]}", last, shows={"msg": "Deleted"})
    talk.sleep(6, exactly=True)
    talk.ask("GET", path, shows={"queue": {"size": 0, "total_messages": 4}})
    talk.ask("DELETE", path)


def _too_large(talk: Talk) -> None:
    """What fits into no answer goes alone to who takes a compressed one; others get what is behind it, or are told if
    there is nothing, and it becomes a dead letter.
    """
    path, letters = "/queues/too-large", "/queues/too-large-letters"
    dead = {"queue_name": "too-large-letters", "max_reservations": 3}
    talk.ask("PUT", path, {"queue": {"dead_letter": dead, "message_timeout": 5}})
    body = ESCAPED * b"\x01"
    [large] = talk.ask("POST", f"{path}/webhook", body, status=201)["ids"]
    [small] = posted(talk, path, "small")
    zipped = talk.with_headers(accept_encoding="gzip")
    _reserved(talk, path, [{"id": small}], n=9)
    talk.sleep(7, exactly=True)
    [got] = _reserved(zipped, path, [{"id": large, "reserved_count": 2}], n=9)
    talk.is_so("with its bytes", True, got["body"].encode() == body)
    _reserved(talk, path, [{"id": small, "reserved_count": 2}], n=9, delete=True)
    talk.sleep(7, exactly=True)
    talk.ask("POST", f"{path}/reservations", {"n": 9}, status=406)
    talk.sleep(7, exactly=True)
    _reserved(talk, path, [], n=9)
    talk.ask("GET", letters, shows={"queue": {"size": 1, "total_messages": 1}})
    [letter] = _reserved(zipped, letters, [{"id": large}], n=9)
    talk.is_so("with its bytes there", True, letter["body"].encode() == body)
    for each in (path, letters):
        talk.ask("DELETE", each)


def _sizes(talk: Talk) -> None:
    """An alert fires once when its size is crossed, however many are posted or deleted at that moment; one that is set
    beyond its trigger waits until that is crossed; two alike are refused, whichever queues they tell.
    """
    path = "/queues/crossed"
    rises = {"type": "fixed", "direction": "asc", "trigger": 3, "queue": "crossed-rises"}
    falls = {"type": "fixed", "direction": "desc", "trigger": 2, "queue": "crossed-falls"}
    ids = posted(talk, path, *"abcde")
    talk.sleep(6)
    talk.ask("PATCH", path, {"queue": {"alerts": [rises, falls]}})
    talk.refused("PATCH", path, {"queue": {"alerts": [rises, {**rises, "queue": "crossed-other"}]}})
    talk.sleep(6)

    def notified(rose: int, fell: int) -> None:
        for name, count in (("rises", rose), ("falls", fell)):
            size = 0 if talk.status("GET", f"/queues/crossed-{name}") == 404 else None
            found = talk.ask("GET", f"/queues/crossed-{name}")["queue"]["total_messages"] if size is None else 0
            talk.is_so(f"told that it {name}", count, found)

    notified(0, 0)
    ids += posted(talk, path, "f")
    talk.sleep(6)
    notified(0, 0)
    talk.ask("DELETE", f"{path}/messages", {"ids": ids[:5]})
    talk.sleep(6)
    notified(0, 1)
    ids = posted(talk, path, *"ghijk")
    talk.sleep(6)
    notified(1, 1)
    for each in ids[:2]:
        talk.ask("DELETE", f"{path}/messages/{each}", {})
        talk.sleep(6)
    notified(1, 1)
    talk.ask("DELETE", f"{path}/messages", {}, shows={"msg": "Cleared"})
    talk.sleep(6)
    posted(talk, path, "l")
    talk.sleep(6)
    talk.ask("GET", path, shows={"queue": {"size": 1}})
    for each in (path, "/queues/crossed-rises", "/queues/crossed-falls"):
        talk.ask("DELETE", each)


def _many(talk: Talk) -> None:
    """Of hundreds that are posted within seconds, each is found: at once, when its delay or its reservation is over,
    and long after the queue was empty.
    """
    path = "/queues/many"
    talk.ask("PUT", path, {"queue": {"message_timeout": HOUR}})
    first = [each for _ in range(4) for each in posted(talk, path, *(100 * ["x"]))]
    late = posted(talk, path, *(100 * ["late"]), delay=2 * HOUR)
    given = [each["id"] for _ in range(4) for each in _reserved(talk, path, 100 * [{"body": "x"}], n=100)]
    talk.is_so("each once", sorted(first), sorted(given))
    for _ in range(6):
        talk.sleep(HOUR / 7, exactly=True)
        _reserved(talk, path, [], n=100)
    talk.sleep(HOUR / 7 + MINUTE, exactly=True)
    again = [each["id"] for _ in range(4) for each in _reserved(talk, path, 100 * [{"body": "x"}], n=100, delete=True)]
    talk.is_so("again when its time is over", sorted(first), sorted(again))
    _reserved(talk, path, [], n=100)
    talk.sleep(HOUR, exactly=True)
    given = [each["id"] for each in _reserved(talk, path, 100 * [{"body": "late"}], n=100)]
    talk.is_so("what was delayed", sorted(late), sorted(given))
    talk.ask("DELETE", path)


def _converted(talk: Talk) -> None:
    """A pull queue that begins to push: what it holds goes with its bytes and headers, what is delayed later, what is
    reserved when it is free, once each; dead letters and alerts end, and it never becomes a pull queue again.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    came = talk.listen("turns.example", lambda _: (200, b""))
    path = "/queues/turns"
    alert = {"type": "fixed", "direction": "asc", "trigger": 9, "queue": "turns-told"}
    dead = {"queue_name": "turns-letters", "max_reservations": 2}
    talk.ask("PUT", path, {"queue": {"dead_letter": dead, "alerts": [alert], "message_expiration": 5_000}})
    held, free = posted(talk, path, "held", "free", push_headers={"X-Of": "pulled"})
    [later] = posted(talk, path, "later", delay=90)
    [binary] = talk.ask("POST", f"{path}/webhook", b"\xff\x00", status=201)["ids"]
    [reserved] = _reserved(talk, path, [{"id": held}], timeout=60)
    push = {"subscribers": [{"name": "turns", "url": "https://turns.example/in"}]}
    for fields in ({"push": push}, {"type": "multicast", "push": push}, {"convert": True}):
        status = talk.status("PUT", path, {"queue": fields})
        talk.is_so(f"refused: {fields}", True, status in {400, 403})
    talk.ask("GET", path, shows={"queue": {"type": "pull", "size": 4}})
    shown = talk.ask("PUT", path, {"queue": {"convert": True, "push": push}}, shows={"queue": {"left": 2}})["queue"]
    about = {"type": "multicast", "message_expiration": 5_000}
    talk.is_so("what it is now", (about, []), (shown, [each for each in ("dead_letter", "alerts") if shown.get(each)]))
    talk.ask("GET", path, shows={"queue": {"left": 2}})
    [new] = posted(talk, path, "new")
    talk.sleep(15)
    talk.came("what was free, and what is new", sorted([free, binary, new]), sorted(ids_of(came)))
    talk.ask("POST", f"{path}/reservations", {}, status=400)
    talk.sleep(90, exactly=True)
    again = talk.ask("PUT", path, {"queue": {"convert": True, "push": push}}, shows={"queue": {"left": 0}})["queue"]
    talk.is_so("nothing is left", 0, again["left"])
    talk.sleep(15)
    bodies = {held: b"held", free: b"free", later: b"later", binary: b"\xff\x00", new: b"new"}
    talk.came("each once", sorted(bodies), sorted(ids_of(came)))
    talk.came("with its bytes", True, bodies == {each.headers["iron-message-id"]: each.body for each in came})
    kept = {each.headers["iron-message-id"] for each in came if each.headers.get("x-of") == "pulled"}
    talk.came("with its headers", {held, free}, kept)
    late = {"reservation_id": reserved["reservation_id"]}
    talk.is_so("who had reserved it", True, talk.status("DELETE", f"{path}/messages/{held}", late) in {403, 404})
    for kind in ("pull", "unicast"):
        talk.ask("PUT", path, {"queue": {"type": kind}}, status=403)
    other = created(talk, "turns-pushed", "turns")
    talk.sleep(MINUTE)
    talk.came("nothing more", 5, len(came))
    for each in (path, other):
        talk.ask("DELETE", each)


__all__ = ["through"]
