"""What Svix's cloud has and this hub has not: somebody who asks for it is told which feature it is, rather than left to
look for a mistake in the path.
"""

from __future__ import annotations

from typing import Final

_APP: Final = ("api", "v1", "app", "*")

_BATCHES: Final = "batches of destinations: messages are pushed to them one by one, as to any endpoint"

NOT_OFFERED: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    ((*_APP, "destination", "*", "force-retry"), _BATCHES),
    ((*_APP, "destination", "*", "skip"), _BATCHES),
    ((*_APP, "destination", "*", "next-event"), _BATCHES),
    ((*_APP, "destination", "*", "last-acked-event"), _BATCHES),
    ((*_APP, "destination", "*", "attempt"), _BATCHES),
    ((*_APP, "destination", "*", "headers"), "headers of destinations"),
    ((*_APP, "integration", "*", "key"), "an integration's key again: it is shown once, when it is made by key/rotate"),
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
