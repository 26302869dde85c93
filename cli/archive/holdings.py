"""Where a project's data lies: every kind of item in every table, and every folder of the buckets.

A kind that is missing here would stay when a project is erased. So an item that names a project and is of no kind known
here stops an erasure from being complete, and tests compare the kinds with what the stores write.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_PROJECT = "(?P<project>[0-9a-f]{24})"
_PULSE = "pulse#.*"
_OWN, _BELOW = f"P#{_PROJECT}", f"{_PROJECT}#.*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Items of one kind.

    Attributes:
        what: What they are.
        pk: Pattern of their partition keys; the group ``project`` is the owner.
        sk: Pattern of their sort keys, likewise.
        named: The attribute that begins with the owner, if neither key does; empty if nobody owns them.
        moves: Whether an export has them: not what is true of this stack alone.
    """

    what: str
    pk: str
    sk: str = ".*"
    named: str = ""
    moves: bool = True


TABLES: dict[str, tuple[Kind, ...]] = {
    "ConfigTable": (
        Kind(what="requests in progress", pk=_OWN, sk="(WAIT|CALL)#.*", moves=False),
        Kind(what="project, tokens, queues, totals, quota", pk=_OWN),
        Kind(what="owner of a token", pk="T#[0-9a-f]{64}", sk="TOKEN", named="project"),
        Kind(what="alerts", pk="ALERTS", sk=_BELOW),
        Kind(what="the hub's own", pk="WORKERS|CHANGES"),
    ),
    "MessagesTable": (
        Kind(what="messages, deliveries, ordering keys, marks", pk=_BELOW),
        Kind(what="the hub's own", pk=_PULSE, sk="pulse"),
    ),
    "ScheduleTable": (
        Kind(
            what="health, turns, lines, backlogs, successors, statistics, search",
            pk=f"(HEALTH|FLOW|LINE|WAITING|BEHIND|ATTEMPTS|FOUND|ACTIVITY|LISTED|VALUES|LEVELS)#{_PROJECT}(#.*)?",
        ),
        Kind(what="searches of the past, tokens of servers", pk=f"(PAST|TOKEN)#{_PROJECT}(#.*)?", moves=False),
        Kind(what="ends of certificates and schemes", pk="ENDS#[a-z]+", sk=f"[0-9]+#{_PROJECT}#.*"),
        Kind(what="lists of lines and circuits", pk="(LINES|CIRCUITS)#[0-9]+", sk=_BELOW),
        Kind(what="slow subscribers", pk="SLOW", sk=f"[0-9]+#{_BELOW}"),
        Kind(what="waits", pk="[0-9]+#[0-9]+", sk=f"[0-9]+#{_BELOW}"),
        Kind(what="the hub's own", pk="POSITION#[0-9]+"),
    ),
    "PullTable": (
        Kind(what="messages of pull queues and their places", pk=_BELOW),
        Kind(what="the hub's own", pk=_PULSE, sk="pulse"),
    ),
    "HubTable": (Kind(what="settings of a store", pk=_OWN), Kind(what="its log", pk=_BELOW)),
    "BacklogsTable": (
        Kind(what="topics, backlogs, subscriptions, requests", pk=_BELOW),
        Kind(what="connections", pk="C#.*", sk="C", named="topic", moves=False),
        Kind(what="the hub's own", pk=_PULSE, sk="pulse"),
    ),
    "WebhooksTable": (
        Kind(what="applications, event types, tasks", pk=_OWN),
        Kind(what="endpoints, lists, keys, attempts, portals, counts", pk=f"(A|I|L|R|T|TOLD)#{_PROJECT}(#.*)?"),
        Kind(what="who may show portals in frames", pk=f"FRAME#{_PROJECT}(#.*)?"),
        Kind(what="ends of certificates", pk="ENDS", sk=f"[0-9]+#{_PROJECT}#.*"),
        Kind(what="ends of signature schemes", pk="SCHEME-ENDS", sk=f"[0-9]+#{_PROJECT}#.*"),
        Kind(what="running tasks and their turns", pk="RUNNING(-TURNS)?", sk=f"{_PROJECT}(#.*)?"),
    ),
}
"""By the table's name in the template."""

BODIES = ("bodies", "webhooks", "hub")
"""The folders of the bodies bucket. Each has a folder for each project."""

RECORDS = {
    "records": "delivery records: what is the project's is taken out",
    "curated": "made from the records again, or the project's rows are taken out; former versions go",
    "reports": "those of all projects: gone with their retention",
    "quarantine": "made from the records again; former versions go",
    "work": "removed by the job; former versions go",
    "searches": "gone within a day",
    "audit": "changes of settings: the project's folder goes",
    "settled": "findings, by their ids",
    "jobs": "the hub's own",
}
"""The folders of the records bucket, and what becomes of a project's data there."""

PROJECT_ID = re.compile("[0-9a-f]{24}")
"""Ids of projects, as they are made."""

NOBODY = ""
"""The owner of the hub's own items."""


MENTIONS: dict[str, Any] = {
    "FilterExpression": "contains(pk, :id) OR contains(sk, :id) OR #project = :id OR begins_with(#topic, :id)",
    "ExpressionAttributeNames": {"#project": "project", "#topic": "topic"},
}
"""A scan's filter for items whose keys, or attributes that name an owner, hold the project's id ``:id``."""


def owner(table: str, item: dict[str, Any]) -> str | None:
    """The project that an item belongs to, :data:`NOBODY` for the hub's own, None if it is of no known kind."""
    return _found(table, item)[0]


def moving(table: str, item: dict[str, Any], project_id: str) -> bool:
    """Whether an item is a project's, and goes with it to another stack."""
    whose, kind = _found(table, item)
    return whose == project_id and kind is not None and kind.moves


def _found(table: str, item: dict[str, Any]) -> tuple[str | None, Kind | None]:
    pk, sk = item["pk"]["S"], item["sk"]["S"]
    for kind in TABLES[table]:
        found = re.fullmatch(kind.pk, pk, re.DOTALL), re.fullmatch(kind.sk, sk, re.DOTALL)
        if not all(found):
            continue
        named = re.match(_PROJECT, item.get(kind.named, {}).get("S", ""))
        for each in (*found, named):
            if each is not None and "project" in each.re.groupindex:
                return str(each["project"]), kind
        return NOBODY, kind
    return None, None
