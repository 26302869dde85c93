"""The rights on AWS that each operator's command needs: no more are in the policy of the stack's ``OperatorRole``.

Tests compare this table with every call that the commands make, with the policy in the template and with
docs/deploy.md, each in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

STACK = "Stack"
"""The stack itself."""
FUNCTIONS = "Functions"
"""Every function of the stack."""
ROLES = "FunctionRoles"
"""Every function's role."""
SET_ASIDE = "SetAside"
"""The queues of dead letters and of failures."""
READERS = "StreamReaders"
"""The mappings of streams to the functions that read them."""
KEYS = "Keys"
"""The keys that the stack seals with, and those that it sealed with before."""
OPERATORS = "OperatorRole"
"""The role that has these rights."""
API_ACCOUNT = "ApiAccount"
"""The settings of API Gateway for the account."""
ANY = "*"
"""What AWS gives no name to."""


@dataclass(frozen=True, order=True, slots=True)
class Right:
    """What may be done with what.

    Attributes:
        action: IAM's name of it.
        resource: A resource's name in the template, for objects and indexes with what is below it (``BodiesBucket/*``),
            or one of the names above.
    """

    action: str
    resource: str


def covers(have: Right, want: Right) -> bool:
    """Whether one right is enough for another."""
    return have.action == want.action and fnmatchcase(want.resource, have.resource)


def _rights(**services: dict[str, str]) -> tuple[Right, ...]:
    """Rights by service and resource; actions with spaces between them."""
    return tuple(
        Right(f"{service}:{action}", resource)
        for service, resources in services.items()
        for resource, actions in resources.items()
        for action in actions.split()
    )


_FINDS = _rights(cloudformation={STACK: "DescribeStacks"})
_KEEPS = _rights(s3={"RecordsBucket/audit/*": "PutObject"})
_CHANGES_PROJECT = _FINDS + _KEEPS + _rights(dynamodb={"ConfigTable": "GetItem PutItem"})
_HALTS_PROJECT = _CHANGES_PROJECT + _rights(dynamodb={"ConfigTable": "UpdateItem"})
_CLOSES_CONSUMERS = _rights(**{"lambda": {"NotifyFunction": "InvokeFunction"}})
_READS_RECORDS = _FINDS + _rights(s3={"RecordsBucket": "ListBucket", "RecordsBucket/records/*": "GetObject"})
_TABLES = (
    *("ConfigTable", "MessagesTable", "ScheduleTable", "PullTable"),
    *("HubTable", "WebhooksTable", "BacklogsTable"),
)

