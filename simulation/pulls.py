"""What callers of the hub's API asked of pull queues, and what they were answered: kept for whoever compares it with
what the hub has written of it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, unquote

from simulation.promises.judgement import Exchange
from simulation.promises.pull import Act, Got, Reserve

PATH = re.compile(r"/3/projects/(?P<project>[^/]+)/queues/(?P<queue>[^/]+)/(?P<rest>.+?)(\.json)?")
ACT = re.compile(r"messages/(?P<message>[^/]+)(/(?P<kind>touch|release))?")


class Pulls:
    """All that was asked of the messages of queues, by project. What is done with a message of a push queue is among
    it.

    Attributes:
        reserves: Requests for messages; with a timeout of 0 for the queue's own.
        acts: What was done with single messages; without a reservation where none was named.
    """

    def __init__(self) -> None:
        self.reserves: dict[str, list[Reserve]] = defaultdict(list)
        self.acts: dict[str, list[Act]] = defaultdict(list)

    def heard(self, method: str, path: str, body: object, exchange: Exchange, answer: Any) -> None:
        """Somebody asked for something, and this is what came of it."""
        raw, _, query = path.partition("?")
        found = PATH.fullmatch(raw)
        if found is None:
            return
        project, queue, rest = found["project"], unquote(found["queue"]), found["rest"]
        if (method, rest) == ("POST", "reservations"):
            self.reserves[project].append(_reserve(queue, exchange, _fields(body), answer))
        elif (method, rest) == ("DELETE", "messages"):
            self.acts[project] += _deletions(queue, exchange, _fields(body).get("ids"))
        elif (one := ACT.fullmatch(rest)) is not None and method == ("POST" if one["kind"] else "DELETE"):
            fields = {name: values[0] for name, values in parse_qs(query).items()} | {**_fields(body)}
            given = Act(one["kind"] or "delete", queue, exchange, one["message"], "")  # type: ignore[arg-type]
            self.acts[project].append(_act(given, fields, answer))


def _reserve(queue: str, exchange: Exchange, fields: Mapping[str, Any], answer: Any) -> Reserve:
    got = answer["messages"] if exchange.status == 200 else []
    return Reserve(
        queue,
        exchange,
        _number(fields.get("n")) or 1,
        _number(fields.get("timeout")),
        fields.get("delete") is True,
        [Got(each["id"], b"", each["reserved_count"], each["reservation_id"]) for each in got],
    )


def _act(given: Act, fields: Mapping[str, Any], answer: Any) -> Act:
    touches = given.kind == "touch"
    return replace(
        given,
        reservation_id=str(fields.get("reservation_id") or ""),
        seconds=_number(fields.get("timeout" if touches else "delay")),
        new_id=answer["reservation_id"] if touches and given.exchange.status == 200 else "",
    )


def _deletions(queue: str, exchange: Exchange, given: Any) -> list[Act]:
    """What is deleted together; nothing if the queue is cleared, or the request makes no sense."""
    entries = [each if isinstance(each, dict) else {"id": each} for each in given] if isinstance(given, list) else []
    named = dict.fromkeys((str(each.get("id")), str(each.get("reservation_id") or "")) for each in entries)
    return [
        Act("delete", queue, exchange, message_id, reservation_id, among=len(named))
        for message_id, reservation_id in named
    ]


def _fields(body: object) -> Mapping[str, Any]:
    if isinstance(body, str | bytes):
        try:
            body = json.loads(body)
        except ValueError:
            return {}
    return body if isinstance(body, dict) else {}


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


__all__ = ["Pulls"]
