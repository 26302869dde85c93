"""Stores with more parameters than a partition of the table gives in a second: each service is asked all the same."""

from __future__ import annotations

from typing import cast

from mypy_boto3_dynamodb import DynamoDBClient
from tests.cloud import aws_services as aws
from tests.cloud.aws_services import Intercepted
from tests.contract.samples import NOW, PROJECT
from tests.fakes import FakeClock
from tests.fakes.credentials import credentials
from tests.simulation import simulated_services

from pushhub.hub.model.parameters import DataType, Parameter
from pushhub.hub.store.dynamodb_settings import DynamoDBHubSettings


def test_of_a_store_s_parameters_a_request_reads_one_page_and_its_own() -> None:
    with simulated_services.dynamodb() as client:
        calls = Intercepted(client)
        settings = DynamoDBHubSettings(cast(DynamoDBClient, calls), aws.HUB_TABLE, FakeClock(), credentials())
        # Given what a few answers have set, 200 parameters of 32 KiB at most each
        for number in range(100):
            settings.set_parameter(
                Parameter(project=PROJECT, name=f"p{number}", value=32_768 * "x", data_type=DataType.STRING, as_of=NOW)
            )
        ids = [each.parameter_id for each in settings.parameters(PROJECT)][:5]
        calls.calls.clear()
        # When the parameters of some services are read
        assert len(settings.parameters_of(PROJECT, ids)) == 5
        # Then few of the others are
        assert calls.count("query") == 1
        assert calls.count("get_item") <= 5
        # And nothing at all for a service that has none
        calls.calls.clear()
        assert settings.parameters_of(PROJECT, []) == []
        assert calls.calls == []
