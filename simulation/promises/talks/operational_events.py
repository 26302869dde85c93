"""What operational webhooks tell, about what, how often, and when; what they say nothing of; and when tokens end.

Sources: docs/webhooks.md ("Operational webhooks", "Portal").
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.customers import HOUR, LATE_S, MINUTE, Customer
from simulation.promises.talks.talk import Came, Talk

HOURS = 25
"""More than a day: what lasts a week, or for ever, is still there."""

MOST_A_MINUTE = 20
FIVE_DAYS = 120 * HOUR
RATE = 7
LONG_TURNS = 5
"""What takes a week is asked in one of so many runs."""
ENDED = (500, b"", {"webhook-delivery": "abort-message"})


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_attempts, _disabled, _named, _tasks, _many, _portals_end, _failing)


def _hook(talk: Talk, uid: str, **more: Any) -> Sequence[Came]:
    """An operational endpoint; what it is told."""
    host = f"told-{uid}.example"
    came = talk.listen(host, lambda _: (200, b""))
    fields = {"url": f"https://{host}/", "uid": uid, **more}
    talk.ask("POST", "/operational-webhook/endpoint", fields, status=201)
    return came


def _unhook(talk: Talk, *uids: str) -> None:
    for uid in uids:
        talk.ask("DELETE", f"/operational-webhook/endpoint/{uid}", status=204)


def _events(came: Sequence[Came]) -> list[tuple[str, Any]]:
    said = [json.loads(each.body) for each in came]
    return [(each["type"], each["data"]) for each in said]


def _attempts(talk: Talk) -> None:
    """After the fourth failure, after the last, and when it arrives after all; once each, of each endpoint by itself;
    nothing of less, of what is asked for by hand, or of operational endpoints.
    """
    heard = _hook(talk, "all", eventTypes=[f"message.attempt.{each}" for each in ("failing", "exhausted", "recovered")])
    some = _hook(talk, "some", eventTypes=["message.attempt.exhausted"])
    talk.listen("told-down.example", lambda _: (500, b""))
    down = {"url": "https://told-down.example/", "uid": "down"}
    talk.ask("POST", "/operational-webhook/endpoint", down, status=201)
    one = Customer(talk, "told")
    for uid in ("mends", "briefly", "ends", "well"):
        one.endpoint(uid)
    one.says["mends"] = lambda _: (500, b"") if len(one.came["mends"]) < 5 else (200, b"")
    one.says["briefly"] = lambda _: (500, b"") if len(one.came["briefly"]) < 4 else (200, b"")
    one.says["ends"] = ENDED
    message_id = one.post(1)
    talk.sleep((5 + 300 + 1_800) * 1.2 + 3 * LATE_S + 4 * talk.gathered_s)
    about = {"appUid": "told", "msgId": message_id}
    failed = {"lastAttempt": {"responseStatusCode": 500, "id": str, "timestamp": str}}

    def of(name: str, uid: str, **more: Any) -> tuple[str, Any]:
        shown = talk.ask("GET", f"{one.path}/endpoint/{uid}")["id"]
        return f"message.attempt.{name}", {**about, "endpointId": shown, **more}

    expected = [of("exhausted", "ends", **failed), of("failing", "mends", **failed)]
    talk.came("after the fourth failure", expected, sorted(_events(heard), key=lambda each: each[0]))
    talk.sleep(7_200 * 1.2 + LATE_S + 2 * talk.gathered_s)
    rest = [each for each in _events(heard) if each[0].endswith("recovered")]
    talk.came("after all", [of("recovered", "mends")], rest)
    kinds = Counter(name.rpartition(".")[2] for name, _ in _events(heard))
    talk.came("once each", {"exhausted": 1, "failing": 1, "recovered": 1}, kinds)
    talk.came("only what it wants", ["message.attempt.exhausted"], [name for name, _ in _events(some)])
    talk.came(
        "as often as it was tried", [5, 4, 1, 1], [len(one.came[uid]) for uid in ("mends", "briefly", "ends", "well")]
    )
    _unhook(talk, "all", "some", "down")
    one.over()


def _disabled(talk: Talk) -> None:
    """An endpoint that disables itself is told of once, with why; so is each that its owner changes, by what he did."""
    names = [f"endpoint.{each}" for each in ("created", "updated", "deleted", "enabled", "disabled")]
    heard = _hook(talk, "changes", eventTypes=names)
    one = Customer(talk, "changed")
    for uid in ("gone", "says", "owner"):
        one.endpoint(uid)
    one.says |= {"gone": (410, b""), "says": (200, b"", {"webhook-delivery": "disable"})}
    ids = {uid: talk.ask("GET", f"{one.path}/endpoint/{uid}")["id"] for uid in one.came}
    one.post(1)
    talk.sleep(20 + talk.put_off_s)
    talk.ask("PATCH", f"{one.path}/endpoint/owner", {"disabled": True})
    talk.sleep(5)
    talk.ask("PATCH", f"{one.path}/endpoint/gone", {"disabled": False})
    talk.sleep(5)
    # An operational endpoint that is gone is told to nobody
    talk.listen("told-gone.example", lambda _: (410, b""))
    gone = {"url": "https://told-gone.example/", "uid": "gone"}
    talk.ask("POST", "/operational-webhook/endpoint", gone, status=201)
    talk.sleep(2)
    talk.ask("DELETE", f"{one.path}/endpoint/says", status=204)
    talk.sleep(20 + talk.put_off_s)
    talk.ask("GET", "/operational-webhook/endpoint/gone", shows={"disabled": True})
    said = _events(heard)
    for uid, endpoint_id in ids.items():
        kinds = Counter(name.partition(".")[2] for name, data in said if data["endpointId"] == endpoint_id)
        expected = {
            "gone": {"created": 1, "disabled": 1, "enabled": 1},
            "says": {"created": 1, "disabled": 1, "deleted": 1},
            "owner": {"created": 1, "disabled": 1},
        }[uid]
        del kinds["updated"]
        talk.came(f"what is told of {uid}", lambda each, expected=expected: each == expected, dict(kinds))
    triggers = {data["endpointUid"]: data.get("trigger") for name, data in said if name == "endpoint.disabled"}
    talk.came("why", {"gone": str, "says": str}, triggers)
    talk.came("of no others", {*ids.values()}, {data["endpointId"] for _, data in said})
    _unhook(talk, "changes", "gone")
    one.over()


def _named(talk: Talk) -> None:
    """Each event has both names of the application and of the endpoint as they are after the change, null for a uid
    that there is not. A change of the whole is told of like one of a part; what is refused and headers are not.
    """
    names = [f"endpoint.{each}" for each in ("created", "updated", "deleted", "enabled", "disabled")]
    heard = _hook(talk, "names", eventTypes=names)
    app = talk.ask("POST", "/app", {"name": "Named"}, status=201)["id"]
    url = {"url": "https://told-named.example/", "throttleRate": RATE}
    endpoint = talk.ask("POST", f"/app/{app}/endpoint", url, status=201)["id"]
    path = f"/app/{app}/endpoint/{endpoint}"
    changes: tuple[tuple[str, str, Any, int, Sequence[str]], ...] = (
        ("PUT", path, {**url, "uid": "one"}, 200, ["updated"]),
        ("PUT", path, {**url, "uid": "one", "disabled": True}, 200, ["disabled", "updated"]),
        ("PUT", path, {**url, "uid": "one", "disabled": True}, 200, ["updated"]),
        ("PATCH", path, {"throttleRate": 0}, 422, []),
        ("PUT", f"{path}/headers", {"headers": {"X-A": "1"}}, 204, []),
        ("PATCH", f"/app/{app}", {"uid": "named"}, 200, []),
        ("PUT", path, {**url, "uid": "one"}, 200, ["enabled", "updated"]),
        ("POST", f"{path}/secret/rotate", {}, 200, ["updated"]),
        ("PATCH", path, {"uid": None}, 200, ["updated"]),
        ("DELETE", path, None, 204, ["deleted"]),
    )
    expected: list[tuple[str, Any, Any]] = [("created", None, None)]
    app_uid, uid = None, None
    for method, where, body, status, kinds in changes:
        talk.sleep(2, exactly=True)
        talk.ask(method, where, body, status=status)
        app_uid = "named" if where == f"/app/{app}" else app_uid
        uid = body["uid"] if where == path and body and "uid" in body else uid
        expected += [(kind, app_uid, uid) for kind in kinds]
        if method == "PUT" and where == path:
            talk.ask("GET", path, shows={"throttleRate": RATE, "disabled": "disabled" in body})
    talk.sleep(20 + talk.put_off_s)
    events = _events(heard)
    talk.came("about whom", {(app, endpoint)}, {(data["appId"], data["endpointId"]) for _, data in events})
    found = [(name.partition(".")[2], data["appUid"], data["endpointUid"]) for name, data in events]
    talk.came("how many", len(expected), len(found))
    talk.came("by which names", sorted(map(str, expected)), sorted(map(str, found)))
    triggers = [data["trigger"] for name, data in events if name == "endpoint.disabled"]
    talk.came("by whom", ["manual"], triggers)
    _unhook(talk, "names")
    talk.ask("DELETE", f"/app/{app}", status=204)


def _tasks(talk: Talk) -> None:
    """Of each background task its owner is told once, when it has ended, what is shown of it."""
    heard = _hook(talk, "tasks", eventTypes=["background_task.finished"])
    one = Customer(talk, "tasks")
    one.endpoint("one")
    one.says["one"] = ENDED
    began = talk.ask("GET", f"{one.path}/msg/{one.post(1)}")["timestamp"]
    talk.sleep(10 + talk.put_off_s)
    since: dict[str, Any] = {"since": began}
    asked = (
        *((f"{one.path}/endpoint/one/{each}", since) for each in ("recover", "replay-missing", "bulk-replay")),
        (f"{one.path}/endpoint/one/bulk-replay", {**since, "dryRun": True}),
        (f"{one.path}/msg/expunge-all-contents", None),
        ("/stats/usage/app", {**since, "until": "2026-12-01T00:00:00Z"}),
    )
    shown = []
    for path, body in asked:
        task = talk.ask("POST", path, body, status=202)["id"]
        talk.sleep(MINUTE + talk.put_off_s)
        shown.append(talk.ask("GET", f"/background-task/{task}", shows={"status": "finished"}))
    talk.sleep(10 + talk.put_off_s)
    expected = sorted(({"taskId": each["id"], **_said_of(each)} for each in shown), key=_by_task)
    found = sorted((data for _, data in _events(heard)), key=_by_task)
    talk.came("how many", len(asked), len(found))
    talk.came("what is told", lambda each: each == expected, found)
    sent = [each["data"].get("messagesSent", each["data"].get("messagesFound")) for each in shown]
    talk.is_so("what each did", [1, 0, 1, 1, 1, None], sent)
    _unhook(talk, "tasks")
    one.over()


def _said_of(task: Any) -> dict[str, Any]:
    return {name: task[name] for name in ("task", "status", "data")}


def _by_task(data: Any) -> str:
    return str(data["taskId"])


def _many(talk: Talk) -> None:
    """Of a kind at most twenty are told in a minute for the messages of one endpoint; another endpoint has its own."""
    heard = _hook(talk, "many", eventTypes=["message.attempt.exhausted"])
    one = Customer(talk, "many")
    for uid in ("one", "other"):
        one.endpoint(uid, channels=[uid])
        one.says[uid] = ENDED
    talk.sleep(60 - talk.epoch_s() % 60 + 1, exactly=True)
    began = talk.now()
    for number in range(MOST_A_MINUTE + 6):
        one.post(number, channels=["one"])
    one.post(99, channels=["other"])
    talk.sleep(40)
    took = (talk.now() - began) / 1_000_000
    of = {uid: talk.ask("GET", f"{one.path}/endpoint/{uid}")["id"] for uid in one.came}
    counts = Counter(data["endpointId"] for _, data in _events(heard))
    talk.came(f"each was tried, in {took:.0f} s", MOST_A_MINUTE + 6, len(one.came["one"]))
    talk.came("at most twenty", {of["one"]: lambda count: 1 <= count <= MOST_A_MINUTE, of["other"]: 1}, counts)
    ids = [data["msgId"] for _, data in _events(heard)]
    talk.came("none twice", len(ids), len({*ids}))
    talk.sleep(60)
    one.post(100, channels=["one"])
    talk.sleep(20 + talk.put_off_s)
    talk.came("the next minute again", len(ids) + 1, len(heard))
    talk.sleep(150)
    talk.ask("GET", f"{one.path}/endpoint/one/stats", shows={"success": 0, "fail": MOST_A_MINUTE + 7})
    _unhook(talk, "many")
    one.over()


def _failing(talk: Talk) -> None:
    """What accepts nothing is told of at 50, 70 and 90 % of five days, and disabled then; one success in between, and
    the five days begin anew.
    """
    if talk.turn % LONG_TURNS != 1:
        return
    heard = _hook(talk, "failing", eventTypes=["endpoint.failing", "endpoint.disabled"])
    one = Customer(talk, "failing")
    one.endpoint("ill")
    one.endpoint("well")
    _fails_for(talk, one, 62)
    talk.came("half of it", [("endpoint.failing", 50)], _percents(heard))
    one.says["ill"] = (200, b"")
    talk.sleep(3 * HOUR)
    talk.is_so("it is well again", False, talk.ask("GET", f"{one.path}/endpoint/ill").get("disabled", False))
    began = _fails_for(talk, one, 58)
    talk.came("nothing yet", [("endpoint.failing", 50)], _percents(heard))
    _fails_for(talk, one, 65)
    expected = [
        ("endpoint.failing", 50),
        ("endpoint.failing", 70),
        ("endpoint.failing", 90),
        ("endpoint.disabled", None),
    ]
    talk.came("all of it", expected, _percents(heard)[1:])
    endpoint_id = talk.ask("GET", f"{one.path}/endpoint/ill", shows={"disabled": True})["id"]
    whole = FIVE_DAYS * SECOND
    for at, (_, data), percent in zip(
        [each.at for each in heard][1:], _events(heard)[1:], (50, 70, 90, 100), strict=True
    ):
        talk.is_so("whose", {"appUid": "failing", "endpointId": endpoint_id, "endpointUid": "ill"}, data)
        late = (at - began - whole * percent / 100) / SECOND
        talk.came(f"{percent} %", lambda seconds: -MINUTE <= seconds <= 1.5 * HOUR, late)
        if percent < 100:
            talk.is_so("since", lambda since: abs(talk.moment(since) - began) <= 2 * MINUTE * SECOND, data["failSince"])
            ends = talk.moment(data["disabledAt"]) - talk.moment(data["failSince"])
            talk.is_so("five days", whole, round(ends))
    _unhook(talk, "failing")
    one.over()


def _fails_for(talk: Talk, one: Customer, hours: int) -> int:
    """An endpoint fails for so long; when that began, microseconds."""
    one.says["ill"] = (500, b"")
    began = talk.now()
    for number in range(hours):
        if number % 10 == 0:
            one.post(number)
        talk.sleep(HOUR, exactly=True)
    return began


def _percents(heard: Sequence[Came]) -> list[tuple[str, Any]]:
    return [(name, data.get("percent")) for name, data in _events(heard)]


def _portals_end(talk: Talk) -> None:
    """A portal's token and an integration's key open nothing once their application is deleted; one that is made again
    under that uid knows neither.
    """
    talk.ask("POST", "/app", {"name": "Lasting", "uid": "lasting"}, status=201)
    token = talk.ask("POST", "/auth/app-portal-access/lasting", {})["token"]
    integration = talk.ask("POST", "/app/lasting/integration", {"name": "CRM"}, status=201)["id"]
    key = talk.ask("POST", f"/app/lasting/integration/{integration}/key/rotate")["key"]
    portal, service = (talk.with_headers(authorization=f"Bearer {each}") for each in (token, key))
    talk.sleep(HOURS * 3_600, exactly=True)
    for each in (portal, service):
        each.ask("GET", "/app/lasting", shows={"uid": "lasting"})
    talk.ask("GET", "/app/lasting/integration", shows={"data": [{"id": integration}], "done": True})
    talk.ask("DELETE", "/app/lasting", status=204)
    for _ in range(2):
        for each in (key, token):
            refused = talk.with_headers(authorization=f"Bearer {each}").status("GET", "/app/lasting")
            talk.is_so("none of them opens", lambda status: status in {401, 403, 404}, refused)
        talk.ask("POST", "/app?get_if_exists=true", {"name": "Lasting", "uid": "lasting"}, status=201)
        talk.sleep(2)
        talk.ask("DELETE", "/app/lasting", status=204)


__all__ = ["webhooks"]
