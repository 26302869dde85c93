"""Alerts of a project: what each watches, and in which time; what it says; and what its receiver gets that is down.

Source: docs/ironmq.md ("Alerts of a project").
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.push_queues import ILL, MINUTE, OK, created, listening, posted
from simulation.promises.talks.talk import Came, Said, Talk

A_DAY_S = 86_400
LONG_S = 7_200
"""So long nothing is tried again that has failed."""


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(_scopes, _window, _failed, _receiver)


class _Alerts:
    """Alerts that are set, each with a receiver of its own, and what these are told.

    Args:
        about: What the hosts of the receivers begin with.
    """

    def __init__(self, talk: Talk, about: str) -> None:
        self._talk, self._about = talk, about
        self.heard: dict[str, Sequence[Came]] = {}
        self.paths: dict[str, str] = {}
        # While anything is due later, each minute is looked at
        self._later = created(talk, f"{about}-later", f"{about}-later")
        posted(talk, self._later, "0", delay=2 * A_DAY_S)

    def set(self, name: str, **fields: Any) -> None:
        """One of a name that no other one has."""
        host = f"{self._about}-told-{name}.example"
        self.heard[name] = self._talk.listen(host, lambda _: OK)
        alert = {"name": name, "url": f"https://{host}/in", **fields}
        answer = self._talk.ask("POST", "/alerts", {"alert": alert}, status=201, shows={"alert": {"state": "quiet"}})
        self.paths[name] = f"/alerts/{answer['alert']['id']}"

    def said(self) -> dict[str, list[Any]]:
        """What each receiver got, in order."""
        return {name: [json.loads(each.body) for each in heard] for name, heard in self.heard.items()}

    def states(self) -> dict[str, list[str]]:
        """What the alerts have become, one after the other."""
        return {name: [each["state"] for each in several] for name, several in self.said().items()}

    def over(self) -> None:
        """They are removed."""
        for path in (*self.paths.values(), self._later):
            self._talk.ask("DELETE", path)


def _scopes(talk: Talk) -> None:
    """An alert of a project counts what all its queues give up, one of a queue what its subscribers do, one of a
    subscriber that of its queue alone; it fires at its threshold, and not below.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    listening(talk, {"scope-ill": ILL, "scope-well": OK})
    first = created(talk, "scope-first", "scope-ill", "scope-well", retries=0)
    second = created(talk, "scope-second", "scope-ill", retries=0)
    # Until all that was before is counted
    talk.sleep(4 * MINUTE)
    alerts = _Alerts(talk, "scope")
    ill, well = ({"queue": "scope-first", "subscriber": f"scope-{name}"} for name in ("ill", "well"))
    watched: Mapping[str, tuple[dict[str, str], int]] = {
        "project": ({}, 3),
        "first": ({"queue": "scope-first"}, 2),
        "second": ({"queue": "scope-second"}, 1),
        "ill": (ill, 2),
    }
    for name, (of, count) in watched.items():
        alerts.set(name, measure="given_up", threshold=count, minutes=60, **of)
        alerts.set(f"{name}-more", measure="given_up", threshold=count + 1, minutes=60, **of)
    alerts.set("well", measure="given_up", threshold=1, minutes=60, **well)
    alerts.set("rate", measure="failure_rate", threshold=50, minutes=60, queue="scope-first")
    posted(talk, first, "a", "b")
    posted(talk, second, "c")
    # Half of four attempts, which say nothing
    talk.sleep(6 * MINUTE)
    fires = {name: ["firing"] for name in watched}
    others: dict[str, list[str]] = {key: [] for key in (*(f"{name}-more" for name in watched), "well", "rate")}
    talk.came("which fire", {**fires, **others}, alerts.states())
    shown = {each["name"]: each for each in talk.ask("GET", "/alerts")["alerts"]}
    for name, (of, count) in watched.items():
        [said] = alerts.said()[name]
        alert = {"name": name, "measure": "given_up", "threshold": count, "minutes": 60, "queue": "", "subscriber": ""}
        talk.came(f"what {name} says", {"alert": alert | of, "value": count, "project": talk.project}, said)
        talk.came("in words, with a link", (True, True), (name in said["text"], said["link"].startswith("https://")))
        at = (talk.moment(said["at"]) - talk.now()) / SECOND
        talk.came("when", lambda each: -6 * MINUTE <= each <= 0, at)
        talk.is_so("as it is shown", {"state": "firing", "value": count, "since": said["at"]}, shown[name])
        quiet = {"state": "quiet", "value": count, "since": None}
        talk.is_so("and the other one", quiet, shown[f"{name}-more"])
    # Of five, four have failed
    posted(talk, first, "d", "e", "f")
    talk.sleep(5 * MINUTE)
    talk.came("then those, too", {name: ["firing"] for name in ("ill-more", "first-more", "rate")}, alerts.states())
    talk.came("in percent", [50], [each["value"] for each in alerts.said()["rate"]])
    alerts.over()
    for path in (first, second):
        talk.ask("DELETE", path)


