"""Endpoints: created, changed and looked up; their secrets and headers."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.signing import KeyRing, SigningKey, TooManyKeys, new_key
from pushhub.base.times import iso_time
from pushhub.engine.component import Component
from pushhub.engine.model.reach import Reach
from pushhub.webhooks.applications.applications import found_application
from pushhub.webhooks.endpoints.consent import Questions, allowed_rate, digest_of
from pushhub.webhooks.endpoints.credentials import opened
from pushhub.webhooks.endpoints.signatures import check_fit
from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields, OpenQuestion
from pushhub.webhooks.model.ids import IdPrefix, is_application, is_id, new_id
from pushhub.webhooks.model.page import Page, Window, page_of, span_of
from pushhub.webhooks.model.refusals import Refused, conflict, not_found
from pushhub.webhooks.wire.fields import NAME

if TYPE_CHECKING:
    from pushhub.base.ports import Clock
    from pushhub.base.signing_change import WantedSignature
    from pushhub.engine.security.credentials import Credentials
    from pushhub.webhooks.endpoints.endpoint_changes import EndpointChanges
    from pushhub.webhooks.endpoints.endpoint_checks import EndpointChecks
    from pushhub.webhooks.endpoints.signatures import EndpointSignatures
    from pushhub.webhooks.model.application import Application
    from pushhub.webhooks.model.rights import Rights
    from pushhub.webhooks.ports import Endpoints, ReadApplications, ReadEndpoints
    from pushhub.webhooks.wire.endpoint import EndpointChange, HeaderChange, NewEndpoint, Rotation

_PROJECT = re.compile("[0-9a-f]{24}")


def found_endpoint(store: ReadEndpoints, application: Application, name: str) -> Endpoint:
    """The endpoint of an application with an id or uid; ``NotFound`` if there is none."""
    found = _find(store, application, name)
    if found is None:
        raise not_found()
    return found


def _find(store: ReadEndpoints, application: Application, name: str) -> Endpoint | None:
    return store.endpoint(application.project, application.app_id, name) if NAME.fullmatch(name) else None


class WebhooksEndpoints(Component):
    """The endpoints of applications. Applications and endpoints are named by id or uid.

    Methods raise ``NotFound`` for what is not there, ``Unprocessable`` for a field that breaks a rule, and ``Refused``
    (409) for a uid that is taken.
    """

    applications: ReadApplications
    store: Endpoints
    checks: EndpointChecks
    changes: EndpointChanges
    signatures: EndpointSignatures
    credentials: Credentials
    questions: Questions
    clock: Clock

    def __post_init__(self) -> None:
        self.url_as_shown = self.checks.url_as_shown

    def create(
        self,
        application: Application,
        wanted: NewEndpoint,
        signatures: Callable[[], Sequence[WantedSignature]],
        rights: Rights,
        *,
        endpoint_id: str = "",
    ) -> Endpoint:
        """Make an endpoint.

        Args:
            signatures: Reads the schemes that are to sign its requests, when everything else is right.
            endpoint_id: Its id, which nobody has; a new one if empty.

        Raises:
            NotFound: There is no such application any more.
        """
        given, headers = wanted.fields, wanted.headers
        schemes = self.checks.new(application, wanted, signatures, rights)
        now = self.clock.now()
        named = Endpoint(
            project=application.project,
            app_id=application.app_id,
            endpoint_id=endpoint_id or new_id(IdPrefix.ENDPOINT, now),
            fields=given,
            reach=rights.reach,
            flags=rights.flags,
            reads=wanted.reads,
            created_at=now,
            updated_at=now,
        )
        named = self.signatures.changed(replace(named, headers=headers), schemes)
        created = self.signatures.with_keys(
            replace(named, question=self._asked(named)), KeyRing(wanted.key or new_key())
        )
        return self.changes.create(created)

    def page(self, project_id: str, app: str, window: Window) -> Page[Endpoint]:
        """A page of an application's endpoints."""
        application = found_application(self.applications, project_id, app)
        found = self.store.endpoints(project_id, application.app_id, span_of(window))
        return page_of(found, window, lambda each: each.endpoint_id)

    def endpoint(self, project_id: str, app: str, name: str) -> Endpoint:
        """One endpoint."""
        return found_endpoint(self.store, found_application(self.applications, project_id, app), name)

    def find(self, application: Application, name: str) -> Endpoint | None:
        """The endpoint of an application with an id or uid, or None."""
        return _find(self.store, application, name)

    def update(self, application: Application, endpoint: Endpoint, wanted: EndpointChange, rights: Rights) -> Endpoint:
        """Change the fields of an endpoint."""
        there = self._opened(endpoint)
        given = wanted.apply(there.fields)
        self.checks.check(application.project, given, rights, before=there.fields)

        def changed(stored: Endpoint) -> Endpoint:
            given = wanted.apply(stored.fields)
            self.checks.may_set(rights, stored, given)
            self.checks.consent(rights, application, given, stored)
            if given.url != stored.fields.url:
                self.checks.headers(given, stored.headers)
                check_fit(replace(stored, fields=given), "url")
            return replace(
                stored,
                fields=given,
                reach=_reach(rights, stored, given) if "url" in wanted.settings else stored.reach,
                flags=rights.flags if "event_types" in wanted.settings else stored.flags,
            )

        if wanted.settings.keys().isdisjoint(("url", "cloud_events")):
            return self.changes.update(there, changed)
        consented = self._consent(there, given)
        return self.changes.update(there, lambda stored: consented(stored, changed(stored)))

    def _opened(self, endpoint: Endpoint) -> Endpoint:
        return opened(endpoint, self.credentials)

    def consent(
        self, project_id: str, app_id: str, endpoint_id: str, secret: str, rate: str | None, *, give: bool = True
    ) -> Endpoint:
        """Accept an endpoint's consent at the URL it was given, which works once.

        Args:
            rate: Value of ``WebHook-Allowed-Rate``; None for the rate it named when it was asked.
            give: Whether it consents; False only checks the URL.

        Raises:
            NotFound: No such request for consent is open: there was none, it was answered, it has expired, or the
                endpoint was asked again.
            Invalid: The rate is invalid.
        """
        allowed = None if rate is None else allowed_rate(rate)
        there = self._by_ids(project_id, app_id, endpoint_id)
        self._question(there, secret)
        if not give:
            return there

        def change(stored: Endpoint) -> Endpoint:
            question = self._question(stored, secret)
            return replace(
                stored,
                question=replace(question, answered=True),
                allowed_rate=question.rate if rate is None else allowed,
            )

        return self.changes.update(there, change)

    def _question(self, endpoint: Endpoint, secret: str) -> OpenQuestion:
        question = endpoint.question
        right = question is not None and hmac.compare_digest(question.digest, digest_of(secret))
        if question is None or not right or not question.open_at(self.clock.now()):
            raise not_found()
        return question

    def delete(self, project_id: str, app: str, name: str) -> Endpoint:
        """Delete an endpoint."""
        return self.changes.delete(lambda: self.endpoint(project_id, app, name))

    def secret(self, project_id: str, app: str, name: str) -> SigningKey:
        """The current signing key of an endpoint."""
        return self.keys(self.endpoint(project_id, app, name)).current

    def keys(self, endpoint: Endpoint) -> KeyRing:
        """The signing keys of an endpoint."""
        return self.signatures.keys(endpoint)

    def public_keys(self, project_id: str, app_id: str, endpoint_id: str) -> list[bytes]:
        """The public keys that an endpoint's requests are signed with now, the current one first.

        Empty if all its keys are symmetric.

        Args:
            app_id: The application's id; its uid is not accepted, as this needs no authentication.
        """
        endpoint = self._by_ids(project_id, app_id, endpoint_id)
        if not self.signatures.signs_with_keys(endpoint):
            return []
        return [each.public for each in self.keys(endpoint).live(self.clock.now()) if each.public]

    def _by_ids(self, project_id: str, app_id: str, endpoint_id: str) -> Endpoint:
        """An endpoint by its ids only, for callers without a token."""
        named = _PROJECT.fullmatch(project_id) and is_application(app_id) and is_id(IdPrefix.ENDPOINT, endpoint_id)
        if not named:
            raise not_found()
        # The endpoints of an application outlive it.
        found_application(self.applications, project_id, app_id)
        endpoint = self.store.endpoint(project_id, app_id, endpoint_id)
        if endpoint is None:
            raise not_found()
        return endpoint

    def rotate(self, project_id: str, app: str, name: str, rotation: Rotation) -> tuple[Endpoint, SigningKey]:
        """Give an endpoint another signing key.

        Returns:
            The endpoint, and its key from now on.

        Raises:
            Refused: Too many old keys are still valid, or the key signs nothing (400).
        """
        key = rotation.key or new_key()

        def change(stored: Endpoint) -> Endpoint:
            self.signatures.check_rotatable(stored)
            now = self.clock.now()
            try:
                ring = self.keys(stored).rotated(key, grace_ms=rotation.grace_s * 1000, now=now)
            except TooManyKeys as error:
                raise Refused(
                    400,
                    "limit_reached",
                    f"Too many old keys are still valid; the next one expires at {iso_time(error.next_expiry)}",
                ) from error
            return self.signatures.with_keys(stored, ring)

        return self.changes.update(self.endpoint(project_id, app, name), change), key

    def change(self, project_id: str, app: str, name: str, change: Callable[[Endpoint], Endpoint]) -> Endpoint:
        """Make a change of an endpoint as it is stored, and opened; it may be made several times until it is saved."""
        return self.changes.update(self.endpoint(project_id, app, name), change)

    def headers(self, project_id: str, app: str, name: str) -> Mapping[str, str]:
        """The headers of an endpoint."""
        return self._opened(self.endpoint(project_id, app, name)).headers

    def change_headers(self, project_id: str, app: str, name: str, wanted: HeaderChange) -> None:
        """Add, replace and remove headers of an endpoint."""

        def change(stored: Endpoint) -> Endpoint:
            headers = wanted.apply(stored.headers)
            changed = replace(stored, headers=headers)
            if wanted.removed is None or set(headers) - set(stored.headers):
                self.checks.headers(stored.fields, headers)
                check_fit(changed, "headers")
            return changed

        self.changes.change(self.endpoint(project_id, app, name), change)

    def _asked(self, endpoint: Endpoint) -> OpenQuestion | None:
        """Have an endpoint asked for its consent, if required; returns the question to store with it."""
        wanted = endpoint.fields.cloud_events
        if wanted is None or not wanted.consent:
            return None
        self.checks.askable(endpoint.fields)
        return self.questions.ask(endpoint, callback=wanted.callback)

    def _consent(self, there: Endpoint, given: EndpointFields) -> Callable[[Endpoint, Endpoint], Endpoint]:
        """Decide whether a change needs the endpoint's consent, and have it asked if it does.

        Returns:
            What completes the change, given the endpoint as it is stored and as it will be.
        """
        keeps = there.consented_to(given)
        question = None if keeps else self._asked(replace(there, fields=given))

        def completed(stored: Endpoint, after: Endpoint) -> Endpoint:
            if after.fields.asks_consent:
                asked = question is not None and after.fields.url == given.url
                if not (stored.consented_to(after.fields) if keeps else asked):
                    # Because of a concurrent change, nobody has been asked about this.
                    raise conflict("It was changed by another request at the same time")
            return after if keeps else replace(after, allowed_rate=None, question=question)

        return completed


def _reach(rights: Rights, stored: Endpoint, given: EndpointFields) -> Reach:
    """The reach of an endpoint whose URL a caller sets: the caller's, unless a portal sets the URL that is there."""
    return stored.reach if rights.reach is Reach.PORTAL and given.url == stored.fields.url else rights.reach
