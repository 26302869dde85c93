"""Copies what another sender has: event types, applications and endpoints that are signed as before, and queues with
subscribers.

What is already there and the same is left alone, so a run that broke off can simply be repeated. Nothing is ever
deleted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar

import click

from pushhub.base import json_text
from pushhub.webhooks.model.event_type import OPERATIONAL
from pushhub.webhooks.wire.fields import NAME

from ..rest import Refused, Rest, segment
from .foreseen import Foreseen, There

MOST_PAGES = 100_000
"""The most pages of a list; a longer one is assumed to be endless."""
TRIES = 6
LONGEST_WAIT_S = 60.0
ROOT = "/api/v1"
"""What the paths of Svix's API are below."""

APPLICATION = ("name", "uid", "throttleRate", "metadata")
EVENT_TYPE = ("description", "archived", "deprecated", "schemas", "featureFlags", "groupName")
CONNECTOR = (
    *("name", "kind", "logo", "description", "instructions", "allowedEventTypes", "transformation", "featureFlags"),
)
ENDPOINT = ("url", "description", "uid", "disabled", "eventTypes", "channels", "throttleRate", "metadata")
CLOUD_EVENTS = ("mode", "consent", "callback")
"""What is set of an endpoint's CloudEvents; the rest is their state."""
TRANSFORMATION = ("code", "enabled", "variables", "language")
_FLAGS = ("disabled", "archived", "deprecated", "portalConsent", "eager")
_BLANK: Mapping[str, Any] = {"description": "", **dict.fromkeys(_FLAGS, False)}
"""What a field without a value is set to; any other to null."""
STANDARD: Mapping[str, Any] = {"preset": "standard-webhooks"}
_OLD_NAMES = {"throttleRate": "rateLimit", "eventTypes": "filterTypes"}

HIDDEN = "********"
"""What the hub shows of a secret: a header of a queue, a variable of a transformation."""


