"""Token servers that are down for long, or again, or slow; and receivers that take a token again after five minutes.

Source: docs/gates.md ("What happens at a delivery").
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from email.utils import formatdate
from itertools import pairwise
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.customers import LATE_S, MINUTE, Customer
from simulation.promises.talks.push_queues import created, posted, reported, statuses, subscriber
from simulation.promises.talks.talk import Came, Talk

LOGIN = "outages-login.example"
WAITS_S = (5, 10, 20, 40, 80, 160, 320, 600, 600, 600)
"""After so many seconds a token server that fails is asked again."""

PATIENT, BRIEF = 20, 1
"""How often a subscriber is tried again that is still there after the outage, and one that is not."""

LEFT_ALONE_S = 300
"""For so long no token is asked for after a new one was refused."""


def webhooks(talk: Talk) -> None:
    """All of it."""
    talk.through(_for_long, _dated, _slow, _again)


def _gives(token: str, lasts_s: int = 3_600) -> tuple[int, bytes]:
    return 200, json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": lasts_s}).encode()


def _about(talk: Talk, wait_s: float) -> Callable[[float], bool]:
    """A wait, and not much more."""
    return lambda gap: wait_s - 1 <= gap <= wait_s + 20 + 2 * talk.gathered_s + talk.put_off_s


def _gaps(asked: Sequence[Came]) -> list[float]:
    return [(after.at - before.at) / SECOND for before, after in pairwise(asked)]


def _grant(uid: str, **more: Any) -> dict[str, Any]:
    """How an endpoint of a uid gets its tokens, at a path of its own."""
    fields = {"grantType": "clientCredentials", "authMethod": "clientSecretPost", "clientId": uid, **more}
    return {"clientSecret": "hush", "tokenUrl": f"https://{LOGIN}/{uid}", **fields}


def _for_long(talk: Talk) -> None:
    """It is asked ever more rarely, and from some time on each ten minutes; tries count from five minutes on. What
    comes after it is an outage of its own: it is asked soon again, and tries do not count at first.
    """
    queues = talk.at(f"/3/projects/{talk.project}").with_headers(authorization=f"OAuth {talk.token}")
    server: dict[str, Any] = {"says": (503, b"")}
    asked = talk.listen(LOGIN, lambda _: server["says"])
    came = {name: talk.listen(f"outages-{name}.example", lambda _: (200, b"")) for name in ("patient", "brief")}
    names = {"patient": PATIENT, "brief": BRIEF}
    paths = {}
    for name, retries in names.items():
        grant = {"token_url": f"https://{LOGIN}/{name}", "client_id": "c", "client_secret": "hush"}
        one = subscriber(f"outages-{name}", oauth=grant)
        failed = {"error_queue": f"outages-{name}-failed"}
        paths[name] = created(queues, f"outages-{name}", one, retries=retries, retries_delay=3, **failed)
    first = {name: posted(queues, path, "first")[0] for name, path in paths.items()}
    talk.sleep(sum(WAITS_S) + 10 * len(WAITS_S) + MINUTE)
    by_path = {name: [each for each in asked if each.path == f"/{name}"] for name in names}
    gaps = _gaps(by_path["patient"])[: len(WAITS_S)]
    talk.came("ever more rarely", [_about(talk, wait) for wait in WAITS_S], gaps)
    talk.came("nothing is sent", [[], []], [*came.values()])
    state = statuses(queues, paths["patient"], first["patient"])["outages-patient"]
    counted = {"retries_remaining": lambda left: PATIENT - 8 <= left <= PATIENT - 2, "status_code": 0}
    talk.is_so("tries from five minutes on", {"state": "retrying", **counted}, state)
    state = statuses(queues, paths["brief"], first["brief"])["outages-brief"]
    _is_down(talk, queues, paths["patient"], asked[0].at)
    talk.is_so("given up", {"state": "exhausted", "retries_remaining": 0}, state)
    talk.is_so(
        "and reported", [first["brief"]], [each["source_msg_id"] for each in reported(queues, "outages-brief-failed")]
    )
    server["says"] = _gives("first", lasts_s=60)
    posted(queues, paths["brief"], "between")
    talk.sleep(600 + LATE_S + talk.put_off_s)
    both = {"patient": [b"first"], "brief": [b"between"]}
    talk.came("then it comes", both, {name: [each.body for each in heard] for name, heard in came.items()})
    talk.came("with it", {"Bearer first"}, {each.headers["authorization"] for heard in came.values() for each in heard})
    server["says"] = (503, b"")
    before = len(asked)
    second = {name: posted(queues, path, "second")[0] for name, path in paths.items()}
    talk.sleep(50 + talk.put_off_s)
    for name, retries in names.items():
        again = [each for each in asked[before:] if each.path == f"/{name}"]
        talk.came(f"asked soon again: {name}", [_about(talk, wait) for wait in WAITS_S[:2]], _gaps(again)[:2])
        state = statuses(queues, paths[name], second[name])[f"outages-{name}"]
        talk.is_so(f"no try counts: {name}", {"state": "retrying", "retries_remaining": retries}, state)
    _is_down(talk, queues, paths["patient"], asked[before].at)
    server["says"] = _gives("second")
    talk.sleep(WAITS_S[4] + 20 + 3 * talk.gathered_s + talk.put_off_s)
    for name, heard in came.items():
        shown = [(each.headers["authorization"], each.body) for each in heard]
        talk.came(f"then it comes: {name}", ("Bearer second", b"second"), shown[-1])
        talk.is_so(
            "and has arrived", {"state": "delivered"}, statuses(queues, paths[name], second[name])[f"outages-{name}"]
        )
        queues.ask("DELETE", paths[name])
        queues.status("DELETE", f"{paths[name]}-failed")


def _is_down(talk: Talk, queues: Talk, path: str, since: int) -> None:
    """A subscriber is shown to wait for its token server: since when, until when, and what that answered."""
    [shown] = queues.ask("GET", f"{path}/health")["subscribers"]
    about = {"state": "token_server_down", "reason": lambda each: "503" in each, "since": str}
    talk.is_so("how it is doing", about, shown["health"])
    talk.is_so("since when", lambda each: abs(each) <= 5, (talk.moment(shown["health"]["since"]) - since) / SECOND)
    until = shown["health"]["until"]
    left_s = 0 if until is None else (talk.moment(until) - talk.now()) / SECOND
    talk.is_so("until it is asked", lambda each: 0 <= each <= WAITS_S[-1] + 1, left_s)


def _dated(talk: Talk) -> None:
    """``Retry-After`` of a token server may be a date, and counts whatever the status is that it comes with."""
    one = Customer(talk, "dated")
    waits = {"busy": (429, 150), "down": (503, 200)}
    asked: dict[str, list[Came]] = {uid: [] for uid in waits}

    def says(came: Came) -> Any:
        uid = came.path[1:]
        asked[uid].append(came)
        status, wait_s = waits[uid]
        if len(asked[uid]) > 1:
            return _gives(uid)
        return status, b"", {"retry-after": formatdate(talk.epoch_s() + wait_s, usegmt=True)}

    talk.listen(LOGIN, says)
    for uid in waits:
        one.endpoint(uid)
        talk.ask("PUT", f"{one.path}/endpoint/{uid}/oauth", _grant(uid), status=204)
    talk.sleep(2)
    message_id = one.post(1)
    talk.sleep(200 + LATE_S + 2 * talk.gathered_s + talk.put_off_s)
    for uid, (_, wait_s) in waits.items():
        talk.came(
            f"when it says: {uid}", [lambda gap, wait=wait_s: wait - 2 <= gap <= wait * 1.2 + LATE_S], _gaps(asked[uid])
        )
    talk.is_so("no try is used up", dict.fromkeys(waits, (0, None)), one.state(message_id))
    one.over()


def _slow(talk: Talk) -> None:
    """A token server has ten of an endpoint's thirty seconds, and the endpoint what is left of them."""
    one = Customer(talk, "slow")
    takes_s: dict[str, tuple[float, float]] = {"quick": (9, 0), "rest": (9, 18), "over": (9, 25), "late": (12, 0)}
    talk.listen(LOGIN, lambda came: (*_gives(came.path[1:]), {}, takes_s[came.path[1:]][0]))
    for uid, (_, endpoint_s) in takes_s.items():
        one.says[uid] = (200, b"", {}, endpoint_s)
        one.endpoint(uid)
        talk.ask("PUT", f"{one.path}/endpoint/{uid}/oauth", _grant(uid), status=204)
    talk.sleep(2)
    message_id = one.post(1)
    talk.sleep(35 + talk.put_off_s)
    first = {each["uid"]: each for each in _attempts(talk, one, message_id)}
    arrived = {"quick": (0, 200), "rest": (0, 200), "over": (2, 0), "late": (2, 0)}
    found = {uid: (each["status"], each["responseStatusCode"]) for uid, each in first.items()}
    talk.is_so("what came of it", arrived, found)
    text = "oauth: the token server gave no answer (timeout)"
    talk.is_so("why", [True, False], [first[uid]["response"].startswith(text) for uid in ("late", "over")])
    took = {uid: each["responseDurationMs"] / 1_000 for uid, each in first.items()}
    talk.is_so("never longer", [True] * 4, [each < 31 for each in took.values()])
    talk.came("nothing is sent without", (1, 0), (len(one.came["over"]), len(one.came["late"])))
    # With a token that is there already it has its thirty seconds
    talk.sleep(MINUTE * 1.2 + 30 + LATE_S + talk.put_off_s)
    talk.came("then in time", 2, len(one.came["over"]))
    talk.is_so("it has arrived", (0, None), one.state(message_id)["over"])
    one.over()


