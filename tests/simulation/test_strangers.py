"""Changes that a seed draws: the same text has the same ones, each is another program, and a run notices or not."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from simulation.strangers.__main__ import candidates
from simulation.strangers.changes import places

ROOT = Path(__file__).parents[2]
HUB = sorted((ROOT / "layers" / "pushhub" / "pushhub").rglob("*.py"))

TEXT = """\
LIMIT: int = 3

def take(table, items, *, now):
    table.lock(now)
    table.put(items, ConditionExpression="x")
    logger.info("taken %s", 1)
    if now < 5 and items:
        return {"ConsistentRead": True}
    return 1 if now == 2 else None
"""

CHANGED = [
    ("constant", "LIMIT: int = 4"),
    ("dropped call", "pass"),
    ("swapped calls", "table.put(items, ConditionExpression='x')"),
    ("dropped call", "pass"),
    ("dropped argument", "table.put(items)"),
    ("condition", "if not (now < 5 and items):"),
    ("and, or", "if now < 5 or items:"),
    ("boundary", "if now <= 5 and items:"),
    ("constant", "if now < 6 and items:"),
    ("condition", "return 1 if not now == 2 else None"),
    ("constant", "return 2 if now == 2 else None"),
    ("comparison", "return 1 if now != 2 else None"),
    ("constant", "return 1 if now == 3 else None"),
    ("dropped argument", "return {}"),
]


def changed(text: str, number: int) -> tuple[str, str]:
    tree = ast.parse(text)
    place = places(tree)[number]
    place.make()
    return place.operator, ast.unparse(tree)


def test_each_operator_changes_what_it_says() -> None:
    # When every change of a text is made, each in the text as it was
    made = [changed(TEXT, number) for number in range(len(places(ast.parse(TEXT))))]
    # Then each of the operators was there, and nothing was done to log lines and types
    assert sorted(operator for operator, _ in made) == sorted(operator for operator, _ in CHANGED)
    lines = {(operator, line.strip()) for operator, text in made for line in text.splitlines()}
    assert set(CHANGED) <= lines
    assert all("logger.info('taken %s', 1)" in text for _, text in made)


@given(st.data())
def test_a_change_of_the_hub_is_another_program(data: st.DataObject) -> None:
    # Given any place in any module of the hub
    source = data.draw(st.sampled_from(HUB)).read_text(encoding="utf-8")
    found = len(places(ast.parse(source)))
    if not found:
        return
    number = data.draw(st.integers(0, found - 1))
    # When it is changed, then it is Python, says something else, and is the same whenever it is made
    _, text = changed(source, number)
    compile(text, "changed", "exec")
    assert text != ast.unparse(ast.parse(source))
    assert changed(source, number)[1] == text


def run(**what: Any) -> dict[str, Any]:
    made = subprocess.run(
        [sys.executable, "-m", "simulation.strangers", "--run", json.dumps(what)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "layers/pushhub:."},
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(made.stdout)
    return answer


def test_a_run_notices_a_change_and_knows_what_it_reaches() -> None:
    # Given a run of queues, which keeps its promises
    plan = {"plans": [{"world": "ironmq", "seed": 1, "hours": 0.1}]}
    calm = run(**plan)
    assert calm["rules"] == []
    # When messages are owed to nobody, by a statement that the run reaches
    reached = {tuple(each) for each in calm["reached"]}
    [change] = [
        each
        for each in candidates(["pushhub.ironmq.post"])
        if each.operator == "condition" and "queue.push.subscribers if queue.push" in each.told()
    ]
    assert (change.module, change.line) in reached
    # Then promises are broken
    assert run(**plan, module=change.module, number=change.number)["rules"] != []


def test_a_change_without_any_effect_is_known_by_its_digest() -> None:
    # Given a run, and a change of a module that it does not use
    plan = {"plans": [{"world": "tenants", "seed": 1, "hours": 0.1, "only": ["owners"]}]}
    calm = run(**plan)
    change = candidates(["pushhub.notifications.idle"])[0]
    # When it is made again, and with that change
    again, changed = run(**plan), run(**plan, module=change.module, number=change.number)
    # Then each call and each answer was the same
    assert calm["digests"] == again["digests"] == changed["digests"]
