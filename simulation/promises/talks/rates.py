"""How fast endpoints get what is sent to them: by their own rate or their application's, as it is changed, by retries
and tries by hand; and slowly, where they answer slowly.

Source: docs/flow.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.talk import Came, Talk

KIND = "rates.made"
APP = "/app/rates"
RATE = 4
MANY = 40
CHANGED_S = 2
"""A change of a rate is in force after so long."""

SOON_S = 10
"""What no rate holds up has come after so long, and what a rate does waits in a backlog from then on at the latest."""

LONG_S = 8
AT_FIRST, MOST = 10, 50
"""Requests that an endpoint which answers late gets at a time: at first, and while no other one is slow."""

LANES = 3
"""First attempts, retries and the slow queue: each of them may have as many, until all know that it is slow."""


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_each, _changed, _tried, _slowly)


def begun(talk: Talk) -> None:
    """An application."""
    talk.ask("POST", "/event-type", {"name": KIND, "description": "d"}, status=201)
    talk.ask("POST", "/app", {"name": "Rates", "uid": "rates"}, status=201)


def over(talk: Talk) -> None:
    """Without it."""
    talk.ask("DELETE", APP, status=204)
    talk.ask("DELETE", f"/event-type/{KIND}?expunge=true", status=204)


def _endpoint(talk: Talk, name: str, says: Callable[[Came], Any] = lambda _: (200, b""), **more: Any) -> Sequence[Came]:
    """An endpoint of a name, and what comes to it."""
    came = talk.listen(f"rates-{name}.example", says)
    fields = {"url": f"https://rates-{name}.example/in", "uid": name, "channels": [name], **more}
    talk.ask("POST", f"{APP}/endpoint", fields, status=201, shows={"throttleRate": more.get("throttleRate")})
    talk.ask("GET", f"{APP}/endpoint/{name}", shows={"version": 1})
    return came


def _post(talk: Talk, count: int, *channels: str) -> list[str]:
    body = {"eventType": KIND, "payload": {}, "channels": [*channels]}
    return [str(talk.ask("POST", f"{APP}/msg", body, status=202)["id"]) for _ in range(count)]


def _most(came: Sequence[Came], seconds: float) -> int:
    """The most requests within any span of so many seconds."""
    times = sorted(each.at for each in came)
    return max((sum(0 <= other - at < seconds * SECOND for other in times) for at in times), default=0)


def _lasted(came: Sequence[Came]) -> float:
    """Seconds from the first request to the last one."""
    times = sorted(each.at for each in came)
    return (times[-1] - times[0]) / SECOND if times else 0.0


def _at(talk: Talk, rate: float) -> Callable[[float], bool]:
    """How long it takes to send as many at a rate."""
    least, late = (MANY - 1) / (1.02 * rate) - 1, SOON_S + talk.gathered_s + talk.put_off_s
    return lambda lasted: least <= lasted <= (MANY - 1) / (0.95 * rate) + late


def _each(talk: Talk) -> None:
    """An application's rate is that of each of its endpoints that have none; another one's messages do not wait."""
    begun(talk)
    talk.ask("PATCH", APP, {"throttleRate": RATE}, shows={"throttleRate": RATE})
    came = {name: _endpoint(talk, name) for name in ("one", "two")}
    came["own"] = _endpoint(talk, "own", throttleRate=2 * RATE)
    talk.sleep(CHANGED_S, exactly=True)
    _post(talk, MANY, *came)
    talk.sleep(MANY / RATE + 2 * SOON_S + talk.put_off_s)
    for name, rate in (("one", RATE), ("two", RATE), ("own", 2 * RATE)):
        talk.came(f"all of {name}", MANY, len({each.headers["webhook-id"] for each in came[name]}))
        talk.came(f"once, to {name}", MANY, len(came[name]))
        # Half a second may be made up for
        talk.came(f"no more of {name}", lambda each, rate=rate: each <= 1.5 * rate + 1, _most(came[name], 1))
        talk.came(f"as fast as its rate, {name}", _at(talk, rate), _lasted(came[name]))
    gaps = [(after.at - before.at) / SECOND for before, after in pairwise(came["one"])]
    talk.came("evenly", True, sum(each < 0.5 / RATE for each in gaps) <= RATE)
    talk.ask("PATCH", APP, {"throttleRate": None})
    over(talk)


def _changed(talk: Talk) -> None:
    """A rate that is changed is another one soon, for what waits, too; one that is removed is none."""
    begun(talk)
    came = {name: _endpoint(talk, name, throttleRate=1) for name in ("faster", "free", "still")}
    free = _endpoint(talk, "beside")
    talk.sleep(CHANGED_S, exactly=True)
    _post(talk, MANY, *came, "beside")
    talk.sleep(SOON_S + talk.put_off_s)
    talk.came("who has no rate has all", MANY, len(free))
    for name, each in came.items():
        talk.came(f"{name}, slowly", lambda each: 2 <= each <= 3 * SOON_S + 2 * talk.put_off_s, len(each))
    talk.ask("PATCH", f"{APP}/endpoint/faster", {"throttleRate": 2 * RATE})
    talk.ask("PATCH", f"{APP}/endpoint/free", {"throttleRate": None})
    talk.sleep(CHANGED_S + SOON_S)
    talk.came("without a rate", MANY, len(came["free"]))
    talk.came("faster", MANY, len(came["faster"]))
    least = MANY - 2 * SOON_S
    talk.came("as it was", lambda each: each < MANY if not talk.put_off_s else each <= MANY, len(came["still"]))
    talk.sleep(least + SOON_S)
    talk.came("all of it", MANY, len(came["still"]))
    talk.came("never faster", lambda each: each <= SOON_S + 2, _most(came["still"], SOON_S))
    over(talk)


def _tried(talk: Talk) -> None:
    """Retries and tries by hand are counted, too."""
    begun(talk)
    says = {"status": 500}
    came = _endpoint(talk, "tried", lambda _: (says["status"], b""), throttleRate=1)
    ids = _post(talk, 8, "tried")
    # The second try comes five seconds after the first
    talk.sleep(2 * len(ids) + SOON_S + 6 + 2 * talk.gathered_s + talk.put_off_s)
    talk.came("two tries each", 2 * len(ids), len(came))
    talk.came("one a second", lambda each: each <= 5 + 1 + 1, _most(came, 5))
    says["status"] = 200
    before = len(came)
    for each in ids:
        talk.ask("POST", f"{APP}/msg/{each}/endpoint/tried/resend", {}, status=202)
    talk.sleep(len(ids) + SOON_S + talk.put_off_s)
    again = came[before:]
    talk.came("each once more", len(ids), len(again))
    talk.came("by hand, one a second", lambda each: len(ids) - 2.5 <= each, _lasted(again))
    over(talk)


def _slowly(talk: Talk) -> None:
    """Whoever answers late gets ten at a time at first, and some more with each answer; others do not wait for it."""
    begun(talk)
    ends: list[tuple[int, int]] = []

    def late(_: Came) -> tuple[int, bytes]:
        began = talk.now()
        talk.sleep(LONG_S, exactly=True)
        ends.append((began, talk.now()))
        return 200, b""

    came, prompt = _endpoint(talk, "slow", late), _endpoint(talk, "prompt")
    _post(talk, MANY, "slow")
    talk.sleep(2, exactly=True)
    at = talk.now()
    _post(talk, 5, "prompt")
    talk.sleep(SOON_S + talk.put_off_s)
    talk.came("others do not wait", 5, len(prompt))
    talk.came("in time", True, all(each.at - at <= (SOON_S + talk.put_off_s) * SECOND for each in prompt))
    talk.sleep(MANY * LONG_S / AT_FIRST + 2 * SOON_S + talk.put_off_s)
    talk.came("all of it", MANY, len({each.headers["webhook-id"] for each in came}))
    talk.came("each once", MANY, len(came))
    # Now it is known to be slow
    before = len(came)
    ends.clear()
    _post(talk, MANY, "slow")
    talk.sleep(MANY * LONG_S / AT_FIRST + 3 * SOON_S + talk.put_off_s)
    talk.came("all of it again", MANY, len(came) - before)
    first = min(each.at for each in came[before:])
    early = sum(each.at - first < (LONG_S - 1) * SECOND for each in came[before:])
    talk.came("at first", lambda each: 1 <= each <= LANES * AT_FIRST, early)
    most = max(sum(began <= at < ended for began, ended in ends) for at, _ in ends)
    talk.came("at a time", lambda each: AT_FIRST // 2 <= each <= MOST, most)
    over(talk)


__all__ = ["webhooks"]
