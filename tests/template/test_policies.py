"""Least privilege: exact actions on exact resources; each wildcard is named here with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from local.iam.policies import Context, Need
from simulation.roles import PLACE, roles
from tests.template.cloudformation import (
    Resource,
    deployed,
    of_type,
    own_mappings,
    references,
    resolved,
    resources,
    walk,
)

ROLES = of_type("AWS::IAM::Role")

WILDCARDS = {
    "arn:${AWS::Partition}:cloudformation:*:*:stack/${AWS::StackName}/*": "the stack, also with another id",
    "${BodiesBucket.Arn}/bodies/*": "each object has a key of its own",
    "${BodiesBucket.Arn}/webhooks/*": "each object has a key of its own",
    "${BodiesBucket.Arn}/hub/*": "each object has a key of its own",
    "${RecordsBucket.Arn}/audit/project=*": "as for audit; not those of operators",
    "${RecordsBucket.Arn}/audit/*": "each entry has a key of its own",
    "${RecordsBucket.Arn}/records/*": "each object has a key of its own",
    "${RecordsBucket.Arn}/records/erased/*": "a note for each day",
    "${RecordsBucket.Arn}/records/dt=*": (
        "each object has a key of its own; quarantined ones, which may hold bodies, are not among them"
    ),
    "*": "what operators ask: these actions take no resource",
    "${BodiesBucket.Arn}/*": "whoever erases a project erases its folder in each",
    "${RecordsBucket.Arn}/curated/*": "as for curated",
    "${RecordsBucket.Arn}/curated/open/*": "a state for each day",
    "${RecordsBucket.Arn}/curated*": (
        "each object has a key of its own, and Spark leaves marks beside the folder (curated_$folder$)"
    ),
    "${RecordsBucket.Arn}/quarantine/*": "as for curated",
    "${RecordsBucket.Arn}/quarantine*": "as for curated",
    "${RecordsBucket.Arn}/reports*": "as for curated",
    "${RecordsBucket.Arn}/work/*": "as for curated",
    "${RecordsBucket.Arn}/work*": "as for curated",
    "${RecordsBucket.Arn}/reports/*": "a report has its days in its name",
    "${RecordsBucket.Arn}/searches/*": "Athena names what it writes by the query",
    "${RecordsBucket.Arn}/jobs/*": "the script and the libraries, put there by make report-upload",
    "${RecordsBucket.Arn}/settled/*": "a person names the files",
    "${MessagesTable.Arn}/stream/*": "a table that is restored has another stream, and its readers read on",
    "${PullTable.Arn}/stream/*": "a table that is restored has another stream, and its readers read on",
    "${BacklogsTable.Arn}/stream/*": "a table that is restored has another stream, and its readers read on",
    "arn:${AWS::Partition}:iam::*:role/*": "owners name roles of their own accounts",
    "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/*": "denied: no owner names a role of the hub's account",
    "arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${WebSocketApi}/live/*": (
        "each connection has an id of its own; send, look and close are methods"
    ),
}


OPERATORS = "OperatorRole"
"""Assumed by persons; tests/operating/test_rights.py compares its rights with what their commands call."""
GIVEN_BY_OPERATORS = {"KmsKeyArn", "OldKmsKeyArns", "LogsKeyArn", "ConsumedQueueArn", "ConsumedEventsArn"}
"""Resources that are not the stack's, each named by a parameter."""
OF_OPERATORS = [
    {"lambda:ListEventSourceMappings"},
    # On the functions that read streams only, by a condition
    {"lambda:CreateEventSourceMapping", "lambda:DeleteEventSourceMapping"},
]
"""What takes no resource of what operators do."""
WHERE = {"AWS::StackName", "AWS::Partition", "AWS::Region", "AWS::AccountId"}


