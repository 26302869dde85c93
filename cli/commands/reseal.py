"""``pushhub reseal``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import click

from pushhub.base.errors import Unavailable
from pushhub.engine.security.reseal import Reseal, Resealed

from ..dry import changes
from ..framework import Command
from ..hub import HubOptions
from ..operators.deployment import deployment
from ..operators.lasting import AWS_OWN, PLACES, UPLOADED, LastingObjects, lasting
from ..operators.sealed import SealedTables

TOLD_EVERY = 1_000
"""Objects between two lines that say how far it has come."""


@dataclass
class Encrypted:
    """What was found and done with objects that never expire.

    Attributes:
        keys: How many were found encrypted with each key.
        written: How many were, or in a dry run would be, encrypted anew.
        failed: Those that could not be, with the reason.
        first: The present keys of the buckets.
        uploaded: How many of the report's files need another key than the present one.
    """

    keys: Counter[str] = field(default_factory=Counter)
    written: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    first: set[str] = field(default_factory=set)
    uploaded: int = 0


@click.command(cls=Command)
@changes
@click.pass_obj
def reseal(hub: HubOptions) -> int:
    """Seal and encrypt with the present key what is stored with another one.

    Signing secrets, also that of consumers' tokens, headers and passwords of subscribers and endpoints, tokens of
    mappings and integrations, parameters. Objects that never expire are copied onto themselves, which encrypts them
    with the present key (docs/deploy.md). Can be interrupted and repeated, and goes on where it was; the hub may run.
    Says which keys nothing needs any more.
    """
    found = deployment(hub)
    tables = SealedTables.of(found)
    first = tables.first
    done = Reseal(vault=tables.vault, first=first).run(tables.items(), dry=hub.dry_run)
    hub.note(f"{done.items} items looked at")
    s3, objects = found.client("s3"), Encrypted()
    try:
        for place in PLACES:
            _encrypt(lasting(s3, found.outputs, place), objects, dry=hub.dry_run, say=hub.note)
        uploaded = lasting(s3, found.outputs, UPLOADED)
        present = uploaded.present_key()
        objects.uploaded = sum(each.encrypted_with not in (present, AWS_OWN) for each in uploaded.each())
    except Unavailable as error:
        objects.failed.append(("the buckets", str(error)))
    for name in done.changed:
        click.echo(f"changed meanwhile: {name}", err=True)
    for name, reason in (*done.failed, *objects.failed):
        click.echo(f"not possible: {name}: {reason}", err=True)
    would = "to be " if hub.dry_run else ""
    click.echo(
        f"{done.items} items hold something that opens something; {would}sealed anew: {done.written}. "
        f"{objects.keys.total()} objects never expire; {would}encrypted anew: {objects.written}. "
        f"{_verdict(done, objects, first, dry=hub.dry_run)}",
        err=True,
    )
    hub.show(
        [
            {"sealed with": key, "values": done.keys[key], "objects": objects.keys[key]}
            for key in sorted({*done.keys, *objects.keys})
        ]
    )
    return 0 if _complete(done, objects, dry=hub.dry_run) else 1


def _encrypt(place: LastingObjects, done: Encrypted, *, dry: bool, say: Callable[[str], None]) -> None:
    """Encrypt the objects of a place with the present key of their bucket."""
    present = place.present_key()
    done.first.add(present)
    for each in place.each():
        done.keys[each.encrypted_with] += 1
        if each.encrypted_with != present:
            try:
                done.written += dry or place.encrypt_with(present, each)
            except Unavailable as error:
                done.failed.append((each.key, str(error)))
        if done.keys.total() % TOLD_EVERY == 0:
            say(f"{done.keys.total()} objects looked at, {done.written} encrypted anew")


def _complete(done: Resealed, objects: Encrypted, *, dry: bool) -> bool:
    if objects.failed or objects.uploaded:
        return False
    return not (done.changed or done.failed or (dry and (done.written or objects.written)))


def _verdict(done: Resealed, objects: Encrypted, first: str, *, dry: bool) -> str:
    if done.changed:
        return "Run it again for what changed meanwhile."
    if objects.uploaded:
        return "The report's files need another key: make report-upload STACK=NAME, then run it again."
    if not _complete(done, objects, dry=dry):
        return "Keep every key for now."
    others = sorted({*done.keys, *objects.keys} - {first, AWS_OWN} - objects.first)
    gone = f" It needed {', '.join(others)} before this run." if others else ""
    return (
        f"Nothing stored here needs another key than {first}.{gone} "
        "pushhub deploy doctor says when a former key may go."
    )
