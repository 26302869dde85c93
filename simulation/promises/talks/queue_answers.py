"""What comes of each answer that a queue's subscriber may give, or does not give in time: what is shown, what is
repeated, and what its error queue is told; and the headers of a push.

Source: docs/ironmq.md ("A push"), docs/ironmq-behaviour.md ("Push queues").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.push_queues import (
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
from simulation.promises.talks.talk import Came, Said, Talk

ELSEWHERE = {"location": "https://answers-elsewhere.example/in"}
TAKEN: Mapping[str, Said] = {
    "answers-200": OK,
    "answers-201": (201, b'{"error": "no"}'),
    "answers-204": (204, b""),
    "answers-299": (299, b""),
    "answers-last": (200, b"", {}, 9.5),
    "answers-patient": (200, b"", {}, 24),
}
FAILED: Mapping[str, Said] = {
    "answers-301": (301, b"", ELSEWHERE),
    "answers-302": (302, b"", ELSEWHERE),
    "answers-307": (307, b"", ELSEWHERE),
    "answers-400": (400, b""),
    "answers-404": (404, b""),
    # It is neither removed nor disabled, and what it asks for is not waited
    "answers-410": (410, b""),
    "answers-429": (429, b"", {"retry-after": "3600"}),
    "answers-500": (500, b""),
    "answers-503": (503, b"", {"retry-after": "1"}),
    "answers-down": (0, b"connect"),
    "answers-mute": (200, b"", {}, 11),
    "answers-hasty": (200, b"", {}, 4),
}
TIMEOUTS: Mapping[str, int] = {"answers-patient": 25, "answers-hasty": 3}
"""The other ones have ten seconds."""

UNACKNOWLEDGED = "answers-202"
DELAY_S = 30
MASK = "********"
NEVER_ACKNOWLEDGED = "Not acknowledged in time"


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_answers, _by_default, _headers, _attempts, _one_of_three, _hidden, _other_hubs)


def _code(name: str, said: Said) -> int:
    """The status that is shown: none if there was no answer in time."""
    takes_s = said[3] if len(said) > 3 else 0
    return 0 if takes_s > TIMEOUTS.get(name, 10) else said[0]


def _answers(talk: Talk) -> None:
    """One message, and a subscriber for each answer: who took it, who is asked again and when, and who is reported."""
    if talk.gathered_s or talk.put_off_s:
        return
    answers = {**TAKEN, **FAILED, UNACKNOWLEDGED: (202, b"")}
    came = listening(talk, answers)
    elsewhere = talk.listen("answers-elsewhere.example", lambda _: OK)
    subscribers = [
        subscriber(each, **({"timeout": TIMEOUTS[each]} if each in TIMEOUTS else {})) for each in sorted(answers)
    ]
    queue = created(talk, "answers", *subscribers, retries=1, retries_delay=DELAY_S, error_queue="answers-failed")
    [one] = posted(talk, queue, "{}")
    talk.sleep(27)
    shown = statuses(talk, queue, one)
    talk.is_so("all of them, in order", sorted(answers), [*shown])
    for name, said in answers.items():
        state = "delivered" if name in TAKEN else "reserved" if name == UNACKNOWLEDGED else "retrying"
        about = {"state": state, "tries": 1, "retries_remaining": 1, "status_code": _code(name, said)}
        same = {"subscriber_name": name, "url": f"https://{name}.example/in", "msg": str, "last_try_at": str}
        talk.is_so(f"once: {name}", {**about, **same}, shown[name])
        talk.is_so("when it is tried next", name not in TAKEN, "next_try_at" in shown[name])
        talk.is_so("that it has expired", False, "status" in shown[name])
    # Each delivery that waits
    waiting = len(FAILED) + 1
    talk.ask("GET", queue, shows={"queue": {"size": waiting, "total_messages": 1}})
    talk.sleep(DELAY_S + LATE_S + MINUTE)
    talk.came("who is redirected to", [], elsewhere)
    for name, heard in came.items():
        talk.came(f"tries of {name}", 1 if name in TAKEN else 2, len(heard))
        talk.came("each with the message", {one}, {*ids_of(heard)})
        for before, after in pairwise(heard):
            took = {"answers-mute": 10, "answers-hasty": 3}.get(name, 0)
            gap = (after.at - before.at) / SECOND - took
            talk.came(f"apart: {name}", lambda each: DELAY_S - 0.5 <= each <= DELAY_S + 20, gap)
            both = [each.headers["iron-reservation-id"] for each in (before, after)]
            talk.came("each with a reservation of its own", 2, len({*both}))
    talk.sleep(DELAY_S)
    shown = statuses(talk, queue, one)
    for name, said in answers.items():
        ended = {"state": "delivered", "tries": 1} if name in TAKEN else {"state": "exhausted", "tries": 2}
        left = {"retries_remaining": 1 if name in TAKEN else 0, "status_code": _code(name, said)}
        talk.is_so(f"in the end: {name}", {**ended, **left}, shown[name])
        talk.is_so("nothing more", False, "next_try_at" in shown[name])
    talk.is_so("why it was given up", NEVER_ACKNOWLEDGED, shown[UNACKNOWLEDGED]["msg"])
    missed = sorted([*FAILED, UNACKNOWLEDGED])
    found = reported(talk, "answers-failed")
    for name, error in zip(missed, found, strict=True):
        about = {"name": name, "url": f"https://{name}.example/in", "code": _code(name, answers[name])}
        about |= {"msg": NEVER_ACKNOWLEDGED} if name == UNACKNOWLEDGED else {}
        talk.is_so(f"the report of {name}", {"source_msg_id": one, "queue": "answers", "body": "{}"}, error)
        talk.is_so("of whom", [about], error["subscribers"])
        talk.is_so("no other reason", False, "reason" in error)
    listed = talk.ask("GET", f"{queue}/deliveries?state=exhausted")["deliveries"]
    talk.is_so("who is listed", missed, sorted(each["subscriber_name"] for each in listed))
    talk.ask("GET", queue, shows={"queue": {"size": 0, "total_messages": 1}})
    for name in ("answers", "answers-failed"):
        talk.ask("DELETE", f"/queues/{name}")


def _by_default(talk: Talk) -> None:
    """Four tries, a minute apart; no error queue is made where none is named."""
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"default-ill": (500, b""), "default-202": (202, b"")})
    queue = created(talk, "default", *came)
    [one] = posted(talk, queue, "x")
    talk.sleep(4 * (MINUTE + LATE_S))
    for name, heard in came.items():
        talk.came(f"tries of {name}", 4, len(heard))
        for before, after in pairwise(heard):
            talk.came("apart", lambda each: 59.5 <= each <= MINUTE + LATE_S, (after.at - before.at) / SECOND)
        talk.is_so("given up", {"state": "exhausted", "tries": 4}, statuses(talk, queue, one)[name])
    talk.ask("GET", "/queues?prefix=default", shows={"queues": [{"name": "default"}]})
    talk.ask("DELETE", queue)


RESERVED = (
    *("Iron-Message-Id", "iron-reservation-id", "IRON-SUBSCRIBER-NAME", "Iron-Subscriber-Message-Url"),
    *("Pushhub-Hops", "pushhub-descendants", "Host", "content-length", "Connection", "Transfer-Encoding"),
)


def _headers(talk: Talk) -> None:
    """Those of the message replace the subscriber's, which replace two of the hub's; at each try, each message its
    own; all other names of the hub's and of the connection's are refused.
    """
    fails = {"first": 1}

    def once(came: Came) -> Said:
        left = fails.get(came.body.decode(), 0)
        fails[came.body.decode()] = left - 1
        return (500, b"") if left > 0 else OK

    came = talk.listen("headed.example", once)
    plain = talk.listen("headed-plain.example", lambda _: OK)
    own = {"X-A": "subscriber's", "X-B": "subscriber's", "User-Agent": "subscriber/1", "Content-Type": "text/csv"}
    one = subscriber("headed", headers=own, url="https://headed.example/in/here?a=1&b=%20")
    queue = created(talk, "headed", one, subscriber("headed-plain"), retries=1, retries_delay=10)
    given = {"x-a": "message's", "X-C": "é", "content-type": "application/json"}
    messages = [
        {"body": "first", "push_headers": given},
        {"body": "other"},
        {"body": "own", "push_headers": {"X-D": "d"}},
    ]
    ids = talk.ask("POST", f"{queue}/messages", {"messages": messages}, status=201)["ids"]
    talk.sleep(10 + LATE_S + talk.put_off_s)
    base = {"x-a": "subscriber's", "x-b": "subscriber's", "x-c": None, "x-d": None, "user-agent": "subscriber/1"}
    base |= {"content-type": "text/csv"}
    first = {**base, "x-a": "message's", "x-c": "é", "content-type": "application/json"}
    expected = {"first": [first, first], "other": [base], "own": [{**base, "x-d": "d"}]}
    for body, wanted in expected.items():
        talk.came(f"headers of {body}", wanted, _named(came, body, first | {"x-d": ""}))
    talk.came("where it is sent to", {("/in/here", "a=1&b=%20")}, {(each.path, each.query) for each in came})
    hubs = {"user-agent": "IronMQ Pusherd", "content-type": "text/plain; encoding=utf-8"}
    base = {"x-a": None, "x-b": None, "x-c": None, "x-d": None, **hubs}
    first = {**base, **{name.lower(): value for name, value in given.items()}}
    for body, wanted in {"first": [first], "other": [base], "own": [{**base, "x-d": "d"}]}.items():
        talk.came(f"headers of {body} where the subscriber has none", wanted, _named(plain, body, first))
    for message_id, body in zip(ids, expected, strict=True):
        talk.came("each its own id", {message_id}, {*ids_of([each for each in came if each.body == body.encode()])})
    for name in RESERVED:
        talk.refused("POST", f"{queue}/messages", {"messages": [{"body": "x", "push_headers": {name: "1"}}]})
        talk.refused("POST", f"{queue}/subscribers", {"subscribers": [{**one, "headers": {name: "1"}}]})
        sender = talk.with_headers(**{f"x_subscribers_{name}": "1"})
        sender.ask("POST", f"{queue}/webhook", b"x", status=400)
    talk.ask("GET", queue, shows={"queue": {"total_messages": 3}})
    talk.ask("DELETE", queue)


def _named(came: Sequence[Came], body: str, names: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Headers of these names of each request for a message."""
    return [{name: each.headers.get(name) for name in names} for each in came if each.body == body.encode()]


