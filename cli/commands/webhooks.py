"""``pushhub signatures``, ``pushhub gates`` and ``pushhub frames``: how receivers are reached, and portals shown."""

from __future__ import annotations

import base64
import re
from typing import IO, Any

import click

from ..answers import fields, section, sections, texts
from ..dry import changes
from ..framework import Group, ask, destructive
from ..hub import HubOptions
from ..json_files import json_in
from .receivers import Receiver, Whose, chosen

PRESETS = (
    *("standard-webhooks", "stripe", "github", "shopify", "slack", "twilio", "convoy-simple", "convoy-advanced"),
    *("outpost", "hook0", "hmac-body"),
)
METHODS = {
    "basic": ("clientSecretBasic", "client_secret_basic"),
    "post": ("clientSecretPost", "client_secret_post"),
    "key": ("clientSecretJwt", "private_key_jwt"),
}
"""How the hub shows who it is, as it is typed, and in the APIs of webhooks and of queues and stores."""

_SIGNATURE_COLUMNS = ("preset", "header", "content", "endsAt", "oldSecretsEnd", "inheritedFrom")


@click.group(cls=Group)
def signatures() -> None:
    """The schemes that sign what receivers are sent: their own, or those they inherit."""


@signatures.command("show")
@chosen(one=False)
@click.pass_obj
def show_signatures(hub: HubOptions, *, whose: Whose) -> None:
    """Show the schemes of an endpoint, an application or the project, without secrets.

    Of a subscriber or service: whether its requests are signed, and which signatures end.
    """
    receiver = whose.receiver(hub.rest())
    if receiver is not None:
        _show_signing(hub, receiver)
        return
    answer = hub.rest().call("GET", whose.path("signatures"))
    _show_signatures(hub, answer)


