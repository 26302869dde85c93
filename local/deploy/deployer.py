"""Deploys the real template to the emulator, as ``sam deploy`` does to AWS, and checks that it is really there."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from local.aws import Aws
from local.deploy import template
from local.deploy.packages import Package, build_function, build_layer, forget_old
from local.errors import LocalError, Say
from local.place import Place
from local.processes import wait_until
from pushhub.egress.guard import AllowedTargets

STACK = "pushhub"
"""Name of the CloudFormation stack."""
DEPLOY_SECONDS = 120.0
SETTLE_SECONDS = 15.0
WEBSOCKET_API = "feed0002"
"""Id of the WebSocket API, which the emulator reads from its tag in the template."""
_ARTIFACTS = "pushhub-artifacts"

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


def parameters(place: Place) -> dict[str, str]:
    """The template's parameters on one machine; all others keep their defaults."""
    # Subscribers on this machine, but not the emulator, whatever address leads to it: it would let a tenant write into
    # every table. On AWS nothing behind the egress guard is allowed.
    emulator = (f"!0.0.0.0/0:{place.aws_port}", f"![::/0]:{place.aws_port}")
    allowed = ("127.0.0.0/8", "::1/128", *emulator, *place.allowed_targets)
    try:
        AllowedTargets.parse(allowed)
    except ValueError as error:
        raise LocalError(f"PUSHHUB_ALLOWED_TARGETS: {error}") from error
    return {
        "PublicBaseUrl": place.base_url,
        # Who looks at the log of a machine of their own wants every attempt in it.
        "AttemptEvents": "all",
        "AllowedTargets": ",".join(allowed),
        # There is no Athena.
        "PastSearch": "objects",
        # Each run is a process of 40 MB.
        "PushMaximumConcurrency": "4",
        # Each request that waits holds a process, and starting one takes a core for a second.
        "LongPolls": "4",
        "LogRetentionDays": "1",
        **place.parameters,
    }


def settings(place: Place) -> dict[str, str]:
    """Settings of functions that are others than on AWS, and that no operator chooses there."""
    return {
        "REFUSED_TARGET_HINT": "; to allow it on this machine: PUSHHUB_ALLOWED_TARGETS=<host or network> make up",
        # The emulator has its WebSocket APIs at addresses of its own; consumers connect by way of the front door.
        "WEBSOCKET_MANAGEMENT_URL": f"{place.aws_endpoint_url}/_aws/execute-api/{WEBSOCKET_API}/live",
        "WEBSOCKET_URL": "",
        # The emulator's name for the API ends in an address, which is no host name.
        "OWN_ADDRESSES": place.base_url,
    }


def _with_settings(source: dict[str, Any], own: Mapping[str, str]) -> None:
    for resource in source["Resources"].values():
        variables = resource.get("Properties", {}).get("Environment", {}).get("Variables", {})
        variables |= {name: value for name, value in own.items() if name in variables}


def deploy(place: Place, aws: Aws, say: Say) -> bool:
    """Update the stack in the emulator to the present template and code.

    Returns:
        Whether anything had to be changed.

    Raises:
        LocalError: The template or the code cannot be deployed; the text contains the emulator's reason.
    """
    try:
        return _deploy(place, aws, say)
    except (BotoCoreError, ClientError) as error:
        raise LocalError(f"the deployment failed: {error}") from error


def _deploy(place: Place, aws: Aws, say: Say) -> bool:
    source = template.load(place.template)
    stacks = template.nested(source, place.template.parent)
    files = _files(stacks)
    _with_settings(source, settings(place))
    packages = _packages(place, source)
    code = {name: (_ARTIFACTS, package.key) for name, package in packages.items()}
    urls = {name: f"{aws.endpoint_url}/{_ARTIFACTS}/{key}" for name, (key, _) in files.items()}
    transformed = template.transform(source, code, urls)
    body = json.dumps(transformed, sort_keys=True)
    given = parameters(place)
    digest = hashlib.sha256((body + json.dumps(given, sort_keys=True)).encode()).hexdigest()
    expected = {"": transformed["Resources"], **{name: each["Resources"] for name, each in stacks.items()}}

    record = place.state / "deployed"
    status = _status(aws)
    known = record.read_text().strip() if record.exists() else ""
    if status in {"CREATE_COMPLETE", "UPDATE_COMPLETE"} and known == digest:
        _verify(aws, expected)
        return False
    say(f"deploying {sum(map(len, expected.values())) - len(stacks)} resources ...")
    record.unlink(missing_ok=True)
    # What a former role did not grant, the new one may.
    (place.rights / "refused").unlink(missing_ok=True)
    templates = {"template.json": body, **dict(files.values())}
    _upload(aws, packages, templates)
    _apply(aws, given, status)
    _verify(aws, expected)
    record.write_text(digest + "\n")
    _forget_old(aws, {*templates, *(package.key for package in packages.values())})
    forget_old(place.builds)
    return True


