"""What is sent to an endpoint for a message: its bytes or an event, headers, and signatures of this moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pushhub.base.signature_schemes import STANDARD, Unsigned
from pushhub.base.signing import KeyRing, signatures
from pushhub.engine.component import Component
from pushhub.engine.model.message import HOPS_HEADER
from pushhub.webhooks.endpoints.consent import origin_of
from pushhub.webhooks.model.cloud_events import STRUCTURED_TYPE, CloudEvent, Mode
from pushhub.webhooks.model.ids import IdPrefix, is_id, message_id
from pushhub.webhooks.model.message import MessageFields
from pushhub.webhooks.queues import APPLICATION

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Vault
    from pushhub.base.signature_schemes import Scheme
    from pushhub.engine.model.message import Ordering
    from pushhub.engine.model.trace import Trace
    from pushhub.engine.ports import ProjectStore
    from pushhub.engine.target import PushOrder
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.ports import Scripts

USER_AGENT = "Pushhub-Webhooks/1.0"
JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """The content sent to an endpoint for a message, apart from the signature."""

    body: bytes
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRequest:
    """A request to an endpoint.

    Attributes:
        endpoint: The endpoint, as its transformation has it asked.
        headers: All of them.
        schemes: The names of the schemes that signed it; none for Standard Webhooks alone, which records would
            otherwise name for each attempt.
    """

    endpoint: Endpoint
    url: str
    headers: Mapping[str, str]
    body: bytes
    schemes: tuple[str, ...]
    method: str = "POST"


class SignedRequests(Component):
    """Makes requests to endpoints."""

    projects: ProjectStore  # For the signatures that a project hands down.
    vault: Vault
    scripts: Callable[[], Scripts]  # Runs endpoints' code; made when the first of them has some.
    base_url: str
    clock: Clock

    def of(self, order: PushOrder, endpoint: Endpoint, trace: Trace | None) -> SignedRequest:
        """The request for an attempt.

        Args:
            endpoint: Its endpoint, with what it hides opened.
            trace: The trace that it is told, if any.

        Raises:
            Declined: Its transformation wants it to be sent nothing.
            CodeFailed: Its transformation failed.
        """
        method = "POST"
        if endpoint.transforms:
            from pushhub.webhooks.sending.transforming import transformed  # noqa: PLC0415 (only who has code pays)

            order, endpoint, method = transformed(order, endpoint, self.vault, self.scripts())
        content = self._content(order, endpoint, MessageFields.of(order.message), traced=trace is not None)
        url, headers, schemes = self._signed(order, endpoint, content, trace)
        return SignedRequest(
            endpoint=endpoint, url=url, headers=headers, body=content.body, schemes=schemes, method=method
        )

    def _content(self, order: PushOrder, endpoint: Endpoint, fields: MessageFields, *, traced: bool) -> _Content:
        """The content sent to an endpoint: the message's bytes unchanged, or an event."""
        content_type, wanted = fields.content_type or JSON_TYPE, endpoint.fields.cloud_events
        if wanted is None:
            return _Content(body=order.body, content_type=content_type)
        event = CloudEvent(
            identifier=message_id(order.message.message_id),
            source=f"{self.base_url}/api/v1/app/{endpoint.app_id}",
            type=fields.event_type,
            time=order.message.accepted_at,
            content_type=content_type,
            data=order.body,
            trace=order.message.trace if traced else None,
        )
        origin = {"WebHook-Request-Origin": origin_of(self.base_url)} if wanted.consent else {}
        if wanted.mode is Mode.BINARY:
            return _Content(body=order.body, content_type=content_type, headers={**event.headers, **origin})
        return _Content(body=event.structured, content_type=STRUCTURED_TYPE, headers=origin)

    def _signed(
        self, order: PushOrder, endpoint: Endpoint, content: _Content, trace: Trace | None
    ) -> tuple[str, dict[str, str], tuple[str, ...]]:
        """The URL to call, all headers, with signatures of this moment, and the names of the schemes."""
        now = self.clock.now()
        identifier = message_id(order.message.message_id)
        schemes = self._schemes(order, endpoint)
        keys, own = None, []
        if not endpoint.signatures or any(each.standard for each in schemes):
            keys = KeyRing.decode(self.vault.open(endpoint.project, endpoint.sealed))
        if schemes:
            from pushhub.webhooks.endpoints.signatures import secrets_of  # noqa: PLC0415 (only those who have schemes pay)

            own = secrets_of(endpoint, schemes, keys, self.vault, now)
        standard = not own or any(each.standard and each.signs_at(now) for each in schemes)
        signature = signatures(keys.live(now), identifier, now // 1000, content.body) if standard and keys else None
        headers = request_headers(
            identifier,
            now // 1000,
            signature,
            content_type=content.content_type,
            own=endpoint.headers,
            ordering=order.message.ordering,
            trace=trace,
        )
        taken = {name.lower() for name in content.headers}
        headers = {name: value for name, value in headers.items() if name.lower() not in taken} | dict(content.headers)
        taken = {name.lower() for name in headers}
        headers |= {name: value for name, value in _passed_on(order).items() if name.lower() not in taken}
        if not own:
            return endpoint.fields.url, _with_hops(order, headers), ()
        from pushhub.webhooks.endpoints.signatures import signed  # noqa: PLC0415

        fields = MessageFields.of(order.message)
        request = Unsigned(
            message_id=identifier,
            event_id=fields.event_id or identifier,
            event_type=fields.event_type,
            at=now,
            url="",
            body=content.body,
        )
        url, extra = signed(endpoint.fields.url, own, request)
        # What an endpoint itself sets may have the name of a scheme that it inherits.
        taken = {name.lower() for name in extra}
        headers = {name: value for name, value in headers.items() if name.lower() not in taken} | extra
        names = (*([STANDARD] if signature else []), *(scheme.name for scheme, _ in own))
        return url, _with_hops(order, headers), names

    def _schemes(self, order: PushOrder, endpoint: Endpoint) -> tuple[Scheme, ...]:
        """The schemes that sign an endpoint's requests; none for Standard Webhooks alone."""
        project = self.projects.project(endpoint.project)
        return endpoint.signed_by(
            APPLICATION.of(order.subscriber).signatures,
            project.signatures if project else (),
        )


def _passed_on(order: PushOrder) -> Mapping[str, str]:
    """What goes on from what a source was sent: headers of its sender."""
    return MessageFields.of(order.message).passed if _came_to_a_source(order) else {}


def _came_to_a_source(order: PushOrder) -> bool:
    return is_id(IdPrefix.SOURCE, order.message.queue.partition("/")[2])


def _with_hops(order: PushOrder, headers: dict[str, str]) -> dict[str, str]:
    """Headers that say how far the message has come, as an endpoint's URL may lead back to a hub. Nothing that an owner
    sets wins over that: by a header, by code or by a scheme's name a loop would never end.
    """
    kept = {name: value for name, value in headers.items() if name.lower() != HOPS_HEADER.lower()}
    return {**kept, HOPS_HEADER: str(order.message.hops + 1)}


def request_headers(
    identifier: str,
    timestamp: int,
    signature: str | None,
    *,
    content_type: str,
    own: Mapping[str, str],
    ordering: Ordering | None = None,
    trace: Trace | None = None,
) -> dict[str, str]:
    """The headers of a request to an endpoint: those of Standard Webhooks and those of Svix, with equal values,
    then the endpoint's own.

    Args:
        timestamp: Epoch seconds of the attempt.
        signature: See :func:`pushhub.base.signing.signatures`; None if only schemes of the endpoint's own sign. Then
            Svix's headers are left out, too: a receiver that prefers them would miss the signature.
        ordering: The message's place among those of its ordering key, sent if there is one.
        trace: Its trace, if the project passes it on.
    """
    named = {"id": identifier, "timestamp": str(timestamp)}
    signed = {} if signature is None else {**named, "signature": signature}
    headers = {
        "Accept": "*/*",
        "Content-Type": content_type,
        **{f"webhook-{name}": value for name, value in (signed or named).items()},
        **{f"svix-{name}": value for name, value in signed.items()},
        "User-Agent": USER_AGENT,
    }
    if ordering is not None:
        headers |= {"webhook-ordering-key": ordering.key, "webhook-sequence": str(ordering.sequence)}
    if trace is not None:
        headers |= trace.headers
    given = {name.lower() for name in own}
    return {name: value for name, value in headers.items() if name.lower() not in given} | dict(own)
