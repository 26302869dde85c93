"""What another sender or another hub has: copied, moved, verified."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

from simulation.promises.talks.command_line.printed import HUB, REFUSED, WRONG_USAGE
from simulation.promises.talks.talk import Talk

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def imported(mine: Talk, theirs: Talk) -> None:
    """What another sender has is copied, once, and its receivers notice nothing."""

    def copied(talk: Talk) -> None:
        _imported(talk, theirs)

    mine.through(copied)


def _imported(mine: Talk, theirs: Talk) -> None:
    theirs.ask("POST", "/event-type", {"name": "moved.made", "description": "d", "groupName": "g"}, status=201)
    app = {"name": "Moved", "uid": "moved", "throttleRate": 7, "metadata": {"a": "b"}}
    theirs.ask("POST", "/app", app, status=201)
    endpoint = {"url": "https://typed-moved.example/in", "uid": "one", "eventTypes": ["moved.made"], "channels": ["x"]}
    more = {"headers": {"X-Region": "1"}, "secret": SECRET, "description": "ü"}
    theirs.ask("POST", "/app/moved/endpoint", {**endpoint, **more}, status=201)
    words = ("import", "--from", HUB, "--token", theirs.token, "--app", "moved")
    created = [("event type", "moved.made"), ("application", "moved"), ("endpoint", "one")]

    def outcomes(shown: list[Any]) -> set[tuple[str, str, str]]:
        return {(each["kind"], str(each["name"]).rpartition("/")[2], each["outcome"]) for each in shown}

    for dry in (("--dry-run",), ()):
        shown = mine.typed(*words, *dry)
        for kind, name in created:
            mine.is_so(f"{kind} {name}", True, (kind, name, "made") in outcomes(shown))
        if dry:
            mine.ask("GET", "/app/moved", status=404)
    mine.ask("GET", "/event-type/moved.made", shows={"description": "d", "groupName": "g"})
    mine.ask("GET", "/app/moved", shows=app)
    path = "/app/moved/endpoint/one"
    mine.ask("GET", path, shows={**endpoint, "description": "ü", "disabled": False})
    mine.ask("GET", f"{path}/secret", shows={"key": SECRET})
    mine.ask("GET", f"{path}/headers", shows={"headers": {"X-Region": "1"}})
    again = mine.typed(*words)
    mine.is_so("nothing twice", False, bool(again))
    theirs.ask("PATCH", path, {"description": "new"})
    mine.is_so("what differs", True, ("endpoint", "one", "changed") in outcomes(mine.typed(*words)))
    mine.ask("GET", path, shows={"description": "new"})
    mine.typed("import", "--from", HUB, "--token", "none", code=REFUSED, says="the server there says 401")
    mine.typed("import", "--from", "ftp://x", "--token", "t", code=WRONG_USAGE)
    for talk in (mine, theirs):
        talk.ask("DELETE", "/app/moved", status=204)
        talk.ask("DELETE", "/event-type/moved.made?expunge=true", status=204)


def moved(mine: Talk, theirs: Talk) -> None:
    """A pull queue moves between projects, and what is verified."""

    def shovelled(talk: Talk) -> None:
        _shovelled(talk, theirs)

    mine.through(shovelled, _verified)


def _shovelled(mine: Talk, theirs: Talk) -> None:
    bodies = [*(f"m{number}" for number in range(103)), 300_000 * "ü", 'quo"ted \n']
    for some in (bodies[:100], bodies[100:]):
        theirs.ask("POST", "/queues/moved/messages", {"messages": [{"body": each} for each in some]}, status=201)
    theirs.ask("POST", "/queues/moved/webhook", b"\xff\xfe", status=201)
    words = ("shovel", "moved", "--from", HUB, "--project", theirs.project, "--token", theirs.token)
    mine.typed(*words, "--dry-run", shows=[{"would move": 106, "from": "moved", "to": "moved"}])
    mine.ask("GET", "/queues/moved", status=404)
    mine.typed(*words, shows=[{"moved": 106, "maybe twice": 0}])
    found = []
    for _ in range(2):
        taken = mine.ask("POST", "/queues/moved/reservations", {"n": 100, "delete": True})["messages"]
        found += [each.get("body_base64") or each["body"] for each in taken]
    mine.is_so("each once, with its bytes", sorted([*bodies, "//4="]), sorted(found))
    theirs.ask("GET", "/queues/moved/messages", shows={"messages": []})
    mine.typed(*words, shows=[{"moved": 0}])
    mine.typed("post", "moved", "back")
    back = ("shovel", "moved", "--to", HUB, *words[4:], "--queue-there", "elsewhere")
    mine.typed(*back, shows=[{"moved": 1, "from": "moved", "to": "elsewhere"}])
    theirs.ask("GET", "/queues/elsewhere/messages", shows={"messages": [{"body": "back"}]})
    own = ("--project", mine.project, "--token", mine.token)
    for bad in (("--from", HUB, *own), own, ("--from", HUB, "--to", HUB, *own), ("--from", "ftp://x", *own)):
        mine.typed("shovel", "moved", *bad, code=WRONG_USAGE)
    for talk, name in ((mine, "moved"), (theirs, "moved"), (theirs, "elsewhere")):
        talk.ask("DELETE", f"/queues/{name}")


def _verified(talk: Talk) -> None:
    """A request that is right, and which part of it is wrong."""
    body, at = '{"n": 1}', talk.epoch_s()
    key = base64.b64decode(SECRET.removeprefix("whsec_"))

    def parts(timestamp: int, signed: str = body) -> tuple[str, ...]:
        text = f"msg_1.{timestamp}.{signed}".encode()
        signature = "v1," + base64.b64encode(hmac.digest(key, text, hashlib.sha256)).decode()
        given = ("--id", "msg_1", "--timestamp", f"{timestamp}", "--signature", signature)
        return ("verify", "--secret", SECRET, *given)

    def right(rows: list[Any]) -> bool:
        return {each["state"] for each in rows} == {"ok"}

    for timestamp, ok in ((at, True), (at - 299, True), (at + 299, True), (at - 302, False), (at + 302, False)):
        shown = talk.typed(*parts(timestamp), given=body, code=0 if ok else REFUSED)
        talk.is_so(f"{timestamp - at} s", ok, right(shown))
        wrong = set() if ok else {"timestamp"}
        talk.is_so("what is wrong", wrong, {each["part"] for each in shown if each["state"] == "wrong"})
    shown = talk.typed(*parts(at), given=body + "\n", code=REFUSED)
    talk.is_so("the body", {"body"}, {each["part"] for each in shown if each["state"] == "wrong"})
    talk.typed(*parts(at - 400), "--tolerance", "500", given=body, shows=right)


__all__ = ["imported", "moved"]
