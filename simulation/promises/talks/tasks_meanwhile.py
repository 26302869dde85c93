"""Background tasks side by side, about equal names, cancelled and repeated; endpoints that are switched off and
contents that are erased under way; and what is counted between two times.

Sources: docs/webhooks.md ("Background tasks", "Operational webhooks", "Redaction", "Differences from Svix"), Svix's
statistics.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.customers import HOUR, KIND, LATE_S, MINUTE, OTHER, Customer
from simulation.promises.talks.listings import pages
from simulation.promises.talks.talk import Came, Talk

SINCE = {"since": "2026-11-10T00:00:00Z", "unlimited": True}
SOON_S = 20
"""A task that begins at once has sent a few messages after so long."""

SECOND_S, THIRD_S = 300, 1_800
"""Svix's second and third wait, which are up to a fifth shorter or longer."""


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_side_by_side, _canceled, _switched_off, _erased, _counted)


def _side_by_side(talk: Talk) -> None:
    """Tasks of a project take turns, however slowly one of them goes; each is about the endpoint in its path, which
    also tells apart two requests with one key; and the list of tasks has each of them once.
    """
    one = Customer(talk, "turns")
    other = Customer(talk, "turns-too", beside=one)
    counts = {one: 12, other: 6}
    for each, count in counts.items():
        for number in range(count):
            each.post(number)
    talk.sleep(5)
    for each in counts:
        each.endpoint("one")
    talk.sleep(2)
    began, keyed = talk.now(), talk.with_headers(idempotency_key="turns")
    ids = {
        each: keyed.ask("POST", f"{each.path}/endpoint/one/replay-missing", {**SINCE, "rate": 1}, status=202)["id"]
        for each in (one, other)
    }
    quick = talk.ask("POST", f"{other.path}/endpoint/one/bulk-replay", {**SINCE, "dryRun": True}, status=202)["id"]
    talk.sleep(SOON_S + talk.put_off_s)
    talk.ask("GET", f"/background-task/{quick}", shows={"status": "finished", "data": {"messagesFound": 6}})
    talk.sleep(2 * MINUTE + talk.put_off_s)
    for each, count in counts.items():
        talk.came(f"each once, of {each.path}", [*range(count)], sorted(each.numbers("one")))
        first = (each.came["one"][0].at - began) / SECOND
        talk.came("the first soon", lambda seconds: seconds <= SOON_S + talk.put_off_s + talk.gathered_s, first)
        shown = {"status": "finished", "task": "endpoint.replay", "data": {"messagesSent": count}}
        talk.ask("GET", f"/background-task/{ids[each]}", shows=shown)
    listed = [each["id"] for each in talk.ask("GET", "/background-task?limit=250")["data"]]
    talk.is_so("the newest first", [quick, ids[other], ids[one]], listed[:3])
    some = len(listed) // 3 + 1
    pages(talk, "/background-task", listed, sizes=(some, 250))
    pages(talk, "/background-task?order=ascending", listed[::-1], forged=False, sizes=(some,))
    other.over()
    one.over()


def _heard(talk: Talk, uid: str, *names: str) -> Sequence[Came]:
    """An operational endpoint; what it is told."""
    host = f"meanwhile-{uid}.example"
    came = talk.listen(host, lambda _: (200, b""))
    fields = {"url": f"https://{host}/", "uid": uid, "eventTypes": names}
    talk.ask("POST", "/operational-webhook/endpoint", fields, status=201)
    return came


def _canceled(talk: Talk) -> None:
    """What is cancelled sends nothing more, which its owner is told as of any task that ends. A request with its key is
    this task, for twelve hours; then it is another one.
    """
    heard = _heard(talk, "canceled", "background_task.finished")
    one = Customer(talk, "canceled")
    for number in range(20):
        one.post(number)
    talk.sleep(5)
    one.endpoint("new")
    talk.sleep(2)
    path, keyed = f"{one.path}/endpoint/new/replay-missing", talk.with_headers(idempotency_key="canceled")
    slow = {**SINCE, "rate": 1}
    first = keyed.ask("POST", path, slow, status=202)["id"]
    talk.sleep(10, exactly=True)
    canceled = {"id": first, "status": "failed", "data": {"canceled": True}}
    talk.ask("POST", f"/background-task/{first}/cancel", shows=canceled)
    talk.sleep(30 + talk.put_off_s)
    before = one.numbers("new")
    talk.came("not all of them", lambda count: count < 20, len(before))
    keyed.ask("POST", path, slow, status=202, shows={"id": first})
    keyed.ask("POST", path, {**slow, "rate": 2}, status=422, shows={"detail": [{"loc": ["header", "idempotency-key"]}]})
    talk.sleep(3 * MINUTE + talk.put_off_s)
    talk.came("nothing more", before, one.numbers("new"))
    shown = talk.ask("GET", f"/background-task/{first}", shows=canceled)
    talk.sleep(11.5 * HOUR, exactly=True)
    keyed.ask("POST", path, slow, status=202, shows={"id": first})
    talk.sleep(0.5 * HOUR, exactly=True)
    again = keyed.ask("POST", path, slow, status=202)["id"]
    talk.is_so("another one", True, again != first)
    talk.sleep(3 * MINUTE + talk.put_off_s)
    talk.came("the rest", [*range(20)], sorted(one.numbers("new")))
    last = talk.ask("GET", f"/background-task/{again}", shows={"status": "finished", "task": "endpoint.replay"})
    expected = [{"taskId": each["id"], **_parts(each)} for each in (shown, last)]
    talk.came("what is told", expected, [json.loads(each.body)["data"] for each in heard])
    talk.ask("DELETE", "/operational-webhook/endpoint/canceled", status=204)
    one.over()


