"""The signature schemes that endpoints inherit: of their application, else of their project."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pushhub.base.conflicts import until_saved
from pushhub.engine.component import Component
from pushhub.engine.ends import EndNote, scheme_note
from pushhub.engine.projects.copies import PROJECT
from pushhub.webhooks.applications.applications import found_application
from pushhub.webhooks.model.internal_queues import queue_of
from pushhub.webhooks.wire.signatures import FIELD, schemes_view

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.base.signature_schemes import Scheme
    from pushhub.base.signing_change import WantedSignature
    from pushhub.engine.ports import ProjectStore
    from pushhub.engine.projects.copies import ChangeNotes
    from pushhub.webhooks.endpoints.endpoints import WebhooksEndpoints
    from pushhub.webhooks.endpoints.signatures import EndpointSignatures
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.ports import Applications

STANDARD: Mapping[str, Any] = {"preset": "standard-webhooks"}


class SignatureDefaults(Component):
    """Shows and sets how endpoints are signed: each by itself, by application, and by project.

    Methods raise ``NotFound`` for what is not there.

    Applications and endpoints are named by id or uid.
    """

    applications: Applications
    endpoints: WebhooksEndpoints
    signatures: EndpointSignatures
    projects: ProjectStore
    notes: ChangeNotes
    note_end: Callable[[EndNote], None]
    clock: Clock

    def of_endpoint(self, project_id: str, app: str, name: str) -> Mapping[str, Any]:
        """The schemes that sign an endpoint's requests, as shown to their owner, and whose they are."""
        return self._shown(self.endpoints.endpoint(project_id, app, name))

    def set_of_endpoint(
        self, project_id: str, app: str, name: str, wanted: Sequence[WantedSignature]
    ) -> Mapping[str, Any]:
        """Replace the schemes that sign an endpoint's requests; returns them as shown to their owner."""
        return self._shown(
            self.endpoints.change(project_id, app, name, lambda stored: self.signatures.changed(stored, wanted))
        )

    def _shown(self, endpoint: Endpoint) -> Mapping[str, Any]:
        if endpoint.signatures:
            return {FIELD: self.signatures.view(endpoint)}
        application = self.applications.application(endpoint.project, endpoint.app_id)
        of_application, of_project = application.signatures if application else (), self._of(endpoint.project)
        now = self.clock.now()
        schemes = endpoint.signed_by(of_application, of_project)
        if not schemes or not self.signatures.keys(endpoint).as_secrets(now):
            return {FIELD: [STANDARD]}
        return {FIELD: schemes_view(schemes, now), "inheritedFrom": "application" if of_application else "project"}

    def of_application(self, project_id: str, app: str) -> Mapping[str, Any]:
        """The schemes that an application's endpoints inherit."""
        schemes = found_application(self.applications, project_id, app).signatures
        return {FIELD: schemes_view(schemes, self.clock.now())}

    def set_of_application(self, project_id: str, app: str, schemes: tuple[Scheme, ...]) -> Mapping[str, Any]:
        """Replace the schemes that an application's endpoints inherit; none for those of the project."""
        app_id = found_application(self.applications, project_id, app).app_id
        self._note(project_id, app_id, schemes)

        def once() -> None:
            before = found_application(self.applications, project_id, app_id)
            after = replace(before, signatures=schemes, updated_at=self.clock.now())
            self.notes.note(project_id, queue_of(app_id))
            self.applications.put_application(after, before)

        until_saved(once, doing="changing an application")
        return {FIELD: schemes_view(schemes, self.clock.now())}

    def of_project(self, project_id: str) -> Mapping[str, Any]:
        """The schemes that receivers of a project inherit: endpoints, subscribers of queues and services of stores."""
        return {FIELD: schemes_view(self._of(project_id), self.clock.now())}

    def set_of_project(self, project_id: str, schemes: tuple[Scheme, ...]) -> Mapping[str, Any]:
        """Replace the schemes that receivers of a project inherit; none for Standard Webhooks."""
        self._note(project_id, "", schemes)
        self.notes.note(project_id, PROJECT)
        self.projects.sign_project(project_id, schemes)
        return {FIELD: schemes_view(schemes, self.clock.now())}

    def _of(self, project_id: str) -> tuple[Scheme, ...]:
        project = self.projects.project(project_id, within_ms=0)
        return project.signatures if project else ()

    def _note(self, project_id: str, app_id: str, schemes: Sequence[Scheme]) -> None:
        for scheme in schemes:
            note = scheme_note((project_id, app_id, ""), scheme.header, scheme.ends_at, self.clock.now())
            if note is not None:
                self.note_end(note)
