"""Tries by hand of what was given up: for one subscriber, page by page, for some messages, for those of a time.

Source: docs/ironmq.md ("Requests"), docs/cli.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from simulation.promises.talks.push_queues import ILL, created, ids_of, listening, posted, reported, statuses
from simulation.promises.talks.talk import Talk


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_replayed, _by_time)


def _replayed(talk: Talk) -> None:
    """One more try for what was given up at one subscriber; page by page, each once; what fails again stays given up,
    and nothing changes at the other one.
    """
    answers = {"status": 500}
    came = talk.listen("again-ill.example", lambda _: (answers["status"], b""))
    other = listening(talk, {"again-other": ILL})["again-other"]
    queue = created(talk, "again", "again-ill", "again-other", retries=0, error_queue="again-failed")
    ids = [posted(talk, queue, f"{number}")[0] for number in range(5)]
    talk.sleep(20 + talk.put_off_s)
    talk.is_so("all of them were given up", 10, len(reported(talk, "again-failed")))
    path = f"{queue}/replay"
    every = [*map(str, ids), *(f"{10**18 + number}" for number in range(96))]
    bad: Any
    for bad in (every, [], None, ["x"], "x", [1]):
        talk.refused("POST", path, {"subscriber": "again-ill", "message_ids": bad})
    for bad in ({"n": 101}, {"n": -1}, {"since": "x"}, {"until": 5}):
        talk.refused("POST", path, {"subscriber": "again-ill", **bad})
    talk.refused("POST", path, {})
    talk.ask("POST", path, {"subscriber": ""}, status=404)
    talk.ask(
        "POST",
        path,
        {"subscriber": "again-ill", "message_ids": every[:100]},
        shows={"looked": 5, "found": 5, "replayed": 5},
    )
    talk.sleep(90 + talk.put_off_s)
    talk.came(
        "one more try each, and no others", dict.fromkeys(ids, 2), {each: ids_of(came).count(each) for each in ids}
    )
    for each in ids:
        shown = statuses(talk, queue, each)
        talk.is_so("given up again", {"state": "exhausted", "tries": 2, "retries_remaining": 0}, shown["again-ill"])
        talk.is_so("and nothing at the other", {"state": "exhausted", "tries": 1}, shown["again-other"])
        attempts = talk.ask("GET", f"{queue}/messages/{each}/attempts")["attempts"]
        own = [(one["number"], one["manual"]) for one in attempts if one["subscriber_name"] == "again-ill"]
        talk.is_so("by hand", [(1, False), (2, True)], own)
    answers["status"] = 200
    after, replayed = None, 0
    for _ in range(20):
        page = talk.ask("POST", path, {"subscriber": "again-ill", "n": 3, **({"after": after} if after else {})})
        after, replayed = page["after"], replayed + page["replayed"]
        if after is None:
            break
    talk.is_so("all pages together", (5, None), (replayed, after))
    talk.sleep(20 + talk.put_off_s)
    talk.came("each once more", dict.fromkeys(ids, 3), {each: ids_of(came).count(each) for each in ids})
    talk.came("the other got nothing", 5, len(other))
    listed = talk.ask("GET", f"{queue}/deliveries?state=exhausted")["deliveries"]
    talk.is_so(
        "what is left",
        {(each, "again-other") for each in ids},
        {(each["message_id"], each["subscriber_name"]) for each in listed},
    )
    talk.ask("POST", path, {"subscriber": "again-ill"}, shows={"found": 0, "replayed": 0, "after": None})
    for each in ids:
        talk.is_so("delivered", {"state": "delivered", "tries": 3}, statuses(talk, queue, each)["again-ill"])
    for each in (queue, "/queues/again-failed"):
        talk.ask("DELETE", each)


def _by_time(talk: Talk) -> None:
    """A replay for messages that were accepted in a time, of this queue alone; while its subscriber is paused, too."""
    answers = {"status": 500}
    came = talk.listen("timed-ill.example", lambda _: (answers["status"], b""))
    queue, beside = (created(talk, name, "timed-ill", retries=0) for name in ("timed", "timed-beside"))
    ids = []
    for number in range(4):
        ids += posted(talk, queue, f"{number}")
        posted(talk, beside, f"beside {number}")
        talk.sleep(10, exactly=True)
    talk.sleep(15 + talk.put_off_s)
    listed = talk.ask(
        "GET", f"{queue}/deliveries?state=exhausted", shows={"deliveries": [{"message_id": each} for each in ids]}
    )
    at = [datetime.fromisoformat(each["accepted_at"]).timestamp() for each in listed["deliveries"]]
    answers["status"] = 200
    talk.ask("POST", f"{queue}/pause", {"subscriber": "timed-ill"})
    talk.sleep(2)
    before = len(came)
    whole: Mapping[str, Any] = {"subscriber": "timed-ill"}
    for bounds, found in (
        ({"since": at[1] - 5}, 3),
        ({"until": at[1] + 5}, 2),
        ({"since": at[1] - 5, "until": at[2] + 5}, 2),
        ({"since": at[3] + 5}, 0),
    ):
        asked = {**whole, **{name: _iso(value) for name, value in bounds.items()}, "dry_run": True}
        talk.ask("POST", f"{queue}/replay", asked, shows={"found": found, "replayed": 0})
    talk.ask(
        "POST", f"{queue}/replay", {**whole, "since": _iso(at[1] - 5), "until": _iso(at[2] + 5)}, shows={"replayed": 2}
    )
    talk.sleep(20 + talk.put_off_s)
    talk.came("those of that time", sorted(ids[1:3]), sorted(ids_of(came[before:])))
    states = [statuses(talk, queue, each)["timed-ill"]["state"] for each in ids]
    talk.is_so("what became of them", ["exhausted", "delivered", "delivered", "exhausted"], states)
    talk.ask("GET", f"{beside}/deliveries?state=exhausted", shows={"deliveries": 4 * [...]})
    for each in (queue, beside):
        talk.ask("DELETE", each)


def _iso(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).isoformat()


__all__ = ["through"]
