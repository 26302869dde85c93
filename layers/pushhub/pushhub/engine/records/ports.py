"""What records, the report and searches of the past need from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pushhub.engine.model.activity import Activity, SubscriberActivity
    from pushhub.engine.model.catalogue import Chunk, Day, Seen
    from pushhub.engine.model.delivery import Delivery
    from pushhub.engine.model.message import Message
    from pushhub.engine.model.past import PastPage, PastQuery
    from pushhub.engine.model.pulse import Pulse
    from pushhub.engine.model.record import DeliveryRecord


class PulseStore(Protocol):
    """Sends pulses through the streams of all tables that have delivery records."""

    def send(self, at: int) -> None:
        """Send the pulse that stands for a time; one that was sent already is not sent again."""


class RecordStore(Protocol):
    """Where delivery records are kept for analysis (``docs/records.md``)."""

    def write(self, records: Sequence[DeliveryRecord | Pulse], *, table: str, first: str, last: str) -> bool:
        """Store what one stream batch told of one hour; returns whether this call wrote it.

        Args:
            records: Records and pulses, at least one, all of the same date and hour.
            table: Name of the table whose stream it is.
            first: Sequence number of the stream record behind the first record.
            last: The same for the last record.
        """

    def quarantine(self, stream_record: Mapping[str, object], *, error: str, table: str, sequence: str) -> None:
        """Store a whole stream record that no delivery record could be made from, together with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A delivery report.

    Attributes:
        name: Name of its folder: its first and last day, ``2026-11-15_2026-11-21``.
        as_of: When deliveries were judged, ISO 8601.
    """

    name: str
    as_of: str


class ReportStore(Protocol):
    """Delivery reports (``docs/report.md``). They cover all projects."""

    def newest(self) -> Report | None:
        """The newest report, or None."""

    def rows(self, report: str, table: str) -> list[dict[str, Any]]:
        """The first rows of a table of a report, up to the number the report stores as JSON; none if it has no such
        table.
        """


class PastRecords(Protocol):
    """Looks through the delivery records of all projects for those of one."""

    def check(self) -> None:
        """Do nothing, where records are searched.

        Raises:
            NotFound: They are not, in this hub.
        """

    def start(self, query: PastQuery, search_id: str) -> str:
        """Start looking.

        Args:
            query: What for.
            search_id: An id of 32 characters; the same starts nothing twice.

        Returns:
            What the service behind it calls it.

        Raises:
            TryLater: That service is busy.
        """

    def look(self, query: PastQuery, run: str, after: str | None) -> PastPage:
        """What was found.

        Args:
            query: As it was started.
            run: What starting it returned.
            after: From the page before; None to begin.

        Raises:
            NotFound: The service does not know it any more.
            Invalid: ``after`` is not from this search.
        """


class PastSearchStore(Protocol):
    """Searches of the past by project; they go after a day."""

    def put(self, project_id: str, search_id: str, query: PastQuery, run: str, now: int) -> None:
        """Remember a search."""

    def get(self, project_id: str, search_id: str) -> tuple[PastQuery, str] | None:
        """A search of this project: what it looks for, and what starting it returned."""

    def count(self, project_id: str, hour: int) -> int:
        """Count one more search in an hour (its start, epoch milliseconds); how many there are now."""


class Restored(Protocol):
    """Restores lost messages and deliveries."""

    def restore(self, message: Message | None, deliveries: Sequence[Delivery]) -> None:
        """Write a message, if it is known, and deliveries in an earlier state. Existing items are left alone, but for
        deliveries in an older version.

        This has no side effects: no records are made and no work orders sent.
        """


class ActivityStore(Protocol):
    """Activity by project or subscriber and hour. A statistic: anything added twice counts twice."""

    def add_activity(self, project_id: str, hour: int, activity: Activity) -> None:
        """Add to an hour's figures.

        Args:
            hour: When the hour began, epoch milliseconds.
        """

    def activity(self, project_id: str, first: int, last: int) -> dict[int, Activity]:
        """The activity of the hours from ``first`` to ``last``, by the start of each hour.

        Hours without activity are missing.
        """

    def add_subscriber_activity(
        self, project_id: str, subscriber_id: str, hour: int, activity: SubscriberActivity
    ) -> None:
        """Add to a subscriber's figures for an hour.

        Args:
            hour: When the hour began, epoch milliseconds.
        """

    def subscriber_activity(
        self, project_id: str, subscriber_id: str, first: int, last: int
    ) -> dict[int, SubscriberActivity]:
        """Like :meth:`activity`, for one subscriber."""

    def activity_at(
        self, project_id: str, subscriber_ids: Sequence[str], hours: Sequence[int]
    ) -> dict[str, SubscriberActivity]:
        """The activity of several subscribers in these hours together, by id. Those without any are missing.

        Args:
            hours: When each began, epoch milliseconds.
        """


class Catalogue(Protocol):
    """What was accepted in the last days. Messages in it may be gone."""

    def add(self, chunks: Sequence[Chunk]) -> None:
        """Enter chunks; safe to repeat. They go by themselves."""

    def listed(self, project_id: str, day: int, before: str | None = None) -> Iterator[Seen]:
        """The messages of a project that were accepted on a day, newest first, fetched lazily.

        Args:
            day: Days since 1970.
            before: Only messages with lower ids.
        """

    def days(self, project_id: str) -> Sequence[Day]:
        """The days of which it has messages of a project, newest first."""

    def with_value(self, project_id: str, day: Day, value: str, before: str | None = None) -> Iterator[Seen]:
        """The messages of a day that probably have a value, newest first, fetched lazily: a few may not have it.

        Args:
            value: Or :data:`pushhub.engine.model.catalogue.LEFT_OUT`.
        """
