"""Every place that reads a stranger's JSON gets every document of the corpus. The places are found in the code, so that
a new one fails here until it is tried, too.
"""

from __future__ import annotations

import ast
import gzip
import io
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import click
import pytest
from cli.answers import Odd
from cli.archive import archived
from cli.archive.carried import Folder
from cli.archive.erasing import _is_of
from cli.json_files import json_in
from cli.messages import replaying, signatures
from cli.migration import foreseen, senders
from tests.architecture.test_layers import LAYER, ROOT
from tests.fakes.credentials import credentials
from tests.hostile.documents import DOCUMENTS
from tests.web.protocols import Served, served

from cli import rest
from pushhub.base import json_text
from pushhub.base.errors import HubError
from pushhub.base.oauth import TokenRefused, read_token
from pushhub.base.signature_check import SignedPost
from pushhub.base.steps import Steps
from pushhub.base.verdict import Answer
from pushhub.base.webhook_senders import SENDERS, event_of
from pushhub.engine.model import catalogue, search
from pushhub.engine.model.consumed import Consumed
from pushhub.engine.store import s3_past
from pushhub.engine.target import BatchedMessage
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.store._items import decode_parameter
from pushhub.hub.wire import answer as hub_answer
from pushhub.hub.wire import discovery, objects
from pushhub.hub.wire.fields import CheckedFields
from pushhub.hub.wire.json import parse_object
from pushhub.hub.wire.views import _answered
from pushhub.ironmq.api.description import DESCRIPTION as IRONMQ_DESCRIPTION
from pushhub.ironmq.model.spans import rejected_spans
from pushhub.ironmq.wire.cloud_events import webhook_event, webhook_events
from pushhub.notifications.wire import publish, requests, subscriptions, url
from pushhub.runtime import consuming
from pushhub.scripting.sandbox import read_result
from pushhub.sinks.kinds import KINDS
from pushhub.sinks.model.attributes import as_json
from pushhub.sinks.model.batch import line_of
from pushhub.web import audit, mcp
from pushhub.web import json as web_json
from pushhub.web.http import Request
from pushhub.web.misspelt import Misspelt
from pushhub.webhooks.messages.consuming import _new as of_consumed
from pushhub.webhooks.model.cloud_events import CloudEvent
from pushhub.webhooks.model.redaction import Redaction
from pushhub.webhooks.model.transformation import CodeFailed
from pushhub.webhooks.resending.replay import payload_of
from pushhub.webhooks.wire import message
from pushhub.webhooks.wire.fields import Fields as WebhookFields
from pushhub.webhooks.wire.fields import parse_body
from pushhub.webhooks.wire.openapi import parse_openapi
from pushhub.webhooks.wire.transformation import read_changes, webhook_of

READERS = {
    "pushhub.base.json_text": {"read", "read_words", "lines", "split"},
    "pushhub.web.json": {"parse_value", "parse_object"},
    "pushhub.hub.wire.json": {"parse_object", "parse_written"},
    "pushhub.webhooks.wire.fields": {"parse_body"},
}
"""The functions that read a stranger's JSON, by module: the one that does it, and those that word its refusals."""

REFUSALS = (HubError, TokenRefused, click.ClickException, replaying.Stays, json_text.NotJson, mcp._RpcError, CodeFailed)
"""How a place may refuse a document."""

Driver = Callable[[bytes], object]


@cache
def places() -> set[str]:
    """Where these functions are called: module and function."""
    found: set[str] = set()
    for path in sorted((*LAYER.rglob("*.py"), *(ROOT / "cli").rglob("*.py"), *(ROOT / "functions").rglob("*.py"))):
        parts = path.relative_to(LAYER.parent if path.is_relative_to(LAYER) else ROOT).with_suffix("").parts
        module = ".".join(parts)
        if module != "pushhub.base.json_text":
            found |= {f"{module}.{name}" for name in _readers_in(module, ast.parse(path.read_text()))}
    return found


def _readers_in(module: str, tree: ast.Module) -> Iterator[str]:
    """The functions of a module that call a reader."""
    known: dict[str, str] = {}
    for each in ast.walk(tree):
        if isinstance(each, ast.ImportFrom) and each.level == 0:
            for name in each.names:
                known[name.asname or name.name] = f"{each.module}.{name.name}"
    readers = {f"{where}.{name}" for where, names in READERS.items() for name in names}
    readers_here = READERS.get(module, set())

    def walk(node: ast.AST, inside: str) -> Iterator[str]:
        for each in ast.iter_child_nodes(node):
            named = isinstance(each, ast.FunctionDef | ast.ClassDef)
            if isinstance(each, ast.Name | ast.Attribute) and isinstance(each.ctx, ast.Load):
                called = ast.unparse(each)
                first, _, rest = called.partition(".")
                whole = f"{known.get(first, first)}{'.' if rest else ''}{rest}"
                if whole in readers or (first == called and called in readers_here):
                    yield inside
            yield from walk(each, f"{inside}.{each.name}".lstrip(".") if named else inside)  # type: ignore[attr-defined]

    yield from walk(tree, "")


