"""Those who read instead of being sent: pollers, consumers, polling endpoints; tasks, counts, and consumers that set
themselves up.

Sources: Svix's pollers, background tasks, statistics and autoconfigurations as its clients use them; docs/webhooks.md.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from simulation.promises.talks.talk import Talk

KIND, OTHER = "readers.made", "readers.else"
APP = "/app/readers"
SETTLED_S = 3
"""Messages are read two seconds after they were posted."""


def webhooks(talk: Talk) -> None:
    """All that is read."""
    talk.through(_begun, _pollers, _consumers, _leases, _autoconfigured, _tasks, _counts, _found, _frames, _over)


def _begun(talk: Talk) -> None:
    talk.listen("talk-readers.example", lambda each: (json.loads(each.body).get("says", 200), b""))
    for name in (KIND, OTHER):
        talk.ask("POST", "/event-type", {"name": name, "description": "d"}, status=201)
    talk.ask("POST", "/app", {"name": "Readers", "uid": "readers"}, status=201)


def _over(talk: Talk) -> None:
    talk.ask("DELETE", APP, status=204)
    for name in (KIND, OTHER):
        talk.ask("DELETE", f"/event-type/{name}?expunge=true", status=204)


def _post(talk: Talk, number: int, kind: str = KIND, **more: Any) -> str:
    answer = talk.ask("POST", f"{APP}/msg", {"eventType": kind, "payload": {"n": number}, **more}, status=202)
    talk.sleep(1, exactly=True)
    return str(answer["id"])


def _numbers(page: Any) -> list[int]:
    return [each["payload"]["n"] for each in page["data"]]


def _read(talk: Talk, path: str, expected: Sequence[int], *, done: bool = True) -> str:
    """Read a page; its iterator."""
    page = talk.ask("GET", path, shows={"iterator": str, "done": done})
    talk.is_so(f"what {path[:80]} has", [*expected], _numbers(page))
    return str(page["iterator"])


def _pollers(talk: Talk) -> None:
    """All messages in order, or those of some types, of a channel, of an endpoint, or from a time on."""
    _post(talk, 1)
    _post(talk, 2, OTHER, channels=["a"])
    third = talk.ask("POST", f"{APP}/msg", {"eventType": KIND, "payload": {"n": 3}, "channels": ["a", "b"]}, status=202)
    talk.sleep(1, exactly=True)
    _post(talk, 4, OTHER)
    talk.sleep(SETTLED_S, exactly=True)
    filters = {"eventTypes": [OTHER]}
    talk.ask(
        "POST", f"{APP}/endpoint", {"url": "https://talk-readers.example/", "uid": "filters", **filters}, status=201
    )
    path = f"{APP}/poller/any"
    _read(talk, path, [1, 2, 3, 4])
    for query, expected in (
        (f"event_type={OTHER}", [2, 4]),
        (f"event_type={OTHER},{KIND}", [1, 2, 3, 4]),
        ("channel=a", [2, 3]),
        ("channel=b", [3]),
        (f"channel=a&event_type={KIND}", [3]),
        (f"after={third['timestamp']}", [3, 4]),
    ):
        _read(talk, f"{path}?{query}", expected)
    _read(talk, f"{APP}/poller/filters", [2, 4])
    iterator = ""
    for expected, done in (([1, 2, 3], False), ([4], True), ([], True)):
        iterator = "&iterator=" + _read(talk, f"{path}?limit=3{iterator}", expected, done=done)
    _post(talk, 5)
    _read(talk, f"{path}?limit=3{iterator}", [])
    talk.sleep(SETTLED_S, exactly=True)
    _read(talk, f"{path}?limit=3{iterator}", [5])
    for query, status in (("iterator=x", 422), ("limit=0", 422), ("limit=251", 422), ("after=then", 400)):
        talk.ask("GET", f"{path}?{query}", status=status)


def _consumers(talk: Talk) -> None:
    """A consumer's place is remembered by the iterator that it sends; it may be moved."""
    path = f"{APP}/poller/any/consumer/"
    _read(talk, f"{path}one?limit=2", [1, 2], done=False)
    iterator = _read(talk, f"{path}one?limit=2", [1, 2], done=False)
    iterator = _read(talk, f"{path}one?limit=2&iterator={iterator}", [3, 4], done=False)
    _read(talk, f"{path}one?limit=2", [3, 4], done=False)
    _read(talk, f"{path}two?limit=1", [1], done=False)
    iterator = _read(talk, f"{path}one?iterator={iterator}", [5])
    _read(talk, f"{path}one?iterator={iterator}", [])
    fourth = next(each for each in talk.ask("GET", f"{APP}/msg")["data"] if each["payload"]["n"] == 4)
    talk.ask("POST", f"{path}one/seek", {"after": fourth["timestamp"]}, shows={"iterator": str})
    _read(talk, f"{path}one", [4, 5])
    _read(talk, f"{path}two?limit=1", [1], done=False)
    # A consumer of this name has a place of his own at each poller
    _read(talk, f"{APP}/poller/else/consumer/one?limit=2", [1, 2], done=False)
    _read(talk, f"{path}one", [4, 5])
    for bad in ({}, {"after": "then"}, {"after": None}):
        talk.ask("POST", f"{path}one/seek", bad, status=422)


