"""Everything that an operator may ask for by parameter, deployed: it arrives, messages go through it, and operators act
under its role alone, with every call checked against the policies.

CodeDeploy is not in the emulator: its resources are left out of the template, by name, and are compared in
``tests/template/test_gradual.py``. Nor does its CloudFormation pass on which subnets and which key a function has
(``VpcConfig``, ``KmsKeyArn``), which ``test_egress.py`` and ``test_logs_key.py`` compare there: the rights that go with
them arrive.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from cli.__main__ import run
from cli.archive.erasing import SETTLED_MS
from cli.operators.rights import RIGHTS
from tests.fakes.large_bodies import large_text
from tests.sam.conftest import (
    STACK,
    Deployment,
    deploy,
    resources_of,
    undigested,
)
from tests.sam.sink import Sink
from tests.sam.test_deploy import WAIT_SECONDS, push_queue
from tests.sam.toolbox import REGION
from tests.template.cloudformation import deployed

from pushhub.base.times import iso_time
from pushhub.cloud.clock import SystemClock
from pushhub.cloud.table import Table
from pushhub.cloud.vault import KmsVault
from pushhub.notifications.store.secret_keys import SigningSecretItem

pytestmark = [pytest.mark.slow, pytest.mark.stack]

GRADUAL = ("Ingest", "Control", "Push")
ACCOUNT = "arn:aws:iam::000000000000"
BO, EVE = "bo", "eve"
"""An operator, and somebody who is none."""
PLAIN = {
    "ApiRequestsPerSecond": "1000",
    "WebSocketMessagesPerSecond": "800",
    "ProducersUrl": "true",
    "GradualDeployment": "Canary10Percent5Minutes",
    "Dashboard": "true",
    "AuditTrail": "true",
    "BodyVersionsDays": "7",
    "WebSocketAccessLog": "true",
    "IngestConcurrency": "20",
    "DispatchConcurrency": "10",
    "ControlConcurrency": "30",
    "OperatorPrincipals": f"{ACCOUNT}:user/{BO}",
    "SourceAddresses": "203.0.113.7",
    "NextSourceAddresses": "198.51.100.1",
    "NextSourceAddressesFrom": "2027-01-01T00:00:00Z",
    "DomainName": "hub.example.com",
    "EdgeDistribution": "false",
    "Runtime": "python3.14",
}


@pytest.fixture(scope="module")
def chosen(deployment: Deployment, build: Path) -> dict[str, str]:
    """The parameters, with what they name made, and the stack deployed with them."""
    ec2, acm, kms = (deployment.client(each) for each in ("ec2", "acm", "kms"))
    network = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=network, CidrBlock=f"10.9.{each}.0/24")["Subnet"]["SubnetId"] for each in range(2)
    ]
    group = ec2.create_security_group(GroupName="egress", Description="egress", VpcId=network)["GroupId"]
    parameters = PLAIN | {
        "EgressSubnetIds": ",".join(subnets),
        "EgressSecurityGroupIds": group,
        "CertificateArn": acm.request_certificate(DomainName=PLAIN["DomainName"])["CertificateArn"],
        "LogsKeyArn": kms.create_key()["KeyMetadata"]["Arn"],
    }
    again(deployment, build, parameters)
    return parameters


def again(deployment: Deployment, build: Path, parameters: dict[str, str]) -> None:
    """Deploy the build. The emulator transforms it without the values of parameters, and so without CodeDeploy."""
    deploy(build, deployment.emulator, *(f"{name}={value}" for name, value in parameters.items()))
    [stack] = deployment.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
    deployment.outputs.update({each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]})
    allow_simulation(deployment)


def allow_simulation(deployment: Deployment) -> None:
    """Work around another one: for it, rights are asked of nobody in particular, where on AWS the role is named."""
    asks = {"Effect": "Allow", "Action": ["iam:SimulatePrincipalPolicy"], "Resource": "*"}
    deployment.client("iam").put_role_policy(
        RoleName=deployment.outputs["OperatorRoleArn"].rpartition("/")[2],
        PolicyName="simulates",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [asks]}),
    )


def rights(deployment: Deployment, function: str) -> str:
    """The policies of a function's role, as they arrived."""
    functions, iam = deployment.client("lambda"), deployment.client("iam")
    found = functions.get_function_configuration(FunctionName=deployment.outputs[f"{function}FunctionName"])
    assert found["Runtime"] == "python3.14"
    role = found["Role"].rpartition("/")[2]
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    found_there = [iam.get_role_policy(RoleName=role, PolicyName=each)["PolicyDocument"] for each in names]
    for each in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
        if ":aws:policy/" not in each["PolicyArn"]:
            version = iam.get_policy(PolicyArn=each["PolicyArn"])["Policy"]["DefaultVersionId"]
            whole = iam.get_policy_version(PolicyArn=each["PolicyArn"], VersionId=version)
            found_there.append(whole["PolicyVersion"]["Document"])
    return json.dumps(found_there)