def _attempts(talk: Talk) -> None:
    """The last 51 attempts of each subscriber, in order, and how many are forgotten of the others."""
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"attempts-many": (500, b"no"), "attempts-none": (200, b"yes")})
    queue = created(talk, "attempts", *came, retries=59, retries_delay=3)
    [one] = posted(talk, queue, "x")
    talk.sleep(60 * 5)
    talk.came(
        "sixty tries", {"attempts-many": 60, "attempts-none": 1}, {name: len(each) for name, each in came.items()}
    )
    shown = talk.ask("GET", f"{queue}/messages/{one}/attempts", shows={"forgotten": 9})["attempts"]
    talk.is_so("in order", sorted(each["started_at"] for each in shown), [each["started_at"] for each in shown])
    well = {"number": 1, "status_code": 200, "answer": "yes", "manual": False}
    ill = {"status_code": 500, "answer": "no", "manual": False}
    own = [each for each in shown if each["subscriber_name"] == "attempts-many"]
    talk.is_so("the last ones", [{**ill, "number": number} for number in range(10, 61)], own)
    talk.is_so("and the other's", [well], [each for each in shown if each["subscriber_name"] == "attempts-none"])
    talk.is_so("tries", {"tries": 60, "retries_remaining": 0}, statuses(talk, queue, one)["attempts-many"])
    talk.ask("DELETE", queue)


