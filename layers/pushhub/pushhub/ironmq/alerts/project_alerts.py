"""An owner's alerts: listed, made, changed, removed and tested."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Invalid, NotFound, QueueNotFound
from pushhub.base.ids import new_uid
from pushhub.engine.component import Component
from pushhub.engine.model.reach import Reach
from pushhub.engine.projects.projects import allowed_targets
from pushhub.ironmq.alerts.check_alerts import posted
from pushhub.ironmq.model.project_alert import Measure, ProjectAlert, is_alert_id, sampled, to_test
from pushhub.ironmq.queues.queues import named_subscriber

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.engine.ports import ProjectStore, QueueSource
    from pushhub.engine.security.stranger_calls import StrangerCalls
    from pushhub.engine.target import Targets
    from pushhub.ironmq.alerts.alert_counts import AlertCounts
    from pushhub.ironmq.alerts.check_alerts import AlertPost
    from pushhub.ironmq.alerts.ports import AlertStore
    from pushhub.ironmq.model.project_alert import AlertSettings

MOST_ALERTS = 20
"""Maximum number of alerts of a project: each is looked at every minute."""

_CHANGING = "changing an alert under contention"


class ProjectAlerts(Component):
    """An owner's alerts. Methods raise ``NotFound`` for what is not there."""

    alerts: AlertStore
    queues: QueueSource
    targets: Targets
    config: ProjectStore  # For the project's allowed targets.
    counts: AlertCounts  # What was counted of what alerts watch.
    calls: StrangerCalls  # Checks where URLs lead.
    post: AlertPost
    clock: Clock

    def all(self, project_id: str) -> list[ProjectAlert]:
        """All alerts, oldest first."""
        return sorted(self.alerts.alerts(project_id), key=lambda each: (each.created_at, each.alert_id))

    def create(self, project_id: str, settings: AlertSettings) -> ProjectAlert:
        """Create an alert. It counts what happens from now on.

        Raises:
            Invalid: There are too many, or the URL cannot be used.
            NotFound: No such queue, or it has no such subscriber.
            Unavailable: What was counted so far could not be read.
        """
        self._check(project_id, settings)
        if len(self.alerts.alerts(project_id)) >= MOST_ALERTS:
            raise Invalid(f"A project can have at most {MOST_ALERTS} alerts")
        alert = ProjectAlert(
            project=project_id, alert_id=new_uid(), created_at=self.clock.now(), **_as_fields(settings)
        )
        return self.alerts.save(self._begun(alert))

    def change(self, project_id: str, alert_id: str, settings: AlertSettings) -> ProjectAlert:
        """Replace an alert's settings. What it watches now is measured anew if that has changed.

        Raises:
            Invalid: The URL cannot be used.
            NotFound: No such alert; or no such queue or subscriber.
        """
        self._check(project_id, settings)

        def once() -> ProjectAlert:
            stored = self._found(project_id, alert_id)
            changed = replace(stored, **_as_fields(settings))
            if _watched(changed) != _watched(stored):
                changed = self._begun(replace(changed, state=replace(changed.state, samples=(), value=None)))
            return self.alerts.save(changed)

        return until_saved(once, doing=_CHANGING)

    def remove(self, project_id: str, alert_id: str) -> None:
        """Remove an alert. Notifications that are not delivered yet are dropped."""
        if not is_alert_id(alert_id) or not self.alerts.remove(project_id, alert_id):
            raise NotFound("Alert not found")

    def test(self, project_id: str, alert_id: str) -> None:
        """Send a notification that says that it is a test.

        Raises:
            Invalid: One is still to be posted.
        """

        def once() -> ProjectAlert:
            stored = self._found(project_id, alert_id)
            if stored.state.pending is not None:
                raise Invalid("A notification of this alert is about to be sent; try again in a minute")
            return self.alerts.save(to_test(stored, self.clock.now()))

        alert = until_saved(once, doing=_CHANGING)
        self.post.pending(alert)
        posted(self.alerts, alert)

    def _begun(self, alert: ProjectAlert) -> ProjectAlert:
        """The alert with what was counted up to now, which it leaves out."""
        if alert.measure is Measure.OLDEST_WAITING:
            return alert
        now = self.clock.now()
        return sampled(alert, self.counts.of(alert, now), now)[0]

    def _found(self, project_id: str, alert_id: str) -> ProjectAlert:
        stored = self.alerts.alert(project_id, alert_id) if is_alert_id(alert_id) else None
        if stored is None:
            raise NotFound("Alert not found")
        return stored

    def _check(self, project_id: str, settings: AlertSettings) -> None:
        if settings.queue:
            queue = self.queues.queue(project_id, settings.queue, fresh=True)
            if queue is None:
                raise QueueNotFound
            if settings.subscriber:
                named_subscriber(queue, settings.subscriber)
            elif not queue.is_push and settings.measure is not Measure.OLDEST_WAITING:
                raise Invalid("A pull queue has no deliveries; oldest_waiting watches it")
        self.targets.registered(settings.url, Reach.PROJECT)
        allowed = allowed_targets(self.config, project_id, Reach.PROJECT)
        refusal = self.calls.refusal(project_id, [settings.url], allowed)
        if refusal is not None:
            raise Invalid(f"url cannot be used: {refusal}")


def _as_fields(settings: AlertSettings) -> dict[str, Any]:
    return {each.name: getattr(settings, each.name) for each in fields(settings)}


def _watched(alert: ProjectAlert) -> tuple[object, ...]:
    return alert.measure, alert.minutes, alert.queue, alert.subscriber
