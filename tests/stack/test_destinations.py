"""Queues, topics, event buses and functions on AWS as receivers of a running hub: clients make them, boto3 reads back.

What the hub calls is an emulator of its own, beside the hub's: no tenant may reach the latter.
"""

from __future__ import annotations

import io
import json
import operator
import os
import random
import secrets
import socket
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import boto3
import pytest
import requests
from local.place import Place
from tests.stack.project import ProjectClient, unique
from tests.stack.running import RunningStack, free_port
from tests.stack.webhooks import clients

pytestmark = pytest.mark.stack

REGION, ACCOUNT = "eu-west-1", "000000000000"
"""The emulator's account; the hub's is the same, so roles are of another one."""
ROLE = "arn:aws:iam::111122223333:role/hub"
WAIT_S = 180
Found = TypeVar("Found")

CLIENT = """
import json, sys
from svix import Svix, SvixOptions, models
base, token, app, config = sys.argv[1:]
svix = Svix(token, SvixOptions(server_url=base, timeout=60))
whole = models.DestinationIn(type="sqs", uid="client", config=json.loads(config))
one = svix.destination.create(app, whole)
assert svix.destination.get(app, "client").id == one.id
assert [each.id for each in svix.destination.list(app).data] == [one.id]
changed = svix.destination.patch(app, one.id, models.DestinationPatch(type="sqs", metadata={"a": "b"}, config={}))
assert (changed.metadata, changed.config.queue_url) == ({"a": "b"}, one.config.queue_url)
again = svix.destination.upsert(app, "client", whole)
assert (again.id, again.metadata) == (one.id, {})
assert svix.destination.rotate_secret(app, one.id, models.EndpointSecretRotateIn()).key.startswith("whsec_")
got = svix.destination.transformation.get(app, one.id)
assert (got.code, got.enabled) == (None, False)
other = svix.destination.create(app, models.DestinationIn(type="sqs", config=json.loads(config)))
svix.destination.delete(app, other.id)
print(one.config.external_id)
"""


@dataclass(frozen=True)
class Cloud:
    """Somebody else's account.

    Attributes:
        url: Where its services are called.
    """

    url: str

    def client(self, service: str) -> Any:
        """A client of one of its services."""
        make: Any = boto3.client
        return make(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id="AKIAOWNEROWNEROWNER1",
            aws_secret_access_key="s" * 40,
        )

    def place(self, scheme: str, name: str, **options: str) -> str:
        """The URL of something in it, which a role opens."""
        given = {"role": ROLE, "endpoint": self.url, **options}
        return f"{scheme}://{REGION}/{ACCOUNT}/{name}?" + "&".join(f"{each}={value}" for each, value in given.items())

    def queue(self, name: str, **attributes: str) -> str:
        """A new queue; its URL."""
        return str(self.client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])

    def messages(
        self, queue: str, count: int, what: Callable[[dict[str, Any]], Any] = operator.itemgetter("Body")
    ) -> list[dict[str, Any]]:
        """What a queue gets until it has had so many different messages, told apart by what is given; what comes again,
        as it does when the hub was not told in time, is left out.
        """
        sqs, found = self.client("sqs"), dict[Any, dict[str, Any]]()

        def receive() -> list[dict[str, Any]] | None:
            got = sqs.receive_message(
                QueueUrl=queue,
                MaxNumberOfMessages=10,
                MessageAttributeNames=["All"],
                AttributeNames=["All"],
                WaitTimeSeconds=1,
            ).get("Messages", [])
            for each in got:
                sqs.delete_message(QueueUrl=queue, ReceiptHandle=each["ReceiptHandle"])
            for each in got:
                found.setdefault(what(each), each)
            return [*found.values()] if len(found) >= count else None

        return until(receive)


