"""Acknowledgements of pushes that were answered with 202: by the URL, whatever the names in it contain; with which of
several reservations; of a unicast queue; and as whom a subscriber is shown that changed meanwhile.

Source: docs/ironmq.md ("A push"), docs/ironmq-behaviour.md ("Push queues").
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from simulation.promises.talks.push_queues import (
    LATE_S,
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

LATER: Said = (202, b"")
DELAY_S = 60
"""For so long a push is reserved."""

NAMES = ("a&b=c d", "é+%20?#/;", "")
"""Names of subscribers that mean something in a URL, and none."""


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_by_url, _superseded, _in_turn, _renamed)


def _held(came: Came) -> str:
    return came.headers["iron-reservation-id"]


def _by_url(talk: Talk) -> None:
    """A ``DELETE`` of the URL that came with a push acknowledges that one alone, whatever queue and subscriber are
    called.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    came = [talk.listen(f"url-{number}.example", lambda _: LATER) for number in range(len(NAMES))]
    several = [{"name": name, "url": f"https://url-{number}.example/in"} for number, name in enumerate(NAMES)]
    path = created(talk, "url a+b&c=é#", *several, retries=0, retries_delay=DELAY_S)
    [one] = posted(talk, path, "x")
    talk.sleep(15)
    anybody = talk.at("").with_headers(authorization="")
    for done in range(len(NAMES)):
        [push] = came[done]
        talk.came("its name", NAMES[done], push.headers["iron-subscriber-name"])
        url = urlsplit(push.headers["iron-subscriber-message-url"])
        # API Gateway decodes paths, and no queries
        anybody.ask("DELETE", f"{unquote(url.path)}?{url.query}", shows={"msg": "Deleted"})
        shown = {
            each["url"]: each["state"] for each in talk.ask("GET", f"{path}/messages/{one}/subscribers")["subscribers"]
        }
        states = {each["url"]: "acknowledged" if place <= done else "reserved" for place, each in enumerate(several)}
        talk.is_so("who has acknowledged", states, shown)
    talk.sleep(2 * DELAY_S + LATE_S)
    talk.came("once each", [[one]] * len(NAMES), [ids_of(each) for each in came])
    talk.ask("DELETE", path)


def _superseded(talk: Talk) -> None:
    """A reservation is good until its end: then the next try has another one, and only that acknowledges."""
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"superseded": LATER})["superseded"]
    queue = created(talk, "superseded", "superseded", retries=3, retries_delay=DELAY_S, error_queue="superseded-failed")
    [one] = posted(talk, queue, "x")
    path = f"{queue}/messages/{one}"
    talk.sleep(DELAY_S + 20)
    talk.came("two tries", 2, len(came))
    first, second = ({"reservation_id": _held(each), "subscriber_name": "superseded"} for each in came)
    talk.ask("DELETE", path, first, status=403)
    talk.is_so(
        "reserved still",
        {"state": "reserved", "tries": 2, "retries_remaining": 2},
        statuses(talk, queue, one)["superseded"],
    )
    talk.ask("DELETE", path, second, shows={"msg": "Deleted"})
    talk.ask("DELETE", path, first, status=403)
    talk.ask("GET", path, shows={"message": {"body": "x", "push_statuses": [{"state": "acknowledged", "tries": 2}]}})
    talk.ask("GET", f"{queue}/deliveries?state=reserved", shows={"deliveries": []})
    talk.sleep(2 * DELAY_S + LATE_S)
    talk.came("no more tries", [one] * 2, ids_of(came))
    talk.ask("POST", f"{queue}/replay", {"subscriber": "superseded"}, shows={"found": 0})
    talk.ask("GET", "/queues/superseded-failed", status=404)
    talk.ask("DELETE", queue)


