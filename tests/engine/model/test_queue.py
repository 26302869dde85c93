"""What a queue's name says about the dialect of its subscribers."""

from __future__ import annotations

import pytest

from pushhub.engine.model.queue import dialect_of


@pytest.mark.parametrize(
    ("name", "dialect"), [("orders", "raw"), ("hub/x", "hub"), ("hub/x/y", "hub"), ("webhooks/app", "webhooks")]
)
def test_subscribers_of_internal_queues_are_sent_what_their_protocol_sends(name: str, dialect: str) -> None:
    assert dialect_of(name) == dialect
