"""The signature schemes of endpoints: chosen by their owners, with secrets of their own, and used for each attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from pushhub.base.signature_schemes import (
    Scheme,
    SecretRing,
    Unsigned,
    decode_rings,
    encode_rings,
    sign,
    signed_url,
)
from pushhub.base.times import iso_time
from pushhub.egress.url import InvalidTarget, wire_url
from pushhub.web.signatures import SignatureRefused, by_header, read_signatures, renewed, scheme_view
from pushhub.webhooks.wire.endpoint import is_http

if TYPE_CHECKING:
    from pushhub.base.ports import Vault
    from pushhub.base.signing_change import WantedSignature
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.wire.fields import Fields

FIELD = "signatures"


def parse_signatures(fields: Fields) -> tuple[WantedSignature, ...]:
    """Read the schemes that an owner asks for; none stands for Standard Webhooks alone.

    Raises:
        Unprocessable: One could not be right.
    """
    try:
        return read_signatures(fields.raw(FIELD))
    except SignatureRefused as refused:
        raise fields.refuse(refused.message, FIELD, *refused.place) from refused


def rings_of(endpoint: Endpoint, vault: Vault) -> list[SecretRing | None]:
    """The secrets of an endpoint's schemes, in their order."""
    if not endpoint.scheme_secrets:
        return [None] * len(endpoint.signatures)
    return decode_rings(vault.open(endpoint.project, endpoint.scheme_secrets))


def with_signatures(
    endpoint: Endpoint, wanted: Sequence[WantedSignature], fields: Fields, *, vault: Vault, now: int
) -> Endpoint:
    """An endpoint that is signed as its owner asks.

    A scheme is known by the header that carries its signature: it keeps its secrets if no other is given, and replaces
    them like a rotation if one is.

    Args:
        endpoint: As it is stored, and opened.
        wanted: See :func:`parse_signatures`.
        fields: The request.
        vault: Opens and encrypts secrets.
        now: Epoch milliseconds.

    Raises:
        Unprocessable: A scheme has no secret, or does not go together with the endpoint's URL or headers.
    """
    if all(each.scheme.standard for each in wanted):
        return replace(endpoint, signatures=(), scheme_secrets=b"")
    schemes = tuple(each.scheme for each in wanted)
    stored = by_header(endpoint.signatures, rings_of(endpoint, vault))
    try:
        rings = renewed(wanted, stored, now)
    except SignatureRefused as refused:
        raise fields.refuse(refused.message, FIELD, *refused.place) from refused
    changed = replace(endpoint, signatures=schemes, scheme_secrets=vault.seal(endpoint.project, encode_rings(rings)))
    check_fit(changed, fields, FIELD)
    return changed


def check_fit(endpoint: Endpoint, fields: Fields, *place: str) -> None:
    """Check that an endpoint's signatures, and what its receiver demands, go together with its URL and headers.

    Raises:
        Unprocessable: They do not; the error names the place given, which is what the request would change.
    """
    if endpoint.gated:
        from pushhub.webhooks.gates import check_gates  # noqa: PLC0415 (only endpoints with gates pay)

        check_gates(endpoint, fields, *place)
    if not endpoint.signatures:
        return
    if not is_http(endpoint.fields.url):
        raise fields.refuse("Only an HTTP endpoint has signatures", *place)
    own = {name.lower() for name in endpoint.headers}
    for scheme in endpoint.signatures:
        taken = own.intersection(scheme.names)
        if taken:
            raise fields.refuse(f"The endpoint's headers and its signatures both have {min(taken)}", *place)
        try:
            wire_url(endpoint.fields.url)
        except InvalidTarget as error:
            raise fields.refuse(str(error), *place) from error
        if scheme.query and scheme.query in dict(parse_qsl(urlsplit(endpoint.fields.url).query, True)):
            raise fields.refuse(f"The URL has a parameter {scheme.query} already, which the signature adds", *place)


def signed(endpoint: Endpoint, request: Unsigned, vault: Vault) -> tuple[str, dict[str, str]]:
    """The URL to call, and the headers that sign the request, of an endpoint's own schemes.

    Standard Webhooks' headers are not among them.

    Args:
        endpoint: The endpoint, with its hidden values.
        request: The request; its URL is not used.
        vault: Opens the secrets.

    Raises:
        Unavailable: The secrets could not be decrypted.
    """
    url, seen = endpoint.fields.url, wire_url(endpoint.fields.url)
    headers: dict[str, str] = {}
    for scheme in endpoint.signatures:
        url, seen = signed_url(scheme, url.partition("#")[0], request.body), signed_url(scheme, seen, request.body)
    for scheme, ring in zip(endpoint.signatures, rings_of(endpoint, vault), strict=True):
        if ring is not None:
            headers |= sign(scheme, ring.live(request.at), replace(request, url=seen))
    return url, headers


def signatures_view(endpoint: Endpoint, vault: Vault, now: int) -> dict[str, Any]:
    """An endpoint's schemes as its owner is shown them, without secrets."""
    if not endpoint.signatures:
        return {FIELD: [{"preset": "standard-webhooks"}]}
    rings = rings_of(endpoint, vault)
    return {FIELD: [_view(scheme, ring, now) for scheme, ring in zip(endpoint.signatures, rings, strict=True)]}


def _view(scheme: Scheme, ring: SecretRing | None, now: int) -> Mapping[str, Any]:
    ends = [] if ring is None else [iso_time(ends_at) for _, ends_at in ring.old if ends_at > now]
    return {**scheme_view(scheme), "oldSecretsEnd": ends}