def _attempts(talk: Talk, one: Customer, message_id: str) -> list[dict[str, Any]]:
    """The first attempt of each endpoint, with its uid."""
    rows = talk.ask("GET", f"{one.path}/attempt/msg/{message_id}")["data"]
    uids = {talk.ask("GET", f"{one.path}/endpoint/{uid}")["id"]: uid for uid in one.came}
    first = {each["endpointId"]: each for each in sorted(rows, key=lambda each: each["timestamp"], reverse=True)}
    return [{**each, "uid": uids[endpoint_id]} for endpoint_id, each in first.items()]


def _again(talk: Talk) -> None:
    """Five minutes after new tokens were refused another one is asked for, and at once if what is set is changed; a
    refusal that is no 401 has none replaced.
    """
    one = Customer(talk, "again")
    given: dict[str, int] = {}
    least: dict[str, int] = {"waits": 1, "changed": 1}

    def give(came: Came) -> tuple[int, bytes]:
        uid = came.path[1:]
        given[uid] = given.get(uid, 0) + 1
        return _gives(f"{given[uid]}")

    talk.listen(LOGIN, give)
    for uid in ("waits", "changed", "forbids"):

        def takes(came: Came, uid: str = uid) -> tuple[int, bytes]:
            if uid == "forbids":
                return 403, b""
            number = int(came.headers["authorization"].rpartition(" ")[2])
            return (200, b"") if number >= least[uid] else (401, b"")

        one.says[uid] = takes
        one.endpoint(uid)
        talk.ask("PUT", f"{one.path}/endpoint/{uid}/oauth", _grant(uid), status=204)
    talk.sleep(2)
    one.post(1)
    talk.sleep(3 + talk.put_off_s)
    least |= dict.fromkeys(least, 99)
    one.post(2)
    talk.sleep(20 + talk.put_off_s)
    asked = dict(given)
    talk.came("one more at least, two at most", {uid: lambda each: 2 <= each <= 3 for uid in least}, asked)
    talk.came("none for a 403", 1, asked["forbids"])
    # From now on the next one will do
    least |= {uid: asked[uid] + 1 for uid in least}
    talk.ask("PUT", f"{one.path}/endpoint/changed/oauth", _grant("changed", clientSecret="other"), status=204)
    talk.sleep(2)
    one.post(3)
    talk.sleep(10 + talk.put_off_s)
    talk.came("changed, it is asked at once", 1, given["changed"] - asked["changed"])
    talk.came("and sent to", [3], one.numbers("changed")[-1:])
    shown = one.came["changed"][-1].headers["authorization"]
    talk.came("with the new one", f"Bearer {least['changed']}", shown)
    talk.came("the other one is not", 0, given["waits"] - asked["waits"])
    talk.sleep(LEFT_ALONE_S + talk.gathered_s, exactly=True)
    fourth = one.post(4)
    talk.sleep(10 + talk.put_off_s)
    talk.came("after five minutes it is", 1, given["waits"] - asked["waits"])
    talk.is_so("and sent to", (0, None), one.state(fourth)["waits"])
    talk.came("still none for a 403", 1, given["forbids"])
    one.over()


__all__ = ["webhooks"]
