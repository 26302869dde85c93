"""The signatures of endpoints: keys of Standard Webhooks, and schemes that their owners choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from pushhub.base.errors import FieldRefused
from pushhub.base.signature_schemes import (
    Scheme,
    SecretRing,
    Unsigned,
    decode_rings,
    encode_rings,
    sign,
    signed_url,
)
from pushhub.base.signing import KeyRing
from pushhub.egress.url import InvalidTarget, wire_url
from pushhub.engine.component import Component
from pushhub.engine.ends import EndNote, scheme_note
from pushhub.web.signatures import by_header, renewed
from pushhub.webhooks.model.refusals import Refused, unprocessable
from pushhub.webhooks.wire.endpoint import is_http
from pushhub.webhooks.wire.signatures import FIELD, secret_scheme_view

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Vault
    from pushhub.base.signing_change import WantedSignature
    from pushhub.webhooks.model.endpoint import Endpoint


def rings_of(endpoint: Endpoint, vault: Vault) -> list[SecretRing | None]:
    """The secrets of an endpoint's schemes, in their order."""
    if not endpoint.scheme_secrets:
        return [None] * len(endpoint.signatures)
    return decode_rings(vault.open(endpoint.project, endpoint.scheme_secrets))


class EndpointSignatures(Component):
    """What signs the requests of endpoints."""

    vault: Vault
    note_end: Callable[[EndNote], None]  # Keeps a note of what is to be told of a scheme's end.
    clock: Clock

    def keys(self, endpoint: Endpoint) -> KeyRing:
        """An endpoint's own keys."""
        return KeyRing.decode(self.vault.open(endpoint.project, endpoint.sealed))

    def with_keys(self, endpoint: Endpoint, keys: KeyRing) -> Endpoint:
        """An endpoint with other keys of its own."""
        return replace(endpoint, sealed=self.vault.seal(endpoint.project, keys.encode()))

    def signs_with_keys(self, endpoint: Endpoint) -> bool:
        """Whether an endpoint's own keys sign its requests: as Standard Webhooks or, without schemes of its own, as its
        application or project says.
        """
        now = self.clock.now()
        return not endpoint.signatures or any(each.standard and each.signs_at(now) for each in endpoint.signatures)

    def check_rotatable(self, endpoint: Endpoint) -> None:
        """Check that another key of an endpoint's own would sign anything.

        Raises:
            Refused: It would not (400).
        """
        if not self.signs_with_keys(endpoint):
            raise Refused(
                400, "own_signatures", "This secret signs nothing: each of the endpoint's signatures has its own"
            )

    def secret(self, endpoint: Endpoint) -> str:
        """The secret by which an endpoint's receiver verifies: for an Ed25519 key, its public half; where its own keys
        do not sign, that of the first of its schemes, in its own writing.
        """
        if self.signs_with_keys(endpoint):
            return self.keys(endpoint).current.shown
        now = self.clock.now()
        pairs = zip(endpoint.signatures, rings_of(endpoint, self.vault), strict=True)
        return next(ring.current for scheme, ring in pairs if ring is not None and scheme.signs_at(now))

    def without_ended(self, endpoint: Endpoint) -> Endpoint:
        """An endpoint without the schemes that have ended, and their secrets."""
        now = self.clock.now()
        if all(each.signs_at(now) for each in endpoint.signatures):
            return endpoint
        pairs = [
            (scheme, ring)
            for scheme, ring in zip(endpoint.signatures, rings_of(endpoint, self.vault), strict=True)
            if scheme.signs_at(now)
        ]
        return self._with(endpoint, [scheme for scheme, _ in pairs], [ring for _, ring in pairs])

    def changed(self, endpoint: Endpoint, wanted: Sequence[WantedSignature]) -> Endpoint:
        """An endpoint that is signed as its owner asks.

        A scheme is known by the header that carries its signature: it keeps its secrets if no other is given, and
        replaces them like a rotation if one is. What is to be told of ends is noted before they are stored: a note
        without its scheme tells nothing.

        Args:
            endpoint: As it is stored, and opened.
            wanted: The schemes; none for those of its application or project.

        Raises:
            Unprocessable: A scheme has no secret, or does not go together with the endpoint's URL or headers.
        """
        if not wanted:
            return replace(endpoint, signatures=(), scheme_secrets=b"")
        now = self.clock.now()
        stored = by_header(endpoint.signatures, rings_of(endpoint, self.vault))
        try:
            rings = renewed(wanted, stored, now)
        except FieldRefused as refused:
            raise unprocessable(refused.text, "body", FIELD, *refused.place) from refused
        changed = self._with(endpoint, [each.scheme for each in wanted], rings)
        check_fit(changed, FIELD)
        for scheme in changed.signatures:
            place = endpoint.place
            note = scheme_note(place, scheme.header, scheme.ends_at, now)
            if note is not None:
                self.note_end(note)
        return changed

    def _with(self, endpoint: Endpoint, schemes: Sequence[Scheme], rings: Sequence[SecretRing | None]) -> Endpoint:
        secrets = self.vault.seal(endpoint.project, encode_rings(rings)) if any(rings) else b""
        return replace(endpoint, signatures=tuple(schemes), scheme_secrets=secrets)

    def view(self, endpoint: Endpoint) -> list[Mapping[str, Any]]:
        """The schemes of an endpoint's own as its owner is shown them, without secrets."""
        now, rings = self.clock.now(), rings_of(endpoint, self.vault)
        pairs = zip(endpoint.signatures, rings, strict=True)
        return [secret_scheme_view(scheme, ring, now) for scheme, ring in pairs if scheme.signs_at(now)]