def _in_turn(talk: Talk) -> None:
    """Of a unicast queue, who answers 202 has the message for itself, and is asked again if it does not acknowledge;
    another one's name does not fit its reservation.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"turn-a": LATER, "turn-b": LATER})
    queue = created(talk, "turn", *came, kind="unicast", retries=1, retries_delay=DELAY_S, error_queue="turn-failed")
    taken, never = posted(talk, queue, "taken", "never")
    talk.sleep(15)

    def asked(message_id: str) -> Sequence[tuple[str, Came]]:
        return [
            (name, each)
            for name, heard in came.items()
            for each in heard
            if each.headers["iron-message-id"] == message_id
        ]

    talk.came("one is asked for each", [1, 1], [len(asked(each)) for each in (taken, never)])
    [(name, push)] = asked(taken)
    other = next(each for each in came if each != name)
    path = f"{queue}/messages/{taken}"
    talk.ask("DELETE", path, {"reservation_id": _held(push), "subscriber_name": other}, status=403)
    talk.ask("DELETE", path, {"reservation_id": _held(push), "subscriber_name": name}, shows={"msg": "Deleted"})
    shown = statuses(talk, queue, taken)
    talk.is_so("who took it", (1, 0), (shown[name]["tries"], shown[other]["tries"]))
    talk.is_so("as one", {"acknowledged"}, {each["state"] for each in shown.values()})
    talk.sleep(2 * DELAY_S + LATE_S)
    talk.came("two tries, or one", (2, 1), (len(asked(never)), len(asked(taken))))
    [error] = reported(talk, "turn-failed")
    talk.is_so("reported once", {"source_msg_id": never, "body": "never", "subscribers": [..., ...]}, error)
    said = sorted(each["msg"] for each in error["subscribers"] if each["code"] == 202)
    talk.is_so("why", {"Not acknowledged in time"}, {*said})
    for each in (queue, "/queues/turn-failed"):
        talk.ask("DELETE", each)


def _renamed(talk: Talk) -> None:
    """Statuses, lists and error messages show a subscriber as it was when it was asked last, whatever it became."""
    if talk.gathered_s or talk.put_off_s:
        return
    came = listening(talk, {"renamed-one": LATER, "renamed-ill": (500, b"no"), "renamed-new": OK})
    push = {"retries": 0, "retries_delay": DELAY_S, "error_queue": "renamed-failed"}
    queue = created(talk, "renamed", "renamed-one", "renamed-ill", **push)
    [one] = posted(talk, queue, "x")
    talk.sleep(15)
    # One gets another name, the other one another address
    changed = [{**subscriber("renamed-one"), "name": "other"}, {**subscriber("renamed-new"), "name": "renamed-ill"}]
    talk.ask("PUT", f"{queue}/subscribers", {"subscribers": changed}, shows={"msg": "Updated"})
    expected = {name: {"url": f"https://{name}.example/in", "tries": 1} for name in ("renamed-one", "renamed-ill")}
    talk.is_so("as they were", expected, statuses(talk, queue, one))
    talk.sleep(DELAY_S + LATE_S)
    talk.is_so("in the end, too", expected, statuses(talk, queue, one))
    found = {each["subscribers"][0]["name"]: each["subscribers"][0] for each in reported(talk, "renamed-failed")}
    codes = {"renamed-one": 202, "renamed-ill": 500}
    wanted = {name: {"url": each["url"], "code": codes[name]} for name, each in expected.items()}
    talk.is_so("as they are reported", wanted, found)
    listed = talk.ask("GET", f"{queue}/deliveries?state=exhausted")["deliveries"]
    talk.is_so("as they are listed", sorted(expected), sorted(each["subscriber_name"] for each in listed))
    # What is sent again goes where it is now
    talk.ask("POST", f"{queue}/replay", {"subscriber": "renamed-ill"}, shows={"replayed": 1})
    talk.sleep(15)
    talk.came("where it is now", [one], ids_of(came["renamed-new"]))
    for each in (queue, "/queues/renamed-failed"):
        talk.ask("DELETE", each)


__all__ = ["through"]
