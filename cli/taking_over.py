"""Copies what another sender has: event types, applications and endpoints that are signed as before, and queues with
subscribers.

What is already there and the same is left alone, so a run that broke off can simply be repeated. Nothing is ever
deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import click

from pushhub.base import json_text

from .rest import Refused, Rest, segment

MOST_PAGES = 100_000
"""The most pages of a list; a longer one is assumed to be endless."""
TRIES = 6
LONGEST_WAIT_S = 60.0
ROOT = "/api/v1"
"""What the paths of Svix's API are below."""

APPLICATION = ("name", "uid", "throttleRate", "metadata")
EVENT_TYPE = ("description", "archived", "deprecated", "schemas", "featureFlags", "groupName")
ENDPOINT = ("url", "description", "uid", "disabled", "eventTypes", "channels", "throttleRate", "metadata")
_BLANK: Mapping[str, Any] = {"description": "", "disabled": False}
"""What an endpoint's field without a value is set to; any other to null."""
_OLD_NAMES = {"throttleRate": "rateLimit", "eventTypes": "filterTypes"}

HIDDEN = "********"
"""What the queue API shows of a header that opens something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TheirEndpoint:
    """An endpoint of another sender.

    Attributes:
        uid: Its id there.
        fields: Of the endpoint here.
        headers: That are sent with each request.
        scheme: How it is signed, with its secret; None for Standard Webhooks.
        secret: Of Standard Webhooks; None if there is a scheme.
        notes: What a person has to do.
        unfit: Why there can be no such endpoint here; empty if there can.
        unread: Why nothing is known of it; empty if something is.
        widened: Whether it would get more here than there, as what holds messages back is not copied. It is disabled,
            unless somebody has given it payload filters here.
    """

    uid: str
    fields: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    scheme: Mapping[str, Any] | None = None
    secret: str | None = None
    notes: Sequence[str] = ()
    unfit: str = ""
    unread: str = ""
    widened: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TheirApplication:
    """What becomes an application: a tenant, an owner, or an application of another sender.

    Attributes:
        fields: Of the application here.
        endpoints: Read once the application is copied.
    """

    uid: str
    fields: Mapping[str, Any]
    endpoints: Iterable[TheirEndpoint] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TheirQueue:
    """A queue of another sender, or what becomes one.

    Attributes:
        settings: As the queue API takes them.
        notes: What a person has to do.
    """

    name: str
    settings: Mapping[str, Any]
    notes: Sequence[str] = ()


class Source:
    """Another sender; it is only read. What it does not have, it has none of."""

    def event_types(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Names of event types, with the fields of them here."""
        return iter(())

    def applications(self, only: str | None) -> Iterator[TheirApplication]:
        """What becomes applications; one of them if its id is given."""
        del only
        return iter(())

    def queues(self) -> Iterator[TheirQueue]:
        """What becomes queues."""
        return iter(())

    def left(self) -> Iterator[tuple[str, str, str]]:
        """What nothing here corresponds to: kind, name, and what a person can do."""
        return iter(())


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
        note: What a person has to do.
    """

    kind: str
    name: str
    outcome: Outcome
    note: str = ""


def patiently(
    rest: Rest,
    method: str,
    path: str,
    body: Any = None,
    query: Mapping[str, str] | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    sleep: Callable[[float], None],
) -> Any:
    """One request; repeated if there were too many, or the server failed for a moment.

    Every write here may be repeated.
    """
    for number in range(TRIES):
        try:
            return rest.call(method, path, body, query=query, headers=headers)
        except Refused as error:
            if (error.status != 429 and error.status < 500) or number == TRIES - 1:
                raise
        sleep(min(LONGEST_WAIT_S, 2.0**number))
    raise AssertionError  # Not reached: the last try returns or raises.


def in_object(
    rest: Rest, path: str, query: Mapping[str, str] | None = None, *, sleep: Callable[[float], None]
) -> Mapping[str, Any]:
    """The answer to a ``GET``, which has to be an object."""
    answer = patiently(rest, "GET", path, None, query, sleep=sleep)
    if not isinstance(answer, dict):
        raise click.ClickException(f"{rest.base_url} did not answer {path.removeprefix(ROOT)} with an object")
    return answer


class Importer:
    """Makes things in the hub that are the same as in a source, unless they are the same already.

    Args:
        dry: Only say what would be done.
    """

    def __init__(self, *, source: Source, here: Rest, dry: bool, sleep: Callable[[float], None] = time.sleep) -> None:
        self._source = source
        self._here = here
        self._dry = dry
        self._sleep = sleep

    def run(self, only: str | None = None) -> Iterator[Copied]:
        """Copy everything, or event types and one application, and yield each item when it is done.

        Args:
            only: Id or uid of the application.
        """
        for name, wanted in self._source.event_types():
            yield self._put("event type", name, f"/event-type/{segment(name)}", wanted, compared=EVENT_TYPE)
        for each in self._source.applications(only):
            yield from self._application(each)
        if only is None:
            yield from map(self._queue, self._source.queues())
            for kind, name, note in self._source.left():
                yield Copied(kind=kind, name=name, outcome=Outcome.LEFT, note=note)

    def _application(self, theirs: TheirApplication) -> Iterator[Copied]:
        path = f"/app/{segment(theirs.uid)}"
        wanted = fields_of(theirs.fields, APPLICATION) | {"uid": theirs.uid}
        copied = self._put("application", theirs.uid, path, wanted, compared=APPLICATION)
        yield copied
        if copied.outcome is not Outcome.FAILED:
            fresh = self._dry and copied.outcome is Outcome.MADE
            for each in theirs.endpoints:
                yield self._endpoint(path, f"{theirs.uid}/{each.uid}", each, fresh=fresh)

    def _endpoint(self, app: str, name: str, theirs: TheirEndpoint, *, fresh: bool) -> Copied:
        """Copy one endpoint: its fields, headers, and what signs it."""
        if theirs.unfit:
            return Copied(kind="endpoint", name=name, outcome=Outcome.LEFT, note=theirs.unfit)
        if theirs.unread:
            return Copied(kind="endpoint", name=name, outcome=Outcome.FAILED, note=theirs.unread)
        path = f"{app}/endpoint/{segment(theirs.uid)}"
        wanted = fields_of(theirs.fields, ENDPOINT) | {"uid": theirs.uid}
        try:
            ours = None if fresh else self._found(path)
            if theirs.widened and not (ours or {}).get("payloadFilters"):
                wanted["disabled"] = True
            elif theirs.widened and ours is not None:
                wanted |= fields_of(ours, ("disabled",))
            if ours is None:
                signed = {"signatures": [dict(theirs.scheme)]} if theirs.scheme else {"secret": theirs.secret}
                given = {name: value for name, value in signed.items() if value is not None}
                self._write("POST", f"{app}/endpoint", {**wanted, **given, "headers": dict(theirs.headers)})
                outcome = Outcome.MADE
            else:
                outcome = self._brought_up(path, ours, wanted, headers=theirs.headers, secret=theirs.secret)
                if theirs.scheme and self._signed_anew(path, theirs.scheme):
                    outcome = Outcome.CHANGED
        except Refused as error:
            return Copied(kind="endpoint", name=name, outcome=Outcome.FAILED, note=error.message)
        return Copied(kind="endpoint", name=name, outcome=outcome, note="; ".join(theirs.notes))

    def _signed_anew(self, path: str, scheme: Mapping[str, Any]) -> bool:
        """Replace what signs an endpoint, unless it is the same; an old secret here ends at once."""
        shown = self._read(f"{path}/signatures").get("signatures")
        wanted = {name: value for name, value in scheme.items() if name != "secret"}
        same = isinstance(shown, list) and len(shown) == 1 and _covers(shown[0], wanted)
        if same and self._read(f"{path}/secret").get("key") == scheme["secret"]:
            return False
        self._write("PUT", f"{path}/signatures", {"signatures": [{**scheme, "gracePeriodSeconds": 0}]})
        return True

    def _queue(self, theirs: TheirQueue) -> Copied:
        """Copy a queue with its subscribers."""
        path, note = self._here.queue(theirs.name), "; ".join(theirs.notes)
        try:
            ours = (self._found(path, root="") or {}).get("queue")
            outcome = Outcome.MADE if ours is None else Outcome.CHANGED
            if ours is not None and _covers(ours, theirs.settings):
                outcome = Outcome.SAME
            # What is not shown cannot be compared: it is written each time.
            if not self._dry and (outcome is not Outcome.SAME or HIDDEN in json_text.write(ours)):
                patiently(self._here, "PUT", path, {"queue": dict(theirs.settings)}, sleep=self._sleep)
        except Refused as error:
            return Copied(kind="queue", name=theirs.name, outcome=Outcome.FAILED, note=error.message)
        return Copied(kind="queue", name=theirs.name, outcome=outcome, note=note)

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
            # Not replaced as a whole: what no other sender has, such as payload filters, stays.
            self._write("PATCH", path, {each: wanted.get(each, _BLANK.get(each)) for each in ENDPOINT})
        answer = self._read(f"{path}/headers")
        shown, hidden = answer.get("headers") or {}, {str(each).lower() for each in answer.get("sensitive") or ()}
        differs = any(shown.get(name) != text for name, text in headers.items() if name.lower() not in hidden)
        if differs or any(name.lower() in hidden for name in headers):
            # What is not shown cannot be compared: it is written each time.
            outcome = Outcome.CHANGED if differs else outcome
            self._write("PATCH", f"{path}/headers", {"headers": headers})
        if secret is not None and text_of(self._read(f"{path}/secret"), "key") != secret:
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

    def _found(self, path: str, root: str = ROOT) -> Mapping[str, Any] | None:
        """An object of the hub, or None."""
        try:
            return self._read(path, root)
        except Refused as error:
            if error.status == 404:
                return None
            raise

    def _read(self, path: str, root: str = ROOT) -> Mapping[str, Any]:
        return in_object(self._here, f"{root}{path}", sleep=self._sleep)

    def _write(self, method: str, path: str, body: Mapping[str, Any]) -> None:
        """Change something here, unless this is a dry run."""
        if not self._dry:
            patiently(self._here, method, f"{ROOT}{path}", dict(body), sleep=self._sleep)


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


def _covers(shown: Any, wanted: Any) -> bool:
    """Whether everything that is wanted is shown; lists of named things are compared by name."""
    if isinstance(wanted, Mapping):
        return isinstance(shown, Mapping) and all(_covers(shown.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list) and all(isinstance(each, Mapping) and "name" in each for each in wanted):
        if not isinstance(shown, list) or len(shown) != len(wanted):
            return False
        named = {each.get("name"): each for each in shown if isinstance(each, Mapping)}
        return all(_covers(named.get(each["name"]), each) for each in wanted)
    return shown in (wanted, HIDDEN)


def text_of(given: Mapping[str, Any], name: str) -> str:
    """A text in an answer, which has to be there."""
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise click.ClickException(f"an answer has no {name}")
    return value
