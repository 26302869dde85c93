"""Transformations of endpoints: set, shown, tried on a payload."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.credentials import place_of, user_of, with_user
from pushhub.engine.component import Component
from pushhub.webhooks.endpoints.credentials import opened
from pushhub.webhooks.model.refusals import insufficient, unprocessable
from pushhub.webhooks.model.transformation import CodeFailed, Transformation, Webhook, WebhookChanges
from pushhub.webhooks.wire.endpoint import is_http
from pushhub.webhooks.wire.transformation import answers_of, as_meant, given_for, read_changes, request_of

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Vault
    from pushhub.engine.model.reach import Reach
    from pushhub.engine.security.credentials import Credentials
    from pushhub.webhooks.endpoints.endpoints import WebhooksEndpoints
    from pushhub.webhooks.model.endpoint import Endpoint
    from pushhub.webhooks.model.rights import Rights
    from pushhub.webhooks.ports import Scripts
    from pushhub.webhooks.wire.transformation import TransformationChange, Trial


class Transformations(Component):
    """The transformations of endpoints. Applications and endpoints are named by id or uid.

    Methods raise ``NotFound`` for what is not there.
    """

    endpoints: WebhooksEndpoints
    scripts: Scripts
    vault: Vault
    credentials: Credentials
    within: Callable[[Reach, str], bool]  # Whether a caller's reach covers a URL.
    clock: Clock

    def transformation(self, project_id: str, app: str, name: str) -> Transformation:
        """That of an endpoint."""
        return transformation_of(self.endpoints.endpoint(project_id, app, name), self.vault)

    def change(self, project_id: str, app: str, name: str, wanted: TransformationChange, rights: Rights) -> None:
        """Change that of an endpoint.

        Raises:
            Refused: The endpoint's URL is out of the caller's reach (403).
        """
        now = self.clock.now()
        sealed: dict[bytes, tuple[bool, bytes]] = {}

        def change(stored: Endpoint) -> Endpoint:
            self._check(opened(stored, self.credentials), rights)
            # Sealed again only if somebody else has changed it.
            if stored.transformation not in sealed:
                sealed[stored.transformation] = self._changed(stored, wanted, rights, now)
            applies, content = sealed[stored.transformation]
            return replace(stored, transforms=applies, transformation=content)

        self.endpoints.change(project_id, app, name, change)

    def _changed(self, stored: Endpoint, wanted: TransformationChange, rights: Rights, now: int) -> tuple[bool, bytes]:
        changed = replace(wanted.apply(transformation_of(stored, self.vault)), updated_at=now)
        if wanted.variables is not None or not wanted.settings.keys().isdisjoint(("code", "language")):
            changed = replace(changed, reach=rights.reach)
        if not changed.code and not changed.variables and not changed.enabled:
            return False, b""
        return changed.applies, self.vault.seal(stored.project, changed.encode())

    def _check(self, endpoint: Endpoint, rights: Rights) -> None:
        if not self.within(rights.reach, endpoint.fields.url):
            raise insufficient()

    def tried(
        self, project_id: str, app: str, name: str, trial: Trial, rights: Rights
    ) -> tuple[Webhook, WebhookChanges]:
        """What code would make of a payload for an endpoint. Nothing is sent.

        Raises:
            Unprocessable: The code fails.
            Unavailable: It could not be run.
        """
        endpoint = opened(self.endpoints.endpoint(project_id, app, name), self.credentials)
        self._check(endpoint, rights)
        stored = transformation_of(endpoint, self.vault)
        variables = stored.variables if trial.variables is None else as_meant(trial.variables, stored)
        code = replace(stored, code=trial.code, language=trial.language, variables=variables)
        webhook = Webhook(
            url=given_url(endpoint.fields.url), payload=trial.payload, is_json=True, event_type=trial.event_type
        )
        try:
            changes = run(self.scripts, code, endpoint, [webhook], now=self.clock.now(), seed=endpoint.endpoint_id)
            check_sendable(endpoint, changes)
        except CodeFailed as failed:
            raise unprocessable(code.without_secrets(failed.text), "body", "code") from failed
        return webhook, changes


def transformation_of(endpoint: Endpoint, vault: Vault) -> Transformation:
    """The transformation of an endpoint; without code if it has none."""
    if not endpoint.transformation:
        return Transformation()
    return Transformation.decode(vault.open(endpoint.project, endpoint.transformation))


def run(
    scripts: Scripts,
    transformation: Transformation,
    endpoint: Endpoint,
    events: Sequence[Webhook],
    *,
    now: int,
    seed: str,
) -> WebhookChanges:
    """What code makes of events for an endpoint; see :func:`pushhub.webhooks.wire.transformation.request_of`.

    Raises:
        CodeFailed: The code failed.
        Unavailable: It could not be run.
    """
    answers, given = answers_of(endpoint), given_for(endpoint, given_url(endpoint.fields.url), events)
    return read_changes(scripts.run(request_of(transformation, given, answers, now=now, seed=seed)), answers)


def check_sendable(endpoint: Endpoint, changes: WebhookChanges) -> None:
    """Check that what code makes could be sent: its URL passes the rule of an endpoint's. Where it leads is for the
    guard to see, when it is sent.

    Raises:
        CodeFailed: It could not.
    """
    fields, given = endpoint.fields, given_url(endpoint.fields.url)
    if changes.cancel:
        return
    if not is_http(fields.url) and (changes.method != "POST" or changes.url not in (None, given) or changes.headers):
        raise CodeFailed("Only the payload can be changed of what is not sent by HTTP")
    if changes.url is None or changes.url == given:
        return
    from pushhub.egress.guard import unusable  # noqa: PLC0415 (little code changes the URL)

    if not is_http(changes.url):
        raise CodeFailed("The url must begin with http:// or https://")
    if user_of(changes.url) is not None:
        raise CodeFailed("The url may hold no user information: use a header")
    reason = unusable(changes.url)
    if reason is not None:
        raise CodeFailed(f"The url cannot be called: {reason}")
    if place_of(changes.url) != place_of(given) and (endpoint.gated or fields.asks_consent):
        raise CodeFailed("The endpoint's OAuth, certificate or consent is for its own host")


def given_url(url: str) -> str:
    """An endpoint's URL as code is given it: without its user information."""
    return url if user_of(url) is None else with_user(url, "").replace("://@", "://", 1)