MAPPING = ServiceMapping(
    mapping_id="1" * 24, name="acme.import", messages=("order:new",), url="https://a.example/", token="t", version=1
)


def answered(body: bytes, status: int = 200) -> Answer:
    return Answer(status_code=status, message="", body=body, started_at=0, finished_at=0)


def of_service(status: int) -> Driver:
    def drive(body: bytes) -> object:
        return hub_answer.read_answer(answered(body, status), object_id="5" * 24, mapping=MAPPING, polled=None)

    return drive


def as_text(read: Callable[[str], object]) -> Driver:
    """What reads texts, which forms and JSON hold: also such as no bytes can hold."""

    def drive(body: bytes) -> object:
        found = [read(body.decode(errors="replace"))]
        if body.isascii():
            try:
                given = json.loads(
                    b'{"t":"%s"}' % body.replace(b"\\u", b"\x00u").replace(b'"', b'\\"').replace(b"\x00u", b"\\u")
                )["t"]
            except ValueError:
                return found
            found.append(read(given))
        return found

    return drive


def file_of(read: Callable[[Any], object]) -> Driver:
    return lambda body: read(io.TextIOWrapper(io.BytesIO(body), encoding="utf-8"))


@cache
def of(protocol: str) -> Served:
    return served(protocol)


def asked(protocol: str, method: str, path: str) -> Driver:
    """A request to an API; the answer may have any status but one of a fault."""

    def drive(body: bytes) -> object:
        reported = of(protocol).send(method, path.format(project=of(protocol).project), body)
        assert reported.status < 500, reported
        return reported.body

    return drive


def folder(name: str, read: Callable[[Folder], object]) -> Driver:
    def drive(body: bytes) -> object:
        with tempfile.TemporaryDirectory() as place:
            (Path(place) / name).write_bytes(body)
            return read(Folder(Path(place)))

    return drive


def parameter(kind: str) -> Callable[[str], object]:
    def read(text: str) -> object:
        given = CheckedFields({"name": "p", "value": text, "data_type": kind})
        return objects.read_parameter(given, None, "project", lambda _: ())

    return read


def unread(read: Callable[[bytes, Callable[[json_text.Unread], None]], object]) -> Driver:
    """What reads lines goes on behind whatever it cannot read."""

    def drive(body: bytes) -> object:
        named: list[json_text.Unread] = []
        last = b'{"behind": 1}'
        lines = [*json_text.lines(body + b"\n" + last + b"\n", named.append)]
        assert lines[-1:] == [{"behind": 1}] or body.startswith(b"\x1f\x8b")
        assert lines[:-1] or named or not body.strip()
        return [read(body, named.append), read(gzip.compress(body + b"\n" + last), named.append)]

    return drive


def refused_by_a_hub(body: bytes) -> object:
    return rest._message(body)


def asked_over_rest(body: bytes) -> object:
    """What another server answers to the command line, without a server."""

    class Given:
        status_code = 200
        headers: ClassVar[dict[str, str]] = {}

        def iter_content(self, _: int) -> Iterator[bytes]:
            yield body

        def __enter__(self) -> Given:
            return self

        def __exit__(self, *_: object) -> None: ...

    class Session:
        def request(self, *_: object, **__: object) -> Given:
            return Given()

    created = rest.Rest("https://a.example", "p", "t")
    created._session = Session()  # type: ignore[assignment]
    try:
        return created.call("GET", "/")
    except Odd as odd:
        return str(odd)


def stored_parameter(body: bytes) -> object:
    """A parameter's item with the document as its value."""
    value = body.decode(errors="replace")
    item = {"name": {"S": "a"}, "value": {"S": value}, "data_type": {"S": "list"}, "as_of": {"N": "1"}}
    return decode_parameter(item, "p", credentials())


def of_parameters(body: bytes) -> object:
    """An answer that sets a parameter, with the document as its value."""
    head = b'{"message_id": "%s", "parameters": [{"name": "a", "value": ' % (b"5" * 24)
    return hub_answer.read_answer(answered(head + body + b"}]}"), object_id="5" * 24, mapping=MAPPING, polled=None)


def mcp_answer(body: bytes) -> object:
    answer = mcp.answer(Request(method="POST", path="/mcp", body=body), [], version="1", instructions="")
    assert answer.status < 500
    return answer.body


