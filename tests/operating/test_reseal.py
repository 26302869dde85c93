"""``pushhub reseal``: what is sealed with another key is sealed with the first one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from cli.__main__ import run
from cli.operators.lasting import AWS_OWN
from tests.cli.deployment import answering, described, with_credentials
from tests.cloud import aws_services as aws
from tests.contract.samples import NOW, PROJECT
from tests.fakes import FakeClock

from pushhub.base.errors import Conflict
from pushhub.base.gates import ClientCertificate
from pushhub.cloud.table import Table
from pushhub.cloud.vault import KmsVault
from pushhub.engine.model.delivery import Delivery
from pushhub.engine.model.queue import PushSettings, Queue, QueueType, Subscriber
from pushhub.engine.model.reach import Reach
from pushhub.engine.model.span_export import SpanExport
from pushhub.engine.security.credentials import Credentials
from pushhub.engine.store._delivery_items import decode_delivery
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore
from pushhub.hub.model.integration import Integration
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.model.parameters import DataType, Parameter
from pushhub.hub.store._keys import store_key
from pushhub.hub.store.dynamodb_settings import DynamoDBHubSettings
from pushhub.hub.tokens import token_of
from pushhub.notifications.store.secret_keys import SigningSecretItem
from pushhub.webhooks.endpoints.credentials import opened
from pushhub.webhooks.model.application import Application, ApplicationFields
from pushhub.webhooks.model.attempt import LoggedAttempt
from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields
from pushhub.webhooks.model.page import KeyRange
from pushhub.webhooks.model.source import Source, TokenDigest
from pushhub.webhooks.store.dynamodb_logs import DynamoDBWebhooksLogs
from pushhub.webhooks.store.dynamodb_settings import DynamoDBWebhooksSettings

SOURCE = "src_2srOrx2ZWZBpBUvZwXKQmoEYga2"
APP, ENDPOINT = "app_2srOrx2ZWZBpBUvZwXKQmoEYga2", "ep_2srOrx2ZWZBpBUvZwXKQmoEYga2"
MAPPING, INTEGRATION = "5" * 24, "6" * 24
RECORDS_BUCKET = "records"


CERTIFICATE = ClientCertificate(digest="d", subject="acme", ends_at=NOW, private_ca=False, fingerprint="f")


class Stack:
    """Tables and keys of a deployed stack.

    Attributes:
        first: The key that seals from now on.
        other: The key that sealed before.
        gone: Keys that no longer open anything.
        chosen: Parameters of the stack.
        deployed_days_ago: When that was.
        on_scan: Called for each page of a scan.
        on_head: Called with the name of each object that was looked at.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.dynamodb = boto3.client("dynamodb")
        self.kms = boto3.client("kms")
        self.first, self.other = (self.kms.create_key()["KeyMetadata"]["Arn"] for _ in range(2))
        self.gone: set[str] = set()
        self.chosen: dict[str, str] = {}
        self.deployed_days_ago = 0
        self.s3 = boto3.client("s3")
        for bucket in (aws.BUCKET, RECORDS_BUCKET):
            self.s3.create_bucket(Bucket=bucket)
            self.encrypts(bucket, self.first)
        self.on_scan: Callable[[], None] = lambda: None
        self.on_head: Callable[[str], None] = lambda _: None

    def run(self, *words: str) -> tuple[int, str]:
        """Run the command; its exit code and what it says."""
        code = run(["--stack", "acme", "reseal", *words])
        printed = self._capsys.readouterr()
        return code, printed.err + printed.out

    def encrypts(self, bucket: str, key: str) -> None:
        """A bucket encrypts with a key from now on."""
        by_default: Any = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
        if key == AWS_OWN:
            by_default = {"SSEAlgorithm": AWS_OWN}
        rules: Any = {"Rules": [{"ApplyServerSideEncryptionByDefault": by_default}]}
        self.s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=rules)

    def keeps(self, bucket: str, name: str, key: str, body: bytes = b"body") -> None:
        """An object that was written when the bucket encrypted with a key."""
        self.s3.put_object(
            Bucket=bucket, Key=name, Body=body, ServerSideEncryption="aws:kms", SSEKMSKeyId=key, ContentType="text/x"
        )

    def encrypted(self) -> dict[str, str]:
        """Which key each object is encrypted with."""
        return {
            each["Key"]: self.s3.head_object(Bucket=bucket, Key=each["Key"]).get("SSEKMSKeyId", AWS_OWN)
            for bucket in (aws.BUCKET, RECORDS_BUCKET)
            for each in self.s3.list_objects_v2(Bucket=bucket).get("Contents", [])
        }

    def vault(self, key: str = "") -> KmsVault:
        """A newly started function's."""
        return KmsVault(self.kms, key or self.first, FakeClock())

    def credentials(self, key: str = "") -> Credentials:
        """A newly started function's."""
        return Credentials(vault=lambda: self.vault(key), clock=FakeClock())

    def content(self) -> dict[str, list[dict[str, Any]]]:
        """Everything in the tables."""
        tables = (aws.CONFIG_TABLE, aws.HUB_TABLE, aws.WEBHOOKS_TABLE)
        return {each: self.dynamodb.scan(TableName=each)["Items"] for each in tables}

    def logged(self) -> str:
        """The attempts in the tables, also those that lie compressed in one item."""
        logs = DynamoDBWebhooksLogs(self.dynamodb, aws.WEBHOOKS_TABLE, FakeClock())
        return str([*logs.attempts(PROJECT, ENDPOINT, KeyRange())])

    def deliveries(self) -> dict[str, Delivery]:
        """The deliveries in the tables, by subscriber."""
        items = self.dynamodb.scan(TableName=aws.MESSAGES_TABLE)["Items"]
        return {each.subscriber_id: each for each in map(decode_delivery, items)}

    def opened(self) -> dict[str, Any]:
        """What functions make of it."""
        credentials, vault, clock = self.credentials(), self.vault(), FakeClock()
        config = DynamoDBConfigStore(self.dynamodb, aws.CONFIG_TABLE, clock, credentials.sealed)
        hub = DynamoDBHubSettings(self.dynamodb, aws.HUB_TABLE, clock, credentials)
        webhooks = DynamoDBWebhooksSettings(self.dynamodb, aws.WEBHOOKS_TABLE, clock, credentials)
        queue = config.queue(PROJECT, "q", fresh=True)
        assert queue is not None
        assert queue.push is not None
        endpoint = webhooks.endpoint(PROJECT, APP, ENDPOINT)
        mapping, integration = hub.mapping(PROJECT, MAPPING), hub.integration(PROJECT, INTEGRATION)
        assert endpoint is not None
        assert mapping is not None
        assert integration is not None
        subscribers = [credentials.opened(PROJECT, queue.push, each) for each in queue.push.subscribers]
        shop = opened(endpoint, credentials)
        return {
            "subscribers": [(each.url, dict(each.headers)) for each in subscribers],
            "signing": [vault.open(PROJECT, each.sealed) for each in queue.push.subscribers if each.sealed],
            "endpoint": (shop.fields.url, dict(shop.headers), vault.open(PROJECT, shop.sealed)),
            "tokens": [token_of(each, PROJECT, credentials) for each in (mapping, integration)],
            "mapping": vault.open(PROJECT, mapping.sealed) if mapping.sealed else b"",
            "gates": [
                (vault.open(PROJECT, each.oauth), each.certificate, vault.open(PROJECT, each.identity))
                for each in (queue.push.subscribers[0], mapping)
            ],
            "parameters": [(each.name, each.value) for each in hub.parameters(PROJECT)],
        }

    def by_other(self, content: bytes) -> bytes:
        """Sealed with the other key."""
        return self.vault(self.other).seal(PROJECT, content)


