"""Examples of event types, sent to one endpoint regardless of its filters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pushhub.engine.component import Component
from pushhub.webhooks.applications.applications import found_application
from pushhub.webhooks.endpoints.endpoints import found_endpoint
from pushhub.webhooks.model.refusals import Refused
from pushhub.webhooks.wire.message import new_message

if TYPE_CHECKING:
    from pushhub.webhooks.applications.event_types import WebhooksEventTypes
    from pushhub.webhooks.messages.intake import Posted
    from pushhub.webhooks.messages.posting import WebhooksPosting
    from pushhub.webhooks.model.event_type import Example
    from pushhub.webhooks.ports import ReadApplications, ReadEndpoints

PING = "svix.ping"
"""An event type that always has an example."""


class WebhooksExamples(Component):
    """Sends examples."""

    applications: ReadApplications
    endpoints: ReadEndpoints
    event_types: WebhooksEventTypes
    posting: WebhooksPosting

    def send(self, project_id: str, app: str, endpoint: str, example: Example) -> Posted:
        """Send an example.

        Raises:
            NotFound: No such application, endpoint or event type.
            Unprocessable: The payload breaks a rule.
            Refused: The event type has no example (400).
        """
        application = found_application(self.applications, project_id, app)
        to = found_endpoint(self.endpoints, application, endpoint)
        payload = example.payload
        if payload is None:
            payload = self._example(project_id, example.event_type, example.index)
        return self.posting.send_to(application, to, new_message(example.event_type, payload))

    def _example(self, project_id: str, name: str, index: int) -> Any:
        if name == PING:
            return {"success": True}
        schema = (self.event_types.event_type(project_id, name).schemas or {}).get("1")
        examples = schema.get("examples", []) if isinstance(schema, dict) else []
        if index >= len(examples):
            raise Refused(400, "invalid_scheme", "The event type has no example")
        return examples[index]
