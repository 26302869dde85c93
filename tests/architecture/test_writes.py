"""A write of a whole item, or its removal, has a condition, or a reason why nothing that others write meanwhile can be
lost by it: who reads, decides and writes without one undoes what came in between (docs/decisions/proving.md).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.test_layers import ROOT, tree_of
from tests.architecture.test_ratchets import python_files

FOLDERS = ("layers/pushhub/pushhub", "functions", "cli", "local")
WRITES = {"put", "put_many", "delete", "delete_many"}
"""Methods of :class:`pushhub.cloud.table.Table` that may be called without a condition."""

REASONS = {
    "It is new: its key is drawn at random, or made from what nobody else has.": (
        "engine/store/dynamodb_config.py put_project",
        "engine/store/dynamodb_config.py put_token",
        "engine/store/dynamodb_past.py put",
        "engine/store/dynamodb_subscribers.py add_to_backlog",
        "engine/store/dynamodb_subscribers.py set_aside",
        "engine/store/dynamodb_subscribers.py add",
        "ironmq/store/pull_places.py enter",
        "notifications/store/dynamodb_backlogs.py open",
        "notifications/store/dynamodb_subscriptions.py create",
        "webhooks/store/dynamodb_autoconfigs.py put_autoconfig",
        "webhooks/store/dynamodb_integrations.py put_integration",
        "webhooks/store/dynamodb_portal.py put_access",
    ),
    "Whoever writes it writes the same: the key says all, or what it is made of never changes.": (
        "engine/store/dynamodb_catalogue.py add",
        "engine/store/dynamodb_ends.py note_end",
        "engine/store/dynamodb_messages.py accept",
        "engine/store/dynamodb_schedule.py enter",
        "engine/store/dynamodb_search.py add",
        "engine/store/dynamodb_subscribers.py note_slow",
        "engine/store/dynamodb_subscribers.py wait_behind",
        "hub/store/dynamodb_settings.py note_type",
        "webhooks/store/dynamodb_logs.py note_late",
        "webhooks/store/dynamodb_logs.py log_attempts",
    ),
    "It is decided without what is stored: the later one holds.": (
        "engine/store/dynamodb_config.py put_span_export",
        "engine/store/dynamodb_config.py remove_span_export",
        "engine/store/dynamodb_pulses.py send",
        "engine/store/dynamodb_subscribers.py list_backlog",
        "engine/store/dynamodb_subscribers.py look_after",
        "hub/store/dynamodb_log.py note_open",
        "hub/store/dynamodb_settings.py put_parameter",
        "webhooks/store/dynamodb_places.py put_place",
        "webhooks/store/dynamodb_portal_frames.py put_frame",
    ),
    "What is removed shall be gone, whatever has become of it.": (
        "engine/store/dynamodb_config.py remove_token",
        "hub/store/dynamodb_schedulers.py delete_scheduler",
        "hub/store/dynamodb_settings.py delete_mapping",
        "hub/store/dynamodb_settings.py delete_integration",
        "ironmq/store/dynamodb_alerts.py remove",
        "notifications/store/dynamodb_backlogs.py close",
        "notifications/store/dynamodb_subscriptions.py delete",
        "webhooks/store/dynamodb_autoconfigs.py delete_autoconfig",
        "webhooks/store/dynamodb_connectors.py delete_connector",
        "webhooks/store/dynamodb_integrations.py delete_integration",
        "webhooks/store/dynamodb_portal.py remove_accesses",
        "webhooks/store/dynamodb_settings.py delete_event_type",
        "cli/archive/erasing.py finish",
    ),
    "What is removed is over, and nothing that is not over has that key.": (
        "engine/store/dynamodb_ends.py forget_end",
        "engine/store/dynamodb_search.py remove",
        "engine/store/dynamodb_subscribers.py remove",
        "engine/store/dynamodb_subscribers.py let_go",
        "ironmq/store/dynamodb_pull.py _tidy",
        "ironmq/store/pull_places.py leave",
        "ironmq/store/pull_places.py forget",
        "webhooks/store/dynamodb_tasks.py running_tasks",
    ),
    "One alone may: who has the lease of a backlog, or holds an idempotency key for longer than a request takes.": (
        "engine/store/dynamodb_subscribers.py remove_from_backlog",
        "webhooks/store/dynamodb_keys.py keep",
        "webhooks/store/dynamodb_keys.py release",
    ),
}


def unconditional() -> Iterator[tuple[str, int]]:
    """Each such write, by its file and function, with its line."""
    for folder in FOLDERS:
        for path in python_files(ROOT / folder):
            name = str(path.relative_to(ROOT)).removeprefix(f"{FOLDERS[0]}/")
            for where, call in calls(tree_of(path), ""):
                if is_write(call) and not any(each.arg in ("ConditionExpression", None) for each in call.keywords):
                    yield f"{name} {where}", call.lineno


def calls(tree: ast.AST, where: str) -> Iterator[tuple[str, ast.Call]]:
    """The calls below a node, with the functions that they are in."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.Call):
            yield where, child
        yield from calls(child, child.name if isinstance(child, ast.FunctionDef) else where)


def is_write(call: ast.Call) -> bool:
    """Whether this writes or removes a whole item of a table."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in WRITES:
        return False
    return "table" in ast.unparse(call.func.value).lower() or ast.unparse(call).startswith("each.put(_item(")


def test_who_writes_without_a_condition_says_why_nothing_is_lost() -> None:
    known = {each for places in REASONS.values() for each in places}
    found = dict(unconditional())
    assert {f"{each}:{line}" for each, line in found.items() if each not in known} == set()
    # And no reason is left of a write that is no longer there
    assert known - found.keys() == set()


def test_only_writes_of_tables_are_looked_at() -> None:
    source = "def save(item):\n    self._table.put(item)\n    self._cache.put(item)\n"
    assert [where for where, call in calls(ast.parse(source), "") if is_write(call)] == ["save"]
