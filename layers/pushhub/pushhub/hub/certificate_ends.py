"""Tells that client certificates of stores' services end: by a notification of the store, which services that want
``notification:warn`` are sent, and in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.times import iso_time
from pushhub.hub.model.message import HubMessage
from pushhub.hub.model.notice import Level, Notice, message_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.base.gates import ClientCertificate
    from pushhub.base.ports import Telemetry
    from pushhub.engine.certificate_ends import EndNote, Tell
    from pushhub.hub.intake import HubIntake
    from pushhub.hub.ports import CountNotices, ReadMapping


class ServiceEnds:
    """Looks up the services of notes.

    Args:
        settings: Mappings.
        log: Notifications.
        intake: Makes what accepts the messages of notifications; called when there is something to tell.
        telemetry: Events for operators.
    """

    def __init__(
        self, *, settings: ReadMapping, log: CountNotices, intake: Callable[[], HubIntake], telemetry: Telemetry
    ) -> None:
        self._settings = settings
        self._log = log
        self._intake = intake
        self._telemetry = telemetry

    def find(self, note: EndNote) -> tuple[ClientCertificate | None, Tell] | None:
        """See :data:`pushhub.engine.certificate_ends.Find`."""
        mapping = self._settings.mapping(note.project, note.subscriber_id)
        if mapping is None:
            return None
        name = mapping.name

        def tell(certificate: ClientCertificate, days_left: int) -> None:
            when = f"ends in {days_left} day{'s' if days_left > 1 else ''}" if days_left else "has ended"
            subject = f"The client certificate for {name} {when}"
            description = f"{certificate.subject}, {iso_time(certificate.ends_at)}"
            message = self._intake().derive(
                note.project,
                HubMessage(
                    type=message_type(Level.WARN),
                    payload={"subject": subject, "description": description},
                    source=name,
                    quiet=True,
                ),
                cause=f"certificate/{note.subscriber_id}/{certificate.digest}/{note.at}",
                at=note.at,
                parent_id=None,
                hops=0,
            )
            self._log.count_notification(
                Notice.once(
                    note.project,
                    message.message_id,
                    Level.WARN,
                    subject,
                    description=description,
                    origin=name,
                    at=note.at,
                )
            )
            self._telemetry.event(
                "certificate_ending",
                project=note.project,
                mapping=note.subscriber_id,
                ends_at=iso_time(certificate.ends_at),
                days_left=days_left,
            )

        return mapping.certificate, tell
