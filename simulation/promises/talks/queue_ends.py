"""What ends without having been delivered: error messages, deletions, clears, expiry, queues and subscribers that are
removed; for the message, for those beside it, and afterwards.

Source: docs/ironmq-behaviour.md ("Push queues"), docs/ironmq.md.
"""

from __future__ import annotations

import base64
import json
from random import Random
from typing import Any
from urllib.parse import urlsplit

from simulation.promises.documents import said
from simulation.promises.talks.push_queues import (
    ILL,
    LATE_S,
    MINUTE,
    OK,
    created,
    ids_of,
    listening,
    posted,
    reported,
    statuses,
    subscriber,
)
from simulation.promises.talks.talk import Came, Talk

HOUR = 3_600
ELSEWHERE_KEPT = 40_000
"""Characters of a body that is kept beside the table."""


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_reports, _deleted, _beside, _cleared, _expired, _removed, _same_names, _at_once, _descendants)


def _reports(talk: Talk) -> None:
    """An error message has the exact bytes, the message's headers, and a URL without secrets; it is pushed on where the
    error queue is one that pushes; one that is named later counts.
    """
    ill = listening(talk, {"reports-ill": ILL, "reports-other": (404, b"")})
    notified = talk.listen("reports-told.example", lambda _: OK)
    pushes = created(talk, "reports-pushed", subscriber("reports-told"))
    secret = {**subscriber("reports-ill"), "url": "https://me:hush0@reports-ill.example?token=hush&b=hush2"}
    several = (secret, "reports-other", "reports-well")
    talk.listen("reports-well.example", lambda _: OK)
    queue = created(talk, "reports", *several, retries=0, error_queue="reports-first")
    talk.ask("PATCH", queue, {"queue": {"push": {"error_queue": "reports-failed"}}})
    exact = b"\xff\x00bytes"
    sender = talk.with_headers(x_subscribers_x_of="webhook", content_type="application/octet-stream")
    [binary] = sender.ask("POST", f"{queue}/webhook", exact, status=201)["ids"]
    large = "".join(chr(each) for each in Random(3).choices(range(0x4E00, 0x9FFF), k=ELSEWHERE_KEPT))
    [text] = posted(talk, queue, large, push_headers={"X-Of": "post", "X-More": "é"})
    talk.sleep(30 + talk.put_off_s)
    talk.came("each once", [2, 2], [len(each) for each in ill.values()])
    found = reported(talk, "reports-failed")
    whose = [(each["source_msg_id"], each["subscribers"][0]["name"]) for each in found]
    expected = [(each, name) for each in sorted((binary, text)) for name in ("reports-ill", "reports-other")]
    talk.is_so("one for each that failed", expected, whose)
    for each in found:
        ofs = {"X-Of": "webhook"} if each["source_msg_id"] == binary else {"X-Of": "post", "X-More": "é"}
        headers = {name.lower(): value for name, value in each["headers"].items()}
        talk.is_so("its headers", {name.lower(): value for name, value in ofs.items()}, headers)
        body = base64.b64decode(each["body_base64"]) if "body_base64" in each else each["body"].encode()
        talk.is_so("its bytes", True, body == (exact if each["source_msg_id"] == binary else large.encode()))
        [one] = each["subscribers"]
        url = "https://reports-other.example/in"
        url = "https://***@reports-ill.example?token=***&b=***" if one["name"] == "reports-ill" else url
        talk.is_so("of whom", {"url": url, "code": 500 if one["name"] == "reports-ill" else 404}, one)
    talk.ask("GET", "/queues?prefix=reports-f", shows={"queues": [{"name": "reports-failed"}]})
    talk.ask("PATCH", queue, {"queue": {"push": {"error_queue": "reports-pushed"}}})
    talk.sleep(2)
    [last] = posted(talk, queue, "last")
    talk.sleep(30 + 2 * talk.put_off_s)
    about = [{"source_msg_id": last, "queue": "reports", "body": "last", "subscribers": [...]}] * 2
    talk.came("pushed on", about, [_said(each) for each in notified])
    talk.ask("PATCH", queue, {"queue": {"push": {"error_queue": ""}}})
    talk.sleep(2)
    posted(talk, queue, "untold")
    talk.sleep(30 + talk.put_off_s)
    talk.came("nobody is told", 2, len(notified))
    talk.is_so("nor there", [], reported(talk, "reports-failed"))
    talk.sleep(5)
    posted(talk, queue, "untold, too")
    talk.sleep(10 + talk.put_off_s)
    talk.ask("PATCH", queue, {"queue": {"push": {"error_queue": "reports-failed"}}})
    talk.sleep(1.1, exactly=True)
    [soon] = posted(talk, queue, "told at once")
    talk.sleep(30 + talk.put_off_s)
    talk.is_so(
        "from the next second on", [soon, soon], [each["source_msg_id"] for each in reported(talk, "reports-failed")]
    )
    for path in (queue, pushes, "/queues/reports-failed"):
        talk.ask("DELETE", path)


