"""Operational events: the hub's own messages to a project, sent as webhooks of a hidden application: endpoints created,
changed and deleted, messages that keep failing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from pushhub.base import json_text
from pushhub.base.errors import Conflict, HubError, Unavailable
from pushhub.base.times import iso_time
from pushhub.engine.component import Component
from pushhub.engine.model.delivery import Attempt, Delivery, DeliveryState
from pushhub.webhooks.model.application import Application, ApplicationFields
from pushhub.webhooks.model.endpoint import Endpoint, wants
from pushhub.webhooks.model.ids import attempt_id, message_id
from pushhub.webhooks.model.internal_queues import CONSENT_QUEUE, OPERATIONAL_APP, queue_of
from pushhub.webhooks.model.message import DAY_MS, MessageFields
from pushhub.webhooks.model.page import KeyRange
from pushhub.webhooks.wire.message import NewWebhook
from pushhub.webhooks.wire.task import task_view

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Telemetry
    from pushhub.engine.model.message import Message
    from pushhub.webhooks.messages.intake import WebhooksIntake
    from pushhub.webhooks.model.task import Task
    from pushhub.webhooks.ports import Applications, ReadEndpoints

MOST_A_MINUTE = 20
"""Maximum number of events of one kind per minute about the messages of one endpoint: when an endpoint fails, a few
events say as much as thousands.
"""

FAILING_TRIES = 4
"""Number of failures after which an event about a message is sent."""

KEPT_MS = 90 * DAY_MS
"""How long these messages are kept, milliseconds: the default for payloads."""

Say = Callable[[Application, str, Mapping[str, object], str, int], None]
"""Posts a message to an application: the application, the event's type, its payload, what caused it (the same each
time) and when that was. Repeating the call does not post it again.
"""


class OperationalCounts(Protocol):
    """Counts the events sent."""

    def count(self, project_id: str, what: str, minute: int) -> int:
        """Count one more; returns how many there have been in that minute (minutes since 1970)."""


class OperationalPosts(Component):
    """Posts the hub's own messages."""

    intake: WebhooksIntake
    endpoints: ReadEndpoints

    def say(
        self, application: Application, event_type: str, payload: Mapping[str, object], cause: str, at: int
    ) -> None:
        """Post a message; see :data:`Say`. Nothing is stored if no endpoint wants it.

        Raises:
            Unavailable: The message may or may not have been posted; call again.
        """
        found = self.endpoints.endpoints(application.project, application.app_id, KeyRange())
        owed = tuple(each.endpoint_id for each in found if wants(each, event_type, (), type_flags=()))
        if not owed:
            return
        text = json_text.write(payload)
        new = NewWebhook(
            fields=MessageFields(event_type=event_type),
            payload=dict(payload),
            payload_text=text,
            body=text.encode(),
            retention_ms=KEPT_MS,
            application=None,
        )
        self.intake.once(application, new, owed, cause=cause, at=at)


