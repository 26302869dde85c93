"""A customer of webhooks, as a talk has one: an application with endpoints at hosts of their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from simulation.promises.judgement import SECOND
from simulation.promises.talks.talk import Came, Talk

KIND, OTHER = "deliveries.made", "deliveries.else"
MINUTE, HOUR, DAY = 60, 3_600, 86_400
LATE_S = 75
"""What waits longer than a minute is looked after each minute."""


class Customer:
    """An application with endpoints at hosts of their own.

    Args:
        talk: Who has it.
        uid: Its uid.
        beside: Another one of the same project, who goes after it: they have the same event types.

    Attributes:
        path: Its path.
        came: What came to each endpoint, by its uid.
        says: What each endpoint answers, by its uid; 200 if it is missing.
    """

    def __init__(self, talk: Talk, uid: str, *, beside: Customer | None = None) -> None:
        self._talk = talk
        self._kinds = (KIND, OTHER) if beside is None else ()
        self.path = f"/app/{uid}"
        self.came: dict[str, Sequence[Came]] = {}
        self.says: dict[str, Any] = {}
        for name in self._kinds:
            talk.ask("POST", "/event-type", {"name": name, "description": "d"}, status=201)
        talk.ask("POST", "/app", {"name": uid, "uid": uid}, status=201)

    def endpoint(self, uid: str, **more: Any) -> Sequence[Came]:
        """Make an endpoint; what comes to it."""

        def say(came: Came) -> Any:
            said = self.says.get(uid, (200, b""))
            return said(came) if callable(said) else said

        host = f"{self.path.rpartition('/')[2]}-{uid}.example"
        self.came[uid] = self._talk.listen(host, say)
        fields = {"url": f"https://{host}/in", "uid": uid, **more}
        self._talk.ask("POST", f"{self.path}/endpoint", fields, status=201)
        return self.came[uid]

    def post(self, number: int, kind: str = KIND, **more: Any) -> str:
        """Post a message; its id."""
        body = {"eventType": kind, "payload": {"n": number}, **more}
        return str(self._talk.ask("POST", f"{self.path}/msg", body, status=202)["id"])

    def numbers(self, uid: str) -> list[int]:
        """The messages that came to an endpoint, in order."""
        return [json.loads(each.body)["n"] for each in self.came[uid]]

    def state(self, message_id: str) -> dict[str, tuple[int, Any]]:
        """What became of a message at each endpoint: its status, and when it is tried next."""
        rows = self._talk.ask("GET", f"{self.path}/msg/{message_id}/endpoint")["data"]
        return {each["uid"]: (each["status"], each["nextAttempt"]) for each in rows}

    def over(self) -> None:
        """Remove it."""
        self._talk.ask("DELETE", self.path, status=204)
        for name in self._kinds:
            self._talk.ask("DELETE", f"/event-type/{name}?expunge=true", status=204)


def gaps(came: Sequence[Came]) -> list[float]:
    """Seconds between requests."""
    return [(after.at - before.at) / SECOND for before, after in pairwise(came)]


__all__ = ["DAY", "HOUR", "KIND", "LATE_S", "MINUTE", "OTHER", "Customer", "gaps"]
