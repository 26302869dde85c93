"""Sources: created, changed and looked up; their URLs."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from pushhub.base.conflicts import until_saved
from pushhub.base.errors import FieldRefused
from pushhub.base.times import iso_time
from pushhub.engine.component import Component
from pushhub.web.signatures import check_secret
from pushhub.webhooks.model.application import Application, ApplicationFields
from pushhub.webhooks.model.ids import IdPrefix, new_id
from pushhub.webhooks.model.internal_queues import queue_of
from pushhub.webhooks.model.page import Page, Window, page_of, span_of
from pushhub.webhooks.model.refusals import Refused, conflict, not_found, unprocessable
from pushhub.webhooks.model.source import Source, SourceSecrets, TokenDigest, TooManyTokens, token_digest
from pushhub.webhooks.ports import Applications, UidTaken
from pushhub.webhooks.wire.fields import NAME
from pushhub.webhooks.wire.source import IN, SIGNATURE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pushhub.base.ports import Clock, Vault
    from pushhub.engine.projects.copies import ChangeNotes
    from pushhub.webhooks.wire.source import WantedSource

_TOKEN_BYTES = 24


class WebhooksSources(Component):
    """The sources of projects. Methods raise ``NotFound`` for what is not there, and ``Refused`` (409) for a uid that
    is taken.
    """

    store: Applications
    notes: ChangeNotes
    vault: Vault
    base_url: str
    clock: Clock

    def create(self, project_id: str, wanted: WantedSource) -> Application:
        """Make a source.

        Raises:
            Unprocessable: Its kind demands a secret.
        """
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        now = self.clock.now()
        application = Application(
            project=project_id,
            app_id=new_id(IdPrefix.SOURCE, now),
            fields=ApplicationFields(name=wanted.name, uid=wanted.uid, metadata=wanted.metadata),
            source=self._source(project_id, wanted, SourceSecrets(token=token), (TokenDigest(token_digest(token)),)),
            created_at=now,
            updated_at=now,
        )
        try:
            return self.store.put_application(application, None)
        except UidTaken:
            raise _taken() from None

    def page(self, project_id: str, window: Window) -> Page[Application]:
        """A page of the project's sources."""
        found = self.store.applications(project_id, span_of(window, above=IdPrefix.SOURCE, below=IdPrefix.STREAM))
        return page_of(found, window, lambda each: each.app_id)

    def find(self, project_id: str, name: str) -> Application | None:
        """The source with an id or uid, or None."""
        return self.store.source(project_id, name) if NAME.fullmatch(name) else None

    def source(self, project_id: str, name: str) -> Application:
        """The source with an id or uid."""
        found = self.find(project_id, name)
        if found is None:
            raise not_found("Source")
        return found

    def replace(self, project_id: str, name: str, wanted: WantedSource) -> tuple[Application, bool]:
        """Replace all fields of a source, or create it with them. It keeps its URL, and what it keeps secret if its
        kind stays and no other secret is given.

        Returns:
            The source, and whether it was made now.
        """
        there = self.find(project_id, name)
        if there is None:
            return self.create(project_id, wanted), True

        def changed(stored: Application, source: Source) -> Application:
            kept = self._opened(project_id, source)
            if wanted.kind != source.kind:
                kept = SourceSecrets(token=kept.token)
            fields = replace(stored.fields, name=wanted.name, uid=wanted.uid, metadata=wanted.metadata)
            return replace(stored, fields=fields, source=self._source(project_id, wanted, kept, source.tokens))

        return self._changed(project_id, there.app_id, changed), False

    def rotate(self, project_id: str, name: str) -> Application:
        """Give a source another URL; the previous one goes on for 48 hours.

        Raises:
            Refused: It was rotated three times within that time (400).
        """
        token = secrets.token_urlsafe(_TOKEN_BYTES)

        def changed(stored: Application, source: Source) -> Application:
            try:
                rotated = source.with_token(token, self.clock.now())
            except TooManyTokens as error:
                raise Refused(
                    400,
                    "limit_reached",
                    f"The token was rotated three times in 48 hours; it can be again at {iso_time(error.next_end)}",
                ) from error
            kept = replace(self._opened(project_id, source), token=token)
            return replace(stored, source=replace(rotated, sealed=self.vault.seal(project_id, kept.encode())))

        return self._changed(project_id, self.source(project_id, name).app_id, changed)

    def delete(self, project_id: str, name: str) -> None:
        """Delete a source; nothing comes in any more, and what came is no longer delivered."""
        application = self.source(project_id, name)
        self.notes.note(project_id, queue_of(application.app_id))
        if not self.store.delete_application(application):
            raise not_found("Source")

    def url(self, application: Application) -> str:
        """Where a source's sender posts to."""
        token = self._opened(application.project, _source_of(application)).token
        return f"{self.base_url}{IN}/{application.project}/{application.app_id}/{token}"

    def _opened(self, project_id: str, source: Source) -> SourceSecrets:
        return SourceSecrets.decode(self.vault.open(project_id, source.sealed))

    def _source(
        self, project_id: str, wanted: WantedSource, kept: SourceSecrets, tokens: tuple[TokenDigest, ...]
    ) -> Source:
        given = {"secret": wanted.secret, "verify_token": wanted.verify_token}
        secret = replace(kept, **{name: value for name, value in given.items() if value is not None})
        if wanted.demands_secret and not secret.secret:
            raise unprocessable(f"A source of the kind {wanted.kind} needs a secret", "body", "config", "secret")
        if wanted.scheme is not None:
            try:
                check_secret(wanted.scheme, secret.secret)
            except FieldRefused as refused:
                raise unprocessable(refused.text, "body", "config", SIGNATURE, "secret") from refused
        return Source(
            kind=wanted.kind,
            scheme=wanted.scheme,
            verified=bool(secret.secret),
            tokens=tokens,
            sealed=self.vault.seal(project_id, secret.encode()),
        )

    def _changed(
        self, project_id: str, source_id: str, change: Callable[[Application, Source], Application]
    ) -> Application:
        def once() -> Application:
            before = self.source(project_id, source_id)
            after = replace(change(before, _source_of(before)), updated_at=self.clock.now())
            self.notes.note(project_id, queue_of(source_id))
            try:
                return self.store.put_application(after, before)
            except UidTaken:
                raise _taken() from None

        return until_saved(once, doing="changing a source")


def _source_of(application: Application) -> Source:
    if application.source is None:
        raise not_found("Source")
    return application.source


def _taken() -> Refused:
    return conflict("A source with that uid already exists")
