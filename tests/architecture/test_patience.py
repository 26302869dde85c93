"""What a test of a running stack waits for may take a minute, and no test asserts how quick something was: a busy
machine must not fail it (docs/decisions/proving.md).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.test_layers import ROOT, nodes_of
from tests.architecture.test_ratchets import python_files

LEAST_S = 60
"""The shortest time after which a test may give something up, seconds."""
AMPLE_S = 20
"""What ends at a deadline of its own, of a second or so, may take as long as this on a busy machine, seconds."""
FOLDERS = ("stack", "paths", "browser", "sam")
WAITS = {"until", "eventually", "wait_until", "wait_for"}
"""What is called with a condition and how many seconds it may take."""
GIVEN_SECONDS = {"wait", "wait_codes", "receive", "receive_distinct", "judged"}
"""What is told so by a keyword."""
PAGES = ("README.md", "docs/hub-protocol.md", "docs/ironmq.md", "docs/notifications.md", "docs/webhooks.md")
"""Pages with a block that a test types, besides the tutorials."""


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Every node of these tests, with where it is."""
    for folder in FOLDERS:
        for path in python_files(ROOT / "tests" / folder):
            for each in nodes_of(path):
                yield f"{path.relative_to(ROOT)}:{getattr(each, 'lineno', 0)}", each


def seconds_of(call: ast.Call) -> float | None:
    """After how many seconds a wait is given up, if that is written there."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    given = [each.value for each in call.keywords if each.arg == "seconds" and name in GIVEN_SECONDS]
    given += call.args[1:2] if name in WAITS else []
    for each in given:
        if isinstance(each, ast.Constant) and isinstance(each.value, int | float):
            return each.value
    return None


def test_nothing_is_given_up_within_a_minute() -> None:
    waits = [(where, seconds_of(each)) for where, each in nodes() if isinstance(each, ast.Call)]
    assert len([each for _, each in waits if each]) > 50
    assert [where for where, each in waits if each is not None and each < LEAST_S] == []


def is_elapsed(node: ast.AST) -> bool:
    """Whether this is how long something took until now."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and "monotonic()" in ast.unparse(node.left)


def quick(tree: ast.AST) -> Iterator[tuple[int, ast.expr]]:
    """Each bound that what something took is asserted to be below, with its line."""
    taken = {
        target.id
        for each in ast.walk(tree)
        if isinstance(each, ast.Assign) and is_elapsed(each.value)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    for test in (each.test for each in ast.walk(tree) if isinstance(each, ast.Assert)):
        for each in ast.walk(test):
            if isinstance(each, ast.Compare):
                sides = [each.left, *each.comparators]
                for left, order, right in zip(sides, each.ops, sides[1:], strict=False):
                    if isinstance(order, ast.Lt | ast.LtE) and (is_elapsed(left) or ast.unparse(left) in taken):
                        yield each.lineno, right


def test_nothing_has_to_be_quick() -> None:
    found = []
    for path in python_files(ROOT / "tests"):
        for line, bound in quick(ast.parse(path.read_text(encoding="utf-8"))):
            ample = isinstance(bound, ast.Constant) and isinstance(bound.value, int) and bound.value >= AMPLE_S
            if path.parent.name in FOLDERS or not (ample or "monotonic()" in ast.unparse(bound)):
                found.append(f"{path.relative_to(ROOT)}:{line}")
    assert found == []


def typed(page: Path) -> list[str]:
    """The lines of a page that are typed into a shell."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_what_is_typed_waits_for_what_it_shows() -> None:
    pages = [*(ROOT / each for each in PAGES), *(ROOT / "docs").glob("tutorial-*.md")]
    sleeping = [(page.name, line) for page in pages for line in typed(page) if re.search(r"\bsleep\b", line)]
    assert len(sleeping) > 10
    for page, line in sleeping:
        loop = re.match(r"for again in \$\(seq (\d+)\); do .*&& break", line)
        assert loop, f"{page}: {line}"
        assert int(loop[1]) >= LEAST_S, f"{page}: {line}"
