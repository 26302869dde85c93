"""``pushhub transformations``: code that changes what an endpoint is sent."""

from __future__ import annotations

from typing import IO, Any

import click

from pushhub.base.json_text import NotJson, read

from ..answers import fields
from ..dry import changes
from ..framework import Group
from ..hub import HubOptions
from .receivers import Whose

LANGUAGES = ("javascript", "jsonata")
_language = click.option(
    "--language", type=click.Choice(LANGUAGES), help="By default JSONata for a file *.jsonata, otherwise JavaScript."
)
_variable = click.option("--variable", multiple=True, metavar="NAME=VALUE", help="For the code's env. Repeatable.")
_app = click.option("--app", required=True, help="Id or uid of the application.")
_endpoint = click.option("--endpoint", required=True, help="Id or uid of the endpoint.")


@click.group(cls=Group)
def transformations() -> None:
    """Code that changes what an endpoint is sent (docs/transformations.md)."""


@transformations.command("show")
@_app
@_endpoint
@click.pass_obj
def show_transformation(hub: HubOptions, *, app: str, endpoint: str) -> None:
    """Show an endpoint's code, without the values of its variables."""
    found = fields(hub.rest().call("GET", _path(app, endpoint)))
    variables = ", ".join(fields(found.get("variables") or {}))
    hub.show([{**{name: found.get(name) for name in ("enabled", "language", "code")}, "variables": variables}])


@transformations.command("try")
@click.argument("code", type=click.File())
@click.argument("payload", type=click.File())
@_app
@_endpoint
@click.option("--event-type", default="example", help="By default example.")
@_language
@_variable
@click.pass_obj
def try_transformation(
    hub: HubOptions,
    *,
    code: IO[str],
    payload: IO[str],
    app: str,
    endpoint: str,
    event_type: str,
    language: str | None,
    variable: tuple[str, ...],
) -> None:
    """Run the file CODE on the file PAYLOAD, a JSON object: what the endpoint would be sent. Nothing is."""
    try:
        given = read(payload.read())
    except NotJson as error:
        raise click.ClickException(f"{payload.name} {error}") from error
    body: dict[str, Any] = {**_code(code, language), "eventType": event_type, "payload": given}
    if variable:
        body["variables"] = _variables(variable)
    found = fields(hub.rest().call("POST", f"{_path(app, endpoint)}/simulate", body))
    hub.show([{name: found.get(name) for name in ("cancel", "method", "url", "headers", "payload")}])


@transformations.command("set")
@click.argument("code", type=click.File(), required=False)
@_app
@_endpoint
@click.option("--enable/--disable", default=None, help="Whether it is applied from now on.")
@_language
@_variable
@changes
@click.pass_obj
def set_transformation(
    hub: HubOptions,
    *,
    code: IO[str] | None,
    app: str,
    endpoint: str,
    enable: bool | None,
    language: str | None,
    variable: tuple[str, ...],
) -> None:
    """Give an endpoint the file CODE; what is not said stays as it is. Variables replace all that are there."""
    body: dict[str, Any] = {}
    if code is not None:
        body |= _code(code, language)
    if enable is not None:
        body["enabled"] = enable
    if variable:
        body["variables"] = _variables(variable)
    if not body:
        raise click.UsageError("Say what is to change: CODE, --enable, --disable or --variable")
    hub.rest().call("PATCH", _path(app, endpoint), body)
    hub.note("It holds from the next try on")


def _code(file: IO[str], language: str | None) -> dict[str, str]:
    """The code in a file, and what it is written in: what was said, or else what the file's name says."""
    javascript, jsonata = LANGUAGES
    return {
        "code": file.read(),
        "language": language or (jsonata if file.name.lower().endswith(f".{jsonata}") else javascript),
    }


def _path(app: str, endpoint: str) -> str:
    return Whose(app=app, endpoint=endpoint).path("transformation")


def _variables(given: tuple[str, ...]) -> dict[str, str]:
    pairs = [each.partition("=") for each in given]
    if not all(name and equals for name, equals, _ in pairs):
        raise click.UsageError("A variable is written NAME=VALUE")
    return {name: value for name, _, value in pairs}
