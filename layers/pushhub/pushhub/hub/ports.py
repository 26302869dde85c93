"""What the hub protocol stores besides the engine's messages and deliveries: a store's settings, and the log of its
messages.

Every method may raise :class:`pushhub.base.errors.Unavailable`; times are epoch milliseconds; every key starts with the
project.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pushhub.hub.model.integration import Integration
    from pushhub.hub.model.log import LoggedMessage, LogList, OpenRequest, RecordedAnswer
    from pushhub.hub.model.mapping import ServiceMapping
    from pushhub.hub.model.notice import Notice
    from pushhub.hub.model.parameters import Parameter
    from pushhub.hub.model.schedule import Scheduler


class ReadMapping(Protocol):
    """One mapping of a store at a time. Reads are consistent."""

    def mapping(self, project_id: str, mapping_id: str) -> ServiceMapping | None:
        """The mapping, or None."""


class ReadMappings(ReadMapping, Protocol):
    """Mappings of stores. All reads are consistent."""

    def mappings(self, project_id: str) -> list[ServiceMapping]:
        """All mappings of a store, in the order they were made; those that cannot be read are left out."""


class RoutedMappings(Protocol):
    """The mappings that messages are compared with."""

    def routed_mappings(self, project_id: str) -> tuple[Sequence[ServiceMapping], int]:
        """All mappings of a store that can be read, in the order they were made, and how many cannot. A change
        is in them as soon as its write is answered.
        """


class Mappings(ReadMappings, Protocol):
    """Mappings of stores. All reads are consistent."""

    def put_mapping(self, project_id: str, mapping: ServiceMapping) -> ServiceMapping:
        """Write a mapping if the stored one still has ``mapping.version``; 0 means that none is stored yet.

        Returns it with its version raised.

        Raises:
            Conflict: It changed meanwhile, or is gone.
        """

    def delete_mapping(self, project_id: str, mapping_id: str) -> bool:
        """Remove a mapping; returns whether it existed."""


class Integrations(Protocol):
    """Integrations of stores. All reads are consistent."""

    def integration(self, project_id: str, integration_id: str) -> Integration | None:
        """The integration, or None."""

    def integrations(self, project_id: str) -> list[Integration]:
        """All integrations of a store, in the order they were made."""

    def put_integration(self, project_id: str, integration: Integration) -> Integration:
        """As :meth:`Mappings.put_mapping`."""

    def delete_integration(self, project_id: str, integration_id: str) -> bool:
        """Remove an integration; returns whether it existed."""


class OneScheduler(Protocol):
    """One scheduler at a time. Reads are consistent."""

    def scheduler(self, project_id: str, scheduler_id: str) -> Scheduler | None:
        """The scheduler, or None."""

    def put_scheduler(self, scheduler: Scheduler) -> Scheduler:
        """As :meth:`Mappings.put_mapping`."""


class TickingSchedulers(OneScheduler, Protocol):
    """Schedulers as the ticking function sees them."""

    def due_schedulers(self, now: int, limit: int) -> list[Scheduler]:
        """Schedulers of all stores whose next tick has come (eventually consistent)."""


class Schedulers(OneScheduler, Protocol):
    """Schedulers of stores. All reads are consistent."""

    def schedulers(self, project_id: str) -> list[Scheduler]:
        """All schedulers of a store, in the order they were made."""

    def delete_scheduler(self, project_id: str, scheduler_id: str) -> bool:
        """Remove a scheduler; returns whether it existed."""


class ReadParameters(Protocol):
    """Parameters as sent to services. Reads are consistent."""

    def parameters(self, project_id: str) -> list[Parameter]:
        """All parameters of a store, by name."""

    def parameters_of(self, project_id: str, ids: Sequence[str]) -> list[Parameter]:
        """The parameters with the given ids, in their order; those that are gone are left out. However much a store has
        of others, little of that is read.
        """


class Parameters(ReadParameters, Protocol):
    """Parameters of stores. All reads are consistent."""

    def set_parameter(self, parameter: Parameter) -> bool:
        """Create or update a parameter by its name; one that exists keeps its type.

        Returns:
            False when the stored value, or the deletion, has a later ``as_of``: then nothing changes.
        """

    def put_parameter(self, parameter: Parameter, *, keep_type: bool) -> None:
        """Create or replace a parameter as a person wants it, even if the stored value has a later ``as_of``.

        Args:
            keep_type: Whether one that exists keeps its type.
        """

    def delete_parameter(self, project_id: str, name: str, as_of: int) -> bool:
        """Remove a parameter; returns whether it existed. For a week, no value from before ``as_of`` brings it back:
        requests that began before may be answered later.
        """


class MessageTypes(Protocol):
    """The message types that a store has used."""

    def note_type(self, project_id: str, message_type: str) -> None:
        """Record that messages of that type exist in the store."""

    def types(self, project_id: str) -> list[str]:
        """Every type noted, sorted; of very many, the first."""


class IdentityClaims(Protocol):
    """Which message has claimed which identity for a mapping."""

    def claim(self, project_id: str, mapping_id: str, identity: str, message_id: str) -> str:
        """Claim an identity for a message.

        Returns:
            The message that holds it now: this one, or the one that claimed it first.
        """


class ShownSettings(ReadMappings, ReadParameters, Protocol):
    """The settings of a store that are shown."""

    def integrations(self, project_id: str) -> list[Integration]:
        """As :meth:`Integrations.integrations`."""

    def schedulers(self, project_id: str) -> list[Scheduler]:
        """As :meth:`Schedulers.schedulers`."""

    def types(self, project_id: str) -> list[str]:
        """As :meth:`MessageTypes.types`."""


class HubSettings(
    Mappings,
    RoutedMappings,
    Integrations,
    Schedulers,
    TickingSchedulers,
    Parameters,
    MessageTypes,
    IdentityClaims,
    Protocol,
):
    """All settings of stores, as one adapter keeps them. Consumers depend on narrower ports."""


class WriteEntries(Protocol):
    """Writes the log. It is a projection of the deliveries: it may lag, and nothing is decided by it."""

    def put(self, entry: LoggedMessage) -> None:
        """Write an entry unless one with the same or a higher version is stored. Children are left as they are."""

    def add_children(self, project_id: str, message_id: str, children: Sequence[str]) -> None:
        """Record the messages that a message led to; the entry may not exist yet."""


class Entries(WriteEntries, Protocol):
    """The state of each message of a store."""

    def entry(self, project_id: str, message_id: str) -> LoggedMessage | None:
        """The entry, read consistently, or None."""

    def entries(self, project_id: str, message_ids: Sequence[str]) -> list[LoggedMessage]:
        """Entries of several messages, in the order requested; missing ones are left out."""

    def listed(
        self, project_id: str, listings: Sequence[LogList], *, before: str | None, after: str | None, limit: int
    ) -> list[LoggedMessage]:
        """Entries of some lists, newest first (eventually consistent).

        Args:
            before: Only message ids below this one.
            after: Only message ids above this one.
        """

    def count(self, project_id: str, listing: LogList) -> int:
        """How many entries a list has; for long lists a lower bound, as counted in limited time."""


class Answers(Protocol):
    """The answer to each attempt."""

    def record(self, project_id: str, message_id: str, answer: RecordedAnswer) -> RecordedAnswer:
        """Record the answer of an attempt, unless one is recorded already.

        Returns:
            The answer that is stored now.
        """

    def answer(self, project_id: str, message_id: str, attempt: int) -> RecordedAnswer | None:
        """The recorded answer of an attempt, read consistently, or None."""

    def last_answer(self, project_id: str, message_id: str) -> RecordedAnswer | None:
        """The recorded answer of the last attempt that has one."""


class OpenRequests(Protocol):
    """Which messages services are working on."""

    def note_open(self, project_id: str, message_id: str, request: OpenRequest) -> None:
        """Note a request that is about to be sent, in place of the one before it.

        Raises:
            Unavailable: It may not have been noted; nothing must be sent.
        """

    def open_requests(self, project_id: str, message_ids: Sequence[str]) -> dict[str, OpenRequest]:
        """The last request noted for each message that has one, read consistently; it may have ended since."""


class CountNotices(Protocol):
    """Stores and counts notifications."""

    def count_notification(self, notification: Notice) -> Notice:
        """Add a notification's occurrences to those stored, unless its attempt (or a later one) is counted already.

        Returns:
            The stored notification: its ``logged_at`` and ``first_attempt`` are those of the first occurrence.
        """


class Notices(CountNotices, Protocol):
    """Notifications of stores."""

    def notifications_of(self, project_id: str, message_id: str) -> list[Notice]:
        """Notifications of a message."""

    def notifications(
        self, project_id: str, *, start_at: int | None = None, end_at: int | None = None
    ) -> Iterator[Notice]:
        """Notifications of a store by their first occurrence, newest first (eventually consistent),
        read as they are asked for.

        Args:
            start_at: Only those at or after this time, epoch milliseconds.
            end_at: Only those before this time, epoch milliseconds.
        """


class HubLog(Entries, Answers, OpenRequests, Notices, Protocol):
    """The whole log, as one adapter keeps it. Consumers depend on narrower ports."""
