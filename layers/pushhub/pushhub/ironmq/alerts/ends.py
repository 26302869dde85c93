"""Tells that client certificates and signature schemes of queues' subscribers end: the alerts of their project, and the
log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.times import iso_time
from pushhub.engine.component import Component
from pushhub.engine.ends import ending_certificate, ending_schemes, shown_ends
from pushhub.ironmq.wire.project_alerts import EndOf, certificate_body, signature_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pushhub.base.gates import ClientCertificate
    from pushhub.base.ports import Telemetry
    from pushhub.engine.ends import Ending, EndNote
    from pushhub.engine.ports import ProjectStore, QueueSource
    from pushhub.ironmq.alerts.check_alerts import AlertPost
    from pushhub.ironmq.alerts.ports import AlertStore
    from pushhub.ironmq.model.project_alert import ProjectAlert


class SubscriberEnds(Component):
    """Looks up what ends at the subscribers of notes."""

    queues: QueueSource
    projects: ProjectStore  # Know the schemes that subscribers inherit.
    alerts: AlertStore
    post: AlertPost  # Posts to their receivers.
    base_url: str  # Public base URL of this hub, for links.
    telemetry: Telemetry  # Events for operators.

    def find(self, note: EndNote) -> Iterable[Ending]:
        """See :data:`pushhub.engine.ends.Find`."""
        return self._at_subscriber(note) if note.group else self._inherited(note)

    def _at_subscriber(self, note: EndNote) -> Iterable[Ending]:
        queue = self.queues.queue(note.project, note.group, fresh=True)
        subscriber = queue.push.subscriber(note.subscriber_id) if queue is not None and queue.push is not None else None
        if subscriber is None:
            return []
        name = subscriber.name
        about = {"queue": note.group, "subscriber": name}

        def concerns(alert: ProjectAlert) -> bool:
            return alert.queue in ("", note.group) and alert.subscriber in ("", name)

        def end(days_left: int) -> EndOf:
            return EndOf(queue=note.group, subscriber=name, days_left=days_left, at=note.at, base_url=self.base_url)

        def certificate_ends(certificate: ClientCertificate, days_left: int) -> None:
            self._post_to(note, concerns, lambda alert: certificate_body(alert, certificate, end(days_left)))
            self._log("certificate_ending", note, iso_time(certificate.ends_at), days_left, **about)

        def scheme_ends(header: str, ends_at: str, days_left: int) -> None:
            self._post_to(note, concerns, lambda alert: signature_body(alert, header, ends_at, end(days_left)))
            self._log("signature_ending", note, ends_at, days_left, **about, header=header)

        return [
            *ending_certificate(subscriber.certificate, certificate_ends),
            *ending_schemes(subscriber.signing_ends, scheme_ends),
        ]

    def _inherited(self, note: EndNote) -> Iterable[Ending]:
        """The project's schemes. Who watches a queue is told if subscribers are signed there."""
        project = self.projects.project(note.project, within_ms=0)
        schemes = project.signatures if project else ()

        def concerns(alert: ProjectAlert) -> bool:
            if not alert.queue:
                return True
            queue = self.queues.queue(note.project, alert.queue, fresh=True)
            subscribers = queue.push.subscribers if queue is not None and queue.push is not None else ()
            return any(each.sealed and alert.subscriber in ("", each.name) for each in subscribers)

        def scheme_ends(header: str, ends_at: str, days_left: int) -> None:
            end = EndOf(queue="", subscriber="", days_left=days_left, at=note.at, base_url=self.base_url)
            self._post_to(note, concerns, lambda alert: signature_body(alert, header, ends_at, end))
            self._log("signature_ending", note, ends_at, days_left, header=header)

        return ending_schemes(shown_ends(schemes), scheme_ends)

    def _post_to(
        self, note: EndNote, concerns: Callable[[ProjectAlert], bool], body: Callable[[ProjectAlert], bytes]
    ) -> None:
        cause = f"end/{note.group}/{note.subscriber_id}/{note.digest}/{note.at}"
        for alert in self.alerts.alerts(note.project):
            if concerns(alert):
                self.post.once(alert, body(alert), cause=cause, at=note.at)

    def _log(self, event: str, note: EndNote, ends_at: str, days_left: int, **about: str) -> None:
        self.telemetry.event(event, project=note.project, **about, ends_at=ends_at, days_left=days_left)
