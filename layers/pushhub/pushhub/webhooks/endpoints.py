"""Endpoints: created, changed and looked up; their secrets and headers."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Protocol

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import Conflict, Invalid
from pushhub.base.signing import KeyRing, SigningKey, TooManyKeys, new_key
from pushhub.base.times import iso_time
from pushhub.webhooks.applications import found_application
from pushhub.webhooks.consent import Consents, allowed_rate
from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields, OpenQuestion
from pushhub.webhooks.model.ids import Kind, is_id, new_id
from pushhub.webhooks.model.page import Page, Window, page_of, span_of
from pushhub.webhooks.model.refusals import Refused, conflict, not_found
from pushhub.webhooks.ports import Endpoints, ReadApplications, ReadEndpoints, UidTaken
from pushhub.webhooks.wire.consent import consent_url
from pushhub.webhooks.wire.endpoint import (
    Rotation,
    is_http,
    parse_endpoint,
    parse_endpoint_patch,
    parse_header_change,
    parse_headers,
    parse_secret,
)
from pushhub.webhooks.wire.fields import NAME, Fields, size_of

if TYPE_CHECKING:
    from pushhub.base.ports import Clock, Vault
    from pushhub.engine.target import Targets
    from pushhub.webhooks.event_types import WebhooksEventTypes
    from pushhub.webhooks.model.application import Application

MAX_BYTES = 300_000
"""Maximum size of an endpoint without its headers and keys, in bytes of JSON: it is kept in one item."""

CALLBACK_MS = 86_400_000
"""How long an endpoint may consent by a callback, milliseconds: a person may have to find the URL in a log first."""

_PROJECT = re.compile("[0-9a-f]{24}")


def found_endpoint(store: ReadEndpoints, application: Application, name: str) -> Endpoint:
    """The endpoint of an application with an id or uid.

    Raises:
        NotFound: There is none.
    """
    found = store.endpoint(application.project, application.app_id, name) if NAME.fullmatch(name) else None
    if found is None:
        raise not_found()
    return found


class Tell(Protocol):
    """Sends an event about a change of an endpoint."""

    def __call__(self, event: str, endpoint: Endpoint, /, **more: object) -> None:
        """Send an event with the endpoint after the change."""
        ...


class WebhooksEndpoints:
    """The endpoints of applications. Applications and endpoints are named by id or uid.

    Args:
        applications: Finds applications.
        store: Where endpoints are kept.
        event_types: Knows which types an endpoint may choose.
        vault: Encrypts their signing keys.
        consents: Asks endpoints for their consent.
        targets: Other kinds of subscribers, whose URLs endpoints may have, too.
        tell: Called with an event and the changed endpoint.
        base_url: Public base URL of this hub.
        clock: Time.
    """

    def __init__(
        self,
        *,
        applications: ReadApplications,
        store: Endpoints,
        event_types: WebhooksEventTypes,
        vault: Vault,
        consents: Consents,
        targets: Callable[[], Targets],
        tell: Tell,
        base_url: str,
        clock: Clock,
    ) -> None:
        self._base_url = base_url
        self._consents = consents
        self._targets = targets
        self._tell = tell
        self._applications = applications
        self._store = store
        self._event_types = event_types
        self._vault = vault
        self._clock = clock

    def create(self, project_id: str, app: str, fields: Fields) -> Endpoint:
        """Make an endpoint.

        Raises:
            NotFound: No such application.
            Unprocessable: A field breaks a rule.
            Refused: The uid is taken (409).
        """
        application = found_application(self._applications, project_id, app)
        given = parse_endpoint(fields)
        key = parse_secret(fields, "secret") or new_key()
        headers = parse_headers(fields)
        self._check(project_id, given, fields)
        now = self._clock.now()
        named = Endpoint(
            project=project_id,
            app_id=application.app_id,
            endpoint_id=new_id(Kind.ENDPOINT, now),
            fields=given,
            created_at=now,
            updated_at=now,
        )
        rate, question = self._consented(named, given, fields)
        made = replace(
            named,
            headers=headers,
            allowed_rate=rate,
            question=question,
            sealed=self._vault.seal(project_id, KeyRing(key).encode()),
        )
        try:
            stored = self._store.put_endpoint(made, None)
        except UidTaken:
            raise _taken() from None
        except Conflict:
            raise not_found() from None
        self._tell("endpoint.created", stored)
        return stored

    def page(self, project_id: str, app: str, window: Window) -> Page[Endpoint]:
        """A page of an application's endpoints.

        Raises:
            NotFound: No such application.
        """
        application = found_application(self._applications, project_id, app)
        found = self._store.endpoints(project_id, application.app_id, span_of(window))
        return page_of(found, window, lambda each: each.endpoint_id)

    def endpoint(self, project_id: str, app: str, name: str) -> Endpoint:
        """One endpoint.

        Raises:
            NotFound: No such application, or it has no such endpoint.
        """
        return found_endpoint(self._store, found_application(self._applications, project_id, app), name)

    def replace(self, project_id: str, app: str, name: str, fields: Fields) -> tuple[Endpoint, bool]:
        """Replace all fields of an endpoint except secret and headers, or create it with them.

        Returns:
            The endpoint, and whether it was made now.

        Raises:
            NotFound: No such application.
            Unprocessable: A field breaks a rule.
            Refused: The uid is taken (409).
        """
        application = found_application(self._applications, project_id, app)
        given = parse_endpoint(fields)
        there = self._store.endpoint(project_id, application.app_id, name) if NAME.fullmatch(name) else None
        if there is None:
            return self.create(project_id, app, fields), True
        self._check(project_id, given, fields, before=there.fields)
        rate, question = self._consented(there, given, fields)
        return self._updated(
            there, lambda stored: replace(stored, fields=given, allowed_rate=rate, question=question)
        ), False

    def patch(self, project_id: str, app: str, name: str, fields: Fields) -> Endpoint:
        """Change the fields of an endpoint that were sent.

        Raises:
            NotFound: No such application or endpoint.
            Unprocessable: A field breaks a rule.
            Refused: The uid is taken (409).
        """
        there = self.endpoint(project_id, app, name)
        given = parse_endpoint_patch(fields, there.fields)
        self._check(project_id, given, fields, before=there.fields)
        if not any(map(fields.has, ("url", "cloudEvents"))):
            return self._updated(
                there, lambda stored: replace(stored, fields=parse_endpoint_patch(fields, stored.fields))
            )
        rate, question = self._consented(there, given, fields)

        def change(stored: Endpoint) -> Endpoint:
            fields_now = parse_endpoint_patch(fields, stored.fields)
            if fields_now.asks_consent and fields_now.url != given.url:
                # A concurrent change altered the other half, so consent was never requested at this URL.
                raise conflict("It was changed by another request at the same time")
            return replace(stored, fields=fields_now, allowed_rate=rate, question=question)

        return self._updated(there, change)

    def consent(
        self, project_id: str, app_id: str, endpoint_id: str, secret: str, rate: str | None, *, give: bool = True
    ) -> Endpoint:
        """Accept an endpoint's consent at the URL it was given. Idempotent: consenting again changes nothing.

        Args:
            project_id: Owner.
            app_id: The application's id.
            endpoint_id: The endpoint's id.
            secret: From the URL.
            rate: Value of ``WebHook-Allowed-Rate``; None for the rate it named when it was asked.
            give: Whether it consents; False only checks the URL.

        Raises:
            NotFound: No such request for consent is open: there was none, it has expired, or the endpoint was asked
                again.
            Invalid: The rate is invalid.
        """
        allowed = None if rate is None else allowed_rate(rate)
        there = self._by_ids(project_id, app_id, endpoint_id)
        if self._question(there, secret).answered or not give:
            return there

        def change(stored: Endpoint) -> Endpoint:
            question = self._question(stored, secret)
            return replace(
                stored,
                question=replace(question, answered=True),
                allowed_rate=question.rate if rate is None else allowed,
            )

        return self._updated(there, change)

    def _question(self, endpoint: Endpoint, secret: str) -> OpenQuestion:
        question = endpoint.question
        right = question is not None and hmac.compare_digest(question.digest, _digest(secret))
        if question is None or not right or self._clock.now() >= question.until:
            raise not_found()
        return question

    def delete(self, project_id: str, app: str, name: str) -> Endpoint:
        """Delete an endpoint.

        Raises:
            NotFound: No such application or endpoint.
        """

        def once() -> Endpoint:
            there = self.endpoint(project_id, app, name)
            self._store.delete_endpoint(there)
            return there

        deleted = until_saved(once, doing="deleting an endpoint")
        self._tell("endpoint.deleted", deleted)
        return deleted

    def secret(self, project_id: str, app: str, name: str) -> SigningKey:
        """The current signing key of an endpoint.

        Raises:
            NotFound: No such application or endpoint.
        """
        return self.keys(self.endpoint(project_id, app, name)).current

    def keys(self, endpoint: Endpoint) -> KeyRing:
        """The signing keys of an endpoint."""
        return KeyRing.decode(self._vault.open(endpoint.project, endpoint.sealed))

    def public_keys(self, project_id: str, app_id: str, endpoint_id: str) -> list[bytes]:
        """The public keys that an endpoint's requests are signed with now, the current one first.

        Empty if all its keys are symmetric.

        Args:
            project_id: Owner.
            app_id: The application's id; its uid is not accepted, as this needs no authentication.
            endpoint_id: The endpoint's id.

        Raises:
            NotFound: No such endpoint.
        """
        endpoint = self._by_ids(project_id, app_id, endpoint_id)
        return [each.public for each in self.keys(endpoint).live(self._clock.now()) if each.public]

    def _by_ids(self, project_id: str, app_id: str, endpoint_id: str) -> Endpoint:
        """An endpoint by its ids only, for callers without a token."""
        named = _PROJECT.fullmatch(project_id) and is_id(Kind.APPLICATION, app_id) and is_id(Kind.ENDPOINT, endpoint_id)
        endpoint = self._store.endpoint(project_id, app_id, endpoint_id) if named else None
        if endpoint is None:
            raise not_found()
        return endpoint

    def rotate(self, project_id: str, app: str, name: str, rotation: Rotation) -> tuple[Endpoint, SigningKey]:
        """Give an endpoint another signing key.

        Returns:
            The endpoint, and its key from now on.

        Raises:
            NotFound: No such application or endpoint.
            Refused: Too many old keys are still valid (400).
        """
        key = rotation.key or new_key()

        def change(stored: Endpoint) -> Endpoint:
            now = self._clock.now()
            try:
                ring = self.keys(stored).rotated(key, grace_ms=rotation.grace_s * 1000, now=now)
            except TooManyKeys as error:
                raise Refused(
                    400,
                    "limit_reached",
                    f"Too many old keys are still valid; the next one expires at {iso_time(error.next_expiry)}",
                ) from error
            return replace(stored, sealed=self._vault.seal(project_id, ring.encode()))

        return self._updated(self.endpoint(project_id, app, name), change), key

    def headers(self, project_id: str, app: str, name: str) -> Mapping[str, str]:
        """The headers of an endpoint.

        Raises:
            NotFound: No such application or endpoint.
        """
        return self.endpoint(project_id, app, name).headers

    def set_headers(self, project_id: str, app: str, name: str, fields: Fields) -> None:
        """Replace the headers of an endpoint.

        Raises:
            NotFound: No such application or endpoint.
            Unprocessable: There are none, or one may not be sent.
        """
        if fields.raw("headers") is None:
            raise fields.refuse("An object whose values are strings is required", "headers")
        given = parse_headers(fields)
        self._changed(self.endpoint(project_id, app, name), lambda stored: replace(stored, headers=given))

    def change_headers(self, project_id: str, app: str, name: str, fields: Fields) -> None:
        """Add, replace and remove some headers of an endpoint.

        Raises:
            NotFound: No such application or endpoint.
            Unprocessable: One may not be sent.
        """
        asked = parse_header_change(fields)
        self._changed(
            self.endpoint(project_id, app, name),
            lambda stored: replace(stored, headers=asked.apply(fields, stored.headers)),
        )

    def _check(
        self, project_id: str, given: EndpointFields, fields: Fields, before: EndpointFields | None = None
    ) -> None:
        """Check that its URL is usable, and that the event types it chooses exist.

        Types it already has may have been archived since.
        """
        if size_of(asdict(given)) > MAX_BYTES:
            raise fields.refuse(f"An endpoint may take at most {MAX_BYTES} bytes", "description")
        if not is_http(given.url):
            try:
                self._targets().registered(given.url)
            except Invalid as error:
                raise fields.refuse(error.message, "url") from error
        kept = before.event_types or () if before else ()
        names = [each for each in given.event_types or () if each not in kept]
        missing = self._event_types.missing(project_id, names) if names else []
        if missing:
            raise fields.refuse(f"The following event types don't exist: {', '.join(missing)}", "eventTypes")

    def _consented(
        self, there: Endpoint, given: EndpointFields, fields: Fields
    ) -> tuple[int | None, OpenQuestion | None]:
        """Ask an endpoint for its consent, if required.

        Returns:
            The requests per minute that it allows, None for any number; and the question that it may still answer.
        """
        if not given.asks_consent:
            return None, None
        if not is_http(given.url):
            raise fields.refuse("Only an HTTP endpoint can be asked for its consent", "cloudEvents", "consent")
        later = given.cloud_events is not None and given.cloud_events.callback
        secret = secrets.token_urlsafe(32) if later else ""
        callback = consent_url(self._base_url, there, secret) if later else ""
        until = self._clock.now() + CALLBACK_MS
        try:
            consent = self._consents.ask(there.project, given.url, given.throttle_rate, callback)
        except Invalid as error:
            raise fields.refuse(error.message, "url") from error
        if consent.given:
            return consent.rate, None
        return None, OpenQuestion(digest=_digest(secret), until=until, rate=consent.rate)

    def _updated(self, there: Endpoint, change: Callable[[Endpoint], Endpoint]) -> Endpoint:
        """Make a change and send its event; enabling or disabling gets an additional event of its own."""
        after = self._changed(there, change)
        self._tell("endpoint.updated", after)
        if after.fields.disabled and not there.fields.disabled:
            self._tell("endpoint.disabled", after, trigger="manual")
        if there.fields.disabled and not after.fields.disabled:
            self._tell("endpoint.enabled", after)
        return after

    def _changed(self, there: Endpoint, change: Callable[[Endpoint], Endpoint]) -> Endpoint:
        before = there

        def once() -> Endpoint:
            nonlocal before
            after = replace(change(before), updated_at=self._clock.now())
            try:
                return self._store.put_endpoint(after, before)
            except UidTaken:
                raise _taken() from None
            except Conflict:
                fresh = self._store.endpoint(there.project, there.app_id, there.endpoint_id)
                if fresh is None:
                    raise not_found() from None
                before = fresh
                raise

        return until_saved(once, doing="changing an endpoint")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _taken() -> Refused:
    return conflict("An endpoint with that id or uid already exists")
