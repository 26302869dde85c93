"""An organization on a server with Svix's API as a source: event types, applications, endpoints with their secrets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import click

from pushhub.base import json_text
from pushhub.webhooks.model.ids import IdPrefix

from ..rest import Refused, Rest, segment
from .members import Members, not_copied
from .taking_over import (
    APPLICATION,
    CLOUD_EVENTS,
    CONNECTOR,
    ENDPOINT,
    EVENT_TYPE,
    HIDDEN,
    MOST_PAGES,
    ROOT,
    STANDARD,
    TRANSFORMATION,
    Importer,
    Lack,
    Source,
    TheirApplication,
    TheirConnector,
    TheirEndpoint,
    TheirEventType,
    in_object,
    text_of,
)

PAGE = 250
_REGIONS = ("us", "eu", "in", "ca", "au")


def svix_url(token: str) -> str:
    """The URL of Svix's own service for a token, whose region follows its last dot."""
    region = token.rpartition(".")[2]
    return f"https://api.{region}.svix.com" if region in _REGIONS else "https://api.svix.com"


class Migration(Importer):
    """Copies from such a server."""

    def __init__(self, *, there: Rest, here: Rest, dry: bool, sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__(source=_Organization(there, sleep), here=here, dry=dry, sleep=sleep)


_TIMES = dict.fromkeys(("createdAt", "updatedAt"), "when it was made and changed there")
_EVENT_TYPE = Members(copied={"name", *EVENT_TYPE, "featureFlag", "schemaEnforcement"}, nothing=_TIMES)
_CONNECTOR = Members(
    copied={*CONNECTOR, "uid", "productType"},
    nothing={
        **_TIMES,
        "id": "another one here",
        "orgId": "the project",
        "transformationUpdatedAt": "when it was changed there",
    },
)
_OWN_APPLICATION = ("redaction", "searchFields", "portalConsent", "eager")
"""What only a hub of this kind has."""
_APPLICATION = Members(
    copied={*APPLICATION, "rateLimit", *_OWN_APPLICATION},
    nothing={**_TIMES, "id": "it becomes the uid if there is none"},
)
_OWN_ENDPOINT = ("payloadFilters", "cloudEvents")
_ENDPOINT = Members(
    copied={*ENDPOINT, "filterTypes", "rateLimit", *_OWN_ENDPOINT},
    nothing={
        **_TIMES,
        "id": "it becomes the uid if there is none",
        "version": "a number that only the oldest clients send, and nobody reads",
        "health": "how it is doing there",
    },
)
_CLOUD_EVENTS = Members(
    copied=CLOUD_EVENTS,
    nothing={
        "allowedRate": "its answer when it was asked for its consent: it is asked anew",
        "consented": "the same",
        "callbackUntil": "the same",
        "consentProblem": "the same",
    },
)
_TRANSFORMATION = Members(
    copied=TRANSFORMATION, nothing={"updatedAt": "when it was changed there", "createdAt": "the same"}
)
_SCHEME = Members(
    copied={"preset", "content", "hash", "encoding", "key", "header", "headers", "query", "legacy", "endsAt"},
    nothing={"oldSecretsEnd": "old secrets are not shown, so they do not sign here"},
)


class _Organization(Source):
    standard = True

    def __init__(self, there: Rest, sleep: Callable[[float], None]) -> None:
        self._there = there
        self._sleep = sleep
        self._of_project: Sequence[Mapping[str, Any]] | None = None

    def event_types(self) -> Iterator[TheirEventType]:
        for theirs in self._listed("/event-type", {"include_archived": "true", "with_content": "true"}):
            wanted: dict[str, Any] = dict(theirs)
            if theirs.get("featureFlag") and not theirs.get("featureFlags"):
                wanted["featureFlags"] = [theirs["featureFlag"]]
            yield TheirEventType(
                name=text_of(theirs, "name"),
                fields=wanted,
                compared=_known(EVENT_TYPE, ("schemaEnforcement",), theirs),
                notes=not_copied([*_EVENT_TYPE.left(theirs)]),
            )

    def connectors(self) -> Iterator[TheirConnector]:
        for theirs in self._listed("/connector", {}) if self._optional("/connector") else ():
            uid = str(theirs.get("uid") or text_of(theirs, "id").removeprefix(IdPrefix.CONNECTOR))
            yield TheirConnector(uid=uid, fields=theirs, notes=not_copied([*_CONNECTOR.left(theirs)]))

    def applications(self, only: str | None) -> Iterator[TheirApplication]:
        for theirs in self._listed("/app", {}) if only is None else [self._read(f"/app/{segment(only)}")]:
            there = text_of(theirs, "id")
            uid = str(theirs.get("uid") or there.removeprefix("app_"))
            inherited = self._inherited(there)
            yield TheirApplication(
                uid=uid,
                fields=theirs,
                endpoints=self._endpoints(there, bool(inherited)),
                compared=_known(APPLICATION, _OWN_APPLICATION, theirs),
                signatures=inherited,
                notes=not_copied([*_APPLICATION.left(theirs)]),
            )

    def left(self) -> Iterator[tuple[str, str, str]]:
        """What belongs to the organization as a whole, and would change what others get here."""
        if self._of_project:
            note = "copied to each application, because others here would be signed differently"
            yield "signatures", "of the project", note
        answer = self._optional("/operational-webhook/endpoint")
        listed = answer.get("data") if answer is not None else ()
        for each in listed if isinstance(listed, list) else ():
            if _is_object(each):
                yield (
                    "operational endpoint",
                    str(each.get("uid") or each.get("id")),
                    f"make it by hand: {each.get('url')}",
                )
        frame = self._optional("/portal/frame")
        if frame is not None and frame.get("origins"):
            yield "portal frame", "of the project", f"set its origins: {json_text.write(frame['origins'], spaced=True)}"

    def _endpoints(self, app: str, inherits: bool) -> Iterator[TheirEndpoint]:
        for each in self._listed(f"/app/{segment(app)}/endpoint", {}):
            yield self._endpoint(app, each, inherits)

    def _inherited(self, app: str) -> Sequence[Mapping[str, Any]] | None:
        """The schemes that an application's endpoints inherit, the project's if it has none; None at other servers."""
        answer = self._optional(f"/app/{segment(app)}/signatures")
        if answer is None:
            return None
        if self._of_project is None:
            self._of_project = _schemes(self._optional("/signatures") or {})
        return _schemes(answer) or self._of_project

    def _endpoint(self, app: str, theirs: Mapping[str, Any], inherits: bool) -> TheirEndpoint:
        """One endpoint: its fields, the headers that are shown, and what signs it.

        Args:
            inherits: Whether it would be signed otherwise if it did not say how.
        """
        identifier = text_of(theirs, "id")
        uid = str(theirs.get("uid") or identifier.removeprefix("ep_"))
        path = f"/app/{segment(app)}/endpoint/{segment(identifier)}"
        left, notes, lacks = [*_ENDPOINT.left(theirs)], list[str](), list[Lack]()
        events = theirs.get("cloudEvents")
        if _is_object(events):
            left += _CLOUD_EVENTS.left(events)
            if events.get("consent"):
                notes.append("it is asked for its consent anew, and gets nothing until it has given it")
        try:
            shown = self._read(f"{path}/headers")
            key = text_of(self._read(f"{path}/secret"), "key")
            answer = self._optional(f"{path}/signatures") or {}
            gates = [*self._gates(path)]
            transformation = self._optional(f"{path}/transformation")
        except Refused as error:
            return TheirEndpoint(uid=uid, fields=theirs, unread=error.message)
        hidden = [str(each) for each in shown.get("sensitive") or ()]
        if hidden:
            notes.append(f"set these again, because they are not shown: {', '.join(hidden)}")
            lacks.append(Lack.HEADERS)
        for lack, note in gates:
            lacks.append(lack)
            notes.append(note)
        if transformation is not None:
            left += _TRANSFORMATION.left(transformation)
            for lack, note in _missed(transformation):
                lacks.append(lack)
                notes.append(note)
        # The secret that is shown is that of the first scheme.
        own = [] if answer.get("inheritedFrom") else _schemes(answer)
        scheme: Mapping[str, Any] | None = None
        secret = key if key.startswith("whsec_") else None
        if own and own[0].get("content"):
            scheme, secret = {**own[0], "secret": key}, None
        elif secret is None:
            notes.append("its Ed25519 key is not shown: give receivers the new one")
            lacks.append(Lack.KEY)
        if own == [STANDARD]:
            scheme = STANDARD if inherits else None
        if len(own) > 1:
            notes.append(f"set its other signature scheme again, because its secret is not shown: {_header(own)}")
            lacks.append(Lack.KEY)
        for each in own:
            left += _SCHEME.left(each)
        return TheirEndpoint(
            uid=uid,
            fields=theirs,
            headers=dict(shown.get("headers") or {}),
            secret=secret,
            scheme=scheme,
            notes=[*notes, *not_copied(left)],
            compared=_known(ENDPOINT, _OWN_ENDPOINT, theirs),
            lacks=lacks,
            hidden=hidden,
            transformation=transformation,
        )

    def _gates(self, endpoint: str) -> Iterator[tuple[Lack, str]]:
        """What its receiver demands: none of it is shown as a whole."""
        oauth = self._optional(f"{endpoint}/oauth")
        if oauth:
            yield Lack.OAUTH, f"set its OAuth again, because its secret is not shown: {_oauth(oauth)}"
        certificate = self._optional(f"{endpoint}/mtls")
        if certificate:
            subject = certificate.get("subject") or "no subject"
            yield Lack.CERTIFICATE, f"set its client certificate again, because its key is not shown: {subject}"

    def _optional(self, path: str) -> Mapping[str, Any] | None:
        """What is not there at every server, or for everybody."""
        try:
            return self._read(path)
        except Refused as error:
            # A hub of this kind says 501 of what only Svix's cloud has.
            if error.status not in (401, 403, 404, 405, 501):
                raise
            return None

    def _read(self, path: str, query: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        return in_object(self._there, f"{ROOT}{path}", query, sleep=self._sleep)

    def _listed(self, path: str, query: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        """Everything of a list, page by page."""
        iterator: str | None = None
        for _ in range(MOST_PAGES):
            more = {} if iterator is None else {"iterator": iterator}
            page = self._read(path, {"limit": str(PAGE), **query, **more})
            data = page.get("data")
            if not isinstance(data, list) or not all(isinstance(each, dict) for each in data):
                raise click.ClickException(f"{self._there.base_url} did not answer {path} with a list")
            yield from data
            following = page.get("iterator")
            if page.get("done") is not False or not isinstance(following, str) or following == iterator:
                return
            iterator = following
        raise click.ClickException(f"the list {path} of {self._there.base_url} does not end")


def _known(names: tuple[str, ...], own: tuple[str, ...], theirs: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields that a server knows: what only hubs of this kind have, if it is shown."""
    return (*names, *(each for each in own if each in theirs))


def _is_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, dict)


def _schemes(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The schemes in an answer. When old secrets end there is of no use."""
    found = answer.get("signatures")
    listed = found if isinstance(found, list) else []
    return [{name: each[name] for name in each if name != "oldSecretsEnd"} for each in listed if _is_object(each)]


def _missed(transformation: Mapping[str, Any]) -> Iterator[tuple[Lack, str]]:
    """What the code of a transformation would not find here, or not as it is there; nothing if it is not enabled."""
    code, variables = transformation.get("code"), transformation.get("variables")
    if not code or not transformation.get("enabled"):
        return
    hidden = [name for name, text in variables.items() if text == HIDDEN] if _is_object(variables) else []
    if hidden:
        names = ", ".join(hidden)
        yield Lack.VARIABLES, f"set these variables of its transformation again, because they are not shown: {names}"
    if "transformationsParams" in str(code):
        yield (
            Lack.PARAMETERS,
            "its transformation reads transformationsParams, which are empty here: change it there, or enable it here",
        )


def _oauth(shown: Mapping[str, Any]) -> str:
    """How tokens are obtained, for people."""
    return ", ".join(f"{name} {shown[name]}" for name in ("tokenUrl", "clientId", "authMethod") if shown.get(name))


def _header(schemes: Sequence[Mapping[str, Any]]) -> str:
    """The header of the scheme whose secret is not shown."""
    header = next(each for each in reversed(schemes) if each.get("content")).get("header")
    return str(header.get("name")) if isinstance(header, dict) else "?"
