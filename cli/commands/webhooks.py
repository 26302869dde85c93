"""``pushhub signatures``, ``pushhub gates`` and ``pushhub frames``: how endpoints of webhooks are reached and shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import IO, Any
from urllib.parse import quote

import click

from ..answers import fields, section, sections, texts
from ..dry import changes
from ..framework import Group, ask, destructive
from ..hub import HubOptions

PRESETS = (
    *("standard-webhooks", "stripe", "github", "shopify", "slack", "twilio", "convoy-simple", "convoy-advanced"),
    *("outpost", "hook0", "hmac-body"),
)
METHODS = {"basic": "clientSecretBasic", "post": "clientSecretPost"}
"""How the hub shows who it is, as it is typed, and in the API."""

_SIGNATURE_COLUMNS = ("preset", "header", "content", "endsAt", "oldSecretsEnd", "inheritedFrom")


def _whose(*, endpoint_required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Options that choose an endpoint; where it is not required, also an application, or the project."""

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        needed = "" if endpoint_required else " Without it, what an application's endpoints inherit, or the project's."
        command = click.option("--endpoint", required=endpoint_required, help=f"Its id or uid.{needed}")(command)
        command = click.option("--operational", is_flag=True, help="It is one of operational webhooks.")(command)
        return click.option("--app", help="The application, by id or uid.")(command)

    return with_options


def _path(app: str | None, endpoint: str | None, *, operational: bool, rest: str) -> str:
    if endpoint is not None and (app is None) != operational:
        raise click.UsageError("an endpoint needs either --app or --operational")
    if operational and (app is not None or endpoint is None):
        raise click.UsageError("--operational needs --endpoint, and no --app")
    path = "/api/v1"
    if operational:
        path += "/operational-webhook"
    if app is not None:
        path += f"/app/{quote(app, safe='')}"
    if endpoint is not None:
        path += f"/endpoint/{quote(endpoint, safe='')}"
    return f"{path}/{rest}"


@click.group(cls=Group)
def signatures() -> None:
    """The schemes that sign what endpoints are sent: their own, or those they inherit."""


@signatures.command("show")
@_whose(endpoint_required=False)
@click.pass_obj
def show_signatures(hub: HubOptions, *, app: str | None, endpoint: str | None, operational: bool) -> None:
    """Show the schemes of an endpoint, an application or the project, without secrets."""
    answer = hub.rest().call("GET", _path(app, endpoint, operational=operational, rest="signatures"))
    _show_signatures(hub, answer)


@signatures.command("add")
@click.argument("preset", type=click.Choice(PRESETS))
@_whose(endpoint_required=False)
@click.option("--secret-file", type=click.File(), help="Holds its secret; - for standard input. Endpoints alone.")
@click.option("--header", help="The header of the signature, where the preset lets you choose.")
@click.option("--send", multiple=True, metavar="NAME=VALUE", help="A further header, for shopify. Repeatable.")
@changes
@click.pass_obj
def add_signature(
    hub: HubOptions,
    *,
    preset: str,
    app: str | None,
    endpoint: str | None,
    operational: bool,
    secret_file: IO[str] | None,
    header: str | None,
    send: tuple[str, ...],
) -> None:
    """Sign with a known sender's scheme, too, or give the one that there is a new secret."""
    scheme: dict[str, Any] = {"preset": preset}
    if secret_file is not None:
        scheme["secret"] = secret_file.read().removesuffix("\n")
    if header is not None:
        scheme["header"] = {"name": header}
    if send:
        pairs = [each.partition("=") for each in send]
        if not all(equals for _, equals, _ in pairs):
            raise click.UsageError("--send needs NAME=VALUE")
        scheme["headers"] = {name: value for name, _, value in pairs}
    path = _path(app, endpoint, operational=operational, rest="signatures")
    answer = hub.rest().call("GET", path)
    kept = [] if fields(answer).get("inheritedFrom") else sections(answer, "signatures")
    others = [each for each in kept if each.get("preset") != preset]
    _show_signatures(hub, hub.rest().call("PUT", path, {"signatures": [*others, scheme]}))