class Operational(Component):
    """Sends operational events to projects."""

    applications: Applications
    say: Say
    counts: OperationalCounts
    clock: Clock
    telemetry: Telemetry

    def ensure(self, project_id: str) -> Application:
        """The application that sends a project's operational events; created on first use."""
        found = self.applications.application(project_id, OPERATIONAL_APP)
        if found is not None:
            return found
        now = self.clock.now()
        application = Application(
            project=project_id,
            app_id=OPERATIONAL_APP,
            fields=ApplicationFields(name="operational webhooks"),
            created_at=now,
            updated_at=now,
        )
        with suppress(Conflict):  # created concurrently
            return self.applications.put_application(application, None)
        found = self.applications.application(project_id, OPERATIONAL_APP)
        if found is None:
            raise Unavailable("making the application of operational webhooks")
        return found

    def endpoint(self, event: str, endpoint: Endpoint, /, **more: object) -> None:
        """Send an event about a change of an endpoint.

        If the event cannot be sent now, it is lost: the change has been made and must not be repeated for the event's
        sake.

        Args:
            event: ``endpoint.created`` and the like.
            more: On top of the ids.
        """
        if endpoint.app_id == OPERATIONAL_APP:
            return

        def data() -> Mapping[str, object]:
            return self._about(endpoint, more)

        cause = f"{event}/{endpoint.endpoint_id}/{endpoint.version}/{endpoint.updated_at}"
        self._try(endpoint.project, event, data, cause, endpoint.updated_at)

    def found_out(self, event: str, endpoint: Endpoint, /, *, cause: str, at: int, **more: object) -> None:
        """Send an event about something the hub found out about an endpoint. Idempotent per cause.

        Args:
            event: ``endpoint.failing`` and the like.
            at: When that was, epoch milliseconds.
            more: On top of the ids.

        Raises:
            Unavailable: The event may not have been sent; report it again.
        """
        operational = self.applications.application(endpoint.project, OPERATIONAL_APP)
        if operational is not None and endpoint.app_id != OPERATIONAL_APP:
            self.say(operational, event, {"type": event, "data": self._about(endpoint, more)}, cause, at)

    def announce(self, project_id: str, event: str, data: Mapping[str, object], *, cause: str, at: int) -> None:
        """Send an event about something of a project. Idempotent per cause.

        Args:
            at: When that was, epoch milliseconds.

        Raises:
            Unavailable: The event may not have been sent; announce it again.
        """
        operational = self.applications.application(project_id, OPERATIONAL_APP)
        if operational is not None:
            self.say(operational, event, {"type": event, "data": data}, cause, at)

    def _about(self, endpoint: Endpoint, more: Mapping[str, object]) -> Mapping[str, object]:
        application = self.applications.application(endpoint.project, endpoint.app_id)
        return {
            "appId": endpoint.app_id,
            "appUid": application.uid if application else None,
            "endpointId": endpoint.endpoint_id,
            "endpointUid": endpoint.uid,
            **more,
        }

    def task(self, task: Task) -> None:
        """Send the event that a background task ended; it may be lost as in :meth:`endpoint`."""
        shown = task_view(task)
        event = "background_task.finished"

        def data() -> Mapping[str, object]:
            return {"taskId": task.task_id, **{name: shown[name] for name in ("task", "status", "data")}}

        self._try(task.project, event, data, f"{event}/{task.task_id}", task.updated_at)

    def seen(self, message: Message, delivery: Delivery) -> None:
        """Send events about a message that failed several times, was given up, or was delivered after all: each once,
        and limited in number.

        Raises:
            Unavailable: The event may not have been sent; report it again.
        """
        event, last = _event_of(delivery), delivery.last
        if event is None or last is None or message.queue in (queue_of(OPERATIONAL_APP), CONSENT_QUEUE):
            return
        app_id = message.queue.partition("/")[2]
        operational = self.applications.application(message.project, OPERATIONAL_APP)
        application = self.applications.application(message.project, app_id) if operational else None
        if operational is None or application is None:
            return
        minute = self.clock.now() // 60_000
        if self.counts.count(message.project, f"{event}/{delivery.subscriber_id}", minute) > MOST_A_MINUTE:
            self.telemetry.count("OperationalEventsWithheld")
            return
        data = {
            "appId": application.app_id,
            "appUid": application.uid,
            "msgId": message_id(message.message_id),
            "msgEventId": MessageFields.of(message).event_id,
            "endpointId": delivery.subscriber_id,
            "lastAttempt": _attempt(message, delivery.subscriber_id, last),
        }
        payload = {"type": event, "data": data}
        self.say(operational, event, payload, f"{event}/{delivery.delivery_id}", last.finished_at)

    def _try(self, project_id: str, event: str, data: Callable[[], Mapping[str, object]], cause: str, at: int) -> None:
        try:
            operational = self.applications.application(project_id, OPERATIONAL_APP)
            if operational is not None:
                self.say(operational, event, {"type": event, "data": data()}, cause, at)
        except HubError as error:
            self.telemetry.count("OperationalEventsLost")
            self.telemetry.event("operational_event_lost", project=project_id, event=event, error=str(error))


def _event_of(delivery: Delivery) -> str | None:
    """The event for the current state of a delivery, if there is one."""
    if delivery.state is DeliveryState.EXHAUSTED:
        return "message.attempt.exhausted"
    if delivery.state is DeliveryState.DELIVERED and delivery.tries > FAILING_TRIES:
        return "message.attempt.recovered"
    if delivery.state is DeliveryState.RETRYING and delivery.tries == FAILING_TRIES:
        return "message.attempt.failing"
    return None


def _attempt(message: Message, subscriber_id: str, last: Attempt) -> dict[str, object]:
    return {
        "id": attempt_id(message.message_id, subscriber_id, last.number, last.started_at),
        "responseStatusCode": last.status_code,
        "timestamp": iso_time(last.started_at),
    }