EVENT = {"identifier": "msg_1", "source": "https://a.example", "type": "t", "time": 0}

PLACES: Mapping[str, Driver] = {
    # Requests
    "pushhub.web.json.parse_value": web_json.parse_value,
    "pushhub.web.json.parse_object": web_json.parse_object,
    "pushhub.ironmq.api.call.IronCall.fields": asked("ironmq", "PUT", "/3/projects/{project}/queues/q"),
    "pushhub.base.webhook_senders.event_of": lambda body: event_of(
        SENDERS["slack"], SignedPost(url="", headers={}, body=body, at=0)
    ),
    "pushhub.hub.wire.json.parse_object": parse_object,
    "pushhub.hub.wire.json.parse_written": objects.read_pushed,
    "pushhub.hub.wire.objects.read_pushed": asked("hub", "POST", "/api/stores/{project}/messages"),
    "pushhub.hub.api.call.HubCall._in_body": asked("hub", "POST", "/api/stores/{project}/parameters"),
    "pushhub.hub.wire.objects._typed": as_text(parameter("list")),
    "pushhub.hub.wire.objects._number": as_text(parameter("float")),
    "pushhub.web.misspelt.Misspelt.__call__": lambda body: Misspelt(lambda: IRONMQ_DESCRIPTION)(
        "ironmq.put_queue", body
    ),
    "pushhub.hub.wire.fields.CheckedFields._parsed": as_text(
        lambda text: CheckedFields({"a": f"[{text}]"}).texts("a", most=10)
    ),
    "pushhub.notifications.wire.publish.parse_drafts": asked("notifications", "POST", "/notification2/notifications"),
    "pushhub.notifications.wire.requests.parse_token_request": lambda body: requests.parse_token_request(body, "p"),
    "pushhub.notifications.wire.subscriptions.parse_subscription": lambda body: subscriptions.parse_subscription(
        body, project="p"
    ),
    "pushhub.webhooks.wire.fields.parse_body": parse_body,
    "pushhub.webhooks.api.call.WebhooksCall.fields": asked("webhooks", "POST", "/api/v1/app"),
    "pushhub.webhooks.resending.replay.payload_of": payload_of,
    "pushhub.webhooks.wire.message.parse_message": lambda body: message.parse_message(body, 0),
    "pushhub.webhooks.wire.openapi._parsed": as_text(lambda text: parse_openapi(WebhookFields({"specRaw": text}))),
    # The answer to the first request; its payload is the producer's
    "pushhub.webhooks.api.api._once.handle": lambda body: json_text.read(body, exact=True),
    "pushhub.web.mcp._message": mcp_answer,
    "pushhub.web.audit._content": audit._content,
    "pushhub.runtime.consuming._of_event": lambda body: consuming._read(
        {"body": body.decode(errors="replace"), "attributes": {}}, consuming._of_event
    ),
    "pushhub.webhooks.messages.consuming._new": lambda body: of_consumed(Consumed(body=body, event_id="1", at=0)),
    "pushhub.base.cloud_events.event_in": lambda body: webhook_event(
        body, {"content-type": "application/cloudevents+json"}
    ),
    "pushhub.base.cloud_events.events_in": lambda body: webhook_events(body, {}),
    # Messages, looked into
    "pushhub.engine.model.search._parsed": lambda body: search.field_values(["a", "a.b"], body, {}),
    "pushhub.notifications.wire.publish.one_line_of_bytes": publish.one_line_of_bytes,
    "pushhub.notifications.wire.url.source_in": lambda body: url.source_in(body, "q"),
    "pushhub.webhooks.wire.message.payload_view": lambda body: [
        message.payload_view(body, each, Steps()) for each in (Redaction(), Redaction(payload=("a",)))
    ],
    "pushhub.webhooks.model.cloud_events._parses": lambda body: (
        CloudEvent(
            **EVENT,  # type: ignore[arg-type]
            content_type="application/json",
            data=body,
        ).structured
    ),
    # A body that is no UTF-8 comes never so far.
    "pushhub.sinks.model.batch.line_of": lambda body: line_of(
        BatchedMessage(message_id="m", about="a", at=0, body=body)
    ),
    "pushhub.sinks.model.attributes.as_json": as_text(lambda text: as_json(text.encode(errors="replace").decode())),
    "pushhub.webhooks.wire.transformation._is_json": lambda body: webhook_of("https://a.example", body, None, "a"),
    # Answers of code, and of endpoints
    "pushhub.scripting.sandbox.read_result": read_result,
    "pushhub.webhooks.wire.transformation._payload": as_text(
        lambda text: read_changes({"result": {"payload": {"json": text}}}, "webhook")
    ),
    "pushhub.webhooks.wire.transformation._check_json": as_text(
        lambda text: read_changes({"result": {"format": "json", "parts": [text]}}, "object")
    ),
    "pushhub.sinks.wire.errors.object_of": lambda body: [
        str(kind.load().fault(answered(body, status))) for kind in KINDS for status in (200, 400)
    ],
    "pushhub.base.oauth._object": lambda body: [
        read_token(answered(body)),
        read_token(answered(body, 400)),
    ],
    "pushhub.hub.wire.answer._success": of_service(200),
    "pushhub.hub.wire.answer._parameters": of_parameters,
    "pushhub.hub.wire.answer._refusal": of_service(500),
    "pushhub.hub.wire.discovery.read_description": lambda body: discovery.read_description(answered(body)),
    "pushhub.hub.wire.views._answered": lambda body: _answered(_Recorded(body)),  # type: ignore[arg-type]
    "pushhub.ironmq.model.spans.rejected_spans": lambda body: rejected_spans(body, 10),
    "pushhub.webhooks.model.redaction.Redaction.of_answer": as_text(Redaction(answers=("b",)).of_answer),
    # Objects of buckets
    "pushhub.engine.store.s3_records.S3Records._records": unread(json_text.lines),
    "pushhub.engine.store.s3_past._records": unread(lambda body, _: [*s3_past._records(body)]),
    "pushhub.engine.store.aws_nights.AwsNights._lines": unread(json_text.lines),
    "cli.commands.tail.Records._records": unread(json_text.lines),
    "cli.archive.exporting.Exporting._of_days": unread(json_text.lines),
    "cli.archive.erasing.Erasing._lines": json_text.split,
    "cli.archive.erasing._record": lambda body: _is_of(body + b"p", "p"),
    # What somebody wrote once, as it was stored
    "pushhub.hub.store._items.decode_parameter": lambda body: decode_parameter(
        {
            "name": {"S": "a"},
            "value": {"S": body.decode(errors="replace")},
            "data_type": {"S": "list"},
            "as_of": {"N": "1"},
        },
        "p",
        credentials(),
    ),
    "pushhub.engine.model.catalogue._parsed": catalogue._parsed,
    # The command line: files, and what other servers answer
    "cli.archive.carried.Folder.lines": lambda body: folder("a.gz", lambda place: place.lines("a.gz"))(
        gzip.compress(body)
    ),
    "cli.archive.carried.Folder.state": folder("begun.json", Folder.state),
    "cli.json_files.json_in": file_of(json_in),
    "cli.commands.transformations.try_transformation": json_text.read,
    "cli.archive.archived.numbered": lambda body: folder("a.gz", lambda place: [*archived.numbered(place, "a.gz")])(
        gzip.compress(body)
    ),
    "cli.migration.foreseen._fields": as_text(lambda text: foreseen._fields({"a": text})),
    "cli.messages.replaying.Failed.of": as_text(replaying.Failed.of),
    "cli.rest.Rest.call": asked_over_rest,
    "cli.rest._message": refused_by_a_hub,
    "cli.migration.senders._parsed": as_text(senders._parsed),
    "cli.messages.signatures._other_bodies": lambda body: [*signatures._other_bodies(body)],
}
"""How each place is given a document."""