RIGHTS: dict[str, tuple[Right, ...]] = {
    "projects make": _FINDS + _KEEPS + _rights(dynamodb={"ConfigTable": "PutItem"}),
    "projects list": _FINDS + _rights(dynamodb={"ConfigTable": "Scan"}),
    "projects rename": _CHANGES_PROJECT,
    "projects allow": _CHANGES_PROJECT,
    "projects quota": _CHANGES_PROJECT,
    "projects traces": _CHANGES_PROJECT,
    "projects suspend": _HALTS_PROJECT + _CLOSES_CONSUMERS,
    "projects resume": _HALTS_PROJECT,
    "projects delete": _HALTS_PROJECT
    + _CLOSES_CONSUMERS
    + _rights(
        dynamodb={**dict.fromkeys(_TABLES, "Scan BatchWriteItem"), "ConfigTable": "Scan BatchWriteItem DeleteItem"},
        s3={
            "BodiesBucket": "ListBucketVersions",
            "BodiesBucket/*": "DeleteObject DeleteObjectVersion",
            "RecordsBucket": "ListBucket ListBucketVersions",
            "RecordsBucket/records/*": "GetObject PutObject DeleteObject DeleteObjectVersion",
            "RecordsBucket/curated/*": "GetObject DeleteObject DeleteObjectVersion",
            "RecordsBucket/quarantine/*": "DeleteObject DeleteObjectVersion",
            "RecordsBucket/work/*": "DeleteObject DeleteObjectVersion",
            "RecordsBucket/audit/*": "DeleteObject DeleteObjectVersion",
        },
    ),
    "projects export": _FINDS
    + _rights(
        dynamodb=dict.fromkeys(_TABLES, "Scan"),
        s3={
            "BodiesBucket": "ListBucket",
            "BodiesBucket/*": "GetObject",
            "RecordsBucket": "ListBucket",
            "RecordsBucket/records/*": "GetObject",
            "RecordsBucket/audit/*": "GetObject",
        },
        kms={KEYS: "Decrypt"},
    ),
    "projects import": _FINDS
    + _KEEPS
    + _rights(
        dynamodb={**dict.fromkeys(_TABLES, "BatchWriteItem"), "ConfigTable": "Scan GetItem PutItem BatchWriteItem"},
        s3={"BodiesBucket/*": "PutObject", "RecordsBucket/records/*": "PutObject"},
        kms={KEYS: "Decrypt GenerateDataKey"},
    ),
    "tokens make": _CHANGES_PROJECT,
    "tokens list": _FINDS + _rights(dynamodb={"ConfigTable": "GetItem Query"}),
    "tokens revoke": _FINDS + _KEEPS + _rights(dynamodb={"ConfigTable": "GetItem Query DeleteItem"}),
    "tokens rotate": _CHANGES_PROJECT + _rights(dynamodb={"ConfigTable": "Query"}),
    "audit": _FINDS + _rights(s3={"RecordsBucket": "ListBucket", "RecordsBucket/audit/*": "GetObject"}),
    "tail": _READS_RECORDS,
    "report": _FINDS
    + _KEEPS
    + _rights(
        glue={"ReportJob": "StartJobRun GetJobRun"},
        s3={"RecordsBucket": "ListBucket", "RecordsBucket/reports/*": "GetObject"},
    ),
    "rebuild": _READS_RECORDS
    + _KEEPS
    + _rights(
        dynamodb={"ConfigTable": "GetItem", "MessagesTable": "BatchGetItem PutItem", "ScheduleTable": "PutItem"},
        s3={"BodiesBucket": "ListBucket", "BodiesBucket/bodies/*": "GetObject"},
    ),
    "reseal": _FINDS
    + _KEEPS
    + _rights(
        dynamodb={
            "ConfigTable": "Scan GetItem PutItem",
            "HubTable": "Scan PutItem UpdateItem",
            "WebhooksTable": "Scan PutItem",
        },
        s3={
            "BodiesBucket": "ListBucket GetEncryptionConfiguration",
            "BodiesBucket/hub/*": "GetObject PutObject",
            "RecordsBucket": "ListBucket GetEncryptionConfiguration",
            "RecordsBucket/settled/*": "GetObject PutObject",
            "RecordsBucket/jobs/*": "GetObject",
        },
        kms={KEYS: "Decrypt GenerateDataKey"},
    ),
    "signing-secret rotate": _FINDS
    + _KEEPS
    + _rights(dynamodb={"ConfigTable": "GetItem PutItem"}, kms={KEYS: "GenerateDataKey"}),
    "deploy doctor": _FINDS
    + _rights(
        **{"lambda": {ANY: "GetAccountSettings", FUNCTIONS: "GetFunctionConfiguration"}},
        iam={ROLES: "GetRole", OPERATORS: "SimulatePrincipalPolicy"},
        apigateway={API_ACCOUNT: "GET"},
        dynamodb={
            ANY: "DescribeLimits",
            "ConfigTable": "Scan GetItem",
            "HubTable": "Scan",
            "WebhooksTable": "Scan",
        },
        cloudwatch={ANY: "DescribeAlarms"},
        sns={"AlarmTopic": "ListSubscriptionsByTopic"},
        sqs={SET_ASIDE: "GetQueueAttributes"},
        glue={"ReportJob": "GetJob"},
        s3={
            "BodiesBucket": "ListBucket",
            "BodiesBucket/hub/*": "GetObject",
            "RecordsBucket": "ListBucket",
            "RecordsBucket/settled/*": "GetObject",
            "RecordsBucket/jobs/*": "GetObject",
        },
        kms={KEYS: "Decrypt"},
        servicequotas={
            ANY: "GetServiceQuota GetAWSDefaultServiceQuota ListRequestedServiceQuotaChangeHistoryByQuota",
        },
    ),
    "deploy table": _FINDS
    + _KEEPS
    + _rights(
        dynamodb=dict.fromkeys(
            _TABLES, "CreateTable DescribeTable UpdateTable DescribeContinuousBackups UpdateContinuousBackups"
        ),
    )
    + _rights(
        dynamodb=dict.fromkeys(_TABLES[1:], "DescribeTimeToLive UpdateTimeToLive"),
        **{
            "lambda": {
                ANY: "ListEventSourceMappings",
                READERS: "CreateEventSourceMapping DeleteEventSourceMapping",
            }
        },
    ),
}
"""By command. Commands that are not here do not talk to AWS."""


def documented() -> str:
    """The table as docs/deploy.md shows it, without what every command needs, or each that is in the audit trail."""
    lines = ["| commands | rights, by what they are on |", "|---|---|"]
    alike: dict[str, list[str]] = {}
    for command, rights in RIGHTS.items():
        own = [each for each in rights if each not in _FINDS + _KEEPS]
        alike.setdefault("; ".join(_by_resource(own)) or "none", []).append(f"`{command}`")
    lines += [f"| {', '.join(commands)} | {rights} |" for rights, commands in alike.items()]
    kept = ", ".join(f"`{command}`" for command, rights in RIGHTS.items() if not set(_KEEPS) <= set(rights))
    lines += ["", f"Without a right on the audit trail's objects: {kept}."]
    return "\n".join(lines) + "\n"


def _by_resource(rights: Sequence[Right]) -> list[str]:
    """What may be done with what; resources with which the same may be done stand together."""
    actions: dict[tuple[str, str], dict[str, None]] = {}
    for right in rights:
        service, _, action = right.action.partition(":")
        actions.setdefault((right.resource, service), {})[action] = None
    alike: dict[str, list[str]] = {}
    for (resource, service), named in actions.items():
        alike.setdefault(f"`{service}:{', '.join(named)}`", []).append(resource)
    return [f"{', '.join(resources)}: {each}" for each, resources in alike.items()]
