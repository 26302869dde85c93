"""Each action that a run may ask for is known to its hands."""

from __future__ import annotations

import ast
from pathlib import Path

from pushhub.engine.flow import push
from pushhub.engine.model import actions


def test_there_is_a_hand_for_every_action() -> None:
    # Given the kinds of action there are, and those that the hands look up
    kinds = {
        name
        for name, each in vars(actions).items()
        if isinstance(each, type) and issubclass(each, actions.Action) and each is not actions.Action
    }
    tables = [
        node.value
        for node in ast.walk(ast.parse(Path(push.__file__).read_text()))
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "self._do"
    ]
    [table] = tables
    assert isinstance(table, ast.Dict)
    # Then they are the same: a run that asks for anything else would end there
    assert {key.id for key in table.keys if isinstance(key, ast.Name)} == kinds
