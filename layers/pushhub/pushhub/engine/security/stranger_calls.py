"""Calls to strangers from a request: whoever answers slowly, or whose name servers do, keeps an execution environment
waiting, so a project may have only a few such requests at a time (docs/decisions/webhooks.md).
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from pushhub.base.errors import Unavailable
from pushhub.engine.component import Component

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pushhub.base.ports import CheckUrl, Clock
    from pushhub.engine.ports import Waits

CHECKED_WITHIN_MS = 10_000
"""Time limit for looking up the hosts of new subscribers.

Hosts not checked by then are accepted, because the guard checks each request again.
"""

LOOKUP_MS = 5_000
"""Time that the last lookup may take beyond that."""


class StrangerCalls(Component):
    """Limits calls to strangers."""

    waits: Waits  # The requests of each project that call one.
    check_url: CheckUrl  # The egress guard's check at registration.
    clock: Clock

    @contextmanager
    def begun(self, project_id: str, *, within_ms: int) -> Iterator[bool]:
        """Call a stranger within the context, if the project may have one more such request.

        Args:
            within_ms: How long the call takes at most.

        Returns:
            Whether it may.
        """
        now = self.clock.now()
        place = self.waits.enter(project_id, now=now, until=now + within_ms)
        try:
            yield place is not None
        finally:
            if place is not None:
                with suppress(Unavailable):
                    self.waits.leave(project_id, place)

    def refusal(self, project_id: str, urls: Sequence[str], allowed_targets: Sequence[str]) -> str | None:
        """Why one of some ``http`` or ``https`` URLs may not be registered; None when all may, as far as is known.

        Names are not looked up if the project has too many such requests: the guard checks each delivery.

        Args:
            urls: The URLs.
            allowed_targets: See :func:`pushhub.engine.projects.projects.allowed_targets`.
        """
        named = [each for each in urls if _has_name(each)]
        for each in urls:
            refused = None if each in named else self.check_url(each, allowed_targets)
            if refused is not None:
                return refused
        if not named:
            return None
        ends_at = self.clock.now() + CHECKED_WITHIN_MS
        with self.begun(project_id, within_ms=CHECKED_WITHIN_MS + LOOKUP_MS) as may:
            for each in named if may else ():
                if self.clock.now() >= ends_at:
                    break
                refused = self.check_url(each, allowed_targets)
                if refused is not None:
                    return refused
        return None


def _has_name(url: str) -> bool:
    """Whether the host of a URL has to be looked up."""
    # Most requests register nothing, and start without this.
    from pushhub.egress.url import InvalidTarget, parse_target  # noqa: PLC0415

    try:
        return parse_target(url).address is None
    except InvalidTarget:
        return False
