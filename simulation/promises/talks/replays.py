"""What is sent again, or for the first time, by background tasks: of what, to whom, how often, and how fast.

Source: docs/webhooks.md ("Background tasks", "Portal").
"""

from __future__ import annotations

import json
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.customers import KIND, LATE_S, MINUTE, OTHER, Customer
from simulation.promises.talks.talk import Talk

SECOND_S = 300
"""Svix's second wait, which is up to a fifth shorter or longer."""


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_recovered, _missing, _paced, _flagged)


def _recovered(talk: Talk) -> None:
    """``recover`` and ``bulk-replay`` try each message once: what has failed since a time, or what is chosen; and only
    at the one endpoint.
    """
    one = Customer(talk, "recovers")
    ended = (500, b"", {"webhook-delivery": "abort-message"})
    for uid in ("fails", "other"):
        one.endpoint(uid)
        one.says[uid] = lambda came: (200, b"") if json.loads(came.body)["n"] in {2, 5} else ended
    times: list[str] = []
    for number in range(6):
        times.append(talk.ask("GET", f"{one.path}/msg/{one.post(number)}")["timestamp"])
        talk.sleep(2, exactly=True)
    talk.sleep(10 + talk.put_off_s)
    talk.came("each once", [0, 1, 2, 3, 4, 5], sorted(one.numbers("fails")))
    path = f"{one.path}/endpoint/fails"
    one.says["fails"] = (500, b"")

    def sent(route: str, **more: Any) -> list[int]:
        before = len(one.came["fails"])
        task = talk.ask("POST", f"{path}/{route}", {"since": times[1], **more}, status=202)["id"]
        talk.sleep(2 * MINUTE + talk.put_off_s)
        talk.ask("GET", f"/background-task/{task}", shows={"status": "finished"})
        talk.sleep(SECOND_S * 1.2 + 2 * LATE_S)
        return sorted(one.numbers("fails")[before:])

    talk.came("what failed, once each", [1, 3, 4], sent("recover"))
    talk.came("until a time", [1, 3], sent("recover", until=times[4]))
    talk.came("whatever became of it", [1, 2, 3, 4, 5], sent("bulk-replay"))
    one.says["fails"] = (200, b"")
    talk.came("until it arrives", [1, 3, 4], sent("recover"))
    talk.came("then there is nothing", [], sent("recover"))
    talk.came("the other got nothing of it", 6, len(one.came["other"]))
    # What is tried on its own meanwhile is tried once more all the same
    one.says["fails"] = (500, b"")
    one.post(9)
    talk.sleep(2 + talk.put_off_s)
    task = talk.ask("POST", f"{path}/recover", {"since": times[1]}, status=202)["id"]
    talk.sleep(MINUTE + talk.put_off_s + 2 * talk.gathered_s)
    talk.ask("GET", f"/background-task/{task}", shows={"status": "finished"})
    talk.came("two on its own and one more", 3, one.numbers("fails").count(9))
    one.over()