def test_every_resource_of_every_parameter_arrived(deployment: Deployment, chosen: dict[str, str]) -> None:
    arrived(deployment, chosen)


def arrived(deployment: Deployment, chosen: dict[str, str]) -> None:
    """The resources are those that the template has with the parameters, and no others."""
    assert resources_of(deployment) == {undigested(each) for each in deployed(**chosen)}


def test_what_calls_strangers_may_be_in_the_subnets_and_says_from_which_addresses_it_calls(
    deployment: Deployment, chosen: dict[str, str]
) -> None:
    functions, iam = deployment.client("lambda"), deployment.client("iam")
    for name, inside in (("Push", True), ("Poll", True), ("Control", True), ("Ingest", False), ("Wake", False)):
        found = functions.get_function_configuration(FunctionName=deployment.outputs[f"{name}FunctionName"])
        # The emulator passes on no VpcConfig, but the policy that SAM attaches for it.
        attached = iam.list_attached_role_policies(RoleName=found["Role"].rpartition("/")[2])["AttachedPolicies"]
        assert ("AWSLambdaVPCAccessExecutionRole" in [each["PolicyName"] for each in attached]) == inside, name
    # What answers now is the version from before: with GradualDeployment, a change of parameters alone makes no new one
    # (docs/deploy.md). The next release has these.
    control = functions.get_function_configuration(FunctionName=deployment.outputs["ControlFunctionName"])
    reported = control["Environment"]["Variables"]
    assert reported["SOURCE_ADDRESSES"] == PLAIN["SourceAddresses"]
    assert reported["NEXT_SOURCE_ADDRESSES"] == PLAIN["NextSourceAddresses"]
    assert reported["NEXT_SOURCE_ADDRESSES_FROM"] == PLAIN["NextSourceAddressesFrom"]


def test_the_domain_is_the_http_apis_and_both_gateways_have_their_limits(
    deployment: Deployment, chosen: dict[str, str]
) -> None:
    gateway = deployment.client("apigatewayv2")
    [domain] = gateway.get_domain_names()["Items"]
    assert domain["DomainName"] == chosen["DomainName"]
    [config] = domain["DomainNameConfigurations"]
    assert (config["CertificateArn"], config["SecurityPolicy"]) == (chosen["CertificateArn"], "TLS_1_2")
    [mapping] = gateway.get_api_mappings(DomainName=chosen["DomainName"])["Items"]
    stages: list[dict[str, Any]] = []
    # The emulator stores these settings under CloudFormation's names, which the SDK does not read.
    gateway.meta.events.register(
        "response-received.apigatewayv2.GetStages",
        lambda response_dict, **_: stages.extend(json.loads(response_dict["body"])["items"]),
    )
    limits = {}
    for api in gateway.get_apis()["Items"]:
        [stage] = gateway.get_stages(ApiId=api["ApiId"])["Items"]
        found = stages[-1]["defaultRouteSettings"]
        limits[api["ProtocolType"]] = (found["ThrottlingRateLimit"], found["ThrottlingBurstLimit"])
        if api["ProtocolType"] == "HTTP":
            assert mapping["ApiId"] == api["ApiId"]
        else:
            assert ":log-group:/aws/vendedlogs/pushhub-websocket-api" in stage["AccessLogSettings"]["DestinationArn"]
    assert limits == {"HTTP": ("1000", "1000"), "WEBSOCKET": ("800", "800")}


def test_logs_and_functions_settings_are_encrypted_with_the_key(deployment: Deployment, chosen: dict[str, str]) -> None:
    groups = deployment.client("logs").describe_log_groups()["logGroups"]
    ours = [each for each in groups if "pushhub" in each["logGroupName"]]
    assert len(ours) > 13
    assert {each.get("kmsKeyId") for each in ours} == {chosen["LogsKeyArn"]}
    for name in (key.removesuffix("FunctionName") for key in deployment.outputs if key.endswith("FunctionName")):
        assert chosen["LogsKeyArn"] in rights(deployment, name), name


