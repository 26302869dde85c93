"""A producer, a receiver and a collector made with OpenTelemetry's own packages, in the environment of
``requirements/judges.txt``.

Takes one JSON object from standard input (``hub``: URL of a project's API; ``token``; ``queue``), posts one message
within a span, answers the hub's first attempts with 503, and prints every span that was made, the hub's included, as a
JSON list of ``[who, trace id, span id, parent id, name, status code]``.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from google.protobuf import json_format  # type: ignore[import-untyped]
from opentelemetry import propagate  # type: ignore[import-not-found]
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # type: ignore[import-not-found]
from opentelemetry.sdk.trace import TracerProvider  # type: ignore[import-not-found]
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # type: ignore[import-not-found]
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # type: ignore[import-not-found]
from opentelemetry.trace import SpanKind  # type: ignore[import-not-found]

ANSWERS = (503, 503, 200)
FIRST_OF_COLLECTOR = 503
"""The collector, too, fails at first: its answer is what it would be asked again after."""

memory = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(memory))
tracer = provider.get_tracer("judge")

Span = tuple[str, str, str, str, str, int]
collected: list[Span] = []
counts = {"attempts": 0, "exports": 0}
lock, complete = threading.Lock(), threading.Event()


def parsed(body: bytes) -> list[Span]:
    """The spans of an export request, which has to be valid as OpenTelemetry defines it. Ids are bytes for the parser,
    and in hex on the wire: the one difference between OTLP's JSON and that of protobuf.
    """
    request = json.loads(body)
    for resource in request["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    message = json_format.ParseDict(request, trace_service_pb2.ExportTraceServiceRequest())
    again = trace_service_pb2.ExportTraceServiceRequest.FromString(message.SerializeToString())
    found: list[Span] = []
    for resource in again.resource_spans:
        names = {each.key: each.value.string_value for each in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
                ids = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
                found.append((names["service.name"], *ids, span.name, span.status.code))
    return found


class Handler(BaseHTTPRequestHandler):
    """The receiver at ``/in``, the collector at ``/v1/traces``."""

    def do_POST(self) -> None:
        """Answer, and remember."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self._received() if self.path == "/in" else self._collected(body))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _received(self) -> int:
        context = propagate.extract({name.lower(): value for name, value in self.headers.items()})
        with lock, tracer.start_as_current_span("receive", context=context, kind=SpanKind.SERVER):
            status = ANSWERS[min(counts["attempts"], len(ANSWERS) - 1)]
            counts["attempts"] += 1
        return status

    def _collected(self, body: bytes) -> int:
        assert self.headers["Content-Type"] == "application/json"
        assert self.headers["x-key"] == "s3cret"
        with lock:
            counts["exports"] += 1
            if counts["exports"] == 1:
                return FIRST_OF_COLLECTOR
            collected.extend(parsed(gzip.decompress(body)))
            if len(collected) >= 2 * len(ANSWERS):
                complete.set()
        return 200

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def ask(given: dict[str, str], method: str, path: str, body: dict[str, Any], **headers: str) -> None:
    """A request to the hub."""
    shown = {"Authorization": f"OAuth {given['token']}", "Content-Type": "application/json", **headers}
    request = urllib.request.Request(given["hub"] + path, json.dumps(body).encode(), shown, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


def main() -> None:
    """Post, receive, collect."""
    given = json.load(sys.stdin)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    here = f"http://127.0.0.1:{server.server_address[1]}"
    ask(given, "PUT", "/traces", {"traces": {"url": f"{here}/v1/traces", "headers": {"x-key": "s3cret"}}})
    subscriber = {"name": "judge", "url": f"{here}/in"}
    push = {"subscribers": [subscriber], "retries": 3, "retries_delay": 3}
    ask(given, "PUT", f"/queues/{given['queue']}", {"queue": {"type": "multicast", "push": push}})
    with tracer.start_as_current_span("produce", kind=SpanKind.PRODUCER):
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        ask(given, "POST", f"/queues/{given['queue']}/messages", {"messages": [{"body": "x"}]}, **carrier)
    complete.wait(150)
    own = [
        (
            "judge",
            f"{each.context.trace_id:032x}",
            f"{each.context.span_id:016x}",
            f"{each.parent.span_id:016x}" if each.parent else "",
            each.name,
            0,
        )
        for each in memory.get_finished_spans()
    ]
    sys.stdout.write(json.dumps([*own, *collected]))


if __name__ == "__main__":
    main()
