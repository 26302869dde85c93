"""What an environment of the simulator knows: rules excuse a sender for what it cannot have read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from simulation.functions import Environment

from pushhub.engine.model.keys import DeliveryKey
from pushhub.engine.store._keys import delivery_key


@pytest.mark.parametrize("queue_uid", ["u", "~app_1"])
@pytest.mark.parametrize("operation", ["get_item", "batch_get_item"])
def test_it_remembers_when_it_read_a_delivery_wherever_that_lies(operation: str, queue_uid: str) -> None:
    # Given an environment that reads a delivery, also one of a queue whose messages are listed
    environment: Any = Environment.__new__(Environment)
    environment.account, environment.reads = SimpleNamespace(scheduler=SimpleNamespace(now=7)), {}
    key = delivery_key(DeliveryKey("p", queue_uid, "1910849223729873408", "s"))
    parameters = {"Key": key} if operation == "get_item" else {"RequestItems": {"MessagesTable": {"Keys": [key]}}}
    environment._read(operation, parameters)
    # Then it is known when, and of others nothing is
    assert environment.read_of("1910849223729873408", "s") == 7
    assert environment.read_of("1910849223729873408", "other") == 0