def statements(role: Resource) -> Iterator[dict[str, Any]]:
    for policy in role.get("Policies", []):
        with_keys = {
            "HasKmsKey": True,
            "HasOwnRoles": False,
            "HasOldKmsKeys": True,
            "SearchesWithAthena": True,
            "HasLogsKey": True,
            "KeepsAudit": True,
            "ConsumesQueue": True,
            "ConsumesEvents": True,
        }
        yield from resolved(policy["PolicyDocument"], **with_keys)["Statement"]


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


ASSUMING = "arn:${AWS::Partition}:iam::*:role/*"
"""Roles of others, which owners name for their subscribers: nobody knows them here."""
OWN_ROLES = "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/*"
"""What is denied of it."""


@pytest.mark.parametrize("name", ROLES)
def test_a_role_allows_exact_actions_only(name: str) -> None:
    for statement in statements(ROLES[name]):
        denied = statement["Effect"] == "Deny" and statement["Resource"] == {"Fn::Sub": OWN_ROLES}
        assert statement["Effect"] == "Allow" or denied
        for action in listed(statement["Action"]):
            assert "*" not in action


@pytest.mark.parametrize("name", ROLES)
def test_a_role_names_resources_of_this_stack_only(name: str) -> None:
    for statement in statements(ROLES[name]):
        for resource in listed(statement["Resource"]):
            assert references(resource) - WHERE <= {*resources(), *GIVEN_BY_OPERATORS}
            text = resource.get("Fn::Sub", "") if isinstance(resource, dict) else resource
            # An account has one catalog, which Glue asks about beside each table in it.
            known = text.endswith("}:catalog") or (resource == "*" and set(statement["Action"]) in OF_OPERATORS)
            known = known or (text in (ASSUMING, OWN_ROLES) and statement["Action"] == ["sts:AssumeRole"])
            known = known or text.endswith(
                (":stack/${AWS::StackName}/*", ":${AWS::Region}::/account", ":event-bus/default")
            )
            assert references(resource) - WHERE or known, f"{resource} names nothing"
            assert "*" not in text or text in WILDCARDS