def check_fit(endpoint: Endpoint, *place: str) -> None:
    """Check that an endpoint's signatures, and what its receiver demands, go together with its URL and headers.

    Raises:
        Unprocessable: They do not; the error names the place given, which is what the request would change.
    """
    if endpoint.gated:
        from pushhub.webhooks.endpoints.gates import check_gates  # noqa: PLC0415 (only endpoints with gates pay)

        check_gates(endpoint, *place)
    if not any(not each.standard or each.ends_at for each in endpoint.signatures):
        return
    if not is_http(endpoint.fields.url):
        raise unprocessable("Only an HTTP endpoint has signatures", "body", *place)
    own = {name.lower() for name in endpoint.headers}
    for scheme in endpoint.signatures:
        taken = own.intersection(scheme.names)
        if taken:
            raise unprocessable(f"The endpoint's headers and its signatures both have {min(taken)}", "body", *place)
        try:
            wire_url(endpoint.fields.url)
        except InvalidTarget as error:
            raise unprocessable(str(error), "body", *place) from error
        if scheme.query and scheme.query in dict(parse_qsl(urlsplit(endpoint.fields.url).query, True)):
            raise unprocessable(
                f"The URL has a parameter {scheme.query} already, which the signature adds", "body", *place
            )


def signed(url: str, pairs: Sequence[tuple[Scheme, Sequence[str]]], request: Unsigned) -> tuple[str, dict[str, str]]:
    """The URL to call, and the headers that sign the request.

    Args:
        pairs: The schemes, without Standard Webhooks, each with its valid secrets, the newest first.
        request: The request; its URL is not used.
    """
    seen = wire_url(url)
    headers: dict[str, str] = {}
    for scheme, _ in pairs:
        url, seen = signed_url(scheme, url.partition("#")[0], request.body), signed_url(scheme, seen, request.body)
    for scheme, secrets in pairs:
        headers |= sign(scheme, secrets, replace(request, url=seen))
    return url, headers


def secrets_of(
    endpoint: Endpoint, schemes: Sequence[Scheme], keys: KeyRing | None, vault: Vault, now: int
) -> list[tuple[Scheme, Sequence[str]]]:
    """The schemes that sign an endpoint's request now, except Standard Webhooks, with their secrets.

    Args:
        schemes: Its own, or those that it inherits.
        keys: Its own keys, which sign in the schemes that it inherits.
        vault: Opens the secrets of its own schemes.
    """
    if endpoint.signatures:
        pairs = zip(endpoint.signatures, rings_of(endpoint, vault), strict=True)
        return [(scheme, ring.live(now)) for scheme, ring in pairs if ring is not None and scheme.signs_at(now)]
    texts = keys.as_secrets(now) if keys else []
    return [(scheme, texts) for scheme in schemes if not scheme.standard and scheme.signs_at(now)] if texts else []