def _one_of_three(talk: Talk) -> None:
    """Of a unicast queue one takes a message, and the others are not asked; a round of failures is one try."""
    if talk.gathered_s or talk.put_off_s:
        return
    names = ("three-a", "three-b", "three-c")
    asked: dict[str, int] = {}
    takes = {"second": 2, "fourth": 4}

    def answers(came: Came) -> Said:
        number = asked[came.body.decode()] = asked.get(came.body.decode(), 0) + 1
        return OK if number == takes.get(came.body.decode()) else (500, b"")

    came = {name: talk.listen(f"{name}.example", answers) for name in names}
    queue = created(talk, "three", *names, kind="unicast", retries=1, retries_delay=20, error_queue="three-failed")
    ids = dict(zip(("second", "fourth", "never"), posted(talk, queue, "second", "fourth", "never"), strict=True))
    talk.sleep(8)
    shown = [*statuses(talk, queue, ids["second"]).values()]
    codes = sorted(each.get("status_code", -1) for each in shown)
    talk.is_so("one failed, one took it, one was not asked", [-1, 200, 500], codes)
    for each in shown:
        tried = "status_code" in each
        talk.is_so("as it was asked", {"state": "delivered", "tries": int(tried), "retries_remaining": 1}, each)
        talk.is_so("when", (tried, False), ("last_try_at" in each, "next_try_at" in each))
    for body in ("fourth", "never"):
        shown = [*statuses(talk, queue, ids[body]).values()]
        talk.is_so(
            "each once", 3 * [{"state": "retrying", "tries": 1, "retries_remaining": 1, "status_code": 500}], shown
        )
        talk.is_so("one is next", 1, sum("next_try_at" in each for each in shown))
    talk.sleep(20 + LATE_S)
    heard = {body: sorted(count for name in names if (count := _bodies(came[name]).count(body))) for body in ids}
    talk.came("who was asked how often", {"second": [1, 1], "fourth": [1, 1, 2], "never": [2, 2, 2]}, heard)
    [error] = reported(talk, "three-failed")
    talk.is_so("reported", {"source_msg_id": ids["never"], "queue": "three", "body": "never"}, error)
    all_three = [{"name": name, "code": 500} for name in names]
    talk.is_so("with all of them", all_three, sorted(error["subscribers"], key=lambda each: str(each["name"])))
    talk.ask("POST", f"{queue}/pause", {"subscriber": names[0]}, status=400)
    talk.ask("POST", f"{queue}/replay", {"subscriber": names[0]}, shows={"found": 0, "replayed": 0})
    for name in ("three", "three-failed"):
        talk.ask("DELETE", f"/queues/{name}")