def an_attempt(number: int, url: str) -> LoggedAttempt:
    """An attempt at the endpoint."""
    return LoggedAttempt(
        project=PROJECT,
        app_id=APP,
        endpoint_id=ENDPOINT,
        engine_id=str(number),
        number=1,
        manual=False,
        url=url,
        status_code=200,
        success=True,
        response="x" * 600 * (number % 2),
        duration_ms=20,
        started_at=NOW + number,
        event_type="a",
        listed_until=(NOW // 1000 + 60) * 1000,
    )


def stored(sort_key: str) -> dict[str, Any]:
    """The key of a project's item."""
    return store_key(PROJECT, sort_key)


def seed(stack: Stack, secrets: list[str], *, key: str) -> None:
    """One of everything that holds a secret.

    Args:
        stack: The stack.
        secrets: Ten of them.
        key: The key that seals it.
    """
    url = f"https://u:{secrets[0]}@a.example/in"
    headers = {"Authorization": secrets[1], "Content-Type": "application/json"}
    signing = stack.by_other(secrets[2].encode())
    queue = Queue(
        project=PROJECT,
        name="q",
        uid="0a1b2c3d4e5f",
        pull_uid="0a1b2c3d4e5f",
        type=QueueType.MULTICAST,
        secret="s",
        created_at=1,
        version=1,
        push=PushSettings(
            subscribers=(
                Subscriber(
                    subscriber_id="a" * 12,
                    name="a",
                    url=url,
                    headers=headers,
                    sealed=signing,
                    oauth=stack.by_other(b"a grant"),
                    certificate=CERTIFICATE,
                    identity=stack.by_other(b"a key"),
                ),
                Subscriber(subscriber_id="b" * 12, name="b", url=f"ironmq://p:{secrets[3]}@h.example/x"),
                Subscriber(subscriber_id="c" * 12, name="c", url="https://c.example/"),
            )
        ),
    )
    endpoint = Endpoint(
        project=PROJECT,
        app_id=APP,
        endpoint_id=ENDPOINT,
        reach=Reach.PROJECT,
        fields=EndpointFields(url=url.replace(secrets[0], secrets[4])),
        headers={"X-Own": secrets[5]},
        sealed=stack.by_other(secrets[6].encode()),
        created_at=1,
        updated_at=1,
    )
    mapping = ServiceMapping(
        mapping_id=MAPPING,
        name="a.b",
        url="https://a.example/b",
        token=secrets[7],
        messages=(),
        sealed=stack.by_other(b"signing"),
        oauth=stack.by_other(b"another grant"),
        certificate=CERTIFICATE,
        identity=stack.by_other(b"another key"),
    )
    integration = Integration(integration_id=INTEGRATION, name="a", url="https://a.example", token=secrets[8])
    parameter = Parameter(project=PROJECT, name="a.key", value=secrets[9], data_type=DataType.STRING, as_of=1)
    application = Application(
        project=PROJECT, app_id=APP, fields=ApplicationFields(name="x"), created_at=1, updated_at=1
    )
    credentials, clock = stack.credentials(key), FakeClock()
    webhooks = DynamoDBWebhooksSettings(stack.dynamodb, aws.WEBHOOKS_TABLE, clock, credentials)
    webhooks.put_application(application, None)
    webhooks.put_endpoint(endpoint, None)
    DynamoDBConfigStore(stack.dynamodb, aws.CONFIG_TABLE, clock, credentials.sealed).create_queue(queue)
    hub = DynamoDBHubSettings(stack.dynamodb, aws.HUB_TABLE, clock, credentials)
    hub.put_mapping(PROJECT, mapping)
    hub.put_integration(PROJECT, integration)
    hub.set_parameter(parameter)


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], Stack]]:
    with_credentials(monkeypatch)
    created: list[Stack] = []

    def answered(operation: str, parameters: dict[str, Any], real: Callable[[], Any]) -> Any:
        if operation == "DescribeStacks":
            outputs = {
                "ConfigTableName": aws.CONFIG_TABLE,
                "MessagesTableName": aws.MESSAGES_TABLE,
                "HubTableName": aws.HUB_TABLE,
                "WebhooksTableName": aws.WEBHOOKS_TABLE,
                "BodiesBucketName": aws.BUCKET,
                "RecordsBucketName": RECORDS_BUCKET,
                "VaultKeyArn": created[-1].first,
            }
            created_at = datetime.now(UTC) - timedelta(days=created[-1].deployed_days_ago)
            return described(outputs, created[-1].chosen, CreationTime=created_at)
        answer = real()
        if operation == "Scan" and created:
            created[-1].on_scan()
        if operation == "HeadObject" and created:
            created[-1].on_head(parameters["Key"])
        if operation == "Decrypt" and answer["KeyId"] in created[-1].gone:
            raise ClientError({"Error": {"Code": "DisabledException"}}, "Decrypt")
        return answer

    answering(monkeypatch, answered)

    def make() -> Stack:
        created.append(Stack(capsys))
        return created[-1]

    with aws.dynamodb():
        yield make