def _said(came: Came) -> Any:
    return json.loads(came.body)


def _gone(talk: Talk, path: str, message_id: str) -> None:
    """Whatever is asked about a message, it is not found."""
    one = f"{path}/messages/{message_id}"
    for below in ("", "/subscribers", "/attempts"):
        talk.ask("GET", f"{one}{below}", status=404)
    talk.ask("DELETE", one, {}, status=404)
    talk.ask("DELETE", f"{path}/messages", {"ids": [message_id]}, status=404)


def _deleted(talk: Talk) -> None:
    """What is deleted is neither sent again nor found, whatever had become of it, and is not reported; those that were
    posted with it are what they were, also where their bodies share an object.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    fails = listening(talk, {"deleted-ill": ILL})["deleted-ill"]
    random = Random(4)
    bodies = ["".join(chr(each) for each in random.choices(range(0x4E00, 0x9FFF), k=8_000)) for _ in range(3)]
    came = talk.listen("deleted-well.example", lambda _: OK)
    well = created(talk, "deleted", "deleted-well")
    ill = created(talk, "deleted-failing", "deleted-ill", retries=5, retries_delay=40, error_queue="deleted-failed")
    given = created(talk, "deleted-given", "deleted-ill", retries=0)
    delayed = posted(talk, well, *bodies, delay=50)
    [done] = posted(talk, well, "done")
    waits, stays = posted(talk, ill, "waits", "stays")
    [lost] = posted(talk, given, "lost")
    talk.sleep(15 + talk.put_off_s)
    talk.ask("DELETE", f"{well}/messages/{delayed[1]}", {}, shows={"msg": "Deleted"})
    for path, message_id in ((well, done), (ill, waits), (given, lost)):
        talk.ask("DELETE", f"{path}/messages", {"ids": [message_id]}, shows={"msg": "Deleted"})
    before = len(fails)
    for path, message_id in ((well, delayed[1]), (well, done), (ill, waits), (given, lost)):
        _gone(talk, path, message_id)
    # One that is not there keeps the others
    talk.ask("DELETE", f"{well}/messages", {"ids": [delayed[0], done]}, status=404)
    talk.ask("GET", f"{well}/messages/{delayed[0]}", shows={"message": {"body": bodies[0]}})
    talk.ask("GET", f"{ill}/deliveries?state=retrying", shows={"deliveries": [{"message_id": stays}]})
    talk.ask("GET", ill, shows={"queue": {"size": 1, "total_messages": 2}})
    by_id = {"subscriber": "deleted-ill", "message_ids": [lost]}
    # Lists name it until its time is over, and it is left out
    talk.ask("GET", f"{given}/deliveries?state=exhausted", shows={"deliveries": [{"message_id": lost}]})
    talk.ask("POST", f"{given}/replay", by_id, shows={"replayed": 0})
    talk.ask("POST", f"{given}/replay", {"subscriber": "deleted-ill"}, shows={"replayed": 0})
    talk.sleep(40 + LATE_S + talk.put_off_s)
    again = {each.body.decode() for each in fails[before:]}
    talk.came("only what is there is tried again", {"stays"}, again)
    arrived = {each.headers["iron-message-id"]: each.body.decode() for each in came}
    expected = {done: "done", delayed[0]: bodies[0], delayed[2]: bodies[2]}
    talk.came("the others, with their bytes", True, arrived == expected)
    talk.sleep(4 * (40 + LATE_S))
    talk.is_so(
        "only what is there is reported", [stays], [each["source_msg_id"] for each in reported(talk, "deleted-failed")]
    )
    for path in (well, ill, given, "/queues/deleted-failed"):
        talk.ask("DELETE", path)


def _beside(talk: Talk) -> None:
    """A subscriber that fails holds up no other one, and each message ends at each of them by itself."""
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"beside-well": OK, "beside-ill": ILL, "beside-later": (202, b"")})
    queue = created(talk, "beside", *came, retries=1, retries_delay=30, error_queue="beside-failed")
    ids = posted(talk, queue, "a", "b", "c")
    talk.sleep(10 + talk.put_off_s)
    talk.came("each once", 3 * [sorted(ids)], [sorted(ids_of(each)) for each in came.values()])
    held = {each.headers["iron-message-id"]: each.headers["iron-reservation-id"] for each in came["beside-later"]}
    # Acknowledged in one request, beside one that is deleted
    first = {"id": ids[0], "reservation_id": held[ids[0]], "subscriber_name": "beside-later"}
    talk.ask("DELETE", f"{queue}/messages", {"ids": [first, ids[1]]}, shows={"msg": "Deleted"})
    wrong = {"id": ids[2], "reservation_id": held[ids[0]], "subscriber_name": "beside-later"}
    talk.ask("DELETE", f"{queue}/messages", {"ids": [wrong]}, status=403)
    talk.ask(
        "DELETE",
        f"{queue}/messages",
        {"ids": [{**first, "id": ids[2], "reservation_id": held[ids[2]]}, wrong]},
        status=403,
    )
    shown = {name: each["state"] for name, each in statuses(talk, queue, ids[0]).items()}
    reached = {"beside-well": "delivered", "beside-later": "acknowledged"}
    talk.is_so("of the first", {**reached, "beside-ill": str}, shown)
    _gone(talk, queue, ids[1])
    talk.sleep(30 + LATE_S + MINUTE + talk.put_off_s)
    expected = {
        "beside-well": sorted(ids),
        "beside-ill": sorted([*ids, ids[0], ids[2]]),
        "beside-later": sorted([*ids, ids[2]]),
    }
    talk.came("who was asked for what", expected, {name: sorted(ids_of(each)) for name, each in came.items()})
    shown = {name: each["state"] for name, each in statuses(talk, queue, ids[2]).items()}
    talk.is_so(
        "of the last", {"beside-well": "delivered", "beside-ill": "exhausted", "beside-later": "exhausted"}, shown
    )
    found = [(each["source_msg_id"], each["subscribers"][0]["name"]) for each in reported(talk, "beside-failed")]
    missed = [(ids[0], "beside-ill"), (ids[2], "beside-ill"), (ids[2], "beside-later")]
    talk.is_so("reported", missed, found)
    for path in (queue, "/queues/beside-failed"):
        talk.ask("DELETE", path)


def _cleared(talk: Talk) -> None:
    """What a queue holds when it is cleared, or deleted, is neither sent nor found nor reported; what is posted to it
    from then on is, and so is what another queue holds.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"cleared-ill": ILL, "cleared-well": OK, "cleared-202": (202, b"")})
    push = {"retries": 3, "retries_delay": 40, "error_queue": "cleared-failed"}
    queues = [created(talk, f"cleared-{name}", *came, **push) for name in ("cleared", "deleted", "kept")]
    ids: dict[str, list[str]] = {}
    for path in queues:
        ids[path] = posted(talk, path, f"{path} now") + posted(talk, path, f"{path} later", delay=60)
    talk.sleep(15 + talk.put_off_s)
    talk.ask("DELETE", f"{queues[0]}/messages", {}, shows={"msg": "Cleared"})
    talk.ask("DELETE", queues[1], shows={"msg": "Deleted"})
    talk.ask("GET", queues[1], status=404)
    talk.ask("GET", f"{queues[1]}/messages/{ids[queues[1]][0]}", status=404)
    created(talk, "cleared-deleted", *came, **push)
    for path in queues[:2]:
        for message_id in ids[path]:
            _gone(talk, path, message_id)
        for state in ("retrying", "reserved", "exhausted"):
            talk.ask("GET", f"{path}/deliveries?state={state}", shows={"deliveries": []})
        talk.ask("GET", path, shows={"queue": {"size": 0, "total_messages": 2 if path == queues[0] else 0}})
        talk.ask("POST", f"{path}/replay", {"subscriber": "cleared-ill"}, shows={"found": 0})
    last = next(each for each in came["cleared-202"] if each.body.decode() == f"{queues[0]} now")
    held = {"reservation_id": last.headers["iron-reservation-id"], "subscriber_name": "cleared-202"}
    talk.ask("DELETE", f"{queues[0]}/messages/{ids[queues[0]][0]}", held, status=404)
    talk.sleep(2)
    before = {name: len(each) for name, each in came.items()}
    new = [posted(talk, path, f"{path} new")[0] for path in queues[:2]]
    talk.sleep(60 + LATE_S + talk.put_off_s)
    for name, heard in came.items():
        bodies = {each.body.decode() for each in heard[before[name] :]}
        kept = {f"{queues[2]} later"} | (set() if name == "cleared-well" else {f"{queues[2]} now"})
        talk.came(f"what {name} gets from then on", kept | {f"{path} new" for path in queues[:2]}, bodies)
    talk.sleep(3 * (40 + LATE_S) + talk.put_off_s)
    owed = {*ids[queues[2]], *new}
    found = [(each["source_msg_id"], each["subscribers"][0]["name"]) for each in reported(talk, "cleared-failed")]
    expected = [(each, name) for each in sorted(owed) for name in ("cleared-202", "cleared-ill")]
    talk.is_so("reported", expected, found)
    for path in (*queues, "/queues/cleared-failed"):
        talk.ask("DELETE", path)


