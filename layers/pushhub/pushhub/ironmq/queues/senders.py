"""Whose webhooks a queue takes: what is posted to it unchanged has to be signed by the sender that its owner named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pushhub.base.errors import Invalid
from pushhub.base.signature_check import SignedPost
from pushhub.base.webhook_senders import SENDERS
from pushhub.engine.component import Component
from pushhub.engine.model.queue import AcceptedSender

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pushhub.base.ports import Clock, Vault
    from pushhub.engine.model.queue import Queue
    from pushhub.ironmq.wire.queues import AskedSender


class QueueSenders(Component):
    """Seals the secrets of senders, and verifies what they post."""

    vault: Callable[[], Vault]  # Made for the first queue that names a sender.
    base_url: str
    clock: Clock

    def changed(
        self, project_id: str, stored: AcceptedSender | None, asked: AskedSender | None
    ) -> AcceptedSender | None:
        """The sender that a queue names from now on; the stored one if nothing is asked for.

        Raises:
            Invalid: Another kind needs a secret of its own.
        """
        if asked is None:
            return stored
        if not asked.kind:
            return None
        if asked.secret is None:
            if stored is None or stored.kind != asked.kind:
                raise Invalid("webhook.secret is required")
            return stored
        if stored is not None and (stored.kind, self._secret(project_id, stored)) == (asked.kind, asked.secret):
            # A request that changes nothing writes nothing.
            return stored
        return AcceptedSender(kind=asked.kind, sealed=self.vault().seal(project_id, asked.secret.encode()))

    def check(self, queue: Queue, target: str, headers: Mapping[str, str], body: bytes) -> None:
        """Check that a request to a queue is its sender's, if it names one.

        Args:
            target: Path and query, as they were called.
            headers: Names in lower case.

        Raises:
            Unverified: It is not.
        """
        if queue.sender is not None:
            request = SignedPost(url=f"{self.base_url}{target}", headers=headers, body=body, at=self.clock.now())
            SENDERS[queue.sender.kind].verify(self._secret(queue.project, queue.sender), request)

    def _secret(self, project_id: str, sender: AcceptedSender) -> str:
        return self.vault().open(project_id, sender.sealed).decode()
