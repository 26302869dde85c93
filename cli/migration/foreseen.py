"""What the hub would refuse of an import: its own rules, for a dry run that must not write anything.

What a rule needs to know of the hub is read there: event types, and what is there already.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pushhub.base import json_text
from pushhub.base.errors import NotFound, RequestRefused
from pushhub.base.sink_url import parse_sink_url
from pushhub.cloud.clock import SystemClock
from pushhub.engine.model.reach import Reach, Scope
from pushhub.engine.target import Outcome, PushOrder, TargetOffer, Targets
from pushhub.ironmq.pushing.targets import check_queue_url, check_worker_url
from pushhub.notifications.wire.url import parse_topic_url
from pushhub.sinks.kinds import KINDS
from pushhub.webhooks.api.dialect import MAX_REQUEST_BYTES
from pushhub.webhooks.applications.connectors import of_fit_size
from pushhub.webhooks.applications.event_types import check_event_type
from pushhub.webhooks.endpoints.endpoint_checks import EndpointChecks
from pushhub.webhooks.endpoints.signatures import EndpointSignatures, check_fit
from pushhub.webhooks.model.application import Application, ApplicationFields
from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields
from pushhub.webhooks.model.refusals import Refused as Refusal
from pushhub.webhooks.model.refusals import Unprocessable
from pushhub.webhooks.model.rights import Rights
from pushhub.webhooks.wire.application import parse_application
from pushhub.webhooks.wire.connector import parse_connector
from pushhub.webhooks.wire.endpoint import (
    parse_endpoint,
    parse_endpoint_patch,
    parse_header_change,
    parse_new_endpoint,
    parse_rotation,
)
from pushhub.webhooks.wire.event_type import parse_event_type
from pushhub.webhooks.wire.fields import Fields, parse_body
from pushhub.webhooks.wire.signatures import parse_defaults, parse_signatures
from pushhub.webhooks.wire.transformation import parse_change

from ..rest import Refused, problems

_RIGHTS = Rights(reach=Reach.PROJECT)
"""Those of a project's token, which the command line has."""
_APPLICATION = Application(project="", app_id="app_", fields=ApplicationFields(name="-"), created_at=0, updated_at=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class There:
    """An endpoint that the hub has, as far as it is shown.

    Attributes:
        fields: As the hub shows them.
        headers: Names of its headers.
        signatures: Its schemes, without their secrets.
    """

    fields: Mapping[str, Any]
    headers: Collection[str] = ()
    signatures: Sequence[Mapping[str, Any]] = ()


class Foreseen:
    """Says what the hub would say to a write; each method raises ``Refused`` as the hub would refuse.

    Args:
        knows: Whether endpoints may choose an event type.
    """

    def __init__(self, knows: Callable[[str], bool]) -> None:
        clock = SystemClock()
        self._checks = EndpointChecks(
            missing_types=lambda _, names, __: [each for each in names if not knows(each)], targets=lambda: _TARGETS
        )
        self._signatures = EndpointSignatures(vault=_Open(), note_end=lambda _: None, clock=clock)
        self._clock = clock

    def event_type(self, name: str, body: Mapping[str, Any]) -> None:
        """An event type that is made or replaced."""
        with _said():
            check_event_type(name, parse_event_type(_fields(body)), self._clock.now())

    def connector(self, body: Mapping[str, Any]) -> None:
        """A connector that is made, or what becomes of one that is changed."""
        with _said():
            of_fit_size(parse_connector(_fields(body)))

    def application(self, body: Mapping[str, Any]) -> None:
        """An application that is made or replaced."""
        with _said():
            parse_application(_fields(body))

    def inherited(self, body: Mapping[str, Any]) -> None:
        """The signature schemes that an application's endpoints inherit."""
        with _said():
            parse_defaults(_fields(body), self._clock.now())

    def endpoint(self, body: Mapping[str, Any]) -> None:
        """An endpoint that is made."""
        with _said():
            fields = _fields(body)
            wanted = parse_new_endpoint(fields)
            schemes = self._checks.new(_APPLICATION, wanted, partial(parse_signatures, fields), _RIGHTS)
            self._signatures.changed(replace(self._there(wanted.fields), headers=wanted.headers), schemes)
            self._checks.askable(wanted.fields)

    def changed(self, there: There, body: Mapping[str, Any]) -> None:
        """Fields of an endpoint that are changed."""
        with _said():
            stored = self._stored(there)
            given = parse_endpoint_patch(_fields(body)).apply(stored.fields)
            self._checks.check("", given, _RIGHTS, before=stored.fields)
            if given.url != stored.fields.url:
                self._checks.headers(given, stored.headers)
                check_fit(replace(stored, fields=given), "url")
            if not stored.fields.asks_consent or given.url != stored.fields.url:
                self._checks.askable(given)

    def headers(self, there: There, body: Mapping[str, Any]) -> None:
        """Headers of an endpoint that are changed."""
        with _said():
            stored = self._stored(there)
            headers = parse_header_change(_fields(body)).apply(stored.headers)
            if set(headers) - set(stored.headers):
                self._checks.headers(stored.fields, headers)
                check_fit(replace(stored, headers=headers), "headers")

    def transformation(self, body: Mapping[str, Any]) -> None:
        """A transformation of an endpoint that is changed."""
        with _said():
            parse_change(_fields(body))

    def secret(self, there: There, body: Mapping[str, Any]) -> None:
        """A secret of Standard Webhooks that is replaced."""
        with _said():
            parse_rotation(_fields(body))
            self._signatures.check_rotatable(self._stored(there))

    def signatures(self, there: There, body: Mapping[str, Any]) -> None:
        """The schemes of an endpoint's own that are replaced."""
        with _said():
            wanted = parse_signatures(_fields(body), required=True)
            self._signatures.changed(replace(self._stored(there), signatures=()), wanted)

    def _stored(self, there: There) -> Endpoint:
        """An endpoint as the hub has it, but for what it does not show."""
        fields = EndpointFields(**parse_endpoint(Fields(dict(there.fields))).settings)
        schemes = parse_signatures(Fields({"signatures": [*there.signatures]}))
        signatures = tuple(each.scheme for each in schemes)
        return replace(self._there(fields), headers=dict.fromkeys(there.headers, ""), signatures=signatures)

    def _there(self, fields: EndpointFields) -> Endpoint:
        now = self._clock.now()
        return Endpoint(
            project="",
            app_id=_APPLICATION.app_id,
            endpoint_id="ep_",
            fields=fields,
            reach=_RIGHTS.reach,
            created_at=now,
            updated_at=now,
        )


def _fields(body: Mapping[str, Any]) -> Fields:
    """A body as the hub reads it."""
    content = json_text.write(body, spaced=True, ascii_only=True).encode()
    if len(content) > MAX_REQUEST_BYTES:
        raise Refusal(413, "payload_too_large", f"Request is larger than {MAX_REQUEST_BYTES} bytes")
    return Fields(parse_body(content))


@contextmanager
def _said() -> Iterator[None]:
    """A refusal as the hub would say it."""
    try:
        yield
    except Unprocessable as error:
        raise Refused(422, problems([(each.text, each.where) for each in error.problems])) from error
    except Refusal as error:
        raise Refused(error.status, error.message) from error
    except NotFound as error:
        raise Refused(404, error.message) from error
    except RequestRefused as error:
        raise Refused(400, error.message) from error


class _Open:
    """A vault for what is thrown away at once."""

    def seal(self, project_id: str, content: bytes) -> bytes:
        del project_id
        return content

    def open(self, project_id: str, sealed: bytes) -> bytes:
        del project_id
        return sealed


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of subscriber of which only the URLs are checked."""

    read: Callable[[str], object]
    dialect: str = ""

    def check(self, url: str) -> None:
        self.read(url)

    def reaches(self, url: str, *, project: str, queue: str) -> str | None:
        raise NotImplementedError

    def deliver(self, order: PushOrder) -> Outcome:
        raise NotImplementedError


def _offer(*schemes: str, read: Callable[[str], object], signed: bool = True, headers: bool = True) -> TargetOffer:
    return TargetOffer(schemes, lambda: _Kind(read), Scope.PUBLIC, signed=signed, headers=headers)


_TARGETS = Targets(
    [
        _offer("http", "https", read=lambda _: None),
        _offer("ironmq", read=check_queue_url),
        _offer("ironworker", read=check_worker_url),
        _offer("notification2", read=parse_topic_url, signed=False, headers=False),
        *(
            _offer(each.scheme, read=parse_sink_url, signed=each.carries_headers, headers=each.carries_headers)
            for each in KINDS
        ),
    ]
)
"""The kinds of subscribers that endpoints may be; of HTTP, the form of the URL is checked where it is read."""