@signatures.command("add")
@click.argument("preset", type=click.Choice(PRESETS))
@chosen(one=False)
@click.option("--secret-file", type=click.File(), help="Holds its secret; - for standard input. Endpoints alone.")
@click.option("--header", help="The header of the signature, where the preset lets you choose.")
@click.option("--send", multiple=True, metavar="NAME=VALUE", help="A further header, for shopify. Repeatable.")
@changes
@click.pass_obj
def add_signature(
    hub: HubOptions,
    *,
    preset: str,
    whose: Whose,
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
    path = whose.path("signatures")
    answer = hub.rest().call("GET", path)
    kept = [] if fields(answer).get("inheritedFrom") else sections(answer, "signatures")
    others = [each for each in kept if each.get("preset") != preset]
    _show_signatures(hub, hub.rest().call("PUT", path, {"signatures": [*others, scheme]}))


@signatures.command("set")
@click.argument("file", type=click.File())
@chosen(one=False)
@click.option("--secret-file", type=click.File(), help="Holds the secret of Standard Webhooks. No endpoints.")
@changes
@click.pass_obj
def set_signatures(hub: HubOptions, *, file: IO[str], whose: Whose, secret_file: IO[str] | None) -> None:
    """Replace all schemes by the list in a file of JSON, as the API takes it; - for standard input.

    A subscriber or service with an empty list is signed as the project says, or else as Standard Webhooks.
    """
    if secret_file is not None and not whose.is_receiver:
        raise click.UsageError("an endpoint has its secret for Standard Webhooks already")
    given = json_in(file)
    receiver = whose.receiver(hub.rest())
    if receiver is not None:
        signing: dict[str, Any] = {"signatures": given} if given else {}
        if secret_file is not None:
            signing["secret"] = secret_file.read().removesuffix("\n")
        receiver.change({"signing": signing})
        _show_signing(hub, whose.receiver(hub.rest()) or receiver)
        return
    path = whose.path("signatures")
    _show_signatures(hub, hub.rest().call("PUT", path, {"signatures": given}))


@signatures.command("end")
@click.argument("header")
@click.argument("when")
@chosen(one=False)
@changes
@click.pass_obj
def end_signature(hub: HubOptions, *, header: str, when: str, whose: Whose) -> None:
    """End the scheme with that HEADER (or preset) at a time such as 2027-03-01T00:00:00Z; never takes its end away."""
    path = whose.path("signatures")
    schemes = _own(hub.rest().call("GET", path))
    found = _found(schemes, header)
    found["endsAt"] = None if when == "never" else when
    _show_signatures(hub, hub.rest().call("PUT", path, {"signatures": schemes}))


@signatures.command("remove")
@click.argument("header")
@chosen(one=False)
@changes
@destructive
@click.pass_obj
def remove_signature(hub: HubOptions, *, header: str, whose: Whose, yes: bool) -> None:
    """Sign no more with the scheme that has that HEADER (or preset). Its secrets are deleted."""
    path = whose.path("signatures")
    schemes = _own(hub.rest().call("GET", path))
    schemes.remove(_found(schemes, header))
    ask(f"Sign no more with {header}?", yes=yes or hub.dry_run)
    _show_signatures(hub, hub.rest().call("PUT", path, {"signatures": schemes}))


@signatures.command("off")
@chosen(one=True)
@changes
@destructive
@click.pass_obj
def unsign(hub: HubOptions, *, whose: Whose, yes: bool) -> None:
    """Sign the requests to a subscriber or service no more. Its secrets are deleted."""
    receiver = whose.receiver(hub.rest())
    if receiver is None:
        raise click.UsageError("an endpoint is always signed, at least as Standard Webhooks")
    ask(f"Sign requests to {receiver.name} no more?", yes=yes or hub.dry_run)
    receiver.change({"signing": False})


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


def _show_signing(hub: HubOptions, receiver: Receiver) -> None:
    ends = fields(receiver.shown.get("signing_ends") or {})
    signed = bool(receiver.shown.get("signing"))
    rows = [{"header": header, "endsAt": at, "signed": signed} for header, at in ends.items()]
    hub.show(rows or [{"header": None, "endsAt": None, "signed": signed}])


@click.group(cls=Group)
def gates() -> None:
    """What a receiver demands before it looks at a request: a token, a client certificate."""


@gates.command("show")
@chosen(one=True)
@click.pass_obj
def show_gates(hub: HubOptions, *, whose: Whose) -> None:
    """Show how its tokens are obtained, and its certificate; never a secret."""
    rest = hub.rest()
    rows: list[dict[str, Any]] = []
    receiver = whose.receiver(rest)
    if receiver is not None:
        certificate = fields(receiver.shown.get("mtls") or {})
        about = {"subject": certificate.get("subject"), "endsAt": certificate.get("ends_at")}
        rows.append({"gate": "oauth", "enabled": bool(receiver.shown.get("oauth")), "subject": None, "endsAt": None})
        hub.show([*rows, {"gate": "mtls", "enabled": bool(certificate), **about}])
        return
    for gate in ("oauth", "mtls"):
        answer = rest.call("GET", whose.path(f"{gate}-config"))
        config = section(answer, "config") if fields(answer).get("config") else {}
        shown = {name: config.get(name) for name in ("tokenUrl", "clientId", "authMethod", "subject", "endsAt")}
        rows.append({"gate": gate, "enabled": fields(answer).get("enabled"), **shown})
    hub.show(rows)


@gates.command("external-id")
@click.option("--app", help="Of this application's endpoints; without it, of the project's queues.")
@click.pass_obj
def show_external_id(hub: HubOptions, *, app: str | None) -> None:
    """Show what a role on AWS has to demand: who may assume it, and with which external id (docs/destinations.md)."""
    rest = hub.rest()
    if app is None:
        answer = fields(rest.call("GET", f"{rest.path}/external-id"))
        shown = {"external_id": answer.get("external_id"), "principal": answer.get("principal")}
    else:
        answer = fields(rest.call("GET", Whose(app=app).path("external-id")))
        shown = {"external_id": answer.get("externalId"), "principal": answer.get("principal")}
    hub.show([shown])


@gates.command("oauth")
@chosen(one=True)
@click.option("--token-url", required=True, help="Of the receiver's token server.")
@click.option("--client-id", required=True, help="The hub's name there.")
@click.option(
    "--by",
    type=click.Choice([*METHODS]),
    default="basic",
    help="How the hub shows who it is; by default basic. key is private_key_jwt.",
)
@click.option("--secret-file", type=click.File(), help="Holds secret or key; the stored one is kept without it.")
@click.option("--key-id", help="The token server's name of the key.")
@click.option("--scope", multiple=True, help="Repeatable.")
@changes
@click.pass_obj
def set_oauth(
    hub: HubOptions,
    *,
    whose: Whose,
    token_url: str,
    client_id: str,
    by: str,
    secret_file: IO[str] | None,
    scope: tuple[str, ...],
    key_id: str | None,
) -> None:
    """Send a receiver tokens of its token server (OAuth 2.0, client credentials)."""
    rest = hub.rest()
    receiver = whose.receiver(rest)
    method = METHODS[by][0 if receiver is None else 1]
    secret = None if secret_file is None else secret_file.read()
    body: dict[str, Any] = {
        "grantType": "clientCredentials",
        "authMethod": method,
        "clientId": client_id,
        "tokenUrl": token_url,
        "scopes": [*scope],
    }
    if secret is not None and by == "key":
        key = base64.b64encode(secret.encode()).decode()
        body["jwtParams"] = {"secretBase64": key, "signingAlgorithm": "RS256", "secretId": key_id}
    elif secret is not None:
        body["clientSecret"] = secret.removesuffix("\n")
    if receiver is None:
        rest.call("PUT", whose.path("oauth"), body)
    else:
        receiver.change({"oauth": _in_their_words(body)})
    hub.note(f"Tokens of {token_url} are sent from now on")


def _in_their_words(body: dict[str, Any]) -> dict[str, Any]:
    """A grant in the words of queues and stores."""
    return {
        re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name): _in_their_words(value)
        if isinstance(value, dict)
        else value
        for name, value in body.items()
        if name != "grantType" and value is not None
    }


