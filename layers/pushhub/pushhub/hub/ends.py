"""Tells that client certificates and signature schemes of stores' services end: by a notification of the store, which
services that want ``notification:warn`` are sent, and in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.times import end_in_words, iso_time
from pushhub.engine.component import Component
from pushhub.engine.ends import ending_certificate, ending_schemes, shown_ends
from pushhub.hub.model.message import HubMessage
from pushhub.hub.model.notice import Level, Notice, message_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pushhub.base.gates import ClientCertificate
    from pushhub.base.ports import Telemetry
    from pushhub.engine.ends import Ending, EndNote
    from pushhub.engine.ports import ProjectStore
    from pushhub.hub.intake import HubIntake
    from pushhub.hub.ports import CountNotices, ReadMappings

ORIGIN = "hub"
"""Who notifies of what the whole project hands down."""


class ServiceEnds(Component):
    """Looks up what ends at the services of notes."""

    settings: ReadMappings
    projects: ProjectStore
    log: CountNotices
    # Makes what accepts the messages of notifications; called when there is something to tell.
    intake: Callable[[], HubIntake]
    telemetry: Telemetry

    def find(self, note: EndNote) -> Iterable[Ending]:
        """See :data:`pushhub.engine.ends.Find`."""
        return self._at_service(note) if note.subscriber_id else self._inherited(note)

    def _at_service(self, note: EndNote) -> Iterable[Ending]:
        mapping = self.settings.mapping(note.project, note.subscriber_id)
        if mapping is None:
            return []
        name, about = mapping.name, {"mapping": note.subscriber_id}

        def certificate_ends(certificate: ClientCertificate, days_left: int) -> None:
            ends_at = iso_time(certificate.ends_at)
            subject = f"The client certificate for {name} {end_in_words(days_left)}"
            self._notify(note, name, subject, f"{certificate.subject}, {ends_at}")
            self._event("certificate_ending", note, ends_at, days_left, **about)

        def scheme_ends(header: str, ends_at: str, days_left: int) -> None:
            self._notify(note, name, f"The signature {header} for {name} {end_in_words(days_left)}", ends_at)
            self._event("signature_ending", note, ends_at, days_left, **about, header=header)

        return [
            *ending_certificate(mapping.certificate, certificate_ends),
            *ending_schemes(mapping.signing_ends, scheme_ends),
        ]

    def _inherited(self, note: EndNote) -> Iterable[Ending]:
        """The project's schemes, where a service is signed: whoever has no store would never read of it."""
        signed = [each.name for each in self.settings.mappings(note.project) if each.sealed]
        project = self.projects.project(note.project, within_ms=0) if signed else None
        schemes = project.signatures if project else ()

        def scheme_ends(header: str, ends_at: str, days_left: int) -> None:
            self._notify(note, ORIGIN, f"The project's signature {header} {end_in_words(days_left)}", ends_at)
            self._event("signature_ending", note, ends_at, days_left, header=header)

        return ending_schemes(shown_ends(schemes), scheme_ends)

    def _notify(self, note: EndNote, origin: str, subject: str, description: str) -> None:
        message = self.intake().derive(
            note.project,
            HubMessage(
                type=message_type(Level.WARN),
                payload={"subject": subject, "description": description},
                source=origin,
                quiet=True,
            ),
            cause=f"end/{note.subscriber_id}/{note.digest}/{note.at}",
            at=note.at,
            parent_id=None,
            hops=0,
        )
        self.log.count_notification(
            Notice.once(
                note.project,
                message.message_id,
                Level.WARN,
                subject,
                description=description,
                origin=origin,
                at=note.at,
            )
        )

    def _event(self, event: str, note: EndNote, ends_at: str, days_left: int, **about: str) -> None:
        self.telemetry.event(event, project=note.project, **about, ends_at=ends_at, days_left=days_left)
