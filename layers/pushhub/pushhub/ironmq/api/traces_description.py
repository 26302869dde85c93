"""Describes the routes of the export of spans for the OpenAPI document."""

from __future__ import annotations

from pushhub.ironmq.wire.span_settings import MAX_COLLECTOR_URL
from pushhub.web.description import Described, Schema, answer, boolean, nullable, obj, ref, request, text, whole

_FIELDS: dict[str, Schema] = {
    "url": text(
        "Where spans are POSTed as OTLP over HTTP (JSON, gzip), with its whole path, mostly `/v1/traces`.",
        minLength=1,
        maxLength=MAX_COLLECTOR_URL,
    ),
    "headers": obj(
        "Sent with them, at most ten. Values are shown as `********`, which keeps them when it is sent back.",
        additionalProperties=text(),
    ),
    "on": boolean("Whether spans are exported now.", default=True),
}
_SHOWN = answer(
    {
        **_FIELDS,
        "exported": whole("Spans that the collector took in the last 24 hours.", 0),
        "dropped": whole("Spans that were given up in the last 24 hours.", 0),
        "failing": nullable(
            answer(
                {
                    "since": text("When the oldest spans that wait were made.", format="date-time"),
                    "status_code": whole("The collector's last answer to them; 0 for none.", 0),
                    "message": text("Why they were not taken."),
                    "next_try_at": nullable(text("When they are sent again.", format="date-time")),
                }
            )
        ),
    }
)
_SENT = {"url": "https://otel.example/v1/traces", "headers": {"Authorization": "Bearer s3cret"}, "on": True}
_EXAMPLE = {**_SENT, "headers": {"Authorization": "********"}, "exported": 2000, "dropped": 0, "failing": None}

TRACES: dict[str, Described] = {
    "ironmq.show_span_export": Described(
        means="null when nothing is set.",
        answer=answer({"traces": nullable(_SHOWN)}),
        answered={"traces": _EXAMPLE},
    ),
    "ironmq.set_span_export": Described(
        means="Each attempt of a message that was posted with a sampled `traceparent` becomes two spans,"
        " `message_attempt` and `http_attempt`, within two minutes. It takes effect within half a minute.",
        request=request({"traces": request(_FIELDS, needs=("url",))}, needs=("traces",)),
        sent={"traces": _SENT},
        answer=answer({"traces": _SHOWN}),
        answered={"traces": _EXAMPLE},
    ),
    "ironmq.delete_span_export": Described(
        means="Spans that still wait are dropped.", answer=ref("IronmqDone"), answered={"msg": "Deleted"}
    ),
}
"""By the route's name."""
