"""Clients of the emulator's AWS services."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypedDict, TypeVar

import boto3
from botocore.config import Config

from local.place import REGION

if TYPE_CHECKING:
    from mypy_boto3_apigatewayv2 import ApiGatewayV2Client
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_scheduler import EventBridgeSchedulerClient
    from mypy_boto3_sqs import SQSClient

Client = TypeVar("Client")


class ClientArguments(TypedDict):
    """Keyword arguments of ``boto3.client`` that reach the emulator."""

    endpoint_url: str
    region_name: str
    aws_access_key_id: str
    aws_secret_access_key: str


def _once(make: Callable[[Aws], Client]) -> Callable[[Aws], Client]:
    """One client of each kind for an emulator: making it takes longer than most calls."""
    return cache(make)


@dataclass(frozen=True, slots=True)
class Aws:
    """Makes clients that talk to one emulator and to nothing else, whatever the caller's AWS configuration says."""

    endpoint_url: str

    @property
    def arguments(self) -> ClientArguments:
        """The arguments that every client needs."""
        return {
            "endpoint_url": self.endpoint_url,
            "region_name": REGION,
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
        }

    @property
    def _config(self) -> Config:
        return Config(
            connect_timeout=5, read_timeout=60, retries={"total_max_attempts": 2}, s3={"addressing_style": "path"}
        )

    @_once
    def apigatewayv2(self) -> ApiGatewayV2Client:
        return boto3.client("apigatewayv2", config=self._config, **self.arguments)

    @_once
    def cloudformation(self) -> CloudFormationClient:
        return boto3.client("cloudformation", config=self._config, **self.arguments)

    @_once
    def cloudwatch(self) -> CloudWatchClient:
        return boto3.client("cloudwatch", config=self._config, **self.arguments)

    @_once
    def dynamodb(self) -> DynamoDBClient:
        return boto3.client("dynamodb", config=self._config, **self.arguments)

    @_once
    def dynamodb_streams(self) -> DynamoDBStreamsClient:
        return boto3.client("dynamodbstreams", config=self._config, **self.arguments)

    @_once
    def functions(self) -> LambdaClient:
        return boto3.client("lambda", config=self._config, **self.arguments)

    @_once
    def logs(self) -> CloudWatchLogsClient:
        return boto3.client("logs", config=self._config, **self.arguments)

    @_once
    def s3(self) -> S3Client:
        return boto3.client("s3", config=self._config, **self.arguments)

    @_once
    def scheduler(self) -> EventBridgeSchedulerClient:
        return boto3.client("scheduler", config=self._config, **self.arguments)

    @_once
    def sqs(self) -> SQSClient:
        return boto3.client("sqs", config=self._config, **self.arguments)
