"""What the caller may not do on a stack: each operator's command's rights, asked of IAM without using them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from .deployment import ROLE_OUTPUT, Deployment
from .doctor import DEAD_LETTERS, Check
from .restoring import READERS as READER_OUTPUTS
from .rights import ANY, API_ACCOUNT, FUNCTIONS, KEYS, OPERATORS, READERS, RIGHTS, ROLES, SET_ASIDE, STACK, Right

UNDER_CONDITIONS = (Right("s3:PutObject", "RecordsBucket/audit/*"),)
"""What the operators' policy grants under a condition on the request, beside what it grants on :data:`READERS`."""
BELOW = "x"
"""The rest of a key or of an index for which a right with a wildcard is asked."""


def rights_checks(hub: Deployment) -> Iterator[Check]:
    """A line for each command that lacks a right, or one line if none does, or if IAM may not be asked."""
    try:
        caller = hub.client("sts").get_caller_identity()["Arn"]
        if caller.endswith(":root"):
            yield Check("rights", "skipped", "IAM does not simulate the rights of the account's root user")
            return
        whose = _policies_of(hub, caller)
        refused = _refused(hub, whose, _places(hub, whose))
    except (BotoCoreError, ClientError) as error:
        reason = error.response["Error"]["Code"] if isinstance(error, ClientError) else str(error)
        yield Check(
            "rights",
            "skipped",
            f"IAM cannot be asked what the caller may do ({reason}): that needs iam:SimulatePrincipalPolicy on it; "
            "docs/deploy.md lists the rights of each command",
        )
        return
    # A role made by the stack has them all; somebody of another's making may have been given only some, on purpose.
    state = "wrong" if whose == hub.outputs.get(ROLE_OUTPUT) else "warning"
    lacking = False
    for command, rights in RIGHTS.items():
        missing = [f"{each.action} on {each.resource}" for each in rights if each in refused]
        if missing:
            lacking = True
            yield Check(f"rights: {command}", state, f"{whose} lacks {', '.join(missing)}")
    if not lacking:
        yield Check("rights", "ok", f"{whose} may use every command")


def _policies_of(hub: Deployment, caller: str) -> str:
    """The user or role whose policies a caller has."""
    head, _, rest = caller.partition(":assumed-role/")
    if not rest:
        return caller
    name = rest.partition("/")[0]
    ours = hub.outputs.get(ROLE_OUTPUT, "")
    if ours.endswith(f"/{name}"):
        return ours
    try:
        # Its path is not in the caller's ARN.
        return str(hub.client("iam").get_role(RoleName=name)["Role"]["Arn"])
    except ClientError:
        return f"{head.replace(':sts:', ':iam:')}:role/{name}"


def _places(hub: Deployment, whose: str) -> dict[str, list[str]]:
    """ARNs by the names in the table of rights; what the stack has no output for is left out."""
    partition, account = whose.split(":")[1], whose.split(":")[4]
    region, outputs = hub.session.region_name, hub.outputs

    def arn(service: str, rest: str, *, where: str = f"{region}:{account}") -> str:
        return f"arn:{partition}:{service}:{where}:{rest}"

    def named(ends: str) -> dict[str, str]:
        return {key: value for key, value in outputs.items() if key.endswith(ends)}

    functions = {key: arn("lambda", f"function:{value}") for key, value in named("FunctionName").items()}
    (stack,) = hub.client("cloudformation").describe_stacks(StackName=hub.name)["Stacks"]
    places = {
        STACK: [stack["StackId"]],
        FUNCTIONS: [*functions.values()],
        ROLES: _roles(hub, named("FunctionName").values()),
        SET_ASIDE: [arn("sqs", url.rpartition("/")[2]) for key, url in outputs.items() if key.endswith(DEAD_LETTERS)],
        READERS: [ANY],
        API_ACCOUNT: [arn("apigateway", "/account", where=f"{region}:")],
        OPERATORS: [whose],
        ANY: [ANY],
        **{key.removesuffix("Name"): [value] for key, value in functions.items()},
        **{key.removesuffix("Name"): [arn("dynamodb", f"table/{value}")] for key, value in named("TableName").items()},
        **{key.removesuffix("Name"): [arn("s3", value, where=":")] for key, value in named("BucketName").items()},
    }
    given = {KEYS: "VaultKeyArn", "AlarmTopic": "AlarmTopicArn"}
    places |= {name: [outputs[output]] for name, output in given.items() if output in outputs}
    if "ReportJobName" in outputs:
        places["ReportJob"] = [arn("glue", f"job/{outputs['ReportJobName']}")]
    return places


def _roles(hub: Deployment, functions: Iterable[str]) -> list[str]:
    client = hub.client("lambda")
    return sorted({client.get_function_configuration(FunctionName=each)["Role"] for each in functions})


def _refused(hub: Deployment, whose: str, places: Mapping[str, list[str]]) -> set[Right]:
    """The rights that the caller does not have everywhere where they are needed."""
    pages = hub.client("iam").get_paginator("simulate_principal_policy")
    # Conditions of the policy: whose mappings may be changed, and that no entry of the audit trail is overwritten.
    reader = places.get(READER_OUTPUTS[0].removesuffix("Name"), [""])[0]
    given = {"lambda:FunctionArn": reader, "s3:if-none-match": "*"}
    context = [
        {"ContextKeyName": name, "ContextKeyValues": [value], "ContextKeyType": "string"}
        for name, value in given.items()
    ]
    # An emulator is not told the context of a request, so that what is granted under a condition never is.
    real = ".amazonaws.com" in str(hub.client("iam").meta.endpoint_url)
    actions: dict[str, set[str]] = {}
    for right in {each for rights in RIGHTS.values() for each in rights}:
        actions.setdefault(right.resource, set()).add(right.action)
    refused: set[Right] = set()
    for resource, wanted in sorted(actions.items()):
        base, _, below = resource.partition("/")
        arns = [f"{each}/{below.replace('*', BELOW)}" if below else each for each in places.get(base, ())]
        if not arns:
            continue
        names = sorted(each for each in wanted if real or not _under_conditions(Right(each, resource)))
        if not names:
            continue
        asked: dict[str, Any] = {"PolicySourceArn": whose, "ActionNames": names, "ResourceArns": arns}
        for page in pages.paginate(**asked, ContextEntries=context):
            for result in page["EvaluationResults"]:
                organization = result.get("OrganizationsDecisionDetail", {})
                if result["EvalDecision"] != "allowed" or not organization.get("AllowedByOrganizations", True):
                    refused.add(Right(result["EvalActionName"], resource))
    return refused


def _under_conditions(right: Right) -> bool:
    return right.resource == READERS or right in UNDER_CONDITIONS
