"""``pushhub signing-secret``."""

from __future__ import annotations

import click

from pushhub.base.times import iso_time
from pushhub.cloud.clock import SystemClock
from pushhub.cloud.table import Table
from pushhub.cloud.vault import KmsVault
from pushhub.notifications.store.secret_keys import TAKEN_UP_AFTER_MS, SigningSecretItem

from ..dry import changes
from ..framework import Group
from ..hub import HubOptions
from ..operators.deployment import KEY_OUTPUT, TABLE_OUTPUT, deployment


@click.group(cls=Group)
def signing_secret() -> None:
    """What signs the tokens of consumers of notifications. It is made with the first token."""


@signing_secret.command("rotate")
@changes
@click.pass_obj
def rotate(hub: HubOptions) -> None:
    """Make a new secret, which signs from ten minutes later on.

    Tokens of the present one stay good until the next rotation; those of the one before it do not.
    """
    found, clock = deployment(hub), SystemClock()
    vault = KmsVault(found.client("kms"), found.outputs[KEY_OUTPUT], clock)
    item = SigningSecretItem(Table(found.client("dynamodb"), found.outputs[TABLE_OUTPUT], clock), vault, clock)
    item.rotate()
    hub.show([{"signing secret": "rotated", "signs from": iso_time(clock.now() + TAKEN_UP_AFTER_MS)}])
