"""``pushhub signing-secret``."""

from __future__ import annotations

import click

from pushhub.base.times import iso_time
from pushhub.cloud.clock import SystemClock
from pushhub.cloud.table import Table
from pushhub.cloud.vault import KmsVault
from pushhub.notifications.store.secret_keys import TAKEN_UP_AFTER_MS, SigningSecretItem, copy_of_stack

from ..dry import changes
from ..framework import Group
from ..hub import HubOptions
from ..operator import KEY_OUTPUT, OWN_RIGHTS, TABLE_OUTPUT, deployment


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


@signing_secret.command("copy")
@changes
@click.pass_obj
def copy(hub: HubOptions) -> None:
    """Copy the secret of a stack made before 2026-11-27 out of Secrets Manager, before that stack is updated.

    The update deletes it there, and tokens would be lost with it (docs/deploy.md). Acts with your own rights, those of
    who deploys, unless you say --role-arn. Can be repeated; the hub may run.
    """
    hub.role_arn = hub.role_arn or OWN_RIGHTS
    found = deployment(hub)
    if not found.name:
        raise click.UsageError("say --stack NAME: on this machine the update copies it by itself")
    copied = copy_of_stack(found.client, found.name, SystemClock())
    said = {True: "copied", False: "was copied before", None: "nothing to copy: the stack has none in Secrets Manager"}
    hub.show([{"signing secret": said[copied]}])