class Lack(StrEnum):
    """What an endpoint has there that cannot be copied, and without which it would get more here, or its receiver would
    refuse what it gets. It is disabled until somebody has given it that here.
    """

    FILTERS = "payload filters"
    OAUTH = "OAuth tokens"
    CERTIFICATE = "client certificate"
    HEADERS = "hidden headers"
    VARIABLES = "hidden variables"
    KEY = "key"
    """The hub cannot see whether a receiver knows the new key: an endpoint that is here is left as it is."""
    PARAMETERS = "parameters of transformations"
    """Only people know whether code gets along without: an endpoint that is here is left as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TheirEventType:
    """An event type of another sender.

    Attributes:
        fields: Of the event type here.
        compared: The fields that this sender knows: what is set here of any other stays.
        notes: What a person has to do.
    """

    name: str
    fields: Mapping[str, Any]
    compared: tuple[str, ...] = EVENT_TYPE
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TheirConnector:
    """A connector of another sender.

    Attributes:
        uid: Its own id there, or its sender's without the prefix.
        fields: Of the connector here.
        notes: What a person has to do.
    """

    uid: str
    fields: Mapping[str, Any]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TheirEndpoint:
    """An endpoint of another sender.

    Attributes:
        uid: Its id there.
        fields: Of the endpoint here.
        headers: That are sent with each request.
        scheme: How it is signed, with its secret unless that is the endpoint's own; None for what the application says.
        secret: Of Standard Webhooks; None if there is another scheme.
        notes: What a person has to do.
        unfit: Why there can be no such endpoint here; empty if there can.
        unread: Why nothing is known of it; empty if something is.
        compared: The fields that this sender knows: what is set here of any other stays.
        lacks: What it is disabled without.
        hidden: Names of the headers that are not shown.
        transformation: Its code, whether it is enabled, its variables (``********`` for one that is not shown), its
            language; None if the sender has no such thing.
    """

    uid: str
    fields: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    scheme: Mapping[str, Any] | None = None
    secret: str | None = None
    notes: Sequence[str] = ()
    unfit: str = ""
    unread: str = ""
    compared: tuple[str, ...] = ENDPOINT
    lacks: Sequence[Lack] = ()
    hidden: Sequence[str] = ()
    transformation: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TheirApplication:
    """What becomes an application: a tenant, an owner, or an application of another sender.

    Attributes:
        fields: Of the application here.
        endpoints: Read once the application is copied.
        compared: The fields that this sender knows: what is set here of any other stays.
        signatures: The schemes that sign what its endpoints get; None if this sender has no such thing.
        notes: What a person has to do.
    """

    uid: str
    fields: Mapping[str, Any]
    endpoints: Iterable[TheirEndpoint] = ()
    compared: tuple[str, ...] = APPLICATION
    signatures: Sequence[Mapping[str, Any]] | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TheirQueue:
    """A queue of another sender, or what becomes one.

    Attributes:
        settings: As the queue API takes them.
        notes: What a person has to do.
        paused: Names of the subscribers that are paused when the queue is made.
        hidden: Names of the headers whose values are not shown, by subscriber.
    """

    name: str
    settings: Mapping[str, Any]
    notes: Sequence[str] = ()
    paused: Sequence[str] = ()
    hidden: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Source:
    """Another sender; it is only read. What it does not have, it has none of."""

    standard: ClassVar[bool] = False
    """Whether its endpoints are signed as Standard Webhooks, unless something else is said."""

    def event_types(self) -> Iterator[TheirEventType]:
        """Its event types."""
        return iter(())

    def connectors(self) -> Iterator[TheirConnector]:
        """Its connectors."""
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
        kind: ``event type``, ``connector``, ``application`` or ``endpoint``.
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
    reads: bool = False,
    sleep: Callable[[float], None],
) -> Any:
    """One request; repeated if there were too many, or the server failed for a moment.

    Every write here may be repeated.

    Args:
        reads: Whether it changes nothing, whatever its method is.
    """
    for number in range(TRIES):
        try:
            return rest.call(method, path, body, query=query, headers=headers, reads=reads)
        except Refused as error:
            lasting = (error.status != 429 and error.status < 500) or error.status == 501
            if lasting or number == TRIES - 1:
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
        self._sleep = sleep
        self._foreseen = Foreseen(self._knows) if dry else None
        self._types: dict[str, bool] = {}
        self._done: set[tuple[str, str]] = set()
        self._closed: Refused | None = None

    def run(self, only: str | None = None) -> Iterator[Copied]:
        """Copy everything, or event types and one application, and yield each item when it is done.

        Args:
            only: Id or uid of the application.
        """
        if self._foreseen is not None:
            self._closed = self._refusal()
        for each in self._source.event_types():
            yield self._event_type(each)
        if only is None:
            yield from map(self._connector, self._source.connectors())
        for application in self._source.applications(only):
            yield from self._application(application)
        if only is None:
            yield from map(self._queue, self._source.queues())
            for kind, name, note in self._source.left():
                yield Copied(kind=kind, name=name, outcome=Outcome.LEFT, note=note)

    def _refusal(self) -> Refused | None:
        """Why nothing may be changed here, as in a project that is suspended; None if it may."""
        path, body = f"{ROOT}/event-type/import/openapi", {"dryRun": True, "spec": _SPEC}
        try:
            patiently(self._here, "POST", path, body, reads=True, sleep=self._sleep)
        except Refused as error:
            return error
        return None

    def _event_type(self, theirs: TheirEventType) -> Copied:
        path = f"/event-type/{segment(theirs.name)}"
        wanted = {"description": "", **fields_of(theirs.fields, theirs.compared)}
        copied = self._put(
            Copied(kind="event type", name=theirs.name, outcome=Outcome.MADE, note="; ".join(theirs.notes)),
            theirs.name,
            path,
            wanted,
            compared=theirs.compared,
            foreseen=lambda foreseen, body: foreseen.event_type(theirs.name, body),
        )
        if copied.outcome is not Outcome.FAILED:
            self._types[theirs.name] = not wanted.get("archived")
        return copied

    def _connector(self, theirs: TheirConnector) -> Copied:
        """Copy a connector. What it is meant for is said when it is made, and stays."""
        wanted = fields_of(theirs.fields, CONNECTOR)
        whole = {**wanted, "uid": theirs.uid, "productType": theirs.fields.get("productType")}
        copied = Copied(kind="connector", name=theirs.uid, outcome=Outcome.MADE, note="; ".join(theirs.notes))
        unusable = self._unusable(copied.kind, copied.name, theirs.uid)
        if unusable:
            return replace(copied, outcome=Outcome.FAILED, note=unusable)
        path = f"/connector/{segment(theirs.uid)}"
        try:
            ours = self._found(path)
            if ours is None:
                self._write("POST", "/connector", whole, foreseen=lambda known: known.connector(whole))
                return copied
            if fields_of(ours, CONNECTOR) == wanted:
                return replace(copied, outcome=Outcome.SAME)
            body = _changes(wanted, CONNECTOR)
            self._write("PATCH", path, body, foreseen=lambda known: known.connector({**ours, **body}))
        except Refused as error:
            return replace(copied, outcome=Outcome.FAILED, note=error.message)
        return replace(copied, outcome=Outcome.CHANGED)

    def _knows(self, name: str) -> bool:
        """Whether endpoints here may choose an event type, once those that come first are copied."""
        if name not in self._types:
            found = self._found(f"/event-type/{segment(name)}") if _fits_a_path(name) else None
            self._types[name] = name in OPERATIONAL or (found is not None and not found.get("archived"))
        return self._types[name]

    def _application(self, theirs: TheirApplication) -> Iterator[Copied]:
        path = f"/app/{segment(theirs.uid)}"
        wanted = fields_of(theirs.fields, theirs.compared) | {"uid": theirs.uid}
        copied = self._put(
            Copied(kind="application", name=theirs.uid, outcome=Outcome.MADE, note="; ".join(theirs.notes)),
            theirs.uid,
            path,
            wanted,
            compared=theirs.compared,
            foreseen=lambda foreseen, body: foreseen.application(body),
        )
        is_new = copied.outcome is Outcome.MADE
        if copied.outcome is not Outcome.FAILED:
            copied = self._inherited(path, theirs, copied)
        yield copied
        if copied.outcome is not Outcome.FAILED:
            fresh = self._foreseen is not None and is_new
            for each in theirs.endpoints:
                yield self._endpoint(path, f"{theirs.uid}/{each.uid}", each, fresh=fresh)

    def _inherited(self, path: str, theirs: TheirApplication, copied: Copied) -> Copied:
        """Sign what an application's endpoints get as it is signed there, whatever is usual here."""
        is_new = copied.outcome is Outcome.MADE
        if theirs.signatures is None and not (is_new and self._source.standard):
            return copied
        try:
            ours = [] if is_new else self._read(f"{path}/signatures").get("signatures")
            wanted = [dict(each) for each in theirs.signatures or ()]
            if not wanted and self._read("/signatures").get("signatures"):
                wanted = [dict(STANDARD)]
            if ours == wanted:
                return copied
            body = {"signatures": wanted}
            self._write("PUT", f"{path}/signatures", body, foreseen=lambda foreseen: foreseen.inherited(body))
        except Refused as error:
            return replace(copied, outcome=Outcome.FAILED, note=error.message)
        return replace(copied, outcome=Outcome.MADE if is_new else Outcome.CHANGED)

    def _endpoint(self, app: str, name: str, theirs: TheirEndpoint, *, fresh: bool) -> Copied:
        """Copy one endpoint: its fields, headers, and what signs it."""
        copied = Copied(kind="endpoint", name=name, outcome=Outcome.MADE, note="; ".join(theirs.notes))
        if theirs.unfit:
            return replace(copied, outcome=Outcome.LEFT, note=theirs.unfit)
        unusable = theirs.unread or self._unusable("endpoint", name, theirs.uid)
        if unusable:
            return replace(copied, outcome=Outcome.FAILED, note=unusable)
        path = f"{app}/endpoint/{segment(theirs.uid)}"
        wanted = fields_of(theirs.fields, theirs.compared) | {"uid": theirs.uid}
        try:
            ours = None if fresh else self._found(path)
            lacking = [each for each in theirs.lacks if not self._has(each, path, ours, theirs)]
            if lacking:
                wanted["disabled"] = True
                copied = replace(copied, note="; ".join([*theirs.notes, "it is disabled until then"]))
            elif theirs.lacks and ours is not None:
                wanted |= fields_of(ours, ("disabled",))
            if ours is None:
                self._make_endpoint(app, path, theirs, wanted)
                return copied
            # It gets nothing that is not transformed: what is enabled has its code first.
            late = bool(wanted.get("disabled"))
            transformed = not late and self._transformed(path, theirs)
            outcome = self._brought_up(path, ours, wanted, theirs)
            transformed = transformed or (late and self._transformed(path, theirs))
            signed_anew = theirs.scheme and self._signed_anew(path, _with(ours, wanted, theirs), theirs)
            if transformed or signed_anew:
                outcome = Outcome.CHANGED
        except Refused as error:
            return replace(copied, outcome=Outcome.FAILED, note=error.message)
        return replace(copied, outcome=outcome)

    def _make_endpoint(self, app: str, path: str, theirs: TheirEndpoint, wanted: Mapping[str, Any]) -> None:
        """Make an endpoint; with code, it is enabled only when it has that."""
        waits = bool((theirs.transformation or {}).get("code")) and not wanted.get("disabled")
        self._create_endpoint(f"{app}/endpoint", theirs, {**wanted, "disabled": True} if waits else wanted)
        if theirs.transformation is not None and theirs.transformation.get("code"):
            body = _transformation(theirs.transformation, {})
            self._write("PATCH", f"{path}/transformation", body, foreseen=lambda known: known.transformation(body))
        if waits:
            # In a dry run there is none to read, and nothing to refuse.
            enabled = {"disabled": False}
            self._write("PATCH", path, enabled, foreseen=lambda _: None)

    def _transformed(self, path: str, theirs: TheirEndpoint) -> bool:
        """Give an endpoint that is here the transformation that it has there; False if it is the same."""
        if theirs.transformation is None:
            return False
        ours = self._found(f"{path}/transformation") or {}
        body = _transformation(theirs.transformation, ours)
        shown = _transformation(ours, ours)
        differs = any(shown.get(name) != each for name, each in body.items() if name != "variables")
        differs = differs or _names_of(body["variables"]) != _names_of(shown["variables"])
        # Values are not shown, so they cannot be compared: they are written each time.
        if differs or body["variables"]:
            self._write("PATCH", f"{path}/transformation", body, foreseen=lambda known: known.transformation(body))
        return differs

    def _has(self, lack: Lack, path: str, ours: Mapping[str, Any] | None, theirs: TheirEndpoint) -> bool:
        """Whether somebody has given an endpoint here what could not be copied."""
        if ours is None:
            return False
        match lack:
            case Lack.FILTERS:
                return bool(ours.get("payloadFilters"))
            case Lack.OAUTH | Lack.CERTIFICATE:
                gate = "oauth" if lack is Lack.OAUTH else "mtls"
                return self._found(f"{path}/{gate}") is not None
            case Lack.HEADERS:
                return {each.lower() for each in theirs.hidden} <= {each.lower() for each in self._headers(path)}
            case Lack.VARIABLES:
                there, here = theirs.transformation or {}, self._found(f"{path}/transformation") or {}
                return {*there.get("variables", ())} <= {*here.get("variables", ())}
            case Lack.KEY | Lack.PARAMETERS:
                return True

    def _create_endpoint(self, path: str, theirs: TheirEndpoint, wanted: Mapping[str, Any]) -> None:
        signed = {"signatures": [dict(theirs.scheme)] if theirs.scheme else None, "secret": theirs.secret}
        given = {name: value for name, value in signed.items() if value is not None}
        body = {**wanted, **given, "headers": dict(theirs.headers)}
        self._write("POST", path, body, foreseen=lambda foreseen: foreseen.endpoint(body))

    def _signed_anew(self, path: str, ours: Mapping[str, Any], theirs: TheirEndpoint) -> bool:
        """Replace what signs an endpoint, unless it is the same; an old secret here ends at once."""
        scheme = theirs.scheme or STANDARD
        answer, secret = self._read(f"{path}/signatures"), scheme.get("secret")
        shown = [] if answer.get("inheritedFrom") else answer.get("signatures")
        wanted = {name: value for name, value in scheme.items() if name != "secret"}
        same = isinstance(shown, list) and len(shown) == 1 and _covers(shown[0], wanted)
        if same and (secret is None or self._read(f"{path}/secret").get("key") == secret):
            return False
        body = {"signatures": [dict(scheme) if secret is None else {**scheme, "gracePeriodSeconds": 0}]}
        self._write(
            "PUT",
            f"{path}/signatures",
            body,
            foreseen=lambda foreseen: foreseen.signatures(self._there(path, ours, theirs.headers), body),
        )
        return True

    def _queue(self, theirs: TheirQueue) -> Copied:
        """Copy a queue with its subscribers."""
        path, note = self._here.queue(theirs.name), "; ".join(theirs.notes)
        unusable = self._twice("queue", theirs.name)
        if unusable:
            return Copied(kind="queue", name=theirs.name, outcome=Outcome.FAILED, note=unusable)
        try:
            ours = (self._found(path, root="") or {}).get("queue")
            outcome = Outcome.MADE if ours is None else Outcome.CHANGED
            settings = theirs.settings if ours is None else _with_stored_headers(theirs, ours)
            if ours is not None and _covers(ours, settings):
                outcome = Outcome.SAME
            # What is not shown cannot be compared: it is written each time.
            if outcome is not Outcome.SAME or HIDDEN in json_text.write(ours):
                dry = {"dry_run": True} if self._foreseen is not None else {}
                body = {"queue": dict(settings), **dry}
                patiently(self._here, "PUT", path, body, reads=bool(dry), sleep=self._sleep)
                for name in theirs.paused if outcome is Outcome.MADE and not dry else ():
                    patiently(self._here, "POST", f"{path}/pause", {"subscriber": name}, sleep=self._sleep)
        except Refused as error:
            return Copied(kind="queue", name=theirs.name, outcome=Outcome.FAILED, note=error.message)
        return Copied(kind="queue", name=theirs.name, outcome=outcome, note=note)

    def _brought_up(
        self, path: str, ours: Mapping[str, Any], wanted: Mapping[str, Any], theirs: TheirEndpoint
    ) -> Outcome:
        """Change what differs in an existing endpoint."""
        outcome, headers = Outcome.SAME, theirs.headers
        if fields_of(ours, theirs.compared) != wanted:
            outcome = Outcome.CHANGED
            # Not replaced as a whole: what no other sender has, such as payload filters, stays.
            body = _changes(wanted, theirs.compared)
            self._write("PATCH", path, body, foreseen=lambda foreseen: foreseen.changed(self._there(path, ours), body))
            ours = _with(ours, wanted, theirs)
        answer = self._read(f"{path}/headers")
        shown, hidden = answer.get("headers") or {}, {str(each).lower() for each in answer.get("sensitive") or ()}
        differs = any(shown.get(name) != text for name, text in headers.items() if name.lower() not in hidden)
        if differs or any(name.lower() in hidden for name in headers):
            # What is not shown cannot be compared: it is written each time.
            outcome = Outcome.CHANGED if differs else outcome
            given = {"headers": dict(headers)}
            self._write(
                "PATCH",
                f"{path}/headers",
                given,
                foreseen=lambda foreseen: foreseen.headers(self._there(path, ours), given),
            )
        if theirs.secret is not None and text_of(self._read(f"{path}/secret"), "key") != theirs.secret:
            outcome = Outcome.CHANGED
            rotation = {"key": theirs.secret, "gracePeriodSeconds": 0}
            self._write(
                "POST",
                f"{path}/secret/rotate",
                rotation,
                foreseen=lambda foreseen: foreseen.secret(self._there(path, ours), rotation),
            )
        return outcome

    def _headers(self, path: str) -> list[str]:
        """The names of an endpoint's headers."""
        answer = self._read(f"{path}/headers")
        return [*(answer.get("headers") or ()), *map(str, answer.get("sensitive") or ())]

    def _there(self, path: str, ours: Mapping[str, Any], added: Collection[str] = ()) -> There:
        """What the hub shows of an endpoint, with the headers that were added before."""
        answer = self._read(f"{path}/signatures")
        own = [] if answer.get("inheritedFrom") else answer.get("signatures")
        return There(fields=ours, headers=[*self._headers(path), *added], signatures=own or ())

    def _put(
        self,
        copied: Copied,
        name: str,
        path: str,
        wanted: Mapping[str, Any],
        *,
        compared: tuple[str, ...],
        foreseen: Callable[[Foreseen, Mapping[str, Any]], None],
    ) -> Copied:
        """Create something with its own name, or change what differs in it."""
        unusable = self._unusable(copied.kind, copied.name, name)
        if unusable:
            return replace(copied, outcome=Outcome.FAILED, note=unusable)
        try:
            ours = self._found(path)
            if ours is None:
                self._write("PUT", path, wanted, foreseen=lambda known: foreseen(known, wanted))
                return copied
            if fields_of(ours, compared) == fields_of(wanted, compared):
                return replace(copied, outcome=Outcome.SAME)
            # Not replaced as a whole: what no other sender has stays.
            body = _changes(wanted, compared)
            self._write("PATCH", path, body, foreseen=lambda known: foreseen(known, {**ours, **body}))
        except Refused as error:
            return replace(copied, outcome=Outcome.FAILED, note=error.message)
        return replace(copied, outcome=Outcome.CHANGED)

    def _unusable(self, kind: str, name: str, identifier: str) -> str:
        """Why something cannot be copied under its name; empty if it can."""
        if not _fits_a_path(identifier):
            return "a name here has 1 to 256 letters, digits, hyphens, underscores and dots"
        return self._twice(kind, name)

    def _twice(self, kind: str, name: str) -> str:
        if (kind, name) in self._done:
            return "another one has the same name"
        self._done.add((kind, name))
        return ""

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

    def _write(self, method: str, path: str, body: Mapping[str, Any], *, foreseen: Callable[[Foreseen], None]) -> None:
        """Change something here.

        Args:
            foreseen: Says in a dry run whether the hub would refuse it.
        """
        if self._foreseen is None:
            patiently(self._here, method, f"{ROOT}{path}", dict(body), sleep=self._sleep)
        elif self._closed is not None:
            raise self._closed
        else:
            foreseen(self._foreseen)


