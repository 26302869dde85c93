"""``pushhub projects export`` and ``import``: everything of a project comes to another stack, whatever cuts it off."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import botocore.client
import pytest
from cli.__main__ import run
from cli.archive import exporting
from cli.archive.carried import MANIFEST, Folder
from cli.archive.erasing import SETTLED_MS
from cli.archive.holdings import BODIES, TABLES, moving
from cli.archive.importing import Importing
from tests.cli.deployment import answering
from tests.cloud import aws_services as aws
from tests.operating import test_erasing
from tests.operating.stored_items import content
from tests.operating.test_erasing import DAY, NAMES, NOW, OTHER, OUTPUTS, RECORDS_BUCKET, Hub, Killed

from pushhub.base.gates import ClientCertificate
from pushhub.base.oauth import POST, Grant
from pushhub.base.times import iso_time
from pushhub.cloud.audit_trail import S3AuditTrail
from pushhub.cloud.clock import SystemClock
from pushhub.cloud.vault import MARK, KmsVault
from pushhub.engine.ends import EndNote
from pushhub.engine.model.queue import PushSettings, Queue, QueueType, Subscriber
from pushhub.engine.model.reach import Reach
from pushhub.engine.security.credentials import Credentials
from pushhub.engine.security.gates import grant_of, identity_of
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore
from pushhub.engine.store.dynamodb_ends import DynamoDBEndNotes, of_protocol
from pushhub.engine.store.dynamodb_messages import RESTORED
from pushhub.engine.store.dynamodb_schedule import LEAST_MINUTES_AHEAD, MINUTE_MS
from pushhub.hub.model.mapping import ServiceMapping
from pushhub.hub.store.dynamodb_settings import DynamoDBHubSettings
from pushhub.webhooks.model.application import Application, ApplicationFields
from pushhub.webhooks.model.endpoint import Endpoint, EndpointFields
from pushhub.webhooks.store.dynamodb_settings import DynamoDBWebhooksSettings

hub = test_erasing.hub

APP, ENDPOINT = "app_2srOrx2ZWZBpBUvZwXKQmoEYga2", "ep_2srOrx2ZWZBpBUvZwXKQmoEYga2"
SECRET = b"whsec_opened"
STREAMED = {"MessagesTable", "PullTable", "BacklogsTable"}


class Mover:
    """The stack, a project in it that is silent, and another key for whatever is imported."""

    def __init__(self, hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hub = hub
        self.folder = folder
        self.kms: Any = boto3.client("kms")
        self.key, self.other = (self.kms.create_key()["KeyMetadata"]["Arn"] for _ in range(2))
        monkeypatch.setitem(OUTPUTS, "VaultKeyArn", self.key)
        self._patch = monkeypatch
        self.lost_keys: set[str] = set()

        def answered(operation: str, parameters: dict[str, Any], real: Callable[[], Any]) -> Any:
            try:
                answer = real()
            except botocore.exceptions.ClientError:
                # What AWS says of a text that KMS has not made
                refused: Any = {"Error": {"Code": "InvalidCiphertextException"}}
                if operation != "Decrypt":
                    raise
                raise botocore.exceptions.ClientError(refused, operation) from None
            if operation == "Decrypt" and answer["KeyId"] in self.lost_keys:
                raise botocore.exceptions.ClientError({"Error": {"Code": "AccessDeniedException"}}, operation)
            return answer

        answering(monkeypatch, answered)
        sealed = self.vault(self.key).seal(hub.project, SECRET)
        in_text = base64.b64encode(sealed).decode()
        self.put("HubTable", f"P#{hub.project}", "PARAMETER#1", sealed={"B": sealed}, list={"L": [{"B": sealed}]})
        self.put("WebhooksTable", f"P#{hub.project}", "ANSWER", doc={"S": json.dumps({"a": in_text, "b": [1]})})
        # What a stranger wrote and only looks sealed
        self.put("HubTable", f"{hub.project}#M#2", "ANSWER", body={"B": MARK + b" and so on" + b"x" * 60})
        self.put("MessagesTable", f"{hub.project}#uid#2", "M", kind={"S": "message"}, body={"B": b"\0\xff"})
        self.put("MessagesTable", f"{hub.project}#uid#2", "D#s", kind={"S": "delivery"}, n={"N": "1.50"})
        S3AuditTrail(hub.s3, RECORDS_BUCKET).append(hub.project, iso_time(hub.now), "1", {"id": "1"})
        assert run(["--stack", "acme", "projects", "suspend", hub.project]) == 0
        hub.now += SETTLED_MS
        hub._capsys.readouterr()

    def vault(self, key: str) -> KmsVault:
        return KmsVault(self.kms, key, SystemClock())

    def put(self, name: str, pk: str, sk: str, **attributes: Any) -> None:
        created = content(name, pk, sk) | {"pk": {"S": pk}, "sk": {"S": sk}, **attributes}
        self.hub.dynamodb.put_item(TableName=NAMES[name], Item=created)

    def items(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        """What of the project moves."""
        return {
            (name, each["pk"]["S"], each["sk"]["S"]): each
            for name in TABLES
            for each in self.hub.all(name)
            if moving(name, each, self.hub.project)
        }

    def exports(self, *words: str, code: int = 0) -> dict[str, int]:
        words = ("--stack", "acme", "--json", "projects", "export", self.hub.project, str(self.folder), *words)
        assert run([*words]) == code, self.hub._capsys.readouterr()
        out = self.hub._capsys.readouterr().out
        return {each["place"]: each["exported"] for each in json.loads(out)} if out else {}

    def imports(self, *words: str, code: int = 0) -> tuple[dict[str, tuple[int, int]], str]:
        command = ["--stack", "acme", "--json", "projects", "import", str(self.folder), *words]
        assert run(command) == code, self.hub._capsys.readouterr()
        said = self.hub._capsys.readouterr()
        rows = json.loads(said.out) if said.out else []
        return {
            each["place"]: (each["exported"], each.get("imported", 0)) for each in rows if "imported" in each
        }, said.err

    def leaves(self) -> None:
        """The stack becomes another one: nothing is there, and another key seals."""
        for name in TABLES:
            for each in self.hub.all(name):
                key = {"pk": each["pk"], "sk": each["sk"]}
                self.hub.dynamodb.delete_item(TableName=NAMES[name], Key=key)
        for bucket in (aws.BUCKET, RECORDS_BUCKET):
            for each in self.hub.s3.list_object_versions(Bucket=bucket).get("Versions", []):
                self.hub.s3.delete_object(Bucket=bucket, Key=each["Key"], VersionId=each["VersionId"])
        self._patch.setitem(OUTPUTS, "VaultKeyArn", self.other)
        self.lost_keys.add(self.key)


@pytest.fixture
def mover(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mover:
    return Mover(hub, tmp_path / "acme", monkeypatch)


def bodies_of(hub: Hub) -> dict[str, list[bytes]]:
    return {key: each for key, each in hub.stored(aws.BUCKET).items() if hub.project in key}


def records_of(hub: Hub) -> list[str]:
    lines = (
        line
        for key, [body] in hub.stored(RECORDS_BUCKET).items()
        if key.startswith("records/dt=")
        for line in body.splitlines()
    )
    return sorted(line.decode() for line in lines if json.loads(line)["project"] == hub.project)


def plain(item: dict[str, Any]) -> dict[str, Any]:
    """An item without what an import changes, but for sealed values."""
    return {name: each for name, each in item.items() if name not in (RESTORED, "sealed", "list", "doc")}


def write_records(hub: Hub) -> None:
    lines = [
        {"project": project, "record_id": f"{project}/{number}", "queue": "q"}
        for number in range(3)
        for project in (hub.project, OTHER)
    ]
    # A batch that was recorded twice
    for name, some in (("messages-1-6-6", lines), ("messages-1-3-3", lines[:3])):
        body = gzip.compress("".join(json.dumps(each) + "\n" for each in some).encode())
        hub.s3.put_object(Bucket=RECORDS_BUCKET, Key=f"records/dt={DAY}/hour=05/{name}.json.gz", Body=body)
    hub.s3.delete_object(Bucket=RECORDS_BUCKET, Key=f"records/dt={DAY}/{hub.raw}")
    for each in hub.s3.list_object_versions(Bucket=RECORDS_BUCKET).get("Versions", []):
        if each["Key"].endswith(hub.raw):
            hub.s3.delete_object(Bucket=RECORDS_BUCKET, Key=each["Key"], VersionId=each["VersionId"])


def test_everything_of_a_project_comes_to_another_stack_with_the_same_ids(mover: Mover, hub: Hub) -> None:
    write_records(hub)
    before, bodies = mover.items(), bodies_of(hub)
    # When it is exported with its keys, and imported where nothing is, and where another key seals
    exported = mover.exports("--with-keys")
    mover.leaves()
    done, _ = mover.imports()
    # Then every item is as it was, and the waits that were due meanwhile are due soon
    after = mover.items()
    soonest = hub.now // MINUTE_MS + LEAST_MINUTES_AHEAD
    waits = [key for key in after if key not in before]
    assert [(key[0], int(key[1].partition("#")[0]) > soonest) for key in waits] == [("ScheduleTable", True)]
    assert len(after) == len(before)
    for key, item in before.items():
        if key in after:
            assert plain(after[key]) == plain(item)
    # And streams' readers are told that items are not new
    assert {key[0] for key, item in after.items() if RESTORED in item} == STREAMED
    assert all(RESTORED in item for key, item in after.items() if key[0] in STREAMED)
    # And what was sealed opens with the key of this stack
    vault = mover.vault(mover.other)
    parameter = after["HubTable", f"P#{hub.project}", "PARAMETER#1"]
    assert vault.open(hub.project, parameter["sealed"]["B"]) == SECRET
    assert vault.open(hub.project, parameter["list"]["L"][0]["B"]) == SECRET
    document = json.loads(after["WebhooksTable", f"P#{hub.project}", "ANSWER"]["doc"]["S"])
    assert vault.open(hub.project, base64.b64decode(document["a"])) == SECRET
    # And bodies, records without those that were there twice, and changes are there, and nothing of anybody else
    assert bodies_of(hub) == bodies
    assert len(bodies) == len(BODIES)
    assert [json.loads(each)["record_id"] for each in records_of(hub)] == [f"{hub.project}/{n}" for n in range(3)]
    assert [*S3AuditTrail(hub.s3, RECORDS_BUCKET).read(hub.project, DAY, "9")] == [{"id": "1"}]
    assert OTHER not in {key.split("/")[1] for key in hub.stored(aws.BUCKET)}
    # And the counts say so
    assert done == {place: (count, count) for place, count in exported.items()}
    assert sum(exported[name] for name in TABLES) == len(before)
    assert (exported["bodies"], exported["records"], exported["audit"]) == (len(BODIES), 3, 1)


def test_of_an_imported_project_nothing_is_left_when_it_is_deleted_not_even_in_names(mover: Mover, hub: Hub) -> None:
    write_records(hub)
    mover.exports("--with-keys")
    mover.leaves()
    mover.imports()
    assert any(hub.project.encode() in body for [body] in hub.stored(RECORDS_BUCKET).values())
    hub.delete()
    hub.now += SETTLED_MS
    hub.delete(code=0)
    for bucket in (aws.BUCKET, RECORDS_BUCKET):
        named = [
            key for key, kept in hub.stored(bucket).items() if hub.project.encode() in b"".join((key.encode(), *kept))
        ]
        assert named == []


def test_wherever_an_export_or_an_import_is_killed_the_next_run_goes_on(
    mover: Mover, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "PART_PAGES", 1)
    for number in range(40):
        mover.put("PullTable", f"{hub.project}#uid#{number}", "0#1", body={"S": "x" * 100_000})
    before = mover.items()
    # Given an export that is killed at each file that it writes
    written: list[str] = []
    real = Folder.write

    def dies(folder: Folder, name: str, content: bytes) -> None:
        if name not in written and not name.endswith("begun.json"):
            written.append(name)
            (folder.path / name).parent.mkdir(parents=True, exist_ok=True)
            (folder.path / name).with_name(f".{Path(name).name}.unfinished").write_bytes(content[:9])
            raise Killed
        real(folder, name, content)

    monkeypatch.setattr(Folder, "write", dies)
    for _ in range(200):
        try:
            mover.exports("--with-keys")
        except Killed:
            continue
        break
    assert len(written) > 15
    monkeypatch.setattr(Folder, "write", real)
    # When it is imported, which is killed after one, two or three writes, again and again
    mover.leaves()
    killed = 0
    for number in range(200):
        hub.calls.clear()
        hub.dies_after = number % 4
        try:
            done, _ = mover.imports()
        except Killed:
            killed += 1
            continue
        break
    # Then everything is there once
    assert killed > 10
    assert {key for key in before if key[0] != "ScheduleTable"} == {
        key for key in mover.items() if key[0] != "ScheduleTable"
    }
    assert len(mover.items()) == len(before)
    assert all(exported == imported for exported, imported in done.values())


def test_deliveries_come_before_their_messages_and_waits_after_both(
    mover: Mover, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    mover.exports("--with-keys")
    mover.leaves()
    put: list[str] = []

    def answered(operation: str, parameters: dict[str, Any], real: Callable[[], Any]) -> Any:
        if operation == "BatchWriteItem":
            for table, writes in parameters["RequestItems"].items():
                put.extend(f"{table} {each['PutRequest']['Item']['sk']['S']}" for each in writes)
        if operation == "PutItem":
            put.append(f"{parameters['TableName']} {parameters['Item']['sk']['S']}")
        return real()

    answering(monkeypatch, answered)
    mover.imports()
    project, delivery, message = (
        put.index(f"{NAMES[name]} {sk}")
        for name, sk in (("ConfigTable", "PROJECT"), ("MessagesTable", "D#s"), ("MessagesTable", "M"))
    )
    last_message = len(put) - 1 - put[::-1].index(f"{NAMES['MessagesTable']} M")
    first_wait = next(place for place, each in enumerate(put) if each.startswith(NAMES["ScheduleTable"]))
    assert project == 0
    assert delivery < last_message < first_wait
    assert message <= last_message


def test_what_still_changes_is_not_exported_unless_asked_for(mover: Mover, hub: Hub) -> None:
    hub.now -= 1
    mover.exports(code=1)
    assert not mover.folder.exists()
    assert mover.exports("--running")["ConfigTable"] > 0


@pytest.mark.parametrize("rehearsal", [True, False])
def test_what_was_exported_before_it_changed_is_not_taken_for_what_it_is_now(
    mover: Mover, hub: Hub, rehearsal: bool
) -> None:
    # Given an export made while the project was running, or before it was resumed for a while
    if rehearsal:
        hub.now -= 1
        mover.exports("--running")
        hub.now += 1
    else:
        mover.exports()
        assert run(["--stack", "acme", "projects", "resume", hub.project]) == 0
        assert run(["--stack", "acme", "projects", "suspend", hub.project]) == 0
        hub.now += SETTLED_MS
        hub._capsys.readouterr()
    mover.put("MessagesTable", f"{hub.project}#uid#3", "M", kind={"S": "message"})
    # When it is exported into the same folder again, then that is refused, as most would be from before
    mover.exports(code=1)
    # And another folder has everything
    mover.folder = mover.folder.with_name("again")
    before = len([key for key in mover.items() if key[0] == "MessagesTable"])
    assert mover.exports()["MessagesTable"] == before


def test_without_keys_what_is_sealed_opens_only_where_the_key_is(mover: Mover, hub: Hub) -> None:
    mover.exports()
    assert SECRET.decode() not in "".join(
        str(Folder(mover.folder).lines(each)) for each in Folder(mover.folder).parts("HubTable")
    )
    mover.leaves()
    # Where it is not, nothing is written
    _, said = mover.imports(code=1)
    assert "--with-keys" in said
    assert all(hub.all(name) == [] for name in TABLES)
    # Where it is, it is sealed with the first key
    mover.lost_keys.clear()
    mover.imports()
    sealed = mover.items()["HubTable", f"P#{hub.project}", "PARAMETER#1"]["sealed"]["B"]
    mover.lost_keys.add(mover.key)
    assert mover.vault(mover.other).open(hub.project, sealed) == SECRET


GRANT = Grant(token_url="https://login.example/t", method=POST, client_id="c", secret="s3cret", revision="1")
PEM = ["-----BEGIN KEY of the client-----", "-----BEGIN CERTIFICATE of the authority-----"]
CERTIFICATE = ClientCertificate(digest="d", subject="acme", ends_at=NOW + 9, private_ca=True, fingerprint="f")
SIGNED = b'{"schemes": "the keys of schemes"}'


class Behind:
    """A queue's subscriber, a store's service and an endpoint behind gates, as functions store and read them."""

    def __init__(self, mover: Mover, key: str) -> None:
        self._mover, self._project, self._vault = mover, mover.hub.project, mover.vault(key)
        clock, dynamodb = SystemClock(), mover.hub.dynamodb
        credentials = Credentials(vault=lambda: self._vault, clock=clock)
        self.queues = DynamoDBConfigStore(dynamodb, aws.CONFIG_TABLE, clock, credentials.sealed)
        self.stores = DynamoDBHubSettings(dynamodb, aws.HUB_TABLE, clock, credentials)
        self.webhooks = DynamoDBWebhooksSettings(dynamodb, aws.WEBHOOKS_TABLE, clock, credentials)
        self.ends = DynamoDBEndNotes(dynamodb, aws.SCHEDULE_TABLE, clock, of_protocol("ironmq"))

    def store(self) -> None:
        seal = partial(self._vault.seal, self._project)
        gates: dict[str, Any] = {"oauth": seal(GRANT.encode()), "certificate": CERTIFICATE}
        gates |= {"identity": seal(json.dumps(PEM).encode()), "sealed": seal(SIGNED)}
        subscriber = Subscriber(subscriber_id="a" * 12, name="a", url="https://a.example/in", **gates)
        push = PushSettings(
            subscribers=(subscriber, Subscriber(subscriber_id="b" * 12, name="b", url="https://b.example"))
        )
        ids: dict[str, Any] = {
            "name": "gated",
            "uid": "0a1b2c3d4e5f",
            "pull_uid": "0a1b2c3d4e5f",
            "secret": "s",
            "created_at": 1,
        }
        self.queues.create_queue(Queue(project=self._project, type=QueueType.MULTICAST, version=1, push=push, **ids))
        service = ServiceMapping(
            mapping_id="5" * 24, name="a.b", url="https://a.example/b", token="t", messages=(), **gates
        )
        self.stores.put_mapping(self._project, service)
        application = Application(
            project=self._project, app_id=APP, fields=ApplicationFields(name="x"), created_at=1, updated_at=1
        )
        self.webhooks.put_application(application, None)
        endpoint = Endpoint(
            project=self._project,
            app_id=APP,
            endpoint_id=ENDPOINT,
            reach=Reach.PROJECT,
            fields=EndpointFields(url="https://a.example/in"),
            headers={},
            created_at=1,
            updated_at=1,
            **gates,
        )
        self.webhooks.put_endpoint(endpoint, None)
        self.ends.note_end(EndNote(NOW + 1, self._project, "gated", subscriber.subscriber_id, CERTIFICATE.digest))

    def found(self) -> list[Any]:
        """What each is asked for by whom, how tokens are obtained, what it is sent with, and how it is signed."""
        queue = self.queues.queue(self._project, "gated", fresh=True)
        assert queue is not None
        assert queue.push is not None
        subscriber, plain = queue.push.subscribers
        service = self.stores.mapping(self._project, "5" * 24)
        endpoint = self.webhooks.endpoint(self._project, APP, ENDPOINT)
        assert service is not None
        assert endpoint is not None
        behind: list[tuple[str, Any]] = [
            (subscriber.subscriber_id, subscriber),
            (service.mapping_id, service),
            (ENDPOINT, endpoint),
        ]
        ends = [each for each in self.ends.due_ends(NOW + 1) if each.subscriber_id == subscriber.subscriber_id]
        reported: list[Any] = [queue.uid, plain, ends]
        for name, each in behind:
            opened = [grant_of(self._project, each, self._vault), identity_of(self._project, name, each, self._vault)]
            reported.append((name, each.certificate, *opened, self._vault.open(self._project, each.sealed)))
        return reported


@pytest.mark.parametrize("words", [(), ("--with-keys",)])
def test_who_is_behind_gates_stays_behind_them(mover: Mover, words: tuple[str, ...]) -> None:
    # Given a subscriber, a service and an endpoint with tokens, client certificates and schemes
    before = Behind(mover, mover.key)
    before.store()
    expected = before.found()
    assert (len(expected[2]), [each[2].secret for each in expected[3:]]) == (1, ["s3cret"] * 3)
    # When they are exported, with keys or to where the key is, and imported where another key seals
    mover.exports(*words)
    files = b"".join(gzip.decompress(each.read_bytes()) for each in mover.folder.rglob("*.gz")).decode()
    assert [base64.b64encode(each).decode() in files for each in (SIGNED, GRANT.encode())] == [bool(words)] * 2
    mover.leaves()
    if not words:
        mover.lost_keys.clear()
    mover.imports()
    # Then all is the same, opens with the other key alone, and the warnings of the certificate's end are due as before
    mover.lost_keys.add(mover.key)
    assert Behind(mover, mover.other).found() == expected


@pytest.mark.parametrize("damage", ["changed", "missing", "more", "unfinished"])
def test_an_export_that_is_not_whole_is_not_imported(mover: Mover, hub: Hub, damage: str) -> None:
    mover.exports("--with-keys")
    folder = Folder(mover.folder)
    part = mover.folder / folder.parts("MessagesTable")[0]
    if damage == "changed":
        part.write_bytes(part.read_bytes() + b"\0")
    elif damage == "missing":
        part.unlink()
    elif damage == "more":
        folder.write("bodies/bodies/x", b"")
    else:
        (mover.folder / MANIFEST).unlink()
    mover.leaves()
    mover.imports(code=1)
    assert all(hub.all(name) == [] for name in TABLES)


def test_a_project_that_is_there_is_not_written_over(mover: Mover, hub: Hub) -> None:
    mover.exports("--with-keys")
    before = mover.items()
    _, said = mover.imports(code=1)
    assert "already" in said
    assert mover.items() == before
    # One that was imported and resumed, neither
    mover.leaves()
    mover.imports()
    assert run(["--stack", "acme", "projects", "resume", hub.project]) == 0
    hub._capsys.readouterr()
    _, said = mover.imports(code=1)
    assert "already" in said


@pytest.mark.parametrize("change", ["SET erased_since = :now", "REMOVE suspended_at"])
def test_a_project_that_is_deleted_or_resumed_while_its_import_goes_on_stays_so(
    mover: Mover, hub: Hub, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    # Given an import that was killed before it kept what it has written
    mover.exports("--with-keys")
    mover.leaves()
    mover.imports()
    [kept] = mover.folder.glob("imported-*")
    kept.write_text(json.dumps({"project": hub.project}))
    key = {"pk": {"S": f"P#{hub.project}"}, "sk": {"S": "PROJECT"}}
    put = Importing._put

    def crossed(importing: Importing, *given: Any) -> int:
        monkeypatch.setattr(Importing, "_put", put)
        values = {":now": {"N": "1"}} if ":now" in change else {}
        hub.dynamodb.update_item(
            TableName=NAMES["ConfigTable"],
            Key=key,
            UpdateExpression=change,
            **({"ExpressionAttributeValues": values} if values else {}),
        )
        return put(importing, *given)

    # When its owner deletes or resumes it, after the next run has looked for it
    monkeypatch.setattr(Importing, "_put", crossed)
    _, said = mover.imports(code=1)
    # Then it stays as it is
    assert "already" in said
    found = {each["sk"]["S"]: each for each in hub.all("ConfigTable") if each["pk"] == key["pk"]}["PROJECT"]
    assert ("erased_since" in found, "suspended_at" in found) == (":now" in change, ":now" in change)


def test_what_was_written_into_a_stack_counts_for_no_other_of_that_name(mover: Mover, hub: Hub) -> None:
    # Given an import that is done
    mover.exports("--with-keys")
    mover.leaves()
    mover.imports()
    # Then what is written is kept by the name of the bucket, which no other stack has
    [kept] = mover.folder.glob("imported-*")
    assert kept.name == f"imported-{aws.BUCKET}.json"
    # And a project that another stack has by half is not taken for one that is whole
    kept.rename(kept.with_name("imported-of-another.json"))
    _, said = mover.imports(code=1)
    assert "already" in said


def test_a_folder_holds_one_export_that_only_its_owner_reads(mover: Mover, hub: Hub) -> None:
    mover.exports("--with-keys")
    assert {each.stat().st_mode & 0o777 for each in mover.folder.rglob("*") if each.is_file()} == {0o600}
    mover.exports(code=1)
    (mover.folder / "begun.json").unlink()
    mover.exports(code=1)


def test_a_dry_run_says_what_would_come_and_writes_nothing(mover: Mover, hub: Hub) -> None:
    mover.exports("--with-keys")
    mover.leaves()
    mover.imports("--dry-run")
    assert all(hub.all(name) == [] for name in TABLES)
    assert not [*mover.folder.glob("imported-*")]
