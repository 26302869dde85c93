"""Changes that a seed draws: the same text has the same ones, each is another program, and a run notices or not."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulation.strangers.__main__ import candidates, main
from simulation.strangers.changes import places
from simulation.strangers.forked import Forks
from simulation.strangers.notice import SUITES, noticed_by
from simulation.strangers.tables import share
from simulation.strangers.written import written
from tests.simulation.commands import python

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
    created = [changed(TEXT, number) for number in range(len(places(ast.parse(TEXT))))]
    # Then each of the operators was there, and nothing was done to log lines and types
    assert sorted(operator for operator, _ in created) == sorted(operator for operator, _ in CHANGED)
    lines = {(operator, line.strip()) for operator, text in created for line in text.splitlines()}
    assert set(CHANGED) <= lines
    assert all("logger.info('taken %s', 1)" in text for _, text in created)


@settings(max_examples=25)
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


PLANS = [{"world": "gates", "seed": 1, "hours": 0.1, "talk": False}]


def run(**what: Any) -> dict[str, Any]:
    finished = python("-m", "simulation.strangers", "--run", json.dumps(what))
    assert finished.returncode == 0, finished.stderr
    answer: dict[str, Any] = json.loads(finished.stdout)
    return answer


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    """A process that makes runs with changes."""
    with Forks() as forks:
        yield forks


@pytest.fixture(scope="module")
def calm() -> dict[str, Any]:
    """A run of a queue, which keeps its promises."""
    found = run(plans=PLANS)
    assert found["rules"] == []
    return found


def test_a_run_notices_a_change_and_knows_what_it_reaches(calm: dict[str, Any], forks: Forks) -> None:
    # When orders are void that are not, by a statement that the run reaches
    reached = {(module, line) for module, line, _ in calm["reached"]}
    [change] = [
        each
        for each in candidates(["pushhub.engine.model.ledger"])
        if each.operator == "condition" and each.sentence().startswith("if received.is_void(")
    ]
    assert (change.module, change.line) in reached
    # Then promises are broken
    reported = forks.run({"plans": PLANS, "module": change.module, "number": change.number})
    assert reported is not None
    assert json.loads(reported[1])["rules"] != [], reported


WRITTEN = """\
no order is void
--- a/layers/pushhub/pushhub/engine/model/ledger.py
+++ b/layers/pushhub/pushhub/engine/model/ledger.py
@@ -1,3 +1,3 @@
-{before}
+{after}
"""


def test_a_change_that_somebody_wrote_is_tried_where_it_is_reached(calm: dict[str, Any], tmp_path: Path) -> None:
    # Given a statement that a run reaches, changed by a diff
    [before] = [
        line
        for line in (ROOT / "layers/pushhub/pushhub/engine/model/ledger.py").read_text().splitlines()
        if line.strip().startswith("if received.is_void(")
    ]
    file = tmp_path / "never-void.diff"
    file.write_text(WRITTEN.format(before=before, after=before.replace("if ", "if not ", 1)))
    # When it is read
    [change] = written(tmp_path)
    # Then it is known which statement and function it changes
    reached = {(module, line) for module, line, _ in calm["reached"]}
    assert len(change.lines) == 1
    assert change.lines <= reached
    assert {each.partition(":")[0] for each in change.places} == {"pushhub.engine.model.ledger"}
    assert (change.name, change.package, change.sentence()) == ("never-void", "engine", "no order is void")
    # And it breaks promises
    assert run(plans=PLANS, **change.what)["rules"] != []


def test_a_change_of_a_long_statement_is_shown_with_what_is_around_it() -> None:
    # Given what describes all routes of an API, which is one statement
    changes = [each for each in candidates(["pushhub.webhooks.api.description"]) if each.of_module]
    sentence = changes[-1].sentence()
    # Then a change of it is a line that can be read
    before, after = sentence.split(" -> ")
    assert before != after
    assert len(sentence) < 400


def test_a_change_without_any_effect_is_known_by_its_digest(calm: dict[str, Any], forks: Forks) -> None:
    # Given a change of a module that the run does not use
    used = {module for module, _, _ in calm["reached"]}
    change = next(each for each in candidates(["pushhub."]) if not each.of_module and each.module not in used)
    # When it is made again with that change, in a process of its own and in a fork
    alone = run(plans=PLANS, module=change.module, number=change.number)
    forked = forks.run({"plans": PLANS, "module": change.module, "number": change.number})
    # Then each call and each answer was the same
    assert forked is not None
    assert calm["digests"] == alone["digests"] == json.loads(forked[1])["digests"]
    assert calm["digests"] != []


def test_what_a_module_states_needs_a_process_of_its_own(forks: Forks) -> None:
    change = next(each for each in candidates(["pushhub.engine"]) if each.of_module)
    assert forks.run({"plans": [], "module": change.module, "number": change.number}) is None


def test_the_command_draws_from_any_package_and_says_which_suite_noticed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a rule, whose tests alone are asked, as what each test of its package reaches takes long to learn
    monkeypatch.setitem(SUITES, "base", ("base/test_nesting.py",))
    # When two of its changes are drawn by a seed, and only tests are asked
    arguments = ["--of", "pushhub.base.nesting", "--suites", "tests", "--most", "2", "--seed", "5", "--processes", "1"]
    main(arguments)
    # Then each is named, with the test that noticed it
    shown = [line.split() for line in capsys.readouterr().out.splitlines() if "pushhub.base.nesting#" in line]
    assert len(shown) == 2
    noticed = [line for line in shown if line[0] == "tests"]
    assert noticed
    assert all("tests/base/" in line[-1] for line in noticed)
    # And where no test reaches a change, none is named
    change = next(each for each in candidates(["pushhub.base.nesting"]) if each.operator == "condition")
    assert noticed_by(replace(change, line=10**6)) is None
    # And the command line is a package like any other
    assert {each.package for each in candidates(["pushhub.", "cli."])} >= {"cli", "base", "web", "runtime", "engine"}


def test_a_share_tells_how_sure_it_is() -> None:
    # The interval of Wilson for 14 of 17, and of nothing
    assert share(14, 17) == "14 of 17, 82% (59% to 94%)"
    assert share(0, 0) == "of none"
