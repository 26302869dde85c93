"""When a former key may go: what is still sealed or encrypted with it, and what ends by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from pushhub.base.errors import HubError
from pushhub.engine.security.reseal import Reseal

from .deployment import Deployment
from .doctor import Check
from .lasting import PLACES, UPLOADED, anything, lasting
from .sealed import SealedTables

NAME = "former keys"
QUEUES_DAYS = 14
"""How long a queue keeps a message at most: it was encrypted when it was sent."""
BACKUPS_DAYS = 35
"""How far back a table can be restored: a backup holds what was sealed before."""
BODIES_DAYS, WEBHOOKS_DAYS, AUDIT_DAYS = 40, 460, 400
"""The rules of the buckets in the template."""
LATE_DAYS = 2
"""A rule takes effect at the midnight after its days, and S3 may take a while to remove the objects."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What ends by itself, some days after the key changed.

    Attributes:
        what: For people.
        days: How many at most.
        bucket: Where it lies, by the bucket's name in the template; empty for what cannot be asked for.
        folder: Of the bucket.
    """

    what: str
    days: int
    bucket: str = ""
    folder: str = ""


def endings(chosen: Mapping[str, str]) -> tuple[Ending, ...]:
    """What ends by itself in a stack with these parameters."""
    kept = int(chosen.get("RecordsRetentionDays", "400"))
    versions = int(chosen.get("BodyVersionsDays", "0"))
    return (
        Ending("messages in queues", QUEUES_DAYS),
        Ending("backups of tables", BACKUPS_DAYS),
        Ending("bodies", BODIES_DAYS + versions, "BodiesBucket", "bodies/"),
        Ending("payloads of webhooks", WEBHOOKS_DAYS + versions, "BodiesBucket", "webhooks/"),
        Ending("delivery records", kept + QUEUES_DAYS, "RecordsBucket", "records/"),
        Ending("reports", kept + QUEUES_DAYS, "RecordsBucket", "reports/"),
        Ending("the audit trail", AUDIT_DAYS + QUEUES_DAYS, "RecordsBucket", "audit/"),
    )


def former_key_checks(hub: Deployment, *, changed: date | None, now: datetime) -> Iterator[Check]:
    """A line for each key in ``OldKmsKeyArns``: whether it may go, and if not, why or until when.

    Args:
        changed: When the present key was deployed. None for the last update of the stack: nothing written since has
            another key, but it may have changed long before.
    """
    (stack,) = hub.client("cloudformation").describe_stacks(StackName=hub.name)["Stacks"]
    chosen = {each["ParameterKey"]: each["ParameterValue"] for each in stack.get("Parameters", [])}
    former = [each for each in chosen.get("OldKmsKeyArns", "").split(",") if each]
    if not former:
        yield Check(NAME, "ok", "there are none")
        return
    try:
        needed = _needed(hub)
        waits = _waits(hub, chosen, changed or _updated(stack), now)
    except HubError as error:
        yield Check(NAME, "wrong", f"keep every key: not everything could be looked at: {error}")
        return
    for key in former:
        reasons = [f"{count} {what}" for what, count in needed.get(key, {}).items() if count]
        if reasons:
            yield Check(f"former key {key}", "warning", f"still needed by {', '.join(reasons)}")
        elif waits:
            yield Check(f"former key {key}", "warning", f"wait for what ends by itself: {', '.join(waits)}")
        else:
            yield Check(f"former key {key}", "ok", "nothing needs it: it may go (docs/deploy.md#keys)")


def _needed(hub: Deployment) -> dict[str, Counter[str]]:
    """What stays until somebody does something, by key."""
    tables = SealedTables.of(hub)
    found = Reseal(vault=tables.vault, first=tables.first).run(tables.items(), dry=True)
    if found.failed:
        name, reason = found.failed[0]
        raise HubError(f"{name}: {reason}")
    needed: dict[str, Counter[str]] = {}
    for key, count in found.keys.items():
        needed.setdefault(key, Counter())["sealed values (pushhub reseal)"] += count
    s3 = hub.client("s3")
    for place in (*PLACES, UPLOADED):
        way = "make report-upload" if place == UPLOADED else "pushhub reseal"
        for each in lasting(s3, hub.outputs, place).each():
            needed.setdefault(each.encrypted_with, Counter())[f"objects below {place[1]} ({way})"] += 1
    return needed


def _waits(hub: Deployment, chosen: Mapping[str, str], changed: date, now: datetime) -> list[str]:
    """What has not ended yet, with the day by which it has."""
    s3, waits = hub.client("s3"), []
    for each in endings(chosen):
        over = changed + timedelta(days=each.days + LATE_DAYS)
        if over <= now.date():
            continue
        if each.bucket and not anything(s3, hub.outputs[f"{each.bucket}Name"], each.folder):
            continue
        waits.append(f"{each.what} until {over}")
    return waits


def _updated(stack: Mapping[str, Any]) -> date:
    found: datetime = stack.get("LastUpdatedTime") or stack["CreationTime"]
    return found.date()