OF_SAM = {
    "AWSLambdaBasicExecutionRole": {"logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"},
    "AWSLambdaVPCAccessExecutionRole": {"logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents", "ec2:*"},
    "AWSLambdaSQSQueueExecutionRole": {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"},
    "AWSLambdaDynamoDBExecutionRole": {
        *("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"),
    },
}
"""What AWS's managed policies that SAM gives roles allow on everything that is in the account. (ListStreams, which the
last one has too, lists names.)"""
OF_KEYS = {"Fn::If": ["HasKeys", {"Ref": "FunctionKeysPolicy"}, {"Ref": "AWS::NoValue"}]}
OF_LOGS = {"Fn::If": ["HasLogsKey", {"Ref": "LogsKeyPolicy"}, {"Ref": "AWS::NoValue"}]}


def test_what_runs_strangers_code_has_no_rights() -> None:
    # Given the role of the function that runs transformations, then it may write its log, within the boundary
    role = ROLES["TransformFunctionRole"]
    assert "Policies" not in role
    basic, of_logs = role["ManagedPolicyArns"]
    assert basic.endswith("/AWSLambdaBasicExecutionRole")
    assert of_logs == OF_LOGS


def test_what_sam_gives_roles_beyond_their_policies_is_bounded_to_the_stack() -> None:
    # Given the policies of AWS that roles have
    attached = [
        each for role in ROLES.values() for each in role.get("ManagedPolicyArns", ()) if each not in (OF_KEYS, OF_LOGS)
    ]
    given = {each.rpartition("/")[2] for each in attached}
    assert given == OF_SAM.keys()
    # Then each role that has one has the boundary
    for role in ROLES.values():
        if "ManagedPolicyArns" in role:
            assert role["PermissionsBoundary"] == {"Ref": "FunctionBoundary"}
    # Which allows what policies do, but denies all of that outside of the stack
    boundary = resources()["FunctionBoundary"]["Properties"]["PolicyDocument"]["Statement"]
    consuming = resolved(boundary, HasEgress=False, ConsumesQueue=True, ConsumesEvents=True)[1]["NotResource"]
    allows, *denies = resolved(boundary, HasEgress=False, ConsumesQueue=False, ConsumesEvents=False)
    assert allows == {"Effect": "Allow", "Action": "*", "Resource": "*"}
    assert {each["Effect"] for each in denies} == {"Deny"}
    assert {action for each in denies for action in each["Action"]} == set().union(*OF_SAM.values())
    queues, streams, logs, interfaces = denies
    assert references(queues["NotResource"]) == {*of_type("AWS::SQS::Queue")}
    assert references(consuming) - references(queues["NotResource"]) == {"ConsumedQueueArn", "ConsumedEventsArn"}
    tables = {name for name, each in of_type("AWS::DynamoDB::Table").items() if "StreamSpecification" in each}
    assert {each["Fn::Sub"] for each in streams["NotResource"]} == {f"${{{each}.Arn}}/stream/*" for each in tables}
    assert logs["NotResource"]["Fn::Sub"].endswith(":log-group:/aws/lambda/${AWS::StackName}-*")
    assert interfaces["Resource"] == "*"


@pytest.mark.parametrize("name", ROLES)
def test_a_role_belongs_to_one_resource(name: str) -> None:
    # A function's rights to itself are in a separate policy: in its role, the two would refer to each other.
    users = [
        user
        for user, each in resources().items()
        if user not in (name, OPERATORS)
        and each["Type"] not in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
        and name in references(each.get("Properties"))
    ]
    assert len(users) == (0 if name == OPERATORS else 1)


def test_wake_may_run_itself_and_nothing_else() -> None:
    policies = {name: each for name, each in resources().items() if each["Type"] == "AWS::IAM::Policy"}
    assert list(policies) == ["WakeRunsPolicy"]
    properties = policies["WakeRunsPolicy"]["Properties"]
    assert properties["Roles"] == [{"Ref": "WakeFunctionRole"}]
    [statement] = properties["PolicyDocument"]["Statement"]
    assert statement["Action"] == ["lambda:InvokeFunction"]
    assert statement["Resource"] == {"Fn::GetAtt": ["WakeFunction", "Arn"]}


STREAM_RIGHTS = {
    *("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"),
}


@pytest.mark.parametrize("name", [*own_mappings()])
def test_who_reads_a_stream_may_read_any_stream_of_that_table(name: str) -> None:
    mapping = own_mappings()[name]
    source, attribute = mapping["EventSourceArn"]["Fn::GetAtt"]
    if attribute != "StreamArn":
        return
    function = of_type("AWS::Lambda::Function")[mapping["FunctionName"]["Ref"]]
    role = ROLES[function["Role"]["Fn::GetAtt"][0]]
    allowed = {
        action
        for statement in statements(role)
        for action in listed(statement["Action"])
        if {"Fn::Sub": f"${{{source}.Arn}}/stream/*"} in listed(statement["Resource"])
    }
    assert allowed == STREAM_RIGHTS


def test_no_role_names_a_stream_by_its_time_of_birth() -> None:
    # A table that is lost and restored gets another stream, under the same name of the table
    named = [each for role in ROLES.values() for each in walk(role) if isinstance(each, dict) and "Fn::GetAtt" in each]
    assert not [each for each in named if "StreamArn" in str(each)]


def test_each_named_wildcard_is_needed() -> None:
    used = {
        resource["Fn::Sub"] if isinstance(resource, dict) else resource
        for role in ROLES.values()
        for statement in statements(role)
        for resource in listed(statement["Resource"])
        if isinstance(resource, str) or "Fn::Sub" in resource
    }
    assert set(WILDCARDS) <= used


@pytest.mark.parametrize("name", of_type("AWS::Lambda::Function"))
def test_a_functions_log_is_one_that_its_boundary_lets_it_write(name: str) -> None:
    group = of_type("AWS::Lambda::Function")[name]["LoggingConfig"]["LogGroup"]["Ref"]
    written = of_type("AWS::Logs::LogGroup")[group]["LogGroupName"]["Fn::Sub"]
    assert written == f"/aws/lambda/${{AWS::StackName}}-{name.removesuffix('Function').lower()}"


def test_the_environment_of_a_function_names_only_what_its_role_may_use() -> None:
    # The addresses of the APIs are not secret.
    public = {"HttpApi", "WebSocketApi", "IngestUrl", *WHERE}
    for function in of_type("AWS::Lambda::Function").values():
        role = ROLES[function["Role"]["Fn::GetAtt"][0]]
        given = references(function["Environment"]) & set(resources())
        assert given - public <= references(role)


@pytest.mark.parametrize("name", of_type("AWS::S3::BucketPolicy"))
def test_a_bucket_policy_only_denies_what_is_not_encrypted_on_its_way(name: str) -> None:
    (statement,) = of_type("AWS::S3::BucketPolicy")[name]["PolicyDocument"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert len(statement["Resource"]) == 2


def test_the_stacks_key_is_for_its_account_and_the_alarms_only() -> None:
    owner, alarms = of_type("AWS::KMS::Key")["WebhooksKey"]["KeyPolicy"]["Statement"]
    # A key without its account's root cannot be managed by anyone. In a key policy, "*" is the key itself.
    assert owner["Principal"]["AWS"]["Fn::Sub"].endswith(":root")
    assert alarms["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]
    assert alarms["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert "aws:SourceAccount" in alarms["Condition"]["StringEquals"]


THEIRS = "arn:aws:iam::111122223333:role/theirs"
OURS = f"arn:aws:iam::{PLACE.account}:role"


@pytest.mark.parametrize(("named", "open_"), [("", set()), (f"{OURS}/open,{OURS}/other", {f"{OURS}/open"})])
def test_who_delivers_assumes_roles_of_others_and_of_this_account_those_that_are_named(
    named: str, open_: set[str]
) -> None:
    # Given a stack whose operator opens some roles of its account, or none
    may_assume = {
        name: {
            role
            for role in (THEIRS, f"{OURS}/open", f"{OURS}/closed")
            if each.policies.granting(Need("sts:AssumeRole", role, {"aws:resourceaccount": role.split(":")[4]}))
        }
        for name, each in roles(OwnRoles=named).items()
    }
    # Then only the functions that deliver may assume any role, and of this account those alone
    found = {name: each for name, each in may_assume.items() if each}
    assert found == dict.fromkeys(("push", "poll"), {THEIRS} | open_)


VAULTS = {"control", "push", "poll"}
"""The functions that seal and open."""
OPENERS = VAULTS | {"ingest"}
"""Those that open: ingest verifies what comes to sources."""
OF_SIGNING = {"consumers", "notify"}
"""The functions that open what consumers' tokens are signed with, and nothing else."""

KEYS = [f"arn:aws:kms:us-east-1:123456789012:key/{each}" for each in ("present", "former", "logs")]
PRESENT, FORMER, LOGS = KEYS
OF_STACK = PLACE.key("WebhooksKey")


def may(key: str, action: str = "kms:Decrypt", *, context: Context, **parameters: str) -> set[str]:
    """The functions that may do something with a key, in a stack with these parameters."""
    need = Need(action, key, context)
    return {name for name, role in roles(**parameters).items() if role.policies.granting(need)}


def sealed(project: str) -> Context:
    return {"kms:encryptioncontext:project": project}


def by_a_service(service: str) -> Context:
    """What KMS is told when a service encrypts at rest for a caller."""
    return {"kms:viaservice": f"{service}.us-east-1.amazonaws.com", f"kms:encryptioncontext:aws:{service}:arn": "arn"}


@pytest.mark.parametrize(
    ("parameters", "seals", "opens"),
    [
        ({}, OF_STACK, [OF_STACK]),
        ({"KmsKeyArn": PRESENT}, PRESENT, [PRESENT, OF_STACK]),
        ({"KmsKeyArn": PRESENT, "OldKmsKeyArns": FORMER}, PRESENT, [PRESENT, FORMER, OF_STACK]),
        ({"OldKmsKeyArns": FORMER}, OF_STACK, [OF_STACK, FORMER]),
        # Where one key is for everything, also
        ({"KmsKeyArn": PRESENT, "LogsKeyArn": PRESENT}, PRESENT, [PRESENT, OF_STACK]),
    ],
)
def test_only_who_needs_it_opens_what_is_sealed_whichever_key_seals(
    parameters: dict[str, str], seals: str, opens: list[str]
) -> None:
    for key in (*KEYS, OF_STACK):
        assert may(key, "kms:GenerateDataKey", context=sealed("1"), **parameters) == (VAULTS if key == seals else set())
        assert may(key, context=sealed("1"), **parameters) == (OPENERS if key in opens else set()), key
        assert may(key, context=sealed("#signing"), **parameters) == (OPENERS | OF_SIGNING if key in opens else set())
        # What a service asks for in the name of a function is no way around it.
        for service in ("dynamodb", "s3", "sqs"):
            given = {**by_a_service(service), **sealed("1")}
            assert may(key, context=given, **parameters) <= OPENERS


def test_what_is_encrypted_at_rest_is_read_through_its_service_with_the_present_key_and_with_former_ones() -> None:
    # What runs strangers' code reads nothing.
    everybody = {*roles()} - {"transform"}
    for key, actions in ((PRESENT, ("kms:Decrypt", "kms:GenerateDataKey")), (FORMER, ("kms:Decrypt",))):
        for action in actions:
            given = {"KmsKeyArn": PRESENT, "OldKmsKeyArns": FORMER}
            for service in ("dynamodb", "s3", "sqs"):
                found = may(key, action, context=by_a_service(service), **given)
                # The console reads a table and nothing else.
                assert found == (
                    everybody if (service, action) == ("dynamodb", "kms:Decrypt") else everybody - {"console"}
                )
            # And nobody decrypts it past the service.
            assert may(key, action, context={"kms:encryptioncontext:aws:sqs:arn": "arn"}, **given) == set()


def test_the_stacks_own_key_stays_when_another_one_seals() -> None:
    key = deployed(KmsKeyArn="arn:aws:kms:eu-west-1:123456789012:key/1")["WebhooksKey"]
    assert (key["DeletionPolicy"], key["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


def test_only_these_apis_and_schedules_may_call_functions() -> None:
    resources = deployed().values()
    permissions = [each["Properties"] for each in resources if each["Type"] == "AWS::Lambda::Permission"]
    callers = {each["FunctionName"]["Ref"]: references(each["SourceArn"]) - WHERE for each in permissions}
    assert callers == {
        "IngestFunction": {"HttpApi"},
        "ControlFunction": {"HttpApi"},
        "ConsoleFunction": {"HttpApi"},
        "PastFunction": {"HttpApi"},
        "ConsumersFunction": {"WebSocketApi"},
        "SweepFunction": {"ReportRunsFailed"},
    }
    for each in permissions:
        by_rule = each["FunctionName"] == {"Ref": "SweepFunction"}
        assert each["Principal"] == ("events.amazonaws.com" if by_rule else "apigateway.amazonaws.com")


def test_nothing_allows_everyone_but_the_producers_url_on_request() -> None:
    open_to_all = {
        name
        for name, resource in resources().items()
        for each in walk(resource.get("Properties"))
        if isinstance(each, dict) and each.get("Principal") == "*" and each.get("Effect") != "Deny"
    }
    assert open_to_all == {"IngestUrlPermission", "IngestUrlRunPermission"}
    assert open_to_all.isdisjoint(deployed())
