"""What Svix's cloud has and this hub has not: somebody who asks for it is told which feature it is, rather than left to
look for a mistake in the path.
"""

from __future__ import annotations

from typing import Final

_APP: Final = ("api", "v1", "app", "*")

NOT_OFFERED: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    ((*_APP, "endpoint", "*", "transformation"), "transformations"),
    ((*_APP, "destination"), "destinations other than HTTP endpoints"),
    ((*_APP, "integration"), "integrations with keys of their own"),
    ((*_APP, "autoconfig"), "autoconfiguration of consumers"),
    ((*_APP, "polling-endpoint"), "polling endpoints with leases; its /poller needs none"),
    (("api", "v1", "auth", "stream"), "streams"),
    (("api", "v1", "auth", "stream-portal-access"), "streams"),
    (("api", "v1", "stream"), "streams"),
    (("api", "v1", "connector"), "connectors"),
    (("ingest",), "ingest: sources of other senders' webhooks"),
)
"""The segments of the path at which each feature begins, ``*`` for any, and its name."""


def not_offered(path: str) -> str | None:
    """The feature of Svix's cloud to which a path belongs and that this hub has not; None for any other path."""
    asked = path.strip("/").split("/")
    for where, name in NOT_OFFERED:
        begins = asked[: len(where)]
        if len(begins) == len(where) and all(each in ("*", given) for each, given in zip(where, begins, strict=True)):
            return name
    return None