_SPEC: Mapping[str, Any] = {
    "openapi": "3.1.0",
    "webhooks": {"x": {"post": {"requestBody": {"content": {"application/json": {"schema": {}}}}}}},
}
"""The smallest document of event types, of which a dry run stores nothing."""


def fields_of(given: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The fields of an item that have values, under their new names; lists whose order is irrelevant are sorted."""
    found: dict[str, Any] = {}
    for name in names:
        value = given.get(name, given.get(_OLD_NAMES.get(name, name)))
        if value is None or value in ("", {}) or value is False:
            continue
        if name == "cloudEvents" and isinstance(value, Mapping):
            value = {each: value[each] for each in CLOUD_EVENTS if value.get(each)}
        found[name] = (
            sorted(value) if isinstance(value, list) and all(isinstance(each, str) for each in value) else value
        )
    return found


def _changes(wanted: Mapping[str, Any], compared: tuple[str, ...]) -> dict[str, Any]:
    """The body that changes something to what is wanted."""
    return {each: wanted.get(each, _BLANK.get(each)) for each in compared}


def _transformation(given: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """The body that gives an endpoint a transformation.

    Args:
        ours: What the endpoint has here: a variable that is not shown there keeps the value that it has here.
    """
    variables = given.get("variables") or {}
    if isinstance(variables, Mapping):
        here = ours.get("variables") or {}
        variables = {name: text for name, text in variables.items() if text != HIDDEN or name in here}
    enabled, language = given.get("enabled") or False, given.get("language")
    body = {"code": given.get("code") or None, "enabled": enabled, "variables": variables}
    return body if language is None else {**body, "language": language}


def _names_of(variables: Any) -> Any:
    return sorted(variables) if isinstance(variables, Mapping) else variables


def _with(ours: Mapping[str, Any], wanted: Mapping[str, Any], theirs: TheirEndpoint) -> Mapping[str, Any]:
    """An endpoint's fields after they are changed."""
    return {**ours, **_changes(wanted, theirs.compared)}


def _fits_a_path(name: str) -> bool:
    """Whether the hub knows things by such a name; of a path's dots, clients make another path."""
    return NAME.fullmatch(name) is not None and name not in (".", "..")


def _with_stored_headers(theirs: TheirQueue, ours: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings for a queue that is here already: headers that its sender does not show stay as they were set here."""
    here = {_whose(each): each.get("headers") or {} for each in _subscribers(ours) if isinstance(each, Mapping)}

    def kept(subscriber: object) -> object:
        if not isinstance(subscriber, Mapping):
            return subscriber
        hidden = {name.lower() for name in theirs.hidden.get(str(subscriber.get("name")), ())}
        stored = here.get(_whose(subscriber), {})
        headers = {name: HIDDEN for name, value in stored.items() if value == HIDDEN and name.lower() in hidden}
        return {**subscriber, "headers": headers | dict(subscriber.get("headers") or {})} if headers else subscriber

    subscribers = [*map(kept, _subscribers(theirs.settings))]
    if not subscribers:
        return theirs.settings
    return {**theirs.settings, "push": {**theirs.settings["push"], "subscribers": subscribers}}


def _subscribers(settings: Mapping[str, Any]) -> Sequence[object]:
    push = settings.get("push")
    found = push.get("subscribers") if isinstance(push, Mapping) else None
    return found if isinstance(found, list) else []


def _whose(subscriber: Mapping[str, Any]) -> tuple[str, str]:
    """Name, and scheme, host and port: whose a value is that is not shown, and where it may go. Both as text, as what
    stands there at a sender may be anything.
    """
    scheme, gap, rest = str(subscriber.get("url")).partition("://")
    return str(subscriber.get("name")), f"{scheme}{gap}{re.split('[/?#]', rest, maxsplit=1)[0]}"


def _covers(shown: Any, wanted: Any) -> bool:
    """Whether everything that is wanted is shown; lists of named things are compared by name, others in order."""
    if isinstance(wanted, Mapping):
        # What is empty need not be shown.
        shown = {} if shown is None else shown
        return isinstance(shown, Mapping) and all(_covers(shown.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list) and all(isinstance(each, Mapping) and "name" in each for each in wanted):
        if not isinstance(shown, list) or len(shown) != len(wanted):
            return False
        named = {each.get("name"): each for each in shown if isinstance(each, Mapping)}
        return all(_covers(named.get(each["name"]), each) for each in wanted)
    if isinstance(wanted, list) and isinstance(shown, list) and len(shown) == len(wanted):
        return all(map(_covers, shown, wanted))
    return shown in (wanted, HIDDEN)


def text_of(given: Mapping[str, Any], name: str) -> str:
    """A text in an answer, which has to be there."""
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise click.ClickException(f"an answer has no {name}")
    return value
