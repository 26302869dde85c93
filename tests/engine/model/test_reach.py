"""Who may have messages sent where: each cell, and that no kind of subscriber is without a scope."""

from __future__ import annotations

import inspect
from itertools import product

import pytest

from pushhub.engine.model.reach import Reach, Scope, may_reach
from pushhub.engine.target import TargetOffer


@pytest.mark.parametrize(("reach", "scope"), list(product(Reach, Scope)))
def test_a_portal_reaches_nothing_of_the_project_and_the_others_reach_everything(reach: Reach, scope: Scope) -> None:
    outside = reach is Reach.PORTAL and scope in {Scope.PROJECT, Scope.ELSEWHERE}
    assert may_reach(reach, scope) is not outside


def test_a_kind_of_subscriber_cannot_be_offered_without_its_scope() -> None:
    assert inspect.signature(TargetOffer).parameters["scope"].default is inspect.Parameter.empty
    with pytest.raises(TypeError, match="scope"):
        TargetOffer(("sqs",), lambda: None)  # type: ignore[arg-type,return-value,call-arg]