def test_what_another_key_sealed_moves_to_the_first(stack: Callable[[], Stack]) -> None:
    here = stack()
    seed(here, [f"secret-{number}" for number in range(10)], key=here.other)
    before = here.opened()
    code, said = here.run("--dry-run")
    assert (code, here.other in said, "Keep every key" in said) == (1, True, True)
    code, said = here.run()
    assert code == 0
    assert f"It needed {here.other} before this run" in said
    here.gone.add(here.other)
    assert here.opened() == before


def test_headers_of_collectors_are_sealed_with_the_first_key(stack: Callable[[], Stack]) -> None:
    # Given a project that exports spans, with a header that another key sealed, and one without headers
    here = stack()
    config = DynamoDBConfigStore(here.dynamodb, aws.CONFIG_TABLE, FakeClock())
    hidden = {"spans": {"X-Key": "s3cret"}}
    sealed = here.credentials(here.other).seal(PROJECT, hidden)
    export = SpanExport(
        project=PROJECT, url="https://otel.example", headers={"X-Key": "********"}, credentials=sealed, on=False
    )
    config.put_span_export(export)
    plain = SpanExport(project="f" * 24, url="https://otel.example")
    config.put_span_export(plain)
    # When everything is sealed with the first key
    code, said = here.run()
    # Then so is the header, and nothing else has changed
    assert code == 0, said
    after = config.span_export(PROJECT, fresh=True)
    assert after is not None
    assert here.vault().kms_key_of(PROJECT, after.credentials) == here.first
    assert here.credentials().open(PROJECT, after.credentials) == hidden
    assert replace(after, credentials=sealed) == export
    assert config.span_export(plain.project, fresh=True) == plain


