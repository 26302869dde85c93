"""What happens while a message of a store waits, or a request is in progress: older answers, requests that overlap,
polls, changes and deletions of mappings, tries that begin again, services that share parameters and schedules.

Sources: docs/hub-protocol.md ("Routes", "Decisions", "Limits").
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

from simulation.promises.judgement import SECOND
from simulation.promises.talks.services import copies, done, mapped, pushed
from simulation.promises.talks.talk import Came, Talk

MINUTE = 60
LATE_S = 75
"""What waits longer than a minute is looked after each minute."""

KEPT_OF_A_FAILURE = 65_536
QUICK = {"retry_base": 10, "retry_cap": 600}


def through(talk: Talk) -> None:
    """Everything."""
    talk.through(
        _older,
        _completed,
        _in_progress,
        _polls,
        _changed,
        _deleted,
        _again,
        _at_once,
        _shared,
        _described,
        _counted,
        _doubled,
        _dated,
    )


def _payload(came: Came) -> Any:
    return json.loads(came.body)["payload"]


def _removed(talk: Talk, *paths: str) -> None:
    for each in paths:
        talk.ask("DELETE", each)


def _older(talk: Talk) -> None:
    """What a slow answer to an older request returns does not replace the value of a newer one, which was quick."""
    first = {
        name: talk.ask("POST", "/parameters", {"parameter": _named(name, "set")}, status=201) for name in ("a", "b")
    }

    def answers(came: Came) -> tuple[int, bytes]:
        sent = _payload(came)
        if sent["n"] == 3:
            return done(came)
        if sent["n"] == 1:
            talk.sleep(30, exactly=True)
        return done(came, parameters=[{"name": f"older.{sent['which']}", "value": f"by {sent['n']}"}])

    came = {name: talk.listen(f"older-{name}.example", answers) for name in first}
    mappings = [mapped(talk, f"older-{name}", [f"older:{name}"], parameters=[one["id"]]) for name, one in first.items()]
    talk.sleep(MINUTE + 1)
    # The slow request is the older one of the one service, and the newer one of the other
    for numbers in ({"a": 1, "b": 2}, {"a": 2, "b": 1}):
        for name, number in numbers.items():
            pushed(talk, f"older:{name}", {"n": number, "which": name})
        talk.sleep(10 + talk.gathered_s + talk.put_off_s, exactly=True)
    talk.sleep(MINUTE + talk.put_off_s)
    for name in first:
        pushed(talk, f"older:{name}", {"n": 3, "which": name})
    talk.sleep(20 + talk.put_off_s)
    for name, heard in came.items():
        began = [_payload(each)["n"] for each in sorted(heard, key=lambda each: each.at)]
        newest = f"by {began[1]}"
        last = next(_payload(each) for each in heard if _payload(each)["n"] == 3)
        talk.came(
            f"{name}, as the newer one returned it", [{"name": f"older.{name}", "value": newest}], last["parameters"]
        )
        talk.ask("GET", f"/parameters/{first[name]['id']}", shows={"value": newest})
    _removed(talk, *mappings, *(f"/parameters/{each['id']}" for each in first.values()))


def _named(name: str, value: str) -> dict[str, Any]:
    return {"name": f"older.{name}", "value": value, "data_type": "string"}


def _completed(talk: Talk) -> None:
    """Parameters are set only by an answer that completes a message: by none that fails or is to come later."""
    parameter = talk.ask("POST", "/parameters", {"parameter": {"name": "completed.by", "value": 0}}, status=201)
    path = f"/parameters/{parameter['id']}"
    seen: list[int] = []

    def answers(came: Came) -> tuple[int, bytes]:
        seen.append(talk.ask("GET", path)["value"])
        number = len(seen)
        returned: dict[str, Any] = {"parameters": [{"name": "completed.by", "value": number}]}
        later: dict[str, Any] = {"delay": "1", "update_url": "/later"} if number == 2 else {}
        return (500 if number == 1 else 200), done(came, **returned, **later)[1]

    talk.listen("completed.example", answers)
    mapping = mapped(talk, "completed", ["completed:one"], parameters=[parameter["id"]], options=QUICK)
    talk.sleep(MINUTE + 1)
    pushed(talk, "completed:one", {})
    talk.sleep(4 * MINUTE + 3 * talk.gathered_s + talk.put_off_s)
    talk.is_so("before each answer", [0, 0, 0], seen)
    talk.ask("GET", path, shows={"value": 3})
    _removed(talk, mapping, path)


def _in_progress(talk: Talk) -> None:
    """While a request is in progress, its message says so, is not tried now, and can be given up."""
    meanwhile: dict[str, Any] = {}

    def answers(came: Came) -> tuple[int, bytes]:
        path = f"/messages/{json.loads(came.body)['message_id']}"
        wish = _payload(came)["wish"]
        shown = talk.ask("GET", path, shows={"can_attempt": False})
        meanwhile[wish] = (shown["locked_at"], talk.status("PUT", path, {"attempt_now": True}))
        if wish == "archive":
            talk.ask("PUT", path, {"archive": True})
        return done(came)

    came = talk.listen("progress.example", answers)
    mapping = mapped(talk, "progress", ["progress:one"])
    talk.sleep(MINUTE + 1)
    ids = {wish: pushed(talk, "progress:one", {"wish": wish}) for wish in ("archive", "go on")}
    talk.sleep(MINUTE + talk.put_off_s)
    talk.came("each once", 2, len(came))
    for wish, state in (("archive", "never_processed"), ("go on", "completed")):
        [copy] = copies(talk, ids[wish])
        talk.is_so(wish, {"state": state, "locked_at": None}, copy)
        talk.is_so("no next try", False, "next_attempt" in copy)
        began, status = meanwhile[wish]
        talk.is_so("meanwhile", (str, 422), (began, status))
        at = next(each.at for each in came if _payload(each)["wish"] == wish) / SECOND
        away = abs(datetime.fromisoformat(began).timestamp() - talk.epoch_s() + talk.now() / SECOND - at)
        talk.is_so("when it began", True, away <= 2)
    talk.ask("DELETE", mapping)


def _polls(talk: Talk) -> None:
    """A poll that fails is repeated, and ``delay`` alone asks the same address again; the original request is not made
    again. From the first answer that something comes later, failures count from none.
    """
    said: tuple[tuple[int, dict[str, Any]], ...] = (
        (500, {}),
        (500, {}),
        (200, {"delay": 0, "update_url": "status/1"}),
        (500, {}),
        (200, {"delay": "2"}),
        (500, {}),
        (500, {}),
        (200, {"delay": 1, "update_url": "https://polls-elsewhere.example/two?a=b"}),
    )
    asked: list[Came] = []

    def answers(came: Came) -> tuple[int, bytes]:
        asked.append(came)
        status, more = said[len(asked) - 1] if len(asked) <= len(said) else (200, {})
        return status, done(came, **more)[1]

    for host in ("polls", "polls-elsewhere"):
        talk.listen(f"{host}.example", answers)
    mapping = mapped(talk, "polls", ["polls:one"], options={**QUICK, "max_attempts": 3})
    talk.sleep(MINUTE + 1)
    message_id = pushed(talk, "polls:one", {"n": 1})
    talk.sleep(12 * MINUTE + 9 * talk.gathered_s + talk.put_off_s)
    talk.came("where", [*["/in"] * 3, *["/status/1"] * 5, "/two"], [each.path for each in asked])
    talk.came("with its query", "a=b", asked[-1].query)
    talk.came("the same each time", {asked[0].body}, {each.body for each in asked})
    gaps = [(after.at - before.at) / SECOND for before, after in pairwise(asked)]
    late = LATE_S + talk.gathered_s + talk.put_off_s
    for gap, wait in zip(gaps, (10, 20, 1, 10, 2, 10, 20, 1), strict=True):
        talk.came(f"after {wait} s", lambda each, wait=wait: wait - 0.5 <= each <= 1.2 * wait + late, gap)
    [copy] = copies(talk, message_id)
    talk.is_so("in the end", {"state": "completed", "last_answer": {"attempt": 9}}, copy)
    talk.ask("DELETE", mapping)


def _changed(talk: Talk) -> None:
    """What waits is tried again as its mapping is by then: URL, token and parameters; also where it is disabled."""
    parameter = talk.ask("POST", "/parameters", {"parameter": _named("changed", "v")}, status=201)["id"]
    failing = {name: talk.listen(f"changed-{name}.example", lambda _: (500, b"")) for name in ("one", "other")}
    moved = talk.listen("changed-moved.example", done)
    options = {"retry_base": 150, "retry_cap": 150}
    mappings = {name: mapped(talk, f"changed-{name}", ["changed:one"], options=options) for name in failing}
    talk.sleep(MINUTE + 1)
    message_id = pushed(talk, "changed:one", {"n": 1})
    talk.sleep(20 + talk.put_off_s)
    for each in copies(talk, message_id):
        talk.is_so("waits", {"state": "failing", "attempts": 1, "next_attempt": str}, each)
    change = {
        "url": "https://changed-moved.example/new",
        "token": "new",
        "parameters": [parameter],
        "messages": ["changed:none"],
        "enabled": False,
    }
    talk.ask("PUT", mappings["one"], {"mapping": change})
    talk.sleep(150 * 1.2 + LATE_S + talk.gathered_s)
    named = [{"name": "older.changed", "value": "v"}]
    talk.came(
        "as it is now",
        [("/new", "new", {"n": 1, "parameters": named})],
        [(each.path, each.headers["x-augury-token"], _payload(each)) for each in moved],
    )
    talk.came("no more where it was", 1, len(failing["one"]))
    talk.came("the other's as it was", ["t"] * 2, [each.headers["x-augury-token"] for each in failing["other"][:2]])
    pushed(talk, "changed:one", {"n": 2})
    talk.sleep(20 + talk.put_off_s)
    talk.came("none while it is off", 1, len(moved))
    _removed(talk, *mappings.values(), f"/parameters/{parameter}")


def _deleted(talk: Talk) -> None:
    """What is outstanding of a mapping that was deleted is archived, and the other mapping's goes on."""
    came = {name: talk.listen(f"deleted-{name}.example", lambda _: (500, b"")) for name in ("one", "other")}
    options = {"retry_base": 60, "retry_cap": 60}
    mappings = {name: mapped(talk, f"deleted-{name}", ["deleted:one"], options=options) for name in came}
    talk.sleep(MINUTE + 1)
    message_id = pushed(talk, "deleted:one", {"n": 1})
    talk.sleep(20 + talk.put_off_s)
    talk.ask("DELETE", mappings["one"])
    before = len(came["one"])
    talk.sleep(60 * 1.2 + 2 * LATE_S)
    talk.came("no more requests", before, len(came["one"]))
    talk.came("the other's", True, len(came["other"]) >= 2)
    states = {each["consumer"]: each["state"] for each in copies(talk, message_id)}
    talk.is_so("what became of them", {"deleted-one": "never_processed", "deleted-other": "failing"}, states)
    talk.ask("DELETE", mappings["other"])
    talk.sleep(60 * 1.2 + 2 * LATE_S)


