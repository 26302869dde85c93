"""Who may have messages sent where (docs/decisions/security.md). Pure.

Whoever can set a URL can have the hub send to it with the hub's rights: into a queue of the project, to a host of its
network, or anywhere with a token in the URL. So every kind of subscriber says whose a URL's destination is, and every
caller who can set one says how far it reaches. This table alone decides, when a URL is set and again at each delivery.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Scope(StrEnum):
    """Whose a destination is."""

    PUBLIC = "public"
    """Anybody's: a host that is public, or that the operator opened to all projects."""
    APPLICATION = "application"
    """The application's, which is one customer of a project."""
    PROJECT = "project"
    """The project's: its queues and topics, and hosts that the operator opened to it alone."""
    ELSEWHERE = "elsewhere"
    """Another's, opened by a token in the URL: queues of other projects, other hubs, workers."""


class Reach(StrEnum):
    """How far a caller reaches who sets a URL; stored beside URLs that callers of different reach may set."""

    PORTAL = "portal"
    """The token of an application's owner."""
    PROJECT = "project"
    """A token of the project."""
    OPERATOR = "operator"
    """Whoever runs the hub."""


_TABLE: Mapping[Reach, frozenset[Scope]] = {
    # There is no subscriber yet that is an application's own. If there is one, a portal may reach it.
    Reach.PORTAL: frozenset({Scope.PUBLIC, Scope.APPLICATION}),
    Reach.PROJECT: frozenset(Scope),
    Reach.OPERATOR: frozenset(Scope),
}


def may_reach(reach: Reach, scope: Scope) -> bool:
    """Whether a caller may have messages sent to a destination."""
    return scope in _TABLE[reach]