@signatures.command("set")
@click.argument("file", type=click.File())
@_whose(endpoint_required=False)
@changes
@click.pass_obj
def set_signatures(hub: HubOptions, *, file: IO[str], app: str | None, endpoint: str | None, operational: bool) -> None:
    """Replace all schemes by the list in a file of JSON, as the API takes it; - for standard input."""
    try:
        given = json.load(file)
    except ValueError as error:
        raise click.UsageError(f"the file is no JSON: {error}") from error
    path = _path(app, endpoint, operational=operational, rest="signatures")
    _show_signatures(hub, hub.rest().call("PUT", path, {"signatures": given}))


@signatures.command("end")
@click.argument("header")
@click.argument("when")
@_whose(endpoint_required=False)
@changes
@click.pass_obj
def end_signature(
    hub: HubOptions, *, header: str, when: str, app: str | None, endpoint: str | None, operational: bool
) -> None:
    """End the scheme with that HEADER (or preset) at a time such as 2027-03-01T00:00:00Z; never takes its end away."""
    path = _path(app, endpoint, operational=operational, rest="signatures")
    schemes = _own(hub.rest().call("GET", path))
    found = _found(schemes, header)
    found["endsAt"] = None if when == "never" else when
    _show_signatures(hub, hub.rest().call("PUT", path, {"signatures": schemes}))


@signatures.command("remove")
@click.argument("header")
@_whose(endpoint_required=False)
@changes
@destructive
@click.pass_obj
def remove_signature(
    hub: HubOptions, *, header: str, app: str | None, endpoint: str | None, operational: bool, yes: bool
) -> None:
    """Sign no more with the scheme that has that HEADER (or preset). Its secrets are deleted."""
    path = _path(app, endpoint, operational=operational, rest="signatures")
    schemes = _own(hub.rest().call("GET", path))
    schemes.remove(_found(schemes, header))
    ask(f"Sign no more with {header}?", yes=yes or hub.dry_run)
    _show_signatures(hub, hub.rest().call("PUT", path, {"signatures": schemes}))


def _own(answer: Any) -> list[dict[str, Any]]:
    source = fields(answer).get("inheritedFrom")
    if source:
        raise click.ClickException(f"it has no schemes of its own: these are those of the {source}")
    return sections(answer, "signatures")


def _header(scheme: dict[str, Any]) -> str:
    header = scheme.get("header")
    return str((header.get("name") if isinstance(header, dict) else None) or "webhook-signature")


def _found(schemes: list[dict[str, Any]], name: str) -> dict[str, Any]:
    found = [each for each in schemes if name.lower() in (_header(each).lower(), each.get("preset"))]
    if len(found) != 1:
        raise click.ClickException(f"{len(found) or 'no'} schemes are called {name}")
    return found[0]


def _show_signatures(hub: HubOptions, answer: Any) -> None:
    source = fields(answer).get("inheritedFrom")
    rows = ({**each, "header": _header(each), "inheritedFrom": source} for each in sections(answer, "signatures"))
    hub.show({name: row.get(name) for name in _SIGNATURE_COLUMNS} for row in rows)


@click.group(cls=Group)
def gates() -> None:
    """What an endpoint's receiver demands before it looks at a request: a token, a client certificate."""


@gates.command("show")
@_whose(endpoint_required=True)
@click.pass_obj
def show_gates(hub: HubOptions, *, app: str | None, endpoint: str, operational: bool) -> None:
    """Show how its tokens are obtained, and its certificate; never a secret."""
    rest = hub.rest()
    rows: list[dict[str, Any]] = []
    for gate in ("oauth", "mtls"):
        answer = rest.call("GET", _path(app, endpoint, operational=operational, rest=f"{gate}-config"))
        config = section(answer, "config") if fields(answer).get("config") else {}
        told = {name: config.get(name) for name in ("tokenUrl", "clientId", "authMethod", "subject", "endsAt")}
        rows.append({"gate": gate, "enabled": fields(answer).get("enabled"), **told})
    hub.show(rows)


