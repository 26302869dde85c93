"""Posts messages to applications: decides which endpoints they are owed to, and accepts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pushhub.base.errors import RequestRefused
from pushhub.engine.component import Component
from pushhub.webhooks.messages.intake import Posted, due_at_of
from pushhub.webhooks.model.message import LISTED_MS
from pushhub.webhooks.model.refusals import conflict, not_found

if TYPE_CHECKING:
    from pushhub.engine.projects.quotas import Quotas
    from pushhub.webhooks.applications.applications import WebhooksApplications
    from pushhub.webhooks.messages.idempotency import Repeats
    from pushhub.webhooks.messages.intake import WebhooksIntake
    from pushhub.webhooks.messages.payload_check import PayloadCheck
    from pushhub.webhooks.messages.ports import MessageLog
    from pushhub.webhooks.messages.recipients import Recipients
    from pushhub.webhooks.model.application import Application, ApplicationFields
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.ports import RequestKey
    from pushhub.webhooks.wire.message import NewWebhook


class WebhooksPosting(Component):
    """Accepts messages of producers."""

    applications: WebhooksApplications
    payloads: PayloadCheck
    recipients: Recipients
    intake: WebhooksIntake
    log: MessageLog
    repeats: Repeats
    quotas: Callable[[], Quotas]  # Bounds what producers post; made when one does.

    def post(self, project_id: str, app: str, new: NewWebhook, *, key: RequestKey | None = None) -> Posted:
        """Accept a message.

        Args:
            key: Identifies repetitions of the request; None without an idempotency key.

        Raises:
            NotFound: There is no such application, and the request does not contain one to create.
            Unprocessable: The payload does not match its schema, or the key was used for another request.
            Refused: The event id is taken (409).
            QuotaExceeded: The project posts more than it may.
            Unavailable: The message may or may not have been accepted; post again.
        """
        self.payloads.check(project_id, new)
        self.quotas().take(project_id, 1)
        application = self._application(project_id, app, new.application)
        own = self.intake.next_id()
        first = self.repeats.message(project_id, key, own) if key else own
        if first != own:
            listed = self.log.listed(project_id, application.app_id, first)
            if listed is not None:
                # Complete whatever the first request left unfinished.
                self.log.list_message(listed)
                return Posted(message=listed, payload=None)
        try:
            owed = self.recipients.owed(application, new)
            self._claim_event(application, new, first)
            # A request that repeats another may run beside it, and either would send the orders.
            eagerly = application.fields.eager and first == own
            eager = self.recipients.subscribers(application, owed) if eagerly else None
            return self.intake.posted(application, new, first, owed, eager)
        except RequestRefused:
            # Whoever corrects it may use its key.
            if key:
                self.repeats.release(project_id, key)
            raise

    def take_in(self, application: Application, news: Sequence[NewWebhook]) -> list[Posted | None]:
        """Accept, in order, what came to a source with one request; see :meth:`once`.

        Raises:
            QuotaExceeded: The project's senders post more than it may.
            Unprocessable: The payload filters of the source's endpoints take too many steps.
            Unavailable: Some may or may not have been accepted; their sender posts all of them again.
        """
        self.quotas().take(application.project, len(news))
        return [self.once(application, each) for each in news]

    def once(self, application: Application, new: NewWebhook) -> Posted | None:
        """Accept a message of a sender that repeats what was not answered; None if the sender's id was there before,
        and nothing is new. What a first request left unfinished is then completed.

        Raises:
            Unprocessable: The payload filters of the application's endpoints take too many steps.
            Unavailable: The message may or may not have been accepted; its sender posts again.
        """
        project_id, event_id = application.project, new.fields.event_id
        own = first = self.intake.next_id()
        if event_id is not None:
            until = due_at_of(new, own) + LISTED_MS
            first = self.log.claim_event(project_id, application.app_id, event_id, own, until=until)
        if first != own:
            listed = self.log.listed(project_id, application.app_id, first)
            if listed is not None:
                self.log.list_message(listed)
                return None
        owed = self.recipients.owed(application, new)
        eagerly = application.fields.eager and first == own
        return self.intake.posted(
            application, new, first, owed, self.recipients.subscribers(application, owed) if eagerly else None
        )

    def send_to(self, application: Application, endpoint: Endpoint, new: NewWebhook) -> Posted:
        """Accept a message for a single endpoint, regardless of its filters."""
        engine_id, owed = self.intake.next_id(), (endpoint.endpoint_id,) if endpoint.active else ()
        self._claim_event(application, new, engine_id)
        return self.intake.posted(application, new, engine_id, owed)

    def wanted(self, project_id: str, app: str, event_type: str, channels: Sequence[str]) -> bool:
        """Whether any endpoint would get a message of an event type and channels."""
        application = self.applications.application(project_id, app)
        return self.recipients.any_wants(application, event_type, channels)

    def _claim_event(self, application: Application, new: NewWebhook, engine_id: str) -> None:
        """Claim the producer's own id of a message, if it has one.

        Raises:
            Refused: Another message has it (409).
        """
        project_id, event_id = application.project, new.fields.event_id
        if event_id is None:
            return
        due_at = due_at_of(new, engine_id)
        until = max(due_at + new.retention_ms, due_at + LISTED_MS)
        if self.log.claim_event(project_id, application.app_id, event_id, engine_id, until=until) == engine_id:
            return
        raise conflict("A message with that event id already exists")

    def _application(self, project_id: str, app: str, given: Callable[[str], ApplicationFields] | None) -> Application:
        """The application in the path; if there is none, it is created from the message's ``application``."""
        there = self.applications.find(project_id, app)
        if there is None and given is None:
            raise not_found("Application")
        return there or self.applications.named_or_brought(project_id, app, given)
