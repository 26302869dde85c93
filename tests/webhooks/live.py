"""The webhooks world in real time and with real requests, behind a port: the whole hub, with fakes for the services of
AWS.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable
from typing import Self

from tests.fakes.clock import FakeClock
from tests.webhooks.served import ServedWorld
from tests.webhooks.world import WebhooksWorld

from pushhub.egress.guard import refusal
from pushhub.egress.sender import GuardedSender
from pushhub.engine.projects.projects import Projects
from pushhub.webhooks.wiring import Webhooks

__all__ = ["LiveWorld"]

HERE = ("127.0.0.0/8",)
"""Networks that may be delivered to besides public addresses."""
WORKERS = 6
"""Functions that run in parallel."""
TICK_S = 3.0
"""Seconds between runs of background tasks: fewer than on AWS, so that no test waits a minute."""
REMAINING_MS = 20_000


class RealClock(FakeClock):
    """Shows the real time, whatever is set."""

    def now(self) -> int:
        """Epoch milliseconds."""
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)


def _worker(world: WebhooksWorld) -> Callable[[], None]:
    """What one environment of the functions does again and again: with a hub of its own, as on AWS, where no two runs
    share a process at a time.
    """
    own = copy.copy(world)
    own.__dict__.pop("hub", None)
    # What it has received of a stream is its own: a list that six shared was dispatched six times.
    own._undispatched = []

    def work() -> None:
        if not own.step():
            time.sleep(0.02)

    return work


class LiveWorld(ServedWorld):
    """A hub that runs by itself, as a context manager.

    Attributes:
        faults: What its functions raised.
    """

    def __init__(self) -> None:
        world = WebhooksWorld(clock=RealClock())
        super().__init__(world, one_at_a_time=False)
        sender = GuardedSender(now=world.clock.now, allowed_targets=HERE, threads=WORKERS)
        world.ports.sender = sender
        world.ports.check_url = lambda url, allowed: refusal(url, (*HERE, *allowed))
        self.faults: list[BaseException] = []
        self._stopping = threading.Event()
        self._tasks = world.hub.part(Webhooks).tasks
        work = [(_worker(world), 0.0) for _ in range(WORKERS)]
        self._threads = [
            threading.Thread(target=self._repeat, args=(each, pause), daemon=True)
            for each, pause in [*work, (self._tick, TICK_S)]
        ]

    def make_token(self) -> str:
        """The token of a new project."""
        projects = Projects(config=self.world.config, clock=self.world.clock)
        return projects.make_token(projects.make().project_id)

    def _tick(self) -> None:
        started = self.world.ports.task_runs.started
        while started:
            self._tasks.run_project(started.pop(), lambda: REMAINING_MS)

    def _repeat(self, work: Callable[[], object], pause: float) -> None:
        while not self._stopping.wait(pause):
            try:
                work()
            except Exception as error:  # noqa: BLE001 (whatever it is, it is told)
                self.faults.append(error)

    def __enter__(self) -> Self:
        super().__enter__()
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        for each in self._threads:
            each.join(60)
        super().__exit__(*error)