def test_what_signs_consumers_tokens_is_sealed_with_the_first_key(stack: Callable[[], Stack]) -> None:
    # Given a signing secret and the one before, which another key sealed
    here = stack()
    table = Table(here.dynamodb, aws.CONFIG_TABLE, FakeClock())
    SigningSecretItem(table, here.vault(here.other), FakeClock()).make(b"a" * 32, b"b" * 32, since=NOW)
    # When everything is sealed with the first key
    code, said = here.run()
    # Then nothing needs the other one, and both sign as before
    assert (code, f"It needed {here.other} before this run" in said) == (0, True)
    here.gone.add(here.other)
    item = SigningSecretItem(table, here.vault(), FakeClock())
    stored = item.read()
    assert stored is not None
    assert (item.opened(stored), stored.since) == ((b"a" * 32, b"b" * 32), NOW)
    # And one that was changed since it was read is left alone, to be done again
    with pytest.raises(Conflict):
        item.reseal(replace(stored, current=here.vault().seal("#signing", b"c" * 32)))


def test_what_sources_keep_is_sealed_with_the_first_key(stack: Callable[[], Stack]) -> None:
    # Given a source that another key sealed, beside an application
    here = stack()
    webhooks = DynamoDBWebhooksSettings(here.dynamodb, aws.WEBHOOKS_TABLE, FakeClock(), here.credentials())
    source = Source(kind="github", verified=True, tokens=(TokenDigest("0a"),), sealed=here.by_other(b"its secret"))
    plain = Application(project=PROJECT, app_id=APP, fields=ApplicationFields(name="x"), created_at=1, updated_at=1)
    webhooks.put_application(plain, None)
    before = webhooks.put_application(replace(plain, app_id=SOURCE, source=source), None)
    # When everything is sealed with the first key
    code, said = here.run()
    # Then so is what the source keeps, and nothing else has changed
    assert code == 0, said
    here.gone.add(here.other)
    after = webhooks.source(PROJECT, SOURCE)
    assert after is not None
    assert after.source is not None
    assert here.vault().open(PROJECT, after.source.sealed) == b"its secret"
    assert replace(after, version=before.version, source=source) == before


