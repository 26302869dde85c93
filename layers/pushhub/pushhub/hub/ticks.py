"""Schedulers: each minute, those that are due put their message onto the incoming queue."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.errors import Conflict, Unavailable, Unreadable
from pushhub.engine.component import Component
from pushhub.engine.faults import described
from pushhub.engine.projects.suspension import is_suspended
from pushhub.hub.model.message import HubMessage
from pushhub.hub.model.schedule import tick_after

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.ports import ProjectStore
    from pushhub.hub.intake import HubIntake
    from pushhub.hub.model.schedule import Scheduler
    from pushhub.hub.ports import TickingSchedulers

BATCH = 100
"""Schedulers looked at per query, besides those that this run has seen to: some may have failed, and stay the first."""

MARGIN_MS = 10_000
"""Kept free at the end of an invocation."""


class HubTicks(Component):
    """Makes the ticks."""

    schedulers: TickingSchedulers
    projects: ProjectStore  # Say which stores are suspended; their ticks are left out.
    # Creates the intake for their messages. Called on the first tick only, as most hubs have no schedulers.
    intake: Callable[[], HubIntake]
    clock: Clock
    telemetry: Telemetry

    def run(self, remaining_ms: Callable[[], int]) -> int:
        """Make every due tick, once each: the message's id is derived from scheduler and time, and only then does the
        scheduler move on.

        If several ticks were missed while nothing ran, only one is made up for.

        Returns:
            The number of ticks made.

        Raises:
            Unavailable: The next run continues.
        """
        ticked: set[tuple[str, int]] = set()
        failed: Exception | None = None
        while remaining_ms() > MARGIN_MS:
            now = self.clock.now()
            # The index lags slightly behind the table: a scheduler that has just ticked may still be listed.
            due = [
                each
                for each in self.schedulers.due_schedulers(now, BATCH + len(ticked))
                if (each.scheduler_id, each.next_at) not in ticked
            ]
            if not due:
                break
            for scheduler in due:
                ticked.add((scheduler.scheduler_id, scheduler.next_at))
                try:
                    self._see_to(scheduler, now)
                except Exception as error:  # noqa: BLE001 (one store's trouble must not stop the schedulers of others)
                    failed = error
                    self.telemetry.count("CallsFailed")
                    self.telemetry.event("scheduler_not_ticked", **described(error), project=scheduler.project)
        if ticked:
            self.telemetry.count("SchedulersTicked", len(ticked))
        if isinstance(failed, Unavailable) and not isinstance(failed, Unreadable):
            raise failed
        return len(ticked)

    def _see_to(self, scheduler: Scheduler, now: int) -> None:
        current = self.schedulers.scheduler(scheduler.project, scheduler.scheduler_id)
        if current is None or current.next_at > now:
            return
        if not is_suspended(self.projects, current.project):
            self._tick(current)
        # Unless it was changed concurrently, or another run made this tick.
        with suppress(Conflict):
            self.schedulers.put_scheduler(replace(current, next_at=tick_after(current.next_at, current.period_ms, now)))

    def _tick(self, scheduler: Scheduler) -> None:
        self.intake().derive(
            scheduler.project,
            HubMessage(type=scheduler.key, payload={}, origin="scheduler"),
            cause=f"tick/{scheduler.scheduler_id}/{scheduler.next_at}",
            at=scheduler.next_at,
            parent_id=None,
            hops=0,
        )
