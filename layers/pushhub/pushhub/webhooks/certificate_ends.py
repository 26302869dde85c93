"""Tells by an operational event that the client certificates of endpoints end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.times import iso_time
from pushhub.engine.ends import ending_certificate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pushhub.base.gates import ClientCertificate
    from pushhub.engine.ends import Ending, EndNote
    from pushhub.webhooks.disabling import FoundOut
    from pushhub.webhooks.ports import ReadEndpoints

EVENT = "endpoint.certificate_ending"


class EndpointEnds:
    """Looks up the endpoints of notes."""

    def __init__(self, *, endpoints: ReadEndpoints, tell: FoundOut) -> None:
        self._endpoints = endpoints
        self._tell = tell

    def find(self, note: EndNote) -> Iterable[Ending]:
        """See :data:`pushhub.engine.ends.Find`."""
        endpoint = self._endpoints.endpoint(note.project, note.group, note.subscriber_id)
        if endpoint is None:
            return []

        def tell(certificate: ClientCertificate, days_left: int) -> None:
            self._tell(
                EVENT,
                endpoint,
                cause=f"{EVENT}/{endpoint.endpoint_id}/{certificate.digest}/{note.at}",
                at=note.at,
                subject=certificate.subject,
                endsAt=iso_time(certificate.ends_at),
                daysLeft=days_left,
            )

        return ending_certificate(endpoint.certificate, tell)
