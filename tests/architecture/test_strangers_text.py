"""What strangers write is read by one module each: JSON and its lines by ``base/json_text.py``, which writes it, too;
numbers written as text by ``base/numerals.py``. Anything else is found here, in the code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.architecture.test_layers import ROOT, nodes_of, tree_of

PRODUCT = ("layers/pushhub/pushhub", "functions", "cli")
"""Everything that runs in the hub, or talks to it."""
BESIDE = ("glue_jobs", "local")
"""What prepares, emulates and reports: it reads JSON that it, the hub or AWS's tools have written."""

READS_JSON = {
    "layers/pushhub/pushhub/base/json_text.py": "the one reader",
    "layers/pushhub/pushhub/scripting/child.py": "frames of its parent, in a process that has nothing of the hub",
}
WRITES_JSON = {
    "layers/pushhub/pushhub/base/json_text.py": "the one writer",
    "layers/pushhub/pushhub/scripting/child.py": "frames for its parent, in a process that has nothing of the hub",
    "layers/pushhub/pushhub/cloud/observability.py": "log lines: what is no JSON is written as text",
    "layers/pushhub/pushhub/engine/store/s3_records.py": "the same for delivery records, which nothing may keep back",
    "layers/pushhub/pushhub/engine/records/records.py": "a digest of a record of AWS's, which nobody reads",
    "layers/pushhub/pushhub/runtime/engine.py": "a record of AWS's that is set aside, with bytes in it",
    "cli/messages/signatures.py": "what other libraries would have written, to find out which one it was",
}
SPLITS_LINES = {
    "cli/commands/verify.py": "the head of an HTTP request, whose lines end at CR LF",
    "local/emulator/functions.py": "the log of a function, for people",
    "local/processes.py": "the log of a process, for people",
    "local/environment.py": "what pip and git print",
    "local/deploy/packages.py": "what pip prints",
    "local/report_upload.py": "what pip prints",
    "local/layer.py": "what pip prints, and the tags of a wheel",
    "local/__main__.py": "a docstring",
}
"""Text that is no JSON, where any end of a line will do, by file."""


def files(*folders: str) -> list[Path]:
    return sorted(each for folder in folders for each in (ROOT / folder).rglob("*.py"))


@cache
def called(path: Path) -> list[tuple[ast.Call, str]]:
    """The calls in a file, and what is called."""
    return [(each, ast.unparse(each.func)) for each in nodes_of(path) if isinstance(each, ast.Call)]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def reads_json(call: ast.Call, what: str) -> bool:
    """Whether a call reads JSON by other means than ours, or by those of a client."""
    if what in ("json.loads", "json.load", "json.JSONDecoder", "json.decoder.JSONDecoder"):
        return True
    return what.endswith(".json") and not call.args and not call.keywords and isinstance(call.func, ast.Attribute)


def test_json_is_read_in_one_module() -> None:
    """Given the code of the hub and the command line, then nothing else reads JSON."""
    found = {name(path) for path in files(*PRODUCT) for call, what in called(path) if reads_json(call, what)}
    assert found == READS_JSON.keys()


def writes_json(call: ast.Call, what: str) -> bool:
    """Whether a call writes JSON by other means than ours, or has a client write it."""
    if what in ("json.dumps", "json.dump", "json.JSONEncoder", "json.encoder.JSONEncoder", "dumps", "JSONEncoder"):
        return True
    return any(keyword.arg == "json" for keyword in call.keywords)


def test_json_is_written_in_one_module() -> None:
    """Given the code of the hub and the command line, then nothing else writes JSON: NaN, half a surrogate pair and a
    number as somebody wrote it have one way out.
    """
    found = {name(path) for path in files(*PRODUCT) for call, what in called(path) if writes_json(call, what)}
    assert found == WRITES_JSON.keys()


def test_lines_are_split_in_one_module() -> None:
    """Given all code, then nothing splits a text at whatever Unicode calls the end of a line, but what is listed."""
    found = {
        name(path) for path in files(*PRODUCT, *BESIDE) for _, what in called(path) if what.endswith(".splitlines")
    }
    assert found == SPLITS_LINES.keys()


