"""Gates in front of subscribers of any kind: what owners may set, stored encrypted beside their other settings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pushhub.base import json_text
from pushhub.base.credentials import user_of
from pushhub.base.errors import FieldRefused
from pushhub.base.gates import MTLS, OAUTH, OPEN, ClientCertificate, Gates
from pushhub.base.oauth import Grant
from pushhub.base.pem import PemRefused, read_authorities, read_identity
from pushhub.base.ports import ClientIdentity
from pushhub.base.times import iso_time
from pushhub.egress.guard import AllowedTargets, unusable
from pushhub.egress.identity import IdentityRefused, check_identity
from pushhub.egress.url import InvalidTarget, parse_target
from pushhub.engine.component import Component
from pushhub.engine.ends import EndNote, first_warning
from pushhub.engine.model.reach import Reach
from pushhub.engine.projects.projects import allowed_targets
from pushhub.engine.security.grants import Allowed, read_grant
from pushhub.engine.target import OUT_OF_REACH

if TYPE_CHECKING:
    from pushhub.base.gates import CertificateRequest, GateChange, Gated
    from pushhub.base.grants import GrantRequest
    from pushhub.base.ports import Clock, Vault
    from pushhub.engine.ends import EndNotes
    from pushhub.engine.ports import ProjectStore
    from pushhub.engine.security.stranger_calls import StrangerCalls

MOST_SEALED = 120_000
"""Most bytes that certificates and grants may take in one item: all subscribers of a queue are in one."""


def grant_of(project_id: str, gated: Gated, vault: Vault) -> Grant:
    """How a subscriber's tokens are obtained."""
    return Grant.decode(vault.open(project_id, gated.oauth))


def identity_of(project_id: str, name: str, gated: Gated, vault: Vault) -> ClientIdentity:
    """What a subscriber's requests are sent with.

    No other subscriber's connection is ever reused for it, even if their certificates are the same.

    Args:
        name: The subscriber, unique in the project.
        gated: One that has a certificate.
    """
    pem, authorities = json_text.stored(vault.open(project_id, gated.identity))
    digest = gated.certificate.digest if gated.certificate is not None else ""
    return ClientIdentity(digest=f"{project_id}/{name}/{digest}", pem=pem, ca=authorities)


def read_certificate(asked: CertificateRequest, now: int) -> tuple[ClientCertificate, bytes]:
    """A certificate as an owner sends it: what may be told of it, and what is to be sealed.

    Args:
        now: Epoch milliseconds; it must not have ended.

    Raises:
        FieldRefused: It cannot be used.
    """
    pem, authorities = asked.identity, asked.ca
    if not isinstance(pem, str) or not pem:
        raise FieldRefused("A PEM file with a private key and its certificate is required", MTLS, "identity")
    if authorities is not None and not isinstance(authorities, str):
        raise FieldRefused("A PEM file with certificates is required", MTLS, "ca")
    place = "identity"
    try:
        facts = read_identity(pem)
        check_identity(pem, "")
        place = "ca"
        if authorities:
            read_authorities(authorities)
            check_identity("", authorities)
    except (PemRefused, IdentityRefused) as error:
        raise FieldRefused(f"This cannot be used: {error}", MTLS, place) from error
    if facts.ends_at <= now:
        raise FieldRefused(f"The certificate has ended: {iso_time(facts.ends_at)}", MTLS, "identity")
    content = json_text.write([pem, authorities or ""]).encode()
    certificate = ClientCertificate(
        digest=hashlib.sha256(content).hexdigest()[:32],
        subject=facts.subject,
        ends_at=facts.ends_at,
        private_ca=bool(authorities),
        fingerprint=facts.digest,
    )
    return certificate, content


def malformed(url: str, targets: Sequence[str]) -> str | None:
    """What is wrong with the form of a token URL; None if nothing is.

    Args:
        targets: The project's allowed targets. What only they open is inside a network, and may have no TLS.
    """
    refused = unusable(url)
    if refused is not None:
        return refused
    target = parse_target(url)
    if target.authorization:
        return "The URL must not have user information: client id and secret stand for it"
    if "#" in url:
        return "The URL must not have a fragment"
    named = {each.name for each in AllowedTargets.parse(targets).entries}
    inside = target.address is not None and not target.address.is_global
    if target.scheme != "https" and not (inside or target.host == "localhost" or target.host in named):
        return "The URL must begin with https://"
    return None