def until(look: Callable[[], Found | None]) -> Found:
    """What is found, as soon as it is, and neither empty nor false."""
    ends = time.monotonic() + WAIT_S
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < ends, "nothing was found in time"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    home, port = tmp_path_factory.mktemp("cloud"), free_port()
    environ = {**os.environ, "GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "PYTHONPATH": "", "HOME": str(home)}
    python = Place.from_environment().emulator_python
    with (home / "log").open("wb") as log:
        process = subprocess.Popen([str(python), "-m", "ministack"], env=environ, cwd=home, stdout=log, stderr=log)

    def reached() -> bool | None:
        with socket.socket() as probe:
            return True if probe.connect_ex(("127.0.0.1", port)) == 0 else None

    try:
        until(reached)
        yield Cloud(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(120)


@dataclass(frozen=True)
class Hub:
    """A project of the running hub, with its webhooks."""

    project: ProjectClient
    base_url: str

    def ask(self, method: str, path: str, body: Any = None) -> requests.Response:
        """A request of the webhooks API."""
        headers = {"Authorization": f"Bearer {self.project.token}"}
        return requests.request(method, f"{self.base_url}/api/v1{path}", json=body, headers=headers, timeout=40)

    def app(self) -> str:
        """A new application."""
        return str(self.ask("POST", "/app", {"name": unique("app")}).json()["id"])


@pytest.fixture(scope="module")
def hub(stack: RunningStack) -> Hub:
    return Hub(project=ProjectClient.another(stack), base_url=stack.base_url)


def detail_of(message: dict[str, Any]) -> Any:
    """What an event of a bus carries, which came by a queue."""
    return json.loads(message["Body"])["detail"]


def drawn(count: int) -> list[str]:
    """Bodies at random: JSON with any letters that a queue takes."""
    letters = 'aé€\u2028\U0001f600\t"\\<&>'
    return [
        json.dumps(
            {"n": number, "text": "".join(random.choices(letters, k=20)), "id": secrets.token_hex(4)},
            ensure_ascii=False,
        )
        for number in range(count)
    ]


def test_a_queue_of_the_hub_pushes_to_queue_topic_bus_and_function(hub: Hub, cloud: Cloud) -> None:
    # Given a queue of SQS, a topic that feeds one, a bus that feeds one, and a function that keeps what it gets
    direct, topics, buses, kept = (cloud.queue(unique(each)) for each in ("direct", "topic", "bus", "kept"))
    sqs, sns, events = (cloud.client(each) for each in ("sqs", "sns", "events"))

    def arn(queue: str) -> str:
        return str(sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"])

    topic = sns.create_topic(Name=unique("topic"))["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn(topics), Attributes={"RawMessageDelivery": "true"})
    bus = unique("bus")
    events.create_event_bus(Name=bus)
    events.put_rule(Name="all", EventBusName=bus, EventPattern=json.dumps({"source": ["pushhub"]}))
    events.put_targets(Rule="all", EventBusName=bus, Targets=[{"Id": "1", "Arn": arn(buses)}])
    function = unique("function")
    code = f"""
import json, urllib.request
import boto3
def handle(event, context):
    where = dict(endpoint_url="{cloud.url}", region_name="{REGION}")
    sqs = boto3.client("sqs", aws_access_key_id="AKIAOWNEROWNEROWNER1", aws_secret_access_key="s" * 40, **where)
    sqs.send_message(QueueUrl="{kept}", MessageBody=json.dumps(event))
"""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("code.py".replace("code", "kept"), code)
    cloud.client("lambda").create_function(
        FunctionName=function,
        Runtime="python3.11",
        Role=ROLE,
        Handler="kept.handle",
        Code={"ZipFile": packed.getvalue()},
        # Its process starts and imports boto3, which takes longer than the three seconds of the default when busy.
        Timeout=120,
    )
    # When messages are posted to a queue whose subscribers they are
    queue, bodies = unique("source"), drawn(5)
    urls = [
        cloud.place("sqs", direct.rpartition("/")[2]),
        cloud.place("sns", topic.rpartition(":")[2]),
        cloud.place("events", bus),
        cloud.place("lambda", function),
    ]
    subscribers = [{"name": str(number), "url": url, "timeout": 40} for number, url in enumerate(urls)]
    created = hub.project.call(
        "PUT", f"/queues/{queue}", {"queue": {"type": "multicast", "push": {"subscribers": subscribers}}}
    )
    assert created.status_code in (200, 201), created.text
    posted = hub.project.call("POST", f"/queues/{queue}/messages", {"messages": [{"body": each} for each in bodies]})
    assert posted.status_code == 201, posted.text
    # Then each has them, as they were posted
    ids = set(posted.json()["ids"])
    assert sorted(each["Body"] for each in cloud.messages(direct, 5)) == sorted(bodies)
    received = cloud.messages(topics, 5)
    assert sorted(each["Body"] for each in received) == sorted(bodies)
    wrapped = [json.loads(each["Body"]) for each in cloud.messages(buses, 5, lambda each: detail_of(each)["id"])]
    assert sorted(each["detail"]["id"] for each in wrapped) == sorted(json.loads(each)["id"] for each in bodies)
    assert {each["resources"][0] for each in wrapped} == ids
    handled = [
        json.loads(each["Body"]) for each in cloud.messages(kept, 5, lambda each: json.loads(each["Body"])["body"])
    ]
    assert sorted(each["body"] for each in handled) == sorted(bodies)
    assert {each["headers"]["webhook-id"] for each in handled} == ids


def test_svixs_client_makes_a_destination_and_boto3_reads_what_it_gets(hub: Hub, cloud: Cloud) -> None:
    # Given an application, and a queue for it
    app, queue = hub.app(), cloud.queue(unique("svix"))
    config = {
        "queueUrl": f"{cloud.url}/{ACCOUNT}/{queue.rpartition('/')[2]}",
        "endpointUrl": cloud.url,
        "region": REGION,
        "roleArn": ROLE,
    }
    # When the unmodified client makes, reads, changes and replaces it
    finished = subprocess.run(
        [str(clients.python(2)), "-c", CLIENT, hub.base_url, hub.project.token, app, json.dumps(config)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip() == hub.ask("GET", f"/app/{app}/external-id").json()["externalId"]
    # Then messages arrive in Svix's form
    payloads = [json.loads(each) for each in drawn(8)]
    for each in payloads:
        assert hub.ask("POST", f"/app/{app}/msg", {"eventType": "user.created", "payload": each}).status_code == 202
    got = cloud.messages(queue, 8)
    assert {json.loads(each["Body"])["eventType"] for each in got} == {"user.created"}
    read = [json.loads(each["Body"])["payload"] for each in got]
    assert sorted(read, key=str) == sorted(payloads, key=str)
    assert {each["MessageAttributes"]["webhook-event-type"]["StringValue"] for each in got} == {"user.created"}