def _leases(talk: Talk) -> None:
    """A polling endpoint: what a consumer is given is his for a while; what he commits is done."""
    _post(talk, 6)
    talk.sleep(SETTLED_S, exactly=True)
    sink = talk.ask("POST", f"{APP}/destination", {"type": "pollingEndpoint", "config": {}, "uid": "polls"}, status=201)
    talk.ask("GET", f"{APP}/destination/polls", shows={"id": sink["id"], "type": "pollingEndpoint"})
    path = f"{APP}/polling-endpoint/polls/consumer/"
    leased = {"data": [], "done": True}
    talk.ask("GET", f"{path}early", shows=leased)
    for number in (7, 8, 9):
        _post(talk, number)
    talk.sleep(SETTLED_S, exactly=True)
    first = talk.ask("GET", f"{path}early?limit=2", shows={"data": [{"offset": int}, {"offset": int}], "done": False})
    talk.is_so("from its making on", [7, 8], _numbers(first))
    # The lease of thirty seconds: until then nobody of that name gets anything, and another name does
    talk.ask("GET", f"{path}early?limit=2", shows={"data": []})
    talk.is_so("another name", [7, 8, 9], _numbers(talk.ask("GET", f"{path}other")))
    latest = talk.ask("GET", f"{path}late?starting_position=latest", shows=leased)
    talk.is_so("nothing but what comes", [], latest["data"])
    talk.sleep(26, exactly=True)
    talk.ask("GET", f"{path}early", shows={"data": []})
    talk.sleep(5, exactly=True)
    again = talk.ask("GET", f"{path}early?limit=2&lease_duration_ms=5000")
    talk.is_so("what was not committed comes again", [7, 8], _numbers(again))
    talk.sleep(6, exactly=True)
    again = talk.ask("GET", f"{path}early?limit=2")
    talk.is_so("after a lease of five seconds", [7, 8], _numbers(again))
    offsets = [each["offset"] for each in again["data"]]
    talk.is_so("ever greater", True, offsets == sorted({*offsets}))
    talk.ask("POST", f"{path}early/commit", {"offset": offsets[0]}, status=204)
    rest = talk.ask("GET", f"{path}early")
    talk.is_so("the rest, at once", [8, 9], _numbers(rest))
    talk.ask("POST", f"{path}early/commit", {"offset": rest["data"][-1]["offset"]}, status=204)
    talk.ask("GET", f"{path}early", shows=leased)
    _post(talk, 10)
    talk.sleep(SETTLED_S, exactly=True)
    for name, expected in (("early", [10]), ("late", [10])):
        talk.is_so(f"{name} goes on", expected, _numbers(talk.ask("GET", f"{path}{name}")))
    for query, status in (
        ("limit=251", 422),
        ("lease_duration_ms=-1", 422),
        ("lease_duration_ms=43200001", 422),
        ("starting_position=middle", 400),
    ):
        refused = talk.status("GET", f"{path}new?{query}")
        talk.is_so(query, True, refused in {400, 422} and status in {400, 422})
    for bad in ({}, {"offset": -1}, {"offset": "1"}, {"offset": None}):
        talk.ask("POST", f"{path}early/commit", bad, status=422)
    # A consumer of this name at another polling endpoint has his own
    talk.ask("POST", f"{APP}/destination", {"type": "pollingEndpoint", "config": {}, "uid": "too"}, status=201)
    _post(talk, 11)
    talk.sleep(SETTLED_S, exactly=True)
    too = f"{APP}/polling-endpoint/too/consumer/early"
    own = talk.ask("GET", too, shows={"data": [{"offset": 1}]})
    talk.is_so("what came since it was there", [11], _numbers(own))
    talk.ask("POST", f"{too}/commit", {"offset": 2}, status=422)
    talk.ask("POST", f"{too}/commit", {"offset": 1}, status=204)
    talk.sleep(31, exactly=True)
    both = talk.ask("GET", f"{path}early")
    talk.is_so("of the first one, still what it has not committed", [10, 11], _numbers(both))
    talk.ask("DELETE", f"{APP}/destination/too", status=204)
    talk.ask("GET", f"{APP}/polling-endpoint/none/consumer/c", status=404)
    talk.ask("DELETE", f"{APP}/destination/polls", status=204)
    talk.ask("GET", f"{path}early", status=404)


