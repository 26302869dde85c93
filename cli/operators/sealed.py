"""What the tables of a stack hold sealed, whatever protocol it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import click

from pushhub.cloud.clock import SystemClock
from pushhub.cloud.vault import KmsVault
from pushhub.engine.security.credentials import Credentials
from pushhub.engine.security.reseal import SealedItem
from pushhub.engine.store.dynamodb_sealed import sealed_queues, sealed_span_exports
from pushhub.hub.store.dynamodb_sealed import SealedHubItems
from pushhub.notifications.store.secret_keys import sealed_signing_secret
from pushhub.webhooks.store.dynamodb_sealed import SealedEndpoints, SealedSources

from .deployment import KEY_OUTPUT, TABLE_OUTPUT, Deployment


@dataclass(frozen=True)
class SealedTables:
    """The tables of a stack.

    Attributes:
        found: The stack.
        first: ARN of the key that seals from now on.
        vault: Opens and seals.
    """

    found: Deployment
    first: str
    vault: KmsVault

    @classmethod
    def of(cls, found: Deployment) -> SealedTables:
        """The tables of a stack.

        Raises:
            click.ClickException: It does not say which key seals.
        """
        if KEY_OUTPUT not in found.outputs:
            raise click.ClickException(f"the stack has no output {KEY_OUTPUT}: update it first")
        first = found.outputs[KEY_OUTPUT]
        return cls(found, first, KmsVault(found.client("kms"), first, SystemClock()))

    def items(self) -> Iterator[SealedItem]:
        """All items that hold what opens something."""
        dynamodb, clock, outputs, vault = self.found.client("dynamodb"), SystemClock(), self.found.outputs, self.vault
        credentials = Credentials(vault=lambda: vault, clock=clock)
        return chain(
            sealed_queues(dynamodb, outputs[TABLE_OUTPUT], clock, vault, credentials),
            sealed_span_exports(dynamodb, outputs[TABLE_OUTPUT], clock, credentials),
            sealed_signing_secret(dynamodb, outputs[TABLE_OUTPUT], clock, vault),
            SealedHubItems(dynamodb, outputs["HubTableName"], clock, vault, credentials).items(),
            SealedSources(dynamodb, outputs["WebhooksTableName"], clock, vault).items(),
            SealedEndpoints(dynamodb, outputs["WebhooksTableName"], clock, vault, credentials).items(),
        )
