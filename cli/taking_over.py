"""Copies what other senders have, as their sources (:mod:`cli.senders`) describe it: applications with endpoints that
are signed as before, and queues with subscribers.

What is already there and the same is left alone, so a run that broke off can simply be repeated. Nothing is ever
deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote

from .migration import APPLICATION, ENDPOINT, EVENT_TYPE, Copied, Copier, Outcome, fields_of
from .rest import Refused

__all__ = ["Importer", "Source", "TheirApplication", "TheirEndpoint", "TheirQueue"]

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
    """

    uid: str
    fields: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    scheme: Mapping[str, Any] | None = None
    secret: str | None = None
    notes: Sequence[str] = ()
    unfit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TheirApplication:
    """What becomes an application: a tenant, an owner, or an application of another sender."""

    uid: str
    name: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    endpoints: Sequence[TheirEndpoint] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TheirQueue:
    """A queue of another sender, or what becomes one.

    Attributes:
        name: Its name.
        settings: As the queue API takes them.
        notes: What a person has to do.
    """

    name: str
    settings: Mapping[str, Any]
    notes: Sequence[str] = ()


class Source(Protocol):
    """Another sender; it is only read."""

    def event_types(self) -> Iterator[tuple[str, str]]:
        """Names and descriptions of event types."""
        ...

    def applications(self, only: str | None) -> Iterator[TheirApplication]:
        """What becomes applications; one of them if its id is given."""
        ...

    def queues(self) -> Iterator[TheirQueue]:
        """What becomes queues."""
        ...

    def left(self) -> Iterator[tuple[str, str, str]]:
        """What nothing here corresponds to: kind, name, and what a person can do."""
        ...


class Importer(Copier):
    """Copies from a source."""

    def run(self, source: Source, only: str | None = None) -> Iterator[Copied]:
        """Copy everything, or event types and one application, and yield each item when it is done.

        Raises:
            click.ClickException: A server did not answer, or refused something that it must accept.
        """
        for name, description in source.event_types():
            wanted = {"description": description}
            yield self._put("event type", name, f"/event-type/{_q(name)}", wanted, compared=EVENT_TYPE)
        for each in source.applications(only):
            yield from self._application(each)
        if only is None:
            yield from map(self._queue, source.queues())
            for kind, name, note in source.left():
                yield Copied(kind=kind, name=name, outcome=Outcome.LEFT, note=note)

    def _application(self, theirs: TheirApplication) -> Iterator[Copied]:
        path = f"/app/{_q(theirs.uid)}"
        wanted = fields_of({"name": theirs.name, "metadata": theirs.metadata}, APPLICATION) | {"uid": theirs.uid}
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
        path = f"{app}/endpoint/{_q(theirs.uid)}"
        wanted = fields_of(theirs.fields, ENDPOINT) | {"uid": theirs.uid}
        try:
            ours = None if fresh else self._found(path)
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
        shown = self._read(self._here, f"{path}/signatures").get("signatures")
        wanted = {name: value for name, value in scheme.items() if name != "secret"}
        same = isinstance(shown, list) and len(shown) == 1 and _covers(shown[0], wanted)
        if same and self._read(self._here, f"{path}/secret").get("key") == scheme["secret"]:
            return False
        self._write("PUT", f"{path}/signatures", {"signatures": [{**scheme, "gracePeriodSeconds": 0}]})
        return True

    def _queue(self, theirs: TheirQueue) -> Copied:
        """Copy a queue with its subscribers."""
        path, note = self._here.queue(theirs.name), "; ".join(theirs.notes)
        try:
            try:
                ours = self._call(self._here, "GET", path, None, None, root="").get("queue")
            except Refused as error:
                if error.status != 404:
                    raise
                ours = None
            outcome = Outcome.MADE if ours is None else Outcome.CHANGED
            if ours is not None and _covers(ours, theirs.settings):
                outcome = Outcome.SAME
            # What is not shown cannot be compared: it is written each time.
            if not self._dry and (outcome is not Outcome.SAME or HIDDEN in json.dumps(ours)):
                self._call(self._here, "PUT", path, {"queue": dict(theirs.settings)}, None, root="")
        except Refused as error:
            return Copied(kind="queue", name=theirs.name, outcome=Outcome.FAILED, note=error.message)
        return Copied(kind="queue", name=theirs.name, outcome=outcome, note=note)


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


def _q(name: str) -> str:
    return quote(name, safe="")