def _bodies(came: Sequence[Came]) -> list[str]:
    return [each.body.decode() for each in came]


def _hidden(talk: Talk) -> None:
    """What opens something is shown nowhere: neither in settings, statuses, attempts nor error messages, also if an
    answer repeats it, of which 300 bytes are shown. Sent back as it is shown it stays, at the same host alone.
    """
    said = b"hush-key hush-user:hush-word " + 400 * b"x"
    came = talk.listen("hidden.example", lambda _: (500, said))
    url = "https://hush-user:hush-word@hidden.example/in?token=hush-token&b=hush-b"
    one = {"name": "hidden", "url": url, "headers": {"X-Key": "hush-key"}}
    queue = created(talk, "hidden", one, retries=0, error_queue="hidden-failed")
    [message_id] = posted(talk, queue, "x")
    talk.sleep(20 + talk.put_off_s)
    talk.came("what is sent", [{"x-key": "hush-key"}], [each.headers for each in came])
    talk.came("with its query", ["token=hush-token&b=hush-b"], [each.query for each in came])
    [attempt] = talk.ask("GET", f"{queue}/messages/{message_id}/attempts")["attempts"]
    talk.is_so("its number", {"number": 1, "status_code": 500}, attempt)
    talk.is_so("as much as is shown", lambda each: 250 <= each <= 300, len(attempt["answer"].encode()))
    for about, shown in (
        ("settings", talk.ask("GET", queue)),
        ("a status", statuses(talk, queue, message_id)),
        ("an attempt", attempt),
        ("a list", talk.ask("GET", f"{queue}/deliveries?state=exhausted")),
        ("an error message", reported(talk, "hidden-failed")),
    ):
        hidden = ("hush-key", "hush-word", *(("hush-token", "hush-b") if about == "an error message" else ()))
        talk.is_so(f"no secrets in {about}", [], [each for each in hidden if each in str(shown)])
    [read] = talk.ask("GET", queue)["queue"]["push"]["subscribers"]
    talk.is_so("shown in its place", True, read["url"].startswith(f"https://{MASK}@hidden.example/"))
    for place in ("hidden-other.example", "hidden.example:8443"):
        moved = {**read, "url": read["url"].replace("hidden.example", place)}
        talk.refused("PUT", f"{queue}/subscribers", {"subscribers": [moved]})
    talk.refused(
        "PUT", f"{queue}/subscribers", {"subscribers": [{**read, "url": read["url"].replace("https", "http")}]}
    )
    talk.ask("PUT", f"{queue}/subscribers", {"subscribers": [{**read, "url": read["url"].replace("/in", "/moved")}]})
    talk.sleep(2)
    posted(talk, queue, "y")
    talk.sleep(20 + talk.put_off_s)
    talk.came("what it had, at another path", ("/moved", "hush-key"), (came[-1].path, came[-1].headers["x-key"]))
    for name in ("hidden", "hidden-failed"):
        talk.ask("DELETE", f"/queues/{name}")