def _missing(talk: Talk) -> None:
    """``replay-missing`` gives all automatic tries to what was never sent to the endpoint, if it is of its event types
    and channels, and its payload filters let it through.
    """
    one = Customer(talk, "misses")
    for number in range(2):
        one.post(number, channels=["a"])
    # Bytes of which DynamoDB does not take so many.
    one.post(2, channels=["a"], payload={"n": 2, "long": "x" * 450_000})
    one.post(3, OTHER, channels=["a"])
    one.post(4, channels=["b"])
    # Of what was posted as text, JSON objects that pass; by what endpoints get, whatever the payload beside it says
    for text in ('{"n": 7}', '{"n": -7}', "[7]", "a text"):
        one.post(8, channels=["a"], transformationsParams={"rawPayload": text})
    talk.sleep(5)
    filters = [{"path": "n", "operator": "gt", "value": 0}]
    one.endpoint("new", eventTypes=[KIND], channels=["a"], payloadFilters=filters)
    one.endpoint("other")
    talk.sleep(2)
    one.post(5, channels=["a"])
    talk.sleep(10 + talk.put_off_s)
    talk.came("what is posted from then on", [5], one.numbers("new"))
    one.says["new"] = (500, b"")
    since = {"since": "2026-11-10T00:00:00Z", "unlimited": True}
    talk.ask("POST", f"{one.path}/endpoint/new/replay-missing", since, status=202)
    talk.sleep(MINUTE + talk.put_off_s)
    talk.came("twice each, soon", [1, 1, 2, 2, 7, 7], sorted(one.numbers("new")[1:]))
    one.says["new"] = (200, b"")
    talk.sleep(SECOND_S * 1.2 + LATE_S + talk.gathered_s)
    talk.came("and a third time", [1, 1, 1, 2, 2, 2, 7, 7, 7], sorted(one.numbers("new")[1:]))
    talk.ask("POST", f"{one.path}/endpoint/new/replay-missing", since, status=202)
    talk.sleep(2 * MINUTE + talk.put_off_s)
    talk.came("nothing is missing any more", 10, len(one.came["new"]))
    talk.came("the other got nothing of it", [5], one.numbers("other"))
    one.over()


def _paced(talk: Talk) -> None:
    """A task that is asked for a rate sends no more than that; what is posted meanwhile comes at once."""
    one = Customer(talk, "paced")
    for number in range(12):
        one.post(number)
    talk.sleep(5)
    one.endpoint("new")
    talk.sleep(2)
    slow = {"since": "2026-11-10T00:00:00Z", "unlimited": True, "rate": 1}
    task = talk.ask("POST", f"{one.path}/endpoint/new/replay-missing", slow, status=202)["id"]
    talk.sleep(4)
    began = talk.now()
    one.post(99)
    talk.sleep(2 * MINUTE + talk.put_off_s)
    shown = talk.ask("GET", f"/background-task/{task}", shows={"status": "finished"})
    talk.is_so("what it did", {"messagesSent": 12}, shown["data"])
    talk.came("each once", [*range(12), 99], sorted(one.numbers("new")))
    at = {json.loads(each.body)["n"]: each.at for each in one.came["new"]}
    took = (max(at[number] for number in range(12)) - min(at[number] for number in range(12))) / SECOND
    talk.came("one a second", lambda each: 9 <= each <= 100 + talk.put_off_s, took)
    late = 5 + talk.gathered_s + talk.put_off_s
    talk.came("at once", lambda each: each <= late, (at.get(99, 10**12) - began) / SECOND)
    one.over()


def _flagged(talk: Talk) -> None:
    """What a portal could not choose is left out of what it has replayed; the project's replay sends it."""
    for name, more in (("flagged.open", {}), ("flagged.beta", {"featureFlags": ["beta"]})):
        talk.ask("POST", "/event-type", {"name": name, "description": "d", **more}, status=201)
    one = Customer(talk, "flagged")
    ids = {name: one.post(number, name) for number, name in enumerate(("flagged.open", "flagged.beta"))}
    talk.sleep(5)
    one.endpoint("one")
    token = talk.ask("POST", "/auth/app-portal-access/flagged", {})["token"]
    portal = talk.with_headers(authorization=f"Bearer {token}")
    since = {"since": "2026-11-10T00:00:00Z", "unlimited": True}
    for caller, expected in ((portal, ["flagged.open"]), (talk, ["flagged.beta", "flagged.open"])):
        before = len(one.came["one"])
        task = caller.ask("POST", f"{one.path}/endpoint/one/bulk-replay", since, status=202)["id"]
        talk.sleep(2 * MINUTE + talk.put_off_s)
        talk.ask("GET", f"/background-task/{task}", shows={"data": {"messagesSent": len(expected)}})
        by_id = {message_id: name for name, message_id in ids.items()}
        talk.came(
            "what is replayed", expected, sorted(by_id[each.headers["webhook-id"]] for each in one.came["one"][before:])
        )
    one.over()
    for name in ids:
        talk.ask("DELETE", f"/event-type/{name}?expunge=true", status=204)


__all__ = ["webhooks"]
