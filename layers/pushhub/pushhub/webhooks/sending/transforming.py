"""What an endpoint's transformation makes of a message: what is then signed, sent, sized and recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.credentials import place_of, user_of
from pushhub.engine.target import Declined
from pushhub.webhooks.endpoints.transformations import check_sendable, given_url, run
from pushhub.webhooks.model.ids import message_id
from pushhub.webhooks.model.message import MessageFields
from pushhub.webhooks.model.transformation import CodeFailed, Transformation
from pushhub.webhooks.wire.transformation import webhook_of

if TYPE_CHECKING:
    from pushhub.base.ports import Vault
    from pushhub.engine.target import PushOrder
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.model.transformation import WebhookChanges
    from pushhub.webhooks.ports import Scripts


def transformed(
    order: PushOrder, endpoint: Endpoint, vault: Vault, scripts: Scripts
) -> tuple[PushOrder, Endpoint, str]:
    """The order, the endpoint and the method as an endpoint's transformation has them.

    Args:
        endpoint: Opened.

    Raises:
        Declined: It is to be sent nothing.
        CodeFailed: The code failed, or made something that cannot be sent.
        Unavailable: It could not be run.
    """
    transformation = Transformation.decode(vault.open(endpoint.project, endpoint.transformation))
    fields = MessageFields.of(order.message)
    url = given_url(endpoint.fields.url)
    try:
        if order.batch:
            events = [webhook_of(url, each.body, None, each.about) for each in order.batch]
        else:
            events = [webhook_of(url, order.body, fields.content_type, fields.event_type)]
        seed = message_id(order.message.message_id)
        changes = run(scripts, transformation, endpoint, events, now=order.message.accepted_at, seed=seed)
        if changes.cancel:
            raise Declined
        changed = _asked_at(endpoint, transformation, changes, url)
    except CodeFailed as failed:
        raise CodeFailed(transformation.without_secrets(failed.text)) from failed
    if changes.payload is not None:
        order = replace(order, body=changes.payload.encode())
    headers = {name.lower(): text for name, text in changes.headers.items()}
    if "content-type" in headers:
        about = replace(fields, content_type=headers["content-type"]).as_headers()
        order = replace(order, message=replace(order.message, headers={**order.message.headers, **about}))
    return order, changed, changes.method


def _asked_at(endpoint: Endpoint, transformation: Transformation, changes: WebhookChanges, given: str) -> Endpoint:
    """The endpoint with the URL and headers that code wants."""
    own = dict(endpoint.headers)
    fields, reach = endpoint.fields, endpoint.reach
    check_sendable(endpoint, changes)
    if changes.url is not None and changes.url != given:
        reach = transformation.reach
        if place_of(changes.url) == place_of(given):
            fields = replace(fields, url=_with_user_of(fields.url, changes.url))
        else:
            # What was given for one host is shown to no other.
            fields, own = replace(fields, url=changes.url), {}
    new = {name.lower() for name in changes.headers}
    kept = {name: text for name, text in own.items() if name.lower() not in new}
    added = {name: text for name, text in changes.headers.items() if name.lower() != "content-type"}
    return replace(endpoint, fields=fields, headers={**kept, **added}, reach=reach)


def _with_user_of(own: str, url: str) -> str:
    """A URL at the same place as the endpoint's, with its user information."""
    user = user_of(own)
    if user is None:
        return url
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{user}@{rest}"