def _again(talk: Talk) -> None:
    """``attempt_now`` makes the tries of what was parked start again; an identity stays taken by what has failed."""
    long = (KEPT_OF_A_FAILURE + 1) * b"x"
    came = talk.listen("again.example", lambda _: (500, long))
    options = {**QUICK, "max_attempts": 2}
    mapping = mapped(talk, "again", ["again:one"], options=options, identifiers={"n": "payload.n"})
    talk.sleep(MINUTE + 1)
    wait = 2 * MINUTE + 2 * talk.gathered_s + talk.put_off_s
    message_id = pushed(talk, "again:one", {"n": 1})
    talk.sleep(wait, exactly=True)
    [copy] = copies(talk, message_id)
    talk.is_so("parked", {"state": "parked", "attempts": 2, "can_attempt": True}, copy)
    talk.is_so("as much of a failure as is kept", KEPT_OF_A_FAILURE, len(copy["result"]))
    talk.is_so("no next try", False, "next_attempt" in copy)
    talk.ask("PUT", f"/messages/{copy['id']}", {"attempt_now": True})
    talk.sleep(wait, exactly=True)
    talk.came("two more", 4, len(came))
    talk.ask("GET", f"/messages/{copy['id']}", shows={"state": "parked", "can_attempt": True})
    second = pushed(talk, "again:one", {"n": 1})
    talk.sleep(20 + talk.put_off_s)
    shown = {"state": "never_processed", "children": [], "reason": lambda each: message_id in each}
    talk.ask("GET", f"/messages/{second}", shows=shown)
    talk.came("no more", 4, len(came))
    talk.ask("PUT", f"/messages/{copy['id']}", {"archive": True})
    talk.ask("DELETE", mapping)