@gates.command("oauth")
@_whose(endpoint_required=True)
@click.option("--token-url", required=True, help="Of the receiver's token server.")
@click.option("--client-id", required=True, help="The hub's name there.")
@click.option(
    "--by",
    type=click.Choice([*METHODS]),
    default="basic",
    help="How the hub shows who it is; by default basic. With a key: in the console.",
)
@click.option("--secret-file", type=click.File(), help="Holds the secret; the stored one is kept without it.")
@click.option("--scope", multiple=True, help="Repeatable.")
@changes
@click.pass_obj
def set_oauth(
    hub: HubOptions,
    *,
    app: str | None,
    endpoint: str,
    operational: bool,
    token_url: str,
    client_id: str,
    by: str,
    secret_file: IO[str] | None,
    scope: tuple[str, ...],
) -> None:
    """Send an endpoint tokens of its receiver's token server (OAuth 2.0, client credentials)."""
    body: dict[str, Any] = {
        "grantType": "clientCredentials",
        "authMethod": METHODS[by],
        "clientId": client_id,
        "tokenUrl": token_url,
        "scopes": [*scope],
    }
    if secret_file is not None:
        body["clientSecret"] = secret_file.read().removesuffix("\n")
    hub.rest().call("PUT", _path(app, endpoint, operational=operational, rest="oauth"), body)
    hub.note(f"Tokens of {token_url} are sent from now on")


@gates.command("certificate")
@_whose(endpoint_required=True)
@click.argument("identity", type=click.File())
@click.option("--ca", type=click.File(), help="PEM: the only authorities of the receiver's own certificate.")
@changes
@click.pass_obj
def set_certificate(
    hub: HubOptions, *, app: str | None, endpoint: str, operational: bool, identity: IO[str], ca: IO[str] | None
) -> None:
    """Show a receiver a client certificate. IDENTITY is a PEM file with the private key and its certificates."""
    body = {"identity": identity.read(), "ca": None if ca is None else ca.read()}
    hub.rest().call("PUT", _path(app, endpoint, operational=operational, rest="mtls"), body)
    hub.note("It is shown from now on")


@gates.command("remove")
@click.argument("gate", type=click.Choice(["oauth", "certificate"]))
@_whose(endpoint_required=True)
@changes
@destructive
@click.pass_obj
def remove_gate(hub: HubOptions, *, gate: str, app: str | None, endpoint: str, operational: bool, yes: bool) -> None:
    """Send an endpoint no tokens, or no client certificate, any more. What was stored of it is deleted."""
    ask(f"Remove {gate} of {endpoint}?", yes=yes or hub.dry_run)
    name = "mtls" if gate == "certificate" else gate
    hub.rest().call("DELETE", _path(app, endpoint, operational=operational, rest=name))


@click.group(cls=Group)
def frames() -> None:
    """Which pages may show the portal of applications in a frame."""


@frames.command("show")
@click.option("--app", help="Of this application; without it, of all that have none of their own.")
@click.pass_obj
def show_frames(hub: HubOptions, *, app: str | None) -> None:
    """Show their origins."""
    _show_frames(hub, hub.rest().call("GET", _path(app, None, operational=False, rest="portal/frame")))


@frames.command("set")
@click.argument("origins", nargs=-1)
@click.option("--app", help="Of this application; without it, of all that have none of their own.")
@changes
@click.pass_obj
def set_frames(hub: HubOptions, *, origins: tuple[str, ...], app: str | None) -> None:
    """Set the ORIGINS of those pages, such as https://app.example.com; none for no pages. For new links."""
    path = _path(app, None, operational=False, rest="portal/frame")
    _show_frames(hub, hub.rest().call("PUT", path, {"origins": [*origins]}))


def _show_frames(hub: HubOptions, answer: Any) -> None:
    hub.show({"origin": each} for each in texts(answer, "origins"))
