"""Tells owners by operational events what ends: client certificates of endpoints, and signature schemes, of endpoints
and those that endpoints inherit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.times import iso_time
from pushhub.engine.component import Component
from pushhub.engine.ends import SCHEME_DAYS, Ending, ending_certificate, scheme_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pushhub.base.gates import ClientCertificate
    from pushhub.base.signature_schemes import Scheme
    from pushhub.engine.ends import EndNote
    from pushhub.engine.ports import ProjectStore
    from pushhub.webhooks.endpoints.disabling import FoundOut
    from pushhub.webhooks.operational.operational import Operational
    from pushhub.webhooks.ports import ReadApplications, ReadEndpoints

CERTIFICATE = "endpoint.certificate_ending"
SIGNATURE = "signature.ending"


class EndpointEnds(Component):
    """Looks up the endpoints of notes."""

    endpoints: ReadEndpoints
    tell: FoundOut

    def find(self, note: EndNote) -> Iterable[Ending]:
        """See :data:`pushhub.engine.ends.Find`."""
        endpoint = self.endpoints.endpoint(note.project, note.group, note.subscriber_id)
        if endpoint is None:
            return []

        def tell(certificate: ClientCertificate, days_left: int) -> None:
            self.tell(
                CERTIFICATE,
                endpoint,
                cause=f"{CERTIFICATE}/{endpoint.endpoint_id}/{certificate.digest}/{note.at}",
                at=note.at,
                subject=certificate.subject,
                endsAt=iso_time(certificate.ends_at),
                daysLeft=days_left,
            )

        return ending_certificate(endpoint.certificate, tell)


class SignatureEnds(Component):
    """Looks up the schemes of notes: of an endpoint, an application, or the project."""

    endpoints: ReadEndpoints
    applications: ReadApplications
    projects: ProjectStore
    operational: Operational

    def find(self, note: EndNote) -> Iterable[Ending]:
        """See :data:`pushhub.engine.ends.Find`."""
        about, schemes = self._stored(note)

        def ending(scheme: Scheme) -> Ending:
            def tell(days_left: int) -> None:
                self.operational.announce(
                    note.project,
                    SIGNATURE,
                    {
                        **about,
                        "preset": scheme.preset or None,
                        "header": scheme.header,
                        "endsAt": iso_time(scheme.ends_at),
                        "daysLeft": days_left,
                    },
                    cause=f"{SIGNATURE}/{note.group}/{note.subscriber_id}/{note.digest}/{note.at}",
                    at=note.at,
                )

            return Ending(scheme_digest(scheme.header, scheme.ends_at), scheme.ends_at, SCHEME_DAYS, tell)

        return [ending(each) for each in schemes if each.ends_at]

    def _stored(self, note: EndNote) -> tuple[dict[str, object], Sequence[Scheme]]:
        """What a note is about, as an event names it, and its schemes."""
        if not note.group:
            project = self.projects.project(note.project, within_ms=0)
            return {"appId": None, "endpointId": None}, project.signatures if project else ()
        application = self.applications.application(note.project, note.group)
        about: dict[str, object] = {"appId": note.group, "appUid": application.uid if application else None}
        if application is None:
            return about, ()
        if not note.subscriber_id:
            return {**about, "endpointId": None}, application.signatures
        endpoint = self.endpoints.endpoint(note.project, note.group, note.subscriber_id)
        if endpoint is None:
            return about, ()
        return {**about, "endpointId": endpoint.endpoint_id, "endpointUid": endpoint.uid}, endpoint.signatures