@pytest.mark.usefixtures("chosen")
def test_there_is_a_dashboard_whose_metrics_are_of_what_was_deployed(deployment: Deployment) -> None:
    board = json.loads(deployment.client("cloudwatch").get_dashboard(DashboardName=STACK)["DashboardBody"])
    text = json.dumps(board)
    assert deployment.outputs["PushFunctionName"] in text
    assert "${" not in text
    bucket = deployment.outputs["BodiesBucketName"]
    assert deployment.client("s3").get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"


@pytest.mark.usefixtures("chosen")
def test_messages_go_through_the_versions_that_are_live(
    deployment: Deployment, sink: Sink, queue_name: Callable[[], str]
) -> None:
    # Given what runs a version of a function
    functions = deployment.client("lambda")
    sources = functions.get_paginator("list_event_source_mappings").paginate()
    pushes = {
        each["FunctionArn"].rpartition(":")[2]
        for page in sources
        for each in page["EventSourceMappings"]
        if deployment.outputs["PushFunctionName"] in each["FunctionArn"]
    }
    assert pushes == {"live"}
    for name in GRADUAL:
        alias = functions.get_alias(FunctionName=deployment.outputs[f"{name}FunctionName"], Name="live")
        assert alias["FunctionVersion"].isdigit()
    # When a message is posted
    name = queue_name()
    deployment.call("PUT", f"/{name}", push_queue(f"{sink.url}/live"))
    deployment.call("POST", f"/{name}/messages", {"messages": [{"body": large_text(20_000)}]})
    # Then it arrives
    [received] = sink.wait_for(1, WAIT_SECONDS)
    assert received.body == large_text(20_000).encode()
    # And when the alias goes to a new version and, as docs/deploy.md says, back by hand
    push = deployment.outputs["PushFunctionName"]
    former = functions.get_alias(FunctionName=push, Name="live")["FunctionVersion"]
    functions.update_function_configuration(FunctionName=push, Description="the next release")
    newer = functions.publish_version(FunctionName=push)["Version"]
    assert newer != former
    for number, version in enumerate((newer, former), start=2):
        functions.update_alias(FunctionName=push, Name="live", FunctionVersion=version)
        deployment.call("POST", f"/{name}/messages", {"messages": [{"body": f"to {version}"}]})
        # Then messages arrive through either
        assert sink.wait_for(number, WAIT_SECONDS)[-1].body == f"to {version}".encode()