@gates.command("certificate")
@chosen(one=True)
@click.argument("identity", type=click.File())
@click.option("--ca", type=click.File(), help="PEM: the only authorities of the receiver's own certificate.")
@changes
@click.pass_obj
def set_certificate(hub: HubOptions, *, whose: Whose, identity: IO[str], ca: IO[str] | None) -> None:
    """Show a receiver a client certificate. IDENTITY is a PEM file with the private key and its certificates."""
    rest = hub.rest()
    receiver = whose.receiver(rest)
    body = {"identity": identity.read(), "ca": None if ca is None else ca.read()}
    if receiver is None:
        rest.call("PUT", whose.path("mtls"), body)
    else:
        receiver.change({"mtls": body})
    hub.note("It is shown from now on")


@gates.command("remove")
@click.argument("gate", type=click.Choice(["oauth", "certificate"]))
@chosen(one=True)
@changes
@destructive
@click.pass_obj
def remove_gate(hub: HubOptions, *, gate: str, whose: Whose, yes: bool) -> None:
    """Send a receiver no tokens, or no client certificate, any more. What was stored of it is deleted."""
    rest = hub.rest()
    receiver = whose.receiver(rest)
    name = "mtls" if gate == "certificate" else gate
    if receiver is not None and not receiver.shown.get(name):
        raise click.ClickException(f"{receiver.name} has none")
    ask(f"Remove {gate} of {whose.called}?", yes=yes or hub.dry_run)
    if receiver is None:
        rest.call("DELETE", whose.path(name))
    else:
        receiver.change({name: False})


@click.group(cls=Group)
def frames() -> None:
    """Which pages may show the portal of applications in a frame."""


@frames.command("show")
@click.option("--app", help="Of this application; without it, of all that have none of their own.")
@click.pass_obj
def show_frames(hub: HubOptions, *, app: str | None) -> None:
    """Show their origins."""
    _show_frames(hub, hub.rest().call("GET", Whose(app=app).path("portal/frame")))


@frames.command("set")
@click.argument("origins", nargs=-1)
@click.option("--app", help="Of this application; without it, of all that have none of their own.")
@changes
@click.pass_obj
def set_frames(hub: HubOptions, *, origins: tuple[str, ...], app: str | None) -> None:
    """Set the ORIGINS of those pages, such as https://app.example.com; none for no pages. For new links."""
    path = Whose(app=app).path("portal/frame")
    _show_frames(hub, hub.rest().call("PUT", path, {"origins": [*origins]}))


def _show_frames(hub: HubOptions, answer: Any) -> None:
    hub.show({"origin": each} for each in texts(answer, "origins"))
