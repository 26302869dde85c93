"""Copies an organization from a server with Svix's API: event types, applications, endpoints with their secrets.

What is already there and the same is left alone, so a run that broke off can simply be repeated. Nothing is ever
deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote

import click

from .rest import Refused, Rest

__all__ = ["APPLICATION", "ENDPOINT", "EVENT_TYPE", "Copied", "Copier", "Migration", "Outcome", "fields_of", "svix_url"]

PAGE = 250
MOST_PAGES = 100_000
"""The most pages of a list; a longer one is assumed to be endless."""

TRIES = 6
LONGEST_WAIT_S = 60.0
_REGIONS = ("us", "eu", "in", "ca", "au")

APPLICATION = ("name", "uid", "throttleRate", "metadata")
EVENT_TYPE = ("description", "archived", "deprecated", "schemas", "featureFlags", "groupName")
ENDPOINT = ("url", "description", "uid", "disabled", "eventTypes", "channels", "throttleRate", "metadata")
_OLD_NAMES = {"throttleRate": "rateLimit", "eventTypes": "filterTypes"}


def svix_url(token: str) -> str:
    """The URL of Svix's own service for a token, whose region follows its last dot."""
    region = token.rpartition(".")[2]
    return f"https://api.{region}.svix.com" if region in _REGIONS else "https://api.svix.com"


class Outcome(StrEnum):
    """The outcome for one item; ``LEFT`` has nothing here that it could become."""

    MADE = "made"
    CHANGED = "changed"
    SAME = "same"
    FAILED = "failed"
    LEFT = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """An item and its outcome.

    Attributes:
        kind: ``event type``, ``application`` or ``endpoint``.
        name: Its name.
        outcome: Its outcome.
        note: What a person has to do.
    """

    kind: str
    name: str
    outcome: Outcome
    note: str = ""