def test_an_item_that_changes_meanwhile_is_left_alone_and_named(stack: Callable[[], Stack]) -> None:
    here = stack()
    seed(here, [f"secret-{number}" for number in range(10)], key=here.other)

    def change() -> None:
        here.on_scan = lambda: None
        key = {"pk": {"S": f"P#{PROJECT}"}, "sk": {"S": "QUEUE#q"}}
        here.dynamodb.update_item(
            TableName=aws.CONFIG_TABLE,
            Key=key,
            UpdateExpression="SET #version = #version + :one",
            ExpressionAttributeNames={"#version": "version"},
            ExpressionAttributeValues={":one": {"N": "1"}},
        )

    here.on_scan = change
    code, said = here.run()
    assert (code, f"changed meanwhile: queue q of project {PROJECT}" in said) == (1, True)
    assert here.run()[0] == 0


def test_what_cannot_be_opened_is_named_and_stops_nothing_else(stack: Callable[[], Stack]) -> None:
    here = stack()
    seed(here, [f"secret-{number}" for number in range(10)], key=here.other)
    here.gone.add(here.other)
    content = here.content()
    code, said = here.run()
    assert (code, said.count("not possible: "), "Keep every key" in said) == (1, 5, True)
    assert here.content() == content


def test_an_item_that_cannot_be_read_is_named_and_stops_nothing_else(stack: Callable[[], Stack]) -> None:
    # Given items of each kind sealed with another key, and beside them some that nobody can read
    here = stack()
    seed(here, [f"secret-{number}" for number in range(10)], key=here.other)
    damaged = {
        aws.CONFIG_TABLE: ((f"P#{PROJECT}", "QUEUE#0"), (f"P#{PROJECT}", "SPANS")),
        aws.HUB_TABLE: ((f"P#{PROJECT}", "MAPPING#0"), (f"P#{PROJECT}", "INTEGRATION#0")),
        aws.WEBHOOKS_TABLE: ((f"A#{PROJECT}#{APP}", "EP#0"), (f"P#{PROJECT}", "APP#src_0")),
    }
    for table, keys in damaged.items():
        for pk, sk in keys:
            item = {"pk": {"S": pk}, "sk": {"S": sk}, "push": {"S": "{"}, "doc": {"S": "{"}}
            here.dynamodb.put_item(TableName=table, Item=item)
    # When it runs, then they are named, and all others are sealed with the first key
    code, said = here.run()
    assert (code, said.count("It cannot be read")) == (1, 6)
    assert f"item P#{PROJECT} MAPPING#0" in said
    here.gone.add(here.other)
    assert here.run()[1].count("not possible: ") == 6


