"""Comparing an incoming message with its store's mappings: one accepted copy for each that wants it.

Every step may be repeated: identities are claimed for the incoming message, copies have ids that follow from it, and the delivery of the incoming
message is done only when all of that is written. Mappings changed in between count as they are at the repetition.
"""

from __future__ import annotations

from pushhub.base.ports import Clock
from pushhub.engine.model.message import Message
from pushhub.hub.intake import HubIntake
from pushhub.hub.model.filters import Matches, PatternTimeout, passes
from pushhub.hub.model.identifiers import identity_of
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.model.message import HubMessage
from pushhub.hub.model.notice import Level, Notification, notification_id
from pushhub.hub.model.object_ids import to_object_id
from pushhub.hub.ports import HubLog, HubSettings

__all__ = ["HubRouter"]


class HubRouter:
    """Routes incoming messages.

    Args:
        settings: Mappings and claims.
        log: Told what a message led to.
        intake: Makes the copies.
        clock: Time.
        matches: Runs the regular expressions of filters.
    """

    def __init__(
        self, *, settings: HubSettings, log: HubLog, intake: HubIntake, clock: Clock, matches: Matches
    ) -> None:
        self._matches = matches
        self._settings = settings
        self._log = log
        self._intake = intake
        self._clock = clock

    def route(self, incoming: Message, body: bytes) -> list[Message]:
        """Make the copies of an incoming message; returns them.

        Args:
            incoming: The message.
            body: Its bytes.

        Raises:
            Unavailable: Repeat.
        """
        message = HubMessage.decode(body)
        self._intake.note_type(incoming.project, message.type)
        copies = [
            self._intake.copy(incoming, message, mapping.mapping_id)
            for mapping in self._settings.mappings(incoming.project)
            if self._goes_to(incoming, message, mapping)
        ]
        if copies:
            self._log.add_children(incoming.project, incoming.message_id, [each.message_id for each in copies])
        return copies

    def _goes_to(self, incoming: Message, message: HubMessage, mapping: ServiceMapping) -> bool:
        """Filters come first: a message that is filtered out must not use up the identity of one that passes later."""
        if not mapping.wants(message.type):
            return False
        as_sent = message.as_sent(to_object_id(incoming.message_id))
        try:
            if not passes(mapping.filters, as_sent, self._matches):
                return False
        except PatternTimeout as error:
            self._tell(incoming, mapping, str(error))
            return False
        identity = identity_of(mapping.identifiers, as_sent)
        return identity is None or self._settings.claim(
            incoming.project, mapping.mapping_id, identity, incoming.message_id
        )

    def _tell(self, incoming: Message, mapping: ServiceMapping, problem: str) -> None:
        subject = f"Not sent to {mapping.name}"
        now = self._clock.now()
        self._log.count_notification(
            Notification(
                project=incoming.project,
                notification_id=notification_id(incoming.project, incoming.message_id, Level.ERROR, subject),
                message_id=incoming.message_id,
                level=Level.ERROR,
                subject=subject,
                description=problem,
                origin=mapping.name,
                occurrences=1,
                logged_at=now,
                updated_at=now,
                first_attempt=1,
                attempt=1,
            )
        )