def _claims(token: str) -> Any:
    text = token.split("_", 2)[2]
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def _autoconfigured(talk: Talk) -> None:
    """Who has an autoconfiguration's token sets up one endpoint or one polling endpoint, and does nothing else."""
    path = f"{APP}/autoconfig"
    for place, (kind, body) in enumerate(
        (("endpoint", {"url": "https://talk-readers.example/auto"}), ("destination", {"type": "pollingEndpoint"}))
    ):
        created = talk.ask("POST", path, {}, status=201, shows={"id": str, "token": str, "createdAt": str})
        one = f"{path}/{created['id']}"
        talk.ask(
            "GET",
            one,
            shows={
                "id": created["id"],
                "status": "pending",
                "tokenCensored": lambda text, created=created: text != created["token"],
            },
        )
        claims = _claims(created["token"])
        consumer = talk.with_headers(authorization=f"Bearer {claims['tok']}")
        consumer.ask("PUT", f"{one}/{kind}", {"url": 7} if not place else {"type": "sqs"}, status=422)
        shown = consumer.ask("PUT", f"{one}/{kind}", body, shows={"id": str})
        named = {"endpId": shown["id"]} if kind == "endpoint" else {"destId": shown["id"]}
        talk.ask("GET", one, shows={"status": "active", **named})
        consumer.ask("PUT", f"{one}/{kind}", body, shows={"id": shown["id"]})
        for method, other in (("GET", APP), ("GET", f"{APP}/msg"), ("DELETE", one)):
            refused = consumer.status(method, other)
            talk.is_so(f"{method} {other} with such a token", lambda each: each in {401, 403, 404}, refused)
        if kind == "endpoint":
            talk.ask("GET", f"{APP}/endpoint/{shown['id']}/secret", shows={"key": claims["esec"]})
        else:
            poll = f"{APP}/polling-endpoint/{shown['id']}/consumer/c"
            consumer.ask("GET", poll, shows={"data": []})
        rotated = talk.ask("POST", f"{one}/rotate", shows={"id": created["id"], "token": str})
        consumer.ask("PUT", f"{one}/{kind}", body, status=401)
        later = talk.with_headers(authorization=f"Bearer {_claims(rotated['token'])['tok']}")
        later.ask("PUT", f"{one}/{kind}", body, shows={"id": shown["id"]})
        talk.ask("DELETE", one, status=204)
        later.ask("PUT", f"{one}/{kind}", body, status=401)
        talk.ask("GET", one, status=404)
        talk.ask("GET", f"{APP}/{kind}/{shown['id']}", shows={"id": shown["id"]})
        talk.ask("DELETE", f"{APP}/{kind}/{shown['id']}", status=204)


