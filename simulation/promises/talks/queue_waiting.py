"""What waits in queues, wherever that is shown: in their size, peeks, lists by state, healths and the overview; after a
clear and a deletion, of many subscribers, and page by page.

Source: docs/ironmq.md ("Requests", "How a subscriber is doing"), docs/ironmq-behaviour.md ("Push queues").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from simulation.promises.talks.pages import Page, by_pages
from simulation.promises.talks.push_queues import ILL, MINUTE, OK, created, listening, posted
from simulation.promises.talks.talk import Talk

LONG_S = 3_000
"""So long nothing is tried again that has failed."""


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_after_a_clear, _of_many, _by_state, _from_a_name)


def _shown(talk: Talk, queue: str) -> dict[str, Any]:
    """What is shown of what waits in a queue: each delivery at each of the places that count them, and the messages."""
    name = queue.rpartition("/")[2]
    [listed] = talk.ask("GET", f"/queues?prefix={name}&health=true")["queues"]
    health = talk.ask("GET", f"{queue}/health")
    seen = {each["name"]: each for each in talk.ask("GET", "/overview")["queues"]}
    return {
        "size": talk.ask("GET", queue)["queue"]["size"],
        "in the overview": seen.get(name, {}).get("size", 0),
        "oldest": seen.get(name, {}).get("oldest"),
        "peeked": [each["id"] for each in talk.ask("GET", f"{queue}/messages?n=100")["messages"]],
        "in the list": listed["waiting"],
        "in the health": health["waiting"],
        **{each["name"]: each["health"]["waiting"] for each in health["subscribers"]},
    }


def _after_a_clear(talk: Talk) -> None:
    """What was cleared or deleted does not wait anywhere any more; what is posted from then on does, beside it."""
    if talk.gathered_s or talk.put_off_s:
        return
    listening(talk, {"waits-ill": ILL, "waits-well": OK, "waits-rests": OK})
    queue = created(talk, "waits", "waits-ill", "waits-well", "waits-rests", retries=5, retries_delay=LONG_S)
    talk.ask("POST", f"{queue}/pause", {"subscriber": "waits-rests"})
    talk.sleep(2)

    def expected(*ids: str, deleted: int = 0) -> dict[str, Any]:
        count = len(ids)
        retried = {"size": count, "in the overview": count, "oldest": ids[0] if ids else None, "peeked": [*ids]}
        # What was deleted is counted where it stands in a backlog
        held = count + deleted
        whole = {"in the list": count + held, "in the health": count + held}
        return {**retried, **whole, "waits-ill": count, "waits-well": 0, "waits-rests": held}

    ids = posted(talk, queue, "a", "b", "c")
    talk.sleep(15)
    talk.is_so("all of them", expected(*ids), _shown(talk, queue))
    talk.ask("DELETE", f"{queue}/messages/{ids[0]}", {}, shows={"msg": "Deleted"})
    talk.sleep(2)
    talk.is_so("without one", expected(*ids[1:], deleted=1), _shown(talk, queue))
    talk.ask("DELETE", f"{queue}/messages", {}, shows={"msg": "Cleared"})
    talk.sleep(2)
    talk.is_so("nothing", expected(), _shown(talk, queue))
    for state in ("retrying", "reserved", "exhausted"):
        talk.ask("GET", f"{queue}/deliveries?state={state}", shows={"deliveries": []})
    new = posted(talk, queue, "d", "e")
    talk.sleep(15)
    talk.is_so("what is new", expected(*new), _shown(talk, queue))
    talk.ask("DELETE", queue)


def _of_many(talk: Talk) -> None:
    """A peek shows as many messages as were asked for, however many deliveries of each wait; each once, the oldest
    first.
    """
    if talk.turn % 3 != 1 or talk.gathered_s or talk.put_off_s:
        return
    names = [f"many-{number}" for number in range(5)]
    listening(talk, dict.fromkeys(names, ILL))
    queue = created(talk, "many-failing", *names, retries=5, retries_delay=LONG_S)
    ids = posted(talk, queue, *(f"{number}" for number in range(45)))
    talk.sleep(MINUTE)
    talk.ask("GET", queue, shows={"queue": {"size": len(names) * len(ids)}})
    for count in (1, 44, 45, 100):
        shown = talk.ask("GET", f"{queue}/messages?n={count}")["messages"]
        talk.is_so(f"the first {count}", ids[:count], [each["id"] for each in shown])
    talk.ask("DELETE", queue)


def _by_state(talk: Talk) -> None:
    """Deliveries that failed or wait, by state and page by page, each in its list alone, however they are mixed."""
    if talk.gathered_s or talk.put_off_s:
        return
    listening(talk, {"state-ill": ILL, "state-202": (202, b""), "state-well": OK})
    names = ("state-202", "state-ill", "state-well")
    queue = created(talk, "states", *names, retries=0, retries_delay=LONG_S)
    old = posted(talk, queue, "a", "b", "c")
    talk.sleep(15)
    talk.ask("PATCH", queue, {"queue": {"push": {"retries": 5}}})
    talk.sleep(2)
    new = posted(talk, queue, "d", "e")
    talk.sleep(15)
    expected: Mapping[str, Sequence[tuple[str, str, int]]] = {
        "exhausted": [(each, "state-ill", 500) for each in old],
        "reserved": [(each, "state-202", 202) for each in (*old, *new)],
        "retrying": [(each, "state-ill", 500) for each in new],
    }
    for state, rows in expected.items():

        def page(count: int, after: Any, state: str = state) -> Page:
            query = f"state={state}&count={count}" + (f"&after={quote(after)}" if after else "")
            answer = talk.ask("GET", f"{queue}/deliveries?{query}")
            return answer["deliveries"], answer["after"]

        whole = [
            {"message_id": message_id, "subscriber_name": name, "status_code": code, "state": state}
            for message_id, name, code in rows
        ]
        by_pages(talk, f"what is {state}", whole, page, sizes=(1, 2, 100))
    talk.ask("GET", queue, shows={"queue": {"size": len(expected["reserved"]) + len(expected["retrying"])}})
    talk.ask("DELETE", queue)


def _from_a_name(talk: Talk) -> None:
    """The overview goes on after any name, and has the queues in the order of their names."""
    names = [f"named-{each}" for each in "abc"]
    ids = {name: posted(talk, f"/queues/{name}", *(count * ["x"])) for count, name in enumerate(names, start=1)}
    talk.sleep(6, exactly=True)
    for previous, left in (("", names), ("named-", names), ("named-a", names[1:]), ("named-b1", names[2:])):
        seen = talk.ask("GET", f"/overview?previous={previous}", shows={"counted": lambda each: each >= len(left)})  # noqa: B023
        rows = [each for each in seen["queues"] if each["name"].startswith("named-")]
        expected = [{"name": name, "size": len(ids[name]), "oldest": ids[name][0]} for name in left]
        talk.is_so(f"after {previous}", expected, sorted(rows, key=lambda each: str(each["name"])))
    for name in names:
        talk.ask("DELETE", f"/queues/{name}")


__all__ = ["through"]
