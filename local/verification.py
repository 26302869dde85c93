"""Whether what CloudFormation says it made is really there: the emulator has been seen to say so and drop it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from local.aws import Aws

_API = "AWS::ApiGatewayV2::Api"
_OF_AN_API = {
    "AWS::ApiGatewayV2::Route": "get_routes",
    "AWS::ApiGatewayV2::Integration": "get_integrations",
    "AWS::ApiGatewayV2::Stage": "get_stages",
}
_WORKS: dict[str, Callable[[Aws, str], object]] = {
    "AWS::Lambda::Function": lambda aws, name: (
        aws.functions().get_function(FunctionName=name)["Configuration"].get("State") == "Active"
    ),
    "AWS::Lambda::EventSourceMapping": lambda aws, uuid: (
        aws.functions().get_event_source_mapping(UUID=uuid)["State"] == "Enabled"
    ),
    "AWS::DynamoDB::Table": lambda aws, name: (
        aws.dynamodb().describe_table(TableName=name)["Table"]["TableStatus"] == "ACTIVE"
    ),
    "AWS::SQS::Queue": lambda aws, url: (
        aws.sqs().get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"]).get("Attributes")
    ),
    "AWS::S3::Bucket": lambda aws, name: aws.s3().head_bucket(Bucket=name),
    "AWS::Scheduler::Schedule": lambda aws, name: aws.scheduler().get_schedule(Name=name)["State"] == "ENABLED",
    "AWS::Logs::LogGroup": lambda aws, name: (
        name in [each["logGroupName"] for each in aws.logs().describe_log_groups(logGroupNamePrefix=name)["logGroups"]]
    ),
    "AWS::CloudWatch::Alarm": lambda aws, name: aws.cloudwatch().describe_alarms(AlarmNames=[name])["MetricAlarms"],
}
"""Whether the resource of this type with this physical id exists and works. It does not, if the call is refused."""


def missing(aws: Aws, stack: str, resources: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What a stack should contain but does not.

    Args:
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
        works = _WORKS.get(resource["Type"])
        try:
            broken = works and not works(aws, made[name].get("PhysicalResourceId", ""))
        except ClientError:
            broken = True
        if broken:
            problems.append(f"{name} ({resource['Type']}) does not exist or is not active")
    apis = {name: made[name]["PhysicalResourceId"] for name in made if resources[name]["Type"] == _API}
    problems += [problem for name, api in apis.items() for problem in _missing_of_api(aws, name, str(api), resources)]
    return problems


def _missing_of_api(aws: Aws, name: str, api: str, resources: Mapping[str, Mapping[str, Any]]) -> list[str]:
    client = aws.apigatewayv2()
    found = {kind: len(getattr(client, call)(ApiId=api)["Items"]) for kind, call in _OF_AN_API.items()}
    wanted = Counter(
        resource["Type"]
        for resource in resources.values()
        if resource.get("Properties", {}).get("ApiId") == {"Ref": name}
    )
    return [f"{name} has {count} of {wanted[kind]} {kind}" for kind, count in found.items() if count < wanted[kind]]