class Operator:
    """Somebody who types commands with a key of AWS."""

    def __init__(
        self,
        key: dict[str, str],
        deployment: Deployment,
        patch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.key = key
        self._capsys = capsys
        for name in ("AWS_PROFILE", "PUSHHUB_URL", "PUSHHUB_PROFILE", "AWS_SESSION_TOKEN"):
            patch.delenv(name, raising=False)
        self._patch = patch
        self._url = deployment.emulator.url
        self.said = ""

    def __call__(self, *words: str, codes: tuple[int, ...] = (0,), stack: str = STACK) -> Any:
        """Type a command; what it shows."""
        settings = {
            "AWS_ENDPOINT_URL": self._url,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": self.key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": self.key["SecretAccessKey"],
        }
        for name, value in settings.items():
            self._patch.setenv(name, value)
        code = run(["--stack", stack, "--json", *words])
        printed = self._capsys.readouterr()
        self.said = printed.err
        assert code in codes, f"{words}: {code}: {printed.err[-2000:]}"
        # One that shows what happens prints a line for each.
        return json.loads(printed.out) if printed.out.startswith("[") else printed.out

    def lacking(self) -> dict[str, str]:
        """What the doctor says is missing, by command."""
        rows = self("deploy", "doctor", codes=(0, 1))
        found = {each["check"].removeprefix("rights: "): each for each in rows if each["check"].startswith("rights")}
        assert found.get("rights", {"state": "ok"})["state"] == "ok", found["rights"]
        return {command: each["says"] for command, each in found.items() if command != "rights"}


@pytest.fixture(scope="module")
def keys(deployment: Deployment, chosen: dict[str, str]) -> dict[str, dict[str, str]]:
    """Keys of users who may do nothing but find the stack and assume a role that lets them."""
    assert BO in chosen["OperatorPrincipals"]
    iam, created = deployment.client("iam"), {}
    allowed = {"Effect": "Allow", "Action": ["sts:AssumeRole", "cloudformation:DescribeStacks"], "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    for user in (BO, EVE):
        iam.create_user(UserName=user)
        iam.put_user_policy(UserName=user, PolicyName="finds-the-role", PolicyDocument=policy)
        created[user] = iam.create_access_key(UserName=user)["AccessKey"]
    return created


@pytest.fixture
def operators(
    deployment: Deployment,
    keys: dict[str, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> dict[str, Operator]:
    return {user: Operator(key, deployment, monkeypatch, capsys) for user, key in keys.items()}


@contextmanager
def without(deployment: Deployment, action: str) -> Iterator[None]:
    """The operators' role lacks a right."""
    iam = deployment.client("iam")
    role = deployment.outputs["OperatorRoleArn"].rpartition("/")[2]
    policy = "least-privilege"
    whole = iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]
    less = json.loads(json.dumps(whole))
    for statement in less["Statement"]:
        statement["Action"] = [each for each in statement["Action"] if each != action]
    less["Statement"] = [each for each in less["Statement"] if each["Action"]]
    assert less != whole
    iam.put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=json.dumps(less))
    yield
    iam.put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=json.dumps(whole))


def signing_secret(deployment: Deployment, outputs: Mapping[str, str]) -> SigningSecretItem:
    """What signs consumers' tokens of a stack with these outputs."""
    clock = SystemClock()
    vault = KmsVault(deployment.client("kms"), outputs["VaultKeyArn"], clock)
    return SigningSecretItem(Table(deployment.client("dynamodb"), outputs["ConfigTableName"], clock), vault, clock)


def a_quarter_of_an_hour_later(deployment: Deployment, project: str) -> None:
    """Let the project have been silenced so much earlier."""
    deployment.client("dynamodb").update_item(
        TableName=deployment.outputs["ConfigTableName"],
        Key={"pk": {"S": f"P#{project}"}, "sk": {"S": "PROJECT"}},
        UpdateExpression="SET erased_since = erased_since - :much",
        ExpressionAttributeValues={":much": {"N": str(SETTLED_MS)}},
    )


def test_every_command_does_its_work_with_the_rights_of_the_role_alone(
    deployment: Deployment, operators: dict[str, Operator], sink: Sink, tmp_path: Path
) -> None:
    bo, s3 = operators[BO], deployment.client("s3")
    records = deployment.outputs["RecordsBucketName"]
    # Given a user who may do nothing but assume the role
    tables = boto3.client(
        "dynamodb",
        endpoint_url=deployment.emulator.url,
        region_name=REGION,
        aws_access_key_id=bo.key["AccessKeyId"],
        aws_secret_access_key=bo.key["SecretAccessKey"],
    )
    with pytest.raises(tables.exceptions.ClientError, match="AccessDenied"):
        tables.scan(TableName=deployment.outputs["ConfigTableName"])
    # When operators type each of their commands
    typed: set[str] = set()

    def types(command: str, *words: str, codes: tuple[int, ...] = (0,)) -> Any:
        typed.add(command)
        return bo(*command.split(), *words, codes=codes)

    [created] = types("projects make", "acme")
    project, token = created["project"], created["token"]
    types("projects rename", project, "Acme")
    types("projects allow", project, "127.0.0.0/8")
    types("projects quota", project, "50")
    types("projects traces", project, "off")
    assert project in {each["project"] for each in types("projects list")}
    [first] = types("tokens list", project)
    types("tokens make", project)
    types("tokens rotate", project, first["token_id"])
    renewed = {each["token_id"] for each in bo("tokens", "list", project)} - {first["token_id"]}
    types("tokens revoke", project, renewed.pop())
    # And the project's messages arrive, with a body that is kept apart
    owner = Deployment(
        emulator=deployment.emulator, outputs={}, base_url=deployment.base_url, project_id=project, token=token
    )
    owner.call("PUT", "/held", push_queue(f"{sink.url}/held"))
    [message_id] = owner.call("POST", "/held/messages", {"messages": [{"body": large_text(20_000)}]})["ids"]
    sink.wait_for(1, WAIT_SECONDS)
    hour = iso_time(SystemClock().now())[:13].replace("T", "/hour=")
    line = {"record_id": "1", "kind": "accepted", "project": project, "queue": "held", "message_id": message_id}
    s3.put_object(
        Bucket=records,
        Key=f"records/dt={hour}/messages-1.json.gz",
        Body=gzip.compress(json.dumps(line | {"at": iso_time(SystemClock().now())}).encode()),
    )
    types("tail", "--since", "1h", "--for", "0s")
    types("report")
    types("rebuild", "--since", hour[:10], codes=(0, 1))
    types("reseal")
    # (of tokens that were made an hour ago)
    assert signing_secret(deployment, deployment.outputs).make(since=SystemClock().now() - 3_600_000)
    types("signing-secret rotate")
    types("projects suspend", project)
    types("projects resume", project)
    deadline = time.monotonic() + 240
    types("projects suspend", project)
    types("projects export", project, str(tmp_path / "acme"), "--with-keys", "--running")
    types("projects delete", project, "--yes", codes=(1,))
    a_quarter_of_an_hour_later(deployment, project)
    while any(each["left"] or each["removed"] for each in bo("projects", "delete", project, "--yes", codes=(0, 1))):
        # What was in the streams has come out since.
        assert time.monotonic() < deadline, bo.said
    bo("projects", "delete", project, "--yes")
    types("projects import", str(tmp_path / "acme"))
    types("audit", project)
    # And a table is lost
    deployment.client("dynamodb").update_table(
        TableName=deployment.outputs["HubTableName"], DeletionProtectionEnabled=False
    )
    deployment.client("dynamodb").delete_table(TableName=deployment.outputs["HubTableName"])
    types("deploy table", "hub", "--empty")
    types("deploy doctor", codes=(0, 1))
    # Then that was all of them
    assert typed == {*RIGHTS}
    # And somebody who is no operator may do none of it
    operators[EVE]("projects", "list", codes=(1,))
    assert "cannot be assumed" in operators[EVE].said


RIGHT_OF = {
    "report": ("glue:StartJobRun", ("report",)),
    "projects list": ("dynamodb:Scan", ("projects", "list")),
}
"""Some commands, and a right that each needs."""


@pytest.mark.parametrize("command", RIGHT_OF)
def test_a_right_that_is_missing_is_named_by_the_doctor(
    deployment: Deployment, operators: dict[str, Operator], command: str
) -> None:
    bo, (action, words) = operators[BO], RIGHT_OF[command]
    # Given what the emulator says that the role lacks: it does not look at what a request says beside the call
    before = bo.lacking()
    assert action not in before.get(command, "")
    # When the role lacks one right
    with without(deployment, action):
        # Then the command is refused, and the doctor says which right it lacks
        bo(*words, codes=(1,))
        assert "AccessDenied" in bo.said
        assert f"lacks {action} on" in bo.lacking()[command]
    # And with it, all is as it was
    bo(*words)
    assert bo.lacking() == before


def test_the_domain_and_a_web_acl_may_be_the_distributions_instead(
    deployment: Deployment, build: Path, chosen: dict[str, str]
) -> None:
    # Given a web ACL, which a distribution can have and the APIs cannot
    acl = deployment.client("wafv2").create_web_acl(
        Name="edge",
        Scope="CLOUDFRONT",
        DefaultAction={"Allow": {}},
        VisibilityConfig={"SampledRequestsEnabled": False, "CloudWatchMetricsEnabled": False, "MetricName": "edge"},
    )["Summary"]["ARN"]
    # When a distribution is asked for
    more = {"EdgeDistribution": "true", "WebAclArn": acl}
    again(deployment, build, chosen | more)
    # Then it has the name, the certificate and the ACL, and the HTTP API has the name no more
    arrived(deployment, chosen | more)
    edges = deployment.client("cloudfront")
    [edge] = edges.list_distributions()["DistributionList"]["Items"]
    config = edges.get_distribution_config(Id=edge["Id"])["DistributionConfig"]
    assert config["Aliases"]["Items"] == [chosen["DomainName"]]
    assert config["WebACLId"] == acl
    assert config["ViewerCertificate"]["ACMCertificateArn"] == chosen["CertificateArn"]
    assert deployment.client("apigatewayv2").get_domain_names()["Items"] == []


def test_no_function_was_refused_anything_or_failed_otherwise(deployment: Deployment) -> None:
    """Runs after all of the above."""
    assert deployment.errors() == []