def _parts(task: Mapping[str, Any]) -> dict[str, Any]:
    return {name: task[name] for name in ("task", "status", "data")}


def _switched_off(talk: Talk) -> None:
    """To an endpoint that is switched off while a task goes on nothing more is sent; to another one it is."""
    one = Customer(talk, "paused")
    for number in range(20):
        one.post(number)
    talk.sleep(5)
    for uid in ("off", "on"):
        one.endpoint(uid)
    talk.sleep(2)
    for uid in ("off", "on"):
        talk.ask("POST", f"{one.path}/endpoint/{uid}/replay-missing", {**SINCE, "rate": 1}, status=202)
    talk.sleep(10, exactly=True)
    talk.ask("PATCH", f"{one.path}/endpoint/off", {"disabled": True})
    talk.sleep(5)
    before = len(one.came["off"])
    talk.sleep(3 * MINUTE + talk.put_off_s)
    talk.came("nothing more", before, len(one.came["off"]))
    talk.came("all", [*range(20)], sorted(one.numbers("on")))
    one.over()


def _erased(talk: Talk) -> None:
    """Erased content is neither shown nor sent any more; what is behind it with its ordering key goes on, and so does
    all that others have and that is posted afterwards.
    """
    one = Customer(talk, "erased")
    other = Customer(talk, "kept", beside=one)
    ids = {}
    for each in (one, other):
        each.endpoint("ill")
        each.says["ill"] = (500, b"")
        ids[each] = [each.post(number, orderingKey="k") for number in (1, 2)] + [each.post(3)]
    talk.sleep(30 + talk.put_off_s)
    for each in (one, other):
        talk.came(f"tried twice, {each.path}", [1, 1, 3, 3], sorted(each.numbers("ill")))
    talk.ask("DELETE", f"{one.path}/msg/{ids[one][0]}/content", status=204)
    talk.sleep(MINUTE + LATE_S + talk.put_off_s + 3 * talk.gathered_s)
    talk.came("the next of its key", [1, 1, 2, 2, 3, 3], sorted(one.numbers("ill")))
    task = talk.ask("POST", f"{one.path}/msg/expunge-all-contents", status=202)["id"]
    talk.sleep(MINUTE + talk.put_off_s)
    talk.ask("GET", f"/background-task/{task}", shows={"status": "finished"})
    for each, gone in ((one, True), (other, False)):
        payloads = [talk.ask("GET", f"{each.path}/msg/{message_id}")["payload"] for message_id in ids[each]]
        talk.is_so("shown", 3 * [{"expired": True}] if gone else [{"n": number} for number in (1, 2, 3)], payloads)
    before = len(one.came["ill"])
    one.says["ill"] = (200, b"")
    later = one.post(4, orderingKey="k")
    talk.sleep((SECOND_S + THIRD_S) * 1.2 + 3 * LATE_S + 2 * talk.gathered_s + talk.put_off_s)
    talk.came("only what came afterwards", [4], one.numbers("ill")[before:])
    talk.is_so("which has arrived", (0, None), one.state(later)["ill"])
    talk.came("the others' go on", {1: 4, 3: 4}, {number: other.numbers("ill").count(number) for number in (1, 3)})
    talk.came("one after the other", 0, other.numbers("ill").count(2))
    other.over()
    one.over()


def _counted(talk: Talk) -> None:
    """Messages by application and by event type: those from a time on and before another, of the applications that are
    named, or of all, of which the one for the hub's own events is none.
    """
    _heard(talk, "counted", "endpoint.created")
    one = Customer(talk, "counted")
    other = Customer(talk, "counted-too", beside=one)
    one.endpoint("one")
    times: list[str] = []
    for each, kind in ((one, KIND), (other, OTHER), (one, OTHER), (one, KIND), (other, KIND)):
        times.append(talk.ask("GET", f"{each.path}/msg/{each.post(len(times), kind)}")["timestamp"])
        talk.sleep(2, exactly=True)
    ends = talk.ask("GET", f"{one.path}/msg/{one.post(9)}")["timestamp"]
    talk.sleep(5)
    mine, theirs = (talk.ask("GET", each.path)["id"] for each in (one, other))
    whole = {"since": times[0], "until": ends}
    for more, expected in (
        ({"appIds": ["counted", theirs]}, {mine: 3, theirs: 2}),
        ({"appIds": ["counted-too"]}, {theirs: 2}),
        ({}, {mine: 3, theirs: 2}),
        ({"since": times[1]}, {mine: 2, theirs: 2}),
        ({"since": times[1], "until": times[4]}, {mine: 2, theirs: 1}),
    ):
        task = talk.ask("POST", "/stats/usage/app", {**whole, **more}, status=202)["id"]
        talk.sleep(MINUTE + talk.put_off_s)
        _is_counted(talk, task, expected)
    task = talk.ask("PUT", "/stats/usage/event-types", status=202)["id"]
    talk.sleep(MINUTE + talk.put_off_s)
    _is_counted(talk, task, {KIND: 4, OTHER: 2})
    talk.ask("DELETE", "/operational-webhook/endpoint/counted", status=204)
    other.over()
    one.over()


def _is_counted(talk: Talk, task: str, expected: Mapping[str, int]) -> None:
    data = talk.ask("GET", f"/background-task/{task}", shows={"status": "finished"})["data"]
    [counts] = [each for each in data.values() if isinstance(each, dict)]
    talk.is_so("counted", lambda found: found == expected, counts)


__all__ = ["webhooks"]
