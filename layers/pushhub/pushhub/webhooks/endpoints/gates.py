"""Gates in front of endpoints: what a receiver demands before it looks at a request. Set by the endpoint's owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.errors import FieldRefused
from pushhub.base.times import iso_time
from pushhub.engine.component import Component
from pushhub.engine.ends import EndNote, first_warning
from pushhub.engine.projects.projects import allowed_targets
from pushhub.engine.security.gates import check_fitting, grant_of, malformed, read_certificate
from pushhub.engine.security.grants import Allowed, read_grant
from pushhub.engine.target import OUT_OF_REACH
from pushhub.webhooks.model.refusals import not_found, unprocessable
from pushhub.webhooks.wire.grant import grant_view

if TYPE_CHECKING:
    from pushhub.base.gates import CertificateRequest, ClientCertificate
    from pushhub.base.grants import GrantRequest
    from pushhub.base.ports import Clock, Vault
    from pushhub.engine.ends import EndNotes
    from pushhub.engine.model.reach import Reach
    from pushhub.engine.ports import ProjectStore
    from pushhub.webhooks.endpoints.endpoints import WebhooksEndpoints
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.model.rights import Rights


class Refusal(Protocol):
    """Says why a URL may not be registered; :meth:`pushhub.engine.security.stranger_calls.StrangerCalls.refusal`."""

    def __call__(self, project_id: str, urls: Sequence[str], allowed_targets: Sequence[str], /) -> str | None:
        """None when it may."""
        ...


class EndpointGates(Component):
    """What the receivers of endpoints demand. Applications and endpoints are named by id or uid.

    Methods raise ``NotFound`` for what is not there, and ``Unprocessable`` for what could not be right.
    """

    endpoints: WebhooksEndpoints
    vault: Vault
    projects: ProjectStore
    refusal: Refusal  # Checks token URLs.
    within: Callable[[Reach, str], bool]  # Whether a caller's reach covers a URL.
    notes: EndNotes
    clock: Clock

    def oauth(self, project_id: str, app: str, name: str) -> Mapping[str, object] | None:
        """How an endpoint's tokens are obtained, without secrets; None if it has none."""
        endpoint = self.endpoints.endpoint(project_id, app, name)
        return grant_view(grant_of(project_id, endpoint, self.vault)) if endpoint.oauth else None

    def set_oauth(self, project_id: str, app: str, name: str, asked: GrantRequest, rights: Rights) -> None:
        """Say how an endpoint's tokens are obtained."""
        known = self._allowed(project_id, rights)
        read: dict[bytes, bytes] = {}

        def change(stored: Endpoint) -> Endpoint:
            # Read again only if somebody else has changed it: each reading is another revision.
            if stored.oauth not in read:
                read[stored.oauth] = self._read(stored, asked, known)
            changed = replace(stored, oauth=read[stored.oauth])
            check_gates(changed)
            return changed

        self.endpoints.change(project_id, app, name, change)

    def remove_oauth(self, project_id: str, app: str, name: str) -> None:
        """Send an endpoint no tokens any more."""

        def change(stored: Endpoint) -> Endpoint:
            if not stored.oauth:
                raise not_found()
            return replace(stored, oauth=b"")

        self.endpoints.change(project_id, app, name, change)

    def certificate(self, project_id: str, app: str, name: str) -> Mapping[str, object] | None:
        """The certificate that an endpoint's requests are sent with, as it may be told; None if there is none."""
        found = self.endpoints.endpoint(project_id, app, name).certificate
        if found is None:
            return None
        return {"subject": found.subject, "endsAt": iso_time(found.ends_at), "privateCa": found.private_ca}

    def set_certificate(self, project_id: str, app: str, name: str, asked: CertificateRequest) -> None:
        """Say with which certificate an endpoint's requests are sent."""
        there = self.endpoints.endpoint(project_id, app, name)
        certificate, content = self._read_certificate(asked)
        sealed = self.vault.seal(project_id, content)
        at = first_warning(certificate.ends_at, self.clock.now())
        known = there.certificate is not None and there.certificate.digest == certificate.digest
        if at is not None and not known:
            # Noted first: a note without its certificate tells nothing. One that is there already has its notes.
            self.notes.note_end(EndNote(at, project_id, there.app_id, there.endpoint_id, certificate.digest))

        def change(stored: Endpoint) -> Endpoint:
            changed = replace(stored, certificate=certificate, identity=sealed)
            check_gates(changed)
            return changed

        self.endpoints.change(project_id, app, name, change)

    def remove_certificate(self, project_id: str, app: str, name: str) -> None:
        """Send an endpoint no certificate any more."""

        def change(stored: Endpoint) -> Endpoint:
            if stored.certificate is None:
                raise not_found()
            return replace(stored, certificate=None, identity=b"")

        self.endpoints.change(project_id, app, name, change)

    def _read_certificate(self, asked: CertificateRequest) -> tuple[ClientCertificate, bytes]:
        """What may be told of a certificate, and what is to be sealed."""
        try:
            return read_certificate(asked, self.clock.now())
        except FieldRefused as refused:
            raise unprocessable(refused.text, "body", *refused.place[1:]) from refused

    def _read(self, stored: Endpoint, asked: GrantRequest, allowed: Allowed) -> bytes:
        before = grant_of(stored.project, stored, self.vault) if stored.oauth else None
        try:
            grant = read_grant(asked, before, allowed)
        except FieldRefused as refused:
            raise unprocessable(refused.text, "body", *refused.place) from refused
        return self.vault.seal(stored.project, grant.encode())

    def _allowed(self, project_id: str, rights: Rights) -> Allowed:
        targets = allowed_targets(self.projects, project_id, rights.reach)
        checked: dict[str, str | None] = {}

        def refusal(url: str) -> str | None:
            if url not in checked:
                checked[url] = malformed(url, targets) or self.refusal(project_id, [url], targets)
            return checked[url] if self.within(rights.reach, url) else OUT_OF_REACH

        return Allowed(refusal=refusal, reach=rights.reach.value)


def check_gates(endpoint: Endpoint, *place: str) -> None:
    """Refuse, as ``Unprocessable``, what a receiver demands if it does not go together with the URL and headers.

    Args:
        endpoint: As it will be, opened.
        place: What the request would change.
    """
    try:
        check_fitting(endpoint, endpoint.fields.url, endpoint.headers)
    except FieldRefused as refused:
        raise unprocessable(refused.text, "body", *place) from refused
