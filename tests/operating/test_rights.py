"""Operators' rights: what the commands call, the table of rights, the role's policy and the docs say the same."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import boto3
import botocore.client
import click
import pytest
from botocore.exceptions import ClientError
from cli.__main__ import COMMANDS, main, run
from cli.archive.erasing import SETTLED_MS
from cli.operators.allowed import rights_checks
from cli.operators.deployment import Deployment
from cli.operators.restoring import TABLES
from cli.operators.rights import FUNCTIONS, KEYS, READERS, RIGHTS, ROLES, SET_ASIDE, Right, covers, documented
from tests.cli.aws_calls import WITH_THEIR_OWN, Calls
from tests.cli.conftest import Typed
from tests.cli.deployment import answering, described
from tests.cli.served_hub import ServedHub
from tests.cloud import aws_services as aws
from tests.contract.samples import message
from tests.operating import test_doctor, test_erasing, test_rebuild, test_reseal
from tests.operating.test_erasing import NAMES, OUTPUTS, RECORDS_BUCKET, Hub
from tests.operating.test_moving import Mover
from tests.template.cloudformation import deployed, of_type, references, resources, source, whole

from pushhub.base.times import iso_time
from pushhub.cloud.audit_trail import S3AuditTrail
from pushhub.cloud.clock import SystemClock
from pushhub.cloud.table import Table
from pushhub.cloud.vault import MARK, KmsVault
from pushhub.engine.model.records import record_of_acceptance
from pushhub.engine.store.s3_records import S3RecordStore
from pushhub.notifications.store.secret_keys import SigningSecretItem

acme = test_erasing.hub
account = test_doctor.account
lost = test_rebuild.tables
sealed = test_reseal.stack

ACCOUNT = "123456789012"
STACK_ID = f"arn:aws:cloudformation:us-east-1:{ACCOUNT}:stack/acme/1"
ROLE = "arn:aws:iam::123456789012:role/acme-OperatorRole-1"
OPERATORS = "arn:aws:iam::123456789012:role/admins,arn:aws:iam::123456789012:user/bo"
ANSWERS: dict[str, Any] = {
    "StartJobRun": {"JobRunId": "jr_1"},
    "GetJobRun": {"JobRun": {"JobRunState": "SUCCEEDED"}},
    "CreateEventSourceMapping": {},
    "DeleteEventSourceMapping": {},
}


def exactly(calls: Calls, command: str) -> None:
    """The calls of a command needed its rights, all of them and no others."""
    used = {have for have in RIGHTS[command] if any(covers(have, want) for want in calls.needed[command])}
    assert sorted(set(RIGHTS[command]) - used) == []
    assert calls.unforeseen == []


@pytest.fixture
def stack(acme: Hub, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """A stack with a report's job and streams that are read."""
    below = botocore.client.BaseClient._make_api_call  # type: ignore[attr-defined]
    more = {"ReportJobName": "report", "DispatchFunctionName": "dispatch", "RecordsFunctionName": "rec"}
    chosen = {"DeletionProtection": "true", "AuditTrail": "true"}

    def answered(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
        if operation == "DescribeStacks":
            return described({**OUTPUTS, **more}, chosen)
        if operation == "ListEventSourceMappings":
            arn = "arn:aws:dynamodb:us-east-1:123456789012:table"
            former = [{"EventSourceArn": f"{arn}/{each}/stream/former", "UUID": each} for each in NAMES.values()]
            return {"EventSourceMappings": former}
        if operation not in ANSWERS:
            return below(client, operation, parameters)
        service, model = client.meta.service_model, client.meta.service_model.operation_model(operation)
        client.meta.events.emit(
            f"before-parameter-build.{service.service_id.hyphenize()}.{operation}", params=parameters, model=model
        )
        return ANSWERS[operation]

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", answered)
    return acme


def typed_at(*words: str, codes: tuple[int, ...] = (0,)) -> None:
    assert run(["--stack", "acme", *words]) in codes


def a_token(stack: Hub) -> str:
    store = boto3.client("dynamodb").query(
        TableName=aws.CONFIG_TABLE,
        KeyConditionExpression="pk = :pk AND begins_with(sk, :sk)",
        ExpressionAttributeValues={":pk": {"S": f"P#{stack.project}"}, ":sk": {"S": "TOKEN"}},
    )
    return str(store["Items"][0]["sk"]["S"].rpartition("#")[2])[:12]


def resumes(stack: Hub) -> None:
    typed_at("projects", "suspend", stack.project)
    typed_at("projects", "resume", stack.project)


def deletes(stack: Hub) -> None:
    S3AuditTrail(stack.s3, RECORDS_BUCKET).append(stack.project, iso_time(stack.now), "1", {})
    stack.make_curated()
    for _ in range(2):
        typed_at("projects", "delete", stack.project, "--yes", codes=(0, 1))
        stack.make_curated()
        stack.now += SETTLED_MS


def tails(stack: Hub) -> None:
    hour = datetime.now(UTC)
    line = {"at": hour.isoformat(), "record_id": "1", "kind": "accepted", "queue": "q", "message_id": "1"}
    stack.s3.put_object(
        Bucket=RECORDS_BUCKET,
        Key=f"records/dt={hour:%Y-%m-%d}/hour={hour:%H}/m-1.json.gz",
        Body=gzip.compress(json.dumps(line).encode()),
    )
    typed_at("tail", "--since", "1h", "--for", "0s")


def audits(stack: Hub) -> None:
    S3AuditTrail(stack.s3, RECORDS_BUCKET).append(stack.project, iso_time(stack.now), "1", {"id": "1", "part": "ended"})
    typed_at("audit", stack.project)


def rotates_the_signing_secret(stack: Hub) -> None:
    table = Table(stack.dynamodb, aws.CONFIG_TABLE, SystemClock())
    with pytest.MonkeyPatch.context() as patch:
        key = boto3.client("kms").create_key()["KeyMetadata"]["Arn"]
        patch.setitem(OUTPUTS, "VaultKeyArn", key)
        SigningSecretItem(table, KmsVault(boto3.client("kms"), key, SystemClock()), SystemClock()).make(since=1)
        typed_at("signing-secret", "rotate")


def reports(stack: Hub) -> None:
    typed_at("report", "--wait")
    typed_at("report", "--link", codes=(1,))
    latest = {"report": "s3://b/reports/a", "page": "x", "verdict": {"sentence": "Conserved"}}
    stack.s3.put_object(Bucket=RECORDS_BUCKET, Key="reports/latest.json", Body=json.dumps(latest))
    typed_at("report", "--link")


def puts_tables_in_place(stack: Hub) -> None:
    for name, table in TABLES.items():
        stack.dynamodb.delete_table(TableName=OUTPUTS[table.output])
        typed_at("deploy", "table", name, "--empty")


SCENARIOS: dict[str, Callable[[Hub], None]] = {
    "projects make": lambda _: typed_at("projects", "make", "B"),
    "projects list": lambda _: typed_at("projects", "list"),
    "projects rename": lambda stack: typed_at("projects", "rename", stack.project, "B"),
    "projects allow": lambda stack: typed_at("projects", "allow", stack.project, "10.0.0.0/8"),
    "projects quota": lambda stack: typed_at("projects", "quota", stack.project, "10"),
    "projects traces": lambda stack: typed_at("projects", "traces", stack.project, "off"),
    "projects suspend": lambda stack: typed_at("projects", "suspend", stack.project),
    "projects resume": resumes,
    "projects delete": deletes,
    "tokens make": lambda stack: typed_at("tokens", "make", stack.project),
    "tokens list": lambda stack: typed_at("tokens", "list", stack.project),
    "tokens revoke": lambda stack: typed_at("tokens", "revoke", stack.project, a_token(stack)),
    "tokens rotate": lambda stack: typed_at("tokens", "rotate", stack.project, a_token(stack)),
    "tail": tails,
    "report": reports,
    "audit": audits,
    "signing-secret rotate": rotates_the_signing_secret,
    "deploy table": puts_tables_in_place,
}


@pytest.mark.parametrize("command", SCENARIOS)
def test_a_command_makes_the_calls_that_the_table_says(stack: Hub, calls: Calls, command: str) -> None:
    SCENARIOS[command](stack)
    exactly(calls, command)


def test_moving_makes_the_calls_that_the_table_says(
    stack: Hub, calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a project with everything, in a stack with a vault
    mover = Mover(stack, tmp_path / "acme", monkeypatch)
    mover.exports("--with-keys")
    exactly(calls, "projects export")
    # And an export without keys, which asks the vault of where it comes to
    mover.folder = tmp_path / "sealed"
    mover.exports()
    mover.leaves()
    mover.lost_keys.clear()
    mover.imports()
    exactly(calls, "projects import")


def with_a_trail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stack of another fixture keeps an audit trail."""

    def answered(operation: str, parameters: dict[str, Any], real: Callable[[], Any]) -> Any:
        answer = real()
        if operation == "DescribeStacks":
            [stack] = answer["Stacks"]
            stack["Parameters"] = [{"ParameterKey": "AuditTrail", "ParameterValue": "true"}]
            stack["Outputs"].append({"OutputKey": "RecordsBucketName", "OutputValue": RECORDS_BUCKET})
        return answer

    answering(monkeypatch, answered)


@pytest.mark.usefixtures("lost")
def test_rebuild_makes_the_calls_that_the_table_says(
    calls: Calls, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_trail(monkeypatch)
    boto3.client("s3").create_bucket(Bucket=RECORDS_BUCKET)
    # Given messages with their bodies in the bucket, one whose body has gone, and one for only one subscriber
    test_rebuild.recorded(b"x" * 9_000, kept=True)
    s3 = boto3.client("s3")
    held = {each["Key"] for each in s3.list_objects_v2(Bucket=aws.BUCKET)["Contents"]}
    test_rebuild.recorded(b"y" * 9_000, kept=True)
    for each in s3.list_objects_v2(Bucket=aws.BUCKET)["Contents"]:
        if each["Key"] not in held:
            s3.delete_object(Bucket=aws.BUCKET, Key=each["Key"])
    one = record_of_acceptance(message(message_id="9", unicast=True, accepted_at=SystemClock().now()))
    assert one is not None
    S3RecordStore(s3, RECORDS_BUCKET).write([one], table="m", first="9", last="9")
    test_rebuild.rebuild(capsys, code=1)
    exactly(calls, "rebuild")


def test_reseal_makes_the_calls_that_the_table_says(
    sealed: Callable[[], test_reseal.Stack], calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given something of each kind that another key has sealed
    stack = sealed()
    with_a_trail(monkeypatch)
    test_reseal.seed(stack, [f"secret-{number}" for number in range(10)], key=stack.other)
    # And objects of each kind that another key encrypted
    for name, bucket in test_reseal.LASTING.items():
        stack.keeps(bucket, name, stack.other)
    stack.keeps(RECORDS_BUCKET, "jobs/report.py", stack.other)
    stack.run()
    exactly(calls, "reseal")


def test_the_doctor_makes_the_calls_that_the_table_says(
    account: dict[str, Any], hub: ServedHub, typed: Typed, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PUSHHUB_URL")
    account["GetServiceQuota"] = ClientError({"Error": {"Code": "NoSuchResourceException"}}, "GetServiceQuota")
    account["GetAWSDefaultServiceQuota"] = {"Quota": {"Value": 1.0}}
    error: Any = {"Error": {"Code": "404"}, "ResponseMetadata": {"HTTPStatusCode": 404}}
    account["HeadObject"] = ClientError(error, "HeadObject")
    # With a former key, and a value and objects that may need it
    [deployed_stack] = account["DescribeStacks"]["Stacks"]
    more = {"HubTableName": aws.HUB_TABLE, "WebhooksTableName": aws.WEBHOOKS_TABLE, "VaultKeyArn": "arn:new"}
    more |= {"ConfigTableName": aws.CONFIG_TABLE, "BodiesBucketName": aws.BUCKET, "RecordsBucketName": RECORDS_BUCKET}
    outputs = deployed_stack["Outputs"] + [{"OutputKey": key, "OutputValue": value} for key, value in more.items()]
    parameters = [{"ParameterKey": "OldKmsKeyArns", "ParameterValue": "arn:old"}]
    deployed_stack |= {"Outputs": outputs, "Parameters": parameters, "CreationTime": datetime.now(UTC)}
    sealed = {"pk": {"S": "P#1"}, "sk": {"S": "PARAMETER#1"}, "sealed": {"B": MARK + b"\x00\x01w" + bytes(40)}}
    account["Scan"] = lambda given: {"Items": [sealed] if given["TableName"] == aws.HUB_TABLE else []}
    account["GetItem"] = {}
    account["Decrypt"] = {"Plaintext": b"x" * 32, "KeyId": "arn:old"}
    account["ListObjectsV2"] = lambda given: {"Contents": [{"Key": f"{given['Prefix']}1"}]}
    said = test_doctor.found(typed, "--stack", "acme", code=1)
    assert said["former key arn:old"] == ("warning", "still needed by 1 sealed values (pushhub reseal)")
    exactly(calls, "deploy doctor")


def leaves(group: click.Group, *path: str) -> Iterator[tuple[str, str]]:
    """Every command, and the module it is in."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, *path, name)
        else:
            yield " ".join((*path, name)), command.callback.__module__


def test_every_command_that_may_talk_to_aws_is_in_the_table() -> None:
    # Commands of a module that has AWS's clients
    clients = re.compile(r"^\s*from \.\.operators\.deployment import|boto", re.M)
    assert len(COMMANDS) > 20
    asks = {
        command
        for command, module in leaves(main)
        if clients.search(Path(str(import_module(module).__file__)).read_text())
    }
    assert asks - WITH_THEIR_OWN == {*RIGHTS}
    assert {*SCENARIOS, "projects export", "projects import", "rebuild", "reseal", "deploy doctor"} == {*RIGHTS}


def named(resource: Any) -> str:
    """The table's name of a resource in the policy."""
    if resource == "*":
        return "*"
    if "Ref" in resource:
        return KEYS if resource["Ref"] == "KmsKeyArn" else str(resource["Ref"])
    if "Fn::GetAtt" in resource:
        return str(resource["Fn::GetAtt"][0])
    if "Fn::Split" in resource:
        return named(resource["Fn::Split"][1])
    text = str(resource["Fn::Sub"])
    if text.endswith(":stack/${AWS::StackName}/*"):
        return "Stack"
    if text.endswith(":job/${ReportJob}"):
        return "ReportJob"
    return "ApiAccount" if text.endswith("::/account") else text.replace("${", "").replace(".Arn}", "")


def groups() -> dict[str, set[str]]:
    """What the names of several things stand for."""
    functions = of_type("AWS::Lambda::Function")
    aside = {  # as the doctor finds them
        each["Value"]["Ref"]
        for name, each in source()["Outputs"].items()
        if re.search("(DeadLetters|Failures)Url", name)
    }
    return {
        FUNCTIONS: {*functions},
        ROLES: {each["Role"]["Fn::GetAtt"][0] for each in functions.values()},
        SET_ASIDE: aside,
    }


def policies(**parameters: str) -> list[dict[str, Any]]:
    """The role's own policy, and the one that is attached to it."""
    there = deployed(OperatorPrincipals=OPERATORS, **parameters)
    [own] = there["OperatorRole"]["Properties"]["Policies"]
    attached = there["OperatorDoctorPolicy"]["Properties"]
    assert attached["Roles"] == [{"Ref": "OperatorRole"}]
    return [own["PolicyDocument"], attached["PolicyDocument"]]


def granted(**parameters: str) -> set[Right]:
    """What the role's policy allows."""
    rights: set[Right] = set()
    for statement in chain.from_iterable(each["Statement"] for each in policies(**parameters)):
        places = statement["Resource"]
        for place in places if isinstance(places, list) else [places]:
            name = READERS if "ArnEquals" in statement.get("Condition", {}) else named(place)
            rights |= {Right(action, name) for action in statement["Action"]}
    return rights


def wanted() -> set[Right]:
    """What the table says, with each thing by its own name."""
    all_of = groups()
    return {
        Right(right.action, each)
        for rights in RIGHTS.values()
        for right in rights
        for each in all_of.get(right.resource, {right.resource})
    }


def test_the_role_has_the_rights_of_the_commands_and_no_others() -> None:
    keys = {"WebhooksKey", "OldKmsKeyArns", KEYS}
    assert {each for each in granted() if each.resource not in keys} == {
        each for each in wanted() if each.resource != KEYS
    }
    # What seals is used for both, what sealed before for opening only, with the stack's own key and with another
    both = {"kms:Decrypt", "kms:GenerateDataKey"}
    assert {each.action for each in wanted() if each.resource == KEYS} == both
    assert {each for each in granted() if each.resource in keys} == {Right(each, "WebhooksKey") for each in both}
    other = granted(KmsKeyArn="arn:aws:kms:eu-west-1:123456789012:key/1", OldKmsKeyArns="arn:aws:kms:eu:1:key/2")
    assert {each for each in other if each.resource in keys} == {
        *(Right(each, KEYS) for each in both),
        *(Right("kms:Decrypt", each) for each in ("WebhooksKey", "OldKmsKeyArns")),
    }


def test_who_may_assume_it_are_the_operators_that_were_named() -> None:
    role = deployed(OperatorPrincipals=OPERATORS)["OperatorRole"]["Properties"]
    [statement] = role["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"AWS": {"Fn::Split": [",", {"Ref": "OperatorPrincipals"}]}}
    pattern = source()["Parameters"]["OperatorPrincipals"]["AllowedPattern"]
    assert re.fullmatch(pattern, OPERATORS)
    for each in ("*", "arn:aws:iam::123456789012:role/*", "123456789012", f"{OPERATORS},"):
        assert not re.fullmatch(pattern, each)


def test_without_operators_there_is_no_role_and_nothing_else_changes_with_them() -> None:
    without, there = deployed(), deployed(OperatorPrincipals=OPERATORS)
    created = {"OperatorRole", "OperatorDoctorPolicy"}
    assert there.keys() - without.keys() == created
    assert {name: each for name, each in there.items() if name not in created} == without
    assert source()["Outputs"]["OperatorRoleArn"]["Condition"] == "HasOperators"


def in_letters(value: Any) -> Any:
    """A policy with names as long as those of a stack whose own name is as long as it may be."""
    if isinstance(value, list):
        return [in_letters(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "Fn::Split" in value:
        return [in_letters({"Ref": "OldKmsKeyArns"})] * 2
    if "Fn::Sub" in value:
        there = resources()
        named = {
            each: str(in_letters({"Ref": each if each in there else "Any"}))
            for each in re.findall(r"\$\{([\w:]+)", value["Fn::Sub"])
        }
        return re.sub(r"\$\{([\w:]+).*?\}", lambda found: named[found[1]], value["Fn::Sub"])
    if "Ref" in value or "Fn::GetAtt" in value:
        name = value["Ref"] if "Ref" in value else value["Fn::GetAtt"][0]
        kind = {**resources(), "Any": {}}.get(name, {}).get("Type", "")
        most = {"AWS::IAM::Role": 64, "AWS::Lambda::Function": 64, "AWS::SQS::Queue": 80, "AWS::S3::Bucket": 63}
        whole = f"{'s' * 128}-{name}-1ABCDEFGHIJKL"
        return f"arn:aws:dynamodb:ap-southeast-2:123456789012:table/{whole[: most.get(kind, 128 + 35)]}"
    return {key: in_letters(each) for key, each in value.items()}


def test_the_policies_are_within_what_iam_takes() -> None:
    # Without white space: 10,240 characters of all policies in a role, 6,144 of one that is attached
    keys = {"KmsKeyArn": "arn:aws:kms:eu-west-1:123456789012:key/1", "OldKmsKeyArns": "arn:aws:kms:eu:1:key/2"}
    for policy, most in zip(policies(**keys), (10_240, 6_144), strict=True):
        assert len(re.sub(r"\s", "", json.dumps(in_letters(policy)))) < most


def test_the_docs_list_what_each_command_needs() -> None:
    assert documented() in (Path(__file__).parents[2] / "docs" / "deploy.md").read_text()


def test_commands_act_under_the_stacks_role(
    stack: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a stack with a role for operators, and who may assume it
    by: list[tuple[str, str]] = []
    own = boto3.Session().get_credentials()
    assert own is not None
    own_key = own.access_key
    below = botocore.client.BaseClient._make_api_call  # type: ignore[attr-defined]
    refuses: list[bool] = []

    def answered(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
        by.append((operation, client._request_signer._credentials.access_key))
        if operation == "DescribeStacks" and "--role-arn" not in words:
            answer = below(client, operation, parameters)
            answer["Stacks"][0]["Outputs"].append({"OutputKey": "OperatorRoleArn", "OutputValue": ROLE})
            return answer
        if operation == "AssumeRole":
            assert parameters["RoleArn"] == ROLE
            assert re.fullmatch(r"pushhub-[\w+=,.@-]{1,56}", parameters["RoleSessionName"])
            if refuses:
                raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not yours"}}, operation)
            keys = {"AccessKeyId": "ROLES", "SecretAccessKey": "x", "SessionToken": "x"}
            return {"Credentials": {**keys, "Expiration": datetime.now(UTC) + timedelta(hours=1)}}
        return below(client, operation, parameters)

    monkeypatch.setattr(botocore.client.BaseClient, "_make_api_call", answered)
    words: tuple[str, ...] = ("projects", "list")
    # When an operator types a command, then it is carried out under the role
    typed_at(*words)
    assert by == [("DescribeStacks", own_key), ("AssumeRole", own_key), ("Scan", "ROLES")]
    # With the role given, nothing is asked without it
    by.clear()
    words = ("--role-arn", ROLE, "projects", "list")
    typed_at(*words)
    assert by == [("AssumeRole", own_key), ("DescribeStacks", "ROLES"), ("Scan", "ROLES")]
    monkeypatch.setenv("PUSHHUB_ROLE_ARN", ROLE)
    by.clear()
    typed_at("projects", "list")
    assert by[0] == ("AssumeRole", own_key)
    monkeypatch.delenv("PUSHHUB_ROLE_ARN")
    # Without a role, if that is what they say
    by.clear()
    typed_at("--role-arn", "none", "projects", "list")
    assert {key for _, key in by} == {own_key}
    # And who may not assume it is told what to do
    refuses.append(True)
    capsys.readouterr()
    words = ("projects", "list")
    typed_at(*words, codes=(1,))
    said = capsys.readouterr().err
    assert "not yours" in said
    assert "OperatorPrincipals" in said
    assert "--role-arn none" in said


class Account:
    """An AWS account with the stack as the template makes it, whose IAM goes by the role's policies.

    Attributes:
        caller: Who asks.
        refuses: An action that IAM refuses, in place of what the policies say; empty for none.
        silent: Whether nobody may ask IAM.
        asked: Of whose policies.
    """

    def __init__(self) -> None:
        self.caller = f"arn:aws:sts::{ACCOUNT}:assumed-role/{ROLE.rpartition('/')[2]}/pushhub-bo"
        self.refuses = ""
        self.silent = False
        self.asked: set[str] = set()
        self.outputs = {"OperatorRoleArn": ROLE}
        for name, output in whole()["Outputs"].items():
            logical = next(iter(references(output["Value"]) & {*resources()}), None)
            if "Condition" not in output and logical is not None:
                self.outputs[name] = {
                    "Arn": self.arn(logical),
                    "Url": f"https://sqs.us-east-1.amazonaws.com/{ACCOUNT}/{logical}",
                }.get(name[-3:], logical)
        self.rights = [
            (statement, action, self.in_full(place))
            for policy in policies()
            for statement in policy["Statement"]
            for action in statement["Action"]
            for place in (statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]])
        ]

    def arn(self, logical: str) -> str:
        kind = resources()[logical]["Type"]
        if logical == "OperatorRole":
            return ROLE
        return {
            "AWS::DynamoDB::Table": f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/{logical}",
            "AWS::S3::Bucket": f"arn:aws:s3:::{logical}",
            "AWS::Lambda::Function": f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:{logical}",
            "AWS::IAM::Role": f"arn:aws:iam::{ACCOUNT}:role/{logical}",
            "AWS::SQS::Queue": f"arn:aws:sqs:us-east-1:{ACCOUNT}:{logical}",
        }.get(kind, f"arn:aws:other:us-east-1:{ACCOUNT}:{logical}")

    def in_full(self, place: Any) -> str:
        if not isinstance(place, dict):
            return str(place)
        if "Fn::GetAtt" in place:
            return self.arn(place["Fn::GetAtt"][0])
        if "Ref" in place:
            return self.arn(place["Ref"])
        values = {
            "AWS::Partition": "aws",
            "AWS::Region": "us-east-1",
            "AWS::AccountId": ACCOUNT,
            "AWS::StackName": "acme",
            "ReportJob": "ReportJob",
        }
        whole: str = place["Fn::Sub"]
        return re.sub(r"\$\{(.*?)\}", lambda at: values.get(at[1]) or self.arn(at[1].removesuffix(".Arn")), whole)

    def allows(self, action: str, resource: str, context: dict[str, str]) -> bool:
        def holds(statement: dict[str, Any]) -> bool:
            wanted = statement.get("Condition", {}).get("ArnEquals", {}).get("lambda:FunctionArn", [])
            absent = [*statement.get("Condition", {}).get("Null", {})]
            if not all(name in context for name in absent):
                return False
            return not wanted or context.get("lambda:FunctionArn") in [self.in_full(each) for each in wanted]

        return action != self.refuses and any(
            action == have and fnmatchcase(resource, place) and holds(statement)
            for statement, have, place in self.rights
        )

    def answer(self, operation: str, given: dict[str, Any]) -> Any:
        if operation == "GetCallerIdentity":
            return {"Arn": self.caller, "Account": ACCOUNT}
        if operation == "DescribeStacks":
            return described(self.outputs, StackId=STACK_ID)
        if operation == "GetFunctionConfiguration":
            role = self.arn(given["FunctionName"] + "Role")
            return test_doctor.GOOD["GetFunctionConfiguration"] | {"Role": role}
        if operation == "DescribeAlarms":
            [alarm] = test_doctor.GOOD[operation]["MetricAlarms"]
            return {"MetricAlarms": [alarm | {"AlarmActions": [self.outputs["AlarmTopicArn"]]}]}
        if operation == "GetRole":
            return {"Role": {"Arn": f"arn:aws:iam::{ACCOUNT}:role/path/{given['RoleName']}"}}
        if operation != "SimulatePrincipalPolicy":
            return test_doctor.GOOD[operation]
        if self.silent:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, operation)
        self.asked.add(given["PolicySourceArn"])
        context = {each["ContextKeyName"]: each["ContextKeyValues"][0] for each in given["ContextEntries"]}
        return {
            "EvaluationResults": [
                {
                    "EvalActionName": action,
                    "EvalDecision": "allowed" if self.allows(action, resource, context) else "implicitDeny",
                }
                for action in given["ActionNames"]
                for resource in given["ResourceArns"]
            ]
        }


@pytest.fixture
def iam(account: dict[str, Any], hub: ServedHub, monkeypatch: pytest.MonkeyPatch) -> Account:
    """An account, asked by somebody who is already under the role."""
    monkeypatch.delenv("PUSHHUB_URL")
    created = Account()
    monkeypatch.setattr(
        botocore.client.BaseClient, "_make_api_call", lambda _, operation, given: created.answer(operation, given)
    )
    return created


def lacking(typed: Typed, code: int = 0) -> dict[str, tuple[str, str]]:
    found = test_doctor.found(typed, "--stack", "acme", "--role-arn", "none", code=code)
    return {name: said for name, said in found.items() if name.startswith("rights")}


def test_the_doctor_finds_that_the_role_has_every_right(iam: Account, typed: Typed) -> None:
    assert lacking(typed) == {"rights": ("ok", f"{ROLE} may use every command")}
    assert iam.asked == {ROLE}


def test_an_emulator_that_is_told_no_context_is_not_asked_what_stands_under_a_condition(
    iam: Account, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given MiniStack, for which no condition on a request ever holds
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4577")
    allows = iam.allows
    monkeypatch.setattr(iam, "allows", lambda action, resource, _: allows(action, resource, {}))
    # Then no command is said to lack a right that it has
    assert lacking(typed) == {"rights": ("ok", f"{ROLE} may use every command")}


class Session:
    """Makes a client for each service once: making them is what takes time."""

    region_name = "us-east-1"

    def __init__(self) -> None:
        self._clients: dict[str, Any] = {}

    def client(self, service: str, **_: Any) -> Any:
        if service not in self._clients:
            self._clients[service] = boto3.client(service)  # type: ignore[call-overload]
        return self._clients[service]


def test_the_doctor_says_for_each_command_what_is_missing(iam: Account) -> None:
    hub = Deployment("acme", iam.outputs, Session(), {})
    for action in {right.action for rights in RIGHTS.values() for right in rights}:
        # Given a role without one of its rights
        iam.refuses = action
        # Then each command that needs it, and no other, is named with it
        said = {each.name.removeprefix("rights: "): (each.state, each.says) for each in rights_checks(hub)}
        missing = {
            command: [f"{action} on {each.resource}" for each in rights if each.action == action]
            for command, rights in RIGHTS.items()
        }
        assert said == {
            command: ("wrong", f"{ROLE} lacks {', '.join(places)}") for command, places in missing.items() if places
        }


def test_somebody_elses_rights_are_asked_of_their_own_role_and_lacking_ones_are_a_warning(
    iam: Account, typed: Typed
) -> None:
    iam.caller, iam.refuses = f"arn:aws:sts::{ACCOUNT}:assumed-role/reader/bo", "glue:StartJobRun"
    iam.rights.append(({}, "iam:SimulatePrincipalPolicy", "*"))
    assert lacking(typed)["rights: report"][0] == "warning"
    assert iam.asked == {f"arn:aws:iam::{ACCOUNT}:role/path/reader"}
    iam.caller = f"arn:aws:iam::{ACCOUNT}:user/bo"
    lacking(typed)
    assert iam.caller in iam.asked


def test_who_may_not_ask_iam_is_told_so(iam: Account, typed: Typed) -> None:
    iam.silent = True
    [(state, text)] = lacking(typed).values()
    assert state == "skipped"
    assert "iam:SimulatePrincipalPolicy" in text
    iam.silent, iam.caller = False, f"arn:aws:iam::{ACCOUNT}:root"
    assert lacking(typed)["rights"][0] == "skipped"