def _other_hubs(talk: Talk) -> None:
    """A queue of another hub gets the bytes at its webhook, with its token, and a worker a task; the hub's own address
    is no subscriber's.
    """
    came = talk.listen("other-hub.example", lambda _: OK)
    several = [
        {"name": "queue", "url": "ironmq://p-1:hush-1@other-hub.example/taken%20in"},
        {"name": "worker", "url": "ironworker://p-2:hush-2@other-hub.example/code"},
    ]
    queue = created(talk, "others", *several, retries=0)
    posted(talk, queue, '{"a": "é"}', push_headers={"X-Own": "o"})
    talk.sleep(20 + talk.put_off_s)
    paths = ["/2/projects/p-2/tasks/webhook", "/3/projects/p-1/queues/taken%20in/webhook"]
    talk.came("where to", paths, sorted(each.path for each in came))
    talk.came("the bytes", ['{"a": "é"}'] * 2, [each.body.decode() for each in came])
    for each in came:
        opens = each.headers.get("authorization", "") + each.query
        of_queue = each.path.startswith("/3")
        talk.came("each with its own token", (of_queue, not of_queue), ("hush-1" in opens, "hush-2" in opens))
        if of_queue:
            passed = {"pushhub-hops": "1", "pushhub-descendants": str, "x-subscribers-x-own": "o"}
            talk.came("what the other queue has to know", passed, each.headers)
        else:
            talk.came("whose code", True, "code_name=code" in each.query)
    talk.ask("GET", queue, shows=lambda each: "hush" not in str(each))
    own = f"https://hub.example/3/projects/{talk.project}/queues/others-own/webhook"
    for url in (own, "ironmq:///others", "ironmq://p-1@other-hub.example/q", "ironworker://other-hub.example/code"):
        talk.refused("POST", f"{queue}/subscribers", {"subscribers": [{"name": "own", "url": url}]})
    talk.ask("DELETE", queue)


__all__ = ["through"]