def _window(talk: Talk) -> None:
    """It counts what was given up within its minutes, is resolved when it has been below for ten, and fires again."""
    if talk.gathered_s or talk.put_off_s:
        return
    listening(talk, {"window-ill": ILL})
    queue = created(talk, "window", "window-ill", retries=0)
    posted(talk, queue, "before")
    talk.sleep(3 * MINUTE)
    alerts = _Alerts(talk, "window")
    for minutes in (5, 60):
        alerts.set(f"{minutes}", measure="given_up", threshold=1, minutes=minutes, queue="window")
    talk.sleep(4 * MINUTE)
    talk.came("not what was before", {"5": [], "60": []}, alerts.states())
    posted(talk, queue, "a")
    talk.sleep(4 * MINUTE)
    talk.came("both fire", {"5": ["firing"], "60": ["firing"]}, alerts.states())
    talk.sleep(10 * MINUTE)
    talk.came("below for less than ten minutes", {"5": ["firing"], "60": ["firing"]}, alerts.states())
    talk.sleep(6 * MINUTE)
    talk.came("one is resolved", {"5": ["firing", "resolved"], "60": ["firing"]}, alerts.states())
    talk.came("at what it was then", 0, alerts.said()["5"][-1]["value"])
    posted(talk, queue, "b")
    talk.sleep(4 * MINUTE)
    talk.came("and fires again", {"5": ["firing", "resolved", "firing"], "60": ["firing"]}, alerts.states())
    alerts.over()
    talk.ask("DELETE", queue)


def _failed(talk: Talk) -> None:
    """What has failed and is tried again waits, since it was accepted; what was given up or delivered does not, nor
    what was cleared.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    fails = {"on": True}

    def says(_: Came) -> Said:
        return ILL if fails["on"] else OK

    talk.listen("failed-some.example", says)
    alerts = _Alerts(talk, "failed")
    queues = {
        name: created(talk, f"failed-{name}", "failed-some", retries=retries, retries_delay=delay)
        for name, retries, delay in (("waits", 9, 400), ("cleared", 9, LONG_S), ("ended", 0, LONG_S))
    }
    for name, path in queues.items():
        alerts.set(name, measure="oldest_waiting", threshold=300, queue=f"failed-{name}")
        posted(talk, path, "x")
    talk.sleep(4 * MINUTE)
    talk.came("not yet", {name: [] for name in queues}, alerts.states())
    talk.ask("DELETE", f"{queues['cleared']}/messages", {}, shows={"msg": "Cleared"})
    posted(talk, queues["cleared"], "y")
    talk.sleep(150)
    talk.came("only what waits", {"waits": ["firing"], "cleared": [], "ended": []}, alerts.states())
    talk.came("for how long", [lambda each: 300 <= each <= 390], [each["value"] for each in alerts.said()["waits"]])
    fails["on"] = False
    talk.sleep(4 * MINUTE)
    talk.came("and what came since", {"cleared": ["firing"], "ended": []}, alerts.states())
    talk.sleep(14 * MINUTE)
    expected = {"waits": ["firing", "resolved"], "cleared": ["firing"], "ended": []}
    talk.came("over once it is delivered", expected, alerts.states())
    talk.ask("GET", queues["waits"], shows={"queue": {"size": 0, "total_messages": 1}})
    alerts.over()
    for path in queues.values():
        talk.ask("DELETE", path)


def _receiver(talk: Talk) -> None:
    """A receiver that is down for ten minutes gets what it missed, the same; one whose alert was removed gets nothing
    more.
    """
    if talk.gathered_s or talk.put_off_s:
        return
    until = talk.now() + 10 * MINUTE * SECOND
    names = ("receiver-down", "receiver-gone")
    came = {name: talk.listen(f"{name}.example", lambda each: ILL if each.at < until else OK) for name in names}
    paths = []
    for name in names:
        alert = {"name": name, "measure": "given_up", "threshold": 5, "url": f"https://{name}.example/in"}
        paths.append(f"/alerts/{talk.ask('POST', '/alerts', {'alert': alert}, status=201)['alert']['id']}")
        talk.ask("POST", f"{paths[-1]}/test", {})
    talk.sleep(30)
    before = len(came["receiver-gone"])
    talk.ask("DELETE", paths[1])
    talk.sleep(10 * MINUTE, exactly=True)
    tries = len(came["receiver-down"])
    talk.came("some in that time", lambda each: 2 <= each <= 20, tries)
    talk.sleep(40 * MINUTE)
    talk.came("then once", tries + 1, len(came["receiver-down"]))
    talk.came("always the same", 1, len({each.body for each in came["receiver-down"]}))
    talk.came("no more to the other", before, len(came["receiver-gone"]))
    of = {"state": "test", "alert": {"name": names[0], "threshold": 5}}
    talk.came("what it missed", of, json.loads(came["receiver-down"][-1].body))
    talk.ask("DELETE", paths[0])


__all__ = ["through"]
