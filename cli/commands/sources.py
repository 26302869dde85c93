"""``pushhub sources``: URLs that take in what other senders post."""

from __future__ import annotations

from typing import IO, Any

import click

from ..answers import fields, section, sections
from ..dry import changes
from ..framework import Group, ask, destructive
from ..hub import HubOptions
from ..json_files import json_in
from ..rest import typed

ROOT = "/ingest/api/v1/source"
KINDS = (
    *("generic-webhook", "github", "stripe", "shopify", "slack", "hubspot", "zoom", "meta", "svix", "beehiiv", "brex"),
    *("clerk", "guesty", "incident-io", "lithic", "nash", "open-ai", "pleo", "psi-fi", "render", "replicate", "resend"),
    *("safebase", "sardine", "stych"),
)
_COLUMNS = ("id", "uid", "name", "type", "verified", "ingestUrl")


def _path(source: str, *more: str) -> str:
    return "/".join((ROOT, typed(source), *more))


def _show(hub: HubOptions, *found: Any) -> None:
    hub.show({name: each.get(name) for name in _COLUMNS} for each in found)


@click.group(cls=Group)
def sources() -> None:
    """URLs that take in what other senders post: verified, stored and passed on."""


@sources.command("list")
@click.pass_obj
def list_sources(hub: HubOptions) -> None:
    """List the project's sources, with their URLs."""
    _show(hub, *hub.rest().every(ROOT))


@sources.command("create")
@click.argument("name")
@click.argument("kind", type=click.Choice(KINDS))
@click.option("--uid", help="Your own id for it.")
@click.option("--secret-file", type=click.File(), help="Holds the sender's secret; - for standard input.")
@click.option("--verify-token", help="For meta: what it shows when it asks about the URL.")
@click.option("--signature-file", type=click.File(), help="For generic-webhook: JSON that says how its sender signs.")
@click.option("--to", "urls", multiple=True, metavar="URL", help="Where what comes in goes to. Repeatable.")
@changes
@click.pass_obj
def create_source(
    hub: HubOptions,
    *,
    name: str,
    kind: str,
    uid: str | None,
    secret_file: IO[str] | None,
    verify_token: str | None,
    signature_file: IO[str] | None,
    urls: tuple[str, ...],
) -> None:
    """Create a source; its URL is shown, for its sender."""
    config: dict[str, Any] = {}
    if secret_file is not None:
        config["secret"] = secret_file.read().removesuffix("\n")
    if verify_token is not None:
        config["verifyToken"] = verify_token
    if signature_file is not None:
        config["signature"] = json_in(signature_file)
    rest = hub.rest()
    source = fields(rest.call("POST", ROOT, {"name": name, "uid": uid, "type": kind, "config": config}))
    for url in urls:
        rest.call("POST", _path(str(source["id"]), "endpoint"), {"url": url})
    _show(hub, source)


@sources.command("show")
@click.argument("source")
@click.pass_obj
def show_source(hub: HubOptions, *, source: str) -> None:
    """Show a source by its id or uid."""
    _show(hub, fields(hub.rest().call("GET", _path(source))))


@sources.command("rotate")
@click.argument("source")
@changes
@destructive
@click.pass_obj
def rotate_source(hub: HubOptions, *, source: str, yes: bool) -> None:
    """Give a source another URL; the previous one goes on for 48 hours."""
    ask(f"Give {source} another URL?", yes=yes or hub.dry_run)
    rest = hub.rest()
    rest.call("POST", _path(source, "token", "rotate"))
    _show(hub, fields(rest.call("GET", _path(source))))


@sources.command("refused")
@click.argument("source")
@click.pass_obj
def refused_by_source(hub: HubOptions, *, source: str) -> None:
    """Show by day what a source has turned away in the last 30 days, and the last caller."""
    answer = hub.rest().call("GET", _path(source, "stats"))
    if fields(answer).get("last"):
        last = section(answer, "last")
        hub.note(f"The last one, {last.get('reason')}, came at {last.get('at')} from {last.get('address')}")
    hub.show(sections(answer, "days"))


@sources.command("delete")
@click.argument("source")
@changes
@destructive
@click.pass_obj
def delete_source(hub: HubOptions, *, source: str, yes: bool) -> None:
    """Delete a source: nothing comes in any more, and what came in is no longer delivered."""
    ask(f"Delete the source {source}?", yes=yes or hub.dry_run)
    hub.rest().call("DELETE", _path(source))
