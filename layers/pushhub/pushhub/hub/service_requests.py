"""Requests to services: the message with the mapping's parameters, signed, through the mapping's gates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.credentials import place_of
from pushhub.base.gates import OPEN
from pushhub.base.ports import PushRequest
from pushhub.engine.attempts.traces import trace_headers
from pushhub.engine.component import Component
from pushhub.engine.model.reach import Reach
from pushhub.engine.projects.projects import allowed_targets
from pushhub.hub.tokens import token_of
from pushhub.hub.wire.answer import ANSWER_LIMIT
from pushhub.hub.wire.hops import hops_headers
from pushhub.hub.wire.request import request_body, request_headers

if TYPE_CHECKING:
    from pushhub.engine.ports import ProjectStore
    from pushhub.engine.security.credentials import Credentials
    from pushhub.engine.security.gate_sending import GateSending, Sent
    from pushhub.engine.security.signing import Signing
    from pushhub.engine.target import PushOrder
    from pushhub.hub.model.mapping import ServiceMapping
    from pushhub.hub.model.message import HubMessage
    from pushhub.hub.ports import ReadParameters


class ServiceRequests(Component):
    """Asks services."""

    config: ProjectStore
    settings: ReadParameters
    sending: GateSending
    signing: Signing
    credentials: Credentials

    def ask(self, order: PushOrder, mapping: ServiceMapping, content: HubMessage, object_id: str) -> Sent:
        """Make one request, to the service or, after it has taken the message for later, to its ``update_url``."""
        parameters = self.settings.parameters_of(order.message.project, mapping.parameter_ids)
        project, body = order.message.project, request_body(content, object_id, parameters)
        url = order.delivery.update_url or mapping.url
        signature = self.signing.signature(
            project, mapping.sealed, message_id=object_id, body=body, kind=content.type, url=url
        )
        # A token goes only where its owner sends messages.
        gated = mapping if place_of(url) == place_of(mapping.url) else OPEN
        sent = self.sending.send(
            project,
            mapping.mapping_id,
            gated,
            PushRequest(
                url=url,
                body=body,
                headers={
                    **trace_headers(self.config, order, own=True),
                    **request_headers(token_of(mapping, project, self.credentials)),
                    **signature.headers,
                    **hops_headers(order.message.hops),
                },
                timeout_s=order.subscriber.timeout_s,
                answer_limit=ANSWER_LIMIT + 1,
                allowed_targets=allowed_targets(self.config, project, Reach.PROJECT),
            ),
        )
        return replace(sent, proof=replace(sent.proof, schemes=signature.schemes)) if sent.reached else sent
