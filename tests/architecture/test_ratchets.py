"""What may not come back: wide constructors, and private names of the emulator (docs/decisions/proving.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.test_layers import LAYER, ROOT, nodes_of

WIDEST = 8
"""Most parameters of a constructor."""

PRIVATE_NAMES = {
    "app._build_persistence_save_dict",
    "dynamodb._emit_stream_event",
    "dynamodb._parse_partiql",
    "dynamodb._partiql_insert",
    "dynamodb._stream_records",
    "dynamodb._stream_seq_counter",
    "dynamodb._stream_trimmed",
    "iam._policies",
    "iam._roles",
    "lambda_svc._apply_filter_criteria",
    "lambda_svc._dynamodb_stream_positions",
    "lambda_svc._poll_loop",
    "s3._persist_object",
    "sqs._collect_msgs",
}
"""The private names of MiniStack that ``local/`` uses."""


def python_files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*.py") if not any(part.startswith(".") for part in each.parts))


def wide_constructors() -> dict[str, int]:
    """Classes whose ``__init__`` takes more than :data:`WIDEST` parameters, with their number; a component's are its
    fields.
    """
    found: dict[str, int] = {}
    for path in python_files(LAYER):
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                fields = sum(isinstance(each, ast.AnnAssign) for each in node.body)
                if "Component" in {ast.unparse(each) for each in node.bases} and fields > WIDEST:
                    found[node.name] = fields
                for each in node.body:
                    if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                        width = len(each.args.args) - 1 + len(each.args.kwonlyargs)
                        if width > WIDEST:
                            found[node.name] = width
    return found


def test_no_constructor_becomes_wider() -> None:
    assert not wide_constructors()


def test_local_uses_no_more_private_names_of_the_emulator() -> None:
    found = {name for path in python_files(ROOT / "local") for name in _private_names(path)}
    assert found == PRIVATE_NAMES


def _private_names(path: Path) -> Iterator[str]:
    """Private attributes of MiniStack's modules and of what is imported from them, as ``module._name``."""
    nodes = nodes_of(path)
    known: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            known |= {each.asname or each.name.partition(".")[0] for each in node.names if "ministack" in each.name}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ministack"):
            known |= {each.asname or each.name for each in node.names}
            yield from (each.name for each in node.names if each.name.startswith("_"))
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            names = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
            if names & known:
                yield f"{ast.unparse(node.value)}.{node.attr}"
