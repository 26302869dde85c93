"""How many deliveries of a push queue wait: of very many, as many as can be counted in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import Intercepted
from tests.contract.samples import PROJECT, first, message
from tests.fakes import FakeClock
from tests.simulation import simulated_services

from pushhub.base.verdict import Verdict
from pushhub.engine.store.dynamodb_messages import COUNTS_MS, DynamoDBMessageStore


@pytest.mark.parametrize("what", ["slow", "throttled"])
def test_the_number_of_waiting_deliveries_is_what_could_be_counted(what: str) -> None:
    with simulated_services.dynamodb() as tables:
        client, clock, pages = Intercepted(tables), FakeClock(), 0

        def environment() -> DynamoDBMessageStore:
            return DynamoDBMessageStore(cast(DynamoDBClient, client), aws.MESSAGES_TABLE, clock, cast(Any, None))

        # Given a queue whose waiting deliveries come in many pages, slowly, or more than the table gives
        for _ in range(30):
            # Whoever sees several fail spreads them.
            environment().save(first(of := message(), Verdict.FAILED))

        def a_page(real: Callable[..., Any], parameters: dict[str, Any]) -> Any:
            nonlocal pages
            pages += 1
            clock.advance(ms=COUNTS_MS // 4 if what == "slow" else 0)
            if what == "throttled" and pages == 3:
                raise aws.client_error("ProvisionedThroughputExceededException")
            return real(**parameters | {"Limit": 5})

        for _ in range(30):
            client.next("query", a_page)
        # Then it tells what was counted by then
        assert environment().unsettled_counts(PROJECT, [of.queue_uid]) == [20 if what == "slow" else 10]
