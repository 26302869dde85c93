"""Subscriptions of Notifications 2.0: rules that say which of a project's notifications are published to which
topic.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from pushhub.base.errors import Invalid
from pushhub.notifications.model.topic import Topic

APIS = (
    "alarms",
    "alarmsWithChildren",
    "events",
    "eventsWithChildren",
    "managedobjects",
    "measurements",
    "operations",
)
"""The types of notifications."""

ANY_API = "*"
"""Every type the context allows."""

WITH_CHILDREN = {"alarms": "alarmsWithChildren", "events": "eventsWithChildren"}
"""A second type under which the same notification is published if a subscription asks for it."""

BASE_FIELDS = frozenset(
    {
        "bulkOperationId",
        "count",
        "creationTime",
        "deviceId",
        "deviceName",
        "failureReason",
        "firstOccurrenceTime",
        "id",
        "lastUpdated",
        "name",
        "owner",
        "self",
        "severity",
        "source",
        "status",
        "text",
        "time",
        "type",
    }
)
"""Standard fields of the platform's objects; always copied, whatever ``fragmentsToCopy`` says."""

_QUOTED = re.compile(r"\s*'([^']*)'\s*(?:or\s*(?=')|$)", re.IGNORECASE)


class Context(StrEnum):
    """What a subscription watches."""

    MANAGED_OBJECT = "mo"
    """One source."""
    TENANT = "tenant"
    """The whole project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A publishing rule. Immutable: to change one, delete it and create another.

    Attributes:
        subscription_id: Decimal digits.
        context: What it watches.
        source: Id of the source, in ``mo`` context; empty otherwise.
        name: Name of the topic it feeds.
        apis: Types asked for; empty means no filter.
        type_filter: As the owner wrote it; empty means no filter.
        fragments: Custom fields to copy; empty means all.
        non_persistent: Whether it feeds the non-persistent topic of its name.
    """

    subscription_id: str
    project: str
    context: Context
    source: str
    name: str
    apis: tuple[str, ...] = ()
    type_filter: str = ""
    fragments: tuple[str, ...] = ()
    non_persistent: bool = False
    created_at: int

    @property
    def topic(self) -> Topic:
        """The topic it feeds."""
        return Topic(project=self.project, name=self.name, non_persistent=self.non_persistent)


def published_as(rule: Subscription, *, api: str, source: str, action: str, data: Any) -> tuple[str, ...]:
    """The types a notification is published as under a rule; empty when the rule does not match.

    Rules and sources (Notifications 2.0): ``mo`` subscriptions see updates and deletions of their source and everything
    about it, but not its creation; ``tenant`` subscriptions see creations of managed objects, alarms, events,
    operations, and measurements, the latter only if requested by name. ``*`` publishes alarms and events twice, the
    second time as ``...WithChildren``.

    Args:
        rule: The subscription.
        api: Type the publisher gave.
        source: Its source.
        action: ``CREATE``, ``UPDATE`` or ``DELETE``.
        data: The JSON value, None for binary data.
    """
    if not _in_context(rule, api=api, source=source, action=action) or not _of_type(rule, data):
        return ()
    if not rule.apis:
        return (api,)
    candidates = (api, WITH_CHILDREN.get(api, api))
    wanted = candidates if ANY_API in rule.apis else [each for each in candidates if each in rule.apis]
    return tuple(dict.fromkeys(wanted))


def _in_context(rule: Subscription, *, api: str, source: str, action: str) -> bool:
    if rule.context is Context.MANAGED_OBJECT:
        return rule.source == source and not (api == "managedobjects" and action == "CREATE")
    if api == "managedobjects":
        return action == "CREATE"
    return api != "measurements" or "measurements" in rule.apis


def _of_type(rule: Subscription, data: Any) -> bool:
    if not rule.type_filter:
        return True
    kind = data.get("type") if isinstance(data, Mapping) else None
    return isinstance(kind, str) and kind in _types_of(rule.type_filter)


@lru_cache(maxsize=1_024)
def _types_of(type_filter: str) -> frozenset[str]:
    """Many notifications are compared with the same filters."""
    return parse_type_filter(type_filter)


def parse_type_filter(text: str) -> frozenset[str]:
    """The types a filter names: ``t``, ``'t'``, or ``'a' or 'b' or ...``.

    Raises:
        Invalid: It is none of these.
    """
    stripped = text.strip()
    if "'" not in stripped:
        if not stripped or any(each.isspace() for each in stripped):
            raise Invalid(f"Invalid type filter: {text}")
        return frozenset({stripped})
    types: set[str] = set()
    at = 0
    while at < len(stripped):
        match = _QUOTED.match(stripped, at)
        if match is None or not match[1]:
            raise Invalid(f"Invalid type filter: {text}")
        types.add(match[1])
        at = match.end()
    return frozenset(types)


def copied(data: Any, fragments: tuple[str, ...]) -> Any:
    """``data`` with its base fields and the named fragments only.

    Unchanged without fragments or when it is not an object.
    """
    if not fragments or not isinstance(data, Mapping):
        return data
    kept = BASE_FIELDS | set(fragments)
    return {name: value for name, value in data.items() if name in kept}
