"""What the code of a sink makes of a batch: what is put into its bucket, data stream, queue, topic or bus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.sink_url import parse_sink_url
from pushhub.engine.component import Component
from pushhub.engine.target import Declined
from pushhub.webhooks.endpoints.transformations import given_url, run, transformation_of
from pushhub.webhooks.model.transformation import CodeFailed
from pushhub.webhooks.wire.transformation import webhook_of

if TYPE_CHECKING:
    from pushhub.base.ports import Vault
    from pushhub.engine.target import PushOrder
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.ports import Scripts


class BatchForms(Component):
    """Runs the code of sinks that are not asked by HTTP."""

    vault: Vault
    scripts: Callable[[], Scripts]  # Made when the first sink has code.

    def formed(self, order: PushOrder, sink: Endpoint) -> PushOrder:
        """An order as its sink's code has it.

        Args:
            order: With a batch, or with one event for a kind that takes one at a time.

        Raises:
            Declined: Nothing of it is to be written.
            CodeFailed: The code failed, or made something that cannot be written.
            Unavailable: It could not be run.
        """
        transformation, url = transformation_of(sink, self.vault), given_url(order.subscriber.url)
        name = order.message.headers["webhook-event-type"]
        given = [(each.body, each.about) for each in order.batch] or [(order.body, name)]
        try:
            changes = run(
                self.scripts(),
                transformation,
                sink,
                [webhook_of(url, body, None, about) for body, about in given],
                now=order.message.accepted_at,
                seed=order.message.headers["webhook-id"],
            )
        except CodeFailed as failed:
            raise CodeFailed(transformation.without_secrets(failed.text)) from failed
        if changes.cancel:
            raise Declined
        if changes.batch is not None:
            return replace(order, content=changes.batch)
        # What code returns is the whole body, as at Svix: without code it would be an envelope of payload and type.
        place = parse_sink_url(order.subscriber.url)
        bare = replace(place, options={name: each for name, each in place.options.items() if name != "body"})
        body = order.body if changes.payload is None else changes.payload.encode()
        return replace(order, body=body, subscriber=replace(order.subscriber, url=bare.text))
