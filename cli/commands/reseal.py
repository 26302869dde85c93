"""``pushhub reseal``."""

from __future__ import annotations

from itertools import chain

import click

from pushhub.cloud.clock import SystemClock
from pushhub.cloud.vault import KmsVault
from pushhub.engine.credentials import Credentials
from pushhub.engine.reseal import UNSEALED, Reseal, Resealed
from pushhub.engine.store.dynamodb_masked import masked_deliveries
from pushhub.engine.store.dynamodb_sealed import sealed_queues, sealed_span_exports
from pushhub.hub.store.dynamodb_sealed import SealedHubItems
from pushhub.notifications.store.secret_keys import sealed_signing_secret
from pushhub.webhooks.store.dynamodb_sealed import SealedEndpoints, masked_attempts

from ..dry import changes
from ..framework import Command
from ..hub import HubOptions
from ..operator import KEY_OUTPUT, TABLE_OUTPUT, deployment


@click.command(cls=Command)
@changes
@click.pass_obj
def reseal(hub: HubOptions) -> int:
    """Seal with the stack's first key what is stored unsealed or sealed with another key.

    Signing secrets, also that of consumers' tokens, headers and passwords of subscribers and endpoints, tokens of
    mappings and integrations, parameters; old deliveries and attempts get a mask in place of passwords
    (docs/deploy.md). Can be interrupted and repeated; the hub may run. Says which keys nothing needs any more.
    """
    found = deployment(hub)
    if KEY_OUTPUT not in found.outputs:
        raise click.ClickException(f"the stack has no output {KEY_OUTPUT}: update it first")
    first, clock, dynamodb = found.outputs[KEY_OUTPUT], SystemClock(), found.client("dynamodb")
    vault = KmsVault(found.client("kms"), first, clock)
    credentials = Credentials(vault=lambda: vault, clock=clock)
    items = chain(
        sealed_queues(dynamodb, found.outputs[TABLE_OUTPUT], clock, vault, credentials),
        sealed_span_exports(dynamodb, found.outputs[TABLE_OUTPUT], clock, credentials),
        sealed_signing_secret(dynamodb, found.outputs[TABLE_OUTPUT], clock, vault),
        SealedHubItems(dynamodb, found.outputs["HubTableName"], clock, vault, credentials).items(),
        SealedEndpoints(dynamodb, found.outputs["WebhooksTableName"], clock, vault, credentials).items(),
        masked_deliveries(dynamodb, found.outputs["MessagesTableName"], clock),
        masked_attempts(dynamodb, found.outputs["WebhooksTableName"], clock),
    )
    done = Reseal(vault=vault, first=first).run(items, dry=hub.dry_run)
    for name in done.changed:
        click.echo(f"changed meanwhile: {name}", err=True)
    for name, reason in done.failed:
        click.echo(f"not possible: {name}: {reason}", err=True)
    click.echo(
        f"{done.items} items hold something that opens something; {'to be ' if hub.dry_run else ''}sealed anew: "
        f"{done.written}. {_verdict(done, first, dry=hub.dry_run)}",
        err=True,
    )
    hub.show([{"sealed with": key, "values": count} for key, count in sorted(done.keys.items())])
    return 0 if _complete(done, dry=hub.dry_run) else 1


def _complete(done: Resealed, *, dry: bool) -> bool:
    return not (done.changed or done.failed or (dry and done.written))


def _verdict(done: Resealed, first: str, *, dry: bool) -> str:
    if done.changed:
        return "Run it again for what changed meanwhile."
    if not _complete(done, dry=dry):
        return "Keep every key for now."
    others = sorted(set(done.keys) - {first, UNSEALED})
    gone = f" It needed {', '.join(others)} before this run." if others else ""
    return f"Nothing stored here needs another key than {first}.{gone} docs/deploy.md says what else may need one."
