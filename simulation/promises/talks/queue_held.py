"""What becomes of messages that consumers hold, or that wait for them, when something ends: their queue is cleared,
deleted, or made again, their time is over, they are deleted among others, or they are dead letters, also where these
are pushed.

Source: docs/ironmq.md ("Requests", "A queue"), docs/ironmq-behaviour.md ("Pull queues").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simulation.promises.talks.push_queues import OK, created, ids_of, posted
from simulation.promises.talks.talk import Talk

NOBODYS = 32 * "0"
"""A reservation that there never was."""


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_cleared, _made_again, _outlived, _together, _dead_and_pushed, _dead_by_turns, _sizes)


def _reserved(talk: Talk, path: str, shows: object, **more: Any) -> list[dict[str, Any]]:
    got: list[dict[str, Any]] = talk.ask("POST", f"{path}/reservations", more)["messages"]
    talk.is_so(f"reserved of {path}", shows, got)
    return got


def _held(got: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [{"id": each["id"], "reservation_id": each["reservation_id"]} for each in got]


def _lost(talk: Talk, path: str, held: Mapping[str, str], status: int) -> None:
    """Who holds a message can do nothing with it any more."""
    one = f"{path}/messages/{held['id']}"
    given = {"reservation_id": held["reservation_id"]}
    for act in ("touch", "release"):
        talk.ask("POST", f"{one}/{act}", given, status=status)
    talk.ask("DELETE", one, given, status=status)
    talk.ask("DELETE", f"{path}/messages", {"ids": [dict(held)]}, status=status)


def _cleared(talk: Talk) -> None:
    """What is cleared is gone for who holds it, too: it neither comes back nor becomes a dead letter; the queue keeps
    its settings and its count, and what is posted then is handed out.
    """
    path = "/queues/held-cleared"
    dead = {"queue_name": "held-letters", "max_reservations": 1}
    settings = {"message_timeout": 5, "dead_letter": dead, "search_fields": ["held.id"]}
    talk.ask("PUT", path, {"queue": settings})
    posted(talk, path, "a", "b", "c")
    posted(talk, path, "later", delay=8)
    got = _reserved(talk, path, [{"body": "a"}, {"body": "b"}], n=2)
    talk.ask("DELETE", f"{path}/messages", {}, shows={"msg": "Cleared"})
    for held in _held(got):
        _lost(talk, path, held, 404)
    [new] = posted(talk, path, "new")
    _reserved(talk, path, [{"id": new, "reserved_count": 1}], n=9, timeout=60)
    talk.sleep(10, exactly=True)
    _reserved(talk, path, [], n=9)
    talk.ask("GET", path, shows={"queue": {**settings, "size": 1, "total_messages": 5}})
    talk.ask("GET", "/queues/held-letters", shows={"queue": {"size": 0, "total_messages": 0}})
    for each in (path, "/queues/held-letters"):
        talk.ask("DELETE", each)


def _made_again(talk: Talk) -> None:
    """A queue that is made again under the name of one that was deleted has nothing of it, and what was held or delayed
    there does not come to it.
    """
    path = "/queues/held-again"
    talk.ask("PUT", path, {"queue": {"message_timeout": 5, "message_expiration": 600}})
    posted(talk, path, "a", "b")
    posted(talk, path, "later", delay=8)
    got = _reserved(talk, path, [{"body": "a"}])
    talk.ask("DELETE", path, shows={"msg": "Deleted"})
    # A post makes it
    [new] = posted(talk, path, "new")
    _lost(talk, path, _held(got)[0], 404)
    talk.sleep(10, exactly=True)
    _reserved(talk, path, [{"id": new, "reserved_count": 1}], n=9)
    defaults = {"type": "pull", "message_timeout": 60, "message_expiration": 604_800}
    talk.ask("GET", path, shows={"queue": {**defaults, "size": 1, "total_messages": 1}})
    talk.ask("DELETE", path)


def _outlived(talk: Talk) -> None:
    """A message ends at its time though somebody holds it, and however often the reservation was extended; those that
    are posted later live on.
    """
    path = "/queues/held-brief"
    talk.ask("PUT", path, {"queue": {"message_expiration": 30, "message_timeout": 600}})
    posted(talk, path, "a", "b")
    talk.sleep(15, exactly=True)
    [later] = posted(talk, path, "c")
    first, second = _held(_reserved(talk, path, [{"body": "a"}, {"body": "b"}], n=2))
    talk.sleep(10, exactly=True)
    touched = {"reservation_id": first["reservation_id"], "timeout": 600}
    again = talk.ask("POST", f"{path}/messages/{first['id']}/touch", touched, shows={"msg": "Touched"})
    talk.sleep(8, exactly=True)
    for each in ({**first, "reservation_id": again["reservation_id"]}, second):
        _lost(talk, path, each, 404)
        talk.ask("GET", f"{path}/messages/{each['id']}", status=404)
    _reserved(talk, path, [{"id": later, "reserved_count": 1}], n=9, delete=True)
    talk.sleep(6, exactly=True)
    talk.ask("GET", path, shows={"queue": {"size": 0, "total_messages": 3}})
    talk.ask("DELETE", path)


def _together(talk: Talk) -> None:
    """Of messages that are deleted together, one that is wrong in any way keeps all of them; held ones go with their
    reservations, others without, also delayed ones, and one that is named twice is one.
    """
    path = "/queues/held-together"
    ids = posted(talk, path, *"abcd")
    [delayed] = posted(talk, path, "later", delay=600)
    held = _held(_reserved(talk, path, [{"id": each} for each in ids[:2]], n=2, timeout=600))
    free = [{"id": ids[2]}, ids[3], delayed]
    wrong: tuple[tuple[Any, int], ...] = (
        ({"id": ids[0]}, 400),
        (ids[0], 400),
        ({**held[0], "reservation_id": NOBODYS}, 403),
        ({**held[0], "reservation_id": held[1]["reservation_id"]}, 403),
        ({"id": ids[2], "reservation_id": NOBODYS}, 403),
        (f"{10**18}", 404),
        ("x", 404),
        ({}, 400),
        (None, 400),
    )
    for bad, status in wrong:
        for several in ([*free, bad], [bad, *free]):
            talk.ask("DELETE", f"{path}/messages", {"ids": several}, status=status)
    talk.sleep(6, exactly=True)
    talk.ask("GET", path, shows={"queue": {"size": 5, "total_messages": 5}})
    talk.ask("DELETE", f"{path}/messages", {"ids": [held[0], *free, held[0], ids[3]]}, shows={"msg": "Deleted"})
    talk.sleep(6, exactly=True)
    talk.ask("GET", path, shows={"queue": {"size": 1, "total_messages": 5}})
    talk.ask("GET", f"{path}/messages/{ids[1]}", shows={"message": {"body": "b", "reserved_count": 1}})
    talk.ask("DELETE", f"{path}/messages", {"ids": [held[1]]}, shows={"msg": "Deleted"})
    talk.ask("DELETE", path)


def _dead_and_pushed(talk: Talk) -> None:
    """Dead letters go on where their queue pushes, each once, with its id, bytes and headers; a queue that is named and
    not there is made.
    """
    came = talk.listen("held-pushed.example", lambda _: OK)
    pushes = created(talk, "held-pushed", {"name": "s", "url": "https://held-pushed.example/in"})
    path = "/queues/held-dead"
    dead = {"queue_name": "held-pushed", "max_reservations": 1}
    talk.ask("PUT", path, {"queue": {"dead_letter": dead, "message_timeout": 3}})
    ids = posted(talk, path, "é", "b", push_headers={"X-Of": "letter"})
    _reserved(talk, path, [{"id": each} for each in ids], n=2)
    talk.sleep(5, exactly=True)
    _reserved(talk, path, [], n=2)
    talk.sleep(20 + talk.put_off_s)
    talk.came("each once", sorted(ids), sorted(ids_of(came)))
    whole = {(each.body.decode(), each.headers.get("x-of")) for each in came}
    talk.came("as they were posted", {("é", "letter"), ("b", "letter")}, whole)
    talk.ask("GET", path, shows={"queue": {"size": 0, "total_messages": 2}})
    other = {"queue_name": "held-new", "max_reservations": 1}
    talk.ask("PATCH", path, {"queue": {"dead_letter": other}, "dry_run": True}, shows={"queue": {"dead_letter": other}})
    talk.ask("GET", "/queues/held-new", status=404)
    talk.ask("PATCH", path, {"queue": {"dead_letter": other}}, shows={"queue": {"dead_letter": other}})
    talk.ask("GET", "/queues/held-new", shows={"queue": {"type": "pull", "size": 0}})
    for each in (path, pushes, "/queues/held-new"):
        talk.ask("DELETE", each)


def _dead_by_turns(talk: Talk) -> None:
    """Of several messages those alone are dead letters that were reserved too often; the others are handed out in the
    same request, in order.
    """
    path, letters = "/queues/held-turns", "/queues/held-turns-dead"
    dead = {"queue_name": "held-turns-dead", "max_reservations": 2}
    talk.ask("PUT", path, {"queue": {"dead_letter": dead}})
    ids = posted(talk, path, *"abcdef")
    # Two twice, two once, and two never
    for count, shown in ((4, [1, 1, 1, 1]), (2, [2, 2])):
        got = _reserved(talk, path, [{"id": ids[n], "reserved_count": each} for n, each in enumerate(shown)], n=count)
        for each in _held(got):
            back = {"reservation_id": each["reservation_id"]}
            talk.ask("POST", f"{path}/messages/{each['id']}/release", back, shows={"msg": "Released"})
    rest = [{"id": ids[2], "reserved_count": 2}, {"id": ids[3], "reserved_count": 2}]
    rest += [{"id": each, "reserved_count": 1} for each in ids[4:]]
    _reserved(talk, path, rest, n=len(rest))
    talk.ask("GET", f"{letters}/messages?n=9", shows={"messages": [{"id": each} for each in ids[:2]]})
    talk.sleep(6, exactly=True)
    for queue, size in ((path, 4), (letters, 2)):
        talk.ask("GET", queue, shows={"queue": {"size": size}})
        talk.ask("DELETE", queue)


def _sizes(talk: Talk) -> None:
    """Who watches a size is told each time it is crossed anew, whatever has made it fall: a clear, expiry, deletions,
    or reservations that delete; and of a queue that is made again as of a new one.
    """
    path, heard = "/queues/held-sized", "/queues/held-told"
    alert = {"type": "fixed", "direction": "asc", "trigger": 2, "queue": "held-told"}
    talk.ask("PUT", path, {"queue": {"alerts": [alert], "message_expiration": 60}})

    def rises(count: int) -> list[str]:
        ids = posted(talk, path, "a", "b", "c")
        talk.sleep(6, exactly=True)
        talk.ask("GET", heard, shows={"queue": {"size": count, "total_messages": count}})
        return ids

    rises(1)
    talk.ask("DELETE", f"{path}/messages", {}, shows={"msg": "Cleared"})
    talk.sleep(6, exactly=True)
    rises(2)
    talk.sleep(60, exactly=True)
    ids = rises(3)
    talk.ask("DELETE", f"{path}/messages", {"ids": ids}, shows={"msg": "Deleted"})
    talk.sleep(6, exactly=True)
    rises(4)
    _reserved(talk, path, 3 * [{"reserved_count": 1}], n=9, delete=True)
    talk.sleep(6, exactly=True)
    rises(5)
    talk.ask("DELETE", path)
    talk.ask("PUT", path, {"queue": {"alerts": [alert]}})
    rises(6)
    for each in (path, heard):
        talk.ask("DELETE", each)


__all__ = ["through"]
