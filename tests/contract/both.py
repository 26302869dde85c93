"""Fixtures of ports that are there twice: as the fake that other tests use, and as the store on DynamoDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.cloud import aws_services as aws
from tests.fakes import FakeClock


def both(fake: Callable[[], Any], store: Callable[..., Any], table: str) -> Any:
    """A fixture of both; the store is made of a client, its table, and the test's clock."""

    @pytest.fixture(params=["fake", "dynamodb"])
    def port(request: pytest.FixtureRequest, clock: FakeClock) -> Iterator[Any]:
        if request.param == "fake":
            yield fake()
            return
        with aws.dynamodb() as client:
            yield store(client, table, clock)

    return port