class _Recorded:
    def __init__(self, body: bytes) -> None:
        self.answer = answered(body)


def check_writable(value: object) -> None:
    """What a place hands on can be stored, and sent as JSON."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, str):
            each.encode()
        elif isinstance(each, float):
            assert math.isfinite(each)
        elif isinstance(each, json_text.Verbatim):
            json_text.read(each.text)
        elif isinstance(each, Mapping):
            pending += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple | set | frozenset):
            pending += each
        elif is_dataclass(each):
            pending += [getattr(each, field.name) for field in fields(each)]


def test_the_corpus_is_large() -> None:
    assert len(DOCUMENTS) >= 80


def test_every_place_that_reads_a_strangers_json_is_tried() -> None:
    """Given the places that the code has, then each is given the documents here, and no place is here that is gone."""
    assert places() == PLACES.keys()


@pytest.mark.parametrize("place", PLACES)
def test_no_document_does_harm(place: str) -> None:
    """Given every document, when a place reads it, then it refuses it in its own words, or hands on what can be written
    as JSON again.
    """
    harmed: dict[str, str] = {}
    for name, document in DOCUMENTS.items():
        try:
            check_writable(PLACES[place](document))
        except REFUSALS as refusal:
            str(refusal).encode()
        except Exception as error:  # noqa: BLE001 (whatever it is, it is told)
            harmed[name] = repr(error)[:200]
    assert not harmed
