"""``pushhub projects delete``: everything of a project goes, nothing of another, whatever cuts it off."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from weakref import WeakSet

import boto3
import pytest
from cli.__main__ import run
from cli.archive.erasing import NOTED_PROJECTS, NOTES, SETTLED_MS, TAKEN_OUT, Erasing
from cli.archive.holdings import BODIES, NOBODY, RECORDS, TABLES, owner
from cli.side_by_side import AT_ONCE
from tests.cli.deployment import answering, described, with_credentials
from tests.cloud import aws_services as aws
from tests.notifications.store import aws_notifications
from tests.operating.stored_items import content

from pushhub.base.times import iso_time
from pushhub.cloud.clock import SystemClock
from pushhub.engine.projects.projects import Projects
from pushhub.engine.store.dynamodb_config import DynamoDBConfigStore
from pushhub.engine.store.s3_bodies import S3BodyStore

OTHER = "ffffffffffffffffffffffff"
NOW = 1_795_000_000_000
RECORDS_BUCKET, DAY = "records", iso_time(NOW)[:10]
NAMES = {
    "ConfigTable": aws.CONFIG_TABLE,
    "MessagesTable": aws.MESSAGES_TABLE,
    "ScheduleTable": aws.SCHEDULE_TABLE,
    "PullTable": aws.PULL_TABLE,
    "HubTable": aws.HUB_TABLE,
    "BacklogsTable": aws_notifications.BACKLOGS_TABLE,
    "WebhooksTable": aws.WEBHOOKS_TABLE,
}
OUTPUTS = {f"{name}Name": table for name, table in NAMES.items()} | {
    "BodiesBucketName": aws.BUCKET,
    "RecordsBucketName": RECORDS_BUCKET,
    "NotifyFunctionName": "notify",
}
ITEMS = [
    ("ConfigTable", "P#{p}", "QUEUE#q", {}),
    ("ConfigTable", "T#{h}", "TOKEN", {"project": "{p}"}),
    ("ConfigTable", "ALERTS", "{p}#0123456789ab", {}),
    ("MessagesTable", "{p}#uid#1", "M", {}),
    ("MessagesTable", "{p}#uid#1", "D#s0", {}),
    ("ScheduleTable", "HEALTH#{p}#3", "uid#s0", {}),
    ("ScheduleTable", "ACTIVITY#{p}", "2026-11-20T05:00:00Z", {}),
    ("ScheduleTable", "LISTED#{p}#20800", "2-1#b", {}),
    ("ScheduleTable", "VALUES#{p}#20800#0#0", "2-1#b", {}),
    ("ScheduleTable", "LEVELS#{p}", "20800#0#all", {}),
    ("ScheduleTable", "TOKEN#{p}#1", "app_1#ep_1", {}),
    ("ScheduleTable", "ENDS#ironmq", "001795000000000#{p}#q#s0#d", {}),
    ("ScheduleTable", "CIRCUITS#3", "{p}#uid#s0", {}),
    ("ScheduleTable", "SLOW", "001795000000000#{p}#uid#s0", {}),
    ("ScheduleTable", "29916666#7", "001795000000000#{p}#uid#1#s0#1", {}),
    ("PullTable", "{p}#uid#~0", "0#1", {}),
    ("HubTable", "P#{p}", "MAPPING#1", {}),
    ("HubTable", "{p}#M#1", "ENTRY", {}),
    ("BacklogsTable", "{p}#T#p#orders", "HEAD", {}),
    ("ConfigTable", "P#{p}", "WAIT#3", {}),
    ("BacklogsTable", "C#a1b2-{p}", "C", {"topic": "{p}#T#p#orders"}),
    ("WebhooksTable", "P#{p}", "APP#app_1", {}),
    ("WebhooksTable", "T#{p}#ep_1", "T#1", {}),
    ("WebhooksTable", "FRAME#{p}#app_1", "FRAME", {}),
    ("WebhooksTable", "ENDS", "001795000000000#{p}#app_1#ep_1#d", {}),
    ("WebhooksTable", "SCHEME-ENDS", "001795000000000#{p}#app_1#ep_1#d", {}),
    ("WebhooksTable", "RUNNING", "{p}#qtask_1", {}),
    ("WebhooksTable", "RUNNING-TURNS", "{p}", {}),
    ("ScheduleTable", "PAST#{p}", "S#1", {}),
]
"""An item of each kind, with the project as ``{p}``."""
SHARED = [
    ("ConfigTable", "WORKERS", "COUNTER"),
    ("ConfigTable", "CHANGES", "NOTES"),
    ("ScheduleTable", "POSITION#03", "POSITION"),
    *((name, "pulse#2026-11-21T05:35:00.000Z", "pulse") for name in ("MessagesTable", "PullTable", "BacklogsTable")),
]


def item(pk: str, sk: str, attributes: dict[str, str], project: str) -> dict[str, Any]:
    created = {"pk": pk, "sk": sk, **attributes}
    return {
        name: {"S": value.replace("{p}", project).replace("{h}", sha256(project.encode()).hexdigest())}
        for name, value in created.items()
    }


class Hub:
    """A stack whose tables and buckets hold the same for two projects; each also names the other one."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.now = NOW
        self.calls: list[str] = []
        self.dies_after: int | None = None
        self.nights = 0
        self.dates: dict[str, datetime] = {}
        self.dynamodb: Any = boto3.client("dynamodb")
        self.s3: Any = boto3.client("s3")
        for bucket in (aws.BUCKET, RECORDS_BUCKET):
            self.s3.create_bucket(Bucket=bucket)
        self.s3.put_bucket_versioning(Bucket=RECORDS_BUCKET, VersioningConfiguration={"Status": "Enabled"})
        store = DynamoDBConfigStore(self.dynamodb, aws.CONFIG_TABLE, SystemClock())
        projects = Projects(config=store, clock=SystemClock())
        self.project = projects.make("Acme").project_id
        projects.make_token(self.project)
        for project, neighbour in ((self.project, OTHER), (OTHER, self.project)):
            for name, pk, sk, attributes in ITEMS:
                created = item(pk, sk, attributes, project)
                self.dynamodb.put_item(TableName=NAMES[name], Item=content(name, pk, sk) | created)
            self.put("MessagesTable", f"{project}#{neighbour}#1", "M")
            for area in BODIES:
                S3BodyStore(self.s3, aws.BUCKET, area).put(project, [b"secret"], self.now)
        for name, pk, sk in SHARED:
            self.put(name, pk, sk)
        self.raw = "hour=05/messages-1-2-4.json.gz"
        self.write_records(f"records/dt={DAY}/{self.raw}", [self.project, OTHER, OTHER, self.project])
        self.write_records(f"records/dt={DAY}/hour=06/messages-3-4-1.json.gz", [OTHER])

    def date(self, operation: str, parameters: dict[str, Any], answer: Any) -> None:
        """Objects are a second younger than those that were written before them, however fast they were written."""
        if operation == "PutObject":
            self.dates[parameters["Key"]] = datetime.fromtimestamp(len(self.dates) + self.now // 1000, UTC)
        if operation == "GetObject":
            answer["LastModified"] = self.dates.get(parameters["Key"], answer["LastModified"])
        for each in answer.get("Contents", []) if operation == "ListObjectsV2" else []:
            each["LastModified"] = self.dates.get(each["Key"], each["LastModified"])

    def put(self, name: str, pk: str, sk: str) -> None:
        created = content(name, pk, sk) | {"pk": {"S": pk}, "sk": {"S": sk}}
        self.dynamodb.put_item(TableName=NAMES[name], Item=created)

    def write_records(self, key: str, projects: list[str]) -> None:
        lines = "".join(json.dumps({"project": each, "queue": self.project}) + "\n" for each in projects)
        self.s3.put_object(Bucket=RECORDS_BUCKET, Key=key, Body=gzip.compress(lines.encode()))

    def make_curated(self, *, killed: bool = False) -> None:
        """As the report's job does: a day is made again in files with other names, and findings lose what was erased.
        A run that is killed has made nothing but the records.
        """
        found = self.s3.list_objects_v2(Bucket=RECORDS_BUCKET, Prefix=f"records/dt={DAY}/")["Contents"]
        raw = {each["Key"].split(f"dt={DAY}/")[1]: [each["Size"], each["ETag"].strip('"')] for each in found}
        whose = b"".join(versions[0] for versions in self.stored(RECORDS_BUCKET, "records/dt=").values())
        self.nights += 1

        def replace(place: str, content: bytes) -> None:
            for each in self.s3.list_objects_v2(Bucket=RECORDS_BUCKET, Prefix=place).get("Contents", []):
                self.s3.delete_object(Bucket=RECORDS_BUCKET, Key=each["Key"])
            self.s3.put_object(Bucket=RECORDS_BUCKET, Key=f"{place}/part-{self.nights}.parquet", Body=content)

        replace(f"curated/records/dt={DAY}", whose)
        key = f"curated/records/dt={DAY}/_manifest.json"
        self.s3.put_object(Bucket=RECORDS_BUCKET, Key=key, Body=json.dumps({"raw": raw}).encode())
        if killed:
            return
        for place in ("curated/deliveries", "curated/attempts_hourly", "quarantine"):
            replace(f"{place}/dt={DAY}", whose)
        later = ("curated/findings/dt=2026-01-01", "curated/outages/dt=2026-01-01", "curated/open/2026-01-01")
        for place in (*later, "curated/gone/dt=2026-01-01", "work/deliveries"):
            replace(place, whose)
        for place in ("deliveries", "findings"):
            self.s3.put_object(Bucket=RECORDS_BUCKET, Key=f"curated/days/{place}/dt={DAY}/files.txt", Body=b"x")
        self.s3.put_object(Bucket=RECORDS_BUCKET, Key=TAKEN_OUT, Body=self.noted())

    def noted(self) -> bytes:
        """The erasures that were noted, as the job keeps them."""
        notes = self.stored(RECORDS_BUCKET, f"{NOTED_PROJECTS}/").items()
        return json.dumps({Path(key).stem: json.loads(content[0])["erasure"] for key, content in notes}).encode()

    def items(self, project: str) -> list[tuple[str, str, str]]:
        """All items of a project, by the lists of this test and not by those of the command."""
        own = {(name, *(item(pk, sk, {}, project)[key]["S"] for key in ("pk", "sk"))) for name, pk, sk, _ in ITEMS}
        neighbour = OTHER if project == self.project else self.project
        own.add(("MessagesTable", f"{project}#{neighbour}#1", "M"))
        return sorted(own & {(name, each["pk"]["S"], each["sk"]["S"]) for name in NAMES for each in self.all(name)})

    def all(self, name: str) -> list[dict[str, Any]]:
        return list(self.dynamodb.scan(TableName=NAMES[name])["Items"])

    def stored(self, bucket: str, prefix: str = "") -> dict[str, list[bytes]]:
        """The contents of all versions, by key, the newest first."""
        found: dict[str, list[bytes]] = {}
        for each in self.s3.list_object_versions(Bucket=bucket, Prefix=prefix).get("Versions", []):
            body = self.s3.get_object(Bucket=bucket, Key=each["Key"], VersionId=each["VersionId"])["Body"].read()
            found.setdefault(each["Key"], []).append(gzip.decompress(body) if each["Key"].endswith(".gz") else body)
        return found

    def naming(self, prefix: str) -> list[str]:
        """The keys of all versions below a prefix of the records bucket that have a record of the project."""
        whose = f'"project": "{self.project}"'.encode()
        stored = self.stored(RECORDS_BUCKET, prefix).items()
        return [key for key, versions in stored for each in versions if whose in each]

    def delete(self, *, code: int = 1) -> tuple[dict[str, tuple[int, int]], str]:
        """What was removed and what is left, by place; and what else was said."""
        assert run(["--stack", "acme", "--json", "projects", "delete", self.project, "--yes"]) == code
        said = self._capsys.readouterr()
        return {each["place"]: (each["removed"], each["left"]) for each in json.loads(said.out)}, said.err


class Killed(BaseException):
    """The command was killed."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Hub]:
    with_credentials(monkeypatch)
    created: list[Hub] = []

    def answered(operation: str, parameters: dict[str, Any], real: Callable[[], Any]) -> Any:
        if operation == "DescribeStacks":
            return described(OUTPUTS)
        if operation == "Invoke":
            return {"StatusCode": 200}
        hub = created[0] if created else None
        if hub is not None and operation.startswith(("BatchWrite", "Delete", "Put")):
            hub.calls.append(operation)
            if hub.dies_after is not None and len(hub.calls) > hub.dies_after:
                raise Killed
        answer = real()
        if hub is not None:
            hub.date(operation, parameters, answer)
        return answer

    answering(monkeypatch, answered)
    monkeypatch.setattr(SystemClock, "sleep", lambda _, __: None)
    monkeypatch.setattr(SystemClock, "now", lambda _: created[0].now if created else NOW)
    with ExitStack() as services:
        services.enter_context(aws.dynamodb())
        services.enter_context(aws_notifications.dynamodb())
        hub = Hub(capsys)
        created.append(hub)
        yield hub


def test_every_table_and_folder_of_the_template_is_in_the_list() -> None:
    root = Path(__file__).parents[2]
    template = "".join(each.read_text() for each in (root / "template.yaml", *(root / "stacks").glob("*.yaml")))
    assert set(re.findall(r"^  (\w+):\n    Type: AWS::DynamoDB::Table$", template, re.MULTILINE)) == {*TABLES}
    folders = set(re.findall(r"\$\{BodiesBucket\.Arn\}/(\w+)/", template))
    assert folders == {*BODIES}
    used = set(re.findall(r"\$\{RecordsBucket(?:\.?Arn)?\}/(\w+)", template))
    assert used - {*RECORDS} == set()


def test_every_kind_has_an_example_here_and_its_owner_is_found() -> None:
    kinds: dict[str, set[int]] = {name: set() for name in TABLES}
    samples = [(name, item(pk, sk, more, OTHER), OTHER) for name, pk, sk, more in ITEMS]
    samples += [(name, item(pk, sk, {}, OTHER), NOBODY) for name, pk, sk in SHARED]
    for name, sample, whose in samples:
        assert owner(name, sample) == whose
        pk, sk = sample["pk"]["S"], sample["sk"]["S"]
        fits = (re.fullmatch(each.pk, pk) and re.fullmatch(each.sk, sk) for each in TABLES[name])
        kinds[name].add([bool(each) for each in fits].index(True))
    assert kinds == {name: set(range(len(each))) for name, each in TABLES.items()}
    assert owner("ScheduleTable", item("NEW#{p}", "x", {}, OTHER)) is None


def test_a_link_to_another_object_stays_and_is_not_counted(hub: Hub) -> None:
    # Given an object that names the one before it
    key = f"records/dt={DAY}/hour=05/messages-5-6-2.json.gz"
    link = {"schema_version": 2, "record_id": f"link/dt={DAY}/{hub.raw}", "kind": "link", "at": f"{DAY}T05:00:00Z"}
    lines = [{"project": hub.project}, {"project": OTHER, "queue": "link"}, link]
    content = "".join(f"{json.dumps(each)}\n" for each in lines).encode()
    hub.s3.put_object(Bucket=RECORDS_BUCKET, Key=key, Body=gzip.compress(content))
    # When the project is deleted
    hub.delete()
    # Then the link is left, and the note counts the records that are
    [left] = hub.stored(RECORDS_BUCKET)[key]
    assert [json.loads(each) for each in left.splitlines()] == lines[1:]
    [note] = hub.stored(RECORDS_BUCKET)[f"records/erased/dt={DAY}.json"]
    assert json.loads(note) == {hub.raw: 2, "hour=05/messages-5-6-2.json.gz": 1}


def test_a_day_is_never_in_memory_as_a_whole(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a day of many objects, each with a record of the project
    for number in range(60):
        hub.write_records(f"records/dt={DAY}/hour=07/messages-5-{number}-2.json.gz", [OTHER, hub.project])
    read, alive, most = Erasing._lines, WeakSet[Lines](), [0]

    def lines(erasing: Erasing, key: str) -> list[bytes]:
        found = Lines(read(erasing, key))
        alive.add(found)
        most[0] = max(most[0], len(alive))
        return found

    monkeypatch.setattr(Erasing, "_lines", lines)
    # When the project is deleted
    hub.delete()
    # Then no more objects were in memory together than are read side by side
    assert most[0] <= AT_ONCE + 1


class Lines(list[bytes]):
    """Lines of which is seen whether they are in memory still."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def test_what_is_no_record_goes_if_it_names_the_project_and_an_object_that_cannot_be_read_is_named(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given lines that somebody's tool has spoilt, and an object that is no gzip, or was cut off
    hour = f"records/dt={DAY}/hour=05"
    spoilt, cut_off = f"{hour}/messages-5-6-2.json.gz", f"{hour}/messages-5-6-3.json.gz"
    lines = [b'{"project": "' + hub.project.encode(), b'{"link', b"[" + b"[" * 99_999, b"\xff"]
    hub.s3.put_object(Bucket=RECORDS_BUCKET, Key=spoilt, Body=gzip.compress(b"\n".join(lines)))
    for body in (b"no gzip", gzip.compress(b"x" * 99)[:-9]):
        hub.s3.put_object(Bucket=RECORDS_BUCKET, Key=cut_off, Body=body)
        # When the project is deleted, then it is said which object, and what to do
        assert run(["--stack", "acme", "projects", "delete", hub.project, "--yes"]) == 1
        assert f"{cut_off} cannot be read" in capsys.readouterr().err
    # And when that is out of the way
    hub.s3.delete_object(Bucket=RECORDS_BUCKET, Key=cut_off)
    hub.delete()
    # Then the line that names the project is gone, and the others are as they were
    [left] = hub.stored(RECORDS_BUCKET, spoilt)[spoilt]
    assert left.splitlines() == lines[1:]


def test_everything_of_a_project_goes_and_nothing_of_another(hub: Hub) -> None:
    others = hub.items(OTHER)
    hub.make_curated()
    # When it is deleted
    places, said = hub.delete()
    # Then everything of it is gone, what was removed is listed, and it is said what has to be done yet
    assert hub.items(hub.project) == []
    assert {place: left for place, (_, left) in places.items() if left} == {}
    assert all(places[name][0] > 0 for name in TABLES)
    assert {place: removed for place, (removed, _) in places.items() if "bodies bucket" in place} == {
        f"bodies bucket, {area}/": 1 for area in BODIES
    }
    assert places["delivery records"] == (2, 0)
    assert f"--date-from {DAY}" in said
    assert "run this command again after" in said
    # And neither a former version of a record nor a body of it is there, and everything of the other project is
    assert hub.items(OTHER) == others
    assert all(hub.project not in key for key in hub.stored(aws.BUCKET))
    assert len(hub.stored(aws.BUCKET)) == len(BODIES)
    records = hub.stored(RECORDS_BUCKET)
    [left] = records[f"records/dt={DAY}/{hub.raw}"]
    assert [json.loads(each)["project"] for each in left.splitlines()] == [OTHER, OTHER]
    # And the nightly report is told how many records are left in that object, and of no other object
    assert [json.loads(each) for each in records[f"{NOTES}/dt={DAY}.json"]][-1] == {hub.raw: 2}
    # When the report's job has run, and nothing can be written for the project any more
    hub.make_curated()
    hub.now += SETTLED_MS
    places, said = hub.delete(code=0)
    # Then nothing was left to remove but what the job had made before, and its own item is gone, too
    assert places.pop("former versions of curated files") == (10, 0)
    assert {*places.values()} == {(0, 0)}
    assert [each for each in said.splitlines() if not each.startswith("done: ")] == []
    keys = {(each["pk"]["S"], each["sk"]["S"]) for each in hub.all("ConfigTable")}
    assert (f"P#{hub.project}", "PROJECT") not in keys
    # And whoever asks again is told the same
    assert {*hub.delete(code=0)[0].values()} == {(0, 0)}


def test_no_version_of_what_the_job_has_made_names_it(hub: Hub) -> None:
    # Given curated files of several nights
    for _ in range(2):
        hub.make_curated()
    assert len(hub.naming("curated/")) == 14
    # When the project is deleted, and a night is killed when it has taken out findings and made the records again, or
    # has made everything again and has not taken out findings
    hub.delete()
    hub.now += SETTLED_MS
    taken_out = hub.stored(RECORDS_BUCKET, TAKEN_OUT)[TAKEN_OUT][0]
    hub.make_curated(killed=True)
    for undone in (hub.noted(), taken_out):
        hub.s3.put_object(Bucket=RECORDS_BUCKET, Key=TAKEN_OUT, Body=undone)
        # Then it is said that the job has to run
        assert f"--date-from {DAY}" in hub.delete()[1]
        hub.make_curated()
    # And when it has, no version of any object has something of the project
    hub.delete(code=0)
    assert hub.naming("") == []


def test_former_versions_of_bodies_go_too(hub: Hub) -> None:
    # Given a bucket with versions (BodyVersionsDays), in which a body was written over and another one removed
    hub.s3.put_bucket_versioning(Bucket=aws.BUCKET, VersioningConfiguration={"Status": "Enabled"})
    first, second = (
        key for key in sorted(hub.stored(aws.BUCKET)) if hub.project in key and "/webhooks" not in f"/{key}"
    )
    hub.s3.put_object(Bucket=aws.BUCKET, Key=first, Body=b"erased")
    hub.s3.delete_object(Bucket=aws.BUCKET, Key=second)
    assert len(hub.stored(aws.BUCKET)[first]) == 2
    # When
    places, _ = hub.delete()
    # Then no version is left, nor that one was removed
    assert sum(removed for place, (removed, _) in places.items() if "bodies bucket" in place) == len(BODIES) + 2
    listed = hub.s3.list_object_versions(Bucket=aws.BUCKET)
    assert [each["Key"] for each in listed.get("DeleteMarkers", [])] == []
    assert all(hub.project not in each["Key"] for each in listed["Versions"])


def test_what_is_written_late_is_found_by_the_next_run(hub: Hub) -> None:
    hub.delete()
    hub.put("MessagesTable", f"{hub.project}#uid#2", "D#s0")
    hub.now += SETTLED_MS
    places, _ = hub.delete(code=0)
    assert places["MessagesTable"] == (1, 0)


def test_an_item_of_an_unknown_kind_that_names_the_project_is_told_and_not_removed(hub: Hub) -> None:
    hub.put("ScheduleTable", f"NEW#{hub.project}", "x")
    hub.now += SETTLED_MS
    for _ in range(2):
        _, said = hub.delete()
        assert f"NEW#{hub.project} x" in said
        hub.now += SETTLED_MS
    assert [each["pk"]["S"] for each in hub.all("ScheduleTable") if each["pk"]["S"].startswith("NEW")] != []


def test_wherever_it_is_killed_the_next_run_goes_on(hub: Hub) -> None:
    others = hub.items(OTHER)
    # Given a command that is killed again and again, after one, two or three writes
    killed = 0
    for number in range(100):
        hub.calls.clear()
        hub.dies_after = 1 + number % 3
        try:
            hub.delete()
        except Killed:
            killed += 1
            continue
        break
    assert killed > 5
    # Then the run that is not killed leaves nothing
    hub.dies_after = None
    hub.now += SETTLED_MS
    assert {left for _, left in hub.delete(code=0)[0].values()} == {0}
    assert (hub.items(hub.project), hub.items(OTHER)) == ([], others)
    assert len(hub.stored(RECORDS_BUCKET)[f"records/dt={DAY}/{hub.raw}"]) == 1


def test_what_is_no_project_is_refused(hub: Hub) -> None:
    assert run(["--stack", "acme", "projects", "delete", "acme", "--yes"]) == 2


def test_a_dry_run_counts_what_is_there_and_removes_nothing(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    before = hub.items(hub.project), hub.stored(aws.BUCKET), hub.stored(RECORDS_BUCKET)
    assert run(["--stack", "acme", "--json", "projects", "delete", hub.project, "--dry-run"]) == 0
    shown = {each["place"]: each["would remove"] for each in json.loads(capsys.readouterr().out)}
    assert (shown["MessagesTable"], shown["delivery records"]) == (3, 2)
    assert (hub.items(hub.project), hub.stored(aws.BUCKET), hub.stored(RECORDS_BUCKET)) == before
    # And without it, that is what is removed
    removed = {place: count for place, (count, _) in hub.delete()[0].items()}
    assert removed == shown
