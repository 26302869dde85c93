"""What an operator decides for a project, in every protocol at once: how much it may post, and that it rests for a
while. And what others learn of it: nothing.

Sources: docs/flow.md ("A quota"), docs/operations.md ("Quotas", "Suspending a project"), SECURITY.md.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simulation.promises.talks.notifications import Connect
from simulation.promises.talks.services import done
from simulation.promises.talks.talk import Answered, Talk

MINUTE = 60
KNOWN_S = 31
"""What an operator changes is in force after so long."""

RATE, BURST = 1, 20
UNSURE = 5
"""So many more than its quota a project may post in a minute, to 5 % of it."""

REFUSED, SAID = 403, "The project is suspended"
TOO_MANY = 429


def through(talk: Talk, connect: Connect) -> None:
    """Everything. ``talk`` asks as a client of IronMQ."""

    def rests(one: Talk) -> None:
        _suspended(one, connect)

    talk.through(_quota, rests, _unknown)


def _api(talk: Talk) -> Talk:
    return talk.at("/api/v1").with_headers(authorization=f"Bearer {talk.token}")


def _store(talk: Talk) -> Talk:
    return talk.at(f"/api/stores/{talk.project}").with_headers(x_augury_token=talk.token)


def _topics(talk: Talk) -> Talk:
    return talk.at("/notification2").with_headers(authorization=f"Bearer {talk.token}")


def _application(talk: Talk, name: str) -> None:
    api = _api(talk)
    api.ask("POST", "/event-type", {"name": f"{name}.made", "description": "d"}, status=201)
    api.ask("POST", "/app", {"name": name, "uid": name}, status=201)


def _no_application(talk: Talk, name: str) -> None:
    api = _api(talk)
    api.ask("DELETE", f"/app/{name}", status=204)
    api.ask("DELETE", f"/event-type/{name}.made?expunge=true", status=204)


def _ways(talk: Talk) -> Mapping[str, Callable[[int], Answered]]:
    """How each protocol posts so many messages: some one by one, of which the last answer counts."""
    event = {"api": "operations", "source": "1", "data": {}}

    def one_by_one(client: Talk, path: str, body: object) -> Callable[[int], Answered]:
        def post(count: int) -> Answered:
            answers = (client.answered("POST", path, body) for _ in range(count))
            return [*answers][-1]

        return post

    return {
        "queues": lambda count: talk.answered("POST", "/queues/quota/messages", {"messages": count * [{"body": "x"}]}),
        "topics": lambda count: _topics(talk).answered("POST", "/notifications", count * [event]),
        "stores": one_by_one(_store(talk), "/messages", {"message": "quota:one", "payload": {}}),
        "webhooks": one_by_one(_api(talk), "/app/quota/msg", {"eventType": "quota.made", "payload": {}}),
    }


def _quota(talk: Talk) -> None:
    """Its rate and its burst are a project's for all protocols together; what exceeds them is refused as a whole, until
    the time that the answer tells.
    """
    talk.ask("PUT", "/queues/quota", {})
    _application(talk, "quota")
    talk.typed("projects", "quota", talk.project, str(RATE), "--burst", str(BURST))
    talk.sleep(KNOWN_S, exactly=True)
    posts, taken = _ways(talk), 0

    def rested() -> None:
        talk.sleep((BURST + 2 * UNSURE) / RATE, exactly=True)

    for name in ("queues", "topics"):
        for refused in posts:
            rested()
            talk.is_so(f"the burst, to {name}", 201, posts[name](BURST).status)
            taken += BURST if name == "queues" else 0
            answer = posts[refused](UNSURE + 2)
            told_of = answer.headers.get("retry-after", "")
            seen = (answer.status, told_of.isdigit() and 1 <= int(told_of) <= UNSURE + 2)
            talk.is_so(f"then {refused}", (TOO_MANY, True), seen)
    # What is too large for what is left of it stops nothing smaller
    rested()
    half = BURST // 2
    answers = [posts["queues"](count).status for count in (half, BURST, half - UNSURE)]
    talk.is_so("a smaller one behind a large one", [201, TOO_MANY, 201], answers)
    taken += BURST - UNSURE
    # Of a batch that is refused nothing is taken, and who only reads is not
    talk.ask("GET", "/queues/quota", shows={"queue": {"total_messages": taken}})
    rested()
    large = 3 * BURST
    talk.is_so("more than the burst", 201, posts["queues"](large).status)
    answer = posts["queues"](UNSURE)
    talk.is_so("then nothing", TOO_MANY, answer.status)
    told_s = int(answer.headers["retry-after"])
    talk.is_so("until it is made up for", lambda each: large - BURST <= each <= large + UNSURE, told_s)
    talk.sleep(told_s - BURST / 2, exactly=True)
    talk.is_so("not before", TOO_MANY, posts["topics"](UNSURE).status)
    talk.sleep(BURST / 2 + 1, exactly=True)
    talk.is_so("then", 201, posts["queues"](1).status)
    talk.ask("GET", "/queues/quota", shows={"queue": {"total_messages": taken + large + 1}})
    talk.typed("projects", "quota", talk.project, "none")
    talk.sleep(KNOWN_S, exactly=True)
    talk.is_so("no limit", [201] * 3, [posts["queues"](100).status for _ in range(3)])
    talk.typed("projects", "quota", talk.project, "default")
    talk.ask("DELETE", "/queues/quota")
    _no_application(talk, "quota")


def _suspended(talk: Talk, connect: Connect) -> None:
    """While it rests, nothing is sent, ticks or is changed in any protocol, and what may be read is read; then all that
    waited comes once, but for what has expired.
    """
    api, store, topics = _api(talk), _store(talk), _topics(talk)
    came = {name: talk.listen(f"rests-{name}.example", lambda _: (200, b"")) for name in ("queue", "endpoint")}
    came["service"] = talk.listen("rests-service.example", done)
    one = {"name": "s", "url": "https://rests-queue.example/in"}
    talk.ask("PUT", "/queues/rests", {"queue": {"push": {"subscribers": [one]}}})
    for name, lasts in (("brief", 2 * MINUTE), ("kept", 60 * MINUTE)):
        talk.ask("PUT", f"/queues/{name}", {"queue": {"message_expiration": lasts}})
        talk.ask("POST", f"/queues/{name}/messages", {"messages": [{"body": name}]}, status=201)
    _application(talk, "rests")
    endpoint = {"url": "https://rests-endpoint.example/in", "uid": "one"}
    api.ask("POST", "/app/rests/endpoint", endpoint, status=201)
    fields = {"name": "rests", "url": "https://rests-service.example/in", "token": "t", "messages": ["rests:tick"]}
    mapping = store.ask("POST", "/mappings", {"mapping": fields}, status=201)["id"]
    ticks = {"scheduler": {"key": "rests:tick", "count": 1, "interval": "minutes"}}
    scheduler = store.ask("POST", "/schedulers", ticks, status=201)["id"]
    rule = {"context": "tenant", "subscription": "restsTopic", "subscriptionFilter": {"apis": ["operations"]}}
    subscription = topics.ask("POST", "/subscriptions", rule, status=201)["id"]
    token = str(topics.ask("POST", "/token", {"subscription": "restsTopic", "subscriber": "s"})["token"])
    side = connect({"token": token})
    # While anything is due later, each minute is looked at
    talk.ask("POST", "/queues/rests/messages", {"messages": [{"body": "much later", "delay": 3_600}]}, status=201)
    talk.sleep(4 * MINUTE)
    talk.came("it ticks", True, bool(came["service"]))
    event = {"api": "operations", "source": "1", "data": {"n": 1}}
    topics.ask("POST", "/notifications", event, status=201)
    talk.sleep(5)
    talk.came("a notification", 1, len(side.frames))
    # What is due while it rests
    talk.ask("POST", "/queues/rests/messages", {"messages": [{"body": "later", "delay": MINUTE}]}, status=201)
    message = {"eventType": "rests.made", "payload": {"n": 1}}
    [shown] = talk.typed("projects", "suspend", talk.project)
    talk.is_so("since when", str, shown["suspended"])
    talk.sleep(6, exactly=True)
    before = {name: len(each) for name, each in came.items()}
    writes: Sequence[tuple[Talk, str, str, Any]] = (
        (talk, "POST", "/queues/rests/messages", {"messages": [{"body": "x"}]}),
        (talk, "PUT", "/queues/new", {}),
        (talk, "PATCH", "/queues/rests", {"queue": {"message_expiration": 600}}),
        (talk, "DELETE", "/queues/rests", None),
        (talk, "POST", "/queues/kept/reservations", {"n": 1}),
        (talk, "DELETE", "/queues/kept/messages", {}),
        (talk, "POST", "/queues/rests/pause", {"subscriber": "s"}),
        (api, "POST", "/app/rests/msg", message),
        (api, "POST", "/app", {"name": "new"}),
        (api, "PATCH", "/app/rests/endpoint/one", {"description": "x"}),
        (api, "DELETE", "/app/rests", None),
        (store, "POST", "/messages", {"message": "rests:tick", "payload": {}}),
        (store, "DELETE", f"/mappings/{mapping}", None),
        (store, "DELETE", f"/schedulers/{scheduler}", None),
        (topics, "POST", "/notifications", event),
        (topics, "POST", "/token", {"subscription": "restsTopic", "subscriber": "s"}),
        (topics, "DELETE", f"/subscriptions/{subscription}", None),
    )
    for client, method, path, body in writes:
        answer = client.answered(method, path, body)
        seen = (answer.status, SAID in json.dumps(answer.body))
        talk.is_so(f"{method} {path} while it rests", (REFUSED, True), seen)
    for client, path in (
        (talk, "/queues/rests"),
        (talk, "/queues/kept/messages"),
        (api, "/app/rests/endpoint/one"),
        (store, "/mappings.json"),
        (topics, f"/subscriptions/{subscription}"),
    ):
        client.ask("GET", path)
    talk.is_so("nobody is let in", False, connect({"token": token}).status == 200)
    talk.sleep(7 * MINUTE, exactly=True)
    talk.came("nothing came", before, {name: len(each) for name, each in came.items()})
    talk.came("nor on the connection", 1, len(side.frames))
    talk.typed("projects", "resume", talk.project, shows=[{"suspended": None}])
    talk.sleep(6, exactly=True)
    again = connect({"token": token})
    talk.is_so("the connection was closed", 200, again.status)
    talk.sleep(4 * MINUTE)
    talk.came("what was not acknowledged", 1, len(again.frames))
    talk.came("what was due", ["later"], [each.body.decode() for each in came["queue"]])
    more = len(came["service"]) - before["service"]
    talk.came("ticks that were left out are not made up for", lambda each: 1 <= each <= 6, more)
    talk.ask("POST", "/queues/brief/reservations", {"n": 9}, shows={"messages": []})
    talk.ask("POST", "/queues/kept/reservations", {"n": 9}, shows={"messages": [{"body": "kept"}]})
    api.ask("POST", "/app/rests/msg", message, status=202)
    talk.sleep(20 + talk.put_off_s)
    talk.came("a message", [{"n": 1}], [json.loads(each.body) for each in came["endpoint"]])
    again.close()
    talk.sleep(3)
    topics.ask("POST", f"/unsubscribe?token={token}", shows={"result": "DONE"})
    topics.ask("DELETE", f"/subscriptions/{subscription}", status=204)
    store.ask("DELETE", f"/schedulers/{scheduler}")
    store.ask("DELETE", f"/mappings/{mapping}")
    _no_application(talk, "rests")
    for name in ("rests", "brief", "kept"):
        talk.ask("DELETE", f"/queues/{name}")


def _unknown(talk: Talk) -> None:
    """A project that is not there looks like one whose token is wrong, whoever asks; a token is shown once."""
    none, wrong = "0" * len(talk.project), "x" * len(talk.token)
    for project, token in ((talk.project, wrong), (none, talk.token), (none, wrong)):
        basic = base64.b64encode(f"{project}/me:{token}".encode()).decode()
        for path, headers in (
            (f"/3/projects/{project}/queues", {"authorization": f"OAuth {token}"}),
            (f"/3/projects/{project}/queues/none/messages", {"authorization": f"OAuth {token}"}),
            (f"/api/stores/{project}/mappings.json", {"x_augury_token": token}),
            ("/notification2/subscriptions", {"authorization": f"Basic {basic}"}),
        ):
            asked = talk.at("").with_headers(**headers).answered("GET", path)
            own = path.replace(project, talk.project)
            alike = dict(headers)
            if "authorization" in alike and alike["authorization"].startswith("Basic"):
                mine = base64.b64encode(f"{talk.project}/me:{wrong}".encode()).decode()
                alike["authorization"] = f"Basic {mine}"
            else:
                alike = {name: value.replace(token, wrong) for name, value in alike.items()}
            other = talk.at("").with_headers(**alike).answered("GET", own)
            talk.is_so(f"GET {path}", (401, other.body), (asked.status, asked.body))
    talk.is_so("shown once", False, talk.token in json.dumps(talk.typed("tokens", "list", talk.project)))
    talk.is_so("nor with its project", False, talk.token in json.dumps(talk.typed("projects", "list")))


__all__ = ["through"]