def _expired(talk: Talk) -> None:
    """A message that has expired is not found; one that had not been delivered is reported with that reason, and its
    statuses say so for another day; one that had been is not reported.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"expired-ill": ILL, "expired-202": (202, b""), "expired-well": OK, "expired-rests": OK})
    push = {"retries": 9, "retries_delay": 45, "error_queue": "expired-failed", "expires": 70}
    queue = created(talk, "expired", *came, **push)
    talk.ask("POST", f"{queue}/pause", {"subscriber": "expired-rests"})
    talk.sleep(5)
    [one] = posted(talk, queue, "one")
    # Its life begins when its delay is over
    [late] = posted(talk, queue, "late", delay=120)
    for each in (one, late):
        talk.ask("GET", f"{queue}/messages/{each}", shows={"message": {"push_statuses": 4 * [...]}})
    talk.sleep(68, exactly=True)
    talk.ask("GET", f"{queue}/messages/{one}", shows={"message": {"body": "one"}})
    talk.sleep(4, exactly=True)
    talk.ask("GET", f"{queue}/messages/{one}", status=404)
    talk.ask("GET", f"{queue}/messages/{late}", shows={"message": {"body": "late"}})
    talk.sleep(7 * MINUTE)
    # Of one that is paused it is noticed at the latest when it is resumed
    talk.ask("POST", f"{queue}/resume", {"subscriber": "expired-rests"})
    talk.sleep(2 * MINUTE)
    for message_id, body in ((one, "one"), (late, "late")):
        tries = {name: [each.body.decode() for each in heard].count(body) for name, heard in came.items()}
        expected = {"expired-ill": 2, "expired-202": 2, "expired-well": 1, "expired-rests": 0}
        talk.came(f"tries of {body}", expected, tries)
        talk.ask("GET", f"{queue}/messages/{message_id}", status=404)
        talk.ask("DELETE", f"{queue}/messages/{message_id}", {}, status=404)
        shown = statuses(talk, queue, message_id)
        for name in ("expired-ill", "expired-202", "expired-rests"):
            talk.is_so(f"{name} of {body}", {"state": "expired", "status": "expired"}, shown[name])
        talk.is_so("who had it", {"state": "delivered", "tries": 1}, shown["expired-well"])
        talk.is_so("and is not said to have expired", False, "status" in shown["expired-well"])
    for state in ("retrying", "reserved", "exhausted"):
        talk.ask("GET", f"{queue}/deliveries?state={state}", shows={"deliveries": []})
    talk.ask("GET", queue, shows={"queue": {"size": 0, "total_messages": 2}})
    found = reported(talk, "expired-failed")
    missed = [(each, name) for each in sorted((one, late)) for name in ("expired-202", "expired-ill", "expired-rests")]
    talk.is_so("reported", missed, [(each["source_msg_id"], each["subscribers"][0]["name"]) for each in found])
    reasons = [(each["reason"], each["body"], each["queue"]) for each in found]
    bodies = {one: "one", late: "late"}
    talk.is_so("why", [("expired", bodies[each], "expired") for each, _ in missed], reasons)
    codes = {"expired-ill": 500, "expired-202": 202, "expired-rests": 0}
    last = [each["subscribers"][0]["code"] for each in found]
    talk.is_so("with the last answers", [codes[name] for _, name in missed], last)
    for name in ("expired-ill", "expired-rests"):
        talk.ask("POST", f"{queue}/replay", {"subscriber": name, "message_ids": [one]}, shows={"found": 0})
    talk.sleep(22 * HOUR)
    talk.is_so("nearly a day", {"status": "expired"}, statuses(talk, queue, one)["expired-ill"])
    for path in (queue, "/queues/expired-failed"):
        talk.ask("DELETE", path)


def _removed(talk: Talk) -> None:
    """A removed subscriber gets nothing more, is reported, shown as it was asked last, and may still acknowledge; one
    that is added gets what is posted from then on, also under the name of one that was removed; one that moves gets the
    next try where it is.
    """
    came = listening(
        talk,
        {"removed-ill": ILL, "removed-202": (202, b""), "removed-moves": ILL, "removed-new": OK, "removed-moved": OK},
    )
    if talk.gathered_s or talk.put_off_s:
        return
    push = {"retries": 3, "retries_delay": 60, "error_queue": "removed-failed"}
    queue = created(talk, "removed", "removed-ill", "removed-202", "removed-moves", **push)
    [one] = posted(talk, queue, "one")
    talk.sleep(10)
    gone = {"subscribers": [{"name": "removed-ill"}, {"name": "removed-202"}]}
    talk.ask("DELETE", f"{queue}/subscribers", gone, shows={"msg": "Updated"})
    moved = {**subscriber("removed-moves"), "url": "https://removed-moved.example/in"}
    added = [moved, subscriber("removed-new"), subscriber("removed-ill")]
    talk.ask("POST", f"{queue}/subscribers", {"subscribers": added}, shows={"msg": "Updated"})
    [held] = came["removed-202"]
    url = urlsplit(held.headers["iron-subscriber-message-url"])
    talk.at("").with_headers(authorization="").ask("DELETE", f"{url.path}?{url.query}", shows={"msg": "Deleted"})
    talk.sleep(2)
    [other] = posted(talk, queue, "other")
    talk.sleep(60 + LATE_S)
    expected = {
        "removed-ill": {one: 1, other: lambda each: 1 <= each <= 3},
        "removed-202": {one: 1, other: 0},
        "removed-moves": {one: 1, other: 0},
        "removed-moved": {one: 1, other: 1},
        "removed-new": {one: 0, other: 1},
    }
    found = {name: {each: ids_of(heard).count(each) for each in (one, other)} for name, heard in came.items()}
    talk.came("who is asked for what", expected, found)
    shown = statuses(talk, queue, one)
    talk.is_so("whom the first was for", 3, len(shown))
    talk.is_so(
        "one that failed",
        {"url": "https://removed-ill.example/in", "tries": 1, "status_code": 500},
        shown["removed-ill"],
    )
    talk.is_so("one that has acknowledged", {"state": "acknowledged"}, shown["removed-202"])
    ended = {"state": "delivered", "url": "https://removed-moved.example/in", "tries": 2}
    talk.is_so("one that moved", ended, shown["removed-moves"])
    shown = statuses(talk, queue, other)
    talk.is_so("whom the second is for", ["removed-ill", "removed-moves", "removed-new"], sorted(shown))
    [error] = reported(talk, "removed-failed")
    talk.is_so("one is reported", {"source_msg_id": one, "subscribers": [{"name": "removed-ill", "code": 500}]}, error)
    for path in (queue, "/queues/removed-failed"):
        talk.ask("DELETE", path)


def _same_names(talk: Talk) -> None:
    """Reservations tell subscribers of one name apart; the URL decides which of them is changed."""
    if talk.gathered_s or talk.put_off_s:
        return
    came = {host: talk.listen(f"{host}.example", lambda _: (202, b"")) for host in ("named-one", "named-two")}
    both = [{**subscriber(host), "name": "same"} for host in came]
    queue = created(talk, "named", *both, retries=1, retries_delay=40)
    [one] = posted(talk, queue, "x")
    talk.sleep(10)
    held = came["named-one"][0].headers["iron-reservation-id"]
    talk.ask("DELETE", f"{queue}/messages/{one}", {"reservation_id": held, "subscriber_name": "same"})
    # Once more is fine, and changes nothing for the other one
    talk.ask("DELETE", f"{queue}/messages/{one}", {"reservation_id": held, "subscriber_name": "same"})
    talk.ask("DELETE", f"{queue}/messages/{one}", {"reservation_id": held, "subscriber_name": "other"}, status=403)
    talk.sleep(40 + LATE_S)
    talk.came(
        "one of the two is asked again",
        {"named-one": 1, "named-two": 2},
        {name: len(each) for name, each in came.items()},
    )
    shown = talk.ask("GET", f"{queue}/messages/{one}/subscribers")["subscribers"]
    talk.is_so(
        "what is shown of them", [("acknowledged", 1), (str, 2)], [(each["state"], each["tries"]) for each in shown]
    )
    talk.ask("DELETE", queue)


def _at_once(talk: Talk) -> None:
    """What is changed is in force for what is posted right after its answer: a subscriber that is added or removed, a
    queue that is cleared, or deleted and made again.
    """
    came = listening(talk, {"once-stays": OK, "once-comes": OK})
    queue = created(talk, "once", "once-stays", retries=0)
    comes = {"subscribers": [subscriber("once-comes")]}
    expected: dict[str, set[str]] = {name: set() for name in came}
    for number in range(4):
        talk.ask("POST", f"{queue}/subscribers", comes)
        posted(talk, queue, f"both {number}")
        talk.sleep(5 + talk.put_off_s)
        talk.ask("DELETE", f"{queue}/subscribers", comes)
        posted(talk, queue, f"one {number}")
        expected["once-comes"] |= {f"both {number}"}
        expected["once-stays"] |= {f"both {number}", f"one {number}"}
    talk.sleep(10 + talk.put_off_s)
    for name, heard in came.items():
        talk.came(f"what {name} gets", sorted(expected[name]), sorted(each.body.decode() for each in heard))
    talk.ask("GET", queue, shows={"queue": {"size": 0, "total_messages": 8}})
    for number in range(3):
        posted(talk, queue, f"before {number}", delay=20)
        talk.ask("DELETE", f"{queue}/messages", {}, shows={"msg": "Cleared"})
    posted(talk, queue, "cleared")
    talk.sleep(10 + talk.put_off_s)
    posted(talk, queue, "before it was deleted", delay=20)
    talk.ask("DELETE", queue)
    created(talk, "once", "once-stays", "once-comes", retries=0)
    posted(talk, queue, "anew")
    talk.sleep(20 + LATE_S + talk.put_off_s)
    for name, more in (("once-stays", {"cleared", "anew"}), ("once-comes", {"anew"})):
        bodies = sorted(each.body.decode() for each in came[name])
        talk.came(f"what {name} gets in the end", sorted(expected[name] | more), bodies)
    talk.ask("DELETE", queue)


def _descendants(talk: Talk) -> None:
    """Copies divide among themselves how many messages may follow from one; a push beyond that fails, is retried, and
    is reported once.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    names = [f"follows-{number}" for number in range(3)]
    several = [{"name": name, "url": f"ironmq:///{name}"} for name in names]
    came = talk.listen("follows-here.example", lambda _: OK)
    push = {"retries": 1, "retries_delay": 5, "error_queue": "follows-failed"}
    queue = created(talk, "follows", *several, **push)
    wide = created(talk, "follows-wide", *several, subscriber("follows-here"), **push)
    few, many = (talk.with_headers(pushhub_descendants=each) for each in ("2", "99"))
    [one] = few.ask("POST", f"{queue}/webhook", b"few", status=201)["ids"]
    talk.sleep(5 + LATE_S)
    arrived = [name for name in names if talk.status("GET", f"/queues/{name}") == 200]
    talk.is_so("one at most", True, len(arrived) <= 1)
    missed = [name for name in names if name not in arrived]
    found = reported(talk, "follows-failed")
    about = [{"source_msg_id": one, "body": "few", "subscribers": [{"name": name, "code": 508}]} for name in missed]
    talk.is_so("what is reported", about, found)
    for name in missed:
        talk.is_so("tries", {"state": "exhausted", "tries": 2}, statuses(talk, queue, one)[name])
    many.ask("POST", f"{wide}/webhook", b"many", status=201)
    posted(talk, wide, "all")
    talk.sleep(20)
    for name in names:
        shown = sorted(each["body"] for each in talk.ask("GET", f"/queues/{name}/messages?n=9")["messages"])
        talk.is_so(f"in {name}", ["all", *(["few"] if name in arrived else []), "many"], shown)
    talk.is_so("nothing more is reported", [], reported(talk, "follows-failed"))
    follow = {each.body.decode(): int(each.headers["pushhub-descendants"]) for each in came}
    most = said("ironmq-behaviour", r"leads to at most ([\d,]+) others")
    shares = (0 < follow["many"] <= 98 // 4, 98 // 4 < follow["all"] <= most // 4)
    talk.came("a share each", (True, True), shares)
    for path in (queue, wide, *(f"/queues/{name}" for name in names), "/queues/follows-failed"):
        talk.ask("DELETE", path)


__all__ = ["through"]
