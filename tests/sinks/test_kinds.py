"""The kinds of subscribers on AWS."""

from __future__ import annotations

from pushhub.base.sink_url import AWS_SCHEMES
from pushhub.sinks.kinds import KINDS


def test_each_kind_is_the_one_of_its_scheme() -> None:
    assert [each.scheme for each in KINDS] == [each.load().scheme for each in KINDS] == [*AWS_SCHEMES]