LASTING = {
    f"hub/{PROJECT}/{'1' * 24}": aws.BUCKET,
    f"hub/{PROJECT}/{'2' * 24}": aws.BUCKET,
    "settled/2026.jsonl": RECORDS_BUCKET,
}
"""Objects that no rule of their bucket ends."""


def test_objects_that_never_expire_are_encrypted_with_the_present_key(stack: Callable[[], Stack]) -> None:
    # Given objects from when another key encrypted, some of which end by themselves, and one from since
    here = stack()
    for name, bucket in LASTING.items():
        here.keeps(bucket, name, here.other, name.encode())
    here.keeps(aws.BUCKET, f"bodies/{PROJECT}/1", here.other)
    here.keeps(aws.BUCKET, f"hub/{PROJECT}/new", here.first)
    before = here.encrypted()
    # A dry run says how many, and changes nothing
    code, said = here.run("--dry-run")
    assert (code, "to be encrypted anew: 3." in said, "Keep every key" in said) == (1, True, True)
    assert here.encrypted() == before
    # When it is run, then they need the present key only, and are what they were
    code, said = here.run()
    assert (code, "4 objects never expire; encrypted anew: 3." in said) == (0, True), said
    assert f"It needed {here.other} before this run" in said
    assert here.encrypted() == before | dict.fromkeys(LASTING, here.first)
    for name, bucket in LASTING.items():
        found = here.s3.get_object(Bucket=bucket, Key=name)
        assert (found["Body"].read(), found["ContentType"]) == (name.encode(), "text/x")
    # And there is nothing left to do
    code, said = here.run()
    assert (code, "encrypted anew: 0." in said, here.other in said) == (0, True, False)


def test_an_interrupted_run_goes_on_with_what_is_left(
    stack: Callable[[], Stack], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a run that S3 stopped at the second object
    here = stack()
    for name, bucket in LASTING.items():
        here.keeps(bucket, name, here.other)
    copied: list[str] = []

    def answered(operation: str, parameters: dict[str, Any], real: Callable[[], Any]) -> Any:
        if operation == "CopyObject":
            copied.append(parameters["Key"])
            if len(copied) > 1:
                raise ClientError({"Error": {"Code": "SlowDown"}}, operation)
        return real()

    with monkeypatch.context() as slow:
        answering(slow, answered)
        code, said = here.run()
    assert (code, said.count("not possible: "), "Keep every key" in said) == (1, 2, True), said
    # When it is run again, then the others are done
    code, said = here.run()
    assert (code, "encrypted anew: 2." in said) == (0, True), said
    assert set(here.encrypted().values()) == {here.first}


def test_an_object_that_was_removed_meanwhile_does_not_come_back(stack: Callable[[], Stack]) -> None:
    here = stack()
    for name, bucket in LASTING.items():
        here.keeps(bucket, name, here.other)
    first = next(iter(LASTING))

    def expunge(name: str) -> None:
        if name == first:
            here.s3.delete_object(Bucket=aws.BUCKET, Key=name)

    here.on_head = expunge
    code, said = here.run()
    assert (code, "encrypted anew: 2." in said) == (0, True), said
    assert here.encrypted().keys() == LASTING.keys() - {first}


def test_without_a_key_of_your_own_objects_are_encrypted_with_s3s(stack: Callable[[], Stack]) -> None:
    here = stack()
    for name, bucket in LASTING.items():
        here.keeps(bucket, name, here.other)
        here.encrypts(bucket, AWS_OWN)
    assert here.run()[0] == 0
    assert set(here.encrypted().values()) == {AWS_OWN}


def test_the_reports_files_are_to_be_uploaded_again(stack: Callable[[], Stack]) -> None:
    here = stack()
    here.keeps(RECORDS_BUCKET, "jobs/report.py", here.other)
    code, said = here.run()
    assert (code, "make report-upload" in said) == (1, True)
    here.keeps(RECORDS_BUCKET, "jobs/report.py", here.first)
    assert here.run()[0] == 0