def check_fitting(gated: Gated, url: str, headers: Collection[str]) -> None:
    """Check that a subscriber's gates go together with its URL and headers.

    Args:
        gated: The gates.
        url: The URL, opened.
        headers: Names of its own headers.

    Raises:
        FieldRefused: They do not.
    """
    if gated.certificate is not None and not _is_https(url):
        raise FieldRefused("Only what has a URL that begins with https:// is sent a certificate", MTLS)
    if not gated.oauth:
        return
    if not url[:8].lower().startswith(("http://", "https://")):
        raise FieldRefused("Only what has an HTTP URL is sent tokens", OAUTH)
    if user_of(url) is not None:
        raise FieldRefused("The URL has user information, and tokens are to be sent: it can have one of them", OAUTH)
    if any(name.lower() == "authorization" for name in headers):
        raise FieldRefused("There is a header Authorization, in which tokens are sent", OAUTH)


def _is_https(url: str) -> bool:
    try:
        return parse_target(url).scheme == "https"
    except InvalidTarget:
        return False


class GateSettings(Component):
    """Changes the gates of queues' subscribers and stores' services."""

    vault: Callable[[], Vault]  # Encrypts what opens something; made when it is first needed.
    projects: ProjectStore  # For the projects' allowed targets.
    calls: StrangerCalls  # Checks token URLs.
    within: Callable[[Reach, str], bool]  # Whether a caller's reach covers a URL.
    notes: Callable[[str], EndNotes]  # Notes of what is to be told of certificates' ends.
    clock: Clock

    def changed(
        self,
        project_id: str,
        before: Gated | None,
        change: GateChange,
        *,
        protocol: str,
        place: tuple[str, str],
        url: str,
        headers: Collection[str] = (),
    ) -> Gates:
        """A subscriber's gates after a change.

        Args:
            before: Its gates so far; None for none.
            protocol: Whose subscriber it is.
            place: Its queue and its id, by which it is found when its certificate ends.
            url: Its URL, opened.
            headers: Names of its own headers.

        Raises:
            FieldRefused: They could not be right.
        """
        before = before or OPEN
        after = Gates(oauth=self._oauth(project_id, before, change.oauth))
        certificate, identity = self._mtls(project_id, before, change.mtls)
        after = replace(after, certificate=certificate, identity=identity)
        check_fitting(after, url, headers)
        if len(after.oauth) + len(after.identity) > MOST_SEALED:
            raise FieldRefused(f"It takes more than {MOST_SEALED} bytes with the certificate", OAUTH)
        if certificate is not None and certificate != before.certificate:
            self._note(project_id, protocol, place, certificate)
        return after

    def _note(self, project_id: str, protocol: str, place: tuple[str, str], certificate: ClientCertificate) -> None:
        at = first_warning(certificate.ends_at, self.clock.now())
        if at is not None:
            # Noted first: a note without its certificate tells nothing.
            self.notes(protocol).note_end(EndNote(at, project_id, *place, certificate.digest))

    def _oauth(self, project_id: str, before: Gated, wanted: GrantRequest | Literal[False] | None) -> bytes:
        if wanted is False:
            return b""
        if wanted is None or (wanted.as_stored and before.oauth):
            return before.oauth
        stored = grant_of(project_id, before, self.vault()) if before.oauth else None
        try:
            grant = read_grant(wanted, stored, self._allowed(project_id))
        except FieldRefused as refused:
            raise refused.within(OAUTH) from refused
        if stored is not None and replace(grant, revision=stored.revision) == stored:
            return before.oauth
        return self.vault().seal(project_id, grant.encode())

    def _mtls(
        self, project_id: str, before: Gated, wanted: CertificateRequest | Literal[False] | None
    ) -> tuple[ClientCertificate | None, bytes]:
        if wanted is False:
            return None, b""
        if wanted is None or (wanted.as_stored and before.certificate is not None):
            return before.certificate, before.identity
        certificate, content = read_certificate(wanted, self.clock.now())
        if before.certificate is not None and certificate.digest == before.certificate.digest:
            return before.certificate, before.identity
        return certificate, self.vault().seal(project_id, content)

    def _allowed(self, project_id: str) -> Allowed:
        targets = allowed_targets(self.projects, project_id, Reach.PROJECT)

        def refusal(url: str) -> str | None:
            refused = malformed(url, targets) or self.calls.refusal(project_id, [url], targets)
            return refused if self.within(Reach.PROJECT, url) else OUT_OF_REACH

        return Allowed(refusal=refusal, reach=Reach.PROJECT.value)
