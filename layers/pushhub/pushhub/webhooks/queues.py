"""The internal queues of webhooks: one for each application, whose subscribers are its endpoints,
looked up one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.engine.component import Component
from pushhub.engine.model.answer_rules import STANDARD_RULES
from pushhub.engine.model.backoff import SCHEDULES
from pushhub.engine.model.circuit import Circuit
from pushhub.engine.model.flow import Limits
from pushhub.engine.model.queue import Attachment, PushSettings, Queue, Subscriber, internal_queue
from pushhub.engine.projects.copies import Changes, Copies
from pushhub.webhooks.model.internal_queues import (
    CONSENT_QUEUE,
    CONSENT_SCHEME,
    CONSENT_UID,
    PROTOCOL,
    READER_SCHEME,
    READERS_QUEUE,
    READERS_UID,
    queue_uid,
)

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.ports import ReadApplications, ReadEndpoints

TIMEOUT_S = 30
"""Seconds that an endpoint has for its whole answer."""

CIRCUIT = Circuit(failures=20)
"""A single message is retried on its own schedule to the end.

An endpoint that fails for many messages is probed instead, and disabled after five days.
"""


ASKED = "asked"
"""Id of the only subscriber of the queue of questions: all endpoints of a project that are asked for their consent, so
that the engine gives them no more attempts at a time than one slow subscriber.
"""

CONSENT_TIMEOUT_S = 10
"""Seconds that an endpoint has to answer a question."""

QUESTIONS_PER_S = 10
"""Questions that a project asks each second: whoever holds a portal's token chooses whom, and how often."""

_QUESTIONS = PushSettings(
    subscribers=(
        Subscriber(
            subscriber_id=ASKED,
            name=ASKED,
            url=f"{CONSENT_SCHEME}:",
            timeout_s=CONSENT_TIMEOUT_S,
            limits=Limits(rate_per_s=QUESTIONS_PER_S),
        ),
    ),
    retry=SCHEDULES["svix"],
)


READER = "reader"
"""Id of the only subscriber of the queue of readers."""

_READERS = PushSettings(
    subscribers=(Subscriber(subscriber_id=READER, name=READER, url=f"{READER_SCHEME}:", timeout_s=TIMEOUT_S),),
    retry=SCHEDULES["svix"],
)

ENDPOINT: Attachment[Endpoint] = Attachment()
"""The endpoint that a subscriber is."""

APPLICATION: Attachment[Application] = Attachment()
"""Its application."""


def subscriber_of(endpoint: Endpoint, application: Application) -> Subscriber:
    """An endpoint as a subscriber.

    If it has no rate of its own, its application's applies; the rate it consented to always applies.
    """
    own = endpoint.fields.throttle_rate or application.fields.throttle_rate
    rates = [each for each in (own, (endpoint.allowed_rate or 0) / 60) if each]
    return Subscriber(
        subscriber_id=endpoint.endpoint_id,
        name=endpoint.uid or endpoint.endpoint_id,
        url=f"{PROTOCOL if endpoint.reads is None else READER_SCHEME}:{endpoint.fields.url}",
        timeout_s=TIMEOUT_S,
        limits=Limits(rate_per_s=min(rates)) if rates else None,
        disabled=not endpoint.active,
        attached={**ENDPOINT.to(endpoint), **APPLICATION.to(application)},
    )


class WebhooksQueues(Component):
    """Implements :class:`pushhub.engine.ports.AttemptQueues` for the internal queues."""

    applications: ReadApplications
    endpoints: ReadEndpoints
    changes: Changes
    clock: Clock

    def __post_init__(self) -> None:
        self._known: Copies[Application] = Copies(self.changes, self.clock)
        self._read: Copies[Endpoint] = Copies(self.changes, self.clock)

    def queue(self, project_id: str, name: str, *, since: int | None = None) -> Queue | None:
        """The queue, or None when its application was deleted."""
        if name == CONSENT_QUEUE:
            return internal_queue(project_id, name, CONSENT_UID, _QUESTIONS)
        if name == READERS_QUEUE:
            return internal_queue(project_id, name, READERS_UID, _READERS)
        app_id = name.partition("/")[2]

        def read() -> Application | None:
            return self.applications.application(project_id, app_id)

        def find(endpoint_id: str) -> Endpoint | None:
            def read() -> Endpoint | None:
                return self.endpoints.endpoint(project_id, app_id, endpoint_id)

            return read() if since is None else self._read.find(project_id, name, read, since=since, key=endpoint_id)

        application = read() if since is None else self._known.find(project_id, name, read, since=since)
        if application is None:
            return None

        def subscriber(endpoint_id: str) -> Subscriber | None:
            found = find(endpoint_id)
            return subscriber_of(found, application) if found else None

        # There may be thousands of endpoints, but a delivery needs only one.
        push = PushSettings(
            subscribers=(), retry=SCHEDULES["svix"], rules=STANDARD_RULES, circuit=CIRCUIT, find=subscriber
        )
        return internal_queue(project_id, name, queue_uid(app_id), push)
