"""How owners of queues' subscribers and stores' services ask for gates: ``"oauth": {"token_url": ...}`` and
``"mtls": {"identity": ...}``, each also ``true`` or ``false``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pushhub.base.errors import Invalid
from pushhub.base.times import iso_time

if TYPE_CHECKING:
    from pushhub.base.gates import ClientCertificate, Gated

OAUTH, MTLS = "oauth", "mtls"
"""The two gates, by their names on the wire."""

GRANT_TYPE = "client_credentials"

METHODS: Mapping[str, str] = {
    "client_secret_basic": "clientSecretBasic",
    "client_secret_post": "clientSecretPost",
    "private_key_jwt": "clientSecretJwt",
}
"""How a client authenticates: the names of RFC 7591, and Svix's."""

_WORDS: Mapping[str, str] = {
    "grant_type": "grantType",
    "auth_method": "authMethod",
    "client_id": "clientId",
    "client_secret": "clientSecret",
    "token_url": "tokenUrl",
    "scopes": "scopes",
    "extra_params": "extraParams",
    "extra_headers": "extraHeaders",
    "jwt_params": "jwtParams",
    "refresh_token": "refreshToken",
}
_JWT_WORDS: Mapping[str, str] = {
    "secret_base64": "secretBase64",
    "signing_algorithm": "signingAlgorithm",
    "secret_id": "secretId",
    "token_expiry_secs": "tokenExpirySecs",
    "audience": "audience",
}
_OWN = {svix: own for own, svix in (*_WORDS.items(), *_JWT_WORDS.items())}
_CAMEL = re.compile(r"\b[a-z]+(?:[A-Z][a-z0-9]+)+\b")


class GateRefused(Invalid):
    """What was asked for could not be right.

    Args:
        gate: Which gate.
        text: Why; never repeats a secret.
        place: Where in it.
    """

    def __init__(self, gate: str, text: str, *place: str) -> None:
        self.gate = gate
        self.text = text
        self.place = place
        super().__init__(f"{'.'.join((gate, *place))}: {text}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateChange:
    """A requested change of gates.

    Attributes:
        oauth: How tokens are obtained from now on; True or None keeps that, False ends it.
        mtls: The certificate from now on, likewise.
    """

    oauth: Mapping[str, Any] | bool | None = field(default=None, repr=False)
    mtls: Mapping[str, Any] | bool | None = field(default=None, repr=False)


KEEP_GATES = GateChange()
"""Changes nothing."""


def parse_gates(given: Mapping[str, Any]) -> GateChange:
    """The change that the fields ``oauth`` and ``mtls`` ask for; none where they are absent or null.

    Raises:
        GateRefused: One is something else.
    """
    wanted = {gate: given.get(gate) for gate in (OAUTH, MTLS)}
    for gate, value in wanted.items():
        if not (value is None or isinstance(value, bool | dict)):
            raise GateRefused(gate, "An object, true or false is required")
    return GateChange(**wanted) if any(each is not None for each in wanted.values()) else KEEP_GATES


def in_svix_words(given: Mapping[str, Any]) -> dict[str, Any]:
    """How a token is obtained, in the words of the webhooks' API."""
    method, kind = given.get("auth_method"), given.get("grant_type")
    words = {_WORDS[name]: value for name, value in given.items() if name in _WORDS}
    words["grantType"] = "clientCredentials" if kind in (None, GRANT_TYPE) else ""
    named = "client_secret_basic" if method is None else method
    words["authMethod"] = METHODS.get(named, "") if isinstance(named, str) else ""
    jwt = given.get("jwt_params")
    if isinstance(jwt, Mapping):
        algorithm = {"signingAlgorithm": "RS256"}
        words["jwtParams"] = algorithm | {_JWT_WORDS[name]: each for name, each in jwt.items() if name in _JWT_WORDS}
    return words


def place_in_own_words(place: tuple[str, ...]) -> tuple[str, ...]:
    """A place that was refused, in the words of the request."""
    return tuple(_OWN.get(each, each) for each in place)


def in_own_words(text: str) -> str:
    """A refusal's text with the names of the request."""
    methods = {svix: own for own, svix in METHODS.items()}
    names = {**_OWN, **methods, "clientCredentials": GRANT_TYPE}
    return _CAMEL.sub(lambda found: names.get(found.group(), found.group()), text)


def gates_view(gated: Gated) -> dict[str, object]:
    """The gates as their owner is shown them; nothing where there are none. May be sent back."""
    shown: dict[str, object] = {}
    if gated.oauth:
        shown[OAUTH] = True
    if gated.certificate is not None:
        shown[MTLS] = certificate_view(gated.certificate)
    return shown


def certificate_view(certificate: ClientCertificate) -> dict[str, object]:
    """What is told of a certificate."""
    return {
        "subject": certificate.subject,
        "ends_at": iso_time(certificate.ends_at),
        "private_ca": certificate.private_ca,
    }