def _packages(place: Place, source: dict[str, Any]) -> dict[str, Package]:
    packages = {}
    for name, (kind, folder) in template.code_folders(source).items():
        path = (place.template.parent / folder).resolve()
        build = build_layer if kind == "AWS::Serverless::LayerVersion" else build_function
        packages[name] = build(path, place.builds, place.emulator_python)
    return packages


def _files(stacks: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Key and text of the template of each nested stack. Another text has another key, or nothing would be updated."""
    texts = {name: json.dumps(each, sort_keys=True) for name, each in stacks.items()}
    return {name: (f"{hashlib.sha256(text.encode()).hexdigest()}.json", text) for name, text in texts.items()}


def _upload(aws: Aws, packages: dict[str, Package], templates: Mapping[str, str]) -> None:
    s3 = aws.s3()
    # Objects are on disk at once, the rest of the state at a clean stop: the bucket may be older than the stack.
    if _ARTIFACTS not in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}:
        s3.create_bucket(Bucket=_ARTIFACTS)
    present = _uploaded(aws)
    for key, path in {package.key: package.path for package in packages.values()}.items():
        if key not in present:
            s3.put_object(Bucket=_ARTIFACTS, Key=key, Body=path.read_bytes())
    for key, text in templates.items():
        s3.put_object(Bucket=_ARTIFACTS, Key=key, Body=text.encode())


def _uploaded(aws: Aws) -> set[str]:
    return {entry["Key"] for entry in aws.s3().list_objects_v2(Bucket=_ARTIFACTS).get("Contents", [])}


def _forget_old(aws: Aws, deployed: set[str]) -> None:
    """Remove uploads that are no longer deployed; functions and layers keep their own copies."""
    for key in _uploaded(aws) - deployed:
        aws.s3().delete_object(Bucket=_ARTIFACTS, Key=key)


def _status(aws: Aws) -> str:
    """Status of the stack; empty if there is none."""
    try:
        return aws.cloudformation().describe_stacks(StackName=STACK)["Stacks"][0]["StackStatus"]
    except ClientError as error:
        if "does not exist" in str(error):
            return ""
        raise


def _apply(aws: Aws, given: dict[str, str], status: str) -> None:
    client = aws.cloudformation()
    request: dict[str, Any] = {
        "StackName": STACK,
        "TemplateURL": f"{aws.endpoint_url}/{_ARTIFACTS}/template.json",
        "Capabilities": ["CAPABILITY_IAM"],
        "Parameters": [{"ParameterKey": name, "ParameterValue": value} for name, value in given.items()],
    }
    if status in {"ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED"}:
        # A stack whose creation failed can only be removed; it holds nothing yet.
        client.delete_stack(StackName=STACK)
        wait_until(lambda: _status(aws) in {"", "DELETE_COMPLETE"}, 30)
        status = ""
    since = next((str(each["EventId"]) for each in _events(aws)), "") if status else ""
    try:
        if status in {"", "DELETE_COMPLETE"}:
            client.create_stack(**request)
        else:
            client.update_stack(**request)
    except ClientError as error:
        if "No updates are to be performed" in str(error):
            return
        raise
    if not wait_until(lambda: not _status(aws).endswith("_IN_PROGRESS"), DEPLOY_SECONDS):
        raise LocalError(f"the deployment did not end within {DEPLOY_SECONDS:.0f} s")
    status = _status(aws)
    if status not in {"CREATE_COMPLETE", "UPDATE_COMPLETE"}:
        raise LocalError(f"the deployment failed ({status}): {_first_failure(aws, since)}")


def _events(aws: Aws) -> list[dict[str, Any]]:
    """What CloudFormation did, newest first."""
    return [dict(event) for event in aws.cloudformation().describe_stack_events(StackName=STACK)["StackEvents"]]


def _first_failure(aws: Aws, since: str) -> str:
    """What failed first in this deployment."""
    first = "no reason was given"
    for event in itertools.takewhile(lambda each: each["EventId"] != since, _events(aws)):
        if event["ResourceStatus"].endswith("_FAILED"):
            reason = event.get("ResourceStatusReason", "no reason was given")
            first = f"{event['LogicalResourceId']} ({event['ResourceType']}): {reason}"
    return first


def _verify(aws: Aws, expected: Mapping[str, Mapping[str, Any]]) -> None:
    absent: list[str] = []

    def complete() -> bool:
        absent[:] = missing(aws, STACK, expected[""], expected)
        return not absent

    # A function that was just updated is not active for a moment.
    if not wait_until(complete, SETTLE_SECONDS, pause=0.2):
        raise LocalError(f"the deployment is not complete: {'; '.join(absent)}; 'make clean' starts anew")


def missing(
    aws: Aws, stack: str, resources: Mapping[str, Mapping[str, Any]], inner: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """What a stack should contain but does not.

    Args:
        resources: Resources of the template it was made from, by logical id.
        inner: The same of its nested stacks, by the logical id of the stack.

    Returns:
        One text for each thing missing; empty when all is there.
    """
    listed = aws.cloudformation().describe_stack_resources(StackName=stack)["StackResources"]
    described = {each["LogicalResourceId"]: each for each in listed}
    problems = []
    for name, resource in resources.items():
        if name not in described:
            # A condition decides in CloudFormation; without one there is no reason to be absent.
            if "Condition" not in resource:
                problems.append(f"{name} was not made")
            continue
        if name in inner:
            problems += missing(aws, str(described[name].get("PhysicalResourceId", "")), inner[name], {})
            continue
        works = _WORKS.get(resource["Type"])
        try:
            broken = works and not works(aws, described[name].get("PhysicalResourceId", ""))
        except ClientError:
            broken = True
        if broken and not _read_anew(aws, resource, described):
            problems.append(f"{name} ({resource['Type']}) does not exist or is not active")
    apis = {name: described[name]["PhysicalResourceId"] for name in described if resources[name]["Type"] == _API}
    problems += [problem for name, api in apis.items() for problem in _missing_of_api(aws, name, str(api), resources)]
    return problems


def _read_anew(aws: Aws, resource: Mapping[str, Any], described: Mapping[str, Any]) -> bool:
    """Whether a function reads a stream by another mapping than the one that was deployed: that of a table that was
    restored (docs/operations.md, "If a table is lost").
    """
    match resource.get("Properties"):
        case {"EventSourceArn": {"Fn::GetAtt": [table, "StreamArn"]}, "FunctionName": {"Ref": name}}:
            function = described[name]["PhysicalResourceId"]
            part = f":table/{described[table]['PhysicalResourceId']}/stream/"
            mappings = aws.functions().list_event_source_mappings(FunctionName=function)["EventSourceMappings"]
            return any(part in each.get("EventSourceArn", "") and each["State"] == "Enabled" for each in mappings)
        case _:
            return False


def _missing_of_api(aws: Aws, name: str, api: str, resources: Mapping[str, Mapping[str, Any]]) -> list[str]:
    client = aws.apigatewayv2()
    found = {kind: len(getattr(client, call)(ApiId=api)["Items"]) for kind, call in _OF_AN_API.items()}
    wanted = Counter(
        resource["Type"]
        for resource in resources.values()
        if resource.get("Properties", {}).get("ApiId") == {"Ref": name}
    )
    return [f"{name} has {count} of {wanted[kind]} {kind}" for kind, count in found.items() if count < wanted[kind]]


def deployed_on(aws: Aws) -> int | None:
    """The port of the emulator that the deployed queues have in their addresses; None when nothing is deployed."""
    if _status(aws) in {"", "DELETE_COMPLETE"}:
        return None
    urls = [value for name, value in outputs(aws).items() if name.endswith("QueueUrl")]
    return urlsplit(urls[0]).port if urls else None


def outputs(aws: Aws) -> dict[str, str]:
    """The outputs of the deployed stack."""
    stack = aws.cloudformation().describe_stacks(StackName=STACK)["Stacks"][0]
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
