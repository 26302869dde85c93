"""``pushhub deploy``."""

from __future__ import annotations

from datetime import UTC, datetime

import click
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from ..framework import Group
from ..hub import HubOptions
from ..operators.allowed import rights_checks
from ..operators.deployment import deployment, session_of
from ..operators.doctor import Check, account_checks, asked, round_trip, stack_checks
from ..operators.former_keys import NAME, former_key_checks
from ..operators.restoring import TABLES, put_in_place

QUICK = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 4})


@click.group(cls=Group)
def deploy() -> None:
    """A hub on AWS. Deploy it with sam deploy; see docs/deploy.md."""


@deploy.command("doctor")
@click.option("--before", is_flag=True, help="Only what matters before the first deployment.")
@click.option(
    "--key-changed",
    type=click.DateTime(["%Y-%m-%d"]),
    help="The day when the present KmsKeyArn was deployed, if the stack was updated since.",
)
@click.pass_obj
def doctor(hub: HubOptions, *, before: bool, key_changed: datetime | None) -> int:
    """Check an AWS account: what a deployment needs, and with --stack NAME whether the hub there works.

    Checks credentials, concurrency, functions and their roles, alarms and who is notified, dead letters, the report
    job, when a former key may go, and which rights the caller lacks for each operator's command. With a profile that
    has a token, it also sends a test message. Changes nothing else. The exit code is 1 if something is wrong.
    """
    known = hub.settings()
    if not (before or known.stack):
        raise click.UsageError("say --stack NAME, or --before")
    found: list[Check] = []
    there = None if before else deployment(hub)
    session = session_of(known) if there is None else there.session
    try:
        found += account_checks(lambda service: session.client(service, config=QUICK))
    except BotoCoreError as error:
        raise click.ClickException(f"AWS cannot be asked: {error}") from error
    if there is not None:
        changed = key_changed.date() if key_changed else None
        found += stack_checks(there)
        found += asked(NAME, lambda _: former_key_checks(there, changed=changed, now=datetime.now(UTC)), there)
        found += rights_checks(there)
        if known.url and known.token:
            found += round_trip(hub.rest())
        else:
            found.append(Check("a message", "skipped", "the profile has no url and token: pushhub profiles set"))
    hub.show({"check": each.name, "state": each.state, "says": each.says} for each in found)
    return 1 if any(each.state == "wrong" for each in found) else 0


@deploy.command("table")
@click.argument("name", type=click.Choice([*TABLES]))
@click.option("--empty", is_flag=True, help="Make the table, without items, if there is none.")
@click.pass_obj
def table(hub: HubOptions, name: str, *, empty: bool) -> int:
    """Give a restored table what a backup does not restore: stream, time to live, protection, and its readers.

    For a table that was lost (docs/operations.md). Can be repeated; what is as it should be is left.
    """
    done = list(put_in_place(deployment(hub), TABLES[name], empty=empty))
    hub.show({"done": each} for each in done)
    return 0
