"""Tells that client certificates of queues' subscribers end: the alerts of their project, and the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.times import iso_time
from pushhub.ironmq.wire.project_alerts import certificate_body

if TYPE_CHECKING:
    from pushhub.base.gates import ClientCertificate
    from pushhub.base.ports import Telemetry
    from pushhub.engine.certificate_ends import EndNote, Tell
    from pushhub.engine.ports import QueueSource
    from pushhub.ironmq.check_alerts import AlertPost
    from pushhub.ironmq.ports import AlertStore


class SubscriberEnds:
    """Looks up the subscribers of notes.

    Args:
        queues: Queues of owners.
        alerts: Alerts of projects.
        post: Posts to their receivers.
        base_url: Public base URL of this hub, for links.
        telemetry: Events for operators.
    """

    def __init__(
        self, *, queues: QueueSource, alerts: AlertStore, post: AlertPost, base_url: str, telemetry: Telemetry
    ) -> None:
        self._queues = queues
        self._alerts = alerts
        self._post = post
        self._base_url = base_url
        self._telemetry = telemetry

    def find(self, note: EndNote) -> tuple[ClientCertificate | None, Tell] | None:
        """See :data:`pushhub.engine.certificate_ends.Find`."""
        queue = self._queues.queue(note.project, note.group, fresh=True)
        subscriber = queue.push.subscriber(note.subscriber_id) if queue is not None and queue.push is not None else None
        if subscriber is None:
            return None
        name = subscriber.name

        def tell(certificate: ClientCertificate, days_left: int) -> None:
            for alert in self._alerts.alerts(note.project):
                if alert.queue in ("", note.group) and alert.subscriber in ("", name):
                    body = certificate_body(
                        alert,
                        certificate,
                        queue=note.group,
                        subscriber=name,
                        days_left=days_left,
                        at=note.at,
                        base_url=self._base_url,
                    )
                    self._post.once(alert, body, cause=f"certificate/{certificate.digest}/{note.at}", at=note.at)
            self._telemetry.event(
                "certificate_ending",
                project=note.project,
                queue=note.group,
                subscriber=name,
                ends_at=iso_time(certificate.ends_at),
                days_left=days_left,
            )

        return subscriber.certificate, tell
