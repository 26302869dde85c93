"""An organization on a server with Svix's API as a source: event types, applications, endpoints with their secrets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click

from .rest import Refused, Rest, segment
from .taking_over import (
    APPLICATION,
    ENDPOINT,
    EVENT_TYPE,
    MOST_PAGES,
    ROOT,
    Importer,
    Source,
    TheirApplication,
    TheirEndpoint,
    fields_of,
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


class _Organization(Source):
    def __init__(self, there: Rest, sleep: Callable[[float], None]) -> None:
        self._there = there
        self._sleep = sleep

    def event_types(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for theirs in self._listed("/event-type", {"include_archived": "true", "with_content": "true"}):
            wanted = {key: theirs[key] for key in EVENT_TYPE if theirs.get(key) is not None}
            if theirs.get("featureFlag") and "featureFlags" not in wanted:
                wanted["featureFlags"] = [theirs["featureFlag"]]
            yield text_of(theirs, "name"), wanted

    def applications(self, only: str | None) -> Iterator[TheirApplication]:
        for theirs in self._listed("/app", {}) if only is None else [self._read(f"/app/{segment(only)}")]:
            there = text_of(theirs, "id")
            uid = str(theirs.get("uid") or there.removeprefix("app_"))
            endpoints = (self._endpoint(there, each) for each in self._listed(f"/app/{segment(there)}/endpoint", {}))
            yield TheirApplication(uid=uid, fields=fields_of(theirs, APPLICATION), endpoints=endpoints)

    def _endpoint(self, app: str, theirs: Mapping[str, Any]) -> TheirEndpoint:
        """One endpoint: its fields, the headers that are shown, and its current secret."""
        identifier = text_of(theirs, "id")
        uid = str(theirs.get("uid") or identifier.removeprefix("ep_"))
        path, wanted, notes = f"/app/{segment(app)}/endpoint/{segment(identifier)}", fields_of(theirs, ENDPOINT), []
        try:
            shown = self._read(f"{path}/headers")
            key = text_of(self._read(f"{path}/secret"), "key")
            own = self._own_schemes(path)
        except Refused as error:
            return TheirEndpoint(uid=uid, fields=wanted, unread=error.message)
        if shown.get("sensitive"):
            notes.append(f"set these again, because they are not shown: {', '.join(map(str, shown['sensitive']))}")
        scheme, secret = None, key if key.startswith("whsec_") else None
        if own and own[0].get("content"):
            # The secret that is shown is that of the first scheme.
            scheme, secret = {**own[0], "secret": key}, None
        elif secret is None:
            notes.append("its Ed25519 key is not shown: give receivers the new one")
        if len(own) > 1:
            notes.append(f"set its other signature scheme again, because its secret is not shown: {_header(own)}")
        headers = dict(shown.get("headers") or {})
        return TheirEndpoint(uid=uid, fields=wanted, headers=headers, secret=secret, scheme=scheme, notes=notes)

    def _own_schemes(self, endpoint: str) -> Sequence[Mapping[str, Any]]:
        """The schemes of an endpoint's own that sign at another hub of this kind; no other server has such a thing."""
        try:
            answer = self._read(f"{endpoint}/signatures")
        except Refused as error:
            if error.status not in (404, 405):
                raise
            return []
        found = answer.get("signatures")
        if answer.get("inheritedFrom") or not isinstance(found, list):
            return []
        # Old secrets are not shown, and there is no need to say when they end.
        return [{name: each[name] for name in each if name != "oldSecretsEnd"} for each in found if _is_object(each)]

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


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _header(schemes: Sequence[Mapping[str, Any]]) -> str:
    """The header of the scheme whose secret is not shown."""
    header = next(each for each in reversed(schemes) if each.get("content")).get("header")
    return str(header.get("name")) if isinstance(header, dict) else "?"