def _time(talk: Talk, ago_s: float) -> str:
    return datetime.fromtimestamp(talk.epoch_s() - ago_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _tasks(talk: Talk) -> None:
    """What a task sends, of what, between which times; a dry run, a request repeated, and one that is cancelled."""
    came = talk.listen("talk-tasks.example", lambda each: (json.loads(each.body).get("says", 200), b""))
    talk.ask("POST", f"{APP}/endpoint", {"url": "https://talk-tasks.example/", "uid": "tasks"}, status=201)
    kinds = [
        (KIND, 200, ["a"], ["t"]),
        (OTHER, 404, ["b"], []),
        (KIND, 500, ["a", "b"], []),
        (OTHER, 201, [], ["t", "u"]),
    ]
    times = []
    for number, (kind, says, channels, tags) in enumerate(kinds):
        marks = {"channels": channels or None, "tags": tags or None}
        body = {"eventType": kind, "payload": {"n": number, "says": says}, **marks}
        times.append(talk.ask("POST", f"{APP}/msg", body, status=202)["timestamp"])
        talk.sleep(2, exactly=True)
    # Until the failures have been tried twice; the third try is minutes later
    talk.sleep(15)
    path = f"{APP}/endpoint/tasks"
    since = {"since": times[0]}
    more: dict[str, Any]
    for route, more, found in (
        ("bulk-replay", {}, {0, 1, 2, 3}),
        ("bulk-replay", {"eventTypes": [OTHER]}, {1, 3}),
        ("bulk-replay", {"channel": "a"}, {0, 2}),
        ("bulk-replay", {"tag": "t"}, {0, 3}),
        ("bulk-replay", {"status": 0}, {0, 3}),
        ("bulk-replay", {"statusCodeClass": 400}, {1}),
        ("bulk-replay", {"statusCodeClass": 200, "channel": "a"}, {0}),
        ("bulk-replay", {"until": times[2]}, {0, 1}),
        ("bulk-replay", {"since": times[1], "until": times[3]}, {1, 2}),
        ("replay-missing", {}, set()),
    ):
        _would_find(talk, f"{path}/{route}", {**since, **more}, len(found))
    before = len(came)
    once = talk.with_headers(idempotency_key="replay")
    begun = [
        once.ask("POST", f"{path}/bulk-replay", {**since, "eventTypes": [OTHER]}, status=202)["id"] for _ in range(2)
    ]
    talk.is_so("the same task", 1, len({*begun}))
    talk.sleep(110)
    again = sorted(json.loads(each.body)["n"] for each in came[before:] if each.headers["webhook-id"])
    talk.came("each once", [1, 3], again)
    talk.ask("GET", f"/background-task/{begun[0]}", shows={"task": "endpoint.bulk-replay", "data": {"messagesSent": 2}})
    # A slow one, cancelled on its way
    before = len(came)
    slow = talk.ask("POST", f"{path}/bulk-replay", {**since, "rate": 1, "status": 0}, status=202)["id"]
    talk.ask("POST", f"/background-task/{slow}/cancel", shows={"status": "failed"})
    talk.sleep(100)
    shown = talk.ask("GET", f"/background-task/{slow}", shows={"status": "failed"})
    talk.is_so("why", True, "cancel" in json.dumps(shown["data"]))
    talk.came("at most what had begun", lambda count: count <= 2, len(came) - before)
    talk.ask("POST", f"/background-task/{slow}/cancel", status=409)
    talk.ask("POST", "/background-task/qtask_none/cancel", status=404)
    talk.ask("GET", "/background-task/qtask_none", status=404)
    for route, more, found in (
        ("bulk-replay", {"status": 3}, {1, 2}),
        ("bulk-replay", {"status": 2}, set()),
        ("bulk-replay", {"tag": "u", "eventTypes": [KIND]}, set()),
        ("recover", {}, {1, 2}),
        ("recover", {"since": times[2]}, {2}),
        ("recover", {"until": times[2]}, {1}),
    ):
        _would_find(talk, f"{path}/{route}", {**since, **more}, len(found))
    whole = talk.ask("GET", "/background-task?limit=250")["data"]
    for member, value in (
        ("status", "finished"),
        ("status", "failed"),
        ("task", "endpoint.replay"),
        ("task", "endpoint.bulk-replay"),
    ):
        expected = [{"id": each["id"]} for each in whole if each[member] == value]
        talk.ask("GET", f"/background-task?limit=250&{member}={value}", shows={"data": expected})
        talk.is_so(f"some have {value}", True, bool(expected))
    fortnight = 14 * 86_400
    for route in ("recover", "replay-missing", "bulk-replay"):
        for bad in (
            {},
            {"since": "then"},
            {"since": _time(talk, fortnight + 400)},
            {"since": times[1], "until": times[0]},
            {**since, "rate": 0},
            {**since, "rate": 65_536},
            {**since, "dryRun": "yes"},
        ):
            talk.ask("POST", f"{path}/{route}", bad, status=422)
        for good in ({"since": _time(talk, fortnight - 60)}, {"since": _time(talk, 20 * 86_400), "unlimited": True}):
            talk.ask("POST", f"{path}/{route}", {**good, "dryRun": True}, status=202)
    for bad in ({"status": 5}, {"statusCodeClass": 250}, {"eventTypes": []}, {"channel": ""}, {"tag": 7}):
        talk.ask("POST", f"{path}/bulk-replay", {**since, **bad}, status=422)
    talk.sleep(150)
    talk.ask("DELETE", path, status=204)


def _would_find(talk: Talk, path: str, asked: Any, count: int) -> None:
    """A dry run counts so many messages."""
    dry = talk.ask("POST", path, {**asked, "dryRun": True}, status=202, shows={"status": "running"})
    talk.sleep(100)
    shows = {"status": "finished", "data": {"messagesFound": count}}
    talk.ask("GET", f"/background-task/{dry['id']}", shows=shows)


def _counts(talk: Talk) -> None:
    """Attempts and messages, counted between times."""
    talk.ask(
        "POST",
        f"{APP}/endpoint",
        {"url": "https://talk-readers.example/", "uid": "counts", "channels": ["n"]},
        status=201,
    )
    began = _time(talk, 0)
    for number, says in enumerate((200, 201, 404)):
        body = {"eventType": KIND, "payload": {"n": number, "says": says}, "channels": ["n"]}
        talk.ask("POST", f"{APP}/msg", body, status=202)
    talk.sleep(200)
    path = f"{APP}/endpoint/counts"
    ended = _time(talk, 0)
    for query, success, fail in (
        ("", 2, 2),
        (f"?since={began}", 2, 2),
        (f"?since={began}&until={ended}", 2, 2),
        (f"?since={ended}", 0, 0),
        (f"?until={began}", 0, 0),
    ):
        if query != f"?since={ended}":
            talk.ask(
                "GET", f"{path}/stats{query}", shows={"success": success, "fail": fail, "canceled": 0, "pending": 0}
            )
    four_weeks = 28 * 86_400
    for query, status in (
        (f"since={_time(talk, four_weeks - 60)}", 200),
        (f"since={_time(talk, four_weeks + 400)}", 400),
        (f"until={_time(talk, -600)}", 400),
        ("since=then", 400),
    ):
        for route in ("stats", "attempt-stats"):
            talk.ask("GET", f"{path}/{route}?{query}", status=status)
    usage = {"since": _time(talk, 86_400), "until": _time(talk, 0)}
    task = talk.ask("POST", "/stats/usage/app", {**usage, "appIds": ["readers", "none"]}, status=202)
    talk.is_so("which are none", {"task": "application.stats", "unresolvedAppIds": ["none"]}, task)
    kinds = talk.ask("PUT", "/stats/usage/event-types", status=202, shows={"task": "event-type.aggregate"})
    talk.sleep(100)
    messages = len(talk.ask("GET", f"{APP}/msg?limit=250")["data"])
    counted = talk.ask("GET", f"/background-task/{task['id']}", shows={"status": "finished"})["data"]
    talk.is_so(f"{messages} messages", True, f"{messages}" in json.dumps(counted))
    by_kind = talk.ask("GET", f"/background-task/{kinds['id']}", shows={"status": "finished"})["data"]
    mine = [each["eventType"] for each in talk.ask("GET", f"{APP}/msg?limit=250")["data"]]
    talk.is_so("each type", True, all(f"{mine.count(kind)}" in json.dumps(by_kind) for kind in (KIND, OTHER)))
    for bad in (
        {},
        {**usage, "appIds": "readers"},
        {"since": usage["until"], "until": usage["since"]},
        {"since": "x", "until": "y"},
    ):
        talk.ask("POST", "/stats/usage/app", bad, status=422)
    talk.ask("DELETE", path, status=204)


def _found(talk: Talk) -> None:
    """Values of fields that an application names are found at once; a portal does not search."""
    talk.ask("PATCH", APP, {"searchFields": ["order.id", "customer"]})
    talk.sleep(2)
    one = talk.ask(
        "POST", f"{APP}/msg", {"eventType": KIND, "payload": {"order": {"id": 4711}, "customer": "Zoë"}}, status=202
    )["id"]
    talk.ask("POST", f"{APP}/msg", {"eventType": KIND, "payload": {"other": "4711"}}, status=202)
    talk.sleep(5)
    project = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    for value in ("4711", "Zo%C3%AB"):
        found = project.ask("GET", f"/search?value={value}")
        talk.is_so(f"{value} is found", True, one in json.dumps(found))
    talk.ask("DELETE", f"{APP}/msg/{one}/content", status=204)
    talk.sleep(2)
    talk.is_so("what is erased is not", False, one in json.dumps(project.ask("GET", "/search?value=4711")))
    talk.ask("PATCH", APP, {"searchFields": []})


def _frames(talk: Talk) -> None:
    """Which pages may show a portal: for all applications, or for one instead; and where links lead then."""
    link = "/auth/app-portal-access/readers"
    talk.ask("GET", "/portal/frame", shows={"origins": []})
    talk.ask("POST", link, {}, shows={"url": lambda url: "/console/p/" not in url})
    for origins in (["https://app.example.com"], ["https://a.example:8443", "http://localhost:3000"]):
        talk.ask("PUT", "/portal/frame", {"origins": origins}, shows={"origins": origins})
        talk.ask("GET", "/portal/frame", shows={"origins": origins})
    talk.sleep(11)
    talk.ask("POST", link, {}, shows={"url": lambda url: "/console/p/" in url})
    talk.ask("GET", f"{APP}/portal/frame", shows={"origins": []})
    talk.ask(
        "PUT", f"{APP}/portal/frame", {"origins": ["https://acme.example"]}, shows={"origins": ["https://acme.example"]}
    )
    for bad in (
        ["http://a.example"],
        ["a.example"],
        ["https://a.example/path"],
        ["https://*.example"],
        ["https://me@a.example"],
        "https://a.example",
        [7],
        None,
    ):
        for path in ("/portal/frame", f"{APP}/portal/frame"):
            talk.ask("PUT", path, {"origins": bad}, status=422)
    talk.ask("GET", f"{APP}/portal/frame", shows={"origins": ["https://acme.example"]})
    # An application has its own frame instead of the project's, which others have; a token works in its link's alone
    talk.ask("POST", "/app", {"name": "Framed", "uid": "framed"}, status=201)
    opened: dict[str, Any] = {
        uid: talk.ask("POST", f"/auth/app-portal-access/{uid}", {}) for uid in ("readers", "framed")
    }
    frames = {uid: each["url"].partition("/console/p/")[2].partition("#")[0] for uid, each in opened.items()}
    talk.is_so("two frames", 2, len({*frames.values()} - {""}))
    for uid, each in opened.items():
        for frame in frames.values():
            portal = talk.with_headers(authorization=f"Bearer {each['token']}", pushhub_portal_frame=frame)
            status = portal.status("GET", f"/app/{uid}")
            talk.is_so(f"of {uid}, in {frame}", 200 if frame == frames[uid] else 403, status)
    talk.ask("PUT", f"{APP}/portal/frame", {"origins": []}, shows={"origins": []})
    again = talk.ask("POST", link, {}, shows={"url": str})["url"]
    talk.is_so("the project's again", True, f"/console/p/{frames['framed']}#" in again)
    talk.ask("PUT", "/portal/frame", {"origins": []}, shows={"origins": []})
    talk.ask("POST", link, {}, shows={"url": lambda url: "/console/p/" not in url})
    talk.ask("DELETE", "/app/framed", status=204)


__all__ = ["webhooks"]
