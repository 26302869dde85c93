"""How owners of queues' subscribers and stores' services ask for gates: ``"oauth": {"token_url": ...}`` and
``"mtls": {"identity": ...}``, each also ``true`` or ``false``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pushhub.base.errors import FieldRefused
from pushhub.base.gates import KEEP_GATES, MTLS, OAUTH, CertificateRequest, GateChange
from pushhub.base.grants import GrantFields, GrantWords, grant_request
from pushhub.base.oauth import BASIC, POST, PRIVATE_KEY_JWT
from pushhub.base.times import iso_time

if TYPE_CHECKING:
    from pushhub.base.gates import ClientCertificate, Gated
    from pushhub.base.grants import GrantRequest

WORDS = GrantWords(
    names=GrantFields(
        grant_type="grant_type",
        auth_method="auth_method",
        client_id="client_id",
        client_secret="client_secret",  # noqa: S106 (a name)
        token_url="token_url",  # noqa: S106
        scopes="scopes",
        extra_params="extra_params",
        extra_headers="extra_headers",
        refresh_token="refresh_token",  # noqa: S106
        assertion="jwt_params",
        key="secret_base64",
        algorithm="signing_algorithm",
        key_id="secret_id",
        assertion_s="token_expiry_secs",
        audience="audience",
    ),
    client_credentials="client_credentials",
    methods={BASIC: "client_secret_basic", POST: "client_secret_post", PRIVATE_KEY_JWT: "private_key_jwt"},
)
"""The words: methods are those of RFC 7591."""

DEFAULTS = {WORDS.names.grant_type: WORDS.client_credentials, WORDS.names.auth_method: WORDS.methods[BASIC]}
"""What is meant where nothing is said."""


def parse_gates(given: Mapping[str, Any]) -> GateChange:
    """The change that the fields ``oauth`` and ``mtls`` ask for; none where they are absent or null.

    Raises:
        FieldRefused: One is something else.
    """
    wanted = {gate: given.get(gate) for gate in (OAUTH, MTLS)}
    for gate, value in wanted.items():
        if not (value is None or isinstance(value, bool | dict)):
            raise FieldRefused("An object, true or false is required", gate)
    if all(each is None for each in wanted.values()):
        return KEEP_GATES
    return GateChange(oauth=_grant(wanted[OAUTH]), mtls=_certificate(wanted[MTLS]))


def _grant(given: Any) -> GrantRequest | Literal[False] | None:
    if given is None or given is False:
        return given
    said = {} if given is True else given
    asked = {**said, **{name: value for name, value in DEFAULTS.items() if said.get(name) is None}}
    assertion = asked.get(WORDS.names.assertion)
    if isinstance(assertion, dict):
        asked[WORDS.names.assertion] = {WORDS.names.algorithm: "RS256", **assertion}
    return grant_request(WORDS, asked, as_stored=given is True)


def _certificate(given: Any) -> CertificateRequest | Literal[False] | None:
    if given is None or given is False:
        return given
    if given is True or {"identity", "ca"}.isdisjoint(given):
        # A client writes back what it read, in which neither is.
        return CertificateRequest(as_stored=True)
    return CertificateRequest(identity=given.get("identity"), ca=given.get("ca"))


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