NUMBERS = {
    "the hub's own, or AWS's: ids, counts, times and keys that it has written": {
        "cli/operators/doctor._asked_for",
        "cli/operators/doctor._dead_letters",
        "cli/operators/doctor._quota",
        "cli/operators/doctor._requests",
        "cli/operators/doctor._room",
        "cli/operators/former_keys.endings",
        "cli/archive/importing.Importing._in_time",
        "layers/pushhub/pushhub/base/ids.id_before",
        "layers/pushhub/pushhub/base/ids.time_of_message_id",
        "layers/pushhub/pushhub/cloud/clients.check_version",
        "layers/pushhub/pushhub/engine/flow/leases._time_of",
        "layers/pushhub/pushhub/engine/model/catalogue.merged",
        "layers/pushhub/pushhub/engine/model/delivery.opening",
        "layers/pushhub/pushhub/engine/model/flow.FlowKey.part",
        "layers/pushhub/pushhub/engine/model/work.WorkOrder.read",
        "layers/pushhub/pushhub/engine/model/work._message",
        "layers/pushhub/pushhub/engine/model/work._ordering",
        "layers/pushhub/pushhub/engine/records/rebuild.Rebuild._message",
        "layers/pushhub/pushhub/hub/model/object_ids.message_time",
        "layers/pushhub/pushhub/hub/model/object_ids.to_object_id",
        "layers/pushhub/pushhub/ironmq/finding/events.Events.run",
        "layers/pushhub/pushhub/ironmq/traces/span_export._spans",
        "layers/pushhub/pushhub/notifications/search.TopicFinder.found",
        "layers/pushhub/pushhub/runtime/engine.wake_due",
        "layers/pushhub/pushhub/scripting/child._pages",
        "layers/pushhub/pushhub/runtime/invocation.behind",
        "layers/pushhub/pushhub/runtime/mcp.Toolbox.attempt",
        "layers/pushhub/pushhub/runtime/mcp.Toolbox.why",
        "layers/pushhub/pushhub/runtime/notifications._waited_ms",
        "layers/pushhub/pushhub/runtime/sqs_batch._sent_at",
        "layers/pushhub/pushhub/runtime/sqs_batch.read_orders",
        "layers/pushhub/pushhub/webhooks/model/ids.message_id",
    },
    "a number already": {
        "layers/pushhub/pushhub/base/json_text._finite",
        "layers/pushhub/pushhub/base/json_text.write",
        "layers/pushhub/pushhub/base/oauth._lifetime_s",
        "layers/pushhub/pushhub/engine/model/activity.activity_of",
        "layers/pushhub/pushhub/hub/wire/fields.CheckedFields.whole",
        "layers/pushhub/pushhub/hub/wire/fields._number",
        "layers/pushhub/pushhub/webhooks/model/json_schema._Check._key",
    },
    "digits by a pattern, or one of a few texts, which it was compared with before": {
        "layers/pushhub/pushhub/ironmq/finding/events.Events._listed",
        "layers/pushhub/pushhub/ironmq/finding/search.Search._anywhere",
        "cli/durations.Duration.convert",
        "layers/pushhub/pushhub/egress/answer._Reader._chunks",
        "layers/pushhub/pushhub/egress/answer._Reader._plain_chunks",
        "layers/pushhub/pushhub/egress/answer._Reader._status_line",
        "layers/pushhub/pushhub/egress/answer._framing",
        "layers/pushhub/pushhub/egress/guard._parse_entry",
        "layers/pushhub/pushhub/egress/url._port",
        "layers/pushhub/pushhub/engine/model/trace.Trace.of",
        "layers/pushhub/pushhub/engine/model/trace.Trace.sampled",
        "layers/pushhub/pushhub/hub/model/object_ids.from_object_id",
        "layers/pushhub/pushhub/webhooks/model/payload_filter._found",
        "layers/pushhub/pushhub/webhooks/model/redaction._Rules.__init__",
        "layers/pushhub/pushhub/webhooks/wire/attempt.parse_status",
        "layers/pushhub/pushhub/webhooks/wire/attempt.parse_status_class",
        "layers/pushhub/pushhub/webhooks/wire/yaml._scalar",
    },
    "an operator's setting, whose refusal names it": {
        "layers/pushhub/pushhub/cloud/settings.number.read",
    },
    "the kernel's": {
        "layers/pushhub/pushhub/egress/socket.BoundedSocket._bytes_acknowledged",
    },
}
"""Functions that make a number of what might be a text, by whose it is."""


def may_be_text(argument: ast.expr) -> bool:
    """Whether what is made a number may be a text of somebody: not what is computed, a constant or the time."""
    if isinstance(argument, ast.Call):
        return ast.unparse(argument.func).rpartition(".")[2] not in ("time", "timestamp", "total_seconds", "len", "sum")
    if isinstance(argument, ast.Subscript) and isinstance(argument.slice, ast.Constant) and argument.slice.value == "N":
        # A number of DynamoDB
        return False
    return isinstance(argument, ast.Name | ast.Attribute | ast.Subscript | ast.IfExp | ast.BoolOp)


def makers(path: Path) -> Iterator[str]:
    def walk(node: ast.AST, inside: str) -> Iterator[str]:
        for each in ast.iter_child_nodes(node):
            if (
                isinstance(each, ast.Call)
                and isinstance(each.func, ast.Name)
                and each.func.id in ("int", "float")
                and each.args
                and may_be_text(each.args[0])
            ):
                yield inside
            named = isinstance(each, ast.FunctionDef | ast.ClassDef)
            yield from walk(each, f"{inside}.{each.name}" if named else inside)  # type: ignore[attr-defined]

    yield from walk(tree_of(path), name(path).removesuffix(".py"))


def test_numbers_in_strangers_texts_are_read_in_one_module() -> None:
    """Given the code of the hub and the command line, then nothing else makes a number of a text that may be a
    stranger's, but what is listed.
    """
    found = {
        each
        for path in files(*PRODUCT)
        if "store" not in path.parts and path.name != "numerals.py"
        for each in makers(path)
    }
    assert found == set().union(*NUMBERS.values())
