"""Who is told that a client certificate ends: when, how often, about what, and of whose.

Sources: docs/gates.md ("Client certificates", "Subscribers of queues and services of stores"), docs/webhooks.md
("Operational webhooks").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from simulation.promises.talks.certificates import identity
from simulation.promises.talks.customers import DAY, LATE_S, MINUTE, Customer
from simulation.promises.talks.push_queues import created, posted, subscriber
from simulation.promises.talks.services import done, mapped
from simulation.promises.talks.talk import Came, Talk

SOON_S = 5 * MINUTE
"""So long after it was set, the next warning of a certificate is due."""

DAYS = (30, 7, 1, 0)
"""So many days before its end, its owner is told of it."""


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_of_endpoints, _of_queues, _of_services)


@contextmanager
def _watched(talk: Talk) -> Iterator[Talk]:
    """The same client, of IronMQ, while something is due later, as then each minute is looked at."""
    queues = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    later = created(queues, "warned-later", subscriber("warned-later"))
    posted(queues, later, "0", delay=3_600)
    yield queues
    queues.ask("DELETE", later)


def _ending(talk: Talk, days: int, number: int) -> tuple[str, str]:
    """A certificate that is told of soon, as so many days will be left by then; and when it ends."""
    ends_s = talk.epoch_s() + days * DAY + SOON_S
    return identity(number, ends_s), datetime.fromtimestamp(ends_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _of_endpoints(talk: Talk) -> None:
    """30, 7 and 1 days before its end, at its end, and at once if it is near: each endpoint's own, once; nothing more
    of one that was replaced or removed, or whose endpoint was; and nothing of operational endpoints.
    """
    one = Customer(talk, "warned")
    hook = {"url": "https://warned-hook.example/", "uid": "hook", "eventTypes": ["endpoint.certificate_ending"]}
    heard = talk.listen("warned-hook.example", lambda _: (200, b""))
    talk.ask("POST", "/operational-webhook/endpoint", hook, status=201)
    with _watched(talk):
        ends: dict[str, str] = {}
        for number, days in enumerate(DAYS, 20):
            one.endpoint(f"days-{days}")
            pem, ends[f"days-{days}"] = _ending(talk, days, number)
            for _ in range(2):
                talk.ask("PUT", f"{one.path}/endpoint/days-{days}/mtls", {"identity": pem}, status=204)
        for number, uid in enumerate(("replaced", "removed", "deleted", "beside"), 30):
            one.endpoint(uid)
            pem, ends[uid] = _ending(talk, 1, 30 if uid == "beside" else number)
            talk.ask("PUT", f"{one.path}/endpoint/{uid}/mtls", {"identity": pem}, status=204)
        pem, _ = _ending(talk, 1, 40)
        talk.ask("PUT", "/operational-webhook/endpoint/hook/mtls", {"identity": pem}, status=204)
        ids = {uid: talk.ask("GET", f"{one.path}/endpoint/{uid}")["id"] for uid in ends}
        talk.sleep(2 * LATE_S + talk.put_off_s, exactly=True)
        near = [*ids.values()][1:]
        talk.came("at once, if it is near", sorted(near), sorted(each["endpointId"] for each in _said_in(heard)))
        talk.ask("PUT", f"{one.path}/endpoint/replaced/mtls", {"identity": identity(50)}, status=204)
        talk.ask("DELETE", f"{one.path}/endpoint/removed/mtls", status=204)
        talk.ask("DELETE", f"{one.path}/endpoint/deleted", status=204)
        before = len(heard)
        talk.sleep(SOON_S + LATE_S + talk.put_off_s)
    due = {**{f"days-{days}": days for days in DAYS}, "beside": 1}
    found = {each["endpointUid"]: each for each in _said_in(heard[before:])}
    talk.came("when it is due", (sorted(due), len(due)), (sorted(found), len(heard) - before))
    for uid, days in due.items():
        about = {"appUid": "warned", "endpointId": ids[uid], "daysLeft": days}
        about |= {"endsAt": lambda each, uid=uid: each.startswith(ends[uid]), "subject": str}
        talk.came(f"about {uid}", about, found[uid])
    talk.came("its subject", "certified 20", found["days-30"]["subject"])
    talk.sleep(20 * MINUTE, exactly=True)
    talk.came("and nothing more", len(due), len(heard) - before)
    talk.ask("DELETE", "/operational-webhook/endpoint/hook", status=204)
    one.over()


def _said_in(heard: Sequence[Came]) -> list[Mapping[str, Any]]:
    return [json.loads(each.body)["data"] for each in heard]


def _of_queues(talk: Talk) -> None:
    """The alerts that watch everything, the queue or the subscriber are told, and no others; of a certificate that was
    replaced nothing more is said.
    """
    watches: Mapping[str, Mapping[str, str]] = {
        "all": {},
        "queue": {"queue": "warned"},
        "one": {"queue": "warned", "subscriber": "week"},
        "named": {"subscriber": "week"},
        "other": {"queue": "warned-not"},
        "beside": {"queue": "warned", "subscriber": "plain"},
    }
    heard = {name: talk.listen(f"warned-{name}.example", lambda _: (200, b"")) for name in watches}
    with _watched(talk) as queues:
        certificates = {name: _ending(talk, days, 60 + days) for name, days in (("week", 7), ("day", 1), ("old", 1))}
        subscribers = [subscriber(name, mtls={"identity": pem}) for name, (pem, _) in certificates.items()]
        queue = created(queues, "warned", *subscribers, "plain")
        other = created(queues, "warned-not", "plain")
        alerts = []
        for name, of in watches.items():
            alert = {"name": name, "measure": "given_up", "threshold": 9, "minutes": 5}
            fields = {**alert, "url": f"https://warned-{name}.example/in", **of}
            shown = queues.ask("POST", "/alerts", {"alert": fields}, status=201)
            alerts.append(f"/alerts/{shown['alert']['id']}")
        talk.sleep(2 * LATE_S + talk.put_off_s, exactly=True)
        queues.ask(
            "POST", f"{queue}/subscribers", {"subscribers": [subscriber("old", mtls={"identity": identity(70)})]}
        )
        before = {name: len(each) for name, each in heard.items()}
        talk.sleep(SOON_S + LATE_S + talk.put_off_s)
    found = {name: [json.loads(each.body) for each in came[before[name] :]] for name, came in heard.items()}
    both, week = [("day", 1), ("week", 7)], [("week", 7)]
    expected = {"all": both, "queue": both, "one": week, "named": week, "other": [], "beside": []}
    notified = {name: sorted((each["subscriber"], each["value"]) for each in each) for name, each in found.items()}
    talk.came("who is told", expected, notified)
    certificate = {"subject": "certified 67", "ends_at": lambda each: each.startswith(certificates["week"][1])}
    shown = {"state": "certificate_ending", "queue": "warned", "certificate": certificate, "text": str}
    talk.came("what is said", [{**shown, "alert": {"name": "one"}, "project": talk.project}], found["one"])
    for path in (*alerts, queue, other):
        queues.ask("DELETE", path)


def _of_services(talk: Talk) -> None:
    """The store has a notification, and services that want it are sent its message; of each warning once."""
    store = talk.at(f"/api/stores/{talk.project}").with_headers(authorization="", x_augury_token=talk.token)
    sent = talk.listen("warned-wants.example", done)
    talk.listen("warned-service.example", done)
    with _watched(talk):
        pem, ends = _ending(talk, 7, 80)
        service = mapped(store, "warned-service", ["warned:none"], mtls={"identity": pem})
        wants = mapped(store, "warned-wants", ["notification:warn"])
        talk.sleep(2 * LATE_S + talk.put_off_s, exactly=True)
        before = len(sent)
        talk.sleep(SOON_S + LATE_S + talk.put_off_s)
    notified = [each for each in store.ask("GET", "/notifications.json") if each["origin"] == "warned-service"]
    said = {"level": "warn", "subject": lambda each: "certificate" in each and "warned-service" in each}
    said |= {"description": lambda each: "certified 80" in each and ends in each}
    talk.is_so("at once, and when it is due", [said, said], notified)
    talk.is_so("of two days", 2, len({each["subject"] for each in notified}))
    [came] = sent[before:]
    message = json.loads(came.body)
    about = {each["message_id"]: each["subject"] for each in notified}
    warning = {"message": "notification:warn", "payload": {"subject": lambda each: each in about.values()}}
    talk.came("its message", warning, message)
    talk.is_so("which of them", 1, sum("7" in each["subject"] for each in notified))
    for path in (service, wants):
        store.ask("DELETE", path)


__all__ = ["webhooks"]
