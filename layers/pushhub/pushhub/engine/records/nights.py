"""Decides each night whether the delivery report has anything to prove, and starts it if so
(docs/decisions/records.md).

On a hub at rest nothing was accepted, nothing is open, and the pulses that were sent through each table's stream are
all that came out of it. That is seen by reading them, at a small part of what a run of the report costs. Whatever else
there is, or cannot be told, is for the report.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pushhub.base.times import iso_time
from pushhub.engine.component import Component
from pushhub.engine.model.record import PULSE_EVERY_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from pushhub.base.ports import Clock, Telemetry

HOUR_MS = 3_600_000

EVERY_MS = PULSE_EVERY_S * 1000

GRACE_MS = HOUR_MS
"""How late a record may be, as in the report. So a night begins an hour after midnight (UTC)."""

LONGEST_MS = 27 * 24 * HOUR_MS
"""How old the last report may be: it also forgets days that are over, and draws what people look at."""

Pulses = dict[str, set[int]]
"""Times of pulses (epoch milliseconds), by the name of their table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proved:
    """What the newest report over all projects and seven days said.

    Attributes:
        as_of: When it judged, epoch milliseconds.
        settled: Whether it found everything accounted for, and nothing that has not ended.
        carried: Records of open deliveries that it carried over to the next night.
        quarantined: Stream records that had been set aside.
    """

    as_of: int
    settled: bool
    carried: int
    quarantined: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """What was decided.

    Attributes:
        day: The day that had begun, ``2026-11-26``.
        until: Up to when all is known to have been quiet since the newest report, epoch milliseconds.
        why: Why the report was started; empty on a quiet night.
    """

    day: str
    until: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """Lines that were put into the bucket.

    Attributes:
        pulses: The pulses among them.
        others: Whether there are others, or more than is worth a look.
    """

    pulses: Pulses
    others: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What the tables hold.

    Attributes:
        pulses: Pulses that were sent, with an entry for each table.
        messages: Whether a message is among it, or more than is worth a look.
    """

    pulses: Pulses
    messages: bool


class NightStore(Protocol):
    """Where records, reports and what was decided are."""

    def decided(self) -> Night | None:
        """The last night's decision."""

    def decide(self, night: Night) -> None:
        """Keep a decision."""

    def proved(self) -> Proved | None:
        """What the newest report said; None if there is none that can be gone by."""

    def quarantined(self) -> int:
        """How many stream records are set aside."""

    def touched(self, since: int) -> bool:
        """Whether a person has settled a finding since, or a project was erased."""

    def recorded(self, since: int) -> Recorded:
        """Lines that were put into the bucket since."""

    def held(self, since: int) -> Held:
        """What the tables hold that was accepted, or sent, since."""


class ReportRuns(Protocol):
    """Starts the report."""

    def start(self) -> bool:
        """Start it; False if it is running, for whoever's reason."""

    def quiet(self) -> None:
        """Tell whoever waits for a report that this night needs none."""


class Nights(Component):
    """Starts the delivery report on nights that have something to prove."""

    store: NightStore
    runs: ReportRuns
    clock: Clock
    telemetry: Telemetry

    def run(self) -> str:
        """Decide, once a night; may be called as often as one likes.

        Returns:
            ``report``, ``quiet``, or nothing if it is no time or was decided already.
        """
        now = self.clock.now()
        day = iso_time(now - GRACE_MS)[:10]
        decided = self.store.decided()
        if iso_time(now)[:10] != day or (decided is not None and decided.day == day):
            return ""
        proved, until = self.store.proved(), now - GRACE_MS
        since = 0
        if proved is None:
            why = "there is no report to go by"
        else:
            since = max(proved.as_of - GRACE_MS, decided.until if decided else 0)
            why = self._why(proved, since, until)
        if why:
            if not self.runs.start():
                return ""
            self.store.decide(Night(day=day, until=since, why=why))
        else:
            self.runs.quiet()
            self.store.decide(Night(day=day, until=until, why=""))
        self.telemetry.event("night_decided", report=bool(why), why=why or "nothing is new, and all pulses came")
        return "report" if why else "quiet"

    def _why(self, proved: Proved, since: int, until: int) -> str:
        """Why the report has to be made; empty if it need not."""
        for why, applies in (
            ("the last report has findings, or deliveries that have not ended", not proved.settled),
            ("the last report carried deliveries over", proved.carried > 0),
            ("the last report is four weeks old", until - proved.as_of > LONGEST_MS),
        ):
            if applies:
                return why
        if self.store.quarantined() != proved.quarantined or self.store.touched(proved.as_of - GRACE_MS):
            return "stream records were set aside, a person has settled a finding, or a project was erased"
        held = self.store.held(since)
        if held.messages:
            return "the tables hold messages that were accepted since"
        recorded = self.store.recorded(since)
        if recorded.others:
            return "there are records"
        return "pulses are missing" if _missing(held.pulses, recorded.pulses, since, until) else ""


def _missing(sent: Mapping[str, Set[int]], recorded: Mapping[str, Set[int]], since: int, until: int) -> bool:
    """Whether a pulse of a time was not sent through some table, or did not come out as a record."""
    due = {*range(-(-since // EVERY_MS) * EVERY_MS, until, EVERY_MS)}
    return any(not due <= times or not due <= recorded.get(table, set()) for table, times in sent.items())
