"""The audit trail of changes that are made through the APIs: who, when, from where, what, before and after.

A request to a route that :attr:`pushhub.web.api.Route.is_audited` leaves two entries. The first is kept before anything
is changed: if it cannot be, nothing is. The second says how it ended. Neither holds anything that opens something.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pushhub.base.credentials import MASK, masked_headers, masked_url, named_like_a_secret
from pushhub.base.errors import Unavailable
from pushhub.base.json_text import NotJson, read
from pushhub.base.times import iso_time
from pushhub.cloud.observability import logger

ASKED: Final = "asked"
ENDED: Final = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a caller is.

    Attributes:
        project: For which project; empty if only the request's own token knows.
        kind: ``token`` of a project, ``portal`` (a token of an application's owner), or ``link`` for something that
            only the request holds.
        token: Id of the token, as ``pushhub tokens list`` shows it; empty without one.
        app: The application of a portal's token.
    """

    project: str
    kind: str = "token"
    token: str = ""
    app: str = ""


class Trail(Protocol):
    """Where entries are kept."""

    def append(self, project: str, at: str, name: str, entry: Mapping[str, Any]) -> None:
        """Keep an entry; one that is there is never changed.

        Raises:
            Unavailable: It may not have been kept.
        """

    def newest(self, project: str, after: str, most: int) -> tuple[list[dict[str, Any]], str]:
        """The entries of a project's newest changes.

        Args:
            after: Where the last answer ended; empty to begin.

        Returns:
            Both entries of each change, newest first, and where they end; empty if there are no older ones.
        """


@dataclass(slots=True, kw_only=True)
class Change:
    """A change on its way.

    Attributes:
        id: Joins both entries.
    """

    who: Identity
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    at: str = field(default_factory=lambda: iso_time(round(time.time() * 1000)))


class Audit:
    """Keeps entries, in a function that has a trail.

    Attributes:
        trail: Where; None for a hub without an audit trail.
    """

    def __init__(self) -> None:
        self.trail: Trail | None = None

    def asked(
        self, change: Change, *, action: str, where: Mapping[str, str], what: str, body: bytes, before: Any
    ) -> None:
        """Keep who wants to change what.

        Args:
            action: Name of the route.
            where: Where the request comes from.
            what: Method and path.
            before: The object's view before the change; None if there is none.

        Raises:
            Unavailable: It was not kept, so nothing may be changed.
        """
        who = change.who
        self._append(
            change,
            ASKED,
            {
                "by": {"kind": who.kind, "token": who.token, **({"app": who.app} if who.app else {})},
                "from": where,
                "action": action,
                "what": what,
                "asked": _content(body),
                "before": redacted(before),
            },
        )

    def ended(self, change: Change, *, status: int | None, created: str = "", after: Any = None) -> None:
        """Keep how it ended. If that fails, the log has it; the change is not undone.

        Args:
            status: The answer's; None if it failed, with an unknown effect.
            created: Id of what was made; empty if nothing was.
            after: The object's view after the change; None if there is none.
        """
        entry: dict[str, Any] = {"status": status, "after": redacted(after)}
        if created:
            entry["made"] = created
        try:
            self._append(change, ENDED, entry)
        except Unavailable as error:
            logger.error("audit_entry_not_kept", audit=change.id, status=status, error=str(error))

    def _append(self, change: Change, part: str, entry: Mapping[str, Any]) -> None:
        if self.trail is not None:
            whole = {"id": change.id, "at": change.at, "project": change.who.project, "part": part, **entry}
            self.trail.append(change.who.project, change.at, f"{change.id}-{part}", whole)


audit = Audit()
"""Of this function."""

_OPENS = frozenset({"value", "values", "ingestUrl", "identity"})
"""A parameter's or a header's own name is beside its value, the URL of a source has a token, and an identity is a
private key with its certificate."""
_OPENING = frozenset({"variables", "parameters"})
"""Values by names that anybody chooses: those of code, and those with which an owner signs up for a service."""
_PRIVATE = "PRIVATE KEY-----"
"""In a private key, wherever somebody puts it."""


def joined(entries: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Changes, with how each ended: ``status`` is None for those of which that is not known."""
    changes: dict[str, dict[str, Any]] = {}
    for entry in entries:
        fields = {name: value for name, value in entry.items() if name != "part"}
        if entry["part"] == ASKED:
            changes[entry["id"]] = {**fields, "made": None, "status": None, "after": None}
        elif entry["id"] in changes:
            changes[entry["id"]] |= fields
    yield from changes.values()


def redacted(value: Any) -> Any:
    """A value as an entry may hold it: by name, what opens something is masked, and so are users in URLs and values of
    headers and parameters.
    """
    try:
        return _redacted(value, hidden=False)
    except RecursionError:
        return MASK


def _redacted(value: Any, *, hidden: bool) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _field(str(name), each, hidden=hidden) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(each, hidden=hidden) for each in value]
    if isinstance(value, str):
        return MASK if value and (hidden or _PRIVATE in value) else masked_url(value)
    if value is None or isinstance(value, bool):
        return value
    return value if isinstance(value, int | float) and not hidden else MASK


def _field(name: str, value: Any, *, hidden: bool) -> Any:
    if name == "headers" and isinstance(value, Mapping):
        texts = {str(key): each if isinstance(each, str) else MASK for key, each in value.items()}
        return masked_headers(texts)
    named = name in _OPENS or (name in _OPENING and isinstance(value, Mapping)) or named_like_a_secret(name)
    return _redacted(value, hidden=hidden or named)


def _content(body: bytes) -> Any:
    """What a request's body says, if it is JSON; otherwise how long it is."""
    if not body:
        return None
    try:
        return redacted(read(body))
    except NotJson:
        return f"{len(body)} bytes"