def _at_once(talk: Talk) -> None:
    """Of several messages with one identity that come together each of two mappings gets one, whichever it is."""
    came = {name: talk.listen(f"once-{name}.example", done) for name in ("one", "other")}
    mappings = [mapped(talk, f"once-{name}", ["once:one"], identifiers={"n": "payload.n"}) for name in came]
    talk.sleep(MINUTE + 1)
    ids = [pushed(talk, "once:one", {"n": number // 4, "place": number}) for number in range(8)]
    talk.sleep(30 + talk.put_off_s)
    for name, heard in came.items():
        talk.came(f"one of each identity, to {name}", [0, 1], sorted(_payload(each)["n"] for each in heard))
    states = sorted(each["state"] for message_id in ids for each in copies(talk, message_id))
    talk.is_so("and no other copies", ["completed"] * 4, states)
    _removed(talk, *mappings)


def _shared(talk: Talk) -> None:
    """Returned parameters are sent by the services of one integration from then on, and by no others; a schedule that
    two integrations need outlives one of them.
    """
    schedule = {"count": 30, "interval": "days"}

    def described(name: str, came: Came) -> tuple[int, bytes]:
        if came.path.endswith("/endpoint.json"):
            services = [
                {"name": each, "path": f"/{each}", "recommends": {"messages": [f"shared:{name}"]}}
                for each in ("p", "q")
            ]
            ticks = {"name": "r", "path": "/r", "recommends": {"messages": ["shared:tick"], "schedule": schedule}}
            return 200, json.dumps({"name": name, "services": [*services, ticks]}).encode()
        returned = [{"name": f"{name}.returned", "value": name}] if came.path == "/p" else []
        return done(came, parameters=returned)

    paths: dict[str, str] = {}
    came: dict[str, Any] = {}
    for name in ("sharing", "apart"):
        came[name] = talk.listen(f"{name}.example", partial(described, name))
        fields = {"name": name, "url": f"https://{name}.example", "token": "t", "category": "custom"}
        answer = talk.ask("POST", "/integrations", {"integration": fields}, status=201)
        paths[name] = f"/integrations/{answer['id']}"
    alone = talk.listen("shared-alone.example", done)
    mapping = mapped(talk, "shared-alone", ["shared:sharing"])
    talk.sleep(MINUTE + 1)
    for _ in range(2):
        for name in paths:
            pushed(talk, f"shared:{name}", {})
        talk.sleep(20 + talk.put_off_s)
    for name, heard in came.items():
        by_path: dict[str, list[Any]] = {}
        for each in heard:
            if each.body:
                by_path.setdefault(each.path, []).append(_payload(each).get("parameters"))
        own = [{"name": f"{name}.returned", "value": name}]
        talk.came(f"{name}'s own", {"/p": [None, own], "/q": [lambda _: True, own]}, by_path)
    talk.came("no others", [True, True], [_payload(each) == {} for each in alone])
    rows = talk.ask("GET", "/schedulers.json", shows=[{"key": "shared:tick", **schedule}])
    talk.ask("DELETE", paths.pop("sharing"))
    talk.ask("GET", "/schedulers.json", shows=[{"key": "shared:tick", **schedule, "store_id": rows[0]["store_id"]}])
    left = {each["name"] for each in talk.ask("GET", "/mappings.json")}
    talk.is_so("only the other's", {"apart.p", "apart.q", "apart.r", "shared-alone"}, left)
    _removed(talk, *paths.values(), mapping)
    talk.ask("GET", "/schedulers.json", shows=[])
    talk.ask("GET", "/mappings.json", shows=[])
    _removed(talk, *(f"/parameters/{each['id']}" for each in talk.ask("GET", "/parameters.json")))


def _described(talk: Talk) -> None:
    """At most eight endpoints are asked at a time what they do, three surely; others get 429, and are asked later."""
    sure, most = 3, 8
    paths: list[str] = []

    def registered(number: int) -> int:
        fields = {"name": f"busy{number}", "url": f"https://busy-{number}.example", "token": "t", "category": "custom"}
        answer = talk.answered("POST", "/integrations", {"integration": fields})
        if answer.status == 201:
            paths.append(f"/integrations/{answer.body['id']}")
        return answer.status

    def says(number: int, _: Came) -> tuple[int, bytes]:
        # Each is registered while the one before it is asked
        if not refused:
            asked.append(number)
            if (status := registered(number + 1)) != 201:
                refused.append(status)
        return 200, json.dumps({"name": f"busy{number}", "services": []}).encode()

    asked: list[int] = []
    refused: list[int] = []
    for number in range(1, most + 3):
        talk.listen(f"busy-{number}.example", partial(says, number))
    talk.is_so("the first", 201, registered(1))
    talk.is_so("how many at a time", lambda each: sure <= each <= most, len(asked))
    # 503 where an operator has left no more runs than that
    talk.is_so("one more", [lambda each: each in {429, 503}], refused)
    talk.is_so("later it is asked", 201, registered(len(asked) + 1))
    names = {each["name"] for each in talk.ask("GET", "/integrations.json")}
    talk.is_so("all of them", {f"busy{number}" for number in range(1, len(asked) + 2)}, names)
    _removed(talk, *paths)


def _counted(talk: Talk) -> None:
    """The overview counts what is archived, posted messages as well as copies, and what waits, by state."""
    talk.listen("counted-done.example", done)
    talk.listen("counted-fails.example", lambda _: (500, b""))
    talk.listen("counted-parks.example", lambda _: (500, b""))
    talk.listen("counted-later.example", lambda each: done(each, delay=3_600, update_url="/later"))
    mappings = [mapped(talk, "counted-done", ["counted:one", "counted:two"])]
    mappings.append(mapped(talk, "counted-fails", ["counted:one"], options={"retry_base": 3_000, "retry_cap": 3_000}))
    mappings.append(mapped(talk, "counted-parks", ["counted:one"], options={"retries_allowed": False}))
    mappings.append(mapped(talk, "counted-later", ["counted:one"]))
    talk.sleep(MINUTE + 1)
    before = talk.ask("GET", "/queues")
    for kind in ("one", "one", "two", "nobody", "nobody", "nobody"):
        pushed(talk, f"counted:{kind}", {})
    talk.sleep(MINUTE + talk.put_off_s)
    after = talk.ask("GET", "/queues")
    # Six were posted, and three copies completed
    more = {"incoming": 0, "pending": 0, "failing": 2, "parked": 2, "scheduled": 2, "archived": 6 + 3}
    talk.is_so("more of each", more, {name: after[name] - before[name] for name in more})
    for state, consumer in (("failing", "fails"), ("parked", "parks"), ("scheduled", "later")):
        rows = talk.ask("GET", f"/queues/accepted.json?state={state}&message=counted:one")
        talk.is_so(
            f"which are {state}",
            [(f"counted-{consumer}", state)] * 2,
            [(each["consumer"], each["state"]) for each in rows],
        )
    rows = talk.ask("GET", "/queues/accepted.json?message=counted:one")
    for each in rows:
        talk.ask("PUT", f"/messages/{each['id']}", {"archive": True})
    talk.sleep(10)
    left = talk.ask("GET", "/queues")
    talk.is_so("given up", {**before, "archived": before["archived"] + 15}, left)
    _removed(talk, *mappings)


def _doubled(talk: Talk) -> None:
    """Of a service that is down for long, waits double from half a minute to an hour, unless it was said otherwise."""
    says = {"status": 500}
    came = talk.listen("doubled.example", lambda each: done(each) if says["status"] == 200 else (500, b""))
    brief = talk.listen("doubled-brief.example", lambda _: (500, b""))
    mappings = [mapped(talk, "doubled", ["doubled:one"])]
    options = {"retry_base": 1, "retry_cap": 1_500, "max_attempts": 13}
    mappings.append(mapped(talk, "doubled-brief", ["doubled:one"], options=options))
    talk.sleep(MINUTE + 1)
    posted = pushed(talk, "doubled:one", {"n": 1})
    talk.sleep(6 * 3_600, exactly=True)
    for least, most, requests in ((30, 3_600, came[:11]), (1, 1_500, brief)):
        waits = [min(most, least * 2**each) for each in range(len(requests) - 1)]
        late = LATE_S + talk.gathered_s + talk.put_off_s
        lasted = [after.at - before.at for before, after in pairwise(requests)]
        shares = zip(waits, (each / 1_000_000 for each in lasted), strict=True)
        about = [wait - 1 <= each <= min(most, 1.2 * wait) + late for wait, each in shares]
        talk.came(f"from {least} s to {most} s: {lasted}", [True] * len(waits), about)
    talk.came("so often", (11, 13), (len(came[:11]), len(brief)))
    says["status"] = 200
    talk.sleep(3_600 + LATE_S + talk.put_off_s)
    states = {each["message_id"]: each["state"] for each in copies(talk, posted)}
    talk.is_so("what became of them", ["completed", "parked"], sorted(states.values()))
    for copy, state in states.items():
        if state == "parked":
            talk.ask("PUT", f"/messages/{copy}", {"archive": True})
    _removed(talk, *mappings)


def _dated(talk: Talk) -> None:
    """Times of notifications are those of the first occurrence; the same said of two messages are two."""
    tries: dict[str, int] = {}

    def answers(came: Came) -> tuple[int, bytes]:
        message_id = json.loads(came.body)["message_id"]
        tries[message_id] = tries.get(message_id, 0) + 1
        note = {"level": "warn", "subject": "dated", "description": f"{tries[message_id]}"}
        return (500 if tries[message_id] == 1 else 200), done(came, notifications=[note])[1]

    talk.listen("dated.example", answers)
    mapping = mapped(talk, "dated", ["dated:one"], options={"retry_base": 90, "retry_cap": 90})
    talk.sleep(MINUTE + 1)
    ids = [pushed(talk, "dated:one", {"n": number}) for number in range(2)]
    talk.sleep(20 + talk.put_off_s)
    talk.sleep(3, exactly=True)
    between = datetime.fromtimestamp(talk.epoch_s() - 1, UTC).isoformat().replace("+00:00", "Z")
    talk.sleep(90 * 1.2 + LATE_S)
    owners = sorted(copies(talk, each)[0]["id"] for each in ids)

    def found(**query: str) -> list[tuple[str, int]]:
        rows = talk.ask("GET", f"/notifications.json?{urlencode(query)}")
        return sorted((each["message_id"], each["occurrences"]) for each in rows if each["subject"] == "dated")

    both = [(each, 2) for each in owners]
    talk.is_so("one of each message", both, found())
    talk.is_so("until then", both, found(end_date=between))
    talk.is_so("since then", [], found(start_date=between))
    talk.ask("DELETE", mapping)


__all__ = ["through"]