class Copier:
    """Makes things in the hub that are the same as elsewhere, unless they are the same already.

    Args:
        here: The hub.
        dry: Only say what would be done.
        sleep: Waits for some seconds.
    """

    def __init__(self, *, here: Rest, dry: bool, sleep: Callable[[float], None] = time.sleep) -> None:
        self._here = here
        self._dry = dry
        self._sleep = sleep

    def _brought_up(
        self,
        path: str,
        ours: Mapping[str, Any],
        wanted: Mapping[str, Any],
        *,
        headers: Mapping[str, str],
        secret: str | None = None,
    ) -> Outcome:
        """Change what differs in an existing endpoint."""
        outcome = Outcome.SAME
        if fields_of(ours, ENDPOINT) != wanted:
            outcome = Outcome.CHANGED
            self._write("PUT", path, wanted)
        answer = self._read(self._here, f"{path}/headers")
        shown, hidden = answer.get("headers") or {}, {str(each).lower() for each in answer.get("sensitive") or ()}
        differs = any(shown.get(name) != text for name, text in headers.items() if name.lower() not in hidden)
        if differs or any(name.lower() in hidden for name in headers):
            # What is not shown cannot be compared: it is written each time.
            outcome = Outcome.CHANGED if differs else outcome
            self._write("PATCH", f"{path}/headers", {"headers": headers})
        if secret is not None and _text(self._read(self._here, f"{path}/secret"), "key") != secret:
            outcome = Outcome.CHANGED
            self._write("POST", f"{path}/secret/rotate", {"key": secret, "gracePeriodSeconds": 0})
        return outcome

    def _put(self, kind: str, name: str, path: str, wanted: Mapping[str, Any], *, compared: tuple[str, ...]) -> Copied:
        """Create or replace something with its own name, unless it is already the same."""
        try:
            ours = self._found(path)
            outcome = Outcome.MADE if ours is None else Outcome.CHANGED
            if ours is not None and fields_of(ours, compared) == fields_of(wanted, compared):
                outcome = Outcome.SAME
            else:
                self._write("PUT", path, wanted)
        except Refused as error:
            return Copied(kind=kind, name=name, outcome=Outcome.FAILED, note=error.message)
        return Copied(kind=kind, name=name, outcome=outcome)

    def _found(self, path: str) -> Mapping[str, Any] | None:
        """An object of the hub, or None."""
        try:
            return self._read(self._here, path)
        except Refused as error:
            if error.status == 404:
                return None
            raise

    def _read(self, rest: Rest, path: str, query: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        answer = self._call(rest, "GET", path, None, query)
        if not isinstance(answer, dict):
            raise click.ClickException(f"{rest.base_url} did not answer {path} with an object")
        return answer

    def _write(self, method: str, path: str, body: Mapping[str, Any]) -> None:
        """Change something here, unless this is a dry run."""
        if not self._dry:
            self._call(self._here, method, path, dict(body), None)

    def _call(
        self,
        rest: Rest,
        method: str,
        path: str,
        body: Any,
        query: Mapping[str, str] | None,
        *,
        root: str = "/api/v1",
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """One request; repeated if there were too many, or the server failed for a moment.

        Every write here may be repeated.
        """
        for number in range(TRIES):
            try:
                return rest.call(method, f"{root}{path}", body, query=query, headers=headers)
            except Refused as error:
                if (error.status != 429 and error.status < 500) or number == TRIES - 1:
                    raise
            self._sleep(min(LONGEST_WAIT_S, 2.0**number))
        raise AssertionError  # Not reached: the last try returns or raises.


class Migration(Copier):
    """Copies.

    Args:
        there: The server to copy from; it is only read.
        here: The hub.
        dry: Only say what would be done.
        sleep: Waits for some seconds.
    """

    def __init__(self, *, there: Rest, here: Rest, dry: bool, sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__(here=here, dry=dry, sleep=sleep)
        self._there = there

    def run(self, only: str | None = None) -> Iterator[Copied]:
        """Copy everything, or the event types and one application, and yield each item when it is done.

        Args:
            only: Id or uid of the application.

        Raises:
            click.ClickException: A server did not answer, or refused something that it must accept.
        """
        for each in self._listed(self._there, "/event-type", {"include_archived": "true", "with_content": "true"}):
            yield self._event_type(each)
        apps = self._listed(self._there, "/app", {}) if only is None else [self._read(self._there, f"/app/{_q(only)}")]
        for each in apps:
            yield from self._application(each)

    def _event_type(self, theirs: Mapping[str, Any]) -> Copied:
        name = _text(theirs, "name")
        wanted = {key: theirs[key] for key in EVENT_TYPE if theirs.get(key) is not None}
        if theirs.get("featureFlag") and "featureFlags" not in wanted:
            wanted["featureFlags"] = [theirs["featureFlag"]]
        path = f"/event-type/{_q(name)}"
        return self._put("event type", name, path, wanted, compared=EVENT_TYPE)

    def _application(self, theirs: Mapping[str, Any]) -> Iterator[Copied]:
        there = _text(theirs, "id")
        uid = str(theirs.get("uid") or there.removeprefix("app_"))
        wanted = {**fields_of(theirs, APPLICATION), "uid": uid}
        copied = self._put("application", uid, f"/app/{_q(uid)}", wanted, compared=APPLICATION)
        yield copied
        if copied.outcome is not Outcome.FAILED:
            made = self._dry and copied.outcome is Outcome.MADE
            for each in self._listed(self._there, f"/app/{_q(there)}/endpoint", {}):
                yield self._endpoint(f"/app/{_q(there)}", f"/app/{_q(uid)}", uid, each, fresh=made)

    def _endpoint(self, there: str, here: str, app: str, theirs: Mapping[str, Any], *, fresh: bool) -> Copied:
        """Copy one endpoint: its fields, the headers that are shown, and its current secret."""
        identifier = _text(theirs, "id")
        uid = str(theirs.get("uid") or identifier.removeprefix("ep_"))
        name, path = f"{app}/{uid}", f"{here}/endpoint/{_q(uid)}"
        source = f"{there}/endpoint/{_q(identifier)}"
        wanted = {**fields_of(theirs, ENDPOINT), "uid": uid}
        notes = []
        try:
            shown = self._read(self._there, f"{source}/headers")
            key = _text(self._read(self._there, f"{source}/secret"), "key")
            if shown.get("sensitive"):
                notes.append(f"set these again, because they are not shown: {', '.join(map(str, shown['sensitive']))}")
            if not key.startswith("whsec_"):
                notes.append("its Ed25519 key is not shown: give receivers the new one")
            headers = dict(shown.get("headers") or {})
            secret = {"secret": key} if key.startswith("whsec_") else {}
            ours = None if fresh else self._found(path)
            if ours is not None:
                outcome = self._brought_up(path, ours, wanted, headers=headers, **secret)
            else:
                outcome = Outcome.MADE
                self._write("POST", f"{here}/endpoint", {**wanted, **secret, "headers": headers})
        except Refused as error:
            return Copied(kind="endpoint", name=name, outcome=Outcome.FAILED, note=error.message)
        return Copied(kind="endpoint", name=name, outcome=outcome, note="; ".join(notes))

    def _listed(self, rest: Rest, path: str, query: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        """Everything of a list, page by page."""
        iterator: str | None = None
        for _ in range(MOST_PAGES):
            more = {} if iterator is None else {"iterator": iterator}
            page = self._read(rest, path, {"limit": str(PAGE), **query, **more})
            data = page.get("data")
            if not isinstance(data, list) or not all(isinstance(each, dict) for each in data):
                raise click.ClickException(f"{rest.base_url} did not answer {path} with a list")
            yield from data
            following = page.get("iterator")
            if page.get("done") is not False or not isinstance(following, str) or following == iterator:
                return
            iterator = following
        raise click.ClickException(f"the list {path} of {rest.base_url} does not end")


def fields_of(given: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The fields of an item that have values, under their new names; lists whose order is irrelevant are sorted."""
    found: dict[str, Any] = {}
    for name in names:
        value = given.get(name, given.get(_OLD_NAMES.get(name, name)))
        if value is None or value in ("", {}) or value is False:
            continue
        found[name] = (
            sorted(value) if isinstance(value, list) and all(isinstance(each, str) for each in value) else value
        )
    return found


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise click.ClickException(f"an answer has no {name}")
    return value


def _q(name: str) -> str:
    return quote(name, safe="")
