"""Whether what CloudFormation says it made is really there: the emulator has been seen to say so and drop it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from local.aws import Aws

__all__ = ["missing"]

Check = Callable[[Aws, str], bool]
"""Whether the resource with this physical id exists and works."""


def missing(aws: Aws, stack: str, resources: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What a stack should contain but does not.

    Args:
        aws: Clients of the emulator.
        stack: Its name.
        resources: Resources of the template it was made from, by logical id, without those whose condition is false.

    Returns:
        One text for each thing missing; empty when all is there.
    """
    described = aws.cloudformation().describe_stack_resources(StackName=stack)["StackResources"]
    made = {resource["LogicalResourceId"]: resource for resource in described}
    problems = []
    for name, resource in resources.items():
        if name not in made:
            # A condition decides in CloudFormation; without one there is no reason to be absent.
            if "Condition" not in resource:
                problems.append(f"{name} was not made")
            continue
        check = _CHECKS.get(resource["Type"])
        if check and not _holds(check, aws, made[name].get("PhysicalResourceId", "")):
            problems.append(f"{name} ({resource['Type']}) does not exist or is not active")
    apis = {name: made[name]["PhysicalResourceId"] for name in made if resources[name]["Type"] == _API}
    problems += [problem for name, api in apis.items() for problem in _missing_of_api(aws, name, str(api), resources)]
    return problems


_API = "AWS::ApiGatewayV2::Api"


def _holds(check: Check, aws: Aws, physical_id: str) -> bool:
    try:
        return check(aws, physical_id)
    except ClientError:
        return False


def _missing_of_api(aws: Aws, name: str, api: str, resources: Mapping[str, Mapping[str, Any]]) -> list[str]:
    client = aws.apigatewayv2()
    found = {
        "AWS::ApiGatewayV2::Route": len(client.get_routes(ApiId=api)["Items"]),
        "AWS::ApiGatewayV2::Integration": len(client.get_integrations(ApiId=api)["Items"]),
        "AWS::ApiGatewayV2::Stage": len(client.get_stages(ApiId=api)["Items"]),
    }
    wanted = Counter(
        resource["Type"]
        for resource in resources.values()
        if resource.get("Properties", {}).get("ApiId") == {"Ref": name}
    )
    return [
        f"{name} has {count} of {wanted[kind]} {kind}" for kind, count in found.items() if count < wanted.get(kind, 0)
    ]


def _function(aws: Aws, name: str) -> bool:
    return aws.functions().get_function(FunctionName=name)["Configuration"].get("State") == "Active"


def _mapping(aws: Aws, uuid: str) -> bool:
    return aws.functions().get_event_source_mapping(UUID=uuid)["State"] == "Enabled"


def _table(aws: Aws, name: str) -> bool:
    return aws.dynamodb().describe_table(TableName=name)["Table"]["TableStatus"] == "ACTIVE"


def _queue(aws: Aws, url: str) -> bool:
    return bool(aws.sqs().get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"])


def _bucket(aws: Aws, name: str) -> bool:
    return aws.s3().head_bucket(Bucket=name)["ResponseMetadata"]["HTTPStatusCode"] == 200


def _schedule(aws: Aws, name: str) -> bool:
    return aws.scheduler().get_schedule(Name=name)["State"] == "ENABLED"


def _log_group(aws: Aws, name: str) -> bool:
    groups = aws.logs().describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    return any(group["logGroupName"] == name for group in groups)


def _alarm(aws: Aws, name: str) -> bool:
    return bool(aws.cloudwatch().describe_alarms(AlarmNames=[name])["MetricAlarms"])


_CHECKS: dict[str, Check] = {
    "AWS::Lambda::Function": _function,
    "AWS::Lambda::EventSourceMapping": _mapping,
    "AWS::DynamoDB::Table": _table,
    "AWS::SQS::Queue": _queue,
    "AWS::S3::Bucket": _bucket,
    "AWS::Scheduler::Schedule": _schedule,
    "AWS::Logs::LogGroup": _log_group,
    "AWS::CloudWatch::Alarm": _alarm,
}
